"""Features learned by contrast, then the linear model on answers: accuracy on images, intervals, seconds.

    python benchmarks/networks.py                                          # all sets, five draws: for a GPU
    python benchmarks/networks.py --sets digits small --draws 5            # what a CPU can do: a quarter of an hour
    python benchmarks/networks.py --sets mnist --max-iter 300 --draws 1    # MNIST on a CPU, shortened
    python benchmarks/networks.py --write                                  # write docs/evidence/learners.md

SDULEARN_DATA names a folder with mnist10k.npz, and may hold letters.npz as letters.py writes it. Each result is a line
of benchmarks/networks.jsonl; what is there is not measured again. One encoder per set and draw serves all rows; with
--features FOLDER its features are kept there, and read on a machine without a GPU. Sets:
scikit-learn's digits (8 x 8); "small", 3,500 images of MNIST at 8 x 8; MNIST (8,000 images for training); letters
(letters.py, 20,000 images for training).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from pages import EVIDENCE, write_section
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits

from sdulearn import PairLogisticRegressionCV, stack_pairs
from sdulearn.errors import UselessModelWarning
from sdulearn.metrics import cross_val_agreement

HERE = Path(__file__).parent
# Rows of each set: a number of pairs; "raw N", on pixels; "labels N", "match N"; see `answers`.
ROWS = {
    "digits": ("300", "raw 300", "1000", "raw 1000", "labels 300", "interval 600"),
    "small": ("2000", "raw 2000", "wrong 9000", "interval 1000"),
    "mnist": ("300", "1000", "5000", "10000", "wrong 9000", "unequal 9000", "match 300", "labels 300", "match 1000",
              "labels 1000", "interval 1000"),
    "letters": ("1000", "labels 1000", "5000", "labels 5000", "interval 1000"),
}  # fmt: skip
# Draws of answers for each encoder, where the row is about an interval.
N_INTERVALS = 20
SHAPES = {"digits": (8, 8), "small": (8, 8), "mnist": (28, 28), "letters": (32, 32)}
# Unlabeled rows beside the answers in a linear fit.
N_UNLABELED = 3000


def images(name):
    """Return training and test images, flat, values 0 to 1, and their classes from 0."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return _split(X / 16, y, 1397)
    if name == "letters":
        from letters import letters

        drawn = Path(os.environ.get("SDULEARN_DATA", "")) / "letters.npz"
        X, y = np.load(drawn).values() if drawn.exists() else letters()
        return _split(X / 255, y, 20_000)
    data = np.load(Path(os.environ["SDULEARN_DATA"]) / "mnist10k.npz")
    X, y = data["X"] / 255, data["y"].astype(int)
    if name == "mnist":
        return _split(X, y, 8000)
    padded = np.pad(X.reshape(-1, 28, 28), ((0, 0), (2, 2), (2, 2)))
    X, y = padded.reshape(-1, 8, 4, 8, 4).mean(axis=(2, 4)).reshape(-1, 64)[:5500], y[:5500]
    return _split(X, y, 3500)


def _split(X, y, n):
    order = np.random.default_rng(12345).permutation(len(X))
    X, y = X[order], y[order]
    return X[:n], y[:n], X[n:], y[n:]


def random_pairs(y, n, rng):
    """Return pairs of different points, no point twice if there are enough, and their answers."""
    ends = rng.permutation(len(y))[: 2 * n].reshape(-1, 2) if 2 * n <= len(y) else rng.integers(0, len(y), (2 * n, 2))
    ends = ends[ends[:, 0] != ends[:, 1]][:n]
    return ends, y[ends[:, 0]] == y[ends[:, 1]]


def match_answers(y, n, rng):
    """Return an example of each class, all different, and n other points that are each like one of them."""
    examples = np.array([rng.choice(np.flatnonzero(y == k)) for k in range(10)])
    others = rng.choice(np.setdiff1d(np.arange(len(y)), examples), n, replace=False)
    apart = [(a, b) for k, a in enumerate(examples) for b in examples[:k]]
    ends = np.array([*apart, *zip(others, examples[y[others]], strict=True)])
    return ends, y[ends[:, 0]] == y[ends[:, 1]]


