"""Points in their principal axes, and the moments from which starts and penalties follow.

In the principal axes of all rows, answered and unlabeled, with variance ev_j along axis j, the penalty is

    pen_j = alpha c_k / ev_j^k,  c_k = sum ev^(k+1) / sum ev                                  (1)

k = ``covariance_power`` = 0 is the ridge alpha / 2 |w|^2. k = 1 is alpha / 2 w' C^-1 w up to
scale, with C the covariance of the rows. k = 2 goes further: unlabeled rows show along which
directions the points differ, and the classifier prefers those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, svd

from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.y import U
from sdulearn.errors import InputError, ScalingWarning, warn
from sdulearn.solvers.linalg import weighted_gram
from sdulearn.solvers.problem import Design
from sdulearn.types import Array, Indices, Mask, Rows

# Directions with less than this share of the largest variance are dropped.
_NO_VARIANCE = 1e-12
# A column whose deviation is below this share of its mean is constant up to rounding.
_CONSTANT = 1e-14
# Deviations that differ by more than this factor need more than an eigendecomposition of the covariance.
UNEVEN = 1e4
# A mean prediction of 0 would be infinitely far from a given prior.
_LEAST_MEAN = 1e-9
# Where standard deviations differ by this factor, the smaller column has no influence at any covariance power.
_FAR_APART = 1e3


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of all rows, and the way back to the user's columns."""

    mean: Array
    V: Array
    variance: Array
    design: Design

    @classmethod
    def from_moments(cls, mean: Array, covariance: Array, design: Design) -> Axes:
        """Return the axes of rows with this mean and covariance, as far as they vary."""
        deviation = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        deviation[deviation <= _CONSTANT * (np.abs(mean) + design.level)] = 0.0
        if not deviation.any():
            raise InputError("All columns of `X` are constant, so they cannot separate the classes. Add others.")
        if deviation.max() > UNEVEN * deviation[deviation > 0].min():
            return cls(mean, *_graded_axes(covariance, deviation), design)
        values, V = eigh(covariance)
        keep = values > _NO_VARIANCE * values[-1]
        return cls(mean, V[:, keep], values[keep], design)

    @classmethod
    def of(
        cls, X: Rows, weight: Array, drawn: Mask | None = None, moments: tuple[Array, Array] | None = None
    ) -> tuple[Axes, Array]:
        """Return the axes of weighted rows, and the rows in them.

        If the rows ``drawn`` are a sample, ``moments`` are the mean and covariance of what it was drawn from.
        """
        design = Design.from_rows(X, True, in_span=moments is None)
        B = design.A[:, :-1]
        share = weight / weight.sum()
        if moments is not None and drawn is not None:
            whole = float(share[drawn].sum())
            share = np.where(drawn, 0.0, share)
            centre = moments[0] - design.shift
            mean = B.T @ share + whole * centre
            second = weighted_gram(B, share) + whole * (moments[1] + np.outer(centre, centre))
        else:
            mean = B.T @ share
            second = weighted_gram(B, share)
        axes = cls.from_moments(mean, second - np.outer(mean, mean), design)
        return axes, np.asarray(B @ axes.V) - mean @ axes.V

    @property
    def mean_variance(self) -> float:
        """The mean variance of the columns, the unit of the penalty."""
        return float(self.variance.sum()) / len(self.V)

    def coefficients(self, W: Array) -> tuple[Array, Array]:
        """Return coefficients (n_scores, d) and intercepts in the user's columns, of a solution (r + 1, n_scores)."""
        V = self.V @ W[:-1]
        columns = [self.design.coefficients(w) for w in np.vstack([V, W[-1] - self.mean @ V]).T]
        return np.array([coef for coef, _ in columns]), np.array([intercept for _, intercept in columns])


def _graded_axes(covariance: Array, deviation: Array) -> tuple[Array, Array]:
    """Return principal axes and their variances where columns have units of different sizes."""
    # The eigenvalues of the covariance have the rounding error of the largest. A square root of it,
    # from a root of the correlations, has that of the largest deviation, not of its square.
    varies = np.flatnonzero(deviation)
    unit = deviation[varies]
    values, U = eigh(covariance[np.ix_(varies, varies)] / np.outer(unit, unit))
    keep = values > _NO_VARIANCE * values[-1]
    root = unit[:, None] * U[:, keep] * np.sqrt(values[keep])
    left, singular, _ = svd(root, full_matrices=False)
    V = np.zeros((len(deviation), len(singular)))
    V[varies] = left
    return V, singular**2


