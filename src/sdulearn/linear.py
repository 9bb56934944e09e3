"""SDUClassifier and SDUClassifierCV: linear models by the marginal risks of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from sdulearn.base import Fit, LinearClassifier
from sdulearn.errors import InputError, UndeterminedError
from sdulearn.grid import Grid, Settings, fold_tol
from sdulearn.losses import TRAINING_LOSSES, LinearOddLoss, TrainingLoss, get_training_loss
from sdulearn.model_selection import splitter_of
from sdulearn.pairs import check_weights, integer_codes, read_columns
from sdulearn.prior import PriorEstimate
from sdulearn.risks import RISKS, Mixture, even_and_linear, mixture, prior_of_pairs, resolve_prior, row_weights
from sdulearn.sklearn_private import HasMethods, Interval, StrOptions, fit_context
from sdulearn.solvers import SOLVERS, Design, check_system_size, choose_solver, solve_rows
from sdulearn.solvers.limits import check_weight_range
from sdulearn.statistics import PairStatistics
from sdulearn.types import Array, Estimator, MatrixLike, Splitter


def _loss_has_probability(estimator: Estimator) -> bool:
    loss = get_training_loss(estimator.loss)
    if not hasattr(loss, "probability"):
        raise AttributeError(
            f"predict_proba needs a loss whose decision values are log odds, and `loss={estimator.loss!r}` has "
            "none. Fit with `loss='logistic'`, or use PairLogisticRegressionCV."
        )
    return True


def _loss_is_additive(estimator: Estimator) -> bool:
    loss = get_training_loss(estimator.loss)
    if not hasattr(loss, "curvature") or choose_solver(estimator.solver, loss, 1) != "closed_form":
        raise AttributeError(
            "partial_fit needs squared loss in closed form: its solution depends on the rows through "
            "their means and second moments alone, which can be added up; any other loss or solver "
            "needs every row again at every step. Use `loss='squared'` with `solver='auto'`, or "
            "sdulearn.streaming.SDUClassifier, which reads the rows several times."
        )
    return True


def fit_statistics(
    statistics: PairStatistics,
    g: Mixture,
    prior: PriorEstimate,
    loss: TrainingLoss,
    alpha: float,
    fit_intercept: bool,
    fitted: dict[str, object],
) -> Fit:
    """Squared loss from moments alone, certified by them."""
    problem = statistics.problem(g, prior.value, loss, alpha, fit_intercept)
    solution = problem.certified(statistics.solve(g, prior.value, loss, [alpha], fit_intercept)[0])
    return Fit.of(solution, *problem.coefficients(solution.w), prior, fitted)


class _SDUBase(LinearClassifier):
    loss: str | LinearOddLoss

    @available_if(_loss_has_probability)
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the probability of each class; only where the decision values are log odds (logistic loss).

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        array of shape (n_rows, 2)
            P(y = -1) and P(y = +1).
        """
        check_is_fitted(self)
        positive = get_training_loss(self.loss).probability(self.decision_function(X))
        return np.column_stack([1 - positive, positive])


