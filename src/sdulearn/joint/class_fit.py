"""The steps of a fit with K classes: points, starts, path of penalties, the last digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import eigh

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.joint.class_starts import Clusters, class_starts, pair_moment
from sdulearn.joint.classes import ClassLikelihood, ClassObjective, PropagatedLikelihood, SharesPenalty
from sdulearn.joint.data import Axes, axis_penalty
from sdulearn.solvers.lbfgs import gradient_norm, lbfgs
from sdulearn.types import Array, Mask

# How far every start is followed, and how many of them further.
_TRIAL_ITER = 15
_TRIAL_TOL = 5e-3
_N_FOLLOWED = 3
# Clusters are made anew from a solution at most so often, while that finds a better one.
_N_AGAIN = 4
_BETTER = 1e-4
# How well the path is solved.
_PATH_TOL = 2e-3
_PATH_ITER = 200
# The penalty, as a share of the largest, at which all starts are tried.
_TRIAL_SHARE = 0.03
_STEPS_DOWN = 4


@dataclass(frozen=True, eq=False)
class ClassData:
    """Points in their axes and what is known of them, for K classes."""

    axes: Axes  # principal axes of all points
    A: Array  # (n_known, r), points in an answer or with a label
    weight: Array  # (n_known,), their weights, equal within a component of the answers
    graph: AnswerGraph  # answers and labels of these points
    A_u: Array  # (n_unlabeled, r), other points and their weights, of sum 1
    share: Array
    n_classes: int  # number of classes
    answer_model: AnswerModel  # how answers go wrong
    shares_penalty: SharesPenalty | None = None  # the pull to class shares, where these are known

    @cached_property
    def likelihood(self) -> ClassLikelihood:
        """That of all answers and labels."""
        return ClassLikelihood.from_graph(self.graph, self.n_classes, self.answer_model, self.weight)

    @cached_property
    def clusters(self) -> Clusters:
        """All points, to be clustered."""
        return Clusters.of(self.A, self.A_u, self.likelihood, self.graph.labels)

    @cached_property
    def starts(self) -> list[Array]:
        """Where the path begins; where class shares are known, with clusters in their order of size."""
        starts = class_starts(self.A, self.A_u, self.axes.variance, self.likelihood, self.graph.labels)
        if self.shares_penalty is None or self.graph.labels.any():
            return starts
        by_share = np.argsort(np.argsort(-self.shares_penalty.shares, kind="stable"))
        return [W[:, np.argsort(-self._sizes(W), kind="stable")[by_share]] for W in starts]

    @cached_property
    def group_starts(self) -> list[Array]:
        """Starts that groups of answers alone give, where they are as many as classes and shares are not given."""
        return [] if self.shares_penalty is not None else self.clusters.starts_from_different_groups()

    def _sizes(self, W: Array) -> Array:
        """Share of the unlabeled points that are nearest to each class."""
        nearest = np.argmax(self.A_u @ W[:-1] + W[-1], axis=1)
        return np.bincount(nearest, weights=self.share, minlength=self.n_classes).astype(np.float64)

    def n_used(self, W: Array) -> int:
        """How many classes have a point."""
        return len(np.unique(np.argmax(np.concatenate([self.A, self.A_u]) @ W[:-1] + W[-1], axis=1)))

    def largest_alpha(self, covariance_power: float) -> float:
        """The penalty above which equal chances for all classes are a minimum, about.

        At equal chances -log P is, to second order in the logits z less their mean over classes,
        ``-z.z' / K`` for a "same" answer and ``z.z' / (K (K - 1))`` for a "different" one.
        """
        moment = pair_moment(self.A, self.clusters)
        scale = 1 / np.sqrt(axis_penalty(self.axes.variance, 1.0, covariance_power))
        top = float(eigh(scale[:, None] * moment * scale, eigvals_only=True)[-1])
        n = self.likelihood.n_answers
        n_different = float(self.likelihood.edge_weight @ np.maximum(self.likelihood.all_apart, 0.0))
        strength = min(max(n - n_different, 1.0), max(n_different, 1.0)) / self.n_classes
        return max(2 * top * strength / n, 1e-6)

    def objective(self, alpha: float, covariance_power: float) -> ClassObjective:
        """Equation (4) of ``classes`` with this penalty."""
        pen = axis_penalty(self.axes.variance, alpha, covariance_power)
        return ClassObjective(self.A, self.likelihood, self.weight, pen, self.A_u, self.share, self.shares_penalty)

    def propagated(self, alpha: float, covariance_power: float) -> ClassObjective | None:
        """The objective with cycles by propagation; None where answers are never wrong, or there is no cycle."""
        if self.answer_model.certain:
            return None
        factors = self.answer_model.factor_graph(self.graph, self.n_classes)
        if factors.on_tree.all():
            return None
        likelihood = PropagatedLikelihood(factors, self.weight, self.likelihood.n_answers)
        return replace(self.objective(alpha, covariance_power), likelihood=likelihood)

    def restricted(self, answers: Mask, labels: Mask) -> ClassData:
        """The same points with some of the answers (n_answers,) and some of the labels (n_known,)."""
        return replace(self, graph=self.graph.restricted(answers, labels))


@dataclass(frozen=True, eq=False)
class ClassSolution:
    """A local minimum in the axes."""

    W: Array  # (r + 1, K), coefficients, the intercepts last
    objective: float  # value there
    optimality: float  # norm of the gradient there, in the norm of a rough inverse Hessian
    n_iter: int  # evaluations of the objective


def solve(data: ClassData, objective: ClassObjective, W: Array, tol: float, max_iter: int) -> ClassSolution:
    """A local minimum from ``W``."""
    shape = W.shape
    column = np.append(0.15 * data.axes.variance / shape[1] + objective.pen, 0.25 / shape[1])
    curvature = np.repeat(column, shape[1])

    def flat(w: Array) -> tuple[float, Array]:
        value, gradient = objective.value_and_gradient(w.reshape(shape))
        return value, gradient.ravel()

    w, n_calls = lbfgs(flat, W.ravel(), curvature, tol, max_iter)
    value, gradient = flat(w)
    return ClassSolution(w.reshape(shape), value, float(gradient_norm(gradient, 1 / curvature)), n_calls)


def best_of(data: ClassData, objective: ClassObjective, starts: Sequence[Array], n_followed: int) -> ClassSolution:
    """The best solution from several starts: all are followed a little, the best of them to the end."""
    trials = [solve(data, objective, W, _TRIAL_TOL, _TRIAL_ITER) for W in starts]
    trials.sort(key=lambda trial: trial.objective)
    found = [solve(data, objective, trial.W, _PATH_TOL, _PATH_ITER) for trial in trials[:n_followed]]
    return min(found, key=lambda solution: solution.objective)


def improve(data: ClassData, objective: ClassObjective, solution: ClassSolution, n_again: int) -> ClassSolution:
    """Cluster all points anew from the classes of a solution, while that leads to a better one."""
    for _ in range(n_again):
        found = best_of(data, objective, data.clusters.again(solution.W), 1)
        if found.objective > solution.objective - _BETTER:
            break
        solution = found
    return solution


def follow_path(
    data: ClassData, alphas: Sequence[float], covariance_power: float, start: Array | None = None
) -> list[ClassSolution]:
    """Solutions at penalties that fall, from all starts (or a given one) at a middle one of them."""
    middle = middle_index(data, alphas, covariance_power)
    objective = data.objective(alphas[middle], covariance_power)
    starts = data.starts if start is None else [start]
    found = {middle: improve(data, objective, best_of(data, objective, starts, _N_FOLLOWED), _N_AGAIN)}
    for i, neighbour in outwards(middle, len(alphas)):
        objective = data.objective(alphas[i], covariance_power)
        warm = best_of(data, objective, [found[neighbour].W, *data.group_starts], 2)
        found[i] = improve(data, objective, warm, 1)
    return [found[i] for i in range(len(alphas))]


def middle_index(data: ClassData, alphas: Sequence[float], covariance_power: float) -> int:
    """Which penalty is nearest to the one where starts are tried."""
    wanted = _TRIAL_SHARE * data.largest_alpha(covariance_power)
    return int(np.argmin(np.abs(np.log(np.asarray(alphas) / wanted))))


def outwards(middle: int, size: int) -> list[tuple[int, int]]:
    """All other places with the neighbours that they are reached from."""
    up = [(i, i + 1) for i in reversed(range(middle))]
    return up + [(i, i - 1) for i in range(middle + 1, size)]


def descend(data: ClassData, alpha: float, covariance_power: float) -> ClassSolution:
    """The solution at one penalty."""
    top = max(_TRIAL_SHARE * data.largest_alpha(covariance_power), alpha)
    alphas = np.geomspace(top, alpha, _STEPS_DOWN if top > alpha else 1).tolist()
    return follow_path(data, alphas, covariance_power)[-1]


def polish(
    data: ClassData, W: Array, alpha: float, covariance_power: float, tol: float, max_iter: int
) -> ClassSolution:
    """The last digits of one solution, with cycles of answers that may be wrong by propagation."""
    solution = solve(data, data.objective(alpha, covariance_power), W, tol, max_iter)
    propagated = data.propagated(alpha, covariance_power)
    if propagated is None:
        return solution
    return solve(data, propagated, solution.W, max(tol, 1e-4), max_iter)
