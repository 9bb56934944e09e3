"""How good a classifier is, by answers alone.

The two ends of a random pair are independent draws, so with y, y' the classes, h, h' the
predictions (all -1 or +1) and s = y y' the answer,

    E[s h h'] = E[y h] E[y' h'] = (2 accuracy - 1)^2                                         (1)

The share of held-out pairs on which the model's "same or different" agrees with the answer is thus
to the accuracy as the share of similar pairs is to the prior: ``2 share - 1 = (2 accuracy - 1)^2``,
with the same exact interval. It needs no prior, works at 1/2 and never divides by p - q. Only which
class is called +1 is beyond it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, norm
from sklearn.base import clone

from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import FactorGraph
from sdulearn.errors import InputError, OrientationWarning
from sdulearn.losses import Loss, get_loss
from sdulearn.model_selection import PairKFold
from sdulearn.pairs import Pairs, read_pairs, sources
from sdulearn.prior import clopper_pearson, dissimilar_share, prior_from_share, similar_share
from sdulearn.risks import check_prior, marginal_risk, mixture, row_weights
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Estimator, Indices, Mask, MatrixLike, Splitter

# Where some answers must be wrong: so many of them are looked at, and these shares of wrong ones considered.
_MOST_DISPUTED = 2000
_ERROR_RATES = (0.01, 0.02, 0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3)


@dataclass(frozen=True)
class AccuracyEstimate:
    """An accuracy estimated from answers, with its confidence interval.

    Attributes
    ----------
    value : float
        The estimate, between 1/2 and 1: answers cannot tell a classifier from its mirror image. With one
        kind of answer alone it comes from the SU or DU risk and lies between 0 and 1.
    low, high : float
        Confidence interval, exact for random pairs that share no points. With one kind of answer alone it is a
        normal one with the prior and unlabeled rows, and 1/2 to 1 without: then nothing is known.
    agreement : float
        Share of the answers that the model gives too.
    n_answers : int
        Number of answers.
    confidence : float
        Level of the interval.
    """

    value: float
    low: float
    high: float
    agreement: float
    n_answers: int
    confidence: float


def pair_accuracy(
    decision: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    prior: float | None = None,
    confidence: float = 0.95,
) -> AccuracyEstimate:
    """Accuracy of a classifier from answers that it has not seen: no class label and no prior is needed.

    Parameters
    ----------
    decision : array-like of shape (n_rows,)
        Values of the decision function; their signs are the predictions.
    y : array-like of shape (n_rows,)
        Pair codes: +k similar, -k dissimilar, 0 unlabeled.
    sample_weight : array-like of shape (n_rows,), optional
        A weight per row; both ends of a pair carry one weight.
    prior : float, optional
        P(y = +1), where similar and dissimilar pairs do *not* stand in the ratio in which random
        pairs come: each kind then counts with the share that the prior gives it. By default the
        answers count as they are.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    AccuracyEstimate
        The estimate with its interval.

    See Also
    --------
    cross_val_accuracy : The same from folds, where there are no further answers.
    pair_risk : The paper's unbiased estimate of the risk; needs the prior.

    Examples
    --------
    >>> from sdulearn.metrics import pair_accuracy
    >>> found = pair_accuracy([2, 1, 1, -1, -1, -2], [1, 1, -2, -2, 3, 3])
    >>> found.value, found.n_answers
    (1.0, 3)
    """
    pairs = read_pairs(y)
    z = _checked_decision(decision, pairs)
    weight = np.ones(len(z)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    by_pair = pairs.pair_weights(weight)
    if not by_pair.sum() > 0:
        raise InputError("An accuracy needs answers, and `y` marks none of positive weight.")
    predicted_same = (z[pairs.ends[:, 0]] > 0) == (z[pairs.ends[:, 1]] > 0)
    agrees = predicted_same == pairs.similar
    if pairs.similar[by_pair > 0].all() or not pairs.similar[by_pair > 0].any():
        return _accuracy_of_one_kind(z, pairs, weight, float(by_pair @ agrees / by_pair.sum()), prior, confidence)
    if prior is not None:
        by_pair = _in_natural_ratio(by_pair, pairs.similar, prior)
    share = float(by_pair @ agrees / by_pair.sum())
    effective = float(by_pair.sum() ** 2 / (by_pair @ by_pair))
    low, high = clopper_pearson(share * effective, (1 - share) * effective, confidence)
    return AccuracyEstimate(
        value=prior_from_share(share),
        low=prior_from_share(low),
        high=prior_from_share(high),
        agreement=share,
        n_answers=len(agrees),
        confidence=confidence,
    )


def _accuracy_of_one_kind(
    z: Array, pairs: Pairs, weight: Array, agreement: float, prior: float | None, confidence: float
) -> AccuracyEstimate:
    """Equation (1) needs both kinds of answer; one alone tells the accuracy only by the risk, with U and the prior."""
    n_answers = len(pairs.ends)
    if prior is None or prior == 0.5 or not weight[pairs.unlabeled].any():
        return AccuracyEstimate(0.5, 0.5, 1.0, agreement, n_answers, confidence)
    g = mixture("su" if pairs.similar.any() else "du")
    positive, negative = row_weights(g, prior, pairs.source, weight)
    terms = positive * (z <= 0) + negative * (z > 0)
    groups = (terms[pairs.ends].sum(axis=1), terms[pairs.unlabeled])
    error = np.sqrt(sum(len(group) * np.var(group) for group in groups))
    value = 1 - float(terms.sum())
    margin = float(norm.isf((1 - confidence) / 2) * error)
    low, value, high = np.clip([value - margin, value, value + margin], 0, 1).tolist()
    return AccuracyEstimate(value, low, high, agreement, n_answers, confidence)


def point_accuracy(
    decision: ArrayLike, ends: ArrayLike, same: ArrayLike, *, confidence: float = 0.95
) -> AccuracyEstimate:
    """Accuracy from answers that may share points.

    In a component of answers, k of its m points agree with the sides that the answers put them on, up to one
    flip, which has the probability a^k (1 - a)^(m - k) + a^(m - k) (1 - a)^k at the accuracy a. For a pair that
    is equation (1). Where answers contradict each other, some are wrong, and the likelihood is that of
    :func:`~sdulearn.answers.propagate.propagate` at the error rate that suits it best.

    Parameters
    ----------
    decision : array-like of shape (n_points,)
        Decision values of all points, each by a model that saw no answer about it.
    ends : array-like of shape (n_answers, 2)
        Numbers of the two points of each answer.
    same : array-like of shape (n_answers,)
        The answers: booleans, or +1 and -1.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    AccuracyEstimate
        The maximum of the likelihood and its profile interval.

    See Also
    --------
    pair_accuracy : From pair codes, each pair of two points of its own.

    Examples
    --------
    >>> from sdulearn.metrics import point_accuracy
    >>> found = point_accuracy([2, 1, -1, -2], [(0, 1), (1, 2), (2, 3)], [True, False, True])
    >>> found.value, found.n_answers
    (1.0, 3)
    """
    side = np.where(np.asarray(decision, dtype=np.float64) > 0, 1, -1)
    graph = AnswerGraph.from_answers(ends, same, n_points=len(side))
    predicted = side[graph.ends[:, 0]] * side[graph.ends[:, 1]]
    grid = np.linspace(0.5, 1, 501)[:-1]
    value = _component_likelihood(graph, side, grid)
    if graph.contradictory.any():
        disputed = graph.contradictory[graph.component[graph.ends[:, 0]]]
        value += _disputed_likelihood(graph.ends[disputed], (graph.same * predicted)[disputed], grid)
    inside = grid[2 * (value.max() - value) <= chi2.ppf(confidence, 1)]
    best = float(grid[np.argmax(value)])
    top = len(grid) - 1
    return AccuracyEstimate(
        value=1.0 if np.argmax(value) == top else best,
        low=float(inside[0]),
        high=1.0 if inside[-1] == grid[top] else float(inside[-1]),
        agreement=float(np.mean(predicted == graph.same)),
        n_answers=graph.n_answers,
        confidence=confidence,
    )


def _component_likelihood(graph: AnswerGraph, side: Codes, grid: Array) -> Array:
    """Log-likelihood of the components without a contradiction, at each accuracy."""
    asked = (graph.degree > 0) & (graph.sides != 0)
    agree = np.bincount(graph.component[asked], graph.sides[asked] == side[asked], graph.n_components)
    size = np.bincount(graph.component[asked], minlength=graph.n_components)
    counts, times = np.unique(np.column_stack([agree, size])[size > 0], axis=0, return_counts=True)
    k = counts[:, :1]
    m = counts[:, 1:]
    right = np.log(grid)
    wrong = np.log1p(-grid)
    return times @ np.logaddexp(k * right + (m - k) * wrong, (m - k) * right + k * wrong)


def _disputed_likelihood(ends: Indices, agreed: Codes, grid: Array) -> Array:
    """Log-likelihood of answers of which some are wrong, at each accuracy and its best error rate."""
    if len(ends) > _MOST_DISPUTED:
        # Cycles are slow; so many answers tell enough, and leaving others out takes nothing from these.
        some = np.random.default_rng(0).choice(len(ends), _MOST_DISPUTED, replace=False)
        ends = ends[some]
        agreed = agreed[some]
    points, place = np.unique(ends, return_inverse=True)
    graph = AnswerGraph.from_answers(place.reshape(-1, 2), agreed, n_points=len(points))
    coarse = np.linspace(0.5, 0.999, 26)
    found = np.empty((len(_ERROR_RATES), len(coarse)))
    for row, rate in zip(found, _ERROR_RATES, strict=True):
        factors = FactorGraph.from_answers(graph, 2, rate)
        row[:] = [factors.propagate(np.log([a, 1 - a]), tol=1e-4, max_iter=50).value for a in coarse]
    return np.interp(grid, coarse, found.max(axis=0))


def _checked_decision(decision: ArrayLike, pairs: Pairs) -> Array:
    z = np.asarray(decision, dtype=np.float64)
    if z.shape != (pairs.n_rows,):
        raise InputError(f"`decision` has shape {z.shape}, but `y` has {pairs.n_rows} rows.")
    return z


def _in_natural_ratio(weight: Array, similar: Mask, prior: float) -> Array:
    """Weights of pairs, rescaled so that each kind has the share it has among random pairs."""
    for kind, share in ((similar, similar_share(prior)), (~similar, dissimilar_share(prior))):
        total = weight[kind].sum()
        if total > 0:
            weight = np.where(kind, weight * (share / total), weight)
    return weight


def cross_val_accuracy(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    prior: float | None = None,
    cv: Splitter = 5,
    confidence: float = 0.95,
) -> AccuracyEstimate:
    """Accuracy of an estimator by cross-validation on the answers it learns from.

    Every row gets the decision of a model that was fitted without its fold; then all answers are
    judged together.

    Parameters
    ----------
    estimator : estimator
        With ``fit`` and ``decision_function``; a copy is fitted for each fold.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,)
        Pair codes.
    sample_weight : array-like of shape (n_rows,), optional
        A weight per row, passed on to ``fit``; both ends of a pair carry one weight.
    prior : float, optional
        As in :func:`pair_accuracy`.
    cv : int or splitter, default=5
        Number of pair-safe folds, lowered where there are fewer pairs of a kind; or a splitter.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    AccuracyEstimate
        The estimate with its interval.

    See Also
    --------
    pair_accuracy : The accuracy of decisions that are there already.

    Examples
    --------
    >>> from sdulearn import PairLogisticRegression
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.metrics import cross_val_accuracy
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=200, n_unlabeled=500, prior=0.7, random_state=0)
    >>> found = cross_val_accuracy(PairLogisticRegression(), rows, codes)
    >>> bool(found.low < 0.9 < found.high)
    True
    """
    splitter = _folds(int(cv), np.asarray(y)) if isinstance(cv, Integral) else cv
    reference = _fitted(estimator, X, y, sample_weight).decision_function(X)
    decision = held_out_decisions(estimator, X, y, reference, sample_weight=sample_weight, cv=splitter)
    return pair_accuracy(decision, y, sample_weight=sample_weight, prior=prior, confidence=confidence)


def held_out_decisions(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike,
    reference: Array,
    *,
    sample_weight: ArrayLike | None = None,
    cv: Splitter = 5,
) -> Array:
    """Decision value of every row by a model that has not seen it, named as the reference names the classes.

    Parameters
    ----------
    estimator : estimator
        A copy is fitted for each fold.
    X, y, sample_weight
        As in :func:`cross_val_accuracy`.
    reference : array of shape (n_rows,)
        Decision values of a model of all rows. Each fold may name the two classes either way; where
        its decisions point away from these, they are turned round.
    cv : int or splitter, default=5
        As in :func:`cross_val_accuracy`.

    Returns
    -------
    array of shape (n_rows,)
        Held-out decision values.
    """
    codes = np.asarray(y)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    splitter = _folds(int(cv), codes) if isinstance(cv, Integral) else cv
    decision = np.empty(len(codes))
    for train, test in splitter.split(X, codes):
        model = _fitted(estimator, safe_indexing(X, train), codes[train], None if weight is None else weight[train])
        z = model.decision_function(safe_indexing(X, test))
        decision[test] = z if z @ reference[test] >= 0 else -z
    return decision


def _folds(cv: int, codes: Codes) -> PairKFold:
    """As many folds as asked for, or as the rarer kind of pair allows."""
    counts = [n for n in (int(np.sum(codes > 0)) // 2, int(np.sum(codes < 0)) // 2) if n]
    if min(counts, default=0) < 2:
        raise InputError("Cross-validation needs at least two pairs of a kind. Add answers.")
    # Not the seed of the estimators' own folds: a penalty chosen on these folds would flatter
    # itself.
    return PairKFold(min([cv, *counts]), random_state=1)


def _fitted(estimator: Estimator, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Estimator:
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    # Folds are turned to one reference, so which class they call +1 does not matter.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrientationWarning)
        return clone(estimator).fit(X, y, **weights)


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

    It is not clipped: on few pairs it may be negative or exceed 1, and that is what ranks models
    rightly.

    Parameters
    ----------
    decision : array-like of shape (n_rows,)
        Values of the decision function.
    y : array-like of shape (n_rows,)
        Pair codes.
    prior : float
        P(y = +1), not 1/2.
    loss : str or object with ``value(z, t)``, default="zero_one"
        Any loss; with "zero_one" the result estimates the error rate.
    risk : str or triple, default="sd"
        Which unbiased risk: "su", "du", "sd", "sdsu", "sddu", "sudu", or weights (su, du, sd).
    gamma : float, default=0.5
        Mixture weight of the three mixed risks.
    sample_weight : array-like of shape (n_rows,), optional
        A weight per row; both ends of a pair carry one weight.

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
    pairs = read_pairs(y)
    z = _checked_decision(decision, pairs)
    weight = None
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
        pairs.pair_weights(weight)
    g = mixture(risk, gamma)
    return float(marginal_risk(z, sources(pairs.codes), g, check_prior(prior), get_loss(loss), weight))


def pair_log_likelihood(estimator: Estimator, X: MatrixLike, y: ArrayLike) -> float:
    """Mean log-probability that a fitted estimator gives to the answers: a scorer that works at any prior.

    Pass it as ``scoring`` to ``GridSearchCV`` or ``cross_val_score``.

    Parameters
    ----------
    estimator : fitted estimator
        With ``predict_proba``.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,)
        Pair codes; at least one pair.

    Returns
    -------
    float
        Mean log-likelihood of an answer; the larger the better, never above 0.

    See Also
    --------
    pair_accuracy : The estimated share of right predictions.
    """
    pairs = read_pairs(y)
    if not len(pairs.ends):
        raise InputError("The likelihood of answers needs pairs, and `y` marks none.")
    p = np.asarray(estimator.predict_proba(X))[:, 1]
    first, second = p[pairs.ends[:, 0]], p[pairs.ends[:, 1]]
    same = first * second + (1 - first) * (1 - second)
    chance = np.where(pairs.similar, same, 1 - same)
    return float(np.mean(np.log(np.maximum(chance, np.finfo(float).tiny))))
