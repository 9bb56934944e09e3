"""Tables of the report as plain data: our number, the paper's beside it, and the difference."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sdulearn.experiments.measurements import (
    Mean,
    Measurements,
    Setting,
    is_above,
    mean_of,
    not_worse_than_best,
)
from sdulearn.experiments.methods import METHODS
from sdulearn.experiments.paper import Printed, paper_table
from sdulearn.experiments.protocol import CLUSTERINGS, EXTRAS, MIXTURES

PAPER_METHODS = (*MIXTURES, *CLUSTERINGS)
TABLE1_METHODS = ("sddu-squared", "sddu-double_hinge", *CLUSTERINGS, "joint", "supervised")
Paper = dict[tuple[str, int, str], Printed]
APPENDIX_METHODS = (*PAPER_METHODS, *EXTRAS)


@dataclass(frozen=True)
class Entry:
    """One number of a table.

    Attributes
    ----------
    mean : Mean or None
        Ours; None where the method was not measured or had no answer.
    printed : Printed or None
        The paper's.
    bold : bool
        Whether no method of the paper is better by the t-test.
    better : bool
        Whether a method that the paper does not have beats all that it has.
    """

    mean: Mean | None
    printed: Printed | None = None
    bold: bool = False
    better: bool = False

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in points."""
        return self.mean.value - self.printed.accuracy if self.mean and self.printed else None


@dataclass(frozen=True)
class Row:
    """One line of the accuracy table."""

    setting: Setting
    entries: dict[str, Entry]


@dataclass(frozen=True)
class Agreement:
    """How close a method came to the paper over all its cells, in points."""

    method: str
    cells: int
    bias: float
    distance: float
    over_2: int
    over_4: int


def accuracy_rows(measured: Measurements) -> list[Row]:
    """The appendix table: a row for each set and number of pairs."""
    paper = paper_table()
    return [_row(measured, setting, paper) for setting in measured.settings()]


def _row(measured: Measurements, setting: Setting, paper: Paper) -> Row:
    values = measured.methods(setting)
    in_paper = {method: values[method] for method in PAPER_METHODS if method in values}
    bold = not_worse_than_best(in_paper)
    entries = {}
    for method in APPENDIX_METHODS:
        own = values.get(method)
        beats_all = bool(own) and all(is_above(own or {}, other) for other in in_paper.values())
        entries[method] = Entry(
            mean=mean_of(own) if own else None,
            printed=_printed(paper, setting, method),
            bold=method in bold,
            better=method in EXTRAS and bool(in_paper) and beats_all,
        )
    return Row(setting, entries)


def _printed(paper: Paper, setting: Setting, method: str) -> Printed | None:
    """The paper's number, where it is for the same sizes and prior."""
    comparable = setting[2:] == (500, 0.7, 0.0, "counts")
    return paper.get((setting.dataset, setting.n_pairs, method)) if comparable else None


def measured_methods(rows: Sequence[Row], wanted: Sequence[str]) -> list[str]:
    """The wanted columns that have at least one number."""
    return [method for method in wanted if any(row.entries[method].mean for row in rows)]


def agreement(rows: Sequence[Row]) -> list[Agreement]:
    """Per method of the paper: how far ours are from the printed numbers."""
    found = []
    for method in PAPER_METHODS:
        gaps = np.array([g for row in rows if (g := row.entries[method].difference) is not None])
        if gaps.size:
            size = np.abs(gaps)
            bias, distance = float(gaps.mean()), float(size.mean())
            found.append(Agreement(method, gaps.size, bias, distance, int(np.sum(size > 2)), int(np.sum(size > 4))))
    return found


def far_cells(rows: Sequence[Row], points: float = 4) -> list[tuple[Row, str]]:
    """Cells further than ``points`` from the paper, the furthest first."""
    far = [
        (abs(gap), row, method)
        for row in rows
        for method in PAPER_METHODS
        if (gap := row.entries[method].difference) is not None and abs(gap) > points
    ]
    return [(row, method) for _, row, method in sorted(far, key=lambda item: -item[0])]


def runtimes(measured: Measurements) -> dict[str, dict[int, tuple[float, str, float]]]:
    """Method -> number of pairs -> (median over all sets, slowest set, its median) in CPU seconds a fit."""
    found: dict[str, dict[int, tuple[float, str, float]]] = {}
    for method in APPENDIX_METHODS:
        sizes = sorted({n for (name, _, n) in measured.seconds if name == method})
        for n_pairs in sizes:
            by_set = {d: t for (name, d, n), t in measured.seconds.items() if (name, n) == (method, n_pairs)}
            slowest = max(by_set, key=lambda d: float(np.median(by_set[d])))
            middle = float(np.median(np.concatenate([np.asarray(t) for t in by_set.values()])))
            found.setdefault(method, {})[n_pairs] = middle, slowest, float(np.median(by_set[slowest]))
    return found


def bracketed(error: float) -> str:
    """A standard error in brackets; one trial has none."""
    return "(–)" if math.isnan(error) else f"({error:.1f})"


def label(method: str) -> str:
    """Headline of a method."""
    return METHODS[method].label


CSV_FIELDS = (
    *Setting._fields, "method", "trials", "failed", "accuracy", "standard_error", "bold", "paper_accuracy",
    "paper_standard_error", "difference",
)  # fmt: skip


def write_csv(path: Path, measured: Measurements) -> None:
    """All means of a protocol, one a line; the paper's beside ours where it has one."""
    paper = paper_table()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(CSV_FIELDS)
        keys = {(s, m) for s in measured.settings() for m in measured.methods(s)} | set(measured.failures)
        for setting, method in sorted(keys):
            writer.writerow(_csv_line(measured, setting, method, paper))


def _csv_line(measured: Measurements, setting: Setting, method: str, paper: Paper) -> list[object]:
    values = measured.values(setting, method)
    bold = method in not_worse_than_best({m: v for m, v in measured.methods(setting).items() if m in PAPER_METHODS})
    printed = _printed(paper, setting, method)
    entry = Entry(mean_of(values) if values else None, printed)
    ours = [f"{entry.mean.value:.2f}", f"{entry.mean.error:.2f}"] if entry.mean else ["", ""]
    theirs = [printed.accuracy, printed.standard_error] if printed else ["", ""]
    gap = "" if entry.difference is None else f"{entry.difference:+.2f}"
    failed = measured.failures.get((setting, method), 0)
    return [*setting, method, len(values), failed, *ours, int(bold), *theirs, gap]
