"""Belief propagation with two classes for many sets of logits at once.

The fixed points are those of :mod:`~sdulearn.answers.propagate`. With two classes a message is one number, its log
odds, and each column is a problem. With a and d the log factors of an edge where its ends agree and where they differ:

    cavity   h = log odds of the group + all messages into it but one                          (1)
    message  m = 2 artanh(tanh((a - d) / 2) tanh(h / 2))                                       (2)
    log Z = sum_groups log Z_g + sum_edges [log(e^a c(h + h') + e^d c(h - h')) - log c(H) c(H')]  (3)

where c(u) = 2 cosh(u / 2) and H are the log odds of a group with all messages. Components with
cycles are copied, once for either class of their pivot.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sdulearn.answers.graph import sum_matrix
from sdulearn.answers.propagate import DAMPING, ROUGH_TOL, FactorGraph
from sdulearn.losses import log_cosh
from sdulearn.types import Array

# Log odds of a point, or a group, whose class is fixed: with larger ones its probability would round to 1.
CERTAIN = 36.0
# |a - d| is clipped to this, and log odds to twice as much: exponentials stay finite in float32.
_STRONGEST = 28.0
# Rounds between tests of convergence, which take as long as a round.
_LOOK = 3


class TwoClassBeliefs(NamedTuple):
    """Likelihoods and beliefs, one column per problem."""

    values: Array  # (n_components, n_problems), log likelihood of each component
    positive: Array  # (n_points, n_problems), probability of class +1, given all answers and labels
    agree: Array  # (n_edges, n_problems), probability that the two groups of each edge agree
    messages: Array  # where a similar problem may start


class TwoClassNetwork:
    """Groups and edges of a :class:`~sdulearn.answers.propagate.FactorGraph` of two classes."""

    def __init__(self, factors: FactorGraph) -> None:
        self.factors = factors
        self.ends = factors.ends
        # (n_edges, 1) where the factors are the same for all problems, else (n_edges, n_problems).
        self.agree = factors.agree[:, None]
        self.differ = factors.differ[:, None]
        self.pivots = factors.pivots
        self.part = factors.part
        # Sums over points, groups, parts and edges that are taken again and again.
        n_groups = len(factors.potentials)
        n_components = factors.graph.n_components
        n_parts = len(factors.component_of_part)
        self._by_group = sum_matrix(factors.group, n_groups)
        self._by_component = sum_matrix(factors.component, n_components)
        self._parts_by_component = sum_matrix(factors.component_of_part, n_components)
        self._by_part = sum_matrix(self.part, n_parts)
        self._edges_by_part = sum_matrix(self.part[self.ends[:, 0]], n_parts)
        self._into = sum_matrix(self.ends.T.ravel(), n_groups)
        # Share of the change in a new message: 1 where there are no cycles.
        self._step = np.tile(np.where(factors.on_tree, 1.0, 1 - DAMPING), 2)[:, None]

    def with_factors(self, agree: Array, differ: Array) -> TwoClassNetwork:
        """Return the network of other log factors (n_answers, n_problems); no answer is certain."""
        other = copy(self)
        to_edges = sum_matrix(self.factors.edge, len(self.ends))
        other.agree = to_edges @ agree
        other.differ = to_edges @ differ
        return other

    def solve(self, Z: Array, max_iter: int = 60, tol: float = 1e-6, start: Array | None = None) -> TwoClassBeliefs:
        """Send messages until they converge, from 0 or from those of similar problems."""
        factors = self.factors
        signs = np.where(factors.swapped, -1.0, 1.0)[:, None]
        odds, level = self._potentials(self._by_group @ (signs * Z), self._by_group @ -log_cosh(Z))
        mixed = self._mixture(odds, max_iter, tol, start)
        total = self._by_component @ level + self._parts_by_component @ mixed.values
        positive = mixed.positive[factors.group]
        return mixed._replace(values=total, positive=np.where(signs < 0, 1 - positive, positive))

    def _potentials(self, odds: Array, level: Array) -> tuple[Array, Array]:
        """Add potentials to the log odds of groups and to half the sum of their log potentials."""
        potentials = self.factors.potentials
        label = self.factors.label
        free = label < 0
        odds[free] += (potentials[free, 1] - potentials[free, 0])[:, None]
        level[free] += potentials[free].mean(axis=1)[:, None]
        fixed = np.flatnonzero(~free)
        sign = (2.0 * label[fixed] - 1)[:, None]
        level[fixed] += potentials[fixed, label[fixed]][:, None] + (sign * odds[fixed] - CERTAIN) / 2
        odds[fixed] = sign * CERTAIN
        return odds, level

    def _mixture(self, odds: Array, max_iter: int, tol: float, start: Array | None) -> TwoClassBeliefs:
        """Return log likelihoods of the parts, less their level, and beliefs of the groups."""
        if not len(self.pivots):
            return self._beliefs(odds, self.agree, self.differ, max_iter, tol, start)
        own = odds[self.pivots]
        copies = np.hstack([odds, odds])
        K = odds.shape[1]
        copies[self.pivots, :K] = CERTAIN
        copies[self.pivots, K:] = -CERTAIN
        agree, differ = (np.tile(factor, min(self.agree.shape[1], 2)) for factor in (self.agree, self.differ))
        both = self._beliefs(copies, agree, differ, max_iter, tol, start)
        up, down = np.hsplit(both.values, 2)
        cyclic = self.part[self.pivots]
        up[cyclic] += (own - CERTAIN) / 2
        down[cyclic] -= (own + CERTAIN) / 2
        share = np.ones(up.shape)
        share[cyclic] = expit(up[cyclic] - down[cyclic])
        up[cyclic] = np.logaddexp(up[cyclic], down[cyclic])
        positive = _mixed(share[self.part], both.positive)
        return TwoClassBeliefs(up, positive, _mixed(share[self.part[self.ends[:, 0]]], both.agree), both.messages)

    def _beliefs(
        self, odds: Array, agree: Array, differ: Array, max_iter: int, tol: float, start: Array | None
    ) -> TwoClassBeliefs:
        """Return equation (3) by part, and beliefs of the groups."""
        n_edges = len(self.ends)
        messages = np.zeros((2 * n_edges, odds.shape[1])) if start is None else start.copy()
        self._send(messages, odds, agree - differ, max_iter, tol)
        full = odds + self._into @ messages
        cavity = full[self.ends.T.ravel()] - messages
        first, second = np.split(cavity, 2)
        same = agree + log_cosh(first + second)
        other = differ + log_cosh(first - second)
        size = log_cosh(full)
        edge = np.logaddexp(same, other) - size[self.ends[:, 0]] - size[self.ends[:, 1]]
        values = self._by_part @ size + self._edges_by_part @ edge
        return TwoClassBeliefs(values, expit(full), expit(same - other), messages)

    def _send(self, messages: Array, odds: Array, pull: Array, max_iter: int, tol: float) -> None:
        """Iterate equation (2), as log((r + e^h) / (1 + r e^h)) with r = e^(d - a)."""
        n_edges = len(self.ends)
        source = self.ends[:, ::-1].T.ravel()
        r = np.tile(np.exp(-np.clip(pull, -_STRONGEST, _STRONGEST)), (2, len(odds.T) // pull.shape[1]))
        # Around cycles float32 makes a fit a third to a half faster.
        dtype = np.dtype(np.float32 if len(self.pivots) and tol >= ROUGH_TOL else np.float64)
        into = self._into.astype(dtype)
        sent, odds, r, step = (array.astype(dtype) for array in (messages, odds, r, self._step))
        for n_left in reversed(range(max_iter)):
            # What goes to one end comes from the other.
            cavity = np.take(odds + into @ sent, source, axis=0)
            cavity[:n_edges] -= sent[n_edges:]
            cavity[n_edges:] -= sent[:n_edges]
            e = np.exp(np.clip(cavity, -2 * _STRONGEST, 2 * _STRONGEST, out=cavity), out=cavity)
            below = r * e
            below += 1
            e += r
            e /= below
            change = np.log(e, out=e)
            change -= sent
            sent += np.multiply(change, step, out=below)
            if n_left % _LOOK:
                continue
            if np.abs(change, out=change).max(initial=0.0) <= tol:
                break
        messages[:] = sent


def _mixed(share: Array, copies: Array) -> Array:
    """Return the mean of two copies side by side, the first weighted by this share."""
    first, second = np.hsplit(copies, 2)
    return share * first + (1 - share) * second
