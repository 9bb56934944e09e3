"""How accurate a model is by the number of answers: the table of README, and "how-many" in docs/evidence/labels.md.

    SDULEARN_DATA=folder make bench-how-many

Draws are random: the share of similar pairs varies as it does in practice. A draw with fewer than two answers or
labels of a kind allows no cross-validation, and counts as a model that predicts the larger class.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
from accuracy import supervised
from pages import EVIDENCE, table, write_between, write_section
from paper import BENCHMARKS, load_benchmark
from runs import quietly, run_all
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, SDUClassifierCV
from sdulearn.datasets import sample_sdu

ROOT = Path(__file__).parents[1]
SIZES = (25, 50, 100, 200, 400)
# Of the table of README, with classes as in the data.
SHORT_SIZES = (50, 200, 1000)
PRIORS = {0.7: "70% in the larger class", None: "classes as in the data"}


@quietly
def run_cell(cell):
    """Accuracy in % from answers, from as many labels, by the larger class and by the paper's risk, on one draw."""
    name, prior, n_pairs, seed = cell
    X, y = load_benchmark(name)
    y = y if np.mean(y == 1) >= 0.5 else -y
    sizes = {"n_pairs": n_pairs, "n_unlabeled": 500, "n_test": 1000}
    drawn, codes, test, y_test = sample_sdu(
        np.column_stack([X, y]), y, **sizes, prior=prior, exact=False, random_state=seed
    )
    scaler = StandardScaler().fit(drawn[:, :-1])
    rows, X_test = (scaler.transform(part[:, :-1]) for part in (drawn, test))
    chosen = np.random.default_rng([seed, n_pairs]).permutation(2 * n_pairs)[:n_pairs]
    by_labels = from_labels(rows[chosen], drawn[chosen, -1].astype(int))
    models = [from_answers(PairLogisticRegressionCV(), rows, codes), by_labels, None]
    if prior is None and n_pairs in SHORT_SIZES:
        # Its risk is given the share of the larger class, which random pairs often do not tell.
        paper = SDUClassifierCV(prior=float(np.mean(y == 1)))
        models.append(from_answers(paper, rows, codes.reshape(len(rows), -1)[:, 0]))
    predicted = (model.predict(X_test) if model else 1 for model in models)
    return [100 * float(np.mean(classes == y_test)) for classes in predicted]


def from_answers(estimator, rows, codes):
    """Fit it; in fewer folds where one kind of pair is rare, None where it is almost absent."""
    signs = np.sign(codes if codes.ndim == 1 else codes[:, 0])
    rarer = min(np.sum(signs > 0), np.sum(signs < 0)) // 2
    return estimator.set_params(cv=min(5, int(rarer))).fit(rows, codes) if rarer > 1 else None


def from_labels(rows, y):
    """scikit-learn's logistic regression; None where one class is almost absent."""
    return supervised(rows, y) if np.bincount(y > 0, minlength=2).min() > 1 else None


def page(results, n_draws):
    """Lines of the section's table: means over sets and draws."""
    found = {
        key: np.array([accuracies for cell, accuracies in results if cell[1:3] == key])
        for key in itertools.product(PRIORS, SIZES)
    }
    named = {prior: np.mean([found[prior, n][:, 0] >= 50 for n in SIZES]) for prior in PRIORS}
    larger = {prior: np.mean([found[prior, n][:, 2] for n in SIZES]) for prior in PRIORS}
    rows = []
    for n in SIZES:
        # Answers do not name the classes.
        pairs = [np.maximum(found[prior, n][:, 0], 100 - found[prior, n][:, 0]).mean() for prior in PRIORS]
        labels = [found[prior, n][:, 1].mean() for prior in PRIORS]
        cells = [accuracy for both in zip(pairs, labels, strict=True) for accuracy in both]
        rows.append([str(n), *(f"{accuracy:.1f}" for accuracy in cells)])
    head = ["n", *(f"{text}: {kind}" for text in PRIORS.values() for kind in ("n answers", "n labels"))]
    return [
        f"Accuracy in %, mean over ten sets and {n_draws} random draws of each, with 500 unlabeled rows.",
        "Answers are scored up to the names of the classes; taking the larger class as +1 names them right",
        f"in {named[0.7]:.0%} of the draws with 70% in the larger class, and in {named[None]:.0%} of the others.",
        f"Always predicting the larger class is right for {larger[0.7]:.0f}% and {larger[None]:.0f}% of the rows.",
        "",
        *table(head, rows),
    ]


def short_table(results):
    """Lines of the table of README; the best of a column is bold."""
    rows = {"n same/different answers": [], "n labels": [], "n answers, the paper's risk": []}
    for n in SHORT_SIZES:
        pairs, labels, _, paper = np.array([found for cell, found in results if cell[1:3] == (None, n)]).T
        means = [np.maximum(pairs, 100 - pairs).mean(), labels.mean(), paper.mean()]
        for cells, mean in zip(rows.values(), means, strict=True):
            text = f"{mean:.1f}"
            cells.append(f"**{text}**" if text == f"{max(means):.1f}" else text)
    head = ["accuracy, %", *(f"n = {n:,}" for n in SHORT_SIZES)]
    return table(head, [[name, *cells] for name, cells in rows.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--dry", action="store_true", help="print the table, and leave the page as it is")
    options = parser.parse_args()
    kinds = [*itertools.product(PRIORS, SIZES), (None, SHORT_SIZES[-1])]
    cells = [(name, *kind, seed) for name in BENCHMARKS for kind in kinds for seed in range(options.draws)]
    results = run_all(run_cell, cells, options.jobs)
    lines, short = page([(cell, found[:3]) for cell, found in results], options.draws), short_table(results)
    print("\n".join([*lines, *short]))
    if not options.dry:
        write_section(EVIDENCE / "labels.md", "how-many", lines, f"{options.draws} draws per data set")
        write_between(ROOT / "README.md", "how-well", short)


if __name__ == "__main__":
    main()
