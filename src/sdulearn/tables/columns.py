"""Columns of a table and the features they become: decided in training, and kept with the model.

A column of numbers or of true and false becomes one feature; a date one, and its place in the year and the week where
that may help; a column of categories one feature per category; texts and pictures several components
(:mod:`sdulearn.tables.features`). :mod:`sdulearn.tables.decide` decides which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import InputError, listed, pa, pc, quoted, shortened
from sdulearn.io.files import is_location
from sdulearn.parts import is_dask
from sdulearn.tables.encoders import EncodedImages
from sdulearn.tables.features import ImageFeatures, TextFeatures
from sdulearn.tables.spelling import FALSE, TRUE, Cycle, Spelling, read_texts, trimmed, with_cycles
from sdulearn.tables.text_models import EmbeddedTexts
from sdulearn.types import Array, ArrowColumn, ArrowTable, ArrowType, Count, Estimator, Frame, Mask

Transformer: TypeAlias = TextFeatures | EmbeddedTexts | ImageFeatures | EncodedImages
Kind: TypeAlias = Literal["number", "boolean", "date", "category", "text", "image"]

# Says where a row, counted from 0, is in its file, for example "line 7".
Where: TypeAlias = Callable[[int], str]


_SINGULAR = (("rows have", "row has"), ("were", "was"), ("texts in", "text in"), ("images in", "image in"),
             ("values are", "value is"), ("have no", "has no"), ("and count", "and counts"))  # fmt: skip


def in_row(number: int, above: int = 0) -> str:
    """Return the number of a row, from 1, below so many others."""
    return f"row {above + number + 1:,}"


class Problem(Exception):
    """A column that cannot be used: what is wrong, the column with a note, and the remedy."""


def refuse(name: str, problems: Iterable[Problem]) -> None:
    """Raise one error about all problems of a table, if there are any."""
    columns: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        what, column, remedy = problem.args
        columns.setdefault((what, remedy), []).append(column)
    messages = [f"{what} {listed(names)}. {remedy}" for (what, remedy), names in columns.items()]
    if len(messages) > 1:
        messages = [f"{len(messages)} problems.", *(f"({k}) {text}" for k, text in enumerate(messages, 1))]
    if messages:
        raise InputError(f"{name}: {' '.join(messages)}")


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()  # one feature each; empty unless the kind is "category"
    fill: float | str | None = None  # replaces missing values; None where they are refused
    text: Spelling | None = None  # how texts spell its numbers or dates, unless plainly
    n_gaps: Count = 0  # missing values in training
    marked: bool = False  # whether a feature says where a number is missing
    cycles: tuple[Cycle, ...] = ()  # cycles in which the place of a date is a feature

    @property
    def features(self) -> list[str]:
        """Names of the features it becomes."""
        if self.kind == "category":
            return [f"{self.name}={text}" if text else f"{self.name} is missing" for text in self.categories]
        waves = [f"{self.name} ({cycle}, {wave})" for cycle in self.cycles for wave in ("sine", "cosine")]
        return [self.name, *waves, *[f"{self.name} is missing"] * self.marked]


@dataclass(frozen=True, eq=False)
class Columns:
    """How a table becomes standardised features."""

    columns: tuple[Column, ...]
    id_column: str | None
    # (n_features,), mean and standard deviation of each feature in training; 1 for a constant one
    mean: Array
    scale: Array
    # transformers of columns of texts and pictures, and the folder that pictures are in
    transformers: Mapping[str, Transformer] = field(default_factory=dict)
    image_root: Path = field(default_factory=Path)
    keep_gaps: bool = False  # whether missing numbers stay NaN, for trees
    encoder: Estimator | None = None  # of standardised features, if an estimator learns from its components instead

    @cached_property
    def feature_names(self) -> list[str]:
        """Name of each feature."""
        made = {name: transformer.names(name) for name, transformer in self.transformers.items()}
        return [name for column in self.columns for name in made.get(column.name, column.features)]

    @property
    def width(self) -> int:
        """Number of features."""
        return self.parts[-1][1].stop if self.columns else 0

    @cached_property
    def parts(self) -> list[tuple[Column, slice]]:
        """Each column with the slice of its features."""
        made = {name: transformer.width for name, transformer in self.transformers.items()}
        ends = np.cumsum([made.get(column.name) or len(column.features) for column in self.columns]).tolist()
        return list(zip(self.columns, map(slice, [0, *ends], ends), strict=True))

    @property
    def n_inputs(self) -> int:
        """Number of features that an estimator learns from."""
        return self.width if self.encoder is None else len(self.encoder.components_)

    @property
    def input_names(self) -> list[str]:
        """Name of each feature that an estimator learns from."""
        return self.feature_names if self.encoder is None else [f"component {k + 1}" for k in range(self.n_inputs)]

    def standardised(self, X: Array) -> Array:
        """Standardise features."""
        return (X - self.mean) / self.scale

    def scaled(self, X: Array) -> Array:
        """Return what an estimator learns from: standardised features, or what the encoder makes of them."""
        Z = self.standardised(X)
        return Z if self.encoder is None or not len(Z) else self.encoder.transform(Z).astype(np.float64)

    def with_text_model(self, model: str | None) -> Columns:
        """Return the columns with the text model that the user names now, if any."""
        if model is None:
            return self
        texts = {name: made for name, made in self.transformers.items() if isinstance(made, EmbeddedTexts)}
        if not texts:
            raise InputError("This model was fitted without `text_model`, and predicts without one. Leave it out.")
        again = {name: replace(made, model=model, may_download=True) for name, made in texts.items()}
        return replace(self, transformers={**self.transformers, **again})

    def needed(self, name: str, present: Sequence[str], id_column: str | None = None) -> list[str]:
        """Return the columns to read, ids included; raise where the table lacks one."""
        wanted = [column.name for column in self.columns]
        if absent := [column for column in wanted if column not in present]:
            hint = f"Add it, or rename the one that holds it; its columns: {listed(map(shortened, present))}."
            if absent[0].startswith("embedding "):
                hint = "Give the vectors of its rows with `embedding`."
            raise InputError(f"{name} lacks the column {listed(map(quoted, absent), 5)} that the model needs. {hint}")
        return wanted if not id_column or id_column in wanted else [*wanted, id_column]

    def encode(self, name: str, batch: ArrowTable, where: Where = in_row) -> tuple[Array, Counter[str]]:
        """Return unscaled features of a batch, and how many values are new since training."""
        # Stored by column, as in Arrow, which is several times faster.
        features = np.zeros((self.width, batch.num_rows))
        unseen: Counter[str] = Counter()
        problems = []
        for column, part in self.parts:
            values = batch[column.name]
            try:
                if column.name in self.transformers:
                    features[part], unseen[column.name] = self._transformed(name, column, values)
                elif column.kind == "category":
                    unseen[column.name] = _one_hot(column, values, features[part], where)
                else:
                    features[part.start] = _read_numbers(column, values, where)
                    unseen[column.name] = self._expand(column, part, features[part], where)
            except Problem as problem:
                problems.append(problem)
        refuse(name, problems)
        return features.T, +unseen

    def _transformed(self, name: str, column: Column, values: ArrowColumn) -> tuple[Array, int]:
        """Return features of texts or pictures, and how many of them are unknown or unreadable."""
        transformer = self.transformers[column.name]
        cells = values.cast(pa.string()).to_pylist()
        if transformer.kind == "text":
            X, n_unknown = transformer.transform(cells)
        else:
            where = f"{name}: column {quoted(column.name)}"
            X, n_unknown = transformer.transform(cells, where, self.image_root, column.fill is None)
        return X.T, n_unknown

    def _expand(self, column: Column, part: slice, block: Array, where: Where = in_row) -> int:
        """Compute further features of a column from its first; return how many gaps are new."""
        waves = 1 + 2 * len(column.cycles)
        if column.cycles:
            block[:waves] = with_cycles(block[0], column.cycles)
        if np.isfinite(block[0]).all():
            return 0
        if (too_large := np.isinf(block[0])).any():
            raise infinite(column.name, where(int(too_large.argmax())))
        gaps = np.isnan(block[0])
        _refuse_missing(column, gaps, where)
        block[waves:] = gaps
        if not self.keep_gaps:
            block[0, gaps] = column.fill
            block[1:waves, gaps] = self.mean[part][1:waves, None]
        return 0 if column.n_gaps else int(gaps.sum())

    def filled(self, X: Array) -> Array:
        """Fill gaps that were kept for trees."""
        if not self.keep_gaps:
            return X
        fills = self.mean.copy()
        for column, part in self.parts:
            if column.kind in ("number", "boolean", "date"):
                fills[part.start] = column.fill
        return np.where(np.isnan(X), fills, X)

    def values(self, X: Array) -> Array:
        """Return one number per column: NaN in a gap, place of a category or -1, row of a text."""
        by_column = X[:, [part.start for _, part in self.parts]]
        for k, (column, part) in enumerate(self.parts):
            if column.name in self.transformers:
                by_column[:, k] = np.arange(len(X))
            elif column.kind == "category":
                by_column[:, k] = np.where(X[:, part].max(axis=1) > 0.5, X[:, part].argmax(axis=1), -1)
            elif column.marked:
                by_column[X[:, part.stop - 1] > 0.5, k] = np.nan
        return by_column

    def rows(self, values: Array, X: Array) -> Array:
        """Return the standardised features of numbers that :meth:`values` gave for ``X``."""
        features = np.zeros((self.width, len(values)))
        for k, (column, part) in enumerate(self.parts):
            if column.name in self.transformers:
                features[part] = X[values[:, k].astype(np.intp), part].T
            elif column.kind == "category":
                features[part] = values[:, k] == np.arange(len(column.categories))[:, None]
            else:
                features[part.start] = values[:, k]
                self._expand(column, part, features[part])
        return self.scaled(features.T)

    def unseen_words(self, name: str, count: int) -> str:
        """Describe new cells or unreadable pictures of a column; "" stands for blank rows."""
        if not name:
            what = "rows have no value in the columns that are read, and were left out"
        elif name in self.transformers:
            what = self.transformers[name].unseen
        elif any(column.name == name and column.kind == "category" for column in self.columns):
            what = "texts in column {} did not occur in training and count as none of its categories"
        else:
            what = "values are missing in column {}, where none was in training, and count as the mean"
        for many, one in _SINGULAR if count == 1 else ():
            what = what.replace(many, one)
        return f"{count:,} {what.format(quoted(name))}"


def check_layout(layout: Columns) -> None:
    """Refuse columns of an untrusted file that do not fit together."""
    if layout.mean.shape != (layout.width,) or layout.scale.shape != (layout.width,):
        raise InputError("Columns and scales do not fit together.")
    if not (layout.scale > 0).all():
        raise InputError("A scale is not positive.")
    names = [column.name for column in layout.columns]
    if len({*names, layout.id_column}) != len(names) + 1:
        raise InputError("Two columns have one name.")
    for column in layout.columns:
        is_text = column.kind == "category"
        made = layout.transformers[column.name].kind if column.name in layout.transformers else None
        if made != (column.kind if column.kind in ("text", "image") else None):
            raise InputError(f"Column {quoted(column.name)} is not described as its kind needs it.")
        if bool(column.categories) != is_text or len(set(column.categories)) != len(column.categories):
            raise InputError(f"The categories of column {quoted(column.name)} are none, or two are alike.")
        if column.fill is not None and isinstance(column.fill, str) != is_text:
            raise InputError(f"Column {quoted(column.name)} is not filled with a value of its kind.")


def as_arrow(frame: Frame) -> ArrowTable:
    """Convert a pandas, polars or pyarrow frame to a pyarrow table."""
    if is_location(frame):
        remedy = "Read it first, or call sdulearn.workflow.predict_table(model, path)."
        raise InputError(f"{frame} is a file, and a frame is needed here. {remedy}")
    if is_dask(frame):
        raise InputError("A Dask frame is not in memory: call sdulearn.large.map_rows(model, frame), or compute() it.")
    try:
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        unusable = f"{type(frame).__name__} cannot be used as one ({error})."
        raise InputError(f"A table is a path or a pandas, polars or pyarrow frame; {unusable}") from None
    for place, name in enumerate(table.column_names):
        cells, dtype = table[name], table.schema.types[place]
        # polars stores texts in a type that few of Arrow's functions take.
        if str(dtype) == "string_view":
            table = table.set_column(place, name, cells.cast(pa.string()))
        elif pa.types.is_dictionary(dtype) and str(dtype.value_type) == "string_view":
            coded = [pa.DictionaryArray.from_arrays(k.indices, k.dictionary.cast(pa.string())) for k in cells.chunks]
            table = table.set_column(place, name, pa.chunked_array(coded, pa.dictionary(dtype.index_type, pa.string())))
    return table


def kind_of(dtype: ArrowType) -> Kind | None:
    """Return number, boolean, date or category for an Arrow type, or None."""
    types = pa.types
    if types.is_boolean(dtype):
        return "boolean"
    if types.is_date(dtype) or types.is_timestamp(dtype):
        return "date"
    numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_null, types.is_time, types.is_duration)
    if any(is_one(dtype) for is_one in numeric):
        return "number"
    is_coded = types.is_dictionary(dtype)
    text = dtype.value_type if is_coded else dtype
    # A frame's own categories may be whole numbers.
    is_text = types.is_string(text) or types.is_large_string(text) or (is_coded and types.is_integer(text))
    return "category" if is_text else None


def infinite(column: str, place: str) -> Problem:
    """Return the problem of a value that is not finite."""
    return Problem("infinite values in", noted(column, place), "Replace them, or leave the column out with `drop`.")


def noted(name: str, note: str) -> str:
    """Return the name of a column with a note."""
    return f"{quoted(name)} ({shortened(note, 120)})"


def _read_numbers(column: Column, values: ArrowColumn, where: Where) -> Array:
    """Return the numbers of a column, NaN in gaps, however texts spell them."""
    kind = kind_of(values.type)
    odd: Mask = np.zeros(1, dtype=bool)
    floats: Array = np.full(len(values), np.nan)
    if kind == "category" and column.kind == "boolean":
        place = pc.index_in(trimmed(values), value_set=pa.array((*FALSE, *TRUE)))
        odd = np.asarray(place.is_null()) & np.asarray(values.is_valid())
        floats = numbers(pc.greater_equal(place, len(FALSE)))
    elif kind == "category":
        floats, odd = read_texts(values, column.text or Spelling("y-m-d" if column.kind == "date" else "."))
    elif kind is None or (kind == "date") != (column.kind == "date"):
        odd = np.asarray(values.is_valid())
    else:
        floats = numbers(values)
    if odd.any():
        first = int(odd.argmax())
        note = f"{int(odd.sum()):,}, the first {quoted(str(values[first].as_py()))} in {where(first)}"
        held = {"number": "numbers", "boolean": "true or false", "date": "dates"}[column.kind]
        what = f"cells that are not {held}, as in training, in"
        raise Problem(what, noted(column.name, note), "Correct or empty these cells.")
    return floats


def _one_hot(column: Column, values: ArrowColumn, block: Array, where: Where) -> int:
    """Write ones into the block; return how many texts are not a known category."""
    values = values.cast(pa.string())
    n_known = 0
    if values.null_count:
        _refuse_missing(column, np.asarray(values.is_null()), where)
        # Gaps that occurred in training are not new.
        n_known = values.null_count if column.n_gaps and column.fill not in column.categories else 0
        values = pc.fill_null(values, column.fill)
    categories = pa.array(column.categories, pa.string())
    place = pc.index_in(values, value_set=categories)
    if place.null_count:
        place = pc.index_in(trimmed(values), value_set=categories)
    place = np.asarray(pc.fill_null(place, -1))
    known = np.flatnonzero(place >= 0)
    block[place[known], known] = 1.0
    return len(place) - len(known) - n_known


def _refuse_missing(column: Column, gaps: Mask, where: Where) -> None:
    if column.fill is None:
        raise Problem(
            "missing values, for which the model has no stand-in, in",
            noted(column.name, f"{int(gaps.sum()):,}, the first in {where(int(gaps.argmax()))}"),
            "Fill them in, or fit again without `missing='error'`.",
        )


def numbers(values: ArrowColumn) -> NDArray[Any]:
    """Return a column as numbers, dates and times as days; as floats if it has gaps (NaN)."""
    types = pa.types
    if values.null_count == 0 and (types.is_floating(values.type) or types.is_integer(values.type)):
        return np.asarray(values)
    if types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not types.is_temporal(values.type):
        return np.asarray(values.cast(pa.float64(), safe=False))
    if types.is_date(values.type):
        values = values.cast(pa.timestamp("us"))
    elif types.is_time(values.type):
        values = values.cast(pa.time64("us"))
    else:
        unit = pa.duration("us") if types.is_duration(values.type) else pa.timestamp("us", values.type.tz)
        values = values.cast(unit, safe=False)
    return np.asarray(values.cast(pa.int64()).cast(pa.float64(), safe=False)) / 86_400e6
