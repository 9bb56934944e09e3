"""Do answers alone sort pictures of birds into their classes, and does the error rate's interval cover the truth?

    SDULEARN_DATA=folder python benchmarks/groups.py

reads ``real/groups``, ``real/birds_truth.csv``, ``real/birds20`` and ``real/wug`` in that folder through files and
commands, as users do, and writes a table into docs/evidence/errors.md. "right" is the share of the pictures in the
class of their species, under the best names. The means are over random orders of the lines, pictures and people, which
are the random seeds of the sampler. Without a number of classes, `sdulearn check` reports it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pages
import pandas as pd
from pages import EVIDENCE, write_section
from real import N_SPECIES, named

from sdulearn.answers import read_answers
from sdulearn.cli.main import main as sdulearn

# Shares of the pictures of each species that are kept where the sizes of the classes differ.
UNEQUAL = (1.0, 0.35, 1.0, 0.25, 0.6)
# The file, and how many of the 300 people.
CROWDS = {
    "fives": ("sd-rq-wp-5-birds5.csv", (180, 300)),
    "fours": ("sd-rq-wp-4-birds5.csv", (150, 300)),
    "threes": ("sd-rq-wp-3-birds5.csv", (200, 300)),
    "pairs": ("sd-rq-wp-2-birds5.csv", (300,)),
    "radio fours": ("radio-4-image-birds5.csv", (300,)),
    "radio threes": ("radio-3-image-birds5.csv", (300,)),
    "radio pairs": ("radio-2-image-birds5.csv", (300,)),
}


def folder() -> Path:
    return Path(os.environ["SDULEARN_DATA"]) / "real"


def species(unequal: bool = False) -> pd.Series:
    """The species of each picture that is kept, by its id as text."""
    truth = pd.read_csv(folder() / "birds_truth.csv", dtype={"id": str}).set_index("id")["label"]
    kept = truth < N_SPECIES
    if unequal:
        shares = np.array([*UNEQUAL, 0.0])[np.minimum(truth, N_SPECIES)]
        kept &= np.random.default_rng(5).random(len(truth)) <= shares
    return truth[kept]


def grouped(file: str, n_people: int, kept: set[str]) -> pd.DataFrame:
    """A file of groups with some of the people and pictures."""
    lines = pd.read_csv(folder() / "groups" / file, dtype=str)
    lines = lines[lines.annotator.str[1:].astype(int) < n_people]
    piles = [[[item for item in pile.split(";") if item in kept] for pile in row.split("|")] for row in lines.groups]
    several = [sum(map(len, row)) > 1 for row in piles]
    cells = ["|".join(";".join(pile) for pile in row if pile) for row in piles]
    items = [";".join(item for item in row.split(";") if item in kept) for row in lines["items"]]
    return lines.assign(items=items, groups=cells)[several]


def shuffled(lines: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The same answers in another order, and with it pictures and people."""
    rng = np.random.default_rng(seed)
    people = lines.annotator.unique()
    names = dict(zip(people, rng.permutation(len(people)), strict=True))
    return lines.assign(annotator=[f"w{names[name]:04}" for name in lines.annotator]).sample(frac=1, random_state=seed)


