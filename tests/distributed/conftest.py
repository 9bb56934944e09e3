"""Small data sets in dask collections, and the scheduler that is easiest to debug."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import sparse


@pytest.fixture(autouse=True)
def synchronous():
    """No threads, unless a test asks for a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="session")
def thinned(waveform):
    """The waveform rows with two values of three set to zero, so that CSR makes sense."""
    rows, codes = waveform
    keep = np.random.default_rng(0).random(rows.shape) < 1 / 3
    return np.where(keep, rows, 0.0), codes


@pytest.fixture
def weights(waveform):
    """One weight per pair, another for each unlabeled row; some are 0."""
    codes = waveform[1]
    rng = np.random.default_rng(2)
    of_pair = rng.uniform(0.5, 2, np.abs(codes).max() + 1)
    of_pair[::7] = 0
    weights = np.where(codes == 0, rng.uniform(0.5, 2, len(codes)), of_pair[np.abs(codes)])
    weights[-5:] = 0
    return weights


@pytest.fixture(scope="session")
def csr_chunks():
    """A function that turns dense rows into a dask array of CSR chunks."""

    def make(rows, chunks):
        return da.from_array(rows, chunks=chunks).map_blocks(sparse.csr_matrix)

    return make


@pytest.fixture(scope="session")
def untouchable():
    """A function that gives a dask array which fails as soon as one chunk of it is computed."""

    def compute(block):
        raise AssertionError("a chunk was computed")

    def make(shape, chunks, dtype=np.float64):
        return da.zeros(shape, chunks=chunks, dtype=dtype).map_blocks(compute, meta=np.empty((0,) * len(shape), dtype))

    return make
