"""Clusters of the points by the answers, where the chains of a crowd start, and their names.

Few classes show in the eigenvectors of the answers. Many do not, but their points are joined by answers "same"
that outweigh the others: with P(same) = s within a class and d between two, an answer between two groups adds

    log(s / d) for "same",   log((1 - s) / (1 - d)) for "different"                              (1)

to the log odds that the groups are one class, which are -log K before any answer. The two groups with the largest odds
become one until no odds are above 1; points then move to the group with the largest sum, and groups merge again.
"""

from __future__ import annotations

import heapq

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans

from sdulearn.types import Array, Codes, Indices, Mask

# s and d at the beginning, rounds that estimate them, and their least and largest values.
_SAME = (0.85, 0.1)
_ROUNDS = 4
_WITHIN = (0.5, 0.99)
_BETWEEN = (0.005, 0.4)
# Rounds in which points move to another group.
_MOVES = 5
_ROUNDING = 1e-9


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
    any_classes = np.tile(np.arange(n_points) % n_classes, (n_starts, 1))
    if n_points <= n_classes + 2:
        return any_classes
    weight = np.tile(same - same.mean(), 2)
    answers = csr_matrix((weight, (ends.T.ravel(), ends[:, ::-1].T.ravel())), shape=(n_points, n_points))
    scale = np.maximum(np.bincount(ends.ravel(), minlength=n_points), 1) ** -0.5
    matrix = diags(scale) @ answers @ diags(scale)
    if np.abs(matrix.data).max(initial=0.0) < _ROUNDING:
        # All answers are of one kind, or each question has as many of either.
        return any_classes
    # A start in the null space would not leave it.
    first = scale if np.abs(matrix @ scale).max() > _ROUNDING else np.random.default_rng(0).random(n_points)
    values, vectors = eigsh(matrix, n_classes, which="LA", v0=first, tol=1e-3)
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


def group_points(ends: Indices, same: Mask, weights: Array, n_points: int) -> tuple[Indices, Array]:
    """Return the group of each point by equation (1), and the log odds that each answer adds."""
    within, between = _SAME
    group = np.arange(n_points)
    odds = np.empty(len(ends))
    least = 0.0
    for _ in range(_ROUNDS):
        odds = weights * np.where(same, np.log(within / between), np.log((1 - within) / (1 - between)))
        group = _moved(_merged(ends, odds, n_points, least), ends, odds)
        least = float(np.log(group.max(initial=0) + 1))
        group = _merged(group[ends], odds, int(group.max(initial=0)) + 1, least)[group]
        equal = group[ends[:, 0]] == group[ends[:, 1]]
        # Each with the weight of a few answers of the first guess.
        rates = [
            (5 * first + weights @ (same & part)) / (5 + weights @ part)
            for first, part in zip(_SAME, (equal, ~equal), strict=True)
        ]
        within, between = np.clip(rates[0], *_WITHIN), np.clip(rates[1], *_BETWEEN)
    return group, odds


def _merged(ends: Indices, odds: Array, n: int, least: float) -> Indices:
    """Merge the two of n groups with the largest sum of odds, again and again, while it is above ``least``."""
    joined: list[dict[int, float]] = [{} for _ in range(n)]
    for (a, b), value in zip(ends.tolist(), odds.tolist(), strict=True):
        if a != b:
            joined[a][b] = joined[b][a] = joined[a].get(b, 0.0) + value
    heap = [(-x, a, b) for a in range(n) for b, x in joined[a].items() if a < b and x > least]
    heapq.heapify(heap)
    members: list[list[int]] = [[k] for k in range(n)]
    while heap:
        value, a, b = heapq.heappop(heap)
        # Sums that have changed since then are further down.
        if joined[a].get(b) != -value:
            continue
        if len(joined[a]) < len(joined[b]):
            a, b = b, a
        members[a] += members[b]
        members[b] = []
        del joined[a][b]
        for c, x in joined[b].items():
            if c != a:
                del joined[c][b]
                joined[a][c] = joined[c][a] = total = x + joined[a].get(c, 0.0)
                if total > least:
                    heapq.heappush(heap, (-total, min(a, c), max(a, c)))
        joined[b] = {}
    group = np.empty(n, dtype=np.intp)
    for number, points in enumerate(filter(None, members)):
        group[points] = number
    return group


def _moved(group: Indices, ends: Indices, odds: Array) -> Indices:
    """Move points to the groups with the largest sums of odds, one after the other, or out of all groups."""
    point = ends.T.ravel()
    order = np.argsort(point, kind="stable")
    other, value = ends[:, ::-1].T.ravel()[order], np.tile(odds, 2)[order]
    parts = np.searchsorted(point[order], np.arange(len(group) + 1))
    group = group.copy()
    free = int(group.max(initial=0)) + 1
    for _ in range(_MOVES):
        before = group.copy()
        for i in np.unique(point).tolist():
            part = slice(parts[i], parts[i + 1])
            names, place = np.unique(group[other[part]], return_inverse=True)
            sums = np.bincount(place, value[part])
            best = int(sums.argmax())
            if max(sums[best], 0.0) > sums[names == group[i]].sum() + 1e-9:
                group[i] = names[best] if sums[best] > 0 else free
                free += sums[best] <= 0
        if np.array_equal(group, before):
            break
    return np.unique(group, return_inverse=True)[1]
