"""What each part of the joint estimator is worth on random draws: paired differences to the default.

    SDULEARN_DATA=folder python benchmarks/ablation.py measure RESULTS.jsonl
    python benchmarks/ablation.py show RESULTS.jsonl

At ac93cb7b, where the parts are parameters. ``folds`` and ``evidence`` choose alpha by that rule at covariance power 1,
from the same start, with no pull to an estimated prior and answers that are wrong at a rate of 0.02.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
from paper import BENCHMARKS, load_benchmark
from runs import quietly, run_all
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, stack_pairs
from sdulearn.asking import ask

N_UNLABELED = 500
N_TEST = 1000
PRIOR = 0.7
RATE = 0.02
DESIGNS = ("loose 50", "loose 200", "star 50", "star 200", "chain 50", "chain 200", "shared 200", "linked 50", "linked 100")
PLAIN = {"prior_strength": 0}
POWER = {"prior_strength": 0, "covariance_powers": (1,)}
VARIANTS = {
    "default": {},
    "no pull": PLAIN,
    "no pull, power 1": POWER,
    "no pull, start from the moment": PLAIN | {"init": "moment"},
    "no pull, power 1, moment": POWER | {"init": "moment"},
    "no pull, power 1, moment, rate 0.02": POWER | {"init": "moment", "error_rate": RATE},
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
    """Accuracy of each variant, up to the flip of names, which is not what they differ in."""
    design, name, seed = cell
    kind, n = design.split()[0], int(design.split()[1])
    n_rows = {"loose": 2 * n, "shared": n // 2, "linked": 0}.get(kind, n + 1) + N_UNLABELED
    X, y, X_test, y_test, rng = population(name, n_rows, seed)
    if kind == "linked":
        asker = ask(X, lambda a, b: bool(y[a] == y[b]), n, random_state=seed)
        rows, codes = asker.stack()
    else:
        ends = questions(kind, n, rng)
        rows, codes = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])

    def accuracy(model):
        right = float(np.mean(model.predict(X_test) == y_test))
        return max(right, 1 - right)

    found = {}
    for variant, parameters in VARIANTS.items():
        model = PairLogisticRegressionCV(**parameters).fit(rows, codes)
        found[variant] = accuracy(model)
    alphas = model.alphas_[:, 0]
    usable = np.isfinite(model.evidence_[:, 0])
    rules = {"folds": model.cv_results_["mean_test_score"], "evidence": model.evidence_[:, 0]}
    for rule, scores in rules.items():
        alpha = float(alphas[np.argmax(np.where(usable, scores, -np.inf))])
        options = {"covariance_power": 1, "prior_strength": 0, "error_rate": RATE, "init": "moment"}
        found[rule] = accuracy(PairLogisticRegression(alpha, **options).fit(rows, codes))
    return found


def measure(arguments):
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.draws)
    cells = [(design, name, seed) for design in arguments.designs for name in arguments.sets for seed in seeds]
    run_all(run_cell, cells, arguments.jobs, arguments.results)


def show(arguments):
    results = [json.loads(line) for line in arguments.results.read_text().splitlines()]
    variants = list(results[0][1])
    print("| design | draws | default | " + " | ".join(variants[1:]) + " | folds - evidence |")
    print("|---" * (len(variants) + 3) + "|")
    for design in DESIGNS:
        cells = [values for cell, values in results if cell[0] == design]
        if not cells:
            continue
        by = {name: 100 * np.array([values[name] for values in cells]) for name in variants}
        gaps = [by[name] - by["default"] for name in variants[1:]] + [by["folds"] - by["evidence"]]
        texts = [f"{gap.mean():+.2f} ({gap.std(ddof=1) / np.sqrt(len(gap)):.2f})" for gap in gaps]
        print(f"| {design} | {len(cells)} | {by['default'].mean():.1f} | {' | '.join(texts)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    part = commands.add_parser("measure")
    part.add_argument("results", type=Path)
    part.add_argument("--designs", nargs="+", default=DESIGNS)
    part.add_argument("--sets", nargs="+", default=BENCHMARKS)
    part.add_argument("--draws", type=int, default=6)
    part.add_argument("--first-seed", type=int, default=70_000)
    part.add_argument("--jobs", type=int, default=os.cpu_count())
    part.set_defaults(run=measure)
    part = commands.add_parser("show")
    part.add_argument("results", type=Path)
    part.set_defaults(run=show)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
