"""Tables: named columns that are read in batches, as often as needed, whatever the format.

A folder of Parquet files is one table, and the vectors of another file may be further columns of
it. A Dask frame is a table that its workers read. In text files every column is text, and all rows
decide what it holds (:mod:`sdulearn.tables.decide`).
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, chain, islice
from json import loads
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import InputError, SdulearnError, listed, pa, pc, quoted, reason, require, shortened
from sdulearn.io import files
from sdulearn.io.files import Location, check_repeated, is_location, open_bytes, refuse_damaged
from sdulearn.parts import add_all, computed, in_threads, is_dask, sum_delayed
from sdulearn.progress import count_rows
from sdulearn.tables.columns import Where, as_arrow, in_row, kind_of
from sdulearn.tables.excel import read_workbook, sheet_table
from sdulearn.tables.ids import find_ids, id_texts, may_hold_ids
from sdulearn.types import ArrowColumn, ArrowTable, ArrowType, Frame

FORMATS = ("csv", "tsv", "parquet", "jsonl", "xlsx")
# Formats in which cells are text, and numbers may be spelled in several ways.
TEXT_FORMATS = ("csv", "tsv", "xlsx")
# Texts that stand for a missing value in a text file, unless they are ids.
MISSING_TEXTS = ("#N/A", "N/A", "NA", "<NA>", "NULL", "null", "NaN", "nan", "n/a", "-nan", "-NaN", "None", "?")
BATCH_ROWS = 32_768
# Most numbers of a batch: a wide table comes in fewer rows at a time.
_BATCH_NUMBERS = 1 << 22
_BLOCK_BYTES = 1 << 23
# Columns are read through a small buffer, so that a large row group is never in memory whole.
_BUFFER_BYTES = 1 << 18
# Lines of JSON that decide the types of columns at a time: how wide they are is not known yet.
_JSON_LINES = 1000
# What pandas calls an index without a name in Arrow and Parquet.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")

T = TypeVar("T")
Batches: TypeAlias = Iterator[tuple[int, ArrowTable]]
"""Number of the first row, and a record batch."""
OnBatch: TypeAlias = Callable[[int, ArrowTable], Any]
"""A function of the number of the first row, and a record batch."""
Read: TypeAlias = Callable[[Sequence[str], int], Iterator[ArrowTable]]
"""Reads these columns of all rows, in record batches of at most so many rows."""


@dataclass(frozen=True)
class Table:
    """A table that is open, but not read yet."""

    name: str
    format: str  # one of FORMATS, or "frame"
    types: Mapping[str, ArrowType]  # by column, in order
    read: Read
    n_rows: int | None = None  # None where it is known only after reading
    together: tuple[str, ...] = ()  # columns of a vector, which share one scale
    # columns of the index of a pandas frame, which may hold the ids and are not features; one without a name is
    # not among the columns
    index: tuple[str, ...] = ()
    mark: str = ""  # delimiter of a text file
    missing_texts: tuple[str, ...] = ()  # cells that :func:`with_gaps` empties
    where: Where = in_row  # says where a row is in the file
    # number of lines "above" the header, and the "sheet" that was read where there are several
    notes: Mapping[str, Any] = field(default_factory=dict)

    def batches(self, columns: Sequence[str], width: int | None = None) -> Batches:
        """Read columns of all rows; ``width`` is their number of features, by default one each."""
        return numbered(self.read(self.some(columns), batch_rows(width or len(columns))))

    def map(
        self, function: OnBatch, columns: Sequence[str], width: int | None = None, title: str = "reading"
    ) -> Iterator[Any]:
        """Yield a function of the first row's number and the cells of each batch, in order; on all cores.

        The title is that of a progress bar; none without it.
        """
        batches = self.batches(columns, width)
        counted = count_rows(batches, title, self.n_rows) if title else batches
        return in_threads(partial(function, *batch) for batch in counted)

    def sum(self, function: OnBatch, columns: Sequence[str]) -> Any:
        """Add up a function of all batches; None if there are none."""
        return add_all(self.map(function, columns))

    def some(self, columns: Sequence[str]) -> list[str]:
        """Return the columns, or any one where there are none: it is needed to count rows."""
        return list(columns) or list(self.types)[:1]

    def check_columns(self, purposes: Mapping[str, Collection[str | None]]) -> None:
        """Refuse columns that the table lacks; ``purposes`` says what they are for."""
        for purpose, wanted in purposes.items():
            if unknown := {name for name in wanted if name is not None} - set(self.types):
                names = listed(map(shortened, self.types))
                missing = quoted(min(unknown))
                raise InputError(f"{self.name} has no column {missing} to {purpose}. Its columns: {names}.")


@dataclass(frozen=True)
class DaskTable(Table):
    """A Dask frame, whose partitions stay where they are."""

    frame: Any = None
    lengths: Sequence[int] = ()  # rows of each partition

    @classmethod
    def open(cls, frame: Any, lengths: Sequence[int] = ()) -> DaskTable:
        """Open a frame, and count the rows of its partitions unless they are known."""
        if getattr(frame, "ndim", 0) != 2 or not hasattr(frame, "columns"):
            raise InputError("A Dask table is a dask DataFrame; dask.dataframe.from_dask_array makes one of an array.")
        frame = frame.rename(columns=str)
        names = list(frame.columns)
        check_repeated("the table", names)
        types = dict(zip(names, as_arrow(frame._meta_nonempty).select(names).schema.types, strict=True))
        lengths = lengths or frame[names[:1]].map_partitions(len).compute().tolist()

        def read(columns: Sequence[str], rows: int) -> Iterator[ArrowTable]:
            return _held_rows(as_arrow(frame.compute()), columns, rows)

        return cls("the table", "frame", types, read, sum(lengths), frame=frame, lengths=lengths)

    def map(
        self, function: OnBatch, columns: Sequence[str], width: int | None = None, title: str = ""
    ) -> Iterator[Any]:
        """As :meth:`Table.map`, on the workers; Dask's dashboard shows the progress."""
        return chain.from_iterable(computed(self.jobs(partial(_over, list, function), columns, width)))

    def sum(self, function: OnBatch, columns: Sequence[str]) -> Any:
        """As :meth:`Table.sum`, by a tree reduction."""
        return sum_delayed(self.jobs(partial(_over, add_all, function), columns))

    def jobs(self, function: Callable[..., Any], columns: Sequence[str], width: int | None = None) -> list[Any]:
        """Return ``function(number, batches)`` of each partition that is not empty, delayed."""
        delayed = require("dask", "dask").delayed
        # One object that all tasks share: it may hold a model.
        shared = delayed(function)
        schema = pa.schema([(name, self.types[name]) for name in self.some(columns)])
        begins = [0, *accumulate(self.lengths)][:-1]
        parts = zip(self.frame[schema.names].to_delayed(), begins, self.lengths, strict=True)
        filled = enumerate((frame, begin) for frame, begin, rows in parts if rows)
        given = (schema, batch_rows(width or len(columns)))
        return [delayed(_on_partition)(shared, number, *part, *given) for number, part in filled]


