"""The ONNX graph of a linear score with boosted trees.

The trees are one ``TreeEnsemble`` node (version 5 of ONNX's operators for machine learning), which knows double
precision; before it the linear score, in matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sdulearn.boosting.model_text import CATEGORICAL, DEFAULT_LEFT, MISSING_NAN, MISSING_ZERO, Tree, read_trees
from sdulearn.boosting.score_classifier import ScoreClassifier
from sdulearn.boosting.start import MOST_LOGIT, Kernel, LinearScore
from sdulearn.errors import InputError
from sdulearn.types import Array

_ML_OPSET = 5
_SUM = 1
_AT_MOST = 0


class Graph(Protocol):
    """Nodes and constants as they are added; every method gives back the name of its result."""

    onnx: Any

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node."""
        ...

    def constant(self, value: NDArray[Any]) -> str:
        """Add a constant."""
        ...

    def two_classes(self, total: str, link: str | None) -> None:
        """Add decision, label and probability of two classes."""
        ...

    def many_classes(self, total: str) -> None:
        """Add decision, label and probabilities of more."""
        ...


def build_trees(graph: Graph, model: ScoreClassifier, rows: str, refused: str | None = None) -> int:
    """The outputs of a fitted model; gives back the version of the operators that they need.

    ``rows`` names the features, NaN where one is missing; ``refused`` a column that is added to the score.
    """
    if model.categories_:
        raise InputError(
            "A model with categorical columns cannot be written to ONNX: the graph has no place for its categories. "
            "Save it as a model file, or encode the categories as numbers before the fit."
        )
    total = _linear(graph, model.start_, rows)
    if model.boosters_:
        total = graph.node("Add", total, _ensemble(graph, model, rows))
    if refused is not None:
        total = graph.node("Add", total, refused)
    if model.n_classes_ == 2:
        graph.two_classes(
            graph.node("Mul", total, graph.constant(np.array(1.0 if model.order_[0] == 0 else -1.0))), "logistic"
        )
    else:
        graph.many_classes(graph.node("Gather", total, graph.constant(model.order_), axis=1))
    return _ML_OPSET


def _linear(graph: Graph, start: LinearScore, rows: str) -> str:
    features = start.features
    missing = graph.node("IsNaN", rows)
    filled = graph.node("Where", missing, graph.constant(features.mean[None, :]), rows)
    columns = _standardised(graph, filled, features.mean, features.scale)
    if features.kernel is not None:
        columns = _kernel(graph, features.kernel, columns)
    by_class = start.coef if start.coef.ndim > 1 else start.coef[:, None]
    product = graph.node("MatMul", columns, graph.constant(np.ascontiguousarray(by_class)))
    return _bounded(graph, graph.node("Add", product, graph.constant(start.intercept)), by_class.shape[1])


def _bounded(graph: Graph, score: str, width: int) -> str:
    """As :func:`sdulearn.boosting.start.bounded`."""
    most = graph.constant(np.array(MOST_LOGIT))
    if width == 1:
        return graph.node("Clip", score, graph.constant(np.array(-MOST_LOGIT)), most)
    highest = graph.node("ReduceMax", score, graph.constant(np.array([1], dtype=np.int64)), keepdims=1)
    return graph.node("Max", score, graph.node("Sub", highest, most))


def _standardised(graph: Graph, columns: str, mean: Array, scale: Array) -> str:
    centred = graph.node("Sub", columns, graph.constant(mean[None, :]))
    return graph.node("Mul", centred, graph.constant(scale[None, :]))


def _kernel(graph: Graph, kernel: Kernel, rows: str) -> str:
    """``exp(-|a - b|^2 / (2 d))`` with every point of the kernel, then its weights."""
    points, weights, mean, scale = kernel
    own = graph.node(
        "ReduceSum", graph.node("Mul", rows, rows), graph.constant(np.array([1], dtype=np.int64)), keepdims=1
    )
    crossed = graph.node("MatMul", rows, graph.constant(-2 * points.T))
    squares = graph.node("Add", graph.node("Add", own, crossed), graph.constant((points**2).sum(axis=1)[None, :]))
    positive = graph.node("Max", squares, graph.constant(np.array(0.0)))
    exponent = graph.node("Mul", positive, graph.constant(np.array(-1 / (2 * points.shape[1]))))
    values = graph.node("MatMul", graph.node("Exp", exponent), graph.constant(weights))
    return _standardised(graph, values, mean, scale)


