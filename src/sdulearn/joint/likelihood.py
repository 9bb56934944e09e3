"""The likelihood of same/different answers, its gradient and its Hessian.

With z = w.x + b at one end of a pair, z' at the other, s = +1 (same) or -1 (different) and lc(u) =
log 2 cosh(u / 2):

    -log P(s | x, x') = lc(z) + lc(z') - lc(z + s z')                                      (1) one pair
    J(w, b) = sum_pairs omega (1) + 1/2 sum_j pen_j w_j^2 + pull KL(p || mean_U sigmoid(z))   (2) the objective

(1) is ``log(sigma sigma' + (1 - sigma)(1 - sigma'))`` for s = +1, written so that nothing
overflows. J is not convex: its Hessian is a difference, and J(-w, -b) = J(w, b) but for the pull.

Rows enter by sums alone (:func:`slope_sums`, :func:`curvature_sums`), and J follows from the sums
(:func:`value_and_gradient`, :func:`hessian`): rows in memory and rows in blocks share every
formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from sdulearn.types import Array


class Objective(Protocol):
    """K problems at once, as the optimisers see them; coefficients are (r + 1, K), the intercept last."""

    pen: Array

    def value_and_gradient(self, W: Array, columns: Any) -> tuple[Array, Array]:
        """Values and gradients of the given problems at ``W`` (one column each)."""
        ...

    def hessian(self, w: Array) -> Array:
        """Exact Hessian of a single problem (K = 1)."""
        ...


def pair_loss(z1: Array, z2: Array, s: Array) -> Array:
    """Equation (1), elementwise."""
    v, z1, z2 = np.abs(z1 + s * z2), np.abs(z1), np.abs(z2)
    return (z1 + z2 - v) / 2 + np.log((1 + np.exp(-z1)) * (1 + np.exp(-z2)) / (1 + np.exp(-v)))


def slope_sums(A: Any, s: Array, omega: Array, share: Array | None, W: Array) -> dict[str, Array]:
    """What J and its gradient need of the rows: the loss, its slope and, with ``share``, what the pull needs.

    "mean" is ``sum share tanh(z / 2)``, "moved" is ``sum share (1 - tanh^2) [x, 1]``. ``A`` may be
    CSR.
    """
    n = len(s)
    Z = A @ W[:-1] + W[-1]
    T, E = _tanh_half(Z)
    v = Z[:n] + s * Z[n : 2 * n]
    T_v, E_v = _tanh_half(v)
    loss = (np.abs(Z[:n]) + np.abs(Z[n : 2 * n]) - np.abs(v)) / 2 + np.log(E[:n] * E[n : 2 * n] / E_v)
    G = np.empty((2 * n, Z.shape[1]))
    G[:n] = omega * (T[:n] - T_v) / 2
    G[n:] = omega * (T[n : 2 * n] - s * T_v) / 2
    sums = {"loss": np.einsum("ij,ij->j", omega, loss), "slope": bordered_sum(A[: 2 * n], G)}
    if share is not None:
        T_u = T[2 * n :]
        sums["mean"] = share[:, 0] @ T_u
        sums["moved"] = bordered_sum(A[2 * n :], share * (1 - T_u**2))
    return sums


def curvature_sums(A: Any, s: Array, omega: Array, share: Array | None, w: Array) -> dict[str, Array]:
    """What the Hessian of a single problem needs beside the slopes: sums of ``[x, 1] [x, 1]'`` and ``[x, 1] [x', 1]'``.

    "bent" is ``sum share tanh (1 - tanh^2) [x, 1] [x, 1]'``.
    """
    n, answers, weight = len(s), s[:, 0], omega[:, 0]
    z = A @ w[:-1] + w[-1]
    t = np.tanh(z / 2)
    joint = weight * (1 - np.tanh((z[:n] + answers * z[n : 2 * n]) / 2) ** 2) / 4
    ends = np.tile(weight, 2) * (1 - t[: 2 * n] ** 2) / 4 - np.tile(joint, 2)
    crossed = bordered_gram(A[:n], answers * joint, A[n : 2 * n])
    sums = {"curvature": bordered_gram(A[: 2 * n], ends, A[: 2 * n]) - crossed - crossed.T}
    if share is not None:
        t_u, A_u = t[2 * n :], A[2 * n :]
        sums["bent"] = bordered_gram(A_u, share[:, 0] * t_u * (1 - t_u**2), A_u)
    return sums


def bordered_sum(A: Any, G: Array) -> Array:
    """``[A, 1]' G``."""
    total = np.empty((A.shape[1] + 1, G.shape[1]))
    total[:-1] = A.T @ G
    total[-1] = G.sum(axis=0)
    return total


