"""What match answers say: they are labels up to the names of the classes, and may be wrong.

Among m choices and "none", a person gives the right answer with probability 1 - e and each other
one with probability e / m. So the answers about a point have the likelihood

    L(k) = prod (1 - e if the answer is right when the class is k, else e / m)

where k is its class. The model is a softmax with the loss -log sum_k p(k | x) L(k): an answer that
is certainly right is a label. :class:`~sdulearn.PairLogisticRegression` has the same likelihood for the
pairs of the answer, which share its question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from sdulearn.answers.records import number_annotators
from sdulearn.asking.points import AS_GIVEN
from sdulearn.asking.records import Classes, RowAnswer, read_classes
from sdulearn.asking.state import LEAST_ERROR, LEAST_KNOWN, LEAST_WRONG, NEVER, Settings, State, fit_softmax
from sdulearn.errors import InputError
from sdulearn.joint.estimators import PairLogisticRegression
from sdulearn.types import Array, Indices, Mask

# Candidates, the largest penalty first; columns are standardised, or as they are given.
_PENALTIES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
_POWERS = (0.0, AS_GIVEN)
# Only penalties within this factor of an earlier choice are tried.
_NEAR = 12.0
# Range of the log of the factor of the logits.
_SHARPNESS = (-4.0, 1.0)
# The search ends when the held-out likelihood has fallen this often in a row.
_FALLS = 2
# Prior mean of the error rate, and the number of answers that it counts for.
_USUAL_ERROR = 0.05
_SHRUNK_BY = 10.0
_MOST_ERROR = 0.5
_EM_STEPS = 20


class MatchState(State):
    """What answers to match questions say."""

    MOST_CHOICES: ClassVar[int | None] = None
    FIRST = Settings(1.0, 0.0)
    N_FOLDS = 5
    TOL = 1e-3

    def _read_classes(self) -> Classes:
        """Read the classes; where answers about a point disagree, the majority decides."""
        classes = super()._read_classes()
        about: dict[int, list[RowAnswer]] = defaultdict(list)
        for one in self.answers:
            if one.sign:
                about[one.left].append(one)
        wrong = [one for group in about.values() for one in _outvoted(group, classes)]
        if not wrong:
            return classes
        return read_classes([one for one in self.answers if one not in wrong], self.limit, self.seeds)

    def fit(self, left_out: Collection[int]) -> Array:
        """Fit a softmax: match answers are labels."""
        return self._fit_labels(left_out)

    @cached_property
    def _about_known(self) -> tuple[Indices, Indices, Mask]:
        """Answers about known points: positions, rows in `known`, classes for which each is right."""
        row = {int(point): k for k, point in enumerate(self.known)}
        used = [(k, one) for k, one in enumerate(self.answers) if one.sign and one.left in row]
        right = [[_is_right(one, k, self.classes) for k in range(self.n_classes)] for _, one in used]
        places = np.array([k for k, _ in used], dtype=np.intp)
        rows = np.array([row[one.left] for _, one in used], dtype=np.intp)
        return places, rows, np.array(right, dtype=bool).reshape(-1, self.n_classes)

    @cached_property
    def _who(self) -> Indices:
        """Annotators of these answers."""
        numbers = number_annotators(self.answers)
        return np.array([numbers[self.answers[k].annotator] for k in self._about_known[0]], dtype=np.intp)

    @cached_property
    def _agrees(self) -> Mask:
        """Whether each of these answers agrees with the class of its point."""
        _, rows, right = self._about_known
        return right[np.arange(len(rows)), self.known_class[rows]]

    @cached_property
    def _balance(self) -> dict[int, float]:
        """Answers for the class of each known point, minus those against it."""
        votes = np.where(self._agrees, 1, -1)
        balance = np.bincount(self._about_known[1], votes, minlength=len(self.known))
        return dict(zip(self.known.tolist(), balance.tolist(), strict=True))

    @cached_property
    def trusted(self) -> set[int]:
        """Points that may be shown as examples: founders, and those with a balance of two."""
        return {*self.founders, *(point for point, votes in self._balance.items() if votes >= 2)}

    @cached_property
    def unconfirmed(self) -> list[int]:
        """Answers that opened a class, if some answer is wrong: two more must be for it than against."""
        first = {one.left: k for k, one in reversed(list(enumerate(self.answers))) if one.sign}
        founders = [point for point in self.founders if point in first and self._balance[point] < 2]
        return [first[point] for point in founders] if self.error else []

    @cached_property
    def error_rates(self) -> dict[int, float]:
        """Share of wrong answers of each annotator, by number; 0 without contradictions."""
        who = range(len(number_annotators(self.answers)))
        if self._agrees.all():
            return dict.fromkeys(who, 0.0)
        errors = self.settings.errors
        usual = float(np.mean(errors)) if errors else _USUAL_ERROR
        return {k: errors[k] if k < len(errors) else usual for k in who}

    @property
    def _rates(self) -> Array:
        return np.array(list(self.error_rates.values()))

    @cached_property
    def log_likelihood(self) -> Array:
        """Log likelihood of each class for the known points, of shape (n_known, n_classes)."""
        return self._log_likelihood(self._rates) if self.error else super().log_likelihood

    def _log_likelihood(self, rates: Array) -> Array:
        """The same at given error rates above 0; founders are certain."""
        places, rows, right = self._about_known
        error = rates[self._who]
        n_choices = np.array([len(self.answers[k].choices) for k in places])
        total = np.zeros((len(self.known), self.n_classes))
        of_answer = np.where(right, np.log1p(-error)[:, None], np.log(error / n_choices)[:, None])
        np.add.at(total, rows, of_answer)
        certain = np.isin(self.known, self.founders)[:, None]
        return np.where(certain, super().log_likelihood, np.maximum(total, NEVER))

    @cached_property
    def estimator(self) -> PairLogisticRegression:
        """The model of all answers as an estimator of the library, in the axes of the points."""
        try:
            return self._fit_pairs(self.error_rates)
        except InputError:
            # Answers about points without a class contradict each other, which no vote shows.
            return self._fit_pairs(dict.fromkeys(self.error_rates, LEAST_WRONG))

    @cached_property
    def by_answers(self) -> Array:
        """Probability of each class for the known points, by the answers alone."""
        return np.exp(log_softmax(self.log_likelihood, axis=1))

    def _chance_right(self) -> Array:
        """Probability that each answer is right, by models without answers about its point."""
        places, rows, right = self._about_known
        # Without the only point of a class no model knows that class.
        judged = (np.bincount(self.known_class)[self.known_class] > 1) | bool(self.error)
        likelihood = self._log_likelihood(np.maximum(self._rates, LEAST_ERROR))
        log_p = self.hold_out(np.arange(len(self.known)))
        posterior = np.exp(log_softmax(log_p + likelihood, axis=1))
        chance = np.ones(len(self.answers))
        chance[places] = np.where(judged[rows], (posterior[rows] * right).sum(axis=1), 1.0)
        return chance

    @cached_property
    def next_settings(self) -> Settings:
        """Penalty, power, sharpness and error rates by the likelihood of held-out points."""
        size = np.bincount(self.known_class)[self.known_class]
        order = np.lexsort((np.random.default_rng(0).permutation(len(size)), self.known_class))
        fold = np.empty(len(size), dtype=np.intp)
        fold[order] = np.arange(len(size)) % self.N_FOLDS
        fold[size < 2] = -1
        if self.n_classes < 2 or (fold >= 0).sum() < LEAST_KNOWN:
            return self.FIRST
        near = _NEAR if self.settings != self.FIRST else np.inf
        penalties = [one for one in _PENALTIES if 1 / near < one / self.settings.penalty < near]
        tried = [one for power in _POWERS for one in self._path(power, fold, penalties)]
        _, settings, logits = max(tried, key=lambda one: one[0])
        log_p = log_softmax(settings.sharpness * logits, axis=1)
        errors = self._estimated_errors(log_p, fold >= 0) if self.error else ()
        return settings._replace(errors=errors)

    def _path(self, power: float, fold: Indices, penalties: list[float]) -> list[tuple[float, Settings, Array]]:
        """Held-out log likelihood, settings and held-out logits for each penalty, until it falls."""
        Z = self.points.coordinates(self.known) @ self.points.stretch(power)
        path: list[tuple[float, Settings, Array]] = []
        models: list[Array | None] = [None] * self.N_FOLDS
        for penalty in penalties:
            logits = np.zeros_like(self.log_likelihood)
            for k in range(self.N_FOLDS):
                test = fold == k
                W = fit_softmax(Z[~test], self.log_likelihood[~test], penalty, models[k])
                logits[test] = Z[test] @ W[:, :-1].T + W[:, -1]
                models[k] = W
            score, sharpness = _sharpened(logits[fold >= 0], self.log_likelihood[fold >= 0])
            path.append((score, Settings(penalty, power, sharpness=sharpness), logits))
            scores = [one[0] for one in path]
            if len(scores) > _FALLS and max(scores) > max(scores[-_FALLS:]):
                break
        return path

    def _estimated_errors(self, log_p: Array, counted: Mask) -> tuple[float, ...]:
        """Error rates by EM on held-out probabilities, each shrunk towards the rate of all."""
        _, rows, right = self._about_known
        used = counted[rows]
        who = self._who[used]
        n = np.bincount(who, minlength=int(self._who.max()) + 1)
        rates = np.full(len(n), _USUAL_ERROR)
        for _ in range(_EM_STEPS):
            posterior = np.exp(log_softmax(log_p + self._log_likelihood(rates), axis=1))
            wrong = 1 - (posterior[rows] * right).sum(axis=1)
            sums = np.bincount(who, wrong[used], minlength=len(n))
            of_all = (sums.sum() + _SHRUNK_BY * _USUAL_ERROR) / (n.sum() + _SHRUNK_BY)
            rates = (sums + _SHRUNK_BY * of_all) / (n + _SHRUNK_BY)
        return tuple(np.clip(rates, LEAST_WRONG, _MOST_ERROR).tolist())


def _sharpened(logits: Array, log_likelihood: Array) -> tuple[float, float]:
    """Log likelihood of held-out points at the best factor of their logits, and that factor."""
    # Points are chosen because the model is unsure of them, which would favour too large a penalty.
    # With a free factor, a penalty is judged by how it ranks the classes.

    def loss(log_factor: float) -> float:
        log_p = log_softmax(np.exp(log_factor) * logits, axis=1)
        return -float(logsumexp(log_p + log_likelihood, axis=1).sum())

    best = minimize_scalar(loss, bounds=_SHARPNESS, method="bounded", options={"xatol": 0.01})
    return -float(best.fun), float(np.exp(best.x))


def _outvoted(about: list[RowAnswer], classes: Classes) -> list[RowAnswer]:
    """The answers about a point that are wrong if the majority of them is right."""
    if len(about) < 2:
        return []
    own = classes.label.get(about[0].left)
    opened = own if own is not None and classes.members[own][0] == about[0].left else None
    picked = [opened if one.picked is None else classes.label.get(one.picked) for one in about]
    votes = {k: sum(_is_right(one, k, classes) for one in about) for k in picked}
    if len(votes) > 1 and 2 * votes.get(opened, len(about)) < len(about):
        # A class that most answers deny is not opened.
        del votes[opened]
    # The first answer wins a tie.
    best = max(votes, key=votes.__getitem__)
    return [one for one in about if not _is_right(one, best, classes)]


def _is_right(one: RowAnswer, number: int | None, classes: Classes) -> bool:
    """Whether an answer is right if the point is in this class; None is a class not shown."""
    if one.picked is not None:
        return classes.label.get(one.picked) == number
    return number is None or number not in [classes.label.get(point) for point in one.choices]
