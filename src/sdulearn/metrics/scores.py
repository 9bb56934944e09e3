"""Scores of a fitted model from answers: risk, likelihood, calibration and the importance of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.calibration import calibration_curve
from sklearn.utils import check_random_state

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import InputError
from sdulearn.losses import Loss, get_loss
from sdulearn.metrics.accuracy import answer_model_in, chance_of_same, pair_accuracy
from sdulearn.prior import no_answers, prior_from_share, share_in_class
from sdulearn.progress import steps
from sdulearn.risks import check_prior, marginal_risk, mixture
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Estimator, Indices, MatrixLike, RandomState


def pair_risk(
    decision: ArrayLike,
    y: ArrayLike,
    *,
    prior: float,
    loss: str | Loss = "zero_one",
    risk: str | Sequence[float] = "sd",
    gamma: float = 0.5,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Unbiased estimate of the classification risk from pairs: no class label is needed.

    It is not clipped: on few pairs it may be negative or exceed 1, which keeps the ranking of models right.

    Parameters
    ----------
    decision, y
        As in :func:`pair_accuracy`.
    prior : float
        P(y = +1), not 1/2.
    loss : str or object with ``value(z, t)``, default="zero_one"
        Any loss; with "zero_one" the result estimates the error rate.
    risk : str or triple, default="sd"
        Which unbiased risk: "su", "du", "sd", "sdsu", "sddu", "sudu", or weights (su, du, sd).
    gamma : float, default=0.5
        Mixture weight of the three mixed risks.
    sample_weight
        As in :func:`pair_accuracy`.

    Returns
    -------
    float
        The empirical risk.

    Examples
    --------
    >>> from sdulearn.metrics import pair_risk
    >>> round(pair_risk([2, 1, 1, -1], [1, 1, -2, -2], prior=0.7), 3)
    -0.225
    """
    graph = AnswerGraph.from_y(y, sample_weight)
    z = graph.of_rows(np.asarray(decision, dtype=np.float64), "decision")
    if not graph.n_answers:
        raise no_answers("The risk")
    g = mixture(risk, gamma)
    return float(marginal_risk(z, graph.source, g, check_prior(prior), get_loss(loss), graph.row_weight))


def pair_log_likelihood(estimator: Estimator, X: MatrixLike, y: ArrayLike) -> float:
    """Mean log-probability that a fitted estimator gives to single answers: a scorer at any prior.

    Pass it as ``scoring`` to ``GridSearchCV`` or ``cross_val_score``.

    Parameters
    ----------
    estimator, X, y
        As in :func:`cross_val_accuracy`; fitted, with ``predict_proba``, and error rates by its ``answer_model_``.

    Returns
    -------
    float
        Mean log-likelihood of an answer; the larger the better, never above 0.
    """
    graph = AnswerGraph.from_y(y)
    if not graph.n_answers:
        raise no_answers("The likelihood of answers")
    same = chance_of_same(estimator.predict_proba(X), graph)
    chance = np.where(graph.same > 0, same, 1 - same)
    if (model := answer_model_in(estimator)) is not None:
        chance += model.errors(graph.annotators) * (1 - 2 * chance)
    return float(np.mean(np.log(np.maximum(chance, np.finfo(float).tiny))))


@dataclass(frozen=True, eq=False)
class Calibration:
    """A reliability table: predicted and observed frequencies, by bins of the prediction.

    Attributes
    ----------
    predicted, observed, count : arrays of shape (n_bins,)
        Mean predicted probability, share of events and number of predictions of each bin that is not empty.
    error : float
        Expected calibration error: their mean distance, weighted by the counts. Chance alone makes it positive.
    """

    predicted: Array
    observed: Array
    count: Indices
    error: float


