"""How the texts of a column spell numbers, dates and times.

A form is named by how it looks: ``.`` and ``,`` are numbers with a decimal point or comma; ``y-m-d``,
``d.m.y``, ``d/m/y`` and ``m/d/y`` are dates, with or without a time; ``h:m`` is a time of day. Dates
become days since 1970, times parts of a day.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from sdulearn.errors import pa, pc
from sdulearn.types import Array, ArrowColumn, Mask

Form: TypeAlias = Literal[".", ",", "y-m-d", "d.m.y", "d/m/y", "m/d/y", "h:m"]
Cycle: TypeAlias = Literal["year", "week"]
FORMS: tuple[Form, ...] = get_args(Form)
DECIMALS = FORMS[:2]
DATES = FORMS[2:6]
FALSE = ("false", "False", "FALSE", "0")
TRUE = ("true", "True", "TRUE", "1")
CYCLES: dict[Cycle, float] = {"year": 365.2425, "week": 7.0}
# Texts that stand for a missing number or date.
MARKS = ("-", "--", "---", "–", "—", ".", "..", "...", "*", "n.a.", "n/a", "na", "nan", "none", "null", "nil",
         "missing", "unknown", "k.a.", "#n/a", "?", "#div/0!", "#value!", "#ref!", "#name?", "#num!")  # fmt: skip
# Thousands may be separated by these or by the other decimal mark, as in 1,234.
_BETWEEN = " \u00a0\u202f'’"
_GROUPS = r"[1-9]\d{{0,2}}(?:[{between}{mark}]\d{{3}})+"
THOUSANDS = rf"^[+-]?{_GROUPS.format(between='.', mark=',')}$"
_DECIMALS = r"^[+-]?(?:\d+{decimal}?\d*|{decimal}\d+|{groups}(?:{decimal}\d+)?)(?:[eE][+-]?\d+)?$"
# 31.12.55 may mean 1955 or 2055.
SHORT_YEAR = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2}( .*)?$"
# Texts that are cast first: Arrow goes through all texts before it fails.
_PROBE = 100
# Arrow needs a name for every group.
_TIME = r"(?P<h>\d{1,2}):(?P<min>\d{2})(?::(?P<s>\d{2}(?:\.\d+)?))?"
_CLOCK = rf"(?:[T ]+{_TIME} ?(?P<zone>[+-]\d{{2}}:?\d{{2}})?Z?)?$"
_PATTERNS: dict[Form, str] = {
    ".": _DECIMALS.format(decimal=r"\.", groups=_GROUPS.format(between=_BETWEEN, mark=",")),
    ",": _DECIMALS.format(decimal=",", groups=_GROUPS.format(between=_BETWEEN, mark=".")),
    "y-m-d": rf"^(?P<y>\d{{4}})[./-](?P<m>\d{{1,2}})[./-](?P<d>\d{{1,2}}){_CLOCK}",
    "d.m.y": rf"^(?P<d>\d{{1,2}})\.(?P<m>\d{{1,2}})\.(?P<y>\d{{4}}){_CLOCK}",
    "d/m/y": rf"^(?P<d>\d{{1,2}})[/-](?P<m>\d{{1,2}})[/-](?P<y>\d{{4}}){_CLOCK}",
    "m/d/y": rf"^(?P<m>\d{{1,2}})[/-](?P<d>\d{{1,2}})[/-](?P<y>\d{{4}}){_CLOCK}",
    "h:m": rf"^{_TIME}$",
}


@dataclass(frozen=True)
class Spelling:
    """How texts spell the numbers or dates of a column."""

    form: Form
    marks: tuple[str, ...] = ()  # texts that stand for a missing one, beside an empty cell
    thousands: bool = False  # whether some are like 1,234, with thousands and no decimals


def trimmed(values: ArrowColumn) -> ArrowColumn:
    """Strip blanks around texts."""
    return pc.utf8_trim_whitespace(values.cast(pa.string()))


def matching(texts: ArrowColumn, pattern: str) -> Mask:
    """Return which texts match a regular expression."""
    return np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern), False))


def are_marks(texts: ArrowColumn) -> Mask:
    """Return which texts stand for a missing value."""
    return np.asarray(pc.is_in(pc.utf8_lower(texts), value_set=pa.array(MARKS)))


def possible_forms(texts: ArrowColumn) -> tuple[Form, ...]:
    """Return the forms that some of the texts may have, by how they begin."""
    if not matching(texts, r"^[+-]?[.,]?\d").any():
        return ()
    return FORMS if matching(texts, r"^\d{1,4}[./:-]\d").any() else DECIMALS


def spelled(texts: ArrowColumn, form: Form) -> Array:
    """Return the numbers, or days, that texts of a form spell; NaN for all others."""
    if form in DATES or form == "h:m":
        return _days(texts, form)
    cells = pc.if_else(pa.array(matching(texts, _PATTERNS[form])), texts, pa.scalar(None, pa.string()))
    cells = pc.replace_substring_regex(cells, f"[{_BETWEEN}{',' if form == '.' else '.'}]", "")
    return np.asarray(pc.replace_substring(cells, ",", ".").cast(pa.float64()))


def read_texts(values: ArrowColumn, spelling: Spelling) -> tuple[Array, Mask]:
    """Return the numbers, or days, of a column, NaN in gaps; and which cells are neither, or are ambiguous."""
    texts, plain = values, plain_numbers(values, spelling.form)
    if plain is None:
        texts = trimmed(values)
        if spelling.marks:
            marked = pc.is_in(texts, value_set=pa.array(spelling.marks))
            texts = pc.if_else(marked, pa.scalar(None, pa.string()), texts)
        plain = plain_numbers(texts, spelling.form)
    if plain is not None:
        return np.asarray(plain), np.zeros(len(texts), dtype=bool)
    floats = spelled(texts, spelling.form)
    unclear = np.zeros(len(texts), dtype=bool)
    if spelling.form in DATES:
        for form in DATES[:2]:
            floats = np.where(np.isnan(floats), spelled(texts, form), floats)
    elif spelling.form in DECIMALS:
        other = spelled(texts, "," if spelling.form == "." else ".")
        floats, unclear = _either(floats, other, spelling.thousands)
    return floats, unclear | (np.isnan(floats) & np.asarray(texts.is_valid()) & ~are_marks(texts))


def _either(usual: Array, other: Array, thousands: bool) -> tuple[Array, Mask]:
    """Return numbers with the usual decimal mark, or else the other; and unclear cells."""
    only = np.isnan(other) & ~np.isnan(usual)
    foreign = np.isnan(usual) & ~np.isnan(other)
    two = ~np.isnan(usual) & ~np.isnan(other) & (usual != other)
    if foreign.any() and not only.any():
        return other, np.zeros_like(two)
    return np.where(foreign, other, usual), two & (foreign.any() or not (only.any() or thousands))


def plain_numbers(texts: ArrowColumn, form: Form = ".") -> ArrowColumn | None:
    """Read numbers of one form, several times faster; None where some have another."""
    if form not in DECIMALS or (form == "," and pc.any(pc.match_substring(texts, ".")).as_py()):
        return None
    texts = texts if form == "." else pc.replace_substring(texts, ",", ".")
    try:
        texts[:_PROBE].cast(pa.float64())
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _days(texts: ArrowColumn, form: Form) -> Array:
    """Return dates as days since 1970, times as parts of a day; NaN for 31.2.2021."""
    parts = pc.extract_regex(texts, _PATTERNS[form])
    names = [field.name for field in parts.type]

    def number(name: str) -> Array:
        if name not in names:
            return np.zeros(len(texts))
        cells = pc.fill_null(pc.struct_field(parts, name), "0")
        return np.asarray(pc.if_else(pc.equal(cells, ""), "0", cells).cast(pa.float64()))

    fits = np.asarray(parts.is_valid())
    hours = number("h") + number("min") / 60 + number("s") / 3600
    fits &= (hours < 24) & (number("min") < 60) & (number("s") < 60)
    days = np.zeros(len(texts))
    if form != "h:m":
        months = (12 * (number("y") - 1970) + number("m") - 1).astype("datetime64[M]")
        dates = months.astype("datetime64[D]") + (number("d") - 1).astype("timedelta64[D]")
        fits &= (
            (number("d") >= 1) & (number("m") >= 1) & (number("m") <= 12) & (dates.astype("datetime64[M]") == months)
        )
        days = dates.astype(np.float64)
        zone = pc.replace_substring(pc.fill_null(pc.struct_field(parts, "zone"), ""), ":", "")
        offset = np.asarray(pc.if_else(pc.equal(zone, ""), "0", zone).cast(pa.float64()))
        hours = hours - np.trunc(offset / 100) - np.fmod(offset, 100) / 60
    return np.where(fits, days + hours / 24, np.nan)


def with_cycles(days: Array, cycles: Iterable[Cycle]) -> Array:
    """Return days, and sine and cosine of their place in each cycle, one row each."""
    angles = [2 * np.pi * days / CYCLES[cycle] for cycle in cycles]
    return np.array([days, *(wave(angle) for angle in angles for wave in (np.sin, np.cos))])
