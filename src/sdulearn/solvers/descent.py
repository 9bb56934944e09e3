"""Descent methods and their line search: L-BFGS over many problems at once, and Newton's method for one.

A step of length t along a direction of slope ``slope < 0`` is taken where it decreases J enough (Armijo), up to
rounding:

    J(t) <= J(0) + 1e-4 t slope + rounding.

Near the solution the decrease is smaller than the last digit of J: without the last term no step
would pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from sdulearn.types import Array, Indices

# The usual constant of Armijo's rule: nearly every decrease is enough.
_SUFFICIENT = 1e-4
# Each further length is an evaluation of value and gradient.
_BATCH_SHRINK = 0.4
_BATCH_TRIES = 20

# Values and gradients, one column each, of the problems whose numbers are given.
Batch = Callable[[Array, Indices], tuple[Array, Array]]


def rounding_of(J: float, c: Array, w: Array) -> float:
    """What rounding may add to an objective ``J(w)`` with the linear term ``c.w``."""
    return 1e-15 * (abs(J) + float(np.abs(c) @ np.abs(w)))


def is_enough(value: float, length: float, J: float, slope: float, rounding: float) -> bool:
    """Whether J falls enough along a step of this length."""
    return value <= J + _SUFFICIENT * length * slope + rounding


def backtrack_many(
    value_and_gradient: Batch, W: Array, live: Indices, D: Array, f: Array, g: Array
) -> tuple[Array, Array, Array]:
    """Steps along ``-D`` for the problems ``live``, with values and gradients there; 0 where none decreases.

    Only the problems that fail try again.
    """
    slope = -np.einsum("ij,ij->j", g, D)
    # These values are means over rows, of order one.
    rounding = 1e-14
    step = np.ones(len(live))
    todo = np.arange(len(live))
    f_new = f.copy()
    g_new = g.copy()
    for _ in range(_BATCH_TRIES):
        f_try, g_try = value_and_gradient(W[:, todo] - step[todo] * D[:, todo], live[todo])
        good = f_try <= f[todo] + _SUFFICIENT * step[todo] * slope[todo] + rounding
        f_new[todo[good]] = f_try[good]
        g_new[:, todo[good]] = g_try[:, good]
        todo = todo[~good]
        if not len(todo):
            return step, f_new, g_new
        step[todo] *= _BATCH_SHRINK
    step[todo] = 0.0
    return step, f_new, g_new


# Steps, changes of the gradient, and the inverse of their products; 0 for a pair that is skipped.
Memory = list[tuple[Array, Array, Array]]

# A pair whose curvature is less than this share of the rough Hessian's would make a wild direction.
_LEAST_CURVATURE = 1e-8


def gradient_norm(gradient: Array, scale: Array) -> Array:
    """Norm of a gradient in the norm of a rough inverse Hessian: roughly how far J can still fall, rooted."""
    return np.sqrt(np.sum(gradient**2 * scale, axis=0))


def lbfgs_many(
    value_and_gradient: Batch,
    W: Array,
    scale: Array,
    tol: float,
    max_iter: int,
    memory: int = 10,
) -> tuple[Array, Array]:
    """Minimise K independent problems, the columns of ``W``, by L-BFGS (Liu and Nocedal, 1989).

    Returns solutions and values. ``scale`` is the diagonal of the first inverse Hessian. A column
    leaves when its gradient norm is below ``tol`` or no step descends.
    """
    W = W.copy()
    live: Indices = np.arange(W.shape[1])
    f, g = value_and_gradient(W, live)
    values = f.copy()
    past = Memory()
    for _ in range(max_iter):
        keep = gradient_norm(g, scale[:, live]) > tol
        if not keep.all():
            live = live[keep]
            f = f[keep]
            g = g[:, keep]
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
        # A zero gradient makes a column leave whose line search failed.
        g = np.where(step > 0, g_new, 0.0)
    return W, values


def lbfgs(
    value_and_gradient: Callable[[Array], tuple[float, Array]],
    w: Array,
    curvature: Array,
    tol: float,
    max_iter: int,
) -> tuple[Array, int]:
    """Minimise one problem with a rough diagonal of its Hessian; returns the solution and the evaluations."""
    n_calls = 0

    def batch(W: Array, _: Indices) -> tuple[Array, Array]:
        nonlocal n_calls
        n_calls += 1
        value, gradient = value_and_gradient(W[:, 0])
        return np.array([value]), gradient[:, None]

    scale = 1 / np.where(curvature > 0, curvature, 1.0)[:, None]
    W, _ = lbfgs_many(batch, w[:, None], scale, tol, max_iter, memory=20)
    return W[:, 0], n_calls


def _two_loop(g: Array, scale: Array, past: Memory) -> Array:
    """The L-BFGS direction (to be subtracted), column by column."""
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


def newton(
    value_and_gradient: Batch, hessian: Callable[[Array], Array], w: Array, scale: Array, tol: float, max_iter: int
) -> tuple[Array, float, float, int]:
    """Polish one solution; returns it, its value, its gradient norm and the iterations."""
    only = np.zeros(1, dtype=np.intp)
    W = w[:, None]
    f, g = value_and_gradient(W, only)
    for iteration in range(max_iter + 1):
        if gradient_norm(g[:, 0], scale) <= tol or iteration == max_iter:
            break
        D = _newton_direction(hessian(W[:, 0]), g[:, 0], scale)[:, None]
        step, f, g = backtrack_many(value_and_gradient, W, only, D, f, g)
        if not step[0]:
            break
        W = W - step * D
    return W[:, 0], float(f[0]), float(gradient_norm(g[:, 0], scale)), iteration


def _newton_direction(H: Array, g: Array, scale: Array) -> Array:
    """``H^-1 g`` where H is positive definite; else with the absolute values of its eigenvalues, which descends."""
    root = np.sqrt(scale)
    H = root[:, None] * H * root
    try:
        return root * cho_solve(cho_factor(H), root * g)
    except LinAlgError:
        values, V = eigh(H)
        return root * (V @ ((V.T @ (root * g)) / np.maximum(np.abs(values), 1e-10)))
