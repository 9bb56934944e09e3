"""Where a fit with K classes begins: k-means of all points in what the answers say of the directions.

With centred rows and classes of mean mu_k and share pi_k, over random pairs

    E[x x'^T | same] - E[x x'^T | different] = sum_k pi_k^2 mu_k mu_k^T (1 / P(same) + 1 / P(different))    (1)

so that the top K - 1 eigenvectors of its estimate, the *pair moment*, span the class means. Points in
a group are all pairs of it, with weights that count the group by its points. The moment is taken
between whitened rows, half-whitened rows, or not at all: which is best differs between data. K-means
goes over groups, by their means, and over all other points. Its clusters make a linear discriminant, whose logits are
shrunk: from soft classes the objective finds better solutions than from hard ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve, svd
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from sdulearn.answers.graph import different_groups
from sdulearn.joint.classes import ClassLikelihood
from sdulearn.types import Array, Codes, Indices

# Power of the variance of each axis by which rows are divided before the moment is taken.
_WHITENING = (0.5, 0.25)
# Different starts of k-means in each space.
_SEEDS = (0, 1)
# Standard deviations of the logits of a start.
_SOFTNESS = (0.3, 1.0)
# "Different" answers count as such where they are hardly ever wrong.
_SURELY = 0.8
# Share of the mean variance that is added before whitening.
_SHRINKAGE = 0.1


def class_starts(A: Array, A_u: Array, variance: Array, likelihood: ClassLikelihood, labels: Codes) -> list[Array]:
    """Coefficients (r + 1, K) to start from, the intercepts last."""
    clusters = Clusters.of(A, A_u, likelihood, labels)
    starts = []
    for space in _spaces(A, variance, clusters):
        for seed in _SEEDS:
            starts += clusters.starts(space, seed)
    return starts + clusters.starts_from_different_groups()


@dataclass(frozen=True, eq=False)
class Clusters:
    """Groups by their means, and other points, to be clustered."""

    likelihood: ClassLikelihood  # the groups
    labels: Codes  # (n_points,), labels of the points of groups
    rows: Array  # (n_points + n_unlabeled, r), all points
    means: Array  # (n_groups, r), mean and number of points of each group
    size: Array

    @classmethod
    def of(cls, A: Array, A_u: Array, likelihood: ClassLikelihood, labels: Codes) -> Clusters:
        """Lay out points; see :func:`class_starts`."""
        size = np.asarray(likelihood.members.sum(axis=1)).ravel()
        means = (likelihood.members @ A) / size[:, None]
        return cls(likelihood, labels, np.concatenate([A, A_u]), means, size)

    def starts(self, space: Array, init: int | Array, softness: Sequence[float] = _SOFTNESS) -> list[Array]:
        """Discriminants between the clusters that k-means finds in a space, from a seed or from centres."""
        K = self.likelihood.n_classes
        group = self._clustered()
        size = np.bincount(group)
        means = np.column_stack([np.bincount(group, column) for column in self.rows.T]) / size[:, None]
        centres = "k-means++" if isinstance(init, int) else init @ space
        seed = init if isinstance(init, int) else 0
        with warnings.catch_warnings():
            # Fewer different points than classes: some clusters stay empty.
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = KMeans(K, init=centres, n_init=1, random_state=seed).fit(means @ space, sample_weight=size)
        cluster = match_clusters(found.labels_[group], self.labels, K)
        W = discriminant(self.rows, cluster, K)
        return [soften(self.rows, W, deviation) for deviation in softness]

    def _clustered(self) -> Indices:
        """What k-means clusters each point as part of: groups, or single points where there are fewer than classes."""
        n_groups = len(self.size)
        n_others = len(self.rows) - len(self.likelihood.group)
        if n_groups + n_others < self.likelihood.n_classes:
            return np.arange(len(self.rows))
        return np.concatenate([self.likelihood.group, n_groups + np.arange(n_others)])

    def starts_from_different_groups(self) -> list[Array]:
        """Discriminants between as many groups as classes that all differ from each other, where there are such."""
        K = self.likelihood.n_classes
        found = different_groups(self.likelihood.all_edges[self.likelihood.all_apart > _SURELY])
        if len(found) < K:
            return []
        place = np.full(len(self.size), -1)
        place[found[:K]] = np.arange(K)
        cluster = place[self.likelihood.group]
        known = np.flatnonzero(cluster >= 0)
        labels = self.labels[known]
        W = discriminant(self.rows[known], match_clusters(cluster[known], labels, K), K)
        return [soften(self.rows, W, deviation) for deviation in _SOFTNESS]

    def again(self, W: Array) -> list[Array]:
        """Starts from the clusters next to the classes of a solution, in the space that tells these apart."""
        K = self.likelihood.n_classes
        predicted = np.argmax(self.rows @ W[:-1] + W[-1], axis=1)
        means, within = class_moments(self.rows, predicted, K)
        values, vectors = eigh(within)
        whitening = vectors / np.sqrt(values)
        apart = svd((means - means.mean(axis=0)) @ whitening, full_matrices=False)[2]
        return self.starts(whitening @ apart[: K - 1].T, means, (*_SOFTNESS, 2.0))


def pair_moment(A: Array, clusters: Clusters) -> Array:
    """The estimate of equation (1), in the axes."""
    likelihood = clusters.likelihood
    means = clusters.means
    size = clusters.size
    moment = np.zeros((A.shape[1], A.shape[1]))
    tied = size > 1
    if tied.any():
        by_group = np.where(tied, likelihood.weight / np.maximum(size - 1, 1), 0.0)
        sums = means * size[:, None]
        by_point = by_group[likelihood.group]
        moment += (sums.T * by_group @ sums - A.T * by_point @ A) / float(likelihood.weight[tied] @ size[tied])
    first, second = (means[end] for end in likelihood.all_edges.T)
    # Sure answers count fully, likely wrong ones hardly; "different" ones enter with a minus.
    for kind in (1, -1):
        weight = likelihood.edge_weight * np.maximum(kind * likelihood.all_apart, 0.0)
        if weight.any():
            joint = first.T * weight @ second / weight.sum()
            moment -= kind * (joint + joint.T) / 2
    return moment


def _spaces(A: Array, variance: Array, clusters: Clusters) -> Iterator[Array]:
    """Maps from the axes to the spaces in which k-means looks for clusters."""
    moment = pair_moment(A, clusters)
    shrunk = variance + _SHRINKAGE * variance.mean()
    n_directions = min(clusters.likelihood.n_classes - 1, len(variance))
    for power in _WHITENING:
        scale = shrunk**-power
        values, vectors = eigh(scale[:, None] * moment * scale)
        top = slice(len(values) - n_directions, None)
        strength = np.sqrt(np.maximum(values[top], 0.0))
        if strength.any():
            yield scale[:, None] * vectors[:, top] * strength / strength.max()
    yield np.eye(len(variance))


def match_clusters(cluster: Indices, labels: Codes, n_classes: int) -> Indices:
    """Clusters renumbered so that most labelled points are in the cluster of their class (class k is k - 1)."""
    known = np.flatnonzero(labels)
    if not len(known):
        return cluster
    votes = np.zeros((n_classes, n_classes))
    np.add.at(votes, (cluster[known], labels[known] - 1), 1.0)
    return linear_sum_assignment(-votes)[1][cluster]


def discriminant(A: Array, cluster: Indices, n_classes: int) -> Array:
    """Fisher's linear discriminant between clusters, the intercepts last."""
    count = np.bincount(cluster, minlength=n_classes)
    means, within = class_moments(A, cluster, n_classes)
    W = solve(within, means.T, assume_a="pos")
    intercept = np.log((count + 1) / (count + 1).sum()) - np.einsum("kj,jk->k", means, W) / 2
    return np.vstack([W, intercept])


def class_moments(A: Array, cluster: Indices, n_classes: int) -> tuple[Array, Array]:
    """Means of the clusters (0, that of all rows, for an empty one), and their shrunk common covariance."""
    count = np.bincount(cluster, minlength=n_classes)
    sums = np.column_stack([np.bincount(cluster, column, n_classes) for column in A.T])
    means = sums / np.maximum(count, 1)[:, None]
    apart = A - means[cluster]
    within = apart.T @ apart / len(A)
    within[np.diag_indices(len(within))] += _SHRINKAGE * np.trace(within) / len(within) + 1e-12 * np.mean(A**2)
    return means, within


def soften(A: Array, W: Array, deviation: float) -> Array:
    """``W`` scaled to logits of this standard deviation, which add up to 0 over the classes."""
    W = W - W.mean(axis=1, keepdims=True)
    logits = A @ W[:-1] + W[-1]
    return W * (deviation / max(float(logits.std()), 1e-12))
