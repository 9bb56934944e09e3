"""The paper's way of turning labelled data into pairs and unlabeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sdulearn.errors import InputError
from sdulearn.prior import similar_share
from sdulearn.sklearn_private import safe_indexing


def sample_sdu(
    X: Any,
    y: ArrayLike,
    *,
    n_pairs: int,
    n_unlabeled: int,
    prior: float,
    n_test: int = 0,
    exact: bool = True,
    random_state: Any = None,
) -> tuple[Any, ...]:
    """Draw similar and dissimilar pairs, unlabeled rows and test points from labelled data.

    No row of ``X`` is drawn twice.

    Parameters
    ----------
    X : array, sparse matrix or frame
        Labelled points.
    y : array-like
        Their classes, -1 and +1.
    n_pairs, n_unlabeled : int
        How many pairs and unlabeled rows.
    prior : float
        P(y = +1) of the population to imitate.
    n_test : int, default=0
        How many labelled test points to draw besides.
    exact : bool, default=True
        Whether the shares of classes and of similar pairs are exact (to rounding), as in the paper,
        or random.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X_rows, codes : rows and pair codes
        Ends of pairs first, then the unlabeled rows.
    X_test, y_test : only with ``n_test > 0``
        Test points and their classes.
    """
    labels = np.asarray(y)
    if not np.isin(labels, (-1, 1)).all():
        raise InputError("y must hold the classes -1 and +1.")
    if not 0 < prior < 1:
        raise InputError(f"prior must lie strictly between 0 and 1, got {prior!r}.")
    rng = check_random_state(random_state)
    split = _exactly if exact else rng.binomial
    n_similar = split(n_pairs, similar_share(prior))
    both_positive = split(n_similar, prior**2 / similar_share(prior))
    n_dissimilar = n_pairs - n_similar
    classes = np.concatenate(
        [
            np.repeat([1, -1], [2 * both_positive, 2 * (n_similar - both_positive)]),
            np.tile([1, -1], n_dissimilar),
            _classes(split(n_unlabeled, prior), n_unlabeled),
            _classes(split(n_test, prior), n_test),
        ]
    )
    rows = _draw(classes, labels, rng)
    pairs = np.repeat(np.r_[1 : n_similar + 1, -n_similar - 1 : -n_pairs - 1 : -1], 2)
    codes = np.concatenate([pairs, np.zeros(n_unlabeled, dtype=np.int64)])
    train, test = rows[: len(codes)], rows[len(codes) :]
    drawn = safe_indexing(X, train), codes
    return (*drawn, safe_indexing(X, test), labels[test].astype(np.int64)) if n_test else drawn


def _exactly(n: int, share: float) -> int:
    return round(n * share)


def _classes(n_positive: int, n: int) -> NDArray[np.int64]:
    return np.repeat([1, -1], [n_positive, n - n_positive])


def _draw(classes: NDArray[np.int64], labels: NDArray[Any], rng: np.random.RandomState) -> NDArray[np.intp]:
    """A random row of each wanted class, without replacement."""
    rows = np.empty(len(classes), dtype=np.intp)
    for value, name in ((1, "positive"), (-1, "negative")):
        wanted, there = np.flatnonzero(classes == value), np.flatnonzero(labels == value)
        if len(wanted) > len(there):
            raise InputError(
                f"This draw needs {len(wanted)} {name} points, but y has {len(there)}. Ask for fewer pairs, "
                "unlabeled rows or test points, or another prior."
            )
        rows[wanted] = rng.permutation(there)[: len(wanted)]
    return rows
