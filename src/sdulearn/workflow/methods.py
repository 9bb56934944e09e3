"""The names of ``--method`` and the estimators they stand for."""

from __future__ import annotations

from typing import Any

from sdulearn.blocks import Blocks, fit_classifier
from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.risks import RISKS

METHODS = ("auto", "joint", *RISKS)


def estimator_of(method: str, loss: str, prior: float | None, folds: int) -> Any:
    """The estimator that chooses its settings on pairs alone; "auto" is the joint one."""
    if is_joint(method):
        return PairLogisticRegressionCV(prior=prior, cv=folds)
    return SDUClassifierCV(method, loss, prior=prior, cv=folds)


def is_joint(method: str) -> bool:
    """Whether the method looks at both ends of a pair together."""
    return method in ("auto", "joint")


def with_its_settings(model: Any) -> Any:
    """An unfitted estimator with the settings that a fitted one chose."""
    if isinstance(model, PairLogisticRegressionCV):
        return PairLogisticRegression(model.alpha_, covariance_power=model.covariance_power_, prior=model.prior)
    gamma = 0.5 if model.gamma_ is None else model.gamma_
    return SDUClassifier(model.risk, model.loss, gamma=gamma, alpha=model.alpha_, prior=model.prior_.value)


def refit_on(model: Any, blocks: Blocks) -> None:
    """Fit a model of a marginal risk again, on all blocks, with the settings it has chosen on a few rows."""
    again = with_its_settings(model).set_params(prior=model.prior)
    fit_classifier(again, blocks)
    for name in ("coef_", "intercept_", "prior_", "objective_", "optimality_", "n_iter_"):
        setattr(model, name, getattr(again, name))