def bordered_gram(A: Any, weight: Array, B: Any) -> Array:
    """``[A, 1]' diag(weight) [B, 1]``, dense, also of CSR rows."""
    total = np.empty((A.shape[1] + 1, B.shape[1] + 1))
    if sparse.issparse(A):
        total[:-1, :-1] = (A.T @ B.multiply(weight[:, None]).tocsr()).toarray()
    else:
        total[:-1, :-1] = A.T @ (weight[:, None] * B)
    total[:-1, -1], total[-1, :-1], total[-1, -1] = A.T @ weight, B.T @ weight, weight.sum()
    return total


@dataclass(frozen=True)
class Pull:
    """The last term of (2), by the mean prediction on unlabeled rows."""

    prior: float
    strength: float

    @classmethod
    def of(cls, prior: float | None, strength: float, n_unlabeled: int) -> Pull | None:
        """None where nothing pulls: no prior, no strength, or no rows to be pulled."""
        return cls(prior, strength) if prior is not None and strength and n_unlabeled else None

    def at(self, mean: Array) -> tuple[Array, Array, Array]:
        """``strength KL(p || m)`` at m = (1 + mean) / 2, ``mean`` that of tanh, and its first two derivatives in m."""
        p = self.prior
        m = np.clip((1 + mean) / 2, 1e-9, 1 - 1e-9)
        value = p * np.log(p / m) + (1 - p) * np.log((1 - p) / (1 - m))
        slope = (1 - p) / (1 - m) - p / m
        bend = (1 - p) / (1 - m) ** 2 + p / m**2
        return self.strength * value, self.strength * slope, self.strength * bend


def value_and_gradient(slopes: dict[str, Array], W: Array, pen: Array, pull: Pull | None) -> tuple[Array, Array]:
    """Equation (2) and its gradient from :func:`slope_sums`."""
    penalised = pen * W[:-1]
    value = slopes["loss"] + np.einsum("ij,ij->j", penalised, W[:-1]) / 2
    gradient = slopes["slope"].copy()
    gradient[:-1] += penalised
    if pull is not None:
        pulled, slope, _ = pull.at(slopes["mean"])
        value += pulled
        gradient += slope / 4 * slopes["moved"]
    return value, gradient


def hessian(slopes: dict[str, Array], curvatures: dict[str, Array], pen: Array, pull: Pull | None) -> Array:
    """The Hessian of a single problem from :func:`slope_sums` and :func:`curvature_sums`."""
    H = curvatures["curvature"].copy()
    H[np.diag_indices(len(pen))] += pen
    if pull is not None:
        _, slope, bend = pull.at(slopes["mean"])
        moved = slopes["moved"][:, 0] / 4
        H += bend[0] * np.outer(moved, moved) - slope[0] / 4 * curvatures["bent"]
    return H


class PairObjective:
    """Equation (2) for K problems at once on the same rows in memory; see :class:`Objective`.

    Parameters
    ----------
    A : array of shape (2 n_pairs + n_unlabeled, r)
        First ends, second ends, unlabeled rows.
    s : array of shape (n_pairs, 1)
        Answers, +1 and -1.
    omega : array of shape (n_pairs, K) or (n_pairs, 1)
        Weights of the pairs, for each problem or for all; zero leaves a pair out.
    pen : array of shape (r, K)
        Penalties.
    share : array of shape (n_unlabeled, 1)
        Weights of the unlabeled rows, of sum 1.
    prior : float or None
        Where the mean prediction on unlabeled rows is pulled; None for no pull.
    pull : float
        Strength of the pull.
    """

    def __init__(
        self, A: Array, s: Array, omega: Array, pen: Array, share: Array, prior: float | None, pull: float
    ) -> None:
        self.s, self.omega, self.pen = s, omega, pen
        self.pull = Pull.of(prior, pull, len(share))
        self.share = share if self.pull else None
        self.A = A if self.pull else A[: 2 * len(s)]

    def value_and_gradient(self, W: Array, columns: Any) -> tuple[Array, Array]:
        """See :class:`Objective`."""
        omega = self.omega if self.omega.shape[1] == 1 else self.omega[:, columns]
        slopes = slope_sums(self.A, self.s, omega, self.share, W)
        return value_and_gradient(slopes, W, self.pen[:, columns], self.pull)

    def hessian(self, w: Array) -> Array:
        """See :class:`Objective`."""
        rows = self.A, self.s, self.omega, self.share
        return hessian(slope_sums(*rows, w[:, None]), curvature_sums(*rows, w), self.pen[:, 0], self.pull)


def _tanh_half(Z: Array) -> tuple[Array, Array]:
    """``tanh(Z / 2)`` and ``1 + exp(-|Z|)`` from one exponential."""
    e = np.exp(-np.abs(Z))
    return np.copysign((1 - e) / (1 + e), Z), 1 + e
