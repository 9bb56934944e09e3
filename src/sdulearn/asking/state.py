"""What follows from the answers so far: classes, error rate, model. A function of the answers alone.

So an answer that is taken back leaves no trace, and the next question can be worked out for each
answer that may come.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import FactorGraph, Propagation
from sdulearn.asking.classes import Classes, count_votes, read_classes
from sdulearn.asking.errors import estimate_error
from sdulearn.asking.points import Points
from sdulearn.asking.records import Question, Record, as_graph_input
from sdulearn.asking.scorer import Scorer, Settings, choose_settings, deal_folds
from sdulearn.types import Array, Indices

# Rounds of fit and posteriors where answers may be wrong.
_EM_ROUNDS = 2
# A chosen point that is not in some classes is not asked about further where another one is as likely as this.
_SURE = 0.8
HELD_OUT_FOLDS = 10


@dataclass(frozen=True, eq=False)
class State:
    """The answers, and what they say."""

    points: Points  # all points
    records: tuple[Record, ...]  # the answers
    limit: int | None  # number of classes where it is known
    settings: Settings  # of the model within
    known_error: float | None = None  # error rate of the answers where it is known; None estimates it

    @cached_property
    def classes(self) -> Classes:
        """Classes found, and who is in them."""
        return read_classes(self.records, self.limit)

    @cached_property
    def error(self) -> float:
        """Share of wrong answers: known, or by the questions that were asked for this."""
        if self.known_error is not None:
            return self.known_error
        return estimate_error(self.records, two_classes=self.limit == 2)

    @cached_property
    def known(self) -> Indices:
        """Points that are in a class."""
        return np.array(list(self.classes.label), dtype=np.intp)

    @cached_property
    def numbers(self) -> list[int]:
        """Numbers of the classes, as the columns of all probabilities have them."""
        return sorted(self.classes.members)

    @cached_property
    def column(self) -> Indices:
        """Column of the class of each known point."""
        place = {number: k for k, number in enumerate(self.numbers)}
        return np.array([place[number] for number in self.classes.label.values()], dtype=np.intp)

    @cached_property
    def asked(self) -> set[int]:
        """All points in any question."""
        return {point for record in self.records for point in (record.left, record.right)}

    @cached_property
    def given_up(self) -> set[int]:
        """Points of no class about which somebody was unsure, or which no class is left for."""
        unsure = {point for record in self.records if not record.answer for point in (record.left, record.right)}
        members = set(self.classes.members)
        stuck = {point for point, out in self.classes.excluded.items() if out >= members}
        return (unsure | stuck) - self.classes.label.keys()

    @cached_property
    def trusted(self) -> set[int]:
        """Points that may stand for a class: a wrong answer about one would spoil all that are compared with it.

        That is the first point of each class, with two classes that of the first one alone, and every point that was
        compared with one of these twice, with one result.
        """
        first = self.numbers[:1] if self.limit == 2 else self.numbers
        trusted = {self.classes.members[number][0] for number in first}
        votes = count_votes(self.records)
        for record in self.records:
            if abs(votes[record.pair]) >= 2 and not trusted.isdisjoint(record.pair):
                trusted.update(record.pair)
        return trusted

    @cached_property
    def kinds(self) -> Counter[str]:
        """Number of answers of each kind."""
        return Counter(record.kind for record in self.records)

    @cached_property
    def partial(self) -> Indices:
        """Points that answers exclude from some classes, and that may be in several others."""
        open_points = [point for point in self.classes.excluded if point not in self.given_up]
        return np.array(open_points, dtype=np.intp)

    @cached_property
    def first_scorer(self) -> Scorer | None:
        """The model of the known points alone, as the answers put them; None while there is one class."""
        if len(self.numbers) < 2:
            return None
        return Scorer.fit(self.points, self.known, self.hard_classes, self.settings)

    @cached_property
    def scorer(self) -> Scorer | None:
        """The model of all answers, by rounds of EM where these leave classes open; None while there is one class."""
        scorer = self.first_scorer
        if scorer is None:
            return None
        for _ in range(_EM_ROUNDS if self.error else min(len(self.partial), 1)):
            scorer = Scorer.fit(self.points, self.learned, self._expected(scorer), self.settings)
        return scorer

    @property
    def learned(self) -> Indices:
        """The points that the model learns from: known ones, then partly known ones."""
        return np.concatenate([self.known, self.partial])

    def _expected(self, scorer: Scorer) -> Array:
        """Probability of each class of these points, given all answers and a model."""
        known = self.propagate(scorer).posteriors if self.error else self.hard_classes
        return np.vstack([known, self.narrowed(scorer)])

    def narrowed(self, scorer: Scorer) -> Array:
        """Probability of each class of the partly known points: none for those that answers exclude."""
        p = np.exp(scorer.log_probabilities(self.partial))
        for row, point in enumerate(self.partial.tolist()):
            out = self.classes.excluded[point]
            p[row, [k for k, number in enumerate(self.numbers) if number in out]] = 0.0
        total = np.maximum(p.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return p / total

    @cached_property
    def sure(self) -> set[int]:
        """Partly known points whose class the model of the known ones is sure of."""
        if self.first_scorer is None or not len(self.partial):
            return set()
        likeliest = self.narrowed(self.first_scorer).max(axis=1)
        return set(self.partial[likeliest >= _SURE].tolist())

    @property
    def hard_classes(self) -> Array:
        """One column a class, 1 for the class of each known point."""
        return np.eye(len(self.numbers))[self.column]

    @cached_property
    def expected_classes(self) -> Array:
        """Probability of each class of the points that the model learns from, given all answers and the model."""
        if self.scorer is None:
            return self.hard_classes
        return self._expected(self.scorer)

    @property
    def soft_classes(self) -> Array:
        """The same of the known points alone."""
        return self.expected_classes[: len(self.known)]

    def fit(self, left_out: Indices) -> Scorer:
        """The model without some points."""
        kept = ~np.isin(self.learned, left_out)
        return Scorer.fit(self.points, self.learned[kept], self.expected_classes[kept], self.settings)

    def propagate(self, scorer: Scorer) -> Propagation:
        """Posteriors of the known points, in their order, and how sure each answer among them is."""
        return self.factors(self.error).propagate(scorer.log_probabilities(self.known), tol=1e-4, max_iter=30)

    def factors(self, error: float) -> FactorGraph:
        """Answers between known points, wrong at this rate."""
        return AnswerModel.given(error, self.graph).factor_graph(self.graph, len(self.numbers))

    @cached_property
    def held_out(self) -> Array:
        """Log probabilities of the classes of each known point by a model that did not see it."""
        log_p = np.empty(self.soft_classes.shape)
        fold = deal_folds(len(self.known), HELD_OUT_FOLDS)
        for k in range(int(fold.max()) + 1):
            test = self.known[fold == k]
            log_p[fold == k] = self.fit(test).log_probabilities(test)
        return log_p

    @cached_property
    def graph(self) -> AnswerGraph:
        """Answers between known points, numbered as in ``known``; the founders of classes carry labels."""
        place = {int(point): k for k, point in enumerate(self.known)}
        ends, signs, annotators = as_graph_input(self.known_records)
        labels = np.zeros(len(place), dtype=np.int64)
        founders = [place[self.classes.members[number][0]] for number in self.numbers]
        if len(founders) == 2:
            # "Different" tells the second class; its founder may be wrong.
            labels[founders[0]] = -1
        else:
            labels[founders] = np.arange(1, len(founders) + 1)
        local = np.array([place[int(point)] for point in ends.ravel()], dtype=np.intp).reshape(-1, 2)
        return AnswerGraph.from_answers(local, signs, annotators=annotators, labels=labels)

    @cached_property
    def known_records(self) -> list[Record]:
        """Answers "same" and "different" between known points."""
        label = self.classes.label
        return [r for r in self.records if r.answer and r.left in label and r.right in label]

    def then(self, question: Question, answer: int, annotator: str) -> tuple[Record, ...]:
        """The records with one more."""
        return (*self.records, Record(question.left, question.right, answer, annotator, question.kind, question.number))


def settle_settings(points: Points, records: tuple[Record, ...], limit: int | None) -> Settings:
    """Penalty and power from the answers so far; the default while they are too few."""
    state = State(points, records, limit, Settings(), known_error=0.0)
    if len(state.numbers) < 2:
        return Settings()
    return choose_settings(points, state.known, state.hard_classes)
