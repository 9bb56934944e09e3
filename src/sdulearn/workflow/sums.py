"""What is asked of a table that streams by: functions of one batch, whose results add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.columns import ColumnLayout, ColumnSummary, add_summaries, encode, id_texts, pair_codes, summarise
from sdulearn.extras import require
from sdulearn.types import Array
from sdulearn.workflow.pair_codes import CodeSums, code_sums

Rows = NDArray[np.int64]


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
        squares = [float(centred @ centred) for centred in (column - m for column, m in zip(X.T, mean, strict=True))]
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
class Wanted:
    """What to look for.

    Attributes
    ----------
    path : str
        The table, for messages.
    layout : ColumnLayout
        How a batch becomes features.
    kinds : mapping or None
        Kinds of the columns, where missing values are still to be counted.
    rows : array
        Numbers of rows to keep, sorted.
    ids : array of str
        Ids of further rows to keep, sorted; empty where rows have no ids.
    """

    path: str
    layout: ColumnLayout
    kinds: Mapping[str, str] | None
    rows: Rows
    ids: NDArray[np.object_]


@dataclass(frozen=True)
class Seen:
    """What a look at some rows has found; ``+`` joins two looks.

    Attributes
    ----------
    summaries : Summaries or None
        Where they were asked for.
    moments : Moments or None
        None where values are missing.
    rows, X : list of arrays
        Numbers and features of the rows to keep.
    ids, places : list of arrays
        Which of the wanted ids were found, and on which rows.
    """

    summaries: Summaries | None
    moments: Moments | None
    rows: list[Rows]
    X: list[Array]
    ids: list[Rows]
    places: list[Rows]

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            _both(self.summaries, other.summaries),
            _both(self.moments, other.moments),
            self.rows + other.rows,
            self.X + other.X,
            self.ids + other.ids,
            self.places + other.places,
        )


def _both(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def summarise_batch(batch: Any, rows: Rows, _: None, kinds: Mapping[str, str]) -> Summaries:
    """What must be known of columns before they become features."""
    return Summaries(summarise(batch, kinds))


def count_codes(
    batch: Any, rows: Rows, _: None, path: str, column: str, max_pairs: int | None, max_unlabeled: int
) -> CodeSums:
    """Count pair codes, and draw from them."""
    return code_sums(pair_codes(path, column, batch[column]), rows, max_pairs, max_unlabeled)


def look(batch: Any, rows: Rows, _: None, wanted: Wanted) -> Seen:
    """Moments of the features, and the rows to keep."""
    summaries = None if wanted.kinds is None else Summaries(summarise(batch, wanted.kinds))
    if summaries is not None and any(column.gaps for column in summaries.columns.values()):
        return Seen(summaries, None, [], [], [], [])
    X, _unseen = encode(wanted.path, wanted.layout, batch)
    ids, at = _find_ids(batch, wanted)
    begin, end = np.searchsorted(wanted.rows, [rows[0], rows[0] + len(rows)])
    kept = np.union1d(wanted.rows[begin:end] - rows[0], at)
    return Seen(summaries, Moments.of(X), [rows[kept]], [X[kept]], [ids], [rows[at]])


def _find_ids(batch: Any, wanted: Wanted) -> tuple[Rows, Rows]:
    """Which of the wanted ids are in the batch, and where."""
    if not len(wanted.ids):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    pa, pc = require("pyarrow", "files"), require("pyarrow.compute", "files")
    texts = id_texts(batch[wanted.layout.id_column])
    found = pc.index_in(texts, value_set=pa.array(wanted.ids, texts.type)).fill_null(-1).to_numpy(zero_copy_only=False)
    at = np.flatnonzero(found >= 0)
    return found[at].astype(np.int64), at
