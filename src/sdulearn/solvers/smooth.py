"""Smooth losses: Newton's method with a line search; L-BFGS where a d x d system is too large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sdulearn.losses import TRAINING_LOSSES, TrainingLoss
from sdulearn.solvers.descent import is_enough, lbfgs, rounding_of
from sdulearn.solvers.interior_point import solve_interior_point
from sdulearn.solvers.linalg import Cholesky
from sdulearn.solvers.problem import Objective, Place, Problem, Solution
from sdulearn.types import Array

# Each step of the continuation divides the penalty by this, and is solved to this tolerance: it
# only has to start the next.
PENALTY_RATIO = 10.0
_FINE_RATIO = 4.0
CONTINUATION_TOL = 1e-2
# Lengths of a step, tried all at once where the whole one ascends: down to 1e-6.
_LENGTHS: Array = 0.5 ** np.arange(1.0, 21.0)
# The coarsest z that tells one place on a kink, about one wide, from another.
_RESOLUTION = 1e-4
# So many steps that do not halve the residual are a walk that leads nowhere.
_PATIENCE = 25


def solve_newton(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """Newton steps with a line search, continued from larger penalties.

    With few rows and a small penalty the solution is huge and the curvature almost nil at every
    row: a Newton step from afar is worthless. So the penalty falls tenfold at a time, each problem
    started from the solution of the last.

    Where the solution is so huge that the loss is all kink, as near the prior 1/2, that may lead
    nowhere. Then the solution of double hinge is the start, and at last a finer continuation.
    """
    w = starts[0].w if starts else np.zeros(len(problem.c))
    w, spent = follow_penalties(problem, w, PENALTY_RATIO, CONTINUATION_TOL, tol, max_iter)
    best = problem.certified(Solution(w, spent))
    for attempt in (_from_hinge, _continue_finely):
        if best.optimality <= tol / 10 or spent >= max_iter or not _tends_to_hinge(problem.loss):
            break
        # Where z is so large that its rounding hides the kink, finer steps find nothing.
        widest = float(np.abs(problem.A @ best.w).max())
        if attempt is _continue_finely and widest * np.finfo(float).eps > _RESOLUTION:
            break
        w, n_iter = attempt(problem, tol, max_iter - spent)
        spent += n_iter
        other = problem.certified(Solution(w, spent))
        if other.optimality < best.optimality:
            best = other
    return Solution(best.w, spent)


def follow_penalties(
    problem: Objective, w: Array, ratio: float, loose: float, tol: float, max_iter: int
) -> tuple[Array, int]:
    """Down a path of penalties, each this many times the next and solved to the loose tolerance."""
    ridge = float(problem.ridge.max())
    spent = 0
    for k in range(_n_penalties(problem, w, ratio), -1, -1):
        easier = problem.with_penalty(ridge * ratio**k)
        # Where the penalty rules, a tenth of it makes the solution ten times as large.
        w = min((w, ratio * w), key=lambda one: easier.at(one).objective)
        w, n_iter = descend(easier, w, loose if k else tol, max_iter - spent)
        spent += n_iter
    return w, spent


def _n_penalties(problem: Objective, w: Array, ratio: float) -> int:
    """How many times the penalty is to fall, from that at which ``w`` would be nearest to optimal."""
    penalised = problem.ridge > 0
    top = float(np.mean(problem.column_scale[penalised] ** 2)) / float(problem.ridge.max())
    if np.any(w[penalised]):
        pull = problem.ridge * w - problem.at(w).gradient
        top = min(top, float(pull[penalised] @ w[penalised]) / float(problem.ridge @ w**2))
    return int(np.log(max(top, 1.0)) / np.log(ratio))


def _from_hinge(problem: Problem, tol: float, max_iter: int) -> tuple[Array, int]:
    hinge = solve_interior_point(replace(problem, loss=TRAINING_LOSSES["double_hinge"]), tol, max_iter)
    w, n_iter = descend(problem, hinge.w, tol, max_iter - hinge.n_iter)
    return w, hinge.n_iter + n_iter


def _continue_finely(problem: Problem, tol: float, max_iter: int) -> tuple[Array, int]:
    return follow_penalties(problem, np.zeros(len(problem.c)), _FINE_RATIO, tol, tol, max_iter)


def _tends_to_hinge(loss: TrainingLoss) -> bool:
    """Whether far from zero the even part is that of double hinge, |z| / 2."""
    z = np.array([1e9])
    return bool(abs(loss.even(z)[0] / TRAINING_LOSSES["double_hinge"].even(z)[0] - 1) < 1e-6)


def descend(problem: Objective, w: Array, tol: float, max_iter: int, patient: bool = True) -> tuple[Array, int]:
    """Newton's steps until the certificate is below a tenth of ``tol``, or no longer falls."""
    here = problem.at(w)
    nearest = np.inf
    since = 0
    for iteration in range(max_iter):
        error = problem.relative(here.w, here.gradient)
        if error < nearest / 2:
            nearest = error
            since = iteration
        if error <= tol / 10 or iteration - since >= _PATIENCE:
            return here.w, iteration
        ahead = _step(problem, here, False, patient)
        if ahead is None and patient:
            ahead = _step(problem, here, True, patient)
        if ahead is None:
            return here.w, iteration
        here = ahead
    return here.w, max(max_iter, 0)


def _step(problem: Objective, here: Place, careful: bool, patient: bool) -> Place | None:
    """Where a whole step leads, or the best of shorter ones where it ascends; None where that does not descend."""
    step = -Cholesky(here.hessian(careful), problem.ridge).solve(here.gradient)
    slope = float(here.gradient @ step)
    rounding = rounding_of(here.objective, problem.c, here.w)
    ahead = problem.at(here.w + step)
    if is_enough(ahead.objective, 1.0, here.objective, slope, rounding):
        return ahead
    if not patient:
        return None
    values = problem.along(here.w, step, _LENGTHS)
    best = int(np.argmin(np.nan_to_num(values, nan=np.inf)))
    if not is_enough(values[best], _LENGTHS[best], here.objective, slope, rounding):
        return None
    return problem.at(here.w + _LENGTHS[best] * step)


def solve_lbfgs(problem: Objective, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """L-BFGS, each variable scaled by the curvature of its column; ``n_iter`` counts evaluations."""

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        here = problem.at(w)
        return here.objective, here.gradient

    start = starts[0].w if starts else np.zeros(len(problem.c))
    curvature = problem.squares + problem.ridge
    w, n_calls = lbfgs(value_and_gradient, start, curvature, tol / 10, max_iter)
    return Solution(w, n_calls)
