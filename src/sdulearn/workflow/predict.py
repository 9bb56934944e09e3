"""Predictions of a table, stretch by stretch, in its order; a Parquet table is read by all cores."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.answers.records import Answers, flip_rate
from sdulearn.base import posterior_of
from sdulearn.errors import InputError, quoted, require
from sdulearn.io.answers import read_answers
from sdulearn.io.files import Location, is_location
from sdulearn.io.survey import find_ids, id_texts, named_id_column
from sdulearn.io.tables import Part, batch_rows, open_table, svmlight_rows, table_format
from sdulearn.pairs import stack_pairs
from sdulearn.table_model import TableModel
from sdulearn.types import Array, ArrowColumn, Codes, Frame, Indices
from sdulearn.workflow.data import usable_answers

if TYPE_CHECKING:
    from sdulearn.workflow.options import Progress, Watch

T = TypeVar("T")


@dataclass(frozen=True)
class Predictions:
    """Some rows."""

    ids: ArrowColumn  # as they stand in the table; row numbers where it has none
    place: Indices  # place of each row's class among those of the model
    probability: Array | None  # (n_rows, n_classes), where the model gives any
    unseen: Counter[str]  # texts that are no known category, by column
    n_answers: Codes | None = None  # answers by which a row is predicted beside its features, where any were given

    def id_texts(self) -> list[str]:
        """The ids as text."""
        return id_texts(self.ids).to_pylist()


def predict_table(
    model: TableModel,
    path: Location | Frame,
    *,
    answers: Location | Frame | Answers | None = None,
    id_column: str | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Iterator[Predictions]:
    """Predict all rows of a file, folder or frame in their order, portion by portion; never all in memory.

    Parameters
    ----------
    model : TableModel
        The model.
    path : str, path-like or frame
        Table with the columns of the training table, in any order.
    answers : str, path-like, frame or Answers, optional
        Answers about rows of this table, as :func:`~sdulearn.answers.read_answers` takes them: these rows are
        predicted by features and answers. The table is then read twice, first for what is asked about.
    id_column : str, optional
        The column of ids, or "" for row numbers; by default that of the training table, where it is there.
    skip_bad : bool, default=False
        Leave out answers that cannot be used instead of refusing them.
    progress : function, optional
        Called with the number of rows of a Parquet table; gives a function that is called with the number of
        rows after each portion, and with None at the end.

    Yields
    ------
    Predictions
        Some rows.
    """
    is_sparse = model.columns.first is not None
    if is_sparse != (is_location(path) and table_format(path) == "svm"):
        wanted = "an svmlight file (.svm)" if is_sparse else "a table with named columns"
        raise InputError(f"{path}: the model was fitted on {wanted}; give it one like that.")
    passes = [_of_svmlight(model, path) if is_sparse else _of_table(model, path, id_column, progress) for _ in range(2)]
    if answers is None:
        yield from passes[0]
        return
    ids, by_answers, n_answers = _posterior(model, passes[0], read_answers(answers), skip_bad)
    for found in passes[1]:
        place = find_ids(found.ids, ids)
        assert found.probability is not None
        p = np.where(n_answers[place, None] > 0, by_answers[place], found.probability)
        yield Predictions(found.ids, p.argmax(axis=1), p, found.unseen, n_answers[place])


def asked_rows(model: TableModel) -> Predictions:
    """The rows in the answers of the fit, by features and answers."""
    assert model.asked is not None
    ids, p, n_answers = model.asked
    arrow = require("pyarrow", "files").array(ids, "string")
    return Predictions(arrow, p.argmax(axis=1), p, Counter(), n_answers)


def _posterior(
    model: TableModel, rows: Iterable[Predictions], answers: Answers, skip_bad: bool
) -> tuple[ArrowColumn, Array, Codes]:
    """Of the rows that answers name, and of none at the end: ids, class probabilities and number of answers."""
    if not hasattr(model.estimator, "posterior"):
        raise InputError("The model does not know how often answers are wrong. Fit one with `method='joint'`.")
    names = sorted(set(answers.ids.ravel().tolist()))
    ids = require("pyarrow", "files").array(names, "string")
    p = np.zeros((len(names) + 1, len(model.classes)))
    times = np.zeros(len(names), dtype=np.int64)
    for found in rows:
        place = find_ids(found.ids, ids)
        assert found.probability is not None
        p[place[place >= 0]] = found.probability[place >= 0]
        times += np.bincount(place[place >= 0], minlength=len(names))
    if (times > 1).any():
        often = quoted(names[int(np.argmax(times))])
        raise InputError(f"The table's ids must tell rows apart, but {often} occurs {times.max():,} times.")
    hint = " Give the table that the answers are about, or name its column of ids with `id_column`."
    there = {name: k for k, name in enumerate(names) if times[k]}
    used = usable_answers(answers, there, skip_bad, False, lambda: hint)
    ends = used["ends"]
    if not len(ends):
        raise InputError(f"{answers.name} has no answer, same or different, about rows of the table. Leave it out.")
    who = None if answers.annotators is None else _annotators(model, answers)[used["annotators"]]
    by_features, y = stack_pairs(p, ends, used["similar"], unlabeled=None, annotators=who)
    errors = model.estimator.answer_model_
    if answers.epsilon is not None:
        errors = AnswerModel.given(flip_rate(answers.epsilon), AnswerGraph.from_y(y))
    try:
        p[ends.ravel()] = posterior_of(errors, by_features, y, np.repeat(used["weights"], 2))
    except InputError:
        raise InputError(
            f"{answers.name}: answers contradict each other, and the model takes all answers for right. Correct them "
            "(`check_answers` lists contradictions), or fit again with an error rate, for example `error_rate=0.05`."
        ) from None
    return ids, p, np.bincount(ends.ravel(), minlength=len(p))


def _annotators(model: TableModel, answers: Answers) -> Codes:
    """The numbers of people in the model, after 0 for nobody; whom it does not know has the rate of all answers."""
    rates = model.estimator.answer_model_.by_annotator
    people = () if model.report is None else model.report.annotators
    # Of soft answers a model has more rates than people.
    numbers = {one.name: k for one, k in zip(people, rates, strict=True)} if len(people) == len(rates) else {}
    other = 1 + max(rates, default=0)
    return np.array([0, *(numbers.get(name, other) for name in answers.annotator_names)])


def _of_svmlight(model: TableModel, path: Location) -> Iterator[Predictions]:
    pa = require("pyarrow", "files")
    for begin, X in svmlight_rows(path, model.columns):
        yield Predictions(pa.array(np.arange(begin, begin + X.shape[0])), *model.decide(X), Counter())


def _of_table(
    model: TableModel, path: Location | Frame, id_column: str | None, progress: Progress | None
) -> Iterator[Predictions]:
    columns = model.columns
    table = open_table(path)
    names = list(table.types)
    id_column = named_id_column(table.name, names, id_column, (columns.id_column,))
    needed = table.some(columns.needed(table.name, names, id_column))
    watch = None if progress is None or table.n_rows is None else progress(table.n_rows)
    parts = [_of_part(model, table.name, part, needed, id_column, watch) for part in table.parts]
    if len(parts) == 1:
        yield from parts[0]
    else:
        with threadpool_limits(1, user_api="blas"):
            # Predictions of a part are small beside its rows.
            for found in in_order((partial(list[Predictions], part) for part in parts), os.cpu_count() or 1):
                yield from found
    if watch is not None:
        watch(None)


def _of_part(
    model: TableModel, table: str, part: Part, needed: list[str], id_column: str | None, watch: Watch | None
) -> Iterator[Predictions]:
    pa = require("pyarrow", "files")
    for begin, batch in part(needed, batch_rows(model.columns.width)):
        X, unseen = model.columns.encode(getattr(part, "path", table), batch)
        ids = pa.array(np.arange(begin, begin + batch.num_rows)) if id_column is None else batch[id_column]
        yield Predictions(ids, *model.decide(X), unseen)
        if watch is not None:
            watch(batch.num_rows)


def in_order(jobs: Iterable[Callable[[], T]], n_threads: int) -> Iterator[T]:
    """Results in the order of the jobs, a few at work ahead of the reader and no more."""
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
