"""Audit the predictions of any classifier by answers about random rows.

Two classes and random pairs: see :func:`~sdulearn.metrics.pair_accuracy`. Rows that were compared with examples fall
into groups without names, so the groups g are matched one to one with the predicted classes h:

    m = argmax of  sum_i 1[m(g_i) = h_i]                                                        (1)

Each row takes part in choosing m, so the share of hits is optimistic. Where m is chosen without the row, it is
pessimistic. The interval reaches from that of the pessimistic share to that of the optimistic one. If an answer is
wrong with probability e, and then about any other class, the accuracy a follows from the share of hits:

    P(hit) = a (1 - e) + (1 - a) e / (K - 1)                                                    (2)

Two classifiers are compared on the same rows (Agresti and Min, Statistics in Medicine 24, 2005: half a row is added to
each cell of the table of hits). For random pairs, with u = 2 a - 1 and agreement s,

    a - a' = (s - s') / ((1 - 2 e) (u + u'))                                                    (3)
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest, norm

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.checks import known_answers
from sdulearn.answers.graph import AnswerGraph, connect, first_by
from sdulearn.answers.records import Answers, random_ends, some_answers
from sdulearn.answers.y import SIMILAR, is_known
from sdulearn.dependence import design_effect
from sdulearn.errors import InputError, listed, quoted
from sdulearn.metrics.accuracy import pair_accuracy
from sdulearn.metrics.classes import Share, class_agreement
from sdulearn.pairing import LEVEL
from sdulearn.prior import ErrorRates, check_confidence, classes_by_answers, clopper_pearson, mean_error, without_errors
from sdulearn.types import Array, Count, Indices, Mask, Probability

Basis: TypeAlias = Literal["random pairs", "random questions", "labels"]
PAIRS: Basis = "random pairs"
EXAMPLES: Basis = "random questions"
LABELS: Basis = "labels"
Predictions: TypeAlias = Mapping[Any, Hashable] | ArrayLike

# Columns of pandas with gaps hold whole numbers as 1.0.
_WHOLE = re.compile(r"^(-?\d+)\.0+$")
# Predictions that agree with answers little more often than by chance have no difference by equation (3).
_MIN_SIGNAL = 0.1


@dataclass(frozen=True)
class Difference:
    """How much more accurate the first predictions are than the second, with its interval.

    Attributes
    ----------
    value, low, high : float
        Difference of the accuracies; of the agreements if no accuracy is identified. NaN, from -1 to 1, if
        nothing is known.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.value != self.value:
            return "unknown"
        return f"{100 * self.value:+.1f} percentage points ({100 * self.low:+.1f} to {100 * self.high:+.1f})"


@dataclass(frozen=True)
class Audit:
    """The accuracy of predictions, from answers that were not used to make them.

    Attributes
    ----------
    accuracy : Share or None
        Share of rows like the random ones that are predicted correctly; None if the answers do not identify it.
    basis : {"random pairs", "random questions", "labels", None}
        What the accuracy rests on: pairs of random rows of two classes, random rows compared with examples, or labels.
    agreement, always_different : Share or None
        Share of the answers that the predictions agree with, and share that are "different": what predictions without
        any two rows of one class would agree with. None with labels.
    n_classes : int
        Number of classes, in the predictions or in the answers, whichever has more.
    n_rows, n_missing, n_unsure : int
        Rows of the answers that have a prediction, and that have none; answers "unsure", which do not count.
    confidence : float
        Level of the intervals.
    compared : Audit or None
        The audit of the second predictions.
    difference : Difference or None
        The first predictions compared with the second, on the rows that both have.
    """

    accuracy: Share | None
    basis: Basis | None
    agreement: Share | None
    always_different: Share | None
    n_classes: Count
    n_rows: Count
    n_missing: Count
    n_unsure: Count
    confidence: Probability
    compared: Audit | None = None
    difference: Difference | None = None

    def __str__(self) -> str:
        accuracy = "unknown" if self.accuracy is None else f"{self.accuracy}, by {self.basis}"
        parts = [f"accuracy {accuracy}"]
        if self.agreement is not None:
            parts.append(f'agreement with answers {self.agreement}, "always different" {self.always_different}')
        return "; ".join(parts)

    def misses(self, floor: float) -> bool:
        """Return whether the accuracy is certainly below a limit: its whole interval is below it.

        Parameters
        ----------
        floor : float
            The least accuracy that is acceptable.

        Returns
        -------
        bool
            Also False if there is no accuracy, only an agreement.
        """
        return self.accuracy is not None and self.accuracy.high < floor


