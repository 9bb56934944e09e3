"""A table that streams by: what a fit needs of it, found in sums over its row groups.

A table of numbers is passed over once; one with text columns or stand-ins for missing values twice,
as its features can be computed only when categories and stand-ins are known. Pair codes of a column
are read before, by themselves. Marginal risks are then fitted on all rows, in one pass for squared
loss and in several for the others.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sdulearn.blocks import Block, Part
from sdulearn.cli.engines import Engine
from sdulearn.columns import CATEGORY, Column, ColumnLayout, find_columns
from sdulearn.diagnostics import Population, off_mode
from sdulearn.errors import InputError
from sdulearn.io.answers import PairFile
from sdulearn.io.labels import class_labels, read_labels
from sdulearn.io.parquet import FeatureRows, ParquetTable, RawRows, open_parquet
from sdulearn.io.tables import ID_COLUMNS, choose_id, feature_kinds
from sdulearn.workflow.material import (
    UNLABELED,
    Answers,
    Material,
    answers_of_codes,
    answers_of_pairs,
    describe_table,
    read_answers,
)
from sdulearn.workflow.methods import is_joint, refit_on
from sdulearn.workflow.pair_codes import CodeSums, DrawnOrPaired
from sdulearn.workflow.sums import Seen, Summaries, Wanted, count_codes, look, summarise_batch
from sdulearn.workflow.training import (
    Indices,
    Questions,
    drawn_rows,
    most_unlabeled,
    numbering_hint,
    refuse_repeated,
    training_set,
    usable_spread,
)

# Settings are chosen on so many of the pairs that a column of codes names.
MAX_PAIRS = 20_000
Labelled = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class _Source:
    """A table on disk, and who reads it."""

    arguments: argparse.Namespace
    engine: Engine
    table: ParquetTable
    kinds: Mapping[str, str]
    layout: ColumnLayout
    counted: bool

    @property
    def max_unlabeled(self) -> int:
        """Rows to draw as unlabeled."""
        return most_unlabeled(self.layout.width, self.arguments.unlabeled or UNLABELED)


def material_in_passes(arguments: argparse.Namespace, engine: Engine) -> Material:
    """Keep the rows that settings and accuracy are found on, and the way to fit on all of them."""
    pairs = read_answers(arguments)
    told = [] if arguments.labels is None else read_labels(arguments.labels)
    source = _open(arguments, engine)
    print(describe_table(arguments.features, source.layout, source.table.n_rows), flush=True)
    return _by_codes(source, told) if pairs is None else _by_pairs(source, pairs, told)


def _open(arguments: argparse.Namespace, engine: Engine) -> _Source:
    """Find the layout: from the files' schema where that tells all, else in a pass."""
    path, table = arguments.features, open_parquet(arguments.features)
    if table.n_rows == 0:
        raise InputError(f"{path} has no rows.")
    id_column = choose_id(path, list(table.types), arguments.id, ID_COLUMNS)
    kinds = feature_kinds(path, table.types, id_column, arguments.drop, arguments.codes)
    columns = tuple(Column(name, kind) for name, kind in kinds.items())
    counted = arguments.missing == "mean" or CATEGORY in kinds.values()
    if counted:
        columns = _columns(arguments, kinds, _sum(engine, table, list(kinds), len(kinds), summarise_batch, kinds))
    return _Source(arguments, engine, table, kinds, ColumnLayout(columns, id_column), counted)


def _columns(arguments: argparse.Namespace, kinds: Mapping[str, str], found: Summaries) -> tuple[Column, ...]:
    return find_columns(arguments.features, kinds, found.columns, arguments.missing, arguments.max_categories)


def _sum(
    engine: Engine, table: ParquetTable, columns: Sequence[str], width: int, task: Callable[..., Any], *told: Any
) -> Any:
    """One pass over some columns, which become so many features."""
    parts = [RawRows(group, tuple(columns), width) for group in table.groups]
    return engine.blocks(parts, table.n_rows).sum(task, *told)


def _by_pairs(source: _Source, pairs: PairFile, told: Labelled) -> Material:
    n_rows, layout = source.table.n_rows, source.layout
    unlabeled = drawn_rows(n_rows, layout.width, source.max_unlabeled)
    seen, place = _look(source, unlabeled, {*pairs.ids.ravel().tolist(), *(name for name, _ in told)})
    hint = numbering_hint(layout.id_column, n_rows)
    answers, questions = answers_of_pairs(pairs, place, source.arguments.skip_bad, hint)
    material = _material(source, seen, answers, questions, unlabeled, told, place)
    if is_joint(source.arguments.method) or source.arguments.unlabeled is not None:
        return material
    ends = _pair_ends(material)
    return _with_refit(source, material, None, [ends], n_rows + 2 * len(questions.ends), n_rows)


