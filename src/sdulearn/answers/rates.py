"""Error rates of annotators, by EM.

An answer of annotator a says what is true with probability 1 - e_a, whatever the two classes are:

    P(answer | classes of its points) = (1 - e_a)^w  if it is right,  e_a^w  if it is wrong,  w its weight      (1)

Rates follow from contradictions, by EM for the likelihood of all answers under a Beta prior:

    e_a  <-  (m mu_a + sum of P(wrong | all answers) over the answers of a) / (m + their number)                (2)

mu_a is the rate of all others, itself drawn to a small one; :func:`shrink` takes the mean over m.

With two classes the likelihood is that of all answers on cycles. A model that has not seen the
answers about a point says something of it too, but may be wrong itself:

    P(c = +1) = (1 - b) logistic(t z) + b / 2                                                    (3)

with the share b of blind points and the scale t that suit the answers best. For a loose pair b and
a rate of all annotators have one effect: a model can refute a rate, but not assert it.

With more classes a question is truly "same" with some probability s, and its answers are wrong
independently:

    P(answers to a question) = s prod_{same} (1 - e_a) prod_{different} e_a
                             + (1 - s) prod_{same} e_a prod_{different} (1 - e_a)                (4)

the model of Dawid and Skene [1]_, for questions with several answers or about two labelled points.
Cycles are used where nothing else explains a contradiction, with all classes equally likely.

Person a who says to be right with probability c is right with

    logit P(right) = alpha_a + beta_a logit(c),   alpha_a ~ N(0, 1), beta_a ~ N(1, 1/4)          (5)

by the answers that others can check; of a person without any, c is taken at its word.

References
----------
.. [1] Dawid & Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
   Applied Statistics 28 (1979).
.. [2] Varadhan & Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
   algorithm", Scandinavian Journal of Statistics 35 (2008).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import betaln, expit, log_expit, logit, softmax
from scipy.stats import beta

from sdulearn.answers.graph import AnswerGraph, connect, find_core, find_sides, number_questions, restrict, sum_by
from sdulearn.answers.propagate import FactorGraph, Propagation, log_factors
from sdulearn.answers.two_classes import TwoClassNetwork
from sdulearn.types import Array, Codes, Indices, Mask

# Before any answer: one wrong in fifty, with the weight of 30 answers: one contradiction among few
# leaves the rate of a single annotator at 5%.
PRIOR_RATE = 0.02
PRIOR_ANSWERS = 30.0
# Values of m in equation (2) and their chances before any answer: the first is the likeliest until
# contradictions pile up or annotators differ.
_STRENGTHS = np.array([PRIOR_ANSWERS, 16.0, 8.0, 4.0, 2.0])
_CHANCES = np.array([20.0, 1.0, 1.0, 1.0, 1.0]) / 24
_WEAKEST = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
# A rate is looked for between these two.
LOWEST = 1e-4
HIGHEST = 0.5
# An interval as wide as this says nothing.
WIDE = 0.4
# Half of the 95% quantile of chi^2 with one degree of freedom.
DROP = 1.92

# Two classes: EM, where a profile is computed, and how often EM leaps there.
_EM_ITER = 100
_EM_TOL = 1e-3
_GRID = np.array([LOWEST, 0.005, 0.015, 0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3, 0.38, 0.44, HIGHEST])
_PROFILE_ITER = 8
_LONGEST_LEAP = 8.0
# With more annotators than this each interval takes the other rates as they are.
_MOST_PROFILED = 10
# Log odds of a labelled point.
_CERTAIN = 30.0
# Scales t that are tried in equation (3), and where the share b begins.
_SCALES = np.array([0.25, 0.5, 0.75, 1.0, 1.4, 2.0])
_BLIND = 0.1

# Repeated questions: EM begins at each of these rates, and the best end is kept.
_QUESTION_ITER = 500
_QUESTION_TOL = 1e-6
_FIRST_RATES = (PRIOR_RATE, 0.25)
_QUESTION_GRID = np.unique(np.r_[LOWEST, np.geomspace(0.002, 0.05, 12), np.linspace(0.06, HIGHEST, 34)])
# Rates by propagation need a new network each time.
_CYCLE_ITER = 15
_CYCLE_GRID = np.array([LOWEST, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, HIGHEST])
# Certainties: the largest that is believed, steps of EM, and alpha and beta in equation (5).
_SUREST = 0.99
_SOFT_ITER = 30
_ALPHA, _BETA = (grid.ravel() for grid in np.meshgrid(np.linspace(-3, 3, 25), np.linspace(0, 2, 17)))


def shrink(wrong: Array, counts: Array, chances: Array | None) -> Array:
    """Equation (2), the mean over all m, or without a prior; annotators are the last axis."""
    if chances is None:
        return np.clip(wrong / np.maximum(counts, 1e-12), LOWEST, HIGHEST)
    a, m = _prior_answers(wrong, counts)
    share = chances.reshape(m.shape)
    return np.clip((share * (a + wrong) / (m + counts)).sum(axis=0), LOWEST, HIGHEST)


def chances_of_strengths(wrong: Array, counts: Array) -> Array:
    """Chances of all m given the wrong answers of each annotator, beta-binomial."""
    a, m = _prior_answers(wrong, counts)
    right = np.maximum(counts - wrong, 0.0)
    return softmax((betaln(a + wrong, m - a + right) - betaln(a, m - a)).sum(axis=-1) + np.log(_CHANCES))


def _prior_answers(wrong: Array, counts: Array) -> tuple[Array, Array]:
    """``m mu`` and m of equation (2), along a new first axis."""
    total = wrong.sum(axis=-1, keepdims=True) - wrong
    others = (PRIOR_ANSWERS * PRIOR_RATE + total) / (PRIOR_ANSWERS + counts.sum() - counts)
    m = _STRENGTHS.reshape(-1, *np.ones(wrong.ndim, dtype=int))
    return m * np.clip(others, LOWEST, HIGHEST), m


def profile_ends(grid: Array, values: Array) -> tuple[float, float]:
    """95% interval of a rate: the wider of a profile within 1.92, and Jeffreys' quantiles."""
    fine = np.linspace(grid[0], grid[-1], 2001)
    value = PchipInterpolator(grid, values - values.max())(fine)
    inside = fine[value >= value.max() - DROP]
    below = np.cumsum(np.exp(value) / np.sqrt(fine))
    quantiles = fine[np.searchsorted(below / below[-1], [0.025, 0.975])]
    return float(min(inside[0], quantiles[0])), float(max(inside[-1], quantiles[1]))


