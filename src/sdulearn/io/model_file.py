"""``load_model``: a fitted model back from the file that ``save`` wrote."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.errors import ModelFileError
from sdulearn.io import container
from sdulearn.io.files import Location
from sdulearn.io.typed import finite, read
from sdulearn.prior import PriorEstimate
from sdulearn.report.records import ClassNumber
from sdulearn.table_model import TableModel
from sdulearn.types import Count, Estimator, Probability

# What a file may hold; imported when it is met, so that a linear model is read without trees.
MODELS = ("SDUClassifier", "SDUClassifierCV", "PairLogisticRegression", "PairLogisticRegressionCV",
          "PairBoostingClassifier", "PairModelCV")  # fmt: skip
# What a forged header may lead to; untrusted text in an error message is cut off.
_FORGED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, IndexError)
_LONGEST = 300


def load_model(path: Location) -> Estimator | TableModel:
    """Read a fitted model from a file that ``save`` wrote.

    The file holds numbers and JSON; nothing is unpickled or run, so an untrusted file is safe to open.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator or TableModel
        Fitted, of the class that was saved.

    Raises
    ------
    ModelFileError
        A ValueError: the file is foreign, truncated, altered, or of a newer format.

    See Also
    --------
    sdulearn.fit_table : Fit a model of a table.
    """
    header, arrays = container.read(path)
    try:
        if header["model"] != "TableModel":
            return _estimator(header, arrays)
        mark = "estimator:"
        own = {name.removeprefix(mark): array for name, array in arrays.items() if name.startswith(mark)}
        return TableModel.from_parts(header, arrays, _estimator(header["estimator"], own))
    except _FORGED as error:
        raise ModelFileError(f"{path} does not describe an sdulearn model: {str(error)[:_LONGEST]}") from None


def _estimator(header: container.Header, arrays: container.Arrays) -> Estimator:
    if header["model"] not in MODELS:
        raise ValueError(f"unknown model {header['model']!r}")
    model = getattr(import_module("sdulearn"), header["model"])(**_params(header["params"]))
    model._validate_params()
    if hasattr(model, "restore"):
        return _scored(model, header["fitted"], arrays)
    for name, value in _fitted(header["fitted"], arrays).items():
        if name not in model.FITTED:
            raise ValueError(f"unexpected attribute {name!r}")
        setattr(model, name, value)
    _check_shapes(model)
    return model


def _params(params: container.Header) -> container.Header:
    """Parameters as the estimator takes them: rates by annotator are pairs in the file."""
    if isinstance(params.get("error_rate"), list):
        return {**params, "error_rate": dict(read(list[tuple[Count, Probability]], params["error_rate"]))}
    return params


def _scored(model: Estimator, scalars: container.Header, arrays: container.Arrays) -> Estimator:
    """A linear score with trees; its parts check themselves."""
    fitted = {**scalars, **{name: array for name, array in arrays.items() if "/" not in name}}
    for name in ("cv_results_", "start_parts_"):
        nested = {key.split("/", 1)[1]: array for key, array in arrays.items() if key.startswith(f"{name}/")}
        if name in fitted:
            fitted[name] = {**fitted[name], **nested}
    if unexpected := set(fitted) - set(model.FITTED):
        raise ValueError(f"unexpected attributes {sorted(unexpected)!r}")
    model.restore(fitted)
    model.prior_ = read(PriorEstimate | None, fitted["prior_"])
    model.answer_model_ = read(AnswerModel, fitted["answer_model_"])
    for name in ("model_", "cv_results_", "held_out_log_likelihood_"):
        if name in fitted:
            setattr(model, name, fitted[name])
    if "feature_names_in_" in fitted:
        model.feature_names_in_ = _names(fitted["feature_names_in_"], model.n_features_in_)
    return model


def _names(found: object, n_features: int) -> NDArray[np.object_]:
    names = read(list[str], found)
    if len(names) != n_features:
        raise ValueError("names and number of features do not fit together")
    return np.array(names, dtype=object)


def _fitted(scalars: container.Header, arrays: container.Arrays) -> container.Header:
    fitted = {**scalars, **{name: array for name, array in arrays.items() if "/" not in name}}
    many = np.shape(fitted["classes_"])[0] > 2
    # With more than two classes there are class shares instead of one prior.
    fitted["prior_"] = read(PriorEstimate | None if many else PriorEstimate, scalars["prior_"])
    if "answer_model_" in fitted:
        fitted["answer_model_"] = read(AnswerModel, scalars["answer_model_"])
    if "feature_names_in_" in fitted:
        fitted["feature_names_in_"] = _names(fitted["feature_names_in_"], fitted["n_features_in_"])
    if "n_classes_interval_" in fitted:
        fitted["n_classes_interval_"] = read(tuple[ClassNumber, ClassNumber] | None, fitted["n_classes_interval_"])
    if "cv_results_" in fitted:
        nested = {name.split("/", 1)[1]: array for name, array in arrays.items() if "/" in name}
        fitted["cv_results_"] = {**fitted["cv_results_"], **nested}
    return fitted


def _check_shapes(model: Estimator) -> None:
    width = model.n_features_in_
    n_classes = len(model.classes_)
    n_lines = 1 if n_classes == 2 else n_classes
    if type(width) is not int or model.coef_.shape != (n_lines, width) or model.intercept_.shape != (n_lines,):
        raise ValueError("coefficients and number of features do not fit together")
    if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
        raise ValueError("coefficients are not finite")
    if n_classes <= 2 and model.classes_.tolist() != [-1, 1]:
        raise ValueError("classes are not -1 and +1")
    if n_classes > 2:
        _check_classes(model, n_classes)
    for name in ("alpha_", "gamma_", "covariance_power_", "objective_", "optimality_"):
        read(float | None, getattr(model, name, None))


def _check_classes(model: Estimator, n_classes: int) -> None:
    """What only a model of more than two classes has."""
    if "n_classes_" not in model.FITTED or model.n_classes_ != n_classes:
        raise ValueError("this model has no more than two classes")
    if model.classes_.tolist() != list(range(1, n_classes + 1)):
        raise ValueError("classes are not numbered from 1")
    if model.class_shares_.shape != (n_classes,):
        raise ValueError("class shares and classes do not fit together")
    finite(model.class_shares_)
