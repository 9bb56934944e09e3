"""Feature tables: from a file to numbers, the same way in training and, chunk by chunk, in prediction.

CSV, TSV, JSON lines and Parquet are read by pyarrow (the extra ``files``): number and true/false
columns become one feature, text columns one feature a category (see :mod:`sdulearn.columns`). A
folder of Parquet files is a table too. svmlight files stay sparse. A layout remembers what was
done.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from sdulearn.columns import (
    BOOLEAN,
    CATEGORY,
    NUMBER,
    Column,
    ColumnLayout,
    add_summaries,
    column_kinds,
    encode,
    find_columns,
    id_texts,
    pair_codes,
    summarise,
)
from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.io import parquet
from sdulearn.io.answers import delimiter, file_format, open_bytes

# Layouts are known by this name: models and their files are made of them.
__all__ = [
    "BOOLEAN", "CATEGORY", "NUMBER", "Column", "ColumnLayout", "Layout", "SparseLayout", "Table",
    "check_format", "choose_id", "column_names", "feature_kinds", "needed_columns", "read_chunks", "read_ids",
    "read_table", "table_format",
]  # fmt: skip

Location = str | PathLike[str]

ID_COLUMNS = ("id", "ID", "Id", "unique_id")
FORMATS = ("csv", "tsv", "parquet", "jsonl", "svm")
# What stands for "not known" in a text file, beside pyarrow's own list (empty, NA, NaN, null, ...).
_MISSING = ("", "#N/A", "N/A", "NA", "<NA>", "NULL", "null", "NaN", "nan", "n/a", "-nan", "-NaN", "None", "?")
_CHUNK_ROWS = 20_000
_BLOCK_BYTES = 1 << 23


@dataclass(frozen=True)
class SparseLayout:
    """An svmlight file: so many features, the first one numbered ``first``."""

    width: int
    first: int = 1
    id_column: None = None

    @property
    def feature_names(self) -> list[str]:
        """The features' numbers."""
        return [str(k) for k in range(self.first, self.first + self.width)]


Layout = ColumnLayout | SparseLayout


@dataclass(frozen=True)
class Table:
    """Rows of a table: features, ids, how often a text was none of the known categories, by column, and pair codes."""

    X: Any
    ids: list[str]
    layout: Layout
    unseen: Counter[str] = field(default_factory=Counter)
    codes: NDArray[np.int64] | None = None


def read_table(
    path: Location,
    *,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    missing: str = "error",
    max_categories: int = 50,
    codes: str | None = None,
) -> Table:
    """Read a whole table and work out its layout.

    Parameters
    ----------
    path : str or path-like
        .csv, .tsv, .jsonl, .parquet or .svm (svmlight), gzipped or not; or a folder of Parquet
        files.
    id_column : str, optional
        The column of ids; by default ``id`` or ``unique_id`` where there is one, else rows are
        numbered from 0.
    drop : sequence of str
        Columns to leave out.
    missing : {"error", "mean"}, default="error"
        Refuse missing values, or put in the column's mean (most frequent category).
    max_categories : int, default=50
        A text column with more different texts than this is refused: it is a name or a note, not a
        category.
    codes : str, optional
        A column of pair codes; it is no feature.

    Returns
    -------
    Table
        Features (dense, or CSR for svmlight), ids and the layout, which reads further tables alike.
    """
    if table_format(path) == "svm":
        if id_column is not None or drop or codes is not None:
            raise InputError(f"{path}: an svmlight file has no named columns; its rows are numbered from 0.")
        return _read_svmlight(path)
    with _damage_told(path):
        pieces, types, id_column = _read_arrow(path, id_column)
    if not any(piece.num_rows for piece in pieces):
        raise InputError(f"{path} has no rows.")
    kinds = feature_kinds(path, types, id_column, drop, codes)
    found = add_summaries(summarise(piece, kinds) for piece in pieces)
    layout = ColumnLayout(find_columns(path, kinds, found, missing, max_categories), id_column)
    return _joined([_encode(path, layout, piece, codes=codes) for piece in pieces])


def feature_kinds(
    path: Location, types: Mapping[str, Any], id_column: str | None, drop: Sequence[str], codes: str | None
) -> dict[str, str]:
    """Which columns to learn from, and of what kind they are."""
    names = [name for name in types if name != id_column]
    for wanted, purpose in ((drop, "leave out"), ([codes] if codes else [], "take pair codes from")):
        if unknown := set(wanted) - set(names):
            listed = ", ".join(names)
            raise InputError(f"{path} has no column {sorted(unknown)[0]!r} to {purpose}. Its columns: {listed}.")
    return column_kinds(path, {name: types[name] for name in names if name not in drop and name != codes})


