"""How often each annotator is wrong, from answers that contradict each other.

Independent answers to one question disagree at rate 2 e (1 - e), and the three answers about a
triangle of points have an odd number of "different" at rate (1 - (1 - 2 e)^3) / 2. Both are cases of the
likelihood of all answers as a function of the rates e, whose maximum EM finds:

    e_a  <-  (m mean + sum of P(wrong | all answers) over the answers of a) / (m + their number)   (1)

where the probabilities are those under the present rates. ``m`` answers at the mean rate keep an
annotator with few answers near the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sdulearn.answers.graph import AnswerGraph, find_sides
from sdulearn.answers.messages import sum_by
from sdulearn.answers.propagate import FactorGraph, log_factors
from sdulearn.answers.two_classes import TwoClassNetwork
from sdulearn.types import Array, Codes, Indices, Mask

# A rate is looked for between these two; a lower one is none at all.
_LOWEST = 1e-4
_HIGHEST = 0.5
_NONE = 2e-3
# Answers at the mean rate that every annotator is given, m in equation (1).
_PSEUDO_ANSWERS = 2.0
_EM_ITER = 200
_EM_TOL = 1e-4
# Half of the 95% quantile of chi^2 with one degree of freedom.
_DROP = 1.92
# Log odds of a labelled point.
_CERTAIN = 30.0


@dataclass(frozen=True)
class ErrorRate:
    """How often one annotator is wrong.

    Attributes
    ----------
    annotator : int
        The number in ``y``; 0 where it is not known who answered.
    rate : float
        Probability that an answer is wrong.
    low, high : float
        95% profile interval, the other rates as they are; from 0 to 1/2 where nothing is known.
    identified : bool
        Whether the answers say anything about the rate: where they do not, it is 0. A given rate is
        identified.
    n_answers : int
        Number of answers.
    """

    annotator: int
    rate: float
    low: float
    high: float
    identified: bool
    n_answers: int


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
    circular = on_cycles(graph)
    identified = np.bincount(annotator, circular, len(numbers)) > 0
    if logits is not None:
        identified[:] = len(numbers) > 1
    used = circular if logits is None else np.ones(graph.n_answers, dtype=bool)
    counts = np.bincount(annotator, minlength=len(numbers))
    model = RateModel.of(graph, annotator, used, logits)
    rates = np.where(identified, model.maximise(), 0.0)
    rates = settle_rates(graph, rates, annotator)
    found = []
    for k, number in enumerate(numbers.tolist()):
        low, high = model.interval(rates, k) if identified[k] else (0.0, _HIGHEST)
        found.append(ErrorRate(number, float(rates[k]), low, high, bool(identified[k]), int(counts[k])))
    return ErrorRates(tuple(found))


@dataclass(frozen=True, eq=False)
class RateModel:
    """The likelihood of the answers as a function of the rates.

    Attributes
    ----------
    network : TwoClassNetwork
        The answers that are used, each an edge or part of one; its factors are those of some rates.
    answers : AnswerGraph
        These answers.
    annotator : int array of shape (n_used,)
        Which rate each has.
    n_rates : int
        Number of rates.
    logits : array of shape (n_points, 1)
        What is known of the points.
    """

    network: TwoClassNetwork
    answers: AnswerGraph
    annotator: Codes
    n_rates: int
    logits: Array

    @classmethod
    def of(cls, graph: AnswerGraph, annotator: Codes, used: Mask, logits: Array | None) -> RateModel:
        """Of some of the answers. Labels become logits, so that the edges do not depend on the rates."""
        z = np.zeros(graph.n_points) if logits is None else logits
        z = np.where(graph.labels == 0, z, _CERTAIN * np.sign(graph.labels))
        answers = AnswerGraph.from_answers(
            graph.ends[used], graph.same[used], weights=graph.weights[used], n_points=graph.n_points
        )
        network = TwoClassNetwork.from_factors(FactorGraph.from_answers(answers, 2, 0.1), 0.1)
        return cls(network, answers, annotator[used], int(annotator.max(initial=-1)) + 1, z[:, None])

    def value(self, rates: Array) -> float:
        """Log likelihood."""
        return float(self._with(rates).solve(self.logits).values.sum())

    def maximise(self) -> Array:
        """Equation (1) until it rests."""
        rates = np.full(self.n_rates, 0.1)
        if not self.answers.n_answers:
            return rates
        weights = self.answers.weights
        count = np.bincount(self.annotator, weights, self.n_rates)
        for _ in range(_EM_ITER):
            wrong = np.bincount(self.annotator, weights * self._wrong(rates), self.n_rates)
            mean = wrong.sum() / count.sum()
            fresh = (_PSEUDO_ANSWERS * mean + wrong) / (_PSEUDO_ANSWERS + count)
            fresh = np.clip(fresh, _LOWEST, _HIGHEST)
            moved = np.abs(fresh - rates).max()
            rates = fresh
            if moved < _EM_TOL:
                break
        return rates

    def interval(self, rates: Array, k: int) -> tuple[float, float]:
        """Where the log likelihood is within 1.92 of its largest value, the other rates as they are."""
        rates = np.maximum(rates, _LOWEST)
        grid = np.unique(np.r_[_LOWEST, np.linspace(0.01, _HIGHEST, 30), rates[k]])
        values = np.empty(len(grid))
        for j, rate in enumerate(grid):
            trial = rates.copy()
            trial[k] = rate
            values[j] = self.value(trial)
        drop = values.max() - values
        best = int(np.argmin(drop))
        # The drop rises from the best rate to both sides.
        low = np.interp(-_DROP, -np.maximum.accumulate(drop[best::-1])[::-1], grid[: best + 1])
        high = np.interp(_DROP, np.maximum.accumulate(drop[best:]), grid[best:])
        return float(low) if low > _LOWEST else 0.0, float(high)

    def _wrong(self, rates: Array) -> Array:
        """Probability that each answer is wrong."""
        agree = self._with(rates).solve(self.logits).agree[:, 0][self.network.factors.edge]
        return np.where(self.answers.same > 0, 1 - agree, agree)

    def _with(self, rates: Array) -> TwoClassNetwork:
        """The network at other rates."""
        errors = rates[self.annotator]
        agree, differ = log_factors(self.answers.same, errors, self.answers.weights)
        edge = self.network.factors.edge
        size = self.network.factors.n_edges
        return replace(self.network, agree=sum_by(edge, agree, size), differ=sum_by(edge, differ, size))


def settle_rates(graph: AnswerGraph, rates: Array, annotator: Codes) -> Array:
    """Rates below 0.2% are 0, but never where answers that are never wrong would contradict each other."""
    settled = np.where(rates < _NONE, 0.0, rates)
    counts = np.maximum(np.bincount(annotator, minlength=len(rates)), 1)
    certain = settled[annotator] == 0
    if contradicts(graph, certain):
        involved = np.bincount(annotator, certain & on_cycles(graph), len(rates)) > 0
        settled = np.where((settled == 0) & involved, np.maximum(rates, 1 / (2 * counts)), settled)
    return settled


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
