"""Where boosting starts: a linear score of the rows, or of a kernel map of them.

From a score of 0 answers lead nowhere (mirrored models fit them alike), so the trees add to a linear model
under the same likelihood. Missing values count as the column's mean, categories as one-hot columns.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from sdulearn.answers.answer_model import AnswerModel, ErrorRateParameter
from sdulearn.boosting.objective import AnswerLoss
from sdulearn.boosting.table import one_hot
from sdulearn.errors import InputError, OrientationWarning, SdulearnWarning
from sdulearn.io.typed import finite
from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.prior import PriorEstimate
from sdulearn.types import Array, Codes, Indices, Rows

# One-hot columns of a category with more values would outweigh all others; the trees still see it.
_MOST_VALUES = 50
_KERNEL_POINTS = 150
MOST_LOGIT = 8.0


class Parameters(Protocol):
    """What the start takes from its estimator."""

    n_classes: int
    error_rate: ErrorRateParameter
    prior: float | None
    prior_strength: float
    orientation: str


@dataclass(frozen=True)
class Design:
    """Rows, standardised: numbers with their means in the gaps, then one-hot columns."""

    values: Indices  # (n_features,), number of values of a categorical column, 0 for a column of numbers
    mean: Array  # of each column that comes out. A sparse matrix is not centred
    scale: Array

    @classmethod
    def of(cls, X: Rows, n_values: Indices) -> Design:
        """Means and standard deviations of the rows."""
        raw = _expanded(X, n_values)
        if sparse.issparse(raw):
            mean = np.asarray(raw.mean(axis=0)).ravel()
            square = np.asarray(raw.multiply(raw).mean(axis=0)).ravel()
            deviation = np.sqrt(np.maximum(square - mean**2, 0))
            mean = np.zeros_like(mean)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a column of gaps alone
                mean = np.nan_to_num(np.nanmean(raw, axis=0))
                deviation = np.nan_to_num(np.nanstd(raw, axis=0))
        # A constant column stays out: its deviation is rounding.
        constant = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        return cls(n_values, mean, np.where(constant, 0.0, 1 / np.where(constant, 1.0, deviation)))

    def transform(self, X: Rows) -> Rows:
        """The columns that the linear model sees."""
        raw = _expanded(X, self.values)
        if sparse.issparse(raw):
            return raw.multiply(self.scale).tocsr()
        return (np.where(np.isnan(raw), self.mean, raw) - self.mean) * self.scale

    def by_feature(self, columns: Array) -> Array:
        """Columns added up by the feature that they come from."""
        numbers, few = _kinds(self.values)
        origin = np.concatenate([numbers, np.repeat(few, self.values[few])])
        total = np.zeros((len(columns), len(self.values)))
        np.add.at(total.T, origin, columns.T)
        return total


def _kinds(n_values: Indices) -> tuple[Indices, Indices]:
    """Columns of numbers, and those of categories with few values."""
    return np.flatnonzero(n_values == 0), np.flatnonzero((n_values > 0) & (n_values <= _MOST_VALUES))


def _expanded(X: Rows, n_values: Indices) -> Rows:
    numbers, few = _kinds(n_values)
    if len(numbers) == X.shape[1]:
        return X
    return np.column_stack([X[:, numbers], *(one_hot(X[:, place], n_values[place]) for place in few)])


@dataclass(frozen=True)
class Kernel:
    """Nystroem's map of an RBF kernel: ``k(x, points) @ weights``, standardised."""

    points: Array  # (n_components, n_columns), some of the rows
    weights: Array  # (n_components, n_components), inverse root of the kernel matrix of these
    mean: Array  # (n_components,), of each column that comes out
    scale: Array

    @classmethod
    def of(cls, A: Rows, seed: int) -> Kernel:
        """A map by randomly drawn rows."""
        size = min(_KERNEL_POINTS, A.shape[0])
        points = A[np.random.default_rng(seed).choice(A.shape[0], size, replace=False)]
        points = points.toarray() if sparse.issparse(points) else points
        values, vectors = np.linalg.eigh(_rbf(points, points))
        # The symmetric root: in the axes of the eigenvectors a standardised column of noise would weigh as much as
        # the first one.
        root = (vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))) @ vectors.T
        plain = cls(points, root, np.zeros(size), np.ones(size))
        features = plain.transform(A)
        deviation = features.std(axis=0)
        return cls(points, plain.weights, features.mean(axis=0), 1 / np.where(deviation > 0, deviation, 1.0))

    def transform(self, A: Rows) -> Array:
        """The columns that the linear model sees."""
        dense = A.toarray() if sparse.issparse(A) else A
        return (_rbf(dense, self.points) @ self.weights - self.mean) * self.scale


