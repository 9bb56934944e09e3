"""Rows a few thousand at a time, as the solvers see them: float64, about an origin, with a last column of ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from scipy import sparse

from sdulearn.solvers.limits import piece_rows
from sdulearn.types import Array, Rows


def with_ones(A: Rows) -> Rows:
    """Rows with a last column of ones."""
    ones = np.ones((A.shape[0], 1))
    return sparse.hstack([A, ones], format="csr") if sparse.issparse(A) else np.hstack([A, ones])


def joined(rows: list[Rows]) -> Rows:
    """Rows, dense or sparse, one below the other."""
    if all(sparse.issparse(part) for part in rows):
        return sparse.vstack(rows, format="csr")
    return np.concatenate([part.toarray() if sparse.issparse(part) else part for part in rows])


def row_pieces(X: Rows, origin: Array) -> Iterator[tuple[slice, Rows]]:
    """``[x - origin, 1]`` for slices of the rows; dense pieces share one buffer, so use each before the next.

    Sparse rows must stay sparse: their origin is zero.
    """
    n_rows, n_features = X.shape
    size = piece_rows(n_features)
    slices = [slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size)]
    if sparse.issparse(X):
        for rows in slices:
            yield rows, with_ones(X[rows].astype(np.float64))
        return
    order: Literal["C", "F"] = "C" if X.flags.c_contiguous else "F"
    buffer = np.empty((min(size, n_rows), n_features + 1), order=order)
    for rows in slices:
        if rows.stop - rows.start < len(buffer):
            buffer = np.empty((rows.stop - rows.start, n_features + 1), order=order)
        # In two steps: a subtraction that converts on the way is slower than both.
        np.copyto(buffer[:, :-1], X[rows])
        buffer[:, :-1] -= origin
        buffer[:, -1] = 1.0
        yield rows, buffer
