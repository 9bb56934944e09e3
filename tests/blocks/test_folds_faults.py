import numpy as np
from scipy import sparse

from sdulearn.blocks.folds import fold_of_rows


def test_a_negative_zero_is_a_zero():
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (200, 3)).astype(float)
    codes = np.zeros(200, dtype=np.int64)
    negative = np.where(X == 0, -0.0, X)
    folds = fold_of_rows(X, codes, 7)
    np.testing.assert_array_equal(fold_of_rows(negative, codes, 7), folds)
    # Stored or not, a zero of a sparse matrix is a zero too.
    np.testing.assert_array_equal(fold_of_rows(sparse.csr_matrix(X), codes, 7), folds)
    stored = sparse.csr_matrix((negative.ravel(), np.tile(np.arange(3), 200), np.arange(0, 601, 3)), shape=(200, 3))
    np.testing.assert_array_equal(fold_of_rows(stored, codes, 7), folds)
    assert len(np.unique(folds)) == 7
