"""The methods under comparison: each takes a trial and returns classes for the test points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegressionCV

from reproduction.baselines import ConstrainedKMeans, ITMLKMeans, SpectralPairs
from reproduction.trials import Labels, Trial
from sdulearn import PairLogisticRegressionCV, SDUClassifierCV
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.risks import RISKS
from sdulearn.types import Array, Estimator

PENALTIES = (1e-1, 1e-4, 1e-7)
"""The penalties that the paper states."""

Predict = Callable[[Trial, float | None, int], Labels]
"""(trial, prior or None to estimate it, seed) -> class or cluster of each test point."""


@dataclass(frozen=True)
class Method:
    """A column of a table: its headline and what it does.

    A clustering names clusters, not classes: the better of the two namings counts, as in the paper.
    """

    label: str
    predict: Predict
    clustering: bool = False


def accuracy(predicted: Labels, y_test: Labels, *, matched: bool) -> float:
    """Share of right answers; ``matched``: under the better of the two namings of the classes."""
    right = float(np.mean(predicted == y_test))
    return max(right, 1 - right) if matched else right


def _sdu(risk: str, loss: str) -> Predict:
    """By the penalties that the paper states."""

    def predict(trial: Trial, prior: float | None, seed: int) -> Labels:
        model = SDUClassifierCV(risk, loss, alphas=PENALTIES, prior=prior)
        return model.fit(trial.rows, trial.codes).predict(trial.X_test)

    return predict


def _as_printed(risk: str) -> Predict:
    """Double hinge by the objective of the paper's appendix: 1/2 w'w, and the bias an entry of w."""

    def predict(trial: Trial, prior: float | None, seed: int) -> Labels:
        model = SDUClassifierCV(risk, "double_hinge", alphas=[1.0], prior=prior, fit_intercept=False)
        return model.fit(_with_ones(trial.rows), trial.codes).predict(_with_ones(trial.X_test))

    return predict


def _with_ones(X: Array) -> Array:
    return np.column_stack([X, np.ones(len(X))])


def _clustering(make: Callable[[int], Estimator]) -> Predict:
    """A clustering that ``make`` builds from a seed; k-means itself passes over the codes."""

    def predict(trial: Trial, prior: float | None, seed: int) -> Labels:
        return as_classes(make(seed).fit(trial.rows, trial.codes).predict(trial.X_test))

    return predict


def _spectral(trial: Trial, prior: float | None, seed: int) -> Labels:
    """On training and test points together, as the paper did."""
    rows = np.vstack([trial.rows, trial.X_test])
    codes = np.concatenate([trial.codes, np.zeros(len(trial.X_test), dtype=np.int64)])
    model = SpectralPairs(random_state=seed).fit(rows, codes)
    return as_classes(model.labels_[len(trial.rows) :])


def _joint(trial: Trial, prior: float | None, seed: int) -> Labels:
    model = PairLogisticRegressionCV(prior=prior)
    return model.fit(trial.rows, trial.codes).predict(trial.X_test)


def _supervised(trial: Trial, prior: float | None, seed: int) -> Labels:
    """The oracle: logistic regression on the true classes of the ends of all pairs."""
    ends = trial.codes != 0
    with warnings.catch_warnings():
        # scikit-learn announces changes of defaults that do not matter here.
        warnings.simplefilter("ignore", FutureWarning)
        model = LogisticRegressionCV(cv=5, max_iter=1000).fit(trial.rows[ends], trial.labels[ends])
    return model.predict(trial.X_test)


def as_classes(clusters: NDArray[np.integer]) -> Labels:
    """Two clusters as -1 and +1, in some order."""
    return np.where(clusters == np.min(clusters), -1, 1)


METHODS: dict[str, Method] = {
    **{
        f"{risk}-{loss}": Method(f"{risk.upper()} {loss.replace('_', ' ')}", _sdu(risk, loss))
        for risk in RISKS
        for loss in TRAINING_LOSSES
    },
    **{f"{risk}-printed": Method(f"{risk.upper()} double hinge as printed", _as_printed(risk)) for risk in RISKS},
    "km": Method("KM", _clustering(lambda seed: KMeans(2, n_init=10, random_state=seed)), clustering=True),
    "ckm": Method("CKM", _clustering(lambda seed: ConstrainedKMeans(random_state=seed)), clustering=True),
    "ssp": Method("SSP", _spectral, clustering=True),
    "itml": Method("ITML", _clustering(lambda seed: ITMLKMeans(random_state=seed)), clustering=True),
    "joint": Method("Joint", _joint),
    "supervised": Method("Supervised", _supervised),
}
