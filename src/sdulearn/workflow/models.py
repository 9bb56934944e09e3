"""Which kind of model is fitted to a table, and how many classes it has."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.boosting import PairBoostingClassifier, PairModelCV
from sdulearn.diagnostics import ACCURACY_FOLDS, Finding
from sdulearn.extras import is_there
from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.metrics import folds_over_points
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.report.records import ModelChoice
from sdulearn.types import Array, Codes, Estimator, Rows
from sdulearn.workflow.methods import estimator_of, is_joint
from sdulearn.workflow.training import Request, TrainingData

MODELS = ("auto", "linear", "boosted")
# Trees stop by held-out answers, in every fold of the accuracy too.
_FEWEST_OF_A_KIND = 2
# With fewer answers trees win by chance alone.
_FEWEST_ANSWERS = 60
# Beyond so many features the comparison takes more than a few seconds.
_MOST_FEATURES = 100
# Trees must be better by so many standard errors: a tie keeps the line. A whole one would cost more than it saves:
# half a point of accuracy over the ten sets of the benchmark, at 200 answers.
_TIE = 0.25
# And by so much in the log-likelihood of all answers together: the rounds were chosen by the same held-out answers, so
# trees are never worse there. It alone counts where answers hang together, and there is no standard error.
_TIE_IN_ALL = 1.0


def number_of_classes(request: Request, data: TrainingData, folds: int) -> tuple[int | str, tuple[int, int] | None]:
    """As asked for, as the labels name, or by the held-out likelihood of the answers; then with its interval.

    Labels are set aside for the search, as what they are called depends on its result. "auto" comes back where
    the fit itself can search.
    """
    labels = data.labels
    if request.classes is None:
        return 2 if labels is None else len(labels.names), None
    if request.classes != "auto" or (labels is None and request.model != "boosted"):
        return request.classes, None
    rows, y, weights = replace(data, labels=None).stacked()
    model = PairLogisticRegressionCV(n_classes="auto", error_rate=request.error_rate, cv=folds).fit(rows, y, weights)
    n_named = 2 if labels is None else labels.n_named
    low, high = model.n_classes_interval_
    return max(model.n_classes_, n_named), (max(low, n_named), max(high, n_named))


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted estimator, why it is of this kind, and how often answers are wrong where it takes that into account."""

    estimator: Estimator
    choice: ModelChoice
    rates: AnswerModel | None


def fit_model(
    request: Request, n_classes: int | str, rows: Rows, y: Codes, weights: Array | None, folds: int
) -> FittedModel:
    """The model that was asked for, or the better of the two."""
    comparing = compares(request) and not why_linear(request, n_classes, rows, y)
    if request.model != "boosted" and not comparing:
        return _fit_line(request, n_classes, rows, y, weights, folds, ModelChoice())
    rates = _error_rates(request, n_classes, rows, y, weights)
    parameters: dict[str, Any] = {
        "prior": request.prior,
        "prior_strength": request.prior_strength,
        "error_rate": rates.rates,
        "cv": folds,
    }
    if request.model == "boosted":
        trees = PairBoostingClassifier(n_classes=int(n_classes), **parameters).fit(rows, y, weights)
        curve = trees.held_out_log_likelihood_
        scores = {"linear": float(curve[0]), "boosted": float(curve[trees.n_rounds_])}
        return FittedModel(trees, ModelChoice("boosted", scores), rates)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        both = PairModelCV(["linear", "boosted"], **parameters).fit(rows, y, weights)
    choice = _choice(both, _n_answers(y))
    if choice.name == "boosted":
        for note in caught:
            warnings.warn(note.message, note.category, stacklevel=2)
        return FittedModel(both, choice, rates)
    # The linear model itself has coefficients, and can be written to ONNX.
    return _fit_line(request, n_classes, rows, y, weights, folds, choice)


def _fit_line(
    request: Request,
    n_classes: int | str,
    rows: Rows,
    y: Codes,
    weights: Array | None,
    folds: int,
    choice: ModelChoice,
) -> FittedModel:
    model = estimator_of(request, folds, n_classes).fit(rows, y, weights)
    return FittedModel(model, choice, getattr(model, "answer_model_", None))


def _error_rates(request: Request, n_classes: int | str, rows: Rows, y: Codes, weights: Array | None) -> AnswerModel:
    """With their intervals, which trees do not keep."""
    line = PairLogisticRegression(n_classes=int(n_classes), prior=request.prior, error_rate=request.error_rate)
    return line.fit(rows, y, weights).answer_model_


def _choice(model: PairModelCV, n_answers: int) -> ModelChoice:
    table = model.cv_results_
    scores = dict(zip(table["model"], table["mean_test_score"].tolist(), strict=True))
    gap_error = float(np.max(table["gap_error"]))
    known = gap_error if np.isfinite(gap_error) else None
    margin = max(_TIE * (known or 0.0), _TIE_IN_ALL / n_answers)
    better = scores["boosted"] - scores["linear"] > margin
    return ModelChoice("boosted" if better else "linear", scores, known)


def compares(request: Request) -> bool:
    """Whether trees are possible for this method, where the work is done, and a comparison was asked for."""
    return request.model in ("auto", None) and is_joint(request.method) and request.engine == "memory"


def why_linear(request: Request, n_classes: int | str, rows: Rows, y: Codes) -> list[Finding]:
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
