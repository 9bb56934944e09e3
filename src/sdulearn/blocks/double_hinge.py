"""Double hinge over blocks: exact, with a handful of passes.

``even(z) = max(flat, |z|) / 2`` bends at ``|z| = flat`` only, so near the solution nearly every row acts as a linear
function of w: it lies on one side of the bend and stays there. Three steps use that.

1. Newton steps on an objective whose bends are rounded over a width ``delta`` bring w near the solution. The sums are
   of size d and d^2, and delta shrinks with the steps.
2. At a w whose uncertain rows are few, those within ``delta`` of a bend are brought together; all others are summed up
   to the one linear function that they are on their side. The small problem of the uncertain rows plus that function is
   solved by the interior point method. It bounds J from below and equals it wherever no summed row changes sides.
3. One pass finds the rows that changed sides at the new w, and by how much that makes J larger: the duality gap.
   They join the small problem until the gap is closed. A row's side is that at the first w of step 2, so every
   block can tell from the few w's so far which rows have been brought together, and keeps no state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.blocks.problem import BlockProblem, RowRule, Solution, affordable_rows, joined
from sdulearn.blocks.smooth import weighted_gram
from sdulearn.blocks.source import Sums
from sdulearn.solvers import Problem, solve
from sdulearn.solvers import Solution as LocalSolution
from sdulearn.solvers.linalg import Cholesky

Array = NDArray[np.float64]

# How well the sample is solved, and the small problem (which crossover then solves exactly); passes after which the
# rounding no longer widens; what a short Newton step leaves of the error; rows that must be near a bend, in units of d;
# how far a block may exceed its share of the rows brought together.
_START_TOL = 1e-4
_SMALL_TOL = 1e-8
_WIDENINGS = 30
_LEFT = 1 / 3
_FEWEST = 4
_UNEVEN = 4


def double_hinge(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """Minimise to a relative KKT residual of a tenth of ``tol``; ``n_iter`` counts passes."""
    sample = problem.sample
    if problem.complete:
        exact = solve(sample, "interior_point", tol, max_iter)
        return Solution(exact.w, sample.objective(exact.w), sample.optimality(exact), 1)
    search = _Search(problem, max_iter)
    while search.n_pass < max_iter:
        search.approach()
        if search.settle(tol):
            break
    return search.best


class _Search:
    """Where the search is: at w, with a solution that may be ``spread`` away, measured in z."""

    def __init__(self, problem: BlockProblem, max_iter: int) -> None:
        sample = problem.easy_sample
        self.w = solve(sample, "interior_point", _START_TOL, max_iter).w
        self.problem, self.max_iter, self.n_pass = problem, max_iter, 0
        self.flat, self.budget, self.caution = problem.rule.loss.flat, affordable_rows(len(self.w)), 1.0
        self.best = Solution(self.w, np.inf, np.inf, 0)
        self.spread = self._moved(_half_solution(sample, self.w, max_iter) - self.w)

    def _sum(self, task: Any, *arguments: Any) -> Any:
        self.n_pass += 1
        return self.problem.blocks.sum(task, self.problem.rule, *arguments)

    def _moved(self, dw: Array) -> float:
        """Root mean square of the change of z."""
        return float(np.sqrt(np.average((self.problem.sample.A @ dw) ** 2, weights=self.problem.sample.a)))

    def _near_bend(self, delta: float) -> float:
        """About how many rows lie within delta of a bend."""
        distance = np.abs(np.abs(self.problem.sample.A @ self.w) - self.flat)
        return self.problem.n_rows * float(np.average(distance <= delta, weights=self.problem.sample.a))

    def _least_width(self) -> float:
        """A width with enough rows near a bend to carry the intercept and the penalty-free directions."""
        distance = np.abs(np.abs(self.problem.sample.A @ self.w) - self.flat)
        share = min(_FEWEST * len(self.w) / self.problem.n_rows, 1.0)
        return float(np.quantile(distance, share))

    def approach(self) -> None:
        """Step 1: Newton steps until one of them is short and the rows in doubt are few."""
        trial, step, same_width = self.w, np.zeros_like(self.w), True
        while self.n_pass < self.max_iter:
            delta = self.spread
            sums = self._sum(rounded_sums, trial, self.w, delta)
            rise = self.problem.objective(trial, sums["value"]) - self.problem.objective(self.w, sums["before"])
            if rise > 0:
                step = step / 2 if same_width else np.zeros_like(step)
                trial, same_width = self.w + step, True
                continue
            self.w = trial
            gradient = self.problem.gradient(self.w, sums["slopes"])
            step = -Cholesky(sums["second"].T, self.problem.moments.ridge).solve(gradient)
            moved = self._moved(step)
            trial = self.w + step
            self.spread = moved * _LEFT if moved < delta else moved if self.n_pass < _WIDENINGS else delta
            same_width = self.spread == delta
            if moved < delta and self._near_bend(self.caution * self.spread) <= self.budget:
                self.w = trial
                return

    def settle(self, tol: float) -> bool:
        """Steps 2 and 3; False where the rows brought together were too few to go by: more caution next time."""
        delta = max(self.caution * self.spread, self._least_width())
        limit = int(np.ceil(_UNEVEN * self.budget / self.problem.blocks.n_blocks))
        points = [self.w]
        found = self._sum(sift, points, delta, limit)
        slopes, level, kept = found["slopes"], found["level"], list[Sums]()
        while found["rows"] and self.n_pass < self.max_iter:
            kept.append(found)
            small, constant = self._small_problem(kept, slopes, level)
            local = solve(small, "interior_point", max(tol, _SMALL_TOL), self.max_iter, [LocalSolution(points[-1], 0)])
            points = [*points, local.w]
            found = self._sum(sift, points, delta, limit)
            J = small.objective(local.w) + constant + found["gap"]
            self._certify(small, local, J, found["gap"])
            if self.best.optimality <= tol / 10 or not (found["rows"] or found["overflow"]):
                return True
        self.caution *= 4
        return False

    def _small_problem(self, kept: list[Sums], slopes: Array, level: float) -> tuple[Problem, float]:
        """The rows brought together, and what the others are: a linear function with its constant."""
        A, a, side = (joined([part for found in kept for part in found[name]]) for name in ("rows", "a", "side"))
        rest = slopes - A.T @ (a * side) / 2
        constant = level - self.flat / 2 * float(a[side == 0].sum())
        moments = self.problem.moments
        return Problem(A, a, moments.c - rest, moments.ridge, self.problem.rule.loss), constant

    def _certify(self, small: Problem, local: LocalSolution, J: float, gap: float) -> None:
        """KKT residual of the whole problem: that of the small one, and the gap that the other rows leave."""
        residual, mismatch = small.kkt(local)
        moments = self.problem.moments
        size = max(abs(J), moments.total / 2)
        optimality = max(moments.relative(local.w, residual), (mismatch + gap) / size)
        if optimality < self.best.optimality:
            self.best = Solution(local.w, J, optimality, self.n_pass)


def _half_solution(sample: Problem, w: Array, max_iter: int) -> Array:
    """The solution of half the sample. It differs from the sample's about as that does from the solution of all."""
    half = slice(None, None, 2)
    a = sample.a[half] * (sample.a.sum() / sample.a[half].sum())
    other = Problem(sample.A[half], a, sample.c, sample.ridge, sample.loss)
    return solve(other, "interior_point", _START_TOL, max_iter, [LocalSolution(w, 0)]).w


