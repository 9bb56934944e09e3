import numpy as np
import pytest
from scipy import sparse

from sdulearn.workflow.training import drawn_rows, fitted_scaler, usable_scale


@pytest.mark.parametrize("mean", [0.0, 1.0, 1e6, -1e6])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray])
def test_a_column_that_varies_is_standardised_whatever_its_mean(mean, make):
    x = np.random.default_rng(0).normal(size=(1000, 1))
    X = make(np.column_stack([mean + x, mean + 1e-2 * x]))
    scaler = fitted_scaler(X)
    Z = scaler.transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e6 + 0.1, -7.7, 1e-250])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_a_constant_column_is_not_blown_up_to_its_rounding(value, make):
    """The mean of 999 equal numbers is not that number to the last digit, so their deviation is not zero."""
    scaler = fitted_scaler(make(np.full((999, 2), value)))
    if make is np.asarray:
        np.testing.assert_array_equal(scaler.scale, 1)
    # A deviation of nothing but rounding, as from sums.
    rounding = np.abs(value) * 1e-13 * np.ones(2)
    np.testing.assert_array_equal(usable_scale(np.full(2, value), rounding), 1)


def test_rows_are_drawn_once_each_in_order_and_all_alike():
    times = np.zeros(50)
    for seed in range(400):
        rows = drawn_rows(50, 20, seed)
        assert len(rows) == 20
        assert (np.diff(rows) > 0).all()
        times[rows] += 1
    # Binomial with mean 160 and standard deviation 9.8.
    assert times.min() > 110
    assert times.max() < 210
    np.testing.assert_array_equal(drawn_rows(50, 50), np.arange(50))
    np.testing.assert_array_equal(drawn_rows(50, 51), np.arange(50))
    assert len(drawn_rows(50, 49)) == 49
