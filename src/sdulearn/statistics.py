"""Sums over rows that add up: weights, means and second moments, which are all that squared loss needs."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from scipy import sparse

from sdulearn.answers.y import LARGEST_NUMBER, D, S, pair_checksum, source_totals, sources
from sdulearn.errors import InputError
from sdulearn.losses import TrainingLoss
from sdulearn.risks import Mixture, even_and_linear, unit_weights
from sdulearn.solvers.linalg import row_pieces, weighted_gram
from sdulearn.solvers.problem import ridge_of
from sdulearn.solvers.squared import MomentProblem
from sdulearn.types import Array, Codes, Indices, Rows


def source_moments(A: Rows, source: Indices, weight: Array | None) -> Array:
    """``sum weight x x'`` over the rows x, with last entry 1, of S, D and U: (3, d, d)."""
    moments = np.zeros((3, A.shape[1], A.shape[1]))
    for k in np.unique(source):
        rows = source == k
        moments[k] = weighted_gram(A[rows], None if weight is None else weight[rows])
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

    Rows are added by :meth:`update`, and statistics of other rows with ``+``, in any order. Sums are in float64 and
    about an origin near the rows, so a large mean does no harm. The two ends of a pair may be in different batches.
    """

    # What is subtracted from every row; empty before the first one, and zero where rows are sparse.
    origin: Array = np.empty(0)
    # (3, n_features + 1, n_features + 1), ``sum weight [x - origin, 1][x - origin, 1]'`` of S, D and U.
    moments: Array
    # Sums of the squared weights of S, D and U.
    squares: Array
    # Zero once every pair code has come an even number of times, with one sign and one weight.
    checksum: int = 0

    @property
    def weight(self) -> Array:
        """Total weight of S, D and U; ends of pairs count one by one."""
        return self.moments[:, -1, -1]

    @property
    def counts(self) -> tuple[float, float, float]:
        """Weights of the similar and the dissimilar pairs, and the sum of their squares."""
        weight = self.weight / 2
        return float(weight[S]), float(weight[D]), float(self.squares[S] + self.squares[D]) / 2

    def mean_and_covariance(self, source: int) -> tuple[Array, Array]:
        """Return the mean and the covariance of the rows of S, D or U (0, 1, 2)."""
        M = self.moments[source] / self.weight[source]
        return M[-1, :-1] + self.origin, M[:-1, :-1] - np.outer(M[-1, :-1], M[-1, :-1])

    def update(self, X: Rows, y: Codes, sample_weight: Array | None = None) -> Self:
        """Add rows, dense or CSR, with their pair codes and weights."""
        if not X.shape[0]:
            return self
        source = sources(y)
        added = PairStatistics()
        added.moments = np.zeros((3, X.shape[1] + 1, X.shape[1] + 1))
        # Values that are not finite show in the sums, where checking costs nothing.
        with np.errstate(invalid="ignore", over="ignore"):
            added.origin = np.zeros(X.shape[1]) if sparse.issparse(X) else X[:1024].mean(axis=0, dtype=np.float64)
            for rows, A in row_pieces(X, added.origin):
                weight = None if sample_weight is None else sample_weight[rows]
                added.moments += source_moments(A, source[rows], weight)
        squares = np.einsum("kii->ki", added.moments)
        if not (squares <= LARGEST_NUMBER**2 * max(float(squares[:, -1].max()), 1.0)).all():
            raise InputError(
                f"Input X contains NaN, infinity or a number beyond {LARGEST_NUMBER:g}, whose powers overflow. Give "
                "the column a larger unit, or standardise the features first."
            )
        added.checksum = pair_checksum(y, sample_weight)
        added.squares = source_totals(source, None if sample_weight is None else sample_weight**2)
        vars(self).update(vars(self + added))
        return self

    def __add__(self, other: PairStatistics) -> PairStatistics:
        if not (self.origin.size and other.origin.size):
            return copy(self if self.origin.size else other)
        if self.origin.size != other.origin.size:
            sizes = f"`X` has {other.origin.size} features, but the rows before it had {self.origin.size}"
            raise InputError(f"{sizes}. Give every batch the same columns.")
        both = copy(self)
        both.moments = self.moments + _shifted(other.moments, other.origin - self.origin)
        both.checksum ^= other.checksum
        both.squares = self.squares + other.squares
        return both

    def problem(self, g: Mixture, prior: float, loss: TrainingLoss, alpha: float, fit_intercept: bool) -> MomentProblem:
        """Return the problem of one setting by its moments."""
        # Without a free intercept, coordinates must not be shifted.
        origin = self.origin if fit_intercept else np.zeros_like(self.origin)
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
