"""COP k-means: k-means that breaks no pair."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from reproduction.baselines.base import CentreClusterer, cluster_means
from sdulearn.answers import AnswerGraph
from sdulearn.errors import InputError
from sdulearn.types import Array, Codes, Indices, RandomState


class ConstrainedKMeans(CentreClusterer):
    """COP k-means (Wagstaff et al. 2001) with two clusters: similar rows together, dissimilar rows apart, always.

    Rows that similar pairs join are one weighted point. Points that dissimilar pairs join have two assignments, and
    take the *jointly* cheaper one. This is the exact minimum of the step, where Wagstaff goes through the points in
    order: every step lowers the inertia, and the order of rows does not matter. ``predict`` knows no pairs.
    """

    def __init__(self, *, n_init: int = 10, max_iter: int = 300, random_state: RandomState = None) -> None:
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def _cluster(self, X: Array, graph: AnswerGraph) -> None:
        if graph.contradictory.any():
            raise InputError("The answers contradict each other: no assignment to two clusters keeps them all.")
        member = graph.group[graph.row_point]
        weight = np.bincount(member).astype(np.float64)
        offset = X.mean(axis=0)
        means = cluster_means(X - offset, np.ones(len(X)), member, np.zeros((len(weight), X.shape[1])))
        first = np.unique(graph.group, return_index=True)[1]
        rng = check_random_state(self.random_state)
        starts = [kmeans_plusplus(means, 2, sample_weight=weight, random_state=rng)[0] for _ in range(self.n_init)]
        runs = [self._run(means, weight, graph.component[first], graph.sides[first], start) for start in starts]
        _, labels, centers = min(runs, key=lambda run: run[0])
        self.labels_ = labels[member]
        self.cluster_centers_ = centers + offset
        self.inertia_ = float(np.sum((X - self.cluster_centers_[self.labels_]) ** 2))

    def _run(
        self, X: Array, weight: Array, component: Indices, side: Codes, centers: Array
    ) -> tuple[float, Indices, Array]:
        """One start, until no point moves: inertia but for a constant, clusters, centres."""
        labels = np.full(len(X), -1)
        for _ in range(self.max_iter):
            last = labels
            cost = weight[:, None] * euclidean_distances(X, centers, squared=True)
            gain = np.bincount(component, side * (cost[:, 0] - cost[:, 1]))[component]
            labels = ((side < 0) ^ (gain > 0)).astype(np.intp)
            centers = cluster_means(X, weight, labels, centers)
            if np.array_equal(labels, last):
                break
        cost = weight[:, None] * euclidean_distances(X, centers, squared=True)
        return float(cost[np.arange(len(X)), labels].sum()), labels, centers
