"""What sdulearn raises and warns of.

Every error of ours is a :class:`SdulearnError`, and bad input also a ValueError. A message says
what is wrong and what to do. It names parameters in backticks, with or without a value, so that
the command line can put its own options in their place.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterable
from types import FrameType, ModuleType
from typing import Any

# Frames that lie between a user's line and a warning of ours.
_NOT_THE_USER = ("sdulearn", "sklearn", "joblib")

# Characters of a cell, and of another library's message about one, that a message shows.
_SHOWN = 60
_LONGEST = 300


class SdulearnError(Exception):
    """Base of all errors that sdulearn raises on purpose."""


class InputError(SdulearnError, ValueError):
    """Data or parameters that cannot be used as they are."""


class UndeterminedError(InputError):
    """Rows or pairs of some kind are missing: with more data there may be an answer.

    Parameters
    ----------
    message : str, default=""
        What is missing.
    missing : int, default=0
        How many at least, where that is known.
    """

    def __init__(self, message: str = "", missing: int = 0) -> None:
        super().__init__(message)
        self.missing = missing


class NothingToAskError(SdulearnError):
    """No question is left: the class of every point is known, or no pair is free."""


class SpentRowError(InputError):
    """A private answer about a row that another one is about already."""


class ModelFileError(InputError):
    """The file is not a readable sdulearn model."""


class FileError(SdulearnError, OSError):
    """A file that cannot be opened, read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that is not there."""


class MissingExtraError(SdulearnError, ImportError):
    """An optional package is not installed; the message names the pip extra."""


class SdulearnWarning(UserWarning):
    """Base of all warnings of ours."""


class OrientationWarning(SdulearnWarning):
    """Which of the two classes is called +1 is uncertain."""


class ScalingWarning(SdulearnWarning):
    """Columns in so different units that some of them have no say in the model."""


class OneKindWarning(SdulearnWarning):
    """Similar answers alone, or dissimilar ones alone: something about the classes stays open."""


class ClassNumberWarning(SdulearnWarning):
    """The answers do not support the number of classes, or some classes have no rows."""


class TrainingAnswersWarning(SdulearnWarning):
    """A score by the answers that a model was fitted to, which it may know by heart."""


class UnseenCategoryWarning(SdulearnWarning):
    """A table holds texts, or gaps, that did not occur in training."""


class CutComponentWarning(SdulearnWarning):
    """Answers that share points do not fit into one batch."""


class ClusterWarning(SdulearnWarning):
    """A cluster does not do the work that waits for it."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's that led here."""
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _NOT_THE_USER:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def shortened(text: str, most: int = _SHOWN) -> str:
    """A text from a file as messages show it: cut where it is long."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def quoted(cell: object) -> str:
    """A cell of a file as messages quote it: texts in quotes, and cut where they are long."""
    return shortened(repr(cell))


def reason(error: Exception) -> str:
    """What another library says of a file, which may quote a cell."""
    return shortened(str(error), _LONGEST)


def listed(texts: Iterable[str], most: int = 20) -> str:
    """The first of texts of which there may be many, such as names of columns."""
    found = list(texts)
    joined = ", ".join(found[:most])
    return joined if len(found) <= most else f"{joined}, ... ({len(found):,} in all)"


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        package = module.split(".")[0]
        raise MissingExtraError(f"This needs {package}. Install it with: pip install 'sdulearn[{extra}]'") from None


class OptionalModule:
    """An optional module, imported when an attribute is asked for; see :func:`require`."""

    def __init__(self, module: str, extra: str) -> None:
        self._names = module, extra

    def __getattr__(self, name: str) -> Any:
        return getattr(require(*self._names), name)


def is_there(module: str) -> bool:
    """Whether an optional module can be imported."""
    try:
        importlib.import_module(module)
    except (ImportError, OSError):
        return False
    return True


# pyarrow, of which most functions for files and frames need something.
pa = OptionalModule("pyarrow", "files")
pc = OptionalModule("pyarrow.compute", "files")
