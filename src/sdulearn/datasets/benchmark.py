"""The ten benchmark sets of the paper."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file

BENCHMARKS = (
    "adult", "banana", "codrna", "ijcnn1", "magic", "phishing", "phoneme", "spambase", "w8a", "waveform",
)  # fmt: skip


def load_benchmark(name: str, *, folder: str | None = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """One of the ten benchmark sets, dense, with classes -1 and +1.

    Parameters
    ----------
    name : str
        One of ``BENCHMARKS``.
    folder : str, optional
        Folder with files ``NAME.svm.bz2`` in svmlight form; default: the environment variable ``SDULEARN_DATA``.

    Returns
    -------
    X : array of shape (n_points, n_features)
        Features as stored: standardise them before use.
    y : array of shape (n_points,)
        Classes, -1 and +1.
    """
    if name not in BENCHMARKS:
        raise ValueError(f"Unknown benchmark {name!r}; choose one of {list(BENCHMARKS)}.")
    place = folder or os.environ.get("SDULEARN_DATA")
    if not place:
        raise FileNotFoundError(
            f"Where is {name}.svm.bz2? Set the environment variable SDULEARN_DATA to the folder that holds it."
        )
    path = Path(place) / f"{name}.svm.bz2"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; SDULEARN_DATA must name a folder of NAME.svm.bz2 files.")
    X, y = load_svmlight_file(str(path))
    return (X.toarray() if sparse.issparse(X) else X), np.where(y > 0, 1, -1)
