"""The steps of a fit: starts, the path of penalties, evidence, folds, polish and class names.

With two classes many problems are solved at once, one column each. With more classes the problems
are far from convex, and each is solved from many starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit

from sdulearn.answers.propagate import log_factors
from sdulearn.base import Fit
from sdulearn.errors import OrientationWarning, warn
from sdulearn.joint.classes import ClassProblem, log_probabilities
from sdulearn.joint.data import PriorPull, TrainingData, axis_penalties, bordered_sum, rough_inverse_hessian
from sdulearn.joint.likelihood import LoosePairs, TwoClassLikelihood, mean_prediction
from sdulearn.model_selection import grid_results
from sdulearn.prior import PriorEstimate
from sdulearn.progress import steps
from sdulearn.solvers.smooth import Counted, gradient_norm, lbfgs_many
from sdulearn.types import Array, Codes, Indices, Mask

if TYPE_CHECKING:
    from sdulearn.joint.estimators import PairLogisticBase

Columns = Indices | Sequence[int]

# Iterations after which only the best start of each problem is continued.
_TRIAL_ITER = 12
# Tolerance and iterations of the problems on a path.
_PATH_TOL = 5e-3
_PATH_ITER = 200
_STEPS_DOWN = 6
# A model whose logits have a smaller standard deviation is empty.
_EMPTY = 1e-3
# The penalty of fits that only name classes, try starts or judge annotators, as a share of the
# alpha at which the model leaves zero.
WORKING_ALPHA = 0.03
# K classes: iterations of every start, how many starts are continued, and the tolerance of the
# path.
_CLASS_TRIAL_ITER = 15
_N_FOLLOWED = 3
_CLASS_PATH_TOL = 2e-3
_CLASS_STEPS_DOWN = 4
_CLASS_MEMORY = 20
# How often points are clustered again from a solution, at most, and what a better solution must
# gain.
_N_AGAIN = 4
_N_AGAIN_OF_A_NUMBER = 2
_BETTER = 1e-4
# Iterations of the models of folds, and how much their starts are shrunk.
_FOLD_ITER = 30
_SHRUNK = 0.5
# No single answer may dominate the score of a model.
_SMALLEST_CHANCE = 1e-6
# Few answers make overconfident models, and a strong penalty underconfident ones: logits are
# divided by the one of these that suits all folds best.
TEMPERATURES = (0.7, 1.0, 1.5, 2.0, 3.0)
# With answers that may be wrong, the gradient is only as exact as the messages.
_PROPAGATED_TOL = 1e-3
# A model that judges answers is taken to guess at this share of the points.
_BLIND = 0.3
# Penalties, as shares of the largest, with which numbers of classes are compared.
_NUMBER_SHARES = (0.03, 0.006, 0.001)
# The gain that one more class must bring, as a share of the log score.
_WORTH_A_CLASS = 0.03
# The search ends after this many numbers of classes without a gain.
_PATIENCE = 2


@dataclass(eq=False)
class PointProblem:
    """Equation (4) of :mod:`sdulearn.joint.likelihood` for points in memory, with two classes."""

    data: TrainingData
    likelihood: TwoClassLikelihood
    prior: float | None  # given, or None
    strength: float  # of the pull to a given prior

    def __post_init__(self) -> None:
        # Column c of a batch has the likelihood number c modulo their count: that of all answers,
        # or one for each fold.
        self.of_columns = [self.likelihood]
        self.axes = self.data.axes
        self.moments = self.likelihood.moments(self.data.known, self.axes.variance, self.prior)
        self.pull = PriorPull.of(self.prior, self.strength, len(self.data.share))

    def objective(self, W: Array, columns: Columns, pen: Array, exact: bool = False) -> tuple[Array, Array]:
        """Return values and gradients at ``W`` (r + 1, B), with ``columns`` of ``pen``."""
        data = self.data
        Z = data.known @ W[:-1] + W[-1]
        number = np.asarray(columns) % len(self.of_columns)
        value = np.empty(Z.shape[1])
        slopes = np.empty(Z.shape)
        for k, likelihood in enumerate(self.of_columns):
            mine = number == k
            losses, slope = likelihood.terms(Z if mine.all() else Z[:, mine], exact)
            value[mine] = likelihood.omega @ losses
            slopes[:, mine] = likelihood.omega[likelihood.component][:, None] * slope
        gradient = bordered_sum(data.known, slopes)
        if self.pull is not None:
            mean, slope = mean_prediction(data.unlabeled, data.share, W)
            divergence, first, _ = self.pull.derivatives(mean)
            value += divergence
            gradient += first * slope
        penalised = pen[:, columns] * W[:-1]
        gradient[:-1] += penalised
        return value + np.einsum("ij,ij->j", penalised, W[:-1]) / 2, gradient

    def positive_share(self, v: Array) -> tuple[float, float]:
        """Return the positive share of the judged points, and the sum of squared weights."""
        A, share = self.data.judged
        return float(share @ (A @ v[:-1] + v[-1] > 0)), float(share @ share)

    def empty(self, alphas: Array, powers: Sequence[float], path: Array) -> Mask:
        """Return where on the path (n_alphas, n_powers) the logits hardly vary."""
        variance = np.einsum("ajk,j->ak", path[:, :-1] ** 2, self.axes.variance)
        empty = variance < _EMPTY**2
        if self.prior is None and self.moments.named is None:
            # Nothing leads away from zero, and the penalty is too strong to leave it.
            empty |= alphas >= [self.moments.alpha_max(power) for power in powers]
        return np.asarray(empty)

    def log_evidence(self, w: Array, pen: Array) -> float:
        """Return Laplace's log evidence of one penalty, with the Fisher information."""
        z = self.data.known @ w[:-1] + w[-1]
        losses, _ = self.likelihood.terms(z[:, None], exact=True)
        misfit = float(self.likelihood.omega @ losses[:, 0]) + float(pen @ w[:-1] ** 2) / 2
        J = self.likelihood.information(self.data.known, z) / np.sqrt(pen)
        # log det(I + J'J) / 2. The determinant equals that of I + JJ', and the smaller one is
        # computed.
        K = J @ J.T if len(J) < J.shape[1] else J.T @ J
        K[np.diag_indices(len(K))] += 1
        # The number of answers and labels of equal weight with as much information.
        n_effective = 1 / float(self.likelihood.omega**2 @ self.likelihood.n_independent)
        return -n_effective * misfit - float(np.linalg.slogdet(K)[1]) / 2


