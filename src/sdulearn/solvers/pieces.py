"""Rows a few thousand at a time, as the solvers see them: float64, about an origin, with a last column of ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy import sparse

from sdulearn.types import Array

# So many numbers stay in a core's own cache; but a piece has several times more rows than columns,
# so that its d x d sums of products are few.
_PIECE_SIZE, _ROWS_PER_COLUMN = 1 << 18, 8


def with_ones(A: Any) -> Any:
    """Rows with a last column of ones."""
    ones = np.ones((A.shape[0], 1))
    return sparse.hstack([A, ones], format="csr") if sparse.issparse(A) else np.hstack([A, ones])


def piece_rows(n_features: int) -> int:
    """Rows of a piece."""
    return max(_PIECE_SIZE // (n_features + 1), _ROWS_PER_COLUMN * n_features)


def pieces(X: Any, origin: Array) -> Iterator[tuple[slice, Any]]:
    """``[x - origin, 1]`` for slices of the rows; dense pieces share one buffer, so use each before the next.

    Sparse rows must stay sparse: their origin is zero.
    """
    n_rows, n_features = X.shape
    size = piece_rows(n_features)
    if sparse.issparse(X):
        for begin in range(0, n_rows, size):
            rows = slice(begin, min(begin + size, n_rows))
            yield rows, with_ones(X[rows].astype(np.float64))
        return
    order: Literal["C", "F"] = "C" if X.flags.c_contiguous else "F"
    buffer = np.empty((min(size, n_rows), n_features + 1), order=order)
    for begin in range(0, n_rows, size):
        rows = slice(begin, min(begin + size, n_rows))
        if rows.stop - begin < len(buffer):
            buffer = np.empty((rows.stop - begin, n_features + 1), order=order)
        # In two steps: a subtraction that converts on the way is slower than both.
        np.copyto(buffer[:, :-1], X[rows])
        buffer[:, :-1] -= origin
        buffer[:, -1] = 1.0
        yield rows, buffer
