"""What a model of a table goes by: columns that it would be worse without, and what it says along the strongest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.inspection import partial_dependence

from sdulearn.columns import BOOLEAN, CATEGORY, NUMBER, Column, Layout
from sdulearn.metrics import pair_importance
from sdulearn.metrics.cross_validation import FoldModel
from sdulearn.pairs import Pairs
from sdulearn.report.records import ColumnDependence, ColumnImportance
from sdulearn.table_model import TableModel
from sdulearn.types import Array, Estimator, Indices, Rows

# So many columns, of those that the model goes by most, are judged, and so many drawn.
_JUDGED = 15
_DRAWN = 4
_REPEATS = 3
# More answers would not change the picture, and rows of a table beyond these neither.
_MOST_ANSWERS = 2000
_MOST_ROWS = 500
_MOST_NUMBERS = 20_000_000
_GRID = 20
# Of a column of numbers, where most rows are.
_MIDDLE = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Decides by the models of folds, as some columns of the table would have it; hubs by the model of all rows."""

    columns: Layout
    values: Array
    judged: Indices
    parts: list[FoldModel]

    def decision_function(self, X: Array) -> Array:
        """Decision values of the answers' rows, with the judged columns as given."""
        values = self.values.copy()
        values[:, self.judged] = X
        rows = self.columns.rows(values)
        decided = [(part.rows, part.decide(rows[part.rows])) for part in self.parts if len(part.rows)]
        decision = np.empty((len(rows), *decided[0][1].shape[1:]))
        for places, found in decided:
            decision[places] = found
        return decision


def column_importances(
    whole: Estimator, parts: list[FoldModel], rows: Rows, pairs: Pairs, columns: Layout
) -> tuple[ColumnImportance, ...]:
    """What held-out answers lose where a column is shuffled, the most first; nothing where they cannot tell.

    Answers count as they came: all for right, and in the ratio they have.
    """
    if pairs.similar.all() or not pairs.similar.any():
        return ()
    chosen = _drawn_answers(pairs)
    answered = rows[chosen]
    if answered.shape[0] * answered.shape[1] > _MOST_NUMBERS:
        return ()
    scaled = answered.toarray() if sparse.issparse(answered) else answered
    values = columns.values(scaled * columns.scale + columns.mean)
    judged = np.argsort(-_strengths(whole, columns), kind="stable")[:_JUDGED]
    model = _HeldOut(columns, values, judged, _among(whole, parts, chosen, pairs.n_rows))
    answers = np.asarray(pairs)[chosen]
    # Who answered and labels are set aside: the likelihood with these takes a hundred times as long.
    y = answers if answers.ndim == 1 else answers[:, :2]
    found = pair_importance(model, values[:, judged], y, n_repeats=_REPEATS, random_state=0)
    order = np.argsort(-found.mean, kind="stable").tolist()
    names = [columns.columns[k].name for k in judged]
    return tuple(ColumnImportance(names[k], float(found.mean[k]), float(found.error[k])) for k in order)


def _drawn_answers(pairs: Pairs) -> Indices:
    """Rows of the answers, or of a draw of them."""
    ends = pairs.ends
    if len(ends) > _MOST_ANSWERS:
        ends = ends[np.random.default_rng(0).choice(len(ends), _MOST_ANSWERS, replace=False)]
    return np.sort(ends.ravel())


def _among(whole: Estimator, parts: list[FoldModel], chosen: Indices, n_rows: int) -> list[FoldModel]:
    """A model for each of the chosen rows, by their places among these: that of its fold, of a hub that of all rows."""
    place = np.full(n_rows, -1)
    place[chosen] = np.arange(len(chosen))
    found = []
    for part in parts:
        places = place[part.rows]
        found.append(FoldModel(places[places >= 0], part.model, part.sign))
    held_out = np.concatenate([part.rows for part in found])
    return [*found, FoldModel(np.setdiff1d(np.arange(len(chosen)), held_out), whole)]


def _strengths(model: Estimator, columns: Layout) -> Array:
    """How much a model goes by each column: coefficients of scaled features, or the importances of trees."""
    by_class = model.coef_ if hasattr(model, "coef_") else model.feature_importances_[None]
    of_feature = np.abs(by_class).max(axis=0)
    return np.array([of_feature[part].sum() for part in columns.features])


class _OfColumns(ClassifierMixin, BaseEstimator):
    """A fitted model of the columns of a table, for scikit-learn's tools."""

    def __init__(self, model: Estimator, columns: Layout) -> None:
        self.model = model
        self.columns = columns
        self.classes_ = model.classes_

    def fit(self, X: Array, y: Array) -> _OfColumns:
        """Refuse: the model is fitted."""
        raise NotImplementedError

    def predict_proba(self, X: Array) -> Array:
        """Probability of each class."""
        return np.asarray(self.model.predict_proba(self.columns.rows(X)))


def column_dependences(
    model: TableModel, X: Rows, importances: tuple[ColumnImportance, ...]
) -> tuple[ColumnDependence, ...]:
    """What a model of two classes says on average along its most important columns, over a draw of rows."""
    if len(model.classes) != 2 or not hasattr(model.estimator, "predict_proba"):
        return ()
    columns = model.columns
    drawn = np.random.default_rng(0).permutation(X.shape[0])[:_MOST_ROWS]
    rows = X[np.sort(drawn)]
    values = columns.values(rows.toarray() if sparse.issparse(rows) else rows)
    estimator = _OfColumns(model.estimator, columns)
    places = {column.name: k for k, column in enumerate(columns.columns)}
    worth = [places[one.column] for one in importances if one.loss > one.error]
    varied = [k for k in worth if np.ptp(values[:, k]) > 0]
    return tuple(_dependence(estimator, values, k) for k in varied[:_DRAWN])


def _dependence(estimator: _OfColumns, values: Array, k: int) -> ColumnDependence:
    column = estimator.columns.columns[k]
    low, high = np.quantile(values[:, k], _MIDDLE)
    found = partial_dependence(
        estimator,
        values,
        [k],
        categorical_features=[k] if column.kind == CATEGORY else None,
        response_method="predict_proba",
        # A column that has one value nearly everywhere is drawn along all it has.
        percentiles=_MIDDLE if high - low > 1e-6 * max(abs(low), abs(high)) else (0, 1),
        grid_resolution=_GRID,
        method="brute",
        kind="average",
    )
    return ColumnDependence(column.name, _names(column, found["grid_values"][0]), tuple(found["average"][0].tolist()))


def _names(column: Column, values: Array) -> tuple[float, ...] | tuple[str, ...]:
    """Numbers as they are; categories and yes or no by name."""
    if column.kind == NUMBER:
        return tuple(values.tolist())
    names = ("false", "true") if column.kind == BOOLEAN else (*column.categories, "none of these")
    return tuple(names[int(value)] for value in values)
