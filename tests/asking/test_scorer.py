"""The model within."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression

from sdulearn.asking.points import Points
from sdulearn.asking.scorer import Scorer, Settings, choose_settings, fit_softmax


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.eye(3)[y], y


def test_the_gradient_vanishes(iris):
    X, Q, _ = iris
    W = fit_softmax(X, Q, 0.5, tol=1e-14)
    z = np.column_stack([X, np.ones(len(X))]) @ W
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    gradient = np.column_stack([X, np.ones(len(X))]).T @ (p - Q)
    ridge = np.r_[np.full(4, 0.5), 1e-3][:, None]
    assert np.abs(gradient + ridge * W).max() < 1e-3


def test_it_is_softmax_regression(iris):
    X, Q, y = iris
    # Centred, so that the intercept and its tiny penalty hardly matter.
    X = X - X.mean(axis=0)
    W = fit_softmax(X, Q, 1.0, tol=1e-14)
    reference = LogisticRegression(C=1.0, tol=1e-8, max_iter=5000).fit(X, y)
    assert (np.argmax(X @ W[:-1] + W[-1], axis=1) == reference.predict(X)).all()
    centred = W[:-1] - W[:-1].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(centred.T, reference.coef_, atol=5e-3)


def test_soft_classes_are_weighted_rows(iris):
    """A point that is 0.3 of one class and 0.7 of another is two rows of these weights."""
    X, Q, _ = iris
    soft = 0.7 * Q + 0.3 * Q[:, [1, 2, 0]]
    twice = fit_softmax(np.vstack([X, X]), np.vstack([0.7 * Q, 0.3 * Q[:, [1, 2, 0]]]), 1.0, tol=1e-13)
    np.testing.assert_allclose(fit_softmax(X, soft, 1.0, tol=1e-13), twice, atol=1e-3)


def test_a_start_nearby_leads_to_the_same_solution(iris):
    X, Q, _ = iris
    one = fit_softmax(X, Q, 1.0, tol=1e-13)
    other = fit_softmax(X, Q, 1.0, start=fit_softmax(X, Q, 30.0), tol=1e-13)
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_stretched_axes_are_a_penalty_by_the_covariance():
    """Ridge on Z C^(k/2) is w' C^-k w on Z."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    points = Points.from_rows(X, rng)
    stretch = points.stretch(1.0)
    Z = points.candidate_coordinates
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.diag(points.variances), atol=1e-8)
    np.testing.assert_allclose(stretch**2 / points.variances, (stretch**2 / points.variances)[0])
    for power in (0.0, 1.0, 2.0):
        assert np.mean(points.variances * points.stretch(power) ** 2) == pytest.approx(1)


def test_noise_gets_a_strong_penalty():
    X, y = make_classification(60, 20, n_informative=2, flip_y=0, class_sep=3, random_state=0)
    rng = np.random.default_rng(0)
    points = Points.from_rows(X, rng)
    known = np.arange(60)
    noise = choose_settings(points, known, np.eye(2)[rng.integers(0, 2, 60)])
    clear = choose_settings(points, known, np.eye(2)[y])
    assert noise.penalty > clear.penalty


def test_scores_depend_on_the_points_alone():
    X, y = make_classification(100, 5, random_state=0)
    points = Points.from_rows(X, np.random.default_rng(0))
    scorer = Scorer.fit(points, np.arange(50), np.eye(2)[y[:50]], Settings())
    order = np.argsort(points.candidates)
    np.testing.assert_allclose(scorer.of_candidates[order], scorer.log_probabilities(np.sort(points.candidates)))
    np.testing.assert_allclose(np.exp(scorer.of_candidates).sum(axis=1), 1)
