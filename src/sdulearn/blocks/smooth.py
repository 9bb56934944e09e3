"""Smooth losses over blocks: Newton's method, started from the solution of a sample; L-BFGS without curvature."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

from sdulearn.blocks.problem import BlockProblem, RowRule, Solution
from sdulearn.blocks.source import Sums
from sdulearn.solvers import solve
from sdulearn.solvers.linalg import Cholesky
from sdulearn.solvers.smooth import secant

Array = NDArray[np.float64]

_ROUNDING = 1e-13
_HALVINGS = 4
_START_TOL = 1e-4


def slope_sums(X: Any, y: NDArray[np.int64], weight: Array | None, rule: RowRule, w: Array) -> Sums:
    """``sum a even(z)`` and ``sum a even'(z) x``."""
    value, slopes = 0.0, np.zeros(len(w))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        value += float(a @ rule.loss.even(z))
        slopes += A.T @ (a * rule.loss.even_grad(z))
    return Sums(value=value, slopes=slopes)


def newton_sums(X: Any, y: NDArray[np.int64], weight: Array | None, rule: RowRule, w: Array, careful: bool) -> Sums:
    """The same, and ``sum a even''(z) x x'``; or with ``even'(z) / z`` in its place, whose step always descends."""
    value, slopes, second = 0.0, np.zeros(len(w)), np.zeros((len(w), len(w)))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        slope, curvature = rule.loss.even_grad(z), rule.loss.even_hess(z)
        value += float(a @ rule.loss.even(z))
        slopes += A.T @ (a * slope)
        second += weighted_gram(A, a * (secant(slope, z, curvature) if careful else curvature))
    return Sums(value=value, slopes=slopes, second=second)


def weighted_gram(A: Any, D: Array) -> Array:
    """``A' diag(D) A``, for D >= 0."""
    root = np.sqrt(D)[:, None]
    scaled = A.multiply(root).tocsr() if sparse.issparse(A) else A * root
    product = scaled.T @ scaled
    return np.asarray(product.toarray() if sparse.issparse(product) else product)


def newton(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """Newton steps, each one pass. A step that ascends is halved; where that is no good either, steps turn careful."""
    w = solve(problem.easy_sample, "newton", _START_TOL, max_iter).w
    best, step, halvings, careful = Solution(w, np.inf, np.inf, 0), np.zeros_like(w), 0, False
    for n_pass in range(1, max_iter + 1):
        sums = problem.blocks.sum(newton_sums, problem.rule, w, careful)
        J, gradient = problem.objective(w, sums["value"]), problem.gradient(w, sums["slopes"])
        rounding = _ROUNDING * (abs(J) + float(np.abs(problem.moments.c) @ np.abs(w)))
        if best.objective + rounding < J:
            if halvings == _HALVINGS and careful:
                break
            careful, halvings = careful or halvings == _HALVINGS, halvings % _HALVINGS + 1
            step = step / 2
            w = best.w + step
            continue
        residual = problem.moments.relative(w, gradient)
        if residual >= best.optimality and best.objective - rounding <= J:
            break
        best, careful, halvings = Solution(w, J, residual, n_pass), careful and halvings > 0, 0
        if residual <= tol / 10:
            break
        step = -Cholesky(sums["second"].T, problem.moments.ridge).solve(gradient)
        w = w + step
    return replace(best, n_iter=n_pass)


def lbfgs(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """scipy's L-BFGS, each evaluation one pass, on variables scaled by the root mean square of their column."""
    moments = problem.moments
    curvature = moments.second.diagonal() + moments.ridge
    scale = 1 / np.sqrt(np.where(curvature > 0, curvature, 1.0))

    def scaled(v: Array) -> tuple[float, Array]:
        w = scale * v
        sums = problem.blocks.sum(slope_sums, problem.rule, w)
        return problem.objective(w, sums["value"]), scale * problem.gradient(w, sums["slopes"])

    start = solve(problem.easy_sample, "lbfgs", _START_TOL, max_iter).w
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 20, "ftol": 0.0, "gtol": tol / 10}
    result = minimize(scaled, start / scale, jac=True, method="L-BFGS-B", options=options)
    w = scale * result.x
    return Solution(w, float(result.fun), moments.relative(w, result.jac / scale), int(result.nfev))
