"""Rows of numbers in a table, batch by batch, with what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sdulearn.answers.y import check_columns, check_weights, join_columns
from sdulearn.errors import InputError, quoted
from sdulearn.tables.columns import kind_of
from sdulearn.tables.source import Table
from sdulearn.types import Array, ArrowTable, Codes

T = TypeVar("T")


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
        self.table.check_columns({"read": self._read})
        for name in self.columns:
            if kind_of(self.table.types[name]) not in ("number", "boolean"):
                advice = "Leave it out, or use sdulearn.fit_table, which turns texts and dates into features."
                raise InputError(f"{self.table.name}: column {quoted(name)} does not contain numbers. {advice}")

    def map(self, function: Callable[[Batch], T]) -> Iterator[T]:
        """Yield a function of each batch, in order."""
        return self.table.map(partial(_on_cells, function, self.columns, dict(self.known)), self._read)

    def sum(self, function: Callable[[Batch], Any]) -> Any:
        """Add up a function of all batches; None if there are none."""
        return self.table.sum(partial(_on_cells, function, self.columns, dict(self.known)), self._read)

    @property
    def _read(self) -> list[str]:
        return [*self.columns, *self.known.values()]


def _on_cells(
    function: Callable[[Batch], T], columns: list[str], known: dict[str, str], begin: int, cells: ArrowTable
) -> T:
    rows = begin + np.arange(cells.num_rows)
    given = {role: cells[name].to_numpy(zero_copy_only=False) for role, name in known.items()}
    weight = check_weights(given.pop("weight", np.ones(len(rows))), len(rows), "sample_weight")
    codes, others = check_columns({"answer": np.zeros_like(rows), **given})
    y = join_columns(codes, {"point": rows, **others} if others else {})
    X = np.stack([cells[name].to_numpy(zero_copy_only=False) for name in columns]).T
    return function(Batch(rows, X, y, weight))
