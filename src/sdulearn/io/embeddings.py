"""Vectors of a file, such as those of a language model, joined to a table as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import InputError, pa, pc, quoted, reason
from sdulearn.io.files import Location, cannot_open, file_format
from sdulearn.io.ids import find_ids, id_texts, may_hold_ids
from sdulearn.io.tables import Batches, Part, Table, read_whole
from sdulearn.types import ArrowColumn, ArrowTable


def with_embedding(table: Table, path: Location | None) -> Table:
    """A table with vectors beside its columns: row by row, or by ids that both have."""
    if path is None:
        return table
    vectors, ids = _read(path)
    names = [f"embedding {k}" for k in range(1, vectors.shape[1] + 1)]
    if both := [name for name in names if name in table.types]:
        raise InputError(f"{table.name} has a column {quoted(both[0])}, as the vectors of {path} are named. Rename it.")
    shared = [name for name in ids if name in table.types]
    if len(shared) > 1:
        raise InputError(f"{path} and {table.name} share {len(shared)} columns that may hold ids. Keep one of them.")
    if shared and len(ids[shared[0]].unique()) < len(vectors):
        raise InputError(f"{path}: an id stands twice in column {quoted(shared[0])}. Keep one vector for each.")
    key = shared[0] if shared else next(iter(table.types))
    joined = partial(_joined, table, str(path), vectors, dict(zip(names, count())), key, ids.get(key))
    parts = tuple(partial(joined, part) for part in table.parts)
    types = {**table.types, **dict.fromkeys(names, pa.float64())}
    return replace(table, types=types, parts=parts, together=tuple(names))


def _joined(
    table: Table,
    path: str,
    vectors: NDArray[Any],
    places: Mapping[str, int],
    key: str,
    ids: ArrowColumn | None,
    part: Part,
    columns: Sequence[str],
    rows: int,
) -> Batches:
    """A part with vectors; ``key`` is always read, and may hold their ids."""
    own = [name for name in columns if name not in places]
    end = table.n_rows or 0
    for begin, batch in part(list(dict.fromkeys([*own, key])), rows):
        end = max(end, begin + batch.num_rows)
        place = np.arange(begin, begin + batch.num_rows) if ids is None else find_ids(batch[key], ids)
        if (lost := (place < 0) | (place >= len(vectors))).any():
            first = int(np.argmax(lost))
            row = table.where(begin + first) if ids is None else quoted(str(batch[key][first]))
            raise InputError(f"{path} has no vector for {row} of {table.name}. Compute one for each row.")
        some = np.asarray(vectors[place], dtype=np.float64)
        made = {name: pa.array(some[:, places[name]]) for name in columns if name in places}
        yield begin, pa.RecordBatch.from_pydict({**{name: batch[name] for name in own}, **made})
    if ids is None and end < len(vectors):
        raise InputError(
            f"{table.name} has {end:,} rows and {path} {len(vectors):,} vectors, which go together row by row. "
            "Compute one for each row, or give a .parquet file with a column of ids that the table has too."
        )


def _read(path: Location) -> tuple[NDArray[Any], dict[str, ArrowColumn]]:
    """Vectors of a file, one a row, and its columns that may hold ids, as texts."""
    ids: dict[str, ArrowColumn] = {}
    if file_format(path, ("npy", "parquet")) == "npy":
        try:
            vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as error:
            raise cannot_open(path, error) from None
        except (ValueError, EOFError) as error:
            raise InputError(f"{path} cannot be read as an array of numbers: {reason(error)}") from None
    else:
        vectors, ids = _of_parquet(read_whole(path))
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.size:
        raise InputError(f"{path} holds {vectors.dtype} of shape {vectors.shape}; vectors are rows of numbers.")
    return vectors, ids


def _of_parquet(table: ArrowTable) -> tuple[NDArray[Any], dict[str, ArrowColumn]]:
    """Columns of floats, or of lists of them; whole numbers and texts may be ids."""
    are_lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    blocks = []
    ids = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_floating(column.type):
            blocks.append(np.asarray(column, dtype=np.float64)[:, None])
        elif any(is_one(column.type) for is_one in are_lists):
            if len(pc.list_value_length(column).unique()) != 1 or column.null_count:
                raise InputError(f"Column {quoted(name)} of the vectors does not hold lists of one length.")
            blocks.append(np.asarray(column.flatten(), dtype=np.float64).reshape(len(column), -1))
        elif may_hold_ids(name, column.type):
            ids[name] = id_texts(column)
    return np.hstack(blocks) if blocks else np.empty((0, 0)), ids
