"""The likelihood of all answers where every point has one and the same probability of class +1.

Answers without errors put the points of a component on two sides, k of m on one of them, up to one
flip, unless a label tells which side is which:

    P(component | p) = p^k q^(m - k) + p^(m - k) q^k,   q = 1 - p                              (1)
    P(component with a label | p) = p^k q^(m - k),      k points on the side of class +1       (2)

With p the class prior it is the likelihood of the prior; with every answer multiplied by the
predictions at both ends, and p the accuracy, that of the accuracy. A loose pair is p^2 + q^2 or 2 p q.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.stats import chi2

from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import FactorGraph
from sdulearn.types import Array, Indices, Mask

# Where answers may be wrong, cycles are slow: so many answers are looked at, at so many probabilities.
_MOST_WITH_ERRORS = 2000
_COARSE = 31
# Shares of wrong answers that are considered where answers contradict each other and no rate is given.
_ERROR_RATES = (0.01, 0.02, 0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3)
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
    graph: AnswerGraph, confidence: float, error_rate: float | Mapping[int, float] | None = None, spread: float = 1.0
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

    Returns
    -------
    Profile
        The maximum and its interval.
    """
    start = 0.0 if graph.labels.any() else 0.5
    grid = np.linspace(start, 1, round((1 - start) * 2000) + 1)
    inside = np.clip(grid, _EDGE, 1 - _EDGE)
    value = log_likelihood(graph, inside, error_rate)
    near = grid[2 * (value.max() - value) <= spread * chi2.ppf(confidence, 1)]
    return Profile(float(grid[np.argmax(value)]), float(near[0]), float(near[-1]))


def log_likelihood(graph: AnswerGraph, grid: Array, error_rate: float | Mapping[int, float] | None = None) -> Array:
    """Logarithm of the probability of all answers and labels, at each probability of class +1 in the grid."""
    rates = error_rate.values() if isinstance(error_rate, Mapping) else [error_rate]
    if error_rate is not None and any(rates):
        return _with_errors(graph, grid, (error_rate,))
    asked = graph.contradictory[graph.component]
    value = _without_errors(graph, ~asked, grid)
    if asked.any():
        value += _with_errors(_restricted(graph, asked), grid, _ERROR_RATES)
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


def _with_errors(graph: AnswerGraph, grid: Array, rates: Sequence[float | Mapping[int, float]]) -> Array:
    """The propagated likelihood at each probability, at the error rate that suits it best."""
    if graph.n_answers > _MOST_WITH_ERRORS:
        graph = _some_answers(graph, _MOST_WITH_ERRORS)
    coarse = np.clip(np.linspace(grid[0], grid[-1], _COARSE), 1e-3, 1 - 1e-3)
    factors = [FactorGraph.from_answers(graph, 2, rate) for rate in rates]
    if len(factors) > 1:
        # Which rates suit depends little on the probability: a few of these tell which to go on with.
        few = np.array([_propagated(one, coarse[[3, -6, -2]]) for one in factors])
        factors = [factors[k] for k in np.unique(np.argmax(few, axis=0))]
    found = np.array([_propagated(one, coarse) for one in factors])
    return PchipInterpolator(coarse, found.max(axis=0))(np.clip(grid, coarse[0], coarse[-1]))


def _propagated(factors: FactorGraph, probabilities: Array) -> Array:
    """The value at each probability of class +1."""
    return np.array([factors.propagate(np.log([1 - p, p]), tol=1e-4, max_iter=50).value for p in probabilities])


def _restricted(graph: AnswerGraph, members: Mask) -> AnswerGraph:
    """The graph of these points alone, which are whole components."""
    return _subgraph(graph, np.flatnonzero(members[graph.ends[:, 0]]), np.flatnonzero(members))


def _some_answers(graph: AnswerGraph, count: int) -> AnswerGraph:
    """So many answers at random: leaving the others out takes nothing from these."""
    kept = np.sort(np.random.default_rng(0).choice(graph.n_answers, count, replace=False))
    points = np.union1d(graph.ends[kept], np.flatnonzero(graph.labels))
    return _subgraph(graph, kept, points)


def _subgraph(graph: AnswerGraph, kept: Indices, points: Indices) -> AnswerGraph:
    return AnswerGraph.from_answers(
        np.searchsorted(points, graph.ends[kept]),
        graph.same[kept],
        annotators=graph.annotators[kept],
        weights=graph.weights[kept],
        labels=graph.labels[points],
        n_points=len(points),
    )
