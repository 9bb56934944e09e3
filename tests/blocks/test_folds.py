"""Hashed folds: the same for every order, dealing and storage of the rows."""

import numpy as np
import pytest
from scipy import sparse

from sdulearn.blocks import HashedPairKFold
from sdulearn.blocks.folds import fold_of_rows


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12)) * (rng.random((3000, 12)) < 0.5)
    codes = np.zeros(3000, dtype=np.int64)
    codes[:2000] = np.repeat(np.arange(1, 1001) * np.where(np.arange(1000) % 3, 1, -1), 2)
    return X, codes


def test_the_same_row_is_in_the_same_fold_everywhere(rows):
    X, codes = rows
    fold = fold_of_rows(X, codes, 5)
    order = np.random.default_rng(1).permutation(len(codes))
    np.testing.assert_array_equal(fold_of_rows(X[order], codes[order], 5), fold[order])
    for other in (np.asfortranarray(X), sparse.csr_matrix(X), np.where(X == 0, -0.0, X)):
        np.testing.assert_array_equal(fold_of_rows(other, codes, 5), fold)
    small = X.astype(np.float32)
    np.testing.assert_array_equal(fold_of_rows(small, codes, 5), fold_of_rows(small.astype(np.float64), codes, 5))


def test_folds_keep_pairs_whole_and_are_about_equal(rows):
    X, codes = rows
    seen = []
    for train, test in HashedPairKFold(5).split(X, codes):
        assert len(train) + len(test) == len(codes)
        named = np.unique(np.abs(codes[test]), return_counts=True)
        assert (named[1][named[0] > 0] == 2).all()
        seen.append(test)
        for kind in (codes > 0, codes < 0, codes == 0):
            assert 0.15 < np.mean(np.isin(np.flatnonzero(kind), test)) < 0.25
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(len(codes)))


def test_empty_rows_of_a_sparse_matrix():
    X = sparse.csr_matrix((5, 3))
    assert len(set(fold_of_rows(X, np.zeros(5, dtype=np.int64), 4))) == 1


def test_bad_numbers_of_folds():
    with pytest.raises(ValueError, match="integer of 2 or more, got 1"):
        HashedPairKFold(1)
    assert repr(HashedPairKFold(3)) == "HashedPairKFold(3)"
    assert HashedPairKFold(3).get_n_splits() == 3
