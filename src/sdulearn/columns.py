"""Columns of a table and the features they become: decided in training, kept ever after.

A number or true/false column becomes one feature, a column of categories one feature each, and texts and pictures
many together (:mod:`sdulearn.text_columns`, :mod:`sdulearn.image_columns`). What decides that, and standardises the
features, are sums over rows: they are the same for a table in memory and for one that streams by, in any order. In a
text file everything is text, so there the kind of a column is decided by all of its texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sdulearn.errors import InputError, listed, quoted, reason, require, shortened
from sdulearn.image_columns import ImageFeatures
from sdulearn.io.files import Location
from sdulearn.pairs import pair_checksum
from sdulearn.text_columns import TextFeatures
from sdulearn.types import Array, ArrowColumn, ArrowTable, ArrowType, Codes, Frame, Rows

Kind: TypeAlias = Literal["number", "boolean", "category", "text", "image"]
NUMBER: Kind = "number"
BOOLEAN: Kind = "boolean"
CATEGORY: Kind = "category"
TEXT: Kind = "text"
IMAGE: Kind = "image"
# Nobody wants a feature for each of so many texts; beyond it they are no longer counted one by one.
MANY_TEXTS = 100_000
# Numbers are counted one by one only where the first of them are few different ones.
_FIRST = 2_000
_FEW = 1_000
# Texts that stand for a missing number in a column of numbers.
_MARKS = frozenset(("-", "--", "---", "–", "—", ".", "..", "...", "*", "n.a.", "n/a", "na", "nan", "none", "null",
                    "nil", "missing", "unknown", "k.a.", "#n/a", "?"))  # fmt: skip
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?", re.ASCII)
# 1,234 may be a thousand and more, or one and a bit.
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+", re.ASCII)
_FALSE = ("false", "False", "FALSE", "0")
_TRUE = ("true", "True", "TRUE", "1")
# From this share of numbers on, a column of texts is taken for one of numbers with mistakes in it.
_NEARLY_ALL = 0.9
# A column of numbers that come in twos by chance has fewer of them than this.
_FEW_PAIRS = 5


@dataclass(frozen=True)
class NumberText:
    """How numbers are spelled in a column of texts."""

    decimal: Literal[".", ","] = "."  # the decimal mark
    marks: tuple[str, ...] = ()  # what stands for a missing number there, beside an empty cell


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str  # its name
    kind: Kind  # what it holds
    categories: tuple[str, ...] = ()  # each a feature; empty unless the kind is "category"
    fill: float | str | None = None  # what stands in for a missing value; None refuses it
    text: NumberText | None = None  # how texts spell its numbers, if not plainly


@dataclass(frozen=True, eq=False)
class Columns:
    """How a table with named columns, or a sparse matrix, becomes standardised features."""

    columns: tuple[Column, ...]
    id_column: str | None
    # (n_features,), mean and deviation of each feature in training; 1 for a constant one
    mean: Array
    scale: Array
    # the number of the first feature of a sparse matrix, which is divided by its scale and not centred
    first: Literal[0, 1] | None = None
    # how each column of texts or pictures becomes features, and the folder that pictures are in
    makers: Mapping[str, TextFeatures | ImageFeatures] = field(default_factory=dict)
    image_root: Path = field(default_factory=Path)

    @classmethod
    def sparse(cls, first: Literal[0, 1], scale: Array) -> Columns:
        """A sparse matrix, whose features have numbers for names."""
        names = map(str, range(first, first + len(scale)))
        return cls(tuple(Column(name, NUMBER) for name in names), None, np.zeros(len(scale)), scale, first)

    @classmethod
    def unscaled(cls, columns: Sequence[Column], id_column: str | None = None) -> Columns:
        """Features that are used as they are."""
        width = sum(len(column.categories) or 1 for column in columns)
        return cls(tuple(columns), id_column, np.zeros(width), np.ones(width))

    @cached_property
    def feature_names(self) -> list[str]:
        """One name a feature."""
        found: list[str] = []
        for one in self.columns:
            maker = self.makers.get(one.name)
            texts = [f"{one.name}={text}" for text in one.categories] or [one.name]
            found += texts if maker is None else maker.names(one.name)
        return found

    @property
    def width(self) -> int:
        """Number of features."""
        return self.features[-1].stop if self.columns else 0

    @cached_property
    def features(self) -> list[slice]:
        """Which features each column becomes."""
        made = {name: maker.width for name, maker in self.makers.items()}
        ends = np.cumsum([made.get(one.name) or len(one.categories) or 1 for one in self.columns]).tolist()
        return [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]

    def scaled(self, X: Rows) -> Rows:
        """Standardised features, sparse where they were."""
        if sparse.issparse(X):
            return sparse.csr_matrix(X @ sparse.diags_array(1 / self.scale))
        return (X - self.mean) / self.scale

    def needed(self, name: str, present: Sequence[str], id_column: str | None = None) -> list[str]:
        """The columns to read, and the ids; an error where the table has not all of them."""
        wanted = [column.name for column in self.columns]
        if absent := [column for column in wanted if column not in present]:
            hint = " Give the vectors of its rows with `embedding`." if absent[0].startswith("embedding ") else ""
            raise InputError(
                f"{name} lacks the column {', '.join(map(quoted, absent[:5]))} that the model needs.{hint}"
            )
        return list(dict.fromkeys([*wanted, *([id_column] if id_column else [])]))

    def encode(self, name: str, batch: ArrowTable) -> tuple[Array, Counter[str]]:
        """Features of a batch, not scaled, and how often a text was no known category, by column.

        The matrix is stored column by column, as Arrow has it, which is several times faster.
        """
        features = np.zeros((self.width, batch.num_rows))
        unseen: Counter[str] = Counter()
        for column, part in zip(self.columns, self.features, strict=True):
            values = batch[column.name]
            if column.name in self.makers:
                features[part], unseen[column.name] = self._made(name, column, values)
            elif column.kind == CATEGORY:
                unseen[column.name] += _one_hot(name, column, values, features[part])
            else:
                _fill(name, column, values, features[part.start])
        return features.T, +unseen

    def _made(self, name: str, column: Column, values: ArrowColumn) -> tuple[Array, int]:
        """Features of texts or pictures, and how many texts are unknown or pictures unreadable."""
        maker = self.makers[column.name]
        cells = values.cast(require("pyarrow", "files").string()).to_pylist()
        where = f"{name}: column {quoted(column.name)}"
        of_images = where, cells, self.image_root, column.fill is None
        X, n_unknown = maker.transform(cells) if isinstance(maker, TextFeatures) else maker.transform(*of_images)
        return X.T, n_unknown

    def values(self, X: Array) -> Array:
        """One number a column, of features not scaled: of a category its place, -1 is none; of a text its row."""
        found = X[:, [part.start for part in self.features]]
        for k, (column, part) in enumerate(zip(self.columns, self.features, strict=True)):
            if column.name in self.makers:
                found[:, k] = np.arange(len(X))
            elif column.kind == CATEGORY:
                found[:, k] = np.where(X[:, part].max(axis=1) > 0.5, X[:, part].argmax(axis=1), -1)
        return found

    def rows(self, values: Array, X: Array) -> Array:
        """Standardised features of one number a column, as :meth:`values` gives them for ``X``."""
        found = np.repeat(values, [part.stop - part.start for part in self.features], axis=1)
        for k, (column, part) in enumerate(zip(self.columns, self.features, strict=True)):
            if column.name in self.makers:
                found[:, part] = X[values[:, k].astype(np.intp), part]
            elif column.kind == CATEGORY:
                found[:, part] = values[:, [k]] == np.arange(len(column.categories))
        return self.scaled(found)

    def unseen_words(self, name: str, count: int) -> str:
        """What is to be said of texts that training did not prepare for, and of pictures that cannot be read."""
        maker = self.makers.get(name)
        if isinstance(maker, ImageFeatures):
            what = "pictures in column {} cannot be read and count as the mean picture"
        elif maker is not None:
            what = "texts in column {} have no word in common with those of training"
        else:
            what = "texts in column {} did not occur in training and count as none of its categories"
        return f"{count:,} {what.format(quoted(name))}"


def check_layout(layout: Columns) -> None:
    """Refuse a layout of an untrusted file whose parts do not fit together."""
    if layout.mean.shape != (layout.width,) or layout.scale.shape != (layout.width,):
        raise InputError("Columns and scales do not fit together.")
    if not (layout.scale > 0).all():
        raise InputError("A scale is not positive.")
    names = [column.name for column in layout.columns]
    if len({*names, layout.id_column}) != len(names) + 1:
        raise InputError("Two columns have one name.")
    for column in layout.columns:
        is_text = column.kind == CATEGORY
        kind = {TextFeatures: TEXT, ImageFeatures: IMAGE}.get(type(layout.makers.get(column.name)))
        if kind != (column.kind if column.kind in (TEXT, IMAGE) else None):
            raise InputError(f"Column {quoted(column.name)} is not described as its kind needs it.")
        if bool(column.categories) != is_text or len(set(column.categories)) != len(column.categories):
            raise InputError(f"The categories of column {quoted(column.name)} are none, or two are alike.")
        if column.fill is not None and isinstance(column.fill, str) != is_text:
            raise InputError(f"Column {quoted(column.name)} is not filled with a value of its kind.")


def usable_scale(mean: Array, deviation: Array) -> Array:
    """The deviation, or 1 for a constant column, whose deviation is rounding."""
    return np.where(deviation > 1e-10 * np.maximum(np.abs(mean), 1e-200), deviation, 1.0)


class Moments(NamedTuple):
    """Number of values, their mean, and the sum of squares about it."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @staticmethod
    def of(values: Array) -> Moments:
        """The moments of some values."""
        if not len(values):
            return Moments()
        mean = float(values.mean())
        centred = values - mean
        return Moments(len(values), mean, float(np.square(centred).sum()))

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        """Those of both, without the cancellation of plain sums (Chan, Golub and LeVeque)."""
        if not self.n or not other.n:
            return other if other.n else self
        n = self.n + other.n
        shift = other.mean - self.mean
        squares = self.squares + other.squares + shift**2 * (self.n * other.n / n)
        return Moments(n, self.mean + shift * (other.n / n), squares)


