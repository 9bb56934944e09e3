"""The linear estimators on dask arrays and dask frames."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Self, TypeAlias

import dask
import numpy as np
from dask.base import is_dask_collection
from numpy.typing import DTypeLike
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sdulearn import joint, linear
from sdulearn.base import LinearClassifier
from sdulearn.blocks import Sums, fit_classifier, fit_classifier_cv
from sdulearn.blocks.points import codes_of, count_columns, labels_of, refuse_shared_points
from sdulearn.distributed.align import as_matrix, dask_blocks, is_frame, whole_rows
from sdulearn.distributed.cluster import DaskBlocks
from sdulearn.distributed.graph import DaskCollection, VectorLike
from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.joint.blockwise import fit_pair_logistic
from sdulearn.losses import get_training_loss
from sdulearn.metrics import pair_accuracy
from sdulearn.metrics.accuracy import no_answers
from sdulearn.sklearn_private import check_feature_names, check_n_features, fit_context
from sdulearn.solvers import choose_solver
from sdulearn.types import Array, Codes, Frame, MatrixLike, Rows

Values: TypeAlias = DaskCollection
"""An array for plain rows, a lazy dask array for a dask array, a lazy Series or frame for a frame."""

# What to do about answers that share points.
_FIT_IN_MEMORY = (
    "Fit sdulearn.PairLogisticRegression in memory, on the rows in answers and a draw of the others; "
    "sdulearn.fit_table does so with any `engine`."
)


def _parent_has_probability(estimator: DaskRows) -> bool:
    # Raises with the reason where the parent has none.
    return bool(super(DaskRows, estimator).predict_proba)


class DaskRows(LinearClassifier):
    """What the three estimators do with dask input; with anything else they are the local ones."""

    def decision_function(self, X: MatrixLike) -> Values:
        """Signed confidence of each row: positive for class +1.

        Parameters
        ----------
        X : dask array, dask DataFrame, or what the local estimator takes
            Rows.

        Returns
        -------
        dask array, dask Series or array of shape (n_rows,)
            Lazy for dask input; a Series, with the index of its rows, for a frame.
        """
        if not is_dask_collection(X):
            return super().decision_function(X)
        return self._lazy("decision_function", X, np.float64)

    def predict(self, X: MatrixLike) -> Values:
        """Class of each row.

        Parameters
        ----------
        X : dask array, dask DataFrame, or what the local estimator takes
            Rows.

        Returns
        -------
        dask array, dask Series or array of shape (n_rows,)
            -1 or +1; lazy for dask input.
        """
        return self._lazy("predict", X, np.int64) if is_dask_collection(X) else super().predict(X)

    @available_if(_parent_has_probability)
    def predict_proba(self, X: MatrixLike) -> Values:
        """Probability of either class for each row.

        Parameters
        ----------
        X : dask array, dask DataFrame, or what the local estimator takes
            Rows.

        Returns
        -------
        dask array, dask DataFrame or array of shape (n_rows, 2)
            P(y = -1) and P(y = +1); lazy for dask input. The columns of a frame are -1 and 1.
        """
        if not is_dask_collection(X):
            return super().predict_proba(X)
        return self._lazy("predict_proba", X, np.float64)

    def score(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> float:
        """Accuracy estimated from answers alone: the value of :func:`~sdulearn.metrics.pair_accuracy`.

        Dask input takes one pass, computed at once. The ends of a pair may be in different chunks:
        decision values, what is known and weights of all rows of pairs and of rows with labels come back. Where
        all answers are of one kind and ``prior`` is given, a second pass brings those of all rows.

        Parameters
        ----------
        X : dask array, dask DataFrame, or what the local estimator takes
            Rows that the model has not seen.
        y : dask array, dask Series or array-like of shape (n_rows,), or dask frame or array of columns
            Pair codes; or a table of what is known of each row.
        sample_weight : dask array, dask Series or array-like of shape (n_rows,), optional
            A weight per row; both ends of a pair carry one weight.

        Returns
        -------
        float
            Between 1/2 and 1; with labels in ``y`` from 0 on.
        """
        if not is_dask_collection(X):
            return super().score(X, *dask.compute(y, sample_weight))
        check_is_fitted(self)
        if len(self.classes_) > 2:
            raise InputError("Dask input can be scored with two classes only. Score the rows in answers in memory.")
        X = self._check_columns(X, reset=False)
        blocks = dask_blocks(X, y, sample_weight)
        line = (self.coef_[0], self.intercept_[0])
        sums = blocks.sum(_decisions, *line)
        if sums is None:
            raise InputError("There are no rows: every block is empty.")
        signs = np.unique(np.sign(codes_of(np.concatenate(sums["y"]))))
        if not len(signs):
            raise no_answers("An accuracy")
        if self._known_prior is not None and len(signs[signs != 0]) == 1:
            # One kind of answer tells an accuracy only beside unlabeled rows.
            sums = blocks.sum(_decisions, *line, True)
        weight = None if sample_weight is None else np.concatenate(sums["weight"])
        decision = np.concatenate(sums["decision"])
        known = np.concatenate(sums["y"])
        return pair_accuracy(decision, known, sample_weight=weight, prior=self._known_prior).value

    def orient(self, X: MatrixLike, y_true: VectorLike) -> Self:
        """Name the classes by a few labelled points; flips the model where most of them disagree.

        Parameters
        ----------
        X : dask array, dask DataFrame, or array-like of shape (n_points, n_features)
            A few points; dask input is computed at once.
        y_true : dask array, dask Series or array-like of shape (n_points,)
            Their classes, -1 or +1.

        Returns
        -------
        self
            The estimator, flipped or not.
        """
        return super().orient(*dask.compute(X, y_true))

    def _lazy(self, method: str, X: DaskCollection, dtype: DTypeLike) -> DaskCollection:
        """A method of the model as it is now, on every chunk."""
        check_is_fitted(self)
        X = self._check_columns(X, reset=False)
        by_class = method == "predict_proba" or (method == "decision_function" and len(self.classes_) > 2)
        columns = self.classes_.tolist() if by_class else None
        model = copy(self)
        # Names are checked already, and a chunk of an array has none.
        model.__dict__.pop("feature_names_in_", None)
        empty = np.empty((0,) if columns is None else (0, len(columns)), dtype)
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
    def _blocks(
        self, X: DaskCollection, y: VectorLike, sample_weight: VectorLike | None, keep: bool
    ) -> Iterator[DaskBlocks]:
        """Blocks of checked columns; ``keep`` holds them in the workers' memory meanwhile."""
        blocks = dask_blocks(self._check_columns(X, reset=True), y, sample_weight)
        kept = blocks.persist() if keep else blocks
        try:
            yield kept
        finally:
            kept.release()
        # What partial_fit has summed up is not of this fit.
        self.__dict__.pop("statistics_", None)


