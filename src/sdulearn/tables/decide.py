"""Count what the rows of a column hold, and decide what it is: numbers, dates or categories.

The counts of two stretches of rows add up, in any order, so that a table in memory and one that is read in parts give
the same columns. In a text file every cell is text, and all texts of a column decide its kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import pa, pc, quoted
from sdulearn.findings import OddValue
from sdulearn.tables import spelling
from sdulearn.tables.columns import Column, Kind, Problem, Where, infinite, kind_of, noted, numbers
from sdulearn.tables.spelling import CYCLES, DATES, DECIMALS, FALSE, FORMS, TRUE, Cycle, Form, Spelling
from sdulearn.types import Array, ArrowColumn, ArrowType, Codes, Mask

# How a column is read: by its type; as declared text, where digits are not numbers; as text of a text file, which may
# spell anything; as categories, sentences or picture files, as the user says.
Role: TypeAlias = Literal["typed", "string", "cell", "category", "text", "image"]

# Most different values that are counted one by one; nobody wants so many categories.
MANY_TEXTS = 10_000
# Numbers are counted one by one only where at most half of those in the first rows are different.
_FIRST = 2_000
# Share of numbers from which on a column of texts holds numbers with mistakes among them.
_NEARLY_ALL = 0.9
# Gaps, in number and as a share, from which on they have a feature of their own.
_GAPS = (10, 0.01)
# Days over which dates must spread for their place in a cycle to be a feature. Over a lifetime they are mostly dates of
# birth, whose weekday means nothing.
_SPREAD: dict[Cycle, float] = {"year": 366.0, "week": 14.0}
_LIFETIME = 20 * 366.0
_DROP = "Leave the column out with `drop`."


# An odd value is this many times the spread of most others away from the nearest of them, which are so many.
_FAR_REPEATED, _FAR_SINGLE = 5, 30
_MOST = (0.05, 0.95)
_USUAL = 10
_MOST_ODD = 5


class Moments(NamedTuple):
    """Number, mean, sum of squares about the mean (of dates with cycles) and range."""

    n: int = 0
    mean: Any = 0.0
    squares: Any = 0.0
    low: float = np.inf
    high: float = -np.inf

    @staticmethod
    def of(values: Array, cycles: Iterable[Cycle] = ()) -> Moments:
        """Compute the moments of some values."""
        if not len(values):
            return Moments()
        features = spelling.with_cycles(values, cycles) if cycles else values
        with np.errstate(invalid="ignore", over="ignore"):
            mean = features.mean(axis=-1)
            squares = np.square(features - mean[..., None]).sum(axis=-1)
        if not cycles:
            mean, squares = float(mean), float(squares)
        return Moments(len(values), mean, squares, float(values.min()), float(values.max()))

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        """Join two sets of values without cancellation (Chan, Golub and LeVeque)."""
        if not self.n or not other.n:
            return other if other.n else self
        n = self.n + other.n
        shift = other.mean - self.mean
        squares = self.squares + other.squares + shift**2 * (self.n * other.n / n)
        ends = min(self.low, other.low), max(self.high, other.high)
        return Moments(n, self.mean + shift * (other.n / n), squares, *ends)


# Number of a row, the first below the header being 0, and text of a cell.
Cell: TypeAlias = tuple[int, str]
_NOTHING = Moments()
_SUMS = ("rows", "gaps", "n_infinite", "n_fractions", "marks", "n_both", "n_short")


@dataclass(frozen=True)
class ColumnCounts:
    """What some rows of a column hold; ``+`` joins two stretches of rows."""

    rows: int
    gaps: int  # rows without a value
    # numbers or days by the form that spells them; "." where the cells are not texts
    forms: Mapping[str, Moments] = field(default_factory=dict)
    n_infinite: int = 0
    n_fractions: int = 0  # numbers that are not whole
    # how often each value occurs; None where there are too many
    texts: Counter[str] | None = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)  # texts that stand for a missing number
    n_both: int = 0  # texts that are numbers with a decimal point and with a decimal comma
    n_short: int = 0  # dates with two digits for the year
    # first cell that is not of a form, by form; first "mark", "gap", "infinite" number, and
    # "unclear" one such as 1,234, which may be more than a thousand
    first: Mapping[str, Cell] = field(default_factory=dict)

    def __add__(self, other: ColumnCounts) -> ColumnCounts:
        texts = None
        if self.texts is not None and other.texts is not None and len(self.texts) <= MANY_TEXTS:
            texts = self.texts + other.texts
        forms = {form: self.form(form) + other.form(form) for form in {**self.forms, **other.forms}}
        first = {**self.first, **{what: min(cell, self.first.get(what, cell)) for what, cell in other.first.items()}}
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return replace(self, forms=forms, texts=texts, first=first, **sums)

    def form(self, form: str) -> Moments:
        """Return the moments of the numbers of a form."""
        return self.forms.get(form, _NOTHING)


def count(values: ArrowColumn, rows: Codes, role: Role) -> ColumnCounts:
    """Count a column of the rows with these numbers."""
    kind = kind_of(values.type)
    if kind is None or role in ("text", "image"):
        return ColumnCounts(len(values), values.null_count)
    if kind != "category":
        return _count_numbers(numbers(values), values, rows, kind)
    if role == "category" or pa.types.is_dictionary(values.type):
        first = _first_cells(rows, gap=np.asarray(values.is_null()))
        times = _frequencies(values.drop_null().value_counts())
        return ColumnCounts(len(values), values.null_count, texts=times, first=first)
    if role == "cell":
        # Trimming is slow, and most files have no blanks around numbers.
        texts, plain = values, spelling.plain_numbers(values)
        if plain is None:
            texts = spelling.trimmed(values)
            plain = spelling.plain_numbers(texts)
        # "nan" is a number for Arrow, and a mark for a missing one here.
        if plain is not None and np.isnan(floats := np.asarray(plain)).sum() == values.null_count:
            return _count_plain(floats, values, texts, rows)
    return _count_texts(values, rows)


def _count_numbers(values: NDArray[Any], cells: ArrowColumn, rows: Codes, kind: Kind) -> ColumnCounts:
    """Count numbers, or days, and the cells that they were read from."""
    floats = np.asarray(values, dtype=np.float64)
    finite = bool(np.isfinite(floats).all())
    present = floats if finite else floats[~np.isnan(floats)]
    n_fractions = int(np.sum(present != np.rint(present)))
    are_few = kind != "date" and 2 * len(cells[:_FIRST].unique()) <= _FIRST
    # Fractions are counted only in a column of texts, which may hold categories.
    counted = are_few and (kind_of(cells.type) == "category" or not n_fractions)
    return ColumnCounts(
        len(floats),
        len(floats) - len(present),
        {".": Moments.of(present, CYCLES if kind == "date" else ())},
        n_infinite=int(np.isinf(present).sum()),
        n_fractions=n_fractions,
        texts=_frequencies(cells.drop_null().value_counts()) if counted else None,
        first={} if finite else _first_cells(rows, gap=np.isnan(floats), infinite=np.isinf(floats)),
    )


def _count_plain(floats: Array, values: ArrowColumn, texts: ArrowColumn, rows: Codes) -> ColumnCounts:
    """Count texts that are plain numbers, also with points between thousands: 1.234."""
    place = np.asarray(pc.fill_null(pc.find_substring(texts, "."), -1))
    is_pointed = place >= 0
    thousands = is_pointed & (np.asarray(pc.fill_null(pc.binary_length(texts), 0)) - place == len(".000"))
    thousands[thousands] = spelling.matching(texts.filter(pa.array(thousands)), spelling.THOUSANDS)
    present = ~np.isnan(floats)
    both = present & (thousands | ~is_pointed)
    counted = _count_numbers(floats, values, rows, "number")
    not_of = {**dict.fromkeys(FORMS[2:], present), ",": present & ~both}
    as_commas = Moments.of(np.where(thousands, np.rint(1000 * floats), floats)[both])
    return replace(
        counted,
        forms={**counted.forms, ",": as_commas},
        n_both=int(both.sum()),
        first={**counted.first, **_first_cells(rows, texts, **not_of, unclear=thousands)},
    )


def _count_texts(values: ArrowColumn, rows: Codes) -> ColumnCounts:
    """Count texts of which some are not plain numbers, by each different text."""
    counted = values.drop_null().value_counts()
    different, times = counted.flatten()
    texts, number = spelling.trimmed(different), np.asarray(times)
    marks = spelling.are_marks(texts)
    none = np.zeros_like(marks)
    spelled = {form: spelling.spelled(texts, form) for form in spelling.possible_forms(texts)}
    fits = {form: ~np.isnan(days) for form, days in spelled.items()}
    forms: dict[str, Moments] = {
        form: Moments.of(np.repeat(days[fits[form]], number[fits[form]]), CYCLES if form in DATES else ())
        for form, days in spelled.items()
    }
    both = fits["."] & fits[","] if spelled else none
    too_large = np.isinf(spelled["."]) if spelled else none
    unclear = both & spelling.matching(texts, spelling.THOUSANDS) if both.any() else none
    not_of = {form: ~fits.get(form, none) & ~marks for form in FORMS}
    # Arrow counts texts in the order of their first rows.
    cells = _first_cells(np.arange(len(texts)), texts, **not_of, unclear=unclear, mark=marks, infinite=too_large)
    first = {what: (int(rows[values.index(different[place]).as_py()]), text) for what, (place, text) in cells.items()}
    return ColumnCounts(
        len(values),
        values.null_count,
        forms,
        n_infinite=int(too_large.sum()),
        n_fractions=1,
        texts=_frequencies(counted),
        marks=Counter({texts[k].as_py(): int(number[k]) for k in np.flatnonzero(marks)}),
        n_both=int(number[both].sum()),
        n_short=int(number[spelling.matching(texts, spelling.SHORT_YEAR)].sum()) if "y-m-d" in spelled else 0,
        first={**first, **_first_cells(rows, gap=np.asarray(values.is_null()))},
    )


def _first_cells(rows: Codes, texts: ArrowColumn | None = None, **masks: Mask) -> dict[str, Cell]:
    """Return the first cell of each mask that has any; ``rows`` are the numbers of the rows."""
    places = {what: int(mask.argmax()) for what, mask in masks.items() if mask.any()}
    return {what: (int(rows[k]), "" if texts is None else texts[k].as_py()) for what, k in places.items()}


def _frequencies(counted: ArrowColumn) -> Counter[str] | None:
    """Return how often each value occurs by Arrow's counts, without blanks around it; None if there are too many."""
    different, times = counted.flatten()
    if len(different) > MANY_TEXTS:
        return None
    frequencies: Counter[str] = Counter()
    for text, number in zip(different.cast(pa.string()).to_pylist(), times.to_pylist(), strict=True):
        frequencies[text.strip()] += number
    return frequencies


