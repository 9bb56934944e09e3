"""COP k-means: k-means that breaks no pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from sdulearn.baselines.base import CentreClusterer
from sdulearn.errors import InputError
from sdulearn.pairs import Pairs
from sdulearn.sklearn_private import Interval, StrOptions
from sdulearn.types import Array, Indices, RandomState


class ConstrainedKMeans(CentreClusterer):
    """COP k-means (Wagstaff et al. 2001): similar rows together, dissimilar rows apart, always.

    Similar pairs are closed transitively, and each closure is one point, its mean weighted by its
    rows. Dissimilar pairs are hard bounds on every assignment step:

    - two clusters: a chain of dissimilar pairs has two assignments, and each chain takes the
      *jointly* cheaper one. This is the exact minimum of the step, where Wagstaff goes through the
      points in order; every step lowers the inertia, and the order of rows does not matter.
    - more clusters: Wagstaff's greedy pass, each point to the nearest cluster its dissimilar
      partners left free, but the point that would lose most by waiting goes first. Where the pass
      gets stuck, that start is given up, so an assignment that exists may be missed.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    init : {"k-means++", "random"} or array-like, default="k-means++"
        Where the centres start: spread out, on random points, or as given in an array of shape
        (n_clusters, n_features), which is one start.
    n_init : int, default=10
        Number of starts; the one with the lowest inertia is kept.
    max_iter : int, default=300
        Largest number of iterations of one start.
    merge_duplicates : bool, default=True
        Whether rows with equal features are one point, as :func:`~sdulearn.stack_pairs` writes a
        point that is in several pairs; only so can similar pairs be chained. Set False where
        different points may have equal features (binary data): then each row is a point of its own.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        Cluster of each row; breaks no pair.
    cluster_centers_ : array of shape (n_clusters, n_features)
        Means of the clusters.
    inertia_ : float
        Sum of squared distances of the rows to the centre of their cluster.
    n_iter_ : int
        Iterations of the best start.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of str
        Their names, where ``X`` was a frame with string column names.

    See Also
    --------
    ITMLKMeans : Pairs shape the metric in place of the assignment.
    SpectralPairs : Pairs shape the affinity.

    Notes
    -----
    Time per iteration O(n d k), for k > 2 plus O(m^2) for m rows in dissimilar pairs; memory
    O(n (d + k)). ``predict`` knows no pairs: it takes the nearest centre, and may differ from
    ``labels_`` on a training row.

    References
    ----------
    K. Wagstaff, C. Cardie, S. Rogers, S. Schroedl. Constrained K-means clustering with background
    knowledge. ICML 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.baselines import ConstrainedKMeans
    >>> X = np.array([[0.0, 0.0], [0.0, 3.0], [1.0, 0.0], [1.0, 3.0]])
    >>> free = ConstrainedKMeans(random_state=0).fit_predict(X)
    >>> bool(free[0] == free[2] != free[1] == free[3])
    True
    >>> bound = ConstrainedKMeans(random_state=0).fit_predict(X, [1, 1, -2, -2])
    >>> bool(bound[0] == bound[1] and bound[2] != bound[3])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CentreClusterer._parameter_constraints,
        "init": [StrOptions({"k-means++", "random"}), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "merge_duplicates": ["boolean"],
    }

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        init: str | ArrayLike = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        merge_duplicates: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.merge_duplicates = merge_duplicates
        self.random_state = random_state

    def _cluster(self, X: Array, pairs: Pairs) -> None:
        offset = X.mean(axis=0)
        groups = _merge(X, offset, pairs, self.merge_duplicates)
        if len(groups.weight) < self.n_clusters:
            raise InputError(
                f"Similar pairs and equal rows leave {len(groups.weight)} groups that can be parted, "
                f"fewer than `n_clusters={self.n_clusters}`. Lower `n_clusters` or add rows."
            )
        assign = _assignment(groups, self.n_clusters)
        starts = self._starts(groups, offset)
        runs = [_lloyd(groups, start, assign, self.max_iter) for start in starts]
        finished = [run for run in runs if run is not None]
        if not finished:
            raise InputError(
                f"No valid assignment was found for the dissimilar pairs in any of {len(runs)} starts. "
                "Raise `n_clusters`, remove dissimilar pairs, or raise `n_init`."
            )
        best = min(finished, key=lambda run: run.inertia)
        self.labels_ = best.labels[groups.member]
        self.cluster_centers_ = best.centers + offset
        self.inertia_ = float(np.sum((X - self.cluster_centers_[self.labels_]) ** 2))
        self.n_iter_ = best.n_iter

    def _starts(self, groups: _Groups, offset: Array) -> list[Array]:
        if not isinstance(self.init, str):
            centers = check_array(self.init, dtype=np.float64)
            if centers.shape != (self.n_clusters, len(offset)):
                raise InputError(
                    f"`init` has shape {centers.shape}, but `n_clusters={self.n_clusters}` centres of "
                    f"{len(offset)} features are needed."
                )
            return [centers - offset]
        rng = check_random_state(self.random_state)
        k = self.n_clusters
        if self.init == "random":
            n_groups = len(groups.weight)
            return [groups.mean[rng.permutation(n_groups)[:k]] for _ in range(self.n_init)]
        options = {"sample_weight": groups.weight, "random_state": rng}
        return [kmeans_plusplus(groups.mean, k, **options)[0] for _ in range(self.n_init)]


_Assign = Callable[[Array], Indices | None]
"""From costs of shape (n_groups, n_clusters) to labels; None where the step got stuck."""


