"""The slopes that trees descend: by finite differences, by enumeration, and inside two boosters."""

import pickle

import numpy as np
import pytest
from scipy.special import expit, softmax

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.boosting.objective import PointLoss, make_pull, pair_objective, pull_slopes
from sdulearn.errors import InputError
from tests.reference import enumerated

LOOSE = np.array([1, 1, -2, -2, 3, 3, -4, -4, 0, 0, 0])
# Points 0 to 5; a chain, a triangle with a label, a loose pair, one unlabeled point.
GRAPH = np.array(
    [[1, 0, 1, 0], [1, 1, 1, 0], [-2, 1, 2, 0], [-2, 2, 2, 0], [3, 3, 1, 1], [3, 4, 1, 0], [0, 5, 0, 0]]
)  # fmt: skip


def numerical_gradient(f, z, step=1e-6):
    gradient = np.empty_like(z)
    for place in np.ndindex(z.shape):
        up = z.copy()
        up[place] += step
        down = z.copy()
        down[place] -= step
        gradient[place] = (f(up) - f(down)) / (2 * step)
    return gradient


def probabilities(z):
    return expit(z) if z.ndim == 1 else softmax(z, axis=1)


@pytest.mark.parametrize("error_rate", [0.0, 0.1])
@pytest.mark.parametrize("shares", [[0.3, 0.7], [0.5, 0.3, 0.2]], ids=["two classes", "three"])
@pytest.mark.parametrize("y", [LOOSE, GRAPH], ids=["loose", "graph"])
def test_gradient_is_that_of_the_objective(y, shares, error_rate):
    codes = np.abs(y if y.ndim == 1 else y[:, 0])
    graph = AnswerGraph.from_y(y, np.random.default_rng(2).uniform(0.5, 2, 10)[codes])
    K = len(shares)
    loss = PointLoss(graph, K, AnswerModel.given(error_rate, graph))
    pull = make_pull(graph, shares, 3.0)
    points, share, _ = pull
    np.testing.assert_array_equal(points, graph.unlabeled)
    z = np.random.default_rng(3).normal(size=graph.n_points if K == 2 else (graph.n_points, K))

    def objective(z):
        p = probabilities(z[points])
        mean = share @ (np.column_stack([1 - p, p]) if K == 2 else p)
        # In units of the mean answer, as in the linear model, beside a sum over answers.
        return -loss.terms(z)[0].sum() + 3 * loss.total * np.dot(shares, np.log(shares / mean))

    gradient, curvature = loss.slopes(z, pull)
    np.testing.assert_allclose(gradient, numerical_gradient(objective, z), atol=1e-5)
    assert (curvature > 0).all()


def test_the_curvature_of_the_pull_is_exact_for_a_shift():
    """At the prior: there the first derivative vanishes, and with it the part that is left out."""
    graph = AnswerGraph.from_y(LOOSE)
    points, share, divergence = make_pull(graph, 0.7, 3.0)
    z = np.full(len(points), np.log(0.7 / 0.3))
    rise = [np.sum(pull_slopes(expit(z + shift), share, divergence)[0]) for shift in (-1e-4, 1e-4)]
    curvature = pull_slopes(expit(z), share, divergence)[1]
    assert np.sum(curvature) == pytest.approx((rise[1] - rise[0]) / 2e-4, rel=1e-5)


@pytest.mark.parametrize("unit", [0.01, 1, 7.3])
def test_integer_weights_are_repeated_pairs_by_the_mean_answer(unit):
    z = np.random.default_rng(5).normal(size=5)
    weight = unit * np.array([2.0, 2.0, 1.0, 1.0, 1.0])
    weighted, _ = pair_objective([1, 1, -2, -2, 0], sample_weight=weight, prior=0.7)(z)
    pull, _ = pair_objective([1, 1, -2, -2, 0], prior=0.7)(z)
    repeated, _ = pair_objective([1, 1, -2, -2, 3, 3])(z[[0, 1, 2, 3, 0, 1]])
    # Two answers that weigh 3 in all.
    np.testing.assert_allclose(weighted[:4], np.r_[repeated[:2] + repeated[4:], repeated[2:4]] * 2 / 3, rtol=1e-12)
    assert weighted[4] == pytest.approx(pull[4])


