"""What forced choices say: "more like this example, or more like that one?".

A person who has to choose one of two examples, of classes a and b, says a with the probability

    1 - e  if the class of the item is a,    e  if it is b,    1/2  if it is another one.            (1)

So a choice is no pair. The classes are those of the examples given at the start: no answer can open one.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from sdulearn.answers.records import number_annotators
from sdulearn.asking.match import MatchState
from sdulearn.asking.records import Classes
from sdulearn.asking.state import LEAST_WRONG, NEVER, fit_quietly
from sdulearn.joint.estimators import PairLogisticRegression
from sdulearn.types import Array, Indices, Mask


class NearerState(MatchState):
    """What answers say if some are forced choices."""

    MOST_CHOICES: ClassVar[int | None] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes > 2:
            # A choice between two of more classes does not tell the class of a random point.
            self.n_sampled = 0

    def _read_classes(self) -> Classes:
        """Read the other answers; an item with forced choices alone is in the class chosen most often, for now."""
        classes = super()._read_classes()
        self._certain = set(classes.label)
        votes: dict[int, dict[int, int]] = {}
        for answer in self.answers:
            if answer.nearer is not None and answer.left not in classes.label:
                number = classes.label.get(answer.choices[answer.nearer])
                if number is not None:
                    counts = votes.setdefault(answer.left, {})
                    counts[number] = counts.get(number, 0) + 1
        for point, counts in votes.items():
            classes.join(point, max(counts, key=counts.__getitem__))
        return classes

    @cached_property
    def _about_known(self) -> tuple[Indices, Indices, Mask]:
        """Add the forced choices; they are not wrong about items of a third class."""
        places, rows, right = super()._about_known
        row = {point: k for k, point in enumerate(self.known.tolist())}
        label = self.classes.label
        more = []
        for k, answer in enumerate(self.answers):
            classes = [label.get(choice, -1) for choice in answer.choices]
            if answer.nearer is not None and answer.left in row and -1 not in classes and len(set(classes)) == 2:
                more.append((k, row[answer.left], classes[1 - answer.nearer]))
        forced = np.array(more, dtype=np.intp).reshape(-1, 3)
        possible = np.arange(self.n_classes) != forced[:, 2:]
        return (
            np.concatenate([places, forced[:, 0]]),
            np.concatenate([rows, forced[:, 1]]),
            np.vstack([right, possible]),
        )

    @cached_property
    def _third(self) -> Mask:
        """For which classes of its point each of these answers is a guess."""
        third = np.zeros(self._about_known[2].shape, dtype=bool)
        for k, place in enumerate(self._about_known[0].tolist()):
            answer = self.answers[place]
            if answer.nearer is not None:
                third[k] = True
                third[k, [self.classes.label[choice] for choice in answer.choices]] = False
        return third

    @cached_property
    def log_likelihood(self) -> Array:
        """Log likelihood of each class for the known points; only what other answers say may be certain."""
        certain = np.where(np.eye(self.n_classes)[self.known_class], 0.0, NEVER)
        is_certain = np.isin(self.known, [*self._certain] if not self.error else self._examples)[:, None]
        return np.where(is_certain, certain, self._log_likelihood(np.maximum(self._rates, LEAST_WRONG)))

    @property
    def trusted(self) -> set[int]:
        """Points that may be shown as examples: those whose classes other answers, or the user, name."""
        return self._certain

    @property
    def _examples(self) -> list[int]:
        """Points given as examples, and the first of each class."""
        return [*self.founders, *(point for points in self.seeds for point in points)]

    def _log_likelihood(self, rates: Array) -> Array:
        """Equation (1), beside the likelihood of match answers."""
        places, rows, right = self._about_known
        numbers = number_annotators(self.answers)
        answers = [self.answers[k] for k in places]
        error = rates[[numbers[answer.annotator] for answer in answers]]
        # "None" is a third way to be wrong, but only where it is offered.
        n_wrong = np.array([len(answer.choices) if answer.nearer is None else 1 for answer in answers])
        of_answer = np.where(right, np.log1p(-error)[:, None], np.log(error / n_wrong)[:, None])
        total = np.zeros((len(self.known), self.n_classes))
        np.add.at(total, rows, np.where(self._third, np.log(0.5), of_answer))
        return np.maximum(total, NEVER)

    @cached_property
    def estimator(self) -> PairLogisticRegression:
        """The model of all answers as an estimator of the library, which has no likelihood of forced choices."""
        assert self.model is not None
        points, y = self._rows(self._examples)
        alpha = self.settings.penalty / len(np.unique(points))
        model = PairLogisticRegression(alpha, covariance_power=0, n_classes=self.n_classes, error_rate=self.error_rates)
        fit_quietly(model.fit_from_zero, self._stretched(self.points.coordinates(points)), y)
        model.coef_, model.intercept_ = self.model[:, :-1].copy(), self.model[:, -1].copy()
        if self.n_classes == 2:
            model.coef_, model.intercept_ = np.diff(model.coef_, axis=0), np.diff(model.intercept_)
        return model
