"""Which column of a table holds the ids that the answers name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sdulearn.errors import InputError, quoted

ID_COLUMNS = ("id", "ID", "Id", "unique_id")
# A column is in question only where it holds this share of the ids.
_ENOUGH = 0.5
_ID_WORDS = re.compile(r"(^|[_\W])(id|ids|uid|uuid|guid|key|nr|no|num|number|name|code)$|[a-z]I[dD]$", re.IGNORECASE)


@dataclass(frozen=True)
class Candidate:
    """A column that may hold ids: how many of the wanted ones are in it, and whether each is on one row only."""

    name: str
    n_found: int
    unique: bool


def looks_like_id(name: str) -> bool:
    """Whether a column is called as columns of ids are."""
    return _ID_WORDS.search(name) is not None


def match_texts(name: str, texts: Sequence[str], ids: Collection[str]) -> Candidate:
    """Compare a column, as texts, with the ids of the answers."""
    wanted = set(ids)
    there = [text for text in texts if text in wanted]
    found = set(there)
    return Candidate(name, len(found), len(found) == len(there))


def choose_by_answers(
    table: str, candidates: Sequence[Candidate], ids: Collection[str], n_rows: int, usual: Sequence[str]
) -> str | None:
    """The column that holds the ids of the answers, None for row numbers; refused where it is not clear.

    A usual name goes first. Row numbers are taken only where no column fits.
    """
    enough = [one for one in candidates if one.n_found >= _ENOUGH * len(ids)]
    for name in usual:
        if any(one.name == name for one in enough):
            return name
    near = [one for one in enough if one.unique]
    full = [one.name for one in near if one.n_found == len(ids)]
    by_number = are_row_numbers(ids, n_rows)
    if len(full) == 1 and (looks_like_id(full[0]) or not by_number):
        return full[0]
    if full or (near and by_number):
        _refuse(table, full or [one.name for one in near], by_number)
    if near:
        return max(near, key=lambda one: one.n_found).name
    # A column that is called as ids are, and holds none of these, is a mistake to be told, not passed over.
    present = [one.name for one in candidates]
    return next((name for name in usual if name in present), None)


def _refuse(table: str, names: Sequence[str], by_number: bool) -> None:
    columns = " and ".join(map(quoted, names[:3]))
    rows = ", and so could row numbers from 0" if by_number else ""
    raise InputError(
        f"{table}: {columns} could be the column of ids that the answers name{rows}. Say which with `id_column` (an "
        "empty name, `id_column=''`, stands for row numbers)."
    )


def are_row_numbers(ids: Collection[str], n_rows: int) -> bool:
    """Whether every id is the number of a row, counted from 0."""
    return all(is_row_number(name, n_rows) for name in ids)


def is_row_number(name: str, n_rows: int) -> bool:
    """Whether a text is the number of a row, as it would be written."""
    short = len(name) <= len(str(n_rows)) and name.isascii() and name.isdigit()
    return short and int(name) < n_rows and str(int(name)) == name
