"""The linear estimators on dask arrays and dask frames."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import dask
import numpy as np
from dask.base import is_dask_collection
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from sdulearn import joint, linear
from sdulearn.base import LinearPairClassifier
from sdulearn.blocks import Sums, fit_classifier, fit_classifier_cv
from sdulearn.blocks.estimators import source_losses, validation_risk_of
from sdulearn.distributed.align import as_matrix, dask_blocks, is_frame, whole_rows
from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.joint.blockwise import fit_pair_logistic
from sdulearn.losses import get_training_loss
from sdulearn.pairs import sources
from sdulearn.sklearn_private import fit_context
from sdulearn.solvers import choose_solver
from sdulearn.types import Array


def _parent_has_probability(estimator: Any) -> bool:
    return bool(super(DaskRows, estimator).predict_proba)  # raises with the reason where the parent has none


class DaskRows(LinearPairClassifier):
    """What the three estimators do alike with dask input; with anything else they are the local ones."""

    def decision_function(self, X: Any) -> Any:
        """Signed confidence of each row: positive for class +1; lazy for dask input.

        A dask array for a dask array; for a dask frame a dask Series, with the index of its rows.
        """
        if not is_dask_collection(X):
            return super().decision_function(X)
        return self._lazy("decision_function", X, np.float64)

    def predict(self, X: Any) -> Any:
        """Class of each row, -1 or +1; a lazy dask array for a dask array, a lazy Series for a dask frame."""
        return self._lazy("predict", X, np.int64) if is_dask_collection(X) else super().predict(X)

    @available_if(_parent_has_probability)
    def predict_proba(self, X: Any) -> Any:
        """P(y = -1) and P(y = +1) of each row; lazy for dask input: an array, or a frame with columns -1 and 1."""
        if not is_dask_collection(X):
            return super().predict_proba(X)
        return self._lazy("predict_proba", X, np.float64, [-1, 1])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Estimated accuracy from pair codes alone, as the local one; one pass over dask input, computed at once.

        On dask input it is not checked that each code stands on two rows.
        """
        if not is_dask_collection(X) or self.prior_.value == 0.5:
            return super().score(X, *dask.compute(y, sample_weight))
        X = self._check_columns(X, reset=False)
        sums = dask_blocks(X, y, sample_weight).sum(_zero_one_sums, self.coef_[0], self.intercept_[0])
        if sums is None:
            raise InputError("There are no rows: every block is empty.")
        return 1 - float(validation_risk_of(sums["weight"], sums["losses"], self.prior_.value)[0])

    def orient(self, X: Any, y_true: Any) -> Self:
        """Settle which side is +1 with a few labelled points, as the local one; dask input is computed at once."""
        return super().orient(*dask.compute(X, y_true))

    def _lazy(self, method: str, X: Any, dtype: Any, columns: list[int] | None = None) -> Any:
        """A method of the model as it is now, on every chunk."""
        check_is_fitted(self)
        X = self._check_columns(X, reset=False)
        model = copy(self)
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_  # checked already, and a chunk of an array has no names
        empty = np.empty((0,) if columns is None else (0, len(columns)), dtype)
        if is_frame(X):
            meta = _framed(X._meta.index, empty, columns)
            return X.map_partitions(_on_partition, model, method, columns, meta=meta)
        shape = {"drop_axis": 1} if columns is None else {"chunks": (X.chunks[0], (len(columns),))}
        return X.map_blocks(_on_chunk, model, method, dtype=dtype, meta=empty, **shape)

    def _check_columns(self, X: Any, *, reset: bool) -> Any:
        """``X`` in whole rows; names and number of columns are checked by what Dask knows without computing."""
        X = whole_rows(X)
        _check_feature_names(self, X._meta, reset=reset)
        _check_n_features(self, X, reset=reset)
        return X

    def _fit_blocks(self, fit: Any, X: Any, y: Any, sample_weight: Any, iterative: bool) -> None:
        """Keep the blocks in the workers' memory where they are asked again and again, and only for as long."""
        blocks = dask_blocks(self._check_columns(X, reset=True), y, sample_weight)
        kept = blocks.persist() if iterative else blocks
        try:
            fit(self, kept)
        finally:
            kept.release()


