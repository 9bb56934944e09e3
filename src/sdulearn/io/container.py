"""The model file: a JSON header, then plain arrays, then a checksum. Nothing in it is ever executed.

Layout: 8 bytes magic, 4 bytes format version, 8 bytes header length (both little-endian), the
header as UTF-8 JSON, the arrays one after the other (little-endian, in the header's order), 32
bytes SHA-256 of all before.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import InputError, ModelFileError

MAGIC = b"SDULEARN"
FORMAT_VERSION = 1
_PREFIX = struct.Struct("<8sIQ")
_DIGEST_SIZE = 32
_DTYPES = {"f8": np.dtype("<f8"), "i8": np.dtype("<i8")}


def write(path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write header and arrays; the file appears whole or not at all."""
    specs, blocks = [], []
    for name, array in arrays.items():
        kind = "f8" if array.dtype.kind == "f" else "i8"
        blocks.append(np.ascontiguousarray(array, dtype=_DTYPES[kind]).tobytes())
        specs.append({"name": name, "dtype": kind, "shape": list(array.shape)})
    text = json.dumps({**header, "arrays": specs}, allow_nan=False).encode()
    body = b"".join([_PREFIX.pack(MAGIC, FORMAT_VERSION, len(text)), text, *blocks])
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(body + hashlib.sha256(body).digest())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def read(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file, or a ModelFileError that says what is wrong with it."""
    with Path(path).open("rb") as file:
        # The first bytes decide whether to read on: a stranger's link may lead to a device without
        # end.
        data = file.read(len(MAGIC))
        if data != MAGIC[: len(data)] or not data:
            raise ModelFileError(f"{path} is not an sdulearn model file (made by estimator.save).")
        data += file.read()
    if len(data) < _PREFIX.size + _DIGEST_SIZE:
        raise ModelFileError(f"{path} is truncated: {len(data)} bytes are left. Copy or save the model again.")
    _, version, header_size = _PREFIX.unpack_from(data)
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, and this sdulearn reads up to {FORMAT_VERSION}. Upgrade sdulearn."
        )
    body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if hashlib.sha256(body).digest() != digest:
        raise ModelFileError(f"{path} is truncated or altered: its checksum does not fit. Copy or save it again.")
    return _parse(path, body, header_size)


def _parse(path: str | PathLike[str], body: bytes, header_size: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays; every size is checked against the bytes that are there before it is used."""
    start = _PREFIX.size + header_size
    if start > len(body):
        raise ModelFileError(f"{path} is damaged: its header is said to be longer than the file.")
    try:
        header = json.loads(body[_PREFIX.size : start].decode())
        specs = [(str(s["name"]), _DTYPES[s["dtype"]], tuple(s["shape"])) for s in header.pop("arrays")]
        sizes = [_size(shape) for _, _, shape in specs]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its header cannot be read ({repr(error)[:300]}).") from None
    if start + 8 * sum(sizes) != len(body):
        raise ModelFileError(f"{path} is damaged: its arrays do not fill the file as its header says.")
    arrays = {}
    for (name, dtype, shape), size in zip(specs, sizes, strict=True):
        arrays[name] = np.frombuffer(body, dtype=dtype, count=size, offset=start).reshape(shape).copy()
        start += 8 * size
    return header, arrays


def _size(shape: tuple[Any, ...]) -> int:
    if len(shape) > 2 or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
        raise InputError(f"bad shape {shape!r}")
    return math.prod(shape)
