"""Which model is fitted to a table: its kind, its number of classes, its settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from sdulearn.diagnostics import ACCURACY_FOLDS, Finding
from sdulearn.errors import is_there
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.metrics.cross_validation import FoldModel, folds_over_points
from sdulearn.model_selection import fold_parts
from sdulearn.pairs import Pairs
from sdulearn.report.records import ModelChoice, chosen_settings
from sdulearn.types import Array, Codes, Estimator, Rows
from sdulearn.workflow.data import TrainingData
from sdulearn.workflow.options import Engine, FitOptions

# Of a choice; for the accuracy there are more, so that each model is nearly the one that is kept.
_MAX_FOLDS = 5
# Trees stop by held-out answers, in every fold of the accuracy too.
_FEWEST_OF_A_KIND = 2
# With fewer answers trees win by chance alone.
_FEWEST_ANSWERS = 60
# Beyond so many features the comparison takes more than a few seconds.
_MOST_FEATURES = 100
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
    rows, y, weights = data.without_gaps().stacked()
    model = PairLogisticRegressionCV(n_classes="auto", error_rate=options.error_rate, cv=_folds(data))
    low, high = model.fit(rows, y, weights).n_classes_interval_
    return max(model.n_classes_, n_named), (max(low, n_named), max(high, n_named))


def _folds(data: TrainingData) -> int:
    n_similar = int(data.similar.sum())
    return min([_MAX_FOLDS, *(n for n in (n_similar, len(data.similar) - n_similar) if n)])


def choose(
    options: FitOptions, data: TrainingData, n_classes: int | str, rows: Rows, pairs: Pairs, weights: Array | None
) -> tuple[Choice, list[Finding]]:
    """The model that was asked for, or the better of the two, with the settings that held-out answers favour.

    A finding says why models were not compared, where they might have been.
    """
    parameters: dict[str, Any] = {
        "prior": options.prior,
        "prior_strength": options.prior_strength,
        "error_rate": options.error_rate,
        # Of two classes they judge the accuracy too: trees of four fifths of the answers are worse by points.
        "cv": ACCURACY_FOLDS if n_classes == 2 else _folds(data),
    }
    y = np.asarray(pairs)
    if options.model == "boosted":
        return _boosted(parameters | {"n_classes": int(n_classes)}, rows, y, weights), []
    found = why_linear(n_classes, rows, pairs) if options.tries_trees else []
    if options.tries_trees and not found:
        return _compared(parameters, rows, y, weights), []
    rows = np.nan_to_num(rows) if data.columns.keep_gaps else rows
    model: Estimator = SDUClassifierCV(options.method, options.loss, prior=options.prior, cv=_folds(data))
    if options.is_joint:
        parameters["cv"] = folds_over_points(ACCURACY_FOLDS, pairs) if n_classes == 2 else _folds(data)
        model = PairLogisticRegressionCV(n_classes=n_classes, **parameters)
    # Unless a comparison was asked for, only a limit that the table might meet is reported.
    findings = [one for one in found if options.model == "auto" or one.details["reason"] == "features"]
    model.fit(rows, y, weights)
    parts = [FoldModel(*fold) for fold in model.fold_models_] if options.is_joint and n_classes == 2 else []
    return (model, ModelChoice(), parts), findings


def _boosted(parameters: dict[str, Any], rows: Rows, y: Codes, weights: Array | None) -> Choice:
    from sdulearn.boosting.estimators import PairBoostingClassifier

    trees = PairBoostingClassifier(**parameters).fit(rows, y, weights)
    curve = trees.held_out_log_likelihood_
    scores = {"linear": float(curve[0]), "boosted": float(curve[trees.n_rounds_])}
    return trees, ModelChoice("boosted", scores), [FoldModel(*fold) for fold in trees.fold_models_]


def _compared(parameters: dict[str, Any], rows: Rows, y: Codes, weights: Array | None) -> Choice:
    from sdulearn.boosting.estimators import PairModelCV

    both = PairModelCV(["linear", "boosted"], **parameters).fit(rows, y, weights)
    table = both.cv_results_
    gap_error = float(np.max(table["gap_error"]))
    scores = dict(zip(table["model"], table["mean_test_score"].tolist(), strict=True))
    kind = ModelChoice(both.model_, scores, gap_error if np.isfinite(gap_error) else None)
    # The linear model itself has coefficients, and can be written to ONNX.
    return both.best_estimator_, kind, [FoldModel(*fold) for fold in both.fold_models_]


def why_linear(n_classes: int | str, rows: Rows, pairs: Pairs) -> list[Finding]:
    """Why models are not compared, as a finding; nothing where they are."""
    reasons = {
        "classes": n_classes != 2,
        "lightgbm": not is_there("lightgbm"),
        "answers": len(pairs.ends) < _FEWEST_ANSWERS,
        "features": rows.shape[1] > _MOST_FEATURES,
        "folds": _fewest_in_a_fold(pairs) < _FEWEST_OF_A_KIND,
    }
    reason = next((name for name, holds in reasons.items() if holds), None)
    if reason is None:
        return []
    limits = {"answers": _FEWEST_ANSWERS, "features": _MOST_FEATURES}
    return [Finding("linear_alone", "info", {"reason": reason, "limit": limits.get(reason)})]


def _fewest_in_a_fold(pairs: Pairs) -> int:
    """The fewest answers of a kind that a model has to learn from, of those that the accuracy is found by."""
    kinds = np.unique(np.sign(pairs.codes[pairs.codes != 0]))
    trains = [train for train, _ in fold_parts(folds_over_points(ACCURACY_FOLDS, pairs), None, pairs)]
    return min(int(np.sum(np.sign(pairs.codes[train]) == kind)) // 2 for train in trains for kind in kinds)


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
        prior=options.prior,
        prior_strength=options.prior_strength,
        error_rate=model.answer_model_,
    )


def fit_on_all(model: Estimator, options: FitOptions, data: TrainingData, engine: Engine) -> Estimator:
    """An estimator of the same risk fitted on all rows, with the settings chosen on a few of them.

    Where these have no answers but those of the model, its prior is theirs: blocks do not show which answers share
    points.
    """
    from sdulearn.streaming import SDUClassifier as StreamingClassifier

    n_rows = data.n_rows + (0 if data.answers is None else 2 * len(data.ends))
    # Squared loss reads the rows once.
    blocks = engine.blocks(data.parts, n_rows, keep=options.loss != "squared")
    fitted = StreamingClassifier(**at_its_settings(model, options).get_params())
    if not data.same_answers:
        return fitted.set_params(prior=options.prior).fit(blocks)
    fitted.fit(blocks).set_params(prior=options.prior)
    fitted.prior_ = model.prior_
    return fitted
