"""svmlight files: sparse rows of numbered features."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from sdulearn.columns import SparseColumns, usable_scale
from sdulearn.errors import InputError, reason
from sdulearn.io.files import Location, open_bytes, refuse_damaged

_CHUNK_ROWS = 20_000


def read_svmlight(path: Location) -> tuple[SparseColumns, sparse.csr_matrix]:
    """A whole file; features are taken to be numbered from 1 unless a 0 occurs."""
    with open_bytes(path) as file, refuse_damaged(path):
        X = _parsed(path, file, None)
    if X.shape[0] == 0:
        raise InputError(f"{path} is empty.")
    first: Literal[0, 1] = 1 if X.indices.size == 0 or X.indices.min() > 0 else 0
    X = X[:, first:]
    mean = np.asarray(X.mean(axis=0)).ravel()
    variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
    return SparseColumns(X.shape[1], first, usable_scale(mean, np.sqrt(np.maximum(variance, 0)))), X


def svmlight_rows(path: Location, columns: SparseColumns) -> Iterator[tuple[int, sparse.csr_matrix]]:
    """Some thousand rows at a time with the number of the first, as wide as the model."""
    begin = 0
    with open_bytes(path) as file, refuse_damaged(path):
        while some := list(islice(file, _CHUNK_ROWS)):
            if lines := b"".join(line for line in some if line.strip()):
                X = _parsed(path, io.BytesIO(lines), columns.width + columns.first)[:, columns.first :]
                yield begin, X
                begin += X.shape[0]


def _parsed(path: Location, file: Iterable[bytes], width: int | None) -> sparse.csr_matrix:
    """The rows of a file, features numbered from 0; ``width`` says how many there may be."""
    try:
        X, _ = load_svmlight_file(file, n_features=width, zero_based=True)
    except (ValueError, OverflowError, MemoryError) as error:
        raise InputError(
            f"{path} cannot be read as svmlight, or has features the model does not know: {reason(error)}"
        ) from None
    if not np.isfinite(X.data).all():
        raise InputError(f"{path} holds values that are missing or infinite. Leave them out; absent means zero.")
    return X
