"""The d x d systems that all second-order solvers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import blas, lapack

from sdulearn.types import Array

# Relative size of what is added to the diagonal against rounding: it bends a step, never an answer,
# because every solver measures its residual without it.
_JITTER = 1e-14


def weighted_gram(A: Any, D: Array | None) -> Array:
    """``A' diag(D) A`` once, for D >= 0 (None: ones); numpy sees that both factors are one array and does half."""
    root = None if D is None else np.sqrt(D)[:, None]
    if sparse.issparse(A):
        scaled = A if root is None else A.multiply(root).tocsr()
        return np.asarray((scaled.T @ scaled).toarray())
    scaled = A if root is None else A * root
    return np.asarray(scaled.T @ scaled)


class WeightedGram:
    """``A' diag(D) A`` again and again for the same rows, in one buffer (lower triangle only)."""

    def __init__(self, A: Any) -> None:
        self.A = A
        self._sparse = sparse.issparse(A)
        self._buffer = np.empty((0, 0) if self._sparse else A.shape)

    def __call__(self, D: Array) -> Array:
        """The weighted Gram matrix."""
        if self._sparse:
            return np.asfortranarray((self.A.T @ self.A.multiply(D[:, None]).tocsr()).toarray())
        np.multiply(self.A, np.sqrt(D)[:, None], out=self._buffer)
        return blas.dsyrk(1.0, self._buffer.T, lower=1)

    def factor(self, D: Array, ridge: Array) -> Cholesky:
        """Cholesky factor of ``A' diag(D) A + diag(ridge)``."""
        return Cholesky(self(D), ridge)


class Cholesky:
    """Factor of ``M + diag(ridge)`` for symmetric ``M >= 0`` (Fortran order, lower triangle, left as it is)."""

    def __init__(self, M: Array, ridge: Array) -> None:
        diagonal = M.diagonal() + ridge
        # A column of zeros without ridge has no scale of its own; any will do, for its right-hand
        # side is zero.
        diagonal[diagonal == 0] = 1.0
        jitter = _JITTER
        while True:
            shifted = M.copy(order="F")
            np.einsum("ii->i", shifted)[:] = diagonal * (1 + jitter)
            self.L, failed = lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
            if not failed:
                return
            if jitter > 1:
                raise FloatingPointError("The system overflowed; scale the features down.")
            jitter *= 10

    def solve(self, b: Array) -> Array:
        """``x`` with ``(M + diag(ridge)) x = b``."""
        return lapack.dpotrs(self.L, b, lower=1)[0]