_NO_NUMBERS = Moments()
# Row, the first below the header being 1, and text of a cell.
Cell: TypeAlias = tuple[int, str]
_ADDED_UP = ("rows", "gaps", "numbers", "commas", "n_infinite", "n_fractions", "n_zeros", "marks", "n_commas")


@dataclass(frozen=True)
class ColumnCounts:
    """What the rows of a column add up to; ``+`` joins two stretches of rows."""

    rows: int  # rows, and how many of them have no value
    gaps: int
    numbers: Moments = _NO_NUMBERS  # of the numbers; of texts, those with a decimal point
    commas: Moments = _NO_NUMBERS  # of texts that are numbers where the comma is the decimal mark
    n_infinite: int = 0
    n_fractions: int = 0  # numbers that are not whole
    n_zeros: int = 0
    check: int = 0  # of whole numbers, see :func:`sdulearn.pairs.pair_checksum`; joined with ``^``
    # how often each value occurs; None where there are too many
    texts: Counter[str] | None = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)  # texts for a missing number
    n_commas: int = 0  # texts with a comma that cannot stand between thousands
    # the first that is neither a mark nor a number: with a decimal point, with a decimal comma
    odd: tuple[Cell | None, Cell | None] = (None, None)

    def __add__(self, other: ColumnCounts) -> ColumnCounts:
        texts = None
        if self.texts is not None and other.texts is not None and len(self.texts) <= MANY_TEXTS:
            texts = self.texts + other.texts
        pointed, comma = (min(filter(None, both), default=None) for both in zip(self.odd, other.odd, strict=True))
        sums = {name: getattr(self, name) + getattr(other, name) for name in _ADDED_UP}
        return replace(self, check=self.check ^ other.check, texts=texts, odd=(pointed, comma), **sums)


