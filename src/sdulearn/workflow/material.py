"""All that a fit needs of a table and its answers, whichever engine reads them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.answers.checks import check_answers
from sdulearn.cli.pair_options import read_pairs_as_told
from sdulearn.diagnostics import Population, contradiction_warnings
from sdulearn.io.answers import PairFile
from sdulearn.io.labels import ClassLabels, class_labels, read_labels
from sdulearn.io.tables import ColumnLayout, Layout, read_table
from sdulearn.workflow.pair_codes import CodeSums, code_sums, drawn_questions
from sdulearn.workflow.training import (
    Array,
    Indices,
    Questions,
    drawn_rows,
    moments,
    most_unlabeled,
    numbering_hint,
    rows_of_ids,
    usable_questions,
)

UNLABELED = 20_000


@dataclass(frozen=True)
class Answers:
    """Where the answers come from, and how many are used in all."""

    file: str
    understood: list[str]
    n_similar: int
    n_dissimilar: int
    n_unsure: int = 0
    contradictions: Sequence[str] = ()


@dataclass(frozen=True)
class Material:
    """Rows to learn from; all row numbers are those of ``X``.

    Attributes
    ----------
    layout : Layout
        How the table becomes features.
    n_rows : int
        Rows of the table.
    X : matrix
        All rows of the table, or those that are needed.
    mean, spread : array
        Of each feature over all rows of the table.
    answers, questions : Answers, Questions
        The answers in words, and as row numbers.
    unlabeled : array
        Rows that serve as unlabeled.
    labels : ClassLabels or None
        A few true labels.
    population : Population or None
        The whole table; None where ``X`` is just that.
    refit : function or None
        Fits the model again, with the settings it has chosen, on all rows.
    n_unlabeled : int or None
        Unlabeled rows of that fit.
    """

    layout: Layout
    n_rows: int
    X: Any
    mean: Array
    spread: Array
    answers: Answers
    questions: Questions
    unlabeled: Indices
    labels: ClassLabels | None
    population: Population | None = None
    refit: Callable[[Any], None] | None = None
    n_unlabeled: int | None = None


def material_in_memory(arguments: argparse.Namespace) -> Material:
    """Read the whole table."""
    pairs = read_answers(arguments)
    table = read_table(arguments.features, codes=arguments.codes, **table_options(arguments))
    n_rows, layout = table.X.shape[0], table.layout
    print(describe_table(arguments.features, layout, n_rows))
    place = {} if pairs is None and arguments.labels is None else rows_of_ids(table.ids)
    limit = arguments.unlabeled or UNLABELED
    if pairs is None:
        assert table.codes is not None
        sums = code_sums(table.codes, np.arange(n_rows), None, most_unlabeled(layout.width, limit))
        answers, questions, unlabeled = answers_of_codes(arguments, sums)
    else:
        hint = numbering_hint(layout.id_column, n_rows)
        answers, questions = answers_of_pairs(pairs, place, arguments.skip_bad, hint)
        unlabeled = drawn_rows(n_rows, layout.width, limit)
    labels = None if arguments.labels is None else class_labels(arguments.labels, read_labels(arguments.labels), place)
    return Material(layout, n_rows, table.X, *moments(table.X), answers, questions, unlabeled, labels)


def read_answers(arguments: argparse.Namespace) -> PairFile | None:
    """The pair file, told on the screen; None where the answers are codes of the table."""
    if arguments.pairs is None:
        return None
    pairs = read_pairs_as_told(arguments.pairs, arguments)
    print("\n".join(pairs.describe()))
    return pairs


def table_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options by which a table is read."""
    return {
        "id_column": arguments.id,
        "drop": arguments.drop,
        "missing": arguments.missing,
        "max_categories": arguments.max_categories,
    }


def answers_of_pairs(pairs: PairFile, place: Mapping[str, int], skip_bad: bool, hint: str) -> tuple[Answers, Questions]:
    """The answers of a file; ``place`` gives the row of an id."""
    questions = usable_questions(pairs, place, skip_bad, hint)
    n_similar = int(questions.similar.sum())
    found = Answers(
        Path(pairs.path).name,
        pairs.describe()[1:3],
        n_similar,
        len(questions.similar) - n_similar,
        pairs.n_unsure,
        contradiction_warnings(check_answers(pairs)),
    )
    return found, questions


def answers_of_codes(arguments: argparse.Namespace, sums: CodeSums) -> tuple[Answers, Questions, Indices]:
    """The answers of a column of pair codes, told on the screen; a row is in one pair, so none contradicts another."""
    path, column = arguments.features, arguments.codes
    questions = drawn_questions(str(path), column, sums)
    n_similar, n_dissimilar = sums.n_similar // 2, sums.n_dissimilar // 2
    print(f"pair codes from {column!r}: {n_similar:,} similar and {n_dissimilar:,} dissimilar pairs, "
          f"{sums.n_unlabeled:,} unlabeled rows")  # fmt: skip
    answers = Answers(path.name, [f"pair codes of column {column!r}"], n_similar, n_dissimilar)
    return answers, questions, np.sort(sums.unlabeled.rows)


def describe_table(path: Path, layout: Layout, n_rows: int) -> str:
    """What was read, in a line."""
    ids = f"ids from {layout.id_column!r}" if layout.id_column else "rows numbered from 0"
    columns = f"{len(layout.columns):,} columns, " if isinstance(layout, ColumnLayout) else ""
    return f"{path}: {n_rows:,} rows, {columns}{layout.width:,} features, {ids}"
