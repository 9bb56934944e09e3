"""DaskBlocks on Dask's local schedulers, and what an error of a cluster is called."""

import re
import threading
import time
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from dask import delayed
from distributed import CancelledError, Client, KilledWorker, LocalCluster
from distributed.comm import CommClosedError
from threadpoolctl import threadpool_info, threadpool_limits

from sdulearn.blocks import LocalBlocks, Sums
from sdulearn.distributed import DaskBlocks
from sdulearn.distributed import cluster as module
from sdulearn.distributed.cluster import (
    SchedulerLostError,
    WorkerFileError,
    WorkersLostError,
    clear_errors,
)
from sdulearn.errors import ClusterWarning, FileError


class Numbers:
    """A part of a few blocks of random rows; counts how often it is read."""

    def __init__(self, seed, n_blocks=2):
        self.seed, self.n_blocks, self.times_read = seed, n_blocks, 0

    def __call__(self):
        self.times_read += 1
        rng = np.random.default_rng(self.seed)
        for size in rng.integers(1, 20, self.n_blocks):
            yield rng.normal(size=(size, 3)), rng.integers(-5, 6, size), rng.random(size)


def moments(X, y, weight, shift, names):
    return Sums(gram=X.T @ (weight[:, None] * X) + shift, rows=len(y), names=[names])


def blas_threads(X, y, weight):
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("n_parts", [1, 9, 70])
def test_sum_is_that_of_local_blocks(n_parts, scheduler):
    parts = [Numbers(seed, n_blocks=seed % 3) for seed in range(1, n_parts + 1)]
    expected = LocalBlocks(parts).sum(moments, 0.5, "once")
    with dask.config.set(scheduler=scheduler):
        for blocks in (DaskBlocks.from_parts(parts), DaskBlocks([delayed(list(part())) for part in parts])):
            found = blocks.sum(moments, 0.5, "once")
            assert isinstance(found, Sums)
            assert found["rows"] == expected["rows"]
            assert found["names"] == expected["names"]
            np.testing.assert_allclose(found["gram"], expected["gram"], rtol=1e-13)
    assert DaskBlocks.from_parts(parts).n_blocks == sum(part.n_blocks for part in parts)
    assert blocks.n_blocks == n_parts


def test_persisted_parts_are_read_once():
    parts, seen = [Numbers(seed) for seed in range(5)], []
    blocks = DaskBlocks.from_parts(parts, watch=seen.append)
    kept = blocks.persist()
    first, second = kept.sum(moments, 0.0, "a"), kept.sum(moments, 1.0, "b")
    assert seen == [first["rows"], None] * 2
    assert [part.times_read for part in parts] == [1] * 5
    np.testing.assert_allclose(second["gram"] - first["gram"], 10.0)  # ten blocks, each shifted by one
    blocks.sum(moments, 0.0, "a")
    assert [part.times_read for part in parts] == [2] * 5
    assert DaskBlocks.from_parts([Numbers(1, n_blocks=0)]).sum(moments, 0.0, "") is None


def test_one_blas_thread_where_tasks_run_side_by_side():
    blocks = DaskBlocks.from_parts([Numbers(seed) for seed in range(20)])
    with threadpool_limits(2, user_api="blas"):
        with dask.config.set(scheduler="threads"):
            assert max(blocks.sum(blas_threads)) == 1
        assert max(blas_threads(None, None, None)) == 2  # not all: some library may know no threads


KILLED = KilledWorker("task", SimpleNamespace(address="tcp://one:1"), 3)
# The error; what it is called while the client runs, and after the connection was lost.
CASES = [
    (KILLED, WorkersLostError, WorkersLostError),
    (FileNotFoundError(2, "No such file", "rows.parquet"), WorkerFileError, WorkerFileError),
    (CommClosedError("in the middle"), SchedulerLostError, SchedulerLostError),
    (CancelledError("sum"), WorkersLostError, SchedulerLostError),
    (OSError("disk full"), OSError, SchedulerLostError),
    (ConnectionRefusedError("nobody there"), ConnectionRefusedError, SchedulerLostError),
    (ValueError("these rows are wrong"), ValueError, ValueError),
]


def client_of(status):
    return SimpleNamespace(status=status, scheduler=SimpleNamespace(address="tcp://here:8786"))


def fail(client, status, error):
    """An error on the way, after which the client is in another state."""
    with clear_errors(client):
        client.status = status
        raise error


@pytest.mark.parametrize("status", ["running", "closed"])
@pytest.mark.parametrize(("error", "while_running", "after"), CASES, ids=lambda case: getattr(case, "__name__", None))
def test_errors_say_what_was_lost(error, while_running, after, status):
    expected = while_running if status == "running" else after
    with pytest.raises(expected) as caught:
        fail(client_of("running"), status, error)
    assert type(caught.value) is expected
    if isinstance(caught.value, SchedulerLostError):
        assert "tcp://here:8786" in str(caught.value)
        assert status in str(caught.value)
    if error is KILLED:
        assert "4 workers died under it (last on tcp://one:1)" in str(caught.value)
    if expected is WorkerFileError:
        assert isinstance(caught.value, FileError)
        assert re.search(r"cannot find a file: .*rows\.parquet.*on a disk that all of them share", str(caught.value))
    # Nothing is begun without a scheduler.
    if status != "running":
        with pytest.raises(SchedulerLostError), clear_errors(client_of(status)):
            raise AssertionError


def part():
    yield np.ones((3, 2)), np.array([1, 1, 0]), None


def count(X, y, weight):
    return len(y)


@pytest.fixture
def empty_cluster(monkeypatch):
    """No workers at all, and little patience."""
    monkeypatch.setattr(module, "ASK_SECONDS", 0.05)
    monkeypatch.setattr(module, "WARN_SECONDS", 0.2)
    options = {"n_workers": 0, "processes": False, "dashboard_address": "127.0.0.1:0", "protocol": "tcp://"}
    with LocalCluster(host="127.0.0.1", **options) as local, Client(local):
        yield local


@pytest.mark.parametrize("states", [[], ["paused", "paused"]])
def test_no_worker_that_runs(empty_cluster, monkeypatch, states):
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.6)
    monkeypatch.setattr(module, "worker_states", lambda client: states)
    paused = r", and 2 that are paused \(most often over their memory limit\)" if states else ""
    state = f"The cluster at {empty_cluster.scheduler_address} has had no running worker{paused} for "
    with (
        pytest.warns(ClusterWarning, match=state + r".* s\. Waiting for one, for 0\.6 s"),
        pytest.raises(WorkersLostError, match=f"Gave up: {state}.* Add workers"),
    ):
        DaskBlocks.from_parts([part, part], lambda rows: None).sum(count)


def test_a_worker_that_comes_late(empty_cluster):
    """The work is done as soon as there is somebody to do it; the warning comes once."""
    blocks = DaskBlocks.from_parts([part, part])

    def add_worker():
        time.sleep(0.5)
        empty_cluster.scale(1)

    helper = threading.Thread(target=add_worker)
    helper.start()
    with pytest.warns(ClusterWarning) as caught:
        assert blocks.sum(count) == 6
    helper.join()
    assert len([one for one in caught if one.category is ClusterWarning]) == 1
