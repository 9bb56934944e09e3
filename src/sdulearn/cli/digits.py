"""What ``sdulearn ask --demo`` asks about: digits of scikit-learn, as a table and as smooth images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

from sdulearn.cli.options import write_csv
from sdulearn.types import Array

LOG = "digits-answers.jsonl"
TITLE = "Handwritten digits"
BEGINNING = """\
These are 720 handwritten digits, and nobody has said which is which. The page shows one beside others: say which of
them are the same digit. After about 30 answers open Finish: a model learns the digits, and the classes are shown.
After about 60 its accuracy is known, too."""
_DIGITS = load_digits()
# Classes that thirty answers teach.
_SHOWN = np.flatnonzero(_DIGITS.target < 4)
# The 8 x 8 squares of the data are hard to read.
_ENLARGED = 4


def write_table(path: Path) -> Path:
    """Write the digits, one row of pixels each, without their labels."""
    rows = ([name, *map(int, _DIGITS.data[name])] for name in _SHOWN.tolist())
    write_csv(path, [["id", *_DIGITS.feature_names], *rows])
    return path


def labels() -> list[str]:
    """Return the digits that the images show."""
    return [str(label) for label in _DIGITS.target[_SHOWN]]


def images() -> Array:
    """Return grey images from 0 to 1, enlarged and smoothed."""
    enlarged: Array = zoom(_DIGITS.images[_SHOWN] / 16, (1, _ENLARGED, _ENLARGED), order=3, mode="nearest")
    return enlarged.clip(0, 1)
