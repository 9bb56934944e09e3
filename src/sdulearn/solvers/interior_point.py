"""Double hinge: a primal-dual interior point method with one d x d system per step.

With ``h = a / 2`` and ``even(z) = max(flat, |z|) / 2`` the problem is an epsilon-insensitive one,

    min  1/2 w' ridge w - c.w + h.(u + v)   s.t.  u >= 0, u >= z - flat,  v >= 0, v >= -z - flat.

Each row thus has two hinges, one for z and one for -z. A hinge has a height u with multiplier h -
lam and a slack s = u + flat -+ z with multiplier lam. The iterates keep all four positive, and

    lam s = (h - lam) u = target * h

is the central path; only ``ridge w - c + A'(lam_z - lam_-z) = 0`` is infeasible on the way.
Eliminating every per-row quantity leaves ``(A' D A + ridge) dw = r``: no slack matrix is ever
built.

The last digits (:func:`cross_over`): at the solution a few rows, as a rule no more than there are
columns, lie on a kink ``|z| = flat``, where their slope is free; every other row has the slope of
its side. Given which rows those are, the solution solves one linear system

    ridge w + A_B' theta_B = c - A_R' theta_R,    A_B w = side_B flat,

with B the rows on a kink and R the rest. The interior point method separates B from R long before
it converges, and where it errs on a few rows, the solution of the system shows which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.problem import Problem, Solution
from sdulearn.types import Array, Mask

# Mehrotra's share of the way to the boundary.
_TO_BOUNDARY = 0.995
# Where on the central path to begin, in units of a typical |z|: a cold start is far from the
# solution, a neighbour's solution is not.
_COLD = 0.5
_WARM = 0.1
# Below this error, this many iterations without progress mean that only rounding is left.
_ROUNDING = 1e-5
_PATIENCE = 12
# From this tolerance on, the solution is computed to the last digit.
_EXACT = 1e-6
# With more rows than this, only the share nearest to a kink is solved for. A share of a tenth, or
# of two fifths, took twice as long over a grid of settings of 16,000 rows. A problem that takes more
# iterations than these is unbounded without the other rows.
_MANY = 4000
_NEAR = 0.25
_SMALL_ITER = 100

# An iterate is one array of shape (4, 2, n): height u, slack s, their multipliers h - lam and lam.
_U, _S, _FREE, _LAM = range(4)
# From a target and the affine step: the steps of w and of the iterate towards that target.
Direction = Callable[..., tuple[Array, Array]]


def solve_interior_point(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """Minimise to a tenth of ``tol`` (Mehrotra's predictor and corrector), then exactly."""
    # A cold start is the ridge regression whose curvature is the slope of a row outside the flat part.
    candidates = starts
    if not starts:
        gram = weighted_gram(problem.A, problem.a / 2)
        candidates = [Solution(Cholesky(gram, problem.ridge).solve(problem.c), 0)]
    scaled = [replace(one, w=one.w * _best_multiple(problem, one.w), n_iter=0) for one in candidates]
    for one in scaled:
        # Where penalties are so small that the solution only grows as they fall, the slopes at one
        # certify the next.
        if one.dual is not None and problem.certified(one).optimality <= tol:
            return one
    w = min((one.w for one in scaled), key=lambda w: problem.objective_at(w, problem.A @ w))
    near = _solve_near_kinks(problem, w, tol, max_iter) if len(problem.a) > _MANY else None
    return near or _solve_all(problem, w, _WARM if starts else _COLD, tol, max_iter)


def _solve_near_kinks(problem: Problem, w: Array, tol: float, max_iter: int) -> Solution | None:
    """Solve for the rows near a kink at w, the others linear on their sides; None if that fails."""
    z = problem.A @ w
    side = _sides(problem, z)
    distance = np.abs(np.abs(z) - problem.loss.flat)
    kept = distance <= np.quantile(distance, _NEAR)
    n_iter = 0
    while np.mean(kept) < 2 * _NEAR:
        theta = np.where(kept, 0.0, problem.a * side / 2)
        small = Problem(problem.A[kept], problem.a[kept], problem.c - problem.A.T @ theta, problem.ridge, problem.loss)
        # With too few rows it may be unbounded.
        with np.errstate(all="ignore"):
            part = _solve_all(small, w, _WARM, tol, min(max_iter, _SMALL_ITER))
        n_iter += part.n_iter
        w = part.w
        theta[kept] = part.dual
        whole = Solution(w, n_iter, theta)
        if problem.certified(whole).optimality <= tol / 10:
            return whole
        changed = _sides(problem, problem.A @ w) != side
        if not (changed & ~kept).any():
            break
        kept |= changed
    return None


def _sides(problem: Problem, z: Array) -> Array:
    """Return the sign of z for rows beyond a kink, and 0 between the kinks."""
    return np.sign(z) * (np.abs(z) > problem.loss.flat)


def _solve_all(problem: Problem, w: Array, start: float, tol: float, max_iter: int) -> Solution:
    solution = _follow_path(problem, w, start, tol, max_iter)
    return cross_over(problem, solution) if tol <= _EXACT else solution


def _follow_path(problem: Problem, w: Array, start: float, tol: float, max_iter: int) -> Solution:
    """Take predictor and corrector steps along the central path."""
    A = problem.A
    h = problem.a / 2
    z = A @ w
    spread = max(problem.loss.flat, float(h @ np.abs(z)) / h.sum())
    x = _centre(z, h, problem.loss.flat, spread * start)
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
        stalled = error < _ROUNDING and iteration - since >= _PATIENCE
        if error <= tol / 10 or iteration == max_iter or stalled:
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
    cholesky = Cholesky(weighted_gram(A, slope[0] + slope[1], buffer=problem.buffer), problem.ridge)

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


_ROUNDS = 10
# More rows on kinks than this many times the columns mean a wrong guess, and a large system.
_MOST = 4
# A row this near to the kink, with a slope this near to a limit, could be on it or not.
_SAME = 1e-11
# Rows of length one that are no further apart count as equal.
_INDEPENDENT = 1e-7


def cross_over(problem: Problem, solution: Solution) -> Solution:
    """Return the exact solution where the rows on kinks can be identified, else the one given."""
    assert solution.dual is not None
    flat = problem.loss.flat
    z = problem.A @ solution.w
    share = np.abs(2 * solution.dual / problem.a)
    distance = np.abs(np.abs(z) - flat) / flat
    # On a kink, z is nearer to it than the slope is to either of its limits.
    doubt = distance / np.maximum(np.minimum(share, 1 - share), 1e-200)
    best = problem.certified(solution)
    for kinked in _guesses(doubt, len(solution.w)):
        side = np.where(kinked | (np.abs(z) > flat), np.sign(z), 0.0)
        best = _improved(problem, best, kinked, side)
        if best.optimality <= _SAME:
            break
    return best


def _guesses(doubt: Array, d: int) -> list[Mask]:
    """Return sets of rows that may be on a kink; the surest d first where there are more."""
    kinked = doubt < 1
    count = int(np.count_nonzero(kinked))
    if not 0 < count <= _MOST * d:
        return []
    if count <= d:
        return [kinked]
    surest = np.zeros(len(doubt), dtype=bool)
    surest[np.argpartition(doubt, d - 1)[:d]] = True
    return [surest, kinked]


def _improved(problem: Problem, best: Solution, kinked: Mask, side: Array) -> Solution:
    """Return the better of a solution and that of a guess, revised until it stays the same."""
    for _ in range(_ROUNDS):
        exact = problem.certified(_solve(problem, kinked, side, best.n_iter))
        if exact.optimality < best.optimality:
            best = exact
        now_kinked, now_side = _revise(problem, exact, kinked, side)
        unchanged = np.array_equal(now_kinked, kinked) and np.array_equal(now_side, side)
        if unchanged or not 0 < np.count_nonzero(now_kinked) <= _MOST * len(exact.w):
            break
        kinked = now_kinked
        side = now_side
    return best


def _solve(problem: Problem, kinked: Mask, side: Array, n_iter: int) -> Solution:
    """Solve the linear system of the two sets, the penalised part of w eliminated; refine once."""
    theta = np.where(kinked, 0.0, problem.a * side / 2)
    free = problem.ridge == 0
    inverse = np.where(free, 0.0, 1 / np.where(free, 1.0, problem.ridge))
    B, unit = _scaled_rows(problem, kinked, inverse)
    F = B[:, free]
    K = np.block([[(B * inverse) @ B.T, -F], [-F.T, np.zeros((F.shape[1],) * 2)]])
    k, d = B.shape
    w = np.zeros(d)
    slope = np.zeros(k)
    right = problem.c - problem.A.T @ theta
    level = side[kinked] * problem.loss.flat * unit
    for _ in range(2):
        unmet = right - problem.ridge * w - B.T @ slope
        step = inverse * unmet
        change = _smallest_solution(K, np.concatenate([B @ (w + step) - level, -unmet[free]]), k)
        slope += change[:k]
        w += step - inverse * (B.T @ change[:k])
        w[free] += change[k:]
    theta[kinked] = slope * unit
    return Solution(w, n_iter, theta)


def _scaled_rows(problem: Problem, kinked: Mask, inverse: Array) -> tuple[Array, Array]:
    """Scale the rows on a kink to the root of their weight; return them and the factors."""
    # Raw features then do no harm, and equal rows share their slope in proportion to their weights.
    B = problem.A[kinked]
    B = B.toarray() if sparse.issparse(B) else B
    length = np.sqrt(np.maximum(B**2 @ inverse, np.finfo(float).tiny))
    unit = np.sqrt(problem.a[kinked] / problem.a[kinked].max()) / length
    return B * unit[:, None], unit


def _smallest_solution(K: Array, right: Array, k: int) -> Array:
    """Solve the system; if it is singular, the smallest solution lets equal rows share a slope."""
    L, failed = lapack.dpotrf(K[:k, :k], lower=1)
    if not failed and L.diagonal().min() > _INDEPENDENT:
        return np.asarray(np.linalg.solve(K, right), dtype=np.float64)
    return np.asarray(np.linalg.lstsq(K, right, rcond=None)[0], dtype=np.float64)


def _revise(problem: Problem, exact: Solution, kinked: Mask, side: Array) -> tuple[Mask, Array]:
    """Take rows off a kink where the slope left its limits; put rows on the kink they crossed."""
    z = problem.A @ exact.w
    flat = problem.loss.flat
    share = 2 * np.asarray(exact.dual) * np.where(kinked, side, 0.0) / problem.a
    inside = kinked & (share < -_SAME)
    outside = kinked & (share > 1 + _SAME)
    now = np.where(np.abs(z) > flat * (1 + _SAME), np.sign(z), 0.0)
    was_flat = ~kinked & (side == 0) & (now != 0)
    was_steep = ~kinked & (side != 0) & (side * z < flat * (1 - _SAME))
    revised = np.where(inside, 0.0, np.where(was_flat, now, side))
    return (kinked & ~inside & ~outside) | was_flat | was_steep, revised
