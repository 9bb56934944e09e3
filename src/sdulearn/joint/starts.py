"""Where a fit starts, and the penalty at which a model leaves zero: both from moments of the answers.

The likelihood has several maxima, and at equal class probabilities its gradient vanishes, so that a fit needs a start.
With two classes, centred rows and mu = E[y x], over pairs of points whose relative side s is known

    E[s x x'^T] = mu mu^T                                                                           (1)

whatever the prior: the top eigenvector of its estimate, in whitened axes, is the start. With K
classes of mean mu_k and share pi_k, over random pairs

    E[x x'^T | same] - E[x x'^T | different] = sum_k pi_k^2 mu_k mu_k^T (1 / P(same) + 1 / P(different))    (2)

so that the top K - 1 eigenvectors of the estimate span the class means. K-means clusters the means of groups and all
other points in these directions, of whitened rows, of half-whitened rows, or without directions: which is best differs
between data sets. Its clusters give a linear discriminant, whose logits are shrunk: from soft classes the objective
finds better solutions than from hard ones.

To second order in logits z, centred over the classes, -log P at equal probabilities is -z.z' / K
for a "same" answer and z.z' / (K (K - 1)) for a "different" one; so the top eigenvalue of (1) or
(2), in the axes of the penalty, gives the largest alpha at which a model leaves zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, svd
from scipy.linalg import solve as solve_system
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from sdulearn.answers.clusters import match_clusters
from sdulearn.answers.graph import different_groups, sum_matrix
from sdulearn.answers.likelihood import Likelihood
from sdulearn.joint.data import UNEVEN, PriorPull, TrainingPoints, axis_penalties, bordered_sum
from sdulearn.types import Array, Indices, Mask

# The least alpha at which a model leaves zero, as a share of the mean variance of the axes.
_MIN_ALPHA_MAX = 1e-6
# Share of the mean variance that is added before whitening.
_SHRINKAGE = 0.1
# From this many axes on, only the top eigenvector is computed.
_MANY_AXES = 32
# K classes: power of the variance of each axis by which rows are divided before the moment is taken.
_WHITENING = (0.5, 0.25)
# Seeds of k-means in each space.
_SEEDS = (0, 1)
# Standard deviations of the logits of a start.
_SOFTNESS = (0.3, 1.0)


class Sides(NamedTuple):
    """What answers and labels of two classes say about points."""

    side: Array  # (n_points,), expected side of each point in its component, -1 to 1
    component: Indices  # (n_points,)
    labelled: Mask  # (n_components,), whether a component has a label, which says which side is +1
    weight: Array  # (n_components,), mean weight of an answer


class TwoClassStarts:
    """Equation (1), from what answers and labels of two classes say about points."""

    def __init__(self, points: TrainingPoints, sides: Sides, pull: PriorPull | None) -> None:
        A = points.known
        self.variance = points.axes.variance
        # Log odds of the given prior.
        self.odds = None if pull is None else float(np.log(pull.shares[1] / pull.shares[0]))
        side = sides.side
        labelled = sides.labelled[sides.component]
        # Labels tie all points with a known class together.
        component = np.where(labelled, int(np.argmax(sides.labelled)), sides.component)
        n_components = len(sides.weight)
        count = np.bincount(component, minlength=n_components)
        # A component counts by its points: its mean over pairs weighs as many answers.
        weight = np.where(count > 1, sides.weight, 0.0)
        scale = weight / np.maximum(count - 1, 1)
        V = sum_matrix(component, n_components) @ (side[:, None] * A)
        joint = V.T @ (scale[:, None] * V) - A.T @ ((scale[component] * side**2)[:, None] * A)
        ends = bordered_sum(A, weight[component][:, None])
        unit = 2 / max(float(ends[-1, 0]), 1e-300)
        self.moment = unit * joint
        # The mean of the ends of pairs: which of two mirrored starts is taken does not depend on row order.
        self.ends = ends[:-1, 0]
        # The direction from the labelled points of class -1 to those of class +1, if any, minus the
        # part that their mean explains.
        self.named: Array | None = None
        if labelled.any():
            one_class = abs(np.sign(side[labelled]).sum()) == np.count_nonzero(labelled)
            self.named = side[labelled] @ (A[labelled] - (0.0 if one_class else A[labelled].mean(axis=0)))

    def alpha_max(self, power: float) -> float:
        """Return the alpha above which, at prior 1/2, w = 0 is a minimum."""
        top, _ = self._top(1 / np.sqrt(axis_penalties(self.variance, [1.0], power)[:, 0]))
        return max(top / 4, _MIN_ALPHA_MAX * float(self.variance.mean()))

    def first(self) -> list[Array]:
        """Return the top eigenvector of the moment, and the direction of the labels, if any."""
        typical = float(self.variance.mean())
        if typical > UNEVEN * np.median(self.variance):
            # One column in a tiny unit must not dominate the others.
            typical = float(np.median(self.variance))
        shrunk = self.variance + _SHRINKAGE * typical
        moment = self._top(1 / np.sqrt(shrunk))[1] / np.sqrt(shrunk)
        moment *= np.copysign(1.0, moment @ (self.ends if self.named is None else self.named))
        directions = [moment]
        if self.named is not None:
            directions.append(self.named / shrunk)
        elif self.odds is not None:
            # Only the pull tells the two signs apart.
            directions.append(-moment)
        # Scaled to logits of variance one.
        scaled = [w / np.sqrt(max(float(w**2 @ self.variance), 1e-24)) for w in directions]
        return [np.append(w, self.odds or 0.0)[:, None] for w in scaled]

    def nearby(self) -> list[Array]:
        """Return starts to try beside the solution of a neighbour on the path: none, they end where it does."""
        return []

    def again(self, W: Array) -> list[Array]:
        """Return starts from a solution: none, one direction needs no clusters."""
        return []

    def _top(self, scale: Array) -> tuple[float, Array]:
        """Return the top eigenvalue and eigenvector of the moment in scaled coordinates."""
        M = scale[:, None] * self.moment * scale
        if len(M) <= _MANY_AXES or not M.any():
            values, vectors = eigh(M)
        else:
            values, vectors = eigsh(M, k=1, which="LA", tol=1e-3, v0=np.ones(len(M)))
        return float(values[-1]), vectors[:, -1]


class ClassStarts:
    """Equation (2), from the answers and labels of a likelihood of K classes."""

    def __init__(self, points: TrainingPoints, likelihood: Likelihood, pull: PriorPull | None) -> None:
        self.points = points
        self.likelihood = likelihood
        self.pull = pull
        self.n_classes = likelihood.n_classes
        factors = likelihood.factors
        self.group = factors.group
        self.members = sum_matrix(factors.group, len(factors.potentials))
        self.size = np.diff(self.members.indptr)
        weight = likelihood.weight[factors.component]
        self.group_weight = weight
        self.edges = factors.ends
        self.edge_weight = weight[factors.ends[:, 0]]
        # Whether the ends of each edge differ: 1 for a sure "different", -1 for a sure "same".
        self.apart = np.tanh(np.clip((factors.differ - factors.agree) / 2, -20, 20))
        # (n_known, n_classes), class probabilities by the answers alone: of the points of a crowd, or of those that
        # were compared with examples of the classes.
        beside_examples = likelihood.evidence is None and not likelihood.tied and not len(factors.ends)
        self.by_answers = likelihood.by_evidence if likelihood.evidence is not None or beside_examples else None

    def alpha_max(self, power: float) -> float:
        """Return the alpha above which equal probabilities of all classes are a minimum, approximately."""
        variance = self.points.axes.variance
        scale = 1 / np.sqrt(axis_penalties(variance, [1.0], power)[:, 0])
        top = float(eigh(scale[:, None] * self.moment * scale, eigvals_only=True)[-1])
        strength = 1 / self.n_classes
        if self.by_answers is None:
            n = self.likelihood.total
            n_different = float(self.edge_weight @ np.maximum(self.apart, 0.0))
            # A label says of which class a point is, and of which it is not.
            of_labels = float(self.likelihood.weight @ (self.likelihood.independent * self.likelihood.graph.labelled))
            strength *= min(max(n - n_different, 1.0), max(n_different + of_labels, 1.0)) / n
        return max(2 * top * strength, _MIN_ALPHA_MAX * float(variance.mean()))

    @cached_property
    def moment(self) -> Array:
        """The estimate of equation (2), in the axes."""
        A = self.points.known
        if self.by_answers is not None:
            # Class sums: each is the share of a class times its mean.
            sums = self.by_answers.T @ A / len(A)
            same = float(np.sum(self.by_answers.mean(axis=0) ** 2))
            return sums.T @ sums * (1 / same + 1 / (1 - same))
        means = (self.members @ A) / self.size[:, None]
        moment = np.zeros((A.shape[1], A.shape[1]))
        tied = self.size > 1
        if tied.any():
            # A group counts as all pairs of its points, with weights that sum to its number of points.
            by_group = np.where(tied, self.group_weight / np.maximum(self.size - 1, 1), 0.0)
            sums = means * self.size[:, None]
            by_point = by_group[self.group]
            total = float(self.group_weight[tied] @ self.size[tied])
            moment += (sums.T * by_group @ sums - A.T * by_point @ A) / total
        first, second = (means[end] for end in self.edges.T)
        # Sure answers count fully, doubtful ones hardly; "different" ones are subtracted.
        for kind in (1, -1):
            weight = self.edge_weight * np.maximum(kind * self.apart, 0.0)
            if weight.any():
                joint = first.T * weight @ second / weight.sum()
                moment -= kind * (joint + joint.T) / 2
        return moment

    def first(self) -> list[Array]:
        """Return starts (r + 1, K); given class shares fix the order of the clusters."""
        if self.by_answers is not None:
            return self._discriminants(self.points.known, np.argmax(self.by_answers, axis=1))
        starts = [W for space in self._spaces() for seed in _SEEDS for W in self._from_clusters(space, seed)]
        starts += self._from_different_groups()
        if self.pull is None or self.likelihood.graph.labels.any():
            return starts
        by_share = np.argsort(np.argsort(-self.pull.shares, kind="stable"))
        ordered = []
        for W in starts:
            nearest = np.argmax(self.points.unlabeled @ W[:-1] + W[-1], axis=1)
            size = np.bincount(nearest, weights=self.points.share, minlength=self.n_classes)
            ordered.append(W[:, np.argsort(-size, kind="stable")[by_share]])
        return ordered

    def nearby(self) -> list[Array]:
        """Return starts to try beside the solution of a neighbour on the path: groups of answers alone."""
        return [] if self.pull is not None else self._from_different_groups()

    def again(self, W: Array) -> list[Array]:
        """Return starts from k-means around the classes of a solution."""
        if self.by_answers is not None:
            return []
        predicted = np.argmax(self.points.A @ W[:-1] + W[-1], axis=1)
        means, within = _class_moments(self.points.A, predicted, self.n_classes)
        values, vectors = eigh(within)
        whitening = vectors / np.sqrt(values)
        apart = svd((means - means.mean(axis=0)) @ whitening, full_matrices=False)[2]
        return self._from_clusters(whitening @ apart[: self.n_classes - 1].T, means, (*_SOFTNESS, 2.0))

    def _spaces(self) -> Iterator[Array]:
        """Yield maps from the axes to the spaces in which k-means looks for clusters."""
        variance = self.points.axes.variance
        shrunk = variance + _SHRINKAGE * variance.mean()
        n_directions = min(self.n_classes - 1, len(variance))
        for power in _WHITENING:
            scale = shrunk**-power
            values, vectors = eigh(scale[:, None] * self.moment * scale)
            top = slice(len(values) - n_directions, None)
            strength = np.sqrt(np.maximum(values[top], 0.0))
            if strength.any():
                yield scale[:, None] * vectors[:, top] * strength / strength.max()
        yield np.eye(len(variance))

    def _from_clusters(self, space: Array, init: int | Array, softness: Sequence[float] = _SOFTNESS) -> list[Array]:
        """Return discriminants between clusters of k-means, from a seed or from centres."""
        K = self.n_classes
        rows = self.points.A
        # Whole groups are clustered, or single points where there are fewer groups than classes.
        n_groups = len(self.size)
        n_others = len(self.points.share)
        group = np.concatenate([self.group, n_groups + np.arange(n_others)])
        if n_groups + n_others < K:
            group = np.arange(len(rows))
        size = np.bincount(group)
        means = (sum_matrix(group, len(size)) @ rows) / size[:, None]
        centres = "k-means++" if isinstance(init, int) else init @ space
        seed = init if isinstance(init, int) else 0
        with warnings.catch_warnings():
            # With fewer distinct points than classes some clusters stay empty.
            warnings.simplefilter("ignore", ConvergenceWarning)
            clusters = KMeans(K, init=centres, n_init=1, random_state=seed).fit(means @ space, sample_weight=size)
        labels = self.likelihood.graph.labels - 1
        return self._discriminants(rows, match_clusters(clusters.labels_[group], labels, K), softness)

    def _from_different_groups(self) -> list[Array]:
        """Return discriminants between K groups that all differ, as if no answer were wrong; none if there are none."""
        K = self.n_classes
        graph = self.likelihood.graph
        between = graph.ends[(graph.same < 0) & ~graph.refuted]
        chosen = different_groups(np.unique(graph.group[between], axis=0))
        if len(chosen) < K:
            return []
        place = np.full(graph.n_points, -1)
        place[chosen[:K]] = np.arange(K)
        cluster = place[graph.group]
        known = np.flatnonzero(cluster >= 0)
        cluster = match_clusters(cluster[known], self.likelihood.graph.labels[known] - 1, K)
        return self._discriminants(self.points.A[known], cluster)

    def _discriminants(self, A: Array, cluster: Indices, softness: Sequence[float] = _SOFTNESS) -> list[Array]:
        """Return Fisher's linear discriminant between clusters, scaled to logits of these standard deviations."""
        count = np.bincount(cluster, minlength=self.n_classes)
        means, within = _class_moments(A, cluster, self.n_classes)
        W = solve_system(within, means.T, assume_a="pos")
        intercept = np.log((count + 1) / (count + 1).sum()) - np.einsum("kj,jk->k", means, W) / 2
        W = np.vstack([W, intercept])
        # Logits sum to 0 over the classes.
        W -= W.mean(axis=1, keepdims=True)
        deviation = (self.points.A @ W[:-1] + W[-1]).std()
        return [W * (target / max(float(deviation), 1e-12)) for target in softness]


def _class_moments(A: Array, cluster: Indices, n_classes: int) -> tuple[Array, Array]:
    """Return the means of the clusters (0 for an empty one), and their shrunk common covariance."""
    count = np.bincount(cluster, minlength=n_classes)
    means = (sum_matrix(cluster, n_classes) @ A) / np.maximum(count, 1)[:, None]
    apart = A - means[cluster]
    within = apart.T @ apart / len(A)
    within[np.diag_indices(len(within))] += _SHRINKAGE * np.trace(within) / len(within) + 1e-12 * np.mean(A**2)
    return means, within
