"""A table that streams by: what a fit needs of it, found in sums over its row groups.

A table of numbers is passed over once; one with text columns or stand-ins for missing values twice, as its
features can be computed only when categories and stand-ins are known. Pair codes of a column are read before,
by themselves, and so are the columns that may hold ids, where none is called as one. Marginal risks are then
fitted on all rows, in one pass for squared loss and in several for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sdulearn.answers.checks import check_answers
from sdulearn.answers.records import Answers
from sdulearn.blocks import Block, Part
from sdulearn.blocks.problem import refuse_shared_points
from sdulearn.columns import CATEGORY, Column, ColumnLayout, Kind, find_columns
from sdulearn.diagnostics import Finding, Population, check_contradictions, check_source, off_mode
from sdulearn.errors import InputError
from sdulearn.io.files import is_location
from sdulearn.io.ids import ID_COLUMNS, choose_by_answers, is_row_number
from sdulearn.io.labels import Labelled, class_labels
from sdulearn.io.parquet import FeatureRows, ParquetTable, RawRows, open_parquet
from sdulearn.io.tables import choose_id, feature_kinds, may_hold_ids, table_format
from sdulearn.table_model import Scaler
from sdulearn.types import Codes, Estimator, Indices
from sdulearn.workflow.engines import Engine
from sdulearn.workflow.methods import is_joint, refit_on
from sdulearn.workflow.pair_codes import CodeSums, DrawnOrPaired, drawn_questions, source_of_codes
from sdulearn.workflow.passes import RowQuery, RowsFound, Summaries, count_codes, count_ids, find_rows, summarise_batch
from sdulearn.workflow.training import (
    AnswerSource,
    Questions,
    Request,
    TrainingData,
    drawn_rows,
    numbering_hint,
    repeated_id,
    source_of_answers,
    usable_questions,
    usable_scale,
)

# Settings are chosen on so many of the pairs that a column of codes names.
MAX_PAIRS = 20_000
_IN_MEMORY = "Read the table whole, with `engine='memory'`."
_READERS = {
    "csv": "pyarrow.dataset.dataset({!r}, format='csv')",
    "tsv": "pyarrow.csv.open_csv({!r}, parse_options=pyarrow.csv.ParseOptions(delimiter='\\t'))",
    "jsonl": "pyarrow.dataset.dataset({!r}, format='json')",
}


@dataclass(frozen=True)
class _Source:
    """A table on disk, and who reads it."""

    request: Request
    engine: Engine
    table: ParquetTable
    kinds: Mapping[str, Kind]
    layout: ColumnLayout
    counted: bool

    @property
    def max_unlabeled(self) -> int:
        """Rows to draw as unlabeled."""
        return self.request.most_unlabeled(self.layout.width)


def data_in_passes(
    request: Request, engine: Engine, answers: Answers | None, labelled: Labelled | None
) -> TrainingData:
    """Keep the rows that settings and accuracy are found on, and the way to fit on all of them."""
    check_parquet(request)
    ids = [] if answers is None else sorted(set(answers.ids.ravel().tolist()))
    source = _open(request, engine, ids)
    return _by_codes(source, labelled) if answers is None else _by_answers(source, answers, labelled)


def check_parquet(request: Request) -> None:
    """Only Parquet can be read in portions; for other formats the error says how to convert."""
    path = request.table_name
    if not is_location(request.table):
        raise InputError("A frame is in memory already: leave `engine` out.")
    if (name := table_format(path)) == "parquet":
        return
    conversion = ""
    if name in _READERS:
        write = f"pyarrow.dataset.write_dataset({_READERS[name].format(path)}, 'folder', format='parquet')"
        conversion = f'Convert it, piece by piece: python -c "import pyarrow.csv, pyarrow.dataset; {write}". '
    raise InputError(
        f"{path}: `engine` reads Parquet files and folders of them. {conversion}Leave `engine` out to read it into "
        "memory."
    )


def _open(request: Request, engine: Engine, ids: Sequence[str]) -> _Source:
    """Find the layout: from the files' schema where that tells all, else in a pass."""
    options = request.options
    table = open_parquet(request.table_name)
    if table.n_rows == 0:
        raise InputError(f"{table.path} has no rows.")
    id_column = _id_column(request, engine, table, ids)
    kinds = feature_kinds(table.path, table.types, id_column, options)
    counted = options.missing == "mean" or CATEGORY in kinds.values()
    if not counted:
        columns = tuple(Column(name, kind) for name, kind in kinds.items())
    else:
        found = _sum(engine, table, list(kinds), len(kinds), summarise_batch, kinds)
        columns = _columns(request, kinds, found)
    return _Source(request, engine, table, kinds, ColumnLayout(columns, id_column), counted)


