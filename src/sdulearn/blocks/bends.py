"""What double hinge asks of rows: sums with its bends rounded, and the rows on or across a bend."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sdulearn.blocks.problem import RowRule, joined
from sdulearn.blocks.source import Sums
from sdulearn.solvers.linalg import weighted_gram
from sdulearn.types import Array


def rounded_sums(
    X: Any, y: NDArray[np.int64], weight: Array | None, rule: RowRule, w: Array, before: Array, delta: float
) -> Sums:
    """Value, slopes and second moments at w of the sum with its bends rounded over ``flat +- delta``; value before.

    And for the sum as it is: by how much its value exceeds the rounded one, and the duality gap of
    the rounded slopes.
    """
    d = len(w)
    found = Sums(value=0.0, before=0.0, excess=0.0, gap=0.0, bent=0.0, slopes=np.zeros(d), second=np.zeros((d, d)))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        up, down = (sign * z - rule.loss.flat for sign in (1, -1))
        slope = _ramp(up, delta) - _ramp(down, delta)
        rounded, exact = _rounded(z, rule.loss.flat, delta), rule.loss.even(z)
        found["value"] += float(a @ rounded)
        found["before"] += float(a @ _rounded(A @ before, rule.loss.flat, delta))
        found["excess"] += float(a @ (exact - rounded))
        found["gap"] += float(a @ (exact + rule.loss.even_conjugate(slope) - slope * z))
        found["slopes"] += A.T @ (a * slope)
        bends = (np.abs(up) < delta).astype(np.float64) + (np.abs(down) < delta)
        bent = np.flatnonzero(bends)
        found["bent"] += float(a[bent].sum())
        found["second"] += weighted_gram(A[bent], (a * bends)[bent] / (4 * delta))
    return found


def rounded_line(
    X: Any,
    y: NDArray[np.int64],
    weight: Array | None,
    rule: RowRule,
    w: Array,
    step: Array,
    delta: float,
    lengths: Array,
) -> Sums:
    """The rounded sum alone, at many points of a line."""
    value = np.zeros(len(lengths))
    for A, a in rule.pieces(X, y, weight):
        z, dz = A @ w, A @ step
        value += [float(a @ _rounded(z + t * dz, rule.loss.flat, delta)) for t in lengths]
    return Sums(value=value)


def _ramp(x: Array, delta: float) -> Array:
    """Derivative of ``max(0, x) / 2`` with its bend rounded: from 0 at -delta to 1/2 at delta."""
    return np.clip(x / delta + 1, 0, 2) / 4


def _rounded(z: Array, flat: float, delta: float) -> Array:
    """``even(z)`` with rounded bends: ``flat / 2`` and the integrals of both ramps."""
    up, down = (np.maximum(sign * z - flat + delta, 0) for sign in (1, -1))
    rise = [np.where(x < 2 * delta, x**2 / (8 * delta), (x - delta) / 2) for x in (up, down)]
    return flat / 2 + rise[0] + rise[1]


def sift(
    X: Any, y: NDArray[np.int64], weight: Array | None, rule: RowRule, points: list[Array], delta: float, limit: int
) -> Sums:
    """With one point: rows within delta of a bend. With more: those that changed sides at the last point only.

    Beside them: at the first point, ``slopes`` and ``level`` of the linear functions that all rows
    are on their sides; at the last, the ``gap`` by which rows that changed sides exceed theirs.
    ``known`` counts the rows that were brought together before, as a check that all passes tell
    them apart alike. Above ``limit`` rows none are given.
    """
    flat, d = rule.loss.flat, len(points[0])
    found = Sums(rows=[], a=[], side=[], overflow=0, slopes=np.zeros(d), level=0.0, gap=0.0, known=0, given=0)
    for A, a in rule.pieces(X, y, weight):
        # Point by point: a product with all of them at once may round a row on a bend to its other
        # side.
        Z = np.column_stack([A @ w for w in points])
        sides = np.sign(Z) * (np.abs(Z) > flat)
        side, near = sides[:, 0], np.abs(np.abs(Z[:, 0]) - flat) <= delta
        if len(points) == 1:
            found["slopes"] += A.T @ (a * side) / 2
            found["level"] += flat / 2 * float(a[side == 0].sum())
            chosen = near
        else:
            before = near | (sides[:, 1:-1] != side[:, None]).any(axis=1)
            chosen = ~before & (sides[:, -1] != side)
            found["known"] += int(before.sum())
            z = Z[chosen, -1]
            linear = np.where(side[chosen] == 0, flat, side[chosen] * z) / 2
            found["gap"] += float(a[chosen] @ (rule.loss.even(z) - linear))
        if chosen.any():
            for name, part in (("rows", A[chosen]), ("a", a[chosen]), ("side", side[chosen])):
                found[name].append(part)
    found["given"] = sum(len(part) for part in found["a"])
    if found["given"] > limit:
        _merge_equal(found)
    if sum(len(part) for part in found["a"]) > limit:
        found |= Sums(rows=[], a=[], side=[], overflow=1)
    return found


def _merge_equal(found: Sums) -> None:
    """Equal rows as one of their joint weight: a table of categories has few different ones."""
    rows, a, side = (joined(found[name]) for name in ("rows", "a", "side"))
    rows = rows.toarray() if sparse.issparse(rows) else rows
    distinct, place = np.unique(np.column_stack([rows, side]), axis=0, return_inverse=True)
    found["rows"], found["side"] = [distinct[:, :-1]], [distinct[:, -1]]
    found["a"] = [np.bincount(place.ravel(), weights=a)]
