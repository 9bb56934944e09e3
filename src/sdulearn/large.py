"""Fit and predict rows that do not fit in memory: Parquet files, Dask arrays and Dask frames.

Squared loss needs sums alone. Every other model is fitted to all rows in answers or with a label, to a sample of the
others, and to the exact moments of all rows: one pass, on all cores or on the workers of a Dask cluster. The sample has
the rows with the smallest hash of seed and row number, so it does not depend on how the rows are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sdulearn.base import LinearClassifier
from sdulearn.columns import kind_of
from sdulearn.errors import InputError, quoted, require
from sdulearn.io.files import Location
from sdulearn.io.tables import DaskTable, Part, Table, batch_rows, open_table
from sdulearn.linear import SDUClassifier
from sdulearn.pairs import COLUMNS, check_columns, check_weights, join_columns, read_pairs, scramble, weighted_rows
from sdulearn.parts import Job, Sums, add_all, in_order, is_dask, lengths_of, sum_jobs
from sdulearn.solvers.linalg import check_system_size
from sdulearn.statistics import PairStatistics
from sdulearn.types import Array, ArrowTable, Codes, Estimator, Frame

__all__ = ["dask_rows", "fit_rows", "map_rows", "parquet_rows"]

T = TypeVar("T")


class Batch(NamedTuple):
    """Some rows: their numbers, features, ``y`` and weights."""

    rows: Codes
    X: NDArray[Any]
    y: Codes
    weight: Array

    def take(self, chosen: NDArray[Any]) -> Batch:
        """Return some of the rows."""
        return Batch(*(values[chosen] for values in self))


def _join(batches: Sequence[Batch]) -> Batch:
    return Batch(*map(np.concatenate, zip(*batches, strict=True)))


@dataclass(frozen=True)
class RowSource:
    """Rows of a table: columns of features, and columns that say what is known about a row."""

    table: Table
    columns: list[str]
    known: Mapping[str, str]  # by role: "answer", "point", "annotator", "label", "weight"

    def __post_init__(self) -> None:
        self.table.check_columns({"read": [*self.columns, *self.known.values()]})
        for name in self.columns:
            if kind_of(self.table.types[name]) not in ("number", "boolean"):
                raise InputError(
                    f"{self.table.name}: column {quoted(name)} does not hold numbers. Leave it out of `columns`, or "
                    "use sdulearn.fit_table, which turns texts and dates into features."
                )

    def jobs(self, function: Callable[[Iterable[Batch]], T]) -> list[Job]:
        """Return one job per part, which gives its batches to a function."""
        names = [*self.columns, *self.known.values()]
        return self.table.jobs(partial(_on_part, function, self.columns, dict(self.known)), names)


def _on_part(
    function: Callable[[Iterable[Batch]], T], columns: list[str], known: dict[str, str], _number: int, part: Part
) -> T:
    batches = part([*columns, *known.values()], batch_rows(len(columns)))
    return function(_batch(columns, known, begin, cells) for begin, cells in batches if cells.num_rows)


def _batch(columns: list[str], known: dict[str, str], begin: int, cells: ArrowTable) -> Batch:
    rows = begin + np.arange(cells.num_rows)
    given = {role: cells[name].to_numpy(zero_copy_only=False) for role, name in known.items()}
    weight = check_weights(given.pop("weight", np.ones(len(rows))), len(rows), "sample_weight")
    codes, others = check_columns({"answer": np.zeros_like(rows), **given})
    y = join_columns(codes, {"point": rows, **others} if others else {})
    return Batch(rows, np.stack([cells[name].to_numpy(zero_copy_only=False) for name in columns]).T, y, weight)


class Survey(NamedTuple):
    """What one pass keeps."""

    rows: Batch  # rows in an answer or with a label, and a sample of the others, which has their total weight
    statistics: PairStatistics  # of all rows
    is_complete: bool  # whether no row was left out


def survey(source: RowSource, n_unlabeled: int = 20_000, seed: int = 0, *, moments: bool = True) -> Survey:
    """Pass over all rows; without unlabeled rows no features are kept, and without ``moments`` no sums."""
    if moments:
        check_system_size(len(source.columns))
    # Enough rows have hashes below this: 8 standard errors more than are drawn.
    share = (n_unlabeled + 8 * np.sqrt(n_unlabeled) + 8) / max(source.table.n_rows or 1, 1)
    highest = int(min(share, 1.0) * 2**63) * 2 - 1 if n_unlabeled else -1
    found: Sums | None = sum_jobs(source.jobs(partial(_survey, seed, highest, moments)))
    if found is None:
        raise InputError(f"{source.table.name} has no rows.")
    known, sample = _join(found["known"]), _join(found["sample"])
    sample = sample.take(np.argsort(_hashes(sample.rows, seed))[:n_unlabeled])
    is_complete = len(sample.rows) == found["n_others"]
    if known.y.ndim == 2:
        # A point that is in an answer must not count again.
        sample = sample.take(~np.isin(sample.y[:, 1], known.y[:, 1]))
    if not is_complete and len(sample.rows):
        sample = sample._replace(weight=sample.weight * (found["weight_of_others"] / sample.weight.sum()))
    both = _join([known, sample])
    return Survey(both.take(np.argsort(both.rows)), found["statistics"], is_complete)


def _survey(seed: int, highest: int, moments: bool, batches: Iterable[Batch]) -> Sums | None:
    return add_all(_survey_batch(batch, seed, highest, moments) for batch in batches)


def _survey_batch(batch: Batch, seed: int, highest: int, moments: bool) -> Sums:
    codes = batch.y if batch.y.ndim == 1 else batch.y[:, 0]
    statistics = PairStatistics()
    if moments:
        statistics.update(batch.X, codes, None if (batch.weight == 1).all() else batch.weight)
    batch = batch if highest >= 0 else batch._replace(X=batch.X[:, :0])
    is_known = codes != 0
    if batch.y.ndim == 2:
        is_known |= batch.y[:, 3:4].any(axis=1)
    others = batch.take(~is_known & (batch.weight > 0))
    drawn = _hashes(others.rows, seed) <= np.uint64(max(highest, 0))
    counts = {"n_others": len(others.rows), "weight_of_others": float(others.weight.sum())}
    known = batch.take(is_known & (batch.weight > 0))
    return Sums(statistics=statistics, known=[known], sample=[others.take(drawn)], **counts)


def _hashes(rows: Codes, seed: int) -> NDArray[np.uint64]:
    return scramble(rows.astype(np.uint64) ^ scramble(np.array([seed])))


def fit_rows(estimator: Estimator, source: RowSource, *, n_unlabeled: int = 20_000) -> Estimator:
    """Fit an estimator to rows that do not fit in memory, in one pass over them.

    :class:`~sdulearn.SDUClassifier` with squared loss is fitted to sums, exactly as in memory. Every other estimator is
    fitted to all rows in answers or with a label, and to a sample of the others that has their total weight. The linear
    ones also use exact moments of the unlabeled rows: the risks the mean, or with squared loss all sums, and the joint
    likelihood mean and covariance.

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
    is_linear = isinstance(estimator, LinearClassifier)
    by_sums = isinstance(estimator, SDUClassifier) and hasattr(estimator, "partial_fit")
    (_, X, y, weight), statistics, is_complete = survey(source, 0 if by_sums else n_unlabeled, moments=is_linear)
    if by_sums:
        pairs, pair_weight, _ = weighted_rows(read_pairs(y), weight)
        estimator._fit_sums(pairs, pair_weight, statistics)
    elif is_linear and not is_complete:
        estimator._fit_sample(X, y, weight, statistics)
    else:
        steps = getattr(estimator, "steps", None)
        name = f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"
        estimator.fit(X, y, **({} if (weight == 1).all() else {name: weight}))
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
    codes : str, optional
        The column of pair codes: +k similar, -k dissimilar, 0 in no pair.
    points : str, optional
        The column of point numbers: rows with equal ones show the same point; by default every row is a point.
    weights : str, optional
        The column of row weights.
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
    y : dask array, Series or DataFrame, or array-like
        What is known about each row; see :func:`~sdulearn.stack_pairs`.
    sample_weight : dask array, Series or array-like, optional
        A weight per row.

    Returns
    -------
    RowSource
        For :func:`fit_rows`; the work goes to the current ``distributed.Client``, if there is one.
    """
    X = frame_or_array
    if not is_dask(X) or X.ndim != 2:
        raise InputError(
            f"Rows are a dask array or DataFrame, got {type(X).__name__}; dask.array.from_array makes one."
        )
    da, dd = require("dask.array", "dask"), require("dask.dataframe", "dask")
    if not hasattr(X, "columns"):
        X = dd.from_dask_array(X.rechunk({1: -1}), columns=[f"x{j}" for j in range(X.shape[1])])
    columns = list(map(str, X.columns))
    lengths = tuple(lengths_of(X))
    y = y if is_dask(y) else np.asarray(read_pairs(y))
    known = {"answer": y}
    if y.ndim == 2:
        frame = y if hasattr(y, "columns") else None
        known = {name: y[:, j] if frame is None else frame[name] for j, name in enumerate(COLUMNS[: y.shape[1]])}
    known |= {} if sample_weight is None else {"weight": sample_weight}
    for role, values in known.items():
        values = values if is_dask(values) else da.from_array(np.asarray(values), chunks=-1)
        if hasattr(values, "chunks") and not np.isnan(values.shape[0]):
            if values.shape[0] != sum(lengths):
                raise InputError(f"`X` has {sum(lengths):,} rows, but {role!r} has {values.shape[0]:,} values.")
            values = values.rechunk((lengths,))
        X = X.assign(**{f"{role} of y": values})
    return RowSource(DaskTable.open(X), columns, {role: f"{role} of y" for role in known})


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
        Lazy values, in the chunks or partitions of the rows; for :func:`parquet_rows` those of one part after another.
    """
    X = frame_or_array
    if isinstance(X, RowSource):
        return in_order(X.jobs(partial(_on_batches, _without_names(model), method)))
    classes = np.array(model.classes if hasattr(model, "classes") else model.classes_).tolist()
    by_class = method == "predict_proba" or (method == "decision_function" and len(classes) > 2)
    dtype = (object if isinstance(classes[0], str) else np.int64) if method == "predict" else np.float64
    empty = np.empty((0, len(classes)) if by_class else 0, dtype)
    if not hasattr(X, "columns"):
        shape: dict[str, Any] = {"chunks": (X.chunks[0], (len(classes),))} if by_class else {"drop_axis": 1}
        rows = X.rechunk({1: -1})
        return rows.map_blocks(_on_chunk, _without_names(model), method, empty, dtype=dtype, meta=empty, **shape)
    if (names := getattr(model, "feature_names_in_", None)) is not None:
        if absent := [name for name in names if name not in X.columns]:
            raise InputError(f"The frame lacks the column {quoted(absent[0])} that the model needs. Add it.")
        X = X[list(names)]
    meta = _framed(empty, X._meta.index, classes if by_class else None)
    return X.map_partitions(_on_partition, model, method, empty, classes if by_class else None, meta=meta)


def _without_names(model: Estimator) -> Estimator:
    """Return a model that does not look for names of columns, which arrays lack."""
    model = copy(model)
    model.__dict__.pop("feature_names_in_", None)
    return model


def _on_batches(model: Estimator, method: str, batches: Iterable[Batch]) -> NDArray[Any]:
    return np.concatenate([np.asarray(getattr(model, method)(batch.X)) for batch in batches])


def _on_chunk(X: Any, model: Estimator, method: str, empty: NDArray[Any]) -> NDArray[Any]:
    # scikit-learn refuses an empty chunk.
    return np.asarray(getattr(model, method)(X)) if X.shape[0] else empty


def _on_partition(X: Frame, model: Estimator, method: str, empty: NDArray[Any], columns: list[Any] | None) -> Frame:
    named = hasattr(model, "feature_names_in_") or hasattr(model, "columns")
    return _framed(_on_chunk(X if named else np.asarray(X), model, method, empty), X.index, columns)


def _framed(values: NDArray[Any], index: Frame, columns: list[Any] | None) -> Frame:
    pandas = require("pandas", "dask")
    return pandas.Series(values, index) if columns is None else pandas.DataFrame(values, index, columns)
