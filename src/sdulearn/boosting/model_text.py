"""LightGBM's text of a booster: read into numbers, checked, and written again.

Untrusted bytes never reach LightGBM: its reader trusts sizes and indices. What it gets of a model
file is a text that :func:`checked_trees` makes of checked fields. Numbers have 17 digits in it, so
a loaded model is the fitted one to the last bit.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np

from sdulearn.errors import InputError
from sdulearn.types import Array, Indices

Booster: TypeAlias = Any
"""A lightgbm.Booster: LightGBM is imported only where it is used."""

# The bit of a node's decision that says that its threshold is the number of a set of categories.
_CATEGORICAL = 1
_NUMBER = re.compile(r"-?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|-?inf", re.ASCII)
_MAX_LEAVES = 2**16
_PARTS = (
    "num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child", "right_child", "leaf_value",
)  # fmt: skip
_SETS = ("cat_boundaries", "cat_threshold")
_BY_NODE = ("split_gain", "internal_value", "internal_weight", "internal_count")
_BY_LEAF = ("leaf_weight", "leaf_count")


def trees_text(booster: Booster) -> str:
    """The text of the trees of a LightGBM booster, without the parameters of the fit."""
    text = booster.model_to_string(num_iteration=-1)
    return str(text.partition("end of trees")[0]) + "end of trees\n"


def checked_trees(text: str, n_features: int, n_classes: int = 2) -> str:
    """A booster's text for LightGBM, written from the fields of each tree after a check of every number and index."""
    head, *blocks = text.split("\nTree=")
    outputs = 1 if n_classes == 2 else n_classes
    header = _fields(head)
    for name, wanted in (("num_tree_per_iteration", outputs), ("max_feature_idx", n_features - 1)):
        if header.get(name) != str(wanted):
            raise InputError(f"the trees are not those of this model: {name} is not {wanted}")
    if len(blocks) % outputs:
        raise InputError("a round of trees is not whole")
    trees = [_tree(_fields(block.partition("end of trees")[0]), n_features) for block in blocks]
    blocks = [f"Tree={place}\n{tree}\n\n\n" for place, tree in enumerate(trees)]
    lines = [
        "tree",
        "version=v4",
        f"num_class={outputs}",
        f"num_tree_per_iteration={outputs}",
        "label_index=0",
        f"max_feature_idx={n_features - 1}",
        "feature_names=" + " ".join(f"Column_{j}" for j in range(n_features)),
        "feature_infos=" + " ".join(["none"] * n_features),
        "tree_sizes=" + " ".join(str(len(block)) for block in blocks),
    ]
    return "\n".join(lines) + "\n\n" + "".join(blocks) + "end of trees\n"


def _fields(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, equals, value in pairs if equals}


def _tree(fields: dict[str, str], n_features: int) -> str:
    """The lines of a tree of n leaves and n - 1 inner nodes, which LightGBM reads; a child of -k - 1 is leaf k."""
    n = int(_wholes(fields, "num_leaves", 1, 1, _MAX_LEAVES)[0])
    n_sets = int(_wholes(fields, "num_cat", 1, 0, n)[0])
    if fields.get("is_linear", "0") != "0":
        raise InputError("trees with linear leaves are not supported")
    _wholes(fields, "split_feature", n - 1, 0, n_features - 1)
    left = _wholes(fields, "left_child", n - 1, -n, n - 2)
    right = _wholes(fields, "right_child", n - 1, -n, n - 2)
    _check_shape(left, right, n)
    decision = _wholes(fields, "decision_type", n - 1, 0, 11)
    threshold = _floats(fields, "threshold", n - 1)
    # Sets of categories are words of 32 bits, and where each set begins.
    boundaries = _wholes(fields, "cat_boundaries", n_sets + 1 if n_sets else 0, 0, 2**24)
    _wholes(fields, "cat_threshold", int(boundaries[-1]) if n_sets else 0, 0, 2**32 - 1)
    _check_sets(threshold[(decision & _CATEGORICAL) > 0], boundaries)
    if not np.isfinite(_floats(fields, "leaf_value", n)).all():
        raise InputError("a leaf is not finite")
    for name in _BY_NODE:
        _floats(fields, name, n - 1)
    for name in _BY_LEAF:
        _floats(fields, name, n if n > 1 else None)
    names = (*_PARTS, *_BY_NODE, *_BY_LEAF, *(_SETS if n_sets else ()))
    # The shrinkage is in the values of the leaves already; LightGBM keeps it for itself.
    return "\n".join([*(f"{name}={fields.get(name, '')}" for name in names), "is_linear=0", "shrinkage=1"])


def _check_shape(left: Indices, right: Indices, n_leaves: int) -> None:
    """Every node but the root is the child of exactly one that comes before it."""
    children = np.concatenate([left, right])
    parents = np.tile(np.arange(n_leaves - 1), 2)
    inner = children >= 0
    if (children[inner] <= parents[inner]).any():
        raise InputError("a node of a tree comes before its parent")
    expected = np.concatenate([np.arange(-n_leaves, 0) if n_leaves > 1 else [], np.arange(1, n_leaves - 1)])
    if not np.array_equal(np.sort(children), expected):
        raise InputError("the nodes of a tree do not hang together")


def _check_sets(chosen: Array, boundaries: Indices) -> None:
    """Sets of categories that are there, in ascending order."""
    if (np.diff(boundaries) <= 0).any() or (len(boundaries) and boundaries[0] != 0):
        raise InputError("the sets of categories of a tree overlap")
    n_sets = max(len(boundaries) - 1, 0)
    if not ((chosen == np.rint(chosen)) & (chosen >= 0) & (chosen < n_sets)).all():
        raise InputError("a tree asks for a set of categories that is not there")


def _words(fields: dict[str, str], name: str, size: int | None) -> list[str]:
    words = fields[name].split(" ") if fields.get(name) else []
    if size is not None and len(words) != size:
        raise InputError(f"a tree has {len(words)} entries of {name}, where {size} are expected")
    return words


def _wholes(fields: dict[str, str], name: str, size: int, low: int, high: int) -> Indices:
    words = _words(fields, name, size)
    for word in words:
        if not re.fullmatch(r"-?\d{1,10}", word, re.ASCII) or not low <= int(word) <= high:
            raise InputError(f"a tree holds {word[:20]!r}, where a whole number from {low} to {high} is expected")
    return np.array(words, dtype=np.intp)


def _floats(fields: dict[str, str], name: str, size: int | None) -> Array:
    words = _words(fields, name, size)
    if not all(_NUMBER.fullmatch(word) for word in words):
        raise InputError(f"{name} of a tree is not a list of numbers")
    return np.array(words, dtype=np.float64)
