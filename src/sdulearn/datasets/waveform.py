"""Breiman's waveforms (CART, 1984, section 2.6.2), generated exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sdulearn.errors import InputError


def make_waveform(n_samples: int = 5000, *, random_state: Any = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Noisy mixtures of two of three triangular waves, 21 features; the kind with two humps against the other two.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of rows.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, 21)
        The waves, one sample a row.
    y : array of shape (n_samples,)
        +1 for mixtures of the first and the last wave, at t = 7 and t = 15 (about a third of the
        rows), as in the benchmark set; -1 for the others.
    """
    if n_samples < 1:
        raise InputError(f"n_samples must be 1 or more, got {n_samples!r}.")
    rng = check_random_state(random_state)
    t = np.arange(1, 22)
    waves = np.maximum(6 - np.abs(t - np.array([[11], [15], [7]])), 0)
    first, second = np.array([[0, 1], [0, 2], [1, 2]]).T
    kind = rng.randint(3, size=n_samples)
    u = rng.uniform(size=(n_samples, 1))
    X = u * waves[first[kind]] + (1 - u) * waves[second[kind]] + rng.normal(size=(n_samples, 21))
    return X, np.where(kind == 2, 1, -1)
