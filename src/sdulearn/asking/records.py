"""Answers as a caller gives and gets them, and the classes that follow from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sdulearn.answers.records import AUDIT, Answer, Question, read_reply
from sdulearn.errors import InputError

REASONS = ("random", "uncertain", "explore", "repeat", "doubtful", AUDIT)
# Reasons of earlier versions.
_OLD_REASONS = {"linked": "uncertain", "triangle": "repeat"}
RowAnswer = Answer[int]
RowQuestion = Question[int]


def read_answers(table: Any, n_points: int) -> list[RowAnswer]:
    """Check a list of answers, or read them from columns in the form of :attr:`Asker.answers`."""
    if isinstance(table, list):
        answers = [answer._replace(question=check_rows(answer.question, n_points)) for answer in table]
        answers = [answer.with_reply(answer.reply) for answer in answers]
        if len({answer.key for answer in answers}) == len(answers):
            return answers
        return [numbered(answer, number) for number, answer in enumerate(answers, start=1)]
    names = ("form", "items", "left", "right", "choices", "answer", "annotator", "why", "number")
    columns = {name: list(table[name]) for name in names if name in table}
    shown = columns.keys() & {"items", "right", "choices"}
    if "answer" not in columns or not shown or not ("items" in columns or "left" in columns):
        raise InputError(
            "`answers` needs the columns left, right and answer; left, choices and answer; or form, items and answer."
        )
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(f"The columns of `answers` differ in length: {lengths}.")
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    answers = [_read_row(row, number, n_points) for number, row in enumerate(rows, start=1)]
    if len({answer.given.number for answer in answers}) < len(answers):
        raise InputError("Two rows of `answers` have the same number. Leave the column `number` out to count anew.")
    return answers


def _read_row(row: Mapping[str, Any], number: int, n_points: int) -> RowAnswer:
    if "items" in row:
        items = tuple(row["items"])
    else:
        items = (row["left"], *(row["choices"] if "choices" in row else [row["right"]]))
    # An answer that does not say why it was asked is not random.
    default = "sort" if "items" in row else "match" if "choices" in row else "pair"
    question = Question(row.get("form", default), items, row.get("why") or "uncertain")
    answer = read_reply(check_rows(question, n_points), row["answer"])
    return numbered(answer._replace(annotator=str(row.get("annotator") or "")), int(row.get("number", number)))


def numbered(answer: RowAnswer, number: int) -> RowAnswer:
    """Return an answer with a number, of no session."""
    return answer._replace(given=answer.given._replace(session="", number=number))


def check_rows(question: RowQuestion, n_points: int) -> RowQuestion:
    """Return the question with plain integers; refuse one that does not compare rows of X."""
    for point in question.items:
        if not isinstance(point, (int, np.integer)) or not 0 <= point < n_points:
            raise InputError(f"Points are the row numbers 0 to {n_points - 1} of `X`, got {point!r}.")
    why = _OLD_REASONS.get(question.why, question.why)
    if why not in REASONS:
        raise InputError(f"A question has the reason {question.why!r}; `why` is one of {', '.join(REASONS)}.")
    return question._replace(items=tuple(map(int, question.items)), why=why)


def are_examples(question: Question[Any]) -> list[bool]:
    """Return for each item whether it is shown as an example of a class, and not asked about."""
    if question.form == "sort":
        return [rank is None for rank in question.ranks]
    return [question.form != "pair" and k > 0 for k in range(len(question.items))]


def as_columns(answers: Sequence[RowAnswer]) -> Mapping[str, list[Any]]:
    """Return the answers as columns: ``left`` and ``right`` of pairs, or ``choices``, or ``items`` where some sort."""
    forms = {answer.question.form for answer in answers}
    shown = ("items",) if "sort" in forms else ("left", "right") if forms <= {"pair"} else ("left", "choices")
    columns: dict[str, list[Any]] = {"form": [answer.question.form for answer in answers]}
    columns |= {name: [getattr(answer.question, name) for answer in answers] for name in shown}
    return columns | {
        "answer": [answer.reply for answer in answers],
        "annotator": [answer.annotator for answer in answers],
        "why": [answer.question.why for answer in answers],
        "number": [answer.given.number for answer in answers],
    }


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
                self.join(point, number)

    @property
    def complete(self) -> bool:
        """Whether all classes are found."""
        return self.limit is not None and len(self.members) >= self.limit

    def read(self, a: int, others: Sequence[int], answer: int) -> None:
        """Read that a point is of the class of the others, or of none of their classes."""
        if not self.members:
            # The others are examples; the point is new.
            self.join(others[0], 0)
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
            self.join(point, min(numbers))
            return
        out |= numbers
        rest = [other for other in self.members if other not in out]
        if self.complete:
            if len(rest) == 1:
                self.join(point, rest[0])
        elif not rest:
            self.join(point, len(self.members))

    def join(self, point: int, number: int) -> None:
        """Put a point into a class."""
        self.label[point] = number
        self.members.setdefault(number, []).append(point)
        self.excluded.pop(point, None)
        for other, answer in self._waiting.pop(point, ()):
            self.read(point, (other,), answer)


def read_classes(answers: Sequence[RowAnswer], limit: int | None, seeds: Sequence[Sequence[int]] = ()) -> Classes:
    """Return the classes that answers have found; seeds are examples of the first ones."""
    classes = Classes(limit, seeds)
    first = {answer.question.key: answer for answer in reversed(answers) if answer.sign}
    for key, votes in count_votes(answers).items():
        answer = first[key]
        # The first answer wins a tie.
        picked, _ = votes.most_common(1)[0]
        others = answer.choices if picked is None or len(answer.choices) == 1 else (picked,)
        classes.read(answer.left, others, -1 if picked is None else 1)
    return classes


def count_votes(answers: Sequence[RowAnswer]) -> dict[tuple[object, ...], Counter[int | None]]:
    """Count how often each choice, or none, was picked in the answers to each question about pairs or matches."""
    votes: dict[tuple[object, ...], Counter[int | None]] = defaultdict(Counter)
    for answer in answers:
        if answer.sign:
            # A pair may be asked with either point as the choice.
            is_pair = answer.question.form == "pair"
            picked = max(answer.question.items) if is_pair and answer.sign > 0 else answer.picked
            votes[answer.question.key][picked] += 1
    return votes
