"""What the rows of a column add up to, and what that makes of it: numbers, dates, categories.

The sums are the same for a table in memory and for one that streams by, in any order. In a text file everything is
text, so there the kind of a column is decided by all of its texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sdulearn import spelling
from sdulearn.columns import Column, Columns, Kind, Problem, Where, infinite, kind_of, noted, numbers, refuse
from sdulearn.errors import InputError, pa, pc, quoted
from sdulearn.io.images import ImageFeatures
from sdulearn.pairs import pair_checksum
from sdulearn.spelling import CYCLES, DATES, DECIMALS, FALSE, FORMS, TRUE, Cycle, Form, Spelling
from sdulearn.text_columns import TextFeatures
from sdulearn.types import Array, ArrowColumn, ArrowType, Codes, Mask

# Nobody wants a feature for each of so many texts; beyond it they are no longer counted one by one.
MANY_TEXTS = 10_000
# Numbers are counted one by one only where the first of them are few different ones.
_FIRST = 2_000
_FEW = 1_000
# From this share of numbers on, a column of texts is taken for one of numbers with mistakes in it.
_NEARLY_ALL = 0.9
# A column of numbers that come in twos by chance has fewer of them than this.
_FEW_PAIRS = 5
# Fewer gaps than these, in number and as a share, have no feature of their own.
_GAPS = (10, 0.01)
# Days over which dates must spread for their place in a cycle to be a feature. Over so long a time they are mostly
# dates of birth, whose weekday means nothing.
_SPREAD: dict[Cycle, float] = {"year": 366.0, "week": 14.0}
_LIFETIME = 20 * 366.0
_DROP = "Leave the column out with `drop`."


class Moments(NamedTuple):
    """Number of values, mean, and sum of squares about it; of dates also of their cycles."""

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
        features = spelling.with_cycles(values, cycles) if cycles else values
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
    # numbers or days that cells hold, by the form that spells them; "." where they are no texts
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
    # the first cell that is no mark and not of a form; the first "gap", "infinite" and "unclear"
    # one, such as 1,234, which may be more than a thousand
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
    if kind != "category":
        return _count_numbers(numbers(values), values, rows, kind)
    if pa.types.is_dictionary(values.type):
        times = _frequencies(values.drop_null().value_counts())
        odd = _firsts(rows, gap=np.asarray(values.is_null()))
        return ColumnCounts(len(values), values.null_count, texts=times, odd=odd)
    # Most files have no blanks around numbers, and to look for some takes long.
    texts = values
    plain = spelling.plain_numbers(texts) if guessed else None
    if guessed and plain is None:
        texts = spelling.trimmed(values)
        plain = spelling.plain_numbers(texts)
    # "nan" is a number for Arrow, and a mark for us.
    if plain is None or np.isnan(found := np.asarray(plain)).sum() > values.null_count:
        return _count_texts(values, rows)
    return _count_plain(found, values, texts, rows)


def _count_numbers(found: NDArray[Any], cells: ArrowColumn, rows: Codes, kind: Kind) -> ColumnCounts:
    """Numbers, or days, and the cells that they were read from."""
    floats = np.asarray(found, dtype=np.float64)
    finite = bool(np.isfinite(floats).all())
    present = floats if finite else floats[~np.isnan(floats)]
    moments = Moments.of(present, CYCLES if kind == "date" else ())
    n_infinite = int(np.isinf(present).sum())
    n_fractions = int(np.sum(present != np.rint(present)))
    check = 0
    if not n_fractions and not n_infinite and np.abs(present).max(initial=0) < 2**53:
        check = pair_checksum(present.astype(np.int64))
    are_few = kind != "date" and len(cells[:_FIRST].unique()) <= _FEW
    # Of numbers of their own type fractions say nothing; a column of texts may hold categories too.
    counted = are_few and (kind_of(cells.type) == "category" or not n_fractions)
    return ColumnCounts(
        len(floats),
        len(floats) - len(present),
        {".": moments},
        n_infinite=n_infinite,
        n_fractions=n_fractions,
        n_zeros=int(np.sum(present == 0)),
        check=check,
        texts=_frequencies(cells.drop_null().value_counts()) if counted else None,
        odd={} if finite else _firsts(rows, gap=np.isnan(floats), infinite=np.isinf(floats)),
    )


def _count_plain(found: Array, values: ArrowColumn, texts: ArrowColumn, rows: Codes) -> ColumnCounts:
    """Texts that are plain numbers, and what they are if 1.234 is more than a thousand."""
    place = np.asarray(pc.fill_null(pc.find_substring(texts, "."), -1))
    is_pointed = place >= 0
    thousands = is_pointed & (np.asarray(pc.fill_null(pc.binary_length(texts), 0)) - place == len(".000"))
    some = texts.filter(pa.array(thousands))
    thousands[thousands] = spelling.matching(some, spelling.THOUSANDS)
    present = ~np.isnan(found)
    both = present & (thousands | ~is_pointed)
    counted = _count_numbers(found, values, rows, "number")
    odd = _firsts(rows, texts, **dict.fromkeys(FORMS[2:], present), **{",": present & ~both, "unclear": thousands})
    as_commas = Moments.of(np.where(thousands, np.rint(1000 * found), found)[both])
    forms = {**counted.forms, ",": as_commas}
    return replace(counted, forms=forms, n_both=int(both.sum()), odd={**counted.odd, **odd})


def _count_texts(values: ArrowColumn, rows: Codes) -> ColumnCounts:
    """Texts of which some are no plain numbers, by each different one, the first ones first."""
    counted = values.drop_null().value_counts()
    different, times = counted.flatten()
    texts = spelling.trimmed(different)
    number = np.asarray(times)
    marks = spelling.are_marks(texts)
    none = np.zeros_like(marks)
    found = {form: spelling.spelled(texts, form) for form in spelling.possible_forms(texts)}
    fits = {form: ~np.isnan(one) for form, one in found.items()}
    forms: dict[str, Moments] = {
        form: Moments.of(np.repeat(one[fits[form]], number[fits[form]]), CYCLES if form in DATES else ())
        for form, one in found.items()
    }
    both = fits["."] & fits[","] if found else none
    too_large = np.isinf(found["."]) if found else none
    unclear = both & spelling.matching(texts, spelling.THOUSANDS) if both.any() else none
    others = {form: ~fits.get(form, none) & ~marks for form in FORMS}
    places = np.arange(len(texts))
    firsts = _firsts(places, texts, **others, unclear=unclear, mark=marks, infinite=too_large)
    # The first of its kind is the first row with that text.
    odd = {what: (int(rows[values.index(different[place]).as_py()]), text) for what, (place, text) in firsts.items()}
    return ColumnCounts(
        len(values),
        values.null_count,
        forms or {".": Moments()},
        n_infinite=int(too_large.sum()),
        n_fractions=1,
        texts=_frequencies(counted),
        marks=Counter({texts[k].as_py(): int(number[k]) for k in np.flatnonzero(marks)}),
        n_both=int(number[both].sum()),
        n_short=int(number[spelling.matching(texts, spelling.SHORT_YEAR)].sum()) if "y-m-d" in found else 0,
        odd={**odd, **_firsts(rows, gap=np.asarray(values.is_null()))},
    )


def _firsts(rows: Codes, texts: ArrowColumn | None = None, **masks: Mask) -> dict[str, Cell]:
    """The first cell of each mask that has any, of rows with these numbers."""
    places = {what: int(mask.argmax()) for what, mask in masks.items() if mask.any()}
    return {what: (int(rows[k]), "" if texts is None else texts[k].as_py()) for what, k in places.items()}


def _frequencies(counted: ArrowColumn) -> Counter[str] | None:
    """How often each value occurs, as text, by Arrow's counts; None where there are too many."""
    values, counts = counted.flatten()
    if len(values) > MANY_TEXTS:
        return None
    texts = values.cast(pa.string())
    return Counter(dict(zip(texts.to_pylist(), counts.to_pylist(), strict=True)))