def audit_predictions(
    predicted: Predictions,
    answers: Answers | Mapping[Any, Hashable],
    *,
    compare: Predictions | None = None,
    error_rate: ErrorRates = None,
    confidence: float = 0.95,
) -> Audit:
    """Accuracy of any classifier's predictions, from answers that were not used to train it.

    Parameters
    ----------
    predicted : mapping, Series or array-like
        The predicted class of each row: by id, or in the order of rows numbered from 0. Classes may have any names; a
        row whose class is None or NaN has no prediction.
    answers : Answers, mapping or Series
        Answers about random rows, from :func:`~sdulearn.answers.read_answers`; or labels by id.
    compare : mapping, Series or array-like, optional
        Predictions of a second classifier, for the difference of the two.
    error_rate : float, mapping or AnswerModel, optional
        Probability that an answer is wrong, as in :func:`pair_accuracy`. By default it is estimated from repeated
        questions and contradictions; without any, the interval allows for rates up to 0.3. Labels are
        assumed to be right.
    confidence : float, default=0.95
        Level of the intervals.

    Returns
    -------
    Audit
        The accuracy with its interval, if the answers identify it: with two classes from pairs of random rows (which
        cannot distinguish a classifier from its mirror image), with any number from random rows that were compared with
        examples, or from labels. Always the agreement with the answers, beside that of "always different".

    Raises
    ------
    InputError
        If no answer is about rows that have predictions.

    Examples
    --------
    >>> from sdulearn.metrics import audit_predictions
    >>> predicted = {"a": "spam", "b": "ham", "c": "ham", "d": "spam"}
    >>> print(audit_predictions(predicted, {"a": "spam", "b": "ham", "c": "spam"}).accuracy)
    66.7% (9.4% to 99.2%)
    """
    check_confidence(confidence)
    first = _by_id(predicted, "predicted")
    result = _audit(first, answers, error_rate, confidence)
    if compare is None:
        return result
    second = _by_id(compare, "compare")
    difference = _compare(first, second, answers, error_rate, confidence)
    return replace(result, compared=_audit(second, answers, error_rate, confidence), difference=difference)


def _by_id(values: Any, name: str) -> dict[str, str]:
    """Return classes by id, both as text and 1.0 as 1, without rows that have none."""
    values = values if hasattr(values, "items") else np.asarray(values)
    if len(shape := getattr(values, "shape", (0,))) != 1:
        raise InputError(f"`{name}` has shape {shape}: give one class for each row, or a mapping of ids.")
    by_id: dict[str, str] = {}
    for key, value in values.items() if hasattr(values, "items") else enumerate(values.tolist()):
        text = _WHOLE.sub(r"\1", str(value))
        if is_known(value) and by_id.setdefault(str(key), text) != text:
            raise InputError(f"`{name}` has two classes for {quoted(str(key))}. Give one class for each id.")
    return by_id


def _audit(
    predicted: dict[str, str], answers: Answers | Mapping[Any, Hashable], error_rate: ErrorRates, confidence: float
) -> Audit:
    """Audit one classifier."""
    if not isinstance(answers, Answers):
        return _audit_by_labels(predicted, _by_id(answers, "answers"), confidence)
    sample = _Sample(answers, predicted)
    model = sample.answer_model(error_rate)
    agreement = class_agreement(sample.codes[sample.graph.row_point], sample.graph, confidence=confidence).agreement
    n_different = sample.graph.weights[sample.graph.same < 0].sum() / sample.graph.weights.sum() * agreement.n
    ends = clopper_pearson(n_different, agreement.n - n_different, confidence)
    different = Share(float(n_different / agreement.n), *ends, agreement.n)
    accuracy, basis = None, None
    if (groups := _groups(answers, model)) is not None:
        hits = _Hits(predicted, groups)
        if len(hits.matched):
            accuracy, basis = _accuracy_of_hits(hits, sample.errors(model), sample.n_classes, confidence), EXAMPLES
    elif sample.n_classes == 2:
        estimate = pair_accuracy(sample.decision, sample.graph, error_rate=model, confidence=confidence)
        accuracy, basis = Share(estimate.value, estimate.low, estimate.high, float(estimate.n_answers)), PAIRS
    return Audit(
        accuracy, basis, agreement, different, sample.n_classes, len(sample.ids), sample.n_missing, answers.n_unsure,
        confidence,
    )  # fmt: skip


