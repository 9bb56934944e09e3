"""How answers go wrong: the object that likelihood, accuracy, prior and asking share.

Error rates of annotators are given, or estimated by :mod:`sdulearn.answers.rates`. Answers that
contradict each other, where most points are in several questions, come from a *crowd*, unless an estimator finds that
its features say more about the points. With more than two classes, :mod:`sdulearn.answers.crowd` estimates the classes
of its points, careless people and confused classes together; the resulting evidence about each point replaces its
answers. Where most points are compared once with a few examples, it only finds the classes of these examples, which are
known from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.special import softmax

from sdulearn.answers.clusters import align_classes
from sdulearn.answers.crowd import CrowdSampler, sample_classes
from sdulearn.answers.graph import (
    ENOUGH,
    AnswerGraph,
    NumberOfClasses,
    independent_answers,
    number_questions,
    weights_by_component,
    with_founders,
)
from sdulearn.answers.likelihood import Likelihood
from sdulearn.answers.propagate import FactorGraph, class_columns
from sdulearn.answers.rates import (
    DROP,
    HIGHEST,
    LOWEST,
    MAX_PROFILED,
    SELDOM,
    WIDE,
    RateColumns,
    beta_ends,
    judged_rates,
    on_cycles,
    question_rates,
    two_class_rates,
    unknown_rates,
)
from sdulearn.errors import ClassNumberWarning, InputError, warn
from sdulearn.types import Array, Codes, Count, Indices, Mask, Probability

# "auto", one rate for all, one for each annotator, or an estimated model.
ErrorRateParameter: TypeAlias = "str | float | Mapping[int, float] | AnswerModel"

# A crowd has at least this many questions per point, and points per class: fewer may be a part of another class, or a
# few wrong answers.
_QUESTIONS_A_POINT = 2.0
POINTS_A_CLASS = 3
# To compare models of a crowd: share of the questions that is left out, and chains.
_LEFT_OUT = 0.2
_QUICK_CHAINS = 4
# The largest number of classes that is tried, numbers that are, and how many of these follow the best.
MAX_CLASSES = 20
_TRIED = (3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, MAX_CLASSES)
_PATIENCE = 3
# Share of the gain in log likelihood that more than the fewest classes may add.
_REST = 0.3
# Another number of classes is better beyond doubt by this many standard errors, and this gain in log likelihood.
_CLEARLY = 3.0
_BEYOND_DOUBT = 10.0
# Two classes are doubted above this mean error rate.
_DOUBTFUL_RATE = 0.2
# Intervals of prior and accuracy allow for rates in this range: no answer is certain, and answers of which more are
# wrong tell next to nothing.
_LEAST_RATE = 0.005
_MOST_RATE = 0.3
# Where in their interval the error rates are for the probabilities of asked points, and the largest: to 1/2 these were
# 6 to 10 percentage points too low where nothing tells the rate, and to 0.3 a chain's were 5 too high.
_SHARES_OF_INTERVAL = (np.arange(7) + 0.5) / 7
_MAX_LIKELY_RATE = 0.4
# Least probability of a class by the answers of a crowd: there are few draws.
_LEAST_CHANCE = 1e-3
# The class of an example has this probability.
_SURE = 0.9
# Least half-width of an interval of draws, in standard deviations: there are few chains.
_DEVIATIONS = 2.3


@dataclass(frozen=True)
class Rate:
    """How often answers are wrong.

    Attributes
    ----------
    value, low, high : float
        Probability that an answer is wrong, shrunk to a small one if there are few answers, and
        its 95% interval: 0 to 1/2 if nothing is known, of width 0 for a given rate.
    n_answers : int
        Number of answers.
    careless, same_when_careless : float
        Share of answers that do not depend on the two classes, and share of "same" among these.
    likely : tuple of float
        Quantiles above the median of the rates that the answers allow, where they determine it.
    """

    value: Probability
    low: Probability
    high: Probability
    n_answers: Count
    careless: Probability = 0.0
    same_when_careless: Probability = 0.5
    likely: tuple[Probability, ...] = field(default=(), compare=False, repr=False)

    @property
    def identified(self) -> bool:
        """Whether the answers determine the rate: its interval is narrower than 0.4."""
        return self.high - self.low < WIDE


@dataclass(frozen=True)
class AnswerModel:
    """How often answers are wrong: all of them, and those of each annotator.

    Attributes
    ----------
    error_rate : Rate
        Share of all answers that are wrong; its interval is the mean of those of the annotators.
    by_annotator : dict
        The :class:`Rate` of each annotator by number, ascending; 0 stands for unknown annotators.
    table : array of shape (n_classes, n_classes) or None
        If errors depend on the two classes: probability that a careful answer is "same".

    Examples
    --------
    A question asked 20 times is answered "different" twice:

    >>> from sdulearn.answers import AnswerGraph, AnswerModel
    >>> graph = AnswerGraph.from_answers([(0, 1)] * 20, [True] * 18 + [False] * 2)
    >>> model = AnswerModel.estimate(graph)
    >>> round(model.error_rate.value, 3), model.error_rate.identified
    (0.055, True)
    >>> AnswerModel.given({0: 0.1}, graph).errors(graph.annotators)[:2]
    array([0.1, 0.1])
    """

    error_rate: Rate
    by_annotator: dict[Count, Rate]
    table: Array | None = field(default=None, compare=False)
    # Evidence of a crowd about its points.
    crowd: Crowd | None = field(default=None, compare=False, repr=False)
    # Classes, from 1 on, of points with which many others were compared, by number in ``y``.
    examples: dict[Count, Count] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def given(cls, error_rate: float | Mapping[int, float], graph: AnswerGraph) -> AnswerModel:
        """Wrap known error rates, each with an interval of width 0.

        Parameters
        ----------
        error_rate : float or mapping
            One rate in [0, 1/2] for all, or one for each annotator.
        graph : AnswerGraph
            The answers.

        Returns
        -------
        AnswerModel
            The rates by annotator.
        """
        numbers = np.unique(graph.annotators).tolist()
        every = error_rate if isinstance(error_rate, Mapping) else dict.fromkeys([0, *numbers], error_rate)
        if missing := [a for a in numbers if a not in every]:
            raise InputError(
                f"`error_rate` has no entry for annotator {missing[0]} (0: not known), who answered in `y`. Add one."
            )
        values = np.array([every[a] for a in numbers], dtype=np.float64)
        if bad := [rate for rate in every.values() if not 0 <= rate <= HIGHEST]:
            raise InputError(f"`error_rate` must lie between 0 and 0.5, the rate of guessing; got {bad[0]:g}.")
        return model_of_columns(graph.annotators, RateColumns(values, values, values))

    @classmethod
    def estimate(
        cls, graph: AnswerGraph, n_classes: int = 2, logits: Array | None = None, answer_table: str | bool = "auto"
    ) -> AnswerModel:
        """Estimate how often each annotator is wrong.

        Parameters
        ----------
        graph : AnswerGraph
            Answers and labels: repeated questions, cycles and labels determine the rates.
        n_classes : int, default=2
            With more than two, cycles count only if nothing else explains a contradiction.
        logits : array of shape (n_points,) or (n_points, n_classes), optional
            Logits of each point by a model that has not seen the answers about it. With two classes
            they show differences between annotators, but not a rate that all have in common.
        answer_table : {"auto", True, False}, default="auto"
            With more than two classes: whether errors may depend on the two classes. "auto" decides from questions left
            out, if most points are in several questions and answers contradict each other.

        Returns
        -------
        AnswerModel
            Rates with intervals; 0.02, from 0 to 1/2, if a rate cannot be estimated.

        Raises
        ------
        InputError
            If more than two classes explain the answers far better than errors do, or labels name other classes.
        """
        class_columns(graph.labels[graph.labels != 0], n_classes)  # refuses labels of other classes
        if not graph.n_answers:
            return model_of_columns(graph.annotators, unknown_rates(0))
        crowd = is_crowd(graph, n_classes)
        if n_classes > 2 and (crowd or (answer_table is True and on_cycles(graph).any())):
            return _crowd_model(graph, n_classes, answer_table, logits)
        numbers, annotator = np.unique(graph.annotators, return_inverse=True)
        examples: dict[int, int] = {}
        if n_classes == 2:
            rates = two_class_rates(graph, annotator, len(numbers), logits)
        else:
            examples = find_examples(graph, n_classes)
            rates = question_rates(with_labels(graph, examples), annotator, len(numbers), n_classes)
        best = rates.value.min()
        careless = (rates.value - best) / max(HIGHEST - best, LOWEST)
        low = np.minimum(np.where(rates.low > LOWEST, rates.low, 0.0), rates.value)
        rates = rates._replace(low=low, high=np.maximum(rates.high, rates.value))
        model = replace(model_of_columns(graph.annotators, rates, careless), examples=examples)
        if n_classes == 2 and crowd and model.error_rate.value > _DOUBTFUL_RATE:
            _refuse_more_classes(graph, model.error_rate.value)
        return model

    @classmethod
    def audited(cls, annotators: Codes, audits: Mapping[int, tuple[int, int]]) -> AnswerModel:
        """Return rates by an audit, with Jeffreys' prior; nearly 0 for those without an audit.

        ``audits``: for each annotator the number of answers asked again, and of wrong ones.
        """
        n, wrong = np.array([audits.get(a, (0, 0)) for a in np.unique(annotators).tolist()], dtype=np.float64).T
        value = np.clip((wrong + 0.5) / (n + 1), LOWEST, HIGHEST)
        low, high = np.minimum(beta_ends(wrong / np.maximum(n, 1), n), HIGHEST)
        return model_of_columns(annotators, RateColumns(*np.where(n > 0, (value, low, high), LOWEST)))

    @classmethod
    def stated(cls, rates: Mapping[int, float], graph: AnswerGraph, whole: Rate) -> AnswerModel:
        """Return rates by stated certainty, moved together into the interval of the rate of all answers.

        Certainties tell which answers are wrong more often; how often they are wrong in all is known no better than
        without them.

        Parameters
        ----------
        rates : mapping
            The rate of each annotator: a person who states a certainty.
        graph : AnswerGraph
            The answers.
        whole : Rate
            How often answers are wrong, estimated without the certainties.

        Returns
        -------
        AnswerModel
            With an interval for each rate: their means reach from the lower to the upper end of that of ``whole``.
        """
        given = cls.given(rates, graph)
        mean = given.error_rate.value

        def moved(rate: float, to: float) -> float:
            if to <= mean:
                return rate * to / mean
            return rate + (HIGHEST - rate) * (to - mean) / (HIGHEST - mean)

        best = min(max(mean, whole.low), whole.high)
        by_annotator = {
            a: replace(r, value=moved(r.value, best), low=moved(r.value, whole.low), high=moved(r.value, whole.high))
            for a, r in given.by_annotator.items()
        }
        return replace(given, error_rate=_mean_rate(list(by_annotator.values())), by_annotator=by_annotator)

    @property
    def of_crowd(self) -> bool:
        """Whether rates and classes of the points were estimated together."""
        return self.crowd is not None

    @property
    def certain(self) -> bool:
        """Whether all rates were given as 0, so that closed forms apply."""
        return not any(rate.value for rate in self.by_annotator.values())

    @property
    def is_exact(self) -> bool:
        """Whether all rates were given: their intervals have width 0."""
        return all(rate.low == rate.high for rate in self.by_annotator.values())

    @property
    def rates(self) -> dict[int, float]:
        """The values of ``by_annotator``, as the parameter ``error_rate`` takes them."""
        return {a: rate.value for a, rate in self.by_annotator.items()}

    def errors(self, annotators: Codes) -> Array:
        """Return the probability that each answer is wrong; unknown annotators have the mean rate.

        It is at most 1/2: answers of annotators who are wrong more often carry no information.
        """
        numbers, place = np.unique(annotators, return_inverse=True)
        rates = [self.by_annotator.get(a, self.error_rate).value for a in numbers.tolist()]
        return np.minimum(np.array(rates, dtype=np.float64), HIGHEST)[place]

    def with_rates(self, change: Callable[[Rate], float]) -> AnswerModel:
        """Return the model with other values of its rates, and intervals as they are."""
        return self._at({a: change(rate) for a, rate in self.by_annotator.items()})

    def _at(self, values: Mapping[int, float]) -> AnswerModel:
        return replace(self, by_annotator={a: replace(r, value=values[a]) for a, r in self.by_annotator.items()})

    def of_people(self, people: Codes) -> AnswerModel:
        """Return the mean rates of people where each annotator is one certainty of a person.

        Parameters
        ----------
        people : int array of shape (n_annotators,)
            The person of annotator 1, 2, ...

        Returns
        -------
        AnswerModel
            Its annotators are the people.
        """
        by_person: dict[int, list[Rate]] = {}
        for a, rate in self.by_annotator.items():
            by_person.setdefault(int(people[a - 1]), []).append(rate)
        return replace(self, by_annotator={person: _mean_rate(rates) for person, rates in sorted(by_person.items())})

    def plausible(self) -> list[AnswerModel]:
        """Return the model, and where its rates are not exactly known, the same with lower and with higher ones.

        The rates of all annotators together move to where ``error_rate`` has the ends of its interval, as far as
        answers with such rates contain information.
        """
        if self.of_crowd or self.is_exact:
            return [self]
        ends = (self.error_rate.value, self.error_rate.low, self.error_rate.high)
        return [
            self.moved_to(end).with_rates(lambda rate: min(max(rate.value, _LEAST_RATE), _MOST_RATE)) for end in ends
        ]

    def likely(self) -> list[AnswerModel]:
        """Return models whose rates are likely, or higher: a model explains too well what it has learned from.

        Returns
        -------
        list of AnswerModel
            Probabilities of asked points are means over these.
        """
        if all(rate.likely and rate.identified for rate in self.by_annotator.values()):
            columns = zip(*(rate.likely for rate in self.by_annotator.values()), strict=True)
            return [self._at(dict(zip(self.by_annotator, rates, strict=True))) for rates in columns]
        value, high = self.error_rate.value, min(self.error_rate.high, _MAX_LIKELY_RATE)
        return [self.moved_to(value + share * max(high - value, 0.0)) for share in _SHARES_OF_INTERVAL]

    def moved_to(self, mean: float) -> AnswerModel:
        """Move the rates of all annotators in their intervals.

        Parameters
        ----------
        mean : float
            The mean rate of all answers that they reach.

        Returns
        -------
        AnswerModel
            With the same intervals.
        """
        whole, rates = self.error_rate, self.by_annotator.values()
        end = "low" if mean < whole.value else "high"
        apart = sum(rate.n_answers * (getattr(rate, end) - rate.value) for rate in rates)
        share = (mean - whole.value) * whole.n_answers / apart if apart else 0.0
        return self.with_rates(lambda rate: rate.value + share * (getattr(rate, end) - rate.value))

    @property
    def open_rates(self) -> set[int]:
        """The annotators whose rates the answers do not tell.

        Where most points were compared once with examples, those that were asked about again had doubtful answers.
        """
        return {a for a, rate in self.by_annotator.items() if self.examples or not rate.identified}

    def doubted(self, rate: float) -> AnswerModel:
        """Return the model with this rate for those that the answers do not tell.

        Parameters
        ----------
        rate : float
            The rate of the annotators in ``open_rates``.

        Returns
        -------
        AnswerModel
            The model itself if there are none.
        """
        values = {a: rate if a in self.open_rates else one.value for a, one in self.by_annotator.items()}
        return self._at(values) if self.open_rates else self

    def with_mean(self, mean: float, low: float, high: float) -> AnswerModel:
        """Move the rates so that their mean is the one given, and widen their intervals by that of the mean.

        Parameters
        ----------
        mean, low, high : float
            The mean rate of all answers, and its interval.

        Returns
        -------
        AnswerModel
            With other rates and intervals.
        """
        wide = {}
        for a, rate in self.moved_to(mean).by_annotator.items():
            ends = min(rate.low, rate.value + low - mean), max(rate.high, rate.value + high - mean)
            # Other rates than these are likely now.
            wide[a] = replace(rate, low=max(ends[0], 0.0), high=min(ends[1], HIGHEST), likely=())
        return replace(self, error_rate=_mean_rate(list(wide.values())), by_annotator=wide)

    def judged(self, graph: AnswerGraph, chances: Array) -> AnswerModel:
        """Estimate the rates that the answers do not determine, from a model that has not seen them.

        Parameters
        ----------
        graph : AnswerGraph
            The answers.
        chances : array of shape (n_scales, n_questions)
            Probabilities that all answers to a question are right, by the model with its logits on several scales; NaN
            where the question is not judged.

        Returns
        -------
        AnswerModel
            With these rates and their intervals; other rates, and those of people with few answers, stay.
        """
        is_judged: Mask = np.asarray(np.isfinite(chances).all(axis=0))
        questions, first = np.unique(graph.question, return_index=True)
        numbers, counts = np.unique(graph.annotators[first[is_judged[questions]]], return_counts=True)
        unknown = [a for a in numbers[counts >= ENOUGH].tolist() if a in self.open_rates]
        if not unknown:
            return self
        used = is_judged[graph.question] & np.isin(graph.annotators, unknown)
        part = graph.restrict(used, graph.labels != 0)
        rates = judged_rates(
            chances[:, np.unique(part.question)], part, np.searchsorted(unknown, part.annotators), len(unknown)
        )
        judged = model_of_columns(part.annotators, rates).by_annotator
        by_annotator = self.by_annotator | {
            a: replace(self.by_annotator[a], value=rate.value, low=rate.low, high=rate.high, likely=rate.likely)
            for a, rate in judged.items()
        }
        return replace(self, error_rate=_mean_rate(list(by_annotator.values())), by_annotator=by_annotator)

    def crowd_of(self, graph: AnswerGraph) -> Crowd | None:
        """Return the crowd behind the rates where all these answers are from it, else None."""
        crowd = self.crowd
        return crowd if crowd is not None and _answers_of(graph) <= crowd.known else None

    def likelihood(self, graph: AnswerGraph, n_classes: int) -> Likelihood:
        """Return the likelihood of answers and labels as a function of the scores of points.

        With more than two classes, answers that contradict none and are rarely wrong tie points together, as if they
        were right: a wrong one misplaces a point or two, and not, as with two classes, all points behind it. Ties make
        a fit three times as fast and find better starts.
        """
        crowd = self.crowd_of(graph) if n_classes > 2 and graph.n_answers else None
        if n_classes > 2 and crowd is None:
            graph = with_labels(graph, self.examples) if self.examples else with_founders(graph, n_classes)
            graph = graph.restrict(independent_answers(graph), graph.labels != 0)
        relative, weight = weights_by_component(graph)
        evidence = None if crowd is None else crowd.evidence(graph)
        tied = n_classes > 2 and crowd is None and ties(self, relative, n_classes)
        return Likelihood(relative, n_classes, self.errors(graph.annotators), evidence, weight, tied=tied)

    def factor_graph(self, graph: AnswerGraph, n_classes: int) -> FactorGraph:
        """Return the factor graph of the answers; answers of a crowd become evidence per point."""
        if (crowd := self.crowd_of(graph)) is not None:
            return FactorGraph.of_evidence(graph, crowd.evidence(graph))
        return FactorGraph.from_answers(with_labels(graph, self.examples), n_classes, self.errors(graph.annotators))


@dataclass(frozen=True, eq=False)
class Crowd:
    """Class probabilities of the points of a crowd by all its answers."""

    answers: list[tuple[int, int, int, int]]  # points, answer and annotator of each; none twice
    points: list[int]  # (n_points,), their numbers in ``y``, ascending
    log_posteriors: Array  # (n_points, n_classes), of class probabilities
    log_shares: Array  # (n_classes,), of their means
    alone: bool  # whether they rest on answers alone, without a model

    def __post_init__(self) -> None:
        asked = {point for answer in self.answers for point in answer[:2]}
        if self.log_posteriors.shape != (len(self.points), *self.log_shares.shape) or sorted(asked) != self.points:
            raise ValueError("points, answers and classes of a crowd do not fit together")

    @cached_property
    def known(self) -> frozenset[tuple[int, int, int, int]]:
        """The answers that the probabilities rest on."""
        return frozenset(self.answers)

    def evidence(self, graph: AnswerGraph) -> Array:
        """Return the log likelihood of the answers by class, (n_points, n_classes)."""
        evidence = np.zeros((graph.n_points, len(self.log_shares)))
        asked = np.flatnonzero(graph.degree)
        evidence[asked] = self.log_posteriors[np.searchsorted(self.points, graph.points[asked])] - self.log_shares
        return evidence


def ties(model: AnswerModel, graph: AnswerGraph, n_classes: int) -> bool:
    """Return whether answers are rarely wrong, and contradict neither each other nor the labels."""
    if any(rate.value > SELDOM for rate in model.by_annotator.values()):
        return False
    try:
        FactorGraph.from_answers(graph, n_classes, np.zeros(graph.n_answers))
    except InputError:
        return False
    return True


def _answers_of(graph: AnswerGraph) -> frozenset[tuple[int, int, int, int]]:
    """Return the points, the sign and the annotator of each answer."""
    ends = np.sort(graph.points[graph.ends], axis=1)
    return frozenset(map(tuple, np.column_stack([ends, graph.same, graph.annotators]).tolist()))


def crowd_probabilities(model: AnswerModel, graph: AnswerGraph) -> Array | None:
    """Return class probabilities by answers of a crowd alone; None for other answers."""
    crowd = model.crowd_of(graph)
    return None if crowd is None or not crowd.alone else np.asarray(softmax(crowd.evidence(graph), axis=1))


def posteriors(model: AnswerModel, graph: AnswerGraph, log_p: Array) -> Array:
    """Return class probabilities by answers and log prior probabilities (n_points, n_classes).

    All answers of a crowd count alone: the model behind the prior has learned from them. Where most points are in one
    question, that would be little more than one answer, and the prior counts, too. Other probabilities are means over
    error rates from the estimate to the upper end of its interval: a model explains the answers that it has learned
    from too well.
    """
    crowd = model.crowd_of(graph)
    if crowd is not None and _answers_of(graph) == crowd.known:
        if _are_asked_again(graph):
            log_p = np.where(graph.degree[:, None] > 0, crowd.log_shares, log_p)
    elif model.table is not None:
        rates = [model.by_annotator.get(a, model.error_rate) for a in np.unique(graph.annotators).tolist()]
        careless, same = np.array([(rate.careless, rate.same_when_careless) for rate in rates]).reshape(-1, 2).T
        return sample_classes(graph, model.table, careless, same, log_p)
    models = [model]
    if crowd is None and not model.is_exact:
        models = model.likely()
    return np.mean([each.factor_graph(graph, log_p.shape[1]).propagate(log_p).posteriors for each in models], axis=0)


def _are_asked_again(graph: AnswerGraph) -> bool:
    """Return whether most points are in several questions; the pairs of a match question are one."""
    return bool(np.median(_times_asked(graph)[1]) > 1)


def _times_asked(graph: AnswerGraph) -> tuple[Indices, Indices]:
    """Return the points in answers, and in how many questions each is."""
    shown = np.unique(np.column_stack([graph.ends.ravel(), np.repeat(graph.question, 2)]), axis=0)[:, 0]
    points, counts = np.unique(shown, return_counts=True)
    return points, counts


def renamed(model: AnswerModel, order: Indices) -> AnswerModel:
    """Return the model with its classes in another order."""
    table = None if model.table is None else model.table[np.ix_(order, order)]
    crowd = model.crowd
    if crowd is not None:
        crowd = replace(crowd, log_posteriors=crowd.log_posteriors[:, order], log_shares=crowd.log_shares[order])
    place = np.argsort(order) + 1
    examples = {point: int(place[name - 1]) for point, name in model.examples.items()}
    return replace(model, table=table, crowd=crowd, examples=examples)


def model_of_columns(annotators: Codes, rates: RateColumns, *careless: Array) -> AnswerModel:
    """Make a model of columns over the annotators of all answers; ``careless``: the last fields of :class:`Rate`."""
    numbers, counts = np.unique(annotators, return_counts=True)
    ends = rates[:3]
    rows: Iterator[Any] = zip(*(column.tolist() for column in (*ends, counts, *careless)), strict=True)
    by_annotator = [Rate(*row) for row in rows]
    if rates.likely is not None:
        likely = map(tuple, rates.likely.tolist())
        by_annotator = [replace(rate, likely=above) for rate, above in zip(by_annotator, likely, strict=True)]
    share = counts / max(len(annotators), 1)
    mean, low, high, *rest = (float(share @ column) for column in (*ends, *careless[:1]))
    if len(counts) > MAX_PROFILED:
        # Rates of few people may err together; those of many are estimated nearly independently.
        low = mean - float(np.linalg.norm(share * (rates.value - rates.low)))
        high = mean + float(np.linalg.norm(share * (rates.high - rates.value)))
    whole = Rate(mean, low, high, len(annotators), sum(rest))
    return AnswerModel(whole, dict(zip(numbers.tolist(), by_annotator, strict=True)))


def _mean_rate(rates: Sequence[Rate]) -> Rate:
    """Return the rate of all answers together."""
    n = np.array([rate.n_answers for rate in rates])
    names = ("value", "low", "high", "careless", "same_when_careless")
    value, low, high, careless, same = (float(n @ [getattr(rate, name) for rate in rates] / n.sum()) for name in names)
    return Rate(value, low, high, int(n.sum()), careless, same)


def known_answer_model(
    error_rate: float | Mapping[int, float] | AnswerModel | None, graph: AnswerGraph
) -> AnswerModel | None:
    """Return the model of given rates, for answers that judge a classifier; None for None."""
    if error_rate is None or isinstance(error_rate, AnswerModel):
        return error_rate
    model = AnswerModel.given(error_rate, graph)
    if model.by_annotator and min(model.rates.values()) == HIGHEST:
        raise InputError(f"`error_rate` must lie in [0, 0.5), for one annotator at least; got {error_rate!r}.")
    return model


def answer_model_of(
    error_rate: ErrorRateParameter, graph: AnswerGraph, n_classes: int, answer_table: str | bool = "auto"
) -> AnswerModel:
    """Return the model given by the parameter, or estimate it from the answers alone."""
    if isinstance(error_rate, AnswerModel):
        if error_rate.table is not None and (K := len(error_rate.table)) != n_classes:
            raise InputError(f"`error_rate` is an answer model of {K} classes: give `n_classes={K}`, or another model.")
        return error_rate
    if isinstance(error_rate, str):
        return AnswerModel.estimate(graph, n_classes, answer_table=answer_table)
    model = AnswerModel.given(error_rate, graph)
    return model if model.certain else replace(model, examples=find_examples(graph, n_classes))


def rate_of_all(graph: AnswerGraph, n_classes: int) -> Rate:
    """Return how often answers are wrong, whoever gave them, by the answers alone."""
    everybody = np.zeros(graph.n_answers, dtype=np.int64)
    if n_classes == 2:
        columns = two_class_rates(graph, everybody, 1, None)
    else:
        columns = question_rates(graph, everybody, 1, n_classes)
    return model_of_columns(everybody, columns).error_rate


def is_crowd(graph: AnswerGraph, n_classes: int = 2) -> bool:
    """Return whether answers contradict each other and most points are in several questions."""
    asked = int(np.count_nonzero(graph.degree))
    questions, _ = number_questions(graph.ends, graph.n_points)
    enough = len(questions) >= _QUESTIONS_A_POINT * asked and asked >= POINTS_A_CLASS * n_classes
    contradictions = graph.contradictory if n_classes == 2 else graph.refuted
    return bool(enough and contradictions.any() and _are_asked_again(graph))


def with_labels(graph: AnswerGraph, examples: Mapping[int, int]) -> AnswerGraph:
    """Return the graph with the classes of examples as labels."""
    if not examples:
        return graph
    known = np.array([examples.get(point, 0) for point in graph.points.tolist()], dtype=np.int64)
    return graph.with_values(labels=np.where(graph.labels == 0, known, graph.labels))


def has_examples(graph: AnswerGraph) -> bool:
    """Return whether answers that contradict each other compare most points once, with examples of several classes."""
    question, n_pairs = np.unique(graph.question[graph.in_larger_question], return_counts=True)
    if not len(question) or not graph.refuted.any() or _are_asked_again(graph):
        return False
    # All pairs of such a question are about one point.
    shown = np.unique(np.column_stack([np.repeat(graph.question, 2), graph.ends.ravel()]), axis=0)[:, 0]
    return bool(np.mean(n_pairs == np.bincount(shown)[question] - 1) > 0.5)


def find_examples(graph: AnswerGraph, n_classes: int) -> dict[int, int]:
    """Return the classes of points in many questions, where others are compared with such examples.

    What they are is beyond doubt, whatever a single answer says, and tells the classes of the points beside them.
    """
    if n_classes == 2 or not has_examples(graph):
        return {}
    chains = CrowdSampler(graph, n_classes, by_pair=False, n_chains=_QUICK_CHAINS, n_afresh=0).search()
    posteriors = align_classes(chains.posteriors[chains.better(_QUICK_CHAINS)])[1]
    asked, n_questions = _times_asked(graph)
    known = (n_questions >= ENOUGH) & (posteriors.max(axis=1) >= _SURE)
    classes = posteriors.argmax(axis=1) + 1
    return dict(zip(graph.points[asked[known]].tolist(), classes[known].tolist(), strict=True))


def _crowd_model(graph: AnswerGraph, n_classes: int, answer_table: str | bool, log_p: Array | None) -> AnswerModel:
    """Estimate by Gibbs sampling; use a table or a classifier if it predicts questions left out."""
    by_pair = answer_table is True
    values = left_out_values(graph, n_classes, by_pair)
    if answer_table == "auto":
        with_table = left_out_values(graph, n_classes, True)
        by_pair = bool((with_table - values).sum() > DROP)
        values = with_table if by_pair else values
    _warn_of_other_number(graph, n_classes, values, by_pair)
    if log_p is not None and (left_out_values(graph, n_classes, by_pair, log_p) - values).sum() <= DROP:
        log_p = None
    draws = CrowdSampler(graph, n_classes, by_pair=by_pair, log_p=log_p).run()
    rates = draws.bagged.rates.mean(axis=(0, 1))
    parts = (draws.alike, draws.afresh, draws.bagged)
    every = np.concatenate([part.rates.reshape(-1, len(rates)) for part in parts])
    low, high = np.quantile(every, [0.025, 0.975], axis=0)
    columns = RateColumns(rates, np.minimum(low, rates), high)
    model = model_of_columns(graph.annotators, columns, draws.careless, draws.same)
    # Of all answers: the widest of quantiles and normal intervals of all kinds of chains.
    wrong = [part.wrong for part in parts]
    ends = [part.mean() + _DEVIATIONS * part.std() * np.array([-1, 1]) for part in wrong]
    lows, highs = zip(*ends, *(np.quantile(part, [0.025, 0.975]) for part in wrong), strict=True)
    value, low, high = float(draws.bagged.wrong.mean()), max(float(min(lows)), 0.0), min(float(max(highs)), 1.0)
    total = replace(model.error_rate, value=value, low=low, high=high)
    chances = np.maximum(draws.posteriors, _LEAST_CHANCE)
    asked = graph.points[graph.degree > 0].tolist()
    crowd = Crowd(sorted(_answers_of(graph)), asked, np.log(chances), np.log(chances.mean(axis=0)), log_p is None)
    return replace(model, error_rate=total, table=draws.table if by_pair else None, crowd=crowd)


def answers_left_in(graph: AnswerGraph) -> Mask:
    """Return which answers to keep if some questions, drawn at random, are left out to compare models of a crowd."""
    _, question = np.unique(graph.question, return_inverse=True)
    return np.random.default_rng(0).random(len(question))[question] >= _LEFT_OUT


def left_out_values(graph: AnswerGraph, n_classes: int, by_pair: bool, log_p: Array | None = None) -> Array:
    """Return log probabilities of questions left out at random, by draws from the others."""
    used = answers_left_in(graph)
    sampler = CrowdSampler(
        graph, n_classes, by_pair=by_pair, used=used, log_p=log_p, n_chains=_QUICK_CHAINS, n_afresh=0
    )
    chains = sampler.search()
    return np.log(chains.chances[chains.better(_QUICK_CHAINS)].mean(axis=0))


def crowd_value(graph: AnswerGraph, n_classes: int) -> float:
    """Return the mean log probability, less its standard error, of questions left out, by a crowd's answers alone."""
    return max(lower_mean(left_out_values(graph, n_classes, by_pair)) for by_pair in (False, True))


