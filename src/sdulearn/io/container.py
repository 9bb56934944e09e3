"""The model file: a JSON header, plain arrays and a checksum. Nothing in it is ever executed.

Layout: 8 bytes magic, 4 bytes format version, 8 bytes header length (both little-endian), the header
as UTF-8 JSON, the arrays (little-endian, in the header's order), 32 bytes SHA-256 of all before. The
header also has the format version and the version of sdulearn that wrote it.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn import __version__
from sdulearn.errors import InputError, ModelFileError
from sdulearn.io.files import Location, cannot_open, written_whole
from sdulearn.io.typed import plain
from sdulearn.io.typed import read as read_typed
from sdulearn.types import Count, Estimator, Probability

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

MAGIC = b"SDULEARN"
# Increased when earlier files can no longer be read. No release wrote version 1.
FORMAT_VERSION = 3
READABLE = f"sdulearn {__version__} reads only model files of format version {FORMAT_VERSION}."
_PREFIX = struct.Struct("<8sIQ")
_DIGEST_SIZE = 32
_NOT_KEPT = object()
_DTYPES = {"f8": np.dtype("<f8"), "i8": np.dtype("<i8")}


def write(path: Location, header: Header, arrays: Arrays) -> None:
    """Write header and arrays; the file appears whole or not at all."""
    blocks = []
    specs = []
    for name, array in arrays.items():
        kind = "f8" if array.dtype.kind == "f" else "i8"
        blocks.append(np.ascontiguousarray(array, dtype=_DTYPES[kind]).tobytes())
        specs.append({"name": name, "dtype": kind, "shape": array.shape})
    written = {"format": FORMAT_VERSION, "sdulearn": __version__}
    text = json.dumps({**header, **written, "arrays": specs}, allow_nan=False).encode()
    body = b"".join([_PREFIX.pack(MAGIC, FORMAT_VERSION, len(text)), text, *blocks])
    with written_whole(path) as draft:
        draft.write_bytes(body + hashlib.sha256(body).digest())


def describe_estimator(estimator: Estimator) -> tuple[Header, Arrays]:
    """Return class, parameters and the attributes ``FITTED`` of an estimator, and its arrays."""
    fitted: Header = {}
    arrays: Arrays = {}
    for name in estimator.FITTED:
        if not hasattr(estimator, name):
            continue
        value = getattr(estimator, name)
        if is_dataclass(value) and not isinstance(value, type):
            fitted[name] = plain(value)
        elif isinstance(value, dict):
            # GridSearchCV has masked arrays without masked values.
            columns = {key: c.filled() if isinstance(c, np.ma.MaskedArray) else c for key, c in value.items()}
            arrays |= {f"{name}/{key}": column for key, column in columns.items() if isinstance(column, np.ndarray)}
            fitted[name] = {key: column for key, column in columns.items() if not isinstance(column, np.ndarray)}
        elif isinstance(value, np.ndarray) and value.dtype != object:
            arrays[name] = value
        else:
            fitted[name] = value.tolist() if isinstance(value, np.ndarray) else value
    params = {name: _jsonable(name, value) for name, value in estimator.get_params(deep=False).items()}
    kept = {name: value for name, value in params.items() if value is not _NOT_KEPT}
    return {"model": type(estimator).__name__, "params": kept, "fitted": fitted}, arrays


def restored(kind: type, header: Header, arrays: Arrays, **given: object) -> Estimator:
    """Restore an estimator, which checks itself; ``given`` are parameters that no file holds."""
    params = header["params"] | given
    if isinstance(params.get("error_rate"), list):
        # Rates by annotator are pairs in the file.
        params["error_rate"] = dict(read_typed(list[tuple[Count, Probability]], params["error_rate"]))
    model: Estimator = kind(**params)
    model._validate_params()
    fitted = header["fitted"]
    for name, array in arrays.items():
        # ``a/b`` is the array b of a mapping a.
        outer, _, key = name.partition("/")
        inner = fitted[outer] if key else fitted
        inner[key or name] = array
    model._restore(fitted)
    return model


def _jsonable(name: str, value: object) -> object:
    """Convert a parameter to JSON; a splitter, a random state or a module is not kept."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list | np.ndarray):
        return [_jsonable(name, item) for item in value]
    if isinstance(value, Mapping):
        # Keys of JSON objects are texts.
        return [[_jsonable(name, key), _jsonable(name, item)] for key, item in value.items()]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if name == "loss":
        own = f"A model trained with a loss object of your own ({type(value).__name__}) cannot be"
        raise InputError(f"{own} saved: a file holds numbers, not code. Keep coef_ and intercept_.")
    return _NOT_KEPT


def read(path: Location) -> tuple[Header, Arrays]:
    """Return header and arrays of a file; raise a ModelFileError where it is damaged."""
    try:
        with Path(path).open("rb") as file:
            # Read on only if the first bytes are right: a link may lead to an endless device.
            data = file.read(len(MAGIC))
            if data and data == MAGIC[: len(data)]:
                data += file.read()
    except OSError as error:
        raise cannot_open(path, error) from None
    if not data or not data.startswith(MAGIC[: len(data)]):
        raise ModelFileError(f"{path} is not an sdulearn model file, as sdulearn fit and `save` write them.")
    if len(data) < _PREFIX.size + _DIGEST_SIZE:
        raise ModelFileError(f"{path} is truncated: {len(data)} bytes are left. Copy or save it again.")
    _, version, header_size = _PREFIX.unpack_from(data)
    if version != FORMAT_VERSION:
        advice = "Upgrade sdulearn." if version > FORMAT_VERSION else "Fit the model again."
        raise ModelFileError(f"{path} has format version {version}. {READABLE} {advice}")
    body = data[:-_DIGEST_SIZE]
    if hashlib.sha256(body).digest() != data[-_DIGEST_SIZE:]:
        why = "truncated or altered: its checksum does not fit"
        raise ModelFileError(f"{path} is {why}. Copy or save it again.")
    return _parse(path, body, header_size)


def _finite(text: str) -> float:
    """Read a number that is not infinite, as no file of ours has one."""
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return value


def _parse(path: Location, body: bytes, header_size: int) -> tuple[Header, Arrays]:
    """Return header and arrays; every size is checked against the bytes before it is used."""
    start = _PREFIX.size + header_size
    if start > len(body):
        raise ModelFileError(f"{path} is damaged: its header is said to be longer than the file.")
    try:
        header = json.loads(body[_PREFIX.size : start].decode(), parse_float=_finite, parse_constant=_finite)
        specs = [(str(s["name"]), _DTYPES[s["dtype"]], tuple(s["shape"])) for s in header.pop("arrays")]
        shapes = [shape for *_, shape in specs]
        lengths = [n for shape in shapes for n in shape]
        if max(map(len, shapes), default=0) > 2 or not all(type(n) is int and 0 <= n < 2**48 for n in lengths):
            raise ValueError(f"bad shapes {shapes!r}")
        sizes = list(map(math.prod, shapes))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its header cannot be read ({repr(error)[:300]}).") from None
    if start + 8 * sum(sizes) != len(body):
        raise ModelFileError(f"{path} is damaged: its arrays do not fill it as its header says.")
    arrays = {}
    for (name, dtype, shape), size in zip(specs, sizes, strict=True):
        arrays[name] = np.frombuffer(body, dtype=dtype, count=size, offset=start).reshape(shape).copy()
        start += 8 * size
    return header, arrays
