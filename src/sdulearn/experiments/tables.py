"""Tables of the report as plain data: our number, the paper's beside it, and the difference."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sdulearn.experiments.measurements import (
    Mean,
    Measurements,
    Setting,
    is_above,
    mean_of,
    not_worse_than_best,
)
from sdulearn.experiments.paper import Printed, paper_table
from sdulearn.experiments.protocol import CLUSTERINGS, EXTRAS, MIXTURES, Assumed

Paper: TypeAlias = dict[tuple[str, int, str], Printed]

PAPER_METHODS = (*MIXTURES, *CLUSTERINGS)
TABLE1_METHODS = ("sddu-squared", "sddu-double_hinge", *CLUSTERINGS, "joint", "supervised")
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
    failed : int
        Trials without an answer.
    bold : bool
        Whether no method of the paper is better by the t-test.
    better : bool
        Whether a method that the paper does not have beats all that it has.
    """

    mean: Mean | None = None
    printed: Printed | None = None
    failed: int = 0
    bold: bool = False
    better: bool = False

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in points."""
        if self.mean is None or self.printed is None:
            return None
        return self.mean.value - self.printed.accuracy


@dataclass(frozen=True)
class Row:
    """One line of the accuracy table: a setting, and an entry for each method tried in it."""

    setting: Setting
    entries: dict[str, Entry]

    def entry(self, method: str) -> Entry:
        """The entry of a method; an empty one where it was not tried."""
        return self.entries.get(method, Entry())


@dataclass(frozen=True)
class Summary:
    """A method in a setting: a line of a CSV file. Accuracies are in per cent."""

    dataset: str
    n_pairs: int
    n_unlabeled: int
    prior: float
    flip: float
    assumed: Assumed
    method: str
    trials: int
    failed: int
    accuracy: float | None
    standard_error: float | None
    bold: bool
    paper_accuracy: float | None
    paper_standard_error: float | None
    difference: float | None


@dataclass(frozen=True)
class Agreement:
    """How close a method came to the paper over all its cells, in points."""

    method: str
    cells: int
    bias: float
    distance: float
    over_2: int
    over_4: int


@dataclass(frozen=True)
class Runtime:
    """CPU seconds of one fit: the median over all sets, and that of the slowest set."""

    median: float
    slowest_set: str
    slowest_median: float


def accuracy_rows(measured: Measurements) -> list[Row]:
    """A row for each setting, such as each set and number of pairs of the appendix table."""
    paper = paper_table()
    tried = {*measured.settings(), *(setting for setting, _ in measured.failures)}
    return [_row(measured, setting, paper) for setting in sorted(tried)]


def _row(measured: Measurements, setting: Setting, paper: Paper) -> Row:
    values = measured.methods(setting)
    in_paper = {method: values[method] for method in PAPER_METHODS if method in values}
    bold = not_worse_than_best(in_paper)
    failed = {m: n for (where, m), n in measured.failures.items() if where == setting}
    entries = {}
    for method in sorted({*values, *failed}):
        own = values.get(method, {})
        new = method in EXTRAS and bool(own) and bool(in_paper)
        entries[method] = Entry(
            mean=mean_of(own) if own else None,
            printed=_printed(paper, setting, method),
            failed=failed.get(method, 0),
            bold=method in bold,
            better=new and all(is_above(own, other) for other in in_paper.values()),
        )
    return Row(setting, entries)


def _printed(paper: Paper, setting: Setting, method: str) -> Printed | None:
    """The paper's number, where it is for the same sizes and prior."""
    comparable = setting[2:] == (500, 0.7, 0.0, "counts")
    return paper.get((setting.dataset, setting.n_pairs, method)) if comparable else None


def measured_methods(rows: Sequence[Row], wanted: Sequence[str]) -> list[str]:
    """The wanted columns that have at least one number."""
    return [method for method in wanted if any(row.entry(method).mean for row in rows)]


def agreement(rows: Sequence[Row]) -> list[Agreement]:
    """Per method of the paper: how far ours are from the printed numbers."""
    found = []
    for method in PAPER_METHODS:
        gaps = np.array([g for row in rows if (g := row.entry(method).difference) is not None])
        if gaps.size:
            size = np.abs(gaps)
            found.append(
                Agreement(
                    method=method,
                    cells=gaps.size,
                    bias=float(gaps.mean()),
                    distance=float(size.mean()),
                    over_2=int(np.sum(size > 2)),
                    over_4=int(np.sum(size > 4)),
                )
            )
    return found


def far_cells(rows: Sequence[Row], points: float = 4) -> list[tuple[Row, str]]:
    """Cells further than ``points`` from the paper, the furthest first."""
    far = [
        (abs(gap), row, method)
        for row in rows
        for method in PAPER_METHODS
        if (gap := row.entry(method).difference) is not None and abs(gap) > points
    ]
    return [(row, method) for _, row, method in sorted(far, key=lambda item: -item[0])]


def runtimes(measured: Measurements) -> dict[str, dict[int, Runtime]]:
    """Running times by method and number of pairs."""
    by_size: dict[tuple[str, int], dict[str, list[float]]] = {}
    for (method, dataset, n_pairs), seconds in measured.seconds.items():
        by_size.setdefault((method, n_pairs), {})[dataset] = seconds
    found: dict[str, dict[int, Runtime]] = {}
    for (method, n_pairs), by_set in by_size.items():
        medians = {dataset: float(np.median(seconds)) for dataset, seconds in by_set.items()}
        slowest = max(medians, key=lambda dataset: medians[dataset])
        every = np.concatenate([np.asarray(seconds) for seconds in by_set.values()])
        found.setdefault(method, {})[n_pairs] = Runtime(float(np.median(every)), slowest, medians[slowest])
    return found


def summary(measured: Measurements) -> list[Summary]:
    """All means of a protocol, the paper's beside ours where it has one."""
    rows = accuracy_rows(measured)
    return [_summary(row.setting, method, row.entries[method]) for row in rows for method in row.entries]


def _summary(setting: Setting, method: str, entry: Entry) -> Summary:
    return Summary(
        **setting._asdict(),
        method=method,
        trials=entry.mean.trials if entry.mean else 0,
        failed=entry.failed,
        accuracy=entry.mean.value if entry.mean else None,
        standard_error=entry.mean.error if entry.mean else None,
        bold=entry.bold,
        paper_accuracy=entry.printed.accuracy if entry.printed else None,
        paper_standard_error=entry.printed.standard_error if entry.printed else None,
        difference=entry.difference,
    )


_CSV_FORMATS = {"accuracy": ".2f", "standard_error": ".2f", "bold": "d", "difference": "+.2f"}


def write_csv(path: Path, measured: Measurements) -> None:
    """Write the summary of a protocol, a line for each method and setting."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Summary)])
        writer.writeheader()
        for line in summary(measured):
            writer.writerow({name: _as_text(name, value) for name, value in asdict(line).items()})


def _as_text(name: str, value: object) -> str:
    return "" if value is None else format(value, _CSV_FORMATS.get(name, ""))
