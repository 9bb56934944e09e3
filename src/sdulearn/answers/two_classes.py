"""Belief propagation with two classes for many sets of logits at once.

The same fixed points as :mod:`~sdulearn.answers.propagate`, where a message is a pair of
probabilities; with two classes its log odds are enough, and a column is a problem. With the
logarithms a and d of the factor of an edge where its ends agree and where they differ:

    cavity   h = log odds of the group + all messages into it but one                          (1)
    message  m = 2 artanh(tanh((a - d) / 2) tanh(h / 2))                                       (2)
    log Z = sum_groups log Z_g + sum_edges [log(e^a c(h + h') + e^d c(h - h')) - log c(H) c(H')]  (3)

where c(u) = 2 cosh(u / 2) and H are the log odds of a group with all messages. Components with
cycles are taken once for either class of their pivot.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sdulearn.answers.graph import connect
from sdulearn.answers.propagate import FactorGraph, find_pivots, log_cosh, sum_matrix
from sdulearn.types import Array

# Log odds of a group that is taken to be in one class.
_CERTAIN = 40.0
# A factor that is as good as certain: its messages stay finite.
_STRONGEST = 1 - 1e-13
_DAMPING = 0.3


class TwoClassBeliefs(NamedTuple):
    """What the answers say, a column a problem."""

    values: Array  # (n_components, n_problems), log likelihood of the answers and labels of each component
    positive: Array  # (n_points, n_problems), probability of class +1, given all answers and labels
    agree: Array  # (n_edges, n_problems), probability that the two groups of each edge agree


class TwoClassNetwork:
    """Groups and edges of a :class:`~sdulearn.answers.propagate.FactorGraph` of two classes."""

    def __init__(self, factors: FactorGraph) -> None:
        self.factors = factors
        self.ends = factors.ends
        # (n_edges, 1) where the factors are the same for all problems, else (n_edges, n_problems).
        self.agree = factors.agree[:, None]
        self.differ = factors.differ[:, None]
        # Groups that edges connect are one part. In each one with cycles the pivot is taken in either class.
        n_groups = len(factors.potentials)
        part = connect(self.ends, n_groups)
        n_parts = int(part.max(initial=-1)) + 1
        groups, _, _, pivots = find_pivots(self.ends[~factors.on_tree])
        self.pivots = groups[pivots]
        self.part = part
        # Sums over points, groups, parts and edges that are taken again and again.
        n_components = factors.graph.n_components
        of_part = np.zeros(n_parts, dtype=np.intp)
        of_part[part] = factors.component
        self._by_group = sum_matrix(factors.group, n_groups)
        self._by_component = sum_matrix(factors.component, n_components)
        self._parts_by_component = sum_matrix(of_part, n_components)
        self._by_part = sum_matrix(part, n_parts)
        self._edges_by_part = sum_matrix(part[self.ends[:, 0]], n_parts)
        self._into = sum_matrix(self.ends.T.ravel(), n_groups)
        # Share of the old message in a new one: none where there are no cycles.
        cyclic = np.isin(part[self.ends[:, 0]], part[self.pivots])
        self._damping = np.tile(np.where(cyclic, _DAMPING, 0.0), 2)[:, None]

    def with_factors(self, agree: Array, differ: Array) -> TwoClassNetwork:
        """The same answers with other log factors (n_answers, n_problems): none certain before or now, and no labels.

        The edges then do not depend on the factors.
        """
        other = copy(self)
        to_edges = sum_matrix(self.factors.edge, len(self.ends))
        other.agree = to_edges @ agree
        other.differ = to_edges @ differ
        return other

    def solve(self, Z: Array, max_iter: int = 60, tol: float = 1e-6) -> TwoClassBeliefs:
        """Send messages until they rest and read the beliefs."""
        factors = self.factors
        signs = np.where(factors.swapped, -1.0, 1.0)[:, None]
        odds, level = self._potentials(self._by_group @ (signs * Z), self._by_group @ -log_cosh(Z))
        values, positive, agree = self._mixture(odds, max_iter, tol)
        total = self._by_component @ level + self._parts_by_component @ values
        positive = positive[factors.group]
        return TwoClassBeliefs(total, np.where(signs < 0, 1 - positive, positive), agree)

    def _potentials(self, odds: Array, level: Array) -> tuple[Array, Array]:
        """Log odds of the groups and half the sum of their log potentials, with what labels say.

        A labelled group has the log odds of a certain one, and its level makes up for them.
        """
        potentials = self.factors.potentials
        label = self.factors.label
        free = label < 0
        odds = odds.copy()
        level = level.copy()
        odds[free] += (potentials[free, 1] - potentials[free, 0])[:, None]
        level[free] += potentials[free].mean(axis=1)[:, None]
        fixed = np.flatnonzero(~free)
        sign = (2.0 * label[fixed] - 1)[:, None]
        level[fixed] += potentials[fixed, label[fixed]][:, None] + (sign * odds[fixed] - _CERTAIN) / 2
        odds[fixed] = sign * _CERTAIN
        return odds, level

    def _mixture(self, odds: Array, max_iter: int, tol: float) -> tuple[Array, Array, Array]:
        """Log likelihood of the parts, less the level of their groups; probabilities of groups and edges."""
        if not len(self.pivots):
            return self._beliefs(odds, self.agree, self.differ, max_iter, tol)
        own = odds[self.pivots]
        copies = np.hstack([odds, odds])
        K = odds.shape[1]
        copies[self.pivots, :K] = _CERTAIN
        copies[self.pivots, K:] = -_CERTAIN
        twice = 1 if self.agree.shape[1] == 1 else 2
        both = np.tile(self.agree, twice), np.tile(self.differ, twice)
        values, positive, agree = self._beliefs(copies, both[0], both[1], max_iter, tol)
        up = values[:, :K]
        down = values[:, K:]
        cyclic = self.part[self.pivots]
        up[cyclic] += (own - _CERTAIN) / 2
        down[cyclic] -= (own + _CERTAIN) / 2
        share = expit(up - down)
        share[np.setdiff1d(self.part, cyclic)] = 1.0
        total = up.copy()
        total[cyclic] = np.logaddexp(up[cyclic], down[cyclic])
        positive = _mixed(share[self.part], positive)
        return total, positive, _mixed(share[self.part[self.ends[:, 0]]], agree)

    def _beliefs(
        self, odds: Array, agree: Array, differ: Array, max_iter: int, tol: float
    ) -> tuple[Array, Array, Array]:
        """Messages until they rest; then equation (3) by part, and the probabilities of groups and edges."""
        n_edges = len(self.ends)
        target = self.ends.T.ravel()
        into = self._into
        strength = np.tile(np.clip(np.tanh((agree - differ) / 2), -_STRONGEST, _STRONGEST), (2, 1))
        messages = np.zeros((2 * n_edges, odds.shape[1]))
        for _ in range(max_iter):
            cavity = (odds + into @ messages)[target] - messages
            # What goes to one end comes from the other.
            fresh = 2 * np.arctanh(strength * np.tanh(np.roll(cavity, n_edges, axis=0) / 2))
            moved = np.abs(fresh - messages).max(initial=0.0)
            messages = fresh + self._damping * (messages - fresh)
            if moved <= tol:
                break
        full = odds + into @ messages
        cavity = full[target] - messages
        first = cavity[:n_edges]
        second = cavity[n_edges:]
        same = agree + log_cosh(first + second)
        other = differ + log_cosh(first - second)
        size = log_cosh(full)
        edge = np.logaddexp(same, other) - size[self.ends[:, 0]] - size[self.ends[:, 1]]
        values = self._by_part @ size + self._edges_by_part @ edge
        return values, expit(full), expit(same - other)


def _mixed(share: Array, copies: Array) -> Array:
    """The mean of two copies side by side, the first with this share."""
    first, second = np.hsplit(copies, 2)
    return share * first + (1 - share) * second
