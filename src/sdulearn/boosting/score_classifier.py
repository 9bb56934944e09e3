"""The fitted form of all models here, a linear score plus the mean of some boosters, and the steps of their fits."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sdulearn.answers.answer_model import AnswerModel, ErrorRateParameter, answer_model_of
from sdulearn.base import PairClassifier, class_numbers
from sdulearn.boosting.model_text import read_trees, trees_text, write_trees
from sdulearn.boosting.objective import PointLoss, make_pull
from sdulearn.boosting.rows import (
    Categories,
    TrainingRows,
    checked_categories,
    encode,
    find_categories,
    is_frame,
    take,
)
from sdulearn.boosting.start import Features, LinearFits, LinearScore, constant_start, fit_linear
from sdulearn.boosting.training import cross_boost, held_out_scores
from sdulearn.errors import InputError, require
from sdulearn.io.typed import finite, read
from sdulearn.pairs import read_pairs, weighted_rows
from sdulearn.prior import PriorEstimate
from sdulearn.sklearn_private import Interval, StrOptions
from sdulearn.types import Array, Between, Codes, Count, Indices, MatrixLike, Rows

_ROWS_PER_THREAD = 10_000
# Contributions of columns are means over so many rows.
_ROWS = 500
# A start says something where an answer is likelier by so much, in logarithms, than by one probability for all points,
# of these logits.
_TELLS = 0.01
_CONSTANTS = np.linspace(0, 4, 17)


class ScoreClassifier(PairClassifier):
    """A linear score plus the mean of some boosters: the fitted form of all models here."""

    n_classes: int
    prior: float | None
    prior_strength: float
    orientation: str
    error_rate: ErrorRateParameter
    categorical_features: Any
    learning_rate: float
    max_iter: int
    max_leaf_nodes: int
    l2_regularization: float
    min_hessian: float
    n_iter_no_change: int
    cv: int
    n_jobs: int | None
    random_state: Any

    FITTED: Mapping[str, Any] = {
        "trees_": list[str],
        "start_parts_": dict[str, Any],
        "categories_": dict[str, list[Any]],
        "n_rounds_": Count,
        "n_iter_": Count,
        "feature_importances_": Any,
        "n_classes_": Annotated[int, Between(2, 2**16)],
        "order_": Any,
        "prior_": PriorEstimate | None,
        "answer_model_": AnswerModel,
        "n_features_in_": PairClassifier.FITTED["n_features_in_"],
        "feature_names_in_": list[str],
    }

    start_: LinearScore
    boosters_: list[Any]
    order_: Indices
    categories_: Categories

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left")],
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
        "min_hessian": [Interval(Real, 0, None, closed="left")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "n_classes": [Interval(Integral, 2, None, closed="left")],
        "prior": [Interval(Real, 0, 1, closed="neither"), "array-like", None],
        "prior_strength": [Interval(Real, 0, None, closed="left")],
        "orientation": [StrOptions({"majority", "minority"})],
        "error_rate": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="both"), Mapping],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "start_")

    def decision_function(self, X: MatrixLike) -> Array:
        """Return the log odds of class +1 for each row; with K > 2 classes the logits of each.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows; NaN where a value is missing.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, K)
            The linear start and the trees, added up.
        """
        check_is_fitted(self)
        scores = self._scores(X, self.start_, self.boosters_)
        if scores.ndim > 1:
            return np.asarray(scores[:, self.order_])
        return np.asarray(scores if self.order_[0] == 0 else -scores)

    def _scores(self, X: MatrixLike, start: LinearScore, boosters: list[Any]) -> Array:
        rows = self._encoded(X, reset=False)
        scores = start.decide(rows)
        if boosters:
            threads = self._threads(rows.shape[0])
            scores = scores + sum(b.predict(rows, num_threads=threads) for b in boosters) / len(boosters)
        return scores

    def _rename(self, order: Indices) -> None:
        self.order_ = self.order_[order]
        if self.prior_ is not None and order[0] != 0:
            self.prior_ = self.prior_.mirrored()

    def _encoded(self, X: MatrixLike, reset: bool) -> Rows:
        """Rows as a float matrix with NaN in the gaps."""
        checks: dict[str, Any] = {
            "accept_sparse": "csr",
            "dtype": np.float64,
            "ensure_all_finite": "allow-nan",
            "ensure_min_samples": 2 if reset else 1,
        }
        if not is_frame(X) and not self.categories_:
            rows = validate_data(self, X, reset=reset, **checks)
            # LightGBM knows scipy's matrices, not yet its arrays.
            return sparse.csr_matrix(rows) if sparse.issparse(rows) else rows
        # Names and their number first: encoding goes by them.
        validate_data(self, X, skip_check_array=True, reset=reset)
        return check_array(encode(X, self.categories_), estimator=self, input_name="X", **checks)

    def _training_rows(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[TrainingRows, int]:
        """Rows with their folds, and the seed of the whole fit."""
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        self.categories_ = find_categories(X, self.categorical_features)
        rows = self._encoded(X, reset=True)
        check_consistent_length(rows, y)
        pairs, weight, kept = weighted_rows(read_pairs(y), sample_weight)
        rows = rows if kept is None else take(rows, kept)
        self._remember(pairs)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        layout = TrainingRows(
            rows, pairs, weight, n_folds=self.cv, seed=seed, n_classes=self.n_classes, error_rate=self.error_rate
        )
        if kept is not None:
            layout.all_rows = kept[layout.all_rows]
        return layout, seed

    def _fit_start(self, rows: TrainingRows, seed: int, with_kernel: bool = False) -> LinearFits:
        """The linear model, of the rows or of a kernel map of them, whole and without each fold."""
        features = Features.of(rows.X, self._n_values())
        if with_kernel:
            features = features.with_kernel(rows.points, seed)
        return fit_linear(self, rows, features, seed)

    def _fit_tree_start(self, rows: TrainingRows, seed: int, linear: LinearFits | None = None) -> LinearFits:
        """Where trees begin: at the linear model, or at the shares of the classes where labels lead on from there.

        What a linear model has wrong far from other rows, trees would have to take back. And where it says next to
        nothing of held-out answers, trees leave it by chance alone: there they begin at a kernel map.
        """
        if not rows.leads_from_zero(self.n_classes):
            start = self._fit_start(rows, seed) if linear is None else linear
            if self.n_classes > 2 or self._tells(rows, start):
                return start
            kernel = self._fit_start(rows, seed, with_kernel=True)
            return kernel if self._tells(rows, kernel) else start
        answer_model = answer_model_of(self.error_rate, rows.graph, self.n_classes)
        features = Features.of(rows.X, self._n_values())
        return constant_start(
            features, rows.graph.labels, self.n_classes, answer_model, (len(rows.trains), len(rows.y))
        )

    def _tells(self, rows: TrainingRows, start: LinearFits) -> bool:
        """Whether held-out answers are likelier by a start than by one probability for all points."""
        loss = PointLoss(rows.graph, self.n_classes, start.answer_model)
        scores = held_out_scores(list(start.by_fold[:, rows.first_row]), rows.fold)
        constant = max(loss.value(np.full_like(scores, z)) for z in _CONSTANTS)
        return loss.value(scores) - constant > _TELLS * loss.n_known

    def _threads(self, n_rows: int) -> int:
        """Threads of LightGBM; few rows are slower on several, much slower where the cores are busy."""
        return min(effective_n_jobs(self.n_jobs), max(1, n_rows // _ROWS_PER_THREAD))

    def _boost(self, rows: TrainingRows, start: LinearFits, seed: int) -> tuple[list[Any], Array, Array]:
        """See :func:`~sdulearn.boosting.training.cross_boost`."""
        parameters = {
            "objective": "none",
            "num_class": self.n_classes if self.n_classes > 2 else 1,
            "learning_rate": self.learning_rate,
            "num_leaves": self.max_leaf_nodes,
            "lambda_l2": self.l2_regularization,
            "min_sum_hessian_in_leaf": self.min_hessian,
            # Held-out and unlabeled points count as rows but have (nearly) no curvature.
            "min_data_in_leaf": 1,
            "feature_pre_filter": False,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": self._threads(rows.graph.n_points),
            "seed": seed,
            "verbosity": -1,
        }
        pull = make_pull(rows.graph, start.pull, self.prior_strength)
        categorical = sorted(self.categories_)
        limits = (self.max_iter, self.n_iter_no_change)
        return cross_boost(rows, start, self.n_classes, pull, parameters, categorical, *limits)

    def _take(self, rows: TrainingRows, start: LinearFits, boosters: list[Any], n_iter: int) -> Self:
        """Keep what was found; the boosters are those of the fit, and their text is parsed on loading alone."""
        self.n_classes_ = self.n_classes
        self.classes_ = class_numbers(self.n_classes)
        self.order_ = np.arange(self.n_classes)
        self.prior_ = start.prior
        self.answer_model_ = start.answer_model
        self.start_ = start.score
        self.boosters_ = boosters
        self.trees_ = [trees_text(booster) for booster in boosters]
        self.n_rounds_ = max((booster.current_iteration() for booster in boosters), default=0)
        self.n_iter_ = n_iter
        self.feature_importances_ = mean_contributions(self.start_, boosters, rows.points)
        self.fold_models_ = []
        for k, fold in enumerate(start.folds):
            its_rows = rows.all_rows[rows.fold[rows.all_points] == k]
            self.fold_models_.append((its_rows, FoldScore(self, fold, boosters[k : k + 1])))
        return self

    @property
    def start_parts_(self) -> dict[str, Array]:
        """The linear score as arrays, for the model file."""
        return self.start_.parts()

    def _restore(self, fitted: dict[str, Any]) -> None:
        """Take over what a model file holds, every part checked."""
        parts = read(dict[str, Any], fitted.pop("start_parts_"))
        super()._restore(fitted)
        # Before anything is built of that many features.
        if finite(self.feature_importances_).shape != (self.n_features_in_,):
            raise InputError("importances and number of features do not fit together")
        self.categories_ = checked_categories(fitted["categories_"], self.n_features_in_)
        self.classes_ = class_numbers(self.n_classes_)
        if not np.array_equal(np.sort(self.order_), np.arange(self.n_classes_)):
            raise InputError("the order of the classes does not hold each of them once")
        self.start_ = LinearScore.from_parts(parts, self._n_values(), self.n_classes_)
        shape = (self.n_features_in_, self.n_classes_)
        texts = [write_trees(read_trees(text, *shape), *shape) for text in self.trees_]
        self.boosters_ = [require("lightgbm", "boosting").Booster(model_str=text) for text in texts]

    def _n_values(self) -> Indices:
        """Number of values of each column, 0 for numbers."""
        return np.array([len(self.categories_.get(j, ())) for j in range(self.n_features_in_)], dtype=np.intp)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


class FoldScore:
    """The model of a fold, with the names of the classes that the model of all answers had when it was fitted."""

    def __init__(self, whole: ScoreClassifier, start: LinearScore, boosters: list[Any]) -> None:
        self.whole = whole
        self.start = start
        self.boosters = boosters

    def decision_function(self, X: MatrixLike) -> Array:
        """Log odds of class +1 for each row, or the logits of each class."""
        return self.whole._scores(X, self.start, self.boosters)

    def predict(self, X: MatrixLike) -> Codes:
        """Class of each row."""
        scores = self.decision_function(X)
        return self.whole.classes_[(scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)]


def mean_contributions(start: LinearScore, boosters: list[Any], X: Rows) -> Array:
    """Mean absolute contribution of each column to the score, of sum 1.

    The contribution of a column to the trees is its Shapley value, as LightGBM computes it; to the linear start it is
    ``coef (x - mean)``. Both are in units of the score, so they add up. Of a kernel map it is the change of the
    score where the column is set to its mean.
    """
    some = X[: _ROWS * max(1, X.shape[0] // _ROWS) : max(1, X.shape[0] // _ROWS)]
    total = start.contributions(some)
    n_rows, n_features, n_scores = total.shape
    some = some.toarray() if sparse.issparse(some) else some
    for booster in boosters:
        found = booster.predict(some, pred_contrib=True, num_threads=1).reshape(n_rows, n_scores, n_features + 1)
        # The last column is the mean of the score.
        total = total + found[:, :, :-1].transpose(0, 2, 1) / len(boosters)
    size = np.abs(total).mean(axis=(0, 2))
    return np.asarray(size / size.sum()) if size.sum() > 0 else size
