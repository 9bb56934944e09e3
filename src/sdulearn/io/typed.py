"""Convert data to JSON and back: ``read`` checks every value against its type.

An untrusted file can hold anything. The annotations of a dataclass say what is accepted: finite
numbers, printable texts, limits by :class:`sdulearn.types.Between`. Fields whose names begin with an
underscore are not written. A class with ``as_json`` and ``from_json`` converts itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from os import PathLike
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from sdulearn.types import Array, Between


def plain(data: object) -> Any:
    """Convert data to the types of JSON; NaN and infinity become null."""
    if isinstance(data, np.ndarray | np.generic):
        data = data.tolist()
    if hasattr(data, "as_json"):
        return data.as_json()
    if is_dataclass(data) and not isinstance(data, type):
        names = [field.name for field in fields(data) if not field.name.startswith("_")]
        return {name: plain(getattr(data, name)) for name in names}
    if isinstance(data, Mapping):
        return {str(plain(key)): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    return str(data) if isinstance(data, PathLike) else data


def read(kind: Any, value: object) -> Any:
    """Read a value of JSON as the type ``kind``, or raise a TypeError or ValueError."""
    origin = get_origin(kind) or kind
    arguments = get_args(kind)
    if kind is Any:
        return value
    if hasattr(kind, "from_json"):
        return kind.from_json(value)
    if origin is Annotated:
        return _within(arguments[0], arguments[1], value)
    if origin in (Union, UnionType):
        return _first_of(arguments, value)
    if origin is Literal:
        if not any(type(value) is type(choice) and value == choice for choice in arguments):
            raise ValueError(f"expected one of {', '.join(map(repr, arguments))}")
        return value
    if origin is np.ndarray:
        return finite(np.array(_of(list, value), dtype=np.float64))
    if origin is tuple:
        items = _of(list, value)
        kinds = arguments[:1] * len(items) if arguments[-1] is Ellipsis else arguments
        return tuple(read(one, item) for one, item in zip(kinds, items, strict=True))
    if origin in (list, Sequence):
        return [read(arguments[0], item) for item in _of(list, value)]
    if origin in (dict, Mapping):
        return {_key(arguments[0], key): read(arguments[1], item) for key, item in _of(dict, value).items()}
    return record(kind, value) if is_dataclass(kind) else _leaf(kind, value)


def finite(array: NDArray[Any]) -> Array:
    """Check that all numbers are finite floats."""
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError("numbers are missing or infinite")
    return array


def _key(kind: Any, key: str) -> Any:
    """Read a key of an object, which is text in JSON even where it is a number."""
    whole = int in (kind, *get_args(kind)) and key.isascii() and key.isdecimal()
    return read(kind, int(key) if whole else key)


def _of(kind: type, value: object) -> Any:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, found {type(value).__name__}")
    return value


def _leaf(kind: type, value: object) -> Any:
    if kind is float:
        if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
            raise TypeError("expected a finite number")
        return float(value)  # type: ignore[arg-type]
    if kind not in (str, int, bool, NoneType):
        raise TypeError(f"{kind!r} cannot be read from JSON")
    if kind is str:
        _of(str, value).encode()  # a lone surrogate, which JSON can spell, could not be printed
    return _of(kind, value)


def _within(kind: Any, limits: Between, value: object) -> Any:
    if value is None and limits.nan:
        return math.nan
    found = read(kind, value)
    if not limits.low <= found <= limits.high:
        raise ValueError(f"expected a number from {limits.low} to {limits.high}")
    return found


def _first_of(kinds: tuple[Any, ...], value: object) -> Any:
    """Read a value as the first type that fits; raise the error of the last where none does."""
    if value is None and NoneType in kinds:
        return None
    *others, last = (kind for kind in kinds if kind is not NoneType)
    for kind in others:
        try:
            return read(kind, value)
        except (TypeError, ValueError):
            continue
    return read(last, value)


def record(kind: Any, value: object) -> Any:
    """Read a dataclass; unknown keys are ignored, and missing ones have the default."""
    given = _of(dict, value)
    found = {}
    for name, (hint, required) in _fields(kind).items():
        if name in given:
            found[name] = read(hint, given[name])
        elif required:
            raise TypeError(f"{name!r} is missing")
    return kind(**found)


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field of a dataclass, and whether it is required."""
    hints = get_type_hints(kind, include_extras=True)
    kept = [field for field in fields(kind) if not field.name.startswith("_")]
    return {f.name: (hints[f.name], f.default is MISSING and f.default_factory is MISSING) for f in kept}
