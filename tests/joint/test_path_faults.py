"""Evidence, starts and penalty of the joint estimators, from their definitions."""

import numpy as np
import pytest
from scipy.special import expit

from sdulearn.joint.path import PairData, Summary
from sdulearn.pairs import read_pairs


def laid_out(n_pairs, n_unlabeled, d, prior=0.7, seed=0, shift=1.0):
    """Two Gaussian classes, +1 the larger; their means differ by ``2 * shift`` along the first column."""
    rng = np.random.default_rng(seed)
    n = 2 * n_pairs + n_unlabeled
    y = np.where(rng.random(n) < 0.7, 1, -1)
    X = rng.normal(size=(n, d))
    X[:, 0] += shift * y
    ends = y[: 2 * n_pairs].reshape(-1, 2)
    answers = np.where(ends[:, 0] == ends[:, 1], 1, -1) * np.arange(1, n_pairs + 1)
    codes = np.r_[np.repeat(answers, 2), np.zeros(n_unlabeled, dtype=int)]
    weight = np.ones(n)
    weight[: 2 * n_pairs] = np.repeat(rng.integers(1, 4, n_pairs), 2)
    return PairData.of(X, read_pairs(codes), weight, prior, 3.0)


@pytest.mark.parametrize(("n_pairs", "d"), [(30, 4), (5, 8)], ids=["more answers than columns", "fewer"])
def test_the_evidence_is_laplace_s(n_pairs, d):
    """Log-likelihood and prior at the solution, less half the log-determinant of one plus information over penalty."""
    data = laid_out(n_pairs, 40, d)
    rng = np.random.default_rng(1)
    w = rng.normal(size=d + 1)
    pen = rng.uniform(0.01, 0.1, d)
    weight = data.omega[:, 0] * data.n_effective

    def same(w):
        first, second = np.split(expit(data.A[: 2 * n_pairs] @ w[:-1] + w[-1]), 2)
        return first * second + (1 - first) * (1 - second)

    p = same(w)
    slopes = np.array([(same(w + step) - same(w - step)) / 2e-5 for step in 1e-5 * np.eye(d + 1)[:-1]])
    information = slopes * (weight / (p * (1 - p))) @ slopes.T
    n = data.n_effective
    likelihood = weight @ np.log(np.where(data.s[:, 0] > 0, p, 1 - p))
    ratio = np.eye(d) + information / (n * pen)
    expected = likelihood - n * pen @ w[:-1] ** 2 / 2 - np.log(np.linalg.det(ratio)) / 2
    assert np.log(np.linalg.det(ratio)) > 1
    assert data.log_evidence(w, pen) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("prior", [0.7, 0.3])
def test_starts_point_to_the_class_that_the_prior_calls_positive(prior):
    """The first column is larger in the larger class, which is +1 or -1 as the prior says."""
    data = laid_out(2000, 0, 3, prior)
    sign = 1 if prior > 0.5 else -1
    for start in data.summary.starts():
        coef = data.axes.V @ start[:-1]
        assert sign * coef[0] > 0.8 * np.linalg.norm(coef)
        assert start[-1] == pytest.approx(np.log(prior / (1 - prior)))
        assert np.sum(start[:-1] ** 2 * data.axes.variance) == pytest.approx(1)


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_the_penalty_falls_with_the_power_of_the_variance_and_has_no_unit(power):
    variance = np.array([0.2, 1.0, 7.0])

    def penalty(variance):
        return Summary(variance, np.zeros((4, 4)), np.zeros((4, 1)), None).penalty(0.3, power)

    # One constant, the mean of variance**power as seen by the rows.
    np.testing.assert_allclose(penalty(variance) * variance**power, 0.3 * np.average(variance**power, weights=variance))
    np.testing.assert_allclose(penalty(100 * variance), penalty(variance))
    np.testing.assert_allclose(penalty(np.full(3, 5.0)), 0.3)
