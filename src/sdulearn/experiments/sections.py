"""What the report says, section by section; :mod:`pages` gives it the form of a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sdulearn.experiments import notes
from sdulearn.experiments.claims import RULE, Claim, Comparison
from sdulearn.experiments.figures import FIGURES, Figure, caption
from sdulearn.experiments.measurements import Measurements
from sdulearn.experiments.methods import METHODS
from sdulearn.experiments.protocol import PROTOCOLS
from sdulearn.experiments.report import Provenance, Report
from sdulearn.experiments.tables import (
    APPENDIX_METHODS,
    TABLE1_METHODS,
    Agreement,
    Entry,
    Row,
    Runtime,
    agreement,
    far_cells,
    measured_methods,
    runtimes,
)

LEAD = (
    "Classification from pairwise similarities, dissimilarities and unlabeled data: every experiment "
    "of the paper run again, with new ones beside them."
)
NOTHING = "–"


@dataclass(frozen=True)
class Noted:
    """A text with a lesser one beside it."""

    text: str
    note: str


Content: TypeAlias = str | Noted | Entry | Comparison
"""What a cell of a table may hold."""


@dataclass(frozen=True)
class Table:
    """Headlines and lines; where ``summary`` is given, the page folds the table away under it."""

    head: Sequence[str]
    body: Sequence[Sequence[Content]]
    summary: str = ""


@dataclass(frozen=True)
class Chart:
    """A figure and what it shows."""

    figure: Figure
    measured: Measurements


Block: TypeAlias = str | list[str] | Claim | Table | Chart
"""A paragraph, a list, a claim with its verdict, a table or a figure."""


@dataclass(frozen=True)
class Section:
    """A part of the report: its anchor, its name in the list of contents, its title and content."""

    name: str
    short: str
    title: str
    blocks: list[Block]


def sections(report: Report) -> list[Section]:
    """All that the report says."""
    provenance: list[Block] = [_provenance(report.provenance)]
    if report.notes:
        provenance += ["Left out:", report.notes]
    return [
        Section("claims", "Claims", "The paper's claims", [*_claims(report.claims), RULE]),
        Section("how", "How to read", "How to read the tables", [[*notes.HOW_TO_READ], notes.PROTOCOL]),
        *(_accuracy_sections(report) if report.rows else []),
        *(_figure(f, report.figure_data[f.name]) for f in FIGURES if f.name in report.figure_data),
        Section("provenance", "Provenance", "Where the numbers come from", provenance),
    ]


def _claims(claims: Sequence[Claim]) -> Iterator[Block]:
    head = ["Comparison", "won", "even", "lost", "mean gap, points"]
    for claim in claims:
        yield claim
        if claim.comparisons:
            yield Table(head, [_comparison_line(c) for c in claim.comparisons])


def _comparison_line(c: Comparison) -> list[Content]:
    return [c, str(c.wins), str(c.ties), str(c.losses), f"{c.gap:+.1f}"]


def _accuracy_sections(report: Report) -> list[Section]:
    rows = report.rows
    table1 = "Table 1: SDDU and the clusterings"
    differences = "What did not reproduce, and why"
    return [
        Section("table1", "Table 1", table1, [_accuracy(rows, TABLE1_METHODS)]),
        Section(
            "appendix",
            "Appendix table",
            "Appendix table: every method",
            [_accuracy(rows, APPENDIX_METHODS)],
        ),
        Section("differences", "Differences", differences, _differences(rows)),
        Section("runtime", "Running time", "Running time", _running_time(report.measured["table"])),
    ]


def _accuracy(rows: Sequence[Row], wanted: Sequence[str]) -> Table:
    methods = measured_methods(rows, wanted)
    body: list[list[Content]] = [[_where(row), *map(row.entry, methods)] for row in rows]
    return Table(["Data set", *map(_label, methods)], body)


def _differences(rows: Sequence[Row]) -> list[Block]:
    found = agreement(rows)
    if not found:
        return ["The paper has no numbers for the sets of this run."]
    far = far_cells(rows)
    far_sets = {row.setting.dataset for row, _ in far}
    blocks: list[Block] = [_agreement(found)]
    blocks += dict.fromkeys(notes.reason(a.method) for a in found if a.over_4)
    blocks += [note for name, note in notes.SETS.items() if name in far_sets]
    if far:
        title = f"Cells more than 4 points from the paper ({len(far)})"
        body = [_far_line(row, method) for row, method in far]
        blocks.append(Table(["Cell", "method", "ours", "paper", "difference"], body, title))
    return blocks


def _agreement(found: Sequence[Agreement]) -> Table:
    body = [
        [
            _label(a.method),
            str(a.cells),
            f"{a.bias:+.1f}",
            f"{a.distance:.1f}",
            str(a.over_2),
            str(a.over_4),
        ]
        for a in found
    ]
    return Table(["Method", "cells", "mean difference", "mean size", "over 2 points", "over 4 points"], body)


def _far_line(row: Row, method: str) -> list[Content]:
    entry = row.entry(method)
    ours = f"{entry.mean.value:.1f}" if entry.mean else NOTHING
    theirs = f"{entry.printed.accuracy:.1f}" if entry.printed else NOTHING
    return [_where(row), _label(method), ours, theirs, f"{entry.difference or 0.0:+.1f}"]


def _running_time(measured: Measurements) -> list[Block]:
    found = runtimes(measured)
    sizes = sorted({n for by_size in found.values() for n in by_size})
    head = ["Method", *(f"{n} pairs" for n in sizes), *(f"slowest set, {n} pairs" for n in sizes)]
    body = [
        [_label(method), *_times([found[method].get(n) for n in sizes])]
        for method in APPENDIX_METHODS
        if method in found
    ]
    text = (
        "Median CPU seconds of one complete fit, cross-validation and prediction included, with one "
        "BLAS thread, taken from the runs behind the table above."
    )
    return [text, Table(head, body)]


def _times(by_size: Sequence[Runtime | None]) -> list[Content]:
    medians: list[Content] = [f"{t.median:.3f}" if t else NOTHING for t in by_size]
    slowest = [Noted(f"{t.slowest_median:.3f}", t.slowest_set) if t else NOTHING for t in by_size]
    return [*medians, *slowest]


def _figure(figure: Figure, measured: Measurements) -> Section:
    title = PROTOCOLS[figure.name].title
    blocks: list[Block] = [caption(figure, measured), Chart(figure, measured)]
    return Section(figure.name, title.partition(":")[0], title, blocks)


def _provenance(lines: Sequence[Provenance]) -> Table:
    body = [
        [
            line.protocol,
            str(line.cells),
            str(line.failed),
            line.protocol_hash,
            ", ".join(f"{name} {number}" for name, number in line.versions.items()),
        ]
        for line in lines
    ]
    return Table(["Experiment", "cells", "without an answer", "protocol hash", "versions"], body)


def _where(row: Row) -> Noted:
    return Noted(row.setting.dataset, f"{row.setting.n_pairs} pairs")


def _label(method: str) -> str:
    return METHODS[method].label


def bracketed(error: float) -> str:
    """A standard error in brackets; one trial has none."""
    return f"({NOTHING})" if math.isnan(error) else f"({error:.1f})"
