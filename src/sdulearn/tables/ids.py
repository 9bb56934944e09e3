"""Ids of rows: how they are spelled, which column holds them, and why some are unknown."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from sdulearn.errors import InputError, listed, pa, pc, quoted
from sdulearn.io.files import as_text
from sdulearn.types import ArrowColumn, ArrowTable, ArrowType, Codes

ID_COLUMNS = ("id", "ID", "Id", "unique_id")
# A column may hold the ids only if it has this share of them; one of a file of answers, if so many cells are ids.
ENOUGH = 0.5
_ID_WORDS = re.compile(
    r"(?i)(^|[_\W])(id|ids|uid|uuid|guid|key|nr|no|num|number|name|code)$|(nr|nummer|kennung|schl(ü|ue)ssel)$|(?-i:[a-z]I[dD])$"
)


class IdHits(NamedTuple):
    """How often each wanted id is in a column, and on which row; ``+`` joins stretches."""

    times: Codes
    rows: Codes  # -1 where it is on none

    def __add__(self, other: IdHits) -> IdHits:  # type: ignore[override]
        return IdHits(self.times + other.times, np.maximum(self.rows, other.rows))

    @property
    def unique(self) -> bool:
        """Whether each id is on one row at most."""
        return bool((self.times <= 1).all())


def find_ids(values: ArrowColumn, ids: ArrowColumn) -> Codes:
    """Return the place of each row's id in an Arrow array of texts, -1 where it is not there."""
    found = pc.fill_null(pc.index_in(id_texts(values), value_set=ids), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def count_ids(values: ArrowColumn, rows: Codes, ids: ArrowColumn) -> IdHits:
    """Look for ids, an Arrow array of texts, in some rows of a column."""
    places = find_ids(values, ids)
    hit = np.flatnonzero(places >= 0)
    row_of_id = np.full(len(ids), -1)
    row_of_id[places[hit]] = rows[hit]
    return IdHits(np.bincount(places[hit], minlength=len(ids)), row_of_id)


def id_texts(values: ArrowColumn) -> ArrowColumn:
    """Return ids as an Arrow array of texts, spelled as by :func:`sdulearn.io.files.as_text`."""
    if pa.types.is_integer(values.type) and not values.null_count:
        return values.cast(pa.string())
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return pc.fill_null(pc.utf8_trim_whitespace(values), "").cast(pa.string())
    return pa.array([as_text(value) for value in values.to_pylist()], pa.string())


def looks_like_id(name: str) -> bool:
    """Whether the name of a column is usual for ids."""
    return _ID_WORDS.search(name.rstrip(" .:#")) is not None


def may_hold_ids(name: str, dtype: ArrowType) -> bool:
    """Whether a column can hold ids: whole numbers, texts, or floats under a usual name."""
    types = pa.types
    dtype = dtype.value_type if types.is_dictionary(dtype) else dtype
    if types.is_floating(dtype):
        return looks_like_id(name)
    return bool(types.is_integer(dtype) or types.is_string(dtype) or types.is_large_string(dtype))


def named_id_column(names: Collection[str], wanted: str | None) -> str | None:
    """Return the wanted column of ids (None for ""), or else the first usual one that is there."""
    if wanted is None:
        return next((name for name in ID_COLUMNS if name in names), None)
    return wanted or None


def choose_id_column(
    table: str, ids: Sequence[str], hits: Mapping[str, IdHits], asked: Collection[str], n_rows: int
) -> str | None:
    """Return the column with the ids of answers, a usual name first; None for row numbers.

    Ids that may be row numbers as well are refused, whatever the column is called: they may count from 1.
    """
    mask = np.array([name in asked for name in ids], dtype=bool)
    times = {name: one.times[mask] for name, one in hits.items()}
    n_held = {name: int(np.count_nonzero(one)) for name, one in times.items()}
    enough = [name for name in n_held if n_held[name] >= ENOUGH * len(asked)]
    if usual := [name for name in ID_COLUMNS if name in enough]:
        return usual[0]
    unique = [name for name in enough if times[name].max(initial=0) <= 1]
    complete = [name for name in unique if n_held[name] == len(asked)]
    by_number = all(is_row_number(name, n_rows) for name in asked)
    if len(complete) == 1 and not by_number:
        return complete[0]
    if complete or (unique and by_number):
        columns = " and ".join(map(quoted, (complete or unique)[:3]))
        rows = ", and so could row numbers from 0" if by_number else ""
        raise InputError(
            f"{table}: {columns} could be the column of ids that the answers name{rows}. Say which "
            "with `id_column` (an empty name, `id_column=''`, stands for row numbers)."
        )
    if unique:
        return max(unique, key=n_held.__getitem__)
    # A column of a usual name that has none of these ids is a mistake to report.
    return next((name for name in ID_COLUMNS if name in n_held), None)


def is_row_number(name: str, n_rows: int) -> bool:
    """Whether a text is the number of a row, without zeros in front."""
    short = len(name) <= len(str(n_rows)) and name.isascii() and name.isdigit()
    return short and int(name) < n_rows and str(int(name)) == name


def ids_of(batch: ArrowTable, id_column: str | None, rows: Codes) -> list[str]:
    """Return the ids of some rows: texts of a column, or row numbers."""
    return list(map(str, rows.tolist())) if id_column is None else id_texts(batch[id_column]).to_pylist()


def check_filled(table: str, names: Sequence[str], rows: Codes, where: Callable[[int], str]) -> None:
    """Refuse empty ids of some rows, before a question is asked about them."""
    if "" in names:
        row = int(rows[list(names).index("")])
        raise InputError(
            f"{table}: the id of {where(row)} is empty. Give every row an id, or name another column with `id_column` "
            "(`id_column=''` stands for row numbers)."
        )


def repeated_id(name: str, times: int) -> InputError:
    """Return the error of an id that several rows have."""
    what = f"The table's ids must tell rows apart, but {quoted(name)} occurs {times:,} times."
    return InputError(f"{what} Name another column with `id_column`, or make them unique.")


_SIGNS = "blanks, signs or capital letters"
# How the spelling of ids may differ between table and answers, and what they have in common then.
_ALIKE: dict[str, Callable[[str], str]] = {
    "Unicode form (composed or decomposed letters)": partial(unicodedata.normalize, "NFC"),
    "leading zeros": lambda text: text.lstrip("0"),
    "decimals": lambda text: re.sub(r"[.,]0+$", "", text).lstrip("0"),
    _SIGNS: lambda text: re.sub(r"[\W_]+", "", text).casefold(),
}


def spelled_alike(asked: Collection[str], ids: Collection[str], share: float = ENOUGH) -> bool:
    """Whether a column has this share of the ids in another spelling, each on one row."""
    times = {plain: Counter(map(plain, ids)) for plain in _ALIKE.values()}
    n_found = (sum(times[plain][plain(name)] == 1 for name in asked) for plain in times)
    return max(n_found) >= share * len(asked)


def unknown_ids(unknown: Iterable[str], known: Collection[str], id_column: str | None, whose: str = "answers") -> str:
    """Say which ids a table does not have, and why that may be."""
    names = list(dict.fromkeys(unknown))
    if id_column and (held := next((name for name in names if name in known), None)):
        return f"Column {quoted(id_column)} holds {quoted(held)} among fractions. If these are ids, give `id_column`."
    message = f"The table has no row with the id{'s' if len(names) > 1 else ''} {listed(map(quoted, names), 3)}."
    for what, plain in _ALIKE.items():
        # Row numbers have no signs to leave out: 1.5 is not row 15.
        spelled = {plain(name): name for name in known if id_column is not None or what != _SIGNS}
        if name := next((name for name in names if plain(name) in spelled), None):
            there = spelled[plain(name)]
            message += f" It has {quoted(there)}, and the {whose} {quoted(name)}"
            if what != "leading zeros":
                return f"{message}: they differ in {what}. Spell ids alike in both."
            loser = "table" if len(there) < len(name) else whose
            return f"{message}: ids have lost their leading zeros. Write the {loser} again with the ids as text."
    if id_column is None:
        message += f" It has no id column, so its rows are numbered 0 to {len(known) - 1}; name one with `id_column`."
        if names == [str(len(known))]:
            message += f" If the {whose} count rows from 1, add a column with these numbers to the table."
    elif names == ["0"]:
        message += f" If the {whose} count rows from 0, give `id_column=''`."
    elif id_column:
        message += f" Its ids are in {quoted(id_column)}; name another column with `id_column`."
    return message