def unequal_rows(y):
    """Return rows in class shares that fall evenly from 2 to 1."""
    rng = np.random.default_rng(77)
    shares = rng.permutation(np.linspace(2, 1, 10))
    most = min(np.sum(y == k) / share for k, share in enumerate(shares))
    return np.concatenate(
        [rng.choice(np.flatnonzero(y == k), int(most * share), False) for k, share in enumerate(shares)]
    )


def answers(kind, n, Z, y, rng):
    """Return the rows and ``y`` of a fit."""
    if kind == "labels":
        labels = np.zeros(len(y), dtype=int)
        chosen = rng.choice(len(y), n, replace=False)
        labels[chosen] = y[chosen] + 1
        ends, same = np.zeros((0, 2), dtype=int), np.zeros(0, dtype=bool)
    else:
        labels = None
        ends, same = match_answers(y, n, rng) if kind == "match" else random_pairs(y, n, rng)
    if kind == "wrong":
        same = same ^ (rng.random(len(same)) < 0.3)
    named = np.flatnonzero(labels) if labels is not None else ends
    others = np.setdiff1d(np.arange(len(y)), named)[:N_UNLABELED]
    return stack_pairs(
        Z, ends, same, labels=labels, unlabeled=np.union1d(others, named) if labels is not None else others
    )


def accuracy(predicted, y):
    """Return the share of right predictions under the best names."""
    counts = np.zeros((10, 10))
    np.add.at(counts, (predicted - 1, y), 1)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(y))


def measure(row, draw, Z, Z_test, y, y_test, seed):
    """Fit the linear model for one row of the table; return the accuracy, and what else there is."""
    kind, _, number = row.rpartition(" ")
    rng = np.random.default_rng([seed, int(number), 38, draw])
    if kind == "unequal":
        kept = unequal_rows(y)
        Z, y = Z[kept], y[kept]
    rows, known = answers(kind, int(number), Z, y, rng)
    model = PairLogisticRegressionCV(n_classes=10)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows, known)
    result = {"seconds": time.perf_counter() - began, "accuracy": accuracy(model.predict(Z_test), y_test)}
    result["warned"] = any(issubclass(note.category, UselessModelWarning) for note in caught)
    if kind == "interval":
        result |= agreement(rows, known, model, Z_test, y_test, rng)
    return result


