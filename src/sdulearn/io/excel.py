"""Excel workbooks: the first sheet, its first row naming the columns."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from typing import IO
from xml.parsers.expat import ExpatError, ParserCreate
from zipfile import BadZipFile, ZipFile, ZipInfo

from sdulearn.errors import InputError, quoted, require
from sdulearn.io.files import Location, as_text, cannot_open
from sdulearn.types import ArrowColumn, ArrowTable

# The rectangle around all cells is read whole; where it is large, some must be filled.
_LARGE = 5_000_000
_FILLED = 0.01
_CELL = re.compile(r"([A-Za-z]{1,9})([0-9]{1,9})")
_NOT_A_WORKBOOK = (BadZipFile, ExpatError, EOFError, KeyError, NotImplementedError, RuntimeError, zlib.error)


def read_workbook(path: Location) -> tuple[list[str], list[list[object]]]:
    """Column names and rows of the first sheet; an empty cell is None."""
    calamine = require("python_calamine", "excel")
    try:
        _refuse_far_cells(path)
        sheet = calamine.CalamineWorkbook.from_path(path).get_sheet_by_index(0)
    except OSError as error:
        raise cannot_open(path, error) from None
    except (calamine.CalamineError, *_NOT_A_WORKBOOK) as error:
        raise InputError(f"{path} cannot be read as an Excel workbook: {error}") from None
    rows = [[None if cell == "" else cell for cell in row] for row in sheet.to_python()]
    rows = [row for row in rows if any(cell is not None for cell in row)]
    if not rows:
        raise InputError(f"{path}: its first sheet is empty. The first row must name the columns.")
    return [as_text(name) or "None" for name in rows[0]], rows[1:]


def _refuse_far_cells(path: Location) -> None:
    """Refuse a few cells far apart: calamine asks for the memory of all between, and aborts."""
    with ZipFile(path) as archive:
        for member in _first_sheet(archive):
            with archive.open(member) as file:
                count, height, width = _filled_area(file)
            if height * width > _LARGE and count < _FILLED * height * width:
                raise InputError(
                    f"{path}: the {count:,} cells of its first sheet are spread over {height:,} rows and "
                    f"{width:,} columns. Delete those far away from the table, or save the sheet as CSV."
                )


def _filled_area(file: IO[bytes]) -> tuple[int, int, int]:
    """Number of the cells that have a value, and height and width of the rectangle around them."""
    count = 0
    row = column = -1
    rows: set[int] = set()
    columns: set[int] = set()

    def start(tag: str, attributes: dict[str, str]) -> None:
        """Follow a tag; rows and cells that do not say where they are follow the one before."""
        nonlocal count, row, column
        name = tag.rpartition(":")[2]
        if name == "row":
            row = _place("A" + attributes["r"])[0] if "r" in attributes else row + 1
            column = -1
        elif name == "c":
            column += 1
            if "r" in attributes:
                row, column = _place(attributes["r"])
        elif name in ("v", "is"):
            count += 1
            rows.add(row)
            columns.add(column)

    _parse(file, start)
    return count, max(rows, default=0) - min(rows, default=1) + 1, max(columns, default=0) - min(columns, default=1) + 1


def _place(cell: str) -> tuple[int, int]:
    """Row and column of a cell such as B3, from 0."""
    found = _CELL.fullmatch(cell)
    if found is None:
        raise BadZipFile(f"there is no cell {quoted(cell)}")
    # A is 1, Z is 26, AA is 27.
    column = 0
    for letter in found[1].upper():
        column = 26 * column + ord(letter) - ord("A") + 1
    return int(found[2]) - 1, column - 1


def _parse(file: IO[bytes], start: Callable[[str, dict[str, str]], None]) -> None:
    parser = ParserCreate()
    parser.StartElementHandler = start
    parser.ParseFile(file)


def _tags(archive: ZipFile, name: str, wanted: str) -> list[dict[str, str]]:
    """The attributes of all tags of a name, in order."""
    found: list[dict[str, str]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] == wanted:
            found.append(attributes)

    for member in _members(archive, name):
        with archive.open(member) as file:
            _parse(file, start)
    return found


def _first_sheet(archive: ZipFile) -> list[ZipInfo]:
    """The file of the first sheet, by the names under which calamine looks for it."""
    first = next(iter(_tags(archive, "xl/workbook.xml", "sheet")), {})
    sheet_id = next((value for name, value in first.items() if name.endswith(":id")), None)
    for relationship in _tags(archive, "xl/_rels/workbook.xml.rels", "Relationship"):
        if relationship.get("Id") == sheet_id:
            target = relationship["Target"].removeprefix("/")
            return _members(archive, target if target.startswith("xl/") else f"xl/{target}")
    raise BadZipFile("there is no first sheet")


def _members(archive: ZipFile, name: str) -> list[ZipInfo]:
    """Files of a name, however its letters and slashes are written."""
    found = [one for one in archive.infolist() if one.filename.replace("\\", "/").lower() == name.lower()]
    if not found:
        raise BadZipFile(f"there is no {name}")
    return found


def sheet_table(path: Location, missing: Sequence[str]) -> ArrowTable:
    """The first sheet as a pyarrow table; a column of cells of several kinds is text."""
    pa = require("pyarrow", "files")
    header, rows = read_workbook(path)
    columns = []
    for place in range(len(header)):
        cells = [row[place] if place < len(row) else None for row in rows]
        cells = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
        columns.append(_column(cells))
    return pa.table(columns, names=header)


def _column(cells: Sequence[object]) -> ArrowColumn:
    pa = require("pyarrow", "files")
    # A workbook has no whole numbers of its own; beyond 2**53 a float does not tell them apart.
    numbers = [int(c) if isinstance(c, float) and c.is_integer() and abs(c) < 2**53 else c for c in cells]
    try:
        return pa.array(numbers)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # All digits of a number, as it may be an id.
        texts = [as_text(cell) if isinstance(cell, float) else str(cell) for cell in cells]
        return pa.array([None if cell is None else text for cell, text in zip(cells, texts, strict=True)], pa.string())
