"""The likelihood of answers and labels as a function of the scores of points: what every learner climbs.

Point i has class c with node probability p_i(c), the logistic function of its score z_i with two classes, the softmax
of K scores with more. The likelihood factorises over the connected components of the answers, and its derivative in a
score is posterior minus node probability (Fisher's identity), whatever model the scores come from.

Two classes, with lc(u) = log 2 cosh(u / 2). A component whose answers are all right has two states,
its sides t_i = +1 or -1 up to one flip, which a label fixes:

    log P = lc(u) - sum_i lc(z_i),      u = sum_i t_i z_i                                          (1)
    log P = u / 2 - sum_i lc(z_i),      t_i the classes that labels fix                            (2)

A loose pair with scores z, z' whose answers may be wrong, with a and d the log probabilities of its
answers if the classes agree and if they differ, has

    log P = log(e^a c(z + z') + e^d c(z - z')) - lc(z) - lc(z'),   c(u) = 2 cosh(u / 2)            (3)

which is (1) for a = 0, d = -inf. All other components go through :mod:`~sdulearn.answers.two_classes`.

K classes. Answers that are never wrong tie points to *groups*, and every other question is an *edge* between two:

    t_g(c) = prod_{i in g} p_i(c), 0 where a label says otherwise;  Z_g = sum_c t_g(c);  q_g = t_g / Z_g    (4)
    P(edge | groups) = a s + b (1 - s),  s = q_g . q_h                                                      (5)
    log P = sum_groups log Z_g + sum_edges log (5)                                                          (6)

where a and b are the probabilities of the edge's answers if the classes of its ends agree and if they differ. (6) is
exact where no group has two edges. Larger trees have the exact likelihood of :mod:`~sdulearn.answers.propagate`. Around
cycles (6) is a composite likelihood [1]_: answers without errors are taken jointly, and each further edge given these,
one by one. Sums over the classes of a whole cycle gave the same models and took 20 times as long.

References
----------
.. [1] Varin, Reid & Firth, "An overview of composite likelihood methods", Statistica Sinica 21 (2011).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, log_softmax, softmax

from sdulearn.answers.graph import AnswerGraph, connect, first_by, number_questions, sum_matrix
from sdulearn.answers.propagate import (
    ROUGH_TOL,
    FactorGraph,
    Network,
    edge_beliefs,
    edges_on_trees,
    log_factors,
    log_sum_of_others,
)
from sdulearn.answers.two_classes import CERTAIN, TwoClassNetwork
from sdulearn.losses import log_cosh
from sdulearn.types import Array, Indices, Mask

# Iterations and tolerance of messages with two classes: along a path of many problems, and exactly.
_MESSAGES = {False: (60, ROUGH_TOL), True: (200, 1e-9)}
# Below this probability of an edge's answers, one minus a sum loses digits.
_UNLIKELY = 1e-5
# Ratios of class shares, 1 to 1,000, among which the best is sought.
_N_SHARES = 30


class Terms(NamedTuple):
    """The likelihood at B sets of scores."""

    log_p: Array  # (n_components, B), log likelihood of the answers and labels of each component
    slope: Array  # (n_points, n_scores, B), its derivative in the scores: posterior - node probability


class _Part(NamedTuple):
    """Components whose likelihood has one form: ``terms`` are log likelihoods (n_components, B), and slopes."""

    points: Indices | slice
    components: Indices | slice
    kind: _LoosePairs | _CertainSides | _WrongAnswers | _Groups


class Likelihood:
    """The likelihood of answers that are wrong at the rates ``errors``, and of labels.

    Made by :meth:`sdulearn.answers.AnswerModel.likelihood`.
    """

    def __init__(
        self,
        graph: AnswerGraph,
        n_classes: int,
        errors: Array,
        evidence: Array | None = None,
        weight: Array | None = None,
        total: float | None = None,
        *,
        tied: bool = False,
    ) -> None:
        # Whether "same" answers of more than two classes tie points together as if they were right.
        self.tied = tied
        # Weights of answers are relative to the mean of their component, whose mean weight is ``weight``.
        self.graph = graph
        self.weight = np.ones(graph.n_components) if weight is None else weight
        self.n_classes = n_classes
        # Two classes have one score, the log odds of +1; more have one for each class.
        self.n_scores = 1 if n_classes == 2 else n_classes
        self.errors = errors
        # (n_points, n_classes), log likelihood of the answers about each point, if they are replaced by it.
        self.evidence = evidence
        if n_classes == 2:
            self.parts = _split(graph, errors)
            # The points of a component, less one for the free flip.
            self.independent = (graph.component_sizes - 1 + graph.labelled).astype(np.float64)
        else:
            if evidence is None:
                self.factors = FactorGraph.from_answers(graph, n_classes, np.zeros_like(errors) if tied else errors)
                self.independent = _n_independent(self.factors)
            else:
                self.factors = FactorGraph.of_evidence(graph, np.where(graph.degree[:, None] > 0, evidence, 0.0))
                # Each point that its answers or a label say something about.
                says = graph.component[self.factors.potentials.any(axis=1)]
                self.independent = np.bincount(says, minlength=graph.n_components).astype(np.float64)
            self.parts = [_Part(slice(None), slice(None), _Groups(self.factors))]
        # Total weight of independent answers and labels: n in every mean.
        self.total = float(self.weight @ self.independent) if total is None else total

    def folds(self, shown: Mask) -> Likelihood:
        """Return that of the answers and labels that touch only points ``shown`` (n_points, n_folds); weights stay.

        Its points are those of :meth:`AnswerGraph.folds`: one copy of all points for each fold.
        """
        n_folds = shown.shape[1]
        graph, answer = self.graph.folds(shown)
        weight = np.ones(graph.n_components)
        weight[graph.component] = np.tile(self.weight[self.graph.component], n_folds)
        evidence = None if self.evidence is None else np.tile(self.evidence, (n_folds, 1))
        return Likelihood(graph, self.n_classes, self.errors[answer], evidence, weight, self.total, tied=self.tied)

    def terms(self, Z: Array, exact: bool = False) -> Terms:
        """Return the likelihood and its slope at scores (n_points, n_scores, B); messages converge further if exact."""
        log_p = np.zeros((len(self.weight), Z.shape[2]))
        slope = np.zeros(Z.shape)
        for points, components, kind in self.parts:
            log_p[components], slope[points] = kind.terms(Z[points], exact)
        return Terms(log_p, slope)

    def mean(self, Z: Array, exact: bool = False) -> tuple[Array, Array]:
        """Return the weighted mean of the log likelihood (B,), and its gradient in the scores."""
        log_p, slope = self.terms(Z, exact)
        share = self.weight / self.total
        slope *= share[self.graph.component][:, None, None]
        return share @ log_p, slope

    def probabilities(self, Z: Array) -> Array:
        """Return the node probabilities (n_points, n_classes, B)."""
        if self.n_scores > 1:
            return np.exp(log_softmax(Z, axis=1))
        return np.concatenate([expit(-Z), expit(Z)], axis=1)

    def posterior(self, Z: Array) -> Array:
        """Return class probabilities (n_points, n_classes, B), given the answers and labels, too."""
        slope = self.terms(Z).slope
        slope = slope if self.n_scores > 1 else np.concatenate([-slope, slope], axis=1)
        # Around cycles the composite likelihood may leave the range of probabilities.
        return np.clip(self.probabilities(Z) + slope, 0.0, 1.0)

    def best_constant(self) -> float:
        """Return the best mean log likelihood of class shares alone, the same for all points."""
        # One class is larger, which labels tell from the others; these are equally large.
        log_ratio = np.log(np.geomspace(1.0, 1e3, _N_SHARES))
        if self.n_scores == 1:
            Z = np.concatenate([-log_ratio, log_ratio])[None, None]
        else:
            larger = range(self.n_classes if self.graph.labels.any() or self.evidence is not None else 1)
            Z = np.concatenate([np.outer(np.eye(self.n_classes)[k], log_ratio) for k in larger], axis=1)[None]
        return float(self.mean(np.broadcast_to(Z, (self.graph.n_points, *Z.shape[1:])))[0].max())

    @cached_property
    def by_evidence(self) -> Array:
        """Class probabilities (n_points, n_classes) by ``evidence`` and labels alone."""
        return np.asarray(softmax(self.factors.potentials, axis=1))[self.factors.group]

    @cached_property
    def sides(self) -> Array:
        """The expected side of each point, -1 to 1, by the answers of two classes alone.

        Without a label, sides are relative to the point of the component with the most answers.
        """
        Z = np.zeros((self.graph.n_points, 1, 1))
        Z[first_by(self.graph.component, -self.graph.degree)[~self.graph.labelled]] = CERTAIN
        return 2 * self.posterior(Z)[:, 1, 0] - 1


def _split(graph: AnswerGraph, errors: Array) -> list[_Part]:
    """Return the components of two classes by the form of their likelihood."""
    loose = (graph.component_sizes == 2) & ~graph.labelled
    silent = (graph.component_sizes == 1) & ~graph.labelled
    of_answer = graph.component[graph.ends[:, 0]]
    uncertain = np.bincount(of_answer, errors > 0, len(loose)) > 0
    parts = []
    if loose.any():
        points = np.flatnonzero(loose[graph.component])
        ends = points[np.argsort(graph.component[points], kind="stable")].reshape(-1, 2)
        factors = log_factors(graph.same, errors, graph.weights)
        agree, differ = (np.bincount(of_answer, factor, len(loose)).astype(np.float64)[loose] for factor in factors)
        if np.isneginf(np.maximum(agree, differ)).any():
            # It refuses contradictions.
            FactorGraph.from_answers(graph, 2, errors)
        parts.append(_Part(ends.T.ravel(), np.flatnonzero(loose), _LoosePairs(agree, differ)))
    for certain, kind in ((True, _CertainSides), (False, _WrongAnswers)):
        chosen = (uncertain != certain) & ~loose & ~silent
        if chosen.any():
            points = np.flatnonzero(chosen[graph.component])
            part = graph.subgraph(points)
            reduced = FactorGraph.from_answers(part, 2, errors[chosen[of_answer]])
            parts.append(_Part(points, np.flatnonzero(chosen), kind(reduced)))
    return parts


class _LoosePairs:
    """Equation (3) for n pairs: all first ends before all second ends."""

    def __init__(self, agree: Array, differ: Array) -> None:
        self.agree = agree[:, None]
        self.differ = differ[:, None]

    def terms(self, Z: Array, exact: bool) -> tuple[Array, Array]:
        first, second = np.split(Z[:, 0], 2)
        agree = self.agree + log_cosh(first + second)
        differ = self.differ + log_cosh(first - second)
        right = expit(agree - differ)
        plus = right * np.tanh((first + second) / 2)
        minus = (1 - right) * np.tanh((first - second) / 2)
        log_p = np.logaddexp(agree, differ) - log_cosh(first) - log_cosh(second)
        return log_p, (np.concatenate([plus + minus, plus - minus])[:, None] - np.tanh(Z / 2)) / 2


class _CertainSides:
    """Equations (1) and (2): components whose answers are never wrong."""

    def __init__(self, factors: FactorGraph) -> None:
        # A component is one group of points on two sides; a label fixes the class of one side.
        label = factors.label[factors.group]
        self.side = np.where(label == 0, -1.0, 1.0) * np.where(factors.swapped, -1.0, 1.0)
        self.component = factors.graph.component
        self.labelled = factors.graph.labelled
        self._sum = sum_matrix(self.component, len(self.labelled))
        self._signed = self._sum @ sparse.diags(self.side)

    def terms(self, Z: Array, exact: bool) -> tuple[Array, Array]:
        Z = Z[:, 0]
        u = self._signed @ Z
        known = self.labelled[:, None]
        slope_u = np.where(known, 1.0, np.tanh(u / 2))
        slopes = (self.side[:, None] * slope_u[self.component] - np.tanh(Z / 2)) / 2
        return np.where(known, u / 2, log_cosh(u)) - self._sum @ log_cosh(Z), slopes[:, None]


class _WrongAnswers:
    """All other components of two classes, by belief propagation."""

    def __init__(self, factors: FactorGraph) -> None:
        self.network = TwoClassNetwork(factors)

    def terms(self, Z: Array, exact: bool) -> tuple[Array, Array]:
        beliefs = self.network.solve(Z[:, 0], *_MESSAGES[exact])
        return beliefs.values, beliefs.positive[:, None] - expit(Z)


class _Groups:
    """Equations (4) to (6): K classes."""

    def __init__(self, factors: FactorGraph) -> None:
        self.factors = factors
        self.group = factors.group
        n_groups = len(factors.potentials)
        n_components = factors.graph.n_components
        members = sum_matrix(factors.group, n_groups)
        # All other groups are single points, for which equation (4) is p.
        self.joined = np.flatnonzero((factors.potentials != 0).any(axis=1) | (np.diff(members.indptr) > 1))
        self._joined_members = members[self.joined]
        self._member = members.indices[members.indptr[:-1]]
        # Single edges and cycles, and trees of two edges or more.
        component = connect(factors.ends, n_groups)
        n_edges = np.bincount(component[factors.ends[:, 0]], minlength=n_groups)
        on_tree = edges_on_trees(factors.ends, component) & (n_edges[component[factors.ends[:, 0]]] > 1)
        self.edges = factors.ends[~on_tree]
        self.agree = factors.agree[~on_tree]
        self.differ = factors.differ[~on_tree]
        self._edge_ends = sum_matrix(self.edges.T.ravel(), n_groups)
        self._edges_by_component = sum_matrix(factors.component[self.edges[:, 0]], n_components)
        # Groups on trees, which count as part of their tree and not by themselves.
        self._tree_groups, local = np.unique(factors.ends[on_tree], return_inverse=True)
        local = local.reshape(-1, 2)
        self.trees = Network(local, factors.agree[on_tree], factors.differ[on_tree], len(self._tree_groups))
        alone = sparse.diags(1.0 - np.isin(self.joined, self._tree_groups))
        self._joined_by_component = sum_matrix(factors.component[self.joined], n_components) @ alone
        self._trees_by_component = sum_matrix(factors.component[self._tree_groups], n_components)
        self._tree_edges_by_component = sum_matrix(factors.component[factors.ends[on_tree, 0]], n_components)

    def terms(self, Z: Array, exact: bool) -> tuple[Array, Array]:
        log_p = Z.copy()
        _, p = _normalise(log_p)
        value, log_q, q = self._beliefs(log_p, p)
        if len(self.edges):
            log_chance, moved = self._edge_terms(log_q, q)
            value = value + self._edges_by_component @ log_chance
            q = q + _added(self._edge_ends, moved)
        return value, q[self.group] - p

    def _beliefs(self, log_p: Array, p: Array) -> tuple[Array, Array, Array]:
        """Return the log likelihood of groups and trees by component, and log q and q of equation (4)."""
        log_q = log_p[self._member]
        q = p[self._member]
        joined = self.factors.potentials[self.joined, :, None] + _added(self._joined_members, log_p)
        log_q[self.joined] = joined
        on_trees = np.moveaxis(log_q[self._tree_groups], 1, 2)
        log_z, q[self.joined] = _normalise(joined)
        log_q[self.joined] = joined
        value = self._joined_by_component @ log_z
        if len(self._tree_groups):
            beliefs = self.trees.beliefs(on_trees)
            value = value + self._trees_by_component @ beliefs.log_z + self._tree_edges_by_component @ beliefs.edge_z
            q[self._tree_groups] = np.moveaxis(beliefs.groups, 2, 1)
            with np.errstate(divide="ignore"):
                log_q[self._tree_groups] = np.log(q[self._tree_groups])
        return value, log_q, q

    def _edge_terms(self, log_q: Array, q: Array) -> tuple[Array, Array]:
        """Return log (5) and its derivatives in log potentials, of first and then second ends."""
        first, second = (q[end] for end in self.edges.T)
        a, b = (np.exp(factor)[:, None] for factor in (self.agree, self.differ))
        both = first * second
        same = both.sum(axis=1)
        chance = a * same + b * (1 - same)
        safe = np.maximum(chance, _UNLIKELY)
        slope = ((a - b) / safe)[:, None]
        moved = np.concatenate([slope * (both - same[:, None] * end) for end in (first, second)])
        log_chance = np.log(safe)
        edge, column = np.nonzero(chance < _UNLIKELY)
        if edge.size:
            log_chance[edge, column], exact = self._rare_edge_terms(log_q, edge, column)
            moved[edge, :, column], moved[edge + len(first), :, column] = np.split(exact, 2)
        return log_chance, moved

    def _rare_edge_terms(self, log_q: Array, edge: Indices, column: Indices) -> tuple[Array, Array]:
        """Return the same from logarithms, where differences lose digits."""
        first, second = (log_q[end, :, column] for end in self.edges[edge].T)
        agree, differ = self.agree[edge], self.differ[edge]
        _, log_chance = edge_beliefs(first, second, agree, differ)
        log_chance = np.maximum(log_chance, -700.0)
        posteriors = []
        for end, other in ((first, second), (second, first)):
            agrees = agree[:, None] + other
            differs = differ[:, None] + log_sum_of_others(other)
            posteriors.append(np.exp(end + np.logaddexp(agrees, differs) - log_chance[:, None]))
        return log_chance, np.concatenate(posteriors) - np.exp(np.concatenate([first, second]))


def _added(matrix: sparse.csr_matrix, values: Array) -> Array:
    """Return ``matrix @ values`` over the first axis."""
    return np.asarray(matrix @ values.reshape(len(values), -1)).reshape(-1, *values.shape[1:])


def _normalise(log_t: Array) -> tuple[Array, Array]:
    """Return the log of the sum over classes, and the shares; ``log_t`` becomes their log."""
    log_t -= (peak := log_t.max(axis=1))[:, None]
    share = np.exp(log_t)
    total = share.sum(axis=1)
    share /= total[:, None]
    log_total = np.log(total)
    log_t -= log_total[:, None]
    return peak + log_total, share


def _n_independent(factors: FactorGraph) -> Array:
    """Return the number of ties within groups, of edges, of labels and of questions about them, by component."""
    graph = factors.graph
    n_groups = len(factors.potentials)
    ties = np.bincount(factors.group, minlength=n_groups) - 1
    asked = factors.group[graph.ends]
    # A question counts once, as an edge does. Between two labels an answer adds nothing.
    about_label = (factors.label[asked] >= 0).sum(axis=1) == 1
    questions, _ = number_questions(asked[about_label], n_groups)
    ends = np.concatenate([factors.ends, questions])
    of_groups = np.bincount(factors.component, ties + (factors.label >= 0), graph.n_components)
    of_questions = np.bincount(factors.component[ends[:, 0]], minlength=graph.n_components)
    return np.asarray(of_groups + of_questions, dtype=np.float64)
