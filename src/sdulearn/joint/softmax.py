"""The surface of a linear model with any number of classes: decisions, probabilities, names."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_softmax, softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from sdulearn.base import LinearFit, LinearPairClassifier
from sdulearn.errors import InputError, TrainingAnswersWarning, warn
from sdulearn.joint.class_model import ClassFit, match_names
from sdulearn.metrics.accuracy import no_answers
from sdulearn.metrics.classes import class_agreement
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.solvers import warn_unless
from sdulearn.types import Array, Indices, MatrixLike


class SoftmaxPairClassifier(LinearPairClassifier):
    """A line between the classes -1 and +1, or a softmax of K > 2 lines for the classes 1 to K."""

    FITTED = (*LinearPairClassifier.FITTED, "n_classes_", "class_shares_")

    class_shares_: Array
    n_classes_: int

    def decision_function(self, X: MatrixLike) -> Array:
        """Return the signed confidence of each row, positive for class +1; with K > 2 classes the logits.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, K)
            ``X @ coef_.T + intercept_``, one column a class where there are more than two.
        """
        if not self._many_classes:
            return super().decision_function(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def predict(self, X: MatrixLike) -> NDArray[np.int64]:
        """Return the class of each row.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        int array of shape (n_rows,)
            -1 or +1; with more than two classes 1 to K.
        """
        if not self._many_classes:
            return super().predict(X)
        return self.classes_[np.argmax(self.decision_function(X), axis=1)]

    def predict_proba(self, X: MatrixLike) -> Array:
        """Probability of each class for each row.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Columns as in ``classes_``: P(y = -1) and P(y = +1), or P(y = 1) to P(y = K).
        """
        decision = self.decision_function(X)
        if self._many_classes:
            return softmax(decision, axis=1)
        positive = expit(decision)
        return np.column_stack([1 - positive, positive])

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy estimated from answers alone; with more than two classes the agreement with the answers.

        On the answers that the model was fitted to, this is training agreement, which is near 1 whatever the model is
        worth: score other answers, or hold some out (``cross_val_score(..., cv=PairKFold())``,
        :func:`~sdulearn.metrics.cross_val_accuracy` for two classes).

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows that the model has not seen.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row; for true labels use ``sklearn.metrics.accuracy_score``.
        sample_weight : array-like of shape (n_rows,), optional
            A weight per row; both ends of a pair carry one weight.

        Returns
        -------
        float
            The value of :func:`~sdulearn.metrics.pair_accuracy`; with more than two classes the share of
            answers that the predicted classes agree with (:func:`~sdulearn.metrics.class_agreement`), with a
            TrainingAnswersWarning where these are the answers of the fit.

        Raises
        ------
        UndeterminedError
            Where ``y`` holds no answers (two classes: neither answers nor labels).
        """
        if not self._many_classes:
            return super().score(X, y, sample_weight)
        pairs = read_pairs(y)
        if hash(np.asarray(pairs).tobytes()) == getattr(self, "_learned", None):
            warn(
                f"The model was fitted to these answers: that it agrees with them says little of {len(self.classes_)} "
                "classes. Score answers that are new to it, or use cross_val_score with `cv=PairKFold()`.",
                TrainingAnswersWarning,
            )
        weight = np.ones(pairs.n_rows) if sample_weight is None else np.asarray(sample_weight)
        if not weight[pairs.ends].any():
            raise no_answers("A score")
        return class_agreement(self.predict(X), pairs, sample_weight=sample_weight).agreement.value

    def _remember(self, pairs: Pairs) -> None:
        """Keep what tells the answers of a fit from others."""
        self._learned = hash(np.asarray(pairs).tobytes())

    def orient(self, X: MatrixLike, y_true: ArrayLike) -> Self:
        """Name the classes by a few labelled points.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            A few points.
        y_true : array-like of shape (n_points,)
            Their classes: -1 or +1, or 1 to K.

        Returns
        -------
        self : estimator
            The model, its classes renamed or not.
        """
        return self.name_classes(X, y_true) if self._many_classes else super().orient(X, y_true)

    def name_classes(self, X: MatrixLike, labels: ArrayLike) -> Self:
        """Name the classes by the best matching with labelled points, all classes at once.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_points, n_features)
            A few points.
        labels : array-like of shape (n_points,)
            Their classes: -1 or +1, or 1 to K. A class without a point keeps its place among the
            others, by size.

        Returns
        -------
        self : estimator
            The model, its classes renamed.
        """
        if not self._many_classes:
            return super().orient(X, labels)
        names = np.asarray(labels)
        K = len(self.classes_)
        if not np.isin(names, self.classes_).all():
            raise InputError(f"name_classes needs classes 1 to {K} in `labels`.")
        decision = self.decision_function(X)
        if names.shape != (len(decision),):
            raise InputError(f"`X` has {len(decision)} rows, but `labels` has shape {names.shape}.")
        self._rename(match_names(log_softmax(decision, axis=1), names.astype(np.int64)))
        return self

    def _rename(self, column: Indices) -> None:
        """Put the classes into another order."""
        self.coef_ = self.coef_[column]
        self.intercept_ = self.intercept_[column]
        self.class_shares_ = self.class_shares_[column]

    @property
    def _many_classes(self) -> bool:
        check_is_fitted(self, msg=f"This %(name)s instance is not fitted yet. {self._pending}")
        return len(self.coef_) > 1

    def _accept(self, fit: LinearFit) -> Self:
        self.n_classes_ = 2
        return super()._accept(fit)

    def _accept_classes(self, fit: ClassFit) -> Self:
        """Take over what a fit with K classes found, and warn unless its certificate holds."""
        self.coef_ = fit.coef
        self.intercept_ = fit.intercept
        self.n_classes_ = len(fit.coef)
        self.classes_ = np.arange(1, self.n_classes_ + 1)
        self.class_shares_ = fit.shares
        self.prior_ = None  # type: ignore[assignment]
        self.objective_ = fit.objective
        self.optimality_ = fit.optimality
        self.n_iter_ = fit.n_iter
        self.n_features_in_ = fit.coef.shape[1]
        for name, value in fit.chosen.items():
            setattr(self, name, value)
        warn_unless(fit.optimality, fit.tol, fit.n_iter)
        return self
