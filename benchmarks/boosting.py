"""Boosted trees and the choice by held-out answers, against linear models and against LightGBM on true labels.

    SDULEARN_DATA=folder make bench-boosting

writes the tables of docs/boosting.md. Every estimator chooses its own settings from its training data; test
points are only scored. Results are kept one line a draw in ``--results``: a run that was stopped goes on where it was.
Settings of the trees were tried on seeds from 1000; the numbers here are of seeds from 0.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import resource
import statistics
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import lightgbm
import numpy as np
from pages import write_between
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from sdulearn import PairModelCV, SDUClassifierCV
from sdulearn.datasets import BENCHMARKS, load_benchmark, sample_sdu
from sdulearn.metrics import calibration

SIZES = (200, 1000)
CONDITIONS = ("0.7", "0.5", "wrong")
TREES = {"learning_rate": 0.1, "num_leaves": 8, "lambda_l2": 1.0, "min_sum_hessian_in_leaf": 1.0, "min_data_in_leaf": 1}
ROOT = Path(__file__).parents[1]


@functools.lru_cache(maxsize=1)
def data(name):
    return load_benchmark(name)


def boosted_labels(X, y):
    """LightGBM on true labels with our settings, rounds by cross-validation; the model and its held-out log loss."""
    parameters = {**TREES, "objective": "binary", "verbosity": -1, "num_threads": 1, "seed": 0}
    table = lightgbm.Dataset(X, label=(y > 0).astype(float), params=parameters, free_raw_data=False)
    curve = lightgbm.cv(
        parameters, table, 500, nfold=5, stratified=True, seed=0,
        callbacks=[lightgbm.early_stopping(30, verbose=False)],
    )["valid binary_logloss-mean"]  # fmt: skip
    return lightgbm.train(parameters, lightgbm.Dataset(X, label=(y > 0).astype(float)), len(curve)), min(curve)


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
        X, y = data(name)
        self.prior = 0.5 if condition == "0.5" else 0.7
        # A set that is too small for 500 unlabeled rows and 500 test points has fewer of both.
        room = min(np.sum(y > 0) / self.prior, np.sum(y < 0) / (1 - self.prior)) - 2 * n_pairs - 5
        rest = int(min(500, room // 2))
        rows, self.codes, test, self.y_test = sample_sdu(
            np.column_stack([X, y]), y, n_pairs=n_pairs, n_unlabeled=rest, prior=self.prior, n_test=rest,
            random_state=seed,
        )  # fmt: skip
        scaler = StandardScaler().fit(rows[:, :-1])
        self.X = scaler.transform(rows[:, :-1])
        self.y = rows[:, -1].astype(int)
        self.X_test = scaler.transform(test[:, :-1])
        self.n_pairs = n_pairs
        self.rng = np.random.default_rng([seed, n_pairs])

    def accuracy(self, predict):
        return 100 * float(np.mean(predict(self.X_test) == self.y_test))

    def flip_answers(self, share):
        """The share of all answers turned round."""
        wrong = self.rng.random(self.n_pairs + 1) < share
        self.codes = np.where(wrong[np.abs(self.codes)], -self.codes, self.codes)

    def table(self, n_labels):
        """y with a label column: so many unlabeled rows tell their class."""
        labels = np.zeros(len(self.y), dtype=int)
        few = self.rng.choice(np.flatnonzero(self.codes == 0), n_labels, replace=False)
        labels[few] = self.y[few]
        return np.column_stack([self.codes, np.arange(len(self.y)), np.zeros_like(labels), labels])

    def labelled(self, n, wrong=0.0):
        """n labelled points with classes in the ratio of the prior; some labels may be wrong."""
        n_positive = round(n * self.prior)
        chosen = np.concatenate(
            [
                self.rng.choice(np.flatnonzero(self.y == label), count, replace=False)
                for label, count in ((1, n_positive), (-1, n - n_positive))
            ]
        )
        y = np.where(self.rng.random(n) < wrong, -self.y[chosen], self.y[chosen])
        return self.accuracy(best_of_labels(self.X[chosen], y))

    def reliability(self, model):
        return calibration(model.predict_proba(self.X_test)[:, 1], self.y_test).error


def run_cell(cell):
    """All methods on one draw."""
    name, n_pairs, condition, seed = cell
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of classes at prior 1/2; folds with few rows
        draw = Draw(name, n_pairs, condition, seed)
        return cell, {"0.7": plain, "0.5": half, "wrong": wrong}[condition](draw)


def plain(draw):
    found = {}
    held_out = {}
    # A candidate alone is what it is among others (tests/boosting/test_selection.py), so each is fitted once.
    for method in ("linear", "nystroem", "boosted"):
        began = time.process_time()
        model = PairModelCV([method]).fit(draw.X, draw.codes)
        found[f"{method} seconds"] = time.process_time() - began
        found[method] = draw.accuracy(model.predict)
        found[f"{method} ece"] = draw.reliability(model)
        held_out[method] = model.cv_results_["mean_test_score"][0]
    best = max(held_out, key=held_out.get)
    found["chosen"] = best
    found["choice"] = found[best]
    found["choice ece"] = found[f"{best} ece"]
    # The linear model is a part of the boosted one.
    found["choice seconds"] = found["nystroem seconds"] + found["boosted seconds"]
    sdu = SDUClassifierCV(loss="logistic", prior=0.7).fit(draw.X, draw.codes)
    found["sdu logistic ece"] = draw.reliability(sdu)
    found["n labels"] = draw.labelled(draw.n_pairs)
    return found


def half(draw):
    model = PairModelCV(prior=0.5).fit(draw.X, draw.table(5))
    return {"choice": draw.accuracy(model.predict), "n labels": draw.labelled(draw.n_pairs)}


def wrong(draw):
    clean = draw.labelled(draw.n_pairs)
    right = PairModelCV().fit(draw.X, draw.codes)
    draw.flip_answers(0.15)
    model = PairModelCV(error_rate=0.15, prior=0.7).fit(draw.X, draw.codes)
    return {
        "choice": draw.accuracy(model.predict),
        "choice, right answers": draw.accuracy(right.predict),
        "n labels": draw.labelled(draw.n_pairs, 0.15),
        "n right labels": clean,
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

    def gap(self, name, n_pairs, condition):
        """How far the choice is below the labels."""
        return self.mean(name, n_pairs, condition, "n labels") - self.mean(name, n_pairs, condition, "choice")


def targets(results, conditions):
    """The figures that were wanted, those of the conditions that were measured."""
    rows = [(name, n) for name in BENCHMARKS for n in SIZES]
    lines = ["| figure | wanted | reached |", "|---|---|---|"]
    large, small = (results.over_sets(n, "0.7", "choice") for n in (1000, 200))
    linear = [results.over_sets(n, "0.7", "linear") for n in (1000, 200)]
    within = sum(results.gap(*row, "0.7") <= 1 for row in rows)
    errors = [results.over_sets(200, "0.7", f"{method} ece") for method in ("linear", "boosted", "choice")]
    lines += [
        f"| mean accuracy over ten sets, 1,000 / 200 pairs, choice by held-out answers (linear: {linear[0]:.1f} / "
        f"{linear[1]:.1f}) | 90.5 / 87 | {large:.1f} / {small:.1f} |",
        "| rows within 1 point of n true labels (LightGBM or logistic regression by cross-validation) | 18 of 20 | "
        f"{within} |",
        "| expected calibration error, 200 pairs: linear, boosted, choice | 0.05 | "
        f"{', '.join(f'{error:.3f}' for error in errors)} |",
        "| one fit with the choice, 1,000 pairs, mean over the ten sets, CPU seconds | 3 | "
        f"{results.over_sets(1000, '0.7', 'choice seconds'):.1f} |",
    ]
    if "0.5" in conditions:
        halves = sum(results.gap(*row, "0.5") <= results.gap(*row, "0.7") + 2 for row in rows)
        lines.append(
            "| prior 0.5, sign by 5 labels in the fit: gap to n labels within 2 points of that at 0.7 | 20 | "
            f"{halves} |"
        )
    if "wrong" in conditions:
        lost = np.mean([_lost(results, row, "choice, right answers", "choice") for row in rows])
        theirs = np.mean([_lost(results, row, "n right labels", "n labels") for row in rows])
        lines.append(f"| 15% wrong: points lost, answers against labels | no more | {lost:.1f} against {theirs:.1f} |")
    return lines


def _lost(results, row, before, after):
    return results.mean(*row, "wrong", before) - results.mean(*row, "wrong", after)


def table(results, columns):
    """One row a set and size; columns are (title, condition, method)."""
    lines = [
        "| set | pairs | " + " | ".join(title for title, _, _ in columns) + " |",
        "|---|---|" + "---|" * len(columns),
    ]
    for name in BENCHMARKS:
        for n in SIZES:
            cells = [results.cell(name, n, condition, method) for _, condition, method in columns]
            lines.append(f"| {name} | {n} | {' | '.join(cells)} |")
    return lines


def write_page(page, results, conditions, note):
    """The tables of the page, those of the conditions that were measured."""
    write_between(page, "targets", [*targets(results, conditions), "", note])
    methods = ("linear", "nystroem", "boosted", "choice", "chosen", "n labels")
    write_between(page, "accuracy", table(results, [(method, "0.7", method) for method in methods]))
    others = {"0.5": "prior 0.5", "wrong": "15% wrong"}
    columns = [
        (f"{title}: {method}", condition, method)
        for condition, title in others.items()
        if condition in conditions
        for method in ("choice", "n labels")
    ]
    if columns:
        write_between(page, "other", table(results, columns))


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


def measured(path, cells, jobs):
    """What the file has of the cells, and the rest, measured now."""
    there = {}
    if path.exists():
        there = {tuple(cell): found for cell, found in map(json.loads, path.read_text().splitlines())}
    todo = [cell for cell in cells if cell not in there]
    with ProcessPoolExecutor(jobs) as pool, path.open("a") as file:
        for cell, found in tqdm(pool.map(run_cell, todo), total=len(todo), unit="draw", mininterval=5):
            file.write(json.dumps([cell, found]) + "\n")
            file.flush()
            there[cell] = found
    return [(cell, there[cell]) for cell in cells]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("bench-boosting.jsonl"))
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "boosting.md")
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS, help="measure these alone")
    parser.add_argument("--scale", action="store_true", help="measure 10^6 rows and nothing else")
    arguments = parser.parse_args()
    if arguments.scale:
        lines = scale(1_000_000, 100_000, 50, os.cpu_count())
        write_between(arguments.page, "scale", lines)
        print("\n".join(lines))
        return
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.trials)
    # Draws first, so that a run that is stopped has all sets.
    settings = [(condition, n) for condition in arguments.conditions for n in SIZES]
    cells = [(name, n, condition, seed) for seed in seeds for condition, n in settings for name in BENCHMARKS]
    results = Results(measured(arguments.results, cells, arguments.jobs))
    drawn = f"{arguments.trials} draws (seeds {seeds[0]} to {seeds[-1]}), `make bench-boosting`"
    write_page(arguments.page, results, arguments.conditions, f"{drawn}; {statistics_note(results)}")
    print("\n".join(targets(results, arguments.conditions)))


def statistics_note(results):
    median = statistics.median(
        found["choice seconds"] for name in BENCHMARKS for found in results.by_key[name, 1000, "0.7"]
    )
    return f"median of one fit with the choice at 1,000 pairs: {median:.1f} CPU seconds on one thread."


if __name__ == "__main__":
    main()
