"""Questions, and the forms in which answers to them come in and go out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sdulearn.answers.records import PAIR_WORDS, Answer
from sdulearn.errors import InputError
from sdulearn.types import Codes, Indices

KINDS = ("random", "linked", "explore", "compare", "repeat", "triangle", "doubtful")
COLUMNS = ("left", "right", "answer", "annotator", "kind", "number")
# An answer about rows of X.
RowAnswer = Answer[int]


class Question(NamedTuple):
    """A point, and what to compare it with.

    Attributes
    ----------
    left, choices : int and tuple of int
        Rows of the first point (where one of the two is new, this one), and of what it is compared
        with: one point, in the linked design an example of a class.
    kind : {"random", "linked", "explore", "compare", "repeat", "triangle", "doubtful"}
        Why it is asked. Estimates use only the kinds that their assumptions allow.
    number, rank : int
        Counts from 1; place of ``left`` in the random order of all points, or None.
    """

    left: int
    choices: tuple[int, ...]
    kind: str = "linked"
    number: int = 1
    rank: int | None = None

    @property
    def right(self) -> int:
        """Row of the second point of a pair."""
        return self.choices[0]

    @property
    def pair(self) -> tuple[int, int]:
        """The two points of a pair, the smaller first."""
        return min(self.left, self.right), max(self.left, self.right)


def answered(question: Question, said: int | str, annotator: str) -> RowAnswer:
    """An answer to a question."""
    left, choices, kind, number, rank = question
    return Answer(left, choices, said, annotator, kind, int(number), rank)


def read_said(answer: object) -> int | str:
    """What was said of a pair, from a word or True and False."""
    if isinstance(answer, (bool, np.bool_)):
        return PAIR_WORDS["same" if answer else "different"]
    if isinstance(answer, str) and answer in PAIR_WORDS:
        return PAIR_WORDS[answer]
    raise InputError(f'An answer is "same", "different" or "unsure" (or True, False); got {answer!r}.')


def read_answers(table: Any, n_points: int) -> list[RowAnswer]:
    """Answers from a list of them, or from a frame or a mapping of columns, as :attr:`Asker.answers` gives it."""
    if isinstance(table, list):
        return [check_answer(answer, n_points) for answer in table]
    columns = {name: list(table[name]) for name in COLUMNS if name in table}
    if missing := [name for name in COLUMNS[:3] if name not in columns]:
        raise InputError(f"`answers` has no column {missing[0]!r}. It needs left, right and answer.")
    n = len(columns["answer"])
    columns = {"annotator": [""] * n, "kind": [""] * n, "number": list(range(1, n + 1)), **columns}
    lengths = {name: len(values) for name, values in columns.items()}
    if set(lengths.values()) != {n}:
        raise InputError(f"The columns of `answers` differ in length: {lengths}.")
    answers = [
        check_answer(Answer(left, (right,), read_said(said), str(annotator or ""), kind, int(number)), n_points)
        for left, right, said, annotator, kind, number in zip(*(columns[name] for name in COLUMNS), strict=True)
    ]
    if len({answer.number for answer in answers}) < n:
        raise InputError("Two rows of `answers` have the same number. Leave the column `number` out to count anew.")
    return answers


def check_answer(answer: RowAnswer, n_points: int) -> RowAnswer:
    """The answer, if it compares rows of X and is of a known kind."""
    for point in (answer.left, *answer.choices):
        if not isinstance(point, (int, np.integer)) or not 0 <= point < n_points:
            raise InputError(f"Points are the row numbers 0 to {n_points - 1} of `X`, got {point!r}.")
    if answer.left in answer.choices:
        raise InputError(f"An answer compares point {answer.left} with itself. Remove it.")
    # Of unknown kind is not random.
    kind = answer.kind or "linked"
    if kind not in KINDS:
        raise InputError(f"An answer has the kind {kind!r}; kinds are {', '.join(KINDS)}.")
    return answer._replace(left=int(answer.left), choices=tuple(map(int, answer.choices)), kind=kind)


def as_columns(answers: Sequence[RowAnswer]) -> Mapping[str, list[Any]]:
    """The answers as columns, what was said in words."""
    names = {name: "word" if name == "answer" else name for name in COLUMNS}
    return {name: [getattr(answer, field) for answer in answers] for name, field in names.items()}


def as_graph_input(answers: Sequence[RowAnswer]) -> tuple[Indices, Codes, Codes]:
    """Ends, signs and annotator numbers of the pairs that the answers tell something of."""
    numbers = annotator_numbers(answers)
    pairs = [(*pair, numbers[one.annotator]) for one in answers for pair in one.pairs()]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 4)
    return table[:, :2].astype(np.intp), table[:, 2], table[:, 3]


def annotator_numbers(answers: Sequence[RowAnswer]) -> dict[str, int]:
    """Who answered, numbered from 1 in the order of their first answers; 0 is somebody without a name."""
    names = dict.fromkeys(["", *(one.annotator for one in answers)])
    return {name: k for k, name in enumerate(names)}
