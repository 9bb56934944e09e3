"""Worker processes, TCP, and workers that are killed in the middle of a fit."""

import gc
import logging
import os
import signal
import threading
import time
from contextlib import contextmanager

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, Event, LocalCluster, wait
from distributed.core import Status
from threadpoolctl import threadpool_info, threadpool_limits

import sdulearn
from sdulearn import distributed
from sdulearn.blocks import LocalBlocks, Sums
from sdulearn.distributed import DaskBlocks, WorkerFileError, WorkersLostError, gather_pairs
from sdulearn.distributed.cluster import wait_for
from sdulearn.errors import FileError, SdulearnError

SECONDS = 1800  # as good as for ever: how long a busy machine takes is not what is tested


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
    with dask.config.set(settings), LocalCluster(**options, **web) as cluster, Client(cluster) as client:
        client.wait_for_workers(2, timeout=SECONDS)
        yield client


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A cluster for all tests that kill no workers."""
    with two_workers(tmp_path_factory.mktemp("dask")) as client:
        yield client


@pytest.fixture
def doomed(tmp_path):
    """A cluster for one test that kills workers, thrown away after it."""
    with two_workers(tmp_path) as client:
        yield client


@pytest.fixture
def synchronous():
    """Each test names its cluster, which then computes."""


def wait_for_both(client):
    """Until two workers run and their nannies know it: a nanny whose worker dies before that gives up for good."""
    client.wait_for_workers(2, timeout=SECONDS)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        processes = [nanny.process for nanny in client.cluster.workers.values()]
        if sum(one is not None and one.status is Status.running for one in processes) >= 2:
            return
        time.sleep(0.02)
    raise AssertionError("a worker did not come back")


@pytest.fixture
def killed(doomed, monkeypatch):
    """Slow passes, and a worker killed in the middle of some; lists whether the pass was still running."""
    passes, found, plain_sum = [], [], DaskBlocks.sum

    def slowly(task):
        def run(*arguments):
            time.sleep(0.2)
            return task(*arguments)

        return run

    def draw_few():
        """A sample of these few rows would be all of them, and no pass over blocks were needed."""
        import sdulearn.blocks.problem

        sdulearn.blocks.problem.affordable_rows = lambda n_columns: 60

    def kill_one(pid, over):
        os.kill(pid, signal.SIGKILL)
        found.append(not over.is_set())

    def sum_and_kill(blocks, task, *arguments):
        passes.append(task)
        if len(passes) > 2:
            return plain_sum(blocks, task, *arguments)
        wait_for_both(doomed)
        doomed.run(draw_few)
        over = threading.Event()
        pid = next(iter(doomed.run(os.getpid).values()))
        timer = threading.Timer(0.15, kill_one, (pid, over))
        timer.start()
        try:
            return plain_sum(blocks, slowly(task), *arguments)
        finally:
            over.set()
            timer.join()

    monkeypatch.setattr(DaskBlocks, "sum", sum_and_kill)
    return found


def assert_same_line(model, local):
    ours, theirs = (np.append(one.coef_, one.intercept_) for one in (model, local))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 * np.abs(theirs).max())


def made_parts(sizes):
    def part_of(size):
        def part():
            yield np.full((size, 2), size), np.zeros(size, dtype=np.int64), None

        return part

    return [part_of(size) for size in sizes]


def made_task():
    def task(X, y, weight, factor):
        return Sums(total=X.sum(axis=0) * factor, rows=len(y))

    return task


def test_sums_and_progress(client):
    parts, seen = made_parts(range(1, 31)), []
    expected = LocalBlocks(parts).sum(made_task(), 2.0)
    blocks = DaskBlocks.from_parts(parts, watch=seen.append)
    assert blocks.client is client
    for one in (blocks, blocks.persist()):
        seen.clear()
        found = one.sum(made_task(), 2.0)
        np.testing.assert_array_equal(found["total"], expected["total"])
        assert found["rows"] == expected["rows"]
        assert seen[-1] is None
        assert sorted(seen[:-1]) == list(range(1, 31))


def test_no_count_is_waited_for_once_the_total_is_lost(client):
    """As when the scheduler goes away while a count is fetched: the count never comes."""
    seen, release = [], Event("release")
    total = client.submit(int, 5)
    counts = [client.submit(int, 3), client.submit(release.wait)]
    wait([total, counts[0]])
    timer = threading.Timer(1.0, total.cancel, kwargs={"force": True})
    timer.start()
    wait_for(client, total, counts, seen.append)
    assert seen == [3]
    assert total.status == "cancelled"
    timer.join()
    release.set()


def test_errors_of_a_task_come_through(client):
    def task(X, y, weight):
        raise ValueError("these rows are wrong")

    for watch in (None, print):
        with pytest.raises(ValueError, match="these rows are wrong"):
            DaskBlocks.from_parts(made_parts([3, 4]), watch=watch).sum(task)


@pytest.mark.parametrize("watch", [None, print])
def test_a_file_that_a_worker_cannot_find(client, watch):
    def part():
        with open("/nowhere/rows.parquet") as file:
            yield file.read()

    message = r"A worker of the cluster cannot find a file: .*/nowhere/rows\.parquet.*on a disk that all of them share"
    for blocks in (DaskBlocks.from_parts([part], watch=watch), DaskBlocks.from_parts([part], watch=watch).persist()):
        with pytest.raises(WorkerFileError, match=message) as caught:
            blocks.sum(made_task(), 2.0)
        assert isinstance(caught.value, FileError)
        assert isinstance(caught.value, FileNotFoundError)
        assert caught.value.__suppress_context__


@pytest.mark.parametrize("loss", ["squared", "double_hinge", "logistic"])
def test_fits_equal_the_local_ones(client, waveform, loss):
    rows, codes = waveform
    options = {"loss": loss, "tol": 1e-8 if loss == "squared" else 1e-11}
    table = pd.DataFrame(rows, columns=[f"x{k}" for k in range(21)]).assign(codes=codes)
    frame = dd.from_pandas(table, npartitions=6)
    X, y = frame[[f"x{k}" for k in range(21)]], frame["codes"]
    model = distributed.SDUClassifier(**options).fit(X, y)
    assert_same_line(model, sdulearn.SDUClassifier(**options).fit(rows, codes))
    np.testing.assert_allclose(model.decision_function(X).compute(), rows @ model.coef_[0] + model.intercept_[0])


PERSISTED = {
    "whole": lambda X, y: dask.persist(X, y),
    "columns": lambda X, y: (X.rechunk((50, 10)).persist(), y),
    "further": lambda X, y: (X.persist() * 2 / 2, y.persist() + 0),
    "gathered": lambda X, y: dask.persist(*gather_pairs(X, y)),
    "gathered from": lambda X, y: gather_pairs(*dask.persist(X, y)),
    "frame": lambda X, y: dask.persist(dd.from_dask_array(X), dd.from_dask_array(y)),
    "gathered frame": lambda X, y: dask.persist(*gather_pairs(dd.from_dask_array(X), dd.from_dask_array(y))),
}


@pytest.mark.parametrize("kind", PERSISTED)
def test_persisted_collections(client, waveform, kind):
    rows, codes = waveform
    X, y = PERSISTED[kind](da.from_array(rows, chunks=(50, 21)), da.from_array(codes, chunks=50))
    model, local = distributed.SDUClassifier().fit(X, y), sdulearn.SDUClassifier().fit(rows, codes)
    assert_same_line(model, local)
    found = np.sort(np.asarray(model.decision_function(X).compute()))
    np.testing.assert_allclose(found, np.sort(local.decision_function(rows)), rtol=1e-6)
    assert model.score(X, y) == pytest.approx(local.score(rows, codes), rel=1e-9)


def test_nothing_is_left_on_the_workers(client, waveform):
    rows, codes = waveform
    distributed.SDUClassifier(loss="logistic").fit(da.from_array(rows, chunks=(20, 21)), codes)
    # What earlier tests raised may hold their futures, through tracebacks, until the collector comes by.
    gc.collect()
    until = time.monotonic() + SECONDS
    while client.cluster.scheduler.tasks and time.monotonic() < until:
        time.sleep(0.05)
    assert not client.cluster.scheduler.tasks


@pytest.mark.parametrize(("loss", "kills"), [("squared", 1), ("logistic", 2), ("double_hinge", 2)])
def test_killed_workers_change_nothing(waveform, killed, loss, kills):
    rows, codes = waveform
    options = {"loss": loss, "tol": 1e-8 if loss == "squared" else 1e-11}
    X, y = da.from_array(rows, chunks=(50, 21)), da.from_array(codes, chunks=20)
    model = distributed.SDUClassifier(**options).fit(X, y)
    assert killed == [True] * kills
    assert_same_line(model, sdulearn.SDUClassifier(**options).fit(rows, codes))


def test_killed_workers_change_nothing_for_pairs(waveform, killed):
    rows, codes = waveform
    gathered = gather_pairs(da.from_array(rows, chunks=(50, 21)), np.random.default_rng(0).permutation(codes))
    model = distributed.PairLogisticRegression(tol=1e-10).fit(*gathered)
    assert killed == [True, True]
    shuffled = np.random.default_rng(0).permutation(codes)
    assert_same_line(model, sdulearn.PairLogisticRegression(tol=1e-10).fit(rows, shuffled))


@pytest.mark.parametrize("watch", [None, print])
def test_a_task_that_kills_its_workers_is_given_up(doomed, monkeypatch, watch):
    def task(X, y, weight):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(doomed.cluster.scheduler, "allowed_failures", 0)
    message = r"given up after 1 workers died.*tcp://127.0.0.1.*Use smaller chunks"
    with pytest.raises(WorkersLostError, match=message) as caught:
        DaskBlocks.from_parts(made_parts([3]), watch=watch).sum(task)
    assert isinstance(caught.value, SdulearnError)
    assert isinstance(caught.value, RuntimeError)


def set_blas_threads(count):
    """From a thread that ends, so that it does not stay in control of the limit."""
    thread = threading.Thread(target=threadpool_limits, args=(count,), kwargs={"user_api": "blas"})
    thread.start()
    thread.join()


@pytest.mark.parametrize(("threads", "limit"), [(1, 2), (2, 1)])
def test_one_blas_thread_on_a_worker_with_several(threads, limit):
    def blas_threads(*block):
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    before = blas_threads()
    options = {"processes": False, "n_workers": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(threads_per_worker=threads, **options) as cluster, Client(cluster) as client:
        set_blas_threads(2)
        blocks = DaskBlocks.from_parts(made_parts([5]))
        assert blocks.client is client
        assert max(blocks.sum(blas_threads)) == limit
        assert max(blas_threads()) == 2  # not all: some library may know no threads
    set_blas_threads(max(before))