def command(*words: object) -> list[dict]:
    """The findings that a command prints as JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        sdulearn([str(word) for word in words])
    return json.loads(out.getvalue())["findings"]


def of(findings: list[dict], code: str) -> dict:
    return next(one["numbers"] for one in findings if one["code"] == code)


def sort_by_command(
    lines: pd.DataFrame, truth: pd.Series, n_classes: int | str, words: str | None = None
) -> list[float]:
    """Share right, mean probability, and the interval of the error rate with the true share of wrong answers."""
    with tempfile.TemporaryDirectory() as name:
        path, output = Path(name) / "answers.csv", Path(name) / "classes.csv"
        lines.to_csv(path, index=False)
        given = ["--words", words] if words else []
        began = time.process_time()
        found = command("classes", path, "--classes", n_classes, "-o", output, "--json", *given)
        seconds = time.process_time() - began
        answers = read_answers(path, words=dict(part.rsplit("=", 1) for part in words.split(",")) if words else None)
        rows = pd.read_csv(output, dtype={"id": str}).set_index("id")
    known = rows[rows.index.isin(truth.index)]
    probabilities = known.filter(like="probability_").to_numpy()
    codes = np.unique(truth[known.index], return_inverse=True)[1]
    size = max(probabilities.shape[1], codes.max() + 1)
    padded = np.pad(probabilities, ((0, 0), (0, size - probabilities.shape[1])))
    a, b = (answers.ids[:, k] for k in (0, 1))
    judged = np.isin(a, truth.index) & np.isin(b, truth.index) & (answers.answers != 0)
    same = truth[a[judged]].to_numpy() == truth[b[judged]].to_numpy()
    wrong = np.mean(same != (answers.answers[judged] > 0))
    rate = of(found, "crowd")
    n = of(found, "classes_found")["n_classes"]
    open_number = [one["numbers"] for one in found if one["code"] == "class_number_open"]
    low, high = (open_number[0]["low"], open_number[0]["high"]) if open_number else (n, n)
    right = named(padded, codes).mean()
    return [
        right,
        probabilities.max(axis=1).mean(),
        rate["value"],
        rate["low"],
        rate["high"],
        wrong,
        n,
        low,
        high,
        seconds,
    ]


def row(name: str, n_people: int, draws: list[list[float]]) -> list[str]:
    right, sure, value, low, high, wrong, n, fewest, most, seconds = np.array(draws).T
    covers = int(np.sum((low <= wrong) & (wrong <= high)))
    found = "; ".join(f"{a:.0f} ({b:.0f} to {c:.0f})" for a, b, c in zip(n, fewest, most, strict=True))
    shares = [f"{share:.1%}" for share in (right.mean(), right.std(), sure.mean())]
    estimate = f"{value.mean():.3f} ({low.mean():.3f} to {high.mean():.3f})"
    covered = f"{covers} of {len(draws)}"
    return [name, str(n_people), *shares, f"{wrong[0]:.3f}", estimate, covered, found, f"{seconds.mean():.1f}"]


def others() -> dict[str, tuple[pd.DataFrame, pd.Series, str | None]]:
    """Answers about 20 species, and about uses of a German word, of which 49 have a known sense."""
    birds = pd.read_csv(folder() / "birds20" / "birds20_answers.csv", dtype=str)
    uses = pd.read_csv(folder() / "wug" / "Manschette_answers.csv", dtype=str)
    truth = [
        pd.read_csv(folder() / name, dtype={"id": str}).set_index("id")["label"]
        for name in ("birds20/birds20_truth.csv", "wug/Manschette_truth.csv")
    ]
    return {
        "birds20": (birds, truth[0], None),
        "Manschette, >=3": (uses, truth[1], ">=3=similar,0=unsure,<=2=dissimilar"),
        "Manschette, per person": (uses, truth[1], "0=unsure,1-4=per person"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--crowds", nargs="+", default=[*CROWDS, *others()])
    parser.add_argument("--unequal", action="store_true", help="three species thinned out, 300 people")
    parser.add_argument("--auto", action="store_true", help="without the number of classes")
    arguments = parser.parse_args()
    head = ["answers", "people", "right", "standard deviation", "mean probability", "wrong", "estimated", "covers"]
    head += ["classes", "CPU s"]
    table = []
    seeds = range(arguments.seeds)
    for crowd in arguments.crowds:
        if crowd in CROWDS:
            truth = species(arguments.unequal)
            file, sizes = CROWDS[crowd]
            for n_people in sizes[-1:] if arguments.unequal else sizes:
                lines = grouped(file, n_people, set(truth.index))
                n = "auto" if arguments.auto else N_SPECIES
                table.append(row(crowd, n_people, [sort_by_command(shuffled(lines, k), truth, n) for k in seeds]))
                print(*table[-1], flush=True)
        else:
            lines, truth, words = others()[crowd]
            n = "auto" if arguments.auto else truth.nunique()
            draws = [sort_by_command(shuffled(lines, k), truth, n, words) for k in seeds]
            table.append(row(crowd, lines.annotator.nunique(), draws))
            print(*table[-1], flush=True)
    if not (arguments.unequal or arguments.auto):
        write_section(EVIDENCE / "errors.md", "groups", pages.table(head, table), f"{arguments.seeds} random orders")


if __name__ == "__main__":
    main()
