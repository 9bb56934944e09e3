"""``sdulearn reproduce``: run the experiments and write the report."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sdulearn.cli.numbers import positive
from sdulearn.errors import InputError
from sdulearn.experiments.data import SETS
from sdulearn.experiments.protocol import PROTOCOLS, QUICK, Protocol
from sdulearn.experiments.report import build_report, write_report
from sdulearn.experiments.runner import run as run_protocol
from sdulearn.extras import require

HELP = "run the experiments of the paper, and new ones, and write a report"
DEFAULT_OUT = "sdulearn-reproduce"


def reproduce(
    only: Sequence[str] | None = None,
    *,
    quick: bool = False,
    datasets: Sequence[str] | None = None,
    trials: int | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] = DEFAULT_OUT,
    measure: bool = True,
    progress: bool = True,
) -> Path:
    """Run the experiments of the paper, and new ones, and write a report.

    What is in ``out`` already is not measured again, so a stopped run goes on where it was.

    Parameters
    ----------
    only : sequence of {"table", "figure2", "figure3", "wrong_prior", "priors", "noise"}, optional
        Which experiments; default: all.
    quick : bool, default=False
        Few trials on generated and bundled data: no download, under two minutes.
    datasets : sequence of str, optional
        Which data sets; default: the ten of the paper (two with ``quick``).
    trials : int, optional
        Random draws per cell; default: the paper's 50 and 100, 20 for the new experiments.
    jobs : int, optional
        Worker processes; default: one per processor. The numbers do not depend on it.
    out : path, default="sdulearn-reproduce"
        Folder of the report; the raw results are in its subfolder ``results``.
    measure : bool, default=True
        False writes the report from what has been measured so far.
    progress : bool, default=True
        Whether to show progress bars.

    Returns
    -------
    Path
        The HTML page. Beside it are ``report.md``, a CSV file per experiment and ``figures``.
    """
    protocols = choose_protocols(only, quick=quick, datasets=datasets, trials=trials)
    require("matplotlib", "demo")
    folder = Path(out)
    notes: list[str] = []
    for protocol in protocols if measure else []:
        outcome = run_protocol(protocol, folder / "results", jobs=jobs or os.cpu_count() or 1, progress=progress)
        notes += outcome.notes
    report = build_report(folder / "results", protocols, notes)
    if not report.measured:
        raise FileNotFoundError("Nothing was measured. " + " ".join(dict.fromkeys(notes)))
    for note in report.notes:
        print(note, file=sys.stderr)
    return write_report(report, folder)


def choose_protocols(
    only: Sequence[str] | None, *, quick: bool, datasets: Sequence[str] | None, trials: int | None
) -> list[Protocol]:
    """The protocols that the options ask for."""
    known = QUICK if quick else PROTOCOLS
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise InputError(f"Unknown experiments {unknown}; choose from {list(known)}.")
    unknown = [name for name in datasets or () if name not in SETS]
    if unknown:
        raise InputError(f"Unknown data sets {unknown}; choose from {list(SETS)}.")
    if trials is not None and trials < 1:
        raise InputError(f"trials must be 1 or more, got {trials}.")
    changes: dict[str, object] = {}
    if datasets:
        changes["datasets"] = tuple(dict.fromkeys(datasets))
    if trials:
        changes["trials"] = trials
    return [known[name].with_changes(**changes) for name in known if not only or name in only]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn reproduce``."""
    parser.add_argument(
        "--quick", action="store_true",
        help="few trials on generated and bundled data: no download, under two minutes",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", choices=list(PROTOCOLS), metavar="NAME",
        help=f"which experiments: {', '.join(PROTOCOLS)} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--dataset", nargs="+", choices=list(SETS), metavar="NAME",
        help=f"which data sets: {', '.join(SETS)} (default: the paper's ten)",
    )  # fmt: skip
    parser.add_argument("--trials", type=positive, metavar="N", help="random draws (default: the paper's)")
    parser.add_argument("--jobs", type=positive, metavar="N", help="worker processes (default: one per processor)")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER",
        help=f"folder of the report and the results (default: {DEFAULT_OUT}, or {DEFAULT_OUT}-quick)",
    )  # fmt: skip
    parser.add_argument(
        "--report-only", action="store_true", help="write the report from what has been measured so far"
    )
    parser.add_argument("--no-progress", action="store_true", help="no progress bars")


def run(arguments: argparse.Namespace) -> int:
    """Do what the options say; the exit code. Mistakes are raised as ValueError, OSError or ImportError."""
    out = arguments.out or Path(DEFAULT_OUT + ("-quick" if arguments.quick else ""))
    try:
        page = reproduce(
            arguments.only, quick=arguments.quick, datasets=arguments.dataset, trials=arguments.trials,
            jobs=arguments.jobs, out=out, measure=not arguments.report_only, progress=not arguments.no_progress,
        )  # fmt: skip
    except KeyboardInterrupt:
        print(f"Stopped. What was measured is in {out}: the same command goes on from there.", file=sys.stderr)
        return 130
    print(f"The report is in {page}")
    return 0
