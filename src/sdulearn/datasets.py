"""Example data: waveforms, pairs drawn from labelled points, and populations to simulate.

:mod:`sdulearn.planning` draws from a population: generated points, or the user's rows with
simulated classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.sparse import issparse
from scipy.special import expit
from scipy.stats import norm
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_random_state
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.random import sample_without_replacement

from sdulearn.errors import InputError
from sdulearn.risks import similar_share
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Indices, Mask, MatrixLike, RandomState

__all__ = ["make_waveform", "sample_sdu"]

# Limits for the user's rows: more would cost time and change little.
_MOST_ROWS = 10_000
_FEWEST_ROWS = 1000
_MOST_CELLS = 2_000_000
_MOST_AXES = 100

# Points, random pairs, their answers, unlabeled points, accuracy by coefficients and intercept.
Draw: TypeAlias = tuple[Array, Indices, Mask, Indices, Callable[[Array, float], float]]


def sample_sdu(
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_pairs: int,
    n_unlabeled: int,
    prior: float | None = None,
    n_test: int = 0,
    exact: bool = True,
    design: str = "loose",
    n_points: int | None = None,
    error_rate: float = 0.0,
    random_state: RandomState = None,
) -> tuple[MatrixLike, ...]:
    """Draw similar and dissimilar pairs, unlabeled rows and test points from labelled data.

    Rows of ``X`` are drawn without replacement.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_points, n_features)
        Labelled points.
    y : array-like of shape (n_points,)
        Their classes: -1 and +1, or any integers without ``prior``.
    n_pairs, n_unlabeled : int
        Number of pairs and of unlabeled rows.
    prior : float or None, default=None
        P(y = +1) of the population; None draws points regardless of their class.
    n_test : int, default=0
        Number of labelled test points.
    exact : bool, default=True
        Whether the shares of classes (with ``prior``), similar pairs and wrong answers are exact
        rather than random.
    design : {"loose", "random", "star"}, default="loose"
        "loose": every point is in one pair, as in the paper; "random": different pairs of
        ``n_points`` points; "star": one point is paired with every other.
    n_points : int, optional
        Number of points in the pairs of ``design="random"``; ``n_pairs`` by default.
    error_rate : float, default=0.0
        Share of answers that are wrong.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    X_rows : array, sparse matrix or frame of shape (2 * n_pairs + n_unlabeled, n_features)
        Rows of ``X``: ends of pairs first, then the unlabeled ones.
    codes : array of shape (2 * n_pairs + n_unlabeled,) or (2 * n_pairs + n_unlabeled, 2)
        Pair codes: +k similar, -k dissimilar, 0 unlabeled; and, unless every point is in one pair
        and ``prior`` is given, the number of the point in each row.
    X_test, y_test : arrays of n_test rows
        Test points and their classes, if ``n_test > 0``.

    See Also
    --------
    sdulearn.stack_pairs : Rows and codes of pairs that you have.

    Examples
    --------
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> X, y = make_waveform(1000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=50, n_unlabeled=100, prior=0.7, random_state=0)
    >>> rows.shape, int((codes > 0).sum()), int((codes < 0).sum())
    ((200, 21), 58, 42)
    """
    labels = np.asarray(y)
    if prior is not None and not np.isin(labels, (-1, 1)).all():
        raise InputError("`y` must hold the classes -1 and +1; for others leave out `prior`.")
    if prior is not None and not 0 < prior < 1:
        raise InputError(f"`prior` must lie strictly between 0 and 1, got {prior!r}.")
    if design not in ("loose", "random", "star"):
        raise InputError(f"`design` must be 'loose', 'random' or 'star', got {design!r}.")
    if not 0 <= error_rate <= 1:
        raise InputError(f"`error_rate` must lie between 0 and 1, got {error_rate!r}.")
    rng = check_random_state(random_state)
    split = (lambda n, share: round(n * share)) if exact else rng.binomial
    ends = _questions(design, n_pairs, n_points, rng)
    n_asked = int(ends.max(initial=-1)) + 1
    if prior is None:
        drawn = _draw(np.zeros(n_asked + n_unlabeled + n_test, dtype=int), np.zeros(len(labels), dtype=int), rng)
    else:
        if design == "loose":
            n_similar = split(n_pairs, similar_share(prior))
            both_positive = _classes(2 * split(n_similar, prior**2 / similar_share(prior)), 2 * n_similar)
            asked = np.concatenate([both_positive, np.tile([1, -1], n_pairs - n_similar)])
            classes = [asked, *(_classes(split(n, prior), n) for n in (n_unlabeled, n_test))]
        else:
            classes = [rng.permutation(_classes(split(n, prior), n)) for n in (n_asked, n_unlabeled, n_test)]
        drawn = _draw(np.concatenate(classes), labels, rng)
    same = np.where(labels[drawn[ends[:, 0]]] == labels[drawn[ends[:, 1]]], 1, -1)
    # Wrong answers, in random places.
    same = same * rng.permutation(_classes(n_pairs - split(n_pairs, error_rate), n_pairs))
    codes = np.zeros(2 * n_pairs + n_unlabeled, dtype=np.int64)
    codes[: 2 * n_pairs] = np.repeat(same * np.arange(1, n_pairs + 1), 2)
    point = np.concatenate([ends.ravel(), np.arange(n_asked, n_asked + n_unlabeled)])
    known = codes if design == "loose" and prior is not None else np.column_stack([codes, point])
    rows = (safe_indexing(X, drawn[point]), known)
    if not n_test:
        return rows
    test = drawn[n_asked + n_unlabeled :]
    return (*rows, safe_indexing(X, test), labels[test].astype(np.int64))


def _questions(design: str, n_pairs: int, n_points: int | None, rng: np.random.RandomState) -> Indices:
    """Return the two points of each pair, numbered from 0."""
    if design == "loose":
        return np.arange(2 * n_pairs, dtype=np.intp).reshape(-1, 2)
    if design == "star":
        return np.column_stack([np.zeros(n_pairs, dtype=np.intp), np.arange(1, n_pairs + 1)])
    n = n_pairs if n_points is None else n_points
    n_questions = n * (n - 1) // 2
    if n_pairs > n_questions:
        raise InputError(f"{n} points have {n_questions} pairs, fewer than `n_pairs={n_pairs}`. Raise `n_points`.")
    chosen = sample_without_replacement(n_questions, n_pairs, random_state=rng)
    # Question q is the pair (a, b) with a < b and q = b (b - 1) / 2 + a.
    b = np.floor((1 + np.sqrt(1 + 8.0 * chosen)) / 2).astype(np.intp)
    b -= b * (b - 1) // 2 > chosen
    return np.column_stack([chosen - b * (b - 1) // 2, b])


def _classes(n_positive: int, n: int) -> Codes:
    return np.repeat([1, -1], [n_positive, n - n_positive])


def _draw(classes: Codes, labels: Codes, rng: np.random.RandomState) -> Indices:
    """Draw a row for each class without replacement; a class 0 matches the label 0."""
    rows = np.empty(len(classes), dtype=np.intp)
    for value, name in ((1, "positive "), (-1, "negative "), (0, "")):
        needed = np.flatnonzero(classes == value)
        available = np.flatnonzero(labels == value)
        if len(needed) > len(available):
            raise InputError(
                f"This draw needs {len(needed)} {name}points, but `y` has {len(available)}. Lower "
                f"`n_pairs`, `n_unlabeled` or `n_test`{', or take another `prior`' if name else ''}."
            )
        rows[needed] = rng.permutation(available)[: len(needed)]
    return rows


def make_waveform(n_samples: int = 5000, *, random_state: RandomState = None) -> tuple[Array, Codes]:
    """Generate noisy mixtures of two of three triangular waves, in 21 features.

    Mixtures of the two outer waves, which have two peaks, are one class; all others are the other.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of rows.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    X : array of shape (n_samples, 21)
        The samples.
    y : array of shape (n_samples,)
        +1 for mixtures of the waves with peaks at t = 7 and t = 15 (about a third of the rows), as
        in the benchmark set; -1 for the others.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone. Classification and Regression Trees.
    Wadsworth 1984, section 2.6.2.

    Examples
    --------
    >>> from sdulearn.datasets import make_waveform
    >>> X, y = make_waveform(1000, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 21), [-1, 1])
    """
    if n_samples < 1:
        raise InputError(f"`n_samples` must be 1 or more, got {n_samples!r}.")
    rng = check_random_state(random_state)
    t = np.arange(1, 22)
    waves = np.maximum(6 - np.abs(t - np.array([[11], [15], [7]])), 0)
    first, second = np.array([[0, 1], [0, 2], [1, 2]]).T
    kind = rng.randint(3, size=n_samples)
    u = rng.uniform(size=(n_samples, 1))
    mixture = u * waves[first[kind]] + (1 - u) * waves[second[kind]]
    X = mixture + rng.normal(size=mixture.shape)
    return X, np.where(kind == 2, 1, -1)


class GaussianPopulation:
    """Two Gaussian classes with identity covariance, as far apart as ``ceiling`` requires."""

    n_rows: int | None = None

    def __init__(self, prior: float, ceiling: float, n_features: int) -> None:
        self.prior = prior
        self.mean = np.full(n_features, _gaussian_distance(prior, ceiling) / 2 / math.sqrt(n_features))
        self.n_features = self.n_axes = n_features

    def draw(self, n_pairs: int, n_unlabeled: int, rng: np.random.Generator) -> Draw:
        """Draw new points for every pair and every unlabeled row."""
        n = 2 * n_pairs + n_unlabeled
        y = np.where(rng.random(n) < self.prior, 1, -1)
        points = y[:, None] * self.mean + rng.normal(size=(n, len(self.mean)))
        pairs = np.arange(2 * n_pairs).reshape(n_pairs, 2)
        same = y[pairs[:, 0]] == y[pairs[:, 1]]
        return points, pairs, same, np.arange(2 * n_pairs, n), self.accuracy

    def accuracy(self, coef: Array, intercept: float) -> float:
        """Return the exact accuracy of ``sign(coef.x + intercept)``."""
        norms = max(float(np.linalg.norm(coef)), 1e-300)
        shift = float(coef @ self.mean)
        positive = norm.cdf((shift + intercept) / norms)
        negative = norm.cdf((shift - intercept) / norms)
        return float(self.prior * positive + (1 - self.prior) * negative)


def _gaussian_distance(prior: float, ceiling: float) -> float:
    """Return the distance between the two means at which Bayes' rule has accuracy ``ceiling``."""
    log_odds = math.log(prior / (1 - prior))

    def gap(distance: float) -> float:
        half = distance / 2
        shift = log_odds / distance
        return float(prior * norm.cdf(half + shift) + (1 - prior) * norm.cdf(half - shift)) - ceiling

    return float(brentq(gap, 0.02, 40))


