"""The rows of a fit: encoded for trees, numbered by point, split into folds, with the labels that answers imply.

A column is numbers, NaN where a value is missing, or whole numbers for categories. scikit-learn's
OrdinalEncoder refuses a column of numbers and texts.

K groups of points that all differ from each other are the K classes, up to their names. Questions
that compare a new point with an example of each class make such groups. The likelihood does not
depend on the names of the classes, so giving the groups the names 1 to K loses nothing. The sum
over all assignments of groups to classes, with a local maximum for most of them, becomes the
likelihood of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from sdulearn.answers.answer_model import ErrorRateParameter, answer_model_of, is_crowd
from sdulearn.answers.graph import AnswerGraph, connect, different_groups
from sdulearn.errors import InputError
from sdulearn.io.typed import read
from sdulearn.model_selection import NO_FOLD, PairKFold, fold_parts, number_of_folds
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.types import Array, Codes, Estimator, Indices, MatrixLike, Rows

Value = str | float | None
Categories = dict[int, list[Value]]
"""Values of each categorical column, by its number; a value is coded by its place."""

_CATEGORY_TYPES = ("category", "Categorical", "Enum", "str", "String", "object", "large_string")
# Unlabeled rows only give the mean prediction: so many give it to within 1%.
_MOST_UNLABELED = 2_500


class TrainingRows:
    """Rows, what is known of them, and their folds over points."""

    def __init__(
        self, X: Rows, pairs: Pairs, weight: Array | None, parameters: Estimator, n_values: Indices, seed: int
    ) -> None:
        """Sample many unlabeled rows, replace answers by the labels that they imply, and make folds."""
        rows = np.arange(len(pairs))
        free = pairs.unlabeled
        if pairs.labels is not None:
            free = free[pairs.labels[free] == 0]
        if (surplus := len(free) - _MOST_UNLABELED) > 0:
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
    """Rows to keep and what is known of them, with implied labels if no answer is wrong."""
    graph = AnswerGraph.from_y(pairs)
    everything = np.arange(len(pairs)), pairs
    if is_crowd(graph, n_classes) or (graph.n_answers and not answer_model_of(error_rate, graph, n_classes).certain):
        return everything
    labels = implied_labels(graph, n_classes)
    return everything if labels is graph.labels else with_labels(pairs, graph, labels, n_folds)


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
    """Rows to keep and what is known of them, with labels in place of the answers that imply them."""
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


def find_categories(X: MatrixLike, categorical: str | ArrayLike | None) -> Categories:
    """Find the values of each categorical column."""
    if categorical is None or sparse.issparse(X):
        return {}
    if isinstance(categorical, str):
        types = [str(X[name].dtype) for name in getattr(X, "columns", ())]
        places = [place for place, dtype in enumerate(types) if dtype.startswith(_CATEGORY_TYPES)]
    else:
        places = _places(X, np.atleast_1d(np.asarray(categorical, dtype=object)).tolist())
    categories = {}
    for place in places:
        values = {_plain(value) for value in _column(X, place).tolist()} - {None}
        # Numbers before texts.
        categories[place] = sorted(values, key=lambda value: (isinstance(value, str), value))
    return categories


def encode(X: MatrixLike, categories: Categories) -> Rows:
    """Encode rows as a float matrix; an unknown category is a missing value."""
    coded = []
    for place in range(np.shape(X)[1]):
        column = _column(X, place)
        if place in categories:
            code = {value: float(k) for k, value in enumerate(categories[place])}
            coded.append(np.array([code.get(_plain(value), np.nan) for value in column.tolist()]))
            continue
        try:
            coded.append(column.astype(np.float64))
        except (TypeError, ValueError):
            raise InputError(
                f"Column {place} of `X` holds texts. Name it in `categorical_features`, or give it a categorical type."
            ) from None
    return np.column_stack(coded)


def checked_categories(found: dict[str, list[Value]], n_features: int) -> Categories:
    """Check the categories of an untrusted model file."""
    categories: Categories = {}
    for place, values in found.items():
        column = int(place)
        plain = [_plain(value) for value in read(list[Any], values)]
        if not 0 <= column < n_features or None in plain or len(set(plain)) < len(plain):
            raise InputError("the categories of a column are not what a model has")
        categories[column] = plain
    return categories


def _places(X: MatrixLike, given: Sequence[str | int]) -> list[int]:
    """Numbers of columns from their names or numbers."""
    names = [str(name) for name in getattr(X, "columns", ())]
    places = [names.index(item) if item in names else item for item in given]
    width = len(names) or np.shape(X)[1]
    if wrong := [item for item in places if not (isinstance(item, int) and 0 <= item < width)]:
        raise InputError(
            f"`categorical_features` names {wrong[0]!r}, which is no column of `X`. Give names or numbers of columns."
        )
    return sorted(int(place) for place in places)


def _column(X: MatrixLike, place: int) -> NDArray[np.generic]:
    """Return a column as an array, with None for missing values that are not numbers."""
    if not hasattr(X, "columns"):
        column = X[:, place] if isinstance(X, np.ndarray) else [row[place] for row in X]
        return np.asarray(column, dtype=object)
    column = X[X.columns[place]]
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return values
    missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null(), dtype=bool)
    values = values.astype(object)
    values[missing] = None
    return values


def _plain(value: Value) -> Value:
    """Convert a value to a type of JSON; None if it is missing."""
    if value is None or value != value:
        return None
    return value if isinstance(value, str) else float(value)
