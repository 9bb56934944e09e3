"""Components with cycles, conditioned on the class of one group in each.

The *pivot* of a component is the group with the most edges that are part of its cycles or join them, the
first of equals. The component is taken once for each class k
of the pivot, and the copies are put together again:

    P = sum_k P_k,  where P_k is the likelihood with the pivot in class k                   (1)
    posterior = sum_k P_k / P * posterior_k                                                 (2)

Both are exact. In a copy the edges of the pivot are potentials of their other ends, so that no cycle leads
through it; and solutions that differ by a flip of all classes, between which messages around cycles would
choose, are kept apart.

References
----------
.. [1] Pearl, "Probabilistic Reasoning in Intelligent Systems" (1988), section 4.4, on conditioning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdulearn.answers.graph import connect
from sdulearn.answers.messages import Network, Schedule, absorb, sum_by
from sdulearn.types import Array, Indices, Mask

# Longer branches than this do not matter for the choice of a pivot.
MAX_PEELS = 50


@dataclass(frozen=True, eq=False)
class Mixture:
    """Beliefs of components with cycles, equation (2)."""

    values: Array  # (n_components,), log likelihood of each component, equation (1)
    groups: Array  # (n_groups, n_classes), beliefs of the groups
    agree: Array  # (n_edges,), probability that the ends of each edge agree
    converged: bool  # whether all messages came to rest
    n_iter: int  # rounds of messages


@dataclass(frozen=True, eq=False)
class ConditionedNetwork:
    """Components with cycles, a copy for each class of their pivots."""

    groups: Indices  # (n_groups,), the groups in components with cycles; below they are numbered from 0
    edges: Indices  # (n_edges,), the edges of these components
    component: Indices  # (n_groups,), component of each group, numbered from 0
    pivots: Indices  # (n_components,), the pivot of each component
    cut: Mask  # (n_edges,), whether each edge ends at a pivot
    ends: Indices  # (n_edges, 2), the two groups of each edge
    potentials: Array  # (n_classes, n_groups, n_classes), what the pivots in class k say of each group, by k
    network: Network  # all copies, with the edges that are not cut

    @classmethod
    def from_edges(
        cls, edges: Indices, ends: Indices, agree: Array, differ: Array, n_classes: int
    ) -> ConditionedNetwork:
        """Choose the pivots, cut their edges and copy the rest."""
        groups, local = np.unique(ends, return_inverse=True)
        local = local.reshape(-1, 2)
        n_groups = len(groups)
        component = connect(local, n_groups)
        pivots = _busiest(_core_degree(local, n_groups), component)
        is_pivot = np.zeros(n_groups, dtype=bool)
        is_pivot[pivots] = True
        cut = is_pivot[local[:, 0]] | is_pivot[local[:, 1]]
        copies = np.arange(n_classes)[:, None, None] * n_groups + local[~cut]
        network = Network.from_edges(
            copies.reshape(-1, 2),
            np.tile(agree[~cut], n_classes),
            np.tile(differ[~cut], n_classes),
            n_classes * n_groups,
        )
        potentials = np.stack(
            [
                absorb(local[cut], np.stack([agree, differ])[:, cut], np.where(is_pivot, k, -1), (n_groups, n_classes))
                for k in range(n_classes)
            ]
        )
        potentials[:, pivots] = np.where(np.eye(n_classes, dtype=bool), 0.0, -np.inf)[:, None, :]
        return cls(groups, edges, component, pivots, cut, local, potentials, network)

    @property
    def inexact(self) -> Indices:
        """Groups whose copies are still in components with cycles."""
        return np.unique(self.network.ends[self.network.loopy] % max(len(self.groups), 1))

    def mixture(self, log_t: Array, schedule: Schedule) -> Mixture:
        """Equations (1) and (2), given the log potentials of all groups of the factor graph."""
        n_classes, n_groups, _ = self.potentials.shape
        copies = self.potentials + log_t[self.groups]
        found = self.network.beliefs(copies.reshape(-1, n_classes), schedule)
        log_p = self._copy_values(found.log_z.reshape(n_classes, -1), found.edge_z.reshape(n_classes, -1))
        values = np.logaddexp.reduce(log_p, axis=0)
        share = np.exp(log_p - np.where(np.isneginf(values), 0.0, values))
        beliefs = found.groups.reshape(n_classes, n_groups, n_classes)
        agree = np.empty((n_classes, len(self.edges)))
        agree[:, ~self.cut] = found.agree.reshape(n_classes, -1)
        agree[:, self.cut] = self._agree_with_pivot(beliefs)
        return Mixture(
            values=values,
            groups=np.einsum("kg,kgc->gc", share[:, self.component], beliefs),
            agree=(share[:, self.component[self.ends[:, 0]]] * agree).sum(axis=0),
            converged=found.converged,
            n_iter=found.n_iter,
        )

    def _copy_values(self, log_z: Array, edge_z: Array) -> Array:
        """Log likelihood of each copy of each component, shape (n_classes, n_components)."""
        size = len(self.pivots)
        of_edge = self.component[self.ends[~self.cut, 0]]
        groups = [sum_by(self.component, row, size) for row in log_z]
        edges = [sum_by(of_edge, row, size) for row in edge_z]
        return np.array(groups) + np.array(edges)

    def _agree_with_pivot(self, beliefs: Array) -> Array:
        """Probability in copy k that the other end of each cut edge is in class k."""
        ends = self.ends[self.cut]
        first_is_pivot = np.isin(ends[:, 0], self.pivots)
        other = np.where(first_is_pivot, ends[:, 1], ends[:, 0])
        return np.stack([beliefs[k, other, k] for k in range(len(beliefs))])


def _core_degree(ends: Indices, n_groups: int) -> Indices:
    """Number of edges of each group once branches that end are taken off, leaf by leaf."""
    degree = np.bincount(ends.ravel(), minlength=n_groups)
    for _ in range(MAX_PEELS):
        ends = ends[(degree[ends] > 1).all(axis=1)]
        rest = np.bincount(ends.ravel(), minlength=n_groups)
        if (rest == degree).all():
            break
        degree = rest
    return degree


def _busiest(degree: Indices, component: Indices) -> Indices:
    """The group with the most edges in each component."""
    order = np.lexsort((-degree, component))
    return order[np.unique(component[order], return_index=True)[1]]
