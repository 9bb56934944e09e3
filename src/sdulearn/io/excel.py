"""Excel workbooks: the first sheet, its first row naming the columns."""

from __future__ import annotations

from collections.abc import Sequence

from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.io.files import Location, cannot_open
from sdulearn.types import ArrowColumn, ArrowTable


def read_sheet(path: Location) -> tuple[list[str], list[list[object]]]:
    """Column names and rows of the first sheet; an empty cell is None."""
    calamine = require("python_calamine", "excel")
    try:
        sheet = calamine.CalamineWorkbook.from_path(path).get_sheet_by_index(0)
    except OSError as error:
        raise cannot_open(path, error) from None
    except calamine.CalamineError as error:
        raise InputError(f"{path} cannot be read as an Excel workbook: {error}") from None
    rows = [[None if cell == "" else cell for cell in row] for row in sheet.to_python()]
    rows = [row for row in rows if any(cell is not None for cell in row)]
    if not rows:
        raise InputError(f"{path}: its first sheet is empty. The first row must name the columns.")
    return [str(name).strip() for name in rows[0]], rows[1:]


def sheet_table(path: Location, missing: Sequence[str]) -> ArrowTable:
    """The first sheet as a pyarrow table; a column of cells of several kinds is text."""
    pa = require("pyarrow", "files")
    header, rows = read_sheet(path)
    columns = []
    for place in range(len(header)):
        cells = [row[place] if place < len(row) else None for row in rows]
        cells = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
        columns.append(_column(cells))
    return pa.table(columns, names=header)


def _column(cells: Sequence[object]) -> ArrowColumn:
    pa = require("pyarrow", "files")
    # A workbook has no whole numbers of its own.
    cells = [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells]
    if any(isinstance(cell, float) for cell in cells):
        cells = [float(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell for cell in cells]
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        texts = [None if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in cells]
        return pa.array(texts, pa.string())
