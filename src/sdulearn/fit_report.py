"""What a fit was given and what it found, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sdulearn.diagnostics import Finding
from sdulearn.io.checked import checked_finite, checked_list, checked_prior, checked_share, checked_text, checked_whole
from sdulearn.metrics import AccuracyEstimate
from sdulearn.prior import PriorEstimate


@dataclass(frozen=True)
class AnnotatorReport:
    """One of those who answered.

    Attributes
    ----------
    name : str
        The name in the answers; empty where it is not known who answered.
    rate : float
        Probability that an answer is wrong.
    low, high : float
        95% interval of the rate.
    identified : bool
        Whether the answers say anything about the rate; where they do not, it is taken to be 0.
    n_answers : int
        Number of answers.
    """

    name: str
    rate: float
    low: float
    high: float
    identified: bool
    n_answers: int


@dataclass(frozen=True)
class FitReport:
    """What a fit was given and what it found, as data.

    Attributes
    ----------
    sdulearn : str
        Version that fitted the model.
    method : str
        "joint", or a risk of the paper.
    settings : dict
        Settings that were chosen, such as alpha.
    table, answers : str
        Names of what was read.
    n_rows, n_unlabeled : int
        Rows of the table, and rows used as unlabeled.
    n_similar, n_dissimilar, n_unsure : int
        Answers used, and answers "unsure".
    n_points, n_independent : int
        Points in the answers used, and answers among these that do not follow from the others.
    answer_columns : dict
        Which column of the answers was read as what.
    answer_words : dict
        What each word for an answer was taken for, and how often it occurs.
    accuracy : AccuracyEstimate
        By cross-validation on the answers.
    prior : PriorEstimate
        Share of class +1.
    annotators : tuple of AnnotatorReport
        Who answered, and how often wrongly; empty for methods that take all answers for right.
    n_labels, n_labels_right : int
        Labels that named the classes, and how many of them the model predicts.
    findings : tuple of Finding
        Where the data disagree with what the method assumes, and what the result leaves open.
    seconds : dict
        Time spent on reading and on fitting.
    """

    sdulearn: str
    method: str
    settings: Mapping[str, float]
    table: str
    answers: str
    n_rows: int
    n_unlabeled: int
    n_similar: int
    n_dissimilar: int
    n_unsure: int
    n_points: int
    n_independent: int
    answer_columns: Mapping[str, str]
    answer_words: Mapping[str, Sequence[int]]
    accuracy: AccuracyEstimate
    prior: PriorEstimate
    annotators: tuple[AnnotatorReport, ...]
    n_labels: int
    n_labels_right: int
    findings: tuple[Finding, ...]
    seconds: Mapping[str, float]


def parse_report(report: Mapping[str, Any]) -> FitReport:
    """A report from a model file, every value checked."""
    answers = ("n_similar", "n_dissimilar", "n_unsure", "n_points", "n_independent")
    counts = ("n_rows", "n_unlabeled", *answers, "n_labels", "n_labels_right")
    known: dict[str, Any] = {name: checked_text(report[name]) for name in ("sdulearn", "method", "table", "answers")}
    known |= {name: checked_whole(report[name], 0, 2**62) for name in counts}
    return FitReport(
        **known,
        settings={checked_text(name): checked_finite(value) for name, value in report["settings"].items()},
        answer_columns={checked_text(role): checked_text(name) for role, name in report["answer_columns"].items()},
        answer_words={
            checked_text(word): (checked_whole(answer, -1, 1), checked_whole(count, 0, 2**62))
            for word, (answer, count) in report["answer_words"].items()
        },
        accuracy=_parse_accuracy(report["accuracy"]),
        prior=checked_prior(report["prior"]),
        annotators=tuple(_parse_annotator(one) for one in checked_list(report["annotators"])),
        findings=tuple(_parse_finding(finding) for finding in checked_list(report["findings"])),
        seconds={checked_text(name): checked_finite(value) for name, value in report["seconds"].items()},
    )


def _parse_accuracy(numbers: Mapping[str, Any]) -> AccuracyEstimate:
    shares = {
        name: checked_share(numbers[name]) for name in ("value", "low", "high", "agreement", "confidence", "majority")
    }
    return AccuracyEstimate(**shares, n_answers=checked_whole(numbers["n_answers"], 0, 2**62))


def _parse_annotator(numbers: Mapping[str, Any]) -> AnnotatorReport:
    if type(numbers["identified"]) is not bool:
        raise TypeError("expected true or false")
    rates = {name: checked_share(numbers[name]) for name in ("rate", "low", "high")}
    return AnnotatorReport(
        name=checked_text(numbers["name"]),
        **rates,
        identified=numbers["identified"],
        n_answers=checked_whole(numbers["n_answers"], 0, 2**62),
    )


def _parse_finding(finding: Mapping[str, Any]) -> Finding:
    severity = finding["severity"]
    if severity not in ("info", "warning", "error"):
        raise ValueError(f"unknown severity {severity!r}")
    details = finding["details"]
    if not isinstance(details, dict):
        raise TypeError("a finding has no details")
    return Finding(checked_text(finding["code"]), severity, details)
