"""The d x d systems that all second-order solvers share."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from sdulearn.types import Array, Rows

# Relative size of what is added to the diagonal against rounding: it changes a step, never an
# answer, because every solver measures its residual without it.
_JITTER = 1e-14


def weighted_gram(A: Rows, weight: Array | None, B: Rows | None = None, *, buffer: Array | None = None) -> Array:
    """Compute ``A' diag(weight) B``, dense, also of CSR rows.

    Without ``B`` both factors are ``A`` and ``weight >= 0`` (None for ones): numpy sees one array
    twice and does half the work. With ``B``, weights may have any sign. ``buffer`` of the shape of
    ``A`` saves the allocation where the same rows are weighted again and again.
    """
    if B is not None:
        product = A.T @ _scaled(B, weight, None)
    else:
        half = _scaled(A, None if weight is None else np.sqrt(weight), buffer)
        product = half.T @ half
    return np.asarray(product.toarray() if sparse.issparse(product) else product)


def _scaled(A: Rows, factor: Array | None, out: Array | None) -> Rows:
    if factor is None:
        return A
    if sparse.issparse(A):
        return A.multiply(factor[:, None]).tocsr()
    return np.multiply(A, factor[:, None], out=out)


def gram_buffer(A: Rows) -> Array | None:
    """Room for :func:`weighted_gram` of these rows."""
    return None if sparse.issparse(A) else np.empty(A.shape)


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
        """Smallest share of a diagonal entry that the columns before it leave over.

        Where it is near rounding, so is the solution along some direction.
        """
        return float(np.min((self.L.diagonal() / np.sqrt(self.diagonal)) ** 2, initial=1.0))

    def solve(self, b: Array) -> Array:
        """``x`` with ``(M + diag(ridge)) x = b``."""
        return lapack.dpotrs(self.L, b, lower=1)[0]
