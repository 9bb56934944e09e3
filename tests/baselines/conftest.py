"""Rows with pairs that the tests of the clusterings share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def blobs():
    """Two clouds of 30 rows, their classes, and codes of four similar and two dissimilar pairs."""
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], 30)
    X = rng.normal(size=(60, 3)) + 2.5 * y[:, None]
    codes = np.zeros(60, dtype=np.int64)
    for k, (a, b) in enumerate([(0, 1), (2, 3), (30, 31), (32, 33), (4, 34), (5, 35)], start=1):
        codes[[a, b]] = k if y[a] == y[b] else -k
    return X, y, codes
