"""Predict the rows of a table in order, batch by batch: Parquet on all cores, a Dask frame on its workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.answer_files.read import read_answers
from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.answers.graph import ENOUGH
from sdulearn.answers.rates import split_by_certainty
from sdulearn.answers.records import Answers, flip_rate
from sdulearn.answers.y import SIMILAR, stack_pairs
from sdulearn.base import posterior_of
from sdulearn.errors import FileError, InputError, pa, pc, quoted, require
from sdulearn.findings import EmptyIds, FarFromTraining, Finding, FitWarning, RepeatedIds
from sdulearn.io.files import Location, folder_of, written_whole
from sdulearn.parts import Sums, add_all, sum_delayed
from sdulearn.reading import Reading
from sdulearn.table_model import TableModel
from sdulearn.tables.columns import Columns, Where, in_row
from sdulearn.tables.ids import find_ids, id_texts, repeated_id
from sdulearn.tables.known_ids import ids_among
from sdulearn.tables.same_table import compare_table, compares_cells
from sdulearn.tables.scan import why_unknown, without_blanks
from sdulearn.tables.source import Batches, DaskTable, Table, open_table
from sdulearn.types import Array, ArrowColumn, ArrowTable, ArrowType, Codes, Frame, Indices
from sdulearn.workflow.data import usable_answers

# Most rows of a file that is written, and of its row groups.
_PART_ROWS = 1 << 20
_NAME = "part-{:06d}.parquet"
# Rows among whose ids repeated ones are looked for.
_MAX_IDS = 1 << 20
# A value so many standard deviations from the mean in training is far from it; if most values of a column are, it is in
# other units, or of another population. In training, at most a ninth of the rows are so far (Chebyshev's inequality).
_FAR = 3
# A row with the id of one that was asked about is the same row if its prediction differs by no more.
_SAME_ROW = 1e-6


@dataclass(frozen=True)
class SeenIds:
    """Ids of rows: the first of them, and the number of empty ones; ``+`` joins stretches."""

    texts: tuple[ArrowColumn, ...] = ()
    rows: tuple[Indices, ...] = ()  # their numbers in the table
    n_empty: int = 0
    first_empty: int = -1
    where: Where = in_row

    def __add__(self, other: SeenIds) -> SeenIds:
        more = other if sum(map(len, self.rows)) < _MAX_IDS else SeenIds()
        first_empty = self.first_empty if self.n_empty else other.first_empty
        where = self.where if self.rows else other.where
        return SeenIds(self.texts + more.texts, self.rows + more.rows, self.n_empty + other.n_empty, first_empty, where)

    @classmethod
    def of(cls, ids: ArrowColumn, rows: Indices, where: Where) -> SeenIds:
        """Return the ids of some rows."""
        texts = id_texts(ids)
        empty = np.flatnonzero(np.asarray(pc.equal(texts, "")))
        return cls((texts,), (rows,), len(empty), int(rows[empty[0]]) if len(empty) else -1, where)

    def findings(self, n_rows: int) -> list[Finding]:
        """Report ids that are empty, and those that are on several of the first rows."""
        found: list[Finding] = []
        if self.n_empty:
            found.append(EmptyIds(count=self.n_empty, first=self.where(self.first_empty)))
        chunks = [chunk for texts in self.texts for chunk in getattr(texts, "chunks", [texts])]
        texts = pa.chunked_array(chunks, pa.string()).combine_chunks()
        again = ~np.asarray(pc.equal(texts, ""))
        again[np.unique(np.asarray(texts.dictionary_encode().indices), return_index=True)[1]] = False
        if again.any():
            first = int(again.argmax())
            where = self.where(int(np.concatenate(self.rows)[first]))
            among = len(again) if len(again) < n_rows else None
            found.append(RepeatedIds(count=int(again.sum()), name=texts[first].as_py(), first=where, among=among))
        return found


@dataclass(frozen=True)
class Predictions:
    """Predictions of some rows."""

    ids: ArrowColumn  # as in the table; row numbers without an id column
    place: Indices  # place of each row's class among the model's classes
    probability: Array | None  # (n_rows, n_classes), if the model has any
    unseen: Counter[str]  # cells that are no known category, by column
    n_answers: Codes | None = None  # answers about each row, if answers were given
    seen: SeenIds = SeenIds()  # the ids, if they are those of a column
    far: Counter[str] = field(default_factory=Counter)  # values that are far from those in training, by column

    @property
    def numbers(self) -> list[NDArray[Any]]:
        """The columns that :func:`number_columns` names."""
        shown = [] if self.probability is None else list(self.probability.T)
        shown = shown[1:] if len(shown) == 2 else shown
        return shown if self.n_answers is None else [*shown, self.n_answers]


def counts_of(found: Predictions, n_classes: int) -> Sums:
    """Count predictions; see :func:`write_predictions`."""
    n_asked = 0 if found.n_answers is None else int(np.count_nonzero(found.n_answers))
    by_class = np.bincount(found.place, minlength=n_classes)
    return Sums(by_class=by_class, n_asked=n_asked, unseen=found.unseen, seen=found.seen, far=found.far)


def no_counts(n_classes: int) -> Sums:
    """Return the counts of no rows."""
    by_class = np.zeros(n_classes, dtype=np.int64)
    return Sums(by_class=by_class, n_asked=0, unseen=Counter(), seen=SeenIds(), far=Counter())


def findings_of(sums: Sums, model: TableModel) -> list[Finding]:
    """Return what is odd about the rows that were predicted: cells, ids and values."""
    n_rows = int(sums["by_class"].sum())
    found: list[Finding] = [
        FitWarning(message=f"{model.columns.unseen_words(*cells)}.") for cells in sums["unseen"].most_common()
    ]
    far = {name: count / n_rows for name, count in sums["far"].most_common() if count > n_rows / 2}
    if far and n_rows >= ENOUGH:
        found.append(FarFromTraining(shares=far, limit=_FAR))
    return [*found, *sums["seen"].findings(n_rows)]


@dataclass(frozen=True)
class Reader:
    """Predicts batches of a table, in any thread or process."""

    model: TableModel
    table: str  # its name
    needed: Sequence[str]  # columns to read
    id_column: str | None
    where: Where = in_row  # says in messages where a row is
    # of rows in answers: ids, class probabilities and numbers of answers; both of other rows at the end
    answered: tuple[ArrowColumn, Array, Codes] | None = None
    missing_texts: Sequence[str] = ()
    vector: Collection[str] = ()  # columns of a vector, which share one scale

    def __call__(self, begin: int, batch: ArrowTable) -> Predictions:
        """Predict a batch, whose first row has this number."""
        n_all = batch.num_rows
        values, batch, places = without_blanks(batch, self.missing_texts)
        rows = begin + places
        X, unseen = self.model.columns.encode(self.table, values, lambda place: self.where(int(rows[place])))
        unseen += Counter({"": n_all - len(rows)})
        ids = pa.array(rows) if self.id_column is None else batch[self.id_column]
        seen = SeenIds() if self.id_column is None else SeenIds.of(ids, rows, self.where)
        place, p = self.model.decide(X)
        found = Predictions(ids, place, p, unseen, seen=seen, far=_far(self.model.columns, self.vector, X))
        if self.answered is None or p is None:
            return found
        asked, by_answers, n_answers = self.answered
        row = find_ids(ids, asked)
        p = np.where(n_answers[row, None] > 0, by_answers[row], p)
        return replace(found, place=p.argmax(axis=1), probability=p, n_answers=n_answers[row])


def _far(columns: Columns, vector: Collection[str], X: Array) -> Counter[str]:
    """Count the values of each column of numbers that are far from those in training, unless it is of a vector."""
    far = {
        column.name: int((np.abs(X[:, part.start] - columns.mean[part.start]) > _FAR * columns.scale[part.start]).sum())
        for column, part in columns.parts
        if column.kind == "number" and column.name not in vector
    }
    return +Counter(far)


def predict_table(
    model: TableModel,
    path: Location | Frame,
    *,
    answers: Location | Frame | Answers | None = None,
    id_column: str | None = None,
    skip_bad: bool = False,
    image_root: Location | None = None,
    embedding: Location | None = None,
    text_model: Location | None = None,
    sheet: str | None = None,
    skip_rows: int | None = None,
    progress: bool = False,
) -> Iterator[Predictions]:
    """Predict all rows of a file, folder or frame in order, batch by batch; never all in memory.

    Parquet is read on all cores, and the workers predict a Dask frame.

    Parameters
    ----------
    model : TableModel
        The model.
    path : str, path-like or frame
        Table with the columns of the training table, in any order.
    answers : str, path-like, frame or Answers, optional
        Answers about rows of this table, as for :func:`~sdulearn.answers.read_answers`: these rows
        are predicted by features and answers. The table is then read twice.
    id_column : str, optional
        The column of ids, or "" for row numbers; by default that of the training table.
    skip_bad : bool, default=False
        Leave out answers that cannot be used instead of refusing them.
    image_root : str or path-like, optional
        The folder of the images; by default that of the table.
    embedding : str or path-like, optional
        The file of vectors of this table's rows, if the model was fitted with one.
    text_model : str or path-like, optional
        Name or folder of the text model, if it is in another place now or is to be downloaded.
    sheet, skip_rows : optional
        As in :func:`~sdulearn.fit_table`.
    progress : bool, default=False
        Whether to show a progress bar after five seconds.

    Yields
    ------
    Predictions
        Predictions of the next rows.
    """
    reading = Reading(
        id_column, image_root=image_root, embedding=embedding, text_model=text_model, sheet=sheet, skip_rows=skip_rows
    )
    reader, table = _opened(model, path, reading, answers, skip_bad, progress)
    yield from _in_turn(reader, table, progress)


def _in_turn(reader: Reader, table: Table, progress: bool) -> Iterator[Predictions]:
    """Predict all rows, several batches at a time."""
    return table.map(reader, reader.needed, reader.model.columns.width, "predicting" if progress else "")


def _opened(
    model: TableModel,
    path: Location | Frame,
    reading: Reading,
    answers: Location | Frame | Answers | None,
    skip_bad: bool,
    progress: bool,
) -> tuple[Reader, Table]:
    """Open a table that fits the model, and return it with its reader."""
    named_now = None if reading.text_model is None else str(reading.text_model)
    known = reading if reading.id_column is not None else replace(reading, id_column=model.columns.id_column or "")
    given = None if answers is None else read_answers(answers, table_ids=partial(ids_among, path, known))
    if given is not None and given.reading is not None:
        reading = given.reading.continued(reading)
    root = folder_of(path) if reading.image_root is None else Path(reading.image_root)
    columns = model.columns.with_text_model(named_now)
    model = replace(model, columns=replace(columns, image_root=root))
    table = open_table(path, reading.sheet, reading.skip_rows, reading.vectors)
    id_column = _id_column(model, table, reading.id_column)
    columns = model.columns
    needed = table.some(columns.needed(table.name, list(table.types), id_column))
    reader = Reader(
        model, table.name, needed, id_column, table.where, missing_texts=table.missing_texts, vector=table.together
    )
    return reader if given is None else _with_answers(reader, table, given, skip_bad, progress), table


def _id_column(model: TableModel, table: Table, given: str | None) -> str | None:
    """Return the column of ids; None for row numbers, which nobody may have asked for."""
    if given is not None:
        table.check_columns({"take ids from": [given or None]})
        return given or None
    name = model.columns.id_column
    if name is None or name in table.types:
        return name
    raise InputError(
        f"{table.name} has no column {quoted(name)}, which holds the ids in the training table. Name its column of ids "
        "with `id_column`, or give `id_column=''` to number the rows from 0."
    )


def asked_rows(model: TableModel) -> Predictions:
    """Return the rows in the answers of the fit, by features and answers."""
    assert model.asked is not None
    p = model.asked.probabilities
    return Predictions(pa.array(model.asked.ids, "string"), p.argmax(axis=1), p, Counter(), model.asked.n_answers)


def _with_answers(reader: Reader, table: Table, answers: Answers, skip_bad: bool, progress: bool) -> Reader:
    """Return a reader that predicts rows in answers by features and answers."""
    model = reader.model
    if not hasattr(model.estimator, "posterior"):
        raise InputError("The model does not know how often answers are wrong. Fit one with `method='joint'`.")
    if answers.reading is not None and compares_cells(answers.reading):
        compare_table(table, answers.reading)
    names = sorted(set(answers.ids.ravel().tolist()))
    ids = pa.array(names, "string")
    p = np.zeros((len(names) + 1, len(model.classes)))
    times = np.zeros(len(names), dtype=np.int64)
    for found in _in_turn(reader, table, progress):
        place = find_ids(found.ids, ids)
        assert found.probability is not None
        p[place[place >= 0]] = found.probability[place >= 0]
        times += np.bincount(place[place >= 0], minlength=len(names))
    if (times > 1).any():
        raise repeated_id(names[int(np.argmax(times))], int(times.max()))
    there = {name: k for k, name in enumerate(names) if times[k]}
    used = usable_answers(answers, there, skip_bad, False, partial(why_unknown, table, reader.id_column))
    ends = used["ends"]
    if not len(ends):
        raise InputError(f"{answers.name} has no answer, same or different, about rows of the table. Leave it out.")
    who = None if answers.annotators is None else _annotators(model, answers)[used["annotators"]]
    if model.asked is not None:
        # The model has learned the answers about these rows: models that have not seen them judge their features.
        place = find_ids(pa.array(model.asked.ids, "string"), ids)
        known = np.flatnonzero(place >= 0)
        known = known[np.isclose(p[place[known]], model.asked.by_model[known], atol=_SAME_ROW).all(axis=1)]
        p[place[known]] = model.asked.unseen[known]
    similar = answers.answers[used["used"]] == SIMILAR
    questions = None if answers.questions is None else answers.questions[used["used"]] + 1
    if answers.certainty is not None:
        who, _, stated = split_by_certainty(np.zeros(len(ends), dtype=np.int64), answers.certainty[used["used"]])
    by_features, y = stack_pairs(p, ends, similar, unlabeled=None, annotators=who, questions=questions)
    errors: AnswerModel = model.estimator.answer_model_
    if answers.epsilon is not None:
        errors = AnswerModel.given(flip_rate(answers.epsilon), AnswerGraph.from_y(y))
    elif answers.certainty is not None:
        rates = dict(enumerate((1 - stated).tolist(), 1))
        errors = AnswerModel.stated(rates, AnswerGraph.from_y(y), errors.error_rate)
    try:
        graph = AnswerGraph.from_y(y, np.repeat(answers.weights[used["used"]], 2))
        p[ends.ravel()] = posterior_of(errors, by_features, graph)
    except InputError:
        advice = "Correct them (sdulearn check lists them), or fit with an error rate, for example `error_rate=0.05`."
        raise InputError(
            f"{answers.name}: answers contradict each other, and the model assumes that all are correct. {advice}"
        ) from None
    return replace(reader, answered=(ids, p, np.bincount(ends.ravel(), minlength=len(p))))


def _annotators(model: TableModel, answers: Answers) -> Codes:
    """Return the model's numbers of annotators, 0 first; unknown ones have the rate of all answers."""
    rates = model.estimator.answer_model_.by_annotator
    people = () if model.report is None else model.report.annotators
    # A model of soft answers has more rates than people.
    numbers = {one.name: k for one, k in zip(people, rates, strict=True)} if len(people) == len(rates) else {}
    other = 1 + max(rates, default=0)
    return np.array([0, *(numbers.get(name, other) for name in answers.annotator_names)])


