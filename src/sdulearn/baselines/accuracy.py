"""How well two clusters match two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdulearn.errors import InputError


def clustering_accuracy(y_true: ArrayLike, labels: ArrayLike) -> float:
    """Accuracy of two clusters under the better of the two namings: ``1 - min(r, 1 - r)``, r the error rate.

    Never below 1/2, and a single cluster scores the share of the larger class: do not set it beside
    the accuracy of a classifier without saying so.

    Parameters
    ----------
    y_true : array-like of shape (n_points,)
        The classes, of at most two values.
    labels : array-like of shape (n_points,)
        The clusters, of at most two values.

    Returns
    -------
    float
        Between 1/2 and 1.

    Examples
    --------
    >>> from sdulearn.baselines import clustering_accuracy
    >>> clustering_accuracy([1, 1, -1, -1], [0, 0, 1, 0])
    0.75
    """
    truth, cluster = _is_larger_value(y_true, "y_true"), _is_larger_value(labels, "labels")
    if truth.shape != cluster.shape:
        raise InputError(f"y_true has {len(truth)} points, but labels has {len(cluster)}; give one label per point.")
    r = float(np.mean(truth != cluster))
    return 1 - min(r, 1 - r)


def _is_larger_value(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name} must be a 1d array of at least one point, got shape {array.shape}.")
    kinds = np.unique(array)
    if len(kinds) > 2:
        raise InputError(
            f"{name} has {len(kinds)} different values, but this accuracy is for two. For more clusters use "
            "sklearn.metrics.adjusted_rand_score."
        )
    return np.asarray(array == kinds[-1])
