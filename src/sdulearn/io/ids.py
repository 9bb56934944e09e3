"""Which column of a table holds the ids that the answers name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdulearn.errors import InputError, listed, quoted, require, shortened
from sdulearn.io.files import as_text
from sdulearn.types import ArrowColumn, ArrowType, Codes

ID_COLUMNS = ("id", "ID", "Id", "unique_id")
# A column is in question only where it holds this share of the ids.
_ENOUGH = 0.5
_ID_WORDS = re.compile(
    r"(^|[_\W])(id|ids|uid|uuid|guid|key|nr|no|num|number|name|code)$|(?-i:[a-z]I[dD])$", re.IGNORECASE
)


@dataclass(frozen=True)
class IdHits:
    """How often each of the wanted ids is in a column, and on which row; ``+`` joins two stretches of rows."""

    times: Codes
    rows: Codes  # -1 where it is on none

    def __add__(self, other: IdHits) -> IdHits:
        return IdHits(self.times + other.times, np.maximum(self.rows, other.rows))

    @property
    def unique(self) -> bool:
        """Whether each is on one row at most."""
        return bool((self.times <= 1).all())


def count_ids(values: ArrowColumn, rows: Codes, ids: ArrowColumn) -> IdHits:
    """Look for ids, an Arrow array of texts, in a stretch of a column with the given row numbers."""
    pc = require("pyarrow.compute", "files")
    found = pc.fill_null(pc.index_in(id_texts(values), value_set=ids), -1).to_numpy(zero_copy_only=False)
    hit = np.flatnonzero(found >= 0)
    on = np.full(len(ids), -1)
    on[found[hit]] = rows[hit]
    return IdHits(np.bincount(found[hit], minlength=len(ids)), on)


def id_texts(values: ArrowColumn) -> ArrowColumn:
    """Ids as an Arrow array of texts, spelled as :func:`sdulearn.io.files.as_text` spells them."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    if pa.types.is_integer(values.type) and not values.null_count:
        return values.cast(pa.string())
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return pc.fill_null(pc.utf8_trim_whitespace(values), "").cast(pa.string())
    return pa.array([as_text(value) for value in values.to_pylist()], pa.string())


def looks_like_id(name: str) -> bool:
    """Whether a column is called as columns of ids are."""
    return _ID_WORDS.search(name) is not None


def may_hold_ids(name: str, dtype: ArrowType) -> bool:
    """Whether a column can hold ids: whole numbers or texts; floats only where it is called as ids are."""
    types = require("pyarrow.types", "files")
    if types.is_dictionary(dtype):
        return may_hold_ids(name, dtype.value_type)
    if types.is_floating(dtype):
        return looks_like_id(name)
    return types.is_integer(dtype) or types.is_string(dtype) or types.is_large_string(dtype)


def named_id_column(
    table: str, names: Sequence[str], wanted: str | None, usual: Sequence[str | None] = ID_COLUMNS
) -> str | None:
    """The wanted column of ids (None for ""), else the first usual one that is there."""
    if wanted is None:
        return next((name for name in usual if name in names), None)
    if wanted and wanted not in names:
        raise InputError(
            f"{table} has no column {quoted(wanted)} to take ids from. Its columns: {listed(map(shortened, names))}."
        )
    return wanted or None


def choose_id_column(table: str, hits: Mapping[str, IdHits], ids: Collection[str], n_rows: int) -> str | None:
    """The column that holds the ids of the answers, None for row numbers; refused where it is not clear.

    ``hits`` are those of these ids by column. A usual name goes first. Row numbers are taken only where no column
    fits.
    """
    found = {name: int(np.count_nonzero(one.times)) for name, one in hits.items()}
    enough = [name for name in hits if found[name] >= _ENOUGH * len(ids)]
    if usual := [name for name in ID_COLUMNS if name in enough]:
        return usual[0]
    near = [name for name in enough if hits[name].unique]
    full = [name for name in near if found[name] == len(ids)]
    by_number = all(is_row_number(name, n_rows) for name in ids)
    if len(full) == 1 and (looks_like_id(full[0]) or not by_number):
        return full[0]
    if full or (near and by_number):
        _refuse(table, full or near, by_number)
    if near:
        return max(near, key=lambda name: found[name])
    # A column that is called as ids are, and holds none of these, is a mistake to be reported, not passed over.
    return next((name for name in ID_COLUMNS if name in hits), None)


def _refuse(table: str, names: Sequence[str], by_number: bool) -> None:
    columns = " and ".join(map(quoted, names[:3]))
    rows = ", and so could row numbers from 0" if by_number else ""
    raise InputError(
        f"{table}: {columns} could be the column of ids that the answers name{rows}. Say which with `id_column` (an "
        "empty name, `id_column=''`, stands for row numbers)."
    )


def is_row_number(name: str, n_rows: int) -> bool:
    """Whether a text is the number of a row, as it would be written."""
    short = len(name) <= len(str(n_rows)) and name.isascii() and name.isdigit()
    return short and int(name) < n_rows and str(int(name)) == name
