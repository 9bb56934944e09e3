"""Read a table and answers into the rows and pair codes that an estimator learns from.

One pass over the table finds the kinds of the columns, the rows of the ids and the rows to keep; these
are encoded afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sdulearn.answer_files.rows import Labels, class_numbers
from sdulearn.answers.checks import check_answers, majority_votes, need_pairs
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.records import Answers, random_ends
from sdulearn.answers.y import SIMILAR, UNSURE, mean_weight, scramble, stack_pairs
from sdulearn.diagnostics import Population, check_columns, check_contradictions, check_source, off_mode
from sdulearn.errors import InputError, pa, quoted
from sdulearn.findings import (
    Fault,
    Finding,
    FitWarning,
    IdsTaken,
    LeftOut,
    PassedOver,
    RepeatedQuestions,
    TiedQuestions,
)
from sdulearn.io.files import Location, folder_of
from sdulearn.reading import CONTRASTIVE, Reading
from sdulearn.tables.columns import Columns
from sdulearn.tables.encoders import EncodedImages, new_encoder
from sdulearn.tables.ids import check_filled, count_ids, ids_of, is_row_number, named_id_column, repeated_id
from sdulearn.tables.same_table import DIGEST_ROWS, check_same_table, compares_cells, row_digests, table_digest
from sdulearn.tables.scan import MOST_TEXTS, Survey, decide, look_for, surveyed, why_unknown
from sdulearn.tables.source import Table, open_table
from sdulearn.types import Array, ArrowColumn, ArrowTable, Codes, Frame, Indices, Mask
from sdulearn.workflow.options import MAX_UNLABELED, FitOptions

_LINES_SHOWN = 5
# With fewer groups nothing can be said about new ones.
_MIN_GROUPS = 3
# Rows to choose questions from, per answer.
_ROWS_PER_ANSWER = 10


@dataclass(frozen=True)
class TrainingData:
    """The part of a table that a fit needs, and the answers about it; row numbers are those of ``X``."""

    columns: Columns  # how the table becomes features
    n_rows: int  # rows of the table
    X: Array  # the rows that are kept, not scaled
    ids: Sequence[str]  # of these rows
    answers: Answers  # as read
    used: Indices  # positions of the answers that are learned from
    ends: Indices  # (n_used, 2), their rows
    unlabeled: Indices  # rows that serve as unlabeled
    random: Mask | None = None  # ends that are in a random sample of the rows; None if all are
    annotators: Codes | None = None  # of the answers used
    people: Codes | None = None  # the person of each annotator, if annotators are (person, certainty)
    labels: Mapping[int, str] = field(default_factory=dict)  # a few true classes by row
    classes: tuple[str, ...] = ()  # names of all classes, if there are labels
    label_codes: Codes | None = None  # the labels as classes of an estimator
    population: Population | None = None  # moments of the table; None if ``X`` is the whole table
    groups: Codes | None = None  # equal numbers are rows that belong together, of all rows kept
    findings: Sequence[Finding] = ()

    @property
    def similar(self) -> Mask:
        """Which of the answers used are "similar"."""
        return self.answers.answers[self.used] == SIMILAR

    @property
    def questions(self) -> Indices | None:
        """Number of the question of each of the answers used, from 1; None if each is a question of its own."""
        return None if self.answers.questions is None else self.answers.questions[self.used] + 1

    @property
    def n_similar(self) -> int:
        """Number of answers "similar" that are used."""
        return int(self.similar.sum())

    @property
    def n_dissimilar(self) -> int:
        """Number of answers "dissimilar" that are used."""
        return len(self.used) - self.n_similar

    @cached_property
    def stacked(self) -> tuple[Array, AnswerGraph]:
        """Standardised rows and what is known about them, those of answers first."""
        labels = None
        if self.label_codes is not None:
            # NaN where unknown: all labels may be of class 1.
            labels = np.full(self.X.shape[0], np.nan)
            labels[self.label_rows] = self.label_codes
        known = {"annotators": self.annotators, "labels": labels, "questions": self.questions}
        rows, y = stack_pairs(self.X, self.ends, self.similar, unlabeled=self.unlabeled, **known)
        weights = None
        of_answers = self.answers.weights[self.used]
        if len(np.unique(of_answers)) > 1:
            # An unlabeled row weighs as much as the mean answer, whatever the unit of the file.
            weights = np.ones(len(y))
            weights[: self.ends.size] = np.repeat(of_answers / mean_weight(of_answers), 2)
        groups = None if self.groups is None else self.groups[np.asarray(y)[:, 1]]
        return self.columns.scaled(rows), AnswerGraph.from_y(y, weights, groups)

    @property
    def random_points(self) -> Mask | None:
        """Which of the stacked rows show a random point; None if all points in answers are random."""
        if self.random is None:
            return None
        marked = np.zeros(self.stacked[1].n_given, dtype=bool)
        marked[: self.random.size] = self.random.ravel()
        return marked

    @property
    def label_rows(self) -> Indices:
        """Rows with a label."""
        return np.array(list(self.labels), dtype=np.intp)

    def without_gaps(self) -> TrainingData:
        """Return the data with gaps filled in, as linear models need it."""
        return replace(self, X=self.columns.filled(self.X), columns=replace(self.columns, keep_gaps=False))

    def numbered(self, n_classes: int) -> TrainingData:
        """Return the data with labels as numbers of classes."""
        codes, names = class_numbers(list(self.labels.values()), n_classes)
        return replace(self, label_codes=codes, classes=names)


def gather(source: Location | Frame, answers: Answers, labels: Labels | None, options: FitOptions) -> TrainingData:
    """Read the rows in answers and a sample of all rows."""
    need_pairs(answers)
    asked = set(answers.ids.ravel().tolist())
    table, found, columns, place = _surveyed(source, options, asked, labels)
    changes = check_same_table(table, found, options.stored)
    by_contrast = options.reading.embedding == CONTRASTIVE
    if options.reading.missing == "auto" and options.tries_trees and not by_contrast:
        columns = replace(columns, keep_gaps=any(column.n_gaps for column in columns.columns))
    why = partial(why_unknown, table, columns.id_column)
    labelled = {} if labels is None else labels.of_rows(place, why)
    used = usable_answers(answers, place, options.skip_bad, not options.is_joint, why)
    unlabeled = found.lowest(options.most_unlabeled(columns.width))
    data = _kept(table, columns, found, used, unlabeled, labelled)
    if by_contrast:
        data = replace(data, columns=_with_encoder(data.columns, data.X))
    if (name := options.reading.groups) is not None:
        groups = _groups(found, name)
        data = replace(data, groups=groups)
        n_groups = len(np.unique(groups[data.ends]))
        if n_groups < _MIN_GROUPS:
            raise InputError(
                f"The answers are about rows of {n_groups:,} groups by `groups={name!r}`, and the accuracy on new ones "
                f"takes {_MIN_GROUPS} or more. Ask about rows of more groups, or leave `groups` out."
            )
    return replace(data, findings=[*changes, *data.findings])


def _with_encoder(columns: Columns, X: Array) -> Columns:
    """Let an encoder learn from all features, unless there are images, which have one of their own."""
    if any(isinstance(made, EncodedImages) for made in columns.transformers.values()):
        return columns
    return replace(columns, encoder=new_encoder().fit(columns.standardised(X)))


def _groups(found: Survey, name: str) -> Codes:
    """Number the groups of the kept rows; a row without a value is a group of its own."""
    cells = [(cell or "").strip() for cell in found.cells(name, np.sort(found.rows))]
    numbers = np.unique([cell or f"\0{k}" for k, cell in enumerate(cells)], return_inverse=True)[1]
    return np.asarray(numbers, dtype=np.int64)


def _surveyed(
    source: Location | Frame,
    options: FitOptions,
    asked: Collection[str],
    labels: Labels | None = None,
    n_drawn: int | None = None,
) -> tuple[Table, Survey, Columns, dict[str, int]]:
    """Pass over a table; ``n_drawn`` rows are drawn to be shown, with all cells, by default to be unlabeled."""
    reading, stored = options.reading, options.stored
    table = open_table(source, reading.sheet, reading.skip_rows, reading.vectors)
    # A table may lack columns now that were left out when the questions were asked.
    absent = set() if stored is None else {*stored.drop} - table.types.keys()
    groups = [] if reading.groups is None else [reading.groups]
    table.check_columns({"take groups from": groups})
    ids = named_id_column(table.types, reading.id_column)
    if groups and groups[0] in (ids, *reading.categories, *reading.text, *reading.images):
        raise InputError(f"Column {quoted(groups[0])} is `groups`, so it is no feature and has no ids. Name it once.")
    wanted = look_for(table, reading, {*reading.drop, *groups} - absent, asked, () if labels is None else labels.ids)
    # An id may be the number of a row.
    rows = [int(name) for name in wanted.ids if is_row_number(name, table.n_rows or 10**18)]
    wanted = replace(wanted, shown=tuple(groups))
    if n_drawn is not None:
        wanted = replace(wanted, shown=tuple(table.types))
    else:
        fewest = MOST_TEXTS if {"text", "image"} & set(wanted.features.values()) else 0
        n_drawn = max(options.most_unlabeled(len(wanted.features)), fewest)
    if compares_cells(stored):
        wanted = replace(wanted, shown=tuple(table.types))
        n_drawn = max(n_drawn, DIGEST_ROWS)
    # Enough rows have marks below this one: 8 standard errors more than are drawn.
    enough = n_drawn + 8 * np.sqrt(n_drawn) + 8
    share = enough / table.n_rows if table.n_rows else 1.0
    highest = int(share * 2**64) if share < 1 else 2**64 - 1
    wanted = replace(wanted, rows=np.unique(np.array(rows, dtype=np.int64)), n_drawn=n_drawn, highest=highest)
    found = surveyed(table, wanted)
    root = folder_of(source) if reading.image_root is None else Path(reading.image_root)
    columns = decide(table, found, reading, root)
    return table, found, columns, _places(columns.id_column, found)


def _kept(
    table: Table, columns: Columns, found: Survey, used: dict[str, Any], unlabeled: Codes, labels: Mapping[int, str]
) -> TrainingData:
    """Return data of the rows that were kept, in the order of the table."""
    order = np.argsort(found.rows)
    rows = found.rows[order]
    X, ids, unseen = _encoded(table, columns, found, order)
    local = np.searchsorted(rows, unlabeled)
    sample = columns.filled(X[local] if len(local) else X)
    variance = columns.scale**2
    for column, part in columns.parts:
        # Features that share a scale have a variance of their own.
        if column.name in columns.transformers or column.name in table.together:
            variance[part] = sample[:, part].var(axis=0)
    known = {columns.id_column, *(column.name for column in columns.columns)}
    over = [name for name in (*found.counts, *table.index) if name in table.types and name not in known]
    passed = PassedOver(columns=tuple(over), n_blank=found.n_blank, **table.notes)
    noted = [passed] if any(passed.numbers().values()) else []
    warned = [FitWarning(message=f"{columns.unseen_words(*cells)}.") for cells in unseen.items()]
    findings = [*noted, *warned, *used["findings"]]
    return TrainingData(
        columns=columns,
        n_rows=found.n_rows,
        X=X,
        ids=ids,
        **{**used, "ends": np.searchsorted(rows, used["ends"]), "findings": findings},
        unlabeled=local,
        labels={int(np.searchsorted(rows, row)): name for row, name in labels.items()},
        population=Population(found.n_rows, columns.mean, variance, off_mode(sample)),
    )


def _encoded(table: Table, columns: Columns, found: Survey, order: Indices) -> tuple[Array, list[str], Counter[str]]:
    """Return unscaled features and ids of the kept rows in an order; cells without features by column."""
    encoded = [columns.encode(table.name, batch) for _, batch in found.values]
    X = np.concatenate([features.T for features, _ in encoded], axis=1).T
    ids = [name for numbers, batch in found.kept for name in ids_of(batch, columns.id_column, numbers)]
    return X[order], [ids[k] for k in order], sum((counts for _, counts in encoded), Counter())


def sample_sizes(n_answers: int) -> list[int]:
    """Return the sizes so far of a sample to ask about, which doubles to have ten rows per answer."""
    sizes = [MAX_UNLABELED]
    while sizes[-1] < _ROWS_PER_ANSWER * n_answers:
        sizes.append(2 * sizes[-1])
    return sizes


class DrawnRows(NamedTuple):
    """Rows to ask about."""

    columns: Columns
    X: Array  # features, not scaled
    ids: list[str]
    cells: ArrowTable
    n_rows: int  # of the table
    digest: str  # of the table
    row_digest: Callable[[int], str]
    changes: Sequence[Finding]  # since questions were asked


def draw_rows(
    source: Location | Frame,
    n_drawn: int,
    reading: Reading,
    *,
    stored: Reading | None = None,
    answer_ids: Collection[str] = (),
) -> DrawnRows:
    """Draw rows, with those that answers name; ``stored`` is how the table was read before."""
    options = FitOptions(reading=reading, stored=stored)
    table, found, columns, place = _surveyed(source, options, answer_ids, n_drawn=n_drawn)
    changes = check_same_table(table, found, options.stored)
    rows = found.rows
    # In random order, so that a larger draw begins with a smaller one; a small table is whole and in its own order.
    order = np.argsort(rows if found.n_rows <= MAX_UNLABELED else scramble(rows))
    order = order[np.isin(rows[order], np.union1d(found.lowest(n_drawn), list(place.values())))]
    X, ids, _ = _encoded(table, columns, found, order)
    check_filled(table.name, ids, rows[order], table.where)
    if columns.id_column is not None and len(ids) < found.n_rows:
        _check_other_rows(table, columns.id_column, ids)
    if found.wanted.is_open and columns.id_column is not None:
        changes = [*changes, IdsTaken(column=columns.id_column)]
    if reading.embedding == CONTRASTIVE:
        columns = _with_encoder(columns, X)
    cells = []
    for _, batch in found.values:
        # Files of a folder may store a column with or without a dictionary.
        kept = {name: batch[name] for name in table.types}
        plain = {name: one.dictionary_decode() for name, one in kept.items() if hasattr(one, "dictionary_decode")}
        cells.append(pa.table(kept | plain))
    drawn = pa.concat_tables(cells, promote_options="permissive").take(order)
    digested = drawn.drop_columns(list(table.together))

    def row_digest(row: int) -> str:
        return row_digests(digested.slice(row, 1).to_pydict())[0]

    return DrawnRows(columns, X, ids, drawn, found.n_rows, table_digest(table, found), row_digest, changes)


def _check_other_rows(table: Table, id_column: str, names: Sequence[str]) -> None:
    """Refuse ids of rows to ask about that any other row of the table has, too."""
    count = partial(_id_counts, id_column, pa.array(names, pa.string()))
    times: Codes = sum(table.map(count, [id_column]))
    if times.max() > 1:
        raise repeated_id(names[int(times.argmax())], int(times.max()))


def _id_counts(id_column: str, names: ArrowColumn, _begin: int, batch: ArrowTable) -> Codes:
    return count_ids(batch[id_column], np.arange(batch.num_rows), names).times


def _places(id_column: str | None, found: Survey) -> dict[str, int]:
    """Return the row of each wanted id that was found; refuse an id on several rows."""
    if id_column is None:
        there = set(found.rows.tolist())
        names = [name for name in found.wanted.ids if is_row_number(name, found.n_rows + found.n_blank)]
        return {name: int(name) for name in names if int(name) in there}
    hits = found.hits.get(id_column)
    if hits is None:
        return {}
    if not hits.unique:
        often = int(np.argmax(hits.times))
        raise repeated_id(found.wanted.ids[often], int(hits.times[often]))
    return {name: row for name, row in zip(found.wanted.ids, hits.rows.tolist(), strict=True) if row >= 0}


def usable_answers(
    answers: Answers, place: Mapping[str, int], skip_bad: bool, by_majority: bool, why: Callable[[list[str]], str]
) -> dict[str, Any]:
    """Return answers about two rows as fields of :class:`TrainingData`; ``by_majority``, each question once."""
    ends = np.array([place.get(name, -1) for name in answers.ids.ravel().tolist()], dtype=np.intp).reshape(-1, 2)
    own = np.array([a == b for a, b in answers.ids], dtype=bool)
    unknown = np.any(ends < 0, axis=1) & ~own
    left_out = _left_out(answers, own, unknown)
    if left_out and not skip_bad:
        listed = " and ".join(finding.words for finding in left_out)
        advice = "sdulearn check lists them all; `skip_bad` leaves them out."
        if answers.bad_rows:
            advice = f"Line {answers.bad_rows[0].line}: {answers.bad_rows[0].reason}. {advice}"
        if unknown.any():
            advice += " " + why(answers.ids[unknown][ends[unknown] < 0].tolist())
        raise InputError(f"{answers.name}: {listed}. {advice}")
    findings: list[Finding] = [*left_out]
    usable = ~unknown & ~own & (answers.answers != UNSURE) & (answers.weights > 0)
    asked = np.flatnonzero(usable)
    chosen, n_repeated, n_tied = majority_votes(ends, answers.answers, answers.weights, asked.tolist())
    chosen = chosen if by_majority else asked
    # Sdulearn's own questions are repeated on purpose.
    if n_repeated and (by_majority or answers.kinds is None):
        findings.append(RepeatedQuestions(count=n_repeated, by_majority=by_majority))
    if by_majority and n_tied:
        findings.append(TiedQuestions(count=n_tied))
    findings += [finding for finding in check_columns(answers) if finding.people]
    random = random_ends(answers, ends[usable], usable)
    return {
        "answers": answers,
        "used": chosen,
        "ends": ends[chosen],
        "annotators": None if answers.annotators is None else answers.annotator_numbers[chosen],
        "random": None if random is None else random[np.searchsorted(asked, chosen)],
        "findings": findings + check_contradictions(check_answers(answers)) + check_source(answers),
    }


def _left_out(answers: Answers, own: Mask, unknown: Mask) -> list[LeftOut]:
    """Return findings of answers that cannot be used, by fault."""
    found: dict[Fault, list[int]] = {
        "unreadable": [row.line for row in answers.bad_rows],
        "self_pairs": answers.lines[own].tolist(),
        "unknown_ids": answers.lines[unknown].tolist(),
    }
    return [LeftOut(fault=fault, count=len(at), lines=tuple(at[:_LINES_SHOWN])) for fault, at in found.items() if at]


def check_enough(data: TrainingData, options: FitOptions) -> None:
    """Refuse fewer than two pairs of a kind that the method needs, and chosen pairs with a risk."""
    if data.random is not None and not options.is_joint:
        n_random = int(data.random.any(axis=1).sum())
        chosen = f"{len(data.ends) - n_random:,} of the {len(data.ends):,} questions were chosen"
        raise InputError(f"{data.answers.name}: {chosen}, and `method={options.method!r}` assumes random pairs.")
    enough = {"su": data.n_similar >= 2, "du": data.n_dissimilar >= 2}
    if enough.get(options.method, all(enough.values())):
        return
    risk = next((risk for risk, is_enough in enough.items() if is_enough), None)
    alone = f" With one kind alone, `method={risk!r}` with a known `prior` learns from it." if risk else ""
    raise InputError(
        f"{data.answers.name} has {data.n_similar} similar and {data.n_dissimilar} dissimilar pairs to use; at least 2 "
        f"of each are needed, and 50 of each are a start. Ask about more pairs.{alone}"
    )
