"""Blocks on a Dask cluster: a sum is one task per part and a tree of additions.

Task graphs have one layer: with thousands of blocks, one ``delayed`` call per task costs more than
the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from functools import partial
from operator import getitem
from typing import Any, TypeAlias
from uuid import uuid4

import dask
from dask.base import get_scheduler
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.typing import Key
from distributed import Client, Future, KilledWorker, as_completed, get_worker
from distributed.comm import CommClosedError
from threadpoolctl import threadpool_limits

from sdulearn.blocks import Block, Blocks, Part, Watch, add_all, count_blocks, sum_of_part
from sdulearn.errors import ClusterWarning, FileError, SdulearnError, warn

Result: TypeAlias = Any  # what a task gives back; results are added up with ``+``
Counted: TypeAlias = tuple[int, Result]  # a number of rows and the result on them
# A dask array, DataFrame or Series; dask.dataframe is imported only where there is one.
DaskCollection: TypeAlias = Any

# Results that one task adds up: few enough for the memory of a worker, many enough for a flat tree.
SPLIT_EVERY = 8
# How often the scheduler is asked for its workers, and after how long without one there is a
# warning, or an error.
ASK_SECONDS = 2.0
WARN_SECONDS = 10.0
PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.01


class SchedulerLostError(SdulearnError, ConnectionError):
    """The connection to the scheduler is gone."""


class WorkersLostError(SdulearnError, RuntimeError):
    """Workers died, and their work could not be done again."""


class WorkerFileError(FileError, FileNotFoundError):
    """A worker cannot find a file that this process can name."""


class Layer:
    """Tasks ``(function, *arguments)`` by key; a key among the arguments stands for its result."""

    def __init__(self, name: str) -> None:
        self.name = f"{name}-{uuid4().hex}"
        self.tasks: dict[Key, object] = {}

    def add(self, place: Key, *task: object) -> Key:
        """Add a task and return its key."""
        key = (self.name, *place) if isinstance(place, tuple) else (self.name, place)
        self.tasks[key] = task
        return key

    def add_value(self, place: Key, value: object) -> Key:
        """Add a value as it is; one that many tasks share is sent once."""
        self.tasks[self.name, place] = value
        return self.name, place

    def graph(self, needs: Sequence[DaskCollection]) -> HighLevelGraph:
        """Return the tasks together with those of the collections that they need."""
        return HighLevelGraph.from_collections(self.name, self.tasks, dependencies=list(needs))

    def delayed(self, keys: Sequence[Key], needs: Sequence[DaskCollection]) -> list[Delayed]:
        """Return delayed objects for some of the tasks."""
        graph = self.graph(needs)
        return [Delayed(key, graph, layer=self.name) for key in keys]


class DaskBlocks(Blocks):
    """Blocks behind dask ``Delayed`` objects, summed by the current scheduler."""

    def __init__(self, parts: Sequence[Delayed], n_blocks: int | None = None, watch: Watch | None = None) -> None:
        self.parts = list(parts)
        self.watch = watch
        self._n_blocks = len(self.parts) if n_blocks is None else n_blocks
        # The client that Dask would compute with; None if it would compute in this process.
        owner = getattr(get_scheduler(), "__self__", None)
        self.client = owner if isinstance(owner, Client) else None

    @classmethod
    def from_parts(cls, parts: Sequence[Part], watch: Watch | None = None) -> DaskBlocks:
        """Return blocks that the workers read themselves."""
        layer = Layer("part")
        keys = [layer.add_value(i, part) for i, part in enumerate(parts)]
        return cls(layer.delayed(keys, []), count_blocks(parts), watch)

    @property
    def n_blocks(self) -> int:
        """Number of parts, or of the blocks that their readers announce."""
        return self._n_blocks

    def sum(self, task: Callable[..., Result], *arguments: object) -> Result:
        """Add up the results of a task on all blocks."""
        if not self.parts:
            return None
        rows, total = self._compute(partial(sum_of_part, task=task, arguments=arguments))
        if self.watch is not None:
            if self.client is None:
                self.watch(rows)
            self.watch(None)
        return total

    def persist(self) -> DaskBlocks:
        """Read the blocks once; keep them in the workers' memory as long as the result lives."""
        layer = Layer("block")
        keys = [layer.add(i, read, part.key) for i, part in enumerate(self.parts)]
        parts = layer.delayed(keys, self.parts)
        if self.client is None:
            return DaskBlocks(dask.persist(*parts), self.n_blocks, self.watch)
        with clear_errors(self.client):
            return DaskBlocks(self.client.persist(parts), self.n_blocks, self.watch)

    def _compute(self, call: Callable[..., Result]) -> Counted:
        """Run one pass; the call is sent once and shared by all tasks."""
        layer = Layer("sum")
        shared = layer.add_value("call", call)
        leaves = [layer.add(i, sum_of_blocks, part.key, shared) for i, part in enumerate(self.parts)]
        root = add_tree(layer, leaves)
        if self.client is None:
            # Dask runs parts in parallel.
            with threadpool_limits(1, user_api="blas"):
                return layer.delayed([root], self.parts)[0].compute()
        counts = []
        if self.watch is not None:
            counts = [layer.add(("rows", i), getitem, leaf, 0) for i, leaf in enumerate(leaves)]
        with clear_errors(self.client):
            futures = self.client.compute(layer.delayed([root, *counts], self.parts))
            try:
                wait_for(self.client, futures[0], futures[1:], self.watch)
                return futures[0].result()
            finally:
                # A pass that failed must not go on.
                for future in futures:
                    future.release()


