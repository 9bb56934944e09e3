"""Error rates of annotators, by EM.

An answer of annotator a is right with probability 1 - e_a, whatever the two classes are. With its weight w:

    P(answer | classes of its points) = (1 - e_a)^w  if it is right,  e_a^w  if it is wrong      (1)

Contradictions tell the rates, by EM for the likelihood of all answers under a Beta prior:

    e_a  <-  (m mu_a + sum of P(wrong | all answers) over answers of a) / (m + their number)     (2)

mu_a is the rate of all others, shrunk to a small one; :func:`shrink` takes the mean over m. No answer
is certain: where nothing tells a rate it is the mean of the prior, and its interval 0 to 1/2. The EM
is in :class:`RateLikelihood`, each likelihood in a subclass with its own E step.

With two classes the likelihood is that of all answers on cycles. A model that has not seen the
answers about a point predicts its class, too, but may be wrong:

    P(c = +1) = (1 - b) logistic(t z) + b / 2                                                    (3)

with the likeliest share b of blind points and scale t. For a loose pair, b and an error rate common
to all annotators have nearly the same effect: the interval of a rate that only a model checks reaches
down to 0, and the estimate is the rate at b = 0.

With more classes a question is truly "same" with some probability s, and its answers are wrong independently:

    P(answers to a question) = s prod_{same} (1 - e_a) prod_{different} e_a
                             + (1 - s) prod_{same} e_a prod_{different} (1 - e_a)                (4)

the model of Dawid and Skene [1]_, for questions with several answers or about two labelled points.
Cycles are used where nothing else explains a contradiction, with all classes equally likely. A person whom nothing
else checks is judged by a model that has not seen the answers. With the probability A by the model that all are right,
and O outcomes of the question (2 of a pair),

    P(answers to a question) = (1 - g) A + g / O,   g = e_a O / (O - 1)                          (5)

Where annotator a states to be right with probability c, and r_c is the share of all answers with this c that are
right, they are right with

    logit P(right) = alpha_a + beta_a logit(r_c),   alpha_a ~ N(0, 1), beta_a ~ N(1, 1/4)        (6)

estimated from answers that others can check; r_c counts c as 30 answers, so that without any, c is taken as stated.

References
----------
.. [1] Dawid & Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
   Applied Statistics 28 (1979).
.. [2] Varadhan & Roland, "Simple and globally convergent methods for accelerating the convergence
   of any EM algorithm", Scandinavian Journal of Statistics 35 (2008).
.. [3] Louis, "Finding the observed information matrix when using the EM algorithm", Journal of the
   Royal Statistical Society B 44 (1982).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import betaln, expit, log_expit, logit, softmax
from scipy.stats import beta

from sdulearn.answers.graph import AnswerGraph, connect, find_core, number_questions, sum_by
from sdulearn.answers.propagate import ROUGH_TOL, FactorGraph, Propagation, careless_share, log_factors
from sdulearn.answers.two_classes import CERTAIN, TwoClassNetwork
from sdulearn.types import Array, Codes, Mask

# The prior: one wrong answer in fifty, with the weight of 30 answers; a stated certainty has that weight, too. One
# contradiction among few answers leaves the rate of a single annotator at 5%.
PRIOR_RATE = 0.02
PRIOR_ANSWERS = 30.0
# Values of m in equation (2) and their prior chances: the first is the likeliest until there are
# many contradictions or annotators differ.
_STRENGTHS = np.array([PRIOR_ANSWERS, 16.0, 8.0, 4.0, 2.0])
_CHANCES = np.array([20.0, 1.0, 1.0, 1.0, 1.0]) / 24
_WEAKEST = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
# Where estimates of a rate begin, and the rate of the models that judge answers before any is known. A second round, at
# the rates that the first finds, gave no better models of chains, trees and shared answers, 5 and 15% wrong.
FIRST_RATE = 0.15
# Range of rates.
LOWEST = 1e-4
HIGHEST = 0.5
# Answers that are wrong no more often than this are seldom wrong.
SELDOM = 0.05
# An interval of this width tells nothing.
WIDE = 0.4
# Half of the 95% quantile of chi^2 with one degree of freedom.
DROP = 1.92

# Rates at which a profile is computed.
_GRID = np.array([LOWEST, 0.005, 0.015, 0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3, 0.38, 0.44, HIGHEST])
# The probabilities of asked points are means over rates at these quantiles: a model explains the answers that it has
# learned from too well, and rates below the median would make it too sure.
_ABOVE_MEDIAN = 0.5 + (np.arange(7) + 0.5) / 14
# The longest step of squared extrapolation.
_LONGEST_LEAP = 8.0
# With more answers times classes on cycles, propagation would take minutes; and intervals are not profiles, either, if
# there are as many times annotators.
_MOST_PROPAGATED = 20_000
# With more annotators than this intervals are not profiles: each would take EM for all the others.
MAX_PROFILED = 10
# A rate that all people have in common and only a model checks is at most this: a bad model would explain all answers
# by errors.
_MAX_BY_MODEL = 0.1
# Scales t that are tried in equation (3), and where the share b begins.
SCALES = np.array([0.25, 0.5, 0.75, 1.0, 1.4, 2.0])
_BLIND = 0.1
# Repeated questions: EM begins at each of these rates, and the best end is kept.
_FIRST_RATES = np.array([PRIOR_RATE, 0.25])
# Certainties: the largest that is believed, steps of EM, and alpha and beta in equation (6).
_SUREST = 0.99
_SOFT_ITER = 30
_ALPHA, _BETA = (grid.ravel() for grid in np.meshgrid(np.linspace(-3, 3, 25), np.linspace(0, 2, 17)))


def shrink(wrong: Array, counts: Array, chances: Array | None) -> Array:
    """Return equation (2), the mean over all m, or without a prior; annotators on the last axis."""
    if chances is None:
        return np.clip(wrong / np.maximum(counts, 1e-12), LOWEST, HIGHEST)
    a, m = _prior_answers(wrong, counts)
    share = chances.reshape(m.shape)
    return np.clip((share * (a + wrong) / (m + counts)).sum(axis=0), LOWEST, HIGHEST)


def chances_of_strengths(wrong: Array, counts: Array) -> Array:
    """Return the posterior chances of all m by the beta-binomial counts of wrong answers."""
    a, m = _prior_answers(wrong, counts)
    right = np.maximum(counts - wrong, 0.0)
    return softmax((betaln(a + wrong, m - a + right) - betaln(a, m - a)).sum(axis=-1) + np.log(_CHANCES))


def _prior_answers(wrong: Array, counts: Array) -> tuple[Array, Array]:
    """Return ``m mu`` and m of equation (2), along a new first axis."""
    total = wrong.sum(axis=-1, keepdims=True) - wrong
    others = (PRIOR_ANSWERS * PRIOR_RATE + total) / (PRIOR_ANSWERS + counts.sum() - counts)
    m = _STRENGTHS.reshape(-1, *np.ones(wrong.ndim, dtype=int))
    return m * np.clip(others, LOWEST, HIGHEST), m


def profile_ends(grid: Array, values: Array) -> tuple[float, float]:
    """Return the 95% interval of a rate: the wider of a profile and of Jeffreys' quantiles."""
    fine = np.linspace(grid[0], grid[-1], 2001)
    value = PchipInterpolator(grid, values - values.max())(fine)
    inside = fine[value >= value.max() - DROP]
    below = np.cumsum(np.exp(value) / np.sqrt(fine))
    quantiles = fine[np.searchsorted(below / below[-1], [0.025, 0.975])]
    return float(min(inside[0], quantiles[0])), float(max(inside[-1], quantiles[1]))


