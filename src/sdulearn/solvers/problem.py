"""The one problem that every solver solves, and the certificate that none of them writes itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from sdulearn.solvers.pieces import with_ones
from sdulearn.types import Array


@dataclass(frozen=True)
class Solution:
    """What a solver hands back.

    ``dual`` holds a slope ``theta_i`` of ``a_i even`` for every row; a solver of a smooth loss
    leaves it to the problem (None), a solver of a kinked loss must show it.
    """

    w: Array
    n_iter: int
    dual: Array | None = None


@dataclass(frozen=True)
class Problem:
    """Minimise ``J(w) = 1/2 sum_j ridge_j w_j^2 + sum_i a_i even(z_i) - c.w`` with ``z = A w``.

    ``a >= 0`` makes it convex. Rows of ``A`` with ``a_i = 0`` are gone: they live on in ``c`` only.
    """

    A: Any
    a: Array
    c: Array
    ridge: Array
    loss: Any

    def with_penalty(self, alpha: float) -> Problem:
        """The same problem with another penalty (the free intercept stays free)."""
        other = replace(self, ridge=np.where(self.ridge > 0, float(alpha), 0.0))
        # Depends on rows and weights only; worth keeping along a path of penalties.
        other.__dict__["column_scale"] = self.column_scale
        return other

    def objective(self, w: Array) -> float:
        """J(w)."""
        return self.objective_at(w, self.A @ w)

    def objective_at(self, w: Array, z: Array) -> float:
        """J(w) where ``z = A w`` is known."""
        return float(self.ridge @ w**2 / 2 + self.a @ self.loss.even(z) - self.c @ w)

    def gradient_at(self, w: Array, z: Array) -> Array:
        """Gradient of J where ``z = A w`` is known."""
        return self.stationarity(w, self.a * self.loss.even_grad(z))

    def stationarity(self, w: Array, theta: Array) -> Array:
        """``ridge * w - c + A' theta``: zero at the solution, for the right slopes theta."""
        return self.ridge * w - self.c + self.A.T @ theta

    def optimality(self, solution: Solution) -> float:
        """Relative KKT residual: the larger of the stationarity and the complementarity error.

        Stationarity is measured coordinate by coordinate against the root mean square of the
        column, so that the unit of a feature does not matter; complementarity is the Fenchel-Young
        gap ``sum_i a_i even(z_i) + a_i even*(theta_i / a_i) - theta_i z_i`` against the size of the
        objective. It is zero by construction for a smooth loss, whose slopes are computed here.
        """
        residual, mismatch = self.kkt(solution)
        size = max(abs(self.objective(solution.w)), self.a.sum() / 2)
        return max(self.relative(solution.w, residual), mismatch / size)

    def kkt(self, solution: Solution) -> tuple[Array, float]:
        """The stationarity residual, and the Fenchel-Young gap of all rows."""
        w, z = solution.w, self.A @ solution.w
        if solution.dual is None:
            return self.gradient_at(w, z), 0.0
        theta = np.clip(solution.dual, -self.a / 2, self.a / 2)
        mismatch = self.a * (self.loss.even(z) + self.loss.even_conjugate(theta / self.a)) - theta * z
        return self.stationarity(w, theta), float(mismatch.sum())

    def relative(self, w: Array, residual: Array) -> float:
        """Largest entry of a stationarity residual, each against the scale of its column."""
        return relative_residual(residual, self.column_scale + np.abs(self.c) + self.ridge * np.abs(w))

    @cached_property
    def column_scale(self) -> Array:
        """Root mean square of each column under the weights ``a``, times their sum."""
        if sparse.issparse(self.A):
            squares = self.A.multiply(self.A).T @ self.a
        else:
            squares = np.einsum("ij,ij,i->j", self.A, self.A, self.a)
        return np.sqrt(squares * self.a.sum())


def relative_residual(residual: Array, scale: Array) -> float:
    """Largest entry of a residual, each against its scale."""
    return float(np.max(np.abs(residual) / np.where(scale > 0, scale, 1.0), initial=0.0))


@dataclass(frozen=True)
class Design:
    """Rows as the solvers see them, and the way back to the user's coefficients.

    Dense columns are centred (the intercept is free, so this changes nothing but the conditioning),
    the intercept is a last column of ones, and where columns outnumber rows, rows become
    coordinates in their own span: the solution lies in it.
    """

    A: Any
    fit_intercept: bool
    shift: Array
    span: tuple[Any, Array] | None = None

    @classmethod
    def from_rows(cls, X: Any, fit_intercept: bool) -> Design:
        """Build the design matrix from validated rows."""
        n_rows, n_features = X.shape
        centred = fit_intercept and not sparse.issparse(X)
        shift = X.mean(axis=0) if centred else np.zeros(n_features)
        span = None
        if n_features > n_rows:
            rows = X - shift if centred else X
            X, into_rows = _span(rows)
            span = rows, into_rows
        if not fit_intercept:
            return cls(X, False, shift, span)
        if sparse.issparse(X):
            return cls(with_ones(X), True, shift, span)
        A = np.ones((n_rows, X.shape[1] + 1))
        np.subtract(X, shift if span is None else 0.0, out=A[:, :-1])
        return cls(A, True, shift, span)

    def subset(self, rows: NDArray[np.intp]) -> Design:
        """The same columns for some of the rows."""
        return replace(self, A=self.A[rows])

    def problem(self, a: Array, m: Array, loss: Any, alpha: float) -> Problem:
        """The problem with even weights ``a``, linear weights ``m`` and penalty ``alpha / 2 |w|^2``."""
        ridge = np.full(self.A.shape[1], float(alpha))
        if self.fit_intercept:
            ridge[-1] = 0.0
        active = a > 0
        return Problem(self.A if active.all() else self.A[active], a[active], self.A.T @ m, ridge, loss)

    def coefficients(self, w: Array) -> tuple[Array, float]:
        """User's ``(coef, intercept)`` of the solver's ``w``."""
        coef, intercept = (w[:-1], float(w[-1])) if self.fit_intercept else (w, 0.0)
        if self.span is not None:
            rows, into_rows = self.span
            coef = np.asarray(rows.T @ (into_rows @ coef))
        return coef, intercept - float(self.shift @ coef)


def _span(rows: Any) -> tuple[Array, Array]:
    """Coordinates of the rows in an orthonormal basis of their span, and that basis as combinations of rows.

    Nothing of size n_features is made: a wide sparse matrix stays sparse.
    """
    kernel = rows @ rows.T
    values, vectors = eigh(kernel.toarray() if sparse.issparse(kernel) else kernel)
    keep = values > values[-1] * len(values) * np.finfo(float).eps
    values, vectors = values[keep], vectors[:, keep]
    return vectors * np.sqrt(values), vectors / np.sqrt(values)
