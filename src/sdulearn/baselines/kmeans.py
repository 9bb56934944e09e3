"""Plain k-means, which sees no pairs: what clustering alone finds."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from sdulearn.answers.graph import AnswerGraph
from sdulearn.baselines.base import CentreClusterer
from sdulearn.pairs import Pairs
from sdulearn.types import Array, RandomState


class KMeansBaseline(CentreClusterer):
    """K-means of the points, each once, with the interface of the other baselines.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    n_init : int, default=10
        Number of starts; the one with the lowest inertia is kept.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        Cluster of each row.
    cluster_centers_ : array of shape (n_clusters, n_features)
        Means of the clusters.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of str
        Their names, where ``X`` was a frame with string column names.

    See Also
    --------
    PCKMeans : Pays for every pair it breaks.
    ConstrainedKMeans : Breaks no pair at all.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.baselines import KMeansBaseline
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> labels = KMeansBaseline(random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    def __init__(self, n_clusters: int = 2, *, n_init: int = 10, random_state: RandomState = None) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.random_state = random_state

    def _cluster(self, X: Array, pairs: Pairs) -> None:
        graph = AnswerGraph.from_y(pairs)
        first = np.unique(graph.row_point, return_index=True)[1]
        found = KMeans(self.n_clusters, n_init=self.n_init, random_state=self.random_state).fit(X[first])
        self.cluster_centers_ = found.cluster_centers_
        self.labels_ = found.labels_[graph.row_point]