def _on_chunk(X: MatrixLike, model: LinearClassifier, method: str) -> Array:
    """The local method; Dask's chunks may be empty, which scikit-learn refuses."""
    if X.shape[0]:
        return getattr(model, method)(as_matrix(X))
    return getattr(model, method)(np.zeros((1, X.shape[1])))[:0]


def _on_partition(X: Frame, model: LinearClassifier, method: str, columns: list[int] | None) -> Frame:
    return _framed(X.index, _on_chunk(X, model, method), columns)


def _framed(index: Frame, values: Array, columns: list[int] | None) -> Frame:
    """Values under the index of their rows, as dask frames are made of."""
    pandas = require("pandas", "dask")
    if columns is None:
        return pandas.Series(values, index)
    return pandas.DataFrame(values, index, columns)


def _decisions(
    X: Rows, y: Codes, weight: Array | None, coef: Array, intercept: float, with_unlabeled: bool = False
) -> Sums:
    """Decision values, what is known and weights of the rows in pairs or with a label, or of all."""
    assert_all_finite(X, input_name="X")
    rows = np.flatnonzero(with_unlabeled | (codes_of(y) != 0) | (labels_of(y) != 0))
    return Sums(
        decision=[np.asarray(X[rows] @ coef + intercept)],
        y=[y[rows]],
        weight=[None if weight is None else weight[rows]],
    )


def _is_iterative(model: linear.SDUClassifier | linear.SDUClassifierCV) -> bool:
    """Whether the blocks are asked again and again."""
    return choose_solver(model.solver, get_training_loss(model.loss), 1) != "closed_form"


class SDUClassifier(DaskRows, linear.SDUClassifier):
    """:class:`sdulearn.SDUClassifier` on dask arrays and dask frames.

    The squared loss takes one pass over the data and keeps none of it. The other losses keep the
    rows in the workers' memory while they fit; each step sends the coefficients out and brings back
    one sum of size d or d^2. Beside that, a sample comes back at the start, and for double hinge
    the few rows at a kink at the end: 16 MB each, or ten d x d matrices if that is more.

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
    SDUClassifierCV : Chooses alpha and gamma.
    sdulearn.streaming.SDUClassifier : From a disk, without a cluster.

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
    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit from rows and pair codes.

        Parameters
        ----------
        X : dask array (dense or CSR chunks), dask DataFrame, or what the local estimator takes
            One row per point, in chunks of any size. A plain X is fitted here.
        y : dask array, dask Series or array-like of shape (n_rows,), or dask frame or array of columns
            Pair codes: +k similar, -k dissimilar, 0 unlabeled; where answers share points, a table of
            them and of the points (columns answer and point). Where chunk sizes are unknown, as in
            frames, its chunks must be those of ``X``, one by one; rows go by their place, not by an
            index.
        sample_weight : dask array, dask Series or array-like of shape (n_rows,), optional
            A weight per row; both ends of a pair carry one weight.

        Returns
        -------
        self
            The fitted estimator.
        """
        if not is_dask_collection(X):
            return super().fit(X, *dask.compute(y, sample_weight))
        with self._blocks(X, y, sample_weight, keep=_is_iterative(self)) as blocks:
            return self._accept(fit_classifier(self, blocks))


