"""The names of ``--method`` and the estimators they stand for."""

from __future__ import annotations

from typing import Any

from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.risks import RISKS

METHODS = ("auto", "joint", *RISKS)


def estimator_of(method: str, loss: str, prior: float | None, folds: int) -> Any:
    """The estimator that chooses its settings on pairs alone; "auto" is the joint one."""
    if method in ("auto", "joint"):
        return PairLogisticRegressionCV(prior=prior, cv=folds)
    return SDUClassifierCV(method, loss, prior=prior, cv=folds)


def with_its_settings(model: Any) -> Any:
    """An unfitted estimator with the settings that a fitted one chose."""
    if isinstance(model, PairLogisticRegressionCV):
        return PairLogisticRegression(model.alpha_, metric=model.metric_, prior=model.prior)
    gamma = 0.5 if model.gamma_ is None else model.gamma_
    return SDUClassifier(model.risk, model.loss, gamma=gamma, alpha=model.alpha_, prior=model.prior_.value)
