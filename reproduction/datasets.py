"""Benchmark sets: the paper's ten, from files or downloaded once from OpenML, and nine with more classes."""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import fetch_openml, get_data_home, load_digits, load_iris, load_svmlight_file, load_wine
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import Bunch

from sdulearn.datasets import make_waveform
from sdulearn.errors import FileError, InputError
from sdulearn.types import Array, Codes, MatrixLike

Data = tuple[Array, Codes]

CHECKSUMS = "SHA256SUMS"


@dataclass(frozen=True)
class _OpenML:
    """Where a set is on OpenML, and what tells it from any other.

    ``positive`` says which class is +1. OpenML joins LIBSVM's training and test files, so adult,
    codrna, ijcnn1 and w8a have more rows there than in the files the paper used.
    """

    data_id: int
    name: str
    n_features: int
    positive: str = "minority"
    one_hot: bool = False


_OPENML = {
    "adult": _OpenML(1430, "a9a", 123),
    "banana": _OpenML(1460, "banana", 2),
    "codrna": _OpenML(351, "codrna", 8, positive="majority"),
    "ijcnn1": _OpenML(1575, "ijcnn", 22),
    "magic": _OpenML(1120, "MagicTelescope", 10),
    "phishing": _OpenML(4534, "PhishingWebsites", 68, one_hot=True),
    "phoneme": _OpenML(1489, "phoneme", 5, positive="majority"),
    "spambase": _OpenML(44, "spambase", 57),
    "w8a": _OpenML(1588, "w8a", 300),
}

BENCHMARKS = (*_OPENML, "waveform")

_OWN = {"digits": load_digits, "iris": load_iris, "wine": load_wine}
MULTICLASS = (*_OWN, "penbased", "satimage", "segment", "texture", "vehicle", "vowel")


def load_benchmark(name: str, *, folder: str | None = None) -> Data:
    """One of ``BENCHMARKS``, dense, as stored, with classes -1 and +1.

    From files NAME.svm.bz2 in ``folder`` or in the folder that SDULEARN_DATA names, checked against a file SHA256SUMS
    where there is one; without a folder from OpenML, into scikit-learn's data folder. "waveform" is then generated.
    """
    if name not in BENCHMARKS:
        raise InputError(f"Unknown benchmark `name={name!r}`; choose one of {list(BENCHMARKS)}.")
    place = folder or os.environ.get("SDULEARN_DATA")
    if place:
        return _from_folder(name, Path(place))
    return make_waveform(random_state=0) if name == "waveform" else _from_openml(name)


def load_multiclass(name: str, *, folder: str | None = None) -> Data:
    """One of ``MULTICLASS``, dense, as stored, with classes 1 to K; of scikit-learn, or a file multi/NAME.svm.bz2."""
    if name not in MULTICLASS:
        raise InputError(f"Unknown set `name={name!r}`; choose one of {list(MULTICLASS)}.")
    if name in _OWN:
        X, y = _OWN[name](return_X_y=True)
    else:
        X, y = _read_multiclass(name, folder or os.environ.get("SDULEARN_DATA"))
    return _dense(X), np.unique(y, return_inverse=True)[1].astype(np.int64) + 1


def _read_multiclass(name: str, folder: str | None) -> tuple[MatrixLike, Array]:
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
    return load_svmlight_file(str(path))


def _from_folder(name: str, folder: Path) -> Data:
    path = folder / f"{name}.svm.bz2"
    if not path.is_file():
        if name == "waveform":
            return make_waveform(random_state=0)
        raise FileError(
            f"{path} does not exist; `folder` or the environment variable SDULEARN_DATA must name a "
            "folder of NAME.svm.bz2 files. Unset it to download the set from OpenML."
        )
    _check_sum(path)
    X, y = load_svmlight_file(str(path))
    return _dense(X), np.where(y > 0, 1, -1)


def _check_sum(path: Path) -> None:
    """Compare a file with its line in SHA256SUMS, where the folder has such a file."""
    sums = path.parent / CHECKSUMS
    if not sums.is_file():
        return
    lines = (line.split() for line in sums.read_text(encoding="utf-8").splitlines())
    expected = {parts[1].lstrip("*"): parts[0] for parts in lines if len(parts) == 2}.get(path.name)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if expected not in (None, found):
        raise InputError(
            f"{path} is damaged or another version: its SHA-256 is {found}, but {CHECKSUMS} says "
            f"{expected}. Copy the file again, or correct {CHECKSUMS}."
        )


def _from_openml(name: str) -> Data:
    expected = _OPENML[name]
    bunch = _fetch(name, expected.data_id)
    found = bunch.details["name"]
    if found.lower() != expected.name.lower():
        raise InputError(
            f"OpenML's data set {expected.data_id} should be {expected.name!r}, but is {found!r}. " + _own_file(name)
        )
    X = _dense(OneHotEncoder().fit_transform(bunch.data) if expected.one_hot else bunch.data)
    y = _two_classes(name, bunch.target, expected.positive)
    if X.shape[1] != expected.n_features:
        raise InputError(
            f"OpenML's {expected.name!r} should have {expected.n_features} features, but has "
            f"{X.shape[1]}. " + _own_file(name)
        )
    return X, y


def _fetch(name: str, data_id: int) -> Bunch:
    """Download (once) and check against the MD5 sum that OpenML gives with the set."""
    try:
        with warnings.catch_warnings():
            # The error below says more.
            warnings.filterwarnings("ignore", message="A network error occurred")
            return fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff")
    except ValueError as error:
        raise InputError(
            f"The download of {name} is damaged or not what OpenML says of it: {error} Delete the "
            f"folder {get_data_home()}/openml and try again. " + _own_file(name)
        ) from error
    except OSError as error:
        raise FileError(
            f"Where is {name}? OpenML (data set {data_id}) cannot be reached: {error}. " + _own_file(name)
        ) from error


def _own_file(name: str) -> str:
    return (
        f"Put {name}.svm.bz2 (svmlight form, classes -1 and +1) into a folder and set the "
        "environment variable SDULEARN_DATA to it."
    )


def _two_classes(name: str, target: NDArray[np.object_], positive: str) -> Codes:
    values, counts = np.unique(target, return_counts=True)
    if len(values) != 2:
        raise InputError(f"OpenML's {name} has {len(values)} classes instead of two. " + _own_file(name))
    chosen = values[np.argmax(counts) if positive == "majority" else np.argmin(counts)]
    return np.where(target == chosen, 1, -1)


def _dense(X: MatrixLike) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