def _ensemble(graph: Graph, model: ScoreClassifier, rows: str) -> str:
    """The mean of all boosters as one sum of trees."""
    nodes = _Nodes(1 / len(model.trees_))
    n_scores = 1 if model.n_classes_ == 2 else model.n_classes_
    for text in model.trees_:
        for place, tree in enumerate(read_trees(text, model.n_features_in_, model.n_classes_)):
            nodes.add(tree, place % n_scores)
    tensor = graph.onnx.numpy_helper.from_array
    return graph.node(
        "TreeEnsemble",
        rows,
        domain="ai.onnx.ml",
        n_targets=n_scores,
        aggregate_function=_SUM,
        tree_roots=nodes.roots,
        nodes_featureids=nodes.features,
        nodes_splits=tensor(np.array(nodes.thresholds), "splits"),
        nodes_modes=tensor(np.full(len(nodes.features), _AT_MOST, dtype=np.uint8), "modes"),
        nodes_truenodeids=nodes.left,
        nodes_trueleafs=nodes.left_is_leaf,
        nodes_falsenodeids=nodes.right,
        nodes_falseleafs=nodes.right_is_leaf,
        nodes_missing_value_tracks_true=nodes.missing_left,
        leaf_targetids=nodes.targets,
        leaf_weights=tensor(np.array(nodes.leaves), "leaves"),
    )


class _Nodes:
    """The arrays of a TreeEnsemble, tree after tree."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.roots: list[int] = []
        self.features: list[int] = []
        self.thresholds: list[float] = []
        self.left: list[int] = []
        self.left_is_leaf: list[int] = []
        self.right: list[int] = []
        self.right_is_leaf: list[int] = []
        self.missing_left: list[int] = []
        self.leaves: list[float] = []
        self.targets: list[int] = []

    def add(self, tree: Tree, target: int) -> None:
        """One more tree of a score; a lone leaf becomes a node with two equal ones."""
        first_node = len(self.features)
        first_leaf = len(self.leaves)
        self.roots.append(first_node)
        self.leaves += (tree.leaf * self.share).tolist()
        self.targets += [target] * len(tree.leaf)
        if len(tree.leaf) == 1:
            self._add_node(0, 0.0, (first_leaf, first_leaf), (True, True), False)
            return
        for feature, threshold, left, right, decision in zip(
            tree.feature, tree.threshold, tree.left, tree.right, tree.decision, strict=True
        ):
            children = [int(first_leaf - child - 1 if child < 0 else first_node + child) for child in (left, right)]
            missing_left = _missing_goes_left(int(decision), float(threshold))
            self._add_node(int(feature), float(threshold), children, [left < 0, right < 0], missing_left)

    def _add_node(
        self, feature: int, threshold: float, children: Sequence[int], are_leaves: Sequence[bool], missing: bool
    ) -> None:
        self.features.append(feature)
        self.thresholds.append(threshold)
        self.left.append(children[0])
        self.right.append(children[1])
        self.left_is_leaf.append(int(are_leaves[0]))
        self.right_is_leaf.append(int(are_leaves[1]))
        self.missing_left.append(int(missing))


def _missing_goes_left(decision: int, threshold: float) -> bool:
    """LightGBM sends NaN in the default direction, or takes it for 0 where training knew no missing values."""
    kind = decision >> 2 & 3
    if decision & CATEGORICAL or kind == MISSING_ZERO:
        raise InputError("This kind of split cannot be written to ONNX. Save the model as a model file.")
    if kind == MISSING_NAN:
        return bool(decision & DEFAULT_LEFT)
    return threshold >= 0
