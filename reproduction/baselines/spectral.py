"""Spectral clustering with pairs propagated over a neighbour graph."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.cluster import KMeans
from sklearn.neighbors import kneighbors_graph

from reproduction.baselines.base import PairClusterer
from sdulearn.answers import AnswerGraph
from sdulearn.types import Array, RandomState


class SpectralPairs(PairClusterer):
    """Semi-supervised spectral clustering: the "SSP" of the paper, after Chen & Feng (2012).

    The paper says of it: pairs propagated through the affinity, 5 nearest neighbours, sigma^2 = 1.
    Of Chen & Feng's article only the abstract was at hand (answers about single points are
    generalised to the space around them, and the graph is built on this enlarged knowledge). So
    this is *not* known to be their propagation: it is one with the same aim, E2CP of Lu & Ip
    (2010).

    1. W: Gaussian affinity ``exp(-|x-x'|^2 / (2 sigma2))`` on the symmetric neighbour graph.
    2. Z: +1 at similar, -1 at dissimilar pairs. F = (1-alpha)^2 (1-alpha S)^-1 Z (1-alpha S)^-1
       with S = D^-1/2 W D^-1/2: an answer about (i, j) spreads to every (i', j') with i' near i
       and j' near j.
    3. The affinity becomes ``1 - (1-F)(1-W)`` where F >= 0 and ``(1+F) W`` where F < 0.
    4. Ng, Jordan & Weiss: k-means on the leading eigenvectors of the normalised affinity, each row
       scaled to length one.

    It clusters the rows it is given and has no ``predict``: pass test points to ``fit`` as unlabeled
    rows (code 0). Where the affinity underflows (far points, ``sigma2`` small for the scale of the
    features) the graph falls into many parts, the leading eigenvectors are not unique, and the
    clusters mean little. The default of ``alpha``, how far pairs spread, is ours.
    """

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        n_neighbors: int = 5,
        sigma2: float = 1.0,
        alpha: float = 0.8,
        n_init: int = 10,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.sigma2 = sigma2
        self.alpha = alpha
        self.n_init = n_init
        self.random_state = random_state

    def _cluster(self, X: Array, graph: AnswerGraph) -> None:
        W = _neighbour_affinity(X, self.n_neighbors, self.sigma2)
        self.affinity_matrix_ = _adjust(W, _spread(_normalised(W), graph, self.alpha))
        embedding = _leading_eigenvectors(_normalised(self.affinity_matrix_), self.n_clusters)
        kmeans = KMeans(self.n_clusters, n_init=self.n_init, random_state=self.random_state)
        self.labels_ = kmeans.fit_predict(embedding)


def _neighbour_affinity(X: Array, n_neighbors: int, sigma2: float) -> Array:
    """Gaussian affinity of rows of which one at least is among the other's nearest."""
    if len(X) == 1:
        return np.zeros((1, 1))
    graph = kneighbors_graph(X, min(n_neighbors, len(X) - 1), mode="distance").tocoo()
    W = np.zeros((len(X), len(X)))
    W[graph.row, graph.col] = np.exp(-(graph.data**2) / (2 * sigma2))
    return np.maximum(W, W.T)


def _normalised(W: Array) -> Array:
    """D^-1/2 W D^-1/2, with zeros for a row that touches no other."""
    degree = W.sum(axis=1)
    scale = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1)), 0)
    return scale[:, None] * W * scale


def _spread(S: Array, graph: AnswerGraph, alpha: float) -> Array:
    """F = (1-alpha)^2 (1-alpha S)^-1 Z (1-alpha S)^-1, from the columns of the ends of pairs only."""
    ends = graph.end_rows
    n = len(S)
    hot = np.zeros((n, ends.size))
    hot[ends.T.ravel(), np.arange(ends.size)] = 1
    half = cho_solve(cho_factor(np.eye(n) - alpha * S), hot)
    first, second = np.hsplit(half, 2)
    F = (1 - alpha) ** 2 * (first * np.where(graph.same > 0, 1, -1)) @ second.T
    return F + F.T


def _adjust(W: Array, F: Array) -> Array:
    return np.where(F >= 0, 1 - (1 - F) * (1 - W), (1 + F) * W)


def _leading_eigenvectors(S: Array, count: int) -> Array:
    # The default driver finds nothing where a graph in many parts repeats the eigenvalue 1.
    vectors = eigh(S, driver="evd" if len(S) > 1 else None)[1][:, -count:]
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)
