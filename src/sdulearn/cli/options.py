"""What several commands share: options, their names in messages, output as text and JSON.

Imports nothing that takes time.
"""

from __future__ import annotations

import argparse
import ast
import csv
import inspect
import json
import math
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdulearn.errors import InputError
from sdulearn.progress import PATIENCE

if TYPE_CHECKING:
    from sdulearn.answer_files.columns import FindIds
    from sdulearn.answers.records import Answers

TABLE_OPTIONS = ("drop", "categories", "missing", "max_categories", "sheet", "skip_rows")
_ROLES = ("id_a", "id_b", "label", "weight", "annotator")
_NAMED_ROLES = (*_ROLES, "items", "groups", "x", "first", "second", "chosen", "confidence", "seconds", "time", "sheet")

# Options for the parameters that messages name: those of the same name, and the others.
_ALIKE = (
    "categories", "classes", "design", "drop", "error_rate",
    "exclude_annotators", "labels", "loss", "max_categories", "method", "missing", "model",
    "port", "prior", "private", "skip_bad", "answered", "text",
    "image_root", "embedding", "sheet", "skip_rows",
)  # fmt: skip
OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in _ALIKE},
    "X": "--features",
    "answers": "--pairs",
    "check_answers": "sdulearn check",
    "columns": "--columns",
    "id_column": "--id",
    "images": "--image",
    "max_unlabeled": "--unlabeled",
    "n_classes": "--classes",
    "predict": "sdulearn predict",
    "random_state": "--seed",
    "table": "--features",
    "words": "--answers",
}
_PARAMETER = re.compile(r"`(\w+)(?:=([^`]*))?`")


def in_options(message: str) -> str:
    """Replace parameters in backticks by options in a message of the library."""
    return _PARAMETER.sub(_option, message)


def _option(found: re.Match[str]) -> str:
    name, value = found.groups()
    if name not in OPTIONS:
        return found[0].strip("`")
    return OPTIONS[name] if value is None else f"{OPTIONS[name]} {_as_typed(value)}".strip()