def two_class_rates(
    graph: AnswerGraph, annotator: Codes, n_rates: int, logits: Array | None
) -> tuple[Array, Array, Array]:
    """Rates and their intervals, by the answers on cycles, or by all beside a model."""
    used = on_cycles(graph) if logits is None else np.ones(graph.n_answers, dtype=bool)
    if not used.any():
        nothing = np.zeros(n_rates)
        return nothing, nothing, nothing + HIGHEST
    likelihood = _TwoClassRates(graph, annotator, n_rates, used, logits)
    best = likelihood.maximise()
    low, high = likelihood.intervals(best)
    needed = contradicts(graph) or likelihood.explains(best)
    return best.rates[0] * needed, low, high


class _Trial(NamedTuple):
    """Parameters of the answers and of equation (3), several sets at once."""

    rates: Array  # (n_sets, n_rates), error rates
    scale: Array  # (n_sets,), t and b in equation (3)
    blind: Array
    values: Array  # (n_sets,), log likelihood of the sets before the last step
    wrong: Array  # (n_sets, n_used), probability that each answer is wrong, likewise


class _TwoClassRates:
    """The likelihood of some answers as a function of the rates, with two classes."""

    def __init__(self, graph: AnswerGraph, annotator: Codes, n_rates: int, used: Mask, logits: Array | None) -> None:
        # Labels become log odds, so that the edges do not depend on the rates.
        self.answers = restrict(graph, used, np.zeros(graph.n_points, dtype=bool))
        any_rate = np.full(self.answers.n_answers, 0.1)
        self.network = TwoClassNetwork(FactorGraph.from_answers(self.answers, 2, any_rate))
        self.annotator = annotator[used]
        self.n_rates = n_rates
        self.logits = logits
        self.labels = np.sign(graph.labels)
        self.counts = sum_by(self.annotator, self.answers.weights, self.n_rates)
        # Those of the last step, by the number of sets: the next begins there.
        self.messages: dict[int, Array] = {}

    def maximise(self) -> _Trial:
        """Equation (2) until it converges."""
        first = self._climb(self._start(), _WEAKEST)
        return self._climb(self._start(), chances_of_strengths(self._by_annotator(first.wrong)[0], self.counts))

    def explains(self, best: _Trial) -> bool:
        """Whether these rates explain the answers better than hardly any wrong answer at all."""
        values = self._profile(self._start(LOWEST), np.True_)
        return bool(self._step(best).values[0] - values.max() > DROP)

    def intervals(self, best: _Trial) -> tuple[Array, Array]:
        """95% intervals of all rates: by profiles, or of many annotators by Louis' identity."""
        n_rates = self.n_rates
        if n_rates > _MOST_PROFILED:
            rates = best.rates[0]
            missing = sum_by(self.annotator, best.wrong[0] * (1 - best.wrong[0]), n_rates)
            share = 1 - missing / np.maximum(self.counts * rates * (1 - rates), 1e-12)
            return beta_ends(rates, self.counts * np.clip(share, 0.0, 1.0))
        size = len(_GRID)
        fixed = np.repeat(np.eye(n_rates, dtype=bool), size, axis=0)
        repeated = _Trial(*(np.repeat(part, n_rates * size, axis=0) for part in best))
        trial = repeated._replace(rates=np.where(fixed, np.tile(_GRID, n_rates)[:, None], best.rates))
        values = self._profile(trial, fixed).reshape(n_rates, size)
        low, high = np.transpose([profile_ends(_GRID, value) for value in values])
        return low, high

    def _start(self, rate: float = PRIOR_RATE) -> _Trial:
        """One set for each scale; where no model speaks, one."""
        scale = np.ones(1) if self.logits is None else _SCALES
        n = len(scale)
        rates = np.full((n, self.n_rates), rate)
        return _Trial(rates, scale, np.full(n, _BLIND), np.zeros(n), np.zeros((n, len(self.annotator))))

    def _climb(self, at: _Trial, chances: Array) -> _Trial:
        """EM from each set; the best of all."""
        for _ in range(_EM_ITER):
            fresh = self._step(at, chances)
            moved = np.abs(fresh.rates - at.rates).max()
            at = fresh
            if moved < _EM_TOL:
                break
        best = int(np.argmax(at.values))
        return _Trial(*(part[best : best + 1] for part in at))

    def _profile(self, at: _Trial, fixed: Mask | np.bool) -> Array:
        """The likelihood of each set where all but the ``fixed`` rates suit it best; no prior."""
        reached = []
        for _ in range(_PROFILE_ITER):
            first = self._step(at, None, fixed)
            second = self._step(first, None, fixed)
            reached += [first.values, second.values]
            at = _leap(at, first, second)
        return np.max([*reached, self._step(at).values], axis=0)

    def _step(self, at: _Trial, chances: Array | None = None, fixed: Mask | np.bool = np.False_) -> _Trial:
        """A step of EM, for b in equation (3) too; the ``fixed`` rates stay."""
        says = self._model(at)
        same = self.answers.same[:, None]
        factors = log_factors(same, at.rates.T[self.annotator], self.answers.weights[:, None])
        start = self.messages.get(len(at.scale))
        network = self.network.with_factors(*factors)
        found = network.solve(logit(says), 60 if start is None else 20, 1e-4, start)
        self.messages[len(at.scale)] = found.messages
        right = found.agree[self.network.factors.edge]
        wrong = np.where(same > 0, 1 - right, right).T
        blind = at.blind
        if self.logits is not None:
            # Which points are blind, given what the answers say of them.
            known = found.positive / says + (1 - found.positive) / (1 - says)
            blind = np.clip(at.blind / 2 * known[self.answers.degree > 0].mean(axis=0), 0.0, 1.0)
        rates = np.where(fixed, at.rates, shrink(self._by_annotator(wrong), self.counts, chances))
        return _Trial(rates, at.scale, blind, found.values.sum(axis=0), wrong)

    def _model(self, at: _Trial) -> Array:
        """Equation (3), (n_points, n_sets); labels are certain."""
        if self.logits is None:
            says = np.full((len(self.labels), len(at.scale)), 0.5)
        else:
            says = (1 - at.blind) * expit(np.outer(self.logits, at.scale)) + at.blind / 2
        labels = np.broadcast_to(self.labels[:, None], says.shape)
        return np.clip(np.where(labels == 0, says, labels > 0), expit(-_CERTAIN), expit(_CERTAIN))

    def _by_annotator(self, wrong: Array) -> Array:
        """How many answers of each annotator are wrong, (n_sets, n_rates)."""
        return sum_by(self.annotator, (self.answers.weights * wrong).T, self.n_rates).T


