"""The server of the page: requests become calls of a session, results JSON (extra ``ask``).

``GET question`` gives the open question of a person, and ``POST answer`` its reply:

    {"token": 7, "form": "match", "items": [{"id": "r9", "parts": [...], "name": "", "place": null}, ...]}
    {"annotator": "ann", "token": 7, "reply": 1, "comment": "", "name": "", "seconds": 4.2}

A reply is what :func:`~sdulearn.answers.records.read_reply` takes:

======== ===================================================== ==================================================
form     items                                                 reply
======== ===================================================== ==================================================
"pair"   two                                                   "same", "different", "unsure"
"match"  the new one, then an example of each class            position of the example from 0, "none", "unsure"
"sort"   three to five, in any order                           a list with the group (a number) of each item in
                                                               this order, null if not placed; "unsure"
"nearer" the new one, then the two examples                    0 or 1, position of the example; "unsure"
======== ===================================================== ==================================================

``name`` is that of the class of an example, "" for other items and classes without a name, and ``place`` the number of
its class from 0, null for other items: classes keep their places and keys. ``seconds`` is null where it is not known
how long an answer took. ``written`` in the response is the key of the stored answer, ``[session, number]``: ``undo``
and ``change`` take it as ``key``. Answers in ``history`` have ``key``, ``form``, ``items`` and ``reply`` alike, with
``title`` and ``picture`` of an item instead of its parts.
"""

from __future__ import annotations

import json
import mimetypes
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sdulearn.answers.records import Answer, flip_rate
from sdulearn.asking.records import RowQuestion, are_examples
from sdulearn.asking.session import LEAST_TIMED, Session
from sdulearn.errors import FileError, InputError, MissingFileError, SdulearnError
from sdulearn.io.typed import plain, read
from sdulearn.web.security import Guard, whole_body
from sdulearn.web.things import Things

STATIC = Path(__file__).parent / "static"
# Headers and address of a request; those of the page are far smaller.
_MAX_HEAD_BYTES = 16_384
# One that sends nothing, or half of a request, costs an open file, of which there are usually 1,024.
_MAX_CONNECTIONS = 800
_MOST_DIGITS = 16
_PAGE = 100
# The report brings its style with it and no scripts.
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

# What the classes of all rows are offered as.
CLASS_FILES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

Json = dict[str, Any]
# Windows may have another type, and then browsers would not run the script.
mimetypes.add_type("text/javascript", ".js")


