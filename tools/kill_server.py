"""Does the server of ``sdulearn ask`` lose an answer, killed at 200 random moments, or under the load of eight people?

    python tools/kill_server.py [--kills 200] [--requests 2000]

Eight people answer, undo, change, merge classes and finish as fast as the server lets them: random pairs in every
other log, match questions, with names for new classes, in the others. After each SIGKILL the log must be readable and
contain all that was acknowledged; then a new server continues it. In the end eight people send 2,000 requests to a
server that is not killed: its answers must be those of its log, all that it acknowledged among them, and no request may
fail.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

# Imported before the servers are forked: each start would take seconds otherwise.
import sdulearn.asking
import sdulearn.cli.ask
import sdulearn.web.app
import sdulearn.workflow.fit  # noqa: F401
from sdulearn.answer_files.log import parse_log, read_log
from sdulearn.cli.main import main as sdulearn_main

PEOPLE = tuple(f"person {k}" for k in range(8))
# Merges change answers of others, so they are under a name of their own.
MERGER = "merger"
KILLS_A_LOG = 20
QUESTIONS = {"random pairs": ("--classes", "2", "--design", "random"), "match": ("--classes", "auto")}
N_ROWS = 10_000
N_KINDS = 5
WRONG = 0.1
# What somebody does after an answer; otherwise they answer the next question.
CHANCES = {"change": 0.08, "undo": 0.08, "merge": 0.02, "finish": 0.01, "look": 0.05}
SERVER_ERROR = 500

Key = tuple[str, int]


class GoneError(Exception):
    """The server was killed."""


@dataclass
class Said:
    """What one person has an acknowledgement for: reply by session and number, None where it was undone."""

    standing: dict[Key, int | str | None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of classes, by the row that was new
    # What was under way when the server died: it may be there or not.
    open: set[Key] = field(default_factory=set)
    requests: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)

    @property
    def n_requests(self) -> int:
        """Number of responses."""
        return sum(self.requests.values())


def fork_server(log: Path, questions: str) -> tuple[int, str]:
    """Start a server in a child of this process, and return its address."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        table = log.with_name("rows.csv")
        code = sdulearn_main(["ask", str(table), *QUESTIONS[questions], "-o", str(log), "--no-browser"])
        os._exit(code)
    os.close(writing)
    text = b""
    while not (address := re.search(r"http://\S+\n", text.decode())) and (part := os.read(reading, 4096)):
        text += part
    os.close(reading)
    assert address is not None
    return child, address[0].strip()


