"""Fit from disk, any number of rows: the same estimators, which read the rows in portions.

Squared loss reads them once, logistic and double hinge a handful of times. Memory does not grow
with the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
from joblib import cpu_count
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from sdulearn import linear
from sdulearn.base import Fit, LinearClassifier
from sdulearn.blocks import Block, Blocks, LocalBlocks, fit_classifier, fit_classifier_cv
from sdulearn.blocks.points import known_of_rows
from sdulearn.blocks.source import Watch
from sdulearn.columns import Location, numbers, pair_codes, point_numbers
from sdulearn.errors import InputError, listed, quoted, shortened
from sdulearn.extras import require
from sdulearn.io.parquet import ParquetTable, RowGroups, batch_rows, open_parquet
from sdulearn.sklearn_private import fit_context
from sdulearn.types import Codes, MatrixLike, Rows

__all__ = ["SDUClassifier", "SDUClassifierCV", "parquet_blocks"]

Portion: TypeAlias = tuple[Rows, Codes] | Block
"""Rows, what is known of them (pair codes, and points where answers share them) and, if any, weights."""
Portions: TypeAlias = Any
"""Blocks, or portions in a list or in what can be iterated again; or plain rows."""
Values: TypeAlias = Any
"""An array for plain rows; for blocks an iterator that gives an array a portion."""


@dataclass(frozen=True)
class NumberRows:
    """A part whose blocks are the number columns of some row groups, with codes and weights."""

    group: RowGroups
    columns: tuple[str, ...]
    codes: str | None
    points: str | None
    weights: str | None
    dtype: str

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.group.rows // batch_rows(len(self.columns)))

    def __call__(self) -> Iterator[Block]:
        """Batch by batch. The matrix is stored column by column, as the file has it."""
        d = len(self.columns)
        extra = [name for name in (self.codes, self.points, self.weights) if name is not None]
        for batch in self.group.batches([*self.columns, *extra], batch_rows(d)):
            X = np.empty((d, batch.num_rows), dtype=self.dtype)
            for row, name in zip(X, self.columns, strict=True):
                row[:] = batch[name].to_numpy(zero_copy_only=False)
            y = np.zeros(batch.num_rows, dtype=np.int64)
            if self.codes is not None:
                y = pair_codes(self.group.path, self.codes, batch[self.codes])
            if self.points is not None:
                y = np.column_stack([y, point_numbers(self.group.path, self.points, batch[self.points])])
            yield X.T, y, None if self.weights is None else numbers(batch[self.weights])


class ParquetBlocks(LocalBlocks):
    """Blocks of a Parquet table; knows the names of its features."""

    def __init__(
        self,
        parts: Sequence[NumberRows],
        names: Sequence[str],
        n_jobs: int,
        watch: Watch | None,
    ) -> None:
        super().__init__(parts, n_jobs, watch)
        self.feature_names = list(names)


def parquet_blocks(
    path: Location,
    codes: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    points: str | None = None,
    weights: str | None = None,
    n_jobs: int | None = None,
    watch: Watch | None = None,
) -> ParquetBlocks:
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
    ParquetBlocks
        For ``fit``; iterating over it gives ``(X, y, weight)`` portion by portion.

    Raises
    ------
    InputError
        A column is not there or, as a feature, does not hold numbers.

    See Also
    --------
    SDUClassifier : Fits from these blocks.
    sdulearn.distributed.DaskBlocks : Blocks on a cluster.

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
    parts = [NumberRows(group, tuple(features), codes, points, weights, dtype) for group in table.groups]
    return ParquetBlocks(parts, features, cpu_count() if n_jobs is None else n_jobs, watch)


def _common_type(path: Location, table: ParquetTable, features: Sequence[str]) -> str:
    """float32 where every column is; sums are in float64 all the same."""
    types = require("pyarrow.types", "files")
    is_number = (types.is_floating, types.is_integer, types.is_boolean)
    for name in features:
        dtype = table.types[name]
        if not any(test(dtype) for test in is_number):
            raise InputError(
                f"{path}: column {quoted(name)} holds {shortened(str(dtype))}, not numbers. Leave it out of `columns`, "
                "or turn it into numbers first; sdulearn.fit_table does that by itself."
            )
    if features and all(types.is_float32(table.types[name]) for name in features):
        return "float32"
    return "float64"


def _parent_has_probability(estimator: FromBlocks) -> bool:
    # Raises with the reason where the parent has none.
    return bool(super(FromBlocks, estimator).predict_proba)


class FromBlocks(LinearClassifier):
    """What the estimators have in common; predictions of plain rows are those of the local ones."""

    def decision_function(self, X: MatrixLike) -> Values:
        """Signed confidence of each row: positive for class +1.

        Parameters
        ----------
        X : Blocks, or array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        array of shape (n_rows,), or iterator
            For blocks, an iterator that gives an array a portion.
        """
        if _are_blocks(X):
            return self._portionwise("decision_function", X)
        return super().decision_function(X)

    def predict(self, X: MatrixLike) -> Values:
        """Class of each row.

        Parameters
        ----------
        X : Blocks, or array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        array of shape (n_rows,), or iterator
            -1 or +1; for blocks, an iterator that gives an array a portion.
        """
        return self._portionwise("predict", X) if _are_blocks(X) else super().predict(X)

    @available_if(_parent_has_probability)
    def predict_proba(self, X: MatrixLike) -> Values:
        """Probability of either class for each row.

        Parameters
        ----------
        X : Blocks, or array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        array of shape (n_rows, 2), or iterator
            P(y = -1) and P(y = +1); for blocks, an iterator that gives an array a portion.
        """
        return self._portionwise("predict_proba", X) if _are_blocks(X) else super().predict_proba(X)

    def _portionwise(self, method: str, blocks: Iterable[Block]) -> Iterator[Values]:
        model = copy(self)
        # The columns of the blocks are known to be those.
        model.__dict__.pop("feature_names_in_", None)
        return (getattr(model, method)(X) for X, _, _ in blocks)

    def _accept_blocks(self, fit: Fit, blocks: Blocks) -> Self:
        """Put the solution in place; names of features and what was left of other fits too."""
        for stale in ("feature_names_in_", "statistics_"):
            self.__dict__.pop(stale, None)
        if names := getattr(blocks, "feature_names", None):
            self.feature_names_in_ = np.array(names, dtype=object)
        return self._accept(fit)


def as_blocks(data: Portions) -> Blocks:
    """Blocks as they are; portions in a list, or in what can be iterated again, as blocks."""
    if _are_blocks(data):
        return data
    if isinstance(data, Iterable) and not isinstance(data, Iterator) and not hasattr(data, "shape"):
        names = _column_names(next(iter(data), None))
        if isinstance(data, Sequence):
            blocks = LocalBlocks([partial(_block, portion, names, k) for k, portion in enumerate(data)])
        else:
            blocks = LocalBlocks([partial(_blocks, data, names)])
        blocks.feature_names = names
        return blocks
    once = ", which comes only once" if isinstance(data, Iterator) else ""
    raise TypeError(
        "fit needs portions (X, y) that can be read again and again: parquet_blocks(...), a list, or "
        f"an object whose iteration starts afresh; got {type(data).__name__}{once}. Give `y` beside plain rows; "
        "for portions that come only once and squared loss, use sdulearn.SDUClassifier.partial_fit."
    )


def _are_blocks(data: Portions) -> bool:
    return hasattr(data, "sum") and hasattr(data, "n_blocks")


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
    X, y, *rest = portion
    weight = None
    if rest and rest[0] is not None:
        weight = np.asarray(rest[0], dtype=np.float64)
    return [(_rows(X), known_of_rows(y, number) if np.size(y) else np.asarray(y), weight)]


def _rows(X: MatrixLike) -> Rows:
    """Rows of a portion as an array or CSR matrix of numbers."""
    rows = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise InputError(
            f"`X` of a portion must be a table of numbers, one row a point; got {type(X).__name__} of "
            f"shape {rows.shape} and dtype {rows.dtype}."
        )
    return rows


def _column_names(portion: object) -> list[str] | None:
    """Names of the columns where the rows of a portion are a frame that has them."""
    columns = getattr(portion[0], "columns", None) if isinstance(portion, tuple | list) and portion else None
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def _blocks(portions: Iterable[Portion], names: list[str] | None) -> Iterator[Block]:
    for number, portion in enumerate(portions):
        yield from _block(portion, names, number)


class SDUClassifier(FromBlocks, linear.SDUClassifier):
    """:class:`sdulearn.SDUClassifier`, fitted from rows that come in portions.

    Parameters, attributes and answer are the same. Whether pairs are whole is checked over all
    portions, by a checksum: it finds half a pair and a pair with two signs, not a code on four
    rows. ``save`` writes the same file.

    Parameters
    ----------
    risk, loss, gamma, alpha, prior, fit_intercept, solver, tol, max_iter
        As in :class:`sdulearn.SDUClassifier`.

    Attributes
    ----------
    n_iter_ : int
        Passes over the rows, less the first.
    coef_, intercept_, classes_, prior_, objective_, optimality_, n_features_in_, feature_names_in_
        As in :class:`sdulearn.SDUClassifier`.

    See Also
    --------
    parquet_blocks : Rows of Parquet files.
    SDUClassifierCV : Chooses alpha and gamma.
    sdulearn.SDUClassifier.partial_fit : Portions that come only once, for squared loss.
    sdulearn.distributed.SDUClassifier : The same on a Dask cluster.

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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Portions,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit from portions, or from plain rows.

        Parameters
        ----------
        X : ParquetBlocks, list of portions, or rows
            :func:`parquet_blocks`, or portions ``(X, y)`` or ``(X, y, sample_weight)`` in a list or
            in an object whose iteration starts afresh. With ``y``, the rows themselves; the fit is
            then the local one.
        y : array-like of shape (n_rows,), optional
            Pair codes of plain rows.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of plain rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        if y is not None:
            return super().fit(X, y, sample_weight)
        blocks = as_blocks(X)
        return self._accept_blocks(fit_classifier(self, blocks), blocks)


