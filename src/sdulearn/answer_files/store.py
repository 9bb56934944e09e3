"""The only list of answers: the state that the lines of a log lead to, on disk before it counts.

A store writes a line, and waits until it is on disk; then the answer is in its ``contents``. Without a file it is the
same list in memory. Private answers are flipped here, before they are stored (see :mod:`sdulearn.asking.privacy`).
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sdulearn.answer_files.log import LIMITS, Key, LogContents, Record, parse_log, read_answer
from sdulearn.answers.records import Answer, Given, Question, flip_rate, read_reply
from sdulearn.errors import FileError, InputError, SpentRowError, quoted
from sdulearn.io.files import Location

# The byte that Windows locks: beyond any log, so that others may read all of it.
_FAR = 1 << 40
# Two rows, and who compared them.
Flip = tuple[tuple[str, ...], str]


class Snapshot(NamedTuple):
    """The answers of one version of a store."""

    version: int
    answers: tuple[Answer[str], ...]


class AnswerStore:
    """Answers, and names of classes, in memory or in a log, which is locked while it is open. Threads may share it."""

    def __init__(self, path: Location | None = None) -> None:
        self.session = "" if path is None else secrets.token_hex(6)
        self.version = 0  # +1 with each change
        self.flips = Flips(None, ())
        self.lock = threading.RLock()
        self._file = None if path is None else _LogFile(Path(path))
        self.contents = LogContents() if self._file is None else self._file.contents
        numbered = (*self.contents.answers, *self.contents.undone)
        self._last = max((number for _, number in numbered), default=0)

    @classmethod
    def in_memory(cls, answers: Iterable[Answer[str]] = ()) -> AnswerStore:
        """Return a store without a file that begins with some answers."""
        store = cls()
        store.contents.answers = {answer.key: answer for answer in answers}
        store._last = max((number for _, number in store.contents.answers), default=0)
        return store

    @property
    def path(self) -> Path | None:
        """The log; None in memory."""
        return None if self._file is None else self._file.path

    def snapshot(self) -> Snapshot:
        """Return the answers of now, which later ones do not change."""
        with self.lock:
            return Snapshot(self.version, tuple(self.contents.answers.values()))

    def begin(self, seed: int, **settings: object) -> None:
        """Write the settings of a session."""
        with self.lock:
            self._append([{"event": "session", "seed": seed, **settings}])

    def keep_private(self, epsilon: float | None) -> None:
        """Flip further answers; with a new key, so that earlier answers can only be undone."""
        spent = (*self.contents.answers.values(), *self.contents.withdrawn.values())
        self.flips = Flips(epsilon, spent)

    def add(
        self,
        question: Question[str],
        reply: object,
        annotator: str = "",
        given: Given = Given(),  # noqa: B008  (immutable)
        cells: Sequence[str] = (),
    ) -> Answer[str]:
        """Store an answer under the next number; cells are digests of its rows."""
        with self.lock:
            number = self._last + 1
            answer = read_reply(question, reply)._replace(annotator=annotator, given=given._replace(number=number))
            answer = self.flips.stored(answer)
            record = _as_record(answer, cells)
            try:
                known = read_answer(record, 0)
            except ValueError as error:
                raise InputError(f"{str(error).removesuffix('.').capitalize()}.") from None
            if known.question.items != question.items:
                odd = next(item for item in question.items if item not in known.question.items)
                raise InputError(f"Ids must not begin or end with blanks, as {quoted(odd)} does.")
            self._append([record])
            self._last = number
            self.flips.remember(answer)
            return self.contents.answers[self.session, number]

    def undo(self, key: Key, annotator: str = "") -> Answer[str]:
        """Undo an answer, and return it."""
        with self.lock:
            if key not in self.contents.answers:
                raise InputError(f"There is no answer {key[1]} to undo.")
            self._append([{"event": "undo", "number": key[1], "annotator": annotator}], [key[0]])
            return self.contents.withdrawn[key]

    def change(self, changes: Mapping[Key, object], annotator: str = "") -> list[Answer[str]]:
        """Give other replies to the same questions, all or none of them, and return these answers."""
        with self.lock:
            changed = [self._changed(key, reply) for key, reply in changes.items()]
            self._append(
                [
                    {"event": "change", "number": answer.given.number, **_reply_fields(answer), "annotator": annotator}
                    for answer in changed
                ],
                [answer.given.session for answer in changed],
            )
            for answer in changed:
                self.flips.remember(answer)
            return [self.contents.answers[answer.key] for answer in changed]

    def _changed(self, key: Key, reply: object) -> Answer[str]:
        known = self.contents.answers.get(key)
        if known is None:
            raise InputError(f"There is no answer {key[1]} to change.")
        return self.flips.stored(known.with_reply(reply))

    def label(self, names: Mapping[str, str], annotator: str = "", *, seed: bool = False) -> None:
        """Name the classes of rows; seeds are examples that were given at the start."""
        seeded = {"seed": True} if seed else {}
        records: list[Record] = [{"event": "label", "id": row, "label": name, **seeded} for row, name in names.items()]
        with self.lock:
            self._append([{**record, "annotator": annotator} for record in records])

    def _append(self, records: Sequence[Record], sessions: Sequence[str] | None = None) -> None:
        """Write lines, on disk when this returns, then apply them; an answer of another session keeps its own."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        # The last value of a line is a text: so a line that was cut off can be recognised.
        stamped = [
            {**record, "time": now, "session": session}
            for record, session in zip(records, sessions or [self.session] * len(records), strict=True)
        ]
        first = 0 if self._file is None or not stamped else self._file.write(stamped)
        for k, record in enumerate(stamped):
            self.contents.apply(record, first + k)
        self.version += bool(stamped)

    def check(self) -> None:
        """Refuse to continue where another program changed the log."""
        if self._file is not None:
            self._file.check()

    def close(self) -> None:
        """Close and unlock the log."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _as_record(answer: Answer[str], cells: Sequence[str]) -> Record:
    question, given = answer.question, answer.given
    record: Record = {"event": "answer", "number": given.number, "form": question.form, "items": list(question.items)}
    record |= {**_reply_fields(answer), "annotator": answer.annotator, "why": question.why}
    more = {name: getattr(question if name == "rank" else given, name) for name in (*LIMITS, "comment")}
    record |= {name: value for name, value in more.items() if value not in (None, "")}
    return record | ({"cells": list(cells)} if cells else {})


def _reply_fields(answer: Answer[str]) -> Record:
    return {"nearer": answer.nearer} if answer.groups is None else {"groups": answer.groups}


class Flips:
    """Flips answers, remembers which, and refuses a second answer about a row."""

    def __init__(self, epsilon: float | None, answers: Iterable[Answer[str]]) -> None:
        self.epsilon = epsilon
        self.rate = None if epsilon is None else flip_rate(epsilon)
        self._key = secrets.token_bytes(32)
        # All questions with a flipped answer, and whether it was flipped with this key.
        self.ours: dict[Flip, bool] = {_flip(answer): False for answer in answers if not answer.is_unsure}

    def stored(self, answer: Answer[str]) -> Answer[str]:
        """Return the answer to store: with probability `rate` the opposite one."""
        if self.epsilon is None or answer.is_unsure:
            return answer
        if answer.question.form != "pair":
            raise InputError("Private answers are about pairs.")
        self._refuse_second_look(_flip(answer))
        # Always the same for the same key, rows and annotator.
        (low, high), _ = _flip(answer)
        message = f"{low} {high} {answer.annotator}".encode("utf-8", "surrogatepass")
        is_flipped = int.from_bytes(hmac.digest(self._key, message, "sha256"), "big") < (self.rate or 0.0) * 2.0**256
        stored = answer.with_reply(answer.sign < 0) if is_flipped else answer
        return stored._replace(given=answer.given._replace(epsilon=self.epsilon))

    def remember(self, answer: Answer[str]) -> None:
        """Remember that an answer was stored."""
        if self.epsilon is not None and not answer.is_unsure:
            self.ours[_flip(answer)] = True

    def _refuse_second_look(self, flip: Flip) -> None:
        """Refuse an answer that would reveal more about rows with a flipped answer."""
        if self.ours.get(flip):
            return
        if flip in self.ours:
            raise SpentRowError("How this answer was flipped is forgotten: it can be undone, but not changed.")
        if spent := {row for rows, _ in self.ours for row in rows}.intersection(flip[0]):
            raise SpentRowError(f"Row {min(spent)} is in another private answer. Ask for the next question.")

    def closed_to(self, annotator: str) -> frozenset[str]:
        """Rows in private answers, except in those that this annotator may give again."""
        if self.epsilon is None:
            return frozenset()
        shut = [rows for (rows, who), ours in self.ours.items() if who != annotator or not ours]
        return frozenset(row for rows in shut for row in rows)


def _flip(answer: Answer[str]) -> Flip:
    """What decides about a flip: the order of the two rows does not matter."""
    return tuple(sorted(answer.question.items)), answer.annotator


class _LogFile:
    """The file of a log, locked, to append to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = _open(path)
        try:
            _lock(self._fd, path)
            data = path.read_bytes()
            self.contents = parse_log(data)
            self._refuse_foreign()
            self._end = len(data)
            self._lines = data.count(b"\n") + 1
            if data and not data.endswith(b"\n"):
                self._write(b"\n")
            _sync_folder(path)
        except BaseException:
            os.close(self._fd)
            raise

    def _refuse_foreign(self) -> None:
        contents = self.contents
        if contents.bad_rows and not (contents.epsilons or contents.answers or contents.undone or contents.labels):
            row = contents.bad_rows[0]
            advice = "It is not a log that can be continued; name another file."
            raise InputError(f"{self.path}, line {row.line}: {row.reason}. {advice}")

    def write(self, records: Sequence[Record]) -> int:
        """Write lines, all or none of them, on disk when this returns; return the number of the first."""
        first = self._lines
        self._write(b"".join(json.dumps(record).encode("ascii") + b"\n" for record in records))
        return first

    def _write(self, lines: bytes) -> None:
        self.check()
        try:
            written = 0
            while written < len(lines):
                written += os.write(self._fd, lines[written:])
            os.fsync(self._fd)
        except OSError as error:
            # A full disk may have taken half of it.
            os.ftruncate(self._fd, self._end)
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}.") from None
        self._end += len(lines)
        self._lines += lines.count(b"\n")

    def check(self) -> None:
        """Refuse to continue where another program changed the file: new answers might be lost."""
        opened = os.fstat(self._fd)
        is_same = self.path.exists() and os.path.samestat(opened, self.path.stat())
        if not is_same or opened.st_size != self._end:
            raise FileError(
                f"{self.path} was moved or removed, or changed by another program, while `sdulearn ask` had it "
                "open: nothing more is saved. Stop `sdulearn ask`, put the log back where it was, and start the "
                "same command again."
            )

    def close(self) -> None:
        """Close and unlock the file."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


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
