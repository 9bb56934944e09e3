"""The likelihood of same/different answers, its gradient and its Hessian.

With z = w.x + b at one end of a pair, z' at the other, s = +1 (same) or -1 (different) and lc(u) =
log 2 cosh(u / 2):

    -log P(s | x, x') = lc(z) + lc(z') - lc(z + s z')                             (1)
    J(w, b) = sum_pairs omega (1) + 1/2 sum_j pen_j w_j^2
              + prior_strength KL(p || mean_U sigmoid(z))                         (2)

(1) is the loss of one pair: minus ``log(sigma sigma' + (1 - sigma)(1 - sigma'))`` for s = +1,
written so that nothing overflows. (2) is the objective. J is not convex: its Hessian is a
difference, and J(-w, -b) = J(w, b) but for the last term, the *prior penalty*.

Rows enter by sums alone (:func:`slope_sums`, :func:`curvature_sums`), and J follows from the sums
(:func:`value_and_gradient`, :func:`hessian`): rows in memory and rows in blocks share every
formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from sdulearn.types import Array, Indices, Rows

Columns = Indices | Sequence[int]


class Objective(Protocol):
    """K problems at once; coefficients are (r + 1, K), the intercept last."""

    pen: Array
    exact_hessian: bool

    def value_and_gradient(self, W: Array, columns: Columns) -> tuple[Array, Array]:
        """Values and gradients of the given problems at ``W`` (one column each)."""
        ...

    def hessian(self, w: Array) -> Array:
        """Hessian of a single problem (K = 1): exact, or with ``exact_hessian`` False a larger matrix."""
        ...


def pair_loss(z1: Array, z2: Array, s: Array) -> Array:
    """Equation (1), elementwise."""
    v = np.abs(z1 + s * z2)
    a1 = np.abs(z1)
    a2 = np.abs(z2)
    return (a1 + a2 - v) / 2 + np.log((1 + np.exp(-a1)) * (1 + np.exp(-a2)) / (1 + np.exp(-v)))


def slope_sums(A: Rows, s: Array, omega: Array, share: Array | None, W: Array) -> dict[str, Array]:
    """What J and its gradient need of the rows: the "loss" of the pairs and its "slope".

    With ``share`` also what the prior penalty needs of the unlabeled rows: "mean", ``sum share
    tanh(z / 2)``, and "mean_slope", ``sum share (1 - tanh^2) [x, 1]``. ``A`` may be CSR.
    """
    n = len(s)
    Z = A @ W[:-1] + W[-1]
    T, E = _tanh_half(Z)
    v = Z[:n] + s * Z[n : 2 * n]
    T_v, E_v = _tanh_half(v)
    # log 2 cosh(u / 2) = |u| / 2 + log(1 + exp(-|u|)), and E is 1 + exp(-|u|).
    linear = (np.abs(Z[:n]) + np.abs(Z[n : 2 * n]) - np.abs(v)) / 2
    loss = linear + np.log(E[:n] * E[n : 2 * n] / E_v)
    G = np.empty((2 * n, Z.shape[1]))
    G[:n] = omega * (T[:n] - T_v) / 2
    G[n:] = omega * (T[n : 2 * n] - s * T_v) / 2
    sums = {"loss": np.einsum("ij,ij->j", omega, loss), "slope": bordered_sum(A[: 2 * n], G)}
    if share is not None:
        T_u = T[2 * n :]
        sums["mean"] = share[:, 0] @ T_u
        sums["mean_slope"] = bordered_sum(A[2 * n :], share * (1 - T_u**2))
    return sums


def curvature_sums(A: Rows, s: Array, omega: Array, share: Array | None, w: Array) -> dict[str, Array]:
    """What the Hessian of a single problem needs beside the slopes: the "curvature" of the loss.

    It is a sum of ``[x, 1] [x, 1]'`` and ``[x, 1] [x', 1]'``. With ``share`` also
    "mean_curvature", ``sum share tanh (1 - tanh^2) [x, 1] [x, 1]'``.
    """
    n = len(s)
    answers = s[:, 0]
    weight = omega[:, 0]
    z = A @ w[:-1] + w[-1]
    t = np.tanh(z / 2)
    joint = weight * (1 - np.tanh((z[:n] + answers * z[n : 2 * n]) / 2) ** 2) / 4
    ends = np.tile(weight, 2) * (1 - t[: 2 * n] ** 2) / 4 - np.tile(joint, 2)
    crossed = bordered_gram(A[:n], answers * joint, A[n : 2 * n])
    sums = {"curvature": bordered_gram(A[: 2 * n], ends, A[: 2 * n]) - crossed - crossed.T}
    if share is not None:
        t_u = t[2 * n :]
        A_u = A[2 * n :]
        sums["mean_curvature"] = bordered_gram(A_u, share[:, 0] * t_u * (1 - t_u**2), A_u)
    return sums


def bordered_sum(A: Rows, G: Array) -> Array:
    """``[A, 1]' G``."""
    total = np.empty((A.shape[1] + 1, G.shape[1]))
    total[:-1] = A.T @ G
    total[-1] = G.sum(axis=0)
    return total