def _on_chunk(X: Any, model: Any, method: str) -> Any:
    """The local method; Dask's chunks may be empty, which scikit-learn refuses."""
    if X.shape[0]:
        return getattr(model, method)(as_matrix(X))
    return getattr(model, method)(np.zeros((1, X.shape[1])))[:0]


def _on_partition(X: Any, model: Any, method: str, columns: list[int] | None) -> Any:
    return _framed(X.index, _on_chunk(X, model, method), columns)


def _framed(index: Any, values: Any, columns: list[int] | None) -> Any:
    """Values under the index of their rows, as dask frames are made of."""
    pandas = require("pandas", "dask")
    return pandas.Series(values, index) if columns is None else pandas.DataFrame(values, index, columns)


def _zero_one_sums(X: Any, y: NDArray[np.int64], weight: Array | None, coef: Array, intercept: float) -> Sums:
    """Weight of S, D and U, and their zero-one losses as +1 and as -1."""
    assert_all_finite(X, input_name="X")
    z, source = np.asarray(X @ coef + intercept)[:, None], sources(y)
    return Sums(
        weight=np.bincount(source, weights=weight, minlength=3).astype(np.float64),
        losses=source_losses(z, source, weight),
    )


def _is_iterative(model: Any) -> bool:
    return choose_solver(model.solver, get_training_loss(model.loss), 1) != "closed_form"


class SDUClassifier(DaskRows, linear.SDUClassifier):
    """:class:`sdulearn.SDUClassifier` on dask arrays and dask frames; parameters and attributes are the same.

    The squared loss takes one pass over the data and keeps none of it. The other losses keep the
    rows in the workers' memory while they fit; each step sends the coefficients out and brings back
    one sum of size d or d^2. Beside that, a sample comes back at the start, and for double hinge
    the few rows at a bend at the end: 16 MB each, or ten d x d matrices if that is more.

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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit from rows and pair codes.

        Parameters
        ----------
        X : dask array (dense or CSR chunks), dask DataFrame, or what the local estimator takes
            One row per point, in chunks of any size. A plain X is fitted here.
        y : dask array, dask Series or array-like of shape (n_rows,)
            Pair codes: +k similar, -k dissimilar, 0 unlabeled. Where chunk sizes are unknown, as in
            frames, its chunks must be those of ``X``, one by one; rows go by their place, not by an
            index.
        sample_weight : as ``y``, optional
            A weight per row; both ends of a pair carry one weight.

        Returns
        -------
        self
        """
        if not is_dask_collection(X):
            return super().fit(X, *dask.compute(y, sample_weight))
        self._fit_blocks(fit_classifier, X, y, sample_weight, _is_iterative(self))
        return self


class SDUClassifierCV(DaskRows, linear.SDUClassifierCV):
    """:class:`sdulearn.SDUClassifierCV` on dask arrays and dask frames; parameters and attributes are the same.

    ``n_jobs`` plays no role with dask input: the cluster has its own workers. ``cv`` is a number of
    folds or a :class:`~sdulearn.blocks.HashedPairKFold`, which is also what a number stands for:
    each block finds the folds of its own rows. Give that one to the local estimator for the same
    folds.
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose alpha and gamma on held-out pairs, then fit on all rows; see :meth:`SDUClassifier.fit`."""
        if not is_dask_collection(X):
            return super().fit(X, *dask.compute(y, sample_weight))
        self._fit_blocks(fit_classifier_cv, X, y, sample_weight, _is_iterative(self))
        return self


class PairLogisticRegression(DaskRows, joint.PairLogisticRegression):
    """:class:`sdulearn.PairLogisticRegression` on dask arrays and dask frames; the parameters are the same.

    Both ends of a pair must sit in one chunk: :func:`~sdulearn.distributed.gather_pairs` brings
    them there. The rows are kept in the workers' memory while it fits.

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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit from rows and pair codes, both ends of each pair in one chunk; see :meth:`SDUClassifier.fit`."""
        if not is_dask_collection(X):
            return super().fit(X, *dask.compute(y, sample_weight))
        self._fit_blocks(fit_pair_logistic, X, y, sample_weight, iterative=True)
        return self
