"""A few true labels, which settle the names of the classes."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdulearn.errors import InputError, quoted, shortened
from sdulearn.io.files import Location, as_text, delimiter, file_format, from_cell, is_location, read_text
from sdulearn.io.ids import looks_like_id
from sdulearn.io.rows import Cells, frame_rows
from sdulearn.types import Codes, Frame, Indices

_NEGATIVE = ("-1", "0", "false", "no")
_POSITIVE = ("1", "true", "yes")


@dataclass(frozen=True)
class Labelled:
    """Ids with their labels, and the first cell of the file's first line, which must not be an id too."""

    name: str
    pairs: Sequence[tuple[str, str]]
    header: str = ""

    @property
    def ids(self) -> set[str]:
        """All ids, and what may turn out to be one."""
        return {self.header, *(one for one, _ in self.pairs)}


@dataclass(frozen=True)
class ClassLabels:
    """Row numbers, their classes (-1 and +1, or 1 to K), and what the classes are called."""

    rows: Indices
    classes: Codes
    names: tuple[str, ...]

    def among(self, n_classes: int) -> ClassLabels:
        """The same labels of so many classes."""
        texts = [self.names[place] for place in self._places]
        names = class_names(sorted(set(texts)), n_classes)
        places = np.array([names.index(text) for text in texts], dtype=np.int64)
        return ClassLabels(self.rows, 2 * places - 1 if n_classes == 2 else places + 1, names)

    @property
    def n_named(self) -> int:
        """Number of classes that a label names."""
        return len(np.unique(self.classes))

    @property
    def _places(self) -> list[int]:
        """The place of each class in ``names``."""
        places = (self.classes + 1) // 2 if len(self.names) == 2 else self.classes - 1
        return places.tolist()


def read_labels(source: Location | Mapping[object, object] | Frame) -> Labelled:
    """Ids with their labels: rows ``id,label`` of a CSV or TSV file or a frame, or a mapping."""
    if isinstance(source, Mapping):
        return Labelled("`labels`", [(as_text(name), as_text(label)) for name, label in source.items()])
    if not is_location(source):
        return Labelled("`labels`", _pairs("`labels`", [cells for _, cells in frame_rows(source)[1]]))
    header, *rows = _read_file(source) or [[]]
    pairs = _pairs(str(source), rows)
    first, label = [*map(as_text, header), "", ""][:2]
    if label in {label for _, label in pairs} and not looks_like_id(first):
        raise _no_header(str(source), first)
    return Labelled(str(source), pairs, first)


def _pairs(name: str, rows: Sequence[Cells | str]) -> list[tuple[str, str]]:
    cells = [[as_text(cell) for cell in row] for row in rows]
    if not cells or any(len(row) < 2 or not row[0] or not row[1] for row in cells):
        raise InputError(f"{name} needs a first line id,label and then an id and its class in every row.")
    return [(row[0], row[1]) for row in cells]


def _no_header(name: str, first: str) -> InputError:
    return InputError(f"{name} seems to begin with the label of {quoted(first)}. Give it a first line: id,label")


def _read_file(path: Location) -> list[list[str]]:
    file_kind = file_format(path, ("csv", "tsv"))
    lines = read_text(path).splitlines()
    rows = list(csv.reader(lines, delimiter=delimiter(lines[0] if lines else "", file_kind)))
    return [[from_cell(cell.strip()) for cell in row] for row in rows if any(row)]


def class_labels(labelled: Labelled, place: Mapping[str, int]) -> ClassLabels:
    """Ids and labels as rows and classes, as many as are named but two at least; ``place`` gives the row of an id."""
    if labelled.header and labelled.header in place:
        raise _no_header(labelled.name, labelled.header)
    if unknown := [name for name, _ in labelled.pairs if name not in place]:
        raise InputError(f"`labels`: the table has no row with the id {quoted(unknown[0])} ({len(unknown)} such ids).")
    found = sorted({label for _, label in labelled.pairs})
    rows = np.array([place[name] for name, _ in labelled.pairs])
    numbers = np.array([found.index(label) + 1 for _, label in labelled.pairs], dtype=np.int64)
    if len(found) == 2:
        numbers = 2 * numbers - 3
    return ClassLabels(rows, numbers, tuple(found)).among(max(2, len(found)))


def class_names(found: list[str], n_classes: int) -> tuple[str, ...]:
    """Names of all classes, from those that labels have.

    Of two classes 1, true and yes are +1; of other names the later one in the alphabet. Of more, those that no
    label names have numbers.
    """
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
