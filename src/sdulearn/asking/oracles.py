"""Machines that answer: processes that read and write lines of JSON."""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from sdulearn.asking.records import RowQuestion
from sdulearn.errors import FileError, InputError, NothingToAskError, shortened
from sdulearn.io.typed import read
from sdulearn.types import Between, Probability

if TYPE_CHECKING:
    from sdulearn.asking.asker import Asker

# Seconds that a process has to end by itself.
_PATIENCE = 2.0


def open_questions(asker: Asker, number: int, annotator: str = "") -> list[RowQuestion]:
    """Return different questions for one annotator, fewer if no more are left."""
    questions: list[RowQuestion] = []
    for k in range(number):
        try:
            # Each annotator has a question of their own.
            questions.append(asker.next(f"{annotator}\n{k}" if k else annotator))
        except NothingToAskError:
            if not questions:
                raise
            break
    return questions


@dataclass(frozen=True)
class Reply:
    """The reply of a process to a question."""

    answer: bool | int | str | list[int | str | None]
    question: int | None = None  # its number; without numbers, replies are in order
    probability: Probability | None = None  # that the answer is right
    cost: Annotated[float, Between(0, 1e12)] | None = None  # in the currency of the budget
    comment: str = ""
    seconds: float = 0.0  # since the reply before it, or since it was asked


class Judge:
    """A process that answers; it runs until it is closed."""

    def __init__(self, command: str, timeout: float) -> None:
        self.command = command
        self.timeout = timeout
        try:
            pipe, parts = subprocess.PIPE, shlex.split(command) or [""]
            self._process = subprocess.Popen(parts, stdin=pipe, stdout=pipe, encoding="utf-8", errors="replace")
        except (OSError, ValueError) as error:
            raise FileError(f"The command {shortened(command)!r} cannot be run: {error}.") from None
        self._lines: queue.Queue[str] = queue.Queue()
        # Threads: a process that neither reads nor writes must not block this one.
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._writer: threading.Thread | None = None

    def replies(self, questions: Mapping[int, Mapping[str, object]]) -> Iterator[tuple[int, Reply]]:
        """Send questions, each under its number, and yield each reply when it comes."""
        lines = [json.dumps({"question": number, **one}) + "\n" for number, one in questions.items()]
        self._writer = threading.Thread(target=self._write, args=(lines,), daemon=True)
        self._writer.start()
        waiting = list(questions)
        before = time.monotonic()
        while waiting:
            reply = self._read()
            number = waiting[0] if reply.question is None else reply.question
            if number not in waiting:
                raise self._wrong(f"replied to question {number}, which is not open")
            waiting.remove(number)
            now = time.monotonic()
            yield number, replace(reply, seconds=round(now - before, 3))
            before = now

    def close(self) -> None:
        """End the process: close its input, then kill it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError, subprocess.TimeoutExpired):
            if self._writer is None or not self._writer.is_alive():
                self._process.stdin.close()
                self._process.wait(timeout=_PATIENCE)
        self._process.kill()
        self._process.wait()
        for thread, pipe in ((self._writer, self._process.stdin), (self._listener, self._process.stdout)):
            # The process has ended, so reads and writes end soon.
            if thread is not None:
                thread.join(_PATIENCE)
            with suppress(OSError):
                pipe.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in filter(str.strip, self._process.stdout):
            self._lines.put(line)
        self._lines.put("")

    def _write(self, lines: Sequence[str]) -> None:
        assert self._process.stdin is not None
        # If the process has ended, the reader says so.
        with suppress(OSError, ValueError):
            self._process.stdin.write("".join(lines))
            self._process.stdin.flush()

    def _read(self) -> Reply:
        try:
            line = self._lines.get(timeout=self.timeout)
        except queue.Empty:
            raise self._wrong(f"gave no reply within {self.timeout:g} seconds") from None
        if not line:
            raise self._wrong(f"ended (exit code {self._process.wait()}) before it had replied")
        try:
            reply: Reply = read(Reply, json.loads(line))
        except (TypeError, ValueError, RecursionError) as error:
            raise self._wrong(f"replied {shortened(line.strip())!r}, which is not a reply ({error})") from None
        return reply

    def _wrong(self, what: str) -> InputError:
        command = shortened(self.command)
        return InputError(f"The command {command!r} {what}. All answers so far are in the log: start again.")
