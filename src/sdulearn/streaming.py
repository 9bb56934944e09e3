"""Fit from disk, any number of rows: the same estimators, which read the rows in portions.

Squared loss reads them once, logistic and double hinge a handful of times. Memory does not grow
with the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeAlias

import numpy as np
from joblib import cpu_count
from numpy.typing import ArrayLike

from sdulearn import linear
from sdulearn.blocks import Block, Blocks, LocalBlocks, Watch, make_block
from sdulearn.blocks.estimators import RowsElsewhere, RowsLike, Values
from sdulearn.columns import numbers, pair_codes, point_numbers
from sdulearn.errors import InputError, listed, pa, quoted, shortened
from sdulearn.io.files import Location
from sdulearn.io.tables import RowGroups, Table, batch_rows, open_parquet
from sdulearn.types import Codes, Rows

__all__ = ["SDUClassifier", "SDUClassifierCV", "parquet_blocks"]

# Rows, what is known of them (pair codes, and points where answers share them) and, if any, weights.
Portion: TypeAlias = tuple[Rows, Codes] | Block


def number_blocks(
    group: RowGroups, columns: Sequence[str], codes: str | None, points: str | None, weights: str | None, dtype: str
) -> Iterator[Block]:
    """Number columns of some row groups by batch, stored by column, with codes and weights."""
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
        The feature columns, all of numbers; by default all but ``codes``, ``points`` and ``weights``.
    points : str, optional
        The column of numbers that say which point a row shows, where answers share points: ``y`` of a portion then
        has two columns. Without it every row is a point of its own.
    weights : str, optional
        The column of row weights.
    n_jobs : int or None, default=None
        Threads, each reading row groups of its own; None for as many as there are cores.
    watch : function, optional
        Called with the number of rows after each portion, and with None at the end of a pass.

    Returns
    -------
    LocalBlocks
        For ``fit``; iterating over it gives ``(X, y, weight)`` portion by portion.

    Raises
    ------
    InputError
        A column is not there or, as a feature, does not hold numbers.

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
    """float32 where every column is; sums are in float64 all the same."""
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


class FromPortions(RowsElsewhere):
    """Rows that come in portions; fit and score take the portions without ``y``."""

    def _is_elsewhere(self, X: RowsLike) -> bool:
        return isinstance(X, Blocks)

    def _comes_with_codes(self, X: RowsLike, y: ArrayLike | None) -> bool:
        return y is None

    def _map_rows(self, method: str, X: RowsLike) -> Values:
        model = self._without_names()
        return (getattr(model, method)(rows) for rows, _, _ in X)

    def _open(
        self, X: RowsLike, y: ArrayLike | None, sample_weight: ArrayLike | None, *, reset: bool, keep: bool = False
    ) -> AbstractContextManager[Blocks]:
        blocks = as_blocks(X)
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            if names := getattr(blocks, "feature_names", None):
                self.feature_names_in_ = np.array(names, dtype=object)
        return nullcontext(blocks)


def as_blocks(data: RowsLike) -> Blocks:
    """Blocks as they are; portions in a list, or in what can be iterated again, as blocks."""
    if isinstance(data, Blocks):
        return data
    if isinstance(data, Iterable) and not isinstance(data, Iterator) and not hasattr(data, "shape"):
        names = _column_names(next(iter(data), None))
        if isinstance(data, Sequence):
            return LocalBlocks([partial(_block, portion, names, k) for k, portion in enumerate(data)], names=names)
        return LocalBlocks([partial(_blocks, data, names)], names=names)
    once = ", which comes only once" if isinstance(data, Iterator) else ""
    raise TypeError(
        "fit needs portions (X, y) that can be read again and again: parquet_blocks(...), a list, or "
        f"an object whose iteration starts afresh; got {type(data).__name__}{once}. Give `y` beside plain rows; "
        "for portions that come only once and squared loss, use sdulearn.SDUClassifier.partial_fit."
    )


def _block(portion: Portion, names: list[str] | None, number: int) -> list[Block]:
    if not (isinstance(portion, tuple | list) and len(portion) in (2, 3)):
        raise InputError(
            "A portion is `(X, y)` or `(X, y, sample_weight)`: rows, their pair codes and, if any, their "
            f"weights; got {type(portion).__name__}. Put each portion into a tuple."
        )
    found = _column_names(portion)
    if found is not None and found != names:
        raise InputError(
            f"A portion has the columns {found}, but the first one has {names}. Give every portion the "
            "same columns in the same order."
        )
    X, y, weight = (*portion, None)[:3]
    return make_block(number, X, y, weight)


def _column_names(portion: object) -> list[str] | None:
    """Names of the columns where the rows of a portion are a frame that has them."""
    columns = getattr(portion[0], "columns", None) if isinstance(portion, tuple | list) and portion else None
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def _blocks(portions: Iterable[Portion], names: list[str] | None) -> Iterator[Block]:
    for number, portion in enumerate(portions):
        yield from _block(portion, names, number)


class SDUClassifier(FromPortions, linear.SDUClassifier):
    """:class:`sdulearn.SDUClassifier`, fitted from rows that come in portions.

    Parameters, attributes and answer are the same; ``n_iter_`` counts passes over the rows, less
    the first. ``fit`` and ``score`` take :func:`parquet_blocks`, or portions ``(X, y)`` or ``(X, y,
    sample_weight)`` that can be iterated again. Predictions for blocks are iterators that give an
    array a portion. Whether pairs are whole is checked over all portions, by a checksum: it finds
    half a pair and a pair with two signs, not a code on four rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.streaming import SDUClassifier
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=400, n_unlabeled=500, prior=0.7, random_state=0)
    >>> portions = [(rows[k::4], codes[k::4]) for k in range(4)]
    >>> model = SDUClassifier(loss="double_hinge").fit(portions)
    >>> bool(model.optimality_ < 1e-8)
    True
    """


class SDUClassifierCV(FromPortions, linear.SDUClassifierCV):
    """:class:`sdulearn.SDUClassifierCV`, fitted from rows that come in portions.

    Parameters and attributes are the same, but ``cv`` is a number of folds, dealt by hash, or a
    :class:`sdulearn.blocks.HashedPairKFold`, with which the estimator in memory makes the same
    choice. ``n_jobs`` plays no role: :func:`parquet_blocks` has threads of its own. Squared loss
    takes two passes; other losses several for each setting and fold, so where that is long choose
    the settings on a draw of the rows in memory.
    """
