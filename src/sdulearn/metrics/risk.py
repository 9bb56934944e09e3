"""The paper's risk, the likelihood of answers and the calibration of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import InputError
from sdulearn.losses import Loss, get_loss
from sdulearn.metrics.accuracy import chance_of_same
from sdulearn.prior import no_answers
from sdulearn.risks import check_prior, marginal_risk, mixture
from sdulearn.types import Array, Estimator, Indices, MatrixLike


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

    It is not clipped: on few pairs it may be negative or exceed 1, which keeps the ranking of
    models right.

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
        As in :func:`pair_importance`; with ``predict_proba``. An estimator that knows how often answers are wrong
        (``answer_model_``) reckons with it.

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
    if (model := getattr(estimator, "answer_model_", None)) is not None:
        wrong = model.errors(graph.annotators)
        chance = (1 - wrong) * chance + wrong * (1 - chance)
    return float(np.mean(np.log(np.maximum(chance, np.finfo(float).tiny))))


@dataclass(frozen=True, eq=False)
class Calibration:
    """A reliability table: predicted and observed frequencies, by bins of the prediction.

    Attributes
    ----------
    predicted, observed, count : arrays of shape (n_bins,)
        Mean predicted probability, share of events and number of predictions of each bin that is
        not empty.
    error : float
        Expected calibration error: the mean distance of the two, weighted by the counts. Chance
        alone makes it positive.
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
    >>> found = calibration([0.1, 0.1, 0.9, 0.9], [-1, -1, 1, -1])
    >>> round(found.error, 3), found.observed
    (0.25, array([0. , 0.5]))
    """
    p = np.asarray(probability, dtype=np.float64)
    happened = np.asarray(event) > 0
    if p.ndim != 1 or not p.size or p.shape != happened.shape or not ((p >= 0) & (p <= 1)).all():
        raise InputError(
            "`probability` and `event` must be two columns of one length, 1 or more, the first from 0 to 1."
        )
    place = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
    count = np.bincount(place, minlength=n_bins)
    filled = count > 0
    predicted = np.bincount(place, weights=p, minlength=n_bins)[filled] / count[filled]
    observed = np.bincount(place, weights=happened, minlength=n_bins)[filled] / count[filled]
    error = float(np.abs(predicted - observed) @ count[filled] / p.size)
    return Calibration(predicted, observed, count[filled], error)


def pair_calibration(probability: ArrayLike, y: ArrayLike, *, n_bins: int = 10) -> Calibration:
    """Reliability of the probability of "same" that a classifier gives to answers it has not seen.

    If class probabilities are calibrated, so are those of "same" for random pairs. The reverse need
    not hold.

    Parameters
    ----------
    probability : array-like of shape (n_rows, n_classes)
        ``predict_proba`` of the rows.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
        What is known of each row; at least one answer.
    n_bins
        As in :func:`calibration`.

    Returns
    -------
    Calibration
        The table and the expected calibration error, of answers.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.metrics import pair_calibration
    >>> p = np.array([0.9, 0.9, 0.9, 0.1])
    >>> found = pair_calibration(np.column_stack([1 - p, p]), [1, 1, -2, -2])
    >>> round(found.error, 2)
    0.18
    """
    graph = AnswerGraph.from_y(y)
    return calibration(chance_of_same(probability, graph), graph.same, n_bins=n_bins)