def count(values: ArrowColumn, first: int, guessed: bool) -> ColumnCounts:
    """Count a column from row ``first`` on; ``guessed`` where texts may be numbers."""
    kind = kind_of(values.type)
    if kind is None:
        return ColumnCounts(len(values), values.null_count)
    if kind != CATEGORY:
        return _count_numbers(values, values)
    if not guessed:
        return ColumnCounts(len(values), values.null_count, texts=_frequencies(values))
    found = as_numbers(values, NumberText())
    if kind_of(found.type) == CATEGORY:
        return _count_texts(values, first)
    pc = require("pyarrow.compute", "files")
    counted = _count_numbers(found, values)
    # What is no number with a decimal comma has a point.
    pointed = pc.match_substring(values, ".")
    place = pc.index(pointed, True).as_py()
    if place < 0:
        return replace(counted, commas=counted.numbers)
    commas = Moments.of(np.asarray(found.filter(pc.invert(pointed)).drop_null(), dtype=np.float64))
    return replace(counted, commas=commas, odd=(None, (first + place + 1, values[place].as_py().strip())))


def _count_numbers(values: ArrowColumn, cells: ArrowColumn) -> ColumnCounts:
    """Numbers, and the cells that they were read from."""
    floats = np.asarray(numbers(values), dtype=np.float64)
    present = floats if _all_finite(floats) else floats[~np.isnan(floats)]
    with np.errstate(invalid="ignore", over="ignore"):
        moments = Moments.of(present)
    n_infinite = int(np.isinf(present).sum())
    n_fractions = int(np.sum(present != np.rint(present)))
    check = 0
    if not n_fractions and not n_infinite and np.abs(present).max(initial=0) < 2**53:
        check = pair_checksum(present.astype(np.int64))
    are_few = len(cells[:_FIRST].unique()) <= _FEW
    # Of numbers of their own type fractions say nothing; a column of texts may hold categories too.
    counted = are_few and (cells is not values or not n_fractions)
    return ColumnCounts(
        len(values),
        len(values) - len(present),
        moments,
        n_infinite=n_infinite,
        n_fractions=n_fractions,
        n_zeros=int(np.sum(present == 0)),
        check=check,
        texts=_frequencies(cells) if counted else None,
    )


