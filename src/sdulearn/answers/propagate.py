"""Likelihood of all answers and posterior of every point, by belief propagation.

Point i has a hidden class c_i with node probability p_i(c). An answer is a factor of its two points
that knows only whether their classes agree (:func:`log_factors`):

    P(answers, labels) = sum_c  prod_i p_i(c_i)  prod_answers f(c_i, c_j)                   (1)

(1) is reduced, exactly, before a message is sent. "Same" answers that are never wrong contract
points to a *group*; with two classes "different" ones do so too, with the classes of one side
swapped. Repeated questions are one edge between groups, an answer within a group is a constant, and
one about a labelled group a potential of the other. What is left are groups with potentials t(c),
and edges whose factor is a where the classes of the two ends agree and b where they differ:

    cavity   h(c) = t(c) * product of all messages into the group but one                   (2)
    message  m(c') = a h(c') + b sum_{c != c'} h(c)                                         (3)
    belief   q(c) = t(c) * product of all messages into the group / Z                       (4)
    log Z = sum_groups log Z_g + sum_edges log sum_{c, c'} f(c, c') h(c) h'(c') / (Z_g Z_g')    (5)

(5) is the Bethe free energy [1]_: exact on trees, where two sweeps send every message once. In
components with cycles all messages are sent at once, again and again, damped. Such a component is
taken once for each class k of one group, the *pivot*, with the most edges on its cycles [2]_:

    P = sum_k P_k,  where P_k is the likelihood with the pivot in class k                   (6)
    posterior = sum_k P_k / P * posterior_k                                                 (7)

Both are exact. In a copy no cycle leads through the pivot, and solutions that differ by a flip of
all classes are kept apart. With logits z and p = softmax(z), the slope of the value in z_ic is
posterior_ic - p_ic (Fisher's identity), in components with cycles wherever the messages came to
rest. On small random graphs posteriors are off by 0.005 on average. Whether K > 2 classes can agree
with "different" answers around cycles is a graph colouring, which messages do not decide: such a
contradiction may go unnoticed, with a finite value.

References
----------
.. [1] Yedidia, Freeman & Weiss, "Constructing free-energy approximations and generalized belief
   propagation algorithms", IEEE Transactions on Information Theory 51 (2005).
.. [2] Pearl, "Probabilistic Reasoning in Intelligent Systems" (1988), section 4.4, on conditioning.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from sdulearn.answers.graph import AnswerGraph, connect, find_pivots, find_sides, number_questions, sum_by
from sdulearn.errors import InputError
from sdulearn.types import Array, Codes, Indices, Mask

# Share of the old log message in a new one, around cycles.
_DAMPING = 0.3


class Propagation(NamedTuple):
    """What the answers say of the classes."""

    value: float  # log likelihood of all answers and labels
    posteriors: Array  # (n_points, n_classes), probability of each class of each point, given all answers and labels
    right: Array  # (n_answers,), probability that each answer is right
    component_values: Array  # (n_components,), the part of each component of the graph in ``value``


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """The groups of points that answers without errors leave, and edges, for any node probabilities."""

    graph: AnswerGraph
    group: Indices  # (n_points,), group of each point
    swapped: Mask  # (n_points,), whether the two classes of a point are swapped in its group
    # (n_groups, n_classes), what labels and answers within a group or with a labelled group say of it, in logarithms
    potentials: Array
    label: Indices  # (n_groups,), class that a label fixes, -1 where none does
    edge: Indices  # (n_answers,), the edge that each answer is part of, -1 where it is part of a potential
    ends: Indices  # (n_edges, 2), the two groups of each edge
    agree: Array  # (n_edges,), log factors where the classes of the two groups agree and where they differ
    differ: Array
    component: Indices  # (n_groups,), component of the answers that each group is in

    @classmethod
    def from_answers(cls, graph: AnswerGraph, n_classes: int, factors: Array) -> FactorGraph:
        """Contract what answers without errors tie together, by the log factors (2, n_answers) of all."""
        if n_classes < 2:
            raise InputError(f"There are two classes or more, got {n_classes}.")
        group, swapped = _contract(graph, np.isneginf(factors.min(axis=0)), n_classes)
        n_groups = int(group.max(initial=-1)) + 1
        potentials, label = _label_potentials(graph, group, swapped, n_groups, n_classes)
        ends = group[graph.ends]
        # A factor of two points, seen from their groups: swapping one end swaps agree and differ.
        factors = np.where(swapped[graph.ends[:, 0]] != swapped[graph.ends[:, 1]], factors[::-1], factors)
        joins = (ends[:, 0] != ends[:, 1]) & (label[ends] < 0).all(axis=1)
        potentials += _absorb(ends[~joins], factors[:, ~joins], label, potentials.shape)
        _refuse_contradictions(graph, np.isneginf(potentials.max(axis=1))[group])
        edge = np.full(graph.n_answers, -1)
        edges, edge[joins] = number_questions(ends[joins], n_groups)
        agree, differ = (sum_by(edge[joins], factor, len(edges)) for factor in factors[:, joins])
        component = np.zeros(n_groups, dtype=np.intp)
        component[group] = graph.component
        return cls(graph, group, swapped, potentials, label, edge, edges, agree, differ, component)

    @classmethod
    def of_evidence(cls, graph: AnswerGraph, log_evidence: Array) -> FactorGraph:
        """Points with what is known of each (n_points, n_classes), and no edges between them."""
        points = np.arange(graph.n_points)
        nothing = np.zeros(graph.n_points, dtype=bool)
        potentials, label = _label_potentials(graph, points, nothing, graph.n_points, log_evidence.shape[1])
        edge = np.full(graph.n_answers, -1)
        no_edges = (np.zeros((0, 2), dtype=np.intp), np.zeros(0), np.zeros(0))
        return cls(graph, points, nothing, potentials + log_evidence, label, edge, *no_edges, graph.component)

    def propagate(self, log_node_probabilities: Array, *, max_iter: int = 200, tol: float = 1e-9) -> Propagation:
        """The likelihood of all answers and the posterior of every point.

        ``log_node_probabilities``, (n_points, n_classes) or (n_classes,), are of a classifier or of class shares.
        Labels -1 and +1 are the first and the second column, labels 1 to K the K columns.
        """
        swapped = self.swapped[:, None]
        log_p = np.broadcast_to(log_node_probabilities, (self.graph.n_points, self.potentials.shape[1]))
        log_p = np.where(swapped, log_p[:, ::-1], log_p)
        # Potentials of the groups: p^k q^(m - k) where k of m points are on one side.
        log_t = self.potentials + sum_by(self.group, log_p, len(self.potentials))
        trees = self.trees.beliefs(log_t)
        cycles = self.cycles
        cycle_values, beliefs, cycle_agree = cycles.mixture(log_t, max_iter, tol)
        trees.groups[cycles.groups] = beliefs
        trees.log_z[cycles.groups] = 0.0
        size = self.graph.n_components
        values = sum_by(self.component, trees.log_z, size)
        values += sum_by(self.component[self.trees.ends[:, 0]], trees.edge_z, size)
        values += sum_by(self.component[cycles.groups[cycles.pivots]], cycle_values, size)
        _refuse_contradictions(self.graph, np.isneginf(values)[self.graph.component])
        agree = np.empty(len(self.ends))
        agree[self.on_tree] = trees.agree
        agree[~self.on_tree] = cycle_agree
        posteriors = trees.groups[self.group]
        return Propagation(
            value=float(values.sum()),
            posteriors=np.where(swapped, posteriors[:, ::-1], posteriors),
            right=self._right(trees.groups, agree),
            component_values=values,
        )

    @cached_property
    def on_tree(self) -> Mask:
        """Whether each edge is in a part without cycles."""
        return edges_on_trees(self.ends, connect(self.ends, len(self.potentials)))

    @cached_property
    def trees(self) -> Network:
        """All groups, and the edges in parts without cycles."""
        kept = self.on_tree
        return Network(self.ends[kept], self.agree[kept], self.differ[kept], len(self.potentials))

    @cached_property
    def cycles(self) -> ConditionedNetwork:
        """The other edges and their groups."""
        kept = ~self.on_tree
        return ConditionedNetwork(self.ends[kept], self.agree[kept], self.differ[kept], self.potentials.shape[1])

    def _right(self, beliefs: Array, agree: Array) -> Array:
        """Probability that each answer is right, from the beliefs of edges and groups."""
        first, second = self.group[self.graph.ends].T
        # Of two groups that no edge joins, beliefs are independent.
        same = np.where(first == second, 1.0, np.einsum("ij,ij->i", beliefs[first], beliefs[second]))
        on_edge = self.edge >= 0
        same[on_edge] = agree[self.edge[on_edge]]
        for one, other in ((first, second), (second, first)):
            fixed = np.flatnonzero((one != other) & (self.label[one] >= 0))
            same[fixed] = beliefs[other[fixed], self.label[one[fixed]]]
        crossed = self.swapped[self.graph.ends[:, 0]] != self.swapped[self.graph.ends[:, 1]]
        return np.where(crossed == (self.graph.same > 0), 1 - same, same)


class Beliefs(NamedTuple):
    """What the messages of a network say when they are at rest."""

    groups: Array  # (n_groups, n_classes), probability of each class, equation (4); zeros where no class is left
    log_z: Array  # (n_groups,), term of each group in equation (5)
    agree: Array  # (n_edges,), probability that the two ends of each edge agree
    edge_z: Array  # (n_edges,), term of each edge in equation (5)


class Network:
    """Groups and edges, in the order in which messages are sent; potentials come later.

    ``ends`` (n_edges, 2) are the two groups of each edge, of which no two join the same groups;
    ``agree`` and ``differ`` (n_edges,) its log factors.
    """

    def __init__(self, ends: Indices, agree: Array, differ: Array, n_groups: int) -> None:
        self.ends = ends
        self.agree = agree
        self.differ = differ
        self.component = connect(ends, n_groups)
        on_tree = edges_on_trees(ends, self.component)
        self.loopy = np.flatnonzero(~on_tree)
        self._order_trees(np.flatnonzero(on_tree))

    def _order_trees(self, edges: Indices) -> None:
        """Root every tree at its first group and order its edges by breadth, level by level."""
        groups, local = np.unique(self.ends[edges], return_inverse=True)
        place, n_roots = _search(local.reshape(-1, 2), len(groups))
        places = place[local].reshape(-1, 2)
        order = np.argsort(places.max(axis=1))
        self.tree_edges = edges[order]
        # Which of the two ends is the upper one, the groups at both ends, and the edges of each level with their
        # different parents and where the children of each begin.
        self.upper = places.argmin(axis=1)[order]
        self.parent = self.ends[self.tree_edges, self.upper]
        self.child = self.ends[self.tree_edges, 1 - self.upper]
        levels = _levels(places.min(axis=1)[order], n_roots)
        # And which of these each is a child of.
        self.levels = [(level, self.parent[level][starts], starts, family) for level, starts, family in levels]

    def beliefs(self, log_t: Array, max_iter: int = 0, tol: float = 1e-9) -> Beliefs:
        """Send messages, given the log potentials (n_groups, ..., n_classes), and read the beliefs; in their type."""
        cavities = np.empty((2, len(self.ends), *log_t.shape[1:]), log_t.dtype)
        log_q = self._sweep(log_t, cavities)
        self._flood(log_t, cavities, log_q, max_iter, tol)
        log_z = log_sum(log_q)
        # Where no class is left the likelihood is 0, and beliefs are of no account.
        scale = _zero_for_none(log_z)[..., None]
        cavities -= scale[self.ends.T]
        first, second = cavities
        agree, edge_z = edge_beliefs(first, second, self.agree, self.differ)
        return Beliefs(np.exp(log_q - scale), log_z, agree, edge_z)

    def _sweep(self, log_t: Array, cavities: Array) -> Array:
        """Messages on trees, from the leaves to the roots and back: fills their cavities, returns all beliefs' logs."""
        agree = self.agree[self.tree_edges]
        differ = self.differ[self.tree_edges]
        up = np.empty((len(self.tree_edges), *log_t.shape[1:]), log_t.dtype)
        siblings = np.empty_like(up)
        log_q = log_t.copy()
        for level, parents, starts, family in reversed(self.levels):
            up[level] = message(log_q[self.child[level]], agree[level], differ[level])
            total = np.add.reduceat(up[level], starts)
            log_q[parents] += total
            siblings[level] = total[family]
        with np.errstate(invalid="ignore"):
            siblings -= up
        if not np.isfinite(siblings).all():
            siblings = leave_one_out(self.parent, up, len(log_t))
        # Whatever comes from below is there: the children's cavities.
        cavities[1 - self.upper, self.tree_edges] = log_q[self.child]
        above = log_t.copy()
        for level, *_ in self.levels:
            cavity = above[self.parent[level]] + siblings[level]
            cavities[self.upper[level], self.tree_edges[level]] = cavity
            down = message(cavity, agree[level], differ[level])
            above[self.child[level]] += down
            log_q[self.child[level]] += down
        return log_q

    def _flood(self, log_t: Array, cavities: Array, log_q: Array, max_iter: int, tol: float) -> None:
        """Damped messages over all edges in components with cycles, until they come to rest."""
        messages = np.zeros((2, len(self.ends), *log_t.shape[1:]))
        moving = self.loopy
        n_iter = 0
        while len(moving) and n_iter < max_iter:
            groups, local = np.unique(self.ends[moving], return_inverse=True)
            ends = local.reshape(-1, 2)
            component = np.unique(self.component[self.ends[moving, 0]], return_inverse=True)[1]
            agree = self.agree[moving]
            differ = self.differ[moving]
            old = messages[:, moving]
            rests = np.zeros(len(moving), dtype=bool)
            # What rests is left out once it is half of all.
            while n_iter < max_iter and 2 * rests.sum() < len(rests):
                first, second = _cavities(ends, log_t[groups], old)
                fresh = np.stack([message(second, agree, differ), message(first, agree, differ)])
                # A component rests as a whole.
                with np.errstate(invalid="ignore"):
                    # Minus infinity twice is no change.
                    change = np.where(fresh == old, 0.0, np.abs(fresh - old)).max(axis=(0, *range(2, fresh.ndim)))
                moved = np.bincount(component, change > tol)
                rests = moved[component] == 0
                old = (1 - _DAMPING) * fresh + _DAMPING * old
                n_iter += 1
            messages[:, moving] = old
            moving = moving[~rests]
        if len(self.loopy):
            ends = self.ends[self.loopy]
            arrived = messages[:, self.loopy]
            cavities[:, self.loopy] = _cavities(ends, log_t, arrived)
            log_q += sum_by(ends.T.ravel(), arrived.reshape(-1, *log_t.shape[1:]), len(log_t))