def _by_codes(source: _Source, told: Labelled) -> Material:
    arguments, column = source.arguments, source.arguments.codes
    asked = (str(arguments.features), column, MAX_PAIRS, source.max_unlabeled)
    sums = _sum(source.engine, source.table, [column], 1, count_codes, *asked)
    answers, questions, unlabeled = answers_of_codes(arguments, sums)
    seen, place = _look(source, np.concatenate([questions.ends.ravel(), unlabeled]), {name for name, _ in told})
    material = _material(source, seen, answers, questions, unlabeled, told, place)
    whole = len(questions.ends) == answers.n_similar + answers.n_dissimilar
    if is_joint(arguments.method):
        return material if whole else _told_of_draw(material)
    if whole and arguments.unlabeled is not None:
        return material
    if arguments.unlabeled is None:
        return _with_refit(source, material, None, [], source.table.n_rows, sums.n_unlabeled)
    return _with_refit(source, material, _drawn_or_paired(sums), [], source.table.n_rows, len(unlabeled))


def _told_of_draw(material: Material) -> Material:
    """Where only some of the pairs are learned from, that is said, and they are what is counted."""
    similar = material.questions.similar
    print(f"the joint method learns from {len(similar):,} of the pairs, drawn at random; a marginal one "
          "(--method sddu) from all")  # fmt: skip
    n_similar = int(similar.sum())
    return replace(
        material, answers=replace(material.answers, n_similar=n_similar, n_dissimilar=len(similar) - n_similar)
    )


def _drawn_or_paired(sums: CodeSums) -> DrawnOrPaired | None:
    """Which rows to fit on where unlabeled ones were drawn; None: all."""
    drawn = sums.unlabeled.marks
    return DrawnOrPaired(int(drawn.max())) if 0 < len(drawn) < sums.n_unlabeled else None


def _look(source: _Source, rows: Indices, names: set[str]) -> tuple[Seen, dict[str, int]]:
    """One pass over all features: their moments, the numbered rows, and the rows of the ids and where those are."""
    arguments, layout = source.arguments, source.layout
    by_number = {} if layout.id_column else _numbered(names, source.table.n_rows)
    kept = np.union1d(rows, np.fromiter(by_number.values(), np.int64, len(by_number)))
    ids = np.array(sorted(names) if layout.id_column else [], dtype=object)
    wanted = Wanted(str(arguments.features), layout, None if source.counted else source.kinds, kept, ids)
    columns = [*source.kinds, *([layout.id_column] if layout.id_column and len(ids) else [])]
    seen = _sum(source.engine, source.table, columns, layout.width, look, wanted)
    if seen.summaries is not None:
        _columns(arguments, source.kinds, seen.summaries)
    return seen, by_number if layout.id_column is None else _placed(ids.tolist(), seen)


def _numbered(names: set[str], n_rows: int) -> dict[str, int]:
    """Rows without ids are called by their numbers."""
    short = (name for name in names if len(name) <= len(str(n_rows)) and name.isascii() and name.isdigit())
    return {name: int(name) for name in short if int(name) < n_rows and str(int(name)) == name}


def _placed(ids: list[str], seen: Seen) -> dict[str, int]:
    """The row of each wanted id; each must be on one row only."""
    found, places = np.concatenate(seen.ids), np.concatenate(seen.places)
    if len(found):
        often, count = Counter(found.tolist()).most_common(1)[0]
        if count > 1:
            refuse_repeated(ids[often], count)
    return {ids[k]: row for k, row in zip(found.tolist(), places.tolist(), strict=True)}


def _material(
    source: _Source,
    seen: Seen,
    answers: Answers,
    questions: Questions,
    unlabeled: Indices,
    told: Labelled,
    place: Mapping[str, int],
) -> Material:
    """The rows that were kept, under new numbers."""
    rows, X, moments = np.concatenate(seen.rows), np.concatenate(seen.X), seen.moments
    assert moments is not None
    labels = class_labels(source.arguments.labels, told, place) if told else None
    local = np.searchsorted(rows, unlabeled)
    usual = off_mode(X[local] if len(local) else X)
    return Material(
        layout=source.layout,
        n_rows=source.table.n_rows,
        X=X,
        mean=moments.mean,
        spread=usable_spread(moments.mean, np.sqrt(moments.variance)),
        answers=answers,
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


def _pair_ends(material: Material) -> HeldRows:
    """The ends of all pairs with their codes; among the rows of the table they count as unlabeled too."""
    none = np.empty(0, dtype=np.intp)
    data = training_set(material.X, material.questions, none, material.mean, material.spread)
    return HeldRows((data.rows, data.codes, data.weights))


def _with_refit(
    source: _Source,
    material: Material,
    keep: DrawnOrPaired | None,
    more: list[Part],
    n_rows: int,
    n_unlabeled: int,
) -> Material:
    """The material with a fit on all rows, or on those to keep."""
    arguments = source.arguments
    parts = [
        FeatureRows(group, source.layout, material.mean, material.spread, arguments.codes, keep)
        for group in source.table.groups
    ]

    def refit(model: Any) -> None:
        blocks = source.engine.blocks([*parts, *more], n_rows, keep=arguments.loss != "squared")
        refit_on(model, blocks)

    return replace(material, refit=refit, n_unlabeled=n_unlabeled)
