"""What the scripts take from ``reproduction``, which stands beside this folder and is not installed."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from reproduction import datasets
from reproduction.baselines import KMeansBaseline, PCKMeans
from reproduction.datasets import BENCHMARKS, load_multiclass
from reproduction.tables import paper_table


@functools.lru_cache(maxsize=1)
def load_benchmark(name):
    """A set of the paper; draws of one set follow each other. Workers find it here by its name."""
    return datasets.load_benchmark(name)


__all__ = ["BENCHMARKS", "KMeansBaseline", "PCKMeans", "load_benchmark", "load_multiclass", "paper_table"]
