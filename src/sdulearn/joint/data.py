"""Training data of a fit: points in their principal axes, and the moments from which starts and penalties follow.

In the principal axes of all rows, answered and unlabeled, with variance ev_j along axis j, the penalty
is

    pen_j = alpha c_k / ev_j^k,  c_k = sum ev^(k+1) / sum ev                                  (1)

k = ``covariance_power`` = 0 is the ridge alpha / 2 |w|^2. k = 1 is alpha / 2 w' C^-1 w up to scale,
C the covariance of the rows, k = 2 goes further: unlabeled rows say along which directions the
points differ, and the classifier leans on those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import eigh, svd
from scipy.sparse.linalg import eigsh
from sklearn.utils.sparsefuncs import mean_variance_axis

from sdulearn.answers.graph import AnswerGraph, subgraph, weights_by_component
from sdulearn.errors import InputError, ScalingWarning, warn
from sdulearn.solvers.linalg import weighted_gram
from sdulearn.solvers.problem import Design
from sdulearn.types import Array, Codes, Indices, Mask, Rows

# Directions with less than this share of the largest variance have none.
_NO_VARIANCE = 1e-12
# A column whose deviation is below this share of its mean is constant but for rounding.
CONSTANT = 1e-14
# Deviations that differ by more than this factor need more than an eigendecomposition of the
# covariance.
_UNEVEN = 1e4
# About so many unlabeled points give the mean prediction on the way to a solution, to within 1%.
_MOST_LIGHT = 2_500
# Standard deviations this many times apart: the smaller column has lost its say at any covariance
# power.
_FAR_APART = 1e3


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of all rows: the coordinates of everything below, and the way back."""

    mean: Array
    V: Array
    variance: Array
    design: Design | None = None

    @classmethod
    def from_moments(cls, mean: Array, covariance: Array, design: Design | None = None) -> Axes:
        """Axes of rows with this mean and covariance, but for directions without variance."""
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
    def of(cls, X: Rows, weight: Array) -> tuple[Axes, Array]:
        """Axes of the rows by their weights, and the rows in them."""
        design = Design.from_rows(X, True)
        B = design.A[:, :-1]
        if (weight == weight[0]).all():
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