def _id_column(request: Request, engine: Engine, table: ParquetTable, ids: Sequence[str]) -> str | None:
    """The column of ids: the one named, a usual one, or the one that holds the ids of the answers."""
    names = list(table.types)
    usual = choose_id(table.path, names, request.options.id_column, ID_COLUMNS)
    if usual is not None or request.options.id_column is not None or not ids:
        return usual
    left_out = {*request.options.drop, request.options.codes, request.options.points}
    columns = [name for name in names if name not in left_out and may_hold_ids(name, table.types[name])]
    if not columns:
        return None
    counts = _sum(engine, table, columns, len(columns), count_ids, columns, np.array(ids, dtype=object))
    return choose_by_answers(table.path, counts.candidates(), ids, table.n_rows, ID_COLUMNS)


def _columns(request: Request, kinds: Mapping[str, Kind], found: Summaries) -> tuple[Column, ...]:
    options = request.options
    return find_columns(request.table_name, kinds, found.columns, options.missing, options.max_categories)


def _sum(
    engine: Engine,
    table: ParquetTable,
    columns: Sequence[str],
    width: int,
    task: Callable[..., Any],
    *arguments: object,
) -> Any:
    """One pass over some columns, which become so many features."""
    parts = [RawRows(group, tuple(columns), width) for group in table.groups]
    return engine.blocks(parts, table.n_rows).sum(task, *arguments)


def _by_answers(source: _Source, answers: Answers, labelled: Labelled | None) -> TrainingData:
    request = source.request
    n_rows = source.table.n_rows
    unlabeled = drawn_rows(n_rows, source.max_unlabeled)
    names = {*answers.ids.ravel().tolist(), *(labelled.ids if labelled else ())}
    found, place = _find(source, unlabeled, names)
    hint = numbering_hint(source.layout.id_column, n_rows)
    questions = usable_questions(answers, place, request.skip_bad, hint, by_majority=not is_joint(request.method))
    about = source_of_answers(answers, questions)
    data = _training_data(source, found, about, questions, unlabeled, labelled, place)
    findings = check_contradictions(check_answers(answers), answers.annotators) + check_source(answers)
    data = replace(data, findings=findings)
    if is_joint(request.method) or request.max_unlabeled is not None:
        return data
    return _with_refit(source, data, None, [_pair_ends(data)], n_rows + 2 * len(questions.ends), n_rows, True)


def _by_codes(source: _Source, labelled: Labelled | None) -> TrainingData:
    request = source.request
    column = request.options.codes
    assert column is not None
    points = request.options.points
    columns = [column] if points is None else [column, points]
    arguments = (source.table.path, column, points, MAX_PAIRS, source.max_unlabeled)
    sums = _sum(source.engine, source.table, columns, 1, count_codes, *arguments)
    questions = drawn_questions(source.table.path, column, sums)
    about = source_of_codes(source.table.path, column, sums)
    unlabeled = np.sort(sums.unlabeled.rows)
    names = labelled.ids if labelled else set()
    found, place = _find(source, np.concatenate([questions.ends.ravel(), unlabeled]), names)
    data = _training_data(source, found, about, questions, unlabeled, labelled, place)
    if points is not None:
        data = replace(data, points=_points_of(np.concatenate(found.rows), sums))
    whole = len(questions.ends) == about.n_similar + about.n_dissimilar
    if not whole:
        refuse_shared_points(sums.points, f"learning from more than {MAX_PAIRS:,} of them", _IN_MEMORY)
    if is_joint(request.method):
        return data if whole else _from_a_draw(data)
    if whole and request.max_unlabeled is not None:
        return data
    if request.max_unlabeled is None:
        return _with_refit(source, data, None, [], source.table.n_rows, sums.n_unlabeled, whole)
    return _with_refit(source, data, _drawn_or_paired(sums), [], source.table.n_rows, len(unlabeled), whole)


def _points_of(rows: Indices, sums: CodeSums) -> Codes:
    """The point of each row that was kept; rows that were kept for their labels alone are in no fit."""
    points = np.array(rows, dtype=np.int64)
    for drawn in (sums.ends, sums.unlabeled):
        points[np.searchsorted(rows, drawn.rows)] = drawn.points
    return points


