"""People, their questions and the log, for the page and for machines."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, count
from statistics import median
from typing import Any, NamedTuple

from sdulearn.answer_files.download import as_csv
from sdulearn.answer_files.log import Key, log_answers
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers.answer_model import Rate
from sdulearn.answers.records import AUDIT, Answer, Answers, Given
from sdulearn.answers.y import DISSIMILAR, SIMILAR
from sdulearn.asking.asker import Asker
from sdulearn.asking.estimates import ClassFound
from sdulearn.asking.records import RowAnswer, RowQuestion
from sdulearn.diagnostics import audited_rates
from sdulearn.errors import InputError, NothingToAskError, SpentRowError, UndeterminedError, quoted
from sdulearn.progress import long_work
from sdulearn.types import MatrixLike

MAX_NAME = 60
MAX_COMMENT = 1000
# A question that a person put off comes back after this many other answers.
_LATER = 10
# A question that was left open for this long goes to others.
_HELD_SECONDS = 600
_REVIEWED = 50
# From this many answers on, their median says how long a question takes; none takes longer than a day.
LEAST_TIMED = 5
_MOST_SECONDS = 86_400.0


class Goal(NamedTuple):
    """How much is asked of people."""

    per_person: int | None = None  # number of answers of one person
    overlap: float = 0.0  # share of each person's questions that somebody else answers, too
    until: float | None = None  # width of the accuracy interval at which people may stop
    audit: int | None = None  # number of answered questions to ask again, and no others


@dataclass
class _Person:
    """The open question of a person, and their answers in this session."""

    token: int = 0  # names the open question
    question: RowQuestion | None = None
    later: deque[tuple[int, RowQuestion]] = field(default_factory=deque)  # put off, until so many answers are given
    seen: float = 0.0  # time of their last request
    # By token: key and reply, as an answer that is sent twice counts once.
    answered: dict[int, tuple[Key, object]] = field(default_factory=dict)


class Session:
    """Asks people, writes their answers to the log, then to the Asker. Threads may share it."""

    def __init__(self, asker: Asker, for_team: bool = False, goal: Goal | None = None) -> None:
        self.asker = asker
        self.epsilon = asker.private  # of private answers
        self.store = asker.store
        self.for_team = for_team
        self.goal = goal or Goal()
        if self.goal.overlap and self.epsilon is not None:
            raise InputError("Private answers cannot overlap: a second answer about a row would reveal more of it.")
        self.ids = asker.ids
        self.digest: Callable[[int], str] | None = None  # of a row, if ids are row numbers
        self.rows = asker.rows
        self._people: dict[str, _Person] = {}
        self._tokens = count(1)
        self._lock = threading.RLock()
        # The last estimates, and the answers that they used.
        self._estimates: dict[str, Any] = {"accuracy": None, "missing": 0, "classes": [], "review": [], "advice": None}
        self._estimated = -1  # version of the store
        self._rates: tuple[int, dict[str, Rate]] | None = None
        # Of a version of the store.
        self._classes = lru_cache(1)(self._class_by_row)
        # One thread prepares questions and estimates. New work replaces what waits in its slot.
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="sdulearn-ahead")
        self._slots: dict[str, Future[None]] = {}
        self._closed = False

    def question(self, annotator: str) -> tuple[int, RowQuestion]:
        """Return the open question of a person and its token; choose one if there is none."""
        with self._lock:
            person = self._person(annotator)
            question = person.question
            if question is None:
                if self.is_done(annotator):
                    raise NothingToAskError(f"You have answered your {self.goal.per_person} questions. Thank you.")
                self._release_left_open(annotator)
                question = self._show(person, self._choose(person, annotator))
                if self.goal.audit is None:
                    self._submit("prepare", self.asker.prepare, question, annotator)
            return person.token, question

    def answer(
        self, annotator: str, token: int, reply: object, comment: str = "", name: str = "", seconds: float | None = None
    ) -> Answer[str] | None:
        """Store an answer, on disk when this returns; "none" may name the class that it opens.

        The same reply to a question that was answered counts once; another one is refused, and so is a reply to a
        question that is no longer open (None).
        """
        _check_name(name, "class name")
        if comment and self.epsilon is not None:
            raise InputError("Answers are private, and a comment could give one away. Leave it empty.")
        if len(comment) > MAX_COMMENT:
            raise InputError(f"A comment has at most {MAX_COMMENT} characters.")
        if seconds is not None and not 0 <= seconds <= _MOST_SECONDS:
            raise InputError(f"An answer takes 0 to {_MOST_SECONDS:,.0f} seconds, not {seconds:g}.")
        # Which answer is quick could give a private one away.
        given = Given(comment=comment, seconds=None if self.epsilon is not None else seconds)
        with self._lock:
            person = self._person(annotator)
            if token in person.answered:
                key, earlier = person.answered[token]
                standing = self.store.contents.answers.get(key)
                return standing if reply == earlier else None
            if person.question is None or person.token != token:
                return None
            written = None
            try:
                written = self.record(person.question, reply, annotator, given)
                person.answered[token] = written.key, reply
            except SpentRowError:
                self.asker.skip(annotator, later=False)
            person.question = None
            if name and written is not None and written.reply == "none":
                self.rename(annotator, written.left, name)
            return written

    def record(self, question: RowQuestion, reply: object, annotator: str, given: Given) -> Answer[str]:
        """Store an answer to any question, and how it was given."""
        digests = [] if self.digest is None else [self.digest(row) for row in question.items]
        return self.asker.add(question, reply, annotator, given, digests)

    def n_of(self, annotator: str) -> int:
        """Return the number of answers of a person."""
        with self._lock:
            return sum(one.annotator == annotator for one in self.store.contents.answers.values())

    def is_done(self, annotator: str) -> bool:
        """Whether a person has answered all their questions."""
        return self.goal.per_person is not None and self.n_of(annotator) >= self.goal.per_person

    def skip(self, annotator: str, token: int) -> None:
        """Put the open question off: it comes back later."""
        with self._lock:
            person = self._person(annotator)
            if person.question is not None and person.token == token:
                person.later.append((len(person.answered) + _LATER, person.question))
                person.question = None
                self.asker.skip(annotator)

    def undo(self, annotator: str, key: Key | None = None) -> RowQuestion | None:
        """Undo an answer of a person, the last one by default, and ask its question again; an undone one stays so."""
        with self._lock:
            person = self._person(annotator)
            key = self.last_of(annotator) if key is None else key
            if key is None:
                return None
            if key not in self.store.contents.answers:
                # The page asks again if it did not hear that it was undone.
                known = self.store.contents.withdrawn.get(key)
                if known is None or known.annotator != annotator:
                    raise InputError(f"There is no answer {key[1]} to undo.")
                return person.question
            self._refuse_others(self.store.contents.answers[key], annotator)
            gone = self.asker.undo(annotator, number=key[1], session=key[0])
            self._unname_all(gone, annotator)
            return self._show(person, self.asker.renewed(gone.question))

    def last_of(self, annotator: str) -> Key | None:
        """Return the key of the last answer of a person that they can undo."""
        answers = [answer for answer in self.store.snapshot().answers if answer.annotator == annotator]
        if self.epsilon is not None:
            # How answers of earlier sessions were flipped is forgotten.
            answers = [answer for answer in answers if answer.given.session == self.store.session]
        return answers[-1].key if answers else None

    def _refuse_others(self, answer: Answer[str], annotator: str) -> None:
        if answer.annotator != annotator and not self.is_alone(annotator):
            name = answer.annotator or "somebody else"
            raise InputError(f"Answer {answer.given.number} is by {name}. Change only your own.")

    def example(self, annotator: str, token: int, position: int) -> RowQuestion | None:
        """Show another example of one class in the open question."""
        with self._lock:
            person = self._person(annotator)
            if person.question is None or person.token != token:
                return None
            if not 0 <= position < len(person.question.choices):
                raise InputError(f"The question has {len(person.question.choices)} choices, and none at {position}.")
            return self._show(person, self.asker.another_example(person.question, position))

    def merge(self, annotator: str, one: str, other: str) -> None:
        """Merge the classes of two rows, by changing the answers that separated them."""
        with self._lock:
            name = self.name_of(self._row(other))
            self.asker.merge(self._row(one), self._row(other), annotator)
            self._close_questions()
            if name:
                self.rename(annotator, other, name)

    def split(self, annotator: str, row_id: str) -> None:
        """Take a row out of its class, by changing the answers that put it there."""
        with self._lock:
            self.asker.split(self._row(row_id), annotator)
            self._close_questions()
            self._unname(row_id, annotator)

    def rename(self, annotator: str, row_id: str, name: str) -> None:
        """Name the class of a row: the row, and all others of its class that have a name."""
        name = name.strip()
        if not name:
            raise InputError("A class name has at least one character.")
        with self._lock:
            own = {self._row(row_id), *self.asker.members(self._row(row_id))}
            taken = [one for one, label in self.store.contents.labels.items() if label == name]
            if any(one in self.rows and self.rows[one] not in own for one in taken):
                raise InputError(f"Another class is named {quoted(name)}. Choose another name, or merge the two.")
            named = {one for one in map(self.ids.__getitem__, own) if self.store.contents.labels.get(one)}
            self.label(dict.fromkeys({*named, row_id}, name), annotator)

    def _unname(self, row_id: str, annotator: str) -> None:
        """Remove the name of a row that may have left its class."""
        if self.store.contents.labels.get(row_id):
            self.label({row_id: ""}, annotator)

    def _unname_all(self, answer: RowAnswer, annotator: str) -> None:
        """Remove the names of the rows that an answer was about, and not those of its examples."""
        question = answer.question
        about = [row for row, rank in zip(question.items, question.ranks, strict=True) if rank is not None]
        for row in about if question.form == "sort" else [question.left]:
            self._unname(self.ids[row], annotator)

    def _close_questions(self) -> None:
        for person in self._people.values():
            # Open questions may show classes that are gone.
            person.question = None

    def _row(self, name: str) -> int:
        if name not in self.rows:
            raise InputError(f"There is no row {quoted(name)}.")
        return self.rows[name]

    def change(self, key: Key, reply: object, annotator: str) -> Answer[str]:
        """Change an answer of this person."""
        if self.epsilon is not None:
            raise InputError("Private answers are randomised and cannot be changed. Undo takes the last ones back.")
        with self._lock:
            given = self.store.contents.answers.get(key)
            if given is None:
                raise InputError(f"There is no answer {key[1]} to change.")
            self._refuse_others(given, annotator)
            self.asker.change_all({key: reply}, annotator)
            self._close_questions()
            changed = self.store.contents.answers[key]
            if changed.verdict != given.verdict:
                self._unname_all(changed.about([self.rows[name] for name in changed.question.items]), annotator)
            return changed

    def is_alone(self, annotator: str) -> bool:
        """Whether nobody else can have answered: a page for this machine, with one name."""
        names = {name for name in (*self.people(), annotator) if name}
        return not self.for_team and len(names) <= 1

    def history(self) -> list[Answer[str]]:
        """Return all answers, the last first."""
        with self._lock:
            return list(self.store.snapshot().answers)[::-1]

    def as_csv(self) -> str:
        """Return all answers as a table that ``fit`` reads like the log."""
        with self.store.lock:
            return as_csv(self.store.contents)

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return len(self.store.contents.answers)

    def people(self) -> list[str]:
        """Return the names of all who answered or were asked."""
        with self._lock:
            named = {answer.annotator for answer in self.store.snapshot().answers}
            return sorted(named | self._people.keys())

    def agreement(self) -> dict[str, Any]:
        """Return counts and error rate of each person, how often each two of them agree, and how long answers take."""
        with self.store.lock:
            version, given = self.store.snapshot()
            answers = log_answers(str(self.store.path), self.store.contents)
        rates = self._error_rates(version, answers)
        people: list[dict[str, Any]] = []
        verdicts: dict[str, dict[tuple[object, ...], object]] = {}
        for name in sorted({one.annotator for one in given}):
            own = [one for one in given if one.annotator == name]
            sure = [answer for answer in own if not answer.is_unsure]
            verdicts[name] = {answer.question.key: answer.verdict for answer in sure}
            rate = rates.get(name)
            known = rate and {"value": rate.value, "low": rate.low, "high": rate.high}
            n_unsure = len(own) - len(sure)
            people.append({"name": name, "n_answers": len(own), "n_unsure": n_unsure, "error_rate": known})
        couples = []
        for first, second in combinations(verdicts, 2):
            if both := verdicts[first].keys() & verdicts[second].keys():
                n_agreed = len(verdicts[first].items() & verdicts[second].items())
                couples.append({"first": first, "second": second, "n_both": len(both), "n_agreed": n_agreed})
        return {"people": people, "couples": couples, "pace": self.pace()}

    def pace(self, annotator: str | None = None) -> dict[str, dict[str, float]]:
        """Return the median number of seconds that each form of question takes, everybody or one person."""
        seconds: dict[str, list[float]] = defaultdict(list)
        for answer in self.store.snapshot().answers:
            if answer.given.seconds is not None and annotator in (None, answer.annotator):
                seconds[answer.question.form].append(answer.given.seconds)
        enough = {form: times for form, times in seconds.items() if len(times) >= LEAST_TIMED}
        return {form: {"seconds": median(times), "n_answers": len(times)} for form, times in enough.items()}

    def _error_rates(self, version: int, answers: Answers) -> dict[str, Rate]:
        """Return error rates by name as a fit of these answers has them; they are kept until others come."""
        if self._rates is None or self._rates[0] != version:
            audited = audited_rates(answers)
            names = ("", *answers.annotator_names)
            by_audit = {} if audited is None else {names[k]: rate for k, rate in audited.by_annotator.items()}
            self._rates = version, by_audit or self.asker.annotator_rates()
        return self._rates[1]

    def label(self, names: dict[str, str], annotator: str) -> None:
        """Name the classes of rows."""
        if names and self.epsilon is not None:
            raise InputError("Answers are private, and a name would give away some: fit with labels of other rows.")
        with self._lock:
            for row_id, name in names.items():
                self._row(row_id)
                _check_name(name, "class name")
            self.store.label(names, annotator)

    def numbers(self, *, wait: bool = False) -> dict[str, Any]:
        """Return counts and the last estimates; ``estimating`` says that newer ones will come."""
        with self._lock:
            version, standing = self.store.snapshot()
            estimating = self._slots.get("estimate")
            # An estimate that has not begun will use all answers, and somebody may wait for it.
            pending = estimating is not None and not estimating.running() and not estimating.done()
            if version != self._estimated and not pending:
                self._submit("estimate", self._estimate)
                estimating = self._slots.get("estimate")
        if wait and estimating is not None:
            estimating.result()
        counts = Counter(answer.sign for answer in standing)
        n_unsure = sum(answer.is_unsure for answer in standing)
        of_key = {one.key: one for one in standing}
        accuracy, until = self._estimates["accuracy"], self.goal.until
        classes = [
            {"name": self.name_of(row), "place": self.place_of(row), "share": one.share, "n_points": one.n_points}
            for one in self._estimates["classes"]
            for row in one.examples[:1]
        ]
        return {
            "n_answers": len(standing),
            "n_same": counts[SIMILAR],
            "n_different": counts[DISSIMILAR],
            "n_unsure": n_unsure,
            **self._estimates,
            "classes": classes,
            "review": [of_key[key] for key in self._estimates["review"] if key in of_key],
            "reached": bool(accuracy and until and accuracy["high"] - accuracy["low"] <= until),
            "estimating": version != self._estimated,
            "privacy": str(self.asker.leak()),
        }

    def _estimate(self) -> None:
        version = self.store.version
        accuracy, missing = self._accuracy()
        # Without an accuracy there is no gain in it.
        advised = accuracy is not None and self.asker.design != "random"
        self._estimates = {
            "accuracy": accuracy,
            "missing": missing,
            "classes": self.classes(),
            "review": [one.key for one in self.asker.review(_REVIEWED)],
            "advice": self.asker.advice()._asdict() if advised else None,
        }
        self._estimated = version

    def _submit(self, slot: str, work: Callable[..., None], *arguments: Any) -> None:
        with self._lock:
            if waiting := self._slots.get(slot):
                waiting.cancel()
            if not self._closed:
                self._slots[slot] = self._ahead.submit(work, *arguments)

    def classes(self) -> list[ClassFound]:
        """Return the classes found; random pairs find none."""
        return [] if self.asker.design == "random" else self.asker.classes()

    def name_of(self, row: int) -> str:
        """Return the name of the class of a row, by the majority of its rows, or an empty text."""
        with self._lock:
            _, name = self._classes(self.store.version).get(row, (None, ""))
            return name or self.store.contents.labels.get(self.ids[row], "")

    def place_of(self, row: int) -> int | None:
        """Return the number of the class of a row, in the order in which the classes were found."""
        with self._lock:
            return self._classes(self.store.version).get(row, (None, ""))[0]

    def _class_by_row(self, version: int) -> dict[int, tuple[int, str]]:
        """Return place and name of the class of each row that is in one."""
        labels = self.store.contents.labels
        shown: dict[int, tuple[int, str]] = {}
        for place, members in enumerate(self.asker.groups()):
            names = Counter(name for row in members if (name := labels.get(self.ids[row])))
            shown |= dict.fromkeys(members, (place, max(names, key=names.__getitem__, default="")))
        return shown

    def _accuracy(self) -> tuple[dict[str, float] | None, int]:
        """Return the accuracy, or None and how many random questions are missing."""
        try:
            accuracy = self.asker.accuracy()
        except UndeterminedError as error:
            return None, error.missing
        numbers = {name: getattr(accuracy, name) for name in ("value", "low", "high")}
        return {**numbers, "n_random": accuracy.n_answers}, 0

    def _person(self, annotator: str) -> _Person:
        _check_name(annotator, "name")
        if self.for_team and not annotator:
            raise InputError("Enter your name first; other people are answering, too.")
        person = self._people.setdefault(annotator, _Person())
        person.seen = time.monotonic()
        return person

    def _release_left_open(self, annotator: str) -> None:
        """Release questions that others left open for too long; forget who never answered."""
        latest = time.monotonic() - _HELD_SECONDS
        for name in [name for name, one in self._people.items() if name != annotator and one.seen < latest]:
            self.asker.skip(name, later=False)
            self._people[name].question = None
            if not self._people[name].answered:
                del self._people[name]

    def _show(self, person: _Person, question: RowQuestion) -> RowQuestion:
        person.token = next(self._tokens)
        person.question = question
        return question

    def _choose(self, person: _Person, annotator: str) -> RowQuestion:
        if not person.later or person.later[0][0] > len(person.answered):
            if self.goal.audit is not None:
                return self._audited(annotator, self.goal.audit)
            if shared := self._shared(annotator):
                return shared
            try:
                return self.asker.next(annotator)
            except NothingToAskError:
                # No new question is left, so ask one that was put off.
                if not person.later:
                    raise
        # Beside the examples of now.
        return self.asker.renewed(person.later.popleft()[1])

    def _shared(self, annotator: str) -> RowQuestion | None:
        """A question that others answered, of those answered least, while this person shares too few."""
        people: dict[tuple[object, ...], set[str]] = {}
        for answer in self.asker.given:
            people.setdefault(answer.question.items, set()).add(answer.annotator)
        own = [names for names in people.values() if annotator in names]
        if sum(len(names) > 1 for names in own) >= int(self.goal.overlap * (len(own) + 1)):
            return None
        closed = {question.items for question in self._open()} | {
            items for items in people if annotator in people[items]
        }
        free = [answer for answer in self.asker.given if answer.question.items not in closed]
        fewest = min((len(people[answer.question.items]) for answer in free), default=0)
        rarest = [answer for answer in free if len(people[answer.question.items]) == fewest]
        return self._draw(rarest, "repeat") if free else None

    def _audited(self, annotator: str, number: int) -> RowQuestion:
        """A random question that somebody else answered, until there are enough."""
        done = {answer.question.key for answer in self.asker.given if answer.question.why == AUDIT}
        closed = done | {question.key for question in self._open()}
        others = [one for one in self.asker.given if not one.is_unsure and one.annotator != annotator]
        free = {one.question.key: one for one in others if one.question.why != AUDIT and one.question.key not in closed}
        if len(done) >= number or not free:
            raise NothingToAskError(f"The audit is over: {len(done):,} answers were given again. Thank you.")
        return self._draw(list(free.values()), AUDIT)

    def _open(self) -> list[RowQuestion]:
        """Open questions."""
        return [person.question for person in self._people.values() if person.question is not None]

    def _draw(self, pool: Sequence[RowAnswer], why: str) -> RowQuestion:
        answer = random.Random(f"{self.asker.seed} {self.n_answers}").choice(pool)
        return answer.question._replace(why=why)

    def close(self) -> None:
        """Stop the thread, and let others write to the log."""
        self._closed = True
        self._ahead.shutdown(cancel_futures=True)
        self.store.close()


def _check_name(name: str, what: str) -> None:
    if len(name) > MAX_NAME or not name.isprintable():
        raise InputError(f"A {what} has at most {MAX_NAME} characters that can be printed.")


@long_work
def continue_asker(X: MatrixLike, store: AnswerStore, ids: Sequence[str], **options: Any) -> Asker:
    """Return an Asker with the answers and seeds of a log."""
    rows = {name: row for row, name in enumerate(ids)}
    seeds: dict[str, list[int]] = {}
    for name, label in store.contents.examples.items():
        if name in rows:
            seeds.setdefault(label, []).append(rows[name])
    return Asker(X, store=store, ids=ids, seeds=list(seeds.values()), **options)
