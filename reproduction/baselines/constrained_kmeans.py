"""COP k-means: k-means that breaks no pair."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from reproduction.baselines.base import CentreClusterer, cluster_means
from sdulearn.answers import AnswerGraph
from sdulearn.errors import InputError
from sdulearn.pairs import Pairs
from sdulearn.types import Array, Codes, Indices, RandomState


class ConstrainedKMeans(CentreClusterer):
    """COP k-means (Wagstaff et al. 2001) with two clusters: similar rows together, dissimilar rows apart, always.

    The points of a component have two assignments, and it takes the *jointly* cheaper one. This is the exact minimum
    of the step, where Wagstaff goes through the points in order: every step lowers the inertia, and the order of rows
    does not matter. Starts are k-means++ on groups of similar points. ``predict`` knows no pairs.
    """

    def __init__(self, *, n_init: int = 10, max_iter: int = 300, random_state: RandomState = None) -> None:
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def _cluster(self, X: Array, pairs: Pairs) -> None:
        graph = AnswerGraph.from_y(pairs)
        if graph.contradictory.any():
            raise InputError("The answers contradict each other: no assignment to two clusters keeps them all.")
        component = graph.component[graph.row_point]
        side = graph.sides[graph.row_point]
        runs = [self._run(X, component, side, centers) for centers in self._starts(X, graph)]
        self.inertia_, self.labels_, self.cluster_centers_ = min(runs, key=lambda run: run[0])

    def _starts(self, X: Array, graph: AnswerGraph) -> list[Array]:
        rng = check_random_state(self.random_state)
        member = graph.group[graph.row_point]
        size = np.bincount(member)
        means = cluster_means(X, member, np.zeros((len(size), X.shape[1])))
        return [kmeans_plusplus(means, 2, sample_weight=size, random_state=rng)[0] for _ in range(self.n_init)]

    def _run(self, X: Array, component: Indices, side: Codes, centers: Array) -> tuple[float, Indices, Array]:
        """One start, until no row moves: inertia, clusters, centres."""
        labels = np.full(len(X), -1)
        for _ in range(self.max_iter):
            last = labels
            cost = euclidean_distances(X, centers, squared=True)
            gain = np.bincount(component, side * (cost[:, 0] - cost[:, 1]))[component]
            labels = ((side < 0) ^ (gain > 0)).astype(np.intp)
            centers = cluster_means(X, labels, centers)
            if np.array_equal(labels, last):
                break
        return float(np.sum((X - centers[labels]) ** 2)), labels, centers
