"""Answers as a graph: points, the answers that join them, and what follows from these alone.

With two classes, "different from a different one" is "same". The *double cover* of the graph holds
all such conclusions: every point i becomes two nodes, (i, +) and (i, -), and with s = +1 (same) or
-1 (different)

    an answer (i, j, s) joins (i, +) with (j, s) and (i, -) with (j, -s)                    (1)
    a component is contradictory  <=>  some (i, +) and (i, -) are connected                 (2)
    side of i = +1 where (i, +) is connected with (r, +), the first point r; else -1        (3)

A *question* is an unordered pair of points. Asked again, it is another answer and the same question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from sdulearn.pairs import (
    DISSIMILAR,
    SIMILAR,
    Pairs,
    annotator_numbers,
    answer_signs,
    check_ends,
    check_labels,
    check_weights,
    mean_weight,
    number_together,
    question_numbers,
    read_pairs,
    whole_numbers,
)
from sdulearn.types import Array, Codes, Indices, Mask, Rows

# A hub is in at least this many answers, and in at least this multiple of the mean number of answers.
_HUB_ANSWERS = 10
_HUB_MULTIPLE = 5
# The search for mutually different groups starts from this many groups.
_N_FIRST = 50


@dataclass(frozen=True, eq=False)
class AnswerGraph:
    """Points, the answers that join them, and their structure.

    Made by :meth:`from_y` or :meth:`from_answers`. An answer of weight 0 is left out.

    Attributes
    ----------
    n_points : int
        Number of points, those in no answer included. They are numbered from 0.
    ends : int array of shape (n_answers, 2)
        The two points of each answer.
    same, annotators : int arrays of shape (n_answers,)
        +1 for "same class", -1 for "different"; who answered, 0 where that is not known.
    question : int array of shape (n_answers,)
        Answers given together share a number, every other answer has one of its own.
    weights : array of shape (n_answers,)
        Weights of the answers, above 0; from ``y``, in units of their mean.
    labels : int array of shape (n_points,)
        Label of each point: 0 where it is not known, -1 or +1 with two classes, 1 to K with more.
    row_point, points : int arrays of shape (n_rows,) and (n_points,)
        The point that each row of ``y`` shows, and the number that each point has in ``y``.
    point_weights : array of shape (n_points,)
        Mean weight of the rows that show each point, in units of the mean answer.

    Examples
    --------
    >>> from sdulearn.answers import AnswerGraph
    >>> graph = AnswerGraph.from_answers([(0, 1), (1, 2), (0, 2), (3, 4)], [True, False, False, True])
    >>> graph.component_sizes, graph.sides
    (array([3, 2]), array([ 1,  1, -1,  1,  1]))
    """

    n_points: int
    ends: Indices
    same: Codes
    annotators: Codes
    question: Indices
    weights: Array
    labels: Codes
    row_point: Indices
    points: Codes
    point_weights: Array

    @classmethod
    def from_y(cls, y: ArrayLike | Pairs, sample_weight: ArrayLike | None = None) -> AnswerGraph:
        """Make a graph from ``y``.

        Parameters
        ----------
        y : array-like of int, shape (n_rows,) or (n_rows, 1 to 5), frame or Pairs
            As in :func:`~sdulearn.pairs.read_pairs`.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, the same for both ends of an answer, in any unit. Weight 0 leaves
            answers and labels out; their points stay.

        Returns
        -------
        AnswerGraph
            Its points are numbered in ascending order of their numbers in ``y``.
        """
        pairs = read_pairs(y)
        points = row_point = np.arange(len(pairs))
        if pairs.points is not None:
            points, row_point = np.unique(pairs.points, return_inverse=True)
        by_row = np.ones(len(pairs))
        if sample_weight is not None:
            by_row = check_weights(sample_weight, len(pairs), "sample_weight")
        weights = pairs.pair_weights(by_row)
        labels = np.zeros(len(points), dtype=np.int64)
        if pairs.labels is not None:
            named = np.flatnonzero(pairs.labels * (by_row > 0))
            labels[row_point[named]] = pairs.labels[named]
        # Weights of answers, and mean weights of the rows of each point, in units of the mean answer or row.
        given = weights if weights.any() else by_row
        unit = mean_weight(given[given > 0]) if given.any() else 1.0
        n_rows = np.bincount(row_point[by_row > 0], minlength=len(points))
        graph = cls(
            n_points=len(points),
            ends=row_point[pairs.ends],
            same=np.where(pairs.similar, SIMILAR, DISSIMILAR),
            annotators=pairs.answer_annotators,
            question=pairs.answer_questions,
            weights=weights / unit,
            labels=labels,
            row_point=row_point,
            points=points,
            point_weights=np.bincount(row_point, by_row / unit, len(points)) / np.maximum(n_rows, 1),
        )
        return restrict(graph, weights > 0, labels != 0)

    @classmethod
    def from_answers(
        cls,
        ends: ArrayLike,
        same: ArrayLike,
        *,
        annotators: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        questions: ArrayLike | None = None,
        n_points: int | None = None,
    ) -> AnswerGraph:
        """Make a graph from plain arrays.

        Parameters
        ----------
        ends : array-like of int, shape (n_answers, 2)
            The two points of each answer, numbered from 0.
        same : array-like of shape (n_answers,)
            The answers: booleans, or +1 for "same class" and -1 for "different".
        annotators, weights : array-like of shape (n_answers,), optional
            Who answered, 0 where not known; weights: 2 is the same answer given twice.
        labels : array-like of int, shape (n_points,), optional
            Known labels: 0 not known, -1 or +1 with two classes, 1 to K with more.
        questions : array-like of int, shape (n_answers,), optional
            Answers given together share a number from 1 on; 0 is a question of its own.
        n_points : int, optional
            Number of points; by default that of the labels, or one more than the largest in ``ends``.

        Returns
        -------
        AnswerGraph
            One row per point: ``row_point`` counts from 0 to ``n_points - 1``.
        """
        if n_points is None:
            named = whole_numbers(ends, "ends") if labels is None else np.arange(np.size(labels))
            n_points = int(np.max(named, initial=-1)) + 1
        numbers = check_ends(ends, n_points, "ends", "point")
        known = np.zeros(n_points, dtype=np.int64) if labels is None else check_labels(labels, n_points, "point")
        given = np.ones(len(numbers)) if weights is None else check_weights(weights, len(numbers), "weights")
        graph = cls(
            n_points=n_points,
            ends=numbers,
            same=answer_signs(same, len(numbers)),
            annotators=annotator_numbers(annotators, len(numbers)),
            question=number_together(
                None if questions is None else question_numbers(questions, len(numbers)), len(numbers)
            ),
            weights=given,
            labels=known,
            row_point=np.arange(n_points),
            points=np.arange(n_points),
            point_weights=np.ones(n_points),
        )
        return restrict(graph, given > 0, known != 0)

    @property
    def y(self) -> Codes:
        """The answers as two rows each: answer, point and annotator."""
        codes = self.same * np.arange(1, self.n_answers + 1)
        return np.column_stack([np.repeat(codes, 2), self.ends.ravel(), np.repeat(self.annotators, 2)])

    @property
    def n_answers(self) -> int:
        """Number of answers, each repeat counted."""
        return len(self.same)

    @cached_property
    def degree(self) -> Indices:
        """Number of answers that each point is in."""
        return np.bincount(self.ends.ravel(), minlength=self.n_points)

    @cached_property
    def unlabeled(self) -> Indices:
        """Points in no answer and without a label."""
        return np.flatnonzero((self.degree == 0) & (self.labels == 0))

    @cached_property
    def component(self) -> Indices:
        """Connected component of each point, numbered in the order of their first points."""
        return connect(self.ends, self.n_points)

    @property
    def n_components(self) -> int:
        """Number of connected components; a point in no answer is one."""
        return int(self.component.max(initial=-1)) + 1

    @cached_property
    def component_sizes(self) -> Indices:
        """Number of points in each component."""
        return np.bincount(self.component, minlength=self.n_components)

    @cached_property
    def labelled(self) -> Mask:
        """Whether each component has a label."""
        return np.bincount(self.component, self.labels != 0, self.n_components) > 0

    @property
    def n_independent(self) -> int:
        """Number of answers that do not follow from the others with two classes and no errors."""
        return int(np.sum(self.component_sizes - 1))

    @cached_property
    def sides(self) -> Codes:
        """Side of each point with two classes, equation (3); 0 in contradictory components."""
        return find_sides(self.ends, self.same, self.n_points)

    @cached_property
    def contradictory(self) -> Mask:
        """Whether the answers of each component contradict each other, equation (2)."""
        return np.bincount(self.component, weights=self.sides == 0, minlength=self.n_components) > 0

    @cached_property
    def group(self) -> Indices:
        """Group of each point: "same" answers connect the points of a group, which have one class."""
        return connect(self.ends[self.same > 0], self.n_points)

    @cached_property
    def refuted(self) -> Mask:
        """Whether each answer is "different" within a group of "same" answers."""
        return (self.same < 0) & (self.group[self.ends[:, 0]] == self.group[self.ends[:, 1]])

    def by_point(self, values: Rows, weight: Array | None = None) -> Rows:
        """Return the weighted mean over the rows that show each point."""
        n_rows = len(self.row_point)
        if self.n_points == n_rows:
            return values[np.argsort(self.row_point)]
        weight = np.ones(n_rows) if weight is None else weight
        total = np.bincount(self.row_point, weight, self.n_points)
        cells = (self.row_point, np.arange(n_rows))
        return csr_matrix((weight / total[self.row_point], cells), shape=(self.n_points, n_rows)) @ values

    def hubs(self) -> Indices:
        """Find the points that many answers share, such as the examples of a linked design.

        Returns
        -------
        int array
            The points in at least 10 answers, and in at least 5 times as many as the mean point, in
            descending order of their number of answers. A question asked again counts once.
        """
        asked, _ = number_questions(self.ends, self.n_points)
        degree = np.bincount(asked.ravel(), minlength=self.n_points)
        found = np.flatnonzero(are_hubs(degree))
        return found[np.argsort(-degree[found], kind="stable")]


def restrict(graph: AnswerGraph, answers: Mask, labels: Mask) -> AnswerGraph:
    """Return the same points with some of the answers and labels."""
    kept = {name: getattr(graph, name)[answers] for name in ("ends", "same", "annotators", "question", "weights")}
    return replace(graph, **kept, labels=np.where(labels, graph.labels, 0))


def subgraph(graph: AnswerGraph, points: Indices) -> AnswerGraph:
    """Return the graph of some points, in this order, and of the answers between them."""
    place = np.full(graph.n_points, -1)
    place[points] = np.arange(len(points))
    inside = np.asarray((place[graph.ends] >= 0).all(axis=1))
    part = restrict(graph, inside, np.ones(graph.n_points, dtype=bool))
    return replace(
        part,
        n_points=len(points),
        ends=place[part.ends],
        labels=graph.labels[points],
        points=graph.points[points],
        point_weights=graph.point_weights[points],
        row_point=np.arange(len(points)),
    )


def leave_out(graph: AnswerGraph, points: Mask) -> AnswerGraph:
    """Return the same points without the answers and labels that touch some of them."""
    return restrict(graph, ~(points[graph.ends[:, 0]] | points[graph.ends[:, 1]]), ~points)


def weights_by_component(graph: AnswerGraph) -> tuple[AnswerGraph, Array]:
    """Divide weights of answers by the mean weight of their component, and return these means."""
    size = graph.n_components
    of_answer = graph.component[graph.ends[:, 0]]
    known = np.flatnonzero(graph.labels)
    of_label = graph.component[known]
    total = np.bincount(of_answer, graph.weights, size) + np.bincount(of_label, graph.point_weights[known], size)
    count = np.bincount(of_answer, minlength=size) + np.bincount(of_label, minlength=size)
    mean = np.where(count > 0, total, 1.0) / np.maximum(count, 1)
    return replace(graph, weights=graph.weights / mean[of_answer]), mean


def distinct_groups(graph: AnswerGraph, least_size: int) -> Indices:
    """Return groups of some size that all differ, found greedily; none where one is refuted."""
    if graph.refuted.any():
        return np.empty(0, dtype=np.intp)
    ends = graph.group[graph.ends[graph.same < 0]]
    large = np.bincount(graph.group) >= least_size
    return np.array(different_groups(ends[large[ends].all(axis=1)]), dtype=np.intp)


def least_classes(graph: AnswerGraph, certain: Mask) -> int:
    """Return a lower bound, 2 or more, of the number of classes by certain answers and labels."""
    group = connect(graph.ends[certain & (graph.same > 0)], graph.n_points)
    ends = group[graph.ends[certain & (graph.same < 0)]]
    # A cycle with an odd number of "different" needs a third class.
    sides = find_sides(graph.ends[certain], graph.same[certain], graph.n_points)
    odd = 3 if (sides == 0).any() else 2
    return max(odd, int(graph.labels.max(initial=0)), len(different_groups(ends)))


def are_hubs(degree: Indices) -> Mask:
    """Return which points are hubs, by the number of answers that each point is in."""
    return degree >= max(_HUB_ANSWERS, _HUB_MULTIPLE * degree.sum() / max(np.count_nonzero(degree), 1))


def connect(ends: Indices, n_points: int) -> Indices:
    """Return the connected component of each point, numbered by their first points."""
    numbers = ends.T.astype(np.int32 if n_points < 2**31 else np.int64)
    adjacency = csr_matrix((np.ones(len(ends)), tuple(numbers)), shape=(n_points, n_points))
    return connected_components(adjacency, directed=False)[1].astype(np.intp)


def find_sides(ends: Indices, same: Codes, n_points: int) -> Codes:
    """Return the side of each point, equations (1) to (3); 0 in contradictory components."""
    a, b = 2 * ends.T
    crosses = same < 0
    # (i, +) is node 2 i and (i, -) node 2 i + 1: neighbours in memory.
    cover = connect(np.column_stack([np.r_[a, a + 1], np.r_[b + crosses, b + 1 - crosses]]), 2 * n_points)
    return np.sign(cover[1::2] - cover[::2])


def find_core(ends: Indices, n_points: int) -> Indices:
    """Return the edges that are left after repeatedly removing edges with a loose end."""
    left = np.arange(len(ends))
    while True:
        degree = np.bincount(ends[left].ravel(), minlength=n_points)
        kept = left[(degree[ends[left]] > 1).all(axis=1)]
        if len(kept) == len(left):
            return left
        left = kept


def sum_by(index: Indices, values: Array | Mask, size: int) -> Array:
    """Sum the entries, or rows, of ``values`` with equal index."""
    if values.ndim == 1:
        return np.asarray(np.bincount(index, values, size), dtype=np.float64)
    columns = values.reshape(len(values), math.prod(values.shape[1:]))
    return np.asarray(sum_matrix(index, size) @ columns).reshape(size, *values.shape[1:])


def sum_matrix(index: Indices, size: int) -> csr_matrix:
    """Return the matrix that sums rows with equal index, for repeated use."""
    n = len(index)
    return csc_matrix((np.ones(n), index, np.arange(n + 1)), shape=(size, n)).tocsr()


def find_pivots(ends: Indices, n_groups: int) -> Indices:
    """Return the group with the most edges on cycles, of each part that has cycles."""
    degree = np.bincount(ends[find_core(ends, n_groups)].ravel(), minlength=n_groups)
    first = first_by(connect(ends, n_groups), -degree)
    return first[degree[first] > 0]


def first_by(component: Indices, *keys: Array | Indices) -> Indices:
    """Return the first point of each component, sorted by the keys as in ``np.lexsort``."""
    order = np.lexsort((*keys, component))
    return order[np.unique(component[order], return_index=True)[1]]


def number_questions(ends: Indices, n_points: int) -> tuple[Indices, Indices]:
    """Return the two points of each question, the smaller first, and the question of each answer."""
    keys = ends.min(axis=1) * np.int64(n_points) + ends.max(axis=1)
    asked, question = np.unique(keys, return_inverse=True)
    return np.column_stack(np.divmod(asked, n_points)), question


def different_groups(edges: Indices) -> list[int]:
    """Return groups that all differ from each other, as many as a greedy search finds."""
    neighbours: dict[int, set[int]] = {}
    for one, other in edges.tolist():
        if one != other:
            neighbours.setdefault(one, set()).add(other)
            neighbours.setdefault(other, set()).add(one)
    by_degree = sorted(neighbours, key=lambda node: (-len(neighbours[node]), node))
    found = [_clique(first, by_degree, neighbours) for first in by_degree[:_N_FIRST]]
    return max(found, key=len, default=[])


def _clique(first: int, by_degree: Sequence[int], neighbours: dict[int, set[int]]) -> list[int]:
    """Return groups that differ from each other and from the first one."""
    common = neighbours[first]
    clique = [first]
    for node in by_degree:
        if node in common:
            clique.append(node)
            common = common & neighbours[node]
    return clique
