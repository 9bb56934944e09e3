"""Feature tables: from a file or frame to numbers, the same way in training and, chunk by chunk, in prediction.

CSV, TSV, JSON lines and Parquet are read by pyarrow (the extra ``files``), Excel by calamine (the extra
``excel``): number and true/false columns become one feature, text columns one feature a category (see
:mod:`sdulearn.columns`). A folder of Parquet files is a table too. svmlight files stay sparse. A layout
remembers what was done.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from sdulearn.columns import (
    BOOLEAN,
    CATEGORY,
    NUMBER,
    ColumnLayout,
    Kind,
    Layout,
    SparseLayout,
    add_summaries,
    as_arrow,
    column_kinds,
    encode,
    find_columns,
    id_texts,
    pair_codes,
    point_numbers,
    summarise,
)
from sdulearn.errors import InputError, listed, quoted, reason, shortened
from sdulearn.extras import require
from sdulearn.io import parquet
from sdulearn.io.excel import read_sheet, sheet_table
from sdulearn.io.files import DAMAGED, Location, decoded, delimiter, file_format, is_location, open_bytes
from sdulearn.io.ids import ID_COLUMNS, Candidate, choose_by_answers, looks_like_id, match_texts
from sdulearn.io.json_lines import json_batches, json_names, json_table
from sdulearn.io.svmlight import parse_svmlight
from sdulearn.number_texts import NumberText, parse_numbers, recognise_numbers
from sdulearn.types import ArrowTable, ArrowType, Codes, Frame, Rows

FORMATS = ("csv", "tsv", "parquet", "jsonl", "svm", "xlsx")
# Formats in which everything is text, so that a number may be spelled in several ways.
_TEXT_FORMATS = ("csv", "tsv", "xlsx")
# What stands for "not known" in a text file, beside pyarrow's own list (empty, NA, NaN, null, ...).
_MISSING = ("", "#N/A", "N/A", "NA", "<NA>", "NULL", "null", "NaN", "nan", "n/a", "-nan", "-NaN", "None", "?")
_CHUNK_ROWS = 20_000
# A column of numbers that come in twos by chance has fewer of them than this.
_FEW_PAIRS = 5
_BLOCK_BYTES = 1 << 23


@dataclass(frozen=True)
class TableOptions:
    """How a table is read; see :func:`read_table`."""

    id_column: str | None = None
    drop: Sequence[str] = ()
    missing: str = "error"
    max_categories: int = 50
    codes: str | None = None
    categories: Sequence[str] = ()
    points: str | None = None


@dataclass(frozen=True)
class Table:
    """Rows of a table as features."""

    X: Rows  # (n_rows, n_features), features
    ids: list[str]  # ids, or row numbers from 0
    layout: Layout  # reads further tables alike
    # how often a text was none of the known categories, by column
    unseen: Counter[str] = field(default_factory=Counter)
    codes: Codes | None = None  # (n_rows,), pair codes, where a column holds them
    points: Codes | None = None  # (n_rows,), the point that each row shows, where a column says so


@dataclass(frozen=True)
class _RawTable:
    """A table as it was read: pyarrow tables, one a file, with the types over all of them."""

    name: str
    pieces: list[ArrowTable]
    types: Mapping[str, ArrowType]
    format: str

    @property
    def n_rows(self) -> int:
        return sum(piece.num_rows for piece in self.pieces)


def read_table(
    source: Location | Frame,
    *,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    missing: str = "error",
    max_categories: int = 50,
    codes: str | None = None,
    categories: Sequence[str] = (),
    points: str | None = None,
    answer_ids: Collection[str] = (),
) -> Table:
    """Read a whole table and work out its layout."""
    options = TableOptions(id_column, drop, missing, max_categories, codes, categories, points)
    if is_location(source) and table_format(source) == "svm":
        if id_column or drop or codes is not None:
            raise InputError(f"{source}: an svmlight file has no named columns; its rows are numbered from 0.")
        return _read_svmlight(source)
    raw = _read_raw(source, options)
    if raw.n_rows == 0:
        raise InputError(f"{raw.name} has no rows.")
    id_name = _choose_id_column(raw, options, answer_ids)
    raw, spelled = _numbers_from_texts(raw, id_name, options)
    _refuse_forgotten_codes(raw, id_name, options)
    layout = _layout(raw, id_name, options, spelled)
    return _joined([_encode(raw.name, layout, piece, codes=codes, points=points) for piece in raw.pieces])


def _layout(
    raw: _RawTable, id_name: str | None, options: TableOptions, spelled: Mapping[str, NumberText]
) -> ColumnLayout:
    kinds = feature_kinds(raw.name, raw.types, id_name, options)
    found = add_summaries(summarise(piece, kinds) for piece in raw.pieces)
    columns = find_columns(raw.name, kinds, found, options.missing, options.max_categories)
    columns = tuple(replace(column, text=spelled.get(column.name)) for column in columns)
    return ColumnLayout(columns, id_name)


def _refuse_forgotten_codes(raw: _RawTable, id_name: str | None, options: TableOptions) -> None:
    """A column of whole numbers of which every one but 0 stands on two rows is no feature."""
    is_integer = require("pyarrow.types", "files").is_integer
    for name, dtype in raw.types.items():
        if name in {id_name, options.codes, options.points, *options.drop} or not is_integer(dtype):
            continue
        values = np.concatenate([piece[name].drop_null().to_numpy() for piece in raw.pieces])
        _, counts = np.unique(values[values != 0], return_counts=True)
        if len(counts) >= _FEW_PAIRS and (counts == 2).all() and (values == 0).any():
            raise InputError(
                f"{raw.name}: column {quoted(name)} looks like pair codes: every number but 0 stands on two rows. "
                f"Learn from them with `codes={quoted(name)}`, or leave the column out with `drop`."
            )


def feature_kinds(
    name: str, types: Mapping[str, ArrowType], id_column: str | None, options: TableOptions
) -> dict[str, Kind]:
    """Which columns to learn from, and of what kind they are."""
    names = [column for column in types if column != id_column]
    codes = [options.codes] if options.codes else []
    points = [options.points] if options.points else []
    purposes = {
        "leave out": options.drop,
        "take pair codes from": codes,
        "take points from": points,
        "read as texts": options.categories,
    }
    for purpose, wanted in purposes.items():
        if unknown := set(wanted) - set(names):
            missing = quoted(sorted(unknown)[0])
            raise InputError(
                f"{name} has no column {missing} to {purpose}. Its columns: {listed(map(shortened, names))}."
            )
    left_out = {*options.drop, *codes, *points}
    return column_kinds(name, {column: types[column] for column in names if column not in left_out})


def _choose_id_column(raw: _RawTable, options: TableOptions, answer_ids: Collection[str]) -> str | None:
    """The column of ids: the one named, the one that the answers' ids are in, or a usual one."""
    names = list(raw.types)
    if options.id_column is not None or not answer_ids:
        return choose_id(raw.name, names, options.id_column, ID_COLUMNS)
    check_repeated_names(raw.name, names)
    left_out = {*options.drop, options.codes, options.points}
    ids = set(answer_ids)
    candidates: list[Candidate] = []
    for name in names:
        if name not in left_out and may_hold_ids(name, raw.types[name]):
            texts = [text for piece in raw.pieces for text in id_texts(piece[name]).to_pylist()]
            candidates.append(match_texts(name, texts, ids))
    return choose_by_answers(raw.name, candidates, ids, raw.n_rows, ID_COLUMNS)


