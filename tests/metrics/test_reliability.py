"""Reliability tables: by hand, and of classifiers that are calibrated by construction."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sdulearn import PairLogisticRegression
from sdulearn.errors import InputError
from sdulearn.metrics import calibration, pair_calibration, pair_log_likelihood


def test_by_hand():
    found = calibration([0.05, 0.15, 0.15, 1.0], [False, True, False, True])
    np.testing.assert_allclose(found.predicted, [0.05, 0.15, 1.0])
    np.testing.assert_allclose(found.observed, [0, 0.5, 1])
    assert found.count.tolist() == [1, 2, 1]
    assert found.error == pytest.approx((0.05 + 2 * 0.35 + 0) / 4)


def test_answers_of_true_probabilities_are_calibrated():
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 0.3, size=40_000)
    y = np.where(rng.random(40_000) < p, 1, -1)
    codes = np.repeat(np.arange(1, 20_001) * y[::2] * y[1::2], 2)
    probability = np.column_stack([1 - p, p])
    assert pair_calibration(probability, codes).error < 0.015
    sure = np.where(p > 0.5, 1.0, 0.0)
    assert pair_calibration(np.column_stack([1 - sure, sure]), codes).error > 0.1
    # Which class is which answers do not say.
    mirrored = pair_calibration(probability[:, ::-1], codes)
    assert mirrored.error == pytest.approx(pair_calibration(probability, codes).error)
    # Ten bins, of the chance that both ends are of one class.
    same = p[::2] * p[1::2] + (1 - p[::2]) * (1 - p[1::2])
    assert len(mirrored.count) == 10
    np.testing.assert_allclose(mirrored.count, np.histogram(same, 10, (0, 1))[0], atol=1)
    np.testing.assert_array_equal(calibration(same, codes[::2], n_bins=10).count, calibration(same, codes[::2]).count)


def test_what_is_no_probability_is_refused():
    for probability, event in (([1.5], [1]), ([0.5, 0.5], [1]), ([], [])):
        with pytest.raises(InputError):
            calibration(probability, event)
    not_of_sum_1 = ([[0.2, 0.2]] * 2, [[1.0]] * 2, [[2.0, -1.0]] * 2, [[np.nan, 0.5]] * 2)
    for probability in ([0.1, 0.2], [[0.5, 0.5]], [[0.5, 0.5]] * 3, *not_of_sum_1):
        with pytest.raises(InputError, match="predict_proba"):
            pair_calibration(probability, [1, 1])


def test_the_likelihood_of_answers_allows_for_errors():
    """An answer that is wrong with probability e: (1 - e) p + e (1 - p)."""
    rng = np.random.default_rng(2)
    X = rng.normal(0.7, size=(80, 2))
    codes = np.repeat(np.arange(1, 41) * np.where(X[::2, 0] * X[1::2, 0] > 0, 1, -1), 2)
    model = PairLogisticRegression(error_rate=0.2).fit(X, codes)
    p = model.predict_proba(X)
    same = (p[::2] * p[1::2]).sum(axis=1)
    right = np.where(codes[::2] > 0, same, 1 - same)
    expected = np.mean(np.log(0.8 * right + 0.2 * (1 - right)))
    assert pair_log_likelihood(model, X, codes) == pytest.approx(expected)
    # Fault C3: also at the end of a pipeline.
    steps = make_pipeline(FunctionTransformer(), model)
    assert pair_log_likelihood(steps, X, codes) == pytest.approx(expected)