class SDUClassifierCV(FromBlocks, linear.SDUClassifierCV):
    """:class:`sdulearn.SDUClassifierCV`, fitted from rows that come in portions.

    Folds are dealt by hash, see :class:`sdulearn.blocks.HashedPairKFold`; with
    ``cv=HashedPairKFold(5)`` the estimator in memory makes the same choice. Squared loss takes two
    passes; other losses several for each setting and fold, so choose the settings on a draw of the
    rows in memory instead where that is long.

    Parameters
    ----------
    risk, loss, gammas, alphas, prior
        As in :class:`sdulearn.SDUClassifierCV`.
    cv : int or HashedPairKFold, default=5
        Number of folds; each portion finds the folds of its own rows.
    fit_intercept, solver, tol, max_iter
        As in :class:`sdulearn.SDUClassifierCV`.
    n_jobs : int or None, default=None
        Plays no role with portions: :func:`parquet_blocks` has threads of its own.

    Attributes
    ----------
    alpha_, gamma_, cv_results_
        As in :class:`sdulearn.SDUClassifierCV`.
    coef_, intercept_, classes_, prior_, objective_, optimality_, n_features_in_, feature_names_in_
        As in :class:`sdulearn.SDUClassifier`, from the refit on all rows.
    n_iter_ : int
        Passes of the refit, less the first.

    See Also
    --------
    SDUClassifier : With given settings.
    parquet_blocks : Rows of Parquet files.

    Examples
    --------
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.streaming import SDUClassifierCV
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=400, n_unlabeled=500, prior=0.7, random_state=0)
    >>> portions = [(rows[k::4], codes[k::4]) for k in range(4)]
    >>> SDUClassifierCV(alphas=(1e-1, 1e-3)).fit(portions).alpha_ in (1e-1, 1e-3)
    True
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Portions,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Choose alpha and gamma on held-out pairs, then fit on all rows.

        Parameters
        ----------
        X : ParquetBlocks, list of portions, or rows
            As in :meth:`SDUClassifier.fit`.
        y, sample_weight : array-like of shape (n_rows,), optional
            Pair codes and weights of plain rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        if y is not None:
            return super().fit(X, y, sample_weight)
        blocks = as_blocks(X)
        return self._accept_blocks(fit_classifier_cv(self, blocks), blocks)