def likeliest_rate(rates: Sequence[float], values: Sequence[float], n: float) -> tuple[float, float, float]:
    """Return the rate with the largest mean log likelihood of n answers, and its interval.

    It is interpolated between neighbours of the best one. Answers that share points count half. An interval that
    reaches the least or the largest of these rates ends at 0 or 1/2.
    """
    best = min(max(int(np.argmax(values)), 1), len(rates) - 2)
    near = slice(best - 1, best + 2)
    bend, slope, _ = np.polyfit(rates[near], values[near], 2)
    top = -slope / (2 * bend) if bend < 0 else rates[int(np.argmax(values))]
    low, high = profile_ends(np.asarray(rates), n / 2 * np.asarray(values))
    value = float(np.clip(top, rates[best - 1], rates[best + 1]))
    return value, min(low, value) if low > rates[0] else 0.0, max(high, value) if high < rates[-1] else HIGHEST


def above_median(grid: Array, values: Array) -> Array:
    """Return quantiles of the upper half of a likelihood, all rates alike before."""
    fine = np.linspace(grid[0], grid[-1], 2001)
    below = np.cumsum(np.exp(PchipInterpolator(grid, values - values.max())(fine)))
    return np.interp(_ABOVE_MEDIAN, below / below[-1], fine)


class RateColumns(NamedTuple):
    """Error rates of all annotators with their intervals, (n_rates,) each."""

    value: Array
    low: Array
    high: Array
    likely: Array | None = None  # (n_rates, n), quantiles above the median


