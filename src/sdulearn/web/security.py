"""Who may talk to the server: the key in the address, the names it goes by, the page's own origin, small requests."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY_BYTES = 64_000
_BODY_SECONDS = 30.0
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\[\]:@/\s]+)(:[0-9]{1,5})?")
LOOPBACK = ("127.0.0.1", "localhost", "::1")

# Nothing from elsewhere, nothing inline, nobody may frame the page. Sent with every response.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets a request through to the app if it may come in, and sends the safety headers with every response."""

    def __init__(self, app: App, key: str, host: str) -> None:
        self.app = app
        self.key = key
        self.host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            # There are no sockets here, and nothing to start or stop.
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        path = scope["path"].split("/", 2)[2]
        inner = {**scope, "path": "/" + path, "raw_path": None}
        try:
            body = await asyncio.wait_for(_whole_body(receive), _BODY_SECONDS)
        except TimeoutError:
            await _refuse(send, 408, "The request took too long.")
            return
        if body is None:
            await _refuse(send, 413, "The request is too large.")
            return
        await self.app(inner, _replayed(body, receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason, where a request may not come in."""
        headers = _headers(scope)
        host = headers.get("host", "")
        if not allowed_host(host, self.host):
            return 421, "This server does not go by that name."
        parts = scope["path"].split("/", 2)
        if len(parts) < 3 or not hmac.compare_digest(parts[1].encode("utf-8", "replace"), self.key.encode()):
            return 404, "Not found. The address must hold the key that sdulearn ask printed."
        own = f"http://{host}"
        origin = headers.get("origin")
        if origin is not None and origin != own:
            return 403, "The request comes from another page."
        if scope["method"] not in ("GET", "HEAD"):
            return _refuse_change(headers)
        return None


def _refuse_change(headers: dict[str, str]) -> tuple[int, str] | None:
    """What changes something must say that it comes from the page, and be small."""
    if "origin" not in headers:
        return 403, "The request does not say which page it comes from."
    if headers.get("content-type", "").split(";")[0].strip() != "application/json":
        return 415, "The request must be JSON."
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) < 10) or int(length) > MAX_BODY_BYTES:
        return 413, "The request is too large."
    return None


def allowed_host(header: str, bound: str) -> bool:
    """Whether the Host of a request is one of ours: a page elsewhere may have its own name point here."""
    found = _HOST.fullmatch(header.lower())
    if found is None:
        return False
    name = found["name"].strip("[]")
    if is_loopback(bound):
        return name in LOOPBACK
    return name in (*LOOPBACK, bound.lower(), socket.gethostname().lower()) or _is_address(name)


def is_loopback(host: str) -> bool:
    """Whether a server bound to it is reached from this machine alone."""
    return host in LOOPBACK or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _whole_body(receive: Receive) -> bytes | None:
    """The body of a request; None where it goes on beyond what is allowed, whatever length it claims."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body at once, and then what comes after it: responses stop when that says that nobody waits for them."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed


def _with_headers(send: Send) -> Send:
    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            named = {name for name, _ in given}
            more = [(name, value) for name, value in _encoded(HEADERS.items()) if name not in named]
            message = {**message, "headers": given + more}
        await send(message)

    return sender


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = reason.encode()
    headers = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **HEADERS}
    await send({"type": "http.response.start", "status": status, "headers": _encoded(headers.items())})
    await send({"type": "http.response.body", "body": body})


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers]


def _headers(scope: Scope) -> dict[str, str]:
    """The request's headers; a name that comes twice with different values counts as neither."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1")
        found[name] = value if found.get(name, value) == value else "\0"
    return found