def calibration(probability: ArrayLike, event: ArrayLike, *, n_bins: int = 10) -> Calibration:
    """Reliability of predicted probabilities of known events.

    Parameters
    ----------
    probability : array-like of shape (n,)
        Predicted probabilities.
    event : array-like of shape (n,)
        Whether each event happened: booleans, or classes, of which the positive ones count.
    n_bins : int, default=10
        Bins of equal width from 0 to 1.

    Returns
    -------
    Calibration
        The table and the expected calibration error.

    Examples
    --------
    >>> from sdulearn.metrics import calibration
    >>> result = calibration([0.1, 0.1, 0.9, 0.9], [-1, -1, 1, -1])
    >>> round(result.error, 3), result.observed
    (0.25, array([0. , 0.5]))
    """
    p = np.asarray(probability, dtype=np.float64)
    happened = np.asarray(event) > 0
    if p.ndim != 1 or not p.size or p.shape != happened.shape or not ((p >= 0) & (p <= 1)).all():
        raise InputError("`probability`, from 0 to 1, and `event` must be columns of one length, 1 or more.")
    observed, predicted = calibration_curve(happened, p, n_bins=n_bins)
    # scikit-learn leaves out empty bins and does not count the others.
    count = np.bincount(np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], p))
    count = count[count > 0]
    return Calibration(predicted, observed, count, float(np.abs(predicted - observed) @ count / p.size))


def pair_calibration(probability: ArrayLike, y: ArrayLike, *, n_bins: int = 10) -> Calibration:
    """Reliability of the probability of "same" that a classifier gives to answers it has not seen.

    If class probabilities are calibrated, so are those of "same" for random pairs. The reverse need not hold.

    Parameters
    ----------
    probability : array-like of shape (n_rows, n_classes)
        ``predict_proba`` of the rows.
    y
        As in :func:`pair_accuracy`; with at least one answer.
    n_bins
        As in :func:`calibration`.

    Returns
    -------
    Calibration
        The table and the expected calibration error, of answers.

    Examples
    --------
    >>> from sdulearn.metrics import pair_calibration
    >>> result = pair_calibration([[0.1, 0.9], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]], [1, 1, -2, -2])
    >>> round(result.error, 2)
    0.18
    """
    graph = AnswerGraph.from_y(y)
    if not graph.n_answers:
        raise no_answers("A calibration")
    return calibration(chance_of_same(probability, graph), graph.same, n_bins=n_bins)


@dataclass(frozen=True, eq=False)
class PairImportance:
    """Accuracy lost if a column is shuffled.

    Attributes
    ----------
    mean, std : array of shape (n_features,)
        Mean and standard deviation of the loss over the repeats.
    losses : array of shape (n_features, n_repeats)
        Accuracy, or agreement, minus that with the column shuffled, both estimated from the answers.
    accuracy : float
        Accuracy, or agreement, without shuffling.
    error : array of shape (n_features,)
        Standard error of the mean over answers and shuffles, for this fitted classifier; approximate.
    """

    mean: Array
    std: Array
    losses: Array
    accuracy: float
    error: Array


