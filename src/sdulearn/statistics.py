"""Additive statistics of rows and pair codes: squared loss needs nothing else, so rows may come in any portions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from sdulearn.errors import InputError
from sdulearn.losses import TrainingLoss
from sdulearn.pairs import pair_checksum, source_totals, sources
from sdulearn.risks import Mixture, check_sources, even_and_linear, source_weights
from sdulearn.solvers import GroupMoments, Solution, row_pieces
from sdulearn.solvers.limits import LARGEST_NUMBER
from sdulearn.solvers.linalg import Cholesky
from sdulearn.solvers.problem import relative_residual, ridge_of
from sdulearn.types import Array, Codes, Rows

# Roundings that are tried out.
_TRIALS = 4


class PairStatistics:
    """Weight, mean and second moments of the similar, the dissimilar and the unlabeled rows.

    Rows come by :meth:`update` and other statistics by :meth:`merge`, in any order; :meth:`solve`
    gives the classifier of squared loss. Sums are in float64 and about an origin near the rows, so
    float32 rows with a large mean do no harm. A marginal risk needs only the source of a row, so
    the two ends of a pair may come in different portions.

    Attributes
    ----------
    origin : array of shape (n_features,)
        What is subtracted from every row; zero where rows are sparse.
    moments : GroupMoments
        ``sum weight [x - origin, 1][x - origin, 1]'`` of each source.
    squares : array of shape (3,)
        Sum of the squared weights of S, D and U.
    checksum : int
        Zero once every pair code has come an even number of times, with one sign and one weight.

    See Also
    --------
    sdulearn.SDUClassifier.partial_fit : Keeps such statistics as ``statistics_``.

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
    moments: GroupMoments

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
        return self.moments.weight

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
            self._begin(X)
        check_width(X.shape[1], self.n_features)
        origin = np.zeros(X.shape[1]) if sparse.issparse(X) else self.origin
        source = sources(y)
        gram = np.zeros_like(self.moments.gram)
        # What is not finite is found in the sums, where it costs nothing to check.
        with np.errstate(invalid="ignore", over="ignore"):
            for rows, A in row_pieces(X, origin):
                weight = None if sample_weight is None else sample_weight[rows]
                gram += GroupMoments.from_rows(A, source[rows], weight, 3).gram
        squares = np.einsum("kii->ki", gram)
        if not (squares <= LARGEST_NUMBER**2 * max(float(squares[:, -1].max()), 1.0)).all():
            raise InputError(
                f"Input X contains NaN, infinity or a number beyond {LARGEST_NUMBER:g}, whose powers overflow. Give "
                "the column a larger unit, or standardise the features first."
            )
        self.moments = self.moments + GroupMoments(gram).shifted(origin - self.origin)
        self.checksum ^= pair_checksum(y, sample_weight)
        squared = None if sample_weight is None else sample_weight**2
        self.squares = self.squares + source_totals(source, squared)
        return self

    def _begin(self, X: Rows) -> None:
        n_features = X.shape[1]
        self.origin = np.zeros(n_features)
        if not sparse.issparse(X):
            with np.errstate(invalid="ignore", over="ignore"):
                self.origin = X[:1024].mean(axis=0, dtype=np.float64)
        self.moments = GroupMoments(np.zeros((3, n_features + 1, n_features + 1)))

    def merge(self, other: PairStatistics) -> Self:
        """Add the rows of another object.

        Parameters
        ----------
        other : PairStatistics
            Statistics of other rows with the same columns.

        Returns
        -------
        self : PairStatistics
            With the rows added.
        """
        if not other.n_features:
            return self
        if not self.n_features:
            self.origin = other.origin
            self.moments = other.moments
            self.checksum = other.checksum
            self.squares = other.squares
            return self
        check_width(other.n_features, self.n_features)
        self.moments = self.moments + other.moments.shifted(other.origin - self.origin)
        self.checksum ^= other.checksum
        self.squares = self.squares + other.squares
        return self

    def __add__(self, other: PairStatistics) -> PairStatistics:
        return PairStatistics().merge(self).merge(other)

    def __sub__(self, other: PairStatistics) -> PairStatistics:
        """What is left without the rows of another object: a training set without its fold."""
        rest = PairStatistics().merge(self)
        if other.n_features:
            rest.moments = rest.moments - other.moments.shifted(other.origin - self.origin)
            rest.checksum ^= other.checksum
            rest.squares = rest.squares - other.squares
        return rest

    def about(self, origin: Array) -> GroupMoments:
        """The moments about another origin."""
        return self.moments.shifted(self.origin - origin)

    def unit_weights(self, g: Mixture, prior: float) -> tuple[Array, Array]:
        """Even and linear weight, a and m, of a row of weight one from each source."""
        check_sources(g, self.weight)
        a, m = even_and_linear(*source_weights(g, prior).T)
        totals = np.where(self.weight > 0, self.weight, 1.0)
        return a / totals, m / totals

    def problem(self, g: Mixture, prior: float, loss: TrainingLoss, alpha: float, fit_intercept: bool) -> MomentProblem:
        """The problem of one setting, as far as moments describe it."""
        origin = self._origin(fit_intercept)
        a, m = self.unit_weights(g, prior)
        second, c = self.about(origin).weighted(a, m, fit_intercept)
        ridge = ridge_of(alpha, len(c), fit_intercept)
        return MomentProblem(second, c, ridge, float(a @ self.weight), origin, loss)

    def solve(
        self,
        g: Mixture,
        prior: float,
        loss: TrainingLoss,
        alphas: Sequence[float],
        fit_intercept: bool,
    ) -> Array:
        """Return the minimisers of squared loss in the coordinates of :meth:`problem`.

        Parameters
        ----------
        g : tuple of three floats
            Weights (su, du, sd) of the risk.
        prior : float
            P(y = +1), not 1/2.
        loss : loss object
            With ``curvature``.
        alphas : sequence of float
            Penalties.
        fit_intercept : bool
            Whether there is an intercept.

        Returns
        -------
        array of shape (n_alphas, n_columns)
            One solution a penalty.
        """
        moments = self.about(self._origin(fit_intercept))
        a, m = self.unit_weights(g, prior)
        return moments.ridge_path(a, m, loss.curvature, alphas, fit_intercept)

    def _origin(self, fit_intercept: bool) -> Array:
        """Without a free intercept, coordinates must not be moved."""
        return self.origin if fit_intercept else np.zeros(self.n_features)


