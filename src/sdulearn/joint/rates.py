"""The error rates of a fit with two classes that a model helps to estimate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sdulearn.answers.answer_model import AnswerModel, ErrorRateParameter
from sdulearn.answers.graph import AnswerGraph
from sdulearn.joint.data import TrainingData
from sdulearn.joint.likelihood import TwoClassLikelihood
from sdulearn.joint.path import WORKING_ALPHA, PointProblem, fit_folds
from sdulearn.model_selection import number_of_folds
from sdulearn.pairs import Pairs
from sdulearn.types import Array, Mask

# Fits that estimates of the rates alternate with.
_ROUNDS = 2
_FOLDS = 5
# An annotator with fewer answers cannot be told from the others by a model.
_FEWEST = 10


def may_be_wrong(error_rate: ErrorRateParameter) -> bool:
    """Whether a rate above 0 was given."""
    if isinstance(error_rate, Mapping):
        return any(error_rate.values())
    return error_rate not in ("auto", 0)


def asks_for_graph(error_rate: ErrorRateParameter, pairs: Pairs) -> bool:
    """Whether pairs are more than loose, clean ones: shared points, labels, or rates that are or may be above 0."""
    if pairs.shares_points or (pairs.labels is not None and pairs.labels.any()):
        return True
    if error_rate != "auto":
        return may_be_wrong(error_rate)
    return pairs.annotators is not None and len(np.unique(pairs.annotators[pairs.ends[:, 0]])) > 1


def rate_folds(graph: AnswerGraph) -> int:
    """Number of folds of the models that judge rates; 0 where there is nobody to tell apart and no contradiction."""
    _, counts = np.unique(graph.annotators, return_counts=True)
    if (counts >= _FEWEST).sum() < 2 and not graph.contradictory.any():
        return 0
    return number_of_folds(_FOLDS, graph.same > 0)


def rates_by_models(data: TrainingData, folds: Mask) -> AnswerModel:
    """Rates by repeated questions, cycles, labels, and models of the other answers.

    ``folds`` (n_known, n_folds) are the points that each model knows.
    """
    found = AnswerModel.estimate(data.graph)
    for _ in range(_ROUNDS):
        found = AnswerModel.estimate(data.graph, logits=held_out_logits(data, found, folds))
    return found


def held_out_logits(data: TrainingData, answer_model: AnswerModel, folds: Mask) -> Array:
    """Logits of every point by a model that knows no answer about it."""
    likelihood = TwoClassLikelihood(data.graph, answer_model, data.weight)
    problem = PointProblem(data, likelihood, None, 0.0)
    alpha = WORKING_ALPHA * problem.moments.largest_alpha(1.0)
    _, Z = fit_folds(problem, np.array([alpha]), 1.0, folds)
    # Without labels the sign of a model is arbitrary: all follow the first.
    signs = np.copysign(1.0, Z[:, 0, 0] @ Z[:, 0])
    return (Z[:, 0] * signs * ~folds).sum(axis=1)
