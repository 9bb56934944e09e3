"""The points that answers are about, where rows come in blocks: enough to see that answers share them.

``y`` of a block is its pair codes, or a table of them, the point that each row shows and, where they are
given, annotators and labels. Which points are in more than one answer is known when all blocks were
seen. What it takes to learn from such answers by folds, or jointly, is the graph of all of them, and
no block has that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.blocks.source import Sums
from sdulearn.errors import InputError
from sdulearn.pairs import COLUMNS, integer_codes, read_columns, whole_numbers
from sdulearn.types import Array, Codes, Indices, Rows

# More rows than a block has.
_LARGEST_BLOCK = 2**40


def known_of_rows(y: ArrayLike, number: int = 0) -> Codes:
    """Pair codes of a block's rows, or all columns of ``y`` up to the last one that is there.

    Where no column says which points the rows show, the number of the block keeps them apart from all others.
    """
    columns = read_columns(y)
    codes = integer_codes(columns.pop("answer"))
    if not columns:
        return codes
    known = {name: whole_numbers(values, f"{name} of y") for name, values in columns.items()}
    known.setdefault("point", number * _LARGEST_BLOCK + np.arange(len(codes)))
    last = max(COLUMNS.index(name) for name in known)
    return np.column_stack([codes, *(known.get(name, np.zeros_like(codes)) for name in COLUMNS[1 : last + 1])])


def codes_of(y: Codes) -> Codes:
    """The pair codes of a block."""
    return y if y.ndim == 1 else y[:, 0]


def labels_of(y: Codes) -> Codes:
    """The labels of a block's rows, 0 where none is known."""
    return y[:, 3] if y.ndim == 2 and y.shape[1] > 3 else np.zeros(len(y), dtype=np.int64)


@dataclass(frozen=True)
class PointCounts:
    """In how many answers points are; ``+`` joins two stretches of rows."""

    points: Codes  # points in answers, sorted; none where rows are points of their own
    counts: Indices  # answers of each

    @classmethod
    def of(cls, y: Codes) -> PointCounts:
        """The points of a block's answers."""
        if y.ndim == 1:
            return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.intp))
        return cls(*np.unique(y[y[:, 0] != 0, 1], return_counts=True))

    def __add__(self, other: PointCounts) -> PointCounts:
        points, place = np.unique(np.concatenate([self.points, other.points]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([self.counts, other.counts]), len(points))
        return PointCounts(points, counts.astype(np.intp))

    @property
    def shared(self) -> bool:
        """Whether some point is in more than one answer."""
        return bool(self.counts.max(initial=0) > 1)


def count_columns(X: Rows, y: Codes, weight: Array | None) -> Sums | None:
    """Of a block with columns: the points of its answers, who gave these, and how many rows have a label."""
    y = y if weight is None else y[weight > 0]
    if not len(y):
        return None
    annotators = y[y[:, 0] != 0, 2:3] if y.ndim == 2 else y[:0]
    n_labels = int(np.count_nonzero(labels_of(y)))
    return Sums(points=PointCounts.of(y), annotators=np.unique(annotators).tolist(), n_labels=n_labels)


def refuse_shared_points(counts: PointCounts | None, what: str, instead: str) -> None:
    """Refuse answers that share points where their graph would be needed."""
    if counts is None or not counts.shared:
        return
    n_answers = int(counts.counts.sum()) // 2
    raise InputError(
        f"The {n_answers:,} answers share {len(counts.points):,} points, and {what} needs all of these together, "
        f"which blocks of rows do not show. {instead}"
    )
