"""The likelihood of answers with K classes, and the objective of a softmax model under it.

Point i has class c with probability p_i(c), the softmax of its logits z_i = W' x_i + b. Answers
that are never wrong tie points to *groups*, and every other question is an *edge* between two:

    t_g(c) = prod_{i in g} p_i(c), 0 where a label says otherwise;  Z_g = sum_c t_g(c);  q_g = t_g / Z_g    (1)
    P(edge | groups) = a s + b (1 - s),  s = q_g . q_h                                                      (2)
    log P(answers, labels) = sum_groups log Z_g + sum_edges log (2)                                         (3)
    J(W, b) = -(3) / n + 1/2 sum_jk pen_j W_jk^2 + prior_strength KL(shares || mean_U p)                    (4)

where a and b are the chances of the edge's answers if the classes of its ends agree and if they
differ. (3) is exact where no group has two edges: loose pairs, groups alone. On larger trees it is replaced by
the exact likelihood (:mod:`sdulearn.answers.propagate`). Around cycles it is a composite likelihood
[1]_: the answers without errors are taken jointly, and each further edge given these, one by one.
Sums over the classes of a whole cycle (loopy propagation) gave the same models and took 20 times
as long. The derivative in z_i is node probability minus "posterior" in every case.

References
----------
.. [1] Varin, Reid & Firth, "An overview of composite likelihood methods", Statistica Sinica 21 (2011).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph, connect
from sdulearn.answers.propagate import (
    FactorGraph,
    Network,
    edge_beliefs,
    edges_on_trees,
    log_sum,
    log_sum_of_others,
    sum_matrix,
)
from sdulearn.types import Array, Indices, Mask

# Below this chance of an edge's answers, one minus a sum loses digits.
_UNLIKELY = 1e-5


@dataclass(frozen=True, eq=False)
class ClassLikelihood:
    """Equation (3) for given answers, labels and error rates."""

    group: Indices  # (n_points,), group of each point
    members: csr_matrix  # (n_groups, n_points), adds points up by group
    # (n_groups, n_classes), logarithms of what labels, and answers about labelled groups, say of each group
    potentials: Array
    edges: Indices  # (n_edges, 2), the two groups of each edge that is not on a larger tree
    agree: Array  # (n_edges,), logarithms of a and b in equation (2)
    differ: Array
    ends: csr_matrix  # (n_groups, 2 n_edges), adds the first ends, then the second ends, up by group
    trees: Network | None  # trees of two edges or more
    weight: Array  # (n_groups,), weight of each group: that of its component
    n_answers: float  # total weight of the independent answers and of the labels: n in equation (4)

    @classmethod
    def from_graph(
        cls, graph: AnswerGraph, n_classes: int, answer_model: AnswerModel, weight: Array | None = None
    ) -> ClassLikelihood:
        """Contract what answers without errors tie together."""
        # With two classes "different" answers would tie points too, and swap their classes: here they are edges.
        factors = answer_model.factor_graph(graph, max(n_classes, 3))
        n_groups = len(factors.potentials)
        on_tree = _on_larger_trees(factors.ends, n_groups)
        alone = factors.ends[~on_tree]
        trees = Network(factors.ends[on_tree], factors.agree[on_tree], factors.differ[on_tree], n_groups)
        by_group = np.ones(n_groups)
        if weight is not None:
            by_group[factors.group] = weight
        return cls(
            group=factors.group,
            members=sum_matrix(factors.group, n_groups),
            potentials=factors.potentials[:, :n_classes],
            edges=alone,
            agree=factors.agree[~on_tree],
            differ=factors.differ[~on_tree],
            ends=sum_matrix(alone.T.ravel(), n_groups),
            trees=trees if on_tree.any() else None,
            weight=by_group,
            n_answers=_n_independent(factors, by_group),
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.potentials.shape[1]

    @property
    def all_edges(self) -> Indices:
        """All edges, those on larger trees last."""
        return self.edges if self.trees is None else np.concatenate([self.edges, self.trees.ends])

    @property
    def edge_weight(self) -> Array:
        """What each of these weighs: as much as its component."""
        return self.weight[self.all_edges[:, 0]]

    @property
    def all_apart(self) -> Array:
        """For each edge how much rather its ends differ: 1 for a sure "different", -1 for a sure "same"."""
        agree = self.agree if self.trees is None else np.concatenate([self.agree, self.trees.agree])
        differ = self.differ if self.trees is None else np.concatenate([self.differ, self.trees.differ])
        return np.tanh(np.clip((differ - agree) / 2, -20, 20))

    def value_and_posteriors(self, log_p: Array) -> tuple[float, Array]:
        """Equation (3), by weight, and the posteriors (n_points, K) whose difference from p is its slope."""
        value, log_q = self._beliefs(log_p)
        q = np.exp(log_q)
        if len(self.edges):
            log_chance, moved = self._edge_terms(log_q, q)
            value += float(self.weight[self.edges[:, 0]] @ log_chance)
            q = q + self.ends @ moved
        return value, q[self.group]

    def group_probabilities(self, log_p: Array) -> Array:
        """The class of each point (n_points, K) given its group, and its tree where it is in a larger one."""
        return np.exp(self._beliefs(log_p)[1])[self.group]

    def _beliefs(self, log_p: Array) -> tuple[float, Array]:
        """Log likelihood of groups and larger trees, and the logarithm of q in equation (1)."""
        log_t = self.potentials + self.members @ log_p
        if self.trees is None:
            log_z = log_sum(log_t)
            return float(self.weight @ log_z), log_t - log_z[:, None]
        beliefs = self.trees.beliefs(log_t)
        with np.errstate(divide="ignore"):
            log_q = np.log(beliefs.groups)
        return float(self.weight @ beliefs.log_z + self.weight[self.trees.ends[:, 0]] @ beliefs.edge_z), log_q

    def _edge_terms(self, log_q: Array, q: Array) -> tuple[Array, Array]:
        """Log of (2), and its derivatives in the log potentials of all first ends, then of all second ends."""
        first, second = self.edges.T
        a = np.exp(self.agree)[:, None]
        b = np.exp(self.differ)[:, None]
        same = np.einsum("ij,ij->i", q[first], q[second])[:, None]
        chance = a * same + b * (1 - same)
        safe = np.maximum(chance, _UNLIKELY)
        slope = (a - b) / safe
        moved = np.concatenate([slope * q[first] * (q[second] - same), slope * q[second] * (q[first] - same)])
        log_chance = np.log(safe[:, 0])
        if (rare := np.flatnonzero(chance[:, 0] < _UNLIKELY)).size:
            log_chance[rare], exact = self._rare_edge_terms(log_q, rare)
            moved[np.concatenate([rare, rare + len(first)])] = exact
        return log_chance, moved

    def _rare_edge_terms(self, log_q: Array, rare: Indices) -> tuple[Array, Array]:
        """The same in logarithms, where the answers contradict the model so far that nothing else is exact."""
        first, second = (log_q[end] for end in self.edges[rare].T)
        agree = self.agree[rare, None]
        differ = self.differ[rare, None]
        _, log_chance = edge_beliefs(first, second, agree[:, 0], differ[:, 0])
        log_chance = np.maximum(log_chance, -700.0)[:, None]
        posteriors = [
            np.exp(one + np.logaddexp(agree + other, differ + log_sum_of_others(other)) - log_chance)
            for one, other in ((first, second), (second, first))
        ]
        return log_chance[:, 0], np.concatenate(posteriors) - np.exp(np.concatenate([first, second]))


@dataclass(frozen=True, eq=False)
class PropagatedLikelihood:
    """The likelihood by propagation, cycles included: for answers that may be wrong, which tie no groups."""

    factors: FactorGraph  # answers, labels and error rates
    weight: Array  # (n_points,), weights of the points, equal within a component
    n_answers: float  # as in :class:`ClassLikelihood`

    def value_and_posteriors(self, log_p: Array) -> tuple[float, Array]:
        """As in :class:`ClassLikelihood`."""
        found = self.factors.propagate(log_p, tol=1e-6, max_iter=60)
        first = np.unique(self.factors.graph.component, return_index=True)[1]
        return float(self.weight[first] @ found.component_values), found.posteriors


@dataclass(frozen=True, eq=False)
class SharesPenalty:
    """The last term of (4): how far the mean prediction on unlabeled points is from the class shares."""

    shares: Array
    strength: float

    def value_and_slope(self, P: Array, share: Array) -> tuple[float, Array]:
        """The term and its derivatives in the logits, given probabilities and weights of the points."""
        mean = np.maximum(share @ P, 1e-12)
        value = self.strength * float(self.shares @ np.log(self.shares / mean))
        slope = -self.strength * self.shares / mean
        return value, share[:, None] * P * (slope - (P @ slope)[:, None])


@dataclass(frozen=True, eq=False)
class ClassObjective:
    """Equation (4) on points in their axes."""

    A: Array  # (n_points, r), points in an answer or with a label
    likelihood: ClassLikelihood | PropagatedLikelihood  # that of the answers about them
    weight: Array  # (n_points,), weight of each point, equal within a component
    pen: Array  # (r,), penalties
    A_u: Array  # (n_unlabeled, r), unlabeled points and their weights
    share: Array
    shares_penalty: SharesPenalty | None  # the last term

    def value_and_gradient(self, W: Array) -> tuple[float, Array]:
        """Equation (4) and its gradient at ``W`` (r + 1, K), the intercepts last."""
        log_p = log_softmax(self.A @ W[:-1] + W[-1], axis=1)
        total, posteriors = self.likelihood.value_and_posteriors(log_p)
        n = self.likelihood.n_answers
        slope = self.weight[:, None] * (np.exp(log_p) - posteriors) / n
        penalised = self.pen[:, None] * W[:-1]
        value = -total / n + float(np.sum(penalised * W[:-1])) / 2
        gradient = np.vstack([self.A.T @ slope + penalised, slope.sum(axis=0)])
        if self.shares_penalty is not None:
            P = np.exp(log_softmax(self.A_u @ W[:-1] + W[-1], axis=1))
            divergence, slope = self.shares_penalty.value_and_slope(P, self.share)
            value += divergence
            gradient += np.vstack([self.A_u.T @ slope, slope.sum(axis=0)])
        return value, gradient


def _on_larger_trees(edges: Indices, n_groups: int) -> Mask:
    """Whether each edge is in a component without cycles of two edges or more."""
    component = connect(edges, n_groups)
    count = np.bincount(component[edges[:, 0]], minlength=n_groups)
    return edges_on_trees(edges, component) & (count[component[edges[:, 0]]] > 1)


def _n_independent(factors: FactorGraph, weight: Array) -> float:
    """Ties of groups, edges and labelled groups, by weight."""
    graph = factors.graph
    n_groups = len(weight)
    ties = np.bincount(factors.group, minlength=n_groups) - 1
    potentials = np.bincount(factors.group[graph.ends[(factors.edge < 0) & (graph.same < 0), 0]], minlength=n_groups)
    labelled = factors.label >= 0
    return float(weight @ (ties + potentials + labelled) + weight[factors.ends[:, 0]].sum())
