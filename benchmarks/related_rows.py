"""Several rows of one person: is the accuracy on new people right with `groups`, and how wrong is it without?

    python benchmarks/related_rows.py [--draws 40] [--jobs 2]

Classes belong to people ("people") or to rows ("rows"), answers are about loose pairs, about pairs of few rows
("shared"), or all about one row ("star"). The truth is the accuracy on 4,000 rows of 400 new people.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from pages import EVIDENCE, table, write_section

from sdulearn import fit_table

N_NEW, N_COLUMNS, N_INFORMATIVE = 400, 20, 4


@dataclass(frozen=True)
class Cell:
    classes_of: str
    design: str
    n_people: int = 25
    n_rows: int = 32
    signal: float = 0.4
    n_answers: int = 200


CELLS = [
    Cell("people", "loose", signal=0.25),
    Cell("people", "loose", signal=0.6),
    Cell("people", "shared"),
    Cell("people", "star", n_answers=150),
    Cell("rows", "loose"),
    Cell("rows", "shared"),
    Cell("people", "loose", n_people=80, n_rows=8),
    Cell("people", "loose", n_people=12, n_rows=60, signal=0.5),
    Cell("rows", "loose", n_people=200, n_rows=4),
]


def people(rng, cell, n_people, n_rows):
    """Columns and classes of rows of some people."""
    person = np.repeat(np.arange(n_people), n_rows)
    centre = rng.normal(size=(n_people, N_COLUMNS))[person]
    if cell.classes_of == "people":
        y = rng.permutation(np.arange(n_people) % 2)[person]
        X = centre + 0.3 * rng.normal(size=centre.shape)
    else:
        y = rng.integers(0, 2, len(person))
        X = centre + rng.normal(size=centre.shape)
    X[:, :N_INFORMATIVE] += cell.signal * (2 * y[:, None] - 1)
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(N_COLUMNS)])
    return table.assign(id=[f"r{k}" for k in range(len(y))], person=[f"p{k}" for k in person]), y


def pairs(rng, design, n, n_answers):
    """The rows of each answer."""
    if design == "loose":
        return rng.permutation(n)[: min(2 * n_answers, n // 2 * 2)].reshape(-1, 2)
    if design == "star":
        rows = rng.permutation(n)[: n_answers + 1]
        return np.column_stack([rows[1:], np.full(n_answers, rows[0])])
    few = rng.permutation(n)[: n_answers // 2]
    return np.array([rng.choice(few, 2, replace=False) for _ in range(n_answers)])


def draw(seed, cell, with_groups):
    """True accuracy on new people, and the estimate with its interval."""
    rng = np.random.default_rng(seed)
    table, y = people(rng, cell, cell.n_people, cell.n_rows)
    others, y_others = people(rng, cell, N_NEW, 10)
    ends = pairs(rng, cell.design, len(y), cell.n_answers)
    ids = table["id"].to_numpy()
    same = y[ends[:, 0]] == y[ends[:, 1]]
    answers = pd.DataFrame({"id_a": ids[ends[:, 0]], "id_b": ids[ends[:, 1]], "label": same.astype(int)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = table if with_groups else table.drop(columns="person")
        model = fit_table(known, answers, groups="person" if with_groups else None, model="linear")
    right = np.mean((model.predict(others) > 0) == (y_others > 0))
    found = model.report.accuracy
    return max(right, 1 - right), found.value, found.low, found.high


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    lines, summary = [], []
    for with_groups in (True, False):
        name = "with `groups`" if with_groups else "without"
        covers = []
        for cell in CELLS:
            jobs = (delayed(draw)(seed, cell, with_groups) for seed in range(arguments.draws))
            truth, value, low, high = np.array(Parallel(n_jobs=arguments.jobs)(jobs)).T
            covers.append(np.mean((low <= truth) & (truth <= high)))
            shown = [name, f"{cell.n_people} x {cell.n_rows}", cell.classes_of, f"{cell.n_answers} {cell.design}"]
            numbers = [f"{100 * mean:.1f}" for mean in (truth.mean(), value.mean(), low.mean(), high.mean())]
            lines.append([*shown, f"{cell.signal:g}", *numbers, f"{covers[-1]:.0%}"])
            print(*lines[-1], flush=True)
        summary.append(f"{np.mean(covers):.0%} of {len(CELLS) * arguments.draws} draws {name}")
    head = ["", "people x rows", "classes of", "answers", "signal", "accuracy on new people, %", "estimated"]
    head += ["mean lower end", "mean upper end", "interval contains it"]
    text = f"95% confidence intervals contain the accuracy on new people in {' and '.join(summary)}."
    write_section(
        EVIDENCE / "intervals.md", "related", [text, "", *table(head, lines)], f"{arguments.draws} draws per row"
    )


if __name__ == "__main__":
    main()
