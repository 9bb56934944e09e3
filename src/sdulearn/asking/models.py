"""The fitted estimator that an :class:`Asker` hands out."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn.asking.estimates import class_order
from sdulearn.asking.state import State
from sdulearn.errors import OrientationWarning
from sdulearn.joint import PairLogisticRegressionCV
from sdulearn.types import Array, Codes, Estimator, Rows


def fit_linked(state: State) -> Estimator:
    """The model of linked answers, on the features as they were given.

    Linked answers are labels up to the names of the classes, so the model within is that of the graph likelihood; its
    accuracy is what :meth:`Asker.accuracy` estimates. It is handed out as scikit-learn's estimator of the same form.

    Parameters
    ----------
    state : State
        The answers, of two classes or more.

    Returns
    -------
    LogisticRegression
        Its classes are -1 and +1, the larger one, or 1 to K, the largest first.
    """
    coef, intercept = _on_features(state)
    order = class_order(state)
    model = LogisticRegression(C=1 / state.settings.penalty)
    model.n_features_in_ = len(coef)
    model.n_iter_ = np.array([1])
    if len(order) == 2:
        model.classes_ = np.array([-1, 1])
        model.coef_ = (coef[:, order[0]] - coef[:, order[1]])[None, :]
        model.intercept_ = intercept[[order[0]]] - intercept[[order[1]]]
    else:
        model.classes_ = np.arange(1, len(order) + 1)
        model.coef_ = np.ascontiguousarray(coef[:, order].T)
        model.intercept_ = intercept[order]
    return model


def told_or_predicted(state: State, model: Estimator) -> Codes:
    """The class of every point: as the answers say, or the likeliest of those that they leave."""
    found = np.asarray(model.predict(state.points.X))
    # The larger of two classes is +1, the last of them; more are in the order of their names.
    names = model.classes_[::-1] if len(model.classes_) == 2 else model.classes_
    name_of_column = names[np.argsort(class_order(state))]
    found[state.known] = name_of_column[state.column]
    if state.scorer is not None:
        found[state.partial] = name_of_column[state.narrowed(state.scorer).argmax(axis=1)]
    return found


def _on_features(state: State) -> tuple[Array, Array]:
    """Weights and intercepts for features that are neither standardised nor turned."""
    assert state.scorer is not None
    points = state.points
    turned = state.scorer.coef[:-1] * points.stretch(state.settings.power)[:, None]
    coef = (points.axes @ turned) / points.scale[:, None]
    return coef, state.scorer.coef[-1] - points.mean @ coef


def fit_random(rows: Rows, y: Codes) -> Estimator:
    """The model of loose pairs."""
    with warnings.catch_warnings():
        # The answers do not say which class is +1, and nobody claims to know.
        warnings.simplefilter("ignore", OrientationWarning)
        return random_estimator(rows).fit(rows, y)


def random_estimator(rows: Rows) -> Estimator:
    """Standardised features and the joint likelihood of loose pairs; sparse rows keep their zeros."""
    return make_pipeline(StandardScaler(with_mean=not sparse.issparse(rows)), PairLogisticRegressionCV())
