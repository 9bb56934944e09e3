"""Tables of the report as plain data: our number, the paper's beside it, and the difference."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from sdulearn.experiments.measurements import (
    Measurements,
    Setting,
    is_above,
    mean_of,
    not_worse_than_best,
)
from sdulearn.experiments.paper import Printed, paper_table
from sdulearn.experiments.protocol import CLUSTERINGS, EXTRAS, MIXTURES, PRINTED, TABLE, Assumed

Paper: TypeAlias = dict[tuple[str, int, str], Printed]

PAPER_METHODS = (*MIXTURES, *CLUSTERINGS)
TABLE1_METHODS = ("sddu-squared", "sddu-double_hinge", "sddu-printed", *CLUSTERINGS, "joint", "supervised")
APPENDIX_METHODS = TABLE.methods
# Two columns of ours stand beside each double-hinge column of the paper.
COMPARED = tuple(method for method in TABLE.methods if method in (*PAPER_METHODS, *PRINTED))


@dataclass(frozen=True)
class Summary:
    """A method in a setting, in per cent: an entry of a table, a line of a CSV file.

    Parameters
    ----------
    dataset : str
        Where it was measured.
    n_pairs, n_unlabeled : int
        Numbers of pairs and of unlabeled rows.
    prior, flip : float
        True share of class +1, and share of the answers turned round.
    assumed : float or str
        The prior given to the method; see :class:`Protocol`.
    method : str
        Its name, as in :class:`Protocol`.
    trials, failed : int
        Trials with an answer and without.
    accuracy, standard_error : float or None
        Ours; None where no trial had an answer.
    bold : bool
        Whether no method of the paper is better by the t-test.
    paper_accuracy, paper_standard_error : float or None
        The paper's, where it has the same sizes and prior.
    difference : float or None
        Ours less the paper's, in points.
    better : bool
        Whether a method that the paper does not have beats all that it has.

    See Also
    --------
    demonstrate : Returns a list of these.
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
