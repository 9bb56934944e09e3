"""How answers go wrong: the only place that knows it.

An answer of annotator a says what is true with probability 1 - e_a, whatever the two classes are:

    P(answer | classes of its points) = (1 - e_a)^w  if it is right,  e_a^w  if it is wrong,  w its weight      (1)

Rates are given, or estimated from answers that contradict each other, by EM for the likelihood of
all answers as a function of the rates under a Beta prior:

    e_a  <-  (m mu_a + sum of P(wrong | all answers) over the answers of a) / (m + their number)                (2)

mu_a is the rate of all other annotators, itself drawn to a small one, and m says how alike
annotators are; :func:`shrink` takes the mean over m.

With two classes the likelihood is that of all answers on cycles. A model that has not seen the answers
about a point says something of it too. But it may be wrong itself, and what it says of a point is

    P(c = +1) = (1 - b) logistic(t z) + b / 2                                                                   (3)

with a share b of blind points and a scale t that suit the answers best. For a loose pair b and a rate that
all annotators have in common have one effect: the model can refute a rate and tell annotators apart,
but it cannot assert a rate.

With more classes the truth of a question is "same" with some probability s, and its answers are wrong independently:

    P(answers to a question) = s prod_{same} (1 - e_a) prod_{different} e_a
                             + (1 - s) prod_{same} e_a prod_{different} (1 - e_a)                               (4)

which is the latent class model of Dawid and Skene [1]_ with two classes of questions. Those with
several answers, or about two labelled points, are used. Two annotators who answer the same
questions are distinguished by s alone; where s is near 1/2 they are not, and a profile interval says
so. Contradictions round a cycle are used where nothing else explains them, by the likelihood of all
answers on cycles with all classes equally likely.

Where most points are in several questions and answers contradict each other, there is a *crowd*, and more can be
told: with more than two classes :mod:`sdulearn.answers.crowd` finds the classes of the points, how often each
person is careless, and whether errors depend on the two classes. What it says of each point then stands for the
answers about it.

References
----------
.. [1] Dawid & Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
   Applied Statistics 28 (1979).
.. [2] Varadhan & Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
   algorithm", Scandinavian Journal of Statistics 35 (2008).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import betaln, expit, logit, softmax
from scipy.stats import beta

from sdulearn.answers.crowd import CrowdSampler, Draws, sample_classes
from sdulearn.answers.graph import AnswerGraph, connect, find_core, find_sides, number_questions
from sdulearn.answers.propagate import FactorGraph, sum_by
from sdulearn.answers.two_classes import TwoClassNetwork
from sdulearn.errors import ClassNumberWarning, InputError, warn
from sdulearn.pairs import read_pairs
from sdulearn.types import Array, Codes, Count, Estimator, Indices, Mask, MatrixLike, Probability

# What the parameter of an estimator may be: "auto", one rate for all, one for each annotator, or what was estimated.
ErrorRateParameter: TypeAlias = "str | float | Mapping[int, float] | AnswerModel"

# Before any answer: one wrong in fifty, with the weight of 30 answers. One contradiction among few answers then leaves
# the rate of a single annotator at 5%.
PRIOR_RATE = 0.02
PRIOR_ANSWERS = 30.0
# Values of m in equation (2) and their chances before any answer: the first is the likeliest until contradictions
# pile up or annotators differ.
_STRENGTHS = np.array([PRIOR_ANSWERS, 16.0, 8.0, 4.0, 2.0])
_CHANCES = np.array([20.0, 1.0, 1.0, 1.0, 1.0]) / 24
_WEAKEST = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
# A rate is looked for between these two.
LOWEST = 1e-4
HIGHEST = 0.5
# Half of the 95% quantile of chi^2 with one degree of freedom.
_DROP = 1.92
# An interval as wide as this says nothing.
_WIDE = 0.4

# Two classes: EM, where a profile is computed, and there for all other rates how often EM takes two steps and a leap.
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

# A crowd: so many questions a point, and so many points a class.
_QUESTIONS_A_POINT = 2.0
_POINTS_A_CLASS = 3
# Share of the answers that is left out to compare models of a crowd, and chains and draws for that.
_LEFT_OUT = 0.2
_QUICK = {"n_chains": 4}
_QUICK_DRAWS = (60, 40)
# The most classes that are tried, and by how many standard errors more of them must explain the answers better.
_MOST_CLASSES = 10
_CLEARLY = 3.0
# By how much in log likelihood more than two classes must explain answers left out better, for two to be refused.
_BEYOND_DOUBT = 10.0
# A mean error rate above which two classes are doubted.
_DOUBTFUL_RATE = 0.2
# The least probability of a class by the answers of a crowd: draws are few.
_LEAST_CHANCE = 1e-3
# An interval of draws is at least so many standard deviations wide to either side: chains are few.
_DEVIATIONS = 2.3

# When answers are checked, an annotator of whose error rate nothing is known is not infallible.
_UNKNOWN_RATE = 0.05


@dataclass(frozen=True)
class Rate:
    """How often answers are wrong.

    Attributes
    ----------
    value : float
        Probability that an answer is wrong, drawn to a small one where few answers tell.
    low, high : float
        95% interval; from 0 to 1/2 where nothing is known. A given rate is its own interval.
    n_answers : int
        Number of answers.
    careless : float
        Share of the answers that were given without a look, so to say: they do not depend on the two classes.
    same_when_careless : float
        Share of "same" among these.
    """

    value: Probability
    low: Probability
    high: Probability
    n_answers: Count
    careless: Probability = 0.0
    same_when_careless: Probability = 0.5

    @property
    def identified(self) -> bool:
        """Whether the answers say something about the rate: its interval is narrower than 0.4."""
        return self.high - self.low < _WIDE


@dataclass(frozen=True)
class AnswerModel:
    """How often answers are wrong: all of them, and those of each annotator.

    Attributes
    ----------
    error_rate : Rate
        Share of all answers that are wrong; the interval has the mean ends of the annotators'.
    by_annotator : dict
        The :class:`Rate` of each annotator by number, in ascending order; 0 where it is not known who answered.
    table : array of shape (n_classes, n_classes) or None
        Where errors depend on the two classes: probability that a careful answer is "same", given these.

    Examples
    --------
    A question asked 20 times is answered "different" twice:

    >>> from sdulearn.answers import AnswerGraph, AnswerModel
    >>> graph = AnswerGraph.from_answers([(0, 1)] * 20, [True] * 18 + [False] * 2)
    >>> found = AnswerModel.estimate(graph)
    >>> round(found.error_rate.value, 3), found.error_rate.identified
    (0.055, True)
    >>> AnswerModel.given({0: 0.1}, graph).errors(graph.annotators)[:2]
    array([0.1, 0.1])
    """

    error_rate: Rate
    by_annotator: dict[Count, Rate]
    table: Array | None = field(default=None, compare=False)
    # What a crowd says of its points; not kept in files.
    _crowd: Crowd | None = field(default=None, compare=False, repr=False)

    @classmethod
    def given(cls, error_rate: float | Mapping[int, float], graph: AnswerGraph) -> AnswerModel:
        """Take rates that somebody knows.

        Parameters
        ----------
        error_rate : float or mapping
            One rate for all, or one for each annotator; an InputError where one is missing or not in [0, 1/2].
        graph : AnswerGraph
            The answers.

        Returns
        -------
        AnswerModel
            The rates, each as its own interval.
        """
        numbers, counts = np.unique(graph.annotators, return_counts=True)
        if isinstance(error_rate, Mapping):
            if missing := [a for a in numbers.tolist() if a not in error_rate]:
                raise InputError(
                    f"`error_rate` has no entry for annotator {missing[0]} (0: not known), who answered in `y`. "
                    "Add one."
                )
            every = list(error_rate.values())
            values = np.array([float(error_rate[a]) for a in numbers.tolist()])
        else:
            every = [error_rate]
            values = np.full(len(numbers), float(error_rate))
        if bad := [rate for rate in every if not 0 <= rate <= HIGHEST]:
            raise InputError(f"`error_rate` must lie between 0 and 0.5, the rate of guessing; got {bad[0]:g}.")
        return from_columns(numbers, counts, values, values, values)

    @classmethod
    def estimate(
        cls,
        graph: AnswerGraph,
        n_classes: int = 2,
        logits: Array | None = None,
        answer_table: str | bool = "auto",
    ) -> AnswerModel:
        """Estimate how often each annotator is wrong.

        Parameters
        ----------
        graph : AnswerGraph
            Answers and labels: questions asked again, cycles and labels tell the rates.
        n_classes : int, default=2
            With more than two, cycles tell only where nothing else explains a contradiction.
        logits : array of shape (n_points,) or (n_points, n_classes), optional
            What a model that has not seen the answers about a point says of it. With two classes it tells annotators
            apart, but not a rate that all have in common; with more it counts where answers left out are explained
            better with it.
        answer_table : {"auto", True, False}, default="auto"
            With more than two classes: whether errors may depend on the two classes. "auto" decides where most points
            are in several questions and answers contradict each other, by answers left out.

        Returns
        -------
        AnswerModel
            With intervals; 0 where nothing tells.

        Raises
        ------
        InputError
            Where two classes cannot explain the answers at any plausible rate, and more can.
        """
        numbers, annotator = np.unique(graph.annotators, return_inverse=True)
        crowd = is_crowd(graph, n_classes)
        if n_classes > 2 and (crowd or (answer_table is True and on_cycles(graph).any())):
            return _crowd_model(graph, numbers, annotator, n_classes, answer_table, logits)
        if n_classes == 2:
            rates, low, high = _two_class_rates(graph, annotator, len(numbers), logits)
        else:
            rates, low, high = _question_rates(graph, annotator, len(numbers), n_classes)
        low = np.minimum(np.where(low > LOWEST, low, 0.0), rates)
        counts = np.bincount(annotator, minlength=len(numbers))
        if n_classes == 2 and crowd and rates @ counts > _DOUBTFUL_RATE * counts.sum():
            _refuse_more_classes(graph, annotator, float(rates @ counts / counts.sum()))
        best = rates.min(initial=HIGHEST)
        careless = (rates - best) / max(HIGHEST - best, LOWEST)
        return from_columns(numbers, counts, rates, low, np.maximum(high, rates), careless)

    @property
    def of_crowd(self) -> bool:
        """Whether the rates were estimated together with the classes of the points, and these are still known."""
        return self._crowd is not None

    @property
    def certain(self) -> bool:
        """Whether no answer is ever wrong: closed forms apply."""
        return not any(rate.value for rate in self.by_annotator.values())

    @property
    def rates(self) -> dict[int, float]:
        """The values of ``by_annotator``, as the parameter ``error_rate`` takes them."""
        return {a: rate.value for a, rate in self.by_annotator.items()}

    def errors(self, annotators: Codes) -> Array:
        """Probability that each of some answers is wrong.

        Parameters
        ----------
        annotators : int array of shape (n_answers,)
            Who answered. One who is not in ``by_annotator`` has the rate of all.

        Returns
        -------
        array of shape (n_answers,)
            The rates.
        """
        numbers, place = np.unique(annotators, return_inverse=True)
        rates = [self.by_annotator.get(a, self.error_rate).value for a in numbers.tolist()]
        return np.array(rates, dtype=np.float64)[place]

    def factor_graph(self, graph: AnswerGraph, n_classes: int) -> FactorGraph:
        """Reduce answers to groups and edges, for any node probabilities.

        Parameters
        ----------
        graph : AnswerGraph
            Answers and labels, the same as before or others.
        n_classes : int
            Number of classes.

        Returns
        -------
        FactorGraph
            What answers that are never wrong tie together, and the others between. Where the answers are of the crowd
            that the rates come from, what these say of each point, and no edges.
        """
        if self._crowd is not None and self.names_classes(graph):
            return FactorGraph.of_evidence(graph, self._crowd.evidence(graph))
        factors = log_factors(graph.same, self.errors(graph.annotators), graph.weights)
        return FactorGraph.from_answers(graph, n_classes, factors)

    def names_classes(self, graph: AnswerGraph) -> bool:
        """Whether these answers, of the crowd that the rates come from, have numbered the classes already.

        Parameters
        ----------
        graph : AnswerGraph
            Answers and labels.

        Returns
        -------
        bool
            Whether they have.
        """
        return self._crowd is not None and self._crowd.has(graph)

    def crowd_probabilities(self, graph: AnswerGraph) -> Array | None:
        """Class probabilities of points by some answers alone, all classes equally likely before.

        Parameters
        ----------
        graph : AnswerGraph
            Answers of the crowd that the rates come from.

        Returns
        -------
        array of shape (n_points, n_classes) or None
            None where a model had to help, or the answers are others.
        """
        if self._crowd is None or not self._crowd.alone or not self._crowd.has(graph):
            return None
        return np.asarray(softmax(self._crowd.evidence(graph), axis=1))

    def posteriors(self, graph: AnswerGraph, log_p: Array) -> Array:
        """Class probabilities of the points by some answers and by what is known of the points before.

        Where the answers are those of the crowd that the rates come from, these are its probabilities: what a model
        says has been learned from them, and errs with them.

        Parameters
        ----------
        graph : AnswerGraph
            Answers and labels.
        log_p : array of shape (n_points, n_classes)
            Logarithms of the probabilities before.

        Returns
        -------
        array of shape (n_points, n_classes)
            The probabilities.
        """
        if self._crowd is not None and self._crowd.is_all(graph):
            log_p = np.where(graph.degree[:, None] > 0, self._crowd.log_shares, log_p)
            return FactorGraph.of_evidence(graph, self._crowd.evidence(graph)).propagate(log_p).posteriors
        if self.table is None:
            return self.factor_graph(graph, log_p.shape[1]).propagate(log_p).posteriors
        people = [self.by_annotator.get(a) for a in np.unique(graph.annotators).tolist()]
        careless = np.array([self._mean_careless if one is None else one.careless for one in people])
        same = np.array([0.5 if one is None else one.same_when_careless for one in people])
        return sample_classes(graph, self.table, careless, same, log_p)

    @property
    def _mean_careless(self) -> float:
        return float(np.mean([rate.careless for rate in self.by_annotator.values()]))

    def renamed(self, order: Indices) -> AnswerModel:
        """The same with the classes in another order.

        Parameters
        ----------
        order : int array of shape (n_classes,)
            Which of the classes each one was.

        Returns
        -------
        AnswerModel
            With another table.
        """
        table = None if self.table is None else self.table[np.ix_(order, order)]
        crowd = self._crowd
        if crowd is not None:
            posteriors = crowd.log_posteriors[:, order]
            crowd = replace(crowd, log_posteriors=posteriors, log_shares=crowd.log_shares[order])
        return replace(self, table=table, _crowd=crowd)


@dataclass(frozen=True, eq=False)
class Crowd:
    """What all answers of a crowd say of each point."""

    answers: NDArray[np.void]  # (n_answers,), points, answer and annotator, sorted
    points: Codes  # (n_points,), their numbers in ``y``, ascending
    log_posteriors: Array  # (n_points, n_classes), logarithms of the class probabilities of each point
    log_shares: Array  # (n_classes,), of their means
    alone: bool  # whether the answers say it alone, or beside a model

    @classmethod
    def of(cls, graph: AnswerGraph, draws: Draws, alone: bool) -> Crowd:
        """From draws of the classes."""
        posteriors = np.maximum(draws.posteriors, _LEAST_CHANCE)
        shares = posteriors[graph.degree > 0].mean(axis=0)
        return cls(np.unique(_rows_of(graph)), graph.points, np.log(posteriors), np.log(shares), alone)

    def has(self, graph: AnswerGraph) -> bool:
        """Whether some answers are of this crowd."""
        return bool(np.isin(_rows_of(graph), self.answers).all())

    def is_all(self, graph: AnswerGraph) -> bool:
        """Whether answers are those of this crowd, all of them."""
        return np.array_equal(np.unique(_rows_of(graph)), self.answers)

    def evidence(self, graph: AnswerGraph) -> Array:
        """Log likelihood of the answers by the class of each point, (n_points, n_classes); 0 for points in none."""
        found = np.zeros((graph.n_points, len(self.log_shares)))
        asked = np.flatnonzero(graph.degree)
        found[asked] = self.log_posteriors[np.searchsorted(self.points, graph.points[asked])] - self.log_shares
        return found


def _rows_of(graph: AnswerGraph) -> NDArray[np.void]:
    """Points, answer and annotator of each answer, as one value."""
    ends = np.sort(graph.points[graph.ends], axis=1)
    rows = np.ascontiguousarray(np.column_stack([ends, graph.same, graph.annotators]).astype(np.int64))
    return rows.view(np.dtype([(name, np.int64) for name in "abcd"]))[:, 0]


def from_columns(numbers: Codes, counts: Codes, value: Array, low: Array, high: Array, *careless: Array) -> AnswerModel:
    """The model of annotators, in ascending order, each with its number of answers, its rate and interval.

    ``careless`` are the shares of careless answers and of "same" among these.
    """
    columns = (value, low, high, counts, *careless)
    rates = [Rate(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    total = int(counts.sum())
    mean = [float(column @ (counts / max(total, 1))) for column in (value, low, high, *careless[:1])]
    return AnswerModel(
        Rate(mean[0], mean[1], mean[2], total, *mean[3:]), dict(zip(numbers.tolist(), rates, strict=True))
    )


def unknown_answer_model(numbers: Codes, counts: Codes) -> AnswerModel:
    """Rates of 0, from 0 to 1/2, where nothing tells them, as of the answers of one annotator that share no point."""
    nothing = np.zeros(len(numbers))
    return from_columns(numbers, counts, nothing, nothing, nothing + HIGHEST)


def known_answer_model(
    error_rate: float | Mapping[int, float] | AnswerModel | None, graph: AnswerGraph
) -> AnswerModel | None:
    """The rates given, of answers that judge a model; None where there are none."""
    if error_rate is None or isinstance(error_rate, AnswerModel):
        return error_rate
    found = AnswerModel.given(error_rate, graph)
    if found.by_annotator and min(found.rates.values()) == HIGHEST:
        raise InputError(f"`error_rate` must lie in [0, 0.5), for one annotator at least; got {error_rate!r}.")
    return found


def answer_model_of(
    error_rate: ErrorRateParameter, graph: AnswerGraph, n_classes: int, answer_table: str | bool = "auto"
) -> AnswerModel:
    """Given, or estimated from the answers alone."""
    if isinstance(error_rate, AnswerModel):
        if error_rate.table is not None and (K := len(error_rate.table)) != n_classes:
            raise InputError(f"`error_rate` is an answer model of {K} classes: give `n_classes={K}`, or another model.")
        return error_rate
    if isinstance(error_rate, str):
        return AnswerModel.estimate(graph, n_classes, answer_table=answer_table)
    return AnswerModel.given(error_rate, graph)


def is_crowd(graph: AnswerGraph, n_classes: int = 2) -> bool:
    """Whether answers contradict each other and most points are in several questions: more than rates can be told."""
    asked = int(np.count_nonzero(graph.degree))
    questions, _ = number_questions(graph.ends, graph.n_points)
    enough = len(questions) >= _QUESTIONS_A_POINT * asked and asked >= _POINTS_A_CLASS * n_classes
    contradictions = graph.contradictory if n_classes == 2 else graph.refuted
    return bool(enough and contradictions.any())


def _crowd_model(
    graph: AnswerGraph,
    numbers: Codes,
    annotator: Codes,
    n_classes: int,
    answer_table: str | bool,
    log_p: Array | None,
) -> AnswerModel:
    """By draws of all that is not known; a table and what a model says count where they explain answers left out."""
    by_pair = answer_table is True
    values = _left_out_values(graph, annotator, n_classes, by_pair)
    if answer_table == "auto":
        with_table = _left_out_values(graph, annotator, n_classes, True)
        by_pair = bool((with_table - values).sum() > _DROP)
        values = with_table if by_pair else values
    _warn_of_other_number(graph, annotator, n_classes, values, by_pair)
    if log_p is not None and (_left_out_values(graph, annotator, n_classes, by_pair, log_p) - values).sum() <= _DROP:
        log_p = None
    draws = CrowdSampler(graph, annotator, n_classes, by_pair=by_pair, log_p=log_p).run()
    counts = np.bincount(annotator, minlength=len(numbers))
    rates = np.minimum(draws.rates[~draws.alike].mean(axis=0), HIGHEST)
    low, high = (np.minimum(end, HIGHEST) for end in np.quantile(draws.rates, [0.025, 0.975], axis=0))
    found = from_columns(numbers, counts, rates, np.minimum(low, rates), high, draws.careless, draws.same)
    value = float(draws.wrong[~draws.alike].mean())
    total = Rate(value, *_ends_of_draws(draws), int(counts.sum()), float(counts @ draws.careless / counts.sum()))
    return replace(
        found, error_rate=total, table=draws.table if by_pair else None, _crowd=Crowd.of(graph, draws, log_p is None)
    )


def _ends_of_draws(draws: Draws) -> tuple[float, float]:
    """95% interval of the share of wrong answers: the wider of quantiles and deviations, over both kinds of chains."""
    parts = [draws.wrong[draws.alike], draws.wrong[~draws.alike]]
    low = [min(np.quantile(one, 0.025), one.mean() - _DEVIATIONS * one.std()) for one in parts if len(one)]
    high = [max(np.quantile(one, 0.975), one.mean() + _DEVIATIONS * one.std()) for one in parts if len(one)]
    return max(float(min(low)), 0.0), min(float(max(high)), 1.0)


def _left_out_values(
    graph: AnswerGraph, annotator: Codes, n_classes: int, by_pair: bool, log_p: Array | None = None
) -> Array:
    """Log chances of some answers, left out at random, by draws from the others."""
    used = np.random.default_rng(0).random(graph.n_answers) >= _LEFT_OUT
    sampler = CrowdSampler(graph, annotator, n_classes, by_pair=by_pair, used=used, log_p=log_p, **_QUICK)
    return np.log(sampler.run(*_QUICK_DRAWS).chances)


def number_by_answers(graph: AnswerGraph, fewest: int = 2, most: int = _MOST_CLASSES) -> tuple[int, dict[int, Array]]:
    """The number of classes that explains answers left out best, and their log chances for each number tried.

    The fewest within one standard error, or 1.92, of the best; two more in a row that bring nothing end the search.
    """
    annotator = np.unique(graph.annotators, return_inverse=True)[1]
    values: dict[int, Array] = {}
    best = fewest
    for n_classes in range(fewest, most + 1):
        values[n_classes] = _left_out_values(graph, annotator, n_classes, True)
        if values[n_classes].sum() > values[best].sum():
            best = n_classes
        if n_classes - best >= 2:
            break
    near = [k for k, one in values.items() if not _is_behind(one, values[best], 1.0)]
    return min(near), values


def _is_behind(values: Array, best: Array, n_errors: float, least: float = _DROP) -> bool:
    """Whether the sum of some log chances is below another by so many standard errors, and by more than the least."""
    apart = best - values
    return bool(apart.sum() > max(n_errors * apart.std() * np.sqrt(len(apart)), least))


def _warn_of_other_number(graph: AnswerGraph, annotator: Codes, n_classes: int, values: Array, by_pair: bool) -> None:
    """A warning where one class more, or one fewer, clearly explains answers left out better."""
    for other in (n_classes - 1, n_classes + 1):
        found = _left_out_values(graph, annotator, other, by_pair)
        if _is_behind(values, found, _CLEARLY, 2 * _DROP):
            warn(
                f"The answers are explained better by {other} classes than by {n_classes}: {len(found):,} answers left "
                f"out have mean log likelihood {found.mean():.3f}, not {values.mean():.3f}. Try `n_classes={other}`.",
                ClassNumberWarning,
            )


def _refuse_more_classes(graph: AnswerGraph, annotator: Codes, rate: float) -> None:
    """An InputError where more than two classes explain the answers far better than many errors do."""
    best, values = number_by_answers(graph)
    if _is_behind(values[2], values[best], _CLEARLY, _BEYOND_DOUBT):
        raise InputError(
            f"Two classes do not explain the answers: {rate:.0%} of them would be wrong. {best} classes explain them "
            f"better (mean log likelihood of answers left out {values[best].mean():.3f}, not {values[2].mean():.3f}). "
            f"Fit with `n_classes={best}` or 'auto'."
        )


def log_factors(same: Codes, errors: Array, weights: Array) -> Array:
    """Logarithms of equation (1), where the classes of the two points agree (row 0) and where they differ (row 1)."""
    with np.errstate(divide="ignore"):
        wrong = weights * np.log(errors)
    right = weights * np.log1p(-errors)
    return np.where([same > 0, same < 0], right, wrong)


def shrink(wrong: Array, counts: Array, chances: Array | None) -> Array:
    """Equation (2), the mean over all m with these chances, or without a prior; annotators are the last axis."""
    if chances is None:
        return np.clip(wrong / np.maximum(counts, 1e-12), LOWEST, HIGHEST)
    a, m = _prior_answers(wrong, counts)
    share = chances.reshape(m.shape)
    return np.clip((share * (a + wrong) / (m + counts)).sum(axis=0), LOWEST, HIGHEST)


def chances_of_strengths(wrong: Array, counts: Array) -> Array:
    """Chances of all m given how many answers of each annotator are wrong, by the beta-binomial likelihood."""
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
    """95% interval of a rate by its profile log likelihood on a grid.

    Where it is within 1.92 of its maximum, or between the quantiles of the posterior that it gives with the weight
    e^(-1/2) of Jeffreys: of few answers, above all where none was found wrong, the first alone is too narrow.
    """
    fine = np.linspace(grid[0], grid[-1], 2001)
    value = PchipInterpolator(grid, values - values.max())(fine)
    inside = fine[value >= value.max() - _DROP]
    below = np.cumsum(np.exp(value) / np.sqrt(fine))
    quantiles = fine[np.searchsorted(below / below[-1], [0.025, 0.975])]
    return float(min(inside[0], quantiles[0])), float(max(inside[-1], quantiles[1]))


def _two_class_rates(
    graph: AnswerGraph, annotator: Codes, n_rates: int, logits: Array | None
) -> tuple[Array, Array, Array]:
    """Rates and the ends of their intervals, by the likelihood of all answers on cycles, or of all beside a model."""
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
        self.answers = AnswerGraph.from_answers(
            graph.ends[used], graph.same[used], weights=graph.weights[used], n_points=graph.n_points
        )
        self.network = TwoClassNetwork(AnswerModel.given(0.1, self.answers).factor_graph(self.answers, 2))
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
        none = self._start()
        values = self._profile(none._replace(rates=np.full_like(none.rates, LOWEST)), np.True_)
        return bool(self._step(best).values[0] - values.max() > _DROP)

    def intervals(self, best: _Trial) -> tuple[Array, Array]:
        """95% intervals of all rates: by profiles, or of many annotators by the information of each."""
        n_rates = self.n_rates
        if n_rates > _MOST_PROFILED:
            return self._information_intervals(best)
        size = len(_GRID)
        fixed = np.repeat(np.eye(n_rates, dtype=bool), size, axis=0)
        repeated = _Trial(*(np.repeat(part, n_rates * size, axis=0) for part in best))
        trial = repeated._replace(rates=np.where(fixed, np.tile(_GRID, n_rates)[:, None], best.rates))
        values = self._profile(trial, fixed).reshape(n_rates, size)
        low, high = np.transpose([profile_ends(_GRID, value) for value in values])
        return low, high

    def _information_intervals(self, best: _Trial) -> tuple[Array, Array]:
        """Beta quantiles for as many answers as the information is worth (Louis' identity, one answer at a time)."""
        rates = best.rates[0]
        wrong = best.wrong[0]
        missing = sum_by(self.annotator, wrong * (1 - wrong), len(rates))
        share = 1 - missing / np.maximum(self.counts * rates * (1 - rates), 1e-12)
        low, high = _beta_ends(rates, self.counts * np.clip(share, 0.0, 1.0))
        return low, high

    def _start(self) -> _Trial:
        """One set for each scale; where no model speaks, one."""
        scale = np.ones(1) if self.logits is None else _SCALES
        n = len(scale)
        rates = np.full((n, self.n_rates), PRIOR_RATE)
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
    """Where EM is going: it is slow where b and a rate explain the same answers (squared extrapolation [2]_)."""
    odds = [logit(np.clip(np.column_stack([t.rates, t.blind]), LOWEST, 1 - LOWEST)) for t in (at, first, second)]
    step = odds[1] - odds[0]
    bend = odds[2] - odds[1] - step
    norm = np.linalg.norm(bend, axis=1, keepdims=True)
    length = np.clip(np.linalg.norm(step, axis=1, keepdims=True) / np.maximum(norm, 1e-12), 1.0, _LONGEST_LEAP)
    leap = expit(odds[0] + 2 * length * step + length**2 * bend)
    moved = np.clip(leap[:, :-1], LOWEST, HIGHEST)
    return second._replace(rates=np.where(first.rates == at.rates, at.rates, moved), blind=leap[:, -1])


def _beta_ends(rates: Array, n: Array) -> tuple[Array, Array]:
    """95% intervals of rates that so many answers tell, by Jeffreys' prior."""
    a = 0.5 + n * rates
    b = 0.5 + n * (1 - rates)
    return beta.ppf(0.025, a, b), np.minimum(beta.ppf(0.975, a, b), HIGHEST)


def contradicts(graph: AnswerGraph) -> bool:
    """Whether answers of two classes contradict each other or the labels."""
    ends, same = _with_labels(graph)
    return bool((find_sides(ends, same, graph.n_points + 1) == 0).any())


def on_cycles(graph: AnswerGraph) -> Mask:
    """Whether each answer can be checked by others: those left when points in one answer are taken off in turn.

    Two answers to one question are a cycle, and labels are answers about one more point.
    """
    ends, _ = _with_labels(graph)
    return np.isin(np.arange(graph.n_answers), find_core(ends, graph.n_points + 1))


def _with_labels(graph: AnswerGraph) -> tuple[Indices, Codes]:
    """Answers, and labels as answers about one more point of class +1."""
    known = np.flatnonzero(graph.labels)
    labels = np.column_stack([known, np.full(len(known), graph.n_points)])
    ends = np.concatenate([graph.ends, labels])
    return ends, np.concatenate([graph.same, np.where(graph.labels[known] > 0, 1, -1)])


def _question_rates(graph: AnswerGraph, annotator: Codes, n_rates: int, n_classes: int) -> tuple[Array, Array, Array]:
    """Rates and the ends of their intervals, with any number of classes."""
    questions = RepeatedQuestions(graph, annotator)
    known = questions.counts > 0
    rates = questions.maximise() * known
    # Half of the answers to repeated questions tell a rate, about, where there are too many people for profiles.
    low, high = _beta_ends(rates, questions.counts / 2)
    low[~known] = 0.0
    high[~known] = HIGHEST
    for k in np.flatnonzero(known & (n_rates <= _MOST_PROFILED)).tolist():
        low[k], high[k] = questions.interval(k)
    involved = annotators_in_contradictions(graph, annotator, rates[annotator] == 0)
    if involved.any():
        cycles = _CycleRates(graph, annotator, n_classes)
        rates = cycles.maximise(rates, involved)
        for k in np.flatnonzero(involved & ~known).tolist()[:_MOST_PROFILED]:
            low[k], high[k] = cycles.interval(rates, k)
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
        # How many answers of each kind every annotator gave to a question, (n_kinds, n_annotators), and how many such
        # questions there are; 1 and 0 where labels say that the truth is "same" or "different", else NaN.
        self.same = kinds[:, :n_annotators]
        self.different = kinds[:, n_annotators:-1]
        self.times = times.astype(np.float64)
        self.truth = np.where(kinds[:, -1] < 0, np.nan, kinds[:, -1])
        self.counts = self.times @ (self.same + self.different)

    def maximise(self) -> Array:
        """The rates (n_annotators,), drawn to a small one; 0 where answers that are never wrong do as well."""
        start, shares = self._first()
        first = self.climb(start, shares, _WEAKEST)
        best = np.argmax(self.values(*first))
        wrong, _ = self._wrong(first[0][[best]], first[1][[best]])
        rates, found = self.climb(start, shares, chances_of_strengths(wrong[0], self.counts))
        values = self.values(rates, found)
        none = self.climb(np.full_like(start, LOWEST), shares, _WEAKEST, np.True_)
        return rates[np.argmax(values)] * (values.max() - self.values(*none).max() > _DROP)

    def interval(self, k: int) -> tuple[float, float]:
        """Rates of annotator ``k`` within 1.92 of the largest log likelihood, all else where it is largest."""
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
        """EM from several places at once, with chances of all strengths of the prior or without one."""
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
        """How many answers of each annotator are wrong, and how many questions of each kind have the truth "same"."""
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


class _CycleRates:
    """Rates by the likelihood of all answers on cycles, all classes equally likely."""

    def __init__(self, graph: AnswerGraph, annotator: Codes, n_classes: int) -> None:
        used = on_cycles(graph)
        self.part = AnswerGraph.from_answers(
            graph.ends[used], graph.same[used], labels=graph.labels, n_points=graph.n_points
        )
        self.annotator = annotator[used]
        self.n_classes = n_classes

    def maximise(self, rates: Array, involved: Mask) -> Array:
        """EM for the rates of those ``involved``; the others stay as they are."""
        counts = np.bincount(self.annotator, minlength=len(rates)).astype(np.float64)
        rates = np.where(involved, PRIOR_RATE, rates)
        chances = _WEAKEST
        for _ in range(2):
            for _ in range(_CYCLE_ITER):
                right, _ = self._propagated(rates)
                wrong = sum_by(self.annotator, 1 - right, len(rates))
                rates = np.where(involved, shrink(wrong, counts, chances), rates)
            chances = chances_of_strengths(wrong, counts)
        return rates

    def interval(self, rates: Array, k: int) -> tuple[float, float]:
        """Rates within 1.92 of the largest log likelihood, the other rates as they are."""
        values = [self._propagated(np.where(np.arange(len(rates)) == k, rate, rates))[1] for rate in _CYCLE_GRID]
        return profile_ends(_CYCLE_GRID, np.array(values))

    def _propagated(self, rates: Array) -> tuple[Array, float]:
        """Probability that each answer on a cycle is right, and the log likelihood of these."""
        factors = log_factors(self.part.same, rates[self.annotator], self.part.weights)
        equal = np.full(self.n_classes, -np.log(self.n_classes))
        found = FactorGraph.from_answers(self.part, self.n_classes, factors).propagate(equal, tol=1e-4, max_iter=60)
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


@dataclass(frozen=True, eq=False)
class DoubtfulAnswers:
    """All answers, the most doubtful first.

    Attributes
    ----------
    wrong : array of shape (n_answers,)
        Probability that each answer is wrong, given the model and all other answers, in falling order.
    code : int array of shape (n_answers,)
        The pair code of each answer in ``y``.
    rows : int array of shape (n_answers, 2)
        Its two rows.
    annotator : int array of shape (n_answers,)
        Who gave it, 0 where that is not known.
    """

    wrong: Array
    code: Codes
    rows: Indices
    annotator: Codes

    def __len__(self) -> int:
        return len(self.wrong)


def doubtful_answers(model: Estimator, X: MatrixLike, y: ArrayLike) -> DoubtfulAnswers:
    """Rank answers by the probability that they are wrong.

    By other answers about the same points and the model's probabilities. A model that was fitted on
    the very answers finds fewer wrong ones than there are; their order is hardly touched.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict_proba`` and ``answer_model_``, such as :class:`~sdulearn.PairLogisticRegression`.
        Where nothing tells an error rate, answers are taken to be wrong at a rate of 0.05.
    X : array, CSR matrix or frame of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
        What is known of each row.

    Returns
    -------
    DoubtfulAnswers
        All answers with their probabilities, the most doubtful first.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn import PairLogisticRegression, stack_pairs
    >>> from sdulearn.answers import doubtful_answers
    >>> X = np.r_[np.linspace(-3, -1, 20), np.linspace(1, 3, 20)][:, None]
    >>> pairs = np.column_stack([np.zeros(39, dtype=int), np.arange(1, 40)])
    >>> same = pairs[:, 1] < 20
    >>> same[7] = False
    >>> rows, y = stack_pairs(X, pairs, same, unlabeled=None)
    >>> model = PairLogisticRegression(error_rate=0.05, prior=0.49).fit(rows, y)
    >>> int(doubtful_answers(model, rows, y).code[0])
    -8
    """
    pairs = read_pairs(y)
    graph = AnswerGraph.from_y(pairs)
    log_p = log_node_probabilities(model.predict_proba(X), graph)
    factors = log_factors(graph.same, _errors_above_zero(model.answer_model_, graph), graph.weights)
    if graph.degree.max(initial=0) <= 1 and not graph.labels.any():
        right = _right_of_loose(graph, np.exp(log_p), factors)
    else:
        right = FactorGraph.from_answers(graph, log_p.shape[1], factors).propagate(log_p).right
    order = np.argsort(right, kind="stable")
    return DoubtfulAnswers(
        wrong=1 - right[order],
        code=pairs.codes[pairs.ends[order, 0]],
        rows=pairs.ends[order],
        annotator=graph.annotators[order],
    )


def log_node_probabilities(probability: Array, graph: AnswerGraph) -> Array:
    """Logarithms (n_points, n_classes) of what a model says of each point, from its probabilities of the rows."""
    probability = np.asarray(probability, dtype=np.float64)
    if len(probability) != len(graph.row_point):
        raise InputError(f"`X` has {len(probability)} rows, but `y` has {len(graph.row_point)}.")
    if not np.isfinite(probability).all():
        raise InputError("The model gives probabilities that are not numbers. Look for missing values in `X`.")
    log_p = np.log(np.maximum(graph.by_point(probability), 1e-12))
    return np.asarray(log_p - np.logaddexp.reduce(log_p, axis=1, keepdims=True))


def _errors_above_zero(model: AnswerModel, graph: AnswerGraph) -> Array:
    """Rates of the answers: one who was never found wrong may be, once, and one of whom nothing is known at times."""
    errors = model.errors(graph.annotators)
    for a, rate in model.by_annotator.items():
        if rate.value == 0:
            least = 1 / (2 * max(rate.n_answers, 10)) if rate.identified else _UNKNOWN_RATE
            errors[graph.annotators == a] = least
    return np.maximum(errors, 1e-3)


def _right_of_loose(graph: AnswerGraph, probability: Array, factors: Array) -> Array:
    """Probability that each answer is right, where no point is in two of them: Bayes' rule, with nothing to send."""
    first, second = probability[graph.ends].swapaxes(0, 1)
    agree = np.sum(first * second, axis=1)
    same, different = np.exp(factors) * [agree, 1 - agree]
    return np.where(graph.same > 0, same, different) / (same + different)
