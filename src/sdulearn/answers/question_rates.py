"""How often each annotator is wrong, with any number of classes.

Whatever the classes are, the truth of a question is "same" with some probability s, and its answers
are wrong independently of each other:

    P(answers to a question) = s prod_{same} (1 - e_a) prod_{different} e_a
                             + (1 - s) prod_{same} e_a prod_{different} (1 - e_a)              (1)

which is the latent class model of Dawid and Skene [1]_ with two classes of questions. Questions with
one answer do not tell s from the rates, so those with several, and those about two labelled points, are used.
Two annotators who answer the same questions are told apart by s alone: the rarer truth is got wrong less often.
Where s is near 1/2 they are not, and a profile interval, over s and all other rates, says so.

Contradictions round a cycle, two "same" and a "different", show errors too. They are used where nothing
else explains them, by the likelihood of all answers on cycles with all classes equally likely.

References
----------
.. [1] Dawid & Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
   Applied Statistics 28 (1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdulearn.answers.error_rates import (
    DROP,
    HIGHEST,
    LOWEST,
    PRIOR_RATE,
    WEAKEST,
    ErrorRates,
    chances_of_strengths,
    collect_rates,
    on_cycles,
    profile_ends,
    shrink,
)
from sdulearn.answers.graph import AnswerGraph, connect
from sdulearn.answers.messages import sum_by
from sdulearn.answers.propagate import FactorGraph
from sdulearn.types import Array, Codes, Mask

_EM_ITER = 500
_EM_TOL = 1e-6
# EM begins at each of these rates, and the best end is kept.
_FIRST_RATES = (PRIOR_RATE, 0.25)
_GRID = np.unique(np.r_[LOWEST, np.geomspace(0.002, 0.05, 12), np.linspace(0.06, HIGHEST, 34)])
# Rates by propagation need a new network each time.
_CYCLE_ITER = 15
_CYCLE_GRID = np.array([LOWEST, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, HIGHEST])


def estimate_question_rates(graph: AnswerGraph, n_classes: int) -> ErrorRates:
    """Estimate how often each annotator is wrong, with any number of classes."""
    numbers, annotator = np.unique(graph.annotators, return_inverse=True)
    counts = np.bincount(annotator, minlength=len(numbers))
    questions = RepeatedQuestions.of(graph, annotator)
    known = questions.counts.sum(axis=0) > 0
    rates = questions.maximise() * known
    ends = [questions.interval(k) if known[k] else (0.0, HIGHEST) for k in range(len(numbers))]
    involved = annotators_in_contradictions(graph, annotator, rates[annotator] == 0)
    if involved.any():
        cycles = CycleRates(graph, annotator, n_classes)
        rates = cycles.maximise(rates, involved)
        for k in np.flatnonzero(involved & ~known).tolist():
            ends[k] = cycles.interval(rates, k)
    low, high = np.reshape(ends, (-1, 2)).T
    return collect_rates(numbers, counts, rates, low, high)


@dataclass(frozen=True, eq=False)
class RepeatedQuestions:
    """Equation (1) for the questions that tell rates, equal ones counted."""

    same: Array  # (n_kinds, n_annotators), how many answers of each kind every annotator gave to a question
    different: Array
    times: Array  # (n_kinds,), how many such questions there are
    truth: Array  # (n_kinds,), 1 and 0 where labels say that it is "same" or "different", else NaN

    @classmethod
    def of(cls, graph: AnswerGraph, annotator: Codes) -> RepeatedQuestions:
        """Of the answers of a graph, given by annotators 0, 1, ..."""
        n_annotators = int(annotator.max(initial=-1)) + 1
        votes = np.zeros((2, graph.n_questions, n_annotators))
        np.add.at(votes, ((graph.same < 0).astype(int), graph.question, annotator), 1.0)
        labels = np.zeros((graph.n_questions, 2), dtype=np.int64)
        labels[graph.question] = graph.labels[graph.ends]
        truth = np.where((labels != 0).all(axis=1), (labels[:, 0] == labels[:, 1]).astype(float), np.nan)
        told = (votes.sum(axis=(0, 2)) > 1) | np.isfinite(truth)
        table = np.column_stack([votes[0], votes[1], np.nan_to_num(truth, nan=-1.0)])[told]
        kinds, times = np.unique(table, axis=0, return_counts=True)
        known = np.where(kinds[:, -1] < 0, np.nan, kinds[:, -1])
        return cls(kinds[:, :n_annotators], kinds[:, n_annotators:-1], times.astype(np.float64), known)

    @property
    def counts(self) -> Array:
        """Answers to each kind of question by each annotator, all questions of the kind together."""
        return self.times[:, None] * (self.same + self.different)

    def maximise(self) -> Array:
        """The rates (n_annotators,), drawn to a small one; 0 where answers that are never wrong do as well."""
        start, shares = self._first()
        first = self.climb(start, shares, WEAKEST)
        best = np.argmax(self.values(*first))
        wrong, _ = self._wrong(first[0][[best]], first[1][[best]])
        rates, found = self.climb(start, shares, chances_of_strengths(wrong[0], self.counts.sum(axis=0)))
        values = self.values(rates, found)
        none = self.climb(np.full_like(start, LOWEST), shares, WEAKEST, np.True_)
        return rates[np.argmax(values)] * (values.max() - self.values(*none).max() > DROP)

    def interval(self, k: int) -> tuple[float, float]:
        """Rates of annotator ``k`` within 1.92 of the largest log likelihood, all else where it is largest."""
        profile = np.full(len(_GRID), -np.inf)
        fixed = np.arange(self.same.shape[1]) == k
        for rates, share in zip(*self._first(), strict=True):
            trial = np.where(fixed, _GRID[:, None], rates)
            found = self.climb(trial, np.full(len(_GRID), share), None, fixed)
            profile = np.maximum(profile, self.values(*found))
        return profile_ends(_GRID, profile)

    def values(self, rates: Array, shares: Array) -> Array:
        """Log likelihood (n,) at rates (n, n_annotators) and shares of "same" (n,)."""
        return np.logaddexp(*self._joint(rates, shares)) @ self.times

    def climb(
        self, rates: Array, shares: Array, chances: Array | None, fixed: Mask | np.bool = np.False_
    ) -> tuple[Array, Array]:
        """EM from several places at once, with chances of all strengths of the prior or without one."""
        free = np.isnan(self.truth)
        counts = self.counts.sum(axis=0)
        for _ in range(_EM_ITER):
            wrong, posterior = self._wrong(rates, shares)
            if chances is None:
                fresh = np.clip(wrong / np.maximum(counts, 1e-12), LOWEST, HIGHEST)
            else:
                fresh = shrink(wrong, counts, chances)
            fresh = np.where(fixed, rates, fresh)
            shares = (posterior[:, free].sum(axis=1) + 0.5) / (self.times[free].sum() + 1)
            moved = np.abs(fresh - rates).max(initial=0.0)
            rates = fresh
            if moved < _EM_TOL:
                break
        return rates, shares

    def _wrong(self, rates: Array, shares: Array) -> tuple[Array, Array]:
        """How many answers of each annotator are wrong, and how many questions of each kind have the truth "same"."""
        same, different = self._joint(rates, shares)
        posterior = np.exp(same - np.logaddexp(same, different)) * self.times
        return posterior @ self.different + (self.times - posterior) @ self.same, posterior

    def _joint(self, rates: Array, shares: Array) -> tuple[Array, Array]:
        """Logarithms (n, n_kinds) of the two terms of equation (1)."""
        wrong = np.log(rates)
        right = np.log1p(-rates)
        prior = np.where(np.isnan(self.truth), shares[:, None], np.nan_to_num(self.truth))
        with np.errstate(divide="ignore"):
            same = np.log(prior) + right @ self.same.T + wrong @ self.different.T
            different = np.log1p(-prior) + wrong @ self.same.T + right @ self.different.T
        return same, different

    def _first(self) -> tuple[Array, Array]:
        """Where EM begins: rates (n_starts, n_annotators), and the share of "same" answers."""
        total = float(self.counts.sum())
        share = float(self.times @ self.same.sum(axis=1)) / max(total, 1.0)
        rates = np.repeat(np.array(_FIRST_RATES)[:, None], self.same.shape[1], axis=1)
        return rates, np.full(len(_FIRST_RATES), np.clip(share, 0.02, 0.98))


@dataclass(frozen=True, eq=False)
class CycleRates:
    """Rates by the likelihood of all answers on cycles, all classes equally likely."""

    graph: AnswerGraph  # answers and labels
    annotator: Codes  # (n_answers,), annotators 0, 1,
    n_classes: int  # number of classes

    def maximise(self, rates: Array, involved: Mask) -> Array:
        """EM for the rates of those ``involved``; the others stay as they are."""
        used = on_cycles(self.graph)
        counts = sum_by(self.annotator[used], np.ones(used.sum()), len(rates))
        rates = np.where(involved, PRIOR_RATE, rates)
        chances = WEAKEST
        for _ in range(2):
            for _ in range(_CYCLE_ITER):
                right, _ = self._propagated(rates)
                wrong = sum_by(self.annotator[used], 1 - right, len(rates))
                rates = np.where(involved, shrink(wrong, counts, chances), rates)
            chances = chances_of_strengths(wrong, counts)
        return rates

    def interval(self, rates: Array, k: int) -> tuple[float, float]:
        """Rates within 1.92 of the largest log likelihood, the other rates as they are."""
        values = [self._propagated(np.where(np.arange(len(rates)) == k, rate, rates))[1] for rate in _CYCLE_GRID]
        return profile_ends(_CYCLE_GRID, np.array(values))

    def _propagated(self, rates: Array) -> tuple[Array, float]:
        """Probability that each answer on a cycle is right, and the log likelihood of these."""
        used = on_cycles(self.graph)
        part = AnswerGraph.from_answers(
            self.graph.ends[used],
            self.graph.same[used],
            annotators=self.annotator[used],
            labels=self.graph.labels,
            n_points=self.graph.n_points,
        )
        factors = FactorGraph.from_answers(part, self.n_classes, dict(enumerate(rates.tolist())))
        found = factors.propagate(np.full(self.n_classes, -np.log(self.n_classes)), tol=1e-4, max_iter=60)
        return found.right, found.value


def annotators_in_contradictions(graph: AnswerGraph, annotator: Codes, certain: Mask) -> Mask:
    """Whose ``certain`` answers contradict each other or the labels, with any number of classes.

    Points that "same" answers or a common label tie together make a group; a "different" answer
    within it, or two labels, refute one of its answers.
    """
    n_annotators = int(annotator.max(initial=-1)) + 1
    labelled = np.flatnonzero(graph.labels)
    names, name = np.unique(graph.labels[labelled], return_inverse=True)
    ties = np.column_stack([labelled, graph.n_points + name])
    same = certain & (graph.same > 0)
    group = connect(np.concatenate([graph.ends[same], ties]), graph.n_points + len(names))
    ends = group[graph.ends]
    refuted = np.unique(ends[certain & (graph.same < 0) & (ends[:, 0] == ends[:, 1]), 0])
    of_names, times = np.unique(group[graph.n_points :], return_counts=True)
    bad = np.union1d(refuted, of_names[times > 1])
    within = certain & (ends[:, 0] == ends[:, 1]) & np.isin(ends[:, 0], bad)
    return np.bincount(annotator[within], minlength=n_annotators) > 0
