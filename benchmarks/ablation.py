"""What each part of the joint estimator is worth on random draws: paired differences to the default.

    SDULEARN_DATA=folder make bench-ablation

writes the section "ablation" of docs/evidence/labels.md.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from pages import EVIDENCE, table, write_section
from paper import BENCHMARKS, load_benchmark
from runs import quietly, run_all
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, stack_pairs

N_UNLABELED = 500
N_TEST = 1000
PRIOR = 0.7
DESIGNS = ("loose 50", "loose 200", "star 50", "chain 50", "shared 200")
VARIANTS = {
    "ridge alone (`covariance_power=0`)": {"covariance_power": 0},
    "`covariance_power=1`": {"covariance_power": 1},
    "`covariance_power=2`": {"covariance_power": 2},
    "all answers taken as right (`error_rate=0`)": {"error_rate": 0},
    "a higher rate (`error_rate=0.05`)": {"error_rate": 0.05},
    "the true prior given (`prior=0.7`)": {"prior": PRIOR},
    "16 alphas": {"alphas": 16},
    "3 folds": {"cv": 3},
}


def population(name, n, seed):
    """Rows and classes with P(+1) = 0.7: n for the table, the rest to test; all standardised on the table."""
    X, y = load_benchmark(name)
    rng = np.random.default_rng(seed)
    share = np.mean(y > 0)
    chance = np.where(y > 0, PRIOR / share, (1 - PRIOR) / (1 - share))
    kept = rng.permutation(np.flatnonzero(rng.random(len(y)) < chance / chance.max()))[: n + N_TEST]
    scaler = StandardScaler().fit(X[kept[:n]])
    X, y = scaler.transform(X[kept]), y[kept].astype(int)
    return X[:n], y[:n], X[n:], y[n:], rng


def questions(design, n, rng):
    """The two points of each answer, numbered from 0."""
    after = np.arange(1, n + 1)
    if design == "loose":
        return np.arange(2 * n).reshape(-1, 2)
    if design == "shared":
        ends = np.array([rng.choice(n // 2, 2, replace=False) for _ in range(n)])
        return np.unique(np.sort(ends, axis=1), axis=0)
    return np.column_stack([after - 1 if design == "chain" else 0 * after, after])


@quietly
def run_cell(cell):
    """Accuracy of the default and of each variant, up to the flip of names, which is not what they differ in."""
    design, name, seed = cell
    kind, n = design.split()[0], int(design.split()[1])
    n_rows = {"loose": 2 * n, "shared": n // 2}.get(kind, n + 1) + N_UNLABELED
    X, y, X_test, y_test, rng = population(name, n_rows, seed)
    ends = questions(kind, n, rng)
    rows, codes = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])
    right = [
        float(np.mean(PairLogisticRegressionCV(**parameters).fit(rows, codes).predict(X_test) == y_test))
        for parameters in ({}, *VARIANTS.values())
    ]
    return [100 * max(share, 1 - share) for share in right]


def section(results):
    """Lines of the section."""
    head = ["instead of the default", *DESIGNS]
    by = {design: np.array([values for cell, values in results if cell[0] == design]) for design in DESIGNS}
    rows = [["default: accuracy, %", *(f"{by[design][:, 0].mean():.1f}" for design in DESIGNS)]]
    for k, variant in enumerate(VARIANTS, 1):
        gaps = [by[design][:, k] - by[design][:, 0] for design in DESIGNS]
        rows.append([variant, *(f"{gap.mean():+.2f} ({gap.std(ddof=1) / np.sqrt(len(gap)):.2f})" for gap in gaps)])
    return [
        "Ten data sets, 70% in the larger class, 500 unlabeled rows, correct answers: loose pairs, a star (all with "
        "one row), a chain, and 200 answers about 100 rows. Differences to the default in percentage points, with "
        "their standard errors in brackets.",
        "",
        *table(head, rows),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=50_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.draws)
    cells = [(design, name, seed) for design in DESIGNS for name in BENCHMARKS for seed in seeds]
    lines = section(run_all(run_cell, cells, arguments.jobs))
    print("\n".join(lines))
    write_section(EVIDENCE / "labels.md", "ablation", lines, f"{arguments.draws} draws per data set")


if __name__ == "__main__":
    main()
