"""PairLogisticRegression and PairLogisticRegressionCV."""

from __future__ import annotations

import time
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import check_random_state

from sdulearn.base import LinearPairClassifier
from sdulearn.errors import InputError, OrientationWarning, warn
from sdulearn.joint.optimise import newton
from sdulearn.joint.path import Data, PairData, Summary, fit_path, held_out_loss, log_evidence
from sdulearn.model_selection import PairKFold, grid_results, positive_grid
from sdulearn.pairs import read_pairs
from sdulearn.prior import PriorEstimate, estimate_prior
from sdulearn.sklearn_private import HasMethods, Interval, StrOptions, fit_context
from sdulearn.solvers import warn_unless
from sdulearn.solvers.lbfgs import lbfgs_many
from sdulearn.types import Array

# Alphas of the default grid, as multiples of the alpha at which the model leaves zero.
_GRID_TOP, _GRID_BOTTOM = 10**0.5, 10**-3.5
_STEPS_DOWN = 6


class _PairLogisticBase(LinearPairClassifier):
    """What the estimator with a given penalty and the one that chooses it share."""

    def predict_proba(self, X: Any) -> Array:
        """P(y = -1) and P(y = +1) of each row."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def _vote(self, decision: Array, labels: NDArray[Any]) -> float:
        """The log odds of the two ways to name the classes; no single point weighs more than 5."""
        return float(labels @ np.clip(decision, -5, 5))

    def _prepare(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> PairData:
        """Check the input and lay it out in principal axes: ends, ends, unlabeled."""
        X, codes, weight = self._check_rows(X, y, sample_weight)
        pairs = read_pairs(codes)
        weight = np.ones(len(codes)) if weight is None else weight
        pair_weight = weight[pairs.ends[:, 0]]
        self.prior_, prior = self._resolve_prior(
            float(pair_weight @ pairs.similar), float(pair_weight @ ~pairs.similar)
        )
        return PairData.of(X, pairs, weight, prior, float(self.prior_strength))

    def _resolve_prior(self, n_similar: float, n_dissimilar: float) -> tuple[PriorEstimate, float | None]:
        """The prior as reported, and the one to pull towards (None where there is none)."""
        n_answers = n_similar + n_dissimilar
        if n_answers == 0:
            raise InputError(
                "PairLogisticRegression learns from pairs, and y marks none (or all weigh zero). Mark the two rows of "
                "each similar pair k with +k and of each dissimilar pair with -k; sdulearn.stack_pairs does it."
            )
        if self.prior is not None:
            return PriorEstimate.given(self.prior), float(self.prior)
        majority = "positive" if self.orientation == "majority" else "negative"
        estimate = estimate_prior(n_similar, n_dissimilar, majority=majority)
        if n_similar <= n_dissimilar:
            return estimate, None
        # Not 0 or 1 even if every pair is similar: a few more answers would have brought a
        # different one.
        margin = 1 / (4 * n_answers)
        return estimate, float(np.clip(estimate.value, margin, 1 - margin))

    def _starts(self, summary: Summary) -> list[Array]:
        starts = summary.starts()
        if self.init == "moment":
            starts = starts[:1]
        rng = check_random_state(self.random_state)
        for _ in range(self.n_init):
            direction = summary.unit(rng.normal(size=len(summary.variance)) / np.sqrt(summary.variance))
            starts.append(np.append(direction, starts[0][-1]))
        return starts

    def _finish(self, data: Data, v: Array, alpha: float, covariance_power: float) -> None:
        """Polish, certify, name the classes, and put everything a user sees in place."""
        pen = data.summary.penalty(alpha, covariance_power)[:, None]
        objective, scale = data.objective(pen), data.summary.scale(pen)
        W, _ = lbfgs_many(objective.value_and_gradient, v[:, None], scale, 1e-4, 50)
        v, self.objective_, self.optimality_, self.n_iter_ = newton(
            objective, W[:, 0], scale[:, 0], self.tol, self.max_iter
        )
        coef, intercept = data.axes.coefficients(v)
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])
        self.classes_ = np.array([-1, 1])
        warn_unless(self.optimality_, self.tol, self.n_iter_)
        self._name_classes(*data.positive_share(v))

    def _name_classes(self, positive: float, spread: float) -> None:
        """Call the larger class on unlabeled rows +1, or as the prior or ``orientation`` says.

        ``positive`` is the share of rows on the positive side, ``spread`` the sum of the squared
        shares of a row.
        """
        larger_is_positive = self.orientation == "majority" if self.prior is None else self.prior >= 0.5
        if (positive > 0.5) != larger_is_positive and positive != 0.5:
            self.coef_, self.intercept_ = -self.coef_, -self.intercept_
        # Two standard errors of the share; and where the counts cannot tell p from 1/2, what the
        # pull may have added.
        margin = max(2 * np.sqrt(0.25 * spread), 0.0 if self.prior_.identified else 0.1)
        if self.prior == 0.5 or (self.prior is None and abs(positive - 0.5) <= margin):
            warn(
                f"The model puts {max(positive, 1 - positive):.0%} of the rows on one side, so which class is the "
                "larger is uncertain and the names -1 and +1 are arbitrary. Settle them with a few labelled points: "
                "orient(X, y_true).",
                OrientationWarning,
            )


class PairLogisticRegression(_PairLogisticBase):
    """Logistic regression from same/different answers: the joint likelihood of both ends of a pair.

    With ``s(x) = logistic(w.x + b)`` the chance of the answer "same" is ``s(x) s(x') + (1 - s(x))
    (1 - s(x'))``. The estimator maximises the likelihood of the answers, with a penalty on w and,
    where the prior is given or the counts imply one, a pull of the mean prediction on unlabeled
    rows towards it. It needs no prior and works at 1/2, where the risks of
    :class:`~sdulearn.SDUClassifier` are undefined. The problem is not convex: it is started from
    the top eigenvector of the whitened pair moment and from the SD solution, down a path of
    penalties.

    Standardise the features first. Time O((n_pairs + n_unlabeled) d) a step after one
    eigendecomposition of a d x d matrix; rows are kept dense in their principal axes, O(n min(n,
    d)) memory.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of the penalty, beside the *mean* loss of a pair.
    covariance_power : float, default=1
        Power k of the covariance of all rows in the penalty ``w' C^-k w``: 0 is the plain ridge,
        more leans on directions along which the rows, unlabeled ones too, vary most.
    prior : float or None, default=None
        P(y = +1); None takes it from the pair counts where they imply one.
    prior_strength : float, default=3
        Strength of the pull of the mean prediction on unlabeled rows towards the prior.
    orientation : {"majority", "minority"}, default="majority"
        With ``prior=None``: whether the larger or the smaller class, by the prediction on unlabeled
        rows, is +1.
    init : {"auto", "moment"}, default="auto"
        "auto" starts from the pair moment and the SD solution, "moment" from the first alone.
    n_init : int, default=0
        Further random starts.
    random_state : int, RandomState or None, default=None
        Seed of those.
    tol : float, default=1e-6
        Largest gradient norm (in the norm of the Hessian) that passes without a ConvergenceWarning.
    max_iter : int, default=100
        Largest number of Newton iterations of the polish.

    Attributes
    ----------
    coef_, intercept_, classes_, prior_, objective_, optimality_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`~sdulearn.SDUClassifier`; ``objective_`` is the best of all starts.

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
        "prior": [Interval(Real, 0, 1, closed="neither"), None],
        "prior_strength": [Interval(Real, 0, None, closed="left")],
        "orientation": [StrOptions({"majority", "minority"})],
        "init": [StrOptions({"auto", "moment"})],
        "n_init": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        covariance_power: float = 1,
        prior: float | None = None,
        prior_strength: float = 3.0,
        orientation: str = "majority",
        init: str = "auto",
        n_init: int = 0,
        random_state: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        self.alpha = alpha
        self.covariance_power = covariance_power
        self.prior = prior
        self.prior_strength = prior_strength
        self.orientation = orientation
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit from rows and pair codes.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            One row per point: ends of pairs and unlabeled points.
        y : array-like of shape (n_rows,)
            Pair codes: +k similar, -k dissimilar, 0 unlabeled.
        sample_weight : array-like of shape (n_rows,), optional
            A weight per row; both ends of a pair carry one weight.

        Returns
        -------
        self
        """
        data = self._prepare(X, y, sample_weight)
        self._finish(data, self._descend(data), self.alpha, self.covariance_power)
        return self

    def _descend(self, data: Data) -> Array:
        """The solution at ``alpha``, in the axes, by the path from where the model leaves zero."""
        top = max(data.summary.largest_alpha(self.covariance_power), self.alpha)
        alphas = np.geomspace(top, self.alpha, _STEPS_DOWN if top > self.alpha else 1)[:, None]
        return fit_path(data, alphas, [self.covariance_power], self._starts(data.summary))[-1, :, 0]


class PairLogisticRegressionCV(_PairLogisticBase):
    """PairLogisticRegression with its penalty chosen from the pairs alone; the estimator to try first.

    The power is chosen by Laplace's evidence, then alpha by the held-out log-likelihood of the
    answers over pair-safe folds. The whole path is solved at once, warm-started.

    Parameters
    ----------
    alphas : int or sequence of float, default=8
        Penalties to try; a number stands for that many on a grid that begins where the model leaves
        zero.
    covariance_powers : sequence of float, default=(0, 1, 2)
        Powers of the covariance in the penalty to try.
    prior, prior_strength, orientation, init, n_init, random_state, tol, max_iter
        As in :class:`~sdulearn.PairLogisticRegression`.
    cv : int or splitter, default=5
        Number of pair-safe folds (dealt with a fixed seed), or an object such as
        :class:`~sdulearn.PairKFold`.

    Attributes
    ----------
    alpha_, covariance_power_ : float
        The choice.
    cv_results_ : dict
        As GridSearchCV's, over the alphas of the chosen power; a score is the mean log-likelihood
        of a held-out answer. Folds start from the solution on all pairs, so the scores are a shade
        optimistic.
    evidence_ : array of shape (n_alphas, n_powers)
        Laplace's log evidence of every setting; -inf where the model is empty and names no classes.
    alphas_ : array of shape (n_alphas, n_powers)
        The penalties tried.
    coef_, intercept_, classes_, prior_, objective_, optimality_, n_iter_, n_features_in_,
    feature_names_in_
        As in :class:`~sdulearn.SDUClassifier`, from all pairs.

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

    FITTED = (*LinearPairClassifier.FITTED, "alpha_", "covariance_power_", "cv_results_", "evidence_", "alphas_")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: constraint
            for name, constraint in PairLogisticRegression._parameter_constraints.items()
            if name not in ("alpha", "covariance_power")
        },
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "covariance_powers": ["array-like"],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"])],
    }

    def __init__(
        self,
        alphas: int | Sequence[float] = 8,
        *,
        covariance_powers: Sequence[float] = (0, 1, 2),
        prior: float | None = None,
        prior_strength: float = 3.0,
        orientation: str = "majority",
        cv: Any = 5,
        init: str = "auto",
        n_init: int = 0,
        random_state: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        self.alphas = alphas
        self.covariance_powers = covariance_powers
        self.prior = prior
        self.prior_strength = prior_strength
        self.orientation = orientation
        self.cv = cv
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose covariance power and alpha, then fit on all pairs.

        Parameters are those of :meth:`PairLogisticRegression.fit`.
        """
        data = self._prepare(X, y, sample_weight)
        covariance_powers = [float(k) for k in self.covariance_powers]
        if not covariance_powers or min(covariance_powers) < 0:
            raise InputError(
                f"`covariance_powers` must hold at least one power of 0 or more, got {self.covariance_powers!r}."
            )
        largest = np.array([data.summary.largest_alpha(k) for k in covariance_powers])
        self.alphas_ = self._grid(largest)
        path = fit_path(data, self.alphas_, covariance_powers, self._starts(data.summary))
        self.evidence_ = self._evidence(data, path, covariance_powers)
        if data.summary.prior is None and (self.alphas_ < largest).any():
            self.evidence_[self.alphas_ >= largest] = -np.inf
        best = int(np.argmax(np.max(self.evidence_, axis=0)))
        self.covariance_power_, column = covariance_powers[best], self.alphas_[:, best]
        self.cv_results_ = self._cross_validate(data, X, y, column, path[:, :, best])
        scores = np.where(np.isfinite(self.evidence_[:, best]), self.cv_results_["mean_test_score"], -np.inf)
        chosen = int(np.argmax(scores))
        self.alpha_ = float(column[chosen])
        self._finish(data, path[chosen, :, best], self.alpha_, self.covariance_power_)
        return self

    def _grid(self, largest: Array) -> Array:
        """Alphas that fall, one column a power."""
        if isinstance(self.alphas, Integral):
            return np.outer(np.geomspace(_GRID_TOP, _GRID_BOTTOM, int(self.alphas)), largest)
        given = sorted(positive_grid("alphas", np.asarray(self.alphas).tolist()), reverse=True)
        return np.repeat(np.array(given)[:, None], len(largest), axis=1)

    def _evidence(self, data: PairData, path: Array, covariance_powers: list[float]) -> Array:
        return np.array(
            [
                [log_evidence(data, W[:, j], data.summary.penalty(row[j], k)) for j, k in enumerate(covariance_powers)]
                for W, row in zip(path, self.alphas_, strict=True)
            ]
        )

    def _cross_validate(self, data: PairData, X: Any, y: ArrayLike, alphas: Array, path: Array) -> dict[str, Any]:
        """Held-out log-likelihood of the answers, of each alpha and fold."""
        began = time.perf_counter()
        cv = PairKFold(int(self.cv), random_state=0) if isinstance(self.cv, Integral) else self.cv
        codes = np.asarray(y)
        first_ends = read_pairs(codes).ends[:, 0]
        splits = list(cv.split(X, codes))
        train, test = (np.column_stack([np.isin(first_ends, split[part]) for split in splits]) for part in (0, 1))
        loss = held_out_loss(data, alphas, self.covariance_power_, path, train)
        weight = data.omega * test
        scores = -np.einsum("ik,iak->ka", weight, loss) / weight.sum(axis=0)[:, None]
        seconds = np.full(len(splits), (time.perf_counter() - began) / loss[0].size)
        return grid_results([float(a) for a in alphas], [None], scores[:, :, None], seconds, np.zeros(len(splits)))
