"""Weights of a network in a model file: safetensors as an array of integers, with names and shapes checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import InputError, OptionalModule
from sdulearn.types import Codes

_safetensors = OptionalModule("safetensors", "torch")
_arrays = OptionalModule("safetensors.numpy", "torch")
Weights = dict[str, NDArray[Any]]


def packed(weights: Weights) -> Codes:
    """Return weights as integers of 8 bytes: the number of bytes, the bytes of safetensors, spaces."""
    data = _arrays.save({name: np.array(array, order="C") for name, array in weights.items()})
    return np.frombuffer(len(data).to_bytes(8, "little") + data + b" " * (-len(data) % 8), dtype="<i8").copy()


def unpacked(integers: Codes, shapes: Mapping[str, tuple[int, ...]]) -> Weights:
    """Return weights that have these shapes and are finite; raise InputError if they do not."""
    try:
        weights: Weights = _arrays.load(integers[1:].astype("<i8").tobytes()[: int(integers[0])])
    except _safetensors.SafetensorError as error:
        raise InputError(f"the weights cannot be read: {error}") from None
    if {name: array.shape for name, array in weights.items()} != dict(shapes):
        raise InputError("the weights are not those of the network")
    if not all(np.isfinite(array).all() for array in weights.values()):
        raise InputError("weights are missing or infinite")
    return weights
