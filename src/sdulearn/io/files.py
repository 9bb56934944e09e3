"""What all files share: formats by name, bytes and text, headers, and writing."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import os
import re
import secrets
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from sdulearn.errors import FileError, InputError, MissingFileError, quoted

Location = str | PathLike[str]

# Endings of file names, by format.
ENDINGS = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "npy": (".npy",),
    "parquet": (".parquet", ".pq"),
    "xlsx": (".xlsx",),
}
_PANDAS_MISSING = ("NAType", "NaTType")
# A draft that was not written to for a day belongs to a killed process.
_OLD_SECONDS = 86_400
# A line above the header in which a spreadsheet names its delimiter.
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
# Lines that decide what the delimiter and the header of a text file are.
HEAD_LINES = 50
# What a western spreadsheet writes as plain CSV; bytes that it does not have, and letters in UTF-8.
WINDOWS = "windows-1252"
_NOT_WINDOWS = re.compile(rb"[\x00-\x08\x81\x8d\x8f\x90\x9d]|\xff\xfe|\xfe\xff|[\xc2-\xf4][\x80-\xbf]")
_ASCII = bytes(range(128))
_NO_LETTERS = bytes(code for code in _ASCII if not chr(code).isalpha())
_BLOCK_BYTES = 1 << 20
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*")
# Begins like a formula, unlike -1 and +0.5; also after apostrophes, of which one more is removed.
_FORMULA = re.compile(r"'*(?![+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?\Z)[=+\-@\t\r\n＝＋－＠].", re.DOTALL)
FORMULA_START = r"^['=+\-@\t\r\n＝＋－＠]"


def is_location(source: object) -> bool:
    """Whether the source is a path, not a frame."""
    return isinstance(source, str) or hasattr(source, "__fspath__")


def file_format(path: Location, allowed: Sequence[str], output: bool = False) -> str:
    """Return one of the allowed formats by the ending of a file's name, before ``.gz``; an ``output`` is written."""
    endings = [ending.lower() for ending in Path(path).suffixes if ending.lower() != ".gz"]
    for name in allowed:
        if endings and endings[-1] in ENDINGS[name]:
            return name
    advice = "Save other kinds of files, such as .xls, .ods or .sav, as .xlsx or as CSV in UTF-8."
    advice = "Other formats cannot be written." if output else advice
    raise InputError(f"{path}: the name must end in .{', .'.join(allowed)} (and .gz, if zipped). {advice}")


def open_bytes(path: Location) -> IO[bytes]:
    """Open a file for reading, unzipped where it is gzipped, whatever its name."""
    if Path(path).is_char_device() or Path(path).is_block_device():
        raise InputError(f"{path} is a device, which has no end. Name a file.")
    try:
        if Path(path).is_fifo():
            # A pipe can be read only once.
            return io.BytesIO(Path(path).read_bytes())
        with Path(path).open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
    except OSError as error:
        raise cannot_open(path, error) from None
    return gzip.open(path, "rb") if zipped else Path(path).open("rb")  # type: ignore[return-value]


def blocks_of(path: Location) -> Iterator[bytes]:
    """Read a file in blocks."""
    with open_bytes(path) as file, refuse_damaged(path):
        yield from iter(lambda: file.read(_BLOCK_BYTES), b"")


def cannot_open(path: Location, error: OSError) -> FileError:
    """Return the error of a file that cannot be opened."""
    kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
    return kind(f"{path} cannot be opened: {error.strerror or error}.")


@contextmanager
def refuse_damaged(path: Location) -> Iterator[None]:
    """Turn what gzip raises on a file that is cut off or damaged into an error of ours."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is cut off or damaged ({error}). Copy it again.") from None


def folder_of(source: Any) -> Path:
    """Return the folder of the files that a table names; the current one for a frame."""
    path = Path(source) if is_location(source) else Path()
    return path if path.is_dir() else path.parent


def read_bytes(path: Location) -> bytes:
    """Read a whole file."""
    with open_bytes(path) as file, refuse_damaged(path):
        return file.read()


def encoding_of(path: Location, blocks: Iterable[bytes]) -> str:
    """Return the encoding of a text, UTF-8 or the Windows-1252 of western spreadsheets; refuse others.

    A text with letters in UTF-8 and a broken byte is damaged, and one with few letters of ASCII is in another alphabet.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8 = True
    has_other = is_wide = False
    n_letters = n_high = 0
    for block in blocks:
        if block.isascii() and b"\0" not in block:
            is_utf8 = is_utf8 and not decoder.getstate()[0]
            continue
        n_letters += len(block.translate(None, _NO_LETTERS))
        n_high += len(block.translate(None, _ASCII))
        has_other |= bool(_NOT_WINDOWS.search(block))
        is_wide |= b"\0" in block
        try:
            decoder.decode(block)
        except UnicodeDecodeError:
            is_utf8 = False
    if is_utf8 and not decoder.getstate()[0]:
        return "utf-8-sig"
    if has_other or is_wide or 3 * n_high > n_letters:
        raise not_utf8(path, wide=is_wide)
    return WINDOWS


