"""PairLogisticRegression and PairLogisticRegressionCV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from sklearn.utils.sparsefuncs import mean_variance_axis
from threadpoolctl import threadpool_limits

from sdulearn.answers.answer_model import (
    MAX_CLASSES,
    AnswerModel,
    ErrorRateParameter,
    answer_model_of,
    crowd_value,
    has_examples,
    is_crowd,
    lower_mean,
    model_of_columns,
    number_by_answers,
    renamed,
)
from sdulearn.answers.graph import ENOUGH, AnswerGraph, classes_of_examples, least_classes
from sdulearn.answers.propagate import class_columns
from sdulearn.answers.rates import FIRST_RATE, SELDOM, likeliest_rate, unknown_rates
from sdulearn.answers.y import U
from sdulearn.base import ANSWER_CONSTRAINTS, ANSWER_FITTED, Fit, LinearClassifier, fold_arrays, folds_from_arrays
from sdulearn.errors import ClassNumberWarning, InputError, OneKindWarning, OrientationWarning, warn
from sdulearn.io.container import Header
from sdulearn.io.typed import read
from sdulearn.joint.data import Axes, PriorPull, TrainingPoints, warn_of_scales
from sdulearn.joint.path import (
    Choice,
    PilotScores,
    Problem,
    choose,
    choose_number,
    descend,
    held_out,
    pilot_fits,
    polish,
    question_chances,
    scores_of,
)
from sdulearn.model_selection import HeldOut, PairKFold, fold_parts, grid_results, number_of_folds, positive_grid
from sdulearn.prior import PriorEstimate, clopper_pearson, effective_number, estimate_prior
from sdulearn.progress import steps
from sdulearn.sklearn_private import HasMethods, Interval, StrOptions
from sdulearn.statistics import PairStatistics
from sdulearn.types import Array, Codes, Indices, Mask, MatrixLike, Rows, Splitter

# The default grid of alphas, as multiples of the alpha at which the model leaves zero: for two classes, and for more.
_GRID = (10**0.5, 10**-3.5)
_CLASS_GRID = (0.1, 1e-4)
# The covariance powers that "auto" chooses from with two classes. On 240 random draws of 50 pairs from ten
# sets the choice is worth 0.9 percentage points against power 1, with a standard error of 0.3.
_POWERS = (0.0, 1.0, 2.0)
# The penalty that "auto" stands for, as a share of the mean variance of the columns: for two classes, and for more.
_ALPHA = 0.01
_CLASS_ALPHA = 0.001
# The names of ``orientation`` in estimate_prior.
_MAJORITY = {"majority": "positive", "minority": "negative"}
# With fewer "same" answers and labels per class, classes are confused, and some are not seen at all.
_TIES_A_CLASS = 5
_ASK_MORE = "Ask more questions (those of sdulearn ask are the most informative), label a few points of each class"
# A wider interval of the number of classes leads to a warning.
_NARROW = 1
# Mean error rates that are tried where no cycle tells it.
_MEAN_RATES = (0.02, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.36, 0.42)
# A model that judges the answers of a crowd is taken to guess at this share of the points.
_BLIND = 0.3


class _Chosen(NamedTuple):
    """The fit with the penalty that was chosen."""

    fit: Fit
    of_folds: Array  # (r + 1, n_scores, n_folds), coefficients of the folds in the axes
    held_out: HeldOut


@dataclass(kw_only=True, eq=False, repr=False)
class PairLogisticBase(LinearClassifier):
    """What the estimator with a given penalty and the one that chooses it share."""

    FITTED: ClassVar[Mapping[str, Any]] = {**LinearClassifier.FITTED, **ANSWER_FITTED, "class_shares_": Any}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ANSWER_CONSTRAINTS,
        "prior_strength": [Interval(Real, 0, None, closed="left")],
        "covariance_power": [Interval(Real, 0, 4, closed="both"), StrOptions({"auto"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    # Whether folds check the answers of one person, too: a plain fit of loose pairs needs none.
    _has_folds: ClassVar[bool] = False

    covariance_power: float | str = "auto"
    n_classes: int | str = 2
    prior: float | Sequence[float] | None = None  # type: ignore[assignment]
    prior_strength: float = 3.0
    orientation: str = "majority"
    error_rate: ErrorRateParameter = "auto"
    answer_table: str | bool = "auto"
    tol: float = 1e-6
    max_iter: int = 2000

    def _points(self, X: Rows, graph: AnswerGraph, moments: PairStatistics | None) -> TrainingPoints:
        """Return the points of checked rows; warn where the columns have different scales."""
        if sparse.issparse(X):
            mean, variance = mean_variance_axis(X, axis=0, weights=graph.row_weight)
        else:
            share = graph.row_weight / graph.row_weight.sum()
            mean = share @ X
            variance = share @ (X - mean) ** 2
        warn_of_scales(np.sqrt(variance), mean, getattr(self, "feature_names_in_", None))
        return TrainingPoints(X, graph, None if moments is None else moments.mean_and_covariance(U))

    def _problem(self, points: TrainingPoints, model: AnswerModel, n_classes: int) -> Problem:
        """Return the problem of an answer model, with a pull to the given prior."""
        pull = PriorPull.of(self.prior, float(self.prior_strength), len(points.share), n_classes)
        return Problem(points, model.likelihood(points.graph, n_classes), pull)

    def _two_classes(self, points: TrainingPoints) -> tuple[Problem, AnswerModel, PriorEstimate]:
        """Return the problem with two classes, its answer model, and the prior to report."""
        if not isinstance(self.prior, Real | None):
            raise InputError(
                f"With two classes `prior` is one number, P(y = +1), or None; got `prior={self.prior!r}`. A list "
                "of class shares goes with `n_classes` above 2."
            )
        if self.answer_table is True and self.n_classes == 2:
            raise InputError(
                "`answer_table=True` needs more than two classes: with two, errors do not depend on the classes. Give "
                "`n_classes`, or leave `answer_table='auto'`."
            )
        model = self._answer_model(points)
        prior = self._reported_prior(points.everything, model)
        return self._problem(points, model, 2), model, prior

    def _reported_prior(self, graph: AnswerGraph, model: AnswerModel) -> PriorEstimate:
        """Return the given or the estimated prior; warn of answers of one kind."""
        known = graph.labels[graph.labels != 0]
        _check_answers(graph, 2, self.prior)
        if not graph.n_answers and abs(known.sum()) == len(known):
            raise InputError(
                "There is no answer in `y`, or all weigh zero, and its labels are not of two classes, so the "
                "classes cannot be separated. Add answers, or labels -1 and +1."
            )
        if self.prior is not None:
            return PriorEstimate.given(self.prior)  # type: ignore[arg-type]
        if not graph.n_answers:
            # The labelled points were chosen, and their share is only reported.
            by_label = graph.point_weights[graph.labels != 0]
            n_labels = effective_number(float(by_label.sum()), float(by_label @ by_label))
            share = float(by_label @ (known > 0)) / float(by_label.sum())
            low, high = clopper_pearson(share * n_labels, (1 - share) * n_labels)
            return PriorEstimate(share, low, high, low > 0.5 or high < 0.5)
        if isinstance(self.error_rate, AnswerModel):
            # A given model is taken as exact: it does not widen the interval.
            value = model.error_rate.value
            model = replace(model, error_rate=replace(model.error_rate, low=value, high=value))
        return estimate_prior(y=graph, error_rate=model, majority=_MAJORITY[self.orientation])

    @property
    def _power(self) -> float:
        """The covariance power; "auto" suits the number of classes."""
        if self.covariance_power == "auto":
            return 1.0 if self.n_classes == 2 else 0.0
        return float(self.covariance_power)

    def _answer_model(self, points: TrainingPoints) -> AnswerModel:
        """Return the answer model of two classes: given, or estimated with models of held-out answers."""
        graph = points.graph
        _, counts = np.unique(graph.annotators, return_counts=True)
        n_judged = int(np.sum(counts >= ENOUGH))
        judged = n_judged > 1 or graph.contradictory.any() or (self._has_folds and n_judged)
        held_out = self._held_out(points, 2) if self.error_rate == "auto" and judged else None
        if held_out is None:
            return answer_model_of(self.error_rate, graph, 2)
        return AnswerModel.estimate(graph, logits=held_out.scores[:, 0])

    def _class_answer_model(self, points: TrainingPoints, n_classes: int, answer_table: str | bool) -> AnswerModel:
        """Return the answer model of more than two classes; that of a crowd with models of held-out answers."""
        graph = points.graph
        _check_answers(graph, n_classes, self.prior)
        if self.error_rate != "auto":
            return answer_model_of(self.error_rate, graph, n_classes, answer_table)
        if not is_crowd(graph, n_classes):
            model = answer_model_of("auto", graph, n_classes, answer_table)
            contradictory = graph.refuted.any() and not model.examples
            return self._rates_beside_features(points, n_classes, model) if contradictory else model
        if answer_table is not True and self._features_say_more(points, n_classes, crowd_value(graph, n_classes)):
            unknown = unknown_rates(len(np.unique(graph.annotators)))
            return self._rates_beside_features(points, n_classes, model_of_columns(graph.annotators, unknown))
        held_out = self._held_out(points, n_classes)
        log_p = None
        if held_out is not None:
            proba = softmax(held_out.scores / held_out.temperature, axis=1)
            log_p = np.log((1 - _BLIND) * proba + _BLIND / n_classes)
        model = AnswerModel.estimate(graph, n_classes, log_p, answer_table)
        crowd = model.crowd_of(graph)
        if crowd is not None and self.prior is None and not graph.labels.any():
            # The largest class is the first.
            model = renamed(model, np.argsort(-crowd.log_shares, kind="stable"))
        return model

    def _features_say_more(self, points: TrainingPoints, n_classes: int, value: float) -> bool:
        """Return whether models of features explain held-out answers better than a value, few or many of them wrong."""
        tried = (self._held_out(points, n_classes, rate) for rate in (FIRST_RATE, 2 * FIRST_RATE))
        return any(found is not None and found.value > value for found in tried)

    def _rates_beside_features(self, points: TrainingPoints, n_classes: int, model: AnswerModel) -> AnswerModel:
        """Return a model of answers that contradict each other, with rates that cycles leave open.

        Their mean is the rate at which models explain best what they have not seen.
        """
        rates = steps(_MEAN_RATES, "error rates") if model.open_rates else ()
        tried = [found for rate in rates if (found := self._held_out(points, n_classes, rate)) is not None]
        if not tried:
            return model
        values = [found.value for found in tried]
        judged = model.judged(points.graph, question_chances(tried[int(np.argmax(values))].fits))
        return judged.with_mean(*likeliest_rate(_MEAN_RATES, values, points.graph.n_answers))

    def _held_out(self, points: TrainingPoints, n_classes: int, rate: float = FIRST_RATE) -> PilotScores | None:
        """Return scores of all points by models that have not seen their answers."""
        n_folds = number_of_folds(PairKFold().n_splits, points.graph)
        if n_folds < 2:
            return None
        problem = self._problem(points, AnswerModel.given(rate, points.graph), n_classes)
        shown = points.shown(fold_parts(n_folds, None, points.everything))
        return held_out(problem, 1.0 if n_classes == 2 else 0.0, shown)

    def _finished(
        self,
        problem: Problem,
        model: AnswerModel,
        W: Array,
        alpha: float,
        power: float,
        prior: PriorEstimate | None,
        temperature: float = 1.0,
    ) -> Fit:
        """Polish a solution of the path, divide it by the temperature, name the classes, and return to columns."""
        polished = polish(problem, W, alpha, power, float(self.tol), int(self.max_iter))
        W = polished.W / temperature
        axes = problem.points.axes
        certificate = (polished.value, polished.optimality, polished.n_calls)
        labels = problem.points.graph.labels
        if prior is not None:
            A, share = problem.points.judged
            positive = float(share @ (A @ W[:-1, 0] + W[-1, 0] > 0))
            sign = 1.0
            if not labels.any():
                given: float | None = self.prior  # type: ignore[assignment]
                sign = class_sign(given, self.orientation, prior, positive, float(share @ share))
            elif self.prior is None and (positive > 0.5) != (prior.value > 0.5):
                # Labels have named the classes, and the estimated prior follows them.
                prior = prior.mirrored()
            coef, intercept = axes.coefficients(sign * W)
            return Fit(coef, intercept, *certificate, prior, fitted={"answer_model_": model})
        W = W - W.mean(axis=1, keepdims=True)
        pull = problem.pull
        named = pull is not None and len(np.unique(pull.shares)) == len(pull.shares)
        if not named and problem.likelihood.evidence is None:
            order = order_by_size(_mean_prediction(problem, W), labels)
            W, model = W[:, order], renamed(model, order) if model.examples else model
        coef, intercept = axes.coefficients(W)
        shares = _mean_prediction(problem, W)
        fit = Fit(coef, intercept - intercept.mean(), *certificate, shares=shares)
        return replace(fit, fitted={"answer_model_": model})


@dataclass(eq=False, repr=False)
class PairLogisticRegression(PairLogisticBase):
    """Logistic regression from same/different answers: one likelihood for answers, labels and unlabeled rows.

    With ``s(x) = logistic(w.x + b)`` the chance of the answer "same" is ``s(x) s(x') + (1 - s(x)) (1 - s(x'))``.
    Answers that share points (column 1 of ``y``) have the likelihood of their connected component, so that n answers
    about one point and n others are worth n labels. Labels (column 3) name the classes; with labels alone it is
    logistic regression. Answers may be wrong, at a rate for each annotator (column 2). In addition to a penalty on w
    there is, if the prior p is given, ``prior_strength KL(p || mean prediction on unlabeled rows)``. It needs no prior
    and works at 1/2, where the risks of :class:`~sdulearn.SDUClassifier` are undefined. The problem is not convex: it
    is started from the top eigenvector of the whitened pair moment (with more classes from clusters), along a path of
    penalties.

    If the rows of one point differ, the point is their weighted mean. Standardise the features first. Time
    O((n_pairs + n_unlabeled) d) per step after one eigendecomposition of a d x d matrix; rows are kept dense in their
    principal axes, O(n min(n, d)) memory. Answers that may be wrong take some ten times as long.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty, relative to the *mean* loss of independent answers (k points of a component are k - 1
        of them) and labels. "auto" is 0.01 times the mean variance of the columns with two classes, and 0.001 times
        with more, because an answer then contains less information about each class.
    covariance_power : float or "auto", default="auto"
        Power k of the covariance of all rows in the penalty ``w' C^-k w``: 0 is the plain ridge, a
        larger one favours directions in which all rows, including unlabeled ones, vary most. "auto"
        is 1 with two classes and 0 with more, which differ in more directions.
    n_classes : int, default=2
        Number of classes. More than two are a softmax of as many linear models.
    prior : float, sequence of K floats or None, default=None
        P(y = +1), or with K > 2 classes their shares, if known: the mean prediction on unlabeled
        rows is pulled towards it. With None there is no such pull, and ``prior_`` is only an estimate.
    prior_strength : float, default=3
        Weight of the divergence of the mean prediction on unlabeled rows from a given prior, in
        units of the mean loss of an answer.
    orientation : {"majority", "minority"}, default="majority"
        With ``prior=None``: whether the larger or the smaller class, by the prediction on unlabeled rows, is +1.
    error_rate : "auto", float or mapping, default="auto"
        Probability that an answer is wrong, from 0 to 1/2: one for all, or one for each annotator (0: not known).
        "auto" estimates it from repeated questions, cycles of answers and labels and, with several annotators, from
        models of the answers of the others. No answer is assumed to be certain: if the rate cannot be
        estimated, it is 0.02, and its interval 0 to 1/2. With more than two classes and answers that contradict each
        other, the mean rate may be the one at which models explain best the answers that they have not seen. An
        :class:`~sdulearn.answers.AnswerModel` is used as it is.
    answer_table : {"auto", True, False}, default="auto"
        Whether errors may depend on the classes of the two points, with more than two classes. "auto": if most
        points are in several questions, answers contradict each other, and a table explains answers left out better.
    tol : float, default=1e-6
        Largest gradient norm (in the norm of the Hessian) that passes without a ConvergenceWarning.
    max_iter : int, default=2000
        Largest number of L-BFGS iterations of the last fit.

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
        With K > 2 classes the mean predicted probability of each over all points.
    n_features_in_, feature_names_in_
        As in :class:`~sdulearn.SDUClassifier`.
    prior_ : PriorEstimate or None
        The given class prior, or the one that the pair counts imply, with its interval; None with
        more than two classes.
    answer_model_ : AnswerModel
        How often answers are wrong, in total and by annotator, with intervals.
    objective_ : float
        Value at the solution, the best of all starts.
    optimality_ : float
        Norm of the gradient there; see ``tol``.
    n_iter_ : int
        Evaluations of the objective in the last fit.

    See Also
    --------
    PairLogisticRegressionCV : Chooses ``alpha`` and ``covariance_power``.
    SDUClassifier : The paper's risks, which use the two rows of a pair separately.

    Examples
    --------
    >>> from sdulearn import PairLogisticRegression
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=200, n_unlabeled=500, prior=0.7, n_test=500, random_state=0
    ... )
    >>> model = PairLogisticRegression().fit(rows, codes)
    >>> print(f"accuracy {(model.predict(X_test) == y_test).mean():.1f}")
    accuracy 0.9
    """

    alpha: float | str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PairLogisticBase._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_classes": [Interval(Integral, 2, None, closed="left")],
    }

    def fit_from_zero(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Fit from no model at all, where labelled points say where each class is: for the asker."""
        return self._fit(*self._check_rows(X, y, None), from_zero=True)

    def _fit(
        self, X: Rows, graph: AnswerGraph, moments: PairStatistics | None = None, *, from_zero: bool = False
    ) -> Self:
        """Fit checked rows."""
        points = self._points(X, graph, moments)
        prior = None
        if self.n_classes == 2:
            problem, model, prior = self._two_classes(points)
        else:
            model = self._class_answer_model(points, int(self.n_classes), self.answer_table)
            problem = self._problem(points, model, int(self.n_classes))
            _check_number(problem, model)
        unit = _ALPHA if self.n_classes == 2 else _CLASS_ALPHA
        alpha = unit * points.axes.mean_variance if self.alpha == "auto" else float(self.alpha)
        with threadpool_limits(None if self.n_classes == 2 else 1):
            if from_zero:
                W = np.zeros((len(points.axes.variance) + 1) * problem.likelihood.n_scores)
            else:
                W = descend(problem, alpha, self._power)
            fit = self._finished(problem, model, W, alpha, self._power, prior)
        if prior is None:
            _warn_of_empty_classes(X, problem, fit)
        return self._accept(fit)