def write_predictions(
    model: TableModel,
    path: Location | Frame,
    folder: Location,
    *,
    answers: Location | Frame | Answers | None = None,
    id_column: str | None = None,
    skip_bad: bool = False,
    image_root: Location | None = None,
    embedding: Location | None = None,
    text_model: Location | None = None,
    sheet: str | None = None,
    skip_rows: int | None = None,
) -> Sums:
    """Predict all rows of a table into a folder of Parquet files, on all cores or on a cluster.

    The files are numbered in the order of the rows: one per million rows; the workers of a Dask frame, which must reach
    the folder under the same path, write one per partition. The folder appears whole or not at all.

    Parameters
    ----------
    model, path
        As in :func:`predict_table`.
    folder : str or path-like
        The folder to make; it must not exist, or be empty. Columns are id, label, the probability of the second class
        (``probability_NAME`` of each with more than two) and, with ``answers``, n_answers.
    answers, id_column, skip_bad, image_root, embedding, text_model, sheet, skip_rows
        As in :func:`predict_table`.

    Returns
    -------
    dict
        "by_class", numbers of rows by class of the model; "unseen", numbers of cells by column
        that are no known category; "far", numbers of values by column that are more than three standard
        deviations from the mean in training; "n_asked", number of rows predicted by features and answers;
        "seen", the ids, as far as repeated ones are looked for, and the number of empty ones.

    See Also
    --------
    predict_table : Predictions in this process, batch by batch.
    """
    if Path(folder).exists() and not (Path(folder).is_dir() and not any(Path(folder).iterdir())):
        raise FileError(f"{folder} is there already. Name a new folder, or remove it first.")
    reading = Reading(
        id_column, image_root=image_root, embedding=embedding, text_model=text_model, sheet=sheet, skip_rows=skip_rows
    )
    with written_whole(Path(folder).absolute(), folder=True) as draft:
        reader, table = _opened(model, path, reading, answers, skip_bad, True)
        id_type = pa.int64() if reader.id_column is None else table.types[reader.id_column]
        id_type = getattr(id_type, "value_type", id_type)
        if isinstance(table, DaskTable):
            write = partial(_write_partition, reader, str(draft), id_type)
            counts: Sums | None = sum_delayed(table.jobs(write, reader.needed, reader.model.columns.width))
        else:
            ends = 0

            def number(found: Predictions) -> int:
                nonlocal ends
                ends += len(found.place)
                return max(ends - 1, 0) // _PART_ROWS

            files = groupby(_in_turn(reader, table, True), number)
            counts = add_all(_write_file(draft, model, id_type, *file) for file in files)
        if counts is None:
            raise InputError("The table has no rows, so there is nothing to write.")
    return counts


