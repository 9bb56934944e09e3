"""Squared loss: one linear system; for a grid of penalties one eigendecomposition; folds by subtraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from sdulearn.solvers.linalg import WeightedGram
from sdulearn.solvers.problem import Problem, Solution

Array = NDArray[np.float64]


def closed_form(problem: Problem, tol: float, max_iter: int, start: Array | None = None) -> Solution:
    """``(curvature A' diag(a) A + ridge) w = c``, refined until rounding is all that is left."""
    curved = problem.loss.curvature * problem.a
    cholesky = WeightedGram(problem.A).factor(curved, problem.ridge)
    w = cholesky.solve(problem.c)
    for _ in range(2):
        residual = problem.c - problem.ridge * w - problem.A.T @ (curved * (problem.A @ w))
        w = w + cholesky.solve(residual)
    return Solution(w, 1)


@dataclass(frozen=True)
class GroupMoments:
    """Weight, sum and Gram matrix of the rows of each group: all that squared loss ever asks of the data.

    Additive, so a fold is taken out by subtraction.
    """

    weight: Array
    total: Array
    gram: Array

    @classmethod
    def from_rows(cls, A: Any, group: NDArray[np.intp], weight: Array, n_groups: int) -> GroupMoments:
        """Moments of weighted rows in ``n_groups`` groups."""
        grams, totals = [], []
        for k in range(n_groups):
            rows, w = A[group == k], weight[group == k]
            scaled = rows.multiply(w[:, None]).tocsr() if sparse.issparse(rows) else rows * w[:, None]
            product = rows.T @ scaled
            grams.append(product.toarray() if sparse.issparse(product) else product)
            totals.append(rows.T @ w)
        return cls(np.bincount(group, weights=weight, minlength=n_groups), np.array(totals), np.array(grams))

    def __sub__(self, other: GroupMoments) -> GroupMoments:
        return GroupMoments(self.weight - other.weight, self.total - other.total, self.gram - other.gram)

    def ridge_path(
        self, a: Array, m: Array, curvature: float, alphas: Sequence[float], fit_intercept: bool
    ) -> Array:
        """Solutions for all penalties, from group weights ``a`` and ``m`` per unit of row weight.

        The free intercept is eliminated first; one eigendecomposition then serves every alpha.
        """
        H = curvature * np.tensordot(a, self.gram, axes=1)
        c = m @ self.total
        if not fit_intercept:
            values, V = eigh(H)
            return _solve_spectral(values, V, c, alphas)
        column, corner = H[:-1, -1], H[-1, -1]
        values, V = eigh(H[:-1, :-1] - np.outer(column, column) / corner)
        W = _solve_spectral(values, V, c[:-1] - column * (c[-1] / corner), alphas)
        return np.column_stack([W, (c[-1] - W @ column) / corner])


def _solve_spectral(values: Array, V: Array, c: Array, alphas: Sequence[float]) -> Array:
    shifted = np.maximum(values, 0) + np.asarray(alphas, dtype=np.float64)[:, None]
    return ((c @ V) / shifted) @ V.T


