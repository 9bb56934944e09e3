"""What share of the rows is of class +1, given answers? And what share is predicted rightly?

Both are one probability p for all points. Answers without errors put the points of a component on
two sides, k of m on one of them, up to one flip, unless a label fixes which side is which:

    P(component | p) = p^k q^(m - k) + p^(m - k) q^k,   q = 1 - p                              (1)
    P(component with a label | p) = p^k q^(m - k),      k points on the side of class +1       (2)

With p the class prior, this is the likelihood of the prior; loose pairs have Eq. cpe of the paper. With every answer
multiplied by the predictions at both ends, it is the likelihood of the accuracy. If only some points were drawn at
random, k and m count these; the others are of either class with probability 1/2 and only connect them. If answers
contradict each other, some are wrong, at an unknown rate e:

    P(answers | p) = integral of P(answers | p, e) Beta(e; 1/2, 19/2) de                       (3)

The likelihood-ratio interval ends where twice the log likelihood has fallen by a quantile of chi-square. With few
points it covers too rarely, so each end is replaced by that of Clopper and Pearson for n points. The n is the number of
points whose likelihood would fall as much up to that end, and at most the number of points:

    n = quantile / (2 KL(value, end)),  KL(a, b) = a log(a / b) + (1 - a) log((1 - a) / (1 - b))   (4)

Where labels and answers alone give each point a probability q of its predicted class, or of class
+1, the share a of points in that class has the likelihood

    prod_points  a q + (1 - a) (1 - q) / (K - 1)                                               (5)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import logit, logsumexp, rel_entr
from scipy.stats import beta, chi2

from sdulearn.answers.answer_model import AnswerModel, is_crowd, known_answer_model, larger_share
from sdulearn.answers.graph import ENOUGH, AnswerGraph, first_by, weights_by_component
from sdulearn.answers.propagate import ROUGH_TOL
from sdulearn.answers.rates import SELDOM
from sdulearn.dependence import answer_spread
from sdulearn.errors import InputError, UndeterminedError
from sdulearn.risks import check_prior
from sdulearn.types import Array, Codes, Indices, Mask, Probability

ErrorRates: TypeAlias = float | Mapping[int, float] | AnswerModel | None
# What known_answer_model returns; None if answers are right, or contradictory ones wrong at an unknown rate.
KnownRates: TypeAlias = AnswerModel | None
# A dataclass with an interval: a prior or an accuracy.
Estimate = TypeVar("Estimate", bound=Any)

# Where each point is as likely in its class as not, up to this probability, nothing is known about the share.
_KNOWN = 0.55
# A share of 0 or 1 in logarithms.
_LEAST_SHARE = 1e-12
# Propagation around cycles is slow: at most this many answers are used.
_MAX_WITH_ERRORS = 3000
# Knots of splines, in logits and in error rates; a large component bends sharply at 1/2.
_LOGITS = 9.25 * np.linspace(0, 1, 33) ** 1.5
_RATES = np.geomspace(0.003, 0.45, 10)
_FINE_RATES = np.geomspace(_RATES[0], _RATES[-1], 60)
# The prior of equation (3), in steps of the logarithm: a mean of 5%, the weight of ten answers.
_RATE_WEIGHTS = beta.pdf(_FINE_RATES, 0.5, 9.5) * _FINE_RATES
# A component with two sides has likelihood 0 at the probability 1.
_EDGE = 1e-4
# Number of probabilities in the grid, and the fewest of them inside the interval.
_N_GRID = 1001
_MIN_INSIDE = 20
# Labels must change the log likelihood by this to say which class is larger: messages are not exact.
_LABELS_SAY = 0.01


@dataclass(frozen=True)
class PriorEstimate:
    """A class prior with its confidence interval.

    Attributes
    ----------
    value : float
        P(y = +1); 0.5 if the answers imply no value (see ``has_value``).
    low, high : float
        Confidence interval.
    identified : bool
        Whether the interval excludes 1/2, so that one class is known to be larger.
    n_similar, n_dissimilar, n_effective : float or None
        Counts of similar and dissimilar pairs and their sum. Weighted answers are counted as the
        number of equal weights that is as precise. None if the prior was given.
    confidence : float or None
        Level of the interval; None if the prior was given.
    """

    value: Probability
    low: Probability
    high: Probability
    identified: bool
    n_similar: float | None = None
    n_dissimilar: float | None = None
    confidence: float | None = None
    n_effective: float | None = None

    def __str__(self) -> str:
        if self.confidence is None:
            return f"prior {self.value:.3f} (given)"
        return f"prior {self.value:.3f} ({self.confidence:.0%} interval {self.low:.3f} to {self.high:.3f})"

    @classmethod
    def given(cls, value: float) -> PriorEstimate:
        """Wrap a known prior.

        Parameters
        ----------
        value : float
            P(y = +1).

        Returns
        -------
        PriorEstimate
            The value, with an interval of width 0.
        """
        return cls(float(value), float(value), float(value), value != 0.5)

    @property
    def has_value(self) -> bool:
        """Whether the answers imply a prior."""
        return self.n_similar is None or self.value != 0.5

    def mirrored(self) -> PriorEstimate:
        """Exchange the names of the two classes.

        Returns
        -------
        PriorEstimate
            The same estimate of P(y = -1).
        """
        return replace(self, value=1 - self.value, low=1 - self.high, high=1 - self.low)


def prior_from_share(share: float, error_rate: float = 0.0) -> float:
    """Return the root p >= 1/2 of ``(2 share - 1) = (p - q)^2 (1 - 2 e)`` (Eq. cpe, where answers are wrong at rate e).

    It is 1/2 where there is no root, and at most 1.
    """
    return (1 + math.sqrt(min(max(0.0, 2 * share - 1) / max(1 - 2 * error_rate, 1e-12), 1.0))) / 2


def estimate_prior(
    n_similar: float | None = None,
    n_dissimilar: float | None = None,
    *,
    y: ArrayLike | AnswerGraph | None = None,
    sample_weight: ArrayLike | None = None,
    random_points: ArrayLike | None = None,
    error_rate: ErrorRates = None,
    decision: ArrayLike | None = None,
    majority: str = "positive",
    confidence: float = 0.95,
    n_effective: float | None = None,
) -> PriorEstimate:
    """Estimate the class prior from pair counts (Eq. cpe) or from answers that share points.

    The pairs must have been drawn at random: if equal numbers were collected on purpose, give the prior yourself.
    Answers never show which class is the larger one; ``majority`` does, or labels of points in answers. Loose pairs
    have the paper's estimate with an exact interval. If answers share points, k of the m points of a component are on
    one side with probability p^k q^(m-k) + p^(m-k) q^k; the interval is that of Clopper and Pearson [1]_ for the number
    of points whose likelihood falls as fast.

    Parameters
    ----------
    n_similar, n_dissimilar : float, optional
        Numbers, or weights, of similar and dissimilar *randomly drawn* pairs: these or ``y``.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 5), optional
        What is known about each row, with the points in its second column. Labelled points were chosen: they do
        not count, and determine which side of their answers is class +1.
    sample_weight, random_points, error_rate
        As in :func:`~sdulearn.metrics.pair_accuracy`; the first two with ``y``. With counts one error rate.
    decision : array-like of shape (n_rows,), optional
        With ``random_points``: decision values of a model, which show the side of class +1 in large components.
    majority : {"positive", "negative"}, default="positive"
        Which class is the larger, if no label says so.
    confidence : float, default=0.95
        Level of the interval.
    n_effective : float, optional
        With weights: the number of equal weights that are as precise, ``(sum w)^2 / sum w^2``; by default their sum.

    Returns
    -------
    PriorEstimate
        The prior; ``identified`` is False if its interval contains 1/2.

    References
    ----------
    .. [1] Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
       Biometrika 26 (1934).

    Examples
    --------
    >>> from sdulearn import estimate_prior
    >>> estimate = estimate_prior(580, 420)
    >>> round(estimate.value, 3), estimate.identified
    (0.7, True)
    >>> estimate_prior(20, 30).has_value
    False

    A star: five points against one, and five of the six are on one side.

    >>> star = [[1, 0], [1, 1], [2, 0], [2, 2], [3, 0], [3, 3], [4, 0], [4, 4], [-5, 0], [-5, 5]]
    >>> round(estimate_prior(y=star).value, 2)
    0.83
    """
    if majority not in ("positive", "negative"):
        raise InputError(f"`majority` must be 'positive' or 'negative', got {majority!r}.")
    check_confidence(confidence)
    if y is not None and n_similar is None and n_dissimilar is None:
        graph = AnswerGraph.from_y(y, sample_weight)
        check_two_classes(graph)
        # Points with a label were chosen, not drawn at random.
        unlabeled = graph.restrict(np.ones(graph.n_answers, dtype=bool), np.zeros(graph.n_points, dtype=bool))
        ask = partial(_prior_of_answers, graph, unlabeled, random_points, decision, majority, confidence)
        rates = plausible_rates(error_rate)
        # Errors may depend on the two classes, which no single rate shows.
        crowd = random_points is None and is_crowd(unlabeled) and not _is_given(known_answer_model(rates[0], unlabeled))
        ends = larger_share(unlabeled, confidence) if crowd else None
        estimates = [ask(rate, ends) for rate in rates]
        return replace(around(estimates), identified=all(estimate.identified for estimate in estimates))
    if y is not None or n_similar is None or n_dissimilar is None:
        raise InputError("Give either `y` or the counts `n_similar` and `n_dissimilar`, both of them.")
    rows = {"sample_weight": sample_weight, "random_points": random_points, "decision": decision}
    if with_y := [name for name, value in rows.items() if value is not None]:
        raise InputError(f"`{with_y[0]}` is about the rows of `y`; leave it out beside counts.")
    if not isinstance(error_rate, Real | None) or not 0 <= (error_rate or 0.0) < 0.5:
        raise InputError(f"With counts `error_rate` is one number from 0 to below 0.5; got {error_rate!r}.")
    for name, count in (("n_similar", n_similar), ("n_dissimilar", n_dissimilar)):
        if not 0 <= count < math.inf:
            raise InputError(f"`{name}` must be a number of pairs, zero or more; got {count!r}.")
    n_effective = n_similar + n_dissimilar if n_effective is None else n_effective
    if n_similar + n_dissimilar and not 0 < n_effective < math.inf:
        raise InputError(f"`n_effective` must be a number greater than zero, got {n_effective!r}.")
    estimate = _prior_of_counts(n_similar, n_dissimilar, n_effective, confidence, error_rate or 0.0)
    return estimate if majority == "positive" else estimate.mirrored()


def _prior_of_counts(
    n_similar: float, n_dissimilar: float, n_effective: float, confidence: float, error_rate: float
) -> PriorEstimate:
    """Return the paper's estimate, Eq. cpe, with an exact interval; class +1 is the larger."""
    total = n_similar + n_dissimilar
    if total == 0:
        raise UndeterminedError("No pairs, so there is nothing to estimate the prior from. Give `prior` yourself.")
    unit = n_effective / total
    ends = clopper_pearson(n_similar * unit, n_dissimilar * unit, confidence)
    value, low, high = (prior_from_share(share, error_rate) for share in (n_similar / total, *ends))
    return PriorEstimate(value, low, high, low > 0.5, n_similar, n_dissimilar, confidence, n_effective)


