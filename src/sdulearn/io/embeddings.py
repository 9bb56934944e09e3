"""Vectors of a file of their own, such as those of a language model, joined to a table as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import InputError, quoted, reason, require
from sdulearn.io.files import Location, cannot_open, file_format
from sdulearn.io.survey import find_ids, id_texts, may_hold_ids
from sdulearn.io.tables import Batches, Part, Table, read_whole
from sdulearn.types import ArrowColumn, ArrowTable, Codes

_NAME = "embedding {}"


def with_embedding(table: Table, path: Location | None) -> Table:
    """A table with the vectors of a file beside its columns: row by row, or by a column of ids that both have."""
    if path is None:
        return table
    vectors, ids = _read(str(path), _changed(path))
    names = [_NAME.format(k) for k in range(1, vectors.shape[1] + 1)]
    if both := [name for name in names if name in table.types]:
        raise InputError(f"{table.name} has a column {quoted(both[0])}, as the vectors of {path} are named. Rename it.")
    shared = [name for name in ids if name in table.types]
    if len(shared) > 1:
        raise InputError(f"{path} and {table.name} share {len(shared)} columns that may hold ids. Keep one of them.")
    if shared and len(ids[shared[0]].unique()) < len(vectors):
        raise InputError(f"{path}: an id stands twice in column {quoted(shared[0])}. Keep one vector for each.")
    if not shared and table.n_rows not in (None, len(vectors)):
        raise _unequal(table.name, f"{table.n_rows:,}", str(path), len(vectors))
    key = shared[0] if shared else next(iter(table.types))
    counts = not shared and table.n_rows is None
    parts = [_Joined(part, table.name, str(path), _changed(path), key, bool(shared), counts) for part in table.parts]
    types = {**table.types, **dict.fromkeys(names, require("pyarrow", "files").float64())}
    return replace(table, types=types, parts=tuple(parts), together=tuple(names))


@dataclass(frozen=True)
class _Joined:
    """A part with vectors; see :data:`sdulearn.io.tables.Part`."""

    part: Part
    table: str
    path: str
    changed: float
    key: str  # a column of the table that is always read
    by_id: bool  # whether it holds ids that name the vectors
    counts: bool  # whether the part is the whole table, and nobody knows yet how many rows it has

    def __call__(self, columns: Sequence[str], rows: int) -> Batches:
        """Batch by batch."""
        pa = require("pyarrow", "files")
        vectors, ids = _read(self.path, self.changed)
        places = {name: k for k in range(vectors.shape[1]) if (name := _NAME.format(k + 1)) in columns}
        own = [name for name in columns if name not in places]
        end = 0
        for begin, batch in self.part(list(dict.fromkeys([*own, self.key])), rows):
            end = begin + batch.num_rows
            if end > len(vectors) and not self.by_id:
                raise _unequal(self.table, f"{end:,} or more", self.path, len(vectors))
            place = self._found(batch[self.key], ids[self.key]) if self.by_id else slice(begin, end)
            some = np.asarray(vectors[place], dtype=np.float64)
            cells = {name: batch[name] for name in own} | {name: pa.array(some[:, k]) for name, k in places.items()}
            yield begin, pa.RecordBatch.from_arrays([*cells.values()], [*cells])
        if self.counts and end != len(vectors):
            raise _unequal(self.table, f"{end:,}", self.path, len(vectors))

    def _found(self, values: ArrowColumn, ids: ArrowColumn) -> Codes:
        found = find_ids(values, ids)
        if (found < 0).any():
            lost = quoted(str(values[int(np.argmin(found))]))
            raise InputError(f"{self.path} has no vector for {lost}, a row of {self.table}. Compute those of all rows.")
        return found


def _unequal(table: str, n_rows: str, path: str, n_vectors: int) -> InputError:
    return InputError(
        f"{table} has {n_rows} rows and {path} {n_vectors:,} vectors, which go together row by row. Compute one for "
        "each row, or give a .parquet file with a column of ids that the table has too."
    )


def _changed(path: Location) -> float:
    try:
        return Path(path).stat().st_mtime
    except OSError as error:
        raise cannot_open(path, error) from None


@lru_cache(maxsize=2)
def _read(path: str, _changed: float) -> tuple[NDArray[Any], dict[str, ArrowColumn]]:
    """Vectors of a file, one a row, and its columns that may hold ids, as texts."""
    if file_format(path, ("npy", "parquet")) == "npy":
        try:
            vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise InputError(f"{path} cannot be read as an array of numbers: {reason(error)}") from None
        ids: dict[str, ArrowColumn] = {}
    else:
        vectors, ids = _of_parquet(read_whole(path))
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.size:
        raise InputError(
            f"{path} holds {vectors.dtype} of shape {vectors.shape}; vectors are numbers, a row for each row."
        )
    return vectors, ids


def _of_parquet(table: ArrowTable) -> tuple[NDArray[Any], dict[str, ArrowColumn]]:
    """Columns of floats, or of lists of them; whole numbers and texts may be ids."""
    pa = require("pyarrow", "files")
    is_list, *others = (getattr(pa.types, f"is_{name}list") for name in ("", "large_", "fixed_size_"))
    blocks = []
    ids = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_floating(column.type):
            blocks.append(np.asarray(column, dtype=np.float64)[:, None])
        elif is_list(column.type) or any(one(column.type) for one in others):
            if len(require("pyarrow.compute", "files").list_value_length(column).unique()) != 1 or column.null_count:
                raise InputError(f"Column {quoted(name)} of the vectors does not hold lists of one length.")
            blocks.append(np.asarray(column.flatten(), dtype=np.float64).reshape(len(column), -1))
        elif may_hold_ids(name, column.type):
            ids[name] = id_texts(column)
    return np.hstack(blocks) if blocks else np.empty((0, 0)), ids