def read_chunks(path: Location, layout: Layout, *, id_column: str | None = None) -> Iterator[Table]:
    """Read a table in the layout of another, some thousand rows at a time; other columns are passed over.

    ``id_column`` names another column of ids than the layout's. Where the table has neither, rows
    are numbered from 0.
    """
    name = check_format(path, layout)
    if isinstance(layout, SparseLayout):
        yield from _svmlight_chunks(path, layout)
        return
    begin = 0
    with _damage_told(path):
        id_column = choose_id(path, column_names(path), id_column, (layout.id_column,))
        for batch in _batches(path, name, layout, id_column):
            yield _encode(path, ColumnLayout(layout.columns, id_column), batch, begin)
            begin += batch.num_rows


def check_format(path: Location, layout: Layout) -> str:
    """The format of a table; an error where a layout is of another kind of table."""
    name = table_format(path)
    if isinstance(layout, SparseLayout) != (name == "svm"):
        wanted = "an svmlight file (.svm)" if isinstance(layout, SparseLayout) else "a table with named columns"
        raise InputError(f"{path}: the model was fitted on {wanted}; give it one like that.")
    return name


def read_ids(path: Location, id_column: str | None = None) -> list[str]:
    """The ids of a table alone."""
    name = table_format(path)
    if name == "svm":
        return _read_svmlight(path).ids
    ids: list[str] = []
    with _damage_told(path):
        id_column = choose_id(path, column_names(path), id_column, ID_COLUMNS)
        for batch in _batches(path, name, ColumnLayout(()), id_column):
            ids += _ids(batch, id_column, len(ids))
    return ids


@contextmanager
def _damage_told(path: Location) -> Iterator[None]:
    """What gzip, csv and pyarrow raise on a damaged file, as a ValueError."""
    try:
        yield
    except (EOFError, zlib.error, csv.Error, KeyError) as error:
        raise InputError(f"{path} cannot be read: {error}. It seems to be cut off or damaged.") from None


def table_format(path: Location) -> str:
    """The format of a table by its name; a folder holds Parquet files."""
    return "parquet" if Path(path).is_dir() else file_format(path, FORMATS)


def column_names(path: Location) -> list[str]:
    """Names of a table's columns (of the first row of JSON lines)."""
    name = table_format(path)
    if name == "parquet":
        return list(parquet.open_parquet(path).types)
    line = _first_line(path)
    if name == "jsonl":
        return require("pyarrow.json", "files").read_json(io.BytesIO(line.encode())).column_names
    return next(csv.reader([line], delimiter=delimiter(line, name)))


def _first_line(path: Location) -> str:
    with open_bytes(path) as file:
        line = file.readline(_BLOCK_BYTES)
    if not line.strip():
        raise InputError(f"{path} is empty, or begins with an empty line. The first line must name the columns.")
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8. Save it as UTF-8.") from None


def choose_id(path: Location, names: Sequence[str], wanted: str | None, usual: Sequence[str | None]) -> str | None:
    """The wanted column of ids, else the first usual one that is there."""
    if wanted is not None and wanted not in names:
        raise InputError(f"{path} has no column {wanted!r} to take ids from. Its columns: {', '.join(names)}.")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"{path} has two columns named {repeated[0]!r}. Rename one of them.")
    return wanted if wanted is not None else next((name for name in usual if name in names), None)


def _read_arrow(path: Location, id_column: str | None) -> tuple[list[Any], Mapping[str, Any], str | None]:
    """The whole table as pyarrow tables, one a file, with the types that pyarrow infers over all rows, ids as text."""
    pa = require("pyarrow", "files")
    name = table_format(path)
    if name == "parquet":
        opened = parquet.open_parquet(path)
        return parquet.read_whole(path), opened.types, choose_id(path, list(opened.types), id_column, ID_COLUMNS)
    id_column = choose_id(path, column_names(path), id_column, ID_COLUMNS)
    try:
        with open_bytes(path) as file:
            if name == "jsonl":
                json = require("pyarrow.json", "files")
                table = json.read_json(file, json.ReadOptions(block_size=_BLOCK_BYTES))
            else:
                types = {} if id_column is None else {id_column: pa.string()}
                table = require("pyarrow.csv", "files").read_csv(file, **_csv_options(path, name, types))
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return [table], dict(zip(table.column_names, table.schema.types, strict=True)), id_column


def _csv_options(path: Location, name: str, types: dict[str, Any], only: Sequence[str] = ()) -> dict[str, Any]:
    arrow = require("pyarrow.csv", "files")
    return {
        "read_options": arrow.ReadOptions(block_size=_BLOCK_BYTES),
        "parse_options": arrow.ParseOptions(delimiter=delimiter(_first_line(path), name), newlines_in_values=True),
        "convert_options": arrow.ConvertOptions(
            null_values=_MISSING, strings_can_be_null=True, column_types=types, include_columns=list(only)
        ),
    }


