"""PairBoostingClassifier, and PairModelCV: linear, linear after a kernel map, or trees, as held-out answers say."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from sdulearn.boosting.objective import PointLoss
from sdulearn.boosting.rows import TrainingRows
from sdulearn.boosting.score_classifier import ScoreClassifier, held_out_scores
from sdulearn.boosting.start import LinearFits, LinearScore, fit_linear, fit_other
from sdulearn.errors import InputError, require
from sdulearn.progress import long_work
from sdulearn.sklearn_private import fit_context, safe_indexing
from sdulearn.types import Array, Estimator, MatrixLike

MODELS = ("linear", "nystroem", "boosted")
_FEWEST_COMPONENTS = 10
_ROUNDING = 1e-12
# A later candidate must be better by so many standard errors: a tie keeps the first. A whole one would cost more than
# it saves: half a point of accuracy over the ten sets of the benchmark, at 200 answers.
_TIE = 0.25
# And by so much in the log-likelihood of all answers together: the rounds of trees were chosen by the same held-out
# answers, so they are never worse than their start there. It alone counts where answers hang together, and there is no
# standard error.
_TIE_IN_ALL = 1.0
# Of a candidate: linear part, boosters, held-out likelihood by round, held-out scores of the points.
Candidate = tuple[LinearFits, list[Any], Array, Array]


def with_parameters_of(parent: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a constructor, in the place of ``**parameters``, those of its parent: scikit-learn reads signatures."""

    def signed(init: Callable[..., None]) -> Callable[..., None]:
        *own, _ = inspect.signature(init).parameters.values()
        others = inspect.signature(parent).parameters.values()
        init.__signature__ = inspect.Signature([*own, *others])  # type: ignore[attr-defined]
        return init

    return signed


