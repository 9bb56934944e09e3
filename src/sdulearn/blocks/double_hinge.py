"""Double hinge over blocks: exact, with a handful of passes.

``even(z) = max(flat, |z|) / 2`` has its kinks at ``|z| = flat`` only, so near the solution nearly
every row is a linear function of w: it lies on one side of the kink and stays there. Three steps
use that.

1. Replacing the slopes of a sample at the last w by those of all rows, in one pass, brings its
   solution near to that of all rows (``_Search.correct``). Where that no longer helps and many rows
   are uncertain, Newton's method continues on kinks rounded over a width ``delta``, which falls.
2. Once few rows are uncertain, those within ``delta`` of a kink are gathered; all others are summed
   up to the one linear function that they are on their sides. The interior point method solves the
   small problem of the uncertain rows plus that function. It bounds J from below and equals it
   where no summed row changes sides.
3. One pass finds the rows that changed sides at the new w, and by how much J is larger for it: the
   duality gap. They join the small problem until the gap is closed. A row's side is that at the
   first w of step 2, so every block can work out from the few w so far which rows have been
   gathered, and keeps no state.

Where too many different rows are near a kink to be gathered, step 1 goes on until the rounding is
so narrow that its own duality gap is small enough. A row at distance x from its kink, ``|x| <
delta``, has the rounded slope ``(x / delta + 1) / 4``, which leaves it a Fenchel-Young gap of ``|x|
(1 - |x| / delta) / 4 <= delta / 16``. The gap of all rows is thus at most ``sum(a) delta / 16``,
and relative to the objective, which is at least ``sum(a) flat / 2``, at most ``delta / (8 flat)``:
a width of ``tol / 2`` in units of flat certifies a sixteenth of ``tol``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from sdulearn.blocks import Sums, row_keys
from sdulearn.blocks.problem import SAMPLE_TOL, BlockProblem, RowRule, slope_sums
from sdulearn.losses import TrainingLoss
from sdulearn.solvers import solve
from sdulearn.solvers.linalg import affordable_rows, joined
from sdulearn.solvers.problem import Problem, Solution
from sdulearn.solvers.smooth import CONTINUATION_TOL, descend
from sdulearn.types import Array, Codes, Mask, Rows

# Factor by which a width, a number of rows or a margin changes if it was too small or too large.
# Any number of this size will do: it trades passes for rows.
_FACTOR = 4
# The narrowest rounding, in units of flat, about sqrt(eps) / 5: z is exact to eps, so a slope is
# exact to eps / delta, and below this width that error exceeds what narrowing still gains.
_NARROWEST = 3e-9
# The first rounding if half the rows are near a kink: half of the flat part remains between the
# two.
_WIDE = 0.5
# After a correction the solution is assumed to be within a third of the step. Over 144 problems of
# all kinds a half and a quarter took 5 and 8 per cent more passes.
_LEFT = 1 / 3
# The small problem takes some 30 iterations; if it takes more than these, it has too few rows and
# is unbounded.
_SMALL_ITER = 100
# A residual at which only rounding is left, and the rounds in which a solved problem may get there.
_LAST_DIGITS = 1e-14
_ROUNDS = 5
# Failures after which the best solution so far is returned, with its certificate.
_ATTEMPTS = 10


def solve_double_hinge(problem: BlockProblem, tol: float, max_iter: int) -> Solution:
    """Minimise to a relative KKT residual of a tenth of ``tol``; ``n_iter`` counts passes."""
    if problem.n_whole == len(problem.sample.a):
        # The sample is all rows.
        return replace(solve(problem.sample, "interior_point", tol, max_iter), n_iter=1)
    search = _Search(problem, tol, max_iter)
    near = search.correct()
    while search.n_left > 0:
        if (not near and search.approach()) or search.solve_gathered():
            break
        near = False
    return search.best


class _Search:
    """State of the search: at w, with the solution about ``spread`` away, measured in z."""

    def __init__(self, problem: BlockProblem, tol: float, max_iter: int) -> None:
        self.problem = problem
        self.tol = tol
        self.max_iter = max_iter
        self.attempts = 0
        self.flat = problem.rule.loss.flat
        self.solution = problem.start("interior_point", max_iter)
        self.w = self.solution.w
        self.best = Solution(self.w, 0)
        self.budget = affordable_rows(len(self.w))
        self.caution = 1.0
        # See the derivation above.
        self.narrowest = max(tol / 2, _NARROWEST) * self.flat
        self.spread = np.inf
        self.keys = row_keys(problem.sample.A)

    def correct(self) -> bool:
        """Step 1, as long as the sample helps; True once few rows are uncertain."""
        moved = np.inf
        sample = self.problem.sample
        while self.spread > self.narrowest and self.n_left > 0:
            corrected = self._corrected()
            # Root mean square of the change of z.
            moved = float(np.sqrt(np.average((sample.A @ (corrected.w - self.w)) ** 2, weights=sample.a)))
            if not moved < self.spread:
                break
            self.solution = corrected
            self.w = corrected.w
            self.spread = max(moved * _LEFT, self.narrowest)
            if self._near_kink(self.spread) <= self.budget:
                return True
        if not self._near_kink(moved) <= self.problem.n_rows / 2:
            # The sample only shows that z is about flat.
            self.spread = _WIDE * self.flat
        return False

    @property
    def n_left(self) -> int:
        """Number of passes left."""
        return self.max_iter - self.problem.blocks.n_passes

    def _sum(self, task: Callable[..., Sums], *arguments: object) -> Sums:
        return self.problem.blocks.sum(task, self.problem.rule, *arguments)

    def _corrected(self) -> Solution:
        """Solve the sample again, its slopes at the last solution replaced by those of all rows."""
        assert self.solution.dual is not None
        sample = self.problem.sample
        n_whole = self.problem.n_whole
        own = sample.A[n_whole:].T @ self.solution.dual[n_whole:]
        slopes = self.problem.blocks.sum(slope_sums, self.problem.sampled, self.w)["slopes"]
        corrected = replace(sample, c=sample.c + own - slopes)
        return solve(corrected, "interior_point", SAMPLE_TOL, self.max_iter, [Solution(self.w, 0)])

    def _distance(self) -> Array:
        """Return the distance of the rows of the sample to their kink."""
        return np.abs(np.abs(self.problem.sample.A @ self.w) - self.flat)

    def _near_kink(self, delta: float) -> float:
        """Estimate how many different rows lie within delta of a kink."""
        near = self._distance() <= delta
        n_different = len(np.unique(self.keys[near]))
        if 2 * n_different <= np.count_nonzero(near):
            return n_different
        return self.problem.n_rows * float(np.average(near, weights=self.problem.sample.a))

    def approach(self) -> bool:
        """Step 1 by Newton's method, until few rows are uncertain; True if that solved it."""
        start = self.w
        wider = np.inf
        while self.n_left > 0:
            delta = self.spread
            last = delta == self.narrowest
            rule = replace(self.problem.rule, loss=cast(TrainingLoss, RoundedHinge(self.flat, delta)))
            rounded = replace(self.problem, rule=rule, known={})
            w, _ = descend(rounded, start, self.tol if last else CONTINUATION_TOL, self.n_left)
            before = self.w
            self.w = w
            if last:
                break
            self.spread = max(delta / _FACTOR, self.narrowest)
            if self._near_kink(self.caution * self.spread) <= self.budget:
                return False
            # The solution at the next width, on a line through the last two.
            start = w + (w - before) * ((delta - self.spread) / (wider - delta))
            wider = delta
        sums = self.problem.blocks.sum(gap_sums, rule, self.w, self.problem.rule.loss)
        J = self.problem.objective(self.w, sums["value"])
        self._certify(self.w, J, self.problem.gradient(self.w, sums["slopes"]), sums["gap"])
        return True

    def solve_gathered(self) -> bool:
        """Steps 2 and 3; False if another attempt must start nearer or with more rows."""
        # Wide enough for the rows that fix the intercept and the directions without penalty: about
        # d.
        share = min(_FACTOR * len(self.w) / self.problem.n_rows, 1.0)
        delta = max(self.caution * self.spread, float(np.quantile(self._distance(), share)))
        # A block may hold a few times its share of the rows.
        limit = int(np.ceil(_FACTOR * self.budget / self.problem.blocks.n_blocks))
        points = [self.w]
        sums = self._sum(kinked_rows, points, delta, limit)
        if sums["overflow"]:
            self.budget //= _FACTOR
            return False
        linear = (sums["slopes"], sums["level"])
        kept: list[Sums] = []
        while sums["rows"] and not sums["overflow"] and self.n_left > 0:
            kept.append(sums)
            small, constant = self._small_problem(kept, *linear)
            # With too few rows the small problem may be unbounded; the next pass shows it.
            with np.errstate(all="ignore"):
                local = solve(small, "interior_point", self.tol, _SMALL_ITER, [Solution(self.w, 0)])
            points = [*points, local.w]
            sums = self._sum(kinked_rows, points, delta, limit)
            if sums["known"] != sum(one["given"] for one in kept):
                break
            # Rows outside have the slopes of their sides, so the residual is that of the small
            # problem.
            residual, gap = small.kkt_at(local, small.A @ local.w)
            J = local.objective + constant + sums["gap"]
            self._certify(local.w, J, residual, gap + sums["gap"])
            # One more round for the last digits if rows are still on the wrong side.
            exact = self.best.optimality <= _LAST_DIGITS or len(kept) > _ROUNDS
            if self.best.optimality <= self.tol / 10 and (exact or not sums["rows"]):
                return True
        self.caution *= _FACTOR
        self.spread *= _FACTOR
        self.attempts += 1
        return self.attempts == _ATTEMPTS

    def _small_problem(self, kept: list[Sums], slopes: Array, level: float) -> tuple[Problem, float]:
        """Return the problem of the gathered rows, the rest linear, and its constant."""
        A, a, side = (joined([part for sums in kept for part in sums[name]]) for name in ("rows", "a", "side"))
        rest = slopes - A.T @ (a * side) / 2
        constant = level - self.flat / 2 * float(a[side == 0].sum())
        return Problem(A, a, self.problem.c - rest, self.problem.ridge, self.problem.rule.loss), constant

    def _certify(self, w: Array, J: float, residual: Array, gap: float) -> None:
        """Keep w if its KKT residual over all rows is the smallest so far."""
        optimality = self.problem.optimality(w, J, residual, gap)
        if optimality < self.best.optimality:
            self.best = Solution(w, self.problem.blocks.n_passes, objective=J, optimality=optimality)