def _leap(at: _Trial, first: _Trial, second: _Trial) -> _Trial:
    """Where EM is going, by squared extrapolation [2]_: it is slow where b explains a rate."""
    odds = [logit(np.clip(np.column_stack([t.rates, t.blind]), LOWEST, 1 - LOWEST)) for t in (at, first, second)]
    step = odds[1] - odds[0]
    bend = odds[2] - odds[1] - step
    norm = np.linalg.norm(bend, axis=1, keepdims=True)
    length = np.clip(np.linalg.norm(step, axis=1, keepdims=True) / np.maximum(norm, 1e-12), 1.0, _LONGEST_LEAP)
    leap = expit(odds[0] + 2 * length * step + length**2 * bend)
    moved = np.clip(leap[:, :-1], LOWEST, HIGHEST)
    return second._replace(rates=np.where(first.rates == at.rates, at.rates, moved), blind=leap[:, -1])


def beta_ends(rates: Array, n: Array) -> tuple[Array, Array]:
    """95% intervals of rates that so many answers tell, by Jeffreys' prior."""
    a = 0.5 + n * rates
    b = 0.5 + n * (1 - rates)
    return beta.ppf(0.025, a, b), np.minimum(beta.ppf(0.975, a, b), HIGHEST)


def contradicts(graph: AnswerGraph) -> bool:
    """Whether answers of two classes contradict each other or the labels."""
    ends, same = _with_labels(graph)
    return bool((find_sides(ends, same, graph.n_points + 1) == 0).any())


