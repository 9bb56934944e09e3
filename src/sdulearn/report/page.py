"""The report page, one self-contained HTML file without scripts: sentences of findings, and small charts.

All of its text and markup is in ``page.html.jinja``, which escapes every value; this module sorts findings into
sections and computes where bars and curves are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from sdulearn.errors import require
from sdulearn.findings import Finding
from sdulearn.report.records import MAX_DEPENDENCE_ROWS, ColumnDependence
from sdulearn.report.results import Opening

# Sections with the codes of their findings; all other findings are warnings and notes.
WARNINGS = "Warnings and notes"
SECTIONS = {
    "Answers": ("answers_read", "crowd"),
    WARNINGS: (),
    "People": ("people",),
    "Confused classes": ("answer_table",),
    "Accuracy": ("majority", "agreement_with_answers"),
    "Classes": ("prior", "class_shares", "labels_used", "classes_found"),
    "Answers by predicted class": ("held_out_counts",),
    "Rows that were asked about": ("answered",),
    "Data": ("table_read", "columns_read", "answers_used", "understood", "settings", "model_kind"),
    "Annotators": ("annotators",),
    "Most doubtful answers": ("doubtful",),
    "Strongest features": ("strengths",),
    "Importance of the columns": ("importances",),
    "Partial dependence": ("dependence",),
}
# This section and those after it are folded.
_FIRST_FOLDED = "Accuracy"


class Section(NamedTuple):
    """A part of the page."""

    title: str
    findings: list[Finding]
    is_folded: bool


class Bar(NamedTuple):
    """A bar with an interval, in per cent of the width."""

    left: float
    width: float
    low: float
    span: float


def whole_page(name: str, findings: Iterable[Finding], command: str = "") -> str:
    """Return an HTML page of findings, with a command to go on with."""
    found = list(findings)
    opening = [finding for finding in found if isinstance(finding, Opening)]
    rest = [finding for finding in found if not isinstance(finding, Opening)]
    return str(_template().render(name=name, command=command, opening_findings=opening, sections=_sections(rest)))


def opening_of(findings: Iterable[Finding]) -> str:
    """Return the first sentences as HTML, with the chart of the headline; for notebooks."""
    opening = [finding for finding in findings if isinstance(finding, Opening)]
    return str(_template().render(name=None, opening_findings=opening))


def _sections(findings: Sequence[Finding]) -> list[Section]:
    """Return the sections that have findings, and warnings and notes in any case."""
    title_of = {code: title for title, codes in SECTIONS.items() for code in codes}
    members: dict[str, list[Finding]] = {title: [] for title in SECTIONS}
    for finding in findings:
        members[title_of.get(kind_of(finding), WARNINGS)].append(finding)
    titles = list(SECTIONS)
    folded = titles[titles.index(_FIRST_FOLDED) :]
    return [
        Section(title, kept, title in folded or all(finding.severity == "info" for finding in kept))
        for title, kept in members.items()
        if kept or title == WARNINGS
    ]


def kind_of(finding: Finding) -> str:
    """Return the code of a finding's class: a file may claim any code for findings of another version."""
    return type(finding)._code


def bars(rows: Iterable[Sequence[float]]) -> list[Bar]:
    """Return bars from zero to a value with its interval, on one scale; rows are (value, low, high)."""
    values = [tuple(map(float, row)) for row in rows]
    least = min([0.0, *(low for _, low, _ in values)])
    most = max([1e-9, *(high for _, _, high in values)])

    def place(value: float) -> float:
        return 100 * (value - least) / (most - least)

    zero = place(0.0)
    return [
        Bar(min(zero, place(value)), abs(place(value) - zero), place(low), place(high) - place(low))
        for value, low, high in values
    ]


def curve(values: Sequence[float], shares: Sequence[float], left: int, right: int, bottom: int, height: int) -> str:
    """Return the path of a curve of shares over increasing values."""
    across = (right - left) / max(values[-1] - values[0], 1e-300)
    places = ((left + across * (x - values[0]), bottom - height * y) for x, y in zip(values, shares, strict=True))
    return "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in places)


def likeliest(curve: ColumnDependence) -> list[tuple[str, float]]:
    """Return the categories of a column, the likeliest to be of the class first."""
    pairs = zip(map(str, curve.values), curve.probability, strict=True)
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]), reverse=True)


@cache
def _template() -> Any:
    jinja2 = require("jinja2", "files")
    loader = jinja2.PackageLoader("sdulearn", "report")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"kind": kind_of, "bars": bars, "curve": curve, "likeliest": likeliest}
    # Between backticks, every second part is the name of a parameter.
    environment.filters["parts"] = lambda text: text.split("`")
    environment.filters |= {"number": "{:,}".format, "percent": "{:.0%}".format, "tenths": "{:.1%}".format}
    environment.globals["max_rows"] = MAX_DEPENDENCE_ROWS
    return environment.get_template("page.html.jinja")
