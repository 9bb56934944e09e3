"""Excel workbooks: one sheet is read; the first row below titles names the columns.

openpyxl reads the cells; with defusedxml, which it uses where it is installed, it refuses entities. Checked
here: how much a workbook unpacks to, how far its cells are apart, and formulas that were never computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import datetime, time
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZipFile

from sdulearn.errors import InputError, SdulearnError, listed, pa, quoted, reason, require
from sdulearn.io.files import Location, as_text, cannot_open, find_header
from sdulearn.types import ArrowColumn, ArrowTable

# A small file may unpack to more than fits into memory: bytes that unpacking may add, which also limits the
# characters in all cells, and how many times its size a larger part may become; sheets become about 20 times.
_MAX_BYTES = 500_000_000
_LARGE_BYTES = 20_000_000
_MAX_RATIO = 100
# Rows and columns that Excel has, and cells that are read at most.
_MAX_ROWS = 1_048_576
_MAX_COLUMNS = 16_384
_MAX_CELLS = 20_000_000
# The rectangle around all cells is kept; a large one must be filled to this share.
_LARGE = 5_000_000
_FILLED = 0.01
# A cell that is in the file but has no value: formatted only, or with a formula that was never computed.
_BLANK = object()

# Rows that have cells, by number from 0: up to the last column with a cell.
Cells = dict[int, list[Any]]


class SheetCells(NamedTuple):
    """The cells of a sheet; an empty one is None."""

    names: list[str]  # of the columns
    rows: list[list[object]]
    place: int  # number of the row of names, from 1
    sheet: str  # its name, or empty where it is the only one


def read_workbook(path: Location, sheet: str | None = None, skip_rows: int | None = None) -> SheetCells:
    """Read a sheet, by default the first that is not hidden."""
    try:
        with Path(path).open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about formats, which are not used
            names, title, cells = _read_sheet(path, file, sheet)
    except SdulearnError:
        raise
    except OSError as error:
        raise cannot_open(path, error) from None
    except Exception as error:  # openpyxl raises anything on a damaged file
        why = error.__cause__ if isinstance(error.__cause__, Exception) else error
        raise InputError(
            f"{path} cannot be read as an Excel workbook ({reason(why)}). "
            "Open it in a spreadsheet program and save it as .xlsx again, or as CSV."
        ) from None
    above, rows = _filled_rectangle(path, cells)
    if skip_rows is not None:
        rows = rows[max(skip_rows - above, 0) :]
        above = max(skip_rows, above)
    if not rows:
        sheets = listed(map(quoted, names))
        raise InputError(f"{path}: its sheet {quoted(title)} is empty. Its sheets: {sheets}.")
    header, columns = find_header(rows, skip_rows is not None)
    return SheetCells(columns, rows[header + 1 :], above + header + 1, title if len(names) > 1 else "")


def _read_sheet(path: Location, file: IO[bytes], wanted: str | None) -> tuple[list[str], str, Cells]:
    """Return the names of all sheets, and name and cells of one of them."""
    with ZipFile(file) as archive:
        sizes = [(part.file_size, part.compress_size) for part in archive.infolist()]
    gain = sum(max(size - packed, 0) for size, packed in sizes)
    if gain > _MAX_BYTES or any(size > max(_LARGE_BYTES, _MAX_RATIO * packed) for size, packed in sizes):
        raise _too_large(path, f"grows by {gain // 10**6:,} MB when it is unpacked")
    sheets = _worksheets(file)
    names = [sheet.title for sheet in sheets]
    place = _sheet_place(path, sheets, wanted)
    rows = _read_cells(path, sheets[place])
    if any(_BLANK in row for row in rows.values()):
        _refuse_formulas(path, rows, _worksheets(file, data_only=False)[place])
        rows = {k: [None if cell is _BLANK else cell for cell in row] for k, row in rows.items()}
    return names, names[place], _without_midnights(rows)


def _worksheets(file: IO[bytes], data_only: bool = True) -> list[Any]:
    """Return the sheets of a workbook, whatever size they say they have."""
    require("defusedxml", "excel")
    openpyxl = require("openpyxl", "excel")
    workbook = openpyxl.load_workbook(file, read_only=True, data_only=data_only, keep_links=False)
    for sheet in workbook.worksheets:
        sheet.reset_dimensions()
    return list(workbook.worksheets)


def _too_large(path: Location, what: str) -> InputError:
    return InputError(f"{path} {what}. Delete what is not part of the table, or save the sheet as CSV.")


def _sheet_place(path: Location, sheets: list[Any], wanted: str | None) -> int:
    """Return the place of a sheet by its name, or by its number from 1; by default of the first that is not hidden."""
    if not sheets:
        raise InputError(f"{path} has no sheet with cells.")
    names = [sheet.title for sheet in sheets]
    if wanted is None:
        return next((place for place, sheet in enumerate(sheets) if sheet.sheet_state == "visible"), 0)
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    raise InputError(f"{path} has no sheet {quoted(wanted)}. Its sheets: {listed(map(quoted, names))}.")


def _read_cells(path: Location, sheet: Any) -> Cells:
    rows: Cells = {}
    n_cells = n_filled = n_characters = 0
    for number, cells in enumerate(sheet.iter_rows()):
        if number >= _MAX_ROWS or len(cells) > _MAX_COLUMNS or n_cells > _MAX_CELLS or n_characters > _MAX_BYTES:
            sizes = f"{number:,} rows, {n_cells:,} cells and {n_characters:,} characters"
            raise _too_large(path, f"has a sheet of more than {sizes}")
        if cells:
            row = rows[number] = [_content(cell) for cell in cells]
            n_cells += len(row)
            n_filled += sum(cell is not None for cell in row)
            n_characters += sum(len(cell) for cell in row if isinstance(cell, str))
            if n_cells > _LARGE and n_filled < _FILLED * n_cells:
                raise _too_large(path, f"has a sheet of {n_cells:,} cells of which only {n_filled:,} are filled")
    return rows


def _content(cell: Any) -> object:
    """Return the value of a cell; None for errors such as #DIV/0! and for empty texts."""
    if cell.value is None:
        # A formula whose value is an empty text has the type of texts.
        return _BLANK if cell.data_type == "n" and hasattr(cell, "row") else None
    return None if cell.data_type == "e" or cell.value == "" else cell.value


