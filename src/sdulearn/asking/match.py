"""What follows from match answers: labels up to the names of the classes, of which any may be wrong.

Of m choices and "none", a person gives the right answer with probability 1 - e and each other one with
e / m, so that the answers about a point have the likelihood

    L(k) = prod (1 - e if the answer is right where the class is k, else e / m)

of its class k. The model is a softmax with the loss -log sum_k p(k | x) L(k): a right answer is a label.
For pairs, "same as an example" with the error rate e / (e + m (1 - e)),
:class:`~sdulearn.PairLogisticRegression` has that loss.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from sdulearn.asking.points import AS_GIVEN
from sdulearn.asking.records import Classes, RowAnswer, annotator_numbers, read_classes
from sdulearn.asking.state import LEAST_ERROR, LEAST_KNOWN, LEAST_WRONG, NEVER, Settings, State, fit_softmax
from sdulearn.joint.estimators import PairLogisticRegression
from sdulearn.types import Array, Indices, Mask

# To choose from, the largest penalty first; columns standardised, or as they are given.
_PENALTIES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
_POWERS = (0.0, AS_GIVEN)
# Penalties nearer than this factor to an earlier one.
_NEAR = 12.0
_FOLDS = 5
# Logarithms of the least and the largest factor of the logits.
_SHARPNESS = (-4.0, 1.0)
# So many falls of the held-out likelihood in a row end the search.
_FALLS = 2
# Error rate before any answer tells it, and the number of answers that this counts for.
_USUAL_ERROR = 0.05
_SHRUNK_BY = 10.0
_MOST_ERROR = 0.5
_EM_STEPS = 20


class MatchState(State):
    """Answers to match questions, and what they say."""

    N_FOLDS = 5
    FIRST = Settings(1.0, 0.0)
    MATCH = True
    TOL = 1e-3

    def _read_classes(self) -> Classes:
        """Classes found; where answers about a point disagree, most of them decide."""
        found = super()._read_classes()
        about: dict[int, list[RowAnswer]] = defaultdict(list)
        for one in self.answers:
            if one.sign:
                about[one.left].append(one)
        wrong = [one for group in about.values() for one in _outvoted(group, found)]
        if not wrong:
            return found
        return read_classes([one for one in self.answers if one not in wrong], self.limit, self.seeds)

    @cached_property
    def _said(self) -> tuple[Indices, Indices, Mask]:
        """Answers about known points: their places, rows of the points, classes that they fit."""
        row = {int(point): k for k, point in enumerate(self.known)}
        said = [(k, one) for k, one in enumerate(self.answers) if one.sign and one.left in row]
        fits = [[_is_right(one, k, self.classes) for k in self.numbers] for _, one in said]
        places = np.array([k for k, _ in said], dtype=np.intp)
        rows = np.array([row[one.left] for _, one in said], dtype=np.intp)
        return places, rows, np.array(fits, dtype=bool).reshape(-1, len(self.numbers))

    @cached_property
    def _who(self) -> Indices:
        """Number of the annotator of each of these answers."""
        numbers = annotator_numbers(self.answers)
        return np.array([numbers[self.answers[k].annotator] for k in self._said[0]], dtype=np.intp)

    @cached_property
    def _agrees(self) -> Mask:
        """Whether each of these answers fits the class of its point."""
        _, rows, fits = self._said
        return fits[np.arange(len(rows)), self.column[rows]]

    @cached_property
    def _balance(self) -> dict[int, float]:
        """Answers for the class of each known point less those against it."""
        votes = np.where(self._agrees, 1, -1)
        found = np.bincount(self._said[1], votes, minlength=len(self.known))
        return dict(zip(self.known.tolist(), found.tolist(), strict=True))

    @cached_property
    def trusted(self) -> set[int]:
        """Points that may stand for a class: founders, and those two more answers for than against."""
        return {*self.founders, *(point for point, votes in self._balance.items() if votes >= 2)}

    @cached_property
    def unconfirmed(self) -> list[int]:
        """Once answers are wrong: those that opened a class, until two more are for it or one against."""
        first = {one.left: k for k, one in reversed(list(enumerate(self.answers))) if one.sign}
        founders = [point for point in self.founders if point in first and self._balance[point] < 2]
        return [first[point] for point in founders] if self.error else []

    @cached_property
    def error_rates(self) -> dict[int, float]:
        """Share of wrong answers of each annotator, by number; 0 without contradictions."""
        who = range(len(annotator_numbers(self.answers)))
        if self._agrees.all():
            return dict.fromkeys(who, 0.0)
        errors = self.settings.errors
        usual = float(np.mean(errors)) if errors else _USUAL_ERROR
        return {k: errors[k] if k < len(errors) else usual for k in who}

    def error_of(self, annotator: str) -> float | None:
        """The same by name; None where nobody else was asked what they were, nor they twice."""
        times = Counter(one.left for one in self.answers if one.sign)
        compared = {one.annotator for one in self.answers if one.sign and times[one.left] > 1}
        if annotator not in compared:
            return None
        return self.error_rates[annotator_numbers(self.answers)[annotator]]

    @property
    def _rates(self) -> Array:
        return np.array(list(self.error_rates.values()))

    @cached_property
    def log_likelihood(self) -> Array:
        """Logarithm of the likelihood of each class, of all known points (n_known, n_classes)."""
        return self._log_likelihood(self._rates) if self.error else super().log_likelihood

    def _log_likelihood(self, rates: Array) -> Array:
        """The same at error rates above 0; the founders of classes are certain."""
        places, rows, fits = self._said
        error = rates[self._who]
        n_choices = np.array([len(self.answers[k].choices) for k in places])
        found = np.zeros((len(self.known), len(self.numbers)))
        of_class = np.where(fits, np.log1p(-error)[:, None], np.log(error / n_choices)[:, None])
        np.add.at(found, rows, of_class)
        certain = np.isin(self.known, self.founders)[:, None]
        return np.where(certain, super().log_likelihood, np.maximum(found, NEVER))

    @cached_property
    def estimator(self) -> PairLogisticRegression:
        """The same model as one of the library."""
        m = len(self.numbers)
        # Error rates with which "same as an example" says what the match answer does.
        return self._fit_pairs({who: e / (e + m * (1 - e)) for who, e in self.error_rates.items()})

    @cached_property
    def by_answers(self) -> Array:
        """Probability of each class of the known points, by the answers alone."""
        return np.exp(log_softmax(self.log_likelihood, axis=1))

    def _chance_right(self) -> Array:
        """Probability that each answer is right."""
        places, rows, fits = self._said
        # No model knows a class without its only point.
        judged = (np.bincount(self.column)[self.column] > 1) | bool(self.error)
        likelihood = self._log_likelihood(np.maximum(self._rates, LEAST_ERROR))
        posterior = np.exp(log_softmax(self.held_out + likelihood, axis=1))
        right = np.ones(len(self.answers))
        right[places] = np.where(judged[rows], (posterior[rows] * fits).sum(axis=1), 1.0)
        return right

    @cached_property
    def next_settings(self) -> Settings:
        """Penalty, near an earlier one, power and error rates by the likelihood of held-out points."""
        size = np.bincount(self.column)[self.column]
        order = np.lexsort((np.random.default_rng(0).permutation(len(size)), self.column))
        fold = np.empty(len(size), dtype=np.intp)
        fold[order] = np.arange(len(size)) % _FOLDS
        fold[size < 2] = -1
        if len(self.numbers) < 2 or (fold >= 0).sum() < LEAST_KNOWN:
            return self.FIRST
        near = _NEAR if self.settings != self.FIRST else np.inf
        penalties = [one for one in _PENALTIES if 1 / near < one / self.settings.penalty < near]
        found = [one for power in _POWERS for one in self._by_penalty(power, fold, penalties)]
        _, settings, logits = max(found, key=lambda one: one[0])
        log_p = log_softmax(settings.sharpness * logits, axis=1)
        errors = self._estimated_errors(log_p, fold >= 0) if self.error else ()
        return settings._replace(errors=errors)

    def _by_penalty(self, power: float, fold: Indices, penalties: list[float]) -> list[tuple[float, Settings, Array]]:
        """Held-out log likelihood, settings and held-out logits, until the first falls."""
        Z = self.points.coordinates(self.known) @ self.points.stretch(power)
        found: list[tuple[float, Settings, Array]] = []
        models: list[Array | None] = [None] * _FOLDS
        for penalty in penalties:
            logits = np.zeros_like(self.log_likelihood)
            for k in range(_FOLDS):
                test = fold == k
                W = fit_softmax(Z[~test], self.log_likelihood[~test], penalty, models[k])
                logits[test] = Z[test] @ W[:, :-1].T + W[:, -1]
                models[k] = W
            score, sharpness = _sharpened(logits[fold >= 0], self.log_likelihood[fold >= 0])
            found.append((score, Settings(penalty, power, sharpness=sharpness), logits))
            scores = [one[0] for one in found]
            if len(scores) > _FALLS and max(scores) > max(scores[-_FALLS:]):
                break
        return found

    def _estimated_errors(self, log_p: Array, counted: Mask) -> tuple[float, ...]:
        """Error rates that held-out probabilities make likeliest, by EM; shrunk to that of all."""
        _, rows, fits = self._said
        used = counted[rows]
        who = self._who[used]
        n = np.bincount(who, minlength=int(self._who.max()) + 1)
        rates = np.full(len(n), _USUAL_ERROR)
        for _ in range(_EM_STEPS):
            posterior = np.exp(log_softmax(log_p + self._log_likelihood(rates), axis=1))
            wrong = 1 - (posterior[rows] * fits).sum(axis=1)
            sums = np.bincount(who, wrong[used], minlength=len(n))
            of_all = (sums.sum() + _SHRUNK_BY * _USUAL_ERROR) / (n.sum() + _SHRUNK_BY)
            rates = (sums + _SHRUNK_BY * of_all) / (n + _SHRUNK_BY)
        return tuple(np.clip(rates, LEAST_WRONG, _MOST_ERROR).tolist())


def _sharpened(logits: Array, log_likelihood: Array) -> tuple[float, float]:
    """Largest log likelihood of held-out points over factors of their logits, and that factor."""
    # Points that were chosen because a model is unsure of them would call for too large a penalty:
    # with the factor it is judged by the order of the classes.

    def loss(log_factor: float) -> float:
        log_p = log_softmax(np.exp(log_factor) * logits, axis=1)
        return -float(logsumexp(log_p + log_likelihood, axis=1).sum())

    best = minimize_scalar(loss, bounds=_SHARPNESS, method="bounded", options={"xatol": 0.01})
    return -float(best.fun), float(np.exp(best.x))


def _outvoted(about: list[RowAnswer], found: Classes) -> list[RowAnswer]:
    """Those of several answers about a point that are wrong if most of them are right."""
    if len(about) < 2:
        return []
    own = found.label.get(about[0].left)
    opened = own if own is not None and found.members[own][0] == about[0].left else None
    picked = [opened if one.picked is None else found.label.get(one.picked) for one in about]
    votes = {k: sum(_is_right(one, k, found) for one in about) for k in picked}
    if len(votes) > 1 and 2 * votes.get(opened, len(about)) < len(about):
        # No class stands that most answers deny.
        del votes[opened]
    # A tie leaves the first answer standing.
    best = max(votes, key=votes.__getitem__)
    return [one for one in about if not _is_right(one, best, found)]


def _is_right(one: RowAnswer, number: int | None, classes: Classes) -> bool:
    """Whether an answer is right if the point is in a class; None is one not shown."""
    if one.picked is not None:
        return classes.label.get(one.picked) == number
    return number is None or number not in [classes.label.get(point) for point in one.choices]
