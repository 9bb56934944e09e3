"""Learn a classifier from a table and a file of same/different answers, and save it.

Columns are standardised, text columns become one feature a category, settings are chosen by cross-validation
on the answers alone, and the accuracy is estimated from held-out answers: no class label is needed. All of it
goes into one model file, from which `sdulearn predict` works on raw tables, and a report page is written
beside it.

The answers are a file of pairs (--pairs) or a column of pair codes in the table itself (--codes): +k at both
ends of similar pair k, -k at both ends of dissimilar pair k, 0 elsewhere. Where several of these rows show the
same point, --points names the column that says which.

A table is read a few megabytes at a time, and the rows that are needed are kept: those in answers and a draw of
unlabeled ones. --engine stream and dask read Parquet tables of any size.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sdulearn.cli.options import (
    TABLE_OPTIONS,
    add_answer_options,
    add_engine_options,
    add_files_options,
    add_json_option,
    add_table_options,
    error_rate,
    in_options,
    names,
    number_of_classes,
    opened_engine,
    positive,
    print_json,
    refuse_overwriting,
    say,
    share,
)
from sdulearn.errors import InputError
from sdulearn.io.files import file_format
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.workflow.options import MAX_UNLABELED, METHODS, MODELS

# Options that are called as the parameters they stand for.
_METHOD_OPTIONS = ("method", "loss", "prior", "error_rate", "classes", "model")
_THINGS_OPTIONS = ("text", "image_root", "embedding")
_OPTIONS = (
    *TABLE_OPTIONS,
    *_METHOD_OPTIONS,
    *_THINGS_OPTIONS,
    "codes",
    "points",
    "labels",
    "skip_bad",
    "exclude_annotators",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn fit``."""
    files = parser.add_argument_group("files")
    files.add_argument(
        "--features",
        type=Path,
        required=True,
        help="table: .csv, .tsv, .jsonl, .parquet, .xlsx or .svm, or a folder of Parquet files",
    )
    answers = files.add_mutually_exclusive_group(required=True)
    answers.add_argument(
        "--pairs",
        type=Path,
        help="answers: id_a,id_b,label as .csv, .tsv, .jsonl, .json, .parquet or .xlsx, or of another tool",
    )
    answers.add_argument("--codes", metavar="COLUMN", help="answers: a column of the table that holds pair codes")
    files.add_argument(
        "--points", metavar="COLUMN", help="with --codes: a column that says which point a row shows, by whole numbers"
    )
    files.add_argument("-o", "--output", type=Path, required=True, metavar="MODEL", help="model file to write")
    files.add_argument("--report", type=Path, help="report page (default: the model's name with .html)")
    files.add_argument(
        "--labels", type=Path, help="a few id,label rows: joint learns from them, and they name the classes"
    )
    known = "rows in answers, with their classes by features and answers together (.csv, .tsv, .parquet)"
    files.add_argument("--answered", type=Path, metavar="FILE", help=known)
    _add_things_options(parser.add_argument_group("texts and pictures (by default as in `sdulearn ask`)"))
    add_table_options(parser.add_argument_group("reading the table"))
    reading = parser.add_argument_group("reading the answers of --pairs")
    add_answer_options(reading)
    reading.add_argument("--skip-bad", action="store_true", help="leave out answers that cannot be used")
    reading.add_argument(
        "--exclude-annotators",
        type=lambda text: "worst" if text == "worst" else names(text),
        default=(),
        metavar="NAME,...",
        help="fit again without the answers of these people, or of the worst (more than 30%% wrong for certain), and "
        "say what it changes; unreliable people count little anyway, so this is for those who did not look",
    )
    _add_method_options(parser.add_argument_group("method"))
    add_engine_options(parser.add_argument_group("where the work is done"), ", and su ... sudu learn from every row")
    add_json_option(parser)


def _add_method_options(method: argparse._ArgumentGroup) -> None:
    method.add_argument("--method", choices=METHODS, default="auto", help="auto is joint (default: %(default)s)")
    method.add_argument(
        "--classes",
        type=number_of_classes,
        metavar="K",
        help="number of classes, or auto for the one that held-out answers favour (2, or as many as --labels names)",
    )
    method.add_argument(
        "--model",
        choices=MODELS,
        help="linear, boosted trees (needs sdulearn[boosting]), or auto: by held-out answers (default: auto, or "
        "linear where it does not apply)",
    )
    method.add_argument(
        "--loss", choices=tuple(TRAINING_LOSSES), default="squared", help="for su ... sudu (%(default)s)"
    )
    method.add_argument("--prior", type=share, help="share of class +1, where it is known")
    method.add_argument(
        "--error-rate",
        type=error_rate,
        default="auto",
        metavar="RATE",
        help="share of the answers that are wrong, for joint (auto: estimated for each annotator where possible)",
    )
    method.add_argument(
        "--unlabeled",
        type=positive,
        help=f"most rows to use as unlabeled, drawn at random and kept in memory ({MAX_UNLABELED:,}; for su ... sudu "
        "with --engine stream or dask, every row)",
    )


def _add_things_options(things: argparse._ArgumentGroup) -> None:
    """Columns that become many features each."""
    things.add_argument("--text", type=names, default=(), metavar="COLUMN,...", help="columns of sentences")
    things.add_argument(
        "--image",
        type=names,
        default=(),
        metavar="COLUMN,...",
        help="columns of picture files (needs sdulearn[images])",
    )
    add_files_options(things)


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, save, report."""
    from sdulearn.cli.predict import write_answered
    from sdulearn.io.answers import read_answers
    from sdulearn.report.facts import as_data, facts
    from sdulearn.workflow.fit import fit_table

    page = _page(arguments)
    answers = None
    if arguments.pairs is not None:
        answers = read_answers(arguments.pairs, columns=arguments.pair_columns, words=arguments.answers)
    options = {name: getattr(arguments, name) for name in _OPTIONS}
    options |= {"id_column": arguments.id, "max_unlabeled": arguments.unlabeled, "images": arguments.image}
    with opened_engine(arguments) as engine:
        model = fit_table(arguments.features, answers, engine=engine, **options)
    model.save(arguments.output)
    model.write_report(page, model_path=arguments.output)
    if arguments.answered is not None:
        write_answered(arguments.answered, model)
    if arguments.json:
        found = as_data(facts(model))
        print_json({"model": arguments.output, "page": page, "facts": found, "report": model.report})
        return 0
    assert model.report is not None
    seconds = model.report.seconds
    say(in_options(model.summary()))
    times = f"reading {seconds['reading']:.1f} s, fitting and cross-validation {seconds['fitting']:.1f} s"
    more = "" if arguments.answered is None else f", {arguments.answered}"
    say(f"wrote {arguments.output}{more} and {page} ({times})")
    return 0


def _page(arguments: argparse.Namespace) -> Path:
    """Where the report goes; asked before the work, so that a wrong path costs nothing."""
    model = arguments.output
    page = arguments.report or model.with_suffix(".html")
    if page == model:
        raise InputError(f"Model and report would both be {model}. Name the model with another ending, such as .sdu.")
    if arguments.answered is not None:
        file_format(arguments.answered, ("csv", "tsv", "parquet"))
        if arguments.method not in ("auto", "joint"):
            raise InputError(f"--answered needs --method joint: {arguments.method} takes all answers for right.")
    for path in filter(None, (model, page, arguments.answered)):
        if not path.parent.is_dir():
            raise InputError(f"There is no folder {path.parent} to write {path.name} into. Make it first.")
    refuse_overwriting((model, page, arguments.answered), (arguments.features, arguments.pairs, arguments.labels))
    return page
