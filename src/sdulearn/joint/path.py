"""From rows to solutions: principal axes, penalties, starts, the path of penalties, evidence and held-out loss.

In the principal axes of all rows, pairs and unlabeled, with variance ev_j along axis j, the penalty
is

    pen_j = alpha c_k / ev_j^k,  c_k = sum ev^(k+1) / sum ev                                  (3)

k = ``covariance_power`` = 0 is the ridge alpha / 2 |w|^2. k = 1 is alpha / 2 w' C^-1 w up to scale,
C the covariance of the rows, k = 2 goes further: unlabeled rows say along which directions the
points differ, and the classifier leans on those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from sdulearn.errors import InputError
from sdulearn.joint.likelihood import Objective, PairObjective, bordered_gram, bordered_sum, pair_loss
from sdulearn.pairs import Pairs
from sdulearn.solvers import Design
from sdulearn.solvers.lbfgs import lbfgs_many
from sdulearn.types import Array

# Iterations after which the best start of each problem goes on alone, and how well the path is
# solved.
_RACE = 12
_PATH_TOL = 5e-3
_PATH_ITER = 200


@dataclass(frozen=True)
class Axes:
    """Principal axes of all rows: the coordinates in which everything below is written, and the way back."""

    mean: Array
    V: Array
    variance: Array
    design: Design | None = None

    @classmethod
    def from_moments(cls, mean: Array, covariance: Array, design: Design | None = None) -> Axes:
        """Axes of rows with this mean and covariance. Directions without variance are dropped: w is 0 there."""
        values, V = eigh(covariance)
        keep = values > 1e-12 * max(values[-1], np.finfo(float).tiny)
        if not keep.any():
            raise InputError("No column of X varies, so nothing tells the classes apart. Add columns that do.")
        return cls(mean, V[:, keep], values[keep], design)

    @classmethod
    def of(cls, X: Any) -> tuple[Axes, Array]:
        """Axes of the rows, and the rows in them."""
        design = Design.from_rows(X, True)
        B = design.A[:, :-1]
        mean = np.asarray(B.mean(axis=0)).ravel()
        product = B.T @ B
        second = product.toarray() if sparse.issparse(product) else product
        axes = cls.from_moments(mean, second / B.shape[0] - np.outer(mean, mean), design)
        return axes, np.asarray(B @ axes.V) - mean @ axes.V

    def outward(self, W: Array) -> Array:
        """Coefficients of centred columns from coefficients in the axes; the intercept, last, is the same."""
        return np.concatenate([self.V @ W[:-1], W[-1:]])

    def inward(self, G: Array) -> Array:
        """Gradients in the axes from gradients in centred columns: the transpose of :meth:`outward`."""
        return np.concatenate([self.V.T @ G[:-1], G[-1:]])

    def coefficients(self, v: Array) -> tuple[Array, float]:
        """User's ``(coef, intercept)`` of a solution in the axes."""
        w = self.V @ v[:-1]
        intercept = float(v[-1] - self.mean @ w)
        return (w, intercept) if self.design is None else self.design.coefficients(np.append(w, intercept))


def pair_moments(A: Any, s: Array, omega: Array) -> dict[str, Array]:
    """Sums over pairs: "joint", ``sum omega s [x, 1] [x', 1]'`` plus transpose, "ends" ``sum omega [x + x', 2]``."""
    n = len(s)
    joint = bordered_gram(A[:n], (omega * s)[:, 0], A[n : 2 * n])
    return {"joint": joint + joint.T, "ends": bordered_sum(A[: 2 * n], np.tile(omega, (2, 1)))}


