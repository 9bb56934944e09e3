"""Do tests fail by chance? Runs them again and again beside busy loops, and prints how often they failed.

python tools/repeat.py tests/test_large.py --runs 20
python tools/repeat.py tests src --runs 5
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def busy_loops(count):
    """So many processes that do nothing, as hard as they can."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run_once(tests, limit):
    """Exit code (None past the time limit), seconds, and pytest's last line."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
        code, lines = done.returncode, done.stdout.strip().splitlines()
    except subprocess.TimeoutExpired:
        code, lines = None, []
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    last = lines[-1] if lines else "no end within the time limit"
    return code, time.monotonic() - began, " ".join([last, *failed])


def report(tests, runs, loops):
    failures = sum(code != 0 for code, _, _ in runs)
    seconds = [spent for _, spent, _ in runs]
    title = f"`pytest {' '.join(tests)}` beside {loops} busy loops: **{failures} of {len(runs)} runs failed**"
    rows = [f"| {k} | {code} | {spent:.0f} | {last} |" for k, (code, spent, last) in enumerate(runs, 1)]
    head = [f"{title}, {min(seconds):.0f} to {max(seconds):.0f} s each.", "", "| run | exit code | s | pytest |"]
    return [*head, "|---|---|---|---|", *rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="+", help="what to give to pytest")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--loops", type=int, default=2, help="busy loops beside them (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=1800, help="seconds after which a run has hung")
    arguments = parser.parse_args()
    runs = []
    with busy_loops(arguments.loops):
        for _ in range(arguments.runs):
            runs.append(run_once(arguments.tests, arguments.limit))
            print(runs[-1], flush=True)
    print("\n".join(report(arguments.tests, runs, arguments.loops)))
    return int(any(code != 0 for code, _, _ in runs))


if __name__ == "__main__":
    sys.exit(main())
