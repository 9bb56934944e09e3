"""The command ``sdulearn``: one entry point, one module a subcommand."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Sequence

import sdulearn

COMMANDS = {
    "fit": "sdulearn.cli.fit",
    "predict": "sdulearn.cli.predict",
    "inspect": "sdulearn.cli.inspect",
    "check": "sdulearn.cli.check",
    "export": "sdulearn.cli.export",
    "demo": "sdulearn.cli.demo",
    "plan": "sdulearn.cli.plan",
    "prior": "sdulearn.cli.prior",
    "reproduce": "sdulearn.cli.reproduce",
}


def build_parser() -> argparse.ArgumentParser:
    """All subcommands and their options."""
    parser = argparse.ArgumentParser(
        prog="sdulearn",
        description='Learn a classifier from answers to "same class, or different?" plus unlabeled data.',
    )
    parser.add_argument("--version", action="version", version=f"sdulearn {sdulearn.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    for name, path in COMMANDS.items():
        module = importlib.import_module(path)
        command = commands.add_parser(name, help=module.HELP, description=inspect.getdoc(module))
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point: a user's mistake is one line and exit code 2, never a traceback."""
    arguments = build_parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except (ValueError, OSError, ImportError) as error:
        print(f"sdulearn: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sdulearn: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
