"""The command ``sdulearn``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import sdulearn


def _demo(arguments: argparse.Namespace) -> int:
    from sdulearn import demo

    demo.run(arguments.out, arguments.seeds)
    return 0


def build_parser() -> argparse.ArgumentParser:
    """All subcommands and their options."""
    parser = argparse.ArgumentParser(
        prog="sdulearn",
        description='Learn a classifier from answers to "same class, or different?" plus unlabeled data.',
    )
    parser.add_argument("--version", action="version", version=f"sdulearn {sdulearn.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="train every risk and loss on bundled data; a table, a picture and a CSV",
        description="Draw pairs from data that needs no download, train SU, DU, SD, SDSU, SDDU and SUDU with each "
        "loss by cross-validation on pairs alone, and compare with k-means and with true labels.",
    )
    demo.add_argument("--out", type=Path, default=Path("sdulearn-demo"), help="folder (default: %(default)s)")
    demo.add_argument("--seeds", type=_positive, default=6, help="random draws (default: %(default)s)")
    demo.set_defaults(run=_demo)
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


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
