"""Rows of numbers in a table, batch by batch, with what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdulearn.columns import kind_of
from sdulearn.errors import InputError, quoted
from sdulearn.io.tables import Part, Table, batch_rows
from sdulearn.pairs import check_columns, check_weights, join_columns
from sdulearn.parts import Job, add_all
from sdulearn.types import Array, Codes


class Batch(NamedTuple):
    """Numbers of some rows, and what they hold."""

    rows: Codes
    X: NDArray[Any]
    y: Codes
    weight: Array

    def take(self, chosen: NDArray[Any]) -> Batch:
        """Return some of the rows."""
        return Batch(*(values[chosen] for values in self))


def join(batches: Sequence[Batch]) -> Batch:
    """Put batches one below the other."""
    return Batch(*map(np.concatenate, zip(*batches, strict=True)))


@dataclass(frozen=True)
class RowSource:
    """Rows of a table: columns of features, and columns that say what is known about a row."""

    table: Table
    columns: list[str]
    known: Mapping[str, str]  # by role: "answer", "point", "annotator", "label", "weight"

    def __post_init__(self) -> None:
        self.table.check_columns({"read": [*self.columns, *self.known.values()]})
        for name in self.columns:
            if kind_of(self.table.types[name]) not in ("number", "boolean"):
                advice = "Leave it out, or use sdulearn.fit_table, which turns texts and dates into features."
                raise InputError(f"{self.table.name}: column {quoted(name)} does not hold numbers. {advice}")

    def jobs(self, function: Callable[[Batch], Any]) -> list[Job]:
        """Return one job per part, which adds up a function of its batches."""
        job = partial(_sum_part, function, self.columns, dict(self.known))
        return self.table.jobs(job, [*self.columns, *self.known.values()])


def _sum_part(
    function: Callable[[Batch], Any], columns: list[str], known: dict[str, str], _number: int, part: Part
) -> Any:
    total = None
    for begin, cells in part([*columns, *known.values()], batch_rows(len(columns))):
        rows = begin + np.arange(cells.num_rows)
        if len(rows):
            given = {role: cells[name].to_numpy(zero_copy_only=False) for role, name in known.items()}
            weight = check_weights(given.pop("weight", np.ones(len(rows))), len(rows), "sample_weight")
            codes, others = check_columns({"answer": np.zeros_like(rows), **given})
            y = join_columns(codes, {"point": rows, **others} if others else {})
            X = np.stack([cells[name].to_numpy(zero_copy_only=False) for name in columns]).T
            total = add_all((total, function(Batch(rows, X, y, weight))))
    return total
