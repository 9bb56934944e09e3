"""Squared loss: one linear system, from the rows or from their second moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular

from sdulearn.losses import TrainingLoss
from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.problem import DENSE_NUMBERS, Objective, Problem, Solution
from sdulearn.types import Array

# Roundings of the second moments that are tried out.
_TRIALS = 4


@dataclass(frozen=True)
class MomentProblem(Objective):
    """The objective by ``second = sum a x x'`` and c, which is all that squared loss needs."""

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
        """Return the minimisers of squared loss, one row per penalty."""
        H = self.loss.curvature * self.second
        c = self.c
        if self.fit_intercept:
            # The free intercept is eliminated first.
            column = H[:-1, -1]
            corner = H[-1, -1]
            c = c[:-1] - column * (c[-1] / corner)
            H = H[:-1, :-1] - np.outer(column, column / corner)
        W = np.empty((len(alphas), len(c)))
        for w, alpha in zip(W, alphas, strict=True):
            cholesky = Cholesky(H, np.full(len(c), float(alpha)))
            w[:] = cholesky.solve(c)
            w += cholesky.solve(c - H @ w - alpha * w)
        return np.column_stack([W, (self.c[-1] - W @ column) / corner]) if self.fit_intercept else W

    def certified(self, w: Array) -> Solution:
        """Certify a solution of squared loss, the rounding of the sums included."""
        level = self.total * float(self.loss.even(np.zeros(1))[0])
        slopes = self.loss.curvature * (self.second @ w)
        J = self.objective(w, level + float(slopes @ w) / 2)
        optimality = self.optimality(w, J, self.gradient(w, slopes), self._hidden(w))
        return Solution(w, 1, objective=J, optimality=optimality)

    def _hidden(self, w: Array) -> float:
        """Estimate by how much J may exceed its minimum because the second moments are rounded."""
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
        """Return ``(coef, intercept)`` of ``w`` in the user's columns."""
        coef = w[: len(self.origin)]
        return coef, float(w[-1] - self.origin @ coef) if self.fit_intercept else 0.0


# Below this pivot, in units of the diagonal, the normal equations have lost half of their digits.
_WEAK = 1e-9


def solve_closed_form(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """Solve ``(curvature A' diag(a) A + ridge) w = c``, refined until only rounding is left."""
    curved = problem.loss.curvature * problem.a
    cholesky = Cholesky(weighted_gram(problem.A, curved), problem.ridge)
    is_weak = cholesky.weakest < _WEAK and problem.A.shape[0] * problem.A.shape[1] <= DENSE_NUMBERS
    solve = _careful_factor(problem, curved) if is_weak else cholesky.solve
    w = solve(problem.c)
    for _ in range(2):
        residual = problem.c - problem.ridge * w - problem.A.T @ (curved * (problem.A @ w))
        w = w + solve(residual)
    return Solution(w, 1)


def _careful_factor(problem: Problem, curved: Array) -> Callable[[Array], Array]:
    """Solve the same system by a QR decomposition of the rows: no rounding is squared."""
    A = problem.A.toarray() if sparse.issparse(problem.A) else problem.A
    unit = np.sqrt(problem.squares + problem.ridge)
    unit[unit == 0] = 1.0
    stacked = np.vstack([np.sqrt(curved)[:, None] * A, np.diag(np.sqrt(problem.ridge))]) / unit
    # Longest rows first, columns pivoted: exact to the rounding of each row by itself.
    longest = np.argsort(-np.einsum("ij,ij->i", stacked, stacked), kind="stable")
    R, pivot = qr(stacked[longest], mode="r", pivoting=True)
    R = R[: len(unit)]
    # A column of zeros without ridge has no pivot. Any will do: its right-hand side is zero.
    empty = R.diagonal() == 0
    R[empty, empty] = 1.0

    def solve(b: Array) -> Array:
        half = solve_triangular(R, (b / unit)[pivot], trans="T")
        scaled = np.empty_like(b)
        scaled[pivot] = solve_triangular(R, half)
        return scaled / unit

    return solve
