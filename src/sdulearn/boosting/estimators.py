"""PairBoostingClassifier, and PairModelCV, which chooses between a linear model and trees by held-out answers.

All models here are a linear score plus the mean of some boosters, one for each fold. A round adds
one tree to each of them. After every round each point has a score by the booster that saw no answer
about it, and the likelihood of *all* answers at these scores is the held-out likelihood: components
that are too large for a fold need no other treatment. The model is the mean of the boosters at the
best round, so no further fit is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.stats import rankdata
from sklearn.utils import Tags, check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sdulearn.answers.answer_model import ErrorRateParameter, answer_model_of, is_crowd, ties
from sdulearn.answers.graph import ENOUGH, AnswerGraph, with_implied_labels
from sdulearn.answers.likelihood import Likelihood
from sdulearn.base import (
    ANSWER_CONSTRAINTS,
    OrderedClassifier,
    PairClassifier,
    class_numbers,
    fold_arrays,
    folds_from_arrays,
    in_order,
)
from sdulearn.boosting.model_text import Booster, checked_trees, trees_text
from sdulearn.boosting.objective import PointLoss, Pull
from sdulearn.boosting.start import FoldedPoints, LinearScore, Start, constant_start, linear_start
from sdulearn.errors import InputError, require
from sdulearn.io.container import Header
from sdulearn.io.typed import finite, read
from sdulearn.joint.estimators import PairLogisticRegressionCV
from sdulearn.model_selection import HeldOut, PairKFold, number_of_folds
from sdulearn.progress import long_work, steps
from sdulearn.sklearn_private import Interval, fit_context, safe_indexing
from sdulearn.types import Array, Codes, Count, Indices, MatrixLike, RandomState, Rows

_LIGHTGBM = {
    "objective": "none",
    # Held-out and unlabeled points count as rows but have (nearly) no curvature.
    "min_data_in_leaf": 1,
    "feature_pre_filter": False,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
}
_ROWS_PER_THREAD = 10_000
# Rows over which contributions of columns are averaged.
_ROWS = 200
# Unlabeled points only give the mean prediction: so many give it to within 1%.
_MAX_UNLABELED = 2_500
# Categories are numbered from 0 on.
_MAX_CATEGORY = 2**20
MODELS = ("linear", "boosted")
# A component in no answer has a log likelihood of 0 up to rounding.
_ROUNDING = 1e-12
# A later candidate must be better by so many standard errors: a tie keeps the first. A whole one
# would cost more than it saves: half a point of accuracy over the ten sets of the benchmark, at 200
# answers.
_TIE = 0.25
# And by so much in the log likelihood of all answers together: the rounds of trees were chosen by
# the same held-out answers, so they are never worse than their start there. It alone counts where
# answers are connected, and there is no standard error.
_TIE_IN_ALL = 1.0
_ROW_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}


@dataclass(frozen=True, eq=False)
class Candidate:
    """A start, the trees added to it, and held-out scores."""

    start: Start
    boosters: list[Booster]  # one for each fold, with trees beyond the best round; none without trees
    curve: list[float]  # held-out log likelihood after each round of trees, the first without any
    held_out: Array  # (n_points, n_scores), at the best round

    @property
    def is_useful(self) -> bool:
        """Whether it explains held-out answers better than class shares alone."""
        return HeldOut.at(self.start.likelihood, self.held_out).is_useful


@dataclass(eq=False)
class FoldModel:
    """The start and the booster of a fold, which saw no answer about its points."""

    start: LinearScore
    boosters: list[Booster]
    classes_: Codes
    order_: Indices

    def decision_function(self, X: MatrixLike) -> Array:
        """Return scores as the whole model does."""
        return in_order(scores_of(self.start, self.boosters, _csr_matrix(check_array(X, **_ROW_CHECKS))), self.order_)

    predict = PairClassifier.predict
    predict_proba = PairClassifier.predict_proba

    def _rename(self, order: Indices) -> None:
        self.order_ = self.order_[order]


def scores_of(start: LinearScore, boosters: list[Booster], rows: Rows, n_threads: int = 1) -> Array:
    """Return the score of each row (n_rows,), or K scores: the start plus the mean of the boosters."""
    scores = start.decide(rows)
    scores = scores if scores.shape[1] > 1 else scores[:, 0]
    return scores + sum(booster.predict(rows, num_threads=n_threads) / len(boosters) for booster in boosters)


def _csr_matrix(rows: Rows) -> Rows:
    """Return checked rows as LightGBM takes them: it does not support scipy's sparse arrays yet."""
    return sparse.csr_matrix(rows) if sparse.issparse(rows) else rows


