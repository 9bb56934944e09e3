"""Rows that come in blocks, the one thing that is ever asked of them, a sum over blocks, and their folds.

A block is ``(X, y, weight)``: some rows (dense or CSR), their pair codes, and their weights or
None. A *part* is a function without arguments that reads some blocks: a row group of a file, or
arrays that are there already. Whoever holds parts can be asked for sums: :class:`LocalBlocks` in
this process, ``sdulearn.distributed`` on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from sdulearn.answers.graph import AnswerGraph
from sdulearn.model_selection import NO_FOLD, PairFolds, fold_units
from sdulearn.pairs import Pairs, read_pairs, scramble
from sdulearn.solvers.linalg import row_pieces
from sdulearn.types import Array, Codes, Indices, MatrixLike, Rows

Block = tuple[Rows, Codes, Array | None]
Part = Callable[[], Iterable[Block]]
Watch = Callable[[int | None], object]
T = TypeVar("T")


class Blocks(Protocol):
    """What the algorithms of this room need."""

    @property
    def n_blocks(self) -> int:
        """About so many blocks."""

    def sum(self, task: Callable[..., T | None], *arguments: object) -> T:
        """``task(X, y, weight, *arguments)`` of every block, added up with ``+``.

        A task is a function of a module, so that it can be sent; what it gives back is small, and
        None for a block without rows. The sum is None where no block has any.
        """


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


def sum_of_part(
    part: Part, task: Callable[..., T | None], arguments: Sequence[object], watch: Watch | None = None
) -> T | None:
    """The task's results on the blocks of one part, added up as they are read; None where it has no blocks."""
    total = None
    for block in part():
        total = add_all((total, task(*block, *arguments)))
        if watch is not None:
            watch(len(block[1]))
    return total


def count_blocks(parts: Iterable[Part]) -> int:
    """How many blocks the parts hold; one each where they do not say."""
    return sum(getattr(part, "n_blocks", 1) for part in parts)


class LocalBlocks:
    """Blocks read in this process, part by part, over and over; nothing is kept between two sums."""

    def __init__(
        self, parts: Sequence[Part], n_jobs: int = 1, watch: Watch | None = None, names: Sequence[str] | None = None
    ) -> None:
        self.parts = parts
        self.n_jobs = n_jobs
        self.watch = watch
        # Names of the columns, where they have any.
        self.feature_names = names
        self.n_blocks = count_blocks(parts)

    def sum(self, task: Callable[..., T | None], *arguments: object) -> T:
        """See :class:`Blocks`."""
        if self.n_jobs == 1:
            total = add_all(sum_of_part(part, task, arguments, self.watch) for part in self.parts)
        else:
            with threadpool_limits(1, user_api="blas"):
                jobs = (delayed(sum_of_part)(part, task, arguments, self.watch) for part in self.parts)
                threads = Parallel(self.n_jobs, require="sharedmem", return_as="generator")
                total = add_all(threads(jobs))
        if self.watch is not None:
            self.watch(None)
        return total

    def __iter__(self) -> Iterator[Block]:
        for part in self.parts:
            yield from part()


class HashedPairKFold(PairFolds):
    """K folds by hash: the same whatever the order of the rows and the blocks they come in.

    Both ends of a pair share its code and so their fold; equal unlabeled rows share theirs. Fold
    sizes are equal only on average, which is no matter with thousands of pairs. ``cv=5`` means this
    one where rows come in blocks; give it to the in-memory estimator for the same folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.blocks import HashedPairKFold
    >>> y = np.array([1, 1, 2, 2, -3, -3, -4, -4, 0, 0])
    >>> for train, test in HashedPairKFold(2).split(np.arange(10.0)[:, None], y):
    ...     print(y[test])
    [ 2  2 -4 -4]
    [ 1  1 -3 -3  0  0]
    """

    def __repr__(self) -> str:
        return f"HashedPairKFold({self.n_splits})"

    def fold_of_rows(self, X: MatrixLike, y: ArrayLike | Pairs) -> Indices:
        rows = X if sparse.issparse(X) else np.asarray(X)
        pairs = read_pairs(y)
        if pairs.points is None:
            return fold_of_rows(rows, pairs.codes, self.n_splits)
        graph = AnswerGraph.from_y(pairs)
        unit_of_point = fold_units(graph, self.n_splits)
        # A loose pair keeps the fold that its code has in a block; a larger unit has that of its first answer.
        key = np.full(int(unit_of_point.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        end_units = unit_of_point[graph.row_point[pairs.ends]]
        for column in end_units.T:
            there = column >= 0
            np.minimum.at(key, column[there], np.abs(pairs.codes[pairs.ends[there, 0]]))
        fold = fold_of_rows(rows, np.zeros_like(pairs.codes), self.n_splits)
        unit = unit_of_point[graph.row_point]
        asked = (graph.degree > 0)[graph.row_point]
        fold[asked] = np.where(unit[asked] < 0, NO_FOLD, _hashed(key, self.n_splits)[unit[asked]])
        return fold


def fold_of_rows(X: Rows, codes: Codes, n_splits: int) -> Indices:
    """The fold of every row of a block."""
    keys = np.abs(codes).astype(np.uint64)
    free = np.flatnonzero(codes == 0)
    if free.size:
        keys[free] = row_keys(X[free])
    return _hashed(keys, n_splits)


def _hashed(keys: NDArray[np.integer], n_splits: int) -> Indices:
    return (scramble(keys) % np.uint64(n_splits)).astype(np.intp)


def row_keys(X: Rows) -> NDArray[np.uint64]:
    """One number for the numbers in each row, as float64, with -0 as 0 and wrapping sums."""
    factors = scramble(np.arange(X.shape[1])) | np.uint64(1)
    if sparse.issparse(X):
        bits = (X.data.astype(np.float64) + 0.0).view(np.uint64) * factors[X.indices]
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(bits, dtype=np.uint64)])
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    keys = np.empty(X.shape[0], dtype=np.uint64)
    for rows, A in row_pieces(X, np.zeros(X.shape[1])):
        keys[rows] = np.ascontiguousarray(A[:, :-1] + 0.0).view(np.uint64) @ factors
    return keys