def wait_for(client: Client, total: Future, counts: Sequence[Future], watch: Watch | None) -> None:
    """Wait while a total can be expected; call ``watch`` with numbers of rows."""
    done = as_completed(counts, loop=client.loop, with_results=True)
    patience = Patience(client)
    # Not its iterator, which waits for ever if the scheduler is lost while a number is fetched.
    while client.status == "running" and total.status in ("pending", "finished"):
        for _, rows in done.next_batch(block=False):
            # An error comes with the total, too.
            if watch is not None and isinstance(rows, int):
                watch(rows)
        if done.is_empty() and total.status == "finished":
            break
        patience.check()
        time.sleep(_POLL_SECONDS)


class Patience:
    """Warns that a cluster has no running worker, and gives up after a while."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.checked = time.monotonic()
        self.without = 0.0
        self.warned = False

    def check(self) -> None:
        """Ask the scheduler for its workers, every two seconds."""
        now = time.monotonic()
        if now - self.checked < ASK_SECONDS:
            return
        states = worker_states(self.client)
        # Time in which this process was stopped does not count.
        self.without = 0.0 if "running" in states else self.without + min(now - self.checked, 2 * ASK_SECONDS)
        self.checked = now
        if self.without >= PATIENCE_SECONDS:
            raise WorkersLostError(
                f"Gave up: {self._state(states)} Add workers, or give them more memory, and fit again."
            )
        if self.without >= WARN_SECONDS and not self.warned:
            self.warned = True
            warn(f"{self._state(states)} Waiting for one, for {PATIENCE_SECONDS:g} s at most.", ClusterWarning)

    def _state(self, states: Sequence[str]) -> str:
        paused = f", and {len(states)} that are {states[0]} (most often over their memory limit)" if states else ""
        return f"The cluster at {_address(self.client)} has had no running worker{paused} for {self.without:.0f} s."


def worker_states(client: Client) -> list[str]:
    """Return the status of each worker: running, paused, ..."""
    try:
        info = client.scheduler_info(n_workers=-1)
    except TypeError:
        # Before Dask 2025 all workers were listed without an argument.
        info = client.scheduler_info()
    return [worker.get("status", "running") for worker in info["workers"].values()]


def read(part: Part | list[Block]) -> list[Block]:
    """Return the blocks of a part."""
    return list(part()) if callable(part) else part


def sum_of_blocks(part: Part | list[Block], call: Callable[..., Result]) -> Counted:
    """Return the number of rows of a part, and the sum over its blocks."""
    try:
        n_threads = get_worker().state.nthreads
    except ValueError:
        # Not a worker of a cluster.
        n_threads = 1
    rows: list[int] = []
    # BLAS threads within the threads of a worker are slow.
    with threadpool_limits(1, user_api="blas") if n_threads > 1 else nullcontext():
        total = call(part if callable(part) else lambda: part, watch=rows.append)
    return sum(rows), total


def add_counted(results: Sequence[Counted]) -> Counted:
    """Add up numbers of rows and results, in their order."""
    return sum(rows for rows, _ in results), add_all(total for _, total in results)


def add_tree(layer: Layer, keys: list[Key], width: int = SPLIT_EVERY) -> Key:
    """Add up many results, ``width`` at a time in a fixed order; return the key of the sum."""
    level = 0
    while len(keys) > 1:
        level += 1
        groups = [keys[i : i + width] for i in range(0, len(keys), width)]
        keys = [layer.add(("add", level, i), add_counted, group) for i, group in enumerate(groups)]
    return keys[0]


@contextmanager
def clear_errors(client: Client) -> Iterator[None]:
    """Raise failures of the cluster as errors of ours, instead of Dask's internals."""
    if client.status != "running":
        raise _scheduler_lost(client)
    try:
        yield
    except KilledWorker as error:
        raise WorkersLostError(
            f"A task was given up after {error.allowed_failures + 1} workers died under it (last on "
            f"{error.last_worker.address}); most often they ran out of memory. Use smaller chunks or row "
            "groups, give the workers more memory, or read their logs. The Dask setting "
            "distributed.scheduler.allowed-failures sets the number of attempts."
        ) from None
    except FileNotFoundError as error:
        raise WorkerFileError(
            f"A worker of the cluster cannot find a file: {error}. The workers must reach the rows under "
            "the same path as this process. Put the files on a disk that all of them share, and give "
            "the full path."
        ) from None
    except (CancelledError, CommClosedError, OSError) as error:
        if client.status != "running" or isinstance(error, CommClosedError):
            raise _scheduler_lost(client) from None
        if not isinstance(error, CancelledError):
            raise
        reason = getattr(error, "reason", None) or "no reason given"
        raise WorkersLostError(
            f"Dask cancelled the computation ({reason}): it was cancelled elsewhere, or data went down "
            "with a worker and cannot be computed again, as with Client.scatter. Fit again, from data that "
            "Dask can read anew."
        ) from None


def _address(client: Client) -> str:
    return str(client.scheduler.address) if client.scheduler is not None else "its address"


def _scheduler_lost(client: Client) -> SchedulerLostError:
    return SchedulerLostError(
        f"Lost the connection to the Dask scheduler at {_address(client)} (the client is {client.status}). "
        "Nothing was fitted. Check that the scheduler runs and can be reached, connect a new "
        "distributed.Client, and fit again."
    )