def plausible_rates(error_rate: ErrorRates) -> Sequence[ErrorRates]:
    """Return rates as given, the most likely first; of a model that knows none, also lower and higher ones."""
    return error_rate.plausible() if isinstance(error_rate, AnswerModel) else [error_rate]


def around(estimates: Sequence[Estimate]) -> Estimate:
    """Return the first estimate, its interval widened for what the others change, as independent errors add."""
    first = estimates[0]
    values, lows, highs = np.array([(estimate.value, estimate.low, estimate.high) for estimate in estimates]).T.tolist()
    low = first.value - math.hypot(first.value - first.low, first.value - min(values))
    high = first.value + math.hypot(first.high - first.value, max(values) - first.value)
    return replace(first, low=max(low, min(lows)), high=min(high, max(highs)))


def _is_given(model: KnownRates) -> bool:
    """Return whether rates are taken as exact."""
    return model is not None and model.error_rate.low == model.error_rate.high


def _prior_of_answers(
    labelled: AnswerGraph,
    graph: AnswerGraph,
    random_points: ArrayLike | None,
    decision: ArrayLike | None,
    majority: str,
    confidence: float,
    error_rate: ErrorRates,
    of_crowd: Array | None,
) -> PriorEstimate:
    """Estimate the prior by counts of loose pairs, else by the likelihood over components; ``graph`` has no labels."""
    model = known_answer_model(error_rate, graph)
    if model is None and is_crowd(graph):
        AnswerModel.estimate(graph)  # refuses answers that need more than two classes
    counted, asked = random_answers(graph, random_points)
    if counted is not None and not asked.any():
        raise UndeterminedError("`random_points` marks no row of an answer. Ask about random points, or give `prior`.")
    by_answer = graph.weights * asked
    counts = (float(by_answer @ (graph.same > 0)), float(by_answer @ (graph.same < 0)), float(by_answer @ by_answer))
    deviations = graph.weights * ((graph.same > 0) - counts[0] / max(sum(counts[:2]), 1e-9))
    spread = answer_spread(deviations[asked], graph, asked, confidence)
    error = mean_error(model, graph, by_answer)
    estimate = prior_of_weights(*counts, confidence, error)
    if spread > 1:
        # Dependent answers count less: the sum of their squared weights is larger.
        wider = prior_of_weights(*counts[:2], counts[2] * spread, confidence, error)
        estimate = replace(wider, n_similar=estimate.n_similar, n_dissimilar=estimate.n_dissimilar)
    if counted is not None and decision is not None:
        by_row = graph.of_rows(np.asarray(decision, dtype=np.float64), "decision")
        turned = oriented(graph, graph.by_point(by_row[:, None])[:, 0])
        if one_way(turned, counted):
            everywhere = np.ones(graph.n_points, dtype=np.int64)
            share = share_in_class(turned, everywhere, confidence, model, spread, counted)
            return _with_share(estimate, share, float(counted.sum()))
    if counted is not None or graph.shares_points:
        value, low, high = profile(graph, confidence, model, spread, counted)
        if of_crowd is not None and not _is_given(model):
            low, high = min(low, of_crowd[0]), max(high, of_crowd[1])
        # Independent answers: one fewer than the random points of each component.
        size = np.bincount(graph.component if counted is None else graph.component[counted])
        estimate = _with_share(estimate, (value, low, high), float(np.maximum(size - 1, 0).sum()))
    larger = _larger_by_labels(labelled, model, counted) or (1 if majority == "positive" else -1)
    return estimate if larger > 0 else estimate.mirrored()