def fit_path(problem: PointProblem, alphas: Array, powers: Sequence[float], starts: list[Array]) -> Array:
    """Return solutions (n_alphas, r + 1, m) for falling alphas (n_alphas, m), with m covariance powers."""
    m = len(powers)
    starts = [np.repeat(start[:, None], m, axis=1) if start.ndim == 1 else start for start in starts]
    path: list[Array] = []
    for row in steps(alphas, "penalties"):
        # The last alpha's solution and the first start; at the first alpha every start.
        candidates = [path[-1], starts[0]] if path else starts
        count = len(candidates)
        pen = np.tile(axis_penalties(problem.axes.variance, row, powers), count)
        evaluate = partial(problem.objective, pen=pen)
        scale = rough_inverse_hessian(problem.axes.variance, pen)
        W, f = lbfgs_many(evaluate, np.hstack(candidates), scale, _PATH_TOL, _TRIAL_ITER)
        # Ties go to the earlier candidate: the warm start.
        best = np.argmin(f.reshape(count, m) + 1e-6 * np.arange(count)[:, None], axis=0)
        W = W.reshape(-1, count, m)[:, best, np.arange(m)]
        W, _ = lbfgs_many(evaluate, W, scale[:, :m], _PATH_TOL, _PATH_ITER)
        path.append(W)
    return np.array(path)


