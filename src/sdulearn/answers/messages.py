"""Sum-product on a network of groups joined by edges, in logarithms, all edges of a step at once.

Group g has a potential t(c) over K classes. An edge knows only whether the classes of its two ends
agree: its factor f(c, c') is a where c = c' and b where they differ.

    cavity   h(c) = t(c) * product of all messages into the group but one                   (1)
    message  m(c') = a h(c') + b sum_{c != c'} h(c)                                         (2)
    belief   q(c) = t(c) * product of all messages into the group / Z                       (3)
    log Z = sum_groups log Z_g + sum_edges log sum_{c, c'} f(c, c') h(c) h'(c') / (Z_g Z_g')    (4)

(4) is the Bethe free energy [1]_: exact on trees, where two sweeps send every message once. In
components with cycles all messages are sent at once, again and again, damped.

References
----------
.. [1] Yedidia, Freeman & Weiss, "Constructing free-energy approximations and generalized belief
   propagation algorithms", IEEE Transactions on Information Theory 51 (2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from sdulearn.answers.graph import connect
from sdulearn.types import Array, Indices, Mask


@dataclass(frozen=True)
class Schedule:
    """When to stop: for components with cycles only."""

    damping: float  # share of the old log message in a new one
    max_iter: int  # most rounds of messages
    tol: float  # messages are at rest where no logarithm moves more


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What the messages say when they are at rest."""

    groups: Array  # (n_groups, n_classes), probability of each class, equation (3); zeros where no class is left
    log_z: Array  # (n_groups,), term of each group in equation (4)
    agree: Array  # (n_edges,), probability that the two ends of each edge agree
    edge_z: Array  # (n_edges,), term of each edge in equation (4)
    converged: bool  # whether all messages came to rest
    n_iter: int  # rounds of messages in components with cycles


@dataclass(frozen=True, eq=False)
class Network:
    """Groups and edges, in the order in which messages are sent; potentials come later."""

    ends: Indices  # (n_edges, 2), the two groups of each edge; no two edges join the same groups
    agree: Array  # (n_edges,), log factors where the classes of the ends agree and where they differ
    differ: Array
    component: Indices  # (n_groups,), connected component of each group
    loopy: Indices  # edges in components with cycles
    forest: Forest  # the other edges

    @classmethod
    def from_edges(cls, ends: Indices, agree: Array, differ: Array, n_groups: int) -> Network:
        """Find out which edges are on trees."""
        component = connect(ends, n_groups)
        on_tree = edges_on_trees(ends, component)
        forest = Forest.from_edges(ends, np.flatnonzero(on_tree))
        return cls(ends, agree, differ, component, np.flatnonzero(~on_tree), forest)

    def beliefs(self, log_t: Array, schedule: Schedule) -> Beliefs:
        """Send messages, given the log potentials (n_groups, n_classes), and read the beliefs."""
        messages = np.zeros((2, len(self.ends), log_t.shape[1]))
        self._sweep(log_t, messages)
        converged, n_iter = self._flood(log_t, messages, schedule)
        cavities = _cavities(self.ends, log_t, messages)
        log_q = log_t + sum_by(self.ends.T.ravel(), messages.reshape(-1, log_t.shape[1]), len(log_t))
        log_z = log_sum(log_q)
        # Where no class is left the likelihood is 0, and beliefs are of no account.
        scale = _zero_for_none(log_z)
        cavities -= scale[self.ends.T][:, :, None]
        first, second = cavities
        agree, edge_z = edge_beliefs(first, second, self.agree, self.differ)
        return Beliefs(np.exp(log_q - scale[:, None]), log_z, agree, edge_z, converged, n_iter)

    def _sweep(self, log_t: Array, messages: Array) -> None:
        """Messages on trees: from the leaves to the roots, and back."""
        forest = self.forest
        agree = self.agree[forest.edges]
        differ = self.differ[forest.edges]
        up = np.zeros((len(forest.edges), log_t.shape[1]))
        below = log_t.copy()
        for level, parents, starts in reversed(forest.levels):
            up[level] = message(below[forest.child[level]], agree[level], differ[level])
            below[parents] += np.add.reduceat(up[level], starts)
        down = np.zeros_like(up)
        above = log_t.copy()
        siblings = leave_one_out(forest.parent, up, len(log_t))
        for level, _, _ in forest.levels:
            cavity = above[forest.parent[level]] + siblings[level]
            down[level] = message(cavity, agree[level], differ[level])
            above[forest.child[level]] += down[level]
        messages[forest.parent_end, forest.edges] = up
        messages[1 - forest.parent_end, forest.edges] = down

    def _flood(self, log_t: Array, messages: Array, schedule: Schedule) -> tuple[bool, int]:
        """Damped messages over all edges in components with cycles, until they come to rest."""
        moving = self.loopy
        n_iter = 0
        while len(moving) and n_iter < schedule.max_iter:
            groups, local = np.unique(self.ends[moving], return_inverse=True)
            part = Flood(local.reshape(-1, 2), log_t[groups], self.agree[moving], self.differ[moving])
            component = np.unique(self.component[self.ends[moving, 0]], return_inverse=True)[1]
            current, rests, n_iter = part.run(messages[:, moving], component, schedule, n_iter)
            messages[:, moving] = current
            moving = moving[~rests]
        return not len(moving), n_iter