def lower_mean(values: Array) -> float:
    """Return the mean less its standard error."""
    return float(values.mean() - values.std() / np.sqrt(len(values)))


def larger_share(graph: AnswerGraph, confidence: float) -> Array:
    """Return the interval of the share of the larger class, with errors by class pair.

    One rate for all pairs of classes covered 85% where errors depend on them; with this it is 97% (40 draws).
    """
    chains = CrowdSampler(graph, 2, n_chains=_QUICK_CHAINS - 1, n_afresh=1).search()
    return np.quantile(chains.errors.largest, [(1 - confidence) / 2, (1 + confidence) / 2])


def number_by_answers(graph: AnswerGraph) -> tuple[NumberOfClasses, Array]:
    """Return how many classes the answers show, and log probabilities of questions left out by the best number.

    Numbers within a standard error of the best predict questions left out equally well. The fewest of these may have
    classes for points that are like no others, and for the odd ones of a large class: where people sorted birds of five
    species, up to nine. Classes count if their own points are called "same" more often than not, and if they have half
    the points of the median class; the interval begins where 70% of the gain in log likelihood is reached.
    """
    # Labels of more than two classes are 1 to K.
    fewest = best = max(2, int(graph.labels.max(initial=0)))
    compared: dict[int, tuple[Array, bool]] = {}
    since = 0
    for n_classes in (fewest, *(k for k in _TRIED if k > fewest)):
        plain, by_pair = (left_out_values(graph, n_classes, kind) for kind in (False, True))
        has_table = bool((by_pair - plain).sum() > DROP)
        compared[n_classes] = (by_pair if has_table else plain, has_table)
        since += 1
        if compared[n_classes][0].sum() > compared[best][0].sum():
            best, since = n_classes, 0
        if since >= _PATIENCE:
            break
    left_out = compared[best][0]
    near = [k for k, (values, _) in compared.items() if not is_behind(values, left_out, 1.0)]
    counts = _count_large(graph, min(near), compared[min(near)][1]) if min(near) > 2 else [2]
    gain = {k: float(values.sum()) for k, (values, _) in compared.items()}
    most = min(k for k in gain if gain[best] - gain[k] <= _REST * (gain[best] - gain[fewest]))
    value, low = max(fewest, round(float(np.mean(counts)))), max(fewest, min(*counts, most))
    return NumberOfClasses(value, low, max(value, *near)), left_out


