"""Accuracy of a model from held-out answers alone.

The two ends of a random pair are independent draws, so with y, y' the classes, h, h' the predictions (all -1 or +1) and
s = y y' the answer,

    E[s h h'] = E[y h] E[y' h'] = (2 accuracy - 1)^2                                         (1)

The share of held-out pairs on which the model's "same or different" agrees with the answer is thus to the accuracy as
the share of similar pairs is to the prior: ``2 share - 1 = (2 accuracy - 1)^2``, with the same exact interval. It needs
no prior, works at 1/2 and never divides by p - q. Only which class is called +1 is beyond it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.model_selection import PairKFold
from sdulearn.pairs import Pairs, read_pairs, sources
from sdulearn.prior import clopper_pearson, dissimilar_share, prior_from_share, similar_share
from sdulearn.risks import mixture, row_weights

Array = NDArray[np.float64]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class PairAccuracy:
    """Estimated accuracy with its interval, and beside it the paper's estimate.

    Attributes
    ----------
    value, low, high : float
        Accuracy by equation (1) with its 95% interval.
    agreement : float
        Share of held-out answers that the model gives too.
    n_answers : int
        Held-out answers.
    risk_accuracy, risk_error : float or None
        1 - SD risk (zero-one loss), unclipped, and its standard error given the prior; None at prior 1/2.
    """

    value: float
    low: float
    high: float
    agreement: float
    n_answers: int
    risk_accuracy: float | None
    risk_error: float | None


def held_out_decisions(
    refit: Callable[[], Any], rows: Any, codes: NDArray[np.int64], weights: Array | None, reference: Array, folds: int
) -> Array:
    """Decision value of every row by a model that has not seen it, named as the reference names the classes."""
    decision = np.empty(len(codes))
    # Other folds than those the penalty was chosen on.
    for train, test in PairKFold(folds, random_state=1).split(rows, codes):
        model = refit().fit(rows[train], codes[train], None if weights is None else weights[train])
        z = model.decision_function(rows[test])
        decision[test] = z if z @ reference[test] >= 0 else -z
    return decision


def pair_accuracy(
    decision: Array, codes: NDArray[np.int64], weights: Array | None, prior: float, natural_ratio: bool
) -> PairAccuracy:
    """Accuracy from held-out decision values.

    ``natural_ratio`` says that similar and dissimilar pairs stand in the ratio in which random pairs come, so the
    answers count as they are; otherwise each kind counts with the share that the prior gives it.
    """
    pairs = read_pairs(codes)
    weight = np.ones(len(pairs.ends)) if weights is None else weights[pairs.ends[:, 0]]
    z = decision[pairs.ends]
    agrees = ((z[:, 0] > 0) == (z[:, 1] > 0)) == pairs.similar
    share, effective = _agreement(agrees, pairs.similar, weight, None if natural_ratio else prior)
    low, high = clopper_pearson(share * effective, (1 - share) * effective, CONFIDENCE)
    risk = (None, None) if prior == 0.5 else _risk_accuracy(decision, codes, pairs, weights, prior)
    value = prior_from_share(share)
    return PairAccuracy(value, prior_from_share(low), prior_from_share(high), share, len(agrees), *risk)


def _agreement(
    agrees: NDArray[np.bool_], similar: NDArray[np.bool_], weight: Array, prior: float | None
) -> tuple[float, float]:
    """Share of answers agreed with, and the number of plain answers that would pin it down as well."""
    if prior is not None:
        for kind, share in ((similar, similar_share(prior)), (~similar, dissimilar_share(prior))):
            weight = np.where(kind, weight * (share / max(weight[kind].sum(), 1e-300)), weight)
    return float(weight @ agrees / weight.sum()), float(weight.sum() ** 2 / (weight @ weight))


def _risk_accuracy(
    decision: Array, codes: NDArray[np.int64], pairs: Pairs, weights: Array | None, prior: float
) -> tuple[float, float]:
    """``1 - SD risk``, and its standard error from the spread of the pairs' terms within each kind."""
    positive, negative = row_weights(mixture("sd"), prior, sources(codes), weights)
    term = positive * (decision <= 0) + negative * (decision > 0)
    by_pair = term[pairs.ends].sum(axis=1)
    variance = sum(_sum_variance(by_pair[kind]) for kind in (pairs.similar, ~pairs.similar))
    return 1 - float(by_pair.sum()), float(np.sqrt(variance))


def _sum_variance(terms: Array) -> float:
    return float(len(terms) * np.var(terms, ddof=1)) if len(terms) > 1 else 0.0
