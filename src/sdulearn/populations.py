"""Where simulated points and their classes come from.

Generated, or the user's own rows with made-up classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import issparse
from scipy.special import expit
from scipy.stats import norm
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from sklearn.utils.extmath import randomized_svd

from sdulearn.errors import InputError
from sdulearn.types import Array, Indices, Mask, MatrixLike

# Of the user's features: more would cost time and change little.
_MOST_ROWS = 10_000
_FEWEST_ROWS = 1000
_MOST_CELLS = 2_000_000
_MOST_AXES = 100

Draw: TypeAlias = tuple[Array, Indices, Mask, Indices, Callable[[Array, float], float]]
"""Points, random pairs of them, their answers, unlabeled points, and the accuracy of weights and an intercept."""


class Population:
    """Where points and their classes come from."""

    n_rows: int | None  # rows of the user's table; None where points are generated
    n_features: int  # features of the table, or of the generated points
    n_axes: int  # how many of them are simulated: of a wide table the main directions only
    direction: str | None  # direction that separates the made-up classes of a table

    def draw(self, n_pairs: int, n_unlabeled: int, rng: np.random.Generator) -> Draw:
        """Points with pairs, answers and unlabeled rows."""
        raise NotImplementedError


class GaussianPopulation(Population):
    """Two Gaussian classes with identity covariance, as far apart as the ceiling asks."""

    def __init__(self, prior: float, ceiling: float, n_features: int) -> None:
        self.prior = prior
        self.mean = np.full(n_features, gaussian_distance(prior, ceiling) / 2 / math.sqrt(n_features))
        self.n_rows = None
        self.n_features = n_features
        self.n_axes = n_features
        self.direction = None

    def draw(self, n_pairs: int, n_unlabeled: int, rng: np.random.Generator) -> Draw:
        """Fresh points for every pair and every unlabeled row."""
        n = 2 * n_pairs + n_unlabeled
        y = np.where(rng.random(n) < self.prior, 1, -1)
        points = y[:, None] * self.mean + rng.normal(size=(n, len(self.mean)))
        pairs = np.arange(2 * n_pairs).reshape(n_pairs, 2)
        same = y[pairs[:, 0]] == y[pairs[:, 1]]
        return points, pairs, same, np.arange(2 * n_pairs, n), self.accuracy

    def accuracy(self, coef: Array, intercept: float) -> float:
        """Accuracy of ``sign(coef.x + intercept)``, exactly."""
        norms = max(float(np.linalg.norm(coef)), 1e-300)
        shift = float(coef @ self.mean)
        positive = norm.cdf((shift + intercept) / norms)
        negative = norm.cdf((shift - intercept) / norms)
        return float(self.prior * positive + (1 - self.prior) * negative)


class FeaturePopulation(Population):
    """The user's rows, with classes from a logistic model as steep as the ceiling asks."""

    def __init__(self, X: MatrixLike, prior: float, ceiling: float, direction: str) -> None:
        if direction not in ("random", "principal"):
            raise InputError(f"`direction` must be 'random' or 'principal', got {direction!r}.")
        rows = _some_rows(X)
        self.rows = _leading_axes(StandardScaler().fit_transform(rows))
        self.prior = prior
        self.ceiling = ceiling
        self.direction = direction
        # The direction in which the rows vary most, or a new one in each draw.
        self.axis = randomized_svd(self.rows, 1, random_state=0)[2][0] if direction == "principal" else None
        self.n_rows, self.n_features = rows.shape
        self.n_axes = self.rows.shape[1]

    def draw(self, n_pairs: int, n_unlabeled: int, rng: np.random.Generator) -> Draw:
        """New classes for the rows; random pairs of different rows, each in any number of pairs."""
        n, d = self.rows.shape
        v = rng.normal(size=d) if self.axis is None else self.axis
        positive = expit(logistic_scores(self.rows @ v, self.prior, self.ceiling))
        y = rng.random(n) < positive
        first = rng.integers(n, size=n_pairs)
        second = (first + rng.integers(1, n, size=n_pairs)) % n
        unlabeled = rng.permutation(n)[:n_unlabeled]

        def accuracy(coef: Array, intercept: float) -> float:
            up = self.rows @ coef + intercept > 0
            return float(np.mean(np.where(up, positive, 1 - positive)))

        return self.rows, np.column_stack([first, second]), y[first] == y[second], unlabeled, accuracy


def _some_rows(X: MatrixLike) -> Array:
    """Enough rows of the user's features, dense."""
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=20)
    n, d = rows.shape
    keep = min(n, _MOST_ROWS, max(_FEWEST_ROWS, _MOST_CELLS // d))
    if keep < n:
        rows = rows[np.sort(np.random.default_rng(0).choice(n, keep, replace=False))]
    return np.asarray(rows.toarray() if issparse(rows) else rows)


def _leading_axes(rows: Array) -> Array:
    """A wide table in its leading principal axes; the estimators do not mind the rotation."""
    if rows.shape[1] <= _MOST_AXES:
        return rows
    U, scale, _ = randomized_svd(rows, min(_MOST_AXES, len(rows)), random_state=0)
    return np.asarray(U * scale)


def gaussian_accuracy(distance: float, prior: float) -> float:
    """Accuracy of Bayes' rule for two Gaussian classes with identity covariance at a distance."""
    half = distance / 2
    shift = math.log(prior / (1 - prior)) / distance
    return float(prior * norm.cdf(half + shift) + (1 - prior) * norm.cdf(half - shift))


def gaussian_distance(prior: float, ceiling: float) -> float:
    """The distance at which Bayes' rule is right with probability ``ceiling``."""
    return float(brentq(lambda distance: gaussian_accuracy(distance, prior) - ceiling, 0.02, 40))


def logistic_scores(t: Array, prior: float, ceiling: float) -> Array:
    """``k t + b`` with mean probability ``prior`` and the best classifier's accuracy ``ceiling``."""
    t = (t - t.mean()) / (t.std() or 1.0)

    def scores(log_k: float) -> Array:
        k = math.exp(log_k)
        reach = k * float(np.abs(t).max()) + 40
        return k * t + brentq(lambda b: float(np.mean(expit(k * t + b))) - prior, -reach, reach)

    def gap(log_k: float) -> float:
        return float(np.mean(expit(np.abs(scores(log_k))))) - ceiling

    bottom = math.log(1e-3)
    top = math.log(1e3)
    if gap(top) < 0:
        raise InputError(
            f"The rows of `X` take too few different values for `ceiling={ceiling:g}` at this prior: "
            f"{gap(top) + ceiling:.1%} is the most. Give a lower `ceiling`, or features that vary."
        )
    if gap(bottom) >= 0:
        return scores(bottom)
    return scores(brentq(gap, bottom, top, xtol=1e-4))
