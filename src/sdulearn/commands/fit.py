"""Learn a classifier from a table and a file of same/different answers, and save it.

Columns are standardised, text columns become one feature a category, settings are chosen by cross-validation on the
answers alone, and the accuracy is estimated from held-out answers: no class label is needed. All of it goes into one
model file, from which `sdulearn predict` works on raw tables, and a report page is written beside it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sdulearn
from sdulearn.commands import _assumptions as assumptions
from sdulearn.commands._accuracy import PairAccuracy, held_out_decisions, pair_accuracy
from sdulearn.commands._answer_checks import check_answers
from sdulearn.commands._class_labels import ClassLabels, read_labels
from sdulearn.commands._describe import describe_accuracy, describe_method, describe_prior
from sdulearn.commands._methods import METHODS, estimator_of, with_its_settings
from sdulearn.commands._numbers import positive
from sdulearn.commands._pair_options import add_pair_options, read_pairs_as_told
from sdulearn.commands._report_page import write_page
from sdulearn.commands._training_set import Questions, TrainingSet, standardise, training_set, usable_questions
from sdulearn.files import PairFile
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.servable import TableModel, fold_standardisation
from sdulearn.tables import ColumnLayout, Table, read_table

HELP = "learn a model from a table and a file of answers"
_MAX_FOLDS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn fit``."""
    needed = parser.add_argument_group("files")
    needed.add_argument("--features", type=Path, required=True, help="table: .csv, .tsv, .jsonl, .parquet or .svm")
    needed.add_argument(
        "--pairs", type=Path, required=True, help="answers: id_a,id_b,label as .csv, .tsv, .jsonl or .parquet"
    )
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
    answers = parser.add_argument_group("reading the answers")
    add_pair_options(answers)
    answers.add_argument("--skip-bad", action="store_true", help="leave out answers that cannot be used")
    method = parser.add_argument_group("method")
    method.add_argument("--method", choices=METHODS, default="auto", help="auto is joint (default: %(default)s)")
    method.add_argument(
        "--loss", choices=tuple(TRAINING_LOSSES), default="squared", help="for su ... sudu (%(default)s)"
    )
    method.add_argument("--prior", type=_share, help="share of class +1, where it is known")
    method.add_argument(
        "--unlabeled",
        type=positive,
        default=20_000,
        help="most rows to use as unlabeled, drawn at random (%(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, judge, save, tell."""
    began = time.perf_counter()
    page = _page(arguments)
    pairs = read_pairs_as_told(arguments.pairs, arguments)
    print("\n".join(pairs.describe()))
    table = read_table(
        arguments.features,
        id_column=arguments.id,
        drop=arguments.drop,
        missing=arguments.missing,
        max_categories=arguments.max_categories,
    )
    print(_describe_table(arguments.features, table))
    questions = usable_questions(pairs, table, arguments.skip_bad)
    labels = None if arguments.labels is None else read_labels(arguments.labels, table)
    read = time.perf_counter()
    fitted = _fit(arguments, table, questions, labels)
    done = time.perf_counter()
    found = [*fitted.warnings, *_disagreements(arguments, table, pairs, questions, fitted, labels is not None)]
    model = _servable(arguments, table, pairs, questions, fitted, labels, found)
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


def _fit(arguments: argparse.Namespace, table: Table, questions: Questions, labels: ClassLabels | None) -> _Fitted:
    data = training_set(table.X, questions, arguments.unlabeled)
    folds = min(_MAX_FOLDS, int(questions.similar.sum()), int((~questions.similar).sum()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator_of(arguments.method, arguments.loss, arguments.prior, folds)
        model.fit(data.rows, data.codes, data.weights)
        accuracy = _accuracy(model, data, arguments.prior, folds)
    told = [str(w.message) for w in caught if "names -1 and +1 are arbitrary" not in str(w.message)]
    named_at_random = len(told) < len(caught)
    labelled = ""
    if labels is not None:
        points = standardise(table.X[labels.rows], data.mean, data.spread)
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


def _disagreements(
    arguments: argparse.Namespace, table: Table, pairs: PairFile, questions: Questions, fitted: _Fitted, oriented: bool
) -> list[str]:
    n_similar = int(questions.similar.sum())
    n_dissimilar = len(questions.similar) - n_similar
    found = [f"Left out: {text}." for text in questions.left_out]
    found += assumptions.ratio_warnings(n_similar, n_dissimilar, arguments.prior)
    found += assumptions.population_warnings(table.X, questions.ends, table.layout.feature_names)
    found += assumptions.contradiction_warnings(check_answers(pairs))
    found += assumptions.outcome_warnings(fitted.model.prior_, fitted.accuracy, oriented)
    if oriented and arguments.prior is not None and fitted.model.prior_.value != arguments.prior:
        found.append(f"By the labels, {arguments.prior:g} is the share of the other class: the names were exchanged.")
    return found


def _servable(
    arguments: argparse.Namespace,
    table: Table,
    pairs: PairFile,
    questions: Questions,
    fitted: _Fitted,
    labels: ClassLabels | None,
    found: list[str],
) -> TableModel:
    """The model in the units of the table, with all that ``inspect`` and the page tell."""
    model, data = fitted.model, fitted.data
    fold_standardisation(model, data.mean, data.spread)
    if isinstance(table.layout, ColumnLayout):
        model.feature_names_in_ = np.array(table.layout.feature_names, dtype=object)
    about = {
        "sdulearn": sdulearn.__version__,
        "method": describe_method(model),
        "table": {"file": arguments.features.name, "rows": len(table.ids), "unlabeled_used": data.n_unlabeled},
        "pairs": {
            "file": arguments.pairs.name,
            "similar": int(questions.similar.sum()),
            "dissimilar": int((~questions.similar).sum()),
            "unsure": pairs.n_unsure,
            "understood": pairs.describe()[1:3],
        },
        "accuracy": asdict(fitted.accuracy),
        "warnings": found,
    }
    return TableModel(model, table.layout, data.spread, labels.names if labels else ("-1", "1"), about)


def _describe_table(path: Path, table: Table) -> str:
    layout = table.layout
    ids = f"ids from {layout.id_column!r}" if layout.id_column else "rows numbered from 0"
    columns = f"{len(layout.columns):,} columns, " if isinstance(layout, ColumnLayout) else ""
    return f"{path}: {len(table.ids):,} rows, {columns}{layout.width:,} features, {ids}"


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
        raise ValueError(f"Model and report would both be {model}. Name the model with another ending, such as .sdu.")
    for path in (model, page):
        if not path.parent.is_dir():
            raise ValueError(f"There is no folder {path.parent} to write {path.name} into. Make it first.")
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
