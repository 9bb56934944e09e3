"""How accurate the joint estimator is, against the paper, the marginal risks and true labels.

    SDULEARN_DATA=folder make bench-accuracy

writes the sections "accuracy" of docs/evidence/labels.md and "fit-times" of speed.md. Draws are random: the numbers
of similar pairs and of positive rows vary. All settings are chosen by the estimators themselves from their training
data; test points are only scored. The larger class on unlabeled rows is +1; at prior 1/2 accuracy is counted up to
the flip of names.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np
from pages import EVIDENCE, folded, write_section
from paper import BENCHMARKS, load_benchmark, paper_table
from runs import quietly, run_all
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, SDUClassifierCV
from sdulearn.datasets import sample_sdu

SIZES = (50, 200)
PRIORS = (0.7, 0.5, 0.6, 0.9)
MARGINAL = [f"{risk} {loss}" for risk in ("sdsu", "sddu", "sudu") for loss in ("squared", "double_hinge")]


def supervised(X, y):
    """scikit-learn's logistic regression with C by cross-validation, on true labels."""
    options = {"scoring": "neg_log_loss", "max_iter": 1000}
    if "use_legacy_attributes" in LogisticRegressionCV().get_params():
        options["use_legacy_attributes"] = False
    folds = min(5, int(np.bincount(y > 0).min()))
    return LogisticRegressionCV(Cs=8, cv=folds, **options).fit(X, y)


class Draw:
    """One draw: standardised training rows with their codes and true labels, and test points."""

    def __init__(self, name, n_pairs, prior, seed):
        X, y = load_benchmark(name)
        tagged = np.column_stack([X, y])
        rows, self.codes, test, self.y_test = sample_sdu(
            tagged, y, n_pairs=n_pairs, n_unlabeled=500, prior=prior, n_test=500, exact=False, random_state=seed
        )
        scaler = StandardScaler().fit(rows[:, :-1])
        self.X, self.y = scaler.transform(rows[:, :-1]), rows[:, -1].astype(int)
        self.X_test, self.prior = scaler.transform(test[:, :-1]), prior
        self.n_pairs, self.rng = n_pairs, np.random.default_rng([seed, n_pairs])
        # Fewer folds where one kind of pair is rare.
        self.cv = int(np.clip(min(np.sum(self.codes > 0), np.sum(self.codes < 0)) // 2, 2, 5))

    def accuracy(self, model):
        return float(np.mean(model.predict(self.X_test) == self.y_test))

    def joint(self):
        right = self.accuracy(PairLogisticRegressionCV(cv=self.cv).fit(self.X, self.codes))
        return max(right, 1 - right) if self.prior == 0.5 else right

    def marginal(self, method):
        """By counts, as the paper; where the counts have no answer the true prior helps out."""
        risk, loss = method.split()
        counted = np.sum(self.codes > 0) > np.sum(self.codes < 0)
        prior = None if counted else self.prior
        return self.accuracy(SDUClassifierCV(risk, loss, prior=prior, cv=self.cv).fit(self.X, self.codes))

    def labels(self, n):
        """n labelled points, drawn at random from the unlabeled rows."""
        chosen = self.rng.choice(np.flatnonzero(self.codes == 0), n, replace=False)
        return self.accuracy(supervised(self.X[chosen], self.y[chosen]))

    def labelled_pairs(self):
        paired = self.codes != 0
        return self.accuracy(supervised(self.X[paired], self.y[paired]))


@quietly
def run_cell(cell):
    """All methods on one draw: {method: accuracy}."""
    _, n_pairs, prior, _ = cell
    draw = Draw(*cell)
    results = {"joint": draw.joint()}
    if prior in (0.7, 0.5):
        results |= {"n labels": draw.labels(n_pairs), "2n labels": draw.labelled_pairs()}
    if prior != 0.5:
        results |= {method: draw.marginal(method) for method in MARGINAL}
    return results


@quietly
def speed(repeats):
    """Whole CV fit against LogisticRegressionCV(Cs=8, cv=5) on the same rows with labels, one thread."""
    lines = ["| set | joint CV, ms | LogisticRegressionCV, ms | ratio |", "|---|---|---|---|"]
    for name in BENCHMARKS:
        draw = Draw(name, 200, 0.7, 0)
        ours, theirs = [], []
        for _ in range(repeats + 1):
            for job, times in (
                (lambda draw=draw: PairLogisticRegressionCV(alphas=8, cv=5).fit(draw.X, draw.codes), ours),
                (lambda draw=draw: LogisticRegressionCV(**_plain()).fit(draw.X, draw.y), theirs),
            ):
                began = time.perf_counter()
                job()
                times.append(time.perf_counter() - began)
        a, b = (statistics.median(times[1:]) for times in (ours, theirs))
        lines.append(f"| {name} | {1e3 * a:.0f} | {1e3 * b:.0f} | {a / b:.2f} |")
    return lines


def _plain():
    options = {"Cs": 8, "cv": 5}
    if "use_legacy_attributes" in LogisticRegressionCV().get_params():
        options |= {"use_legacy_attributes": False, "scoring": "accuracy"}
    return options


class Table:
    """Accuracies by (set, size, prior, method), in percent."""

    def __init__(self, results):
        self.values = {}
        for (name, n_pairs, prior, _), methods in sorted(results):
            for method, accuracy in methods.items():
                self.values.setdefault((name, n_pairs, prior, method), []).append(100 * accuracy)

    def mean(self, *key):
        return float(np.mean(self.values[key]))

    def error(self, *key):
        return float(np.std(self.values[key], ddof=1) / np.sqrt(len(self.values[key])))

    def cell(self, *key):
        return f"{self.mean(*key):.1f} ({self.error(*key):.1f})"

    def best_marginal(self, name, n_pairs, prior):
        return max(MARGINAL, key=lambda method: self.mean(name, n_pairs, prior, method))

    def difference(self, name, n_pairs, prior, method):
        """Joint less another method on the same draws: mean and standard error."""
        gap = np.subtract(self.values[name, n_pairs, prior, "joint"], self.values[name, n_pairs, prior, method])
        return float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))


