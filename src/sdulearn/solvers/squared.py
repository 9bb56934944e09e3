"""Squared loss: one linear system, from the rows or from sums of their outer products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

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


def group_moments(A: Rows, group: Indices, weight: Array | None, n_groups: int) -> Array:
    """``sum weight x x'`` over the rows x, with last entry 1, of each group: (n_groups, d, d)."""
    # Only the smaller groups are gathered; the largest is the rest.
    sizes = np.bincount(group, minlength=n_groups)
    largest = int(np.argmax(sizes))
    moments = np.zeros((n_groups, A.shape[1], A.shape[1]))
    for k in np.flatnonzero(sizes):
        if k != largest:
            moments[k] = _group_gram(A, group, weight, int(k))
    others = moments.sum(axis=0)
    moments[largest] = weighted_gram(A, weight) - others
    if is_remainder(moments[largest], others):
        moments[largest] = _group_gram(A, group, weight, largest)
    return moments


def is_remainder(left: Array, taken: Array) -> bool:
    """Whether moments are what is left of far larger ones: rounding, somewhere."""
    of_left = np.einsum("...ii->...i", left)
    of_taken = np.einsum("...ii->...i", taken)
    return bool((of_left < _LEAST_SHARE * of_taken).any())


def shifted_moments(moments: Array, by: Array) -> Array:
    """The moments of the rows ``x + by`` (the 1 stays)."""
    moved = moments.copy()
    move = np.append(by, 0.0)
    for M in moved:
        cross = np.outer(move, M[-1] + M[-1, -1] / 2 * move)
        M += cross + cross.T
    return moved


def _group_gram(A: Rows, group: Indices, weight: Array | None, k: int) -> Array:
    """Moments of one group, its rows gathered in the memory order of the whole."""
    rows = np.flatnonzero(group == k)
    some = A[rows] if sparse.issparse(A) or A.flags.c_contiguous else A.T.take(rows, axis=1).T
    return weighted_gram(some, None if weight is None else weight[rows])


def _solve_shifted(H: Array, c: Array, alphas: Sequence[float]) -> Array:
    """``(H + alpha I)^-1 c`` for every alpha."""
    if len(alphas) < _EIGENDECOMPOSITION_PAYS:
        W = np.empty((len(alphas), len(c)))
        for w, alpha in zip(W, alphas, strict=True):
            cholesky = Cholesky(H, np.full(len(c), float(alpha)))
            w[:] = cholesky.solve(c)
            w += cholesky.solve(c - H @ w - alpha * w)
        return W
    values, V = eigh(H)
    shifted = np.maximum(values, 0) + np.asarray(alphas, dtype=np.float64)[:, None]
    return ((c @ V) / shifted) @ V.T


@dataclass(frozen=True)
class MomentProblem(Objective):
    """An objective by ``second = sum a x x'`` and c; beyond squared loss the rows say more."""

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

    def ridge_path(self, alphas: Sequence[float]) -> Array:
        """Minimisers of squared loss, one row per penalty, the free intercept eliminated first."""
        H = self.loss.curvature * self.second
        c = self.c
        if not self.fit_intercept:
            return _solve_shifted(H, c, alphas)
        column = H[:-1, -1]
        corner = H[-1, -1]
        reduced = H[:-1, :-1] - np.outer(column, column / corner)
        W = _solve_shifted(reduced, c[:-1] - column * (c[-1] / corner), alphas)
        return np.column_stack([W, (c[-1] - W @ column) / corner])

    def certified(self, w: Array) -> Solution:
        """A solution of squared loss, measured with what the rounding of sums may hide."""
        level = self.total * float(self.loss.even(np.zeros(1))[0])
        slopes = self.loss.curvature * (self.second @ w)
        J = self.objective(w, level + float(slopes @ w) / 2)
        optimality = self.optimality(w, J, self.gradient(w, slopes), self._hidden(w))
        return Solution(w, 1, objective=J, optimality=optimality)

    def _hidden(self, w: Array) -> float:
        """By how much J may be above its minimum because the second moments are rounded."""
        size = np.sqrt(self.squares)
        error = np.finfo(float).eps * self.loss.curvature * size * float(size @ np.abs(w))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(w), _TRIALS))
        slope = error[:, None] * signs
        step = Cholesky(self.loss.curvature * self.second, self.ridge).solve(slope)
        return float(np.max(np.einsum("ij,ij->j", slope, step))) / 2

    @cached_property
    def squares(self) -> Array:  # type: ignore[override]
        return np.maximum(self.second.diagonal(), 0.0)

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
