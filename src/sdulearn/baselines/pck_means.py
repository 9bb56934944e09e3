"""PCK-means: k-means that pays for every pair it breaks."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from sdulearn.answers.graph import AnswerGraph
from sdulearn.baselines.base import CentreClusterer
from sdulearn.pairs import Pairs
from sdulearn.sklearn_private import Interval
from sdulearn.types import Array, Indices, RandomState


class PCKMeans(CentreClusterer):
    """PCK-means (Basu, Banerjee and Mooney 2004): breaking a pair costs as much as a far centre.

    The objective is the sum of squared distances to the centres plus ``penalty`` for every broken
    pair, in units of the mean squared distance of a point to its centre. Starts are the means of the
    largest groups of similar pairs, and k-means++ where there are too few. Points in pairs
    are assigned one after the other, in random order.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    penalty : float, default=1.0
        What a broken pair costs.
    n_init : int, default=5
        Number of starts; the one with the lowest objective is kept.
    max_iter : int, default=50
        Largest number of iterations of one start.
    random_state : int, RandomState or None, default=None
        Seed of the starts and of the order.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        Cluster of each row.
    cluster_centers_ : array of shape (n_clusters, n_features)
        Means of the clusters.
    objective_ : float
        The objective reached.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of str
        Their names, where ``X`` was a frame with string column names.

    See Also
    --------
    ConstrainedKMeans : Breaks no pair at all.
    KMeansBaseline : Sees no pairs.

    References
    ----------
    S. Basu, A. Banerjee, R. Mooney. Active semi-supervision for pairwise constrained clustering. SDM 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.baselines import PCKMeans
    >>> X = np.array([[0.0, 0.0], [0.0, 3.0], [1.0, 0.0], [1.0, 3.0]])
    >>> labels = PCKMeans(penalty=20.0, random_state=0).fit_predict(X, [1, 1, -2, -2])
    >>> bool(labels[0] == labels[1] and labels[2] != labels[3])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CentreClusterer._parameter_constraints,
        "penalty": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

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

    def _cluster(self, X: Array, pairs: Pairs) -> None:
        graph = AnswerGraph.from_y(pairs)
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
            centers = _means(X, labels, centers)
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


def _means(X: Array, labels: Indices, last: Array) -> Array:
    """Means of the clusters; an empty one keeps its centre."""
    count = np.bincount(labels, minlength=len(last))[:, None]
    sums = np.column_stack([np.bincount(labels, column, len(last)) for column in X.T])
    return np.where(count > 0, sums / np.maximum(count, 1), last)


def _partners(ends: Indices, n_points: int) -> sparse.csr_array:
    """Row i has the points that share a pair with point i."""
    first, second = np.concatenate([ends, ends[:, ::-1]]).T
    return sparse.csr_array((np.ones(len(first)), (first, second)), (n_points, n_points))
