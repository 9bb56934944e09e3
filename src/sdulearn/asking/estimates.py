"""Accuracy, class shares and advice while a model chooses the questions.

Questions that the model chose are no random sample of the points. The beginning of the random order
is one; each of its points is judged by a model that was fitted without it. The model chose some of
them before their turn, but it did not choose that they belong to the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sdulearn.asking.state import LEAST_ERROR, State
from sdulearn.errors import UndeterminedError
from sdulearn.joint.estimators import PairLogisticRegression
from sdulearn.metrics.accuracy import ENOUGH_RANDOM, AccuracyEstimate, fold_spread
from sdulearn.prior import PriorEstimate, clopper_pearson, share_of
from sdulearn.sklearn_private import check_feature_names
from sdulearn.types import Array, Indices, Rows

_EXAMPLES = 6
NEXT_ANSWERS = 50
# Error rates are known within these factors: mistakes that a poor model repeats pass for wrong answers.
_RATE_FACTORS = (0.75, 1.25)
# Fifty questions are worth a gain of half a percentage point, or an accuracy that is known within ten of them
# on each side.
WORTHWHILE_GAIN = 0.005
WIDE_INTERVAL = 0.2


class Advice(NamedTuple):
    """Gain in accuracy to be expected from more answers.

    Attributes
    ----------
    n_answers, n_next : int
        Number of answers so far, and number of further ones for ``expected_gain``.
    expected_gain, last_gain : float
        Expected gain in accuracy of the next answers, at most the error that is left; and the gain of
        the second half of the answers so far. Both are by the probabilities of the model.
    is_wide : bool
        Whether the 95% interval of the accuracy is wider than twenty percentage points, or not known.
    worth_going_on : bool
        Whether the expected gain is half a percentage point or more, or the interval is wide.
    """

    n_answers: int
    n_next: int
    expected_gain: float
    last_gain: float
    is_wide: bool
    worth_going_on: bool


class ClassFound(NamedTuple):
    """A class found by the answers.

    Attributes
    ----------
    number, n_points : int
        Number of the class, from 1, the largest first; number of points known to be in it.
    share, low, high : float
        Its share of all points, estimated from the random ones, with its interval; or NaN.
    examples : tuple of int
        Points near its centre, the nearest first.
    """

    number: int
    n_points: int
    share: float
    low: float
    high: float
    examples: tuple[int, ...]


def random_sample(state: State) -> Indices:
    """Positions in ``state.known`` of the points of the random sample."""
    return np.flatnonzero(np.isin(state.known, state.points.order[: state.n_sampled]))


def accuracy(now: State, stages: Sequence[State], confidence: float) -> AccuracyEstimate:
    """Estimate the accuracy of the model from the random sample."""
    return _by_folds(now, confidence) if now.is_binary else _by_stages(now, stages, confidence)


def _by_folds(state: State, confidence: float) -> AccuracyEstimate:
    """Judge each point by a model without it."""
    # About a percentage point too high: the model asked about the neighbours of points that surprised it.
    sample = random_sample(state)
    _refuse_few(len(sample), state.n_classes)
    spread = fold_spread(state.n_folds, len(sample) / len(state.known))
    return _estimate(state, sample, state.held_out[sample].argmax(axis=1), confidence, spread=spread)


def _refuse_few(n_sample: int, n_classes: int) -> None:
    if n_sample < ENOUGH_RANDOM or n_classes < 2:
        needed = f"An accuracy needs {ENOUGH_RANDOM} random points and 2 classes; there are {n_sample} and {n_classes}."
        raise UndeterminedError(needed, max(ENOUGH_RANDOM - n_sample, 0))


def _estimate(
    state: State, sample: Indices, predicted: Indices, confidence: float, *, spread: float = 1.0, gain: float = 0.0
) -> AccuracyEstimate:
    # Error rates of two classes are in the spread of the folds.
    factors = (1.0,) if state.is_binary or not state.error else (1.0, *_RATE_FACTORS)
    chances = [state.by_answers(factor)[sample] for factor in factors]
    if not state.error:
        # No answer contradicts another: if some are wrong, the model is right more often than it agrees with them.
        chances.append(state.at_most_wrong()[sample])
    values, lows, highs = zip(*(share_of(p, predicted, confidence, spread, gain) for p in chances), strict=True)
    interval = values[0], min(lows), max(highs)
    answered = state.known_class[sample]
    agreement = float(np.mean(predicted == answered))
    majority = float(np.bincount(answered).max() / len(answered))
    return AccuracyEstimate(*interval, agreement, len(answered), confidence, majority, "random questions")


def _by_stages(now: State, stages: Sequence[State], confidence: float) -> AccuracyEstimate:
    """Judge each point in two ways: mean value, and joint interval."""
    # Models without a point know no other point near it, as the design asked about none. The last stage before its
    # answer has no such gap but fewer answers: the gain of the model since then is added, by its own probabilities.
    sample = random_sample(now)
    asked = {one.left: k for k, one in reversed(list(enumerate(now.answers)))}
    turn = [asked.get(point, -1) for point in now.known[sample].tolist()]
    stage = np.searchsorted([len(one.answers) for one in stages], turn, side="right") - 1
    sample = sample[stage >= 0]
    stage = stage[stage >= 0]
    _refuse_few(len(sample), now.n_classes)
    earlier = np.empty(len(sample), dtype=np.intp)
    gain = np.empty(len(sample))
    for k in np.unique(stage):
        log_p = stages[k].log_probabilities(now.known[sample[stage == k]])
        earlier[stage == k] = now.columns_of(stages[k])[log_p.argmax(axis=1)]
        gain[stage == k] = _gain(now, stages[k])
    before = _estimate(now, sample, earlier, confidence, gain=float(gain.mean()))
    others = _estimate(now, sample, now.hold_out(sample).argmax(axis=1), confidence)
    low, high = min(before.low, others.low), max(before.high, others.high)
    return replace(others, value=(before.value + others.value) / 2, low=low, high=high)


def class_table(state: State, confidence: float) -> list[ClassFound]:
    """Return the classes, the one with most random points first."""
    drawn, size = _class_counts(state)
    n = int(drawn.sum())
    table = []
    for number, k in enumerate(class_order(state).tolist(), start=1):
        share = (np.nan, np.nan, np.nan)
        if n:
            share = (float(drawn[k] / n), *clopper_pearson(int(drawn[k]), n - int(drawn[k]), confidence))
        members = state.known[state.known_class == k]
        coordinates = state.points.coordinates(members)
        distance = np.linalg.norm(coordinates - coordinates.mean(axis=0), axis=1)
        examples = members[np.argsort(distance, kind="stable")[:_EXAMPLES]]
        table.append(ClassFound(number, int(size[k]), *share, tuple(examples.tolist())))
    return table


def class_order(state: State) -> Indices:
    """Return the classes, sorted by their numbers of random points, then of known points."""
    drawn, size = _class_counts(state)
    return np.lexsort((np.arange(len(size)), -size, -drawn))


def _class_counts(state: State) -> tuple[Indices, Indices]:
    """Numbers of random points and of known points in each class."""
    drawn = state.known_class[random_sample(state)]
    return np.bincount(drawn, minlength=state.n_classes), np.bincount(state.known_class)


def advise(now: State, half: State, accuracy: AccuracyEstimate | None) -> Advice:
    """Extrapolate the gain of the second half of the answers to the next ones."""
    # If the error falls like c + b / n, the second half of n answers gained b / n, and m more answers gain
    # b / n - b / (n + m) = (b / n) m / (n + m), at most the error that is left.
    n = len(now.answers)
    gain = error = 1.0
    if now.model is not None:
        gain = _gain(now, half)
        error = 1 - float(np.exp(now.of_candidates).max(axis=1).mean())
    expected = min(gain * NEXT_ANSWERS / (n + NEXT_ANSWERS), error)
    is_wide = accuracy is None or accuracy.high - accuracy.low > WIDE_INTERVAL
    return Advice(n, NEXT_ANSWERS, expected, gain, is_wide, is_wide or expected >= WORTHWHILE_GAIN)


def _gain(now: State, half: State) -> float:
    """Gain in accuracy on the candidates since an earlier state, by the probabilities of now."""
    p = np.exp(now.of_candidates)
    if half.model is None:
        before = np.full(len(p), p.mean(axis=0).argmax())
    else:
        before = now.columns_of(half)[half.of_candidates.argmax(axis=1)]
    return float(np.mean(p.max(axis=1) - p[np.arange(len(p)), before]))


def model_on_features(state: State, X: Rows) -> PairLogisticRegression:
    """Return the model for the columns as given, its classes ordered by size."""
    points = state.points
    order = class_order(state)
    model = copy(state.estimator)
    turn = (points.axes @ points.stretch(state.settings.power)) / points.scale[:, None]
    sharpness = state.settings.sharpness
    model.coef_ = sharpness * model.coef_ @ turn.T
    model.intercept_ = sharpness * model.intercept_ - model.coef_ @ points.mean
    model.covariance_power = max(state.settings.power, 0.0)
    model.n_features_in_ = model.coef_.shape[1]
    if len(order) > 2:
        model.coef_ = model.coef_[order]
        model.intercept_ = model.intercept_[order]
        model.class_shares_ = np.exp(state.of_candidates).mean(axis=0)[order]
    else:
        sign = 2.0 * order[0] - 1
        model.coef_ = sign * model.coef_
        model.intercept_ = sign * model.intercept_
        model.prior_ = _prior(state)
    check_feature_names(model, X, reset=True)
    return model


def _prior(state: State) -> PriorEstimate:
    """The share of the larger class among the random points."""
    larger = class_table(state, 0.95)[0]
    if np.isnan(larger.share):
        return PriorEstimate(0.5, 0.0, 1.0, False, n_similar=0.0, n_dissimilar=0.0)
    return PriorEstimate(larger.share, larger.low, larger.high, larger.low > 0.5, confidence=0.95)


def with_answers(state: State, probabilities: Array) -> Array:
    """Return class probabilities of all points by the model, with those of answered points by their answers, too."""
    order = class_order(state)
    order = order[::-1] if state.n_classes == 2 else order
    by_class = probabilities[:, np.argsort(order)]
    by_class[state.known] = state.posterior
    for point, out in state.classes.excluded.items():
        if point not in state.given_up:
            by_class[point, list(out)] *= max(state.error, LEAST_ERROR)
            by_class[point] /= by_class[point].sum()
    return by_class[:, order]