def _audit_by_labels(predicted: dict[str, str], labels: dict[str, str], confidence: float) -> Audit:
    hits = _Hits(predicted, labels)
    if not len(hits.matched):
        raise _no_row_is_predicted(predicted, list(labels))
    n_missing = len(labels) - len(hits.matched)
    n_classes = max(len(set(predicted.values())), len(set(labels.values())))
    accuracy = _accuracy_of_hits(hits, [0.0], n_classes, confidence)
    return Audit(accuracy, LABELS, None, None, n_classes, len(hits.matched), n_missing, 0, confidence)


class _Sample:
    """The answers about two rows that both have a prediction."""

    def __init__(self, answers: Answers, predicted: dict[str, str]) -> None:
        kept = np.array([a in predicted and b in predicted for a, b in answers.ids.tolist()], dtype=bool)
        self.graph, _ = known_answers(some_answers(answers, kept))
        every = dict.fromkeys(answers.ids.ravel().tolist())
        if not self.graph.n_answers:
            raise _no_row_is_predicted(predicted, list(every))
        self.ids = list(dict.fromkeys(answers.ids[kept].ravel().tolist()))
        self.n_missing = sum(key not in predicted for key in every)
        _, self.codes = np.unique([predicted[key] for key in self.ids], return_inverse=True)
        self.codes = self.codes + 1
        self.n_classes = max(2, len(set(predicted.values())), answers.n_classes or 0, 2 + _more_than_two(self.graph))

    @property
    def decision(self) -> Array:
        """The predictions of two classes, by row of the graph."""
        return np.where(self.codes == 1, -1.0, 1.0)[self.graph.row_point]

    def answer_model(self, error_rate: ErrorRates) -> AnswerModel:
        """How often the answers are wrong."""
        if error_rate is None:
            return AnswerModel.estimate(self.graph, self.n_classes)
        return error_rate if isinstance(error_rate, AnswerModel) else AnswerModel.given(error_rate, self.graph)

    def errors(self, model: AnswerModel) -> list[float]:
        """Mean error rate of the answers, and the ends of its interval where it is not known."""
        return [mean_error(one, self.graph, self.graph.weights) for one in model.plausible()]


