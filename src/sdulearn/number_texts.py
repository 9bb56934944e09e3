"""Numbers in columns of text: with a decimal comma, or with a mark where one is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sdulearn.errors import InputError, quoted, reason
from sdulearn.extras import require
from sdulearn.io.files import Location
from sdulearn.types import ArrowColumn

# Texts that stand for a missing number in a column of numbers.
_MARKS = ("-", "--", "---", "–", "—", ".", "..", "...", "*", "n.a.", "n/a", "na", "nan", "none", "null", "nil",
          "missing", "unknown", "k.a.", "#n/a", "?")  # fmt: skip
_PLAIN = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_COMMA = r"^\s*[+-]?\d+(,\d+)?([eE][+-]?\d+)?\s*$"
# 1,234 may be a thousand and more, or one and a bit.
_THOUSANDS = r"^\s*[+-]?\d{1,3}(,\d{3})+\s*$"
# From this share of numbers on, a column of texts is taken for one of numbers with mistakes in it.
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class NumberText:
    """How numbers are spelled in a column of texts."""

    decimal: Literal[".", ","] = "."  # the decimal mark
    marks: tuple[str, ...] = ()  # what stands for a missing number there, beside an empty cell


def recognise_numbers(path: Location, name: str, values: ArrowColumn) -> NumberText | None:
    """How a column of texts spells numbers; None where it holds texts, an error where that is not clear."""
    pc = require("pyarrow.compute", "files")
    present = values.drop_null()
    if not len(present):
        return None
    plain = pc.match_substring_regex(present, _PLAIN)
    comma = pc.match_substring_regex(present, _COMMA)
    is_comma = _count(comma) > _count(plain)
    numeric = comma if is_comma else plain
    if is_comma and _count(pc.match_substring_regex(present, _THOUSANDS)) == _count(pc.match_substring(present, ",")):
        raise InputError(
            f"{path}: the numbers in column {quoted(name)}, such as {quoted(_first(present, numeric))}, may have a "
            "decimal comma or commas between thousands. Write them with a point, or leave the column out with `drop`."
        )
    lowered = pc.utf8_lower(pc.utf8_trim_whitespace(present))
    marked = pc.is_in(lowered, value_set=require("pyarrow", "files").array(_MARKS))
    rest = pc.invert(pc.or_(numeric, marked))
    n_rest = _count(rest)
    if n_rest == 0 and _count(numeric):
        marks = sorted(set(pc.filter(present, pc.and_(marked, pc.invert(numeric))).to_pylist()))
        return NumberText("," if is_comma else ".", tuple(marks))
    if _count(numeric) < _NEARLY_ALL * len(present):
        return None
    odd = _first(present, rest)
    raise InputError(
        f"{path}: column {quoted(name)} holds numbers, but for {n_rest:,} cells, the first {quoted(odd)} in row "
        f"{_row_of(values, odd):,}. Correct them; or leave the column out with `drop`; or, if its "
        f"texts are categories, say so: `categories=[{quoted(name)}]`."
    )


def parse_numbers(path: Location, name: str, values: ArrowColumn, text: NumberText) -> ArrowColumn:
    """Texts as numbers; null where one is missing."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    if text.marks:
        values = pc.if_else(pc.is_in(values, value_set=pa.array(text.marks)), pa.scalar(None, pa.string()), values)
    if text.decimal != ".":
        values = pc.replace_substring(values, text.decimal, ".")
    try:
        return pc.utf8_trim_whitespace(values).cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: column {quoted(name)} held numbers in training, and here: {reason(error)}") from None


def _count(mask: ArrowColumn) -> int:
    return int(require("pyarrow.compute", "files").sum(mask).as_py() or 0)


def _first(values: ArrowColumn, mask: ArrowColumn) -> str:
    return str(values.filter(mask)[0].as_py())


def _row_of(values: ArrowColumn, text: str) -> int:
    """The row of a text, the first below the header being 1."""
    return int(require("pyarrow.compute", "files").index(values, text).as_py()) + 1
