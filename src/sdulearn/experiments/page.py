"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from sdulearn.experiments import notes
from sdulearn.experiments.claims import RULE, Claim, Comparison
from sdulearn.experiments.figures import FIGURES, Figure, caption, drawn_methods, style, svg_panels
from sdulearn.experiments.measurements import Measurements
from sdulearn.experiments.methods import METHODS
from sdulearn.experiments.protocol import PROTOCOLS
from sdulearn.experiments.tables import (
    APPENDIX_METHODS,
    TABLE1_METHODS,
    Agreement,
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


def html_page(report: Report) -> str:
    """The whole page."""
    sections = [
        _section("claims", "The paper's claims", _claims(report.claims)),
        _section("how", "How to read the tables", _how()),
        *(_accuracy_sections(report) if report.rows else []),
        *(
            _section(f.name, PROTOCOLS[f.name].title, _figure(f, report.figure_data[f.name]))
            for f in FIGURES
            if f.name in report.figure_data
        ),
        _section("provenance", "Where the numbers come from", _provenance(report)),
    ]
    style_sheet = files("sdulearn.experiments").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>\n{style_sheet}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(report.title)}</h1>\n{_lead(report)}\n{_navigation(report)}\n{_cards(report.claims)}\n"
        + "\n".join(sections)
        + "\n</main>\n</body>\n</html>\n"
    )


def html_table(head: Sequence[str], body: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table that scrolls sideways within itself; body rows are (class, cells), all of it HTML already."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    lines = "\n".join(
        f'<tr class="{kind}"><th scope="row">{cells[0]}</th>' + "".join(map(_cell, cells[1:])) + "</tr>"
        for kind, cells in body
    )
    return (
        f'<div class="scroll" tabindex="0"><table>\n<thead><tr>{top}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody>\n</table></div>"
    )


def _cell(html: str) -> str:
    return html if html.startswith("<td") else f"<td>{html}</td>"


def _section(name: str, title: str, content: str) -> str:
    return f'<section id="{name}">\n<h2>{escape(title)}</h2>\n{content}\n</section>'


def _paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _lead(report: Report) -> str:
    return _paragraph(
        "Classification from pairwise similarities, dissimilarities and unlabeled data: every experiment of the "
        f"paper run again, with new ones beside them. {report.extent}",
        "lead",
    )


def _navigation(report: Report) -> str:
    names = [("claims", "Claims"), ("how", "How to read")]
    if report.rows:
        names += [("table1", "Table 1"), ("appendix", "Appendix table"), ("differences", "Differences")]
        names += [("runtime", "Running time")]
    names += [(f.name, PROTOCOLS[f.name].title.partition(":")[0]) for f in FIGURES if f.name in report.figure_data]
    names += [("provenance", "Provenance")]
    return "<nav>" + "".join(f'<a href="#{name}">{escape(text)}</a>' for name, text in names) + "</nav>"


def _cards(claims: Sequence[Claim]) -> str:
    def card(claim: Claim) -> str:
        won = sum(c.wins for c in claim.comparisons)
        lost = sum(c.losses for c in claim.comparisons)
        total = sum(c.total for c in claim.comparisons)
        count = f"{won} won, {total - won - lost} even, {lost} lost" if total else "run the experiments first"
        return f'<div class="card"><b>{escape(claim.name)}</b>{_verdict(claim.verdict)}<br><small>{count}</small></div>'

    return '<div class="cards">' + "".join(map(card, claims)) + "</div>"


def _verdict(word: str) -> str:
    return f'<span class="verdict {word.replace(" ", "-")}">{escape(word)}</span>'


def _claims(claims: Sequence[Claim]) -> str:
    parts = []
    for claim in claims:
        parts.append(f"<h3>{escape(claim.name)}: {_verdict(claim.verdict)}</h3>{_paragraph(claim.text)}")
        body = [("", _comparison_cells(c)) for c in claim.comparisons]
        if body:
            parts.append(html_table(["Comparison", "won", "even", "lost", "mean gap, points"], body))
    return "\n".join(parts) + _paragraph(RULE, "hint")


def _comparison_cells(c: Comparison) -> list[str]:
    head = f"{escape(c.label)} <small>{_verdict(c.verdict)}</small>"
    return [head, str(c.wins), str(c.ties), str(c.losses), f"{c.gap:+.1f}"]


def _how() -> str:
    points = "".join(f"<li>{escape(point)}</li>" for point in notes.HOW_TO_READ)
    return f"<ul>{points}</ul>{_paragraph(notes.PROTOCOL)}"


def _accuracy_sections(report: Report) -> list[str]:
    rows, hint = report.rows, _paragraph("On a narrow screen the table scrolls sideways.", "hint")
    return [
        _section("table1", "Table 1: SDDU and the clusterings", _accuracy(rows, TABLE1_METHODS) + hint),
        _section("appendix", "Appendix table: every method", _accuracy(rows, APPENDIX_METHODS) + hint),
        _section("differences", "What did not reproduce, and why", _differences(rows)),
        _section("runtime", "Running time", _runtime(report.measured["table"])),
    ]