class TrainingPoints:
    """Points in their principal axes. A point is the weighted mean of its rows.

    ``moments`` are the exact mean and covariance of the rows in no answer, if those in ``X`` are a sample.
    """

    def __init__(self, X: Rows, graph: AnswerGraph, moments: tuple[Array, Array] | None = None) -> None:
        # Each point has the mean weight of its rows.
        points = graph.by_point(X)
        self.axes, A = Axes.of(points, graph.point_weights, graph.degree == 0, moments)
        silent = np.flatnonzero((graph.source == U) & (graph.labels[graph.row_point] == 0))
        share = np.bincount(graph.row_point[silent], graph.row_weight[silent], graph.n_points)
        rest = np.flatnonzero(share)
        known = np.flatnonzero((graph.degree > 0) | (graph.labels != 0))
        # Rows, points and answers of all points, and those of the known points alone: in an answer or with a label.
        self.everything = graph
        self.graph = graph.subgraph(known)
        # (n_known + n_unlabeled, r): known points, then all others.
        self.A = A[np.concatenate([known, rest])]
        self.known = self.A[: len(known)]
        self.unlabeled = self.A[len(known) :]
        # (n_unlabeled,), their weights, which sum to 1.
        self.share = share[rest] / share.sum()
        # (n_known + n_unlabeled,), the weights of all points, which sum to 1.
        every = graph.point_weights[np.concatenate([known, rest])]
        self.every_share = every / every.sum()
        # Points that show the sizes of the classes, the unlabeled ones if any, and their weights.
        self.judged = (self.unlabeled, self.share) if len(rest) else (self.known, self.every_share)

    def shown(self, folds: Sequence[tuple[Indices, Indices]]) -> Mask:
        """Return which known points (n_known, n_folds) the training rows of each fold show."""
        known = np.isin(self.everything.points, self.graph.points)
        row_point = self.everything.row_point
        return np.column_stack([np.bincount(row_point[train], minlength=len(known))[known] > 0 for train, _ in folds])


def axis_penalties(variance: Array, alphas: Array | Sequence[float], powers: Array | Sequence[float] | float) -> Array:
    """Return equation (1) (r, B) for B alphas, with a covariance power for each or one for all."""
    # Relative to the largest, so that no power overflows.
    ev = (variance / variance.max())[:, None]
    k = np.asarray(powers, dtype=np.float64)
    return np.asarray(alphas) * (np.sum(ev ** (k + 1), axis=0) / np.sum(ev)) / ev**k


class PriorPull(NamedTuple):
    """``strength KL(shares || mean)`` as a function of the mean prediction on unlabeled points."""

    shares: Array  # (n_classes,)
    strength: float

    @classmethod
    def of(cls, prior: float | ArrayLike | None, strength: float, n_unlabeled: int, n_classes: int) -> PriorPull | None:
        """Return the pull to P(y = +1) or to the shares of K > 2 classes; None where there is nothing to pull."""
        if prior is None:
            return None
        p = np.asarray(prior, dtype=np.float64)
        shares = np.stack([1 - p, p]) if n_classes == 2 else p
        if shares.shape != (n_classes,) or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
            shares_wanted = f"contain {n_classes} class shares above 0 of sum 1"
            wanted = "be P(y = +1), between 0 and 1" if n_classes == 2 else shares_wanted
            raise InputError(f"`prior` must {wanted}, or be None; got {prior!r}.")
        return cls(shares / shares.sum(), strength) if strength and n_unlabeled else None

    def terms(self, p: Array, share: Array) -> tuple[Array, Array]:
        """Return the value (B,), and its slope (n_unlabeled, n_classes, B) in the scores of the classes.

        ``p`` are class probabilities (n_unlabeled, n_classes, B), ``share`` the weights of their points. With two
        classes the slope in the log odds of +1 is that of its last class.
        """
        ratio = self.shares[:, None] / self._mean(p, share)
        value = self.strength * np.sum(self.shares[:, None] * np.log(ratio), axis=0)
        pulled = np.sum(p * ratio, axis=1, keepdims=True)
        return value, self.strength * share[:, None, None] * p * (pulled - ratio)

    def curvature(self, p: Array, share: Array) -> Array:
        """Return a curvature (n_unlabeled, n_classes, B) of :meth:`terms` that is exact for a shift of one class."""
        rise = share[:, None, None] * p * (1 - p)
        bend = self.strength * self.shares[:, None] / self._mean(p, share) ** 2 * rise.sum(axis=0)
        # With two classes a shift of one is a shift of the other.
        return rise * (bend if len(self.shares) > 2 else bend.sum(axis=0))

    def _mean(self, p: Array, share: Array) -> Array:
        """Return the mean prediction (n_classes, B), away from 0."""
        return np.maximum(np.tensordot(share, p, 1), _LEAST_MEAN)


def bordered_sum(A: Rows, G: Array) -> Array:
    """Return ``[A, 1]' G``."""
    return np.vstack([A.T @ G, np.ones(len(G)) @ G])


def warn_of_scales(deviation: Array, mean: Array, names: Sequence[str] | None = None) -> None:
    """Give a ScalingWarning where the standard deviations of the columns are far apart."""
    # A column in which only rounding varies is constant.
    deviation = np.where(deviation > _CONSTANT * np.abs(mean), deviation, 0.0)
    largest = int(np.argmax(deviation))
    hidden = np.flatnonzero((deviation > 0) & (deviation * _FAR_APART < deviation[largest]))
    if not hidden.size:
        return
    smallest = hidden[np.argmin(deviation[hidden])]
    ratio = deviation[largest] / deviation[smallest]
    named = [f"column {j}" if names is None else f"column {names[j]!r}" for j in (largest, smallest)]
    more = f" ({hidden.size - 1} more are as small)" if hidden.size > 1 else ""
    warn(
        f"In `X`, the standard deviation of {named[0]} is {ratio:.1g} times that of {named[1]}{more}. "
        "The penalty is in the units of the columns, so the small ones may have no influence. Standardise "
        "the features first, for example with sklearn.preprocessing.StandardScaler in a Pipeline.",
        ScalingWarning,
    )