@dataclass
class Page:
    """What the page shows and does: plain data in, plain data out."""

    READS = ("start", "question", "history", "numbers", "people", "classes")
    WRITES = ("answer", "undo", "change", "finish")
    # Methods of the session and their arguments; the response is the open question.
    ACTIONS: ClassVar[dict[str, dict[str, type]]] = {
        "skip": {"token": int},
        "example": {"token": int, "position": int},
        "rename": {"id": str, "name": str},
        "merge": {"id": str, "into": str},
        "split": {"id": str},
    }

    session: Session
    things: Things
    title: str
    annotator: str = ""  # default name of a person
    # Fits a model, given names of classes by row id, and returns what to show of it.
    fit: Callable[[Mapping[str, str]], Json] | None = None
    # Writes the classes of all rows as "csv" or "xlsx", by the last fit.
    export: Callable[[str], Path | None] | None = None
    wording: str = ""  # the question in the user's words
    instructions: str = ""  # in Markdown
    language: str = "en"
    class_names: Sequence[str] = ()  # to choose from
    is_demo: bool = False  # the page begins with what to do
    report: Path | None = None  # of the last fit
    answered: Path | None = None  # the rows that were asked about, from the last fit
    _fitting: threading.Lock = field(default_factory=threading.Lock)

    def start(self, given: Json) -> Json:
        """Return what the page needs once."""
        session = self.session
        own = ("title", "annotator", "wording", "instructions", "language", "class_names")
        return {
            **{name: getattr(self, name) for name in own},
            "people": session.people(),
            "log": str(session.store.path),
            "demo": self.is_demo,
            "need_name": session.for_team,
            "flip_rate": None if session.epsilon is None else flip_rate(session.epsilon),
            "design": session.asker.design,
            "per_person": session.goal.per_person,
            "until": session.goal.until,
            "least_timed": LEAST_TIMED,
        }

    def question(self, given: Json) -> Json:
        """Return the open question of a person, and nothing about the model."""
        name = _name(given)
        shown = reason = None
        try:
            token, question = self.session.question(name)
            shown = {"token": token, "form": question.form, "items": self._items(question, self._thing)}
        except SdulearnError as error:
            reason = str(error)
        counts = {"answers": self.session.n_answers, "own": self.session.n_of(name), "last": self.session.last_of(name)}
        return {"question": shown, "reason": reason, "done": self.session.is_done(name), **counts}

    def answer(self, given: Json) -> Json:
        """Store an answer, and return the next question."""
        texts = _text(given, "comment"), _text(given, "name")
        token, seconds = _field(given, "token", int), _field(given, "seconds", float | None)
        written = self.session.answer(_name(given), token, given.get("reply"), *texts, seconds)
        return {"written": None if written is None else written.key, **self.question(given)}

    def act(self, name: str, given: Json) -> Json:
        """Do one of the actions."""
        values = [_field(given, key, kind) for key, kind in self.ACTIONS[name].items()]
        getattr(self.session, name)(_name(given), *values)
        return self.question(given)

    def undo(self, given: Json) -> Json:
        """Undo an answer of a person: the one that the page names, so that a request sent twice undoes one."""
        key = _field(given, "key", tuple[str, int] | None)
        return {"undone": self.session.undo(_name(given), key) is not None, **self.question(given)}

    def change(self, given: Json) -> Json:
        """Change an earlier answer."""
        key = _field(given, "key", tuple[str, int])
        changed = self.session.change(key, given.get("reply"), _name(given))
        return {"answer": self._logged([changed], given)[0]}

    def history(self, given: Json) -> Json:
        """Return answers, the last first, a page at a time."""
        everything = self.session.history()
        begin = _whole_number(given.get("begin", "0"))
        if begin < 0:
            raise InputError("`begin` must be a whole number.")
        page = everything[begin : begin + _PAGE]
        return {"answers": self._logged(page, given), "total": len(everything), "begin": begin}

    def numbers(self, given: Json) -> Json:
        """Return counts, classes, accuracy, answers to look at again, and advice."""
        numbers = self.session.numbers()
        return plain(
            {**numbers, "pace": self.session.pace(_name(given)), "review": self._logged(numbers["review"], given)}
        )

    def people(self, given: Json) -> Json:
        """Return agreement and error rates."""
        return self.session.agreement()

    def classes(self, given: Json) -> Json:
        """Return examples of each class, to name it."""
        shown = []
        for found in self.session.classes():
            examples = [self._thing(row) for row in found.examples]
            names = {"ids": [one["id"] for one in examples], **self._class_of(found.examples[0])}
            shown.append({**found._asdict(), **names, "examples": examples})
        # One that an answer of a moment ago has removed has no place.
        return plain({"classes": sorted(shown, key=lambda one: (one["place"] is None, one["place"]))})

    def finish(self, given: Json) -> Json:
        """Name the classes, then fit."""
        labels = _field(given, "labels", dict[str, str])
        names = {row_id: name for row_id, label in labels.items() if (name := label.strip())}
        self._refuse_shared_names(names)
        self.session.label(names, _name(given))
        if self.fit is None:
            raise InputError("This page fits no model.")
        with self._fitting:
            # Only these names: earlier ones may have been changed.
            result = self.fit(names)
            self.report = Path(result["report"])
            self.answered = Path(result["answered"])
            asked = [{**one, "thing": self._end(self.session.rows[one["id"]])} for one in result["asked"]]
            classes = [self._class_fitted(one) for one in result["classes"]]
            return {**result, "asked": asked, "classes": classes}

    def _class_fitted(self, found: Json) -> Json:
        """Return a class of the model with examples, and its place in the questions if it has no name there."""
        rows = [self.session.rows[name] for name in found["ids"]]
        places = Counter(self.session.place_of(row) for row in rows if not self.session.name_of(row))
        place = max(places, key=places.__getitem__, default=None)
        return {**found, "place": place, "examples": list(map(self._end, rows))}

    def _refuse_shared_names(self, names: Mapping[str, str]) -> None:
        """Refuse one name for two classes: it would contradict the answers."""
        examples = ([self.things.ids[row] for row in found.examples] for found in self.session.classes())
        times = Counter(name for ids in examples for name in {names[one] for one in ids if one in names})
        if shared := sorted(name for name, n in times.items() if n > 1):
            raise InputError(f"Two classes are named {shared[0]!r}. Give them different names, or leave one empty.")

    def _items(self, question: RowQuestion, show: Callable[[int], Json]) -> list[Json]:
        """Return the items with name and place of the class of examples; those of the others would be an answer."""
        unknown = {"name": "", "place": None}
        items = zip(question.items, are_examples(question), strict=True)
        return [{**show(row), **(self._class_of(row) if is_example else unknown)} for row, is_example in items]

    def _class_of(self, row: int) -> Json:
        return {"name": self.session.name_of(row), "place": self.session.place_of(row)}

    def _thing(self, row: int) -> Json:
        return {"id": self.things.ids[row], "parts": self.things.show(row)}

    def _logged(self, answers: Sequence[Answer[str]], given: Json) -> list[Json]:
        """Return answers for a list, with whether this person may change them."""
        name = _name(given)
        alone = self.session.is_alone(name)
        changeable = self.session.epsilon is None
        listed = []
        for answer in answers:
            rows = [self.session.rows[row_id] for row_id in answer.question.items]
            items = self._items(answer.about(rows).question, self._end)
            may_change = changeable and (alone or answer.annotator == name)
            when = {"key": answer.key, "annotator": answer.annotator, "time": answer.given.time}
            asked = {"form": answer.question.form, "items": items, "reply": answer.reply}
            listed.append({**when, **asked, "comment": answer.given.comment, "may_change": may_change})
        return listed

    def _end(self, row: int) -> Json:
        return {"id": self.things.ids[row], "title": self.things.title(row), "picture": self.things.thumbnail(row)}


