"""How long default fits take, and how often one of them reads y and connects its graph.

    SDULEARN_DATA=folder python tools/core.py

CPU seconds, the median of three draws each, on one thread (OMP_NUM_THREADS=1). "crowd" needs real/birds_* in the
folder, and is left out without it.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from sdulearn import PairLogisticRegressionCV, model_selection, stack_pairs
from sdulearn.answers import AnswerGraph, graph, likelihood, propagate, rates
from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.metrics import cross_val_accuracy


def waveform(n_rows, seed):
    X, y = make_waveform(n_rows, random_state=seed)
    return X, np.where(y > 0, 1, -1)


def loose(seed):
    X, y = waveform(6000, seed)
    return sample_sdu(X, y, n_pairs=200, n_unlabeled=500, prior=0.7, exact=False, random_state=seed)


def answers(seed, n_answers, n_points, wrong=0.0, people=1, chain=False):
    """Rows and y of answers about some points of 700 rows, in a chain or at random."""
    rng = np.random.default_rng(seed)
    X, y = waveform(700, seed)
    ends = np.array([rng.choice(n_points, 2, replace=False) for _ in range(n_answers)])
    if chain:
        ends = np.column_stack([np.arange(n_answers), np.arange(1, n_answers + 1)])
    same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.random(n_answers) < wrong)
    return stack_pairs(X, ends, same, annotators=rng.integers(1, people + 1, n_answers) if people > 1 else None)


def ten_classes(seed):
    X, y = load_digits(return_X_y=True)
    ends = np.random.default_rng(seed).integers(0, len(X), (1500, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return stack_pairs(X / 16, ends, y[ends[:, 0]] == y[ends[:, 1]])


def crowd(_):
    folder = Path(os.environ.get("SDULEARN_DATA", "")) / "real"
    given = pd.read_csv(folder / "birds_answers.csv")
    X = np.load(folder / "birds_X.npy")
    people = pd.factorize(given["annotator"])[0] + 1
    same = (given["label"] == "similar").to_numpy()
    return stack_pairs(X, given[["id_a", "id_b"]].to_numpy(), same, annotators=people)


def seconds(work, draw, n_draws=3):
    """Median CPU seconds of some work on a few draws."""
    times = []
    for seed in range(n_draws):
        rows, y = draw(seed)
        began = time.process_time()
        work(rows, y)
        times.append(time.process_time() - began)
    return float(np.median(times))


class Counter:
    """Counts the calls of a function, wherever it is imported."""

    def __init__(self, *places):
        self.n = 0
        function = getattr(*places[0])

        def counted(*arguments, **options):
            self.n += 1
            return function(*arguments, **options)

        for place in places:
            setattr(*place, counted)


def main():
    warnings.simplefilter("ignore")
    default = PairLogisticRegressionCV()
    several = [(f"400 answers about 200 rows, three people, {wrong:.0%} wrong", wrong) for wrong in (0.05, 0.1, 0.3)]
    rows = [
        ("200 loose pairs, 500 unlabeled rows", default.fit, loose),
        ("200 answers about 100 rows", default.fit, lambda seed: answers(seed, 200, 100)),
        ("200 answers in a chain", default.fit, lambda seed: answers(seed, 200, 201, chain=True)),
        ("ten classes, 1,500 pairs", PairLogisticRegressionCV(n_classes=10).fit, ten_classes),
    ]
    for name, wrong in several:
        rows.append((f"{name}: fit", default.fit, lambda seed, wrong=wrong: answers(seed, 400, 200, wrong, 3)))
        judge = lambda X, y: cross_val_accuracy(default, X, y)  # noqa: E731
        rows.append((f"{name}: cross_val_accuracy", judge, lambda seed, wrong=wrong: answers(seed, 400, 200, wrong, 3)))
    print("| | CPU seconds |\n|---|---|")
    for name, work, draw in rows:
        print(f"| {name} | {seconds(work, draw):.2f} |", flush=True)
    if (Path(os.environ.get("SDULEARN_DATA", "")) / "real").exists():
        took = seconds(PairLogisticRegressionCV(n_classes=6).fit, crowd, 1)
        print(f"| 300 annotators, 9,000 answers, six classes | {took:.1f} |")
    counters = {
        "y is read": Counter((graph, "pair_up")),
        "connect": Counter(*((module, "connect") for module in (graph, likelihood, propagate, rates, model_selection))),
        "FactorGraph": Counter((propagate.FactorGraph, "_reduced")),
        "graphs from y": Counter((AnswerGraph, "from_y")),
    }
    default.fit(*answers(0, 300, 150, people=3))
    print("\nOne fit of 300 shared answers of three people:", {name: count.n for name, count in counters.items()})


if __name__ == "__main__":
    main()
