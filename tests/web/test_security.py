"""Attacks on the page's server: each must be refused, and the same request without the fault let through."""

import asyncio
import json
import re
import socket

import pyarrow as pa
import pytest

from sdulearn.web import is_loopback
from sdulearn.web.app import STATIC, page_address
from sdulearn.web.security import HEADERS, MAX_BODY_BYTES, allowed_host
from sdulearn.web.things import Things

HOST = {"Host": "127.0.0.1:8000"}
POST = {**HOST, "Origin": "http://127.0.0.1:8000", "Content-Type": "application/json"}


def send_answer(page, headers, **changes):
    """Try to answer; the status, and whether an answer was written."""
    token, _ = page.session.question("")
    body = json.dumps({"annotator": "", "token": token, "reply": "same", **changes}).encode()
    headers = {**headers, "Content-Length": str(len(body))}
    before = page.session.n_answers
    response = page.raw("POST", f"/{page.key}/api/answer", headers, [body])
    return response.status, page.session.n_answers - before


@pytest.mark.parametrize(
    "path",
    ["/", "", "/x/", "/the-kez/", "/the-ke/", "/the-key", "/the-keyy/", "/THE-KEY/", "//the-key/", "/./the-key/",
     "/the-key%2f/", "/\udcff/", "/x/../the-key/"],
)  # fmt: skip
def test_without_the_key_nothing_is_seen(page, path):
    for tail in ("", "api/start", "image/0", "page.js"):
        response = page.raw("GET", (path + tail).encode("utf-8", "replace").decode(), HOST)
        assert response.status == 404
        assert b"points.csv" not in response.body


OURS = ("127.0.0.1", "localhost:8000", "LOCALHOST:8000", "[::1]:8000", "127.0.0.1:65535")
# DNS rebinding: the browser believes that it talks to evil.example.
OTHERS = (
    "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost.evil", "192.168.0.7:8000",
    "localhost:8000@evil", "localhost:123456",
)  # fmt: skip


@pytest.mark.parametrize("host", [*OURS, *OTHERS])
def test_names_that_point_here_from_elsewhere_are_refused(page, host):
    status = 200 if host in OURS else 421
    assert page.raw("GET", f"/{page.key}/", {"Host": host}).status == status
    assert send_answer(page, {**POST, "Host": host, "Origin": f"http://{host}"}) == (status, int(host in OURS))


def test_hosts_of_a_server_for_a_team():
    hosts = (("192.168.0.7:8000", "0.0.0.0"), ("[fe80::1]:8000", "::"), (f"{socket.gethostname()}:8000", "0.0.0.0"))
    for host, bound in (*hosts, ("lab.example:80", "lab.example")):
        assert allowed_host(host, bound)
        assert not allowed_host("evil.example:8000", bound)
    assert is_loopback("127.0.0.2")
    assert not is_loopback("0.0.0.0")
    assert page_address("::1", 80, "k") == "http://[::1]:80/k/"


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [("Origin", origin, 403)
     for origin in ("http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:9000", "", None)]
    # What a page elsewhere can send without asking first.
    + [("Content-Type", kind, 415)
       for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "")],
)  # fmt: skip
def test_other_pages_and_forms_cannot_answer(page, name, value, status):
    headers = {key: found for key, found in {**POST, name: value}.items() if found is not None}
    assert send_answer(page, headers) == (status, 0)


def test_other_pages_cannot_read_and_a_host_or_an_origin_that_is_named_twice_is_refused(page):
    """A proxy may look at the first and we at the last, or the other way round."""
    response = page.raw("GET", f"/{page.key}/api/question", {**HOST, "Origin": "http://evil.example"})
    assert response.status == 403
    assert page.raw("OPTIONS", f"/{page.key}/api/answer", POST).status == 405
    assert not any(name.startswith("access-control") for name in page.get().headers)
    assert page.raw("GET", f"/{page.key}/", [("Host", "127.0.0.1"), ("Host", "evil.example")]).status == 421
    for first, last in (("http://evil.example", POST["Origin"]), (POST["Origin"], "http://evil.example")):
        headers = [*({**POST, "Origin": first}).items(), ("Origin", last)]
        assert page.raw("POST", f"/{page.key}/api/undo", headers, [b"{}"]).status == 403


