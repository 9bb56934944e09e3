"""What the answers so far say: classes, error rates, a model and its settings.

A state depends on the answers alone: one that is taken back leaves no trace, and the next question
can be prepared for each possible answer.

Among m choices and "none", a person gives the right answer with probability 1 - e and each other
one with probability e / m; a pair has one choice. So the answers about a point have the likelihood

    L(k) = prod (1 - e if the answer is right when the class is k, else e / m)

where k is its class. A person who has to choose the nearer of two examples, of the classes a and b,
is right with probability 1 - e if k is a or b; else they guess: L(k) has the factor 1/2. The model
is a softmax with the loss -log sum_k p(k | x) L(k): an answer that is certainly right is a label.
:class:`~sdulearn.PairLogisticRegression` has the same likelihood for the pairs of the answer, which
share its question; forced choices imply no pair.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.model_selection import check_cv

from sdulearn.answers.records import implied_pairs, number_annotators
from sdulearn.asking.points import AS_GIVEN, Points
from sdulearn.asking.records import Classes, RowAnswer, read_classes
from sdulearn.errors import InputError, ignored_warnings
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.types import Array, Codes, Indices, Mask, MatrixLike

# Doubtful answers are looked for even where none was found to be wrong.
LEAST_ERROR = 0.05
# The error rate of people about whom the answers tell nothing is at most this, as in an audit.
MOST_WRONG = 0.3
# Probability of what was not seen, at the end of a 95% interval.
UNSEEN = 0.025
# Range of an error rate where some answer must be wrong.
_ERRORS = (0.01, 0.5)
# Prior mean of the error rate, and the number of answers that it counts for.
_USUAL_ERROR = 0.05
_SHRUNK_BY = 10.0
_EM_STEPS = 20
# Steps after which the probabilities of two classes are sharpened anew.
_SHARPEN_EVERY = 5
# Error rates over which the probabilities of asked points are averaged, and folds in which these are held out.
_RATES = (0.01, 0.03, *np.arange(0.06, 0.47, 0.04).tolist())
_FOLDS_OF_ASKED = 20
# Log probability of a class that a model does not know.
NEVER = -30.0
# Number of examples where one of them has to be chosen.
FORCED = 2
LEAST_KNOWN = 10
# Candidates, the largest penalty first; columns are standardised, or as they are given.
_PENALTIES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
_POWERS = (0.0, AS_GIVEN)
# The smallest penalty of two classes, if some answer is wrong.
_LEAST_PENALTY = 1.0
# Only penalties within this factor of an earlier choice are tried.
_NEAR = 12.0
# Range of the log of the factor of the logits.
_SHARPNESS = (-4.0, 1.0)
# The search ends when the held-out likelihood has fallen this often in a row.
_FALLS = 2
# Keeps the logarithm of a probability finite.
_TINY = 1e-300
# One model at a time.
_FITTING = RLock()
Fitted = TypeVar("Fitted")


class Settings(NamedTuple):
    """How the model is fitted."""

    penalty: float  # added to the sum of the losses
    power: float  # of the covariance in the penalty
    errors: tuple[float, ...] = ()  # error rates by annotator number, if some answer is wrong
    sharpness: float = 1.0  # factor of the logits, for more than two classes


def first_settings(limit: int | None, n_choices: int | None = None) -> Settings:
    """Return the settings until there are answers to choose by."""
    return Settings(3.0, 1.0) if _is_binary(limit, n_choices) else Settings(1.0, 0.0)


def _is_binary(limit: int | None, n_choices: int | None) -> bool:
    """Whether settings are chosen by the evidence of pairs of two classes, which forced choices do not imply."""
    return limit == 2 and n_choices != FORCED


class Votes(NamedTuple):
    """Answers about points of known class."""

    right: Mask  # (n_votes, n_classes), whether the answer is right if the point is of a class
    guess: Mask  # whether it is a guess then: a forced choice between two other classes
    places: Indices  # (n_votes,), positions of the answers
    rows: Indices  # rows of the points in `known`
    n_wrong: Indices  # number of wrong answers that there were
    annotators: Indices  # numbers of the annotators


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
    """What answers say, with two classes or more, by questions with one choice or one of each class."""

    points: Points
    answers: tuple[RowAnswer, ...]
    limit: int | None  # number of classes where it is known
    settings: Settings  # by the answers of an earlier stage
    seeds: tuple[tuple[int, ...], ...] = ()  # points given as examples of the first classes
    before: State | None = None  # of fewer answers: a fit starts from its model
    n_choices: int | None = None  # how many examples a question shows; None: one of every class

    def __post_init__(self) -> None:
        # Two classes and more were tuned, and their intervals calibrated, apart.
        self.is_binary = _is_binary(self.limit, self.n_choices)
        self.n_folds, self._tol = (10, 1e-8) if self.is_binary else (5, 1e-3)
        self.classes = self._read_classes()
        label = self.classes.label
        # Points of known class, the first of each class before its others, and their classes.
        self.known: Indices = np.array(list(label), dtype=np.intp)
        self.known_class: Indices = np.array(list(label.values()), dtype=np.intp)
        self.n_classes = len(self.classes.members)
        self.founders = [members[0] for members in self.classes.members.values()]
        # They name the classes: of two, whatever differs from the first founder is the second.
        named = self.founders[:1] if self.is_binary else self.founders
        self.anchors = list(dict.fromkeys([*named, *(point for points in self.seeds for point in points)]))
        asked = (answer.question.items for answer in self.answers)
        self.asked = {point for points in (*self.seeds, *asked) for point in points}
        self.kinds = Counter(answer.question.why for answer in self.answers)
        # Points up to the last random one, in the random order, are a random sample.
        random = [answer.left for answer in self.answers if answer.question.why == "random"]
        self.n_sampled = int(self.points.position[random].max(initial=-1)) + 1
        if self.n_choices == FORCED < self.n_classes:
            # A choice between two of more classes does not tell the class of a random point.
            self.n_sampled = 0

    def _read_classes(self) -> Classes:
        """Read the classes; where answers about a point disagree, the majority decides.

        A point with forced choices alone is in the class chosen most often, for now.
        """
        classes = read_classes(self.answers, self.limit, self.seeds)
        about: dict[int, list[RowAnswer]] = defaultdict(list)
        for answer in self.answers:
            if answer.sign:
                about[answer.left].append(answer)
        wrong = {answer for group in about.values() for answer in _outvoted(group, classes)}
        if wrong:
            classes = read_classes([answer for answer in self.answers if answer not in wrong], self.limit, self.seeds)
        chosen: dict[int, Counter[int]] = defaultdict(Counter)
        for answer in self.answers:
            number = None if answer.nearer is None else classes.label.get(answer.choices[answer.nearer])
            if number is not None and answer.left not in classes.label:
                chosen[answer.left][number] += 1
        for point, counts in chosen.items():
            classes.join(point, counts.most_common(1)[0][0])
        self.guessed = set(chosen)
        return classes

    def columns_of(self, before: State) -> Indices:
        """Number that each class of an earlier state has now, by its founder."""
        return np.array([self.classes.label.get(point, 0) for point in before.founders])

    @cached_property
    def given_up(self) -> set[int]:
        """Points without a class that somebody was unsure about, or that fit no class."""
        unsure = {point for answer in self.answers if answer.is_unsure for point in answer.question.items}
        every = self.classes.members.keys()
        stuck = {point for point, out in self.classes.excluded.items() if out >= every}
        return (unsure | stuck) - self.classes.label.keys()

    @cached_property
    def votes(self) -> Votes:
        """Answers about points of known class, beside others of known class."""
        row = {point: k for k, point in enumerate(self.known.tolist())}
        numbers = number_annotators(self.answers)
        votes: list[tuple[int, int, int, int]] = []
        in_classes: list[bool] = []
        named: list[set[int]] = []
        undecided: dict[int, set[int]] = {}
        for place, answer in enumerate(self.answers):
            point = answer.left
            if len(answer.choices) == 1 and row.get(answer.right, -1) > row.get(point, -1):
                # A pair is about the point whose class follows from that of the other.
                point = answer.right
            classes = _named(answer, point, self.classes)
            is_forced = answer.nearer is not None and len(classes) == 2
            if point not in row or not classes or not (answer.sign or is_forced):
                continue
            if answer.nearer is not None:
                undecided[len(votes)] = classes
                classes = {self.classes.label[answer.choices[1 - answer.nearer]]}
            in_classes.append(answer.sign > 0)
            named.append(classes)
            votes.append((place, row[point], 1 if is_forced else len(answer.choices), numbers[answer.annotator]))
        right = np.zeros((len(votes), self.n_classes), dtype=bool)
        guess = np.zeros_like(right)
        for k, classes in enumerate(named):
            right[k, list(classes)] = True
        right ^= ~np.array(in_classes, dtype=bool)[:, None]
        for k, classes in undecided.items():
            guess[k] = ~np.isin(np.arange(self.n_classes), list(classes))
        return Votes(right, guess, *np.array(votes, dtype=np.intp).reshape(-1, 4).T)

    @cached_property
    def _agrees(self) -> Mask:
        """Whether each vote agrees with the class of its point."""
        rows = self.votes.rows
        return self.votes.right[np.arange(len(rows)), self.known_class[rows]]

    @cached_property
    def _balance(self) -> dict[int, float]:
        """Votes for the class of each known point, minus those against it."""
        balance = np.bincount(self.votes.rows, np.where(self._agrees, 1, -1), minlength=len(self.known))
        return dict(zip(self.known.tolist(), balance.tolist(), strict=True))

    @cached_property
    def trusted(self) -> set[int]:
        """Points that may be shown as examples: those that name the classes, and those with a balance of two."""
        # A wrong answer about an example spoils all answers that rest on it.
        return {*self.anchors, *(point for point, balance in self._balance.items() if balance >= 2)} - self.guessed

    @cached_property
    def unconfirmed(self) -> list[int]:
        """Answers that opened a class, if some answer is wrong: two more must be for it than against."""
        if self.is_binary or not self.error:
            return []
        first = {answer.left: k for k, answer in reversed(list(enumerate(self.answers))) if answer.sign}
        return [first[point] for point in self.founders if point in first and self._balance[point] < 2]

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
    def error(self) -> float:
        """Share of all votes that are wrong."""
        return float(self._rates[self.votes.annotators].sum() / max(len(self.votes.rows), 1))

    @cached_property
    def log_likelihood(self) -> Array:
        """Log likelihood of each class for the known points, of shape (n_known, n_classes)."""
        return self._scaled_likelihood(1.0)

    def _scaled_likelihood(self, factor: float) -> Array:
        """The same with other error rates, by a factor."""
        likelihood = np.where(np.eye(self.n_classes)[self.known_class], 0.0, NEVER)
        unsure = ~np.isin(self.known, self.anchors) if self.error else np.isin(self.known, list(self.guessed))
        if unsure.any():
            likelihood[unsure] = self.likelihood_at(np.clip(factor * self._rates, *_ERRORS))[unsure]
        return likelihood

    def likelihood_at(self, rates: Array) -> Array:
        """The same by the votes alone, at error rates above 0 by annotator number."""
        right, guess, _, rows, n_wrong, annotators = self.votes
        error = rates[annotators]
        log_l = np.where(right, np.log1p(-error)[:, None], np.log(error / n_wrong)[:, None])
        total = np.zeros((len(self.known), self.n_classes))
        np.add.at(total, rows, np.where(guess, np.log(0.5), log_l))
        return np.maximum(total, NEVER)

    def by_answers(self, factor: float = 1.0) -> Array:
        """Probability of each class for the known points, by the answers alone; with other error rates, by a factor."""
        return softmax(self._scaled_likelihood(factor), axis=1)

    def at_most_wrong(self) -> Array:
        """Return the same where no answer contradicts another, at the highest error rate that repeats leave possible.

        If answers are wrong with probability e, two about one point differ with probability 2 e (1 - e) or more.
        """
        n_repeated = len(self.votes.rows) - len(np.unique(self.votes.rows))
        differ = 1 - UNSEEN ** (1 / n_repeated) if n_repeated else 1.0
        rate = min((1 - np.sqrt(max(1 - 2 * differ, 0.0))) / 2, MOST_WRONG)
        return softmax(self.likelihood_at(np.full(len(self._rates), rate)), axis=1)

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
        """Fit a softmax without some known points; a class of which none is left has the intercept -inf."""
        used = ~np.isin(self.known, list(left_out))
        columns = np.unique(self.known_class[used])
        Z = self._stretched(self.points.coordinates(self.known[used]))
        likelihood = self.log_likelihood[np.ix_(used, columns)]
        start = None if self._start is None else self._start[columns]
        coefficients = np.zeros((self.n_classes, Z.shape[1] + 1))
        coefficients[:, -1] = -np.inf
        coefficients[columns] = fit_softmax(Z, likelihood, self.settings.penalty, start, self._tol)
        return coefficients

    @cached_property
    def _start(self) -> Array | None:
        """The model of the earlier state, its classes as they are numbered now."""
        if self.before is None or self.before.model is None:
            return None
        start = np.zeros((self.n_classes, self.before.model.shape[1]))
        start[self.columns_of(self.before)] = self.before.model
        return start

    @cached_property
    def estimator(self) -> PairLogisticRegression:
        """The model of all answers as an estimator of the library, in the axes of the points."""
        # If all answers are right, labels of the known points add nothing to them.
        sure = [point for point in self.classes.label if point not in self.guessed]
        points, y = self._rows(self.anchors if self.error else sure)
        # With two classes the softmax has two coefficient vectors, halves of that of the estimator.
        alpha = self.settings.penalty / (2 if self.n_classes == 2 else 1) / len(np.unique(points))
        model = PairLogisticRegression(alpha, covariance_power=0, n_classes=self.n_classes, error_rate=self.error_rates)
        Z = self._stretched(self.points.coordinates(points))
        try:
            fit_quietly(model.fit_from_zero, Z, y)
        except InputError:
            # Answers about points without a class contradict each other, which no vote shows.
            model.error_rate = dict.fromkeys(self.error_rates, _ERRORS[0])
            fit_quietly(model.fit_from_zero, Z, y)
        if (self.error or self.guessed) and self.model is not None:
            # By labels up to names, which says more than pairs where answers may be wrong, and takes forced choices.
            W = np.diff(self.model, axis=0) if self.n_classes == 2 else self.model
            model.coef_, model.intercept_ = W[:, :-1].copy(), W[:, -1].copy()
        return model

    def _rows(self, labelled: Sequence[int]) -> tuple[Indices, Codes]:
        """Points and ``y`` of all answers, then of labelled points."""
        pairs = implied_pairs(self.answers)
        ends, signs, annotators, answers = pairs
        # A point that fits no class would force one more.
        stuck = [point for point in self.given_up if point in self.classes.excluded]
        # The pairs of a question are right or wrong together.
        kept = ~np.isin(answers, answers[np.isin(ends, stuck).any(axis=1)])
        n = int(kept.sum())
        points = np.concatenate([ends[kept].ravel(), labelled]).astype(np.intp)
        y = np.zeros((len(points), 5), dtype=np.int64)
        y[: 2 * n, 0] = np.repeat(signs[kept] * np.arange(1, n + 1), 2)
        y[:, 1] = points
        y[: 2 * n, 2] = np.repeat(annotators[kept], 2)
        y[: 2 * n, 4] = np.repeat(pairs.questions[kept], 2)
        names = (-1, 1) if self.n_classes == 2 else range(1, self.n_classes + 1)
        y[2 * n :, 3] = [names[self.classes.label[point]] for point in labelled]
        return points, y

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
        return self.hold_out(np.arange(len(self.known)))

    def hold_out(self, rows: Indices, n_folds: int | None = None) -> Array:
        """Log probabilities for some of the known points, by cross-validation."""
        log_p = np.empty((len(rows), self.n_classes))
        fold = np.random.default_rng(0).permutation(len(rows)) % (n_folds or self.n_folds)
        for k in np.unique(fold):
            test = self.known[rows[fold == k]]
            log_p[fold == k] = self._log_probabilities(self.points.coordinates(test), self.fit(test.tolist()))
        return log_p

    @cached_property
    def doubtful(self) -> list[int]:
        """Positions of answers that are more likely wrong than right, the least likely first."""
        if self.model is None or len(self.known) < LEAST_KNOWN:
            return []
        likelihood = self.likelihood_at(np.maximum(self._rates, LEAST_ERROR))
        posterior = np.exp(log_softmax(self.held_out + likelihood, axis=1))
        # Without the only point of a class no model knows that class.
        judged = (np.bincount(self.known_class)[self.known_class] > 1) | bool(self.error)
        rows = self.votes.rows
        chances = np.where(judged[rows], (posterior[rows] * self.votes.right).sum(axis=1), 1.0)
        order = np.argsort(chances, kind="stable")
        return self.votes.places[order[chances[order] < 0.5]].tolist()

    @cached_property
    def posterior(self) -> Array:
        """Probability of each class for the known points, by models without answers about them and by these answers.

        The mean over error rates, by how well they explain how often held-out points agree with their answers.
        """
        certain = np.isin(self.known, [*self.founders[:1], *(point for points in self.seeds for point in points)])

        def unsure(p: Array) -> Array:
            return (len(p) * p + 1) / (len(p) + self.n_classes)

        posterior = unsure(np.eye(self.n_classes)[self.known_class])
        if certain.all() or self.n_classes < 2:
            return posterior
        # A model without the only point of a class knows nothing of that class.
        log_p = np.log(unsure(np.exp(self.hold_out(np.arange(len(self.known)), _FOLDS_OF_ASKED))))
        errors = np.array(self._estimated_errors(log_p))
        relative = errors / errors[self.votes.annotators].mean()
        joint = np.array([log_p + self.likelihood_at(np.clip(rate * relative, *_ERRORS)) for rate in _RATES])
        weight = softmax(logsumexp(joint, axis=2).sum(axis=1))
        # Only rates above the median: a model is rather too sure of points about which somebody errs often.
        weight = np.clip(np.cumsum(weight) - 0.5, 0, weight)
        by_rate = softmax(joint, axis=2)[:, ~certain]
        posterior[~certain] = np.tensordot(weight / weight.sum(), by_rate, 1)
        return posterior

    @cached_property
    def next_settings(self) -> Settings:
        """Settings of the next stage: by the evidence, or by held-out points of more than two classes."""
        return self._by_evidence() if self.is_binary else self._by_folds()

    def _by_evidence(self) -> Settings:
        """Penalty and power with the largest evidence of all answers."""
        if self.n_classes < 2 or len({answer.sign for answer in self.answers if answer.sign}) < 2:
            return first_settings(self.limit, self.n_choices)
        points, y = self._rows(self.anchors)
        # The other candidates show how points vary.
        rest = np.setdiff1d(self.points.candidates, points)
        y = np.pad(y, ((0, len(rest)), (0, 0)))
        y[len(points) :, 1] = rest
        # The evidence chooses; folds would only cut answers apart.
        cv = check_cv([(np.arange(len(y)), np.arange(len(y)))])
        model = PairLogisticRegressionCV(error_rate=self.error_rates, cv=cv)
        fit_quietly(model.fit, self.points.coordinates(np.concatenate([points, rest])), y)
        settings = Settings(2 * model.alpha_ * len(np.unique(points)), model.covariance_power_)
        if not self.error:
            return settings
        # Answers that are mostly noise fit any model, also one that is sure of itself.
        errors = self._estimated_errors(self.held_out)
        return settings._replace(penalty=max(settings.penalty, _LEAST_PENALTY), errors=errors)

    def _by_folds(self) -> Settings:
        """Penalty, power and sharpness by the likelihood of held-out points."""
        size = np.bincount(self.known_class)[self.known_class]
        order = np.lexsort((np.random.default_rng(0).permutation(len(size)), self.known_class))
        fold = np.empty(len(size), dtype=np.intp)
        fold[order] = np.arange(len(size)) % self.n_folds
        fold[size < 2] = -1
        if self.n_classes < 2 or (fold >= 0).sum() < LEAST_KNOWN:
            return first_settings(self.limit, self.n_choices)
        near = _NEAR if self.settings != first_settings(self.limit, self.n_choices) else np.inf
        penalties = [penalty for penalty in _PENALTIES if 1 / near < penalty / self.settings.penalty < near]
        tried = [step for power in _POWERS for step in self._path(power, fold, penalties)]
        _, settings, logits = max(tried, key=lambda step: step[0])
        if not self.error:
            return settings
        errors = self._estimated_errors(log_softmax(settings.sharpness * logits, axis=1), fold >= 0)
        return settings._replace(errors=errors)

    def _path(self, power: float, fold: Indices, penalties: list[float]) -> list[tuple[float, Settings, Array]]:
        """Held-out log likelihood, settings and held-out logits for each penalty, until it falls."""
        Z = self.points.coordinates(self.known) @ self.points.stretch(power)
        path: list[tuple[float, Settings, Array]] = []
        models: list[Array | None] = [None] * self.n_folds
        for penalty in penalties:
            logits = np.zeros_like(self.log_likelihood)
            for k in range(self.n_folds):
                test = fold == k
                W = fit_softmax(Z[~test], self.log_likelihood[~test], penalty, models[k])
                logits[test] = Z[test] @ W[:, :-1].T + W[:, -1]
                models[k] = W
            score, sharpness = _sharpened(logits[fold >= 0], self.log_likelihood[fold >= 0])
            path.append((score, Settings(penalty, power, sharpness=sharpness), logits))
            scores = [step[0] for step in path]
            if len(scores) > _FALLS and max(scores) > max(scores[-_FALLS:]):
                break
        return path

    def _estimated_errors(self, log_p: Array, counted: Mask | None = None) -> tuple[float, ...]:
        """Error rates by EM on held-out probabilities, each shrunk towards the rate of all."""
        right, _, _, rows, _, annotators = self.votes
        used = np.ones(len(rows), dtype=bool) if counted is None else counted[rows]
        who = annotators[used]
        n = np.bincount(who, minlength=int(annotators.max()) + 1)
        rates = np.full(len(n), _USUAL_ERROR)
        logits = log_p
        for step in range(_EM_STEPS):
            if self.is_binary and step % _SHARPEN_EVERY == 0:
                # Else a model that is too sure of itself makes all answers noise, which leaves it as it is.
                _, factor = _sharpened(logits, self.likelihood_at(rates), pull=1.0)
                log_p = log_softmax(factor * logits, axis=1)
            posterior = np.exp(log_softmax(log_p + self.likelihood_at(rates), axis=1))
            wrong = 1 - (posterior[rows] * right).sum(axis=1)
            sums = np.bincount(who, wrong[used], minlength=len(n))
            of_all = (sums.sum() + _SHRUNK_BY * _USUAL_ERROR) / (n.sum() + _SHRUNK_BY)
            rates = (sums + _SHRUNK_BY * of_all) / (n + _SHRUNK_BY)
        return tuple(np.clip(rates, *_ERRORS).tolist())


def fit_quietly(fit: Callable[[MatrixLike, Codes], Fitted], X: MatrixLike, y: Codes) -> Fitted:
    """Fit without the warnings about few answers: estimates have intervals."""
    with ignored_warnings(Warning):
        return fit(X, y)


def _sharpened(logits: Array, log_likelihood: Array, pull: float = 0.0) -> tuple[float, float]:
    """Log likelihood of held-out points at the best factor of their logits, pulled towards 1, and that factor."""
    # Points are chosen because the model is unsure of them, which would favour too large a penalty.
    # With a free factor, a penalty is judged by how it ranks the classes.

    def loss(log_factor: float) -> float:
        log_p = log_softmax(np.exp(log_factor) * logits, axis=1)
        return pull * log_factor**2 / 2 - float(logsumexp(log_p + log_likelihood, axis=1).sum())

    best = minimize_scalar(loss, bounds=_SHARPNESS, method="bounded", options={"xatol": 0.01})
    return -float(best.fun), float(np.exp(best.x))


def _named(answer: RowAnswer, point: int, classes: Classes) -> set[int]:
    """Classes that an answer puts a point into, or else excludes it from."""
    others = {*answer.question.items} - {point}
    if answer.picked is not None and len(answer.choices) > 1:
        others = {answer.picked}
    return {classes.label[other] for other in others if other in classes.label}


def _outvoted(about: list[RowAnswer], classes: Classes) -> list[RowAnswer]:
    """The answers about a point that are wrong if the majority of them is right."""
    if len(about) < 2:
        return []
    point = about[0].left
    named = [_named(answer, point, classes) for answer in about]
    own = classes.label.get(point)
    opened = own if own is not None and classes.members[own][0] == point else None

    def is_right(k: int, number: int | None) -> bool:
        return (number in named[k]) == (about[k].sign > 0)

    meant = []
    for k, answer in enumerate(about):
        rest = list(named[k]) if answer.sign > 0 else [c for c in classes.members if c not in named[k]]
        # None is a class that was not shown; where all are found it may be the only one left.
        known = answer.sign > 0 or (classes.complete and len(rest) == 1)
        meant.append(next(iter(rest), None) if known else opened)
    votes = {number: sum(is_right(k, number) for k in range(len(about))) for number in meant}
    if len(votes) > 1 and 2 * votes.get(opened, len(about)) < len(about):
        # A class that most answers deny is not opened.
        del votes[opened]
    # The first answer wins a tie.
    best = max(votes, key=votes.__getitem__)
    return [answer for k, answer in enumerate(about) if not is_right(k, best)]
