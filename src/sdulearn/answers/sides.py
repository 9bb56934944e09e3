"""The likelihood of all answers where every point has one and the same probability of class +1.

Answers without errors put the points of a component on two sides, k of m on one of them, up to one
flip, unless a label tells which side is which:

    P(component | p) = p^k q^(m - k) + p^(m - k) q^k,   q = 1 - p                              (1)
    P(component with a label | p) = p^k q^(m - k),      k points on the side of class +1       (2)

With p the class prior it is the likelihood of the prior; with every answer multiplied by the
predictions at both ends, and p the accuracy, that of the accuracy. A loose pair is p^2 + q^2 or 2 p q.

Points that a design chose are not a sample of anything: k and m count the points drawn at random, and the
others, each as likely of one class as of the other, only connect these. Which side of a large component is which
class, a model that learned from its answers knows (:func:`oriented`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.stats import chi2

from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import FactorGraph, propagate
from sdulearn.errors import InputError
from sdulearn.types import Array, Codes, Indices, Mask

# Where answers may be wrong, cycles are slow: so many answers are looked at, at so many probabilities.
_MOST_WITH_ERRORS = 2000
_COARSE = 31
# Of answers that contradict each other and are said to be right.
_SELDOM = 0.05
# Shares of wrong answers that are considered where answers contradict each other and no rate is given.
_ERROR_RATES = (0.01, 0.02, 0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3)
# A model is right about most points of a component of so many, or nothing helps.
_LARGE = 10
# The probability 1 itself is out of reach of a component with two sides.
_EDGE = 1e-4


@dataclass(frozen=True)
class Profile:
    """Where a likelihood of one probability is largest, and where it is not much smaller.

    Attributes
    ----------
    value : float
        The maximum.
    low, high : float
        Ends of the region in which twice the logarithm falls by less than a quantile of chi-square.
    """

    value: float
    low: float
    high: float


def profile(
    graph: AnswerGraph,
    confidence: float,
    error_rate: float | Mapping[int, float] | None = None,
    spread: float = 1.0,
    counted: Mask | None = None,
) -> Profile:
    """Maximum and profile interval of the constant probability of class +1.

    Without labels the classes can be exchanged, and the result lies between 1/2 and 1.

    Parameters
    ----------
    graph : AnswerGraph
        The answers.
    confidence : float
        Level of the interval.
    error_rate : float or mapping, optional
        Probability that an answer is wrong, for all or by annotator; by default 0, and where answers
        contradict each other what suits these best.
    spread : float, default=1
        Variance of the estimate as a multiple of what independent points have.
    counted : bool array of shape (n_points,), optional
        Points that have this probability; the others connect them. All by default.

    Returns
    -------
    Profile
        The maximum and its interval.
    """
    start = 0.0 if graph.labels.any() else 0.5
    grid = np.linspace(start, 1, round((1 - start) * 2000) + 1)
    inside = np.clip(grid, _EDGE, 1 - _EDGE)
    value = log_likelihood(graph, inside, error_rate, counted)
    near = grid[2 * (value.max() - value) <= spread * chi2.ppf(confidence, 1)]
    return Profile(float(grid[np.argmax(value)]), float(near[0]), float(near[-1]))


def oriented(graph: AnswerGraph, decision: Array | Codes) -> AnswerGraph:
    """The graph with a label in each large component: which side is which, by a model of two classes.

    Parameters
    ----------
    graph : AnswerGraph
        The answers.
    decision : array of shape (n_points,)
        Decision values of the model.

    Returns
    -------
    AnswerGraph
        With the label of the point in most answers of each component of ten points or more that has none. The side
        on which most decisions are positive is that of class +1.
    """
    sign = np.sign(decision)
    first, second = graph.ends.T
    # Where answers contradict each other there are no sides, and what was compared with a point speaks for it.
    by_neighbours = np.bincount(first, graph.same * sign[second], graph.n_points)
    by_neighbours += np.bincount(second, graph.same * sign[first], graph.n_points)
    by_sides = graph.sides * np.bincount(graph.component, graph.sides * sign)[graph.component]
    vote = np.where(graph.sides != 0, by_sides, by_neighbours)
    labelled = np.bincount(graph.component, graph.labels != 0) > 0
    order = np.lexsort((-graph.degree, graph.component))
    centre = order[np.unique(graph.component[order], return_index=True)[1]]
    centre = centre[(graph.component_sizes >= _LARGE) & ~labelled]
    labels = graph.labels.copy()
    labels[centre] = np.sign(vote[centre])
    return replace(graph, labels=labels)


def told_classes(graph: AnswerGraph, error_rate: float | Mapping[int, float] | None, n_classes: int = 2) -> Array:
    """Probabilities of the classes of each point by labels and answers alone: before these, all are equally likely."""
    equal = np.full(n_classes, -np.log(n_classes))
    try:
        return propagate(graph, equal, error_rate or 0.0, tol=1e-4).posteriors
    except InputError:
        return propagate(graph, equal, _SELDOM, tol=1e-4).posteriors


def one_way(graph: AnswerGraph, points: Mask) -> bool:
    """Whether a label says which side is which, for all of some points."""
    labelled = np.bincount(graph.component, graph.labels != 0) > 0
    return bool(labelled[graph.component[points]].all())


def log_likelihood(
    graph: AnswerGraph,
    grid: Array,
    error_rate: float | Mapping[int, float] | None = None,
    counted: Mask | None = None,
) -> Array:
    """Logarithm of the probability of all answers and labels, at each probability of class +1 in the grid."""
    counted = np.ones(graph.n_points, dtype=bool) if counted is None else counted
    rates = error_rate.values() if isinstance(error_rate, Mapping) else [error_rate]
    if error_rate is not None and any(rates):
        return _with_errors(graph, grid, (error_rate,), counted)
    asked = graph.contradictory[graph.component]
    value = _without_errors(graph, ~asked & counted, grid)
    if asked.any():
        points = np.flatnonzero(asked)
        answers = np.flatnonzero(asked[graph.ends[:, 0]])
        value += _with_errors(_subgraph(graph, answers, points), grid, _ERROR_RATES, counted[points])
    return value


def _without_errors(graph: AnswerGraph, members: Mask, grid: Array) -> Array:
    """Equations (1) and (2) over the components of these points."""
    known = graph.labels != 0
    members = members & ((graph.degree > 0) | known)
    component = graph.component[members]
    sides = graph.sides[members]
    n = graph.n_components
    size = np.bincount(component, minlength=n)
    up = np.bincount(component, sides > 0, n)
    # Labels times sides: +1 where the first side is class +1, by the majority where they disagree.
    vote = np.bincount(graph.component[known], (graph.sides * graph.labels)[known], n)
    k = np.where(vote < 0, size - up, up)
    one_way = np.bincount(graph.component[known], minlength=n) > 0
    table = np.column_stack([k, size, one_way])[size > 0]
    weights = _component_weights(graph)[size > 0]
    counts, place = np.unique(table, axis=0, return_inverse=True)
    times = np.bincount(place.ravel(), weights)
    return times @ _component_terms(counts[:, :1], counts[:, 1:2], counts[:, 2:] > 0, grid)


def _component_terms(k: Array, m: Array, one_way: Mask, grid: Array) -> Array:
    """Equations (1) and (2), one row a component."""
    up = np.log(grid)
    down = np.log1p(-grid)
    given = k * up + (m - k) * down
    turned = (m - k) * up + k * down
    return np.where(one_way, given, np.logaddexp(given, turned))


def _component_weights(graph: AnswerGraph) -> Array:
    """What each component counts: 1, or with weights the mean of its answers', in units that keep their precision."""
    if (graph.weights == 1).all():
        return np.ones(graph.n_components)
    of_answer = graph.component[graph.ends[:, 0]]
    count = np.bincount(of_answer, minlength=graph.n_components)
    total = np.bincount(of_answer, graph.weights, graph.n_components)
    mean = np.where(count > 0, total / np.maximum(count, 1), 1.0)
    asked = mean[count > 0]
    return np.where(count > 0, mean * (asked.sum() / (asked @ asked)), 1.0)


