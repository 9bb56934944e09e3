"""The likelihood of all answers where every point has the same probability of class +1.

Answers without errors put the points of a component on two sides, k of m on one of them, up to one
flip, unless a label tells which side is which:

    P(component | p) = p^k q^(m - k) + p^(m - k) q^k,   q = 1 - p                              (1)
    P(component with a label | p) = p^k q^(m - k),      k points on the side of class +1       (2)

With p the class prior, this is the likelihood of the prior. With p the accuracy, and every answer
multiplied by the predictions at both ends, it is that of the accuracy. Where only some points were
drawn at random, k and m count these; the others are of either class with probability 1/2 and only
connect them. Where answers contradict each other, some are wrong, at an unknown rate e:

    P(answers | p) = integral of P(answers | p, e) Beta(e; 1/2, 19/2) de                       (3)

The likelihood-ratio interval ends where twice the log likelihood has fallen by a quantile of
chi-square. With few points it covers too rarely, so each end is replaced by that of Clopper and
Pearson for n points. The n is the number of points whose likelihood would fall as much up to that
end, and at most the number of points:

    n = quantile / (2 KL(value, end)),  KL(a, b) = a log(a / b) + (1 - a) log((1 - a) / (1 - b))   (4)
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import logit, logsumexp, rel_entr
from scipy.stats import beta, chi2

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph, first_by, weights_by_component
from sdulearn.answers.two_classes import TwoClassNetwork
from sdulearn.errors import InputError
from sdulearn.types import Array, Codes, Indices, Mask

# Error rate of answers that contradict each other where none was given.
_SELDOM = 0.05
# Components of this size or more are oriented by a model: it is right about most of their points.
_LARGE = 10
# Propagation around cycles is slow: at most this many answers are used.
_MOST_WITH_ERRORS = 3000
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
_FEWEST = 20


def profile(
    graph: AnswerGraph,
    confidence: float,
    model: AnswerModel | None = None,
    spread: float = 1.0,
    counted: Mask | None = None,
) -> tuple[float, float, float]:
    """Return the likeliest probability of class +1, or of the larger class, and its interval."""
    start = 0.0 if graph.labels.any() else 0.5
    limit = float(chi2.ppf(confidence, 1))
    around = (start, 1.0)
    for _ in range(2):
        grid = np.linspace(*around, _N_GRID)
        values = log_likelihood(graph, np.clip(grid, _EDGE, 1 - _EDGE), model, counted)
        # Twice the logarithm below its largest value.
        drop = 2 * (values.max() - values) / spread
        near = np.flatnonzero(drop <= limit)
        if len(near) >= _FEWEST:
            break
        around = grid[max(near[0] - 1, 0)], grid[min(near[-1] + 1, _N_GRID - 1)]
    value = float(grid[np.argmin(drop)])
    low = start
    high = 1.0
    members = (graph.degree > 0) | (graph.labels != 0)
    most = int(np.count_nonzero(members if counted is None else members & counted))
    if (first := near[0]) > 0:
        end = np.interp(-limit, -drop[first - 1 : first + 1], grid[first - 1 : first + 1])
        low = max(start, _exact_interval(value, end, confidence, limit, most)[0])
    if (last := near[-1]) < _N_GRID - 1:
        end = np.interp(limit, drop[last : last + 2], grid[last : last + 2])
        _, high = _exact_interval(value, end, confidence, limit, most)
    return value, low, high


def _exact_interval(value: float, end: float, confidence: float, limit: float, most: int) -> tuple[float, float]:
    """Return the exact interval for as many points as equation (4) gives."""
    n = min(limit / (2 * (rel_entr(value, end) + rel_entr(1 - value, 1 - end))), most)
    return clopper_pearson(n * value, n * (1 - value), confidence)


def clopper_pearson(successes: float, failures: float, confidence: float) -> tuple[float, float]:
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
    centre = first_by(graph.component, -graph.degree)
    centre = centre[(graph.component_sizes >= _LARGE) & ~graph.labelled]
    labels = graph.labels.copy()
    labels[centre] = np.sign(vote[centre])
    return graph.with_values(labels=labels)


def classes_by_answers(graph: AnswerGraph, model: AnswerModel | None, n_classes: int = 2) -> Array:
    """Return class probabilities by labels and answers alone, contradictory ones wrong at 5%."""
    model = AnswerModel.given(0.0, graph) if model is None else model
    try:
        return model.factor_graph(graph, n_classes).propagate(tol=1e-4).posteriors
    except InputError:
        return AnswerModel.given(_SELDOM, graph).factor_graph(graph, n_classes).propagate(tol=1e-4).posteriors


def one_way(graph: AnswerGraph, points: Mask) -> bool:
    """Return whether each of these points is in a component with a label."""
    return bool(graph.labelled[graph.component[points]].all())


def log_likelihood(
    graph: AnswerGraph, grid: Array, model: AnswerModel | None = None, counted: Mask | None = None
) -> Array:
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
    sides = graph.sides[members]
    n = graph.n_components
    size = np.bincount(component, minlength=n)
    up = np.bincount(component, sides > 0, n)
    # Labels times sides: +1 where the first side is class +1, by the majority where they disagree.
    vote = np.bincount(graph.component[known], (graph.sides * graph.labels)[known], n)
    k = np.where(vote < 0, size - up, up)
    table = np.column_stack([k, size, graph.labelled])[size > 0]
    weights = _component_weights(graph)[1][size > 0]
    counts, place = np.unique(table, axis=0, return_inverse=True)
    times = np.bincount(place.ravel(), weights)
    k, m, named = np.hsplit(counts, 3)
    given = k * np.log(grid) + (m - k) * np.log1p(-grid)
    turned = (m - k) * np.log(grid) + k * np.log1p(-grid)
    return times @ np.where(named > 0, given, np.logaddexp(given, turned))


def _component_weights(graph: AnswerGraph) -> tuple[Array, Array]:
    """Return weights of answers over the mean of their component, and weights of components."""
    relative, mean = weights_by_component(graph.with_values(labels=np.zeros_like(graph.labels)))
    asked = graph.component_sizes > 1
    squares = mean[asked] @ mean[asked]
    counts = np.where(asked, mean * mean[asked].sum() / max(squares, np.finfo(float).tiny), 1.0)
    return relative.weights, counts


def _at_any_rate(graph: AnswerGraph, grid: Array, counted: Mask) -> Array:
    """Return equation (3)."""
    models = [AnswerModel.given(rate, graph) for rate in _RATES.tolist()]
    table = np.column_stack([_at_rates(graph, grid, counted, model) for model in models])
    fine = CubicSpline(np.log(_RATES), table, axis=1)(np.log(_FINE_RATES))
    return np.asarray(logsumexp(fine, axis=1, b=_RATE_WEIGHTS / _RATE_WEIGHTS.sum()))


def _at_rates(graph: AnswerGraph, grid: Array, counted: Mask, model: AnswerModel) -> Array:
    """Return the likelihood at known error rates."""
    graph, points = _some_answers(graph)
    # Within a component answers count by their share of its weight.
    relative, weights = _component_weights(graph)
    network = TwoClassNetwork(model.factor_graph(graph.with_values(weights=relative), 2))
    mirrored = grid[0] < 0.5
    logits = np.concatenate([-_LOGITS[:0:-1], _LOGITS]) if mirrored else _LOGITS
    values = weights @ network.solve(np.outer(counted[points], logits), tol=1e-4).values
    # Without labels the slope at 1/2 is 0.
    ends = "not-a-knot" if mirrored else ((1, 0.0), (2, 0.0))
    return np.asarray(CubicSpline(logits, values, bc_type=ends)(logit(grid)))


def _some_answers(graph: AnswerGraph) -> tuple[AnswerGraph, Indices]:
    """Return at most 3,000 answers, drawn at random, and their points."""
    known = graph.labels != 0
    n = graph.n_answers
    if n > _MOST_WITH_ERRORS:
        chosen = np.random.default_rng(0).choice(n, _MOST_WITH_ERRORS, replace=False)
        graph = graph.restrict(np.isin(np.arange(n), chosen), known)
    points = np.union1d(graph.ends, np.flatnonzero(known))
    return graph.subgraph(points), points
