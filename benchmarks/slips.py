"""What wrong answers cost, and whether the intervals still cover: ``fit_table`` as users call it.

    SDULEARN_DATA=folder python benchmarks/slips.py measure RESULTS.jsonl [--designs chain tree] [--wrong 0 0.05]
    python benchmarks/slips.py show RESULTS.jsonl [AFTER.jsonl]

100 answers of one person, or of three, about rows of a table of 600, in six designs: a chain (each row is compared
with the next), a random tree, a star (all with one row), loose pairs, pairs of 60 rows ("shared"), and the linked
questions that ``ask`` chooses. ``--wrong`` makes these shares of the answers wrong; by default none and one answer.
Truth: the other rows of the set. Accuracy is counted as reported: the larger class is +1, up to the flip of names
where the report says that the names are arbitrary. "asked rows": the mean probability of the classes of the rows in
answers (``TableModel.answered``) minus the share of them that are right. ``--estimator``: PairLogisticRegressionCV on
standardised columns and the models of its ten folds, without a table, trees and findings; ten times as fast.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from paper import load_benchmark
from runs import quietly, run_all
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV, fit_table, stack_pairs
from sdulearn.asking import ask
from sdulearn.datasets import make_waveform
from sdulearn.metrics import held_out_accuracy

DESIGNS = ("chain", "tree", "star", "loose", "linked", "shared")
SETS = ("gaussian", "waveform", "spambase", "magic")
N_ANSWERS = 100
N_ROWS = 600
PRIOR = 0.6


def population(name, rng):
    """Rows and classes -1 and +1, with P(+1) = 0.6: those of the table first, then 3,000 or more others."""
    if name == "gaussian":
        y = np.where(rng.random(4600) < PRIOR, 1, -1)
        return rng.normal(size=(4600, 5)) + 0.65 * y[:, None], y
    X, y = make_waveform(9000, random_state=rng.integers(2**31)) if name == "waveform" else load_benchmark(name)
    share = np.mean(y > 0)
    chance = np.where(y > 0, PRIOR / share, (1 - PRIOR) / (1 - share))
    kept = rng.permutation(np.flatnonzero(rng.random(len(y)) < chance / chance.max()))
    return X[kept], y[kept]


def pairs(design, rng):
    """The two rows of each answer."""
    rows = rng.permutation(N_ROWS)
    after = np.arange(1, N_ANSWERS + 1)
    if design == "loose":
        return rows[: 2 * N_ANSWERS].reshape(-1, 2)
    if design == "shared":
        return np.array([rng.choice(rows[:60], 2, replace=False) for _ in range(N_ANSWERS)])
    before = {"chain": after - 1, "star": np.zeros(N_ANSWERS, dtype=int), "tree": rng.integers(0, after)}[design]
    return np.column_stack([rows[before], rows[after]])


def answers_about(design, X, y, wrong, people, rng):
    """Answers as ``fit_table`` takes them: a frame, or the path of a log; ``wrong`` says which are wrong."""
    if design != "linked":
        ends = pairs(design, rng)
        same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ wrong
        answers = {"id_a": ends[:, 0], "id_b": ends[:, 1], "label": np.where(same, "same", "different")}
        if people > 1:
            answers["annotator"] = rng.choice(list("abcdefgh")[:people], len(same))
        return pd.DataFrame(answers)
    turns = iter(wrong)
    asker = ask(X, lambda a, b: bool((y[a] == y[b]) ^ next(turns)), N_ANSWERS, random_state=int(rng.integers(2**31)))
    lines = [{"event": "session", "seed": 0, "design": "linked", "classes": 2, "session": "s"}]
    for k, answer in enumerate(asker.given, 1):
        question = answer.question
        line = {"event": "answer", "number": k, "form": "pair", "items": list(map(str, question.items))}
        line |= {"groups": answer.groups, "annotator": "ann", "why": question.why, "rank": question.rank}
        lines.append(line | {"session": "s"})
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        file.write("\n".join(map(json.dumps, lines)) + "\n")
    return file.name


def fit_estimator(design, X, y, wrong, people, rng):
    """What :func:`run_cell` returns, by the estimator and the models of its folds."""
    scaler = StandardScaler().fit(X[:N_ROWS])
    ends = pairs(design, rng)
    same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ wrong
    annotators = rng.integers(1, people + 1, len(same)) if people > 1 else None
    rows, known = stack_pairs(scaler.transform(X[:N_ROWS]), ends, same, annotators=annotators)
    model = PairLogisticRegressionCV(cv=10).fit(rows, known)
    decision = model.decision_function(rows)
    for held_out, fold in model.fold_models_:
        decision[held_out] = fold.decision_function(rows[held_out])
    rates = model.answer_model_
    accuracy = held_out_accuracy(decision, known, n_splits=10, error_rate=rates)
    truth = float(np.mean(model.predict(scaler.transform(X[N_ROWS:])) == y[N_ROWS:]))
    chances = model.posterior(rows, known)[known[:, 0] != 0]
    right = float(np.mean(np.where(chances[:, 1] > 0.5, 1, -1) == y[known[known[:, 0] != 0, 1]]))
    return {
        "truth": max(truth, 1 - truth),
        "accuracy": [accuracy.value, accuracy.low, accuracy.high],
        "prior": [model.prior_.value, model.prior_.low, model.prior_.high],
        "share": PRIOR,
        "error_rate": [rates.error_rate.value, rates.error_rate.low, rates.error_rate.high],
        "wrong": float(wrong.mean()),
        "asked": [float(chances.max(axis=1).mean()), max(right, 1 - right)],
    }


@quietly
def run_cell(cell):
    """Accuracy, prior and share of wrong answers, true and as reported with their ends; asked rows."""
    design, name, share, people, seed, *by_estimator = cell
    rng = np.random.default_rng([seed, DESIGNS.index(design), SETS.index(name)])
    X, y = population(name, rng)
    # Of their own, so that draws with and without wrong answers are the same but for these.
    slips = np.random.default_rng([seed, 99])
    wrong = np.zeros(N_ANSWERS, dtype=bool)
    wrong[slips.choice(N_ANSWERS, 1 if share is None else slips.binomial(N_ANSWERS, share), replace=False)] = True
    if by_estimator:
        return fit_estimator(design, X, y, wrong, people, rng)
    answers = answers_about(design, X[:N_ROWS], y[:N_ROWS], wrong, people, rng)
    table = pd.DataFrame(X[:N_ROWS], columns=[f"x{j}" for j in range(X.shape[1])])
    table.insert(0, "id", np.arange(N_ROWS))
    model = fit_table(table, answers)
    asked = model.answered
    right = np.mean(asked["class"] == y[asked["id"].astype(int)])
    if design == "linked":
        os.unlink(answers)
    report = model.report
    truth = float(np.mean(model.predict(pd.DataFrame(X[N_ROWS:], columns=table.columns[1:])) == y[N_ROWS:]))
    codes = [finding.code for finding in report.findings]
    accuracy, prior = report.accuracy, report.prior
    return {
        "truth": max(truth, 1 - truth),
        "flipped": truth < 0.5,
        "accuracy": [accuracy.value, accuracy.low, accuracy.high],
        "prior": [prior.value, prior.low, prior.high],
        "share": max(PRIOR, 1 - PRIOR) if truth >= 0.5 else 1 - PRIOR,
        "error_rate": [report.error_rate.value, report.error_rate.low, report.error_rate.high],
        "wrong": float(wrong.mean()),
        # Up to the names of the classes.
        "asked": [float(asked["probabilities"].max(axis=1).mean()), float(max(right, 1 - right))],
        "codes": codes,
    }


def measure(arguments):
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.draws // len(SETS))
    shares = [0, None] if arguments.wrong is None else arguments.wrong
    settings = [(d, share, n) for d in arguments.designs for share in shares for n in arguments.people]
    mode = ("estimator",) if arguments.estimator else ()
    cells = [(d, name, share, n, seed, *mode) for seed in seeds for name in SETS for d, share, n in settings]
    run_all(run_cell, cells, arguments.jobs, arguments.results)


def read(path):
    return {tuple(cell): values for cell, values in map(json.loads, path.read_text().splitlines())}


def lines_of(results):
    """One row for each design, number of people and share of wrong answers."""
    groups = {}
    for (design, _, share, people, *_), values in results.items():
        groups.setdefault((design, people, share), []).append(values)
    for (design, people, share), cells in sorted(groups.items(), key=str):
        truth = np.array([cell["truth"] for cell in cells])
        parts = []
        truths = {"accuracy": truth, "prior": [cell["share"] for cell in cells], "error_rate": share_wrong(cells)}
        for name, true in truths.items():
            value, low, high = np.array([cell[name] for cell in cells]).T
            covered = (low - 1e-9 <= true) & (true <= high + 1e-9)
            parts += [f"{100 * value.mean():.1f}", f"{covered.mean():.0%}", f"{np.median(high - low):.2f}"]
        probability, right = np.array([cell["asked"] for cell in cells]).T
        parts.append(f"{100 * (probability - right).mean():+.1f}")
        loss = ""
        if share != 0 and (design, people, 0) in groups:
            clean = np.array([cell["truth"] for cell in groups[design, people, 0]])
            if len(clean) == len(truth):
                gap = 100 * (clean - truth)
                loss = f"{gap.mean():.2f} ({gap.std(ddof=1) / np.sqrt(len(gap)):.2f})"
        name = {0: "none", None: "one"}.get(share, f"{share:.0%}" if share else "")
        row = [design, people, name, len(cells), f"{100 * truth.mean():.1f}", loss, *parts]
        yield f"| {' | '.join(map(str, row))} |"


def share_wrong(cells):
    return np.array([cell["wrong"] for cell in cells])


def show(arguments):
    columns = ["design", "people", "wrong", "draws", "true accuracy", "lost (s.e.)"]
    columns += [f"{name}{part}" for name in ("accuracy", "prior", "rate") for part in ("", " covers", " width")]
    columns.append("asked rows")
    for path in (arguments.results, *arguments.more):
        print(f"\n{path.name}\n")
        print(f"| {' | '.join(columns)} |")
        print("|---" * len(columns) + "|")
        print(*lines_of(read(path)), sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    part = commands.add_parser("measure")
    part.add_argument("results", type=Path)
    part.add_argument("--designs", nargs="+", choices=DESIGNS, default=DESIGNS)
    part.add_argument("--wrong", type=float, nargs="+")
    part.add_argument("--estimator", action="store_true")
    part.add_argument("--people", type=int, nargs="+", default=[1])
    part.add_argument("--draws", type=int, default=200)
    part.add_argument("--first-seed", type=int, default=9000)
    part.add_argument("--jobs", type=int, default=os.cpu_count())
    part.set_defaults(run=measure)
    part = commands.add_parser("show")
    part.add_argument("results", type=Path)
    part.add_argument("more", type=Path, nargs="*")
    part.set_defaults(run=show)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
