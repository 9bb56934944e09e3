"""Draw pairs from data that needs no download and train every risk and loss by cross-validation on pairs alone.

SU, DU, SD, SDSU, SDDU and SUDU with each loss and the joint estimator, beside k-means and true
labels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sdulearn import demo
from sdulearn.cli.numbers import positive

HELP = "train every risk and loss on bundled data; a table, a picture and a CSV"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn demo``."""
    parser.add_argument("--out", type=Path, default=Path("sdulearn-demo"), help="folder (default: %(default)s)")
    parser.add_argument("--seeds", type=positive, default=6, help="random draws (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration."""
    demo.run(arguments.out, arguments.seeds)
    return 0