@dataclass(eq=False, repr=False)
class PairLogisticRegressionCV(PairLogisticBase):
    """PairLogisticRegression with a penalty chosen from the answers alone; try this first.

    Alpha is chosen by the held-out log-likelihood, in folds over points. With two classes, if answers share points
    or come with labels, folds would cut answers, and Laplace's evidence chooses. A
    :class:`~sdulearn.errors.UselessModelWarning` says if held-out answers are no likelier than by class shares alone.

    Parameters
    ----------
    alphas : int or sequence of float, default=8
        Penalties to try, or the number of values on a grid that starts at the largest penalty with a non-zero model.
    covariance_power : float or "auto", default="auto"
        As in :class:`~sdulearn.PairLogisticRegression`, but with two classes "auto" chooses 0, 1 or
        2 by Laplace's evidence.
    n_classes : int or "auto", default=2
        Number of classes. "auto" tries from the fewest that the answers force and keeps the fewest within one standard
        error of the best held-out likelihood. A :class:`~sdulearn.errors.ClassNumberWarning` says if the answers
        leave the number open, or do not support the one given.
    prior, prior_strength, orientation, error_rate
        As in :class:`~sdulearn.PairLogisticRegression`. If no answer checks another, "auto" compares the answers with
        models that have not seen them. With two classes, the rate that all annotators share is then at most 0.1.
    answer_table
        As there.
    tol, max_iter
        As in :class:`~sdulearn.PairLogisticRegression`.
    cv : int or splitter, default=5
        Number of pair-safe folds (assigned with a fixed seed), or an object such as :class:`~sdulearn.PairKFold`.

    Attributes
    ----------
    alpha_, covariance_power_ : float
        The choice, and the power.
    cv_results_ : dict
        As GridSearchCV's, over the alphas: mean log-likelihoods of held-out answers and labels.
    temperature_ : float
        Divisor of the coefficients that fits held-out answers best, chosen after ``alpha_``.
    alphas_ : array of shape (n_alphas,)
        The penalties tried.
    fold_models_ : list of (rows, model)
        The rows of each fold's points, and the model, with the penalty that was chosen, that saw no answer about
        them. Its classes are named as those of the whole model. A file keeps the rows of points in answers.
    n_classes_interval_ : tuple of two int, or None
        With ``n_classes="auto"`` the fewest and the most classes that the answers allow, within two standard errors of
        the best held-out likelihood; where most points are in several answers that contradict each other, and these say
        more about them than the features, by the answers alone. With fewer than five "same" answers and labels per
        class, the most is at least the number of equally large classes that the share of "same" answers allows, at most
        20.
    coef_, intercept_, classes_, n_classes_, class_shares_, prior_, answer_model_, objective_,
    optimality_, n_iter_
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
    >>> print(f"accuracy {(model.predict(X_test) == y_test).mean():.1f}")
    accuracy 0.9
    """

    FITTED: ClassVar[Mapping[str, Any]] = {
        **PairLogisticBase.FITTED,
        "alpha_": float | None,
        "covariance_power_": float | None,
        "temperature_": Any,
        "cv_results_": dict[str, Any],
        "alphas_": Any,
        "n_classes_interval_": tuple[int, int] | None,
        "fold_parts_": dict[str, Any],
    }

    alphas: int | Sequence[float] = 8
    _: KW_ONLY
    cv: Splitter = 5

    _has_folds = True
    # What the scores in ``cv_results_`` are.
    scoring = "log-likelihood"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PairLogisticBase._parameter_constraints,
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "n_classes": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"])],
    }

    def _fit(self, X: Rows, graph: AnswerGraph, moments: PairStatistics | None = None) -> Self:
        """Fit checked rows."""
        points = self._points(X, graph, moments)
        folds = fold_parts(self.cv, X, graph)
        shown = points.shown(folds)
        chosen = interval = None
        if self.n_classes != 2:
            with threadpool_limits(1):
                chosen, interval = self._fit_classes(X, points, shown)
        if chosen is None:
            problem, model, prior = self._two_classes(points)
            chosen = self._chosen(problem, model, shown, prior)
        self._accept(chosen.fit)
        if not _of_one_kind(points.graph):
            chosen.held_out.warn_if_useless()
        self.n_classes_interval_ = interval
        models = [self._of_fold(X, points.axes, W) for W in np.moveaxis(chosen.of_folds, 2, 0)]
        self.fold_models_ = [(graph.rows[rows], model) for (_, rows), model in zip(folds, models, strict=True)]
        return self

    def _chosen(self, problem: Problem, model: AnswerModel, shown: Mask, prior: PriorEstimate | None = None) -> _Chosen:
        """Return the fit with the best penalty, and the models of its folds."""
        if problem.likelihood.n_scores > 1:
            _check_number(problem, model)
        choice = self._choice(problem, shown)
        if problem.likelihood.n_scores > 1 and self.error_rate == "auto" and not model.of_crowd:
            problem, model, choice = self._judged(problem, model, choice, shown)
        fit = self._finished(problem, model, choice.W, choice.alpha, choice.power, prior, choice.temperature)
        of_folds = choice.fits.W[:, 0].reshape(-1, problem.likelihood.n_scores, shown.shape[1])
        fitted = {
            "alpha_": choice.alpha,
            "covariance_power_": choice.power,
            "temperature_": choice.temperature,
            "cv_results_": grid_results([{"alpha": alpha} for alpha in choice.alphas.tolist()], choice.scores),
            "alphas_": choice.alphas,
        }
        return _Chosen(replace(fit, fitted=fit.fitted | fitted), of_folds / choice.temperature, choice.held_out)

    def _choice(self, problem: Problem, shown: Mask) -> Choice:
        """Return the best penalty of the grid, and with two classes the best power."""
        two = problem.likelihood.n_scores == 1
        powers = _POWERS if two and self.covariance_power == "auto" else (self._power,)
        ends = _GRID if two else _CLASS_GRID
        alphas = np.column_stack([self._grid(problem.starts.alpha_max(power), ends) for power in powers])
        return choose(problem, alphas, powers, shown)

    def _judged(
        self, problem: Problem, model: AnswerModel, choice: Choice, shown: Mask
    ) -> tuple[Problem, AnswerModel, Choice]:
        """Estimate the rates that answers about more than two classes do not tell, by models that have not seen them.

        The first fit takes answers that contradict none as right. Models that do not are first judges; if by them
        answers are often wrong, a fit at these rates is kept if it explains what the folds leave out better.
        """
        doubted = model.doubted(FIRST_RATE)
        if doubted is model:
            return problem, model, choice
        graph, n_classes = problem.likelihood.graph, problem.likelihood.n_classes
        fits = pilot_fits(self._problem(problem.points, doubted, n_classes), self._power, shown)
        judged = model.judged(graph, question_chances(fits))
        if judged is not model and judged.error_rate.value > SELDOM:
            again = self._problem(problem.points, judged, n_classes)
            other = self._choice(again, shown)
            if other.value > choice.value:
                problem, choice = again, other
        return problem, model.judged(graph, question_chances(choice.fits)), choice

    def _of_fold(self, X: Rows, axes: Axes, W: Array) -> Self:
        """Return a copy with the coefficients (r + 1, n_scores) of a fold, whose classes are named as in this model."""
        model = copy(self)
        # Those of an earlier fit.
        model.__dict__.pop("fold_models_", None)
        coef, intercept = axes.coefficients(W)
        agreement = (X @ coef.T + intercept).T @ (X @ self.coef_.T + self.intercept_)
        sign = np.copysign(1.0, agreement[0, 0]) if len(coef) == 1 else 1.0
        order = linear_sum_assignment(-agreement.T)[1]
        model.coef_ = sign * coef[order]
        model.intercept_ = sign * intercept[order]
        return model

    @property
    def fold_parts_(self) -> dict[str, Array]:
        """The models of folds as arrays, for the model file."""
        models = [model for _, model in self.fold_models_]
        return fold_arrays(self, [model.coef_ for model in models], [model.intercept_ for model in models])

    def _restore(self, fitted: Header) -> None:
        parts = read(dict[str, Any], fitted.pop("fold_parts_", {}))
        super()._restore(fitted)
        if parts:
            folds = []
            for rows, coef, intercept in folds_from_arrays(self, parts, self.coef_.shape, len(self.coef_)):
                model = copy(self)
                model.coef_, model.intercept_ = coef, intercept
                folds.append((rows, model))
            self.fold_models_ = folds

    def _fit_classes(
        self, X: Rows, points: TrainingPoints, shown: Mask
    ) -> tuple[_Chosen | None, tuple[int, int] | None]:
        """Fit more than two classes, None where "auto" finds two; and the numbers of classes that "auto" allows."""
        graph = points.graph
        interval = None
        if self.n_classes != "auto":
            n_classes = int(self.n_classes)
        elif self.prior is not None:
            raise InputError("`prior` needs a number of classes: with `n_classes='auto'` it must be None.")
        elif graph.labels.min(initial=0) < 0:
            # Labels -1 and +1 name two classes.
            n_classes, interval = 2, (2, 2)
        elif self.error_rate == "auto" and is_crowd(graph, 3):
            number, left_out = number_by_answers(graph)
            if self.answer_table is not True and self._features_say_more(
                points, MAX_CLASSES // 2, lower_mean(left_out)
            ):
                return self._find_number(X, points, shown)
            n_classes, interval = number.value, (number.low, number.high)
            _warn_of_open_number(graph, n_classes, *interval)
        elif has_examples(graph):
            number = classes_of_examples(graph.ends, graph.same, graph.question, graph.n_points)
            n_classes, interval = number.value, (number.low, number.high)
            _warn_of_open_number(graph, n_classes, *interval)
        else:
            return self._find_number(X, points, shown)
        if n_classes == 2:
            return None, interval
        model = self._class_answer_model(points, n_classes, self.answer_table)
        problem = self._problem(points, model, n_classes)
        chosen = self._chosen(problem, model, shown)
        _warn_of_empty_classes(X, problem, chosen.fit)
        return chosen, interval

    def _find_number(self, X: Rows, points: TrainingPoints, shown: Mask) -> tuple[_Chosen | None, tuple[int, int]]:
        """Return the fit with the best number of classes (None if two), and the interval."""
        graph = points.graph
        n_named = int(graph.labels.max(initial=0))
        # A table needs the number of classes.
        model = self._class_answer_model(points, max(MAX_CLASSES, n_named), False)
        # Labels 1 and 2 are those of three classes or more.
        fewest = max(_least_classes(graph, model), 3 if n_named > 1 else 2)
        most = max(min(MAX_CLASSES, graph.n_points // 2), fewest)
        problems = (self._problem(points, model, k) for k in range(fewest, most + 1))
        number = choose_number(problems, fewest, self._power, shown)
        n_classes = number.value
        chosen = None
        while n_classes > 2:
            chosen = self._chosen(self._problem(points, model, n_classes), model, shown)
            # A class without rows does not lower the likelihood, and does not count unless answers force it.
            n_used = max(fewest, len(_used(X, chosen.fit)))
            if n_used == n_classes:
                break
            n_classes = n_used
            chosen = None
        low, high = min(number.low, n_classes), _most_classes(graph, max(number.high, n_classes))
        _warn_of_open_number(graph, n_classes, low, high)
        if chosen is not None and self.answer_table is True:
            model = self._class_answer_model(points, n_classes, True)
            chosen = self._chosen(self._problem(points, model, n_classes), model, shown)
        return chosen, (low, high)

    def _grid(self, alpha_max: float, ends: tuple[float, float]) -> Array:
        """Return the falling penalties to try."""
        if isinstance(self.alphas, Integral):
            return alpha_max * np.geomspace(*ends, int(self.alphas))
        return np.array(sorted(positive_grid("alphas", np.asarray(self.alphas).tolist()), reverse=True))


def class_sign(given: float | None, orientation: str, prior: PriorEstimate, positive: float, spread: float) -> float:
    """Return the sign that makes the larger class +1, or as ``prior`` or ``orientation`` say."""
    # Two standard errors of the share; and where the answers cannot tell p from 1/2, an allowance
    # for the error of the model.
    margin = max(2 * np.sqrt(0.25 * spread), 0.0 if prior.identified else 0.1)
    close = abs(positive - 0.5) <= margin
    if given == 0.5 or (given is None and close):
        warn(
            f"The model puts {max(positive, 1 - positive):.0%} of the rows on one side, so which class "
            "is the larger is uncertain and the names -1 and +1 are arbitrary. Name them by a few "
            "labelled points: orient(X, y_true).",
            OrientationWarning,
        )
    larger_is_positive = orientation == "majority" if given is None else given >= 0.5
    return 1.0 if positive == 0.5 or (positive > 0.5) == larger_is_positive else -1.0


def order_by_size(shares: Array, labels: Codes) -> Indices:
    """Return the order of the classes: labelled ones keep their place, others go by size."""
    order = np.arange(len(shares))
    free = np.flatnonzero(~np.isin(order, labels[labels > 0] - 1))
    order[free] = free[np.argsort(-shares[free], kind="stable")]
    return order


def _mean_prediction(problem: Problem, W: Array) -> Array:
    """Return the mean probability of each class over all points."""
    Z = scores_of(problem.points.A, W.reshape(-1, 1), W.shape[1])
    return problem.points.every_share @ problem.likelihood.probabilities(Z)[:, :, 0]


def _used(X: Rows, fit: Fit) -> Indices:
    """Return the classes, numbered from 0, that have a row."""
    return np.unique(np.argmax(X @ fit.coef.T + fit.intercept, axis=1))


def _most_classes(graph: AnswerGraph, most: int) -> int:
    """Return the most classes that the answers allow; good models use ``most``."""
    if _ties(graph, most)[0]:
        return most
    # Some classes may not have been seen. With K equal classes, a random answer is "same" with probability 1/K.
    n_same = int(np.sum(graph.same > 0))
    share, _ = clopper_pearson(n_same, graph.n_answers - n_same)
    return max(most, int(1 / max(share, 1 / MAX_CLASSES)))


def _ties(graph: AnswerGraph, n_classes: int) -> tuple[bool, str]:
    """Return whether "same" answers and labels suffice for this many classes, and words."""
    n_same = graph.n_points - len(np.unique(graph.group))
    n_labels = int(np.count_nonzero(graph.labels))
    enough = n_same + n_labels >= _TIES_A_CLASS * n_classes
    text = f'{n_same:,} of the {graph.n_answers:,} answers are "same" and do not follow from others'
    labelled = f", and {n_labels:,} points are labelled" if n_labels else ""
    return enough, f"{text}{labelled}{'' if enough else f'; {_TIES_A_CLASS} or more a class are needed'}."


def _warn_of_open_number(graph: AnswerGraph, n_classes: int, low: int, high: int) -> None:
    """Warn where the answers leave the number of classes open."""
    if high - low > _NARROW and not _of_one_kind(graph):
        warn(
            f"The answers leave the number of classes open: {n_classes} were found, and {low} to {high} are "
            f"possible. {_ties(graph, high)[1]} {_ASK_MORE}, or give the number of classes where you know it.",
            ClassNumberWarning,
        )


def _warn_of_empty_classes(X: Rows, problem: Problem, fit: Fit) -> None:
    """Warn where the answers do not support the requested number of classes."""
    graph = problem.points.everything
    n_classes = len(fit.coef)
    enough, counts = _ties(graph, n_classes)
    # For a crowd the answer model has compared the numbers of classes.
    enough = enough or problem.likelihood.evidence is not None
    predicted = np.argmax(X @ fit.coef.T + fit.intercept, axis=1)
    empty = np.setdiff1d(np.arange(n_classes), predicted)
    # Two classes without a label or a "same" answer may be one: points of both are only known to be of no other.
    first, second = predicted[graph.end_rows[graph.same > 0]].T
    untied = np.setdiff1d(np.arange(n_classes), np.append(first[first == second], graph.labels - 1))
    if _of_one_kind(graph) or (enough and not len(empty) and len(untied) < 2):
        return
    finding = f"The answers may be too few for {n_classes} classes: some may be confused with each other."
    if len(empty):
        has = "has" if len(empty) == 1 else "have"
        finding = f"{_named(empty, n_classes)} {has} no row among the {X.shape[0]:,}: answers support fewer classes."
    elif len(untied) > 1:
        finding = f'{_named(untied, n_classes)} have no label and no "same" answer, so nothing tells them apart.'
    warn(f"{finding} {counts} {_ASK_MORE}, or ask for fewer classes.", ClassNumberWarning)


def _named(classes: Indices, n_classes: int) -> str:
    """Return the names of some classes, numbered from 0, as the beginning of a sentence."""
    return f"{'Class' if len(classes) == 1 else 'Classes'} {', '.join(map(str, classes + 1))} of {n_classes}"


def _of_one_kind(graph: AnswerGraph) -> bool:
    """Return whether all answers are of one kind and there are no labels."""
    return not graph.labels.any() and len(np.unique(graph.same)) == 1


def _least_classes(graph: AnswerGraph, model: AnswerModel) -> int:
    """Return the fewest classes that answers allow, those left out whose errors are known."""
    certain = np.isin(graph.annotators, [a for a, rate in model.by_annotator.items() if rate.low == 0])
    return least_classes(graph, certain) if not graph.refuted.any() else 2


def _check_answers(graph: AnswerGraph, n_classes: int, prior: object) -> None:
    """Refuse wrong labels; warn of answers of one kind."""
    class_columns(graph.labels[graph.labels != 0], n_classes)
    if _of_one_kind(graph):
        finding = '"same", which one class for all rows explains fully, so the classes are'
        if graph.same[0] < 0:
            unknown = "prior is" if n_classes == 2 else "classes are"
            finding = f'"different", which says nothing of how large the classes are, so the {unknown}'
        given = "" if prior is None else f", and all rests on `prior={prior}`"
        remedy = ", or give `prior` if you know it" if prior is None else ""
        warn(
            f"All answers are {finding} not identified by the answers{given}. Ask about randomly drawn pairs until "
            f"both answers have come, or add labels{remedy}.",
            OneKindWarning,
        )


def _check_number(problem: Problem, model: AnswerModel) -> None:
    """Refuse more classes than points, and fewer than answers without errors force; warn where errors might."""
    n_classes = problem.likelihood.n_classes
    n_points = len(problem.points.A)
    if n_points < n_classes:
        raise InputError(f"`n_classes={n_classes}`, but `X` shows {n_points} points. Lower `n_classes`.")
    needed = _least_classes(problem.likelihood.graph, model)
    if needed > n_classes:
        text = (
            f"{needed} points were all called different from each other, so there are at least {needed} classes, but "
            f"`n_classes={n_classes}`. Raise `n_classes`, or, if some of these answers may be wrong,"
        )
        if model.certain:
            raise InputError(f"{text} give `error_rate` above 0.")
        warn(f"{text} check them.", ClassNumberWarning)