def odd_values(columns: Iterable[tuple[str, Array]]) -> list[OddValue]:
    """Report, for columns of numbers, a lowest or highest value that is far from all others; the farthest ones.

    A value that several rows have, such as -999, stands for something else; a single one must be much farther away.
    """
    found: list[tuple[float, OddValue]] = []
    for name, cells in columns:
        values = cells[np.isfinite(cells)]
        for extreme in (np.min, np.max) if len(values) > _USUAL else ():
            value = float(extreme(values))
            others = values[values != value]
            if len(others) < _USUAL:
                break
            gap = float(np.min(np.abs(others - value)))
            count = len(values) - len(others)
            low, high = np.quantile(others, _MOST)
            if gap > (_FAR_REPEATED if count > 1 else _FAR_SINGLE) * (high - low) > 0:
                low_high = {"low": float(others.min()), "high": float(others.max())}
                found.append((gap / (high - low), OddValue(column=name, value=value, count=count, **low_high)))
                values = others
    return [odd for _, odd in sorted(found, key=lambda one: -one[0])[:_MOST_ODD]]


def usable_scale(mean: Array, deviation: Array) -> Array:
    """Return the standard deviation, or 1 for a constant column, where it is but rounding error."""
    return np.where(deviation > 1e-10 * np.maximum(np.abs(mean), 1e-200), deviation, 1.0)


