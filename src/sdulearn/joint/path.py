"""From rows to solutions: principal axes, starts, the path of penalties, evidence, held-out loss.

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
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, svd
from scipy.sparse.linalg import eigsh

from sdulearn.errors import InputError
from sdulearn.joint.likelihood import (
    Objective,
    PairObjective,
    PriorPenalty,
    bordered_gram,
    bordered_sum,
    pair_loss,
)
from sdulearn.pairs import Pairs
from sdulearn.solvers import Design
from sdulearn.solvers.lbfgs import lbfgs_many
from sdulearn.solvers.linalg import weighted_gram
from sdulearn.types import Array, Mask, Rows

# Iterations after which only the best start of each problem is continued.
_TRIAL_ITER = 12
# How well the path is solved.
_PATH_TOL = 5e-3
_PATH_ITER = 200
# Directions with less than this share of the largest variance have none.
_NO_VARIANCE = 1e-12
# A column whose deviation is below this share of its mean is constant but for rounding.
CONSTANT = 1e-14
# Deviations that differ by more than this factor need more than an eigendecomposition of the
# covariance.
_UNEVEN = 1e4


@dataclass(frozen=True)
class Axes:
    """Principal axes of all rows: the coordinates of everything below, and the way back."""

    mean: Array
    V: Array
    variance: Array
    design: Design | None = None

    @classmethod
    def from_moments(cls, mean: Array, covariance: Array, design: Design | None = None) -> Axes:
        """Axes of rows with this mean and covariance.

        Directions without variance are dropped: w is 0 there.
        """
        deviation = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        level = np.abs(mean) + (0.0 if design is None else design.level)
        deviation[deviation <= CONSTANT * level] = 0.0
        if not deviation.any():
            raise InputError("No column of `X` varies, so nothing tells the classes apart. Add columns that do.")
        if deviation.max() > _UNEVEN * deviation[deviation > 0].min():
            return cls(mean, *_graded_axes(covariance, deviation), design)
        values, V = eigh(covariance)
        keep = values > _NO_VARIANCE * values[-1]
        return cls(mean, V[:, keep], values[keep], design)

    @classmethod
    def of(cls, X: Rows, weight: Array | None = None) -> tuple[Axes, Array]:
        """Axes of the rows by their weights, and the rows in them."""
        design = Design.from_rows(X, True)
        B = design.A[:, :-1]
        if weight is None or (weight == weight[0]).all():
            mean = np.asarray(B.mean(axis=0)).ravel()
            second = weighted_gram(B, None) / B.shape[0]
        else:
            share = weight / weight.sum()
            mean = B.T @ share
            second = weighted_gram(B, share)
        axes = cls.from_moments(mean, second - np.outer(mean, mean), design)
        return axes, np.asarray(B @ axes.V) - mean @ axes.V

    def outward(self, W: Array) -> Array:
        """Coefficients of centred columns from coefficients in the axes, the intercept last."""
        return np.concatenate([self.V @ W[:-1], W[-1:]])

    def inward(self, G: Array) -> Array:
        """Gradients in the axes from gradients in centred columns: outward's transpose."""
        return np.concatenate([self.V.T @ G[:-1], G[-1:]])

    def coefficients(self, v: Array) -> tuple[Array, float]:
        """User's ``(coef, intercept)`` of a solution in the axes."""
        w = self.V @ v[:-1]
        intercept = float(v[-1] - self.mean @ w)
        if self.design is None:
            return w, intercept
        return self.design.coefficients(np.append(w, intercept))


def column_deviations(X: Rows, weight: Array | None = None) -> Array:
    """Standard deviation of each column by the weights of the rows; zero where only rounding varies."""
    share = np.full(X.shape[0], 1 / X.shape[0]) if weight is None else weight / weight.sum()
    mean = X.T @ share
    if sparse.issparse(X):
        variance = X.multiply(X).T @ share - mean**2
        # A difference of squares is exact to the root of a rounding.
        exact = variance > 1e-14 * mean**2
        return np.where(exact, np.sqrt(np.where(exact, variance, 0.0)), 0.0)
    deviation = np.sqrt(np.einsum("i,ij->j", share, (X - mean) ** 2))
    return np.where(deviation > CONSTANT * np.abs(mean), deviation, 0.0)


def _graded_axes(covariance: Array, deviation: Array) -> tuple[Array, Array]:
    """Principal axes and their variances where columns have units of different sizes.

    The eigenvalues of the covariance round like the largest. Those of the correlations do not; with
    a root of these the axes are the singular vectors of a root of the covariance, whose rounding is
    that of the largest deviation, not of its square.
    """
    varies = np.flatnonzero(deviation)
    unit = deviation[varies]
    values, U = eigh(covariance[np.ix_(varies, varies)] / np.outer(unit, unit))
    keep = values > _NO_VARIANCE * values[-1]
    root = unit[:, None] * U[:, keep] * np.sqrt(values[keep])
    left, singular, _ = svd(root, full_matrices=False)
    V = np.zeros((len(deviation), len(singular)))
    V[varies] = left
    return V, singular**2