def _count_texts(values: ArrowColumn, first: int) -> ColumnCounts:
    """Texts of which some are no plain numbers, by each different one, the first ones first."""
    different, times = values.drop_null().value_counts().flatten()
    marks: Counter[str] = Counter()
    spelled: tuple[list[float], list[float]] = ([], [])
    odd: list[Cell | None] = [None, None]
    n_commas = 0
    for text, n in zip(different.to_pylist(), times.to_pylist(), strict=True):
        trimmed = text.strip()
        if trimmed.lower() in _MARKS:
            marks[trimmed] += n
            continue
        n_commas += n * ("," in text and not _THOUSANDS.fullmatch(trimmed))
        for k, spelling in enumerate((_PLAIN, _COMMA)):
            if spelling.fullmatch(trimmed):
                spelled[k].extend([float(trimmed.replace(",", "."))] * n)
            elif odd[k] is None:
                odd[k] = (first + values.index(text).as_py() + 1, trimmed)
    plain, commas = (np.array(found, dtype=np.float64) for found in spelled)
    return ColumnCounts(
        len(values),
        values.null_count,
        Moments.of(plain),
        Moments.of(commas),
        n_infinite=int(np.isinf(plain).sum()),
        n_fractions=1,
        texts=_frequencies(values),
        marks=marks,
        n_commas=n_commas,
        odd=(odd[0], odd[1]),
    )


def _frequencies(values: ArrowColumn) -> Counter[str] | None:
    """How often each value occurs, as text; None where there are too many."""
    values, counts = values.drop_null().value_counts().flatten()
    if len(values) > MANY_TEXTS:
        return None
    texts = values.cast(require("pyarrow", "files").string())
    return Counter(dict(zip(texts.to_pylist(), counts.to_pylist(), strict=True)))


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
    types = [pa.string() if str(one.type) == "string_view" else one.type for one in table.schema]
    return table.cast(pa.schema(zip(table.column_names, types, strict=True)))


