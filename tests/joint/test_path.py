"""Penalties, moments, empty models and the names of the classes, from their definitions."""

import warnings

import numpy as np
import pytest

from sdulearn import PairLogisticRegression, PriorEstimate
from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.errors import OrientationWarning
from sdulearn.joint.data import TrainingData, axis_penalties
from sdulearn.joint.likelihood import TwoClassLikelihood
from sdulearn.joint.path import PointProblem, class_sign


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_the_penalty_falls_with_the_power_of_the_variance_and_has_no_unit(power):
    variance = np.array([0.2, 1.0, 7.0])
    penalty, twice = axis_penalties(variance, [0.3, 0.6], power).T
    np.testing.assert_allclose(twice, 2 * penalty)
    # One constant, the mean of variance**power as seen by the rows.
    np.testing.assert_allclose(penalty * variance**power, 0.3 * np.average(variance**power, weights=variance))
    np.testing.assert_allclose(axis_penalties(100 * variance, [0.3], [power])[:, 0], penalty)
    np.testing.assert_allclose(axis_penalties(np.full(3, 5.0), [0.3], power), 0.3)


def test_moments_are_those_of_all_pairs_of_points_of_a_component():
    """Loose pairs, a chain whose sides are known, and labelled components, which are one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(11, 3))
    graph = AnswerGraph.from_answers(
        [(0, 1), (2, 3), (3, 4), (5, 6)], [-1, 1, -1, 1], labels=[0, 0, 0, 0, 0, 0, 1, -1, 0, 0, 0], n_points=11
    )
    codes = np.r_[np.ones(8, dtype=int), np.zeros(3, dtype=int)]
    data = TrainingData(X, graph, codes, np.ones(11))
    likelihood = TwoClassLikelihood(data.graph, AnswerModel.given(0.0, data.graph), data.weight)
    moments = likelihood.moments(data.known, np.ones(3), None)
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
    # In a unit in which the answers weigh two.
    np.testing.assert_allclose(moments.joint, 2 * expected[:-1, :-1] / total[-1], atol=1e-12)
    np.testing.assert_allclose(moments.ends, 2 * total[:-1] / total[-1], atol=1e-12)
    labelled = np.array([place[point] for point in (5, 6, 7)])
    expected = np.array([1, 1, -1]) @ (labelled - labelled.mean(axis=0))
    np.testing.assert_allclose(moments.named, expected, atol=1e-12)
    # One start more, along the labels.
    assert len(moments.starts()) == 2
    # A fold without the label knows no direction, and no relative side of what it left out.
    shown = ~np.isin(data.graph.points, (1, 3, 6, 7))
    left = likelihood.restricted(shown).moments(data.known, np.ones(3), None)
    assert left.named is None
    np.testing.assert_allclose(left.joint, 0, atol=1e-12)


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
    data = TrainingData(X, graph, np.ones(40, dtype=int), np.ones(40))
    likelihood = TwoClassLikelihood(data.graph, AnswerModel.given(0.0, data.graph), data.weight)
    problem = PointProblem(data, likelihood, prior, 3.0)
    largest = problem.moments.alpha_max(1.0)
    alphas = largest * np.array([[2.0], [1.0], [0.5], [0.5]])
    w = np.array([1.0, 1.0, 0.0]) / np.sqrt(problem.moments.variance.sum())
    path = np.array([1.0, 1.0, 1.0, 0.9e-3])[:, None, None] * w[:, None]
    strong = prior is None and design != "labels"
    assert problem.empty(alphas, [1.0], path)[:, 0].tolist() == [strong, strong, False, True]


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
