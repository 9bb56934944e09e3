"""PCK-means: k-means that pays for every pair it breaks."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from reproduction.baselines.base import CentreClusterer, cluster_means
from sdulearn.answers import AnswerGraph
from sdulearn.types import Array, Indices, RandomState


class PCKMeans(CentreClusterer):
    """PCK-means (Basu, Banerjee and Mooney 2004): breaking a pair costs as much as a far centre.

    The objective is the sum of squared distances to the centres plus ``penalty`` for every broken
    pair, in units of the mean squared distance of a point to its centre. Starts are the means of the
    largest groups of similar pairs, and k-means++ where there are too few. Points in pairs
    are assigned one after the other, in random order.
    """

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        penalty: float = 1.0,
        n_init: int = 5,
        max_iter: int = 50,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.penalty = penalty
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def _cluster(self, X: Array, graph: AnswerGraph) -> None:
        first = np.unique(graph.row_point, return_index=True)[1]
        points = X[first]
        rng = check_random_state(self.random_state)
        similar, dissimilar = (_partners(graph.ends[kind], len(points)) for kind in (graph.same > 0, graph.same < 0))
        runs = [
            self._run(points, self._start(points, graph, rng), similar, dissimilar, rng) for _ in range(self.n_init)
        ]
        self.objective_, labels, self.cluster_centers_ = min(runs, key=lambda run: run[0])
        self.labels_ = labels[graph.row_point]

    def _start(self, X: Array, graph: AnswerGraph, rng: np.random.RandomState) -> Array:
        """Means of the largest groups that stand apart, weighted by size; the rest by k-means++."""
        size = np.bincount(graph.group)
        large = np.flatnonzero(size > 1)
        sums = np.column_stack([np.bincount(graph.group, column) for column in X.T])
        means = sums[large] / size[large][:, None]
        if len(large) >= self.n_clusters:
            return kmeans_plusplus(means, self.n_clusters, sample_weight=size[large], random_state=rng)[0]
        return kmeans_plusplus(X, self.n_clusters, random_state=rng)[0]

    def _run(
        self,
        X: Array,
        centers: Array,
        similar: sparse.csr_array,
        dissimilar: sparse.csr_array,
        rng: np.random.RandomState,
    ) -> tuple[float, Indices, Array]:
        """One start, until no point moves."""
        bound = np.flatnonzero(np.diff(similar.indptr) + np.diff(dissimilar.indptr))
        cost = euclidean_distances(X, centers, squared=True)
        labels = cost.argmin(axis=1)
        unit = self.penalty * float(cost.min(axis=1).mean())
        for _ in range(self.max_iter):
            last = labels.copy()
            free = cost.argmin(axis=1)
            free[bound] = labels[bound]
            labels = free
            for i in rng.permutation(bound).tolist():
                labels[i] = np.argmin(cost[i] + unit * self._broken(labels, i, similar, dissimilar))
            centers = cluster_means(X, np.ones(len(X)), labels, centers)
            cost = euclidean_distances(X, centers, squared=True)
            if np.array_equal(labels, last):
                break
        pairs_broken = sum(self._broken(labels, i, similar, dissimilar)[labels[i]] for i in bound.tolist()) / 2
        return float(cost[np.arange(len(X)), labels].sum() + unit * pairs_broken), labels, centers

    def _broken(self, labels: Indices, i: int, similar: sparse.csr_array, dissimilar: sparse.csr_array) -> Indices:
        """How many pairs of point ``i`` each cluster would break."""
        together = similar.indices[similar.indptr[i] : similar.indptr[i + 1]]
        apart = dissimilar.indices[dissimilar.indptr[i] : dissimilar.indptr[i + 1]]
        kept = np.bincount(labels[together], minlength=self.n_clusters)
        return len(together) - kept + np.bincount(labels[apart], minlength=self.n_clusters)


def _partners(ends: Indices, n_points: int) -> sparse.csr_array:
    """Row i has the points that share a pair with point i."""
    first, second = np.concatenate([ends, ends[:, ::-1]]).T
    return sparse.csr_array((np.ones(len(first)), (first, second)), (n_points, n_points))
