"""Likelihood of all answers and posterior of every point, by belief propagation.

Point i has a hidden class c_i with node probability p_i(c). An answer of weight w, wrong with
probability e, is a factor of its two points that knows only whether their classes agree:

    f(c, c') = (1 - e)^w  if c = c' (answer "same") or c != c' ("different"),  else e^w     (1)
    P(answers, labels) = sum_c  prod_i p_i(c_i)  prod_answers f(c_i, c_j)                   (2)

Answers with e = 0 tie points together before anything else: "same" ones contract points for any number
of classes, and with two classes "different" ones do so too, with the classes of one side swapped. What
is left are *groups* of points with a potential t(c) each, joined by edges with two numbers,
f = a where classes agree and b where they differ. Repeated questions are one edge, and an edge at a
labelled group is a potential of its other end. Sum-product on the groups, in logarithms:

    cavity   h(c) = t(c) * product of all messages into the group but one                   (3)
    message  m(c') = a h(c') + b sum_{c != c'} h(c)                                         (4)
    belief   q(c) = t(c) * product of all messages into the group / Z                       (5)
    log P = sum_groups log Z + sum_edges log sum_{c, c'} f(c, c') h(c) h'(c') / (Z Z')      (6)

(4) is e S + (1 - 2 e) h(c') for "same" and (1 - e) S - (1 - 2 e) h(c') for "different" with S = sum h,
written without a difference that cancels. (6) is the Bethe free energy, exact on trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from sdulearn.answers.graph import AnswerGraph, connect, find_sides, number_questions
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

    References
    ----------
    .. [1] Yedidia, Freeman & Weiss, "Constructing free-energy approximations and generalized belief
       propagation algorithms", IEEE Transactions on Information Theory 51 (2005).

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
        What labels and answers within a group or with a labelled group say of it.
    label : int array of shape (n_groups,)
        Class that a label fixes, -1 where none does.
    ends : int array of shape (n_edges, 2)
        The two groups of each edge.
    agree, differ : arrays of shape (n_edges,)
        Log factors of each edge where the classes of its ends agree and where they differ.
    edge : int array of shape (n_answers,)
        The edge that each answer is part of, -1 where it is part of a potential.
    loopy : int array
        Edges in components with cycles.
    forest : Forest
        The other edges, in the order of their messages.
    """

    graph: AnswerGraph
    group: Indices
    swapped: Mask
    potentials: Array
    label: Indices
    ends: Indices
    agree: Array
    differ: Array
    edge: Indices
    loopy: Indices
    forest: Forest

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
        agree, differ = log_factors(np.where(crossed, -graph.same, graph.same), errors, graph.weights)
        joins = (ends[:, 0] != ends[:, 1]) & (label[ends] < 0).all(axis=1)
        potentials += _absorb(ends[~joins], agree[~joins], differ[~joins], label, potentials.shape)
        edges, question = number_questions(ends[joins], n_groups)
        edge = np.full(graph.n_answers, -1)
        edge[joins] = question
        on_tree = _on_trees(edges, n_groups)
        return cls(
            graph=graph,
            group=group,
            swapped=swapped,
            potentials=potentials,
            label=label,
            ends=edges,
            agree=np.bincount(question, agree[joins], len(edges)),
            differ=np.bincount(question, differ[joins], len(edges)),
            edge=edge,
            loopy=np.flatnonzero(~on_tree),
            forest=_schedule(edges, np.flatnonzero(on_tree)),
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
        if not 0 <= damping < 1:
            raise InputError(f"`damping` must lie in [0, 1), got {damping:g}.")
        log_t = self._log_potentials(self._check(log_node_probabilities))
        messages = np.zeros((2, len(self.ends), log_t.shape[1]))
        self._sweep_forest(log_t, messages)
        converged, n_iter = self._flood_cycles(log_t, messages, damping, max_iter, tol)
        into, cavities = _cavities(self.ends, log_t, messages)
        log_q = log_t + into
        log_z = log_sum(log_q)
        self._refuse_contradictions(log_z)
        beliefs = np.exp(log_q - log_z[:, None])
        edge_agree, edge_z = edge_beliefs(
            cavities[0] - log_z[self.ends[:, :1]], cavities[1] - log_z[self.ends[:, 1:]], self.agree, self.differ
        )
        values = self._component_values(log_z, edge_z)
        return Propagation(
            value=float(values.sum()),
            posteriors=_swap(beliefs[self.group], self.swapped),
            right=self._right(beliefs, edge_agree),
            component_values=values,
            exact=self.exact,
            converged=converged,
            n_iter=n_iter,
        )

    @property
    def exact(self) -> Mask:
        """Whether each component of the answers is free of cycles that must be approximated."""
        exact = np.ones(self.graph.n_components, dtype=bool)
        exact[self.component[self.ends[self.loopy, 0]]] = False
        return exact

    @property
    def component(self) -> Indices:
        """Component of the answers that each group is in."""
        component = np.zeros(len(self.potentials), dtype=np.intp)
        component[self.group] = self.graph.component
        return component

    def _check(self, log_node_probabilities: ArrayLike) -> Array:
        log_p = np.asarray(log_node_probabilities, dtype=np.float64)
        shape = (self.graph.n_points, self.potentials.shape[1])
        if log_p.shape not in (shape, shape[1:]):
            raise InputError(
                f"`log_node_probabilities` must have shape {shape}, points and classes, or {shape[1:]}; got {log_p.shape}."
            )
        # NaN and +inf fail the comparison too.
        if not (np.abs(log_sum(np.atleast_2d(log_p))) < 1e-6).all():
            raise InputError(
                "`log_node_probabilities` must be logarithms of probabilities that add up to 1 for "
                "each point. Logits become such by scipy.special.log_softmax(logits, axis=1)."
            )
        return np.broadcast_to(log_p, shape)

    def _log_potentials(self, log_p: Array) -> Array:
        """The log of t(c): p^k q^(m - k) for a group with k of m points on one side."""
        return self.potentials + sum_by(self.group, _swap(log_p, self.swapped), len(self.potentials))

    def _sweep_forest(self, log_t: Array, messages: Array) -> None:
        """Messages on trees: from the leaves to the roots, and back."""
        order = self.forest.edges
        agree = self.agree[order]
        differ = self.differ[order]
        up = np.zeros((len(order), log_t.shape[1]))
        upper = log_t.copy()
        for level, parents, starts in reversed(self.forest.levels):
            up[level] = message(upper[self.forest.child[level]], agree[level], differ[level])
            upper[parents] += np.add.reduceat(up[level], starts)
        down = np.zeros_like(up)
        above = log_t.copy()
        siblings = leave_one_out(self.forest.parent, up, len(log_t))
        for level, _, _ in self.forest.levels:
            cavity = above[self.forest.parent[level]] + siblings[level]
            down[level] = message(cavity, agree[level], differ[level])
            above[self.forest.child[level]] += down[level]
        messages[self.forest.parent_end, order] = up
        messages[1 - self.forest.parent_end, order] = down

    def _flood_cycles(
        self, log_t: Array, messages: Array, damping: float, max_iter: int, tol: float
    ) -> tuple[bool, int]:
        """Damped messages of all edges in components with cycles, until they come to rest."""
        moving = self.loopy
        component = self.component
        n_iter = 0
        while len(moving) and n_iter < max_iter:
            ends = self.ends[moving]
            groups, local = np.unique(ends, return_inverse=True)
            local = local.reshape(-1, 2)
            current = messages[:, moving]
            of_edge = np.unique(component[ends[:, 0]], return_inverse=True)[1]
            rests = np.zeros(len(moving), dtype=bool)
            # Components at rest are dropped as soon as they are half of the work.
            while n_iter < max_iter and 2 * rests.sum() < len(moving):
                fresh = _flood(local, log_t[groups], current, self.agree[moving], self.differ[moving])
                change = _change(fresh, current)
                current = _damp(fresh, current, damping)
                moved = np.bincount(of_edge, change > tol)
                rests = moved[of_edge] == 0
                n_iter += 1
            messages[:, moving] = current
            moving = moving[~rests]
        return not len(moving), n_iter

    def _refuse_contradictions(self, log_z: Array) -> None:
        """A group without a class that everything allows."""
        if (empty := np.flatnonzero(np.isneginf(log_z))).size:
            point = self.graph.points[np.argmax(self.group == empty[0])]
            n_components = len(np.unique(self.component[empty]))
            raise InputError(
                f"The answers contradict each other or the labels in {n_components} of "
                f"{self.graph.n_components} components: no class is left for point {point}, for one. "
                "Answers with an error rate of 0 are taken for certain. Give `error_rates` above 0, "
                "for example 0.05, or remove the wrong answers."
            )

    def _component_values(self, log_z: Array, edge_z: Array) -> Array:
        """Equation (6), by component."""
        size = self.graph.n_components
        of_groups = np.bincount(self.component, log_z, size)
        return of_groups + np.bincount(self.component[self.ends[:, 0]], edge_z, size)

    def _right(self, beliefs: Array, edge_agree: Array) -> Array:
        """Probability that each answer is right, from the beliefs of edges and groups."""
        first, second = self.group[self.graph.ends].T
        same = np.ones(self.graph.n_answers)
        on_edge = self.edge >= 0
        same[on_edge] = edge_agree[self.edge[on_edge]]
        for one, other in ((first, second), (second, first)):
            fixed = np.flatnonzero((one != other) & (self.label[one] >= 0))
            same[fixed] = beliefs[other[fixed], self.label[one[fixed]]]
        crossed = self.swapped[self.graph.ends[:, 0]] != self.swapped[self.graph.ends[:, 1]]
        return np.where(crossed == (self.graph.same > 0), 1 - same, same)


@dataclass(frozen=True, eq=False)
class Forest:
    """Edges of trees in the order of a breadth-first search, level by level from the roots.

    Attributes
    ----------
    edges : int array of shape (n_tree_edges,)
        The edges, by the place of their lower ends in the search.
    child, parent : int arrays of shape (n_tree_edges,)
        The groups at their lower and upper ends.
    parent_end : int array of shape (n_tree_edges,)
        Which of the two ends of the edge is the upper one.
    levels : list of (slice, int array, int array)
        Edges of each level, their different parents, and where the children of each begin.
    """

    edges: Indices
    child: Indices
    parent: Indices
    parent_end: Indices
    levels: list[tuple[slice, Indices, Indices]]


def log_factors(same: Codes, errors: Array, weights: Array) -> tuple[Array, Array]:
    """Equation (1): log factors where the classes of the two points agree and where they differ."""
    with np.errstate(divide="ignore"):
        wrong = weights * np.log(errors)
    right = weights * np.log1p(-errors)
    return np.where(same > 0, right, wrong), np.where(same > 0, wrong, right)


def message(cavity: Array, agree: Array, differ: Array) -> Array:
    """Equation (4) in logarithms, the largest 0."""
    sent = np.logaddexp(agree[:, None] + cavity, differ[:, None] + log_sum_of_others(cavity))
    top = sent.max(axis=1, keepdims=True)
    return sent - np.where(np.isneginf(top), 0.0, top)


def edge_beliefs(first: Array, second: Array, agree: Array, differ: Array) -> tuple[Array, Array]:
    """Probability that the two ends of each edge agree, and the edge's term in equation (6)."""
    same = agree + log_sum(first + second)
    other = differ + log_sum(first + log_sum_of_others(second))
    total = np.logaddexp(same, other)
    return np.exp(same - total), total


def log_sum(log_h: Array) -> Array:
    """Log of the sum over classes."""
    return np.logaddexp.reduce(log_h, axis=1)


def log_sum_of_others(log_h: Array) -> Array:
    """For each class the log of the sum over all other classes, to full relative precision."""
    if log_h.shape[1] == 2:
        return log_h[:, ::-1]
    rows = np.arange(len(log_h))
    top = log_h.argmax(axis=1)
    peak = log_h[rows, top]
    peak = np.where(np.isneginf(peak), 0.0, peak)[:, None]
    h = np.exp(log_h - peak)
    others = h.sum(axis=1, keepdims=True) - h
    # At the top the difference would cancel: sum the others by themselves.
    others[rows, top] = 1.0
    with np.errstate(divide="ignore"):
        log_others = np.log(others) + peak
    without = log_h.copy()
    without[rows, top] = -np.inf
    log_others[rows, top] = log_sum(without)
    return log_others


def sum_by(index: Indices, values: Array, size: int) -> Array:
    """Sum of the rows of ``values`` with each index."""
    return np.column_stack([np.bincount(index, column, size) for column in values.T])


def leave_one_out(node: Indices, messages: Array, n_nodes: int) -> Array:
    """For each message the log product of the other messages into its node."""
    zero = np.isneginf(messages)
    if not zero.any():
        return sum_by(node, messages, n_nodes)[node] - messages
    # A factor 0 cannot be divided out again: zeros are counted instead.
    finite = np.where(zero, 0.0, messages)
    rest = sum_by(node, finite, n_nodes)[node] - finite
    n_zeros = sum_by(node, zero, n_nodes)[node] - zero
    return np.where(n_zeros > 0, -np.inf, rest)


def answer_errors(annotators: Codes, error_rates: ErrorRates) -> Array:
    """The error rate of each answer, by its annotator."""
    if isinstance(error_rates, Mapping):
        numbers, place = np.unique(annotators, return_inverse=True)
        if missing := [a for a in numbers.tolist() if a not in error_rates]:
            raise InputError(f"`error_rates` has no entry for annotator {missing[0]} (0: not known). Add one.")
        rates = np.array([error_rates[a] for a in numbers.tolist()], dtype=np.float64)
    else:
        rates = np.asarray(error_rates, dtype=np.float64)
        place = annotators
    if not ((rates >= 0) & (rates < 1)).all():
        raise InputError("`error_rates` must lie in [0, 1): the probability that an answer is wrong.")
    if rates.ndim == 0:
        return np.full(len(annotators), float(rates))
    if rates.ndim != 1 or annotators.max(initial=-1) >= len(rates) and not isinstance(error_rates, Mapping):
        raise InputError(
            f"`error_rates` must be a number, a mapping, or an array with an entry for each annotator "
            f"from 0 (not known) to {annotators.max()}; got shape {rates.shape}."
        )
    return rates[place]


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


def _absorb(ends: Indices, agree: Array, differ: Array, label: Indices, shape: tuple[int, int]) -> Array:
    """Potentials that stand for answers within a group, and for those with a labelled group."""
    first, second = ends.T
    inner = first == second
    constant = np.bincount(first[inner], agree[inner], shape[0])
    from_first = label[first] >= 0
    known = np.where(from_first, first, second)[~inner]
    other = np.where(from_first, second, first)[~inner]
    says = np.repeat(differ[~inner][:, None], shape[1], axis=1)
    says[np.arange(len(known)), label[known]] = agree[~inner]
    return constant[:, None] + sum_by(other, says, shape[0])


def _on_trees(ends: Indices, n_groups: int) -> Mask:
    """Whether each edge is in a component without cycles."""
    component = connect(ends, n_groups)
    n_edges = np.bincount(component[ends[:, 0]], minlength=n_groups)
    n_nodes = np.bincount(component, minlength=n_groups)
    return (n_edges < n_nodes)[component[ends[:, 0]]]


def _schedule(ends: Indices, edges: Indices) -> Forest:
    """Root every tree at its first group and order the edges by a breadth-first search."""
    groups, local = np.unique(ends[edges], return_inverse=True)
    local = local.reshape(-1, 2)
    position, roots = _search(local, len(groups))
    places = position[local]
    parent_end = places.argmin(axis=1)
    order = np.argsort(places.max(axis=1))
    parent = places.min(axis=1)[order]
    levels = []
    start = 0
    # Positions below ``reached`` are of groups found so far; their children make the next level.
    reached = roots
    while start < len(order):
        stop = int(np.searchsorted(parent, reached))
        starts = np.flatnonzero(np.diff(parent[start:stop], prepend=-1))
        levels.append((slice(start, stop), starts))
        reached += stop - start
        start = stop
    ordered = edges[order]
    upper = parent_end[order]
    above = ends[ordered, upper]
    return Forest(
        edges=ordered,
        child=ends[ordered, 1 - upper],
        parent=above,
        parent_end=upper,
        levels=[(level, above[level][starts], starts) for level, starts in levels],
    )


def _search(ends: Indices, n_groups: int) -> tuple[Indices, int]:
    """Place of each group in one breadth-first search from the first groups of all trees, and how many these are."""
    first = np.unique(connect(ends, n_groups), return_index=True)[1]
    # One node more, joined to the first group of every tree, makes the forest a tree.
    start = np.r_[ends[:, 0], np.full(len(first), n_groups)]
    stop = np.r_[ends[:, 1], first]
    adjacency = csr_matrix((np.ones(len(start)), (start, stop)), shape=(n_groups + 1, n_groups + 1))
    order = breadth_first_order(adjacency, n_groups, directed=False, return_predecessors=False)
    position = np.empty(n_groups + 1, dtype=np.intp)
    position[order] = np.arange(-1, n_groups)
    return position[:-1], len(first)


def _cavities(ends: Indices, log_t: Array, messages: Array) -> tuple[Array, Array]:
    """Log product of the messages into each group, and equation (3) for both ends of each edge."""
    node = ends.T.ravel()
    flat = messages.reshape(len(node), log_t.shape[1])
    rest = leave_one_out(node, flat, len(log_t))
    cavities = (log_t[node] + rest).reshape(messages.shape)
    return sum_by(node, flat, len(log_t)), cavities


def _flood(ends: Indices, log_t: Array, messages: Array, agree: Array, differ: Array) -> Array:
    """A new message over every edge in both directions; ``messages[k]`` goes to end k."""
    cavities = _cavities(ends, log_t, messages)[1]
    return np.stack([message(cavities[1], agree, differ), message(cavities[0], agree, differ)])


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
    return moved.max(axis=(0, 2))
