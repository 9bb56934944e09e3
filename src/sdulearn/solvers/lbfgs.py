"""L-BFGS over many problems at once; one problem is a batch of one.

[1] D. C. Liu and J. Nocedal, "On the limited memory BFGS method for large scale optimization",
Mathematical Programming 45 (1989).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sdulearn.solvers.line_search import Batch, backtrack_many
from sdulearn.types import Array, Indices

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
    """Minimise K independent problems, the columns of ``W``; returns solutions and values.

    ``scale`` is the diagonal of the first inverse Hessian. A column leaves when its gradient norm
    is below ``tol`` or no step descends.
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
        past = [*past[1 - memory :], _pair(S, g_new - g, scale[:, live])]
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


def _pair(S: Array, Y: Array, scale: Array) -> tuple[Array, Array, Array]:
    """A step and its change of gradient, for the memory."""
    curvature = np.einsum("ij,ij->j", S, Y)
    enough = curvature > _LEAST_CURVATURE * np.einsum("ij,ij->j", Y * scale, Y)
    return S, Y, np.where(enough, 1 / np.where(enough, curvature, 1.0), 0.0)


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
