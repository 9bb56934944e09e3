"""``sdulearn classes``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from sdulearn.answers import classes_of_answers
from sdulearn.answers.checks import check_forced_choices, class_number, count_classes, known_answers
from sdulearn.cli import options as cli
from sdulearn.diagnostics import check_crowd, check_entities
from sdulearn.errors import InputError
from sdulearn.findings import Finding
from sdulearn.io.files import as_cell
from sdulearn.report.results import ITEMS_SHOWN, ClassesFound, UnconnectedParts, findings_of_answers, lines
from sdulearn.types import Array


def run(arguments: argparse.Namespace) -> int:
    """Find classes, write them, and say how sure they are."""
    is_screen = arguments.output == "-"
    output = None if arguments.output is None or is_screen else Path(arguments.output)
    cli.check_outputs((output,), (arguments.answers,))
    if output is not None and output.suffix.lower() != ".csv":
        raise InputError(f"{output}: the name must end in .csv.")
    if arguments.json and is_screen:
        raise InputError("--json prints the findings instead of the rows: name a file for the rows with -o.")
    answers = cli.answers_of(arguments)
    if entities := check_entities(answers):
        raise InputError(f"{answers.name}: {entities[0]}")
    n_classes = arguments.classes
    number: list[Finding] = []
    if n_classes == "auto":
        counted = count_classes(known_answers(answers)[0])
        n_classes, number = counted.value, class_number(counted)
        if number and counted.are_entities:
            raise InputError(f"{answers.name}: {number[0]}")
    columns, model = classes_of_answers(answers, n_classes)
    if arguments.output is not None:
        cells = zip(map(as_cell, columns["id"]), *list(columns.values())[1:], strict=True)
        cli.write_csv(output, [columns, *cells])
    found = [
        *findings_of_answers(answers),
        *check_forced_choices(answers),
        *_classes(columns),
        *number,
        *check_crowd(answers, model, n_classes),
    ]
    if arguments.json:
        cli.print_json({"file": output, "findings": found})
    else:
        cli.say("\n".join(map(cli.in_options, lines(found, ITEMS_SHOWN))), sys.stderr if is_screen else None)
        if output is not None:
            cli.say(f"Wrote {output}.")
    return 0


def _classes(columns: dict[str, Array]) -> list[Finding]:
    """Findings about the classes, and about ids that are not connected with them."""
    probability = [column for name, column in columns.items() if name.startswith("probability")]
    first = columns["part"] == 1
    given = first & (columns["class"] != "")
    sizes = {str(k): int(np.sum(columns["class"] == str(k))) for k in range(1, len(probability) + 1)}
    found: list[Finding] = [
        ClassesFound(
            n_ids=int(first.sum()),
            n_classes=len(probability),
            sizes=sizes,
            n_open=int((first & ~given).sum()),
            probability=float(np.max(probability, axis=0)[given].mean()),
        )
    ]
    if not first.all():
        found.append(UnconnectedParts(n_ids=int((~first).sum()), n_parts=int(columns["part"].max()) - 1))
    return found
