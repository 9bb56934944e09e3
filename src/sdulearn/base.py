"""Base classes of all models: predictions, the score from answers, class names, model files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sdulearn.answers.answer_model import AnswerModel, log_node_probabilities, posteriors, renamed
from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import InputError, TrainingAnswersWarning, warn
from sdulearn.io import container
from sdulearn.io.typed import finite, read
from sdulearn.metrics.accuracy import pair_accuracy
from sdulearn.metrics.classes import class_agreement
from sdulearn.model_selection import check_places
from sdulearn.prior import PriorEstimate, no_answers
from sdulearn.progress import long_work
from sdulearn.sklearn_private import Interval, StrOptions, fit_context, safe_indexing
from sdulearn.solvers import warn_unless
from sdulearn.solvers.linalg import check_magnitude
from sdulearn.types import Array, Between, Codes, Count, Indices, MatrixLike, Rows

# The largest weight of a single labelled point when classes are named.
_MAX_VOTE = 5.0


class PairClassifier(ClassifierMixin, BaseEstimator):
    """Base of all models: classes -1 and +1, or 1 to K, by ``decision_function``."""

    classes_: NDArray[np.int64]
    n_classes_: int
    prior: float | None
    prior_: PriorEstimate | None
    answer_model_: AnswerModel

    # What an error asks for where there is no model yet.
    _pending = "Call 'fit' with appropriate arguments before using this estimator."

    # The attributes that a model file may hold, with their types for :func:`sdulearn.io.typed.read`.
    FITTED: ClassVar[Mapping[str, Any]] = {
        "classes_": Any,
        "prior_": PriorEstimate | None,
        "n_iter_": Count,
        "n_features_in_": Annotated[int, Between(1, 2**31)],
        "feature_names_in_": list[str],
        "_learned": str,
        "_learned_rows": Any,
    }

    # The fingerprint of the training answers, and the rows of points in them.
    _learned: str
    _learned_rows: Indices

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and what is known about them.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            One row for each point of an answer, and unlabeled rows.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 5)
            Pair codes (+k similar, -k dissimilar, 0 in no pair), and beside them point, annotator, label and question;
            see :func:`~sdulearn.stack_pairs`.
        sample_weight : array-like of shape (n_rows,), optional
            A weight per row; both ends of a pair carry one weight. Only their ratios matter, and a row of weight 0 is
            left out. A component counts by the mean weight of its answers and labels.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If answers that are never wrong contradict each other or the labels.
        """
        raise NotImplementedError

    def decision_function(self, X: MatrixLike) -> Array:
        """Return the signed confidence of each row, positive for +1; with K > 2 classes one of each.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, K)
            Log odds of class +1, or K logits, of models with ``predict_proba``.
        """
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def _rename(self, order: Indices) -> None:
        """Put the classes of scores, prior and answer model into another order; two classes trade places."""
        raise NotImplementedError

    def _rename_all(self, order: Indices) -> None:
        """Put the classes of this model and of those of its folds into another order."""
        for model in (self, *(of_fold for _, of_fold in getattr(self, "fold_models_", ()))):
            model._rename(order)

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
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return np.where(decision > 0, 1, -1)
        return self.classes_[np.argmax(decision, axis=1)]

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
        if decision.ndim > 1:
            return np.asarray(softmax(decision, axis=1))
        positive = expit(decision)
        return np.column_stack([1 - positive, positive])

    @available_if(lambda self: "answer_model_" in self.FITTED)
    def posterior(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Probability of each class for each row, from its features and the answers about its point.

        A model that was fitted to the same answers has learned their mistakes, too. If it has ``fold_models_``, the
        features of a row are therefore judged by the one that has not seen the answers about it; without them the
        probabilities of training answers are somewhat too sure.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`. An annotator who was not seen in the fit has the mean error rate.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Columns as in ``classes_``. A row of weight 0 or of a point in no answer has those of ``predict_proba``.
        """
        graph = AnswerGraph.from_y(y, sample_weight)
        return posterior_of(self.answer_model_, unseen_proba(self, X, graph), graph)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy estimated from answers alone; with more than two classes the agreement with them.

        On training answers it is near 1 whatever the model is worth: score other answers, or hold some out
        (``cross_val_score(..., cv=PairKFold())``, :func:`~sdulearn.metrics.cross_val_accuracy` for two classes,
        :func:`~sdulearn.metrics.cross_val_agreement` for more).

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`, of rows that the model has not seen. For true labels use
            ``sklearn.metrics.accuracy_score``.

        Returns
        -------
        float
            The value of :func:`~sdulearn.metrics.pair_accuracy`, between 1/2 and 1, or with labels in ``y`` from 0 on;
            with more than two classes that of :func:`~sdulearn.metrics.class_agreement`. A TrainingAnswersWarning says
            if these are training answers.

        Raises
        ------
        UndeterminedError
            If ``y`` has no answers (two classes: neither answers nor labels).
        """
        decision = self.decision_function(X)
        graph = AnswerGraph.from_y(y, sample_weight)
        if graph.fingerprint() == getattr(self, "_learned", None):
            instead = f"cross_val_{'accuracy' if decision.ndim == 1 else 'agreement'}"
            warn(
                "The model was fitted to these answers, so its agreement with them says little. Score answers that are "
                f"new to it, or call sdulearn.metrics.{instead}(estimator, X, y).",
                TrainingAnswersWarning,
            )
        if decision.ndim == 1:
            # The given prior, for the class that is +1 now.
            prior = None if self.prior is None or self.prior_ is None else self.prior_.value
            return pair_accuracy(decision, graph, prior=prior, error_rate=getattr(self, "answer_model_", None)).value
        if not graph.n_answers:
            raise no_answers("A score")
        predicted = self.classes_[np.argmax(decision, axis=1)]
        return class_agreement(predicted, graph).agreement.value

    def orient(self, X: MatrixLike, y_true: ArrayLike) -> Self:
        """Name the classes from a few labelled points; two classes exchange names if most points disagree.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_points, n_features)
            A few points.
        y_true : array-like of shape (n_points,)
            Their classes: -1 or +1, or 1 to K. More than two classes get the names of the best matching, all classes
            at once; one without a point keeps its place among the others, by size.

        Returns
        -------
        self : estimator
            The model, its classes renamed or not.
        """
        labels = np.asarray(y_true)
        decision = np.asarray(self.decision_function(X))
        if not np.isin(labels, self.classes_).all():
            allowed = "-1 and +1" if decision.ndim == 1 else f"1 to {len(self.classes_)}"
            raise InputError(f"orient needs true classes {allowed} in `y_true`.")
        if labels.shape != decision.shape[:1]:
            raise InputError(f"`X` has {len(decision)} rows, but `y_true` has shape {labels.shape}.")
        if decision.ndim > 1:
            order = match_names(log_softmax(decision, axis=1), labels.astype(np.int64))
        else:
            vote = labels @ np.sign(decision) or labels @ decision
            if hasattr(self, "predict_proba"):
                vote = labels @ np.clip(decision, -_MAX_VOTE, _MAX_VOTE)
            if vote >= 0:
                return self
            order = np.array([1, 0])
        self._rename_all(order)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file of numbers and JSON only.

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
        container.write(path, *container.describe_estimator(self))

    def _restore(self, fitted: container.Header) -> None:
        """Set the attributes of a model file, all checked."""
        if unexpected := set(fitted) - set(self.FITTED):
            raise InputError(f"unexpected attributes {sorted(unexpected)!r}")
        if missing := {"n_features_in_", "prior_", "answer_model_"} & set(self.FITTED) - set(fitted):
            raise InputError(f"{min(missing)} is missing")
        for name, value in fitted.items():
            setattr(self, name, read(self.FITTED[name], value))
        if "feature_names_in_" in fitted:
            self.feature_names_in_ = np.array(fitted["feature_names_in_"], dtype=object)
            if len(self.feature_names_in_) != self.n_features_in_:
                raise InputError("names and number of features do not fit together")
        rows = fitted.get("_learned_rows", np.empty(0, dtype=np.int64))
        if rows.dtype.kind != "i" or rows.ndim != 1 or (np.diff(rows, prepend=-1) <= 0).any():
            raise InputError("the rows in answers are not ascending numbers")

    def _check_rows(
        self, X: MatrixLike, y: ArrayLike | AnswerGraph, sample_weight: ArrayLike | None
    ) -> tuple[Rows, AnswerGraph]:
        """Return the kept rows, checked, and the graph of what is known about them."""
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_min_samples": 2}
        if isinstance(y, AnswerGraph):
            X = validate_data(self, X, **checks)
        else:
            has_columns = np.ndim(y) == 2 and np.shape(y)[1] > 1
            X, codes = validate_data(self, X, y, multi_output=has_columns, **checks)
            # scikit-learn drops the names of the columns.
            y = y if has_columns else codes
        check_magnitude(X)
        graph = AnswerGraph.from_y(y, sample_weight)
        if not graph.n_answers and not graph.labels.any():
            raise no_answers(f"A fit of {type(self).__name__}")
        return self._kept_rows(X, graph)

    def _kept_rows(self, X: Rows, graph: AnswerGraph) -> tuple[Rows, AnswerGraph]:
        """Leave out rows of weight 0, and remember the answers: :meth:`score` warns if it is given them again."""
        if X.shape[0] != graph.n_given:
            raise InputError(f"`X` has {X.shape[0]} rows, but `y` has {graph.n_given}.")
        self._learned = graph.fingerprint()
        self._learned_rows = rows_in_answers(graph)
        if graph.n_rows == graph.n_given:
            return X, graph
        check_places(getattr(self, "cv", None))
        return X[graph.rows], graph

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


# Parameters of all estimators with an answer model.
ANSWER_CONSTRAINTS: dict[str, list[Any]] = {
    "prior": [Interval(Real, 0, 1, closed="neither"), "array-like", None],
    "orientation": [StrOptions({"majority", "minority"})],
    "error_rate": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="both"), Mapping, AnswerModel],
    "answer_table": [StrOptions({"auto"}), "boolean"],
}
# And their attributes in a file.
ANSWER_FITTED: Mapping[str, Any] = {"n_classes_": Annotated[int, Between(2, 2**16)], "answer_model_": AnswerModel}


class OrderedClassifier(PairClassifier):
    """A classifier with ``order_``, which says which score of the fit belongs to each class."""

    order_: Indices

    FITTED: ClassVar[Mapping[str, Any]] = {
        **{name: type_ for name, type_ in PairClassifier.FITTED.items() if name != "classes_"},
        **ANSWER_FITTED,
        "order_": Any,
    }

    def _rename(self, order: Indices) -> None:
        self.order_ = self.order_[order]
        self.answer_model_ = renamed(self.answer_model_, order)
        if self.prior_ is not None:
            self.prior_ = self.prior_.mirrored()

    def _restore(self, fitted: container.Header) -> None:
        super()._restore(fitted)
        self.classes_ = class_numbers(self.n_classes_)
        if not np.array_equal(np.sort(self.order_), np.arange(self.n_classes_)):
            raise InputError("the order of the classes does not hold each of them once")


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted linear model and its certificate."""

    coef: Array  # (1, n_features), or (K, n_features) with K > 2 classes
    intercept: Array  # (1,) or (K,)
    objective: float  # minimum reached
    optimality: float  # relative residual, to be compared with ``tol``
    n_iter: int  # iterations
    prior: PriorEstimate | None = None  # the class prior with its interval; None with K > 2 classes
    shares: Array | None = None  # (K,), shares of K > 2 classes
    # further fitted attributes by name: ``alpha_``, ``gamma_``, ``cv_results_`` and the like
    fitted: dict[str, object] = field(default_factory=dict)


