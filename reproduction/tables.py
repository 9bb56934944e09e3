"""From records to tables: means, standard errors and t-tests in per cent, and the paper's numbers beside ours."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.stats import t as student

from reproduction.protocol import CLUSTERINGS, EXTRAS, MIXTURES, PRINTED, TABLE, Assumed
from reproduction.runner import Record
from sdulearn.types import Array

Values: TypeAlias = Mapping[int, float]
"""Accuracy in per cent by trial."""

LEVEL = 0.05

PAPER_METHODS = (*MIXTURES, *CLUSTERINGS)
TABLE1_METHODS = ("sddu-squared", "sddu-double_hinge", "sddu-printed", *CLUSTERINGS, "joint", "supervised")
APPENDIX_METHODS = TABLE.methods
# Two columns of ours stand beside each double-hinge column of the paper.
COMPARED = tuple(method for method in TABLE.methods if method in (*PAPER_METHODS, *PRINTED))


class Setting(NamedTuple):
    """All that a cell has besides method and trial."""

    dataset: str
    n_pairs: int
    n_unlabeled: int
    prior: float
    flip: float
    assumed: Assumed


@dataclass(frozen=True)
class Mean:
    """Mean of some trials with its standard error, in per cent."""

    value: float
    error: float
    trials: int


class Measurements:
    """Accuracies of one protocol by setting, method and trial.

    ``quantity="matched"`` counts the better of the two namings of the classes, for every method.
    """

    def __init__(self, records: Iterable[Record], quantity: str = "accuracy") -> None:
        self._values: dict[Setting, dict[str, dict[int, float]]] = {}
        self.seconds: dict[tuple[str, str, int], list[float]] = {}
        self.failures: dict[tuple[Setting, str], int] = {}
        for record in records:
            setting = Setting(*(record[name] for name in Setting._fields))
            method = record["method"]
            if record["error"] is not None:
                self.failures[setting, method] = self.failures.get((setting, method), 0) + 1
                continue
            of_setting = self._values.setdefault(setting, {})
            of_setting.setdefault(method, {})[record["trial"]] = 100 * record[quantity]
            seconds = self.seconds.setdefault((method, setting.dataset, setting.n_pairs), [])
            seconds.append(record["seconds"])

    def settings(self, dataset: str | None = None) -> list[Setting]:
        """The settings measured, or those of one data set."""
        return sorted(s for s in self._values if dataset in (None, s.dataset))

    def datasets(self) -> list[str]:
        """The data sets measured."""
        return sorted({s.dataset for s in self._values})

    def methods(self, setting: Setting) -> dict[str, dict[int, float]]:
        """Accuracies of every method in a setting."""
        return self._values.get(setting, {})

    def tried(self, setting: Setting) -> list[str]:
        """Names of the methods in a setting, with an answer or without."""
        failed = {method for where, method in self.failures if where == setting}
        return sorted({*self.methods(setting), *failed})

    def values(self, setting: Setting, method: str) -> dict[int, float]:
        """Accuracies of one method in a setting; empty where it was not measured."""
        return self.methods(setting).get(method, {})


def mean_of(values: Values) -> Mean:
    """Mean and standard error."""
    numbers = _numbers(values)
    spread = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else math.nan
    return Mean(float(np.mean(numbers)), spread / math.sqrt(len(numbers)), len(numbers))


def not_worse_than_best(values: Mapping[str, Values]) -> set[str]:
    """The paper's bold face: the best, and all that a one-sided t-test at 5% cannot tell from it."""
    means = {method: mean_of(v) for method, v in values.items() if v}
    if not means:
        return set()
    best = max(means, key=lambda method: means[method].value)
    return {m for m in means if m == best or not is_above(values[best], values[m])}


def is_above(first: Values, second: Values) -> bool:
    """Whether the first mean is above the second by a one-sided t-test of Welch at 5%."""
    a = mean_of(first)
    b = mean_of(second)
    gap = a.value - b.value
    variance = _square(a.error) + _square(b.error)
    if variance == 0 or min(a.trials, b.trials) < 2:
        return gap > 0 and min(a.trials, b.trials) > 1
    spread = sum(_square(_square(m.error)) / (m.trials - 1) for m in (a, b))
    return _tail(gap / math.sqrt(variance), variance**2 / spread) < LEVEL


def paired_outcome(first: Values, second: Values) -> int:
    """+1 where the first wins, -1 where it loses, else 0: a one-sided t-test at 5% on common trials."""
    trials = sorted(first.keys() & second.keys())
    gaps = np.array([first[trial] - second[trial] for trial in trials])
    if len(gaps) < 2:
        return 0
    mean = float(gaps.mean())
    error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    if error > 0 and _tail(abs(mean) / error, len(gaps) - 1) >= LEVEL:
        return 0
    return int(np.sign(mean))


