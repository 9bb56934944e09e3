"""The d x d systems of second-order solvers, rows in pieces, and memory limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from sklearn.utils import gen_even_slices

from sdulearn.answers.y import LARGEST_NUMBER
from sdulearn.errors import InputError
from sdulearn.types import Array, Rows

# Added to the diagonal, relatively, against rounding. It changes a step, never a solution: residuals are without it.
_JITTER = 1e-14
# A second-order solver gives up after this many steps that do not halve the residual.
PATIENCE = 25


def weighted_gram(A: Rows, weight: Array | None) -> Array:
    """``A' diag(weight) A`` for weights >= 0 (None: ones)."""
    # For the product of an array with its own transpose numpy does half the work.
    half = A
    if weight is not None:
        root = np.sqrt(weight)[:, None]
        half = A.multiply(root).tocsr() if sparse.issparse(A) else A * root
    product = half.T @ half
    return np.asarray(product.toarray() if sparse.issparse(product) else product)


class Cholesky:
    """Cholesky factor of ``M + diag(ridge)`` for symmetric ``M >= 0``; M is not overwritten."""

    def __init__(self, M: Array, ridge: Array) -> None:
        diagonal = M.diagonal() + ridge
        # A column of zeros without ridge has no scale. Any will do: its right-hand side is zero.
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
        """Smallest share of a diagonal entry left by the columns before it; near 0 if dependent."""
        return float(np.min((self.L.diagonal() / np.sqrt(self.diagonal)) ** 2, initial=1.0))

    def solve(self, b: Array) -> Array:
        """Solve ``(M + diag(ridge)) x = b``."""
        return lapack.dpotrs(self.L, b, lower=1)[0]


def with_ones(A: Rows) -> Rows:
    """Append a column of ones."""
    ones = np.ones((A.shape[0], 1))
    return sparse.hstack([A, ones], format="csr") if sparse.issparse(A) else np.hstack([A, ones])


def row_pieces(X: Rows, origin: Array) -> Iterator[tuple[slice, Rows]]:
    """Yield slices of rows as ``[x - origin, 1]`` (sparse: origin 0)."""
    n_rows, n_features = X.shape
    size = max(_PIECE_NUMBERS // (n_features + 1), _ROWS_PER_COLUMN * n_features)
    for rows in gen_even_slices(n_rows, -(-n_rows // size)):
        piece = X[rows].astype(np.float64)
        yield rows, with_ones(piece if sparse.issparse(X) else piece - origin)


# A square matrix of this many columns takes 128 MB, and its Cholesky factor about a second.
LARGEST_SYSTEM = 4000
# Numbers in a piece of rows (2 MB), which stay in a core's cache; but more rows than columns, so that sums are few.
_PIECE_NUMBERS = 1 << 18
_ROWS_PER_COLUMN = 8


def check_system_size(n_columns: int) -> None:
    """Refuse more columns than fit into a dense square matrix."""
    if n_columns > LARGEST_SYSTEM:
        raise InputError(
            f"`X` has {n_columns:,} features, and for rows in batches {LARGEST_SYSTEM:,} is the limit. Fit in memory, "
            "or reduce the features first, for example with sklearn.random_projection."
        )


def check_magnitude(X: Rows) -> None:
    """Refuse numbers whose products overflow."""
    values = X.data if sparse.issparse(X) else X
    if values.size and max(float(values.max()), -float(values.min())) > LARGEST_NUMBER:
        raise InputError(
            f"`X` holds a number beyond {LARGEST_NUMBER:g}, whose powers overflow. Give the column a larger unit, or "
            "standardise the features first."
        )
