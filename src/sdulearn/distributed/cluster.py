"""Blocks that live on a Dask cluster: a sum is one task per part and a tree of additions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import dask
from dask.base import get_scheduler
from dask.typing import Key
from distributed import Client, KilledWorker, as_completed, get_worker
from distributed.comm import CommClosedError
from threadpoolctl import threadpool_limits

from sdulearn.blocks import Block, Part
from sdulearn.blocks.source import add_all, count_blocks
from sdulearn.distributed.graph import Layer

Counted = tuple[int, Any]
Watch = Callable[[int | None], Any]

# Results that one task adds up: few enough for the memory of a worker, many enough for a flat tree.
SPLIT_EVERY = 8


class SchedulerLostError(ConnectionError):
    """The connection to the scheduler is gone."""


class WorkersLostError(RuntimeError):
    """Workers died, and their work could not be done again."""


@dataclass(frozen=True)
class Call:
    """What one pass asks of every block: sent once, shared by all tasks of the pass."""

    task: Callable[..., Any]
    arguments: tuple[Any, ...]


class DaskBlocks:
    """Blocks behind dask ``Delayed`` objects, summed by the scheduler that is current when the object is made.

    That is the active ``distributed.Client``, or Dask's local scheduler where there is none. A sum
    sends its arguments out once and brings one result back. The order of additions is fixed, so
    neither the number of workers nor a worker that died in between changes a digit. A cluster that
    has no workers (yet) is waited for.

    Parameters
    ----------
    parts : sequence of Delayed
        Each gives a list of blocks, or a function that reads them.
    n_blocks : int, optional
        About how many blocks the parts hold; one each by default.
    watch : function, optional
        Called with the number of rows after each part, and with None when a pass is over; with
        Dask's local scheduler once for all parts.

    Raises
    ------
    SchedulerLostError
        From ``sum``, a ConnectionError: the scheduler went away.
    WorkersLostError
        From ``sum``, a RuntimeError: workers died on the same task again and again, or took data
        with them.
    """

    def __init__(self, parts: Sequence[Any], n_blocks: int | None = None, watch: Watch | None = None) -> None:
        self.parts, self.watch = list(parts), watch
        self.n_blocks = len(self.parts) if n_blocks is None else n_blocks
        self.client = current_client()

    @classmethod
    def from_parts(cls, parts: Sequence[Part], watch: Watch | None = None) -> DaskBlocks:
        """Blocks that the workers read themselves, such as row groups of files that all of them can see."""
        layer = Layer("part")
        keys = [layer.add_value(i, part) for i, part in enumerate(parts)]
        return cls(layer.delayed(keys, []), count_blocks(parts), watch)

    def sum(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """See :class:`sdulearn.blocks.Blocks`."""
        if not self.parts:
            return None
        rows, total = self._compute(Call(task, arguments))
        if self.watch is not None:
            if self.client is None:
                self.watch(rows)
            self.watch(None)
        return total

    def persist(self) -> DaskBlocks:
        """The same blocks, read once and kept in the memory of the workers until ``release``."""
        layer = Layer("block")
        parts = layer.delayed([layer.add(i, read, part.key) for i, part in enumerate(self.parts)], self.parts)
        if self.client is None:
            return DaskBlocks(dask.persist(*parts), self.n_blocks, self.watch)
        with clear_errors(self.client):
            return DaskBlocks(self.client.persist(parts), self.n_blocks, self.watch)

    def release(self) -> None:
        """Let the blocks go; no sum is possible afterwards."""
        self.parts = []

    def _compute(self, call: Call) -> Counted:
        layer = Layer("sum")
        shared = layer.add_value("call", call)
        leaves = [layer.add(i, sum_of_blocks, part.key, shared) for i, part in enumerate(self.parts)]
        root = add_tree(layer, leaves)
        if self.client is None:
            with threadpool_limits(1, user_api="blas"):  # Dask runs parts side by side
                return layer.delayed([root], self.parts)[0].compute()
        counts = [layer.add(("rows", i), rows_of, leaf) for i, leaf in enumerate(leaves)] if self.watch else []
        with clear_errors(self.client):
            futures = self.client.compute(layer.delayed([root, *counts], self.parts))
            try:
                return self._watched(*futures)
            finally:  # a pass that failed must not go on working
                for future in futures:
                    future.release()

    def _watched(self, total: Any, *counted: Any) -> Counted:
        if self.watch is not None:
            for _, rows in as_completed(counted, with_results=True):
                if isinstance(rows, int):  # else an error, which the total has too
                    self.watch(rows)
        return total.result()


def current_client() -> Client | None:
    """The client that Dask would compute with now; None where it would compute in this process."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if isinstance(owner, Client) else None


