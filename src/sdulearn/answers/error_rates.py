"""How often each annotator is wrong, from answers that contradict each other.

Independent answers to one question disagree at rate 2 e (1 - e), and the three answers about a
triangle of points have an odd number of "different" at rate (1 - (1 - 2 e)^3) / 2. Both are cases of the
likelihood of all answers as a function of the rates e. EM finds its maximum under a Beta prior:

    e_a  <-  (m mu_a + sum of P(wrong | all answers) over the answers of a) / (m + their number)   (1)

where the probabilities are those under the present rates. mu_a is the rate of all other annotators, itself drawn to a
small one, and m says how alike annotators are; :func:`shrink` takes the mean over m. Few checks move a rate little.

A model that has not seen the answers about a point says something of it too. But it may be wrong itself, and what it
says of a point is

    P(c = +1) = (1 - b) logistic(t z) + b / 2                                                  (2)

with a share b of blind points and a scale t that suit the answers best. For a loose pair b and a rate that all
annotators have in common cannot be told apart: the model can refute a rate and tell annotators apart, but it cannot
assert a rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import betaln, expit, logit, softmax
from scipy.stats import beta

from sdulearn.answers.graph import AnswerGraph, find_sides
from sdulearn.answers.messages import sum_by
from sdulearn.answers.propagate import FactorGraph
from sdulearn.answers.two_classes import TwoClassNetwork
from sdulearn.types import Array, Codes, Count, Indices, Mask, Probability

# Before any answer: one wrong in fifty, with the weight of 30 answers. One contradiction among few answers then leaves
# the rate of a single annotator at 5%.
PRIOR_RATE = 0.02
PRIOR_ANSWERS = 30.0
# Values of m in equation (1) and their chances before any answer: the first is the likeliest until contradictions
# pile up or annotators differ.
_STRENGTHS = np.array([PRIOR_ANSWERS, 16.0, 8.0, 4.0, 2.0])
_CHANCES = np.array([20.0, 1.0, 1.0, 1.0, 1.0]) / 24
WEAKEST = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
# A rate is looked for between these two.
LOWEST = 1e-4
HIGHEST = 0.5
_EM_ITER = 100
_EM_TOL = 1e-3
# Where a profile is computed, and iterations there for all other rates.
_GRID = np.array([LOWEST, 0.005, 0.015, 0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3, 0.38, 0.44, HIGHEST])
_PROFILE_ITER = 20
# With more annotators than this each interval takes the other rates as they are.
_MOST_PROFILED = 10
# Half of the 95% quantile of chi^2 with one degree of freedom.
DROP = 1.92
# An interval as wide as this says nothing.
_WIDE = 0.4
# Log odds of a labelled point.
_CERTAIN = 30.0
# Scales t that are tried in equation (2), and where the share b begins.
_SCALES = np.array([0.25, 0.5, 0.75, 1.0, 1.4, 2.0])
_BLIND = 0.1


@dataclass(frozen=True)
class ErrorRate:
    """How often one annotator is wrong.

    Attributes
    ----------
    annotator : int
        The number in ``y``; 0 where it is not known who answered.
    rate : float
        Probability that an answer is wrong, drawn to a small one where few answers tell.
    low, high : float
        95% interval; from 0 to 1/2 where nothing is known.
    identified : bool
        Whether the answers say something about the rate: its interval is narrower than 0.4. A given rate is identified.
    n_answers : int
        Number of answers.
    """

    annotator: Count
    rate: Probability
    low: Probability
    high: Probability
    identified: bool
    n_answers: Count


@dataclass(frozen=True)
class ErrorRates:
    """The error rates of all annotators, in ascending order of their numbers.

    Attributes
    ----------
    annotators : tuple of ErrorRate
        One for each annotator.
    """

    annotators: tuple[ErrorRate, ...]

    def __iter__(self) -> Iterator[ErrorRate]:
        return iter(self.annotators)

    def __len__(self) -> int:
        return len(self.annotators)

    @property
    def by_annotator(self) -> dict[int, float]:
        """Rates by the numbers of the annotators."""
        return {one.annotator: one.rate for one in self.annotators}

    @property
    def mean(self) -> float:
        """Share of all answers that are wrong."""
        count = sum(one.n_answers for one in self.annotators)
        return sum(one.rate * one.n_answers for one in self.annotators) / max(count, 1)

    def of_answers(self, annotators: Codes) -> dict[int, float]:
        """Rates of the annotators in an array; one who is not known has the mean rate.

        Parameters
        ----------
        annotators : int array of shape (n_answers,)
            Who answered.

        Returns
        -------
        dict
            Rates by the numbers of the annotators.
        """
        known = self.by_annotator
        return {a: known.get(a, self.mean) for a in np.unique(annotators).tolist()}

    @classmethod
    def given(cls, graph: AnswerGraph, rates: dict[int, float]) -> ErrorRates:
        """Wrap rates that somebody knows.

        Parameters
        ----------
        graph : AnswerGraph
            The answers.
        rates : dict
            Rates by the numbers of the annotators.

        Returns
        -------
        ErrorRates
            The rates, each as its own interval.
        """
        numbers, counts = np.unique(graph.annotators, return_counts=True)
        rows = zip(numbers.tolist(), counts.tolist(), strict=True)
        return cls(tuple(ErrorRate(a, rates[a], rates[a], rates[a], True, n) for a, n in rows))


def estimate_error_rates(graph: AnswerGraph, logits: Array | None = None) -> ErrorRates:
    """Estimate how often each annotator is wrong, two classes.

    Parameters
    ----------
    graph : AnswerGraph
        Answers and labels.
    logits : array of shape (n_points,), optional
        What a model that has not seen the answers about a point says of it. By default nothing is
        known of the points, and only repeated questions, cycles and labels tell; with it the answers
        of every annotator are compared with it too, which tells annotators apart but not a rate that
        all have in common.

    Returns
    -------
    ErrorRates
        With intervals; 0 where nothing tells.
    """
    numbers, annotator = np.unique(graph.annotators, return_inverse=True)
    counts = np.bincount(annotator, minlength=len(numbers))
    used = on_cycles(graph) if logits is None else np.ones(graph.n_answers, dtype=bool)
    if not used.any():
        nothing = np.zeros(len(numbers))
        return collect_rates(numbers, counts, nothing, nothing, nothing + HIGHEST)
    model = RateModel.of(graph, annotator, used, logits)
    best = model.maximise()
    low, high = model.intervals(best)
    needed = contradicts(graph, np.ones(graph.n_answers, dtype=bool)) or model.explains(best)
    return collect_rates(numbers, counts, best.rates[0] * needed, low, high)


def collect_rates(numbers: Codes, counts: Codes, rates: Array, low: Array, high: Array) -> ErrorRates:
    """The rates, with intervals that hold them."""
    low = np.minimum(np.where(low > LOWEST, low, 0.0), rates)
    high = np.maximum(high, rates)
    columns = (numbers, rates, low, high, high - low < _WIDE, counts)
    return ErrorRates(tuple(ErrorRate(*row) for row in zip(*(c.tolist() for c in columns), strict=True)))


def shrink(wrong: Array, counts: Array, chances: Array) -> Array:
    """Equation (1), the mean over all m with these chances; annotators are the last axis."""
    a, m = _prior_answers(wrong, counts)
    share = chances.reshape(m.shape)
    return np.clip((share * (a + wrong) / (m + counts)).sum(axis=0), LOWEST, HIGHEST)


def chances_of_strengths(wrong: Array, counts: Array) -> Array:
    """Chances of all m given how many answers of each annotator are wrong, by the beta-binomial likelihood."""
    a, m = _prior_answers(wrong, counts)
    right = np.maximum(counts - wrong, 0.0)
    return softmax((betaln(a + wrong, m - a + right) - betaln(a, m - a)).sum(axis=-1) + np.log(_CHANCES))


def _prior_answers(wrong: Array, counts: Array) -> tuple[Array, Array]:
    """``m mu`` and m of equation (1), along a new first axis."""
    total = wrong.sum(axis=-1, keepdims=True) - wrong
    others = (PRIOR_ANSWERS * PRIOR_RATE + total) / (PRIOR_ANSWERS + counts.sum() - counts)
    m = _STRENGTHS.reshape(-1, *np.ones(wrong.ndim, dtype=int))
    return m * np.clip(others, LOWEST, HIGHEST), m


def profile_ends(grid: Array, values: Array) -> tuple[float, float]:
    """95% interval of a rate by its profile log likelihood on a grid.

    Where it is within 1.92 of its maximum, or between the quantiles of the posterior that it gives with the weight
    e^(-1/2) of Jeffreys: of few answers, above all where none was found wrong, the first alone is too narrow.
    """
    fine = np.linspace(grid[0], grid[-1], 2001)
    value = PchipInterpolator(grid, values - values.max())(fine)
    inside = fine[value >= value.max() - DROP]
    below = np.cumsum(np.exp(value) / np.sqrt(fine))
    quantiles = fine[np.searchsorted(below / below[-1], [0.025, 0.975])]
    return float(min(inside[0], quantiles[0])), float(max(inside[-1], quantiles[1]))


@dataclass(frozen=True, eq=False)
class Rates:
    """Parameters of the answers and of equation (2), several sets at once."""

    rates: Array  # (n_sets, n_rates), error rates
    scale: Array  # (n_sets,), t and b in equation (2)
    blind: Array
    values: Array  # (n_sets,), log likelihood of the sets before the last step
    wrong: Array  # (n_sets, n_used), probability that each answer is wrong, likewise

    def __getitem__(self, kept: slice | Indices) -> Rates:
        return Rates(self.rates[kept], self.scale[kept], self.blind[kept], self.values[kept], self.wrong[kept])


@dataclass(frozen=True, eq=False)
class RateModel:
    """The likelihood of the answers as a function of the rates."""

    # the answers that are used, each an edge or part of one; its factors are those of some rates
    network: TwoClassNetwork
    answers: AnswerGraph  # these answers, without labels
    annotator: Codes  # (n_used,), which rate each has
    n_rates: int  # number of rates
    logits: Array | None  # (n_points,), what a model says of the points, z in equation (2)
    labels: Codes  # (n_points,), -1 and +1 where the class is known

    @classmethod
    def of(cls, graph: AnswerGraph, annotator: Codes, used: Mask, logits: Array | None) -> RateModel:
        """Of some of the answers. Labels become log odds, so that the edges do not depend on the rates."""
        answers = AnswerGraph.from_answers(
            graph.ends[used], graph.same[used], weights=graph.weights[used], n_points=graph.n_points
        )
        network = TwoClassNetwork.from_factors(FactorGraph.from_answers(answers, 2, 0.1), 0.1)
        n_rates = int(annotator.max(initial=-1)) + 1
        return cls(network, answers, annotator[used], n_rates, logits, np.sign(graph.labels))

    def maximise(self) -> Rates:
        """Equation (1) until it converges."""
        first = self._climb(self._start(), WEAKEST)
        return self._climb(self._start(), chances_of_strengths(self._by_annotator(first.wrong)[0], self._counts))

    def explains(self, best: Rates) -> bool:
        """Whether these rates explain the answers better than hardly any wrong answer at all."""
        none = self._start()
        values = self._profile(replace(none, rates=np.full_like(none.rates, LOWEST)), np.True_)
        return bool(self._step(best).values[0] - values.max() > DROP)

    def intervals(self, best: Rates) -> tuple[Array, Array]:
        """95% intervals of all rates: by profiles, or of many annotators by the information of each."""
        n_rates = self.n_rates
        if n_rates > _MOST_PROFILED:
            return self._information_intervals(best)
        size = len(_GRID)
        fixed = np.repeat(np.eye(n_rates, dtype=bool), size, axis=0)
        every = np.zeros(n_rates * size, dtype=np.intp)
        trial = replace(best[every], rates=np.where(fixed, np.tile(_GRID, n_rates)[:, None], best.rates))
        values = self._profile(trial, fixed).reshape(n_rates, size)
        low, high = np.transpose([profile_ends(_GRID, value) for value in values])
        return low, high

    def _information_intervals(self, best: Rates) -> tuple[Array, Array]:
        """Beta quantiles for as many answers as the information is worth (Louis' identity, one answer at a time)."""
        rates = best.rates[0]
        wrong = best.wrong[0]
        missing = sum_by(self.annotator, wrong * (1 - wrong), len(rates))
        share = 1 - missing / np.maximum(self._counts * rates * (1 - rates), 1e-12)
        n = self._counts * np.clip(share, 0.0, 1.0)
        a = 0.5 + n * rates
        b = 0.5 + n * (1 - rates)
        return beta.ppf(0.025, a, b), np.minimum(beta.ppf(0.975, a, b), HIGHEST)

    def _start(self) -> Rates:
        """One set for each scale; where no model speaks, one."""
        scale = np.ones(1) if self.logits is None else _SCALES
        n = len(scale)
        rates = np.full((n, self.n_rates), PRIOR_RATE)
        return Rates(rates, scale, np.full(n, _BLIND), np.zeros(n), np.zeros((n, len(self.annotator))))

    def _climb(self, at: Rates, chances: Array) -> Rates:
        """EM from each set; the best of all."""
        for _ in range(_EM_ITER):
            fresh = self._step(at)
            fresh = replace(fresh, rates=shrink(self._by_annotator(fresh.wrong), self._counts, chances))
            moved = np.abs(fresh.rates - at.rates).max()
            at = fresh
            if moved < _EM_TOL:
                break
        best = int(np.argmax(at.values))
        return at[best : best + 1]

    def _profile(self, at: Rates, fixed: Mask | np.bool) -> Array:
        """The likelihood of each set where all but the ``fixed`` rates suit it best; no prior."""
        counts = np.maximum(self._counts, 1e-12)
        for _ in range(_PROFILE_ITER):
            fresh = self._step(at)
            rates = np.clip(self._by_annotator(fresh.wrong) / counts, LOWEST, HIGHEST)
            at = replace(fresh, rates=np.where(fixed, at.rates, rates))
        return at.values

    def _step(self, at: Rates) -> Rates:
        """The E-step, and b in equation (2) for the next."""
        says = self._model(at)
        found = self.network.at_rates(at.rates.T[self.annotator]).solve(logit(says), tol=1e-4)
        right = found.agree[self.network.factors.edge]
        wrong = np.where(self.answers.same[:, None] > 0, 1 - right, right).T
        blind = at.blind
        if self.logits is not None:
            # Which points are blind, given what the answers say of them.
            known = found.positive / says + (1 - found.positive) / (1 - says)
            blind = np.clip(at.blind / 2 * known[self.answers.degree > 0].mean(axis=0), 0.0, 1.0)
        return replace(at, values=found.values.sum(axis=0), wrong=wrong, blind=blind)

    def _model(self, at: Rates) -> Array:
        """Equation (2), (n_points, n_sets); labels are certain."""
        if self.logits is None:
            says = np.full((len(self.labels), len(at.scale)), 0.5)
        else:
            says = (1 - at.blind) * expit(np.outer(self.logits, at.scale)) + at.blind / 2
        labels = np.broadcast_to(self.labels[:, None], says.shape)
        return np.clip(np.where(labels == 0, says, labels > 0), expit(-_CERTAIN), expit(_CERTAIN))

    def _by_annotator(self, wrong: Array) -> Array:
        """How many answers of each annotator are wrong, (n_sets, n_rates)."""
        weighted = self.answers.weights * wrong
        return sum_by(self.annotator, weighted.T, self.n_rates).T

    @cached_property
    def _counts(self) -> Array:
        return sum_by(self.annotator, self.answers.weights, self.n_rates)


def contradicts(graph: AnswerGraph, certain: Mask) -> bool:
    """Whether these answers, never wrong, contradict each other or the labels."""
    ends, same = _with_labels(graph, certain)
    return bool((find_sides(ends, same, graph.n_points + 1) == 0).any())


def on_cycles(graph: AnswerGraph) -> Mask:
    """Whether each answer can be checked by others: those left when points in one answer are taken off in turn.

    Two answers to one question are a cycle, and labels are answers about one more point.
    """
    ends, _ = _with_labels(graph, np.ones(graph.n_answers, dtype=bool))
    left = np.arange(len(ends))
    while True:
        degree = np.bincount(ends[left].ravel(), minlength=graph.n_points + 1)
        kept = left[(degree[ends[left]] > 1).all(axis=1)]
        if len(kept) == len(left):
            break
        left = kept
    found = np.zeros(len(ends), dtype=bool)
    found[left] = True
    return found[: graph.n_answers]


def _with_labels(graph: AnswerGraph, kept: Mask) -> tuple[Indices, Codes]:
    """Answers, and labels as answers about one more point of class +1."""
    known = np.flatnonzero(graph.labels)
    labels = np.column_stack([known, np.full(len(known), graph.n_points)])
    ends = np.concatenate([graph.ends[kept], labels])
    return ends, np.concatenate([graph.same[kept], np.where(graph.labels[known] > 0, 1, -1)])
