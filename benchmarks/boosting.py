"""Boosted trees and the choice by held-out answers, against linear models and against LightGBM on true labels.

    SDULEARN_DATA=folder make bench-boosting

writes the tables of docs/evidence/learners.md and errors.md. Every estimator chooses its own settings from its
training data; test points are only scored. Results are kept one line a draw in ``--results``: a run that was stopped
goes on where it was. Settings of the trees were tried on seeds from 1000; the numbers here are of seeds from 0.
``--conditions`` measures some parts alone, and writes their tables and no others:

- 0.7: loose pairs, prior 0.7, all models. Draws are random: numbers of similar pairs and of positive rows vary.
- 0.5: prior 0.5, five labels in the fit; and prior 0.7 on the same draws, to compare the gaps to labels.
- wrong: 15% of the answers turned round, and 15% of the labels. The rate is given, or estimated from questions that
  were asked twice: a fifth of the answers are then repeats.
- classes: 2,000 answers about more than two classes, each about a new point and the example of a class (see
  classes.py), against LightGBM on 2,000 labels.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import lightgbm
import numpy as np
from classes import Asker, matched_accuracy
from classes import draw as draw_classes
from pages import EVIDENCE, folded, write_section
from paper import BENCHMARKS, load_benchmark
from runs import quietly, run_all
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

from sdulearn import PairBoostingClassifier, PairModelCV, stack_pairs
from sdulearn.datasets import sample_sdu
from sdulearn.metrics import calibration

SIZES = (200, 1000)
CONDITIONS = ("0.7", "0.5", "wrong", "classes")
MULTICLASS = ("satimage", "segment", "penbased", "vowel")
N_LINKED = 2000
# The linear model of the asker is fitted again after so many answers.
REFIT = 100
WRONG = 0.15
TREES = {"learning_rate": 0.1, "num_leaves": 8, "lambda_l2": 1.0, "min_sum_hessian_in_leaf": 1.0, "min_data_in_leaf": 1}
ROOT = Path(__file__).parents[1]


def boosted_labels(X, y):
    """LightGBM on true labels with our settings, rounds by cross-validation; the model and its held-out log loss."""
    names, codes = np.unique(y, return_inverse=True)
    many = {"objective": "multiclass", "num_class": len(names)} if len(names) > 2 else {"objective": "binary"}
    parameters = {**TREES, **many, "verbosity": -1, "num_threads": 1, "seed": 0}
    table = lightgbm.Dataset(X, label=codes, params=parameters, free_raw_data=False)
    curves = lightgbm.cv(
        parameters, table, 500, nfold=5, stratified=True, seed=0,
        callbacks=[lightgbm.early_stopping(30, verbose=False)],
    )  # fmt: skip
    curve = next(values for name, values in curves.items() if name.endswith("-mean"))
    return lightgbm.train(parameters, lightgbm.Dataset(X, label=codes), len(curve)), min(curve)


def linear_labels(X, y):
    options = {"scoring": "neg_log_loss", "max_iter": 1000}
    if "use_legacy_attributes" in LogisticRegressionCV().get_params():
        options["use_legacy_attributes"] = True
    model = LogisticRegressionCV(Cs=8, cv=5, **options).fit(X, y)
    return model, -float(np.max(np.mean(next(iter(model.scores_.values())), axis=0)))


def best_of_labels(X, y):
    """Predicts classes: LightGBM or logistic regression, by held-out log loss."""
    trees, loss = boosted_labels(X, y)
    line, other = linear_labels(X, y)
    if loss < other:
        return lambda rows: np.where(trees.predict(rows) > 0.5, 1, -1)
    return line.predict


class Draw:
    """Standardised training rows with codes and true labels, and test points."""

    def __init__(self, name, n_pairs, condition, seed):
        X, y = load_benchmark(name)
        self.prior = 0.5 if condition == "0.5" else 0.7
        # A tenth of the points is left over: random draws need more of one class at times. A small set has fewer
        # pairs, unlabeled rows and test points.
        room = 0.9 * min(np.sum(y > 0) / self.prior, np.sum(y < 0) / (1 - self.prior))
        self.n_pairs = n_pairs = min(n_pairs, int(0.42 * room))
        rest = int(min(500, (room - 2 * n_pairs) // 2))
        rows, self.codes, test, self.y_test = sample_sdu(
            np.column_stack([X, y]), y, n_pairs=n_pairs, n_unlabeled=rest, prior=self.prior, n_test=rest,
            exact=False, random_state=seed,
        )  # fmt: skip
        scaler = StandardScaler().fit(rows[:, :-1])
        self.X = scaler.transform(rows[:, :-1])
        self.y = rows[:, -1].astype(int)
        self.X_test = scaler.transform(test[:, :-1])
        self.rng = np.random.default_rng([seed, n_pairs])

    def accuracy(self, predict):
        return 100 * float(np.mean(predict(self.X_test) == self.y_test))

    def flip_answers(self, share):
        """The share of all answers turned round."""
        wrong = self.rng.random(self.n_pairs + 1) < share
        self.codes = np.where(wrong[np.abs(self.codes)], -self.codes, self.codes)

    def repeated(self, share):
        """y with points, where a share of the questions is left out for repeats of others, each wrong by itself."""
        n_again = round(share * self.n_pairs)
        # At random: the similar pairs come first.
        order = self.rng.permutation(np.arange(1, self.n_pairs + 1))
        codes = self.codes.copy()
        point = np.arange(len(codes))
        for again, first in zip(order[:n_again], order[n_again : 2 * n_again], strict=True):
            rows = np.flatnonzero(np.abs(codes) == again)
            shown = np.flatnonzero(np.abs(codes) == first)
            point[rows] = shown
            codes[rows] = again * np.sign(self.y[shown[0]] * self.y[shown[1]])
        wrong = self.rng.random(self.n_pairs + 1) < WRONG
        return np.column_stack([np.where(wrong[np.abs(codes)], -codes, codes), point])

    def table(self, n_labels):
        """y with a label column: so many unlabeled rows tell their class."""
        labels = np.zeros(len(self.y), dtype=int)
        few = self.rng.choice(np.flatnonzero(self.codes == 0), n_labels, replace=False)
        labels[few] = self.y[few]
        return np.column_stack([self.codes, np.arange(len(self.y)), np.zeros_like(labels), labels])

    def labelled(self, n, wrong=0.0):
        """Accuracy from n labelled points; some labels may be wrong."""
        chosen = self.rng.choice(len(self.y), n, replace=False)
        y = np.where(self.rng.random(n) < wrong, -self.y[chosen], self.y[chosen])
        return self.accuracy(best_of_labels(self.X[chosen], y))

    def reliability(self, model):
        return calibration(model.predict_proba(self.X_test)[:, 1], self.y_test).error


@quietly
def run_cell(cell):
    """All methods on one draw."""
    name, size, condition, seed = cell
    if condition == "classes":
        return many_classes(name, size, seed)
    draw = Draw(name, size, condition, seed)
    if condition == "0.5":
        return half(draw, Draw(name, size, "0.7", seed))
    return {"0.7": plain, "wrong": wrong}[condition](draw)


def plain(draw):
    found = {}
    for method, models in (("linear", ["linear"]), ("boosted", ["boosted"]), ("choice", ["linear", "boosted"])):
        began = time.process_time()
        model = PairModelCV(models).fit(draw.X, draw.codes)
        found[f"{method} seconds"] = time.process_time() - began
        found[method] = draw.accuracy(model.predict)
        found[f"{method} ece"] = draw.reliability(model)
    found["chosen"] = model.model_
    found["n labels"] = draw.labelled(draw.n_pairs)
    return found


def half(draw, other):
    model = PairModelCV(prior=0.5).fit(draw.X, draw.table(5))
    usual = PairModelCV().fit(other.X, other.codes)
    return {
        "choice": draw.accuracy(model.predict),
        "n labels": draw.labelled(draw.n_pairs),
        "choice, prior 0.7": other.accuracy(usual.predict),
        "n labels, prior 0.7": other.labelled(other.n_pairs),
    }


def wrong(draw):
    found = {"n right labels": draw.labelled(draw.n_pairs)}
    found["choice, right answers"] = draw.accuracy(PairModelCV().fit(draw.X, draw.codes).predict)
    rows = draw.repeated(0.2)
    # The rows of a repeated question show the points of the first one.
    estimated = PairModelCV().fit(draw.X[rows[:, 1]], rows)
    found["choice, rate estimated"] = draw.accuracy(estimated.predict)
    draw.flip_answers(WRONG)
    found["choice, rate given"] = draw.accuracy(PairModelCV(error_rate=WRONG).fit(draw.X, draw.codes).predict)
    found["n labels"] = draw.labelled(draw.n_pairs, WRONG)
    return found


def many_classes(name, n, seed):
    X, y, X_test, y_test, rng = draw_classes(name, seed)
    ends, same = Asker(X, y, rng, refit=REFIT).ask(n)
    rows, table = stack_pairs(X, ends, same)
    began = time.process_time()
    model = PairBoostingClassifier(n_classes=int(y.max())).fit(rows, table)
    seconds = time.process_time() - began
    chosen = rng.permutation(len(X))[:n]
    names = np.unique(y[chosen])
    trees, _ = boosted_labels(X[chosen], y[chosen])
    return {
        "answers": len(ends),
        "items": len(np.unique(ends)),
        "boosted": 100 * float(matched_accuracy(model.predict(X_test), y_test)),
        "labels": len(chosen),
        "LightGBM": 100 * float(np.mean(names[trees.predict(X_test).argmax(axis=1)] == y_test)),
        "seconds": seconds,
    }


class Results:
    """Draws by (set, size, condition), as they were measured."""

    def __init__(self, lines):
        self.by_key = {}
        for (name, n_pairs, condition, _), found in lines:
            self.by_key.setdefault((name, n_pairs, condition), []).append(found)

    def mean(self, name, n_pairs, condition, method):
        return float(np.mean([found[method] for found in self.by_key[name, n_pairs, condition]]))

    def over_sets(self, n_pairs, condition, method):
        return float(np.mean([self.mean(name, n_pairs, condition, method) for name in BENCHMARKS]))

    def cell(self, name, n_pairs, condition, method):
        values = [found[method] for found in self.by_key[name, n_pairs, condition]]
        if isinstance(values[0], str):
            return ", ".join(f"{value} {values.count(value)}" for value in dict.fromkeys(sorted(values)))
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
        return f"{np.mean(values):.1f} ({error:.1f})"

    def difference(self, row, condition, before, after):
        """How far one method is above another."""
        return self.mean(*row, condition, before) - self.mean(*row, condition, after)


ROWS = [(name, n) for name in BENCHMARKS for n in SIZES]


def usual_figures(results):
    large, small = (results.over_sets(n, "0.7", "choice") for n in (1000, 200))
    linear = [results.over_sets(n, "0.7", "linear") for n in (1000, 200)]
    within = sum(results.difference(row, "0.7", "n labels", "choice") <= 1 for row in ROWS)
    errors = [results.over_sets(200, "0.7", f"{method} ece") for method in ("linear", "boosted", "choice")]
    return [
        f"| mean accuracy over ten sets, 1,000 / 200 pairs, choice by held-out answers (linear: {linear[0]:.1f} / "
        f"{linear[1]:.1f}) | {large:.1f} / {small:.1f} |",
        "| rows within 1 percentage point of n true labels (LightGBM or logistic regression by cross-validation) | "
        f"{within} of {len(ROWS)} |",
        "| expected calibration error, 200 pairs: linear, boosted, choice | "
        f"{', '.join(f'{error:.3f}' for error in errors)} |",
        "| one fit with the choice, 1,000 pairs, mean over the ten sets, CPU seconds | "
        f"{results.over_sets(1000, '0.7', 'choice seconds'):.1f} |",
    ]


def half_figures(results):
    here = np.array([results.difference(row, "0.5", "n labels", "choice") for row in ROWS])
    there = np.array([results.difference(row, "0.5", "n labels, prior 0.7", "choice, prior 0.7") for row in ROWS])
    return [
        "| prior 0.5, sign by 5 labels in the fit: mean gap to n labels, minus that at prior 0.7 | "
        f"{here.mean() - there.mean():+.1f} ({here.mean():+.1f} - {there.mean():+.1f}) |",
        f"| rows in which it is within 2 percentage points | {int(np.sum(here <= there + 2))} of {len(ROWS)} |",
    ]


def wrong_figures(results):
    theirs = np.mean([results.difference(row, "wrong", "n right labels", "n labels") for row in ROWS])
    lines = []
    for rate in ("given", "estimated"):
        methods = ("choice, right answers", f"choice, rate {rate}")
        lost = np.mean([results.difference(row, "wrong", *methods) for row in ROWS])
        lines.append(
            f"| 15% wrong, rate {rate}: percentage points lost, answers and labels | {lost:.1f} against {theirs:.1f} |"
        )
    return lines


def classes_figures(results):
    gaps = [results.difference((name, N_LINKED), "classes", "LightGBM", "boosted") for name in MULTICLASS]
    return [
        "| 2,000 linked answers, more than two classes: sets within 1 percentage point of LightGBM on 2,000 labels | "
        f"{sum(gap <= 1 for gap in gaps)} (mean gap {np.mean(gaps):+.1f}) |"
    ]


# For each condition its figures, and the columns of its table.
PARTS = {
    "0.7": (usual_figures, ("linear", "boosted", "choice", "chosen", "n labels")),
    "0.5": (half_figures, ("choice", "n labels", "choice, prior 0.7", "n labels, prior 0.7")),
    "wrong": (
        wrong_figures,
        ("choice, right answers", "choice, rate given", "choice, rate estimated", "n right labels", "n labels"),
    ),
    "classes": (classes_figures, ("answers", "items", "boosted", "labels", "LightGBM", "seconds")),
}


def rows_of(condition):
    return [(name, N_LINKED) for name in MULTICLASS] if condition == "classes" else ROWS


def table(results, condition, methods):
    """One row a set and size."""
    head = "answers" if condition == "classes" else "pairs"
    lines = [f"| set | {head} | {' | '.join(methods)} |", "|---|---|" + "---|" * len(methods)]
    for name, n in rows_of(condition):
        cells = [results.cell(name, n, condition, method) for method in methods]
        lines.append(f"| {name} | {n} | {' | '.join(cells)} |")
    return lines


def write_part(results, condition, draws):
    """The figures and the table of one condition."""
    figures, methods = PARTS[condition]
    lines = ["| figure | measured |", "|---|---|", *figures(results)]
    print("\n".join(lines))
    page = EVIDENCE / ("errors.md" if condition == "wrong" else "learners.md")
    lines += folded("Per data set", table(results, condition, methods))
    write_section(page, f"boosting-{condition}", lines, draws)


def scale(n_rows, n_answers, width, threads):
    """One fit against LightGBM on labels of all rows, as many rounds; CPU seconds, so other programs do not matter."""
    from sdulearn import PairBoostingClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, width))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 + rng.normal(size=n_rows) > 0, 1, -1)
    codes = np.zeros(n_rows, dtype=int)
    ends = np.arange(2 * n_answers)
    codes[ends] = np.repeat(np.arange(1, n_answers + 1) * y[ends[::2]] * y[ends[1::2]], 2)
    began = time.process_time()
    model = PairBoostingClassifier(n_jobs=threads, max_iter=100).fit(X, codes)
    ours = time.process_time() - began
    rounds = max(len(model.held_out_log_likelihood_) - 1, 1)
    began = time.process_time()
    parameters = {**TREES, "objective": "binary", "verbosity": -1, "num_threads": threads}
    lightgbm.train(parameters, lightgbm.Dataset(X, label=(y > 0).astype(float)), rounds)
    theirs = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    right = float(np.mean(model.predict(X[-50_000:]) == y[-50_000:]))
    return [
        "| rows | columns | answers | rounds | CPU seconds | LightGBM on all labels | ratio | peak memory | accuracy |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| {n_rows:,} | {width} | {n_answers:,} | {rounds} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.2f} | "
        f"{peak:.1f} GB | {100 * right:.1f} |",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("bench-boosting.jsonl"))
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS, help="measure these alone")
    parser.add_argument("--scale", action="store_true", help="measure 10^6 rows and nothing else")
    arguments = parser.parse_args()
    if arguments.scale:
        lines = scale(1_000_000, 100_000, 50, os.cpu_count())
        write_section(EVIDENCE / "speed.md", "boosting-scale", lines, "one run")
        print("\n".join(lines))
        return
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.trials)
    # Draws first, so that a run that is stopped has all sets.
    cells = [
        (name, n, condition, seed)
        for seed in seeds
        for condition in arguments.conditions
        for name, n in rows_of(condition)
    ]
    results = Results(run_all(run_cell, cells, arguments.jobs, arguments.results))
    for condition in arguments.conditions:
        write_part(results, condition, f"{arguments.trials} draws (seeds {seeds[0]} to {seeds[-1]})")


if __name__ == "__main__":
    main()
