"""The log that ``sdulearn ask`` writes: JSON lines, only ever appended to, on the disk before an answer counts.

An answer, taking it back and changing it are a line each::

    {"event": "answer", "number": 1, "left": "r7", "right": "r12", "answer": "same", "annotator": "ann",
     "kind": "random", "time": "2026-01-31T12:00:00.000Z", "session": "9f1c2b7a41d0"}
    {"event": "change", "number": 1, "answer": "different", "annotator": "ann", "time": ..., "session": "9f1c2b7a41d0"}
    {"event": "undo", "number": 1, "annotator": "ann", "time": ..., "session": "9f1c2b7a41d0"}

``session`` and ``number`` name an answer, and a later line about it repeats them; every start of the program is a
session of its own, so that logs merge by concatenation. ``{"event": "label", "id": "r7", "label": "cat"}`` names the
class of a row; ``{"event": "session", "seed": 7, ...}`` begins a session, with ``"epsilon"`` where its answers are
flipped with probability 1 / (1 + exp(epsilon)) before they are written.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import numpy as np

from sdulearn.answers.records import Answers, BadRow
from sdulearn.errors import FileError, InputError
from sdulearn.io.files import DAMAGED, Location, as_text, open_bytes
from sdulearn.pairs import DISSIMILAR, SIMILAR, UNSURE

ANSWER_CODES = {"same": SIMILAR, "different": DISSIMILAR, "unsure": UNSURE}
EVENTS = ("session", "answer", "undo", "change", "label")
# Every line of ours begins with this, and no text within one can hold it: its quotes would be escaped.
_BEGIN = b'{"event"'
# Where Windows locks a byte: beyond any log, so that others may read the whole of it.
_FAR = 1 << 40

Record = dict[str, object]
Key = tuple[str, int]


@dataclass(frozen=True)
class LoggedAnswer:
    """An answer as it stands after all changes.

    Attributes
    ----------
    session, number : str, int
        Name it, within this log and those it may be merged with.
    left, right : str
        Ids of the two rows.
    answer : {"same", "different", "unsure"}
        What was said last.
    annotator : str
        Who said it; empty where nobody gave a name.
    kind : str
        Why it was asked, as the design calls it.
    time : str
        When it was first given, in UTC.
    line : int
        Where it stands.
    """

    session: str
    number: int
    left: str
    right: str
    answer: str
    annotator: str = ""
    kind: str = ""
    time: str = ""
    line: int = 0

    @property
    def key(self) -> Key:
        """What names the answer."""
        return self.session, self.number


@dataclass
class LogContents:
    """What a log says, all its lines taken together.

    Attributes
    ----------
    answers : dict
        The answers that stand, by session and number, in the order in which they were first given.
    labels : dict
        Names of classes by row id.
    seed : int or None
        Seed of the first session, with which the others go on.
    epsilons : dict
        Privacy of the answers of each session, None where they are as they were given.
    undone : set
        Answers that were taken back.
    n_changes : int
        How often an answer was changed.
    half_written : list of int
        Lines that a writer was stopped in; what they would have said was never acknowledged.
    bad_rows : list of BadRow
        Other lines that cannot be read.
    """

    answers: dict[Key, LoggedAnswer] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    seed: int | None = None
    epsilons: dict[str, float | None] = field(default_factory=dict)
    undone: set[Key] = field(default_factory=set)
    n_changes: int = 0
    half_written: list[int] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)

    def apply(self, record: Record, line: int) -> None:
        """Take one more line into account."""
        event = record.get("event")
        if event == "label":
            self.labels[as_text(record.get("id"))] = as_text(record.get("label"))
        elif event == "session":
            seed = record.get("seed")
            self.seed = seed if self.seed is None and isinstance(seed, int) else self.seed
            epsilon = record.get("epsilon")
            private = isinstance(epsilon, int | float) and epsilon > 0
            self.epsilons[as_text(record.get("session"))] = float(epsilon) if private else None  # type: ignore[arg-type]
        elif event in ("answer", "change", "undo"):
            reason = self._apply_answer(str(event), record, line)
            if reason:
                self.bad_rows.append(BadRow(line, reason))
        elif not isinstance(event, str):
            self.bad_rows.append(BadRow(line, "no event of a log"))
        # Events of later versions say nothing about answers.

    @property
    def epsilon(self) -> float | None:
        """Privacy of all answers that stand; None where they are as they were given."""
        found = {self.epsilons.get(session) for session, _ in self.answers}
        if len(found) > 1:
            names = ", ".join(sorted("not at all" if one is None else f"epsilon {one:g}" for one in found))
            raise InputError(
                f"The log holds answers that were flipped at different rates ({names}). Fit the logs of each apart."
            )
        return found.pop() if found else None

    def _apply_answer(self, event: str, record: Record, line: int) -> str:
        """Apply an answer or a line about one; the reason where that cannot be done."""
        number = record.get("number")
        if not isinstance(number, int) or isinstance(number, bool):
            return "number is no whole number"
        key = as_text(record.get("session")), number
        if event == "undo":
            self.answers.pop(key, None)
            self.undone.add(key)
            return ""
        answer = record.get("answer")
        if not isinstance(answer, str) or answer not in ANSWER_CODES:
            return f"answer {answer!r} is not same, different or unsure"
        if event == "change":
            return self._change(key, str(answer))
        return self._add(key, str(answer), record, line)

    def _change(self, key: Key, answer: str) -> str:
        if key in self.undone:
            return ""
        if key not in self.answers:
            return f"changes answer {key[1]}, which is not in the log"
        self.answers[key] = replace(self.answers[key], answer=answer)
        self.n_changes += 1
        return ""

    def _again(self, key: Key, record: Record) -> str:
        """A second line for an answer that stands must be about the same two rows."""
        known = self.answers.get(key)
        ends = (as_text(record.get("left")), as_text(record.get("right")))
        if known is None or ends == (known.left, known.right):
            return ""
        return f"answer {key[1]} of its session is about other rows in line {known.line}"

    def _add(self, key: Key, answer: str, record: Record, line: int) -> str:
        # The same answer again is a copy of the log; one that was taken back stays so.
        if key in self.answers or key in self.undone:
            return self._again(key, record)
        left = as_text(record.get("left"))
        right = as_text(record.get("right"))
        if not left or not right:
            return f"{'left' if not left else 'right'} is empty"
        annotator, kind, time = (as_text(record.get(name)) for name in ("annotator", "kind", "time"))
        self.answers[key] = LoggedAnswer(*key, left, right, answer, annotator, kind, time, line)
        return ""


def is_log_record(record: Mapping[str, object]) -> bool:
    """Whether a JSON object is a line of such a log.

    Parameters
    ----------
    record : mapping
        The object.

    Returns
    -------
    bool
        True for each of our events.
    """
    return record.get("event") in EVENTS and "session" in record


def read_log(path: Location) -> LogContents:
    """Read a log, or several that were concatenated, gzipped or not.

    Parameters
    ----------
    path : str or path-like
        The log.

    Returns
    -------
    LogContents
        The answers that stand, labels, and the lines that could not be read.
    """
    with open_bytes(path) as file:
        try:
            return parse_log(file.read())
        except DAMAGED as error:
            raise InputError(f"{path} is cut off or damaged ({error}). Copy it again.") from None


def parse_log(data: bytes) -> LogContents:
    """The contents of a log from its bytes."""
    contents = LogContents()
    for number, line in enumerate(data.split(b"\n"), 1):
        line = line.strip(b" \t\r\0\xef\xbb\xbf")
        if not line:
            continue
        record = _record(line)
        if record is None:
            # A writer that was stopped left no newline: what another wrote since follows on the same line.
            at = line.rfind(_BEGIN)
            record = _record(line[at:]) if at > 0 else None
            if record is None and not line.startswith(b"{"):
                contents.bad_rows.append(BadRow(number, "not JSON"))
            else:
                contents.half_written.append(number)
        if record is not None:
            contents.apply(record, number)
    return contents


def _record(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def log_answers(name: str, contents: LogContents) -> Answers:
    """The answers that stand, as all other files of answers are read.

    Parameters
    ----------
    name : str
        The file.
    contents : LogContents
        From :func:`read_log`.

    Returns
    -------
    Answers
        With annotators, where any has a name.
    """
    given = list(contents.answers.values())
    ids = np.empty((len(given), 2), dtype=object)
    ids[:, 0] = [one.left for one in given]
    ids[:, 1] = [one.right for one in given]
    columns = {"id_a": "left", "id_b": "right", "label": "answer"}
    annotators = None
    if any(one.annotator for one in given):
        columns["annotator"] = "annotator"
        annotators = np.array([one.annotator for one in given], dtype=object)
    counts = {word: sum(one.answer == word for one in given) for word in ANSWER_CODES}
    return Answers(
        name=name,
        ids=ids,
        answers=np.array([ANSWER_CODES[one.answer] for one in given], dtype=np.int64),
        weights=np.ones(len(given)),
        annotators=annotators,
        kinds=np.array([one.kind for one in given], dtype=object),
        epsilon=contents.epsilon,
        lines=np.array([one.line for one in given], dtype=np.int64),
        columns=columns,
        words={word: (ANSWER_CODES[word], count) for word, count in counts.items() if count},
        bad_rows=tuple(contents.bad_rows),
    )


class AnswerLog:
    """A log to write to; nobody else may while it is open.

    Parameters
    ----------
    path : str or path-like
        A new file, or one to go on with.

    Raises
    ------
    FileError
        It cannot be written, or another program has it open.
    InputError
        The file is not such a log.
    """

    def __init__(self, path: Location) -> None:
        self.path = Path(path)
        self.session = secrets.token_hex(6)
        self._fd = _open(self.path)
        try:
            _lock(self._fd, self.path)
            data = _read_all(self._fd)
            self.contents = parse_log(data)
            if self.contents.bad_rows:
                first = self.contents.bad_rows[0]
                raise InputError(
                    f"{self.path}, line {first.line}: {first.reason}. It is not a log that can be continued; name "
                    "another file."
                )
            self._end = len(data)
            self._lines = data.count(b"\n") + 1
            if data and not data.endswith(b"\n"):
                self._write(b"\n")
            _sync_folder(self.path)
        except BaseException:
            os.close(self._fd)
            raise
        numbers = [key[1] for key in (*self.contents.answers, *self.contents.undone)]
        self._last = max(numbers, default=0)

    def begin(self, seed: int, **settings: object) -> None:
        """Write down what a session begins with."""
        self._append({"event": "session", "seed": seed, **settings, "time": _now(), "session": self.session})

    def answer(self, left: str, right: str, answer: str, annotator: str = "", kind: str = "") -> LoggedAnswer:
        """Write an answer; it is on the disk when this returns."""
        number = self._last + 1
        record: Record = {"event": "answer", "number": number, "left": left, "right": right, "answer": answer}
        self._append({**record, "annotator": annotator, "kind": kind, "time": _now(), "session": self.session})
        self._last = number
        return self.contents.answers[self.session, number]

    def undo(self, key: Key, annotator: str = "") -> None:
        """Take an answer back."""
        self._about("undo", key, {}, annotator)

    def change(self, key: Key, answer: str, annotator: str = "") -> None:
        """Give another answer to the same question."""
        self._about("change", key, {"answer": answer}, annotator)

    def label(self, row_id: str, label: str, annotator: str = "") -> None:
        """Name the class of a row."""
        record: Record = {"event": "label", "id": row_id, "label": label, "annotator": annotator}
        self._append({**record, "time": _now(), "session": self.session})

    def _about(self, event: str, key: Key, more: Record, annotator: str) -> None:
        if key not in self.contents.answers:
            raise InputError(f"There is no answer {key[1]} to {event}.")
        session, number = key
        record: Record = {"event": event, "number": number, **more, "annotator": annotator}
        self._append({**record, "time": _now(), "session": session})

    def _append(self, record: Record) -> None:
        if record.get("answer", "same") not in ANSWER_CODES:
            raise InputError(f"An answer is same, different or unsure; got {record['answer']!r}.")
        self._write(json.dumps(record).encode("ascii") + b"\n")
        self.contents.apply(record, self._lines - 1)

    def _write(self, line: bytes) -> None:
        """Write a whole line through to the disk, or none of it."""
        try:
            written = 0
            while written < len(line):
                written += os.write(self._fd, line[written:])
            os.fsync(self._fd)
        except OSError as error:
            # A disk that is full may have taken half of it.
            os.ftruncate(self._fd, self._end)
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}.") from None
        self._end += len(line)
        self._lines += 1

    def close(self) -> None:
        """Let others write."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> AnswerLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from None


def _read_all(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _lock(fd: int, path: Path) -> None:
    """Keep others from writing; the system takes the lock away when the process ends, however it ends."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(fd, _FAR, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FileError(
            f"{path} is open in another `sdulearn ask`. Use that one (several people can), or name another file."
        ) from None


def _sync_folder(path: Path) -> None:
    """Write the name of a new file to the disk, where the system lets a folder be opened."""
    if os.name == "nt":
        return
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
