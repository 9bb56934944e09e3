"""What the clusterings share: the check at the door, and ``fit_predict`` with pair codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from sdulearn.errors import InputError
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.types import Array


class PairClusterer(ClusterMixin, BaseEstimator):
    """A clustering of rows that may be ends of pairs."""

    n_clusters: int
    labels_: NDArray[np.intp]

    def fit_predict(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.intp]:
        """Fit, and return the cluster of every row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            One row per point.
        y : array-like of shape (n_rows,), optional
            Pair codes: +k similar, -k dissimilar, 0 unlabeled.

        Returns
        -------
        labels : array of shape (n_rows,)
            ``labels_``.
        """
        # ClusterMixin's own fit_predict drops y.
        return self.fit(X, y).labels_

    def _check_rows(self, X: Any, y: ArrayLike | None) -> tuple[Array, Pairs]:
        """Rows and pairs, checked once; no ``y`` means no pairs."""
        if y is None:
            X = validate_data(self, X, dtype=np.float64)
            y = np.zeros(len(X), dtype=np.int64)
        else:
            X, y = validate_data(self, X, y, dtype=np.float64)
        if len(X) < self.n_clusters:
            raise InputError(
                f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}. Add rows or lower n_clusters."
            )
        return X, read_pairs(y)