def _from_a_draw(data: TrainingData) -> TrainingData:
    """Where only some of the pairs are learned from, that is found, and they are what is counted."""
    questions = data.questions
    source = replace(data.source, n_similar=questions.n_similar, n_dissimilar=questions.n_dissimilar)
    n_pairs = data.source.n_similar + data.source.n_dissimilar
    details = {"n_used": len(questions.ends), "n_pairs": n_pairs}
    return replace(data, source=source, findings=[Finding("pairs_drawn", "info", details)])


def _drawn_or_paired(sums: CodeSums) -> DrawnOrPaired | None:
    """Which rows to fit on where unlabeled ones were drawn; None: all."""
    drawn = sums.unlabeled.marks
    return DrawnOrPaired(int(drawn.max())) if 0 < len(drawn) < sums.n_unlabeled else None


def _find(source: _Source, rows: Indices, names: set[str]) -> tuple[RowsFound, dict[str, int]]:
    """One pass over all features: their moments, the numbered rows, and the rows of the ids and where those are."""
    layout = source.layout
    n_rows = source.table.n_rows
    by_number = {}
    ids: list[str] = []
    if layout.id_column is None:
        by_number = {name: int(name) for name in names if is_row_number(name, n_rows)}
    else:
        ids = sorted(names)
    kept = np.union1d(rows, np.fromiter(by_number.values(), np.int64, len(by_number)))
    kinds = None if source.counted else source.kinds
    query = RowQuery(source.table.path, layout, kinds, kept, np.array(ids, dtype=object))
    columns = list(source.kinds)
    if layout.id_column and ids:
        columns.append(layout.id_column)
    found = _sum(source.engine, source.table, columns, layout.width, find_rows, query)
    if found.summaries is not None:
        _columns(source.request, source.kinds, found.summaries)
    return found, by_number if layout.id_column is None else _placed(ids, found)


def _placed(ids: list[str], found: RowsFound) -> dict[str, int]:
    """The row of each id that was found; each must be on one row only."""
    numbers = np.concatenate(found.ids)
    places = np.concatenate(found.places)
    if len(numbers):
        often, count = Counter(numbers.tolist()).most_common(1)[0]
        if count > 1:
            raise repeated_id(ids[often], count)
    return {ids[k]: row for k, row in zip(numbers.tolist(), places.tolist(), strict=True)}


def _training_data(
    source: _Source,
    found: RowsFound,
    about: AnswerSource,
    questions: Questions,
    unlabeled: Indices,
    labelled: Labelled | None,
    place: Mapping[str, int],
) -> TrainingData:
    """The rows that were kept, under new numbers."""
    rows = np.concatenate(found.rows)
    X = np.concatenate(found.X)
    moments = found.moments
    assert moments is not None
    labels = class_labels(labelled, place) if labelled else None
    local = np.searchsorted(rows, unlabeled)
    usual = off_mode(X[local] if len(local) else X)
    return TrainingData(
        layout=source.layout,
        n_rows=source.table.n_rows,
        X=X,
        scaler=Scaler(moments.mean, usable_scale(moments.mean, np.sqrt(moments.variance))),
        source=about,
        questions=replace(questions, ends=np.searchsorted(rows, questions.ends)),
        unlabeled=local,
        labels=None if labels is None else replace(labels, rows=np.searchsorted(rows, labels.rows)),
        population=Population(source.table.n_rows, moments.mean, moments.variance, usual),
    )


@dataclass(frozen=True)
class HeldRows:
    """A part that is in memory already."""

    block: Block

    def __call__(self) -> Iterator[Block]:
        """The one block."""
        yield self.block


def _pair_ends(data: TrainingData) -> HeldRows:
    """The ends of all pairs with their codes; among the rows of the table they count as unlabeled too."""
    bare = replace(data, unlabeled=np.empty(0, dtype=np.intp), labels=None, points=None)
    rows, y, weights = bare.stacked()
    return HeldRows((rows, y[:, 0], weights))


def _with_refit(
    source: _Source,
    data: TrainingData,
    keep: DrawnOrPaired | None,
    more: list[Part],
    n_rows: int,
    n_unlabeled: int,
    same_answers: bool,
) -> TrainingData:
    """The data with a fit on all rows, or on those to keep; ``same_answers`` where settings were chosen on all."""
    request = source.request
    scaler = data.scaler
    parts = [
        FeatureRows(group, source.layout, scaler.mean, scaler.scale, request.options.codes, keep)
        for group in source.table.groups
    ]

    def refit(model: Estimator) -> Estimator:
        # Squared loss reads the rows once.
        blocks = source.engine.blocks([*parts, *more], n_rows, keep=request.loss != "squared")
        return refit_on(model, blocks, same_answers)

    return replace(data, refit=refit, n_unlabeled=n_unlabeled)
