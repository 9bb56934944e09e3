"""The steps of a fit: the path of penalties, folds, the choice of a penalty, and polish.

    J(W) = -mean log likelihood + 1/2 sum_jk pen_j W_jk^2 + prior_strength KL(shares || mean_U p)    (1)

with the mean over independent answers and labels, W the coefficients in the principal axes (one
column of scores with two classes, K with more, the intercepts last) and the last term, the *pull*,
only where the shares of the classes are given. J is not convex. All starts are tried at one pilot
penalty, and the path goes outwards from there, each solution the start of the next.

A fold knows the answers and labels that touch none of its held-out points. Its score is the mean
log likelihood of what it leaves out, at the posteriors by what it knows. Folds choose alpha. With
two classes and answers that share points or come with labels, folds would cut answers, and Laplace's
evidence (2) chooses; it also chooses the covariance power, as folds are too noisy for that:

    log evidence = -n J(w) - 1/2 log det(I + F diag(1 / pen))                                        (2)

with n the number of independent answers and F their Fisher information about w.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from sdulearn.answers.graph import AnswerGraph, NumberOfClasses, sum_by, sum_matrix
from sdulearn.answers.likelihood import Likelihood
from sdulearn.answers.propagate import class_columns
from sdulearn.answers.rates import SCALES
from sdulearn.joint.data import PriorPull, TrainingPoints, axis_penalties, bordered_sum
from sdulearn.joint.starts import ClassStarts, Sides, TwoClassStarts
from sdulearn.model_selection import HeldOut
from sdulearn.progress import steps
from sdulearn.solvers.smooth import Counted, gradient_norm, lbfgs_many
from sdulearn.types import Array, Indices, Mask

Columns = Indices | Sequence[int]

# The penalty at which all starts are tried, as a share of the alpha at which the model leaves zero.
PILOT = 0.03
# Iterations after which only the best starts are continued; tolerance and iterations of the problems on a path.
_TRIAL_ITER = 15
_PATH_TOL = 3e-3
_PATH_ITER = 200
# How many starts of K classes are continued; two classes have one good start.
_N_FOLLOWED = 3
# How often points are clustered again from a solution at the pilot penalty.
_N_AGAIN = 4
# How much the solution on all answers is shrunk to be a start of a fold.
_SHRUNK = 0.5
# No single answer may dominate the score of a model.
_SMALLEST_CHANCE = 1e-6
# Draws of the classes by which the probability of all answers to a question of more than two points is estimated.
_N_DRAWS = 400
# Few answers make overconfident models, and a strong penalty underconfident ones: logits are
# divided by the one of these that suits all folds best.
TEMPERATURES = (0.7, 1.0, 1.5, 2.0, 3.0)
# A model whose logits have a smaller standard deviation is empty.
_EMPTY = 1e-3
# Penalties, as shares of the largest, with which numbers of classes are compared.
_NUMBER_SHARES = (0.03, 0.006, 0.001)
_N_AGAIN_OF_A_NUMBER = 2
# The gain that one more class must bring, as a share of the log score.
_WORTH_A_CLASS = 0.03
# The search ends after this many numbers of classes without a gain.
_PATIENCE = 2


@dataclass(eq=False)
class Problem:
    """Equation (1) for points in memory."""

    points: TrainingPoints
    likelihood: Likelihood
    pull: PriorPull | None

    @cached_property
    def starts(self) -> TwoClassStarts | ClassStarts:
        """Where the fit starts."""
        if self.likelihood.n_scores > 1:
            return ClassStarts(self.points, self.likelihood, self.pull)
        graph = self.likelihood.graph
        sides = Sides(self.likelihood.sides, graph.component, graph.labelled, self.likelihood.weight)
        return TwoClassStarts(self.points, sides, self.pull)

    def penalties(self, alphas: Array | Sequence[float], powers: Array | Sequence[float] | float) -> Array:
        """Return the penalties (r, B) of the axes."""
        return axis_penalties(self.points.axes.variance, alphas, powers)

    def scale(self, pen: Array) -> Array:
        """Return the diagonal of a rough inverse Hessian, for L-BFGS and for the norm of a gradient."""
        n_scores = self.likelihood.n_scores
        # 0.15 and, for the intercept, 0.25: the logistic curvature.
        slopes = 0.15 * self.points.axes.variance[:, None] / n_scores + pen
        return 1 / np.repeat(np.vstack([slopes, np.full((1, pen.shape[1]), 0.25 / n_scores)]), n_scores, axis=0)

    def scores(self, W: Array) -> Array:
        """Return the scores (n_known, n_scores, B) by coefficients ((r + 1) n_scores, B)."""
        return scores_of(self.points.known, W, self.likelihood.n_scores)

    def objective(
        self, W: Array, columns: Columns, pen: Array, folds: Folds | None = None, exact: bool = False
    ) -> tuple[Array, Array]:
        """Return values and gradients at ``W`` ((r + 1) n_scores, B), with ``columns`` of ``pen``.

        If there are folds, column c has the likelihood of fold c modulo their number.
        """
        Z = self.scores(W)
        value, slope = folds.mean(Z, np.asarray(columns)) if folds else self.likelihood.mean(Z, exact)
        value = -value
        gradient = -bordered_sum(self.points.known, slope.reshape(len(slope), -1))
        if self.pull is not None:
            unlabeled = self.points.unlabeled
            p = self.likelihood.probabilities(scores_of(unlabeled, W, self.likelihood.n_scores))
            divergence, pulled = self.pull.terms(p, self.points.share)
            value += divergence
            gradient += bordered_sum(unlabeled, pulled[:, -Z.shape[1] :].reshape(len(pulled), -1))
        gradient = gradient.reshape(len(gradient), *Z.shape[1:])
        V = W.reshape(gradient.shape)[:-1]
        penalised = pen[:, None, columns] * V
        gradient[:-1] += penalised
        return value + np.einsum("ijk,ijk->k", penalised, V) / 2, gradient.reshape(W.shape)


def scores_of(A: Array, W: Array, n_scores: int) -> Array:
    """Return scores (n_points, n_scores, B) by coefficients ((r + 1) n_scores, B)."""
    V = W.reshape(A.shape[1] + 1, -1)
    return (A @ V[:-1] + V[-1]).reshape(len(A), n_scores, -1)


class Folds:
    """What each fold knows: the answers and labels that touch only the points it is shown, (n_known, n_folds).

    They are one likelihood of copies of all points, one copy for each fold.
    """

    def __init__(self, problem: Problem, shown: Mask) -> None:
        self.problem = problem
        self.shown = shown
        self.likelihood = problem.likelihood.folds(shown)
        n_known, self.n_folds = shown.shape
        # Components are numbered by their first points, so those of a fold stand together.
        graph = self.likelihood.graph
        self._fold = np.searchsorted(graph.component[::n_known], np.arange(graph.n_components), "right") - 1

    def mean(self, Z: Array, columns: Indices) -> tuple[Array, Array]:
        """Return the mean log likelihoods (B,) of the folds ``columns`` modulo n_folds, and their gradients in Z."""
        fold = columns % self.n_folds
        # The columns of each fold stand side by side. Some folds may have fewer, and zeros beside them.
        order = np.argsort(fold, kind="stable")
        place = np.empty(len(fold), dtype=np.intp)
        place[order] = np.arange(len(fold)) - np.searchsorted(fold[order], fold[order])
        copies = np.zeros((self.n_folds, *Z.shape[:2], int(place.max()) + 1))
        copies[fold, :, :, place] = np.moveaxis(Z, 2, 0)
        log_p, slope = self.likelihood.terms(copies.reshape(-1, *copies.shape[2:]))
        share = self.likelihood.weight / self.likelihood.total
        values = sum_by(self._fold, share[:, None] * log_p, self.n_folds)
        slope *= share[self.likelihood.graph.component][:, None, None]
        return values[fold, place], np.moveaxis(slope.reshape(copies.shape)[fold, :, :, place], 0, 2)

    def posterior(self, Z: Array) -> Array:
        """Return class probabilities (n_known, n_classes, B / n_folds, n_folds) by what the folds know."""
        n_known, n_scores, _ = Z.shape
        copies = np.moveaxis(Z.reshape(n_known, n_scores, -1, self.n_folds), 3, 0)
        q = self.likelihood.posterior(copies.reshape(self.n_folds * n_known, n_scores, -1))
        return np.moveaxis(q.reshape(self.n_folds, n_known, *q.shape[1:]), 0, 3)

    def starts(self) -> Iterator[TwoClassStarts]:
        """Yield the starts of each fold by its own answers, with two classes."""
        graph, weight = self.likelihood.graph, self.likelihood.weight
        rows = self.likelihood.sides.reshape(self.n_folds, -1), graph.component.reshape(self.n_folds, -1)
        for k, (side, component) in enumerate(zip(*rows, strict=True)):
            its = self._fold == k
            sides = Sides(side, component - component[0], graph.labelled[its], weight[its])
            yield TwoClassStarts(self.problem.points, sides, self.problem.pull)


class Minima(NamedTuple):
    """Local minima of several problems."""

    values: Array  # (m,)
    W: Array  # ((r + 1) n_scores, m)


def best_of(problem: Problem, pen: Array, starts: Sequence[Array], folds: Folds | None = None) -> Minima:
    """Return the best solutions of m problems: all starts ((r + 1) n_scores, m) take a few steps, the best go on."""
    m = pen.shape[1]
    count = len(starts)
    tiled = np.tile(pen, count)
    scale = problem.scale(tiled)
    evaluate = partial(problem.objective, pen=tiled, folds=folds)
    W = np.hstack(starts)
    n_followed = min(count, _N_FOLLOWED if problem.likelihood.n_scores > 1 else 1)
    if count > n_followed:
        W, values = lbfgs_many(evaluate, W, scale, _PATH_TOL, _TRIAL_ITER)
        # Ties go to the earlier start.
        order = np.argsort(values.reshape(count, m) + 1e-6 * np.arange(count)[:, None], axis=0)[:n_followed]
        W = np.take_along_axis(W.reshape(-1, count, m), order[None], axis=1).reshape(len(W), -1)
    W, values = lbfgs_many(evaluate, W, scale[:, : n_followed * m], _PATH_TOL, _PATH_ITER)
    best = np.argmin(values.reshape(n_followed, m), axis=0)
    every = np.arange(m)
    return Minima(values.reshape(n_followed, m)[best, every], W.reshape(-1, n_followed, m)[:, best, every])


def _improved(problem: Problem, pen: Array, minima: Minima, n_again: int) -> Minima:
    """Cluster all points again from the classes of a solution, while that leads to a better one."""
    for _ in range(n_again):
        starts = problem.starts.again(minima.W.reshape(-1, problem.likelihood.n_scores))
        if not starts:
            break
        other = best_of(problem, pen, [start.reshape(-1, 1) for start in starts])
        if other.values[0] >= minima.values[0]:
            break
        minima = other
    return minima


def outwards(alphas: Array, alpha_max: float) -> tuple[int, list[tuple[int, int]]]:
    """Return the alpha nearest to the pilot, and the others with the neighbours that they start from."""
    pilot = int(np.argmin(np.abs(np.log(alphas / (PILOT * alpha_max)))))
    up = [(i, i + 1) for i in reversed(range(pilot))]
    return pilot, up + [(i, i - 1) for i in range(pilot + 1, len(alphas))]


def fit_path(problem: Problem, alphas: Array, powers: Sequence[float], n_again: int = _N_AGAIN) -> Array:
    """Return solutions (n_alphas, (r + 1) n_scores, m) for falling alphas (n_alphas, m) and m powers."""
    starts = problem.starts
    pilot, others = outwards(alphas[:, 0], starts.alpha_max(powers[0]))
    path: dict[int, Array] = {}
    for i, neighbour in steps([(pilot, pilot), *others], "penalties"):
        pen = problem.penalties(alphas[i], powers)
        tried = starts.nearby() if path else starts.first()
        columns = [np.repeat(start.reshape(-1, 1), len(powers), axis=1) for start in tried]
        minima = best_of(problem, pen, [path[neighbour], *columns] if path else columns)
        path[i] = _improved(problem, pen, minima, n_again // _N_AGAIN if path else n_again).W
    return np.array([path[i] for i in range(len(alphas))])


class FoldFits(NamedTuple):
    """Models of the folds, for every alpha."""

    folds: Folds
    W: Array  # ((r + 1) n_scores, n_alphas, n_folds)

    def scores(self) -> Array:
        """Return the scores (n_known, n_scores, n_alphas * n_folds)."""
        return self.folds.problem.scores(self.W)


def fit_folds(problem: Problem, alphas: Array, power: float, path: Array, shown: Mask) -> FoldFits:
    """Fit the answers that each fold knows; ``path`` (n_alphas, (r + 1) n_scores) are the solutions on all answers."""
    folds = Folds(problem, shown)
    n_folds = folds.n_folds
    pilot, others = outwards(alphas, problem.starts.alpha_max(power))
    if problem.likelihood.n_scores == 1:
        # A fold starts from its own answers; one without labels has fewer starts, and repeats its last.
        own = [starts.first() for starts in folds.starts()]
        longest = max(map(len, own))
        starts = [np.column_stack([first[min(k, len(first) - 1)] for first in own]) for k in range(longest)]
        shrunk = path[:0]
    else:
        # Without the solution on all answers a fold would miss it. That solution knows what the fold leaves
        # out, so that it is shrunk, and competes with the fold's own solution at the pilot.
        shrunk = np.repeat(_SHRUNK * path[:, :, None], n_folds, axis=2)
        starts = [shrunk[pilot]]
    pen = np.repeat(problem.penalties([alphas[pilot]], power), n_folds, axis=1)
    at_pilot = best_of(problem, pen, starts, folds).W
    W = np.empty((path.shape[1], len(alphas), n_folds))
    W[:, pilot] = at_pilot
    if others:
        rest = [i for i, _ in others]
        pen = np.repeat(problem.penalties(alphas[rest], power), n_folds, axis=1)
        starts = [np.tile(at_pilot, len(rest))]
        if len(shrunk) and problem.likelihood.tied:
            # Of answers that are often wrong, and left out, it would know most at the weakest penalties.
            starts.append(np.hstack(list(shrunk[rest])))
        W[:, rest] = best_of(problem, pen, starts, folds).W.reshape(-1, len(rest), n_folds)
    return FoldFits(folds, W)


def fold_scores(fits: FoldFits, temperature: float = 1.0) -> Array:
    """Return the mean log likelihood (n_folds, n_alphas) of what each fold leaves out; NaN if nothing."""
    Z = fits.scores() / temperature
    labelled = fits.folds.problem.likelihood.graph.labels != 0
    scores = _left_out(fits.folds, Z)
    blind = ~fits.folds.shown[labelled].any(axis=0)
    if Z.shape[1] == 1 and labelled.any() and blind.any():
        # A fold without a label cannot know which class is which, and is scored by the better naming.
        scores[blind] = np.maximum(scores, _left_out(fits.folds, -Z))[blind]
    return scores


def best_temperature(fits: FoldFits) -> float:
    """Return what the logits of one alpha are divided by to suit held-out answers best; 1 if nothing is held out."""
    scores = np.array([fold_scores(fits, temperature) for temperature in TEMPERATURES])
    held_out = np.isfinite(scores).all(axis=(0, 2))
    return TEMPERATURES[int(np.argmax(scores[:, held_out].mean(axis=(1, 2))))] if held_out.any() else 1.0


def _left_out(folds: Folds, Z: Array) -> Array:
    """Return the mean log likelihood (n_folds, n_alphas) of what each fold leaves out, at scores as of FoldFits."""
    whole = folds.problem.likelihood
    graph = whole.graph
    weight = whole.weight[graph.component]
    by_fold = folds.posterior(Z)
    scores = np.full((folds.n_folds, by_fold.shape[2]), np.nan)
    for k in np.flatnonzero(~folds.shown.all(axis=0)):
        q = by_fold[:, :, :, k]
        hidden = ~folds.shown[:, k]
        if whole.evidence is not None:
            # What the answers of a crowd say about each of these points.
            chances = np.einsum("ij,ijk->ik", whole.by_evidence[hidden], q[hidden])
            weights = weight[hidden]
        else:
            answers = np.flatnonzero(hidden[graph.ends].any(axis=1))
            labels = np.flatnonzero(hidden & (graph.labels != 0))
            first, second = graph.ends[answers].T
            weights = weight[np.concatenate([first, labels])]
            same = np.einsum("ijk,ijk->ik", q[first], q[second])
            agrees = np.where(graph.same[answers, None] > 0, same, 1 - same)
            errors = whole.errors[answers, None]
            classes = class_columns(graph.labels[labels], whole.n_classes)
            chances = np.concatenate([(1 - errors) * agrees + errors * (1 - agrees), q[labels, classes]])
        scores[k] = weights @ np.log(np.maximum(chances, _SMALLEST_CHANCE)) / weights.sum()
    return scores


def log_evidence(problem: Problem, W: Array, pen: Array) -> Array:
    """Return equation (2) for coefficients (r + 1, B) and penalties (r, B), with two classes."""
    likelihood = problem.likelihood
    Z = problem.scores(W)
    values, _ = likelihood.mean(Z, exact=True)
    # The number of answers and labels of equal weight with as much information.
    share = likelihood.weight / likelihood.total
    n_effective = 1 / float(share**2 @ likelihood.independent)
    evidence = n_effective * (values - np.sum(pen * W[:-1] ** 2, axis=0) / 2)
    for column, of_column in enumerate(pen.T):
        J = _information(likelihood, problem.points.known, Z[:, 0, column]) / np.sqrt(of_column)
        # The determinant of I + J'J equals that of I + JJ', and the smaller one is computed.
        K = J @ J.T if len(J) < J.shape[1] else J.T @ J
        K[np.diag_indices(len(K))] += 1
        evidence[column] -= np.linalg.slogdet(K)[1] / 2
    return evidence


def _information(likelihood: Likelihood, A: Array, z: Array) -> Array:
    """Return roots of the Fisher information about w at scores (n_known,), one row per point, with two classes."""
    # The likelihood of a component is a product over its points: given the sides of those before
    # it, point k is on its side with probability q = (1 + T t) / 2, where t = tanh(z / 2) on that
    # side and T = tanh(u / 2) of the points before it. A row is dq / sqrt(q (1 - q)): for a pair
    # its Fisher information, in a component with labels that of logistic regression.
    graph = likelihood.graph
    order = np.argsort(graph.component, kind="stable")
    component = graph.component[order]
    side = np.where(likelihood.sides < 0, -1.0, 1.0)[order]
    signed = side[:, None] * np.column_stack([A, z])[order]
    before = np.cumsum(signed, axis=0) - signed
    start = np.flatnonzero(np.diff(component, prepend=-1))
    before -= np.repeat(before[start], np.diff(np.r_[start, len(order)]), axis=0)
    T = np.tanh(before[:, -1] / 2)
    T[graph.labelled[component]] = 1.0
    t = np.tanh(signed[:, -1] / 2)
    slope = (T * (1 - t**2))[:, None] * signed[:, :-1] + (t * (1 - T**2))[:, None] * before[:, :-1]
    rows = np.empty_like(slope)
    rows[order] = slope / (2 * np.sqrt(np.maximum(1 - (T * t) ** 2, 1e-12)))[:, None]
    # At an error rate e, small logits keep the share (1 - 2 e)^2 of the information. Large ones
    # keep less, but with so little the evidence would reward overfitting.
    certainty = (graph.labels != 0).astype(np.float64)
    for end in graph.ends.T:
        np.maximum.at(certainty, end, 1 - 2 * likelihood.errors)
    share = likelihood.weight / likelihood.total
    return (certainty * np.sqrt(share[graph.component]))[:, None] * rows


def question_chances(fits: FoldFits) -> Array:
    """Return the probabilities (len(SCALES), n_questions) that all answers to a question are right.

    They are those of the fold that leaves the question out, from what it knows, NaN where none does. ``fits`` are the
    models of one alpha.
    """
    graph = fits.folds.problem.likelihood.graph
    chances = np.full((len(SCALES), int(graph.question.max(initial=-1)) + 1), np.nan)
    by_fold = fits.folds.posterior(np.repeat(SCALES, fits.folds.n_folds) * np.tile(fits.scores(), len(SCALES)))
    for k, of_fold in enumerate(fits.folds.shown.T):
        left_out = np.isin(graph.question, graph.question[~of_fold[graph.ends].all(axis=1)])
        q = by_fold[:, :, :, k]
        right = _all_right(graph, left_out, q / q.sum(axis=1, keepdims=True))
        # Half a draw is added to either side, so that none is certain.
        chances[:, graph.question[left_out]] = (right.T * _N_DRAWS + 0.5) / (_N_DRAWS + 1)
    return chances


def _all_right(graph: AnswerGraph, asked: Mask, q: Array) -> Array:
    """Return, by answer ``asked``, the probability (n_asked, B) that all to its question are right.

    Class probabilities are q (n_points, n_classes, B). It is exact for a pair, and by draws for larger questions.
    """
    first, second = graph.ends[asked].T
    agree = np.einsum("ijk,ijk->ik", q[first], q[second])
    right = np.where(graph.same[asked, None] > 0, agree, 1 - agree)
    if (larger := graph.in_larger_question[asked]).any():
        rng = np.random.default_rng(0)
        by_question = sum_matrix(np.unique(graph.question[asked][larger], return_inverse=True)[1], larger.sum())
        below = np.cumsum(q, axis=1)[:, :-1]
        for row, of_row in enumerate(np.moveaxis(below, 2, 0)):
            drawn = (rng.random((_N_DRAWS, len(q), 1)) > of_row).sum(axis=2)
            same = drawn[:, first[larger]] == drawn[:, second[larger]]
            wrong = (same != (graph.same[asked][larger] > 0)).astype(np.float64) @ by_question.T @ by_question
            right[larger, row] = (wrong == 0).mean(axis=0)
    return right


class Choice(NamedTuple):
    """The penalty that was chosen, and what it was chosen by."""

    alpha: float
    power: float
    temperature: float
    alphas: Array  # (n_alphas,), of this power
    scores: Array  # (n_folds, n_alphas), of the folds
    W: Array  # ((r + 1) n_scores,), the solution on the path
    fits: FoldFits  # the models of the folds, of this alpha
    held_out: HeldOut

    @property
    def value(self) -> float:
        """The mean log likelihood of what the folds leave out."""
        return float(np.nanmean(self.scores, axis=0)[self.alphas == self.alpha][0])


def choose(problem: Problem, alphas: Array, powers: Sequence[float], shown: Mask) -> Choice:
    """Return the best of alphas (n_alphas, n_powers), by folds or by evidence."""
    graph = problem.likelihood.graph
    path = fit_path(problem, alphas, powers)
    column = row = 0
    usable = np.ones(len(alphas), dtype=bool)
    if problem.likelihood.n_scores == 1:
        pen = problem.penalties(alphas.ravel(), np.tile(powers, len(alphas)))
        W = np.moveaxis(path, 1, 0).reshape(-1, alphas.size)
        evidence = log_evidence(problem, W, pen).reshape(alphas.shape)
        empty = _empty(problem, alphas, powers, path)
        evidence[empty & ~empty.all()] = -np.inf
        row, column = map(int, np.unravel_index(np.argmax(evidence), evidence.shape))
        usable = np.isfinite(evidence[:, column])
    fits = fit_folds(problem, alphas[:, column], powers[column], path[:, :, column], shown)
    scores = fold_scores(fits)
    if problem.likelihood.n_scores > 1 or not (graph.shares_points or graph.labels.any()):
        row = int(np.nanargmax(np.where(usable, np.nanmean(scores, axis=0), -np.inf)))
    chosen = FoldFits(fits.folds, fits.W[:, [row]])
    temperature = best_temperature(chosen)
    return Choice(
        alpha=float(alphas[row, column]),
        power=float(powers[column]),
        temperature=temperature,
        alphas=alphas[:, column],
        scores=scores,
        W=path[row, :, column],
        fits=chosen,
        held_out=HeldOut.at(problem.likelihood, held_out_scores(problem, fits.W[:, row], shown) / temperature),
    )


def _empty(problem: Problem, alphas: Array, powers: Sequence[float], path: Array) -> Mask:
    """Return where on the path (n_alphas, n_powers) the logits of two classes hardly vary."""
    variance = np.einsum("ajk,j->ak", path[:, :-1] ** 2, problem.points.axes.variance)
    empty = variance < _EMPTY**2
    if problem.pull is None and not problem.likelihood.graph.labels.any():
        # Nothing leads away from zero, and the penalty is too strong to leave it.
        empty |= alphas >= [problem.starts.alpha_max(power) for power in powers]
    return np.asarray(empty)


def descend(problem: Problem, alpha: float, power: float, n_steps: int = 4) -> Array:
    """Return the solution at ``alpha`` by the path from the pilot alpha."""
    top = max(PILOT * problem.starts.alpha_max(power), alpha)
    alphas = np.geomspace(top, alpha, n_steps if top > alpha else 1)[:, None]
    return fit_path(problem, alphas, [power])[-1, :, 0]


class Polished(NamedTuple):
    """A solution with its certificate."""

    W: Array  # (r + 1, n_scores)
    value: float
    optimality: float
    n_calls: int


def polish(problem: Problem, W: Array, alpha: float, power: float, tol: float, max_iter: int) -> Polished:
    """Solve to ``tol`` from a solution of the path, and certify it."""
    pen = problem.penalties([alpha], power)
    scale = problem.scale(pen)
    objective = Counted(partial(problem.objective, pen=pen, exact=True))
    W, _ = lbfgs_many(objective, W.reshape(-1, 1), scale, tol, max_iter)
    value, gradient = objective(W, np.zeros(1, dtype=np.intp))
    norm = float(gradient_norm(gradient, scale)[0])
    return Polished(W.reshape(-1, problem.likelihood.n_scores), float(value[0]), norm, objective.n_calls)


def pilot_fits(problem: Problem, power: float, shown: Mask) -> FoldFits:
    """Return models of the folds at the pilot penalty."""
    alpha = np.array([PILOT * problem.starts.alpha_max(power)])
    path = fit_path(problem, alpha[:, None], [power])[:, :, 0]
    return fit_folds(problem, alpha, power, path, shown)


class PilotScores(NamedTuple):
    """What models of folds at the pilot penalty say of points that they have seen no answer about."""

    scores: Array  # (n_known, n_scores), 0 for points that all folds know
    temperature: float
    value: float  # mean log likelihood of the answers that folds leave out
    fits: FoldFits


def held_out(problem: Problem, power: float, shown: Mask) -> PilotScores:
    """Return the scores by models of folds."""
    fits = pilot_fits(problem, power, shown)
    Z = held_out_scores(problem, fits.W[:, 0], shown)
    temperature = best_temperature(fits)
    value = float(np.nanmean(fold_scores(fits, temperature)))
    return PilotScores(np.where(shown.all(axis=1, keepdims=True), 0.0, Z), temperature, value, fits)


def held_out_scores(problem: Problem, W: Array, shown: Mask) -> Array:
    """Return the scores (n_known, n_scores) of points by the models of folds without them; of hubs the mean of all."""
    Z = problem.scores(W)
    # Without labels the names of a model's classes are arbitrary: all take those of the first.
    if problem.likelihood.n_scores == 1:
        Z = Z * np.copysign(1.0, np.einsum("i,ik->k", Z[:, 0, 0], Z[:, 0]))
    else:
        orders = [linear_sum_assignment(-Z[:, :, 0].T @ Z[:, :, k])[1] for k in range(Z.shape[2])]
        Z = np.stack([Z[:, order, k] for k, order in enumerate(orders)], axis=2)
    counted = ~shown | shown.all(axis=1, keepdims=True)
    return np.einsum("ijk,ik->ij", Z, counted / counted.sum(axis=1, keepdims=True))


def choose_number(problems: Iterable[Problem], fewest: int, power: float, shown: Mask) -> NumberOfClasses:
    """Return the fewest classes within one standard error of the best by folds, and the range within two.

    ``problems`` are those of ``fewest`` classes and more, made when needed.
    """
    scores: list[Array] = []
    n_used: list[int] = []
    alphas = np.empty(0)
    # An iterator, because the search may end early.
    for problem in steps(iter(problems), "numbers of classes"):
        if not len(alphas):
            # All numbers get the same penalties: otherwise the lightest would win.
            alphas = problem.starts.alpha_max(power) * np.array(_NUMBER_SHARES)
        path = fit_path(problem, alphas[:, None], [power], _N_AGAIN_OF_A_NUMBER)[:, :, 0]
        fits = fit_folds(problem, alphas, power, path, shown)
        by_temperature = np.array([fold_scores(fits, t) for t in TEMPERATURES])
        best = np.unravel_index(np.argmax(np.nanmean(by_temperature, axis=1)), (len(TEMPERATURES), len(alphas)))
        scores.append(by_temperature[best[0], :, best[1]])
        Z = scores_of(problem.points.A, path[best[1], :, None], problem.likelihood.n_scores)
        n_used.append(len(np.unique(np.argmax(problem.likelihood.probabilities(Z), axis=1))))
        if len(scores) - 1 - int(np.argmax(np.nanmean(scores, axis=1))) >= _PATIENCE:
            break
    near = _near_best(np.array(scores), 2)
    n_classes = fewest + int(np.argmax(_near_best(np.array(scores), 1)))
    # Classes without a point do not lower the likelihood, and do not count.
    while fewest <= n_used[n_classes - fewest] < n_classes:
        n_classes = n_used[n_classes - fewest]
    return NumberOfClasses(n_classes, fewest + int(np.argmax(near)), int(np.max(np.array(n_used)[near])))


def _near_best(scores: Array, n_errors: float) -> Mask:
    """Return which numbers are within ``n_errors`` standard errors of the best, or close."""
    mean = np.nanmean(scores, axis=1)
    best = int(np.argmax(mean))
    behind = scores[best] - scores
    n_folds = max(int(np.isfinite(scores[best]).sum()), 2)
    error = np.nanstd(behind, axis=1) / np.sqrt(n_folds - 1)
    return np.nanmean(behind, axis=1) <= np.maximum(n_errors * error, _WORTH_A_CLASS * abs(mean[best]))
