"""Kill the server of ``sdulearn ask`` at 200 random moments while three people answer: is anything lost?

    python tools/kill_server.py [--kills 200]

Three people answer, change and take back as fast as the server lets them: random pairs in every other log, match
questions, with names for new classes, in the others. After each SIGKILL the log must be readable and hold all that was
acknowledged; then a new server goes on with it.
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
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

# Imported before the servers are forked: each start would take seconds otherwise.
import sdulearn.asking
import sdulearn.cli.ask
import sdulearn.web.app  # noqa: F401
from sdulearn.answer_files.log import read_log
from sdulearn.cli.main import main as sdulearn_main

PEOPLE = ("ann", "bob", "cid")
KILLS_A_LOG = 20
QUESTIONS = {"random pairs": ("--classes", "2", "--design", "random"), "match": ("--classes", "auto")}


@dataclass
class Said:
    """What one person has an acknowledgement for: answer by (session, number), None where it was taken back."""

    standing: dict[tuple[str, int], int | str | None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of classes, by the row that was new
    moved: set[str] = field(default_factory=set)  # rows that left their class since
    # What was under way when the server died: it may be there or not.
    open: set[tuple[str, int]] = field(default_factory=set)
    n_requests: int = 0


def fork_server(log: Path, questions: str) -> tuple[int, str]:
    """A server in a child of this process, and its address."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        code = sdulearn_main(
            ["ask", str(log.with_name("rows.csv")), *QUESTIONS[questions], "-o", str(log), "--no-browser"]
        )
        os._exit(code)
    os.close(writing)
    text = b""
    while not (address := re.search(r"http://\S+\n", text.decode())) and (part := os.read(reading, 4096)):
        text += part
    os.close(reading)
    return child, address[0].strip()


class Person:
    """Sends requests over one connection."""

    def __init__(self, address: str, name: str, said: Said) -> None:
        parts = urlsplit(address)
        self.origin = f"http://{parts.netloc}"
        self.path = parts.path
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
        self.name = name
        self.said = said

    def call(self, path: str, **data: object) -> dict:
        body = json.dumps({"annotator": self.name, **data})
        headers = {"Content-Type": "application/json", "Origin": self.origin}
        self.connection.request("POST", f"{self.path}api/{path}", body, headers)
        result = json.loads(self.connection.getresponse().read())
        self.said.n_requests += 1
        return result

    def work(self, seed: int) -> None:
        """Answer, and now and then change or take back, until the server is gone."""
        moves = random.Random(seed)
        try:
            question = self.call("skip", token=0)["question"]
            while question:
                said, name = self.answer_to(question, moves)
                left = question["items"][0]["id"]
                result = self.call("answer", token=question["token"], reply=said, name=name)
                question = result["question"]
                key = tuple(result["written"])
                self.said.standing[key] = said
                if name:
                    self.said.names[left] = name
                if moves.random() < 0.2:
                    self.said.moved.add(left)
                    question = self.about(key, moves) or question
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            return

    def answer_to(self, question: dict, moves: random.Random) -> tuple[int | str, str]:
        """Any answer, and a name where it opens a class."""
        if question["form"] == "pair":
            return moves.choice(("same", "different", "unsure")), ""
        # Mostly a class that was found: with very many of them each question would take long.
        said = moves.choice(
            (*range(len(question["items"]) - 1), *(["none"] if len(question["items"]) < 13 else []), "unsure")
        )
        return said, f"{self.name} {self.said.n_requests}" if said == "none" else ""

    def about(self, key: tuple[str, int], moves: random.Random) -> dict | None:
        """Change an answer or take it back; until that is acknowledged both are possible."""
        self.said.open.add(key)
        if moves.random() < 0.5:
            self.call("change", key=key, reply="unsure")
            self.said.standing[key] = "unsure"
            question = None
        else:
            question = self.call("undo")["question"]
            self.said.standing[key] = None
        self.said.open.discard(key)
        return question


def losses(log: Path, everybody: list[Said]) -> list[str]:
    """What was acknowledged and is not in the log."""
    found = read_log(log)
    wrong = [f"line {row.line}: {row.reason}" for row in found.bad_rows]
    for said in everybody:
        for key, word in said.standing.items():
            there = found.answers.get(key)
            if key in said.open:
                continue
            if (there is None) != (word is None) or (there is not None and there.reply != word):
                wrong.append(f"{key}: {word} was acknowledged, the log has {there}")
    names = [item for said in everybody for item in said.names.items()]
    moved = set().union(*(said.moved for said in everybody))
    # A row that is asked about again may be named again.
    kept = {row for row, name in names if found.labels.get(row) == name}
    return wrong + [f"{row}: {name} is gone" for row, name in names if row not in kept | moved]


def wait_for_an_answer(everybody: list[Said]) -> None:
    """The moment of a kill counts from the first acknowledgement of the new server."""
    before = sum(said.n_requests for said in everybody)
    for _ in range(500):
        if sum(said.n_requests for said in everybody) > before + len(everybody):
            return
        time.sleep(0.02)


def one_kill(log: Path, questions: str, everybody: list[Said], moment: float, seed: int) -> None:
    child, address = fork_server(log, questions)
    threads = []
    for k, (name, said) in enumerate(zip(PEOPLE, everybody, strict=True)):
        person = Person(address, name, said)
        threads.append(threading.Thread(target=person.work, args=(1000 * seed + k,)))
    for thread in threads:
        thread.start()
    wait_for_an_answer(everybody)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    arguments = parser.parse_args()
    moments = random.Random(7)
    wrong: list[str] = []
    counts = {name: Counter() for name in QUESTIONS}
    with tempfile.TemporaryDirectory() as folder:
        # Enough rows for thousands of pairs.
        rows = np.random.default_rng(0).normal(size=(10_000, 4))
        np.savetxt(Path(folder, "rows.csv"), rows, "%.4f", ",", header="a,b,c,d", comments="")
        for k in range(arguments.kills):
            questions = list(QUESTIONS)[k // KILLS_A_LOG % len(QUESTIONS)]
            log = Path(folder, f"{k // KILLS_A_LOG}.jsonl")
            if k % KILLS_A_LOG == 0:
                everybody = [Said() for _ in PEOPLE]
            one_kill(log, questions, everybody, moments.uniform(0, 1.5 if questions == "match" else 0.5), k)
            lost = losses(log, everybody)
            wrong += lost
            found = counts[questions]
            found.update(kills=1, held=not lost)
            if (k + 1) % KILLS_A_LOG == 0 or k + 1 == arguments.kills:
                found.update(
                    answers=sum(len(said.standing) for said in everybody),
                    requests=sum(said.n_requests for said in everybody),
                    half=len(read_log(log).half_written),
                )
                print(f"{k + 1} kills: {questions} {dict(found)}", flush=True)
    lines = [
        "| questions | kills | held | answers acknowledged | requests | lines cut off |",
        "|---|---|---|---|---|---|",
    ]
    for name, found in counts.items():
        lines.append(
            "| "
            + " | ".join([name, *(f"{found[key]:,}" for key in ("kills", "held", "answers", "requests", "half"))])
            + " |"
        )
    print("\n".join([*lines, *wrong[:10]]))


if __name__ == "__main__":
    main()
