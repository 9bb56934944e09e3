"""Small data sets in dask collections, the scheduler that is easiest to debug, and one real cluster for the session."""

from __future__ import annotations

import logging
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

SECONDS = 1800  # as good as for ever: how long a busy machine takes is not what is tested


@pytest.fixture(autouse=True)
def synchronous():
    """No threads, unless a test asks for a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


@contextmanager
def two_workers(folder):
    """Two worker processes on loopback, the default of everything that computes meanwhile."""
    settings = {
        "temporary-directory": str(folder),
        # On a busy machine a worker that died takes long to come back; until then it is not given up.
        "distributed.deploy.lost-worker-timeout": "10 minutes",
    }
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "protocol": "tcp://"}
    web = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with (
        dask.config.set(settings),
        LocalCluster(**options, **web) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=SECONDS)
        yield client


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory):
    """A cluster for all tests; those that kill workers wait for new ones."""
    with two_workers(tmp_path_factory.mktemp("dask")) as client:
        yield client


@pytest.fixture
def client(shared_cluster, synchronous):
    """The cluster computes, within a test that asks for it."""
    with dask.config.set(scheduler=None), shared_cluster.as_current():
        yield shared_cluster


@pytest.fixture(scope="session")
def thinned(waveform):
    """The waveform rows with two values of three set to zero, so that CSR makes sense."""
    rows, codes = waveform
    keep = np.random.default_rng(0).random(rows.shape) < 1 / 3
    return np.where(keep, rows, 0.0), codes


@pytest.fixture(scope="session")
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
def untouchable():
    """A function that gives a dask array which fails as soon as one chunk of it is computed."""

    def compute(block):
        raise AssertionError("a chunk was computed")

    def make(shape, chunks, dtype=np.float64):
        return da.zeros(shape, chunks=chunks, dtype=dtype).map_blocks(compute, meta=np.empty((0,) * len(shape), dtype))

    return make