def _more_than_two(graph: AnswerGraph) -> bool:
    """Return whether fewer pairs are of one class than with two classes."""
    # Answers that share points are not independent: two points count as one answer at most. With two classes at least
    # half of all random pairs are of one class.
    n = min(graph.n_answers, int(np.count_nonzero(graph.degree)) // 2)
    return binomtest(round(n * float(np.mean(graph.same > 0))), n, 0.5, "less").pvalue < LEVEL


def _no_row_is_predicted(predicted: dict[str, str], ids: list[str]) -> InputError:
    examples = f"Ids there: {listed(ids, 3)}. Ids of predictions: {listed(predicted, 3)}."
    return InputError(f"No answer is about rows that all have a prediction, so there is nothing to audit. {examples}")


def _groups(answers: Answers, model: AnswerModel) -> dict[str, int] | None:
    """Return the group, by answers alone, of each random row that was compared with examples; None with pairs."""
    graph, used = known_answers(answers)
    marked = random_ends(answers, graph.ends, used)
    if answers.questions is None and marked is None:
        return None
    if answers.questions is None:
        # Two classes: the sides of the component of each row, by a class for its centre.
        centre = first_by(graph.component, -graph.degree)
        labels = np.where(np.isin(np.arange(graph.n_points), centre), 1, 0)
        side = classes_by_answers(graph.with_values(labels=labels), model).argmax(axis=1)
        group = 2 * graph.component + side
    else:
        group = connect(graph.ends[graph.same == SIMILAR], graph.n_points)
    drawn = np.zeros(graph.n_points, dtype=bool)
    drawn[graph.ends[:, 0] if marked is None else graph.ends[marked]] = True
    ids = list(dict.fromkeys(answers.ids.ravel().tolist()))
    return {ids[k]: int(group[k]) for k in np.flatnonzero(drawn)}


class _Hits:
    """Rows whose predicted class is that of their group: equation (1), or by name where groups are labels."""

    def __init__(self, predicted: dict[str, str], groups: Mapping[str, Hashable]) -> None:
        self.ids = [key for key in groups if key in predicted]
        classes, column = np.unique([predicted[key] for key in self.ids], return_inverse=True)
        names, row = np.unique([str(groups[key]) for key in self.ids], return_inverse=True)
        if isinstance(next(iter(groups.values()), 0), str) and len(np.intersect1d(names, classes)):
            self.matched = self.alone = names[row] == classes[column]
            return
        counts = np.zeros((len(names), len(classes)))
        np.add.at(counts, (row, column), 1.0)
        self.matched = _matching(counts)[row] == column
        # Rows of one cell have the same matching without them.
        alone = np.zeros(counts.shape, dtype=bool)
        for g, h in np.argwhere(counts > 1).tolist():
            counts[g, h] -= 1
            alone[g, h] = _matching(counts)[g] == h
            counts[g, h] += 1
        self.alone = alone[row, column]


def _matching(counts: Array) -> Indices:
    """Return the column that each row is matched with, -1 for none."""
    column = np.full(len(counts), -1)
    rows, columns = linear_sum_assignment(-counts)
    column[rows] = columns
    return column


def _accuracy_of_hits(hits: _Hits, errors: list[float], n_classes: int, confidence: float) -> Share:
    """Return the accuracy by equation (2), over the error rates that are plausible; the first is the likeliest."""
    n = len(hits.matched)
    least, most = int(hits.alone.sum()), int(hits.matched.sum())
    low, _ = clopper_pearson(least, n - least, confidence)
    _, high = clopper_pearson(most, n - most, confidence)
    value = float(without_errors((least + most) / (2 * n), errors[0], n_classes))
    # With equation (2) the accuracy rises with the rate, if hits are more than chance.
    ends = [[float(without_errors(end, error, n_classes)) for error in errors] for end in (low, high)]
    return Share(value, min(value, *ends[0]), max(value, *ends[1]), float(n))


def _compare(
    first: dict[str, str],
    second: dict[str, str],
    answers: Answers | Mapping[Any, Hashable],
    error_rate: ErrorRates,
    confidence: float,
) -> Difference:
    """Compare two classifiers on the rows that both predict."""
    common = first.keys() & second.keys()
    first, second = ({key: one[key] for key in one if key in common} for one in (first, second))
    if not isinstance(answers, Answers):
        labels = _by_id(answers, "answers")
        hits = [_Hits(one, labels).matched for one in (first, second)]
        return _difference(hits, 1.0, confidence)
    samples = [_Sample(answers, one) for one in (first, second)]
    graph, n_classes = samples[0].graph, max(sample.n_classes for sample in samples)
    model = samples[0].answer_model(error_rate)
    errors = samples[0].errors(model)
    if (groups := _groups(answers, model)) is not None:
        matched = [_Hits(one, groups).matched for one in (first, second)]
        scale = [1 / (1 - error * n_classes / (n_classes - 1)) for error in errors]
        return _widest([_difference(matched, factor, confidence) for factor in scale])
    agrees = []
    for sample in samples:
        a, b = sample.codes[graph.ends].T
        agrees.append((a == b) == (graph.same > 0))
    effect = design_effect(agrees[0] - 1.0 * agrees[1], graph.ends)
    if n_classes > 2:
        return _difference(agrees, 1.0, confidence, effect)
    signal = float(sum(np.sqrt(max(0.0, 2 * agree.mean() - 1)) for agree in agrees))
    if signal < _MIN_SIGNAL:
        return Difference(float("nan"), -1.0, 1.0)
    # Equation (3), with u from the agreement: u = sqrt((2 s - 1) / (1 - 2 e)).
    scale = [1 / (signal * np.sqrt(1 - 2 * error)) for error in errors]
    return _widest([_difference(agrees, factor, confidence, effect) for factor in scale])


def _difference(hits: Sequence[Mask], scale: float, confidence: float, effect: float = 1.0) -> Difference:
    """Return the difference of two shares of the same rows; ``effect``: rows that are as precise as one."""
    a, b = hits
    n = len(a) / effect
    only_a, only_b = (float(np.sum(one)) / effect for one in (a & ~b, b & ~a))
    centre = (only_a - only_b) / (n + 2)
    error = np.sqrt(only_a + only_b + 1 - (only_a - only_b) ** 2 / (n + 2)) / (n + 2)
    margin = float(norm.isf((1 - confidence) / 2) * error)
    ends = np.clip(scale * np.array([(only_a - only_b) / n, centre - margin, centre + margin]), -1, 1)
    return Difference(*ends.tolist())


def _widest(differences: list[Difference]) -> Difference:
    """Return the first difference, with an interval around all."""
    ends = min(one.low for one in differences), max(one.high for one in differences)
    return Difference(differences[0].value, *ends)
