"""Squared loss: one linear system; for a grid of penalties one eigendecomposition; folds by subtraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from sdulearn.solvers.linalg import Cholesky, WeightedGram
from sdulearn.solvers.problem import Problem, Solution

Array = NDArray[np.float64]

# eigh takes as long as about nine Cholesky factors, at 50 columns and at 300.
_EIGENDECOMPOSITION_PAYS = 9


def closed_form(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
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
        sizes = np.bincount(group, weights=weight, minlength=n_groups).astype(np.float64)
        return cls(sizes, np.array(totals), np.array(grams))

    def __sub__(self, other: GroupMoments) -> GroupMoments:
        return GroupMoments(self.weight - other.weight, self.total - other.total, self.gram - other.gram)

    def ridge_path(self, a: Array, m: Array, curvature: float, alphas: Sequence[float], fit_intercept: bool) -> Array:
        """Solutions for all penalties, from group weights ``a`` and ``m`` per unit of row weight.

        The free intercept is eliminated first. One eigendecomposition serves every alpha; for a few of them as
        many Cholesky factors cost less.
        """
        H = curvature * np.tensordot(a, self.gram, axes=1)
        c = m @ self.total
        if not fit_intercept:
            return _solve_shifted(H, c, alphas)
        column, corner = H[:-1, -1], H[-1, -1]
        W = _solve_shifted(H[:-1, :-1] - np.outer(column, column / corner), c[:-1] - column * (c[-1] / corner), alphas)
        return np.column_stack([W, (c[-1] - W @ column) / corner])


def _solve_shifted(H: Array, c: Array, alphas: Sequence[float]) -> Array:
    """``(H + alpha I)^-1 c`` for every alpha."""
    if len(alphas) < _EIGENDECOMPOSITION_PAYS:
        return np.array([Cholesky(H.T, np.full(len(c), alpha)).solve(c) for alpha in alphas])
    values, V = eigh(H)
    shifted = np.maximum(values, 0) + np.asarray(alphas, dtype=np.float64)[:, None]
    return ((c @ V) / shifted) @ V.T
