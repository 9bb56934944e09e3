"""The linear score that boosting starts from, of the rows or of a kernel map of them.

From a score of 0 answers have no gradient (mirrored models fit them equally well), so the trees are
added to a linear model under the same likelihood. Missing values count as the column's mean,
categories as one-hot columns. All of it is a few arrays, which model files hold;
scikit-learn's SimpleImputer, OneHotEncoder and Nystroem, which draws other points and bounds
eigenvalues in another way, would have to be taken apart for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from sdulearn.base import in_order
from sdulearn.boosting.model_text import Booster
from sdulearn.boosting.rows import TrainingRows
from sdulearn.errors import InputError
from sdulearn.io.typed import finite
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.metrics.cross_validation import fitted
from sdulearn.pairs import read_pairs, rows_of
from sdulearn.progress import steps
from sdulearn.types import Array, Estimator, Indices, Rows

if TYPE_CHECKING:
    from sdulearn.answers.answer_model import AnswerModel
    from sdulearn.base import LinearClassifier
    from sdulearn.boosting.estimators import ScoreClassifier
    from sdulearn.prior import PriorEstimate

# Categories with more values get no one-hot columns, which would outweigh all others; the trees
# still see them.
_MOST_VALUES = 50
_KERNEL_POINTS = 150
# The start need not be the best linear model of all answers: the trees improve on it.
_MOST_ANSWERS = 20_000
MOST_LOGIT = 8.0
# Parameters that the linear start shares with the trees.
_SHARED = ("n_classes", "prior", "prior_strength", "orientation", "error_rate", "answer_table")


class Kernel(NamedTuple):
    """Nystroem's map of an RBF kernel, ``k(x, points) @ weights``, standardised."""

    points: Array  # some of the rows
    weights: Array  # the inverse root of their kernel matrix
    mean: Array  # of each column of the map
    scale: Array

    def transform(self, A: Rows) -> Array:
        """Map standardised rows."""
        return (_rbf(_dense(A), self.points) @ self.weights - self.mean) * self.scale


