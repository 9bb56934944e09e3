"""Predictions of a table, stretch by stretch, in its order; a Parquet table is read by all cores."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sdulearn.cli.progress import Progress
from sdulearn.columns import ColumnLayout, encode, id_texts
from sdulearn.extras import require
from sdulearn.io.parquet import RawRows, RowGroups, open_parquet
from sdulearn.io.tables import check_format, choose_id, needed_columns, read_chunks
from sdulearn.table_model import TableModel
from sdulearn.types import Array

T = TypeVar("T")


@dataclass(frozen=True)
class Predictions:
    """Some rows.

    Attributes
    ----------
    ids : list of str or pyarrow array
        Ids as text, or as they stand in a Parquet table; row numbers where it has none.
    positive : bool array
        Whether a row is of the second class.
    probability : array or None
        Probability of that, where the model gives one.
    unseen : Counter
        Texts that are no known category, by column.
    """

    ids: Any
    positive: NDArray[np.bool_]
    probability: Array | None
    unseen: Counter[str]

    def id_texts(self) -> list[str]:
        """The ids as text."""
        return self.ids if isinstance(self.ids, list) else id_texts(self.ids).to_pylist()


def predictions(
    model: TableModel, path: Path, id_column: str | None, progress: Progress | None = None
) -> Iterator[Predictions]:
    """All rows of a table in their order; never all in memory."""
    if check_format(path, model.layout) == "parquet":
        yield from _of_parquet(model, path, id_column, progress)
        return
    for chunk in read_chunks(path, model.layout, id_column=id_column):
        yield _predicted(model, chunk.X, chunk.ids, chunk.unseen)


def _predicted(model: TableModel, X: Any, ids: Any, unseen: Counter[str]) -> Predictions:
    decision = model.decision(X)
    return Predictions(ids, decision > 0, model.probability(decision), unseen)


def _of_parquet(
    model: TableModel, path: Path, id_column: str | None, progress: Progress | None
) -> Iterator[Predictions]:
    layout = model.layout
    assert isinstance(layout, ColumnLayout)
    table = open_parquet(path)
    names = list(table.types)
    id_column = choose_id(path, names, id_column, (layout.id_column,))
    columns = needed_columns(path, layout, id_column, names)
    watch = None if progress is None else progress.expect(table.n_rows)
    with threadpool_limits(1, user_api="blas"):
        jobs = (
            partial(_of_group, model, ColumnLayout(layout.columns, id_column), group, columns, watch)
            for group in table.groups
        )
        for found in in_order(jobs, os.cpu_count() or 1):
            yield from found
    if watch is not None:
        watch(None)


def _of_group(
    model: TableModel, layout: ColumnLayout, group: RowGroups, columns: list[str], watch: Progress | None
) -> list[Predictions]:
    """Predictions of some row groups; they are small beside the rows themselves."""
    pa = require("pyarrow", "files")
    found = []
    for batch, rows, _ in RawRows(group, tuple(columns), layout.width)():
        X, unseen = encode(group.path, layout, batch)
        ids = pa.array(rows) if layout.id_column is None else batch[layout.id_column]
        found.append(_predicted(model, X, ids, unseen))
        if watch is not None:
            watch(len(rows))
    return found


def in_order(jobs: Iterable[Callable[[], T]], n_threads: int) -> Iterator[T]:
    """Results in the order of the jobs, a few at work ahead of the reader and no more."""
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
