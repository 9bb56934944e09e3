"""How good a model is, by answers about points that the models of folds did not know; and what it goes by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.stats.mstats import mquantiles
from sklearn import config_context

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.checks import doubtful_answers
from sdulearn.columns import Column, Columns
from sdulearn.diagnostics import ACCURACY_FOLDS, Finding
from sdulearn.errors import UndeterminedError
from sdulearn.metrics.accuracy import AccuracyEstimate
from sdulearn.metrics.classes import ClassAgreement
from sdulearn.metrics.cross_validation import (
    FoldModel,
    fold_models,
    folds_over_points,
    held_out_accuracy,
    held_out_agreement,
    held_out_rows,
    of_folds,
    predictions_of,
)
from sdulearn.metrics.importance import pair_importance
from sdulearn.pairs import Pairs
from sdulearn.prior import PriorEstimate, estimate_prior
from sdulearn.report.records import ColumnDependence, ColumnImportance, DoubtfulAnswer, feature_strengths
from sdulearn.types import Array, Codes, Estimator, Indices, Mask, Rows
from sdulearn.workflow.data import TrainingData
from sdulearn.workflow.models import Choice, at_its_settings
from sdulearn.workflow.options import FitOptions

if TYPE_CHECKING:
    from sdulearn.table_model import TableModel

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
_MOST_ROWS = 300
_MOST_NUMBERS = 20_000_000
_GRID = 20
# Of a column of numbers, where most rows are.
_MIDDLE = (0.05, 0.95)
# Places of rows, and what decides about them.
Deciders = list[tuple[Indices, Callable[[Rows], Array]]]


def judge(
    choice: Choice,
    options: FitOptions,
    rows: Rows,
    pairs: Pairs,
    weights: Array | None,
    random_points: Mask | None,
) -> tuple[list[FoldModel], AccuracyEstimate | None, ClassAgreement | None, list[Finding]]:
    """Judge a model by answers that models of folds have not seen: those of the choice, or with its settings.

    Gives these models; the accuracy of two classes, or the agreement of more; and whether the latter is that of chance.
    """
    model, _, parts = choice
    many = len(model.classes_) > 2
    decided = np.zeros(len(pairs))
    if many or not parts:
        decided = model.predict(rows) if many else model.decision_function(rows)
    if not parts:
        folds = folds_over_points(_FEW_FOLDS if many else ACCURACY_FOLDS, pairs)
        single = at_its_settings(model, options)
        parts = list(fold_models(single, rows, pairs, decided, sample_weight=weights, cv=folds))
    elif not many and (hubs := np.setdiff1d(pairs.ends, np.concatenate([part.rows for part in parts]))).size:
        decided[hubs] = model.decision_function(rows[hubs])
    predicted = predictions_of(parts, rows, decided)
    counted = None if random_points is None else held_out_rows(parts, random_points)
    rates = error_rates_of(model) if options.is_joint and not model.answer_model_.certain else None
    if many:
        return parts, None, *agreement_of_many(predicted, rates, parts, pairs, weights, counted)
    accuracy = held_out_accuracy(
        predicted,
        pairs,
        n_splits=len(parts),
        error_rate=rates,
        sample_weight=weights,
        prior=options.prior,
        random_points=counted,
    )
    return parts, accuracy, None, []


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


def error_rates_of(model: Estimator) -> dict[int, float] | AnswerModel | None:
    """How often answers are wrong, where any are, by a model that takes that into account.

    One who was never found wrong may be, and one who guesses leaves the others' answers as they are. Of a crowd it is
    known what all of its answers say of each point.
    """
    found: AnswerModel = model.answer_model_
    if found.certain or found.of_crowd:
        return found if found.of_crowd else None
    return {a: min(max(rate, _FEWEST_ERRORS), _MOST_ERRORS) for a, rate in found.rates.items()}


def agreement_of_many(
    predicted: Array | Codes,
    rates: dict[int, float] | AnswerModel | None,
    parts: list[FoldModel],
    pairs: Pairs,
    weights: Array | None,
    counted: Mask | None,
) -> tuple[ClassAgreement, list[Finding]]:
    """Of more than two classes, and a finding where predictions by chance would agree with the answers as often."""
    found = held_out_agreement(predicted, pairs, parts, error_rate=rates, sample_weight=weights, random_points=counted)
    asked = of_folds(parts, pairs)
    if counted is not None:
        asked &= counted[pairs.ends].any(axis=1)
    if not asked.any():
        return found, []
    shown = pairs.ends[asked]
    shares = np.unique(predicted[shown], return_counts=True)[1] / shown.size
    equal = float(shares @ shares)
    similar = float(np.mean(pairs.similar[asked]))
    chance = equal * similar + (1 - equal) * (1 - similar)
    if found.agreement.low > chance:
        return found, []
    return found, [Finding("no_better_than_guessing", "warning", {"low": found.agreement.low, "chance": chance})]


def most_doubtful(
    model: Estimator, rows: Rows, pairs: Pairs, data: TrainingData, names: Sequence[str]
) -> tuple[DoubtfulAnswer, ...]:
    """Answers to ask again, by the ids of the table and the names of who gave them."""
    asked = slice(data.ends.size)
    found = doubtful_answers(model, rows[asked], np.asarray(pairs)[asked])
    answers = []
    for code, wrong, annotator in zip(found.code[:_DOUBTFUL], found.wrong, found.annotator, strict=False):
        first, second = data.ends[abs(code) - 1].tolist()
        share = float(np.clip(wrong, 0, 1))
        answers.append(DoubtfulAnswer(data.ids[first], data.ids[second], bool(code > 0), names[annotator], share))
    return tuple(answers)


def _held_out(columns: Columns, held: Array, values: Array, judged: Indices, models: Deciders, X: Array) -> Array:
    """Decision values of the answers' rows by the models of folds, with the judged columns of the table as given.

    ``X`` are these columns once or more.
    """
    n_copies = len(X) // len(values)
    values = np.tile(values, (n_copies, 1))
    values[:, judged] = X
    rows = columns.rows(values, np.tile(held, (n_copies, 1)))
    rows = rows.reshape(n_copies, len(held), -1)
    decided = [(places, decide(rows[:, places].reshape(-1, rows.shape[2]))) for places, decide in models if len(places)]
    decision = np.empty((n_copies, len(held), *decided[0][1].shape[1:]))
    for places, found in decided:
        decision[:, places] = found.reshape(n_copies, len(places), *found.shape[1:])
    return decision.reshape(-1, *decision.shape[2:])


def column_importances(
    whole: Estimator, parts: list[FoldModel], rows: Rows, pairs: Pairs, columns: Columns
) -> tuple[ColumnImportance, ...]:
    """What held-out answers lose where a column is shuffled, the most first; nothing where they cannot tell.

    Answers count as they came: all for right, and in the ratio they have.
    """
    if pairs.similar.all() or not pairs.similar.any():
        return ()
    ends = pairs.ends
    if len(ends) > _MOST_ANSWERS:
        ends = ends[np.random.default_rng(0).choice(len(ends), _MOST_ANSWERS, replace=False)]
    chosen = np.sort(ends.ravel())
    answered = rows[chosen]
    if answered.shape[0] * answered.shape[1] > _MOST_NUMBERS:
        return ()
    scaled = answered.toarray() if sparse.issparse(answered) else answered
    held = scaled * columns.scale + columns.mean
    values = columns.values(held)
    by_feature = np.abs(list(feature_strengths(whole, whole.classes_.tolist()).values())).max(axis=0)
    strengths = np.array([by_feature[part].sum() for _, part in columns.parts])
    judged = np.argsort(-strengths, kind="stable")[:_JUDGED]
    decide = partial(_held_out, columns, held, values, judged, _among(whole, parts, chosen, len(pairs)))
    model = SimpleNamespace(decision_function=decide)
    answers = np.asarray(pairs)[chosen]
    # Who answered and labels are set aside: the likelihood with these takes a hundred times as long.
    y = answers if answers.ndim == 1 else answers[:, :2]
    # Rows are checked already, and would be hundreds of times over.
    with config_context(assume_finite=True):
        found = pair_importance(model, values[:, judged], y, n_repeats=_REPEATS, random_state=0)
    order = np.argsort(-found.mean, kind="stable").tolist()
    names = [columns.columns[k].name for k in judged]
    return tuple(ColumnImportance(names[k], float(found.mean[k]), float(found.error[k])) for k in order)


def _among(whole: Estimator, parts: list[FoldModel], chosen: Indices, n_rows: int) -> Deciders:
    """A model for each of the chosen rows, by their places among these: that of its fold, of a hub that of all rows."""
    place = np.full(n_rows, -1)
    place[chosen] = np.arange(len(chosen))
    found: Deciders = []
    for part in parts:
        places = place[part.rows]
        found.append((places[places >= 0], part.decide))
    hubs = np.setdiff1d(np.arange(len(chosen)), np.concatenate([places for places, _ in found]))
    return [*found, (hubs, whole.decision_function)]


def column_dependences(
    model: TableModel, X: Rows, importances: tuple[ColumnImportance, ...]
) -> tuple[ColumnDependence, ...]:
    """What a model of two classes says on average along its most important columns, over a draw of rows."""
    if len(model.classes) != 2 or model.link is None:
        return ()
    columns = model.columns
    drawn = np.random.default_rng(0).permutation(X.shape[0])[:_MOST_ROWS]
    rows = X[np.sort(drawn)]
    rows = rows.toarray() if sparse.issparse(rows) else rows
    values = columns.values(rows)
    places = {column.name: k for k, column in enumerate(columns.columns)}
    # Texts and pictures are not along a line.
    worth = [places[one.column] for one in importances if one.loss > one.error and one.column not in columns.makers]
    varied = [k for k in worth if np.nanmax(values[:, k]) > np.nanmin(values[:, k])]
    return tuple(_dependence(model.estimator, columns, rows, values, k) for k in varied[:_DRAWN])


def _dependence(model: Estimator, columns: Columns, X: Array, values: Array, k: int) -> ColumnDependence:
    """The mean probability over rows that have each of some values in a column, and keep their others."""
    column = columns.columns[k]
    present = values[~np.isnan(values[:, k]), k]
    grid = np.unique(present)
    if column.kind != "category" and len(grid) >= _GRID:
        low, high = mquantiles(present, _MIDDLE)
        if high - low <= 1e-6 * max(abs(low), abs(high)):
            # A column that has one value nearly everywhere is drawn along all it has.
            low, high = grid[[0, -1]]
        grid = np.linspace(low, high, _GRID)
    rows = np.tile(values, (len(grid), 1))
    rows[:, k] = np.repeat(grid, len(values))
    found = model.predict_proba(columns.rows(rows, np.tile(X, (len(grid), 1))))[:, 1]
    means = found.reshape(len(grid), -1).mean(axis=1)
    return ColumnDependence(column.name, _names(column, grid), tuple(means.tolist()))


def _names(column: Column, values: Array) -> tuple[float, ...] | tuple[str, ...]:
    """Numbers as they are; categories and yes or no by name."""
    if column.kind == "number":
        return tuple(values.tolist())
    if column.kind == "date":
        return tuple(values.astype("datetime64[D]").astype(str).tolist())
    names = ("false", "true") if column.kind == "boolean" else (*column.categories, "none of these")
    return tuple(names[int(value)] for value in values)
