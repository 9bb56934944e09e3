"""Questions, answers as a caller gives and gets them, and the classes that follow from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sdulearn.answers import records
from sdulearn.answers.records import AUDIT, Answer, given_pairs
from sdulearn.errors import InputError
from sdulearn.types import Codes, Indices

KINDS = ("random", "linked", "explore", "repeat", "triangle", "doubtful", AUDIT)
COLUMNS = ("left", "choices", "answer", "annotator", "kind", "number")
RowAnswer = Answer[int]


class Question(NamedTuple):
    """A point, and the points to compare it with.

    Attributes
    ----------
    left, choices : int and tuple of int
        Row of the point that is asked about, and of those it is compared with: one other point, or
        in the match design an example of each class, in the order in which the classes were found.
    kind : {"random", "linked", "explore", "repeat", "triangle", "doubtful"}
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
    def asked(self) -> tuple[int, ...]:
        """The points, in an order that does not depend on how the question is put."""
        return answered(self, "unsure", "").asked


def answered(question: Question, said: int | str, annotator: str) -> RowAnswer:
    """Return an answer to a question."""
    left, choices, kind, number, rank = question
    return Answer(left, choices, said, annotator, kind, int(number), rank)


def read_said(answer: object, n_choices: int, *, match: bool) -> int | str:
    """Return a choice's position, "none" or "unsure", from an answer as a caller gives it."""
    said = records.read_said(answer, n_choices, positions=match)
    if said is None:
        ways = '"same", "different" or "unsure" (or True, False)'
        if match:
            ways = f'a position in `choices`, below {n_choices}, "none" or "unsure"'
        raise InputError(f"An answer is {ways}; got {answer!r}.")
    return said


def read_answers(table: Any, n_points: int) -> list[RowAnswer]:
    """Check a list of answers, or read them from columns in the form of :attr:`Asker.answers`."""
    if isinstance(table, list):
        answers = [check_answer(answer, n_points) for answer in table]
        if len({answer.key for answer in answers}) < len(answers):
            answers = [answer._replace(session="", number=k) for k, answer in enumerate(answers, start=1)]
        return answers
    columns = {name: list(table[name]) for name in (*COLUMNS, "right") if name in table}
    match = "right" not in columns
    if not match:
        columns["choices"] = [(right,) for right in columns.pop("right")]
    if missing := [name for name in COLUMNS[:3] if name not in columns]:
        raise InputError(f"`answers` has no column {missing[0]!r}. It needs left, right (match: choices) and answer.")
    n = len(columns["answer"])
    columns = {"annotator": [""] * n, "kind": [""] * n, "number": list(range(1, n + 1)), **columns}
    lengths = {name: len(values) for name, values in columns.items()}
    if set(lengths.values()) != {n}:
        raise InputError(f"The columns of `answers` differ in length: {lengths}.")
    answers = []
    for left, choices, answer, who, kind, number in zip(*(columns[name] for name in COLUMNS), strict=True):
        said = read_said(answer, len(choices), match=match)
        given = Answer(left, tuple(choices), said, str(who or ""), kind, int(number))
        answers.append(check_answer(given, n_points))
    if len({answer.number for answer in answers}) < n:
        raise InputError("Two rows of `answers` have the same number. Leave the column `number` out to count anew.")
    return answers


def check_answer(answer: RowAnswer, n_points: int) -> RowAnswer:
    """Return the answer with plain integers; refuse one that does not compare rows of X."""
    for point in (answer.left, *answer.choices):
        if not isinstance(point, (int, np.integer)) or not 0 <= point < n_points:
            raise InputError(f"Points are the row numbers 0 to {n_points - 1} of `X`, got {point!r}.")
    if len({answer.left, *answer.choices}) <= len(answer.choices):
        raise InputError(f"An answer compares point {answer.left} with itself, or twice with another. Remove it.")
    # An answer of unknown kind is not random.
    kind = answer.kind or "linked"
    if kind not in KINDS:
        raise InputError(f"An answer has the kind {kind!r}; kinds are {', '.join(KINDS)}.")
    return answer._replace(left=int(answer.left), choices=tuple(map(int, answer.choices)), kind=kind)


def as_columns(answers: Sequence[RowAnswer], *, pairs: bool) -> Mapping[str, list[Any]]:
    """Return the answers as columns; of pairs with the second point and a word."""
    fields = {"answer": "word" if pairs else "said"}
    names = [{"choices": "right"}.get(name, name) if pairs else name for name in COLUMNS]
    return {name: [getattr(answer, fields.get(name, name)) for answer in answers] for name in names}


