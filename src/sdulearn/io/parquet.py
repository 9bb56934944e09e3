"""Parquet files and folders of them, read by row group: a table of any size, never in memory whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.columns import ColumnLayout, encode, kind_of, pair_codes
from sdulearn.errors import InputError, quoted, reason, shortened
from sdulearn.extras import require
from sdulearn.io.files import Location, cannot_open
from sdulearn.types import Array, ArrowTable, ArrowType, Codes, Mask

BATCH_ROWS = 65_536
# A wide table comes in fewer rows at a time: so many numbers at most.
_BATCH_NUMBERS = 1 << 22
ENDINGS = (".parquet", ".pq")
# Column by column through a small window: a row group of many megabytes is never in memory whole.
_BUFFER_BYTES = 1 << 18


@dataclass(frozen=True)
class RowGroups:
    """Row groups of one file that follow each other; small ones are read together."""

    path: str
    numbers: tuple[int, ...]
    begin: int
    rows: int

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[ArrowTable]:
        """Record batches of so many rows, with some of the columns."""
        read = {"row_groups": list(self.numbers), "columns": list(columns), "use_threads": False}
        with _clear_errors(self.path), _opened(self.path) as file:
            yield from file.iter_batches(rows, **read)


@dataclass(frozen=True)
class ParquetTable:
    """The files of a table: types by column, and where its rows are."""

    path: str
    types: Mapping[str, ArrowType]
    groups: tuple[RowGroups, ...]
    n_rows: int


def parquet_files(path: Location) -> list[Path]:
    """The file itself, or the Parquet files under a folder, sorted; names that begin with . or _ do not count."""
    folder = Path(path)
    if not folder.is_dir():
        return [folder]
    found = sorted(file for file in folder.rglob("*") if file.suffix.lower() in ENDINGS and file.is_file())
    files = [file for file in found if not any(part[0] in "._" for part in file.relative_to(folder).parts)]
    if not files:
        raise InputError(f"The folder {path} holds no .parquet files.")
    return files


def open_parquet(path: Location) -> ParquetTable:
    """Read what the files say about themselves; they must have the same columns, of the same kinds."""
    types: dict[str, ArrowType] = {}
    groups: list[RowGroups] = []
    n_rows = 0
    for file in parquet_files(path):
        with _clear_errors(file), _opened(str(file.absolute())) as opened:
            _join_types(file, types, opened.schema_arrow)
            found = _row_groups(str(file.absolute()), opened.metadata, n_rows)
        groups += found
        n_rows += sum(group.rows for group in found)
    return ParquetTable(str(path), types, tuple(groups), n_rows)


def read_whole(path: Location) -> list[ArrowTable]:
    """Every file of the table as a pyarrow table."""
    parquet = require("pyarrow.parquet", "files")
    tables = []
    for file in parquet_files(path):
        with _clear_errors(file):
            tables.append(parquet.read_table(file, partitioning=None))
    return tables


def _opened(path: str) -> Any:
    return require("pyarrow.parquet", "files").ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES)


@contextmanager
def _clear_errors(path: Location) -> Iterator[None]:
    pa = require("pyarrow", "files")
    try:
        yield
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from None
    except OSError as error:
        raise cannot_open(path, error) from None


def _join_types(file: Path, types: dict[str, ArrowType], schema: Any) -> None:
    """Add a file's columns; a column that is empty in one file takes its type from another."""
    if repeated := [name for name, count in Counter(schema.names).items() if count > 1]:
        raise InputError(f"{file} has two columns named {quoted(repeated[0])}. Rename one of them.")
    if types and (odd := set(types) ^ set(schema.names)):
        raise InputError(
            f"{file} does not have the same columns as the files before it: {quoted(sorted(odd)[0])} is only in one of "
            "them. All files of a folder must have the same columns; keep other tables elsewhere."
        )
    is_null = require("pyarrow.types", "files").is_null
    for name, dtype in zip(schema.names, schema.types, strict=True):
        known = types.setdefault(name, dtype)
        if is_null(known):
            types[name] = dtype
        elif not is_null(dtype) and kind_of(dtype) != kind_of(known):
            raise InputError(
                f"{file}: column {quoted(name)} is {shortened(str(dtype))}, but {shortened(str(known))} in the files "
                "before it. Write it alike in all files."
            )


def _row_groups(path: str, metadata: Any, begin: int) -> list[RowGroups]:
    """The row groups of a file, small ones joined up to a batch."""
    found: list[RowGroups] = []
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        if found and found[-1].rows + rows <= BATCH_ROWS:
            last = found.pop()
            found.append(RowGroups(path, (*last.numbers, number), last.begin, last.rows + rows))
        else:
            found.append(RowGroups(path, (number,), begin, rows))
        begin += rows
    return found


def batch_rows(width: int) -> int:
    """Rows of a batch that becomes so many features."""
    return max(min(BATCH_ROWS, _BATCH_NUMBERS // max(width, 1)), 1)


@dataclass(frozen=True)
class RawRows:
    """A part whose blocks are record batches as they stand in the file, with the numbers of their rows.

    ``width`` is the number of features they become.
    """

    group: RowGroups
    columns: tuple[str, ...]
    width: int

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.group.rows // batch_rows(self.width))

    def __call__(self) -> Iterator[tuple[ArrowTable, Codes, None]]:
        """Batch by batch."""
        begin = self.group.begin
        for batch in self.group.batches(self.columns, batch_rows(self.width)):
            yield batch, np.arange(begin, begin + batch.num_rows), None
            begin += batch.num_rows


@dataclass(frozen=True)
class FeatureRows:
    """A part whose blocks are standardised features with pair codes: those of a column, or 0.

    ``keep``, a function of row numbers and codes, says which rows to use.
    """

    group: RowGroups
    layout: ColumnLayout
    mean: Array
    scale: Array
    codes: str | None = None
    keep: Callable[[Codes, Codes], Mask] | None = None

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self._raw().n_blocks

    def _raw(self) -> RawRows:
        names = [column.name for column in self.layout.columns]
        return RawRows(self.group, (*names, *([self.codes] if self.codes else [])), self.layout.width)

    def __call__(self) -> Iterator[tuple[Array, Codes, None]]:
        """Batch by batch."""
        for batch, rows, _ in self._raw()():
            y = pair_codes(self.group.path, self.codes, batch[self.codes]) if self.codes else np.zeros_like(rows)
            X, _ = encode(self.group.path, self.layout, batch)
            X -= self.mean
            X /= self.scale
            if self.keep is not None:
                kept = self.keep(rows, y)
                X = X[kept]
                y = y[kept]
            if len(y):
                yield X, y, None
