"""What follows from the answers so far: classes, error rates, model.

It is a function of the answers alone: one that is taken back leaves no trace, and the next question can
be worked out for each answer that may come.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.model_selection import check_cv

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import Propagation
from sdulearn.asking.points import Points
from sdulearn.asking.records import PairTable, RowAnswer, annotator_numbers, as_pairs
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.types import Array, Codes, Estimator, Indices, Mask

# Doubtful answers are looked for even where none was found wrong.
LEAST_ERROR = 0.05
# Where an answer is wrong beyond doubt, and the error rate is not known.
LEAST_WRONG = 0.01
# Log probability of a class that a model does not know.
NEVER = -30.0
LEAST_KNOWN = 10
# One fit at a time: filters of warnings belong to the whole process.
_FITTING = RLock()


class Classes:
    """Which classes the answers have found, and which point is in which.

    Answers are read as they came, each question once, by the majority of its answers:

    - Examples that were given open the first classes, else the first choice of the first answer.
    - "Same" as a point of a class: in that class.
    - "Different" from points of some classes: not in these. Where the number of classes is known
      and all are found, the last one that is left follows.
    - Different from all classes: the point opens one, unless all are found.

    An answer that disagrees with those before it changes nothing here.
    """

    def __init__(self, limit: int | None, seeds: Sequence[Sequence[int]] = ()) -> None:
        self.limit = limit  # number of classes where it is known
        self.label: dict[int, int] = {}  # class of each point that is in one, by point
        # Points of each class as they were found, by the number of the class.
        self.members: dict[int, list[int]] = {}
        self.excluded: dict[int, set[int]] = {}  # classes that each point under way is not in
        self._waiting: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, points in enumerate(seeds):
            for point in points:
                self._join(point, number)

    @property
    def complete(self) -> bool:
        """Whether there are as many classes as there can be."""
        return self.limit is not None and len(self.members) >= self.limit

    def read(self, a: int, others: Sequence[int], answer: int) -> None:
        """Take in that a point is of the same class as others, or of that of none of them."""
        if not self.members:
            # The others are examples; new points come first.
            self._join(others[0], 0)
        if a not in self.label:
            if there := {self.label[b] for b in others if b in self.label}:
                self._place(a, there, answer)
            for b in others:
                if b not in self.label:
                    self._waiting[a].append((b, answer))
                    self._waiting[b].append((a, answer))
            return
        for b in others:
            if b not in self.label:
                self._place(b, {self.label[a]}, answer)

    def _place(self, point: int, numbers: set[int], answer: int) -> None:
        """An answer about a point of no class yet, and some classes."""
        out = self.excluded.setdefault(point, set())
        if answer > 0:
            self._join(point, min(numbers))
            return
        out |= numbers
        rest = [other for other in self.members if other not in out]
        if self.complete:
            if len(rest) == 1:
                self._join(point, rest[0])
        elif not rest:
            self._join(point, len(self.members))

    def _join(self, point: int, number: int) -> None:
        self.label[point] = number
        self.members.setdefault(number, []).append(point)
        self.excluded.pop(point, None)
        for other, answer in self._waiting.pop(point, ()):
            self.read(point, (other,), answer)


def read_classes(answers: Sequence[RowAnswer], limit: int | None, seeds: Sequence[Sequence[int]] = ()) -> Classes:
    """Classes from answers, beside points that are examples of them."""
    classes = Classes(limit, seeds)
    votes = count_votes(answers)
    first: dict[tuple[int, ...], RowAnswer] = {}
    for one in answers:
        if one.sign:
            first.setdefault(one.asked, one)
    for one in first.values():
        # A tie leaves the first answer standing.
        picked, _ = votes[one.asked].most_common(1)[0]
        if picked is None or len(one.choices) == 1:
            classes.read(one.left, one.choices, -1 if picked is None else 1)
        else:
            classes.read(one.left, (picked,), 1)
    return classes


def count_votes(answers: Sequence[RowAnswer]) -> dict[tuple[int, ...], Counter[int | None]]:
    """How often each choice was picked, or none, in the answers to each question."""
    votes: dict[tuple[int, ...], Counter[int | None]] = defaultdict(Counter)
    for one in answers:
        if one.sign:
            # Either point of a pair may be called the choice.
            votes[one.asked][one.picked if len(one.choices) > 1 or one.sign < 0 else one.asked[1]] += 1
    return votes


class Settings(NamedTuple):
    """How the model is fitted."""

    penalty: float  # beside the sum of losses
    power: float  # of the covariance in it
    errors: tuple[float, ...] = ()  # of annotators by their numbers, where match answers tell it
    sharpness: float = 1.0  # factor of the logits, where match answers tell it


class Fitted(NamedTuple):
    """A model, and which columns its classes are; None where one class alone is known."""

    model: Estimator | None
    columns: list[int]


@dataclass(frozen=True, eq=False)
class State:
    """The answers, and what they say."""

    N_FOLDS = 10  # in which known points are held out
    FIRST = Settings(1.5, 1.0)  # of the model until there are answers to choose by

    points: Points  # all points
    answers: tuple[RowAnswer, ...]  # the answers
    limit: int | None  # number of classes where it is known
    settings: Settings = FIRST  # of the model
    known_error: float | None = None  # error rate of the answers where it is known; None estimates it
    seeds: tuple[tuple[int, ...], ...] = ()  # points that are examples of the first classes
    before: State | None = None  # earlier answers, whose model a fit starts from

    @cached_property
    def classes(self) -> Classes:
        """Classes found, and who is in them."""
        return read_classes(self.answers, self.limit, self.seeds)

    @cached_property
    def numbers(self) -> list[int]:
        """Numbers of the classes, as the columns of all probabilities have them."""
        return sorted(self.classes.members)

    @cached_property
    def known(self) -> Indices:
        """Points that are in a class."""
        return np.array(list(self.classes.label), dtype=np.intp)

    @cached_property
    def column(self) -> Indices:
        """Column of the class of each known point."""
        place = {number: k for k, number in enumerate(self.numbers)}
        return np.array([place[number] for number in self.classes.label.values()], dtype=np.intp)

    def columns_of(self, before: State) -> Indices:
        """Column that each class of earlier answers has now, by its founder."""
        label = self.classes.label
        founders = [before.classes.members[number][0] for number in before.numbers]
        return np.array([self.numbers.index(label.get(point, self.numbers[0])) for point in founders])

    @cached_property
    def asked(self) -> set[int]:
        """All points in any question."""
        seeds = {point for points in self.seeds for point in points}
        return seeds | {point for one in self.answers for point in (one.left, *one.choices)}

    @cached_property
    def given_up(self) -> set[int]:
        """Points of no class about which somebody was unsure, or which no class is left for."""
        unsure = {point for one in self.answers if not one.sign for point in (one.left, *one.choices)}
        stuck = {point for point, out in self.classes.excluded.items() if out >= self.classes.members.keys()}
        return (unsure | stuck) - self.classes.label.keys()

    @cached_property
    def founders(self) -> dict[int, int]:
        """The first point of each class, which names it; of two classes that of the first alone."""
        # "Different" from it is the second one, and the founder of that may be wrong.
        numbers = self.numbers[:1] if self.limit == 2 else self.numbers
        return {number: self.classes.members[number][0] for number in numbers}

    @cached_property
    def trusted(self) -> set[int]:
        """Points that may stand for a class: founders, and those twice compared with one, alike."""
        # A wrong answer about one would spoil all that are compared with it.
        trusted = set(self.founders.values())
        votes = count_votes(self.answers)
        for one in self.answers:
            said = votes[one.asked]
            ends = {one.left, one.picked if one.picked is not None else one.right}
            if 2 * max(said.values(), default=0) - said.total() >= 2 and not trusted.isdisjoint(ends):
                trusted |= ends
        return trusted

    @cached_property
    def unconfirmed(self) -> list[RowAnswer]:
        """Answers that opened a class and are asked again; of two classes none."""
        return []

    @cached_property
    def kinds(self) -> Counter[str]:
        """Number of answers of each kind."""
        return Counter(one.kind for one in self.answers)

    @cached_property
    def n_sampled(self) -> int:
        """How many points of the random order have been asked about: they are a random sample."""
        asked = [one.left for one in self.answers if one.kind == "random"]
        return int(self.points.position[asked].max(initial=-1)) + 1

    @cached_property
    def pairs(self) -> PairTable:
        """All pairs that the answers tell something of."""
        return as_pairs(self.answers)

    @cached_property
    def _answer_model(self) -> AnswerModel:
        return AnswerModel.estimate(self._all_answers, 2)

    @cached_property
    def error_rates(self) -> dict[int, float]:
        """Share of the answers of each annotator that are wrong, by their numbers."""
        if self.known_error is not None or not self._has_contradictions:
            return dict.fromkeys(self.pairs.annotators.tolist(), self.known_error or 0.0)
        return {who: max(rate, LEAST_WRONG) for who, rate in self._answer_model.rates.items()}

    def error_of(self, annotator: str) -> float | None:
        """The same by name; None where the answers do not tell it."""
        number = annotator_numbers(self.answers).get(annotator, -1)
        if self.known_error is not None:
            return self.known_error
        rate = self._answer_model.by_annotator.get(number)
        return rate.value if rate is not None and rate.identified else None

    @cached_property
    def _has_contradictions(self) -> bool:
        """Whether answers contradict each other."""
        return bool(self._all_answers.contradictory.any())

    @cached_property
    def _all_answers(self) -> AnswerGraph:
        ends, signs, annotators, _ = self.pairs
        _, local = np.unique(ends, return_inverse=True)
        return AnswerGraph.from_answers(local.reshape(-1, 2), signs, annotators=annotators)

    @cached_property
    def error(self) -> float:
        """Share of all answers that are wrong."""
        if self.known_error is not None:
            return self.known_error
        annotators = self.pairs.annotators.tolist()
        return sum(self.error_rates[who] for who in annotators) / max(len(annotators), 1)

    @property
    def pair_error_rates(self) -> dict[int, float]:
        """Error rates of pairs in the model."""
        return self.error_rates

    @property
    def model(self) -> Estimator | None:
        """The model of all answers, in the axes of the points; None of a single class."""
        return self._of_all.model if len(self.numbers) > 1 else None

    @property
    def estimator(self) -> Estimator:
        """The same as an estimator of the library."""
        return self.model

    @cached_property
    def _of_all(self) -> Fitted:
        # Whoever needs a model while another thread prepares it waits for that.
        with _FITTING:
            return vars(self).get("_of_all") or self.fit(())

    def fit(self, left_out: Collection[int]) -> Fitted:
        """The model without answers about some points, and without classes unknown then."""
        # All known points name the classes where answers are right: that says no more than they do.
        naming = self.founders.values() if self.error else self.classes.label
        labelled = {point: self.classes.label[point] for point in naming if point not in left_out}
        numbers = sorted(set(labelled.values()))
        if self.error and len(self.numbers) == 2:
            numbers = self.numbers
        columns = [self.numbers.index(number) for number in numbers]
        if len(numbers) < 2:
            return Fitted(None, columns)
        points, y = self.rows(left_out, labelled, numbers)
        model = PairLogisticRegression(
            self.settings.penalty / len(np.unique(points)),
            covariance_power=0,
            n_classes=len(numbers),
            prior_strength=0,
            error_rate=self.pair_error_rates,
            # The points that name the classes say where each of them is.
            init="zero",
        )
        return Fitted(fit_quietly(model, self._stretched(self.points.coordinates(points)), y), columns)

    def rows(
        self, left_out: Collection[int], labelled: Mapping[int, int], numbers: Sequence[int]
    ) -> tuple[Indices, Codes]:
        """Points and ``y`` of the answers but those about some points, and of labelled points."""
        ends, signs, annotators, _ = self.pairs
        # A point that no class is left for would force one more.
        stuck = [point for point in self.given_up if point in self.classes.excluded]
        kept = ~np.isin(ends, [*left_out, *stuck]).any(axis=1)
        n = int(kept.sum())
        points = np.concatenate([ends[kept].ravel(), list(labelled)]).astype(np.intp)
        y = np.zeros((len(points), 4), dtype=np.int64)
        y[: 2 * n, 0] = np.repeat(signs[kept] * np.arange(1, n + 1), 2)
        y[:, 1] = points
        y[: 2 * n, 2] = np.repeat(annotators[kept], 2)
        y[2 * n :, 3] = [class_names(len(numbers))[numbers.index(number)] for number in labelled.values()]
        return points, y

    def _stretched(self, coordinates: Array) -> Array:
        """Coordinates in which the plain ridge is the penalty by the covariance of all points."""
        return coordinates @ self.points.stretch(self.settings.power)

    def log_probabilities(self, points: Indices) -> Array:
        """Logarithms of the probability of each class of some points, one column a class."""
        return self._log_probabilities(self.points.coordinates(points), self._of_all)

    @cached_property
    def of_candidates(self) -> Array:
        """The same of all candidates."""
        return self._log_probabilities(self.points.candidate_coordinates, self._of_all)

    def _log_probabilities(self, coordinates: Array, fitted: Fitted) -> Array:
        log_p = np.full((len(coordinates), len(self.numbers)), NEVER)
        log_p[:, fitted.columns] = 0.0
        if fitted.model is not None:
            decision = self.settings.sharpness * fitted.model.decision_function(self._stretched(coordinates))
            logits = decision if decision.ndim > 1 else np.outer(decision, [0, 1])
            log_p[:, fitted.columns] = log_softmax(logits, axis=1)
        return log_p

    @cached_property
    def held_out(self) -> Array:
        """Log probabilities of the classes of known points, by models without answers about them."""
        log_p = self.log_probabilities(self.known)
        places = np.flatnonzero(self.is_held_out)
        log_p[places] = self.by_others(places)
        return log_p

    def by_others(self, places: Indices) -> Array:
        """Log probabilities of the classes of some known points, in folds, the rest being known."""
        log_p = np.empty((len(places), len(self.numbers)))
        fold = np.random.default_rng(0).permutation(len(places)) % self.N_FOLDS
        for k in np.unique(fold):
            test = self.known[places[fold == k]]
            fitted = self.fit(test.tolist())
            log_p[fold == k] = self._log_probabilities(self.points.coordinates(test), fitted)
        return log_p

    @cached_property
    def is_held_out(self) -> Mask:
        """Known points that can be held out: no examples, where answers may be wrong."""
        examples = {point for one in self.answers for point in one.choices} | set(self.founders.values())
        return ~np.isin(self.known, list(examples) if self.error else [])

    @cached_property
    def doubtful(self) -> list[RowAnswer]:
        """Answers that are more likely wrong than right, the least likely first."""
        # By models that did not see the point.
        if self.model is None or len(self.known) < LEAST_KNOWN:
            return []
        right = np.ones(len(self.answers))
        between = np.isin(self.pairs.ends, self.known).all(axis=1)
        np.minimum.at(right, self.pairs.answers[between], self.propagate(self.held_out, LEAST_ERROR).right)
        return [self.answers[k] for k in np.argsort(right, kind="stable") if right[k] < 0.5]

    @cached_property
    def by_answers(self) -> Array:
        """Probability of each class of the known points, by the answers alone."""
        if not self.error:
            return np.eye(len(self.numbers))[self.column]
        equal = np.full((len(self.known), len(self.numbers)), -np.log(len(self.numbers)))
        return self.propagate(equal).posteriors

    def propagate(self, log_p: Array, least_error: float = 0.0) -> Propagation:
        """Posteriors of the known points and of the answers between them, from probabilities."""
        rates = {who: max(rate, least_error) for who, rate in self.error_rates.items()}
        factors = AnswerModel.given(rates, self.graph).factor_graph(self.graph, len(self.numbers))
        return factors.propagate(log_p, tol=1e-4, max_iter=30)

    @cached_property
    def graph(self) -> AnswerGraph:
        """Answers between known points, numbered as in ``known``; founders carry labels."""
        place = {int(point): k for k, point in enumerate(self.known)}
        ends, signs, annotators, _ = self.pairs
        inside = np.isin(ends, self.known).all(axis=1)
        local = np.array([place[point] for point in ends[inside].ravel().tolist()], dtype=np.intp).reshape(-1, 2)
        labels = np.zeros(len(place), dtype=np.int64)
        for name, founder in zip(class_names(len(self.numbers)), self.founders.values(), strict=False):
            labels[place[founder]] = name
        return AnswerGraph.from_answers(local, signs[inside], annotators=annotators[inside], labels=labels)

    @cached_property
    def next_settings(self) -> Settings:
        """Penalty and power by the evidence of the answers so far."""
        counts = Counter(one.sign for one in self.answers)
        if len(self.numbers) != 2 or min(counts[1], counts[-1]) == 0:
            return self.FIRST
        points, y = self.rows((), {point: number for number, point in self.founders.items()}, self.numbers)
        # The other points tell how points vary.
        rest = np.setdiff1d(self.points.candidates, points)
        others = np.zeros((len(rest), y.shape[1]), dtype=np.int64)
        others[:, 1] = rest
        everything = np.concatenate([points, rest])
        # The evidence chooses, and folds would only cut answers apart.
        cv = check_cv([(np.arange(len(everything)), np.arange(len(everything)))])
        model = PairLogisticRegressionCV(prior_strength=0, error_rate=self.error_rates, cv=cv)
        fit_quietly(model, self.points.coordinates(everything), np.vstack([y, others]))
        return Settings(model.alpha_ * len(np.unique(points)), model.covariance_power_)


def class_names(n_classes: int) -> Sequence[int]:
    """What ``y`` and the estimators call the classes."""
    return (-1, 1) if n_classes == 2 else range(1, n_classes + 1)


def fit_quietly(model: Estimator, X: Array, y: Codes) -> Estimator:
    """Fit without the warnings that few answers bring: of what they say there are intervals."""
    with _FITTING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)
