"""Results as JSON: what ``--json`` prints, the same way for every command."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from os import PathLike
from pathlib import Path

import numpy as np

from sdulearn.errors import FileError


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Option ``--json``, worded alike in all commands."""
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object instead of text")


def make_folder(path: Path) -> Path:
    """The folder, made where it is not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"The folder {path} cannot be made: {error.strerror}. Choose another with --out.") from error
    return path


def print_json(data: object) -> None:
    """Print results as one JSON object on standard output."""
    print(json.dumps(as_plain(data), indent=2, allow_nan=False))


def as_plain(data: object) -> object:
    """The same data in the types that JSON has."""
    if isinstance(data, np.ndarray | np.generic):
        data = data.tolist()
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return {field.name: as_plain(getattr(data, field.name)) for field in dataclasses.fields(data)}
    if isinstance(data, Mapping):
        return {str(as_plain(key)): as_plain(value) for key, value in data.items()}
    if isinstance(data, AbstractSet):
        return [as_plain(value) for value in sorted(data)]
    if isinstance(data, list | tuple):
        return [as_plain(value) for value in data]
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    return str(data) if isinstance(data, PathLike) else data
