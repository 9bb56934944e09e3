"""The entry point of ``sdulearn``: runs a command, and prints errors in one line."""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from sdulearn import __version__
from sdulearn.cli.options import in_options, say
from sdulearn.errors import SdulearnError, reason

# Only the module of the command is imported: all of them take a second.
COMMANDS = {
    "ask": "ask people on a page, same class or different, and keep their answers in a log",
    "check": "counts, mistakes, contradictions and the class prior in a file of answers",
    "fit": "learn a model from a table and a file of answers",
    "predict": "classes of the rows of a table",
    "inspect": "what is in a model file",
    "audit": "the accuracy of any classifier's predictions, from answers about random rows",
    "classes": "classes of the ids in a file of answers, without a table",
    "demo": "train every risk and loss on bundled data; a table, a picture and a CSV",
}
_WAYS_IN = """\
sdulearn learns a classifier from answers to "same class, or different?". Four ways to start:

  a page       sdulearn ask TABLE.csv -o answers.jsonl
  two files    sdulearn fit --features TABLE.csv --pairs ANSWERS.csv -o model.sdu
  Python       model = sdulearn.fit_table("TABLE.csv", "ANSWERS.csv")
  a notebook   sdulearn.asking.Asker(X)

No data yet? sdulearn ask --demo, or sdulearn demo.
All commands: sdulearn --help. Options of one: sdulearn fit --help."""


def build_parser(commands: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser, with the options of the given commands."""
    parser = argparse.ArgumentParser(
        prog="sdulearn",
        description='Learn a classifier from answers to "same class, or different?" plus unlabeled data.',
    )
    parser.add_argument("--version", action="version", version=f"sdulearn {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the whole traceback of an error")
    found = parser.add_subparsers(title="commands", metavar="command", required=True)
    for name, text in COMMANDS.items():
        if name not in commands:
            found.add_parser(name, help=text)
            continue
        with _interrupt_later():
            module = importlib.import_module(f"sdulearn.cli.{name}")
        command = found.add_parser(name, help=text, description=inspect.getdoc(module), formatter_class=_Paragraphs)
        module.add_arguments(command)
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        command.set_defaults(run=module.run, parser=command)
    return parser


def _unknown(argument: str, parser: argparse.ArgumentParser) -> str:
    """Return the message about an argument that a command does not take."""
    options = [name for action in parser._actions for name in action.option_strings]
    near = get_close_matches(argument.split("=")[0], options, 1, 0.75)
    hint = f"Did you mean {near[0]}? " if near else ""
    return f"{parser.prog} does not take {argument}. {hint}{parser.prog} --help lists what it takes."


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
        return arguments.run(arguments)
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
            return _stop("out of memory. Write the table as Parquet, or give --unlabeled a smaller number.", 2)
        return _stop(
            f"{type(error).__name__}: {reason(error)}. This is a mistake in sdulearn: please report it, with what "
            "`sdulearn --debug` and the same command print.",
            3,
        )


def _stop(message: str, code: int) -> int:
    say(f"sdulearn: {' '.join(message.split())}", error=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
