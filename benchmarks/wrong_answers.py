"""What wrong answers cost: processor seconds of fits beside fits of the same questions, all answered right.

    SDULEARN_DATA=folder make bench-wrong

prints two tables. Ten classes: loose pairs of which 30% are answered wrongly, the rate given, with the accuracy under
the best names. Two classes: 1,000 answers, 15% wrong, of four annotators, the rates estimated; seconds of the fit, and
how many times as long it takes as with right answers.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings

import numpy as np
from classes import matched_accuracy
from paper import load_benchmark, load_multiclass
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, fit_table, stack_pairs

N_CLASSES, SHARE_TEN = 10, 0.3
N_ANSWERS, SHARE_TWO, N_PEOPLE, N_UNLABELED = 1000, 0.15, 4, 500


@functools.cache
def two_classes(name):
    X, y = load_benchmark(name)
    return X.toarray() if hasattr(X, "toarray") else X, y


@functools.cache
def ten_classes(name):
    """Points of ten classes, and these, numbered from 1; digits are drawn again, with noise."""
    if name != "digits":
        return load_multiclass(name)
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(X), 30_000)
    return X[drawn] + rng.normal(scale=2.0, size=(len(drawn), X.shape[1])), y[drawn] + 1


def fit_ten(name, n_pairs, seed):
    """Processor seconds of a fit of loose pairs, and its accuracy."""
    X, y = ten_classes(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    test = order[: len(X) // 5]
    # Each end is a point of its own, also where rows are fewer than ends.
    train = rng.choice(order[len(test) :], 2 * n_pairs, replace=len(X) - len(test) < 2 * n_pairs)
    scaler = StandardScaler().fit(X[train])
    ends = np.arange(2 * n_pairs).reshape(-1, 2)
    same = (y[train[::2]] == y[train[1::2]]) ^ (rng.random(n_pairs) < SHARE_TEN)
    rows, codes = stack_pairs(scaler.transform(X[train]), ends, same)
    model = PairLogisticRegressionCV(n_classes=N_CLASSES, error_rate=SHARE_TEN)
    seconds = cpu_seconds(model.fit, rows, codes)
    return seconds, matched_accuracy(model.predict(scaler.transform(X[test])), y[test])


def loose(rng):
    """Every question about two new points."""
    return np.arange(2 * N_ANSWERS).reshape(-1, 2)


def shared(rng):
    """800 questions about 500 points, and every fourth of them again."""
    ends = rng.integers(0, 500, (2 * N_ANSWERS, 2))
    ends = ends[ends[:, 0] != ends[:, 1]][:800]
    return np.concatenate([ends, ends[::4]])


def repeated(rng):
    """Each of 250 loose questions to all four annotators."""
    return np.tile(np.arange(N_ANSWERS // 2).reshape(-1, 2), (N_PEOPLE, 1))


DESIGNS = {"loose": loose, "shared points": shared, "loose, asked four times": repeated}


def fit_two(name, design, seed, share, whole):
    """Processor seconds of a fit of two classes, and its accuracy."""
    X, y = two_classes(name)
    rng = np.random.default_rng(seed)
    ends = DESIGNS[design](rng)
    n_points = int(ends.max()) + 1
    order = rng.permutation(len(X))
    train = order[: n_points + N_UNLABELED]
    test = order[len(train) :][:2000]
    scaler = StandardScaler().fit(X[train])
    annotators = rng.permutation(np.arange(N_ANSWERS) % N_PEOPLE) + 1
    same = (y[train][ends[:, 0]] == y[train][ends[:, 1]]) ^ (rng.random(N_ANSWERS) < share)
    Z = scaler.transform(X[train])
    if whole:
        return cpu_seconds(fit_table, *tables(Z, ends, same, annotators)), np.nan
    rows, codes = stack_pairs(Z, ends, same, annotators=annotators)
    model = PairLogisticRegressionCV()
    seconds = cpu_seconds(model.fit, rows, codes)
    right = float(np.mean(model.predict(scaler.transform(X[test])) == y[test]))
    return seconds, max(right, 1 - right)


def tables(X, ends, same, annotators):
    """A table of the points and one of the answers, as ``fit_table`` takes them."""
    import pandas as pd

    ids = [f"p{i}" for i in range(len(X))]
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(id=ids)
    answers = {"id_a": ends[:, 0], "id_b": ends[:, 1], "answer": np.where(same, "same", "different")}
    answers = pd.DataFrame(answers).assign(annotator=[f"w{a}" for a in annotators])
    for end in ("id_a", "id_b"):
        answers[end] = "p" + answers[end].astype(str)
    return table, answers


def cpu_seconds(call, *arguments):
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(*arguments)
    return time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--pairs", type=int, nargs="*", default=[10_000])
    parser.add_argument("--ten", nargs="*", default=["digits", "penbased"])
    parser.add_argument("--two", nargs="*", default=["adult", "phishing"])
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.draws)
    print("| ten classes, 30% wrong | pairs | CPU s | accuracy |\n|---|---|---|---|")
    for name in options.ten:
        for n in options.pairs:
            found = np.mean([fit_ten(name, n, seed) for seed in seeds], axis=0)
            print(f"| {name} | {n:,} | {found[0]:.1f} | {found[1]:.2%} |", flush=True)
    print("\n| two classes, 15% wrong | design | fit | CPU s, right | CPU s, wrong | ratio | accuracy, wrong |")
    print("|---|---|---|---|---|---|---|")
    for name in options.two:
        for design in DESIGNS:
            for fit in ("PairLogisticRegressionCV", "fit_table"):
                shares = (0.0, SHARE_TWO)
                whole = fit == "fit_table"
                found = np.mean([[fit_two(name, design, seed, s, whole) for s in shares] for seed in seeds], axis=0)
                (right, _), (wrong, accuracy) = found
                row = f"{right:.1f} | {wrong:.1f} | {wrong / right:.1f} | {accuracy:.2%}"
                print(f"| {name} | {design} | {fit} | {row} |", flush=True)


if __name__ == "__main__":
    main()