def _rbf(A: Array, B: Array) -> Array:
    """``exp(-|a - b|^2 / (2 d))`` of standardised rows."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.exp(-np.maximum(squares, 0) / (2 * A.shape[1]))


def _dense(A: Rows) -> Array:
    return np.asarray(A.toarray() if sparse.issparse(A) else A)


# Names of its arrays in a model file.
_KERNEL_PARTS = tuple(f"kernel_{name}" for name in Kernel._fields)


@dataclass(frozen=True)
class Features:
    """The columns of a linear model: numbers with means in the gaps, then one-hot columns, standardised."""

    n_values: Indices  # (n_features,), number of values of a categorical column, 0 for a column of numbers
    mean: Array  # of each column. A sparse matrix is not centred
    scale: Array
    kernel: Kernel | None = None  # applied after that

    @classmethod
    def of(cls, X: Rows, n_values: Indices) -> Features:
        """Compute means and standard deviations of the rows."""
        raw = _expanded(X, n_values)
        centred = not sparse.issparse(raw)
        # A column may hold nothing but gaps.
        with np.errstate(invalid="ignore"):
            scaler = StandardScaler(with_mean=centred).fit(raw)
        mean = np.nan_to_num(scaler.mean_) if centred else np.zeros(raw.shape[1])
        deviation = np.sqrt(np.nan_to_num(scaler.var_))
        # A constant column stays out: its deviation is rounding.
        constant = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        return cls(n_values, mean, np.where(constant, 0.0, 1 / np.where(constant, 1.0, deviation)))

    def with_kernel(self, X: Rows, seed: int) -> Features:
        """Add a kernel map with randomly drawn rows as its points."""
        A = self.standardised(X)
        size = min(_KERNEL_POINTS, A.shape[0])
        points = _dense(A[np.random.default_rng(seed).choice(A.shape[0], size, replace=False)])
        values, vectors = np.linalg.eigh(_rbf(points, points))
        # The symmetric root: in the axes of the eigenvectors a standardised column of noise would
        # weigh as much as the first one.
        root = (vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))) @ vectors.T
        kernel = Kernel(points, root, np.zeros(size), np.ones(size))
        mapped = kernel.transform(A)
        deviation = mapped.std(axis=0)
        scale = 1 / np.where(deviation > 0, deviation, 1.0)
        return replace(self, kernel=kernel._replace(mean=mapped.mean(axis=0), scale=scale))

    def standardised(self, X: Rows) -> Rows:
        """Return the columns before the kernel map."""
        raw = _expanded(X, self.n_values)
        if sparse.issparse(raw):
            return raw.multiply(self.scale).tocsr()
        return (np.where(np.isnan(raw), self.mean, raw) - self.mean) * self.scale

    def transform(self, X: Rows) -> Rows:
        """Return the columns that the linear model sees."""
        A = self.standardised(X)
        return A if self.kernel is None else self.kernel.transform(A)


def _kinds(n_values: Indices) -> tuple[Indices, Indices]:
    """Columns of numbers, and columns of categories with few values."""
    return np.flatnonzero(n_values == 0), np.flatnonzero((n_values > 0) & (n_values <= _MOST_VALUES))


def _expanded(X: Rows, n_values: Indices) -> Rows:
    """Numbers, and a one-hot column for each value of a category: zeros where it is missing."""
    if not n_values.any():
        return X
    numbers, few = _kinds(n_values)
    one_hot = [(X[:, place, None] == np.arange(n_values[place])).astype(np.float64) for place in few]
    return np.column_stack([X[:, numbers], *one_hot])


@dataclass(frozen=True)
class LinearScore:
    """A fitted linear score of raw rows."""

    features: Features
    coef: Array  # (n_columns,) or (n_columns, K)
    intercept: Array  # () or (K,)

    @property
    def has_kernel(self) -> bool:
        """Whether the score is linear in a kernel map."""
        return self.features.kernel is not None

    def parts(self) -> dict[str, Array]:
        """Return all of it as named arrays."""
        arrays = {"mean": self.features.mean, "scale": self.features.scale, "coef": self.coef}
        kernel = dict(zip(_KERNEL_PARTS, self.features.kernel or (), strict=False))
        return {**arrays, "intercept": np.atleast_1d(self.intercept), **kernel}

    @classmethod
    def from_parts(cls, parts: dict[str, Array], n_values: Indices, n_classes: int) -> LinearScore:
        """Build it from the arrays of :meth:`parts`, after a check of their shapes."""
        arrays = {name: finite(array) for name, array in parts.items()}
        numbers, few = _kinds(n_values)
        width = len(numbers) + int(n_values[few].sum())
        shapes: dict[str, tuple[int, ...]] = {"mean": (width,), "scale": (width,)}
        if any(name.startswith("kernel_") for name in arrays):
            n_points = len(arrays["kernel_points"])
            shapes |= {"kernel_points": (n_points, width), "kernel_weights": (n_points, n_points)}
            shapes |= {"kernel_mean": (n_points,), "kernel_scale": (n_points,)}
            width = n_points
        shapes["coef"] = (width,) if n_classes == 2 else (width, n_classes)
        shapes["intercept"] = (1,) if n_classes == 2 else (n_classes,)
        if {name: array.shape for name, array in arrays.items()} != shapes:
            raise InputError("the parts of the linear score do not fit together")
        kernel = Kernel(*(arrays[name] for name in _KERNEL_PARTS)) if "kernel_points" in arrays else None
        intercept = arrays["intercept"] if n_classes > 2 else np.array(arrays["intercept"].item())
        return cls(Features(n_values, arrays["mean"], arrays["scale"], kernel), arrays["coef"], intercept)

    @classmethod
    def of(cls, features: Features, model: LinearClassifier, factor: float = 1.0) -> LinearScore:
        """Return the score of a fitted linear model of the features."""
        if len(model.coef_) == 1:
            return cls(features, factor * model.coef_[0], factor * model.intercept_[0])
        return cls(features, factor * model.coef_.T, factor * model.intercept_)

    def decide(self, X: Rows) -> Array:
        """Return the score of each row."""
        return bounded(np.asarray(self.features.transform(X) @ self.coef + self.intercept))

    def named_like(self, X: Rows, reference: Array) -> LinearScore:
        """Name the classes as reference scores of the same rows do."""
        order = order_like(self.decide(X), reference)
        if reference.ndim == 1:
            return self if order[0] == 0 else replace(self, coef=-self.coef, intercept=-self.intercept)
        return replace(self, coef=self.coef[:, order], intercept=self.intercept[order])

    def contributions(self, X: Rows) -> Array:
        """Return what each feature adds to each score (n_rows, n_features, n_scores), relative to its mean."""
        A = _dense(self.features.standardised(X))
        by_class = self.coef if self.coef.ndim > 1 else self.coef[:, None]
        kernel = self.features.kernel
        if kernel is None:
            by_column = (A - A.mean(axis=0))[:, :, None] * by_class
        else:
            by_column = column_changes(lambda B: kernel.transform(B) @ by_class, A, np.zeros(A.shape[1]))
        n_values = self.features.n_values
        if not n_values.any():
            return by_column
        # Sum over the one-hot columns of each category.
        numbers, few = _kinds(n_values)
        origin = np.concatenate([numbers, np.repeat(few, n_values[few])])
        by_feature = np.zeros((len(n_values), len(A), by_class.shape[1]))
        np.add.at(by_feature, origin, by_column.swapaxes(0, 1))
        return by_feature.swapaxes(0, 1)


@dataclass(frozen=True)
class ModelScore:
    """The score of another estimator, such as a network."""

    model: Estimator
    order: Indices  # of its classes

    has_kernel = False

    def decide(self, X: Rows) -> Array:
        """Return the score of each row."""
        return in_order(bounded(self.model.decision_function(X)), self.order)

    def contributions(self, X: Rows) -> Array:
        """As :meth:`LinearScore.contributions`, by setting each column to its mean."""
        dense = _dense(X)
        return column_changes(lambda A: self.decide(A).reshape(len(A), -1), dense, dense.mean(axis=0))

    @property
    def features(self) -> Features:
        """Refuse to be written to a file: it could not hold the estimator."""
        raise InputError(
            f"The model that was chosen is a {type(self.model).__name__}. Save it alone: `best_estimator_.save(path)`."
        )

    def parts(self) -> dict[str, Array]:
        return {"mean": self.features.mean}


def order_like(scores: Array, reference: Array) -> Indices:
    """Which class of some scores each class of the reference scores is."""
    if scores.ndim == 1:
        return np.array([0, 1] if scores @ reference >= 0 else [1, 0])
    return np.asarray(linear_sum_assignment(-softmax(reference, axis=1).T @ softmax(scores, axis=1))[1])


def bounded(scores: Array) -> Array:
    """Bound scores: no class is less likely than ``exp(-8)`` times the likeliest."""
    # Far from other rows a model is certain, and sometimes wrong: then one row would outweigh all
    # others in the held-out likelihood, and no tree could correct it.
    if scores.ndim == 1:
        return np.clip(scores, -MOST_LOGIT, MOST_LOGIT)
    return np.maximum(scores, scores.max(axis=1, keepdims=True) - MOST_LOGIT)


def column_changes(score: Callable[[Array], Array], A: Array, mean: Array) -> Array:
    """Change of the scores (n_rows, n_scores) where each column is set to its mean."""
    whole = score(A)
    changes = np.empty((*A.shape, whole.shape[1]))
    for j in range(A.shape[1]):
        without = A.copy()
        without[:, j] = mean[j]
        changes[:, j] = whole - score(without)
    return changes


@dataclass(frozen=True)
class ScoreFit:
    """A score fitted to all answers, the same without each fold, and the trees that were added to them."""

    score: LinearScore | ModelScore  # of all answers
    prior: PriorEstimate | None  # as reported; None with more than two classes
    answer_model: AnswerModel
    pull: float | ArrayLike | None  # the prior, or class shares, that the mean prediction is pulled to
    folds: Sequence[LinearScore | ModelScore]  # fitted without the points of each fold
    by_fold: Array  # (n_folds, n_points), scores of all points by the model of each fold, with its trees
    model: Estimator = None  # of all answers; a linear one by the columns of the features
    boosters: Sequence[Booster] = ()  # one for each fold
    curve: Sequence[float] = (0.0,)  # held-out log likelihood after each round of trees, the first without any

    def held_out(self, fold: Indices) -> Array:
        """Return the score of each point by the model without its fold; of a hub, in no fold, the mean."""
        scores = self.by_fold[np.maximum(fold, 0), np.arange(len(fold))]
        scores[fold < 0] = self.by_fold[:, fold < 0].mean(axis=0)
        return scores


def fit_linear(parameters: ScoreClassifier, rows: TrainingRows, seed: int, with_kernel: bool = False) -> ScoreFit:
    """Choose the penalty by all answers, or by a part of very many, then fit without each fold."""
    features = Features.of(rows.X, rows.n_values)
    if with_kernel:
        features = features.with_kernel(rows.points, seed)
    some = np.arange(len(rows.y))
    if rows.graph.n_answers > _MOST_ANSWERS:
        pairs = read_pairs(rows.y)
        answers = np.random.default_rng(seed).choice(len(pairs.ends), _MOST_ANSWERS, replace=False)
        some = np.sort(np.concatenate([pairs.ends[answers].ravel(), pairs.unlabeled]))
    A = features.transform(rows.X)
    options = {name: getattr(parameters, name) for name in _SHARED}
    model = PairLogisticRegressionCV(cv=rows.splitter, **options)
    model.fit(A[some], rows.y[some], sample_weight=rows_of(rows.weight, some))
    score = LinearScore.of(features, model)
    folds = []
    if model.fold_models_ and len(some) == len(rows.y):
        folds = [LinearScore.of(features, fold) for _, fold in model.fold_models_]
    else:
        reference = score.decide(rows.X)
        options["error_rate"] = model.answer_model_
        single = PairLogisticRegression(model.alpha_, covariance_power=model.covariance_power_, **options)
        scale = 1 / getattr(model, "temperature_", 1.0)
        for train in steps(rows.trains, "folds"):
            kept = np.intersect1d(train, some)
            fold = fitted(single, A[kept], rows.y[kept], rows_of(rows.weight, kept))
            folds.append(LinearScore.of(features, fold, scale).named_like(rows.X, reference))
    scores = np.array([fold.decide(rows.points) for fold in folds])
    return ScoreFit(score, model.prior_, model.answer_model_, _pull(model, rows), folds, scores, model)


def fit_other(estimator: Estimator, rows: TrainingRows) -> ScoreFit:
    """Fit another estimator to all answers and without each fold."""
    model = clone(estimator).fit(rows.X, rows.y, sample_weight=rows.weight)
    whole = ModelScore(model, np.arange(model.n_classes_))
    reference = whole.decide(rows.points)
    folds = []
    for train in steps(rows.trains, "folds"):
        fold = replace(whole, model=fitted(estimator, rows.X[train], rows.y[train], rows_of(rows.weight, train)))
        folds.append(replace(fold, order=order_like(fold.decide(rows.points), reference)))
    scores = np.array([fold.decide(rows.points) for fold in folds])
    return ScoreFit(whole, model.prior_, model.answer_model_, None, folds, scores, model)


def constant_start(rows: TrainingRows, n_classes: int, answer_model: AnswerModel) -> ScoreFit:
    """Start all folds and points from the log shares of the classes among the labels."""
    features = Features.of(rows.X, rows.n_values)
    counts = np.bincount(rows.graph.labels, minlength=n_classes + 1)[1:] + 1
    shares = np.log(counts / counts.sum())
    score = LinearScore(features, np.zeros((len(features.mean), n_classes)), shares)
    n_folds = len(rows.trains)
    scores = np.broadcast_to(shares, (n_folds, rows.graph.n_points, n_classes))
    return ScoreFit(score, None, answer_model, None, [score] * n_folds, scores)


def _pull(model: PairLogisticRegressionCV, rows: TrainingRows) -> float | ArrayLike | None:
    """The prior that pulls the linear model: the one given, or that of the counts."""
    if model.prior is not None:
        return float(model.prior) if model.n_classes == 2 else np.asarray(model.prior)
    estimate = model.prior_
    # An estimate pulls nothing beside labels, which are of chosen points, or answers that may be
    # wrong.
    if estimate is None or rows.graph.labels.any() or not model.answer_model_.certain:
        return None
    return estimate.pull
