"""The likelihood of answers with K classes: enumeration, derivatives, invariance, starts."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax
from sklearn.datasets import load_iris, load_wine

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.joint.classes import ClassProblem, SoftmaxLikelihood
from sdulearn.joint.data import PriorPull, TrainingData
from sdulearn.joint.path import follow_path, held_out_classes, solve_classes
from tests.reference import enumerated, random_answers


def terms(likelihood, log_p):
    """Value and posteriors of one problem."""
    value, posteriors = likelihood.value_and_posteriors(log_p[:, :, None], np.exp(log_p)[:, :, None])
    return value[0], posteriors[:, :, 0]


TREES = {
    "loose pairs": ([(0, 1), (2, 3)], [True, False]),
    "a group": ([(0, 1), (1, 2)], [True, True]),
    "two groups apart": ([(0, 1), (2, 3), (1, 2)], [True, True, False]),
    "a chain": ([(0, 1), (1, 2), (2, 3)], [False, False, False]),
    "a star": ([(0, 1), (0, 2), (0, 3), (0, 4)], [False, True, False, False]),
    "a question asked twice": ([(0, 1), (1, 0)], [True, True]),
}


@pytest.mark.parametrize("error", [0.0, 0.2])
@pytest.mark.parametrize("name", list(TREES))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_value_is_the_sum_over_classes_where_there_is_no_cycle(name, error, n_classes):
    ends, same = TREES[name]
    graph = AnswerGraph.from_answers(ends, same, labels=[0, 0, 2, 0, 0], n_points=5)
    log_p = log_softmax(np.random.default_rng(0).normal(size=(5, n_classes)), axis=1)
    likelihood = SoftmaxLikelihood(graph, AnswerModel.given(error, graph), n_classes)
    value, posteriors = terms(likelihood, log_p)
    expected, expected_posteriors, _ = enumerated(graph, log_p, np.full(len(ends), error))
    assert value == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(posteriors, expected_posteriors, atol=1e-12)


def test_edges_that_contradict_the_model_keep_their_digits_and_answers_are_counted():
    graph = AnswerGraph.from_answers([(0, 1), (2, 3)], [False, True])
    likelihood = SoftmaxLikelihood(graph, AnswerModel.given(0.0, graph), 3)
    logits = np.array([[40.0, 0, 0], [41.0, 0, 0], [40.0, 0, 0], [0, 42.0, 0]])
    log_p = log_softmax(logits, axis=1)
    value, posteriors = terms(likelihood, log_p)
    # Different: one of the two is in another class, 2 exp(-40) + 2 exp(-41); same: exp(-40) + exp(-42) + ...
    different = np.log(2 * np.exp(-40.0) + 2 * np.exp(-41.0))
    same = np.log(np.exp(-40.0) + np.exp(-42.0) + np.exp(-82.0))
    assert value == pytest.approx(different + same, rel=1e-12)
    assert np.isfinite(posteriors).all()
    # The mean loss of the objective is over independent answers and labelled points.
    assert likelihood.n_answers == 2
    labelled = AnswerGraph.from_answers([(0, 1), (2, 3)], [False, True], labels=[1, 0, 0, 0, 2], n_points=5)
    assert SoftmaxLikelihood(labelled, AnswerModel.given(0.0, labelled), 3).n_answers == 4


def problem_of(X, graph, n_classes, error=0.0, pull=None):
    codes = np.where(graph.degree > 0, 1, 0)
    data = TrainingData(X, graph, codes, graph.point_weights)
    return ClassProblem(data, data.graph, AnswerModel.given(error, data.graph), n_classes, 0.0, pull)


def random_problem(n_points=12, n_answers=16, error=0.1, labels=True, pull=True):
    """Of three classes, with components of different weight."""
    rng = np.random.default_rng(3)
    ends = rng.integers(0, n_points, (4 * n_answers, 2))
    ends = ends[ends[:, 0] != ends[:, 1]][:n_answers]
    known = np.zeros(n_points + 5, dtype=int)
    known[:2] = [1, 3] if labels else 0
    weights = 1.0 + ends.min(axis=1) % 3
    same = rng.random(n_answers) < 0.4
    graph = AnswerGraph.from_answers(ends, same, labels=known, weights=weights, n_points=n_points + 5)
    shares = PriorPull(np.array([0.5, 0.3, 0.2]), 2.0) if pull else None
    return problem_of(rng.normal(size=(n_points + 5, 2)), graph, 3, error, shares)


@pytest.mark.parametrize(("n_answers", "error"), [(4, 0.1), (3, 0.0), (16, 0.1)])
def test_many_problems_at_once_are_each_by_itself(n_answers, error):
    problem = random_problem(n_answers=n_answers, error=error, labels=error > 0)
    objective = partial(problem.objective, pen=np.array([[0.1, 0.2, 0.4], [0.3, 0.1, 0.2]]))
    # The second contradicts its answers by far.
    W = np.random.default_rng(4).normal(size=(9, 3)) * [1, 30, 3]
    values, gradients = objective(W, [0, 1, 2])
    for k in range(3):
        value, gradient = objective(W[:, [k]], [k])
        assert values[k] == pytest.approx(value[0], rel=1e-13)
        assert gradients[:, k] == pytest.approx(gradient[:, 0], rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("n_answers", [4, 16])
def test_gradient_is_the_derivative_also_around_cycles(n_answers, exact):
    problem = random_problem(n_answers=n_answers)
    assert (problem.cycles is None) == (n_answers == 4)
    objective = partial(problem.objective, pen=np.array([[0.1], [0.3]]), exact=exact)
    w = np.random.default_rng(4).normal(size=9)
    _, gradient = objective(w[:, None], [0])
    numeric = approx_fprime(w, lambda w: objective(w[:, None], [0])[0][0], 1e-6)
    assert gradient[:, 0] == pytest.approx(numeric, abs=2e-5)


def test_objective_is_the_mean_loss_the_penalty_and_the_pull():
    problem = random_problem(n_answers=4, error=0.2)
    W = np.random.default_rng(4).normal(size=(3, 3))
    log_p = log_softmax(problem.data.known @ W[:-1] + W[-1], axis=1)
    n = problem.likelihood.n_answers
    mean = problem.data.share @ np.exp(log_softmax(problem.data.unlabeled @ W[:-1] + W[-1], axis=1))
    shares = problem.pull.shares
    expected = -terms(problem.likelihood, log_p)[0] / n + 2 * shares @ np.log(shares / mean)
    expected += (0.1 * W[0] @ W[0] + 0.3 * W[1] @ W[1]) / 2
    value, _ = problem.objective(W.reshape(-1, 1), [0], np.array([[0.1], [0.3]]))
    assert value[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_twenty_random_restarts_find_nothing_better(load):
    X, y = load(return_X_y=True)
    graph = AnswerGraph.from_answers(*random_answers(y, 120, 0), n_points=len(X))
    problem = problem_of((X - X.mean(axis=0)) / X.std(axis=0), graph, 3)
    alpha = 0.01 * problem.alpha_max
    start = follow_path(problem, [3 * alpha, alpha])[-1]
    found, _ = solve_classes(problem, [alpha], [start], 1e-3, 200)[0]
    starts = np.random.default_rng(0).normal(size=(20, X.shape[1] + 1, 3))
    restarts = solve_classes(problem, [alpha] * 20, starts, 1e-3, 200)
    assert found < min(value for value, _ in restarts) + 1e-3


def test_held_out_classes_are_probabilities_of_which_three_tenths_are_blind():
    """Points are left out in turn, but for the first, of which every model knows answers."""
    problem = random_problem()
    fold = np.arange(problem.graph.n_points) % 3
    known = fold[:, None] != np.arange(3)
    known[0] = True
    found = np.exp(held_out_classes(problem, known))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert 0.1 <= found.min() < found.max() <= 0.8
    np.testing.assert_allclose(found[0], 1 / 3)


def test_pair_moment_estimates_the_spread_of_class_means():
    rng = np.random.default_rng(0)
    means = np.array([[3.0, 0, 0], [-3.0, 0, 0], [0, 3.0, 0]])
    means -= means.mean(axis=0)
    y = np.repeat(np.arange(3), 400)
    X = means[y] + rng.normal(size=(1200, 3))
    ends, same = random_answers(y, 20_000, 1)
    problem = problem_of(X, AnswerGraph.from_answers(ends[same == 0], same[same == 0], n_points=1200), 3)
    V = problem.data.axes.V
    # Only "different" answers, P(different) = 2 / 3, shares 1 / 3.
    expected = means.T @ means / 9 / (2 / 3)
    assert V @ problem.pair_moment @ V.T == pytest.approx(expected, abs=0.2)


def test_alpha_max_is_where_the_model_leaves_equal_chances():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 200)
    X = rng.normal(size=(600, 2)) + 2 * np.array([[1.0, 0], [-1, 1], [0, -1]])[y]
    ends = rng.permutation(600).reshape(-1, 2)
    problem = problem_of(X, AnswerGraph.from_answers(ends, y[ends[:, 0]] == y[ends[:, 1]]), 3)
    alpha = problem.alpha_max
    start = 0.01 * rng.normal(size=(3, 3))
    _, above = solve_classes(problem, [2 * alpha], [start], 1e-8, 500)[0]
    _, below = solve_classes(problem, [alpha / 2], [start], 1e-8, 500)[0]
    assert np.abs(above[:-1]).max() < 1e-2
    assert np.abs(below[:-1]).max() > 0.1