def decimal_mark(counts: Iterable[ColumnCounts], points: bool) -> str | None:
    """Return the decimal mark that columns of a text file show, "" for none but with ``points``, or None."""
    marks = set()
    for column in counts:
        n_present = column.rows - column.gaps - column.marks.total()
        marks |= {mark for mark in DECIMALS if column.n_both < column.form(mark).n == n_present}
    if len(marks) == 1:
        return marks.pop()
    return "" if points and not marks else None


def describe(
    name: str,
    dtype: ArrowType,
    counts: ColumnCounts,
    role: Role,
    decimal: str | None,
    missing: str,
    max_categories: int,
    where: Where,
) -> tuple[Column, Array]:
    """Return a column, and mean and variance of its features over all rows, gaps filled."""
    kind, text, counts = _recognised(name, dtype, counts, role, decimal, where)
    _check(name, kind, counts, missing, max_categories, where)
    share = counts.gaps / counts.rows
    marked = missing == "auto" and counts.gaps >= _GAPS[0] and share >= _GAPS[1]
    if kind != "category":
        _, mean, squares, low, high = counts.form(".")
        cycles = tuple(c for c in CYCLES if kind == "date" and _SPREAD[c] < high - low < _LIFETIME)
        kept = [0, *(1 + 2 * k + j for k, c in enumerate(CYCLES) if c in cycles for j in (0, 1))]
        moments = np.reshape([mean, squares / counts.rows], (2, -1))[:, kept]
        fill = None if missing == "error" else float(moments[0, 0])
        gaps = np.array([[share], [share * (1 - share)]])[:, : int(marked)]
        return Column(name, kind, (), fill, text, counts.gaps, marked, cycles), np.hstack([moments, gaps])
    texts = counts.texts or Counter()
    # Of the most frequent texts the first in the alphabet, whatever the order of the rows.
    usual = {"mean": min(texts, key=lambda text: (-texts[text], text)), "auto": ""}.get(missing)
    names = tuple(sorted({*texts, *[""] * marked}))
    shares = np.array([texts[text] + counts.gaps * (text == usual) for text in names]) / counts.rows
    return Column(name, kind, names, usual, n_gaps=counts.gaps), np.array([shares, shares * (1 - shares)])