class SDUClassifierCV(DaskRows, linear.SDUClassifierCV):
    """:class:`sdulearn.SDUClassifierCV` on dask arrays and dask frames.

    Each block finds the folds of its own rows, by hash. Give a
    :class:`~sdulearn.blocks.HashedPairKFold` to the local estimator for the same folds.

    Parameters
    ----------
    risk, loss, gammas, alphas, prior
        As in :class:`sdulearn.SDUClassifierCV`.
    cv : int or HashedPairKFold, default=5
        Number of folds.
    fit_intercept, solver, tol, max_iter
        As in :class:`sdulearn.SDUClassifierCV`.
    n_jobs : int or None, default=None
        Plays no role with dask input: the cluster has its own workers.

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

    Examples
    --------
    >>> import dask.array as da
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.distributed import SDUClassifierCV
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=400, n_unlabeled=500, prior=0.7, random_state=0)
    >>> model = SDUClassifierCV(alphas=(1e-1, 1e-3))
    >>> model.fit(da.from_array(rows, chunks=(300, -1)), codes).alpha_ in (1e-1, 1e-3)
    True
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Choose alpha and gamma on held-out pairs, then fit on all rows.

        Parameters
        ----------
        X, y, sample_weight : dask collections
            As in :meth:`SDUClassifier.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        if not is_dask_collection(X):
            return super().fit(X, *dask.compute(y, sample_weight))
        with self._blocks(X, y, sample_weight, keep=_is_iterative(self)) as blocks:
            return self._accept(fit_classifier_cv(self, blocks))


class PairLogisticRegression(DaskRows, joint.PairLogisticRegression):
    """:class:`sdulearn.PairLogisticRegression` on dask arrays and dask frames.

    Loose pairs without errors: no point is in two answers, no row has a label, and ``error_rate`` is 0 or,
    with answers of one annotator, "auto". Both ends of a pair must be in one chunk:
    :func:`~sdulearn.distributed.gather_pairs` brings them there. The rows are kept in the workers'
    memory while it fits.

    Parameters
    ----------
    alpha, covariance_power, prior, prior_strength, orientation, error_rate
        As in :class:`sdulearn.PairLogisticRegression`.
    init, tol, max_iter
        As in :class:`sdulearn.PairLogisticRegression`.

    Attributes
    ----------
    coef_, intercept_, classes_, prior_, objective_, optimality_, n_iter_, error_rates_
        As in :class:`sdulearn.PairLogisticRegression`.
    n_features_in_, feature_names_in_
        As in :class:`sdulearn.SDUClassifier`.

    See Also
    --------
    gather_pairs : Brings both ends of each pair into one chunk.
    sdulearn.PairLogisticRegressionCV : Chooses the penalty, in memory.

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
    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit from rows and pair codes, both ends of each pair in one chunk.

        Parameters
        ----------
        X, y, sample_weight : dask collections
            As in :meth:`SDUClassifier.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        if not is_dask_collection(X):
            return super().fit(X, *dask.compute(y, sample_weight))
        if getattr(y, "ndim", 1) == 2:
            blocks = dask_blocks(self._check_columns(X, reset=True), y, sample_weight)
            self._refuse_columns(blocks.sum(count_columns))
            y = y["answer"] if hasattr(y, "columns") else y[:, 0]
        with self._blocks(X, y, sample_weight, keep=True) as blocks:
            return self._accept(fit_pair_logistic(self, blocks))

    def _refuse_columns(self, found: Sums | None) -> None:
        """Refuse what other columns than the codes would change."""
        if found is None:
            return
        refuse_shared_points(found["points"], "the joint likelihood", _FIT_IN_MEMORY)
        if found["n_labels"]:
            raise InputError(
                f"`y` has labels on {found['n_labels']:,} rows, from which the joint likelihood does not learn over "
                f"blocks. {_FIT_IN_MEMORY} Or leave the column out and name the classes afterwards, with orient."
            )
        if self.error_rate == "auto" and (n_annotators := len(set(found["annotators"]))) > 1:
            raise InputError(
                f"`y` names {n_annotators} annotators, whose error rates are estimated in memory only. "
                f"{_FIT_IN_MEMORY} Or take all answers for right: `error_rate=0`."
            )
