"""PairBoostingClassifier, and PairModelCV, which chooses between a linear model and trees by held-out answers.

All models here are a linear score plus the mean of some boosters, one for each fold. A round adds
one tree to each of them. After every round each point has a score by the booster that saw no answer
about it, and the likelihood of *all* answers at these scores is the held-out likelihood: components
that are too large for a fold need no other treatment. The model is the mean of the boosters at the
best round, so no further fit is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.stats import rankdata
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sdulearn.answers.answer_model import ErrorRateParameter
from sdulearn.answers.graph import AnswerGraph
from sdulearn.base import ANSWER_CONSTRAINTS, OrderedClassifier, class_numbers, in_order
from sdulearn.boosting.model_text import Booster, checked_trees, trees_text
from sdulearn.boosting.objective import PointLoss, make_pull
from sdulearn.boosting.rows import TrainingRows
from sdulearn.boosting.start import LinearScore, ScoreFit, constant_start, fit_linear
from sdulearn.errors import InputError, require
from sdulearn.io.container import Header
from sdulearn.io.typed import finite, read
from sdulearn.progress import long_work, steps
from sdulearn.sklearn_private import Interval, fit_context, safe_indexing
from sdulearn.types import Array, Count, Estimator, Indices, MatrixLike, RandomState, Rows

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
# A start is useful if it raises the mean log likelihood of an answer by more than this above one
# probability for all points, the best of these logits.
_MIN_GAIN = 0.01
_CONSTANTS = np.linspace(0, 4, 17)
# Categories are numbered from 0 on.
_MAX_CATEGORY = 2**20
MODELS = ("linear", "boosted")
# A standard error needs so many components, and a component in no answer has a log likelihood of 0
# up to rounding.
_MIN_COMPONENTS = 10
_ROUNDING = 1e-12
# A later candidate must be better by so many standard errors: a tie keeps the first. A whole one
# would cost more than it saves: half a point of accuracy over the ten sets of the benchmark, at 200
# answers.
_TIE = 0.25
# And by so much in the log likelihood of all answers together: the rounds of trees were chosen by
# the same held-out answers, so they are never worse than their start there. It alone counts where
# answers are connected, and there is no standard error.
_TIE_IN_ALL = 1.0
# Attributes of an earlier fit that the models of the folds, copies of the estimator, must not keep.
_NOT_IN_FOLDS = ("fold_models_", "best_estimator_", "held_out_decisions_")


class ScoreClassifier(OrderedClassifier):
    """A linear score plus the mean of some boosters."""

    FITTED: Mapping[str, Any] = {
        **OrderedClassifier.FITTED,
        "trees_": list[str],
        "start_parts_": dict[str, Any],
        "n_rounds_": Count,
        "feature_importances_": Any,
    }

    start_: LinearScore
    boosters_: list[Booster]

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

    def __init__(
        self,
        *,
        learning_rate: float = 0.1,
        max_iter: int = 500,
        max_leaf_nodes: int = 8,
        l2_regularization: float = 1.0,
        min_hessian: float = 1.0,
        n_iter_no_change: int = 30,
        n_classes: int = 2,
        prior: float | None = None,
        prior_strength: float = 3.0,
        orientation: str = "majority",
        error_rate: ErrorRateParameter = "auto",
        answer_table: str | bool = "auto",
        categorical_features: ArrayLike | None = None,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.l2_regularization = l2_regularization
        self.min_hessian = min_hessian
        self.n_iter_no_change = n_iter_no_change
        self.n_classes = n_classes
        self.prior = prior
        self.prior_strength = prior_strength
        self.orientation = orientation
        self.error_rate = error_rate
        self.answer_table = answer_table
        self.categorical_features = categorical_features
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def decision_function(self, X: MatrixLike) -> Array:
        check_is_fitted(self)
        rows = self._checked(X, reset=False)
        scores = self.start_.decide(rows)
        if self.boosters_:
            threads = self._threads(rows.shape[0])
            scores = scores + sum(b.predict(rows, num_threads=threads) for b in self.boosters_) / len(self.boosters_)
        return in_order(scores, self.order_)

    def _checked(self, X: MatrixLike, reset: bool) -> Rows:
        """Check rows, which may have gaps."""
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
        rows = validate_data(self, X, reset=reset, ensure_min_samples=2 if reset else 1, **checks)
        # LightGBM does not support scipy's sparse arrays yet.
        return sparse.csr_matrix(rows) if sparse.issparse(rows) else rows

    def _training_rows(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None) -> TrainingRows:
        """Check the rows, count the values of categories and make the folds."""
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        rows = self._checked(X, reset=True)
        n_values = count_values(rows, self.categorical_features)
        rows, graph = self._kept_rows(rows, AnswerGraph.from_y(y, sample_weight))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        layout = TrainingRows(rows, graph, self, n_values, seed)
        layout.all_rows = graph.rows[layout.all_rows]
        return layout

    def _fit_trees(self, rows: TrainingRows, linear: ScoreFit | None = None) -> ScoreFit:
        """Boost a linear model, or the class shares if enough points are labelled."""
        if self.n_classes > 2 and rows.has_labels_of(self.n_classes):
            return self._boost(rows, constant_start(self, rows))
        start = linear or fit_linear(self, rows)
        if self.n_classes == 2 and not self._is_useful(rows, start):
            # The gradients at a useless model are noise to trees.
            kernel = fit_linear(self, rows, with_kernel=True)
            start = kernel if self._is_useful(rows, kernel) else start
        return self._boost(rows, start)

    def _is_useful(self, rows: TrainingRows, start: ScoreFit) -> bool:
        """Whether a start makes held-out answers likelier than one probability for all points does."""
        loss = PointLoss(start.answer_model.likelihood(rows.graph, self.n_classes))
        scores = start.held_out(rows.fold)
        constant = max(loss.terms(np.full_like(scores, z))[0].sum() for z in _CONSTANTS)
        return bool(loss.terms(scores)[0].sum() - constant > _MIN_GAIN * loss.n_known)

    def _threads(self, n_rows: int) -> int:
        """Threads of LightGBM: with few rows, several threads are slower, above all on busy cores."""
        return min(effective_n_jobs(self.n_jobs), max(1, n_rows // _ROWS_PER_THREAD))

    def _boost(self, rows: TrainingRows, start: ScoreFit) -> ScoreFit:
        """Add trees to the start, one per round and fold, until held-out answers get no likelier."""
        lightgbm = require("lightgbm", "boosting")
        pull = make_pull(rows.graph, start.pull, self.prior_strength)
        whole = PointLoss(start.answer_model.likelihood(rows.graph, self.n_classes))
        losses = [PointLoss(whole.likelihood.restricted(rows.fold != k)) for k in range(len(start.by_fold))]
        parameters = {
            **_LIGHTGBM,
            "num_class": self.n_classes if self.n_classes > 2 else 1,
            "learning_rate": self.learning_rate,
            "num_leaves": self.max_leaf_nodes,
            "lambda_l2": self.l2_regularization,
            "min_sum_hessian_in_leaf": self.min_hessian,
            "num_threads": self._threads(rows.graph.n_points),
            "seed": rows.seed,
        }
        categorical = np.flatnonzero(rows.n_values).tolist()
        data = lightgbm.Dataset(rows.points, categorical_feature=categorical, params=parameters)
        boosters = [lightgbm.Booster(parameters, data) for _ in losses]
        now = replace(start, by_fold=start.by_fold.copy(), boosters=boosters)

        def slopes(k: int, trees: Array, _: object) -> tuple[Array, Array]:
            now.by_fold[k] = start.by_fold[k] + trees
            return losses[k].slopes(now.by_fold[k], pull)

        curve: list[float] = []
        for round_ in steps(iter(range(self.max_iter + 1)), "rounds of trees"):
            for k, booster in enumerate(boosters):
                # LightGBM asks for the slopes at the scores before this round.
                booster.update(fobj=partial(slopes, k))
            curve.append(whole.terms(now.held_out(rows.fold))[0].sum() / whole.n_known)
            best = int(np.argmax(curve))
            if best == round_:
                at_best = now.by_fold.copy()
            elif round_ - best >= self.n_iter_no_change:
                break
        return replace(now, by_fold=at_best, curve=curve)

    def _accept(self, rows: TrainingRows, fit: ScoreFit) -> Self:
        """Take over a fit, with boosters up to the best round: none where no tree helps."""
        self.n_classes_ = self.n_classes
        self.classes_ = class_numbers(self.n_classes)
        self.order_ = np.arange(self.n_classes)
        self.prior_ = fit.prior
        self.answer_model_ = fit.answer_model
        self.start_ = fit.score
        self.n_rounds_ = int(np.argmax(fit.curve))
        self.n_iter_ = max(1, len(fit.curve) - 1)
        self.boosters_ = list(fit.boosters) if self.n_rounds_ else []
        for booster in self.boosters_:
            for _ in range(booster.current_iteration() - self.n_rounds_):
                booster.rollback_one_iter()
            booster.free_dataset()
        self.trees_ = [trees_text(booster) for booster in self.boosters_]
        self.feature_importances_ = mean_contributions(self.start_, self.boosters_, rows.points)
        for name in _NOT_IN_FOLDS:
            self.__dict__.pop(name, None)
        models = [copy(self) for _ in fit.folds]
        for k, model in enumerate(models):
            model.start_ = fit.folds[k]
            model.boosters_ = self.boosters_[k : k + 1]
            model.trees_ = self.trees_[k : k + 1]
        fold = rows.fold[rows.all_points]
        self.fold_models_ = [(rows.all_rows[fold == k], model) for k, model in enumerate(models)]
        return self

    @property
    def start_parts_(self) -> dict[str, Array]:
        """The linear score as arrays, for the model file."""
        return self.start_.parts()

    def _restore(self, fitted: Header) -> None:
        """Take over the contents of a model file after checking every part."""
        parts = read(dict[str, Any], fitted.pop("start_parts_"))
        super()._restore(fitted)
        # Check the number of features before anything of that size is built.
        if finite(self.feature_importances_).shape != (self.n_features_in_,):
            raise InputError("importances and number of features do not fit together")
        self.start_ = LinearScore.from_parts(parts, self.n_features_in_, self.n_classes_)
        texts = [checked_trees(text, self.n_features_in_, self.n_classes_) for text in self.trees_]
        self.boosters_ = [require("lightgbm", "boosting").Booster(model_str=text) for text in texts]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def count_values(X: Rows, categorical: ArrayLike | None) -> Indices:
    """Number of values of each categorical column, 0 for a column of numbers."""
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
        Most rounds.
    max_leaf_nodes : int, default=8
        Leaves of a tree.
    l2_regularization : float, default=1.0
        Penalty on the values of the leaves.
    min_hessian : float, default=1.0
        Least sum of p (1 - p) over the points of a leaf.
    n_iter_no_change : int, default=30
        Rounds without a higher held-out likelihood that end the search.
    n_classes, prior, prior_strength, orientation, error_rate, answer_table
        As in :class:`~sdulearn.PairLogisticRegression`.
    categorical_features : array-like of int or None, default=None
        Numbers of the categorical columns, which hold whole numbers from 0 on: encode them first,
        with scikit-learn's OrdinalEncoder.
    cv : int, default=5
        Folds over points.
    n_jobs : int or None, default=None
        Most threads of LightGBM; there is one for every 10,000 points.
    random_state : int, RandomState or None, default=0
        Seed of the folds.

    Attributes
    ----------
    boosters_ : list of lightgbm.Booster
        One per fold, cut at the best round; empty where no tree raised the held-out likelihood.
    n_rounds_ : int
        The best round.
    n_iter_ : int
        Rounds tried.
    held_out_log_likelihood_ : array of shape (n_rounds_tried + 1,)
        Mean log-likelihood of a held-out answer after each round; the first is the linear start's.
        The best of many rounds is slightly optimistic.
    feature_importances_ : array of shape (n_features,)
        Mean absolute contribution of each column to the score (start and trees together), of sum 1.
    start_ : LinearScore
        The linear score.
    answer_model_ : AnswerModel
        How often answers are wrong, given or estimated.
    fold_models_ : list of (rows, model)
        The rows of each fold's points, and the model, with ``decision_function`` and ``predict``,
        that saw no answer about them. Not kept in files.
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
    unlabeled rows a random sample is used, and the start is fitted to at most 20,000 answers.

    Examples
    --------
    >>> from sdulearn import PairBoostingClassifier
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=200, n_unlabeled=500, prior=0.7, n_test=500, random_state=0
    ... )
    >>> model = PairBoostingClassifier().fit(rows, codes)
    >>> bool((model.predict(X_test) == y_test).mean() > 0.88)
    True
    """

    FITTED: Mapping[str, Any] = {**ScoreClassifier.FITTED, "held_out_log_likelihood_": Any}

    @long_work
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        # Before minutes are spent on the start.
        require("lightgbm", "boosting")
        rows = self._training_rows(X, y, sample_weight)
        fit = self._fit_trees(rows)
        self.held_out_log_likelihood_ = np.array(fit.curve)
        return self._accept(rows, fit)


