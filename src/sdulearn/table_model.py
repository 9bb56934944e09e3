"""A model that predicts from a raw table: the linear model and how a table becomes its features, in one file.

The file is the estimator's own (see :mod:`sdulearn.io.container`), with one more entry ``table`` in
its header: columns, categories, stand-ins for missing values, class names and what ``fit`` found.
Standardisation is folded into the coefficients. So ``load_model`` reads it as a plain estimator of
the unscaled features, and ``load_table_model`` as what it is.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sdulearn.errors import InputError, ModelFileError
from sdulearn.io import container as modelfile
from sdulearn.io.model_file import load_model
from sdulearn.io.tables import BOOLEAN, CATEGORY, NUMBER, Column, ColumnLayout, Layout, SparseLayout
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.types import Array

TABLE_VERSION = 1
# A stranger's text in an error message is cut off here.
_LONGEST = 300


@dataclass(frozen=True)
class TableModel:
    """A fitted linear model with the layout of its table.

    Attributes
    ----------
    estimator : SDUClassifier, PairLogisticRegression or the CV of one
        Fitted; its coefficients are in the units of the table.
    layout : ColumnLayout or SparseLayout
        How a table becomes features.
    spread : array of shape (n_features,)
        Standard deviation of each feature in training: ``coef_ * spread`` compares features.
    classes : tuple of two str
        Names of the classes -1 and +1.
    about : dict
        What ``fit`` found, as JSON has it; for ``inspect``.
    """

    estimator: Any
    layout: Layout
    spread: Array
    classes: tuple[str, str] = ("-1", "1")
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def link(self) -> str | None:
        """How a decision value becomes a probability: "logistic", "squared", or None where it carries none."""
        return link(self.estimator)

    def decision(self, X: Any) -> Array:
        """Signed confidence of each row of features: positive for the second class."""
        return np.asarray(X @ self.estimator.coef_[0] + self.estimator.intercept_[0])

    def probability(self, decision: Array) -> Array | None:
        """Probability of the second class, or None where the loss gives none."""
        return None if self.link is None else np.asarray(TRAINING_LOSSES[self.link].probability(decision))

    def labels(self, decision: Array) -> list[str]:
        """Class names of decision values."""
        return [self.classes[k] for k in (decision > 0).astype(int).tolist()]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the one file that ``sdulearn predict`` needs; it holds numbers and JSON, no code."""
        check_is_fitted(self.estimator)
        header, arrays = self.estimator._describe()
        table = {
            "version": TABLE_VERSION,
            "layout": _describe_layout(self.layout),
            "spread": self.spread.tolist(),
            "classes": list(self.classes),
            "about": self.about,
        }
        modelfile.write(path, {**header, "table": table}, arrays)


def link(estimator: Any) -> str | None:
    """The loss whose ``probability`` turns the estimator's decision values into probabilities."""
    loss = getattr(estimator, "loss", "logistic")
    return loss if hasattr(TRAINING_LOSSES[loss], "probability") else None


def fold_standardisation(estimator: Any, mean: Array, spread: Array) -> None:
    """Turn a model of ``(x - mean) / spread`` into the same model of ``x``."""
    coef = estimator.coef_[0] / spread
    estimator.intercept_ = estimator.intercept_ - mean @ coef
    estimator.coef_ = coef[None, :]


def load_table_model(path: str | PathLike[str]) -> TableModel:
    """Read a model that ``sdulearn fit`` wrote; safe to open from a stranger.

    Raises
    ------
    ModelFileError
        The file is foreign, damaged or newer, or holds an estimator without a table.
    """
    estimator = load_model(path)
    header, _ = modelfile.read(path)
    if "table" not in header:
        raise ModelFileError(
            f"{path} holds an estimator saved from Python, which knows no table. Use sdulearn.load_model there, or "
            "write a model with: sdulearn fit"
        )
    try:
        return _parse_model(estimator, header["table"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path} does not describe a table model: {str(error)[:_LONGEST]}") from None


def _describe_layout(layout: Layout) -> dict[str, Any]:
    if isinstance(layout, SparseLayout):
        return {"kind": "sparse", "width": layout.width, "first": layout.first}
    columns = [{**asdict(column), "categories": list(column.categories)} for column in layout.columns]
    return {"kind": "columns", "columns": columns, "id_column": layout.id_column}


def _parse_model(estimator: Any, table: dict[str, Any]) -> TableModel:
    """Every part checked for type and size before it is used."""
    if _whole(table["version"], 1, 2**31) > TABLE_VERSION:
        raise InputError("its table is of a newer version. Upgrade sdulearn.")
    layout = _parse_layout(table["layout"])
    spread = np.array([_finite(value) for value in _list(table["spread"])])
    if layout.width != estimator.coef_.shape[1] or layout.width != len(spread):
        raise InputError("columns and coefficients do not fit together")
    below, above = (_text(name) for name in _list(table["classes"]))
    if not isinstance(table["about"], dict):
        raise TypeError("'about' is no object")
    return TableModel(estimator, layout, spread, (below, above), table["about"])


def _parse_layout(layout: dict[str, Any]) -> Layout:
    if layout["kind"] == "sparse":
        return SparseLayout(_whole(layout["width"], 0, 2**48), _whole(layout["first"], 0, 1))
    if layout["kind"] != "columns":
        raise InputError(f"unknown kind of table {layout['kind']!r}")
    id_column = None if layout["id_column"] is None else _text(layout["id_column"])
    columns = tuple(_parse_column(column) for column in _list(layout["columns"]))
    names = [column.name for column in columns]
    if len({*names, id_column}) != len(names) + 1:
        raise InputError("two columns have one name")
    return ColumnLayout(columns, id_column)


def _parse_column(column: dict[str, Any]) -> Column:
    name, kind, fill = _text(column["name"]), column["kind"], column["fill"]
    categories = tuple(_text(category) for category in _list(column["categories"]))
    if kind not in (NUMBER, BOOLEAN, CATEGORY) or bool(categories) != (kind == CATEGORY):
        raise InputError(f"column {name!r} is of no known kind")
    if len(set(categories)) != len(categories):
        raise InputError(f"column {name!r} has a category twice")
    if fill is not None:
        fill = _text(fill) if kind == CATEGORY else _finite(fill)
    return Column(name, kind, categories, fill)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    value.encode()  # a lone surrogate, which JSON can spell, could not be printed
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {type(value).__name__}")
    return value


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError("expected a finite number")
    return float(value)


def _whole(value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise TypeError(f"expected a whole number from {low} to {high}")
    return value
