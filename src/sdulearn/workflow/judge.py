"""Which model is fitted to a table, how good it is by answers that it did not know, and what it goes by."""

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
from sdulearn.errors import UndeterminedError, is_there
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.metrics.accuracy import AccuracyEstimate
from sdulearn.metrics.classes import ClassAgreement
from sdulearn.metrics.cross_validation import (
    FoldModel,
    fold_models,
    folds_over_points,
    held_out_accuracy,
    held_out_agreement,
    held_out_answers,
    held_out_rows,
    predictions_of,
)
from sdulearn.metrics.importance import pair_importance
from sdulearn.model_selection import fold_parts
from sdulearn.pairs import Pairs
from sdulearn.prior import PriorEstimate, estimate_prior
from sdulearn.report.records import (
    ColumnDependence,
    ColumnImportance,
    DoubtfulAnswer,
    ModelChoice,
    chosen_settings,
    feature_strengths,
)
from sdulearn.types import Array, Codes, Estimator, Indices, Mask, Rows
from sdulearn.workflow.data import TrainingData
from sdulearn.workflow.options import Engine, FitOptions

if TYPE_CHECKING:
    from sdulearn.table_model import TableModel

# Of a choice; for the accuracy there are more, so that each model is nearly the one that is kept.
_MAX_FOLDS = 5
# Trees stop by held-out answers, in every fold of the accuracy too.
_FEWEST_OF_A_KIND = 2
# With fewer answers trees win by chance alone.
_FEWEST_ANSWERS = 60
# Beyond so many features the comparison takes more than a few seconds.
_MOST_FEATURES = 100
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
# A fitted estimator, why it is of this kind, and the models of folds that the choice was made by, if any.
Choice = tuple[Estimator, ModelChoice, list[FoldModel]]


def number_of_classes(options: FitOptions, data: TrainingData) -> tuple[int | str, tuple[int, int] | None]:
    """As asked for, as labels and match questions name, or by the held-out likelihood of answers, with its interval.

    Labels are set aside for the search, as what they are called depends on its result. "auto" comes back where
    the fit itself can search.
    """
    n_named = max(2, len(set(data.labels.values())))
    if options.classes is None:
        asked = 2 if data.answers is None else data.answers.n_classes or 2
        return max(n_named, asked), None
    if options.classes != "auto" or (not data.labels and options.model != "boosted"):
        return options.classes, None
    rows, pairs, weights = data.without_gaps().stacked
    model = PairLogisticRegressionCV(n_classes="auto", error_rate=options.error_rate, cv=_folds(data))
    low, high = model.fit(rows, pairs, weights).n_classes_interval_
    return max(model.n_classes_, n_named), (max(low, n_named), max(high, n_named))


def _folds(data: TrainingData) -> int:
    n_similar = int(data.similar.sum())
    return min([_MAX_FOLDS, *(n for n in (n_similar, len(data.similar) - n_similar) if n)])


def choose(options: FitOptions, data: TrainingData, n_classes: int | str) -> tuple[Choice, list[Finding]]:
    """The model that was asked for, or the better of the two, with the settings that held-out answers favour.

    A finding says why models were not compared, where they might have been.
    """
    rows, pairs, weights = data.stacked
    may_compare = options.tries_trees and options.model != "boosted"
    reasons = why_linear(n_classes, rows, pairs) if may_compare else []
    # Unless a comparison was asked for, only a limit that the table might meet is reported.
    findings = [one for one in reasons if options.model == "auto" or one.details["reason"] == "features"]
    if options.tries_trees and not reasons:
        return _with_trees(options, data, n_classes), findings
    rows = np.nan_to_num(rows) if data.columns.keep_gaps else rows
    if not options.is_joint:
        model = SDUClassifierCV(options.method, options.loss, prior=options.prior, cv=_folds(data))
        return (model.fit(rows, pairs, weights), ModelChoice(), []), findings
    cv = folds_over_points(ACCURACY_FOLDS, pairs) if n_classes == 2 else _folds(data)
    joint = PairLogisticRegressionCV(n_classes=n_classes, cv=cv, **options.likelihood).fit(rows, pairs, weights)
    parts = [FoldModel(*fold) for fold in joint.fold_models_] if n_classes == 2 else []
    return (joint, ModelChoice(), parts), findings


def _with_trees(options: FitOptions, data: TrainingData, n_classes: int | str) -> Choice:
    """Boosted trees, or whichever of these and a linear model makes held-out answers likelier."""
    from sdulearn.boosting.estimators import PairBoostingClassifier, PairModelCV

    # Of two classes they judge the accuracy too: trees of four fifths of the answers are worse by points.
    parameters = options.likelihood | {"cv": ACCURACY_FOLDS if n_classes == 2 else _folds(data)}
    if options.model == "boosted":
        model = PairBoostingClassifier(n_classes=int(n_classes), **parameters).fit(*data.stacked)
        curve = model.held_out_log_likelihood_
        scores = {"linear": float(curve[0]), "boosted": float(curve[model.n_rounds_])}
        return model, ModelChoice("boosted", scores), [FoldModel(*fold) for fold in model.fold_models_]
    both = PairModelCV(["linear", "boosted"], **parameters).fit(*data.stacked)
    table = both.cv_results_
    gap_error = float(np.max(table["gap_error"]))
    scores = dict(zip(table["model"], table["mean_test_score"].tolist(), strict=True))
    kind = ModelChoice(both.model_, scores, gap_error if np.isfinite(gap_error) else None)
    # The linear model itself has coefficients, and can be written to ONNX.
    return both.best_estimator_, kind, [FoldModel(*fold) for fold in both.fold_models_]


