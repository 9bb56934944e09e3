"""Rows dealt into blocks, and a sample so small that the solvers must go over the blocks."""

from functools import partial

import numpy as np
import pytest

from sdulearn.blocks import LocalBlocks
from sdulearn.datasets import make_waveform, sample_sdu


@pytest.fixture(scope="session")
def many():
    """2,800 rows: 400 pairs and 2,000 unlabeled rows of the waveform set."""
    X, y = make_waveform(8_000, random_state=0)
    return sample_sdu(X, y, n_pairs=400, n_unlabeled=2000, prior=0.7, random_state=0)


@pytest.fixture
def small_sample(monkeypatch):
    """Only 150 rows of each source at a time can be brought together."""
    monkeypatch.setattr("sdulearn.solvers.linalg._GATHERED_NUMBERS", 150 * 22)
    monkeypatch.setattr("sdulearn.solvers.linalg._GATHERED_SQUARES", 4)


def deal(rows, codes, n_blocks=7, weight=None, seed=0, **options):
    """Blocks of shuffled rows: the ends of most pairs are apart."""
    order = np.random.default_rng(seed).permutation(len(codes))
    parts = []
    for some in np.array_split(order, n_blocks):
        block = (rows[some], codes[some], None if weight is None else weight[some])
        parts.append(partial(_held, block))
    return LocalBlocks(parts, **options)


def _held(block):
    return [block]
