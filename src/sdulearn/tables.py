"""Feature tables: from a file to numbers, the same way in training and, chunk by chunk, in prediction.

CSV, TSV, JSON lines and Parquet are read by pyarrow (the extra ``files``): number and true/false columns become one
feature, text columns one feature a category. svmlight files stay sparse. A layout remembers what was done.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from sdulearn.extras import require
from sdulearn.files import as_text, delimiter, file_format, open_bytes

Array = NDArray[np.float64]
Location = str | PathLike[str]

NUMBER, BOOLEAN, CATEGORY = "number", "boolean", "category"
ID_COLUMNS = ("id", "ID", "Id", "unique_id")
FORMATS = ("csv", "tsv", "parquet", "jsonl", "svm")
# What stands for "not known" in a text file, beside pyarrow's own list (empty, NA, NaN, null, ...).
_MISSING = ("", "#N/A", "N/A", "NA", "<NA>", "NULL", "null", "NaN", "nan", "n/a", "-nan", "-NaN", "None", "?")
_CHUNK_ROWS = 20_000
_BLOCK_BYTES = 1 << 23


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "boolean", "category"}
        What it holds.
    categories : tuple of str
        The categories, each a feature; empty unless the kind is "category".
    fill : float, str or None
        What stands in for a missing value; None refuses it.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    fill: float | str | None = None

    @property
    def feature_names(self) -> list[str]:
        """Names of the features it becomes."""
        return [f"{self.name}={c}" for c in self.categories] if self.kind == CATEGORY else [self.name]


@dataclass(frozen=True)
class ColumnLayout:
    """How a table with named columns becomes a matrix."""

    columns: tuple[Column, ...]
    id_column: str | None = None

    @property
    def feature_names(self) -> list[str]:
        """One name a feature."""
        return [name for column in self.columns for name in column.feature_names]

    @property
    def width(self) -> int:
        """Number of features."""
        return sum(len(column.feature_names) for column in self.columns)


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
    """Rows of a table: features, ids, and how often a text was none of the known categories, by column."""

    X: Any
    ids: list[str]
    layout: Layout
    unseen: Counter[str] = field(default_factory=Counter)


def read_table(
    path: Location,
    *,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    missing: str = "error",
    max_categories: int = 50,
) -> Table:
    """Read a whole table and work out its layout.

    Parameters
    ----------
    path : str or path-like
        .csv, .tsv, .jsonl, .parquet or .svm (svmlight), gzipped or not.
    id_column : str, optional
        The column of ids; by default ``id`` or ``unique_id`` where there is one, else rows are numbered from 0.
    drop : sequence of str
        Columns to leave out.
    missing : {"error", "mean"}, default="error"
        Refuse missing values, or put in the column's mean (most frequent category).
    max_categories : int, default=50
        A text column with more different texts than this is refused: it is a name or a note, not a category.

    Returns
    -------
    Table
        Features (dense, or CSR for svmlight), ids and the layout, which reads further tables alike.
    """
    if file_format(path, FORMATS) == "svm":
        if id_column is not None or drop:
            raise ValueError(f"{path}: an svmlight file has no named columns; its rows are numbered from 0.")
        return _read_svmlight(path)
    with _damage_told(path):
        table, id_column = _read_arrow(path, id_column)
    if table.num_rows == 0:
        raise ValueError(f"{path} has no rows.")
    names = [name for name in table.column_names if name != id_column]
    if unknown := set(drop) - set(names):
        raise ValueError(f"{path} has no column {sorted(unknown)[0]!r} to leave out. Its columns: {', '.join(names)}.")
    kept = {name: table[name] for name in names if name not in drop}
    layout = ColumnLayout(_columns(path, kept, missing, max_categories), id_column)
    return _encode(path, layout, table, 0)


def read_chunks(path: Location, layout: Layout, *, id_column: str | None = None) -> Iterator[Table]:
    """Read a table in the layout of another, some thousand rows at a time; other columns are passed over.

    ``id_column`` names another column of ids than the layout's. Where the table has neither, rows are numbered from 0.
    """
    name = file_format(path, FORMATS)
    if isinstance(layout, SparseLayout) != (name == "svm"):
        wanted = "an svmlight file (.svm)" if isinstance(layout, SparseLayout) else "a table with named columns"
        raise ValueError(f"{path}: the model was fitted on {wanted}; give it one like that.")
    if isinstance(layout, SparseLayout):
        yield from _svmlight_chunks(path, layout)
        return
    begin = 0
    with _damage_told(path):
        id_column = _choose_id(path, column_names(path), id_column, (layout.id_column,))
        for batch in _batches(path, name, layout, id_column):
            yield _encode(path, ColumnLayout(layout.columns, id_column), batch, begin)
            begin += batch.num_rows


def read_ids(path: Location, id_column: str | None = None) -> list[str]:
    """The ids of a table alone."""
    name = file_format(path, FORMATS)
    if name == "svm":
        return _read_svmlight(path).ids
    ids: list[str] = []
    with _damage_told(path):
        id_column = _choose_id(path, column_names(path), id_column, ID_COLUMNS)
        for batch in _batches(path, name, ColumnLayout(()), id_column):
            ids += _ids(batch, id_column, len(ids))
    return ids


@contextmanager
def _damage_told(path: Location) -> Iterator[None]:
    """What gzip, csv and pyarrow raise on a damaged file, as a ValueError."""
    try:
        yield
    except (EOFError, zlib.error, csv.Error, KeyError) as error:
        raise ValueError(f"{path} cannot be read: {error}. It seems to be cut off or damaged.") from None


def column_names(path: Location) -> list[str]:
    """Names of a table's columns (of the first row of JSON lines)."""
    name = file_format(path, FORMATS)
    if name == "parquet":
        return require("pyarrow.parquet", "files").read_schema(path).names
    line = _first_line(path)
    if name == "jsonl":
        return require("pyarrow.json", "files").read_json(io.BytesIO(line.encode())).column_names
    return next(csv.reader([line], delimiter=delimiter(line, name)))


