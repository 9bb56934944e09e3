"""A session on random pairs, and a client of the page's server."""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import pytest

from sdulearn.answer_files.log import read_log
from sdulearn.answer_files.store import AnswerStore
from sdulearn.asking.session import Session, continue_asker
from sdulearn.web.app import Page, make_app
from sdulearn.web.things import Things

KEY = "the-key"


@pytest.fixture
def open_session(tmp_path):
    """Open a session on a log; all are closed in the end."""
    opened = []

    def open_(name="log.jsonl", n_points=400, for_team=False, goal=None, **options):
        ids = [f"r{k}" for k in range(n_points)]
        rows = np.random.default_rng(0).normal(size=(n_points, 2))
        log = AnswerStore(tmp_path / name)
        options = {"design": "random", "repeat_share": 0, "random_state": 0, **options}
        session = Session(continue_asker(rows, log, ids, **options), for_team, goal)
        opened.append(session)
        return session

    yield open_
    for session in opened:
        session.close()
    for session in {session.store.path: session for session in opened}.values():
        # Whatever a test did: what is in memory is what the log says.
        assert session.store.contents == read_log(session.store.path)


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
        if not bodies:
            # The browser waits for its response.
            await asyncio.Event().wait()
        return bodies.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Response(sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:]))


class Client:
    """The page's server, and what a browser would say to it."""

    key = KEY

    def __init__(self, session, things=None, title="points.csv", host="127.0.0.1", **options):
        self.session = session
        self.page = Page(session, things or Things(session.ids), title, **options)
        self.app = make_app(self.page, KEY, host)

    def get(self, path="", **query):
        tail = "?" + urlencode(query) if query else ""
        return request(self.app, "GET", f"/{KEY}/{path}{tail}", [("Host", "127.0.0.1:80")])

    def post(self, path, data):
        headers = [("Host", "127.0.0.1:80"), ("Origin", "http://127.0.0.1:80"), ("Content-Type", "application/json")]
        body = json.dumps(data).encode()
        return request(self.app, "POST", f"/{KEY}/api/{path}", [*headers, ("Content-Length", str(len(body)))], [body])

    def raw(self, method, path, headers, pieces=(b"",)):
        headers = headers.items() if isinstance(headers, dict) else headers
        return request(self.app, method, path, list(headers), pieces)

    def ask(self, name=""):
        return self.get("api/question", annotator=name).json()["question"]

    def answer(self, answer, name=""):
        token = self.ask(name)["token"]
        return self.post("answer", {"annotator": name, "token": token, "reply": answer}).json()


@pytest.fixture
def page(session):
    return Client(session)


@pytest.fixture
def make_page():
    return Client
