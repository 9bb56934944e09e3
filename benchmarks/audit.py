"""Coverage of the intervals of ``audit_predictions``: two classes by pairs, ten by match answers.

Random rows, a classifier of known accuracy, and answers about the rows, some of them wrong. Reported for each cell:
the share of draws whose interval holds the true accuracy (with its standard error), the median width of the interval,
and the median width where the error rate is known; the same for the difference of two classifiers.

    python benchmarks/audit.py --draws 200
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from pages import EVIDENCE, folded, table, write_section

from sdulearn.answers import Answers
from sdulearn.metrics import audit_predictions

N_ROWS = 5000


def predictions(classes: np.ndarray, accuracy: float, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a classifier's predictions: a wrong one is any other class."""
    wrong = rng.random(len(classes)) >= accuracy
    shift = rng.integers(1, n_classes, len(classes))
    return np.where(wrong, (classes + shift) % n_classes, classes)


def as_answers(ids: list[tuple[int, int]], same: list[int], questions: list[int] | None) -> Answers:
    """Answers as they are read from a file."""
    n = len(ids)
    return Answers(
        name="simulated",
        ids=np.array([[str(a), str(b)] for a, b in ids], dtype=object),
        answers=np.array(same, dtype=np.int64),
        weights=np.ones(n),
        annotators=None,
        lines=np.arange(1, n + 1),
        columns={},
        words={},
        questions=None if questions is None else np.array(questions),
    )


def pair_answers(classes: np.ndarray, n: int, error: float, rng: np.random.Generator) -> Answers:
    """Answers about pairs of random rows."""
    rows = rng.choice(len(classes), 2 * n, replace=False).reshape(-1, 2)
    same = np.where(classes[rows[:, 0]] == classes[rows[:, 1]], 1, -1)
    same = np.where(rng.random(n) < error, -same, same)
    return as_answers([tuple(row) for row in rows.tolist()], same.tolist(), None)


def match_answers(classes: np.ndarray, n: int, error: float, rng: np.random.Generator) -> Answers:
    """Random rows compared with an example of each class so far; an error is any other answer."""
    examples: list[int] = []
    ids, same, questions = [], [], []
    for number, row in enumerate(rng.choice(len(classes), n + 1, replace=False).tolist()):
        match = [k for k, example in enumerate(examples) if classes[example] == classes[row]]
        said = match[0] if match else len(examples)
        if examples and rng.random() < error:
            said = int(rng.choice([k for k in range(len(examples) + 1) if k != said]))
        for k, example in enumerate(examples):
            ids.append((row, example))
            same.append(1 if k == said else -1)
            questions.append(number)
        if said == len(examples):
            examples.append(row)
    return as_answers(ids, same, questions)


def main() -> None:
    """Print a line for each cell, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    lines, every, n_none = [], [], 0
    for cell, (kind, n, error, accuracy) in enumerate(
        product(("pairs", "match"), (100, 300), (0.0, 0.05, 0.1), (0.7, 0.9))
    ):
        results = []
        for draw in range(arguments.draws):
            rng = np.random.default_rng([arguments.seed, cell, draw])
            n_classes = 2 if kind == "pairs" else 10
            shares = rng.dirichlet(np.full(n_classes, 5.0))
            classes = rng.choice(n_classes, N_ROWS, p=shares)
            first = predictions(classes, accuracy, n_classes, rng)
            second = predictions(classes, accuracy - 0.05, n_classes, rng)
            true, other = np.mean(first == classes), np.mean(second == classes)
            answers = (pair_answers if kind == "pairs" else match_answers)(classes, n, error, rng)
            audit = audit_predictions(first, answers, compare=second)
            known = audit_predictions(first, answers, error_rate=error).accuracy
            if audit.accuracy is None or known is None:
                n_none += 1
                continue
            gap = audit.difference
            results.append(
                (
                    audit.accuracy.low <= true <= audit.accuracy.high,
                    audit.accuracy.high - audit.accuracy.low,
                    known.high - known.low,
                    gap.low <= true - other <= gap.high,
                    gap.high - gap.low,
                )
            )
        found = np.array(results, dtype=float)
        covers, gaps = found[:, 0].mean(), found[:, 3].mean()
        errors = [np.sqrt(p * (1 - p) / len(found)) for p in (covers, gaps)]
        widths = np.median(found[:, [1, 2, 4]], axis=0)
        cells = [kind, str(n), f"{error:.0%}", f"{accuracy:.0%}", f"{covers:.1%} ({errors[0]:.1%})"]
        cells += [*(f"{100 * width:.1f}" for width in widths[:2]), f"{gaps:.1%} ({errors[1]:.1%})"]
        lines.append([*cells, f"{100 * widths[2]:.1f}"])
        print(*lines[-1], flush=True)
        every.append(found)
    pooled = np.concatenate(every)
    head = ["answers", "number", "wrong", "accuracy", "interval contains it", "median width, percentage points"]
    head += ["width with the error rate known", "interval contains the difference", "median width, percentage points"]
    text = (
        f"95% confidence intervals contain the true accuracy in {pooled[:, 0].mean():.1%} of {len(pooled):,} audits, "
        f"and the true difference of two classifiers in {pooled[:, 3].mean():.1%}; "
        f"in {n_none} no accuracy was reported."
    )
    draws = f"{arguments.draws} draws per row"
    write_section(EVIDENCE / "intervals.md", "audit", [text, *folded("All cells", table(head, lines))], draws)


if __name__ == "__main__":
    main()