@dataclass(kw_only=True, eq=False, repr=False)
class ScoreClassifier(OrderedClassifier):
    """A linear score plus the mean of some boosters."""

    FITTED: ClassVar[Mapping[str, Any]] = {
        **OrderedClassifier.FITTED,
        "trees_": list[str],
        "start_parts_": dict[str, Any],
        "n_rounds_": Count,
        "feature_importances_": Any,
        "fold_parts_": dict[str, Any],
    }

    learning_rate: float = 0.1
    max_iter: int = 500
    max_leaf_nodes: int = 8
    l2_regularization: float = 1.0
    min_hessian: float = 1.0
    n_iter_no_change: int = 30
    n_classes: int = 2
    prior: float | None = None
    prior_strength: float = 3.0
    orientation: str = "majority"
    error_rate: ErrorRateParameter = "auto"
    answer_table: str | bool = "auto"
    categorical_features: ArrayLike | None = None
    cv: int = 5
    n_jobs: int | None = None
    random_state: RandomState = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left")],
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
        "min_hessian": [Interval(Real, 0, None, closed="left")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "n_classes": [Interval(Integral, 2, None, closed="left")],
        **ANSWER_CONSTRAINTS,
        "prior_strength": [Interval(Real, 0, None, closed="left")],
        "categorical_features": ["array-like", None],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def decision_function(self, X: MatrixLike) -> Array:
        check_is_fitted(self)
        rows = _csr_matrix(validate_data(self, X, reset=False, **_ROW_CHECKS))
        return in_order(scores_of(self.start_, self.boosters_, rows, self._threads(rows.shape[0])), self.order_)

    def _threads(self, n_rows: int) -> int:
        """Threads of LightGBM: with few rows, several threads are slower, above all on busy cores."""
        return min(effective_n_jobs(self.n_jobs), max(1, n_rows // _ROWS_PER_THREAD))

    def _folded_points(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None) -> FoldedPoints:
        """Check the rows, sample many unlabeled points, replace answers by labels that they imply, and make folds."""
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        rows = _csr_matrix(validate_data(self, X, ensure_min_samples=2, **_ROW_CHECKS))
        n_values = count_values(rows, self.categorical_features)
        rows, graph = self._kept_rows(rows, AnswerGraph.from_y(y, sample_weight))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        points = graph.by_point(rows)
        if n_values.any():
            # Categories have no mean.
            points[:, n_values > 0] = rows[graph.first_row][:, n_values > 0]
        if (surplus := len(graph.unlabeled) - _MAX_UNLABELED) > 0:
            left_out = np.random.default_rng(seed).choice(graph.unlabeled, surplus, replace=False)
            kept = np.setdiff1d(np.arange(graph.n_points), left_out)
            points, graph = points[kept], graph.subgraph(kept)
        n_folds = number_of_folds(self.cv, graph)
        if n_folds < 2:
            raise InputError(
                "Held-out answers decide when boosting stops, so `y` must have at least two pairs of each kind. "
                "Add answers, or use PairLogisticRegression."
            )
        graph = self._with_implied_labels(graph, n_folds)
        fold = PairKFold(n_folds, random_state=seed).fold_of_points(graph)
        # Numbered without gaps, hubs by -1: a fold may be empty.
        fold = np.unique(np.append(-1, fold), return_inverse=True)[1][1:] - 1
        return FoldedPoints(points, n_values, graph, fold, seed)

    def _with_implied_labels(self, graph: AnswerGraph, n_folds: int) -> AnswerGraph:
        """Return the graph with implied labels if no answer is wrong; folds get an answer of a kind each, or none."""
        K = self.n_classes
        if K == 2 or is_crowd(graph, K) or not ties(answer_model_of(self.error_rate, graph, K), graph, K):
            return graph
        named = with_implied_labels(graph, K)
        rare = [kind for kind in (1, -1) if np.sum(named.same == kind) < n_folds]
        return graph if named is graph else named.restrict(~np.isin(named.same, rare), named.labels != 0)

    def _linear(self, data: FoldedPoints, with_kernel: bool = False) -> Candidate:
        """Fit the linear model alone."""
        shared = ("n_classes", "prior", "prior_strength", "orientation", "error_rate", "answer_table")
        model = PairLogisticRegressionCV(**{name: getattr(self, name) for name in shared})
        start = linear_start(data, model, with_kernel)
        held_out = data.held_out(start.by_fold(data.X))
        return Candidate(start, [], [mean_log_likelihood(start.likelihood, held_out)], held_out)

    def _boosted(self, data: FoldedPoints, linear: Candidate | None = None) -> Candidate:
        """Boost a linear model, or the class shares if enough points are labelled."""
        labels = data.graph.labels[data.graph.labels > 0]
        K = self.n_classes
        if K > 2 and len(np.unique(labels)) == K and len(labels) >= data.graph.n_answers:
            answer_model = answer_model_of(self.error_rate, data.graph, K, self.answer_table)
            return self._boost(data, constant_start(data, K, answer_model))
        best = linear or self._linear(data)
        if K == 2 and not best.is_useful:
            # The gradients at a useless model are noise to trees.
            kernel = self._linear(data, with_kernel=True)
            best = kernel if kernel.is_useful else best
        return self._boost(data, best.start)

    def _boost(self, data: FoldedPoints, start: Start) -> Candidate:
        """Add trees to the start, one per round and fold, until held-out answers get no likelier."""
        lightgbm = require("lightgbm", "boosting")
        parameters = {
            **_LIGHTGBM,
            "num_class": self.n_classes if self.n_classes > 2 else 1,
            "learning_rate": self.learning_rate,
            "num_leaves": self.max_leaf_nodes,
            "lambda_l2": self.l2_regularization,
            "min_sum_hessian_in_leaf": self.min_hessian,
            "num_threads": self._threads(data.graph.n_points),
            "seed": data.seed,
        }
        categorical = np.flatnonzero(data.n_values).tolist()
        dataset = lightgbm.Dataset(data.X, categorical_feature=categorical, params=parameters)
        boosters = [lightgbm.Booster(parameters, dataset) for _ in start.folds]
        pull = Pull.of(data.graph, self.prior, self.prior_strength, self.n_classes)
        losses = [PointLoss(start.likelihood.folds((data.fold != k)[:, None]), pull) for k in range(data.n_folds)]
        first = start.by_fold(data.X)
        now = first.copy()

        def slopes(k: int, trees: Array, _: object) -> tuple[Array, Array]:
            now[k] = first[k] + trees.reshape(first[k].shape)
            gradient, curvature = losses[k].slopes(now[k])
            return gradient.reshape(trees.shape), curvature.reshape(trees.shape)

        curve: list[float] = []
        for round_ in steps(iter(range(self.max_iter + 1)), "rounds of trees"):
            for k, booster in enumerate(boosters):
                # LightGBM asks for the slopes at the scores before this round.
                booster.update(fobj=partial(slopes, k))
            held_out = data.held_out(now)
            curve.append(mean_log_likelihood(start.likelihood, held_out))
            best = int(np.argmax(curve))
            if best == round_:
                at_best = held_out
            elif round_ - best >= self.n_iter_no_change:
                break
        return Candidate(start, boosters, curve, at_best)

    def _accept(self, data: FoldedPoints, fit: Candidate) -> Self:
        """Take over a fit, with boosters up to the best round: none where no tree helps."""
        start = fit.start
        self.n_classes_ = self.n_classes
        self.classes_ = class_numbers(self.n_classes)
        self.order_ = np.arange(self.n_classes)
        self.prior_ = None if start.model is None else start.model.prior_
        self.answer_model_ = start.answer_model
        self.start_ = start.score
        self.n_rounds_ = int(np.argmax(fit.curve))
        self.n_iter_ = max(1, len(fit.curve) - 1)
        self.boosters_ = fit.boosters if self.n_rounds_ else []
        for booster in self.boosters_:
            for _ in range(booster.current_iteration() - self.n_rounds_):
                booster.rollback_one_iter()
            booster.free_dataset()
        self.trees_ = [trees_text(booster) for booster in self.boosters_]
        self.feature_importances_ = mean_contributions(self.start_, self.boosters_, data.X)
        fold = data.fold[data.graph.row_point]
        self.fold_models_ = [
            (data.graph.rows[fold == k], self._of_fold(k, score)) for k, score in enumerate(start.folds)
        ]
        HeldOut.at(start.likelihood, fit.held_out).warn_if_useless()
        return self

    def _of_fold(self, k: int, start: LinearScore) -> FoldModel:
        """Return the model of a fold, with its start and its trees."""
        return FoldModel(start, self.boosters_[k : k + 1], self.classes_, self.order_)

    @property
    def start_parts_(self) -> dict[str, Array]:
        """The linear score as arrays, for the model file."""
        return self.start_.parts()

    @property
    def fold_parts_(self) -> dict[str, Array]:
        """The linear scores of the folds as arrays, for the model file; the rest is that of the whole model."""
        starts = [model.start for _, model in self.fold_models_]
        return fold_arrays(self, [start.coef for start in starts], [start.intercept for start in starts])

    def _restore(self, fitted: Header) -> None:
        """Take over the contents of a model file after checking every part."""
        parts = read(dict[str, Any], fitted.pop("start_parts_"))
        fold_parts = read(dict[str, Any], fitted.pop("fold_parts_", {}))
        super()._restore(fitted)
        # Check the number of features before anything of that size is built.
        if finite(self.feature_importances_).shape != (self.n_features_in_,):
            raise InputError("importances and number of features do not fit together")
        self.start_ = LinearScore.from_parts(parts, self.n_features_in_, self.n_classes_)
        texts = [checked_trees(text, self.n_features_in_, self.n_classes_) for text in self.trees_]
        self.boosters_ = [require("lightgbm", "boosting").Booster(model_str=text) for text in texts]
        if fold_parts:
            folds = folds_from_arrays(self, fold_parts, self.start_.coef.shape, len(self.start_.intercept))
            if len(texts) not in (0, len(folds)):
                raise InputError("trees and folds do not fit together")
            self.fold_models_ = [
                (rows, self._of_fold(k, replace(self.start_, coef=coef, intercept=intercept)))
                for k, (rows, coef, intercept) in enumerate(folds)
            ]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def mean_log_likelihood(likelihood: Likelihood, scores: Array) -> float:
    """Return the mean log likelihood of an answer at scores (n_points, n_scores)."""
    return float(likelihood.mean(scores[:, :, None])[0][0])


def count_values(X: Rows, categorical: ArrayLike | None) -> Indices:
    """Return the number of values of each categorical column, 0 for a column of numbers."""
    n_values = np.zeros(X.shape[1], dtype=np.int64)
    if categorical is None:
        return n_values
    columns = np.atleast_1d(np.asarray(categorical))
    if columns.dtype.kind not in "iu" or sparse.issparse(X) or not np.isin(columns, np.arange(X.shape[1])).all():
        raise InputError(
            "`categorical_features` must contain numbers of columns of a dense `X`, counted from 0; "
            f"got `categorical_features={categorical!r}`."
        )
    values = np.nan_to_num(X[:, columns])
    if ((values < 0) | (values > _MAX_CATEGORY) | (values % 1 != 0)).any():
        raise InputError(
            "The columns in `categorical_features` must contain whole numbers from 0 on, or NaN. Encode them first "
            "with OrdinalEncoder(handle_unknown='use_encoded_value', unknown_value=np.nan)."
        )
    n_values[columns] = values.max(axis=0).astype(np.int64) + 1
    return n_values


def mean_contributions(start: LinearScore, boosters: list[Booster], X: Rows) -> Array:
    """Mean absolute contribution of each column, with Shapley values of the trees, of sum 1."""
    step = max(1, X.shape[0] // _ROWS)
    sample = X[: _ROWS * step : step]
    sample = sample.toarray() if sparse.issparse(sample) else sample
    total = start.contributions(sample)
    n_rows, n_features, n_scores = total.shape
    for booster in boosters:
        by_tree = booster.predict(sample, pred_contrib=True, num_threads=1).reshape(n_rows, n_scores, n_features + 1)
        # The last column is the mean of the score.
        total = total + by_tree[:, :, :-1].transpose(0, 2, 1) / len(boosters)
    size = np.abs(total).mean(axis=(0, 2))
    return np.asarray(size / size.sum()) if size.sum() > 0 else size


class PairBoostingClassifier(ScoreClassifier):
    """Boosted trees from same/different answers: LightGBM on the likelihood of the answers.

    The gradient of the likelihood in the score of a point is its predicted probability minus its
    posterior given the answers. Trees start from the linear score of
    :class:`~sdulearn.PairLogisticRegressionCV`, one booster for each fold of the *points*, and stop
    at the round with the highest likelihood of the held-out answers; the model is their mean.
    Unlabeled rows pull the mean prediction to the prior.

    Needs LightGBM: ``pip install 'sdulearn[boosting]'``. Columns need no scaling; NaN is a missing
    value.

    Parameters
    ----------
    learning_rate : float, default=0.1
        Shrinkage of every tree.
    max_iter : int, default=500
        Maximum number of rounds.
    max_leaf_nodes : int, default=8
        Maximum number of leaves of a tree.
    l2_regularization : float, default=1.0
        Penalty on the values of the leaves.
    min_hessian : float, default=1.0
        Minimum sum of p (1 - p) over the points of a leaf.
    n_iter_no_change : int, default=30
        Number of rounds without a higher held-out likelihood after which training stops.
    n_classes, prior, prior_strength, orientation, error_rate, answer_table
        As in :class:`~sdulearn.PairLogisticRegression`.
    categorical_features : array-like of int or None, default=None
        Numbers of the categorical columns, which must contain whole numbers from 0 on: encode them first,
        with scikit-learn's OrdinalEncoder.
    cv : int, default=5
        Folds over points.
    n_jobs : int or None, default=None
        Maximum number of threads of LightGBM; one is used for every 10,000 points.
    random_state : int, RandomState or None, default=0
        Seed of the folds.

    Attributes
    ----------
    boosters_ : list of lightgbm.Booster
        One per fold, cut at the best round; empty if no tree raised the held-out likelihood.
    n_rounds_ : int
        The best round.
    n_iter_ : int
        Rounds tried.
    held_out_log_likelihood_ : array of shape (n_rounds_tried + 1,)
        Mean log-likelihood of an independent held-out answer after each round; the first is the linear start's.
        The best of many rounds is slightly optimistic.
    feature_importances_ : array of shape (n_features,)
        Mean absolute contribution of each column to the score (start and trees together), of sum 1.
    start_ : LinearScore
        The linear score.
    answer_model_ : AnswerModel
        How often answers are wrong, given or estimated.
    fold_models_ : list of (rows, model)
        The rows of each fold's points, and the model, with ``decision_function`` and ``predict``,
        that saw no answer about them. A file keeps the rows of points in answers.
    classes_, prior_, n_features_in_, feature_names_in_
        As in :class:`~sdulearn.PairLogisticRegression`.

    See Also
    --------
    PairModelCV : Chooses between this and linear models.
    pair_objective : The likelihood for a booster of your own.

    Notes
    -----
    A component of the answers counts by the mean ``sample_weight`` of its answers and labels, in units of the mean
    answer: ``min_hessian`` and ``l2_regularization`` do not know the unit of the weights. Of more than 2,500
    unlabeled points a random sample is used. If held-out answers do not show that the model separates the classes,
    it gives a :class:`~sdulearn.errors.UselessModelWarning`.

    Examples
    --------
    >>> from sdulearn import PairBoostingClassifier
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=200, n_unlabeled=500, prior=0.7, n_test=500, random_state=0
    ... )
    >>> model = PairBoostingClassifier().fit(rows, codes)
    >>> print(f"accuracy {(model.predict(X_test) == y_test).mean():.1f}")
    accuracy 0.9
    """

    FITTED: ClassVar[Mapping[str, Any]] = {**ScoreClassifier.FITTED, "held_out_log_likelihood_": Any}

    @long_work
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        # Before minutes are spent on the start.
        require("lightgbm", "boosting")
        data = self._folded_points(X, y, sample_weight)
        fit = self._boosted(data)
        self.held_out_log_likelihood_ = np.array(fit.curve)
        return self._accept(data, fit)


@dataclass(eq=False, repr=False)
class PairModelCV(ScoreClassifier):
    """Choose between a linear model and boosted trees from held-out answers.

    Every candidate gives each point a score from a model that saw no answer about it, on the same
    folds over points. The first candidate is kept whose log likelihood of all answers at these
    scores is the highest, or lower by less than a quarter of a standard error or by less than 1.
    The scores are slightly optimistic, for all candidates alike.

    Parameters
    ----------
    models : sequence of {"linear", "boosted"}, default=("linear", "boosted")
        The candidates. "boosted" needs LightGBM (``pip install 'sdulearn[boosting]'``). To compare
        other estimators, use scikit-learn's GridSearchCV with :class:`~sdulearn.PairKFold` and
        :func:`~sdulearn.metrics.pair_log_likelihood`.
    learning_rate, max_iter, max_leaf_nodes, l2_regularization, min_hessian, n_iter_no_change
        Parameters of the trees, as in :class:`~sdulearn.PairBoostingClassifier`.
    n_classes, prior, prior_strength, orientation, error_rate, answer_table
        As there.
    categorical_features, cv, n_jobs, random_state
        As there.

    Attributes
    ----------
    model_ : str
        The choice.
    cv_results_ : dict
        ``model``, the candidates; ``mean_test_score``, the mean log-likelihood of a held-out answer
        by each; ``gap_to_best`` and ``gap_error``, the distance to the best one and its standard
        error over components of the answers (NaN if there are fewer than ten, or more than two
        classes); ``rank_test_score``.
    best_estimator_ : estimator
        If the linear model was chosen and all columns are numbers, a PairLogisticRegressionCV
        with coefficients of the columns of X, as its ``fold_models_`` have, without support for
        missing values; else this one itself.
    held_out_decisions_ : array of shape (n_rows,) or (n_rows, K)
        The score of each row from a model that saw no answer about its point; a point that is in too
        many answers to be held out has the mean of the folds. Not kept in files.
    boosters_, n_rounds_, n_iter_, start_, feature_importances_, fold_models_, answer_model_
        As in :class:`~sdulearn.PairBoostingClassifier`.
    classes_, prior_, n_features_in_, feature_names_in_
        As there.

    See Also
    --------
    PairBoostingClassifier : Trees alone.
    PairLogisticRegressionCV : The linear model alone, with coefficients.

    Examples
    --------
    >>> from sdulearn import PairModelCV
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=200, n_unlabeled=500, prior=0.7, random_state=0)
    >>> model = PairModelCV().fit(rows, codes)
    >>> model.cv_results_["model"]
    ['linear', 'boosted']
    """

    models: Sequence[str] = MODELS

    FITTED: ClassVar[Mapping[str, Any]] = {**ScoreClassifier.FITTED, "model_": str, "cv_results_": dict[str, Any]}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScoreClassifier._parameter_constraints,
        "models": ["array-like"],
    }

    @long_work
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        names = list(self.models)
        if not names or not all(names.count(name) == 1 and name in MODELS for name in names):
            raise InputError(
                '`models` must contain "linear", "boosted" or both, each once; got '
                f"`models={self.models!r}`. To compare other estimators, use scikit-learn's GridSearchCV."
            )
        if "boosted" in names:
            require("lightgbm", "boosting")
        data = self._folded_points(X, y, sample_weight)
        fits: dict[str, Candidate] = {}
        for name in names:
            fits[name] = self._linear(data) if name == "linear" else self._boosted(data, fits.get("linear"))
        # All candidates are judged by the answer model of the first.
        likelihood = fits[names[0]].start.likelihood
        values = [likelihood.weight * likelihood.terms(fit.held_out[:, :, None]).log_p[:, 0] for fit in fits.values()]
        best, self.cv_results_ = compare(names, values, likelihood.total)
        self.model_ = names[best]
        fit = fits[self.model_]
        self._accept(data, fit)
        scores = fit.held_out if self.n_classes > 2 else fit.held_out[:, 0]
        rows = data.graph.rows
        self.held_out_decisions_ = np.empty((data.graph.n_given, *scores.shape[1:]))
        self.held_out_decisions_[rows] = scores[data.graph.row_point]
        if (unused := np.setdiff1d(np.arange(data.graph.n_given), rows)).size:
            # Any fold will do for rows in no answer.
            self.held_out_decisions_[unused] = self.fold_models_[0][1].decision_function(safe_indexing(X, unused))
        self.best_estimator_ = self
        if self.model_ == "linear" and not data.n_values.any() and fit.start.model is not None:
            self.best_estimator_ = self._in_columns(fit.start.model)
        return self

    def _rename_all(self, order: Indices) -> None:
        super()._rename_all(order)
        if not hasattr(self, "best_estimator_"):
            # Read from a file.
            return
        self.held_out_decisions_ = in_order(self.held_out_decisions_, order)
        if self.best_estimator_ is not self:
            self.best_estimator_._rename_all(order)

    def _in_columns(self, model: PairLogisticRegressionCV) -> PairLogisticRegressionCV:
        """Give the linear model and those of its folds coefficients of the columns of X, and rows of y."""
        rows = [its_rows for its_rows, _ in self.fold_models_]
        models = [fold for _, fold in model.fold_models_]
        for fitted in (model, *models):
            fitted.cv = self.cv
            fitted.coef_ = fitted.coef_ * self.start_.scale
            fitted.intercept_ = fitted.intercept_ - fitted.coef_ @ self.start_.mean
            if hasattr(self, "feature_names_in_"):
                fitted.feature_names_in_ = self.feature_names_in_
        model.fold_models_ = list(zip(rows, models, strict=True))
        model._learned, model._learned_rows = self._learned, self._learned_rows
        return model


def compare(names: list[str], values: list[Array], total: float) -> tuple[int, dict[str, Any]]:
    """Choose by the held-out log likelihood of each component; the choice, and the table of candidates."""
    table = np.array(values)
    mean = table.sum(axis=1) / total
    gaps = table[int(np.argmax(mean.round(10)))] - table
    gap = gaps.sum(axis=1) / total
    terms = gaps[:, (np.abs(table) > _ROUNDING).any(axis=0)]
    # The standard error of each sum.
    error = np.sqrt(terms.shape[1] * terms.var(axis=1)) if terms.shape[1] >= ENOUGH else np.nan
    gap_error = np.full(len(table), error) / total
    margin = np.maximum(_TIE * np.nan_to_num(gap_error), _TIE_IN_ALL / total)
    return int(np.argmax(gap <= margin)), {
        "model": names,
        "mean_test_score": mean,
        "gap_to_best": gap,
        "gap_error": gap_error,
        "rank_test_score": rankdata(-mean.round(10), method="min").astype(np.int64),
    }
