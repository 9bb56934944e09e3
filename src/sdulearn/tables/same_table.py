"""Whether a table is still the one that questions were asked about.

A log says which column its ids come from. If they are row numbers, a row that was inserted, moved or
removed would shift the answers to other rows. So the log also has the number of rows, a digest of the
256 rows with the lowest marks, and a digest of each row that was asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np

from sdulearn.errors import InputError, pa
from sdulearn.findings import AskedRowsChanged, Finding, TableGrew
from sdulearn.io.files import as_text
from sdulearn.reading import Reading
from sdulearn.tables.ids import is_row_number
from sdulearn.tables.scan import Survey, Wanted, surveyed
from sdulearn.tables.source import Table
from sdulearn.types import Codes

DIGEST_ROWS = 256
# A few asked rows may have been corrected.
_MAX_CHANGED = 0.05


def row_digests(columns: Mapping[str, Sequence[object]]) -> list[str]:
    """Return a digest of each row; it depends neither on the order of columns nor on the format."""
    return [blake2b(text, digest_size=4).hexdigest() for text in _row_texts(columns)]


def table_digest(table: Table, found: Survey) -> str:
    """Return a digest of the rows with the lowest marks."""
    texts = _row_texts(_cells(table, found, found.lowest(DIGEST_ROWS)))
    return blake2b(b"\n".join(texts), digest_size=8).hexdigest()


def _row_texts(columns: Mapping[str, Sequence[object]]) -> list[bytes]:
    spelled = [list(map(_spelled, columns[name])) for name in sorted(columns)]
    return ["\0".join(row).encode("utf-8", "surrogatepass") for row in zip(*spelled, strict=True)]


def _spelled(cell: object) -> str:
    """Spell a cell in one way: 1.50 in a text file is 1.5 in a frame, up to the last digits."""
    try:
        number = cell if isinstance(cell, float) else float(as_text(cell))
    except ValueError:
        return as_text(cell).casefold()
    return f"{number:.9g}" if number == number and number % 1 else as_text(number)


def _cells(table: Table, found: Survey, rows: Codes) -> dict[str, list[object]]:
    """Return all cells of rows that were kept, by column; vectors are of another file."""
    masks = [np.isin(numbers, rows) for numbers, _ in found.kept]
    batches = [batch.filter(pa.array(mask)) for mask, (_, batch) in zip(masks, found.values, strict=True)]
    order = np.argsort(found.rows[np.concatenate(masks)])
    cells = {}
    for name in table.types:
        if name not in table.together:
            column = [cell for batch in batches for cell in batch[name].to_pylist()]
            cells[name] = [column[k] for k in order]
    return cells


def compares_cells(stored: Reading | None) -> bool:
    """Whether the cells of a table have to be compared: ids are row numbers."""
    return stored is not None and stored.id_column == "" and stored.n_rows is not None


def check_same_table(table: Table, found: Survey, stored: Reading | None) -> list[Finding]:
    """Refuse another table than the one that was asked about; return what else has changed.

    If ids are row numbers, ``found`` has all columns.
    """
    if stored is None or stored.n_rows is None:
        return []
    if not compares_cells(stored):
        grown = TableGrew(before=stored.n_rows, now=found.n_rows)
        return [grown] if found.n_rows > stored.n_rows else []
    if found.n_rows != stored.n_rows:
        raise _changed(table, f"it had {stored.n_rows:,} rows and now has {found.n_rows:,}")
    if table_digest(table, found) != stored.digest:
        raise _changed(table, "rows were moved, or values or columns are different")
    asked = np.intersect1d(_asked_rows(stored), found.rows)
    now = row_digests(_cells(table, found, asked)) if len(asked) else []
    changed = [str(row) for row, digest in zip(asked.tolist(), now, strict=True) if stored.cells[str(row)] != digest]
    if len(changed) > _MAX_CHANGED * len(asked):
        raise _changed(table, f"{len(changed):,} of the {len(asked):,} rows that were asked about are different")
    return [AskedRowsChanged(count=len(changed), n_asked=len(asked), items=tuple(changed))] if changed else []


def compare_table(table: Table, stored: Reading) -> list[Finding]:
    """Read a table to compare it with the one that was asked about; see :func:`check_same_table`."""
    rows, missing_texts = _asked_rows(stored), table.missing_texts
    wanted = Wanted({}, (), rows=rows, n_drawn=DIGEST_ROWS, shown=tuple(table.types), missing_texts=missing_texts)
    return check_same_table(table, surveyed(table, wanted), stored)


def _asked_rows(stored: Reading) -> Codes:
    rows = [int(name) for name in stored.cells if is_row_number(name, stored.n_rows or 0)]
    return np.array(rows, dtype=np.int64)


def _changed(table: Table, how: str) -> InputError:
    return InputError(
        f"{table.name}: the table has changed since the questions were asked: {how}. The answers name rows by their "
        "numbers, so they would be about other rows. Give the table as it was. A table with a column of ids may change."
    )
