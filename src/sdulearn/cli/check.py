"""Read a file of answers and say what is in it and what is wrong with it.

Which tool wrote it, counts, how columns and labels were understood, unreadable rows by line, pairs of a point
with itself, repeated questions, and contradictions: direct ones, ones through chains of similar pairs, and
cycles that two classes cannot explain. Where answers share points: how many of them say something of their own,
and what folds over points cost. Whether similar and dissimilar answers can be those of random pairs, at the
--prior where it is known. With --features also the ids that the table does not have. Exit code 0: nothing
wrong; 1: something to look at.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sdulearn.answers import AnswerChecks, AnswerGraph, Answers, Contradiction, check_answers, read_answers
from sdulearn.answers.checks import number_ids
from sdulearn.cli.options import add_answer_options, positive, share
from sdulearn.cli.output import add_json_option, print_json
from sdulearn.cli.screen import say
from sdulearn.cli.words import ANSWER_NAMES, describe_finding, describe_source
from sdulearn.diagnostics import (
    Finding,
    check_answers_ratio,
    check_contradictions,
    check_entities,
    check_shared_points,
)
from sdulearn.errors import listed, shortened
from sdulearn.io.tables import read_ids
from sdulearn.pairs import UNSURE, read_pairs
from sdulearn.types import Codes

Titled = tuple[str, Sequence[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn check``."""
    parser.add_argument(
        "pairs", type=Path, help="answers: .csv, .tsv, .jsonl, .json, .parquet or .xlsx, of any known tool"
    )
    add_answer_options(parser)
    parser.add_argument("--features", type=Path, help="table that the ids must be in")
    parser.add_argument("--id", help="id column of that table (default: the one that holds the ids of the answers)")
    parser.add_argument("--prior", type=share, help="share of class +1, where it is known")
    parser.add_argument("--show", type=positive, default=10, help="findings to list of each kind (%(default)s)")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what was read and what is wrong."""
    answers = read_answers(arguments.pairs, columns=arguments.pair_columns, words=arguments.answers)
    unknown = _unknown_ids(answers, arguments.features, arguments.id)
    checks = check_answers(answers)
    y = _known(answers)
    structure = check_shared_points(read_pairs(y)) if len(y) else []
    ratio = check_answers_ratio(AnswerGraph.from_y(y), arguments.prior) if len(y) else []
    findings = [*_unreadable(answers), *_unknown(answers, unknown), *describe_checks(answers, checks)]
    about = [*ratio, *check_entities(answers)]
    wrong = bool(findings or about)
    if arguments.json:
        structured = _structure_data(answers, checks, structure, ratio)
        print_json(_as_data(answers, checks, unknown) | structured | {"findings": about})
        return 1 if wrong else 0
    say("\n".join(describe_source(answers)))
    say("\n".join(_structure(answers, len(y), structure)))
    for finding in about:
        say(f"\nWarning: {describe_finding(finding)}")
    for title, items in findings:
        say(f"\n{title}: {len(items):,}")
        say("\n".join(f"  {item}" for item in items[: arguments.show]))
        if len(items) > arguments.show:
            say(f"  ... and {len(items) - arguments.show:,} more (--show {len(items)})")
    if suspects := checks.suspects():
        say("\nOne wrong answer can make many contradictions; look first at")
        say("\n".join(f"  {_answer(answers, k)} (in {times} of the first chains)" for k, times in suspects))
    if by_annotator := _by_annotator(answers, checks):
        say("\nAnswers in a contradiction, by annotator")
        counts = list(by_annotator.items())[: arguments.show]
        say("\n".join(f"  {shortened(name)}: {doubted:,} of {given:,}" for name, (doubted, given) in counts))
    if findings:
        say("\nOf a contradiction at least one answer is wrong: ask again.")
    elif not wrong:
        say("\nNothing wrong.")
    return 1 if wrong else 0


def _known(answers: Answers) -> Codes:
    """The answers that say something, as ``y``: ids are numbered in the order of their first appearance."""
    ends = number_ids(answers.ids)
    usable = (ends[:, 0] != ends[:, 1]) & (answers.answers != UNSURE)
    codes = answers.answers[usable] * np.arange(1, usable.sum() + 1)
    return np.column_stack([np.repeat(codes, 2), ends[usable].ravel()])


def _structure(answers: Answers, n_ends: int, structure: Sequence[Finding]) -> list[str]:
    """Points and answers, and what it costs where they share points."""
    if not structure:
        return [f"points: {n_ends:,}, each in one answer"]
    names = list(dict.fromkeys(answers.ids.ravel().tolist()))
    lines = [f"points: {describe_finding(finding)}" for finding in structure]
    hubs = [names[point] for finding in structure for point in finding.details.get("points", [])]
    return [*lines, f"in so many answers: {listed(map(shortened, hubs))}"] if hubs else lines


def _by_annotator(answers: Answers, checks: AnswerChecks) -> dict[str, list[int]]:
    if answers.annotators is None:
        return {}
    found = check_contradictions(checks, answers.annotators)
    return found[0].details["by_annotator"] if found else {}


def _structure_data(
    answers: Answers, checks: AnswerChecks, structure: Sequence[Finding], ratio: Sequence[Finding]
) -> dict[str, object]:
    """Points, hubs by their ids, what the ratio says, and who gave the answers that contradict each other."""
    names = list(dict.fromkeys(answers.ids.ravel().tolist()))
    found = {finding.code: dict(finding.details) for finding in [*structure, *ratio]}
    if "hubs" in found:
        found["hubs"]["points"] = [names[point] for point in found["hubs"]["points"]]
    return {**found, "contradictions_by_annotator": _by_annotator(answers, checks)}


def describe_checks(answers: Answers, checks: AnswerChecks) -> list[Titled]:
    """Findings by kind, each as a line to read."""
    kinds: list[Titled] = [
        ("Pairs of a point with itself", [_answer(answers, k) for k in checks.self_pairs.tolist()]),
        ("Repeated questions with the same answer", [_answer(answers, k) for k in checks.repeats.tolist()]),
        ("Questions answered both ways", [_chain(answers, c) for c in checks.disagreements]),
        ("Dissimilar, but similar through others", [_chain(answers, c) for c in checks.closure]),
        ("Cycles that two classes cannot explain", [_chain(answers, c) for c in checks.odd_cycles]),
    ]
    return [(title, items) for title, items in kinds if items]


def _answer(answers: Answers, k: int) -> str:
    a, b = answers.ids[k]
    return f"line {answers.lines[k]}: {shortened(a)} and {shortened(b)} {ANSWER_NAMES[int(answers.answers[k])]}"


def _chain(answers: Answers, contradiction: Contradiction) -> str:
    return "; ".join(_answer(answers, k) for k in contradiction.answers)


def _unreadable(answers: Answers) -> list[Titled]:
    rows = [f"line {row.line}: {row.reason}" for row in answers.bad_rows]
    return [("Unreadable rows", rows)] if rows else []


def _unknown_ids(answers: Answers, table: Path | None, id_column: str | None) -> list[tuple[int, str]]:
    """Position and id of every answer's end that the table does not have."""
    if table is None:
        return []
    known = set(read_ids(table, id_column, set(answers.ids.ravel().tolist())))
    return [(k, name) for k, row in enumerate(answers.ids) for name in row if name not in known]


def _unknown(answers: Answers, unknown: Sequence[tuple[int, str]]) -> list[Titled]:
    items = [f"line {answers.lines[k]}: {shortened(name)}" for k, name in unknown]
    return [("Ids that the table does not have", items)] if items else []


def _as_data(answers: Answers, checks: AnswerChecks, unknown: Sequence[tuple[int, str]]) -> dict[str, object]:
    """The same as data; answers by their line."""
    lines = answers.lines
    kinds = {"both_ways": checks.disagreements, "closure": checks.closure, "odd_cycles": checks.odd_cycles}
    return {
        "file": answers.name,
        "format": answers.format,
        "n_similar": answers.n_similar,
        "n_dissimilar": answers.n_dissimilar,
        "n_unsure": answers.n_unsure,
        "n_unanswered": answers.n_unanswered,
        "annotators": answers.annotator_names,
        "columns": answers.columns,
        "words": answers.words,
        "unreadable": answers.bad_rows,
        "unknown_ids": [{"line": lines[k], "id": name} for k, name in unknown],
        "self_pairs": lines[checks.self_pairs],
        "repeats": lines[checks.repeats],
        "contradictions": {kind: [lines[list(one.answers)] for one in found] for kind, found in kinds.items()},
    }
