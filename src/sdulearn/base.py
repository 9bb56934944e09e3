"""What the linear estimators share: the decision, the score from pairs, the sign, the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from sdulearn.errors import InputError
from sdulearn.io import container
from sdulearn.metrics.accuracy import pair_accuracy
from sdulearn.model_selection import check_places
from sdulearn.pairs import Pairs, read_pairs, weighted_rows
from sdulearn.prior import PriorEstimate
from sdulearn.solvers import Solution, warn_unless
from sdulearn.solvers.limits import check_magnitude, check_weight_range
from sdulearn.types import Array, MatrixLike, Rows


@dataclass(frozen=True)
class LinearFit:
    """What a fit of a linear model found, wherever its rows were."""

    coef: Array  # (n_features,), weights
    intercept: float  # intercept
    prior: PriorEstimate  # the class prior with its interval
    objective: float  # minimum reached
    optimality: float  # what certifies it: a relative residual, to be compared with ``tol``
    n_iter: int  # iterations, or passes over the rows
    n_features: int  # number of features
    # further fitted attributes by name: ``alpha_``, ``gamma_``, ``cv_results_`` and the like
    chosen: dict[str, object] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        solution: Solution,
        line: tuple[Array, float],
        prior: PriorEstimate,
        chosen: dict[str, object] | None = None,
    ) -> LinearFit:
        """From a certified solution and its ``(coef, intercept)`` in the user's columns."""
        coef, intercept = line
        certificate = (solution.objective, solution.optimality, solution.n_iter)
        return cls(coef, intercept, prior, *certificate, len(coef), chosen or {})


def check_rows_and_pairs(estimator: BaseEstimator, X: MatrixLike, y: ArrayLike, **checks: object) -> tuple[Rows, Pairs]:
    """scikit-learn's checks of ``X`` and ``y``, where ``y`` may have columns."""
    if y is None or np.ndim(y) != 2 or np.shape(y)[1] == 1:
        X, codes = validate_data(estimator, X, y, **checks)
        return X, read_pairs(codes)
    pairs = read_pairs(y)
    X = validate_data(estimator, X, **checks)
    check_consistent_length(X, pairs)
    return X, pairs


class LinearPairClassifier(ClassifierMixin, BaseEstimator):
    """A fitted line ``coef_.x + intercept_`` between the classes -1 and +1."""

    coef_: Array
    intercept_: Array
    prior: float | None
    prior_: PriorEstimate
    tol: float

    # What is to be done before there is a model.
    _pending = "Call 'fit' with appropriate arguments before using this estimator."

    # What a model file may hold, and nothing else.
    FITTED: tuple[str, ...] = (
        "coef_", "intercept_", "classes_", "prior_", "objective_", "optimality_", "n_iter_", "n_features_in_",
        "feature_names_in_",
    )  # fmt: skip

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def decision_function(self, X: MatrixLike) -> Array:
        """Return the signed confidence of each row: positive for class +1.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        array of shape (n_rows,)
            ``X @ coef_ + intercept_``.
        """
        check_is_fitted(self, msg=f"This %(name)s instance is not fitted yet. {self._pending}")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: MatrixLike) -> NDArray[np.int64]:
        """Return the class of each row.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        int array of shape (n_rows,)
            -1 or +1.
        """
        return np.where(self.decision_function(X) > 0, 1, -1)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy estimated from answers alone: the value of :func:`~sdulearn.metrics.pair_accuracy`.

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
            Between 1/2 and 1; with labels in ``y``, which tell a model from its mirror image, from 0 on.

        Raises
        ------
        UndeterminedError
            Where ``y`` holds neither answers nor labels.
        """
        decision = self.decision_function(X)
        return pair_accuracy(decision, y, sample_weight=sample_weight, prior=self._known_prior).value

    @property
    def _known_prior(self) -> float | None:
        """The prior that was given, of the class that is +1 now; None where it was estimated."""
        return None if self.prior is None else self.prior_.value

    def orient(self, X: MatrixLike, y_true: ArrayLike) -> Self:
        """Decide which side is +1 by a few labelled points; flips the model where most of them disagree.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            A few points.
        y_true : array-like of shape (n_points,)
            Their classes, -1 or +1.

        Returns
        -------
        self : estimator
            The model, flipped or not.
        """
        labels = np.asarray(y_true)
        if not np.isin(labels, (-1, 1)).all():
            raise InputError("orient needs true classes -1 and +1 in `y_true`.")
        decision = self.decision_function(X)
        if labels.shape != decision.shape:
            raise InputError(f"`X` has {len(decision)} rows, but `y_true` has shape {labels.shape}.")
        if self._vote(decision, labels) < 0:
            self._flip()
        return self

    def _vote(self, decision: Array, labels: NDArray[np.number]) -> float:
        """Positive where most labelled points agree with the decision; a tie goes by its size."""
        return float(labels @ np.sign(decision)) or float(labels @ decision)

    def _flip(self) -> None:
        self.coef_ = -self.coef_
        self.intercept_ = -self.intercept_
        self.prior_ = self.prior_.mirrored()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file that holds numbers and JSON only.

        A splitter object given as ``cv`` is not kept; a loss object of your own cannot be saved.

        Parameters
        ----------
        path : str or path-like
            The file.

        See Also
        --------
        sdulearn.load_model : Reads it.
        """
        check_is_fitted(self)
        container.write(path, *container.describe_estimator(self, self.FITTED))

    def _check_rows(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Rows, Pairs, Array | None]:
        """Rows, pairs and weights, checked once, at the door; see :func:`~sdulearn.pairs.weighted_rows`."""
        checks = {"accept_sparse": "csr", "dtype": np.float64, "ensure_min_samples": 2}
        X, pairs = check_rows_and_pairs(self, X, y, **checks)
        check_magnitude(X)
        if sample_weight is not None:
            check_weight_range(np.asarray(sample_weight, dtype=np.float64))
        pairs, weight, kept = weighted_rows(pairs, sample_weight)
        if kept is None:
            return X, pairs, weight
        check_places(getattr(self, "cv", None))
        return X[kept], pairs, weight

    def _accept(self, fit: LinearFit) -> Self:
        """Take over what a fit found, and warn unless its certificate holds."""
        self.coef_ = fit.coef[None, :]
        self.intercept_ = np.array([fit.intercept])
        self.classes_ = np.array([-1, 1])
        self.prior_ = fit.prior
        self.objective_ = fit.objective
        self.optimality_ = fit.optimality
        self.n_iter_ = fit.n_iter
        self.n_features_in_ = fit.n_features
        for name, value in fit.chosen.items():
            setattr(self, name, value)
        warn_unless(fit.optimality, self.tol, fit.n_iter)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags
