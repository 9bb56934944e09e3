"""Where boosting starts: a linear score of the rows, or of a kernel map of them.

From a score of 0 answers lead nowhere (mirrored models fit them alike), so the trees add to a linear model
under the same likelihood. Missing values count as the column's mean, categories as one-hot columns. All of it is a
few arrays, which model files and ONNX hold; scikit-learn's SimpleImputer, OneHotEncoder and Nystroem, which draws other
points and bounds eigenvalues in another way, would have to be taken apart for that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils.sparsefuncs import mean_variance_axis

from sdulearn.base import in_order
from sdulearn.boosting.rows import TrainingRows
from sdulearn.errors import InputError
from sdulearn.io.typed import finite
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.metrics.cross_validation import fitted
from sdulearn.pairs import rows_of
from sdulearn.progress import steps
from sdulearn.types import Array, Estimator, Indices, Rows

if TYPE_CHECKING:
    from sdulearn.answers.answer_model import AnswerModel
    from sdulearn.base import LinearClassifier
    from sdulearn.boosting.estimators import ScoreClassifier
    from sdulearn.prior import PriorEstimate

# One-hot columns of a category with more values would outweigh all others; the trees still see it.
_MOST_VALUES = 50
_KERNEL_POINTS = 150
MOST_LOGIT = 8.0
# Parameters that the linear start shares with the trees.
_SHARED = ("n_classes", "prior", "prior_strength", "orientation", "error_rate", "answer_table")
# Some of the rows, the inverse root of the kernel matrix of these, mean and scale of each column that comes out.
Kernel = tuple[Array, Array, Array, Array]
_KERNEL_PARTS = ("kernel_points", "kernel_weights", "kernel_mean", "kernel_scale")


@dataclass(frozen=True)
class Features:
    """What a linear model sees: numbers, means in the gaps, then one-hot columns, standardised."""

    n_values: Indices  # (n_features,), number of values of a categorical column, 0 for a column of numbers
    mean: Array  # of each column that comes out. A sparse matrix is not centred
    scale: Array
    kernel: Kernel | None = None  # Nystroem's map after it: ``k(x, points) @ weights``

    @classmethod
    def of(cls, X: Rows, n_values: Indices) -> Features:
        """Means and standard deviations of the rows."""
        raw = _expanded(X, n_values)
        if sparse.issparse(raw):
            deviation = np.sqrt(mean_variance_axis(raw, axis=0)[1])
            mean = np.zeros_like(deviation)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a column of gaps alone
                mean = np.nan_to_num(np.nanmean(raw, axis=0))
                deviation = np.nan_to_num(np.nanstd(raw, axis=0))
        # A constant column stays out: its deviation is rounding.
        constant = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        return cls(n_values, mean, np.where(constant, 0.0, 1 / np.where(constant, 1.0, deviation)))

    def with_kernel(self, X: Rows, seed: int) -> Features:
        """A map by randomly drawn rows after it."""
        A = self.standardised(X)
        size = min(_KERNEL_POINTS, A.shape[0])
        points = A[np.random.default_rng(seed).choice(A.shape[0], size, replace=False)]
        points = points.toarray() if sparse.issparse(points) else points
        values, vectors = np.linalg.eigh(_rbf(points, points))
        # The symmetric root: in the axes of the eigenvectors a standardised column of noise would weigh as much as
        # the first one.
        root = (vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))) @ vectors.T
        mapped = kernel_map((points, root, np.zeros(size), np.ones(size)), A)
        deviation = mapped.std(axis=0)
        scale = 1 / np.where(deviation > 0, deviation, 1.0)
        return replace(self, kernel=(points, root, mapped.mean(axis=0), scale))

    def standardised(self, X: Rows) -> Rows:
        """The columns before a kernel map."""
        raw = _expanded(X, self.n_values)
        if sparse.issparse(raw):
            return raw.multiply(self.scale).tocsr()
        return (np.where(np.isnan(raw), self.mean, raw) - self.mean) * self.scale

    def transform(self, X: Rows) -> Rows:
        """The columns that the linear model sees."""
        A = self.standardised(X)
        return A if self.kernel is None else kernel_map(self.kernel, A)

    def by_feature(self, changes: Array) -> Array:
        """Changes by column (the second axis), added up by the feature that a column comes from."""
        if not self.n_values.any():
            return changes
        numbers, few = _kinds(self.n_values)
        origin = np.concatenate([numbers, np.repeat(few, self.n_values[few])])
        total = np.zeros((len(changes), len(self.n_values), *changes.shape[2:]))
        np.add.at(total.swapaxes(0, 1), origin, changes.swapaxes(0, 1))
        return total


def _kinds(n_values: Indices) -> tuple[Indices, Indices]:
    """Columns of numbers, and those of categories with few values."""
    return np.flatnonzero(n_values == 0), np.flatnonzero((n_values > 0) & (n_values <= _MOST_VALUES))


def _expanded(X: Rows, n_values: Indices) -> Rows:
    """Numbers, and one column for each value of a category: zeros where it is missing."""
    if not n_values.any():
        return X
    numbers, few = _kinds(n_values)
    one_hot = [(X[:, place, None] == np.arange(n_values[place])).astype(np.float64) for place in few]
    return np.column_stack([X[:, numbers], *one_hot])


def kernel_map(kernel: Kernel, A: Rows) -> Array:
    """The kernel map of standardised rows."""
    points, weights, mean, scale = kernel
    dense = A.toarray() if sparse.issparse(A) else A
    return (_rbf(dense, points) @ weights - mean) * scale


def _rbf(A: Array, B: Array) -> Array:
    """``exp(-|a - b|^2 / (2 d))`` of standardised rows."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.exp(-np.maximum(squares, 0) / (2 * A.shape[1]))


@dataclass(frozen=True)
class LinearScore:
    """A fitted linear score of raw rows."""

    features: Features
    coef: Array  # (n_columns,) or (n_columns, K), weights
    intercept: Array  # () or (K,), intercept

    @property
    def has_kernel(self) -> bool:
        """Whether the score is one of a kernel map."""
        return self.features.kernel is not None

    def parts(self) -> dict[str, Array]:
        """All of it as arrays, by name."""
        arrays = {"mean": self.features.mean, "scale": self.features.scale, "coef": self.coef}
        kernel = dict(zip(_KERNEL_PARTS, self.features.kernel or (), strict=False))
        return {**arrays, "intercept": np.atleast_1d(self.intercept), **kernel}

    @classmethod
    def from_parts(cls, parts: dict[str, Array], n_values: Indices, n_classes: int) -> LinearScore:
        """From the arrays of :meth:`parts`, their shapes checked before they meet."""
        found = {name: finite(array) for name, array in parts.items()}
        numbers, few = _kinds(n_values)
        width = len(numbers) + int(n_values[few].sum())
        shapes: dict[str, tuple[int, ...]] = {"mean": (width,), "scale": (width,)}
        if any(name.startswith("kernel_") for name in found):
            n_points = len(found["kernel_points"])
            shapes |= {"kernel_points": (n_points, width), "kernel_weights": (n_points, n_points)}
            shapes |= {"kernel_mean": (n_points,), "kernel_scale": (n_points,)}
            width = n_points
        shapes["coef"] = (width,) if n_classes == 2 else (width, n_classes)
        shapes["intercept"] = (1,) if n_classes == 2 else (n_classes,)
        if {name: array.shape for name, array in found.items()} != shapes:
            raise InputError("the parts of the linear score do not fit together")
        kernel = tuple(found[name] for name in _KERNEL_PARTS) if "kernel_points" in found else None
        intercept = found["intercept"] if n_classes > 2 else np.array(found["intercept"].item())
        features = Features(n_values, found["mean"], found["scale"], kernel)  # type: ignore[arg-type]
        return cls(features, found["coef"], intercept)

    @classmethod
    def of(cls, features: Features, model: LinearClassifier, factor: float = 1.0) -> LinearScore:
        """The score of a fitted linear model of the features."""
        if len(model.coef_) == 1:
            return cls(features, factor * model.coef_[0], factor * model.intercept_[0])
        return cls(features, factor * model.coef_.T, factor * model.intercept_)

    def decide(self, X: Rows) -> Array:
        return self.of_columns(self.features.transform(X))

    def of_columns(self, A: Rows) -> Array:
        """The score of each row by the columns that the linear model sees."""
        return bounded(np.asarray(A @ self.coef + self.intercept))

    def named_like(self, A: Rows, reference: Array) -> LinearScore:
        """The classes named as in reference scores of the same columns."""
        order = order_like(self.of_columns(A), reference)
        if reference.ndim == 1:
            return self if order[0] == 0 else replace(self, coef=-self.coef, intercept=-self.intercept)
        return replace(self, coef=self.coef[:, order], intercept=self.intercept[order])

    def contributions(self, X: Rows) -> Array:
        """What each feature adds to each score (n_rows, n_features, n_scores), beside its mean."""
        A = self.features.standardised(X)
        A = A.toarray() if sparse.issparse(A) else A
        by_class = self.coef if self.coef.ndim > 1 else self.coef[:, None]
        if self.features.kernel is None:
            changes = (A - A.mean(axis=0))[:, :, None] * by_class
        else:
            kernel = self.features.kernel
            changes = column_changes(lambda B: kernel_map(kernel, B) @ by_class, A, np.zeros(A.shape[1]))
        return self.features.by_feature(changes)


