"""Clusters of the points by the answers, where the chains of a crowd start, and their names."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans

from sdulearn.types import Array, Codes, Indices


def colour_points(ends: Indices, n_points: int) -> Indices:
    """Colour points greedily, so that no answer joins two points of the same colour."""
    ones = np.ones(2 * len(ends))
    joined = csr_matrix((ones, (ends.T.ravel(), ends[:, ::-1].T.ravel())), shape=(n_points, n_points))
    colour = np.full(n_points, -1)
    for i in np.argsort(-np.diff(joined.indptr), kind="stable").tolist():
        used = np.unique(colour[joined.indices[joined.indptr[i] : joined.indptr[i + 1]]])
        used = used[used >= 0]
        colour[i] = np.argmax(np.append(used, -1) != np.arange(len(used) + 1))
    return colour


def cluster_points(ends: Indices, same: Codes, n_points: int, n_classes: int, n_starts: int) -> Indices:
    """Cluster (n_starts, n_points) by k-means of the top eigenvectors of the centred answers.

    Every other two starts have a cluster too many, and the two closest are one: others than those that k-means merges.
    """
    if n_points <= n_classes + 2:
        return np.tile(np.arange(n_points) % n_classes, (n_starts, 1))
    weight = np.tile(same - same.mean(), 2)
    answers = csr_matrix((weight, (ends.T.ravel(), ends[:, ::-1].T.ravel())), shape=(n_points, n_points))
    scale = np.maximum(np.bincount(ends.ravel(), minlength=n_points), 1) ** -0.5
    values, vectors = eigsh(diags(scale) @ answers @ diags(scale), n_classes, which="LA", v0=scale, tol=1e-3)
    # In descending order of the eigenvalues.
    places = (vectors * np.sqrt(np.maximum(values, 0.0)) / scale[:, None])[:, ::-1]
    starts = []
    for k in range(n_starts):
        more = k % 4 // 2
        means = KMeans(n_classes + more, n_init=1, random_state=k).fit(places[:, : n_classes - 1 + more])
        starts.append(_merge_closest(means.labels_, means.cluster_centers_) if more else means.labels_)
    return np.array(starts, dtype=np.intp)


def _merge_closest(cluster: Indices, centres: Array) -> Indices:
    """Merge the two clusters whose centres are closest; the last one gives its number to the other."""
    distance = np.linalg.norm(centres[:, None] - centres, axis=2)
    np.fill_diagonal(distance, np.inf)
    first, second = np.unravel_index(np.argmin(distance), distance.shape)
    cluster = np.where(cluster == second, first, cluster)
    return np.where(cluster == len(centres) - 1, second, cluster)


def match_clusters(cluster: Indices, labels: Codes, n_classes: int) -> Indices:
    """Renumber clusters so that most labelled points are in the cluster of their class, -1 where it is unknown."""
    known = np.flatnonzero(labels >= 0)
    votes = np.zeros((n_classes, n_classes))
    np.add.at(votes, (cluster[known], labels[known]), 1.0)
    return linear_sum_assignment(-votes)[1][cluster]


def align_classes(posteriors: Array) -> tuple[list[Indices], Array]:
    """Return the order of the classes of each chain that agrees best with all, and the mean."""
    merged = posteriors[0]
    for _ in range(3):
        orders = [linear_sum_assignment(-merged.T @ chain)[1] for chain in posteriors]
        merged = np.mean([chain[:, order] for chain, order in zip(posteriors, orders, strict=True)], axis=0)
    return orders, merged
