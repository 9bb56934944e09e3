"""Results as JSON: what ``--json`` prints, the same way for every command."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from sdulearn.errors import FileError
from sdulearn.io.typed import plain


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
    print(json.dumps(plain(data), indent=2, allow_nan=False))
