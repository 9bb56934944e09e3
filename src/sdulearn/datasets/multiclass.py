"""Benchmark sets with more than two classes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_svmlight_file, load_wine

from sdulearn.errors import FileError, InputError
from sdulearn.types import Array, Codes

_OWN = {"digits": load_digits, "iris": load_iris, "wine": load_wine}
_FILES = ("penbased", "satimage", "segment", "texture", "vehicle", "vowel")

MULTICLASS = (*_OWN, *_FILES)
"""Names of the sets with more than two classes, for :func:`load_multiclass`."""


def load_multiclass(name: str, *, folder: str | None = None) -> tuple[Array, Codes]:
    """Load a set with more than two classes, dense, with classes 1 to K.

    Parameters
    ----------
    name : str
        One of ``sdulearn.datasets.MULTICLASS``. "digits", "iris" and "wine" are scikit-learn's own; the
        others are files.
    folder : str, optional
        Folder with files ``multi/NAME.svm.bz2`` in svmlight form; default: the environment variable
        ``SDULEARN_DATA``.

    Returns
    -------
    X : array of shape (n_points, n_features)
        Features as stored: standardise them before use.
    y : array of shape (n_points,)
        Classes, 1 to K.

    Raises
    ------
    FileError
        If there is no such file.
    InputError
        If the name is unknown.

    See Also
    --------
    load_benchmark : The ten sets with two classes.
    sample_sdu : Draws pairs and unlabeled rows from a set.

    Examples
    --------
    >>> from sdulearn.datasets import load_multiclass
    >>> X, y = load_multiclass("wine")
    >>> X.shape, sorted(set(y.tolist()))
    ((178, 13), [1, 2, 3])
    """
    if name not in MULTICLASS:
        raise InputError(f"Unknown set `name={name!r}`; choose one of {list(MULTICLASS)}.")
    if name in _OWN:
        X, y = _OWN[name](return_X_y=True)
    else:
        X, y = _from_folder(name, folder or os.environ.get("SDULEARN_DATA"))
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1].astype(np.int64) + 1


def _from_folder(name: str, folder: str | None) -> tuple[Array, Array]:
    if not folder:
        raise FileError(
            f"Where is {name}? Set the environment variable SDULEARN_DATA, or `folder`, to a folder "
            f"with the file multi/{name}.svm.bz2."
        )
    path = Path(folder) / "multi" / f"{name}.svm.bz2"
    if not path.is_file():
        raise FileError(
            f"{path} does not exist; `folder` or the environment variable SDULEARN_DATA must name a "
            "folder of multi/NAME.svm.bz2 files."
        )
    X, y = load_svmlight_file(str(path))
    return X.toarray(), y
