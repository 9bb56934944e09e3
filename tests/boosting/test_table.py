"""Rows of all kinds as numbers: categories, gaps, texts."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from sdulearn.boosting.start import Design, Kernel
from sdulearn.boosting.table import checked_categories, encode, find_categories, one_hot
from sdulearn.errors import InputError

VALUES = {"size": [1.5, None, 3.0], "kind": ["b", "a", None], "flag": [True, False, True]}


@pytest.mark.parametrize("frame", [pd.DataFrame(VALUES), pl.DataFrame(VALUES)], ids=["pandas", "polars"])
def test_frames(frame):
    categories = find_categories(frame, "from_dtype")
    assert categories == {1: ["a", "b"]}
    np.testing.assert_array_equal(encode(frame, categories), [[1.5, 1, 1], [np.nan, 0, 0], [3, np.nan, 1]])


def test_types_that_say_category():
    numbers = pd.DataFrame({"code": pd.Categorical([7, 3, 7]), "n": pd.array([1, None, 2], dtype="Int64")})
    categories = find_categories(numbers, "from_dtype")
    assert categories == {0: [3, 7]}
    np.testing.assert_array_equal(encode(numbers, categories), [[1, 1], [0, np.nan], [1, 2]])


def test_named_columns():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [5.0, 4.0]})
    assert find_categories(frame, ["b"]) == find_categories(frame.to_numpy(), [1]) == {1: [4, 5]}
    assert find_categories(frame, None) == {}
    with pytest.raises(InputError, match="'c'"):
        find_categories(frame, ["c"])


def test_sparse_rows_and_plain_arrays_stay_as_they_are():
    X = sparse.csr_matrix(np.eye(3))
    assert encode(X, find_categories(X, "from_dtype")) is X
    plain = np.eye(3)
    assert encode(plain, find_categories(plain, "from_dtype")) is plain


def test_one_hot():
    np.testing.assert_array_equal(one_hot(np.array([1, np.nan, 0]), 2), [[0, 1], [0, 0], [1, 0]])


def test_categories_of_a_file_are_checked():
    assert checked_categories({"1": ["a", 2]}, 2) == {1: ["a", 2.0]}
    for wrong in ({"2": ["a"]}, {"0": ["a", "a"]}, {"0": [None]}):
        with pytest.raises(InputError):
            checked_categories(wrong, 2)


def test_the_design_standardises_fills_and_keeps_constants_out():
    X = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 1.0], [np.nan, 5.0, 1.0]])
    design = Design.of(X, np.array([0, 0, 2]))
    A = design.transform(X)
    np.testing.assert_allclose(A[:, 0], [-1, 1, 0])
    np.testing.assert_array_equal(A[:, 1], 0)
    np.testing.assert_allclose(A.std(axis=0)[2:], 1)
    # Columns go back to the features they come from.
    np.testing.assert_array_equal(design.by_feature(np.array([[1.0, 2.0, 3.0, 4.0]])), [[1, 2, 7]])


def test_the_design_of_sparse_rows_is_the_same_but_for_the_centre():
    X = np.random.default_rng(0).normal(size=(20, 3))
    dense = Design.of(X, np.zeros(3, dtype=int))
    scattered = Design.of(sparse.csr_matrix(X), np.zeros(3, dtype=int))
    moved = dense.transform(X) - scattered.transform(sparse.csr_matrix(X)).toarray()
    np.testing.assert_allclose(moved, np.tile(moved[0], (20, 1)), atol=1e-12)


def test_the_kernel_map_reproduces_the_kernel():
    """With all rows as points of the kernel, inner products of the map are kernel values."""
    A = np.random.default_rng(0).normal(size=(30, 4))
    kernel = Kernel.of(A, 0)
    features = kernel.transform(A) / kernel.scale + kernel.mean
    squares = ((A[:, None] - A[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(features @ features.T, np.exp(-squares / 8), atol=1e-6)
