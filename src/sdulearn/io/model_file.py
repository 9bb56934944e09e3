"""``load_model``: a fitted model back from the file that ``save`` wrote."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import Any, Literal

import numpy as np

from sdulearn.columns import IMAGE, TEXT, Column, Columns, check_layout
from sdulearn.errors import ModelFileError
from sdulearn.image_columns import ImageFeatures
from sdulearn.io import container
from sdulearn.io.files import Location
from sdulearn.io.typed import finite, read
from sdulearn.table_model import TableModel
from sdulearn.text_columns import TextFeatures
from sdulearn.types import Array, Codes, Count, Estimator, Probability

# What a file may hold; imported when it is met, so that a linear model is read without trees.
MODELS = ("SDUClassifier", "SDUClassifierCV", "PairLogisticRegression", "PairLogisticRegressionCV",
          "PairBoostingClassifier", "PairModelCV", "PairNetworkClassifier")  # fmt: skip
# What a forged header may lead to; untrusted text in an error message is cut off.
_FORGED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, IndexError)
_LONGEST = 300


def load_model(path: Location) -> Estimator | TableModel:
    """Read a fitted model from a file that ``save`` wrote.

    The file holds numbers and JSON; nothing is unpickled or run, so an untrusted file is safe to open. It names its
    format version: files are read from version 2 on, the one of sdulearn 0.1.0.

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
        A ValueError: the file is foreign, truncated, altered, or of a format that is newer or too old.

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
        return _table_model(header, arrays, _estimator(header["estimator"], own))
    except _FORGED as error:
        raise ModelFileError(
            f"{path} does not describe an sdulearn model: {str(error)[:_LONGEST]}. If a development version wrote it, "
            f"fit the model again. {container.readable()}"
        ) from None


def _estimator(header: container.Header, arrays: container.Arrays) -> Estimator:
    """An estimator that has checked what the file says of it."""
    if header["model"] not in MODELS:
        raise ValueError(f"unknown model {header['model']!r}")
    params = header["params"]
    if isinstance(params.get("error_rate"), list):
        # Rates by annotator are pairs in the file.
        params["error_rate"] = dict(read(list[tuple[Count, Probability]], params["error_rate"]))
    model = getattr(import_module("sdulearn"), header["model"])(**params)
    model._validate_params()
    model._restore(container.join_fitted(header["fitted"], arrays))
    return model


def _table_model(header: container.Header, arrays: container.Arrays, estimator: Estimator) -> TableModel:
    """A model of a table, every part checked for type and size before it is used."""
    from sdulearn.report.records import FitReport

    columns = _columns(header["layout"], finite(arrays["mean"]), finite(arrays["scale"]), arrays)
    check_layout(columns)
    if columns.width != estimator.n_features_in_:
        raise ValueError("columns and coefficients do not fit together")
    classes = read(tuple[int, ...] | tuple[str, ...], header["classes"])
    if len(classes) != len(estimator.classes_) or len(set(classes)) < len(classes):
        raise ValueError("the names of the classes do not tell the classes of the estimator apart")
    asked = _asked(header, arrays, len(classes)) if "asked" in header else None
    return TableModel(estimator, columns, classes, read(FitReport | None, header["report"]), asked)


def _asked(header: container.Header, arrays: container.Arrays, n_classes: int) -> tuple[list[str], Array, Codes]:
    """Ids, class probabilities and numbers of answers of the rows that were asked about."""
    ids = read(list[str], header["asked"])
    probabilities = finite(arrays["asked:probabilities"])
    n_answers = arrays["asked:n_answers"]
    if probabilities.shape != (len(ids), n_classes) or n_answers.shape != (len(ids),) or n_answers.dtype.kind != "i":
        raise ValueError("the rows that were asked about do not fit together")
    if (probabilities < 0).any() or not np.allclose(probabilities.sum(axis=1), 1) or (n_answers < 1).any():
        raise ValueError("the rows that were asked about have no class probabilities, or no answers")
    return ids, probabilities, n_answers


def _columns(found: container.Header, mean: Array, scale: Array, arrays: container.Arrays) -> Columns:
    if found["kind"] == "sparse":
        if found["width"] != scale.size:
            raise ValueError("features and scales do not fit together")
        return Columns.sparse(read(Literal[0, 1], found["first"]), scale)
    if found["kind"] != "columns":
        raise ValueError(f"unknown kind of table {found['kind']!r}")
    id_column = read(str | None, found["id_column"])
    columns = read(tuple[Column, ...], found["columns"])
    makers: dict[str, TextFeatures | ImageFeatures] = {}
    for one in columns:
        if one.kind in (TEXT, IMAGE):
            kind: Any = TextFeatures if one.kind == TEXT else ImageFeatures
            terms = read(dict[str, tuple[str, ...]], found["makers"][one.name])
            names = [field.name for field in fields(kind) if field.name not in terms]
            makers[one.name] = kind(**terms, **{name: finite(arrays[f"{name}:{one.name}"]) for name in names})
    keep_gaps = read(bool, found.get("keep_gaps", False))
    return Columns(columns, id_column, mean, scale, makers=makers, keep_gaps=keep_gaps)