@dataclass(frozen=True)
class MomentProblem:
    """Minimise ``1/2 sum_j ridge_j w_j^2 + sum_i a_i even(z_i) - c.w``, known by ``second = sum a x x'`` and c.

    That is all of it for squared loss; for another loss the rows must say the rest.
    """

    second: Array
    c: Array
    ridge: Array
    total: float
    origin: Array
    loss: TrainingLoss

    @property
    def fit_intercept(self) -> bool:
        """Whether the last coordinate is the intercept."""
        return len(self.c) > len(self.origin)

    def objective(self, w: Array, value: float) -> float:
        """J(w) from ``value = sum_i a_i even(z_i)``."""
        return float(self.ridge @ w**2) / 2 + value - float(self.c @ w)

    def gradient(self, w: Array, slopes: Array) -> Array:
        """Gradient of J from ``slopes = sum_i theta_i x_i``."""
        return self.ridge * w - self.c + slopes

    def certified(self, w: Array) -> Solution:
        """A solution of squared loss, measured as :meth:`sdulearn.solvers.Problem.certified` does.

        The rows are no longer there to measure it by, so what the rounding of their sums may hide
        counts as well: next to an outlier, the sums of squares of all other rows are rounding.
        """
        level = self.total * float(self.loss.even(np.zeros(1))[0])
        slopes = self.loss.curvature * (self.second @ w)
        objective = self.objective(w, level + float(slopes @ w) / 2)
        hidden = self._hidden(w) / max(abs(objective), self.total / 2)
        optimality = max(self.relative(w, self.gradient(w, slopes)), hidden)
        return Solution(w, 1, objective=objective, optimality=optimality)

    def _hidden(self, w: Array) -> float:
        """By how much J may be above its minimum because the second moments are rounded."""
        size = np.sqrt(np.maximum(self.second.diagonal(), 0.0))
        error = np.finfo(float).eps * self.loss.curvature * size * float(size @ np.abs(w))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(w), _TRIALS))
        slope = error[:, None] * signs
        step = Cholesky(self.loss.curvature * self.second, self.ridge).solve(slope)
        return float(np.max(np.einsum("ij,ij->j", slope, step))) / 2

    def relative(self, w: Array, residual: Array) -> float:
        """Largest entry of a stationarity residual, each against the scale of its column."""
        scale = np.sqrt(np.maximum(self.second.diagonal(), 0) * self.total)
        return relative_residual(residual, scale + np.abs(self.c) + self.ridge * np.abs(w))

    def coefficients(self, w: Array) -> tuple[Array, float]:
        """User's ``(coef, intercept)`` of ``w``."""
        coef = w[: len(self.origin)]
        return coef, float(w[-1] - self.origin @ coef) if self.fit_intercept else 0.0


def check_width(found: int, expected: int) -> None:
    """Refuse rows of another width than those before."""
    if found != expected:
        raise InputError(
            f"`X` has {found} features, but the rows before it had {expected}. Give every portion the same columns."
        )
