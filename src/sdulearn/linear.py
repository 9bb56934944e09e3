"""SDUClassifier and SDUClassifierCV: linear models by the marginal risks of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length, validate_data

from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.y import U, check_weights, read_columns
from sdulearn.base import Fit, LinearClassifier
from sdulearn.errors import InputError, OrientationWarning, UndeterminedError, warn
from sdulearn.losses import TRAINING_LOSSES, LinearOddLoss, ZeroOne, get_training_loss
from sdulearn.model_selection import HeldOut, grid_results, positive_grid, row_splits
from sdulearn.prior import PriorEstimate, needed_prior
from sdulearn.risks import (
    MIXED_RISKS,
    RISKS,
    Mixture,
    even_and_linear,
    marginal_risk,
    mixture,
    row_weights,
    validation_risk,
)
from sdulearn.sklearn_private import HasMethods, Interval, StrOptions, fit_context
from sdulearn.solvers import SOLVERS, choose_solver, solve, warn_unless
from sdulearn.solvers.linalg import check_system_size, with_ones
from sdulearn.solvers.problem import Design, Solution
from sdulearn.statistics import PairStatistics, moment_problem, source_moments
from sdulearn.types import Array, Codes, Estimator, Indices, Mask, MatrixLike, Rows, Splitter

# Fits of the interior point method within folds stop at this residual: they are only compared with each other.
_FOLD_TOL = 1e-3
# A penalty, a mixture, and the fitted attributes of the choice.
Choice = tuple[float, Mixture, dict[str, Any]]


class Settings(NamedTuple):
    """Penalties (outer) and mixtures (inner) to try; the one gamma may be None."""

    alphas: list[float]
    gammas: list[float | None]
    mixtures: list[Mixture]

    def choose(self, scores: Array) -> Choice:
        """Return the first of the best settings by scores (n_splits, n_settings)."""
        grid = product(self.alphas, self.gammas)
        params = [{"alpha": a} if g is None else {"alpha": a, "gamma": g} for a, g in grid]
        results = grid_results(params, scores)
        i, j = divmod(int(np.argmin(results["rank_test_score"])), len(self.gammas))
        chosen: dict[str, Any] = {"alpha_": self.alphas[i], "gamma_": self.gammas[j], "cv_results_": results}
        return self.alphas[i], self.mixtures[j], chosen


@dataclass
class Grid:
    """All settings on one data set; ``fold`` scores them on one split."""

    model: SDUClassifierCV
    settings: Settings
    design: Design
    source: Indices
    weight: Array
    prior: float

    def __post_init__(self) -> None:
        self.loss = get_training_loss(self.model.loss)
        self.solver = choose_solver(self.model.solver, self.loss, self.design.A.shape[1])
        # The interior point method gains one digit per iteration; Newton's last digits come for free.
        self.tol = max(self.model.tol, _FOLD_TOL if self.solver == "interior_point" else 0.0)

    def fold(self, train: Indices, test: Indices) -> tuple[Array, Mask]:
        """Score every setting, fitted on ``train``, on ``test``; and the sides of these rows (n_test, n_settings)."""
        W = self._closed_form_fold(train) if self.solver == "closed_form" else self._iterative_fold(train)
        decisions = self.design.A[test] @ W.reshape(-1, W.shape[-1]).T
        risk = mixture(validation_risk(self.source[test]))
        risks = marginal_risk(decisions, self.source[test], risk, self.prior, ZeroOne(), self.weight[test])
        by_setting = np.arange(risks.size).reshape(W.shape[:2]).T.ravel()
        return 1 - risks[by_setting], decisions[:, by_setting] > 0

    def _closed_form_fold(self, train: Indices) -> Array:
        """Solve every setting from the moments of the rows."""
        A = self.design.A[train]
        A = A if self.design.fit_intercept else with_ones(A)
        moments = source_moments(A, self.source[train], self.weight[train])
        alphas = self.settings.alphas
        system = (moments, np.zeros(moments.shape[1] - 1), self.design.fit_intercept)
        problems = [moment_problem(*system, g, self.prior, self.loss, alphas[0]) for g in self.settings.mixtures]
        return np.array([problem.ridge_path(alphas) for problem in problems])

    def _iterative_fold(self, train: Indices) -> Array:
        """Solve every setting, from its neighbours' solutions: the last alpha, the last gamma."""
        design = replace(self.design, A=self.design.A[train])
        paths: list[list[Solution]] = []
        for g in self.settings.mixtures:
            weights = row_weights(g, self.prior, self.source[train], self.weight[train])
            problem = design.problem(*even_and_linear(*weights), self.loss, self.settings.alphas[0])
            path: list[Solution] = []
            for k, alpha in enumerate(self.settings.alphas):
                starts = path[-1:] + [Solution(last[k].w, 0) for last in paths[-1:]]
                problem = problem.with_penalty(alpha)
                solution = solve(problem, self.solver, self.tol, self.model.max_iter, starts)
                warn_unless(solution.optimality, self.tol, solution.n_iter)
                path.append(solution)
            paths.append(path)
        return np.array([[solution.w for solution in path] for path in paths])


