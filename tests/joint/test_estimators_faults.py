import warnings

import numpy as np
import pytest

from sdulearn import PairKFold, PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.errors import SdulearnWarning


def test_held_out_answers_count_by_their_weight(waveform):
    """A fold's score is the weighted mean log-probability of its answers by a fit on the other folds."""
    rows, codes = waveform
    rng = np.random.default_rng(0)
    weight = np.ones(len(codes))
    ends = np.flatnonzero(codes)
    weight[ends] = rng.choice([1.0, 20.0], np.abs(codes).max() + 1)[np.abs(codes[ends])]
    options = {"prior": 0.7, "prior_strength": 0}
    cv = PairKFold(3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SdulearnWarning)
        model = PairLogisticRegressionCV([0.5], covariance_powers=[0], cv=cv, **options).fit(rows, codes, weight)
        for k, (train, test) in enumerate(PairKFold(3, random_state=0).split(rows, codes)):
            share = weight[train][codes[train] != 0].sum() / weight[ends].sum()
            one = PairLogisticRegression(0.5 / share, covariance_power=0, **options)
            p = one.fit(rows[train], codes[train], weight[train]).predict_proba(rows[test])[:, 1]
            total = 0.0
            weights = 0.0
            for code in np.unique(codes[test][codes[test] != 0]):
                first, second = np.flatnonzero(codes[test] == code)
                same = p[first] * p[second] + (1 - p[first]) * (1 - p[second])
                total += weight[test][first] * np.log(same if code > 0 else 1 - same)
                weights += weight[test][first]
            assert model.cv_results_[f"split{k}_test_score"][0] == pytest.approx(total / weights, abs=2e-3)


def objective_of(rows, codes, alpha, prior):
    """The objective written out: mean log-loss of the answers, ridge, and the distance of the mean prediction."""

    def J(v):
        z = rows @ v[:-1] + v[-1]
        p = 1 / (1 + np.exp(-z))
        losses = []
        for code in np.unique(codes[codes != 0]):
            first, second = np.flatnonzero(codes == code)
            same = p[first] * p[second] + (1 - p[first]) * (1 - p[second])
            losses.append(-np.log(same if code > 0 else 1 - same))
        value = np.mean(losses) + alpha / 2 * v[:-1] @ v[:-1]
        if (codes == 0).any():
            m = p[codes == 0].mean()
            value += 3 * (prior * np.log(prior / m) + (1 - prior) * np.log((1 - prior) / (1 - m)))
        return value

    return J


@pytest.mark.parametrize("kept", ["S and U", "D and U", "S and D"])
def test_without_one_source_the_solution_is_stationary(waveform, kept):
    rows, codes = waveform
    keep = {"S and U": codes >= 0, "D and U": codes <= 0, "S and D": codes != 0}[kept]
    rows, codes = rows[keep][:, :6], codes[keep]
    model = PairLogisticRegression(0.05, covariance_power=0, prior=0.7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SdulearnWarning)
        model.fit(rows, codes)
    J = objective_of(rows, codes, 0.05, 0.7)
    v = np.r_[model.coef_[0], model.intercept_]
    assert J(v) == pytest.approx(model.objective_, abs=1e-9)
    steps = 1e-5 * np.eye(7)
    gradient = [(J(v + step) - J(v - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, 0, atol=1e-5)
    assert all(J(v + 1e3 * sign * step) > J(v) for step in steps for sign in (-1, 1))
