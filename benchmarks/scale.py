"""Large data: time and memory of fits from disk and on a cluster as the rows grow, and the cost model they check.

    make bench-scale

writes benchmarks/scale.md and the tables of docs/scale.md and README.md. Each measurement runs in a fresh process, with
the files in the page cache; times are medians, and the rivals of one table take turns in one run. The generated files
need 4 GB under --scratch while it runs.
"""

from __future__ import annotations

import argparse
import functools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import scale_jobs
from pages import write_between
from scale_jobs import FEATURES, LOSSES, PAIRED, WIDE, Table
from scale_report import PAIR_FEATURES, WIDE_ROWS, Findings, page, report

Task = Callable[[], dict[str, Any]]


def run(name: str, table: Table | None = None, **options: Any) -> dict[str, Any]:
    """One job in a fresh process: what it gives back, and its peak memory."""
    order = json.dumps({"job": name, "table": table and asdict(table), "options": options})
    done = subprocess.run(
        [sys.executable, scale_jobs.__file__], input=order, stdout=subprocess.PIPE, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    size = [f"{table.rows:,} x {table.features}"] if table else []
    line = " ".join([name, *size, *(str(value) for value in options.values() if isinstance(value, str | int))])
    seconds = f"{found['seconds']:.2f} s, " if "seconds" in found else ""
    print(f"{line}: {seconds}peak {found['peak']:.2f} GB", file=sys.stderr, flush=True)
    return found


def middle(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Median of every number over repeats; the largest peak; the rest from the last."""
    merged = dict(found[-1])
    for name, value in merged.items():
        if isinstance(value, float):
            merged[name] = statistics.median(one[name] for one in found)
    return merged | {"peak": max(one["peak"] for one in found)}


def in_turns(tasks: dict[str, Task], repeats: int) -> dict[str, dict[str, Any]]:
    """Every task once, then again, so that a slow minute of the machine hits all of them."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            found[name].append(task())
    return {name: middle(times) for name, times in found.items()}


class Scratch:
    """Writes tables under a folder and takes them away again, unless they are to be kept."""

    def __init__(self, folder: Path, keep: bool) -> None:
        self.folder, self.keep = folder, keep

    @contextmanager
    def table(self, rows: int, features: int = FEATURES, paired: float = PAIRED) -> Iterator[Table]:
        """The table, written if it is not there yet, and read once."""
        table = Table(str(self.folder / f"{rows}x{features}"), rows, features, paired)
        done = Path(table.folder) / "_done"
        if not done.exists():
            shutil.rmtree(table.folder, ignore_errors=True)
            run("write", table)
            done.touch()
        run("read", table)
        yield table
        if not self.keep:
            shutil.rmtree(table.folder)


def fits(table: Table, losses: Sequence[str] = LOSSES) -> dict[str, Task]:
    tasks: dict[str, Task] = {"read": functools.partial(run, "read", table)}
    return tasks | {loss: functools.partial(run, "fit", table, loss=loss) for loss in losses}


def rivals(table: Table) -> dict[str, Task]:
    """All ways of learning squared loss in one pass, and SGD."""
    return {
        "sgd": functools.partial(run, "sgd", table),
        "partial_fit": functools.partial(run, "partial_fit", table),
        "one thread": functools.partial(run, "fit", table, loss="squared", n_jobs=1),
        "all threads": functools.partial(run, "fit", table, loss="squared"),
    }


def predictions(table: Table, line: list[float]) -> dict[str, Task]:
    ways = ("model", "numpy", "numpy, float32")
    return {way: functools.partial(run, "predict", table, line=line, way=way) for way in ways}


def pair_fits(table: Table) -> dict[str, Task]:
    return {
        "stream": functools.partial(run, "fit", table, loss="squared", risk="sd"),
        "partial_fit": functools.partial(run, "partial_fit", table, risk="sd"),
    }


def measure(arguments: argparse.Namespace, scratch: Scratch) -> Findings:
    repeats, largest = arguments.repeats, max(arguments.sizes)
    found = Findings(run("imports"), run("rates"))
    for rows in arguments.sizes:
        with scratch.table(rows) as table:
            found.sizes[rows] = in_turns(fits(table), repeats)
            if rows == largest:
                compare(found, table, repeats)
            if not arguments.skip_dask and rows >= min(largest, 10**6):
                jobs = {loss: functools.partial(run, "dask", table, loss=loss) for loss in LOSSES}
                found.dask[rows] = in_turns(jobs, min(repeats, 2))
    for n_pairs in arguments.pairs:
        with scratch.table(2 * n_pairs, PAIR_FEATURES, 1.0) as table:
            found.pairs[n_pairs] = in_turns(pair_fits(table), repeats)
    with scratch.table(WIDE_ROWS, WIDE) as table:
        found.wide = in_turns(fits(table, ["squared"]), repeats)
    if not arguments.skip_dask:
        found.overhead = run("overhead", parts=2000)["seconds_a_part"]
    return found


def compare(found: Findings, table: Table, repeats: int) -> None:
    """What is measured at the largest size only."""
    fitted = found.sizes[table.rows]
    found.rivals = in_turns(rivals(table), repeats)
    found.predictions = in_turns(predictions(table, fitted["squared"]["line"]), repeats)
    lines = {loss: fitted[loss]["line"] for loss in LOSSES} | {"sgd": found.rivals["sgd"]["line"]}
    found.accuracy = run("accuracy", table, lines=lines)


def main() -> None:
    root = Path(__file__).parents[1]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=lambda text: int(float(text)), nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--pairs", type=lambda text: int(float(text)), nargs="+", default=[10**6, 10**7])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="folder for the generated files (the system's temporary folder)")
    parser.add_argument("--keep", action="store_true", help="keep the generated files; the next run finds them")
    parser.add_argument("--skip-dask", action="store_true")
    parser.add_argument("--out", type=Path, default=root / "benchmarks" / "scale.md")
    parser.add_argument("--page", type=Path, default=root / "docs" / "scale.md")
    arguments = parser.parse_args()
    folder = arguments.scratch or Path(tempfile.gettempdir()) / "sdulearn-scale"
    scratch = Scratch(folder, arguments.keep)
    try:
        found = measure(arguments, scratch)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
    tables = report(found, arguments.repeats)
    arguments.out.write_text(page(tables))
    for name, lines in tables.items():
        for text in (arguments.page, root / "README.md"):
            write_between(text, name, lines)
    print(arguments.out.read_text())


if __name__ == "__main__":
    main()