def serve(page: Page, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve a page until interrupted; ``ready`` is called with its address."""
    # Only those who know it may see the page.
    key = secrets.token_urlsafe(18)
    with _listening(host, port) as listener:
        ready(page_address(host, listener.getsockname()[1], key))
        settings = uvicorn.Config(
            make_app(page, key, host),
            http="h11",
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MAX_CONNECTIONS,
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
            timeout_graceful_shutdown=2,
        )
        uvicorn.Server(settings).run(sockets=[listener])


def page_address(host: str, port: int, key: str) -> str:
    """Return the address to open."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/{key}/"


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=both)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Cannot listen on {host}, port {port}: {reason}. Give another `port`, or none.") from None


def make_app(page: Page, key: str, host: str) -> Guard:
    """Return the ASGI application."""

    def sent(path: Path | None, **options: Any) -> Response:
        none = JSONResponse({"error": "No model was fitted yet."}, 404)
        return none if path is None else FileResponse(path, **options)

    def report(request: Request) -> Response:
        headers = {"Content-Security-Policy": _REPORT_POLICY}
        return sent(page.report, headers=headers, media_type="text/html; charset=utf-8")

    def answered(request: Request) -> Response:
        return sent(page.answered, media_type="text/csv; charset=utf-8", filename="answered.csv")

    def classes(request: Request) -> Response:
        kind = request.path_params["kind"]
        path = page.export(kind) if page.export is not None and kind in CLASS_FILES else None
        return sent(path, media_type=CLASS_FILES.get(kind), filename=f"classes.{kind}")

    def answers(request: Request) -> Response:
        headers = {"Content-Disposition": 'attachment; filename="answers.csv"'}
        return Response(page.session.as_csv(), headers=headers, media_type="text/csv; charset=utf-8")

    def image(request: Request) -> Response:
        row, place = (_whole_number(request.path_params.get(name, "0")) for name in ("row", "place"))
        data, kind = page.things.picture(row, place)
        return Response(data, media_type=kind)

    def audio(request: Request) -> Response:
        path, kind = page.things.sound(_whole_number(request.path_params["row"]))
        return FileResponse(path, media_type=kind)

    routes = [
        Route("/report", report),
        Route("/answered", answered),
        Route("/answers", answers),
        Route("/classes.{kind}", classes),
        Route("/image/{row}", image),
        Route("/image/{row}/{place}", image),
        Route("/audio/{row}", audio),
        *(Route(f"/api/{name}", _endpoint(getattr(page, name))) for name in page.READS),
        *(Route(f"/api/{name}", _endpoint(getattr(page, name)), methods=["POST"]) for name in page.WRITES),
        *(Route(f"/api/{name}", _endpoint(partial(page.act, name)), methods=["POST"]) for name in page.ACTIONS),
        Mount("/", StaticFiles(directory=STATIC, html=True)),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={SdulearnError: _refused}), key, host)


def _endpoint(function: Callable[[Json], Json]) -> Callable[[Request], Awaitable[Response]]:
    """Call a function in a thread: while one answer is written to disk, others need not wait."""

    async def respond(request: Request) -> Response:
        if request.method == "POST":
            body = await whole_body(request)
            try:
                given: Json = read(dict[str, Any], json.loads(body))
            except (ValueError, TypeError, RecursionError):
                raise InputError("The request must be a JSON object.") from None
        else:
            given = dict(request.query_params)
        return JSONResponse(await run_in_threadpool(function, given))

    return respond


def _refused(request: Request, error: Exception) -> Response:
    """Say why something cannot be done or shown."""
    if not request.url.path.startswith(("/image/", "/audio/")):
        return JSONResponse({"error": str(error)}, 507 if isinstance(error, FileError) else 400)
    missing = isinstance(error, MissingFileError)
    return JSONResponse({"error": "There is no such file." if missing else str(error)}, 404 if missing else 415)


def _field(given: Json, name: str, kind: Any) -> Any:
    """Return one checked value of a request."""
    try:
        return read(kind, given.get(name))
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}` of the request: {error}.") from None


def _text(given: Json, name: str) -> str:
    return str(_field({name: "", **given}, name, str)).strip()


def _name(given: Json) -> str:
    return _text(given, "annotator")


def _whole_number(text: str) -> int:
    """Return a number of an address; -1 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS else -1
