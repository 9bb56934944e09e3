"""Smooth losses over blocks: Newton's method, started from the solution of a sample; L-BFGS without curvature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.blocks.problem import BlockProblem, RowRule, Solution
from sdulearn.blocks.source import Blocks, Sums
from sdulearn.solvers import solve
from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.smooth import FLOOR, RUNG_TOL, minimise_scaled, rungs, secant
from sdulearn.types import Array

_ROUNDING = 1e-15
_SUFFICIENT = 1e-4
# Step lengths tried at once where a whole Newton step ascends.
LENGTHS = 0.4 ** np.arange(1, 18)
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
        above = secant(slope, z, curvature)
        second += weighted_gram(A, a * (above if careful else np.maximum(curvature, FLOOR * above)))
    return Sums(value=value, slopes=slopes, second=second)


def line_sums(
    X: Any, y: NDArray[np.int64], weight: Array | None, rule: RowRule, w: Array, step: Array, lengths: Array
) -> Sums:
    """``sum a even(z)`` at many points of a line."""
    value = np.zeros(len(lengths))
    for A, a in rule.pieces(X, y, weight):
        z, dz = A @ w, A @ step
        value += [float(a @ rule.loss.even(z + t * dz)) for t in lengths]
    return Sums(value=value)


def newton(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """Newton's method, each step one pass; where a step goes astray, down a ladder of penalties as in memory."""
    search = _Search(problem.blocks, max_iter)
    point = search.look(problem, solve(problem.easy_sample, "newton", _START_TOL, max_iter).w)
    point, astray = search.descend(problem, point, tol, patient=False)
    for factor in _ladder(problem, point) if astray else ():
        rung = problem.with_penalty(factor)
        last = tol if factor == 1 else RUNG_TOL
        point, _ = search.descend(rung, search.look(rung, point.w), last, patient=True)
    return Solution(point.w, point.objective, problem.moments.relative(point.w, point.gradient), search.n_pass)


@dataclass(frozen=True)
class _Point:
    """All that a pass at w tells."""

    w: Array
    objective: float
    gradient: Array
    second: Array


@dataclass
class _Search:
    """Counts the passes."""

    blocks: Blocks
    max_iter: int
    n_pass: int = 0

    def look(self, problem: BlockProblem, w: Array, careful: bool = False) -> _Point:
        self.n_pass += 1
        sums = self.blocks.sum(newton_sums, problem.rule, w, careful)
        return _Point(w, problem.objective(w, sums["value"]), problem.gradient(w, sums["slopes"]), sums["second"])

    def descend(self, problem: BlockProblem, point: _Point, tol: float, patient: bool) -> tuple[_Point, bool]:
        """Steps until the certificate is below a tenth of ``tol``; True where none descends, or patience is short."""
        while problem.moments.relative(point.w, point.gradient) > tol / 10 and self.n_pass < self.max_iter:
            after = self._step(problem, point, patient)
            if after is None and patient:
                after = self._step(problem, self.look(problem, point.w, careful=True), patient)
            if after is None:
                return point, True
            point = after
        return point, False

    def _step(self, problem: BlockProblem, point: _Point, patient: bool) -> _Point | None:
        """The whole step if it descends enough (Armijo, up to rounding), else the best of a row of shorter ones."""
        step = -Cholesky(point.second.T, problem.moments.ridge).solve(point.gradient)
        slope = float(step @ point.gradient)
        rounding = _ROUNDING * (abs(point.objective) + float(np.abs(problem.moments.c) @ np.abs(point.w)))
        after = self.look(problem, point.w + step)
        if after.objective <= point.objective + _SUFFICIENT * slope + rounding:
            return after
        if not patient and slope < -rounding:
            return None
        self.n_pass += 1
        sums = self.blocks.sum(line_sums, problem.rule, point.w, step, LENGTHS)
        reached = [problem.objective(point.w + t * step, v) for t, v in zip(LENGTHS, sums["value"], strict=True)]
        best = int(np.argmin(np.nan_to_num(reached, nan=np.inf)))
        if not reached[best] <= point.objective + _SUFFICIENT * LENGTHS[best] * slope + rounding:
            return None
        return self.look(problem, point.w + LENGTHS[best] * step)


def _ladder(problem: BlockProblem, point: _Point) -> list[float]:
    """Factors of the penalty, falling to 1 from the penalty at which the point would be nearest to optimal."""
    ridge, w = problem.moments.ridge, point.w
    size = float(ridge @ w**2)
    top = float((ridge * w - point.gradient)[ridge > 0] @ w[ridge > 0]) / size if size > 0 else 1.0
    return rungs(top)


def lbfgs(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """L-BFGS, each evaluation one pass."""
    moments = problem.moments

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        sums = problem.blocks.sum(slope_sums, problem.rule, w)
        return problem.objective(w, sums["value"]), problem.gradient(w, sums["slopes"])

    start = solve(problem.easy_sample, "lbfgs", _START_TOL, max_iter).w
    curvature = moments.second.diagonal() + moments.ridge
    found = minimise_scaled(value_and_gradient, start, curvature, tol, max_iter)
    return Solution(found.w, found.value, moments.relative(found.w, found.gradient), found.n_calls)
