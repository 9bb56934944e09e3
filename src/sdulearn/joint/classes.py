"""K classes: the likelihood of answers under a softmax model, and the starts of its fit.

Point i has class c with probability p_i(c), the softmax of its logits z_i = W' x_i + b. Answers
that are never wrong tie points to *groups*, and every other question is an *edge* between two:

    t_g(c) = prod_{i in g} p_i(c), 0 where a label says otherwise;  Z_g = sum_c t_g(c);  q_g = t_g / Z_g    (1)
    P(edge | groups) = a s + b (1 - s),  s = q_g . q_h                                                      (2)
    log P(answers, labels) = sum_groups log Z_g + sum_edges log (2)                                         (3)
    J(W, b) = -(3) / n + 1/2 sum_jk pen_j W_jk^2 + prior_strength KL(shares || mean_U p)                    (4)

where a and b are the probabilities of the edge's answers if the classes of its ends agree and if
they differ. (3) is exact where no group has two edges: loose pairs, groups alone. Larger trees
have the exact likelihood of :mod:`sdulearn.answers.propagate`. Around cycles (3) is a composite
likelihood [1]_: the answers without errors are taken jointly, and each further edge given these,
one by one. Sums over the classes of a whole cycle (loopy propagation) gave the same models and
took 20 times as long. In every case the derivative in z_i is node probability minus "posterior".

A fit starts from k-means of all points, in the directions that the answers point out. With centred
rows and classes of mean mu_k and share pi_k, over random pairs

    E[x x'^T | same] - E[x x'^T | different] = sum_k pi_k^2 mu_k mu_k^T (1 / P(same) + 1 / P(different))    (5)

so that the top K - 1 eigenvectors of its estimate, the *pair moment*, span the class means. A
group counts as all pairs of its points, with weights that sum to its number of points. The moment
is taken of whitened rows, of half-whitened rows, or not at all: which is best differs between data
sets. K-means clusters the means of groups and all other points. Its clusters give a linear
discriminant, whose logits are shrunk: from soft classes the objective finds better solutions than
from hard ones.

References
----------
.. [1] Varin, Reid & Firth, "An overview of composite likelihood methods", Statistica Sinica 21 (2011).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from scipy.linalg import eigh, svd
from scipy.linalg import solve as solve_system
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from sdulearn.answers.answer_model import AnswerModel, model_of_fit
from sdulearn.answers.clusters import match_clusters
from sdulearn.answers.graph import AnswerGraph, connect, different_groups, leave_out, sum_matrix
from sdulearn.answers.propagate import FactorGraph, Network, edge_beliefs, edges_on_trees, log_sum_of_others
from sdulearn.joint.data import MIN_ALPHA_MAX, PriorPull, TrainingData, axis_penalties, bordered_sum
from sdulearn.types import Array, Indices, Mask

# Below this probability of an edge's answers, one minus a sum loses digits.
_UNLIKELY = 1e-5
# Power of the variance of each axis by which rows are divided before the moment is taken.
_WHITENING = (0.5, 0.25)
# Seeds of k-means in each space.
_SEEDS = (0, 1)
# Standard deviations of the logits of a start.
_SOFTNESS = (0.3, 1.0)
# An edge is surely "different" where :attr:`SoftmaxLikelihood.all_apart` is above this.
_SURELY = 0.8
# Share of the mean variance that is added before whitening.
_SHRINKAGE = 0.1


class SoftmaxLikelihood:
    """Equation (3); ``weight`` is constant within a component."""

    def __init__(
        self,
        graph: AnswerGraph,
        answer_model: AnswerModel,
        n_classes: int,
        weight: Array | None = None,
        composite: bool = False,
    ) -> None:
        # With two classes "different" answers would tie points too, and swap their classes: here
        # they are edges.
        factors = answer_model.factor_graph(graph, max(n_classes, 3))
        n_groups = len(factors.potentials)
        self.n_classes = n_classes
        self.group = factors.group
        self.members = sum_matrix(factors.group, n_groups)
        # (n_groups, n_classes), log potentials by labels, and by answers about labelled groups.
        self.potentials = factors.potentials[:, :n_classes]
        # All other groups are single points, for which equation (1) is p.
        self.joined = np.flatnonzero((self.potentials != 0).any(axis=1) | (np.diff(self.members.indptr) > 1))
        self._joined_members = self.members[self.joined]
        self._member = self.members.indices[self.members.indptr[:-1]]
        # Single edges and cycles, and trees of two edges or more.
        on_tree = _on_larger_trees(factors.ends, n_groups) & (not composite)
        self.edges = factors.ends[~on_tree]
        self.agree = factors.agree[~on_tree]
        self.differ = factors.differ[~on_tree]
        self.ends = sum_matrix(self.edges.T.ravel(), n_groups)
        self.weight = np.ones(n_groups)
        if weight is not None:
            self.weight[factors.group] = weight
        # Groups on trees, which count as part of their tree and not by themselves.
        self._tree_groups, local = np.unique(factors.ends[on_tree], return_inverse=True)
        self._joined_weight = np.where(np.isin(self.joined, self._tree_groups), 0.0, self.weight[self.joined])
        factor = (factors.agree[on_tree], factors.differ[on_tree])
        self.trees = Network(local.reshape(-1, 2), *factor, len(self._tree_groups))
        # All edges, their weights, and whether their ends differ: 1 for a sure "different", -1 for
        # a sure "same".
        self.all_edges = factors.ends
        self.edge_weight = self.weight[factors.ends[:, 0]]
        self.all_apart = np.tanh(np.clip((factors.differ - factors.agree) / 2, -20, 20))
        # (n_points, n_classes), class probabilities of each point by the answers of a crowd, if
        # there is one.
        self.by_answers = None
        if graph.n_answers and answer_model.crowd_of(graph) is not None:
            self.by_answers = softmax(self.potentials, axis=1)
        # Total weight of the independent answers and of the labels: n in equation (4).
        self.n_answers = _n_independent(factors, self.weight)

    def value_and_posteriors(self, log_p: Array, p: Array) -> tuple[Array, Array]:
        """Return equation (3) (B,) and posteriors (n_points, K, B); its slope is posterior - p."""
        value, log_q, q = self._beliefs(log_p, p)
        if len(self.edges):
            log_chance, moved = self._edge_terms(log_q, q)
            value = value + self.weight[self.edges[:, 0]] @ log_chance
            q = q + _added(self.ends, moved)
        return value, q[self.group]

    def group_probabilities(self, log_p: Array, p: Array) -> Array:
        """Return class probabilities (n_points, K, B) given the group or the tree of a point."""
        return self._beliefs(log_p, p)[2][self.group]

    def _beliefs(self, log_p: Array, p: Array) -> tuple[Array, Array, Array]:
        """Return the log likelihood (B,) of groups and trees, and log q and q of equation (1)."""
        log_q = log_p[self._member]
        q = p[self._member]
        joined = self.potentials[self.joined, :, None] + _added(self._joined_members, log_p)
        log_q[self.joined] = joined
        on_trees = np.moveaxis(log_q[self._tree_groups], 1, 2)
        log_z, q[self.joined] = _normalise(joined)
        log_q[self.joined] = joined
        value = self._joined_weight @ log_z
        if len(self._tree_groups):
            found = self.trees.beliefs(on_trees)
            weight = self.weight[self._tree_groups]
            value = value + weight @ found.log_z + weight[self.trees.ends[:, 0]] @ found.edge_z
            q[self._tree_groups] = beliefs = np.moveaxis(found.groups, 2, 1)
            with np.errstate(divide="ignore"):
                log_q[self._tree_groups] = np.log(beliefs)
        return value, log_q, q

    def _edge_terms(self, log_q: Array, q: Array) -> tuple[Array, Array]:
        """Return log (2) and its derivatives in log potentials, of first and then second ends."""
        first, second = (q[end] for end in self.edges.T)
        a, b = (np.exp(factor)[:, None] for factor in (self.agree, self.differ))
        both = first * second
        same = _sum_classes(both)
        chance = a * same + b * (1 - same)
        safe = np.maximum(chance, _UNLIKELY)
        slope = ((a - b) / safe)[:, None]
        moved = np.concatenate([slope * (both - same[:, None] * one) for one in (first, second)])
        log_chance = np.log(safe)
        edge, column = np.nonzero(chance < _UNLIKELY)
        if edge.size:
            log_chance[edge, column], exact = self._rare_edge_terms(log_q, edge, column)
            moved[edge, :, column], moved[edge + len(first), :, column] = np.split(exact, 2)
        return log_chance, moved

    def _rare_edge_terms(self, log_q: Array, edge: Indices, column: Indices) -> tuple[Array, Array]:
        """Return the same from logarithms, where differences lose digits."""
        first, second = (log_q[end, :, column] for end in self.edges[edge].T)
        agree = self.agree[edge]
        differ = self.differ[edge]
        _, log_chance = edge_beliefs(first, second, agree, differ)
        log_chance = np.maximum(log_chance, -700.0)
        posteriors = []
        for one, other in ((first, second), (second, first)):
            agrees = agree[:, None] + other
            differs = differ[:, None] + log_sum_of_others(other)
            posteriors.append(np.exp(one + np.logaddexp(agrees, differs) - log_chance[:, None]))
        return log_chance, np.concatenate(posteriors) - np.exp(np.concatenate([first, second]))


def _added(matrix: csr_matrix, values: Array) -> Array:
    """Return ``matrix @ values`` over the first axis."""
    return np.asarray(matrix @ values.reshape(len(values), -1)).reshape(-1, *values.shape[1:])


def _sum_classes(values: Array) -> Array:
    """Return the sum over the second axis, class by class: the axis is short."""
    return reduce(np.add, values.swapaxes(0, 1))


def _normalise(log_t: Array) -> tuple[Array, Array]:
    """Return the log of the sum over classes, and the shares; ``log_t`` becomes their log."""
    log_t -= (peak := reduce(np.maximum, log_t.swapaxes(0, 1)))[:, None]
    share = np.exp(log_t)
    total = _sum_classes(share)
    share /= total[:, None]
    log_total = np.log(total)
    log_t -= log_total[:, None]
    return peak + log_total, share


def log_probabilities(A: Array, W: Array) -> tuple[Array, Array]:
    """Return log probabilities (n_points, K, B) and probabilities by coefficients (r + 1, K, B)."""
    log_p = A @ W[:-1].reshape(A.shape[1], -1)
    log_p += W[-1].ravel()
    log_p = log_p.reshape(len(A), *W.shape[1:])
    _, p = _normalise(log_p)
    return log_p, p


def _on_larger_trees(edges: Indices, n_groups: int) -> Mask:
    """Return whether each edge is in a component of two edges or more without cycles."""
    component = connect(edges, n_groups)
    count = np.bincount(component[edges[:, 0]], minlength=n_groups)
    return edges_on_trees(edges, component) & (count[component[edges[:, 0]]] > 1)


def _n_independent(factors: FactorGraph, weight: Array) -> float:
    """Return the total weight of ties within groups, of edges and of labelled groups."""
    graph = factors.graph
    n_groups = len(weight)
    ties = np.bincount(factors.group, minlength=n_groups) - 1
    potentials = np.bincount(factors.group[graph.ends[(factors.edge < 0) & (graph.same < 0), 0]], minlength=n_groups)
    known = (factors.label >= 0) | np.isfinite(factors.potentials).all(axis=1) & factors.potentials.any(axis=1)
    return float(weight @ (ties + potentials + known) + weight[factors.ends[:, 0]].sum())


@dataclass(eq=False)
class ClassProblem:
    """Points in memory with K classes, and the answers and labels about them."""

    data: TrainingData
    graph: AnswerGraph  # of all answers and labels, or of those that a fold knows
    answer_model: AnswerModel
    n_classes: int
    power: float  # of the covariance, in the penalty
    pull: PriorPull | None = None
    composite: bool = False  # whether all edges are taken one by one, those of trees too

    @cached_property
    def weight(self) -> Array:
        """Weights (n_known,) of the points."""
        return self.data.weight[self.data.graph.component]

    def restricted(self, shown: Mask) -> ClassProblem:
        """Return the problem with the answers and labels of the points ``shown`` only."""
        return replace(self, graph=leave_out(self.graph, ~shown))

    def penalties(self, alphas: Sequence[float] | Array) -> Array:
        """Return one column (r,) for each alpha."""
        return axis_penalties(self.data.axes.variance, alphas, self.power)

    @property
    def has_named_classes(self) -> bool:
        """Whether given shares or the answers of a crowd name the classes."""
        by_shares = self.pull is not None and len(np.unique(self.pull.shares)) == self.n_classes
        return by_shares or self.answer_model.crowd_of(self.graph) is not None

    @cached_property
    def likelihood(self) -> SoftmaxLikelihood:
        """The likelihood of the answers and labels of the graph."""
        return SoftmaxLikelihood(self.graph, self.fitted_model, self.n_classes, self.weight, self.composite)

    @cached_property
    def fitted_model(self) -> AnswerModel:
        """The answer model of the fit."""
        return model_of_fit(self.answer_model, self.graph, self.n_classes)

    @cached_property
    def cycles(self) -> FactorGraph | None:
        """The factor graph, where answers may be wrong and there are cycles; else None."""
        if self.fitted_model.certain:
            return None
        factors = self.fitted_model.factor_graph(self.graph, self.n_classes)
        return None if factors.on_tree.all() else factors

    def objective(self, W: Array, columns: Indices, pen: Array, exact: bool = False) -> tuple[Array, Array]:
        """Return equation (4) and its gradient; exact around cycles, or composite."""
        data = self.data
        V = W.reshape(-1, self.n_classes, W.shape[1])
        n = self.likelihood.n_answers
        log_p, p = log_probabilities(data.known, V)
        if exact and self.cycles is not None:
            found = self.cycles.propagate(log_p[:, :, 0], tol=1e-6, max_iter=60)
            of_component = self.weight[np.unique(self.graph.component, return_index=True)[1]]
            total = np.array([of_component @ found.component_values])
            posteriors = found.posteriors[:, :, None]
        else:
            total, posteriors = self.likelihood.value_and_posteriors(log_p, p)
        p -= posteriors
        p *= (self.weight / n)[:, None, None]
        value = -total / n
        gradient = bordered_sum(data.known, p.reshape(len(p), -1))
        if self.pull is not None:
            _, p = log_probabilities(data.unlabeled, V)
            divergence, first, _ = self.pull.derivatives(np.tensordot(data.share, p, 1))
            slope = data.share[:, None, None] * p * (first - _sum_classes(p * first)[:, None])
            value += divergence
            gradient += bordered_sum(data.unlabeled, slope.reshape(len(slope), -1))
        # The intercepts are last, and free of the penalty.
        penalised = pen[:, None, columns] * V[:-1]
        gradient[:-1] += penalised.reshape(len(pen), -1)
        return value + np.einsum("ijk,ijk->k", penalised, V[:-1]) / 2, gradient.reshape(W.shape)

    @cached_property
    def alpha_max(self) -> float:
        """The alpha above which equal probabilities of all classes are a minimum, approximately."""
        # At equal probabilities -log P is, to second order in the logits z minus their mean over
        # classes, -z.z' / K for a "same" answer and z.z' / (K (K - 1)) for a "different" one.
        scale = 1 / np.sqrt(self.penalties([1.0])[:, 0])
        top = float(eigh(scale[:, None] * self.pair_moment * scale, eigvals_only=True)[-1])
        n = self.likelihood.n_answers
        least = MIN_ALPHA_MAX * float(self.data.axes.variance.mean())
        if self.likelihood.by_answers is not None:
            return max(2 * top / self.n_classes, least)
        n_different = float(self.likelihood.edge_weight @ np.maximum(self.likelihood.all_apart, 0.0))
        strength = min(max(n - n_different, 1.0), max(n_different, 1.0)) / self.n_classes
        return max(2 * top * strength / n, least)

    @cached_property
    def _group_size(self) -> Array:
        return np.asarray(self.likelihood.members.sum(axis=1)).ravel()

    @cached_property
    def pair_moment(self) -> Array:
        """The estimate of equation (5), in the axes."""
        A = self.data.known
        likelihood = self.likelihood
        if likelihood.by_answers is not None:
            # Class sums: each is the share of a class times its mean.
            sums = likelihood.by_answers.T @ A / len(A)
            same = float(np.sum(likelihood.by_answers.mean(axis=0) ** 2))
            return sums.T @ sums * (1 / same + 1 / (1 - same))
        size = self._group_size
        means = (likelihood.members @ A) / size[:, None]
        moment = np.zeros((A.shape[1], A.shape[1]))
        tied = size > 1
        if tied.any():
            by_group = np.where(tied, likelihood.weight / np.maximum(size - 1, 1), 0.0)
            sums = means * size[:, None]
            by_point = by_group[likelihood.group]
            moment += (sums.T * by_group @ sums - A.T * by_point @ A) / float(likelihood.weight[tied] @ size[tied])
        first, second = (means[end] for end in likelihood.all_edges.T)
        # Sure answers count fully, doubtful ones hardly; "different" ones are subtracted.
        for kind in (1, -1):
            weight = likelihood.edge_weight * np.maximum(kind * likelihood.all_apart, 0.0)
            if weight.any():
                joint = first.T * weight @ second / weight.sum()
                moment -= kind * (joint + joint.T) / 2
        return moment

    @cached_property
    def starts(self) -> list[Array]:
        """Starts (r + 1, K); given class shares fix the order of the clusters."""
        if self.likelihood.by_answers is not None:
            W = _discriminant(self.data.known, np.argmax(self.likelihood.by_answers, axis=1), self.n_classes)
            return [_soften(self.data.A, W, deviation) for deviation in _SOFTNESS]
        starts = [W for space in self._spaces() for seed in _SEEDS for W in self._cluster_starts(space, seed)]
        starts += self._different_starts()
        if self.pull is None or self.graph.labels.any():
            return starts
        by_share = np.argsort(np.argsort(-self.pull.shares, kind="stable"))
        ordered = []
        for W in starts:
            nearest = np.argmax(self.data.unlabeled @ W[:-1] + W[-1], axis=1)
            size = np.bincount(nearest, weights=self.data.share, minlength=self.n_classes)
            ordered.append(W[:, np.argsort(-size, kind="stable")[by_share]])
        return ordered

    @cached_property
    def group_starts(self) -> list[Array]:
        """Starts from groups of answers alone, where no class shares are given."""
        return [] if self.pull is not None else self._different_starts()

    def _spaces(self) -> Iterator[Array]:
        """Yield maps from the axes to the spaces in which k-means looks for clusters."""
        variance = self.data.axes.variance
        shrunk = variance + _SHRINKAGE * variance.mean()
        n_directions = min(self.n_classes - 1, len(variance))
        for power in _WHITENING:
            scale = shrunk**-power
            values, vectors = eigh(scale[:, None] * self.pair_moment * scale)
            top = slice(len(values) - n_directions, None)
            strength = np.sqrt(np.maximum(values[top], 0.0))
            if strength.any():
                yield scale[:, None] * vectors[:, top] * strength / strength.max()
        yield np.eye(len(variance))

    def _cluster_starts(self, space: Array, init: int | Array, softness: Sequence[float] = _SOFTNESS) -> list[Array]:
        """Return discriminants between clusters of k-means, from a seed or from centres."""
        K = self.n_classes
        rows = self.data.A
        # Whole groups are clustered, or single points where there are fewer groups than classes.
        n_groups = len(self._group_size)
        n_others = len(self.data.share)
        group = np.concatenate([self.likelihood.group, n_groups + np.arange(n_others)])
        if n_groups + n_others < K:
            group = np.arange(len(rows))
        size = np.bincount(group)
        means = (sum_matrix(group, len(size)) @ rows) / size[:, None]
        centres = "k-means++" if isinstance(init, int) else init @ space
        seed = init if isinstance(init, int) else 0
        with warnings.catch_warnings():
            # With fewer distinct points than classes some clusters stay empty.
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = KMeans(K, init=centres, n_init=1, random_state=seed).fit(means @ space, sample_weight=size)
        W = _discriminant(rows, match_clusters(found.labels_[group], self.graph.labels - 1, K), K)
        return [_soften(rows, W, deviation) for deviation in softness]

    def _different_starts(self) -> list[Array]:
        """Return discriminants between K groups that all differ; none where there are fewer."""
        K = self.n_classes
        found = different_groups(self.likelihood.all_edges[self.likelihood.all_apart > _SURELY])
        if len(found) < K:
            return []
        place = np.full(len(self._group_size), -1)
        place[found[:K]] = np.arange(K)
        cluster = place[self.likelihood.group]
        known = np.flatnonzero(cluster >= 0)
        cluster = match_clusters(cluster[known], self.graph.labels[known] - 1, K)
        W = _discriminant(self.data.A[known], cluster, K)
        return [_soften(self.data.A, W, deviation) for deviation in _SOFTNESS]

    def starts_again(self, W: Array) -> list[Array]:
        """Return starts from k-means around the classes of a solution."""
        predicted = np.argmax(self.data.A @ W[:-1] + W[-1], axis=1)
        means, within = _class_moments(self.data.A, predicted, self.n_classes)
        values, vectors = eigh(within)
        whitening = vectors / np.sqrt(values)
        apart = svd((means - means.mean(axis=0)) @ whitening, full_matrices=False)[2]
        return self._cluster_starts(whitening @ apart[: self.n_classes - 1].T, means, (*_SOFTNESS, 2.0))


def _discriminant(A: Array, cluster: Indices, n_classes: int) -> Array:
    """Return Fisher's linear discriminant between clusters, the intercepts last."""
    count = np.bincount(cluster, minlength=n_classes)
    means, within = _class_moments(A, cluster, n_classes)
    W = solve_system(within, means.T, assume_a="pos")
    intercept = np.log((count + 1) / (count + 1).sum()) - np.einsum("kj,jk->k", means, W) / 2
    return np.vstack([W, intercept])


def _class_moments(A: Array, cluster: Indices, n_classes: int) -> tuple[Array, Array]:
    """Return the means of the clusters (0 for an empty one), and their shrunk common covariance."""
    count = np.bincount(cluster, minlength=n_classes)
    means = (sum_matrix(cluster, n_classes) @ A) / np.maximum(count, 1)[:, None]
    apart = A - means[cluster]
    within = apart.T @ apart / len(A)
    within[np.diag_indices(len(within))] += _SHRINKAGE * np.trace(within) / len(within) + 1e-12 * np.mean(A**2)
    return means, within


def _soften(A: Array, W: Array, deviation: float) -> Array:
    """Return ``W`` scaled to logits of this standard deviation, which sum to 0 over the classes."""
    W = W - W.mean(axis=1, keepdims=True)
    logits = A @ W[:-1] + W[-1]
    return W * (deviation / max(float(logits.std()), 1e-12))