def _tail(statistic: float, freedom: float) -> float:
    return float(student.sf(statistic, freedom))


def _square(x: float) -> float:
    return 0.0 if math.isnan(x) else x * x


def _numbers(values: Values) -> Array:
    return np.array([values[trial] for trial in sorted(values)])


@dataclass(frozen=True)
class Printed:
    """One printed cell: accuracy and standard error in per cent, and whether it is bold."""

    accuracy: float
    standard_error: float
    bold: bool


Paper: TypeAlias = dict[tuple[str, int, str], Printed]


def paper_table() -> Paper:
    """(data set, number of pairs, method) -> what the paper prints."""
    text = (Path(__file__).parent / "paper_table.csv").read_text(encoding="utf-8")
    return {
        (row["dataset"], int(row["n_pairs"]), row["method"]): Printed(
            float(row["accuracy"]), float(row["standard_error"]), row["bold"] == "1"
        )
        for row in csv.DictReader(text.splitlines())
    }


@dataclass(frozen=True)
class Summary:
    """A method in a setting, in per cent: an entry of a table, a line of a CSV file.

    ``accuracy`` is None where no trial had an answer, ``bold`` where no method of the paper is better by the t-test,
    ``better`` where a method that the paper does not have beats all that it has; ``difference`` is ours less the
    paper's, where it has the same sizes and prior.
    """

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
    better: bool


class Row(NamedTuple):
    """One line of the accuracy table: a setting, and an entry for each method tried in it."""

    setting: Setting
    entries: dict[str, Summary]


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
    entries = {}
    for method in measured.tried(setting):
        own = values.get(method, {})
        new = method in EXTRAS and bool(own) and bool(in_paper)
        mean = mean_of(own) if own else None
        printed = _printed(paper, setting, method)
        entries[method] = Summary(
            **setting._asdict(),
            method=method,
            trials=len(own),
            failed=measured.failures.get((setting, method), 0),
            accuracy=mean.value if mean else None,
            standard_error=mean.error if mean else None,
            bold=method in bold,
            paper_accuracy=printed.accuracy if printed else None,
            paper_standard_error=printed.standard_error if printed else None,
            difference=mean.value - printed.accuracy if mean and printed else None,
            better=new and all(is_above(own, other) for other in in_paper.values()),
        )
    return Row(setting, entries)


def _printed(paper: Paper, setting: Setting, method: str) -> Printed | None:
    """The paper's number, where it is for the same sizes and prior."""
    column = method.replace("-printed", "-double_hinge")
    comparable = setting[2:] == (500, 0.7, 0.0, "counts")
    return paper.get((setting.dataset, setting.n_pairs, column)) if comparable else None


def measured_methods(rows: Sequence[Row], wanted: Sequence[str]) -> list[str]:
    """The wanted columns that have at least one number."""
    found = {m for row in rows for m, entry in row.entries.items() if entry.trials}
    return [method for method in wanted if method in found]


def beside_paper(rows: Sequence[Row], methods: Sequence[str]) -> list[Summary]:
    """The entries of some methods that have a number of the paper beside them."""
    found = (row.entries.get(method) for row in rows for method in methods)
    return [entry for entry in found if entry and entry.difference is not None]


def agreement(rows: Sequence[Row]) -> list[Agreement]:
    """Per column: how far our numbers are from the printed ones."""
    found = []
    for method in COMPARED:
        gaps = np.array([entry.difference for entry in beside_paper(rows, [method])])
        if gaps.size:
            size = np.abs(gaps)
            over_2 = int(np.sum(size > 2))
            over_4 = int(np.sum(size > 4))
            bias = float(gaps.mean())
            found.append(Agreement(method, gaps.size, bias, float(size.mean()), over_2, over_4))
    return found


def far_cells(rows: Sequence[Row], points: float = 4) -> list[Summary]:
    """Entries further than ``points`` from the paper, the furthest first."""
    compared = beside_paper(rows, COMPARED)
    far = [entry for entry in compared if abs(entry.difference or 0) > points]
    return sorted(far, key=lambda entry: -abs(entry.difference or 0))


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
    return [entry for row in accuracy_rows(measured) for entry in row.entries.values()]


_CSV_FIELDS = [field.name for field in fields(Summary) if field.name != "better"]
_CSV_FORMATS = {"accuracy": ".2f", "standard_error": ".2f", "bold": "d", "difference": "+.2f"}


def write_csv(path: Path, measured: Measurements) -> None:
    """Write the summary of a protocol, a line for each method and setting."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_CSV_FIELDS)
        for line in summary(measured):
            writer.writerow([_as_text(name, getattr(line, name)) for name in _CSV_FIELDS])


def _as_text(name: str, value: object) -> str:
    return "" if value is None else format(value, _CSV_FORMATS.get(name, ""))
