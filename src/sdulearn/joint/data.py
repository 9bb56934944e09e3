"""Points in their principal axes, and the moments from which starts and penalties follow.

In the principal axes of all rows, answered and unlabeled, with variance ev_j along axis j, the
penalty is

    pen_j = alpha c_k / ev_j^k,  c_k = sum ev^(k+1) / sum ev                                  (1)

k = ``covariance_power`` = 0 is the ridge alpha / 2 |w|^2. k = 1 is alpha / 2 w' C^-1 w up to
scale, with C the covariance of the rows. k = 2 goes further: unlabeled rows show along which
directions the points differ, and the classifier prefers those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, svd
from scipy.sparse.linalg import eigsh

from sdulearn.answers.graph import AnswerGraph, weights_by_component
from sdulearn.answers.y import U
from sdulearn.errors import InputError, ScalingWarning, warn
from sdulearn.solvers.linalg import weighted_gram
from sdulearn.solvers.problem import Design
from sdulearn.types import Array, Indices, Mask, Rows

# Directions with less than this share of the largest variance are dropped.
_NO_VARIANCE = 1e-12
# A column whose deviation is below this share of its mean is constant up to rounding.
_CONSTANT = 1e-14
# Deviations that differ by more than this factor need more than an eigendecomposition of the
# covariance.
_UNEVEN = 1e4
# The least alpha at which a model leaves zero, as a share of the mean variance of the axes.
MIN_ALPHA_MAX = 1e-6
# Where standard deviations differ by this factor, the smaller column has no influence at any
# covariance power.
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
            raise InputError("No column of `X` varies, so nothing tells the classes apart. Add columns that do.")
        if deviation.max() > _UNEVEN * deviation[deviation > 0].min():
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

    def coefficients(self, v: Array) -> tuple[Array, float]:
        """Return ``(coef, intercept)`` in the user's columns of a solution in the axes."""
        w = self.V @ v[:-1]
        return self.design.coefficients(np.append(w, v[-1] - self.mean @ w))


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


class TrainingData:
    """Points in their principal axes. A point is the weighted mean of its rows.

    ``moments`` are the exact mean and covariance of the rows in no answer, if those in ``X`` are a sample.
    """

    def __init__(self, X: Rows, graph: AnswerGraph, moments: tuple[Array, Array] | None = None) -> None:
        # Each point has the mean weight of its rows.
        points = graph.by_point(X)
        weight = graph.row_weight
        self.axes, A = Axes.of(points, graph.point_weights, graph.degree == 0, moments)
        silent = np.flatnonzero((graph.source == U) & (graph.labels[graph.row_point] == 0))
        share = np.bincount(graph.row_point[silent], weight[silent], graph.n_points)
        rest = np.flatnonzero(np.bincount(graph.row_point[silent], minlength=graph.n_points))
        known = np.flatnonzero((graph.degree > 0) | (graph.labels != 0))
        place = np.full(graph.n_points, -1)
        place[known] = np.arange(len(known))
        # (n_rows,), the known point that each row shows, or -1.
        self.row_place = place[graph.row_point]
        # Answers and labels of the known points, weighted relative to their component; and the mean
        # weight (n_components,) of the answers and labels of each.
        self.graph, self.weight = weights_by_component(graph.subgraph(known))
        # (n_known + n_unlabeled, r): points in an answer or with a label, then all others.
        self.A = A[np.concatenate([known, rest])]
        self.known = self.A[: len(known)]
        self.unlabeled = self.A[len(known) :]
        # (n_unlabeled,), their weights, which sum to 1.
        self.share = share[rest] / share.sum()
        # (n_known + n_unlabeled,), the weights of all points, which sum to 1.
        every = graph.point_weights[np.concatenate([known, rest])]
        self.every_share = every / every.sum()
        # Points that show the sizes of the classes, the unlabeled ones if any, and their weights.
        self.judged = (self.unlabeled, self.share)
        if not len(rest):
            weight = self.weight[self.graph.component]
            self.judged = (self.known, weight / weight.sum())

    def known_to_folds(self, splits: Iterable[tuple[Indices, Indices]]) -> Mask:
        """Return which known points (n_known, n_folds) the training rows of each split show."""
        folds = []
        for train, _ in splits:
            shown = np.zeros(self.graph.n_points + 1, dtype=bool)
            # Rows of other points have place -1, which is cut off.
            shown[self.row_place[train]] = True
            folds.append(shown[:-1])
        return np.column_stack(folds)


def loose_pairs(graph: AnswerGraph) -> Mask:
    """Return whether each component is two points without a label."""
    return (graph.component_sizes == 2) & ~graph.labelled


def axis_penalties(variance: Array, alphas: Array | Sequence[float], powers: Array | Sequence[float] | float) -> Array:
    """Return equation (1) (r, B) for B alphas, with a covariance power for each or one for all."""
    # Relative to the largest, so that no power overflows.
    ev = (variance / variance.max())[:, None]
    k = np.asarray(powers, dtype=np.float64)
    return np.asarray(alphas) * (np.sum(ev ** (k + 1), axis=0) / np.sum(ev)) / ev**k