def of_profiles(rates: Array, profiles: Array) -> RateColumns:
    """Return rates with what their profiles (n_rates, len(_GRID)) say."""
    low, high = np.transpose([profile_ends(_GRID, profile) for profile in profiles])
    return RateColumns(rates, low, high, np.array([above_median(_GRID, profile) for profile in profiles]))


def unknown_rates(n_rates: int) -> RateColumns:
    """Return small rates, interval 0 to 1/2, where nothing tells them (loose pairs of one person)."""
    return RateColumns(np.full(n_rates, PRIOR_RATE), np.zeros(n_rates), np.full(n_rates, HIGHEST))


class _Trial(NamedTuple):
    """Several sets of parameters, along the first axis, and the last E step at each of them."""

    rates: Array  # (n_sets, n_rates), error rates
    share: Array  # (n_sets,), b in equation (3) or s in equation (4)
    scale: Array  # (n_sets,), t in equation (3)
    values: Array  # (n_sets,), log likelihood before the last step
    wrong: Array  # (n_sets, n_rates), expected number of wrong answers before the last step
    spread: Array  # (n_sets, n_rates), its variance


class RateLikelihood:
    """Maximise a likelihood of error rates by EM; a subclass gives the E step, and may give the starts."""

    max_iter = 100
    tol = 1e-3
    n_leaps = 8
    first = np.array([PRIOR_RATE])  # rates where EM begins, one for all or one for each

    @property
    def is_profiled(self) -> bool:
        """Whether intervals are profiles."""
        return len(self.counts) <= MAX_PROFILED

    def __init__(self, counts: Array, known: Mask | np.bool = np.False_) -> None:
        self.counts = counts  # (n_rates,), number of answers that tell each rate
        self.known = known  # (n_rates,), whether a rate stays as it is

    def starts(self) -> _Trial:
        """Return the sets of parameters where EM begins."""
        return self.trial(self.first, 0.5, np.ones(1))

    def expect(self, at: _Trial) -> _Trial:
        """Return the sets with an E step at their parameters, and new shares."""
        raise NotImplementedError

    def trial(self, rates: Array, share: float, scale: Array) -> _Trial:
        """Return sets of parameters before any step."""
        n_sets = len(scale)
        rates = np.broadcast_to(rates, (n_sets, len(self.counts)))
        nothing = np.zeros(rates.shape)
        return _Trial(rates, np.full(n_sets, share), scale, np.zeros(n_sets), nothing, nothing)

    def maximise(self) -> _Trial:
        """Iterate equation (2) to convergence, with chances of the strengths by a first fit."""
        first = self._climb(self.starts(), _WEAKEST)
        return self._climb(self.starts(), chances_of_strengths(first.wrong[0], self.counts))

    def explains(self, best: _Trial) -> bool:
        """Return whether these rates explain the answers better than hardly any wrong answer."""
        start = self.starts()
        values = self._profile(start._replace(rates=np.full_like(start.rates, LOWEST)), np.True_)
        return bool(self._step(best).values[0] - values.max() > DROP)

    def columns(self, best: _Trial) -> RateColumns:
        """Return rates with 95% intervals: by profiles, or with many annotators by Louis' identity [3]_."""
        rates = best.rates[0]
        if not self.is_profiled:
            share = 1 - best.spread[0] / np.maximum(self.counts * rates * (1 - rates), 1e-12)
            return RateColumns(rates, *beta_ends(rates, self.counts * np.clip(share, 0.0, 1.0)))
        return of_profiles(rates, self.profiles(best))

    def profiles(self, best: _Trial) -> Array:
        """Return the log likelihood (n_rates, len(_GRID)) of each rate, maximised over the others."""
        n_rates = len(self.counts)
        fixed = np.repeat(np.eye(n_rates, dtype=bool), len(_GRID), axis=0)
        repeated = _Trial(*(np.repeat(part, len(fixed), axis=0) for part in best))
        trial = repeated._replace(rates=np.where(fixed, np.tile(_GRID, n_rates)[:, None], best.rates))
        return self._profile(trial, fixed).reshape(n_rates, -1)

    def _climb(self, at: _Trial, chances: Array) -> _Trial:
        """Run EM from each set and return the best."""
        for _ in range(self.max_iter):
            fresh = self._step(at, chances)
            moved = np.abs(fresh.rates - at.rates).max()
            at = fresh
            if moved < self.tol:
                break
        best = int(np.argmax(at.values))
        return _Trial(*(part[best : best + 1] for part in at))

    def _profile(self, at: _Trial, fixed: Mask | np.bool) -> Array:
        """Return the likelihood of each set, maximised over all but the ``fixed`` rates; no prior."""
        reached = []
        for _ in range(self.n_leaps):
            first = self._step(at, None, fixed)
            second = self._step(first, None, fixed)
            reached += [first.values, second.values]
            at = _leap(at, first, second)
        return np.max([*reached, self._step(at).values], axis=0)

    def _step(self, at: _Trial, chances: Array | None = None, fixed: Mask | np.bool = np.False_) -> _Trial:
        """Take a step of EM; the ``fixed`` rates stay."""
        expected = self.expect(at)
        rates = np.where(fixed | self.known, at.rates, shrink(expected.wrong, self.counts, chances))
        return expected._replace(rates=rates)


