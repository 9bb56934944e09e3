"""The score that trees start from: linear in the columns, or in Gaussian kernels around some points.

From a score of 0 answers have no gradient (mirrored models fit them equally well), so the trees are
added to a linear model under the same likelihood. Columns are standardised, a missing value counts
as the mean of its column, categories as one-hot columns. Nystroem's map and what follows it are
linear in the kernels, so a fitted score is a few arrays, which a model file can hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import StandardScaler

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.likelihood import Likelihood
from sdulearn.errors import InputError, UselessModelWarning, ignored_warnings
from sdulearn.io.typed import finite
from sdulearn.joint.estimators import PairLogisticRegressionCV
from sdulearn.types import Array, Indices, Rows

# Categories with more values get no one-hot columns, which would outweigh all others; the trees
# still see them.
MAX_ONE_HOT = 50
N_CENTRES = 150
MAX_LOGIT = 8.0


@dataclass(frozen=True, eq=False)
class FoldedPoints:
    """The points of a fit, what is known about them, and their folds."""

    X: Rows  # (n_points, n_features), each point the mean of its rows
    n_values: Indices  # (n_features,), number of values of a categorical column, 0 for a column of numbers
    graph: AnswerGraph
    fold: Indices  # (n_points,), -1 for hubs, which cannot be held out
    seed: int

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def held_out(self, by_fold: Array) -> Array:
        """Return the score of each point by the model without its fold; of a hub the mean of all."""
        scores = by_fold[np.maximum(self.fold, 0), np.arange(len(self.fold))]
        scores[self.fold < 0] = by_fold[:, self.fold < 0].mean(axis=0)
        return scores


@dataclass(frozen=True, eq=False)
class LinearScore:
    """A score of raw rows, linear in standardised columns or in kernels between these and some points."""

    n_values: Indices  # (n_features,), as in FoldedPoints
    mean: Array  # (n_columns,), 0 for sparse rows, which are not centred
    scale: Array  # (n_columns,), 0 for a constant column
    coef: Array  # (n_columns or n_centres, n_scores)
    intercept: Array  # (n_scores,)
    centres: Array | None = None  # (n_centres, n_columns)

    @classmethod
    def constant(cls, X: Rows, n_values: Indices, weight: Array, intercept: Array) -> LinearScore:
        """Return the same score for all rows, with means and standard deviations of weighted points."""
        raw = _one_hot(X, n_values)
        centred = not sparse.issparse(raw)
        # A column may hold nothing but gaps.
        with np.errstate(invalid="ignore"):
            scaler = StandardScaler(with_mean=centred).fit(raw, sample_weight=weight)
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

    @property
    def gamma(self) -> float:
        """One over twice the squared width of the kernels."""
        return 1 / (2 * len(self.mean))

    def standardised(self, X: Rows) -> Rows:
        """Return the columns, standardised."""
        raw = _one_hot(X, self.n_values)
        if sparse.issparse(raw):
            return raw.multiply(self.scale).tocsr()
        return (np.where(np.isnan(raw), self.mean, raw) - self.mean) * self.scale

    def decide(self, X: Rows) -> Array:
        """Return the scores (n_rows, n_scores); no class is less likely than ``exp(-8)`` times the likeliest."""
        A = self.standardised(X)
        if self.centres is not None:
            A = rbf_kernel(A, self.centres, self.gamma)
        scores = np.asarray(A @ self.coef + self.intercept)
        # Far from other rows a model is certain, and sometimes wrong: then one row would outweigh
        # all others in the held-out likelihood, and no tree could correct it.
        if len(self.intercept) == 1:
            return np.clip(scores, -MAX_LOGIT, MAX_LOGIT)
        return np.maximum(scores, scores.max(axis=1, keepdims=True) - MAX_LOGIT)

    def contributions(self, X: Array) -> Array:
        """Return how each feature changes each score (n_rows, n_features, n_scores), against its mean in these rows."""
        A = self.standardised(X)
        mean = A.mean(axis=0)
        changes = np.empty((*X.shape, len(self.intercept)))
        kernel = None if self.centres is None else rbf_kernel(A, self.centres, self.gamma)
        for j, columns in enumerate(_columns_of_features(self.n_values)):
            change = A[:, columns] - mean[columns]
            if kernel is None or self.centres is None:
                changes[:, j] = change @ self.coef[columns]
                continue
            # The squared distances to the centres that the mean saves.
            saved = np.sum(change * (A[:, columns] + mean[columns]), axis=1, keepdims=True)
            saved = saved - 2 * change @ self.centres[:, columns].T
            changes[:, j] = (kernel * -np.expm1(self.gamma * saved)) @ self.coef
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


def _columns_of_features(n_values: Indices) -> list[slice]:
    """Return the columns of :func:`_one_hot` that belong to each feature."""
    width = np.where(n_values <= MAX_ONE_HOT, np.maximum(n_values, 1), 0)
    # Numbers come first.
    order = np.argsort(n_values > 0, kind="stable")
    stop = np.empty_like(width)
    stop[order] = np.cumsum(width[order])
    return [slice(end - size, end) for end, size in zip(stop.tolist(), width.tolist(), strict=True)]


@dataclass(frozen=True, eq=False)
class Start:
    """A score fitted to all answers, and the same without each fold."""

    score: LinearScore
    folds: list[LinearScore]
    answer_model: AnswerModel
    likelihood: Likelihood  # of all answers
    model: PairLogisticRegressionCV | None = None  # of the columns of the score; None for class shares alone

    def by_fold(self, X: Rows) -> Array:
        """Return the scores (n_folds, n_points, n_scores) of all points by the start of each fold."""
        return np.array([score.decide(X) for score in self.folds])


class _KernelMap(NamedTuple):
    """Standardised features that are linear in Gaussian kernels around some points: Nystroem's map."""

    centres: Array  # (n_centres, n_columns)
    factors: Array  # (n_centres, n_centres)
    shift: Array  # (n_centres,)

    @classmethod
    def of(cls, A: Array, weight: Array, gamma: float, seed: int) -> _KernelMap:
        """Return the map of weighted points, with some of them as centres."""
        nystroem = Nystroem(gamma=gamma, n_components=min(N_CENTRES, len(A)), random_state=seed)
        scaler = StandardScaler().fit(nystroem.fit_transform(A), sample_weight=weight)
        return cls(
            nystroem.components_, nystroem.normalization_.T / scaler.scale_, np.asarray(scaler.mean_ / scaler.scale_)
        )


