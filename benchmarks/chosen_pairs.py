"""Are pairs that were chosen by their features noticed, and random, linked and match questions left alone?

    SDULEARN_DATA=folder python benchmarks/chosen_pairs.py [--chosen 40] [--clean 1000]

Chosen pairs: each row with its nearest neighbour, or with a row of its own group (k-means of the features, or tenths
of a column), through ``fit_table``, as users call it, with the accuracy that it prints. Clean designs: random pairs
and random pairs of few rows by the test itself; linked and match questions by a log of ``ask`` and ``fit_table``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from runs import quietly
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from sdulearn import fit_table
from sdulearn.asking import ask
from sdulearn.datasets import make_waveform

N_ANSWERS = 100
CODE = "pairs_by_features"


def population(seed, n_classes=2):
    """Standardised rows and classes of one of several sets."""
    rng = np.random.default_rng([seed, n_classes])
    if n_classes > 2:
        X, y = (load_iris, load_wine, load_digits)[seed % 3](return_X_y=True)
    elif seed % 4 == 0:
        y = rng.integers(0, 2, 600)
        X = rng.normal(size=(600, 5)) + 0.6 * y[:, None]
    elif seed % 4 == 1:
        X, y = make_waveform(600, random_state=int(rng.integers(2**31)))
        y = (y > 0).astype(int)
    elif seed % 4 == 2:
        X, y = load_breast_cancer(return_X_y=True)
    else:
        X, y = load_digits(return_X_y=True)
        y = y % 2
    rows = rng.permutation(len(X))[:600]
    return StandardScaler().fit_transform(X[rows]), y[rows], rng


def chosen_pairs(kind, X, rng):
    """Pairs that depend on the features."""
    if kind == "nearest":
        neighbours = NearestNeighbors(n_neighbors=2).fit(X).kneighbors(X, return_distance=False)
        return np.array([row for row in neighbours[rng.permutation(len(X))] if row[0] != row[1]])[:N_ANSWERS]
    if rng.random() < 0.5:
        group = KMeans(8, n_init=1, random_state=int(rng.integers(2**31))).fit(X).labels_
    else:
        # Columns with one value in most rows would make a group of nearly all: random pairs.
        tenths = np.array([np.searchsorted(np.quantile(x, np.linspace(0.1, 0.9, 9)), x) for x in X.T])
        group = rng.choice([x for x in tenths if np.bincount(x).max() <= len(X) / 2])
    pairs = []
    while len(pairs) < N_ANSWERS:
        a = rng.integers(len(X))
        b = rng.choice(np.flatnonzero(group == group[a]))
        if a != b:
            pairs.append((a, b))
    return np.array(pairs)


def table_of(X):
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    table.insert(0, "id", np.arange(len(X)))
    return table


def answers_of(ends, y):
    same = np.where(y[ends[:, 0]] == y[ends[:, 1]], "same", "different")
    return pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": same})


@quietly
def report_of(X, answers, n_classes=2):
    return fit_table(table_of(X), answers, model="linear", classes=n_classes).report


def is_noticed(report):
    return any(finding.code == CODE for finding in report.findings)


def chosen(kind, n):
    """How many are noticed, and what the accuracy is said to be of."""
    noticed = 0
    for seed in tqdm(range(n), desc=kind):
        X, y, rng = population(seed)
        # Classes overlap, or near neighbours would hardly ever be called different.
        y = np.where(rng.random(len(y)) < 0.2, 1 - y, y)
        report = report_of(X, answers_of(chosen_pairs(kind, X, rng), y))
        noticed += is_noticed(report) and getattr(report.accuracy, "basis", "") == "chosen pairs"
    print(f"| {kind} | noticed | {noticed} of {n} |", flush=True)


def random(kind, n):
    """By the test itself, through the public function."""
    from sdulearn.diagnostics import check_assumptions

    alarms = 0
    for seed in tqdm(range(n), desc=kind):
        X, y, rng = population(seed)
        if kind == "random, loose":
            ends = rng.permutation(len(X))[: 2 * N_ANSWERS].reshape(-1, 2)
        else:
            ends = np.array([rng.choice(len(X) // 6, 2, replace=False) for _ in range(N_ANSWERS)])
        codes = np.where(y[ends[:, 0]] == y[ends[:, 1]], 1, -1) * np.arange(1, N_ANSWERS + 1)
        known = np.column_stack([np.repeat(codes, 2), ends.ravel()])
        alarms += any(finding.code == CODE for finding in check_assumptions(X[ends.ravel()], known))
    print(f"| {kind} | false alarms | {alarms} of {n} |", flush=True)


def asked(design, n):
    """A log as ``ask`` writes it, fitted."""
    alarms = 0
    for seed in tqdm(range(n), desc=design):
        X, y, _ = population(seed, 2 if design == "linked" else 3)
        X, y = X[:150], y[:150]
        n_classes = len(np.unique(y))
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "answers.jsonl"
            log.write_text("\n".join(map(json.dumps, lines_of(design, X, y, n_classes, seed))) + "\n")
            alarms += is_noticed(report_of(X, str(log), n_classes))
    print(f"| {design} | false alarms | {alarms} of {n} |", flush=True)


@quietly
def lines_of(design, X, y, n_classes, seed):
    """The lines of a log of 40 questions."""
    if design == "linked":
        asker = ask(X, lambda a, b: bool(y[a] == y[b]), 40, random_state=seed)
    else:

        def match(left, choices):
            same = [k for k, choice in enumerate(choices) if y[choice] == y[left]]
            return same[0] if same else "none"

        asker = ask(X, match, 40, design="match", n_classes=n_classes, random_state=seed)
    yield {"event": "session", "seed": seed, "design": design, "classes": n_classes, "session": "s"}
    for number, answer in enumerate(asker.given, 1):
        line = {"event": "answer", "number": number, "form": answer.question.form, "why": answer.question.why}
        line |= {"items": list(map(str, answer.question.items)), "groups": answer.groups}
        yield line | {"rank": answer.question.rank, "session": "s"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chosen", type=int, default=40)
    parser.add_argument("--clean", type=int, default=1000)
    parser.add_argument("--designs", nargs="+", help="some of the clean designs, by name")
    arguments = parser.parse_args()
    print("| design | measure | result |\n|---|---|---|")
    for kind in ("nearest", "group") if arguments.chosen else ():
        chosen(kind, arguments.chosen)
    clean = {"random, loose": random, "random, shared": random, "linked": asked, "match": asked}
    for design, count in clean.items() if arguments.clean else ():
        if arguments.designs is None or design in arguments.designs:
            count(design, arguments.clean)


if __name__ == "__main__":
    main()
