"""The report as Markdown, for reading in a repository."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sdulearn.experiments import notes
from sdulearn.experiments.claims import RULE
from sdulearn.experiments.figures import FIGURES, caption
from sdulearn.experiments.protocol import PROTOCOLS
from sdulearn.experiments.tables import (
    APPENDIX_METHODS,
    Entry,
    Row,
    agreement,
    bracketed,
    far_cells,
    label,
    measured_methods,
    runtimes,
)

if TYPE_CHECKING:
    from sdulearn.experiments.report import Report


def markdown_page(report: Report) -> str:
    """The whole report; figures are links to PNG files beside it."""
    parts = [f"# {report.title}", report.extent, "## The paper's claims", _claims(report), RULE]
    parts += ["## How to read the tables", "\n".join(f"- {point}" for point in notes.HOW_TO_READ), notes.PROTOCOL]
    if report.rows:
        parts += ["## Appendix table", _accuracy(report.rows)]
        parts += ["## What did not reproduce, and why", *_differences(report.rows)]
        parts += ["## Running time", "Median CPU seconds of one complete fit.", _runtime(report)]
    for figure in FIGURES:
        if figure.name in report.figure_data:
            title = PROTOCOLS[figure.name].title
            parts += [
                f"## {title}",
                caption(figure, report.figure_data[figure.name]),
                f"![{title}](figures/{figure.name}.png)",
            ]
    parts += ["## Where the numbers come from", _provenance(report)]
    parts += [f"- {note}" for note in report.notes]
    return "\n\n".join(parts) + "\n"


def markdown_table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table, first column to the left and the others to the right."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _claims(report: Report) -> str:
    body = []
    for claim in report.claims:
        won, lost = sum(c.wins for c in claim.comparisons), sum(c.losses for c in claim.comparisons)
        even = sum(c.ties for c in claim.comparisons)
        body.append([claim.name, f"**{claim.verdict}**", str(won), str(even), str(lost)])
        body += [
            [f"– {c.label}", f"{c.verdict} ({c.gap:+.1f})", str(c.wins), str(c.ties), str(c.losses)]
            for c in claim.comparisons
        ]
    return markdown_table(["Claim", "verdict (mean gap, points)", "won", "even", "lost"], body)


def _accuracy(rows: Sequence[Row]) -> str:
    methods = measured_methods(rows, APPENDIX_METHODS)
    body = [
        [f"{row.setting.dataset}, {row.setting.n_pairs}", *(_entry(row.entries[method]) for method in methods)]
        for row in rows
    ]
    return markdown_table(["Set, pairs", *map(label, methods)], body)


def _entry(entry: Entry) -> str:
    if entry.mean is None:
        return "–"
    value = f"**{entry.mean.value:.1f}**" if entry.bold else f"{entry.mean.value:.1f}"
    text = f"{value} {bracketed(entry.mean.error)}{' ↑' if entry.better else ''}"
    if entry.printed is not None:
        text += f" / {entry.printed.accuracy:.1f} ({entry.difference:+.1f})"
    return text


def _differences(rows: Sequence[Row]) -> list[str]:
    found = agreement(rows)
    if not found:
        return ["The paper has no numbers for the sets of this run."]
    body = [
        [label(a.method), str(a.cells), f"{a.bias:+.1f}", f"{a.distance:.1f}", str(a.over_2), str(a.over_4)]
        for a in found
    ]
    head = ["Method", "cells", "mean difference", "mean size", "over 2 points", "over 4 points"]
    far = far_cells(rows)
    reasons = dict.fromkeys(notes.reason(a.method) for a in found if a.over_4)
    sets = [note for name, note in notes.SETS.items() if any(row.setting.dataset == name for row, _ in far)]
    return [markdown_table(head, body), *reasons, *sets]


def _runtime(report: Report) -> str:
    found = runtimes(report.measured["table"])
    sizes = sorted({n for by_size in found.values() for n in by_size})
    body = [
        [label(method), *(f"{by_size[n][0]:.3f}" if n in by_size else "–" for n in sizes)]
        for method, by_size in found.items()
    ]
    return markdown_table(["Method", *(f"{n} pairs" for n in sizes)], body)


def _provenance(report: Report) -> str:
    body = [[name, str(cells), str(failed), f"`{mark}`", text] for name, cells, failed, mark, text in report.provenance]
    return markdown_table(["Experiment", "cells", "without an answer", "protocol hash", "versions"], body)
