"""Time and memory of `sdulearn fit` and `predict` on a table of 100,000 rows and 50 columns with 2,000 answers.

    make bench-cli

writes benchmarks/command_line.md.
"""

from __future__ import annotations

import csv
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write_data(folder: Path) -> None:
    """Two Gaussian classes, and random pairs with their answers."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(100_000) < 0.7, 1, -1)
    X = rng.normal(size=(100_000, 50)) + y[:, None] * np.linspace(0, 0.4, 50)
    header = ",".join(["id", *(f"x{k}" for k in range(50))])
    rows = np.column_stack([np.arange(100_000), X])
    np.savetxt(folder / "points.csv", rows, "%d," + ",".join(["%.10g"] * 50), header=header, comments="")
    pairs = rng.permutation(100_000)[:4000].reshape(-1, 2)
    with (folder / "answers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id_a", "id_b", "label"])
        writer.writerows([a, b, "similar" if y[a] == y[b] else "dissimilar"] for a, b in pairs.tolist())


def run(*arguments: str) -> tuple[float, float, str]:
    """Seconds, largest resident memory of any child so far in GB, and the last line printed."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "sdulearn.cli.main", *arguments], capture_output=True, text=True, check=True
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return time.perf_counter() - began, peak, done.stdout.strip().splitlines()[-1]


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_data(folder)
        size = (folder / "points.csv").stat().st_size / 1e6
        points, answers, model = (str(folder / name) for name in ("points.csv", "answers.csv", "model.sdu"))
        predict_after = ("predict", model, points, "-o", str(folder / "out.csv"))
        fit = run("fit", "--features", points, "--pairs", answers, "-o", model)
        predict = run(*predict_after)
    text = [
        "# The command line on 100,000 rows",
        f"Made by `make bench-cli`: a CSV of {size:.0f} MB, 50 columns, 2,000 answers, one thread, start-up included.",
        "| command | wanted | seconds | peak memory, GB |\n|---|---|---|---|\n"
        f"| `sdulearn fit` | 20 s, 1 GB | {fit[0]:.1f} | {fit[1]:.2f} |\n"
        f"| `sdulearn predict` | | {predict[0]:.1f} | not above that of fit |",
        "The split that `fit` prints: " + fit[2].partition("(")[2].rstrip(")") + ".",
    ]
    Path(__file__).with_name("command_line.md").write_text("\n\n".join(text) + "\n")
    print("\n\n".join(text))


if __name__ == "__main__":
    main()
