"""Rows whose points are shared, answered by several or labelled, laid out for a fit.

Points are unique: where the rows of one point differ, the point is their mean, by weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import sum_matrix
from sdulearn.joint.components import (
    Likelihood,
    NoisyLikelihood,
    SidesLikelihood,
    chain_information,
    labelled_components,
    soft_sides,
)
from sdulearn.joint.likelihood import (
    Columns,
    PriorPenalty,
    bordered_gram,
    bordered_sum,
    hessian,
    value_and_gradient,
)
from sdulearn.joint.path import Axes, Summary, fit_fold_paths, log_volume
from sdulearn.types import Array, Codes, Indices, Mask, Rows

# Standard deviation of the logits of a model that says nothing.
_EMPTY = 1e-3


@dataclass(frozen=True, eq=False)
class PointRows:
    """The points of a ``y`` with columns, in their axes."""

    axes: Axes  # principal axes of all points, each by the mean weight of its rows
    A: Array  # (n_known, r), points in an answer or with a label
    # the answers and labels, on these points. The weight of an answer is relative to its component
    graph: AnswerGraph
    weight: Array  # (n_components,), mean weight of the answers and labels of each component
    A_u: Array  # (n_unlabeled, r), unlabeled points and their weights, of sum 1
    share: Array
    row_place: Indices  # (n_rows,), which of these points each row shows, -1 for none

    @classmethod
    def of(cls, X: Rows, graph: AnswerGraph, codes: Codes, weight: Array) -> PointRows:
        """Lay out validated rows, all of positive weight; ``graph`` was made of them."""
        axes, A = Axes.of(graph.by_point(X, weight), graph.point_weights)
        known = np.flatnonzero((graph.degree > 0) | (graph.labels != 0))
        silent = np.flatnonzero((codes == 0) & (graph.labels[graph.row_point] == 0))
        share = np.bincount(graph.row_point[silent], weight[silent], graph.n_points)
        rest = np.flatnonzero(np.bincount(graph.row_point[silent], minlength=graph.n_points))
        place = np.full(graph.n_points, -1)
        place[known] = np.arange(len(known))
        part, component_weight = _restrict(graph, known, place).by_component()
        return cls(
            axes=axes,
            A=A[known],
            graph=part,
            weight=component_weight,
            A_u=A[rest],
            share=share[rest, None] / share.sum(),
            row_place=place[graph.row_point],
        )

    def fold_masks(self, splits: Iterable[tuple[Indices, Indices]]) -> tuple[Array, Array]:
        """Points (n_known, n_folds) of the training and the test part of each split of the rows, as 0 and 1.

        A point with rows in both, such as a hub, is known to the training part.
        """
        train = []
        test = []
        for train_rows, test_rows in splits:
            train.append(self._shown(train_rows))
            test.append(self._shown(test_rows) & ~train[-1])
        return np.column_stack(train).astype(np.float64), np.column_stack(test).astype(np.float64)

    def _shown(self, rows: Indices) -> Mask:
        places = self.row_place[rows]
        shown = np.zeros(len(self.A), dtype=bool)
        shown[places[places >= 0]] = True
        return shown


@dataclass(frozen=True, eq=False)
class GraphData:
    """Points with what is known of them; see :class:`sdulearn.joint.path.Data`."""

    points: PointRows  # the points
    likelihood: Likelihood  # that of the answers and labels, with its error rates
    side: Array  # (n_known,), what the answers alone say of the side of each point; see :func:`soft_sides`
    certainty: Array  # (n_known,), ``1 - 2 e`` with the smallest error rate e of the answers about each point
    # (n_components,), weights of the components. An answer that says something new, or a label, weighs 1 / n on
    # average: alpha means the same beside answers, linked or loose, and labels
    omega: Array
    summary: Summary  # as in :class:`sdulearn.joint.path.PairData`
    prior_penalty: PriorPenalty | None

    @classmethod
    def of(
        cls,
        points: PointRows,
        answer_model: AnswerModel,
        prior: float | None,
        prior_strength: float,
    ) -> GraphData:
        """Lay out points, at least one answer or label among them."""
        graph = points.graph
        side = soft_sides(graph, answer_model)
        omega = points.weight / float(points.weight @ n_news(graph))
        everyone = np.ones(len(side))
        strength = prior_strength * _pull(graph, side)
        return cls(
            points=points,
            likelihood=make_likelihood(graph, answer_model),
            side=side,
            certainty=_certainty(graph, answer_model),
            omega=omega,
            summary=summarise(points, side, omega, everyone, prior),
            prior_penalty=PriorPenalty.of(prior, strength, len(points.share)),
        )

    @property
    def axes(self) -> Axes:
        """See :class:`sdulearn.joint.path.Data`."""
        return self.points.axes

    @property
    def n_effective(self) -> float:
        """Number of answers that say something new, and labels, of equal weight."""
        return 1 / float(self.omega**2 @ n_news(self.points.graph))

    def objective(self, pen: Array) -> ComponentObjective:
        """See :class:`sdulearn.joint.path.Data`."""
        return ComponentObjective(self, pen)

    def positive_share(self, v: Array) -> tuple[float, float]:
        """See :class:`sdulearn.joint.path.Data`."""
        A = self.points.A
        weight = self.points.weight[self.points.graph.component]
        share = weight / weight.sum()
        if len(self.points.share):
            A = self.points.A_u
            share = self.points.share[:, 0]
        positive = A @ v[:-1] + v[-1] > 0
        return float(share @ positive), float(share @ share)

    def empty(self, alphas: Array, covariance_powers: Sequence[float], path: Array) -> Mask:
        """Where on the path (n_alphas, n_powers) the model names no classes: its logits hardly vary."""
        variance = np.einsum("ajk,j->ak", path[:, :-1] ** 2, self.summary.variance)
        return variance < _EMPTY**2

    def log_evidence(self, w: Array, pen: Array) -> float:
        """Laplace's log evidence of one penalty at its solution, by :func:`chain_information`."""
        A = self.points.A
        component = self.points.graph.component
        z = A @ w[:-1] + w[-1]
        labelled = labelled_components(self.points.graph)
        J = chain_information(A, z, self.likelihood.sides(z), component, labelled, self.certainty)
        J *= np.sqrt(self.omega[component])[:, None] / np.sqrt(pen)
        losses, _ = self.likelihood.terms(z[:, None])
        misfit = float(self.omega @ losses[:, 0]) + float(pen @ w[:-1] ** 2) / 2
        return -self.n_effective * misfit - log_volume(J)

    def held_out(self, alphas: Array, covariance_power: float, train: Array, test: Array) -> tuple[Array, Array]:
        """Mean log likelihood (n_folds, n_alphas) of what is said about the points left out of each fold.

        ``train`` and ``test`` (n_known, n_folds) are 1 for the points of either part. Every fold
        follows a path of its own. Also returns the logits (n_known, n_alphas, n_folds).
        """
        summaries = [summarise(self.points, self.side, self.omega, fold, self.summary.prior) for fold in train.T]
        path = fit_fold_paths(MaskedData(self, train), alphas, covariance_power, _fold_starts(summaries))
        Z = np.einsum("ij,ajk->iak", self.points.A, path[:, :-1]) + path[:, -1]
        unnamed = np.array([fold.named is None for fold in summaries]) & (self.summary.named is not None)
        scores = []
        for z in np.moveaxis(Z, 1, 0):
            score = self._held_out_score(z * test, test)
            # Without a label a fold cannot know which class is which, and is not to be blamed for it.
            flipped = self._held_out_score(-z * test, test) if unnamed.any() else score
            scores.append(np.where(unnamed, np.maximum(score, flipped), score))
        return np.column_stack(scores), Z

    def _held_out_score(self, Z: Array, test: Array) -> Array:
        """Mean log likelihood of each fold, relative to classes by a coin: see ``components``."""
        graph = self.points.graph
        losses, _ = self.likelihood.terms(np.column_stack([np.zeros(len(Z)), Z]))
        count = sum_matrix(graph.component, graph.n_components) @ test
        news = np.where(labelled_components(graph)[:, None], count, np.maximum(count - 1, 0))
        gain = losses[:, :1] - losses[:, 1:]
        total = self.omega @ news
        # A fold about which nothing is said has no score.
        return self.omega @ (gain - np.log(2) * news) / np.where(total > 0, total, np.nan)


