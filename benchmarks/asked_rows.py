"""Are the probabilities of rows that were asked about true, and their classes better than the model's?

    SDULEARN_DATA=folder python benchmarks/asked_rows.py [RESULTS.jsonl] [--draws 10] [--jobs 2]

One judge answers 150 questions about 1,200 rows, and gives a random wrong answer to 5, 15 or 30% of them. Of the rows
in answers: the mean probability of the likeliest class less the share of rows that are in it, and that share less the
share that the model predicts right by features alone; by ``Asker.posterior``, and by ``fit_table`` from the log
(``TableModel.answered``). Two classes are named the better way, more by the majority of the rows that are likeliest in
each. It writes a table into docs/evidence/intervals.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from asking import load, match
from pages import EVIDENCE, table, write_section
from runs import quietly, run_all

from sdulearn import fit_table
from sdulearn.answer_files.store import AnswerStore
from sdulearn.asking import Asker

SETS = {"linked": ("spambase", "magic"), "match": ("digits", "satimage")}
RATES = (0.05, 0.15, 0.3)
N_ROWS = 1200
N_ANSWERS = 150


@quietly
def run_cell(cell):
    """Mean probability, share right and share predicted right, by the asker or by a fit of its log."""
    source, design, name, wrong, seed = cell
    rng = np.random.default_rng([seed, len(name)])
    X, y = load(name)
    chosen = rng.permutation(len(y))[:N_ROWS]
    X, y = X[chosen], np.unique(y[chosen], return_inverse=True)[1]
    ids = [f"row {k}" for k in range(N_ROWS)]
    n_classes = 2 if design == "linked" else "auto"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with AnswerStore(log) as store:
            store.begin(seed, design=design, classes=n_classes)
            asker = Asker(X, design=design, n_classes=n_classes, random_state=seed, store=store, ids=ids)
            for _ in range(N_ANSWERS):
                question = asker.next()
                reply = match(y, question.left, question.choices, wrong, rng)
                asker.tell(question, reply if design == "match" else reply == 0, "judge")
        if source == "fit":
            frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
            frame.insert(0, "id", ids)
            model = fit_table(frame, log)
    if source == "fit":
        rows = np.array([asker.rows[name] for name in model.answered["id"]])
        return figures(model.answered["probabilities"], model.predict_proba(frame.iloc[rows]), y[rows])
    rows = np.unique([row for answer in asker.given for row in answer.question.items])
    return figures(asker.posterior()[rows], asker.model().predict_proba(X)[rows], y[rows])


def figures(probabilities, by_features, y):
    """Mean probability, share of rows in their likeliest class, and in the one by features alone."""
    likeliest = probabilities.argmax(axis=1)
    names = [np.bincount(y[likeliest == k], minlength=1).argmax() for k in range(probabilities.shape[1])]
    if len(names) == 2:
        names = [0, 1] if np.mean(likeliest == y) >= 0.5 else [1, 0]
    right = [float(np.mean(np.array(names)[p.argmax(axis=1)] == y)) for p in (probabilities, by_features)]
    return [float(probabilities.max(axis=1).mean()), *right]


HEAD = ("design", "by", "wrong", "draws", "mean probability", "share right", "predicted right", "probability - right",
        "right - predicted")  # fmt: skip


def rows_of(results):
    """The rows of the table."""
    for design in SETS:
        for source in ("asker", "fit"):
            for wrong in RATES:
                draws = np.array([row for cell, row in results if (*cell[:2], cell[3]) == (source, design, wrong)])
                if not len(draws):
                    continue
                means = [f"{100 * value:.1f}" for value in draws.mean(axis=0)]
                differences = 100 * np.array([draws[:, 0] - draws[:, 1], draws[:, 1] - draws[:, 2]])
                errors = differences.std(axis=1, ddof=1) / len(draws) ** 0.5
                means += [f"{d.mean():+.1f} ± {error:.1f}" for d, error in zip(differences, errors, strict=True)]
                yield [design, source, f"{wrong:.0%}", str(len(draws)), *means]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--draws", type=int, default=10, help="of each of two sets")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.draws)
    kinds = [(design, name, wrong) for design, names in SETS.items() for name in names for wrong in RATES]
    cells = [(source, *kind, seed) for seed in seeds for kind in kinds for source in ("asker", "fit")]
    lines = table(HEAD, rows_of(run_all(run_cell, cells, arguments.jobs, arguments.results)))
    print("\n".join(lines))
    write_section(EVIDENCE / "intervals.md", "asked", lines, f"{2 * arguments.draws} draws per row")


if __name__ == "__main__":
    main()