class ConditionedNetwork:
    """Components with cycles, a copy for each class of their pivots: equations (6) and (7)."""

    def __init__(self, ends: Indices, agree: Array, differ: Array, n_classes: int) -> None:
        # The groups are numbered from 0 below.
        self.groups, self.ends, self.component, self.pivots = find_pivots(ends)
        n_groups = len(self.groups)
        is_pivot = np.zeros(n_groups, dtype=bool)
        is_pivot[self.pivots] = True
        # Edges that end at a pivot are cut; all copies of the others are one network.
        self.cut = is_pivot[self.ends].any(axis=1)
        kept = ~self.cut
        copies = np.arange(n_classes)[:, None, None] * n_groups + self.ends[kept]
        factors = (np.tile(agree[kept], n_classes), np.tile(differ[kept], n_classes))
        self.network = Network(copies.reshape(-1, 2), *factors, n_classes * n_groups)
        # What the pivots in class k say of each group, (n_classes, n_groups, n_classes).
        cut_factors = np.stack([agree, differ])[:, self.cut]
        self.potentials = np.stack(
            [
                _absorb(self.ends[self.cut], cut_factors, np.where(is_pivot, k, -1), (n_groups, n_classes))
                for k in range(n_classes)
            ]
        )
        self.potentials[:, self.pivots] = np.where(np.eye(n_classes, dtype=bool), 0.0, -np.inf)[:, None, :]

    def mixture(self, log_t: Array, max_iter: int, tol: float) -> tuple[Array, Array, Array]:
        """Log likelihoods of the components, and beliefs of groups and edges, by log potentials."""
        n_classes, n_groups, _ = self.potentials.shape
        copies = self.potentials + log_t[self.groups]
        found = self.network.beliefs(copies.reshape(-1, n_classes), max_iter, tol)
        size = len(self.pivots)
        of_edge = self.component[self.ends[~self.cut, 0]]
        log_p = sum_by(self.component, found.log_z.reshape(n_classes, -1).T, size).T
        log_p += sum_by(of_edge, found.edge_z.reshape(n_classes, -1).T, size).T
        values = np.logaddexp.reduce(log_p, axis=0)
        share = np.exp(log_p - _zero_for_none(values))
        beliefs = found.groups.reshape(n_classes, n_groups, n_classes)
        agree = np.empty((n_classes, len(self.ends)))
        agree[:, ~self.cut] = found.agree.reshape(n_classes, -1)
        # In copy k the other end of a cut edge agrees with the pivot where it is in class k.
        ends = self.ends[self.cut]
        other = np.where(np.isin(ends[:, 0], self.pivots), ends[:, 1], ends[:, 0])
        agree[:, self.cut] = [beliefs[k, other, k] for k in range(n_classes)]
        groups = np.einsum("kg,kgc->gc", share[:, self.component], beliefs)
        on_edges = (share[:, self.component[self.ends[:, 0]]] * agree).sum(axis=0)
        return values, groups, on_edges