@dataclass(frozen=True)
class ModelScore:
    """The score of another estimator, such as a network."""

    model: Estimator
    order: Indices  # of its classes

    has_kernel = False

    def decide(self, X: Rows) -> Array:
        """The score of each row, bounded as a linear one."""
        return in_order(bounded(self.model.decision_function(X)), self.order)

    def contributions(self, X: Rows) -> Array:
        """What setting a column to its mean takes from scores, (n_rows, n_features, n_scores)."""
        dense = X.toarray() if sparse.issparse(X) else X
        return column_changes(lambda A: self.decide(A).reshape(len(A), -1), dense, dense.mean(axis=0))

    @property
    def features(self) -> Features:
        """Nothing that a file of linear scores and trees could hold."""
        raise InputError(
            f"The model that was chosen is a {type(self.model).__name__}. Save it alone: `best_estimator_.save(path)`."
        )

    def parts(self) -> dict[str, Array]:
        return {"mean": self.features.mean}


def order_like(scores: Array, reference: Array) -> Indices:
    """Which classes of some scores the classes of others are."""
    if scores.ndim == 1:
        return np.array([0, 1] if scores @ reference >= 0 else [1, 0])
    return np.asarray(linear_sum_assignment(-softmax(reference, axis=1).T @ softmax(scores, axis=1))[1])


def bounded(scores: Array) -> Array:
    """No class is less likely than ``exp(-8)`` times the likeliest."""
    # Far from other rows a model is certain, and sometimes wrong: then one row would outweigh all others in
    # the held-out likelihood, and no tree could make it good.
    if scores.ndim == 1:
        return np.clip(scores, -MOST_LOGIT, MOST_LOGIT)
    return np.maximum(scores, scores.max(axis=1, keepdims=True) - MOST_LOGIT)


def column_changes(score: Callable[[Array], Array], A: Array, mean: Array) -> Array:
    """What setting each column to its mean takes from the scores (n_rows, n_scores)."""
    whole = score(A)
    changes = np.empty((*A.shape, whole.shape[1]))
    for j in range(A.shape[1]):
        without = A.copy()
        without[:, j] = mean[j]
        changes[:, j] = whole - score(without)
    return changes


