"""What follows from match answers: labels up to the names of the classes, each with one chance to be wrong.

Of m choices and "none", a person gives the right answer with probability 1 - e and each other one with e / m, so that
the answers about a point have the likelihood

    L(k) = prod (1 - e if the answer is right where the class is k, else e / m)

of its class k. The model is a softmax with the loss -log sum_k p(k | x) L(k): a right answer is a label. For pairs,
"same as an example" with the error rate e / (e + m (1 - e)), :class:`~sdulearn.PairLogisticRegression` has that loss.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp

from sdulearn.asking.points import AS_GIVEN
from sdulearn.asking.records import RowAnswer, annotator_numbers
from sdulearn.asking.state import (
    LEAST_ERROR,
    LEAST_KNOWN,
    LEAST_WRONG,
    NEVER,
    Classes,
    Fitted,
    Settings,
    State,
    read_classes,
)
from sdulearn.types import Array, Estimator, Indices, Mask

# To choose from, the largest penalty first; columns standardised, or as they are given.
_PENALTIES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
_POWERS = (0.0, AS_GIVEN)
_FOLDS = 5
# Logarithms of the least and the largest factor of the logits.
_SHARPNESS = (-4.0, 1.0)
# So many falls of the held-out likelihood in a row end the search.
_FALLS = 2
_OPTIONS = {"maxiter": 500, "gtol": 1e-3, "ftol": 1e-7}
# Error rate before any answer tells it, and the number of answers that this counts for.
_USUAL_ERROR = 0.05
_SHRUNK_BY = 10.0
_MOST_ERROR = 0.5
_EM_STEPS = 20
# Keeps the logarithm of a probability finite.
_TINY = 1e-300


class Softmax(NamedTuple):
    """A linear model of the logarithms of class probabilities."""

    coef: Array
    intercept: Array

    def decision_function(self, Z: Array) -> Array:
        """One column a class."""
        return Z @ self.coef.T + self.intercept


def fit_softmax(Z: Array, log_likelihood: Array, penalty: float, start: Softmax | None = None) -> Softmax:
    """Minimise -sum_i log sum_k p(k | z_i) L_i(k) + penalty / 2 |coef|^2, from a start or zero."""
    n_classes = log_likelihood.shape[1]
    rows = np.column_stack([Z, np.ones(len(Z))])
    columns = np.ascontiguousarray(rows.T)
    # One row a class: sums over classes are then sums of long rows.
    likelihood = np.exp(log_likelihood.T)
    # The intercept is free but for what makes it unique.
    ridge = np.full(rows.shape[1], penalty)
    ridge[-1] = 1e-8

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        W = w.reshape(n_classes, -1)
        p = W @ columns
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        joint = p * likelihood + _TINY
        total = joint.sum(axis=0)
        joint /= total
        p -= joint
        penalised = ridge * W
        gradient = p @ rows + penalised
        return float(np.vdot(penalised, W) / 2 - np.log(total).sum()), gradient.ravel()

    W = np.zeros((n_classes, rows.shape[1])) if start is None else np.column_stack([start.coef, start.intercept])
    found = minimize(value_and_gradient, W.ravel(), jac=True, method="L-BFGS-B", options=_OPTIONS)
    W = found.x.reshape(n_classes, -1)
    return Softmax(W[:, :-1], W[:, -1])


class MatchState(State):
    """The answers to match questions, and what they say."""

    N_FOLDS = 5
    FIRST = Settings(1.0, 0.0)

    @cached_property
    def classes(self) -> Classes:
        """Classes found; where answers about a point disagree, most of them decide."""
        found = read_classes(self.answers, self.limit, self.seeds)
        wrong = {k for one in self._by_point.values() if len(one) > 1 for k in self._outvoted(one, found)}
        if not wrong:
            return found
        kept = [one for k, one in enumerate(self.answers) if k not in wrong]
        return read_classes(kept, self.limit, self.seeds)

    @cached_property
    def _by_point(self) -> dict[int, list[int]]:
        """Places of the answers about each point, but those unsure."""
        places: dict[int, list[int]] = {}
        for k, one in enumerate(self.answers):
            if one.sign:
                places.setdefault(one.left, []).append(k)
        return places

    def _outvoted(self, places: list[int], found: Classes) -> list[int]:
        """Answers about a point that are wrong if most of them are right."""
        about = [self.answers[k] for k in places]
        own = found.label.get(about[0].left)
        opened = own if own is not None and found.members[own][0] == about[0].left else None
        possible = dict.fromkeys(opened if one.picked is None else found.label.get(one.picked) for one in about)
        # A tie leaves the first answer standing.
        best = max(possible, key=lambda number: sum(_is_right(one, number, found) for one in about))
        return [k for k in places if not _is_right(self.answers[k], best, found)]

    @cached_property
    def _balance(self) -> dict[int, int]:
        """Answers for the class of each known point less those against it."""
        label = self.classes.label
        known = ((point, [self.answers[k] for k in self._by_point.get(point, ())]) for point in label)
        return {
            point: sum(2 * _is_right(one, label[point], self.classes) - 1 for one in about) for point, about in known
        }

    @cached_property
    def _has_contradictions(self) -> bool:
        return any(balance < len(self._by_point.get(point, ())) for point, balance in self._balance.items())

    @cached_property
    def trusted(self) -> set[int]:
        """Points that may stand for a class: founders, and those two more answers for than against."""
        founders = {members[0] for members in self.classes.members.values()}
        return founders | {point for point, balance in self._balance.items() if balance >= 2}

    @cached_property
    def unconfirmed(self) -> list[RowAnswer]:
        """Where answers are wrong: those that opened a class, until two more speak for it, or one more against it."""
        founders = [members[0] for members in self.classes.members.values()] if self.error else []
        return [
            self.answers[self._by_point[one][0]] for one in founders if one in self._by_point and self._balance[one] < 2
        ]

    @cached_property
    def error_rates(self) -> dict[int, float]:
        """Share of wrong answers of each annotator, by number; 0 without contradictions."""
        who = range(len(annotator_numbers(self.answers)))
        if not self._has_contradictions:
            return dict.fromkeys(who, 0.0)
        errors = self.settings.errors
        usual = float(np.mean(errors)) if errors else _USUAL_ERROR
        return {k: errors[k] if k < len(errors) else usual for k in who}

    def error_of(self, annotator: str) -> float | None:
        """The same by name; None where nobody else was asked what they were, nor they twice."""
        again = [places for places in self._by_point.values() if len(places) > 1]
        compared = {self.answers[k].annotator for places in again for k in places}
        return self.error_rates[annotator_numbers(self.answers)[annotator]] if annotator in compared else None

    @cached_property
    def error(self) -> float:
        """Share of all answers that are wrong."""
        if not self._has_contradictions:
            return 0.0
        _, _, _, who = self._said
        return float(np.mean(np.array(list(self.error_rates.values()))[who]))

    @cached_property
    def _said(self) -> tuple[Indices, Mask, Array, Indices]:
        """Of each answer about a known point: row, classes it is right with, choices, annotator."""
        place = {int(point): row for row, point in enumerate(self.known)}
        numbers = annotator_numbers(self.answers)
        about = [self.answers[k] for point in place for k in self._by_point.get(point, ())]
        rows = np.array([place[one.left] for one in about], dtype=np.intp)
        right = [[_is_right(one, number, self.classes) for number in self.numbers] for one in about]
        n_choices = np.array([len(one.choices) for one in about], dtype=np.float64)
        who = np.array([numbers[one.annotator] for one in about], dtype=np.intp)
        return rows, np.array(right, dtype=bool).reshape(-1, len(self.numbers)), n_choices, who

    @cached_property
    def log_likelihood(self) -> Array:
        """Logarithm of the likelihood of each class, of all known points (n_known, n_classes)."""
        if not self.error:
            return np.where(np.eye(len(self.numbers))[self.column], 0.0, NEVER)
        return self._log_likelihood(np.array(list(self.error_rates.values())))

    def _log_likelihood(self, rates: Array) -> Array:
        """The same at error rates above 0; the founders of classes are certain."""
        rows, right, n_choices, who = self._said
        error = rates[who]
        found = np.zeros((len(self.known), len(self.numbers)))
        np.add.at(found, rows, np.where(right, np.log1p(-error)[:, None], np.log(error / n_choices)[:, None]))
        certain = np.isin(self.known, [members[0] for members in self.classes.members.values()])
        found[certain] = np.where(np.eye(len(self.numbers))[self.column[certain]], 0.0, NEVER)
        return np.maximum(found, NEVER)

    def fit(self, left_out: Collection[int]) -> Fitted:
        """The model without answers about some points, and without classes unknown then."""
        used = ~np.isin(self.known, list(left_out))
        columns = np.unique(self.column[used])
        if len(columns) < 2:
            return Fitted(None, columns.tolist())
        Z = self._stretched(self.points.coordinates(self.known[used]))
        start = None if self._start is None else Softmax(self._start.coef[columns], self._start.intercept[columns])
        model = fit_softmax(Z, self.log_likelihood[np.ix_(used, columns)], self.settings.penalty, start)
        return Fitted(model, columns.tolist())

    @cached_property
    def _start(self) -> Softmax | None:
        """The model of earlier answers, its classes as they are numbered now."""
        if self.before is None or self.before.model is None:
            return None
        found = np.zeros((len(self.numbers), self.before.model.coef.shape[1] + 1))
        found[self.columns_of(self.before)] = np.column_stack([self.before.model.coef, self.before.model.intercept])
        return Softmax(found[:, :-1], found[:, -1])

    @cached_property
    def is_held_out(self) -> Mask:
        """Known points that can be held out: all, as answers name the classes."""
        return np.ones(len(self.known), dtype=bool)

    @cached_property
    def estimator(self) -> Estimator:
        """The same model as one of the library."""
        # Of two classes it penalises one difference, the softmax two halves of it.
        penalty = self.settings.penalty / (2 if len(self.numbers) == 2 else 1)
        return State.fit(replace(self, settings=self.settings._replace(penalty=penalty)), ()).model

    @property
    def pair_error_rates(self) -> dict[int, float]:
        """Error rates with which "same as an example" says what the match answer does."""
        m = max(len(self.numbers), 1)
        return {who: e / (e + m * (1 - e)) for who, e in self.error_rates.items()}

    @cached_property
    def by_answers(self) -> Array:
        """Probability of each class of the known points, by the answers alone."""
        return np.exp(log_softmax(self.log_likelihood, axis=1))

    @cached_property
    def doubtful(self) -> list[RowAnswer]:
        """Answers that are more likely wrong than right, the least likely first."""
        if self.model is None or len(self.known) < LEAST_KNOWN:
            return []
        rates = np.maximum(list(self.error_rates.values()), LEAST_ERROR)
        rows, right, *_ = self._said
        # No model knows a class without its only point.
        judged = (np.bincount(self.column)[self.column] > 1) | bool(self.error)
        posterior = np.exp(log_softmax(self.held_out + self._log_likelihood(rates), axis=1))
        sure = np.where(judged[rows], (posterior[rows] * right).sum(axis=1), 1.0)
        places = [k for point in self.known.tolist() for k in self._by_point.get(point, ())]
        return [self.answers[places[k]] for k in np.argsort(sure, kind="stable") if sure[k] < 0.5]

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
        near = 12 if self.settings != self.FIRST else np.inf
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
        models: list[Softmax | None] = [None] * _FOLDS
        for penalty in penalties:
            logits = np.zeros_like(self.log_likelihood)
            for k in range(_FOLDS):
                test = fold == k
                models[k] = model = fit_softmax(Z[~test], self.log_likelihood[~test], penalty, models[k])
                logits[test] = model.decision_function(Z[test])
            score, sharpness = _sharpened(logits[fold >= 0], self.log_likelihood[fold >= 0])
            found.append((score, Settings(penalty, power, sharpness=sharpness), logits))
            if len(found) > _FALLS and max(one[0] for one in found) > max(one[0] for one in found[-_FALLS:]):
                break
        return found

    def _estimated_errors(self, log_p: Array, counted: Mask) -> tuple[float, ...]:
        """Error rates that held-out probabilities make likeliest, by EM; shrunk to that of all."""
        rows, right, _, who = self._said
        used = counted[rows]
        n = np.bincount(who[used], minlength=int(who.max()) + 1)
        rates = np.full(len(n), _USUAL_ERROR)
        for _ in range(_EM_STEPS):
            posterior = np.exp(log_softmax(log_p + self._log_likelihood(rates), axis=1))
            wrong = 1 - (posterior[rows] * right).sum(axis=1)
            sums = np.bincount(who[used], wrong[used], minlength=len(n))
            of_all = (sums.sum() + _SHRUNK_BY * _USUAL_ERROR) / (n.sum() + _SHRUNK_BY)
            rates = (sums + _SHRUNK_BY * of_all) / (n + _SHRUNK_BY)
        return tuple(np.clip(rates, LEAST_WRONG, _MOST_ERROR).tolist())


def _sharpened(logits: Array, log_likelihood: Array) -> tuple[float, float]:
    """Log likelihood of held-out points at the factor of their logits that makes it largest, and that factor."""
    # Points that were chosen because a model is unsure of them would call for too large a penalty: with the factor it
    # is judged by the order of the classes.

    def loss(log_factor: float) -> float:
        log_p = log_softmax(np.exp(log_factor) * logits, axis=1)
        return -float(logsumexp(log_p + log_likelihood, axis=1).sum())

    best = minimize_scalar(loss, bounds=_SHARPNESS, method="bounded", options={"xatol": 0.01})
    return -float(best.fun), float(np.exp(best.x))


def _is_right(one: RowAnswer, number: int | None, classes: Classes) -> bool:
    """Whether an answer is right if the point is in a class; None is one not shown."""
    if one.picked is not None:
        return classes.label.get(one.picked) == number
    return number is None or number not in [classes.label.get(point) for point in one.choices]
