"""Belief propagation with two classes for many sets of logits at once.

The same fixed points as :mod:`~sdulearn.answers.messages`, where a message is a pair of
probabilities; with two classes its log odds are enough, and a column is a problem. With the
logarithms a and d of the factor of an edge where its ends agree and where they differ:

    cavity   h = log odds of the group + all messages into it but one                          (1)
    message  m = 2 artanh(tanh((a - d) / 2) tanh(h / 2))                                       (2)
    log Z = sum_groups log Z_g + sum_edges [log(e^a c(h + h') + e^d c(h - h')) - log c(H) c(H')]  (3)

where c(u) = 2 cosh(u / 2) and H are the log odds of a group with all messages. Components with
cycles are taken once for either class of one group, as in :mod:`~sdulearn.answers.conditioning`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit

from sdulearn.answers.graph import connect
from sdulearn.answers.messages import sum_by
from sdulearn.answers.propagate import ErrorRates, FactorGraph, answer_errors, log_factors
from sdulearn.types import Array, Indices

# Log odds of a group that is taken to be in one class.
_CERTAIN = 40.0
# A factor that is as good as certain: its messages stay finite.
_STRONGEST = 1 - 1e-13
_DAMPING = 0.3


@dataclass(frozen=True, eq=False)
class TwoClassBeliefs:
    """What the answers say, a column a problem."""

    values: Array  # (n_components, n_problems), log likelihood of the answers and labels of each component
    positive: Array  # (n_points, n_problems), probability of class +1, given all answers and labels
    agree: Array  # (n_edges, n_problems), probability that the two groups of each edge agree


@dataclass(frozen=True, eq=False)
class TwoClassNetwork:
    """Groups and edges of a :class:`~sdulearn.answers.propagate.FactorGraph` of two classes."""

    # the groups, which points are swapped in them, what labels say of them, and their components
    factors: FactorGraph
    ends: Indices  # (n_edges, 2), the two groups of each edge
    # (n_edges, 1), log factors where the classes of the ends agree and where they differ, the same for all problems
    # or not
    agree: Array
    differ: Array
    part: Indices  # (n_groups,), groups that edges connect are one part
    pivots: Indices  # (n_pivots,), the group that is taken in either class, one in each part with cycles

    @classmethod
    def from_factors(cls, factors: FactorGraph, error_rates: ErrorRates) -> TwoClassNetwork:
        """Read the edges of a factor graph that was made with these error rates."""
        graph = factors.graph
        joins = np.flatnonzero(factors.edge >= 0)
        edge = factors.edge[joins]
        crossed = factors.swapped[graph.ends[:, 0]] != factors.swapped[graph.ends[:, 1]]
        errors = answer_errors(graph.annotators, error_rates)
        logs = log_factors(np.where(crossed, -graph.same, graph.same), errors, graph.weights)[:, joins]
        ends = np.empty((factors.n_edges, 2), dtype=np.intp)
        ends[edge] = factors.group[graph.ends[joins]]
        return cls(
            factors=factors,
            ends=ends,
            agree=sum_by(edge, logs[0], factors.n_edges)[:, None],
            differ=sum_by(edge, logs[1], factors.n_edges)[:, None],
            part=connect(ends, len(factors.potentials)),
            pivots=factors.cycles.groups[factors.cycles.pivots],
        )

    def at_rates(self, errors: Array) -> TwoClassNetwork:
        """The same answers at other rates (n_answers, n_problems): none certain before or now, and no labels."""
        graph = self.factors.graph
        logs = log_factors(graph.same[:, None], errors, graph.weights[:, None])
        to_edges = sum_matrix(self.factors.edge, self.factors.n_edges)
        return replace(self, agree=to_edges @ logs[0], differ=to_edges @ logs[1])

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
            messages = fresh + self._damping[:, None] * (messages - fresh)
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

    @cached_property
    def _by_group(self) -> csr_matrix:
        return sum_matrix(self.factors.group, len(self.factors.potentials))

    @cached_property
    def _by_component(self) -> csr_matrix:
        return sum_matrix(self.factors.component, self.factors.graph.n_components)

    @cached_property
    def _parts_by_component(self) -> csr_matrix:
        component = np.zeros(self._n_parts, dtype=np.intp)
        component[self.part] = self.factors.component
        return sum_matrix(component, self.factors.graph.n_components)

    @cached_property
    def _by_part(self) -> csr_matrix:
        return sum_matrix(self.part, self._n_parts)

    @cached_property
    def _edges_by_part(self) -> csr_matrix:
        return sum_matrix(self.part[self.ends[:, 0]], self._n_parts)

    @property
    def _n_parts(self) -> int:
        return int(self.part.max(initial=-1)) + 1

    @cached_property
    def _into(self) -> csr_matrix:
        return sum_matrix(self.ends.T.ravel(), len(self.factors.potentials))

    @cached_property
    def _damping(self) -> Array:
        """Share of the old message in a new one: none where there are no cycles."""
        cyclic = np.isin(self.part[self.ends[:, 0]], self.part[self.pivots])
        return np.tile(np.where(cyclic, _DAMPING, 0.0), 2)


def _mixed(share: Array, copies: Array) -> Array:
    """The mean of two copies side by side, the first with this share."""
    first, second = np.hsplit(copies, 2)
    return share * first + (1 - share) * second


def log_cosh(u: Array) -> Array:
    """``log 2 cosh(u / 2)``, without overflow."""
    size = np.abs(u)
    return size / 2 + np.log1p(np.exp(-size))


def sum_matrix(index: Indices, size: int) -> csr_matrix:
    """The matrix that adds rows up by their index."""
    n = len(index)
    return csr_matrix((np.ones(n), (index, np.arange(n))), shape=(size, n))
