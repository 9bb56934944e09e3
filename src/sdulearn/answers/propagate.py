"""Likelihood of all answers and posterior of every point, by belief propagation.

Point i has a hidden class c_i with node probability p_i(c). An answer is a factor of its two points
that depends only on whether their classes agree (:func:`log_factors`):

    P(answers, labels) = sum_c  prod_i p_i(c_i)  prod_answers f(c_i, c_j)                   (1)

(1) is first reduced, exactly. "Same" answers that are never wrong contract points to a *group*; with two classes
"different" ones do so too, with the classes of one side swapped. Repeated questions become one edge between groups, an
answer within a group a constant, and an answer about a labelled group a potential of the other. What remains are groups
with potentials t(c), and edges whose factor is a where the classes of the two ends agree and b where they differ:

    cavity   h(c) = t(c) * product of all messages into the group but one                   (2)
    message  m(c') = a h(c') + b sum_{c != c'} h(c)                                         (3)
    belief   q(c) = t(c) * product of all messages into the group / Z                       (4)
    log Z = sum_groups log Z_g + sum_edges log sum_{c, c'} f(c, c') h(c) h'(c') / (Z_g Z_g')    (5)

(5) is the Bethe free energy [1]_: exact on trees, where two sweeps send every message once. In
components with cycles all messages are sent at once, damped, until they converge. Such a component
is copied once for each class k of one group, the *pivot*, with the most edges on its cycles [2]_:

    P = sum_k P_k,  where P_k is the likelihood with the pivot in class k                   (6)
    posterior = sum_k P_k / P * posterior_k                                                 (7)

Both are exact. In a copy no cycle leads through the pivot, and solutions that differ by a flip of
all classes are kept apart. With logits z and p = softmax(z), the slope of the value in z_ic is
posterior_ic - p_ic (Fisher's identity), wherever messages have converged. On small random graphs
the mean error of posteriors is 0.005. Whether K > 2 classes can agree with "different" answers
around cycles is a graph colouring: such a contradiction may go unnoticed, with a finite value.

Answers given together, such as a match question ("same" as one example, "different" from the others) or
a sorted group, go wrong together: with the probability g the whole question was answered
carelessly, and each of its O outcomes is equally likely then. It is wrong with probability e:

    P(question | classes) = (1 - g) [all its answers are right] + g / O,   g = e O / (O - 1)   (8)

A single pair has O = 2 outcomes. Where the classes of all points but one are known, (8) is a potential of that point.
In other larger questions each answer has the factor (8) with P(right) in place of the other answers of its question,
from a propagation of all answers with independent errors.

References
----------
.. [1] Yedidia, Freeman & Weiss, "Constructing free-energy approximations and generalized belief
   propagation algorithms", IEEE Transactions on Information Theory 51 (2005).
.. [2] Pearl, "Probabilistic Reasoning in Intelligent Systems" (1988), section 4.4, on conditioning.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from sdulearn.answers.graph import (
    AnswerGraph,
    connect,
    connect_both_ways,
    find_core,
    first_by,
    number_questions,
    sum_by,
)
from sdulearn.errors import InputError
from sdulearn.types import Array, Codes, Indices, Mask

# Share of the old log message in a new one, around cycles.
DAMPING = 0.3
# Tolerance that suffices along a path of many problems, for EM, and for the probabilities of right answers in
# equation (8).
ROUGH_TOL = 1e-4


class Propagation(NamedTuple):
    """Likelihood, posteriors of the points, and probabilities that answers are right."""

    value: float  # log likelihood of all answers and labels
    posteriors: Array  # (n_points, n_classes), class probabilities of each point, given all answers
    right: Array  # (n_answers,), probability that each answer is right
    component_values: Array  # (n_components,), the part of each component of the graph in ``value``


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """The reduced graph: groups of points with potentials, and edges between them."""

    graph: AnswerGraph
    group: Indices  # (n_points,), group of each point
    swapped: Mask  # (n_points,), whether the two classes of a point are swapped in its group
    potentials: Array  # (n_groups, n_classes), log evidence of labels and of answers that are not edges
    label: Indices  # (n_groups,), class that a label fixes, -1 where none does
    edge: Indices  # (n_answers,), the edge of each answer, -1 where it is in a potential
    ends: Indices  # (n_edges, 2), the two groups of each edge
    agree: Array  # (n_edges,), log factors where the classes agree and where they differ
    differ: Array
    component: Indices  # (n_groups,), component of the answers that each group is in

    @classmethod
    def from_answers(cls, graph: AnswerGraph, n_classes: int, errors: Array) -> FactorGraph:
        """Reduce equation (1), by the error rates (n_answers,)."""
        if n_classes < 2:
            raise InputError(f"There are two classes or more, got {n_classes}.")
        alone = cls._reduced(graph, n_classes, log_factors(graph.same, errors, graph.weights))
        if not np.any(graph.in_larger_question & (errors > 0)):
            return alone
        right = alone.propagate(tol=ROUGH_TOL).right
        factors = question_factors(graph, errors, right)
        known = alone.label[alone.group]
        known = np.where(alone.swapped & (known >= 0), 1 - known, known)
        about, evidence = _beside_known(graph, known, errors, n_classes)
        factors[:, about] = 0.0
        return cls._reduced(graph, n_classes, factors, evidence)

    @classmethod
    def _reduced(cls, graph: AnswerGraph, n_classes: int, factors: Array, evidence: Array | None = None) -> FactorGraph:
        """Reduce equation (1), by the log factors (2, n_answers) of the answers and log evidence about points."""
        group, swapped = _contract(graph, np.isneginf(factors.min(axis=0)), n_classes)
        n_groups = int(group.max(initial=-1)) + 1
        potentials, label = _label_potentials(graph, group, swapped, n_groups, n_classes)
        ends = group[graph.ends]
        # A factor of two points, seen from their groups: swapping one end swaps agree and differ.
        factors = np.where(swapped[graph.ends[:, 0]] != swapped[graph.ends[:, 1]], factors[::-1], factors)
        joins = (ends[:, 0] != ends[:, 1]) & (label[ends] < 0).all(axis=1)
        potentials += _absorb(ends[~joins], factors[:, ~joins], label, potentials.shape)
        if evidence is not None:
            potentials += sum_by(group, np.where(swapped[:, None], evidence[:, ::-1], evidence), n_groups)
        _refuse_contradictions(graph, np.isneginf(potentials.max(axis=1))[group])
        edge = np.full(graph.n_answers, -1)
        edges, edge[joins] = number_questions(ends[joins], n_groups)
        agree, differ = (sum_by(edge[joins], factor, len(edges)) for factor in factors[:, joins])
        component = np.zeros(n_groups, dtype=np.intp)
        component[group] = graph.component
        return cls(graph, group, swapped, potentials, label, edge, edges, agree, differ, component)

    @classmethod
    def of_evidence(cls, graph: AnswerGraph, log_evidence: Array) -> FactorGraph:
        """Return points with log evidence (n_points, n_classes), and no edges between them."""
        points = np.arange(graph.n_points)
        nothing = np.zeros(graph.n_points, dtype=bool)
        potentials, label = _label_potentials(graph, points, nothing, graph.n_points, log_evidence.shape[1])
        edge = np.full(graph.n_answers, -1)
        no_edges = (np.zeros((0, 2), dtype=np.intp), np.zeros(0), np.zeros(0))
        return cls(graph, points, nothing, potentials + log_evidence, label, edge, *no_edges, graph.component)

    def propagate(self, log_p: Array | None = None, *, max_iter: int = 200, tol: float = 1e-9) -> Propagation:
        """Combine answers with log probabilities (n_points, n_classes) or shares (n_classes,)."""
        n_classes = self.potentials.shape[1]
        # By default all classes are equally likely.
        log_p = np.full(n_classes, -np.log(n_classes)) if log_p is None else log_p
        swapped = self.swapped[:, None]
        log_p = np.where(swapped, log_p[..., ::-1], log_p)
        # Potentials of the groups: p^k q^(m - k) where k of m points are on one side.
        log_t = self.potentials + sum_by(self.group, log_p, len(self.potentials))
        by_part = np.empty(len(self.component_of_part))
        beliefs = np.empty(log_t.shape)
        agree = np.empty(len(self.ends))
        for network in self.networks:
            mixed = network.mixture(log_t[network.groups], max_iter, tol)
            by_part[network.parts], beliefs[network.groups], agree[network.edges] = mixed
        values = sum_by(self.component_of_part, by_part, self.graph.n_components)
        _refuse_contradictions(self.graph, np.isneginf(values)[self.graph.component])
        posteriors = beliefs[self.group]
        return Propagation(
            value=float(values.sum()),
            posteriors=np.where(swapped, posteriors[:, ::-1], posteriors),
            right=self._right(beliefs, agree),
            component_values=values,
        )

    @cached_property
    def part(self) -> Indices:
        """Part of each group: groups that edges connect, or the whole component where no label cuts it."""
        return connect(self.ends, len(self.potentials)) if (self.label >= 0).any() else self.component

    @cached_property
    def component_of_part(self) -> Indices:
        """Component of the answers that each part belongs to."""
        return self.component[np.unique(self.part, return_index=True)[1]]

    @cached_property
    def on_tree(self) -> Mask:
        """Whether each edge is in a part without cycles."""
        return edges_on_trees(self.ends, self.part)

    @cached_property
    def pivots(self) -> Indices:
        """The group with the most edges on cycles, of each part that has cycles."""
        n_groups = len(self.potentials)
        ends = self.ends[~self.on_tree]
        degree = np.bincount(ends[find_core(ends, n_groups)].ravel(), minlength=n_groups)
        first = first_by(self.part, -degree)
        return first[degree[first] > 0]

    @cached_property
    def networks(self) -> list[ConditionedNetwork]:
        """The parts with cycles, and those without."""
        cyclic = np.isin(self.part, self.part[self.pivots])
        return [ConditionedNetwork(self, np.flatnonzero(kind)) for kind in (cyclic, ~cyclic) if kind.any()]

    def _right(self, beliefs: Array, agree: Array) -> Array:
        """Return the probability that each answer is right, from the beliefs of edges and groups."""
        first, second = self.group[self.graph.ends].T
        # Groups that no edge joins are independent.
        same = np.where(first == second, 1.0, np.einsum("ij,ij->i", beliefs[first], beliefs[second]))
        on_edge = self.edge >= 0
        same[on_edge] = agree[self.edge[on_edge]]
        crossed = self.swapped[self.graph.ends[:, 0]] != self.swapped[self.graph.ends[:, 1]]
        return np.where(crossed == (self.graph.same > 0), 1 - same, same)


class Beliefs(NamedTuple):
    """Result of converged messages."""

    groups: Array  # (n_groups, n_classes), equation (4); zeros where no class is left
    log_z: Array  # (n_groups,), term of each group in equation (5)
    agree: Array  # (n_edges,), probability that the two ends of each edge agree
    edge_z: Array  # (n_edges,), term of each edge in equation (5)


class Network:
    """Groups and distinct edges in the order in which messages are sent, for any potentials."""

    def __init__(self, ends: Indices, agree: Array, differ: Array, n_groups: int) -> None:
        self.ends = ends
        self.agree = agree
        self.differ = differ
        component = connect(ends, n_groups)
        on_tree = edges_on_trees(ends, component)
        self.loopy = np.flatnonzero(~on_tree)
        self._order_trees(np.flatnonzero(on_tree), component)

    def _order_trees(self, edges: Indices, component: Indices) -> None:
        """Sort edges of trees by level from the root, and by parent within a level."""
        n_groups = len(component)
        roots = np.unique(component, return_index=True)[1]
        # An extra node, joined to the root of every tree, turns the forest into one tree.
        start = np.r_[self.ends[edges, 0], roots]
        stop = np.r_[self.ends[edges, 1], np.full(len(roots), n_groups)]
        adjacency = csr_matrix((np.ones(len(start)), (start, stop)), shape=(n_groups + 1, n_groups + 1))
        depth = dijkstra(adjacency, directed=False, indices=n_groups, unweighted=True)[self.ends[edges]]
        upper = depth.argmin(axis=1)
        order = np.lexsort((self.ends[edges, upper], depth.min(axis=1)))
        # Which of the two ends is the upper one, and the groups at both ends.
        self.tree_edges = edges[order]
        self.upper = upper[order]
        self.parent = self.ends[self.tree_edges, self.upper]
        self.child = self.ends[self.tree_edges, 1 - self.upper]
        # For each level: edges, parents, where the children of each parent begin.
        self.levels = []
        ends_of_levels = np.cumsum(np.unique(depth.min(axis=1), return_counts=True)[1]).tolist()
        for first, last in pairwise([0, *ends_of_levels]):
            parent = self.parent[first:last]
            begins = np.flatnonzero(np.diff(parent, prepend=-1))
            self.levels.append((slice(first, last), parent[begins], begins))

    def beliefs(self, log_t: Array, max_iter: int = 0, tol: float = 1e-9) -> Beliefs:
        """Send messages, by log potentials (n_groups, ..., n_classes)."""
        cavities = np.empty((2, len(self.ends), *log_t.shape[1:]))
        log_q = self._sweep(log_t, cavities)
        if len(self.loopy):
            arrived = self._flood(log_t, max_iter, tol)
            ends = self.ends[self.loopy]
            cavities[:, self.loopy] = _cavities(ends, log_t, arrived)
            log_q += sum_by(ends.T.ravel(), arrived.reshape(-1, *log_t.shape[1:]), len(log_t))
        log_z = log_sum(log_q)
        # Where no class is possible the likelihood is 0, and beliefs do not matter.
        scale = _zero_for_none(log_z)[..., None]
        cavities -= scale[self.ends.T]
        first, second = cavities
        agree, edge_z = edge_beliefs(first, second, self.agree, self.differ)
        return Beliefs(np.exp(log_q - scale), log_z, agree, edge_z)

    def _sweep(self, log_t: Array, cavities: Array) -> Array:
        """Send messages on trees to the roots and back; fill the cavities, return log beliefs."""
        agree = self.agree[self.tree_edges]
        differ = self.differ[self.tree_edges]
        up = np.empty((len(self.tree_edges), *log_t.shape[1:]))
        log_q = log_t.copy()
        for level, parents, starts in reversed(self.levels):
            up[level] = message(log_q[self.child[level]], agree[level], differ[level])
            log_q[parents] += np.add.reduceat(up[level], starts)
        siblings = leave_one_out(self.parent, up, len(log_t))
        # All messages from below have arrived: these are the cavities of the children.
        cavities[1 - self.upper, self.tree_edges] = log_q[self.child]
        above = log_t.copy()
        for level, *_ in self.levels:
            cavity = above[self.parent[level]] + siblings[level]
            cavities[self.upper[level], self.tree_edges[level]] = cavity
            down = message(cavity, agree[level], differ[level])
            above[self.child[level]] += down
            log_q[self.child[level]] += down
        return log_q

    def _flood(self, log_t: Array, max_iter: int, tol: float) -> Array:
        """Return converged messages (2, n_loopy, ..., n_classes) to both ends of edges on cycles."""
        messages = np.zeros((2, len(self.loopy), *log_t.shape[1:]))
        ends = self.ends[self.loopy]
        factors = self.agree[self.loopy], self.differ[self.loopy]
        for _ in range(max_iter):
            old = messages
            first, second = _cavities(ends, log_t, old)
            fresh = np.stack([message(second, *factors), message(first, *factors)])
            messages = (1 - DAMPING) * fresh + DAMPING * old
            with np.errstate(invalid="ignore"):
                # Minus infinity twice is no change.
                if not (np.abs(fresh - old) > tol).any():
                    break
        return messages


class ConditionedNetwork:
    """Some parts, copied once for each class of their pivots: equations (6) and (7)."""

    def __init__(self, factors: FactorGraph, groups: Indices) -> None:
        n_classes = factors.potentials.shape[1]
        place = np.full(len(factors.potentials), -1)
        place[groups] = np.arange(len(groups))
        self.groups = groups
        self.edges = np.flatnonzero(place[factors.ends[:, 0]] >= 0)
        self.parts, self.part = np.unique(factors.part[groups], return_inverse=True)
        ends = place[factors.ends[self.edges]]
        self.part_of_edge = self.part[ends[:, 0]]
        log_f = np.stack([factors.agree, factors.differ])[:, self.edges]
        # In copy k the pivots have class k, and their edges are potentials of the other ends.
        self.pivots = np.intersect1d(place[factors.pivots], np.arange(len(groups)))
        at_pivot = np.isin(ends, self.pivots)
        self.cut = at_pivot.any(axis=1)
        self.other = ends[self.cut][~at_pivot[self.cut]]
        own = np.eye(n_classes, dtype=bool)
        agree, differ = log_f[:, self.cut, None, None]
        self.potentials = sum_by(self.other, np.where(own, agree, differ), len(groups))
        self.potentials[self.pivots] = np.where(own, 0.0, -np.inf)
        agree, differ = log_f[:, ~self.cut]
        self.network = Network(ends[~self.cut], agree, differ, len(groups))

    def mixture(self, log_t: Array, max_iter: int, tol: float) -> tuple[Array, Array, Array]:
        """Return log likelihoods of the parts, and beliefs of groups and edges."""
        n_copies = log_t.shape[1] if len(self.pivots) else 1
        found = self.network.beliefs(log_t[:, None] + self.potentials[:, :n_copies], max_iter, tol)
        kept = ~self.cut
        log_p = sum_by(self.part, found.log_z, len(self.parts))
        log_p += sum_by(self.part_of_edge[kept], found.edge_z, len(self.parts))
        values = np.logaddexp.reduce(log_p, axis=1)
        share = np.exp(log_p - _zero_for_none(values)[:, None])
        beliefs = np.einsum("ik,ikc->ic", share[self.part], found.groups)
        agree = np.empty((len(self.edges), n_copies))
        agree[kept] = found.agree
        # The two ends of a cut edge agree where the other end has the class of the pivot.
        agree[self.cut] = np.diagonal(found.groups[self.other], axis1=1, axis2=2)
        return values, beliefs, np.sum(share[self.part_of_edge] * agree, axis=1)


def log_factors(same: Codes, errors: Array, weights: Array) -> Array:
    """Return log factors of answers by error rates, where classes agree (row 0) and differ (1)."""
    with np.errstate(divide="ignore"):
        wrong = weights * np.log(errors)
    right = weights * np.log1p(-errors)
    return np.where([same > 0, same < 0], right, wrong)


def careless_share(errors: Array, n_outcomes: Array) -> Array:
    """Return g of equation (8)."""
    return errors * n_outcomes / (n_outcomes - 1)


def question_factors(graph: AnswerGraph, errors: Array, right: Array) -> Array:
    """Return log factors by equation (8), with the probabilities (n_answers,) that answers are right."""
    careless = careless_share(errors, graph.outcomes)
    log_right = np.log(np.maximum(right, np.finfo(np.float64).tiny))
    n_questions = int(graph.question.max(initial=-1)) + 1
    rest = np.exp(np.bincount(graph.question, log_right, n_questions)[graph.question] - log_right)
    by_chance = careless / graph.outcomes
    with np.errstate(divide="ignore"):
        wrong = graph.weights * np.log(by_chance)
        right = graph.weights * np.log((1 - careless) * rest + by_chance)
    together = np.where([graph.same > 0, graph.same < 0], right, wrong)
    return np.where(graph.in_larger_question & (errors > 0), together, log_factors(graph.same, errors, graph.weights))


def _beside_known(graph: AnswerGraph, known: Indices, errors: Array, n_classes: int) -> tuple[Mask, Array]:
    """Return which answers are of larger questions about one point beside others of known class, and equation (8).

    It is exact there: the log evidence (n_points, n_classes). ``known`` (n_points,) is -1 where a class is not known.
    """
    n_questions = int(graph.question.max(initial=-1)) + 1
    open_ends = known[graph.ends] < 0
    point = np.where(open_ends[:, 0], graph.ends[:, 0], graph.ends[:, 1])
    first, last = np.full(n_questions, graph.n_points), np.full(n_questions, -1)
    of_open = open_ends.any(axis=1)
    np.minimum.at(first, graph.question[of_open], point[of_open])
    np.maximum.at(last, graph.question[of_open], point[of_open])
    alone = (first == last) & (np.bincount(graph.question, open_ends.all(axis=1), n_questions) == 0)
    about = alone[graph.question] & graph.in_larger_question & (errors > 0)
    evidence = np.zeros((graph.n_points, n_classes))
    if about.any():
        question, start, number = np.unique(graph.question[about], return_index=True, return_inverse=True)
        classes = known[graph.ends[about]]
        # The class of the other end; between two known ones, whether the answer is right.
        other = np.where(classes[:, 0] < 0, classes[:, 1], classes[:, 0])[:, None]
        agree = np.where((classes < 0).any(axis=1)[:, None], np.arange(n_classes) == other, classes[:, :1] == other)
        wrong = sum_by(number, (agree != (graph.same[about, None] > 0)).astype(np.float64), len(question))
        errors, outcomes, weights = (part[about][start, None] for part in (errors, graph.outcomes, graph.weights))
        careless = careless_share(errors, outcomes)
        log_l = weights * np.log((1 - careless) * (wrong == 0) + careless / outcomes)
        evidence = sum_by(first[question], log_l, graph.n_points)
    return about, evidence


def message(cavity: Array, agree: Array, differ: Array) -> Array:
    """Return equation (3) in logs, normalised over the classes, without cancellation."""
    n_classes = cavity.shape[-1]
    h = np.exp(cavity - _peak(cavity)[..., None])
    others = h.reshape(-1, n_classes) @ (1 - np.eye(n_classes))
    top = np.maximum(agree, differ)
    a, b = (_beside(np.exp(factor - top), h) for factor in (agree, differ))
    sent = a * h + b * others.reshape(h.shape)
    if sent.min(initial=1.0) < 1e3 * np.finfo(np.float64).tiny:
        # Underflow: work in logarithms.
        agree, differ = (_beside(factor, cavity) for factor in (agree, differ))
        sent = np.logaddexp(agree + cavity, differ + log_sum_of_others(cavity))
        return sent - _zero_for_none(log_sum(sent))[..., None]
    sent /= (a + (n_classes - 1) * b) * (h @ np.ones(n_classes))[..., None]
    return np.log(sent, out=sent)


def edge_beliefs(first: Array, second: Array, agree: Array, differ: Array) -> tuple[Array, Array]:
    """Return the probability that the ends of each edge agree, and its term in equation (5)."""
    same = _beside(agree, first)[..., 0] + log_sum(first + second)
    other = _beside(differ, first)[..., 0] + log_sum(first + log_sum_of_others(second))
    total = np.logaddexp(same, other)
    return np.exp(same - _zero_for_none(total)), total


def _beside(factor: Array, values: Array) -> Array:
    """Reshape factors (n_edges,) to broadcast with values (n_edges, ..., n_classes)."""
    return factor.reshape(-1, *[1] * (values.ndim - 1))


def _peak(log_h: Array) -> Array:
    """Return the maximum over classes; 0 where it is minus infinity."""
    # Column by column, as classes are few and rows many.
    return _zero_for_none(reduce(np.maximum, np.moveaxis(log_h, -1, 0)))


def log_sum(log_h: Array) -> Array:
    """Return the log of the sum over classes."""
    peak = _peak(log_h)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(log_h - peak[..., None]) @ np.ones(log_h.shape[-1])) + peak


def log_sum_of_others(log_h: Array) -> Array:
    """Return for each class the log of the sum over all others, to full relative precision."""
    return np.stack([log_sum(np.delete(log_h, c, axis=-1)) for c in range(log_h.shape[-1])], axis=-1)


def leave_one_out(group: Indices, messages: Array, n_groups: int) -> Array:
    """Return for each message the log product of the other messages into its group."""
    zero = np.isneginf(messages)
    if not zero.any():
        return sum_by(group, messages, n_groups)[group] - messages
    # A factor 0 cannot be divided out: count zeros instead.
    finite = np.where(zero, 0.0, messages)
    rest = sum_by(group, finite, n_groups)[group] - finite
    n_zeros = sum_by(group, zero, n_groups)[group] - zero
    return np.where(n_zeros > 0, -np.inf, rest)


def edges_on_trees(ends: Indices, component: Indices) -> Mask:
    """Return whether each edge is in a component without cycles: with fewer edges than groups."""
    of_edge = component[ends[:, 0]]
    n_edges = np.bincount(of_edge, minlength=len(component))
    n_groups = np.bincount(component, minlength=len(component))
    return (n_edges < n_groups)[of_edge]


def _absorb(ends: Indices, factors: Array, label: Indices, shape: tuple[int, int]) -> Array:
    """Return potentials for factors within a group, or with a group of known class."""
    agree, differ = factors
    first, second = ends.T
    inner = first == second
    constant = sum_by(first[inner], agree[inner], shape[0])
    from_first = label[first] >= 0
    known = np.where(from_first, first, second)[~inner]
    other = np.where(from_first, second, first)[~inner]
    is_label = np.eye(shape[1], dtype=bool)[label[known]]
    says = np.where(is_label, agree[~inner, None], differ[~inner, None])
    return constant[:, None] + sum_by(other, says, shape[0])


def _refuse_contradictions(graph: AnswerGraph, empty: Mask) -> None:
    """Raise where no class is possible for some points."""
    if empty.any():
        raise InputError(
            "The answers contradict each other or the labels, for example about point "
            f"{graph.points[np.argmax(empty)]}: no classes agree with all of them. Give `error_rate='auto'`, "
            "or a rate above 0, for example 0.05, or remove the wrong answers."
        )


def _contract(graph: AnswerGraph, certain: Mask, n_classes: int) -> tuple[Indices, Mask]:
    """Return the group of each point by certain answers, and which points are swapped in it."""
    if not certain.any():
        return np.arange(graph.n_points), np.zeros(graph.n_points, dtype=bool)
    if n_classes > 2:
        certain = certain & (graph.same > 0)
        return connect(graph.ends[certain], graph.n_points), np.zeros(graph.n_points, dtype=bool)
    group, side = connect_both_ways(graph.ends[certain], graph.same[certain], graph.n_points)
    return group, side < 0


def _label_potentials(
    graph: AnswerGraph, group: Indices, swapped: Mask, n_groups: int, n_classes: int
) -> tuple[Array, Indices]:
    """Return potentials that exclude classes by labels, and the labelled class of each group."""
    label = np.full(n_groups, -1)
    known = np.flatnonzero(graph.labels)
    classes = class_columns(graph.labels[known], n_classes)
    classes = np.where(swapped[known], 1 - classes, classes)
    label[group[known]] = classes
    allowed = np.where(np.eye(n_classes, dtype=bool)[classes], 0.0, -np.inf)
    return sum_by(group[known], allowed, n_groups), label


def class_columns(labels: Codes, n_classes: int) -> Indices:
    """Return the column of each label: -1 and +1 with two classes, 1 to K with more."""
    largest = labels.max(initial=0)
    if n_classes == 2 and largest <= 1:
        return (labels > 0).astype(np.intp)
    if n_classes == 2 or labels.min(initial=0) < 0 or largest > n_classes:
        allowed = "-1 and +1" if n_classes == 2 else f"1 to {n_classes}"
        raise InputError(
            f"Labels with {n_classes} classes are {allowed}, got {np.unique(labels)[:10].tolist()}: set `n_classes`."
        )
    return labels - 1


def _cavities(ends: Indices, log_t: Array, messages: Array) -> Array:
    """Return equation (2) in logs, for both ends of each edge."""
    group = ends.T.ravel()
    rest = leave_one_out(group, messages.reshape(-1, *log_t.shape[1:]), len(log_t))
    return (log_t[group] + rest).reshape(messages.shape)


def _zero_for_none(log_z: Array) -> Array:
    """Replace minus infinity by 0, so that subtracting it gives no NaN."""
    return np.where(np.isneginf(log_z), 0.0, log_z)
