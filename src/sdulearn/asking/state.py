"""What the answers so far say: classes, error rates, a model and its settings.

A state depends on the answers alone: one that is taken back leaves no trace, and the next question
can be prepared for each possible answer.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.model_selection import check_cv

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import Propagation
from sdulearn.answers.records import PairTable, implied_pairs
from sdulearn.asking.points import Points
from sdulearn.asking.records import Classes, RowAnswer, count_votes, read_classes
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.types import Array, Codes, Indices, Mask, MatrixLike

# Doubtful answers are looked for even where none was found to be wrong.
LEAST_ERROR = 0.05
# Error rate where some answer must be wrong and the estimate is lower.
LEAST_WRONG = 0.01
# Log probability of a class that a model does not know.
NEVER = -30.0
LEAST_KNOWN = 10
# Keeps the logarithm of a probability finite.
_TINY = 1e-300
# One fit at a time: warning filters belong to the whole process.
_FITTING = RLock()
Fitted = TypeVar("Fitted")


class Settings(NamedTuple):
    """How the model is fitted."""

    penalty: float  # added to the sum of the losses
    power: float  # of the covariance in the penalty
    errors: tuple[float, ...] = ()  # error rates by annotator number, estimated from match answers
    sharpness: float = 1.0  # factor of the logits, estimated from match answers


def fit_softmax(
    Z: Array, log_likelihood: Array, penalty: float, start: Array | None = None, tol: float = 1e-3
) -> Array:
    """Minimise -sum_i log sum_k p(k | z_i) L_i(k) + penalty / 2 |coef|^2; a row of coef and intercept a class."""
    n_classes = log_likelihood.shape[1]
    rows = np.column_stack([Z, np.ones(len(Z))])
    columns = np.ascontiguousarray(rows.T)
    # One row per class: sums over classes are then sums of long rows.
    likelihood = np.exp(log_likelihood.T)
    # The intercept is hardly penalised: only so much that it is unique.
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
        return float(np.vdot(penalised, W) / 2 - np.log(total).sum()), (p @ rows + penalised).ravel()

    W = np.zeros((n_classes, rows.shape[1])) if start is None else start
    options = {"maxiter": 500, "gtol": tol, "ftol": 1e-4 * tol}
    result = minimize(value_and_gradient, W.ravel(), jac=True, method="L-BFGS-B", options=options)
    return result.x.reshape(n_classes, -1)


@dataclass(eq=False)
class State:
    """What answers say; rules that differ for match questions are replaced by ``MatchState``."""

    MOST_CHOICES: ClassVar[int | None] = 1  # of a question; None: an example of every class
    FIRST = Settings(3.0, 1.0)  # of the model, until there are answers to choose by
    N_FOLDS = 10  # in which known points are held out
    TOL = 1e-8  # of the model

    points: Points
    answers: tuple[RowAnswer, ...]
    limit: int | None  # number of classes where it is known
    settings: Settings = FIRST
    seeds: tuple[tuple[int, ...], ...] = ()  # points given as examples of the first classes
    before: State | None = None  # of fewer answers: a fit starts from its model

    def __post_init__(self) -> None:
        self.classes = self._read_classes()
        label = self.classes.label
        # Points of known class, the first of each class before its others, and their classes.
        self.known: Indices = np.array(list(label), dtype=np.intp)
        self.known_class: Indices = np.array(list(label.values()), dtype=np.intp)
        self.n_classes = len(self.classes.members)
        self.founders = [members[0] for members in self.classes.members.values()]
        # They name the classes: of two, whatever differs from the first founder is the second.
        self.anchors = self.founders[:1] if self.limit == 2 else self.founders
        asked = ((one.left, *one.choices) for one in self.answers)
        self.asked = {point for points in (*self.seeds, *asked) for point in points}
        self.kinds = Counter(one.question.why for one in self.answers)
        # Points up to the last random one, in the random order, are a random sample.
        random = [one.left for one in self.answers if one.question.why == "random"]
        self.n_sampled = int(self.points.position[random].max(initial=-1)) + 1

    def _read_classes(self) -> Classes:
        return read_classes(self.answers, self.limit, self.seeds)

    def columns_of(self, before: State) -> Indices:
        """Number that each class of an earlier state has now, by its founder."""
        return np.array([self.classes.label.get(point, 0) for point in before.founders])

    @cached_property
    def given_up(self) -> set[int]:
        """Points without a class that somebody was unsure about, or that fit no class."""
        unsure = {point for one in self.answers if one.is_unsure for point in one.question.items}
        every = self.classes.members.keys()
        stuck = {point for point, out in self.classes.excluded.items() if out >= every}
        return (unsure | stuck) - self.classes.label.keys()

    @cached_property
    def trusted(self) -> set[int]:
        """Points that may be shown as examples: founders, and points confirmed twice beside one."""
        # A wrong answer about an example spoils all answers that rest on it.
        trusted = set(self.anchors)
        votes = count_votes(self.answers)
        for one in self.answers:
            counts = votes[one.question.key]
            confirmed = any(2 * n - counts.total() >= 2 for n in counts.values())
            if confirmed and not trusted.isdisjoint((one.left, one.right)):
                trusted |= {one.left, one.right}
        return trusted

    @property
    def unconfirmed(self) -> list[int]:
        """Positions of answers that opened a class and are asked again; pairs open none."""
        return []

    @cached_property
    def pairs(self) -> PairTable:
        """What the answers say about pairs of points."""
        return implied_pairs(self.answers)

    @cached_property
    def error_rates(self) -> dict[int, float]:
        """Share of wrong answers of each annotator, by number; 0 without contradictions."""
        ends, signs, annotators, _ = self.pairs
        _, local = np.unique(ends, return_inverse=True)
        questions = self.pairs.questions
        graph = AnswerGraph.from_answers(local.reshape(-1, 2), signs, annotators=annotators, questions=questions)
        if not graph.contradictory.any():
            return dict.fromkeys(annotators.tolist(), 0.0)
        return {who: max(rate, LEAST_WRONG) for who, rate in AnswerModel.estimate(graph, 2).rates.items()}

    @cached_property
    def error(self) -> float:
        """Share of all answers that are wrong."""
        return sum(self.error_rates[who] for who in self._who.tolist()) / max(len(self._who), 1)

    @property
    def _who(self) -> Indices:
        """Annotators of the answers that `error` is the mean over."""
        return self.pairs.annotators

    @cached_property
    def model(self) -> Array | None:
        """Coefficients of the model of all answers, as from :meth:`fit`; None with one class."""
        if self.n_classes < 2:
            return None
        # Who needs it while another thread prepares it waits for that thread.
        with _FITTING:
            ready: Array | None = vars(self).get("model")
            return self.fit(()) if ready is None else ready

    def fit(self, left_out: Collection[int]) -> Array:
        """Fit without answers about some points; one row per class, coefficients, then intercept."""
        remaining = self.known_class[~np.isin(self.known, list(left_out))]
        joins_unknown = not np.isin(self.pairs.ends, self.known).all()
        if not self.error and not (joins_unknown and len(np.unique(remaining)) == 2):
            return self._fit_labels(left_out)
        # Answers that may be wrong, or that join unknown points, say more than labels do.
        model = self._fit_pairs(self.error_rates, left_out)
        logits = np.append(model.coef_, model.intercept_)
        return np.array([0 * logits, logits])

    def _fit_labels(self, left_out: Collection[int]) -> Array:
        """Fit a softmax to the known points; a class of which none is left has the intercept -inf."""
        used = ~np.isin(self.known, list(left_out))
        columns = np.unique(self.known_class[used])
        Z = self._stretched(self.points.coordinates(self.known[used]))
        likelihood = self.log_likelihood[np.ix_(used, columns)]
        start = None if self._start is None else self._start[columns]
        coefficients = np.zeros((self.n_classes, Z.shape[1] + 1))
        coefficients[:, -1] = -np.inf
        coefficients[columns] = fit_softmax(Z, likelihood, self.settings.penalty, start, self.TOL)
        return coefficients

    @cached_property
    def _start(self) -> Array | None:
        """The model of the earlier state, its classes as they are numbered now."""
        if self.before is None or self.before.model is None:
            return None
        start = np.zeros((self.n_classes, self.before.model.shape[1]))
        start[self.columns_of(self.before)] = self.before.model
        return start

    @property
    def log_likelihood(self) -> Array:
        """Log likelihood of each class for the known points, of shape (n_known, n_classes)."""
        return np.where(np.eye(self.n_classes)[self.known_class], 0.0, NEVER)

    @cached_property
    def estimator(self) -> PairLogisticRegression:
        """The model of all answers as an estimator of the library, in the axes of the points."""
        return self._fit_pairs(self.error_rates)

    def _fit_pairs(self, rates: dict[int, float], left_out: Collection[int] = ()) -> PairLogisticRegression:
        # If all answers are right, labels of the known points add nothing to them.
        labelled = self.anchors if self.error else self.classes.label
        points, y = self._rows([point for point in labelled if point not in left_out], left_out)
        # With two classes the softmax has two coefficient vectors, halves of that of the estimator.
        alpha = self.settings.penalty / (2 if self.n_classes == 2 else 1) / len(np.unique(points))
        model = PairLogisticRegression(alpha, covariance_power=0, n_classes=self.n_classes, error_rate=rates)
        return fit_quietly(model.fit_from_zero, self._stretched(self.points.coordinates(points)), y)

    def _rows(self, labelled: Sequence[int], left_out: Collection[int] = ()) -> tuple[Indices, Codes]:
        """Points and ``y`` of all answers, except about some points, then of labelled points."""
        ends, signs, annotators, answers = self.pairs
        # A point that fits no class would force one more.
        stuck = [point for point in self.given_up if point in self.classes.excluded]
        # The pairs of a question are right or wrong together.
        kept = ~np.isin(answers, answers[np.isin(ends, [*left_out, *stuck]).any(axis=1)])
        n = int(kept.sum())
        points = np.concatenate([ends[kept].ravel(), labelled]).astype(np.intp)
        y = np.zeros((len(points), 5), dtype=np.int64)
        y[: 2 * n, 0] = np.repeat(signs[kept] * np.arange(1, n + 1), 2)
        y[:, 1] = points
        y[: 2 * n, 2] = np.repeat(annotators[kept], 2)
        y[: 2 * n, 4] = np.repeat(self.pairs.questions[kept], 2)
        y[2 * n :, 3] = [self._names[self.classes.label[point]] for point in labelled]
        return points, y

    @property
    def _names(self) -> Sequence[int]:
        """What ``y`` and the estimators call the classes."""
        return (-1, 1) if self.n_classes == 2 else range(1, self.n_classes + 1)

    def _stretched(self, coordinates: Array) -> Array:
        """Coordinates in which the plain ridge penalises by the covariance of all points."""
        return coordinates @ self.points.stretch(self.settings.power)

    def log_probabilities(self, points: Indices) -> Array:
        """Log probability of each class for some points, one column per class."""
        return self._log_probabilities(self.points.coordinates(points), self.model)

    @cached_property
    def of_candidates(self) -> Array:
        """Log probability of each class for the candidates."""
        return self._log_probabilities(self.points.candidate_coordinates, self.model)

    def _log_probabilities(self, coordinates: Array, model: Array | None) -> Array:
        if model is None:
            return np.zeros((len(coordinates), self.n_classes))
        logits = self._stretched(coordinates) @ model[:, :-1].T + model[:, -1]
        return np.nan_to_num(log_softmax(self.settings.sharpness * logits, axis=1), neginf=NEVER)

    @cached_property
    def held_out(self) -> Array:
        """Log probabilities for the known points, by models without answers about them."""
        log_p = self.log_probabilities(self.known)
        places = np.flatnonzero(self.can_be_held_out)
        log_p[places] = self.hold_out(places)
        return log_p

    def hold_out(self, places: Indices) -> Array:
        """Log probabilities for the known points at some places, by cross-validation."""
        log_p = np.empty((len(places), self.n_classes))
        fold = np.random.default_rng(0).permutation(len(places)) % self.N_FOLDS
        for k in np.unique(fold):
            test = self.known[places[fold == k]]
            model = self.fit(test.tolist())
            log_p[fold == k] = self._log_probabilities(self.points.coordinates(test), model)
        return log_p

    @cached_property
    def can_be_held_out(self) -> Mask:
        """Which known points can be: not the examples, where answers may be wrong."""
        if not self.error:
            return np.ones(len(self.known), dtype=bool)
        examples = {point for one in self.answers for point in one.choices}
        return ~np.isin(self.known, [*examples, *self.anchors])

    @cached_property
    def doubtful(self) -> list[int]:
        """Positions of answers that are more likely wrong than right, the least likely first."""
        if self.model is None or len(self.known) < LEAST_KNOWN:
            return []
        right = self._chance_right()
        return [k for k in np.argsort(right, kind="stable").tolist() if right[k] < 0.5]

    def _chance_right(self) -> Array:
        """Probability that each answer is right, by models without answers about its points."""
        right = np.ones(len(self.answers))
        between = np.isin(self.pairs.ends, self.known).all(axis=1)
        chances = self._propagate(self.held_out, LEAST_ERROR).right
        np.minimum.at(right, self.pairs.answers[between], chances)
        return right

    @cached_property
    def by_answers(self) -> Array:
        """Probability of each class for the known points, by the answers alone."""
        if not self.error:
            return np.eye(self.n_classes)[self.known_class]
        equal = np.full((len(self.known), self.n_classes), -np.log(self.n_classes))
        return self._propagate(equal).posteriors

    def _propagate(self, log_p: Array, least_error: float = 0.0) -> Propagation:
        """Posteriors of the known points and of the answers between them, given node probabilities."""
        ends, signs, annotators, _ = self.pairs
        inside = np.isin(ends, self.known).all(axis=1)
        order = np.argsort(self.known)
        local = order[np.searchsorted(self.known, ends[inside], sorter=order)]
        labels = np.zeros(len(self.known), dtype=np.int64)
        # The anchor is the first point of the first class.
        labels[np.argmin(self.known_class)] = self._names[0]
        questions = self.pairs.questions[inside]
        graph = AnswerGraph.from_answers(
            local, signs[inside], annotators=annotators[inside], labels=labels, questions=questions
        )
        rates = {who: max(rate, least_error) for who, rate in self.error_rates.items()}
        factors = AnswerModel.given(rates, graph).factor_graph(graph, self.n_classes)
        return factors.propagate(log_p, tol=1e-4, max_iter=30)

    @cached_property
    def next_settings(self) -> Settings:
        """Penalty and power with the largest evidence, by the answers so far."""
        if self.n_classes < 2 or len({one.sign for one in self.answers if one.sign}) < 2:
            return self.FIRST
        points, y = self._rows(self.anchors)
        # The other candidates show how points vary.
        rest = np.setdiff1d(self.points.candidates, points)
        y = np.pad(y, ((0, len(rest)), (0, 0)))
        y[len(points) :, 1] = rest
        # The evidence chooses; folds would only cut answers apart.
        cv = check_cv([(np.arange(len(y)), np.arange(len(y)))])
        model = PairLogisticRegressionCV(error_rate=self.error_rates, cv=cv)
        fit_quietly(model.fit, self.points.coordinates(np.concatenate([points, rest])), y)
        return Settings(2 * model.alpha_ * len(np.unique(points)), model.covariance_power_)


def fit_quietly(fit: Callable[[MatrixLike, Codes], Fitted], X: MatrixLike, y: Codes) -> Fitted:
    """Fit, one thread at a time, without the warnings about few answers: estimates have intervals."""
    with _FITTING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(X, y)