class _Questions:
    """Who answered each question, and how often a question is wrong, as one of its answers is."""

    def __init__(self, graph: AnswerGraph, annotator: Codes) -> None:
        _, first, self.number = np.unique(graph.question, return_index=True, return_inverse=True)
        self.annotator = annotator[first]
        self.weights = graph.weights[first]
        self.n_outcomes = graph.outcomes[first, None]

    def counts(self, n_rates: int) -> Array:
        """Return the number of questions of each annotator."""
        return sum_by(self.annotator, self.weights, n_rates)

    def worst(self, of_answers: Array) -> Array:
        """Return the probability that a question is answered wrongly, by those (n_answers, n_sets) of its answers."""
        wrong = np.zeros((len(self.annotator), of_answers.shape[1]))
        np.maximum.at(wrong, self.number, of_answers)
        return wrong


def _counted(at: _Trial, values: Array, wrong: Array, questions: _Questions) -> _Trial:
    """Return an E step by the probability (n_questions, n_sets) that each question is answered wrongly."""
    weighted = questions.weights[:, None] * wrong
    parts = (weighted, weighted * (1 - wrong))
    n_wrong, spread = (sum_by(questions.annotator, part, at.rates.shape[1]).T for part in parts)
    return at._replace(values=values, wrong=n_wrong, spread=spread)


