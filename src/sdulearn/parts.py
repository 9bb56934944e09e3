"""Jobs on the parts of a table: threads on all cores, or tasks of Dask.

A job is a function without arguments, or a delayed object, which Dask's current scheduler computes: the workers of a
``distributed.Client`` if there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from sdulearn.errors import require

T = TypeVar("T")
Job: TypeAlias = Any
# Results that one task of a tree reduction adds up, and delayed objects that are computed at a time without a cluster.
_WIDTH = 8
_AT_ONCE = 32


class Sums(dict[str, Any]):
    """Named sums; ``+`` adds name by name: numbers and arrays are added, lists joined."""

    def __add__(self, other: Sums) -> Sums:
        return Sums({name: value + other[name] for name, value in self.items()})


def is_dask(value: object) -> bool:
    """Return whether Dask computes a value; Dask need not be installed."""
    return hasattr(value, "__dask_graph__")


def add_all(results: Iterable[Any]) -> Any:
    """Return the sum of all results that are not None, or None."""
    total = None
    for result in results:
        if result is not None:
            total = result if total is None else total + result
    return total


def sum_jobs(jobs: Sequence[Job]) -> Any:
    """Add up the results of all jobs, in their order; on Dask by a tree reduction."""
    if not any(map(is_dask, jobs)):
        return add_all(in_order(jobs))
    dask = require("dask", "dask")
    while len(jobs) > 1:
        jobs = [dask.delayed(add_all)(jobs[k : k + _WIDTH]) for k in range(0, len(jobs), _WIDTH)]
    return dask.compute(jobs[0])[0]


def in_order(jobs: Sequence[Job]) -> Iterator[Any]:
    """Yield the results in the order of the jobs, of which only a few run ahead of the reader."""
    if any(map(is_dask, jobs)):
        yield from _computed(jobs)
    elif len(jobs) == 1:
        yield jobs[0]()
    else:
        with threadpool_limits(1, user_api="blas"):
            yield from _in_threads(jobs, cpu_count())


def _in_threads(jobs: Sequence[Callable[[], T]], n_threads: int) -> Iterator[T]:
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _computed(jobs: Sequence[Job]) -> Iterator[Any]:
    try:
        client = require("distributed", "dask").get_client()
    except ValueError:
        for k in range(0, len(jobs), _AT_ONCE):
            yield from require("dask", "dask").compute(*jobs[k : k + _AT_ONCE])
        return
    # All at once, so that what they share is computed once. A future that is dropped frees its result.
    futures = deque(client.compute(list(jobs)))
    while futures:
        yield futures.popleft().result()
