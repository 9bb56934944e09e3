import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.pairs import read_pairs
from sdulearn.prior import similar_share


def test_waveform_is_breiman_s():
    X, y = make_waveform(60_000, random_state=0)
    assert X.shape == (60_000, 21)
    assert np.mean(y == 1) == pytest.approx(1 / 3, abs=0.01)
    # +1 mixes the waves around t = 7 and t = 15: mean 6 / 2 at both peaks, and noise of variance 1.
    mean = X[y == 1].mean(axis=0)
    assert mean[6] == pytest.approx(0.5 * 6, abs=0.05)
    assert mean[10] == pytest.approx(0.5 * 2 + 0.5 * 2, abs=0.05)
    assert mean[14] == pytest.approx(0.5 * 6, abs=0.05)
    assert X[y == 1][:, 0].var() == pytest.approx(1, abs=0.03)
    with pytest.raises(ValueError, match="1 or more"):
        make_waveform(0)


@pytest.mark.parametrize("prior", [0.3, 0.7])
def test_exact_draws_keep_every_ratio_and_no_row_twice(prior):
    labels = np.repeat([1, -1], 2000)
    X = np.column_stack([np.arange(4000), labels])
    rows, codes, X_test, y_test = sample_sdu(
        X, labels, n_pairs=100, n_unlabeled=200, prior=prior, n_test=300, random_state=0
    )
    pairs = read_pairs(codes)
    y = rows[:, 1]
    ends = y[pairs.ends]
    assert pairs.similar.sum() == round(100 * similar_share(prior))
    assert ((ends[:, 0] == ends[:, 1]) == pairs.similar).all()
    both_positive = (ends.sum(axis=1) == 2).sum()
    assert both_positive == pytest.approx(100 * prior**2, abs=1)
    assert np.sum(y[pairs.unlabeled] == 1) == round(200 * prior)
    assert np.sum(y_test == 1) == round(300 * prior)
    assert (X_test[:, 1] == y_test).all()
    assert len(set(rows[:, 0]) | set(X_test[:, 0])) == len(rows) + len(X_test)


def test_random_draws_vary():
    labels = np.repeat([1, -1], 3000)
    X = np.zeros((6000, 1))
    counts = {
        (sample_sdu(X, labels, n_pairs=50, n_unlabeled=10, prior=0.7, exact=False, random_state=s)[1] > 0).sum()
        for s in range(10)
    }
    assert len(counts) > 3


def test_types_are_kept():
    X, y = make_waveform(500, random_state=0)
    arguments = {"n_pairs": 10, "n_unlabeled": 10, "prior": 0.5, "random_state": 0}
    rows, codes = sample_sdu(X, y, **arguments)
    for other in (pd.DataFrame(X), sparse.csr_matrix(X)):
        other_rows, other_codes = sample_sdu(other, y, **arguments)
        assert type(other_rows) is type(other)
        np.testing.assert_array_equal(other_codes, codes)
    np.testing.assert_array_equal(other_rows.toarray(), rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_pairs": 1000}, "needs 1407 positive points, but `y` has 50"),
        ({"prior": 1.5}, "strictly between 0 and 1"),
        ({"y": np.zeros(100)}, "classes -1 and"),
    ],
)
def test_bad_input(arguments, message):
    given = {"y": np.repeat([1, -1], 50), "n_pairs": 5, "n_unlabeled": 10, "prior": 0.7, **arguments}
    with pytest.raises(ValueError, match=message):
        sample_sdu(np.zeros((100, 1)), **given)