def _loss_has_probability(estimator: Estimator) -> bool:
    if not hasattr(get_training_loss(estimator.loss), "probability"):
        raise AttributeError(
            f"The decision values of `loss={estimator.loss!r}` are not log odds, which predict_proba needs. Fit with "
            "`loss='logistic'`, or use PairLogisticRegressionCV."
        )
    return True


def _loss_is_additive(estimator: Estimator) -> bool:
    loss = get_training_loss(estimator.loss)
    if not hasattr(loss, "curvature") or choose_solver(estimator.solver, loss, 1) != "closed_form":
        raise AttributeError(
            "partial_fit needs sums of the rows alone, as squared loss in closed form does. Use `loss='squared'` with "
            "`solver='auto'`, or sdulearn.large.fit_rows, which keeps a sample of the unlabeled rows."
        )
    return True


def _exact_linear_term(design: Design, m: Array, source: Indices, moments: PairStatistics) -> Array:
    """Return ``sum m x`` with the exact mean of all unlabeled rows, of which the design has a sample."""
    drawn = source == U
    mean = moments.mean_and_covariance(U)[0] - design.shift
    mean = np.append(mean, 1.0) if design.fit_intercept else mean
    return np.asarray(design.A.T @ np.where(drawn, 0.0, m) + m[drawn].sum() * mean)