def on_cycles(graph: AnswerGraph) -> Mask:
    """Whether each answer can be checked by others, or by labels."""
    ends, _ = _with_labels(graph)
    return np.isin(np.arange(graph.n_answers), find_core(ends, graph.n_points + 1))


def _with_labels(graph: AnswerGraph) -> tuple[Indices, Codes]:
    """Answers, and labels as answers about one more point of class +1."""
    known = np.flatnonzero(graph.labels)
    labels = np.column_stack([known, np.full(len(known), graph.n_points)])
    ends = np.concatenate([graph.ends, labels])
    return ends, np.concatenate([graph.same, np.where(graph.labels[known] > 0, 1, -1)])


def question_rates(graph: AnswerGraph, annotator: Codes, n_rates: int, n_classes: int) -> tuple[Array, Array, Array]:
    """Rates and the ends of their intervals, with any number of classes."""
    questions = RepeatedQuestions(graph, annotator)
    known = questions.counts > 0
    rates = questions.maximise() * known
    # With too many people for profiles, about half of the answers to repeated questions tell.
    low, high = beta_ends(rates, questions.counts / 2)
    low[~known] = 0.0
    high[~known] = HIGHEST
    for k in np.flatnonzero(known & (n_rates <= _MOST_PROFILED)).tolist():
        low[k], high[k] = questions.interval(k)
    # A few repeats tell next to nothing of a rate, and explain no contradiction elsewhere.
    unknown = high - low >= WIDE
    _, question = number_questions(graph.ends, graph.n_points)
    once = np.bincount(question)[question] == 1
    unexplained = (rates[annotator] == 0) | (unknown[annotator] & once)
    involved = annotators_in_contradictions(graph, annotator, unexplained)
    if involved.any():
        used = on_cycles(graph)
        cycles = replace(restrict(graph, used, graph.labels != 0), weights=np.ones(used.sum()))
        who = annotator[used]
        rates = _cycle_rates(cycles, who, rates, involved, n_classes)
        for k in np.flatnonzero(involved & unknown).tolist()[:_MOST_PROFILED]:
            trials = np.where(np.arange(n_rates) == k, _CYCLE_GRID[:, None], rates)
            values = [_propagated(cycles, trial[who], n_classes).value for trial in trials]
            low[k], high[k] = profile_ends(_CYCLE_GRID, np.array(values))
    return rates, low, high


