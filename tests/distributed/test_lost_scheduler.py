"""A scheduler that is killed while it works gives a clear error, and soon."""

import json
import re
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from sdulearn.distributed import DaskBlocks, SchedulerLostError, SDUClassifier
from sdulearn.errors import SdulearnError

# Generous, for a busy machine: without the check, Dask would wait for minutes.
SECONDS = 1800  # as good as for ever: how long a busy machine takes is not what is tested


def start(stack, module, *options):
    """A process of its own, gone when the test is."""
    command = [sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", *options]
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    stack.callback(process.kill)
    return process


def address_in(path):
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if path.exists() and path.read_text():
            return json.loads(path.read_text())["address"]
        time.sleep(0.05)
    raise AssertionError("the scheduler did not start")


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and one worker, on loopback; and a client of them."""
    with ExitStack() as stack:
        written = tmp_path / "scheduler.json"
        web = ["--dashboard-address", "127.0.0.1:0"]
        scheduler = start(
            stack, "dask_scheduler", *web, "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(written)
        )
        address = address_in(written)
        options = ["--host", "127.0.0.1", "--no-nanny", "--nthreads", "1", "--local-directory", str(tmp_path)]
        start(stack, "dask_worker", address, *options)
        client = stack.enter_context(Client(address, timeout=SECONDS, set_as_default=False))
        client.wait_for_workers(1, timeout=SECONDS)
        yield scheduler, client, address


@pytest.fixture
def synchronous():
    """Each test says which client computes."""


@pytest.mark.parametrize("watch", [None, print])
def test_a_lost_scheduler_is_named(cluster, watch):
    scheduler, client, address = cluster
    message = rf"Lost the connection to the Dask scheduler at {re.escape(address)}.*connect a new distributed.Client"

    def slow_part():
        time.sleep(0.2)
        yield np.zeros((3, 2)), np.zeros(3, dtype=np.int64), None

    def rows(X, y, weight):
        return len(y)

    with client.as_current():
        blocks = DaskBlocks.from_parts([slow_part] * 100, watch=watch)
        kept = DaskBlocks.from_parts([slow_part]).persist()
        assert kept.sum(rows) == 3
        threading.Timer(0.5, scheduler.kill).start()
        with pytest.raises(SchedulerLostError, match=message) as caught:
            blocks.sum(rows)
        assert isinstance(caught.value, SdulearnError)
        assert isinstance(caught.value, ConnectionError)
        assert caught.value.__suppress_context__
        # Afterwards too: Dask itself would wait, and then compute here.
        for again in (blocks.sum, kept.sum):
            with pytest.raises(SchedulerLostError, match=message):
                again(rows)


def test_fit_names_it(cluster):
    scheduler, client, address = cluster

    def slow_chunk(block):
        time.sleep(0.2)
        return block

    X = da.random.default_rng(0).normal(size=(200, 2), chunks=(2, 2)).map_blocks(slow_chunk, meta=np.empty((0, 0)))
    with client.as_current():
        threading.Timer(0.5, scheduler.kill).start()
        with pytest.raises(SchedulerLostError, match=re.escape(address)):
            SDUClassifier(loss="logistic", prior=0.7).fit(X, np.zeros(200, dtype=int))
