"""Export a model as an ONNX graph: raw columns in; label, decision value and probability out.

Inputs are ``numbers`` (double, one column per number, true/false column or date, in days since
1970; NaN where missing) and ``texts`` (string, one column per text column; empty where missing), in
the order of the model. A model of an svmlight file, or an estimator, has ``numbers`` alone. All is
computed in double precision. Trees are one ``TreeEnsemble`` node, added to the linear score.
"""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.columns import Column, Columns
from sdulearn.errors import InputError, listed, quoted, require
from sdulearn.io.files import Location, written_whole
from sdulearn.spelling import CYCLES
from sdulearn.table_model import TableModel
from sdulearn.types import Array, Estimator, Indices

if TYPE_CHECKING:
    from sdulearn.boosting.model_text import Tree
    from sdulearn.boosting.start import Kernel, LinearScore

OPSET = 18
# Versions of the operators for machine learning: for linear models, and for trees.
ML_OPSET = 3
TREES_OPSET = 5
IR_VERSION = 9
NUMBERS = "numbers"
TEXTS = "texts"
# Attributes of a TreeEnsemble: trees are added up; values up to the threshold go to the left.
_SUM = 1
_AT_MOST = 0
# Axis of the values of a row.
_ACROSS = np.array([1], dtype=np.int64)


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
    is_linear = hasattr(estimator, "coef_")
    # Trees of an estimator know NaN.
    rows = graph.features(columns) if is_linear or model is table_model else NUMBERS
    if is_linear:
        total = graph.node("Add", graph.node("MatMul", rows, estimator.coef_.T), estimator.intercept_[None, :])
        graph.decide(total, len(table_model.classes), table_model.link == "logistic")
    else:
        graph.add_trees(estimator, rows, model is table_model and not columns.keep_gaps)
    numbers = [str(number) for number in estimator.classes_.tolist()]
    classes = dict(zip(numbers, table_model.names, strict=True))
    serialised = graph.serialise(onnx_columns(table_model), classes, ML_OPSET if is_linear else TREES_OPSET)
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

    def add_trees(self, model: Estimator, rows: str, refuse_gaps: bool) -> None:
        """Add a linear score with boosted trees; ``rows`` are the features, NaN where missing."""
        if model.categories_:
            raise InputError(
                "A model with categorical columns cannot be written to ONNX: the graph has no place for "
                "its categories. Save it as a model file, or encode them as numbers before the fit."
            )
        total = self.linear_score(model.start_, rows)
        if model.boosters_:
            total = self.node("Add", total, self.tree_sum(model, rows))
        if refuse_gaps:
            # Zero, but NaN where a missing feature is refused: trees would accept it.
            total = self.node("Add", total, self.row_sum(self.node("Mul", rows, 0.0)))
        if model.n_classes_ > 2:
            total = self.node("Gather", total, model.order_, axis=1)
        else:
            total = self.node("Mul", total, 1.0 if model.order_[0] == 0 else -1.0)
        self.decide(total, model.n_classes_)

    def linear_score(self, start: LinearScore, rows: str) -> str:
        """Add the score of :meth:`sdulearn.boosting.start.LinearScore.decide`."""
        from sdulearn.boosting.start import MOST_LOGIT

        features = start.features
        filled = self.node("Where", self.node("IsNaN", rows), features.mean[None, :], rows)
        columns = self.standardised(filled, features.mean, features.scale)
        if features.kernel is not None:
            columns = self.kernel(features.kernel, columns)
        by_class = start.coef if start.coef.ndim > 1 else start.coef[:, None]
        score = self.node("Add", self.node("MatMul", columns, by_class), start.intercept)
        if by_class.shape[1] == 1:
            return self.node("Clip", score, -MOST_LOGIT, MOST_LOGIT)
        highest = self.node("ReduceMax", score, _ACROSS, keepdims=1)
        return self.node("Max", score, self.node("Sub", highest, MOST_LOGIT))

    def standardised(self, columns: str, mean: Array, scale: Array) -> str:
        """Subtract the mean of columns, and multiply by a scale."""
        return self.node("Mul", self.node("Sub", columns, mean[None, :]), scale[None, :])

    def kernel(self, kernel: Kernel, rows: str) -> str:
        """Add ``exp(-|a - b|^2 / (2 d))`` for every point of the kernel, times its weights."""
        points, weights, mean, scale = kernel
        own = self.row_sum(self.node("Mul", rows, rows))
        crossed = self.node("Add", own, self.node("MatMul", rows, -2 * points.T))
        squares = self.node("Max", self.node("Add", crossed, (points**2).sum(axis=1)[None, :]), 0.0)
        near = self.node("Exp", self.node("Mul", squares, -1 / (2 * points.shape[1])))
        return self.standardised(self.node("MatMul", near, weights), mean, scale)

    def row_sum(self, rows: str) -> str:
        """Add up each row."""
        return self.node("ReduceSum", rows, _ACROSS, keepdims=1)

    def tree_sum(self, model: Estimator, rows: str) -> str:
        """Add the mean of all boosters as one sum of trees."""
        from sdulearn.boosting.model_text import read_trees

        n_scores = 1 if model.n_classes_ == 2 else model.n_classes_
        forests = [read_trees(text, model.n_features_in_, model.n_classes_) for text in model.trees_]
        trees = [tree for forest in forests for tree in forest]
        targets = [place % n_scores for forest in forests for place in range(len(forest))]
        leaves = np.concatenate([tree.leaf for tree in trees]) / len(model.trees_)
        nodes = _tree_nodes(trees)
        tensor = self.onnx.numpy_helper.from_array
        return self.node(
            "TreeEnsemble",
            rows,
            domain="ai.onnx.ml",
            n_targets=n_scores,
            aggregate_function=_SUM,
            nodes_splits=tensor(nodes.pop("splits"), "splits"),
            nodes_modes=tensor(np.full(len(nodes["nodes_featureids"]), _AT_MOST, dtype=np.uint8), "modes"),
            leaf_targetids=np.repeat(targets, [len(tree.leaf) for tree in trees]).tolist(),
            leaf_weights=tensor(leaves, "leaves"),
            **{name: values.astype(np.int64).tolist() for name, values in nodes.items()},
        )

    def serialise(self, columns: tuple[list[str], list[str]], classes: dict[str, str], ml_opset: int) -> bytes:
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
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ml_opset)]
        file = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="sdulearn")
        names = json.dumps({NUMBERS: numbers, TEXTS: texts})
        helper.set_model_props(file, {"classes": json.dumps(classes), "columns": names})
        self.onnx.checker.check_model(file)
        return file.SerializeToString()