def kind_of(dtype: ArrowType) -> Kind | None:
    """Number, boolean or category; None for all else."""
    types = require("pyarrow.types", "files")
    if types.is_boolean(dtype):
        return BOOLEAN
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype) or types.is_null(dtype):
        return NUMBER
    text = dtype.value_type if types.is_dictionary(dtype) else dtype
    return CATEGORY if types.is_string(text) or types.is_large_string(text) else None


def decide(
    name: str,
    types: Mapping[str, ArrowType],
    counts: Mapping[str, ColumnCounts],
    guessed: Collection[str],
    id_column: str | None,
    missing: str,
    max_categories: int,
    made: Mapping[str, tuple[TextFeatures | ImageFeatures, Array]] | None = None,
) -> Columns:
    """How the counted columns become features, or an error that names every column in the way.

    ``made`` holds columns of texts and pictures, with the features of some of their rows.
    """
    made = made or {}
    order = list(counts)
    counts = {column: one for column, one in counts.items() if column not in made}
    if not order:
        raise InputError(f"{name} has no columns to learn from.")
    strange = [_noted(column, shortened(str(types[column]))) for column in counts if kind_of(types[column]) is None]
    if strange:
        raise InputError(f"{name}: neither numbers nor text: {listed(strange)}. Leave them out with `drop`.")
    kinds = {column: kind_of(types[column]) or NUMBER for column in counts}
    spelled: dict[str, NumberText | None] = dict.fromkeys(counts)
    counts = dict(counts)
    for column in guessed:
        if column in counts:
            kinds[column], spelled[column], counts[column] = _recognised(name, column, counts[column])
    _refuse_gaps(name, counts, missing)
    _refuse_codes(name, counts, kinds)
    large = {
        column: one.texts
        for column, one in counts.items()
        if kinds[column] == CATEGORY and (one.texts is None or len(one.texts) > max_categories)
    }
    if large:
        number = [_noted(c, f"more than {MANY_TEXTS:,}" if t is None else f"{len(t):,}") for c, t in large.items()]
        raise InputError(
            f"{name}: text columns with more than {max_categories} different texts: {listed(number)}. Name the ids "
            "with `id_column`, leave columns out with `drop`, read them as sentences with `text`, or raise "
            "`max_categories`."
        )
    fills = missing == "mean"
    found = {column: _column(column, kinds[column], spelled[column], one, fills) for column, one in counts.items()}
    found |= {column: _made_column(column, *one, fills) for column, one in made.items()}
    mean, deviation = np.hstack([found[column][1] for column in order])
    columns = tuple(found[column][0] for column in order)
    makers = {column: one[0] for column, one in made.items()}
    return Columns(columns, id_column, mean, usable_scale(mean, deviation), makers=makers)


def _made_column(name: str, maker: TextFeatures | ImageFeatures, X: Array, fills: bool) -> tuple[Column, Array]:
    """A column of texts or pictures, and its moments: one deviation for all, so that components keep their weight."""
    kind = TEXT if isinstance(maker, TextFeatures) else IMAGE
    deviation = np.full(maker.width, np.sqrt(X.var(axis=0).mean()))
    return Column(name, kind, fill=0.0 if fills and kind == IMAGE else None), np.array([X.mean(axis=0), deviation])