def may_hold_ids(name: str, dtype: ArrowType) -> bool:
    """Whether a column can hold ids: whole numbers or texts; floats only where it is called as ids are."""
    types = require("pyarrow.types", "files")
    if types.is_dictionary(dtype):
        return may_hold_ids(name, dtype.value_type)
    if types.is_floating(dtype):
        return looks_like_id(name)
    return types.is_integer(dtype) or types.is_string(dtype) or types.is_large_string(dtype)


def _numbers_from_texts(
    raw: _RawTable, id_name: str | None, options: TableOptions
) -> tuple[_RawTable, dict[str, NumberText]]:
    """Text columns that hold numbers in another spelling, as numbers; refused where it is not clear."""
    spelled: dict[str, NumberText] = {}
    if raw.format not in _TEXT_FORMATS:
        return raw, spelled
    pa = require("pyarrow", "files")
    kept = {id_name, options.codes, options.points, *options.drop, *options.categories}
    (piece,) = raw.pieces
    for place, name in enumerate(piece.column_names):
        if name in kept or not pa.types.is_string(piece.schema.field(name).type):
            continue
        if (found := recognise_numbers(raw.name, name, piece[name])) is not None:
            spelled[name] = found
            piece = piece.set_column(place, name, parse_numbers(raw.name, name, piece[name], found))
    types = dict(zip(piece.column_names, piece.schema.types, strict=True))
    return replace(raw, pieces=[piece], types=types), spelled