def decide(
    name: str,
    types: Mapping[str, ArrowType],
    counts: Mapping[str, ColumnCounts],
    guessed: Collection[str],
    id_column: str | None,
    missing: str,
    max_categories: int,
    where: Where,
    points: bool,
    made: Mapping[str, tuple[TextFeatures | ImageFeatures, Array]],
) -> Columns:
    """How the counted columns become features, or an error that names every column in the way.

    ``made`` holds columns of texts and pictures, with the features of some of their rows.
    ``points`` says that 1.234 is not a thousand where no cell of the table tells.
    """
    problems = []
    found = []
    decimal = _decimal_mark([counts[column] for column in guessed if column in counts], points)
    for column, one in counts.items():
        try:
            if column in made:
                found.append(_made_column(column, *made[column], missing))
            # A column without any value is none, unless missing values are refused.
            elif one.rows > one.gaps or missing == "error":
                kind, text, one = _recognised(column, types[column], one, column in guessed, decimal, where)
                _check(column, kind, one, missing, max_categories, where)
                found.append(_column(column, kind, text, one, missing))
        except Problem as problem:
            problems.append(problem)
    refuse(name, problems)
    if not found:
        raise InputError(f"{name} has no columns to learn from.")
    columns, moments = zip(*found, strict=True)
    mean, deviation = np.hstack(moments)
    makers = {column: maker for column, (maker, _) in made.items()}
    return Columns(columns, id_column, mean, usable_scale(mean, deviation), makers=makers)