def _count_large(graph: AnswerGraph, n_classes: int, has_table: bool) -> list[int]:
    """Return how many of so many classes are large and hold together, by each of the better chains."""
    chains = CrowdSampler(graph, n_classes, by_pair=has_table, n_chains=_QUICK_CHAINS, n_afresh=0).search()
    counts = []
    for chain in chains.better(_QUICK_CHAINS):
        sizes = np.bincount(chains.posteriors[chain].argmax(axis=1), minlength=n_classes)
        held = (np.diag(chains.table[chain]) >= 0.5) & (sizes > 0)
        counts.append(int(np.sum(sizes[held] >= np.median(sizes[held]) / 2)) if held.any() else n_classes)
    return [max(2, count) for count in counts]


def is_behind(values: Array, best: Array, n_errors: float, least: float = DROP) -> bool:
    """Return whether the sum of log probabilities is clearly below the best."""
    apart = best - values
    return bool(apart.sum() > max(n_errors * apart.std() * np.sqrt(len(apart)), least))


def _warn_of_other_number(graph: AnswerGraph, n_classes: int, values: Array, by_pair: bool) -> None:
    """Warn where one class more, or one fewer, clearly predicts questions left out better."""
    for other in (n_classes - 1, n_classes + 1):
        if other < graph.labels.max(initial=0):
            continue
        others = left_out_values(graph, other, by_pair)
        if is_behind(values, others, _CLEARLY, _BEYOND_DOUBT):
            warn(
                f"The answers are explained better by {other} classes than by {n_classes}: {len(others):,} "
                f"questions left out have mean log likelihood {others.mean():.3f}, not {values.mean():.3f}. "
                f"Try `n_classes={other}`.",
                ClassNumberWarning,
            )


