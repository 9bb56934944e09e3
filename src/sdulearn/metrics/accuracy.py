"""Estimate the accuracy of decisions from answers about the same rows.

The two ends of a random pair are independent draws, so with y, y' the classes, h, h' the
predictions (all -1 or +1) and s the answer, y y' or, at the error rate e, its opposite,

    E[s h h'] = E[y h] E[y' h'] (1 - 2 e) = (2 accuracy - 1)^2 (1 - 2 e)                     (1)

So the share of answers that the predictions agree with gives the accuracy in the way that the share
of similar pairs gives the prior, with the same exact interval. Answers that share points have the
likelihood of components instead (:mod:`sdulearn.prior`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, norm
from sklearn.pipeline import Pipeline

from sdulearn.answers.answer_model import AnswerModel, known_answer_model
from sdulearn.answers.graph import ENOUGH, AnswerGraph
from sdulearn.answers.y import U
from sdulearn.dependence import answer_spread, point_spread
from sdulearn.errors import InputError, SignlessWarning, warn
from sdulearn.prior import (
    ErrorRates,
    KnownRates,
    around,
    check_confidence,
    check_two_classes,
    classes_by_answers,
    clopper_pearson,
    effective_number,
    mean_error,
    no_answers,
    oriented,
    plausible_rates,
    prior_from_share,
    random_answers,
    share_in_class,
)
from sdulearn.risks import dissimilar_share, mixture, row_weights, similar_share
from sdulearn.types import Array, Codes, Count, Estimator, Mask, Probability

# Random questions that an accuracy needs.
ENOUGH_RANDOM = ENOUGH
# Significance level of each test: one false alarm in a hundred clean data sets.
LEVEL = 0.01


@dataclass(frozen=True)
class AccuracyEstimate:
    """An accuracy estimated from answers, with its confidence interval.

    Attributes
    ----------
    value : float
        The estimate, between 1/2 and 1: answers cannot distinguish a classifier from its mirror image.
        Between 0 and 1 with labels, from random questions, or with one kind of answer alone.
    low, high : float
        Confidence interval; 1/2 to 1 if nothing is known.
    agreement : float
        Share of the answers that the predictions agree with.
    n_answers : int
        Number of answers.
    confidence : float
        Level of the interval.
    majority : float
        Accuracy of always predicting the larger class, estimated from the same answers.
    basis : {"held-out answers", "random questions", "chosen pairs"}
        Which answers count: all, or those about points that were drawn at random. "chosen pairs": the pairs were chosen
        by their features, and the accuracy is that on pairs chosen in this way, not on new rows.
    """

    value: Probability
    low: Probability
    high: Probability
    agreement: Probability
    n_answers: Count
    confidence: Probability
    majority: Probability = 0.5
    basis: Literal["held-out answers", "random questions", "chosen pairs"] = "held-out answers"

    def __str__(self) -> str:
        level = f"{self.confidence:.0%} interval {self.low:.1%} to {self.high:.1%}"
        return f"accuracy {self.value:.1%} ({level}; {self.n_answers:,} answers, {self.basis})"

    @property
    def beats_majority(self) -> bool:
        """Whether the interval is above the accuracy of always predicting the larger class."""
        return self.low > self.majority


def pair_accuracy(
    decision: ArrayLike,
    y: ArrayLike | AnswerGraph,
    *,
    error_rate: ErrorRates = None,
    sample_weight: ArrayLike | None = None,
    prior: float | None = None,
    random_points: ArrayLike | None = None,
    confidence: float = 0.95,
    spread: float = 1.0,
) -> AccuracyEstimate:
    """Accuracy of a classifier from answers that it has not seen, without labels or a prior.

    Parameters
    ----------
    decision : array-like of shape (n_rows,)
        Values of ``decision_function``, or classes -1 and +1: their signs are the predictions. A SignlessWarning if
        they look like probabilities, or classes with other numbers.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 5)
        What is known about each row; an UndeterminedError if there are neither answers nor labels.
    error_rate : float, mapping or AnswerModel, optional
        Probability that an answer is wrong, one for all or one for each annotator. By default
        answers are right; if they contradict each other, wrong at an unknown rate with a mean of
        5%. With an :class:`~sdulearn.answers.AnswerModel` (``model.answer_model_``) the interval allows
        for the intervals of its rates, up to 0.3.
    sample_weight : array-like of shape (n_rows,), optional
        A weight per row, the same for both ends of a pair, in any unit; weight 0 leaves a row out.
    prior : float, optional
        P(y = +1), if similar and dissimilar pairs do *not* have the ratio of random pairs: each
        kind then counts with the share that the prior implies.
    random_points : array-like of bool, shape (n_rows,), optional
        Which rows show a point that was drawn at random, by default all. Points that a design chose
        connect the random ones, and do not count.
    confidence : float, default=0.95
        Level of the interval.
    spread : float, default=1.0
        Variance of the estimate, as a multiple of that of independent decisions.

    Returns
    -------
    AccuracyEstimate
        The estimate with its interval; 1/2, from 1/2 to 1, if no point of an answer is random.

    Examples
    --------
    >>> from sdulearn.metrics import pair_accuracy
    >>> estimate = pair_accuracy([2, 1, 1, -1, -1, -2], [1, 1, -2, -2, 3, 3])
    >>> estimate.value, estimate.n_answers
    (1.0, 3)
    """
    check_confidence(confidence)
    if prior is not None and not 0 < prior < 1:
        raise InputError(f"`prior` must lie strictly between 0 and 1, got {prior!r}.")
    graph = AnswerGraph.from_y(y, sample_weight)
    z = graph.of_rows(np.asarray(decision, dtype=np.float64), "decision")
    labelled = bool(graph.labels.any())
    if not graph.n_answers and not labelled:
        raise no_answers("An accuracy")
    check_two_classes(graph)
    # A point is predicted by the mean decision of its rows.
    sign = np.where(graph.by_point(z[:, None])[:, 0] > 0, 1, -1)
    counted, asked = random_answers(graph, random_points)
    if counted is None and graph.within_cluster.any():
        # The model is right or wrong about both points of such an answer, as they have much in common.
        graph = graph.restrict(~graph.within_cluster, np.ones(graph.n_points, dtype=bool))
        asked = np.ones(graph.n_answers, dtype=bool)
        if not graph.n_answers and not labelled:
            return AccuracyEstimate(0.5, 0.5, 1.0, 0.5, 0, confidence)
    models = [known_answer_model(rates, graph) for rates in plausible_rates(error_rate)]
    if graph is not y:
        # Decisions that come with a graph are those of our own estimators, which may be all of one sign.
        _warn_without_signs(z)
    agrees = sign[graph.ends].prod(axis=1) == graph.same
    if counted is None and graph.clusters is not None and graph.n_answers:
        spread *= _spread_of_clusters(graph, sign, agrees, confidence)
    agreement = float(np.average(agrees[asked], weights=graph.weights[asked])) if asked.any() else 0.5
    empty = AccuracyEstimate(0.5, 0.5, 1.0, agreement, int(asked.sum()), confidence)
    if counted is None and not labelled and len(np.unique(graph.same)) < 2:
        return _accuracy_of_one_kind(empty, z, graph, prior, spread)
    by_points = counted is not None or graph.shares_points or labelled
    if by_points and counted is None and prior is not None and graph.n_answers:
        # Answers of another ratio are reweighted by the prior, as pairs.
        n_similar = int(np.sum(graph.same > 0))
        by_points = binomtest(n_similar, graph.n_answers, similar_share(prior)).pvalue >= LEVEL
    if by_points:
        return around([_accuracy_of_points(empty, sign, graph, model, spread, counted) for model in models])
    return around([_accuracy_of_pairs(empty, graph, agrees, prior, spread, model) for model in models])


def _warn_without_signs(z: Array) -> None:
    """Warn of probabilities and of classes such as 1 and 2, whose signs are all alike."""
    values = np.unique(z)
    if len(values) < 2 or values[0] < 0 or (values[-1] > 1 and (values % 1).any()):
        return
    message = (
        f"`decision` has no value below 0, so that all rows count as class +1; its values, {values[0]:g} to "
        f"{values[-1]:g}, look like probabilities or numbers of classes. Give the values of `decision_function`, "
        "or classes -1 and +1."
    )
    warn(message, SignlessWarning)


def _spread_of_clusters(graph: AnswerGraph, sign: Codes, agrees: Mask, confidence: float) -> float:
    """Return what clusters add to the variance: by answers, and by the points that connected answers judge."""
    deviations = graph.weights * (agrees - np.average(agrees, weights=graph.weights))
    by_answers = answer_spread(deviations, graph, np.ones(graph.n_answers, dtype=bool), confidence)
    # More than two points are right or wrong up to one flip, in favour of the model.
    right = sign * graph.sides
    hits = right * np.sign(np.bincount(graph.component, right))[graph.component] > 0
    judged = (graph.component_sizes[graph.component] > 2) & (graph.sides != 0)
    assert graph.clusters is not None
    by_points = (
        point_spread(hits[judged] - np.mean(hits[judged]), graph.clusters[judged], confidence) if judged.any() else 1.0
    )
    return max(by_answers, by_points)


def _accuracy_of_pairs(
    empty: AccuracyEstimate, graph: AnswerGraph, agrees: Mask, prior: float | None, spread: float, model: KnownRates
) -> AccuracyEstimate:
    """Equation (1), with the interval of Clopper and Pearson."""
    weight = graph.weights
    similar = graph.same > 0
    rate = mean_error(model, graph, weight)
    if prior is None:
        majority = prior_from_share(float(np.average(similar, weights=weight)), rate)
    else:
        majority = max(prior, 1 - prior)
        # Give each kind the share that it has among random pairs.
        natural = np.where(similar, similar_share(prior), dissimilar_share(prior))
        weight = weight * natural / np.where(similar, weight @ similar, weight @ ~similar)
    share = float(np.average(agrees, weights=weight))
    effective = effective_number(float(weight.sum()), float(weight @ weight)) / spread
    effective = min(effective, np.count_nonzero(graph.degree) / 2)
    low, high = clopper_pearson(share * effective, (1 - share) * effective, empty.confidence)
    value, low, high = (prior_from_share(end, rate) for end in (share, low, high))
    return replace(empty, value=value, low=low, high=high, agreement=share, majority=majority)


def _accuracy_of_points(
    empty: AccuracyEstimate, sign: Codes, graph: AnswerGraph, model: KnownRates, spread: float, counted: Mask | None
) -> AccuracyEstimate:
    """By components, with k of m points right up to a flip; or by the class of each random point."""
    if counted is not None:
        empty = replace(empty, basis="random questions")
        if not counted.any():
            return empty
        graph = oriented(graph, sign)
        if graph.clusters is not None:
            hits = classes_by_answers(graph, model)[counted, (sign[counted] > 0).astype(np.intp)]
            spread *= point_spread(hits - hits.mean(), graph.clusters[counted], empty.confidence)
    value, low, high = share_in_class(graph, sign, empty.confidence, model, spread, counted)
    majority, _, _ = share_in_class(graph, np.ones_like(sign), empty.confidence, model, counted=counted)
    return replace(empty, value=value, low=low, high=high, majority=max(majority, 1 - majority))


def fold_spread(n_splits: int, share: float = 1.0) -> float:
    """Variance of an estimate from K folds as a multiple of that of independent decisions."""
    return 1 + share * n_splits / (n_splits - 1) / 2


def answer_model_in(estimator: Estimator) -> AnswerModel | None:
    """Return how answers go wrong by a fitted estimator, or by the last step of a pipeline; None if it has no idea."""
    model: AnswerModel | None = getattr(
        estimator[-1] if isinstance(estimator, Pipeline) else estimator, "answer_model_", None
    )
    return model


def chance_of_same(probability: ArrayLike, graph: AnswerGraph) -> Array:
    """Probability that the two points of each answer have one class, drawn independently."""
    p = np.asarray(probability, dtype=np.float64)
    if p.ndim != 2 or len(p) != graph.n_given:
        raise InputError(f"`probability` has shape {p.shape}, but `y` has {graph.n_given} rows: give `predict_proba`.")
    # Somebody may have rounded them.
    if p.shape[1] < 2 or not (p >= 0).all() or not np.allclose(p.sum(axis=1), 1, atol=0.02):
        raise InputError("`probability` must have a column for each class, and rows of sum 1: give `predict_proba`.")
    first, second = graph.rows[graph.end_rows].T
    return np.minimum(np.einsum("ik,ik->i", p[first], p[second]), 1.0)


def _accuracy_of_one_kind(
    empty: AccuracyEstimate, z: Array, graph: AnswerGraph, prior: float | None, spread: float
) -> AccuracyEstimate:
    """With one kind of answer only: by the paper's risk, from unlabeled rows and the prior."""
    unlabeled = graph.source == U
    if prior is None or prior == 0.5 or not unlabeled.any():
        return empty
    g = mixture("su" if (graph.same > 0).any() else "du")
    positive, negative = row_weights(g, prior, graph.source, graph.row_weight)
    terms = positive * (z <= 0) + negative * (z > 0)
    groups = (terms[graph.end_rows].sum(axis=1), terms[unlabeled])
    variance = sum(len(group) * np.var(group) for group in groups)
    # The variance grows with the number of rows a point has.
    error = np.sqrt(variance * spread * graph.ends.size / np.count_nonzero(graph.degree))
    value = 1 - float(terms.sum())
    margin = float(norm.isf((1 - empty.confidence) / 2) * error)
    low, value, high = np.clip([value - margin, value, value + margin], 0, 1).tolist()
    return replace(empty, value=value, low=low, high=high, majority=max(prior, 1 - prior))
