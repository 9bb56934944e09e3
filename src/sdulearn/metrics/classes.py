"""Agreement of predicted classes with answers, for any number of classes.

Predicted classes agree with an answer or not, whatever the classes are called. The share of *right* predictions needs
names, from labels or from groups of points that are large enough to be one class each: with ten classes, even
predictions at random agree with 82% of the answers to random questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from sdulearn.answers.answer_model import AnswerModel, crowd_probabilities, known_answer_model
from sdulearn.answers.graph import ENOUGH, AnswerGraph, distinct_groups
from sdulearn.dependence import design_effect, few_units, point_spread
from sdulearn.errors import InputError, listed
from sdulearn.prior import (
    ErrorRates,
    check_confidence,
    classes_by_answers,
    clopper_pearson,
    effective_number,
    no_answers,
    random_answers,
    share_of,
)
from sdulearn.types import Array, Between, Codes, Indices, Mask, Probability

Basis: TypeAlias = Literal["labels", "groups", "random questions", "crowd"]


@dataclass(frozen=True)
class Share:
    """A share with its binomial interval.

    Attributes
    ----------
    value, low, high : float
        The share and its interval; NaN, from 0 to 1, if nothing was counted.
    n : float
        Number of independent counts of equal weight that are as precise.
    """

    value: Annotated[float, Between(0, 1, nan=True)]
    low: Probability
    high: Probability
    n: float

    def __str__(self) -> str:
        return "unknown" if self.value != self.value else f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"


@dataclass(frozen=True)
class AnswerCounts:
    """Number of answers of each kind for each pair of predicted classes.

    Attributes
    ----------
    classes : tuple of int
        The K predicted classes that occur.
    same, different : tuple of K tuples of K floats
        Weight of the answers of each kind about a point of one class and one of the other, in units
        of the mean answer. The tables are symmetric: an answer off the diagonal is in two places.
    """

    classes: tuple[int, ...]
    same: tuple[tuple[float, ...], ...]
    different: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        for table in (self.same, self.different):
            if [len(row) for row in table] != [len(self.classes)] * len(self.classes):
                raise InputError("Counts of answers are not a square of the classes.")


@dataclass(frozen=True)
class ClassAgreement:
    """Agreement of predicted classes with answers and labels.

    Attributes
    ----------
    agreement, same, different : Share
        Share of all answers, of the "same" and of the "different" ones, that the predicted classes agree with.
    accuracy : Share or None
        Share of correct predictions, if labels or answers identify it (see ``basis``).
    basis : {"labels", "groups", "random questions", "crowd", None}
        "labels": predictions of labelled points. "groups": of points in groups of ten or more that answers connect and
        call different, as many as predicted classes, by the best matching, which is optimistic by less than one in ten
        points of a group. "random questions": of points drawn at random, by the classes that labels or such groups give
        them; one group may be smaller, which has the class that the others leave. "crowd": of all points in answers, by
        the classes that contradictory answers of many people give them (:class:`~sdulearn.answers.AnswerModel`).
    confidence : float
        Level of the intervals. Those of agreements are for further questions about new points and
        the same hubs (:meth:`AnswerGraph.hubs <sdulearn.answers.AnswerGraph.hubs>`).
    counts : AnswerCounts or None
        The answers by the predicted classes of their points; None in reports of earlier versions.
    """

    agreement: Share
    same: Share
    different: Share
    accuracy: Share | None
    basis: Basis | None
    confidence: Probability
    counts: AnswerCounts | None = None

    def __str__(self) -> str:
        accuracy = "unknown" if self.accuracy is None else f"{self.accuracy}, by {self.basis}"
        parts = f'"same" {self.same}, "different" {self.different}'
        return f"agreement with answers {self.agreement}: {parts}; accuracy {accuracy}"


def class_agreement(
    y_pred: ArrayLike,
    y: ArrayLike | AnswerGraph,
    *,
    error_rate: ErrorRates = None,
    sample_weight: ArrayLike | None = None,
    random_points: ArrayLike | None = None,
    confidence: float = 0.95,
    spread: float = 1.0,
) -> ClassAgreement:
    """Compare predicted classes with answers and labels, for any number of classes.

    Parameters
    ----------
    y_pred : array-like of shape (n_rows,)
        Predicted classes: -1 and +1, or 1 to K; or probabilities of shape (n_rows, K), for the likeliest class.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 5)
        What is known about each row, and not known to the model; an UndeterminedError without answers and labels.
    error_rate, sample_weight, random_points, confidence, spread
        As in :func:`pair_accuracy`; the first for the accuracy by ``random_points``. With a spread above 1, that of
        folds, two points count as one answer at most.

    Returns
    -------
    ClassAgreement
        Agreement with the answers, and the accuracy if it is identified.

    Examples
    --------
    >>> from sdulearn.metrics import class_agreement
    >>> result = class_agreement([1, 1, 2, 3], [1, 1, -2, -2])
    >>> result.agreement.value, result.accuracy
    (1.0, None)
    """
    check_confidence(confidence)
    graph = AnswerGraph.from_y(y, sample_weight)
    if not graph.n_answers and not graph.labels.any():
        raise no_answers("An agreement")
    predicted = _class_of_points(y_pred, graph)
    counted, asked = random_answers(graph, random_points)
    accuracy, basis = _accuracy(graph, predicted, counted, error_rate, confidence, spread)
    first, second = predicted[graph.ends].T
    agrees = (first == second) == (graph.same > 0)
    # Hubs are the same in further questions: they are not random.
    ends = np.where(np.isin(graph.ends, graph.hubs()), -1, graph.units[graph.ends])
    ends[:, 1] = np.where(graph.within_cluster, -1, ends[:, 1])
    most = len(np.unique(graph.ends[asked])) / 2 if spread > 1 else np.inf
    if graph.clusters is not None:
        spread *= few_units(ends[asked], confidence, 2)
    agreement, same, different = (
        _share(agrees[kind], graph.weights[kind], confidence, spread, ends[kind], most)
        for kind in (asked, asked & (graph.same > 0), asked & (graph.same < 0))
    )
    return ClassAgreement(agreement, same, different, accuracy, basis, confidence, _counts(predicted, graph, asked))


def _class_of_points(predicted: ArrayLike, graph: AnswerGraph) -> Codes:
    """The class of each point: that of most of its rows, or the likeliest by their mean probability."""
    try:
        y_pred = np.asarray(predicted, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("`y_pred` must contain numbers of classes, -1 and +1 or 1 to K, or probabilities.") from None
    if y_pred.ndim == 2:
        graph.of_rows(y_pred[:, 0], "y_pred")
        K = y_pred.shape[1]
        names, chances = np.array([-1, 1]) if K == 2 else np.arange(1, K + 1), y_pred[graph.rows]
    else:
        names, column = np.unique(graph.of_rows(y_pred, "y_pred"), return_inverse=True)
        chances = np.eye(len(names))[column]
    if (names % 1 != 0).any():
        raise InputError(f"`y_pred` must have whole numbers of classes; got {listed(f'{name:g}' for name in names)}.")
    return names.astype(np.int64)[graph.by_point(chances).argmax(axis=1)]


def _share(
    hits: Mask, weight: Array, confidence: float, spread: float, ends: Indices | None = None, most: float = np.inf
) -> Share:
    """Share of the weight of some hits; ``ends`` are the points of each answer, which count as ``most`` answers."""
    total = float(weight.sum())
    if not total > 0:
        return Share(float("nan"), 0.0, 1.0, 0.0)
    value = float(weight @ hits) / total
    effective = effective_number(total, float(weight @ weight))
    if ends is not None:
        effective /= design_effect(weight * (hits - value), ends)
    n = min(effective, most) / spread
    return Share(value, *clopper_pearson(value * n, (1 - value) * n, confidence), n)


def _counts(predicted: Codes, graph: AnswerGraph, asked: Mask) -> AnswerCounts:
    """Count some answers by the predicted classes of their points."""
    names, column = np.unique(predicted, return_inverse=True)
    ends = np.sort(column[graph.ends], axis=1)
    tables = []
    for kind in (asked & (graph.same > 0), asked & (graph.same < 0)):
        counts = np.zeros((len(names), len(names)))
        np.add.at(counts, tuple(ends[kind].T), graph.weights[kind])
        tables.append(tuple(map(tuple, (counts + np.triu(counts, 1).T).tolist())))
    return AnswerCounts(tuple(names.tolist()), *tables)


def _accuracy(
    graph: AnswerGraph, predicted: Codes, counted: Mask | None, error_rate: ErrorRates, confidence: float, spread: float
) -> tuple[Share | None, Basis | None]:
    """The accuracy and its basis, by a crowd or where labels or large groups name the classes."""
    if counted is None and isinstance(error_rate, AnswerModel):
        by_crowd = crowd_probabilities(error_rate, graph)
        if by_crowd is not None:
            _check_names(predicted)
            return _counted_share(graph, by_crowd, predicted - 1, graph.degree > 0, confidence, spread), "crowd"
    labelled = bool(graph.labels.any())
    names = graph.labels if labelled else _names_of_groups(graph, predicted, counted is not None)
    if names is None or (counted is not None and not counted.any()):
        return None, None
    if labelled or counted is not None:
        _check_names(predicted, names[names != 0])
    if counted is None:
        inside = names != 0
        hits = names[inside] == predicted[inside]
        clusters = None if graph.clusters is None else graph.clusters[inside]
        spread *= point_spread(hits - hits.mean(), clusters, confidence)
        return _share(hits, graph.point_weights[inside], confidence, spread), "labels" if labelled else "groups"
    two = bool((predicted < 0).any() or (names < 0).any())
    # Classes 1 to K are more than two, even if only two of them are predicted.
    n_classes = 2 if two else int(max(3, names.max(), predicted.max()))
    column = (predicted > 0).astype(np.intp) if two else predicted - 1
    model = known_answer_model(error_rate, graph)
    chances = classes_by_answers(graph.with_values(labels=names), model, n_classes)
    return _counted_share(graph, chances, column, counted, confidence, spread), "random questions"


def _check_names(*classes: Codes) -> None:
    """Refuse predictions that could not be right, as their classes have other names than those of labels."""
    names = np.unique(np.concatenate(classes)).tolist()
    if names[0] < 1 and names not in ([-1], [-1, 1]):
        shown = listed(map(str, names))
        raise InputError(f"Classes are -1 and +1, or 1 to K, in `y_pred` as in the labels of `y`; got {shown}.")


def _counted_share(
    graph: AnswerGraph, chances: Array, column: Indices, counted: Mask, confidence: float, spread: float
) -> Share:
    """Share of the counted points whose class is that of a column, by class probabilities."""
    if graph.clusters is not None:
        hits = chances[counted, column[counted]]
        spread *= point_spread(hits - hits.mean(), graph.clusters[counted], confidence)
    value, low, high = share_of(chances[counted], column[counted], confidence, spread)
    return Share(value, low, high, float(counted.sum()) / spread)


def _names_of_groups(graph: AnswerGraph, predicted: Codes, by_elimination: bool) -> Codes | None:
    """The class that the large group of each point matches best, else 0; None with too few groups.

    ``by_elimination``, one group may be small: it has the class that the others leave, whatever was predicted for it.
    """
    # The best of all matchings of small groups would be too optimistic.
    groups = distinct_groups(graph, ENOUGH)
    every = np.unique(predicted)
    rest = np.empty(0, dtype=np.intp)
    if by_elimination and 2 <= len(groups) == len(every) - 1:
        distinct = distinct_groups(graph, 1)
        rest = np.setdiff1d(distinct, groups) if len(distinct) == len(every) else rest
    if len(groups) + (len(rest) == 1) < max(2, len(every)):
        return None
    inside = np.isin(graph.group, groups)
    _, row = np.unique(graph.group[inside], return_inverse=True)
    classes, column = np.unique(predicted[inside], return_inverse=True)
    counts = np.zeros((len(groups), len(classes)))
    np.add.at(counts, (row, column), 1.0)
    matched, columns = linear_sum_assignment(-counts)
    name = np.zeros(len(groups), dtype=np.int64)
    name[matched] = classes[columns]
    name[name == 0] = classes.max() + 1 + np.arange(len(groups) - len(matched))
    names = np.zeros(graph.n_points, dtype=np.int64)
    names[inside] = name[row]
    if len(rest):
        left = np.setdiff1d(every, name)
        if len(left) > 1:
            return None
        names[graph.group == rest[0]] = left[0]
    return names
