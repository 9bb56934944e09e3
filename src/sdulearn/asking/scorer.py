"""The model within: a softmax regression on the points whose class is known, refitted after every answer.

With A the rows, Q the (soft) classes and a ridge penalty, W minimises

    - sum_ik Q_ik log softmax(A W)_ik + penalty / 2 |W|^2                                   (1)

which is strictly convex, so that the model depends on the answers alone and not on the way to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from sdulearn.asking.points import Points
from sdulearn.types import Array, Indices

PENALTIES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
POWERS = (0.0, 1.0, 2.0)
N_FOLDS = 5
# The intercepts, which need no penalty but for uniqueness.
_INTERCEPT_PENALTY = 1e-3


@dataclass(frozen=True)
class Settings:
    """Penalty of a model, and the power of the covariance in it."""

    penalty: float = 3.0
    power: float = 1.0


@dataclass(frozen=True, eq=False)
class Scorer:
    """A fitted softmax regression in the axes of the points."""

    points: Points  # their axes
    settings: Settings  # penalty and power
    coef: Array  # (n_axes + 1, n_classes), weights, and in the last row the intercepts

    @classmethod
    def fit(cls, points: Points, known: Indices, classes: Array, settings: Settings) -> Scorer:
        """Fit to points of known class."""
        rows = points.coordinates(known) * points.stretch(settings.power)
        return cls(points, settings, fit_softmax(rows, classes, settings.penalty))

    def log_probabilities(self, points: Indices) -> Array:
        """Logarithms of the probability of each class."""
        return self.from_coordinates(self.points.coordinates(points))

    @property
    def of_candidates(self) -> Array:
        """The same of all candidates."""
        return self.from_coordinates(self.points.candidate_coordinates)

    def from_coordinates(self, coordinates: Array) -> Array:
        """The same of points that are in coordinates already."""
        rows = coordinates * self.points.stretch(self.settings.power)
        return log_softmax(rows @ self.coef[:-1] + self.coef[-1], axis=1)


def fit_softmax(rows: Array, classes: Array, penalty: float, start: Array | None = None, tol: float = 1e-8) -> Array:
    """Minimise equation (1) by L-BFGS, from zero or a solution nearby."""
    A = np.column_stack([rows, np.ones(len(rows))])
    shape = (A.shape[1], classes.shape[1])
    weight = classes.sum(axis=1, keepdims=True)
    ridge = np.full((shape[0], 1), penalty)
    ridge[-1] = _INTERCEPT_PENALTY

    def objective(flat: Array) -> tuple[float, Array]:
        W = flat.reshape(shape)
        log_p = A @ W
        log_p -= log_p.max(axis=1, keepdims=True)
        p = np.exp(log_p)
        total = p.sum(axis=1, keepdims=True)
        log_p -= np.log(total)
        p *= weight / total
        penalised = ridge * W
        value = 0.5 * np.vdot(W, penalised) - np.vdot(classes, log_p)
        penalised += A.T @ (p - classes)
        return float(value), penalised.ravel()

    first = np.zeros(shape) if start is None else start
    options = {"maxiter": 300, "ftol": tol, "gtol": 1e-4}
    return minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(shape)


def choose_settings(points: Points, known: Indices, classes: Array) -> Settings:
    """Penalty and power with the best held-out likelihood over folds of points."""
    coordinates = points.coordinates(known)
    scores = np.array([_path_scores(coordinates * points.stretch(power), classes) for power in POWERS])
    power, penalty = np.unravel_index(np.argmax(scores), scores.shape)
    return Settings(PENALTIES[penalty], POWERS[power])


def deal_folds(n: int, n_folds: int = N_FOLDS, seed: int = 0) -> Indices:
    """The fold of each of n points."""
    return np.random.default_rng(seed).permutation(n) % n_folds


def _path_scores(rows: Array, classes: Array) -> Array:
    """Held-out log likelihood at each penalty; each fold goes down the path on its own."""
    fold = deal_folds(len(rows))
    scores = np.zeros(len(PENALTIES))
    for k in range(int(fold.max()) + 1):
        test = fold == k
        W = None
        for place, penalty in enumerate(PENALTIES):
            W = fit_softmax(rows[~test], classes[~test], penalty, W, tol=1e-5)
            scores[place] += np.sum(classes[test] * log_softmax(rows[test] @ W[:-1] + W[-1], axis=1))
    return scores
