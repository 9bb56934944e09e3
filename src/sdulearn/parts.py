"""Work on the batches of a table: in threads on all cores, or in tasks of Dask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from sdulearn.errors import require

T = TypeVar("T")
# Results that one task of a tree reduction adds up; without a cluster four times as many are computed at a time.
_WIDTH = 8


class Sums(dict[str, Any]):
    """Named sums; ``+`` adds name by name: numbers and arrays are added, lists joined."""

    def __add__(self, other: Sums) -> Sums:
        return Sums({name: value + other[name] for name, value in self.items()})


def add_all(results: Iterable[Any]) -> Any:
    """Return the sum of all results that are not None, or None."""
    total = None
    for result in results:
        if result is not None:
            total = result if total is None else total + result
    return total


def in_threads(jobs: Iterable[Callable[[], T]], n_threads: int | None = None) -> Iterator[T]:
    """Yield the results in the order of the jobs, which are made as needed: only a few run ahead of the reader."""
    # One core makes the jobs, that is, reads the table.
    n_threads = n_threads or max(cpu_count() - 1, 1)
    waiting: deque[Future[T]] = deque()
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def is_dask(value: object) -> bool:
    """Return whether Dask computes a value; Dask need not be installed."""
    return hasattr(value, "__dask_graph__")


def sum_delayed(jobs: Sequence[Any]) -> Any:
    """Add up the results of delayed objects in their order, by a tree reduction on Dask's current scheduler."""
    dask = require("dask", "dask")
    while len(jobs) > 1:
        jobs = [dask.delayed(add_all)(jobs[k : k + _WIDTH]) for k in range(0, len(jobs), _WIDTH)]
    return dask.compute(*jobs)[0] if jobs else None


def computed(jobs: Sequence[Any]) -> Iterator[Any]:
    """Yield the results of delayed objects in their order."""
    try:
        client = require("distributed", "dask").get_client()
    except ValueError:
        for k in range(0, len(jobs), 4 * _WIDTH):
            yield from require("dask", "dask").compute(*jobs[k : k + 4 * _WIDTH])
        return
    # All at once, so that what they share is computed once. A future that is dropped frees its result.
    futures = deque(client.compute(list(jobs)))
    while futures:
        yield futures.popleft().result()
