"""The steps of a fit: starts, the path of penalties, evidence, folds, polish and names.

Problems of two classes are solved many at once, one column each. Those of more classes are far from convex and are
solved one by one, from many starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from sdulearn.errors import OrientationWarning, warn
from sdulearn.joint.classes import ClassProblem, log_probabilities
from sdulearn.joint.data import Moments, PriorPull, TrainingData, bordered_sum
from sdulearn.joint.likelihood import (
    Columns,
    FoldLikelihood,
    Problem,
    Sums,
    TwoClassLikelihood,
    mean_curvature,
    mean_sums,
)
from sdulearn.model_selection import grid_results
from sdulearn.progress import steps
from sdulearn.risks import PriorEstimate
from sdulearn.solvers.problem import Fit
from sdulearn.solvers.smooth import gradient_norm, lbfgs_many, newton
from sdulearn.types import Array, Codes, Indices, Mask

if TYPE_CHECKING:
    from sdulearn.joint.estimators import PairLogisticBase

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
# The penalty of fits that only name classes, try starts or judge annotators, as a share of the alpha
# at which the model leaves zero.
WORKING_ALPHA = 0.03
# K classes: how far every start is followed, how many of them further, and how well the path is solved.
_CLASS_TRIAL_ITER = 15
_N_FOLLOWED = 3
_CLASS_PATH_TOL = 2e-3
_CLASS_STEPS_DOWN = 4
_CLASS_MEMORY = 20
# Clusters are made anew from a solution at most so often, while that finds a better one.
_N_AGAIN = 4
_N_AGAIN_OF_A_NUMBER = 2
_BETTER = 1e-4
# How many steps the models of folds take, and where they begin.
_FOLD_ITER = 30
_SHRUNK = 0.5
# No single answer may spoil the score of a model.
_SMALLEST_CHANCE = 1e-6
# Few answers make overconfident models, and a strong penalty timid ones; logits are divided by one of
# these, the one that suits all folds best.
TEMPERATURES = (0.7, 1.0, 1.5, 2.0, 3.0)
# Steps of L-BFGS that one of Newton's is worth.
_STEPS = 20
# With answers that may be wrong the gradient is as exact as the messages.
_PROPAGATED_TOL = 1e-3
# Share of the points of which a model that judges answers is taken to know nothing.
_BLIND = 0.3
# Penalties, as shares of the largest, with which numbers of classes are compared.
_NUMBER_SHARES = (0.03, 0.006, 0.001)
# What one more class must bring, as a share of the log score.
_WORTH_A_CLASS = 0.03
# So many more classes in a row that bring nothing end the search.
_PATIENCE = 2


class PointProblem(Problem):
    """Points in memory, and a likelihood of what is known of them."""

    def __init__(
        self, data: TrainingData, likelihood: TwoClassLikelihood, prior: float | None, prior_strength: float
    ) -> None:
        self.data = data
        self.axes = data.axes
        self.likelihood = likelihood
        # Those of all answers, or of the folds.
        self.terms = likelihood.weighted_terms
        self.moments: Moments = likelihood.moments(data.known, data.axes.variance, prior)
        if not likelihood.is_certain:
            # Answers that may be wrong say less of the points, and the pull keeps its balance with them.
            n_pivots = int((~likelihood.labelled).sum())
            known = float(likelihood.side @ likelihood.side) - n_pivots
            prior_strength *= known / max(len(likelihood.side) - n_pivots, 1)
        self.pull = PriorPull.of(prior, prior_strength, len(data.share))
        self.exact_hessian = likelihood.exact_curvature

    def slopes(self, W: Array, columns: Columns, exact: bool) -> Sums:
        data = self.data
        value, slopes = self.terms(data.known @ W[:-1] + W[-1], columns, exact)
        sums = {"loss": value, "slope": bordered_sum(data.known, slopes)}
        if self.pull is None:
            return sums
        if exact:
            return sums | mean_sums(data.unlabeled, data.share, data.unlabeled @ W[:-1] + W[-1])
        rows, share, unit = data.light_unlabeled
        V = (unit * W).astype(np.float32)
        found = mean_sums(rows, share, rows @ V[:-1] + V[-1])
        return sums | {"mean": found["mean"].astype(np.float64), "mean_slope": unit * found["mean_slope"]}

    def curvatures(self, w: Array) -> Sums:
        n = self.data.graph.n_points
        z = self.data.A @ w[:-1] + w[-1]
        sums = {"curvature": self.likelihood.curvature(self.data.known, z[:n])}
        if self.pull is not None:
            sums["mean_curvature"] = mean_curvature(self.data.unlabeled, self.data.share, z[n:])
        return sums

    def positive_share(self, v: Array) -> tuple[float, float]:
        A, share = self.data.judged()
        return float(share @ (A @ v[:-1] + v[-1] > 0)), float(share @ share)

    def empty(self, alphas: Array, covariance_powers: Sequence[float], path: Array) -> Mask:
        """Where on the path (n_alphas, n_powers) the model is empty: its logits hardly vary."""
        variance = np.einsum("ajk,j->ak", path[:, :-1] ** 2, self.moments.variance)
        empty = variance < _EMPTY**2
        if self.moments.prior is None and self.moments.named is None:
            # Nothing leads away from zero, and the penalty is too strong to leave it.
            empty |= alphas >= [self.moments.largest_alpha(power) for power in covariance_powers]
        return np.asarray(empty)

    def log_evidence(self, w: Array, pen: Array) -> float:
        """Laplace's log evidence of one penalty at its solution, by Fisher's information."""
        z = self.data.known @ w[:-1] + w[-1]
        losses, _ = self.likelihood.terms(z[:, None], exact=True)
        misfit = float(self.likelihood.omega @ losses[:, 0]) + float(pen @ w[:-1] ** 2) / 2
        J = self.likelihood.information(self.data.known, z) / np.sqrt(pen)
        # log det(I + J'J) / 2; the determinant is that of I + JJ', and the smaller one is computed.
        K = J @ J.T if len(J) < J.shape[1] else J.T @ J
        K[np.diag_indices(len(K))] += 1
        # Answers and labels of equal weight that tell as much.
        n_effective = 1 / float(self.likelihood.omega**2 @ self.likelihood.n_independent)
        return -n_effective * misfit - float(np.linalg.slogdet(K)[1]) / 2


def fit_path(problem: Problem, alphas: Array, covariance_powers: Sequence[float], starts: list[Array]) -> Array:
    """Solutions (n_alphas, r + 1, n_powers) for alphas (n_alphas, n_powers) that fall."""
    m = len(covariance_powers)
    starts = [np.repeat(one[:, None], m, axis=1) if one.ndim == 1 else one for one in starts]
    path: list[Array] = []
    for row in steps(alphas, "penalties"):
        # The last alpha's solution and the first start; at the first alpha every start.
        candidates = [path[-1], starts[0]] if path else starts
        count = len(candidates)
        pen = np.tile(problem.moments.penalties(row, covariance_powers), count)
        evaluate = problem.objective(pen)
        scale = problem.moments.scale(pen)
        W, f = lbfgs_many(evaluate, np.hstack(candidates), scale, _PATH_TOL, _TRIAL_ITER)
        # Ties go to the earlier candidate: the warm start.
        best = np.argmin(f.reshape(count, m) + 1e-6 * np.arange(count)[:, None], axis=0)
        W = W.reshape(-1, count, m)[:, best, np.arange(m)]
        W, _ = lbfgs_many(evaluate, W, scale[:, :m], _PATH_TOL, _PATH_ITER)
        path.append(W)
    return np.array(path)


def fit_folds(problem: PointProblem, alphas: Array, covariance_power: float, known: Mask) -> tuple[Array, Array]:
    """Scores (n_folds, n_alphas) of what is unknown; solutions (r + 1, n_alphas, n_folds)."""
    n_folds = known.shape[1]
    likelihood = FoldLikelihood(problem.likelihood, known)
    folds = copy(problem)
    folds.terms = likelihood.weighted_terms
    moments = problem.moments
    A = problem.data.known
    of_folds = [part.moments(A, moments.variance, moments.prior) for part in likelihood.folds]
    # A fold must not start from what was found with the answers that it leaves out: an alpha in the middle is solved
    # from its own starts, the others from there. A fold without labels has fewer starts, and repeats its last.
    starts = [of_fold.starts() for of_fold in of_folds]
    count = max(len(of_fold) for of_fold in starts)
    columns = [np.column_stack([s[min(k, len(s) - 1)] for s in starts]) for k in range(count)]
    middle = np.full((1, n_folds), alphas[(len(alphas) - 1) // 2])
    first = fit_path(folds, middle, [covariance_power] * n_folds, columns)[0]
    pen = np.repeat(moments.penalties(alphas, [covariance_power] * len(alphas)), n_folds, axis=1)
    W, _ = lbfgs_many(folds.objective(pen), np.tile(first, len(alphas)), moments.scale(pen), _PATH_TOL, _PATH_ITER)
    W = W.reshape(-1, len(alphas), n_folds)
    Z = np.tensordot(A, W[:-1], 1) + W[-1]
    scores = np.empty((n_folds, len(alphas)))
    for k, of_fold in enumerate(of_folds):
        scores[k] = likelihood.score(Z[:, :, k], k)
        if of_fold.named is None and moments.named is not None:
            # Without a label a fold cannot know which class is which, and is not to be blamed for it.
            scores[k] = np.maximum(scores[k], likelihood.score(-Z[:, :, k], k))
    return scores, W


def descend(problem: Problem, alpha: float, covariance_power: float, init: str = "auto") -> Array:
    """The solution at ``alpha``, in the axes, by the path from zero; or zero, as ``init`` says."""
    if init == "zero":
        return np.zeros(len(problem.moments.variance) + 1)
    top = max(problem.moments.largest_alpha(covariance_power), alpha)
    alphas = np.geomspace(top, alpha, _STEPS_DOWN if top > alpha else 1)[:, None]
    return fit_path(problem, alphas, [covariance_power], problem.moments.starts(init))[-1, :, 0]


def polish(
    parameters: PairLogisticBase,
    problem: Problem,
    v: Array,
    alpha: float,
    covariance_power: float,
    prior: PriorEstimate,
) -> Fit:
    """Solve to ``tol`` from a solution of the path, certify it and name the classes."""
    pen = problem.moments.penalties([alpha], [covariance_power])
    objective = problem.objective(pen, exact=True)
    scale = problem.moments.scale(pen)
    # Without an exact Hessian Newton's method is slow: L-BFGS does it all.
    tol = _POLISH_TOL if problem.exact_hessian else parameters.tol
    n_steps = _POLISH_ITER if problem.exact_hessian else 10 * parameters.max_iter
    W, _ = lbfgs_many(objective, v[:, None], scale, tol, n_steps)
    hessian = partial(problem.hessian, pen=pen[:, 0])
    v, value, optimality, n_iter = newton(objective, hessian, W[:, 0], scale[:, 0], parameters.tol, parameters.max_iter)
    # Labels have named the classes.
    sign = 1.0 if problem.moments.named is not None else class_sign(parameters, prior, *problem.positive_share(v))
    coef, intercept = problem.axes.coefficients(v)
    return Fit(sign * coef[None, :], np.array([sign * intercept]), value, optimality, n_iter, prior)


def class_sign(parameters: PairLogisticBase, prior: PriorEstimate, positive: float, spread: float) -> float:
    """The sign that makes the larger class +1, or as ``prior`` or ``orientation`` says."""
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


# A local minimum with K classes: its value, and coefficients (r + 1, K) in the axes, the intercepts last.
Minimum = tuple[float, Array]


def solve_classes(
    problem: ClassProblem, alphas: Sequence[float], starts: Sequence[Array], tol: float, max_iter: int
) -> list[Minimum]:
    """Local minima from several starts, each at its alpha."""
    pen = problem.penalties(alphas)
    evaluate = problem.objective(pen, light=True)
    first = np.column_stack([W.ravel() for W in starts])
    found, values = lbfgs_many(evaluate, first, problem.scale(pen), tol, max_iter, memory=_CLASS_MEMORY)
    return [(float(value), W.reshape(starts[0].shape)) for value, W in zip(values, found.T, strict=True)]


def _best_of(problem: ClassProblem, alpha: float, starts: Sequence[Array], n_followed: int) -> Minimum:
    """The best solution from several starts: all are followed a little, the best to the end."""
    trials = solve_classes(problem, [alpha] * len(starts), starts, _PATH_TOL, _CLASS_TRIAL_ITER)
    followed = [W for _, W in sorted(trials, key=itemgetter(0))[:n_followed]]
    found = solve_classes(problem, [alpha] * len(followed), followed, _CLASS_PATH_TOL, _PATH_ITER)
    return min(found, key=itemgetter(0))


def _improve(problem: ClassProblem, alpha: float, solution: Minimum, n_again: int) -> Minimum:
    """Cluster all points anew from the classes of a solution, while that leads to a better one."""
    for _ in range(0 if problem.likelihood.by_answers is not None else n_again):
        found = _best_of(problem, alpha, problem.starts_again(solution[1]), 1)
        if found[0] > solution[0] - _BETTER:
            break
        solution = found
    return solution


def follow_path(problem: ClassProblem, alphas: Sequence[float], n_again: int = _N_AGAIN) -> list[Array]:
    """Coefficients at penalties that fall, from all starts at a middle one of them."""
    middle, others = _outwards(problem, alphas)
    first = _best_of(problem, alphas[middle], problem.starts, _N_FOLLOWED)
    found = {middle: _improve(problem, alphas[middle], first, n_again)}
    for i, neighbour in steps(others, "penalties"):
        warm = _best_of(problem, alphas[i], [found[neighbour][1], *problem.group_starts], 2)
        found[i] = _improve(problem, alphas[i], warm, n_again // _N_AGAIN)
    return [found[i][1] for i in range(len(alphas))]


def _outwards(problem: ClassProblem, alphas: Sequence[float]) -> tuple[int, list[tuple[int, int]]]:
    """The penalty at which starts are tried, and all others with the neighbours they begin at."""
    wanted = WORKING_ALPHA * problem.largest_alpha
    middle = int(np.argmin(np.abs(np.log(np.asarray(alphas) / wanted))))
    up = [(i, i + 1) for i in reversed(range(middle))]
    return middle, up + [(i, i - 1) for i in range(middle + 1, len(alphas))]


def fit_classes(problem: ClassProblem, parameters: PairLogisticBase, alpha: float) -> Fit:
    """The model at one penalty."""
    if parameters.init == "zero":
        nothing = np.zeros((len(problem.data.axes.variance) + 1, problem.n_classes))
        return _polish_classes(problem, parameters, nothing, alpha)
    top = max(WORKING_ALPHA * problem.largest_alpha, alpha)
    alphas = np.geomspace(top, alpha, _CLASS_STEPS_DOWN if top > alpha else 1).tolist()
    start = follow_path(problem, alphas)[-1]
    return _polish_classes(problem, parameters, start, alpha)


def choose_and_fit(problem: ClassProblem, parameters: PairLogisticBase, alphas: Sequence[float], known: Mask) -> Fit:
    """The penalty and the temperature by the held-out likelihood, then the model at it."""
    path = follow_path(problem, alphas)
    scores = _class_scores(problem, path, alphas, known)
    temperature, row = _best_setting(scores)
    fit = _polish_classes(problem, parameters, path[row], alphas[row])
    fitted = {
        "alpha_": alphas[row],
        "covariance_power_": problem.power,
        "temperature_": TEMPERATURES[temperature],
        "cv_results_": grid_results([{"alpha": alpha} for alpha in alphas], scores[temperature]),
        "alphas_": np.array(alphas)[:, None],
    }
    scale = 1 / TEMPERATURES[temperature]
    return replace(fit, coef=scale * fit.coef, intercept=scale * fit.intercept, fitted=fitted)


def held_out_classes(problem: ClassProblem, known: Mask) -> Array:
    """Log probabilities (n_points, K) by models that know no answer about the point."""
    alpha = WORKING_ALPHA * problem.largest_alpha
    W = follow_path(problem, [alpha])[0]
    found = np.full((problem.graph.n_points, problem.n_classes, len(TEMPERATURES)), 1 / problem.n_classes)
    scores = []
    for shown in known.T:
        part = problem.restricted(shown)
        _, V = solve_classes(part, [alpha], [_SHRUNK * W], _PATH_TOL, _FOLD_ITER)[0]
        scores.append(_class_score(problem, part, V, shown))
        _, p = log_probabilities(problem.data.known, V[:, :, None] / np.array(TEMPERATURES))
        found[~shown] = p[~shown]
    # As sure as suits held-out answers best.
    best = found[:, :, int(np.argmax(np.nanmean(scores, axis=0)))]
    return np.asarray(np.log((1 - _BLIND) * best + _BLIND / problem.n_classes))


def _best_setting(scores: Array) -> tuple[int, int]:
    """The temperature and the alpha with the best mean over folds, as places."""
    mean = np.nanmean(scores, axis=1)
    temperature, alpha = np.unravel_index(int(np.argmax(mean)), mean.shape)
    return int(temperature), int(alpha)


def _class_scores(
    problem: ClassProblem, path: list[Array], alphas: Sequence[float], known: Mask, rough: bool = False
) -> Array:
    """Scores (n_temperatures, n_folds, n_alphas) of what folds left out; NaN if nothing."""
    # A fold begins at its neighbour's solution and at the one on everything, shrunk, and keeps the better one. Without
    # the second it would miss solutions that the path found; alone it would tell too much of the answers left out, but
    # for a rough comparison, of all penalties at once.
    middle, others = _outwards(problem, alphas)
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
        found = {middle: shrunk[middle]} if rough else {}
        for stage in filter(None, stages):
            starts = [shrunk[i] for i, _ in stage] + [found[near] for _, near in stage if near in found]
            at = [alphas[i] for i, _ in stage] * (len(starts) // len(stage))
            minima = solve_classes(part, at, starts, _PATH_TOL, _FOLD_ITER)
            for place, (i, _) in enumerate(stage):
                _, found[i] = min(minima[place :: len(stage)], key=itemgetter(0))
                scores[:, k, i] = _class_score(problem, part, found[i], shown)
    return scores


def _class_score(problem: ClassProblem, part: ClassProblem, W: Array, shown: Mask) -> Array:
    """Mean log chance (n_temperatures,) of what a part does not know, given what it knows."""
    graph = problem.graph
    labels = ~shown
    answers = labels[graph.ends].any(axis=1)
    log_p, p = log_probabilities(problem.data.known, W[:, :, None] / np.array(TEMPERATURES))
    q = part.likelihood.group_probabilities(log_p, p)
    by_answers = problem.likelihood.by_answers
    if by_answers is not None:
        # What the answers say of the points that are left out.
        chances = np.einsum("ij,ijk->ik", by_answers[labels], p[labels])
        return problem.weight[labels] @ np.log(chances) / problem.weight[labels].sum()
    first, second = graph.ends[answers].T
    errors = problem.answer_model.errors(graph.annotators[answers])[:, None]
    same = np.einsum("ijk,ijk->ik", q[first], q[second])
    agrees = np.where(graph.same[answers, None] > 0, same, 1 - same)
    chances = (1 - errors) * agrees + errors * (1 - agrees)
    known = np.flatnonzero(labels & (graph.labels != 0))
    named = q[known, graph.labels[known] - 1]
    weights = problem.weight[np.concatenate([first, known])]
    if not len(weights):
        return np.full(len(TEMPERATURES), np.nan)
    return weights @ np.log(np.maximum(np.concatenate([chances, named]), _SMALLEST_CHANCE)) / weights.sum()


def choose_number(problem: ClassProblem, fewest: int, most: int, known: Mask) -> tuple[int, int, int]:
    """The fewest classes within one standard error of the best score; the range within two."""
    # The same penalties for all numbers: else the lightest would win.
    largest = replace(problem, n_classes=fewest).largest_alpha
    alphas = [share * largest for share in _NUMBER_SHARES]
    scores: list[Array] = []
    n_used: list[int] = []
    # How many are tried shows on the way: until more bring nothing.
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
    # Classes without a point cost no likelihood, and do not count.
    while fewest <= n_used[n_classes - fewest] < n_classes:
        n_classes = n_used[n_classes - fewest]
    return n_classes, fewest + int(np.argmax(two)), int(np.max(np.array(n_used)[two]))


def _near_best(scores: Array, n_errors: float) -> Mask:
    """Which numbers are within so many standard errors of the best, or a few per cent."""
    mean = np.nanmean(scores, axis=1)
    best = int(np.argmax(mean))
    behind = scores[best] - scores
    n_folds = max(int(np.isfinite(scores[best]).sum()), 2)
    error = np.nanstd(behind, axis=1) / np.sqrt(n_folds - 1)
    return np.nanmean(behind, axis=1) <= np.maximum(n_errors * error, _WORTH_A_CLASS * abs(mean[best]))


def _polish_classes(problem: ClassProblem, parameters: PairLogisticBase, W: Array, alpha: float) -> Fit:
    """Solve to ``tol``, number the classes, and go back to the user's columns."""
    tol = float(parameters.tol)
    max_iter = _STEPS * int(parameters.max_iter)
    pen = problem.penalties([alpha])
    scale = problem.scale(pen)
    n_calls = 0

    def evaluate(W: Array, columns: Indices) -> tuple[Array, Array]:
        nonlocal n_calls
        n_calls += 1
        return objective(W, columns)

    objective = problem.objective(pen)
    found, _ = lbfgs_many(evaluate, W.reshape(-1, 1), scale, tol, max_iter, memory=_CLASS_MEMORY)
    if problem.cycles is not None:
        objective = problem.objective(pen, exact=True)
        found, _ = lbfgs_many(evaluate, found, scale, max(tol, 1e-4), max_iter, memory=_CLASS_MEMORY)
        tol = max(tol, _PROPAGATED_TOL)
    value, gradient = objective(found, np.zeros(1, dtype=np.intp))
    W = found.reshape(W.shape)
    W = W - W.mean(axis=1, keepdims=True)
    W = W[:, _number_classes(problem, W)]
    coef, intercepts = zip(*(problem.data.axes.coefficients(column) for column in W.T), strict=True)
    intercept = np.array(intercepts)
    certificate = (float(value[0]), float(gradient_norm(gradient, scale)[0]), n_calls)
    return Fit(np.array(coef), intercept - intercept.mean(), *certificate, shares=_mean_prediction(problem, W), tol=tol)


def _mean_prediction(problem: ClassProblem, W: Array) -> Array:
    """Mean probability of each class over the unlabeled points, else over all."""
    A, share = problem.data.judged()
    return share @ log_probabilities(A, W[:, :, None])[1][:, :, 0]


def _number_classes(problem: ClassProblem, W: Array) -> Indices:
    """The order of the columns: classes that have names stay, the others go by size."""
    K = W.shape[1]
    named = problem.pull is not None and len(np.unique(problem.pull.shares)) == K
    if named or problem.answer_model.crowd_of(problem.graph) is not None:
        return np.arange(K)
    return order_by_size(_mean_prediction(problem, W), problem.graph.labels)


def order_by_size(shares: Array, labels: Codes) -> Indices:
    """Classes that labels name stay in their place, the others go by size."""
    order = np.arange(len(shares))
    free = np.flatnonzero(~np.isin(order, labels[labels > 0] - 1))
    order[free] = free[np.argsort(-shares[free], kind="stable")]
    return order
