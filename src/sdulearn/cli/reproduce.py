"""Run the experiments of the paper, and new ones, and write a report.

A run can be stopped at any time: the same command goes on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sdulearn.cli.options import positive
from sdulearn.cli.output import add_json_option, print_json
from sdulearn.cli.screen import say
from sdulearn.experiments import PROTOCOLS, reproduce
from sdulearn.experiments.data import SETS
from sdulearn.experiments.methods import METHODS

DEFAULT_OUT = "sdulearn-reproduce"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn reproduce``."""
    parser.add_argument(
        "--quick",
        action="store_true",
        help="few trials on generated and bundled data: no download, under two minutes",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(PROTOCOLS),
        metavar="NAME",
        help=f"which experiments: {', '.join(PROTOCOLS)} (default: all)",
    )
    parser.add_argument(
        "--datasets",
        nargs="+",
        choices=list(SETS),
        metavar="NAME",
        help=f"which data sets: {', '.join(SETS)} (default: the paper's ten)",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=list(METHODS),
        metavar="NAME",
        help="which methods, such as sddu-printed or joint (default: those of each experiment)",
    )
    _add_run_options(parser)
    add_json_option(parser)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=positive, metavar="N", help="random draws (default: the paper's)")
    parser.add_argument("--jobs", type=positive, metavar="N", help="worker processes (default: one per processor)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help=f"folder of the report (default: {DEFAULT_OUT}, or {DEFAULT_OUT}-quick)",
    )
    parser.add_argument(
        "--report-only",
        action="store_true",
        help="write the report from what has been measured so far",
    )
    parser.add_argument("--no-progress", action="store_true", help="no progress bars")


def run(arguments: argparse.Namespace) -> int:
    """Run the experiments and say where the report is."""
    out = arguments.out or Path(DEFAULT_OUT + ("-quick" if arguments.quick else ""))
    try:
        report = reproduce(
            arguments.only,
            quick=arguments.quick,
            datasets=arguments.datasets,
            methods=arguments.methods,
            trials=arguments.trials,
            jobs=arguments.jobs,
            out=out,
            measure=not arguments.report_only,
            progress=not arguments.no_progress,
        )
    except KeyboardInterrupt:
        say(f"Stopped. What was measured is in {out}: the same command goes on from there.", error=True)
        return 130
    for note in report.notes:
        say(note, error=True)
    if arguments.json:
        print_json(report.to_dict())
    else:
        say(f"The report is in {report.page}")
    return 0