@dataclass(frozen=True)
class Summary:
    """What is known before the first step: the variance along the axes, the moments of the pairs, the prior."""

    variance: Array
    joint: Array
    ends: Array
    prior: float | None

    def penalty(self, alpha: float, covariance_power: float) -> Array:
        """Equation (3)."""
        ev = self.variance
        return alpha * (np.sum(ev ** (covariance_power + 1)) / np.sum(ev)) / ev**covariance_power

    def penalties(self, alphas: Sequence[float] | Array, covariance_powers: Sequence[float]) -> Array:
        """Equation (3) for several settings, one column each."""
        return np.column_stack([self.penalty(a, k) for a, k in zip(alphas, covariance_powers, strict=True)])

    def scale(self, pen: Array) -> Array:
        """A rough inverse Hessian: curvature 0.15 of the logistic function, plus the penalty."""
        return np.vstack([1 / (0.15 * self.variance[:, None] + pen), np.full((1, pen.shape[1]), 4.0)])

    def largest_alpha(self, covariance_power: float) -> float:
        """The alpha above which, at prior 1/2, w = 0 is a minimum: the top of minus the Hessian of (1) at 0."""
        return max(self._top_moment(1 / np.sqrt(self.penalty(1.0, covariance_power)))[0] / 4, 1e-6)

    def starts(self) -> list[Array]:
        """The top eigenvector of the whitened pair moment, and with a prior the SD solution, up to scale.

        ``E[s x x'^T] = mu mu^T`` with ``mu = E[y x]``, so the first needs no prior; its sign
        follows the second.
        """
        shrunk = self.variance + 0.1 * self.variance.mean()
        moment = self.unit(self._top_moment(1 / np.sqrt(shrunk))[1] / np.sqrt(shrunk))
        # An eigenvector's sign is free; this one is the same for the same rows, however they are
        # laid out.
        moment *= np.copysign(1.0, moment @ self.ends[:-1, 0])
        if self.prior is None:
            return [np.append(moment, 0.0)]
        b, mean_answer = np.log(self.prior / (1 - self.prior)), self.joint[-1, -1] / 2
        if abs(mean_answer) > 1 - 1e-9:
            # One kind of answer only: there is no SD solution, and nothing but the pull tells the
            # two signs apart.
            return [np.append(moment, b), np.append(-moment, b)]
        # sum omega (s - mean s) (x + x')
        marginal = self.unit((self.joint[:-1, -1] - mean_answer * self.ends[:-1, 0]) / shrunk)
        # Similar pairs lean towards the larger class; +1 is the larger one unless the prior says
        # otherwise.
        marginal *= np.copysign(1.0, self.prior - 0.5)
        moment *= np.copysign(1.0, np.sum(moment * marginal * self.variance))
        return [np.append(moment, b), np.append(marginal, b)]

    def unit(self, w: Array) -> Array:
        """``w`` scaled so that its margins have variance one."""
        return w / max(float(np.sqrt(np.sum(w**2 * self.variance))), 1e-12)

    def _top_moment(self, scale: Array) -> tuple[float, Array]:
        """Top eigenvalue and eigenvector of ``E[s x x'^T]`` and its transpose, coordinates times ``scale``."""
        M = scale[:, None] * self.joint[:-1, :-1] * scale
        if len(M) <= 32:
            values, vectors = eigh(M)
        else:
            values, vectors = eigsh(M, k=1, which="LA", tol=1e-3, v0=np.ones(len(M)))
        return float(values[-1]), vectors[:, -1]


class Data(Protocol):
    """What a fit needs, whether its rows are in memory or in blocks."""

    @property
    def axes(self) -> Axes:
        """Principal axes of all rows."""
        ...

    @property
    def summary(self) -> Summary:
        """What is known before the first step."""
        ...

    def objective(self, pen: Array) -> Objective:
        """Equation (2) for these penalties, one column a problem."""
        ...

    def positive_share(self, v: Array) -> tuple[float, float]:
        """Share of the unlabeled rows (of all, where none has weight) on the positive side; sum of squared shares."""
        ...


@dataclass(frozen=True)
class PairData:
    """Rows in their axes, first ends, second ends, unlabeled, with answers and weights; see :class:`Data`."""

    A: Array
    s: Array
    omega: Array
    share: Array
    n_answers: float
    axes: Axes
    summary: Summary
    pull: float

    @classmethod
    def of(cls, X: Any, pairs: Pairs, weight: Array, prior: float | None, pull: float) -> PairData:
        """Lay out validated rows, at least one pair among them."""
        axes, A = Axes.of(X)
        A = A[np.concatenate([pairs.ends[:, 0], pairs.ends[:, 1], pairs.unlabeled])]
        s = np.where(pairs.similar, 1.0, -1.0)[:, None]
        omega, free = weight[pairs.ends[:, :1]], weight[pairs.unlabeled][:, None]
        n_answers = float(omega.sum())
        omega, share = omega / n_answers, free / (free.sum() or 1.0)
        summary = Summary(axes.variance, **pair_moments(A, s, omega), prior=prior)
        return cls(A, s, omega, share, n_answers, axes, summary, pull)

    def objective(self, pen: Array, omega: Array | None = None) -> PairObjective:
        """See :class:`Data`; with other pair weights where given, one column a problem."""
        omega = self.omega if omega is None else omega
        return PairObjective(self.A, self.s, omega, pen, self.share, self.summary.prior, self.pull)

    def positive_share(self, v: Array) -> tuple[float, float]:
        """See :class:`Data`."""
        n, known = 2 * len(self.s), self.share.any()
        share = self.share[:, 0] / self.share.sum() if known else np.full(len(self.A), 1 / len(self.A))
        positive = self.A[n if known else 0 :] @ v[:-1] + v[-1] > 0
        return float(share @ positive), float(share @ share)