@dataclass(frozen=True, eq=False)
class Flood:
    """Components with cycles that are not at rest, by themselves; attributes as in :class:`Network`."""

    ends: Indices
    log_t: Array
    agree: Array
    differ: Array

    def run(self, messages: Array, component: Indices, schedule: Schedule, n_iter: int) -> tuple[Array, Mask, int]:
        """Messages when half of the edges are at rest or time is up, which edges rest, and the rounds so far."""
        rests = np.zeros(len(self.ends), dtype=bool)
        while n_iter < schedule.max_iter and 2 * rests.sum() < len(rests):
            fresh = self.step(messages)
            # A component rests as a whole.
            moved = np.bincount(component, _change(fresh, messages) > schedule.tol)
            rests = moved[component] == 0
            messages = _damp(fresh, messages, schedule.damping)
            n_iter += 1
        return messages, rests, n_iter

    def step(self, messages: Array) -> Array:
        """A new message over every edge in both directions; ``messages[k]`` go to the ends k."""
        first, second = _cavities(self.ends, self.log_t, messages)
        return np.stack([message(second, self.agree, self.differ), message(first, self.agree, self.differ)])


@dataclass(frozen=True, eq=False)
class Forest:
    """Edges of trees in the order of a breadth-first search, level by level from the roots."""

    edges: Indices  # (n_tree_edges,), the edges, by the place of their lower ends in the search
    child: Indices  # (n_tree_edges,), the groups at their lower and upper ends
    parent: Indices
    parent_end: Indices  # (n_tree_edges,), which of the two ends of the edge is the upper one
    # edges of each level, their different parents, and where the children of each begin
    levels: list[tuple[slice, Indices, Indices]]

    @classmethod
    def from_edges(cls, ends: Indices, edges: Indices) -> Forest:
        """Root every tree at its first group and order the given edges by a breadth-first search."""
        groups, local = np.unique(ends[edges], return_inverse=True)
        place, n_roots = _search(local.reshape(-1, 2), len(groups))
        places = place[local].reshape(-1, 2)
        order = np.argsort(places.max(axis=1))
        ordered = edges[order]
        upper = places.argmin(axis=1)[order]
        parent = ends[ordered, upper]
        levels = _levels(places.min(axis=1)[order], n_roots)
        return cls(
            edges=ordered,
            child=ends[ordered, 1 - upper],
            parent=parent,
            parent_end=upper,
            levels=[(level, parent[level][starts], starts) for level, starts in levels],
        )


def message(cavity: Array, agree: Array, differ: Array) -> Array:
    """Equation (2) in logarithms, the largest 0; without a difference that cancels."""
    sent = np.logaddexp(agree[:, None] + cavity, differ[:, None] + log_sum_of_others(cavity))
    return sent - _zero_for_none(_largest(sent))[:, None]


def edge_beliefs(first: Array, second: Array, agree: Array, differ: Array) -> tuple[Array, Array]:
    """Probability that the two ends of each edge agree, and the edge's term in equation (4)."""
    same = agree + log_sum(first + second)
    other = differ + log_sum(first + log_sum_of_others(second))
    total = np.logaddexp(same, other)
    return np.exp(same - _zero_for_none(total)), total


def log_sum(log_h: Array) -> Array:
    """Log of the sum over classes."""
    peak = _zero_for_none(_largest(log_h))
    with np.errstate(divide="ignore"):
        return np.log(np.exp(log_h - peak[:, None]) @ np.ones(log_h.shape[1])) + peak


