"""Predict the rows of a table in order, batch by batch; Parquet on all cores, or on a cluster."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.answers.records import Answers, flip_rate, stored_id_column
from sdulearn.base import posterior_of
from sdulearn.blocks import Sums, add_all
from sdulearn.columns import Where, in_row
from sdulearn.errors import FileError, InputError, pa, require
from sdulearn.io.answers import read_answers
from sdulearn.io.files import Location, folder_of, is_location, written_whole
from sdulearn.io.ids import find_ids, named_id_column, repeated_id
from sdulearn.io.same_table import compare_table, compares_cells
from sdulearn.io.survey import why_unknown, without_blanks
from sdulearn.io.tables import Part, RowGroups, Table, batch_rows, open_table, svmlight_rows, table_format
from sdulearn.pairs import SIMILAR, stack_pairs
from sdulearn.table_model import TableModel
from sdulearn.types import Array, ArrowColumn, ArrowTable, ArrowType, Codes, Frame, Indices
from sdulearn.workflow.data import usable_answers

if TYPE_CHECKING:
    from sdulearn.workflow.options import Engine, Progress, Watch

T = TypeVar("T")
# Most rows of a file that is written, and of its row groups.
_PART_ROWS = 1 << 20
# Files are numbered in the order of the rows.
_NAME = "part-{:06d}.parquet"


@dataclass(frozen=True)
class Predictions:
    """Predictions of some rows."""

    ids: ArrowColumn  # as in the table; row numbers without an id column
    place: Indices  # place of each row's class among the model's classes
    probability: Array | None  # (n_rows, n_classes), if the model has any
    unseen: Counter[str]  # cells that are no known category, by column
    n_answers: Codes | None = None  # answers about each row, if answers were given

    @property
    def numbers(self) -> list[NDArray[Any]]:
        """The columns that :func:`number_columns` names."""
        shown = [] if self.probability is None else list(self.probability.T)
        shown = shown[1:] if len(shown) == 2 else shown
        return shown if self.n_answers is None else [*shown, self.n_answers]


def counts_of(found: Predictions, n_classes: int) -> Sums:
    """Count predictions; see :func:`write_predictions`."""
    n_asked = 0 if found.n_answers is None else int(np.count_nonzero(found.n_answers))
    return Sums(by_class=np.bincount(found.place, minlength=n_classes), n_asked=n_asked, unseen=found.unseen)


@dataclass(frozen=True)
class Reader:
    """Predicts a part of a table, in any thread or process."""

    model: TableModel
    table: str  # its name
    needed: Sequence[str]  # columns to read
    id_column: str | None
    where: Where = in_row  # says in messages where a row is
    # of rows in answers: ids, class probabilities and numbers of answers; both of other rows at the end
    answered: tuple[ArrowColumn, Array, Codes] | None = None

    def __call__(self, part: Part, watch: Watch | None = None) -> Iterator[Predictions]:
        """Predict batch by batch."""
        columns = self.model.columns
        for begin, batch in part(self.needed, batch_rows(columns.width)):
            if columns.first is None:
                n_all = batch.num_rows
                batch, places = without_blanks(batch)
                rows = begin + places
                X, unseen = columns.encode(getattr(part, "path", self.table), batch, partial(self._where, rows))
                unseen += Counter({"": n_all - len(rows)})
            else:
                X, unseen = batch, Counter()
                rows = np.arange(begin, begin + X.shape[0])
            ids = pa.array(rows) if self.id_column is None else batch[self.id_column]
            yield self._by_answers(Predictions(ids, *self.model.decide(X), unseen))
            if watch is not None:
                watch(len(rows))

    def _where(self, rows: Codes, place: int) -> str:
        return self.where(int(rows[place]))

    def _by_answers(self, found: Predictions) -> Predictions:
        if self.answered is None:
            return found
        ids, by_answers, n_answers = self.answered
        place = find_ids(found.ids, ids)
        assert found.probability is not None
        p = np.where(n_answers[place, None] > 0, by_answers[place], found.probability)
        return Predictions(found.ids, p.argmax(axis=1), p, found.unseen, n_answers[place])


def predict_table(
    model: TableModel,
    path: Location | Frame,
    *,
    answers: Location | Frame | Answers | None = None,
    id_column: str | None = None,
    skip_bad: bool = False,
    image_root: Location | None = None,
    embedding: Location | None = None,
    sheet: str | None = None,
    skip_rows: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Predictions]:
    """Predict all rows of a file, folder or frame in order, batch by batch; never all in memory.

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
        The column of ids, or "" for row numbers; by default that of the training table, if present.
    skip_bad : bool, default=False
        Leave out answers that cannot be used instead of refusing them.
    image_root : str or path-like, optional
        The folder of the pictures; by default that of the table.
    embedding : str or path-like, optional
        The file of vectors of this table's rows, if the model was fitted with one.
    sheet, skip_rows : optional
        As in :func:`~sdulearn.fit_table`.
    progress : function, optional
        Called with the number of rows, or None if unknown; returns a function that is called with
        the number of rows of each batch, and with None at the end.

    Yields
    ------
    Predictions
        Predictions of the next rows.
    """
    given = None if answers is None else read_answers(answers)
    id_column = stored_id_column(given.reading if given else None, id_column)
    reader, table = _opened(model, path, id_column, image_root, embedding, sheet, skip_rows)
    if given is not None:
        reader = _with_answers(reader, table, given, skip_bad, progress)
    yield from _in_turn(reader, table, progress)


def _in_turn(reader: Reader, table: Table, progress: Progress | None) -> Iterator[Predictions]:
    """Predict all rows, several parts at a time."""
    watch = None if progress is None else progress(table.n_rows)
    if len(table.parts) == 1:
        yield from reader(table.parts[0], watch)
    else:
        with threadpool_limits(1, user_api="blas"):
            # Predictions of a part are small compared to its rows.
            jobs = (partial(list[Predictions], reader(part, watch)) for part in table.parts)
            yield from chain.from_iterable(in_order(jobs, os.cpu_count() or 1))
    if watch is not None:
        watch(None)


def _opened(
    model: TableModel,
    path: Location | Frame,
    id_column: str | None = None,
    image_root: Location | None = None,
    embedding: Location | None = None,
    sheet: str | None = None,
    skip_rows: int | None = None,
) -> tuple[Reader, Table]:
    """Open a table that fits the model, and return it with its reader."""
    root = folder_of(path) if image_root is None else Path(image_root)
    columns = replace(model.columns, image_root=root)
    model = replace(model, columns=columns)
    is_sparse = columns.first is not None
    if is_sparse != (is_location(path) and table_format(path) == "svm"):
        wanted = "an svmlight file (.svm)" if is_sparse else "a table with named columns"
        raise InputError(f"{path}: the model was fitted on {wanted}; give it one like that.")
    if is_sparse:
        parts = (lambda _names, _rows: svmlight_rows(path, columns),)
        return Reader(model, str(path), (), None), Table(str(path), "svm", {}, parts)
    table = open_table(path, sheet, skip_rows, embedding)
    names = list(table.types)
    table.check_columns({"take ids from": [id_column or None]})
    id_column = named_id_column(names, id_column, (columns.id_column,))
    needed = table.some(columns.needed(table.name, names, id_column))
    return Reader(model, table.name, needed, id_column, table.where), table


def asked_rows(model: TableModel) -> Predictions:
    """Return the rows in the answers of the fit, by features and answers."""
    assert model.asked is not None
    ids, p, n_answers = model.asked
    arrow = pa.array(ids, "string")
    return Predictions(arrow, p.argmax(axis=1), p, Counter(), n_answers)


def _with_answers(reader: Reader, table: Table, answers: Answers, skip_bad: bool, progress: Progress | None) -> Reader:
    """Return a reader that predicts rows in answers by features and answers."""
    model = reader.model
    if not hasattr(model.estimator, "posterior"):
        raise InputError("The model does not know how often answers are wrong. Fit one with `method='joint'`.")
    if compares_cells(answers.reading):
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
    similar = answers.answers[used["used"]] == SIMILAR
    by_features, y = stack_pairs(p, ends, similar, unlabeled=None, annotators=who)
    errors = model.estimator.answer_model_
    if answers.epsilon is not None:
        errors = AnswerModel.given(flip_rate(answers.epsilon), AnswerGraph.from_y(y))
    try:
        p[ends.ravel()] = posterior_of(errors, by_features, y, np.repeat(answers.weights[used["used"]], 2))
    except InputError:
        raise InputError(
            f"{answers.name}: answers contradict each other, and the model takes all answers for right. Correct them "
            "(`check_answers` lists contradictions), or fit again with an error rate, for example `error_rate=0.05`."
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


def in_order(jobs: Iterable[Callable[[], T]], n_threads: int) -> Iterator[T]:
    """Return results in the order of the jobs, which run only a few ahead of the reader."""
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def write_predictions(
    model: TableModel,
    path: Location | Frame,
    folder: Location,
    *,
    answers: Location | Frame | Answers | None = None,
    skip_bad: bool = False,
    engine: str | Engine = "stream",
    **reading: Any,
) -> Sums:
    """Predict all rows of a table into a folder of Parquet files, on all cores or on a cluster.

    The files are numbered in the order of the rows: one per file of the table, or per million rows.
    The folder appears whole or not at all. A table that is not Parquet gives one file.

    Parameters
    ----------
    model, path
        As in :func:`predict_table`.
    folder : str or path-like
        The folder to make; it must not exist, or be empty. Columns are id, label, the probability
        of the second class (``probability_NAME`` of each with more than two) and, with ``answers``,
        n_answers.
    answers, skip_bad
        As in :func:`predict_table`.
    engine : {"memory", "stream", "dask"} or Engine, default="stream"
        On one core, on all cores, or on a Dask cluster, whose workers must reach table and folder
        under the same path.
    **reading
        ``id_column``, ``image_root``, ``embedding``, ``sheet`` and ``skip_rows``, as there.

    Returns
    -------
    dict
        "by_class", numbers of rows by class of the model; "unseen", numbers of cells by column
        that are no known category; "n_asked", number of rows predicted by features and answers.

    See Also
    --------
    predict_table : Predictions in this process, batch by batch.
    """
    from sdulearn.workflow.options import Engine, open_engine

    given = None if answers is None else read_answers(answers)
    reading["id_column"] = stored_id_column(given.reading if given else None, reading.get("id_column"))
    reader, table = _opened(model, path, **reading)
    id_type = pa.int64() if reader.id_column is None else table.types[reader.id_column]
    id_type = getattr(id_type, "value_type", id_type)
    parts: list[Any] = [partial(_one_block, k, stretch) for k, stretch in enumerate(_stretches(table.parts))]
    if Path(folder).exists() and not (Path(folder).is_dir() and not any(Path(folder).iterdir())):
        raise FileError(f"{folder} is there already. Name a new folder, or remove it first.")
    opened = nullcontext(engine) if isinstance(engine, Engine) else open_engine(engine)
    with opened as where, written_whole(Path(folder).absolute(), folder=True) as draft:
        if given is not None:
            reader = _with_answers(reader, table, given, skip_bad, where.progress)
        counts: Sums | None = where.blocks(parts, table.n_rows).sum(write_part, reader, str(draft), id_type)
        if counts is None:
            raise InputError("The table has no rows, so there is nothing to write.")
    return counts


def _stretches(parts: Sequence[Part]) -> list[list[Part]]:
    """Group the parts of each file, up to the most rows of a file to write; leave out empty ones."""
    found: list[list[Part]] = []
    end: tuple[object, int] = (None, 0)
    for part in parts:
        path, rows = (part.path, part.rows) if isinstance(part, RowGroups) else (None, _PART_ROWS)
        if found and path == end[0] and end[1] + rows <= _PART_ROWS:
            found[-1].append(part)
            end = (path, end[1] + rows)
        elif rows:
            found.append([part])
            end = (path, rows)
    return found


def _one_block(number: int, stretch: list[Part]) -> Iterator[tuple[tuple[int, list[Part]], range, None]]:
    """Yield a group of parts as a single block, which one task writes."""
    yield (number, stretch), range(sum(getattr(part, "rows", 0) for part in stretch)), None


def write_part(
    block: tuple[int, list[Part]], _rows: range, _weight: None, reader: Reader, folder: str, id_type: ArrowType
) -> Sums | None:
    """Write the predictions of a group of parts; return their counts, None without rows."""
    number, stretch = block
    counts: list[Sums] = []
    with (
        written_whole(Path(folder) / _NAME.format(number)) as draft,
        parquet_writer(draft, reader.model, id_type) as write,
    ):
        for one in chain.from_iterable(map(reader, stretch)):
            write(one)
            counts.append(counts_of(one, len(reader.model.classes)))
    return add_all(counts)


def number_columns(model: TableModel, answered: bool) -> list[str]:
    """Return the names of the columns of probabilities and numbers of answers."""
    many = [f"probability_{name}" for name in model.names]
    found = ["probability"] if len(model.classes) == 2 else many
    return (found if model.link is not None else []) + ["n_answers"] * answered


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
    ids = found.ids
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    columns = {
        "id": ids if id_type is None else ids.cast(id_type),
        "label": pa.array(model.classes).take(pa.array(found.place)),
    }
    numbers = zip(number_columns(model, found.n_answers is not None), found.numbers, strict=True)
    columns |= {name: pa.array(np.ascontiguousarray(column)) for name, column in numbers}
    return pa.RecordBatch.from_pydict(columns)
