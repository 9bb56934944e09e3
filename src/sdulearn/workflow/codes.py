"""Pair codes in a column of the table, and fits on all of its rows; both read batch by batch.

A draw of pairs must have both ends of each, wherever they are. So a pair has a mark: a hash of its code,
which looks random. The pairs with the lowest marks are drawn, and likewise unlabeled rows by a hash of
their numbers. Every batch can be read on its own, as the lowest marks of all are among those of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdulearn.answers.records import Answers
from sdulearn.blocks import points_of, refuse_shared
from sdulearn.columns import Columns, pair_codes, point_numbers
from sdulearn.diagnostics import Finding
from sdulearn.errors import InputError, quoted
from sdulearn.io.survey import parts_of, without_blanks
from sdulearn.io.tables import TEXT_FORMATS, Part, RowGroups, Table, batch_rows
from sdulearn.pairs import DISSIMILAR, SIMILAR, pair_checksum, read_pairs, scramble
from sdulearn.spelling import plain_numbers, trimmed
from sdulearn.types import ArrowColumn, ArrowTable, Codes, Mask
from sdulearn.workflow.options import MEMORY, Engine, FitOptions

if TYPE_CHECKING:
    from sdulearn.blocks import Block
    from sdulearn.blocks import Part as BlockPart
    from sdulearn.workflow.data import TrainingData

# Most pairs of a column of codes to choose settings on, if the table is not in memory.
MAX_PAIRS = 20_000


@dataclass(frozen=True)
class CodeSums:
    """Counts of a column of pair codes, and a draw of pairs and unlabeled rows."""

    n_similar: int  # rows of each kind
    n_dissimilar: int
    n_unlabeled: int
    check: int  # see :func:`sdulearn.pairs.pair_checksum`; combined with ``^``
    ends: Codes  # (n, 3), row, code and point of each end of the drawn pairs
    unlabeled: Codes  # the same of the drawn unlabeled rows
    points: list[Codes]  # the points of all answers, if a column has them
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
    """Return the rows whose keys have the lowest marks."""
    if limit is None or len(drawn) <= limit:
        return drawn
    return drawn[np.argpartition(scramble(np.abs(drawn[:, key])), limit - 1)[:limit]]


def code_sums(
    codes: Codes, rows: Codes, max_pairs: int | None, max_unlabeled: int, points: Codes | None = None
) -> CodeSums:
    """Count the codes of some rows, and draw from them; without points every row is a point."""
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
    """Count the pair codes of a batch, and draw from them."""
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
    """Pass over the columns of pair codes and of points."""
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
    """Return the drawn pairs as fields of TrainingData, in the order of their codes."""
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
    ends = rows[pairs.ends]
    n_pairs = len(ends)
    answers = Answers(
        name=f"{Path(path).name}, column {column!r}",
        ids=ends.astype(str).astype(object),
        answers=np.where(pairs.similar, SIMILAR, DISSIMILAR),
        weights=np.ones(n_pairs),
        annotators=None,
        lines=np.arange(1, n_pairs + 1),
        columns={"codes": column},
        words={},
        format="codes",
    )
    counts = {"n_similar": sums.n_similar // 2, "n_dissimilar": sums.n_dissimilar // 2}
    return {"answers": answers, "used": np.arange(n_pairs), "ends": ends, **counts}


def of_codes(
    data: TrainingData, rows: Codes, table: Table, options: FitOptions, engine: Engine, sums: CodeSums
) -> TrainingData:
    """Return the data of drawn pairs with their points and, for a risk, the fit on all rows."""
    if options.points is not None:
        # Rows that were kept only for their labels are in no fit.
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
            # The report counts the pairs that are learned from.
            n_similar = int(data.similar.sum())
            finding = Finding("pairs_drawn", "info", {"n_used": n_used, "n_pairs": n_pairs})
            return replace(data, n_similar=n_similar, n_dissimilar=n_used - n_similar, findings=[finding])
    keep = None
    if options.max_unlabeled is not None and 0 < len(sums.unlabeled) < sums.n_unlabeled:
        keep = partial(drawn_or_paired, int(scramble(sums.unlabeled[:, 0]).max()))
    return with_all_rows(data, table, options, engine, keep, sums.n_unlabeled)


def drawn_or_paired(highest: int, rows: Codes, codes: Codes) -> Mask:
    """Return which rows are in a pair or, by their marks, in the draw of unlabeled rows."""
    return (codes != 0) | (scramble(rows) <= np.uint64(highest))


def with_all_rows(
    data: TrainingData,
    table: Table,
    options: FitOptions,
    engine: Engine,
    keep: Callable[[Codes, Codes], Mask] | None = None,
    n_unlabeled: int | None = None,
) -> TrainingData:
    """Return the data with the parts of a fit on all rows to keep, if a risk is fitted out of memory."""
    few = options.max_unlabeled is not None and data.same_answers
    if options.is_joint or engine.name == MEMORY or few:
        return data
    is_text = table.format in TEXT_FORMATS
    parts: list[BlockPart] = [
        FeatureRows(part, table.name, data.columns, options.codes, is_text, keep) for part in table.parts
    ]
    if options.codes is None:
        # All ends with their codes, once more: among the rows of the table they count as unlabeled.
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
    """A part of a table as blocks of standardised features and pair codes (0 without a column)."""

    part: Part
    table: str
    columns: Columns
    codes: str | None = None
    is_text: bool = False
    keep: Callable[[Codes, Codes], Mask] | None = None  # which rows to use, by their numbers and codes

    @property
    def n_blocks(self) -> int:
        """Number of blocks; 1 if unknown."""
        return -(-self.part.rows // batch_rows(self.columns.width)) if isinstance(self.part, RowGroups) else 1

    def __call__(self) -> Iterator[Block]:
        """Read the blocks."""
        names = [*(column.name for column in self.columns.columns), *([self.codes] if self.codes else [])]
        for begin, batch in self.part(names, batch_rows(self.columns.width)):
            batch, places = without_blanks(batch)
            rows = begin + places
            y = np.zeros_like(rows)
            if self.codes:
                y = pair_codes(self.table, self.codes, _numbers(batch[self.codes], self.is_text))
            # In place: another copy would take a third of the time of a pass.
            X = self.columns.encode(self.table, batch)[0]
            X -= self.columns.mean
            X /= self.columns.scale
            kept = slice(None) if self.keep is None else self.keep(rows, y)
            if len(y[kept]):
                yield X[kept], y[kept], None
