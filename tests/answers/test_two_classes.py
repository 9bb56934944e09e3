"""Log-odds messages have the fixed points of propagate, also around many cycles."""

import numpy as np
import pytest

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.answers.propagate import log_factors
from sdulearn.answers.two_classes import TwoClassNetwork

RATES = {1: 0.1, 2: 0.0, 3: 0.3}


def some_graph(seed, n_points, n_answers, labels=True):
    rng = np.random.default_rng(seed)
    ends = np.array([rng.choice(n_points, 2, replace=False) for _ in range(n_answers)])
    classes = rng.choice([-1, 1], n_points)
    annotators = rng.choice([1, 2, 3], n_answers)
    flip = np.where((annotators != 2) & (rng.random(n_answers) < 0.3), -1, 1)
    known = np.where(rng.random(n_points) < 0.2, classes, 0) if labels else None
    same = classes[ends[:, 0]] * classes[ends[:, 1]] * flip
    return AnswerGraph.from_answers(ends, same, annotators=annotators, labels=known, n_points=n_points)


@pytest.mark.parametrize("seed", range(2))
def test_values_and_beliefs_are_those_of_propagate(seed):
    graph = some_graph(seed, n_points=60, n_answers=90)
    Z = np.random.default_rng(seed).normal(size=(graph.n_points, 4))
    factors = AnswerModel.given(RATES, graph).factor_graph(graph, 2)
    found = TwoClassNetwork(factors).solve(Z, max_iter=500, tol=1e-11)
    for k in range(4):
        log_p = np.column_stack([-np.logaddexp(0, Z[:, k]), -np.logaddexp(0, -Z[:, k])])
        expected = factors.propagate(log_p, max_iter=500, tol=1e-11)
        np.testing.assert_allclose(found.values[:, k], expected.component_values, atol=1e-8)
        np.testing.assert_allclose(found.positive[:, k], expected.posteriors[:, 1], atol=1e-7)
        # The agreement of an edge is the probability of a right answer.
        asked = np.flatnonzero(factors.edge >= 0)
        agree = found.agree[factors.edge[asked], k]
        crossed = np.ptp(factors.swapped[graph.ends[asked]].astype(int), axis=1)
        right = np.where((graph.same[asked] > 0) ^ (crossed > 0), agree, 1 - agree)
        np.testing.assert_allclose(right, expected.right[asked], atol=1e-7)


def test_other_factors_a_column_each():
    """The network of one model, given the factors of others, is that of the others."""
    graph = some_graph(5, n_points=12, n_answers=16, labels=False)
    Z = np.random.default_rng(1).normal(size=(graph.n_points, 2))
    models = [AnswerModel.given({1: 0.1, 2: 0.2, 3: 0.3}, graph), AnswerModel.given(0.05, graph)]
    agree, differ = np.stack(
        [log_factors(graph.same, model.errors(graph.annotators), graph.weights) for model in models], axis=2
    )
    network = TwoClassNetwork(models[1].factor_graph(graph, 2))
    found = network.with_factors(agree, differ).solve(Z)
    for k, model in enumerate(models):
        expected = TwoClassNetwork(model.factor_graph(graph, 2)).solve(Z[:, [k]])
        np.testing.assert_allclose(found.values[:, [k]], expected.values, atol=1e-5)
        np.testing.assert_allclose(found.positive[:, [k]], expected.positive, atol=1e-5)
