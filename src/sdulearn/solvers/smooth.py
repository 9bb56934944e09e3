"""Smooth losses: Newton's method with a line search; L-BFGS where a d x d system is too large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sdulearn.losses import TRAINING_LOSSES, TrainingLoss
from sdulearn.solvers.descent import backtrack, lbfgs, rounding_of
from sdulearn.solvers.interior_point import solve_interior_point
from sdulearn.solvers.linalg import Cholesky, gram_buffer, weighted_gram
from sdulearn.solvers.problem import Problem, Solution
from sdulearn.types import Array

# Each step of the continuation divides the penalty by this, and is solved to this tolerance: it
# only has to start the next.
_PENALTY_RATIO = 10.0
_FINE_RATIO = 4.0
CONTINUATION_TOL = 1e-2
# A curvature below this share of the secant's is taken for that share: where every row is far out,
# the system would be nothing but rounding.
_FLOOR = 1e-8
# Halvings of a Newton step before the step along the secants, and of that one before giving up.
_NEWTON_TRIES = 20
_SECANT_TRIES = 40
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
    w, spent = _continue(problem, w, _PENALTY_RATIO, CONTINUATION_TOL, tol, max_iter)
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


def _continue(problem: Problem, w: Array, ratio: float, loose: float, tol: float, max_iter: int) -> tuple[Array, int]:
    """Down a path of penalties, each this many times the next and solved to the loose tolerance."""
    ridge = float(problem.ridge.max())
    spent = 0
    for factor in _continuation(problem, w, ratio):
        easier = problem.with_penalty(ridge * factor)
        # Where the penalty rules, a tenth of it makes the solution ten times as large.
        w = min((w, ratio * w), key=easier.objective)
        w, n_iter = _descend(easier, w, tol if factor == 1 else loose, max_iter - spent)
        spent += n_iter
    return w, spent


def _from_hinge(problem: Problem, tol: float, max_iter: int) -> tuple[Array, int]:
    hinge = solve_interior_point(replace(problem, loss=TRAINING_LOSSES["double_hinge"]), tol, max_iter)
    w, n_iter = _descend(problem, hinge.w, tol, max_iter - hinge.n_iter)
    return w, hinge.n_iter + n_iter


def _continue_finely(problem: Problem, tol: float, max_iter: int) -> tuple[Array, int]:
    return _continue(problem, np.zeros(len(problem.c)), _FINE_RATIO, tol, tol, max_iter)


def _tends_to_hinge(loss: TrainingLoss) -> bool:
    """Whether far from zero the even part is that of double hinge, |z| / 2."""
    z = np.array([1e9])
    return bool(abs(loss.even(z)[0] / TRAINING_LOSSES["double_hinge"].even(z)[0] - 1) < 1e-6)


def _continuation(problem: Problem, w: Array, ratio: float = _PENALTY_RATIO) -> list[float]:
    """Factors of the penalty, falling to 1 from the penalty at which ``w`` would be nearest to optimal."""
    penalised = problem.ridge > 0
    ridge = float(problem.ridge.max())
    top = float(np.mean(problem.column_scale[penalised] ** 2)) / ridge
    if np.any(w[penalised]):
        pull = problem.ridge * w - problem.gradient_at(w, problem.A @ w)
        top = min(top, penalty_ratio(pull, w, problem.ridge))
    return penalty_factors(top, ratio)


def penalty_ratio(pull: Array, w: Array, ridge: Array) -> float:
    """The factor t for which ``t ridge w`` is nearest to ``pull``, the slope of all but the penalty."""
    size = float(ridge @ w**2)
    return float(pull[ridge > 0] @ w[ridge > 0]) / size if size > 0 else 1.0


def penalty_factors(top: float, ratio: float = _PENALTY_RATIO) -> list[float]:
    """Factors that fall tenfold, or as given, at a time, from about ``top`` to 1."""
    count = int(np.log(max(top, 1.0)) / np.log(ratio))
    return [ratio**k for k in range(count, -1, -1)]


def _descend(problem: Problem, w: Array, tol: float, max_iter: int) -> tuple[Array, int]:
    """Until the certificate is below a tenth of ``tol``, or no longer falls."""
    buffer = gram_buffer(problem.A)
    z = problem.A @ w
    nearest = np.inf
    since = 0
    for iteration in range(max_iter):
        gradient = problem.gradient_at(w, z)
        error = problem.relative(w, gradient)
        if error < nearest / 2:
            nearest = error
            since = iteration
        if error <= tol / 10 or iteration - since >= _PATIENCE:
            return w, iteration
        newton, secant = curvatures(problem.loss, z, problem.loss.even_grad(z))
        for weights, tries in ((newton, _NEWTON_TRIES), (secant, _SECANT_TRIES)):
            gram = weighted_gram(problem.A, problem.a * weights, buffer=buffer)
            dw = -Cholesky(gram, problem.ridge).solve(gradient)
            step = _line_search(problem, w, z, dw, float(gradient @ dw), tries)
            if step:
                break
        else:
            return w, iteration
        w = w + step * dw
        z = problem.A @ w
    return w, max(max_iter, 0)


def curvatures(loss: TrainingLoss, z: Array, slope: Array) -> tuple[Array, Array]:
    """Second derivatives of ``even`` at z, kept from vanishing, and ``even'(z) / z``.

    The second is the curvature of a parabola that touches ``even`` at z and, as a rule, lies above
    it. Where every row is far out, the true curvature is nil and its Newton step goes anywhere;
    that of the parabola descends.
    """
    curvature = loss.even_hess(z)
    far = np.abs(z) > 1e-3
    secant = np.where(far, slope / np.where(far, z, 1.0), curvature)
    return np.maximum(curvature, _FLOOR * secant), secant


def _line_search(problem: Problem, w: Array, z: Array, dw: Array, slope: float, tries: int) -> float:
    dz = problem.A @ dw
    J = problem.objective_at(w, z)

    def value_at(step: float) -> float:
        return problem.objective_at(w + step * dw, z + step * dz)

    return backtrack(value_at, J, slope, rounding_of(J, problem.c, w), tries)


def solve_lbfgs(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """L-BFGS, each variable scaled by the curvature of its column; ``n_iter`` counts evaluations."""

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        z = problem.A @ w
        return problem.objective_at(w, z), problem.gradient_at(w, z)

    start = starts[0].w if starts else np.zeros(len(problem.c))
    curvature = problem.column_scale**2 / problem.a.sum() + problem.ridge
    w, n_calls = lbfgs(value_and_gradient, start, curvature, tol / 10, max_iter)
    return Solution(w, n_calls)
