"""What the clusterings share: checks, ``fit`` with pair codes, and the nearest centre."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted, validate_data

from sdulearn.base import check_rows_and_pairs
from sdulearn.errors import InputError
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.sklearn_private import Interval, fit_context
from sdulearn.types import Array, Indices, MatrixLike, RandomState


class PairClusterer(ClusterMixin, BaseEstimator):
    """A clustering of rows that may be ends of pairs."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    n_clusters: int
    n_init: int
    random_state: RandomState
    labels_: Indices

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Self:
        """Cluster the rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            One row per point.
        y : array-like of shape (n_rows,), optional
            Pair codes: +k similar, -k dissimilar, 0 unlabeled. None clusters without pairs.

        Returns
        -------
        object
            The clustering itself, fitted.
        """
        rows, pairs = self._check_rows(X, y)
        self._cluster(rows, pairs)
        return self

    def fit_predict(self, X: MatrixLike, y: ArrayLike | None = None) -> Indices:
        """Fit, and return the cluster of every row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            One row per point.
        y : array-like of shape (n_rows,), optional
            Pair codes: +k similar, -k dissimilar, 0 unlabeled.

        Returns
        -------
        array of shape (n_rows,)
            The attribute ``labels_``.
        """
        # ClusterMixin's own fit_predict drops y.
        return self.fit(X, y).labels_

    def _cluster(self, X: Array, pairs: Pairs) -> None:
        """Cluster checked rows: set ``labels_`` and what else the method learns."""
        raise NotImplementedError

    def _check_rows(self, X: MatrixLike, y: ArrayLike | None) -> tuple[Array, Pairs]:
        """Rows and pairs, checked once; no ``y`` means no pairs."""
        if y is None:
            X = validate_data(self, X, dtype=np.float64)
            y = np.zeros(len(X), dtype=np.int64)
        else:
            X, y = check_rows_and_pairs(self, X, y, dtype=np.float64)
        if len(X) < self.n_clusters:
            raise InputError(
                f"n_samples={len(X)} should be >= `n_clusters={self.n_clusters}`. Add rows or lower `n_clusters`."
            )
        return X, read_pairs(y)


class CentreClusterer(PairClusterer):
    """A clustering with centres, which new rows can be compared with."""

    cluster_centers_: Array

    def predict(self, X: MatrixLike) -> Indices:
        """Find the cluster whose centre is nearest.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            Rows; what pairs they are in does not matter here.

        Returns
        -------
        array of shape (n_rows,)
            Numbers of clusters.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return pairwise_distances_argmin(self._coordinates(rows), self.cluster_centers_)

    def _coordinates(self, X: Array) -> Array:
        """The rows in the space of the centres."""
        return X
