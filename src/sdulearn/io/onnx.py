"""A model as an ONNX graph: raw columns in, label, decision value and probability out.

With more than two classes the last two have a column for each class.

Inputs are ``numbers`` (double, one column for each number or true/false column; NaN where missing)
and ``texts`` (string, one column for each text column; empty where missing), columns in the order
of the model. A model of an svmlight file, or an estimator, has
``numbers`` alone. Everything is computed in double
precision.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.boosting.score_classifier import ScoreClassifier
from sdulearn.columns import CATEGORY, Column, ColumnLayout, SparseLayout
from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.io.files import Location, written_whole
from sdulearn.io.onnx_trees import build_trees
from sdulearn.table_model import Scaler, TableModel
from sdulearn.types import Array, Estimator

OPSET = 18
ML_OPSET = 3
IR_VERSION = 9
NUMBERS = "numbers"
TEXTS = "texts"


def export_onnx(model: TableModel | Estimator, path: Location) -> None:
    """Write a model to an ONNX file.

    Parameters
    ----------
    model : TableModel or fitted estimator
        A table model takes raw columns, an estimator its features.
    path : str or path-like
        File to write. Class names and column names are kept as metadata.

    See Also
    --------
    onnx_columns : What the graph takes.
    """
    if isinstance(model, TableModel) and isinstance(model.estimator, ScoreClassifier):
        raise InputError(
            "A table model with trees or a kernel map cannot be written to ONNX. Export its `estimator`, which takes "
            "the scaled features, or fit the table with a linear model."
        )
    graph = Graph()
    if isinstance(model, ScoreClassifier):
        serialised = build_trees(graph, model)
    else:
        table_model = as_table_model(model)
        names = _class_names(table_model)
        graph.build(table_model)
        serialised = graph.serialise(onnx_columns(table_model), names)
    with written_whole(path) as draft:
        draft.write_bytes(serialised)


def onnx_columns(model: TableModel | Estimator) -> tuple[list[str], list[str]]:
    """Names of the columns of ``numbers`` and of ``texts``, in order.

    Parameters
    ----------
    model : TableModel or fitted estimator
        As in :func:`export_onnx`.

    Returns
    -------
    numbers, texts : list of str
        Names of the columns of either input.
    """
    layout = as_table_model(model).layout
    if not isinstance(layout, ColumnLayout):
        return layout.feature_names, []
    numbers = [column.name for column in layout.columns if column.kind != CATEGORY]
    texts = [column.name for column in layout.columns if column.kind == CATEGORY]
    return numbers, texts


def as_table_model(model: TableModel | Estimator) -> TableModel:
    """An estimator as a model of a table of its features."""
    if isinstance(model, TableModel):
        return model
    width = model.n_features_in_
    scaler = Scaler(np.zeros(width), np.ones(width))
    classes = tuple(map(str, model.classes_.tolist()))
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return TableModel(model, SparseLayout(width, 0), scaler, classes)
    columns = tuple(Column(str(name), "number") for name in names)
    return TableModel(model, ColumnLayout(columns), scaler, classes)


def _blocks(model: TableModel) -> list[tuple[Column, Array]]:
    """Every column with its coefficients, a row each feature and a column each line, in the units of the table."""
    assert isinstance(model.layout, ColumnLayout)
    sizes = [len(column.feature_names) for column in model.layout.columns]
    parts = np.split(model.raw_lines[0].T, np.cumsum(sizes)[:-1])
    return list(zip(model.layout.columns, parts, strict=True))


def _number_part(model: TableModel) -> tuple[Array, Array]:
    """Coefficients and stand-ins of the number columns; NaN stands in where a missing value was refused."""
    if not isinstance(model.layout, ColumnLayout):
        return model.raw_lines[0].T, np.full(model.layout.width, np.nan)
    numbers = [(column, part[0]) for column, part in _blocks(model) if column.kind != CATEGORY]
    fills = [np.nan if column.fill is None else float(column.fill) for column, _ in numbers]
    weights = np.array([weight for _, weight in numbers])
    return weights.reshape(len(numbers), len(model.estimator.coef_)), np.array(fills)


def _text_parts(model: TableModel) -> list[tuple[Column, Array]]:
    if not isinstance(model.layout, ColumnLayout):
        return []
    return [(column, part) for column, part in _blocks(model) if column.kind == CATEGORY]


def _class_names(model: TableModel) -> dict[str, str]:
    """Names of the classes by their numbers."""
    numbers = [str(number) for number in model.estimator.classes_.tolist()]
    return dict(zip(numbers, model.classes, strict=True))


class Graph:
    """Nodes and constants as they are added; every method gives back the name of its result."""

    def __init__(self) -> None:
        self.onnx = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def build(self, model: TableModel) -> None:
        """The decision as a sum of columns' contributions, and what follows from it."""
        total = self.constant(model.raw_lines[1][None, :])
        weights, fills = _number_part(model)
        if len(weights):
            total = self.node("Add", total, self.number_sum(weights, fills))
        for place, (column, coefficients) in enumerate(_text_parts(model)):
            total = self.node("Add", total, self.text_share(place, column, coefficients))
        if len(model.classes) > 2:
            self.many_classes(total)
            return
        decision = self.node("Reshape", total, self.constant(np.array([-1], dtype=np.int64)), output="decision")
        self.label(decision)
        self.probability(model.link, decision)

    def label(self, decision: str) -> None:
        """+1 where the decision is positive, else -1."""
        positive = self.node("Greater", decision, self.constant(np.array(0.0)))
        one = self.constant(np.array(1, dtype=np.int64))
        self.node("Where", positive, one, self.constant(np.array(-1, dtype=np.int64)), output="label")

    def many_classes(self, total: str) -> None:
        """A softmax of as many lines as classes, which are numbered from 1."""
        decision = self.node("Identity", total, output="decision")
        place = self.node("ArgMax", decision, axis=1, keepdims=0)
        self.node("Add", place, self.constant(np.array(1, dtype=np.int64)), output="label")
        self.node("Softmax", decision, output="probability", axis=1)

    def number_sum(self, weights: Array, fills: Array) -> str:
        """``numbers @ weights``, a column each line, NaN replaced by the column's stand-in."""
        missing = self.node("IsNaN", NUMBERS)
        filled = self.node("Where", missing, self.constant(fills[None, :]), NUMBERS)
        return self.node("MatMul", filled, self.constant(np.ascontiguousarray(weights)))

    def text_share(self, place: int, column: Column, coefficients: Array) -> str:
        """The coefficients of each text's category: 0 for an unknown one, the stand-in's for an empty one."""
        text = self.node("Gather", TEXTS, self.constant(np.array(place, dtype=np.int64)), axis=1)
        unknown = len(column.categories)
        keys = list(column.categories)
        values = list(range(unknown))
        if column.fill in column.categories and "" not in keys:
            keys.append("")
            values.append(column.categories.index(str(column.fill)))
        index = self.node(
            "LabelEncoder", text, domain="ai.onnx.ml", keys_strings=keys, values_int64s=values, default_int64=unknown
        )
        table = np.vstack([coefficients, np.zeros((1, coefficients.shape[1]))])
        return self.node("Gather", self.constant(table), index, axis=0)

    def probability(self, link: str | None, decision: str) -> None:
        """P(label = 1) of the decision, where the model has one."""
        if link == "logistic":
            self.node("Sigmoid", decision, output="probability")

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; the name of its result."""
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        """Add a constant; its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def serialise(
        self, columns: tuple[list[str], list[str]], classes: dict[str, str], ml_opset: int = ML_OPSET
    ) -> bytes:
        """The checked file."""
        helper = self.onnx.helper
        types = self.onnx.TensorProto
        numbers, texts = columns
        inputs = [helper.make_tensor_value_info(NUMBERS, types.DOUBLE, ["rows", len(numbers)])] * bool(numbers)
        inputs += [helper.make_tensor_value_info(TEXTS, types.STRING, ["rows", len(texts)])] * bool(texts)
        kinds = {"label": types.INT64, "decision": types.DOUBLE, "probability": types.DOUBLE}
        made = {name for node in self.nodes for name in node.output}
        width = [len(classes)] * (len(classes) > 2)
        shapes = {"label": ["rows"], "decision": ["rows", *width], "probability": ["rows", *width]}
        outputs = [helper.make_tensor_value_info(n, t, shapes[n]) for n, t in kinds.items() if n in made]
        graph = helper.make_graph(self.nodes, "sdulearn", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ml_opset)]
        file = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="sdulearn")
        helper.set_model_props(
            file,
            {
                "classes": json.dumps(classes),
                "columns": json.dumps({NUMBERS: numbers, TEXTS: texts}),
            },
        )
        self.onnx.checker.check_model(file)
        return file.SerializeToString()