class FeaturePopulation:
    """The user's rows, with classes from a logistic model as steep as ``ceiling`` requires."""

    def __init__(self, X: MatrixLike, prior: float, ceiling: float) -> None:
        rows = StandardScaler().fit_transform(_some_rows(X))
        self.prior = prior
        self.ceiling = ceiling
        self.n_rows, self.n_features = rows.shape
        if self.n_features > _MOST_AXES:
            # The estimators do not depend on the rotation.
            U, scale, _ = randomized_svd(rows, min(_MOST_AXES, len(rows)), random_state=0)
            rows = U * scale
        self.rows = rows
        self.n_axes = rows.shape[1]

    def draw(self, n_pairs: int, n_unlabeled: int, rng: np.random.Generator) -> Draw:
        """Draw classes along a random direction, and random pairs of rows, which may share rows."""
        n, d = self.rows.shape
        positive = expit(_logistic_scores(self.rows @ rng.normal(size=d), self.prior, self.ceiling))
        y = rng.random(n) < positive
        first = rng.integers(n, size=n_pairs)
        second = (first + rng.integers(1, n, size=n_pairs)) % n
        unlabeled = rng.permutation(n)[:n_unlabeled]

        def accuracy(coef: Array, intercept: float) -> float:
            up = self.rows @ coef + intercept > 0
            return float(np.mean(np.where(up, positive, 1 - positive)))

        return self.rows, np.column_stack([first, second]), y[first] == y[second], unlabeled, accuracy


