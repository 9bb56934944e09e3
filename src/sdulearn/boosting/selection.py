"""PairModelCV: a line, a line after a kernel map, or trees, as the held-out answers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from sdulearn.answers.answer_model import ErrorRateParameter
from sdulearn.boosting.estimators import PairBoostingClassifier
from sdulearn.boosting.rows import TrainingRows
from sdulearn.boosting.score_classifier import ScoreClassifier
from sdulearn.boosting.start import LinearFits
from sdulearn.boosting.training import CrossFit, held_out_scores
from sdulearn.errors import InputError
from sdulearn.extras import is_there, require
from sdulearn.joint import PairLogisticRegressionCV
from sdulearn.sklearn_private import fit_context
from sdulearn.types import Array, Estimator, MatrixLike

MODELS = ("linear", "nystroem", "boosted")
_FEWEST_COMPONENTS = 10
_ROUNDING = 1e-12


class PairModelCV(ScoreClassifier):
    """The model that held-out answers favour: linear, linear on a kernel map, or boosted trees.

    Every candidate gives each point a score by a model that saw no answer about it, on the same folds over points;
    the candidate with the highest likelihood of all answers at these scores is kept. Each candidate has its own
    settings (penalty, rounds) chosen on answers too, so the numbers are a shade optimistic, for all alike.

    Parameters
    ----------
    models : sequence of {"linear", "nystroem", "boosted"}, default=all three
        The candidates; of equal ones the first is kept. "nystroem" is a linear model on Nystroem's map of an RBF
        kernel, "boosted" needs LightGBM (``pip install 'sdulearn[boosting]'``).
    n_classes, prior, prior_strength, orientation, error_rate, categorical_features
        As in :class:`~sdulearn.PairBoostingClassifier`.
    learning_rate, max_iter, max_leaf_nodes, l2_regularization, min_hessian, n_iter_no_change
        Of the trees, as in :class:`~sdulearn.PairBoostingClassifier`.
    cv, n_jobs, random_state
        As in :class:`~sdulearn.PairBoostingClassifier`.

    Attributes
    ----------
    model_ : str
        The choice.
    cv_results_ : dict
        ``model``, the candidates; ``mean_test_score``, the mean log-likelihood of a held-out answer by each;
        ``gap_to_best`` and ``gap_error``, how far it is below the best one and the standard error of that over
        components of the answers (NaN where there are fewer than ten, or more than two classes); ``rank_test_score``.
    boosters_, n_rounds_, n_iter_, start_, feature_importances_, classes_, prior_, n_features_in_, feature_names_in_
        As in :class:`~sdulearn.PairBoostingClassifier`.

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

    FITTED = (
        "model_", "cv_results_", "trees_", "start_parts_", "sign_", "categories_", "n_rounds_", "n_iter_",
        "feature_importances_", "n_classes_", "order_", "prior_", "answer_model_", "n_features_in_",
        "feature_names_in_",
    )  # fmt: skip

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScoreClassifier._parameter_constraints,
        "models": ["array-like"],
    }

    def __init__(
        self,
        models: Sequence[str] = MODELS,
        *,
        n_classes: int = 2,
        prior: float | None = None,
        prior_strength: float = 3.0,
        orientation: str = "majority",
        error_rate: ErrorRateParameter = "auto",
        categorical_features: Any = "from_dtype",
        learning_rate: float = 0.1,
        max_iter: int = 500,
        max_leaf_nodes: int = 8,
        l2_regularization: float = 1.0,
        min_hessian: float = 1.0,
        n_iter_no_change: int = 30,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.models = models
        self.n_classes = n_classes
        self.prior = prior
        self.prior_strength = prior_strength
        self.orientation = orientation
        self.error_rate = error_rate
        self.categorical_features = categorical_features
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.l2_regularization = l2_regularization
        self.min_hessian = min_hessian
        self.n_iter_no_change = n_iter_no_change
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        names = _checked_names(self.models)
        if "boosted" in names:
            require("lightgbm", "boosting")
        rows, seed = self._training_rows(X, y, sample_weight)
        found = self._candidates(names, rows, seed)
        # The first candidate's error rates judge all.
        loss = self._loss(rows, found[0][0])
        self.cv_results_ = compare(names, [loss.by_component(scores) for _, _, scores in found], loss.n_known)
        best = int(np.argmin(self.cv_results_["rank_test_score"]))
        self.model_ = names[best]
        start, trees, _ = found[best]
        return self._take(rows, start, trees)

    def _candidates(
        self, names: list[str], rows: TrainingRows, seed: int
    ) -> list[tuple[LinearFits, CrossFit | None, Array]]:
        """Of each candidate the linear part, the trees, and the held-out scores of the points."""
        linear = self._fit_start(rows, seed) if "linear" in names else None
        found: list[tuple[LinearFits, CrossFit | None, Array]] = []
        for name in names:
            if name == "boosted":
                start = self._fit_tree_start(rows, seed, linear)
                trees = self._boost(rows, start, seed)
                found.append((start, trees, trees.scores))
                continue
            if name == "nystroem":
                start = self._fit_start(rows, seed, with_kernel=True)
            else:
                assert linear is not None
                start = linear
            found.append((start, None, held_out_scores(list(start.by_fold[:, rows.first_row]), rows.fold)))
        return found


def _checked_names(models: Sequence[str]) -> list[str]:
    names = [str(name) for name in models]
    if not names or not set(names) <= set(MODELS) or len(set(names)) < len(names):
        raise InputError(f"`models` must hold some of {', '.join(MODELS)}, each once; got `models={models!r}`.")
    return names


def compare(names: list[str], values: list[Array], n_known: int) -> dict[str, Any]:
    """The table of candidates from the held-out log likelihood of each component of the answers."""
    table = np.array(values)
    mean = table.sum(axis=1) / n_known
    gaps = table[int(np.argmax(mean.round(10)))] - table
    # A point in no answer is a component of its own, of log likelihood 0 but for rounding.
    answered = (np.abs(table) > _ROUNDING).any(axis=0)
    return {
        "model": names,
        "mean_test_score": mean,
        "gap_to_best": gaps.sum(axis=1) / n_known,
        "gap_error": _standard_error(gaps[:, answered]) / n_known,
        "rank_test_score": rankdata(-mean.round(10), method="min").astype(np.int64),
    }


def _standard_error(terms: Array) -> Array:
    """That of the sum of each row; NaN where there are too few terms to tell."""
    n = terms.shape[1]
    if n < _FEWEST_COMPONENTS:
        return np.full(len(terms), np.nan)
    return np.asarray(np.sqrt(n * terms.var(axis=1)))


def make_pair_estimator(model: str, **parameters: Any) -> Estimator:
    """The estimator that a name stands for, for callers that let users choose by name."""
    if model == "linear":
        return PairLogisticRegressionCV(**parameters)
    if model == "boosted":
        return PairBoostingClassifier(**parameters)
    if model != "auto":
        raise InputError(f"`model` must be 'auto', 'linear' or 'boosted', got {model!r}.")
    there = is_there("lightgbm")
    return PairModelCV(MODELS if there else MODELS[:2], **parameters)