def _write_file(
    folder: Path, model: TableModel, id_type: ArrowType, number: int, batches: Iterable[Predictions]
) -> Sums | None:
    """Write predictions to a file; return their counts, None without any."""
    counts = None
    with written_whole(folder / _NAME.format(number)) as draft, parquet_writer(draft, model, id_type) as write:
        for predictions in batches:
            write(predictions)
            counts = add_all((counts, counts_of(predictions, len(model.classes))))
    return counts


def _write_partition(reader: Reader, folder: str, id_type: ArrowType, number: int, batches: Batches) -> Sums | None:
    return _write_file(Path(folder), reader.model, id_type, number, (reader(*batch) for batch in batches))


def number_columns(model: TableModel, answered: bool) -> list[str]:
    """Return the names of the columns of probabilities and numbers of answers."""
    shown = ["probability"] if len(model.classes) == 2 else [f"probability_{name}" for name in model.names]
    return (shown if model.link is not None else []) + ["n_answers"] * answered


@contextmanager
def parquet_writer(
    path: Path, model: TableModel, id_type: ArrowType | None = None
) -> Iterator[Callable[[Predictions], None]]:
    """Yield a function that writes predictions to a file; the first ids decide their type by default."""
    parquet = require("pyarrow.parquet", "files")
    writer: Any = None

    def write(found: Predictions) -> None:
        nonlocal writer
        batch = _record_batch(model, found, id_type if writer is None else writer.schema.field("id").type)
        if writer is None:
            writer = parquet.ParquetWriter(path, batch.schema, use_dictionary=["label"])
        writer.write_batch(batch, _PART_ROWS)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _record_batch(model: TableModel, found: Predictions, id_type: ArrowType | None) -> ArrowTable:
    """Return predictions as an Arrow batch."""
    ids = found.ids.dictionary_decode() if pa.types.is_dictionary(found.ids.type) else found.ids
    labels = pa.array(model.classes).take(pa.array(found.place))
    numbers = [pa.array(np.ascontiguousarray(column)) for column in found.numbers]
    names = ["id", "label", *number_columns(model, found.n_answers is not None)]
    return pa.RecordBatch.from_arrays([ids if id_type is None else ids.cast(id_type), labels, *numbers], names)
