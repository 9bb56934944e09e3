"""Export a model as an ONNX graph: raw columns in; label, decision value and probability out.

Inputs are ``numbers`` (double, one column per number, true/false column or date, in days since
1970; NaN where missing) and ``texts`` (string, one column per text column; empty where missing), in
the order of the model. A model of an svmlight file, or an estimator, has ``numbers`` alone. All is
computed in double precision.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.columns import Column, Columns
from sdulearn.errors import InputError, listed, quoted, require
from sdulearn.io.files import Location, written_whole
from sdulearn.spelling import CYCLES
from sdulearn.table_model import TableModel
from sdulearn.types import Estimator

OPSET = 18
# Version of the operators for machine learning.
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
    table_model = as_table_model(model)
    columns = table_model.columns
    estimator = table_model.estimator
    if columns.transformers:
        names = listed(map(quoted, columns.transformers))
        advice = "Predict with sdulearn, or fit on features that you compute yourself."
        raise InputError(f"Texts and pictures cannot be read in ONNX: {names}. {advice}")
    if not hasattr(estimator, "coef_"):
        raise InputError(f"Only linear models can be written to ONNX, not a {type(estimator).__name__}.")
    rows = graph.features(columns)
    total = graph.node("Add", graph.node("MatMul", rows, estimator.coef_.T), estimator.intercept_[None, :])
    graph.decide(total, len(table_model.classes), table_model.link == "logistic")
    numbers = [str(number) for number in estimator.classes_.tolist()]
    classes = dict(zip(numbers, table_model.names, strict=True))
    serialised = graph.serialise(onnx_columns(table_model), classes)
    with written_whole(path) as draft:
        draft.write_bytes(serialised)


def onnx_columns(model: TableModel | Estimator) -> tuple[list[str], list[str]]:
    """Return the names of the columns of ``numbers`` and of ``texts``, in order."""
    columns = as_table_model(model).columns.columns
    texts = [column.name for column in columns if column.kind == "category"]
    return [column.name for column in columns if column.kind != "category"], texts


def as_table_model(model: TableModel | Estimator) -> TableModel:
    """Return an estimator as a model of a table of its features."""
    if isinstance(model, TableModel):
        return model
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    columns = Columns.unscaled([Column(str(name), "number") for name in names])
    return TableModel(model, columns, tuple(model.classes_.tolist()))


class Graph:
    """A graph to which nodes are added; every method returns the name of its result."""

    def __init__(self) -> None:
        self.onnx = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, *inputs: str | NDArray[Any] | float, output: str | None = None, **attributes: Any) -> str:
        """Add a node, and a constant for each input that is not a name."""
        names = []
        for one in inputs:
            names.append(one if isinstance(one, str) else f"c{len(self.constants)}")
            if not isinstance(one, str):
                self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(one), names[-1]))
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, names, [name], **attributes))
        return name

    def decide(self, total: str, n_classes: int, has_probability: bool = True) -> None:
        """Add decision, label and probability, by a softmax for more than two classes."""
        if n_classes > 2:
            decision = self.node("Identity", total, output="decision")
            self.node("Add", self.node("ArgMax", decision, axis=1, keepdims=0), 1, output="label")
            self.node("Softmax", decision, output="probability", axis=1)
            return
        decision = self.node("Reshape", total, np.array([-1]), output="decision")
        self.node("Where", self.node("Greater", decision, 0.0), 1, -1, output="label")
        if has_probability:
            self.node("Sigmoid", decision, output="probability")

    def features(self, layout: Columns) -> str:
        """Add the scaled features, computed as in the model so that splits are exact."""
        numbers = [one for one in layout.parts if one[0].kind != "category"]
        parts, order = self.numbers(layout, numbers) if numbers else ([], [])
        texts = [one for one in layout.parts if one[0].kind == "category"]
        for place, (column, part) in enumerate(texts):
            parts.append(self.one_hot(place, column))
            order += range(part.start, part.stop)
        ordered = self.node("Gather", self.node("Concat", *parts, axis=1), np.argsort(order), axis=1)
        return self.node("Div", self.node("Sub", ordered, layout.mean[None, :]), layout.scale[None, :])

    def numbers(self, layout: Columns, columns: list[tuple[Column, slice]]) -> tuple[list[str], list[int]]:
        """Add features of numbers, and return which; NaN is filled unless refused or kept."""
        kept = [column.fill is None or layout.keep_gaps for column, _ in columns]
        fills = [np.nan if keep else float(column.fill or 0) for (column, _), keep in zip(columns, kept, strict=True)]
        gaps = self.node("IsNaN", NUMBERS)
        parts = [self.node("Where", gaps, np.array([fills]), NUMBERS)]
        places = [part.start for _, part in columns]
        for k, (column, part) in enumerate(columns):
            missing = self.node("Gather", gaps, np.array([k]), axis=1)
            days = self.node("Gather", NUMBERS, np.array([k]), axis=1)
            for j, (cycle, shift) in enumerate(product(column.cycles, (0.0, np.pi / 2)), part.start + 1):
                angle = self.node("Mul", days, 2 * np.pi / CYCLES[cycle])
                wave = self.node("Sin", self.node("Add", angle, shift))
                parts.append(self.node("Where", missing, np.nan if kept[k] else layout.mean[j], wave))
                places.append(j)
            if column.marked:
                parts.append(self.node("Cast", missing, to=self.onnx.TensorProto.DOUBLE))
                places.append(part.stop - 1)
        return parts, places

    def one_hot(self, place: int, column: Column) -> str:
        """Add one feature per category: zeros for an unknown text, the fill for an empty one."""
        places = {category: k for k, category in enumerate(column.categories)}
        if column.fill in places:
            places.setdefault("", places[str(column.fill)])
        index = self.node(
            "LabelEncoder",
            self.node("Gather", TEXTS, place, axis=1),
            domain="ai.onnx.ml",
            keys_strings=list(places),
            values_int64s=list(places.values()),
            default_int64=len(column.categories),
        )
        return self.node("Gather", np.eye(len(column.categories) + 1, len(column.categories)), index, axis=0)

    def serialise(self, columns: tuple[list[str], list[str]], classes: dict[str, str]) -> bytes:
        """Check the graph, and return the bytes of its file."""
        helper = self.onnx.helper
        types = self.onnx.TensorProto
        numbers, texts = columns
        given = ((NUMBERS, types.DOUBLE, numbers), (TEXTS, types.STRING, texts))
        inputs = [helper.make_tensor_value_info(n, t, ["rows", len(names)]) for n, t, names in given if names]
        kinds = {"label": types.INT64, "decision": types.DOUBLE, "probability": types.DOUBLE}
        made = {name for node in self.nodes for name in node.output}
        width = [len(classes)] * (len(classes) > 2)
        shapes = {"label": ["rows"], "decision": ["rows", *width], "probability": ["rows", *width]}
        outputs = [helper.make_tensor_value_info(n, t, shapes[n]) for n, t in kinds.items() if n in made]
        graph = helper.make_graph(self.nodes, "sdulearn", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        file = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="sdulearn")
        names = json.dumps({NUMBERS: numbers, TEXTS: texts})
        helper.set_model_props(file, {"classes": json.dumps(classes), "columns": names})
        self.onnx.checker.check_model(file)
        return file.SerializeToString()
