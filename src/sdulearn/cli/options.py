"""Options that several commands take, and what parameters of the library are called among them."""

from __future__ import annotations

import argparse
import ast
import math
import re
from collections.abc import Callable
from typing import Any

_ROLES = ("id_a", "id_b", "label", "weight", "annotator")

# Parameters that messages name, by the options that stand for them: those called alike, and the others.
_ALIKE = (
    "categories", "ceiling", "classes", "codes", "confidence", "design", "direction", "drop", "engine", "error_rate",
    "labels", "loss", "majority", "max_categories", "method", "missing", "model", "n_features", "n_unlabeled", "points",
    "port", "prior", "private", "scheduler", "sizes", "skip_bad",
)  # fmt: skip
OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in _ALIKE},
    "X": "--features",
    "answers": "--pairs",
    "check_answers": "sdulearn check",
    "columns": "--pair-columns",
    "id_column": "--id",
    "max_unlabeled": "--unlabeled",
    "methods": "--method",
    "n_classes": "--classes",
    "n_repeats": "--repeats",
    "random_state": "--seed",
    "table": "--features",
    "target_accuracy": "--target",
    "words": "--answers",
}
_PARAMETER = re.compile(r"`(\w+)(?:=([^`]*))?`")


def in_options(message: str) -> str:
    """A message of the library with options in the place of parameters, which stand in backticks."""
    return _PARAMETER.sub(_option, message)


def _option(found: re.Match[str]) -> str:
    name, value = found.groups()
    if name not in OPTIONS:
        return found[0].strip("`")
    if value is None:
        return OPTIONS[name]
    return f"{OPTIONS[name]} {_as_typed(value)}".strip()


def _as_typed(literal: str) -> str:
    """A Python literal as one would type it on the command line."""
    try:
        value = ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return literal
    if value is True:
        return ""
    if isinstance(value, dict):
        return ",".join(f"{key}={meaning}" for key, meaning in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value) or "''"


def number(kind: Callable[[str], float], fits: Callable[[float], bool], what: str) -> Callable[[str], Any]:
    """A function that reads numbers of a kind, and "auto" where ``what`` names it."""

    def read(text: str) -> float | str:
        if text == "auto" and "auto" in what:
            return text
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not fits(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return read


def _whole(text: str) -> int:
    """Digits alone, where ``int`` takes signs, blanks and underscores too."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


positive = number(_whole, lambda n: n >= 1, "a whole number of 1 or more")
number_of_classes = number(_whole, lambda n: n >= 2, "'auto' or a whole number of 2 or more")
share = number(float, lambda x: 0 < x < 1, "a share between 0 and 1")
error_rate = number(float, lambda x: 0 <= x <= 0.5, "'auto' or a rate from 0 to 0.5")


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def add_answer_options(parser: argparse._ActionsContainer) -> None:
    """``--pair-columns`` and ``--answers``, by which every command reads a file of answers."""
    parser.add_argument(
        "--pair-columns",
        type=_columns,
        metavar="A,B,LABEL[,WEIGHT[,ANNOTATOR]]",
        help="columns of the file of answers, where their names are unusual",
    )
    parser.add_argument(
        "--answers",
        type=_words,
        metavar="WORD=MEANING,...",
        help="what unusual words mean, for example yes=similar,no=dissimilar,maybe=unsure",
    )


def _columns(text: str) -> dict[str, str]:
    columns = [name.strip() for name in text.split(",")]
    if not 3 <= len(columns) <= len(_ROLES) or not all(columns):
        raise argparse.ArgumentTypeError(f"{text!r} does not name three to five columns, with commas between them")
    return dict(zip(_ROLES, columns, strict=False))


def _words(text: str) -> dict[str, str]:
    parts = [part.partition("=") for part in text.split(",")]
    if not all(word and mark and meaning for word, mark, meaning in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form yes=similar,no=dissimilar")
    return {word.strip(): meaning.strip() for word, _, meaning in parts}
