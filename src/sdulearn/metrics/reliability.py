"""Whether probabilities mean what they say: of rows with known classes, and of answers alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.types import Array, Indices


@dataclass(frozen=True, eq=False)
class Calibration:
    """A reliability table: what was predicted and what came, by bins of the prediction.

    Attributes
    ----------
    predicted : array of shape (n_bins,)
        Mean predicted probability of each bin that is not empty.
    observed : array of shape (n_bins,)
        Share of events in it.
    count : int array of shape (n_bins,)
        Number of predictions in it.
    error : float
        Expected calibration error: the mean distance of the two, by the counts; by chance above 0.
    """

    predicted: Array
    observed: Array
    count: Indices
    error: float


def calibration(probability: ArrayLike, event: ArrayLike, *, n_bins: int = 10) -> Calibration:
    """Reliability of predicted probabilities of events that are known.

    Parameters
    ----------
    probability : array-like of shape (n,)
        Predicted probabilities.
    event : array-like of shape (n,)
        Whether it came: booleans, or classes of which the positive ones count.
    n_bins : int, default=10
        Bins of equal width from 0 to 1.

    Returns
    -------
    Calibration
        The table and the expected calibration error.

    Examples
    --------
    >>> from sdulearn.metrics import calibration
    >>> found = calibration([0.1, 0.1, 0.9, 0.9], [-1, -1, 1, -1])
    >>> round(found.error, 3), found.observed
    (0.25, array([0. , 0.5]))
    """
    p = np.asarray(probability, dtype=np.float64)
    came = np.asarray(event) > 0
    if p.ndim != 1 or p.shape != came.shape or not ((p >= 0) & (p <= 1)).all():
        raise InputError("`probability` and `event` must be two columns of one length, the first from 0 to 1.")
    if not p.size:
        raise InputError("A calibration needs at least one prediction.")
    place = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
    count = np.bincount(place, minlength=n_bins)
    filled = count > 0
    predicted = np.bincount(place, weights=p, minlength=n_bins)[filled] / count[filled]
    observed = np.bincount(place, weights=came, minlength=n_bins)[filled] / count[filled]
    error = float(np.abs(predicted - observed) @ count[filled] / p.size)
    return Calibration(predicted, observed, count[filled], error)


def pair_calibration(probability: ArrayLike, y: ArrayLike, *, n_bins: int = 10) -> Calibration:
    """Reliability of the chance of "same" that a classifier gives to answers it has not seen.

    A classifier whose class probabilities are calibrated has calibrated chances of "same" for random pairs. The
    reverse need not hold.

    Parameters
    ----------
    probability : array-like of shape (n_rows, n_classes)
        ``predict_proba`` of the rows.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
        What is known of each row; at least one answer.
    n_bins
        As in :func:`calibration`.

    Returns
    -------
    Calibration
        The table and the expected calibration error, of answers.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.metrics import pair_calibration
    >>> p = np.array([0.9, 0.9, 0.9, 0.1])
    >>> found = pair_calibration(np.column_stack([1 - p, p]), [1, 1, -2, -2])
    >>> round(found.error, 2)
    0.18
    """
    pairs = read_pairs(y)
    return calibration(chance_of_same(probability, pairs), pairs.similar, n_bins=n_bins)


def chance_of_same(probability: ArrayLike, pairs: Pairs) -> Array:
    """Chance that the ends of each answer are of one class, where they are drawn independently."""
    p = np.asarray(probability, dtype=np.float64)
    if p.ndim != 2 or len(p) != len(pairs):
        raise InputError(f"`probability` has shape {p.shape}, but `y` has {len(pairs)} rows: give `predict_proba`.")
    same = np.einsum("ik,ik->i", p[pairs.ends[:, 0]], p[pairs.ends[:, 1]])
    return np.minimum(same, 1.0)
