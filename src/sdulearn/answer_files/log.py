"""The log of ``sdulearn ask``: appended JSON lines, on disk before an answer counts.

docs/ask.md describes the keys of a line. ``session`` and ``number`` identify an answer; a line that
changes or undoes it repeats them. Every start of the program is a session of its own, so that logs are
merged by concatenation. ``rank`` is the place of ``left`` in the random order of all rows: the rows up
to the last random question are a random sample, whatever the kind of their questions.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.answers.records import AUDIT, EPSILONS, Answer, Answers, BadRow, given_pairs, read_said
from sdulearn.errors import InputError, shortened
from sdulearn.io.files import Location, as_text, read_bytes
from sdulearn.io.typed import read
from sdulearn.reading import Reading
from sdulearn.types import Indices, Mask

EVENTS = ("session", "answer", "undo", "change", "label")
# Every line of ours begins like this; within a text of a line its quotes would be escaped.
_BEGIN = b'{"event"'
_SESSION = b'{"event": "session"'
# A whole line ends like this: a quote within a text has a backslash before it.
_END = re.compile(rb'[^\\]"\}\Z')

Record = dict[str, object]
Key = tuple[str, int]
_TEXTS = ("annotator", "time", "kind")
# Numbers that an answer may have, and their limits.
LIMITS = {"rank": (0, 10**12), "epsilon": EPSILONS, "seconds": (0, 1e9), "probability": (0, 1), "cost": (0, 1e12)}
_FORCED = (
    'a forced choice: without "none" as an answer it says which row is nearer, not which is of the same class, and '
    'implies no pair. Offer "none", and write "form": "match" into such lines'
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
    readings: list[Reading] = field(default_factory=list)  # how the table was read, by session that says so
    cells: dict[str, str] = field(default_factory=dict)  # digest of each asked row, if ids are row numbers
    # sessions whose questions with several choices offered "none" (only then a pick means "same"), by their answers;
    # and sessions that name their design
    offering_none: set[str] = field(default_factory=set)
    designed: set[str] = field(default_factory=set)
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
            self.bad_rows.append(BadRow(line, str(reason)))

    def _begin(self, session: str, record: Record, line: int) -> None:
        if isinstance(seed := record.get("seed"), int):
            self.seeds[session] = seed
        if record.get("design"):
            self.designed.add(session)
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

    def drawn(self) -> Mask:
        """Return which answers are about rows up to the last random question of their seed."""
        given = [(self.seeds.get(one.session), one) for one in self.answers.values()]
        last: dict[int | None, int] = {}
        for seed, one in given:
            if one.kind == "random" and one.rank is not None:
                last[seed] = max(last.get(seed, -1), one.rank)
        ranks = [math.inf if one.rank is None else one.rank for _, one in given]
        limits = [math.inf if one.kind == "random" else last.get(seed, -1) for seed, one in given]
        return np.less_equal(ranks, limits)

    def audits(self) -> dict[str, tuple[int, int]]:
        """Return by annotator how many answers were audited, and how many of them differ."""
        sure = [one for one in self.answers.values() if one.sign]
        # The two rows of a pair may be exchanged, so that its sign says all.
        verdicts = [(one.sign, one.picked if len(one.choices) > 1 else None) for one in sure]
        right = {one.asked: verdict for one, verdict in zip(sure, verdicts, strict=True) if one.kind == AUDIT}
        counts: dict[str, tuple[int, int]] = {}
        for one, verdict in zip(sure, verdicts, strict=True):
            if one.kind != AUDIT and one.asked in right:
                n, n_wrong = counts.get(one.annotator, (0, 0))
                counts[one.annotator] = (n + 1, n_wrong + (verdict != right[one.asked]))
        return counts

    @property
    def next_epsilon(self) -> float | None:
        """Privacy of further answers: that of all answers ever given, or else of a session."""
        if given := [*self.answers.values(), *self.withdrawn.values()]:
            return self.epsilon(given)
        return next((one for one in reversed(self.epsilons.values()) if one is not None), None)

    def epsilon_of(self, one: Answer[str]) -> float | None:
        """Return the privacy of an answer: that of its own line, or else of its session."""
        return self.epsilons.get(one.session) if one.epsilon is None else one.epsilon

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
            said = read_choice(record, known.choices, len(known.choices) > 1)
            self._note_offer(key[0], record, said, known.choices)
            self.answers[key] = known._replace(said=said)
        elif key not in self.undone:
            raise ValueError(f"changes answer {number}, which is not in the log")

    def _add(self, key: Key, record: Record, line: int) -> None:
        answer = read_answer(record, line)
        self._note_offer(key[0], record, answer.said, answer.choices)
        if known := self.answers.get(key):
            # The same answer again comes from a copy of the log.
            if (answer.left, answer.choices) != (known.left, known.choices):
                raise ValueError(f"answer {key[1]} of its session is about other rows in line {known.line}")
            return
        digests = record.get("cells")
        if isinstance(digests, list) and len(digests) == 1 + len(answer.choices):
            self.cells |= zip((answer.left, *answer.choices), map(as_text, digests), strict=True)
        standing = self.withdrawn if key in self.undone else self.answers
        standing[key] = answer

    def _note_offer(self, session: str, record: Record, said: int | str, choices: tuple[str, ...]) -> None:
        if record.get("form") == "match" or (said == "none" and len(choices) > 1):
            self.offering_none.add(session)

    def set_forced_apart(self) -> None:
        """Take out picks without "none": "more like a or b?" does not say that two rows are of one class.

        Earlier versions wrote no "form". Their questions had two choices only after an answer or an example had
        opened a second class.
        """
        given = (*self.answers.values(), *self.withdrawn.values())
        opened = bool(self.examples) or any(one.said == "none" for one in given)
        offering = self.offering_none | (self.designed if opened else set())
        for answers in (self.answers, self.withdrawn):
            for one in [one for one in answers.values() if len(one.choices) > 1 and one.session not in offering]:
                del answers[one.key]
                self.bad_rows.append(BadRow(one.line, _FORCED))
        self.bad_rows.sort(key=lambda row: row.line)


def read_answer(record: Record, line: int) -> Answer[str]:
    """Return the answer of a line; a ValueError says what cannot be read."""
    left = as_text(record.get("left"))
    listed = record.get("choices", [record.get("right")])
    choices = tuple(map(as_text, listed)) if isinstance(listed, list) else ("",)
    if record.get("form", "match") not in ("match", "pair"):
        raise ValueError(_FORCED)
    said = read_choice(record, choices, "choices" in record)
    if not left or not all(choices):
        raise ValueError(f"{'choices' if left and 'choices' in record else 'right' if left else 'left'} is empty")
    if "choices" in record and len({left, *choices}) <= len(choices):
        raise ValueError("left and choices are not different rows")
    more = {name: log_number(record, name) for name in LIMITS}
    more |= {name: as_text(record.get(name)) for name in (*_TEXTS, "comment")}
    number = record.get("number")
    assert isinstance(number, int)
    return Answer(left, choices, said, session=as_text(record.get("session")), number=number, line=line, **more)


def read_choice(record: Record, choices: tuple[str, ...], positions: bool) -> int | str:
    """Return which of its choices a line answers with."""
    said = read_said(record.get("answer"), len(choices), positions=positions)
    if said is None:
        several = f"a position from 0 to {len(choices) - 1}, none or unsure"
        ways = several if len(choices) > 1 else "same, different or unsure"
        raise ValueError(f"answer {shortened(repr(record.get('answer')))} is not {ways}")
    return said


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


def pairs_of(given: Sequence[Answer[str]]) -> list[tuple[int, str, str, int]]:
    """Return the pairs of answers, those "unsure" included: number of the answer, both ids and the code."""
    unsure = [(k, one.left, one.right, 0) for k, one in enumerate(given) if not one.sign]
    return sorted([*given_pairs(given), *unsure], key=lambda pair: pair[0])


def log_answers(name: str, contents: LogContents) -> Answers:
    """Convert the contents of a log to answers, as of any other file."""
    given = list(contents.answers.values())
    several = any(len(one.choices) > 1 for one in given)
    columns = {"id_a": "left", "id_b": "choices" if several else "right", "label": "answer"}
    if any(one.annotator for one in given):
        columns["annotator"] = "annotator"
    pairs = pairs_of(given)
    of = np.array([k for k, *_ in pairs], dtype=np.intp)
    counts = Counter((one.word, one.sign) for one in sorted(given, key=lambda one: -(one.sign**2)))
    texts = {field: np.array([getattr(one, field) for one in given], dtype=object)[of] for field in _TEXTS}
    answers = Answers(
        name=name,
        ids=np.array([ends for _, *ends, _ in pairs], dtype=object).reshape(-1, 2),
        answers=np.array([code for *_, code in pairs], dtype=np.int64),
        weights=np.ones(len(of)),
        annotators=texts["annotator"],
        lines=np.array([one.line for one in given], dtype=np.int64)[of],
        columns=columns,
        words={word: (code, count) for (word, code), count in counts.items()},
        bad_rows=tuple(contents.bad_rows),
        times=texts["time"],
        format="answer_log",
        kinds=texts["kind"],
        seconds=np.array([one.seconds for one in given], dtype=np.float64)[of],
    )
    return with_log(answers, contents, of)


def with_log(answers: Answers, contents: LogContents, of: Indices) -> Answers:
    """Return answers with what their log knows: the answer in the log has number ``of``."""
    given = list(contents.answers.values())
    sure = np.array([one.probability for one in given], dtype=np.float64)[of]
    seconds = answers.seconds
    return replace(
        answers,
        annotators=answers.annotators if answers.annotator_names else None,
        times=None if answers.times is None or not any(answers.times) else answers.times,
        seconds=None if seconds is None or np.isnan(seconds).all() else seconds,
        drawn=contents.drawn()[of],
        n_unranked=sum(one.kind != "random" and one.rank is None for one in given),
        epsilon=contents.epsilon(given),
        questions=of if any(len(one.choices) > 1 for one in given) else None,
        reading=contents.reading,
        certainty=None if np.isnan(sure).all() else np.maximum(np.nan_to_num(sure, nan=1.0), 0.5),
        audits=contents.audits() or None,
    )