def why_linear(n_classes: int | str, rows: Rows, pairs: Pairs) -> list[Finding]:
    """Why models are not compared, as a finding; nothing where they are."""
    # The fewest answers of a kind that a model has to learn from, of those that the accuracy is found by.
    signs = np.sign(pairs.codes)
    trains = [signs[train] for train, _ in fold_parts(folds_over_points(ACCURACY_FOLDS, pairs), None, pairs)]
    fewest = min(np.sum(train == kind) // 2 for train in trains for kind in (-1, 1) if kind in signs)
    reasons = {
        "classes": n_classes != 2,
        "lightgbm": not is_there("lightgbm"),
        "answers": len(pairs.ends) < _FEWEST_ANSWERS,
        "features": rows.shape[1] > _MOST_FEATURES,
        "folds": fewest < _FEWEST_OF_A_KIND,
    }
    reason = next((name for name, holds in reasons.items() if holds), None)
    if reason is None:
        return []
    limits = {"answers": _FEWEST_ANSWERS, "features": _MOST_FEATURES}
    return [Finding("linear_alone", "info", {"reason": reason, "limit": limits.get(reason)})]


def at_its_settings(model: Estimator, options: FitOptions) -> Estimator:
    """An unfitted linear estimator with the settings that a fitted one chose."""
    found = chosen_settings(model)
    if not options.is_joint:
        settings = {"gamma": found.get("gamma", 0.5), "alpha": found["alpha"], "prior": model.prior_.value}
        return SDUClassifier(options.method, options.loss, **settings)
    return PairLogisticRegression(
        found["alpha"],
        covariance_power=found["covariance_power"],
        n_classes=len(model.classes_),
        **options.likelihood | {"error_rate": model.answer_model_},
    )


def fit_on_all(model: Estimator, options: FitOptions, data: TrainingData, engine: Engine) -> Estimator:
    """An estimator of the same risk fitted on all rows, with the settings chosen on a few of them.

    Where these have no answers but those of the model, its prior is theirs: blocks do not show which answers share
    points.
    """
    from sdulearn.streaming import SDUClassifier as StreamingClassifier

    n_rows = data.n_rows + (0 if data.answers is None else 2 * len(data.ends))
    blocks = engine.blocks(data.parts, n_rows)
    fitted = StreamingClassifier(**at_its_settings(model, options).get_params())
    if not data.same_answers:
        return fitted.set_params(prior=options.prior).fit(blocks)
    fitted.fit(blocks).set_params(prior=options.prior)
    fitted.prior_ = model.prior_
    return fitted


def judge(
    choice: Choice, options: FitOptions, data: TrainingData
) -> tuple[list[FoldModel], AccuracyEstimate | None, ClassAgreement | None, list[Finding]]:
    """Judge a model by answers that models of folds have not seen: those of the choice, or with its settings.

    Gives these models; the accuracy of two classes, or the agreement of more; and whether the latter is that of chance.
    """
    model, _, parts = choice
    rows, pairs, weights = data.stacked
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
    counted = held_out_rows(parts, data.random_points)
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


def prior_of_random_points(model: Estimator, data: TrainingData) -> PriorEstimate:
    """The share of class +1 by the points drawn at random; 1/2, from 0 to 1, where there are none."""
    rows, pairs, weights = data.stacked
    decision = model.decision_function(rows)
    among = decision[pairs.unlabeled] if len(pairs.unlabeled) else decision
    try:
        return estimate_prior(
            y=pairs,
            sample_weight=weights,
            random_points=data.random_points,
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
    asked = held_out_answers(parts, pairs, counted)
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


def most_doubtful(model: Estimator, data: TrainingData, names: Sequence[str]) -> tuple[DoubtfulAnswer, ...]:
    """Answers to ask again, by the ids of the table and the names of who gave them."""
    rows, pairs, _ = data.stacked
    asked = slice(data.ends.size)
    found = doubtful_answers(model, rows[asked], np.asarray(pairs)[asked])
    answers = []
    for code, wrong, annotator in zip(found.code[:_DOUBTFUL], found.wrong, found.annotator, strict=False):
        first, second = data.ends[abs(code) - 1].tolist()
        share = float(np.clip(wrong, 0, 1))
        answers.append(DoubtfulAnswer(data.ids[first], data.ids[second], bool(code > 0), names[annotator], share))
    return tuple(answers)


def _held_out(
    columns: Columns,
    held: Array,
    values: Array,
    judged: Indices,
    model_of: Indices,
    models: Sequence[Callable[[Rows], Array]],
    X: Array,
) -> Array:
    """Decision values of the answers' rows, each by its model, with the judged columns of the table as given.

    ``X`` are these columns once or more.
    """
    n_copies = len(X) // len(values)
    values = np.tile(values, (n_copies, 1))
    values[:, judged] = X
    rows = columns.rows(values, np.tile(held, (n_copies, 1)))
    by = np.tile(model_of, n_copies)
    decided = {k: models[k](rows[by == k]) for k in np.unique(model_of)}
    decision = np.empty((len(by), *next(iter(decided.values())).shape[1:]))
    for k, found in decided.items():
        decision[by == k] = found
    return decision


def column_importances(whole: Estimator, parts: list[FoldModel], data: TrainingData) -> tuple[ColumnImportance, ...]:
    """What held-out answers lose where a column is shuffled, the most first; nothing where they cannot tell.

    Answers count as they came: all for right, and in the ratio they have.
    """
    rows, pairs, _ = data.stacked
    columns = data.columns
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
    # Of a hub, which no fold holds out, the model of all rows.
    model_of = np.full(len(pairs), len(parts))
    for k, part in enumerate(parts):
        model_of[part.rows] = k
    models = [*(part.decide for part in parts), whole.decision_function]
    decide = partial(_held_out, columns, held, values, judged, model_of[chosen], models)
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