@dataclass(frozen=True)
class _Groups:
    """Closures of similar pairs as weighted points, and the dissimilar pairs between them."""

    member: Indices  # the group of each row
    mean: Array
    weight: Array
    cannot: Indices  # shape (n_dissimilar, 2), numbers of groups

    def cost(self, centers: Array) -> Array:
        """What each group adds to the inertia in each cluster, less its own spread."""
        return self.weight[:, None] * euclidean_distances(self.mean, centers, squared=True)

    def centers(self, labels: Indices, last: Array) -> Array:
        """Means of the clusters; an empty one keeps its centre."""
        n = len(labels)
        share = sparse.csr_array((self.weight, (labels, np.arange(n))), (len(last), n))
        total = share.sum(axis=1)[:, None]
        return np.where(total > 0, share @ self.mean / np.maximum(total, 1), last)


@dataclass(frozen=True)
class _Run:
    labels: Indices
    centers: Array
    inertia: float
    n_iter: int


def _merge(X: Array, offset: Array, pairs: Pairs, merge_duplicates: bool) -> _Groups:
    """Groups of rows that must stay together, measured from ``offset`` to keep digits."""
    point = np.arange(len(X))
    if merge_duplicates:
        point = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    member = _components(point[pairs.ends[pairs.similar]], int(point.max()) + 1)[point]
    dissimilar = pairs.ends[~pairs.similar]
    cannot = member[dissimilar]
    if (torn := np.flatnonzero(cannot[:, 0] == cannot[:, 1])).size:
        a, b = dissimilar[torn[0]]
        raise InputError(
            f"Rows {a} and {b} are a dissimilar pair, but equal or joined by a chain of similar pairs "
            f"({torn.size} such pairs). Remove the wrong answer; or, where different points have "
            "equal features, set `merge_duplicates=False`."
        )
    weight = np.bincount(member).astype(np.float64)
    rows = sparse.csr_array((np.ones(len(X)), (member, np.arange(len(X)))))
    return _Groups(member, rows @ (X - offset) / weight[:, None], weight, cannot)


def _components(edges: Indices, n_nodes: int) -> Indices:
    graph = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (n_nodes, n_nodes))
    return connected_components(graph, directed=False)[1].astype(np.intp)


def _lloyd(groups: _Groups, centers: Array, assign: _Assign, max_iter: int) -> _Run | None:
    """One start of k-means; None where an assignment got stuck."""
    last = np.full(len(groups.weight), -1)
    moved = True
    n_iter = 0
    while moved and n_iter < max_iter:
        labels = assign(groups.cost(centers))
        if labels is None:
            return None
        moved = not np.array_equal(labels, last)
        last = labels
        centers = groups.centers(labels, centers)
        n_iter += 1
    inertia = float(groups.cost(centers)[np.arange(len(last)), last].sum())
    return _Run(last, centers, inertia, n_iter)


def _assignment(groups: _Groups, n_clusters: int) -> _Assign:
    """The assignment step for these dissimilar pairs."""
    if not len(groups.cannot):
        return lambda cost: cost.argmin(axis=1)
    n_groups = len(groups.weight)
    if n_clusters == 2:
        return partial(_assign_chains, *_two_sides(groups.cannot, n_groups))
    a, b = np.concatenate([groups.cannot, groups.cannot[:, ::-1]]).T
    partners = sparse.csr_array((np.ones(len(a)), (a, b)), (n_groups, n_groups))
    return partial(_assign_in_order, partners)


def _two_sides(cannot: Indices, n_groups: int) -> tuple[Indices, Indices]:
    """Chain of dissimilar pairs each group belongs to, and its side (0 or 1) in that chain.

    In the double cover every group stands twice and every edge leads to the other copy; there a
    chain falls into two halves, one for each way to colour it, unless it has an odd cycle.
    """
    a, b = cannot.T
    edges = np.concatenate([np.c_[a, b + n_groups], np.c_[a + n_groups, b]])
    first, second = _components(edges, 2 * n_groups).reshape(2, n_groups)
    if (odd := np.flatnonzero(first == second)).size:
        raise InputError(
            f"No valid assignment to 2 clusters exists: {odd.size} points hang on a ring of "
            "dissimilar pairs of odd length (a differs from b, b from c, c from a). Remove the wrong "
            "answer or raise `n_clusters`; or, where different points have equal features, set "
            "`merge_duplicates=False`."
        )
    return np.minimum(first, second), (first > second).astype(np.intp)


def _assign_chains(chain: Indices, side: Indices, cost: Array) -> Indices:
    """Each chain takes the cheaper of its two assignments."""
    gain = (1 - 2 * side) * (cost[:, 0] - cost[:, 1])
    flip = np.bincount(chain, weights=gain)[chain] > 0
    return side ^ flip


def _assign_in_order(partners: sparse.csr_array, cost: Array) -> Indices | None:
    """Free groups to the nearest centre; bound ones greedily, the largest regret first."""
    labels = cost.argmin(axis=1)
    waiting = np.diff(partners.indptr) > 0
    left = cost.copy()
    regret = np.where(waiting, _regret(left), -np.inf)
    for _ in range(int(waiting.sum())):
        group = int(regret.argmax())
        labels[group] = left[group].argmin()
        if left[group, labels[group]] == np.inf:
            return None
        bound = partners.indices[partners.indptr[group] : partners.indptr[group + 1]]
        left[bound, labels[group]] = np.inf
        waiting[group] = False
        regret[group] = -np.inf
        bound = bound[waiting[bound]]
        regret[bound] = _regret(left[bound])
    return labels


def _regret(left: Array) -> Array:
    """What the second best cluster costs more; infinite where one is left, or none."""
    padded = np.pad(left, ((0, 0), (0, 1)), constant_values=np.inf)
    best, second = np.partition(padded, 1, axis=1)[:, :2].T
    return second - np.where(np.isinf(best), 0, best)