def read_chunks(path: Location, layout: Layout, *, id_column: str | None = None) -> Iterator[Table]:
    """Read a table in the layout of another, some thousand rows at a time; other columns are passed over.

    ``id_column`` names another column of ids than the layout's, "" row numbers. Where the table has neither,
    rows are numbered from 0.
    """
    name = check_format(path, layout)
    if isinstance(layout, SparseLayout):
        yield from _svmlight_chunks(path, layout)
        return
    begin = 0
    with _clear_errors(path):
        names = column_names(path, id_column or layout.id_column)
        id_column = choose_id(str(path), names, id_column, (layout.id_column,))
        for batch in _batches(path, name, layout, id_column):
            yield _encode(str(path), ColumnLayout(layout.columns, id_column), batch, begin)
            begin += batch.num_rows


def check_format(path: Location, layout: Layout) -> str:
    """The format of a table; an error where a layout is of another kind of table."""
    name = table_format(path)
    if isinstance(layout, SparseLayout) != (name == "svm"):
        wanted = "an svmlight file (.svm)" if isinstance(layout, SparseLayout) else "a table with named columns"
        raise InputError(f"{path}: the model was fitted on {wanted}; give it one like that.")
    return name


def read_ids(source: Location | Frame, id_column: str | None = None, answer_ids: Collection[str] = ()) -> list[str]:
    """The ids of a table alone, found as :func:`read_table` finds them."""
    if is_location(source) and table_format(source) == "svm":
        return _read_svmlight(source).ids
    options = TableOptions(id_column)
    raw = _read_raw(source, options)
    name = _choose_id_column(raw, options, answer_ids)
    ids: list[str] = []
    for piece in raw.pieces:
        ids += _ids(piece, name, len(ids))
    return ids


def read_raw(source: Location | Frame, id_column: str | None = None) -> ArrowTable:
    """A whole table with named columns, as it is, for showing it."""
    if is_location(source) and table_format(source) == "svm":
        raise InputError(f"{source}: an svmlight file has no named columns to show. Give a .csv, .parquet, .jsonl, ...")
    pieces = _read_raw(source, TableOptions(id_column)).pieces
    names = pieces[0].column_names
    concat = require("pyarrow", "files").concat_tables
    return concat([piece.select(names) for piece in pieces], promote_options="permissive")


@contextmanager
def _clear_errors(path: Location) -> Iterator[None]:
    """What gzip, csv and pyarrow raise on a damaged file, as an error of ours."""
    arrow = require("pyarrow", "files").ArrowInvalid
    try:
        yield
    except arrow as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from None
    except (*DAMAGED, csv.Error, KeyError) as error:
        raise InputError(f"{path} cannot be read: {reason(error)}. It seems to be cut off or damaged.") from None


def table_format(path: Location) -> str:
    """The format of a table by its name; a folder holds Parquet files."""
    return "parquet" if Path(path).is_dir() else file_format(path, FORMATS)


