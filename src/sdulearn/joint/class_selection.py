"""Choosing a penalty and the number of classes by the held-out likelihood of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax

from sdulearn.answers.graph import AnswerGraph
from sdulearn.joint.class_fit import ClassData, ClassSolution, follow_path, middle_index, outwards, solve
from sdulearn.types import Array, Mask

# How well the models of folds are solved, and where they begin.
_FOLD_TOL = 5e-3
_FOLD_ITER = 30
_SHRUNK = 0.5
# No single answer may spoil the score of a model.
_SMALLEST_CHANCE = 1e-6
# Few answers make overconfident models, and a strong penalty timid ones; logits are divided by one of
# these, the one that suits all folds best.
TEMPERATURES = (0.7, 1.0, 1.5, 2.0, 3.0)

# Penalties, as shares of the largest, with which numbers of classes are compared.
_NUMBER_SHARES = (0.03, 0.006, 0.001)
# What one more class must bring, as a share of the log score.
_WORTH_A_CLASS = 0.03
# So many more classes in a row that bring nothing end the search.
_PATIENCE = 2

# Which answers and which labels a fold knows.
Known = tuple[Mask, Mask]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of a path of penalties."""

    alphas: list[float]  # the penalties, falling
    covariance_power: float  # their power
    path: list[ClassSolution]  # solutions on everything
    # (n_temperatures, n_folds, n_alphas), mean log chance of what each fold left out, given what it knows; NaN for a
    # fold without a score
    scores: Array

    @property
    def mean(self) -> Array:
        """Mean over folds (n_temperatures, n_alphas)."""
        return np.nanmean(self.scores, axis=1)

    @property
    def best(self) -> tuple[int, int]:
        """The best temperature and the best alpha, as places."""
        temperature, alpha = np.unravel_index(int(np.argmax(self.mean)), self.mean.shape)
        return int(temperature), int(alpha)

    @property
    def best_folds(self) -> Array:
        """Scores of the folds (n_folds,) where their mean is best."""
        temperature, alpha = self.best
        return self.scores[temperature, :, alpha]


def held_out(
    data: ClassData, path: list[ClassSolution], alphas: list[float], power: float, folds: Sequence[Known]
) -> HeldOut:
    """Score a path.

    At each penalty the model of a fold begins at its neighbour's solution and at the one on everything, shrunk, and
    the better one by its own objective is kept. Without the second, folds would miss solutions that the path found; by
    itself it would tell the fold too much of the answers left out.
    """
    middle = middle_index(data, alphas, power)
    scores = np.full((len(TEMPERATURES), len(folds), len(alphas)), np.nan)
    for k, (answers, labels) in enumerate(folds):
        part = data.restricted(answers, labels)
        if not part.likelihood.n_answers > 0:
            continue
        found: dict[int, Array] = {}
        for i, neighbour in [(middle, middle), *outwards(middle, len(alphas))]:
            starts = [_SHRUNK * path[i].W, *([found[neighbour]] if found else [])]
            objective = part.objective(alphas[i], power)
            trials = [solve(part, objective, W, _FOLD_TOL, _FOLD_ITER) for W in starts]
            found[i] = min(trials, key=lambda trial: trial.objective).W
            scores[:, k, i] = [score(data, part, found[i] / t, ~answers, ~labels) for t in TEMPERATURES]
    return HeldOut(alphas, power, path, scores)


def score(data: ClassData, part: ClassData, W: Array, answers: Mask, labels: Mask) -> float:
    """Mean log chance of some answers and labels of the data, each by itself, given what a part of it knows."""
    log_p = log_softmax(data.A @ W[:-1] + W[-1], axis=1)
    q = part.likelihood.group_probabilities(log_p)
    first, second = data.graph.ends[answers].T
    errors = data.answer_model.errors(data.graph.annotators[answers])
    same = np.einsum("ij,ij->i", q[first], q[second])
    agrees = np.where(data.graph.same[answers] > 0, same, 1 - same)
    chances = np.log(np.maximum((1 - errors) * agrees + errors * (1 - agrees), _SMALLEST_CHANCE))
    known = np.flatnonzero(labels & (data.graph.labels != 0))
    named = np.log(np.maximum(q[known, data.graph.labels[known] - 1], _SMALLEST_CHANCE))
    weights = np.concatenate([data.weight[first], data.weight[known]])
    return float(weights @ np.concatenate([chances, named]) / weights.sum()) if len(weights) else np.nan


def near_best(scores: Array, n_errors: float, margin: float = 0.0) -> Mask:
    """Which of several settings (n_settings, n_folds) are within so many standard errors, or a margin, of the best.

    Errors are those of the differences in the folds: a setting is kept unless all folds speak against it.
    """
    best = int(np.argmax(np.nanmean(scores, axis=1)))
    behind = scores[best] - scores
    n_folds = max(int(np.isfinite(scores[best]).sum()), 2)
    error = np.nanstd(behind, axis=1) / np.sqrt(n_folds - 1)
    return np.nanmean(behind, axis=1) <= np.maximum(n_errors * error, margin)


@dataclass(frozen=True, eq=False)
class NumberOfClasses:
    """Scores of different numbers of classes."""

    n_classes: list[int]  # the numbers tried
    # (n_numbers, n_folds), best mean log chance of what each fold left out, by one penalty for all folds
    scores: Array
    n_used: list[int]  # classes that have a point, of each number: a class without one costs no likelihood

    def within(self, n_errors: float) -> Mask:
        """Which numbers are so many standard errors from the best, or a few per cent."""
        best = float(np.max(np.nanmean(self.scores, axis=1)))
        return near_best(self.scores, n_errors, _WORTH_A_CLASS * abs(best))

    @property
    def chosen(self) -> int:
        """The fewest classes within one standard error of the best."""
        return self.n_classes[int(np.argmax(self.within(1)))]

    @property
    def interval(self) -> tuple[int, int]:
        """Within two standard errors of the best: the fewest classes, and the most that have a point."""
        allowed = self.within(2)
        return self.n_classes[int(np.argmax(allowed))], int(np.max(np.array(self.n_used)[allowed]))


def choose_number(data: ClassData, fewest: int, most: int, power: float, folds: Sequence[Known]) -> NumberOfClasses:
    """Score numbers of classes from the fewest on, until more bring nothing."""
    # The same penalties for all numbers: else the lightest would win.
    largest = replace(data, n_classes=fewest).largest_alpha(power)
    alphas = [share * largest for share in _NUMBER_SHARES]
    numbers: list[int] = []
    scores: list[Array] = []
    n_used: list[int] = []
    for n_classes in range(fewest, most + 1):
        trial = replace(data, n_classes=n_classes)
        found = held_out(trial, follow_path(trial, alphas, power), alphas, power, folds)
        numbers.append(n_classes)
        scores.append(found.best_folds)
        n_used.append(trial.n_used(found.path[found.best[1]].W))
        best = int(np.argmax(np.nanmean(np.array(scores), axis=1)))
        if len(scores) - 1 - best >= _PATIENCE:
            break
    return NumberOfClasses(numbers, np.array(scores), n_used)


def known_by_folds(graph: AnswerGraph, known: Mask) -> list[Known]:
    """Which answers and labels each fold knows, from the points (n_known, n_folds) that it knows."""
    return [(shown[graph.ends].all(axis=1), shown) for shown in known.T]
