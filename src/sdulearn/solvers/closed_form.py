"""Squared loss: one linear system."""

from __future__ import annotations

from collections.abc import Sequence

from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.problem import Problem, Solution


def solve_closed_form(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """``(curvature A' diag(a) A + ridge) w = c``, refined until rounding is all that is left."""
    curved = problem.loss.curvature * problem.a
    cholesky = Cholesky(weighted_gram(problem.A, curved), problem.ridge)
    w = cholesky.solve(problem.c)
    for _ in range(2):
        residual = problem.c - problem.ridge * w - problem.A.T @ (curved * (problem.A @ w))
        w = w + cholesky.solve(residual)
    return Solution(w, 1)
