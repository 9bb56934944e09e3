"""Smooth losses by Newton's method or L-BFGS, for one objective or many at once.

A step of length t along a direction of slope ``slope < 0`` is taken where it decreases J enough (Armijo), up to
rounding:

    J(t) <= J(0) + 1e-4 t slope + rounding.

Near the solution the decrease is smaller than the last digit of J: without the last term no step would be taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdulearn.losses import TRAINING_LOSSES, TrainingLoss
from sdulearn.solvers.interior_point import solve_interior_point
from sdulearn.solvers.linalg import PATIENCE, Cholesky, weighted_gram
from sdulearn.solvers.problem import Place, Problem, Solution
from sdulearn.types import Array, Indices, Mask

Numbers = Array | float

# The usual constant of Armijo's rule: nearly every decrease is enough.
_SUFFICIENT = 1e-4
# Lengths of a step that are tried: down to 1e-6.
_LENGTHS: Array = 0.5 ** np.arange(21.0)

# From columns of W and the numbers of their problems: values and gradients, one column each.
Batch = Callable[[Array, Indices], tuple[Array, Array]]


def is_enough(value: Numbers, length: Numbers, J: Numbers, slope: Numbers, rounding: float) -> Mask:
    """Whether J falls enough along a step of this length (Armijo's rule)."""
    return np.asarray(value <= J + _SUFFICIENT * length * slope + rounding)


def backtrack_many(
    value_and_gradient: Batch, W: Array, live: Indices, D: Array, f: Array, g: Array
) -> tuple[Array, Array, Array]:
    """Return step lengths along ``-D`` (0: none descends), values and gradients of problems."""
    slope = -np.einsum("ij,ij->j", g, D)
    step = np.zeros(len(live))
    todo = np.arange(len(live))
    f_new = f.copy()
    g_new = g.copy()
    for length in _LENGTHS:
        f_try, g_try = value_and_gradient(W[:, todo] - length * D[:, todo], live[todo])
        # These values are means over rows, of order one.
        good = is_enough(f_try, length, f[todo], slope[todo], rounding=1e-14)
        step[todo[good]] = length
        f_new[todo[good]] = f_try[good]
        g_new[:, todo[good]] = g_try[:, good]
        todo = todo[~good]
        if not len(todo):
            break
    return step, f_new, g_new


# Steps, changes of the gradient, and the inverse of their products (0: the pair is skipped).
Memory = list[tuple[Array, Array, Array]]

# Curvatures below this share of a rough one would make a wild direction.
_LEAST_CURVATURE = 1e-8


def gradient_norm(gradient: Array, scale: Array) -> Array:
    """Return the norm of a gradient under a rough inverse Hessian."""
    return np.sqrt(np.sum(gradient**2 * scale, axis=0))


def lbfgs_many(
    value_and_gradient: Batch, W: Array, scale: Array, tol: float, max_iter: int, memory: int = 20
) -> tuple[Array, Array]:
    """Return minimisers and minima by L-BFGS (Liu and Nocedal, 1989); columns of ``scale``: first inverse Hessians."""
    W = W.copy()
    live: Indices = np.arange(W.shape[1])
    f, g = value_and_gradient(W, live)
    values = f.copy()
    past = Memory()
    for _ in range(max_iter):
        keep = gradient_norm(g, scale[:, live]) > tol
        if not keep.all():
            live, f, g = live[keep], f[keep], g[:, keep]
            past = [(S[:, keep], Y[:, keep], r[keep]) for S, Y, r in past]
        if not len(live):
            break
        D = _two_loop(g, scale[:, live], past)
        step, f, g_new = backtrack_many(value_and_gradient, W[:, live], live, D, f, g)
        S = -step * D
        Y = g_new - g
        curvature = np.einsum("ij,ij->j", S, Y)
        enough = curvature > _LEAST_CURVATURE * np.einsum("ij,ij->j", Y * scale[:, live], Y)
        inverse = np.where(enough, 1 / np.where(enough, curvature, 1.0), 0.0)
        past = [*past[1 - memory :], (S, Y, inverse)]
        W[:, live] += S
        values[live] = f
        # Where the line search failed, a zero gradient ends the descent.
        g = np.where(step > 0, g_new, 0.0)
    return W, values


def _two_loop(g: Array, scale: Array, past: Memory) -> Array:
    """Return the L-BFGS direction (to be subtracted), column by column."""
    q = g.copy()
    coefficients: list[Array] = []
    for S, Y, r in reversed(past):
        coefficients.append(r * np.einsum("ij,ij->j", S, q))
        q -= coefficients[-1] * Y
    if past:
        _, Y, r = past[-1]
        spread = r * np.einsum("ij,ij->j", Y * scale, Y)
        q *= np.clip(1 / np.where(r > 0, spread, 1), 1e-3, 1e3)
    q *= scale
    for (S, Y, r), coefficient in zip(past, reversed(coefficients), strict=True):
        q += (coefficient - r * np.einsum("ij,ij->j", Y, q)) * S
    return q


@dataclass
class Counted:
    """An objective that counts how often it is evaluated."""

    objective: Callable[..., tuple[Array, Array]]
    n_calls: int = 0

    def __call__(self, W: Array, columns: Indices, **options: bool) -> tuple[Array, Array]:
        self.n_calls += 1
        return self.objective(W, columns, **options)


# Each step of the continuation divides the penalty by this, and is solved to this tolerance: it only starts the next.
_PENALTY_RATIO = 10.0
_CONTINUATION_TOL = 1e-2


def solve_newton(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """Run Newton's method with a line search, from the solutions of larger penalties."""
    # From afar a step is worthless: the solution may be huge, and the curvature zero at every row.
    w, n_iter = _follow_penalties(problem, starts[0].w if starts else np.zeros(len(problem.c)), tol, max_iter)
    best = problem.certified(Solution(w, n_iter))
    if best.optimality <= tol / 10 or n_iter >= max_iter:
        return best
    # Near the prior 1/2 the solution is so huge that the loss is all kink: start from double hinge.
    hinge = solve_interior_point(replace(problem, loss=TRAINING_LOSSES["double_hinge"]), tol, max_iter - n_iter)
    n_iter += hinge.n_iter
    w, n_steps = _descend(problem, hinge.w, tol, max_iter - n_iter)
    other = problem.certified(Solution(w, n_iter + n_steps))
    return replace(min(best, other, key=lambda solution: solution.optimality), n_iter=n_iter + n_steps)


def _follow_penalties(problem: Problem, w: Array, tol: float, max_iter: int) -> tuple[Array, int]:
    """Solve ever smaller penalties, the last one to ``tol``; return w and the iterations."""
    ridge = float(problem.ridge.max())
    n_iter = 0
    for k in range(_n_penalties(problem, w), -1, -1):
        problem = problem.with_penalty(ridge * _PENALTY_RATIO**k)
        # Where the penalty rules, a tenth of it makes the solution ten times as large.
        w = min((w, _PENALTY_RATIO * w), key=lambda start: problem.at(start).objective)
        w, n_steps = _descend(problem, w, _CONTINUATION_TOL if k else tol, max_iter - n_iter)
        n_iter += n_steps
    return w, n_iter


def _n_penalties(problem: Problem, w: Array) -> int:
    """Return how many larger penalties to solve first, up to that for which w is best."""
    penalised = problem.ridge > 0
    top = float(np.mean(problem.squares[penalised])) * problem.total / float(problem.ridge.max())
    if np.any(w[penalised]):
        pull = problem.ridge * w - problem.at(w).gradient
        top = min(top, float(pull[penalised] @ w[penalised]) / float(problem.ridge @ w**2))
    return int(np.log(max(top, 1.0)) / np.log(_PENALTY_RATIO))


def _descend(problem: Problem, w: Array, tol: float, max_iter: int) -> tuple[Array, int]:
    """Take Newton steps until the residual is below a tenth of ``tol``, or no longer falls."""
    here = problem.at(w)
    nearest = np.inf
    since = 0
    for iteration in range(max_iter):
        error = problem.relative(here.w, here.gradient)
        if error < nearest / 2:
            nearest = error
            since = iteration
        if error <= tol / 10 or iteration - since >= PATIENCE:
            return here.w, iteration
        ahead = _step(problem, here, False) or _step(problem, here, True)
        if ahead is None:
            return here.w, iteration
        here = ahead
    return here.w, max(max_iter, 0)


def _curvatures(loss: TrainingLoss, z: Array, careful: bool) -> Array:
    """Return second derivatives of ``even`` at z or, if careful, those of a parabola above it."""
    # Where every row is far out, the former vanish: the system would be only rounding, and a Newton step may ascend.
    curvature = loss.even_hess(z)
    far = np.abs(z) > 1e-3
    secant = np.where(far, loss.even_grad(z) / np.where(far, z, 1.0), curvature)
    return secant if careful else np.maximum(curvature, _LEAST_CURVATURE * secant)


def _step(problem: Problem, here: Place, careful: bool) -> Place | None:
    """Return where a whole step leads, or the best of shorter ones; None where none descends."""
    hessian = weighted_gram(problem.A, problem.a * _curvatures(problem.loss, here.z, careful))
    step = -Cholesky(hessian, problem.ridge).solve(here.gradient)
    slope = float(here.gradient @ step)
    rounding = 1e-15 * (abs(here.objective) + float(np.abs(problem.c) @ np.abs(here.w)))
    ahead = problem.at(here.w + step)
    if is_enough(ahead.objective, 1.0, here.objective, slope, rounding):
        return ahead
    dz = problem.A @ step
    values = [problem.objective_at(here.w + t * step, here.z + t * dz) for t in _LENGTHS]
    best = int(np.argmin(np.nan_to_num(values, nan=np.inf)))
    if not is_enough(values[best], _LENGTHS[best], here.objective, slope, rounding):
        return None
    return problem.at(here.w + _LENGTHS[best] * step)


def solve_lbfgs(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """Run L-BFGS with variables scaled by their curvature; ``n_iter`` counts evaluations."""

    def value_and_gradient(W: Array, _: Indices) -> tuple[Array, Array]:
        here = problem.at(W[:, 0])
        return np.array([here.objective]), here.gradient[:, None]

    objective = Counted(value_and_gradient)
    start = starts[0].w if starts else np.zeros(len(problem.c))
    curvature = problem.squares + problem.ridge
    scale = 1 / np.where(curvature > 0, curvature, 1.0)[:, None]
    W, _ = lbfgs_many(objective, start[:, None], scale, tol / 10, max_iter)
    return Solution(W[:, 0], objective.n_calls)
