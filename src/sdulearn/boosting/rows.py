"""The rows of a fit: checked, numbered by point, dealt out to folds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdulearn.answers.answer_model import ErrorRateParameter, answer_model_of
from sdulearn.answers.graph import AnswerGraph
from sdulearn.boosting.implied import implied_labels, with_labels
from sdulearn.boosting.table import take
from sdulearn.errors import InputError
from sdulearn.model_selection import PairKFold
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.types import Array, Codes, Indices, Rows

# Unlabeled rows give the mean prediction and no more: so many give it to within 0.7%.
_MOST_UNLABELED = 5_000
# The start need not be the best linear model of all answers: the trees go on from it.
_MOST_START_ANSWERS = 20_000


@dataclass(frozen=True)
class TrainingRows:
    """Rows, what is known of them, and their folds."""

    X: Rows  # (n_rows, n_features), rows
    y: Codes  # (n_rows,), what is known of each row
    weight: Array | None  # (n_rows,), weights
    graph: AnswerGraph  # the same by point
    fold: Indices  # (n_points,), fold of each point, -1 for hubs
    trains: list[Indices]  # for each fold the rows that touch none of its points

    @classmethod
    def of(
        cls,
        X: Rows,
        pairs: Pairs,
        weight: Array | None,
        *,
        n_folds: int,
        seed: int,
        n_classes: int = 2,
        error_rate: ErrorRateParameter = "auto",
    ) -> TrainingRows:
        """Checked rows; of very many unlabeled ones a random sample, and labels instead of answers that imply them."""
        rows = _enough_rows(pairs, seed)
        if len(rows) < pairs.n_rows:
            X = take(X, rows)
            weight = None if weight is None else weight[rows]
            pairs = read_pairs(np.asarray(pairs)[rows])
        n_folds = _number_of_folds(pairs, n_folds)
        if n_classes > 2 and (weight is None or np.ptp(weight) == 0):
            rows, pairs = _named(pairs, n_classes, error_rate, n_folds)
            X = take(X, rows)
            weight = None if weight is None else weight[rows]
        graph = AnswerGraph.from_y(pairs, weight)
        splitter = PairKFold(n_folds, random_state=seed)
        fold = np.empty(graph.n_points, dtype=np.intp)
        fold[graph.row_point] = splitter.fold_of_rows(None, pairs)
        trains = [train for train, _ in splitter.split(None, pairs)]
        return cls(X, np.asarray(pairs), weight, graph, fold, trains)

    @cached_property
    def first_row(self) -> Indices:
        """A row that shows each point."""
        return np.unique(self.graph.row_point, return_index=True)[1]

    @cached_property
    def points(self) -> Rows:
        """One row a point."""
        return take(self.X, self.first_row)

    def leads_from_zero(self, n_classes: int) -> bool:
        """Whether trees of more than two classes need no linear start: labels of all classes, as many as answers."""
        labels = self.graph.labels[self.graph.labels > 0]
        return n_classes > 2 and len(np.unique(labels)) == n_classes and len(labels) >= self.graph.n_answers

    def for_start(self, seed: int) -> Indices:
        """The rows that the start is fitted to: all, or those of a random part of very many answers."""
        pairs = read_pairs(self.y)
        if len(pairs.ends) <= _MOST_START_ANSWERS:
            return np.arange(len(self.y))
        some = np.random.default_rng(seed).choice(len(pairs.ends), _MOST_START_ANSWERS, replace=False)
        return np.sort(np.concatenate([pairs.ends[some].ravel(), pairs.unlabeled]))


def _enough_rows(pairs: Pairs, seed: int) -> Indices:
    unlabeled = pairs.unlabeled
    if pairs.labels is not None:
        unlabeled = unlabeled[pairs.labels[unlabeled] == 0]
    surplus = len(unlabeled) - _MOST_UNLABELED
    if surplus <= 0:
        return np.arange(pairs.n_rows)
    dropped = np.random.default_rng(seed).choice(unlabeled, surplus, replace=False)
    kept = np.ones(pairs.n_rows, dtype=bool)
    kept[dropped] = False
    return np.flatnonzero(kept)


def _named(pairs: Pairs, n_classes: int, error_rate: ErrorRateParameter, n_folds: int) -> tuple[Indices, Pairs]:
    """Rows to keep and what is known of them, with the labels that answers imply where none is wrong."""
    graph = AnswerGraph.from_y(pairs)
    everything = np.arange(pairs.n_rows), pairs
    if graph.n_answers and not answer_model_of(error_rate, graph, max(n_classes, 3)).certain:
        return everything
    labels = implied_labels(graph, n_classes)
    return everything if labels is graph.labels else with_labels(pairs, graph, labels, n_folds)


def _number_of_folds(pairs: Pairs, n_folds: int) -> int:
    """As many folds as asked for, or as the rarer kind of pair allows."""
    counts = [n for n in (int(pairs.similar.sum()), int((~pairs.similar).sum())) if n]
    if min(counts, default=0) < 2:
        raise InputError(
            "Boosting stops by held-out answers, which takes at least two pairs of each kind there is in `y`. "
            "Add answers, or use PairLogisticRegression."
        )
    return min([n_folds, *counts])
