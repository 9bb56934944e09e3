"""Do the tests notice a fault? Plants one slip at a time in a copy of the package and runs the tests that should fail.

    make bench-faults

writes benchmarks/faults.md and ends with exit code 1 if a fault survives. ``--only TEXT`` plants those alone whose
file or function contains the text, and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fault_list import FAULTS, Fault
from tqdm import tqdm

HERE = Path(__file__).parent
ROOT = HERE.parent
PACKAGE = "src/sdulearn"
SECONDS = 180
# pytest's exit codes: all passed, some failed.
PASSED = 0
FAILED = 1


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: the test that caught it, None where none did."""

    fault: Fault
    caught_by: str | None
    seconds: float


class Copy:
    """A copy of the sources in a temporary folder, in which tests are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def plant(self, fault: Fault) -> None:
        """Put a fault in its place."""
        path = self.folder / PACKAGE / fault.file
        path.write_text(planted(fault, path.read_text()))

    def mend(self, fault: Fault) -> None:
        """Take it out again, with the time of the original: compiled files stay good."""
        shutil.copy2(ROOT / PACKAGE / fault.file, self.folder / PACKAGE / fault.file)

    def run(self, tests: tuple[str, ...], limit: float | None, *, compiled: bool) -> tuple[int | None, str]:
        """Exit code and output of the tests; None where they took too long."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += [str(ROOT / "tests" / name) for name in tests]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / "hypothesis"),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        # Only the sources without a fault are kept compiled: Python takes a file of the same second and
        # size for the same one.
        if not compiled:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, timeout=limit, capture_output=True, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout + done.stderr


def planted(fault: Fault, source: str) -> str:
    """The source with the fault in it; refused where its text is not there exactly once."""
    count = source.count(fault.text)
    if count != 1:
        raise SystemExit(f"{fault.file}, {fault.function}: the text stands there {count} times, not once: {fault.text}")
    return source.replace(fault.text, fault.replacement)


def check_list(faults: list[Fault]) -> None:
    """Refuse faults that cannot be planted and tests that are not there, before anything is run."""
    for fault in faults:
        planted(fault, (ROOT / PACKAGE / fault.file).read_text())
        for name in fault.tests:
            if not (ROOT / "tests" / name).exists():
                raise SystemExit(f"{fault.file}, {fault.function}: there is no tests/{name}.")


def first_failure(output: str) -> str:
    """The test that failed, as pytest sums it up."""
    found = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", output, re.MULTILINE)
    return found[1] if found else "?"


def try_fault(copy: Copy, fault: Fault) -> Outcome:
    """Plant a fault, run its tests and take it out."""
    copy.plant(fault)
    began = time.perf_counter()
    code, output = copy.run(fault.tests, SECONDS, compiled=False)
    seconds = time.perf_counter() - began
    copy.mend(fault)
    if code is None:
        return Outcome(fault, f"no end after {SECONDS} s" if fault.hangs else None, seconds)
    if code not in (PASSED, FAILED):
        raise SystemExit(f"{fault.file}, {fault.function}: pytest could not run the tests.\n{output[-2000:]}")
    return Outcome(fault, first_failure(output) if code == FAILED else None, seconds)


def report(outcomes: list[Outcome]) -> str:
    """The page."""
    survivors = [one for one in outcomes if one.caught_by is None]
    minutes = sum(one.seconds for one in outcomes) / 60
    functions = {(one.fault.file, one.fault.function) for one in outcomes}
    lines = [
        "# Planted faults",
        "",
        "Made by `make bench-faults` (`benchmarks/faults.py`); do not edit. One slip at a time is planted in a copy of "
        "the package (`benchmarks/fault_list.py`), and the tests named beside it are run until one fails.",
        "",
        f"**{len(survivors)} of {len(outcomes)} faults in {len(functions)} functions survive "
        f"({len(survivors) / len(outcomes):.0%})**; {minutes:.0f} minutes, one process at a time.",
        "",
        "| function | fault | caught by | s |",
        "|---|---|---|---|",
    ]
    for one in outcomes:
        place = f"`{one.fault.file}` `{one.fault.function}`"
        caught = "**survives**" if one.caught_by is None else f"`{one.caught_by}`".replace("|", "\\|")
        lines.append(f"| {place} | {one.fault.breaks} | {caught} | {one.seconds:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="plant faults alone whose file or function contains this")
    parser.add_argument("--list", action="store_true", help="check that every fault can be planted, and end")
    arguments = parser.parse_args()
    faults = [one for one in FAULTS if arguments.only in f"{one.file} {one.function}"]
    check_list(faults)
    if arguments.list:
        print(f"{len(faults)} faults can be planted.")
        return 0
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="sdulearn-faults-") as folder:
        copy = Copy(Path(folder))
        tests = tuple(sorted({name for one in faults for name in one.tests}))
        print(f"{len(tests)} test files without a fault ...", flush=True)
        code, output = copy.run(tests, None, compiled=True)
        if code != PASSED:
            print(output[-5000:])
            return 2
        for fault in tqdm(faults):
            outcomes.append(try_fault(copy, fault))
            if outcomes[-1].caught_by is None:
                tqdm.write(f"survives: {fault.file} {fault.function}: {fault.breaks}")
    survivors = sum(one.caught_by is None for one in outcomes)
    print(f"{survivors} of {len(outcomes)} faults survive.")
    if not arguments.only:
        (HERE / "faults.md").write_text(report(outcomes))
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