def column_names(path: Location, wanted: str | None = None) -> list[str]:
    """Names of a table's columns; of JSON lines those of the first rows, up to some that have the wanted one."""
    name = table_format(path)
    if name == "parquet":
        return list(parquet.open_parquet(path).types)
    if name == "xlsx":
        return read_sheet(path)[0]
    if name == "jsonl":
        return json_names(path, _CHUNK_ROWS, wanted)
    line = _first_line(path)
    return next(csv.reader([line], delimiter=delimiter(line, name)))


def _first_line(path: Location) -> str:
    with open_bytes(path) as file:
        line = file.readline(_BLOCK_BYTES)
    if not line.strip():
        raise InputError(f"{path} is empty, or begins with an empty line. The first line must name the columns.")
    return decoded(path, line).rstrip("\r\n")


def choose_id(path: str, names: Sequence[str], wanted: str | None, usual: Sequence[str | None]) -> str | None:
    """The wanted column of ids (None for ""), else the first usual one that is there."""
    check_repeated_names(path, names)
    if wanted is None:
        return next((name for name in usual if name in names), None)
    if wanted and wanted not in names:
        raise InputError(
            f"{path} has no column {quoted(wanted)} to take ids from. Its columns: {listed(map(shortened, names))}."
        )
    return wanted or None


def check_repeated_names(path: str, names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"{path} has two columns named {quoted(repeated[0])}. Rename one of them.")


def _read_raw(source: Location | Frame, options: TableOptions) -> _RawTable:
    """The whole table, with the types that pyarrow infers over all rows; what may be ids stays text."""
    if not is_location(source):
        return _single("the table", as_arrow(source), "frame")
    path = str(source)
    name = table_format(path)
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise InputError(f"{path} is neither a file nor a folder: a table is read more than once. Copy it to a file.")
    with _clear_errors(path):
        if name == "parquet":
            opened = parquet.open_parquet(path)
            return _RawTable(path, parquet.read_whole(path), opened.types, name)
        if name == "xlsx":
            return _single(path, sheet_table(path, _MISSING), name)
        if name == "jsonl":
            return _single(path, json_table(path, _CHUNK_ROWS, _BLOCK_BYTES), name)
        names = column_names(path)
        check_repeated_names(path, names)
        own = {options.id_column, *options.categories}
        texts = [column for column in names if column in own or looks_like_id(column)]
        reading = _csv_options(path, name, dict.fromkeys(set(texts) - {options.codes, options.points}))
        with open_bytes(path) as file:
            return _single(path, require("pyarrow.csv", "files").read_csv(file, **reading), name)


def _single(name: str, table: ArrowTable, file_format: str) -> _RawTable:
    check_repeated_names(name, table.column_names)
    return _RawTable(name, [table], dict(zip(table.column_names, table.schema.types, strict=True)), file_format)


def _csv_options(
    path: Location, name: str, types: Mapping[str, ArrowType | None], only: Sequence[str] = ()
) -> dict[str, object]:
    """Options of pyarrow's reader; a type of None is text."""
    arrow = require("pyarrow.csv", "files")
    text = require("pyarrow", "files").string()
    return {
        "read_options": arrow.ReadOptions(block_size=_BLOCK_BYTES),
        "parse_options": arrow.ParseOptions(delimiter=delimiter(_first_line(path), name), newlines_in_values=True),
        "convert_options": arrow.ConvertOptions(
            null_values=_MISSING,
            strings_can_be_null=True,
            column_types={column: dtype or text for column, dtype in types.items()},
            include_columns=list(only),
        ),
    }


def _batches(path: Location, name: str, layout: ColumnLayout, id_column: str | None) -> Iterator[ArrowTable]:
    """Record batches with the columns of a layout and the ids."""
    names = column_names(path)
    # A key may be missing from the first rows of JSON lines, where alone it is looked for.
    wanted = needed_columns(path, layout, id_column, None if name == "jsonl" else names)
    if name == "parquet":
        for group in parquet.open_parquet(path).groups:
            yield from group.batches(wanted or names[:1], _CHUNK_ROWS)
    elif name == "xlsx":
        yield from sheet_table(path, _MISSING).select(wanted or names[:1]).to_batches(_CHUNK_ROWS)
    elif name == "jsonl":
        yield from json_batches(path, _CHUNK_ROWS, require("pyarrow", "files").schema(_column_types(layout)))
    else:
        types: dict[str, ArrowType | None] = _column_types(layout)
        if id_column is not None:
            types = {**types, id_column: None}
        with open_bytes(path) as stream:
            options = _csv_options(path, name, types, wanted or names[:1])
            yield from require("pyarrow.csv", "files").open_csv(stream, **options)


