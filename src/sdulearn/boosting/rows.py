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
from sdulearn.errors import InputError
from sdulearn.model_selection import NO_FOLD, PairKFold, fold_parts, number_of_folds
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.types import Array, Codes, Estimator, Indices, Rows

# Unlabeled rows only give the mean prediction: so many give it to within 1%.
MAX_UNLABELED = 2_500


class TrainingRows:
    """Rows, what is known about them, and their folds over points."""

    def __init__(
        self, X: Rows, pairs: Pairs, weight: Array | None, parameters: Estimator, n_values: Indices, seed: int
    ) -> None:
        """Sample many unlabeled rows, replace answers by the labels that they imply, and make folds."""
        rows = np.arange(len(pairs))
        free = pairs.unlabeled
        if pairs.labels is not None:
            free = free[pairs.labels[free] == 0]
        if (surplus := len(free) - MAX_UNLABELED) > 0:
            rows = np.setdiff1d(rows, np.random.default_rng(seed).choice(free, surplus, replace=False))
            pairs = read_pairs(np.asarray(pairs)[rows])
        n_folds = number_of_folds(parameters.cv, pairs.similar)
        if n_folds < 2:
            raise InputError(
                "Boosting stops by held-out answers, which takes at least two pairs of each kind there is in `y`. "
                "Add answers, or use PairLogisticRegression."
            )
        # The rows that are used, as numbers of the rows given, and their points. Implied labels
        # drop some of them.
        self.all_rows = rows
        self.all_points = AnswerGraph.from_y(pairs).row_point
        if parameters.n_classes > 2:
            kept, pairs = _named(pairs, parameters.n_classes, parameters.error_rate, n_folds)
            rows = rows[kept]
        self.X = X if len(rows) == X.shape[0] else X[rows]
        self.n_values = n_values  # number of values of each categorical column, 0 for numbers
        self.seed = seed
        self.y = np.asarray(pairs)
        self.weight = None if weight is None else weight[rows]
        self.graph = AnswerGraph.from_y(pairs, self.weight)
        self.first_row = np.unique(self.graph.row_point, return_index=True)[1]
        self.points = self.X[self.first_row]
        self.splitter = PairKFold(n_folds, random_state=seed)
        # The fold of each point, -1 for hubs; and for each fold the rows that touch none of its
        # points.
        self.fold = np.full(self.graph.n_points, NO_FOLD)
        self.trains = []
        for k, (train, held_out) in enumerate(fold_parts(self.splitter, None, pairs)):
            self.fold[self.graph.row_point[held_out]] = k
            self.trains.append(train)

    def has_labels_of(self, n_classes: int) -> bool:
        """Whether all classes have labels, and there are as many labels as answers."""
        labels = self.graph.labels[self.graph.labels > 0]
        return len(np.unique(labels)) == n_classes and len(labels) >= self.graph.n_answers


def _named(pairs: Pairs, n_classes: int, error_rate: ErrorRateParameter, n_folds: int) -> tuple[Indices, Pairs]:
    """Rows to keep and what is known about them, with implied labels if no answer is wrong."""
    graph = AnswerGraph.from_y(pairs)
    labels = graph.labels
    right = not graph.n_answers
    if not right and not is_crowd(graph, n_classes):
        right = answer_model_of(error_rate, graph, n_classes).ties(graph, n_classes)
    if right:
        labels = implied_labels(graph, n_classes)
    return (np.arange(len(pairs)), pairs) if labels is graph.labels else with_labels(pairs, graph, labels, n_folds)


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


def with_labels(pairs: Pairs, graph: AnswerGraph, labels: Codes, n_folds: int) -> tuple[Indices, Pairs]:
    """Rows to keep and what is known about them, with labels in place of the answers that imply them."""
    known = labels[graph.row_point] != 0
    codes = pairs.codes.copy()
    codes[pairs.ends[known[pairs.ends].all(axis=1)]] = 0
    for kind in (1, -1):
        # Folds need at least one answer of a kind each.
        if np.sum(np.sign(codes) == kind) < 2 * n_folds:
            codes = np.where(np.sign(codes) == kind, 0, codes)
    once = np.zeros(len(pairs), dtype=bool)
    once[np.unique(graph.row_point, return_index=True)[1]] = True
    rows = np.flatnonzero(once | (codes != 0))
    annotators = np.zeros(len(pairs), dtype=np.int64) if pairs.annotators is None else pairs.annotators
    table = np.column_stack([codes, graph.row_point, annotators, labels[graph.row_point]])
    return rows, read_pairs(table[rows])
