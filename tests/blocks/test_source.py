"""Hashed folds are the same for every dealing."""

import numpy as np
import pytest
from scipy import sparse

from sdulearn.blocks import fold_of_rows


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
    for kind in (codes > 0, codes < 0, codes == 0):
        assert (np.abs(np.bincount(fold[kind], minlength=5) / kind.sum() - 0.2) < 0.05).all()
    order = np.random.default_rng(1).permutation(len(codes))
    np.testing.assert_array_equal(fold_of_rows(X[order], codes[order], 5), fold[order])
    for other in (np.asfortranarray(X), sparse.csr_matrix(X), np.where(X == 0, -0.0, X)):
        np.testing.assert_array_equal(fold_of_rows(other, codes, 5), fold)
    # Stored or not, a zero of a sparse matrix is a zero; rows without any other number share a fold.
    stored = sparse.csr_matrix(X)
    stored.data[stored.data < 0] = -0.0
    np.testing.assert_array_equal(fold_of_rows(stored, codes, 5), fold_of_rows(np.maximum(X, 0), codes, 5))
    assert len(set(fold_of_rows(sparse.csr_matrix((5, 3)), np.zeros(5, dtype=np.int64), 4))) == 1
    small = X.astype(np.float32)
    np.testing.assert_array_equal(fold_of_rows(small, codes, 5), fold_of_rows(small.astype(np.float64), codes, 5))