def bordered_gram(A: Rows, weight: Array, B: Rows) -> Array:
    """``[A, 1]' diag(weight) [B, 1]``, dense, also of CSR rows."""
    total = np.empty((A.shape[1] + 1, B.shape[1] + 1))
    if sparse.issparse(A):
        total[:-1, :-1] = (A.T @ B.multiply(weight[:, None]).tocsr()).toarray()
    else:
        total[:-1, :-1] = A.T @ (weight[:, None] * B)
    total[:-1, -1] = A.T @ weight
    total[-1, :-1] = B.T @ weight
    total[-1, -1] = weight.sum()
    return total


@dataclass(frozen=True)
class PriorPenalty:
    """The last term of (2): how far the mean prediction on unlabeled rows is from the prior."""

    prior: float
    strength: float

    @classmethod
    def of(cls, prior: float | None, strength: float, n_unlabeled: int) -> PriorPenalty | None:
        """None where there is no such term: no prior, no strength, or no unlabeled rows."""
        if prior is None or not strength or not n_unlabeled:
            return None
        return cls(prior, strength)

    def derivatives(self, mean: Array) -> tuple[Array, Array, Array]:
        """``strength KL(p || m)`` and its first two derivatives in m.

        ``mean`` is that of tanh(z / 2), so m = (1 + mean) / 2.
        """
        p = self.prior
        m = np.clip((1 + mean) / 2, 1e-9, 1 - 1e-9)
        value = p * np.log(p / m) + (1 - p) * np.log((1 - p) / (1 - m))
        first = (1 - p) / (1 - m) - p / m
        second = (1 - p) / (1 - m) ** 2 + p / m**2
        return self.strength * value, self.strength * first, self.strength * second


def value_and_gradient(
    slopes: dict[str, Array], W: Array, pen: Array, prior_penalty: PriorPenalty | None
) -> tuple[Array, Array]:
    """Equation (2) and its gradient from :func:`slope_sums`."""
    penalised = pen * W[:-1]
    value = slopes["loss"] + np.einsum("ij,ij->j", penalised, W[:-1]) / 2
    gradient = slopes["slope"].copy()
    gradient[:-1] += penalised
    if prior_penalty is not None:
        divergence, first, _ = prior_penalty.derivatives(slopes["mean"])
        value += divergence
        gradient += first / 4 * slopes["mean_slope"]
    return value, gradient


def hessian(
    slopes: dict[str, Array],
    curvatures: dict[str, Array],
    pen: Array,
    prior_penalty: PriorPenalty | None,
) -> Array:
    """The Hessian of a single problem from :func:`slope_sums` and :func:`curvature_sums`."""
    H = curvatures["curvature"].copy()
    H[np.diag_indices(len(pen))] += pen
    if prior_penalty is not None:
        _, first, second = prior_penalty.derivatives(slopes["mean"])
        slope = slopes["mean_slope"][:, 0] / 4
        H += second[0] * np.outer(slope, slope) - first[0] / 4 * curvatures["mean_curvature"]
    return H


class PairObjective:
    """Equation (2) for K problems at once on the same rows in memory; see :class:`Objective`."""

    def __init__(
        self,
        A: Array,
        s: Array,
        omega: Array,
        pen: Array,
        share: Array,
        prior_penalty: PriorPenalty | None,
    ) -> None:
        self.exact_hessian = True
        self.s = s
        self.omega = omega
        self.pen = pen
        self.prior_penalty = prior_penalty
        self.share = None if prior_penalty is None else share
        self.A = A[: 2 * len(s)] if prior_penalty is None else A

    def value_and_gradient(self, W: Array, columns: Columns) -> tuple[Array, Array]:
        """See :class:`Objective`."""
        omega = self.omega if self.omega.shape[1] == 1 else self.omega[:, columns]
        slopes = slope_sums(self.A, self.s, omega, self.share, W)
        return value_and_gradient(slopes, W, self.pen[:, columns], self.prior_penalty)

    def hessian(self, w: Array) -> Array:
        """See :class:`Objective`."""
        rows = (self.A, self.s, self.omega, self.share)
        slopes = slope_sums(*rows, w[:, None])
        return hessian(slopes, curvature_sums(*rows, w), self.pen[:, 0], self.prior_penalty)


def _tanh_half(Z: Array) -> tuple[Array, Array]:
    """``tanh(Z / 2)`` and ``1 + exp(-|Z|)`` from one exponential."""
    e = np.exp(-np.abs(Z))
    return np.copysign((1 - e) / (1 + e), Z), 1 + e
