"""The methods under comparison: each takes a trial and returns classes for the test points."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegressionCV

from sdulearn import SDUClassifierCV
from sdulearn.experiments.data import Trial

Predict = Callable[[Trial, float | None, int], NDArray[Any]]
"""(trial, prior or None to estimate it, seed) -> class or cluster of each test point."""


@dataclass(frozen=True)
class Method:
    """A column of a table.

    Attributes
    ----------
    label : str
        Its headline.
    predict : function
        (trial, prior, seed) -> class or cluster of each test point.
    clustering : bool
        Whether it names clusters, not classes: then the better of the two namings counts, as in the
        paper.
    needs : (module, attribute) or None
        What must be importable for the method to run.
    """

    label: str
    predict: Predict
    clustering: bool = False
    needs: tuple[str, str] | None = None

    def missing(self) -> str | None:
        """Why the method cannot run here, or None."""
        if self.needs is None:
            return None
        module, attribute = self.needs
        try:
            found = hasattr(import_module(module), attribute)
        except ModuleNotFoundError:
            found = False
        return None if found else f"{module}.{attribute} is not in this version of sdulearn"


def accuracy(method: Method, predicted: NDArray[Any], y_test: NDArray[np.int64]) -> float:
    """Share of right answers; for a clustering ``1 - min(r, 1 - r)`` with error rate r."""
    right = float(np.mean(predicted == y_test))
    return max(right, 1 - right) if method.clustering else right


def _sdu(risk: str, loss: str) -> Predict:
    def predict(trial: Trial, prior: float | None, seed: int) -> NDArray[Any]:
        return SDUClassifierCV(risk, loss, prior=prior).fit(trial.rows, trial.codes).predict(trial.X_test)

    return predict


def _kmeans(trial: Trial, prior: float | None, seed: int) -> NDArray[Any]:
    model = KMeans(2, n_init=10, random_state=seed).fit(trial.rows)
    return as_classes(model.predict(trial.X_test))


def _baseline(name: str, trial: Trial, prior: float | None, seed: int, **parameters: Any) -> NDArray[Any]:
    model = _seeded(getattr(import_module("sdulearn.baselines"), name), seed, **parameters)
    return as_classes(model.fit(trial.rows, trial.codes).predict(trial.X_test))


def _spectral(trial: Trial, prior: float | None, seed: int) -> NDArray[Any]:
    """On training and test points together, as the paper did."""
    model = _seeded(import_module("sdulearn.baselines").SpectralPairs, seed)
    rows = np.vstack([trial.rows, trial.X_test])
    codes = np.concatenate([trial.codes, np.zeros(len(trial.X_test), dtype=np.int64)])
    return as_classes(model.fit(rows, codes).labels_[len(trial.rows) :])


def _joint(trial: Trial, prior: float | None, seed: int) -> NDArray[Any]:
    model = _seeded(import_module("sdulearn").PairLogisticRegressionCV, seed, prior=prior)
    return model.fit(trial.rows, trial.codes).predict(trial.X_test)


def _supervised(trial: Trial, prior: float | None, seed: int) -> NDArray[Any]:
    """The oracle: logistic regression on the true classes of the ends of all pairs."""
    ends = trial.codes != 0
    with warnings.catch_warnings():  # scikit-learn announces changes of defaults that do not matter here
        warnings.simplefilter("ignore", FutureWarning)
        model = LogisticRegressionCV(cv=5, max_iter=1000).fit(trial.rows[ends], trial.labels[ends])
    return model.predict(trial.X_test)


def as_classes(clusters: NDArray[Any]) -> NDArray[np.int64]:
    """Two clusters as -1 and +1, in some order."""
    return np.where(clusters == np.min(clusters), -1, 1)


def _seeded(estimator: Any, seed: int, **parameters: Any) -> Any:
    takes_seed = "random_state" in inspect.signature(estimator).parameters
    return estimator(**parameters, **({"random_state": seed} if takes_seed else {}))


_BASELINES = "sdulearn.baselines"
_RISKS = ("su", "du", "sd", "sdsu", "sddu", "sudu")
_LOSSES = {"squared": "squared", "double_hinge": "double hinge", "logistic": "logistic"}

METHODS: dict[str, Method] = {
    **{
        f"{risk}-{loss}": Method(f"{risk.upper()} {label}", _sdu(risk, loss))
        for risk in _RISKS
        for loss, label in _LOSSES.items()
    },
    "km": Method("KM", _kmeans, clustering=True),
    # No row is drawn twice, so rows with equal features (binary data) are different points.
    "ckm": Method(
        "CKM",
        partial(_baseline, "ConstrainedKMeans", merge_duplicates=False),
        clustering=True,
        needs=(_BASELINES, "ConstrainedKMeans"),
    ),
    "ssp": Method("SSP", _spectral, clustering=True, needs=(_BASELINES, "SpectralPairs")),
    "itml": Method("ITML", partial(_baseline, "ITMLKMeans"), clustering=True, needs=(_BASELINES, "ITMLKMeans")),
    "joint": Method("Joint", _joint, needs=("sdulearn", "PairLogisticRegressionCV")),
    "supervised": Method("Supervised", _supervised),
}
