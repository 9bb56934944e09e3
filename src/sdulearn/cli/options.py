"""All options of the command line in one table, and what several commands share: parameters in messages, output.

An option has the name of a parameter of the library; those of reading a table are the fields of ``Reading``. Imports
nothing that takes time, so that ``--help`` and a mistake in a command are answered at once.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sdulearn.errors import InputError
from sdulearn.progress import PATIENCE, SCREEN

if TYPE_CHECKING:
    from sdulearn.answer_files.columns import FindIds
    from sdulearn.answers.records import Answers
    from sdulearn.reading import Reading
    from sdulearn.workflow.options import FitOptions

T = TypeVar("T")
Kind = Callable[[str], Any] | tuple[str, ...] | None
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class Budget(NamedTuple):
    """What a program that answers may use: an amount of answers (no unit), seconds or a currency."""

    amount: float
    unit: str = ""


def _number(kind: Callable[[str], float], fits: Callable[[float], bool], what: str) -> Callable[[str], Any]:
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


def _names(text: str) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _budget(text: str) -> Budget:
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h|[a-zA-Z]{3})?", text)
    if amount is None or not float(amount[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount such as 500 (answers), 90s, 30m, 2h or 5usd")
    unit = amount[2] or ""
    return Budget(float(amount[1]) * _SECONDS.get(unit, 1), "seconds" if unit in _SECONDS else unit)


_not_negative = _number(_whole, lambda n: n >= 0, "a whole number")
_positive = _number(_whole, lambda n: n >= 1, "a whole number of 1 or more")
_n_classes = _number(_whole, lambda n: n >= 2, "'auto' or a whole number of 2 or more")
_share = _number(float, lambda x: 0 < x < 1, "a share between 0 and 1")
_error_rate = _number(float, lambda x: 0 <= x <= 0.5, "'auto' or a rate from 0 to 0.5")
_epsilon = _number(float, lambda x: 0.001 <= x <= 100, "a number from 0.001 to 100")


class Option(NamedTuple):
    """An option, or an argument without a name, of some commands."""

    name: str  # of the parameter; the option has "-" for "_"
    commands: str  # that take it, separated by blanks
    kind: Kind  # reads the text; the texts that are allowed; None: the option takes no value
    help: str
    metavar: str = ""
    default: Any = None
    group: str = ""


ARGUMENTS = (
    Option("model", "predict inspect", Path, "model file", "MODEL"),
    Option("table", "fit ask predict", Path, ".csv, .tsv, .jsonl, .parquet, .xlsx or a folder of Parquet files; "
           "one row per item", "TABLE"),
    Option("predictions", "audit", Path, "file with an id and a predicted class in each row", "PREDICTIONS"),
    Option("answers", "fit check classes", Path, "id_a,id_b,label as .csv, .tsv, .jsonl, .json, .parquet or .xlsx, or "
           "a file of another tool", "ANSWERS"),
    Option("answers", "audit", Path, "answers about random rows, or their labels: id,label", "ANSWERS"),
)  # fmt: skip

_TABLE, _ANSWERS, _METHOD = "reading the table", "reading the answers", "method"
_SHOWN, _ASKED, _PROGRAM, _PAGE = "what the page shows", "what is asked", "a program that answers", "the page"
# Commands that write rows to standard output with -o -.
OF_ROWS = ("predict", "classes")
# At most one of these.
PRINTED = "what is printed"
_COLUMNS = "COLUMN,..."
_ALL = "ask check fit predict inspect audit classes demo"

OPTIONS = (
    Option("output", "fit", str, "model file to write", "MODEL"),
    Option("output", "predict", str, "file to write (.csv, .tsv, .parquet), folder of Parquet files (a name that ends "
           "in /), or - for standard output (default)", "OUT"),
    Option("output", "ask", str, "log of answers (.jsonl): a new one, or one to continue", "LOG"),
    Option("output", "check", str, "page to write (.html), with plots of the people", "PAGE"),
    Option("output", "classes", str, "file to write (.csv), one row per id, or - for standard output", "OUT"),
    Option("output", "demo", str, "folder to write into (sdulearn-demo)", "FOLDER", "sdulearn-demo"),
    Option("report", "fit", Path, "report page (default: the model's name with .html)", "PAGE"),
    Option("answered", "fit", Path, "classes of the rows in answers, from features and answers together", "OUT"),
    Option("labels", "fit", Path, "a few id,label rows, which name the classes and train the model", "FILE"),
    Option("answers", "predict", Path, "same/different answers about rows of this table", "FILE"),
    Option("table", "check", Path, "table that the ids must be in", "TABLE"),
    Option("demo", "ask", None, "ask about handwritten digits, and train a model"),
    Option("compare", "audit", Path, "predictions of a second classifier, to compare on the same rows", "OTHER"),
    Option("at_least", "audit", _share, "exit code 2 if the accuracy is certainly below this share", "A"),
    Option("limit", "check", _positive, "findings to list of each kind (10)", "N", 10),
    Option("top", "inspect", _positive, "features to list (10)", "N", 10),
    Option("draws", "demo", _positive, "random draws (6)", "N", 6),
    Option("seed", "demo", _not_negative, "seed of the first draw (0)", "N", 0),

    Option("id_column", "fit ask check", str, "column of ids, or '' for row numbers from 0 (default: the column that "
           "has the ids of the answers)", "COLUMN", group=_TABLE),
    Option("id_column", "predict", str, "column of ids, or '' for row numbers (default: as in training)", "COLUMN",
           group=_TABLE),
    Option("drop", "fit ask", _names, "columns to leave out", _COLUMNS, (), _TABLE),
    Option("categories", "fit ask", _names, "columns to read as categories, even if they look like numbers",
           _COLUMNS, (), _TABLE),
    Option("text", "fit ask", _names, "columns of sentences", _COLUMNS, (), _TABLE),
    Option("text_model", "fit ask predict", str, "name or folder of a model of sentence embeddings for the texts",
           "NAME", group=_TABLE),
    Option("images", "fit ask", _names, "columns of image files; also links, which are only shown (--drop them)",
           _COLUMNS, (), _TABLE),
    Option("image_root", "fit ask predict", Path, "folder of images and sounds (default: the table's)", "FOLDER",
           group=_TABLE),
    Option("embedding", "fit ask predict", Path, "vectors to use as features: .npy with one row per row of "
           "the table, or .parquet, which may have the id column", "FILE", group=_TABLE),
    Option("sheet", "fit ask check predict", str, "sheet of a workbook, by name or number (default: the first)",
           "NAME", group=_TABLE),
    Option("skip_rows", "fit ask check predict", _not_negative, "lines above the header (default: titles are "
           "recognised)", "N", group=_TABLE),
    Option("missing", "fit ask", ("auto", "error", "mean"), "missing values. auto (default): linear models use the "
           "mean and an indicator, trees keep them; error: stop; mean: use the mean", default="auto", group=_TABLE),
    Option("max_categories", "fit ask", _positive, "maximum number of categories per column (50)", "N", 50, _TABLE),
    Option("groups", "fit ask", str, "column that shows which rows belong together, such as a person's id",
           "COLUMN", group=_TABLE),

    Option("answer_columns", "fit check classes predict audit", str, "answer columns with unusual names: "
           "A,B,LABEL[,WEIGHT[,ANNOTATOR]], or by role: label=NAME,sheet=NAME", "ROLE=NAME,...", group=_ANSWERS),
    Option("words", "fit check classes predict audit", str, "meaning of unusual words in the answers: "
           "yes=similar,no=dissimilar,maybe=unsure, or '>=4=similar,3=unsure,<=2=dissimilar', or '0=unsure,1-4=per "
           "person' (a threshold per annotator)", "WORD=MEANING,...",
           group=_ANSWERS),
    Option("skip_bad", "fit predict", None, "leave out answers that cannot be used", group=_ANSWERS),
    Option("exclude_annotators", "fit", _names, "fit again without these people, and show the difference",
           "NAME,...", (), _ANSWERS),

    Option("method", "fit", ("auto", "joint", "su", "du", "sd", "sdsu", "sddu", "sudu"), "joint likelihood (auto, "
           "joint) or a risk of the paper", default="auto", group=_METHOD),
    Option("classes", "fit", _n_classes, "number of classes, or auto for the one that held-out answers favour (2, or "
           "as many as --labels names)", "K", group=_METHOD),
    Option("classes", "check classes", _n_classes, "number of classes (auto: the fewest that explain the answers)",
           "K", "auto", _METHOD),
    Option("model", "fit", ("auto", "linear", "boosted"), "linear, boosted trees (needs sdulearn[boosting]), or "
           "the one with the higher likelihood of held-out answers (default)", group=_METHOD),
    Option("loss", "fit", ("squared", "double_hinge", "logistic"), "loss of the paper's risks (squared)",
           default="squared", group=_METHOD),
    Option("prior", "fit check", _share, "share of class +1, if it is known", "SHARE", group=_METHOD),
    Option("error_rate", "fit audit", _error_rate, "share of wrong answers (auto: estimated)", "RATE", "auto",
           _METHOD),
    Option("max_unlabeled", "fit", _positive, "maximum number of unlabeled rows, drawn at random (20,000)", "N",
           group=_METHOD),

    Option("show", "ask", _names, "columns to show side by side (default: all, unless --text, --images or --audio)",
           _COLUMNS, (), _SHOWN),
    Option("audio", "ask", str, "column of sound files, which are not used as features", "COLUMN", group=_SHOWN),
    Option("question", "ask", str, "the question in your words", "TEXT", "", _SHOWN),
    Option("instructions", "ask", Path, "instructions for the annotators (Markdown)", "FILE", group=_SHOWN),
    Option("language", "ask", ("de", "en", "es", "fr", "it"), "language of the page (en)", default="en",
           group=_SHOWN),
    Option("design", "ask", ("linked", "match", "random", "sort", "nearer"), "a row beside an example of its likeliest "
           "class (default for 2 classes), of each class (more), random pairs, a few rows to sort, or which of two "
           "examples is nearer", group=_ASKED),
    Option("classes", "ask", _n_classes, "number of classes, or auto to find it (2; with --demo auto)", "K",
           group=_ASKED),
    Option("examples", "ask", Path, "labelled rows to begin with: a file id,label", "FILE", group=_ASKED),
    Option("class_names", "ask", _names, "names of a new class to choose from", "NAME,...", (), _ASKED),
    Option("annotator", "ask", str, "name of the annotator, unless they enter another", "NAME", "", _ASKED),
    Option("per_person", "ask", _positive, "maximum number of answers per person", "N", group=_ASKED),
    Option("overlap", "ask", _share, "share of each person's questions that somebody else answers, too: it shows how "
           "often people are wrong", "SHARE", 0.0, _ASKED),
    Option("until", "ask", _share, "goal: a confidence interval for the accuracy of this width, such as 0.05",
           "WIDTH", group=_ASKED),
    Option("private", "ask", _epsilon, "flip each answer with probability 1 / (1 + exp(EPSILON)) before it is stored; "
           "no row is in two answers", "EPSILON", group=_ASKED),
    Option("audit", "ask", _positive, "let a person answer this many random questions again, which shows how often "
           "the program is wrong", "N", group=_ASKED),
    Option("seed", "ask", _not_negative, "seed of a new log; an old one keeps its own", "N", group=_ASKED),
    Option("oracle", "ask", str, "take the answers from this column of labels; no page", "COLUMN", group=_PROGRAM),
    Option("questions", "ask", _positive, "number of questions, with --oracle or --command (200)", "N", 200, _PROGRAM),
    Option("command", "ask", str, "a program that answers instead of people: reads a line of JSON per question, and "
           "writes one per reply", "COMMAND", group=_PROGRAM),
    Option("budget", "ask", _budget, "limit for the program: 500 (answers), 90s, 30m or 2h, or money such as 5usd, "
           "from the cost in its replies", "AMOUNT", group=_PROGRAM),
    Option("batch_size", "ask", _positive, "questions at a time (1)", "N", 1, _PROGRAM),
    Option("timeout", "ask", _positive, "longest wait for a reply (120)", "SECONDS", 120, _PROGRAM),
    Option("host", "ask", str, "address to listen on (127.0.0.1: this machine alone). With 0.0.0.0, everybody who can "
           "reach this machine and has the address with its key sees the rows and can answer; the connection is not "
           "encrypted", "ADDRESS", "127.0.0.1", _PAGE),
    Option("port", "ask", _not_negative, "port of the page (any that is free)", "N", 0, _PAGE),
    Option("no_browser", "ask", None, "print the address of the page, and do not open it", group=_PAGE),

    Option("json", _ALL.removeprefix("ask "), None, "print the results as one JSON object", group=PRINTED),
    Option("quiet", _ALL, None, "print errors only, and results that go to standard output", group=PRINTED),
    Option("verbose", "fit", None, "also print notes and numbers, as on the report page", group=PRINTED),
)  # fmt: skip

# Names in messages of the library that are not those of options.
OTHER_NAMES = {
    "X": "TABLE",
    "table": "TABLE",
    "answers": "ANSWERS",
    "columns": "--answer-columns",
    "n_classes": "--classes",
    "seeds": "--examples",
}
_BY_NAME = {option.name: f"--{option.name.replace('_', '-')}" for option in OPTIONS} | OTHER_NAMES
_QUOTES = "'\""
_PARAMETER = re.compile(r"`(\w+)(?:=([^`]*))?`")


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the arguments and options of a command."""
    for option in ARGUMENTS:
        if command in option.commands.split():
            # `ask --demo` has no table.
            nargs = "?" if command == "ask" else None
            parser.add_argument(option.name, type=option.kind, metavar=option.metavar, help=option.help, nargs=nargs)  # type: ignore[arg-type]
    groups: dict[str, Any] = {"": parser}
    for option in OPTIONS:
        if command not in option.commands.split():
            continue
        if option.group not in groups:
            group = parser.add_argument_group(option.group)
            groups[option.group] = group.add_mutually_exclusive_group() if option.group == PRINTED else group
        names = ["-o", "--output"] if option.name == "output" else [_flag(option.name)]
        add = groups[option.group].add_argument
        if option.kind is None:
            add(*names, action="store_true", help=option.help)
        elif isinstance(option.kind, tuple):
            add(*names, choices=option.kind, default=option.default, help=option.help)
        else:
            add(*names, type=option.kind, metavar=option.metavar, default=option.default, help=option.help)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def reading_of(arguments: argparse.Namespace) -> Reading:
    """Return how `fit` and `ask` read a table."""
    from sdulearn.reading import FOUND, Reading

    return _made(Reading, arguments, FOUND)