def _over(collect: Callable[..., Any], function: OnBatch, _number: int, batches: Batches) -> Any:
    return collect(function(*batch) for batch in batches)


def _on_partition(function: Callable[..., T], number: int, frame: Frame, begin: int, schema: Any, rows: int) -> T:
    try:
        table = as_arrow(frame).select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(f"A partition does not hold what the frame's dtypes say: {reason(error)}") from None
    return function(number, numbered(_held_rows(table, schema.names, rows), begin))


def with_gaps(batch: ArrowTable, missing_texts: Sequence[str]) -> ArrowTable:
    """Empty blank cells, and those with a text that stands for a missing value; ids are read before: NA may be one."""
    if not missing_texts:
        return batch
    texts = pa.array(missing_texts, pa.string())
    for place, cells in enumerate(batch.columns):
        if not pa.types.is_string(cells.type):
            continue
        missing = pc.or_kleene(pc.is_in(cells, value_set=texts), pc.utf8_is_space(cells))
        if pc.any(missing).as_py():
            emptied = pc.if_else(missing, pa.scalar(None, pa.string()), cells)
            batch = batch.set_column(place, batch.schema.names[place], emptied)
    return batch


def numbered(batches: Iterable[ArrowTable], begin: int = 0) -> Batches:
    """Yield batches that have rows, with the number of the first row of each."""
    for batch in batches:
        if batch.num_rows:
            yield begin, batch
            begin += batch.num_rows


