"""Questions and the answers to them, in the order in which they came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sdulearn.answers.records import Answers
from sdulearn.errors import InputError
from sdulearn.types import Codes, Indices

SAME = 1
DIFFERENT = -1
UNSURE = 0
WORDS = {"same": SAME, "different": DIFFERENT, "unsure": UNSURE}
ANSWERS = {code: word for word, code in WORDS.items()}
KINDS = ("random", "linked", "explore", "compare", "repeat", "triangle", "doubtful")
COLUMNS = ("left", "right", "answer", "annotator", "kind", "number")


class Question(NamedTuple):
    """Two points to compare.

    Attributes
    ----------
    left : int
        Row of the first point; where one of the two is new, this one.
    right : int
        Row of the second point; in the linked design an example of a class.
    kind : {"random", "linked", "explore", "compare", "repeat", "triangle", "doubtful"}
        Why it is asked. Estimates use only the kinds that their assumptions allow.
    number : int
        Counts from 1.
    """

    left: int
    right: int
    kind: str
    number: int


class Record(NamedTuple):
    """A question that was answered: ``answer`` is 1 same, -1 different, 0 unsure."""

    left: int
    right: int
    answer: int
    annotator: str
    kind: str
    number: int

    @property
    def pair(self) -> tuple[int, int]:
        """The two points, the smaller first."""
        return min(self.left, self.right), max(self.left, self.right)


def read_answer(answer: object) -> int:
    """The code of an answer: a word, or True and False."""
    if isinstance(answer, (bool, np.bool_)):
        return SAME if answer else DIFFERENT
    if isinstance(answer, str) and answer in WORDS:
        return WORDS[answer]
    raise InputError(f'An answer is "same", "different" or "unsure" (or True, False); got {answer!r}.')


def read_table(table: Any, n_points: int) -> list[Record]:
    """Records from a table of answers: a frame or a mapping of columns, as :attr:`Asker.answers` gives it."""
    columns = {name: list(table[name]) for name in COLUMNS if name in table}
    if missing := [name for name in COLUMNS[:3] if name not in columns]:
        raise InputError(f"`answers` has no column {missing[0]!r}. It needs left, right and answer.")
    n = len(columns["answer"])
    columns.setdefault("annotator", [""] * n)
    columns.setdefault("kind", ["linked"] * n)
    columns.setdefault("number", list(range(1, n + 1)))
    lengths = {name: len(values) for name, values in columns.items()}
    if set(lengths.values()) != {n}:
        raise InputError(f"The columns of `answers` differ in length: {lengths}.")
    rows = zip(*(columns[name] for name in COLUMNS), strict=True)
    records = [_record(row, n_points) for row in rows]
    if len({record.number for record in records}) < n:
        raise InputError("Two rows of `answers` have the same number. Leave the column `number` out to count anew.")
    return records


def _record(row: Sequence[Any], n_points: int) -> Record:
    left, right, answer, annotator, kind, number = row
    ends = (check_point(left, n_points), check_point(right, n_points))
    if ends[0] == ends[1]:
        raise InputError(f"`answers` compares point {ends[0]} with itself. Remove that row.")
    # Of unknown kind is not random.
    kind = kind or "linked"
    if kind not in KINDS:
        raise InputError(f"`answers` has the kind {kind!r}; kinds are {', '.join(KINDS)}.")
    return Record(*ends, read_answer(answer), str(annotator or ""), kind, int(number))


def check_point(value: object, n_points: int) -> int:
    """A row number of X."""
    if not isinstance(value, (int, np.integer)) or not 0 <= value < n_points:
        raise InputError(f"Points are the row numbers 0 to {n_points - 1} of `X`, got {value!r}.")
    return int(value)


def as_columns(records: Sequence[Record]) -> Mapping[str, list[Any]]:
    """The records as columns, answers in words."""
    columns: dict[str, list[Any]] = {name: [getattr(record, name) for record in records] for name in COLUMNS}
    columns["answer"] = [ANSWERS[code] for code in columns["answer"]]
    return columns


def decided(records: Sequence[Record]) -> list[Record]:
    """Those that are not "unsure"."""
    return [record for record in records if record.answer != UNSURE]


def as_graph_input(records: Sequence[Record]) -> tuple[Indices, Codes, Codes]:
    """Ends, signs and annotator numbers of the answers that are not "unsure"."""
    given = decided(records)
    names = {name: k for k, name in enumerate(annotator_names(records), start=1)}
    ends = np.array([(record.left, record.right) for record in given], dtype=np.intp).reshape(-1, 2)
    signs = np.array([record.answer for record in given], dtype=np.int64)
    annotators = np.array([names.get(record.annotator, 0) for record in given], dtype=np.int64)
    return ends, signs, annotators


def as_answers(records: Sequence[Record]) -> Answers:
    """The records in the form that the checks of answers take."""
    return Answers(
        name="answers",
        ids=np.array([(str(r.left), str(r.right)) for r in records], dtype=object).reshape(-1, 2),
        answers=np.array([record.answer for record in records], dtype=np.int64),
        weights=np.ones(len(records)),
        annotators=np.array([record.annotator for record in records], dtype=object),
        lines=np.array([record.number for record in records], dtype=np.int64),
        columns={},
        words={},
    )


def annotator_names(records: Sequence[Record]) -> list[str]:
    """Who answered, in the order of their first answers; without a name is nobody."""
    return list(dict.fromkeys(record.annotator for record in records if record.annotator))