def _first_line(path: Location) -> str:
    with open_bytes(path) as file:
        line = file.readline(_BLOCK_BYTES)
    if not line.strip():
        raise ValueError(f"{path} is empty, or begins with an empty line. The first line must name the columns.")
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8. Save it as UTF-8.") from None


def _choose_id(path: Location, names: Sequence[str], wanted: str | None, usual: Sequence[str | None]) -> str | None:
    if wanted is not None and wanted not in names:
        raise ValueError(f"{path} has no column {wanted!r} to take ids from. Its columns: {', '.join(names)}.")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{path} has two columns named {repeated[0]!r}. Rename one of them.")
    return wanted if wanted is not None else next((name for name in usual if name in names), None)


def _read_arrow(path: Location, id_column: str | None) -> tuple[Any, str | None]:
    """The whole file as a pyarrow table, types as pyarrow infers them over all rows, ids as text."""
    pa = require("pyarrow", "files")
    name = file_format(path, FORMATS)
    id_column = _choose_id(path, column_names(path), id_column, ID_COLUMNS)
    try:
        if name == "parquet":
            return require("pyarrow.parquet", "files").read_table(path), id_column
        with open_bytes(path) as file:
            if name == "jsonl":
                json = require("pyarrow.json", "files")
                return json.read_json(file, json.ReadOptions(block_size=_BLOCK_BYTES)), id_column
            types = {} if id_column is None else {id_column: pa.string()}
            return require("pyarrow.csv", "files").read_csv(file, **_csv_options(path, name, types)), id_column
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


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
    wanted = [*types] if id_column is None else list(dict.fromkeys([*types, id_column]))
    names = column_names(path)
    if name != "jsonl" and (absent := [column for column in wanted if column not in names]):
        raise ValueError(f"{path} lacks the column {', '.join(map(repr, absent[:5]))} that the model needs.")
    try:
        if name == "parquet":
            file = require("pyarrow.parquet", "files").ParquetFile(path)
            yield from file.iter_batches(_CHUNK_ROWS, columns=wanted or names[:1])
        elif name == "jsonl":
            yield from _json_batches(path, pa.schema(types))
        else:
            text = types if id_column is None else {id_column: pa.string(), **types}
            with open_bytes(path) as stream:
                options = _csv_options(path, name, text, wanted or names[:1])
                yield from require("pyarrow.csv", "files").open_csv(stream, **options)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


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


def _columns(path: Location, table: dict[str, Any], missing: str, max_categories: int) -> tuple[Column, ...]:
    """The layout's columns, or an error that names every column in the way."""
    if not table:
        raise ValueError(f"{path} has no columns to learn from.")
    kinds = {name: _kind(values.type) for name, values in table.items()}
    if strange := [f"{name!r} ({table[name].type})" for name, kind in kinds.items() if not kind]:
        raise ValueError(f"{path}: neither numbers nor text: {', '.join(strange)}. Leave them out with --drop.")
    gaps = {name: values.null_count for name, values in table.items() if values.null_count}
    gaps |= {name: n for name, values in table.items() if kinds[name] == NUMBER and (n := _nans(values))}
    if gaps and missing == "error":
        listed = ", ".join(f"{name!r} ({count:,})" for name, count in gaps.items())
        raise ValueError(
            f"{path}: missing values in {listed}. Pass --missing mean to put in the column's mean (most frequent "
            "text), or leave columns out with --drop."
        )
    if empty := [name for name, count in gaps.items() if count == len(table[name])]:
        raise ValueError(f"{path}: nothing but missing values in {', '.join(map(repr, empty))}. Use --drop.")
    columns = [_column(name, values, kinds[name], missing == "mean") for name, values in table.items()]
    if large := [f"{c.name!r} ({len(c.categories):,})" for c in columns if len(c.categories) > max_categories]:
        raise ValueError(
            f"{path}: text columns with more than {max_categories} different texts: {', '.join(large)}. Name the ids "
            "with --id, leave columns out with --drop, or raise --max-categories."
        )
    return tuple(columns)