@dataclass(frozen=True, eq=False)
class MaskedData:
    """As many problems as folds, each of some of the points."""

    data: GraphData
    mask: Array

    @property
    def summary(self) -> Summary:
        """That of all points: only its penalties matter."""
        return self.data.summary

    def objective(self, pen: Array) -> ComponentObjective:
        """Equation (3) of each fold, as many times as there are penalties."""
        return ComponentObjective(self.data, pen, np.tile(self.mask, pen.shape[1] // self.mask.shape[1]))


class ComponentObjective:
    """Equation (3) of ``components`` for K problems at once; see :class:`sdulearn.joint.likelihood.Objective`."""

    def __init__(self, data: GraphData, pen: Array, mask: Array | None = None) -> None:
        self.data = data
        self.pen = pen
        self.exact_hessian = data.likelihood.exact_curvature
        self.mask = mask

    def value_and_gradient(self, W: Array, columns: Columns) -> tuple[Array, Array]:
        """See :class:`sdulearn.joint.likelihood.Objective`."""
        mask = None if self.mask is None else self.mask[:, columns]
        return value_and_gradient(self._slopes(W, mask), W, self.pen[:, columns], self.data.prior_penalty)

    def hessian(self, w: Array) -> Array:
        """See :class:`sdulearn.joint.likelihood.Objective`; of a problem with all points."""
        data = self.data
        A_u = data.points.A_u
        A = data.points.A
        curvatures = {"curvature": data.likelihood.curvature(A, data.omega, A @ w[:-1] + w[-1])}
        if data.prior_penalty is not None:
            t = np.tanh((A_u @ w[:-1] + w[-1]) / 2)
            weight = data.points.share[:, 0] * t * (1 - t**2)
            curvatures["mean_curvature"] = bordered_gram(A_u, weight, A_u)
        return hessian(self._slopes(w[:, None], None), curvatures, self.pen[:, 0], data.prior_penalty)

    def _slopes(self, W: Array, mask: Array | None) -> dict[str, Array]:
        """What J and its gradient need, as :func:`sdulearn.joint.likelihood.slope_sums` names it."""
        data = self.data
        A = data.points.A
        Z = A @ W[:-1] + W[-1]
        if mask is not None:
            Z *= mask
        losses, slopes = data.likelihood.terms(Z)
        slopes *= data.omega[data.points.graph.component][:, None]
        if mask is not None:
            slopes *= mask
        sums = {"loss": data.omega @ losses, "slope": bordered_sum(A, slopes)}
        if data.prior_penalty is not None:
            T = np.tanh((data.points.A_u @ W[:-1] + W[-1]) / 2)
            sums["mean"] = data.points.share[:, 0] @ T
            sums["mean_slope"] = bordered_sum(data.points.A_u, data.points.share * (1 - T**2))
        return sums


def _fold_starts(summaries: Sequence[Summary]) -> list[Array]:
    """The starts of all folds, a column each; a fold without labels has fewer, and repeats its last."""
    starts = [summary.starts() for summary in summaries]
    count = max(len(of_fold) for of_fold in starts)
    return [np.column_stack([s[min(k, len(s) - 1)] for s in starts]) for k in range(count)]


def make_likelihood(graph: AnswerGraph, answer_model: AnswerModel) -> Likelihood:
    """The closed form where no answer is wrong, else by propagation."""
    if not answer_model.certain:
        return NoisyLikelihood.from_graph(graph, answer_model)
    return SidesLikelihood.from_graph(graph)


def n_news(graph: AnswerGraph) -> Array:
    """Answers of each component that say something new, and labels: its points, less the free flip."""
    return (graph.component_sizes - 1 + labelled_components(graph)).astype(np.float64)


def summarise(points: PointRows, side: Array, omega: Array, mask: Array, prior: float | None) -> Summary:
    """What the starts need, of the points in ``mask``: :func:`sdulearn.joint.path.pair_moments` over components.

    All pairs of points of a component whose relative side is known enter; the labelled components
    are one. A component counts by its points: its mean over pairs weighs as many answers.
    """
    graph = points.graph
    labelled = labelled_components(graph)
    # Labels tie all points with a known class together.
    first = int(np.argmax(labelled))
    component = np.where(labelled[graph.component], first, graph.component)
    signs = side * mask
    by_component = sum_matrix(component, graph.n_components)
    count = by_component @ mask
    weight = np.where(count > 1, omega, 0.0)
    scale = weight / np.maximum(count - 1, 1)
    V = by_component @ (signs[:, None] * np.column_stack([points.A, np.ones(len(side))]))
    joint = V.T @ (scale[:, None] * V) - bordered_gram(points.A, scale[component] * signs**2, points.A)
    ends = bordered_sum(points.A, (weight[component] * mask)[:, None])
    unit = 2 / max(float(ends[-1, 0]), 1e-300)
    classes = np.where(labelled[graph.component], signs, 0.0)
    named = _class_contrast(points.A, classes) if classes.any() else None
    return Summary(points.axes.variance, joint=unit * joint, ends=unit * ends, prior=prior, named=named)


def _class_contrast(A: Array, classes: Array) -> Array:
    """Sum of the labelled points, those of class -1 negative, less what their mean explains."""
    known = classes != 0
    centred = A[known] - A[known].mean(axis=0)
    one_class = abs(np.sign(classes[known]).sum()) == known.sum()
    contrast: Array = classes[known] @ (A[known] if one_class else centred)
    return contrast


def _pull(graph: AnswerGraph, side: Array) -> float:
    """What share of the pull towards the prior is left where answers may be wrong: 1 where none is.

    They say less of the points, and the pull keeps its balance with them.
    """
    n_pivots = int((~labelled_components(graph)).sum())
    return (float(side @ side) - n_pivots) / max(len(side) - n_pivots, 1)


def _certainty(graph: AnswerGraph, answer_model: AnswerModel) -> Array:
    """``1 - 2 e`` of each point, with the smallest error rate of its answers; 1 without answers."""
    certainty = np.zeros(graph.n_points)
    says = 1 - 2 * answer_model.errors(graph.annotators)
    for end in graph.ends.T:
        np.maximum.at(certainty, end, says)
    certainty[graph.labels != 0] = 1.0
    return certainty


def _restrict(graph: AnswerGraph, known: Indices, place: Indices) -> AnswerGraph:
    """The graph of some points, all those in answers among them."""
    part = AnswerGraph.from_answers(
        place[graph.ends],
        graph.same,
        annotators=graph.annotators,
        weights=graph.weights,
        labels=graph.labels[known],
        n_points=len(known),
    )
    return replace(part, points=graph.points[known], point_weights=graph.point_weights[known])
