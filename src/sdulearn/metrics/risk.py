"""The paper's risk and the likelihood of answers, as scores of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.losses import Loss, get_loss
from sdulearn.metrics.accuracy import no_answers, rows_to_judge
from sdulearn.metrics.reliability import chance_of_same
from sdulearn.pairs import read_pairs
from sdulearn.risks import check_prior, marginal_risk, mixture
from sdulearn.types import Estimator, MatrixLike


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

    It is not clipped: on few pairs it may be negative or exceed 1, and that is what ranks models rightly.

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
    z, pairs, weight, _ = rows_to_judge(decision, y, sample_weight, "decision")
    if not len(pairs.ends):
        raise no_answers("The risk")
    g = mixture(risk, gamma)
    return float(marginal_risk(z, pairs.source, g, check_prior(prior), get_loss(loss), weight))


def pair_log_likelihood(estimator: Estimator, X: MatrixLike, y: ArrayLike) -> float:
    """Mean log-probability that a fitted estimator gives to the answers: a scorer that works at any prior.

    Pass it as ``scoring`` to ``GridSearchCV`` or ``cross_val_score``. Each answer is taken by itself, whatever
    points it shares with others.

    Parameters
    ----------
    estimator, X, y
        As in :func:`pair_importance`; with ``predict_proba``.

    Returns
    -------
    float
        Mean log-likelihood of an answer; the larger the better, never above 0.
    """
    pairs = read_pairs(y)
    if not len(pairs.ends):
        raise no_answers("The likelihood of answers")
    same = chance_of_same(estimator.predict_proba(X), pairs)
    chance = np.where(pairs.similar, same, 1 - same)
    return float(np.mean(np.log(np.maximum(chance, np.finfo(float).tiny))))
