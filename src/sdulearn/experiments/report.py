"""From results on disk to all that a report shows, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sdulearn.experiments.claims import Claim, check_claims
from sdulearn.experiments.figures import FIGURES
from sdulearn.experiments.measurements import Measurements
from sdulearn.experiments.protocol import PROTOCOLS, Protocol
from sdulearn.experiments.results import Record, Results
from sdulearn.experiments.tables import Row, accuracy_rows, summary

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

    Parameters
    ----------
    measured : dict of Measurements
        Accuracies by the name of the protocol.
    figure_data : dict of Measurements
        The same, in the quantity that the figure shows; only where there is something to draw.
    rows : list of Row
        The accuracy table.
    claims : list of Claim
        The paper's claims with their verdicts.
    provenance : list of Provenance
        A line for each protocol.
    notes : list of str
        What was left out, and why.
    small : bool
        Whether trials or data sets are fewer than the paper's.
    page : Path or None
        The HTML page, where it has been written.

    See Also
    --------
    reproduce : Runs the experiments and returns their report.
    """

    measured: dict[str, Measurements]
    figure_data: dict[str, Measurements]
    rows: list[Row]
    claims: list[Claim]
    provenance: list[Provenance]
    notes: list[str]
    small: bool = False
    page: Path | None = None

    @property
    def extent(self) -> str:
        """One sentence on how much was measured."""
        cells = sum(line.cells for line in self.provenance)
        sets = {s.dataset for measured in self.measured.values() for s in measured.settings()}
        text = f"{cells:,} fits on {len(sets)} data set{'s' if len(sets) != 1 else ''}."
        return f"{text} {SMALL}" if self.small else text

    def to_dict(self) -> dict[str, object]:
        """The report as plain data.

        Returns
        -------
        dict
            "page", "small", "claims" (each with its verdict and comparisons), "results" (a list of
            :class:`~sdulearn.experiments.tables.Summary` for each protocol), "provenance", "notes".
        """
        results = {name: summary(measured) for name, measured in self.measured.items()}
        return {
            "page": self.page,
            "small": self.small,
            "claims": [claim.to_dict() for claim in self.claims],
            "results": {name: [asdict(line) for line in lines] for name, lines in results.items()},
            "provenance": [asdict(line) for line in self.provenance],
            "notes": self.notes,
        }


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
