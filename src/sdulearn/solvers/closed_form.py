"""Squared loss: one linear system."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular

from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.problem import Problem, Solution
from sdulearn.types import Array

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
    unit = np.sqrt(problem.column_scale**2 / problem.a.sum() + problem.ridge)
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
