"""From results on disk to all that a report shows, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduction.claims import Claim, check_claims
from reproduction.figures import FIGURES
from reproduction.protocol import PROTOCOLS, Protocol
from reproduction.runner import Record, Results
from reproduction.tables import Measurements, Row, accuracy_rows

TITLE = "SDU classification, measured again"
SMALL = (
    "This is a small run, with fewer trials or data sets than the paper's: its verdicts show what the "
    "report does, not how the methods compare."
)


@dataclass(frozen=True)
class Provenance:
    """Where the numbers of one protocol come from."""

    protocol: str
    cells: int
    failed: int
    protocol_hash: str
    versions: dict[str, str]


@dataclass(frozen=True)
class Report:
    """All that the pages of a report show.

    ``figure_data`` is ``measured`` in the quantity that the figure shows, only where there is something to draw.
    """

    measured: dict[str, Measurements]
    figure_data: dict[str, Measurements]
    rows: list[Row]
    claims: list[Claim]
    provenance: list[Provenance]
    notes: list[str]
    small: bool = False

    @property
    def extent(self) -> str:
        """One sentence on how much was measured."""
        cells = sum(line.cells for line in self.provenance)
        sets = {s.dataset for measured in self.measured.values() for s in measured.settings()}
        text = f"{cells:,} fits on {len(sets)} data set{'s' if len(sets) != 1 else ''}."
        return f"{text} {SMALL}" if self.small else text


def build_report(folder: Path, protocols: Sequence[Protocol], notes: Sequence[str] = ()) -> Report:
    """Read the results of some protocols and work out everything the pages show."""
    records = {p.name: Results(folder, p).read_cells() for p in protocols}
    found = [p for p in protocols if records[p.name]]
    measured = {p.name: Measurements(records[p.name]) for p in found}
    figure_data = {f.name: Measurements(records[f.name], f.quantity) for f in FIGURES if f.name in measured}
    return Report(
        measured=measured,
        figure_data={name: data for name, data in figure_data.items() if data.settings()},
        rows=accuracy_rows(measured["table"]) if "table" in measured else [],
        claims=check_claims(measured),
        provenance=[_provenance(folder, p, records[p.name]) for p in found],
        notes=list(dict.fromkeys(notes)),
        small=any(_is_small(p, measured[p.name]) for p in found),
    )


def _is_small(protocol: Protocol, measured: Measurements) -> bool:
    whole = PROTOCOLS[protocol.name]
    missing = set(whole.datasets) - {s.dataset for s in measured.settings()}
    return bool(missing) or protocol.trials < whole.trials


def _provenance(folder: Path, protocol: Protocol, records: list[Record]) -> Provenance:
    meta = Results(folder, protocol).read_meta()
    failed = sum(record["error"] is not None for record in records)
    mark = meta.get("protocol_hash", "unknown")
    return Provenance(protocol.name, len(records), failed, mark, meta.get("versions", {}))
