"""Sums over a table that streams by: functions of one batch, whose results add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.columns import (
    ColumnLayout,
    ColumnSummary,
    Kind,
    add_summaries,
    encode,
    id_texts,
    pair_codes,
    point_numbers,
    summarise,
)
from sdulearn.extras import require
from sdulearn.io.ids import Candidate
from sdulearn.types import Array, ArrowTable, Codes
from sdulearn.workflow.pair_codes import CodeSums, code_sums


@dataclass(frozen=True)
class Summaries:
    """Summaries by column; ``+`` joins two stretches of rows."""

    columns: dict[str, ColumnSummary]

    def __add__(self, other: Summaries) -> Summaries:
        return Summaries(add_summaries([self.columns, other.columns]))


@dataclass(frozen=True)
class Moments:
    """Number of rows, mean of each feature, and sum of squares about it.

    ``+`` joins two stretches of rows without the cancellation of plain sums of squares (Chan, Golub
    and LeVeque).
    """

    n: int
    mean: Array
    squares: Array

    @staticmethod
    def of(X: Array) -> Moments:
        """The moments of some rows."""
        mean = X.mean(axis=0)
        centred = (column - m for column, m in zip(X.T, mean, strict=True))
        squares = [float(column @ column) for column in centred]
        return Moments(len(X), mean, np.array(squares))

    def __add__(self, other: Moments) -> Moments:
        n = self.n + other.n
        shift = other.mean - self.mean
        squares = self.squares + other.squares + shift**2 * (self.n * other.n / n)
        return Moments(n, self.mean + shift * (other.n / n), squares)

    @property
    def variance(self) -> Array:
        """Of each feature."""
        return self.squares / self.n


@dataclass(frozen=True)
class RowQuery:
    """Which rows to keep."""

    path: str  # the table, for messages
    layout: ColumnLayout  # how a batch becomes features
    kinds: Mapping[str, Kind] | None  # kinds of the columns, where missing values are still to be counted
    rows: Codes  # numbers of rows to keep, sorted
    ids: NDArray[np.object_]  # ids of further rows to keep, sorted; empty where rows have no ids


@dataclass(frozen=True)
class RowsFound:
    """What was found in some rows; ``+`` joins two stretches of rows."""

    summaries: Summaries | None  # where they were asked for
    moments: Moments | None  # none where values are missing
    rows: list[Codes]  # numbers and features of the rows to keep
    X: list[Array]
    ids: list[Codes]  # which of the ids were found, and on which rows
    places: list[Codes]

    def __add__(self, other: RowsFound) -> RowsFound:
        return RowsFound(
            _both(self.summaries, other.summaries),
            _both(self.moments, other.moments),
            self.rows + other.rows,
            self.X + other.X,
            self.ids + other.ids,
            self.places + other.places,
        )


def _both(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def summarise_batch(batch: ArrowTable, rows: Codes, _: None, kinds: Mapping[str, Kind]) -> Summaries:
    """What must be known of columns before they become features."""
    return Summaries(summarise(batch, kinds))


def count_codes(
    batch: ArrowTable,
    rows: Codes,
    _: None,
    path: str,
    column: str,
    point_column: str | None,
    max_pairs: int | None,
    max_unlabeled: int,
) -> CodeSums:
    """Count pair codes, and draw from them."""
    codes = pair_codes(path, column, batch[column])
    points = None if point_column is None else point_numbers(path, point_column, batch[point_column])
    return code_sums(codes, rows, max_pairs, max_unlabeled, points)


def find_rows(batch: ArrowTable, rows: Codes, _: None, query: RowQuery) -> RowsFound:
    """Moments of the features, and the rows to keep."""
    summaries = None if query.kinds is None else Summaries(summarise(batch, query.kinds))
    if summaries is not None and any(column.gaps for column in summaries.columns.values()):
        return RowsFound(summaries, None, [], [], [], [])
    X, _unseen = encode(query.path, query.layout, batch)
    ids, at = _find_ids(batch, query)
    begin, end = np.searchsorted(query.rows, [rows[0], rows[0] + len(rows)])
    kept = np.union1d(query.rows[begin:end] - rows[0], at)
    return RowsFound(summaries, Moments.of(X), [rows[kept]], [X[kept]], [ids], [rows[at]])


def _find_ids(batch: ArrowTable, query: RowQuery) -> tuple[Codes, Codes]:
    """Which of the wanted ids are in the batch, and where."""
    if not len(query.ids):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    texts = id_texts(batch[query.layout.id_column])
    places = pc.index_in(texts, value_set=pa.array(query.ids, texts.type))
    found = places.fill_null(-1).to_numpy(zero_copy_only=False)
    at = np.flatnonzero(found >= 0)
    return found[at].astype(np.int64), at


@dataclass(frozen=True)
class IdCounts:
    """How often each of the wanted ids occurs in each column; ``+`` joins two stretches of rows."""

    counts: dict[str, Codes]

    def __add__(self, other: IdCounts) -> IdCounts:
        return IdCounts({name: count + other.counts[name] for name, count in self.counts.items()})

    def candidates(self) -> list[Candidate]:
        """The columns, as :func:`sdulearn.io.ids.choose_by_answers` compares them."""
        return [
            Candidate(name, int(np.count_nonzero(count)), bool((count <= 1).all()))
            for name, count in self.counts.items()
        ]


def count_ids(batch: ArrowTable, rows: Codes, _: None, columns: Sequence[str], ids: NDArray[np.object_]) -> IdCounts:
    """Look for ids in several columns."""
    pa = require("pyarrow", "files")
    pc = require("pyarrow.compute", "files")
    counts = {}
    for name in columns:
        texts = id_texts(batch[name])
        place = pc.index_in(texts, value_set=pa.array(ids, texts.type)).drop_null()
        counts[name] = np.bincount(place.to_numpy(zero_copy_only=False), minlength=len(ids))
    return IdCounts(counts)
