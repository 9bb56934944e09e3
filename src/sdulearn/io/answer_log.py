"""The log of ``sdulearn ask``: appended JSON lines, on disk before an answer counts.

docs/ask.md describes the keys of a line. ``session`` and ``number`` identify an answer; a line that
changes or undoes it repeats them. Every start of the program is a session of its own, so that logs are
merged by concatenation. ``rank`` is the place of ``left`` in the random order of all rows: the rows up
to the last random question are a random sample, whatever the kind of their questions.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.answers.records import AUDIT, EPSILONS, Answer, Answers, BadRow, TableReading, given_pairs, read_said
from sdulearn.errors import FileError, InputError, shortened
from sdulearn.io.files import Location, as_text, read_bytes
from sdulearn.io.typed import read
from sdulearn.types import Indices, Mask

EVENTS = ("session", "answer", "undo", "change", "label")
# Every line of ours begins like this; within a text of a line its quotes would be escaped.
_BEGIN = b'{"event"'
_SESSION = b'{"event": "session"'
# A whole line ends like this: a quote within a text has a backslash before it.
_END = re.compile(rb'[^\\]"\}\Z')
# The byte that Windows locks: beyond any log, so that others may read all of it.
_FAR = 1 << 40

Record = dict[str, object]
Key = tuple[str, int]
_TEXTS = ("annotator", "time", "kind")
# Numbers that an answer may have, and their limits.
_LIMITS = {"rank": (0, 10**12), "epsilon": EPSILONS, "seconds": (0, 1e9), "probability": (0, 1), "cost": (0, 1e12)}
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
    readings: list[TableReading] = field(default_factory=list)  # how the table was read, by session that says so
    cells: dict[str, str] = field(default_factory=dict)  # digest of each asked row, if ids are row numbers
    # sessions whose questions with several choices offered "none" (only then a pick means "same"), by their answers;
    # and sessions that name their design
    offering_none: set[str] = field(default_factory=set)
    designed: set[str] = field(default_factory=set)
    undone: set[Key] = field(default_factory=set)
    # undone answers whose own lines are in the log
    withdrawn: dict[Key, Answer[str]] = field(default_factory=dict)
    bad_rows: list[BadRow] = field(default_factory=list)  # lines that cannot be read

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
                self._begin(as_text(record.get("session")), record)
            elif event in ("answer", "change", "undo"):
                self._apply_answer(str(event), record, line)
            elif not isinstance(event, str):
                raise ValueError("no event of a log")
            # Other events are of later versions, and not about answers.
        except ValueError as reason:
            self.bad_rows.append(BadRow(line, str(reason)))

    def _begin(self, session: str, record: Record) -> None:
        if isinstance(seed := record.get("seed"), int):
            self.seeds[session] = seed
        if record.get("design"):
            self.designed.add(session)
        self.epsilons[session] = math.nan
        if isinstance(reading := record.get("reading"), dict):
            try:
                self.readings.append(read(TableReading, reading))
            except (TypeError, ValueError) as error:
                raise ValueError(f"reading of the table: {error}") from None
        self.epsilons[session] = log_number(record, "epsilon")

    @property
    def reading(self) -> TableReading | None:
        """How the table was read in the last session, and the digests of the rows that were asked about."""
        known = [one for one in self.readings if one.id_column is not None]
        # Row numbers are those of one table; a table with ids may change.
        if len({(one.id_column, "" if one.id_column else one.digest) for one in known}) > 1:
            raise InputError(
                "The sessions of this log are about different tables, or their ids are from different columns. Fit "
                "each log separately."
            )
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
                f"session cannot be read. Mend line {', '.join(lines)}."
            )
        if len(found) > 1:
            names = ", ".join(sorted("not at all" if one is None else f"epsilon {one:g}" for one in found))
            rates = f"The log holds answers that were flipped at different rates ({names})."
            raise InputError(f"{rates} Fit the logs of each apart.")
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
            said = _choice(record, known.choices, len(known.choices) > 1)
            self._note_offer(key[0], record, said, known.choices)
            self.answers[key] = known._replace(said=said)
        elif key not in self.undone:
            raise ValueError(f"changes answer {number}, which is not in the log")

    def _add(self, key: Key, record: Record, line: int) -> None:
        left = as_text(record.get("left"))
        listed = record.get("choices", [record.get("right")])
        choices = tuple(map(as_text, listed)) if isinstance(listed, list) else ("",)
        if record.get("form", "match") not in ("match", "pair"):
            raise ValueError(_FORCED)
        said = _choice(record, choices, "choices" in record)
        self._note_offer(key[0], record, said, choices)
        if known := self.answers.get(key):
            # The same answer again comes from a copy of the log.
            if (left, choices) != (known.left, known.choices):
                raise ValueError(f"answer {key[1]} of its session is about other rows in line {known.line}")
            return
        if not left or not all(choices):
            raise ValueError(f"{'choices' if left and 'choices' in record else 'right' if left else 'left'} is empty")
        if "choices" in record and len({left, *choices}) <= len(choices):
            raise ValueError("left and choices are not different rows")
        more = {name: log_number(record, name) for name in _LIMITS}
        more |= {name: as_text(record.get(name)) for name in (*_TEXTS, "comment")}
        digests = record.get("cells")
        if isinstance(digests, list) and len(digests) == 1 + len(choices):
            self.cells |= zip((left, *choices), map(as_text, digests), strict=True)
        standing = self.withdrawn if key in self.undone else self.answers
        standing[key] = Answer(left, choices, said, session=key[0], number=key[1], line=line, **more)

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


def _choice(record: Record, choices: tuple[str, ...], positions: bool) -> int | str:
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
    low, high = _LIMITS[name]
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


class AnswerLog:
    """A log to append to; it is locked while it is open."""

    def __init__(self, path: Location) -> None:
        self.path = Path(path)
        self.session = secrets.token_hex(6)
        self._fd = _open(self.path)
        try:
            _lock(self._fd, self.path)
            data = self.path.read_bytes()
            self.contents = found = parse_log(data)
            if found.bad_rows and not (found.epsilons or found.answers or found.undone or found.labels):
                first = f"{self.path}, line {found.bad_rows[0].line}: {found.bad_rows[0].reason}. It"
                raise InputError(f"{first} is not a log that can be continued; name another file.")
            self._end = len(data)
            self._lines = data.count(b"\n") + 1
            if data and not data.endswith(b"\n"):
                self._write(b"\n")
            _sync_folder(self.path)
        except BaseException:
            os.close(self._fd)
            raise
        self._last = max((number for _, number in (*found.answers, *found.undone)), default=0)

    def begin(self, seed: int, **settings: object) -> None:
        """Write the settings of a session."""
        self._append({"event": "session", "seed": seed, **settings})

    def append(self, answer: Answer[str], cells: Sequence[str] = ()) -> Answer[str]:
        """Write an answer under the next number, on disk when this returns; cells are digests of its rows."""
        answer = answer._replace(said=self._check(answer.said, answer.choices))
        number = self._last + 1
        several = len(answer.choices) > 1
        compared: Record = {"choices": list(answer.choices)} if several else {"right": answer.right}
        form = {"form": "match"} if several else {}
        record: Record = {"event": "answer", "number": number, **form, "left": answer.left, **compared}
        record |= {"answer": answer.spoken, "annotator": answer.annotator, "kind": answer.kind}
        more = {name: getattr(answer, name) for name in (*_LIMITS, "comment")}
        record |= {name: value for name, value in more.items() if value not in (None, "")}
        record |= {"cells": list(cells)} if cells else {}
        self._append(record)
        self._last = number
        return self.contents.answers[self.session, number]

    def undo(self, key: Key, annotator: str = "") -> None:
        """Undo an answer."""
        self._known(key, "undo")
        self._append({"event": "undo", "number": key[1], "annotator": annotator}, key[0])

    def change(self, key: Key, answer: object, annotator: str = "") -> None:
        """Give another answer to the same question."""
        known = self._known(key, "change")
        answer = known._replace(said=self._check(answer, known.choices)).spoken
        self._append({"event": "change", "number": key[1], "answer": answer, "annotator": annotator}, key[0])

    def label(self, row_id: str, label: str, annotator: str = "", *, seed: bool = False) -> None:
        """Name the class of a row; a seed is an example that was given at the start."""
        seeded = {"seed": True} if seed else {}
        self._append({"event": "label", "id": row_id, "label": label, **seeded, "annotator": annotator})

    def _check(self, said: object, choices: tuple[str, ...]) -> int | str:
        try:
            return _choice({"answer": said}, choices, positions=True)
        except ValueError as error:
            raise InputError(f"{str(error).capitalize()}.") from None

    def _known(self, key: Key, event: str) -> Answer[str]:
        if key not in self.contents.answers:
            raise InputError(f"There is no answer {key[1]} to {event}.")
        return self.contents.answers[key]

    def _append(self, record: Record, session: str | None = None) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record |= {"time": now, "session": self.session if session is None else session}
        self._write(json.dumps(record).encode("ascii") + b"\n")
        self.contents.apply(record, self._lines - 1)

    def _write(self, line: bytes) -> None:
        """Write a whole line to disk, or nothing."""
        self.check()
        try:
            written = 0
            while written < len(line):
                written += os.write(self._fd, line[written:])
            os.fsync(self._fd)
        except OSError as error:
            # A full disk may have taken half of it.
            os.ftruncate(self._fd, self._end)
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}.") from None
        self._end += len(line)
        self._lines += 1

    def check(self) -> None:
        """Refuse to continue where another program changed the file: new answers might be lost."""
        own = os.fstat(self._fd)
        is_there = self.path.exists() and os.path.samestat(own, self.path.stat())
        if not is_there or own.st_size != self._end:
            raise FileError(
                f"{self.path} was moved or removed, or changed by another program, while `sdulearn ask` had it "
                "open: nothing more is saved. Stop `sdulearn ask`, put the log back where it was, and start the "
                "same command again."
            )

    def close(self) -> None:
        """Close and unlock the log."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> AnswerLog:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _open(path: Path) -> int:
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a file. Name one to write the log to.")
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from None


def _lock(fd: int, path: Path) -> None:
    """Lock the log against other writers; the system unlocks it when the process ends."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(fd, _FAR, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        advice = "Use that one (several people can), or name another file."
        raise FileError(f"{path} is open in another `sdulearn ask`. {advice}") from None


def _sync_folder(path: Path) -> None:
    """Write the name of a new file to disk, on systems on which a folder can be opened."""
    if os.name == "nt":
        return
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
