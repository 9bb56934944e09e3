"""``sdulearn audit``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from sdulearn.answer_files.rows import read_labels, read_sheet
from sdulearn.answers import AnswerModel, Answers
from sdulearn.answers.records import flip_rate
from sdulearn.cli import options as cli
from sdulearn.diagnostics import audited_rates
from sdulearn.metrics import Audit, audit_predictions


def run(arguments: argparse.Namespace) -> int:
    """Print the audit; return 2 if the floor is missed for certain."""
    evidence = _evidence(arguments)
    other = None if arguments.compare is None else read_labels(arguments.compare).by_id
    rate = None if arguments.error_rate == "auto" else arguments.error_rate
    if rate is None and isinstance(evidence, Answers):
        rate = _known_rate(evidence)
    audit = audit_predictions(read_labels(arguments.predictions).by_id, evidence, compare=other, error_rate=rate)
    missed = arguments.at_least is not None and audit.misses(arguments.at_least)
    if arguments.json:
        cli.print_json({"audit": audit, "at_least": arguments.at_least, "missed": missed})
    else:
        cli.say("\n".join(_lines(audit, arguments)))
    return 2 if missed else 0


def _evidence(arguments: argparse.Namespace) -> Answers | Mapping[str, str]:
    """Read answers, or labels where the file has but two columns."""
    path = arguments.answers
    if len(read_sheet(path, "the answers").header) == 2:
        return read_labels(path).by_id
    return cli.answers_of(arguments)


def _known_rate(answers: Answers) -> float | AnswerModel | None:
    """Return the error rate that flips for privacy or an audit of the answers tell."""
    return audited_rates(answers) if answers.epsilon is None else flip_rate(answers.epsilon)


def _lines(audit: Audit, arguments: argparse.Namespace) -> list[str]:
    """Return what was found as sentences."""
    lines = _of_one(arguments.predictions.name, audit)
    if audit.n_missing:
        lines.append(f"Ids of the answers without a prediction, which do not count: {audit.n_missing:,}.")
    if audit.n_unsure:
        lines.append(f'Answers "unsure", which do not count: {audit.n_unsure:,}.')
    if audit.compared is not None:
        lines += _of_one(arguments.compare.name, audit.compared)
        what = "agreement" if audit.accuracy is None or audit.compared.accuracy is None else "accuracy"
        lines.append(f"Difference in {what}, first minus second, on the rows of both: {audit.difference}.")
    if arguments.at_least is not None:
        lines.append(_verdict(audit, arguments.at_least))
    return lines


def _of_one(name: str, audit: Audit) -> list[str]:
    """Return accuracy and agreement of one classifier."""
    lines = [f"{name}: {_accuracy(audit)}"]
    if audit.agreement is not None:
        different = f'"Always different" would agree with {audit.always_different}.'
        lines.append(f"It agrees with {audit.agreement} of the answers. {different}")
    return lines


def _accuracy(audit: Audit) -> str:
    if audit.accuracy is None:
        return (
            f"the accuracy cannot be told: with {audit.n_classes} classes it needs labels, or random rows compared "
            "with examples (sdulearn ask --design match)."
        )
    level = f"{audit.confidence:.0%} confidence interval"
    accuracy = audit.accuracy
    return f"accuracy {accuracy.value:.1%} ({level} {accuracy.low:.1%} to {accuracy.high:.1%}), by {audit.basis}."


def _verdict(audit: Audit, floor: float) -> str:
    if audit.misses(floor):
        return f"The accuracy is certainly below {floor:.1%}."
    reached = audit.accuracy is not None and audit.accuracy.low >= floor
    return f"The accuracy is {'' if reached else 'not '}certainly {floor:.1%} or more."