def log_factors(same: Codes, errors: Array, weights: Array) -> Array:
    """Log factors of answers that are wrong at these rates, where the classes agree (row 0) and where they differ."""
    with np.errstate(divide="ignore"):
        wrong = weights * np.log(errors)
    right = weights * np.log1p(-errors)
    return np.where([same > 0, same < 0], right, wrong)


def message(cavity: Array, agree: Array, differ: Array) -> Array:
    """Equation (3) in logarithms, of sum 1 over the classes; without a difference that cancels."""
    n_classes = cavity.shape[-1]
    flat = cavity.reshape(-1, n_classes)
    rows = np.arange(len(flat))
    top = flat.argmax(axis=1)
    h = np.exp(flat - _zero_for_none(flat[rows, top])[:, None])
    largest = h[rows, top]
    h[rows, top] = 0.0
    rest = h @ np.ones(n_classes, h.dtype)
    others = (largest + rest)[:, None] - h
    others[rows, top] = rest
    h[rows, top] = largest
    factors = np.exp([agree, differ] - np.maximum(agree, differ)).astype(h.dtype)
    a, b = np.repeat(factors, len(flat) // len(agree), axis=1)
    sent = a[:, None] * h + b[:, None] * others
    if sent.min(initial=1.0) < 1e3 * np.finfo(h.dtype).tiny:
        # Nothing is left, or too little for anything but logarithms.
        agree, differ = (_beside(factor, cavity) for factor in (agree, differ))
        sent = np.logaddexp(agree + cavity, differ + log_sum_of_others(cavity))
        return sent - _zero_for_none(log_sum(sent))[..., None]
    return np.log(sent / ((a + (n_classes - 1) * b) * (largest + rest))[:, None]).reshape(cavity.shape)


def edge_beliefs(first: Array, second: Array, agree: Array, differ: Array) -> tuple[Array, Array]:
    """Probability that the two ends of each edge agree, and the edge's term in equation (5)."""
    same = _beside(agree, first)[..., 0] + log_sum(first + second)
    other = _beside(differ, first)[..., 0] + log_sum(first + log_sum_of_others(second))
    total = np.logaddexp(same, other)
    return np.exp(same - _zero_for_none(total)), total


def _beside(factor: Array, values: Array) -> Array:
    """Numbers of edges (n_edges,), as they stand beside values (n_edges, ..., n_classes)."""
    return factor.reshape(-1, *[1] * (values.ndim - 1))


def log_sum(log_h: Array) -> Array:
    """Log of the sum over classes."""
    # Column by column, as classes are few and rows many.
    peak = _zero_for_none(reduce(np.maximum, np.moveaxis(log_h, -1, 0)))
    with np.errstate(divide="ignore"):
        return np.log(np.exp(log_h - peak[..., None]) @ np.ones(log_h.shape[-1], log_h.dtype)) + peak


def log_sum_of_others(log_h: Array) -> Array:
    """For each class the log of the sum over all other classes, to full relative precision."""
    if log_h.shape[-1] == 2:
        return log_h[..., ::-1]
    shape = log_h.shape
    log_h = log_h.reshape(-1, shape[-1])
    rows = np.arange(len(log_h))
    top = log_h.argmax(axis=1)
    peak = _zero_for_none(log_h[rows, top])[:, None]
    h = np.exp(log_h - peak)
    others = (h @ np.ones(shape[-1], h.dtype))[:, None] - h
    # At the top the difference would cancel: sum the others by themselves.
    others[rows, top] = 1.0
    with np.errstate(divide="ignore"):
        log_others = np.log(others) + peak
    without = log_h.copy()
    without[rows, top] = -np.inf
    log_others[rows, top] = log_sum(without)
    return log_others.reshape(shape)


def leave_one_out(group: Indices, messages: Array, n_groups: int) -> Array:
    """For each message the log product of the other messages into its group."""
    zero = np.isneginf(messages)
    if not zero.any():
        return sum_by(group, messages, n_groups)[group] - messages
    # A factor 0 cannot be divided out again: zeros are counted instead.
    finite = np.where(zero, 0.0, messages)
    rest = sum_by(group, finite, n_groups)[group] - finite
    n_zeros = sum_by(group, zero, n_groups)[group] - zero
    return np.where(n_zeros > 0, -np.inf, rest)


def edges_on_trees(ends: Indices, component: Indices) -> Mask:
    """Whether each edge is in a component without cycles: with fewer edges than groups."""
    of_edge = component[ends[:, 0]]
    n_edges = np.bincount(of_edge, minlength=len(component))
    n_groups = np.bincount(component, minlength=len(component))
    return (n_edges < n_groups)[of_edge]


def _absorb(ends: Indices, factors: Array, label: Indices, shape: tuple[int, int]) -> Array:
    """Potentials that stand for factors within a group, or with one of known class."""
    agree, differ = factors
    first, second = ends.T
    inner = first == second
    constant = sum_by(first[inner], agree[inner], shape[0])
    from_first = label[first] >= 0
    known = np.where(from_first, first, second)[~inner]
    other = np.where(from_first, second, first)[~inner]
    says = np.repeat(differ[~inner][:, None], shape[1], axis=1)
    says[np.arange(len(known)), label[known]] = agree[~inner]
    return constant[:, None] + sum_by(other, says, shape[0])


def _refuse_contradictions(graph: AnswerGraph, empty: Mask) -> None:
    """An InputError where no class is left for some points."""
    if empty.any():
        raise InputError(
            "The answers contradict each other or the labels in "
            f"{len(np.unique(graph.component[empty]))} of {graph.n_components} components (for example "
            f"about point {graph.points[np.argmax(empty)]}): no classes agree with all of them. Give "
            "`error_rate='auto'`, or `error_rate` above 0, for example 0.05, or remove the wrong answers."
        )


def _contract(graph: AnswerGraph, certain: Mask, n_classes: int) -> tuple[Indices, Mask]:
    """Group of each point along answers without errors, and which points are swapped in theirs."""
    if n_classes > 2:
        group = connect(graph.ends[certain & (graph.same > 0)], graph.n_points)
        return group, np.zeros(graph.n_points, dtype=bool)
    ends = graph.ends[certain]
    return connect(ends, graph.n_points), find_sides(ends, graph.same[certain], graph.n_points) < 0


def _label_potentials(
    graph: AnswerGraph, group: Indices, swapped: Mask, n_groups: int, n_classes: int
) -> tuple[Array, Indices]:
    """Log 0 for each class that a label excludes, and the class that labels fix in each group."""
    potentials = np.zeros((n_groups, n_classes))
    label = np.full(n_groups, -1)
    known = np.flatnonzero(graph.labels)
    if not len(known):
        return potentials, label
    classes = _class_numbers(graph.labels[known], n_classes)
    classes = np.where(swapped[known], 1 - classes, classes)
    label[group[known]] = classes
    excluded = np.full((len(known), n_classes), -np.inf)
    excluded[np.arange(len(known)), classes] = 0.0
    return sum_by(group[known], excluded, n_groups), label


def _class_numbers(labels: Codes, n_classes: int) -> Indices:
    """Columns of labels: -1 and +1 with two classes, 1 to K with more."""
    if n_classes == 2 and labels.max() <= 1:
        return (labels > 0).astype(np.intp)
    if n_classes == 2 or labels.min() < 0 or labels.max() > n_classes:
        allowed = "-1 and +1" if n_classes == 2 else f"1 to {n_classes}"
        raise InputError(
            f"Labels with {n_classes} classes are {allowed}, got {np.unique(labels)[:10].tolist()}. Give `n_classes` "
            "as many as there are."
        )
    return labels - 1


def _cavities(ends: Indices, log_t: Array, messages: Array) -> Array:
    """Equation (2) in logarithms, for both ends of each edge."""
    group = ends.T.ravel()
    rest = leave_one_out(group, messages.reshape(-1, *log_t.shape[1:]), len(log_t))
    return (log_t[group] + rest).reshape(messages.shape)


def _zero_for_none(log_z: Array) -> Array:
    """What to subtract without making NaN: 0 where nothing is left."""
    return np.where(np.isneginf(log_z), 0.0, log_z)


def _search(ends: Indices, n_groups: int) -> tuple[Indices, int]:
    """Place of each group in one breadth-first search of all trees, and their number."""
    roots = np.unique(connect(ends, n_groups), return_index=True)[1]
    # One node more, joined to the root of every tree, makes the forest a tree.
    start = np.r_[ends[:, 0], np.full(len(roots), n_groups)]
    stop = np.r_[ends[:, 1], roots]
    adjacency = csr_matrix((np.ones(len(start)), (start, stop)), shape=(n_groups + 1, n_groups + 1))
    order = breadth_first_order(adjacency, n_groups, directed=False, return_predecessors=False)
    place = np.empty(n_groups + 1, dtype=np.intp)
    place[order] = np.arange(-1, n_groups)
    return place[:-1], len(roots)


def _levels(parent_place: Indices, n_roots: int) -> list[tuple[slice, Indices, Indices]]:
    """Edges of each level, given the places of their parents; where a new parent begins, and which one each has."""
    levels = []
    start = 0
    # Places below ``reached`` are of groups found so far; their children make the next level.
    reached = n_roots
    while start < len(parent_place):
        stop = int(np.searchsorted(parent_place, reached))
        begins = np.diff(parent_place[start:stop], prepend=-1) != 0
        levels.append((slice(start, stop), np.flatnonzero(begins), np.cumsum(begins) - 1))
        reached += stop - start
        start = stop
    return levels
