"""Errors and warnings of sdulearn.

Every error of ours is a :class:`SdulearnError`, and bad input also a ValueError. A message says what is wrong and what
to do. It names parameters in backticks, so that the command line can put its own options in their place.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

# Packages whose frames lie between the user's line and a warning.
_NOT_THE_USER = ("sdulearn", "sklearn", "joblib")

# The most characters that a message shows of a cell, and of another library's message about one.
_SHOWN = 60
_LONGEST = 300


class SdulearnError(Exception):
    """Base of all errors that sdulearn raises on purpose."""


class InputError(SdulearnError, ValueError):
    """Data or parameters that cannot be used as they are."""


class UndeterminedError(InputError):
    """Rows or pairs of some kind are missing: more data may help.

    Parameters
    ----------
    message : str, default=""
        What is missing.
    missing : int, default=0
        Minimum number, if known.
    """

    def __init__(self, message: str = "", missing: int = 0) -> None:
        super().__init__(message)
        self.missing = missing


class NothingToAskError(SdulearnError):
    """No question is left: the class of every point is known, or no pair is free."""


class SpentRowError(InputError):
    """A private answer about a row that already has one."""


class ModelFileError(InputError):
    """The file is not a readable sdulearn model."""


class FileError(SdulearnError, OSError):
    """A file that cannot be opened, read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """The file does not exist."""


class MissingExtraError(SdulearnError, ImportError):
    """An optional package is not installed; the message names the pip extra."""


class SdulearnWarning(UserWarning):
    """Base of all warnings of sdulearn."""


class OrientationWarning(SdulearnWarning):
    """Which of the two classes is called +1 is uncertain."""


class ScalingWarning(SdulearnWarning):
    """Columns have such different units that some have no influence on the model."""


class OneKindWarning(SdulearnWarning):
    """All answers are similar, or all dissimilar, which leaves the classes partly undetermined."""


class ClassNumberWarning(SdulearnWarning):
    """The answers do not support the number of classes, or some classes have no rows."""


class TrainingAnswersWarning(SdulearnWarning):
    """A score from training answers, which says little about new answers."""


class ChosenPairsWarning(SdulearnWarning):
    """Pairs were chosen by their features, so that their answers do not show the accuracy on new rows."""


class UselessModelWarning(SdulearnWarning):
    """The model does not predict held-out answers better than the class shares alone."""


class UnseenCategoryWarning(SdulearnWarning):
    """A table contains texts, or missing values, that did not occur in training."""


class SignlessWarning(SdulearnWarning):
    """Decision values that look like probabilities or numbers of classes: none is negative."""


class CutComponentWarning(SdulearnWarning):
    """Answers that share points do not fit into one batch."""


class _Heard(threading.local):
    """What a thread does with the warnings of the library: the filters of Python belong to all threads."""

    ignored: tuple[type[Warning], ...] = ()
    caught: list[tuple[str, type[Warning]]] | None = None


_heard = _Heard()


@contextmanager
def ignored_warnings(*categories: type[Warning]) -> Iterator[None]:
    """Ignore warnings of the library in this thread."""
    before = _heard.ignored
    _heard.ignored = (*before, *categories)
    try:
        yield
    finally:
        _heard.ignored = before


@contextmanager
def caught_warnings() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Yield the list to which warnings of the library in this thread are added, and in the end those of others."""
    before = _heard.caught
    caught: list[tuple[str, type[Warning]]] = []
    _heard.caught = caught
    try:
        with warnings.catch_warnings(record=True) as others:
            warnings.simplefilter("always")
            yield caught
    finally:
        _heard.caught = before
    caught += [(str(other.message), other.category) for other in others]


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line that led here."""
    if issubclass(category, _heard.ignored):
        return
    if _heard.caught is not None:
        _heard.caught.append((message, category))
        return
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _NOT_THE_USER:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def shortened(text: str, most: int = _SHOWN) -> str:
    """Return a text of a file as messages show it: cut where it is long."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def quoted(cell: object) -> str:
    """Return a cell of a file as messages quote it: texts in quotes, cut where they are long."""
    return shortened(repr(cell))


def reason(error: Exception) -> str:
    """Return another library's message about a file, cut where it quotes a long cell."""
    return shortened(str(error), _LONGEST)


def listed(texts: Iterable[str], most: int = 20) -> str:
    """Join the first of many texts, such as names of columns."""
    names = list(texts)
    joined = ", ".join(names[:most])
    return joined if len(names) <= most else f"{joined}, ... ({len(names):,} in all)"


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        package = module.split(".")[0]
        raise MissingExtraError(f"This needs {package}. Install it with: pip install 'sdulearn[{extra}]'") from None


def is_installed(module: str) -> bool:
    """Return whether an optional module is installed, without the time to import it."""
    return importlib.util.find_spec(module) is not None


class OptionalModule:
    """An optional module that is imported with its first attribute; see :func:`require`."""

    def __init__(self, module: str, extra: str) -> None:
        self._names = module, extra

    def __getattr__(self, name: str) -> Any:
        return getattr(require(*self._names), name)


def is_there(module: str) -> bool:
    """Return whether an optional module can be imported."""
    try:
        return bool(importlib.import_module(module))
    except (ImportError, OSError):
        return False


# Most functions for files and frames need pyarrow.
pa = OptionalModule("pyarrow", "files")
pc = OptionalModule("pyarrow.compute", "files")
