"""The points that answers are about, where rows come in blocks: enough to see that answers share them.

``y`` of a block is its pair codes, or a table of them and the point that each row shows. Which points
are in more than one answer is known when all blocks were seen. What it takes to learn from such
answers by folds, or jointly, is the graph of all of them, and no block has that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.pairs import integer_codes, read_columns, whole_numbers
from sdulearn.types import Array, Codes, Indices, Rows


def known_of_rows(y: ArrayLike) -> Codes:
    """Pair codes of some rows, with the column of points where there is one; other columns no sum needs."""
    columns = read_columns(y)
    codes = integer_codes(columns["answer"])
    if "point" not in columns:
        return codes
    return np.column_stack([codes, whole_numbers(columns["point"], "point of y")])


def codes_of(y: Codes) -> Codes:
    """The pair codes of a block."""
    return y if y.ndim == 1 else y[:, 0]


@dataclass(frozen=True)
class PointCounts:
    """In how many answers points are; ``+`` joins two stretches of rows.

    Attributes
    ----------
    points : array
        Points in answers, sorted; none where rows are points of their own.
    counts : array
        Answers of each.
    """

    points: Codes
    counts: Indices

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


def count_points(X: Rows, y: Codes, weight: Array | None) -> PointCounts | None:
    """The points of a block's answers, as a task."""
    y = y if weight is None else y[weight > 0]
    return PointCounts.of(y) if len(y) else None


def refuse_shared_points(counts: PointCounts | None, what: str, instead: str) -> None:
    """Refuse answers that share points where their graph would be needed."""
    if counts is None or not counts.shared:
        return
    n_answers = int(counts.counts.sum()) // 2
    raise InputError(
        f"The {n_answers:,} answers share {len(counts.points):,} points, and {what} needs all of these together, "
        f"which blocks of rows do not show. {instead}"
    )