class PairBoostingClassifier(ScoreClassifier):
    """Boosted trees from same/different answers: the likelihood of the answers, descended by LightGBM.

    The gradient of the likelihood in the score of a point is its probability less its posterior given
    the answers, so trees need nothing new. They start from the linear score of
    :class:`~sdulearn.PairLogisticRegressionCV`, one booster for each fold of the *points*, and stop at the
    round with the highest likelihood of the held-out answers; the model is their mean. Unlabeled rows pull the mean
    prediction to the prior.

    Needs LightGBM: ``pip install 'sdulearn[boosting]'``. Columns need no scaling; NaN is a missing value.

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
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Numbers or names of categorical columns, or those whose type in a frame is a category or a text.
    cv : int, default=5
        Folds over points.
    n_jobs : int or None, default=None
        Most threads of LightGBM; there is one for every 10,000 points.
    random_state : int, RandomState or None, default=0
        Seed of the folds.

    Attributes
    ----------
    boosters_ : list of lightgbm.Booster
        One a fold, cut at the best round; empty where no tree raised the held-out likelihood.
    n_rounds_ : int
        The best round.
    n_iter_ : int
        Rounds tried.
    held_out_log_likelihood_ : array of shape (n_rounds_tried + 1,)
        Mean log-likelihood of a held-out answer after each round; the first is the linear start's. The best of
        many rounds is slightly optimistic.
    feature_importances_ : array of shape (n_features,)
        Mean absolute contribution of each column to the score (start and trees together), of sum 1.
    start_ : LinearScore
        The linear score.
    answer_model_ : AnswerModel
        How often answers are wrong, given or estimated.
    fold_models_ : list of (rows, model)
        The rows of each fold's points, and the model, with ``decision_function`` and ``predict``, that saw no answer
        about them. Not kept in files.
    classes_, prior_, n_features_in_, feature_names_in_
        As in :class:`~sdulearn.PairLogisticRegression`.

    See Also
    --------
    PairModelCV : Chooses between this and linear models.
    pair_objective : The likelihood for a booster of your own.

    Notes
    -----
    A component of the answers counts by the mean ``sample_weight`` of its answers and labels, in units of the mean
    answer: ``min_hessian`` and ``l2_regularization`` do not know the unit of the weights. Of more than 5,000
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
        rows, seed = self._training_rows(X, y, sample_weight)
        start = self._fit_tree_start(rows, seed)
        boosters, self.held_out_log_likelihood_, _ = self._boost(rows, start, seed)
        return self._take(rows, start, boosters, self.held_out_log_likelihood_)


class PairModelCV(ScoreClassifier):
    """The model that held-out answers favour: linear, linear on a kernel map, or boosted trees.

    Every candidate gives each point a score by a model that saw no answer about it, on the same folds over points;
    of the candidates whose likelihood of all answers at these scores is highest, or lower by less than a quarter of its
    standard error or by less than 1 in all, the first is kept. The numbers are slightly optimistic, for all alike.

    Parameters
    ----------
    models : sequence of {"linear", "nystroem", "boosted"} or estimators, default=all three
        The candidates. "nystroem" is a linear model on Nystroem's map of an RBF kernel, "boosted" needs LightGBM
        (``pip install 'sdulearn[boosting]'``). An estimator with as many classes, such as
        :class:`~sdulearn.PairNetworkClassifier`, is fitted as it is.
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
        ``model``, the candidates; ``mean_test_score``, the mean log-likelihood of a held-out answer by each;
        ``gap_to_best`` and ``gap_error``, how far it is below the best one and the standard error of that over
        components of the answers (NaN where there are fewer than ten, or more than two classes); ``rank_test_score``.
    best_estimator_ : estimator
        Where the linear model was chosen and all columns are numbers, a PairLogisticRegressionCV with coefficients of
        the columns of X, which knows no gaps; an estimator among ``models`` that was chosen; else this one itself.
    held_out_decisions_ : array of shape (n_rows,) or (n_rows, K)
        The score of each row by a model that saw no answer about its point; a point that is in too many answers to be
        held out has the mean of the folds. Not kept in files.
    boosters_, n_rounds_, n_iter_, start_, feature_importances_, fold_models_, classes_, prior_, answer_model_
        As in :class:`~sdulearn.PairBoostingClassifier`; ``n_features_in_`` and ``feature_names_in_`` too.

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
    >>> model = PairModelCV(models=["linear", "nystroem"]).fit(rows, codes)
    >>> model.cv_results_["model"]
    ['linear', 'nystroem']
    """

    FITTED: Mapping[str, Any] = {**ScoreClassifier.FITTED, "model_": str, "cv_results_": dict[str, Any]}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScoreClassifier._parameter_constraints,
        "models": ["array-like"],
    }

    @with_parameters_of(ScoreClassifier)
    def __init__(self, models: Sequence[str | Estimator] = MODELS, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.models = models

    @long_work
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit all candidates and keep the best.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As in :meth:`PairBoostingClassifier.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        others = {type(one).__name__: one for one in self.models if not isinstance(one, str)}
        names = [one if isinstance(one, str) else type(one).__name__ for one in self.models]
        if not names or not set(names) <= {*MODELS, *others} or len(set(names)) < len(names):
            known = ", ".join(MODELS)
            raise InputError(
                f"`models` must hold some of {known} and estimators, each once; got `models={self.models!r}`."
            )
        if wrong := [name for name, one in others.items() if getattr(one, "n_classes", None) != self.n_classes]:
            raise InputError(f"{wrong[0]} among `models` must have `n_classes={self.n_classes}`, as PairModelCV has.")
        if "boosted" in names:
            require("lightgbm", "boosting")
        rows, seed = self._training_rows(X, y, sample_weight)
        found = self._candidates(names, others, rows, seed)
        # The first candidate's error rates judge all.
        loss = PointLoss(rows.graph, self.n_classes, found[0][0].answer_model)
        self.cv_results_ = compare(names, [loss.terms(scores)[0] for *_, scores in found], loss.n_known)
        best = first_of_the_best(self.cv_results_, loss.n_known)
        self.model_ = names[best]
        start, boosters, curve, scores = found[best]
        n_rows = len(np.asarray(y))
        self._take(rows, start, boosters, curve)
        self.held_out_decisions_ = np.empty((n_rows, *scores.shape[1:]))
        self.held_out_decisions_[rows.all_rows] = scores[rows.all_points]
        if (unused := np.setdiff1d(np.arange(n_rows), rows.all_rows)).size:
            self.held_out_decisions_[unused] = self.decision_function(safe_indexing(X, unused))
        self.best_estimator_ = self._linear_estimator(start) if self.model_ == "linear" else self
        if self.model_ in others:
            self.best_estimator_ = start.model
        return self

    def _linear_estimator(self, start: LinearFits) -> Estimator:
        """The linear model by the columns of X; this model where these are not numbers alone."""
        if self.categories_:
            return self
        assert isinstance(start.score, LinearScore)
        model = copy(start.model)
        model.coef_ = start.model.coef_ * start.score.features.scale
        model.intercept_ = start.model.intercept_ - model.coef_ @ start.score.features.mean
        model.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model

    def _candidates(
        self, names: list[str], others: dict[str, Estimator], rows: TrainingRows, seed: int
    ) -> list[Candidate]:
        """Fit each candidate."""
        linear = fit_linear(self, rows, seed) if "linear" in names else None
        found: list[Candidate] = []
        for name in names:
            if name == "boosted":
                start = self._fit_tree_start(rows, seed, linear)
                found.append((start, *self._boost(rows, start, seed)))
                continue
            if name in others:
                start = fit_other(others[name], rows)
            else:
                start = linear if name == "linear" and linear else fit_linear(self, rows, seed, with_kernel=True)
            found.append((start, [], np.zeros(1), held_out_scores(start.by_fold, rows.fold)))
        return found


def compare(names: list[str], values: list[Array], n_known: int) -> dict[str, Any]:
    """The table of candidates from the held-out log likelihood of each component of the answers."""
    table = np.array(values)
    mean = table.sum(axis=1) / n_known
    gaps = table[int(np.argmax(mean.round(10)))] - table
    # A point in no answer is a component of its own, of log likelihood 0 but for rounding.
    terms = gaps[:, (np.abs(table) > _ROUNDING).any(axis=0)]
    # That of the sum of each row; too few terms do not tell.
    error = np.sqrt(terms.shape[1] * terms.var(axis=1)) if terms.shape[1] >= _FEWEST_COMPONENTS else np.nan
    return {
        "model": names,
        "mean_test_score": mean,
        "gap_to_best": gaps.sum(axis=1) / n_known,
        "gap_error": np.full(len(table), error) / n_known,
        "rank_test_score": rankdata(-mean.round(10), method="min").astype(np.int64),
    }


def first_of_the_best(table: dict[str, Any], n_known: int) -> int:
    """The first candidate that is hardly worse than the best one."""
    margin = np.maximum(_TIE * np.nan_to_num(table["gap_error"]), _TIE_IN_ALL / n_known)
    return int(np.argmax(table["gap_to_best"] <= margin))