def test_every_response_carries_the_safety_headers(page):
    paths = ["", "page.js", "api/start", "api/numbers", "image/0", "nothing", "api/answer"]
    responses = [page.get(path) for path in paths]
    responses.append(page.raw("GET", "/", HOST))
    responses.append(page.raw("GET", "/", {"Host": "evil.example"}))
    for response in responses:
        for name, value in HEADERS.items():
            assert response.headers[name.lower()] == value
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy.replace("https://127", "")


def test_large_requests_are_refused(page):
    """The limits are inclusive; without a length, or with a wrong one, the bytes are counted."""
    path = f"/{page.key}/api/undo"
    body = b'{"x": "' + b"x" * (MAX_BODY_BYTES - 9) + b'"}'
    assert len(body) == MAX_BODY_BYTES
    for claimed in ({}, {"Content-Length": str(MAX_BODY_BYTES)}):
        assert page.raw("POST", path, {**POST, **claimed}, [body]).status == 200
        assert page.raw("POST", path, {**POST, **claimed}, [body[:40_000], body[40_000:] + b" "]).status == 413
    for claimed in ("-1", "1e9", "x", "1" * 5000, str(MAX_BODY_BYTES + 1)):
        assert page.raw("POST", path, {**POST, "Content-Length": claimed}, [b"{}"]).status == 413


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"{", b'"x"', b"[" * 50_000, b"\xff\xfe", b"{}", b'{"token": "x", "answer": "same"}',
     b'{"token": true, "answer": "same"}', b'{"token": 1e999, "answer": "same"}', b'{"token": 1, "answer": "maybe"}',
     b'{"token": 1, "answer": ["same"]}', b'{"token": 1, "answer": "same", "annotator": 5}',
     b'{"token": 1, "answer": "same", "annotator": "a\\nb"}',
     b'{"token": 1, "answer": "same", "annotator": "\\u001b[2J"}'],
)  # fmt: skip
@pytest.mark.parametrize("path", ["answer", "undo", "change", "skip", "finish"])
def test_nonsense_is_refused_and_changes_nothing(page, path, body):
    page.session.question("")
    headers = {**POST, "Content-Length": str(len(body))}
    status = page.raw("POST", f"/{page.key}/api/{path}", headers, [body]).status
    assert status == 400 or (path in ("undo", "skip") and status == 200)
    assert page.session.n_answers == 0


def test_texts_of_the_table_are_data_only_links_are_links_and_no_score_is_shown(session, make_page):
    """No text of the table reaches the page but as JSON."""
    nasty = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    images = ["https://a.example/x.png", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"] * 100
    things = Things(session.ids, pa.table({"note": [nasty] * 400, "image": images}), text=["note"], image=["image"])
    assert [things.show(row)[0]["kind"] for row in range(4)] == ["link", "image", "image", "image"]
    page = make_page(session, things, title=nasty, annotator=nasty[:50])
    assert nasty.encode() not in page.get().body
    response = page.get("api/question", annotator="")
    assert response.headers["content-type"] == "application/json"
    question = response.json()["question"]
    assert (set(question), set(question["items"][0])) == ({"token", "form", "items"}, {"id", "parts", "name", "place"})
    assert question["items"][0]["parts"][1]["text"] == nasty


def test_the_page_asks_nobody_else_holds_nothing_inline_and_is_small():
    assert sum(path.stat().st_size for path in STATIC.iterdir()) < 100_000
    html = (STATIC / "index.html").read_text()
    assert not re.search(r"""(src|href)=["'](?!#)[a-z]*:?//""", html)
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+=|\bstyle=|<style", html)
    for name in ("style.css", "page.js"):
        text = (STATIC / name).read_text()
        assert not re.search(r"""(url\(|import\s|fetch\(["'`])\s*["'`]?https?:""", text)


def test_a_body_that_never_ends_is_refused(page, monkeypatch):
    monkeypatch.setattr("sdulearn.web.security._BODY_SECONDS", 0.01)
    sent = []

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    headers = [(name.lower().encode(), value.encode()) for name, value in POST.items()]
    scope = {"type": "http", "method": "POST", "path": f"/{page.key}/api/answer", "headers": headers}
    asyncio.run(page.app(scope, receive, send))
    assert sent[0]["status"] == 408
