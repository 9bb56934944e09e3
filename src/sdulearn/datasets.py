"""Example data: waveforms, and pairs drawn from labelled points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from sdulearn.errors import InputError
from sdulearn.risks import similar_share
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Indices, MatrixLike, RandomState

__all__ = ["make_waveform", "sample_sdu"]


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
    """Draw similar and dissimilar pairs, unlabeled rows and test points from labelled data, without replacement.

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
        Whether the shares of classes (with ``prior``), similar pairs and wrong answers are exact rather than random.
    design : {"loose", "random", "star"}, default="loose"
        "loose": every point is in one pair, as in the paper; "random": different pairs of ``n_points`` points; "star":
        one point is paired with every other.
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
        Pair codes: +k similar, -k dissimilar, 0 unlabeled; and, unless every point is in one pair and ``prior`` is
        given, the number of the point in each row.
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
        raise InputError("`y` must contain the classes -1 and +1; for others leave out `prior`.")
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
    codes = np.append(np.repeat(same * np.arange(1, n_pairs + 1), 2), np.zeros(n_unlabeled, dtype=np.int64))
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
            count = f"This draw needs {len(needed)} {name}points, but `y` has {len(available)}"
            raise InputError(f"{count}. Lower `n_pairs`, `n_unlabeled` or `n_test`, or change `prior`.")
        rows[needed] = rng.permutation(available)[: len(needed)]
    return rows


def make_waveform(n_samples: int = 5000, *, random_state: RandomState = None) -> tuple[Array, Codes]:
    """Generate noisy mixtures of two of three triangular waves, in 21 features.

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
        +1 for mixtures of the waves with peaks at t = 7 and t = 15 (about a third of the rows), as in the benchmark
        set; -1 for the others.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone. Classification and Regression Trees. 1984, section 2.6.2.

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
