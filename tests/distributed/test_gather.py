"""gather_pairs: the same rows, both ends of each pair in one block."""

from collections import Counter

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sdulearn.distributed import chunks as module
from sdulearn.distributed import gather_pairs


def rows_and_codes(n_pairs, n_unlabeled, seed):
    """Rows that tell themselves apart, in random order, with their codes and weights."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1, 1], n_pairs)
    numbers = rng.choice(10**9, n_pairs, replace=False) + 1
    codes = rng.permutation(np.concatenate([np.repeat(signs * numbers, 2), np.zeros(n_unlabeled, dtype=np.int64)]))
    return np.column_stack([np.arange(len(codes)) + 1.0, rng.normal(size=len(codes))]), codes, rng.random(len(codes))


def blocks_of(collection):
    if isinstance(collection, da.Array):
        return [part.compute() for part in collection.to_delayed().ravel()]
    return [part.compute() for part in collection.to_delayed()]


def check(X, y, gathered):
    """The same rows with the same codes; no code in two blocks; unlabeled rows still in theirs."""
    dense = [part.toarray() if sparse.issparse(part) else np.asarray(part) for part in blocks_of(gathered[0])]
    codes = [np.asarray(part) for part in blocks_of(gathered[1])]
    assert [len(part) for part in dense] == [len(part) for part in codes]
    found = Counter((*row, code) for rows, part in zip(dense, codes, strict=True) for row, code in zip(rows, part))  # noqa: B905
    assert found == Counter((*row, code) for row, code in zip(X.tolist(), y.tolist(), strict=True))
    homes = Counter(code for part in codes for code in np.unique(part[part != 0]))
    assert set(homes.values()) <= {1}
    return dense, codes


@settings(deadline=None, max_examples=10)
@given(
    n_pairs=st.integers(0, 30),
    n_unlabeled=st.integers(1, 20),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_random_chunkings(n_pairs, n_unlabeled, seed, data):
    X, y, _ = rows_and_codes(n_pairs, n_unlabeled, seed)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(y)), max_size=12)))
    lengths = tuple(np.diff([0, *cuts, len(y)]).tolist())
    gathered = gather_pairs(da.from_array(X, chunks=(lengths, (1, 1))), da.from_array(y, chunks=5))
    dense, codes = check(X, y, gathered)
    home = np.repeat(np.arange(len(lengths)), lengths)
    for number, (rows, part) in enumerate(zip(dense, codes, strict=True)):
        assert (home[rows[part == 0, 0].astype(int) - 1] == number).all()


@pytest.mark.parametrize(("width", "n_blocks"), [(32, 1), (2, 2), (3, 9), (2, 20)])
def test_rounds(monkeypatch, width, n_blocks):
    X, y, weight = rows_and_codes(60, 30, n_blocks)
    shuffle = module.shuffle
    monkeypatch.setattr(module, "shuffle", lambda layer, bundles: shuffle(layer, bundles, width))
    edges = np.linspace(0, len(y), n_blocks + 1).astype(int)
    rows = da.from_array(X, chunks=(tuple(np.diff(edges).tolist()), 2))
    gathered = gather_pairs(rows, y, weight)
    check(X, y, gathered)
    order = gathered[0].compute()[:, 0].astype(int) - 1
    np.testing.assert_array_equal(gathered[2].compute(), weight[order])


def test_rounds_keep_the_number_of_tasks_down():
    n_blocks = 200
    gathered = gather_pairs(da.zeros((n_blocks, 2), chunks=(1, 2)), da.zeros(n_blocks, chunks=1, dtype=np.int64))
    assert len(dict(gathered[1].dask)) < n_blocks**2


def test_nothing_is_computed(untouchable):
    rows, codes = gather_pairs(untouchable((20, 3), (7, 2)), untouchable((20,), 4, np.int64))
    assert rows.numblocks == (3, 1)
    assert codes.numblocks == (3,)
    assert rows.dtype == np.float64
    assert codes.dtype == np.int64
    with pytest.raises(AssertionError, match="a chunk was computed"):
        codes.compute()