def pair_importance(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_repeats: int = 5,
    scoring: str | None = None,
    random_state: RandomState = None,
) -> PairImportance:
    """Permutation importance of each column, from answers that the classifier has not seen.

    A column is shuffled among the *points*: all rows that show a point keep one value. Answers are assumed to be right
    unless they contradict each other.

    Parameters
    ----------
    estimator, X, y
        As in :func:`cross_val_accuracy`; the estimator is fitted, and has not seen the answers.
    n_repeats : int, default=5
        Shuffles of each column.
    scoring : {"accuracy", "agreement"}, optional
        By default accuracy (:func:`pair_accuracy`) with two classes, agreement with answers with more.
    random_state : int, RandomState or None, default=None
        Seed of the shuffles.

    Returns
    -------
    PairImportance
        Lost accuracy by column.

    Examples
    --------
    >>> from sdulearn import PairKFold, PairLogisticRegression
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.metrics import pair_importance
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=800, n_unlabeled=0, prior=0.7, random_state=0)
    >>> train, test = next(PairKFold(2, random_state=0).split(rows, codes))
    >>> model = PairLogisticRegression().fit(rows[train], codes[train])
    >>> result = pair_importance(model, rows[test], codes[test], random_state=0)
    >>> bool(result.mean.max() > 0.02)
    True
    """
    if n_repeats < 1:
        raise InputError(f"`n_repeats` must be at least 1, got {n_repeats}.")
    if scoring not in ("accuracy", "agreement", None):
        raise InputError(f"`scoring` must be 'accuracy', 'agreement' or None, got {scoring!r}.")
    graph = AnswerGraph.from_y(y)
    if not graph.n_answers:
        raise no_answers("An importance")
    decision = np.asarray(estimator.decision_function(X))
    # Answers that contradict each other are wrong at the rate that they imply, the same for all shuffles.
    contradicted = decision.ndim == 1 and graph.shares_points and graph.contradictory.any()
    model = AnswerModel.estimate(graph) if contradicted else None
    whole, agrees = _judge(decision, graph, scoring, model)
    losses = np.empty((X.shape[1], n_repeats))
    # Lost agreement with each answer.
    lost = np.zeros((X.shape[1], n_repeats, graph.n_answers))
    copies = safe_indexing(X, np.tile(np.arange(graph.n_rows), n_repeats))
    rng = check_random_state(random_state)
    for column in steps(range(len(losses)), "shuffled columns"):
        orders = [rng.permutation(graph.n_points) for _ in range(n_repeats)]
        donors = np.concatenate([graph.first_row[order][graph.row_point] for order in orders])
        decisions = np.asarray(estimator.decision_function(shuffled(copies, column, donors)))
        for repeat, decision in enumerate(np.split(decisions, n_repeats)):
            score, still = _judge(decision, graph, scoring, model)
            losses[column, repeat] = whole - score
            lost[column, repeat] = agrees - still
    error = _error(losses, lost, int(np.count_nonzero(graph.degree)))
    return PairImportance(losses.mean(axis=1), losses.std(axis=1), losses, whole, error)


def _judge(decision: Array, graph: AnswerGraph, scoring: str | None, model: AnswerModel | None) -> tuple[float, Array]:
    """Accuracy or agreement, and which answers the predictions agree with."""
    many_classes = decision.ndim == 2
    if many_classes and scoring == "accuracy":
        raise InputError("`scoring='accuracy'` is for two classes. Give `scoring='agreement'`, or leave it out.")
    predicted = decision.argmax(axis=1) if many_classes else decision > 0
    ends = predicted[graph.end_rows]
    agrees = ((ends[:, 0] == ends[:, 1]) == (graph.same > 0)).astype(np.float64)
    if many_classes or scoring == "agreement":
        return float(agrees.mean()), agrees
    if model is None and len(np.unique(graph.same)) < 2:
        return pair_accuracy(decision, graph).value, agrees
    if model is None and not (graph.shares_points or graph.labels.any()):
        return prior_from_share(float(agrees.mean())), agrees
    # Only the value of pair_accuracy: it also estimates the accuracy of the larger class.
    sign = np.where(graph.by_point(decision[:, None])[:, 0] > 0, 1, -1)
    return share_in_class(graph, sign, 0.95, model)[0], agrees


def _error(losses: Array, lost: Array, n_points: int) -> Array:
    """Standard error of the lost agreement, times the slope of the accuracy in it."""
    by_answer = lost.mean(axis=1)
    by_shuffle = lost.mean(axis=2)
    # At most as many independent answers as the points make loose pairs.
    n_answers = min(by_answer.shape[1], n_points / 2)
    total = float(np.sum(by_shuffle**2))
    slope = abs(float(np.sum(losses * by_shuffle))) / total if total > 0 else 1.0
    return slope * by_answer.std(axis=1) / np.sqrt(n_answers)


def shuffled(X: MatrixLike, column: int, donors: Indices) -> MatrixLike:
    """A copy of the rows with the values of one column taken from other rows."""
    if hasattr(X, "iloc"):
        frame = X.copy()
        frame[X.columns[column]] = safe_indexing(X, donors).iloc[:, column].to_numpy()
        return frame
    copy: Any = X.tolil() if sparse.issparse(X) else np.array(X)
    copy[:, column] = copy[donors, column]
    return copy.tocsr() if sparse.issparse(X) else copy
