"""The line search of every descent method: sufficient decrease (Armijo), up to rounding.

A step of length t along a direction of slope ``slope < 0`` is taken where

    J(t) <= J(0) + 1e-4 t slope + rounding.

Near the solution the decrease is smaller than the last digit of J, so without the last term no
step would pass. Three forms of it: one length after the other, many problems at once, and many
lengths at once where a pass over the rows costs more than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sdulearn.types import Array, Indices

# The usual constant of Armijo's rule: nearly every decrease is enough.
_SUFFICIENT = 1e-4
_SHRINK = 0.5
# Batches shrink faster: each further length is an evaluation of value and gradient.
_BATCH_SHRINK = 0.4
_BATCH_TRIES = 20

# Values and gradients, one column each, of the problems whose numbers are given.
Batch = Callable[[Array, Indices], tuple[Array, Array]]


def rounding_of(J: float, c: Array, w: Array) -> float:
    """What rounding may add to an objective ``J(w)`` with the linear term ``c.w``."""
    return 1e-15 * (abs(J) + float(np.abs(c) @ np.abs(w)))


def backtrack(value_at: Callable[[float], float], J: float, slope: float, rounding: float, tries: int) -> float:
    """Return the first of 1, 1/2, 1/4, ... that decreases J enough; 0 where none does."""
    for step in _SHRINK ** np.arange(tries):
        if value_at(step) <= J + _SUFFICIENT * step * slope + rounding:
            return float(step)
    return 0.0


def best_length(lengths: Array, values: Sequence[float], J: float, slope: float, rounding: float) -> float:
    """Return the length of the smallest value where that decreases J enough, else 0."""
    best = int(np.argmin(np.nan_to_num(values, nan=np.inf)))
    enough = values[best] <= J + _SUFFICIENT * lengths[best] * slope + rounding
    return float(lengths[best]) if enough else 0.0


def backtrack_many(
    value_and_gradient: Batch, W: Array, live: Indices, D: Array, f: Array, g: Array
) -> tuple[Array, Array, Array]:
    """Steps along ``-D`` for the problems ``live``, with values and gradients there; 0 where none decreases.

    Only the problems that fail try again.
    """
    slope = -np.einsum("ij,ij->j", g, D)
    # These values are means over rows, of order one.
    rounding = 1e-14
    step = np.ones(len(live))
    todo = np.arange(len(live))
    f_new = f.copy()
    g_new = g.copy()
    for _ in range(_BATCH_TRIES):
        f_try, g_try = value_and_gradient(W[:, todo] - step[todo] * D[:, todo], live[todo])
        good = f_try <= f[todo] + _SUFFICIENT * step[todo] * slope[todo] + rounding
        f_new[todo[good]] = f_try[good]
        g_new[:, todo[good]] = g_try[:, good]
        todo = todo[~good]
        if not len(todo):
            return step, f_new, g_new
        step[todo] *= _BATCH_SHRINK
    step[todo] = 0.0
    return step, f_new, g_new