def _recognised(name: str, column: str, found: ColumnCounts) -> tuple[Kind, NumberText | None, ColumnCounts]:
    """What a column of a text file holds, with its counts; an error where it is not clear."""
    present = found.rows - found.gaps
    is_comma = found.commas.n > found.numbers.n
    numbers = found.commas if is_comma else found.numbers
    if is_comma and not found.n_commas:
        such = next((text for text in found.texts or () if "," in text), "1,234")
        raise InputError(
            f"{name}: the numbers in column {quoted(column)}, such as {quoted(such)}, may have a decimal comma or "
            "commas between thousands. Write them with a point, or leave the column out with `drop`."
        )
    n_marks = found.marks.total()
    rest = present - numbers.n - n_marks
    if not present or (numbers.n and not rest):
        is_plain = not is_comma and not n_marks
        spelling = None if is_plain else NumberText("," if is_comma else ".", tuple(sorted(found.marks)))
        return NUMBER, spelling, replace(found, gaps=found.gaps + n_marks, numbers=numbers)
    if found.texts is not None and {text.strip() for text in found.texts} <= {*_FALSE, *_TRUE}:
        n_true = sum(number for text, number in found.texts.items() if text.strip() in _TRUE)
        share = n_true / present
        return BOOLEAN, None, replace(found, numbers=Moments(present, share, n_true * (1 - share)))
    if numbers.n < _NEARLY_ALL * present:
        return CATEGORY, None, found
    odd = found.odd[is_comma]
    assert odd is not None
    raise InputError(
        f"{name}: column {quoted(column)} holds numbers, but for {rest:,} cells, the first {quoted(odd[1])} in row "
        f"{odd[0]:,}. Correct them; or leave the column out with `drop`; or, if its texts are categories, say so: "
        f"`categories=[{quoted(column)}]`."
    )


def _refuse_gaps(name: str, counts: Mapping[str, ColumnCounts], missing: str) -> None:
    gaps = {column: found.gaps for column, found in counts.items() if found.gaps}
    if gaps and missing == "error":
        columns_with_gaps = listed([_noted(column, f"{number:,}") for column, number in gaps.items()])
        raise InputError(
            f"{name}: missing values in {columns_with_gaps}. Pass `missing='mean'` to put in the column's mean (most "
            "frequent text), or leave columns out with `drop`."
        )
    if empty := [column for column, number in gaps.items() if number == counts[column].rows]:
        raise InputError(
            f"{name}: nothing but missing values in {listed(map(quoted, empty))}. Leave them out with `drop`."
        )
    if infinite := [column for column, found in counts.items() if found.n_infinite]:
        raise _infinite(name, infinite[0])


def _infinite(name: str, column: str) -> InputError:
    return InputError(f"{name}: column {quoted(column)} holds infinite values. Replace them, or leave it out.")


def _refuse_codes(name: str, counts: Mapping[str, ColumnCounts], kinds: Mapping[str, Kind]) -> None:
    """A column of whole numbers of which every one but 0 stands on two rows is no feature."""
    for column, found in counts.items():
        if kinds[column] != NUMBER or found.n_fractions or not found.n_zeros or found.n_zeros == found.numbers.n:
            continue
        in_twos = found.check == 0
        if found.texts is not None:
            times = [number for text, number in found.texts.items() if float(text)]
            in_twos = len(times) >= _FEW_PAIRS and set(times) == {2}
        if in_twos:
            raise InputError(
                f"{name}: column {quoted(column)} looks like pair codes: every number but 0 stands on two rows. "
                f"Learn from them with `codes={quoted(column)}`, or leave the column out with `drop`."
            )


def _noted(name: str, note: str) -> str:
    return f"{quoted(name)} ({note})"


def _column(
    name: str, kind: Kind, spelled: NumberText | None, found: ColumnCounts, fills: bool
) -> tuple[Column, Array]:
    """A column, and mean and deviation of its features over all rows, gaps filled."""
    if kind != CATEGORY:
        mean, squares = found.numbers[1:]
        fill = mean if fills else None
        return Column(name, kind, fill=fill, text=spelled), np.array([[mean], [np.sqrt(squares / found.rows)]])
    texts = found.texts or Counter()
    # The first in the alphabet of those that occur most often, whatever the order of the rows.
    usual = min(texts, key=lambda text: (-texts[text], text)) if fills else None
    names = tuple(sorted(texts))
    share = np.array([texts[text] + found.gaps * (text == usual) for text in names]) / found.rows
    return Column(name, kind, names, usual), np.array([share, np.sqrt(share * (1 - share))])