class _SDUBase(LinearClassifier):
    risk: str | Sequence[float]
    loss: str | LinearOddLoss
    fit_intercept: bool
    solver: str
    max_iter: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "risk": [StrOptions(set(RISKS)), "array-like"],
        "loss": [StrOptions(set(TRAINING_LOSSES)), HasMethods(["value"])],
        "prior": [Interval(Real, 0, 1, closed="neither"), None],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def _fit(self, X: Rows, graph: AnswerGraph, moments: PairStatistics | None = None) -> Self:
        # Rows that partial_fit added before belong to another fit.
        self.__dict__.pop("statistics_", None)
        settings = self._settings()
        loss = get_training_loss(self.loss)
        prior = needed_prior(self.prior, graph)
        design = Design.from_rows(X, self.fit_intercept, in_span=moments is None)
        alpha, g, chosen = self._choose(settings, X, design, graph, prior.value)
        weights = even_and_linear(*row_weights(g, prior.value, graph.source, graph.row_weight))
        problem = design.problem(*weights, loss, alpha)
        solver = choose_solver(self.solver, loss, len(problem.c))
        if moments is not None and solver == "closed_form":
            self._accept_moments(moments, prior, (alpha, g, chosen))
        else:
            if moments is not None:
                problem = replace(problem, c=_exact_linear_term(design, weights[1], graph.source, moments))
            solution = solve(problem, solver, self.tol, self.max_iter)
            solution = design.certified(*weights, loss, alpha, solution)
            self._accept_solution(solution, design.coefficients(solution.w), prior, chosen)
        if graph.labels.any():
            self._name_by_labels(X, graph.labels[graph.row_point])
        return self

    def _accept_moments(self, statistics: PairStatistics, prior: PriorEstimate, choice: Choice) -> None:
        """Fit squared loss from moments alone."""
        alpha, g, chosen = choice
        problem = statistics.problem(g, prior.value, get_training_loss(self.loss), alpha, self.fit_intercept)
        solution = problem.certified(problem.ridge_path([alpha])[0])
        self._accept_solution(solution, problem.coefficients(solution.w), prior, chosen)

    def _accept_solution(
        self, solution: Solution, plane: tuple[Array, float], prior: PriorEstimate, chosen: dict[str, object]
    ) -> None:
        coef, intercept = np.atleast_2d(plane[0]), np.array([plane[1]])
        self._accept(
            Fit(coef, intercept, solution.objective, solution.optimality, solution.n_iter, prior, fitted=chosen)
        )

    def _name_by_labels(self, X: Rows, labels: Codes) -> None:
        """Let labels name the classes: the risks do not learn from them."""
        labelled = np.flatnonzero(labels)
        prior = self.prior_
        self.orient(X[labelled], labels[labelled])
        if self.prior is not None and self.prior_ != prior:
            warn(
                f"Most labels call the class of `prior={self.prior:g}` -1, so P(y = +1) is {1 - self.prior:g} now. "
                "Check the labels, or give the prior of the other class.",
                OrientationWarning,
            )

    def _settings(self) -> Settings:
        raise NotImplementedError

    def _choose(self, settings: Settings, X: Rows, design: Design, graph: AnswerGraph, prior: float) -> Choice:
        return settings.alphas[0], settings.mixtures[0], {}

    @available_if(_loss_has_probability)
    def predict_proba(self, X: MatrixLike) -> Array:
        positive = get_training_loss(self.loss).probability(self.decision_function(X))
        return np.column_stack([1 - positive, positive])