def fit_folds(problem: PointProblem, alphas: Array, power: float, known: Mask) -> tuple[Array, Array]:
    """Return held-out scores (n_folds, n_alphas), and solutions (r + 1, n_alphas, n_folds)."""
    n_folds = known.shape[1]
    folds = copy(problem)
    folds.of_columns = [problem.likelihood.restricted(shown) for shown in known.T]
    A = problem.data.known
    variance = problem.axes.variance
    moments = [part.moments(A, variance, problem.prior) for part in folds.of_columns]
    # A fold must not start from a solution that knows the answers it leaves out: an alpha in the
    # middle is solved from the fold's own starts, the others from there. A fold without labels has
    # fewer starts, and repeats its last.
    starts = [of_fold.starts() for of_fold in moments]
    count = max(len(of_fold) for of_fold in starts)
    columns = [np.column_stack([s[min(k, len(s) - 1)] for s in starts]) for k in range(count)]
    middle = np.full((1, n_folds), alphas[(len(alphas) - 1) // 2])
    first = fit_path(folds, middle, [power] * n_folds, columns)[0]
    pen = np.repeat(axis_penalties(variance, alphas, power), n_folds, axis=1)
    scale = rough_inverse_hessian(variance, pen)
    evaluate = partial(folds.objective, pen=pen)
    W, _ = lbfgs_many(evaluate, np.tile(first, len(alphas)), scale, _PATH_TOL, _PATH_ITER)
    W = W.reshape(-1, len(alphas), n_folds)
    Z = np.tensordot(A, W[:-1], 1) + W[-1]
    scores = np.empty((n_folds, len(alphas)))
    for k, (part, shown) in enumerate(zip(folds.of_columns, known.T, strict=True)):
        scores[k] = fold_score(problem.likelihood, part, shown, Z[:, :, k])
        if moments[k].named is None and problem.moments.named is not None:
            # A fold without a label cannot know which class is which, and is scored by the better
            # naming.
            scores[k] = np.maximum(scores[k], fold_score(problem.likelihood, part, shown, -Z[:, :, k]))
    return scores, W


def outwards(alphas: Array | Sequence[float], alpha_max: float) -> tuple[int, list[tuple[int, int]]]:
    """Return the alpha nearest to the pilot, and the others with the neighbours that they start from."""
    pilot = int(np.argmin(np.abs(np.log(np.asarray(alphas) / (WORKING_ALPHA * alpha_max)))))
    up = [(i, i + 1) for i in reversed(range(pilot))]
    return pilot, up + [(i, i - 1) for i in range(pilot + 1, len(alphas))]


def fold_score(whole: TwoClassLikelihood, part: TwoClassLikelihood, shown: Mask, Z: Array) -> Array:
    """Return the mean log likelihood (B,) of what ``part`` leaves out; NaN if nothing."""
    graph = whole.graph
    _, slopes = part.terms(Z)
    # The slope is node probability minus posterior.
    odds = np.where(slopes == 0, Z, logit(np.clip(expit(Z) - slopes, 1e-15, 1 - 1e-15)))
    answers = np.flatnonzero(~shown[graph.ends].all(axis=1))
    labels = np.flatnonzero(~shown & (graph.labels != 0))
    weight = whole.weight[whole.component[np.concatenate([graph.ends[answers, 0], labels])]]
    if not len(weight):
        return np.full(Z.shape[1], np.nan)
    factors = log_factors(graph.same[answers], whole.errors[answers], np.ones(len(answers)))
    of_answers, _ = LoosePairs(*factors).terms(odds[graph.ends[answers].T.ravel()])
    of_labels = np.logaddexp(0, -graph.labels[labels, None] * odds[labels])
    return -(weight @ np.concatenate([of_answers, of_labels])) / weight.sum()


def choose_and_fit(
    problem: PointProblem,
    parameters: PairLogisticBase,
    alphas: Array,
    powers: Sequence[float],
    known: Mask,
    prior: PriorEstimate,
) -> tuple[Fit, Array]:
    """Return the fit with the best of alphas (n_alphas, n_powers), and the solutions (r + 1, n_folds) of its folds.

    Laplace's evidence chooses the power, and alpha where answers share points: folds would cut
    them. Folds choose alpha from loose pairs, of which they lose none.
    """
    path = fit_path(problem, alphas, powers, problem.moments.starts())
    evidence = np.empty(alphas.shape)
    for i, row in enumerate(alphas):
        pen = axis_penalties(problem.axes.variance, row, powers)
        evidence[i] = [problem.log_evidence(path[i, :, j], pen[:, j]) for j in range(len(row))]
    empty = problem.empty(alphas, powers, path)
    evidence[empty & ~empty.all()] = -np.inf
    row, best = map(int, np.unravel_index(np.argmax(evidence), evidence.shape))
    scores, W = fit_folds(problem, alphas[:, best], powers[best], known)
    results = grid_results([{"alpha": alpha} for alpha in alphas[:, best].tolist()], scores)
    if problem.likelihood.is_loose:
        row = int(np.argmax(np.where(np.isfinite(evidence[:, best]), results["mean_test_score"], -np.inf)))
    alpha = float(alphas[row, best])
    fitted = {
        "alpha_": alpha,
        "covariance_power_": powers[best],
        "cv_results_": results,
        "alphas_": alphas[:, best],
        "answer_model_": problem.likelihood.answer_model,
    }
    fit = polish(parameters, problem, path[row, :, best], alpha, powers[best], prior)
    return replace(fit, fitted=fitted), W[:, row]


def descend(problem: PointProblem, alpha: float, power: float) -> Array:
    """Return the solution at ``alpha`` by the path from zero."""
    top = max(problem.moments.alpha_max(power), alpha)
    alphas = np.geomspace(top, alpha, _STEPS_DOWN if top > alpha else 1)[:, None]
    return fit_path(problem, alphas, [power], problem.moments.starts())[-1, :, 0]


def polish(
    parameters: PairLogisticBase, problem: PointProblem, v: Array, alpha: float, power: float, prior: PriorEstimate
) -> Fit:
    """Solve to ``tol`` from a solution of the path, certify it and name the classes."""
    pen = axis_penalties(problem.axes.variance, [alpha], power)
    scale = rough_inverse_hessian(problem.axes.variance, pen)
    objective = Counted(partial(problem.objective, pen=pen, exact=True))
    W, _ = lbfgs_many(objective, v[:, None], scale, parameters.tol, parameters.max_iter)
    value, gradient = objective(W, np.zeros(1, dtype=np.intp))
    v = W[:, 0]
    positive, spread = problem.positive_share(v)
    sign = 1.0
    if problem.moments.named is None:
        sign = class_sign(parameters, prior, positive, spread)
    elif problem.prior is None and (positive > 0.5) != (prior.value > 0.5):
        # Labels have named the classes, and the estimated prior follows them.
        prior = prior.mirrored()
    coef, intercept = problem.axes.coefficients(v)
    certificate = (float(value[0]), float(gradient_norm(gradient, scale)[0]), objective.n_calls)
    return Fit(sign * coef[None, :], np.array([sign * intercept]), *certificate, prior)


def class_sign(parameters: PairLogisticBase, prior: PriorEstimate, positive: float, spread: float) -> float:
    """Return the sign that makes the larger class +1, or as ``prior`` or ``orientation`` say."""
    # Two standard errors of the share; and where the answers cannot tell p from 1/2, an allowance
    # for the error of the model.
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


# A local minimum with K classes: its value, and coefficients (r + 1, K) in the axes, the intercepts
# last.
Minimum = tuple[float, Array]


def solve_classes(
    problem: ClassProblem, alphas: Sequence[float] | Array, starts: Sequence[Array], tol: float, max_iter: int
) -> list[Minimum]:
    """Return local minima from several starts, each with its alpha."""
    pen = problem.penalties(alphas)
    evaluate = partial(problem.objective, pen=pen)
    scale = rough_inverse_hessian(problem.data.axes.variance, pen, problem.n_classes)
    first = np.column_stack([W.ravel() for W in starts])
    solutions, values = lbfgs_many(evaluate, first, scale, tol, max_iter, memory=_CLASS_MEMORY)
    return [(float(value), W.reshape(starts[0].shape)) for value, W in zip(values, solutions.T, strict=True)]


def _best_of(problem: ClassProblem, alpha: float, starts: Sequence[Array], n_followed: int) -> Minimum:
    """Return the best solution: all starts take a few steps, the best ones go to the end."""
    trials = solve_classes(problem, [alpha] * len(starts), starts, _PATH_TOL, _CLASS_TRIAL_ITER)
    followed = [W for _, W in sorted(trials, key=itemgetter(0))[:n_followed]]
    minima = solve_classes(problem, [alpha] * len(followed), followed, _CLASS_PATH_TOL, _PATH_ITER)
    return min(minima, key=itemgetter(0))


def _improve(problem: ClassProblem, alpha: float, solution: Minimum, n_again: int) -> Minimum:
    """Cluster all points again from the classes of a solution, while that leads to a better one."""
    for _ in range(0 if problem.likelihood.by_answers is not None else n_again):
        other = _best_of(problem, alpha, problem.starts_again(solution[1]), 1)
        if other[0] > solution[0] - _BETTER:
            break
        solution = other
    return solution


def follow_path(problem: ClassProblem, alphas: Sequence[float] | Array, n_again: int = _N_AGAIN) -> list[Array]:
    """Return coefficients for falling penalties; all starts are tried at one in the middle."""
    middle, others = outwards(alphas, problem.alpha_max)
    first = _best_of(problem, alphas[middle], problem.starts, _N_FOLLOWED)
    path = {middle: _improve(problem, alphas[middle], first, n_again)}
    for i, neighbour in steps(others, "penalties"):
        warm = _best_of(problem, alphas[i], [path[neighbour][1], *problem.group_starts], 2)
        path[i] = _improve(problem, alphas[i], warm, n_again // _N_AGAIN)
    return [path[i][1] for i in range(len(alphas))]


def descend_classes(problem: ClassProblem, alpha: float) -> Array:
    """Return the solution at ``alpha`` by the path from the pilot alpha."""
    top = max(WORKING_ALPHA * problem.alpha_max, alpha)
    alphas = np.geomspace(top, alpha, _CLASS_STEPS_DOWN if top > alpha else 1)
    return follow_path(problem, alphas)[-1]


def choose_and_fit_classes(problem: ClassProblem, parameters: PairLogisticBase, alphas: Array, known: Mask) -> Fit:
    """Return the fit with the penalty and the temperature of the best held-out likelihood."""
    path = follow_path(problem, alphas)
    scores = _class_scores(problem, path, alphas, known)
    temperature, row = _best_setting(scores)
    fit = polish_classes(problem, parameters, path[row], alphas[row], TEMPERATURES[temperature])
    fitted = {
        "alpha_": float(alphas[row]),
        "covariance_power_": problem.power,
        "temperature_": TEMPERATURES[temperature],
        "cv_results_": grid_results([{"alpha": alpha} for alpha in alphas.tolist()], scores[temperature]),
        "alphas_": alphas,
    }
    return replace(fit, fitted=fitted)


def held_out_classes(problem: ClassProblem, known: Mask) -> Array:
    """Return log probabilities (n_points, K) by models that know no answer about the point."""
    alpha = WORKING_ALPHA * problem.alpha_max
    W = follow_path(problem, [alpha])[0]
    proba = np.full((problem.graph.n_points, problem.n_classes, len(TEMPERATURES)), 1 / problem.n_classes)
    scores = []
    for shown in known.T:
        part = problem.restricted(shown)
        _, V = solve_classes(part, [alpha], [_SHRUNK * W], _PATH_TOL, _FOLD_ITER)[0]
        scores.append(_class_score(problem, part, V, shown))
        _, p = log_probabilities(problem.data.known, V[:, :, None] / np.array(TEMPERATURES))
        proba[~shown] = p[~shown]
    # With the temperature that suits held-out answers best.
    best = proba[:, :, int(np.argmax(np.nanmean(scores, axis=0)))]
    return np.asarray(np.log((1 - _BLIND) * best + _BLIND / problem.n_classes))


def _best_setting(scores: Array) -> tuple[int, int]:
    """Return the places of the temperature and the alpha with the best mean over folds."""
    mean = np.nanmean(scores, axis=1)
    temperature, alpha = np.unravel_index(int(np.argmax(mean)), mean.shape)
    return int(temperature), int(alpha)


def _class_scores(
    problem: ClassProblem, path: list[Array], alphas: Sequence[float] | Array, known: Mask, rough: bool = False
) -> Array:
    """Return scores (n_temperatures, n_folds, n_alphas) of what folds leave out; NaN if nothing."""
    # A fold starts from the solution of its neighbour and from the shrunk solution on all answers,
    # and keeps the better one. Without the second it would miss solutions that the path found. The
    # second alone would leak the answers that the fold leaves out; a rough comparison, of all
    # penalties at once, accepts that.
    middle, others = outwards(alphas, problem.alpha_max)
    stages = [[(middle, middle)]]
    stages += [[one for one in others if abs(one[0] - middle) == away] for away in range(1, len(alphas))]
    shrunk = [_SHRUNK * W for W in path]
    if rough:
        stages = [[(i, middle) for i in range(len(alphas))]]
    scores = np.full((len(TEMPERATURES), known.shape[1], len(alphas)), np.nan)
    for k, shown in enumerate(steps(known.T, "folds")):
        part = problem.restricted(shown)
        if not part.likelihood.n_answers > 0:
            continue
        of_fold = {middle: shrunk[middle]} if rough else {}
        for stage in filter(None, stages):
            starts = [shrunk[i] for i, _ in stage] + [of_fold[near] for _, near in stage if near in of_fold]
            at = [alphas[i] for i, _ in stage] * (len(starts) // len(stage))
            minima = solve_classes(part, at, starts, _PATH_TOL, _FOLD_ITER)
            for place, (i, _) in enumerate(stage):
                _, of_fold[i] = min(minima[place :: len(stage)], key=itemgetter(0))
                scores[:, k, i] = _class_score(problem, part, of_fold[i], shown)
    return scores


def _class_score(problem: ClassProblem, part: ClassProblem, W: Array, shown: Mask) -> Array:
    """Return the mean log likelihood (n_temperatures,) of what ``part`` leaves out."""
    graph = problem.graph
    log_p, p = log_probabilities(problem.data.known, W[:, :, None] / np.array(TEMPERATURES))
    by_answers = problem.likelihood.by_answers
    if by_answers is not None:
        # By what the answers say of each of these points.
        chances = np.einsum("ij,ijk->ik", by_answers[~shown], p[~shown])
        return problem.weight[~shown] @ np.log(chances) / problem.weight[~shown].sum()
    q = part.likelihood.group_probabilities(log_p, p)
    answers = ~shown[graph.ends].all(axis=1)
    first, second = graph.ends[answers].T
    errors = problem.answer_model.errors(graph.annotators[answers])[:, None]
    same = np.einsum("ijk,ijk->ik", q[first], q[second])
    agrees = np.where(graph.same[answers, None] > 0, same, 1 - same)
    chances = (1 - errors) * agrees + errors * (1 - agrees)
    labels = np.flatnonzero(~shown & (graph.labels != 0))
    named = q[labels, graph.labels[labels] - 1]
    weights = problem.weight[np.concatenate([first, labels])]
    if not len(weights):
        return np.full(len(TEMPERATURES), np.nan)
    return weights @ np.log(np.maximum(np.concatenate([chances, named]), _SMALLEST_CHANCE)) / weights.sum()


def choose_number(problem: ClassProblem, fewest: int, most: int, known: Mask) -> tuple[int, int, int]:
    """Return the fewest classes within one standard error of the best, and the range within two."""
    # All numbers get the same penalties: otherwise the lightest would win.
    largest = replace(problem, n_classes=fewest).alpha_max
    alphas = [share * largest for share in _NUMBER_SHARES]
    scores: list[Array] = []
    n_used: list[int] = []
    # An iterator, because the search may end early.
    for n_classes in steps(iter(range(fewest, most + 1)), "numbers of classes"):
        trial = replace(problem, n_classes=n_classes, composite=True)
        path = follow_path(trial, alphas, _N_AGAIN_OF_A_NUMBER)
        of_folds = _class_scores(trial, path, alphas, known, rough=True)
        temperature, row = _best_setting(of_folds)
        scores.append(of_folds[temperature, :, row])
        W = path[row]
        n_used.append(len(np.unique(np.argmax(trial.data.A @ W[:-1] + W[-1], axis=1))))
        best = int(np.argmax(np.nanmean(np.array(scores), axis=1)))
        if len(scores) - 1 - best >= _PATIENCE:
            break
    one = _near_best(np.array(scores), 1)
    two = _near_best(np.array(scores), 2)
    n_classes = fewest + int(np.argmax(one))
    # Classes without a point do not lower the likelihood, and do not count.
    while fewest <= n_used[n_classes - fewest] < n_classes:
        n_classes = n_used[n_classes - fewest]
    return n_classes, fewest + int(np.argmax(two)), int(np.max(np.array(n_used)[two]))


def _near_best(scores: Array, n_errors: float) -> Mask:
    """Return which numbers are within ``n_errors`` standard errors of the best, or close."""
    mean = np.nanmean(scores, axis=1)
    best = int(np.argmax(mean))
    behind = scores[best] - scores
    n_folds = max(int(np.isfinite(scores[best]).sum()), 2)
    error = np.nanstd(behind, axis=1) / np.sqrt(n_folds - 1)
    return np.nanmean(behind, axis=1) <= np.maximum(n_errors * error, _WORTH_A_CLASS * abs(mean[best]))


def polish_classes(
    problem: ClassProblem, parameters: PairLogisticBase, W: Array, alpha: float, temperature: float = 1.0
) -> Fit:
    """Solve to ``tol``, divide by the temperature, number the classes, and return to the user's columns."""
    tol = float(parameters.tol)
    max_iter = int(parameters.max_iter)
    pen = problem.penalties([alpha])
    scale = rough_inverse_hessian(problem.data.axes.variance, pen, problem.n_classes)
    objective = Counted(partial(problem.objective, pen=pen))
    solution, _ = lbfgs_many(objective, W.reshape(-1, 1), scale, tol, max_iter, memory=_CLASS_MEMORY)
    if problem.cycles is not None:
        exactly = partial(objective, exact=True)
        solution, _ = lbfgs_many(exactly, solution, scale, max(tol, 1e-4), max_iter, memory=_CLASS_MEMORY)
        tol = max(tol, _PROPAGATED_TOL)
    value, gradient = problem.objective(solution, np.zeros(1, dtype=np.intp), pen, problem.cycles is not None)
    W = solution.reshape(W.shape) / temperature
    W = W - W.mean(axis=1, keepdims=True)
    if not problem.has_named_classes:
        W = W[:, order_by_size(_mean_prediction(problem, W), problem.graph.labels)]
    coef, intercepts = zip(*(problem.data.axes.coefficients(column) for column in W.T), strict=True)
    intercept = np.array(intercepts)
    certificate = (float(value[0]), float(gradient_norm(gradient, scale)[0]), objective.n_calls)
    return Fit(np.array(coef), intercept - intercept.mean(), *certificate, shares=_mean_prediction(problem, W), tol=tol)


def _mean_prediction(problem: ClassProblem, W: Array) -> Array:
    """Return the mean probability of each class over all points."""
    return problem.data.every_share @ log_probabilities(problem.data.A, W[:, :, None])[1][:, :, 0]


def order_by_size(shares: Array, labels: Codes) -> Indices:
    """Return the order of the classes: labelled ones keep their place, others go by size."""
    order = np.arange(len(shares))
    free = np.flatnonzero(~np.isin(order, labels[labels > 0] - 1))
    order[free] = free[np.argsort(-shares[free], kind="stable")]
    return order