def _column_types(layout: ColumnLayout) -> dict[str, ArrowType]:
    pa = require("pyarrow", "files")
    kinds = {NUMBER: pa.float64(), BOOLEAN: pa.bool_(), CATEGORY: pa.string()}
    return {column.name: kinds[column.kind] if column.text is None else pa.string() for column in layout.columns}


def needed_columns(
    path: Location, layout: ColumnLayout, id_column: str | None, names: Sequence[str] | None
) -> list[str]:
    """The columns of a layout and the ids; an error where the table, which has the given ones, lacks some."""
    wanted = [column.name for column in layout.columns]
    if id_column is not None:
        wanted.append(id_column)
    if names is not None and (absent := [name for name in wanted if name not in names]):
        raise InputError(f"{path} lacks the column {', '.join(map(quoted, absent[:5]))} that the model needs.")
    return list(dict.fromkeys(wanted))


def _line_chunks(path: Location) -> Iterator[bytes]:
    with open_bytes(path) as file:
        while lines := list(islice(file, _CHUNK_ROWS)):
            if block := b"".join(line for line in lines if line.strip()):
                yield block


def _encode(
    path: str,
    layout: ColumnLayout,
    table: ArrowTable,
    begin: int = 0,
    codes: str | None = None,
    points: str | None = None,
) -> Table:
    """A pyarrow table or batch as features, ids, pair codes and points."""
    X, unseen = encode(path, layout, table)
    y = None if codes is None else pair_codes(path, codes, table[codes])
    shown = None if points is None else point_numbers(path, points, table[points])
    return Table(X, _ids(table, layout.id_column, begin), layout, unseen, y, shown)


def _joined(pieces: Sequence[Table]) -> Table:
    """The files of a folder as one table; rows without ids are numbered through."""
    if len(pieces) == 1:
        return pieces[0]
    X = np.concatenate([piece.X.T for piece in pieces], axis=1).T
    layout = pieces[0].layout
    ids = [i for piece in pieces for i in piece.ids] if layout.id_column else [str(k) for k in range(len(X))]
    codes = [piece.codes for piece in pieces if piece.codes is not None]
    points = [piece.points for piece in pieces if piece.points is not None]
    return Table(
        X,
        ids,
        layout,
        codes=np.concatenate(codes) if codes else None,
        points=np.concatenate(points) if points else None,
    )


def _ids(table: ArrowTable, id_column: str | None, begin: int) -> list[str]:
    if id_column is None:
        return [str(k) for k in range(begin, begin + table.num_rows)]
    if id_column not in table.schema.names:
        # Some thousand JSON lines without the key that others have.
        return [""] * table.num_rows
    return id_texts(table[id_column]).to_pylist()


def _read_svmlight(path: Location) -> Table:
    """A whole svmlight file; features are taken to be numbered from 1 unless a 0 occurs."""
    with _clear_errors(path), open_bytes(path) as file:
        X = parse_svmlight(path, file, None)
    if X.shape[0] == 0:
        raise InputError(f"{path} is empty.")
    first: Literal[0, 1] = 1 if X.indices.size == 0 or X.indices.min() > 0 else 0
    X = X[:, first:]
    return Table(X, [str(k) for k in range(X.shape[0])], SparseLayout(X.shape[1], first))


def _svmlight_chunks(path: Location, layout: SparseLayout) -> Iterator[Table]:
    begin = 0
    with _clear_errors(path):
        for lines in _line_chunks(path):
            X = parse_svmlight(path, io.BytesIO(lines), layout.width + layout.first)[:, layout.first :]
            yield Table(X, [str(k) for k in range(begin, begin + X.shape[0])], layout)
            begin += X.shape[0]
