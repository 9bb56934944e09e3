"""Questions that show more than two items: which of them belong together, and which of two another is nearer to.

A file of groups has one row per question, ``annotator,question,items,groups[,seconds]``: the items that were
shown, with ``;`` between them, and the groups that they were put into, with ``|`` between these. A file of forced
choices has ``x,first,second,chosen[,certainty]``. "Nearer to the first" does not say that x is of its class, so
a forced choice implies no pair, unless somebody could answer that it is neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sdulearn.answer_files.columns import is_neither, positions
from sdulearn.answer_files.rows import Record
from sdulearn.answer_files.words import SPELLINGS, label_text
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError, quoted
from sdulearn.io.files import as_text, from_cell


class Shown(NamedTuple):
    """An answered question: pairs of ids with their codes, or a forced choice."""

    pairs: tuple[tuple[str, str, int], ...] = ()
    nearer: tuple[str, str, str] | None = None  # x, the chosen one, the other


def _ids(cell: object, mark: str) -> list[str]:
    """Return the parts of a cell, which JSON may hold as a list."""
    parts = cell if isinstance(cell, list) else as_text(cell).split(mark)
    return [text for part in parts if (text := from_cell(part.strip() if isinstance(part, str) else as_text(part)))]


def read_groups(record: Record, roles: Mapping[str, str]) -> Shown:
    """Return all pairs that the groups of a row imply; a ValueError says why it cannot be read.

    Items without a group are in no pair. A question without any group is answered "unsure".
    """
    items = _ids(record[roles["items"]], ";")
    cell = record[roles["groups"]]
    parts = cell if isinstance(cell, list) else as_text(cell).split("|")
    groups = [ids for part in parts if (ids := _ids(part, ";"))]
    place = {item: k for k, group in enumerate(groups) for item in group}
    if len(items) < 2 or len(set(items)) < len(items):
        raise ValueError("items are not two or more different ids, with ; between them")
    if sum(map(len, groups)) > len(place):
        raise ValueError("an item is in two groups")
    if unknown := [item for item in place if item not in items]:
        raise ValueError(f"groups name {quoted(unknown[0])}, which is not among the items")
    if not groups:
        return Shown(((items[0], items[1], UNSURE),))
    placed = [item for item in items if item in place]
    pairs = [(a, b) for k, a in enumerate(placed) for b in placed[k + 1 :]]
    return Shown(tuple((a, b, SIMILAR if place[a] == place[b] else DISSIMILAR) for a, b in pairs))


def read_choices(
    rows: Sequence[dict[str, Any]], words: Mapping[str, str], columns: Mapping[str, str]
) -> list[Shown | str]:
    """Return what each row of forced choices says, or why it cannot be read.

    If "neither" is an answer, a choice says that two are of one class: these are match questions.
    """
    said = [row["chosen"] for row in rows]
    place: dict[str, int | None] = dict(positions(said, (columns["first"], columns["second"])))
    for word, meaning in words.items():
        if meaning not in ("first", "second", "neither", "unsure"):
            raise InputError(
                f"{quoted(columns['chosen'])} holds forced choices, which do not say that two rows are of the same "
                f"class: they mean first, second, neither or unsure; {word!r} was said to mean {meaning!r}."
            )
        place[word.casefold()] = {"first": 0, "second": 1}.get(meaning)
    if "1" in said and "1" not in place:
        raise InputError("The choice 1 may be the first or, counted from 0, the second. Say which: `words='1=first'`.")
    neither = {word.casefold() for word, meaning in words.items() if meaning == "neither"}
    neither |= {cell.casefold() for cell in said if is_neither(cell) and label_text(cell) not in SPELLINGS}
    several = any(cell.casefold() in neither for cell in said)
    return [_choice(row, place, neither, several) for row in rows]


def _choice(row: dict[str, Any], place: Mapping[str, int | None], neither: set[str], several: bool) -> Shown | str:
    """Return what one row says; with ``several`` answers it is a match question."""
    x, both, cell = row["x"], (row["first"], row["second"]), row["chosen"]
    if len({x, *both}) < 3:
        return "x, first and second are not three different ids"
    if cell in both:
        picked: int | None = both.index(cell)
    elif cell.casefold() in place:
        picked = place[cell.casefold()]
    elif is_neither(cell):
        picked = None
    else:
        return f"{quoted(cell)} is neither of the two"
    if not several:
        return Shown() if picked is None else Shown(nearer=(x, both[picked], both[1 - picked]))
    if picked is None and cell.casefold() not in neither:
        return Shown(((x, both[0], UNSURE),))
    return Shown(tuple((x, end, SIMILAR if k == picked else DISSIMILAR) for k, end in enumerate(both)))
