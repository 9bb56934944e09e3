"""``sdulearn check``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from sdulearn import diagnostics
from sdulearn.answers import AnswerChecks, AnswerGraph, AnswerModel, Answers, check_answers
from sdulearn.answers.checks import check_forced_choices, class_number, count_classes, estimate_answers, known_answers
from sdulearn.answers.records import flip_rate, random_ends
from sdulearn.answers.y import DISSIMILAR, SIMILAR
from sdulearn.cli import options as cli
from sdulearn.errors import caught_warnings, shortened
from sdulearn.findings import Finding, FitWarning, NoAnswers, Repeats, SelfPairs, UnknownIds
from sdulearn.io.files import written_whole
from sdulearn.prior import PriorEstimate, estimate_prior, random_of
from sdulearn.reading import Reading
from sdulearn.report.page import whole_page
from sdulearn.report.results import ANSWER_NAMES, findings_of_answers, findings_of_prior, lines
from sdulearn.tables.ids import unknown_ids
from sdulearn.tables.known_ids import ids_among
from sdulearn.tables.same_table import compare_table
from sdulearn.tables.scan import read_ids
from sdulearn.tables.source import open_table


def run(arguments: argparse.Namespace) -> int:
    """Print what was read and what is wrong; return 1 if anything is."""
    page = None if arguments.output is None else Path(arguments.output)
    cli.check_outputs((page,), (arguments.answers, arguments.table))
    reading = Reading(arguments.id_column, sheet=arguments.sheet, skip_rows=arguments.skip_rows)
    find_ids = None if arguments.table is None else partial(ids_among, arguments.table, reading)
    answers = cli.answers_of(arguments, find_ids)
    unknown, why, changes = _compared(answers, arguments)
    about, checks = _findings(answers, arguments)
    found = [*findings_of_answers(answers), *changes, *about, *_faults(answers, checks, unknown, why)]
    wrong = any(one.severity == "warning" for one in found)
    if page is not None:
        with written_whole(page) as draft:
            draft.write_text(whole_page(arguments.answers.name, found), encoding="utf-8")
    if arguments.json:
        cli.print_json({"findings": found, **_lines_of(answers, checks, unknown)})
    else:
        cli.say("\n".join(map(cli.in_options, lines(found, arguments.limit))))
        if not wrong:
            cli.say("\nNo problems found.")
    return int(wrong)


def _faults(answers: Answers, checks: AnswerChecks, unknown: Sequence[tuple[int, str]], why: str) -> list[Finding]:
    """Return findings of answers that a fit cannot use, or that say nothing new."""
    found: list[Finding] = []
    if unknown:
        by_answer: dict[int, list[str]] = {}
        for k, name in unknown:
            by_answer.setdefault(k, []).append(shortened(name))
        ids = tuple(f"line {answers.lines[k]}: {' and '.join(names)}" for k, names in by_answer.items())
        found.append(UnknownIds(count=len(ids), items=ids, cause=why))
    repeats = checks.repeats[:0] if answers.n_chosen else checks.repeats
    for kind, numbers in ((SelfPairs, checks.self_pairs), (Repeats, repeats)):
        if shown := tuple(_answer(answers, k) for k in numbers.tolist()):
            found.append(kind(count=len(shown), items=shown))
    return found


def _findings(answers: Answers, arguments: argparse.Namespace) -> tuple[list[Finding], AnswerChecks]:
    """Return findings about all answers together, and their contradictions."""
    graph, used = known_answers(answers)
    about = [*check_forced_choices(answers), *diagnostics.check_entities(answers)]
    if not len(used):
        # Forced choices say nothing about pairs.
        empty = [NoAnswers(n_unsure=answers.n_unsure)] if answers.nearer is None else []
        return [*about, *empty], check_answers(answers)
    about += diagnostics.check_alike(graph, answers.annotator_names)
    # Answers about entities have neither a few classes nor a prior, and odd cycles are no contradiction there.
    entities = any(finding.code == "entities" for finding in about)
    with caught_warnings() as caught:
        n_classes = arguments.classes
        if n_classes == "auto" and not entities:
            number = count_classes(graph)
            n_classes, entities = number.value, number.are_entities
            about += class_number(number)
        known = AnswerModel.given(0.0, graph)
        model = known if entities else estimate_answers(answers, graph, used, n_classes).people
    notes = [FitWarning(message=message, category=category.__name__) for message, category in caught]
    errors = np.clip(model.errors(answers.annotator_numbers), 0.01, 0.5)
    checks = check_answers(answers, errors)
    # Odd cycles contradict two classes only, and `ask` repeats questions and shares points by design.
    checks = checks if n_classes == 2 and not entities else replace(checks, odd_cycles=[])
    names = list(dict.fromkeys(answers.ids.ravel().tolist()))
    # First the contradictions of few answers by reliable annotators.
    chains = [list(one.answers) for one in (*checks.closure, *checks.odd_cycles) if len(one.answers) > 1]
    for both in checks.disagreements:
        sides = ([k for k in both.answers if answers.answers[k] == side] for side in (SIMILAR, DISSIMILAR))
        chains.append([min(side, key=errors.__getitem__) for side in sides])
    telling = sorted(chains, key=lambda one: -np.log1p(-errors[one]).sum())
    shown = tuple("; ".join(_answer(answers, k) for k in one) for one in telling[: arguments.limit])
    contradictions: list[Finding] = [
        replace(finding, count=len(telling), items=shown) for finding in diagnostics.check_contradictions(checks)
    ]
    if entities:
        return [*about, *contradictions], checks
    about = [*about, *notes, *_classes(answers, model, arguments.prior, n_classes), *contradictions]
    structure = [] if answers.n_chosen else diagnostics.check_shared_points(graph, names)
    return [*diagnostics.check_crowd(answers, model, n_classes), *structure, *about], checks


def _classes(answers: Answers, model: AnswerModel, prior: float | None, n_classes: int) -> list[Finding]:
    """Return the share of the larger of two classes, and whether random pairs have such answers."""
    known, used = known_answers(answers)
    graph = AnswerGraph.from_y(np.asarray(known), known.row_weight)
    marked = random_ends(answers, known.ends, used)
    random_points = None
    if marked is not None:
        random_points = np.zeros(graph.n_given, dtype=bool)
        random_points[graph.end_rows] = marked
    ratio = diagnostics.check_ratio(graph, prior, random_of(graph, random_points))
    if n_classes > 2:
        return ratio
    estimate = PriorEstimate(0.5, 0.0, 1.0, identified=False, n_similar=0.0, n_dissimilar=0.0, confidence=0.95)
    if marked is None or marked.any():
        # The rate of flips for privacy is known.
        errors = model if answers.epsilon is None else flip_rate(answers.epsilon)
        estimate = estimate_prior(y=graph, random_points=random_points, error_rate=errors)
    return [*findings_of_prior(estimate), *ratio]


def _answer(answers: Answers, k: int) -> str:
    a, b = answers.ids[k]
    who = f" ({shortened(answers.annotators[k])})" if answers.annotators is not None and answers.annotators[k] else ""
    return f"line {answers.lines[k]}: {shortened(a)} and {shortened(b)} {ANSWER_NAMES[int(answers.answers[k])]}{who}"


def _compared(answers: Answers, arguments: argparse.Namespace) -> tuple[list[tuple[int, str]], str, list[Finding]]:
    """Return positions of answers with ids that are not in the table, a likely cause, and changes of the table."""
    if arguments.table is None:
        return [], "", []
    stored = answers.reading or Reading()
    reading = stored.continued(Reading(arguments.id_column, sheet=arguments.sheet, skip_rows=arguments.skip_rows))
    ids, column = read_ids(arguments.table, reading, set(answers.ids.ravel().tolist()))
    changes: list[Finding] = []
    if answers.reading is not None:
        changes = compare_table(open_table(arguments.table, reading.sheet, reading.skip_rows), stored)
    known = set(ids)
    found = [(k, name) for k, row in enumerate(answers.ids) for name in row if name not in known]
    return found, unknown_ids([name for _, name in found], known, column), changes


def _lines_of(answers: Answers, checks: AnswerChecks, unknown: Sequence[tuple[int, str]]) -> dict[str, object]:
    """Return faults by the lines of their answers."""
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
