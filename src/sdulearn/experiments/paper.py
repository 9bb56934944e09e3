"""The 200 numbers of the paper's appendix table, as printed."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Printed:
    """One printed cell: accuracy and standard error in per cent, and whether it is bold."""

    accuracy: float
    standard_error: float
    bold: bool


def paper_table() -> dict[tuple[str, int, str], Printed]:
    """(data set, number of pairs, method) -> what the paper prints."""
    text = files("sdulearn.experiments").joinpath("paper_table.csv").read_text(encoding="utf-8")
    return {
        (row["dataset"], int(row["n_pairs"]), row["method"]): Printed(
            float(row["accuracy"]), float(row["standard_error"]), row["bold"] == "1"
        )
        for row in csv.DictReader(text.splitlines())
    }
