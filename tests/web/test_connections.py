"""Connections to the real server that send nothing, or half of something."""

import asyncio
import socket

import pytest
import uvicorn

from sdulearn.web import security

REQUEST = b"GET /the-key/api/start HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def read_until_closed(app, sent):
    """All that comes back on a connection after each of these pieces, until the server hangs up."""
    config = uvicorn.Config(app, http=security.PageConnection, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        found = []
        for piece in sent:
            writer.write(piece)
            found.append(await reader.readuntil(b"}") if piece.endswith(b"\r\n\r\n") else b"")
        found.append(await reader.read())
        writer.close()
        server.should_exit = True
        await serving
    return found


@pytest.mark.parametrize(
    "sent", [[], [REQUEST[:30]], [REQUEST, REQUEST[:30]]], ids=["nothing", "half", "one and a half"]
)
def test_a_connection_must_send_a_whole_request_soon(page, monkeypatch, sent):
    monkeypatch.setattr(security, "_REQUEST_SECONDS", 0.05)
    found = asyncio.run(read_until_closed(page.app, sent))
    assert found[-1] == b""
    assert [b"points.csv" in one for one in found[:-1]] == [piece == REQUEST for piece in sent]


def test_a_request_may_take_its_time(page, monkeypatch):
    """The limit is for the request, not for the answer to it."""
    monkeypatch.setattr(security, "_REQUEST_SECONDS", 0.05)

    async def slow(scope, receive, send):
        await asyncio.sleep(0.2)
        await page.app(scope, receive, send)

    last = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    found = asyncio.run(read_until_closed(slow, [last]))
    assert b"points.csv" in found[0]