class LinearClassifier(PairClassifier):
    """``X @ coef_.T + intercept_``: one row of coefficients for two classes, K for more."""

    coef_: Array
    intercept_: Array
    class_shares_: Array
    tol: float

    FITTED: ClassVar[Mapping[str, Any]] = {
        **PairClassifier.FITTED,
        "coef_": Any,
        "intercept_": Any,
        "objective_": float,
        "optimality_": float,
    }

    @long_work
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        return self._fit(*self._check_rows(X, y, sample_weight))

    @long_work
    @fit_context(prefer_skip_nested_validation=True)
    def _fit_sample(self, X: Rows, y: Codes, sample_weight: Array, moments: Any) -> Self:
        """Fit from rows of which the unlabeled ones are a sample, and the exact moments of all, a PairStatistics."""
        return self._fit(*self._check_rows(X, y, sample_weight), moments)

    def _fit(self, X: Rows, graph: AnswerGraph, moments: Any = None) -> Self:
        """Fit checked rows."""
        raise NotImplementedError

    def decision_function(self, X: MatrixLike) -> Array:
        check_is_fitted(self, msg=f"This %(name)s instance is not fitted yet. {self._pending}")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if len(self.coef_) == 1:
            return np.asarray(X @ self.coef_[0] + self.intercept_[0])
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def to_sklearn(self) -> LogisticRegression:
        """Return the fitted model as an estimator of scikit-learn, for tools that need one, such as ONNX.

        Returns
        -------
        sklearn.linear_model.LogisticRegression
            Fitted, with the same predictions. ``predict_proba`` is the same, too, for models that have it; with loss
            "squared" or "double_hinge" it is only a score that increases with the decision value.
        """
        check_is_fitted(self, msg=f"This %(name)s instance is not fitted yet. {self._pending}")
        model = LogisticRegression()
        for name in ("classes_", "coef_", "intercept_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name).copy())
        model.n_features_in_ = self.n_features_in_
        model.n_iter_ = np.array([self.n_iter_], dtype=np.int32)
        return model

    def _restore(self, fitted: container.Header) -> None:
        super()._restore(fitted)
        # Models for two classes only have no ``n_classes_``.
        n_classes = fitted.get("n_classes_", 2)
        n_scores = 1 if n_classes == 2 else n_classes
        if not np.array_equal(self.classes_, class_numbers(n_classes)):
            raise InputError("classes are not -1 and +1, or numbered from 1")
        if self.coef_.shape != (n_scores, self.n_features_in_) or self.intercept_.shape != (n_scores,):
            raise InputError("coefficients and number of features do not fit together")
        finite(self.coef_)
        finite(self.intercept_)
        if (self.prior_ is None) != (n_classes > 2):
            raise InputError("two classes have a prior, and more of them shares")
        if n_classes > 2 and finite(self.class_shares_).shape != (n_classes,):
            raise InputError("class shares and classes do not fit together")

    def _rename(self, order: Indices) -> None:
        if self.prior_ is not None:
            self.coef_, self.intercept_, self.prior_ = -self.coef_, -self.intercept_, self.prior_.mirrored()
        else:
            self.coef_, self.intercept_ = self.coef_[order], self.intercept_[order]
            self.class_shares_ = self.class_shares_[order]
            self.answer_model_ = renamed(self.answer_model_, order)

    def _forget(self) -> None:
        """Delete the attributes of an earlier fit, except those that the check of new rows has set."""
        for name in set(self.FITTED) - {"n_features_in_", "feature_names_in_", "_learned", "_learned_rows"}:
            self.__dict__.pop(name, None)

    def _accept(self, fit: Fit) -> Self:
        """Set the attributes of a fit in place of those of an earlier one, and warn unless it converged."""
        self._forget()
        self.coef_ = fit.coef
        self.intercept_ = fit.intercept
        self.classes_ = class_numbers(max(len(fit.coef), 2))
        # Models for two classes only have no ``n_classes_``.
        if "n_classes_" in self.FITTED:
            self.n_classes_ = len(self.classes_)
        self.prior_ = fit.prior
        if fit.shares is not None:
            self.class_shares_ = fit.shares
        self.objective_ = fit.objective
        self.optimality_ = fit.optimality
        self.n_iter_ = fit.n_iter
        self.n_features_in_ = fit.coef.shape[1]
        self.__dict__.update(fit.fitted)
        warn_unless(fit.optimality, self.tol, fit.n_iter)
        return self


def rows_in_answers(graph: AnswerGraph) -> Indices:
    """Return the kept rows of points in answers, as numbers of rows of ``y``."""
    return graph.rows[graph.degree[graph.row_point] > 0]


def unseen_proba(estimator: Any, X: MatrixLike, graph: AnswerGraph) -> Array:
    """Return class probabilities by features; of rows in training answers by the models of folds without them."""
    proba = np.array(estimator.predict_proba(X))
    if graph.fingerprint() == getattr(estimator, "_learned", None):
        # They have one order, whichever rows of weight 0 are between them.
        asked = rows_in_answers(graph)
        for of_fold, model in getattr(estimator, "fold_models_", ()):
            rows = asked[np.isin(estimator._learned_rows, of_fold)]
            if len(rows):
                proba[rows] = model.predict_proba(safe_indexing(X, rows))
    return proba


def fold_arrays(estimator: Any, coefs: Sequence[Array], intercepts: Sequence[Array]) -> dict[str, Array]:
    """Return the folds of rows in answers and the linear scores of the models of folds, for a model file."""
    fold = np.full(len(estimator._learned_rows), -1)
    for k, (rows, _) in enumerate(estimator.fold_models_):
        fold[np.isin(estimator._learned_rows, rows)] = k
    return {"fold": fold, "coef": np.vstack(coefs), "intercept": np.vstack(intercepts)}


def folds_from_arrays(
    estimator: Any, parts: Mapping[str, Array], shape: tuple[int, ...], n_scores: int
) -> list[tuple[Indices, Array, Array]]:
    """Return rows in answers, coefficients of a shape and intercepts of each fold, all checked."""
    fold, coef, intercept = parts["fold"], finite(parts["coef"]), finite(parts["intercept"])
    n_folds = len(intercept)
    whole = coef.shape == (n_folds * shape[0], shape[1]) and intercept.shape == (n_folds, n_scores)
    if not whole or fold.shape != estimator._learned_rows.shape or not np.isin(fold, np.arange(-1, n_folds)).all():
        raise InputError("the models of folds do not fit together")
    by_fold = zip(coef.reshape(n_folds, *shape), intercept, strict=True)
    return [(estimator._learned_rows[fold == k], *scores) for k, scores in enumerate(by_fold)]


def posterior_of(model: AnswerModel, proba: Array, graph: AnswerGraph) -> Array:
    """Return class probabilities of rows by their features and the answers about their points."""
    by_row = np.array(proba)
    by_row[graph.rows] = posteriors(model, graph, log_node_probabilities(proba, graph))[graph.row_point]
    return by_row


def in_order(scores: Array, order: Indices) -> Array:
    """Return log odds of +1 (n_rows,), or K scores, with the classes in another order."""
    if scores.ndim > 1:
        return np.asarray(scores[:, order])
    return np.asarray(scores if order[0] == 0 else -scores)


def class_numbers(n_classes: int) -> Codes:
    """Return ``classes_``: -1 and +1, or 1 to K."""
    return np.array([-1, 1]) if n_classes == 2 else np.arange(1, n_classes + 1)


def match_names(log_p: Array, labels: Codes) -> Indices:
    """Return the column that best matches each labelled class; others keep their order."""
    K = log_p.shape[1]
    votes = np.zeros((K, K))
    np.add.at(votes, labels - 1, np.maximum(log_p, -_MAX_VOTE))
    named = np.unique(labels) - 1
    column = np.full(K, -1)
    rows, columns = linear_sum_assignment(-votes[named])
    column[named[rows]] = columns
    column[column < 0] = np.setdiff1d(np.arange(K), columns)
    return column