def usable_scale(mean: Array, deviation: Array) -> Array:
    """The deviation, or 1 for a constant column, whose deviation is rounding."""
    return np.where(deviation > 1e-10 * np.maximum(np.abs(mean), 1e-200), deviation, 1.0)


def _made_column(name: str, maker: TextFeatures | ImageFeatures, X: Array, missing: str) -> tuple[Column, Array]:
    """A column of texts or pictures; with one deviation for all, components keep their weight."""
    deviation = np.full(maker.width, np.sqrt(X.var(axis=0).mean()))
    fill = 0.0 if missing == "mean" and maker.kind == "image" else None
    return Column(name, maker.kind, fill=fill), np.array([X.mean(axis=0), deviation])


def _decimal_mark(counts: Iterable[ColumnCounts], points: bool) -> str | None:
    """The decimal mark by all columns that tell; "" where none does and points are decimal."""
    marks = set()
    for found in counts:
        for mark in DECIMALS:
            n = found.form(mark).n
            if n > found.n_both and n + found.gaps + found.marks.total() == found.rows:
                marks.add(mark)
    if len(marks) == 1:
        return marks.pop()
    return "" if points and not marks else None


def _recognised(
    column: str, dtype: ArrowType, found: ColumnCounts, guessed: bool, decimal: str | None, where: Where
) -> tuple[Kind, Spelling | None, ColumnCounts]:
    """What a column holds, with its counts; a problem where it is not clear."""
    kind = kind_of(dtype)
    if kind is None:
        raise Problem("neither numbers, dates nor texts in", noted(column, str(dtype)), _DROP)
    present = found.rows - found.gaps
    if kind != "category" or not found.forms or not present:
        return kind, None, found
    form = _form(column, found, decimal, where)
    numbers = found.form(form)
    n_marks = found.marks.total()
    rest = present - numbers.n - n_marks
    if not guessed and form == ".":
        # Digits that are declared to be a text are one.
        return "category", None, found
    if numbers.n and not rest:
        text = Spelling(form, tuple(sorted(found.marks)), "unclear" in found.odd and form in DECIMALS)
        kind = "date" if form in DATES else "number"
        counted = replace(found, gaps=found.gaps + n_marks, forms={".": numbers})
        return kind, None if text == Spelling(".") else text, counted
    if guessed and found.texts is not None and {text.strip() for text in found.texts} <= {*FALSE, *TRUE}:
        n_true = sum(number for text, number in found.texts.items() if text.strip() in TRUE)
        share = n_true / present
        moments = Moments(present, share, n_true * (1 - share))
        return "boolean", None, replace(found, forms={".": moments})
    if numbers.n < _NEARLY_ALL * present:
        return "category", None, found
    row, text_there = found.odd[form]
    note = noted(column, f"{rest:,}, the first {quoted(text_there)} in {where(row)}")
    remedy = "Correct the cells; or leave the column out with `drop`; or, if its texts are"
    what = f"cells that are no {'dates' if form in DATES else 'numbers'} in"
    raise Problem(what, note, f"{remedy} categories, say so: `categories=[{quoted(column)}]`.")