class RepeatedQuestions:
    """Equation (4) for the questions that tell rates, equal ones counted."""

    def __init__(self, graph: AnswerGraph, annotator: Codes) -> None:
        n_annotators = int(annotator.max(initial=-1)) + 1
        asked, question = number_questions(graph.ends, graph.n_points)
        votes = np.zeros((2, len(asked), n_annotators))
        np.add.at(votes, ((graph.same < 0).astype(int), question, annotator), 1.0)
        labels = graph.labels[asked]
        truth = np.where((labels != 0).all(axis=1), (labels[:, 0] == labels[:, 1]).astype(float), np.nan)
        used = (votes.sum(axis=(0, 2)) > 1) | np.isfinite(truth)
        table = np.column_stack([votes[0], votes[1], np.nan_to_num(truth, nan=-1.0)])[used]
        kinds, times = np.unique(table, axis=0, return_counts=True)
        # Answers of each annotator to a kind of question (n_kinds, n_annotators), how many such
        # questions there are, and the truth by labels: 1 "same", 0 "different", else NaN.
        self.same = kinds[:, :n_annotators]
        self.different = kinds[:, n_annotators:-1]
        self.times = times.astype(np.float64)
        self.truth = np.where(kinds[:, -1] < 0, np.nan, kinds[:, -1])
        self.counts = self.times @ (self.same + self.different)

    def maximise(self) -> Array:
        """The rates (n_annotators,), drawn to a small one; 0 where no errors do as well."""
        start, shares = self._first()
        first = self.climb(start, shares, _WEAKEST)
        best = np.argmax(self.values(*first))
        wrong, _ = self._wrong(first[0][[best]], first[1][[best]])
        rates, found = self.climb(start, shares, chances_of_strengths(wrong[0], self.counts))
        values = self.values(rates, found)
        none = self.climb(np.full_like(start, LOWEST), shares, _WEAKEST, np.True_)
        return rates[np.argmax(values)] * (values.max() - self.values(*none).max() > DROP)

    def interval(self, k: int) -> tuple[float, float]:
        """Rates of annotator ``k`` within 1.92 of the largest log likelihood."""
        profile = np.full(len(_QUESTION_GRID), -np.inf)
        fixed = np.arange(self.same.shape[1]) == k
        for rates, share in zip(*self._first(), strict=True):
            trial = np.where(fixed, _QUESTION_GRID[:, None], rates)
            found = self.climb(trial, np.full(len(_QUESTION_GRID), share), None, fixed)
            profile = np.maximum(profile, self.values(*found))
        return profile_ends(_QUESTION_GRID, profile)

    def values(self, rates: Array, shares: Array) -> Array:
        """Log likelihood (n,) at rates (n, n_annotators) and shares of "same" (n,)."""
        return np.logaddexp(*self._joint(rates, shares)) @ self.times

    def climb(
        self, rates: Array, shares: Array, chances: Array | None, fixed: Mask | np.bool = np.False_
    ) -> tuple[Array, Array]:
        """EM from several places at once, with chances of the prior's strengths or without."""
        free = np.isnan(self.truth)
        for _ in range(_QUESTION_ITER):
            wrong, posterior = self._wrong(rates, shares)
            fresh = np.where(fixed, rates, shrink(wrong, self.counts, chances))
            shares = (posterior[:, free].sum(axis=1) + 0.5) / (self.times[free].sum() + 1)
            moved = np.abs(fresh - rates).max(initial=0.0)
            rates = fresh
            if moved < _QUESTION_TOL:
                break
        return rates, shares

    def _wrong(self, rates: Array, shares: Array) -> tuple[Array, Array]:
        """Numbers of wrong answers of annotators, and of questions of each kind that are "same"."""
        same, different = self._joint(rates, shares)
        posterior = np.exp(same - np.logaddexp(same, different)) * self.times
        return posterior @ self.different + (self.times - posterior) @ self.same, posterior

    def _joint(self, rates: Array, shares: Array) -> tuple[Array, Array]:
        """Logarithms (n, n_kinds) of the two terms of equation (4)."""
        wrong = np.log(rates)
        right = np.log1p(-rates)
        prior = np.where(np.isnan(self.truth), shares[:, None], np.nan_to_num(self.truth))
        with np.errstate(divide="ignore"):
            same = np.log(prior) + right @ self.same.T + wrong @ self.different.T
            different = np.log1p(-prior) + wrong @ self.same.T + right @ self.different.T
        return same, different

    def _first(self) -> tuple[Array, Array]:
        """Where EM begins: rates (n_starts, n_annotators), and the share of "same" answers."""
        share = float(self.times @ self.same.sum(axis=1)) / max(float(self.counts.sum()), 1.0)
        rates = np.repeat(np.array(_FIRST_RATES)[:, None], self.same.shape[1], axis=1)
        return rates, np.full(len(_FIRST_RATES), np.clip(share, 0.02, 0.98))


