"""The log of ``sdulearn ask``: appended JSON lines, on disk before an answer counts.

docs/reference/log.md describes the keys of a line. ``session`` and ``number`` identify an answer; a line that
changes or undoes it repeats them. Every start of the program is a session of its own, so that logs are
merged by concatenation. ``rank`` is the place of the row that is asked about in the random order of all rows:
the rows up to the last random question are a random sample, whatever the reason of their questions.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.answers.records import (
    AUDIT,
    EPSILONS,
    FORMS,
    Answer,
    Answers,
    BadRow,
    Form,
    Given,
    Question,
    implied_pairs,
    read_reply,
)
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError, shortened
from sdulearn.io.files import Location, as_text, read_bytes
from sdulearn.io.typed import read
from sdulearn.reading import Reading
from sdulearn.types import Indices

EVENTS = ("session", "answer", "undo", "change", "label")
# Of a pair, by its code.
WORDS = {SIMILAR: "same", DISSIMILAR: "different", UNSURE: "unsure"}
# Every line of ours begins like this; within a text of a line its quotes would be escaped.
_BEGIN = b'{"event"'
_SESSION = b'{"event": "session"'
# A whole line ends like this: a quote within a text has a backslash before it.
_END = re.compile(rb'[^\\]"\}\Z')

Record = dict[str, object]
Key = tuple[str, int]
# Numbers that an answer may have, and their limits.
LIMITS = {"rank": (0, 10**12), "epsilon": EPSILONS, "seconds": (0, 1e9), "probability": (0, 1), "cost": (0, 1e12)}
_FORCED = (
    'a forced choice among more than two: without "none" as an answer it does not say which row is of the same class. '
    'Offer "none", and write "form": "match" into such lines'
)
# Number of a line, its text, and the record it holds where it can be read.
Piece = tuple[int, bytes, Record | None]


@dataclass
class LogContents:
    """The state that all lines of a log lead to."""

    # answers that were not undone, by session and number, in the order of their first lines
    answers: dict[Key, Answer[str]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # names of classes by row id
    examples: dict[str, str] = field(default_factory=dict)  # labels of rows given as examples
    seeds: dict[str, int] = field(default_factory=dict)  # seed of each session that has one
    # privacy of each session's answers: None if they are not flipped, NaN if unreadable
    epsilons: dict[str, float | None] = field(default_factory=dict)
    n_classes: int | None = None  # as the last session that says so was told
    readings: list[Reading] = field(default_factory=list)  # how the table was read, by session that says so
    cells: dict[str, str] = field(default_factory=dict)  # digest of each asked row, if ids are row numbers
    # sessions whose questions with several choices offered "none" (only then a pick means "same"), by their answers;
    # sessions that name their design; and answers to questions with several choices whose lines have no form
    offering_none: set[str] = field(default_factory=set)
    designed: set[str] = field(default_factory=set)
    formless: set[Key] = field(default_factory=set)
    undone: set[Key] = field(default_factory=set)
    # undone answers whose own lines are in the log
    withdrawn: dict[Key, Answer[str]] = field(default_factory=dict)
    bad_rows: list[BadRow] = field(default_factory=list)  # lines that cannot be read
    unread_readings: list[int] = field(default_factory=list)  # lines of sessions whose reading cannot be read

    def apply(self, record: Record, line: int) -> None:
        """Apply one more line."""
        event = record.get("event")
        try:
            if event == "label":
                label = {as_text(record.get("id")): as_text(record.get("label"))}
                self.labels |= label
                if record.get("seed") is True:
                    self.examples |= label
            elif event == "session":
                self._begin(as_text(record.get("session")), record, line)
            elif event in ("answer", "change", "undo"):
                self._apply_answer(str(event), record, line)
            elif not isinstance(event, str):
                raise ValueError("no event of a log")
            # Other events are of later versions, and not about answers.
        except ValueError as reason:
            self.bad_rows.append(BadRow(line, str(reason).removesuffix(".")))

    def _begin(self, session: str, record: Record, line: int) -> None:
        if isinstance(seed := record.get("seed"), int):
            self.seeds[session] = seed
        if record.get("design"):
            self.designed.add(session)
        if (n_classes := record.get("classes")) is not None:
            self.n_classes = n_classes if type(n_classes) is int and n_classes >= 2 else None
        self.epsilons[session] = math.nan
        self.epsilons[session] = log_number(record, "epsilon")
        if (reading := record.get("reading")) is None:
            return
        try:
            self.readings.append(read(Reading, reading))
        except (TypeError, ValueError) as error:
            self.unread_readings.append(line)
            raise ValueError(f"reading of the table: {error}") from None

    @property
    def reading(self) -> Reading | None:
        """How the table was read in the last session, and the digests of the rows that were asked about."""
        known = [one for one in self.readings if one.id_column is not None]
        # Row numbers are those of one table; a table with ids may change.
        if len({(one.id_column, "" if one.id_column else one.digest) for one in known}) > 1:
            raise InputError(
                "The sessions of this log are about different tables, or their ids are from different columns. Fit "
                "each log separately."
            )
        if self.unread_readings and not known:
            # Without it the ids would be guessed.
            lines = ", ".join(map(str, self.unread_readings))
            raise InputError(f"The log does not say how its table was read: fix the `reading` in line {lines}.")
        return replace((known or self.readings)[-1], cells=self.cells) if self.readings else None

    def sampled(self) -> list[set[str]]:
        """Return for each answer which of its rows are among those up to the last random question of their seed."""
        last: dict[int | None, int] = {}
        for answer in self.answers.values():
            if answer.question.why == "random":
                seed = self.seeds.get(answer.given.session)
                last[seed] = max([last.get(seed, -1), *(rank for rank in answer.question.ranks if rank is not None)])
        return [
            self._sampled(answer, last.get(self.seeds.get(answer.given.session), -1))
            for answer in self.answers.values()
        ]

    def _sampled(self, answer: Answer[str], last: int) -> set[str]:
        question = answer.question
        if question.rank is None:
            # Without ranks the reason alone tells: the row asked about is random.
            asked = question.items if question.form == "sort" else question.items[:1]
            return set(asked) if question.why == "random" else set()
        ranked = zip(question.items, question.ranks, strict=True)
        return {item for item, rank in ranked if rank is not None and rank <= last}

    def audits(self) -> dict[str, tuple[int, int]]:
        """Return by annotator how many answers were audited, and how many of them differ."""
        sure = [answer for answer in self.answers.values() if not answer.is_unsure]
        right = {answer.question.key: answer.verdict for answer in sure if answer.question.why == AUDIT}
        counts: dict[str, tuple[int, int]] = {}
        for answer in sure:
            if answer.question.why != AUDIT and answer.question.key in right:
                n, n_wrong = counts.get(answer.annotator, (0, 0))
                counts[answer.annotator] = (n + 1, n_wrong + (answer.verdict != right[answer.question.key]))
        return counts

    @property
    def next_epsilon(self) -> float | None:
        """Privacy of further answers: that of all answers ever given, or else of a session."""
        if given := [*self.answers.values(), *self.withdrawn.values()]:
            return self.epsilon(given)
        return next((one for one in reversed(self.epsilons.values()) if one is not None), None)

    def epsilon_of(self, answer: Answer[str]) -> float | None:
        """Return the privacy of an answer: that of its own line, or else of its session."""
        given = answer.given
        return self.epsilons.get(given.session) if given.epsilon is None else given.epsilon

    def epsilon(self, answers: Iterable[Answer[str]]) -> float | None:
        """Return the privacy that all these answers have; None where they are not flipped."""
        found = {self.epsilon_of(one) for one in answers}
        if any(one is not None and math.isnan(one) for one in found):
            lines = [str(row.line) for row in self.bad_rows if row.reason.startswith("epsilon")]
            raise InputError(
                "The log does not say how often its answers were flipped: the `epsilon` of a "
                f"session cannot be read. Fix line {', '.join(lines)}."
            )
        if len(found) > 1:
            names = ", ".join(sorted("not at all" if one is None else f"epsilon {one:g}" for one in found))
            rates = f"The log holds answers that were flipped at different rates ({names})."
            raise InputError(f"{rates} Fit each log separately.")
        return found.pop() if found else None

    def _apply_answer(self, event: str, record: Record, line: int) -> None:
        """Apply an answer, or a line that undoes or changes one."""
        number = record.get("number")
        if type(number) is not int:
            raise ValueError("number is not a whole number")
        key = as_text(record.get("session")), number
        if event == "answer":
            self._add(key, record, line)
        elif event == "undo":
            if key in self.answers:
                self.withdrawn[key] = self.answers.pop(key)
            self.undone.add(key)
        elif key in self.answers:
            known = self.answers[key]
            # The lines of a question without a form are told apart when all are read.
            form = "nearer" if key in self.formless and "nearer" in record else known.question.form
            self.answers[key] = known.with_reply(_reply(record, form))
            self._note_offer(record, self.answers[key])
        elif key not in self.undone:
            raise ValueError(f"changes answer {number}, which is not in the log")

    def _add(self, key: Key, record: Record, line: int) -> None:
        answer = read_answer(record, line)
        self._note_offer(record, answer)
        items = answer.question.items
        if known := self.answers.get(key):
            # The same answer again comes from a copy of the log.
            if items != known.question.items:
                raise ValueError(f"answer {key[1]} of its session is about other rows in line {known.given.line}")
            return
        digests = record.get("cells")
        if isinstance(digests, list) and len(digests) == len(items):
            self.cells |= zip(items, map(as_text, digests), strict=True)
        standing = self.withdrawn if key in self.undone else self.answers
        standing[key] = answer
        if "choices" in record and "form" not in record:
            self.formless.add(key)

    def _note_offer(self, record: Record, answer: Answer[str]) -> None:
        if record.get("form") == "match" or (len(answer.choices) > 1 and answer.reply == "none"):
            self.offering_none.add(answer.given.session)

    def set_forced_apart(self) -> None:
        """Read picks without "none" as "nearer": "more like a or b?" does not say that two rows are of one class.

        The first versions wrote no "form". Their questions had two choices only after an answer or an example had
        opened a second class.
        """
        given = (*self.answers.values(), *self.withdrawn.values())
        opened = bool(self.examples) or any(answer.reply in ("none", "different") for answer in given)
        offering = self.offering_none | (self.designed if opened else set())
        for answers in (self.answers, self.withdrawn):
            for answer in [answers[key] for key in self.formless if key in answers and key[0] not in offering]:
                if len(answer.choices) == 2:
                    question = answer.question._replace(form="nearer")
                    answers[answer.key] = answer._replace(question=question).with_reply(answer.reply)
                else:
                    del answers[answer.key]
                    self.bad_rows.append(BadRow(answer.given.line, _FORCED))
        self.bad_rows.sort(key=lambda row: row.line)


def read_answer(record: Record, line: int) -> Answer[str]:
    """Return the answer of a line; a ValueError says what cannot be read."""
    form, listed, why = record.get("form"), record.get("items"), record.get("why")
    if "items" not in record:
        # Lines of the first versions.
        several = "choices" in record
        choices = record.get("choices", [record.get("right")])
        listed = [record.get("left"), *choices] if isinstance(choices, list) else choices
        form = form or ("match" if several else "pair")
        why = {"linked": "uncertain"}.get(as_text(record.get("kind")), record.get("kind"))
    if not isinstance(listed, list):
        raise ValueError(f"{'items' if 'items' in record else 'choices'} is not a list")
    items = tuple(map(as_text, listed))
    if "" in items:
        raise ValueError("an id is empty")
    named: Form = form if form in FORMS else "pair"
    if form != named:
        raise ValueError(f"form {shortened(repr(form))} is unknown")
    question = Question(named, items, as_text(why), read_rank(record))
    number = record.get("number")
    assert isinstance(number, int)
    given = Given(
        time=as_text(record.get("time")),
        session=as_text(record.get("session")),
        number=number,
        line=line,
        comment=as_text(record.get("comment")),
        seconds=log_number(record, "seconds"),
        probability=log_number(record, "probability"),
        cost=log_number(record, "cost"),
        epsilon=log_number(record, "epsilon"),
    )
    answer = read_reply(question, _reply(record, named))
    return answer._replace(annotator=as_text(record.get("annotator")), given=given)


def _reply(record: Record, form: Form) -> object:
    """Return the reply of a line that answers or changes, which ``read_reply`` reads."""
    if "answer" in record:
        return record["answer"]
    reply = record.get("nearer" if form == "nearer" else "groups", "nothing")
    return "unsure" if reply is None else reply


def read_rank(record: Record) -> int | tuple[int | None, ...] | None:
    """Return the rank of a question, or of each of its items."""
    rank = record.get("rank")
    if isinstance(rank, list | tuple):
        return tuple(log_number({"rank": place}, "rank") for place in rank)
    number: int | None = log_number(record, "rank")
    return number


def log_number(record: Record, name: str) -> Any:
    """Return a number of a line, or None where it has none."""
    value: Any = record.get(name)
    low, high = LIMITS[name]
    kinds = (int,) if name == "rank" else (int, float)
    if value is not None and not (type(value) in kinds and low <= value <= high):
        whole = "whole " if name == "rank" else ""
        raise ValueError(f"{name} {str(value)[:20]} is not a {whole}number from {low:g} to {high:g}")
    return value


def read_log(path: Location) -> LogContents:
    """Read a log, or several concatenated ones, gzipped or not."""
    if Path(path).is_fifo():
        raise InputError(f"{path} is a pipe, and a log is read more than once. Copy it to a file.")
    return parse_log(read_bytes(path))


def parse_log(data: bytes) -> LogContents:
    """Parse the bytes of a log."""
    contents = LogContents()
    pieces = list(_pieces(data))
    cut_off = _cut_off(pieces)
    for k, (line, piece, record) in enumerate(pieces):
        if record is not None:
            contents.apply(record, line)
        elif k not in cut_off:
            why = "damaged" if piece.startswith(b"{") else "not JSON"
            contents.bad_rows.append(BadRow(line, why))
    contents.set_forced_apart()
    return contents


def _pieces(data: bytes) -> Iterator[Piece]:
    """Split a log into lines, and a line at the place where a writer was stopped."""
    for number, line in enumerate(data.split(b"\n"), 1):
        line = line.strip(b" \t\r\0\xef\xbb\xbf")
        if not line:
            continue
        whole = _record(line)
        pieces = [line] if whole is not None else re.split(b"(?=" + re.escape(_BEGIN) + b")", line)
        yield from ((number, piece, whole or _record(piece)) for piece in pieces if piece)


def _cut_off(pieces: list[Piece]) -> set[int]:
    """Return lines in which a writer was stopped: they lack an end, and a session follows."""
    first: dict[object, int] = {}
    for k, (_, _, record) in enumerate(pieces):
        if record is not None:
            first.setdefault(as_text(record.get("session")), k)
    places = set()
    start = session_line = True
    for k, (_, piece, record) in reversed(list(enumerate(pieces))):
        if record is not None:
            session_line = record.get("event") == "session"
            start = session_line or first[as_text(record.get("session"))] == k
            continue
        ours = piece[: len(_BEGIN)] == _BEGIN[: len(piece)] and _END.search(piece) is None
        # A session whose first line is lost continues with its answers.
        start = start and ours and (session_line or not piece.startswith(_SESSION))
        if start:
            places.add(k)
    return places


def _record(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def log_answers(name: str, contents: LogContents) -> Answers:
    """Convert the contents of a log to answers, as of any other file."""
    given = list(contents.answers.values())
    columns = {"id_a": "items", "id_b": "items", "label": "groups"}
    if any(answer.annotator for answer in given):
        columns["annotator"] = "annotator"
    pairs = implied_pairs(given, unsure=True)
    of = pairs.answers
    counts = Counter(pairs.signs.tolist())
    answers = Answers(
        name=name,
        ids=pairs.ends.astype(object),
        answers=pairs.signs,
        weights=np.ones(len(of)),
        annotators=np.array([answer.annotator for answer in given], dtype=object)[of],
        lines=np.array([answer.given.line for answer in given], dtype=np.int64)[of],
        columns=columns,
        words={word: (code, counts[code]) for code, word in WORDS.items() if code in counts},
        bad_rows=tuple(contents.bad_rows),
        times=np.array([answer.given.time for answer in given], dtype=object)[of],
        format="answer_log",
        kinds=np.array([answer.question.why for answer in given], dtype=object)[of],
        seconds=np.array([answer.given.seconds for answer in given], dtype=np.float64)[of],
    )
    return with_log(answers, contents, of)


def with_log(answers: Answers, contents: LogContents, of: Indices) -> Answers:
    """Return answers with what their log knows: the answer in the log has number ``of``."""
    given = list(contents.answers.values())
    sure = np.array([answer.given.probability for answer in given], dtype=np.float64)[of]
    seconds = answers.seconds
    sampled = contents.sampled()
    nearer = [
        (answer.left, answer.choices[answer.nearer], answer.choices[1 - answer.nearer])
        for answer in given
        if answer.nearer is not None
    ]
    return replace(
        answers,
        annotators=answers.annotators if answers.annotator_names else None,
        times=None if answers.times is None or not any(answers.times) else answers.times,
        seconds=None if seconds is None or np.isnan(seconds).all() else seconds,
        drawn=np.array(
            [left in sampled[k] for left, k in zip(answers.ids[:, 0], of.tolist(), strict=True)], dtype=bool
        ),
        n_unranked=sum(answer.question.why != "random" and answer.question.rank is None for answer in given),
        epsilon=contents.epsilon(given),
        questions=of if len(np.unique(of)) < len(of) else None,
        nearer=np.array(nearer, dtype=object) if nearer else None,
        reading=contents.reading,
        certainty=None if np.isnan(sure).all() else np.maximum(np.nan_to_num(sure, nan=1.0), 0.5),
        audits=contents.audits() or None,
        stated_classes=contents.n_classes,
    )