@pytest.mark.parametrize("error_rate", [0.0, 0.1])
def test_rows_of_weight_0_have_no_slope_and_change_none(error_rate):
    """The first row that shows a point, a label, an answer and a row in none: all as if they were not there."""
    y = np.vstack([[[0, 1, 0, 0], [0, 3, 0, 1]], GRAPH, [[-9, 0, 1, 0], [-9, 8, 1, 0], [0, 9, 0, 0], [0, 10, 0, 0]]])
    there = np.ones(len(y), dtype=bool)
    there[[0, 1, -4, -3, -2]] = False
    z = np.random.default_rng(0).normal(size=len(y))
    options = {"error_rate": error_rate, "prior": 0.7}
    # A booster that is pickled takes its objective with it.
    gradient, curvature = pickle.loads(pickle.dumps(pair_objective(y, sample_weight=there, **options)))(z)
    expected, expected_curvature = pair_objective(y[there], **options)(z[there])
    np.testing.assert_allclose(gradient[there], expected, rtol=1e-12)
    np.testing.assert_allclose(curvature[there], expected_curvature, rtol=1e-12)
    assert not gradient[~there].any()
    assert (curvature > 0).all()


def test_rows_of_one_point_share_its_slope_and_its_curvature():
    """Point 1 is on two rows, each with half of both; a component counts by its mean weight."""
    weight = np.array([3.0, 3.0, 1.0, 1.0, 0.5, 0.5, 1.0])
    scores = np.array([0.3, 1.0, 1.0, -2.0, 0.5, 0.1, 0.4])
    by_row, curvature = pair_objective(GRAPH, error_rate=0.1, sample_weight=weight)(scores)
    graph = AnswerGraph.from_y(GRAPH, weight)
    z = np.array([0.3, 1.0, -2.0, 0.5, 0.1, 0.4])
    by_point, of_point = PointLoss(graph, 2, AnswerModel.given(0.1, graph)).slopes(z)
    np.testing.assert_allclose(np.bincount(graph.row_point, weights=by_row), by_point)
    assert by_row[1] == by_row[2] == by_point[1] / 2
    assert curvature[1] == curvature[2] == of_point[1] / 2
    # Answers of weight 3 and 1 make one component, answer and label of weight 0.5 another; the mean answer weighs 1.5.
    p = expit(z)
    np.testing.assert_allclose(of_point, p * (1 - p) * np.array([2, 2, 2, 0.5, 0.5, 0]) / 1.5, atol=1e-9)


def test_a_constant_score_is_refused():
    with pytest.raises(InputError, match="init_score"):
        pair_objective(LOOSE)(np.zeros(len(LOOSE)))
    # Labels break the symmetry.
    gradient, _ = pair_objective(GRAPH, error_rate=0.1)(np.zeros(len(GRAPH)))
    assert np.abs(gradient).max() > 0
    with pytest.raises(InputError, match="3 rows"):
        pair_objective(LOOSE)(np.zeros(3))


def test_three_classes_in_both_boosters():
    lightgbm = pytest.importorskip("lightgbm")
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    label = 1 + (X[:, 0] > 0) + ((X[:, 0] > 0) & (X[:, 1] > 0))
    y = np.column_stack([np.zeros(90), np.arange(90), np.zeros(90), label]).astype(int)
    objective = pair_objective(y, n_classes=3)
    trees = lightgbm.train(
        {"objective": objective, "num_class": 3, "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 2},
        lightgbm.Dataset(X),
        num_boost_round=20,
    )
    assert np.mean(trees.predict(X).argmax(axis=1) + 1 == label) > 0.95
    parameters = {"num_class": 3, "nthread": 1, "disable_default_eval_metric": True}
    other = xgboost.train(parameters, xgboost.DMatrix(X, label=label - 1), num_boost_round=20, obj=objective)
    found = other.predict(xgboost.DMatrix(X), output_margin=True)
    assert np.mean(found.argmax(axis=1) + 1 == label) > 0.95


@pytest.mark.parametrize("y", [LOOSE, GRAPH], ids=["loose", "graph"])
@pytest.mark.parametrize("error_rate", [0.0, 0.1])
def test_value_is_the_sum_over_all_classes(y, error_rate):
    graph = AnswerGraph.from_y(y)
    z = np.random.default_rng(1).normal(size=graph.n_points)
    log_p = np.log(np.column_stack([expit(-z), expit(z)]))
    expected, _, _ = enumerated(graph, log_p, np.full(graph.n_answers, error_rate))
    assert PointLoss(graph, 2, AnswerModel.given(error_rate, graph)).terms(z)[0].sum() == pytest.approx(
        expected, abs=1e-9
    )
