"""A table model as an ONNX graph: raw columns in, label, decision value and probability out.

Inputs are ``numbers`` (double, one column for each number or true/false column; NaN where missing)
and ``texts`` (string, one column for each text column; empty where missing), columns in the order
of the model. A model of an svmlight file has ``numbers`` alone. Everything is computed in double
precision.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.extras import require
from sdulearn.io.tables import CATEGORY, Column, ColumnLayout
from sdulearn.table_model import TableModel

OPSET, ML_OPSET, IR_VERSION = 18, 3, 9
NUMBERS, TEXTS = "numbers", "texts"


def export_onnx(model: TableModel, path: str | PathLike[str]) -> None:
    """Write a model to an ONNX file.

    Parameters
    ----------
    model : TableModel
        From :func:`~sdulearn.table_model.load_table_model`.
    path : str or path-like
        File to write. Class names and column names are kept as metadata.
    """
    graph = _Graph()
    graph.build(model)
    Path(path).write_bytes(graph.serialise(model))


def onnx_columns(model: TableModel) -> tuple[list[str], list[str]]:
    """Names of the columns of ``numbers`` and of ``texts``, in order."""
    if not isinstance(model.layout, ColumnLayout):
        return model.layout.feature_names, []
    columns = model.layout.columns
    return [c.name for c in columns if c.kind != CATEGORY], [c.name for c in columns if c.kind == CATEGORY]


def _blocks(model: TableModel) -> list[tuple[Column, NDArray[np.float64]]]:
    """Every column with its coefficients."""
    assert isinstance(model.layout, ColumnLayout)
    sizes = [len(column.feature_names) for column in model.layout.columns]
    parts = np.split(model.estimator.coef_[0], np.cumsum(sizes)[:-1])
    return list(zip(model.layout.columns, parts, strict=True))


def _number_part(model: TableModel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients and stand-ins of the number columns; NaN stands in where a missing value was refused."""
    if not isinstance(model.layout, ColumnLayout):
        return model.estimator.coef_[0], np.full(model.layout.width, np.nan)
    numbers = [(column, part[0]) for column, part in _blocks(model) if column.kind != CATEGORY]
    fills = [np.nan if column.fill is None else float(column.fill) for column, _ in numbers]
    return np.array([weight for _, weight in numbers]), np.array(fills)


def _text_parts(model: TableModel) -> list[tuple[Column, NDArray[np.float64]]]:
    if not isinstance(model.layout, ColumnLayout):
        return []
    return [(column, part) for column, part in _blocks(model) if column.kind == CATEGORY]


class _Graph:
    """Nodes and constants as they are added; every method gives back the name of its result."""

    def __init__(self) -> None:
        self.onnx = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def build(self, model: TableModel) -> None:
        """The decision as a sum of columns' contributions, and what follows from it."""
        total = self.constant(model.estimator.intercept_)
        weights, fills = _number_part(model)
        if len(weights):
            total = self.node("Add", total, self.number_sum(weights, fills))
        for place, (column, coefficients) in enumerate(_text_parts(model)):
            total = self.node("Add", total, self.text_share(place, column, coefficients))
        decision = self.node("Reshape", total, self.constant(np.array([-1], dtype=np.int64)), output="decision")
        positive = self.node("Greater", decision, self.constant(np.array(0.0)))
        one = self.constant(np.array(1, dtype=np.int64))
        self.node("Where", positive, one, self.constant(np.array(-1, dtype=np.int64)), output="label")
        self.probability(model.link, decision)

    def number_sum(self, weights: NDArray[np.float64], fills: NDArray[np.float64]) -> str:
        """``numbers @ weights``, NaN replaced by the column's stand-in."""
        missing = self.node("IsNaN", NUMBERS)
        filled = self.node("Where", missing, self.constant(fills[None, :]), NUMBERS)
        product = self.node("MatMul", filled, self.constant(weights[:, None]))
        return self.node("Reshape", product, self.constant(np.array([-1], dtype=np.int64)))

    def text_share(self, place: int, column: Column, coefficients: NDArray[np.float64]) -> str:
        """The coefficient of each text's category: 0 for an unknown one, the stand-in's for an empty one."""
        text = self.node("Gather", TEXTS, self.constant(np.array(place, dtype=np.int64)), axis=1)
        unknown = len(column.categories)
        keys, values = list(column.categories), list(range(unknown))
        if column.fill in column.categories and "" not in keys:
            keys, values = [*keys, ""], [*values, column.categories.index(str(column.fill))]
        index = self.node(
            "LabelEncoder", text, domain="ai.onnx.ml", keys_strings=keys, values_int64s=values, default_int64=unknown
        )
        return self.node("Gather", self.constant(np.append(coefficients, 0.0)), index, axis=0)

    def probability(self, link: str | None, decision: str) -> None:
        """P(label = 1) of the decision, where the model has one."""
        if link == "logistic":
            self.node("Sigmoid", decision, output="probability")
        elif link == "squared":
            half = self.constant(np.array(0.5))
            share = self.node("Add", self.node("Mul", decision, half), half)
            self.node("Clip", share, self.constant(np.array(0.0)), self.constant(np.array(1.0)), output="probability")

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def serialise(self, model: TableModel) -> bytes:
        """The checked file."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        numbers, texts = onnx_columns(model)
        inputs = [helper.make_tensor_value_info(NUMBERS, types.DOUBLE, ["rows", len(numbers)])] * bool(numbers)
        inputs += [helper.make_tensor_value_info(TEXTS, types.STRING, ["rows", len(texts)])] * bool(texts)
        kinds = {"label": types.INT64, "decision": types.DOUBLE, "probability": types.DOUBLE}
        made = {name for node in self.nodes for name in node.output}
        outputs = [helper.make_tensor_value_info(n, t, ["rows"]) for n, t in kinds.items() if n in made]
        graph = helper.make_graph(self.nodes, "sdulearn", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        file = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="sdulearn")
        helper.set_model_props(
            file,
            {
                "classes": json.dumps({"-1": model.classes[0], "1": model.classes[1]}),
                "columns": json.dumps({NUMBERS: numbers, TEXTS: texts}),
            },
        )
        self.onnx.checker.check_model(file)
        return file.SerializeToString()