def read(part: Any) -> list[Block]:
    """The blocks of a part."""
    return list(part()) if callable(part) else part


def sum_of_blocks(part: Any, call: Call) -> Counted:
    """Rows of a part, and the call's results on its blocks, added up block by block as they are read."""
    rows, total = 0, None
    with blas_limit():
        for block in part() if callable(part) else part:
            rows += len(block[1])
            total = add_all((total, call.task(*block, *call.arguments)))
    return rows, total


def blas_limit() -> AbstractContextManager[Any]:
    """One BLAS thread a task on a worker with several threads: threads within threads ruin it."""
    try:
        several = get_worker().state.nthreads > 1
    except ValueError:  # no worker of a cluster
        several = False
    return threadpool_limits(1, user_api="blas") if several else nullcontext()


def rows_of(counted: Counted) -> int:
    """The number of rows alone: small enough to watch every part."""
    return counted[0]


def add_counted(results: Sequence[Counted]) -> Counted:
    """Rows and results, added up in their order."""
    return sum(rows for rows, _ in results), add_all(total for _, total in results)


def add_tree(layer: Layer, keys: list[Key], width: int = SPLIT_EVERY) -> Key:
    """The key of the sum of many, ``width`` at a time."""
    level = 0
    while len(keys) > 1:
        level += 1
        groups = [keys[i : i + width] for i in range(0, len(keys), width)]
        keys = [layer.add(("add", level, i), add_counted, group) for i, group in enumerate(groups)]
    return keys[0]


@contextmanager
def clear_errors(client: Client) -> Iterator[None]:
    """A lost scheduler or lost workers by name, instead of Dask's internals."""
    if client.status != "running":
        raise _scheduler_lost(client)
    try:
        yield
    except KilledWorker as error:
        raise WorkersLostError(
            f"A task was given up after {error.allowed_failures + 1} workers died under it (last on "
            f"{error.last_worker.address}); most often they ran out of memory. Use smaller chunks or row groups, give "
            "the workers more memory, or read their logs. The Dask setting distributed.scheduler.allowed-failures "
            "sets the number of attempts."
        ) from None
    except (CancelledError, CommClosedError, OSError) as error:
        if client.status != "running" or isinstance(error, CommClosedError):
            raise _scheduler_lost(client) from None
        if isinstance(error, CancelledError):
            raise _cancelled(error) from None
        raise


def _scheduler_lost(client: Client) -> SchedulerLostError:
    address = client.scheduler.address if client.scheduler is not None else "its address"
    return SchedulerLostError(
        f"Lost the connection to the Dask scheduler at {address} (the client is {client.status}). Nothing was fitted. "
        "Check that the scheduler runs and can be reached, connect a new distributed.Client, and fit again."
    )


def _cancelled(error: CancelledError) -> WorkersLostError:
    reason = getattr(error, "reason", None) or "no reason given"
    return WorkersLostError(
        f"Dask cancelled the computation ({reason}): it was cancelled elsewhere, or data went down with a worker and "
        "cannot be computed again, as with Client.scatter. Fit again, from data that Dask can read anew."
    )
