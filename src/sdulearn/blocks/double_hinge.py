"""Double hinge over blocks: exact, with a handful of passes.

``even(z) = max(flat, |z|) / 2`` bends at ``|z| = flat`` only, so near the solution nearly every row
acts as a linear function of w: it lies on one side of the bend and stays there. Three steps use
that.

1. Newton steps on an objective whose bends are rounded over a width ``delta`` bring w near the solution. The sums are
   of size d and d^2, and delta shrinks with the steps.
2. At a w whose uncertain rows are few, those within ``delta`` of a bend are brought together; all others are summed up
   to the one linear function that they are on their side. The small problem of the uncertain rows
   plus that function is solved by the interior point method. It bounds J from below and equals it
   wherever no summed row changes sides.
3. One pass finds the rows that changed sides at the new w, and by how much that makes J larger: the duality gap.
   They join the small problem until the gap is closed. A row's side is that at the first w of step
   2, so every block can tell from the few w's so far which rows have been brought together, and
   keeps no state.

Where too many different rows crowd at a bend to be brought together, step 1 goes on until the
rounding is so narrow that its own duality gap is small enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sdulearn.blocks.bends import rounded_line, rounded_sums, sift
from sdulearn.blocks.problem import BlockProblem, Solution, affordable_rows, joined
from sdulearn.blocks.smooth import LENGTHS
from sdulearn.blocks.source import Sums
from sdulearn.solvers import Problem, solve
from sdulearn.solvers import Solution as LocalSolution
from sdulearn.solvers.linalg import Cholesky
from sdulearn.types import Array

# How well the sample is solved, and the small problem, which crossover then solves exactly, or not
# at all; the residual at which nothing is left to gain, and rounds after which a solved problem is
# left alone.
_START_TOL = 1e-4
_SMALL_TOL, _SMALL_ITER = 1e-8, 100
_LAST_DIGITS, _ROUNDS = 1e-14, 5
# Widths of the rounding, in units of ``flat``: the narrowest, below which rounding errors rule, and
# the first where half the rows crowd at a bend.
_NARROWEST, _WIDE = 3e-9, 0.5
# A short Newton step leaves a third of its length in doubt; the width falls at most so fast, slowly
# after a failure.
_LEFT, _FASTEST, _SLOWLY = 1 / 3, 1e-2, 1 / 4
# Rows that must be near a bend for a small problem, in units of d; share of the weight that must
# bend for a first step.
_FEWEST, _FEW_BENT = 4, 1e-2
# How far a block may exceed its share of the rows that are brought together; failures after which
# to give up.
_UNEVEN, _ATTEMPTS = 4, 10


def double_hinge(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """Minimise to a relative KKT residual of a tenth of ``tol``; ``n_iter`` counts passes."""
    sample = problem.sample
    if problem.complete:
        exact = solve(sample, "interior_point", tol, max_iter)
        return Solution(exact.w, sample.objective(exact.w), sample.optimality(exact), 1)
    search = _Search(problem, tol, max_iter)
    while search.n_pass < max_iter:
        if search.approach(tol) or search.settle(tol):
            break
    return search.best


class _Search:
    """Where the search is: at w, with a solution that may be ``spread`` away, measured in z."""

    def __init__(self, problem: BlockProblem, tol: float, max_iter: int) -> None:
        sample = problem.easy_sample
        self.w = solve(sample, "interior_point", _START_TOL, max_iter).w
        self.problem, self.max_iter, self.n_pass, self.attempts = problem, max_iter, 0, 0
        self.path: list[tuple[Array, float]] = []
        self.flat, self.budget, self.caution = problem.rule.loss.flat, affordable_rows(len(self.w)), 1.0
        self.best = Solution(self.w, np.inf, np.inf, 0)
        self.narrowest = max(tol / 2, _NARROWEST) * self.flat
        spread = self._moved(_half_solution(sample, self.w, max_iter) - self.w)
        # Where half the rows are as near to a bend as that, the sample has no more to say than that
        # z is about flat.
        crowded = self._near_bend(spread) > self.problem.n_rows / 2
        self.spread = max(spread, _WIDE * self.flat if crowded else self.narrowest)
        self.fastest = _SLOWLY if crowded else _FASTEST

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

    def approach(self, tol: float) -> bool:
        """Step 1: Newton steps until the rows in doubt are few; True where that alone solved the problem.

        At first the rounding is as wide as the steps are long; once a step was shorter, it only
        narrows. A step that ascends is shortened, or taken anew where it was computed with another
        width.
        """
        trial, step, same_width, at_the_end = self.w, np.zeros_like(self.w), True, 0
        while self.n_pass < self.max_iter and at_the_end < _ATTEMPTS:
            delta = self.spread
            at_the_end += delta == self.narrowest
            sums = self._sum(rounded_sums, trial, self.w, delta)
            J = self.problem.objective(trial, sums["value"])
            before = self.problem.objective(self.w, sums["before"])
            if before < J:
                trial = self.w + self._best_length(step, delta, before) * step if same_width else self.w
                same_width = True
                continue
            self.w = trial
            gradient = self.problem.gradient(self.w, sums["slopes"])
            self._certify(self.w, J + sums["excess"], gradient, sums["gap"])
            if self.best.optimality <= tol:
                return True
            step = -Cholesky(sums["second"].T, self.problem.moments.ridge).solve(gradient)
            following = self._narrow(step, delta, sums["bent"])
            if following is None:
                self.w = self.w + step
                return False
            trial, same_width = following, self.spread == delta
        return True

    def _narrow(self, step: Array, delta: float, bent: float) -> Array | None:
        """Where to look next, ``spread`` being the width to look with; None where the rows in doubt are few."""
        moved = self._moved(step)
        if not self.path and bent < _FEW_BENT * self.problem.moments.total:
            # Too few rows bend to say where to go, above all for the intercept.
            self.spread = 4 * delta
            return self.w
        if moved >= delta:
            self.spread = delta if self.path else moved
            return self.w + step
        self.path.append((self.w + step, delta))
        self.spread = max(moved * _LEFT, delta * self.fastest, self.narrowest)
        if self._near_bend(self.caution * self.spread) <= self.budget:
            return None
        return _predict(self.path, self.spread)

    def _best_length(self, step: Array, delta: float, before: float) -> float:
        """The best of a row of lengths of a step; 0 where none descends."""
        value = self._sum(rounded_line, self.w, step, delta, LENGTHS)["value"]
        reached = [self.problem.objective(self.w + t * step, v) for t, v in zip(LENGTHS, value, strict=True)]
        return float(LENGTHS[int(np.argmin(reached))]) if min(reached) < before else 0.0

    def settle(self, tol: float) -> bool:
        """Steps 2 and 3; False where that failed, and the next attempt must begin nearer or with more rows."""
        delta = max(self.caution * self.spread, self._least_width())
        limit = int(np.ceil(_UNEVEN * self.budget / self.problem.blocks.n_blocks))
        points = [self.w]
        found = self._sum(sift, points, delta, limit)
        if found["overflow"]:
            self.budget //= 4
            return False
        slopes, level, kept = found["slopes"], found["level"], list[Sums]()
        while found["rows"] and not found["overflow"] and self.n_pass < self.max_iter:
            kept.append(found)
            small, constant = self._small_problem(kept, slopes, level)
            # Too few rows may leave the small problem unbounded; what comes of that, the next pass
            # refutes.
            with np.errstate(all="ignore"):
                local = solve(small, "interior_point", max(tol, _SMALL_TOL), _SMALL_ITER, [LocalSolution(self.w, 0)])
            points = [*points, local.w]
            found = self._sum(sift, points, delta, limit)
            if found["known"] != sum(one["given"] for one in kept):
                break
            # Rows outside have the slopes of their sides, so the residual is that of the small
            # problem.
            residual, mismatch = small.kkt(local)
            J = small.objective(local.w) + constant + found["gap"]
            self._certify(local.w, J, residual, mismatch + found["gap"])
            solved = self.best.optimality <= tol / 10
            # One more round where rows are still on the wrong side, for the last digits.
            if solved and (not found["rows"] or self.best.optimality <= _LAST_DIGITS or len(kept) > _ROUNDS):
                return True
        self.caution, self.fastest, self.spread = 4 * self.caution, _SLOWLY, 4 * self.spread
        self.attempts += 1
        return self.attempts == _ATTEMPTS

    def _small_problem(self, kept: list[Sums], slopes: Array, level: float) -> tuple[Problem, float]:
        """The rows brought together, and what the others are: a linear function with its constant."""
        A, a, side = (joined([part for found in kept for part in found[name]]) for name in ("rows", "a", "side"))
        rest = slopes - A.T @ (a * side) / 2
        constant = level - self.flat / 2 * float(a[side == 0].sum())
        moments = self.problem.moments
        return Problem(A, a, moments.c - rest, moments.ridge, self.problem.rule.loss), constant

    def _certify(self, w: Array, J: float, residual: Array, gap: float) -> None:
        """Keep w if its KKT residual is the smallest so far, given the residual and the gap of all rows."""
        moments = self.problem.moments
        optimality = max(moments.relative(w, residual), gap / max(abs(J), moments.total / 2))
        if optimality < self.best.optimality:
            self.best = Solution(w, J, optimality, self.n_pass)


def _predict(path: list[tuple[Array, float]], delta: float) -> Array:
    """The solution at the next width, on a line through the last two."""
    (last, width), earlier = path[-1], [one for one in path[:-1] if one[1] > path[-1][1]]
    if not earlier or width <= delta:
        return last
    before, wider = earlier[-1]
    return last + (last - before) * ((width - delta) / (wider - width))


def _half_solution(sample: Problem, w: Array, max_iter: int) -> Array:
    """The solution of half the sample. It differs from the sample's about as that does from the solution of all."""
    half = slice(None, None, 2)
    a = sample.a[half] * (sample.a.sum() / sample.a[half].sum())
    other = Problem(sample.A[half], a, sample.c, sample.ridge, sample.loss)
    return solve(other, "interior_point", _START_TOL, max_iter, [LocalSolution(w, 0)]).w
