"""Predictions of a table, stretch by stretch, in its order; a Parquet table is read by all cores."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from sdulearn.errors import InputError, require
from sdulearn.io.files import Location
from sdulearn.io.survey import id_texts, named_id_column
from sdulearn.io.tables import Part, batch_rows, open_table, svmlight_rows, table_format
from sdulearn.table_model import TableModel
from sdulearn.types import Array, ArrowColumn, Indices

if TYPE_CHECKING:
    from sdulearn.workflow.options import Progress, Watch

T = TypeVar("T")


@dataclass(frozen=True)
class Predictions:
    """Some rows."""

    ids: ArrowColumn  # as they stand in the table; row numbers where it has none
    place: Indices  # place of each row's class among those of the model
    # (n_rows,), probability of the second class, where the model gives one; with more than two classes that of each
    probability: Array | None
    unseen: Counter[str]  # texts that are no known category, by column

    def id_texts(self) -> list[str]:
        """The ids as text."""
        return id_texts(self.ids).to_pylist()


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
    is_sparse = model.columns.first is not None
    if is_sparse != (table_format(path) == "svm"):
        wanted = "an svmlight file (.svm)" if is_sparse else "a table with named columns"
        raise InputError(f"{path}: the model was fitted on {wanted}; give it one like that.")
    yield from _of_svmlight(model, path) if is_sparse else _of_table(model, path, id_column, progress)


def _of_svmlight(model: TableModel, path: Location) -> Iterator[Predictions]:
    pa = require("pyarrow", "files")
    for begin, X in svmlight_rows(path, model.columns):
        yield Predictions(pa.array(np.arange(begin, begin + X.shape[0])), *model.decide(X), Counter())


def _of_table(
    model: TableModel, path: Location, id_column: str | None, progress: Progress | None
) -> Iterator[Predictions]:
    columns = model.columns
    table = open_table(path)
    names = list(table.types)
    id_column = named_id_column(table.name, names, id_column, (columns.id_column,))
    needed = table.some(columns.needed(table.name, names, id_column))
    watch = None if progress is None or table.n_rows is None else progress(table.n_rows)
    parts = [_of_part(model, table.name, part, needed, id_column, watch) for part in table.parts]
    if len(parts) == 1:
        yield from parts[0]
    else:
        with threadpool_limits(1, user_api="blas"):
            # Predictions of a part are small beside its rows.
            for found in in_order((partial(list[Predictions], part) for part in parts), os.cpu_count() or 1):
                yield from found
    if watch is not None:
        watch(None)


def _of_part(
    model: TableModel, table: str, part: Part, needed: list[str], id_column: str | None, watch: Watch | None
) -> Iterator[Predictions]:
    pa = require("pyarrow", "files")
    for begin, batch in part(needed, batch_rows(model.columns.width)):
        X, unseen = model.columns.encode(getattr(part, "path", table), batch)
        ids = pa.array(np.arange(begin, begin + batch.num_rows)) if id_column is None else batch[id_column]
        yield Predictions(ids, *model.decide(X), unseen)
        if watch is not None:
            watch(batch.num_rows)


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