def _leap(at: _Trial, first: _Trial, second: _Trial) -> _Trial:
    """Extrapolate two steps of EM [2]_, which is slow where the share explains a rate as well."""
    odds = [logit(np.clip(np.column_stack([t.rates, t.share]), LOWEST, 1 - LOWEST)) for t in (at, first, second)]
    step = odds[1] - odds[0]
    bend = odds[2] - odds[1] - step
    norm = np.linalg.norm(bend, axis=1, keepdims=True)
    length = np.clip(np.linalg.norm(step, axis=1, keepdims=True) / np.maximum(norm, 1e-12), 1.0, _LONGEST_LEAP)
    leap = expit(odds[0] + 2 * length * step + length**2 * bend)
    moved = np.clip(leap[:, :-1], LOWEST, HIGHEST)
    return second._replace(rates=np.where(first.rates == at.rates, at.rates, moved), share=leap[:, -1])


def two_class_rates(graph: AnswerGraph, annotator: Codes, n_rates: int, logits: Array | None) -> RateColumns:
    """Return rates and their intervals, by the answers on cycles, or by all beside a model."""
    used = on_cycles(graph) if logits is None else np.ones(graph.n_answers, dtype=bool)
    if not used.any():
        return unknown_rates(n_rates)
    likelihood = TwoClassAnswers(graph, annotator, n_rates, used, logits)
    best = likelihood.maximise()
    rates = best.rates[0]
    if logits is not None and not graph.contradictory.any():
        # Only the model checks the answers: its errors are taken to be as its logits say. The interval allows for
        # points about which it is blind.
        rates = likelihood.without_blind_points().maximise().rates[0]
        # A model tells people apart, but hardly a rate that all have in common.
        rates = rates - max(rates.min() - _MAX_BY_MODEL, 0.0)
        return likelihood.columns(best)._replace(value=rates, low=np.zeros(n_rates))
    return likelihood.columns(best)


class TwoClassAnswers(RateLikelihood):
    """The likelihood of some answers of two classes, with equation (3) beside a model."""

    def __init__(self, graph: AnswerGraph, annotator: Codes, n_rates: int, used: Mask, logits: Array | None) -> None:
        self.blind = logits is not None
        # Labels become log odds, so that the edges do not depend on the rates.
        self.answers = graph.restrict(used, np.zeros(graph.n_points, dtype=bool))
        any_rate = np.full(self.answers.n_answers, 0.1)
        self.network = TwoClassNetwork(FactorGraph.from_answers(self.answers, 2, any_rate))
        self.annotator = annotator[used]
        self.questions = _Questions(self.answers, self.annotator)
        self.logits = logits
        self.labels = np.sign(graph.labels)
        # Messages of the last step, by the number of sets: the next step begins there.
        self.messages: dict[int, Array] = {}
        super().__init__(self.questions.counts(n_rates))

    def without_blind_points(self) -> TwoClassAnswers:
        """Return the likelihood at b = 0."""
        other = copy(self)
        other.blind = False
        other.messages = {}
        return other

    def starts(self) -> _Trial:
        """Return one set for each scale, or one where there is no model."""
        scale = np.ones(1) if self.logits is None else SCALES
        return self.trial(self.first, _BLIND if self.blind else 0.0, scale)

    def expect(self, at: _Trial) -> _Trial:
        """See :class:`RateLikelihood`; the share is that of blind points."""
        says = self._says(at)
        same = self.answers.same[:, None]
        start = self.messages.get(len(at.scale))
        network = self.network.with_factors(
            *log_factors(same, at.rates.T[self.annotator], self.answers.weights[:, None])
        )
        beliefs = network.solve(logit(says), 60 if start is None else 20, ROUGH_TOL, start)
        self.messages[len(at.scale)] = beliefs.messages
        agree = beliefs.agree[self.network.factors.edge]
        if self.blind:
            # Which points are blind, given what the answers say about them.
            known = beliefs.positive / says + (1 - beliefs.positive) / (1 - says)
            at = at._replace(share=np.clip(at.share / 2 * known[self.answers.degree > 0].mean(axis=0), 0.0, 1.0))
        wrong = np.where(same > 0, 1 - agree, agree)
        return _counted(at, beliefs.values.sum(axis=0), self.questions.worst(wrong), self.questions)

    def _says(self, at: _Trial) -> Array:
        """Return equation (3), (n_points, n_sets); labels are certain."""
        if self.logits is None:
            says = np.full((len(self.labels), len(at.scale)), 0.5)
        else:
            says = (1 - at.share) * expit(np.outer(self.logits, at.scale)) + at.share / 2
        labels = np.broadcast_to(self.labels[:, None], says.shape)
        return np.clip(np.where(labels == 0, says, labels > 0), expit(-CERTAIN), expit(CERTAIN))