class SDUClassifier(_SDUBase):
    """Linear classifier from similar pairs, dissimilar pairs and unlabeled rows, by an unbiased risk.

    Minimises ``risk(w, b) + alpha / 2 |w|^2``. Rows are points; ``y`` holds pair codes (see
    :func:`~sdulearn.stack_pairs`). Standardise the features first, for example in a ``Pipeline``.

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
        "auto" takes the exact method made for the loss.
    tol : float, default=1e-8
        Largest relative KKT residual that passes without a ConvergenceWarning.
    max_iter : int, default=1000
        Largest number of iterations.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
        Weights.
    intercept_ : array of shape (1,)
        Intercept.
    classes_ : array([-1, 1])
        The classes; +1 is the one whose prior is ``prior_.value``.
    prior_ : PriorEstimate
        The class prior with its interval.
    objective_ : float
        Minimum reached (up to a constant of the data).
    optimality_ : float
        Relative KKT residual, computed apart from the solver.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of str
        Their names, where ``X`` was a frame with string column names.

    See Also
    --------
    SDUClassifierCV : Chooses ``alpha`` and ``gamma`` by itself.
    PairLogisticRegression : Learns from the pair as a whole, and needs no prior.

    References
    ----------
    .. [1] T. Shimada, H. Bao, I. Sato and M. Sugiyama, "Classification from Pairwise
       Similarities/Dissimilarities and Unlabeled Data via Empirical Risk Minimization", Neural
       Computation 33 (2021).

    Examples
    --------
    >>> from sdulearn import SDUClassifier
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=400, n_unlabeled=500, prior=0.7, n_test=500, random_state=0
    ... )
    >>> model = SDUClassifier().fit(rows, codes)
    >>> bool((model.predict(X_test) == y_test).mean() > 0.8)
    True
    """

    statistics_: PairStatistics

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "risk": [StrOptions(set(RISKS)), "array-like"],
        "loss": [StrOptions(set(TRAINING_LOSSES)), HasMethods(["value"])],
        "gamma": [Interval(Real, 0, 1, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "prior": [Interval(Real, 0, 1, closed="neither"), None],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        risk: str | Sequence[float] = "sddu",
        loss: str | LinearOddLoss = "squared",
        *,
        gamma: float = 0.5,
        alpha: float = 0.1,
        prior: float | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.risk = risk
        self.loss = loss
        self.gamma = gamma
        self.alpha = alpha
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.solver = solver
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
            What is known of each row: pair codes (+k similar, -k dissimilar, 0 unlabeled), and which point it shows.
        sample_weight : array-like of shape (n_rows,), optional
            A weight per row; both ends of a pair carry one weight. Only their ratios matter, and a row of
            weight 0 is left out.

        Returns
        -------
        self : SDUClassifier
            The fitted model.
        """
        loss = get_training_loss(self.loss)
        g = mixture(self.risk, self.gamma)
        X, pairs, weight = self._check_rows(X, y, sample_weight)
        prior = prior_of_pairs(self.prior, pairs, weight)
        weights = even_and_linear(*row_weights(g, prior.value, pairs.source, weight))
        design = Design.from_rows(X, self.fit_intercept)
        solution = solve_rows(design, weights, loss, self.alpha, self.solver, self.tol, self.max_iter)
        return self._accept(Fit.of(solution, *design.coefficients(solution.w), prior, {}))

    def _accept(self, fit: Fit) -> Self:
        """Rows added before belong to another fit."""
        self.__dict__.pop("statistics_", None)
        return super()._accept(fit)

    @available_if(_loss_is_additive)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a portion of the rows; exact, and the same in any order (squared loss only).

        After the last portion the model equals that of ``fit`` on all rows. Between two portions it
        is the model of the rows so far, once they determine one: with ``prior=None`` that takes
        more similar than dissimilar pairs. The first call, or the first after ``fit``, starts
        afresh; a model that was saved and loaded starts afresh too.

        The two ends of a pair may come in different portions. So what ``fit`` checks is left to
        you: that every pair code comes exactly twice, with one sign, and that both ends carry one
        weight. ``statistics_.checksum`` is 0 when every code has come an even number of times, with
        one sign and one weight.

        Memory is O(n_features^2), whatever the number of rows.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            A portion of the rows.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of them. Where answers share points, in one portion or in several, give ``prior``: it
            does not follow from counts then.
        classes : ignored
            Always -1 and +1; here because scikit-learn passes it.
        sample_weight : array-like of shape (n_rows,), optional
            Their weights.

        Returns
        -------
        self : SDUClassifier
            The model of the rows so far.
        """
        loss = get_training_loss(self.loss)
        g = mixture(self.risk, self.gamma)
        first = not hasattr(self, "statistics_")
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=first)
        check_system_size(X.shape[1])
        codes = integer_codes(y)
        check_consistent_length(X, codes)
        if self.prior is None:
            _refuse_shared(y)
        weight = None
        if sample_weight is not None:
            weight = check_weights(sample_weight, X.shape[0], "sample_weight")
            check_weight_range(weight)
        statistics = PairStatistics() if first else self.statistics_
        statistics.update(X, codes, weight)
        try:
            prior = resolve_prior(self.prior, statistics.weight, statistics.squares)
            self._accept(fit_statistics(statistics, g, prior, loss, self.alpha, self.fit_intercept, {}))
        except UndeterminedError as error:
            self._pending = f"The rows so far do not determine a model. {error}"
            self.__dict__.pop("coef_", None)
        finally:
            self.statistics_ = statistics
        return self


def _refuse_shared(y: ArrayLike) -> None:
    """Counts of answers that share points tell the prior less well than they seem to."""
    columns = read_columns(y)
    if "point" not in columns:
        return
    shown = np.asarray(columns["point"])[integer_codes(columns["answer"]) != 0]
    if len(np.unique(shown)) < len(shown):
        raise InputError(
            "The answers of this portion share points, and `prior=None` would take the class prior from their "
            "counts. Give `prior`: sdulearn.estimate_prior(y=...) finds it from all rows in answers."
        )


class SDUClassifierCV(_SDUBase):
    """SDUClassifier with ``alpha`` and ``gamma`` chosen by cross-validation on pairs alone.

    The defaults are the paper's: three penalties, six mixture weights, five folds, zero-one SD
    risk. Of settings with equal risk the first wins: alphas in the order given, then gammas.

    Parameters
    ----------
    risk : {"su", "du", "sd", "sdsu", "sddu", "sudu"} or triple, default="sddu"
        The risk; only the last three have a ``gamma`` to choose.
    loss : {"squared", "double_hinge", "logistic"} or loss object, default="squared"
        A linear-odd loss.
    gammas : sequence of float, default=(0, .2, .4, .6, .8, 1)
        Mixture weights to try.
    alphas : sequence of float, default=(1e-1, 1e-4, 1e-7)
        Penalties to try.
    prior : float or None, default=None
        P(y = +1); None estimates it from the pair counts.
    cv : int or splitter, default=5
        Number of pair-safe folds (dealt with a fixed seed), or an object such as
        :class:`~sdulearn.PairKFold`.
    fit_intercept : bool, default=True
        Whether to fit an intercept (not penalised).
    solver : {"auto", "closed_form", "interior_point", "newton", "lbfgs"}, default="auto"
        "auto" takes the exact method made for the loss.
    tol : float, default=1e-8
        Largest relative KKT residual that passes without a ConvergenceWarning. Double hinge fits
        within folds stop at a residual of ``max(tol, 1e-3)``.
    max_iter : int, default=1000
        Largest number of iterations.
    n_jobs : int or None, default=None
        Processes over folds.

    Attributes
    ----------
    alpha_, gamma_ : float
        The choice; ``gamma_`` is None for a risk without one.
    cv_results_ : dict
        As GridSearchCV's, without times, because all settings are fitted together: ``params``,
        ``mean_test_score``, ``split0_test_score``, ... (score = 1 - risk).
    coef_, intercept_, classes_, prior_, objective_, optimality_, n_iter_, n_features_in_
        As in :class:`~sdulearn.SDUClassifier`, from the refit on all rows.

    See Also
    --------
    SDUClassifier : The same with given settings.
    PairLogisticRegressionCV : Learns from the pair as a whole; the estimator to try first.

    References
    ----------
    .. [1] T. Shimada, H. Bao, I. Sato and M. Sugiyama, "Classification from Pairwise
       Similarities/Dissimilarities and Unlabeled Data via Empirical Risk Minimization", Neural
       Computation 33 (2021).

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

    FITTED = (*LinearClassifier.FITTED, "alpha_", "gamma_", "cv_results_")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: constraint
            for name, constraint in SDUClassifier._parameter_constraints.items()
            if name not in ("alpha", "gamma")
        },
        "gammas": ["array-like"],
        "alphas": ["array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"])],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        risk: str | Sequence[float] = "sddu",
        loss: str | LinearOddLoss = "squared",
        *,
        gammas: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        alphas: Sequence[float] = (1e-1, 1e-4, 1e-7),
        prior: float | None = None,
        cv: Splitter = 5,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        n_jobs: int | None = None,
    ) -> None:
        self.risk = risk
        self.loss = loss
        self.gammas = gammas
        self.alphas = alphas
        self.prior = prior
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose alpha and gamma on held-out pairs, then fit on all rows.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            One row per point: ends of pairs and unlabeled points.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row: pair codes (+k similar, -k dissimilar, 0 unlabeled), and which point it shows.
        sample_weight : array-like of shape (n_rows,), optional
            A weight per row; both ends of a pair carry one weight. Only their ratios matter, and a row of
            weight 0 is left out.

        Returns
        -------
        self : SDUClassifierCV
            The fitted model.
        """
        loss = get_training_loss(self.loss)
        settings = Settings.of(self.risk, self.gammas, self.alphas)
        X, pairs, weight = self._check_rows(X, y, sample_weight)
        prior = prior_of_pairs(self.prior, pairs, weight)
        design = Design.from_rows(X, self.fit_intercept)
        solver = choose_solver(self.solver, loss, design.A.shape[1])
        grid = Grid(
            settings,
            design,
            pairs.source,
            np.ones(len(pairs)) if weight is None else weight,
            prior.value,
            loss,
            solver,
            fold_tol(solver, self.tol),
            self.max_iter,
        )
        splits = splitter_of(self.cv).split(X, pairs)
        jobs = (delayed(grid.fold)(train, test) for train, test in splits)
        scores = np.array(Parallel(n_jobs=self.n_jobs)(jobs))
        alpha, g, chosen = settings.choose(scores)
        solution = solve_rows(design, grid.weights(g), loss, alpha, solver, self.tol, self.max_iter)
        return self._accept(Fit.of(solution, *design.coefficients(solution.w), prior, chosen))
