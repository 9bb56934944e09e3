"""The d x d systems of second-order solvers, rows in pieces, and limits of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from sdulearn.errors import InputError
from sdulearn.types import Array, Rows

# Relative size of what is added to the diagonal against rounding: it changes a step, never an
# answer, because every solver measures its residual without it.
_JITTER = 1e-14


def weighted_gram(A: Rows, weight: Array | None, *, buffer: Array | None = None) -> Array:
    """``A' diag(weight) A`` for weights >= 0 (None: ones); ``buffer`` saves an array like A."""
    # Of one array twice numpy does half the work.
    half = A
    if weight is not None:
        root = np.sqrt(weight)[:, None]
        half = A.multiply(root).tocsr() if sparse.issparse(A) else np.multiply(A, root, out=buffer)
    product = half.T @ half
    return np.asarray(product.toarray() if sparse.issparse(product) else product)


class Cholesky:
    """Factor of ``M + diag(ridge)`` for symmetric ``M >= 0``, which is left as it is."""

    def __init__(self, M: Array, ridge: Array) -> None:
        diagonal = M.diagonal() + ridge
        # A column of zeros without ridge has no scale of its own; any will do, for its right-hand
        # side is zero.
        diagonal[diagonal == 0] = 1.0
        self.diagonal = diagonal
        jitter = _JITTER
        while True:
            # The transpose of a C array is LAPACK's order already.
            shifted = M.T.copy(order="F")
            np.einsum("ii->i", shifted)[:] = diagonal * (1 + jitter)
            self.L, failed = lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
            if not failed:
                return
            if jitter > 1:
                raise FloatingPointError("The system overflowed; scale the features down.")
            jitter *= 10

    @property
    def weakest(self) -> float:
        """Smallest share of a diagonal entry left by the columns before it: near 0 if dependent."""
        return float(np.min((self.L.diagonal() / np.sqrt(self.diagonal)) ** 2, initial=1.0))

    def solve(self, b: Array) -> Array:
        """``x`` with ``(M + diag(ridge)) x = b``."""
        return lapack.dpotrs(self.L, b, lower=1)[0]


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
    """``[x - origin, 1]`` by slices (sparse: origin 0); all dense ones are one buffer."""
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


# A square matrix of so many columns takes 128 MB, and its Cholesky factor about a second.
LARGEST_SYSTEM = 4000
# The square of a mean of squares is still a number, with room for the number of rows.
LARGEST_NUMBER = 1e50
# A piece of rows fills so many numbers (2 MB), which stay in a core's own cache; but it has several
# times more rows than columns, so that its d x d sums of products are few.
PIECE_SIZE = 1 << 18
_ROWS_PER_COLUMN = 8
# Rows gathered in one place from many blocks fill so many numbers (16 MB), or so many square
# matrices, of which there are a few anyway.
_GATHERED_NUMBERS = 1 << 21
_GATHERED_SQUARES = 10


def check_system_size(n_columns: int) -> None:
    """Refuse more columns than a dense square matrix of them is good for."""
    if n_columns > LARGEST_SYSTEM:
        raise InputError(
            f"`X` has {n_columns:,} features. Rows that come in portions are summed up in square "
            f"matrices of that size, and {LARGEST_SYSTEM:,} is the limit. Fit in memory, or reduce "
            "the features first, for example with sklearn.random_projection."
        )


def check_magnitude(X: Rows) -> None:
    """Refuse numbers whose products overflow."""
    values = X.data if sparse.issparse(X) else X
    if values.size and max(float(values.max()), -float(values.min())) > LARGEST_NUMBER:
        raise InputError(
            f"`X` holds a number beyond {LARGEST_NUMBER:g}, whose powers overflow. Give the column a "
            "larger unit, or standardise the features first."
        )


def piece_rows(n_features: int) -> int:
    """Rows of a piece."""
    return max(PIECE_SIZE // (n_features + 1), _ROWS_PER_COLUMN * n_features)


def affordable_rows(n_columns: int) -> int:
    """How many rows of that width may be gathered in one place."""
    return max(_GATHERED_NUMBERS // n_columns, _GATHERED_SQUARES * n_columns)