def _kind(dtype: Any) -> str:
    types = require("pyarrow.types", "files")
    if types.is_boolean(dtype):
        return BOOLEAN
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype) or types.is_null(dtype):
        return NUMBER
    if types.is_dictionary(dtype):
        return CATEGORY if _kind(dtype.value_type) == CATEGORY else ""
    return CATEGORY if types.is_string(dtype) or types.is_large_string(dtype) else ""


def _nans(values: Any) -> int:
    return int(np.isnan(_numbers(values)).sum())


def _numbers(values: Any) -> Array:
    """A number or true/false column as floats; NaN where it is missing."""
    pa = require("pyarrow", "files")
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return _to_numpy(values.cast(pa.float64(), safe=False))


def _to_numpy(values: Any) -> NDArray[Any]:
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _column(name: str, values: Any, kind: str, filled: bool) -> Column:
    if kind != CATEGORY:
        return Column(name, kind, fill=float(np.nanmean(_numbers(values))) if filled else None)
    pa = require("pyarrow", "files")
    texts, numbers = (part.to_pylist() for part in values.cast(pa.string()).value_counts().flatten())
    counts = Counter({text: number for text, number in zip(texts, numbers, strict=True) if text is not None})
    return Column(name, kind, tuple(sorted(counts)), counts.most_common(1)[0][0] if filled else None)


def _encode(path: Location, layout: ColumnLayout, table: Any, begin: int) -> Table:
    """The features of a table or batch."""
    X = np.zeros((table.num_rows, layout.width))
    unseen: Counter[str] = Counter()
    at = 0
    for column in layout.columns:
        block = X[:, at : at + len(column.feature_names)]
        if column.kind == CATEGORY:
            unseen[column.name] += _one_hot(path, column, table[column.name], block)
        else:
            block[:, 0] = _filled(path, column, _numbers(table[column.name]))
        at += block.shape[1]
    return Table(X, _ids(table, layout.id_column, begin), layout, +unseen)


def _filled(path: Location, column: Column, values: Array) -> Array:
    gaps = np.isnan(values)
    if gaps.any():
        _refuse_missing(path, column, int(gaps.sum()))
        values = np.where(gaps, float(column.fill or 0.0), values)
    if not np.isfinite(values).all():
        raise ValueError(f"{path}: column {column.name!r} holds infinite values. Replace them, or leave it out.")
    return values


def _one_hot(path: Location, column: Column, values: Any, block: Array) -> int:
    """Write ones into the block; give back how many texts are no known category."""
    pa, pc = require("pyarrow", "files"), require("pyarrow.compute", "files")
    values = values.cast(pa.string())
    if values.null_count:
        _refuse_missing(path, column, values.null_count)
        values = pc.fill_null(values, column.fill)
    found = pc.fill_null(pc.index_in(values, value_set=pa.array(column.categories, pa.string())), -1)
    place = _to_numpy(found)
    known = np.flatnonzero(place >= 0)
    block[known, place[known]] = 1.0
    return len(place) - len(known)


def _refuse_missing(path: Location, column: Column, count: int) -> None:
    if column.fill is None:
        raise ValueError(
            f"{path}: {count:,} missing values in column {column.name!r}, and the model was fitted without a stand-in "
            "for them. Fill them in, or fit again with --missing mean."
        )


def _ids(table: Any, id_column: str | None, begin: int) -> list[str]:
    if id_column is None:
        return [str(k) for k in range(begin, begin + table.num_rows)]
    return [as_text(value) for value in table[id_column].to_pylist()]


def _read_svmlight(path: Location) -> Table:
    """A whole svmlight file; features are taken to be numbered from 1 unless a 0 occurs."""
    with _damage_told(path), open_bytes(path) as file:
        X = _parse_svmlight(path, file, None)
    if X.shape[0] == 0:
        raise ValueError(f"{path} is empty.")
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
        raise ValueError(
            f"{path} cannot be read as svmlight, or has features the model does not know: {error}"
        ) from None
    if not np.isfinite(X.data).all():
        raise ValueError(f"{path} holds values that are missing or infinite. Leave them out; absent means zero.")
    return X
