"""Squared loss: one linear system, from the rows or from sums of their outer products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, qr, solve_triangular

from sdulearn.losses import TrainingLoss
from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.problem import Objective, Problem, Solution
from sdulearn.types import Array, Indices, Rows

# eigh takes as long as about nine Cholesky factors, at 50 columns and at 300.
_EIGENDECOMPOSITION_PAYS = 9
# What is left of a column's sum of squares after a subtraction, at least.
_LEAST_SHARE = 1e-4
# Roundings that are tried out.
_TRIALS = 4


@dataclass(frozen=True)
class GroupMoments:
    """``gram[k] = sum weight x x'`` over the rows x of group k, whose last entry is 1.

    Additive: other rows are merged by ``+``, a fold is taken out by ``-``. The last row of a
    group's matrix holds the sum of its rows and, in the corner, their weight.
    """

    gram: Array

    @classmethod
    def from_rows(cls, A: Rows, group: Indices, weight: Array | None, n_groups: int) -> GroupMoments:
        """Moments of rows in ``n_groups`` groups. Only the smaller groups are gathered; the largest is the rest."""
        sizes = np.bincount(group, minlength=n_groups)
        largest = int(np.argmax(sizes))
        gram = np.zeros((n_groups, A.shape[1], A.shape[1]))
        gram[largest] = weighted_gram(A, weight)
        total = gram[largest].diagonal().copy()
        for k in np.flatnonzero(sizes):
            if k != largest:
                gram[k] = _group_gram(A, group, weight, int(k))
                gram[largest] -= gram[k]
        if (gram[largest].diagonal() < _LEAST_SHARE * total).any():
            # Others dominate it, by their weights or by an outlier: their rounding must not stay in it.
            gram[largest] = _group_gram(A, group, weight, largest)
        return cls(gram)

    def __add__(self, other: GroupMoments) -> GroupMoments:
        return GroupMoments(self.gram + other.gram)

    def __sub__(self, other: GroupMoments) -> GroupMoments:
        return GroupMoments(self.gram - other.gram)

    def is_dominated_by(self, other: GroupMoments) -> bool:
        """Whether these are what is left of far larger moments: little but rounding, somewhere."""
        left = np.einsum("kii->ki", self.gram)
        taken = np.einsum("kii->ki", other.gram)
        return bool((left < _LEAST_SHARE * taken).any())

    @property
    def weight(self) -> Array:
        """Weight of each group."""
        return self.gram[:, -1, -1]

    @property
    def total(self) -> Array:
        """Weighted sum of the rows of each group."""
        return self.gram[:, -1, :]

    def shifted(self, by: Array) -> GroupMoments:
        """The moments of the rows ``x + by`` (the 1 stays)."""
        gram = self.gram.copy()
        move = np.append(by, 0.0)
        for G, total, weight in zip(gram, self.total, self.weight, strict=True):
            cross = np.outer(move, total + weight / 2 * move)
            G += cross + cross.T
        return GroupMoments(gram)

    def weighted(self, a: Array, m: Array, fit_intercept: bool) -> tuple[Array, Array]:
        """``sum a x x'`` and ``sum m x`` over all rows, from a and m per unit of row weight in each group."""
        keep = slice(None) if fit_intercept else slice(-1)
        second = np.tensordot(a, self.gram, axes=1)
        return second[keep, keep], (m @ self.total)[keep]


def ridge_path(second: Array, c: Array, curvature: float, alphas: Sequence[float], fit_intercept: bool) -> Array:
    """Solutions of squared loss for all penalties, the free intercept (last) eliminated first."""
    H = curvature * second
    if not fit_intercept:
        return _solve_shifted(H, c, alphas)
    column = H[:-1, -1]
    corner = H[-1, -1]
    reduced = H[:-1, :-1] - np.outer(column, column / corner)
    W = _solve_shifted(reduced, c[:-1] - column * (c[-1] / corner), alphas)
    return np.column_stack([W, (c[-1] - W @ column) / corner])


def _group_gram(A: Rows, group: Indices, weight: Array | None, k: int) -> Array:
    """The rows are gathered in the memory order of the whole: a table read column by column stays fast."""
    rows = np.flatnonzero(group == k)
    some = A[rows] if sparse.issparse(A) or A.flags.c_contiguous else A.T.take(rows, axis=1).T
    return weighted_gram(some, None if weight is None else weight[rows])


