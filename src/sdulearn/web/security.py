"""Which requests the server accepts: with its key, its name and its origin, and small ones only (extra ``ask``)."""

from __future__ import annotations

import asyncio
import hmac
import re
import socket
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sdulearn.web import LOOPBACK, is_address, is_loopback

MAX_BODY_BYTES = 64_000
_BODY_SECONDS = 30.0
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\[\]:@/\s]+)(:[0-9]{1,5})?")

# With every response: nothing from elsewhere, nothing inline, and no frames around the page.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Guard:
    """Refuses unsafe requests, and adds the safety headers to every response."""

    app: ASGIApp
    key: str
    host: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            # There are no web sockets, and nothing to start or stop.
            return
        if refusal := self._refusal(scope):
            status, reason = refusal
            await PlainTextResponse(reason, status, HEADERS)(scope, receive, send)
            return
        inner = {**scope, "path": "/" + scope["path"].split("/", 2)[2], "raw_path": None}
        await self.app(inner, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return status and reason if a request is refused."""
        headers = _headers(scope)
        host = headers.get("host", "")
        if not allowed_host(host, self.host):
            return 421, "This server does not go by that name."
        parts = scope["path"].split("/", 2)
        if len(parts) < 3 or not hmac.compare_digest(parts[1].encode("utf-8", "replace"), self.key.encode()):
            return 404, "Not found. The address must contain the key that sdulearn ask printed."
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return 403, "The request comes from another page."
        return None if scope["method"] in ("GET", "HEAD") else _refuse_change(headers)


def _refuse_change(headers: dict[str, str]) -> tuple[int, str] | None:
    """Refuse a request to change something that is large or does not come from the page."""
    if "origin" not in headers:
        return 403, "The request does not say which page it comes from."
    if headers.get("content-type", "").split(";")[0].strip() != "application/json":
        return 415, "The request must be JSON."
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) < 10) or int(length) > MAX_BODY_BYTES:
        return 413, "The request is too large."
    return None


def allowed_host(header: str, bound: str) -> bool:
    """Whether the Host of a request is ours: another page may let its name point here."""
    match = _HOST.fullmatch(header.lower())
    if match is None:
        return False
    name = match["name"].strip("[]")
    if is_loopback(bound):
        return name in LOOPBACK
    return name in (*LOOPBACK, bound.lower(), socket.gethostname().lower()) or is_address(name)


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers; a name with two different values has neither of them."""
    headers = Headers(scope=scope)
    return {name: value if set(headers.getlist(name)) == {value} else "\0" for name, value in headers.items()}


async def whole_body(request: Request) -> bytes:
    """Return the body of a request, if it comes soon and is small, whatever length it claims."""
    body = b""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise HTTPException(413, "The request is too large.")
    except TimeoutError:
        raise HTTPException(408, "The request took too long.") from None
    return body


def _with_headers(send: Send) -> Send:
    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                given.setdefault(name, value)
        await send(message)

    return sender