def beta_ends(rates: Array, n: Array) -> tuple[Array, Array]:
    """Return 95% intervals of rates estimated from n answers, by Jeffreys' prior."""
    a = 0.5 + n * rates
    b = 0.5 + n * (1 - rates)
    return beta.ppf(0.025, a, b), np.minimum(beta.ppf(0.975, a, b), HIGHEST)


def on_cycles(graph: AnswerGraph) -> Mask:
    """Return whether each answer can be checked by others, or by labels."""
    known = np.flatnonzero(graph.labels)
    # A label is an answer about an extra point of class +1.
    labels = np.column_stack([known, np.full(len(known), graph.n_points)])
    return np.isin(np.arange(graph.n_answers), find_core(np.concatenate([graph.ends, labels]), graph.n_points + 1))


def question_rates(graph: AnswerGraph, annotator: Codes, n_rates: int, n_classes: int) -> RateColumns:
    """Return rates and their intervals, with any number of classes."""
    questions = RepeatedQuestions(graph, annotator, n_rates)
    best = questions.maximise()
    repeated = questions.counts > 0
    explained = repeated & questions.explains(best)
    rates = np.where(repeated, best.rates[0], PRIOR_RATE)
    low, high = np.where(repeated, questions.columns(best)[1:3], np.array([[0.0], [HIGHEST]]))
    # A few repeats tell next to nothing about a rate, and explain no contradiction elsewhere.
    unknown = high - low >= WIDE
    _, question = number_questions(graph.ends, graph.n_points)
    once = np.bincount(question)[question] == 1
    unexplained = ~explained[annotator] | (unknown[annotator] & once)
    involved = annotators_in_contradictions(graph, annotator, unexplained)
    if involved.any() and graph.n_answers * n_classes > _MOST_PROPAGATED:
        low, high = np.where(involved, np.array([[0.0], [HIGHEST]]), (low, high))
    elif involved.any():
        used = on_cycles(graph)
        part = graph.restrict(used, graph.labels != 0)
        checked = AnswersOnCycles(part, annotator[used], rates, involved, n_classes)
        best = checked.maximise()
        rates = best.rates[0]
        low, high = np.where(involved & unknown, checked.columns(best)[1:3], (low, high))
    return RateColumns(rates, low, high)


