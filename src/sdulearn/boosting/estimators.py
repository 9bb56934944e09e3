"""PairBoostingClassifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.answer_model import ErrorRateParameter
from sdulearn.boosting.rows import TrainingRows
from sdulearn.boosting.score_classifier import ScoreClassifier
from sdulearn.boosting.start import LinearFits
from sdulearn.boosting.training import CrossFit
from sdulearn.extras import require
from sdulearn.sklearn_private import fit_context
from sdulearn.types import MatrixLike


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
    n_classes : int, default=2
        Number of classes.
    prior : float, array-like or None, default=None
        P(y = +1), or the share of each class where there are more than two; None takes it from the answers where
        they imply one.
    prior_strength : float, default=3.0
        Weight of the divergence of the mean prediction on unlabeled rows from the prior.
    orientation : {"majority", "minority"}, default="majority"
        With ``prior=None``: whether the larger or the smaller class is +1.
    error_rate : "auto", float or mapping, default="auto"
        As in :class:`~sdulearn.PairLogisticRegression`: chance that an answer is wrong, for all or for each annotator
        by number; "auto" estimates it where the answers tell.
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
        many rounds is a shade optimistic.
    feature_importances_ : array of shape (n_features,)
        Mean absolute contribution of each column to the score (start and trees together), of sum 1.
    start_ : LinearScore
        The linear score.
    answer_model_ : AnswerModel
        How often answers are wrong, given or estimated.
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

    FITTED = (
        "trees_", "start_parts_", "sign_", "categories_", "n_rounds_", "n_iter_", "held_out_log_likelihood_",
        "feature_importances_", "n_classes_", "order_", "prior_", "answer_model_", "n_features_in_",
        "feature_names_in_",
    )  # fmt: skip

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
        categorical_features: Any = "from_dtype",
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
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
        self.categorical_features = categorical_features
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit from rows and what is known of them.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            One row for each point of an answer, and unlabeled rows; NaN where a value is missing.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            Pair codes, and the columns point, annotator and label, as many as there are.
        sample_weight : array-like of shape (n_rows,), optional
            A weight per row; both ends of a pair carry one weight. Only their ratios matter, and a row of
            weight 0 is left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        # Before minutes are spent on the start.
        require("lightgbm", "boosting")
        rows, seed = self._training_rows(X, y, sample_weight)
        start = self._fit_tree_start(rows, seed)
        trees = self._boost(rows, start, seed)
        self.held_out_log_likelihood_ = trees.curve
        return self._take(rows, start, trees)


class TreesOfRounds(PairBoostingClassifier):
    """Trees with the settings that a fitted model chose, from all answers at once: no fold is left out.

    What that model would be without some of its answers. One booster of nine tenths of the answers is about as good
    as the mean of five boosters of four fifths of all answers each.
    """

    def __init__(
        self,
        *,
        n_rounds: int,
        with_kernel: bool,
        n_classes: int = 2,
        prior: float | None = None,
        prior_strength: float = 3.0,
        error_rate: ErrorRateParameter = "auto",
    ) -> None:
        given = {"prior": prior, "prior_strength": prior_strength, "error_rate": error_rate}
        # The start's penalty is chosen on three folds.
        super().__init__(max_iter=n_rounds, n_classes=n_classes, cv=3, **given)  # type: ignore[arg-type]
        self.n_iter_no_change = None
        self.n_rounds = n_rounds
        self.with_kernel = with_kernel

    def _fit_tree_start(self, rows: TrainingRows, seed: int, linear: LinearFits | None = None) -> LinearFits:
        if self.n_classes > 2:
            return super()._fit_tree_start(rows, seed, linear)
        return self._fit_start(rows, seed, self.with_kernel)

    def _boost(self, rows: TrainingRows, start: LinearFits, seed: int) -> CrossFit:
        whole = replace(rows, fold=np.full_like(rows.fold, -1))
        return super()._boost(whole, replace(start, by_fold=start.all_rows[None]), seed)
