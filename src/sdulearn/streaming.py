"""Fit from disk, rows of any number: the same estimators, reading the rows in portions as often as they need.

Squared loss reads them once, logistic and double hinge a handful of times. Memory does not grow
with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import cpu_count
from sklearn.utils.metaestimators import available_if

from sdulearn import linear
from sdulearn.base import LinearPairClassifier
from sdulearn.blocks import Block, Blocks, LocalBlocks, fit_classifier, fit_classifier_cv
from sdulearn.blocks.source import Watch
from sdulearn.columns import Location, numbers, pair_codes
from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.io.parquet import ParquetTable, RowGroups, batch_rows, open_parquet
from sdulearn.sklearn_private import fit_context

__all__ = ["SDUClassifier", "SDUClassifierCV", "parquet_blocks"]


@dataclass(frozen=True)
class NumberRows:
    """A part whose blocks are the number columns of some row groups, as they are, with pair codes and weights."""

    group: RowGroups
    columns: tuple[str, ...]
    codes: str | None
    weights: str | None
    dtype: str

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.group.rows // batch_rows(len(self.columns)))

    def __call__(self) -> Iterator[Block]:
        """Batch by batch. The matrix is stored column by column, as the file has it."""
        extra = [name for name in (self.codes, self.weights) if name is not None]
        for batch in self.group.batches([*self.columns, *extra], batch_rows(len(self.columns))):
            X = np.empty((len(self.columns), batch.num_rows), dtype=self.dtype)
            for row, name in zip(X, self.columns, strict=True):
                row[:] = batch[name].to_numpy(zero_copy_only=False)
            y = np.zeros(batch.num_rows, dtype=np.int64)
            if self.codes is not None:
                y = pair_codes(self.group.path, self.codes, batch[self.codes])
            yield X.T, y, None if self.weights is None else numbers(batch[self.weights])


class ParquetBlocks(LocalBlocks):
    """Blocks of a Parquet table; knows the names of its features."""

    def __init__(self, parts: Sequence[NumberRows], names: Sequence[str], n_jobs: int, watch: Watch | None) -> None:
        super().__init__(parts, n_jobs, watch)
        self.feature_names = list(names)


def parquet_blocks(
    path: Location,
    codes: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    weights: str | None = None,
    n_jobs: int | None = None,
    watch: Watch | None = None,
) -> ParquetBlocks:
    """Rows of a Parquet file or folder, to be read by row group as often as needed.

    Parameters
    ----------
    path : str or path-like
        A file, or a folder of files with the same columns.
    codes : str, optional
        The column of pair codes: +k similar, -k dissimilar, 0 unlabeled. Without it every row is
        unlabeled.
    columns : sequence of str, optional
        The feature columns, all of numbers; by default all but ``codes`` and ``weights``.
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
    """
    table = open_parquet(path)
    known = [name for name in (codes, weights) if name is not None]
    features = [name for name in table.types if name not in known] if columns is None else list(columns)
    if absent := [name for name in (*features, *known) if name not in table.types]:
        raise InputError(f"{path} has no column {absent[0]!r}. Its columns: {', '.join(table.types)}.")
    dtype = _common_type(path, table, features)
    parts = [NumberRows(group, tuple(features), codes, weights, dtype) for group in table.groups]
    return ParquetBlocks(parts, features, cpu_count() if n_jobs is None else n_jobs, watch)


def _common_type(path: Location, table: ParquetTable, features: Sequence[str]) -> str:
    """float32 where every column is, so that no memory is wasted; sums are in float64 all the same."""
    types = require("pyarrow.types", "files")
    kinds = {name: table.types[name] for name in features}
    if odd := [n for n, t in kinds.items() if not (types.is_floating(t) or types.is_integer(t) or types.is_boolean(t))]:
        raise InputError(
            f"{path}: column {odd[0]!r} holds {kinds[odd[0]]}, not numbers. Leave it out of columns=, or use the "
            "command, which turns text into features: sdulearn fit --engine stream."
        )
    return "float32" if features and all(types.is_float32(t) for t in kinds.values()) else "float64"


def _parent_has_probability(estimator: Any) -> bool:
    return bool(super(FromBlocks, estimator).predict_proba)  # raises with the reason where the parent has none


class FromBlocks(LinearPairClassifier):
    """What the estimators do alike with rows in portions; predictions of plain rows are those of the local ones."""

    def decision_function(self, X: Any) -> Any:
        """Signed confidence of each row; for blocks, an iterator that gives an array a portion."""
        return self._portionwise("decision_function", X) if _are_blocks(X) else super().decision_function(X)

    def predict(self, X: Any) -> Any:
        """Class of each row, -1 or +1; for blocks, an iterator that gives an array a portion."""
        return self._portionwise("predict", X) if _are_blocks(X) else super().predict(X)

    @available_if(_parent_has_probability)
    def predict_proba(self, X: Any) -> Any:
        """P(y = -1) and P(y = +1) of each row; for blocks, an iterator that gives an array a portion."""
        return self._portionwise("predict_proba", X) if _are_blocks(X) else super().predict_proba(X)

    def _portionwise(self, method: str, blocks: Iterable[Block]) -> Iterator[Any]:
        model = copy(self)
        model.__dict__.pop("feature_names_in_", None)  # the columns of the blocks are known to be those
        return (getattr(model, method)(X) for X, _, _ in blocks)

    def _fit_blocks(self, fit: Callable[[Any, Blocks], None], data: Any) -> Self:
        """Blocks as they are; portions in a list, or in what can be iterated again, as blocks."""
        if _are_blocks(data):
            blocks: Blocks = data
        elif isinstance(data, Sequence):
            blocks = LocalBlocks([partial(_held, block) for block in data])
        elif isinstance(data, Iterable) and not isinstance(data, Iterator):
            blocks = LocalBlocks([partial(_portions, data)])
        else:
            raise TypeError(
                "fit needs portions (X, y) that can be read again and again: parquet_blocks(...), a list, or an object "
                f"whose iteration starts afresh; got {type(data).__name__}, which comes only once. For squared loss, "
                "feed the portions to sdulearn.SDUClassifier.partial_fit."
            )
        fit(self, blocks)
        self.__dict__.pop("feature_names_in_", None)
        if names := getattr(blocks, "feature_names", None):
            self.feature_names_in_ = np.array(names, dtype=object)
        return self


def _are_blocks(data: Any) -> bool:
    return hasattr(data, "sum") and hasattr(data, "n_blocks")


def _held(portion: Sequence[Any]) -> list[Block]:
    X, y, *weight = portion
    return [(X, y, weight[0] if weight else None)]


def _portions(data: Iterable[Sequence[Any]]) -> Iterator[Block]:
    for portion in data:
        yield from _held(portion)


class SDUClassifier(FromBlocks, linear.SDUClassifier):
    """:class:`sdulearn.SDUClassifier`, fitted from rows that come in portions.

    Parameters, attributes and answer are the same; ``n_iter_`` counts passes over the rows, less
    the first. Whether pairs are whole is checked over all portions, by a checksum: it finds half a
    pair and a pair with two signs, not a code on four rows. ``save`` writes the same file.

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
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit from :func:`parquet_blocks`, or from portions ``(X, y)`` or ``(X, y, sample_weight)`` in a list.

        With ``y``, ``X`` is the rows themselves, and the fit is the local one.
        """
        return self._fit_blocks(fit_classifier, X) if y is None else super().fit(X, y, sample_weight)


class SDUClassifierCV(FromBlocks, linear.SDUClassifierCV):
    """:class:`sdulearn.SDUClassifierCV`, fitted from rows that come in portions.

    Folds are dealt by hash, see :class:`sdulearn.blocks.HashedPairKFold`; with
    ``cv=HashedPairKFold(5)`` the estimator in memory makes the same choice. Squared loss takes two
    passes; other losses several for each setting and fold, so choose the settings on a draw of the
    rows in memory instead where that is long. ``n_jobs`` plays no role with portions:
    :func:`parquet_blocks` has threads of its own.
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose alpha and gamma on held-out pairs, then fit on all rows; see :meth:`SDUClassifier.fit`."""
        return self._fit_blocks(fit_classifier_cv, X) if y is None else super().fit(X, y, sample_weight)
