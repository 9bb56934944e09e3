"""Smooth losses over blocks: Newton's method, started from the solution of a sample; L-BFGS without curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdulearn.blocks.problem import BlockProblem, RowRule
from sdulearn.blocks.source import Blocks, Sums
from sdulearn.solvers.lbfgs import lbfgs
from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.line_search import best_length, rounding_of
from sdulearn.solvers.problem import Solution
from sdulearn.solvers.smooth import CONTINUATION_TOL, curvatures, penalty_factors, penalty_ratio
from sdulearn.types import Array, Codes, Rows

# Step lengths tried in one pass where a whole Newton step ascends: down to 2e-7.
LENGTHS: Array = 0.4 ** np.arange(1.0, 18.0)
_WHOLE_STEP = np.ones(1)


def slope_sums(X: Rows, y: Codes, weight: Array | None, rule: RowRule, w: Array) -> Sums:
    """``sum a even(z)`` and ``sum a even'(z) x``."""
    found = Sums(value=0.0, slopes=np.zeros(len(w)))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        found["value"] += float(a @ rule.loss.even(z))
        found["slopes"] += A.T @ (a * rule.loss.even_grad(z))
    return found


def newton_sums(X: Rows, y: Codes, weight: Array | None, rule: RowRule, w: Array, careful: bool) -> Sums:
    """The same, and ``sum a even''(z) x x'``; or with ``even'(z) / z`` in its place, whose step always descends."""
    found = Sums(value=0.0, slopes=np.zeros(len(w)), second=np.zeros((len(w), len(w))))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        slope = rule.loss.even_grad(z)
        newton, secant = curvatures(rule.loss, z, slope)
        found["value"] += float(a @ rule.loss.even(z))
        found["slopes"] += A.T @ (a * slope)
        found["second"] += weighted_gram(A, a * (secant if careful else newton))
    return found


def line_sums(X: Rows, y: Codes, weight: Array | None, rule: RowRule, w: Array, step: Array) -> Sums:
    """``sum a even(z)`` at many points of a line."""
    value = np.zeros(len(LENGTHS))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        dz = A @ step
        value += [float(a @ rule.loss.even(z + t * dz)) for t in LENGTHS]
    return Sums(value=value)


def solve_newton(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """Newton's method, each step one pass; where a step goes astray, continued from larger penalties as in memory."""
    search = _Search(problem.blocks, max_iter)
    point = search.evaluate(problem, problem.start("newton", max_iter))
    point, astray = search.descend(problem, point, tol, patient=False)
    for factor in _continuation(problem, point) if astray else ():
        easier = problem.with_penalty(factor)
        last = tol if factor == 1 else CONTINUATION_TOL
        point, _ = search.descend(easier, search.evaluate(easier, point.w), last, patient=True)
    optimality = problem.moments.relative(point.w, point.gradient)
    return Solution(point.w, search.n_pass, objective=point.objective, optimality=optimality)


def _continuation(problem: BlockProblem, point: _Point) -> list[float]:
    """Factors of the penalty, falling to 1 from the penalty at which the point would be nearest to optimal."""
    ridge = problem.moments.ridge
    return penalty_factors(penalty_ratio(ridge * point.w - point.gradient, point.w, ridge))


@dataclass(frozen=True)
class _Point:
    """What a pass at w finds."""

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

    def evaluate(self, problem: BlockProblem, w: Array, careful: bool = False) -> _Point:
        self.n_pass += 1
        sums = self.blocks.sum(newton_sums, problem.rule, w, careful)
        objective = problem.moments.objective(w, sums["value"])
        return _Point(w, objective, problem.moments.gradient(w, sums["slopes"]), sums["second"])

    def descend(self, problem: BlockProblem, point: _Point, tol: float, patient: bool) -> tuple[_Point, bool]:
        """Steps until the certificate is below a tenth of ``tol``; True where none descends, or patience is short."""
        moments = problem.moments
        while moments.relative(point.w, point.gradient) > tol / 10 and self.n_pass < self.max_iter:
            after = self._step(problem, point, patient)
            if after is None and patient:
                after = self._step(problem, self.evaluate(problem, point.w, careful=True), patient)
            if after is None:
                return point, True
            point = after
        return point, False

    def _step(self, problem: BlockProblem, point: _Point, patient: bool) -> _Point | None:
        """The whole step if it descends enough, else the best of a row of shorter ones."""
        step = -Cholesky(point.second, problem.moments.ridge).solve(point.gradient)
        slope = float(step @ point.gradient)
        rounding = rounding_of(point.objective, problem.moments.c, point.w)
        after = self.evaluate(problem, point.w + step)
        if best_length(_WHOLE_STEP, [after.objective], point.objective, slope, rounding):
            return after
        if not patient and slope < -rounding:
            return None
        self.n_pass += 1
        values = self.blocks.sum(line_sums, problem.rule, point.w, step)["value"]
        reached = problem.along(point.w, step, LENGTHS, values)
        length = best_length(LENGTHS, reached, point.objective, slope, rounding)
        return self.evaluate(problem, point.w + length * step) if length else None


def solve_lbfgs(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """L-BFGS, each evaluation one pass; one more pass certifies the answer."""
    moments = problem.moments

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        sums = problem.blocks.sum(slope_sums, problem.rule, w)
        return moments.objective(w, sums["value"]), moments.gradient(w, sums["slopes"])

    start = problem.start("lbfgs", max_iter)
    curvature = moments.second.diagonal() + moments.ridge
    w, n_calls = lbfgs(value_and_gradient, start, curvature, tol / 10, max_iter)
    objective, gradient = value_and_gradient(w)
    optimality = moments.relative(w, gradient)
    return Solution(w, n_calls + 1, objective=objective, optimality=optimality)