def axis_penalty(variance: Array, alpha: float, covariance_power: float) -> Array:
    """Equation (3)."""
    # In units of the largest, so that no power overflows.
    ev = variance / variance.max()
    return alpha * (np.sum(ev ** (covariance_power + 1)) / np.sum(ev)) / ev**covariance_power


def pair_moments(A: Rows, s: Array, omega: Array) -> dict[str, Array]:
    """Sums over pairs that the starts need.

    "joint" is ``sum omega s [x, 1] [x', 1]'`` plus its transpose, "ends" ``sum omega [x + x', 2]``.
    """
    n = len(s)
    joint = bordered_gram(A[:n], (omega * s)[:, 0], A[n : 2 * n])
    return {"joint": joint + joint.T, "ends": bordered_sum(A[: 2 * n], np.tile(omega, (2, 1)))}


@dataclass(frozen=True)
class Summary:
    """What the starts and the penalties need: variance of the axes, moments of the pairs, prior.

    ``named`` is the direction from the labelled points of class -1 to those of class +1, if any.
    """

    variance: Array
    joint: Array
    ends: Array
    prior: float | None
    named: Array | None = None

    def penalty(self, alpha: float, covariance_power: float) -> Array:
        """Equation (3)."""
        return axis_penalty(self.variance, alpha, covariance_power)

    def penalties(self, alphas: Array, covariance_powers: Sequence[float]) -> Array:
        """Equation (3) for several settings, one column each."""
        settings = zip(alphas, covariance_powers, strict=True)
        return np.column_stack([self.penalty(alpha, power) for alpha, power in settings])

    def scale(self, pen: Array) -> Array:
        """A rough inverse Hessian: curvature 0.15 of the logistic function, plus the penalty."""
        intercept = np.full((1, pen.shape[1]), 4.0)
        return np.vstack([1 / (0.15 * self.variance[:, None] + pen), intercept])

    def largest_alpha(self, covariance_power: float) -> float:
        """The alpha above which, at prior 1/2, w = 0 is a minimum.

        It is the top eigenvalue of minus the Hessian of (1) at 0.
        """
        top, _ = self._top_moment(1 / np.sqrt(self.penalty(1.0, covariance_power)))
        return max(top / 4, 1e-6)

    def starts(self) -> list[Array]:
        """The top eigenvector of the whitened pair moment, and with a prior the SD solution, up to scale.

        ``E[s x x'^T] = mu mu^T`` with ``mu = E[y x]``, so the first needs no prior; its sign
        follows the second. With labels it follows these, and their direction is one more start.
        """
        starts = self._unnamed_starts()
        if self.named is None:
            return starts
        moment = starts[0]
        moment[:-1] *= np.copysign(1.0, moment[:-1] @ self.named)
        return [moment, np.append(self.unit(self.named / self._shrunk_variance()), moment[-1]), *starts[1:]]

    def _shrunk_variance(self) -> Array:
        typical = float(self.variance.mean())
        if typical > _UNEVEN * np.median(self.variance):
            # One column in a tiny unit must not blot out the others.
            typical = float(np.median(self.variance))
        return self.variance + 0.1 * typical

    def _unnamed_starts(self) -> list[Array]:
        shrunk = self._shrunk_variance()
        moment = self.unit(self._top_moment(1 / np.sqrt(shrunk))[1] / np.sqrt(shrunk))
        # An eigenvector's sign is free; this one is the same for the same rows, however they are
        # laid out.
        moment *= np.copysign(1.0, moment @ self.ends[:-1, 0])
        if self.prior is None:
            return [np.append(moment, 0.0)]
        b = np.log(self.prior / (1 - self.prior))
        mean_answer = self.joint[-1, -1] / 2
        if abs(mean_answer) > 1 - 1e-9:
            # One kind of answer only: there is no SD solution, and nothing but the prior penalty
            # tells the two signs apart.
            return [np.append(moment, b), np.append(-moment, b)]
        # sum omega (s - mean s) (x + x')
        marginal = self.unit((self.joint[:-1, -1] - mean_answer * self.ends[:-1, 0]) / shrunk)
        # The mean of similar pairs is nearer to that of the larger class, which is +1 unless the
        # prior says otherwise.
        marginal *= np.copysign(1.0, self.prior - 0.5)
        moment *= np.copysign(1.0, np.sum(moment * marginal * self.variance))
        return [np.append(moment, b), np.append(marginal, b)]

    def unit(self, w: Array) -> Array:
        """``w`` scaled so that its margins have variance one."""
        return w / max(float(np.sqrt(np.sum(w**2 * self.variance))), 1e-12)

    def _top_moment(self, scale: Array) -> tuple[float, Array]:
        """Top eigenvalue and eigenvector of "joint", its coordinates times ``scale``."""
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
        """What the starts and the penalties need."""
        ...

    def objective(self, pen: Array) -> Objective:
        """Equation (2) for these penalties, one column a problem."""
        ...

    def positive_share(self, v: Array) -> tuple[float, float]:
        """Share of the unlabeled rows on the positive side, and the sum of their squared weights.

        Of all rows where none is unlabeled.
        """
        ...


