"""Information-theoretic metric learning, then k-means in the learned metric."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances

from reproduction.baselines.base import CentreClusterer
from sdulearn.answers import AnswerGraph
from sdulearn.errors import warn
from sdulearn.types import Array, RandomState


class ITMLKMeans(CentreClusterer):
    """ITML (Davis et al. 2007) with the identity as prior, then k-means in its metric.

    ITML looks for the Mahalanobis matrix A nearest to the identity in LogDet divergence with
    (x-x')'A(x-x') at most ``u`` for similar and at least ``l`` for dissimilar pairs, both softened
    by slack, by cyclic Bregman projections, one pair at a time. The bounds are the 5th and 95th
    percentile of the distances between all ends of pairs: distances, though what they bound is
    squared. The package metric-learn does so, and this class reproduces its numbers (with 20 ends
    or more: below, metric-learn's ``u`` is 1e-9, and here the 5th percentile without the zeros).
    A pair of equal rows is left out: no metric can part them.

    ``gamma`` is the price of slack (``np.inf`` allows none), ``bounds`` other bounds (u, l).
    ``dual_`` has the multiplier of each pair, in ascending order of pair codes; ``components_`` is
    L with A = L'L.
    """

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        gamma: float = 1.0,
        bounds: tuple[float, float] | None = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        n_init: int = 10,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.bounds = bounds
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def _cluster(self, X: Array, graph: AnswerGraph) -> None:
        self._learn_metric(X, graph)
        kmeans = KMeans(self.n_clusters, n_init=self.n_init, random_state=self.random_state)
        kmeans.fit(self._coordinates(X))
        self.labels_ = kmeans.labels_
        self.cluster_centers_ = kmeans.cluster_centers_

    def _coordinates(self, X: Array) -> Array:
        return X @ self.components_.T

    def _learn_metric(self, X: Array, graph: AnswerGraph) -> None:
        V = X[graph.end_rows[:, 0]] - X[graph.end_rows[:, 1]]
        sign = np.where(graph.same > 0, 1.0, -1.0)
        if self.bounds is None:
            self.bounds_ = _percentiles(X[graph.end_rows.ravel()])
        else:
            self.bounds_ = self.bounds
        bound = np.where(graph.same > 0, *self.bounds_)
        self.dual_ = np.zeros(len(V))
        order = np.argsort(graph.same < 0, kind="stable")
        order = order[V[order].any(axis=1)]
        self.dual_[order], self.n_iter_ = _project(
            _shorten(V[order]), sign[order], bound[order], self.gamma, self.max_iter, self.tol
        )
        self.components_ = _inverse_root(np.eye(X.shape[1]) + (V.T * (sign * self.dual_)) @ V)
        self.mahalanobis_ = self.components_.T @ self.components_


def _percentiles(ends: Array) -> tuple[float, float]:
    """5th and 95th percentile of the distances among the ends, each with itself too.

    So does metric-learn. Below 20 ends these zeros alone make u = 0, which metric-learn turns into
    1e-9 and no metric survives; there the percentiles are those of the other distances.
    """
    distances = pairwise_distances(np.unique(ends, axis=0)) if len(ends) else np.zeros((1, 1))
    if np.percentile(distances, 5) == 0:
        distances = distances[distances > 0]
    if not distances.size:
        return np.nan, np.nan
    low, high = np.percentile(distances, (5, 95))
    return float(low), float(high)


def _inverse_root(B: Array) -> Array:
    """L with L'L the inverse of B, which is positive definite but for rounding."""
    values, vectors = eigh(B)
    floor = np.finfo(np.float64).eps * np.abs(values).max()
    return vectors.T / np.sqrt(np.maximum(values, floor))[:, None]


def _shorten(V: Array) -> Array:
    """The same vectors, up to a rotation, in the space they span; the identity is blind to the rest."""
    m, d = V.shape
    return V if d <= m else np.asarray(np.linalg.qr(V.T, mode="r")).T


def _project(V: Array, sign: Array, bound: Array, gamma: float, max_iter: int, tol: float) -> tuple[Array, int]:
    """Multipliers of the pairs by cyclic Bregman projections (algorithm 1), and the passes used.

    A is kept at the inverse of ``I + sum_i sign_i dual_i v_i v_i'``. The paper's slack variable
    xi_i needs no memory of its own: ``1 / xi_i = 1 / bound_i - sign_i dual_i / gamma``.
    """
    A = np.eye(V.shape[1])
    dual = np.zeros(len(V))
    slack = 1 / gamma
    rows = list(zip(V, sign.tolist(), (1 / bound).tolist(), strict=True))
    for n_iter in range(1, max_iter + 1):
        last = dual.copy()
        for i, (v, s, inverse_bound) in enumerate(rows):
            Av = A @ v
            p = float(v @ Av)
            held = float(dual[i])
            alpha = min(held, (s * (1 / p - inverse_bound) + slack * held) / (1 + slack))
            if alpha != 0:
                dual[i] = held - alpha
                A += (s * alpha / (1 - s * alpha * p) * Av)[:, None] * Av
        scale = np.linalg.norm(dual) + np.linalg.norm(last)
        if np.abs(dual - last).sum() <= tol * scale:
            return dual, n_iter
    warn(
        f"ITML stopped after `max_iter={max_iter}` passes before the multipliers converged to "
        f"`tol={tol:g}`. Raise `max_iter` or `tol`, or standardise the features.",
        ConvergenceWarning,
    )
    return dual, max_iter
