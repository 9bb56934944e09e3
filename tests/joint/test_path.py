"""Layout, starts, penalties, the path and the names of the classes, from their definitions."""

import warnings

import numpy as np
import pytest

from sdulearn import PairLogisticRegression, PriorEstimate
from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.errors import OrientationWarning
from sdulearn.joint.data import Moments, TrainingData, axis_penalty
from sdulearn.joint.likelihood import FoldLikelihood, TwoClassLikelihood
from sdulearn.joint.path import PointProblem, class_sign, fit_folds


def laid_out(n_pairs, n_unlabeled, d, prior=0.7):
    """Two Gaussian classes, +1 the larger; their means differ by 2 along the first column."""
    rng = np.random.default_rng(0)
    n = 2 * n_pairs + n_unlabeled
    y = np.where(rng.random(n) < 0.7, 1, -1)
    X = rng.normal(size=(n, d))
    X[:, 0] += y
    ends = y[: 2 * n_pairs].reshape(-1, 2)
    answers = np.where(ends[:, 0] == ends[:, 1], 1, -1) * np.arange(1, n_pairs + 1)
    codes = np.r_[np.repeat(answers, 2), np.zeros(n_unlabeled, dtype=int)]
    weight = np.ones(n)
    weight[: 2 * n_pairs] = np.repeat(rng.integers(1, 4, n_pairs), 2)
    data = TrainingData(X, AnswerGraph.from_y(codes, weight), codes, weight, pairs_first=True)
    likelihood = TwoClassLikelihood(data.graph, AnswerModel.given(0.0, data.graph), data.weight)
    return PointProblem(data, likelihood, prior, 3.0)


@pytest.mark.parametrize("prior", [0.7, 0.3])
def test_starts_point_to_the_class_that_the_prior_calls_positive(prior):
    """The first column is larger in the larger class, which is +1 or -1 as the prior says."""
    problem = laid_out(2000, 0, 3, prior)
    sign = 1 if prior > 0.5 else -1
    for start in problem.moments.starts():
        coef = problem.axes.V @ start[:-1]
        assert sign * coef[0] > 0.8 * np.linalg.norm(coef)
        assert start[-1] == pytest.approx(np.log(prior / (1 - prior)))
        assert np.sum(start[:-1] ** 2 * problem.axes.variance) == pytest.approx(1)


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_the_penalty_falls_with_the_power_of_the_variance_and_has_no_unit(power):
    variance = np.array([0.2, 1.0, 7.0])
    penalty = axis_penalty(variance, 0.3, power)
    # One constant, the mean of variance**power as seen by the rows.
    np.testing.assert_allclose(penalty * variance**power, 0.3 * np.average(variance**power, weights=variance))
    np.testing.assert_allclose(axis_penalty(100 * variance, 0.3, power), penalty)
    np.testing.assert_allclose(axis_penalty(np.full(3, 5.0), 0.3, power), 0.3)


