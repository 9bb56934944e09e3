"""Columns of a table and the features they become: found once in training, used the same way ever after.

A number or true/false column becomes one feature, a text column one feature a category. What must
be known of a column to decide that is a sum over its rows, so it is found alike in a table in
memory and in one that streams by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import InputError, listed, quoted, shortened
from sdulearn.extras import require
from sdulearn.io.files import Location, as_text
from sdulearn.number_texts import NumberText, parse_numbers
from sdulearn.types import Array, ArrowColumn, ArrowTable, ArrowType, Between, Codes, Frame

Kind: TypeAlias = Literal["number", "boolean", "category"]
NUMBER: Kind = "number"
BOOLEAN: Kind = "boolean"
CATEGORY: Kind = "category"
# Nobody wants a feature for each of so many texts; beyond it they are no longer told apart.
MANY_TEXTS = 100_000


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str  # its name
    kind: Kind  # what it holds
    categories: tuple[str, ...] = ()  # the categories, each a feature; empty unless the kind is "category"
    fill: float | str | None = None  # what stands in for a missing value; None refuses it
    text: NumberText | None = None  # how numbers are spelled where a file has them as texts

    def __post_init__(self) -> None:
        if bool(self.categories) != (self.kind == CATEGORY) or len(set(self.categories)) != len(self.categories):
            raise InputError(f"The categories of column {quoted(self.name)} are none, or two are alike.")
        if self.fill is not None and isinstance(self.fill, str) != (self.kind == CATEGORY):
            raise InputError(f"Column {quoted(self.name)} is not filled with a value of its kind.")

    @property
    def feature_names(self) -> list[str]:
        """Names of the features it becomes."""
        return [f"{self.name}={c}" for c in self.categories] if self.kind == CATEGORY else [self.name]


@dataclass(frozen=True)
class ColumnLayout:
    """How a table with named columns becomes a matrix."""

    columns: tuple[Column, ...]
    id_column: str | None = None
    kind: Literal["columns"] = "columns"

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len({*names, self.id_column}) != len(names) + 1:
            raise InputError("Two columns have one name.")

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
    """An svmlight file, or a sparse matrix: so many features, the first one numbered ``first``."""

    width: Annotated[int, Between(0, 2**48)]
    first: Literal[0, 1] = 1
    id_column: None = None
    kind: Literal["sparse"] = "sparse"

    @property
    def feature_names(self) -> list[str]:
        """The features' numbers."""
        return [str(k) for k in range(self.first, self.first + self.width)]


Layout = ColumnLayout | SparseLayout


@dataclass(frozen=True)
class ColumnSummary:
    """What the rows of a column add up to; ``+`` joins two stretches of rows."""

    rows: int  # rows, and how many of them have no value
    gaps: int
    total: float = 0.0  # sum of the numbers
    # how often each text occurs, up to ``MANY_TEXTS`` different ones
    texts: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        texts = self.texts if len(self.texts) > MANY_TEXTS else self.texts + other.texts
        return ColumnSummary(self.rows + other.rows, self.gaps + other.gaps, self.total + other.total, texts)


def as_arrow(frame: Frame) -> ArrowTable:
    """A pandas, polars or pyarrow frame as a pyarrow table."""
    pa = require("pyarrow", "files")
    try:
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise InputError(
            f"A table is a path or a pandas, polars or pyarrow frame; {type(frame).__name__} cannot be used as one "
            f"({error})."
        ) from None
    # polars hands over its texts in a type that few of Arrow's functions take.
    views = [field.name for field in table.schema if str(field.type) == "string_view"]
    for name in views:
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
    return table


def column_kinds(path: Location, types: Mapping[str, ArrowType]) -> dict[str, Kind]:
    """Kinds of the columns to learn from, or an error that names those of no known kind."""
    if not types:
        raise InputError(f"{path} has no columns to learn from.")
    kinds = {name: kind for name, dtype in types.items() if (kind := kind_of(dtype))}
    if strange := [_noted(name, shortened(str(dtype))) for name, dtype in types.items() if name not in kinds]:
        raise InputError(f"{path}: neither numbers nor text: {listed(strange)}. Leave them out with `drop`.")
    return kinds


