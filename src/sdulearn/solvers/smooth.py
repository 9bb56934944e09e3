"""Smooth losses: Newton's method with a line search; L-BFGS where a d x d system is too large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from sdulearn.solvers.linalg import WeightedGram
from sdulearn.solvers.problem import Problem, Solution
from sdulearn.types import Array

_SUFFICIENT = 1e-4
_ROUNDING = 1e-15
FLOOR = 1e-8
_RUNG = 10.0
RUNG_TOL = 1e-2


def newton(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """Newton steps with a line search, down a ladder of penalties.

    With few rows and a small penalty the solution is huge and the curvature almost nil at every
    row: a Newton step from afar is worthless. So the penalty falls tenfold at a time, each rung
    started from the one above.
    """
    w = starts[0].w if starts else np.zeros(len(problem.c))
    spent, ridge = 0, float(problem.ridge.max())
    for factor in _ladder(problem, w):
        rung = problem.with_penalty(ridge * factor)
        w = min((w, _RUNG * w), key=rung.objective)
        w, n_iter = _descend(rung, w, tol if factor == 1 else RUNG_TOL, max_iter - spent)
        spent += n_iter
    return Solution(w, spent)


def _ladder(problem: Problem, w: Array) -> list[float]:
    """Factors of the penalty, falling to 1 from the penalty at which ``w`` would be nearest to optimal."""
    penalised = problem.ridge > 0
    ridge = float(problem.ridge.max())
    mean_square = float(np.mean(problem.column_scale[penalised] ** 2))
    top = mean_square / ridge
    if np.any(w[penalised]):
        pull = problem.ridge * w - problem.gradient_at(w, problem.A @ w)
        top = min(top, float(pull[penalised] @ w[penalised]) / (ridge * float(w[penalised] @ w[penalised])))
    return rungs(top)


def rungs(top: float) -> list[float]:
    """Factors that fall tenfold at a time, from about ``top`` to 1."""
    return [_RUNG**k for k in range(int(np.log(max(top, 1.0)) / np.log(_RUNG)), -1, -1)]


def _descend(problem: Problem, w: Array, tol: float, max_iter: int) -> tuple[Array, int]:
    """Until the certificate is below a tenth of ``tol``, or rounding lets no step descend."""
    gram = WeightedGram(problem.A)
    z = problem.A @ w
    for iteration in range(max_iter):
        gradient = problem.gradient_at(w, z)
        if problem.relative(w, gradient) <= tol / 10:
            return w, iteration
        curvature = problem.loss.even_hess(z)
        above = secant(problem.loss.even_grad(z), z, curvature)
        for weights, halvings in ((np.maximum(curvature, FLOOR * above), 20), (above, 40)):
            dw = -gram.factor(problem.a * weights, problem.ridge).solve(gradient)
            step = _line_search(problem, w, z, dw, float(gradient @ dw), halvings)
            if step:
                break
        else:
            return w, iteration
        w = w + step * dw
        z = problem.A @ w
    return w, max(max_iter, 0)


def secant(slope: Array, z: Array, curvature: Array) -> Array:
    """``even'(z) / z``: the curvature of a parabola that touches ``even`` at z and, as a rule, lies above it.

    Where every row is far out, the true curvature is nil and its Newton step goes anywhere; this
    one descends.
    """
    far = np.abs(z) > 1e-3
    return np.where(far, slope / np.where(far, z, 1.0), curvature)


def _line_search(problem: Problem, w: Array, z: Array, dw: Array, slope: float, halvings: int) -> float:
    """The first of 1, 1/2, 1/4, ... that descends enough (Armijo, up to rounding); 0 where none does."""
    dz = problem.A @ dw
    J = problem.objective_at(w, z)
    rounding = _ROUNDING * (abs(J) + float(np.abs(problem.c) @ np.abs(w)))
    for step in 0.5 ** np.arange(halvings):
        if problem.objective_at(w + step * dw, z + step * dz) <= J + _SUFFICIENT * step * slope + rounding:
            return float(step)
    return 0.0


def lbfgs(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """scipy's L-BFGS on variables scaled by the root mean square of their column."""

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        z = problem.A @ w
        return problem.objective_at(w, z), problem.gradient_at(w, z)

    start = starts[0].w if starts else np.zeros(len(problem.c))
    curvature = problem.column_scale**2 / problem.a.sum() + problem.ridge
    found = minimise_scaled(value_and_gradient, start, curvature, tol, max_iter)
    return Solution(found.w, found.n_iter)


class Minimum(NamedTuple):
    """Where scipy stopped."""

    w: Array
    value: float
    gradient: Array
    n_iter: int
    n_calls: int


def minimise_scaled(
    value_and_gradient: Callable[[Array], tuple[float, Array]],
    start: Array,
    curvature: Array,
    tol: float,
    max_iter: int,
) -> Minimum:
    """L-BFGS on variables scaled by the root of a rough curvature of each."""
    scale = 1 / np.sqrt(np.where(curvature > 0, curvature, 1.0))

    def scaled(v: Array) -> tuple[float, Array]:
        value, gradient = value_and_gradient(scale * v)
        return value, scale * gradient

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 20, "ftol": 0.0, "gtol": tol / 10}
    result = minimize(scaled, start / scale, jac=True, method="L-BFGS-B", options=options)
    return Minimum(scale * result.x, float(result.fun), result.jac / scale, int(result.nit), int(result.nfev))
