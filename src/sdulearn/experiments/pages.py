"""The report as files: one HTML page that needs nothing else, Markdown, CSV files and PNG figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from sdulearn.experiments.claims import Claim, Comparison
from sdulearn.experiments.figures import FIGURES, drawn_methods, style, svg_panels, write_png
from sdulearn.experiments.methods import METHODS
from sdulearn.experiments.protocol import PROTOCOLS
from sdulearn.experiments.report import TITLE, Report
from sdulearn.experiments.results import make_folder
from sdulearn.experiments.sections import (
    LEAD,
    NOTHING,
    Block,
    Chart,
    Content,
    Noted,
    Section,
    Table,
    bracketed,
    sections,
)
from sdulearn.experiments.tables import Entry, write_csv

# A cell with more than a few words is set as text, not as a number.
_LONG = 40


def write_report(report: Report, out: Path) -> Path:
    """Write ``report.html``, ``report.md``, CSV files and ``figures/*.png``; the page's path."""
    make_folder(out / "figures")
    for name, measured in report.measured.items():
        write_csv(out / f"{name}.csv", measured)
    for figure in FIGURES:
        if figure.name in report.figure_data:
            path = out / "figures" / f"{figure.name}.png"
            write_png(path, figure, report.figure_data[figure.name])
    (out / "report.md").write_text(markdown_page(report), encoding="utf-8")
    page = out / "report.html"
    page.write_text(html_page(report), encoding="utf-8")
    return page


def markdown_page(report: Report) -> str:
    """The report for reading in a repository; figures are links to PNG files beside it."""
    parts = [f"# {TITLE}", f"{LEAD} {report.extent}"]
    for section in sections(report):
        parts += [f"## {section.title}", *map(_markdown_block, section.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_block(block: Block) -> str:
    match block:
        case list():
            return "\n".join(f"- {point}" for point in block)
        case Claim():
            return f"### {block.name}: {block.verdict}\n\n{block.text} {_count(block)}."
        case Table():
            return "" if block.summary else _markdown_table(block)
        case Chart():
            name = block.figure.name
            return f"![{PROTOCOLS[name].title}](figures/{name}.png)"
    return block


def _markdown_table(table: Table) -> str:
    """First column to the left and the others to the right."""
    body = [[_markdown_cell(content) for content in line] for line in table.body]
    lines = [table.head, ["---", *("---:" for _ in table.head[1:])], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cell(content: Content) -> str:
    match content:
        case Noted():
            return f"{content.text}, {content.note}"
        case Comparison():
            return f"{content.label}: {content.verdict}"
        case Entry():
            return _markdown_entry(content)
    return content.replace("|", "\\|")


def _markdown_entry(entry: Entry) -> str:
    if entry.mean is None:
        return NOTHING
    value = f"**{entry.mean.value:.1f}**" if entry.bold else f"{entry.mean.value:.1f}"
    text = f"{value} {bracketed(entry.mean.error)}{' ↑' if entry.better else ''}"
    if entry.printed is not None:
        text += f" / {entry.printed.accuracy:.1f} ({entry.difference:+.1f})"
    return text


def html_page(report: Report) -> str:
    """The whole page, with its style sheet and figures in it."""
    style_sheet = files("sdulearn.experiments").joinpath("page.css").read_text(encoding="utf-8")
    parts = sections(report)
    links = "".join(f'<a href="#{part.name}">{escape(part.short)}</a>' for part in parts)
    cards = "".join(map(_card, report.claims))
    content = "\n".join(map(_section, parts))
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
<p class="lead">{escape(f"{LEAD} {report.extent}")}</p>
<nav>{links}</nav>
<div class="cards">{cards}</div>
{content}
</main>
</body>
</html>
"""


def _card(claim: Claim) -> str:
    name = escape(claim.name)
    verdict = _verdict(claim.verdict)
    return f'<div class="card"><b>{name}</b>{verdict}<br><small>{_count(claim)}</small></div>'


def _count(claim: Claim) -> str:
    won, even, lost = claim.counts
    if won + even + lost == 0:
        return "Run the experiments first"
    return f"{won} won, {even} even, {lost} lost"


def _verdict(word: str) -> str:
    return f'<span class="verdict {word.replace(" ", "-")}">{escape(word)}</span>'


def _section(section: Section) -> str:
    content = "\n".join(map(_html_block, section.blocks))
    return f'<section id="{section.name}">\n<h2>{escape(section.title)}</h2>\n{content}\n</section>'


def _html_block(block: Block) -> str:
    match block:
        case list():
            return f"<ul>{''.join(f'<li>{escape(point)}</li>' for point in block)}</ul>"
        case Claim():
            head = f"{escape(block.name)}: {_verdict(block.verdict)}"
            return f"<h3>{head}</h3><p>{escape(block.text)}</p>"
        case Table(summary=""):
            return _html_table(block)
        case Table():
            summary = escape(block.summary)
            return f"<details><summary>{summary}</summary>{_html_table(block)}</details>"
        case Chart():
            return _html_chart(block)
    return f"<p>{escape(block)}</p>"


def _html_table(table: Table) -> str:
    """A table that scrolls sideways within itself."""
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in table.head)
    body = []
    before = None
    for line in table.body:
        group = line[0].text if isinstance(line[0], Noted) else None
        kind = ' class="first-of-set"' if group != before else ""
        before = group
        body.append(f"<tr{kind}>{_html_line(line)}</tr>")
    return (
        f'<div class="scroll" tabindex="0"><table>\n<thead><tr>{head}</tr></thead>\n'
        "<tbody>\n" + "\n".join(body) + "\n</tbody>\n</table></div>"
    )


def _html_line(line: Sequence[Content]) -> str:
    first = f'<th scope="row">{_html_cell(line[0])}</th>'
    return first + "".join(map(_html_data, line[1:]))


def _html_data(content: Content) -> str:
    is_text = isinstance(content, str) and len(content) > _LONG
    kind = ' class="text"' if is_text else ""
    return f"<td{kind}>{_html_cell(content)}</td>"


def _html_cell(content: Content) -> str:
    match content:
        case Noted():
            return f"{escape(content.text)} <small>{escape(content.note)}</small>"
        case Comparison():
            return f"{escape(content.label)} <small>{_verdict(content.verdict)}</small>"
        case Entry():
            return _html_entry(content)
    return escape(content)


def _html_entry(entry: Entry) -> str:
    if entry.mean is None:
        return NOTHING
    value = f"{entry.mean.value:.1f}"
    value = f"<strong>{value}</strong>" if entry.bold else value
    text = f"{value} <small>{bracketed(entry.mean.error)}</small>{' ↑' if entry.better else ''}"
    if entry.printed is not None:
        gap = _gap(entry.difference or 0.0)
        text += f"<br><small>{entry.printed.accuracy:.1f} {gap}</small>"
    return text


def _gap(points: float) -> str:
    kind = "near" if abs(points) <= 2 else ""
    if abs(points) > 4:
        kind = "far"
    return f'<span class="{kind}">{points:+.1f}</span>'


def _html_chart(chart: Chart) -> str:
    figure = chart.figure
    keys = [
        f'<span><i style="color:{style(method)[0]}"></i>{escape(METHODS[method].label)}</span>'
        for method in drawn_methods(figure, chart.measured)
    ]
    if figure.dashed:
        label = escape(METHODS[figure.dashed].label)
        keys.append(f'<span><i class="dashed"></i>{label}</span>')
    panels = "\n".join(svg_panels(figure, chart.measured).values())
    legend = f'<div class="legend">{"".join(keys)}</div>'
    return f'{legend}\n<div class="panels">\n{panels}\n</div>'