@dataclass(frozen=True)
class PairData:
    """Rows in their axes, first ends, second ends, unlabeled, with answers and weights."""

    A: Array
    s: Array
    omega: Array
    share: Array
    n_effective: float
    axes: Axes
    summary: Summary
    prior_penalty: PriorPenalty | None

    @classmethod
    def of(cls, X: Rows, pairs: Pairs, weight: Array, prior: float | None, prior_strength: float) -> PairData:
        """Lay out validated rows, at least one pair among them."""
        axes, A = Axes.of(X, weight)
        A = A[np.concatenate([pairs.ends[:, 0], pairs.ends[:, 1], pairs.unlabeled])]
        s = np.where(pairs.similar, 1.0, -1.0)[:, None]
        pair_weight = weight[pairs.ends[:, :1]]
        omega = pair_weight / pair_weight.sum()
        share = weight[pairs.unlabeled][:, None]
        share = share / share.sum()
        summary = Summary(axes.variance, **pair_moments(A, s, omega), prior=prior)
        prior_penalty = PriorPenalty.of(prior, prior_strength, len(share))
        n_effective = 1 / float(np.sum(omega**2))
        return cls(A, s, omega, share, n_effective, axes, summary, prior_penalty)

    def objective(self, pen: Array, omega: Array | None = None) -> PairObjective:
        """See :class:`Data`; with other pair weights where given, one column a problem."""
        omega = self.omega if omega is None else omega
        return PairObjective(self.A, self.s, omega, pen, self.share, self.prior_penalty)

    def positive_share(self, v: Array) -> tuple[float, float]:
        """See :class:`Data`."""
        if len(self.share):
            A = self.A[2 * len(self.s) :]
            share = self.share[:, 0]
        else:
            A = self.A
            share = np.tile(self.omega[:, 0], 2) / 2
        positive = A @ v[:-1] + v[-1] > 0
        return float(share @ positive), float(share @ share)

    def empty(self, alphas: Array, covariance_powers: Sequence[float], path: Array) -> Mask:
        """Where on the path (n_alphas, n_powers) the model names no classes."""
        if self.summary.prior is not None:
            return np.zeros(alphas.shape, dtype=bool)
        return alphas >= [self.summary.largest_alpha(power) for power in covariance_powers]

    def log_evidence(self, w: Array, pen: Array) -> float:
        """Laplace's log evidence of one penalty at its solution, by the answers' Fisher information."""
        n = len(self.s)
        z = self.A[: 2 * n] @ w[:-1] + w[-1]
        t1, t2 = np.split(np.tanh(z / 2)[:, None], 2)
        J = (1 - t1**2) * t2 * self.A[:n] + (1 - t2**2) * t1 * self.A[n : 2 * n]
        J *= np.sqrt(self.omega) / (2 * np.sqrt(np.maximum(1 - (t1 * t2) ** 2, 1e-12)) * np.sqrt(pen))
        misfit = float(self.omega[:, 0] @ pair_loss(z[:n], z[n:], self.s[:, 0]))
        misfit += float(pen @ w[:-1] ** 2) / 2
        return -self.n_effective * misfit - log_volume(J)


class HasEvidence(Protocol):
    """What :func:`path_evidence` needs."""

    @property
    def summary(self) -> Summary:
        """What the penalties need."""
        ...

    def log_evidence(self, w: Array, pen: Array) -> float:
        """Laplace's log evidence of one penalty at its solution."""
        ...


class Problems(Protocol):
    """What :func:`fit_path` needs."""

    @property
    def summary(self) -> Summary:
        """What the penalties need."""
        ...

    def objective(self, pen: Array) -> Objective:
        """The objective for these penalties, one column a problem."""
        ...