def _refuse_formulas(path: Location, rows: Cells, written: Any) -> None:
    """Refuse formulas without a value, given the same sheet with its formulas."""
    places = [
        cell.coordinate
        for number, cells in enumerate(written.iter_rows())
        for value, cell in zip(rows.get(number, ()), cells, strict=True)
        if value is _BLANK and cell.data_type == "f"
    ]
    if places:
        raise InputError(
            f"{path}: {len(places):,} formulas have no values, the first in cell {places[0]}, as no program computed "
            "them yet. Open the workbook in a spreadsheet program and save it, or save the sheet as CSV."
        )


def _without_midnights(rows: Cells) -> Cells:
    """Turn the times of a column into dates where all of them are midnight: Excel has no dates without time."""
    places = [(row, k) for row in rows.values() for k, cell in enumerate(row) if isinstance(cell, datetime)]
    timed = {k for row, k in places if row[k].time() != time()}
    for row, k in places:
        row[k] = row[k] if k in timed else row[k].date()
    return rows


def _filled_rectangle(path: Location, rows: Cells) -> tuple[int, list[list[object]]]:
    """Return the number of empty rows above all cells with a value, and the rectangle around these."""
    filled = {k: [place for place, cell in enumerate(row) if cell is not None] for k, row in rows.items()}
    filled = {k: places for k, places in filled.items() if places}
    if not filled:
        return 0, []
    top, bottom = min(filled), max(filled) + 1
    left = min(places[0] for places in filled.values())
    right = max(places[-1] for places in filled.values())
    count, height, width = sum(map(len, filled.values())), bottom - top, right + 1 - left
    if height * width > _LARGE and (count < _FILLED * height * width or height * width > _MAX_CELLS):
        spread = f"the {count:,} cells of its sheet are spread over {height:,} rows and {width:,} columns"
        raise InputError(f"{path}: {spread}. Delete those far away from the table, or save the sheet as CSV.")
    cut = (rows.get(k, [])[left : right + 1] for k in range(top, bottom))
    return top, [row + [None] * (width - len(row)) for row in cut]


def sheet_table(found: SheetCells, missing: Sequence[str]) -> ArrowTable:
    """Convert a sheet to a pyarrow table; a column with cells of several kinds becomes text."""
    columns = [[row[place] for row in found.rows] for place in range(len(found.names))]
    return pa.table([_column(cells, missing) for cells in columns], names=found.names)


def _column(cells: Sequence[object], missing: Sequence[str]) -> ArrowColumn:
    given = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
    # Beyond 2**53, floats do not tell whole numbers apart.
    numbers = [int(c) if isinstance(c, float) and c.is_integer() and abs(c) < 2**53 else c for c in given]
    try:
        column = pa.array(numbers)
        return pa.array(cells, pa.string()) if pa.types.is_string(column.type) else column
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        # Every digit counts: it may be an id.
        texts = [as_text(cell) if isinstance(cell, float) else str(cell) for cell in cells]
        return pa.array([None if cell is None else text for cell, text in zip(cells, texts, strict=True)], pa.string())