def rough_inverse_hessian(variance: Array, pen: Array, n_scores: int = 1) -> Array:
    """Return its diagonal ((r + 1) n_scores, B), with 0.15 for the logistic curvature."""
    intercept = np.full((1, pen.shape[1]), 0.25 / n_scores)
    hessian = np.vstack([0.15 * variance[:, None] / n_scores + pen, intercept])
    return 1 / np.repeat(hessian, n_scores, axis=0)


class PriorPull(NamedTuple):
    """``strength KL(shares || mean)`` as a function of the mean prediction on unlabeled points."""

    shares: Array  # (n_classes,)
    strength: float

    @classmethod
    def of(cls, prior: float | ArrayLike | None, strength: float, n_unlabeled: int) -> PriorPull | None:
        """Return the pull to P(y = +1) or class shares; None where there is nothing to pull."""
        if prior is None or not strength or not n_unlabeled:
            return None
        p = np.asarray(prior, dtype=np.float64)
        shares = p if p.ndim else np.stack([1 - p, p])
        return cls(shares / shares.sum(), strength)

    def derivatives(self, mean: Array) -> tuple[Array, Array, Array]:
        """Return the value (B,) and its first two derivatives in ``mean``.

        ``mean`` is that of each class (n_classes, B); with two classes that of +1 alone (B,).
        """
        two = len(self.shares) == 2
        mean = np.maximum(np.stack([1 - mean, mean]) if two else mean, 1e-9)
        shares = self.shares.reshape(-1, *[1] * (mean.ndim - 1))
        value = self.strength * np.sum(shares * np.log(shares / mean), axis=0)
        first = -self.strength * shares / mean
        second = self.strength * shares / mean**2
        return (value, first[1] - first[0], second[0] + second[1]) if two else (value, first, second)


def bordered_sum(A: Rows, G: Array) -> Array:
    """Return ``[A, 1]' G``."""
    return np.vstack([A.T @ G, np.ones(len(G)) @ G])


class Moments:
    """Weighted sums over answers with two classes, from which starts and penalties follow."""

    def __init__(
        self, variance: Array, joint: Array, ends: Array, prior: float | None, named: Array | None = None
    ) -> None:
        unit = 2 / max(float(ends[-1, 0]), 1e-300)
        self.variance = variance
        # (r, r), sum of ``omega s (x x'^T + its transpose)`` over pairs.
        self.joint = unit * joint
        # (r,), sum of ``omega (x + x')`` over pairs.
        self.ends = unit * ends[:-1, 0]
        # Given, or None.
        self.prior = prior
        # The direction from the labelled points of class -1 to those of class +1, if any.
        self.named = named
        typical = float(variance.mean())
        if typical > _UNEVEN * np.median(variance):
            # One column in a tiny unit must not dominate the others.
            typical = float(np.median(variance))
        self._shrunk = variance + 0.1 * typical

    def alpha_max(self, covariance_power: float) -> float:
        """Return the alpha above which, at prior 1/2, w = 0 is a minimum, by the Hessian there."""
        top, _ = self._top_moment(1 / np.sqrt(axis_penalties(self.variance, [1.0], covariance_power)[:, 0]))
        return max(top / 4, MIN_ALPHA_MAX * float(self.variance.mean()))

    def starts(self) -> list[Array]:
        """Return the direction of the labels, if any, and the top eigenvector of the pair moment."""
        # E[s x x'^T] = mu mu^T with mu = E[y x], so it needs no prior.
        root = np.sqrt(self._shrunk)
        moment = self._top_moment(1 / root)[1] / root
        # The sign of an eigenvector is arbitrary; this choice does not depend on the order of the
        # rows.
        moment *= np.copysign(1.0, moment @ self.ends)
        b = 0.0 if self.prior is None else np.log(self.prior / (1 - self.prior))
        directions = [moment]
        if self.named is not None:
            moment *= np.copysign(1.0, moment @ self.named)
            directions.append(self.named / self._shrunk)
        elif self.prior is not None:
            # Only the pull tells the two signs apart.
            directions.append(-moment)
        # Scaled to logits of variance one.
        return [np.append(w / np.sqrt(max(float(w**2 @ self.variance), 1e-24)), b) for w in directions]

    def _top_moment(self, scale: Array) -> tuple[float, Array]:
        """Return the top eigenvalue and eigenvector of "joint" in scaled coordinates."""
        M = scale[:, None] * self.joint * scale
        if len(M) <= 32 or not M.any():
            values, vectors = eigh(M)
        else:
            values, vectors = eigsh(M, k=1, which="LA", tol=1e-3, v0=np.ones(len(M)))
        return float(values[-1]), vectors[:, -1]


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
        "The penalty is in the units of the columns, so the small ones may have no say. Standardise "
        "the features first, for example with sklearn.preprocessing.StandardScaler in a Pipeline.",
        ScalingWarning,
    )
