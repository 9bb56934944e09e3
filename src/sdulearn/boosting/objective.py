"""The objective of boosting: the likelihood of answers as a function of the score of every point.

With p_i the class probabilities of point i (logistic of a score, or softmax of K scores) and r_i
its posterior given all answers and labels,

    d(-log P(answers)) / d score_i = p_i - r_i                                              (1)

for any model of the scores. The likelihoods are those of the linear models, :mod:`sdulearn.joint`.
The curvature used is p (1 - p), that of the node probability: an upper bound of that of (1), whose
Hessian is a difference and may have either sign.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_softmax

from sdulearn.answers.answer_model import AnswerModel, model_of_fit
from sdulearn.answers.graph import AnswerGraph, weights_by_component
from sdulearn.answers.propagate import FactorGraph
from sdulearn.errors import InputError
from sdulearn.joint.classes import SoftmaxLikelihood
from sdulearn.joint.data import PriorPull
from sdulearn.joint.likelihood import TwoClassLikelihood
from sdulearn.types import Array, Indices

# LightGBM divides by sums of curvatures, so that a certain point needs one too.
_LEAST_CURVATURE = 1e-9
# Unlabeled points, their weights of sum 1, and the divergence of their mean prediction from the
# prior.
Pull = tuple[Indices, Array, PriorPull]


class PointLoss:
    """Negative log likelihood of all answers and labels as a function of the scores of the points."""

    def __init__(self, graph: AnswerGraph, n_classes: int, answer_model: AnswerModel) -> None:
        self.n_known = graph.n_answers + int(np.count_nonzero(graph.labels))
        known = (graph.degree > 0) | (graph.labels != 0)
        graph, self.weight = weights_by_component(graph)
        by_point = self.weight[graph.component]
        # A point without answers and labels has no curvature.
        self.known_weight = np.where(known, by_point, 0.0)
        # Total weight of independent answers and labels, in which the pull to a prior is counted.
        self.total = float(self.weight @ (graph.component_sizes - 1 + graph.labelled))
        self.likelihood: TwoClassLikelihood | SoftmaxLikelihood | FactorGraph
        answer_model = model_of_fit(answer_model, graph, n_classes)
        if n_classes == 2:
            self.likelihood = TwoClassLikelihood(graph, answer_model, self.weight, total=1.0)
        elif answer_model.certain:
            self.likelihood = SoftmaxLikelihood(graph, answer_model, n_classes, by_point)
            self.total = self.likelihood.n_answers
        else:
            # Answers that may be wrong make no groups: cycles go through belief propagation.
            self.likelihood = answer_model.factor_graph(graph, n_classes)

    def terms(self, scores: Array) -> tuple[Array, Array]:
        """Weighted log likelihood of each component (of all together with K certain classes); and equation (1)."""
        if isinstance(self.likelihood, TwoClassLikelihood):
            losses, slopes = self.likelihood.terms(scores[:, None])
            return -self.weight * losses[:, 0], slopes[:, 0]
        log_p = np.asarray(log_softmax(scores, axis=1))
        if isinstance(self.likelihood, FactorGraph):
            propagated = self.likelihood.propagate(log_p, tol=1e-6)
            return self.weight * propagated.component_values, np.exp(log_p) - propagated.posteriors
        p = np.exp(log_p)
        value, posteriors = self.likelihood.value_and_posteriors(log_p[:, :, None], p[:, :, None])
        return value, p - posteriors[:, :, 0]

    def slopes(self, scores: Array, pull: Pull | None = None) -> tuple[Array, Array]:
        """Gradient and curvature of the loss and the pull, one row for each point.

        The loss is a sum over answers, so a pull in units of the mean answer counts as many times.
        """
        p = expit(scores) if scores.ndim == 1 else np.exp(log_softmax(scores, axis=1))
        weight = self.known_weight.reshape(-1, *[1] * (scores.ndim - 1))
        gradient = weight * self.terms(scores)[1]
        curvature = weight * p * (1 - p)
        if pull is not None:
            points, share, divergence = pull
            first, second = pull_slopes(p[points], share, divergence)
            gradient[points] += self.total * first
            curvature[points] += self.total * second
        return gradient, np.maximum(curvature, _LEAST_CURVATURE)


def pull_slopes(p: Array, share: Array, divergence: PriorPull) -> tuple[Array, Array]:
    """Gradient at unlabeled points, and a curvature that is exact for a shift of one class."""
    _, first, second = divergence.derivatives(share @ p)
    if p.ndim == 1:
        rise = share * p * (1 - p)
        return first * rise, second * rise.sum() * rise
    rise = share[:, None] * p * (1 - p)
    return share[:, None] * p * (first - (p @ first)[:, None]), second * rise.sum(axis=0) * rise


def make_pull(graph: AnswerGraph, prior: float | ArrayLike | None, strength: float) -> Pull | None:
    """Pull unlabeled points to P(y = +1) or to class shares; None without these or such points."""
    points = graph.unlabeled
    weight = graph.point_weights[points]
    pull = PriorPull.of(prior, strength, len(points))
    return None if pull is None else (points, weight / weight.sum(), pull)


class PairObjective:
    """The custom objective of :func:`pair_objective`, a function of raw scores of the rows."""

    def __init__(self, graph: AnswerGraph, loss: PointLoss, pull: Pull | None) -> None:
        self.graph = graph
        self.loss = loss
        self.pull = pull
        # The rows of a point share its gradient, so that their sum is right.
        self.share = 1 / np.bincount(graph.row_point)[graph.row_point]

    def __call__(self, scores: ArrayLike, data: object = None) -> tuple[Array, Array]:
        """Gradient and curvature of the rows, as LightGBM and XGBoost expect them."""
        z = np.asarray(scores, dtype=np.float64)
        graph = self.graph
        if len(z) != graph.n_given:
            raise InputError(f"The booster has {len(z)} rows, but `y` has {graph.n_given}.")
        if not graph.labels.any() and np.ptp(z, axis=0).max(initial=0.0) == 0:
            raise InputError(
                "All rows have the same score, where the gradient of answers says nothing: mirrored models fit them "
                "equally well. Start the booster from the decision values of PairLogisticRegressionCV (`init_score` "
                "of LightGBM's Dataset, `base_margin` of XGBoost's DMatrix), or give labels in `y`."
            )
        # The score of a point is that of its first row.
        slopes = self.loss.slopes(z[graph.rows[graph.first_row]], self.pull)
        share = self.share if z.ndim == 1 else self.share[:, None]
        gradient, curvature = np.zeros((2, *z.shape))
        gradient[graph.rows], curvature[graph.rows] = (slope[graph.row_point] * share for slope in slopes)
        return gradient, np.maximum(curvature, _LEAST_CURVATURE)


def pair_objective(
    y: ArrayLike,
    *,
    n_classes: int = 2,
    error_rate: float | Mapping[int, float] = 0.0,
    prior: float | ArrayLike | None = None,
    prior_strength: float = 3.0,
    sample_weight: ArrayLike | None = None,
) -> PairObjective:
    """Gradient and curvature of the likelihood of answers, for a booster of your own.

    Parameters
    ----------
    y : array-like of int, shape (n_rows,) or (n_rows, 1 to 5)
        What is known of each row: answer, point, annotator, label.
    n_classes : int, default=2
        Number of classes. With two the booster has one score for each row, else one for each row
        and class.
    error_rate, prior, prior_strength
        As in :class:`~sdulearn.PairLogisticRegression`, but none is estimated: without a prior
        there is no pull.
    sample_weight : array-like of shape (n_rows,), optional
        A weight per row; both ends of a pair carry one weight. They are divided by the mean weight
        of an answer, and rows of weight 0 have no gradient.

    Returns
    -------
    callable
        ``objective(scores, data) -> (gradient, curvature)``, a custom objective for LightGBM and
        XGBoost. ``data`` is ignored: the rows are those of ``y``, in their order.

    See Also
    --------
    PairBoostingClassifier : The estimator, with a start and early stopping.

    Examples
    --------
    >>> from sdulearn.boosting import pair_objective
    >>> objective = pair_objective([1, 1, -2, -2])
    >>> gradient, curvature = objective([1.0, 0.5, 1.0, 0.5])
    >>> gradient.round(2)
    array([-0.09, -0.2 ,  0.11,  0.24])
    """
    graph = AnswerGraph.from_y(y, sample_weight)
    loss = PointLoss(graph, n_classes, AnswerModel.given(error_rate, graph))
    return PairObjective(graph, loss, make_pull(graph, prior, prior_strength))
