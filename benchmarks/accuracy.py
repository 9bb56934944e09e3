"""How accurate the joint estimator is, against the paper, the marginal risks and true labels.

    SDULEARN_DATA=folder make bench-accuracy

writes docs/accuracy.md and a table of README.md. All settings are chosen by the estimators themselves from their
training data; test points are only scored. Accuracy is never "best of two": the larger class on unlabeled rows is +1,
and at prior 1/2 five labelled points decide the sign.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np
from pages import write_between
from paper import BENCHMARKS, load_benchmark, paper_table
from runs import quietly, run_all, versions
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, SDUClassifierCV
from sdulearn.datasets import sample_sdu

SIZES = (50, 200)
PRIORS = (0.7, 0.5, 0.55, 0.6, 0.9, 0.95)
MARGINAL = [f"{risk} {loss}" for risk in ("sdsu", "sddu", "sudu") for loss in ("squared", "double_hinge")]


def supervised(X, y):
    """scikit-learn's logistic regression with C by cross-validation, on true labels."""
    options = {"scoring": "neg_log_loss", "max_iter": 1000}
    if "use_legacy_attributes" in LogisticRegressionCV().get_params():
        options["use_legacy_attributes"] = False
    folds = min(5, int(np.bincount(y > 0).min()))
    return LogisticRegressionCV(Cs=8, cv=folds, **options).fit(X, y)


