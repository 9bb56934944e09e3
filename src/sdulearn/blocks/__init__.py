"""Rows in blocks, which are only asked for sums; their folds and their moments.

A block is ``(X, y, weight)``: some rows (dense or CSR), their pair codes, and their weights or
None. A *part* is a function without arguments that reads some blocks: a row group of a file, or
arrays in memory. :class:`LocalBlocks` sums over parts in this process, ``sdulearn.distributed`` on
a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import InputError
from sdulearn.losses import TrainingLoss
from sdulearn.model_selection import NO_FOLD, PairFolds, fold_units
from sdulearn.pairs import (
    D,
    Pairs,
    S,
    known_of_rows,
    pair_checksum,
    read_pairs,
    scramble,
    source_totals,
    sources,
)
from sdulearn.prior import Counts
from sdulearn.risks import Mixture, even_and_linear, unit_weights
from sdulearn.solvers.linalg import LARGEST_NUMBER, row_pieces, weighted_gram
from sdulearn.solvers.problem import ridge_of
from sdulearn.solvers.squared import MomentProblem
from sdulearn.types import Array, Codes, Indices, MatrixLike, Rows

Block = tuple[Rows, Codes, Array | None]
Part = Callable[[], Iterable[Block]]
Watch = Callable[[int | None], object]
T = TypeVar("T")


def make_block(number: int, X: MatrixLike, y: ArrayLike, weight: ArrayLike | None = None) -> list[Block]:
    """Check what a user gives; return one block, or none if it has no rows.

    The number keeps its points apart from those of other blocks.
    """
    rows = as_matrix(X)
    known = known_of_rows(y, number) if np.size(y) else np.empty(0, dtype=np.int64)
    weights = None if weight is None else np.asarray(weight, dtype=np.float64).reshape(-1)
    check_lengths(rows, known, weights)
    return [(rows, known, weights)] if rows.shape[0] else []


def as_matrix(X: MatrixLike) -> Rows:
    """Return rows of numbers: CSR if sparse, float32 as it is, else float64."""
    rows = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if rows.ndim == 2 and rows.dtype in (np.float32, np.float64):
        return rows
    with suppress(TypeError, ValueError):
        if rows.ndim == 2 and rows.dtype.kind in "fiubO":
            return rows.astype(np.float64)
    raise InputError(
        f"`X` must be a table of numbers, one row per point; got {type(X).__name__} of shape "
        f"{rows.shape} and dtype {rows.dtype}. Encode or drop columns of other values."
    )


def check_lengths(X: Rows, y: Sized, weight: Sized | None = None) -> None:
    """Refuse a block in which X, y and weights have different lengths."""
    n_rows = X.shape[0]
    if len(y) != n_rows or (weight is not None and len(weight) != n_rows):
        weights = "" if weight is None else f" and {len(weight)} weights"
        raise InputError(
            f"A block has {n_rows} rows of `X`, {len(y)} pair codes{weights}. Give `X`, `y` and "
            "`sample_weight` the same rows, in blocks of the same lengths: take them from one frame, "
            "or give dask arrays of known chunk sizes."
        )


class Blocks:
    """Rows in blocks, here or on a cluster: they can be asked for sums only."""

    @property
    def n_blocks(self) -> int:
        """About how many blocks there are."""
        raise NotImplementedError

    def sum(self, task: Callable[..., T | None], *arguments: object) -> T:
        """Add up ``task(X, y, weight, *arguments)`` of every block, with ``+``.

        A task is a function of a module, so that it can be sent to a worker. Its result is small,
        and None for a block without rows; the sum is None where all are.
        """
        raise NotImplementedError

    def persist(self) -> Blocks:
        """Return blocks that a cluster keeps in memory; here they are read again in every pass."""
        return self


class Sums(dict[str, Any]):
    """Named sums; ``+`` adds name by name: numbers and arrays are added, lists joined."""

    def __add__(self, other: Sums) -> Sums:
        return Sums({name: value + other[name] for name, value in self.items()})


def add_all(results: Iterable[Any]) -> Any:
    """Return the sum of all results that are not None, or None."""
    total = None
    for one in results:
        if one is not None:
            total = one if total is None else total + one
    return total


def sum_of_part(
    part: Part, task: Callable[..., T | None], arguments: Sequence[object], watch: Watch | None = None
) -> T | None:
    """Return the sum of the task's results on the blocks of one part."""
    total = None
    for block in part():
        total = add_all((total, task(*block, *arguments)))
        if watch is not None:
            watch(len(block[1]))
    return total


def count_blocks(parts: Iterable[Part]) -> int:
    """Return how many blocks the parts hold: as many as they say, else one each."""
    return sum(getattr(part, "n_blocks", 1) for part in parts)


