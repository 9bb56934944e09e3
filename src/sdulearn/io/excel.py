"""Excel workbooks: the first sheet, its first row naming the columns."""

from __future__ import annotations

from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.io.files import Location, cannot_open


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
