"""A session with a stand-in for the engine, and a client of the page's server."""

from __future__ import annotations

import asyncio
import json
import random
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from sdulearn.errors import InputError
from sdulearn.io.answer_log import ANSWER_CODES, AnswerLog
from sdulearn.web.app import make_app
from sdulearn.web.session import AskingSession
from sdulearn.web.things import Things
from sdulearn.web.views import PageViews

KEY = "the-key"


class Record(NamedTuple):
    """A question, answered or not."""

    left: int
    right: int
    answer: int
    annotator: str
    kind: str
    number: int


class StandIn:
    """Random pairs with the methods of an Asker: the page must not depend on how questions are chosen."""

    private = None

    def __init__(self, n_points, answers, most=10**6):
        self.n_points = n_points
        self.most = most
        self.records = []
        self.pending = {}
        self.skipped = []
        self.prepared = []
        rows = zip(*answers.values(), strict=True) if answers else ()
        for number, (left, right, answer, annotator, kind) in enumerate(rows, 1):
            self.records.append(Record(left, right, ANSWER_CODES[answer], annotator, kind, number))

    def next(self, annotator=None):
        if len(self.records) + len(self.pending) + len(self.skipped) >= self.most and annotator not in self.pending:
            raise InputError("Nothing is left to ask.")
        if annotator not in self.pending:
            open_ = [*self.records, *self.pending.values(), *self.skipped]
            number = 1 + max((one.number for one in open_), default=0)
            left, right = random.Random(number).sample(range(self.n_points), 2)
            self.pending[annotator] = Record(left, right, 0, "", "random", number)
        return self.pending[annotator]

    def prepare(self, question, annotator=None):
        self.prepared.append(question)

    def stored_answer(self, question, answer, annotator=None):
        return answer

    def release(self, annotator=None):
        self.pending.pop(annotator, None)

    def tell(self, question, answer, annotator=None):
        assert all(one.number != question.number for one in self.records), "answered twice"
        self.pending = {who: one for who, one in self.pending.items() if one.number != question.number}
        code = ANSWER_CODES[answer]
        self.records.append(
            Record(question.left, question.right, code, annotator or "", question.kind, question.number)
        )

    def place(self, number):
        (place,) = [k for k, one in enumerate(self.records) if one.number == number]
        return place

    def withdraw(self, number):
        record = self.records.pop(self.place(number))
        self.pending.pop(record.annotator or None, None)
        return record

    def change(self, number, answer):
        place = self.place(number)
        self.records[place] = self.records[place]._replace(answer=ANSWER_CODES[answer])
        self.pending.pop(self.records[place].annotator or None, None)

    def skip(self, annotator=None):
        if annotator in self.pending:
            self.skipped.append(self.pending.pop(annotator))

    def accuracy(self, first=None):
        if len(self.records[:first]) < 4:
            raise InputError("too few")
        return SimpleNamespace(value=0.9 + len(self.records[:first]) / 1000, low=0.8, high=0.95)

    def classes(self):
        if not self.records:
            return []
        return [
            SimpleNamespace(number=1, n_points=3, share=0.7, examples=(0, 1)),
            SimpleNamespace(number=2, n_points=2, share=float("nan"), examples=(2,)),
        ]

    def advice(self):
        return SimpleNamespace(n_next=50, expected_gain=0.012, worth_going_on=True)

    def doubtful(self):
        return [(one.number, 0.1) for one in self.records if one.answer == 0]

    def contradictions(self):
        return []

    def leak(self):
        return ""


@pytest.fixture
def open_session(tmp_path):
    """Open a session on a log; all are closed in the end."""
    opened = []

    def open_(name="log.jsonl", n_points=20, most=10**6, engine=None, for_team=False):
        ids = [f"r{k}" for k in range(n_points)]
        log = AnswerLog(tmp_path / name)
        make = engine or (lambda answers: StandIn(n_points, answers, most))
        session = AskingSession(make, log, ids, for_team)
        opened.append(session)
        return session

    yield open_
    for session in opened:
        session.close()


@pytest.fixture
def session(open_session):
    return open_session()


class Response(NamedTuple):
    """What the server sent."""

    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)


def request(app, method, path, headers, pieces=(b"",)):
    """One request to an ASGI application, byte for byte as given: no client in between tidies it up."""
    sent = []
    bodies = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    bodies[-1]["more_body"] = False
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 80),
    }

    async def receive():
        return bodies.pop(0) if bodies else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Response(sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:]))


class Page:
    """The page's server, and what a browser would say to it."""

    key = KEY

    def __init__(self, views, host="127.0.0.1"):
        self.views = views
        self.app = make_app(views, KEY, host)

    def get(self, path="", **query):
        tail = "?" + urlencode(query) if query else ""
        return request(self.app, "GET", f"/{KEY}/{path}{tail}", [("Host", "127.0.0.1:80")])

    def post(self, path, data):
        headers = [("Host", "127.0.0.1:80"), ("Origin", "http://127.0.0.1:80"), ("Content-Type", "application/json")]
        body = json.dumps(data).encode()
        return request(self.app, "POST", f"/{KEY}/api/{path}", [*headers, ("Content-Length", str(len(body)))], [body])

    def raw(self, method, path, headers, pieces=(b"",)):
        return request(self.app, method, path, list(headers.items()), pieces)

    def ask(self, name=""):
        return self.get("api/question", annotator=name).json()["question"]

    def answer(self, answer, name=""):
        token = self.ask(name)["token"]
        return self.post("answer", {"annotator": name, "token": token, "answer": answer}).json()


@pytest.fixture
def page(session):
    things = Things(session.ids, pictures=None)
    return Page(PageViews(session, things, "points.csv"))


@pytest.fixture
def make_page():
    return Page
