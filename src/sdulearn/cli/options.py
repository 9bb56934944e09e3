"""Options that several commands take, and what parameters of the library are called among them."""

from __future__ import annotations

import argparse
import ast
import re

_ROLES = ("id_a", "id_b", "label", "weight", "annotator")

# Parameters that errors name, by the options that stand for them.
OPTIONS = {
    "answers": "--pairs",
    "categories": "--categories",
    "check_answers": "sdulearn check",
    "classes": "--classes",
    "codes": "--codes",
    "columns": "--pair-columns",
    "drop": "--drop",
    "engine": "--engine",
    "id_column": "--id",
    "labels": "--labels",
    "loss": "--loss",
    "max_categories": "--max-categories",
    "max_unlabeled": "--unlabeled",
    "method": "--method",
    "missing": "--missing",
    "model": "--model",
    "points": "--points",
    "error_rate": "--error-rate",
    "prior": "--prior",
    "scheduler": "--scheduler",
    "skip_bad": "--skip-bad",
    "table": "--features",
    "words": "--answers",
    # of ask
    "design": "--design",
    "n_classes": "--classes",
    "port": "--port",
    "private": "--private",
    # of plan and prior
    "X": "--features",
    "ceiling": "--ceiling",
    "confidence": "--confidence",
    "direction": "--direction",
    "majority": "--majority",
    "methods": "--method",
    "n_features": "--n-features",
    "n_repeats": "--repeats",
    "n_unlabeled": "--n-unlabeled",
    "random_state": "--seed",
    "sizes": "--sizes",
    "target_accuracy": "--target",
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


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def error_rate(text: str) -> float | str:
    """ "auto", or a number from 0 to 1/2."""
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 0.5:
        raise argparse.ArgumentTypeError(f"{text!r} is neither 'auto' nor a rate from 0 to 0.5")
    return value


def number_of_classes(text: str) -> int | str:
    """ "auto", or a whole number from 2 on."""
    if text == "auto":
        return text
    if not (text.isascii() and text.isdigit()) or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is neither 'auto' nor a whole number of 2 or more")
    return int(text)


def share(text: str) -> float:
    """A number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share between 0 and 1")
    return value


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
