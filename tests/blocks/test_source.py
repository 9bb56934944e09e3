"""A sum over blocks is a sum over rows, however they are dealt out; hashed folds are the same for every dealing."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from sdulearn.blocks import HashedPairKFold, LocalBlocks, Sums, add_all, count_blocks, fold_of_rows


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
    blocks_of(3, watch=heard.append).sum(total, 1.0)
    assert heard == [4, 4, 4, None]


def test_nothing_adds_up_to_none():
    assert add_all([None, None]) is None
    assert LocalBlocks([held]).sum(total, 1.0) is None


def test_a_part_may_say_how_many_blocks_it_has():
    part = partial(held)
    part.n_blocks = 5
    assert count_blocks([part, held]) == 6
    assert blocks_of(4).n_blocks == 4


def test_blocks_can_be_walked_through():
    assert [len(y) for _, y, _ in blocks_of(3)] == [4, 4, 4]


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
