"""``load_model``: a fitted estimator back from the file that ``save`` wrote."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from sdulearn.errors import InputError, ModelFileError
from sdulearn.io import container as modelfile
from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.prior import PriorEstimate

MODELS: dict[str, type[Any]] = {
    model.__name__: model
    for model in (SDUClassifier, SDUClassifierCV, PairLogisticRegression, PairLogisticRegressionCV)
}


def load_model(path: str | PathLike[str]) -> Any:
    """Read a fitted estimator from a file written by ``estimator.save(path)``.

    The file holds numbers and JSON; nothing is unpickled or run, so a file from a stranger is safe
    to open.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator
        Fitted, of the class that was saved.

    Raises
    ------
    ModelFileError
        A ValueError: the file is foreign, truncated, altered, or of a newer format.
    """
    header, arrays = modelfile.read(path)
    try:
        model = MODELS[header["model"]](**header["params"])
        model._validate_params()
        for name, value in _fitted(header["fitted"], arrays).items():
            if name not in model._FITTED:
                raise InputError(f"unexpected attribute {name!r}")
            setattr(model, name, value)
        _check_shapes(model)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path} does not describe an sdulearn model: {str(error)[:300]}") from None
    return model


def _fitted(scalars: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    fitted = {**scalars, **{name: array for name, array in arrays.items() if "/" not in name}}
    fitted["prior_"] = PriorEstimate(**scalars["prior_"])
    if "feature_names_in_" in fitted:
        fitted["feature_names_in_"] = np.array(fitted["feature_names_in_"], dtype=object)
    if "cv_results_" in fitted:
        nested = {name.split("/", 1)[1]: array for name, array in arrays.items() if "/" in name}
        fitted["cv_results_"] = {**fitted["cv_results_"], **nested}
    return fitted


def _check_shapes(model: Any) -> None:
    width = model.n_features_in_
    if type(width) is not int or model.coef_.shape != (1, width) or model.intercept_.shape != (1,):
        raise InputError("coefficients and number of features do not fit together")
    if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
        raise InputError("coefficients are not finite")
    if model.classes_.tolist() != [-1, 1]:
        raise InputError("classes are not -1 and +1")
    if not 0 < float(model.prior_.value) < 1:
        raise InputError("the prior does not lie between 0 and 1")
