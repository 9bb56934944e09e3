"""Pair codes in a column of the table, and fits on all of its rows: both read a stretch of rows at a time.

A draw of pairs must take both ends, wherever they are. So each pair gets a mark that its code alone
decides and that looks random, and the pairs with the lowest marks are drawn; likewise unlabeled
rows, by their numbers. Any stretch of rows can be looked at by itself, and the lowest of all are
among the lowest of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdulearn.blocks import points_of, refuse_shared
from sdulearn.columns import Columns, pair_codes, point_numbers
from sdulearn.diagnostics import Finding
from sdulearn.errors import InputError, quoted
from sdulearn.io.survey import parts_of, without_blanks
from sdulearn.io.tables import TEXT_FORMATS, Part, RowGroups, Table, batch_rows
from sdulearn.pairs import pair_checksum, read_pairs, scramble
from sdulearn.spelling import plain_numbers, trimmed
from sdulearn.types import ArrowColumn, ArrowTable, Codes, Mask
from sdulearn.workflow.options import MEMORY, Engine, FitOptions

if TYPE_CHECKING:
    from sdulearn.blocks import Block
    from sdulearn.blocks import Part as BlockPart
    from sdulearn.workflow.data import TrainingData

# Settings are chosen on so many of the pairs that a column of codes names, where the table is not in memory.
MAX_PAIRS = 20_000


@dataclass(frozen=True)
class CodeSums:
    """What a column of pair codes adds up to."""

    n_similar: int  # rows of each kind
    n_dissimilar: int
    n_unlabeled: int
    check: int  # see :func:`sdulearn.pairs.pair_checksum`; joined with ``^``
    ends: Codes  # (n, 3), row, code and point of each end of the drawn pairs
    unlabeled: Codes  # the same of the drawn unlabeled rows
    points: list[Codes]  # the points of all answers, where a column says which they are
    limits: tuple[int | None, int]  # most pairs and unlabeled rows to draw

    def __add__(self, other: CodeSums) -> CodeSums:
        max_pairs, max_unlabeled = self.limits
        return CodeSums(
            self.n_similar + other.n_similar,
            self.n_dissimilar + other.n_dissimilar,
            self.n_unlabeled + other.n_unlabeled,
            self.check ^ other.check,
            _lowest(np.concatenate([self.ends, other.ends]), 1, max_pairs and 2 * max_pairs),
            _lowest(np.concatenate([self.unlabeled, other.unlabeled]), 0, max_unlabeled),
            self.points + other.points,
            self.limits,
        )


def _lowest(drawn: Codes, key: int, limit: int | None) -> Codes:
    """The rows whose keys have the lowest marks, so many at most."""
    if limit is None or len(drawn) <= limit:
        return drawn
    return drawn[np.argpartition(scramble(np.abs(drawn[:, key])), limit - 1)[:limit]]


def code_sums(
    codes: Codes, rows: Codes, max_pairs: int | None, max_unlabeled: int, points: Codes | None = None
) -> CodeSums:
    """Count some rows, and draw from them; without points every row is one."""
    table = np.column_stack([rows, codes, rows if points is None else points])
    named = codes != 0
    return CodeSums(
        n_similar=int(np.sum(codes > 0)),
        n_dissimilar=int(np.sum(codes < 0)),
        n_unlabeled=int(np.sum(~named)),
        check=pair_checksum(codes),
        ends=_lowest(table[named], 1, max_pairs and 2 * max_pairs),
        unlabeled=_lowest(table[~named], 0, max_unlabeled),
        points=[points_of(codes if points is None else table[:, 1:])],
        limits=(max_pairs, max_unlabeled),
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
    plain = plain_numbers(trimmed(values)) if is_text else None
    return values if plain is None else plain


def sums_of_table(table: Table, options: FitOptions, engine: Engine) -> CodeSums:
    """One pass over the column of pair codes, and that of points."""
    assert options.codes is not None
    columns = [options.codes] if options.points is None else [options.codes, options.points]
    max_pairs = None if engine.name == MEMORY else MAX_PAIRS
    limit = options.most_unlabeled(len(table.types) - len(columns))
    is_text = table.format in TEXT_FORMATS
    arguments = (table.name, (options.codes, options.points), is_text, max_pairs, limit)
    found: CodeSums | None = engine.blocks(parts_of(table, columns), table.n_rows).sum(count_codes, *arguments)
    if found is None:
        raise InputError(f"{table.name} has no rows.")
    return found


def drawn_pairs(path: str, column: str, sums: CodeSums) -> dict[str, Any]:
    """The drawn pairs as fields of TrainingData, in the order of their codes; each must be on two rows."""
    n_named = sums.n_similar + sums.n_dissimilar
    if sums.check and len(sums.ends) < n_named:
        raise InputError(
            f"{path}: some pair codes of column {column!r} do not stand on exactly two rows with one sign. Find them "
            f"by counting: pyarrow.dataset.dataset(...).to_table(columns=[{column!r}]).group_by({column!r})"
            f".aggregate([({column!r}, 'count')])"
        )
    if not n_named:
        raise InputError(
            f"{path}: column {quoted(column)} holds no pair codes but 0, so there are no pairs to learn from."
        )
    rows, codes, _ = sums.ends[np.argsort(sums.ends[:, 0])].T
    try:
        pairs = read_pairs(codes)
    except ValueError as error:
        raise InputError(f"{path}, column {quoted(column)}: {error}") from None
    return {
        "name": f"{Path(path).name}, column {column!r}",
        "ends": rows[pairs.ends],
        "similar": pairs.similar,
        "weights": np.ones(len(pairs.ends)),
        "n_similar": sums.n_similar // 2,
        "n_dissimilar": sums.n_dissimilar // 2,
    }


def of_codes(
    data: TrainingData, rows: Codes, table: Table, options: FitOptions, engine: Engine, sums: CodeSums
) -> TrainingData:
    """The data of drawn pairs, with their points and, for a marginal risk, the way to fit on all rows."""
    if options.points is not None:
        # Rows that were kept for their labels alone are in no fit.
        points = np.array(rows, dtype=np.int64)
        for drawn in (sums.ends, sums.unlabeled):
            points[np.searchsorted(rows, drawn[:, 0])] = drawn[:, 2]
        data = replace(data, points=points)
    n_pairs = data.n_similar + data.n_dissimilar
    n_used = len(data.ends)
    if n_used < n_pairs:
        what = f"learning from more than {MAX_PAIRS:,} of them"
        refuse_shared(sums.points, what, "Read the table whole, with `engine='memory'`.")
        data = replace(data, same_answers=False)
        if options.is_joint:
            # Only some of the pairs are learned from, and they are what is counted.
            n_similar = int(data.similar.sum())
            finding = Finding("pairs_drawn", "info", {"n_used": n_used, "n_pairs": n_pairs})
            return replace(data, n_similar=n_similar, n_dissimilar=n_used - n_similar, findings=[finding])
    keep = None
    if options.max_unlabeled is not None and 0 < len(sums.unlabeled) < sums.n_unlabeled:
        keep = partial(drawn_or_paired, int(scramble(sums.unlabeled[:, 0]).max()))
    return with_all_rows(data, table, options, engine, keep, sums.n_unlabeled)


def drawn_or_paired(highest: int, rows: Codes, codes: Codes) -> Mask:
    """Which rows belong to a pair or, by their marks, to the draw of unlabeled rows."""
    return (codes != 0) | (scramble(rows) <= np.uint64(highest))


def with_all_rows(
    data: TrainingData,
    table: Table,
    options: FitOptions,
    engine: Engine,
    keep: Callable[[Codes, Codes], Mask] | None = None,
    n_unlabeled: int | None = None,
) -> TrainingData:
    """With the parts of a fit on all rows, or on those to keep, where a marginal risk is fitted on a large table."""
    few = options.max_unlabeled is not None and data.same_answers
    if options.is_joint or engine.name == MEMORY or few:
        return data
    is_text = table.format in TEXT_FORMATS
    parts: list[BlockPart] = [
        FeatureRows(part, table.name, data.columns, options.codes, is_text, keep) for part in table.parts
    ]
    if options.codes is None:
        # The ends of all pairs with their codes; among the rows of the table they count as unlabeled too.
        bare = replace(data, unlabeled=np.empty(0, dtype=np.intp), label_codes=None, points=None)
        rows, pairs, weights = bare.stacked
        parts.append(partial(_held, (rows, pairs.codes, weights)))
        n_unlabeled = data.n_rows
    drawn = data.n_unlabeled if options.max_unlabeled is not None else n_unlabeled or 0
    return replace(data, parts=parts, n_unlabeled=drawn)


def _held(block: Block) -> Iterator[Block]:
    yield block


@dataclass(frozen=True)
class FeatureRows:
    """A part whose blocks are standardised features with pair codes: those of a column, or 0."""

    part: Part
    table: str
    columns: Columns
    codes: str | None = None
    is_text: bool = False
    keep: Callable[[Codes, Codes], Mask] | None = None  # which rows to use, by their numbers and codes

    @property
    def n_blocks(self) -> int:
        """Number of blocks, as far as it is known."""
        return -(-self.part.rows // batch_rows(self.columns.width)) if isinstance(self.part, RowGroups) else 1

    def __call__(self) -> Iterator[Block]:
        """Batch by batch."""
        names = [*(column.name for column in self.columns.columns), *([self.codes] if self.codes else [])]
        for begin, batch in self.part(names, batch_rows(self.columns.width)):
            batch, places = without_blanks(batch)
            rows = begin + places
            y = np.zeros_like(rows)
            if self.codes:
                y = pair_codes(self.table, self.codes, _numbers(batch[self.codes], self.is_text))
            # In place: another copy of all numbers would take a third of the time of a pass.
            X = self.columns.encode(self.table, batch)[0]
            X -= self.columns.mean
            X /= self.columns.scale
            kept = slice(None) if self.keep is None else self.keep(rows, y)
            if len(y[kept]):
                yield X[kept], y[kept], None
