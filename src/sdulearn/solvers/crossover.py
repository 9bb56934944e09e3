"""From a nearly optimal point of double hinge to the exact one.

At the solution a few rows, no more than columns as a rule, lie on a kink ``|z| = flat``, where
their slope is free; every other row has the slope of its side. Given which rows those are, the
solution solves one linear system

    ridge w + A_B' theta_B = c - A_R' theta_R,    A_B w = side_B flat,

with B the rows on a kink and R the rest. The interior point method separates B from R long before
its last digit, and where it errs on a few rows, the solution of the system shows which.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from sdulearn.solvers.problem import Problem, Solution
from sdulearn.types import Array, Mask

_ROUNDS = 10
# More rows on kinks than so many times the columns are a sign of trouble, and a large system.
_MOST = 4
# A row whose distance to the kink and distance of its slope to a limit are both below this could be
# either.
_SAME = 1e-11
# Rows of length one this far apart, or less, count as equal.
_INDEPENDENT = 1e-7


def cross_over(problem: Problem, solution: Solution) -> Solution:
    """The exact solution where the rows on kinks can be identified, else the one given."""
    assert solution.dual is not None
    flat = problem.loss.flat
    z = problem.A @ solution.w
    share = np.abs(2 * solution.dual / problem.a)
    distance = np.abs(np.abs(z) - flat) / flat
    # On a kink, z is nearer to it than the slope is to either of its limits.
    doubt = distance / np.maximum(np.minimum(share, 1 - share), 1e-200)
    best = problem.certified(solution)
    for kinked in _guesses(doubt, len(solution.w)):
        side = np.where(kinked | (np.abs(z) > flat), np.sign(z), 0.0)
        best = _improved(problem, best, kinked, side)
        if best.optimality <= _SAME:
            break
    return best


def _guesses(doubt: Array, d: int) -> list[Mask]:
    """Rows that may be on a kink; where they are more than a vertex needs, the surest of them first."""
    kinked = doubt < 1
    count = int(np.count_nonzero(kinked))
    if not 0 < count <= _MOST * d:
        return []
    if count <= d:
        return [kinked]
    surest = np.zeros(len(doubt), dtype=bool)
    surest[np.argpartition(doubt, d - 1)[:d]] = True
    return [surest, kinked]


def _improved(problem: Problem, best: Solution, kinked: Mask, side: Array) -> Solution:
    """The better of a solution and what comes of a guess, revised until it no longer changes."""
    for _ in range(_ROUNDS):
        exact = problem.certified(_solve(problem, kinked, side, best.n_iter))
        if exact.optimality < best.optimality:
            best = exact
        now_kinked, now_side = _revise(problem, exact, kinked, side)
        unchanged = np.array_equal(now_kinked, kinked) and np.array_equal(now_side, side)
        if unchanged or not 0 < np.count_nonzero(now_kinked) <= _MOST * len(exact.w):
            break
        kinked = now_kinked
        side = now_side
    return best


def _solve(problem: Problem, kinked: Mask, side: Array, n_iter: int) -> Solution:
    """The linear system of the two sets, with the penalised part of w eliminated; refined once."""
    theta = np.where(kinked, 0.0, problem.a * side / 2)
    free = problem.ridge == 0
    inverse = np.where(free, 0.0, 1 / np.where(free, 1.0, problem.ridge))
    B, unit = _scaled_rows(problem, kinked, inverse)
    F = B[:, free]
    K = np.block([[(B * inverse) @ B.T, -F], [-F.T, np.zeros((F.shape[1],) * 2)]])
    k, d = B.shape
    w = np.zeros(d)
    slope = np.zeros(k)
    right = problem.c - problem.A.T @ theta
    level = side[kinked] * problem.loss.flat * unit
    for _ in range(2):
        unmet = right - problem.ridge * w - B.T @ slope
        step = inverse * unmet
        found = _smallest_solution(K, np.concatenate([B @ (w + step) - level, -unmet[free]]), k)
        slope += found[:k]
        w += step - inverse * (B.T @ found[:k])
        w[free] += found[k:]
    theta[kinked] = slope * unit
    return Solution(w, n_iter, theta)


def _scaled_rows(problem: Problem, kinked: Mask, inverse: Array) -> tuple[Array, Array]:
    """Rows on a kink and what they were multiplied by.

    Rows of one length make raw features harmless; with the root of its weight on each, equal rows
    share their slope in proportion to their weights.
    """
    B = problem.A[kinked]
    B = B.toarray() if sparse.issparse(B) else B
    length = np.sqrt(np.maximum(B**2 @ inverse, np.finfo(float).tiny))
    unit = np.sqrt(problem.a[kinked] / problem.a[kinked].max()) / length
    return B * unit[:, None], unit


def _smallest_solution(K: Array, right: Array, k: int) -> Array:
    """Equal rows on a kink make the system singular; of its solutions the smallest shares their slope fairly."""
    L, failed = lapack.dpotrf(K[:k, :k], lower=1)
    if not failed and L.diagonal().min() > _INDEPENDENT:
        return np.asarray(np.linalg.solve(K, right), dtype=np.float64)
    return np.asarray(np.linalg.lstsq(K, right, rcond=None)[0], dtype=np.float64)


def _revise(problem: Problem, exact: Solution, kinked: Mask, side: Array) -> tuple[Mask, Array]:
    """Rows whose slope left its limits leave their kink; rows that crossed a kink are put on it."""
    z = problem.A @ exact.w
    flat = problem.loss.flat
    share = 2 * np.asarray(exact.dual) * np.where(kinked, side, 0.0) / problem.a
    inside = kinked & (share < -_SAME)
    outside = kinked & (share > 1 + _SAME)
    now = np.where(np.abs(z) > flat * (1 + _SAME), np.sign(z), 0.0)
    was_flat = ~kinked & (side == 0) & (now != 0)
    was_steep = ~kinked & (side != 0) & (side * z < flat * (1 - _SAME))
    revised = np.where(inside, 0.0, np.where(was_flat, now, side))
    return (kinked & ~inside & ~outside) | was_flat | was_steep, revised
