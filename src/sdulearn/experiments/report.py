"""From results on disk to a report that a person wants to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sdulearn.experiments.claims import Claim, check_claims
from sdulearn.experiments.figures import FIGURES, write_png
from sdulearn.experiments.markdown import markdown_page
from sdulearn.experiments.measurements import Measurements
from sdulearn.experiments.page import html_page
from sdulearn.experiments.protocol import PROTOCOLS, Cell, Protocol
from sdulearn.experiments.results import Record, Results
from sdulearn.experiments.tables import Row, accuracy_rows, write_csv

SMALL = (
    "This is a small run, with fewer trials or data sets than the paper's: its verdicts show what the report does, not "
    "how the methods compare."
)


@dataclass(frozen=True)
class Report:
    """All that the pages show.

    Attributes
    ----------
    measured : dict of Measurements
        By protocol.
    figure_data : dict of Measurements
        The same, in the quantity that the figure shows; only where there is something to draw.
    rows : list of Row
        The accuracy table.
    claims : list of Claim
        With their verdicts.
    provenance : list of (name, cells, failed, protocol hash, versions)
        A line for each protocol.
    notes : list of str
        What was left out, and why.
    small : bool
        Whether trials or data sets are fewer than the paper's.
    """

    title: str
    measured: dict[str, Measurements]
    figure_data: dict[str, Measurements]
    rows: list[Row]
    claims: list[Claim]
    provenance: list[tuple[str, int, int, str, str]]
    notes: list[str]
    small: bool = False

    @property
    def extent(self) -> str:
        """One sentence on how much was measured."""
        cells = sum(line[1] for line in self.provenance)
        sets = {s.dataset for measured in self.measured.values() for s in measured.settings()}
        text = f"{cells:,} fits on {len(sets)} data set{'s' if len(sets) != 1 else ''}."
        return f"{text} {SMALL}" if self.small else text


def build_report(
    folder: Path, protocols: Sequence[Protocol], notes: Sequence[str] = (), title: str | None = None
) -> Report:
    """Read the results of some protocols and work out everything the pages show."""
    records = {p.name: _wanted(Results(folder, p).read(), p) for p in protocols}
    records = {name: lines for name, lines in records.items() if lines}
    measured = {name: Measurements(lines) for name, lines in records.items()}
    figure_data = {f.name: Measurements(records[f.name], f.quantity) for f in FIGURES if f.name in records}
    return Report(
        title=title or "SDU classification, measured again",
        measured=measured,
        figure_data={name: data for name, data in figure_data.items() if data.settings()},
        rows=accuracy_rows(measured["table"]) if "table" in measured else [],
        claims=check_claims(measured),
        provenance=[_provenance(folder, p, records[p.name]) for p in protocols if p.name in records],
        notes=list(dict.fromkeys(notes)),
        small=any(_is_small(p, measured[p.name]) for p in protocols if p.name in measured),
    )


def write_report(report: Report, out: Path) -> Path:
    """Write ``report.html``, ``report.md``, a CSV file per protocol and ``figures/*.png``; the page's path."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for name, measured in report.measured.items():
        write_csv(out / f"{name}.csv", measured)
    for figure in FIGURES:
        if figure.name in report.figure_data:
            write_png(out / "figures" / f"{figure.name}.png", figure, report.figure_data[figure.name])
    (out / "report.md").write_text(markdown_page(report), encoding="utf-8")
    page = out / "report.html"
    page.write_text(html_page(report), encoding="utf-8")
    return page


def _is_small(protocol: Protocol, measured: Measurements) -> bool:
    whole = PROTOCOLS[protocol.name]
    missing = set(whole.datasets) - {s.dataset for s in measured.settings()}
    return bool(missing) or protocol.trials < whole.trials


def _wanted(records: list[Record], protocol: Protocol) -> list[Record]:
    """Only the cells asked for: the folder may hold more."""
    cells = set(protocol.cells())
    return [record for record in records if Cell.from_key(record) in cells]


def _provenance(folder: Path, protocol: Protocol, records: list[Record]) -> tuple[str, int, int, str, str]:
    meta = Results(folder, protocol).read_meta()
    failed = sum(record["error"] is not None for record in records)
    versions = ", ".join(f"{name} {number}" for name, number in meta.get("versions", {}).items())
    return protocol.name, len(records), failed, meta.get("protocol_hash", "unknown"), versions