class PairTable(NamedTuple):
    """What answers say about pairs of points."""

    ends: Indices  # (n_pairs, 2) points
    signs: Codes  # +1 same, -1 different
    annotators: Codes  # numbers of the annotators
    answers: Indices  # position of the answer that says it


def as_pairs(answers: Sequence[RowAnswer]) -> PairTable:
    """Return the pairs that answers tell about; those "unsure" tell nothing."""
    numbers = annotator_numbers(answers)
    pairs = [(a, b, sign, numbers[answers[k].annotator], k) for k, a, b, sign in given_pairs(answers)]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 5)
    return PairTable(table[:, :2].astype(np.intp), table[:, 2], table[:, 3], table[:, 4].astype(np.intp))


def annotator_numbers(answers: Sequence[RowAnswer]) -> dict[str, int]:
    """Number the annotators from 1 in the order of their first answers; without a name it is 0."""
    names = dict.fromkeys(["", *(one.annotator for one in answers)])
    return {name: k for k, name in enumerate(names)}


class Classes:
    """The classes that answers have found, and the points in each.

    Questions are read in order, each once, by the majority of its answers:

    - Seeds open the first classes; without them the first choice of the first answer opens one.
    - "Same" as a point of a class: the point is in that class.
    - "Different" from points of some classes: it is in none of these. If the number of classes is
      known and all are found, it is in the only one left.
    - Different from all classes: the point opens a class, unless all are found.

    An answer that contradicts earlier ones changes nothing here.
    """

    def __init__(self, limit: int | None, seeds: Sequence[Sequence[int]] = ()) -> None:
        self.limit = limit  # number of classes where it is known
        self.label: dict[int, int] = {}  # class number by point
        self.members: dict[int, list[int]] = {}  # points by class number, in order
        # By point without a class: the classes that it is not in.
        self.excluded: dict[int, set[int]] = {}
        # Answers between points without a class, to be read once either has one.
        self._waiting: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, points in enumerate(seeds):
            for point in points:
                self._join(point, number)

    @property
    def complete(self) -> bool:
        """Whether all classes are found."""
        return self.limit is not None and len(self.members) >= self.limit

    def read(self, a: int, others: Sequence[int], answer: int) -> None:
        """Read that a point is of the class of the others, or of none of their classes."""
        if not self.members:
            # The others are examples; the point is new.
            self._join(others[0], 0)
        if a not in self.label:
            if there := {self.label[b] for b in others if b in self.label}:
                self._place(a, there, answer)
            for b in others:
                if b not in self.label:
                    self._waiting[a].append((b, answer))
                    self._waiting[b].append((a, answer))
            return
        for b in others:
            if b not in self.label:
                self._place(b, {self.label[a]}, answer)

    def _place(self, point: int, numbers: set[int], answer: int) -> None:
        """Read an answer about a point without a class, and some classes."""
        out = self.excluded.setdefault(point, set())
        if answer > 0:
            self._join(point, min(numbers))
            return
        out |= numbers
        rest = [other for other in self.members if other not in out]
        if self.complete:
            if len(rest) == 1:
                self._join(point, rest[0])
        elif not rest:
            self._join(point, len(self.members))

    def _join(self, point: int, number: int) -> None:
        self.label[point] = number
        self.members.setdefault(number, []).append(point)
        self.excluded.pop(point, None)
        for other, answer in self._waiting.pop(point, ()):
            self.read(point, (other,), answer)


def read_classes(answers: Sequence[RowAnswer], limit: int | None, seeds: Sequence[Sequence[int]] = ()) -> Classes:
    """Return the classes that answers have found; seeds are examples of the first ones."""
    classes = Classes(limit, seeds)
    first = {one.asked: one for one in reversed(answers) if one.sign}
    for asked, votes in count_votes(answers).items():
        one = first[asked]
        # The first answer wins a tie.
        picked, _ = votes.most_common(1)[0]
        others = one.choices if picked is None or len(one.choices) == 1 else (picked,)
        classes.read(one.left, others, -1 if picked is None else 1)
    return classes


def count_votes(answers: Sequence[RowAnswer]) -> dict[tuple[int, ...], Counter[int | None]]:
    """Count how often each choice, or none, was picked in the answers to each question."""
    votes: dict[tuple[int, ...], Counter[int | None]] = defaultdict(Counter)
    for one in answers:
        if one.sign:
            # A pair may be asked with either point as the choice.
            votes[one.asked][one.picked if len(one.choices) > 1 or one.sign < 0 else one.asked[1]] += 1
    return votes