def paper_best():
    best = {}
    for (name, n_pairs, method), printed in paper_table().items():
        if "-" in method:
            best[name, n_pairs] = max(best.get((name, n_pairs), 0.0), printed.accuracy)
    return best


def report(table):
    """Markdown tables: prior 0.7, prior 1/2, other priors."""
    rows = [(name, n_pairs) for name in BENCHMARKS for n_pairs in SIZES]
    paper = paper_best()
    main = [
        "| set | pairs | joint | paper's best SDU, exact ratios | our best SDU | n labels | labels of all 2n items |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, n_pairs in rows:
        key = (name, n_pairs, 0.7)
        best = table.best_marginal(*key)
        cells = (table.cell(*key, method) for method in ("n labels", "2n labels"))
        main.append(
            f"| {name} | {n_pairs} | {table.cell(*key, 'joint')} | {paper[name, n_pairs]:.1f} | "
            f"{table.cell(*key, best)} {best} | {' | '.join(cells)} |"
        )
    half = ["| set | pairs | joint | n labels |", "|---|---|---|---|"]
    for name, n_pairs in rows:
        key = (name, n_pairs, 0.5)
        half.append(f"| {name} | {n_pairs} | {table.cell(*key, 'joint')} | {table.cell(*key, 'n labels')} |")
    others = [prior for prior in PRIORS if prior not in (0.7, 0.5)]
    rest = ["| set | pairs | " + " | ".join(f"prior {p:g}" for p in others) + " |", "|---|---|" + "---|" * len(others)]
    for name, n_pairs in rows:
        cells = []
        for prior in others:
            gap, error = table.difference(name, n_pairs, prior, table.best_marginal(name, n_pairs, prior))
            cells.append(f"{table.mean(name, n_pairs, prior, 'joint'):.1f}, {gap:+.1f} ({error:.1f})")
        rest.append(f"| {name} | {n_pairs} | {' | '.join(cells)} |")
    return main, half, rest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--first-seed", type=int, default=1000)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.trials)
    cells = [(name, n, prior, seed) for name in BENCHMARKS for n in SIZES for prior in PRIORS for seed in seeds]
    table = Table(run_all(run_cell, cells, arguments.jobs))
    main_table, half, rest = report(table)
    timing = speed(7)
    lines = [
        "Accuracy in % on 500 test rows, mean and standard error over the draws, which are random; 500 unlabeled rows; "
        "every estimator chooses its own settings from its training data. At a class balance of 0.5 the SDU risks are "
        "undefined, and accuracy is counted up to the names of the classes. In the third table the best SDU risk "
        "is the best of SDSU, SDDU and SUDU with two losses on the test rows, which favours it.",
        *folded("Per data set, 70% in the larger class", main_table),
        *folded("Per data set, classes of equal size", half),
        *folded("Other class balances: joint, and joint - best SDU risk on the same draws", rest),
    ]
    draws = f"{arguments.trials} draws per data set"
    write_section(EVIDENCE / "labels.md", "accuracy", lines, draws)
    write_section(EVIDENCE / "speed.md", "fit-times", timing, "medians of 7 fits")
    print("\n".join(main_table), "\n".join(timing), sep="\n\n")


if __name__ == "__main__":
    main()