@dataclass(frozen=True)
class LinearFits:
    """The model of all answers that trees start from, and the scores of the models of each fold."""

    score: LinearScore | ModelScore  # of all answers
    prior: PriorEstimate | None  # as reported; None with more than two classes
    answer_model: AnswerModel  # how answers go wrong, given or estimated
    pull: float | ArrayLike | None  # the prior, or shares, that the mean prediction is pulled to, if any
    folds: Sequence[LinearScore | ModelScore]  # of the models that were fitted without the points of each fold
    by_fold: Array  # (n_folds, n_points), scores of all points by the model of each fold
    model: Estimator = None  # of all answers; a linear one by the columns of the features


def fit_linear(parameters: ScoreClassifier, rows: TrainingRows, seed: int, with_kernel: bool = False) -> LinearFits:
    """Choose the penalty by all answers, or by a part of very many, then fit without each fold."""
    features = Features.of(rows.X, rows.n_values)
    if with_kernel:
        features = features.with_kernel(rows.points, seed)
    some = rows.start_rows(seed)
    A = features.transform(rows.X)
    options = {name: getattr(parameters, name) for name in _SHARED}
    model = PairLogisticRegressionCV(cv=rows.splitter, **options)
    model.fit(A[some], rows.y[some], sample_weight=rows_of(rows.weight, some))
    score = LinearScore.of(features, model)
    folds = []
    if model.fold_models_ and len(some) == len(rows.y):
        folds = [LinearScore.of(features, fold) for _, fold in model.fold_models_]
    else:
        reference = score.of_columns(A)
        options["error_rate"] = model.answer_model_
        single = PairLogisticRegression(model.alpha_, covariance_power=model.covariance_power_, **options)
        scale = 1 / getattr(model, "temperature_", 1.0)
        for train in steps(rows.trains, "folds"):
            fold = _without_fold(single, A, rows, np.intersect1d(train, some))
            folds.append(LinearScore.of(features, fold, scale).named_like(A, reference))
    scores = np.array([fold.of_columns(A)[rows.first_row] for fold in folds])
    return LinearFits(score, model.prior_, model.answer_model_, _pull(model, rows), folds, scores, model)


def _without_fold(estimator: Estimator, A: Rows, rows: TrainingRows, kept: Indices) -> Estimator:
    """A copy fitted to some rows."""
    return fitted(estimator, A[kept], rows.y[kept], rows_of(rows.weight, kept))


def fit_other(estimator: Estimator, rows: TrainingRows) -> LinearFits:
    """Another estimator, fitted to all answers and without each fold."""
    model = clone(estimator).fit(rows.X, rows.y, sample_weight=rows.weight)
    whole = ModelScore(model, np.arange(model.n_classes_))
    reference = whole.decide(rows.points)
    folds = []
    for train in steps(rows.trains, "folds"):
        fold = replace(whole, model=_without_fold(estimator, rows.X, rows, train))
        folds.append(replace(fold, order=order_like(fold.decide(rows.points), reference)))
    scores = np.array([fold.decide(rows.points) for fold in folds])
    return LinearFits(whole, model.prior_, model.answer_model_, None, folds, scores, model)


def constant_start(rows: TrainingRows, n_classes: int, answer_model: AnswerModel) -> LinearFits:
    """The log shares of the classes among the labels, for all folds and points alike."""
    features = Features.of(rows.X, rows.n_values)
    counts = np.bincount(rows.graph.labels, minlength=n_classes + 1)[1:] + 1
    shares = np.log(counts / counts.sum())
    score = LinearScore(features, np.zeros((len(features.mean), n_classes)), shares)
    n_folds = len(rows.trains)
    scores = np.broadcast_to(shares, (n_folds, rows.graph.n_points, n_classes))
    return LinearFits(score, None, answer_model, None, [score] * n_folds, scores)


def _pull(model: PairLogisticRegressionCV, rows: TrainingRows) -> float | ArrayLike | None:
    """The prior in the objective of the linear model: the one given, or that of the counts."""
    if model.prior is not None:
        return float(model.prior) if model.n_classes == 2 else np.asarray(model.prior)
    estimate = model.prior_
    # Beside labels, which are of chosen points, and wrong answers an estimate pulls nothing.
    if estimate is None or rows.graph.labels.any() or not model.answer_model_.certain:
        return None
    return estimate.pull
