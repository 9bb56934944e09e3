"""A cluster that does nothing is not waited for in silence, nor for ever."""

import threading
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster

from sdulearn.distributed import DaskBlocks, WorkersLostError, cluster
from sdulearn.errors import ClusterWarning


def part():
    yield np.ones((3, 2)), np.array([1, 1, 0]), None


def count(X, y, weight):
    return len(y)


@pytest.fixture
def empty_cluster(monkeypatch):
    """No workers at all, and little patience."""
    monkeypatch.setattr(cluster, "ASK_SECONDS", 0.05)
    monkeypatch.setattr(cluster, "WARN_SECONDS", 0.2)
    options = {"n_workers": 0, "processes": False, "dashboard_address": None, "protocol": "tcp://"}
    with LocalCluster(host="127.0.0.1", **options) as local, Client(local):
        yield local


@pytest.mark.parametrize("watch", [None, lambda rows: None])
def test_no_worker_ever(empty_cluster, monkeypatch, watch):
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 1.0)
    blocks = DaskBlocks.from_parts([part, part], watch)
    address = empty_cluster.scheduler_address
    with (
        pytest.warns(ClusterWarning, match=f"{address} has had no running worker for .* s. Waiting for one, for 1 s"),
        pytest.raises(WorkersLostError, match=f"Gave up: The cluster at {address} .* Add workers"),
    ):
        blocks.sum(count)


def test_a_worker_that_comes_late(empty_cluster):
    """The work is done as soon as there is somebody to do it; the warning comes once."""
    blocks = DaskBlocks.from_parts([part, part])

    def add_worker():
        time.sleep(1)
        empty_cluster.scale(1)

    helper = threading.Thread(target=add_worker)
    helper.start()
    with pytest.warns(ClusterWarning) as caught:
        assert blocks.sum(count) == 6
    helper.join()
    assert len([one for one in caught if one.category is ClusterWarning]) == 1


@pytest.mark.parametrize(("states", "alone"), [(["paused", "paused"], True), (["paused", "running"], False)])
def test_workers_over_their_memory_limit(monkeypatch, states, alone):
    """Paused workers do nothing, but one that runs is enough."""

    class Scheduled:
        scheduler = None

    monkeypatch.setattr(cluster, "ASK_SECONDS", 0.0)
    monkeypatch.setattr(cluster, "WARN_SECONDS", 0.0)
    monkeypatch.setattr(cluster, "worker_states", lambda client: states)
    patience = cluster.Patience(Scheduled())
    if not alone:
        monkeypatch.setattr(cluster, "WARN_SECONDS", 1e-9)
        patience.check()
        return
    with pytest.warns(ClusterWarning, match=r"and 2 that are paused \(most often over their memory limit\)"):
        patience.check()
