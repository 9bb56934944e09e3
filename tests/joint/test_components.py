"""Likelihood over components: enumeration, derivatives, and its limits, loose pairs and labels."""

from itertools import product

import numpy as np
import pytest

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.joint.components import SidesLikelihood, chain_information, known_sides, soft_sides
from sdulearn.joint.graph_data import GraphData, PointRows, make_likelihood
from sdulearn.joint.likelihood import pair_loss

N_POINTS = 12
ENDS = [(0, 1), (1, 2), (2, 0), (3, 4), (5, 6), (6, 7), (8, 9)]


def make_graph(labels=True, seed=0):
    """A triangle, a loose pair, a chain with a label, another pair, a labelled point, a point alone."""
    classes = np.random.default_rng(seed).choice([-1, 1], N_POINTS)
    known = np.zeros(N_POINTS, dtype=int)
    if labels:
        known[[5, 10]] = classes[[5, 10]]
    same = [classes[a] * classes[b] for a, b in ENDS]
    return AnswerGraph.from_answers(ENDS, same, labels=known, n_points=N_POINTS)


def make_data(error_rate, labels=True, prior=0.6, d=3):
    graph = make_graph(labels)
    codes = np.ones(N_POINTS, dtype=int)
    codes[11] = 0
    X = np.random.default_rng(1).normal(size=(N_POINTS, d))
    points = PointRows.of(X, graph, codes, np.ones(N_POINTS))
    return GraphData.of(points, AnswerModel.given(error_rate, points.graph), prior, 3.0)


def log_likelihood(graph, z, error_rate):
    """Sum over all classes of all points."""
    total = 0.0
    for classes in product((-1, 1), repeat=graph.n_points):
        c = np.array(classes)
        if ((graph.labels != 0) & (graph.labels != c)).any():
            continue
        right = c[graph.ends[:, 0]] * c[graph.ends[:, 1]] == graph.same
        total += np.exp(-np.logaddexp(0, -c * z).sum()) * np.prod(np.where(right, 1 - error_rate, error_rate))
    return np.log(total)


@pytest.mark.parametrize("error_rate", [0.0, 0.1])
@pytest.mark.parametrize("labels", [False, True])
def test_the_likelihood_is_the_sum_over_all_classes(error_rate, labels):
    graph = make_graph(labels)
    Z = 2 * np.random.default_rng(3).normal(size=(N_POINTS, 2))
    likelihood = make_likelihood(graph, AnswerModel.given(error_rate, graph))
    losses, _ = likelihood.terms(Z)
    for k in range(2):
        assert -losses[:, k].sum() == pytest.approx(log_likelihood(graph, Z[:, k], error_rate), rel=1e-9)


@pytest.mark.parametrize("error_rate", [0.0, 0.1])
def test_derivatives(error_rate):
    data = make_data(error_rate)
    rng = np.random.default_rng(4)
    objective = data.objective(np.full((3, 2), 0.1))
    W = rng.normal(size=(4, 2))
    _, gradient = objective.value_and_gradient(W, [0, 1])
    h = 1e-5
    for j, step in enumerate(h * np.eye(4)):
        up, _ = objective.value_and_gradient(W + step[:, None], [0, 1])
        down, _ = objective.value_and_gradient(W - step[:, None], [0, 1])
        np.testing.assert_allclose((up - down) / (2 * h), gradient[j], atol=1e-8)


def test_the_hessian_is_exact_without_errors():
    data = make_data(0.0)
    objective = data.objective(np.full((3, 1), 0.1))
    w = np.random.default_rng(5).normal(size=4)
    assert objective.exact_hessian
    h = 1e-5
    columns = []
    for step in h * np.eye(4):
        _, up = objective.value_and_gradient((w + step)[:, None], [0])
        _, down = objective.value_and_gradient((w - step)[:, None], [0])
        columns.append((up - down)[:, 0] / (2 * h))
    np.testing.assert_allclose(objective.hessian(w), np.column_stack(columns), atol=1e-8)


