"""Predictions of a table, stretch by stretch, in its order; a Parquet table is read by all cores."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from sdulearn.columns import ColumnLayout, encode, id_texts
from sdulearn.extras import require
from sdulearn.io.files import Location
from sdulearn.io.parquet import RawRows, RowGroups, open_parquet
from sdulearn.io.tables import check_format, choose_id, needed_columns, read_chunks
from sdulearn.table_model import TableModel
from sdulearn.types import Array, Indices, Rows
from sdulearn.workflow.engines import Progress, Watch

T = TypeVar("T")


@dataclass(frozen=True)
class Predictions:
    """Some rows."""

    ids: Any  # ids as text, or as they stand in a Parquet table; row numbers where it has none
    place: Indices  # place of each row's class among those of the model
    # (n_rows,), probability of the second class, where the model gives one; with more than two classes that of each
    probability: Array | None
    unseen: Counter[str]  # texts that are no known category, by column

    def id_texts(self) -> list[str]:
        """The ids as text."""
        return self.ids if isinstance(self.ids, list) else id_texts(self.ids).to_pylist()


def predict_table(
    model: TableModel, path: Location, *, id_column: str | None = None, progress: Progress | None = None
) -> Iterator[Predictions]:
    """Predict all rows of a file or folder in their order, portion by portion; never all in memory.

    Parameters
    ----------
    model : TableModel
        The model.
    path : str or path-like
        Table with the columns of the training table, in any order.
    id_column : str, optional
        The column of ids, or "" for row numbers; by default that of the training table, where it is there.
    progress : function, optional
        Called with the number of rows of a Parquet table; gives a function that is called with the number of
        rows after each portion, and with None at the end.

    Yields
    ------
    Predictions
        Some rows.
    """
    if check_format(path, model.layout) == "parquet":
        yield from _of_parquet(model, path, id_column, progress)
        return
    for chunk in read_chunks(path, model.layout, id_column=id_column):
        yield _predicted(model, chunk.X, chunk.ids, chunk.unseen)


def _predicted(model: TableModel, X: Rows, ids: Any, unseen: Counter[str]) -> Predictions:
    decision = model.decide(X)
    return Predictions(ids, model.places(decision), model.probability(decision), unseen)


def _of_parquet(
    model: TableModel, path: Location, id_column: str | None, progress: Progress | None
) -> Iterator[Predictions]:
    layout = model.layout
    assert isinstance(layout, ColumnLayout)
    table = open_parquet(path)
    names = list(table.types)
    id_column = choose_id(str(path), names, id_column, (layout.id_column,))
    columns = needed_columns(path, layout, id_column, names)
    own = ColumnLayout(layout.columns, id_column)
    watch = None if progress is None else progress(table.n_rows)
    with threadpool_limits(1, user_api="blas"):
        jobs = (partial(_of_group, model, own, group, columns, watch) for group in table.groups)
        for found in in_order(jobs, os.cpu_count() or 1):
            yield from found
    if watch is not None:
        watch(None)


def _of_group(
    model: TableModel, layout: ColumnLayout, group: RowGroups, columns: Sequence[str], watch: Watch | None
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
