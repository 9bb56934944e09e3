"""The entry point of ``sdulearn``: runs a command, and prints errors in one line."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NamedTuple, NoReturn

from sdulearn import __version__
from sdulearn.cli.options import OF_ROWS, add_options, in_options, printable, say
from sdulearn.errors import SdulearnError, reason
from sdulearn.progress import SCREEN


class Command(NamedTuple):
    """A command in `sdulearn --help`, and what its own --help says above the options."""

    summary: str
    description: str


# Here and not in their modules, of which only that of the command is imported, once its options are understood.
COMMANDS = {
    "ask": Command(
        "collect same/different answers in the browser, or from a program",
        """\
Ask people "same class, or different?" about the rows of a table, on a page in the browser.

Each answer is on the disk, in the log (-o), before the next question shows: stop at any time, and continue later with
the same command. The last page fits a model; so does `sdulearn fit TABLE LOG -o MODEL`. All columns of a row are shown
but those of --drop, unless --text, --images, --audio or --show name some. The next rows are chosen from the features,
which are read as by `sdulearn fit`. Several people can answer at once; for people on other machines see --host.""",
    ),
    "check": Command(
        "summarise a file of answers and report problems",
        """\
Summarise a file of answers, and report problems with what to do about them.

Shows how columns and labels were understood, lines that a fit cannot use, ids that are not in --table, how often people
are wrong, doubtful people, disputed questions, confused classes, contradictions, whether the pairs can be random, and
with two classes the share of the larger one. In a log of sdulearn ask, only random questions count for that share. Exit
code 0: no problem was found; 1: there are problems.""",
    ),
    "fit": Command(
        "train a model from a table and a file of answers",
        """\
Train a classifier from a table and a file of same/different answers, and save it.

Settings are chosen by cross-validation on the answers alone, and the accuracy is estimated from held-out answers: no
class label is needed. The model file is all that `sdulearn predict` needs for raw tables; a report page is written
beside it. The table may be larger than memory: only rows in answers and a sample of all rows are kept.""",
    ),
    "predict": Command(
        "predict the classes of the rows of a table",
        """\
Predict the class of every row of a table with a model that `sdulearn fit` wrote.

Writes id, label and, if the model has one, the probability of the second class, or of each of several, in the order of
the table, which may be larger than memory; large tables go fastest from Parquet to Parquet (-o out.parquet, or -o out/
on all cores). CSV and TSV output has an apostrophe before texts that a spreadsheet would run as a formula. With
--answers, rows in answers are predicted from features and answers; n_answers is the number of answers used.""",
    ),
    "inspect": Command(
        "show what is in a model file",
        """\
Show what is in a model file: method, classes, prior, estimated accuracy, columns it needs, strongest features.

A model file contains numbers and text, never code, so it is safe to look into an untrusted one.""",
    ),
    "audit": Command(
        "estimate the accuracy of any classifier's predictions from answers",
        """\
Estimate the accuracy of any classifier's predictions from answers about random rows that were not used to train it.

With two classes, give answers about pairs of random rows. With more classes, give random rows that were compared with
examples (sdulearn ask --design match), or labels; pairs determine only the agreement with the answers, which is shown
beside that of always answering "different". With --at-least, exit code 2 if the accuracy is certainly lower.""",
    ),
    "classes": Command(
        "find the classes of the ids in a file of answers, without a table",
        """\
Find the classes of the ids in a file of answers, from the answers alone: no table is needed.

Classes have no names: 1 is the largest. If no answers connect two parts of the ids, class 1 of one is not class 1 of
the other, and is called "1 of part 2". An id that the answers do not determine has no class.""",
    ),
    "demo": Command(
        "compare the paper's methods, the joint method and labels on bundled data",
        """\
Compare all risks and losses, the joint estimator, k-means and true labels on pairs drawn from two data sets.

