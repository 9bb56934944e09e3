"""Worker processes, TCP, workers that are killed in the middle of a fit, and a scheduler that is."""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client, Event, wait
from distributed.core import Status

import sdulearn
from sdulearn import distributed
from sdulearn.blocks import LocalBlocks, Sums
from sdulearn.distributed import (
    DaskBlocks,
    SchedulerLostError,
    SDUClassifier,
    gather_pairs,
)
from sdulearn.distributed.cluster import wait_for
from sdulearn.errors import SdulearnError
from tests.reference import assert_same_coefficients

SECONDS = 1800  # as good as for ever: how long a busy machine takes is not what is tested


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
    parts, seen = made_parts(range(1, 13)), []
    expected = LocalBlocks(parts).sum(made_task(), 2.0)
    blocks = DaskBlocks.from_parts(parts, watch=seen.append)
    assert blocks.client is client
    for one in (blocks, blocks.persist()):
        seen.clear()
        found = one.sum(made_task(), 2.0)
        np.testing.assert_array_equal(found["total"], expected["total"])
        assert found["rows"] == expected["rows"]
        assert seen[-1] is None
        assert sorted(seen[:-1]) == list(range(1, 13))


def test_no_count_is_waited_for_once_the_total_is_lost(client):
    """As when the scheduler goes away while a count is fetched: the count never comes."""
    seen, release = [], Event("release")
    total = client.submit(int, 5)
    counts = [client.submit(int, 3), client.submit(release.wait)]
    wait([total, counts[0]])
    timer = threading.Timer(0.3, total.cancel, kwargs={"force": True})
    timer.start()
    wait_for(client, total, counts, seen.append)
    assert seen == [3]
    assert total.status == "cancelled"
    timer.join()
    release.set()


PERSISTED = {
    "further": lambda X, y: (X.rechunk((50, 10)).persist() * 2 / 2, y.persist() + 0),
    "gathered frame": lambda X, y: dask.persist(*gather_pairs(dd.from_dask_array(X), dd.from_dask_array(y))),
}


@pytest.mark.parametrize("kind", PERSISTED)
def test_persisted_collections(client, waveform, kind):
    rows, codes = waveform
    X, y = PERSISTED[kind](da.from_array(rows, chunks=(50, 21)), da.from_array(codes, chunks=50))
    model, local = distributed.SDUClassifier().fit(X, y), sdulearn.SDUClassifier().fit(rows, codes)
    assert_same_coefficients(model, local)
    found = np.sort(np.asarray(model.decision_function(X).compute()))
    np.testing.assert_allclose(found, np.sort(local.decision_function(rows)), rtol=1e-6)
    assert model.score(X, y) == pytest.approx(local.score(rows, codes), rel=1e-9)


def test_nothing_is_left_on_the_workers(client, waveform):
    rows, codes = waveform
    distributed.SDUClassifier(loss="double_hinge").fit(da.from_array(rows, chunks=(50, 21)), codes)
    # What earlier tests raised may hold their futures, through tracebacks, until the collector comes by.
    gc.collect()
    until = time.monotonic() + SECONDS
    while client.cluster.scheduler.tasks and time.monotonic() < until:
        time.sleep(0.05)
    assert not client.cluster.scheduler.tasks


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


def draw_few():
    """A sample of these few rows would be all of them, and no pass over blocks were needed."""
    import sdulearn.blocks.problem

    sdulearn.blocks.problem.affordable_rows = lambda n_columns: 60


def test_killed_workers_change_nothing(client, waveform, monkeypatch):
    """A worker is killed in the middle of the second pass: its rows, which were kept, are read again."""
    passes, still_running, plain_sum = [], [], DaskBlocks.sum

    def slowly(task):
        def run(*arguments):
            time.sleep(0.2)
            return task(*arguments)

        return run

    def kill_one(pid, over):
        os.kill(pid, signal.SIGKILL)
        still_running.append(not over.is_set())

    def sum_and_kill(blocks, task, *arguments):
        passes.append(task)
        if len(passes) == 1:
            client.run(draw_few)
        if len(passes) != 2:
            return plain_sum(blocks, task, *arguments)
        wait_for_both(client)
        over = threading.Event()
        timer = threading.Timer(0.15, kill_one, (next(iter(client.run(os.getpid).values())), over))
        timer.start()
        try:
            return plain_sum(blocks, slowly(task), *arguments)
        finally:
            over.set()
            timer.join()

    monkeypatch.setattr(DaskBlocks, "sum", sum_and_kill)
    rows, codes = waveform
    options = {"loss": "logistic", "tol": 1e-11}
    X, y = da.from_array(rows, chunks=(50, 21)), da.from_array(codes, chunks=20)
    model = distributed.SDUClassifier(**options).fit(X, y)
    assert still_running == [True]
    assert_same_coefficients(model, sdulearn.SDUClassifier(**options).fit(rows, codes))
    wait_for_both(client)


def address_in(path):
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if path.exists() and path.read_text():
            return json.loads(path.read_text())["address"]
        time.sleep(0.05)
    raise AssertionError("the scheduler did not start")


def rows_of(X, y, weight):
    return len(y)


def test_a_lost_scheduler_is_named_and_soon(tmp_path):
    written = tmp_path / "scheduler.json"
    here = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *here, "--scheduler-file", str(written)]
    with ExitStack() as stack, dask.config.set(scheduler=None):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        scheduler = stack.enter_context(subprocess.Popen(command, **quiet))
        stack.callback(scheduler.kill)
        address = address_in(written)
        client = stack.enter_context(Client(address, timeout=SECONDS, set_as_default=False))
        stack.enter_context(client.as_current())
        blocks = DaskBlocks.from_parts(made_parts(range(1, 9)), watch=print)
        X = da.zeros((20, 2), chunks=(10, 2))
        message = (
            rf"Lost the connection to the Dask scheduler at {re.escape(address)}.*connect a new distributed.Client"
        )
        # The pass waits for a worker, and there is none.
        threading.Timer(0.5, scheduler.kill).start()
        with pytest.raises(SchedulerLostError, match=message) as caught:
            blocks.sum(rows_of)
        assert isinstance(caught.value, SdulearnError)
        # Afterwards too: Dask itself would wait, and then compute here.
        for again in (lambda: blocks.sum(rows_of), lambda: SDUClassifier().fit(X, np.zeros(20, int))):
            with pytest.raises(SchedulerLostError, match=message):
                again()
