"""What squared loss needs of the rows: weights, means and second moments, which add up."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np
from scipy import sparse

from sdulearn.errors import InputError
from sdulearn.losses import TrainingLoss
from sdulearn.pairs import D, S, pair_checksum, source_totals, sources
from sdulearn.prior import Counts
from sdulearn.risks import Mixture, even_and_linear, unit_weights
from sdulearn.solvers.linalg import LARGEST_NUMBER, row_pieces, weighted_gram
from sdulearn.solvers.problem import ridge_of
from sdulearn.solvers.squared import MomentProblem
from sdulearn.types import Array, Codes, Indices, Rows


def refuse_shared_prior(points: Sequence[Codes]) -> None:
    """Refuse to estimate a prior from counts of answers that share points; ``points`` has those of all ends."""
    ends = np.concatenate(points)
    n_points = len(np.unique(ends))
    if n_points < len(ends):
        raise InputError(
            f"The {len(ends) // 2:,} answers share {n_points:,} points, so their counts do not imply the prior. Give "
            "`prior`: sdulearn.estimate_prior(y=...) finds it from the rows in answers alone."
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

    Rows are added by :meth:`update`, and statistics of other rows with ``+``, in any order; squared loss
    needs nothing else. Sums are in float64 and about an origin near the rows, so
    float32 rows with a large mean do no harm. A marginal risk needs only the source of a row, so
    the two ends of a pair may be in different batches.

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
    >>> from sdulearn.statistics import PairStatistics
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

    def mean_and_covariance(self, source: int) -> tuple[Array, Array]:
        """Return the mean and the covariance of the rows of S, D or U (0, 1, 2)."""
        M = self.moments[source] / self.weight[source]
        return M[-1, :-1] + self.origin, M[:-1, :-1] - np.outer(M[-1, :-1], M[-1, :-1])

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
            f"`X` has {n_columns} features, but the rows before it had {expected}. Give every batch the same columns."
        )