def agreement(rows, known, model, Z_test, y_test, rng):
    """Compare the interval of the agreement with the truth, on a million pairs of test images."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimate = cross_val_agreement(PairLogisticRegressionCV(n_classes=10), rows, known).agreement
    a, b = rng.integers(0, len(y_test), (2, 10**6))
    predicted = model.predict(Z_test)
    true = float(np.mean((predicted[a] == predicted[b])[a != b] == (y_test[a] == y_test[b])[a != b]))
    return {"agreement": true, "low": float(estimate.low), "high": float(estimate.high)}


def encode(name, X, X_test, seed, options):
    """Return pixels and features of the encoder, and what is said about its training."""
    path = options.pop("features", None)
    if path is not None and path.exists():
        return {"raw": (X, X_test), "encoded": tuple(np.load(path).values())}, None
    from sdulearn.torch import ContrastiveEncoder

    encoder = ContrastiveEncoder(image_shape=SHAPES[name], random_state=seed, **options)
    began = time.perf_counter()
    encoder.fit(X)
    seconds = time.perf_counter() - began
    where = str(next(encoder.module_.parameters()).device)
    note = {"seconds": seconds, "steps": encoder.n_iter_, "device": where, "loss": float(encoder.loss_[-20:].mean())}
    note["images a second"] = encoder.n_iter_ * min(encoder.batch_size, len(X)) / seconds
    encoded = encoder.transform(X), encoder.transform(X_test)
    if path is not None:
        np.savez_compressed(path, *encoded)
    return {"raw": (X, X_test), "encoded": encoded}, note


def run(arguments):
    """Measure what is not measured yet."""
    options = {} if arguments.max_iter is None else {"max_iter": arguments.max_iter}
    options |= {} if arguments.device is None else {"device": arguments.device}
    seen = {(line["set"], line["row"], line["seed"], line["max_iter"]) for line in results(arguments.results)}
    # Fits begin while the next encoder is trained.
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        intervals = []
        submitted = {}
        for name in arguments.sets:
            X, y, X_test, y_test = images(name)
            for seed in range(arguments.draws):
                wanted = ROWS[name] if arguments.rows is None else [row for row in ROWS[name] if row in arguments.rows]
                todo = [row for row in wanted if (name, row, seed, arguments.max_iter) not in seen]
                if not todo and arguments.rows != []:
                    continue
                if arguments.features is not None:
                    options["features"] = arguments.features / f"{name}-{seed}.npz"
                features, note = encode(name, X, X_test, seed, dict(options))
                line = {"set": name, "seed": seed, "max_iter": arguments.max_iter}
                if note is not None:
                    keep(arguments.results, {**line, "row": "encoder", **note})
                for row in todo:
                    rows = features["raw" if row.startswith("raw") else "encoded"]
                    for draw in range(N_INTERVALS if row.startswith("interval") else 1):
                        fit = (measure, row, draw, *rows, y, y_test, seed)
                        if row.startswith("interval"):
                            intervals.append((fit, {**line, "row": row, "draw": draw}))
                        else:
                            submitted[pool.submit(*fit)] = {**line, "row": row, "draw": draw}
        # These take longest.
        submitted |= {pool.submit(*fit): line for fit, line in intervals}
        for fit in as_completed(submitted):
            keep(arguments.results, {**submitted[fit], **fit.result()})


def keep(path, line):
    print(json.dumps(line), flush=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def results(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(path):
    """Write the table of the page."""
    by_row = defaultdict(list)
    for line in results(path):
        by_row[line["set"], line["max_iter"], line["row"], line.get("device", "")].append(line)
    table = ["| images | answers | accuracy | worst | draws | seconds |", "|---|---|---|---|---|---|"]
    rows = [(name, row) for name in ROWS for row in ("encoder", *ROWS[name])]
    for key in sorted(by_row, key=lambda key: (rows.index((key[0], key[2])), key[1] or 0, key[3])):
        lines = by_row[key]
        name, max_iter, row, device = key
        spent = f"{np.mean([line['seconds'] for line in lines]):.0f}"
        shown = name if max_iter is None else f"{name}, {max_iter} steps"
        if row == "encoder":
            steps = np.mean([line["steps"] for line in lines])
            table.append(f"| {shown} | encoder, {steps:.0f} steps, {device} | | | {len(lines)} | {spent} |")
            continue
        kind, _, number = row.rpartition(" ")
        right = [100 * line["accuracy"] for line in lines]
        text = {"": "{} pairs", "raw": "{} pairs, pixels", "wrong": "{} pairs, 30% wrong, rate estimated",
                "unequal": "{} pairs, unequal classes", "interval": "{} pairs", "match": "{} match answers",
                "labels": "{} labels"}[kind].format(f"{int(number):,}")  # fmt: skip
        if kind == "interval":
            covered = np.mean([line["low"] <= line["agreement"] <= line["high"] for line in lines])
            text += f", interval of the agreement covers {covered:.0%}"
        table.append(f"| {shown} | {text} | {np.mean(right):.1f} | {min(right):.1f} | {len(lines)} | {spent} |")
    write_section(EVIDENCE / "learners.md", "networks", table, "draws as stated")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", choices=tuple(ROWS), default=list(ROWS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--rows", nargs="*", help="of the table; none: encoders alone")
    parser.add_argument("--features", type=Path, help="a folder that keeps what encoders give")
    parser.add_argument("--max-iter", type=int, help="steps of the encoder, for a CPU")
    parser.add_argument("--device")
    parser.add_argument("--jobs", type=int, default=1, help="linear fits beside each other")
    parser.add_argument("--results", type=Path, default=HERE / "networks.jsonl")
    parser.add_argument("--write", action="store_true", help="only write the table")
    arguments = parser.parse_args()
    if not arguments.write:
        run(arguments)
    write(arguments.results)


if __name__ == "__main__":
    main()