def _solve_shifted(H: Array, c: Array, alphas: Sequence[float]) -> Array:
    """``(H + alpha I)^-1 c`` for every alpha."""
    if len(alphas) < _EIGENDECOMPOSITION_PAYS:
        return np.array([_solve_refined(H, c, float(alpha)) for alpha in alphas])
    values, V = eigh(H)
    shifted = np.maximum(values, 0) + np.asarray(alphas, dtype=np.float64)[:, None]
    return ((c @ V) / shifted) @ V.T


def _solve_refined(H: Array, c: Array, alpha: float) -> Array:
    cholesky = Cholesky(H, np.full(len(c), alpha))
    w = cholesky.solve(c)
    return w + cholesky.solve(c - H @ w - alpha * w)


@dataclass(frozen=True)
class MomentProblem(Objective):
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

    def ridge_path(self, alphas: Sequence[float]) -> Array:
        """Minimisers of squared loss for all penalties, one in a row."""
        return ridge_path(self.second, self.c, self.loss.curvature, alphas, self.fit_intercept)

    def certified(self, w: Array) -> Solution:
        """A solution of squared loss, measured as :meth:`.Problem.certified` does.

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
        size = np.sqrt(self.squares)
        error = np.finfo(float).eps * self.loss.curvature * size * float(size @ np.abs(w))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(w), _TRIALS))
        slope = error[:, None] * signs
        step = Cholesky(self.loss.curvature * self.second, self.ridge).solve(slope)
        return float(np.max(np.einsum("ij,ij->j", slope, step))) / 2

    @property
    def squares(self) -> Array:
        return np.maximum(self.second.diagonal(), 0.0)

    @property
    def column_scale(self) -> Array:
        return np.sqrt(self.squares * self.total)

    def coefficients(self, w: Array) -> tuple[Array, float]:
        """User's ``(coef, intercept)`` of ``w``."""
        coef = w[: len(self.origin)]
        return coef, float(w[-1] - self.origin @ coef) if self.fit_intercept else 0.0


# Below this pivot, in units of the diagonal, the normal equations have lost half of their digits.
_WEAK = 1e-9
# Rows are decomposed up to so many numbers (256 MB).
_DENSE_NUMBERS = 1 << 25


def solve_closed_form(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """``(curvature A' diag(a) A + ridge) w = c``, refined until rounding is all that is left."""
    curved = problem.loss.curvature * problem.a
    cholesky = Cholesky(weighted_gram(problem.A, curved), problem.ridge)
    solve: Callable[[Array], Array] = cholesky.solve
    if cholesky.weakest < _WEAK and problem.A.shape[0] * problem.A.shape[1] <= _DENSE_NUMBERS:
        solve = _careful_factor(problem, curved)
    w = solve(problem.c)
    for _ in range(2):
        residual = problem.c - problem.ridge * w - problem.A.T @ (curved * (problem.A @ w))
        w = w + solve(residual)
    return Solution(w, 1)


def _careful_factor(problem: Problem, curved: Array) -> Callable[[Array], Array]:
    """The same system by a QR decomposition of the rows, which never squares their rounding."""
    A = problem.A.toarray() if sparse.issparse(problem.A) else problem.A
    unit = np.sqrt(problem.squares + problem.ridge)
    unit[unit == 0] = 1.0
    stacked = np.vstack([np.sqrt(curved)[:, None] * A, np.diag(np.sqrt(problem.ridge))]) / unit
    # Longest rows first, columns pivoted: exact to the rounding of each row by itself.
    longest = np.argsort(-np.einsum("ij,ij->i", stacked, stacked), kind="stable")
    R, pivot = qr(stacked[longest], mode="r", pivoting=True)
    R = R[: len(unit)]
    # A column of zeros without ridge has no pivot; any will do, for its right-hand side is zero.
    empty = R.diagonal() == 0
    R[empty, empty] = 1.0

    def solve(b: Array) -> Array:
        half = solve_triangular(R, (b / unit)[pivot], trans="T")
        found = np.empty_like(b)
        found[pivot] = solve_triangular(R, half)
        return found / unit

    return solve
