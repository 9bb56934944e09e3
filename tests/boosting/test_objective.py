"""The slopes that trees descend: by finite differences, by enumeration, and inside two boosters."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from sdulearn.answers import AnswerGraph
from sdulearn.boosting import pair_objective
from sdulearn.errors import InputError
from tests.reference import enumerated

# Points 0 to 8: a triangle, a labelled pair, a loose one, two unlabeled points. Points 1 and 8 are on
# several rows.
GRAPH = np.array(
    [
        [1, 0, 1, 0], [1, 1, 1, 0], [-2, 1, 2, 0], [-2, 2, 2, 0], [-3, 0, 1, 0], [-3, 2, 1, 0], [4, 3, 1, 1],
        [4, 4, 1, 0], [-5, 5, 0, 0], [-5, 6, 0, 0], [0, 7, 0, 0], [0, 8, 0, 0], [0, 8, 0, 0],
    ]
)  # fmt: skip
WEIGHT = np.array([1.0, 1.0, 3.0, 3.0, 2.0, 2.0, 0.5, 0.5, 2.0, 2.0, 1.0, 2.0, 4.0])


def negative_log_likelihood(scores, y, weight, error_rate, shares, strength):
    """The objective by enumeration of the classes of each component, which counts by its mean weight, and the pull."""
    graph = AnswerGraph.from_y(y, weight)
    z = np.column_stack([0 * scores, scores]) if scores.ndim == 1 else scores
    total = np.bincount(graph.row_point, graph.row_weight)
    by_class = [np.bincount(graph.row_point, graph.row_weight * column) / total for column in z.T]
    log_p = log_softmax(np.column_stack(by_class), axis=1)
    value = n = 0.0
    for component in range(graph.n_components):
        part = graph.subgraph(np.flatnonzero(graph.component == component))
        known = np.append(part.weights, part.point_weights[part.labels != 0])
        if len(known):
            part = replace(part, weights=part.weights / known.mean())
            errors = np.full(part.n_answers, error_rate)
            value -= known.mean() * enumerated(part, log_p[graph.component == component], errors)[0]
            # No point here is in answers that follow from others, but for the third side of the triangle.
            n += known.mean() * (part.n_points - 1 + part.labels.any())
    if strength:
        share = graph.point_weights[graph.unlabeled]
        mean = share / share.sum() @ np.exp(log_p[graph.unlabeled])
        value += n * strength * np.dot(shares, np.log(shares / mean))
    return value


def numerical_gradient(f, z):
    steps = 1e-6 * np.eye(z.size).reshape(-1, *z.shape)
    return np.reshape([(f(z + step) - f(z - step)) / 2e-6 for step in steps], z.shape)


@pytest.mark.parametrize("strength", [0.0, 3.0])
@pytest.mark.parametrize("error_rate", [0.0, 0.1])
@pytest.mark.parametrize("shares", [[0.3, 0.7], [0.5, 0.3, 0.2]], ids=["two classes", "three"])
def test_gradient_is_that_of_the_objective(shares, error_rate, strength):
    """Three classes without the third side of the triangle: around a cycle their likelihood is a composite one."""
    K = len(shares)
    there = np.abs(GRAPH[:, 0]) != 3
    y, weight = (GRAPH, WEIGHT) if K == 2 else (GRAPH[there], WEIGHT[there])
    z = np.random.default_rng(3).normal(size=len(y) if K == 2 else (len(y), K))
    prior = shares[1] if K == 2 else shares
    options = {"n_classes": K, "error_rate": error_rate, "prior": prior, "prior_strength": strength}
    gradient, curvature = pair_objective(y, sample_weight=weight, **options)(z)
    expected = numerical_gradient(lambda z: negative_log_likelihood(z, y, weight, error_rate, shares, strength), z)
    np.testing.assert_allclose(gradient, expected, atol=1e-5)
    assert (curvature > 0).all()


def test_the_curvature_of_the_pull_is_exact_for_a_shift():
    """At the prior: there the first derivative vanishes, and with it the part that is left out."""
    objective = pair_objective([1, 1, -2, -2, 0, 0, 0], prior=0.7)
    z = np.append([1.0, 2.0, -1.0, 0.5], np.full(3, np.log(0.7 / 0.3)))
    shift = 1e-4 * (np.arange(7) > 3)
    rise = [objective(z + sign * shift)[0][4:].sum() for sign in (-1, 1)]
    assert objective(z)[1][4:].sum() == pytest.approx((rise[1] - rise[0]) / 2e-4, rel=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("unit", [0.01, 1, 7.3])
def test_integer_weights_are_repeated_pairs_by_the_mean_answer(unit, n_classes):
    rng = np.random.default_rng(5)
    y = np.array([1, 1, -2, -2, 0])
    z = rng.normal(size=5 if n_classes == 2 else (5, n_classes))
    prior = 0.7 if n_classes == 2 else [0.5, 0.3, 0.2]
    options = {"n_classes": n_classes, "prior": prior, "error_rate": 0.1}
    weighted, curvature = pair_objective(y, sample_weight=unit * np.array([2.0, 2.0, 1.0, 1.0, 1.0]), **options)(z)
    plain, of_plain = pair_objective(y, **options)(z)
    repeated = [
        slope[[0, 1, 2, 3]] for slope in pair_objective([1, 1, -2, -2, 3, 3, 0], **options)(z[[0, 1, 2, 3, 0, 1, 4]])
    ]
    # Two answers that weigh 3 in all.
    for slope, repeat in zip((weighted, curvature), repeated, strict=True):
        np.testing.assert_allclose(slope[:2], 2 * repeat[:2] * 2 / 3, rtol=1e-12)
        np.testing.assert_allclose(slope[2:4], repeat[2:4] * 2 / 3, rtol=1e-12)
    np.testing.assert_allclose(weighted[4], plain[4])
    np.testing.assert_allclose(curvature[4], of_plain[4])


@pytest.mark.parametrize("error_rate", [0.0, 0.1])
def test_rows_of_weight_0_have_no_slope_and_change_none(error_rate):
    """A row that shows a point, a label, an answer and a row in none: all as if they were not there."""
    y = np.vstack([[[0, 1, 0, 0], [0, 3, 0, 1]], GRAPH, [[-9, 0, 1, 0], [-9, 18, 1, 0], [0, 9, 0, 0], [0, 10, 0, 0]]])
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


def test_a_point_has_the_mean_score_of_its_rows_which_share_its_slopes():
    y = np.array([[1, 0], [1, 1], [-2, 1], [-2, 2], [0, 3]])
    z = np.array([0.3, 1.5, 0.5, -2.0, 0.1])
    level = np.array([0.3, 1.0, 1.0, -2.0, 0.1])
    for slopes, expected in zip(pair_objective(y)(z), pair_objective(y)(level), strict=True):
        np.testing.assert_allclose(slopes, expected)
        assert slopes[1] == slopes[2]
    p = expit(level)
    np.testing.assert_allclose(pair_objective(y)(z)[1], p * (1 - p) * [1, 0.5, 0.5, 1, 0], atol=1e-9)


def test_what_cannot_be_descended_is_refused():
    loose = [1, 1, -2, -2, 0]
    with pytest.raises(InputError, match="init_score"):
        pair_objective(loose)(np.zeros(5))
    # Labels break the symmetry.
    gradient, _ = pair_objective(GRAPH, error_rate=0.1)(np.zeros(len(GRAPH)))
    assert np.abs(gradient).max() > 0
    with pytest.raises(InputError, match="3 rows"):
        pair_objective(loose)(np.zeros(3))
    with pytest.raises(InputError, match="`prior`"):
        pair_objective(loose, n_classes=3, prior=0.7)


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
    scores = other.predict(xgboost.DMatrix(X), output_margin=True)
    assert np.mean(scores.argmax(axis=1) + 1 == label) > 0.95