def _as_typed(literal: str) -> str:
    """Return a Python literal as it is typed on the command line."""
    try:
        value = ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return literal
    if value is True:
        return ""
    if isinstance(value, dict):
        value = [f"{key}={meaning}" for key, meaning in value.items()]
    return shlex.quote(",".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def number(kind: Callable[[str], float], fits: Callable[[float], bool], what: str) -> Callable[[str], Any]:
    """Return a function that reads numbers of a kind, and "auto" if ``what`` names it."""

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
    """Read digits only; ``int`` takes signs, blanks and underscores, too."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


not_negative = number(_whole, lambda n: n >= 0, "a whole number")
positive = number(_whole, lambda n: n >= 1, "a whole number of 1 or more")
number_of_classes = number(_whole, lambda n: n >= 2, "'auto' or a whole number of 2 or more")
share = number(float, lambda x: 0 < x < 1, "a share between 0 and 1")
error_rate = number(float, lambda x: 0 <= x <= 0.5, "'auto' or a rate from 0 to 0.5")


def parameters_of(function: Callable[..., object], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that have the names of parameters of a function."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in vars(arguments).items() if name in known}


def names(text: str) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def add_answer_options(parser: argparse._ActionsContainer) -> None:
    """Add ``--columns`` and ``--answers``, which say how to read a file of answers."""
    add = parser.add_argument
    text = "columns of the file of answers, where their names are unusual, or label=NAME,sheet=NAME and the like"
    roles = "A,B,LABEL[,WEIGHT[,ANNOTATOR]]"
    add("--columns", dest="answer_columns", type=_columns, metavar=roles, help=text)
    text = "what unusual words mean: yes=similar,no=dissimilar,maybe=unsure, or '>=4=similar,3=unsure,<=2=dissimilar'"
    text += ", or '0=unsure,1-4=per person': a threshold for each person"
    add("--answers", dest="answer_words", type=_words, metavar="WORD=MEANING,...", help=text)


def answers_of(arguments: argparse.Namespace, path: Path | str, table_ids: FindIds | None = None) -> Answers:
    """Read a file of answers by these options."""
    from sdulearn.answer_files.read import read_answers

    return read_answers(path, columns=arguments.answer_columns, words=arguments.answer_words, table_ids=table_ids)


def add_files_options(things: argparse._ActionsContainer) -> None:
    """Add options of files that belong to a table."""
    add = things.add_argument
    add("--image-root", type=Path, metavar="FOLDER", help="folder of pictures and sounds (the table's folder)")
    text = "vectors as features, a row for each row of the table: .npy, or .parquet, also by a column of ids"
    add("--embedding", type=Path, metavar="FILE", help=text)


def add_sheet_options(table: argparse._ActionsContainer) -> None:
    """Add options of the place of a table in its file."""
    add = table.add_argument
    add("--sheet", metavar="NAME", help="sheet of a workbook, by name or number (default: the first)")
    add("--skip-rows", type=not_negative, metavar="N", help="lines above the header (default: titles are recognised)")


def add_table_options(table: argparse._ArgumentGroup) -> None:
    """Add options of reading a table."""
    add_sheet_options(table)
    add = table.add_argument
    add("--id", help="id column, or '' for row numbers from 0 (default: the column that holds the ids of the answers)")
    columns: dict[str, Any] = {"type": names, "default": (), "metavar": "COLUMN,..."}
    add("--drop", **columns, help="columns to leave out")
    add("--categories", **columns, help="columns that are categories though they look like numbers with mistakes")
    text = "missing values: trees take them, linear models take the mean and mark it (auto); refuse them; take the mean"
    add("--missing", choices=("auto", "error", "mean"), default="auto", help=text)
    add("--max-categories", type=positive, default=50, help="most texts a column may have (%(default)s)")


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what is being done if it takes long and has no steps to count."""
    timer = threading.Timer(PATIENCE, say, (f"{what} ...",), {"error": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _columns(text: str) -> dict[str, str]:
    columns = [name.strip() for name in text.split(",")]
    if all(name.partition("=")[0] in _NAMED_ROLES for name in columns):
        return dict(name.split("=", 1) for name in columns if "=" in name)
    if not 3 <= len(columns) <= len(_ROLES) or not all(columns):
        raise argparse.ArgumentTypeError(f"{text!r} does not name three to five columns, with commas between them")
    return dict(zip(_ROLES, columns, strict=False))


def _words(text: str) -> dict[str, str] | str:
    if text == "per person":
        return text
    parts = [part.rpartition("=") for part in text.split(",")]
    if not all(word and mark and meaning for word, mark, meaning in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form yes=similar,no=dissimilar")
    return {word.strip(): meaning.strip() for word, _, meaning in parts}


def say(text: str, *, error: bool = False) -> None:
    """Print text that may come from a file, with control characters spelled out."""
    lines = "\n".join(printable(line) for line in text.split("\n"))
    print(lines, file=sys.stderr if error else sys.stdout, flush=True)


def printable(text: str) -> str:
    """Spell out control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object instead of text")


def print_json(data: object) -> None:
    """Print results as one JSON object on standard output."""
    from sdulearn.io.typed import plain

    print(json.dumps(plain(data), indent=2, allow_nan=False))


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file, whole or not at all."""
    from sdulearn.io.files import written_whole

    with written_whole(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def check_outputs(outputs: tuple[Path | None, ...], inputs: tuple[Path | None, ...]) -> None:
    """Refuse an output file that is an input, or whose folder is not there."""
    for output in filter(None, outputs):
        if not output.parent.is_dir():
            raise InputError(f"There is no folder {output.parent} to write {output.name} into. Make it first.")
        if output.exists() and any(output.samefile(path) for path in inputs if path and path.exists()):
            raise InputError(f"{output} is read by this command; writing it would overwrite it. Name another file.")
