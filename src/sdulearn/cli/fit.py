"""Learn a classifier from a table and a file of same/different answers, and save it.

Settings are chosen by cross-validation on the answers alone, and the accuracy is estimated from held-out answers: no
class label is needed. All of it goes into one model file, from which `sdulearn predict` works on raw tables, and a
report page is written beside it. A table may be larger than memory: Parquet is read on all cores, and only the rows
in answers and a sample of all rows are kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sdulearn.cli import options as cli
from sdulearn.errors import InputError
from sdulearn.io.files import file_format
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.workflow.options import MAX_UNLABELED, METHODS, MODELS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``sdulearn fit``, stored under the names of their parameters."""
    files = parser.add_argument_group("files")
    text = "table: .csv, .tsv, .jsonl, .parquet or .xlsx, or a folder of Parquet files"
    files.add_argument("--features", dest="table", type=Path, required=True, help=text)
    text = "answers: id_a,id_b,label as .csv, .tsv, .jsonl, .json, .parquet or .xlsx, or of another tool"
    files.add_argument("--pairs", dest="answers", type=Path, required=True, help=text)
    files.add_argument("-o", "--output", type=Path, required=True, metavar="MODEL", help="model file to write")
    files.add_argument("--report", type=Path, help="report page (default: the model's name with .html)")
    files.add_argument("--labels", type=Path, help="a few id,label rows, to learn from; they name the classes")
    text = "rows in answers, with their classes by features and answers together (.csv, .tsv, .parquet)"
    files.add_argument("--answered", type=Path, metavar="FILE", help=text)
    things = parser.add_argument_group("texts and pictures (by default as in `sdulearn ask`)")
    columns: dict[str, Any] = {"type": cli.names, "default": (), "metavar": "COLUMN,..."}
    things.add_argument("--text", **columns, help="columns of sentences")
    things.add_argument("--image", dest="images", **columns, help="columns of picture files (needs sdulearn[images])")
    cli.add_files_options(things)
    cli.add_table_options(parser.add_argument_group("reading the table"))
    reading = parser.add_argument_group("reading the answers of --pairs")
    cli.add_answer_options(reading)
    reading.add_argument("--skip-bad", action="store_true", help="leave out answers that cannot be used")
    text = "fit again without these people, and say what it changes; unreliable people count little anyway"
    reading.add_argument("--exclude-annotators", type=cli.names, default=(), metavar="NAME,...", help=text)
    _add_method_options(parser.add_argument_group("method"))
    cli.add_json_option(parser)


def _add_method_options(method: argparse._ArgumentGroup) -> None:
    add = method.add_argument
    add("--method", choices=METHODS, default="auto", help="auto is joint (default: %(default)s)")
    text = "number of classes, or auto for the one that held-out answers favour (2, or as many as --labels names)"
    add("--classes", type=cli.number_of_classes, metavar="K", help=text)
    text = "linear, boosted trees (needs sdulearn[boosting]), or by held-out answers (default: auto, where it applies)"
    add("--model", choices=MODELS, help=text)
    add("--loss", choices=tuple(TRAINING_LOSSES), default="squared", help="for su ... sudu (%(default)s)")
    add("--prior", type=cli.share, help="share of class +1, where it is known")
    text = "share of the answers that are wrong, for joint (auto: estimated for each annotator where possible)"
    add("--error-rate", type=cli.error_rate, default="auto", metavar="RATE", help=text)
    text = f"most rows to use as unlabeled, drawn at random and kept in memory ({MAX_UNLABELED:,})"
    add("--unlabeled", dest="max_unlabeled", type=cli.positive, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, save, report."""
    from sdulearn.cli.predict import write_answered
    from sdulearn.report.results import findings_of_model
    from sdulearn.workflow.fit import fit_table

    page = _page(arguments)
    options = cli.parameters_of(fit_table, arguments) | {"id_column": arguments.id}
    model = fit_table(**options)
    model.save(arguments.output)
    model.write_report(page, model_path=arguments.output)
    if arguments.answered is not None:
        write_answered(arguments.answered, model)
    report = model.report
    assert report is not None
    if arguments.json:
        found = findings_of_model(model)
        cli.print_json({"model": arguments.output, "page": page, "findings": found, "report": report})
        return 0
    cli.say(cli.in_options(model.summary()))
    times = "reading {reading:.1f} s, fitting and cross-validation {fitting:.1f} s".format(**report.seconds)
    more = "" if arguments.answered is None else f", {arguments.answered}"
    cli.say(f"wrote {arguments.output}{more} and {page} ({times})")
    return 0


def _page(arguments: argparse.Namespace) -> Path:
    """Return the path of the report; check all outputs before the work begins."""
    model = arguments.output
    page = arguments.report or model.with_suffix(".html")
    if page == model:
        raise InputError(f"Model and report would both be {model}. Name the model with another ending, such as .sdu.")
    if arguments.answered is not None:
        file_format(arguments.answered, ("csv", "tsv", "parquet"))
        if arguments.method not in ("auto", "joint"):
            raise InputError(f"--answered needs --method joint: {arguments.method} takes all answers for right.")
    cli.check_outputs((model, page, arguments.answered), (arguments.table, arguments.answers, arguments.labels))
    return page
