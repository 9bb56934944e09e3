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
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.sparse import csc_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from sdulearn.answers.y import (
    COLUMNS,
    D,
    S,
    U,
    answer_numbers,
    answer_signs,
    check_ends,
    check_labels,
    check_pair_weights,
    check_rows,
    check_weights,
    mean_weight,
    number_together,
    pair_up,
    read_columns,
    whole_numbers,
)
from sdulearn.errors import InputError
from sdulearn.types import Array, Codes, Indices, Mask, Rows

# Fewer answers, points or people than this tell nothing about a rate, a share or a mean.
ENOUGH = 10
# A hub is in enough answers, and in at least this multiple of the mean number of answers.
_HUB_MULTIPLE = 5
# Ways to put n things into groups: Bell's numbers.
_BELL = np.array([1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975])
# The search for mutually different groups starts from this many groups.
_N_FIRST = 50


@dataclass(frozen=True, eq=False)
class AnswerGraph:
    """Points, the answers that join them, the rows that show them, and their structure.

    Made once from ``y`` and its weights, by :meth:`from_y` or :meth:`from_answers`, and accepted in place of both.
    Rows of weight 0 are left out. Kept rows, points and answers are each numbered from 0.

    Attributes
    ----------
    n_given : int
        Number of rows of ``y``, those of weight 0 included.
    rows, row_point : int arrays of shape (n_rows,)
        The number that each kept row has in ``y``, and the point that it shows.
    row_weight : array of shape (n_rows,)
        Weights of the kept rows, of mean 1.
    end_rows : int array of shape (n_answers, 2)
        The two kept rows of each answer.
    same, annotators, codes : int arrays of shape (n_answers,)
        +1 for "same class", -1 for "different"; who answered, 0 if that is not known; the size of the pair code, in
        ascending order.
    question : int array of shape (n_answers,)
        Answers given together share a number, every other answer has one of its own.
    outcomes : array of shape (n_answers,)
        Number of outcomes that the question of each answer had: the ways to put its points into groups; 2 for a pair.
    weights : array of shape (n_answers,)
        Weights of the answers, above 0, those of one question their mean; from ``y``, in units of the mean of all.
    points, labels : int arrays of shape (n_points,)
        The number that each point has in ``y``, and its label: 0 if it is not known, -1 or +1 with two classes, 1 to K
        with more.
    point_weights : array of shape (n_points,)
        Mean weight of the rows that show each point, in units of the mean answer.
    clusters : int array of shape (n_points,) or None
        Numbers without gaps, equal for points that belong together, such as rows of one person: folds never split a
        cluster, and intervals count its points as dependent. None if all points are independent.

    Examples
    --------
    >>> from sdulearn.answers import AnswerGraph
    >>> graph = AnswerGraph.from_answers([(0, 1), (1, 2), (0, 2), (3, 4)], [True, False, False, True])
    >>> graph.component_sizes, graph.sides
    (array([3, 2]), array([ 1,  1, -1,  1,  1]))
    """

    n_given: int
    rows: Indices
    row_point: Indices
    row_weight: Array
    end_rows: Indices
    same: Codes
    annotators: Codes
    codes: Codes
    question: Indices
    outcomes: Array
    weights: Array
    points: Codes
    labels: Codes
    point_weights: Array
    clusters: Codes | None = None

    @classmethod
    def from_y(
        cls, y: ArrayLike | AnswerGraph, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> AnswerGraph:
        """Make a graph from ``y``.

        Parameters
        ----------
        y : array-like of int, shape (n_rows,) or (n_rows, 1 to 5), frame or AnswerGraph
            Pair codes (+k similar, -k dissimilar, 0 in no pair), and optionally the columns point, annotator, label
            and question. A graph is returned as it is.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, the same for both ends of an answer, in any unit. Rows of weight 0 are left out. A
            graph has its weights already.
        groups : array-like of shape (n_rows,), optional
            Equal values are rows of points that belong together, such as those of one person.

        Returns
        -------
        AnswerGraph
            Its points are numbered in ascending order of their numbers in ``y``.
        """
        if groups is not None:
            return cls.from_y(y, sample_weight)._with_groups(np.asarray(groups))
        if isinstance(y, AnswerGraph):
            if sample_weight is not None:
                raise InputError("A graph has its weights already: leave `sample_weight` out.")
            return y
        codes, known = read_columns(y)
        ends = pair_up(codes)
        check_rows(ends, known)
        weight = np.ones(len(codes))
        if sample_weight is not None:
            weight = check_weights(sample_weight, len(codes), "sample_weight")
            check_pair_weights(weight, ends)
        rows = np.flatnonzero(weight)
        if not len(rows):
            raise InputError("All weights in `sample_weight` are zero, so no row is left. Give some a weight above 0.")
        place = np.cumsum(weight > 0) - 1
        ends = ends[weight[ends[:, 0]] > 0]
        first = ends[:, 0]
        points, row_point = np.unique(known.get("point", np.arange(len(codes)))[rows], return_inverse=True)
        unknown = np.zeros_like(codes)
        row_label = known.get("label", unknown)[rows]
        labels = np.zeros_like(points)
        labels[row_point[row_label != 0]] = row_label[row_label != 0]
        row_weight = weight[rows] / mean_weight(weight[rows])
        weights = row_weight[place[first]]
        unit = mean_weight(weights) if len(weights) else 1.0
        question = number_together(known.get("question", unknown)[first])
        return cls(
            n_given=len(codes),
            rows=rows,
            row_point=row_point,
            row_weight=row_weight,
            end_rows=place[ends],
            same=np.sign(codes[first]),
            annotators=known.get("annotator", unknown)[first],
            codes=np.abs(codes[first]),
            question=question,
            outcomes=count_outcomes(question, row_point[place[ends]]),
            weights=_mean_of_questions(weights / unit, question),
            points=points,
            labels=labels,
            point_weights=np.bincount(row_point, row_weight / unit) / np.bincount(row_point),
        )

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
            Who answered, 0 if not known; weights: 2 is the same answer given twice, and 0 leaves an answer out.
        labels : array-like of int, shape (n_points,), optional
            Known labels: 0 not known, -1 or +1 with two classes, 1 to K with more.
        questions : array-like of int, shape (n_answers,), optional
            Answers given together share a number from 1 on; 0 is a question of its own.
        n_points : int, optional
            Number of points; by default that of the labels, or one more than the largest in ``ends``.

        Returns
        -------
        AnswerGraph
            With two rows per answer, then one for each point in no answer.
        """
        if n_points is None:
            named = whole_numbers(ends, "ends") if labels is None else np.arange(np.size(labels))
            n_points = int(np.max(named, initial=-1)) + 1
        numbers = check_ends(ends, n_points, "ends", "point")
        n = len(numbers)
        known = np.zeros(n_points, dtype=np.int64) if labels is None else check_labels(labels, n_points, "point")
        given = np.ones(n) if weights is None else check_weights(weights, n, "weights")
        used = np.flatnonzero(given)
        alone = np.setdiff1d(np.arange(n_points), numbers[used])
        row_weight = np.concatenate([np.repeat(given[used], 2), np.ones(len(alone))])
        question = number_together(answer_numbers(questions, n, "questions"))[used]
        return cls(
            n_given=len(row_weight),
            rows=np.arange(len(row_weight)),
            row_point=np.concatenate([numbers[used].ravel(), alone]),
            row_weight=row_weight / mean_weight(row_weight) if len(row_weight) else row_weight,
            end_rows=np.arange(2 * len(used)).reshape(-1, 2),
            same=answer_signs(same, n)[used],
            annotators=answer_numbers(annotators, n, "annotators")[used],
            codes=used + 1,
            question=question,
            outcomes=count_outcomes(question, numbers[used]),
            weights=_mean_of_questions(given[used], question),
            points=np.arange(n_points),
            labels=known,
            point_weights=np.ones(n_points),
        )

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Codes:
        # ``y`` of the kept rows, up to the last column that says something.
        y = np.zeros((self.n_rows, len(COLUMNS)), dtype=np.int64)
        y[self.end_rows, 0] = (self.same * self.codes)[:, None]
        y[:, 1] = self.points[self.row_point]
        y[self.end_rows, 2] = self.annotators[:, None]
        y[:, 3] = self.labels[self.row_point]
        y[self.end_rows, 4] = np.where(self.in_larger_question, self.question + 1, 0)[:, None]
        says = np.append([True, not np.array_equal(y[:, 1], self.rows)], y[:, 2:].any(axis=0))
        last = int(np.flatnonzero(says)[-1])
        return np.asarray(y[:, : last + 1] if last else y[:, 0], dtype=dtype)

    def _with_groups(self, groups: Array) -> AnswerGraph:
        """Return the same points in clusters, by the groups of the rows of ``y``."""
        number = np.unique(self.of_rows(groups, "groups"), return_inverse=True)[1]
        clusters = number[self.first_row]
        if (number != clusters[self.row_point]).any():
            raise InputError("`groups` puts the rows of one point into two groups. Give all rows of a point one group.")
        return replace(self, clusters=clusters)

    def fingerprint(self) -> str:
        """Return a hash of ``y``, without weights, that is the same in every process."""
        y = np.asarray(replace(self, rows=np.arange(self.n_rows), points=np.arange(self.n_points)))
        return blake2b(np.ascontiguousarray(y).tobytes(), digest_size=16).hexdigest()

    def of_rows(self, values: Array, name: str) -> Array:
        """Return the values of the kept rows, of one for each row of ``y``, or raise."""
        if values.shape != (self.n_given,):
            raise InputError(f"`{name}` has shape {values.shape}, but `y` has {self.n_given} rows.")
        kept = values[self.rows]
        if kept.dtype.kind == "f" and np.isnan(kept).any():
            raise InputError(f"`{name}` is NaN for {np.isnan(kept).sum()} row(s). Give a value for each row of `y`.")
        return kept

    def with_values(
        self, *, same: Codes | None = None, weights: Array | None = None, labels: Codes | None = None
    ) -> AnswerGraph:
        """Return the same questions with other answers, weights or labels; components need not be found again."""
        values: dict[str, Any] = {"same": same, "weights": weights, "labels": labels}
        graph = replace(self, **{name: value for name, value in values.items() if value is not None})
        if same is None:
            vars(graph)["_connected"] = self._connected
            vars(graph)["_connected_in_folds"] = self._connected_in_folds
        for name in ("ends", "degree", "component_sizes", "first_row"):
            if name in vars(self):
                vars(graph)[name] = vars(self)[name]
        return graph

    def restrict(self, answers: Mask, labels: Mask) -> AnswerGraph:
        """Return the same points with some of the answers and labels."""
        left = np.where(labels, self.labels, 0)
        if answers.all():
            return self if np.array_equal(left, self.labels) else self.with_values(labels=left)
        return replace(self, **self._of_answers(answers), labels=left)

    def _of_answers(self, answers: Mask | Indices) -> dict[str, Any]:
        """Return the fields with a row for each answer, of some answers."""
        names = ("end_rows", "same", "annotators", "codes", "question", "outcomes", "weights")
        return {name: getattr(self, name)[answers] for name in names}

    def subgraph(self, points: Indices) -> AnswerGraph:
        """Return the graph of some points, in this order, and of the answers between them."""
        if np.array_equal(points, np.arange(self.n_points)):
            return self
        place = np.full(self.n_points, -1)
        place[points] = np.arange(len(points))
        inside = np.all(place[self.ends] >= 0, axis=1)
        part = self.restrict(inside, np.ones(self.n_points, dtype=bool))
        shown = place[self.row_point] >= 0
        graph = replace(
            part,
            rows=self.rows[shown],
            row_point=place[self.row_point[shown]],
            row_weight=self.row_weight[shown],
            end_rows=(np.cumsum(shown) - 1)[part.end_rows],
            points=self.points[points],
            labels=self.labels[points],
            point_weights=self.point_weights[points],
            clusters=None if self.clusters is None else np.unique(self.clusters[points], return_inverse=True)[1],
        )
        if np.array_equal(inside, np.any(place[self.ends] >= 0, axis=1)):
            # Whole components need not be found again, only numbered in the order of their first points.
            _, first, number = np.unique(self.component[points], return_index=True, return_inverse=True)
            sides = self.sides[points]
            vars(graph)["_connected"] = _Connected(np.argsort(np.argsort(first))[number], sides * sides[first][number])
        return graph

    def folds(self, shown: Mask) -> tuple[AnswerGraph, Indices]:
        """Return the answers and labels that each fold knows, on copies of all points.

        Parameters
        ----------
        shown : bool array of shape (n_points, n_folds)
            A fold knows the answers and labels that touch only points that it is shown.

        Returns
        -------
        graph : AnswerGraph
            All rows and points once for each fold, one fold behind the other.
        answer : int array
            The answer of this graph that each answer of the copies is.
        """
        kept = np.array([~self._touched(~of_fold) for of_fold in shown.T])
        fold, answer = np.nonzero(kept)
        n_folds = len(kept)
        clusters = None
        if self.clusters is not None:
            clusters = (np.arange(n_folds)[:, None] * (int(self.clusters.max()) + 1) + self.clusters).ravel()
        rows, points = (np.arange(n_folds)[:, None] * n for n in (self.n_rows, self.n_points))
        part = replace(self, **self._of_answers(answer))
        graph = replace(
            part,
            n_given=n_folds * self.n_given,
            rows=np.tile(self.rows, n_folds),
            row_point=(points + self.row_point).ravel(),
            row_weight=np.tile(self.row_weight, n_folds),
            end_rows=part.end_rows + rows[fold],
            question=part.question + fold * (int(self.question.max(initial=-1)) + 1),
            points=np.tile(self.points, n_folds),
            labels=np.where(shown.T, self.labels, 0).ravel(),
            point_weights=np.tile(self.point_weights, n_folds),
            clusters=clusters,
        )
        key = shown.tobytes()
        if key not in self._connected_in_folds:
            self._connected_in_folds[key] = graph._connected
        vars(graph)["_connected"] = self._connected_in_folds[key]
        return graph, answer

    def _touched(self, points: Mask) -> Mask:
        """Return which answers are about some of these points, or were given together with such an answer."""
        about = np.any(points[self.ends], axis=1)
        return about | np.isin(self.question, self.question[about & self.in_larger_question])

    @property
    def n_rows(self) -> int:
        """Number of kept rows."""
        return len(self.rows)

    @property
    def n_points(self) -> int:
        """Number of points, those in no answer included."""
        return len(self.points)

    @property
    def n_answers(self) -> int:
        """Number of answers, each repeat counted."""
        return len(self.same)

    @property
    def shares_points(self) -> bool:
        """Whether some point is in more than one answer, so that pairs are not loose."""
        return bool((self.degree > 1).any())

    @cached_property
    def ends(self) -> Indices:
        """The two points of each answer."""
        return self.row_point[self.end_rows]

    @cached_property
    def in_larger_question(self) -> Mask:
        """Whether each answer was given together with others."""
        return self.outcomes > 2

    @cached_property
    def source(self) -> Indices:
        """Source of each kept row: S, D or U (0, 1, 2)."""
        source = np.full(self.n_rows, U)
        source[self.end_rows] = np.where(self.same > 0, S, D)[:, None]
        return source

    @cached_property
    def first_row(self) -> Indices:
        """The first kept row of each point."""
        return np.unique(self.row_point, return_index=True)[1]

    @cached_property
    def degree(self) -> Indices:
        """Number of answers that each point is in."""
        return np.bincount(self.ends.ravel(), minlength=self.n_points)

    @cached_property
    def unlabeled(self) -> Indices:
        """Points in no answer and without a label."""
        return np.flatnonzero((self.degree == 0) & (self.labels == 0))

    @cached_property
    def _connected(self) -> _Connected:
        return connect_both_ways(self.ends, self.same, self.n_points)

    @cached_property
    def _connected_in_folds(self) -> dict[bytes, _Connected]:
        # By the points that the folds show: the folds that estimate error rates also choose a penalty.
        return {}

    @property
    def component(self) -> Indices:
        """Connected component of each point, numbered in the order of their first points."""
        return self._connected.component

    @property
    def sides(self) -> Codes:
        """Side of each point with two classes, equation (3); 0 in contradictory components."""
        return self._connected.side

    @property
    def units(self) -> Indices:
        """The cluster of each point, or the point itself if there are no clusters."""
        return np.arange(self.n_points) if self.clusters is None else self.clusters

    @property
    def within_cluster(self) -> Mask:
        """Whether the two points of each answer are in one cluster."""
        first, second = self.units[self.ends].T
        return np.asarray(first == second)

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

    def by_point(self, values: Rows) -> Rows:
        """Return the weighted mean over the kept rows that show each point."""
        if self.n_points == self.n_rows:
            return values[self.first_row]
        weight = self.row_weight / np.bincount(self.row_point, self.row_weight, self.n_points)[self.row_point]
        cells = (self.row_point, np.arange(self.n_rows))
        return csr_matrix((weight, cells), shape=(self.n_points, self.n_rows)) @ values

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
        least = max(ENOUGH, _HUB_MULTIPLE * degree.sum() / max(np.count_nonzero(degree), 1))
        order = np.argsort(-degree, kind="stable")
        return order[degree[order] >= least]


def count_outcomes(question: Indices, ends: Indices) -> Array:
    """Return the number of ways to put the points of each answer's question into groups."""
    if not len(question):
        return np.empty(0)
    pairs = np.unique(np.column_stack([np.repeat(question, 2), ends.ravel()]), axis=0)
    n_points = np.bincount(pairs[:, 0])
    # A match question has only the pairs of the new point, which is like one example or none: they all differ.
    is_match = np.bincount(question) == n_points - 1
    return np.where(is_match, n_points, _BELL[np.minimum(n_points, len(_BELL) - 1)]).astype(np.float64)[question]


def _mean_of_questions(weights: Array, question: Indices) -> Array:
    """Return weights of answers, those of a question their mean: answers given together count alike."""
    return (np.bincount(question, weights) / np.maximum(np.bincount(question), 1))[question]


def weights_by_component(graph: AnswerGraph) -> tuple[AnswerGraph, Array]:
    """Divide weights of answers by the mean weight of their component, and return these means."""
    size = graph.n_components
    of_answer = graph.component[graph.ends[:, 0]]
    known = np.flatnonzero(graph.labels)
    of_label = graph.component[known]
    total = np.bincount(of_answer, graph.weights, size) + np.bincount(of_label, graph.point_weights[known], size)
    count = np.bincount(of_answer, minlength=size) + np.bincount(of_label, minlength=size)
    mean = np.where(count > 0, total, 1.0) / np.maximum(count, 1)
    return graph.with_values(weights=graph.weights / mean[of_answer]), mean


def independent_answers(graph: AnswerGraph) -> Mask:
    """Return which answers do not follow from others of their question, or from what others say of its groups.

    Of answers given together those "same" that join each point to its pile, and for each two piles one "different". If
    a point is the same as an example, and that differs from a second example, so does the point: of all questions that
    tell two groups apart, the one of the largest weight is kept.
    """
    kept = ~graph.in_larger_question
    rest = np.flatnonzero(~kept)
    if not len(rest):
        return kept
    # A point in a question, and its pile there.
    nodes, ends = np.unique(graph.question[rest, None] * graph.n_points + graph.ends[rest], return_inverse=True)
    ends = ends.reshape(-1, 2)
    is_same = graph.same[rest] > 0
    # Numbers from 1 on: the first answers are kept, and 0 is no edge.
    number = csr_matrix((1.0 + np.flatnonzero(is_same), tuple(ends[is_same].T)), shape=(len(nodes), len(nodes)))
    ties = minimum_spanning_tree(number).data.astype(np.intp) - 1
    between = np.sort(connect(ends[is_same], len(nodes))[ends[~is_same]], axis=1)
    of_groups = np.sort(graph.group[graph.ends[rest[~is_same]]], axis=1)
    first = np.unique(between, axis=0, return_index=True)[1]
    first = first[np.argsort(-graph.weights[rest[~is_same]][first], kind="stable")]
    apart = of_groups[first, 0] != of_groups[first, 1]
    new = np.unique(of_groups[first], axis=0, return_index=True)[1]
    kept[rest[ties]] = True
    kept[rest[np.flatnonzero(~is_same)[np.append(first[~apart], first[new])]]] = True
    return kept


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
    sides = connect_both_ways(graph.ends[certain], graph.same[certain], graph.n_points).side
    odd = 3 if (sides == 0).any() else 2
    return max(odd, int(graph.labels.max(initial=0)), len(different_groups(ends)))


def with_implied_labels(graph: AnswerGraph, n_classes: int) -> AnswerGraph:
    """Return the graph with labels in place of the answers that imply them, if no answer is wrong.

    K groups of points that all differ from each other are the K classes, up to their names, which the likelihood
    does not depend on. Questions that compare a point with an example of each class make such groups.
    """
    labelled = np.flatnonzero(graph.labels)
    names, example, name = np.unique(graph.labels[labelled], return_index=True, return_inverse=True)
    # One example of each label: points with its label are the same, other examples different.
    example = labelled[example]
    group = connect(np.vstack([graph.ends[graph.same > 0], np.column_stack([example[name], labelled])]), graph.n_points)
    apart = np.column_stack([example[k] for k in np.triu_indices(len(example), 1)])
    different = group[np.concatenate([graph.ends[graph.same < 0], apart])]
    classes = different_groups(different)
    unnamed = np.setdiff1d(classes, group[example])
    free = np.setdiff1d(np.arange(1, n_classes + 1), names)
    # Too few groups, too many, a contradiction, or a label outside the groups: then nothing is implied.
    if len(classes) != n_classes or (different[:, 0] == different[:, 1]).any() or len(unnamed) != len(free):
        return graph
    size = np.bincount(group)
    name_of_group = np.zeros(len(size), dtype=np.int64)
    name_of_group[group[example]] = names
    name_of_group[unnamed[np.argsort(-size[unnamed], kind="stable")]] = free
    labels = name_of_group[group]
    return replace(graph, labels=labels).restrict((labels[graph.ends] == 0).any(axis=1), labels != 0)


def with_founders(graph: AnswerGraph, n_classes: int) -> AnswerGraph:
    """Return the graph with a label for one point of each class, where questions about several points tell K apart.

    As in :func:`with_implied_labels`, but only the point with the most answers of each group is certain of its class.
    """
    if not graph.in_larger_question.any():
        return graph
    groups = with_implied_labels(graph, n_classes).labels
    order = np.lexsort((-graph.degree, graph.labels == 0))
    classes, first = np.unique(groups[order], return_index=True)
    labels = np.zeros_like(groups)
    labels[order[first[classes > 0]]] = classes[classes > 0]
    return graph.with_values(labels=np.where(graph.labels == 0, labels, graph.labels))


class NumberOfClasses(NamedTuple):
    """How many classes answers show, with the fewest and the most that may be."""

    value: int
    low: int
    high: int
    are_entities: bool = False  # most points that are with others are with one or two


def classes_of_examples(ends: Indices, same: Codes, question: Indices, n_points: int) -> NumberOfClasses:
    """Return how many classes questions about a point and examples have found.

    The first pick of a point that is not outvoted is its class; a group of points that was compared with all classes
    found before it, and is different from all, is a new one. Groups count in descending order of their sizes. Where
    answers contradict each other, a single one opens no class, but there may be one.
    """
    pair = number_questions(ends, n_points)[1]
    votes = np.bincount(pair, same.astype(np.float64))[pair]
    # The point of a question is in all its pairs, or in the fewest questions.
    asked = np.unique(np.column_stack([ends.ravel(), np.repeat(question, 2)]), axis=0)[:, 0]
    place = question[:, None] * np.int64(n_points) + ends
    _, number, times = np.unique(place, return_inverse=True, return_counts=True)
    often = times[number].reshape(ends.shape) - np.bincount(asked, minlength=n_points)[ends] / (len(asked) + 1)
    turned = np.where((often[:, 0] >= often[:, 1])[:, None], ends, ends[:, ::-1])
    picks = np.flatnonzero((same > 0) & (votes > 0))
    picks = picks[np.argsort(question[picks], kind="stable")]
    group = connect(turned[picks[np.unique(turned[picks, 0], return_index=True)[1]]], n_points)
    between, number = number_questions(group[ends], n_points)
    votes_apart = -np.bincount(number, same.astype(np.float64))
    order = np.argsort(-np.bincount(group), kind="stable").tolist()

    def count(least: int) -> int:
        apart = between[votes_apart >= least]
        differs = {(a, b) for pair in apart.tolist() for a, b in (pair, pair[::-1])}
        classes: list[int] = []
        for k in order:
            if all((k, other) in differs for other in classes):
                classes.append(k)
        return len(classes)

    if not (same * votes < 0).any():
        value = count(1)
        return NumberOfClasses(value, value, value)
    return NumberOfClasses(count(2), count(3), count(1))


def connect(ends: Indices, n_points: int) -> Indices:
    """Return the connected component of each point, numbered by their first points."""
    numbers = ends.T.astype(np.int32 if n_points < 2**31 else np.int64)
    adjacency = csr_matrix((np.ones(len(ends)), tuple(numbers)), shape=(n_points, n_points))
    return connected_components(adjacency, directed=False)[1].astype(np.intp)


class _Connected(NamedTuple):
    """What answers connect."""

    component: Indices  # of each point, numbered in the order of their first points
    side: Codes  # of each point, equations (1) to (3); 0 in contradictory components


def connect_both_ways(ends: Indices, same: Codes, n_points: int) -> _Connected:
    """Return components and sides, both by the components of the double cover."""
    a, b = 2 * ends.T
    crosses = same < 0
    # (i, +) is node 2 i and (i, -) node 2 i + 1: neighbours in memory.
    cover = connect(np.column_stack([np.r_[a, a + 1], np.r_[b + crosses, b + 1 - crosses]]), 2 * n_points)
    plus, minus = cover[::2], cover[1::2]
    return _Connected(np.unique(np.minimum(plus, minus), return_inverse=True)[1], np.sign(minus - plus))


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
    for first, second in edges[edges[:, 0] != edges[:, 1]].tolist():
        neighbours.setdefault(first, set()).add(second)
        neighbours.setdefault(second, set()).add(first)
    by_degree = sorted(neighbours, key=lambda node: (-len(neighbours[node]), node))
    largest: list[int] = []
    for first in by_degree[:_N_FIRST]:
        clique = [first]
        for node in by_degree:
            if neighbours[node].issuperset(clique):
                clique.append(node)
        largest = max(largest, clique, key=len)
    return largest