def test_a_loose_pair_is_the_pair_s_likelihood():
    graph = AnswerGraph.from_answers([(0, 1), (2, 3)], [1, -1])
    Z = np.random.default_rng(6).normal(size=(4, 3))
    losses, _ = SidesLikelihood.from_graph(graph).terms(Z)
    np.testing.assert_allclose(losses, pair_loss(Z[::2], Z[1::2], np.array([[1.0], [-1.0]])), rtol=1e-12)


def test_left_out_points_are_not_known():
    """A point with z = 0 takes one bit from the likelihood of the others, whatever the answers about it."""
    graph = AnswerGraph.from_answers([(0, 1), (1, 2)], [1, -1])
    z = np.array([0.7, 0.0, -1.2])
    losses, _ = SidesLikelihood.from_graph(graph).terms(z[:, None])
    without = pair_loss(z[0], z[2], -1)
    assert losses[0, 0] == pytest.approx(without + np.log(2), rel=1e-12)


def test_sides_and_classes():
    graph = AnswerGraph.from_answers([(0, 1), (2, 3), (3, 4)], [-1, 1, -1], labels=[0, 0, 0, -1, 0, 1])
    assert known_sides(graph).tolist() == [1, -1, -1, -1, 1, 1]
    assert soft_sides(graph, AnswerModel.given(0.0, graph)).tolist() == [1, -1, -1, -1, 1, 1]
    # Two answers of rate 0.1 in a row are right with a correlation of 0.8 each.
    np.testing.assert_allclose(soft_sides(graph, AnswerModel.given(0.1, graph))[:2], [1, -0.8])
    against = AnswerGraph.from_answers([(0, 1)], [1], labels=[1, -1])
    assert known_sides(against).tolist() == [0, 0]


def test_information_of_a_pair_and_of_labels():
    """For a pair Fisher's, from the two probabilities of its answer; with a label that of logistic regression."""
    rng = np.random.default_rng(7)
    A = rng.normal(size=(2, 3))
    w = rng.normal(size=3)
    z = A @ w

    def rows(labelled):
        component = np.array([0, 0])
        return chain_information(A, z, np.array([1, 1]), component, np.array([labelled]), np.ones(2))

    def same(w):
        s = 1 / (1 + np.exp(-A @ w))
        return s[0] * s[1] + (1 - s[0]) * (1 - s[1])

    h = 1e-6
    slope = np.array([(same(w + step) - same(w - step)) / (2 * h) for step in h * np.eye(3)])
    p = same(w)
    J = rows(False)
    np.testing.assert_allclose(J.T @ J, np.outer(slope, slope) / (p * (1 - p)), rtol=1e-6)
    s = 1 / (1 + np.exp(-z))
    J = rows(True)
    np.testing.assert_allclose(J.T @ J, A.T @ ((s * (1 - s))[:, None] * A), rtol=1e-12)


def test_information_that_wrong_answers_leave():
    """At small logits of a pair Fisher's, of an answer that is wrong with probability e: (1 - 2 e)^2 of the whole."""
    A = np.random.default_rng(8).normal(size=(2, 3))
    z = np.array([1e-3, 2e-3])
    q = 0.5 * (1 + np.tanh(z[0] / 2) * np.tanh(z[1] / 2))
    slope = 0.25 * (np.tanh(z[1] / 2) * A[0] + np.tanh(z[0] / 2) * A[1])
    wrong = 0.2
    p = wrong + (1 - 2 * wrong) * q
    J = chain_information(A, z, np.array([1, 1]), np.array([0, 0]), np.array([False]), np.full(2, 1 - 2 * wrong))
    expected = (1 - 2 * wrong) ** 2 * np.outer(slope, slope) / (p * (1 - p))
    np.testing.assert_allclose(J.T @ J, expected, rtol=1e-4)
