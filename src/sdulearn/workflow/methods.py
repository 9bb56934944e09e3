"""The names of methods and the estimators they stand for."""

from __future__ import annotations

from sdulearn.blocks import Blocks
from sdulearn.boosting.estimators import ScoreClassifier, TreesOfRounds
from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.report.facts import chosen_settings
from sdulearn.risks import RISKS
from sdulearn.streaming import SDUClassifier as StreamingClassifier
from sdulearn.types import Estimator
from sdulearn.workflow.training import Request

METHODS = ("auto", "joint", *RISKS)


def is_joint(method: str) -> bool:
    """Whether the method looks at both ends of a pair together."""
    return method in ("auto", "joint")


def estimator_of(request: Request, folds: int, n_classes: int | str = 2) -> Estimator:
    """The linear estimator that chooses its settings on answers alone; "auto" is the joint one."""
    if is_joint(request.method):
        return PairLogisticRegressionCV(
            n_classes=n_classes,
            prior=request.prior,
            prior_strength=request.prior_strength,
            error_rate=request.error_rate,
            cv=folds,
        )
    return SDUClassifierCV(request.method, request.loss, prior=request.prior, cv=folds)


def with_its_settings(model: Estimator) -> Estimator:
    """An unfitted estimator with the settings that a fitted one chose."""
    if isinstance(model, ScoreClassifier):
        return TreesOfRounds(
            n_rounds=model.n_rounds_,
            with_kernel=model.start_.has_kernel,
            n_classes=model.n_classes,
            prior=model.prior,
            prior_strength=model.prior_strength,
            error_rate=model.answer_model_.rates,
        )
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


def refit_on(model: Estimator, blocks: Blocks, same_answers: bool) -> Estimator:
    """An estimator of the same risk fitted on all blocks, with the settings chosen on a few rows.

    Where the blocks have no answers but those of the model, its prior is theirs: blocks do not show
    which answers share points.
    """
    parameters = with_its_settings(model).get_params()
    if not same_answers:
        return StreamingClassifier(**parameters).set_params(prior=model.prior).fit(blocks)
    fitted = StreamingClassifier(**parameters).fit(blocks).set_params(prior=model.prior)
    fitted.prior_ = model.prior_
    return fitted