def rounded_sums(
    X: Any, y: NDArray[np.int64], weight: Array | None, rule: RowRule, w: Array, before: Array, delta: float
) -> Sums:
    """Value, slopes and second moments at w of the sum with its bends rounded over ``flat +- delta``; value before."""
    d = len(w)
    found = Sums(value=0.0, before=0.0, slopes=np.zeros(d), second=np.zeros((d, d)))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        up, down = (sign * z - rule.loss.flat for sign in (1, -1))
        found["value"] += float(a @ _rounded(z, rule.loss.flat, delta))
        found["before"] += float(a @ _rounded(A @ before, rule.loss.flat, delta))
        found["slopes"] += A.T @ (a * (_ramp(up, delta) - _ramp(down, delta)))
        bends = (np.abs(up) < delta).astype(np.float64) + (np.abs(down) < delta)
        bent = np.flatnonzero(bends)
        found["second"] += weighted_gram(A[bent], (a * bends)[bent] / (4 * delta))
    return found


def _ramp(x: Array, delta: float) -> Array:
    """Derivative of ``max(0, x) / 2`` with its bend rounded: from 0 at -delta to 1/2 at delta."""
    return np.clip(x / delta + 1, 0, 2) / 4


def _rounded(z: Array, flat: float, delta: float) -> Array:
    """``even(z)`` with rounded bends: ``flat / 2`` and the integrals of both ramps."""
    up, down = (np.maximum(sign * z - flat + delta, 0) for sign in (1, -1))
    rise = [np.where(x < 2 * delta, x**2 / (8 * delta), (x - delta) / 2) for x in (up, down)]
    return flat / 2 + rise[0] + rise[1]


def sift(
    X: Any, y: NDArray[np.int64], weight: Array | None, rule: RowRule, points: list[Array], delta: float, limit: int
) -> Sums:
    """With one point: rows within delta of a bend. With more: those that changed sides at the last point only.

    Beside them: at the first point, ``slopes`` and ``level`` of the linear functions that all rows are on their sides;
    at the last, the ``gap`` by which rows that changed sides exceed theirs. Above ``limit`` rows none are given.
    """
    flat, W = rule.loss.flat, np.column_stack(points)
    found = Sums(rows=[], a=[], side=[], overflow=0, slopes=np.zeros(len(W)), level=0.0, gap=0.0)
    for A, a in rule.pieces(X, y, weight):
        Z = A @ W
        sides = np.sign(Z) * (np.abs(Z) > flat)
        side, near = sides[:, 0], np.abs(np.abs(Z[:, 0]) - flat) <= delta
        if len(points) == 1:
            found["slopes"] += A.T @ (a * side) / 2
            found["level"] += flat / 2 * float(a[side == 0].sum())
            chosen = near
        else:
            before = near | (sides[:, 1:-1] != side[:, None]).any(axis=1)
            chosen = ~before & (sides[:, -1] != side)
            z = Z[chosen, -1]
            linear = np.where(side[chosen] == 0, flat, side[chosen] * z) / 2
            found["gap"] += float(a[chosen] @ (rule.loss.even(z) - linear))
        for name, part in (("rows", A[chosen]), ("a", a[chosen]), ("side", side[chosen])):
            if chosen.any():
                found[name].append(part)
    if sum(len(part) for part in found["a"]) > limit:
        found |= Sums(rows=[], a=[], side=[], overflow=1)
    return found
