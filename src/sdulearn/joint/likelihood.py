"""The likelihood of same/different answers with two classes, and the objective of a fit.

With z_i = w.x_i + b at point i and lc(u) = log 2 cosh(u / 2), a connected component of answers
that are all right has two states, its sides t_i = +1 or -1 up to one flip:

    -log P(answers) = sum_i lc(z_i) - lc(u),      u = sum_i t_i z_i                             (1)
    -log P(answers, labels) = sum_i lc(z_i) - u / 2,   t_i the classes that labels fix          (2)

A loose pair with ends z, z' whose answers may be wrong, with a and d the log probabilities of its
answers if the classes agree and if they differ, has

    -log P(answers) = lc(z) + lc(z') - log(e^a c(z + z') + e^d c(z - z')),   c(u) = 2 cosh(u / 2)   (3)

which is (1) where the answer is certain: a = 0, d = -inf for "same". All other components have the
likelihood of :mod:`sdulearn.answers.propagate`. In every case the derivative in z_i is node
probability minus posterior.

    J(w, b) = sum_components omega_c loss_c + 1/2 sum_j pen_j w_j^2
              + prior_strength KL(p || mean_U sigmoid(z))                                       (4)

J is not convex: its Hessian is a difference, and J(-w, -b) = J(w, b) but for the last term, the
*pull* to a given prior p.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import expit

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph, first_by, sum_matrix
from sdulearn.answers.propagate import log_factors
from sdulearn.answers.two_classes import TwoClassNetwork
from sdulearn.joint.data import Moments, bordered_sum, loose_pairs
from sdulearn.losses import log_cosh
from sdulearn.types import Array, Indices, Mask

# Points and components of a kind, and their likelihood.
Part = tuple[Indices, Indices, "LoosePairs | CertainSides | WrongAnswers"]

# Iterations and tolerance of belief propagation: along a path of many problems, and for one exact
# solution.
_MESSAGES = {False: (60, 1e-4), True: (200, 1e-9)}


def tanh_half(Z: Array) -> tuple[Array, Array]:
    """Return ``tanh(Z / 2)`` and ``1 + exp(-|Z|)`` from one exponential."""
    # In place: with many rows, allocation costs more than the arithmetic.
    e = np.abs(Z)
    np.negative(e, out=e)
    np.exp(e, out=e)
    E = e + 1
    np.subtract(1, e, out=e)
    e /= E
    return np.copysign(e, Z, out=e), E


class LoosePairs:
    """Equation (3) for n pairs: all first ends before all second ends."""

    def __init__(self, agree: Array, differ: Array) -> None:
        self.agree = agree[:, None]
        self.differ = differ[:, None]
        self.side = np.concatenate([np.ones(len(agree)), np.tanh((agree - differ) / 2)])

    def terms(self, Z: Array, exact: bool = False) -> tuple[Array, Array]:
        """Return losses (n_components, B) and their derivatives in ``Z`` (n_points, B)."""
        first, second = np.split(Z, 2)
        agree = self.agree + log_cosh(first + second)
        differ = self.differ + log_cosh(first - second)
        right = expit(agree - differ)
        plus = right * np.tanh((first + second) / 2)
        minus = (1 - right) * np.tanh((first - second) / 2)
        loss = log_cosh(first) + log_cosh(second) - np.logaddexp(agree, differ)
        return loss, (np.tanh(Z / 2) - np.concatenate([plus + minus, plus - minus])) / 2


class CertainSides:
    """Equations (1) and (2): components whose answers are never wrong."""

    def __init__(self, graph: AnswerGraph, answer_model: AnswerModel) -> None:
        factors = answer_model.factor_graph(graph, 2)
        # A component is one group of points on two sides; a label fixes the class of one side.
        label = factors.label[factors.group]
        self.side = np.where(label == 0, -1.0, 1.0) * np.where(factors.swapped, -1.0, 1.0)
        self.component = graph.component
        self.labelled = graph.labelled
        self._sum = sum_matrix(self.component, len(self.labelled))
        self._signed = self._sum @ sparse.diags(self.side)

    def terms(self, Z: Array, exact: bool = False) -> tuple[Array, Array]:
        """As :meth:`LoosePairs.terms`."""
        u = self._signed @ Z
        T, E = tanh_half(Z)
        T_u, E_u = tanh_half(u)
        size_u = np.abs(u) / 2 + np.log(E_u)
        size_u[self.labelled] = u[self.labelled] / 2
        T_u[self.labelled] = 1.0
        slopes = (T - self.side[:, None] * T_u[self.component]) / 2
        return self._sum @ (np.abs(Z) / 2 + np.log(E)) - size_u, slopes


class WrongAnswers:
    """All other components, whose answers may be wrong, by belief propagation."""

    def __init__(self, graph: AnswerGraph, answer_model: AnswerModel) -> None:
        self.network = TwoClassNetwork(answer_model.factor_graph(graph, 2))
        # The expected side of each point, -1 to 1, by the answers alone. Without a label, sides are
        # relative to the point with the most answers of the component.
        pivots = first_by(graph.component, -graph.degree)
        pinned = graph.labels.copy()
        pinned[pivots[~graph.labelled]] = 1
        network = TwoClassNetwork(answer_model.factor_graph(graph.with_values(labels=pinned), 2))
        self.side = 2 * network.solve(np.zeros((graph.n_points, 1)), tol=1e-5).positive[:, 0] - 1
        self.component = graph.component

    def terms(self, Z: Array, exact: bool = False) -> tuple[Array, Array]:
        """As :meth:`LoosePairs.terms`."""
        found = self.network.solve(Z, *_MESSAGES[exact])
        return -found.values, expit(Z) - found.positive


def chain_information(A: Array, z: Array, side: Array, component: Indices, labelled: Mask) -> Array:
    """Return square roots of the information that the points of components bring, one row each."""
    # The likelihood of a component is a product over its points: given the sides of those before
    # it, point k is on its side with probability q = (1 + T t) / 2, where t = tanh(z / 2) on that
    # side and T = tanh(u / 2) of the points before it. A row is dq / sqrt(q (1 - q)): for a pair
    # its Fisher information, in a component with labels that of logistic regression.
    order = np.argsort(component, kind="stable")
    component = component[order]
    signed = side[order, None] * np.column_stack([A, z])[order]
    before = np.cumsum(signed, axis=0) - signed
    start = np.flatnonzero(np.diff(component, prepend=-1))
    before -= np.repeat(before[start], np.diff(np.r_[start, len(order)]), axis=0)
    T = np.tanh(before[:, -1] / 2)
    T[labelled[component]] = 1.0
    t = np.tanh(signed[:, -1] / 2)
    slope = (T * (1 - t**2))[:, None] * signed[:, :-1] + (t * (1 - T**2))[:, None] * before[:, :-1]
    rows = np.empty_like(slope)
    rows[order] = slope / (2 * np.sqrt(np.maximum(1 - (T * t) ** 2, 1e-12)))[:, None]
    return rows


class TwoClassLikelihood:
    """The likelihood of a graph: loose pairs, certain sides, all other components."""

    def __init__(
        self, graph: AnswerGraph, answer_model: AnswerModel, weight: Array | None = None, total: float | None = None
    ) -> None:
        self.graph = graph
        self.answer_model = answer_model
        self.component = graph.component
        self.labelled = graph.labelled
        self.weight = np.ones(graph.n_components) if weight is None else weight
        # The number of independent answers and labels of each component: its points, less one for
        # the free flip. On average each of them weighs 1 / n in ``omega``, so that alpha means the
        # same for loose and linked answers and for labels.
        self.n_independent = (graph.component_sizes - 1 + self.labelled).astype(np.float64)
        self.total = float(self.weight @ self.n_independent) if total is None else total
        self.omega = self.weight / self.total
        self.errors = answer_model.errors(graph.annotators)
        # No point is in two answers and none has a label.
        self.is_loose = graph.degree.max(initial=0) <= 1 and not self.labelled.any()
        self.parts = self._split()
        # The expected side of each point by the answers alone, -1 to 1.
        self.side = np.zeros(len(self.component))
        for points, _, part in self.parts:
            self.side[points] = part.side

    def _split(self) -> list[Part]:
        """Group the components by the form of their likelihood."""
        loose = loose_pairs(self.graph)
        silent = (self.graph.component_sizes == 1) & ~self.labelled
        of_answer = self.component[self.graph.ends[:, 0]]
        uncertain = np.bincount(of_answer, self.errors > 0, len(loose)) > 0
        parts: list[Part] = []
        if loose.any():
            points = np.flatnonzero(loose[self.component])
            ends = points[np.argsort(self.component[points], kind="stable")].reshape(-1, 2)
            factors = log_factors(self.graph.same, self.errors, self.graph.weights)
            agree, differ = (np.bincount(of_answer, one, len(loose)).astype(np.float64)[loose] for one in factors)
            if np.isneginf(np.maximum(agree, differ)).any():
                # It refuses contradictions.
                self.answer_model.factor_graph(self.graph, 2)
            parts.append((ends.T.ravel(), np.flatnonzero(loose), LoosePairs(agree, differ)))
        for certain in (True, False):
            chosen = (uncertain != certain) & ~loose & ~silent
            if chosen.any():
                points = np.flatnonzero(chosen[self.component])
                kind = CertainSides if certain else WrongAnswers
                part = kind(self.graph.subgraph(points), self.answer_model)
                parts.append((points, np.flatnonzero(chosen), part))
        return parts

    def restricted(self, shown: Mask) -> TwoClassLikelihood:
        """Return the likelihood of the answers and labels of the points ``shown`` only."""
        part = self.graph.leave_out(~shown)
        # Each answer keeps its weight, so that alpha means the same in folds and in the final fit.
        weight = np.ones(part.n_components)
        weight[part.component] = self.weight[self.component]
        return TwoClassLikelihood(part, self.answer_model, weight, self.total)

    def terms(self, Z: Array, exact: bool = False) -> tuple[Array, Array]:
        """Return losses (n_components, B) and their derivatives in ``Z`` (n_points, B)."""
        losses = np.zeros((len(self.omega), Z.shape[1]))
        slopes = np.zeros(Z.shape)
        for points, components, part in self.parts:
            losses[components], slopes[points] = part.terms(Z[points], exact)
        return losses, slopes

    def information(self, A: Array, z: Array) -> Array:
        """Return roots of the Fisher information about w, one row a point."""
        side = np.where(self.side < 0, -1.0, 1.0)
        for points, _, part in self.parts:
            if isinstance(part, WrongAnswers):
                positive = part.network.solve(z[points, None]).positive[:, 0]
                side[points] = np.where(positive > 0.5, 1.0, -1.0)
        # At an error rate e, small logits keep the share (1 - 2 e)^2 of the information. Large ones
        # keep less, but with so little the evidence would reward overfitting.
        certainty = (self.graph.labels != 0).astype(np.float64)
        for end in self.graph.ends.T:
            np.maximum.at(certainty, end, 1 - 2 * self.errors)
        rows = chain_information(A, z, side, self.component, self.labelled)
        return (certainty * np.sqrt(self.omega[self.component]))[:, None] * rows

    def moments(self, A: Array, variance: Array, prior: float | None) -> Moments:
        """Return the moments of all pairs of points of a component whose relative side is known."""
        labelled = self.labelled[self.component]
        # Labels tie all points with a known class together.
        component = np.where(labelled, int(np.argmax(self.labelled)), self.component)
        count = np.bincount(component, minlength=len(self.omega))
        # A component counts by its points: its mean over pairs weighs as many answers.
        weight = np.where(count > 1, self.omega, 0.0)
        scale = weight / np.maximum(count - 1, 1)
        V = sum_matrix(component, len(self.omega)) @ (self.side[:, None] * A)
        joint = V.T @ (scale[:, None] * V) - A.T @ ((scale[component] * self.side**2)[:, None] * A)
        ends = bordered_sum(A, weight[component][:, None])
        named = None
        if labelled.any():
            # The labelled points, those of class -1 negated, minus the part that their mean
            # explains.
            side = self.side[labelled]
            one_class = abs(np.sign(side).sum()) == len(side)
            named = side @ (A[labelled] - (0.0 if one_class else A[labelled].mean(axis=0)))
        return Moments(variance, joint, ends, prior, named)


def mean_prediction(A: Array, share: Array, W: Array) -> tuple[Array, Array]:
    """Return the mean probability of class +1 (B,) by coefficients (r + 1, B), and its slope in these."""
    p = expit(A @ W[:-1] + W[-1])
    return share @ p, bordered_sum(A, share[:, None] * p * (1 - p))
