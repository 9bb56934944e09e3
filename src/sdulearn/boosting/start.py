"""The score that trees start from: linear in the columns, or in Gaussian kernels around some rows.

From a score of 0 answers have no gradient (mirrored models fit them equally well), so the trees are
added to a linear model under the same likelihood. Columns are standardised, a missing value counts
as the mean of its column, categories as one-hot columns. Nystroem's map and what follows it are
linear in the kernels, so a fitted score is a few arrays, which a model file can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn.answers.answer_model import AnswerModel, answer_model_of
from sdulearn.answers.y import U
from sdulearn.base import LinearClassifier
from sdulearn.boosting.model_text import Booster
from sdulearn.boosting.rows import TrainingRows
from sdulearn.errors import InputError
from sdulearn.io.typed import finite
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.metrics.cross_validation import fitted
from sdulearn.prior import PriorEstimate
from sdulearn.progress import steps
from sdulearn.types import Array, Estimator, Indices, Rows

# Categories with more values get no one-hot columns, which would outweigh all others; the trees
# still see them.
MAX_ONE_HOT = 50
N_CENTRES = 150
# The start need not be the best linear model of all answers: the trees improve on it.
MAX_ANSWERS = 20_000
MAX_LOGIT = 8.0
# Parameters that the linear start shares with the trees.
_SHARED = ("n_classes", "prior", "prior_strength", "orientation", "error_rate", "answer_table")


@dataclass(frozen=True)
class LinearScore:
    """A score of raw rows, linear in standardised columns or in kernels between these and some rows."""

    n_values: Indices  # (n_features,), number of values of a categorical column, 0 for a column of numbers
    mean: Array  # (n_columns,), 0 for sparse rows, which are not centred
    scale: Array  # (n_columns,), 0 for a constant column
    coef: Array  # (n_columns or n_centres, 1 or K)
    intercept: Array  # (1 or K,)
    centres: Array | None = None  # (n_centres, n_columns)

    @classmethod
    def constant(cls, X: Rows, n_values: Indices, intercept: Array) -> LinearScore:
        """The same score for all rows, with means and standard deviations of these rows."""
        raw = _one_hot(X, n_values)
        centred = not sparse.issparse(raw)
        # A column may hold nothing but gaps.
        with np.errstate(invalid="ignore"):
            scaler = StandardScaler(with_mean=centred).fit(raw)
        mean = np.nan_to_num(scaler.mean_) if centred else np.zeros(raw.shape[1])
        deviation = np.sqrt(np.nan_to_num(scaler.var_))
        # A constant column stays out: its deviation is rounding.
        varies = deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300)
        scale = np.divide(1, deviation, out=np.zeros_like(deviation), where=varies)
        return cls(n_values, mean, scale, np.zeros((len(mean), len(intercept))), intercept)

    @property
    def has_kernel(self) -> bool:
        """Whether the score is linear in kernels."""
        return self.centres is not None

    def standardised(self, X: Rows) -> Rows:
        """Return the columns, standardised."""
        raw = _one_hot(X, self.n_values)
        if sparse.issparse(raw):
            return raw.multiply(self.scale).tocsr()
        return (np.where(np.isnan(raw), self.mean, raw) - self.mean) * self.scale

    def decide(self, X: Rows) -> Array:
        """Return the score of each row; no class is less likely than ``exp(-8)`` times the likeliest."""
        A = self.standardised(X)
        if self.centres is not None:
            A = rbf_kernel(A, self.centres, 1 / (2 * A.shape[1]))
        scores = np.asarray(A @ self.coef + self.intercept)
        # Far from other rows a model is certain, and sometimes wrong: then one row would outweigh
        # all others in the held-out likelihood, and no tree could correct it.
        if len(self.intercept) == 1:
            return np.clip(scores[:, 0], -MAX_LOGIT, MAX_LOGIT)
        return np.maximum(scores, scores.max(axis=1, keepdims=True) - MAX_LOGIT)

    def contributions(self, X: Array) -> Array:
        """Return what each feature adds to each score (n_rows, n_features, n_scores)."""
        if self.centres is None and not self.n_values.any():
            A = self.standardised(X)
            return np.asarray((A - A.mean(axis=0))[:, :, None] * self.coef)
        whole = self.decide(X)
        changes = np.empty((*X.shape, len(self.intercept)))
        for j in range(X.shape[1]):
            without = X.copy()
            without[:, j] = np.nan
            changes[:, j] = (whole - self.decide(without)).reshape(len(X), -1)
        return changes

    def parts(self) -> dict[str, Array]:
        """Return its arrays by name, for a model file."""
        parts = {"mean": self.mean, "scale": self.scale, "coef": self.coef, "intercept": self.intercept}
        parts["n_values"] = self.n_values.astype(np.float64)
        return parts if self.centres is None else {**parts, "centres": self.centres}

    @classmethod
    def from_parts(cls, parts: dict[str, Array], n_features: int, n_classes: int) -> LinearScore:
        """Build it from the arrays of :meth:`parts`, after a check of their shapes."""
        arrays = {name: finite(array) for name, array in parts.items()}
        n_values = arrays["n_values"]
        width = int(np.where(n_values > 0, n_values * (n_values <= MAX_ONE_HOT), 1).sum())
        n_scores = 1 if n_classes == 2 else n_classes
        shapes: dict[str, tuple[int, ...]] = {"n_values": (n_features,), "mean": (width,), "scale": (width,)}
        shapes |= {"coef": (width, n_scores), "intercept": (n_scores,)}
        if "centres" in arrays:
            n_centres = len(arrays["centres"])
            shapes |= {"centres": (n_centres, width), "coef": (n_centres, n_scores)}
        fits = {name: array.shape for name, array in arrays.items()} == shapes
        if not fits or n_values.min() < 0 or n_values.max() > 2**31:
            raise InputError("the parts of the linear score do not fit together")
        whole = (n_values.astype(np.int64), arrays["mean"], arrays["scale"], arrays["coef"], arrays["intercept"])
        return cls(*whole, arrays.get("centres"))


def _one_hot(X: Rows, n_values: Indices) -> Rows:
    """Numbers, then a column for each value of a category: zeros where it is missing or new."""
    if not n_values.any():
        return X
    few = np.flatnonzero((n_values > 0) & (n_values <= MAX_ONE_HOT))
    return np.column_stack([X[:, n_values == 0], *(X[:, [j]] == np.arange(n_values[j]) for j in few)])


@dataclass(frozen=True)
class ScoreFit:
    """A score fitted to all answers, the same without each fold, and the trees that were added to them."""

    score: LinearScore  # of all answers
    prior: PriorEstimate | None  # as reported; None with more than two classes
    answer_model: AnswerModel
    pull: float | ArrayLike | None  # the given prior, or class shares, that the mean prediction is pulled to
    folds: Sequence[LinearScore]  # fitted without the points of each fold
    by_fold: Array  # (n_folds, n_points), scores of all points by the model of each fold, with its trees
    model: Estimator = None  # of all answers, by the columns of the score
    boosters: Sequence[Booster] = ()  # one for each fold
    curve: Sequence[float] = (0.0,)  # held-out log likelihood after each round of trees, the first without any

    def held_out(self, fold: Indices) -> Array:
        """Return the score of each point by the model without its fold; of a hub, in no fold, the mean."""
        scores = self.by_fold[np.maximum(fold, 0), np.arange(len(fold))]
        scores[fold < 0] = self.by_fold[:, fold < 0].mean(axis=0)
        return scores


def fit_linear(parameters: Estimator, rows: TrainingRows, with_kernel: bool = False) -> ScoreFit:
    """Choose the penalty by all answers, or by a sample of very many, then fit without each fold."""
    blank = LinearScore.constant(rows.X, rows.n_values, np.zeros(1))
    A = blank.standardised(rows.X)
    kernel_map = None
    if with_kernel:
        A = A.toarray() if sparse.issparse(A) else A
        n_centres = min(N_CENTRES, rows.graph.n_points)
        nystroem = Nystroem(gamma=1 / (2 * A.shape[1]), n_components=n_centres, random_state=rows.seed)
        kernel_map = make_pipeline(nystroem, StandardScaler()).fit(A[rows.graph.first_row])
        A = kernel_map.transform(A)
    graph = rows.graph
    y = np.asarray(graph)
    used = np.arange(graph.n_rows)
    if graph.n_answers > MAX_ANSWERS:
        answers = np.random.default_rng(rows.seed).choice(graph.n_answers, MAX_ANSWERS, replace=False)
        used = np.union1d(graph.end_rows[answers], np.flatnonzero(graph.source == U))
    options = {name: getattr(parameters, name) for name in _SHARED}
    model = PairLogisticRegressionCV(cv=rows.splitter, **options)
    model.fit(A[used], y[used], sample_weight=graph.row_weight[used])
    models = [fold for _, fold in model.fold_models_] if len(used) == graph.n_rows else []
    factor = 1.0
    if not models:
        names = model.predict(A)
        options["error_rate"] = model.answer_model_
        single = PairLogisticRegression(model.alpha_, covariance_power=model.covariance_power_, **options)
        factor = 1 / getattr(model, "temperature_", 1.0)
        for train in steps(rows.trains, "folds"):
            kept = np.intersect1d(train, used)
            fold = fitted(single, A[kept], y[kept], graph.row_weight[kept])
            models.append(fold.orient(A, names))
    folds = [_score(blank, kernel_map, fold, factor) for fold in models]
    scores = np.array([fold.decide(rows.points) for fold in folds])
    whole = _score(blank, kernel_map, model)
    return ScoreFit(whole, model.prior_, model.answer_model_, model.prior, folds, scores, model)


def _score(
    blank: LinearScore, kernel_map: Pipeline | None, model: LinearClassifier, factor: float = 1.0
) -> LinearScore:
    """The score of a linear model of standardised columns, or of a kernel map of these."""
    coef, intercept = factor * model.coef_.T, factor * model.intercept_
    if kernel_map is None:
        return replace(blank, coef=coef, intercept=intercept)
    nystroem, scaler = kernel_map[0], kernel_map[1]
    coef = coef / scaler.scale_[:, None]
    intercept = intercept - scaler.mean_ @ coef
    return replace(blank, coef=nystroem.normalization_.T @ coef, intercept=intercept, centres=nystroem.components_)


def constant_start(parameters: Estimator, rows: TrainingRows) -> ScoreFit:
    """Start all folds and points from the log shares of the classes among the labels."""
    K = parameters.n_classes
    counts = np.bincount(rows.graph.labels, minlength=K + 1)[1:] + 1
    shares = np.log(counts / counts.sum())
    score = LinearScore.constant(rows.X, rows.n_values, shares)
    answer_model = answer_model_of(parameters.error_rate, rows.graph, K, parameters.answer_table)
    n_folds = len(rows.trains)
    scores = np.broadcast_to(shares, (n_folds, rows.graph.n_points, K))
    return ScoreFit(score, None, answer_model, None, [score] * n_folds, scores)
