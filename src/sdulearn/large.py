"""Fit and predict rows that do not fit in memory: Parquet files, Dask arrays and Dask frames.

Squared loss needs sums alone. Every other model is fitted to all known rows (in answers or with a label), a sample of
the others, and exact moments, in one pass. The sample has the rows with the smallest hash of seed and row number.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.y import COLUMNS, scramble
from sdulearn.base import LinearClassifier
from sdulearn.errors import InputError, quoted, require
from sdulearn.io.files import Location
from sdulearn.linear import SDUClassifier
from sdulearn.parts import Sums, is_dask
from sdulearn.solvers.linalg import check_system_size
from sdulearn.statistics import PairStatistics
from sdulearn.tables.number_rows import Batch, RowSource, join
from sdulearn.tables.source import DaskTable, open_table
from sdulearn.types import Codes, Estimator, Frame

__all__ = ["dask_rows", "fit_rows", "map_rows", "parquet_rows"]


def survey(
    source: RowSource, n_unlabeled: int | None = 20_000, seed: int = 0, *, moments: bool = True
) -> tuple[Batch, PairStatistics, bool]:
    """Return known rows and a sample of the others, which has their weight; sums; whether no row was left out."""
    # With ``n_unlabeled=None`` no features are kept.
    if moments:
        check_system_size(len(source.columns))
    n_drawn, n_rows = n_unlabeled or 0, source.table.n_rows or 0
    while True:
        # Enough rows have hashes below this if half of all, or in a second pass all that are counted, may be drawn.
        share = min((2 * n_drawn + 16 * np.sqrt(n_drawn)) / max(n_rows, 1), 1.0)
        highest = None if n_unlabeled is None else int(share * 2**63) * 2 - 1
        sums: Sums | None = source.sum(partial(_survey, seed, highest, moments))
        if sums is None:
            raise InputError(f"{source.table.name} has no rows.")
        known, sample = join(sums["known"]), join(sums["sample"])
        sample = sample.take(np.argsort(_hashes(sample.rows, seed))[:n_drawn])
        n_rows = sums["n_others"]
        if len(sample.rows) == min(n_drawn, n_rows):
            break
    is_complete = len(sample.rows) == n_rows
    if known.y.ndim == 2:
        # A point that is in an answer must not count again.
        sample = sample.take(~np.isin(sample.y[:, 1], known.y[:, 1]))
    if not is_complete and len(sample.rows):
        sample = sample._replace(weight=sample.weight * (sums["weight_of_others"] / sample.weight.sum()))
    both = join([known, sample])
    return both.take(np.argsort(both.rows)), sums["statistics"], is_complete


def _survey(seed: int, highest: int | None, moments: bool, batch: Batch) -> Sums:
    statistics = PairStatistics()
    codes = batch.y.T[0] if batch.y.ndim == 2 else batch.y
    if moments:
        statistics.update(batch.X, codes, None if (batch.weight == 1).all() else batch.weight)
    batch = batch if highest is not None else batch._replace(X=batch.X[:, :0])
    is_known = (codes != 0) | (batch.y[:, 3:4].any(axis=1) if batch.y.ndim == 2 else False)
    known = batch.take(is_known & (batch.weight > 0))
    others = batch.take(~is_known & (batch.weight > 0))
    sample = others.take(_hashes(others.rows, seed) <= np.uint64(highest or 0))
    counts = {"n_others": len(others.rows), "weight_of_others": float(others.weight.sum())}
    return Sums(statistics=statistics, known=[known], sample=[sample], **counts)


def _hashes(rows: Codes, seed: int) -> NDArray[np.uint64]:
    return scramble(rows.astype(np.uint64) ^ scramble(np.array([seed])))


def fit_rows(estimator: Estimator, source: RowSource, *, n_unlabeled: int = 20_000) -> Estimator:
    """Fit an estimator to rows that do not fit in memory, in one pass, or two if most rows are in answers.

    :class:`~sdulearn.SDUClassifier` with squared loss is fitted to sums, exactly as in memory. Every other estimator is
    fitted to all rows in answers or with a label, and to a weighted sample of the others. Linear ones also use exact
    moments: the risks the mean of the unlabeled rows, and the joint likelihood their mean and covariance.

    Parameters
    ----------
    estimator : estimator
        An estimator of ours, or a Pipeline that ends with one.
    source : RowSource
        From :func:`parquet_rows` or :func:`dask_rows`. Standardise the features for linear models.
    n_unlabeled : int, default=20_000
        Size of the sample of rows in no answer and without a label.

    Returns
    -------
    estimator
        The fitted estimator.
    """
    if n_unlabeled < 1:
        raise InputError(f"`n_unlabeled` must be 1 or more, got {n_unlabeled}.")
    is_linear = isinstance(estimator, LinearClassifier)
    by_sums = isinstance(estimator, SDUClassifier) and hasattr(estimator, "partial_fit")
    rows, statistics, is_complete = survey(source, None if by_sums else n_unlabeled, moments=is_linear)
    if by_sums:
        estimator._fit_sums(statistics, AnswerGraph.from_y(rows.y, rows.weight))
    elif is_linear and not is_complete:
        estimator._fit_sample(rows.X, rows.y, rows.weight, statistics)
    else:
        name = f"{estimator.steps[-1][0]}__sample_weight" if hasattr(estimator, "steps") else "sample_weight"
        estimator.fit(rows.X, rows.y, **({} if (rows.weight == 1).all() else {name: rows.weight}))
    if is_linear:
        estimator.feature_names_in_ = np.array(source.columns, dtype=object)
    return estimator


def parquet_rows(
    path: Location | Frame,
    *,
    codes: str | None = None,
    points: str | None = None,
    weights: str | None = None,
    columns: Sequence[str] | None = None,
) -> RowSource:
    """Read the rows of a Parquet file, or of a folder of them, on all cores.

    Parameters
    ----------
    path : str, path-like or frame
        A file, a folder of files with the same columns, or a frame in memory.
    codes, points, weights : str, optional
        Columns of pair codes (+k similar, -k dissimilar, 0 in no pair), of point numbers (rows with equal ones show the
        same point; by default every row is a point) and of row weights.
    columns : sequence of str, optional
        The columns of features, all numbers; by default all but the above.

    Returns
    -------
    RowSource
        For :func:`fit_rows` and :func:`map_rows`.
    """
    table = open_table(path)
    known = {role: name for role, name in (("answer", codes), ("point", points), ("weight", weights)) if name}
    features = [name for name in table.types if name not in known.values()]
    return RowSource(table, features if columns is None else list(columns), known)


def dask_rows(frame_or_array: Any, y: Any, sample_weight: Any | None = None) -> RowSource:
    """Use the rows of a dask array or DataFrame, which its workers read.

    Parameters
    ----------
    frame_or_array : dask array of shape (n_rows, n_features) or dask DataFrame
        The features, all numbers.
    y, sample_weight : dask array, Series or DataFrame, or array-like
        What is known about each row (see :func:`~sdulearn.stack_pairs`), and its weight.

    Returns
    -------
    RowSource
        For :func:`fit_rows`; the work goes to the current ``distributed.Client``, if there is one.
    """
    X = frame_or_array
    if not is_dask(X) or X.ndim != 2:
        raise InputError(f"Rows must be a dask array or DataFrame, got {type(X).__name__}: use dask.array.from_array.")
    da, dd = require("dask.array", "dask"), require("dask.dataframe", "dask")
    known_lengths: Sequence[int] = ()
    if not hasattr(X, "columns"):
        known_lengths = () if np.isnan(X.shape[0]) else X.chunks[0]
        X = dd.from_dask_array(X.rechunk({1: -1}), columns=[f"x{j}" for j in range(X.shape[1])])
    table = DaskTable.open(X, known_lengths)
    y = y if is_dask(y) else np.asarray(AnswerGraph.from_y(y))
    known = {"answer": y}
    if y.ndim == 2:
        names = list(getattr(y, "columns", COLUMNS[: y.shape[1]]))
        known = {name: y[name] if hasattr(y, "columns") else y[:, j] for j, name in enumerate(names)}
    known |= {} if sample_weight is None else {"weight": sample_weight}
    lengths = table.lengths
    for role, values in known.items():
        values = values if is_dask(values) else da.from_array(np.asarray(values), chunks=-1)
        if not hasattr(values, "chunks"):
            lengths = ()  # Dask may split the rows in another way to align a Series.
        elif not np.isnan(values.shape[0]):
            if values.shape[0] != table.n_rows:
                raise InputError(f"`X` has {table.n_rows:,} rows, but {role!r} has {values.shape[0]:,} values.")
            values = values.rechunk((tuple(table.lengths),))
        X = X.assign(**{f"{role} of y": values})
    return RowSource(DaskTable.open(X, lengths), list(table.types), {role: f"{role} of y" for role in known})


def map_rows(model: Estimator, frame_or_array: Any, method: str = "predict") -> Any:
    """Predict rows that do not fit in memory.

    Parameters
    ----------
    model : fitted estimator or TableModel
        The model; a :class:`~sdulearn.TableModel` predicts a Dask frame of raw columns.
    frame_or_array : dask array, dask DataFrame or RowSource
        The rows.
    method : {"predict", "predict_proba", "decision_function"}, default="predict"
        The method of the model.

    Returns
    -------
    dask array, Series or DataFrame, or iterator of arrays
        Lazy values, in the chunks or partitions of the rows; of :func:`parquet_rows` those of one batch after another.
    """
    X = frame_or_array
    is_frame = is_dask(X) and hasattr(X, "columns")
    if is_frame and (names := getattr(model, "feature_names_in_", None)) is not None:
        if absent := [name for name in names if name not in X.columns]:
            raise InputError(f"The frame lacks the column {quoted(absent[0])} that the model needs. Add it.")
        X = X[list(names)]
    elif not is_frame:
        # Arrays have no names to check.
        model = copy(model)
        model.__dict__.pop("feature_names_in_", None)
    classes = np.array(model.classes if hasattr(model, "classes") else model.classes_).tolist()
    by_class = classes if method == "predict_proba" or (method != "predict" and len(classes) > 2) else None
    dtype = (object if isinstance(classes[0], str) else np.int64) if method == "predict" else np.float64
    empty = np.empty((0, len(classes)) if by_class else 0, dtype)
    predict = partial(_predict, model=model, method=method, empty=empty, by_class=by_class)
    if isinstance(X, RowSource):
        return X.map(lambda batch: predict(batch.X))
    if is_frame:
        return X.map_partitions(predict, meta=predict(X._meta))
    X = X.rechunk({1: -1})
    shape: dict[str, Any] = {"chunks": (X.chunks[0], (len(classes),))} if by_class else {"drop_axis": 1}
    return X.map_blocks(predict, dtype=dtype, meta=empty, **shape)


def _predict(X: Any, model: Estimator, method: str, empty: NDArray[Any], by_class: list[Any] | None) -> Any:
    """Predict a chunk or a partition, as an array, a Series or a frame with one column per class."""
    rows = X if hasattr(model, "feature_names_in_") or hasattr(model, "columns") else np.asarray(X)
    # scikit-learn refuses a chunk without rows.
    values = np.asarray(getattr(model, method)(rows)) if X.shape[0] else empty
    if not hasattr(X, "index"):
        return values
    pandas = require("pandas", "dask")
    return pandas.Series(values, X.index) if by_class is None else pandas.DataFrame(values, X.index, by_class)
