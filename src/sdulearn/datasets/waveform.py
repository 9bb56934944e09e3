"""Breiman's waveforms (CART, 1984, section 2.6.2), generated exactly."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from sdulearn.errors import InputError
from sdulearn.types import Array, Codes, RandomState


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