def _graded_axes(covariance: Array, deviation: Array) -> tuple[Array, Array]:
    """Principal axes and their variances where columns have units of different sizes."""
    # Eigenvalues of the covariance round like the largest. A root of it, from one of the correlations,
    # rounds like the largest deviation, not like its square.
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
    """Points in their axes, each once: the mean of its rows, by weight."""

    def __init__(self, X: Rows, graph: AnswerGraph, codes: Codes, weight: Array, pairs_first: bool = False) -> None:
        # Principal axes of all points, each by the mean weight of its rows.
        self.axes, A = Axes.of(graph.by_point(X, weight), graph.point_weights)
        silent = np.flatnonzero((codes == 0) & (graph.labels[graph.row_point] == 0))
        share = np.bincount(graph.row_point[silent], weight[silent], graph.n_points)
        rest = np.flatnonzero(np.bincount(graph.row_point[silent], minlength=graph.n_points))
        known = np.flatnonzero((graph.degree > 0) | (graph.labels != 0))
        if pairs_first:
            # All first ends before all second ends: two classes take them as slices.
            loose = loose_pairs(graph)[graph.component[known]]
            paired = known[loose]
            ends = paired[np.argsort(graph.component[paired], kind="stable")].reshape(-1, 2)
            known = np.concatenate([ends.T.ravel(), known[~loose]])
        place = np.full(graph.n_points, -1)
        place[known] = np.arange(len(known))
        # (n_rows,), which of the known points each row shows, -1 for none.
        self.row_place = place[graph.row_point]
        # Answers and labels of the known points, with weights relative to their component; (n_components,), mean
        # weight of the answers and labels of each.
        self.graph, self.weight = weights_by_component(subgraph(graph, known))
        # (n_known + n_unlabeled, r): points in an answer or with a label; then those of which nothing is known.
        self.A = A[np.concatenate([known, rest])]
        self.known = self.A[: len(known)]
        self.unlabeled = self.A[len(known) :]
        # (n_unlabeled,), weights of these, of sum 1.
        self.share = share[rest] / share.sum()

    @cached_property
    def light(self) -> tuple[Array, Array]:
        """The points in float32 for paths, by units (r + 1, 1) that may be beyond its range."""
        unit = np.append(np.sqrt(self.axes.variance), 1.0)[:, None]
        return (self.A / unit[:-1, 0]).astype(np.float32), unit

    @cached_property
    def light_unlabeled(self) -> tuple[Array, Array, Array]:
        """Every few of the unlabeled points in float32, their weights of sum 1, and units."""
        light, unit = self.light
        some = slice(len(self.known), None, 1 + len(self.share) // _MOST_LIGHT)
        share = self.share[:: some.step]
        return np.ascontiguousarray(light[some]), (share / share.sum()).astype(np.float32), unit

    def judged(self) -> tuple[Array, Array]:
        """Points that tell the sizes of classes, and weights: the unlabeled ones, else all."""
        if len(self.share):
            return self.unlabeled, self.share
        weight = self.weight[self.graph.component]
        return self.known, weight / weight.sum()

    def known_to_folds(self, splits: Iterable[tuple[Indices, Indices]]) -> Mask:
        """Points (n_known, n_folds) that the training rows of each split show, hubs among them."""
        folds = []
        for train, _ in splits:
            places = self.row_place[train]
            shown = np.zeros(self.graph.n_points, dtype=bool)
            shown[places[places >= 0]] = True
            folds.append(shown)
        return np.column_stack(folds)


def labelled_components(graph: AnswerGraph) -> Mask:
    """Whether labels fix the classes of each component."""
    labelled = np.zeros(graph.n_components, dtype=bool)
    labelled[graph.component[graph.labels != 0]] = True
    return labelled


def loose_pairs(graph: AnswerGraph) -> Mask:
    """Which components are two points and no label."""
    return (graph.component_sizes == 2) & ~labelled_components(graph)


def axis_penalty(variance: Array, alpha: float, covariance_power: float) -> Array:
    """Equation (1)."""
    # In units of the largest, so that no power overflows.
    ev = variance / variance.max()
    return alpha * (np.sum(ev ** (covariance_power + 1)) / np.sum(ev)) / ev**covariance_power


class PriorPull(NamedTuple):
    """``strength KL(shares || mean)`` as a function of the mean prediction on unlabeled points."""

    shares: Array  # (n_classes,)
    strength: float

    @classmethod
    def of(cls, prior: float | ArrayLike | None, strength: float, n_unlabeled: int) -> PriorPull | None:
        """Of P(y = +1) or class shares; None without a prior, a strength or unlabeled rows."""
        if prior is None or not strength or not n_unlabeled:
            return None
        p = np.asarray(prior, dtype=np.float64)
        shares = p if p.ndim else np.stack([1 - p, p])
        return cls(shares / shares.sum(), strength)

    def derivatives(self, mean: Array) -> tuple[Array, Array, Array]:
        """Value (B,) and the first two derivatives in each share of the mean (n_classes, B)."""
        mean = np.clip(mean, 1e-9, 1 - 1e-9)
        shares = self.shares.reshape(-1, *[1] * (mean.ndim - 1))
        value = np.sum(shares * np.log(shares / mean), axis=0)
        return self.strength * value, -self.strength * shares / mean, self.strength * shares / mean**2

    def of_two(self, tanh_mean: Array) -> tuple[Array, Array, Array]:
        """The same of two classes in the mean m of class +1, from 2 m - 1, that of tanh(z / 2)."""
        m = (1 + np.asarray(tanh_mean)) / 2
        value, first, second = self.derivatives(np.stack([1 - m, m]))
        return value, first[1] - first[0], second[0] + second[1]


def bordered_sum(A: Rows, G: Array) -> Array:
    """``[A, 1]' G``."""
    return np.vstack([A.T @ G, np.ones(len(G), G.dtype) @ G])


class Moments:
    """What starts and penalties of two classes need, by sums with any weights."""

    def __init__(
        self, variance: Array, joint: Array, ends: Array, prior: float | None, named: Array | None = None
    ) -> None:
        unit = 2 / max(float(ends[-1, 0]), 1e-300)
        self.variance = variance
        # (r + 1, r + 1), the sum of ``omega s ([x, 1] [x', 1]' + its transpose)`` over pairs.
        self.joint = unit * joint
        # (r + 1, 1), that of ``omega [x + x', 2]``.
        self.ends = unit * ends
        self.prior = prior
        # The direction from the labelled points of class -1 to those of class +1, if any.
        self.named = named
        typical = float(variance.mean())
        if typical > _UNEVEN * np.median(variance):
            # One column in a tiny unit must not blot out the others.
            typical = float(np.median(variance))
        self._shrunk = variance + 0.1 * typical

    def penalties(self, alphas: Array | Sequence[float], covariance_powers: Sequence[float]) -> Array:
        """Equation (1) for several settings, one column each."""
        settings = zip(alphas, covariance_powers, strict=True)
        return np.column_stack([axis_penalty(self.variance, alpha, power) for alpha, power in settings])

    def scale(self, pen: Array) -> Array:
        """A rough inverse Hessian: curvature 0.15 of the logistic function, plus the penalty."""
        intercept = np.full((1, pen.shape[1]), 4.0)
        return np.vstack([1 / (0.15 * self.variance[:, None] + pen), intercept])

    def largest_alpha(self, covariance_power: float) -> float:
        """The alpha above which, at prior 1/2, w = 0 is a minimum, by the Hessian there."""
        top, _ = self._top_moment(1 / np.sqrt(axis_penalty(self.variance, 1.0, covariance_power)))
        return max(top / 4, 1e-6)

    def starts(self, init: str = "auto") -> list[Array]:
        """The top eigenvector of the whitened pair moment and, if ``init`` is "auto", others."""
        # E[s x x'^T] = mu mu^T with mu = E[y x], so it needs no prior.
        root = np.sqrt(self._shrunk)
        moment = self._unit(self._top_moment(1 / root)[1] / root)
        # An eigenvector's sign is free; this one is the same for the same rows, however they are laid out.
        moment *= np.copysign(1.0, moment @ self.ends[:-1, 0])
        b = 0.0 if self.prior is None else np.log(self.prior / (1 - self.prior))
        mean_answer = self.joint[-1, -1] / 2
        others: list[Array] = []
        if self.prior is not None and abs(mean_answer) > 1 - 1e-9:
            # One kind of answer only: there is no SD solution, and nothing but the pull to the prior
            # tells the two signs apart.
            others = [-moment]
        elif self.prior is not None:
            # The SD solution, up to scale: sum omega (s - mean s) (x + x')
            marginal = self._unit((self.joint[:-1, -1] - mean_answer * self.ends[:-1, 0]) / self._shrunk)
            # The mean of similar pairs is nearer to that of the larger class, which is +1 unless the
            # prior says otherwise.
            marginal *= np.copysign(1.0, self.prior - 0.5)
            moment *= np.copysign(1.0, np.sum(moment * marginal * self.variance))
            others = [marginal]
        if self.named is not None:
            # The direction of the labels.
            moment *= np.copysign(1.0, moment @ self.named)
            others.insert(0, self._unit(self.named / self._shrunk))
        return [np.append(w, b) for w in ([moment] if init == "moment" else [moment, *others])]

    def _unit(self, w: Array) -> Array:
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


def warn_of_column_scales(X: Rows, weight: Array, names: Sequence[str] | None) -> None:
    """A ScalingWarning where the standard deviations of the columns are far apart."""
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=weight)
    else:
        share = weight / weight.sum()
        mean = X.T @ share
        variance = np.einsum("i,ij->j", share, (X - mean) ** 2)
    warn_of_scales(np.sqrt(variance), mean, names)


def warn_of_scales(deviation: Array, mean: Array, names: Sequence[str] | None = None) -> None:
    """The same from moments; a column in which only rounding varies is constant."""
    deviation = np.where(deviation > CONSTANT * np.abs(mean), deviation, 0.0)
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
