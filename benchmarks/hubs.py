"""Do the intervals of accuracy and agreement cover where answers hang on hubs, or crowd on few points?

    python benchmarks/hubs.py --write        # about ten CPU minutes: 250 draws of what is cheap, fewer of fits
    python benchmarks/hubs.py --draws 250 --part folds --classes 4

``AnswerGraph.hubs`` says which points are hubs: they are in every fold and stay as they are in the interval of
``class_agreement``. Points of Gaussian classes; 200 answers that compare a new point with one point ("star"), with an
example of a class, one hub each, drawn at random ("examples") or mostly that of its own class ("likeliest"), or random
points with each other ("80 items").

- given: ``class_agreement`` of predictions that the answers had no part in.
- folds: ``cross_val_accuracy`` for two classes, the held-out agreement of ``fit_table`` for more. The accuracy of two
  classes is for random questions: there is no "likeliest" there.

The truth is the accuracy of the model on new points, and its agreement with many more questions of the same kind about
the same hubs. Prints the coverage of the 95% intervals; ``--multiple`` tries another rule.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from pages import EVIDENCE, folded, write_section

from sdulearn import PairLogisticRegression, stack_pairs
from sdulearn.answers import graph
from sdulearn.answers.graph import AnswerGraph
from sdulearn.metrics import class_agreement, cross_val_accuracy, folds_over_points
from sdulearn.metrics.cross_validation import fold_models, predictions_of
from sdulearn.workflow.judge import agreement_of_many

N_ANSWERS, N_ROWS, N_MORE = 200, 1000, 20_000
N_FEATURES = 8
# So that predictions of two classes are not much better than those of ten.
DISTANCE = {2: 0.5, 4: 0.9, 10: 1.2}
# Fits of more classes take longer.
DRAWS_OF_FITS = {2: 100, 4: 20, 10: 20}
DESIGNS = ("star", "examples", "likeliest", "20 items", "40 items", "80 items", "400 items")


def population(n_classes, rng):
    """Means of the classes, and a function that draws points of them."""
    means = DISTANCE[n_classes] * rng.normal(size=(n_classes, N_FEATURES))
    shares = rng.dirichlet(np.full(n_classes, 10.0))

    def draw(n):
        y = rng.choice(n_classes, n, p=shares)
        return means[y] + rng.normal(size=(n, N_FEATURES)), y

    return means, draw


def questions(design, y, n, rng, first):
    """Pairs of row numbers; the new points begin at ``first``, the hubs before."""
    if design.endswith("items"):
        ends = rng.integers(0, int(design.split()[0]), (4 * n, 2))
        return ends[ends[:, 0] != ends[:, 1]][:n]
    hubs = np.zeros(n, dtype=int) if design == "star" else rng.integers(0, first, n)
    if design == "likeliest":
        # As a fair model would ask: mostly about the example of the right class.
        right = rng.random(n) < 0.6
        hubs[right] = y[first : first + n][right]
    return np.column_stack([hubs, first + np.arange(n)])


def drawn(design, n_classes, rng):
    """Points, their classes, questions about them, and more questions of the same kind for the truth."""
    means, draw = population(n_classes, rng)
    X, y = draw(N_ROWS + N_MORE)
    first = n_classes
    # One example of each class comes first.
    y[:first] = np.arange(n_classes)
    X[:first] = means + rng.normal(size=means.shape)
    more = np.arange(N_ROWS, N_ROWS + N_MORE)
    if design.endswith("items"):
        further = more.reshape(-1, 2)
    else:
        further = questions(design, np.r_[y[:first], y[more]], N_MORE, rng, first)
        further[:, 1] += N_ROWS - first
    return means, X, y, questions(design, y, N_ANSWERS, rng, first), further


def agreement(predicted, y, ends):
    left, right = ends.T
    return float(np.mean((predicted[left] == predicted[right]) == (y[left] == y[right])))


def given(design, n_classes, rng):
    """Predictions by means that are a little off."""
    means, X, y, ends, further = drawn(design, n_classes, rng)
    off = means + 0.6 * rng.normal(size=means.shape)
    predicted = np.argmin(((X[:, None] - off) ** 2).sum(axis=2), axis=1) + 1
    rows, known = stack_pairs(predicted[:, None], ends, y[ends[:, 0]] == y[ends[:, 1]], unlabeled=None)
    found = class_agreement(rows[:, 0], known).agreement
    return agreement(predicted, y, further), found.value, found.low, found.high


def folds(design, n_classes, rng):
    """What a fit says of itself."""
    _, X, y, ends, further = drawn(design, n_classes, rng)
    if design in ("examples", "likeliest"):
        # That they are of different classes was asked first.
        ends = np.concatenate([np.argwhere(np.tri(n_classes, k=-1)), ends])
    rows, known = stack_pairs(X[:N_ROWS], ends, y[ends[:, 0]] == y[ends[:, 1]])
    settings = PairLogisticRegression(0.01, n_classes=n_classes, error_rate=0.0)
    model = settings.fit(rows, known)
    if n_classes == 2:
        right = float(np.mean(model.predict(X[N_ROWS:]) == 2 * y[N_ROWS:] - 1))
        found = cross_val_accuracy(settings, rows, known)
        return max(right, 1 - right), found.value, found.low, found.high
    answers = AnswerGraph.from_y(known)
    reference = model.predict(rows)
    parts = list(fold_models(settings, rows, answers, reference, cv=folds_over_points(5, answers)))
    predicted = predictions_of(parts, rows, reference)
    found = agreement_of_many(predicted, None, parts, answers, None)[0].agreement
    return agreement(model.predict(X), y, further), found.value, found.low, found.high


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, help="of each cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--classes", type=int, nargs="+", choices=list(DISTANCE), default=list(DISTANCE))
    parser.add_argument("--designs", nargs="+", default=DESIGNS)
    parser.add_argument("--part", nargs="+", choices=["given", "folds"], default=["given", "folds"])
    parser.add_argument("--multiple", type=float, help="of the mean number of answers, from which a point is a hub")
    parser.add_argument("--write", action="store_true", help="put the table into docs/evidence/intervals.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.multiple is not None:
        graph._HUB_MULTIPLE = arguments.multiple
    table = [
        "| part | classes | design | draws | true | estimate | width | interval contains it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print(*table, sep="\n")
    for part in arguments.part:
        for n_classes in arguments.classes:
            for design in arguments.designs:
                if part == "folds" and n_classes == 2 and design == "likeliest":
                    continue
                began = time.perf_counter()
                draws = arguments.draws or (250 if part == "given" else DRAWS_OF_FITS[n_classes])
                seeds = range(arguments.seed, arguments.seed + draws)
                cells = [globals()[part](design, n_classes, np.random.default_rng([seed, n_classes])) for seed in seeds]
                true, value, low, high = np.array(cells).T
                covers = np.mean((low <= true) & (true <= high))
                table.append(
                    f"| {part} | {n_classes} | {design} | {draws} | {true.mean():.3f} | {value.mean():.3f} | "
                    f"{np.mean(high - low):.3f} | {covers:.1%} |"
                )
                print(table[-1], f"{time.perf_counter() - began:.0f} s", flush=True)
    if arguments.write:
        write_section(EVIDENCE / "intervals.md", "hubs", folded("All cells", table), "draws as stated")


if __name__ == "__main__":
    main()
