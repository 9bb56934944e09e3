"""The likelihood of answers as a function of the score of every point: what boosting descends.

With p_i the class probabilities of point i (logistic of a score, or softmax of K scores) and r_i its
posterior given all answers and labels,

    d(-log P(answers)) / d score_i = p_i - r_i                                              (1)

whatever gives the scores. A loose pair with z, z' at its ends has, in closed form and with a the chance
of its answer where the classes agree, b where they differ, q = 1 - p,

    P(answer) = a (p p' + q q') + b (p q' + q p')                                           (2)
    p - r = p q (a - b) (q' - p') / P(answer)                                               (3)

As curvature serves that of the node probability, p (1 - p): an upper bound of that of (1), whose
Hessian is a difference and may have either sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, log_softmax

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import InputError
from sdulearn.joint.classes import SoftmaxLikelihood
from sdulearn.joint.likelihood import PriorPull as Divergence
from sdulearn.types import Array, Indices, Mask

_TINY = np.finfo(np.float64).tiny
# LightGBM divides by sums of curvatures; a certain point still has one.
_LEAST_CURVATURE = 1e-9


def log_probabilities(scores: Array) -> Array:
    """Log class probabilities of scores: one column of logits for two classes, K columns for K."""
    if scores.ndim == 1:
        return np.column_stack([log_expit(-scores), log_expit(scores)])
    return np.asarray(log_softmax(scores, axis=1))


def is_loose(graph: AnswerGraph) -> bool:
    """Whether no point is in two answers and none has a label: equations (2) and (3) hold."""
    return bool(graph.degree.max(initial=0) <= 1 and not graph.labels.any())


class LoosePairs:
    """Equations (2) and (3), for two classes."""

    def __init__(self, graph: AnswerGraph, answer_model: AnswerModel) -> None:
        errors = answer_model.errors(graph.annotators)
        self.ends = graph.ends
        self.agree = np.where(graph.same > 0, 1 - errors, errors)
        self.differ = 1 - self.agree
        self.component = graph.component[graph.ends[:, 0]]
        self.n_components = graph.n_components

    def evaluate(self, z: Array) -> tuple[Array, Array]:
        """Log likelihood of each component, and the gradient of minus their sum."""
        p = expit(z)
        q = expit(-z)
        i, j = self.ends.T
        chance = self.agree * (p[i] * p[j] + q[i] * q[j]) + self.differ * (p[i] * q[j] + q[i] * p[j])
        chance = np.maximum(chance, _TINY)
        values = np.zeros(self.n_components)
        values[self.component] = np.log(chance)
        tilt = (self.agree - self.differ) / chance
        gradient = np.zeros(len(z))
        gradient[i] = p[i] * q[i] * tilt * (q[j] - p[j])
        gradient[j] = p[j] * q[j] * tilt * (q[i] - p[i])
        return values, gradient


class Propagated:
    """Equation (1) by belief propagation, for any graph and number of classes."""

    def __init__(self, graph: AnswerGraph, n_classes: int, answer_model: AnswerModel) -> None:
        self.factors = answer_model.factor_graph(graph, n_classes)

    def evaluate(self, scores: Array) -> tuple[Array, Array]:
        """Log likelihood of each component, and the gradient of minus their sum."""
        log_p = log_probabilities(scores)
        found = self.factors.propagate(log_p, tol=1e-6)
        gradient = np.exp(log_p) - found.posteriors
        return found.component_values, gradient[:, 1] if scores.ndim == 1 else gradient


class Composite:
    """The composite likelihood of :mod:`~sdulearn.joint.classes`: more than two classes, answers that are never wrong.

    Propagation around cycles of "different" answers need not converge; the linear start has this likelihood too.
    """

    def __init__(self, graph: AnswerGraph, n_classes: int, answer_model: AnswerModel) -> None:
        self.likelihood = SoftmaxLikelihood(graph, answer_model, n_classes)

    def evaluate(self, scores: Array) -> tuple[Array, Array]:
        """Log likelihood of all answers, as one component, and the gradient of minus it."""
        log_p = log_probabilities(scores)
        value, posteriors = self.likelihood.value_and_posteriors(log_p)
        return np.array([value]), np.exp(log_p) - posteriors


class AnswerLoss:
    """Minus the log likelihood of all answers and labels, by the scores of the points."""

    def __init__(self, graph: AnswerGraph, n_classes: int, answer_model: AnswerModel) -> None:
        self.known = np.flatnonzero((graph.degree > 0) | (graph.labels != 0))
        self.n_known = graph.n_answers + int(np.count_nonzero(graph.labels))
        self.component = graph.component
        graph, self.weight = graph.by_component()
        self.answers: LoosePairs | Propagated | Composite
        if n_classes == 2 and is_loose(graph):
            self.answers = LoosePairs(graph, answer_model)
        elif n_classes > 2 and answer_model.certain and np.ptp(self.weight) == 0:
            self.answers = Composite(graph, n_classes, answer_model)
        else:
            self.answers = Propagated(graph, n_classes, answer_model)

    def by_component(self, scores: Array) -> Array:
        """Log likelihood of each component, weighted; of all in one where it is a composite likelihood."""
        values, _ = self.answers.evaluate(scores)
        return values * self.weight[: len(values)]

    def value(self, scores: Array) -> float:
        """Log likelihood, weighted."""
        return float(self.by_component(scores).sum())

    def slopes(self, scores: Array) -> tuple[Array, Array]:
        """Gradient of minus the log likelihood and its curvature, one row a point."""
        _, gradient = self.answers.evaluate(scores)
        curvature = np.zeros_like(gradient)
        curvature[self.known] = _node_curvature(scores[self.known])
        weight = self.weight[self.component]
        if scores.ndim > 1:
            weight = weight[:, None]
        return gradient * weight, curvature * weight


def _node_curvature(scores: Array) -> Array:
    p = expit(scores) if scores.ndim == 1 else np.exp(log_softmax(scores, axis=1))
    return np.asarray(p * (1 - p))


@dataclass(frozen=True)
class PriorPull:
    """``strength KL(prior || mean prediction on unlabeled points)`` and its derivatives in their scores."""

    points: Indices  # the unlabeled points
    share: Array  # their weights, of sum 1
    penalty: Divergence  # the divergence as a function of the mean

    def slopes(self, z: Array) -> tuple[Array, Array]:
        """Gradient at these points, and a curvature that is exact for a shift of all of them."""
        t = np.tanh(z[self.points] / 2)
        _, first, second = self.penalty.of_two(np.asarray(self.share @ t))
        rise = self.share * (1 - t**2) / 4
        return first * rise, second * rise.sum() * rise


def slopes(loss: AnswerLoss, pull: PriorPull | None, scores: Array) -> tuple[Array, Array]:
    """Gradient and curvature of the whole objective, one row a point."""
    gradient, curvature = loss.slopes(scores)
    if pull is not None:
        first, second = pull.slopes(scores)
        gradient[pull.points] += first
        curvature[pull.points] += second
    return gradient, np.maximum(curvature, _LEAST_CURVATURE)


class PairObjective:
    """The custom objective that :func:`pair_objective` makes; call it with raw scores of the rows."""

    def __init__(self, graph: AnswerGraph, there: Mask, loss: AnswerLoss, pull: PriorPull | None) -> None:
        self.loss = loss
        self.pull = pull
        self.row_point = graph.row_point
        # Rows of weight 0 come last: they speak for a point only where it has no other.
        order = np.argsort(~there, kind="stable")
        self.first_row = order[np.unique(graph.row_point[order], return_index=True)[1]]
        # The rows that show one point share its slope, so that their sum is right.
        rows_of = np.bincount(graph.row_point[there], minlength=graph.n_points)
        self.share = np.where(there, 1 / np.maximum(rows_of, 1)[graph.row_point], 0.0)
        self.named = bool(graph.labels.any())

    def __call__(self, scores: ArrayLike, data: Any = None) -> tuple[Array, Array]:
        """Gradient and curvature of the rows, as LightGBM and XGBoost ask for them."""
        z = np.asarray(scores, dtype=np.float64)
        if len(z) != len(self.row_point):
            raise InputError(f"The booster has {len(z)} rows, but `y` has {len(self.row_point)}.")
        if not self.named and np.ptp(z, axis=0).max(initial=0.0) == 0:
            raise InputError(
                "All rows have one score, from where answers lead nowhere: mirrored models fit them alike. Start the "
                "booster from the decision values of PairLogisticRegressionCV (`init_score` of LightGBM's Dataset, "
                "`base_margin` of XGBoost's DMatrix), or give labels in `y`."
            )
        gradient, curvature = slopes(self.loss, self.pull, z[self.first_row])
        share = self.share if z.ndim == 1 else self.share[:, None]
        return gradient[self.row_point] * share, np.maximum(curvature[self.row_point] * share, _LEAST_CURVATURE)


def pair_objective(
    y: ArrayLike,
    *,
    n_classes: int = 2,
    error_rate: float | Mapping[int, float] = 0.0,
    prior: float | None = None,
    prior_strength: float = 3.0,
    sample_weight: ArrayLike | None = None,
) -> PairObjective:
    """Gradient and curvature of the likelihood of answers, for a booster of your own.

    Parameters
    ----------
    y : array-like of int, shape (n_rows,) or (n_rows, 1 to 4)
        What is known of each row: answer, point, annotator, label.
    n_classes : int, default=2
        Number of classes. With two the booster has one score a row, else one a row and class.
    error_rate : float or mapping, default=0.0
        Probability that an answer is wrong: one for all, or one for each annotator.
    prior : float, optional
        P(y = +1); pulls the mean prediction on unlabeled rows. Two classes only.
    prior_strength : float, default=3.0
        Weight of that pull.
    sample_weight : array-like of shape (n_rows,), optional
        A weight per row; both ends of a pair carry one weight. They are divided by the mean weight of an answer, and
        rows of weight 0 have no slope.

    Returns
    -------
    callable
        ``objective(scores, data) -> (gradient, curvature)``, the custom objective of LightGBM and
        XGBoost. ``data`` is not looked at: the rows are those of ``y``, in their order.

    See Also
    --------
    PairBoostingClassifier : The estimator, with start, early stopping and all.

    Examples
    --------
    >>> from sdulearn.boosting import pair_objective
    >>> objective = pair_objective([1, 1, -2, -2])
    >>> gradient, curvature = objective([1.0, 0.5, 1.0, 0.5])
    >>> gradient.round(2)
    array([-0.09, -0.2 ,  0.11,  0.24])
    """
    graph = AnswerGraph.from_y(y, sample_weight)
    there = np.ones(len(graph.row_point), dtype=bool) if sample_weight is None else np.asarray(sample_weight) > 0
    loss = AnswerLoss(graph, n_classes, AnswerModel.given(error_rate, graph))
    return PairObjective(graph, there, loss, make_pull(graph, prior if n_classes == 2 else None, prior_strength))


def make_pull(graph: AnswerGraph, prior: float | None, strength: float) -> PriorPull | None:
    """The pull of the prior, or None where there is no prior or no unlabeled point."""
    points = graph.unlabeled[graph.point_weights[graph.unlabeled] > 0]
    penalty = Divergence.of(prior, strength, len(points))
    weight = graph.point_weights[points]
    return None if penalty is None else PriorPull(points, weight / weight.sum(), penalty)
