"""The time of a fit of loose pairs, as a multiple of what an earlier commit takes for it in the same run.

    python benchmarks/against.py COMMIT [--rounds 7]

The two versions take turns, each in a process of its own on one core, and the ratio is that of their least processor
times. It also says how far apart their coefficients are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
SIZES = ((200, 500, 20), (2000, 2000, 50))
ESTIMATORS = ("PairLogisticRegression", "PairLogisticRegressionCV")


def fit_all() -> None:
    """Fit each estimator at each size, a line each: its processor seconds, and its coefficients."""
    import sdulearn

    for n_pairs, n_unlabeled, n_features in SIZES:
        rng = np.random.default_rng(n_pairs)
        classes = np.where(rng.random(2 * n_pairs + n_unlabeled) < 0.7, 1, -1)
        X = rng.normal(size=(len(classes), n_features))
        X[:, 0] += classes
        same = classes[: 2 * n_pairs : 2] == classes[1 : 2 * n_pairs : 2]
        codes = np.repeat(np.where(same, 1, -1) * np.arange(1, n_pairs + 1), 2)
        y = np.concatenate([codes, np.zeros(n_unlabeled, dtype=int)])
        for name in ESTIMATORS:
            # The first fit also imports.
            model = getattr(sdulearn, name)().fit(X, y)
            began = time.process_time()
            model.fit(X, y)
            taken = time.process_time() - began
            print(n_pairs, name, taken, *model.coef_.ravel().tolist())


def run(source: Path) -> dict[tuple[str, str], tuple[float, np.ndarray]]:
    """The lines of :func:`fit_all` by the package in a folder."""
    alone = {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--fit"]
    out = subprocess.run(command, env={**os.environ, **alone}, check=True, capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        n_pairs, name, seconds, *coefficients = line.split()
        found[n_pairs, name] = (float(seconds), np.array(coefficients, dtype=float))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--fit", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit_all()
        return
    if options.commit is None:
        parser.error("name a commit")
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", options.commit, "src"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        rounds = [(run(Path(folder) / "src"), run(ROOT / "src")) for _ in range(options.rounds)]
    for key in rounds[0][0]:
        before, now = (min(one[side][key][0] for one in rounds) for side in (0, 1))
        apart = float(np.abs(rounds[0][0][key][1] - rounds[0][1][key][1]).max())
        print(
            f"{key[0]:>5} pairs, {key[1]:<25} {now / before:5.2f} times ({now:.3f} s); coefficients {apart:.1e} apart"
        )


if __name__ == "__main__":
    main()
