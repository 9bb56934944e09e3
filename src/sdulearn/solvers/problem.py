"""The problem that every solver solves, and the certificate, which no solver computes itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, qr
from sklearn.utils.extmath import row_norms

from sdulearn.losses import TrainingLoss
from sdulearn.solvers.linalg import with_ones
from sdulearn.types import Array, Indices, Mask, Rows


@dataclass(frozen=True)
class Solution:
    """A solver's result and, once the problem has measured it, its certificate."""

    w: Array  # (n_columns,), the minimiser
    n_iter: int  # iterations
    # (n_rows,), a slope ``theta_i`` of ``a_i even``; needed to certify a kinked loss
    dual: Array | None = None
    objective: float = np.inf  # ``J(w)``; infinite until measured
    optimality: float = np.inf  # relative KKT residual; infinite until measured


class Place(NamedTuple):
    """Objective and gradient at one w."""

    w: Array
    z: Array
    objective: float
    gradient: Array


class Objective:
    """``J(w) = 1/2 sum_j ridge_j w_j^2 + sum_i a_i even(z_i) - c.w``, from rows or from their moments."""

    c: Array
    ridge: Array
    total: float  # sum of the weights a
    squares: Array  # sum of the squares of each column under the weights a

    def objective(self, w: Array, even: float) -> float:
        """J(w) from ``even = sum_i a_i even(z_i)``."""
        return float(self.ridge @ w**2 / 2 + even - self.c @ w)

    def gradient(self, w: Array, slopes: Array) -> Array:
        """Gradient of J from ``slopes = sum_i theta_i x_i``: zero for the right w and theta."""
        return self.ridge * w - self.c + slopes

    def relative(self, w: Array, residual: Array) -> float:
        """Return the largest entry of a residual, each relative to its column's scale."""
        # Root mean square of each column under the weights ``a``, times their sum.
        size = np.sqrt(self.squares * self.total)
        scale = size + np.abs(self.c) + self.ridge * np.abs(w)
        return float(np.max(np.abs(residual) / np.where(scale > 0, scale, 1.0), initial=0.0))

    def optimality(self, w: Array, J: float, residual: Array, gap: float) -> float:
        """Return the relative KKT residual: of stationarity, or the gap relative to J."""
        return max(self.relative(w, residual), gap / max(abs(J), self.total / 2))


@dataclass(frozen=True)
class Problem(Objective):
    """J over rows, ``z = A w`` and ``a > 0``; rows of weight 0 are in ``c`` only."""

    A: Rows
    a: Array
    c: Array
    ridge: Array
    loss: TrainingLoss

    def with_penalty(self, alpha: float) -> Problem:
        """Return the same problem with another penalty (the free intercept stays free)."""
        return replace(self, ridge=np.where(self.ridge > 0, float(alpha), 0.0))

    def at(self, w: Array) -> Place:
        """Evaluate J and its gradient at w."""
        z = self.A @ w
        slopes = self.A.T @ (self.a * self.loss.even_grad(z))
        return Place(w, z, self.objective_at(w, z), self.gradient(w, slopes))

    def objective_at(self, w: Array, z: Array) -> float:
        """J(w) where ``z = A w`` is known."""
        return self.objective(w, float(self.a @ self.loss.even(z)))

    def certified(self, solution: Solution) -> Solution:
        """Return the solution with its objective and its relative KKT residual."""
        _, z, J, residual = self.at(solution.w)
        gap = 0.0
        if solution.dual is not None:
            theta = np.clip(solution.dual, -self.a / 2, self.a / 2)
            residual = self.gradient(solution.w, self.A.T @ theta)
            # The Fenchel-Young gap of all rows.
            gap = float(np.sum(self.a * (self.loss.even(z) + self.loss.even_conjugate(theta / self.a)) - theta * z))
        return replace(solution, objective=J, optimality=self.optimality(solution.w, J, residual, gap))

    @cached_property
    def total(self) -> float:  # type: ignore[override]
        return float(self.a.sum())

    @cached_property
    def squares(self) -> Array:  # type: ignore[override]
        if sparse.issparse(self.A):
            return self.A.multiply(self.A).T @ self.a
        return np.einsum("ij,ij,i->j", self.A, self.A, self.a)


def ridge_of(alpha: float, n_columns: int, fit_intercept: bool) -> Array:
    """Return the penalty of each column; the intercept, the last one, is free."""
    return np.where(np.arange(n_columns) < n_columns - fit_intercept, float(alpha), 0.0)


# Coordinates in the span of the rows come from their inner products, whose rounding is that of the
# largest. They are accurate where no direction is smaller than this share of the largest one, and
# no column loses more than this share of itself.
_ACCURATE = 1e-7
# Rows are made dense for better coordinates up to this many numbers (256 MB).
DENSE_NUMBERS = 1 << 25


class Span(NamedTuple):
    """The user's rows; ``left.T @ right`` is an orthonormal basis of their span."""

    rows: Rows
    left: Rows
    right: Array