class Draw:
    """One draw: standardised training rows with their codes and true labels, test points, five labelled points."""

    def __init__(self, name, n_pairs, prior, seed):
        X, y = load_benchmark(name)
        tagged = np.column_stack([X, y])
        rows, self.codes, test, self.y_test = sample_sdu(
            tagged, y, n_pairs=n_pairs, n_unlabeled=500, prior=prior, n_test=500, random_state=seed
        )
        scaler = StandardScaler().fit(rows[:, :-1])
        self.X, self.y = scaler.transform(rows[:, :-1]), rows[:, -1].astype(int)
        self.X_test, self.prior = scaler.transform(test[:, :-1]), prior
        self.n_pairs, self.rng = n_pairs, np.random.default_rng([seed, n_pairs])

    def accuracy(self, model):
        return float(np.mean(model.predict(self.X_test) == self.y_test))

    def joint(self):
        model = PairLogisticRegressionCV().fit(self.X, self.codes)
        if self.prior == 0.5:
            few = self.rng.choice(np.flatnonzero(self.codes == 0), 5, replace=False)
            model.orient(self.X[few], self.y[few])
        return self.accuracy(model)

    def marginal(self, method):
        """By counts, as the paper; where the counts have no answer the true prior helps out."""
        risk, loss = method.split()
        counted = np.sum(self.codes > 0) > np.sum(self.codes < 0)
        prior = None if counted else self.prior
        return self.accuracy(SDUClassifierCV(risk, loss, prior=prior).fit(self.X, self.codes))

    def labels(self, n):
        """n labelled points with classes in the ratio of the prior, out of the ends of the pairs and U."""
        n_positive = round(n * self.prior)
        rows = [
            self.rng.choice(np.flatnonzero(self.y == label), count, replace=False)
            for label, count in ((1, n_positive), (-1, n - n_positive))
        ]
        chosen = np.concatenate(rows)
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
    """Markdown tables with the count of rows met beside each target."""
    rows = [(name, n_pairs) for name in BENCHMARKS for n_pairs in SIZES]
    paper = paper_best()
    met = {"paper": 0, "n": 0, "2n": 0, "half": 0}
    main = [
        "| set | pairs | joint | paper's best SDU | our best SDU | n labels | labels of all 2n points |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, n_pairs in rows:
        key = (name, n_pairs, 0.7)
        joint = table.mean(*key, "joint")
        met["paper"] += joint + table.error(*key, "joint") >= paper[name, n_pairs]
        met["n"] += joint + 1 >= table.mean(*key, "n labels")
        met["2n"] += joint + 1 >= table.mean(*key, "2n labels")
        best = table.best_marginal(*key)
        cells = (table.cell(*key, method) for method in ("n labels", "2n labels"))
        main.append(
            f"| {name} | {n_pairs} | {table.cell(*key, 'joint')} | {paper[name, n_pairs]:.1f} | "
            f"{table.cell(*key, best)} {best} | {' | '.join(cells)} |"
        )
    half = ["| set | pairs | joint, sign by 5 labels | n labels |", "|---|---|---|---|"]
    for name, n_pairs in rows:
        key = (name, n_pairs, 0.5)
        met["half"] += table.mean(*key, "joint") + 2 >= table.mean(*key, "n labels")
        half.append(f"| {name} | {n_pairs} | {table.cell(*key, 'joint')} | {table.cell(*key, 'n labels')} |")
    others = [prior for prior in PRIORS if prior not in (0.7, 0.5)]
    rest = ["| set | pairs | " + " | ".join(f"prior {p:g}" for p in others) + " |", "|---|---|" + "---|" * len(others)]
    under = []
    for name, n_pairs in rows:
        cells = []
        for prior in others:
            best = table.best_marginal(name, n_pairs, prior)
            gap, error = table.difference(name, n_pairs, prior, best)
            if gap < -2 * error:
                under.append(f"{name} {n_pairs} at {prior:g} ({gap:+.1f} ± {error:.1f})")
            cells.append(f"{table.mean(name, n_pairs, prior, 'joint'):.1f}, {gap:+.1f} ({error:.1f})")
        rest.append(f"| {name} | {n_pairs} | {' | '.join(cells)} |")
    targets = [
        "| target | wanted | reached |",
        "|---|---|---|",
        f"| prior 0.7: at or above the paper's best SDU column within one standard error | 20 of 20 | {met['paper']} |",
        f"| prior 0.7: within 1 point of n labels | 18 of 20 | {met['n']} |",
        f"| prior 0.7: within 1 point of the labels of all 2n points | 12 of 20 | {met['2n']} |",
        f"| prior 0.5, sign by 5 labels: within 2 points of n labels | 15 of 20 | {met['half']} |",
        f"| priors {', '.join(f'{p:g}' for p in others)}: not under the best SDU risk by over two standard errors | "
        f"{20 * len(others)} of {20 * len(others)} | {20 * len(others) - len(under)} |",
    ]
    notes = f"Under the best SDU risk: {'; '.join(under)}." if under else "Never under the best SDU risk."
    return targets, main, half, rest, notes


def short_table(table):
    """For the README: all sets side by side."""
    paper = paper_best()
    lines = ["| accuracy, % | " + " | ".join(BENCHMARKS) + " |", "|---|" + "---|" * len(BENCHMARKS)]
    for n_pairs in SIZES:
        rows = {
            f"paper's best, {n_pairs} pairs": [f"{paper[name, n_pairs]:.1f}" for name in BENCHMARKS],
            f"**joint, {n_pairs} pairs**": [
                f"**{table.mean(name, n_pairs, 0.7, 'joint'):.1f}**" for name in BENCHMARKS
            ],
            f"{n_pairs} true labels": [f"{table.mean(name, n_pairs, 0.7, 'n labels'):.1f}" for name in BENCHMARKS],
        }
        lines += [f"| {label} | {' | '.join(cells)} |" for label, cells in rows.items()]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "accuracy.md")
    parser.add_argument("--readme", type=Path, default=Path(__file__).parents[1] / "README.md")
    parser.add_argument("--first-seed", type=int, default=1000)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.trials)
    cells = [(name, n, prior, seed) for name in BENCHMARKS for n in SIZES for prior in PRIORS for seed in seeds]
    table = Table(run_all(run_cell, cells, arguments.jobs))
    targets, main_table, half, rest, notes = report(table)
    timing = speed(7)
    software = versions("sdulearn", "numpy", "scipy", "scikit-learn")
    parts = [
        "# Accuracy of the joint estimator",
        f"Written by `make bench-accuracy` (`benchmarks/accuracy.py --trials {arguments.trials}`; {software}). "
        f"Accuracy in % on 500 test points, mean and standard error over {arguments.trials} draws (seeds "
        f"{seeds[0]} to {seeds[-1]}); 500 unlabeled rows, exact class ratios, features standardised on the training "
        "rows; every estimator chooses its own settings from its training data.",
        "## Targets",
        "\n".join(targets),
        notes,
        "## Prior 0.7",
        "\n".join(main_table),
        "## Prior 0.5",
        "The marginal risks are undefined here. Five labelled points name the classes; a wrong naming costs a whole "
        "draw.",
        "\n".join(half),
        "## Other priors: joint, and joint less the best SDU risk on the same draws",
        "The best of SDSU, SDDU and SUDU with squared and double hinge loss, chosen by its mean accuracy on these test "
        "points, which favours it. It is given the true prior if the pair counts imply none.",
        "\n".join(rest),
        "## Speed: a whole CV fit (8 alphas, 5 folds), 200 pairs and 500 unlabeled rows, one thread",
        "\n".join(timing),
    ]
    arguments.out.parent.mkdir(exist_ok=True)
    if arguments.readme:
        write_between(arguments.readme, "accuracy", short_table(table))
    arguments.out.write_text("\n\n".join(parts) + "\n")
    print("\n".join(targets), notes, "\n".join(timing), sep="\n\n")


if __name__ == "__main__":
    main()
