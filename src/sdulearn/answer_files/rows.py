"""Read the rows of a file or frame as records, whatever the format; and the labels of rows."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.errors import InputError, quoted, shortened
from sdulearn.io.files import (
    WINDOWS,
    Location,
    as_text,
    check_quotes,
    check_repeated,
    decoded,
    encoding_of,
    file_format,
    from_cell,
    is_location,
    read_bytes,
    text_head,
    with_single_keys,
)
from sdulearn.parts import is_dask
from sdulearn.tables.excel import read_workbook
from sdulearn.tables.ids import looks_like_id
from sdulearn.tables.source import read_whole
from sdulearn.types import Codes, Frame

Record = dict[str, object]
# Number of a line, row or JSON item, and what it holds, or the reason why it cannot be read.
NumberedRecord = tuple[int, Record | str]

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx")
# Usual names of the columns for the two ends of a pair.
PAIR_COLUMNS = (
    ("id_a", "id_b"), ("id1", "id2"), ("id_1", "id_2"), ("a", "b"), ("left", "right"), ("left_id", "right_id"),
    ("id_left", "id_right"), ("unique_id_l", "unique_id_r"), ("id_l", "id_r"), ("ltable_id", "rtable_id"),
    ("first", "second"), ("links", "rechts"), ("gauche", "droite"), ("izquierda", "derecha"), ("sinistra", "destra"),
    ("id_links", "id_rechts"), ("item1", "item2"), ("i", "j"),
)  # fmt: skip
# Names of ids that differ in their ends alone: identifier1, identifier2; Kennung A, Kennung B.
_ENDS = (("a", "b"), ("1", "2"), ("left", "right"), ("l", "r"), ("first", "second"), ("x", "y"), ("i", "j"))
_ID_STEM = re.compile(
    r"(id|identifier|identifiant|kennung|schluessel|key|item|record|row|doc|document|text|image|object|point|sample)s?$"
)
_NEGATIVE = ("-1", "0", "false", "no")
_POSITIVE = ("1", "true", "yes")
# Whole numbers as Python writes them, which numpy holds: 007 is a name.
_WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0")


@dataclass(frozen=True)
class Sheet:
    """The rows of a file or frame, and how its format says to read them."""

    name: str  # the file, or what a frame is called
    format: str  # one of FORMATS, "frame", or that of a tool
    header: list[str]  # names of the columns, or keys of JSON objects in order of appearance
    records: list[NumberedRecord]  # cells by column
    document: Record | None = None  # the only row of a JSON file that is one object
    # roles whose column the format decides, such as ``{"label": "answer"}``
    columns: Mapping[str, str] = field(default_factory=dict)
    n_unanswered: int = 0  # questions that nobody has answered yet
    # whether all other columns are data that people were shown, in which nothing but ids is looked
    # for: the weight of a product is not the weight of an answer
    only_ids: bool = False

    def of(self, format_name: str, records: list[NumberedRecord], **more: Any) -> Sheet:
        """Return a sheet of a tool, one row per answer; ``more`` are other attributes."""
        return Sheet(self.name, format_name, *_keyed(records), **more)


def by_plain_name(header: Sequence[str]) -> dict[str, str]:
    """Return columns by their names in lower case with underscores; of two alike the first."""
    plain = {name: re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", name)) for name in header}
    return {re.sub(r"[\s.()-]+", "_", plain[name].strip(" )").lower()): name for name in reversed(header)}


def pair_columns(header: Sequence[str]) -> tuple[str, str] | None:
    """Return the two columns whose names are usual for the ends of a pair."""
    names = by_plain_name(header)
    if usual := next(((names[a], names[b]) for a, b in PAIR_COLUMNS if a in names and b in names), None):
        return usual
    stems = {(name.removesuffix(a).rstrip("_"), a, b): name for name in names for a, b in _ENDS if name.endswith(a)}
    both = [
        (names[first], names[second])
        for (stem, a, b), first in stems.items()
        if _ID_STEM.search(stem) and (second := f"{first.removesuffix(a)}{b}") in names
    ]
    return both[0] if len(both) == 1 else None


def read_sheet(source: Location | Frame, what: str, sheet: str | None = None) -> Sheet:
    """Read a file or frame; ``what`` is the name of a frame in messages."""
    if sheet is not None and not (is_location(source) and file_format(source, FORMATS) == "xlsx"):
        raise InputError(f"{what} have no sheets: these are in workbooks (.xlsx). Leave the sheet out.")
    if not is_location(source):
        return Sheet(what, "frame", *_frame(source))
    path = Path(source)
    name = "parquet" if path.is_dir() else file_format(path, FORMATS)
    if name == "parquet":
        return Sheet(str(source), name, *_frame(read_whole(path)))
    if name == "xlsx":
        found = read_workbook(path, sheet)
        file = f"{source}, sheet {quoted(found.sheet)}" if found.sheet else str(source)
        rows = enumerate(found.rows, found.place + 1)
        filled = [one for one in rows if any(cell is not None for cell in one[1])]
        return Sheet(file, name, found.names, _records(found.names, filled))
    data = read_bytes(path)
    encoding = encoding_of(path, [data]) if name in ("csv", "tsv") else "utf-8-sig"
    text = data.decode(WINDOWS) if encoding == WINDOWS else decoded(path, data)
    if not text.strip():
        raise InputError(f"{path} is empty. Its first line must name the columns, such as id_a,id_b,label.")
    if name in ("json", "jsonl"):
        return _json_content(str(source), name, text)
    cells = _read_delimited(path, list(io.StringIO(text, newline="")), name)
    return Sheet(str(source), f"{name} in {WINDOWS}" if encoding == WINDOWS else name, *cells)


def _records(header: list[str], rows: Iterable[tuple[int, Sequence[object]]]) -> list[NumberedRecord]:
    return [(number, dict(zip(header, cells, strict=False))) for number, cells in rows]


def _frame(frame: Frame) -> tuple[list[str], list[NumberedRecord]]:
    """Return column names and rows of a frame, counted from 1."""
    if is_dask(frame):
        raise InputError("Answers and labels are read whole: call compute() on this Dask frame first.")
    if not hasattr(frame, "columns"):
        what = "A path or a pandas, polars or pyarrow frame is needed, with columns such as id_a, id_b and"
        raise InputError(f"{what} label; got {type(frame).__name__}.")
    names = list(getattr(frame, "column_names", None) or frame.columns)
    header = list(map(str, names))
    check_repeated("the frame", header)
    lists = [(getattr(frame[name], "to_pylist", None) or frame[name].to_list)() for name in names]
    return header, _records(header, enumerate(zip(*lists, strict=True), 1))


def _read_delimited(path: Path, lines: list[str], name: str) -> tuple[list[str], list[NumberedRecord]]:
    try:
        mark, _, head, names = text_head(lines, name)
        check_quotes(path, lines, mark)
        reader = csv.reader(lines[head:], delimiter=mark)
        # Spreadsheets write rows of delimiters alone below a table.
        rows = [(head + reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise InputError(f"{path} cannot be split into cells ({error}). Is a quote left open?") from None
    if not any(cell.strip() for line in lines[:head] for cell in line.split(mark)):
        raise InputError(f"{path} has nothing but delimiters. Its first line must name the columns.")
    too_long = f"more cells than the {len(names)} columns"
    numbered = [
        (line, too_long if any(map(str.strip, cells[len(names) :])) else record)
        for (line, cells), (_, record) in zip(rows, _records(names, rows), strict=True)
    ]
    return names, numbered


def _json_content(name: str, file_format: str, text: str) -> Sheet:
    """Read a list of objects, one object, or one object per line, whichever the text is."""
    whole = _parsed(text)
    if isinstance(whole, dict):
        return Sheet(name, file_format, *_keyed([(1, whole)]), whole)
    is_list = isinstance(whole, list)
    lines = enumerate(io.StringIO(text, newline=""), 1)
    items = (
        enumerate(whole, 1) if isinstance(whole, list) else [(k, _parsed(line)) for k, line in lines if line.strip()]
    )
    unusable = "not a JSON object, or one with a key twice"
    records = [(k, item if isinstance(item, dict) else unusable) for k, item in items]
    if file_format == "json" and not is_list and not any(isinstance(record, dict) for _, record in records):
        what = "it must contain an object, a list of objects, or one object per line, and no key twice in one"
        raise InputError(f"{name} is not JSON, or is cut off: {what}. Export or copy it again.")
    return Sheet(name, "json" if is_list else "jsonl", *_keyed(records))


def _parsed(text: str) -> object:
    """Parse JSON; return None where it is not, or an object has a key twice."""
    with suppress(ValueError, RecursionError):
        return json.loads(text, object_pairs_hook=with_single_keys)
    return None


def _keyed(records: list[NumberedRecord]) -> tuple[list[str], list[NumberedRecord]]:
    """Return all keys in order of appearance, and records with all of them, None if missing."""
    empty = dict.fromkeys(key for _, one in records if isinstance(one, dict) for key in one)
    return list(empty), [(k, one if isinstance(one, str) else {**empty, **one}) for k, one in records]


@dataclass(frozen=True)
class Labels:
    """Labels by id."""

    name: str
    by_id: Mapping[str, str]
    header: str = ""  # first cell of the header; an id there shows that the header is missing
    whole: bool = False  # whether labels are whole numbers, not texts of digits

    @property
    def ids(self) -> set[str]:
        """All ids, and the first cell of the header."""
        return {self.header, *self.by_id} - {""}

    def of_rows(self, place: Mapping[str, int], why: Callable[..., str]) -> dict[int, str]:
        """Return labels by row; ``place`` has the row of each id, ``why`` explains others."""
        if self.header and self.header in place:
            raise self.no_header()
        if unknown := [name for name in self.by_id if name not in place]:
            raise InputError(f"`labels`: {why(unknown, whose='labels')}")
        return {place[name]: label for name, label in self.by_id.items()}

    def no_header(self) -> InputError:
        """Return the error of a first line that is a label already."""
        what = f"{self.name} seems to begin with the label of {quoted(self.header)}."
        return InputError(f"{what} Give it a first line: id,label")

    def names(self, found: tuple[str, ...]) -> tuple[str, ...] | tuple[int, ...]:
        """Return names of classes as whole numbers where the labels are, or else as texts."""
        return tuple(map(int, found)) if self.whole and all(map(_WHOLE.fullmatch, found)) else found


def read_labels(source: Location | Mapping[object, object] | Frame) -> Labels:
    """Read labels by id: rows ``id,label`` of a file or a frame, or a mapping."""
    if isinstance(source, Mapping):
        by_id = _by_id("`labels`", [(as_text(name), as_text(label)) for name, label in source.items()])
        return Labels("`labels`", by_id, whole=not any(isinstance(label, str) for label in source.values()))
    sheet = read_sheet(source, "`labels`")
    cells = [list(one.values())[:2] if isinstance(one, dict) else [] for _, one in sheet.records]
    rows = [[from_cell(as_text(cell)) for cell in row] for row in cells]
    if not rows or any(len(row) < 2 or not all(row) for row in rows):
        raise InputError(f"{sheet.name} needs a first line id,label and then an id and its class in every row.")
    by_id = _by_id(sheet.name, rows)
    # In a text file, what looks like a number is one.
    text = sheet.format.startswith(("csv", "tsv"))
    whole = text or not any(isinstance(label, str) for _, label in cells)
    if sheet.format == "frame":
        return Labels(sheet.name, by_id, whole=whole)
    first, label = [*map(from_cell, sheet.header), "", ""][:2]
    found = Labels(sheet.name, by_id, first, whole)
    if label in by_id.values() and not looks_like_id(first):
        raise found.no_header()
    return found


def _by_id(name: str, rows: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return labels by id; refuse two different labels of one id."""
    by_id: dict[str, str] = {}
    for row, label in rows:
        if by_id.setdefault(row, label) != label:
            both = f"{quoted(by_id[row])} and {quoted(label)}"
            raise InputError(f"{name}: the id {quoted(row)} has two labels, {both}. Keep the right one.")
    return by_id