def log_sum_of_others(log_h: Array) -> Array:
    """For each class the log of the sum over all other classes, to full relative precision."""
    if log_h.shape[1] == 2:
        return log_h[:, ::-1]
    rows = np.arange(len(log_h))
    top = log_h.argmax(axis=1)
    peak = _zero_for_none(log_h[rows, top])[:, None]
    h = np.exp(log_h - peak)
    others = (h @ np.ones(h.shape[1]))[:, None] - h
    # At the top the difference would cancel: sum the others by themselves.
    others[rows, top] = 1.0
    with np.errstate(divide="ignore"):
        log_others = np.log(others) + peak
    without = log_h.copy()
    without[rows, top] = -np.inf
    log_others[rows, top] = log_sum(without)
    return log_others


def sum_by(index: Indices, values: Array | Mask, size: int) -> Array:
    """Sum of the entries, or rows, of ``values`` with each index."""
    if values.ndim == 1:
        return np.asarray(np.bincount(index, values, size), dtype=np.float64)
    return np.column_stack([sum_by(index, column, size) for column in values.T])


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


def absorb(ends: Indices, factors: Array, label: Indices, shape: tuple[int, int]) -> Array:
    """Potentials that stand for factors within a group, and for those with a group of known class."""
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


def edges_on_trees(ends: Indices, component: Indices) -> Mask:
    """Whether each edge is in a component without cycles: with fewer edges than groups."""
    of_edge = component[ends[:, 0]]
    n_edges = np.bincount(of_edge, minlength=len(component))
    n_groups = np.bincount(component, minlength=len(component))
    return (n_edges < n_groups)[of_edge]


def _cavities(ends: Indices, log_t: Array, messages: Array) -> Array:
    """Equation (1) in logarithms, for both ends of each edge."""
    group = ends.T.ravel()
    rest = leave_one_out(group, messages.reshape(-1, log_t.shape[1]), len(log_t))
    return (log_t[group] + rest).reshape(messages.shape)


def _largest(log_h: Array) -> Array:
    """Largest over the classes; column by column, as they are few and the rows many."""
    return reduce(np.maximum, log_h.T)


def _zero_for_none(log_z: Array) -> Array:
    """What to subtract without making NaN: 0 where nothing is left."""
    return np.where(np.isneginf(log_z), 0.0, log_z)


def _damp(fresh: Array, old: Array, damping: float) -> Array:
    """The geometric mean of new and old messages; log 0 stays."""
    if damping == 0:
        return fresh
    return (1 - damping) * fresh + damping * old


def _change(fresh: Array, old: Array) -> Array:
    """How far the messages of each edge move."""
    # Minus infinity twice is no change.
    with np.errstate(invalid="ignore"):
        moved = np.where(fresh == old, 0.0, np.abs(fresh - old))
    return _largest(np.maximum(*moved))


def _search(ends: Indices, n_groups: int) -> tuple[Indices, int]:
    """Place of each group in one breadth-first search from the first groups of all trees, and how many these are."""
    roots = np.unique(connect(ends, n_groups), return_index=True)[1]
    # One node more, joined to the root of every tree, makes the forest a tree.
    start = np.r_[ends[:, 0], np.full(len(roots), n_groups)]
    stop = np.r_[ends[:, 1], roots]
    adjacency = csr_matrix((np.ones(len(start)), (start, stop)), shape=(n_groups + 1, n_groups + 1))
    order = breadth_first_order(adjacency, n_groups, directed=False, return_predecessors=False)
    place = np.empty(n_groups + 1, dtype=np.intp)
    place[order] = np.arange(-1, n_groups)
    return place[:-1], len(roots)


def _levels(parent_place: Indices, n_roots: int) -> list[tuple[slice, Indices]]:
    """Edges of each level, given the ascending places of their parents, and where a new parent begins."""
    levels = []
    start = 0
    # Places below ``reached`` are of groups found so far; their children make the next level.
    reached = n_roots
    while start < len(parent_place):
        stop = int(np.searchsorted(parent_place, reached))
        starts = np.flatnonzero(np.diff(parent_place[start:stop], prepend=-1))
        levels.append((slice(start, stop), starts))
        reached += stop - start
        start = stop
    return levels