def kind_of(dtype: ArrowType) -> Kind | None:
    """Number, boolean or category; None for all else."""
    types = require("pyarrow.types", "files")
    if types.is_boolean(dtype):
        return BOOLEAN
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype) or types.is_null(dtype):
        return NUMBER
    if types.is_dictionary(dtype):
        return CATEGORY if kind_of(dtype.value_type) == CATEGORY else None
    return CATEGORY if types.is_string(dtype) or types.is_large_string(dtype) else None


def summarise(table: ArrowTable, kinds: Mapping[str, str]) -> dict[str, ColumnSummary]:
    """The summary of each column of a table or batch."""
    return {name: _summary(table[name], kind) for name, kind in kinds.items()}


def add_summaries(found: Iterable[Mapping[str, ColumnSummary]]) -> dict[str, ColumnSummary]:
    """Column by column, the sum of several stretches of rows."""
    return reduce(lambda one, other: {name: one[name] + other[name] for name in one}, map(dict, found))


def _summary(values: ArrowColumn, kind: str) -> ColumnSummary:
    if kind == CATEGORY:
        pa = require("pyarrow", "files")
        texts, counts = (part.to_pylist() for part in values.cast(pa.string()).value_counts().flatten())
        found = Counter({text: n for text, n in zip(texts, counts, strict=True) if text is not None})
        return ColumnSummary(len(values), values.null_count, texts=found)
    floats = numbers(values)
    total = _sum(floats)
    if np.isfinite(total):
        return ColumnSummary(len(values), 0, total)
    return ColumnSummary(len(values), int(np.isnan(floats).sum()), _sum(floats[~np.isnan(floats)]))


def find_columns(
    path: Location, kinds: Mapping[str, Kind], found: Mapping[str, ColumnSummary], missing: str, max_categories: int
) -> tuple[Column, ...]:
    """The layout's columns, or an error that names every column in the way."""
    gaps = {name: summary.gaps for name, summary in found.items() if summary.gaps}
    if gaps and missing == "error":
        columns_with_gaps = listed([_noted(name, f"{count:,}") for name, count in gaps.items()])
        raise InputError(
            f"{path}: missing values in {columns_with_gaps}. Pass `missing='mean'` to put in the column's mean (most "
            "frequent text), or leave columns out with `drop`."
        )
    if empty := [name for name, count in gaps.items() if count == found[name].rows]:
        raise InputError(
            f"{path}: nothing but missing values in {listed(map(quoted, empty))}. Leave them out with `drop`."
        )
    columns = [_column(name, kinds[name], summary, missing == "mean") for name, summary in found.items()]
    large = [_noted(c.name, _number_of(c.categories)) for c in columns if len(c.categories) > max_categories]
    if large:
        raise InputError(
            f"{path}: text columns with more than {max_categories} different texts: {listed(large)}. Name the ids "
            "with `id_column`, leave columns out with `drop`, or raise `max_categories`."
        )
    return tuple(columns)


def _noted(name: str, note: str) -> str:
    return f"{quoted(name)} ({note})"


def _number_of(categories: tuple[str, ...]) -> str:
    return f"{len(categories):,}" if len(categories) <= MANY_TEXTS else f"more than {MANY_TEXTS:,}"


def _column(name: str, kind: Kind, summary: ColumnSummary, filled: bool) -> Column:
    if kind != CATEGORY:
        return Column(name, kind, fill=summary.total / (summary.rows - summary.gaps) if filled else None)
    usual = summary.texts.most_common(1)[0][0] if filled else None
    return Column(name, kind, tuple(sorted(summary.texts)), usual)


def encode(path: Location, layout: ColumnLayout, table: ArrowTable) -> tuple[Array, Counter[str]]:
    """The features of a table or batch, and how often a text was none of the known categories, by column.

    The matrix is stored column by column, as Arrow has it: that is several times faster than row by
    row.
    """
    features = np.zeros((layout.width, table.num_rows))
    unseen: Counter[str] = Counter()
    at = 0
    for column in layout.columns:
        block = features[at : at + len(column.feature_names)]
        if column.kind == CATEGORY:
            unseen[column.name] += _one_hot(path, column, table[column.name], block)
        else:
            _fill(path, column, _numbers_of(path, column, table[column.name]), block[0])
        at += len(block)
    return features.T, +unseen


