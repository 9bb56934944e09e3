"""Learn a classifier from a table and a file of same/different answers, and save it.

Columns are standardised, text columns become one feature a category, settings are chosen by
cross-validation on the answers alone, and the accuracy is estimated from held-out answers: no class
label is needed. All of it goes into one model file, from which `sdulearn predict` works on raw
tables, and a report page is written beside it.

The answers are a file of pairs (--pairs) or a column of pair codes in the table itself (--codes):
+k at both ends of similar pair k, -k at both ends of dissimilar pair k, 0 elsewhere.

A Parquet file or folder that does not fit into memory is read with --engine stream, row group by row group, on all
cores of this machine, or with --engine dask on a cluster. Settings, accuracy and the joint method go by the answers and
a draw of unlabeled rows, as in memory; a marginal method (su ... sudu) is then fitted on every row of the table, unless
--unlabeled is given.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sdulearn
from sdulearn import diagnostics as assumptions
from sdulearn.cli.engines import MEMORY, add_engine_options, check_engine, open_engine
from sdulearn.cli.numbers import positive
from sdulearn.cli.pair_options import add_pair_options
from sdulearn.cli.report_page import write_page
from sdulearn.cli.words import describe_accuracy, describe_method, describe_prior
from sdulearn.errors import InputError
from sdulearn.io.tables import ColumnLayout
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.metrics import PairAccuracy, held_out_decisions, pair_accuracy
from sdulearn.table_model import TableModel, fold_standardisation
from sdulearn.workflow.material import UNLABELED, Material, material_in_memory
from sdulearn.workflow.methods import METHODS, estimator_of, with_its_settings
from sdulearn.workflow.streamed import material_in_passes
from sdulearn.workflow.training import TrainingSet, standardise, training_set

HELP = "learn a model from a table and a file of answers"
_MAX_FOLDS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn fit``."""
    needed = parser.add_argument_group("files")
    needed.add_argument(
        "--features",
        type=Path,
        required=True,
        help="table: .csv, .tsv, .jsonl, .parquet or .svm, or a folder of Parquet files",
    )
    answers = needed.add_mutually_exclusive_group(required=True)
    answers.add_argument("--pairs", type=Path, help="answers: id_a,id_b,label as .csv, .tsv, .jsonl or .parquet")
    answers.add_argument("--codes", metavar="COLUMN", help="answers: a column of the table that holds pair codes")
    needed.add_argument("-o", "--output", type=Path, required=True, metavar="MODEL", help="model file to write")
    needed.add_argument("--report", type=Path, help="report page (default: the model's name with .html)")
    needed.add_argument("--labels", type=Path, help="a few id,label rows that settle the names of the classes")
    table = parser.add_argument_group("reading the table")
    table.add_argument("--id", help="id column (default: id or unique_id; without either, row numbers from 0)")
    table.add_argument("--drop", type=_names, default=(), metavar="COLUMN,...", help="columns to leave out")
    table.add_argument(
        "--missing", choices=("error", "mean"), default="error", help="refuse missing values, or put in the mean"
    )
    table.add_argument("--max-categories", type=positive, default=50, help="most texts a column may have (%(default)s)")
    reading = parser.add_argument_group("reading the answers of --pairs")
    add_pair_options(reading)
    reading.add_argument("--skip-bad", action="store_true", help="leave out answers that cannot be used")
    method = parser.add_argument_group("method")
    method.add_argument("--method", choices=METHODS, default="auto", help="auto is joint (default: %(default)s)")
    method.add_argument(
        "--loss", choices=tuple(TRAINING_LOSSES), default="squared", help="for su ... sudu (%(default)s)"
    )
    method.add_argument("--prior", type=_share, help="share of class +1, where it is known")
    method.add_argument(
        "--unlabeled",
        type=positive,
        help=f"most rows to use as unlabeled, drawn at random and kept in memory ({UNLABELED:,}; for su ... sudu with "
        "--engine stream or dask, every row)",
    )
    add_engine_options(parser.add_argument_group("where the work is done"))


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, judge, save, tell."""
    page = _page(arguments)
    check_engine(arguments)
    if arguments.engine == MEMORY:
        return _run(arguments, page, material_in_memory)
    with open_engine(arguments) as engine:
        return _run(arguments, page, partial(material_in_passes, engine=engine))


def _run(arguments: argparse.Namespace, page: Path, read_material: Callable[[argparse.Namespace], Material]) -> int:
    began = time.perf_counter()
    material = read_material(arguments)
    read = time.perf_counter()
    fitted = _fit(arguments, material)
    done = time.perf_counter()
    found = [*fitted.warnings, *_disagreements(arguments, material, fitted)]
    model = _servable(arguments, material, fitted, found)
    model.save(arguments.output)
    write_page(page, model, arguments.output)
    print("\n".join([*_summary(fitted), *(f"warning: {text}" for text in found)]))
    end = time.perf_counter()
    print(f"wrote {arguments.output} and {page} (reading {read - began:.1f} s, fitting and cross-validation "
          f"{done - read:.1f} s, the rest {end - done:.1f} s)")  # fmt: skip
    return 0


@dataclass(frozen=True)
class _Fitted:
    """A model of standardised rows, its training set, its accuracy, and what the fit itself warned of."""

    model: Any
    data: TrainingSet
    accuracy: PairAccuracy
    labelled: str
    warnings: list[str]


def _fit(arguments: argparse.Namespace, material: Material) -> _Fitted:
    questions, labels = material.questions, material.labels
    data = training_set(material.X, questions, material.unlabeled, material.mean, material.spread)
    folds = min(_MAX_FOLDS, int(questions.similar.sum()), int((~questions.similar).sum()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator_of(arguments.method, arguments.loss, arguments.prior, folds)
        model.fit(data.rows, data.codes, data.weights)
        accuracy = _accuracy(model, data, arguments.prior, folds)
        if material.refit is not None:
            material.refit(model)
    told = [str(w.message) for w in caught if "names -1 and +1 are arbitrary" not in str(w.message)]
    named_at_random = len(told) < len(caught)
    labelled = ""
    if labels is not None:
        points = standardise(material.X[labels.rows], data.mean, data.spread)
        right = int(np.sum(model.orient(points, labels.classes).predict(points) == labels.classes))
        labelled = (
            f"{labels.names[0]} is -1, {labels.names[1]} is +1; {right} of {len(labels.rows)} labels as predicted"
        )
    elif named_at_random and model.prior_.identified:
        told.append("The model puts about half the rows on either side, so the names of the classes may be exchanged. "
                    "Settle them with a few labelled points: --labels few.csv")  # fmt: skip
    return _Fitted(model, data, accuracy, labelled, list(dict.fromkeys(told)))


def _accuracy(model: Any, data: TrainingSet, prior: float | None, folds: int) -> PairAccuracy:
    reference = model.decision_function(data.rows)
    decision = held_out_decisions(
        lambda: with_its_settings(model), data.rows, data.codes, data.weights, reference, folds
    )
    return pair_accuracy(decision, data.codes, data.weights, model.prior_.value, prior is None)


def _disagreements(arguments: argparse.Namespace, material: Material, fitted: _Fitted) -> list[str]:
    answers, questions, oriented = material.answers, material.questions, material.labels is not None
    found = [f"Left out: {text}." for text in questions.left_out]
    found += assumptions.ratio_warnings(answers.n_similar, answers.n_dissimilar, arguments.prior)
    names = material.layout.feature_names
    found += assumptions.population_warnings(material.X, questions.ends, names, material.population)
    found += answers.contradictions
    found += assumptions.outcome_warnings(fitted.model.prior_, fitted.accuracy, oriented)
    if oriented and arguments.prior is not None and fitted.model.prior_.value != arguments.prior:
        found.append(f"By the labels, {arguments.prior:g} is the share of the other class: the names were exchanged.")
    return found


def _servable(arguments: argparse.Namespace, material: Material, fitted: _Fitted, found: list[str]) -> TableModel:
    """The model in the units of the table, with all that ``inspect`` and the page tell."""
    model, data, layout, answers = fitted.model, fitted.data, material.layout, material.answers
    fold_standardisation(model, data.mean, data.spread)
    if isinstance(layout, ColumnLayout):
        model.feature_names_in_ = np.array(layout.feature_names, dtype=object)
    used = data.n_unlabeled if material.n_unlabeled is None else material.n_unlabeled
    about = {
        "sdulearn": sdulearn.__version__,
        "method": describe_method(model),
        "table": {"file": arguments.features.name, "rows": material.n_rows, "unlabeled_used": used},
        "pairs": {
            "file": answers.file,
            "similar": answers.n_similar,
            "dissimilar": answers.n_dissimilar,
            "unsure": answers.n_unsure,
            "understood": answers.understood,
        },
        "accuracy": asdict(fitted.accuracy),
        "warnings": found,
    }
    names = material.labels.names if material.labels else ("-1", "1")
    return TableModel(model, layout, data.spread, names, about)


def _summary(fitted: _Fitted) -> list[str]:
    return [
        f"method: {describe_method(fitted.model)}",
        f"prior: {describe_prior(fitted.model.prior_)}",
        f"estimated accuracy: {describe_accuracy(asdict(fitted.accuracy))}",
        *([f"classes: {fitted.labelled}"] if fitted.labelled else []),
    ]


def _page(arguments: argparse.Namespace) -> Path:
    """Where the report goes; asked before the work, so that a wrong path costs nothing."""
    model, page = arguments.output, arguments.report or arguments.output.with_suffix(".html")
    if page == model:
        raise InputError(f"Model and report would both be {model}. Name the model with another ending, such as .sdu.")
    for path in (model, page):
        if not path.parent.is_dir():
            raise InputError(f"There is no folder {path.parent} to write {path.name} into. Make it first.")
    return page


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share between 0 and 1")
    return value
