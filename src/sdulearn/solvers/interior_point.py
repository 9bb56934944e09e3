"""Double hinge: a primal-dual interior point method with one d x d system per step.

With ``h = a / 2`` and ``even(z) = max(flat, |z|) / 2`` the problem is an epsilon-insensitive one,

    min  1/2 w' ridge w - c.w + h.(u + v)   s.t.  u >= 0, u >= z - flat,  v >= 0, v >= -z - flat.

Each row thus has two hinges, one for z and one for -z. A hinge has a height u with multiplier h -
lam and a slack s = u + flat -+ z with multiplier lam. The iterates keep all four positive, and

    lam s = (h - lam) u = target * h

is the central path; only ``ridge w - c + A'(lam_z - lam_-z) = 0`` is infeasible on the way. Eliminating every per-row
quantity leaves ``(A' D A + ridge) dw = r``: no slack matrix is ever built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sdulearn.solvers.linalg import PATIENCE, Cholesky, weighted_gram
from sdulearn.solvers.problem import Problem, Solution
from sdulearn.types import Array

# Mehrotra's share of the way to the boundary.
_TO_BOUNDARY = 0.995
# Where on the central path to begin, in units of a typical |z|.
_START = 0.5
# Steps without progress below this error mean that only rounding is left.
_ROUNDING = 1e-5
# J is flat between kinks: with a tenth of `tol` coefficients have 5 digits, with this share 7 or more.
_MARGIN = 1e-3

# An iterate is one array of shape (4, 2, n): height u, slack s, their multipliers h - lam and lam.
_U, _S, _FREE, _LAM = range(4)
# From a target and the affine step: the steps of w and of the iterate towards that target.
Direction = Callable[..., tuple[Array, Array]]


def solve_interior_point(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """Minimise by Mehrotra's predictor and corrector, far beyond ``tol``: the last digits cost a step or two."""
    if not starts:
        # The ridge regression whose curvature is the slope of a row outside the flat part.
        ridge = Cholesky(weighted_gram(problem.A, problem.a / 2), problem.ridge)
        starts = [Solution(ridge.solve(problem.c), 0)]
    scaled = [replace(start, w=start.w * _best_multiple(problem, start.w), n_iter=0) for start in starts]
    for start in scaled:
        # With tiny penalties the solution only grows as they fall: the slopes at one certify the next.
        if start.dual is not None and problem.certified(start).optimality <= tol:
            return start
    w = min((start.w for start in scaled), key=lambda w: problem.objective_at(w, problem.A @ w))
    return _follow_path(problem, w, tol, max_iter)


def _follow_path(problem: Problem, w: Array, tol: float, max_iter: int) -> Solution:
    """Take predictor and corrector steps along the central path."""
    A = problem.A
    h = problem.a / 2
    z = A @ w
    spread = max(problem.loss.flat, float(h @ np.abs(z)) / h.sum())
    x = _centre(z, h, problem.loss.flat, spread * _START)
    nearest = np.inf
    since = 0
    for iteration in range(max_iter + 1):
        theta = x[_LAM, 0] - x[_LAM, 1]
        residual = problem.gradient(w, A.T @ theta)
        gap = _complementarity(x)
        error = problem.optimality(w, problem.objective_at(w, z), residual, gap)
        if error < nearest / 2:
            nearest = error
            since = iteration
        stalled = error < _ROUNDING and iteration - since >= PATIENCE
        if error <= _MARGIN * tol or iteration == max_iter or stalled:
            break
        direction = _newton_system(problem, x, residual)
        _, affine = direction(0.0)
        reached = _complementarity(x + _step_length(x, affine, 1.0) * affine)
        target = (reached / gap) ** 3 * gap / (4 * h.sum())
        dw, dx = direction(target * h, affine)
        step = _step_length(x, dx, _TO_BOUNDARY)
        x += step * dx
        w = w + step * dw
        z = A @ w
    return Solution(w, iteration, theta)


def _newton_system(problem: Problem, x: Array, residual: Array) -> Direction:
    """Factor the Newton system of one iterate; the result solves it for any right-hand side."""
    A = problem.A
    u, s, free, lam = x
    u_per_free = u / free
    pivot = s + lam * u_per_free
    slope = lam / pivot
    cholesky = Cholesky(weighted_gram(A, slope[0] + slope[1]), problem.ridge)

    def direction(target: Array | float, affine: Array | None = None) -> tuple[Array, Array]:
        """Step towards ``lam s = (h - lam) u = target``, corrected by the affine step's error."""
        error_u, error_s = np.zeros(2) if affine is None else affine[:2] * affine[2:]
        u_fixed = (target - error_u) / free - u
        lam_fixed = (target - error_s - lam * (s + u_fixed)) / pivot
        dw = cholesky.solve(-residual - A.T @ (lam_fixed[0] - lam_fixed[1]))
        dz = A @ dw
        dx = np.empty_like(x)
        dx[_LAM, 0] = dz
        dx[_LAM, 1] = -dz
        dx[_S] = -dx[_LAM]
        dx[_LAM] *= slope
        dx[_LAM] += lam_fixed
        dx[_FREE] = -dx[_LAM]
        dx[_U] = u_fixed + u_per_free * dx[_LAM]
        dx[_S] += dx[_U]
        return dw, dx

    return direction


def _centre(z: Array, h: Array, flat: float, delta: float) -> Array:
    """Return the point of the central path ``lam s = (h - lam) u = delta h`` at z."""
    k = np.stack([flat - z, flat + z])
    root = np.sqrt(k * k / 4 + delta * delta)
    # u = delta - k/2 + root and s = u + k, without cancellation: u s = delta (u + s).
    larger = delta + np.abs(k) / 2 + root
    smaller = delta * larger / (larger - delta)
    u = np.where(k < 0, larger, smaller)
    s = np.where(k < 0, smaller, larger)
    return np.stack([u, s, h * delta / u, h * delta / s])


def _complementarity(x: Array) -> float:
    return float(np.vdot(x[:2], x[2:]))


def _step_length(x: Array, dx: Array, fraction: float) -> float:
    """Return the largest step, up to 1, within ``fraction`` of the way to the boundary."""
    shrink = -float(np.min(dx / x))
    return 1.0 if shrink <= fraction else fraction / shrink


def _best_multiple(problem: Problem, w: Array) -> float:
    """Minimise ``J(t w)`` over t >= 0; its slope in t is piecewise linear and increasing."""
    z = np.abs(problem.A @ w)
    order = np.argsort(-z)[: int(np.count_nonzero(z))]
    quadratic = float(problem.ridge @ w**2)
    linear = float(problem.c @ w)
    if linear <= 0 or order.size == 0:
        return 0.0
    kinks = problem.loss.flat / z[order]
    past = np.concatenate([[0.0], np.cumsum(problem.a[order] * z[order] / 2)])
    j = int(np.searchsorted(quadratic * kinks - linear + past[:-1], 0.0))
    t = (linear - past[j]) / quadratic if quadratic > 0 else np.inf
    low = kinks[j - 1] if j else 0.0
    high = kinks[j] if j < len(kinks) else np.inf
    t = min(max(t, low), high)
    return float(t) if np.isfinite(t) else 1.0