Settings are chosen by cross-validation on the pairs alone. Writes an image and the numbers, and a table with answers
to try the other commands on.""",
    ),
}
_WAYS_IN = """\
sdulearn trains a classifier from answers to "Are these two in the same class?". Four ways to start:

  a page       sdulearn ask TABLE.csv -o answers.jsonl
  two files    sdulearn fit TABLE.csv ANSWERS.csv -o model.sdu
  Python       model = sdulearn.fit_table("TABLE.csv", "ANSWERS.csv")
  a notebook   sdulearn.asking.Asker(X)

No data yet? sdulearn ask --demo, or sdulearn demo.
All commands: sdulearn --help. Options of one: sdulearn fit --help."""


def build_parser(commands: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser, with the options of the given commands."""
    parser = _Parser(
        prog="sdulearn",
        description='Train a classifier from unlabeled data and answers to "Are these two in the same class?".',
    )
    parser.add_argument("--version", action="version", version=f"sdulearn {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the whole traceback of an error")
    subparsers = parser.add_subparsers(title="commands", metavar="command", required=True, dest="command_name")
    for name, (summary, description) in COMMANDS.items():
        # No abbreviations: what one stands for would change with the next option.
        command = subparsers.add_parser(
            name, help=summary, description=description, formatter_class=_Paragraphs, allow_abbrev=False
        )
        if name in commands:
            add_options(command, name)
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        command.set_defaults(parser=command)
    return parser


def _unknown(argument: str, parser: argparse.ArgumentParser) -> str:
    """Return the message about an argument that a command does not take."""
    options = [name for action in parser._actions for name in action.option_strings]
    name = argument.split("=")[0]
    near = [option for option in options if option.startswith(name)] or get_close_matches(name, options, 1, 0.75)
    hint = f"Did you mean {near[0]}? " if near else ""
    return f"{parser.prog} does not take {argument}. {hint}{parser.prog} --help lists what it takes."


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without all options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {printable(message)}. {self.prog} --help lists what it takes.\n")


class _Paragraphs(argparse.HelpFormatter):
    """Keeps the paragraphs of a description apart."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(super(_Paragraphs, self)._fill_text(part, width, indent) for part in text.split("\n\n"))


@contextmanager
def _interrupt_later() -> Iterator[None]:
    """Delay Ctrl-C until an import is over: numpy would report a broken installation."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; a user's mistake is one line and exit code 2, never a traceback."""
    given = sys.argv[1:] if argv is None else list(argv)
    if not given:
        say(_WAYS_IN)
        return 0
    try:
        named = [argument for argument in given if argument in COMMANDS][:1]
        arguments, unknown = build_parser(named).parse_known_args(given)
        if unknown:
            return _stop(_unknown(unknown[0], arguments.parser), 2)
        if getattr(arguments, "output", None) == "-" and arguments.command_name not in OF_ROWS:
            return _stop(f"-o -, standard output, is for the rows of {' and '.join(OF_ROWS)}. Name a file.", 2)
        SCREEN.quiet = arguments.quiet
        with _interrupt_later():
            module = importlib.import_module(f"sdulearn.cli.{arguments.command_name}")
        return module.run(arguments)
    except KeyboardInterrupt:
        _stop("stopped", 130)
        if argv is None:
            # Interrupted libraries print tracebacks at exit.
            sys.stdout.flush()
            os._exit(130)
        return 130
    except BrokenPipeError:
        # The reader of our output has closed it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if "--debug" in given:
            raise
        if isinstance(error, SdulearnError):
            return _stop(in_options(str(error)), 2)
        if isinstance(error, MemoryError):
            return _stop("out of memory. Write the table as Parquet, or give --max-unlabeled a smaller number.", 2)
        return _stop(
            f"{type(error).__name__}: {reason(error)}. This is a mistake in sdulearn: please report it, with what "
            "`sdulearn --debug` and the same command print.",
            3,
        )
    finally:
        SCREEN.quiet = False


def _stop(message: str, code: int) -> int:
    print(f"sdulearn: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
