"""Accuracy, class shares and advice while questions are chosen by a model.

Questions that the model chose say nothing about all points. The beginning of the random order does, each point of it
judged by a model that was fitted without it. Whether a point of it was asked about as a random one or had been chosen
before makes no difference: which points belong to the sample is not the model's choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdulearn.asking.designs import sample_size
from sdulearn.asking.scorer import Scorer, deal_folds
from sdulearn.asking.state import HELD_OUT_FOLDS, State
from sdulearn.errors import UndeterminedError
from sdulearn.metrics import AccuracyEstimate
from sdulearn.prior import clopper_pearson, share_of
from sdulearn.types import Array, Indices

# Fewer random points than this say nothing.
LEAST_SAMPLE = 4
NEXT_ANSWERS = 50
# A gain of half a percentage point is worth fifty questions.
WORTHWHILE_GAIN = 0.005


@dataclass(frozen=True)
class Advice:
    """Whether more answers are worth it.

    Attributes
    ----------
    n_answers : int
        Answers so far.
    n_next : int
        The number of further answers that ``expected_gain`` is about.
    expected_gain : float
        Expected gain in accuracy, from what the second half of the answers brought.
    last_gain : float
        What the second half brought, by the probabilities of the model of all answers.
    worth_going_on : bool
        Whether the expected gain is half a percentage point or more.
    """

    n_answers: int
    n_next: int
    expected_gain: float
    last_gain: float
    worth_going_on: bool


@dataclass(frozen=True)
class ClassFound:
    """A class that the answers found.

    Attributes
    ----------
    number : int
        Number of the class, from 1, the largest first.
    n_points : int
        Points known to be in it.
    share, low, high : float
        Its share of all points, by the random ones among those asked about, with its interval; NaN without any.
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
    sample = state.points.order[: sample_size(state)]
    return np.flatnonzero(np.isin(state.known, sample))


def linked_accuracy(state: State, confidence: float) -> AccuracyEstimate:
    """Accuracy by the random sample, each point judged by a model that was fitted without it.

    The interval is exact for a random sample. Questions are chosen near points that surprised the model, so that
    these are judged by models which know their neighbourhood well: on the benchmark sets the estimate is about a
    point too high.

    Where answers may be wrong, a point is of the predicted class with some probability by the answers about it, and
    :func:`sdulearn.prior.share_of` allows for that, with any number of classes.
    """
    sample = random_sample(state)
    n_classes = len(state.numbers)
    if len(sample) < LEAST_SAMPLE or n_classes < 2:
        raise UndeterminedError(
            f"An accuracy needs {LEAST_SAMPLE} random points and two classes; there are {len(sample)} and "
            f"{n_classes}. Answer more questions."
        )
    predicted = held_out_columns(state, sample)
    agrees = predicted == state.column[sample]
    told = chance_by_answers(state, sample) if state.error else np.eye(n_classes)[state.column[sample]]
    value, low, high = share_of(told, predicted, confidence)
    return AccuracyEstimate(
        value,
        low,
        high,
        agreement=float(agrees.mean()),
        n_answers=len(agrees),
        confidence=confidence,
        majority=float(np.bincount(state.column[sample]).max() / len(sample)),
        basis="random questions",
    )


def held_out_columns(state: State, sample: Indices) -> Indices:
    """The class of each point of the sample, as a column, by a model that was fitted without it."""
    predicted = np.zeros(len(sample), dtype=np.intp)
    fold = deal_folds(len(sample), min(HELD_OUT_FOLDS, len(sample)), seed=1)
    for k in range(int(fold.max()) + 1):
        test = state.known[sample[fold == k]]
        predicted[fold == k] = state.fit(test).log_probabilities(test).argmax(axis=1)
    return predicted


def chance_by_answers(state: State, sample: Indices) -> Array:
    """Probability of each class of the sample's points by the answers: before these, all are equally likely."""
    assert state.scorer is not None
    log_p = state.scorer.log_probabilities(state.known)
    log_p[sample] = -np.log(len(state.numbers))
    return state.factors(state.error).propagate(log_p, tol=1e-4, max_iter=30).posteriors[sample]


def class_table(state: State, confidence: float, n_examples: int = 6) -> list[ClassFound]:
    """The classes, the one with most random points first."""
    sample = random_sample(state)
    drawn = np.bincount(state.column[sample], minlength=len(state.numbers))
    size = np.bincount(state.column, minlength=len(state.numbers))
    found = []
    for number, k in enumerate(class_order(state), start=1):
        rest = len(sample) - int(drawn[k])
        low, high = clopper_pearson(int(drawn[k]), rest, confidence) if len(sample) else (np.nan, np.nan)
        share = float(drawn[k] / len(sample)) if len(sample) else np.nan
        found.append(ClassFound(number, int(size[k]), share, low, high, _nearest(state, int(k), n_examples)))
    return found


def class_order(state: State) -> Indices:
    """Columns of the classes, that with most random points first, then that with most points."""
    n_classes = len(state.numbers)
    drawn = np.bincount(state.column[random_sample(state)], minlength=n_classes)
    size = np.bincount(state.column, minlength=n_classes)
    return np.lexsort((np.arange(n_classes), -size, -drawn))


def _nearest(state: State, column: int, n: int) -> tuple[int, ...]:
    members = state.known[state.column == column]
    coordinates = state.points.coordinates(members)
    distance = np.linalg.norm(coordinates - coordinates.mean(axis=0), axis=1)
    return tuple(members[np.argsort(distance, kind="stable")[:n]].tolist())


def advise(now: State, half: State) -> Advice:
    """What the second half of the answers brought, and what that says of the next ones.

    If the error falls like c + b / n, the second half of n answers brought b / n, and m more bring
    b / n - b / (n + m) = (b / n) m / (n + m).
    """
    n = len(now.records)
    gain = 1.0
    if now.scorer is not None:
        gain = _gain_by(now, now.scorer, half)
    expected = gain * NEXT_ANSWERS / (n + NEXT_ANSWERS)
    return Advice(n, NEXT_ANSWERS, expected, gain, expected >= WORTHWHILE_GAIN)


def _gain_by(now: State, scorer: Scorer, half: State) -> float:
    """Accuracy on the candidates beyond that of half of the answers, by the probabilities of the model of all."""
    p: Array = np.exp(scorer.of_candidates)
    best = p.max(axis=1)
    if half.scorer is None:
        return float(np.mean(best) - p.mean(axis=0).max())
    column = {number: k for k, number in enumerate(now.numbers)}
    # A class of the first half may have been merged since.
    renamed = np.array([column.get(number, 0) for number in half.numbers])
    before = renamed[half.scorer.of_candidates.argmax(axis=1)]
    return float(np.mean(best - p[np.arange(len(p)), before]))
