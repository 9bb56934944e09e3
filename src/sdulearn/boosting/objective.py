"""The objective of boosting: the likelihood of answers as a function of the score of every point.

With p_i the class probabilities of point i (logistic of a score, or softmax of K scores) and r_i
its posterior given all answers and labels,

    d(-log P(answers)) / d score_i = p_i - r_i                                              (1)

for any model of the scores. The likelihood is that of the linear models, :mod:`sdulearn.answers.likelihood`.
The curvature used is p (1 - p), that of the node probability: an upper bound of that of (1), whose
Hessian is a difference and may have either sign.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.likelihood import Likelihood
from sdulearn.errors import InputError
from sdulearn.joint.data import PriorPull
from sdulearn.types import Array, Indices

# LightGBM divides by sums of curvatures, so that a certain point needs one too.
_LEAST_CURVATURE = 1e-9
# Unlabeled points, their weights of sum 1, and the divergence of their mean prediction from the
# prior.
Pull = tuple[Indices, Array, PriorPull]


class PointLoss:
    """Negative log likelihood of all answers and labels as a function of the scores of the points."""

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood = likelihood
        graph = likelihood.graph
        self.n_known = graph.n_answers + int(np.count_nonzero(graph.labels))
        # A point without answers and labels has no curvature.
        known = (graph.degree > 0) | (graph.labels != 0)
        self.known_weight = np.where(known, likelihood.weight[graph.component], 0.0)

    def terms(self, scores: Array) -> tuple[Array, Array]:
        """Weighted log likelihood of each component, and equation (1), for scores (n_points,) or (n_points, K)."""
        log_p, slope = self.likelihood.terms(scores.reshape(len(scores), self.likelihood.n_scores, 1))
        return self.likelihood.weight * log_p[:, 0], -slope.reshape(scores.shape)

    def slopes(self, scores: Array, pull: Pull | None = None) -> tuple[Array, Array]:
        """Gradient and curvature of the loss and the pull, one row for each point.

        The loss is a sum over answers, so a pull in units of the mean answer counts as many times.
        """
        n_scores = self.likelihood.n_scores
        p = self.likelihood.probabilities(scores.reshape(len(scores), n_scores, 1))
        weight = self.known_weight.reshape(-1, *[1] * (scores.ndim - 1))
        gradient = weight * self.terms(scores)[1]
        curvature = weight * (p * (1 - p))[:, -n_scores:].reshape(scores.shape)
        if pull is not None:
            points, share, divergence = pull
            total = self.likelihood.total
            _, slope = divergence.terms(p[points], share)
            bend = divergence.curvature(p[points], share)
            gradient[points] += total * slope[:, -n_scores:].reshape(gradient[points].shape)
            curvature[points] += total * bend[:, -n_scores:].reshape(curvature[points].shape)
        return gradient, np.maximum(curvature, _LEAST_CURVATURE)


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
    loss = PointLoss(AnswerModel.given(error_rate, graph).likelihood(graph, n_classes))
    return PairObjective(graph, loss, make_pull(graph, prior, prior_strength))