@dataclass(eq=False, repr=False)
class SDUClassifier(_SDUBase):
    """Linear classifier from similar and dissimilar pairs and unlabeled rows, by an unbiased risk.

    Minimises ``risk(w, b) + alpha / 2 |w|^2``. Standardise the features first, for example in a ``Pipeline``.

    Parameters
    ----------
    risk : {"su", "du", "sd", "sdsu", "sddu", "sudu"} or triple, default="sddu"
        The risk, or weights (su, du, sd) of the three basic ones.
    loss : {"squared", "double_hinge", "logistic"} or loss object, default="squared"
        A linear-odd loss; see :mod:`sdulearn.losses` for writing your own.
    gamma : float in [0, 1], default=0.5
        Weight of the second part of a mixed risk: of SU in "sdsu", of DU in "sddu" and "sudu".
    alpha : float, default=0.1
        Strength of the penalty.
    prior : float or None, default=None
        P(y = +1); None estimates it from the numbers of similar and dissimilar pairs.
    fit_intercept : bool, default=True
        Whether to fit an intercept (not penalised).
    solver : {"auto", "closed_form", "interior_point", "newton", "lbfgs"}, default="auto"
        "auto" chooses the exact method for the loss.
    tol : float, default=1e-8
        Largest relative KKT residual without a ConvergenceWarning.
    max_iter : int, default=1000
        Largest number of iterations.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, n_features) and (1,)
        Weights and intercept.
    classes_ : array([-1, 1])
        The classes; +1 is the one whose prior is ``prior_.value``.
    prior_ : PriorEstimate
        The class prior with its interval.
    objective_, optimality_ : float
        Minimum reached (up to a constant of the data), and relative KKT residual, computed apart from the solver.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of str
        Names of the features, if ``X`` was a frame with string column names.

    See Also
    --------
    SDUClassifierCV : Chooses ``alpha`` and ``gamma`` by itself.
    PairLogisticRegression : Learns from the pair as a whole, and needs no prior.

    References
    ----------
    .. [1] T. Shimada, H. Bao, I. Sato and M. Sugiyama, "Classification from Pairwise Similarities/Dissimilarities and
       Unlabeled Data via Empirical Risk Minimization", Neural Computation 33 (2021).

    Examples
    --------
    >>> from sdulearn import SDUClassifier
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=400, n_unlabeled=500, prior=0.7, n_test=500, random_state=0)
    >>> model = SDUClassifier().fit(rows, codes)
    >>> print(f"accuracy {(model.predict(X_test) == y_test).mean():.1f}")
    accuracy 0.8
    """

    risk: str | Sequence[float] = "sddu"
    loss: str | LinearOddLoss = "squared"
    _: KW_ONLY
    gamma: float = 0.5
    alpha: float = 0.1
    prior: float | None = None
    fit_intercept: bool = True
    solver: str = "auto"
    tol: float = 1e-8
    max_iter: int = 1000

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SDUBase._parameter_constraints,
        "gamma": [Interval(Real, 0, 1, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
    }

    def _settings(self) -> Settings:
        return Settings([float(self.alpha)], [float(self.gamma)], [mixture(self.risk, self.gamma)])

    @available_if(_loss_is_additive)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add a batch of rows; exact, and the same in any order (squared loss only).

        The model is always that of ``fit`` on the rows so far, once they determine one. The first call after ``fit`` or
        after loading a model starts afresh. A call that fails adds no rows. Memory is O(n_features^2).

        The two ends of a pair may be in different batches, so make sure that every pair code appears exactly twice,
        with one sign and one weight; then ``statistics_.checksum`` is 0.

        Parameters
        ----------
        X, y
            As in :meth:`fit`, for some of the rows. If answers share points, in one batch or in several, give
            ``prior``: counts do not imply it then.
        classes : ignored
            Here because scikit-learn passes it.
        sample_weight
            As in :meth:`fit`.

        Returns
        -------
        self : SDUClassifier
            The model of the rows so far.
        """
        first = not hasattr(self, "statistics_")
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=first)
        check_system_size(X.shape[1])
        codes, known = read_columns(y)
        check_consistent_length(X, codes)
        if "label" in known and known["label"].any():
            raise InputError("partial_fit takes no labels. Leave them out of `y`, and call orient(X, y_true) after it.")
        if self.prior is None and "point" in known:
            ends = known["point"][codes != 0]
            if len(np.unique(ends)) < len(ends):
                raise InputError(
                    "Answers share points, so their counts do not imply the prior. Give `prior`: "
                    "sdulearn.estimate_prior(y=...) finds it from the rows in answers alone."
                )
        weight = None if sample_weight is None else check_weights(sample_weight, X.shape[0], "sample_weight")
        statistics = PairStatistics().update(X, codes, weight)
        statistics = statistics if first else self.statistics_ + statistics
        try:
            self._fit_sums(statistics, None)
        except UndeterminedError as error:
            self._pending = f"The rows so far do not determine a model. {error}"
            self._forget()
        self.statistics_: PairStatistics = statistics
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def _fit_sums(self, statistics: PairStatistics, graph: AnswerGraph | None) -> None:
        """Fit from sums alone, with the prior that the answers, or else the counts of loose pairs, imply."""
        (alpha,), _, (g,) = self._settings()
        prior = needed_prior(self.prior, graph, statistics.counts)
        self._accept_moments(statistics, prior, (alpha, g, {}))


@dataclass(eq=False, repr=False)
class SDUClassifierCV(_SDUBase):
    """SDUClassifier with ``alpha`` and ``gamma`` chosen by cross-validation on pairs alone.

    The defaults are the paper's: three penalties, six mixture weights, five folds, zero-one SD risk. Of settings with
    equal risk the first wins: alphas in the order given, then gammas. A
    :class:`~sdulearn.errors.UselessModelWarning` says if the predicted classes of held-out rows are unrelated to their
    answers.

    Parameters
    ----------
    risk, loss
        As in :class:`~sdulearn.SDUClassifier`; only mixed risks have a ``gamma`` to choose.
    gammas : sequence of float, default=(0, .2, .4, .6, .8, 1)
        Mixture weights to try.
    alphas : sequence of float, default=(1e-1, 1e-4, 1e-7)
        Penalties to try.
    prior
        As in :class:`~sdulearn.SDUClassifier`.
    cv : int or splitter, default=5
        Number of pair-safe folds (with a fixed seed), or an object such as :class:`~sdulearn.PairKFold`.
    fit_intercept, solver, tol, max_iter
        As in :class:`~sdulearn.SDUClassifier`. Double hinge fits within folds stop at a residual of ``max(tol, 1e-3)``.
    n_jobs : int or None, default=None
        Processes over folds.

    Attributes
    ----------
    alpha_, gamma_ : float
        The choice; ``gamma_`` is None for a risk without one.
    cv_results_ : dict
        As GridSearchCV's, with score = 1 - risk, and without times, because all settings are fitted together.
    coef_, intercept_, classes_, prior_, objective_, optimality_, n_iter_, n_features_in_
        As in :class:`~sdulearn.SDUClassifier`, from the refit on all rows.

    Examples
    --------
    >>> from sdulearn import SDUClassifierCV
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=200, n_unlabeled=500, prior=0.7, random_state=0)
    >>> model = SDUClassifierCV(loss="logistic").fit(rows, codes)
    >>> model.alpha_ in (1e-1, 1e-4, 1e-7)
    True
    """

    risk: str | Sequence[float] = "sddu"
    loss: str | LinearOddLoss = "squared"
    _: KW_ONLY
    gammas: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    alphas: Sequence[float] = (1e-1, 1e-4, 1e-7)
    prior: float | None = None
    cv: Splitter = 5
    fit_intercept: bool = True
    solver: str = "auto"
    tol: float = 1e-8
    max_iter: int = 1000
    n_jobs: int | None = None

    FITTED: ClassVar[Mapping[str, Any]] = {
        **LinearClassifier.FITTED,
        "alpha_": float,
        "gamma_": float | None,
        "cv_results_": dict[str, Any],
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SDUBase._parameter_constraints,
        "gammas": ["array-like"],
        "alphas": ["array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"])],
        "n_jobs": [Integral, None],
    }

    def _settings(self) -> Settings:
        alphas = positive_grid("alphas", self.alphas)
        if not (isinstance(self.risk, str) and self.risk in MIXED_RISKS):
            return Settings(alphas, [None], [mixture(self.risk)])
        if not len(self.gammas):
            raise InputError("`gammas` is empty; give at least one mixture weight between 0 and 1.")
        gammas: list[float | None] = [float(gamma) for gamma in self.gammas]
        return Settings(alphas, gammas, [mixture(self.risk, gamma) for gamma in self.gammas])

    def _choose(self, settings: Settings, X: Rows, design: Design, graph: AnswerGraph, prior: float) -> Choice:
        grid = Grid(self, settings, design, graph.source, graph.row_weight, prior)
        parts = list(row_splits(self.cv, X, graph))
        scores, sides = zip(*Parallel(n_jobs=self.n_jobs)(delayed(grid.fold)(*part) for part in parts), strict=True)
        choice = settings.choose(np.array(scores))
        best = int(np.argmin(choice[2]["cv_results_"]["rank_test_score"]))
        side = np.zeros(graph.n_rows)
        for (_, test), of_fold in zip(parts, sides, strict=True):
            side[test] = np.where(of_fold[:, best], 1, -1)
        agreement = side[graph.end_rows].prod(axis=1)
        counted = agreement != 0
        if len(np.unique(graph.same)) > 1:
            HeldOut.by_agreement(agreement[counted] > 0, graph.same[counted] > 0).warn_if_useless()
        return choice
