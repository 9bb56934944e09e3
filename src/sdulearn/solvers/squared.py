"""Squared loss: one linear system, from the rows or from sums of their outer products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, qr, solve_triangular

from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.problem import Problem, Solution
from sdulearn.types import Array, Indices, Rows

# eigh takes as long as about nine Cholesky factors, at 50 columns and at 300.
_EIGENDECOMPOSITION_PAYS = 9
# What is left of a column's sum of squares after a subtraction, at least.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True)
class GroupMoments:
    """``gram[k] = sum weight x x'`` over the rows x of group k, whose last entry is 1.

    Additive: other rows are merged by ``+``, a fold is taken out by ``-``. The last row of a
    group's matrix holds the sum of its rows and, in the corner, their weight.
    """

    gram: Array

    @classmethod
    def from_rows(cls, A: Rows, group: Indices, weight: Array | None, n_groups: int) -> GroupMoments:
        """Moments of rows in ``n_groups`` groups. Only the smaller groups are gathered; the largest is the rest."""
        sizes = np.bincount(group, minlength=n_groups)
        largest = int(np.argmax(sizes))
        gram = np.zeros((n_groups, A.shape[1], A.shape[1]))
        gram[largest] = weighted_gram(A, weight)
        total = gram[largest].diagonal().copy()
        for k in np.flatnonzero(sizes):
            if k != largest:
                gram[k] = _group_gram(A, group, weight, int(k))
                gram[largest] -= gram[k]
        if (gram[largest].diagonal() < _LEAST_SHARE * total).any():
            # Others dominate it, by their weights or by an outlier: their rounding must not stay in it.
            gram[largest] = _group_gram(A, group, weight, largest)
        return cls(gram)

    def __add__(self, other: GroupMoments) -> GroupMoments:
        return GroupMoments(self.gram + other.gram)

    def __sub__(self, other: GroupMoments) -> GroupMoments:
        return GroupMoments(self.gram - other.gram)

    def is_dominated_by(self, other: GroupMoments) -> bool:
        """Whether these are what is left of far larger moments: little but rounding, somewhere."""
        left = np.einsum("kii->ki", self.gram)
        taken = np.einsum("kii->ki", other.gram)
        return bool((left < _LEAST_SHARE * taken).any())

    @property
    def weight(self) -> Array:
        """Weight of each group."""
        return self.gram[:, -1, -1]

    @property
    def total(self) -> Array:
        """Weighted sum of the rows of each group."""
        return self.gram[:, -1, :]

    def shifted(self, by: Array) -> GroupMoments:
        """The moments of the rows ``x + by`` (the 1 stays)."""
        gram = self.gram.copy()
        move = np.append(by, 0.0)
        for G, total, weight in zip(gram, self.total, self.weight, strict=True):
            cross = np.outer(move, total + weight / 2 * move)
            G += cross + cross.T
        return GroupMoments(gram)

    def weighted(self, a: Array, m: Array, fit_intercept: bool) -> tuple[Array, Array]:
        """``sum a x x'`` and ``sum m x`` over all rows, from a and m per unit of row weight in each group."""
        keep = slice(None) if fit_intercept else slice(-1)
        second = np.tensordot(a, self.gram, axes=1)
        return second[keep, keep], (m @ self.total)[keep]


def ridge_path(second: Array, c: Array, curvature: float, alphas: Sequence[float], fit_intercept: bool) -> Array:
    """Solutions of squared loss for all penalties, the free intercept (last) eliminated first.

    One eigendecomposition serves every alpha; for a few of them as many Cholesky factors cost less.
    """
    H = curvature * second
    if not fit_intercept:
        return _solve_shifted(H, c, alphas)
    column = H[:-1, -1]
    corner = H[-1, -1]
    reduced = H[:-1, :-1] - np.outer(column, column / corner)
    W = _solve_shifted(reduced, c[:-1] - column * (c[-1] / corner), alphas)
    return np.column_stack([W, (c[-1] - W @ column) / corner])


def _group_gram(A: Rows, group: Indices, weight: Array | None, k: int) -> Array:
    rows = np.flatnonzero(group == k)
    return weighted_gram(_gather(A, rows), None if weight is None else weight[rows])


def _gather(A: Rows, rows: Indices) -> Rows:
    """Some rows, in the memory order of the whole: a table read column by column stays fast."""
    if sparse.issparse(A) or A.flags.c_contiguous:
        return A[rows]
    return A.T.take(rows, axis=1).T


def _solve_shifted(H: Array, c: Array, alphas: Sequence[float]) -> Array:
    """``(H + alpha I)^-1 c`` for every alpha."""
    if len(alphas) < _EIGENDECOMPOSITION_PAYS:
        return np.array([_solve_refined(H, c, float(alpha)) for alpha in alphas])
    values, V = eigh(H)
    shifted = np.maximum(values, 0) + np.asarray(alphas, dtype=np.float64)[:, None]
    return ((c @ V) / shifted) @ V.T


def _solve_refined(H: Array, c: Array, alpha: float) -> Array:
    cholesky = Cholesky(H, np.full(len(c), alpha))
    w = cholesky.solve(c)
    return w + cholesky.solve(c - H @ w - alpha * w)


# Below this pivot, in units of the diagonal, the normal equations have lost half of their digits.
_WEAK = 1e-9
# Rows are decomposed up to so many numbers (256 MB).
_DENSE_NUMBERS = 1 << 25


def solve_closed_form(problem: Problem, tol: float, max_iter: int, starts: Sequence[Solution] = ()) -> Solution:
    """``(curvature A' diag(a) A + ridge) w = c``, refined until rounding is all that is left."""
    curved = problem.loss.curvature * problem.a
    cholesky = Cholesky(weighted_gram(problem.A, curved), problem.ridge)
    solve: Callable[[Array], Array] = cholesky.solve
    if cholesky.weakest < _WEAK and problem.A.shape[0] * problem.A.shape[1] <= _DENSE_NUMBERS:
        solve = _careful_factor(problem, curved)
    w = solve(problem.c)
    for _ in range(2):
        residual = problem.c - problem.ridge * w - problem.A.T @ (curved * (problem.A @ w))
        w = w + solve(residual)
    return Solution(w, 1)


def _careful_factor(problem: Problem, curved: Array) -> Callable[[Array], Array]:
    """The same system by a QR decomposition of the rows, which never squares their rounding."""
    A = problem.A.toarray() if sparse.issparse(problem.A) else problem.A
    unit = np.sqrt(problem.column_scale**2 / problem.a.sum() + problem.ridge)
    unit[unit == 0] = 1.0
    stacked = np.vstack([np.sqrt(curved)[:, None] * A, np.diag(np.sqrt(problem.ridge))]) / unit
    # Longest rows first, columns pivoted: exact to the rounding of each row by itself.
    longest = np.argsort(-np.einsum("ij,ij->i", stacked, stacked), kind="stable")
    R, pivot = qr(stacked[longest], mode="r", pivoting=True)
    R = R[: len(unit)]
    # A column of zeros without ridge has no pivot; any will do, for its right-hand side is zero.
    empty = R.diagonal() == 0
    R[empty, empty] = 1.0

    def solve(b: Array) -> Array:
        half = solve_triangular(R, (b / unit)[pivot], trans="T")
        found = np.empty_like(b)
        found[pivot] = solve_triangular(R, half)
        return found / unit

    return solve