def _accuracy(rows: Sequence[Row], wanted: Sequence[str]) -> str:
    methods = measured_methods(rows, wanted)
    body, before = [], None
    for row in rows:
        kind = "first-of-set" if row.setting.dataset != before else ""
        before = row.setting.dataset
        head = f"{escape(row.setting.dataset)} <small>{row.setting.n_pairs} pairs</small>"
        body.append((kind, [head, *(_entry(row.entries[method]) for method in methods)]))
    return html_table(["Data set", *(escape(label(method)) for method in methods)], body)


def _entry(entry: Entry) -> str:
    if entry.mean is None:
        return "–"
    value = f"{entry.mean.value:.1f}"
    value = f"<strong>{value}</strong>" if entry.bold else value
    text = f"{value} <small>{bracketed(entry.mean.error)}</small>{' ↑' if entry.better else ''}"
    if entry.printed is not None:
        text += f"<br><small>{entry.printed.accuracy:.1f} {_gap(entry.difference or 0.0)}</small>"
    return text


def _gap(points: float) -> str:
    kind = "far" if abs(points) > 4 else "near" if abs(points) <= 2 else ""
    return f'<span class="{kind}">{points:+.1f}</span>'


def _differences(rows: Sequence[Row]) -> str:
    found = agreement(rows)
    if not found:
        return _paragraph("The paper has no numbers for the sets of this run.")
    head = ["Method", "cells", "mean difference", "mean size", "over 2 points", "over 4 points"]
    body = [("", _agreement_cells(a)) for a in found]
    far = far_cells(rows)
    text = html_table(head, body)
    reasons = dict.fromkeys(notes.reason(a.method) for a in found if a.over_4)
    text += "".join(_paragraph(reason) for reason in reasons)
    text += "".join(_paragraph(note) for name, note in notes.SETS.items() if _is_far(far, name))
    if far:
        table = html_table(["Cell", "method", "ours", "paper", "difference"], (_far_row(*cell) for cell in far))
        text += f"<details><summary>Cells more than 4 points from the paper ({len(far)})</summary>{table}</details>"
    return text


def _agreement_cells(a: Agreement) -> list[str]:
    return [label(a.method), str(a.cells), f"{a.bias:+.1f}", f"{a.distance:.1f}", str(a.over_2), str(a.over_4)]


def _is_far(far: Sequence[tuple[Row, str]], name: str) -> bool:
    return any(row.setting.dataset == name for row, _ in far)


def _far_row(row: Row, method: str) -> tuple[str, list[str]]:
    entry = row.entries[method]
    ours = f"{entry.mean.value:.1f}" if entry.mean else "–"
    theirs = f"{entry.printed.accuracy:.1f}" if entry.printed else "–"
    head = f"{escape(row.setting.dataset)} <small>{row.setting.n_pairs} pairs</small>"
    return "", [head, escape(label(method)), ours, theirs, f"{entry.difference or 0.0:+.1f}"]


def _runtime(measured: Measurements) -> str:
    found = runtimes(measured)
    sizes = sorted({n for by_size in found.values() for n in by_size})
    head = ["Method", *(f"{n} pairs" for n in sizes), *(f"slowest set, {n} pairs" for n in sizes)]
    body = []
    for method, by_size in found.items():
        middle = [f"{by_size[n][0]:.3f}" if n in by_size else "–" for n in sizes]
        slow = [f"{by_size[n][2]:.3f} <small>{by_size[n][1]}</small>" if n in by_size else "–" for n in sizes]
        body.append(("", [escape(label(method)), *middle, *slow]))
    text = (
        "Median CPU seconds of one complete fit, cross-validation and prediction included, with one BLAS thread, "
        "taken from the runs behind the table above."
    )
    return _paragraph(text) + html_table(head, body)


def _figure(figure: Figure, measured: Measurements) -> str:
    keys = [
        f'<span><i style="color:{style(method)[0]}"></i>{escape(METHODS[method].label)}</span>'
        for method in drawn_methods(figure, measured)
    ]
    if figure.dashed:
        keys.append(f'<span><i class="dashed"></i>{escape(METHODS[figure.dashed].label)}</span>')
    panels = "\n".join(svg_panels(figure, measured).values())
    legend = f'<div class="legend">{"".join(keys)}</div>'
    return f'{_paragraph(caption(figure, measured))}{legend}\n<div class="panels">\n{panels}\n</div>'


def _provenance(report: Report) -> str:
    head = ["Experiment", "cells", "without an answer", "protocol hash", "versions"]
    body = [
        ("", [escape(name), str(cells), str(failed), f"<code>{mark}</code>", f'<td class="text">{escape(text)}</td>'])
        for name, cells, failed, mark, text in report.provenance
    ]
    left_out = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    text = html_table(head, body)
    return text + (f"<h3>Left out</h3><ul>{left_out}</ul>" if left_out else "")