def fit_options_of(arguments: argparse.Namespace) -> FitOptions:
    """Return the options of a fit."""
    from sdulearn.workflow.options import FitOptions

    return _made(FitOptions, arguments, ("reading", "stored"), reading=reading_of(arguments))


def _made(kind: Callable[..., T], arguments: argparse.Namespace, others: Collection[str], **given: object) -> T:
    """Return a record of arguments, which have the names of all fields but a few others."""
    names = [field.name for field in fields(kind) if field.name not in others]  # type: ignore[arg-type]
    return kind(**{name: getattr(arguments, name) for name in names}, **given)


def answers_of(arguments: argparse.Namespace, table_ids: FindIds | None = None) -> Answers:
    """Read the file of answers."""
    from sdulearn.answer_files.read import read_answers

    return read_answers(arguments.answers, columns=arguments.answer_columns, words=arguments.words, table_ids=table_ids)


def in_options(message: str) -> str:
    """Replace parameters in backticks by options in a message of the library."""
    return _PARAMETER.sub(_as_option, message)


def _as_option(parameter: re.Match[str]) -> str:
    name, value = parameter.groups()
    if name not in _BY_NAME:
        return parameter[0].strip("`")
    if value in (None, "True"):
        return _BY_NAME[name]
    return f"{_BY_NAME[name]} {shlex.quote(value.strip(_QUOTES))}"


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what is being done if it takes long and has no steps to count."""
    timer = threading.Timer(PATIENCE, say, (f"{what} ...", sys.stderr))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def say(text: str, file: Any = None) -> None:
    """Print text that may come from a file, with control characters spelled out; nothing with ``--quiet``."""
    if not SCREEN.quiet:
        print("\n".join(printable(line) for line in text.split("\n")), file=file or sys.stdout, flush=True)


def program() -> str:
    """Return the name under which this command can be called again: its path, if it is not on the search path."""
    script = Path(sys.executable).with_name("sdulearn")
    if shutil.which("sdulearn") or not script.exists():
        return "sdulearn"
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


def printable(text: str) -> str:
    """Spell out control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def print_json(data: object) -> None:
    """Print results as one JSON object on standard output."""
    from sdulearn.io.typed import plain

    print(json.dumps(plain(data), indent=2, allow_nan=False))


class Screen:
    """Standard output without control characters, which an untrusted table may hold."""

    def write(self, line: str) -> int:
        """Write some lines."""
        return sys.stdout.write("\n".join(printable(part) for part in line.split("\n")))


def write_csv(path: Path | None, rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file, whole or not at all; to the screen without a path."""
    from sdulearn.io.files import written_whole

    if path is None:
        csv.writer(Screen(), lineterminator="\n").writerows(rows)
        return
    with written_whole(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def check_outputs(outputs: tuple[Path | None, ...], inputs: tuple[Path | None, ...], folder: bool = False) -> None:
    """Refuse an output file that is an input or a folder, or whose folder is not there, before the work."""
    for output in filter(None, outputs):
        if not output.parent.is_dir():
            raise InputError(f"There is no folder {output.parent} to write {output.name} into. Create it first.")
        if output.is_dir() and not folder:
            raise InputError(f"{output} is a folder. Name a file.")
        if output.is_file() and any(output.samefile(path) for path in inputs if path and path.exists()):
            raise InputError(f"{output} is read by this command; writing it would overwrite it. Name another file.")