def _larger_by_labels(graph: AnswerGraph, model: KnownRates, counted: Mask | None) -> int:
    """Return the larger class by answers and labels, +1 or -1; 0 if the labels do not say."""
    if not graph.labels.any():
        return 0
    free = graph.labels == 0
    grid = np.linspace(_EDGE, 1 - _EDGE, 199)
    values = log_likelihood(graph, grid, model, free if counted is None else counted & free)
    gap = float(values[grid > 0.5].max() - values[grid < 0.5].max())
    return int(np.sign(gap)) if abs(gap) > _LABELS_SAY else 0


def needed_prior(
    prior: float | None, graph: AnswerGraph | None, counts: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> PriorEstimate:
    """Return the prior of a risk, given or estimated, or raise if it is not known.

    Without a graph, ``counts`` are the weights of similar and of dissimilar loose pairs, and the sum of their squares.
    """
    if graph is not None and len(hubs := graph.hubs()):
        raise InputError(
            f"Point {graph.points[hubs[0]]} is in {graph.degree[hubs[0]]} of the {graph.n_answers} answers. The risks "
            "of SDUClassifier are averages over randomly drawn pairs, and these are linked. Use "
            "sdulearn.PairLogisticRegressionCV, or ask about pairs of points drawn at random."
        )
    if prior is not None:
        return PriorEstimate.given(check_prior(prior))
    estimate = prior_of_weights(*counts) if graph is None else estimate_prior(y=graph)
    # Answers of one kind alone were hardly drawn at random.
    if not (estimate.n_similar and estimate.n_dissimilar and estimate.has_value):
        raise UndeterminedError(
            "`prior=None` takes the class prior from the answers, but there are no more similar than dissimilar pairs "
            f"({estimate.n_similar:g} and {estimate.n_dissimilar:g}), one kind is missing, or the points seem to be of "
            "two equally large classes. Give `prior`, P(y = +1), ask about more randomly drawn pairs, or use "
            "sdulearn.PairLogisticRegression, which needs no prior."
        )
    return estimate


def mean_error(model: KnownRates, graph: AnswerGraph, by_answer: Array) -> float:
    """Return the mean error rate of weighted answers, on which the share of "same" ones depends."""
    if model is None or not by_answer.any():
        return 0.0
    return float(np.average(model.errors(graph.annotators), weights=by_answer))


def prior_of_weights(
    similar: float, dissimilar: float, squares: float, confidence: float = 0.95, error_rate: float = 0.0
) -> PriorEstimate:
    """Estimate the prior from the weights of similar and dissimilar pairs and their squares."""
    total = similar + dissimilar
    n = effective_number(total, squares)
    unit = n / (total or 1.0)
    return _prior_of_counts(similar * unit, dissimilar * unit, n, confidence, error_rate)


def _with_share(estimate: PriorEstimate, share: tuple[float, float, float], n_effective: float) -> PriorEstimate:
    """Replace the estimate and its interval, and keep the counts."""
    value, low, high = share
    identified = low > 0.5 or high < 0.5
    return replace(estimate, value=value, low=low, high=high, identified=identified, n_effective=n_effective)


def share_in_class(
    graph: AnswerGraph,
    classes: Codes,
    confidence: float,
    model: KnownRates = None,
    spread: float = 1.0,
    counted: Mask | None = None,
) -> tuple[float, float, float]:
    """Return the share of points in these classes, -1 or +1: an accuracy, or of +1 the prior; and its interval."""
    if counted is not None and one_way(graph, counted):
        chances = classes_by_answers(graph, model)[counted]
        return share_of(chances, (classes[counted] > 0).astype(np.intp), confidence, spread)
    # In this graph class +1 are the points that are in these classes.
    in_class = graph.with_values(same=graph.same * classes[graph.ends].prod(axis=1), labels=graph.labels * classes)
    return profile(in_class, confidence, model, spread, counted)


def profile(
    graph: AnswerGraph, confidence: float, model: KnownRates = None, spread: float = 1.0, counted: Mask | None = None
) -> tuple[float, float, float]:
    """Return the likeliest probability of class +1, or of the larger class, and its interval."""
    start = 0.0 if graph.labels.any() else 0.5
    limit = float(chi2.ppf(confidence, 1))
    span = (start, 1.0)
    for _ in range(2):
        grid = np.linspace(*span, _N_GRID)
        values = log_likelihood(graph, np.clip(grid, _EDGE, 1 - _EDGE), model, counted)
        # Twice the logarithm below its largest value.
        drop = 2 * (values.max() - values) / spread
        near = np.flatnonzero(drop <= limit)
        if len(near) >= _MIN_INSIDE:
            break
        span = grid[max(near[0] - 1, 0)], grid[min(near[-1] + 1, _N_GRID - 1)]
    value = float(grid[np.argmin(drop)])
    low, high = start, 1.0
    members = (graph.degree > 0) | (graph.labels != 0)
    most = int(np.count_nonzero(members if counted is None else members & counted))
    if (first := near[0]) > 0:
        end = np.interp(-limit, -drop[first - 1 : first + 1], grid[first - 1 : first + 1])
        low = max(start, _exact_interval(value, end, confidence, limit, most)[0])
    if (last := near[-1]) < _N_GRID - 1:
        end = np.interp(limit, drop[last : last + 2], grid[last : last + 2])
        _, high = _exact_interval(value, end, confidence, limit, most)
    return value, low, high


def _exact_interval(
    value: float, end: float, confidence: float, limit: float, most: float, gain: float = 0.0
) -> tuple[float, float]:
    """Return the exact interval for as many points as equation (4) gives, of a value that has grown since."""
    n = min(limit / (2 * (rel_entr(value, end) + rel_entr(1 - value, 1 - end))), most)
    value = min(value + gain, 1.0)
    return clopper_pearson(n * value, n * (1 - value), confidence)


def clopper_pearson(successes: float, failures: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval for a share; counts may be sums of weights."""
    tail = (1 - confidence) / 2
    low = beta.ppf(tail, successes, failures + 1) if successes > 0 else 0.0
    high = beta.ppf(1 - tail, successes + 1, failures) if failures > 0 else 1.0
    return float(low), float(high)


def oriented(graph: AnswerGraph, decision: Array | Codes) -> AnswerGraph:
    """Return the graph with a label in each large component, by the decisions of a model."""
    sign = np.sign(decision)
    first, second = graph.ends.T
    # Contradictory answers give no sides: the points compared with the centre vote instead.
    by_neighbours = np.bincount(first, graph.same * sign[second], graph.n_points)
    by_neighbours += np.bincount(second, graph.same * sign[first], graph.n_points)
    by_sides = graph.sides * np.bincount(graph.component, graph.sides * sign)[graph.component]
    vote = np.where(graph.sides != 0, by_sides, by_neighbours)
    # A model is right about most points of a large component.
    centre = first_by(graph.component, -graph.degree)
    centre = centre[(graph.component_sizes >= ENOUGH) & ~graph.labelled]
    labels = graph.labels.copy()
    labels[centre] = np.sign(vote[centre])
    return replace(graph, labels=labels)


def classes_by_answers(graph: AnswerGraph, model: KnownRates, n_classes: int = 2) -> Array:
    """Return class probabilities by labels and answers alone, contradictory ones wrong at 5%."""
    model = AnswerModel.given(0.0, graph) if model is None else model
    try:
        return model.factor_graph(graph, n_classes).propagate(tol=ROUGH_TOL).posteriors
    except InputError:
        return AnswerModel.given(SELDOM, graph).factor_graph(graph, n_classes).propagate(tol=ROUGH_TOL).posteriors


def one_way(graph: AnswerGraph, points: Mask) -> bool:
    """Return whether each of these points is in a component with a label."""
    return bool(graph.labelled[graph.component[points]].all())


def log_likelihood(graph: AnswerGraph, grid: Array, model: KnownRates = None, counted: Mask | None = None) -> Array:
    """Return the log likelihood of all answers and labels at each probability in the grid."""
    counted = np.ones(graph.n_points, dtype=bool) if counted is None else counted
    if model is not None and not model.certain:
        return _at_rates(graph, grid, counted, model)
    if graph.contradictory.any():
        return _at_any_rate(graph, grid, counted)
    return _without_errors(graph, grid, counted)


def _without_errors(graph: AnswerGraph, grid: Array, counted: Mask) -> Array:
    """Return equations (1) and (2)."""
    known = graph.labels != 0
    members = counted & ((graph.degree > 0) | known)
    component = graph.component[members]
    n = graph.n_components
    size = np.bincount(component, minlength=n)
    up = np.bincount(component, graph.sides[members] > 0, n)
    # Labels times sides: +1 where the first side is class +1, by the majority where they disagree.
    vote = np.bincount(graph.component[known], (graph.sides * graph.labels)[known], n)
    k = np.where(vote < 0, size - up, up)
    table = np.column_stack([k, size, graph.labelled])[size > 0]
    weights = _effective_weights(graph, weights_by_component(graph)[1])[size > 0]
    counts, place = np.unique(table, axis=0, return_inverse=True)
    times = np.bincount(place.ravel(), weights)
    k, m, named = np.hsplit(counts, 3)
    given = k * np.log(grid) + (m - k) * np.log1p(-grid)
    turned = (m - k) * np.log(grid) + k * np.log1p(-grid)
    return times @ np.where(named > 0, given, np.logaddexp(given, turned))


def _effective_weights(graph: AnswerGraph, weights: Array) -> Array:
    """Return weights of components that sum to the number of equal weights that are as precise."""
    used = (graph.component_sizes > 1) | graph.labelled
    return weights * (weights[used].sum() / max(weights[used] @ weights[used], np.finfo(float).tiny))


def _at_any_rate(graph: AnswerGraph, grid: Array, counted: Mask) -> Array:
    """Return equation (3)."""
    models = [AnswerModel.given(rate, graph) for rate in _RATES.tolist()]
    table = np.column_stack([_at_rates(graph, grid, counted, model) for model in models])
    fine = CubicSpline(np.log(_RATES), table, axis=1)(np.log(_FINE_RATES))
    return np.asarray(logsumexp(fine, axis=1, b=_RATE_WEIGHTS / _RATE_WEIGHTS.sum()))


def _at_rates(graph: AnswerGraph, grid: Array, counted: Mask, model: AnswerModel) -> Array:
    """Return the likelihood at known error rates, by a spline over logits; of many answers from a random sample."""
    known = graph.labels != 0
    if (n := graph.n_answers) > _MAX_WITH_ERRORS:
        chosen = np.random.default_rng(0).choice(n, _MAX_WITH_ERRORS, replace=False)
        graph = graph.restrict(np.isin(np.arange(n), chosen), known)
    points = np.union1d(graph.ends, np.flatnonzero(known))
    graph = graph.subgraph(points)
    likelihood = model.likelihood(graph, 2)
    mirrored = grid[0] < 0.5 or graph.labels.any()
    logits = np.concatenate([-_LOGITS[:0:-1], _LOGITS]) if mirrored else _LOGITS
    weights = _effective_weights(graph, likelihood.weight)
    values = weights @ likelihood.terms(np.outer(counted[points], logits)[:, None]).log_p
    # Without labels the slope at 1/2 is 0.
    ends = "not-a-knot" if mirrored else ((1, 0.0), (2, 0.0))
    return np.asarray(CubicSpline(logits, values, bc_type=ends)(logit(grid)))


def share_of(
    chances: Array, wanted: Indices, confidence: float, spread: float = 1.0, gain: float = 0.0
) -> tuple[float, float, float]:
    """Return the share of points in their ``wanted`` class, by equation (5), and its interval, by equation (4).

    ``chances``: class probabilities (n_points, K). ``spread``: variance over that of independent points. ``gain``: how
    much the share has grown since.
    """
    q = chances[np.arange(len(chances)), wanted]
    # At even odds. Answers may exclude the wanted class without telling which of the others it is.
    right = q / (q + (1 - q) / (chances.shape[1] - 1))
    if np.abs(right - 0.5).max(initial=0.0) <= _KNOWN - 0.5:
        return 0.5, 0.0, 1.0

    def slope(a: float) -> float:
        return float(np.sum((2 * right - 1) / (a * right + (1 - a) * (1 - right))))

    def fall(a: float) -> float:
        a, top = np.clip([a, value], _LEAST_SHARE, 1 - _LEAST_SHARE)
        ratio = (top * right + (1 - top) * (1 - right)) / (a * right + (1 - a) * (1 - right))
        return 2 * float(np.sum(np.log(ratio))) / spread - limit

    inner = (_LEAST_SHARE, 1 - _LEAST_SHARE)
    value = 0.0 if slope(inner[0]) <= 0 else 1.0 if slope(inner[1]) >= 0 else float(brentq(slope, *inner))
    limit = float(chi2.ppf(confidence, 1))
    ends = [0.0, 1.0]
    for side in (0, 1):
        if fall(side) > 0:
            end = brentq(fall, *sorted((float(side), value)))
            ends[side] = _exact_interval(value, end, confidence, limit, len(right) / spread, gain)[side]
    return min(value + gain, 1.0), ends[0], ends[1]


def without_errors(hits: Array | float, error: float, n_classes: int) -> Array:
    """Return the share a of right predictions by that of hits: ``a (1 - e) + (1 - a) e / (K - 1)``."""
    by_chance = error / (n_classes - 1)
    return np.clip((hits - by_chance) / (1 - error - by_chance), 0, 1)


def random_of(graph: AnswerGraph, random_points: ArrayLike | None) -> Mask | None:
    """Return which points were drawn at random; None where all points in answers were."""
    if random_points is None:
        return None
    marked = np.asarray(random_points)
    if marked.dtype != bool or marked.shape != (graph.n_given,):
        raise InputError(f"`random_points` must contain True or False for each of the {graph.n_given} rows of `y`.")
    counted = np.bincount(graph.row_point, marked[graph.rows], graph.n_points) > 0
    return None if counted[graph.degree > 0].all() else counted


def random_answers(graph: AnswerGraph, random_points: ArrayLike | None) -> tuple[Mask | None, Mask]:
    """Return the points drawn at random, as :func:`random_of`, and the answers about one of them."""
    counted = random_of(graph, random_points)
    drawn = np.ones(graph.n_points, dtype=bool) if counted is None else counted
    return counted, np.any(drawn[graph.ends], axis=1)


def check_two_classes(graph: AnswerGraph) -> None:
    """Refuse labels of more than two classes."""
    if (largest := int(graph.labels.max(initial=0))) > 1:
        raise InputError(
            f"Two classes need labels -1 and +1, and `y` has {largest}: see sdulearn.metrics.class_agreement."
        )


def check_confidence(confidence: float) -> None:
    """Refuse a level of an interval that is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"`confidence` must lie between 0 and 1, got {confidence!r}.")


def no_answers(what: str) -> UndeterminedError:
    """Return the error for rows without any answer or label."""
    return UndeterminedError(
        f"{what} needs answers or labels, and `y` has no answers of positive weight. In cross_val_score or "
        "GridSearchCV give `cv=PairKFold()`: it keeps the rows of an answer together, other splitters do not."
    )


def effective_number(total: float, squares: float) -> float:
    """Return the number of equal weights that are as precise as these weights."""
    # Divided first: the square of a large total could overflow.
    return total * (total / squares) if squares > 0 else 0.0
