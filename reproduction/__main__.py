"""Run the experiments of the paper, and new ones, and write a report.

    python -m reproduction --quick

A run can be stopped at any time: the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from reproduction.methods import METHODS
from reproduction.pages import write_report
from reproduction.protocol import PROTOCOLS, QUICK, Protocol
from reproduction.report import build_report
from reproduction.runner import run
from reproduction.trials import SETS
from sdulearn.errors import SdulearnError

OUT = "sdulearn-reproduce"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser("python -m reproduction", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="few trials on generated and bundled data: no download, two minutes")
    add("--only", nargs="+", choices=PROTOCOLS, metavar="NAME", help=f"which experiments: {', '.join(PROTOCOLS)}")
    add("--datasets", nargs="+", choices=SETS, metavar="NAME", help=f"which data sets: {', '.join(SETS)}")
    add("--methods", nargs="+", choices=METHODS, metavar="NAME", help="which methods, such as sddu-printed or joint")
    add("--trials", type=positive, metavar="N", help="random draws (default: the paper's)")
    add("--jobs", type=positive, metavar="N", help="worker processes (default: one per processor)")
    add("--out", type=Path, metavar="FOLDER", help=f"folder of the report (default: {OUT}, or {OUT}-quick)")
    add("--report-only", action="store_true", help="write the report from what has been measured so far")
    add("--no-progress", action="store_true", help="no progress bars")
    return parser.parse_args(argv)


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiments and say where the report is; the exit code."""
    options = parse(argv)
    out = options.out or Path(OUT + ("-quick" if options.quick else ""))
    try:
        return reproduce(options, out)
    except KeyboardInterrupt:
        print(f"Stopped. What was measured is in {out}: the same command goes on from there.", file=sys.stderr)
        return 130
    except SdulearnError as error:
        print(error, file=sys.stderr)
        return 2


def reproduce(options: argparse.Namespace, out: Path) -> int:
    """Measure what is not in ``out`` yet, and write the report; 2 where there is nothing to report."""
    protocols = choose_protocols(options)
    notes = [f"All methods but {', '.join(options.methods)}, as asked."] if options.methods else []
    if not options.report_only:
        for protocol in protocols:
            notes += run(protocol, out / "results", jobs=options.jobs, progress=not options.no_progress).notes
    report = build_report(out / "results", protocols, notes)
    for note in report.notes:
        print(note, file=sys.stderr)
    if not report.measured:
        print(f"Nothing was measured in {out}.", file=sys.stderr)
        return 2
    print(f"The report is in {write_report(report, out)}")
    return 0


def choose_protocols(options: argparse.Namespace) -> list[Protocol]:
    """The protocols that the options ask for."""
    known = QUICK if options.quick else PROTOCOLS
    changes: dict[str, object] = {}
    if options.datasets:
        changes["datasets"] = tuple(dict.fromkeys(options.datasets))
    if options.methods:
        changes["methods"] = tuple(dict.fromkeys(options.methods))
    if options.trials:
        changes["trials"] = options.trials
    return [known[name].with_changes(**changes) for name in known if not options.only or name in options.only]


if __name__ == "__main__":
    sys.exit(main())
