"""Pair codes in a column of the table: counted, checked and drawn from, a stretch of rows at a time.

A draw of pairs must take both ends, wherever they are. So each pair gets a mark that its code alone
decides and that looks random, and the pairs with the lowest marks are drawn; likewise unlabeled
rows, by their numbers. Any stretch of rows can be looked at by itself, and the lowest of all are
among the lowest of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdulearn.blocks.problem import PointCounts
from sdulearn.columns import NumberText, as_numbers, pair_codes, point_numbers
from sdulearn.errors import InputError, quoted
from sdulearn.pairs import pair_checksum, read_pairs, scramble
from sdulearn.types import ArrowColumn, ArrowTable, Codes, Indices, Mask

Marks = NDArray[np.uint64]


@dataclass(frozen=True)
class Lowest:
    """The rows with the lowest marks, at most ``limit`` of them; ``+`` joins two draws."""

    limit: int | None
    marks: Marks
    rows: Codes
    codes: Codes
    points: Codes

    @staticmethod
    def of(limit: int | None, marks: Marks, rows: Codes, codes: Codes, points: Codes) -> Lowest:
        """The draw from some rows."""
        if limit is None or len(marks) <= limit:
            return Lowest(limit, marks, rows, codes, points)
        kept = np.argpartition(marks, limit - 1)[:limit]
        return Lowest(limit, marks[kept], rows[kept], codes[kept], points[kept])

    def __add__(self, other: Lowest) -> Lowest:
        mine = (self.marks, self.rows, self.codes, self.points)
        others = (other.marks, other.rows, other.codes, other.points)
        return Lowest.of(self.limit, *(np.concatenate(both) for both in zip(mine, others, strict=True)))


@dataclass(frozen=True)
class CodeSums:
    """What a column of pair codes adds up to."""

    n_similar: int  # rows of each kind
    n_dissimilar: int
    n_unlabeled: int
    check: int  # see :func:`sdulearn.pairs.pair_checksum`; joined with ``^``
    ends: Lowest  # the draw of pairs, both ends of each, and of unlabeled rows
    unlabeled: Lowest
    points: PointCounts  # the points of all answers, where a column says which they are

    def __add__(self, other: CodeSums) -> CodeSums:
        return CodeSums(
            self.n_similar + other.n_similar,
            self.n_dissimilar + other.n_dissimilar,
            self.n_unlabeled + other.n_unlabeled,
            self.check ^ other.check,
            self.ends + other.ends,
            self.unlabeled + other.unlabeled,
            self.points + other.points,
        )


def code_sums(
    codes: Codes, rows: Codes, max_pairs: int | None, max_unlabeled: int, points: Codes | None = None
) -> CodeSums:
    """Count some rows, and draw from them; without points every row is one."""
    named = codes != 0
    free = rows[~named]
    end_codes = codes[named]
    marks = scramble(np.abs(end_codes))
    shown = rows if points is None else points
    return CodeSums(
        n_similar=int(np.sum(codes > 0)),
        n_dissimilar=int(np.sum(codes < 0)),
        n_unlabeled=len(free),
        check=pair_checksum(codes),
        ends=Lowest.of(max_pairs and 2 * max_pairs, marks, rows[named], end_codes, shown[named]),
        unlabeled=Lowest.of(max_unlabeled, scramble(free), free, np.zeros_like(free), shown[~named]),
        points=PointCounts.of(codes if points is None else np.column_stack([codes, points])),
    )


def count_codes(
    batch: ArrowTable,
    rows: Codes,
    _: None,
    path: str,
    columns: tuple[str, str | None],
    is_text: bool,
    max_pairs: int | None,
    max_unlabeled: int,
) -> CodeSums:
    """Count the pair codes of a batch, and the points of another column, if any, and draw from them."""
    column, point_column = columns
    codes = pair_codes(path, column, _numbers(batch[column], is_text))
    points = None
    if point_column is not None:
        points = point_numbers(path, point_column, _numbers(batch[point_column], is_text))
    return code_sums(codes, rows, max_pairs, max_unlabeled, points)


def _numbers(values: ArrowColumn, is_text: bool) -> ArrowColumn:
    return as_numbers(values, NumberText()) if is_text else values


def drawn_pairs(path: str, column: str, sums: CodeSums) -> tuple[Indices, Mask]:
    """Rows of the drawn pairs and whether they are similar, by codes; an error where one is not on two rows."""
    ends = sums.ends
    n_named = sums.n_similar + sums.n_dissimilar
    if sums.check and len(ends.rows) < n_named:
        raise InputError(
            f"{path}: some pair codes of column {column!r} do not stand on exactly two rows with one sign. Find them "
            f"by counting: pyarrow.dataset.dataset(...).to_table(columns=[{column!r}]).group_by({column!r})"
            f".aggregate([({column!r}, 'count')])"
        )
    if not n_named:
        raise InputError(
            f"{path}: column {quoted(column)} holds no pair codes but 0, so there are no pairs to learn from."
        )
    order = np.argsort(ends.rows)
    rows = ends.rows[order]
    try:
        pairs = read_pairs(ends.codes[order])
    except ValueError as error:
        raise InputError(f"{path}, column {quoted(column)}: {error}") from None
    return rows[pairs.ends], pairs.similar


def drawn_or_paired(highest: int, rows: Codes, codes: Codes) -> Mask:
    """Which rows belong to a pair or, by their marks, to the draw of unlabeled rows."""
    return (codes != 0) | (scramble(rows) <= np.uint64(highest))