class RepeatedQuestions(RateLikelihood):
    """Equation (4) for the questions that tell rates, equal ones counted."""

    max_iter = 500
    tol = 1e-6

    def __init__(self, graph: AnswerGraph, annotator: Codes, n_rates: int) -> None:
        # An answer of a larger question is not wrong at the rate of its question.
        alone = ~graph.in_larger_question
        graph, annotator = graph.restrict(alone, graph.labels != 0), annotator[alone]
        asked, question = number_questions(graph.ends, graph.n_points)
        votes = np.zeros((2, len(asked), n_rates))
        np.add.at(votes, ((graph.same < 0).astype(int), question, annotator), graph.weights)
        labels = graph.labels[asked]
        truth = np.where((labels != 0).all(axis=1), (labels[:, 0] == labels[:, 1]).astype(float), np.nan)
        used = (np.bincount(question, minlength=len(asked)) > 1) | np.isfinite(truth)
        table = np.column_stack([votes[0], votes[1], np.nan_to_num(truth, nan=-1.0)])[used]
        kinds, times = np.unique(table, axis=0, return_counts=True)
        # Weights of the answers of each annotator to a kind of question (n_kinds, n_rates), how many such
        # questions there are, and the truth by labels: 1 "same", 0 "different", else NaN.
        self.same = kinds[:, :n_rates]
        self.different = kinds[:, n_rates:-1]
        self.times = times.astype(np.float64)
        self.truth = np.where(kinds[:, -1] < 0, np.nan, kinds[:, -1])
        super().__init__(self.times @ (self.same + self.different))

    def starts(self) -> _Trial:
        """Return several rates, at the share of "same" answers."""
        share = float(self.times @ self.same.sum(axis=1)) / max(float(self.counts.sum()), 1.0)
        return self.trial(_FIRST_RATES[:, None], np.clip(share, 0.02, 0.98), np.ones(len(_FIRST_RATES)))

    def expect(self, at: _Trial) -> _Trial:
        """See :class:`RateLikelihood`; the share is that of questions that are truly "same"."""
        wrong = np.log(at.rates)
        right = np.log1p(-at.rates)
        free = np.isnan(self.truth)
        prior = np.where(free, at.share[:, None], np.nan_to_num(self.truth))
        with np.errstate(divide="ignore"):
            same = np.log(prior) + right @ self.same.T + wrong @ self.different.T
            different = np.log1p(-prior) + wrong @ self.same.T + right @ self.different.T
        value = np.logaddexp(same, different)
        posterior = np.exp(same - value)
        n_same = posterior * self.times
        n_wrong = n_same @ self.different + (self.times - n_same) @ self.same
        spread = (n_same * (1 - posterior)) @ (self.same + self.different)
        share = (n_same[:, free].sum(axis=1) + 0.5) / (self.times[free].sum() + 1)
        return at._replace(share=share, values=value @ self.times, wrong=n_wrong, spread=spread)


class AnswersOnCycles(RateLikelihood):
    """The likelihood of answers on cycles, by propagation, for the rates of those ``involved``."""

    max_iter = 15
    # A profile leaves the other rates as they are: propagation is slow.
    n_leaps = 0

    def __init__(self, graph: AnswerGraph, annotator: Codes, rates: Array, involved: Mask, n_classes: int) -> None:
        self.graph = graph
        self.annotator = annotator
        self.n_classes = n_classes
        self.first = np.where(involved, PRIOR_RATE, rates)
        self.questions = _Questions(graph, annotator)
        super().__init__(self.questions.counts(len(rates)), ~involved)

    @property
    def is_profiled(self) -> bool:
        """See :class:`RateLikelihood`."""
        n = self.graph.n_answers * self.n_classes * len(self.counts)
        return super().is_profiled and n <= _MOST_PROPAGATED

    def expect(self, at: _Trial) -> _Trial:
        """See :class:`RateLikelihood`; there is no share."""
        sets = [propagated(self.graph, rates[self.annotator], self.n_classes) for rates in at.rates]
        wrong = 1 - np.column_stack([beliefs.right for beliefs in sets])
        values = np.array([beliefs.value for beliefs in sets])
        return _counted(at, values, self.questions.worst(wrong), self.questions)


class JudgedQuestions(RateLikelihood):
    """Equation (5), with the probabilities A (n_questions,) that all answers to a question are right."""

    def __init__(self, chances: Array, questions: _Questions, n_rates: int) -> None:
        self.chances = chances[:, None]
        self.questions = questions
        super().__init__(questions.counts(n_rates))

    def expect(self, at: _Trial) -> _Trial:
        """See :class:`RateLikelihood`; there is no share."""
        n_outcomes = self.questions.n_outcomes
        by_chance = careless_share(at.rates.T[self.questions.annotator], n_outcomes) / n_outcomes
        chance = (1 - n_outcomes * by_chance) * self.chances + by_chance
        wrong = by_chance / chance * (1 - 1 / n_outcomes)
        return _counted(at, self.questions.weights @ np.log(chance), wrong, self.questions)


