"""PairLogisticRegression and PairLogisticRegressionCV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.answer_model import AnswerModel, ErrorRateParameter
from sdulearn.answers.graph import AnswerGraph
from sdulearn.base import LinearClassifier
from sdulearn.errors import InputError
from sdulearn.joint.class_model import (
    MOST_CLASSES,
    choose_and_fit,
    find_and_fit,
    fit_classes,
    fold_knowledge,
    lay_out_classes,
    warn_of_empty_classes,
    warn_of_open_number,
)
from sdulearn.joint.data import TrainingData, warn_of_column_scales
from sdulearn.joint.likelihood import TwoClassLikelihood
from sdulearn.joint.path import (
    WORKING_ALPHA,
    PointProblem,
    descend,
    fit_folds,
    fit_path,
    make_starts,
    path_evidence,
    polish,
)
from sdulearn.joint.prior import resolve_graph_prior, resolve_prior
from sdulearn.joint.rates import asks_for_graph, rate_folds, rates_by_models
from sdulearn.model_selection import PairKFold, grid_results, positive_grid
from sdulearn.pairs import Pairs
from sdulearn.prior import PriorEstimate
from sdulearn.sklearn_private import HasMethods, Interval, StrOptions, fit_context
from sdulearn.types import Array, Indices, MatrixLike, Rows, Splitter

# Alphas of the default grid, as multiples of the alpha at which the model leaves zero.
_GRID_TOP = 10**0.5
_GRID_BOTTOM = 10**-3.5


class _PairLogisticBase(LinearClassifier):
    """What the estimator with a given penalty and the one that chooses it share."""

    FITTED = (*LinearClassifier.FITTED, "n_classes_", "class_shares_", "answer_model_")

    n_classes: int | str

    prior_strength: float
    orientation: str
    error_rate: ErrorRateParameter
    init: str
    tol: float
    max_iter: int

    def _lay_out(self, X: Rows, pairs: Pairs, weight: Array | None) -> tuple[PointProblem, PriorEstimate, AnswerModel]:
        """Checked rows as a problem, and the prior and the answer model as reported."""
        if not isinstance(self.prior, Real | None):
            raise InputError(
                f"With two classes `prior` is one number, P(y = +1), or None; got `prior={self.prior!r}`. A list "
                "of class shares goes with `n_classes` above 2."
            )
        warn_of_column_scales(X, weight, getattr(self, "feature_names_in_", None))
        weight = np.ones(pairs.n_rows) if weight is None else weight
        graph = AnswerGraph.from_y(pairs, weight)
        data = TrainingData.of(X, graph, pairs.codes, weight, pairs_first=True)
        model = self._answer_model(X, pairs, data)
        likelihood = TwoClassLikelihood(data.graph, model, data.weight)
        strength = float(self.prior_strength)
        if likelihood.is_loose and likelihood.is_certain:
            by_pair = weight[pairs.ends[:, 0]]
            counts = float(by_pair @ pairs.similar), float(by_pair @ ~pairs.similar), float(by_pair @ by_pair)
            estimate, prior = resolve_prior(self, *counts)
            return PointProblem(data, likelihood, prior, strength), estimate, model
        estimate, prior = resolve_graph_prior(self, pairs, weight, data.graph, model)
        if self.prior is not None or prior is None:
            return PointProblem(data, likelihood, prior, strength), estimate, model
        # Beside labels, which tell where the boundary is, and of answers that may be wrong, which tell little of it,
        # an estimated prior pulls nothing.
        if not likelihood.labelled.any():
            strength = strength if likelihood.is_certain else 0.0
            return PointProblem(data, likelihood, prior, strength), estimate, model
        problem = PointProblem(data, likelihood, None, 0.0)
        alpha = WORKING_ALPHA * problem.moments.largest_alpha(1.0)
        share, _ = problem.positive_share(descend(self, problem, alpha, 1.0))
        return problem, estimate if (share > 0.5) == (prior > 0.5) else estimate.mirrored(), model

    def _answer_model(self, X: Rows, pairs: Pairs, data: TrainingData) -> AnswerModel:
        """Given, or estimated."""
        if not asks_for_graph(self.error_rate, pairs):
            return AnswerModel.unknown(*np.unique(pairs.answer_annotators, return_counts=True))
        if not isinstance(self.error_rate, str):
            return AnswerModel.given(self.error_rate, data.graph)
        n_folds = rate_folds(data.graph)
        if n_folds < 2:
            return AnswerModel.estimate(data.graph)
        folds = PairKFold(n_folds, random_state=0).split(X, pairs)
        return rates_by_models(data, data.known_to_folds(folds))


class PairLogisticRegression(_PairLogisticBase):
    """Logistic regression from same/different answers: the joint likelihood of all that is known.

    With ``s(x) = logistic(w.x + b)`` the chance of the answer "same" is ``s(x) s(x') + (1 - s(x))
    (1 - s(x'))``. Answers that share points (column 1 of ``y``) have the likelihood of their connected
    component: the answers say on which side each point is, up to one flip, so that n answers about
    one point and n others are worth n labels. Labels (column 3) fix the flip of their component and
    name the classes; with labels alone it is logistic regression. Answers may be wrong, at a rate for
    each annotator (column 2). The estimator maximises this likelihood, with a penalty on w and,
    where the prior p is given or the counts imply one, the penalty ``prior_strength KL(p || mean
    prediction on unlabeled rows)``. It needs no prior and works at 1/2, where the risks of
    :class:`~sdulearn.SDUClassifier` are undefined. The problem is not convex: it is started from
    the top eigenvector of the whitened pair moment and from the SD solution, down a path of
    penalties.

    Where the rows of one point differ, the point is their mean, by weight. Standardise the features first.
    Time O((n_pairs + n_unlabeled) d) a step after one eigendecomposition of a d x d matrix; rows are
    kept dense in their principal axes, O(n min(n, d)) memory. Answers that may be wrong take some
    ten times as long, as messages are sent between their points.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of the penalty, beside the *mean* loss of an answer that says something new (k points
        of a component are k - 1 such answers) or a label.
    covariance_power : float, default=1
        Power k of the (weighted) covariance of all rows in the penalty ``w' C^-k w``: 0 is the plain ridge,
        a larger one favours directions along which the rows, unlabeled ones too, vary most.
    n_classes : int, default=2
        Number of classes. More than two are a softmax of as many lines.
    prior : float, sequence of K floats or None, default=None
        P(y = +1); None takes it from the pair counts where they imply one. With K > 2 classes their
        shares, or None, which is no pull to any.
    prior_strength : float, default=3
        Weight of the divergence of the mean prediction on unlabeled rows from the prior. An estimated prior
        pulls nothing where there are labels or answers may be wrong.
    orientation : {"majority", "minority"}, default="majority"
        With ``prior=None``: whether the larger or the smaller class, by the prediction on unlabeled
        rows, is +1.
    error_rate : "auto", float or mapping, default="auto"
        Probability that an answer is wrong, from 0 to 1/2: one for all, or one for each annotator
        (0: not known). "auto" estimates it from repeated questions, cycles of answers and labels
        and, with several annotators, from models of the answers of the others. Where nothing tells,
        as with loose pairs of one annotator, it is 0; ``answer_model_`` says so.
    init : {"auto", "moment"}, default="auto"
        "auto" starts from the pair moment and the SD solution, "moment" from the first alone.
    tol : float, default=1e-6
        Largest gradient norm (in the norm of the Hessian) that passes without a ConvergenceWarning.
    max_iter : int, default=100
        Largest number of Newton iterations of the polish.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (K, n_features)
        Weights; with K > 2 classes one row each, of sum 0.
    intercept_ : array of shape (1,) or (K,)
        Intercept, or intercepts.
    classes_ : int array
        -1 and +1; with K > 2 classes 1 to K, the largest first unless labels or ``prior`` name them.
    n_classes_ : int
        Number of classes.
    class_shares_ : array of shape (K,)
        With K > 2 classes the mean prediction on unlabeled rows, or on all where there are none.
    n_features_in_, feature_names_in_
        As in :class:`~sdulearn.SDUClassifier`.
    prior_ : PriorEstimate or None
        The given class prior, or the one that the pair counts imply, with its interval; None with
        more than two classes.
    answer_model_ : AnswerModel
        How often answers are wrong, all and those of each annotator, with intervals.
    objective_ : float
        Value reached, the best of all starts.
    optimality_ : float
        Norm of the gradient there; see ``tol``.
    n_iter_ : int
        Newton iterations of the polish; with more than two classes evaluations of the objective.

    See Also
    --------
    PairLogisticRegressionCV : Chooses ``alpha`` and ``covariance_power``.
    SDUClassifier : The paper's risks, which use the two ends of a pair apart from each other.
    sdulearn.distributed.PairLogisticRegression : The same on a Dask cluster.

    Notes
    -----
    This likelihood is not in [1]_. From there are one of the starts, by the SD risk, and the
    estimate of the class prior from pair counts.

    References
    ----------
    .. [1] T. Shimada, H. Bao, I. Sato and M. Sugiyama, "Classification from Pairwise
       Similarities/Dissimilarities and Unlabeled Data via Empirical Risk Minimization", Neural
       Computation 33 (2021).

    Examples
    --------
    >>> from sdulearn import PairLogisticRegression
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=200, n_unlabeled=500, prior=0.7, n_test=500, random_state=0
    ... )
    >>> model = PairLogisticRegression().fit(rows, codes)
    >>> bool((model.predict(X_test) == y_test).mean() > 0.88)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "covariance_power": [Interval(Real, 0, 4, closed="both")],
        "n_classes": [Interval(Integral, 2, None, closed="left")],
        "prior": [Interval(Real, 0, 1, closed="neither"), "array-like", None],
        "prior_strength": [Interval(Real, 0, None, closed="left")],
        "orientation": [StrOptions({"majority", "minority"})],
        "error_rate": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="both"), Mapping],
        "init": [StrOptions({"auto", "moment"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        covariance_power: float = 1,
        n_classes: int = 2,
        prior: float | Sequence[float] | None = None,
        prior_strength: float = 3.0,
        orientation: str = "majority",
        error_rate: str | float | Mapping[int, float] = "auto",
        init: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        self.alpha = alpha
        self.covariance_power = covariance_power
        self.n_classes = n_classes
        self.prior = prior  # type: ignore[assignment]
        self.prior_strength = prior_strength
        self.orientation = orientation
        self.error_rate = error_rate
        self.init = init
        self.tol = tol
        self.max_iter = max_iter

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit from rows and pair codes.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            One row per point: ends of pairs and unlabeled points.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            Pair codes (+k similar, -k dissimilar, 0 in no pair), and beside them point, annotator and
            label; see :func:`~sdulearn.stack_pairs`.
        sample_weight : array-like of shape (n_rows,), optional
            A weight per row; both ends of a pair carry one weight. Only their ratios matter, and a row of
            weight 0 is left out. A component counts by the mean weight of its answers and labels; mean and
            covariance of the rows are weighted too.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            Where answers that are never wrong contradict each other or the labels.
        """
        X, pairs, weight = self._check_rows(X, y, sample_weight)
        self._remember(pairs)
        if self.n_classes != 2:
            return self._fit_classes(X, pairs, weight)
        problem, prior, model = self._lay_out(X, pairs, weight)
        v = descend(self, problem, self.alpha, self.covariance_power)
        fitted: dict[str, object] = {"answer_model_": model}
        return self._accept(polish(self, problem, v, self.alpha, self.covariance_power, prior, fitted))

    def _fit_classes(self, X: Rows, pairs: Pairs, weight: Array | None) -> Self:
        """Fit more than two classes."""
        warn_of_column_scales(X, weight, getattr(self, "feature_names_in_", None))
        data, _, model = lay_out_classes(self, X, pairs, weight, int(self.n_classes))
        fit = fit_classes(data, self, self.alpha, self.covariance_power)
        warn_of_empty_classes(X, data, fit)
        return self._accept(replace(fit, fitted={"answer_model_": model}))


class PairLogisticRegressionCV(_PairLogisticBase):
    """PairLogisticRegression with its penalty chosen from the pairs alone; the one to try first.

    The covariance power is chosen by Laplace's evidence. Of loose pairs alpha is then chosen by the
    held-out log-likelihood, in folds over points that start from their own answers. Of answers that
    share points, may be wrong or come with labels the evidence chooses it too: folds cut them apart,
    and on the benchmark sets it is the better judge.

    Parameters
    ----------
    alphas : int or sequence of float, default=8
        Penalties to try; a number stands for that many on a grid that begins where the model leaves
        zero.
    covariance_powers : sequence of float, default=(0, 1, 2)
        Powers of the covariance in the penalty to try. With more than two classes the first is taken.
    n_classes : int or "auto", default=2
        Number of classes. "auto" tries from the fewest that the answers force and keeps the fewest within one
        standard error of the best held-out likelihood. A :class:`~sdulearn.errors.ClassNumberWarning` says where
        the answers leave the number open, or do not support the one given.
    prior, prior_strength, orientation, error_rate
        As in :class:`~sdulearn.PairLogisticRegression`.
    cv : int or splitter, default=5
        Number of pair-safe folds (dealt with a fixed seed), or an object such as
        :class:`~sdulearn.PairKFold`. Of two classes they choose alpha for loose pairs alone; else they tell in
        ``cv_results_`` how likely held-out answers are.
    init, tol, max_iter
        As in :class:`~sdulearn.PairLogisticRegression`.

    Attributes
    ----------
    alpha_, covariance_power_ : float
        The choice.
    cv_results_ : dict
        As GridSearchCV's, over the alphas of the chosen power; a score is the mean log-likelihood
        of a held-out answer or label.
    evidence_ : array of shape (n_alphas, n_powers)
        Laplace's log evidence of every setting; -inf where the model is empty and names no classes. Only
        with two classes.
    temperature_ : float
        With more than two classes what the coefficients of the solution were divided by, so that its
        probabilities suit held-out answers best.
    alphas_ : array of shape (n_alphas, n_powers)
        The penalties tried.
    n_classes_interval_ : tuple of two int, or None
        With ``n_classes="auto"`` the fewest and the most classes that the answers allow: of the numbers within two
        standard errors of the best held-out likelihood the smallest, and the most classes that one has in use. Where
        there are fewer than five "same" answers and labels for each of these, the most is at least the number of
        equally large classes that the share of "same" answers allows, at most 20.
    coef_, intercept_, classes_, n_classes_, class_shares_, prior_, answer_model_, objective_, optimality_, n_iter_
        As in :class:`~sdulearn.PairLogisticRegression`, from all answers.
    n_features_in_, feature_names_in_
        As in :class:`~sdulearn.SDUClassifier`.

    See Also
    --------
    PairLogisticRegression : With a given penalty.
    SDUClassifierCV : The same choice for the paper's risks.

    Examples
    --------
    >>> from sdulearn import PairLogisticRegressionCV
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=200, n_unlabeled=500, prior=0.7, n_test=500, random_state=0
    ... )
    >>> model = PairLogisticRegressionCV().fit(rows, codes)
    >>> bool((model.predict(X_test) == y_test).mean() > 0.88)
    True
    """

    FITTED = (
        *_PairLogisticBase.FITTED, "alpha_", "covariance_power_", "temperature_", "cv_results_", "evidence_", "alphas_",
        "n_classes_interval_",
    )  # fmt: skip

    n_classes_interval_: tuple[int, int] | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: constraint
            for name, constraint in PairLogisticRegression._parameter_constraints.items()
            if name not in ("alpha", "covariance_power")
        },
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "covariance_powers": ["array-like"],
        "n_classes": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"])],
    }

    def __init__(
        self,
        alphas: int | Sequence[float] = 8,
        *,
        covariance_powers: Sequence[float] = (0, 1, 2),
        n_classes: int | str = 2,
        prior: float | Sequence[float] | None = None,
        prior_strength: float = 3.0,
        orientation: str = "majority",
        error_rate: str | float | Mapping[int, float] = "auto",
        cv: Splitter = 5,
        init: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        self.alphas = alphas
        self.covariance_powers = covariance_powers
        self.n_classes = n_classes
        self.prior = prior  # type: ignore[assignment]
        self.prior_strength = prior_strength
        self.orientation = orientation
        self.error_rate = error_rate
        self.cv = cv
        self.init = init
        self.tol = tol
        self.max_iter = max_iter

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the covariance power and alpha, then fit on all pairs.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As in :meth:`PairLogisticRegression.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        powers = self._powers()
        X, pairs, weight = self._check_rows(X, y, sample_weight)
        self.n_classes_interval_ = None
        self._remember(pairs)
        if self.n_classes != 2 and self._fit_classes(X, pairs, weight, powers):
            return self
        problem, prior, model = self._lay_out(X, pairs, weight)
        moments = problem.moments
        alphas = self._grid(np.array([moments.largest_alpha(power) for power in powers]))
        path = fit_path(problem, moments, alphas, powers, make_starts(self, moments))
        evidence = path_evidence(problem, alphas, powers, path)
        empty = problem.empty(alphas, powers, path)
        if not empty.all():
            evidence[empty] = -np.inf
        row, best = np.unravel_index(np.argmax(evidence), evidence.shape)
        known = problem.data.known_to_folds(self._splits(X, pairs))
        scores, _ = fit_folds(problem, alphas[:, best], powers[best], known)
        results = grid_results([{"alpha": float(alpha)} for alpha in alphas[:, best]], scores)
        if problem.is_loose:
            # Loose pairs lose nothing by folds.
            row = np.argmax(np.where(np.isfinite(evidence[:, best]), results["mean_test_score"], -np.inf))
        alpha = float(alphas[row, best])
        fitted = {
            "alpha_": alpha,
            "covariance_power_": powers[best],
            "cv_results_": results,
            "evidence_": evidence,
            "alphas_": alphas,
            "answer_model_": model,
        }
        return self._accept(polish(self, problem, path[row, :, best], alpha, powers[best], prior, fitted))

    def _fit_classes(self, X: Rows, pairs: Pairs, weight: Array | None, powers: list[float]) -> bool:
        """Fit more than two classes; False where "auto" finds two."""
        warn_of_column_scales(X, weight, getattr(self, "feature_names_in_", None))
        if self.n_classes == "auto" and self.prior is not None:
            raise InputError("`prior` needs a number of classes: with `n_classes='auto'` it must be None.")
        n_classes = MOST_CLASSES if self.n_classes == "auto" else int(self.n_classes)
        data, points, model = lay_out_classes(self, X, pairs, weight, n_classes)
        folds = fold_knowledge(points, self._splits(X, pairs))
        alphas = self.alphas
        if not isinstance(alphas, Integral):
            alphas = positive_grid("alphas", np.asarray(alphas).tolist())
        if self.n_classes == "auto":
            fit, self.n_classes_interval_ = find_and_fit(X, data, self, alphas, powers, folds)
            warn_of_open_number(data, fit, self.n_classes_interval_)
        else:
            fit = choose_and_fit(data, self, alphas, powers, folds)
            warn_of_empty_classes(X, data, fit)
        if fit is None:
            return False
        self._accept(replace(fit, fitted={**fit.fitted, "answer_model_": model}))
        return True

    def _splits(self, X: Rows, pairs: Pairs) -> list[tuple[Indices, Indices]]:
        cv = PairKFold(int(self.cv), random_state=0) if isinstance(self.cv, Integral) else self.cv
        # Only our own splitter knows what was read already.
        return list(cv.split(X, pairs if isinstance(cv, PairKFold) else np.asarray(pairs)))

    def _powers(self) -> list[float]:
        powers = [float(power) for power in self.covariance_powers]
        if not powers or not all(0 <= power < np.inf for power in powers):
            raise InputError(
                "`covariance_powers` must hold at least one power, all finite and none below 0; "
                f"got `covariance_powers={self.covariance_powers!r}`."
            )
        return powers

    def _grid(self, largest: Array) -> Array:
        """Alphas that fall, one column a power."""
        if isinstance(self.alphas, Integral):
            return np.outer(np.geomspace(_GRID_TOP, _GRID_BOTTOM, int(self.alphas)), largest)
        given = sorted(positive_grid("alphas", np.asarray(self.alphas).tolist()), reverse=True)
        return np.repeat(np.array(given)[:, None], len(largest), axis=1)
