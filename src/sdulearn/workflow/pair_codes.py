"""Pair codes in a column of the table: counted, checked and drawn from, a stretch of rows at a time.

A draw of pairs must take both ends, wherever they are. So each pair gets a mark that its code alone
decides and that looks random, and the pairs with the lowest marks are drawn; likewise unlabeled
rows, by their numbers. Any stretch of rows can be looked at by itself, and the lowest of all are
among the lowest of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sdulearn.blocks.problem import PointCounts
from sdulearn.errors import InputError, quoted
from sdulearn.pairs import pair_checksum, read_pairs, scramble
from sdulearn.types import Codes, Mask
from sdulearn.workflow.training import AnswerSource, Questions

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


def drawn_questions(path: str, column: str, sums: CodeSums) -> Questions:
    """The drawn pairs, in the order of their codes; an error where codes are not on two rows each."""
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
    return Questions(rows[pairs.ends], pairs.similar, np.ones(len(pairs.ends)))


def source_of_codes(path: str, column: str, sums: CodeSums) -> AnswerSource:
    """Where answers that are pair codes come from; a row is in one pair, so none contradicts another."""
    name = f"{Path(path).name}, column {column!r}"
    return AnswerSource(name, sums.n_similar // 2, sums.n_dissimilar // 2, columns={"codes": column})


@dataclass(frozen=True)
class DrawnOrPaired:
    """Says of rows whether they belong to a pair or to the draw of unlabeled rows."""

    highest: int

    def __call__(self, rows: Codes, codes: Codes) -> Mask:
        """One answer a row."""
        return (codes != 0) | (scramble(rows) <= np.uint64(self.highest))
