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
from dataclasses import replace
from pathlib import Path

import numpy as np

from sdulearn.answers import AnswerChecks, AnswerGraph, Answers, check_answers, read_answers
from sdulearn.answers.checks import number_ids
from sdulearn.cli.options import add_answer_options, add_json_option, in_options, positive, print_json, say, share
from sdulearn.diagnostics import (
    Finding,
    check_answers_ratio,
    check_contradictions,
    check_entities,
    check_shared_points,
)
from sdulearn.errors import shortened
from sdulearn.io.survey import read_ids
from sdulearn.pairs import UNSURE, read_pairs
from sdulearn.report.facts import ANSWER_NAMES, as_data, facts_of_answers, lines
from sdulearn.types import Codes


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
    """Print what was read and what is wrong; 1 where anything is."""
    answers = read_answers(arguments.pairs, columns=arguments.pair_columns, words=arguments.answers)
    unknown = _unknown_ids(answers, arguments.features, arguments.id)
    checks = check_answers(answers)
    about = _findings(answers, checks, arguments.prior)
    listed = list_faults(answers, checks, unknown)
    wrong = bool(listed) or any(one.severity == "warning" for one in about)
    read = [one for one in facts_of_answers(answers) if one.code != "unreadable"]
    if arguments.json:
        print_json({"facts": as_data([*read, *about]), **_lines_of(answers, checks, unknown)})
        return int(wrong)
    say(in_options("\n".join(lines([*read, *about]))))
    for title, items in listed.items():
        say(f"\n{title}: {len(items):,}")
        say("\n".join(f"  {item}" for item in items[: arguments.show]))
        if len(items) > arguments.show:
            say(f"  ... and {len(items) - arguments.show:,} more (--show {len(items)})")
    if suspects := checks.suspects():
        say("\nOne wrong answer can make many contradictions; look first at")
        say("\n".join(f"  {_answer(answers, k)} (in {times} of the first chains)" for k, times in suspects))
    if listed:
        say("\nAt least one answer of a contradiction is wrong: ask again.")
    elif not wrong:
        say("\nNothing wrong.")
    return int(wrong)


def _findings(answers: Answers, checks: AnswerChecks, prior: float | None) -> list[Finding]:
    """What the answers say as a whole; hubs are named by their ids."""
    found = [*check_contradictions(checks, answers.annotators), *check_entities(answers)]
    y = _known(answers)
    if not len(y):
        return found
    names = list(dict.fromkeys(answers.ids.ravel().tolist()))
    structure = []
    for one in check_shared_points(read_pairs(y)):
        named = {"points": [names[point] for point in one.details["points"]]} if "points" in one.details else {}
        structure.append(replace(one, details={**one.details, **named}))
    return [*structure, *check_answers_ratio(AnswerGraph.from_y(y), prior), *found]


def _known(answers: Answers) -> Codes:
    """The answers that say something, as ``y``: ids are numbered in the order of their first appearance."""
    ends = number_ids(answers.ids)
    usable = (ends[:, 0] != ends[:, 1]) & (answers.answers != UNSURE)
    codes = answers.answers[usable] * np.arange(1, usable.sum() + 1)
    return np.column_stack([np.repeat(codes, 2), ends[usable].ravel()])


def list_faults(answers: Answers, checks: AnswerChecks, unknown: Sequence[tuple[int, str]]) -> dict[str, list[str]]:
    """What is wrong by kind, each as a line to read."""
    kinds = {
        "Unreadable rows": [f"line {row.line}: {row.reason}" for row in answers.bad_rows],
        "Ids that the table does not have": [f"line {answers.lines[k]}: {shortened(name)}" for k, name in unknown],
        "Pairs of a point with itself": [_answer(answers, k) for k in checks.self_pairs.tolist()],
        "Repeated questions with the same answer": [_answer(answers, k) for k in checks.repeats.tolist()],
    }
    chains = {
        "Questions answered both ways": checks.disagreements,
        "Dissimilar, but similar through others": checks.closure,
        "Cycles that two classes cannot explain": checks.odd_cycles,
    }
    for title, found in chains.items():
        kinds[title] = ["; ".join(_answer(answers, k) for k in one.answers) for one in found]
    return {title: items for title, items in kinds.items() if items}


def _answer(answers: Answers, k: int) -> str:
    a, b = answers.ids[k]
    return f"line {answers.lines[k]}: {shortened(a)} and {shortened(b)} {ANSWER_NAMES[int(answers.answers[k])]}"


def _unknown_ids(answers: Answers, table: Path | None, id_column: str | None) -> list[tuple[int, str]]:
    """Position and id of every answer's end that the table does not have."""
    if table is None:
        return []
    known = set(read_ids(table, id_column, set(answers.ids.ravel().tolist())))
    return [(k, name) for k, row in enumerate(answers.ids) for name in row if name not in known]


def _lines_of(answers: Answers, checks: AnswerChecks, unknown: Sequence[tuple[int, str]]) -> dict[str, object]:
    """Faults by the lines of their answers."""
    line_of = answers.lines
    kinds = {"both_ways": checks.disagreements, "closure": checks.closure, "odd_cycles": checks.odd_cycles}
    return {
        "annotators": answers.annotator_names,
        "unreadable": answers.bad_rows,
        "unknown_ids": [{"line": line_of[k], "id": name} for k, name in unknown],
        "self_pairs": line_of[checks.self_pairs],
        "repeats": line_of[checks.repeats],
        "contradictions": {kind: [line_of[list(one.answers)] for one in found] for kind, found in kinds.items()},
    }
