"""A few true labels, which settle the names of the two classes."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import InputError
from sdulearn.io.answers import as_text, delimiter, file_format, open_bytes

_NEGATIVE, _POSITIVE = ("-1", "0", "false", "no"), ("1", "true", "yes")


@dataclass(frozen=True)
class ClassLabels:
    """Row numbers, their classes -1 and +1, and what those are called."""

    rows: NDArray[np.intp]
    classes: NDArray[np.int64]
    names: tuple[str, str]


def class_labels(path: Path, told: Sequence[tuple[str, str]], place: Mapping[str, int]) -> ClassLabels:
    """Ids and labels as rows and classes; ``place`` gives the row of an id."""
    if unknown := [name for name, _ in told if name not in place]:
        raise InputError(f"{path}: the table has no row with the id {unknown[0]!r} ({len(unknown)} such ids).")
    names = class_names(path, sorted({label for _, label in told}))
    classes = [1 if label == names[1] else -1 for _, label in told]
    return ClassLabels(np.array([place[name] for name, _ in told]), np.array(classes), names)


def class_names(path: Path, found: list[str]) -> tuple[str, str]:
    """Names of -1 and +1: 1, true and yes are +1; of other names the later one in the alphabet."""
    if len(found) > 2:
        raise InputError(f"{path} names {len(found)} classes ({', '.join(found[:5])}); there must be two.")
    if len(found) == 2:
        swapped = found[1].lower() in _NEGATIVE or found[0].lower() in _POSITIVE
        return (found[1], found[0]) if swapped else (found[0], found[1])
    only = found[0]
    if only.lower() in _NEGATIVE:
        return only, "1"
    return {"1": "-1"}.get(only, f"not {only}"), only


def read_labels(path: Path) -> list[tuple[str, str]]:
    """Read ``id,label`` rows (CSV or TSV)."""
    name = file_format(path, ("csv", "tsv"))
    with open_bytes(path) as file:
        lines = file.read().decode("utf-8-sig").splitlines()
    rows = list(csv.reader(lines, delimiter=delimiter(lines[0] if lines else "", name)))
    cells = [[as_text(cell) for cell in row] for row in rows if any(row)]
    if len(cells) < 2 or any(len(row) < 2 or not row[0] or not row[1] for row in cells):
        raise InputError(f"{path} needs a first line id,label and then an id and its class in every row.")
    return [(row[0], row[1]) for row in cells[1:]]
