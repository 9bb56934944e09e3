"""The rows of a fit: numbered by point, split into folds, with the labels that answers imply.

K groups of points that all differ from each other are the K classes, up to their names. Questions
that compare a new point with an example of each class make such groups. The likelihood does not
depend on the names of the classes, so giving the groups the names 1 to K loses nothing. The sum
over all assignments of groups to classes, with a local maximum for most of them, becomes the
likelihood of labels.
"""

from __future__ import annotations

import numpy as np

from sdulearn.answers.answer_model import ErrorRateParameter, answer_model_of, is_crowd
from sdulearn.answers.graph import AnswerGraph, connect, different_groups
from sdulearn.answers.y import U
from sdulearn.errors import InputError
from sdulearn.model_selection import PairKFold, fold_parts, number_of_folds
from sdulearn.types import Codes, Estimator, Indices, Rows

# Unlabeled rows only give the mean prediction: so many give it to within 1%.
MAX_UNLABELED = 2_500


class TrainingRows:
    """Rows, what is known about them, and their folds over points."""

    def __init__(self, X: Rows, graph: AnswerGraph, parameters: Estimator, n_values: Indices, seed: int) -> None:
        """Sample many unlabeled rows, replace answers by the labels that they imply, and make folds."""
        rows = np.arange(graph.n_rows)
        free = np.flatnonzero((graph.source == U) & (graph.labels[graph.row_point] == 0))
        if (surplus := len(free) - MAX_UNLABELED) > 0:
            rows = np.setdiff1d(rows, np.random.default_rng(seed).choice(free, surplus, replace=False))
            graph = _some_rows(graph, rows)
        n_folds = number_of_folds(parameters.cv, graph.same > 0)
        if n_folds < 2:
            raise InputError(
                "Boosting stops by held-out answers, which takes at least two pairs of each kind there is in `y`. "
                "Add answers, or use PairLogisticRegression."
            )
        # The rows that are used, as numbers of the rows given, and their points. Implied labels
        # drop some of them.
        self.all_rows = rows
        self.all_points = graph.row_point
        if parameters.n_classes > 2:
            kept, graph = _named(graph, parameters.n_classes, parameters.error_rate, n_folds)
            rows = rows[kept]
        self.X = X if len(rows) == X.shape[0] else X[rows]
        self.n_values = n_values  # number of values of each categorical column, 0 for numbers
        self.seed = seed
        self.graph = graph
        self.points = self.X[graph.first_row]
        self.splitter = PairKFold(n_folds, random_state=seed)
        # The fold of each point, -1 for hubs; and for each fold the rows that touch none of its
        # points.
        self.fold = self.splitter.fold_of_points(graph)
        self.trains = [train for train, _ in fold_parts(self.splitter, None, graph)]

    def has_labels_of(self, n_classes: int) -> bool:
        """Whether all classes have labels, and there are as many labels as answers."""
        labels = self.graph.labels[self.graph.labels > 0]
        return len(np.unique(labels)) == n_classes and len(labels) >= self.graph.n_answers


def _some_rows(graph: AnswerGraph, rows: Indices) -> AnswerGraph:
    """Return the graph of some rows, both ends of each answer or none, with these rows numbered from 0."""
    return AnswerGraph.from_y(np.asarray(graph)[rows], graph.row_weight[rows])


def _named(
    graph: AnswerGraph, n_classes: int, error_rate: ErrorRateParameter, n_folds: int
) -> tuple[Indices, AnswerGraph]:
    """Rows to keep and what is known about them, with implied labels if no answer is wrong."""
    labels = graph.labels
    right = not graph.n_answers
    if not right and not is_crowd(graph, n_classes):
        right = answer_model_of(error_rate, graph, n_classes).ties(graph, n_classes)
    if right:
        labels = implied_labels(graph, n_classes)
    return (np.arange(graph.n_rows), graph) if labels is graph.labels else with_labels(graph, labels, n_folds)


def implied_labels(graph: AnswerGraph, n_classes: int) -> Codes:
    """Label of each point, 0 where it is not implied, if no answer is wrong."""
    labelled = np.flatnonzero(graph.labels)
    names, example, name = np.unique(graph.labels[labelled], return_index=True, return_inverse=True)
    # One example of each label: points with its label are the same, other examples different.
    example = labelled[example]
    group = connect(np.vstack([graph.ends[graph.same > 0], np.column_stack([example[name], labelled])]), graph.n_points)
    apart = np.column_stack([example[k] for k in np.triu_indices(len(example), 1)])
    different = group[np.concatenate([graph.ends[graph.same < 0], apart])]
    groups = different_groups(different)
    if len(groups) != n_classes or (different[:, 0] == different[:, 1]).any():
        # Too few groups, or too many, or a contradiction, which the likelihood itself refuses.
        return graph.labels
    name_of_group = np.zeros(int(group.max()) + 1, dtype=np.int64)
    name_of_group[group[example]] = names
    unnamed = [g for g in groups if name_of_group[g] == 0]
    by_size = sorted(unnamed, key=lambda g: -int(np.sum(group == g)))
    free = np.setdiff1d(np.arange(1, n_classes + 1), names)
    # A label outside the groups leaves more groups than names: then nothing is implied.
    if len(by_size) != len(free):
        return graph.labels
    name_of_group[by_size] = free
    return name_of_group[group]


def with_labels(graph: AnswerGraph, labels: Codes, n_folds: int) -> tuple[Indices, AnswerGraph]:
    """Rows to keep and what is known about them, with labels in place of the answers that imply them."""
    left = (labels[graph.ends] == 0).any(axis=1)
    for kind in (1, -1):
        # Folds need at least one answer of a kind each.
        if np.sum(left & (graph.same == kind)) < n_folds:
            left &= graph.same != kind
    named = graph.with_values(labels=labels).restrict(left, labels != 0)
    rows = np.union1d(graph.first_row, named.end_rows)
    return rows, _some_rows(named, rows)