def fit_path(data: Data, alphas: Array, covariance_powers: Sequence[float], starts: list[Array]) -> Array:
    """Solutions (n_alphas, r + 1, n_powers) for alphas (n_alphas, n_powers) that fall.

    Candidates at each alpha are the last alpha's solution and the first start; at the first alpha
    every start.
    """
    m = len(covariance_powers)
    path: list[Array] = []
    for row in alphas:
        candidates = [path[-1], _spread(starts[0], m)] if path else [_spread(start, m) for start in starts]
        count = len(candidates)
        pen = data.summary.penalties(row, covariance_powers)
        objective = data.objective(np.tile(pen, count))
        scale = data.summary.scale(objective.pen)
        W, f = lbfgs_many(objective.value_and_gradient, np.hstack(candidates), scale, _PATH_TOL, _RACE)
        # Ties go to the earlier candidate: the warm start.
        best = np.argmin(f.reshape(count, m) + 1e-6 * np.arange(count)[:, None], axis=0)
        W = W.reshape(-1, count, m)[:, best, np.arange(m)]
        path.append(lbfgs_many(objective.value_and_gradient, W, data.summary.scale(pen), _PATH_TOL, _PATH_ITER)[0])
    return np.array(path)


def _spread(start: Array, m: int) -> Array:
    return np.repeat(start[:, None], m, axis=1)


def log_evidence(data: PairData, w: Array, pen: Array) -> float:
    """Laplace's log evidence of one penalty at its solution, with the Fisher information of the answers."""
    n = len(data.s)
    z = data.A[: 2 * n] @ w[:-1] + w[-1]
    t1, t2 = np.split(np.tanh(z / 2)[:, None], 2)
    J = (1 - t1**2) * t2 * data.A[:n] + (1 - t2**2) * t1 * data.A[n : 2 * n]
    J *= np.sqrt(data.omega) / (2 * np.sqrt(np.maximum(1 - (t1 * t2) ** 2, 1e-12)) * np.sqrt(pen))
    K = J @ J.T if n < J.shape[1] else J.T @ J
    K[np.diag_indices(len(K))] += 1
    misfit = float(data.omega[:, 0] @ pair_loss(z[:n], z[n:], data.s[:, 0])) + float(pen @ w[:-1] ** 2) / 2
    return -data.n_answers * misfit - float(np.linalg.slogdet(K)[1]) / 2


def held_out_loss(
    data: PairData, alphas: Array, covariance_power: float, path: Array, train: NDArray[np.bool_]
) -> Array:
    """Loss (n_pairs, n_alphas, n_folds) of every pair under every fold's solution, ``train`` (n_pairs, n_folds).

    All alphas and folds are one batch, started from the solutions on all pairs. A fold's objective
    is (2) less the terms of the pairs left out, so alpha means the same in the folds and in the
    refit.
    """
    n, n_folds = train.shape
    pen = np.repeat(data.summary.penalties(alphas, [covariance_power] * len(alphas)), n_folds, axis=1)
    objective = data.objective(pen, np.tile(data.omega * train, len(alphas)))
    start = np.repeat(path.T, n_folds, axis=1)
    W, _ = lbfgs_many(objective.value_and_gradient, start, data.summary.scale(pen), _PATH_TOL, _PATH_ITER)
    Z = data.A[: 2 * n] @ W[:-1] + W[-1]
    return pair_loss(Z[:n], Z[n:], data.s).reshape(n, len(alphas), n_folds)
