"""Is the accuracy that ``fit_table`` estimates from answers that share points the true one?

    python benchmarks/honest.py --draws 20

200 answers about 400 points (loose pairs), 200, 100, 60 and 40 points, and a star; prior 0.7; tables of 900 rows,
of which those in no answer are the test points. SDULEARN_DATA names a folder with the benchmark sets
(NAME.svm.bz2). Writes docs/honest.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from tqdm import tqdm

from sdulearn import fit_table
from sdulearn.datasets import load_benchmark

PAGE = Path(__file__).parents[1] / "docs" / "honest.md"
SETS = ("spambase", "phishing", "magic", "waveform")
DESIGNS = (400, 200, 100, 60, 40, "star")
N_ROWS, N_ANSWERS, PRIOR = 900, 200, 0.7


def draw_table(X, y, rng):
    """900 rows with 0.7 of class +1."""
    n_positive = int(PRIOR * N_ROWS)
    positive = rng.choice(np.flatnonzero(y == 1), n_positive, replace=False)
    negative = rng.choice(np.flatnonzero(y == -1), N_ROWS - n_positive, replace=False)
    chosen = rng.permutation(np.concatenate([positive, negative]))
    frame = pd.DataFrame(X[chosen], columns=[f"x{k}" for k in range(X.shape[1])])
    return frame.assign(id=np.arange(N_ROWS)), y[chosen]


def draw_ends(design, rng):
    if design == "star":
        return np.column_stack([np.zeros(N_ANSWERS, dtype=int), np.arange(1, N_ANSWERS + 1)])
    if design == 2 * N_ANSWERS:
        return np.arange(2 * N_ANSWERS).reshape(-1, 2)
    ends = rng.integers(0, design, (4 * N_ANSWERS, 2))
    return ends[ends[:, 0] != ends[:, 1]][:N_ANSWERS]


def measure(X, y, design, seed):
    """True accuracy of a model (named the better way), and what the answers say."""
    rng = np.random.default_rng(seed)
    table, truth = draw_table(X, y, rng)
    ends = draw_ends(design, rng)
    same = truth[ends[:, 0]] == truth[ends[:, 1]]
    model = fit_table(table, pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": same}))
    rest = np.setdiff1d(np.arange(N_ROWS), ends)
    right = float(np.mean(model.predict(table.iloc[rest]).astype(int) == truth[rest]))
    return max(right, 1 - right), model.report.accuracy


def cell(found):
    true = np.array([right for right, _ in found])
    value = np.array([accuracy.value for _, accuracy in found])
    covered = sum(accuracy.low <= right <= accuracy.high for right, accuracy in found)
    return f"{100 * true.mean():.1f} / {100 * value.mean():.1f} / {covered}", covered


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=5000)
    arguments = parser.parse_args()
    head = ["200 answers about", *(f"{design} points" if design != "star" else "a star" for design in DESIGNS)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    total = 0
    for name in SETS:
        X, y = load_benchmark(name)
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        cells = []
        for design in DESIGNS:
            seeds = tqdm(range(arguments.seed, arguments.seed + arguments.draws), desc=f"{name} {design}", leave=False)
            text, covered = cell([measure(X, y, design, seed) for seed in seeds])
            cells.append(text)
            total += covered
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    share = total / (len(SETS) * len(DESIGNS) * arguments.draws)
    text = (
        "# Answers that share points\n\n"
        f"Made by `make bench-honest` (`benchmarks/honest.py`), {arguments.draws} draws a cell; do not edit. True "
        "accuracy on rows in no answer / accuracy that `fit_table` estimates from the answers, both in % / draws in "
        f"which its 95% interval holds the true one. Over all cells: {share:.0%}.\n\n"
    )
    PAGE.write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
