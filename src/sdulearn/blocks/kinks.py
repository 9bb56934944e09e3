"""What double hinge asks of rows: sums with its kinks rounded, and the rows on or across a kink."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sdulearn.blocks.problem import RowRule
from sdulearn.blocks.smooth import LENGTHS
from sdulearn.blocks.source import Sums
from sdulearn.solvers.linalg import weighted_gram
from sdulearn.solvers.pieces import joined
from sdulearn.types import Array, Codes, Mask, Rows


def rounded_sums(
    X: Rows,
    y: Codes,
    weight: Array | None,
    rule: RowRule,
    w: Array,
    before: Array,
    delta: float,
) -> Sums:
    """Value, slopes and second moments at w of the sum with its kinks rounded over ``flat +- delta``; value before.

    And for the sum as it is: by how much its value exceeds the rounded one, and the duality gap of
    the rounded slopes.
    """
    d = len(w)
    found = Sums(value=0.0, before=0.0, excess=0.0, gap=0.0, kinked=0.0)
    found |= {"slopes": np.zeros(d), "second": np.zeros((d, d))}
    flat = rule.loss.flat
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        slope = _ramp(z - flat, delta) - _ramp(-z - flat, delta)
        rounded = _rounded(z, flat, delta)
        exact = rule.loss.even(z)
        found["value"] += float(a @ rounded)
        found["before"] += float(a @ _rounded(A @ before, flat, delta))
        found["excess"] += float(a @ (exact - rounded))
        found["gap"] += float(a @ (exact + rule.loss.even_conjugate(slope) - slope * z))
        found["slopes"] += A.T @ (a * slope)
        # A row is near both kinks where the rounding is wider than the flat part.
        kinks = (np.abs(z - flat) < delta).astype(np.float64) + (np.abs(z + flat) < delta)
        kinked = np.flatnonzero(kinks)
        found["kinked"] += float(a[kinked].sum())
        found["second"] += weighted_gram(A[kinked], (a * kinks)[kinked] / (4 * delta))
    return found


def rounded_line(X: Rows, y: Codes, weight: Array | None, rule: RowRule, w: Array, step: Array, delta: float) -> Sums:
    """The rounded sum alone, at many points of a line."""
    value = np.zeros(len(LENGTHS))
    for A, a in rule.pieces(X, y, weight):
        z = A @ w
        dz = A @ step
        value += [float(a @ _rounded(z + t * dz, rule.loss.flat, delta)) for t in LENGTHS]
    return Sums(value=value)


def _ramp(x: Array, delta: float) -> Array:
    """Derivative of ``max(0, x) / 2`` with its kink rounded: from 0 at -delta to 1/2 at delta."""
    return np.clip(x / delta + 1, 0, 2) / 4


def _rise(x: Array, delta: float) -> Array:
    """The integral of :func:`_ramp`."""
    past = np.maximum(x + delta, 0)
    return np.where(past < 2 * delta, past**2 / (8 * delta), (past - delta) / 2)


def _rounded(z: Array, flat: float, delta: float) -> Array:
    """``even(z)`` with rounded kinks."""
    return flat / 2 + _rise(z - flat, delta) + _rise(-z - flat, delta)


def sift(
    X: Rows,
    y: Codes,
    weight: Array | None,
    rule: RowRule,
    points: list[Array],
    delta: float,
    limit: int,
) -> Sums:
    """With one point: rows within delta of a kink. With more: those that changed sides at the last point only.

    Beside them: at the first point, ``slopes`` and ``level`` of the linear functions that all rows
    are on their sides; at the last, the ``gap`` by which rows that changed sides exceed theirs.
    ``known`` counts the rows that were gathered before, as a check that all passes find the same
    ones. Above ``limit`` rows none are given.
    """
    found = Sums(rows=[], a=[], side=[], overflow=0, level=0.0, gap=0.0, known=0, given=0)
    found["slopes"] = np.zeros(len(points[0]))
    for A, a in rule.pieces(X, y, weight):
        # Point by point: a product with all of them at once may round a row on a kink to its other
        # side.
        Z = np.column_stack([A @ w for w in points])
        sides = np.sign(Z) * (np.abs(Z) > rule.loss.flat)
        near = np.abs(np.abs(Z[:, 0]) - rule.loss.flat) <= delta
        chosen = near
        if len(points) == 1:
            _add_linear(found, rule.loss.flat, A, a, sides[:, 0])
        else:
            chosen = _add_changed(found, rule, a, Z[:, -1], sides, near)
        if chosen.any():
            found["rows"].append(A[chosen])
            found["a"].append(a[chosen])
            found["side"].append(sides[chosen, 0])
    found["given"] = _count(found)
    if found["given"] > limit:
        _merge_equal(found)
    if _count(found) > limit:
        found |= Sums(rows=[], a=[], side=[], overflow=1)
    return found


def _count(found: Sums) -> int:
    return sum(len(part) for part in found["a"])


def _add_linear(found: Sums, flat: float, A: Rows, a: Array, side: Array) -> None:
    """The linear functions that the rows are on their sides."""
    found["slopes"] += A.T @ (a * side) / 2
    found["level"] += flat / 2 * float(a[side == 0].sum())


def _add_changed(found: Sums, rule: RowRule, a: Array, z: Array, sides: Array, near: Mask) -> Mask:
    """The rows that changed sides at the last point only, and the gap of their linear functions."""
    first = sides[:, 0]
    before = near | (sides[:, 1:-1] != first[:, None]).any(axis=1)
    changed = ~before & (sides[:, -1] != first)
    found["known"] += int(before.sum())
    linear = np.where(first == 0, rule.loss.flat, first * z)[changed] / 2
    found["gap"] += float(a[changed] @ (rule.loss.even(z[changed]) - linear))
    return changed


def _merge_equal(found: Sums) -> None:
    """Equal rows as one of their joint weight: a table of categories has few different ones."""
    rows = joined(found["rows"])
    rows = rows.toarray() if sparse.issparse(rows) else rows
    keys = np.column_stack([rows, joined(found["side"])])
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    found["rows"] = [distinct[:, :-1]]
    found["side"] = [distinct[:, -1]]
    found["a"] = [np.bincount(place.ravel(), weights=joined(found["a"]))]
