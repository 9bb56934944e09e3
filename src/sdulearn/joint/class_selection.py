"""Choosing a penalty and the number of classes by the held-out likelihood of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from sdulearn.answers.graph import AnswerGraph, connect
from sdulearn.answers.propagate import ErrorRates, answer_errors
from sdulearn.joint.class_fit import ClassData, ClassSolution, follow_path, middle_index, outwards, solve
from sdulearn.joint.class_starts import different_groups
from sdulearn.types import Array, Indices, Mask

# How well the models of folds are solved, and where they begin.
_FOLD_TOL = 5e-3
_FOLD_ITER = 40
_SHRUNK = 0.5
# No single answer may spoil the score of a model.
_SMALLEST_CHANCE = 1e-6
# Few answers make overconfident models; logits are divided by one of these, the one that suits all folds best.
TEMPERATURES = (1.0, 1.5, 2.0, 3.0)

# Which answers and which labels a fold knows.
Known = tuple[Mask, Mask]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of a path of penalties.

    Attributes
    ----------
    alphas : list of float
        The penalties, falling.
    covariance_power : float
        Their power.
    path : list of ClassSolution
        Solutions on everything.
    scores : array of shape (n_temperatures, n_folds, n_alphas)
        Mean log chance of what each fold left out, given what it knows; NaN for a fold without a score.
    """

    alphas: list[float]
    covariance_power: float
    path: list[ClassSolution]
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
    def best_score(self) -> float:
        """The best mean."""
        return float(self.mean[self.best])


def held_out(data: ClassData, path: list[ClassSolution], alphas: list[float], power: float, folds: Sequence[Known]) -> HeldOut:
    """Score a path.

    The path of a fold begins at the solution on everything, shrunk: there, at a middle penalty, little is left of
    what single answers said.
    """
    middle = middle_index(data, alphas, power)
    scores = np.full((len(TEMPERATURES), len(folds), len(alphas)), np.nan)
    for k, (answers, labels) in enumerate(folds):
        part = data.restricted(answers, labels)
        if not part.likelihood.n_answers > 0:
            continue
        found = {middle: _SHRUNK * path[middle].W}
        for i, neighbour in [(middle, middle), *outwards(middle, len(alphas))]:
            found[i] = solve(part, part.objective(alphas[i], power), found[neighbour], _FOLD_TOL, _FOLD_ITER).W
            scores[:, k, i] = [score(data, part, found[i] / t, ~answers, ~labels) for t in TEMPERATURES]
    return HeldOut(alphas, power, path, scores)


def score(data: ClassData, part: ClassData, W: Array, answers: Mask, labels: Mask) -> float:
    """Mean log chance of some answers and labels of the data, each by itself, given what a part of it knows."""
    log_p = log_softmax(data.A @ W[:-1] + W[-1], axis=1)
    q = part.likelihood.group_probabilities(log_p)
    first, second = data.graph.ends[answers].T
    errors = answer_errors(data.graph.annotators[answers], data.error_rates)
    same = np.einsum("ij,ij->i", q[first], q[second])
    agrees = np.where(data.graph.same[answers] > 0, same, 1 - same)
    chances = np.log(np.maximum((1 - errors) * agrees + errors * (1 - agrees), _SMALLEST_CHANCE))
    known = np.flatnonzero(labels & (data.graph.labels != 0))
    named = np.log(np.maximum(q[known, data.graph.labels[known] - 1], _SMALLEST_CHANCE))
    weights = np.concatenate([data.weight[first], data.weight[known]])
    return float(weights @ np.concatenate([chances, named]) / weights.sum()) if len(weights) else np.nan


def least_classes(graph: AnswerGraph, error_rates: ErrorRates = 0.0) -> int:
    """The fewest classes that answers without errors, and labels, force: a greedy lower bound, 2 or more.

    Groups of points that are all different from each other need a class each.
    """
    certain = answer_errors(graph.annotators, error_rates) == 0
    group = graph.group if certain.all() else connect(graph.ends[certain & (graph.same > 0)], graph.n_points)
    ends = group[graph.ends[certain & (graph.same < 0)]]
    named = int(graph.labels.max(initial=0))
    return max(2, named, len(different_groups(ends)))


def deal_answers(graph: AnswerGraph, known_rows: Sequence[Indices], answer_rows: Indices, row_point: Indices) -> list[Known]:
    """Which answers and labels each fold knows, from the rows it trains on.

    ``answer_rows`` (n_answers, 2) are the rows of each answer, ``row_point`` the known point of each row or -1.
    """
    folds = []
    for rows in known_rows:
        seen = np.zeros(len(row_point), dtype=bool)
        seen[rows] = True
        hidden = np.zeros(graph.n_points, dtype=bool)
        hidden[row_point[~seen & (row_point >= 0)]] = True
        folds.append((seen[answer_rows].all(axis=1), ~hidden))
    return folds
