"""Likelihood of all answers and posterior of every point, by belief propagation.

Point i has a hidden class c_i with node probability p_i(c). An answer of weight w, wrong with
probability e, is a factor of its two points that knows only whether their classes agree:

    f(c, c') = (1 - e)^w  if c = c' (answer "same") or c != c' ("different"),  else e^w     (1)
    P(answers, labels) = sum_c  prod_i p_i(c_i)  prod_answers f(c_i, c_j)                   (2)

(2) is reduced, exactly, before a message is sent:

- Answers with e = 0 tie points together: "same" ones contract them to a *group* for any number of
  classes. With two classes "different" ones do so too, with the classes of one side swapped.
- Repeated questions are one edge between groups, and an answer within a group is a constant.
- An answer about a labelled group is a potential of the other one.
- A component with cycles is taken once for each class of one group (:mod:`~sdulearn.answers.conditioning`).

What is left are trees, where :mod:`~sdulearn.answers.messages` is exact, and cycles, where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.conditioning import ConditionedNetwork
from sdulearn.answers.graph import AnswerGraph, connect, find_sides, number_questions
from sdulearn.answers.messages import Network, Schedule, absorb, edges_on_trees, sum_by
from sdulearn.errors import InputError
from sdulearn.types import Array, Codes, Indices, Mask

ErrorRates = float | Mapping[int, float] | ArrayLike


@dataclass(frozen=True, eq=False)
class Propagation:
    """What the answers say of the classes.

    Attributes
    ----------
    value : float
        Log likelihood of all answers and labels.
    posteriors : array of shape (n_points, n_classes)
        Probability of each class of each point, given all answers and labels.
    right : array of shape (n_answers,)
        Probability that each answer is right.
    component_values : array of shape (n_components,)
        The part of each component of the graph in ``value``.
    exact : bool array of shape (n_components,)
        Whether the numbers of each component are exact: no cycle is left where loopy propagation
        would approximate.
    converged : bool
        Whether all messages came to rest. Always where everything is exact.
    n_iter : int
        Number of rounds of loopy propagation; 0 where everything is exact.
    """

    value: float
    posteriors: Array
    right: Array
    component_values: Array
    exact: Mask
    converged: bool
    n_iter: int


def propagate(
    graph: AnswerGraph,
    log_node_probabilities: ArrayLike,
    error_rates: ErrorRates = 0.0,
    *,
    damping: float = 0.3,
    max_iter: int = 200,
    tol: float = 1e-9,
) -> Propagation:
    """Compute the likelihood of all answers and the posterior of every point.

    Parameters
    ----------
    graph : AnswerGraph
        Points, answers, labels.
    log_node_probabilities : array-like of shape (n_points, n_classes) or (n_classes,)
        Logarithms of what a classifier says of each point, or of class priors. Labels -1 and +1
        are the first and the second column, labels 1 to K the K columns.
    error_rates : float, array-like or mapping, default=0.0
        Probability that an answer is wrong: one for all, or one an annotator, as an array (entry 0
        is the annotator that is not known) or a mapping from annotators.
    damping : float, default=0.3
        Share of the old log message in a new one, in [0, 1); cycles only.
    max_iter : int, default=200
        Most rounds of messages; cycles only.
    tol : float, default=1e-9
        Messages are at rest where no logarithm moves more; cycles only.

    Returns
    -------
    Propagation
        Value, posteriors, and how sure each answer is.

    Raises
    ------
    InputError
        Where answers without errors, labels and probabilities of 0 contradict each other: then the
        likelihood is 0 and there is no posterior.

    See Also
    --------
    AnswerGraph : What follows from the answers without a model.
    FactorGraph : The same for many node probabilities.

    Notes
    -----
    A weight multiplies the logarithm of an answer's factor: 2 is the same answer given twice. It says
    nothing where the error rate is 0, as an answer without errors cannot be surer than it is. To count
    whole components by a weight, multiply ``component_values`` and the gradient of their points.

    With logits z and node probabilities softmax(z), Fisher's identity is

    .. math:: \\partial\\,\\mathrm{value} / \\partial z_{ic} = \\mathrm{posterior}_{ic} - p_{ic}

    in exact components, and in those with cycles wherever the messages came to rest, for the value
    that is returned. Likewise ``sum(weights * (1 - right)) / sum(weights)`` over the answers of an
    annotator is the next error rate of an EM algorithm.

    The value is the Bethe free energy [1]_, after conditioning each component with cycles on one of its
    groups [2]_. What is not exact was compared with the sum over all classes, on random graphs of 4 to 12 points
    (8 with three classes, 6 with four), as many answers as points to twice as many, given by four
    annotators who err in 2 to 30% of their answers. Half of the graphs or more are exact after
    conditioning; the others, 93 to 168 graphs a row (17 in the last), have absolute errors of

    =======  ==========  ================  =====================  =================
    classes  errors      posterior, mean   posterior, 99%, worst  value per answer
    =======  ==========  ================  =====================  =================
    2        2 to 30%    0.004             0.05, 0.31             0.001, worst 0.09
    3        2 to 30%    0.006             0.06, 0.11             0.002, worst 0.03
    4        2 to 30%    0.005             0.07, 0.20             0.004, worst 0.04
    3        none        0.017             0.09, 0.12             0.004, worst 0.01
    =======  ==========  ================  =====================  =================

    (without conditioning 0.027 on average and 0.57 at worst, two classes). Messages came to rest in 97 to
    100% of them (88% in the last row). On answers that fit no classes at all they rarely do; then the
    numbers are those of the last round and ``converged`` is False. Whether K > 2 classes can agree
    with "different" answers without errors around cycles is a graph colouring, which messages do not decide:
    such a contradiction may go unnoticed, with a finite value.

    References
    ----------
    .. [1] Yedidia, Freeman & Weiss, "Constructing free-energy approximations and generalized belief
       propagation algorithms", IEEE Transactions on Information Theory 51 (2005).
    .. [2] Pearl, "Probabilistic Reasoning in Intelligent Systems" (1988), section 4.4, on conditioning.

    Examples
    --------
    A loose pair answered "same": ``log(0.7 * 0.7 + 0.3 * 0.3)``.

    >>> import numpy as np
    >>> from sdulearn.answers import AnswerGraph
    >>> from sdulearn.answers.propagate import propagate
    >>> graph = AnswerGraph.from_answers([(0, 1)], [True])
    >>> result = propagate(graph, np.log([0.3, 0.7]))
    >>> print(f"{np.exp(result.value):.2f} {result.posteriors[0, 1]:.3f}")
    0.58 0.845
    """
    log_p = np.asarray(log_node_probabilities, dtype=np.float64)
    if log_p.ndim == 0:
        raise InputError("`log_node_probabilities` must have shape (n_points, n_classes) or (n_classes,).")
    network = FactorGraph.from_answers(graph, log_p.shape[-1], error_rates)
    return network.propagate(log_p, damping=damping, max_iter=max_iter, tol=tol)


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """The groups of points that answers without errors leave, and the edges between them.

    It depends on the answers, the labels and the error rates alone: made once by
    :meth:`from_answers`, it serves any number of node probabilities.

    Attributes
    ----------
    graph : AnswerGraph
        The answers.
    group : int array of shape (n_points,)
        Group of each point.
    swapped : bool array of shape (n_points,)
        Whether the two classes of a point are swapped in its group.
    potentials : array of shape (n_groups, n_classes)
        What labels and answers within a group or with a labelled group say of it, in logarithms.
    label : int array of shape (n_groups,)
        Class that a label fixes, -1 where none does.
    edge : int array of shape (n_answers,)
        The edge that each answer is part of, -1 where it is part of a potential.
    n_edges : int
        Number of edges.
    tree_edges : int array
        Edges in components without cycles.
    trees : Network
        All groups, and these edges.
    cycles : ConditionedNetwork
        The other edges and their groups.
    component : int array of shape (n_groups,)
        Component of the answers that each group is in.
    """

    graph: AnswerGraph
    group: Indices
    swapped: Mask
    potentials: Array
    label: Indices
    edge: Indices
    n_edges: int
    tree_edges: Indices
    trees: Network
    cycles: ConditionedNetwork
    component: Indices

    @classmethod
    def from_answers(cls, graph: AnswerGraph, n_classes: int, error_rates: ErrorRates = 0.0) -> FactorGraph:
        """Contract what answers without errors tie together.

        Parameters
        ----------
        graph : AnswerGraph
            Points, answers, labels.
        n_classes : int
            Number of classes.
        error_rates : float, array-like or mapping, default=0.0
            As in :func:`propagate`.

        Returns
        -------
        FactorGraph
            Ready for node probabilities.
        """
        if n_classes < 2:
            raise InputError(f"`log_node_probabilities` must have two columns or more, got {n_classes}.")
        errors = answer_errors(graph.annotators, error_rates)
        group, swapped = _contract(graph, errors == 0, n_classes)
        n_groups = int(group.max(initial=-1)) + 1
        potentials, label = _label_potentials(graph, group, swapped, n_groups, n_classes)
        ends = group[graph.ends]
        crossed = swapped[graph.ends[:, 0]] != swapped[graph.ends[:, 1]]
        # A factor of two points, seen from their groups: swapping one end swaps agree and differ.
        factors = log_factors(np.where(crossed, -graph.same, graph.same), errors, graph.weights)
        joins = (ends[:, 0] != ends[:, 1]) & (label[ends] < 0).all(axis=1)
        potentials += absorb(ends[~joins], factors[:, ~joins], label, potentials.shape)
        edge = np.full(graph.n_answers, -1)
        edges, edge[joins] = number_questions(ends[joins], n_groups)
        agree, differ = (sum_by(edge[joins], factor, len(edges)) for factor in factors[:, joins])
        on_tree = edges_on_trees(edges, connect(edges, n_groups))
        component = np.zeros(n_groups, dtype=np.intp)
        component[group] = graph.component
        return cls(
            graph=graph,
            group=group,
            swapped=swapped,
            potentials=potentials,
            label=label,
            edge=edge,
            n_edges=len(edges),
            tree_edges=np.flatnonzero(on_tree),
            trees=Network.from_edges(edges[on_tree], agree[on_tree], differ[on_tree], n_groups),
            cycles=ConditionedNetwork.from_edges(
                np.flatnonzero(~on_tree), edges[~on_tree], agree[~on_tree], differ[~on_tree], n_classes
            ),
            component=component,
        )

    def propagate(
        self, log_node_probabilities: ArrayLike, *, damping: float = 0.3, max_iter: int = 200, tol: float = 1e-9
    ) -> Propagation:
        """Send messages and read the beliefs.

        Parameters
        ----------
        log_node_probabilities : array-like of shape (n_points, n_classes) or (n_classes,)
            As in :func:`propagate`.
        damping, max_iter, tol : float, int, float
            As in :func:`propagate`.

        Returns
        -------
        Propagation
            Value, posteriors, and how sure each answer is.
        """
        schedule = _checked_schedule(damping, max_iter, tol)
        log_t = self._log_potentials(self._checked(log_node_probabilities))
        trees = self.trees.beliefs(log_t, schedule)
        cycles = self.cycles.mixture(log_t, schedule)
        beliefs = trees.groups
        beliefs[self.cycles.groups] = cycles.groups
        trees.log_z[self.cycles.groups] = 0.0
        values = self._by_component(trees.log_z, trees.edge_z, cycles.values)
        self._refuse_contradictions(values)
        agree = np.empty(self.n_edges)
        agree[self.tree_edges] = trees.agree
        agree[self.cycles.edges] = cycles.agree
        return Propagation(
            value=float(values.sum()),
            posteriors=_swap(beliefs[self.group], self.swapped),
            right=self._right(beliefs, agree),
            component_values=values,
            exact=self.exact,
            converged=cycles.converged,
            n_iter=cycles.n_iter,
        )

    @property
    def exact(self) -> Mask:
        """Whether each component of the answers is free of cycles that must be approximated."""
        exact = np.ones(self.graph.n_components, dtype=bool)
        exact[self.component[self.cycles.groups[self.cycles.inexact]]] = False
        return exact

    def _checked(self, log_node_probabilities: ArrayLike) -> Array:
        log_p = np.asarray(log_node_probabilities, dtype=np.float64)
        shape = (self.graph.n_points, self.potentials.shape[1])
        if log_p.shape not in (shape, shape[1:]):
            raise InputError(
                f"`log_node_probabilities` must have shape {shape}, points and classes, or {shape[1:]}; "
                f"got {log_p.shape}."
            )
        with np.errstate(over="ignore"):
            total = np.exp(log_p).sum(axis=-1)
        # NaN fails the comparison too.
        if not (np.abs(total - 1) < 1e-6).all():
            raise InputError(
                "`log_node_probabilities` must be logarithms of probabilities that add up to 1 for "
                "each point. Logits become such by scipy.special.log_softmax(logits, axis=1)."
            )
        return np.broadcast_to(log_p, shape)

    def _log_potentials(self, log_p: Array) -> Array:
        """Potentials of the groups: p^k q^(m - k) where k of m points are on one side."""
        return self.potentials + sum_by(self.group, _swap(log_p, self.swapped), len(self.potentials))

    def _by_component(self, log_z: Array, edge_z: Array, cycle_values: Array) -> Array:
        """The log likelihood of each component of the answers."""
        size = self.graph.n_components
        values = sum_by(self.component, log_z, size)
        values += sum_by(self.component[self.trees.ends[:, 0]], edge_z, size)
        first = self.cycles.groups[self.cycles.pivots]
        return values + sum_by(self.component[first], cycle_values, size)

    def _refuse_contradictions(self, values: Array) -> None:
        if (empty := np.flatnonzero(np.isneginf(values))).size:
            point = self.graph.points[np.argmax(self.graph.component == empty[0])]
            raise InputError(
                f"The answers contradict each other or the labels in {empty.size} of {len(values)} components "
                f"(the first is that of point {point}): no classes agree with all of them. Answers with an "
                "error rate of 0 are taken for certain. Give `error_rates` above 0, for example 0.05, or "
                "remove the wrong answers."
            )

    def _right(self, beliefs: Array, agree: Array) -> Array:
        """Probability that each answer is right, from the beliefs of edges and groups."""
        first, second = self.group[self.graph.ends].T
        same = np.ones(self.graph.n_answers)
        on_edge = self.edge >= 0
        same[on_edge] = agree[self.edge[on_edge]]
        for one, other in ((first, second), (second, first)):
            fixed = np.flatnonzero((one != other) & (self.label[one] >= 0))
            same[fixed] = beliefs[other[fixed], self.label[one[fixed]]]
        crossed = self.swapped[self.graph.ends[:, 0]] != self.swapped[self.graph.ends[:, 1]]
        return np.where(crossed == (self.graph.same > 0), 1 - same, same)


def log_factors(same: Codes, errors: Array, weights: Array) -> Array:
    """Equation (1): log factors where the classes of the two points agree (row 0) and where they differ (row 1)."""
    with np.errstate(divide="ignore"):
        wrong = weights * np.log(errors)
    right = weights * np.log1p(-errors)
    return np.where([same > 0, same < 0], right, wrong)


def answer_errors(annotators: Codes, error_rates: ErrorRates) -> Array:
    """The error rate of each answer, by its annotator."""
    if isinstance(error_rates, Mapping):
        numbers, place = np.unique(annotators, return_inverse=True)
        if missing := [a for a in numbers.tolist() if a not in error_rates]:
            raise InputError(f"`error_rates` has no entry for annotator {missing[0]} (0: not known). Add one.")
        return _checked_rates([error_rates[a] for a in numbers.tolist()])[place]
    rates = _checked_rates(error_rates)
    if rates.ndim == 0:
        return np.full(len(annotators), float(rates))
    if rates.ndim > 1 or annotators.max(initial=-1) >= len(rates):
        raise InputError(
            "`error_rates` must be a number, a mapping, or an array with an entry for each annotator "
            f"from 0 (not known) to {annotators.max(initial=0)}; got shape {rates.shape}."
        )
    return rates[annotators]


def _checked_rates(error_rates: ArrayLike) -> Array:
    rates = np.asarray(error_rates, dtype=np.float64)
    if not ((rates >= 0) & (rates < 1)).all():
        raise InputError("`error_rates` must lie in [0, 1): the probability that an answer is wrong.")
    return rates


def _swap(values: Array, swapped: Mask) -> Array:
    """Rows with their two classes swapped where asked."""
    if not swapped.any():
        return values
    return np.where(swapped[:, None], values[:, ::-1], values)


def _contract(graph: AnswerGraph, certain: Mask, n_classes: int) -> tuple[Indices, Mask]:
    """Group of each point along answers without errors, and which points are swapped in theirs."""
    if n_classes > 2:
        certain = certain & (graph.same > 0)
    ends = graph.ends[certain]
    group = connect(ends, graph.n_points)
    if n_classes > 2:
        return group, np.zeros(graph.n_points, dtype=bool)
    return group, find_sides(ends, graph.same[certain], graph.n_points) < 0


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
            f"Labels with {n_classes} classes are {allowed}, got {np.unique(labels)[:10].tolist()}. Give as "
            "many columns of `log_node_probabilities` as there are classes."
        )
    return labels - 1


def _checked_schedule(damping: float, max_iter: int, tol: float) -> Schedule:
    if not 0 <= damping < 1:
        raise InputError(f"`damping` must lie in [0, 1), got {damping:g}.")
    if max_iter < 1 or not tol > 0:
        raise InputError(f"`max_iter` and `tol` must be above 0, got {max_iter} and {tol:g}.")
    return Schedule(damping, max_iter, tol)
