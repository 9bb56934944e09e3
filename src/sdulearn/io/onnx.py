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
from sdulearn.columns import CATEGORY, Column, Columns, Layout, SparseColumns
from sdulearn.errors import require
from sdulearn.io.files import Location, written_whole
from sdulearn.io.onnx_trees import build_trees
from sdulearn.table_model import TableModel
from sdulearn.types import Array, Estimator, Indices

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
    graph = Graph()
    opset = ML_OPSET
    table_model = as_table_model(model)
    if isinstance(model, ScoreClassifier):
        # Without a table NaN is a value like others, which trees know.
        opset = build_trees(graph, model, NUMBERS)
    elif isinstance(table_model.estimator, ScoreClassifier):
        rows = graph.features(table_model)
        opset = build_trees(graph, table_model.estimator, rows, graph.refused(rows))
    else:
        graph.build(table_model)
    serialised = graph.serialise(onnx_columns(table_model), _class_names(table_model), opset)
    with written_whole(path) as draft:
        draft.write_bytes(serialised)


def onnx_columns(model: TableModel | Estimator) -> tuple[list[str], list[str]]:
    """Names of the columns of ``numbers`` and of ``texts``, in order."""
    layout = as_table_model(model).columns
    if not isinstance(layout, Columns):
        return layout.feature_names, []
    numbers = [column.name for column in layout.columns if column.kind != CATEGORY]
    texts = [column.name for column in layout.columns if column.kind == CATEGORY]
    return numbers, texts


def as_table_model(model: TableModel | Estimator) -> TableModel:
    """An estimator as a model of a table of its features."""
    if isinstance(model, TableModel):
        return model
    width = model.n_features_in_
    classes = tuple(map(str, model.classes_.tolist()))
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return TableModel(model, SparseColumns(width, 0, np.ones(width)), classes)
    return TableModel(model, Columns.unscaled([Column(str(name), "number") for name in names]), classes)


def _blocks(model: TableModel) -> list[tuple[Column, Array]]:
    """Every column with its coefficients in the units of the table: a row a feature, a column a decision value."""
    assert isinstance(model.columns, Columns)
    sizes = [len(column.feature_names) for column in model.columns.columns]
    parts = np.split(model.raw_coefficients[0].T, np.cumsum(sizes)[:-1])
    return list(zip(model.columns.columns, parts, strict=True))


def _number_weights(model: TableModel) -> Array:
    """Coefficients of the number columns."""
    if not isinstance(model.columns, Columns):
        return model.raw_coefficients[0].T
    weights = np.array([part[0] for column, part in _blocks(model) if column.kind != CATEGORY])
    return weights.reshape(len(weights), len(model.estimator.coef_))


def _fills(layout: Layout) -> Array:
    """Stand-ins of the number columns; NaN where a missing value was refused."""
    if not isinstance(layout, Columns):
        return np.full(layout.width, np.nan)
    fills = [column.fill for column in layout.columns if column.kind != CATEGORY]
    return np.array([np.nan if fill is None else float(fill) for fill in fills])


def _text_columns(layout: Layout) -> list[Column]:
    if not isinstance(layout, Columns):
        return []
    return [column for column in layout.columns if column.kind == CATEGORY]


def _numbers_first(layout: Layout) -> Indices:
    """Where each feature stands once all numbers come before all texts."""
    if not isinstance(layout, Columns):
        return np.arange(layout.width)
    is_text = [column.kind == CATEGORY for column in layout.columns for _ in column.feature_names]
    return np.argsort(np.argsort(is_text, kind="stable"))


def _text_parts(model: TableModel) -> list[tuple[Column, Array]]:
    if not isinstance(model.columns, Columns):
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
        total = self.constant(model.raw_coefficients[1][None, :])
        weights = _number_weights(model)
        if len(weights):
            filled = self.filled(_fills(model.columns))
            product = self.node("MatMul", filled, self.constant(np.ascontiguousarray(weights)))
            total = self.node("Add", total, product)
        for place, (column, coefficients) in enumerate(_text_parts(model)):
            total = self.node("Add", total, self.text_share(place, column, coefficients))
        if len(model.classes) > 2:
            self.many_classes(total)
            return
        self.two_classes(total, model.link)

    def two_classes(self, total: str, link: str | None) -> None:
        """The decision, its sign and, where the model has one, its probability."""
        decision = self.node("Reshape", total, self.constant(np.array([-1], dtype=np.int64)), output="decision")
        self.label(decision)
        self.probability(link, decision)

    def label(self, decision: str) -> None:
        """+1 where the decision is positive, else -1."""
        positive = self.node("Greater", decision, self.constant(np.array(0.0)))
        one = self.constant(np.array(1, dtype=np.int64))
        self.node("Where", positive, one, self.constant(np.array(-1, dtype=np.int64)), output="label")

    def many_classes(self, total: str) -> None:
        """A softmax of as many decision values as classes, which are numbered from 1."""
        decision = self.node("Identity", total, output="decision")
        place = self.node("ArgMax", decision, axis=1, keepdims=0)
        self.node("Add", place, self.constant(np.array(1, dtype=np.int64)), output="label")
        self.node("Softmax", decision, output="probability", axis=1)

    def features(self, model: TableModel) -> str:
        """The scaled features, in the very operations of the table model: a split falls between two numbers."""
        fills = _fills(model.columns)
        parts = [self.filled(fills)] if len(fills) else []
        for place, column in enumerate(_text_columns(model.columns)):
            parts.append(self.text_share(place, column, np.eye(len(column.categories))))
        joined = self.node("Concat", *parts, axis=1)
        ordered = self.node("Gather", joined, self.constant(_numbers_first(model.columns)), axis=1)
        centred = self.node("Sub", ordered, self.constant(model.columns.mean[None, :]))
        return self.node("Div", centred, self.constant(model.columns.scale[None, :]))

    def refused(self, rows: str) -> str:
        """A column of zeros, NaN where a feature is missing and has no stand-in: trees would pass over that."""
        zeros = self.node("Mul", rows, self.constant(np.array(0.0)))
        return self.node("ReduceSum", zeros, self.constant(np.array([1], dtype=np.int64)), keepdims=1)

    def filled(self, fills: Array) -> str:
        """The numbers, NaN replaced by the column's stand-in."""
        missing = self.node("IsNaN", NUMBERS)
        return self.node("Where", missing, self.constant(fills[None, :]), NUMBERS)

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