@dataclass(eq=False)
class LocalBlocks(Blocks):
    """Blocks read in this process, part by part; nothing is kept between two sums."""

    parts: Sequence[Part]
    n_jobs: int = 1
    watch: Watch | None = None
    feature_names: Sequence[str] | None = None

    @property
    def n_blocks(self) -> int:
        return count_blocks(self.parts)

    def sum(self, task: Callable[..., T | None], *arguments: object) -> T:
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
    """K folds by hash: the same in any order of the rows and for any blocks.

    Both ends of a pair share its code and so their fold; equal unlabeled rows share theirs. Fold
    sizes are equal only on average, which does not matter with thousands of pairs. ``cv=5`` means
    this splitter where rows come in blocks; give it to the local estimator for the same folds.

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
        graph = AnswerGraph.from_y(pairs)
        unit_of_point = fold_units(graph, self.n_splits)
        # A loose pair has the fold of its code, as in a block; a larger unit that of its first
        # answer.
        key = np.full(int(unit_of_point.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        end_units = unit_of_point[graph.row_point[pairs.ends]]
        in_unit = end_units >= 0
        np.minimum.at(key, end_units[in_unit], np.abs(pairs.codes[pairs.ends[in_unit]]))
        fold = fold_of_rows(rows, np.zeros_like(pairs.codes), self.n_splits)
        unit = unit_of_point[graph.row_point]
        answered = (graph.degree > 0)[graph.row_point]
        fold[answered] = np.where(unit[answered] < 0, NO_FOLD, _hashed(key, self.n_splits)[unit[answered]])
        return fold


def fold_of_rows(X: Rows, codes: Codes, n_splits: int) -> Indices:
    """Return the fold of every row of a block."""
    keys = np.abs(codes).astype(np.uint64)
    free = np.flatnonzero(codes == 0)
    if free.size:
        keys[free] = row_keys(X[free])
    return _hashed(keys, n_splits)


def _hashed(keys: NDArray[np.integer], n_splits: int) -> Indices:
    return (scramble(keys) % np.uint64(n_splits)).astype(np.intp)


def row_keys(X: Rows) -> NDArray[np.uint64]:
    """Hash each row to one number; -0 counts as 0."""
    factors = scramble(np.arange(X.shape[1])) | np.uint64(1)
    if sparse.issparse(X):
        bits = (X.data.astype(np.float64) + 0.0).view(np.uint64) * factors[X.indices]
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(bits, dtype=np.uint64)])
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    keys = np.empty(X.shape[0], dtype=np.uint64)
    for rows, A in row_pieces(X, np.zeros(X.shape[1])):
        keys[rows] = np.ascontiguousarray(A[:, :-1] + 0.0).view(np.uint64) @ factors
    return keys


def points_of(y: Codes) -> Codes:
    """Return the points of a block's answers; none where every row is a point of its own."""
    return y[:0] if y.ndim == 1 else y[y[:, 0] != 0, 1]


def refuse_shared(points: Sequence[Codes], what: str, instead: str) -> None:
    """Refuse answers that share points where their graph would be needed."""
    ends = np.concatenate(points)
    n_points = len(np.unique(ends))
    if n_points < len(ends):
        raise InputError(
            f"The {len(ends) // 2:,} answers share {n_points:,} points, and {what} needs all of these "
            f"together, which blocks of rows do not show. {instead}"
        )


def refuse_shared_prior(points: Sequence[Codes]) -> None:
    """Refuse to estimate a prior from counts of answers that share points."""
    refuse_shared(
        points,
        "`prior=None`, a prior from the answers,",
        "Give `prior`: sdulearn.estimate_prior(y=...) finds it from the rows in answers alone. Or fit "
        "in memory, with `engine='memory'` of sdulearn.fit_table.",
    )


def source_moments(A: Rows, source: Indices, weight: Array | None) -> Array:
    """``sum weight x x'`` over the rows x, with last entry 1, of S, D and U: (3, d, d)."""
    moments = np.zeros((3, A.shape[1], A.shape[1]))
    for k in np.unique(source):
        rows = np.flatnonzero(source == k)
        # Gathered in the memory order of the whole.
        some = A[rows] if sparse.issparse(A) or A.flags.c_contiguous else A.T.take(rows, axis=1).T
        moments[k] = weighted_gram(some, None if weight is None else weight[rows])
    return moments


def _shifted(moments: Array, by: Array) -> Array:
    """Return the moments of the rows ``x + by`` (the 1 stays)."""
    move = np.append(by, 0.0)
    shifted = moments.copy()
    for M in shifted:
        cross = np.outer(move, M[-1] + M[-1, -1] / 2 * move)
        M += cross + cross.T
    return shifted