def batch_rows(width: int) -> int:
    """Return the number of rows of a batch that becomes so many features."""
    return max(min(BATCH_ROWS, _BATCH_NUMBERS // max(width, 1)), 1)


def open_table(
    source: Location | Frame, sheet: str | None = None, skip_rows: int | None = None, embedding: Location | None = None
) -> Table:
    """Open a file, a folder of Parquet files, or a frame; by default the first sheet."""
    if is_location(source):
        table = _open_file(str(source), sheet, skip_rows)
    elif sheet is not None or skip_rows is not None:
        raise InputError("`sheet` and `skip_rows` are for files; a frame has its columns already. Leave them out.")
    elif is_dask(source) and embedding is not None:
        raise InputError("`embedding` goes with a table on this machine; join the vectors to a Dask frame instead.")
    else:
        table = DaskTable.open(source) if is_dask(source) else _held("the table", "frame", as_arrow(source))
    return table if embedding is None else with_embedding(table, embedding)


def _open_file(path: str, sheet: str | None, skip_rows: int | None) -> Table:
    name = "parquet" if Path(path).is_dir() else files.file_format(path, FORMATS)
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise InputError(f"{path} is neither a file nor a folder: a table is read more than once. Copy it to a file.")
    if (sheet is not None and name != "xlsx") or (skip_rows is not None and name not in TEXT_FORMATS):
        raise InputError(f"{path}: `sheet` is for workbooks (.xlsx), `skip_rows` for these and CSV. Leave them out.")
    if name == "parquet":
        return open_parquet(path)
    with _clear_errors(path):
        if name == "xlsx":
            found = read_workbook(path, sheet, skip_rows)
            shown = f"{path}, sheet {quoted(found.sheet)}" if found.sheet else path
            notes = {"above": found.place - 1, "sheet": found.sheet}
            table = _held(shown, name, sheet_table(found, MISSING_TEXTS))
            where = partial(in_row, above=found.place)
            return replace(table, notes=notes, where=where, missing_texts=MISSING_TEXTS)
        if name == "jsonl":
            types = _json_types(path)
            return Table(path, name, types, partial(_json_rows, path, types), where=partial(_line, path, "", 0))
        with open_bytes(path) as file:
            first = list(islice(iter(partial(file.readline, _BLOCK_BYTES), b""), files.HEAD_LINES))
        if not b"".join(first).strip():
            raise InputError(f"{path} is empty. Its first line must name the columns.")
        encoding = files.encoding_of(path, files.blocks_of(path))
        lines = io.StringIO(b"".join(first).decode(encoding), newline="")
        mark, above, end, names = files.text_head(list(lines), name, skip_rows)
        _check_quotes(path, mark, skip_rows or 0)
    check_repeated(path, names)
    types = dict.fromkeys(names, pa.string())
    read = partial(_text_rows, path, encoding, mark, end, tuple(names))
    notes = {"above": above, "encoding": encoding if encoding == files.WINDOWS else None}
    where = partial(_line, path, mark, end)
    return Table(path, name, types, read, mark=mark, missing_texts=MISSING_TEXTS, notes=notes, where=where)


def read_whole(source: Location | Frame, embedding: Location | None = None) -> ArrowTable:
    """Read a whole table, with the vectors of its rows if there are any."""
    table = open_table(source, embedding=embedding)
    empty = pa.schema(list(table.types.items())).empty_table()
    batches = [pa.Table.from_batches([batch]) for _, batch in table.batches(list(table.types))]
    return pa.concat_tables([empty, *batches], promote_options="permissive")


def _held(name: str, file_format: str, table: ArrowTable) -> Table:
    check_repeated(name, table.column_names)
    types, index = split_index(table.schema)
    return Table(name, file_format, types, partial(_held_rows, table), table.num_rows, index=index)


def split_index(schema: Any) -> tuple[dict[str, ArrowType], tuple[str, ...]]:
    """Return the types of all columns but an index without a name, and the columns that pandas noted as its index."""
    noted: Any = ()
    with suppress(TypeError, KeyError, ValueError):
        noted = list(loads(schema.metadata[b"pandas"])["index_columns"])
    index = tuple(name for name in schema.names if name in noted or _UNNAMED_INDEX.fullmatch(name))
    types = zip(schema.names, schema.types, strict=True)
    return {name: dtype for name, dtype in types if not _UNNAMED_INDEX.fullmatch(name)}, index


def _held_rows(table: ArrowTable, columns: Sequence[str], rows: int) -> Iterator[ArrowTable]:
    return iter(table.select(columns).combine_chunks().to_batches(rows))


def _json_rows(path: str, types: Mapping[str, ArrowType], columns: Sequence[str], rows: int) -> Iterator[ArrowTable]:
    """Read columns of known types, or all columns where none is named."""
    wanted = pa.struct([(name, types[name]) for name in columns]) if columns else None
    with _clear_errors(path), open_bytes(path) as file:
        objects = (_json_object(path, number, line) for number, line in enumerate(file, 1) if line.strip())
        while batch := list(islice(objects, rows)):
            yield pa.RecordBatch.from_struct_array(pa.array(batch, wanted))


def _json_object(path: str, number: int, line: bytes) -> dict[str, object]:
    text = files.decoded(path, line, f", line {number:,},")
    with suppress(ValueError, RecursionError):
        if isinstance(cells := loads(text, object_pairs_hook=files.with_single_keys), dict):
            return cells
    raise InputError(
        f"{path}, line {number:,}: {quoted(text.strip())} is not a JSON object, or has a key twice. Each line must be "
        'one, such as {"id": "p1", "height": 1.5}; remove the others.'
    )


def _text_rows(
    path: str, encoding: str, mark: str, head: int, names: tuple[str, ...], columns: Sequence[str], rows: int
) -> Iterator[ArrowTable]:
    """Read the rows below the header, which is the last of the first ``head`` lines."""
    arrow = require("pyarrow.csv", "files")
    with open_bytes(path) as file:
        # pyarrow reads in threads, which abort at the end of a program if they need a Python file.
        if encoding == files.WINDOWS:
            # What a spreadsheet wrote fits into memory.
            stream = pa.BufferReader(file.read().decode(encoding).encode())
        else:
            stream = pa.OSFile(path)
            stream = pa.CompressedInputStream(stream, "gzip") if isinstance(file, gzip.GzipFile) else stream
    with _clear_errors(path), stream:
        batches = arrow.open_csv(
            stream,
            # With several threads an error does not tell its row.
            read_options=arrow.ReadOptions(
                use_threads=False, block_size=_BLOCK_BYTES, skip_rows=head, column_names=names
            ),
            parse_options=arrow.ParseOptions(delimiter=mark, newlines_in_values=True),
            convert_options=arrow.ConvertOptions(
                null_values=("",),
                strings_can_be_null=True,
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=list(columns),
            ),
        )
        for block in batches:
            yield from (block[first : first + rows] for first in range(0, block.num_rows, rows))


def _check_quotes(path: str, mark: str, above: int) -> None:
    """Refuse a quote that is left open, below so many lines."""
    with open_bytes(path) as file:
        if not any(b'"' in block for block in iter(partial(file.read, _BLOCK_BYTES), b"")):
            return
    with open_bytes(path) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
        files.check_quotes(path, islice(lines, above, None), mark, above)


def _line(path: str, mark: str, head: int, row: int) -> str:
    """Return the line on which a row ends, where ``head`` lines are above the first."""
    with open_bytes(path) as file:
        lines = islice(io.TextIOWrapper(file, "utf-8-sig", "replace", newline=""), head, None)
        rows = csv.reader(lines, delimiter=mark or "\0", quoting=csv.QUOTE_MINIMAL if mark else csv.QUOTE_NONE)
        for _ in islice(filter(None, rows), row + 1):
            pass
    return f"line {head + rows.line_num:,}"


@contextmanager
def _clear_errors(path: Location) -> Iterator[None]:
    """Turn what gzip, csv and pyarrow raise on a damaged file into an error of ours."""
    try:
        with refuse_damaged(path):
            yield
    except SdulearnError:
        raise
    except OSError as error:
        # pyarrow's words for a zipped file.
        if re.search("compressed|inflate", str(error)):
            raise InputError(f"{path} is cut off or damaged ({error}). Copy it again.") from None
        raise files.cannot_open(path, error) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        if "UTF8" in str(error):
            raise files.not_utf8(path) from None
        ragged = (
            ". A line must have as many cells as the header: put cells that contain the delimiter into quotes. If the "
            "header is further down, say with `skip_rows` how many lines are above it."
        )
        advice = ragged if "columns, got" in str(error) else ""
        raise InputError(f"{path} cannot be read: {reason(error)}{advice}") from None
    except (csv.Error, KeyError, OverflowError, UnicodeEncodeError) as error:
        raise InputError(f"{path} cannot be read: {reason(error)}. It seems to be cut off or damaged.") from None


def parquet_files(path: Location) -> list[Path]:
    """Return a file, or the files in a folder but for names that begin with . or _."""
    folder = Path(path)
    if not folder.is_dir():
        return [folder]
    found = sorted(
        file for file in folder.rglob("*") if file.suffix.lower() in files.ENDINGS["parquet"] and file.is_file()
    )
    shown = [file for file in found if not any(part[0] in "._" for part in file.relative_to(folder).parts)]
    if not shown:
        raise InputError(f"The folder {path} has no .parquet files.")
    return shown


def open_parquet(path: Location) -> Table:
    """Open a Parquet file, or a folder of files whose columns have the same names and kinds."""
    types: dict[str, ArrowType] = {}
    index: list[tuple[str, ...]] = []
    begins: dict[int, str] = {}  # names of the files by the number of their first row
    n_rows = 0
    paths = parquet_files(path)
    for file in paths:
        with _clear_errors(file), _opened(file) as opened:
            check_repeated(str(file), opened.schema_arrow.names)
            own, noted = split_index(opened.schema_arrow)
            _join_types(file, types, own)
            begins[n_rows] = file.name
            n_rows += opened.metadata.num_rows
        index.append(noted)
    # An index without a name can be read if all files have it.
    noted_names = dict.fromkeys(name for noted in index for name in noted)
    kept = tuple(name for name in noted_names if name in types or all(name in noted for noted in index))
    where = partial(_in_file, begins) if len(begins) > 1 else in_row
    return Table(str(path), "parquet", types, partial(_parquet_rows, paths), n_rows, where=where, index=kept)


def _parquet_rows(paths: Sequence[Path], columns: Sequence[str], rows: int) -> Iterator[ArrowTable]:
    for path in paths:
        with _clear_errors(path), _opened(path) as file:
            yield from file.iter_batches(rows, columns=list(columns))


def _in_file(begins: Mapping[int, str], row: int) -> str:
    begin = max(first for first in begins if first <= row)
    return f"{in_row(row - begin)} of {begins[begin]}"


def _opened(path: Path) -> Any:
    return require("pyarrow.parquet", "files").ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES)


def _join_types(file: Path, types: dict[str, ArrowType], own: Mapping[str, ArrowType]) -> None:
    """Add the columns of a file; a column that is empty in one file has its type from another."""
    if types and (odd := set(types) ^ set(own)):
        what = (
            f"{file} does not have the same columns as the files before it: {quoted(min(odd))} is only in one of them"
        )
        raise InputError(f"{what}. Keep other tables elsewhere.")
    for name, dtype in own.items():
        known = types.setdefault(name, dtype)
        if pa.types.is_null(known):
            types[name] = dtype
        elif not pa.types.is_null(dtype) and kind_of(dtype) != kind_of(known):
            kinds = f"{shortened(str(dtype))}, but {shortened(str(known))} in the files before it"
            raise InputError(f"{file}: column {quoted(name)} is {kinds}. Write it alike in all files.")


def _json_types(path: str) -> dict[str, ArrowType]:
    """Return the type of each column, over all rows."""
    found = pa.schema([])
    for batch in _json_rows(path, {}, (), _JSON_LINES):
        found = pa.unify_schemas([found, batch.schema], promote_options="permissive")
    if not found.names:
        raise InputError(f"{path} is empty. It needs one JSON object per line.")
    return dict(zip(found.names, found.types, strict=True))


def with_embedding(table: Table, path: Location) -> Table:
    """Add vectors to a table as columns: row by row, or by ids that both have."""
    vectors, ids = _read_vectors(path)
    names = [f"embedding {k}" for k in range(1, vectors.shape[1] + 1)]
    if both := [name for name in names if name in table.types]:
        raise InputError(f"{table.name} has a column {quoted(both[0])}, as the vectors of {path} are named. Rename it.")
    shared = [name for name in ids if name in table.types]
    if len(shared) > 1:
        raise InputError(f"{path} and {table.name} share {len(shared)} columns that may contain ids. Keep one of them.")
    if shared and len(ids[shared[0]].unique()) < len(vectors):
        raise InputError(f"{path}: an id appears twice in column {quoted(shared[0])}. Keep one vector for each.")
    # Some column is always read: it may hold the ids of the vectors.
    key = shared[0] if shared else next(iter(table.types))

    def read(columns: Sequence[str], rows: int) -> Iterator[ArrowTable]:
        own = [name for name in columns if name in table.types]
        end = 0
        for begin, batch in numbered(table.read(list(dict.fromkeys([*own, key])), rows)):
            end = begin + batch.num_rows
            place = find_ids(batch[key], ids[key]) if shared else np.arange(begin, end)
            if (missing := (place < 0) | (place >= len(vectors))).any():
                first = int(np.argmax(missing))
                row = quoted(str(batch[key][first])) if shared else table.where(begin + first)
                raise InputError(f"{path} has no vector for {row} of {table.name}. Compute one for each row.")
            made = dict(zip(names, np.asarray(vectors[place], dtype=np.float64).T, strict=True))
            cells = {name: batch[name] if name in own else pa.array(made[name]) for name in columns}
            yield pa.RecordBatch.from_pydict(cells)
        if not shared and end < len(vectors):
            raise InputError(
                f"{table.name} has {end:,} rows and {path} {len(vectors):,} vectors, which go together row by row. "
                "Compute one for each row, or give a .parquet file with a column of ids that the table has too."
            )

    types = {**table.types, **dict.fromkeys(names, pa.float64())}
    return replace(table, types=types, read=read, together=tuple(names))


def _read_vectors(path: Location) -> tuple[NDArray[Any], dict[str, ArrowColumn]]:
    """Read vectors, one per row, and the columns of the file that may hold ids, as texts."""
    ids: dict[str, ArrowColumn] = {}
    if files.file_format(path, ("npy", "parquet")) == "npy":
        try:
            vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as error:
            raise files.cannot_open(path, error) from None
        except (ValueError, EOFError) as error:
            raise InputError(f"{path} cannot be read as an array of numbers: {reason(error)}") from None
    else:
        vectors, ids = _split_vectors(read_whole(path))
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.size:
        raise InputError(f"{path} contains {vectors.dtype} of shape {vectors.shape}; vectors are rows of numbers.")
    return vectors, ids


def _split_vectors(table: ArrowTable) -> tuple[NDArray[Any], dict[str, ArrowColumn]]:
    """Split a table into vectors, of floats or lists of them, and columns that may hold ids."""
    are_lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    blocks = []
    ids = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_floating(column.type):
            blocks.append(np.asarray(column, dtype=np.float64)[:, None])
        elif any(is_list(column.type) for is_list in are_lists):
            if len(pc.list_value_length(column).unique()) != 1 or column.null_count:
                raise InputError(f"Column {quoted(name)} of the vectors does not contain lists of one length.")
            blocks.append(np.asarray(column.flatten(), dtype=np.float64).reshape(len(column), -1))
        elif may_hold_ids(name, column.type):
            ids[name] = id_texts(column)
    return np.hstack(blocks) if blocks else np.empty((0, 0)), ids