class Person:
    """Sends requests over one connection."""

    def __init__(self, address: str, name: str, said: Said, kinds: dict[str, int]) -> None:
        parts = urlsplit(address)
        self.origin = f"http://{parts.netloc}"
        self.path = parts.path
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=300)
        self.name = name
        self.said = said
        self.kinds = kinds

    def call(self, path: str, annotator: str = "", **data: object) -> dict:
        """Send a request that changes something; return its response, {} if it was refused."""
        body = json.dumps({"annotator": annotator or self.name, **data})
        return self._send("POST", path, body, {"Content-Type": "application/json", "Origin": self.origin})

    def look(self, path: str, **data: object) -> dict:
        """Send a request that changes nothing."""
        return self._send("GET", f"{path}?{urlencode({'annotator': self.name, **data})}", None, {})

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> dict:
        try:
            self.connection.request(method, f"{self.path}api/{path}", body, headers)
            response = self.connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException):
            raise GoneError from None
        self.said.requests[path.partition("?")[0]] += 1
        if response.status >= SERVER_ERROR:
            self.said.failed.append(f"{path}: {response.status} {text[:200]}")
        return json.loads(text) if response.status == http.client.OK else {}

    def work(self, seed: int, most: float = float("inf")) -> None:
        """Answer, undo, change, merge and finish, until the server is gone or so many requests were sent."""
        moves = random.Random(seed)
        end = self.said.n_requests + most
        try:
            question = None
            while self.said.n_requests < end:
                question = question or self.look("question")["question"]
                reply, name = self.answer_to(question, moves)
                result = self.call("answer", token=question["token"], reply=reply, name=name)
                written = result.get("written")
                following = result.get("question")
                if written is not None:
                    self.said.standing[tuple(written)] = reply
                    if name:
                        self.said.names[question["items"][0]["id"]] = name
                    if self.about(tuple(written), question, moves):
                        following = None
                question = following
        except GoneError:
            return

    def answer_to(self, question: dict, moves: random.Random) -> tuple[int | str, str]:
        """Return an answer, sometimes a wrong one, and a name if it opens a class."""
        left, *choices = (self.kinds[item["id"]] for item in question["items"])
        if question["form"] == "pair":
            same = (left == choices[0]) != (moves.random() < WRONG)
            return moves.choices(("same" if same else "different", "unsure"), (20, 1))[0], ""
        reply: int | str = choices.index(left) if left in choices else "none"
        if moves.random() < WRONG:
            reply = moves.randrange(len(choices))
        return reply, f"{self.name} {self.said.n_requests}" if reply == "none" else ""

    def about(self, key: Key, question: dict, moves: random.Random) -> bool:
        """Do something else now and then; return whether the question that is open may be another one now."""
        act = moves.choices((*CHANCES, "answer"), (*CHANCES.values(), 1 - sum(CHANCES.values())))[0]
        if act == "merge" and len(question["items"]) > 2:
            one, other = moves.sample(question["items"][1:], 2)
            self.call("merge", MERGER, id=one["id"], into=other["id"])
        elif act == "finish":
            self.call("finish", labels={})
        elif act == "look":
            for path in ("numbers", "history", "people", "classes"):
                self.look(path)
            return False
        elif act in ("change", "undo"):
            # Until it is acknowledged, both are possible.
            self.said.open.add(key)
            if act == "change":
                if self.call("change", key=key, reply="unsure"):
                    self.said.standing[key] = "unsure"
            elif self.call("undo", key=key):
                self.said.standing[key] = None
            self.said.open.discard(key)
        return act != "answer"


def losses(log: Path, everybody: list[Said]) -> list[str]:
    """Return what was acknowledged and is not in the log."""
    wrong = [f"line {row.line}: {row.reason}" for row in read_log(log).bad_rows]
    lines = log.read_bytes().splitlines(keepends=True)
    # What people said, before others merged classes.
    own = parse_log(b"".join(line for line in lines if f'"annotator": "{MERGER}"'.encode() not in line))
    for said in everybody:
        for key, reply in said.standing.items():
            if key in said.open:
                continue
            there = own.answers.get(key)
            if (None if there is None else there.reply) != reply:
                wrong.append(f"{key}: {reply} was acknowledged, the log has {there}")
    names = {(row["id"], row["label"]) for row in map(_as_record, lines) if row.get("event") == "label"}
    return wrong + [f"{row}: {name} is gone" for said in everybody for row, name in said.names.items() - names]


def _as_record(line: bytes) -> dict:
    """Return the content of a line; {} if it was cut off."""
    try:
        return json.loads(line)
    except ValueError:
        return {}


def n_cut_off(log: Path) -> int:
    """Return the number of lines that were not written to their end."""
    return sum(not _as_record(line) for line in log.read_bytes().splitlines() if line)


def wait_for_an_answer(everybody: list[Said]) -> None:
    """Wait until the new server has acknowledged something, from which the moment of a kill counts."""
    before = sum(said.n_requests for said in everybody)
    for _ in range(500):
        if sum(said.n_requests for said in everybody) > before + len(everybody):
            return
        time.sleep(0.02)


def start_people(
    address: str, everybody: list[Said], kinds: dict[str, int], seed: int, most: float = float("inf")
) -> list[threading.Thread]:
    """Let everybody send requests in a thread of their own."""
    threads = []
    for k, (name, said) in enumerate(zip(PEOPLE, everybody, strict=True)):
        person = Person(address, name, said, kinds)
        threads.append(threading.Thread(target=person.work, args=(1000 * seed + k, most)))
    for thread in threads:
        thread.start()
    return threads


def one_kill(
    log: Path, questions: str, everybody: list[Said], moment: float, seed: int, kinds: dict[str, int]
) -> list[str]:
    """Start a server, kill it while people answer, and return what is lost."""
    child, address = fork_server(log, questions)
    threads = start_people(address, everybody, kinds, seed)
    wait_for_an_answer(everybody)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for thread in threads:
        thread.join()
    return losses(log, everybody)


