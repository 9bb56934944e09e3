"""How well two clusters match two classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.types import Mask


def clustering_accuracy(y_true: ArrayLike, labels: ArrayLike) -> float:
    """Compute the accuracy of two clusters under the better of the two namings.

    That is ``1 - min(r, 1 - r)``, r the error rate. Never below 1/2, and a single cluster scores
    the share of the larger class: do not set it beside the accuracy of a classifier without saying
    so.

    Parameters
    ----------
    y_true : array-like of shape (n_points,)
        The classes, of at most two values.
    labels : array-like of shape (n_points,)
        The clusters, of at most two values.

    Returns
    -------
    float
        The accuracy, between 1/2 and 1.

    Raises
    ------
    InputError
        If there are more than two classes or clusters, or no points.

    See Also
    --------
    sklearn.metrics.adjusted_rand_score : Agreement of any numbers of clusters.

    Examples
    --------
    >>> from sdulearn.baselines import clustering_accuracy
    >>> clustering_accuracy([1, 1, -1, -1], [0, 0, 1, 0])
    0.75
    """
    truth = _is_larger_value(y_true, "y_true")
    cluster = _is_larger_value(labels, "labels")
    if truth.shape != cluster.shape:
        raise InputError(f"`y_true` has {len(truth)} points, but `labels` has {len(cluster)}; give one per point.")
    r = float(np.mean(truth != cluster))
    return 1 - min(r, 1 - r)


def _is_larger_value(values: ArrayLike, name: str) -> Mask:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"`{name}` must be a 1d array of at least one point, got shape {array.shape}.")
    kinds = np.unique(array)
    if len(kinds) > 2:
        raise InputError(
            f"`{name}` has {len(kinds)} different values, but this accuracy is for two. For more "
            "clusters use sklearn.metrics.adjusted_rand_score."
        )
    return np.asarray(array == kinds[-1])
