"""Choose a model for a table, judge it by held-out answers, and measure the importance of columns."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from scipy.stats.mstats import mquantiles
from sklearn import config_context

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.checks import doubtful_answers
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.y import U
from sdulearn.diagnostics import ACCURACY_FOLDS
from sdulearn.errors import UndeterminedError, is_there
from sdulearn.findings import Finding, LinearAlone, NoBetterThanGuessing, Reason
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.metrics import cross_validation
from sdulearn.metrics.accuracy import AccuracyEstimate
from sdulearn.metrics.classes import ClassAgreement
from sdulearn.metrics.cross_validation import FoldModel, folds_over_points
from sdulearn.metrics.scores import pair_importance
from sdulearn.model_selection import number_of_folds
from sdulearn.prior import PriorEstimate, estimate_prior
from sdulearn.report import records
from sdulearn.report.records import ColumnDependence, ColumnImportance, DoubtfulAnswer, ModelChoice
from sdulearn.table_model import TableModel
from sdulearn.tables.columns import Columns
from sdulearn.types import Array, Codes, Estimator, Mask, Rows
from sdulearn.workflow.data import TrainingData
from sdulearn.workflow.options import FitOptions

# Folds of a choice; the accuracy has more, so that each model is nearly the one that is kept.
_MAX_FOLDS = 5
# Trees stop by held-out answers, in every fold of the accuracy too.
_FEWEST_OF_A_KIND = 2
# With fewer answers trees win by chance.
_FEWEST_ANSWERS = 60
# With more features the comparison takes more than a few seconds.
_MOST_FEATURES = 100
# Limits of error rates: a rate of 1/2 would say nothing about the accuracy.
_MOST_ERRORS = 0.49
_FEWEST_ERRORS = 1e-3
_DOUBTFUL = 10
# Columns whose importance is measured, strongest first; columns with a partial dependence.
_JUDGED = 15
_DRAWN = 4
_REPEATS = 3
# Answers that the importances are measured on: more would not change the picture.
_MOST_ANSWERS = 2000
_MOST_NUMBERS = 20_000_000
# Partial dependence of a column of numbers: values between these quantiles.
_GRID = 20
_MIDDLE = (0.05, 0.95)
# A fitted estimator, its kind with the scores of the comparison, and its models of folds, if any.
Choice = tuple[Estimator, ModelChoice, list[FoldModel]]


def number_of_classes(options: FitOptions, data: TrainingData) -> tuple[int | str, tuple[int, int] | None]:
    """Return the number of classes, "auto" if the fit itself searches it, and the interval of a search."""
    n_named = max(2, len(set(data.labels.values())))
    # Groups in a file show how many classes there are, and two is rarely right; a log shows one example per class.
    are_groups = data.answers.questions is not None and data.answers.kinds is None
    found: int | str = "auto" if are_groups else max(n_named, data.answers.n_classes or 2)
    found = options.classes or found
    interval = None
    if found == "auto" and (data.labels or options.model == "boosted"):
        # Without the labels, whose numbers depend on the result.
        model = PairLogisticRegressionCV(n_classes="auto", error_rate=options.error_rate, cv=_folds(data))
        low, high = model.fit(*data.without_gaps().stacked).n_classes_interval_
        found = max(model.n_classes_, n_named)
        interval = (max(low, n_named), max(high, n_named))
    if data.labels and int(found) > 2:
        options.check_many_classes(f"{found} classes, as `labels` names them,")
    return found, interval


def _folds(data: TrainingData) -> int:
    return number_of_folds(_MAX_FOLDS, data.stacked[1])


def choose(options: FitOptions, data: TrainingData, n_classes: int | str) -> tuple[Choice, list[Finding]]:
    """Fit the requested model, or the better of two; a finding says why they were not compared."""
    rows, graph = data.stacked
    may_compare = options.tries_trees and options.model != "boosted"
    reasons = why_linear(n_classes, rows, graph) if may_compare else []
    # Without `model='auto'` only the limit that the user can change is reported.
    findings: list[Finding] = [one for one in reasons if options.model == "auto" or one.reason == "features"]
    if options.tries_trees and not reasons:
        return _with_trees(options, data, n_classes), findings
    rows = np.nan_to_num(rows) if data.columns.keep_gaps else rows
    if not options.is_joint:
        model = SDUClassifierCV(options.method, options.loss, prior=options.prior, cv=_folds(data))
        return (model.fit(rows, graph), ModelChoice(), []), findings
    cv = folds_over_points(ACCURACY_FOLDS, graph) if n_classes == 2 else _folds(data)
    joint = PairLogisticRegressionCV(n_classes=n_classes, cv=cv, **options.likelihood).fit(rows, graph)
    folds = [FoldModel(*fold) for fold in joint.fold_models_] if n_classes == 2 else []
    return (joint, ModelChoice(), folds), findings


def _with_trees(options: FitOptions, data: TrainingData, n_classes: int | str) -> Choice:
    """Fit boosted trees, or the likelier of these and a linear model by held-out answers."""
    from sdulearn.boosting.estimators import PairBoostingClassifier, PairModelCV

    # With two classes these folds judge the accuracy, too: five would understate it by points.
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
    # Not the search around it: a linear model has coefficients and `to_sklearn`.
    return both.best_estimator_, kind, [FoldModel(*fold) for fold in both.fold_models_]


def why_linear(n_classes: int | str, rows: Rows, graph: AnswerGraph) -> list[LinearAlone]:
    """Return a finding that says why models are not compared, if they are not."""
    # The fewest answers of one kind in the training part of a fold.
    folds = folds_over_points(ACCURACY_FOLDS, graph)
    shown = folds.fold_of_points(graph)[:, None] != np.arange(folds.n_splits)
    whole = np.all(shown[graph.ends], axis=1)
    fewest = min(whole[graph.same == kind].sum(axis=0).min() for kind in np.unique(graph.same))
    reasons: dict[Reason, bool] = {
        "classes": n_classes != 2,
        "lightgbm": not is_there("lightgbm"),
        "answers": graph.n_answers < _FEWEST_ANSWERS,
        "features": rows.shape[1] > _MOST_FEATURES,
        "folds": fewest < _FEWEST_OF_A_KIND,
    }
    reason = next((name for name, holds in reasons.items() if holds), None)
    if reason is None:
        return []
    limits: dict[Reason, int] = {"answers": _FEWEST_ANSWERS, "features": _MOST_FEATURES}
    return [LinearAlone(reason=reason, limit=limits.get(reason))]


def at_its_settings(model: Estimator, options: FitOptions) -> Estimator:
    """Return an unfitted linear estimator with the settings that a fitted one chose."""
    found = records.chosen_settings(model)
    if not options.is_joint:
        settings = {"gamma": found.get("gamma", 0.5), "alpha": found["alpha"], "prior": model.prior_.value}
        return SDUClassifier(options.method, options.loss, **settings)
    likelihood = {"prior": options.prior, "error_rate": model.answer_model_, "n_classes": len(model.classes_)}
    return PairLogisticRegression(found["alpha"], covariance_power=found["covariance_power"], **likelihood)


def judge(
    choice: Choice, options: FitOptions, data: TrainingData
) -> tuple[list[FoldModel], AccuracyEstimate | None, ClassAgreement | None, list[Finding]]:
    """Return models of folds, the accuracy (two classes) or agreement (more) by held-out answers, and findings."""
    model, _, folds = choice
    rows, graph = data.stacked
    many = len(model.classes_) > 2
    decided = np.zeros(graph.n_given)
    if many or not folds:
        decided = model.predict(rows) if many else model.decision_function(rows)
    if not folds:
        # A fit of more than two classes takes long.
        cv = folds_over_points(_MAX_FOLDS if many else ACCURACY_FOLDS, graph)
        single = at_its_settings(model, options)
        folds = list(cross_validation.fold_models(single, rows, graph, decided, cv=cv))
    elif not many:
        hubs = np.setdiff1d(graph.rows[graph.end_rows], np.concatenate([fold.rows for fold in folds]))
        decided[hubs] = model.decision_function(rows[hubs]) if len(hubs) else 0.0
    predicted = cross_validation.predictions_of(folds, rows, decided)
    counted = cross_validation.held_out_rows(folds, data.random_points)
    rates = error_rates_of(model) if options.is_joint and not model.answer_model_.certain else None
    if many:
        return folds, None, *agreement_of_many(predicted, rates, folds, graph, counted)
    shown = cross_validation.without_seen_clusters(graph, folds)
    accuracy = cross_validation.held_out_accuracy(
        predicted, shown, n_splits=len(folds), error_rate=rates, prior=options.prior, random_points=counted
    )
    return folds, accuracy, None, []


def prior_of_random_points(model: Estimator, data: TrainingData) -> PriorEstimate:
    """Estimate the share of class +1 from the random points; without any, 1/2 from 0 to 1."""
    rows, graph = data.stacked
    decision = model.decision_function(rows)
    unlabeled = graph.rows[graph.source == U]
    among = decision[unlabeled] if len(unlabeled) else decision
    # Labels may have named the smaller class +1.
    known = {"decision": decision, "majority": "positive" if np.mean(among > 0) >= 0.5 else "negative"}
    try:
        return estimate_prior(y=graph, random_points=data.random_points, error_rate=error_rates_of(model), **known)
    except UndeterminedError:
        return PriorEstimate(0.5, 0.0, 1.0, False, 0.0, 0.0, 0.95, 0.0)


def error_rates_of(model: Estimator) -> AnswerModel | None:
    """Return the answer model with rates away from 0 and 1/2, but that of a crowd; None if all answers are right."""
    found: AnswerModel = model.answer_model_
    if found.certain or found.of_crowd:
        return found if found.of_crowd else None
    return found.with_rates(lambda rate: min(max(rate.value, _FEWEST_ERRORS), _MOST_ERRORS))


def agreement_of_many(
    predicted: Array | Codes,
    rates: AnswerModel | None,
    folds: list[FoldModel],
    graph: AnswerGraph,
    counted: Mask | None,
) -> tuple[ClassAgreement, list[Finding]]:
    """Return the agreement with more than two classes, and a finding if a constant class or chance would do as well."""
    found = cross_validation.held_out_agreement(predicted, graph, folds, error_rate=rates, random_points=counted)
    asked = cross_validation.held_out_answers(folds, graph, counted)
    if not asked.any():
        return found, []
    shown = graph.rows[graph.end_rows[asked]]
    shares = np.unique(predicted[shown], return_counts=True)[1] / shown.size
    if found.accuracy is not None:
        low, chance = found.accuracy.low, float(shares.max())
    else:
        equal = float(shares @ shares)
        similar = float(np.mean(graph.same[asked] > 0))
        low, chance = found.agreement.low, equal * similar + (1 - equal) * (1 - similar)
    return found, [] if low > chance else [NoBetterThanGuessing(low=low, chance=chance)]


def most_doubtful(model: Estimator, data: TrainingData, names: Sequence[str]) -> tuple[DoubtfulAnswer, ...]:
    """Return the answers that are most likely wrong, with ids and names of annotators."""
    rows, graph = data.stacked
    asked = slice(data.ends.size)
    found = doubtful_answers(model, rows[asked], np.asarray(graph)[asked])
    answers = []
    for code, wrong, annotator in zip(found.code[:_DOUBTFUL], found.wrong, found.annotator, strict=False):
        first, second = data.ends[abs(code) - 1].tolist()
        share = float(np.clip(wrong, 0, 1))
        answers.append(DoubtfulAnswer(data.ids[first], data.ids[second], bool(code > 0), names[annotator], share))
    return tuple(answers)


def column_importances(whole: Estimator, folds: list[FoldModel], data: TrainingData) -> tuple[ColumnImportance, ...]:
    """Return what held-out answers, all taken to be right, lose if a column is shuffled, the largest loss first."""
    graph = data.stacked[1]
    columns = data.columns
    if len(np.unique(graph.same)) < 2:
        return ()
    n_judged = min(graph.n_answers, _MOST_ANSWERS)
    judged_answers = np.sort(np.random.default_rng(0).choice(graph.n_answers, n_judged, replace=False))
    asked = graph.rows[graph.end_rows[judged_answers]].ravel()
    held = data.X[graph.points[graph.ends[judged_answers].ravel()]]
    if held.size > _MOST_NUMBERS:
        return ()
    values = columns.values(held)
    strengths = np.zeros(len(columns.parts))
    if columns.encoder is None:
        by_feature = np.abs(list(records.feature_strengths(whole, whole.classes_.tolist()).values())).max(axis=0)
        strengths = np.array([by_feature[part].sum() for _, part in columns.parts])
    judged = np.argsort(-strengths, kind="stable")[:_JUDGED]
    # No fold holds out a hub: the model of all rows decides it.
    model_of = np.full(graph.n_given, len(folds))
    for k, fold in enumerate(folds):
        model_of[fold.rows] = k
    models = [*(fold.decide for fold in folds), whole.decision_function]

    def decide(X: Array) -> Array:
        """Decide the rows in answers, each by its model, with ``X``, one or more copies, as the judged columns."""
        n_copies = len(X) // len(values)
        changed = np.tile(values, (n_copies, 1))
        changed[:, judged] = X
        copies = columns.rows(changed, np.tile(held, (n_copies, 1)))
        by = np.tile(model_of[asked], n_copies)
        decided = {k: models[k](copies[by == k]) for k in np.unique(by)}
        decision = np.empty((len(by), *next(iter(decided.values())).shape[1:]))
        for k, part in decided.items():
            decision[by == k] = part
        return decision

    model = SimpleNamespace(decision_function=decide)
    # Without annotators and labels: the likelihood with these takes a hundred times as long.
    codes = (graph.same * graph.codes)[judged_answers]
    y = np.column_stack([np.repeat(codes, 2), graph.points[graph.ends[judged_answers]].ravel()])
    # The rows have been checked once; they would be checked hundreds of times.
    with config_context(assume_finite=True):
        found = pair_importance(model, values[:, judged], y, n_repeats=_REPEATS, random_state=0)
    order = np.argsort(-found.mean, kind="stable").tolist()
    names = [columns.columns[k].name for k in judged]
    return tuple(ColumnImportance(names[k], float(found.mean[k]), float(found.error[k])) for k in order)


def column_dependences(
    model: TableModel, X: Rows, importances: tuple[ColumnImportance, ...]
) -> tuple[ColumnDependence, ...]:
    """Return the partial dependence on the most important columns, over a sample of rows."""
    if len(model.classes) != 2 or model.link is None:
        return ()
    columns = model.columns
    drawn = np.random.default_rng(0).permutation(X.shape[0])[: records.MAX_DEPENDENCE_ROWS]
    rows = X[np.sort(drawn)]
    values = columns.values(rows)
    places = {column.name: k for k, column in enumerate(columns.columns)}
    # Texts and pictures have no values in order.
    ordered = [one.column for one in importances if one.loss > one.error]
    worth = [places[name] for name in ordered if name not in columns.transformers]
    varied = [k for k in worth if np.nanmax(values[:, k]) > np.nanmin(values[:, k])]
    return tuple(_dependence(model.estimator, columns, rows, values, k) for k in varied[:_DRAWN])


def _dependence(model: Estimator, columns: Columns, X: Array, values: Array, k: int) -> ColumnDependence:
    """Return the mean probability of the second class if every row has a value in column ``k``."""
    column = columns.columns[k]
    present = values[~np.isnan(values[:, k]), k]
    grid = np.unique(present)
    if column.kind != "category" and len(grid) >= _GRID:
        low, high = mquantiles(present, _MIDDLE)
        if high - low <= 1e-6 * max(abs(low), abs(high)):
            # Nearly all rows have one value: take the whole range.
            low, high = grid[[0, -1]]
        grid = np.linspace(low, high, _GRID)
    rows = np.tile(values, (len(grid), 1))
    rows[:, k] = np.repeat(grid, len(values))
    found = model.predict_proba(columns.rows(rows, np.tile(X, (len(grid), 1))))[:, 1]
    means = found.reshape(len(grid), -1).mean(axis=1)
    shown = grid.astype("datetime64[D]").astype(str) if column.kind == "date" else grid
    if column.kind in ("boolean", "category"):
        names = ("false", "true") if column.kind == "boolean" else (*column.categories, "none of these")
        shown = np.array(names, dtype=object)[grid.astype(int)]
    return ColumnDependence(column.name, tuple(shown.tolist()), tuple(means.tolist()))
