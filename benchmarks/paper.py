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

# Draws of one set follow each other.
load_benchmark = functools.lru_cache(maxsize=1)(datasets.load_benchmark)

__all__ = ["BENCHMARKS", "KMeansBaseline", "PCKMeans", "load_benchmark", "load_multiclass", "paper_table"]
