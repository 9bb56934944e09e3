"""A few true labels, which decide the names of the classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdulearn.errors import InputError, quoted, shortened
from sdulearn.io.files import Location, as_text, from_cell
from sdulearn.io.ids import looks_like_id
from sdulearn.io.rows import read_sheet
from sdulearn.types import Codes, Frame

_NEGATIVE = ("-1", "0", "false", "no")
_POSITIVE = ("1", "true", "yes")
# As Python writes them: 007 is a name.
_WHOLE = re.compile(r"-?[1-9][0-9]*|0")


@dataclass(frozen=True)
class Labels:
    """Names of classes by id, and the first cell of the header, which must be no id."""

    name: str
    by_id: Mapping[str, str]
    header: str = ""
    whole: bool = False  # whether they are whole numbers, and not texts of digits

    @property
    def ids(self) -> set[str]:
        """All ids, and what may turn out to be one."""
        return {self.header, *self.by_id} - {""}

    def of_rows(self, place: Mapping[str, int], why: Callable[..., str]) -> dict[int, str]:
        """The same by row; ``place`` has the row of an id, ``why`` says more of ids without one."""
        if self.header and self.header in place:
            raise self.no_header()
        if unknown := [name for name in self.by_id if name not in place]:
            raise InputError(f"`labels`: {why(unknown, whose='labels')}")
        return {place[name]: label for name, label in self.by_id.items()}

    def no_header(self) -> InputError:
        """The error of a first line that is a label already."""
        said = f"{self.name} seems to begin with the label of {quoted(self.header)}."
        return InputError(f"{said} Give it a first line: id,label")

    def names(self, found: tuple[str, ...]) -> tuple[str, ...] | tuple[int, ...]:
        """Names of classes as the labels have them: whole numbers, or texts."""
        return tuple(map(int, found)) if self.whole and all(map(_WHOLE.fullmatch, found)) else found


def read_labels(source: Location | Mapping[object, object] | Frame) -> Labels:
    """Ids with their labels: rows ``id,label`` of a file or a frame, or a mapping."""
    if isinstance(source, Mapping):
        by_id = {as_text(name): as_text(label) for name, label in source.items()}
        return Labels("`labels`", by_id, whole=not any(isinstance(label, str) for label in source.values()))
    sheet = read_sheet(source, "`labels`")
    cells = [list(one.values())[:2] if isinstance(one, dict) else [] for _, one in sheet.records]
    rows = [[from_cell(as_text(cell)) for cell in row] for row in cells]
    if not rows or any(len(row) < 2 or not all(row) for row in rows):
        raise InputError(f"{sheet.name} needs a first line id,label and then an id and its class in every row.")
    by_id = dict(rows)
    # A text file has no numbers but those that look so.
    text = sheet.format in ("csv", "tsv")
    whole = text or not any(isinstance(label, str) for _, label in cells)
    if sheet.format == "frame":
        return Labels(sheet.name, by_id, whole=whole)
    first, label = [*map(from_cell, sheet.header), "", ""][:2]
    found = Labels(sheet.name, by_id, first, whole)
    if label in by_id.values() and not looks_like_id(first):
        raise found.no_header()
    return found


def class_numbers(labels: Sequence[str], n_classes: int) -> tuple[Codes, tuple[str, ...]]:
    """Labels as classes, -1 and +1 or 1 to K, and the names of all classes in order."""
    found = sorted(set(labels))
    if all(map(_WHOLE.fullmatch, found)):
        found.sort(key=int)
    names = class_names(found, n_classes)
    places = np.array([names.index(label) for label in labels], dtype=np.int64)
    return 2 * places - 1 if n_classes == 2 else places + 1, names


def class_names(found: list[str], n_classes: int) -> tuple[str, ...]:
    """Names of all classes: 1, true and yes are +1 of two; of more, some have numbers."""
    if len(found) > n_classes:
        raise InputError(
            f"`labels` names {len(found)} classes ({', '.join(map(shortened, found[:5]))}), but there are to be "
            f"{n_classes}. Give `classes={len(found)}`, or leave it out."
        )
    if n_classes > 2:
        numbers = map(str, range(len(found) + 1, 2 * n_classes + 1))
        free = [number for number in numbers if number not in found]
        return (*found, *free[: n_classes - len(found)])
    if len(found) == 2:
        swapped = found[1].lower() in _NEGATIVE or found[0].lower() in _POSITIVE
        return (found[1], found[0]) if swapped else (found[0], found[1])
    only = found[0]
    if only.lower() in _NEGATIVE:
        return only, "1"
    return {"1": "-1"}.get(only, f"not {only}"), only