def judged_rates(chances: Array, graph: AnswerGraph, annotator: Codes, n_rates: int) -> RateColumns:
    """Return rates and their intervals by equation (5), ``chances`` (len(SCALES), n_questions) by the scale of logits.

    A model that is less sure explains by its own errors what one that is surer explains by wrong answers, and the
    likelihoods of both are close: the estimate is that of the likeliest scale, and the interval allows for all scales.
    """
    questions = _Questions(graph, annotator)
    likelihoods = [JudgedQuestions(row, questions, n_rates) for row in chances]
    best = [likelihood.maximise() for likelihood in likelihoods]
    found = [likelihood.columns(at) for likelihood, at in zip(likelihoods, best, strict=True)]
    likeliest = found[int(np.argmax([at.values[0] for at in best]))]
    low, high = np.min([ends.low for ends in found], axis=0), np.max([ends.high for ends in found], axis=0)
    rates = likeliest.value
    return likeliest._replace(low=np.minimum(low, rates), high=np.maximum(high, rates))


def propagated(graph: AnswerGraph, errors: Array, n_classes: int) -> Propagation:
    """Propagate answers that are wrong at these rates, with all classes equally likely."""
    return FactorGraph.from_answers(graph, n_classes, errors).propagate(tol=ROUGH_TOL, max_iter=60)


def annotators_in_contradictions(graph: AnswerGraph, annotator: Codes, certain: Mask) -> Mask:
    """Return the annotators of ``certain`` answers in groups that contain a contradiction."""
    labelled = np.flatnonzero(graph.labels)
    names, name = np.unique(graph.labels[labelled], return_inverse=True)
    ties = np.column_stack([labelled, graph.n_points + name])
    group = connect(np.concatenate([graph.ends[certain & (graph.same > 0)], ties]), graph.n_points + len(names))
    first, second = group[graph.ends].T
    within = certain & (first == second)
    of_names, times = np.unique(group[graph.n_points :], return_counts=True)
    within &= np.isin(first, np.append(first[within & (graph.same < 0)], of_names[times > 1]))
    return np.isin(np.arange(annotator.max(initial=-1) + 1), annotator[within])


def split_by_certainty(annotators: Codes, certainty: Array) -> tuple[Codes, Codes, Array]:
    """Number answers by person and certainty, from 1; return also person and certainty of each."""
    stated = np.round(np.minimum(certainty, _SUREST), 2)
    parts, part = np.unique(np.column_stack([annotators, stated]), axis=0, return_inverse=True)
    return part.ravel() + 1, parts[:, 0].astype(np.int64), parts[:, 1]


def calibrated_rates(graph: AnswerGraph, person: Codes, stated: Array, n_classes: int) -> dict[int, float]:
    """Return error rates of the parts, which are the annotators of the graph, by equation (6)."""
    checked = graph.restrict(on_cycles(graph), graph.labels != 0)
    part = checked.annotators - 1
    prior = -(_ALPHA**2) / 2 - 2 * (_BETA - 1) ** 2
    _, level = np.unique(stated, return_inverse=True)
    errors = 1 - stated
    for _ in range(_SOFT_ITER):
        right = propagated(checked, errors[part], n_classes).right
        n_right, n_wrong = (sum_by(part, share, len(stated)) for share in (right, 1 - right))
        n_of_level = PRIOR_ANSWERS + np.bincount(level, n_right + n_wrong)
        known = logit((PRIOR_ANSWERS * stated + np.bincount(level, n_right)[level]) / n_of_level[level])
        z = np.outer(_ALPHA, np.ones(len(stated))) + np.outer(_BETA, known)
        of_part = (n_right * log_expit(z) + n_wrong * log_expit(-z)).T
        chance = softmax(sum_by(person, of_part, int(person.max()) + 1) + prior, axis=1)
        errors = expit(-(chance @ _ALPHA)[person] - (chance @ _BETA)[person] * known)
        errors = np.clip(errors, LOWEST, HIGHEST)
    return dict(enumerate(errors.tolist(), 1))
