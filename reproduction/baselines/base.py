"""What the clusterings share: ``fit`` with pair codes, and the nearest centre."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_array

from sdulearn.answers import AnswerGraph
from sdulearn.types import Array, Indices, RandomState


class PairClusterer(ClusterMixin, BaseEstimator):
    """A clustering of rows that may be in answers; a subclass finds ``labels_``, the cluster of each row."""

    labels_: Indices

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Cluster the rows; no ``y`` means no pairs."""
        rows = check_array(X, dtype=np.float64)
        self._cluster(rows, AnswerGraph.from_y(np.zeros(len(rows), dtype=np.int64) if y is None else y))
        return self

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None) -> Indices:
        """Cluster of every row. ClusterMixin's own drops ``y``."""
        return self.fit(X, y).labels_

    def _cluster(self, X: Array, graph: AnswerGraph) -> None:
        raise NotImplementedError


class CentreClusterer(PairClusterer):
    """A clustering with centres, which new rows can be compared with."""

    cluster_centers_: Array

    def predict(self, X: ArrayLike) -> Indices:
        """The cluster whose centre is nearest; pairs do not count."""
        return pairwise_distances_argmin(self._coordinates(check_array(X, dtype=np.float64)), self.cluster_centers_)

    def _coordinates(self, X: Array) -> Array:
        """The rows in the space of the centres."""
        return X


class KMeansBaseline(CentreClusterer):
    """K-means of the points, each once, which sees no pairs: what clustering alone finds."""

    def __init__(self, n_clusters: int = 2, *, n_init: int = 10, random_state: RandomState = None) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.random_state = random_state

    def _cluster(self, X: Array, graph: AnswerGraph) -> None:
        row_point = graph.row_point
        first = np.unique(row_point, return_index=True)[1]
        found = KMeans(self.n_clusters, n_init=self.n_init, random_state=self.random_state).fit(X[first])
        self.cluster_centers_ = found.cluster_centers_
        self.labels_ = found.labels_[row_point]


def cluster_means(X: Array, weight: Array, labels: Indices, last: Array) -> Array:
    """Weighted means of the clusters; an empty one keeps its centre."""
    total = np.bincount(labels, weight, len(last))[:, None]
    sums = np.column_stack([np.bincount(labels, weight * column, len(last)) for column in X.T])
    return np.where(total > 0, sums / np.maximum(total, 1), last)