def _with_errors(graph: AnswerGraph, grid: Array, rates: Sequence[float | Mapping[int, float]], counted: Mask) -> Array:
    """The propagated likelihood at each probability, at the error rate that suits it best."""
    if graph.n_answers > _MOST_WITH_ERRORS:
        # Leaving some answers out takes nothing from the others.
        kept = np.sort(np.random.default_rng(0).choice(graph.n_answers, _MOST_WITH_ERRORS, replace=False))
        points = np.union1d(graph.ends[kept], np.flatnonzero(graph.labels))
        graph = _subgraph(graph, kept, points)
        counted = counted[points]
    coarse = np.clip(np.linspace(grid[0], grid[-1], _COARSE), 1e-3, 1 - 1e-3)
    factors = [FactorGraph.from_answers(graph, 2, rate) for rate in rates]
    if len(factors) > 1:
        # Which rates suit depends little on the probability: a few of these tell which to go on with.
        few = np.array([_propagated(one, coarse[[3, -6, -2]], counted) for one in factors])
        factors = [factors[k] for k in np.unique(np.argmax(few, axis=0))]
    found = np.array([_propagated(one, coarse, counted) for one in factors])
    return PchipInterpolator(coarse, found.max(axis=0))(np.clip(grid, coarse[0], coarse[-1]))


def _propagated(factors: FactorGraph, probabilities: Array, counted: Mask) -> Array:
    """The value at each probability of class +1 of the counted points."""
    found = []
    for p in probabilities:
        log_p = np.where(counted[:, None], np.log([1 - p, p]), np.log(0.5))
        found.append(factors.propagate(log_p, tol=1e-4, max_iter=50).value)
    return np.array(found)


def _subgraph(graph: AnswerGraph, kept: Indices, points: Indices) -> AnswerGraph:
    return AnswerGraph.from_answers(
        np.searchsorted(points, graph.ends[kept]),
        graph.same[kept],
        annotators=graph.annotators[kept],
        weights=graph.weights[kept],
        labels=graph.labels[points],
        n_points=len(points),
    )