def _tree_nodes(trees: list[Tree]) -> dict[str, NDArray[Any]]:
    """Return the nodes of a TreeEnsemble; a single leaf becomes a node with two equal leaves."""
    nodes = [_one_tree(tree) for tree in trees]
    first_node = np.cumsum([0, *(len(node["splits"]) for node in nodes)])
    first_leaf = np.cumsum([0, *(len(tree.leaf) for tree in trees)])
    for node, to_node, to_leaf in zip(nodes, first_node[:-1], first_leaf[:-1], strict=True):
        for side in ("true", "false"):
            child = node[f"nodes_{side}nodeids"]
            node[f"nodes_{side}leafs"] = child < 0
            node[f"nodes_{side}nodeids"] = np.where(child < 0, to_leaf - child - 1, to_node + child)
    joined = {name: np.concatenate([node[name] for node in nodes]) for name in nodes[0]}
    return {**joined, "tree_roots": first_node[:-1]}


def _one_tree(tree: Tree) -> dict[str, NDArray[Any]]:
    """Return the nodes of a tree, numbered within the tree."""
    from sdulearn.boosting.model_text import CATEGORICAL, DEFAULT_LEFT, MISSING_NAN, MISSING_ZERO

    kind = tree.decision >> 2 & 3
    if np.any(tree.decision & CATEGORICAL) or np.any(kind == MISSING_ZERO):
        raise InputError("This kind of split cannot be written to ONNX. Save it as a model file.")
    if len(tree.leaf) == 1:
        zero: Indices = np.zeros(1, dtype=np.intp)
        return {"nodes_featureids": zero, "splits": np.zeros(1), "nodes_truenodeids": zero - 1,
                "nodes_falsenodeids": zero - 1, "nodes_missing_value_tracks_true": zero}  # fmt: skip
    # LightGBM sends NaN the default way, or treats it as 0 where none occurred in training.
    missing_left = np.where(kind == MISSING_NAN, tree.decision & DEFAULT_LEFT > 0, tree.threshold >= 0)
    return {"nodes_featureids": tree.feature, "splits": tree.threshold, "nodes_truenodeids": tree.left,
            "nodes_falsenodeids": tree.right, "nodes_missing_value_tracks_true": missing_left}  # fmt: skip
