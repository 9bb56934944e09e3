"""``sdulearn fit``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from sdulearn.answer_files.rows import read_labels
from sdulearn.cli import options as cli
from sdulearn.cli.predict import write_answered
from sdulearn.errors import InputError
from sdulearn.io.files import file_format
from sdulearn.report.results import Opening, findings_of_model, lines
from sdulearn.tables.known_ids import ids_among
from sdulearn.workflow.fit import fit_answers


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, save, report."""
    path, page = _outputs(arguments)
    options = cli.fit_options_of(arguments)
    labels = None if arguments.labels is None else read_labels(arguments.labels)
    answers = cli.answers_of(arguments, partial(ids_among, arguments.table, options.reading))
    model = fit_answers(arguments.table, answers, labels, options)
    model.save(path)
    model.write_report(page, model_path=path)
    if arguments.answered is not None:
        write_answered(arguments.answered, model)
    findings = findings_of_model(model)
    if arguments.json:
        cli.print_json({"model": path, "page": page, "findings": findings, "report": model.report})
        return 0
    first = [finding for finding in findings if isinstance(finding, Opening)]
    warned = [finding for finding in findings if finding.severity in ("warning", "error")]
    also = "" if arguments.answered is None else f", the classes of the rows in answers in {arguments.answered}"
    where = f"The model is in {path}, its report in {page}{also}."
    cli.say(cli.in_options("\n".join([*lines(first), *lines(warned), where])))
    if arguments.verbose:
        rest = [finding for finding in findings if finding not in first and finding not in warned]
        cli.say(cli.in_options("\n".join(lines(rest))))
        assert model.report is not None
        seconds = model.report.seconds
        cli.say(f"Reading took {seconds['reading']:.1f} s, fitting and cross-validation {seconds['fitting']:.1f} s.")
    return 0


def _outputs(arguments: argparse.Namespace) -> tuple[Path, Path]:
    """Return the paths of the model and its report; check all outputs before the work begins."""
    if arguments.output is None:
        raise InputError("Name the file of the model with -o, for example -o model.sdu.")
    model = Path(arguments.output)
    page = arguments.report or model.with_suffix(".html")
    if page == model:
        raise InputError(f"Model and report would both be {model}. Name the model with another ending, such as .sdu.")
    if arguments.answered is not None:
        file_format(arguments.answered, ("csv", "tsv", "parquet"), output=True)
        if arguments.method not in ("auto", "joint"):
            raise InputError(f"--answered needs --method joint: {arguments.method} assumes that answers are correct.")
    cli.check_outputs((model, page, arguments.answered), (arguments.table, arguments.answers, arguments.labels))
    return model, page