def class_numbers(labels: Sequence[str], n_classes: int) -> tuple[Codes, tuple[str, ...]]:
    """Return labels as classes, -1 and +1 or 1 to K, and the names of all classes in order."""
    found = sorted(set(labels))
    if all(map(_WHOLE.fullmatch, found)):
        found.sort(key=int)
    names = class_names(found, n_classes)
    places = np.array([names.index(label) for label in labels], dtype=np.int64)
    return 2 * places - 1 if n_classes == 2 else places + 1, names


def class_names(found: list[str], n_classes: int) -> tuple[str, ...]:
    """Name all classes: of two, 1, true and yes are +1; of more, some are numbered."""
    if len(found) > n_classes:
        raise InputError(
            f"`labels` names {len(found)} classes ({', '.join(map(shortened, found[:5]))}), but there are to be "
            f"{n_classes}. Give `classes={len(found)}`, or leave it out."
        )
    if n_classes > 2:
        numbers = map(str, range(len(found) + 1, 2 * n_classes + 1))
        free = [number for number in numbers if number not in found]
        return (*found, *free[: n_classes - len(found)])
    if len(found) == 2:
        swapped = found[1].lower() in _NEGATIVE or found[0].lower() in _POSITIVE
        return (found[1], found[0]) if swapped else (found[0], found[1])
    only = found[0]
    if only.lower() in _NEGATIVE:
        return only, "1"
    return {"1": "-1"}.get(only, f"not {only}"), only