def _score(blank: LinearScore, kernels: _KernelMap | None, coef: Array, intercept: Array) -> LinearScore:
    """Return the score that is linear in standardised columns, or in a kernel map of these."""
    if kernels is None:
        return replace(blank, coef=coef, intercept=intercept)
    intercept = intercept - kernels.shift @ coef
    return replace(blank, coef=kernels.factors @ coef, intercept=intercept, centres=kernels.centres)


def linear_start(data: FoldedPoints, model: PairLogisticRegressionCV, with_kernel: bool = False) -> Start:
    """Fit a linear model to standardised columns, or to kernels of these, and to all but the answers of each fold."""
    graph = data.graph
    blank = LinearScore.constant(data.X, data.n_values, graph.point_weights, np.zeros(1))
    A = blank.standardised(data.X)
    kernels = None
    if with_kernel:
        A = A.toarray() if sparse.issparse(A) else A
        kernels = _KernelMap.of(A, graph.point_weights, blank.gamma, data.seed)
        A = rbf_kernel(A, kernels.centres, blank.gamma) @ kernels.factors - kernels.shift
    spread = _on_rows(graph)
    # The whole model is judged at the end.
    with ignored_warnings(UselessModelWarning):
        model.set_params(cv=PredefinedSplit(data.fold[spread.row_point])).fit(A[spread.row_point], spread)
    models = [model, *(fold for _, fold in model.fold_models_)]
    score, *folds = [_score(blank, kernels, fitted.coef_.T, fitted.intercept_) for fitted in models]
    likelihood = model.answer_model_.likelihood(graph, len(model.classes_))
    return Start(score, folds, model.answer_model_, likelihood, model)


def constant_start(data: FoldedPoints, n_classes: int, answer_model: AnswerModel) -> Start:
    """Start all folds and points from the log shares of the classes among the labels."""
    counts = np.bincount(data.graph.labels, minlength=n_classes + 1)[1:] + 1
    shares = np.log(counts / counts.sum())
    score = LinearScore.constant(data.X, data.n_values, data.graph.point_weights, shares)
    return Start(score, [score] * data.n_folds, answer_model, answer_model.likelihood(data.graph, n_classes))


def _on_rows(graph: AnswerGraph) -> AnswerGraph:
    """Return the graph on rows of its own: two for each answer, then one for each point in no answer."""
    row_point = np.concatenate([graph.ends.ravel(), np.flatnonzero(graph.degree == 0)])
    return replace(
        graph,
        n_given=len(row_point),
        rows=np.arange(len(row_point)),
        row_point=row_point,
        row_weight=graph.point_weights[row_point],
        end_rows=np.arange(2 * graph.n_answers).reshape(-1, 2),
    )