def _rbf(A: Array, B: Array) -> Array:
    """``exp(-|a - b|^2 / (2 d))`` of standardised rows."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.exp(-np.maximum(squares, 0) / (2 * A.shape[1]))


@dataclass(frozen=True)
class LinearScore:
    """A fitted linear score of raw rows."""

    design: Design  # gaps, scales and categories
    kernel: Kernel | None  # A map after it
    coef: Array  # (n_columns,), weights
    intercept: Array  # (), intercept

    def parts(self) -> dict[str, Array]:
        """All of it as arrays, by name."""
        own = {"mean": self.design.mean, "scale": self.design.scale, "coef": self.coef}
        own["intercept"] = np.atleast_1d(self.intercept)
        if self.kernel is None:
            return own
        kernel = {f"kernel_{field.name}": getattr(self.kernel, field.name) for field in fields(Kernel)}
        return {**own, **kernel}

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
        kernel = None
        if "kernel_points" in found:
            kernel = Kernel(**{field.name: found[f"kernel_{field.name}"] for field in fields(Kernel)})
        intercept = found["intercept"] if n_classes > 2 else np.array(found["intercept"].item())
        return cls(Design(n_values, found["mean"], found["scale"]), kernel, found["coef"], intercept)

    def columns(self, X: Rows) -> Rows:
        """What the linear model sees of the rows."""
        A = self.design.transform(X)
        return A if self.kernel is None else self.kernel.transform(A)

    def decide(self, X: Rows) -> Array:
        """The score of each row."""
        return bounded(np.asarray(self.columns(X) @ self.coef + self.intercept))

    def contributions(self, X: Rows) -> Array:
        """What each feature adds to each score, beside its mean; of a kernel map, what setting it to its mean takes.

        Shape (n_rows, n_features, n_scores): one score with two classes.
        """
        A = self.design.transform(X)
        A = A.toarray() if sparse.issparse(A) else A
        by_class = self.coef if self.coef.ndim > 1 else self.coef[:, None]
        if self.kernel is None:
            A = A - A.mean(axis=0)
            return np.stack([self.design.by_feature(A * coef) for coef in by_class.T], axis=2)
        return np.stack([self._changes(self.kernel, A, coef) for coef in by_class.T], axis=2)

    def _changes(self, kernel: Kernel, A: Array, coef: Array) -> Array:
        whole = kernel.transform(A) @ coef
        changes = np.empty_like(A)
        for j in range(A.shape[1]):
            without = A.copy()
            without[:, j] = 0.0
            changes[:, j] = whole - kernel.transform(without) @ coef
        return self.design.by_feature(changes)


@dataclass(frozen=True)
class LinearFits:
    """The linear model of all answers, and the scores of the models of each fold."""

    score: LinearScore  # of all answers
    prior: PriorEstimate | None  # as reported; None with more than two classes
    answer_model: AnswerModel  # how answers go wrong, given or estimated
    pull: float | None  # the prior that the mean prediction is pulled to, if any
    all_rows: Array  # (n_rows,), scores by the model of all answers
    by_fold: Array  # (n_folds, n_rows), scores of all rows by the model that was fitted without the points of a fold

    def named(self, loss: AnswerLoss, first_row: Indices) -> LinearFits:
        """With two classes named as labels in ``y`` say."""
        z = self.all_rows[first_row]
        if self.prior is None or loss.value(-z) <= loss.value(z):
            return self
        return replace(
            self,
            score=replace(self.score, coef=-self.score.coef, intercept=-self.score.intercept),
            prior=self.prior.mirrored(),
            pull=None if self.pull is None else 1 - self.pull,
            all_rows=-self.all_rows,
            by_fold=-self.by_fold,
        )


def fit_linear(
    parameters: Parameters,
    X: Rows,
    y: Codes,
    weight: Array | None,
    some: Indices,
    trains: list[Indices],
    design: Design,
    kernel: Kernel | None,
    has_labels: bool,
) -> LinearFits:
    """Choose the penalty by all answers, then fit without each fold; ``some`` are the rows to fit to.

    Labels in ``y`` name the classes later, so no warning that the names are arbitrary.
    """
    A = design.transform(X)
    if kernel is not None:
        A = kernel.transform(A)
    options: dict[str, Any] = {
        "n_classes": parameters.n_classes,
        "prior": parameters.prior,
        "prior_strength": parameters.prior_strength,
        "orientation": parameters.orientation,
    }
    weight = np.ones(len(y)) if weight is None else weight
    with warnings.catch_warnings():
        if has_labels:
            warnings.simplefilter("ignore", OrientationWarning)
        model = PairLogisticRegressionCV(error_rate=parameters.error_rate, cv=len(trains), **options)
        model.fit(A[some], y[some], sample_weight=weight[some])
    reference = bounded(model.decision_function(A))
    rates = model.answer_model_.rates
    single = PairLogisticRegression(model.alpha_, covariance_power=model.covariance_power_, error_rate=rates, **options)
    calm = 1 / getattr(model, "temperature_", 1.0)
    scores = np.empty((len(trains), *reference.shape))
    for k, train in enumerate(trains):
        kept = np.intersect1d(train, some)
        z = bounded(calm * _fit_quietly(single, A[kept], y[kept], weight[kept]).decision_function(A))
        scores[k] = _named_alike(z, reference)
    if parameters.n_classes == 2:
        score = LinearScore(design, kernel, model.coef_[0], model.intercept_[0])
    else:
        score = LinearScore(design, kernel, model.coef_.T, model.intercept_)
    return LinearFits(score, model.prior_, model.answer_model_, _pull(model), reference, scores)


def constant_start(
    design: Design, labels: Codes, n_classes: int, answer_model: AnswerModel, shape: tuple[int, int]
) -> LinearFits:
    """The log shares of the classes among the labels, for all folds and rows (``shape``) alike."""
    counts = np.bincount(labels, minlength=n_classes + 1)[1:] + 1
    shares = np.log(counts / counts.sum())
    score = LinearScore(design, None, np.zeros((len(design.mean), n_classes)), shares)
    scores = np.broadcast_to(shares, (*shape, n_classes))
    return LinearFits(score, None, answer_model, None, scores[0], scores)


def bounded(scores: Array) -> Array:
    """Scores of a line with no class less likely than ``exp(-8)`` times the likeliest.

    Far from the other rows a line is certain, and sometimes wrong: then one row would outweigh all others in the
    held-out likelihood, and no tree could make it good.
    """
    if scores.ndim == 1:
        return np.clip(scores, -MOST_LOGIT, MOST_LOGIT)
    return np.maximum(scores, scores.max(axis=1, keepdims=True) - MOST_LOGIT)


def _named_alike(z: Array, reference: Array) -> Array:
    """Each fold may name the classes in its own way: turned to the reference."""
    if z.ndim == 1:
        return z if z @ reference >= 0 else -z
    overlap = softmax(reference, axis=1).T @ softmax(z, axis=1)
    return z[:, linear_sum_assignment(-overlap)[1]]


def _pull(model: PairLogisticRegressionCV) -> float | None:
    """The prior in the objective of the linear model: the one given, or that of the counts where they have one."""
    if model.n_classes != 2:
        return None
    if model.prior is not None:
        return float(model.prior)
    if model.prior_ is None or model.prior_.value == 0.5:
        return None
    return float(np.clip(model.prior_.value, 0.001, 0.999))


def _fit_quietly(model: PairLogisticRegression, A: Rows, y: Codes, weight: Array) -> PairLogisticRegression:
    """Folds are turned to one reference and judged by held-out answers; what they warn of the whole fit has said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SdulearnWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(A, y, sample_weight=weight)
