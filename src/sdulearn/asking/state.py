"""What follows from the answers so far: classes, error rates, model.

It is a function of the answers alone: one that is taken back leaves no trace, and the next question can
be worked out for each answer that may come.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.model_selection import check_cv

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import Propagation
from sdulearn.asking.points import Points
from sdulearn.asking.records import (
    Classes,
    PairTable,
    RowAnswer,
    annotator_numbers,
    as_pairs,
    count_votes,
    read_classes,
)
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.types import Array, Codes, Estimator, Indices, Mask

# Doubtful answers are looked for even where none was found wrong.
LEAST_ERROR = 0.05
# Where an answer is wrong beyond doubt, and the error rate is not known.
LEAST_WRONG = 0.01
# Log probability of a class that a model does not know.
NEVER = -30.0
LEAST_KNOWN = 10
# Keeps the logarithm of a probability finite.
_TINY = 1e-300
# One fit at a time: filters of warnings belong to the whole process.
_FITTING = RLock()


class Settings(NamedTuple):
    """How the model is fitted."""

    penalty: float  # beside the sum of losses
    power: float  # of the covariance in it
    errors: tuple[float, ...] = ()  # of annotators by their numbers, where match answers tell it
    sharpness: float = 1.0  # factor of the logits, where match answers tell it


def fit_softmax(
    Z: Array, log_likelihood: Array, penalty: float, start: Array | None = None, tol: float = 1e-3
) -> Array:
    """Minimise -sum_i log sum_k p(k | z_i) L_i(k) + penalty / 2 |coef|^2, from a start or zero.

    Each row has the coefficients and the intercept of a class.
    """
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

    W = np.zeros((n_classes, rows.shape[1])) if start is None else start
    options = {"maxiter": 500, "gtol": tol, "ftol": 1e-4 * tol}
    found = minimize(value_and_gradient, W.ravel(), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(n_classes, -1)


@dataclass(eq=False)
class State:
    """Answers about pairs of two classes, and what they say."""

    N_FOLDS = 10  # in which known points are held out
    FIRST = Settings(3.0, 1.0)  # of the model until there are answers to choose by
    MATCH = False  # whether questions compare with an example of every class
    TOL = 1e-8  # of the model

    points: Points  # all points
    answers: tuple[RowAnswer, ...]  # the answers
    limit: int | None  # number of classes where it is known
    settings: Settings = FIRST  # of the model
    known_error: float | None = None  # error rate of the answers; None where it is estimated
    seeds: tuple[tuple[int, ...], ...] = ()  # points that are examples of the first classes
    before: State | None = None  # earlier answers, whose model a fit starts from

    def __post_init__(self) -> None:
        self.classes = self._read_classes()
        label = self.classes.label
        # Points that are in a class, the first of each before its others, and the class of each.
        self.known: Indices = np.array(list(label), dtype=np.intp)
        self.column: Indices = np.array(list(label.values()), dtype=np.intp)
        # Numbers of the classes, which columns of probabilities have too, and their first points.
        self.numbers = range(len(self.classes.members))
        self.founders = [self.classes.members[number][0] for number in self.numbers]
        # These name the classes: of two, "different" from the first founder is the second class.
        self.naming = self.founders[:1] if self.limit == 2 else self.founders
        # All points in any question, and number of answers of each kind.
        asked = ((one.left, *one.choices) for one in self.answers)
        self.asked = {point for points in (*self.seeds, *asked) for point in points}
        self.kinds = Counter(one.kind for one in self.answers)
        # So many points of the random order have been asked about: they are a random sample.
        drawn = [one.left for one in self.answers if one.kind == "random"]
        self.n_sampled = int(self.points.position[drawn].max(initial=-1)) + 1

    def _read_classes(self) -> Classes:
        return read_classes(self.answers, self.limit, self.seeds)

    def columns_of(self, before: State) -> Indices:
        """Number that each class of earlier answers has now, by its founder."""
        return np.array([self.classes.label.get(point, 0) for point in before.founders])

    @cached_property
    def given_up(self) -> set[int]:
        """Points of no class about which somebody was unsure, or which no class is left for."""
        unsure = {point for one in self.answers if not one.sign for point in (one.left, *one.choices)}
        every = self.classes.members.keys()
        stuck = {point for point, out in self.classes.excluded.items() if out >= every}
        return (unsure | stuck) - self.classes.label.keys()

    @cached_property
    def trusted(self) -> set[int]:
        """Points that may stand for a class: founders, and those twice compared with one, alike."""
        # A wrong answer about one would spoil all that are compared with it.
        trusted = set(self.naming)
        votes = count_votes(self.answers)
        for one in self.answers:
            said = votes[one.asked]
            alike = 2 * max(said.values(), default=0) - said.total() >= 2
            if alike and not trusted.isdisjoint((one.left, one.right)):
                trusted |= {one.left, one.right}
        return trusted

    @property
    def unconfirmed(self) -> list[int]:
        """Places of answers that opened a class and are asked again; of pairs none."""
        return []

    @cached_property
    def pairs(self) -> PairTable:
        """All pairs that the answers tell something of."""
        return as_pairs(self.answers)

    @cached_property
    def _all_answers(self) -> AnswerGraph:
        ends, signs, annotators, _ = self.pairs
        _, local = np.unique(ends, return_inverse=True)
        return AnswerGraph.from_answers(local.reshape(-1, 2), signs, annotators=annotators)

    @cached_property
    def _answer_model(self) -> AnswerModel:
        return AnswerModel.estimate(self._all_answers, 2)

    @cached_property
    def error_rates(self) -> dict[int, float]:
        """Share of the answers of each annotator that are wrong, by their numbers."""
        if self.known_error is not None or not self._all_answers.contradictory.any():
            return dict.fromkeys(self.pairs.annotators.tolist(), self.known_error or 0.0)
        return {who: max(rate, LEAST_WRONG) for who, rate in self._answer_model.rates.items()}

    def error_of(self, annotator: str) -> float | None:
        """The same by name; None where the answers do not tell it."""
        if self.known_error is not None:
            return self.known_error
        number = annotator_numbers(self.answers).get(annotator, -1)
        rate = self._answer_model.by_annotator.get(number)
        return rate.value if rate is not None and rate.identified else None

    @cached_property
    def error(self) -> float:
        """Share of all answers that are wrong."""
        if self.known_error is not None:
            return self.known_error
        return sum(self.error_rates[who] for who in self._who.tolist()) / max(len(self._who), 1)

    @property
    def _who(self) -> Indices:
        """Who gave each answer that tells something."""
        return self.pairs.annotators

    @cached_property
    def model(self) -> Array | None:
        """Coefficients of the model of all answers, as of :meth:`fit`; None of a single class."""
        if len(self.numbers) < 2:
            return None
        # Whoever needs it while another thread prepares it waits for that.
        with _FITTING:
            found: Array | None = vars(self).get("model")
            return self.fit(()) if found is None else found

    def fit(self, left_out: Collection[int]) -> Array:
        """A softmax without answers about some points, a row of coefficients and intercept a class.

        An intercept of -inf is that of a class which is not known then.
        """
        used = ~np.isin(self.known, list(left_out))
        columns = np.unique(self.column[used])
        if self._needs_pairs and (self.error or len(columns) == 2):
            model = self._fit_pairs(self.error_rates, left_out)
            logits = np.append(model.coef_, model.intercept_)
            return np.array([0 * logits, logits])
        Z = self._stretched(self.points.coordinates(self.known[used]))
        likelihood = self.log_likelihood[np.ix_(used, columns)]
        start = None if self._start is None else self._start[columns]
        found = np.zeros((len(self.numbers), Z.shape[1] + 1))
        found[:, -1] = -np.inf
        found[columns] = fit_softmax(Z, likelihood, self.settings.penalty, start, self.TOL)
        return found

    @cached_property
    def _needs_pairs(self) -> bool:
        """Whether answers say more than labels would: they may be wrong, or join unknown points."""
        if self.MATCH:
            return False
        return self.error > 0 or not bool(np.isin(self.pairs.ends, self.known).all())

    @cached_property
    def _start(self) -> Array | None:
        """The model of earlier answers, its classes as they are numbered now."""
        if self.before is None or self.before.model is None:
            return None
        found = np.zeros((len(self.numbers), self.before.model.shape[1]))
        found[self.columns_of(self.before)] = self.before.model
        return found

    @property
    def log_likelihood(self) -> Array:
        """Logarithm of the likelihood of each class, of all known points (n_known, n_classes)."""
        return np.where(np.eye(len(self.numbers))[self.column], 0.0, NEVER)

    @cached_property
    def estimator(self) -> PairLogisticRegression:
        """The model of all answers as one of the library, in the axes of the points."""
        return self._fit_pairs(self.error_rates)

    def _fit_pairs(self, rates: dict[int, float], left_out: Collection[int] = ()) -> PairLogisticRegression:
        # All known points name the classes where answers are right: that says no more than they do.
        naming = self.naming if self.error else self.classes.label
        points, y = self._rows([point for point in naming if point not in left_out], left_out)
        # Of two classes it penalises one difference, the softmax two halves of it.
        penalty = self.settings.penalty / (2 if len(self.numbers) == 2 else 1)
        model = PairLogisticRegression(
            penalty / len(np.unique(points)),
            covariance_power=0,
            n_classes=len(self.numbers),
            prior_strength=0,
            error_rate=rates,
            # The points that name the classes say where each of them is.
            init="zero",
        )
        return fit_quietly(model, self._stretched(self.points.coordinates(points)), y)

    def _rows(self, labelled: Sequence[int], left_out: Collection[int] = ()) -> tuple[Indices, Codes]:
        """Points and ``y`` of the answers but those about some points, and of labelled points."""
        ends, signs, annotators, _ = self.pairs
        # A point that no class is left for would force one more.
        stuck = [point for point in self.given_up if point in self.classes.excluded]
        kept = ~np.isin(ends, [*left_out, *stuck]).any(axis=1)
        n = int(kept.sum())
        points = np.concatenate([ends[kept].ravel(), labelled]).astype(np.intp)
        y = np.zeros((len(points), 4), dtype=np.int64)
        y[: 2 * n, 0] = np.repeat(signs[kept] * np.arange(1, n + 1), 2)
        y[:, 1] = points
        y[: 2 * n, 2] = np.repeat(annotators[kept], 2)
        y[2 * n :, 3] = [self._names[self.classes.label[point]] for point in labelled]
        return points, y

    @property
    def _names(self) -> Sequence[int]:
        """What ``y`` and the estimators call the classes."""
        return (-1, 1) if len(self.numbers) == 2 else range(1, len(self.numbers) + 1)

    def _stretched(self, coordinates: Array) -> Array:
        """Coordinates in which the plain ridge is the penalty by the covariance of all points."""
        return coordinates @ self.points.stretch(self.settings.power)

    def log_probabilities(self, points: Indices) -> Array:
        """Logarithms of the probability of each class of some points, one column a class."""
        return self._log_probabilities(self.points.coordinates(points), self.model)

    @cached_property
    def of_candidates(self) -> Array:
        """The same of all candidates."""
        return self._log_probabilities(self.points.candidate_coordinates, self.model)

    def _log_probabilities(self, coordinates: Array, model: Array | None) -> Array:
        if model is None:
            return np.zeros((len(coordinates), len(self.numbers)))
        logits = self._stretched(coordinates) @ model[:, :-1].T + model[:, -1]
        return np.nan_to_num(log_softmax(self.settings.sharpness * logits, axis=1), neginf=NEVER)

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
            model = self.fit(test.tolist())
            log_p[fold == k] = self._log_probabilities(self.points.coordinates(test), model)
        return log_p

    @cached_property
    def is_held_out(self) -> Mask:
        """Known points that can be held out: no examples of pairs, where answers may be wrong."""
        if self.MATCH or not self.error:
            return np.ones(len(self.known), dtype=bool)
        examples = {point for one in self.answers for point in one.choices}
        return ~np.isin(self.known, [*examples, *self.naming])

    @cached_property
    def doubtful(self) -> list[int]:
        """Places of answers that are more likely wrong than right, the least likely first."""
        # By models that did not see the point.
        if self.model is None or len(self.known) < LEAST_KNOWN:
            return []
        right = self._chance_right()
        return [k for k in np.argsort(right, kind="stable").tolist() if right[k] < 0.5]

    def _chance_right(self) -> Array:
        """Probability that each answer is right."""
        right = np.ones(len(self.answers))
        between = np.isin(self.pairs.ends, self.known).all(axis=1)
        found = self._propagate(self.held_out, LEAST_ERROR).right
        np.minimum.at(right, self.pairs.answers[between], found)
        return right

    @cached_property
    def by_answers(self) -> Array:
        """Probability of each class of the known points, by the answers alone."""
        if not self.error:
            return np.eye(len(self.numbers))[self.column]
        equal = np.full((len(self.known), len(self.numbers)), -np.log(len(self.numbers)))
        return self._propagate(equal).posteriors

    def _propagate(self, log_p: Array, least_error: float = 0.0) -> Propagation:
        """Posteriors of the known points and of the answers between them, from probabilities."""
        ends, signs, annotators, _ = self.pairs
        inside = np.isin(ends, self.known).all(axis=1)
        order = np.argsort(self.known)
        local = order[np.searchsorted(self.known, ends[inside], sorter=order)]
        labels = np.zeros(len(self.known), dtype=np.int64)
        # The founder that names its class is the first point of it.
        labels[np.argmin(self.column)] = self._names[0]
        graph = AnswerGraph.from_answers(local, signs[inside], annotators=annotators[inside], labels=labels)
        rates = {who: max(rate, least_error) for who, rate in self.error_rates.items()}
        factors = AnswerModel.given(rates, graph).factor_graph(graph, len(self.numbers))
        return factors.propagate(log_p, tol=1e-4, max_iter=30)

    @cached_property
    def next_settings(self) -> Settings:
        """Penalty and power by the evidence of the answers so far."""
        if len(self.numbers) < 2 or len({one.sign for one in self.answers if one.sign}) < 2:
            return self.FIRST
        points, y = self._rows(self.naming)
        # The other points tell how points vary.
        rest = np.setdiff1d(self.points.candidates, points)
        others = np.zeros((len(rest), y.shape[1]), dtype=np.int64)
        others[:, 1] = rest
        everything = np.concatenate([points, rest])
        # The evidence chooses, and folds would only cut answers apart.
        cv = check_cv([(np.arange(len(everything)), np.arange(len(everything)))])
        model = PairLogisticRegressionCV(prior_strength=0, error_rate=self.error_rates, cv=cv)
        fit_quietly(model, self.points.coordinates(everything), np.vstack([y, others]))
        return Settings(2 * model.alpha_ * len(np.unique(points)), model.covariance_power_)


def fit_quietly(model: Estimator, X: Array, y: Codes) -> Estimator:
    """Fit without the warnings that few answers bring: of what they say there are intervals."""
    with _FITTING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)
