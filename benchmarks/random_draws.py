"""The default estimator on random draws of the ten benchmark sets, and its change between two trees.

    SDULEARN_DATA=folder python benchmarks/random_draws.py measure RESULTS.jsonl
    python benchmarks/random_draws.py compare BEFORE.jsonl AFTER.jsonl

``--designs`` measures answers that share rows instead: stars, 100 rows, the same with 10% wrong, on four sets of two
classes, and on three with more; there also five answers to each row, 20% wrong, of one person ("many") and of ten who
err at different rates ("people"). ``measure`` uses the sdulearn that is imported (set PYTHONPATH to the `src` of
another tree to measure that one). Draws are random: numbers of similar pairs and of positive rows vary, as they do for
users. At prior 1/2, and where the data have nearly that, no answer tells the names of the classes: accuracy is counted
up to the flip of names there.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from paper import BENCHMARKS, load_benchmark, load_multiclass
from runs import quietly, run_all
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, stack_pairs
from sdulearn.datasets import sample_sdu
from sdulearn.errors import InputError

SIZES = (50, 200)
PRIORS = (0.5, 0.7, None)
N_TEST = 1000
FEW = ("spambase", "magic", "phishing", "waveform")
MANY = ("segment", "satimage", "digits")
MANY_WRONG = ("many", "people")


def sample(name, n_pairs, prior, seed):
    """Rows, codes and test points of a random draw, standardised; the larger class of the data is +1."""
    X, y = load_benchmark(name)
    y = y if prior is not None or y.mean() > 0 else -y
    rows, codes, X_test, y_test = sample_sdu(
        X, y, n_pairs=n_pairs, n_unlabeled=500, prior=prior, n_test=N_TEST, exact=False, random_state=seed
    )
    scaler = StandardScaler().fit(rows)
    return scaler.transform(rows), codes, scaler.transform(X_test), y_test


def run_design(name, n_answers, design, seed):
    """The same for answers about rows of a table of 600, which may share rows and be wrong; up to names."""
    X, y = (
        load_digits(return_X_y=True)
        if name == "digits"
        else (load_multiclass if name in MANY else load_benchmark)(name)
    )
    rng = np.random.default_rng([seed, n_answers])
    order = rng.permutation(len(X))[:3000]
    X = StandardScaler().fit_transform(np.asarray(X[order]))
    names, y = np.unique(np.asarray(y)[order], return_inverse=True)
    rows = rng.permutation(600)
    ends = rows[: 2 * n_answers].reshape(-1, 2)
    if design == "star":
        ends = np.column_stack([np.full(n_answers, rows[0]), rows[1 : n_answers + 1]])
    elif design != "loose":
        # Each of 100 rows, or of 300 with more classes, is in about four answers, or three.
        few = rows if design in MANY_WRONG else rows[: 300 if name in MANY else 100]
        ends = np.array([rng.choice(few, 2, replace=False) for _ in range(n_answers)])
    annotators = rng.integers(1, 11, n_answers) if design == "people" else np.ones(n_answers, dtype=int)
    rates = np.full(11, {"wrong": 0.1, "many": 0.2}.get(design, 0.0))
    if design == "people":
        rates = np.minimum(rng.beta(2, 8, 11), 0.45)
    same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.random(n_answers) < rates[annotators])
    began = time.process_time()
    pairs = stack_pairs(X[:600], ends, same, annotators=annotators)
    model = PairLogisticRegressionCV(n_classes=len(names)).fit(*pairs)
    seconds = time.process_time() - began
    counts = np.zeros((len(names), len(names)))
    np.add.at(counts, (np.searchsorted(model.classes_, model.predict(X[600:])), y[600:]), 1)
    accuracy = float(counts[linear_sum_assignment(-counts)].sum() / counts.sum())
    return [accuracy, accuracy, seconds]


@quietly
def run_cell(cell):
    """Accuracy, accuracy up to the flip of names, and CPU seconds of the fit."""
    if cell[0] == "first 150 rows":
        return first_rows(cell[3])
    if isinstance(cell[2], str):
        return run_design(*cell)
    rows, codes, X_test, y_test = sample(*cell)
    began = time.process_time()
    try:
        model = PairLogisticRegressionCV().fit(rows, codes)
    except InputError:
        # Too few answers of one kind for five folds: counted as no result.
        return None
    seconds = time.process_time() - began
    accuracy = float(np.mean(model.predict(X_test) == y_test))
    return [accuracy, max(accuracy, 1 - accuracy), seconds]


def first_rows(seed):
    """200 right answers about the first 150 rows of breast cancer, where the classes have other shares."""
    X, truth = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    rng = np.random.default_rng(seed)
    ends = np.array([rng.choice(150, 2, replace=False) for _ in range(200)])
    began = time.process_time()
    model = PairLogisticRegressionCV().fit(*stack_pairs(X, ends, truth[ends[:, 0]] == truth[ends[:, 1]]))
    seconds = time.process_time() - began
    accuracy = float(np.mean((model.predict(X[150:]) > 0) == truth[150:]))
    return [accuracy, max(accuracy, 1 - accuracy), seconds]


def measure(arguments):
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.draws)
    cells = [(name, n, prior, seed) for name in BENCHMARKS for n in SIZES for prior in PRIORS for seed in seeds]
    cells += [("first 150 rows", 200, None, seed) for seed in seeds]
    if arguments.designs:
        cells = [(name, 200, design, s) for s in seeds for name in FEW for design in ("star", "shared", "wrong")]
        cells += [(name, 300, design, s) for s in seeds for name in MANY for design in ("loose", "shared", "wrong")]
        cells += [(name, 1500, design, s) for s in seeds for name in MANY for design in MANY_WRONG]
    run_all(run_cell, cells, arguments.jobs, arguments.results)


def read(path):
    lines = map(json.loads, path.read_text().splitlines())
    return {tuple(cell): values for cell, values in lines if values is not None}


def table(before, after):
    """Mean accuracies, paired differences with their standard errors, by set and in all; medians of CPU seconds."""
    lines = ["| set | pairs | prior | before | after | after - before (s.e.) | s before | s after |", "|---" * 8 + "|"]
    shared = sorted(before.keys() & after.keys(), key=str)
    groups = {(n, prior, name): [] for name, n, prior, _ in shared}
    for cell in shared:
        groups[cell[1], cell[2], cell[0]].append(cell)
    for n, prior in sorted({(n, prior) for n, prior, name in groups if name in BENCHMARKS}, key=str):
        parts = {name: cells for (m, p, name), cells in groups.items() if (m, p) == (n, prior) and name in BENCHMARKS}
        for name, cells in parts.items():
            lines.append(row(name, n, prior, cells, before, after))
        lines.append(row("**all**", n, prior, [cell for cells in parts.values() for cell in cells], before, after))
    for (n, prior, name), cells in groups.items():
        if name not in BENCHMARKS:
            lines.append(row(name, n, prior, cells, before, after))
    for n in {n for n, prior, name in groups if name in MANY}:
        cells = [cell for (m, _, name), cells in groups.items() if name in MANY for cell in cells]
        lines.append(row("**all**", n, "K > 2", cells, before, after))
    return lines


def row(name, n, prior, cells, before, after):
    at = 1 if prior == 0.5 else 0
    a, b = (np.array([values[cell] for cell in cells]) for values in (before, after))
    gap = 100 * (b[:, at] - a[:, at])
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
    means = f"{100 * a[:, at].mean():.1f} | {100 * b[:, at].mean():.1f}"
    return (
        f"| {name} | {n} | {'own' if prior is None else prior} | {means} "
        f"| {gap.mean():+.2f} ({error:.2f}) | {np.median(a[:, 2]):.2f} | {np.median(b[:, 2]):.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    part = commands.add_parser("measure")
    part.add_argument("results", type=Path)
    part.add_argument("--draws", type=int, default=12)
    part.add_argument("--first-seed", type=int, default=5000)
    part.add_argument("--jobs", type=int, default=os.cpu_count())
    part.add_argument("--designs", action="store_true")
    part.set_defaults(run=measure)
    part = commands.add_parser("compare")
    part.add_argument("before", type=Path)
    part.add_argument("after", type=Path)
    part.set_defaults(run=lambda arguments: print(*table(read(arguments.before), read(arguments.after)), sep="\n"))
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
