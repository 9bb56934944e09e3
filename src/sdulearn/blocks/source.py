"""Rows that come in blocks, and the one thing that is ever asked of them: a sum over blocks.

A block is ``(X, y, weight)``: some rows (dense or CSR), their pair codes, and their weights or
None. A *part* is a function without arguments that reads some blocks: a row group of a file, or
arrays that are there already. Whoever holds parts can be asked for sums: :class:`LocalBlocks` in
this process, ``sdulearn.distributed`` on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from sdulearn.types import Array, Codes, Rows

Block = tuple[Rows, Codes, Array | None]
Part = Callable[[], Iterable[Block]]
Watch = Callable[[int | None], object]
T = TypeVar("T")


class Blocks(Protocol):
    """What the algorithms of this room need."""

    @property
    def n_blocks(self) -> int:
        """About so many blocks."""
        ...

    def sum(self, task: Callable[..., T | None], *arguments: object) -> T:
        """``task(X, y, weight, *arguments)`` of every block, added up with ``+``.

        A task is a function of a module, so that it can be sent; what it gives back is small, and
        None for a block without rows. The sum is None where no block has any.
        """
        ...


class Sums(dict[str, Any]):
    """Named sums; ``+`` adds name by name: numbers and arrays add up, lists are joined."""

    def __add__(self, other: Sums) -> Sums:
        return Sums({name: value + other[name] for name, value in self.items()})


def add_all(results: Iterable[Any]) -> Any:
    """The sum of all that is not None; None where nothing is."""
    total = None
    for one in results:
        if one is not None:
            total = one if total is None else total + one
    return total


def sum_of_part(part: Part, task: Callable[..., T | None], arguments: Sequence[object]) -> T | None:
    """The task's results on the blocks of one part, added up; None where it has no blocks."""
    return add_all(task(*block, *arguments) for block in part())


def count_blocks(parts: Iterable[Part]) -> int:
    """How many blocks the parts hold; one each where they do not say."""
    return sum(getattr(part, "n_blocks", 1) for part in parts)


class LocalBlocks:
    """Blocks read in this process, part by part, over and over; nothing is kept between two sums."""

    # Names of the columns, where they have any.
    feature_names: list[str] | None = None

    def __init__(self, parts: Sequence[Part], n_jobs: int = 1, watch: Watch | None = None) -> None:
        self.parts = parts
        self.n_jobs = n_jobs
        self.watch = watch

    @property
    def n_blocks(self) -> int:
        """About so many blocks: a part that knows its number says so."""
        return count_blocks(self.parts)

    def sum(self, task: Callable[..., T | None], *arguments: object) -> T:
        """See :class:`Blocks`."""
        parts = [self._watched(part) for part in self.parts]
        if self.n_jobs == 1:
            total = add_all(sum_of_part(part, task, arguments) for part in parts)
        else:
            with threadpool_limits(1, user_api="blas"):
                jobs = (delayed(sum_of_part)(part, task, arguments) for part in parts)
                threads = Parallel(self.n_jobs, require="sharedmem", return_as="generator")
                total = add_all(threads(jobs))
        if self.watch is not None:
            self.watch(None)
        return total

    def __iter__(self) -> Iterator[Block]:
        for part in self.parts:
            yield from part()

    def _watched(self, part: Part) -> Part:
        watch = self.watch
        if watch is None:
            return part

        def blocks() -> Iterator[Block]:
            for block in part():
                yield block
                watch(len(block[1]))

        return blocks