def test_moments_are_those_of_all_pairs_of_points_of_a_component():
    """Loose pairs, a chain whose sides are known, and labelled components, which are one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(11, 3))
    graph = AnswerGraph.from_answers(
        [(0, 1), (2, 3), (3, 4), (5, 6)], [-1, 1, -1, 1], labels=[0, 0, 0, 0, 0, 0, 1, -1, 0, 0, 0], n_points=11
    )
    codes = np.r_[np.ones(8, dtype=int), np.zeros(3, dtype=int)]
    data = TrainingData(X, graph, codes, np.ones(11), pairs_first=True)
    likelihood = TwoClassLikelihood(data.graph, AnswerModel.given(0.0, data.graph), data.weight)
    joint, ends, named = likelihood.moments(data.known)
    place = dict(zip(data.graph.points.tolist(), data.known, strict=True))
    expected = np.zeros((4, 4))
    total = np.zeros(4)
    for members, sides in (((0, 1), (1, -1)), ((2, 3, 4), (1, 1, -1)), ((5, 6, 7), (1, 1, -1))):
        rows = np.array([np.append(place[point], 1.0) for point in members])
        for i in range(len(members)):
            total += rows[i] * likelihood.omega[0]
            for j in range(len(members)):
                if i != j:
                    weight = likelihood.omega[0] / (len(members) - 1)
                    expected += weight * sides[i] * sides[j] * np.outer(rows[i], rows[j])
    np.testing.assert_allclose(joint, expected, atol=1e-12)
    np.testing.assert_allclose(ends[:, 0], total, atol=1e-12)
    labelled = np.array([place[point] for point in (5, 6, 7)])
    np.testing.assert_allclose(named, np.array([1, 1, -1]) @ (labelled - labelled.mean(axis=0)), atol=1e-12)
    moments = Moments(np.ones(3), joint, ends, None, named)
    assert moments.ends[-1, 0] == pytest.approx(2)
    # One start more, along the labels.
    assert len(moments.starts()) == 2
    # A fold without the label knows no direction, and no relative side of what it left out.
    known = np.ones((8, 1), dtype=bool)
    known[np.isin(data.graph.points, (1, 3, 6, 7)), 0] = False
    joint, _, named = FoldLikelihood(likelihood, known).folds[0].moments(data.known)
    assert named is None
    np.testing.assert_allclose(joint, 0, atol=1e-12)


def test_points_and_rows():
    """A point is the mean of its rows by weight, loose pairs come first, and hubs are known to every fold."""
    X = np.arange(20.0).reshape(10, 2) ** 2
    y = np.array([[1, 5], [1, 6], [-2, 1], [-2, 2], [3, 2], [3, 3], [0, 9], [0, 5], [-4, 8], [-4, 7]])
    weight = np.array([1.0, 1, 1, 1, 1, 1, 2, 3, 1, 1])
    graph = AnswerGraph.from_y(y, weight)
    data = TrainingData(X, graph, y[:, 0], weight, pairs_first=True)
    assert data.graph.points.tolist() == [5, 7, 6, 8, 1, 2, 3]
    assert data.row_place.tolist() == [0, 2, 4, 5, 5, 6, -1, 0, 3, 1]
    five = np.append((X[0] + 3 * X[7]) / 4, 1.0)
    V = np.vstack([data.axes.V, -(data.axes.mean + data.axes.design.shift) @ data.axes.V])
    np.testing.assert_allclose(data.known[0], five @ V)
    np.testing.assert_allclose(data.unlabeled[1], np.append(X[6], 1.0) @ V)
    # The unlabeled rows show points 5 and 9.
    np.testing.assert_allclose(data.share, [3 / 5, 2 / 5])
    known = data.known_to_folds([(np.array([0, 1, 2, 3]), np.arange(4, 10)), (np.arange(4, 10), np.arange(4))])
    assert known.T.tolist() == [
        [True, False, True, False, True, True, False],
        [True, True, False, True, False, True, True],
    ]


@pytest.mark.parametrize("design", ["loose", "chain", "labels"])
@pytest.mark.parametrize("prior", [None, 0.7])
def test_empty_models(design, prior):
    """One rule: logits that hardly vary; and, without prior or label, the largest penalty or more."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(40) < 0.7, 1, -1)
    X = rng.normal(size=(40, 2)) + y[:, None]
    step = 2 if design == "loose" else 1
    ends = np.column_stack([np.arange(0, 39, step), np.arange(1, 40, step)])
    labels = np.where(np.arange(40) < 2, y, 0) if design == "labels" else None
    graph = AnswerGraph.from_answers(ends, y[ends[:, 0]] == y[ends[:, 1]], labels=labels)
    data = TrainingData(X, graph, np.ones(40, dtype=int), np.ones(40), pairs_first=True)
    likelihood = TwoClassLikelihood(data.graph, AnswerModel.given(0.0, data.graph), data.weight)
    problem = PointProblem(data, likelihood, prior, 3.0)
    largest = problem.moments.largest_alpha(1.0)
    alphas = largest * np.array([[2.0], [1.0], [0.5], [0.5]])
    w = np.array([1.0, 1.0, 0.0]) / np.sqrt(problem.moments.variance.sum())
    path = np.array([1.0, 1.0, 1.0, 0.9e-3])[:, None, None] * w[:, None]
    strong = prior is None and design != "labels"
    assert problem.empty(alphas, [1.0], path)[:, 0].tolist() == [strong, strong, False, True]


def test_folds_of_loose_pairs_are_fits_without_their_answers():
    problem = laid_out(60, 30, 3)
    rng = np.random.default_rng(0)
    fold = np.tile(rng.integers(0, 3, 60), 2)
    known = fold[:, None] != np.arange(3)
    alphas = problem.moments.largest_alpha(1) * np.array([0.3, 0.03])
    scores, W = fit_folds(problem, alphas, 1.0, known)
    assert scores.shape == (3, 2)
    Z = np.tensordot(problem.data.known, W[:-1], 1) + W[-1]
    first, second = np.split(1 / (1 + np.exp(-Z)), 2)
    same = first * second + (1 - first) * (1 - second)
    chance = np.where((problem.data.graph.same > 0)[:, None, None], same, 1 - same)
    for k in range(3):
        out = fold[:60] == k
        expected = np.average(np.log(chance[out, :, k]), axis=0, weights=problem.data.weight[out])
        np.testing.assert_allclose(scores[k], expected)
    # What a fold left out does not change it.
    turned = laid_out(60, 30, 3)
    turned.data.graph.same[fold[:60] == 0] *= -1
    model = problem.likelihood.answer_model
    other = PointProblem(turned.data, TwoClassLikelihood(turned.data.graph, model, turned.data.weight), 0.7, 3.0)
    _, again = fit_folds(other, alphas, 1.0, known)
    np.testing.assert_allclose(again[:, :, 0], W[:, :, 0], atol=1e-4)


@pytest.mark.parametrize("n_rows", [100, 2500])
@pytest.mark.parametrize("errors", [-2.1, -1.9, 0.1, 1.9, 2.1])
def test_names_are_uncertain_within_two_standard_errors(n_rows, errors):
    """A share of n rows has the standard error ``sqrt(1/4 / n)`` at one half."""
    model = PairLogisticRegression()
    prior = PriorEstimate(0.8, 0.7, 0.9, True, 60, 30, 0.95)
    share = 0.5 + errors * (0.25 / n_rows) ** 0.5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sign = class_sign(model, prior, share, 1 / n_rows)
    assert [one.category for one in caught] == [OrientationWarning] * (abs(errors) < 2)
    assert sign == (1 if errors > 0 else -1)
