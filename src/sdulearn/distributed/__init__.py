"""The linear estimators on a Dask cluster: names, parameters and answers are the local ones'.

``fit`` takes dask arrays and dask frames; ``decision_function``, ``predict`` and ``predict_proba``
give lazy dask arrays for arrays, lazy dask Series and frames for frames. All of it also takes plain
arrays, and then runs here. The work goes to the active ``distributed.Client``; without one, to
Dask's local scheduler. A model that was saved is read with :func:`sdulearn.load_model` where there
is no Dask.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sdulearn import linear
from sdulearn.base import LinearClassifier
from sdulearn.blocks import Blocks, Sums, as_matrix, refuse_shared
from sdulearn.blocks.estimators import RowsElsewhere, is_iterative
from sdulearn.blocks.problem import count_columns
from sdulearn.errors import InputError, require
from sdulearn.joint import estimators as joint
from sdulearn.joint.blockwise import fit_pair_logistic
from sdulearn.sklearn_private import check_feature_names, check_n_features
from sdulearn.solvers.problem import Fit
from sdulearn.types import Array, Frame, MatrixLike

for _module in ("dask.array", "distributed"):
    require(_module, "dask")

import dask  # noqa: E402
from dask.base import is_dask_collection  # noqa: E402

from sdulearn.distributed.chunks import (  # noqa: E402
    VectorLike,
    dask_blocks,
    gather_pairs,
    is_frame,
    whole_rows,
)
from sdulearn.distributed.cluster import (  # noqa: E402
    DaskBlocks,
    DaskCollection,
    SchedulerLostError,
    WorkerFileError,
    WorkersLostError,
)

__all__ = [
    "DaskBlocks",
    "PairLogisticRegression",
    "SDUClassifier",
    "SDUClassifierCV",
    "SchedulerLostError",
    "WorkerFileError",
    "WorkersLostError",
    "gather_pairs",
]

# What to do about answers that share points.
_FIT_IN_MEMORY = (
    "Fit sdulearn.PairLogisticRegression in memory, on the rows in answers and a draw of the others; "
    "sdulearn.fit_table does so with any `engine`."
)


class DaskRows(RowsElsewhere):
    """What the three estimators do with dask input; with anything else they are the local ones."""

    def _is_elsewhere(self, X: MatrixLike) -> bool:
        return bool(is_dask_collection(X))

    def _in_memory(self, *values: VectorLike) -> tuple[VectorLike, ...]:
        return dask.compute(*values)

    def _map_rows(self, method: str, X: DaskCollection) -> DaskCollection:
        """A method of the model as it is now, on every chunk."""
        check_is_fitted(self)
        X = self._check_columns(X, reset=False)
        by_class = method == "predict_proba" or (method == "decision_function" and len(self.classes_) > 2)
        columns = self.classes_.tolist() if by_class else None
        dtype = np.int64 if method == "predict" else np.float64
        empty = np.empty((0,) if columns is None else (0, len(columns)), dtype)
        model = self._without_names()
        if is_frame(X):
            meta = _framed(X._meta.index, empty, columns)
            return X.map_partitions(_on_partition, model, method, columns, meta=meta)
        evaluate = partial(X.map_blocks, _on_chunk, model, method, dtype=dtype, meta=empty)
        if columns is None:
            return evaluate(drop_axis=1)
        return evaluate(chunks=(X.chunks[0], (len(columns),)))

    def _check_columns(self, X: DaskCollection, *, reset: bool) -> DaskCollection:
        """``X`` in whole rows; its columns are checked by what Dask knows without computing."""
        X = whole_rows(X)
        check_feature_names(self, X._meta, reset=reset)
        check_n_features(self, X, reset=reset)
        return X

    @contextmanager
    def _open(
        self, X: DaskCollection, y: VectorLike, sample_weight: VectorLike | None, *, reset: bool, keep: bool = False
    ) -> Iterator[DaskBlocks]:
        blocks = dask_blocks(self._check_columns(X, reset=reset), y, sample_weight)
        # In the workers' memory, where they are asked again and again.
        again = isinstance(self, joint.PairLogisticRegression) or is_iterative(self)
        kept = blocks.persist() if keep and again else blocks
        try:
            yield kept
        finally:
            kept.release()


def _on_chunk(X: MatrixLike, model: LinearClassifier, method: str) -> Array:
    """The local method; Dask's chunks may be empty, which scikit-learn refuses."""
    if X.shape[0]:
        return getattr(model, method)(as_matrix(X))
    return getattr(model, method)(np.zeros((1, X.shape[1])))[:0]


