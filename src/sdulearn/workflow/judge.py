"""How good a model is, by answers about points that the models of folds did not know; and what it goes by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.inspection import partial_dependence

from sdulearn.answers.answer_model import doubtful_answers
from sdulearn.columns import BOOLEAN, CATEGORY, NUMBER, Column, Layout
from sdulearn.diagnostics import ACCURACY_FOLDS, Finding
from sdulearn.errors import UndeterminedError
from sdulearn.metrics import (
    AccuracyEstimate,
    ClassAgreement,
    Share,
    folds_over_points,
    held_out_accuracy,
    pair_importance,
)
from sdulearn.metrics.classes import class_agreement
from sdulearn.metrics.cross_validation import (
    FoldModel,
    fold_models,
    fold_spread,
    held_out_rows,
    predictions_of,
    share_of_points,
)
from sdulearn.pairs import Pairs
from sdulearn.prior import PriorEstimate, clopper_pearson, estimate_prior
from sdulearn.report.records import ColumnDependence, ColumnImportance, DoubtfulAnswer
from sdulearn.table_model import TableModel
from sdulearn.types import Array, Codes, Estimator, Indices, Mask, Rows
from sdulearn.workflow.data import TrainingData
from sdulearn.workflow.models import Choice, at_its_settings

# Of more than two classes, whose fit takes long.
_FEW_FOLDS = 5
# Answers wrong every other time would say nothing of the accuracy.
_MOST_ERRORS = 0.49
_FEWEST_ERRORS = 1e-3
_DOUBTFUL = 10
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


def models_of_folds(choice: Choice, rows: Rows, pairs: Pairs, weights: Array | None) -> list[FoldModel]:
    """Models with the settings of a fitted one, each without the answers about the points of its fold.

    Those that the choice was made by, where they were kept.
    """
    if choice.parts:
        return list(choice.parts)
    model = choice.estimator
    many = len(model.classes_) > 2
    folds = folds_over_points(_FEW_FOLDS if many else ACCURACY_FOLDS, pairs)
    reference = model.predict(rows) if many else model.decision_function(rows)
    return list(fold_models(at_its_settings(model), rows, pairs, reference, sample_weight=weights, cv=folds))


def prior_of_random_points(
    model: Estimator, rows: Rows, pairs: Pairs, weights: Array | None, random_points: Mask
) -> PriorEstimate:
    """The share of class +1 by the points drawn at random; 1/2, from 0 to 1, where there are none."""
    decision = model.decision_function(rows)
    among = decision[pairs.unlabeled] if len(pairs.unlabeled) else decision
    try:
        return estimate_prior(
            y=pairs,
            sample_weight=weights,
            random_points=random_points,
            error_rate=error_rates_of(model),
            decision=decision,
            # Labels may have named the smaller class +1.
            majority="positive" if np.mean(among > 0) >= 0.5 else "negative",
        )
    except UndeterminedError:
        return PriorEstimate(0.5, 0.0, 1.0, False, 0.0, 0.0, 0.95, 0.0)


def error_rates_of(model: Estimator) -> dict[int, float] | None:
    """How often answers are wrong, where any are and the model takes that into account.

    One who was never found wrong may be, and one who guesses leaves the others' answers as they are.
    """
    found = getattr(model, "answer_model_", None)
    if found is None or found.certain:
        return None
    return {a: min(max(rate, _FEWEST_ERRORS), _MOST_ERRORS) for a, rate in found.rates.items()}


@dataclass(frozen=True, eq=False)
class Judged:
    """What held-out answers say: accuracy of two classes; of more, agreement, and that of chance."""

    parts: list[FoldModel]
    accuracy: AccuracyEstimate | None = None
    agreement: ClassAgreement | None = None
    chance: float = 0.0


def judge(
    choice: Choice, rows: Rows, pairs: Pairs, weights: Array | None, prior: float | None, random_points: Mask | None
) -> Judged:
    """Judge a model by answers that models of folds have not seen."""
    model = choice.estimator
    parts = models_of_folds(choice, rows, pairs, weights)
    if len(model.classes_) > 2:
        agreement, chance = agreement_of_many(model, parts, rows, pairs, weights, random_points)
        return Judged(parts, agreement=agreement, chance=chance)
    accuracy = held_out_accuracy(
        predictions_of(parts, rows, model.decision_function(rows)),
        pairs,
        n_splits=len(parts),
        error_rate=error_rates_of(model),
        sample_weight=weights,
        prior=prior,
        random_points=held_out_rows(parts, random_points),
    )
    return Judged(parts, accuracy)


def agreement_of_many(
    model: Estimator,
    parts: list[FoldModel],
    rows: Rows,
    pairs: Pairs,
    weights: Array | None,
    random_points: Mask | None,
) -> tuple[ClassAgreement, float]:
    """Of a model of more than two classes, and how often predictions by chance would agree with the answers.

    Answers between two hubs, such as the examples of two classes, are in every training part: they do not count.
    """
    predicted = predictions_of(parts, rows, model.predict(rows))
    counted = held_out_rows(parts, random_points)
    spread = fold_spread(len(parts), 1.0 if counted is None else share_of_points(pairs, counted, weights))
    asked = np.isin(pairs.ends, np.concatenate([part.rows for part in parts])).any(axis=1)
    known = np.array(pairs)
    known[pairs.ends[~asked], 0] = 0
    if counted is not None:
        asked &= counted[pairs.ends].any(axis=1)
    rates = error_rates_of(model)
    found = class_agreement(
        predicted, known, error_rate=rates, sample_weight=weights, random_points=counted, spread=spread
    )
    if not asked.any():
        return found, 1.0
    ends = predicted[pairs.ends[asked]]
    shares = np.unique(ends, return_counts=True)[1] / ends.size
    equal = float(shares @ shares)
    similar = float(np.mean(pairs.similar[asked]))
    chance = equal * similar + (1 - equal) * (1 - similar)
    shown = pairs.ends[asked]
    n_points = len(np.unique(shown if pairs.points is None else pairs.points[shown]))
    return _widened(found, spread, n_points / 2), chance


def _widened(found: ClassAgreement, spread: float, n_loose: float) -> ClassAgreement:
    """Intervals as of so many times fewer counts, and of no more answers than the points make loose pairs.

    A point may be wrong in all of its answers, which few wrong ones do not show.
    """

    def of_answers(share: Share) -> Share:
        return _wider(share, spread * max(1.0, share.n / n_loose), found.confidence)

    accuracy = found.accuracy
    if accuracy is not None and found.basis != "random questions":
        accuracy = _wider(accuracy, spread, found.confidence)
    return replace(
        found,
        agreement=of_answers(found.agreement),
        same=of_answers(found.same),
        different=of_answers(found.different),
        accuracy=accuracy,
    )


def _wider(share: Share, spread: float, confidence: float) -> Share:
    if not share.n:
        return share
    n = share.n / spread
    low, high = clopper_pearson(share.value * n, (1 - share.value) * n, confidence)
    return Share(share.value, low, high, n)


def check_agreement(found: ClassAgreement, chance: float) -> list[Finding]:
    """A model that answers do not show to be better than chance."""
    if found.agreement.low > chance or not found.agreement.n:
        return []
    return [Finding("no_better_than_guessing", "warning", {"low": found.agreement.low, "chance": chance})]


def annotator_names(data: TrainingData) -> tuple[str, ...]:
    """Names by their numbers in ``y``; 0 where it is not known who answered."""
    return ("", *(() if data.answers is None else data.answers.annotator_names))


def most_doubtful(model: Estimator, rows: Rows, y: Codes, data: TrainingData) -> tuple[DoubtfulAnswer, ...]:
    """Answers to ask again, by the ids of the table; nothing where error rates are not estimated."""
    if not hasattr(model, "answer_model_"):
        return ()
    found = doubtful_answers(model, rows, y)
    names = annotator_names(data)
    answers = []
    for code, wrong, annotator in zip(found.code[:_DOUBTFUL], found.wrong, found.annotator, strict=False):
        first, second = data.ends[abs(code) - 1].tolist()
        share = float(np.clip(wrong, 0, 1))
        answers.append(DoubtfulAnswer(data.ids[first], data.ids[second], bool(code > 0), names[annotator], share))
    return tuple(answers)


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
    model = _HeldOut(columns, values, judged, _among(whole, parts, chosen, len(pairs)))
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