def _fill(name: str, column: Column, values: ArrowColumn, feature: Array) -> None:
    """Write the numbers of a column, however a text file spells them; gaps are filled."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    is_text = kind_of(values.type) == CATEGORY
    if is_text and column.kind == BOOLEAN:
        texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
        place = pc.index_in(texts, value_set=pa.array((*_FALSE, *_TRUE)))
        if place.null_count > texts.null_count:
            raise InputError(f"{name}: column {quoted(column.name)} held true and false in training, not here.")
        values = pc.greater_equal(place, len(_FALSE))
    elif is_text:
        values = as_numbers(values, column.text or NumberText())
    try:
        feature[:] = numbers(values)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{name}: column {quoted(column.name)} held numbers in training, and here: {reason(error)}"
        ) from None
    if _all_finite(feature):
        return
    gaps = np.isnan(feature)
    if gaps.any():
        _refuse_missing(name, column, int(gaps.sum()))
        feature[gaps] = float(column.fill or 0.0)
    if not np.isfinite(feature).all():
        raise _infinite(name, column.name)


def as_numbers(values: ArrowColumn, text: NumberText) -> ArrowColumn:
    """Texts as numbers, null where one is missing; as they are where some are no numbers."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    values = pc.utf8_trim_whitespace(values.cast(pa.string()))
    if text.marks:
        marked = pc.is_in(values, value_set=pa.array(text.marks))
        values = pc.if_else(marked, pa.scalar(None, pa.string()), values)
    if text.decimal != ".":
        values = pc.replace_substring(values, text.decimal, ".")
    try:
        return values.cast(pa.float64())
    except pa.ArrowInvalid:
        return values


def _one_hot(name: str, column: Column, values: ArrowColumn, block: Array) -> int:
    """Write ones into the block; give back how many texts are no known category."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    values = values.cast(pa.string())
    if values.null_count:
        _refuse_missing(name, column, values.null_count)
        values = pc.fill_null(values, column.fill)
    place = np.asarray(pc.fill_null(pc.index_in(values, value_set=pa.array(column.categories, pa.string())), -1))
    known = np.flatnonzero(place >= 0)
    block[place[known], known] = 1.0
    return len(place) - len(known)


def _refuse_missing(name: str, column: Column, number: int) -> None:
    if column.fill is None:
        raise InputError(
            f"{name}: {number:,} missing values in column {quoted(column.name)}, and the model was fitted without a "
            "stand-in for them. Fill them in, or fit again with `missing='mean'`."
        )


def numbers(values: ArrowColumn) -> NDArray[Any]:
    """A number or true/false column as numbers; as floats with NaN where some are missing."""
    pa = require("pyarrow", "files")
    if values.null_count == 0 and (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        return np.asarray(values)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return np.asarray(values.cast(pa.float64(), safe=False))


def _all_finite(values: NDArray[Any]) -> bool:
    """Whether all are finite, by a sum, which is the cheapest way; no where it overflows."""
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.isfinite(values.sum(dtype=np.float64)))


def pair_codes(path: Location, name: str, values: ArrowColumn) -> Codes:
    """A column of pair codes."""
    if values.null_count:
        raise InputError(
            f"{path}: column {quoted(name)} lacks values; every row needs a pair code. Put in 0 for unlabeled rows."
        )
    found = _whole_numbers(values)
    if found is None:
        raise InputError(
            f"{path}: column {_noted(name, str(values.type))} does not hold pair codes. They are whole numbers: +k at "
            "both ends of similar pair k, -k at both ends of dissimilar pair k, 0 for unlabeled rows."
        )
    return found


def point_numbers(path: Location, name: str, values: ArrowColumn) -> Codes:
    """A column that says which point each row shows."""
    found = None if values.null_count else _whole_numbers(values)
    if found is None or (found < 0).any():
        raise InputError(
            f"{path}: column {_noted(name, str(values.type))} does not say which point each row shows. Points are "
            "whole numbers from 0 on, one on every row; rows with equal numbers show the same point. Number what it "
            "names."
        )
    return found


def _whole_numbers(values: ArrowColumn) -> Codes | None:
    found = numbers(values) if kind_of(values.type) == NUMBER else np.array([np.nan])
    return found.astype(np.int64) if np.isfinite(found).all() and (found == np.rint(found)).all() else None
