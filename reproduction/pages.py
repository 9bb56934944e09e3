"""The report as files: one HTML page that needs nothing else, Markdown, CSV files and PNG figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from reproduction import notes
from reproduction.claims import RULE, Claim, Comparison
from reproduction.figures import (
    FIGURES,
    Figure,
    caption,
    drawn_methods,
    style,
    svg_panels,
    write_png,
)
from reproduction.methods import METHODS
from reproduction.protocol import PROTOCOLS
from reproduction.report import TITLE, Report
from reproduction.runner import make_folder
from reproduction.tables import (
    APPENDIX_METHODS,
    TABLE1_METHODS,
    Agreement,
    Measurements,
    Row,
    Runtime,
    Setting,
    Summary,
    agreement,
    far_cells,
    measured_methods,
    runtimes,
    write_csv,
)

LEAD = (
    "Classification from pairwise similarities, dissimilarities and unlabeled data: every experiment "
    "of the paper run again, with new ones beside them."
)
NOTHING = "–"


def write_report(report: Report, out: Path) -> Path:
    """Write ``report.html``, ``report.md``, CSV files and ``figures/*.png``; the page's path."""
    make_folder(out / "figures")
    for name, measured in report.measured.items():
        write_csv(out / f"{name}.csv", measured)
    for figure in FIGURES:
        if figure.name in report.figure_data:
            path = out / "figures" / f"{figure.name}.png"
            write_png(path, figure, report.figure_data[figure.name])
    (out / "report.md").write_text(_page(report, _Markdown()), encoding="utf-8")
    page = out / "report.html"
    page.write_text(_page(report, _Html()), encoding="utf-8")
    return page


class _Section(NamedTuple):
    name: str
    short: str
    title: str
    blocks: list[str]


class _Markdown:
    """How the parts of a report are written; figures are links to PNG files beside it."""

    def page(self, lead: str, claims: Sequence[Claim], sections: Sequence[_Section]) -> str:
        parts = [f"# {TITLE}", lead]
        for section in sections:
            parts += [f"## {section.title}", *section.blocks]
        return "\n\n".join(part for part in parts if part) + "\n"

    def text(self, text: str) -> str:
        return text.replace("|", "\\|")

    def paragraph(self, text: str) -> str:
        return text

    def bullets(self, points: Iterable[str]) -> str:
        return "\n".join(f"- {point}" for point in points)

    def claim(self, claim: Claim) -> str:
        return f"### {claim.name}: {claim.verdict}\n\n{claim.text} {_count(claim)}."

    def table(self, head: Sequence[str], body: Iterable[Sequence[str]], grouped: bool = False) -> str:
        """First column to the left and the others to the right."""
        lines = [head, ["---", *("---:" for _ in head[1:])], *body]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def folded(self, title: str, table: str) -> str:
        """Markdown cannot fold a table away: it is left to the page."""
        return ""

    def chart(self, figure: Figure, measured: Measurements) -> str:
        return f"![{PROTOCOLS[figure.name].title}](figures/{figure.name}.png)"

    def strong(self, text: str) -> str:
        return f"**{text}**"

    def small(self, text: str) -> str:
        return text

    def below(self, text: str) -> str:
        return f" / {text}"

    def verdict(self, word: str) -> str:
        return f"*{word}*"

    def gap(self, points: float) -> str:
        return f"({points:+.1f})"


class _Html(_Markdown):
    """The same parts for a page with its style sheet and figures in it."""

    def page(self, lead: str, claims: Sequence[Claim], sections: Sequence[_Section]) -> str:
        style_sheet = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
        links = "".join(f'<a href="#{part.name}">{escape(part.short)}</a>' for part in sections)
        cards = "".join(map(self.card, claims))
        content = "\n".join(map(self.section, sections))
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(TITLE)}</title>
<style>
{style_sheet}</style>
</head>
<body>
<main>
<h1>{escape(TITLE)}</h1>
<p class="lead">{escape(lead)}</p>
<nav>{links}</nav>
<div class="cards">{cards}</div>
{content}
</main>
</body>
</html>
"""

    def card(self, claim: Claim) -> str:
        head = f"<b>{escape(claim.name)}</b>{self.verdict(claim.verdict)}"
        return f'<div class="card">{head}<br><small>{_count(claim)}</small></div>'

    def section(self, part: _Section) -> str:
        content = "\n".join(part.blocks)
        return f'<section id="{part.name}">\n<h2>{escape(part.title)}</h2>\n{content}\n</section>'

    def text(self, text: str) -> str:
        return escape(text)

    def paragraph(self, text: str) -> str:
        return f"<p>{escape(text)}</p>"

    def bullets(self, points: Iterable[str]) -> str:
        return f"<ul>{''.join(f'<li>{escape(point)}</li>' for point in points)}</ul>"

    def claim(self, claim: Claim) -> str:
        head = f"{escape(claim.name)}: {self.verdict(claim.verdict)}"
        return f"<h3>{head}</h3>{self.paragraph(claim.text)}"

    def table(self, head: Sequence[str], body: Iterable[Sequence[str]], grouped: bool = False) -> str:
        """A table that scrolls sideways within itself; lines of one data set can be kept together."""
        top = "".join(f'<th scope="col">{title}</th>' for title in head)
        lines = []
        before = ""
        for first, *others in body:
            group = first.partition(" ")[0]
            kind = ' class="first-of-set"' if grouped and group != before else ""
            before = group
            cells = "".join(f"<td>{cell}</td>" for cell in others)
            lines.append(f'<tr{kind}><th scope="row">{first}</th>{cells}</tr>\n')
        return (
            f'<div class="scroll" tabindex="0"><table>\n<thead><tr>{top}</tr></thead>\n'
            f"<tbody>\n{''.join(lines)}</tbody>\n</table></div>"
        )

    def folded(self, title: str, table: str) -> str:
        return f"<details><summary>{title}</summary>{table}</details>"

    def chart(self, figure: Figure, measured: Measurements) -> str:
        keys = [
            f'<span><i style="color:{style(method)[0]}"></i>{_label(method)}</span>'
            for method in drawn_methods(figure, measured)
        ]
        if figure.dashed:
            keys.append(f'<span><i class="dashed"></i>{_label(figure.dashed)}</span>')
        panels = "\n".join(svg_panels(figure, measured).values())
        return f'<div class="legend">{"".join(keys)}</div>\n<div class="panels">\n{panels}\n</div>'

    def strong(self, text: str) -> str:
        return f"<strong>{text}</strong>"

    def small(self, text: str) -> str:
        return f"<small>{text}</small>"

    def below(self, text: str) -> str:
        return f"<br><small>{text}</small>"

    def verdict(self, word: str) -> str:
        return f'<span class="verdict {word.replace(" ", "-")}">{word}</span>'

    def gap(self, points: float) -> str:
        kind = "near" if abs(points) <= 2 else ""
        if abs(points) > 4:
            kind = "far"
        return f'<span class="{kind}">{points:+.1f}</span>'


def _page(report: Report, form: _Markdown) -> str:
    """All that the report says, in one of the two forms."""
    measured = [claim for claim in report.claims if claim.verdict != "not measured"]
    claims = [block for claim in measured for block in _claim(claim, form)]
    how = [form.bullets(notes.HOW_TO_READ), form.paragraph(notes.PROTOCOL)]
    sections = [
        _Section("claims", "Claims", "The paper's claims", [*claims, form.paragraph(RULE)]),
        _Section("how", "How to read", "How to read the tables", how),
        *(_accuracy_sections(report, form) if report.rows else []),
        *(_figure(f, report, form) for f in FIGURES if f.name in report.figure_data),
        _Section("provenance", "Provenance", "Where the numbers come from", _provenance(report, form)),
    ]
    return form.page(f"{LEAD} {report.extent}", measured, sections)


def _claim(claim: Claim, form: _Markdown) -> list[str]:
    head = ["Comparison", "won", "even", "lost", "mean gap, points"]
    body = [_comparison(c, form) for c in claim.comparisons]
    return [form.claim(claim), form.table(head, body)] if body else [form.claim(claim)]


def _comparison(c: Comparison, form: _Markdown) -> list[str]:
    name = f"{c.label} {form.small(form.verdict(c.verdict))}"
    return [name, str(c.wins), str(c.ties), str(c.losses), f"{c.gap:+.1f}"]


def _count(claim: Claim) -> str:
    return "{} won, {} even, {} lost".format(*claim.counts)


def _accuracy_sections(report: Report, form: _Markdown) -> list[_Section]:
    table1 = [_accuracy(report.rows, TABLE1_METHODS, form)]
    appendix = [_accuracy(report.rows, APPENDIX_METHODS, form)]
    differences = _differences(report.rows, form)
    times = _running_time(report.measured["table"], form)
    return [
        _Section("table1", "Table 1", "Table 1: SDDU and the clusterings", table1),
        _Section("appendix", "Appendix table", "Appendix table: every method", appendix),
        _Section("differences", "Differences", "What did not reproduce, and why", differences),
        _Section("runtime", "Running time", "Running time", times),
    ]


def _accuracy(rows: Sequence[Row], wanted: Sequence[str], form: _Markdown) -> str:
    methods = measured_methods(rows, wanted)
    body = []
    for row in rows:
        entries = [_entry(row.entries.get(method), form) for method in methods]
        body.append([_where(row.setting, form), *entries])
    return form.table(["Data set", *map(_label, methods)], body, grouped=True)


def _where(cell: Setting | Summary, form: _Markdown) -> str:
    return f"{cell.dataset} {form.small(f'{cell.n_pairs} pairs')}"


def _entry(entry: Summary | None, form: _Markdown) -> str:
    if entry is None or entry.accuracy is None:
        return NOTHING
    value = f"{entry.accuracy:.1f}"
    if entry.bold:
        value = form.strong(value)
    text = f"{value} {form.small(_bracketed(entry.standard_error))}"
    if entry.better:
        text += " ↑"
    if entry.difference is not None:
        text += form.below(f"{entry.paper_accuracy:.1f} {form.gap(entry.difference)}")
    return text


def _bracketed(error: float | None) -> str:
    """A standard error in brackets; one trial has none."""
    return f"({NOTHING})" if error is None or math.isnan(error) else f"({error:.1f})"


def _differences(rows: Sequence[Row], form: _Markdown) -> list[str]:
    found = agreement(rows)
    if not found:
        return [form.paragraph("The paper has no numbers for the sets of this run.")]
    far = far_cells(rows)
    far_sets = {entry.dataset for entry in far}
    words = list(dict.fromkeys(notes.reason(a.method) for a in found if a.over_4))
    words += [note for name, note in notes.SETS.items() if name in far_sets]
    blocks = [_agreement(found, form), *map(form.paragraph, words)]
    if far:
        head = ["Cell", "method", "ours", "paper", "difference"]
        title = f"Cells more than 4 points from the paper ({len(far)})"
        blocks.append(form.folded(title, form.table(head, (_far(entry, form) for entry in far))))
    return blocks


def _agreement(found: Sequence[Agreement], form: _Markdown) -> str:
    head = ["Method", "cells", "mean difference", "mean size", "over 2 points", "over 4 points"]
    body = []
    for a in found:
        gaps = [f"{a.bias:+.1f}", f"{a.distance:.1f}"]
        body.append([_label(a.method), str(a.cells), *gaps, str(a.over_2), str(a.over_4)])
    return form.table(head, body)


def _far(entry: Summary, form: _Markdown) -> list[str]:
    numbers = [f"{entry.accuracy:.1f}", f"{entry.paper_accuracy:.1f}", f"{entry.difference:+.1f}"]
    return [_where(entry, form), _label(entry.method), *numbers]


def _running_time(measured: Measurements, form: _Markdown) -> list[str]:
    def slowest(time: Runtime | None) -> str:
        return f"{time.slowest_median:.3f} {form.small(time.slowest_set)}" if time else NOTHING

    found = runtimes(measured)
    sizes = sorted({n for by_size in found.values() for n in by_size})
    head = ["Method", *(f"{n} pairs" for n in sizes), *(f"slowest set, {n} pairs" for n in sizes)]
    body = []
    for method in (name for name in APPENDIX_METHODS if name in found):
        times = [found[method].get(n) for n in sizes]
        medians = [f"{time.median:.3f}" if time else NOTHING for time in times]
        body.append([_label(method), *medians, *map(slowest, times)])
    text = (
        "Median CPU seconds of one complete fit, cross-validation and prediction included, with one "
        "BLAS thread, taken from the runs behind the table above."
    )
    return [form.paragraph(text), form.table(head, body)]


def _figure(figure: Figure, report: Report, form: _Markdown) -> _Section:
    title = PROTOCOLS[figure.name].title
    measured = report.figure_data[figure.name]
    blocks = [form.paragraph(caption(figure, measured)), form.chart(figure, measured)]
    return _Section(figure.name, title.partition(":")[0], title, blocks)


def _provenance(report: Report, form: _Markdown) -> list[str]:
    head = ["Experiment", "cells", "without an answer", "protocol hash", "versions"]
    body = []
    for line in report.provenance:
        versions = ", ".join(f"{name} {number}" for name, number in line.versions.items())
        numbers = [str(line.cells), str(line.failed), line.protocol_hash]
        body.append([line.protocol, *numbers, form.text(versions)])
    blocks = [form.table(head, body)]
    if report.notes:
        blocks += [form.paragraph("Left out:"), form.bullets(report.notes)]
    return blocks


def _label(method: str) -> str:
    return METHODS[method].label
