"""The steps of a fit with two classes: starts, the path of penalties, evidence, folds, polish and names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sdulearn.base import Fit
from sdulearn.errors import OrientationWarning, warn
from sdulearn.joint.data import Axes, Moments, TrainingData, axis_penalty
from sdulearn.joint.likelihood import (
    Columns,
    FoldLikelihood,
    HasSums,
    Objective,
    PriorPull,
    Sums,
    TwoClassLikelihood,
    bordered_sum,
    mean_curvature,
    mean_sums,
)
from sdulearn.prior import PriorEstimate
from sdulearn.solvers.lbfgs import lbfgs_many
from sdulearn.solvers.newton import newton
from sdulearn.types import Array, Mask

# Iterations after which only the best start of each problem is continued.
_TRIAL_ITER = 12
# How well the path is solved.
_PATH_TOL = 5e-3
_PATH_ITER = 200
_STEPS_DOWN = 6
# The last steps of L-BFGS, before Newton's method.
_POLISH_TOL = 1e-4
_POLISH_ITER = 50
# Standard deviation of the logits of a model that says nothing.
_EMPTY = 1e-3
# The penalty of fits that only name classes, try starts or judge annotators, as a share of the alpha at which the
# model leaves zero.
WORKING_ALPHA = 0.03


class Parameters(Protocol):
    """The parameters that both estimators have."""

    prior: float | None
    prior_strength: float
    orientation: str
    init: str
    tol: float
    max_iter: int


class Problem(HasSums, Protocol):
    """What a fit needs, whether its rows are in memory or in blocks."""

    axes: Axes
    moments: Moments

    def positive_share(self, v: Array) -> tuple[float, float]:
        """Share of the unlabeled rows on the positive side, and the sum of their squared weights.

        Of all rows where none is unlabeled.
        """
        ...


class PointProblem:
    """Points in memory with a likelihood of what is known of them; :class:`FoldProblem` of all folds at once."""

    def __init__(
        self, data: TrainingData, likelihood: TwoClassLikelihood, prior: float | None, prior_strength: float
    ) -> None:
        self.data = data
        self.axes = data.axes
        self.likelihood = likelihood
        joint, ends, named = likelihood.moments(data.known)
        self.moments = Moments.of(data.axes.variance, joint, ends, prior, named)
        strength = prior_strength * likelihood.pull_share() if prior_strength else 0.0
        self.pull = PriorPull.of(prior, strength, len(data.share))
        self.exact_hessian = likelihood.exact_curvature

    @property
    def is_loose(self) -> bool:
        """Whether all answers are certain, and none shares a point with others or with a label."""
        return self.likelihood.is_loose and self.likelihood.is_certain

    def slopes(self, W: Array, columns: Columns, exact: bool) -> Sums:
        """See :class:`~sdulearn.joint.likelihood.HasSums`."""
        return _slopes(self, self.likelihood, W, columns, exact)

    def curvatures(self, w: Array) -> Sums:
        """See :class:`~sdulearn.joint.likelihood.HasSums`."""
        n = self.data.graph.n_points
        z = self.data.A @ w[:-1] + w[-1]
        sums = {"curvature": self.likelihood.curvature(self.data.known, z[:n])}
        if self.pull is not None:
            sums["mean_curvature"] = mean_curvature(self.data.unlabeled, self.data.share, z[n:])
        return sums

    def positive_share(self, v: Array) -> tuple[float, float]:
        """See :class:`Problem`."""
        A, share = self.data.judged()
        return float(share @ (A @ v[:-1] + v[-1] > 0)), float(share @ share)

    def empty(self, alphas: Array, covariance_powers: Sequence[float], path: Array) -> Mask:
        """Where on the path (n_alphas, n_powers) the model names no classes."""
        if not self.is_loose:
            # Its logits hardly vary.
            variance = np.einsum("ajk,j->ak", path[:, :-1] ** 2, self.moments.variance)
            return np.asarray(variance < _EMPTY**2)
        if self.moments.prior is not None:
            return np.zeros(alphas.shape, dtype=bool)
        return alphas >= [self.moments.largest_alpha(power) for power in covariance_powers]

    def log_evidence(self, w: Array, pen: Array) -> float:
        """Laplace's log evidence of one penalty at its solution, by the answers' Fisher information."""
        z = self.data.known @ w[:-1] + w[-1]
        losses, _ = self.likelihood.terms(z[:, None], exact=True)
        misfit = float(self.likelihood.omega @ losses[:, 0]) + float(pen @ w[:-1] ** 2) / 2
        J = self.likelihood.information(self.data.known, z) / np.sqrt(pen)
        return -self.likelihood.n_effective * misfit - _log_volume(J)


class FoldProblem:
    """As many problems as folds, each of the answers and labels that it knows; see :class:`Problem`."""

    exact_hessian = False

    def __init__(self, problem: PointProblem, known: Mask) -> None:
        self.data = problem.data
        self.pull = problem.pull
        self.likelihood = FoldLikelihood(problem.likelihood, known)

    def slopes(self, W: Array, columns: Columns, exact: bool) -> Sums:
        """See :class:`~sdulearn.joint.likelihood.HasSums`."""
        return _slopes(self, self.likelihood, W, columns, exact)

    def curvatures(self, w: Array) -> Sums:
        """Not asked for: folds are compared, and need no last digits."""
        raise NotImplementedError


def _slopes(
    problem: PointProblem | FoldProblem,
    likelihood: TwoClassLikelihood | FoldLikelihood,
    W: Array,
    columns: Columns,
    exact: bool,
) -> Sums:
    data = problem.data
    n = data.graph.n_points
    A = data.known if problem.pull is None else data.A
    Z = A @ W[:-1] + W[-1]
    value, slopes = likelihood.weighted_terms(Z[:n], columns, exact)
    sums = {"loss": value, "slope": bordered_sum(data.known, slopes)}
    if problem.pull is not None:
        sums |= mean_sums(data.unlabeled, data.share, Z[n:])
    return sums


def _log_volume(J: Array) -> float:
    """``log det(I + J'J) / 2``; the determinant is that of I + JJ', and the smaller one is computed."""
    K = J @ J.T if len(J) < J.shape[1] else J.T @ J
    K[np.diag_indices(len(K))] += 1
    return float(np.linalg.slogdet(K)[1]) / 2


def fit_path(
    rows: HasSums, moments: Moments, alphas: Array, covariance_powers: Sequence[float], starts: list[Array]
) -> Array:
    """Solutions (n_alphas, r + 1, n_powers) for alphas (n_alphas, n_powers) that fall.

    Candidates at each alpha are the last alpha's solution and the first start; at the first alpha
    every start. A start is one for all columns, or (r + 1, n_powers).
    """
    m = len(covariance_powers)
    path: list[Array] = []
    for row in alphas:
        candidates = [np.repeat(start[:, None], m, axis=1) if start.ndim == 1 else start for start in starts]
        if path:
            candidates = [path[-1], candidates[0]]
        count = len(candidates)
        pen = np.tile(moments.penalties(row, covariance_powers), count)
        evaluate = Objective(rows, pen).value_and_gradient
        scale = moments.scale(pen)
        W, f = lbfgs_many(evaluate, np.hstack(candidates), scale, _PATH_TOL, _TRIAL_ITER)
        # Ties go to the earlier candidate: the warm start.
        best = np.argmin(f.reshape(count, m) + 1e-6 * np.arange(count)[:, None], axis=0)
        W = W.reshape(-1, count, m)[:, best, np.arange(m)]
        W, _ = lbfgs_many(evaluate, W, scale[:, :m], _PATH_TOL, _PATH_ITER)
        path.append(W)
    return np.array(path)


def path_evidence(problem: PointProblem, alphas: Array, covariance_powers: Sequence[float], path: Array) -> Array:
    """Laplace's log evidence of every setting on the path (n_alphas, n_powers)."""
    evidence = np.empty(alphas.shape)
    for i, j in np.ndindex(*alphas.shape):
        pen = axis_penalty(problem.moments.variance, float(alphas[i, j]), covariance_powers[j])
        evidence[i, j] = problem.log_evidence(path[i, :, j], pen)
    return evidence


def fit_folds(problem: PointProblem, alphas: Array, covariance_power: float, known: Mask) -> tuple[Array, Array]:
    """Mean log chance (n_folds, n_alphas) of what each fold does not know, and logits (n_known, n_alphas, n_folds).

    ``known`` (n_known, n_folds) are the points of each fold. A fold must not start from what was found with the
    answers that it leaves out: an alpha in the middle is solved from its own starts, and the others in one batch
    from there.
    """
    n_folds = known.shape[1]
    folds = FoldProblem(problem, known)
    likelihood = folds.likelihood
    moments = problem.moments
    A = problem.data.known
    of_folds = []
    for k in range(n_folds):
        joint, ends, named = likelihood.moments(A, k)
        of_folds.append(Moments.of(moments.variance, joint, ends, moments.prior, named))
    starts = [of_fold.starts() for of_fold in of_folds]
    # A fold without labels has fewer starts, and repeats its last.
    count = max(len(of_fold) for of_fold in starts)
    columns = [np.column_stack([s[min(k, len(s) - 1)] for s in starts]) for k in range(count)]
    middle = np.full((1, n_folds), alphas[(len(alphas) - 1) // 2])
    first = fit_path(folds, moments, middle, [covariance_power] * n_folds, columns)[0]
    pen = np.repeat(moments.penalties(alphas, [covariance_power] * len(alphas)), n_folds, axis=1)
    evaluate = Objective(folds, pen).value_and_gradient
    W, _ = lbfgs_many(evaluate, np.tile(first, len(alphas)), moments.scale(pen), _PATH_TOL, _PATH_ITER)
    Z = (A @ W[:-1] + W[-1]).reshape(len(A), len(alphas), n_folds)
    scores = np.empty((n_folds, len(alphas)))
    for k, of_fold in enumerate(of_folds):
        scores[k] = likelihood.score(Z[:, :, k], k)
        if of_fold.named is None and moments.named is not None:
            # Without a label a fold cannot know which class is which, and is not to be blamed for it.
            scores[k] = np.maximum(scores[k], likelihood.score(-Z[:, :, k], k))
    return scores, Z


def make_starts(parameters: Parameters, moments: Moments) -> list[Array]:
    """Where the path begins: the starts that ``init`` names."""
    starts = moments.starts()
    return starts[:1] if parameters.init == "moment" else starts


def descend(parameters: Parameters, problem: Problem, alpha: float, covariance_power: float) -> Array:
    """The solution at ``alpha``, in the axes, by the path from where the model leaves zero."""
    top = max(problem.moments.largest_alpha(covariance_power), alpha)
    alphas = np.geomspace(top, alpha, _STEPS_DOWN if top > alpha else 1)[:, None]
    starts = make_starts(parameters, problem.moments)
    return fit_path(problem, problem.moments, alphas, [covariance_power], starts)[-1, :, 0]


def polish(
    parameters: Parameters,
    problem: Problem,
    v: Array,
    alpha: float,
    covariance_power: float,
    prior: PriorEstimate,
    fitted: dict[str, object],
) -> Fit:
    """Solve to ``tol`` from a solution of the path, certify it and name the classes."""
    pen = problem.moments.penalties([alpha], [covariance_power])
    objective = Objective(problem, pen, exact=True)
    scale = problem.moments.scale(pen)
    # Without an exact Hessian Newton's method is slow: L-BFGS does it all.
    tol = _POLISH_TOL if objective.exact_hessian else parameters.tol
    n_steps = _POLISH_ITER if objective.exact_hessian else 10 * parameters.max_iter
    W, _ = lbfgs_many(objective.value_and_gradient, v[:, None], scale, tol, n_steps)
    v, value, optimality, n_iter = newton(objective, W[:, 0], scale[:, 0], parameters.tol, parameters.max_iter)
    # Labels have named the classes.
    sign = 1.0 if problem.moments.named is not None else class_sign(parameters, prior, *problem.positive_share(v))
    coef, intercept = problem.axes.coefficients(v)
    return Fit(sign * coef[None, :], np.array([sign * intercept]), value, optimality, n_iter, prior, fitted=fitted)


def class_sign(parameters: Parameters, prior: PriorEstimate, positive: float, spread: float) -> float:
    """The sign that makes the larger class +1, or as ``prior`` or ``orientation`` says.

    ``positive`` is the share of the unlabeled rows on the positive side, ``spread`` the sum of
    the squared weights of the rows.
    """
    # Two standard errors of the share; and where the counts cannot tell p from 1/2, what the pull to the
    # prior may have added.
    margin = max(2 * np.sqrt(0.25 * spread), 0.0 if prior.identified else 0.1)
    close = abs(positive - 0.5) <= margin
    if parameters.prior == 0.5 or (parameters.prior is None and close):
        warn(
            f"The model puts {max(positive, 1 - positive):.0%} of the rows on one side, so which class "
            "is the larger is uncertain and the names -1 and +1 are arbitrary. Name them by a few "
            "labelled points: orient(X, y_true).",
            OrientationWarning,
        )
    larger_is_positive = parameters.orientation == "majority"
    if parameters.prior is not None:
        larger_is_positive = parameters.prior >= 0.5
    return 1.0 if positive == 0.5 or (positive > 0.5) == larger_is_positive else -1.0