def _cycle_rates(graph: AnswerGraph, annotator: Codes, rates: Array, involved: Mask, n_classes: int) -> Array:
    """EM for the rates of those ``involved``, by answers on cycles; the others stay."""
    counts = np.bincount(annotator, minlength=len(rates)).astype(np.float64)
    rates = np.where(involved, PRIOR_RATE, rates)
    chances = _WEAKEST
    for _ in range(2):
        for _ in range(_CYCLE_ITER):
            wrong = sum_by(annotator, 1 - _propagated(graph, rates[annotator], n_classes).right, len(rates))
            rates = np.where(involved, shrink(wrong, counts, chances), rates)
        chances = chances_of_strengths(wrong, counts)
    return rates


def _propagated(graph: AnswerGraph, errors: Array, n_classes: int) -> Propagation:
    """What answers that are wrong at these rates say, all classes equally likely before."""
    equal = np.full(n_classes, -np.log(n_classes))
    return FactorGraph.from_answers(graph, n_classes, errors).propagate(equal, tol=1e-4, max_iter=60)


def annotators_in_contradictions(graph: AnswerGraph, annotator: Codes, certain: Mask) -> Mask:
    """Whose ``certain`` answers tie a group, by "same" or labels, that holds a contradiction."""
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
    """Part of each answer, of one person with one certainty, from 1; whose parts; how sure."""
    stated = np.round(np.minimum(certainty, _SUREST), 2)
    parts, part = np.unique(np.column_stack([annotators, stated]), axis=0, return_inverse=True)
    return part.ravel() + 1, parts[:, 0].astype(np.int64), parts[:, 1]


def calibrated_rates(graph: AnswerGraph, person: Codes, stated: Array, n_classes: int) -> dict[int, float]:
    """Error rates of the parts, the annotators of the graph, by equation (5)."""
    checked = restrict(graph, on_cycles(graph), graph.labels != 0)
    part = checked.annotators - 1
    z = np.outer(_ALPHA, np.ones(len(stated))) + np.outer(_BETA, logit(stated))
    prior = -(_ALPHA**2) / 2 - 2 * (_BETA - 1) ** 2
    errors = 1 - stated
    for _ in range(_SOFT_ITER):
        right = _propagated(checked, errors[part], n_classes).right
        n_right, n_wrong = (sum_by(part, share, len(stated)) for share in (right, 1 - right))
        of_part = (n_right * log_expit(z) + n_wrong * log_expit(-z)).T
        chance = softmax(sum_by(person, of_part, int(person.max()) + 1) + prior, axis=1)
        errors = expit(-(chance @ _ALPHA)[person] - (chance @ _BETA)[person] * logit(stated))
        errors = np.clip(errors, LOWEST, HIGHEST)
    return dict(enumerate(errors.tolist(), 1))
