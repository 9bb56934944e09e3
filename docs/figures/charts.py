"""The chart of each page of evidence, drawn from the tables of that page when the site is built."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

DOCS = Path(__file__).parents[1]
BLUE, RED, GREY = "#2166ac", "#b2182b", "0.45"


def rows_of(page: str, section: str, k: int = 0) -> list[dict[str, str]]:
    """Return the rows of table number ``k`` of a section, by the head of the table."""
    text = (DOCS / "evidence" / f"{page}.md").read_text(encoding="utf-8")
    inside = text.partition(f"<!-- {section} -->")[2].partition(f"<!-- /{section} -->")[0]
    lines = re.findall(r"(?:^\|.*\|\n)+", inside, re.MULTILINE)[k].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows]


def number(cell: str) -> float:
    """Return the first number of a cell."""
    return float(re.findall(r"[\d,.]*\d", cell)[0].replace(",", ""))


def labels() -> None:
    """Accuracy by the number of answers, and of labels."""
    rows = rows_of("labels", "how-many")
    n = [number(row["n"]) for row in rows]
    _, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
    for axis, draws in zip(axes, ("70% in the larger class", "classes as in the data"), strict=True):
        for name, colour in (("n answers", BLUE), ("n labels", RED)):
            axis.plot(n, [number(row[f"{draws}: {name}"]) for row in rows], "o-", color=colour, label=name)
        axis.set(xscale="log", xlabel="answers or labels", title=draws)
        axis.set_xticks(n, [f"{one:.0f}" for one in n])
        axis.minorticks_off()
    axes[0].set_ylabel("accuracy in %, mean of ten sets")
    axes[0].legend(loc="lower right")


def learners() -> None:
    """Accuracy of models of answers and of labels, by data set."""
    classes = [row for row in rows_of("learners", "loose") if row["answers"] == "2,000"]
    trees = [row for row in rows_of("learners", "boosting-0.7", 1) if row["pairs"] == "1000"]
    _, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
    dots(left, classes, {"model": ("answers", BLUE), "0.3 n labels": ("600 labels", RED)})
    left.set_title("more classes: 2,000 random answers")
    trained = {"linear": ("answers, linear", GREY), "choice": ("answers, linear or trees", BLUE)}
    dots(right, trees, {**trained, "n labels": ("1,000 labels", RED)})
    right.set_title("two classes: 1,000 random answers")


def dots(axis, rows, kinds) -> None:
    """Draw one line per data set and one dot per method."""
    for head, (name, colour) in kinds.items():
        axis.plot([number(row[head]) for row in rows], range(len(rows)), "o", color=colour, label=name)
    axis.set_yticks(range(len(rows)), [row["set"] for row in rows])
    axis.grid(axis="y", color="0.9")
    axis.invert_yaxis()
    axis.set_xlabel("accuracy in %")
    axis.legend(fontsize=8)


def intervals() -> None:
    """How often the intervals contain the true value, by what is estimated."""
    rows = rows_of("intervals", "coverage")
    kinds = {"class balance": "prior|crowd prior", "error rate": "error|crowd error", "accuracy": ""}
    _, axis = plt.subplots(figsize=(8, 2.8), layout="constrained")
    for k, start in enumerate(kinds.values()):
        # What is left is an accuracy.
        chosen = [row for row in rows if re.match(start, row["cell"])]
        rows = [row for row in rows if row not in chosen]
        covered = np.sort([number(row["interval contains it"]) for row in chosen])
        axis.plot(covered, k + np.linspace(-0.3, 0.3, len(covered)), "o", color=BLUE, alpha=0.7, markersize=5)
    axis.axvline(95, color=RED, label="95%")
    axis.set_yticks(range(len(kinds)), list(kinds))
    axis.set_xlabel("draws in which the 95% interval contains the true value, in %; one dot per design")
    axis.legend(loc="upper left")


def errors() -> None:
    """Error rates of 300 annotators, true and estimated."""
    rows = rows_of("errors", "birds")
    _, axis = plt.subplots(figsize=(8, 2.9), layout="constrained")
    for k, row in enumerate(rows):
        value, low, high = (100 * float(one) for one in re.findall(r"\d\.\d+", row["estimated"]))
        axis.plot([low, high], [k, k], color=BLUE, label="95% interval" if not k else None)
        axis.plot(value, k, "o", color=BLUE, label="estimate" if not k else None)
        true = 100 * number(row["wrong"])
        axis.plot(true, k, "|", color=RED, markersize=16, markeredgewidth=3, label="true" if not k else None)
    axis.set_yticks(range(len(rows)), [f"{row['people']}, {row['classes']} classes" for row in rows])
    axis.invert_yaxis()
    axis.set_xlabel("wrong answers in %")
    axis.legend(fontsize=8)


def speed() -> None:
    """Time of a cross-validation, compared with scikit-learn's on labels."""
    rows = rows_of("speed", "fit-times")
    _, axis = plt.subplots(figsize=(8, 3), layout="constrained")
    place = np.arange(len(rows))
    axis.bar(place - 0.2, [number(row["joint CV, ms"]) for row in rows], 0.4, color=BLUE, label="answers, joint method")
    times = [number(row["LogisticRegressionCV, ms"]) for row in rows]
    axis.bar(place + 0.2, times, 0.4, color=RED, label="labels, LogisticRegressionCV")
    axis.set_xticks(place, [row["set"] for row in rows], rotation=30)
    axis.set_ylabel("ms, one thread")
    axis.legend()


def paper() -> None:
    """Our accuracies against the printed ones."""
    _, axes = plt.subplots(1, 2, figsize=(8, 3.9), layout="constrained", sharex=True, sharey=True)
    files = {"as described": "table.csv", "double hinge as printed": "printed/table.csv"}
    for axis, (title, file) in zip(axes, files.items(), strict=True):
        with (DOCS / "reproduction" / file).open(encoding="utf-8", newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row["paper_accuracy"]]
        for name, colour in (("squared", BLUE), ("double_hinge", RED), ("printed", RED), ("", GREY)):
            chosen = [row for row in rows if row["method"].endswith(name)]
            rows = [row for row in rows if row not in chosen]
            pairs = [(float(row["paper_accuracy"]), float(row["accuracy"])) for row in chosen]
            label = name.replace("_", " ") or "clustering"
            if pairs:
                axis.plot(*zip(*pairs, strict=True), "o", color=colour, alpha=0.6, markersize=4, label=label)
        axis.axline((70, 70), slope=1, color="0.7", zorder=0)
        axis.set(title=title, xlabel="accuracy in the paper, %")
    axes[0].set_ylabel("accuracy measured here, %")
    axes[0].legend(fontsize=8)