def _batches(path: Location, name: str, layout: ColumnLayout, id_column: str | None) -> Iterator[Any]:
    """Record batches with the columns of a layout and the ids."""
    pa = require("pyarrow", "files")
    kinds = {NUMBER: pa.float64(), BOOLEAN: pa.bool_(), CATEGORY: pa.string()}
    types = {column.name: kinds[column.kind] for column in layout.columns}
    names = column_names(path)
    # A key may be missing from the first row of JSON lines, where alone it is looked for.
    wanted = needed_columns(path, layout, id_column, None if name == "jsonl" else names)
    try:
        if name == "parquet":
            for group in parquet.open_parquet(path).groups:
                yield from group.batches(wanted or names[:1], _CHUNK_ROWS)
        elif name == "jsonl":
            yield from _json_batches(path, pa.schema(types))
        else:
            text = types if id_column is None else {id_column: pa.string(), **types}
            with open_bytes(path) as stream:
                options = _csv_options(path, name, text, wanted or names[:1])
                yield from require("pyarrow.csv", "files").open_csv(stream, **options)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def needed_columns(
    path: Location, layout: ColumnLayout, id_column: str | None, names: Sequence[str] | None
) -> list[str]:
    """The columns of a layout and the ids; an error where the table, which has the given ones, lacks some."""
    wanted = [*(column.name for column in layout.columns), *([] if id_column is None else [id_column])]
    if names is not None and (absent := [name for name in wanted if name not in names]):
        raise InputError(f"{path} lacks the column {', '.join(map(repr, absent[:5]))} that the model needs.")
    return list(dict.fromkeys(wanted))


def _json_batches(path: Location, schema: Any) -> Iterator[Any]:
    json = require("pyarrow.json", "files")
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    for lines in _line_chunks(path):
        size = json.ReadOptions(block_size=max(len(lines), 1))
        yield json.read_json(io.BytesIO(lines), size, options)


def _line_chunks(path: Location) -> Iterator[bytes]:
    with open_bytes(path) as file:
        while lines := list(islice(file, _CHUNK_ROWS)):
            if block := b"".join(line for line in lines if line.strip()):
                yield block


def _encode(path: Location, layout: ColumnLayout, table: Any, begin: int = 0, codes: str | None = None) -> Table:
    """A pyarrow table or batch as features, ids and pair codes."""
    X, unseen = encode(path, layout, table)
    told = None if codes is None else pair_codes(path, codes, table[codes])
    return Table(X, _ids(table, layout.id_column, begin), layout, unseen, told)


def _joined(pieces: Sequence[Table]) -> Table:
    """The files of a folder as one table; rows without ids are numbered through."""
    if len(pieces) == 1:
        return pieces[0]
    X = np.concatenate([piece.X.T for piece in pieces], axis=1).T
    layout = pieces[0].layout
    ids = [i for piece in pieces for i in piece.ids] if layout.id_column else [str(k) for k in range(len(X))]
    codes = None if pieces[0].codes is None else np.concatenate([piece.codes for piece in pieces])
    return Table(X, ids, layout, codes=codes)


def _ids(table: Any, id_column: str | None, begin: int) -> list[str]:
    if id_column is None:
        return [str(k) for k in range(begin, begin + table.num_rows)]
    return id_texts(table[id_column]).to_pylist()


def _read_svmlight(path: Location) -> Table:
    """A whole svmlight file; features are taken to be numbered from 1 unless a 0 occurs."""
    with _damage_told(path), open_bytes(path) as file:
        X = _parse_svmlight(path, file, None)
    if X.shape[0] == 0:
        raise InputError(f"{path} is empty.")
    first = 1 if X.indices.size == 0 or X.indices.min() > 0 else 0
    X = X[:, first:]
    return Table(X, [str(k) for k in range(X.shape[0])], SparseLayout(X.shape[1], first))


def _svmlight_chunks(path: Location, layout: SparseLayout) -> Iterator[Table]:
    begin = 0
    with _damage_told(path):
        for lines in _line_chunks(path):
            X = _parse_svmlight(path, io.BytesIO(lines), layout.width + layout.first)[:, layout.first :]
            yield Table(X, [str(k) for k in range(begin, begin + X.shape[0])], layout)
            begin += X.shape[0]


def _parse_svmlight(path: Location, file: Iterable[bytes], width: int | None) -> sparse.csr_matrix:
    try:
        X, _ = load_svmlight_file(file, n_features=width, zero_based=True)
    except ValueError as error:
        raise InputError(
            f"{path} cannot be read as svmlight, or has features the model does not know: {error}"
        ) from None
    if not np.isfinite(X.data).all():
        raise InputError(f"{path} holds values that are missing or infinite. Leave them out; absent means zero.")
    return X
