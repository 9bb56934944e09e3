"""The fitted estimator that an :class:`Asker` hands out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.asking.estimates import class_order, class_table
from sdulearn.asking.scorer import Scorer
from sdulearn.asking.state import State
from sdulearn.base import Fit
from sdulearn.errors import OrientationWarning
from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.prior import PriorEstimate
from sdulearn.sklearn_private import check_feature_names
from sdulearn.types import Array, Codes, Estimator, Rows


def linked_model(state: State, X: Rows, graph: AnswerGraph) -> PairLogisticRegression:
    """The model within, as an estimator of the library, on the features as they were given; see :meth:`Asker.model`."""
    coef, intercept = _on_features(state)
    order = class_order(state)
    n_classes = len(order)
    n = len(state.learned)
    # Of two classes the difference of the lines counts: |W|^2 is half its square.
    alpha = state.settings.penalty / n / (2 if n_classes == 2 else 1)
    power = state.settings.power
    model = PairLogisticRegression(
        alpha, covariance_power=power, n_classes=n_classes, prior_strength=0.0, error_rate=state.error
    )
    coef = np.ascontiguousarray(coef[:, order].T)
    intercept = intercept[order]
    # Questions go on before the model has converged.
    fitted = {"answer_model_": AnswerModel.given(state.error, graph)}
    certificate: dict[str, Any] = {"n_iter": 1, "tol": np.inf, "fitted": fitted}
    certificate["objective"], certificate["optimality"] = _certificate(state)
    if n_classes == 2:
        fit = Fit(coef[:1] - coef[1:], intercept[:1] - intercept[1:], prior=_prior(state), **certificate)
    else:
        shares = np.exp(_scorer(state).of_candidates).mean(axis=0)[order]
        fit = Fit(coef, intercept, shares=shares, **certificate)
    check_feature_names(model, X, reset=True)
    return model._accept(fit)


def _scorer(state: State) -> Scorer:
    assert state.scorer is not None
    return state.scorer


def _prior(state: State) -> PriorEstimate:
    """Share of the larger class among the random points; the counts of chosen questions imply none."""
    larger = class_table(state, 0.95)[0]
    if np.isnan(larger.share):
        return PriorEstimate(0.5, 0.0, 1.0, False, n_similar=0.0, n_dissimilar=0.0)
    return PriorEstimate(larger.share, larger.low, larger.high, larger.low > 0.5, confidence=0.95)


def _certificate(state: State) -> tuple[float, float]:
    """Value of the objective and norm of its gradient, a point, at the posteriors that the model itself implies."""
    scorer = _scorer(state)
    Q = state.expected_classes
    rows = state.points.coordinates(state.learned) * state.points.stretch(state.settings.power)
    A = np.column_stack([rows, np.ones(len(rows))])
    log_p = scorer.log_probabilities(state.learned)
    ridge = state.settings.penalty * scorer.coef
    ridge[-1] = 0.0
    value = 0.5 * np.vdot(scorer.coef, ridge) - np.vdot(Q, log_p)
    gradient = A.T @ (np.exp(log_p) * Q.sum(axis=1, keepdims=True) - Q) + ridge
    return float(value) / len(rows), float(np.linalg.norm(gradient)) / len(rows)


def _on_features(state: State) -> tuple[Array, Array]:
    """Weights and intercepts for features that are neither standardised nor turned."""
    scorer = _scorer(state)
    points = state.points
    turned = scorer.coef[:-1] * points.stretch(state.settings.power)[:, None]
    coef = (points.axes @ turned) / points.scale[:, None]
    return coef, scorer.coef[-1] - points.mean @ coef


def fit_standardised(model: Estimator, rows: Rows, y: Codes) -> Estimator:
    """Fit to standardised rows, and write the lines for the columns as given; sparse rows keep their zeros."""
    scaler = _scaler(rows).fit(rows)
    with warnings.catch_warnings():
        # The answers do not say which class is +1, and nobody claims to know.
        warnings.simplefilter("ignore", OrientationWarning)
        model.fit(scaler.transform(rows), y)
    model.coef_ = model.coef_ / scaler.scale_
    if scaler.with_mean:
        model.intercept_ = model.intercept_ - model.coef_ @ scaler.mean_
    check_feature_names(model, rows, reset=True)
    return model


def class_of_point(state: State) -> Codes:
    """The class of each point as the answers say, 0 where they do not: -1 or +1, the larger; else 1 to K."""
    n_classes = len(state.numbers)
    place = np.argsort(class_order(state))
    names = 1 - 2 * place if n_classes == 2 else place + 1
    found = np.zeros(state.points.n_points, dtype=np.int64)
    found[state.known] = names[state.column]
    return found


def told_or_predicted(state: State, model: Estimator) -> Codes:
    """The class of every point: as the answers say, or the likeliest of those that they leave."""
    told = class_of_point(state)
    found = np.where(told == 0, model.predict(state.points.X), told)
    if state.scorer is not None and len(state.partial):
        columns = state.narrowed(state.scorer).argmax(axis=1)
        found[state.partial] = told[state.known[[np.flatnonzero(state.column == k)[0] for k in columns]]]
    return found


def random_estimator(rows: Rows, error_rate: float | str) -> Estimator:
    """Standardised features and the joint likelihood of loose pairs."""
    return make_pipeline(_scaler(rows), PairLogisticRegressionCV(error_rate=error_rate))


def _scaler(rows: Rows) -> StandardScaler:
    return StandardScaler(with_mean=not sparse.issparse(rows))
