"""What all files have in common: format by name, bytes, text, and being written whole."""

from __future__ import annotations

import glob
import gzip
import io
import os
import re
import secrets
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from sdulearn.errors import FileError, InputError, MissingFileError

Location = str | PathLike[str]

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".npy": "npy",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svm",
    ".svmlight": "svm",
    ".libsvm": "svm",
    ".xlsx": "xlsx",
}
_PANDAS_MISSING = ("NAType", "NaTType")
# Nobody writes a file for a day without adding to it.
_OLD_SECONDS = 86_400
# Begins like a formula, as -1 and +0.5 do not; after apostrophes too: one more can be taken off.
_FORMULA = re.compile(r"'*(?![+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?\Z)[=+\-@\t\r\n＝＋－＠].", re.DOTALL)


def is_location(source: object) -> bool:
    """Whether a path is given, not a frame."""
    return isinstance(source, str) or hasattr(source, "__fspath__")


def file_format(path: Location, allowed: Sequence[str]) -> str:
    """One of the allowed formats, by the ending of a file's name (before ``.gz``)."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    ending = next((e for e in reversed(endings) if e != ".gz"), "")
    found = _FORMATS.get(ending, "")
    if found not in allowed:
        listed = ", ".join("." + name for name in allowed)
        raise InputError(f"{path}: the name must end in {listed} (and .gz, if zipped).")
    return found


def open_bytes(path: Location) -> IO[bytes]:
    """A file's bytes, unzipped where it is gzipped, whatever its name."""
    if Path(path).is_char_device() or Path(path).is_block_device():
        raise InputError(f"{path} is a device, which has no end. Name a file.")
    try:
        if Path(path).is_fifo():
            # A pipe gives its bytes once.
            return io.BytesIO(Path(path).read_bytes())
        with Path(path).open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
    except OSError as error:
        raise cannot_open(path, error) from None
    return gzip.open(path, "rb") if zipped else Path(path).open("rb")  # type: ignore[return-value]


def cannot_open(path: Location, error: OSError) -> FileError:
    """The error of a file that the system does not let us open."""
    kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
    return kind(f"{path} cannot be opened: {error.strerror or error}.")


@contextmanager
def refuse_damaged(path: Location) -> Iterator[None]:
    """What gzip raises on a file that is cut off or damaged, as an error of ours."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is cut off or damaged ({error}). Copy it again.") from None


def folder_of(source: Any) -> Path:
    """The folder of a table, in which files that it names are looked for; of a frame the current one."""
    path = Path(source) if is_location(source) else Path()
    return path if path.is_dir() else path.parent


def read_bytes(path: Location) -> bytes:
    """A whole file."""
    with open_bytes(path) as file, refuse_damaged(path):
        return file.read()


def decoded(path: Location, text: bytes, where: str = "") -> str:
    """Text in UTF-8, with or without a byte order mark; ``where`` names the part of the file."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}{where} is not text in UTF-8: byte {text[error.start]:#04x} at {error.start:,}. If it comes from a "
            f"spreadsheet, save it as 'CSV UTF-8'; else convert it: iconv -f WINDOWS-1252 -t UTF-8 {path}"
        ) from None


def delimiter(first_line: str, name: str) -> str:
    """The delimiter of a CSV or TSV file: semicolons where the comma is a decimal mark."""
    if name == "tsv":
        return "\t"
    return ";" if ";" in first_line and "," not in first_line else ","


def as_text(value: object) -> str:
    """An id or a label as text: 7 and 7.0 are "7", True is "true", None and NaN are empty."""
    if value is None or type(value).__name__ in _PANDAS_MISSING:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float):
        if np.isnan(value):
            return ""
        if value.is_integer():
            return str(int(value))
    return str(value).strip()


def as_cell(text: str) -> str:
    """A text for a CSV file, with an apostrophe where a spreadsheet would run a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(cell: str) -> str:
    """The text of :func:`as_cell` again."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


@contextmanager
def written_whole(path: Location) -> Iterator[Path]:
    """A draft that takes the file's name at the end: the file appears whole or not at all."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        draft.touch(exist_ok=False)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from None
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    for other in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        # Of a killed process, by its age: nobody can tell whether one runs on another machine.
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > _OLD_SECONDS:
                other.unlink()