def fit_path(data: Problems, alphas: Array, covariance_powers: Sequence[float], starts: list[Array]) -> Array:
    """Solutions (n_alphas, r + 1, n_powers) for alphas (n_alphas, n_powers) that fall.

    Candidates at each alpha are the last alpha's solution and the first start; at the first alpha
    every start. A start is one for all columns, or (r + 1, n_powers).
    """
    m = len(covariance_powers)
    path: list[Array] = []
    for row in alphas:
        candidates = [_repeated(start, m) for start in starts]
        if path:
            candidates = [path[-1], candidates[0]]
        count = len(candidates)
        pen = data.summary.penalties(row, covariance_powers)
        objective = data.objective(np.tile(pen, count))
        evaluate = objective.value_and_gradient
        scale = data.summary.scale(objective.pen)
        W, f = lbfgs_many(evaluate, np.hstack(candidates), scale, _PATH_TOL, _TRIAL_ITER)
        # Ties go to the earlier candidate: the warm start.
        best = np.argmin(f.reshape(count, m) + 1e-6 * np.arange(count)[:, None], axis=0)
        W = W.reshape(-1, count, m)[:, best, np.arange(m)]
        W, _ = lbfgs_many(evaluate, W, scale[:, :m], _PATH_TOL, _PATH_ITER)
        path.append(W)
    return np.array(path)


def _repeated(start: Array, m: int) -> Array:
    return np.repeat(start[:, None], m, axis=1) if start.ndim == 1 else start


def path_evidence(data: HasEvidence, alphas: Array, covariance_powers: Sequence[float], path: Array) -> Array:
    """Laplace's log evidence of every setting on the path (n_alphas, n_powers)."""
    evidence = np.empty(alphas.shape)
    for i, j in np.ndindex(*alphas.shape):
        pen = data.summary.penalty(float(alphas[i, j]), covariance_powers[j])
        evidence[i, j] = data.log_evidence(path[i, :, j], pen)
    return evidence


@dataclass(frozen=True)
class FoldData:
    """As many problems as folds, each on some of the pairs: ``train`` (n_pairs, n_folds)."""

    data: PairData
    train: Mask

    @property
    def summary(self) -> Summary:
        """That of all pairs: only its penalties matter."""
        return self.data.summary

    def objective(self, pen: Array) -> PairObjective:
        """Equation (2) of each fold, as many times as there are penalties."""
        omega = self.data.omega * self.train
        return self.data.objective(pen, np.tile(omega, pen.shape[1] // omega.shape[1]))

    def starts(self) -> list[Array]:
        """The starts of each fold, from its own pairs: (r + 1, n_folds) each."""
        data = self.data
        found = []
        for fold in self.train.T:
            omega = data.omega * fold[:, None]
            moments = pair_moments(data.A, data.s, omega / max(omega.sum(), 1e-300))
            found.append(Summary(data.summary.variance, **moments, prior=data.summary.prior).starts())
        return [np.column_stack(columns) for columns in zip(*found, strict=True)]


def log_volume(J: Array) -> float:
    """``log det(I + J'J) / 2``; the determinant is that of I + JJ', and the smaller one is computed."""
    K = J @ J.T if len(J) < J.shape[1] else J.T @ J
    K[np.diag_indices(len(K))] += 1
    return float(np.linalg.slogdet(K)[1]) / 2


def held_out_loss(data: PairData, alphas: Array, covariance_power: float, train: Mask) -> Array:
    """Loss (n_pairs, n_alphas, n_folds) of every pair under every fold's solution.

    ``train`` (n_pairs, n_folds) says which pairs a fold is fitted on. A fold's objective is (2) less
    the terms of the pairs left out, so alpha means the same in the folds and in the refit.
    """
    n, n_folds = train.shape
    folds = FoldData(data, train)
    path = fit_fold_paths(folds, alphas, covariance_power, folds.starts())
    W = np.moveaxis(path, 0, 1).reshape(path.shape[1], -1)
    Z = data.A[: 2 * n] @ W[:-1] + W[-1]
    return pair_loss(Z[:n], Z[n:], data.s).reshape(n, len(alphas), n_folds)


def fit_fold_paths(folds: Problems, alphas: Array, covariance_power: float, starts: list[Array]) -> Array:
    """Solutions (n_alphas, r + 1, n_folds) of every fold for alphas that fall, from the fold's own starts.

    A fold must not start from what was found with the answers that it leaves out. An alpha in the
    middle is solved from the starts, and the others in one batch from there.
    """
    n_folds = starts[0].shape[1]
    middle = (len(alphas) - 1) // 2
    first = fit_path(folds, np.full((1, n_folds), alphas[middle]), [covariance_power] * n_folds, starts)[0]
    pen = np.repeat(folds.summary.penalties(alphas, [covariance_power] * len(alphas)), n_folds, axis=1)
    evaluate = folds.objective(pen).value_and_gradient
    scale = folds.summary.scale(pen)
    W, _ = lbfgs_many(evaluate, np.tile(first, len(alphas)), scale, _PATH_TOL, _PATH_ITER)
    return np.moveaxis(W.reshape(len(W), len(alphas), n_folds), 1, 0)