def _on_partition(X: Frame, model: LinearClassifier, method: str, columns: list[int] | None) -> Frame:
    return _framed(X.index, _on_chunk(X, model, method), columns)


def _framed(index: Frame, values: NDArray[np.number], columns: list[int] | None) -> Frame:
    """Values under the index of their rows, as dask frames are made of."""
    pandas = require("pandas", "dask")
    return pandas.Series(values, index) if columns is None else pandas.DataFrame(values, index, columns)


class SDUClassifier(DaskRows, linear.SDUClassifier):
    """:class:`sdulearn.SDUClassifier` on dask arrays and dask frames.

    Parameters, attributes and answer are the same; ``n_iter_`` counts passes over the rows, less
    the first. Predictions for arrays are lazy arrays, for frames lazy Series and frames, with the
    index of their rows. Squared loss takes one pass and keeps no rows; the other losses keep them
    in the workers' memory while they fit. A step brings back one sum of size d or d^2; a sample at
    the start and, for double hinge, the rows at a kink at the end are 16 MB each, or ten d x d
    matrices.

    Examples
    --------
    >>> import dask.array as da
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.distributed import SDUClassifier
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=400, n_unlabeled=500, prior=0.7, random_state=0)
    >>> X_dask = da.from_array(rows, chunks=(300, -1))
    >>> model = SDUClassifier().fit(X_dask, da.from_array(codes, chunks=300))
    >>> model.predict(X_dask)
    dask.array<_on_chunk, shape=(1300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """


class SDUClassifierCV(DaskRows, linear.SDUClassifierCV):
    """:class:`sdulearn.SDUClassifierCV` on dask arrays and dask frames.

    As :class:`sdulearn.streaming.SDUClassifierCV`: folds are dealt by hash, and ``n_jobs`` plays no
    role.
    """


class PairLogisticRegression(DaskRows, joint.PairLogisticRegression):
    """:class:`sdulearn.PairLogisticRegression` on dask arrays and dask frames.

    Parameters and attributes are the same, for loose pairs: no point is in two answers, no row has
    a label, and ``error_rate`` is one rate, above 0 beside a given ``prior`` only, or, with answers
    of one annotator, "auto". Both ends of a pair must be in one chunk:
    :func:`~sdulearn.distributed.gather_pairs` brings them there. The rows are kept in the workers'
    memory while it fits.

    Examples
    --------
    >>> import dask.array as da
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.distributed import PairLogisticRegression, gather_pairs
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=200, n_unlabeled=500, prior=0.7, n_test=500, random_state=0
    ... )
    >>> gathered = gather_pairs(da.from_array(rows, chunks=(301, -1)), codes)
    >>> model = PairLogisticRegression().fit(*gathered)
    >>> bool((model.predict(X_test) == y_test).mean() > 0.88)
    True
    """

    @contextmanager
    def _open(
        self, X: DaskCollection, y: VectorLike, sample_weight: VectorLike | None, *, reset: bool, keep: bool = False
    ) -> Iterator[DaskBlocks]:
        if reset and getattr(y, "ndim", 1) == 2:
            blocks = dask_blocks(self._check_columns(X, reset=True), y, sample_weight)
            self._refuse_columns(blocks.sum(count_columns))
            y = y["answer"] if hasattr(y, "columns") else y[:, 0]
        with super()._open(X, y, sample_weight, reset=reset, keep=keep) as blocks:
            yield blocks

    def _fit_blocks(self, blocks: Blocks) -> Fit:
        return fit_pair_logistic(self, blocks)

    def _refuse_columns(self, found: Sums | None) -> None:
        """Refuse what other columns than the codes would change."""
        if found is None:
            return
        refuse_shared(found["points"], "the joint likelihood", _FIT_IN_MEMORY)
        if found["n_labels"]:
            raise InputError(
                f"`y` has labels on {found['n_labels']:,} rows, from which the joint likelihood does not learn over "
                f"blocks. {_FIT_IN_MEMORY} Or leave the column out and name the classes afterwards, with orient."
            )
        if self.error_rate == "auto" and (n_annotators := len(set(found["annotators"]))) > 1:
            raise InputError(
                f"`y` names {n_annotators} annotators, whose error rates are estimated in memory only. "
                f"{_FIT_IN_MEMORY} Or give one rate for all: `error_rate=0` takes all answers for right."
            )