@dataclass(frozen=True)
class RoundedHinge:
    """``even`` with its kinks rounded over ``flat +- delta``."""

    flat: float
    delta: float

    def even(self, z: Array) -> Array:
        """The integral of the slope."""
        past = np.maximum(np.stack([z, -z]) - self.flat + self.delta, 0)
        rise = np.where(past < 2 * self.delta, past**2 / (8 * self.delta), (past - self.delta) / 2)
        return self.flat / 2 + rise.sum(axis=0)

    def even_grad(self, z: Array) -> Array:
        """From 0 at ``flat - delta`` to 1/2 at ``flat + delta``."""
        ramp = np.clip((np.stack([z, -z]) - self.flat) / self.delta + 1, 0, 2) / 4
        return ramp[0] - ramp[1]

    def even_hess(self, z: Array) -> Array:
        """Constant near a kink; a row may be near both if delta is larger than flat."""
        kinks = np.abs(np.stack([z, -z]) - self.flat) < self.delta
        return kinks.sum(axis=0) / (4 * self.delta)


def gap_sums(X: Rows, y: Codes, weight: Array | None, rule: RowRule, w: Array, exact: TrainingLoss) -> Sums:
    """Sum the exact loss, the slopes of the rule's loss, and the duality gap that these leave."""
    sums = Sums(value=0.0, slopes=np.zeros(len(w)), gap=0.0)
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        even = exact.even(z)
        slope = rule.loss.even_grad(z)
        sums["value"] += float(a @ even)
        sums["slopes"] += A.T @ (a * slope)
        sums["gap"] += float(a @ (even + exact.even_conjugate(slope) - slope * z))
    return sums


