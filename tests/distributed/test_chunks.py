"""Dask arrays and frames become the blocks that they should, with both ends of each pair in one block."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from scipy import sparse

from sdulearn.blocks import Sums
from sdulearn.distributed import chunks as module
from sdulearn.distributed import gather_pairs
from sdulearn.distributed.chunks import dask_blocks

X = np.arange(60.0).reshape(20, 3)
Y = np.arange(-10, 10)
W = np.linspace(1, 2, 20)


def as_lists(X, y, weight):
    return Sums(X=[X], y=[y], weight=[weight])


def rows_back(blocks):
    found = blocks.sum(as_lists)
    for block, codes in zip(found["X"], found["y"], strict=True):
        assert block.shape[0] == len(codes) > 0
    stack = sparse.vstack if sparse.issparse(found["X"][0]) else np.vstack
    weight = None if found["weight"][0] is None else np.concatenate(found["weight"])
    return stack(found["X"]), np.concatenate(found["y"]), weight


def frame(npartitions=4):
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y, weight=W)
    return dd.from_pandas(table, npartitions=npartitions)


TABLE = frame()
ALL = da.ones(20, chunks=5, dtype=bool)
KINDS = {
    "whole": (da.from_array(X, chunks=(20, 3)), da.from_array(Y, chunks=3)),
    "columns apart": (da.from_array(X, chunks=(6, 2)), Y),
    "an empty chunk": (da.from_array(X, chunks=((1, 0, 12, 7), (1, 1, 1))), da.from_array(Y, chunks=7)),
    "series": (TABLE[["a", "b", "c"]], TABLE["y"]),
    "frame of codes": (TABLE[["a", "b", "c"]], TABLE[["y"]]),
    "unknown sizes": (da.from_array(X, chunks=(5, 2))[ALL], da.from_array(Y, chunks=5)[ALL]),
    "csr": (da.from_array(X, chunks=(7, 3)).map_blocks(sparse.csr_array), Y),
    "coo, columns apart": (da.from_array(X, chunks=(7, 2)).map_blocks(sparse.coo_matrix), Y),
    "array of a frame": (TABLE[["a", "b", "c"]], TABLE["y"].to_dask_array()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_chunking(kind):
    given, y = KINDS[kind]
    weights = da.from_array(W, chunks=5) if isinstance(given, da.Array) else TABLE["weight"]
    rows, codes, weight = rows_back(dask_blocks(given, y, weights))
    if kind.startswith(("csr", "coo")):
        assert rows.format == "csr"
        rows = rows.toarray()
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(codes, Y)
    np.testing.assert_array_equal(weight, W)


def test_what_rows_and_codes_share_is_read_once():
    read = []

    def chunk(number):
        read.append(number)
        return np.column_stack([X, Y])[5 * number : 5 * number + 5]

    whole = da.concatenate([da.from_delayed(delayed(chunk)(k), (5, 4), dtype=float) for k in range(4)])
    rows, codes, _ = rows_back(dask_blocks(whole[:, :3], whole[:, 3].astype(int)))
    assert sorted(read) == [0, 1, 2, 3]
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(codes, Y)


@pytest.mark.parametrize(
    ("rows", "codes", "message"),
    [
        (da.from_array(X, chunks=7), Y[:-1], r"`X` has 20 rows, but `y` has 19\. Give one"),
        (da.from_array(X, chunks=7), da.from_array(Y[:-1], chunks=7), r"`X` has 20 rows, but `y` has 19\. Give one"),
        (frame()[["a"]], Y, r"`X` comes in 4 blocks of rows and `y` in 1,.*not known.*compute_chunk_sizes"),
        (frame()[["a"]], frame(3)["y"], r"`X` comes in 4 blocks of rows and `y` in 3.*compute_chunk_sizes"),
        (frame()["a"], frame()["y"], r"`X` is a Series; rows of features come as a dask array"),
        (X, Y, r"`X` is a ndarray; .*dask.array.from_array"),
        (da.from_array(Y, chunks=7), Y, r"`X` must have rows and columns, got a dask array of 1 dimension"),
    ],
)
def test_what_does_not_belong_together_is_refused(rows, codes, message):
    with pytest.raises(ValueError, match=message):
        dask_blocks(rows, codes)


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_lengths_that_only_the_workers_see(name):
    table = frame()
    vectors = {"y": table["y"], "sample_weight": table["weight"]}
    found = "[46] pair codes" if name == "y" else "5 pair codes and [46] weights"
    vectors[name] = da.from_array(vectors[name].compute().to_numpy(), chunks=((5, 5, 4, 6),))
    with pytest.raises(ValueError, match=rf"A block has 5 rows of `X`, {found}.*take them from one frame"):
        dask_blocks(table[["a", "b", "c"]], **vectors).sum(as_lists)


@pytest.mark.parametrize(("width", "n_blocks"), [(32, 1), (32, 5), (3, 9), (2, 9)])
def test_both_ends_of_a_pair_come_together_and_all_else_stays(monkeypatch, width, n_blocks):
    """Up to ``width`` blocks in one round, more of them in several; chunks may be empty."""
    rng = np.random.default_rng(n_blocks)
    codes = np.repeat(rng.choice([-1, 1], 60) * (rng.choice(10**9, 60, replace=False) + 1), 2)
    y = rng.permutation(np.concatenate([codes, np.zeros(30, dtype=np.int64)]))
    X = np.column_stack([np.arange(len(y)), rng.normal(size=len(y))])
    weight = rng.random(len(y))
    cuts = np.sort(np.r_[0, rng.integers(0, len(y), max(n_blocks - 2, 0)), [len(y)] * min(n_blocks, 2)])
    lengths = tuple(np.diff(cuts).tolist())
    shuffle = module.shuffle
    monkeypatch.setattr(module, "shuffle", lambda layer, bundles: shuffle(layer, bundles, width))
    gathered = gather_pairs(da.from_array(X, chunks=(lengths, (1, 1))), da.from_array(y, chunks=5), weight)
    dense, known, weights = dask.compute([list(np.ravel(one.to_delayed())) for one in gathered])[0]
    numbers = [part[:, 0].astype(int) for part in dense]
    assert len(dense) == n_blocks
    assert sorted(np.concatenate(numbers)) == list(range(len(y)))
    home = np.repeat(np.arange(n_blocks), lengths)
    for k, (rows, some, its_weight) in enumerate(zip(numbers, known, weights, strict=True)):
        np.testing.assert_array_equal(some, y[rows])
        np.testing.assert_array_equal(its_weight, weight[rows])
        assert (home[rows[some == 0]] == k).all()
        assert (np.unique(some[some != 0], return_counts=True)[1] == 2).all()


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
