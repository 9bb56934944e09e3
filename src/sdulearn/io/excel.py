"""Excel workbooks: one sheet is read; the first row below titles names the columns."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import IO, NamedTuple, TypeAlias
from xml.etree.ElementTree import ParseError, iterparse
from zipfile import BadZipFile, ZipFile

from sdulearn.errors import InputError, listed, pa, quoted, require
from sdulearn.io.files import Location, as_text, cannot_open, find_header
from sdulearn.types import ArrowColumn, ArrowTable

# The rectangle around all cells is read; a large one must be filled to this share.
_LARGE = 5_000_000
_FILLED = 0.01
_CELL = re.compile(r"([A-Za-z]{1,9})([0-9]{1,9})")
_NOT_A_WORKBOOK = (BadZipFile, ParseError, EOFError, KeyError, NotImplementedError, RuntimeError, zlib.error)

Tag: TypeAlias = tuple[str, Mapping[str, str]]


class SheetCells(NamedTuple):
    """The cells of a sheet; an empty one is None."""

    names: list[str]  # of the columns
    rows: list[list[object]]
    place: int  # number of the row of names, from 1
    sheet: str  # its name, or empty where it is the only one


def read_workbook(path: Location, sheet: str | None = None, skip_rows: int | None = None) -> SheetCells:
    """Read a sheet, by default the first."""
    calamine = require("python_calamine", "excel")
    try:
        with ZipFile(path) as archive:
            found = _sheets(archive)
            sheets = [name for name, _ in found]
            place = _sheet_place(path, sheets, sheet)
            _refuse_far_cells(path, _tags(archive, found[place][1]))
        read = calamine.CalamineWorkbook.from_path(path).get_sheet_by_index(place)
    except OSError as error:
        raise cannot_open(path, error) from None
    except (calamine.CalamineError, *_NOT_A_WORKBOOK) as error:
        raise InputError(f"{path} cannot be read as an Excel workbook: {error}") from None
    rows = [[None if cell == "" else cell for cell in row] for row in read.to_python()]
    # Rows above the first filled one are not among them.
    above = read.start[0] if rows else 0
    if skip_rows is not None:
        rows = rows[max(skip_rows - above, 0) :]
        above = max(skip_rows, above)
    if not rows:
        names = listed(map(quoted, sheets))
        raise InputError(f"{path}: its sheet {quoted(read.name)} is empty. Its sheets: {names}.")
    header, columns = find_header(rows, skip_rows is not None)
    name = read.name if len(sheets) > 1 else ""
    return SheetCells(columns, rows[header + 1 :], above + header + 1, name)


def _sheet_place(path: Location, names: list[str], wanted: str | None) -> int:
    """Return the place of a sheet by its name, or by its number from 1."""
    if wanted is None or wanted in names:
        return 0 if wanted is None else names.index(wanted)
    if wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    raise InputError(f"{path} has no sheet {quoted(wanted)}. Its sheets: {listed(map(quoted, names))}.")


def _refuse_far_cells(path: Location, tags: Iterable[Tag]) -> None:
    """Refuse a few cells far apart: calamine allocates all cells between them, and aborts."""
    count, height, width = filled_area(tags)
    if height * width > _LARGE and count < _FILLED * height * width:
        raise InputError(
            f"{path}: the {count:,} cells of its sheet are spread over {height:,} rows and {width:,} columns. "
            "Delete those far away from the table, or save the sheet as CSV."
        )


def filled_area(tags: Iterable[Tag]) -> tuple[int, int, int]:
    """Return the number of cells with a value, and height and width of the rectangle around them.

    A row or cell without a position follows the one before.
    """
    count = 0
    row = column = -1
    rows: set[int] = set()
    columns: set[int] = set()
    for name, attributes in tags:
        if name == "row":
            row = _place("A" + attributes["r"])[0] if "r" in attributes else row + 1
            column = -1
        elif name == "c":
            row, column = _place(attributes["r"]) if "r" in attributes else (row, column + 1)
        elif name in ("v", "is"):
            count += 1
            rows.add(row)
            columns.add(column)
    height, width = (max(places) - min(places) + 1 if places else 0 for places in (rows, columns))
    return count, height, width


def _place(cell: str) -> tuple[int, int]:
    """Return row and column, from 0, of a cell such as B3."""
    found = _CELL.fullmatch(cell)
    if found is None:
        raise BadZipFile(f"there is no cell {quoted(cell)}")
    # A is 1, Z is 26, AA is 27.
    column = reduce(lambda n, letter: 26 * n + ord(letter) - ord("A") + 1, found[1].upper(), 0)
    return int(found[2]) - 1, column - 1


def _sheets(archive: ZipFile) -> list[tuple[str, str]]:
    """Return name and file of each sheet, as calamine finds them."""
    links = [one for _, one in _tags(archive, "xl/_rels/workbook.xml.rels") if "Id" in one]
    files = {one["Id"]: one.get("Target", "").removeprefix("/") for one in links}
    if len(files) < len(links):
        # The checked file might not be the one that is read.
        raise BadZipFile("a sheet is linked to twice")
    sheets = [one for name, one in _tags(archive, "xl/workbook.xml") if name == "sheet"]
    if not sheets:
        raise BadZipFile("there is no sheet")
    found = []
    for one in sheets:
        file = next((files.get(value, "") for key, value in one.items() if key.endswith("}id")), "")
        found.append((one["name"], f"xl/{file.removeprefix('xl/')}"))
    return found


def _tags(archive: ZipFile, name: str) -> Iterator[Tag]:
    """Yield the tags of a file in order, whatever the case and slashes of its name."""
    found = [one for one in archive.infolist() if one.filename.replace("\\", "/").lower() == name.lower()]
    if not found:
        raise BadZipFile(f"there is no {name}")
    for member in found:
        with archive.open(member) as file:
            yield from tags_of(file)


def tags_of(file: IO[bytes]) -> Iterator[Tag]:
    """Yield name and attributes of each tag of an XML file, without holding the whole file."""
    for event, element in iterparse(file, ("start", "end")):
        if event == "start":
            yield element.tag.rpartition("}")[2], element.attrib
        else:
            element.clear()


def sheet_table(found: SheetCells, missing: Sequence[str]) -> ArrowTable:
    """Convert a sheet to a pyarrow table; a column with cells of several kinds becomes text."""
    places = range(len(found.names))
    columns = [[row[place] if place < len(row) else None for row in found.rows] for place in places]
    return pa.table([_column(cells, missing) for cells in columns], names=found.names)


def _column(cells: Sequence[object], missing: Sequence[str]) -> ArrowColumn:
    cells = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
    # A workbook has floats only; beyond 2**53 they do not tell whole numbers apart.
    numbers = [int(c) if isinstance(c, float) and c.is_integer() and abs(c) < 2**53 else c for c in cells]
    try:
        return pa.array(numbers)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Every digit counts: it may be an id.
        texts = [as_text(cell) if isinstance(cell, float) else str(cell) for cell in cells]
        return pa.array([None if cell is None else text for cell, text in zip(cells, texts, strict=True)], pa.string())
