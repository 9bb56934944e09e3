"""People, questions and the log: what the page and the console do, without either of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from sdulearn.errors import InputError, SdulearnError, SpentRowError, quoted
from sdulearn.io.answer_log import ANSWER_CODES, AnswerLog, Key, LoggedAnswer
from sdulearn.web.agreement import Agreement, agreement

MAX_NAME = 60
# Questions that a person put off come back when so many others were answered.
_LATER = 10
# A question that somebody left open for so long is given to others who want one.
_HELD_SECONDS = 600
_CURVE_POINTS = 500
# Points of the curve of answers that were given before this start.
_OLD_CURVE_POINTS = 20
_REVIEWED = 50


class AskedQuestion(Protocol):
    """A question of the engine, or a record of its answer; see :class:`sdulearn.asking.Question`."""

    @property
    def left(self) -> int:
        """Row of the first point."""

    @property
    def right(self) -> int:
        """Row of the second point."""

    @property
    def kind(self) -> str:
        """Why it is asked."""

    @property
    def number(self) -> int:
        """The engine's number."""

    def _replace(self, *, number: int) -> AskedQuestion: ...


# A sdulearn.asking.Asker, or a stand-in with its methods.
Engine = Any
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Pending:
    """A question that waits for a person's answer."""

    token: int  # names it while the program runs
    question: AskedQuestion  # the engine's question


@dataclass
class _Desk:
    """What one person has before them."""

    pending: Pending | None = None
    # Questions put off, with the number of answers after which they come back.
    later: deque[tuple[int, AskedQuestion]] = field(default_factory=deque)
    n_answered: int = 0
    # When they last asked for something, by the clock of this machine.
    seen: float = 0.0
    # The answer to each question that was answered here, so that one sent twice counts once.
    answered: dict[int, Key] = field(default_factory=dict)