def _recognised(
    column: str, dtype: ArrowType, counts: ColumnCounts, role: Role, decimal: str | None, where: Where
) -> tuple[Kind, Spelling | None, ColumnCounts]:
    """Return kind, spelling and counts of a column; raise where they are not clear."""
    kind = kind_of(dtype)
    if kind is None:
        raise Problem("neither numbers, dates nor texts in", noted(column, str(dtype)), _DROP)
    present = counts.rows - counts.gaps
    if kind != "category" or not present:
        return kind, None, counts
    form = _form(column, counts, decimal, where)
    numbers = counts.form(form)
    if role != "cell" and form == ".":
        return "category", None, counts
    n_marks = counts.marks.total()
    rest = present - numbers.n - n_marks
    if numbers.n and not rest:
        text = Spelling(form, tuple(sorted(counts.marks)), "unclear" in counts.first and form in DECIMALS)
        kind = "date" if form in DATES else "number"
        counted = replace(counts, gaps=counts.gaps + n_marks, forms={".": numbers})
        return kind, None if text == Spelling(".") else text, counted
    if role == "cell" and counts.texts is not None and {text.strip() for text in counts.texts} <= {*FALSE, *TRUE}:
        n_true = sum(number for text, number in counts.texts.items() if text.strip() in TRUE)
        share = n_true / present
        return "boolean", None, replace(counts, forms={".": Moments(present, share, n_true * (1 - share))})
    if numbers.n < _NEARLY_ALL * present:
        return "category", None, counts
    row, text_there = counts.first[form]
    raise Problem(
        f"cells that are not {'dates' if form in DATES else 'numbers'} in",
        noted(column, f"{rest:,}, the first {quoted(text_there)} in {where(row)}"),
        "Correct them, leave the column out with `drop`, or name it in `categories`.",
    )


def _form(column: str, counts: ColumnCounts, decimal: str | None, where: Where) -> Form:
    """Return the form of most cells; raise where two fit equally well."""
    best = max(FORMS, key=lambda form: counts.form(form).n)
    if counts.n_short > max(counts.form(best).n, _NEARLY_ALL * (counts.rows - counts.gaps - 1)):
        raise Problem("dates with two digits for the year in", quoted(column), f"Write four, or: {_DROP}")
    row, text = counts.first.get("unclear", (0, ""))
    if best == "." and text and counts.form(",").n == counts.form(".").n:
        if decimal in DECIMALS:
            return decimal
        if decimal is None or "," in text:
            raise Problem(
                "marks that may stand between thousands or before decimals in",
                noted(column, f"{quoted(text)} in {where(row)}"),
                f"Write no marks between thousands, and a decimal point; or: {_DROP}",
            )
    if best == "d/m/y" and counts.form("m/d/y").n == counts.form(best).n:
        raise Problem("dates that may be day/month or month/day in", quoted(column), f"Write 2021-12-31, or: {_DROP}")
    return best


def _check(column: str, kind: Kind, counts: ColumnCounts, missing: str, max_categories: int, where: Where) -> None:
    """Raise where the values of a column cannot be learned from."""
    if counts.gaps and missing == "error":
        row, _ = min(cell for what, cell in counts.first.items() if what in ("gap", "mark"))
        raise Problem(
            "missing values in",
            noted(column, f"{counts.gaps:,}, the first in {where(row)}"),
            "Leave out `missing='error'`, or pass `missing='mean'`, or leave columns out with `drop`.",
        )
    if counts.n_infinite:
        raise infinite(column, where(counts.first["infinite"][0]))
    if kind == "category" and (counts.texts is None or len(counts.texts) > max_categories):
        number = f"more than {MANY_TEXTS:,}" if counts.texts is None else f"{len(counts.texts):,}"
        raise Problem(
            f"more than {max_categories} different texts in",
            noted(column, number),
            "Name the ids with `id_column`, `drop` columns, learn from words with `text`, raise `max_categories`, or "
            "name a column as `groups` whose equal texts mark rows that belong together, such as those of one person.",
        )
