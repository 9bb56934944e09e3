"""The likelihood of same/different answers, its gradient and its Hessian.

With z = w.x + b at one end of a pair, z' at the other, s = +1 (same) or -1 (different) and lc(u) = log 2 cosh(u / 2):

    -log P(s | x, x') = lc(z) + lc(z') - lc(z + s z')                                      (1) one pair
    J(w, b) = sum_pairs omega (1) + 1/2 sum_j pen_j w_j^2 + pull KL(p || mean_U sigmoid(z))   (2) the objective

(1) is ``log(sigma sigma' + (1 - sigma)(1 - sigma'))`` for s = +1, written so that nothing overflows. J is not convex:
its Hessian is a difference, and J(-w, -b) = J(w, b) but for the pull.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def pair_loss(z1: Array, z2: Array, s: Array) -> Array:
    """Equation (1), elementwise."""
    v, z1, z2 = np.abs(z1 + s * z2), np.abs(z1), np.abs(z2)
    return (z1 + z2 - v) / 2 + np.log((1 + np.exp(-z1)) * (1 + np.exp(-z2)) / (1 + np.exp(-v)))


class PairObjective:
    """Equation (2) for K problems at once on the same rows; coefficients are (r + 1, K), the intercept last.

    Parameters
    ----------
    A : array of shape (2 n_pairs + n_unlabeled, r)
        First ends, second ends, unlabeled rows.
    s : array of shape (n_pairs, 1)
        Answers, +1 and -1.
    omega : array of shape (n_pairs, K)
        Weights of the pairs; zero leaves a pair out.
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
        self.s, self.omega, self.pen, self.n = s, omega, pen, len(s)
        self.pull = pull if prior is not None and len(share) else 0.0
        self.prior = 0.5 if prior is None else prior
        self.share = share
        self.A = A if self.pull else A[: 2 * self.n]

    def value_and_gradient(self, W: Array, columns: Any) -> tuple[Array, Array]:
        """Values and gradients of the given problems at ``W`` (one column each)."""
        n, s, omega, pen = self.n, self.s, self.omega[:, columns], self.pen[:, columns]
        Z = self.A @ W[:-1] + W[-1]
        T, E = _tanh_half(Z)
        v = Z[:n] + s * Z[n : 2 * n]
        T_v, E_v = _tanh_half(v)
        loss = (np.abs(Z[:n]) + np.abs(Z[n : 2 * n]) - np.abs(v)) / 2 + np.log(E[:n] * E[n : 2 * n] / E_v)
        penalised = pen * W[:-1]
        value = np.einsum("ij,ij->j", omega, loss) + np.einsum("ij,ij->j", penalised, W[:-1]) / 2
        G = np.empty_like(Z)
        G[:n] = omega * (T[:n] - T_v) / 2
        G[n : 2 * n] = omega * (T[n : 2 * n] - s * T_v) / 2
        if self.pull:
            pulled, slope, _ = self._pull(T[2 * n :])
            value = value + pulled
            G[2 * n :] = slope / 4 * self.share * (1 - T[2 * n :] ** 2)
        return value, np.vstack([self.A.T @ G + penalised, G.sum(axis=0)])

    def hessian(self, w: Array) -> Array:
        """Exact Hessian of a single problem (K = 1)."""
        n, s, omega = self.n, self.s[:, 0], self.omega[:, 0]
        B = np.hstack([self.A, np.ones((len(self.A), 1))])
        z = B @ w
        t = np.tanh(z / 2)
        V = B[:n] + s[:, None] * B[n : 2 * n]
        ends = np.concatenate([omega, omega]) * (1 - t[: 2 * n] ** 2) / 4
        joint = omega * (1 - np.tanh((z[:n] + s * z[n : 2 * n]) / 2) ** 2) / 4
        H = (B[: 2 * n] * ends[:, None]).T @ B[: 2 * n] - (V * joint[:, None]).T @ V
        H[np.diag_indices(len(w) - 1)] += self.pen[:, 0]
        if self.pull:
            t_u, B_u, share = t[2 * n :], B[2 * n :], self.share[:, 0]
            _, slope, bend = self._pull(t_u[:, None])
            moved = (share * (1 - t_u**2) / 4) @ B_u
            H += bend[0] * np.outer(moved, moved)
            H -= slope[0] / 4 * (B_u * (share * t_u * (1 - t_u**2))[:, None]).T @ B_u
        return H

    def _pull(self, T: Array) -> tuple[Array, Array, Array]:
        """``pull KL(p || m)`` of the mean prediction m = (1 + mean tanh) / 2, and its first two derivatives in m."""
        p = self.prior
        m = np.clip((1 + np.sum(self.share * T, axis=0)) / 2, 1e-9, 1 - 1e-9)
        value = p * np.log(p / m) + (1 - p) * np.log((1 - p) / (1 - m))
        slope = (1 - p) / (1 - m) - p / m
        bend = (1 - p) / (1 - m) ** 2 + p / m**2
        return self.pull * value, self.pull * slope, self.pull * bend


def _tanh_half(Z: Array) -> tuple[Array, Array]:
    """``tanh(Z / 2)`` and ``1 + exp(-|Z|)`` from one exponential."""
    e = np.exp(-np.abs(Z))
    return np.copysign((1 - e) / (1 + e), Z), 1 + e
