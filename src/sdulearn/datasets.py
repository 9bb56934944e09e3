"""Data to try things on: Breiman's waveforms, and pairs drawn from labelled points as in the paper."""

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
    """Draw similar and dissimilar pairs, unlabeled rows and test points from labelled data.

    No row of ``X`` is drawn twice: loose pairs have points of their own, and a point that is in
    several answers is one point.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_points, n_features)
        Labelled points.
    y : array-like of shape (n_points,)
        Their classes, -1 and +1; without ``prior`` any integers.
    n_pairs, n_unlabeled : int
        How many pairs and unlabeled rows.
    prior : float or None, default=None
        P(y = +1) of the population to imitate. None draws points as they come, of any number of
        classes.
    n_test : int, default=0
        How many labelled test points to draw besides.
    exact : bool, default=True
        Whether the shares of classes and of similar pairs are exact (to rounding), as in the paper,
        or random; they are random without ``prior``. With ``error_rate`` also whether the number of wrong answers is.
    design : {"loose", "random", "star"}, default="loose"
        Which questions are asked: every point in one, as in the paper; any two of ``n_points`` points,
        no two twice; or one point against every other.
    n_points : int, optional
        With ``design="random"``: number of points that questions are about; by default ``n_pairs``.
    error_rate : float, default=0.0
        Share of answers that are wrong.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    X_rows : array, sparse matrix or frame of shape (2 * n_pairs + n_unlabeled, n_features)
        Rows of ``X``: ends of pairs first, then the unlabeled ones.
    codes : array of shape (2 * n_pairs + n_unlabeled,) or (2 * n_pairs + n_unlabeled, 2)
        Their pair codes: +k similar, -k dissimilar, 0 unlabeled. Where points are shared, the second
        column says which point each row shows.
    X_test : array, sparse matrix or frame of shape (n_test, n_features)
        Test points; only with ``n_test > 0``.
    y_test : array of shape (n_test,)
        Their classes; only with ``n_test > 0``.

    Raises
    ------
    InputError
        If ``y`` has too few points of a class for the draw, or other values than -1 and +1.

    See Also
    --------
    make_waveform : Labelled data to draw from.
    sdulearn.stack_pairs : Rows and codes of pairs that are there.

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
    split = _exactly if exact else rng.binomial
    ends = _questions(design, n_pairs, n_points, rng)
    n_asked = int(ends.max(initial=-1)) + 1
    if prior is None:
        drawn = _draw_any(n_asked + n_unlabeled + n_test, len(labels), rng)
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
    # As many wrong answers as asked for, in random places.
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
    """The two points of each question, numbered from 0."""
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


def _exactly(n: int, share: float) -> int:
    return round(n * share)


def _classes(n_positive: int, n: int) -> Codes:
    return np.repeat([1, -1], [n_positive, n - n_positive])


def _draw_any(n: int, n_rows: int, rng: np.random.RandomState) -> Indices:
    """Random rows without replacement."""
    if n > n_rows:
        raise InputError(
            f"This draw needs {n} points, but `y` has {n_rows}. Lower `n_pairs`, `n_unlabeled` or `n_test`."
        )
    return rng.permutation(n_rows)[:n]


def _draw(classes: Codes, labels: Codes, rng: np.random.RandomState) -> Indices:
    """A random row for each of the classes, without replacement."""
    rows = np.empty(len(classes), dtype=np.intp)
    for value, name in ((1, "positive"), (-1, "negative")):
        needed = np.flatnonzero(classes == value)
        there = np.flatnonzero(labels == value)
        if len(needed) > len(there):
            raise InputError(
                f"This draw needs {len(needed)} {name} points, but `y` has {len(there)}. Lower "
                "`n_pairs`, `n_unlabeled` or `n_test`, or take another `prior`."
            )
        rows[needed] = rng.permutation(there)[: len(needed)]
    return rows


def make_waveform(n_samples: int = 5000, *, random_state: RandomState = None) -> tuple[Array, Codes]:
    """Generate noisy mixtures of two of three triangular waves, in 21 features.

    The classes are the kind with two humps against the other two.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of rows.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    X : array of shape (n_samples, 21)
        The waves, one sample a row.
    y : array of shape (n_samples,)
        +1 for mixtures of the first and the last wave, at t = 7 and t = 15 (about a third of the
        rows), as in the benchmark set; -1 for the others.

    See Also
    --------
    sample_sdu : Draws pairs and unlabeled rows from them.

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