def _form(column: str, found: ColumnCounts, decimal: str | None, where: Where) -> Form:
    """The form of most cells; a problem where two fit alike."""
    best = max(FORMS, key=lambda form: found.form(form).n)
    if found.n_short > max(found.form(best).n, _NEARLY_ALL * (found.rows - found.gaps - 1)):
        remedy = f"Write four, as in 2021-12-31; or: {_DROP}"
        raise Problem("dates with two digits for the year in", quoted(column), remedy)
    row, text = found.odd.get("unclear", (0, ""))
    if best == "." and text and found.form(",").n == found.form(".").n:
        if decimal in DECIMALS:
            return decimal
        if decimal is None or "," in text:
            raise Problem(
                "marks that may stand between thousands or before decimals in",
                noted(column, f"{quoted(text)} in {where(row)}"),
                f"Write the numbers without marks between thousands and with a decimal point; or: {_DROP}",
            )
    if best == "d/m/y" and found.form("m/d/y").n == found.form(best).n:
        remedy = f"Write them as 2021-12-31; or: {_DROP}"
        raise Problem("dates that may be day/month or month/day in", quoted(column), remedy)
    return best


def _check(column: str, kind: Kind, found: ColumnCounts, missing: str, max_categories: int, where: Where) -> None:
    """What is wrong with the values of a column."""
    if found.gaps and missing == "error":
        row, _ = min(cell for what, cell in found.odd.items() if what in ("gap", "mark"))
        raise Problem(
            "missing values in",
            noted(column, f"{found.gaps:,}, the first in {where(row)}"),
            "Leave out `missing='error'`, or pass `missing='mean'` to put in the column's mean "
            "(most frequent text), or leave columns out with `drop`.",
        )
    if found.n_infinite:
        raise infinite(column, where(found.odd["infinite"][0]))
    if kind == "number" and _are_codes(found):
        raise Problem(
            "what looks like pair codes, as every number but 0 stands on two rows, in",
            quoted(column),
            f"Learn from them with `codes={quoted(column)}`, or leave the column out with `drop`.",
        )
    if kind == "category" and (found.texts is None or len(found.texts) > max_categories):
        number = f"more than {MANY_TEXTS:,}" if found.texts is None else f"{len(found.texts):,}"
        raise Problem(
            f"more than {max_categories} different texts in",
            noted(column, number),
            "Name the ids with `id_column`, leave columns out with `drop`, learn from their words "
            "with `text`, or raise `max_categories`.",
        )


def _are_codes(found: ColumnCounts) -> bool:
    """A column of whole numbers of which every one but 0 stands on two rows is no feature."""
    if found.n_fractions or not found.n_zeros or found.n_zeros == found.form(".").n:
        return False
    if found.texts is None:
        return found.check == 0
    times = [number for text, number in found.texts.items() if float(text)]
    return len(times) >= _FEW_PAIRS and set(times) == {2}


def _column(name: str, kind: Kind, text: Spelling | None, found: ColumnCounts, missing: str) -> tuple[Column, Array]:
    """A column, and mean and deviation of its features over all rows, gaps filled."""
    share = found.gaps / found.rows
    marked = missing == "auto" and found.gaps >= _GAPS[0] and share >= _GAPS[1]
    if kind != "category":
        _, mean, squares, low, high = found.form(".")
        cycles = tuple(c for c in CYCLES if kind == "date" and _SPREAD[c] < high - low < _LIFETIME)
        kept = [0, *(1 + 2 * k + j for k, c in enumerate(CYCLES) if c in cycles for j in (0, 1))]
        mean, variance = np.reshape([mean, squares / found.rows], (2, -1))[:, kept]
        fill = None if missing == "error" else float(mean[0])
        column = Column(name, kind, (), fill, text, found.gaps, marked, cycles)
        return column, np.hstack([[mean, np.sqrt(variance)], _moments(np.array([share] * marked))])
    texts = found.texts or Counter()
    # The first in the alphabet of those that occur most often, whatever the order of the rows.
    usual = {"mean": min(texts, key=lambda text: (-texts[text], text)), "auto": ""}.get(missing)
    names = tuple(sorted({*texts, *[""] * marked}))
    shares = np.array([texts[text] + found.gaps * (text == usual) for text in names]) / found.rows
    return Column(name, kind, names, usual, n_gaps=found.gaps), _moments(shares)


def _moments(shares: Array) -> Array:
    """Mean and deviation of features that are 1 in these shares of the rows, and else 0."""
    return np.array([shares, np.sqrt(shares * (1 - shares))])
