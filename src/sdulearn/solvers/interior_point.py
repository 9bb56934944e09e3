"""Double hinge: a primal-dual interior point method with one d x d system per step.

With ``h = a / 2`` and ``even(z) = max(flat, |z|) / 2`` the problem is an epsilon-insensitive one,

    min  1/2 w' ridge w - c.w + h.(u + v)   s.t.  u >= 0, u >= z - flat,  v >= 0, v >= -z - flat.

Each row has two hinges. A hinge has a slack ``s = u - k`` (``k = +-z - flat``), a multiplier ``lam`` of that slack,
and ``h - lam``, the multiplier of u. The iterates keep all four positive; only ``ridge w - c + A'(lam_u - lam_v)``
is infeasible on the way. Eliminating every per-row quantity leaves ``(A' D A + ridge) dw = r``: no slack matrix is
ever built.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdulearn.solvers.linalg import WeightedGram
from sdulearn.solvers.problem import Problem, Solution

Array = NDArray[np.float64]

_TO_BOUNDARY = 0.995
_COLD, _WARM = 0.5, 0.1


@dataclass
class _Hinges:
    """Both hinges of every row, one above the other: shape (2, n); ``sign`` is +1 for z, -1 for -z."""

    h: Array
    u: Array
    s: Array
    lam: Array

    @classmethod
    def centred(cls, z: Array, h: Array, flat: float, delta: float) -> _Hinges:
        """The point of the central path ``lam s = (h - lam) u = delta h`` that belongs to z."""
        k = np.stack([flat - z, flat + z])
        u = delta - k / 2 + np.sqrt(k * k / 4 + delta * delta)
        s = u + k
        return cls(h, u, s, h * delta / s)

    @property
    def free(self) -> Array:
        """Multiplier of ``u >= 0``."""
        return self.h - self.lam

    def complementarity(self) -> float:
        return float(np.sum(self.lam * self.s + self.free * self.u))

    def moved(self, step: float, d: _Direction) -> _Hinges:
        return _Hinges(self.h, self.u + step * d.u, self.s + step * d.s, self.lam + step * d.lam)


@dataclass
class _Direction:
    w: Array
    u: Array
    s: Array
    lam: Array


def interior_point(problem: Problem, tol: float, max_iter: int, start: Array | None = None) -> Solution:
    """Minimise to a relative gap of a tenth of ``tol`` (Mehrotra's predictor and corrector)."""
    A, c, ridge, h, flat = problem.A, problem.c, problem.ridge, problem.a / 2, problem.loss.flat
    gram = WeightedGram(A)
    direction_of_start = gram.factor(h, ridge).solve(c) if start is None else start
    w = direction_of_start * _best_multiple(problem, direction_of_start)
    z = A @ w
    spread = max(flat, float(h @ np.abs(z)) / h.sum())
    hinges = _Hinges.centred(z, h, flat, spread * (_COLD if start is None else _WARM))
    for iteration in range(max_iter + 1):
        theta = hinges.lam[0] - hinges.lam[1]
        residual = problem.stationarity(w, theta)
        gap = hinges.complementarity()
        size = max(abs(problem.objective_at(w, z)), problem.a.sum() / 2)
        solved = gap <= tol / 10 * size and problem.relative(w, residual) <= tol / 10
        if solved or iteration == max_iter:
            break
        newton = _NewtonSystem(problem, gram, hinges, residual)
        affine = newton.direction(0.0)
        step = _step_length(hinges, affine, 1.0)
        centring = (hinges.moved(step, affine).complementarity() / gap) ** 3
        full = newton.direction(centring * gap / (4 * h.sum()), affine)
        step = _step_length(hinges, full, _TO_BOUNDARY)
        hinges = hinges.moved(step, full)
        w = w + step * full.w
        z = A @ w
    return Solution(w, iteration, theta)


class _NewtonSystem:
    """The factored Newton system at one iterate, for as many right-hand sides as wanted."""

    def __init__(self, problem: Problem, gram: WeightedGram, hinges: _Hinges, residual: Array) -> None:
        self.A, self.hinges, self.residual = problem.A, hinges, residual
        self.u_per_free = hinges.u / hinges.free
        self.pivot = hinges.s + hinges.lam * self.u_per_free
        self.slope = hinges.lam / self.pivot
        self.cholesky = gram.factor(self.slope.sum(axis=0), problem.ridge)

    def direction(self, target: float, affine: _Direction | None = None) -> _Direction:
        """Towards ``lam s = (h - lam) u = target * h``, with the affine step's second-order error taken off."""
        x = self.hinges
        aim_s = aim_u = target * x.h
        if affine is not None:
            aim_s = aim_s - affine.lam * affine.s
            aim_u = aim_u + affine.lam * affine.u
        u_fixed = aim_u / x.free - x.u
        lam_fixed = (aim_s - x.lam * (x.s + u_fixed)) / self.pivot
        dw = self.cholesky.solve(-self.residual - self.A.T @ (lam_fixed[0] - lam_fixed[1]))
        dz = self.A @ dw
        dk = np.stack([dz, -dz])
        dlam = self.slope * dk + lam_fixed
        du = u_fixed + self.u_per_free * dlam
        return _Direction(dw, du, du - dk, dlam)


def _step_length(x: _Hinges, d: _Direction, fraction: float) -> float:
    """The largest step, up to 1, that keeps all four quantities positive (by ``fraction`` of the way)."""
    shrink = max(
        float(np.max(-d.u / x.u)),
        float(np.max(-d.s / x.s)),
        float(np.max(-d.lam / x.lam)),
        float(np.max(d.lam / x.free)),
    )
    return 1.0 if shrink <= fraction else fraction / shrink


def _best_multiple(problem: Problem, w: Array) -> float:
    """The t >= 0 that minimises ``J(t w)``: its slope in t is piecewise linear and increasing.

    With few rows and a small penalty the solution is huge (the unpenalised problem is unbounded); a start of the
    right size spares the method a long walk.
    """
    z = np.abs(problem.A @ w)
    order = np.argsort(-z)[: int(np.count_nonzero(z))]
    quadratic, linear = float(problem.ridge @ w**2), float(problem.c @ w)
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
