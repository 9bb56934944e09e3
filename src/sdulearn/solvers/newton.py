"""Newton's method with an exact Hessian, for the last digits of one solution of a problem that is not convex."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from sdulearn.solvers.lbfgs import gradient_norm
from sdulearn.solvers.line_search import backtrack_many
from sdulearn.types import Array, Indices


class Twice(Protocol):
    """A function with its derivatives; see :func:`~sdulearn.solvers.lbfgs.lbfgs_many`."""

    def value_and_gradient(self, W: Array, columns: Indices) -> tuple[Array, Array]:
        """Values and gradients of the given problems, one column each."""
        ...

    def hessian(self, w: Array) -> Array:
        """Hessian of a single problem."""
        ...


def newton(objective: Twice, w: Array, scale: Array, tol: float, max_iter: int) -> tuple[Array, float, float, int]:
    """Polish one solution; returns it, its value, its gradient norm and the iterations."""
    only = np.zeros(1, dtype=np.intp)
    W = w[:, None]
    f, g = objective.value_and_gradient(W, only)
    for iteration in range(max_iter + 1):
        if gradient_norm(g[:, 0], scale) <= tol or iteration == max_iter:
            break
        D = _newton_direction(objective.hessian(W[:, 0]), g[:, 0], scale)[:, None]
        step, f, g = backtrack_many(objective.value_and_gradient, W, only, D, f, g)
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