class AskingSession:
    """Asks people, writes their answers to the log, then tells the engine. Threads may share it."""

    def __init__(
        self,
        make_engine: Callable[[Columns | None], Engine],
        log: AnswerLog,
        ids: Sequence[str],
        for_team: bool = False,
    ) -> None:
        self.log = log
        self.for_team = for_team
        self.ids = ids
        self.rows = {name: row for row, name in enumerate(ids)}
        self._make_engine = make_engine
        self._desks: dict[str, _Desk] = {}
        self._token = 0
        self._lock = threading.RLock()
        self._estimating = threading.Lock()
        self._curve: list[dict[str, float]] = []
        # Works out what follows each answer while the question is read, and the curve of old answers.
        self._ahead = ThreadPoolExecutor(2, thread_name_prefix="sdulearn-ahead")
        self._closing = threading.Event()
        self._preparing: Future[None] | None = None
        self._refuse_unknown_rows()
        self._start_engine()

    def _refuse_unknown_rows(self) -> None:
        for one in self.log.contents.answers.values():
            unknown = [name for name in (one.left, one.right) if name not in self.rows]
            if unknown:
                raise InputError(
                    f"{self.log.path}, line {one.line}: the table has no row {quoted(unknown[0])}. Is it the log of "
                    "another table?"
                )

    def _start_engine(self) -> None:
        """The engine, which knows all answers that stand, numbered from 1."""
        contents = self.log.contents
        standing = list(contents.answers.values())
        # What private answers told stays told: the engine must not ask about their rows again.
        withdrawn = [one for one in contents.withdrawn.values() if contents.epsilon_of(one) is not None]
        known = [*standing, *(one for one in withdrawn if one.left in self.rows and one.right in self.rows)]
        columns: Columns = {
            "left": [self.rows[one.left] for one in known],
            "right": [self.rows[one.right] for one in known],
            "answer": [one.answer for one in known],
            "annotator": [one.annotator for one in known],
            "kind": [one.kind for one in known],
        }
        self.engine = self._make_engine(columns if known else None)
        for number in range(len(standing) + 1, len(known) + 1):
            self.engine.withdraw(number)
        self._numbers: dict[Key, int] = {one.key: k for k, one in enumerate(standing, 1)}

    def question(self, annotator: str) -> Pending:
        """The question before a person; the same one until it is answered or put off."""
        with self._lock:
            desk = self._desk(annotator)
            if desk.pending is None:
                self._release_left_open(annotator)
                desk.pending = self._pending(self._choose(desk, annotator))
                self._prepare(desk.pending.question, annotator)
            return desk.pending

    def answer(self, annotator: str, token: int, answer: str) -> LoggedAnswer | None:
        """Write an answer down; it is on the disk when this returns."""
        with self._lock:
            desk = self._desk(annotator)
            if token in desk.answered:
                return self.log.contents.answers.get(desk.answered[token])
            if desk.pending is None or desk.pending.token != token:
                return None
            question = desk.pending.question
            left = self.ids[question.left]
            right = self.ids[question.right]
            try:
                stored = self.engine.stored_answer(question, answer, annotator or None)
            except SpentRowError:
                desk.pending = None
                self.engine.release(annotator or None)
                return None
            written = self.log.answer(left, right, stored, annotator, question.kind, self.epsilon)
            desk.answered[token] = written.key
            desk.n_answered += 1
            desk.pending = None
            question = self._with_free_number(question)
            self.engine.tell(question, answer, annotator=annotator or None)
            self._numbers[written.key] = question.number
            return written

    def _with_free_number(self, question: AskedQuestion) -> AskedQuestion:
        """The engine may have given the number away since, where answers were taken back."""
        if question.number not in self._numbers.values():
            return question
        return question._replace(number=1 + max(self._numbers.values()))

    def skip(self, annotator: str, token: int) -> None:
        """Put a question off: it comes back later."""
        with self._lock:
            desk = self._desk(annotator)
            if desk.pending is not None and desk.pending.token == token:
                desk.later.append((desk.n_answered + _LATER, desk.pending.question))
                desk.pending = None
                self.engine.skip(annotator or None)

    def undo(self, annotator: str) -> Pending | None:
        """Take back a person's last answer that stands, and put its question before them again.

        Private answers of an earlier start stay: whether they were flipped is forgotten, and another flip of an answer
        to the same question would tell more of it.
        """
        with self._lock:
            own = [one for one in self.log.contents.answers.values() if one.annotator == annotator]
            if self.epsilon is not None:
                own = [one for one in own if one.session == self.log.session]
            if not own:
                return None
            last = own[-1]
            self.log.undo(last.key, annotator)
            question = self.engine.withdraw(self._numbers.pop(last.key))
            # What was before them followed from what is gone.
            desk = self._desk(annotator)
            desk.pending = self._pending(question)
            return desk.pending

    def change(self, key: Key, answer: str, annotator: str) -> LoggedAnswer:
        """Give another answer to a question that this person answered."""
        if self.epsilon is not None:
            raise InputError("Private answers are randomised and cannot be changed. Undo takes the last ones back.")
        with self._lock:
            given = self.log.contents.answers.get(key)
            if given is not None and given.annotator != annotator and not self.is_alone(annotator):
                raise InputError(
                    f"Answer {key[1]} was given by {given.annotator or 'somebody without a name'}. You can change "
                    "only your own answers."
                )
            self.log.change(key, answer, annotator)
            self.engine.change(self._numbers[key], answer)
            return self.log.contents.answers[key]

    def is_alone(self, annotator: str) -> bool:
        """Whether nobody but this person can have answered: the page is for this machine, and there is one name."""
        names = {name for name in (*self.people(), annotator) if name}
        return not self.for_team and len(names) <= 1

    def history(self) -> list[LoggedAnswer]:
        """All answers that stand, the last first."""
        with self._lock:
            return list(self.log.contents.answers.values())[::-1]

    def agreement(self) -> Agreement:
        """How far people agree."""
        return agreement(self.history())

    @property
    def epsilon(self) -> float | None:
        """Privacy of the answers; None where they are stored as they are given."""
        return self.engine.private

    @property
    def n_answers(self) -> int:
        """Number of answers that stand."""
        return len(self.log.contents.answers)

    def people(self) -> list[str]:
        """Everybody who answered or was asked."""
        with self._lock:
            named = {one.annotator for one in self.log.contents.answers.values()}
            return sorted(named | self._desks.keys())

    def label(self, names: dict[str, str], annotator: str) -> None:
        """Name the classes of rows."""
        if names and self.epsilon is not None:
            raise InputError(
                "Answers are private, and the class of a row in the clear would give away that of the row it was "
                "compared with. Leave the names empty; to name the classes, fit with labels of rows in no answer."
            )
        with self._lock:
            for row_id, name in names.items():
                if row_id not in self.rows:
                    raise InputError(f"There is no row {row_id!r}.")
                self.log.label(row_id, name, annotator)

    def numbers(self) -> dict[str, Any]:
        """Counts, classes, accuracy and its curve, answers to look at again, and advice."""
        with self._lock:
            standing = list(self.log.contents.answers.values())
            number_of = dict(self._numbers)
        # Estimates take a while; answers need not wait for them.
        with self._estimating:
            counts = {f"n_{word}": sum(one.answer == word for one in standing) for word in ANSWER_CODES}
            return {
                "n_answers": len(standing),
                **counts,
                "classes": [self._class(one) for one in self._attempt(self.engine.classes) or ()],
                "accuracy": self._accuracy(len(standing)),
                "curve": self._curve[-_CURVE_POINTS:],
                "review": self._review(standing, number_of),
                "advice": self._advice(),
                "privacy": self.privacy(),
            }

    def privacy(self) -> str:
        """What the log gives away of answers, rows and people; empty where answers are stored as they are given."""
        return "" if self.epsilon is None else str(self.engine.leak())

    def rebuild_curve(self) -> Future[None]:
        """Work out, meanwhile, the accuracy after some of the answers that the log held at the start."""
        n = self.n_answers
        sizes = {round(n * k / _OLD_CURVE_POINTS) for k in range(1, _OLD_CURVE_POINTS + 1)} - {0}
        return self._ahead.submit(self._estimate_after, sorted(sizes))

    def _estimate_after(self, sizes: list[int]) -> None:
        for size in sizes:
            if self._closing.is_set():
                return
            with self._estimating:
                found = self._attempt(partial(self.engine.accuracy, first=size))
                if found is not None:
                    self._add_to_curve(size, found)

    def examples(self, most: int) -> list[list[int]]:
        """Rows to know each class by."""
        with self._estimating:
            return [list(one.examples)[:most] for one in self._attempt(self.engine.classes) or ()]

    def _class(self, found: Any) -> dict[str, Any]:
        labels = self.log.contents.labels
        names = [labels[self.ids[row]] for row in found.examples if self.ids[row] in labels]
        return {"name": names[-1] if names else "", "share": found.share, "n_points": found.n_points}

    def _accuracy(self, n_answers: int) -> dict[str, float] | None:
        """By the random share; the curve grows with every new number of answers, and ends with the last one."""
        found = self._attempt(self.engine.accuracy)
        if found is None:
            return None
        self._curve = [one for one in self._curve if one["n_answers"] < n_answers]
        return self._add_to_curve(n_answers, found)

    def _add_to_curve(self, n_answers: int, found: Any) -> dict[str, float]:
        shown = {"value": found.value, "low": found.low, "high": found.high}
        others = [one for one in self._curve if one["n_answers"] != n_answers]
        self._curve = sorted([*others, {"n_answers": n_answers, **shown}], key=lambda one: one["n_answers"])
        return shown

    def _advice(self) -> dict[str, Any] | None:
        found = self._attempt(self.engine.advice)
        if found is None:
            return None
        return {"n_next": found.n_next, "gain": found.expected_gain, "go_on": found.worth_going_on}

    def _review(self, standing: list[LoggedAnswer], number_of: dict[Key, int]) -> list[LoggedAnswer]:
        """Answers that the model doubts, the least likely first, then those that contradict others."""
        if self.epsilon is not None:
            # Most of them were flipped, and nobody should say of which that is so.
            return []
        doubted = [number for number, _ in self._attempt(self.engine.doubtful) or ()]
        at_odds = [number for numbers in self._attempt(self.engine.contradictions) or () for number in numbers]
        of_number = {number_of[one.key]: one for one in standing}
        wanted = [number for number in dict.fromkeys(doubted + at_odds) if number in of_number]
        return [of_number[number] for number in wanted[:_REVIEWED]]

    @staticmethod
    def _attempt(estimate: Callable[[], Any]) -> Any:
        """An estimate, or None while the answers do not allow it."""
        try:
            return estimate()
        except InputError:
            return None

    def _prepare(self, question: AskedQuestion, annotator: str) -> None:
        if self._preparing is None or self._preparing.done():
            self._preparing = self._ahead.submit(self.engine.prepare, question, annotator or None)

    def _desk(self, annotator: str) -> _Desk:
        if len(annotator) > MAX_NAME or not annotator.isprintable():
            raise InputError(f"A name has at most {MAX_NAME} characters that can be printed.")
        if self.for_team and not annotator:
            raise InputError("Give your name first: others answer here too.")
        desk = self._desks.setdefault(annotator, _Desk())
        desk.seen = time.monotonic()
        return desk

    def _release_left_open(self, annotator: str) -> None:
        """Take back what others have had before them for too long; who never answered is forgotten."""
        latest = time.monotonic() - _HELD_SECONDS
        for name in [name for name, desk in self._desks.items() if name != annotator and desk.seen < latest]:
            self.engine.release(name or None)
            self._desks[name].pending = None
            if not self._desks[name].n_answered:
                del self._desks[name]

    def _pending(self, question: AskedQuestion) -> Pending:
        self._token += 1
        return Pending(self._token, question)

    def _choose(self, desk: _Desk, annotator: str) -> AskedQuestion:
        if desk.later and desk.later[0][0] <= desk.n_answered:
            return desk.later.popleft()[1]
        try:
            return self.engine.next(annotator=annotator or None)
        except SdulearnError:
            # Nothing new is left to ask: now is later.
            if not desk.later:
                raise
            return desk.later.popleft()[1]

    def close(self) -> None:
        """Stop working ahead, and let others write to the log."""
        self._closing.set()
        self._ahead.shutdown(cancel_futures=True)
        self.log.close()