class PairModelCV(ScoreClassifier):
    """Choose between a linear model and boosted trees by held-out answers.

    Every candidate gives each point a score by a model that saw no answer about it, on the same
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
        Of the trees, as in :class:`~sdulearn.PairBoostingClassifier`.
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
        error over components of the answers (NaN where there are fewer than ten, or more than two
        classes); ``rank_test_score``.
    best_estimator_ : estimator
        Where the linear model was chosen and all columns are numbers, a PairLogisticRegressionCV
        with coefficients of the columns of X, as its ``fold_models_`` have, without support for
        missing values; else this one itself.
    held_out_decisions_ : array of shape (n_rows,) or (n_rows, K)
        The score of each row by a model that saw no answer about its point; a point that is in too
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

    FITTED: Mapping[str, Any] = {**ScoreClassifier.FITTED, "model_": str, "cv_results_": dict[str, Any]}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScoreClassifier._parameter_constraints,
        "models": ["array-like"],
    }

    def __init__(
        self,
        models: Sequence[str] = MODELS,
        *,
        learning_rate: float = 0.1,
        max_iter: int = 500,
        max_leaf_nodes: int = 8,
        l2_regularization: float = 1.0,
        min_hessian: float = 1.0,
        n_iter_no_change: int = 30,
        n_classes: int = 2,
        prior: float | None = None,
        prior_strength: float = 3.0,
        orientation: str = "majority",
        error_rate: ErrorRateParameter = "auto",
        answer_table: str | bool = "auto",
        categorical_features: ArrayLike | None = None,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            max_iter=max_iter,
            max_leaf_nodes=max_leaf_nodes,
            l2_regularization=l2_regularization,
            min_hessian=min_hessian,
            n_iter_no_change=n_iter_no_change,
            n_classes=n_classes,
            prior=prior,
            prior_strength=prior_strength,
            orientation=orientation,
            error_rate=error_rate,
            answer_table=answer_table,
            categorical_features=categorical_features,
            cv=cv,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.models = models

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
        rows = self._training_rows(X, y, sample_weight)
        fits: dict[str, ScoreFit] = {}
        for name in names:
            fits[name] = fit_linear(self, rows) if name == "linear" else self._fit_trees(rows, fits.get("linear"))
        # All candidates are judged by the answer model of the first.
        loss = PointLoss(fits[names[0]].answer_model.likelihood(rows.graph, self.n_classes))
        values = [loss.terms(fit.held_out(rows.fold))[0] for fit in fits.values()]
        best, self.cv_results_ = compare(names, values, loss.n_known)
        self.model_ = names[best]
        fit = fits[self.model_]
        self._accept(rows, fit)
        scores = fit.held_out(rows.fold)
        self.held_out_decisions_ = np.empty((len(np.asarray(y)), *scores.shape[1:]))
        self.held_out_decisions_[rows.all_rows] = scores[rows.all_points]
        if (unused := np.setdiff1d(np.arange(len(self.held_out_decisions_)), rows.all_rows)).size:
            # Any fold will do for rows in no answer.
            self.held_out_decisions_[unused] = self.fold_models_[0][1].decision_function(safe_indexing(X, unused))
        self.best_estimator_ = self
        if self.model_ == "linear" and not rows.n_values.any():
            self.best_estimator_ = self._of_columns(fit.model, self.start_)
            folds = [(its_rows, self._of_columns(fit.model, fold.start_)) for its_rows, fold in self.fold_models_]
            self.best_estimator_.fold_models_ = folds
        return self

    def _of_columns(self, model: Estimator, score: LinearScore) -> Estimator:
        """A copy of the linear model that has this score, with coefficients of the columns of X."""
        model = copy(model)
        model.coef_ = (score.coef * score.scale[:, None]).T
        model.intercept_ = score.intercept - model.coef_ @ score.mean
        model.fold_models_ = []
        model.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model


def compare(names: list[str], values: list[Array], n_known: int) -> tuple[int, dict[str, Any]]:
    """Choose by the held-out log likelihood of each component; the choice, and the table of candidates."""
    table = np.array(values)
    mean = table.sum(axis=1) / n_known
    gaps = table[int(np.argmax(mean.round(10)))] - table
    gap = gaps.sum(axis=1) / n_known
    terms = gaps[:, (np.abs(table) > _ROUNDING).any(axis=0)]
    # The standard error of each sum.
    error = np.sqrt(terms.shape[1] * terms.var(axis=1)) if terms.shape[1] >= _MIN_COMPONENTS else np.nan
    gap_error = np.full(len(table), error) / n_known
    margin = np.maximum(_TIE * np.nan_to_num(gap_error), _TIE_IN_ALL / n_known)
    return int(np.argmax(gap <= margin)), {
        "model": names,
        "mean_test_score": mean,
        "gap_to_best": gap,
        "gap_error": gap_error,
        "rank_test_score": rankdata(-mean.round(10), method="min").astype(np.int64),
    }