def under_load(log: Path, questions: str, n_requests: int, kinds: dict[str, int]) -> tuple[list[str], Counter[str]]:
    """Send requests from eight threads; return what is wrong, and the number of requests of each kind."""
    child, address = fork_server(log, questions)
    everybody = [Said() for _ in PEOPLE]
    for thread in start_people(address, everybody, kinds, 0, n_requests / len(PEOPLE)):
        thread.join()
    reader = Person(address, PEOPLE[0], Said(), kinds)
    wrong = losses(log, everybody)
    state = {tuple(answer["key"]): answer["reply"] for answer in _history(reader)}
    if state != {key: answer.reply for key, answer in read_log(log).answers.items()}:
        wrong.append("The answers of the server are not those of its log.")
    for _ in range(600):
        # What computes ahead says nothing where it fails: its estimates never come.
        if not reader.look("numbers")["estimating"]:
            break
        time.sleep(0.1)
    else:
        wrong.append("Estimates never came.")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    failed = [one for said in [*everybody, reader.said] for one in said.failed]
    return [*wrong, *failed], sum((said.requests for said in everybody), Counter())


def _history(reader: Person) -> Iterator[dict]:
    """All answers that the server has."""
    begin, total = 0, 1
    while begin < total:
        page = reader.look("history", begin=begin)
        yield from page["answers"]
        begin, total = begin + len(page["answers"]), page["total"]


def kill_all(folder: Path, n_kills: int, kinds: dict[str, int]) -> list[str]:
    """Kill servers, print a table, and return what is wrong."""
    moments = random.Random(7)
    wrong: list[str] = []
    counts: dict[str, Counter[str]] = {name: Counter() for name in QUESTIONS}
    everybody: list[Said] = []
    for k in range(n_kills):
        questions = list(QUESTIONS)[k // KILLS_A_LOG % len(QUESTIONS)]
        log = folder / f"{k // KILLS_A_LOG}.jsonl"
        if k % KILLS_A_LOG == 0:
            everybody = [Said() for _ in PEOPLE]
        lost = one_kill(log, questions, everybody, moments.uniform(0, 1.5), k, kinds)
        wrong += lost
        counts[questions].update(kills=1, held=not lost)
        if (k + 1) % KILLS_A_LOG == 0 or k + 1 == n_kills:
            failed = [one for said in everybody for one in said.failed]
            wrong += failed
            counts[questions].update(
                answers=sum(len(said.standing) for said in everybody),
                requests=sum(said.n_requests for said in everybody),
                failed=len(failed),
                cut=n_cut_off(log),
            )
            print(f"{k + 1} kills: {questions} {dict(counts[questions])}", flush=True)
    print("| questions | kills | held | answers acknowledged | requests | failed | lines cut off |")
    print("|---|---|---|---|---|---|---|")
    for name, found in counts.items():
        cells = (f"{found[key]:,}" for key in ("kills", "held", "answers", "requests", "failed", "cut"))
        print(f"| {' | '.join([name, *cells])} |")
    return wrong


def main() -> int:
    """Kill servers, then load two; print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--requests", type=int, default=2000)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_KINDS, N_ROWS)
    kinds = {str(k): int(kind) for k, kind in enumerate(y)}
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Enough rows for thousands of pairs.
        rows = np.column_stack([np.arange(N_ROWS), rng.normal(size=(N_ROWS, 4)) + 3 * np.eye(N_KINDS, 4)[y]])
        np.savetxt(folder / "rows.csv", rows, ["%d", *["%.4f"] * 4], ",", header="id,a,b,c,d", comments="")
        if arguments.kills:
            wrong += kill_all(folder, arguments.kills, kinds)
        for questions in QUESTIONS if arguments.requests else ():
            found, counts = under_load(folder / f"load {questions}.jsonl", questions, arguments.requests, kinds)
            wrong += found
            print(f"{counts.total():,} requests, {questions}, {len(found)} wrong: {dict(counts)}", flush=True)
    print("\n".join(wrong[:10]))
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
