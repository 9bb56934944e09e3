"""Fit from disk: estimators that read any number of rows in portions.

Squared loss reads them once, logistic and double hinge a handful of times. Memory does not grow
with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from joblib import cpu_count

from sdulearn.blocks import Block, LocalBlocks, Watch
from sdulearn.blocks.estimators import SDUClassifier, SDUClassifierCV
from sdulearn.columns import numbers, pair_codes, point_numbers
from sdulearn.errors import InputError, listed, pa, quoted, shortened
from sdulearn.io.files import Location
from sdulearn.io.tables import RowGroups, Table, batch_rows, open_parquet

__all__ = ["SDUClassifier", "SDUClassifierCV", "parquet_blocks"]


def number_blocks(
    group: RowGroups, columns: Sequence[str], codes: str | None, points: str | None, weights: str | None, dtype: str
) -> Iterator[Block]:
    """Yield batches of the number columns of some row groups, with codes and weights."""
    d = len(columns)
    extra = [name for name in (codes, points, weights) if name is not None]
    for _, batch in group([*columns, *extra], batch_rows(d)):
        X = np.empty((d, batch.num_rows), dtype=dtype)
        for row, name in zip(X, columns, strict=True):
            row[:] = batch[name].to_numpy(zero_copy_only=False)
        y = np.zeros(batch.num_rows, dtype=np.int64)
        if codes is not None:
            y = pair_codes(group.path, codes, batch[codes])
        if points is not None:
            y = np.column_stack([y, point_numbers(group.path, points, batch[points])])
        yield X.T, y, None if weights is None else numbers(batch[weights])


def parquet_blocks(
    path: Location,
    codes: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    points: str | None = None,
    weights: str | None = None,
    n_jobs: int | None = None,
    watch: Watch | None = None,
) -> LocalBlocks:
    """Read the rows of a Parquet file or folder by row group, as often as needed.

    Parameters
    ----------
    path : str or path-like
        A file, or a folder of files with the same columns.
    codes : str, optional
        The column of pair codes: +k similar, -k dissimilar, 0 unlabeled. Without it every row is
        unlabeled.
    columns : sequence of str, optional
        The feature columns, all of numbers; by default all but ``codes``, ``points`` and
        ``weights``.
    points : str, optional
        The column of point numbers, where answers share points: ``y`` of a portion then has two
        columns. Without it every row is a point of its own.
    weights : str, optional
        The column of row weights.
    n_jobs : int or None, default=None
        Number of threads, each reading row groups of its own; None means one per core.
    watch : function, optional
        Called with the number of rows after each portion, and with None at the end of a pass.

    Returns
    -------
    LocalBlocks
        For ``fit``; iterating over it gives ``(X, y, weight)`` portion by portion.

    Raises
    ------
    InputError
        A column is missing, or a feature column does not hold numbers.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow as pa
    >>> import pyarrow.parquet
    >>> from sdulearn.streaming import parquet_blocks
    >>> table = pa.table({"x": [0.5, 1.5, 2.5], "code": [1, 1, 0]})
    >>> with TemporaryDirectory() as folder:
    ...     pa.parquet.write_table(table, Path(folder) / "rows.parquet")
    ...     for X, y, weight in parquet_blocks(folder, "code"):
    ...         print(X.ravel(), y, weight)
    [0.5 1.5 2.5] [1 1 0] None
    """
    table = open_parquet(path)
    known = [name for name in (codes, points, weights) if name is not None]
    features = [name for name in table.types if name not in known]
    if columns is not None:
        features = list(columns)
    if absent := [name for name in (*features, *known) if name not in table.types]:
        raise InputError(
            f"{path} has no column {quoted(absent[0])}. Its columns: {listed(map(shortened, table.types))}."
        )
    dtype = _common_type(path, table, features)
    parts = []
    for group in table.parts:
        assert isinstance(group, RowGroups)
        part = partial(number_blocks, group, features, codes, points, weights, dtype)
        part.n_blocks = -(-group.rows // batch_rows(len(features)))  # type: ignore[attr-defined]
        parts.append(part)
    return LocalBlocks(parts, cpu_count() if n_jobs is None else n_jobs, watch, features)


def _common_type(path: Location, table: Table, features: Sequence[str]) -> str:
    """Return float32 if every column is that, else float64; refuse columns that are not numbers."""
    is_number = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean)
    for name in features:
        dtype = table.types[name]
        if not any(test(dtype) for test in is_number):
            raise InputError(
                f"{path}: column {quoted(name)} holds {shortened(str(dtype))}, not numbers. Leave it out of `columns`, "
                "or turn it into numbers first; sdulearn.fit_table does that by itself."
            )
    if features and all(pa.types.is_float32(table.types[name]) for name in features):
        return "float32"
    return "float64"
