"""The rows of a fit: checked, numbered by point, dealt out to folds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.graph import AnswerGraph
from sdulearn.boosting.objective import point_weights
from sdulearn.boosting.table import take
from sdulearn.errors import InputError
from sdulearn.model_selection import PairKFold
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.types import Array, Codes, Indices, Rows

# Unlabeled rows give the mean prediction and no more: so many give it to within 0.4%.
_MOST_UNLABELED = 20_000
# The start need not be the best linear model of all answers: the trees go on from it.
_MOST_START_ANSWERS = 20_000


@dataclass(frozen=True)
class TrainingRows:
    """Rows, what is known of them, and their folds.

    Attributes
    ----------
    X : matrix of shape (n_rows, n_features)
        Rows.
    y : int array of shape (n_rows,) or (n_rows, 2 to 4)
        What is known of each row.
    weight : array of shape (n_rows,) or None
        Weights.
    graph : AnswerGraph
        The same by point.
    fold : int array of shape (n_points,)
        Fold of each point, -1 for hubs.
    trains : list of int array
        For each fold the rows that touch none of its points.
    """

    X: Rows
    y: Codes
    weight: Array | None
    graph: AnswerGraph
    fold: Indices
    trains: list[Indices]

    @classmethod
    def of(cls, X: Rows, pairs: Pairs, weight: Array | None, n_folds: int, seed: int) -> TrainingRows:
        """Checked rows; of very many unlabeled ones a random sample."""
        y = np.asarray(pairs)
        rows = _enough_rows(pairs, seed)
        if len(rows) < len(y):
            X = take(X, rows)
            y = y[rows]
            weight = None if weight is None else weight[rows]
            pairs = read_pairs(y)
        graph = AnswerGraph.from_y(pairs, weight)
        splitter = PairKFold(_number_of_folds(pairs, n_folds), random_state=seed)
        fold = np.empty(graph.n_points, dtype=np.intp)
        fold[graph.row_point] = splitter.fold_of_rows(None, pairs)
        trains = [train for train, _ in splitter.split(None, pairs)]
        return cls(X, y, weight, graph, fold, trains)

    @cached_property
    def first_row(self) -> Indices:
        """A row that shows each point."""
        return np.unique(self.graph.row_point, return_index=True)[1]

    @cached_property
    def points(self) -> Rows:
        """One row a point."""
        return take(self.X, self.first_row)

    @cached_property
    def point_weight(self) -> Array:
        """Weight of each point."""
        return point_weights(self.graph, self.weight)

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


def _number_of_folds(pairs: Pairs, n_folds: int) -> int:
    """As many folds as asked for, or as the rarer kind of pair allows."""
    counts = [n for n in (int(pairs.similar.sum()), int((~pairs.similar).sum())) if n]
    if min(counts, default=0) < 2:
        raise InputError(
            "Boosting stops by held-out answers, which takes at least two pairs of each kind there is in `y`. "
            "Add answers, or use PairLogisticRegression."
        )
    return min([n_folds, *counts])


def checked_weight(weight: ArrayLike | None) -> Array | None:
    """Weights as floats."""
    return None if weight is None else np.asarray(weight, dtype=np.float64)