def kinked_rows(
    X: Rows, y: Codes, weight: Array | None, rule: RowRule, points: list[Array], delta: float, limit: int
) -> Sums:
    """Return rows within delta of a kink at the only point, or that changed sides at the last one.

    With them come ``slopes`` and ``level`` of the linear functions that rows are on their sides,
    the ``gap`` of those that changed sides, and how many rows were returned before (``known``), as
    a check.
    """
    sums = Sums(rows=[], a=[], side=[], overflow=0, level=0.0, gap=0.0, known=0, given=0)
    sums["slopes"] = np.zeros(len(points[0]))
    for A, a in rule.pieces(X, y, weight):
        # Point by point: a product with all at once may round a row on a kink to its other side.
        Z = np.column_stack([A @ w for w in points])
        sides = np.sign(Z) * (np.abs(Z) > rule.loss.flat)
        near = np.abs(np.abs(Z[:, 0]) - rule.loss.flat) <= delta
        chosen = near
        if len(points) == 1:
            sums["slopes"] += A.T @ (a * sides[:, 0]) / 2
            sums["level"] += rule.loss.flat / 2 * float(a[sides[:, 0] == 0].sum())
        else:
            chosen = _add_changed(sums, rule, a, Z[:, -1], sides, near)
        if chosen.any():
            sums["rows"].append(A[chosen])
            sums["a"].append(a[chosen])
            sums["side"].append(sides[chosen, 0])
    sums["given"] = _count(sums)
    if sums["given"] > limit:
        _merge_equal(sums)
    if _count(sums) > limit:
        sums |= Sums(rows=[], a=[], side=[], overflow=1)
    return sums


def _count(sums: Sums) -> int:
    return sum(len(part) for part in sums["a"])


def _add_changed(sums: Sums, rule: RowRule, a: Array, z: Array, sides: Array, near: Mask) -> Mask:
    """Return which rows changed sides at the last point only; add up their gap."""
    first = sides[:, 0]
    before = near | (sides[:, 1:-1] != first[:, None]).any(axis=1)
    changed = ~before & (sides[:, -1] != first)
    sums["known"] += int(before.sum())
    linear = np.where(first == 0, rule.loss.flat, first * z)[changed] / 2
    sums["gap"] += float(a[changed] @ (rule.loss.even(z[changed]) - linear))
    return changed


def _merge_equal(sums: Sums) -> None:
    """Merge equal rows; a table of categories has few different ones."""
    rows = joined(sums["rows"])
    side = joined(sums["side"])
    keys = row_keys(rows) + (side + 1).astype(np.uint64)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    sums["a"] = [np.bincount(place, weights=joined(sums["a"]))]
    sums["rows"] = [rows[first]]
    sums["side"] = [side[first]]