def decoded(path: Location, text: bytes, where: str = "") -> str:
    """Decode UTF-8, with or without a byte order mark; ``where`` names the part of the file."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, where, f": byte {text[error.start]:#04x} at {error.start:,}") from None


def not_utf8(path: Location, where: str = "", at: str = "", wide: bool = False) -> InputError:
    """Return the error of a text in another encoding."""
    return InputError(
        f"{path}{where} is not text in UTF-8{at}. If it comes from a spreadsheet, save it as 'CSV "
        f"UTF-8'; else convert it: iconv -f {'UTF-16' if wide else 'ENCODING'} -t UTF-8 {path} > NEW_FILE"
    )


def find_header(rows: Sequence[Sequence[object]], is_first: bool) -> tuple[int, list[str]]:
    """Return which of the first rows names the columns, and the names, made up as in pandas.

    Titles and blank rows may be above it unless ``is_first``.
    """
    place = 0
    if not is_first:
        filled = [[k for k, cell in enumerate(row) if as_text(cell)] for row in rows[:HEAD_LINES]]
        place = next((k for k, cells in enumerate(filled) if cells), 0)
        # A title fills the first cell alone.
        wide = next((k for k, cells in enumerate(filled) if cells and cells != [0]), place)
        cells = [rows[wide][k] for k in filled[wide]] if rows else []
        if all(isinstance(cell, str) and not _NUMBER.fullmatch(cell.strip()) for cell in cells):
            place = wide
    header = rows[place] if rows else []
    return place, [as_text(name) or f"Unnamed: {k}" for k, name in enumerate(header)]


def text_head(lines: Sequence[str], name: str, skip_rows: int | None = None) -> tuple[str, int, int, list[str]]:
    """Return the delimiter, the numbers of lines above the header and down to it, and names."""
    lines = lines[:HEAD_LINES]
    named = None if skip_rows is not None else _SEPARATOR.fullmatch(lines[0].strip())
    above = 1 if named else skip_rows or 0
    mark = named[1] if named else _delimiter(lines[above:], name)
    reader = csv.reader(lines[above:], delimiter=mark)
    rows = [(row, above + reader.line_num) for row in reader]
    place, names = find_header([row for row, _ in rows], skip_rows is not None)
    end = rows[place][1] if rows else above
    return mark, rows[place - 1][1] if place else above, end, names


def _delimiter(lines: Sequence[str], name: str) -> str:
    """Return what splits most lines into the same number of cells, and into most cells."""
    if name == "tsv":
        return "\t"
    score = {}
    for mark in ";\t|,":
        widths = Counter(len(row) for row in csv.reader(lines, delimiter=mark) if len(row) > 1)
        width, number = widths.most_common(1)[0] if widths else (1, 0)
        score[mark] = number, width
    return max(score, key=score.__getitem__)


def check_quotes(path: Location, lines: Iterable[str], delimiter: str, above: int = 0) -> None:
    """Refuse a quote that begins a cell and is never closed, or in the middle of a cell of a later line.

    It would make one cell of all lines between. ``above`` is the number of lines above these.
    """
    sign = re.escape(delimiter)
    cell = rf'(?:"[^"]*(?:""[^"]*)*"|[^"{sign}]*)'
    simple = re.compile(rf"{cell}(?:{sign}{cell})*[\r\n]*")
    opening = re.compile(rf'(?:\A|{sign})"')
    closing = re.compile(r'[^"]*(?:""[^"]*)*"(?!")')
    opened = 0  # the line of a quote that is not closed yet
    for number, line in enumerate(lines, above + 1):
        if '"' not in line or (not opened and simple.fullmatch(line)):
            continue
        place = 0
        while True:
            if not opened:
                begin = opening.search(line, place)
                if begin is None:
                    break
                opened, place = number, begin.end()
            if (end := closing.match(line, place)) is None:
                break
            place = end.end()
            if opened < number and line[place : place + 1] not in ("", "\r", "\n", delimiter):
                raise _open_quote(path, opened)
            opened = 0
    if opened:
        raise _open_quote(path, opened)


def _open_quote(path: Location, line: int) -> InputError:
    return InputError(
        f"{path}, line {line:,}: a cell begins with a quote that is not closed, so that the lines below would be part "
        "of it. Remove the quote, or add one at the end of the cell."
    )


def check_repeated(name: str, names: Sequence[str]) -> None:
    """Refuse two columns of the same name."""
    if repeated := [column for column, count in Counter(names).items() if count > 1]:
        raise InputError(f"{name} has two columns named {quoted(repeated[0])}. Rename or remove one of them.")


def as_text(value: object) -> str:
    """Spell an id or a label: 7 and 7.0 are "7", True is "true", None and NaN are empty."""
    is_nan = isinstance(value, float) and np.isnan(value)
    if value is None or is_nan or type(value).__name__ in _PANDAS_MISSING:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()  # type: ignore[call-overload]


def with_single_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object, as ``object_pairs_hook``; a ValueError if a key is there twice."""
    if len(cells := dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return cells


def as_cell(text: str) -> str:
    """Return a text for a CSV file, with an apostrophe where a spreadsheet would run a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(cell: str) -> str:
    """Undo :func:`as_cell`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _remove_folder(folder: Path) -> None:
    """Remove a folder; other threads may still write into it for a moment after an error."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)


@contextmanager
def written_whole(path: Location, folder: bool = False) -> Iterator[Path]:
    """Yield a draft that becomes the file or folder at the end: all of it, or nothing."""
    target = Path(path)
    if target.is_dir() and not folder:
        raise FileError(f"{target} cannot be written: it is a folder. Name a file.")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        draft.mkdir() if folder else draft.touch(exist_ok=False)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from None
    try:
        yield draft
        if not folder:
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
        draft.replace(target)
    finally:
        if folder:
            _remove_folder(draft)
        else:
            draft.unlink(missing_ok=True)
    for other in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        # A killed process left it. Its age says so: the process may have run on another machine.
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > _OLD_SECONDS:
                other.unlink()
