"""A sum over blocks is a sum over rows, however they are dealt out; hashed folds are the same for every dealing."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from sdulearn.blocks import LocalBlocks, Sums, fold_of_rows


def held(*blocks):
    return list(blocks)


def total(X, y, weight, factor):
    return Sums(rows=len(y), columns=factor * X.sum(axis=0), codes=[y])


def blocks_of(n, **options):
    rows = np.arange(24.0).reshape(12, 2)
    return LocalBlocks([partial(held, (rows[k::n], np.arange(12)[k::n], None)) for k in range(n)], **options)


def test_sums_add_up_whatever_the_threads():
    for n in (1, 3, 12):
        for n_jobs in (1, 3):
            found = blocks_of(n, n_jobs=n_jobs).sum(total, 2.0)
            assert found["rows"] == 12
            np.testing.assert_array_equal(found["columns"], [264.0, 288.0])
            np.testing.assert_array_equal(
                np.concatenate(found["codes"]), np.concatenate([np.arange(12)[k::n] for k in range(n)])
            )


def test_watch_hears_of_every_block_and_of_the_end():
    heard = []
    blocks = blocks_of(3, watch=heard.append)
    blocks.sum(total, 1.0)
    assert heard == [4, 4, 4, None]
    assert [len(y) for _, y, _ in blocks] == [4, 4, 4]
    part = partial(held)
    part.n_blocks = 5
    assert LocalBlocks([part, held]).n_blocks == 6
    assert LocalBlocks([held]).sum(total, 1.0) is None


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
