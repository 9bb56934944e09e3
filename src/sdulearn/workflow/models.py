"""Which model is fitted to a table: its kind, its number of classes, its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sdulearn.blocks import Blocks
from sdulearn.boosting import PairBoostingClassifier, PairModelCV
from sdulearn.boosting.score_classifier import ScoreClassifier
from sdulearn.diagnostics import ACCURACY_FOLDS, Finding
from sdulearn.errors import is_there
from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.metrics import folds_over_points
from sdulearn.metrics.cross_validation import FoldModel
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.report.facts import chosen_settings
from sdulearn.report.records import ModelChoice
from sdulearn.types import Array, Codes, Estimator, Rows
from sdulearn.workflow.data import TrainingData
from sdulearn.workflow.options import FitOptions

# Of a choice; for the accuracy there are more, so that each model is nearly the one that is kept.
_MAX_FOLDS = 5
# Trees stop by held-out answers, in every fold of the accuracy too.
_FEWEST_OF_A_KIND = 2
# With fewer answers trees win by chance alone.
_FEWEST_ANSWERS = 60
# Beyond so many features the comparison takes more than a few seconds.
_MOST_FEATURES = 100


@dataclass(frozen=True, eq=False)
class Choice:
    """A fitted estimator, and why it is of this kind."""

    estimator: Estimator
    kind: ModelChoice
    parts: tuple[FoldModel, ...] = ()  # models of folds that the choice was made by, where they were kept


def number_of_classes(options: FitOptions, data: TrainingData) -> tuple[int | str, tuple[int, int] | None]:
    """As asked for, as the labels name, or by the held-out likelihood of the answers; then with its interval.

    Labels are set aside for the search, as what they are called depends on its result. "auto" comes back where
    the fit itself can search.
    """
    n_named = max(2, len(set(data.labels.values())))
    if options.classes is None:
        return n_named, None
    if options.classes != "auto" or (not data.labels and options.model != "boosted"):
        return options.classes, None
    rows, y, weights = data.stacked()
    model = PairLogisticRegressionCV(n_classes="auto", error_rate=options.error_rate, cv=_folds(data))
    low, high = model.fit(rows, y, weights).n_classes_interval_
    return max(model.n_classes_, n_named), (max(low, n_named), max(high, n_named))


def _folds(data: TrainingData) -> int:
    n_similar = int(data.similar.sum())
    return min([_MAX_FOLDS, *(n for n in (n_similar, len(data.similar) - n_similar) if n)])


def choose(
    options: FitOptions, data: TrainingData, n_classes: int | str, rows: Rows, y: Codes, weights: Array | None
) -> Choice:
    """The model that was asked for, or the better of the two, with the settings that held-out answers favour."""
    folds = _folds(data)
    comparing = compares(options) and not why_linear(n_classes, rows, y)
    if options.model != "boosted" and not comparing:
        return _fit_linear(options, n_classes, rows, y, weights, folds, ModelChoice())
    parameters: dict[str, Any] = {
        "prior": options.prior,
        "prior_strength": options.prior_strength,
        "error_rate": options.error_rate,
        # Of two classes they judge the accuracy too: trees of four fifths of the answers are worse by points.
        "cv": ACCURACY_FOLDS if n_classes == 2 else folds,
    }
    if options.model == "boosted":
        trees = PairBoostingClassifier(n_classes=int(n_classes), **parameters).fit(rows, y, weights)
        curve = trees.held_out_log_likelihood_
        scores = {"linear": float(curve[0]), "boosted": float(curve[trees.n_rounds_])}
        return Choice(trees, ModelChoice("boosted", scores), _parts(trees))
    both = PairModelCV(["linear", "boosted"], **parameters).fit(rows, y, weights)
    table = both.cv_results_
    gap_error = float(np.max(table["gap_error"]))
    scores = dict(zip(table["model"], table["mean_test_score"].tolist(), strict=True))
    kind = ModelChoice(both.model_, scores, gap_error if np.isfinite(gap_error) else None)
    # The linear model itself has coefficients, and can be written to ONNX.
    return Choice(both.best_estimator_, kind, _parts(both))


def _parts(model: ScoreClassifier) -> tuple[FoldModel, ...]:
    """The models that the choice was made by."""
    return tuple(FoldModel(rows, fold) for rows, fold in model.fold_models_)


def _fit_linear(
    options: FitOptions,
    n_classes: int | str,
    rows: Rows,
    y: Codes,
    weights: Array | None,
    folds: int,
    kind: ModelChoice,
) -> Choice:
    """The linear estimator that chooses its settings on answers alone; "auto" is the joint one."""
    if options.is_joint:
        joint = PairLogisticRegressionCV(
            n_classes=n_classes,
            prior=options.prior,
            prior_strength=options.prior_strength,
            error_rate=options.error_rate,
            cv=folds,
        ).fit(rows, y, weights)
        return Choice(joint, kind)
    model = SDUClassifierCV(options.method, options.loss, prior=options.prior, cv=folds)
    return Choice(model.fit(rows, y, weights), kind)


def compares(options: FitOptions) -> bool:
    """Whether trees are possible for this method, and a comparison was asked for."""
    return options.model in ("auto", None) and options.is_joint


def why_linear(n_classes: int | str, rows: Rows, y: Codes) -> list[Finding]:
    """Why models are not compared, as a finding; nothing where they are."""
    reasons = {
        "classes": n_classes != 2,
        "lightgbm": not is_there("lightgbm"),
        "answers": _n_answers(y) < _FEWEST_ANSWERS,
        "features": rows.shape[1] > _MOST_FEATURES,
        "folds": _fewest_in_a_fold(read_pairs(y)) < _FEWEST_OF_A_KIND,
    }
    true = [name for name, holds in reasons.items() if holds]
    if not true:
        return []
    limits = {"answers": _FEWEST_ANSWERS, "features": _MOST_FEATURES}
    return [Finding("linear_alone", "info", {"reason": true[0], "limit": limits.get(true[0])})]


def _n_answers(y: Codes) -> int:
    return int(np.sum(y[:, 0] != 0)) // 2


def _fewest_in_a_fold(pairs: Pairs) -> int:
    """The fewest answers of a kind that a model has to learn from, of those that the accuracy is found by."""
    kinds = np.unique(np.sign(pairs.codes[pairs.codes != 0]))
    trains = [train for train, _ in folds_over_points(ACCURACY_FOLDS, pairs).split(None, pairs)]
    return min(int(np.sum(np.sign(pairs.codes[train]) == kind)) // 2 for train in trains for kind in kinds)


def at_its_settings(model: Estimator) -> Estimator:
    """An unfitted estimator with the settings that a fitted one chose."""
    if isinstance(model, PairLogisticRegressionCV):
        return PairLogisticRegression(
            model.alpha_,
            covariance_power=model.covariance_power_,
            n_classes=len(model.classes_),
            prior=model.prior,
            prior_strength=model.prior_strength,
            error_rate=model.answer_model_.rates,
        )
    found = chosen_settings(model)
    gamma = found.get("gamma", 0.5)
    return SDUClassifier(model.risk, model.loss, gamma=gamma, alpha=found["alpha"], prior=model.prior_.value)


def fit_on_all(model: Estimator, blocks: Blocks, same_answers: bool) -> Estimator:
    """An estimator of the same risk fitted on all blocks, with the settings chosen on a few rows.

    Where the blocks have no answers but those of the model, its prior is theirs: blocks do not show
    which answers share points.
    """
    from sdulearn.streaming import SDUClassifier as StreamingClassifier

    parameters = at_its_settings(model).get_params()
    if not same_answers:
        return StreamingClassifier(**parameters).set_params(prior=model.prior).fit(blocks)
    fitted = StreamingClassifier(**parameters).fit(blocks).set_params(prior=model.prior)
    fitted.prior_ = model.prior_
    return fitted