@dataclass(frozen=True)
class Design:
    """The design matrix of the solvers, and the way back to the user's columns.

    Dense rows are centred, and a last column of ones is the intercept's. Where columns outnumber
    rows, rows become coordinates in their own span, which contains the solution.
    """

    A: Rows
    fit_intercept: bool
    shift: Array
    span: Span | None = None

    @classmethod
    def from_rows(cls, X: Rows, fit_intercept: bool, in_span: bool = True) -> Design:
        """Build the design matrix from validated rows; not in their span where others count, too."""
        n_rows, n_features = X.shape
        centred = fit_intercept and not sparse.issparse(X)
        shift = X.mean(axis=0) if centred else np.zeros(n_features)
        span = None
        if in_span and n_features > n_rows:
            X, span = _span(X - shift if centred else X)
        if not fit_intercept:
            return cls(X, False, shift, span)
        if sparse.issparse(X):
            return cls(with_ones(X), True, shift, span)
        A = np.ones((n_rows, X.shape[1] + 1))
        np.subtract(X, shift if span is None else 0.0, out=A[:, :-1])
        return cls(A, True, shift, span)

    @property
    def level(self) -> Array:
        """Absolute value of what was subtracted from the columns of A; 0 in a span."""
        return np.zeros(self.A.shape[1] - self.fit_intercept) if self.span else np.abs(self.shift)

    def problem(self, a: Array, m: Array, loss: TrainingLoss, alpha: float) -> Problem:
        """Return the problem of even weights a, linear weights m and penalty alpha."""
        ridge = ridge_of(alpha, self.A.shape[1], self.fit_intercept)
        active = a > 0
        A = self.A if active.all() else self.A[active]
        return Problem(A, a[active], self.A.T @ m, ridge, loss)

    def certified(self, a: Array, m: Array, loss: TrainingLoss, alpha: float, solution: Solution) -> Solution:
        """Certify a solution of :meth:`problem` in the user's columns, not in their span."""
        if self.span is None:
            return solution
        rows = with_ones(self.span.rows) if self.fit_intercept else self.span.rows
        full = Design(rows, self.fit_intercept, self.shift).problem(a, m, loss, alpha)
        measured = full.certified(replace(solution, w=self._in_columns(solution.w)))
        return replace(measured, w=solution.w)

    def _in_columns(self, w: Array) -> Array:
        """Return the solver's ``w`` in the user's columns, the intercept last."""
        assert self.span is not None
        r = self.span.right.shape[1]
        coef = np.asarray(self.span.left.T @ (self.span.right @ w[:r]))
        return np.concatenate([coef, w[r:]])

    def coefficients(self, w: Array) -> tuple[Array, float]:
        """Return ``(coef, intercept)`` in the user's columns."""
        coef = w if self.span is None else self._in_columns(w)
        intercept = 0.0
        if self.fit_intercept:
            coef, intercept = coef[:-1], float(coef[-1])
        return coef, intercept - float(self.shift @ coef)


def _span(rows: Rows) -> tuple[Array, Span]:
    """Return the coordinates of rows in an orthonormal basis of their span, and that basis."""
    # Inner products keep a wide sparse matrix sparse, but may lose a column in a larger one.
    kernel = rows @ rows.T
    values, vectors = eigh(kernel.toarray() if sparse.issparse(kernel) else kernel)
    keep = values > values[-1] * len(values) * np.finfo(float).eps
    if not _is_faithful(rows, values, vectors, keep):
        lengths = row_norms(rows.T)
        columns = np.flatnonzero(lengths)
        if not sparse.issparse(rows) or len(columns) * len(values) <= DENSE_NUMBERS:
            return _careful_span(rows, columns[np.argsort(-lengths[columns], kind="stable")])
    root = np.sqrt(values[keep])
    return vectors[:, keep] * root, Span(rows, rows, vectors[:, keep] / root)


def _is_faithful(rows: Rows, values: Array, vectors: Array, keep: Mask) -> bool:
    """Whether the kept directions are accurate, and columns are mere rounding in the others."""
    if keep.any() and values[keep][0] < _ACCURATE * values[-1]:
        return False
    lost = np.zeros(rows.shape[1])
    # One at a time: there are few, and together they may be a very wide matrix.
    for vector in vectors[:, ~keep].T:
        lost += (rows.T @ vector) ** 2
    return bool((lost <= (_ACCURATE * row_norms(rows.T)) ** 2).all())


def _careful_span(rows: Rows, columns: Indices) -> tuple[Array, Span]:
    """Do the same by a QR decomposition of the transpose; ``columns`` are sorted, longest first."""
    # Sorted and pivoted, it is exact to the rounding of each column (Cox and Higham, 1998).
    dense = rows[:, columns]
    dense = dense.toarray() if sparse.issparse(dense) else dense
    Q, R, pivot = qr(dense.T, mode="economic", pivoting=True)
    coordinates = np.empty((rows.shape[0], len(R)))
    coordinates[pivot] = R.T
    row_starts = np.arange(0, Q.size + 1, len(columns))
    basis = sparse.csr_matrix((Q.T.ravel(), np.tile(columns, len(R)), row_starts), shape=(len(R), rows.shape[1]))
    return coordinates, Span(rows, basis if sparse.issparse(rows) else basis.toarray(), np.eye(len(R)))
