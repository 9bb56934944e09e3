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
from typing import NamedTuple

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


class Pull(NamedTuple):
    """The pull of the mean prediction on unlabeled points to a given prior."""

    points: Indices
    share: Array  # their weights, of sum 1
    divergence: PriorPull

    @classmethod
    def of(cls, graph: AnswerGraph, prior: float | ArrayLike | None, strength: float, n_classes: int) -> Pull | None:
        """Return the pull to P(y = +1) or to class shares; None without these or without unlabeled points."""
        weight = graph.point_weights[graph.unlabeled]
        divergence = PriorPull.of(prior, strength, len(weight), n_classes)
        return None if divergence is None else cls(graph.unlabeled, weight / weight.sum(), divergence)


class PointLoss:
    """Negative log likelihood of all answers and labels, and a pull, as a function of the scores of the points."""

    def __init__(self, likelihood: Likelihood, pull: Pull | None = None) -> None:
        self.likelihood = likelihood
        self.pull = pull
        graph = likelihood.graph
        # A point without answers and labels has no curvature.
        known = (graph.degree > 0) | (graph.labels != 0)
        self.known_weight = np.where(known, likelihood.weight[graph.component], 0.0)

    def slopes(self, scores: Array) -> tuple[Array, Array]:
        """Return gradient, equation (1), and curvature at scores (n_points, n_scores).

        The loss is a sum over answers, so a pull in units of the mean answer counts as many times.
        """
        likelihood = self.likelihood
        Z = scores[:, :, None]
        p = likelihood.probabilities(Z)
        # Two classes have one score, that of the last.
        scored = slice(-likelihood.n_scores, None)
        gradient = -likelihood.total * likelihood.mean(Z)[1]
        curvature = self.known_weight[:, None, None] * (p * (1 - p))[:, scored]
        if self.pull is not None:
            points, share, divergence = self.pull
            gradient[points] += likelihood.total * divergence.terms(p[points], share)[1][:, scored]
            curvature[points] += likelihood.total * divergence.curvature(p[points], share)[:, scored]
        return gradient[:, :, 0], np.maximum(curvature[:, :, 0], _LEAST_CURVATURE)


class PairObjective:
    """The custom objective of :func:`pair_objective`, a function of raw scores of the rows."""

    def __init__(self, graph: AnswerGraph, loss: PointLoss) -> None:
        self.graph = graph
        self.loss = loss
        # The score of a point is the mean of its rows, which share its gradient by weight.
        self.share = graph.row_weight / np.bincount(graph.row_point, graph.row_weight)[graph.row_point]

    def __call__(self, scores: ArrayLike, data: object = None) -> tuple[Array, Array]:
        """Gradient and curvature of the rows, as LightGBM and XGBoost expect them."""
        z = np.asarray(scores, dtype=np.float64)
        graph = self.graph
        if len(z) != graph.n_given:
            raise InputError(f"The booster has {len(z)} rows, but `y` has {graph.n_given}.")
        if not graph.labels.any() and np.ptp(z, axis=0).max(initial=0.0) == 0:
            raise InputError(
                "All rows have the same score. The gradient of answers is zero there, because mirrored models fit them "
                "equally well. Start the booster from the decision values of PairLogisticRegressionCV (`init_score` "
                "of LightGBM's Dataset, `base_margin` of XGBoost's DMatrix), or give labels in `y`."
            )
        by_row = z.reshape(len(z), self.loss.likelihood.n_scores)
        gradient, curvature = np.zeros((2, *by_row.shape))
        slopes = self.loss.slopes(graph.by_point(by_row[graph.rows]))
        gradient[graph.rows], curvature[graph.rows] = (self.share[:, None] * slope[graph.row_point] for slope in slopes)
        return gradient.reshape(z.shape), np.maximum(curvature, _LEAST_CURVATURE).reshape(z.shape)


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
        What is known about each row: answer, point, annotator, label, question. A point has the mean score of its
        rows.
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
    likelihood = AnswerModel.given(error_rate, graph).likelihood(graph, n_classes)
    return PairObjective(graph, PointLoss(likelihood, Pull.of(graph, prior, prior_strength, n_classes)))