class PairStatistics:
    """Weight, mean and second moments of the similar, the dissimilar and the unlabeled rows.

    Rows come by :meth:`update`, and statistics of other rows are added with ``+``, in any order;
    squared loss needs nothing else. Sums are in float64 and about an origin near the rows, so
    float32 rows with a large mean do no harm. A marginal risk needs only the source of a row, so
    the two ends of a pair may come in different portions.

    Attributes
    ----------
    origin : array of shape (n_features,)
        What is subtracted from every row; zero where rows are sparse.
    moments : array of shape (3, n_features + 1, n_features + 1)
        ``sum weight [x - origin, 1][x - origin, 1]'`` of S, D and U.
    squares : array of shape (3,)
        Sum of the squared weights of S, D and U.
    checksum : int
        Zero once every pair code has come an even number of times, with one sign and one weight.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.linear import PairStatistics
    >>> X, y = np.eye(4), np.array([1, 1, -2, 0])
    >>> statistics = PairStatistics().update(X, y)
    >>> statistics.weight
    array([2., 1., 1.])
    >>> statistics.update(X[2:3], np.array([-2])).checksum
    0
    """

    origin: Array
    moments: Array

    def __init__(self) -> None:
        self.checksum = 0
        self.squares = np.zeros(3)

    @property
    def n_features(self) -> int:
        """Width of the rows; 0 before the first."""
        return len(self.origin) if hasattr(self, "origin") else 0

    @property
    def weight(self) -> Array:
        """Total weight of S, D and U; ends of pairs count one by one."""
        return self.moments[:, -1, -1]

    @property
    def counts(self) -> Counts:
        """Weights of the similar and the dissimilar pairs, and the sum of their squares."""
        weight = self.weight / 2
        return float(weight[S]), float(weight[D]), float(self.squares[S] + self.squares[D]) / 2

    def update(self, X: Rows, y: Codes, sample_weight: Array | None = None) -> Self:
        """Add rows with their pair codes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
            Rows.
        y : int array of shape (n_rows,)
            Pair codes: +k similar, -k dissimilar, 0 unlabeled.
        sample_weight : array of shape (n_rows,), optional
            A weight per row.

        Returns
        -------
        self : PairStatistics
            With the rows added.
        """
        if X.shape[0] == 0:
            return self
        if not self.n_features:
            self.origin = np.zeros(X.shape[1])
            if not sparse.issparse(X):
                with np.errstate(invalid="ignore", over="ignore"):
                    self.origin = X[:1024].mean(axis=0, dtype=np.float64)
            self.moments = np.zeros((3, X.shape[1] + 1, X.shape[1] + 1))
        check_width(X.shape[1], self.n_features)
        origin = np.zeros(X.shape[1]) if sparse.issparse(X) else self.origin
        source = sources(y)
        moments = np.zeros_like(self.moments)
        # Values that are not finite show in the sums, where checking costs nothing.
        with np.errstate(invalid="ignore", over="ignore"):
            for rows, A in row_pieces(X, origin):
                weight = None if sample_weight is None else sample_weight[rows]
                moments += source_moments(A, source[rows], weight)
        squares = np.einsum("kii->ki", moments)
        if not (squares <= LARGEST_NUMBER**2 * max(float(squares[:, -1].max()), 1.0)).all():
            raise InputError(
                f"Input X contains NaN, infinity or a number beyond {LARGEST_NUMBER:g}, whose powers overflow. Give "
                "the column a larger unit, or standardise the features first."
            )
        self.moments = self.moments + _shifted(moments, origin - self.origin)
        self.checksum ^= pair_checksum(y, sample_weight)
        squared = None if sample_weight is None else sample_weight**2
        self.squares = self.squares + source_totals(source, squared)
        return self

    def __add__(self, other: PairStatistics) -> PairStatistics:
        if not (self.n_features and other.n_features):
            return copy(self if self.n_features else other)
        check_width(other.n_features, self.n_features)
        both = copy(self)
        both.moments = self.moments + _shifted(other.moments, other.origin - self.origin)
        both.checksum ^= other.checksum
        both.squares = self.squares + other.squares
        return both

    def problem(self, g: Mixture, prior: float, loss: TrainingLoss, alpha: float, fit_intercept: bool) -> MomentProblem:
        """Return the problem of one setting by its moments."""
        # Without a free intercept, coordinates must not be shifted.
        origin = self.origin if fit_intercept else np.zeros(self.n_features)
        moments = _shifted(self.moments, self.origin - origin)
        return moment_problem(moments, origin, fit_intercept, g, prior, loss, alpha)


def moment_problem(
    moments: Array, origin: Array, fit_intercept: bool, g: Mixture, prior: float, loss: TrainingLoss, alpha: float
) -> MomentProblem:
    """Return the problem of one setting from the moments of S, D and U about an origin."""
    weight = moments[:, -1, -1]
    a, m = even_and_linear(*unit_weights(g, prior, weight).T)
    keep = slice(None) if fit_intercept else slice(-1)
    second = np.tensordot(a, moments, axes=1)[keep, keep]
    c = (m @ moments[:, -1])[keep]
    return MomentProblem(second, c, ridge_of(alpha, len(c), fit_intercept), float(a @ weight), origin, loss)


def check_width(n_columns: int, expected: int) -> None:
    """Refuse rows with another number of columns than those before."""
    if n_columns != expected:
        raise InputError(
            f"`X` has {n_columns} features, but the rows before it had {expected}. Give every portion the same columns."
        )
