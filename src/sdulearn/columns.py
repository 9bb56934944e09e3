"""Columns of a table and the features they become: decided in training, kept ever after.

A number or true/false column becomes one feature, a date one and its place in the year and the week where that may
help, a column of categories one feature each, and texts and pictures many together (:mod:`sdulearn.text_columns`,
:mod:`sdulearn.image_columns`). What decides that, and standardises the features, are sums over rows: they are the same
for a table in memory and for one that streams by, in any order. In a text file everything is text, so there the kind
of a column is decided by all of its texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sdulearn.errors import InputError, listed, quoted, require, shortened
from sdulearn.image_columns import ImageFeatures
from sdulearn.io.files import Location
from sdulearn.pairs import pair_checksum
from sdulearn.spelling import (
    CYCLES,
    DATES,
    DECIMALS,
    FORMS,
    Cycle,
    Form,
    Spelling,
    are_marks,
    have_short_years,
    may_be_thousands,
    plain_numbers,
    possible_forms,
    read_texts,
    spelled,
    trimmed,
    with_cycles,
)
from sdulearn.text_columns import TextFeatures
from sdulearn.types import Array, ArrowColumn, ArrowTable, ArrowType, Codes, Count, Frame, Mask, Rows

Kind: TypeAlias = Literal["number", "boolean", "date", "category", "text", "image"]
NUMBER: Kind = "number"
BOOLEAN: Kind = "boolean"
CATEGORY: Kind = "category"
DATE: Kind = "date"
TEXT: Kind = "text"
IMAGE: Kind = "image"
_NUMBERS = (NUMBER, BOOLEAN, DATE)
# Nobody wants a feature for each of so many texts; beyond it they are no longer counted one by one.
MANY_TEXTS = 10_000
# Numbers are counted one by one only where the first of them are few different ones.
_FIRST = 2_000
_FEW = 1_000
_FALSE = ("false", "False", "FALSE", "0")
_TRUE = ("true", "True", "TRUE", "1")
# From this share of numbers on, a column of texts is taken for one of numbers with mistakes in it.
_NEARLY_ALL = 0.9
# A column of numbers that come in twos by chance has fewer of them than this.
_FEW_PAIRS = 5
# Fewer gaps than these, in number and as a share, have no feature of their own: few rows would have large values.
_GAPS = (10, 0.01)
# Texts of so many characters on average are sentences.
_LONG = 25
# Days over which dates must spread for their place in a cycle to be a feature. Over so long a time they are mostly
# dates of birth, whose weekday means nothing.
_SPREAD: dict[Cycle, float] = {"year": 366.0, "week": 14.0}
_LIFETIME = 20 * 366.0

Where: TypeAlias = Callable[[int], str]
"""Where a row stands, for messages: "line 7" of a text file, for example; rows are counted from 0."""


def in_row(number: int) -> str:
    """The number of a row, from 1."""
    return f"row {number + 1:,}"


class Problem(Exception):
    """Something wrong with a column: what it is, the column with a note, and the remedy."""


def refuse(name: str, problems: Iterable[Problem]) -> None:
    """All that is wrong with a table in one message; nothing where nothing is."""
    found: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        what, column, remedy = problem.args
        found.setdefault((what, remedy), []).append(column)
    said = [f"{what} {listed(columns)}. {remedy}" for (what, remedy), columns in found.items()]
    if len(said) > 1:
        said = [f"{len(said)} problems.", *(f"({k}) {text}" for k, text in enumerate(said, 1))]
    if said:
        raise InputError(f"{name}: {' '.join(said)}")


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str  # its name
    kind: Kind  # what it holds
    categories: tuple[str, ...] = ()  # each a feature; empty unless the kind is "category"
    fill: float | str | None = None  # what stands in for a missing value; None refuses it
    text: Spelling | None = None  # how texts spell its numbers or dates, if not plainly
    n_gaps: Count = 0  # missing values in training
    marked: bool = False  # whether a feature says where a number is missing
    cycles: tuple[Cycle, ...] = ()  # of dates: in which their place is a feature, as sine and cosine

    @property
    def features(self) -> list[str]:
        """Names of its features."""
        if self.kind == CATEGORY:
            return [f"{self.name}={text}" if text else f"{self.name} is missing" for text in self.categories]
        waves = [f"{self.name} ({cycle}, {wave})" for cycle in self.cycles for wave in ("sine", "cosine")]
        return [self.name, *waves, *[f"{self.name} is missing"] * self.marked]


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
    keep_gaps: bool = False  # whether missing numbers stay NaN, for trees

    @classmethod
    def sparse(cls, first: Literal[0, 1], scale: Array) -> Columns:
        """A sparse matrix, whose features have numbers for names."""
        names = map(str, range(first, first + len(scale)))
        return cls(tuple(Column(name, NUMBER) for name in names), None, np.zeros(len(scale)), scale, first)

    @classmethod
    def unscaled(cls, columns: Sequence[Column], id_column: str | None = None) -> Columns:
        """Features that are used as they are."""
        width = sum(len(column.features) for column in columns)
        return cls(tuple(columns), id_column, np.zeros(width), np.ones(width))

    @cached_property
    def feature_names(self) -> list[str]:
        """One name a feature."""
        found: list[str] = []
        for one in self.columns:
            maker = self.makers.get(one.name)
            found += one.features if maker is None else maker.names(one.name)
        return found

    @property
    def width(self) -> int:
        """Number of features."""
        return self.features[-1].stop if self.columns else 0

    @cached_property
    def features(self) -> list[slice]:
        """Which features each column becomes."""
        made = {name: maker.width for name, maker in self.makers.items()}
        ends = np.cumsum([made.get(one.name) or len(one.features) for one in self.columns]).tolist()
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

    def encode(self, name: str, batch: ArrowTable, where: Where = in_row) -> tuple[Array, Counter[str]]:
        """Features of a batch, not scaled, and by column the cells whose like training did not have.

        These are texts that are no known category, and gaps. The matrix is stored column by column, as Arrow has it,
        which is several times faster.
        """
        features = np.zeros((self.width, batch.num_rows))
        unseen: Counter[str] = Counter()
        problems = []
        for column, part in zip(self.columns, self.features, strict=True):
            try:
                if column.name in self.makers:
                    features[part], unseen[column.name] = self._made(name, column, batch[column.name])
                elif column.kind == CATEGORY:
                    unseen[column.name] += _one_hot(column, batch[column.name], features[part], where)
                else:
                    _read_numbers(column, batch[column.name], features[part.start], where)
                    unseen[column.name] += self._expand(column, part, features[part], where)
            except Problem as problem:
                problems.append(problem)
        refuse(name, problems)
        return features.T, +unseen

    def _made(self, name: str, column: Column, values: ArrowColumn) -> tuple[Array, int]:
        """Features of texts or pictures, and how many texts are unknown or pictures unreadable."""
        maker = self.makers[column.name]
        cells = values.cast(require("pyarrow", "files").string()).to_pylist()
        where = f"{name}: column {quoted(column.name)}"
        of_images = where, cells, self.image_root, column.fill is None
        X, n_unknown = maker.transform(cells) if isinstance(maker, TextFeatures) else maker.transform(*of_images)
        return X.T, n_unknown

    def _expand(self, column: Column, part: slice, block: Array, where: Where = in_row) -> int:
        """From the numbers of a column, its first feature, the others; and fill gaps. How many are new."""
        waves = 1 + 2 * len(column.cycles)
        if column.cycles:
            block[:waves] = with_cycles(block[0], column.cycles)
        if _all_finite(block[0]):
            return 0
        if (infinite := np.isinf(block[0])).any():
            raise _infinite(column.name, where(int(infinite.argmax())))
        gaps = np.isnan(block[0])
        if not gaps.any():
            return 0
        _refuse_missing(column, gaps, where)
        block[waves:] = gaps
        if not self.keep_gaps:
            block[0, gaps] = column.fill
            block[1:waves, gaps] = self.mean[part][1:waves, None]
        return 0 if column.n_gaps else int(gaps.sum())

    def filled(self, X: Array) -> Array:
        """Features without gaps, whether or not they are kept for trees."""
        if not self.keep_gaps:
            return X
        fills = self.mean.copy()
        for column, part in zip(self.columns, self.features, strict=True):
            if column.kind in _NUMBERS:
                fills[part.start] = column.fill
        return np.where(np.isnan(X), fills, X)

    def values(self, X: Array) -> Array:
        """One number a column, of features not scaled; NaN for a known gap.

        Of a category it is its place, -1 is none; of a text its row.
        """
        found = X[:, [part.start for part in self.features]]
        for k, (column, part) in enumerate(zip(self.columns, self.features, strict=True)):
            if column.name in self.makers:
                found[:, k] = np.arange(len(X))
            elif column.kind == CATEGORY:
                found[:, k] = np.where(X[:, part].max(axis=1) > 0.5, X[:, part].argmax(axis=1), -1)
            elif column.marked:
                found[X[:, part.stop - 1] > 0.5, k] = np.nan
        return found

    def rows(self, values: Array, X: Array) -> Array:
        """Standardised features of one number a column, as :meth:`values` gives them for ``X``."""
        found = np.zeros((self.width, len(values)))
        for k, (column, part) in enumerate(zip(self.columns, self.features, strict=True)):
            if column.name in self.makers:
                found[part] = X[values[:, k].astype(np.intp), part].T
            elif column.kind == CATEGORY:
                found[part] = values[:, k] == np.arange(len(column.categories))[:, None]
            else:
                found[part.start] = values[:, k]
                self._expand(column, part, found[part])
        return self.scaled(found.T)

    def unseen_words(self, name: str, count: int) -> str:
        """What is to be said of cells that training did not prepare for, and of pictures that cannot be read."""
        maker = self.makers.get(name)
        if not name:
            return f"{count:,} rows have no value in the columns that are read, and were left out"
        if isinstance(maker, ImageFeatures):
            what = "pictures in column {} cannot be read and count as the mean picture"
        elif maker is not None:
            what = "texts in column {} have no word in common with those of training"
        elif any(column.name == name and column.kind == CATEGORY for column in self.columns):
            what = "texts in column {} did not occur in training and count as none of its categories"
        else:
            what = "values are missing in column {}, where none was in training, and count as the mean"
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
    """Number of values, their mean, and the sum of squares about it; of dates also those of their cycles."""

    n: int = 0
    mean: Any = 0.0
    squares: Any = 0.0
    low: float = np.inf  # the least and the greatest of them
    high: float = -np.inf

    @staticmethod
    def of(values: Array, cycles: Iterable[Cycle] = ()) -> Moments:
        """The moments of some values."""
        if not len(values):
            return Moments()
        features = with_cycles(values, cycles) if cycles else values
        with np.errstate(invalid="ignore", over="ignore"):
            mean = features.mean(axis=-1)
            squares = np.square(features - mean[..., None]).sum(axis=-1)
        if not cycles:
            mean, squares = float(mean), float(squares)
        return Moments(len(values), mean, squares, float(values.min()), float(values.max()))

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        """Those of both, without the cancellation of plain sums (Chan, Golub and LeVeque)."""
        if not self.n or not other.n:
            return other if other.n else self
        n = self.n + other.n
        shift = other.mean - self.mean
        squares = self.squares + other.squares + shift**2 * (self.n * other.n / n)
        ends = min(self.low, other.low), max(self.high, other.high)
        return Moments(n, self.mean + shift * (other.n / n), squares, *ends)


# Row, the first below the header being 0, and text of a cell.
Cell: TypeAlias = tuple[int, str]
_NOTHING = Moments()
_ADDED_UP = ("rows", "gaps", "n_infinite", "n_fractions", "n_zeros", "marks", "n_both", "n_short")


@dataclass(frozen=True)
class ColumnCounts:
    """What the rows of a column add up to; ``+`` joins two stretches of rows."""

    rows: int  # rows, and how many of them have no value
    gaps: int
    # the numbers or days that cells hold, by the form in which texts spell them; "." where they are no texts
    forms: Mapping[str, Moments] = field(default_factory=dict)
    n_infinite: int = 0
    n_fractions: int = 0  # numbers that are not whole
    n_zeros: int = 0
    check: int = 0  # of whole numbers, see :func:`sdulearn.pairs.pair_checksum`; joined with ``^``
    # how often each value occurs; None where there are too many
    texts: Counter[str] | None = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)  # texts for a missing number
    n_both: int = 0  # texts that are numbers with a decimal point and with a decimal comma
    n_short: int = 0  # dates with two digits for the year
    # the first cell that is no mark and not of a form; the first "gap"; the first that is "infinite", and "unclear",
    # such as 1,234, which may be more than a thousand
    odd: Mapping[str, Cell] = field(default_factory=dict)

    def __add__(self, other: ColumnCounts) -> ColumnCounts:
        texts = None
        if self.texts is not None and other.texts is not None and len(self.texts) <= MANY_TEXTS:
            texts = self.texts + other.texts
        forms = {form: self.form(form) + other.form(form) for form in {**self.forms, **other.forms}}
        odd = {**self.odd, **{what: min(cell, self.odd.get(what, cell)) for what, cell in other.odd.items()}}
        sums = {name: getattr(self, name) + getattr(other, name) for name in _ADDED_UP}
        return replace(self, forms=forms, check=self.check ^ other.check, texts=texts, odd=odd, **sums)

    def form(self, form: str) -> Moments:
        """The numbers of a form."""
        return self.forms.get(form, _NOTHING)


def count(values: ArrowColumn, rows: Codes, guessed: bool) -> ColumnCounts:
    """Count a column of rows with these numbers; ``guessed`` where texts may be numbers."""
    kind = kind_of(values.type)
    if kind is None:
        return ColumnCounts(len(values), values.null_count)
    if kind != CATEGORY:
        return _count_numbers(numbers(values), values, rows, kind)
    if require("pyarrow.types", "files").is_dictionary(values.type):
        return ColumnCounts(len(values), values.null_count, texts=_frequencies(values), odd=_firsts(rows, gap=values))
    # Most files have no blanks around numbers, and to look for some takes as long as to read the numbers.
    texts = values
    plain = plain_numbers(texts) if guessed else None
    if guessed and plain is None:
        texts = trimmed(values)
        plain = plain_numbers(texts)
    # "nan" is a number for Arrow, and a mark for us.
    if plain is None or np.isnan(found := np.asarray(plain)).sum() > values.null_count:
        return _count_texts(values, rows)
    return _count_plain(found, values, texts, rows)


def _count_numbers(found: NDArray[Any], cells: ArrowColumn, rows: Codes, kind: Kind = NUMBER) -> ColumnCounts:
    """Numbers, or days, and the cells that they were read from."""
    floats = np.asarray(found, dtype=np.float64)
    finite = _all_finite(floats)
    present = floats if finite else floats[~np.isnan(floats)]
    moments = Moments.of(present, CYCLES if kind == DATE else ())
    n_infinite = int(np.isinf(present).sum())
    n_fractions = int(np.sum(present != np.rint(present)))
    check = 0
    if not n_fractions and not n_infinite and np.abs(present).max(initial=0) < 2**53:
        check = pair_checksum(present.astype(np.int64))
    are_few = kind != DATE and len(cells[:_FIRST].unique()) <= _FEW
    # Of numbers of their own type fractions say nothing; a column of texts may hold categories too.
    counted = are_few and (kind_of(cells.type) == CATEGORY or not n_fractions)
    return ColumnCounts(
        len(floats),
        len(floats) - len(present),
        {".": moments},
        n_infinite=n_infinite,
        n_fractions=n_fractions,
        n_zeros=int(np.sum(present == 0)),
        check=check,
        texts=_frequencies(cells) if counted else None,
        odd={} if finite else _firsts(rows, gap=np.isnan(floats), infinite=np.isinf(floats)),
    )


def _count_plain(found: Array, values: ArrowColumn, texts: ArrowColumn, rows: Codes) -> ColumnCounts:
    """Texts that are plain numbers, and what they would be if the comma were the decimal mark: 1.234 thousands."""
    pc = require("pyarrow.compute", "files")
    place = np.asarray(pc.fill_null(pc.find_substring(texts, "."), -1))
    is_pointed = place >= 0
    thousands = is_pointed & (np.asarray(pc.fill_null(pc.binary_length(texts), 0)) - place == len(".000"))
    if thousands.any():
        thousands &= may_be_thousands(texts)
    present = ~np.isnan(found)
    both = present & (thousands | ~is_pointed)
    counted = _count_numbers(found, values, rows)
    odd = _firsts(rows, texts, **dict.fromkeys(FORMS[2:], present), **{",": present & ~both, "unclear": thousands})
    as_commas = Moments.of(np.where(thousands, np.rint(1000 * found), found)[both])
    forms = {**counted.forms, ",": as_commas}
    return replace(counted, forms=forms, n_both=int(both.sum()), odd={**counted.odd, **odd})


def _count_texts(values: ArrowColumn, rows: Codes) -> ColumnCounts:
    """Texts of which some are no plain numbers, by each different one, the first ones first."""
    counted = values.drop_null().value_counts()
    different, times = counted.flatten()
    texts = trimmed(different)
    number = np.asarray(times)
    marks = are_marks(texts)
    none = np.zeros_like(marks)
    found = {form: spelled(texts, form) for form in possible_forms(texts)}
    fits = {form: ~np.isnan(one) for form, one in found.items()}
    forms: dict[str, Moments] = {
        form: Moments.of(np.repeat(one[fits[form]], number[fits[form]]), CYCLES if form in DATES else ())
        for form, one in found.items()
    }
    both = fits["."] & fits[","] if found else none
    infinite = np.isinf(found["."]) if found else none
    firsts = _firsts(
        np.arange(len(texts)),
        texts,
        **{form: ~fits.get(form, none) & ~marks for form in FORMS},
        unclear=both & may_be_thousands(texts) if both.any() else none,
        mark=marks,
        infinite=infinite,
    )
    # The first of its kind is the first row with that text.
    odd = {what: (int(rows[values.index(different[place]).as_py()]), text) for what, (place, text) in firsts.items()}
    return ColumnCounts(
        len(values),
        values.null_count,
        forms or {".": Moments()},
        n_infinite=int(infinite.sum()),
        n_fractions=1,
        texts=_as_counter(counted),
        marks=Counter({texts[k].as_py(): int(number[k]) for k in np.flatnonzero(marks)}),
        n_both=int(number[both].sum()),
        n_short=int(number[have_short_years(texts)].sum()) if "y-m-d" in found else 0,
        odd={**odd, **_firsts(rows, gap=values)},
    )


def _firsts(rows: Codes, texts: ArrowColumn | None = None, **masks: Mask | ArrowColumn) -> dict[str, Cell]:
    """The first cell of each mask that has any, of rows with these numbers; of a column, the first gap."""
    found = {}
    for what, mask in masks.items():
        if not isinstance(mask, np.ndarray):
            mask = np.asarray(mask.is_null()) if mask.null_count else np.zeros(1, dtype=bool)
        if mask.any():
            place = int(mask.argmax())
            found[what] = (int(rows[place]), "" if texts is None else texts[place].as_py())
    return found


def _frequencies(values: ArrowColumn) -> Counter[str] | None:
    """How often each value occurs, as text; None where there are too many."""
    return _as_counter(values.drop_null().value_counts())


def _as_counter(counted: ArrowColumn) -> Counter[str] | None:
    values, counts = counted.flatten()
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
    """Number, boolean, date or category; None for all else."""
    types = require("pyarrow.types", "files")
    if types.is_boolean(dtype):
        return BOOLEAN
    if types.is_date(dtype) or types.is_timestamp(dtype):
        return DATE
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype) or types.is_null(dtype):
        return NUMBER
    text = dtype.value_type if types.is_dictionary(dtype) else dtype
    if types.is_time(dtype) or types.is_duration(dtype):
        return NUMBER
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
    where: Where = in_row,
    points: bool = True,
) -> Columns:
    """How the counted columns become features, or an error that names every column in the way.

    A column without any value is none, unless missing values are refused. ``made`` holds columns of texts and
    pictures, with the features of some of their rows. ``points`` says that 1.234 is not a thousand where no cell of the
    table tells.
    """
    made = made or {}
    problems = []
    found = []
    decimal = _decimal_mark([counts[column] for column in guessed if column in counts], points)
    for column, one in counts.items():
        try:
            if column in made:
                found.append(_made_column(column, *made[column], missing))
            elif one.rows > one.gaps or missing == "error":
                kind, text, one = _recognised(column, types[column], one, column in guessed, decimal, where)
                _check(column, kind, one, missing, max_categories, where)
                found.append(_column(column, kind, text, one, missing))
        except Problem as problem:
            problems.append(problem)
    refuse(name, problems)
    if not found:
        raise InputError(f"{name} has no columns to learn from.")
    mean, deviation = np.hstack([moments for _, moments in found])
    makers = {column: maker for column, (maker, _) in made.items()}
    columns = tuple(column for column, _ in found)
    return Columns(columns, id_column, mean, usable_scale(mean, deviation), makers=makers)


def _made_column(name: str, maker: TextFeatures | ImageFeatures, X: Array, missing: str) -> tuple[Column, Array]:
    """A column of texts or pictures, and its moments: one deviation for all, so that components keep their weight."""
    kind = TEXT if isinstance(maker, TextFeatures) else IMAGE
    deviation = np.full(maker.width, np.sqrt(X.var(axis=0).mean()))
    fill = 0.0 if missing == "mean" and kind == IMAGE else None
    return Column(name, kind, fill=fill), np.array([X.mean(axis=0), deviation])


def _decimal_mark(counts: Iterable[ColumnCounts], points: bool) -> str | None:
    """The decimal mark of all columns whose cells tell; "" where none tells and points are decimal points."""
    clear: Counter[str] = Counter()
    for found in counts:
        for mark in DECIMALS:
            n = found.form(mark).n
            clear[mark] += (n - found.n_both) * (n + found.gaps + found.marks.total() == found.rows)
    marks = list(+clear)
    return marks[0] if len(marks) == 1 else "" if points and not marks else None


def _recognised(
    column: str, dtype: ArrowType, found: ColumnCounts, guessed: bool, decimal: str | None, where: Where
) -> tuple[Kind, Spelling | None, ColumnCounts]:
    """What a column holds, with its counts; a problem where it is not clear."""
    kind = kind_of(dtype)
    if kind is None:
        raise Problem("neither numbers, dates nor texts in", _noted(column, str(dtype)), _DROP)
    present = found.rows - found.gaps
    if kind != CATEGORY or not found.forms or not present:
        return kind, None, found
    form = _form(column, found, decimal, where)
    numbers = found.form(form)
    n_marks = found.marks.total()
    rest = present - numbers.n - n_marks
    if not guessed and form == ".":
        # Digits that are declared to be a text are one.
        return CATEGORY, None, found
    if numbers.n and not rest:
        text = Spelling(form, tuple(sorted(found.marks)), "unclear" in found.odd and form in DECIMALS)
        counted = replace(found, gaps=found.gaps + n_marks, forms={".": numbers})
        return DATE if form in DATES else NUMBER, None if text == Spelling(".") else text, counted
    if guessed and found.texts is not None and {text.strip() for text in found.texts} <= {*_FALSE, *_TRUE}:
        n_true = sum(number for text, number in found.texts.items() if text.strip() in _TRUE)
        share = n_true / present
        return BOOLEAN, None, replace(found, forms={".": Moments(present, share, n_true * (1 - share))})
    if numbers.n < _NEARLY_ALL * present:
        return CATEGORY, None, found
    row, text_there = found.odd[form]
    note = f"{rest:,}, the first {quoted(text_there)} in {where(row)}"
    raise Problem(
        f"cells that are no {'dates' if form in DATES else 'numbers'} in",
        _noted(column, note),
        f"Correct the cells; or leave the column out with `drop`; or, if its texts are categories, say so: "
        f"`categories=[{quoted(column)}]`.",
    )


def _form(column: str, found: ColumnCounts, decimal: str | None, where: Where) -> Form:
    """The form of most cells; a problem where two fit alike."""
    best = max(FORMS, key=lambda form: found.form(form).n)
    if found.n_short > max(found.form(best).n, _NEARLY_ALL * (found.rows - found.gaps - 1)):
        raise Problem(
            "dates with two digits for the year in", quoted(column), f"Write four, as in 2021-12-31; or: {_DROP}"
        )
    row, text = found.odd.get("unclear", (0, ""))
    if best == "." and text and found.form(",").n == found.form(".").n:
        if decimal in DECIMALS:
            return decimal
        if decimal is None or "," in text:
            raise Problem(
                "marks that may stand between thousands or before decimals in",
                _noted(column, f"{quoted(text)} in {where(row)}"),
                f"Write the numbers without marks between thousands and with a decimal point; or: {_DROP}",
            )
    if best == "d/m/y" and found.form("m/d/y").n == found.form(best).n:
        raise Problem(
            "dates that may be day/month or month/day in", quoted(column), f"Write them as 2021-12-31; or: {_DROP}"
        )
    return best


_DROP = "Leave the column out with `drop`."


def _check(column: str, kind: Kind, found: ColumnCounts, missing: str, max_categories: int, where: Where) -> None:
    """What is wrong with the values of a column."""
    if found.gaps and missing == "error":
        row, _ = min(cell for what, cell in found.odd.items() if what in ("gap", "mark"))
        raise Problem(
            "missing values in",
            _noted(column, f"{found.gaps:,}, the first in {where(row)}"),
            "Leave out `missing='error'`, or pass `missing='mean'` to put in the column's mean (most frequent text), "
            "or leave columns out with `drop`.",
        )
    if found.n_infinite:
        raise _infinite(column, where(found.odd["infinite"][0]))
    if kind == NUMBER and _are_codes(found):
        raise Problem(
            "what looks like pair codes, as every number but 0 stands on two rows, in",
            quoted(column),
            f"Learn from them with `codes={quoted(column)}`, or leave the column out with `drop`.",
        )
    if kind == CATEGORY and (found.texts is None or len(found.texts) > max_categories):
        number = f"more than {MANY_TEXTS:,}" if found.texts is None else f"{len(found.texts):,}"
        some = list(found.texts or ())[:_FIRST]
        if some and sum(map(len, some)) > _LONG * len(some):
            raise Problem("long texts in", _noted(column, number), "Learn from their words with `text`, or leave them "
                          "out with `drop`.")  # fmt: skip
        raise Problem(
            f"more than {max_categories} different texts in",
            _noted(column, number),
            "Name the ids with `id_column`, leave columns out with `drop`, learn from their words with `text`, or "
            "raise `max_categories`.",
        )


def _infinite(column: str, place: str) -> Problem:
    return Problem("infinite values in", _noted(column, place), "Replace them, or leave the column out with `drop`.")


def _are_codes(found: ColumnCounts) -> bool:
    """A column of whole numbers of which every one but 0 stands on two rows is no feature."""
    if found.n_fractions or not found.n_zeros or found.n_zeros == found.form(".").n:
        return False
    if found.texts is None:
        return found.check == 0
    times = [number for text, number in found.texts.items() if float(text)]
    return len(times) >= _FEW_PAIRS and set(times) == {2}


def _noted(name: str, note: str) -> str:
    return f"{quoted(name)} ({shortened(note, 120)})"


def _column(name: str, kind: Kind, text: Spelling | None, found: ColumnCounts, missing: str) -> tuple[Column, Array]:
    """A column, and mean and deviation of its features over all rows, gaps filled."""
    share = found.gaps / found.rows
    marked = missing == "auto" and found.gaps >= _GAPS[0] and share >= _GAPS[1]
    if kind != CATEGORY:
        _, mean, squares, low, high = found.form(".")
        cycles = tuple(c for c in CYCLES if kind == DATE and _SPREAD[c] < high - low < _LIFETIME)
        kept = [0, *(1 + 2 * k + j for k, c in enumerate(CYCLES) if c in cycles for j in (0, 1))]
        mean, squares = np.atleast_1d(mean)[kept], np.atleast_1d(squares)[kept]
        deviation = np.sqrt(squares / found.rows)
        fill = None if missing == "error" else float(mean[0])
        moments = np.array([[*mean, *[share] * marked], [*deviation, *[np.sqrt(share * (1 - share))] * marked]])
        return Column(name, kind, fill=fill, text=text, n_gaps=found.gaps, marked=marked, cycles=cycles), moments
    texts = found.texts or Counter()
    # The first in the alphabet of those that occur most often, whatever the order of the rows.
    usual = {"mean": min(texts, key=lambda text: (-texts[text], text)), "auto": ""}.get(missing)
    names = tuple(sorted({*texts, *[""] * marked}))
    shares = np.array([texts[text] + found.gaps * (text == usual) for text in names]) / found.rows
    moments = np.array([shares, np.sqrt(shares * (1 - shares))])
    return Column(name, kind, names, usual, n_gaps=found.gaps), moments


def _read_numbers(column: Column, values: ArrowColumn, feature: Array, where: Where) -> None:
    """Write the numbers of a column, NaN in gaps, however a text file spells them."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    kind = kind_of(values.type)
    odd: Mask = np.zeros(1, dtype=bool)
    if kind == CATEGORY and column.kind == BOOLEAN:
        place = pc.index_in(trimmed(values), value_set=pa.array((*_FALSE, *_TRUE)))
        odd = np.asarray(place.is_null()) & np.asarray(values.is_valid())
        feature[:] = numbers(pc.greater_equal(place, len(_FALSE)))
    elif kind == CATEGORY:
        feature[:], odd = read_texts(values, column.text or Spelling("y-m-d" if column.kind == DATE else "."))
    elif kind is None or ((kind == DATE) != (column.kind == DATE) and values.null_count < len(values)):
        odd = np.asarray(values.is_valid())
    else:
        feature[:] = numbers(values)
    if odd.any():
        place = int(odd.argmax())
        note = f"{int(odd.sum()):,}, the first {quoted(str(values[place].as_py()))} in {where(place)}"
        held = {NUMBER: "numbers", BOOLEAN: "true or false", DATE: "dates"}[column.kind]
        raise Problem(
            f"cells that are not {held}, as in training, in", _noted(column.name, note), "Correct or empty these cells."
        )


def _one_hot(column: Column, values: ArrowColumn, block: Array, where: Where) -> int:
    """Write ones into the block; give back how many texts are no known category."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    values = values.cast(pa.string())
    n_known = 0
    if values.null_count:
        _refuse_missing(column, np.asarray(values.is_null()), where)
        # Gaps that were there in training are nothing new.
        n_known = values.null_count if column.n_gaps and column.fill not in column.categories else 0
        values = pc.fill_null(values, column.fill)
    place = np.asarray(pc.fill_null(pc.index_in(values, value_set=pa.array(column.categories, pa.string())), -1))
    known = np.flatnonzero(place >= 0)
    block[place[known], known] = 1.0
    return len(place) - len(known) - n_known


def _refuse_missing(column: Column, gaps: Mask, where: Where) -> None:
    if column.fill is None:
        raise Problem(
            "missing values, for which the model has no stand-in, in",
            _noted(column.name, f"{int(gaps.sum()):,}, the first in {where(int(gaps.argmax()))}"),
            "Fill them in, or fit again without `missing='error'`.",
        )


def numbers(values: ArrowColumn) -> NDArray[Any]:
    """A column as numbers, dates and times as days; as floats with NaN where some are missing."""
    pa = require("pyarrow", "files")
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