def _numbers_of(path: Location, column: Column, values: ArrowColumn) -> NDArray[Any]:
    """The numbers of a column, which a text file may spell in its own way."""
    if kind_of(values.type) == CATEGORY:
        values = parse_numbers(path, column.name, values, column.text or NumberText())
    return numbers(values)


def _fill(path: Location, column: Column, values: NDArray[Any], feature: Array) -> None:
    feature[:] = values
    if np.isfinite(_sum(feature)):
        return
    gaps = np.isnan(feature)
    if gaps.any():
        _refuse_missing(path, column, int(gaps.sum()))
        feature[gaps] = float(column.fill or 0.0)
    if not np.isfinite(feature).all():
        raise InputError(f"{path}: column {quoted(column.name)} holds infinite values. Replace them, or leave it out.")


def _one_hot(path: Location, column: Column, values: ArrowColumn, block: Array) -> int:
    """Write ones into the block; give back how many texts are no known category."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    values = values.cast(pa.string())
    if values.null_count:
        _refuse_missing(path, column, values.null_count)
        values = pc.fill_null(values, column.fill)
    place = _to_numpy(pc.fill_null(pc.index_in(values, value_set=pa.array(column.categories, pa.string())), -1))
    known = np.flatnonzero(place >= 0)
    block[place[known], known] = 1.0
    return len(place) - len(known)


def _refuse_missing(path: Location, column: Column, count: int) -> None:
    if column.fill is None:
        raise InputError(
            f"{path}: {count:,} missing values in column {quoted(column.name)}, and the model was fitted without a "
            "stand-in for them. Fill them in, or fit again with `missing='mean'`."
        )


def numbers(values: ArrowColumn) -> NDArray[Any]:
    """A number or true/false column as numbers; as floats, NaN where one is missing, unless all are there."""
    pa = require("pyarrow", "files")
    if values.null_count == 0 and (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        return _to_numpy(values)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return _to_numpy(values.cast(pa.float64(), safe=False))


def _sum(values: NDArray[Any]) -> float:
    """Not finite where a value is missing or infinite; the cheapest way to know that none is."""
    with np.errstate(invalid="ignore", over="ignore"):
        return float(values.sum(dtype=np.float64))


def _to_numpy(values: ArrowColumn) -> NDArray[Any]:
    return np.asarray(values.to_numpy(zero_copy_only=False))


def pair_codes(path: Location, name: str, values: ArrowColumn) -> Codes:
    """A column of pair codes."""
    if values.null_count:
        raise InputError(
            f"{path}: column {quoted(name)} lacks values; every row needs a pair code. Put in 0 for unlabeled rows."
        )
    codes = numbers(values) if kind_of(values.type) == NUMBER else np.array([np.nan])
    if not (np.isfinite(codes).all() and (codes == np.rint(codes)).all()):
        raise InputError(
            f"{path}: column {_noted(name, str(values.type))} does not hold pair codes. They are whole numbers: +k at "
            "both ends of similar pair k, -k at both ends of dissimilar pair k, 0 for unlabeled rows."
        )
    return codes.astype(np.int64)


def point_numbers(path: Location, name: str, values: ArrowColumn) -> Codes:
    """A column that says which point each row shows."""
    points = np.array([np.nan])
    if kind_of(values.type) == NUMBER and not values.null_count:
        points = numbers(values)
    if not (np.isfinite(points) & (points >= 0) & (points == np.rint(points))).all():
        raise InputError(
            f"{path}: column {_noted(name, str(values.type))} does not say which point each row shows. Points are "
            "whole numbers from 0 on, one on every row; rows with equal numbers show the same point. Number what it "
            "names."
        )
    return points.astype(np.int64)


def id_texts(values: ArrowColumn) -> ArrowColumn:
    """Ids as an Arrow array of texts, spelled as :func:`sdulearn.io.answers.as_text` spells them."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    if pa.types.is_integer(values.type) and not values.null_count:
        return values.cast(pa.string())
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return pc.fill_null(pc.utf8_trim_whitespace(values), "")
    return pa.array([as_text(value) for value in values.to_pylist()], pa.string())
