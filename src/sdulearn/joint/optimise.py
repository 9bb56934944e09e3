"""L-BFGS over many problems at once, and Newton's method with the exact Hessian for the last digits of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from sdulearn.joint.likelihood import Objective
from sdulearn.types import Array

Memory = list[tuple[Array, Array, Array]]

_SUFFICIENT = 1e-4
_ROUNDING = 1e-14


def gradient_norm(gradient: Array, scale: Array) -> Array:
    """Norm of a gradient in the norm of a rough inverse Hessian: roughly how far J can still fall, rooted."""
    return np.sqrt(np.sum(gradient**2 * scale, axis=0))


def lbfgs(
    value_and_gradient: Callable[[Array, Any], tuple[Array, Array]],
    W: Array,
    scale: Array,
    tol: float,
    max_iter: int,
    memory: int = 10,
) -> tuple[Array, Array]:
    """Minimise K independent problems, the columns of ``W``; returns solutions and values.

    ``scale`` is the diagonal of the first inverse Hessian. A column leaves when its gradient norm
    is below ``tol`` or no step descends.
    """
    W, live = W.copy(), np.arange(W.shape[1])
    f, g = value_and_gradient(W, live)
    values, past = f.copy(), Memory()
    for _ in range(max_iter):
        keep = gradient_norm(g, scale[:, live]) > tol
        if not keep.all():
            live, f, g = live[keep], f[keep], g[:, keep]
            past = [(S[:, keep], Y[:, keep], r[keep]) for S, Y, r in past]
        if not len(live):
            break
        D = _two_loop(g, scale[:, live], past)
        step, f_new, g_new = _backtrack(value_and_gradient, W[:, live], live, D, f, g)
        S, Y = -step * D, g_new - g
        curvature = np.einsum("ij,ij->j", S, Y)
        past = [*past[1 - memory :], (S, Y, np.where(curvature > 1e-12, 1 / np.maximum(curvature, 1e-12), 0.0))]
        W[:, live] += S
        values[live] = f_new
        f, g = f_new, np.where(step > 0, g_new, 0.0)
    return W, values


def _backtrack(
    value_and_gradient: Callable[[Array, Any], tuple[Array, Array]],
    W: Array,
    live: NDArray[np.intp],
    D: Array,
    f: Array,
    g: Array,
) -> tuple[Array, Array, Array]:
    """Armijo steps along ``-D``; only the columns that fail try again; 0 where none descends."""
    slope = np.einsum("ij,ij->j", g, D)
    step, todo = np.ones(len(live)), np.arange(len(live))
    f_new, g_new = f.copy(), g.copy()
    for _ in range(20):
        f_try, g_try = value_and_gradient(W[:, todo] - step[todo] * D[:, todo], live[todo])
        good = f_try <= f[todo] - _SUFFICIENT * step[todo] * slope[todo] + _ROUNDING
        f_new[todo[good]], g_new[:, todo[good]] = f_try[good], g_try[:, good]
        todo = todo[~good]
        if not len(todo):
            return step, f_new, g_new
        step[todo] *= 0.4
    step[todo] = 0.0
    return step, f_new, g_new


def _two_loop(g: Array, scale: Array, past: Memory) -> Array:
    """The L-BFGS direction (to be subtracted), column by column."""
    q, coefficients = g.copy(), []
    for S, Y, r in reversed(past):
        coefficients.append(r * np.einsum("ij,ij->j", S, q))
        q -= coefficients[-1] * Y
    if past:
        _, Y, r = past[-1]
        q *= np.clip(1 / np.where(r > 0, r * np.einsum("ij,ij->j", Y * scale, Y), 1), 1e-3, 1e3)
    q *= scale
    for (S, Y, r), coefficient in zip(past, reversed(coefficients), strict=True):
        q += (coefficient - r * np.einsum("ij,ij->j", Y, q)) * S
    return q


def newton(objective: Objective, w: Array, scale: Array, tol: float, max_iter: int) -> tuple[Array, float, float, int]:
    """Polish one solution; returns it, its value, its gradient norm and the iterations."""
    f, g = objective.value_and_gradient(w[:, None], [0])
    for iteration in range(max_iter + 1):
        if gradient_norm(g[:, 0], scale) <= tol or iteration == max_iter:
            break
        direction = _newton_direction(objective.hessian(w), g[:, 0], scale)
        slope = float(g[:, 0] @ direction)
        for step in 0.5 ** np.arange(30):
            f_new, g_new = objective.value_and_gradient((w - step * direction)[:, None], [0])
            if f_new[0] <= f[0] - _SUFFICIENT * step * slope + _ROUNDING:
                break
        else:
            break
        w, f, g = w - step * direction, f_new, g_new
    return w, float(f[0]), float(gradient_norm(g[:, 0], scale)), iteration


def _newton_direction(H: Array, g: Array, scale: Array) -> Array:
    """``H^-1 g`` where H is positive definite; else with the absolute values of its eigenvalues, which descends."""
    root = np.sqrt(scale)
    H = root[:, None] * H * root
    try:
        return root * cho_solve(cho_factor(H), root * g)
    except LinAlgError:
        values, V = eigh(H)
        return root * (V @ ((V.T @ (root * g)) / np.maximum(np.abs(values), 1e-10)))