def _refuse_more_classes(graph: AnswerGraph, rate: float) -> None:
    """Raise where more than two classes explain the answers far better than errors do."""
    # Where there are three classes or more, four explain the answers better than two. One standard error is enough to
    # look further.
    values = {n_classes: left_out_values(graph, n_classes, True) for n_classes in (2, 4)}
    if not is_behind(values[2], values[4], 1.0):
        return
    best = number_by_answers(graph)[0].value
    values[best] = values.get(best, left_out_values(graph, best, True))
    if best > 2 and is_behind(values[2], values[best], _CLEARLY, _BEYOND_DOUBT):
        raise InputError(
            f"Two classes do not explain the answers: {rate:.0%} of them would be wrong. {best} classes "
            f"explain them better (mean log likelihood of questions left out {values[best].mean():.3f}, not "
            f"{values[2].mean():.3f}). Fit with `n_classes={best}` or 'auto'."
        )


def log_node_probabilities(probability: Array, graph: AnswerGraph) -> Array:
    """Return log probabilities of the points (n_points, n_classes), from those of the rows."""
    probability = np.asarray(probability, dtype=np.float64)
    if len(probability) != graph.n_given:
        raise InputError(f"`X` has {len(probability)} rows, but `y` has {graph.n_given}.")
    if not np.isfinite(probability).all():
        raise InputError("The model gives probabilities that are not numbers. Look for missing values in `X`.")
    log_p = np.log(np.maximum(graph.by_point(probability[graph.rows]), 1e-12))
    return np.asarray(log_p - np.logaddexp.reduce(log_p, axis=1, keepdims=True))