Population: TypeAlias = GaussianPopulation | FeaturePopulation


def _some_rows(X: MatrixLike) -> Array:
    """Return the user's rows, or a random sample if there are many, as a dense array."""
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=20)
    n, d = rows.shape
    keep = min(n, _MOST_ROWS, max(_FEWEST_ROWS, _MOST_CELLS // d))
    if keep < n:
        rows = rows[np.sort(np.random.default_rng(0).choice(n, keep, replace=False))]
    return np.asarray(rows.toarray() if issparse(rows) else rows)


def _logistic_scores(t: Array, prior: float, ceiling: float) -> Array:
    """Return ``k t + b`` with mean probability ``prior`` and Bayes accuracy ``ceiling``."""
    t = (t - t.mean()) / (t.std() or 1.0)

    def scores(log_k: float) -> Array:
        k = math.exp(log_k)
        reach = k * float(np.abs(t).max()) + 40
        return k * t + brentq(lambda b: float(np.mean(expit(k * t + b))) - prior, -reach, reach)

    def gap(log_k: float) -> float:
        return float(np.mean(expit(np.abs(scores(log_k))))) - ceiling

    bottom, top = np.log([1e-3, 1e3])
    if gap(top) < 0:
        raise InputError(
            f"The rows of `X` take too few different values for `ceiling={ceiling:g}` at this "
            f"prior: {gap(top) + ceiling:.1%} is the most. Give a lower `ceiling`, or features that"
            " vary."
        )
    return scores(bottom if gap(bottom) >= 0 else brentq(gap, bottom, top, xtol=1e-4))
