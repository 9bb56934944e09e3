"""The likelihood of answers that share points: components of the graph instead of pairs.

With z_i = w.x_i + b at point i and lc(u) = log 2 cosh(u / 2), a component whose answers are all
right has two states, its sides t_i = +1 or -1 up to one flip:

    -log P(answers) = sum_i lc(z_i) - lc(u),      u = sum_i t_i z_i                       (1)
    -log P(answers, labels) = sum_i lc(z_i) - u / 2,   t_i the classes that labels fix    (2)

A loose pair is (1) with two points. Answers that may be wrong have the likelihood of
:mod:`sdulearn.answers.propagate`. In both cases the derivative in z_i is node probability minus
posterior, and leaving a point out of a fold is z_i = 0: its class is then not known, while what the
answers say of the other points through it stays.

    J(w, b) = sum_components omega_c (1) + 1/2 sum_j pen_j w_j^2
              + prior_strength KL(p || mean_U sigmoid(z))                                 (3)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph, find_sides
from sdulearn.answers.two_classes import TwoClassNetwork
from sdulearn.joint.likelihood import bordered_gram
from sdulearn.types import Array, Codes, Indices, Mask


class Likelihood(Protocol):
    """Losses of components and their slopes in the logits of the points, K problems at once."""

    @property
    def exact_curvature(self) -> bool:
        """Whether :meth:`curvature` is exact, or larger."""
        ...

    def terms(self, Z: Array) -> tuple[Array, Array]:
        """Losses (n_components, K) and their derivatives in ``Z`` (n_points, K)."""
        ...

    def curvature(self, A: Array, omega: Array, z: Array) -> Array:
        """Second derivative of the loss in (w, b), components weighed by ``omega``; see ``exact_curvature``."""
        ...

    def sides(self, z: Array) -> Codes:
        """The sides of the points within their components, the likeliest where answers may be wrong."""
        ...


@dataclass(frozen=True, eq=False)
class SidesLikelihood:
    """Equations (1) and (2)."""

    side: Array  # (n_points,), side of each point; its class in components with a label
    component: Indices  # (n_points,), component of each point
    labelled: Mask  # (n_components,), whether labels fix the classes of each component
    exact_curvature: bool = field(default=True, init=False)
    _sum: csr_matrix = field(init=False, repr=False)
    _signed: csr_matrix = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n = len(self.side)
        cells = (self.component, np.arange(n))
        shape = (len(self.labelled), n)
        object.__setattr__(self, "_sum", csr_matrix((np.ones(n), cells), shape=shape))
        object.__setattr__(self, "_signed", csr_matrix((self.side, cells), shape=shape))

    @classmethod
    def from_graph(cls, graph: AnswerGraph) -> SidesLikelihood:
        """Of answers and labels that do not contradict each other."""
        return cls(known_sides(graph).astype(np.float64), graph.component, labelled_components(graph))

    def terms(self, Z: Array) -> tuple[Array, Array]:
        """See :class:`Likelihood`."""
        u = self._signed @ Z
        T, log_cosh = _tanh_log_cosh(Z)
        T_u, log_cosh_u = _tanh_log_cosh(u)
        log_cosh_u[self.labelled] = u[self.labelled] / 2
        T_u[self.labelled] = 1.0
        slopes = (T - self.side[:, None] * T_u[self.component]) / 2
        return self._sum @ log_cosh - log_cosh_u, slopes

    def curvature(self, A: Array, omega: Array, z: Array) -> Array:
        """See :class:`Likelihood`; exact."""
        nodes = omega[self.component] * (1 - np.tanh(z / 2) ** 2) / 4
        flips = omega * (1 - np.tanh(self._signed @ z / 2) ** 2) / 4
        flips[self.labelled] = 0.0
        free = np.flatnonzero(flips)
        V = self._signed[free] @ np.column_stack([A, np.ones(len(A))])
        return bordered_gram(A, nodes, A) - V.T @ (flips[free, None] * V)

    def sides(self, z: Array) -> Codes:
        """See :class:`Likelihood`."""
        return self.side.astype(np.int64)


@dataclass(frozen=True, eq=False)
class NoisyLikelihood:
    """Answers that may be wrong, by belief propagation."""

    network: TwoClassNetwork  # the answers with their error rates, on the points of which something is known
    exact_curvature: bool = field(default=False, init=False)

    @classmethod
    def from_graph(cls, graph: AnswerGraph, answer_model: AnswerModel) -> NoisyLikelihood:
        """Of answers that go wrong like this."""
        return cls(TwoClassNetwork(answer_model.factor_graph(graph, 2)))

    def terms(self, Z: Array) -> tuple[Array, Array]:
        """See :class:`Likelihood`."""
        # One problem alone is polished, many are compared.
        found = self.network.solve(Z, 200, 1e-9) if Z.shape[1] == 1 else self.network.solve(Z)
        return -found.values, expit(Z) - found.positive

    def curvature(self, A: Array, omega: Array, z: Array) -> Array:
        """See :class:`Likelihood`; that of known classes, which is larger."""
        p = expit(z)
        return bordered_gram(A, omega[self.network.factors.graph.component] * p * (1 - p), A)

    def sides(self, z: Array) -> Codes:
        """See :class:`Likelihood`."""
        return np.where(self.network.solve(z[:, None]).positive[:, 0] > 0.5, 1, -1)


def known_sides(graph: AnswerGraph) -> Codes:
    """Side of each point within its component, its class where labels fix it; 0 where they contradict."""
    known = np.flatnonzero(graph.labels)
    # One more point of class +1 stands for the labels: "same" with it is the label +1.
    one = np.full(len(known), graph.n_points)
    ends = np.concatenate([graph.ends, np.column_stack([known, one])])
    same = np.concatenate([graph.same, np.where(graph.labels[known] > 0, 1, -1)])
    sides = find_sides(ends, same, graph.n_points + 1)
    named = labelled_components(graph)[graph.component]
    return np.where(named, sides[:-1] * sides[-1], sides[:-1])


def labelled_components(graph: AnswerGraph) -> Mask:
    """Whether labels fix the classes of each component."""
    labelled = np.zeros(graph.n_components, dtype=bool)
    labelled[graph.component[graph.labels != 0]] = True
    return labelled


def soft_sides(graph: AnswerGraph, answer_model: AnswerModel) -> Array:
    """What the answers alone say of the side of each point, from -1 to 1.

    The sides are those beside the point with the most answers of each component; in components with
    labels they are classes. Where no answer is wrong they are +1 and -1.
    """
    order = np.lexsort((-graph.degree, graph.component))
    pivots = order[np.unique(graph.component[order], return_index=True)[1]]
    pinned = graph.labels.copy()
    pinned[pivots[~labelled_components(graph)]] = 1
    found = answer_model.factor_graph(replace(graph, labels=pinned), 2).propagate(np.log([0.5, 0.5]))
    return 2 * found.posteriors[:, 1] - 1


def chain_information(A: Array, z: Array, side: Codes, component: Indices, labelled: Mask, certainty: Array) -> Array:
    """Roots of the information that the points bring, one row each.

    The likelihood of a component is a product over its points: given the sides of those before it,
    point k is on its side with probability q = (1 + T t) / 2, where t = tanh(z / 2) on that side and
    T = tanh(u / 2) of the points before it. A row is ``c dq / sqrt(q (1 - q))``: for a pair its Fisher
    information, in a component with labels that of logistic regression. The ``certainty`` c of the
    answers is 1 where they are never wrong. Else c^2 is the share of the information that is left for
    small logits; for large ones less is left, but with so little the evidence would reward overfitting.
    """
    order = np.argsort(component, kind="stable")
    component = component[order]
    t_x = side[order, None] * A[order]
    t_z = side[order] * z[order]
    start = np.flatnonzero(np.diff(component, prepend=-1))
    counts = np.diff(np.r_[start, len(order)])
    v = _before(t_x, start, counts)
    T = np.tanh(_before(t_z[:, None], start, counts)[:, 0] / 2)
    T[labelled[component]] = 1.0
    t = np.tanh(t_z / 2)
    slope = (T * (1 - t**2))[:, None] * t_x + (t * (1 - T**2))[:, None] * v
    rows = np.empty_like(slope)
    rows[order] = slope / (2 * np.sqrt(np.maximum(1 - (T * t) ** 2, 1e-12)))[:, None]
    return certainty[:, None] * rows


def _before(values: Array, start: Indices, counts: Indices) -> Array:
    """Sum of the rows before each one within its component."""
    total = np.cumsum(values, axis=0) - values
    return total - np.repeat(total[start], counts, axis=0)


def _tanh_log_cosh(Z: Array) -> tuple[Array, Array]:
    """``tanh(Z / 2)`` and ``log 2 cosh(Z / 2)`` from one exponential."""
    size = np.abs(Z)
    e = np.exp(-size)
    return np.copysign((1 - e) / (1 + e), Z), size / 2 + np.log1p(e)
