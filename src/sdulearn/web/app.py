"""The server's routes: requests to calls of a session, results to JSON. It needs the extra ``ask``."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sdulearn.errors import FileError, MissingFileError, SdulearnError
from sdulearn.web.security import App, Guard
from sdulearn.web.views import PageViews

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Of the number of a row.
_MOST_DIGITS = 16

Json = dict[str, Any]


def make_app(views: PageViews, key: str, host: str) -> App:
    """The whole ASGI application."""
    pages = {path.name: path for path in STATIC.iterdir() if path.suffix in _TYPES}
    routes = [
        Route("/", functools.partial(_file, pages["index.html"])),
        *(Route(f"/{name}", functools.partial(_file, path)) for name, path in pages.items()),
        Route("/report", functools.partial(_report, views)),
        Route("/image/{row}", functools.partial(_image, views)),
        *(Route(f"/api/{name}", _getter(function)) for name, function in views.readers().items()),
        *(Route(f"/api/{name}", _poster(function), methods=["POST"]) for name, function in views.writers().items()),
    ]
    return Guard(Starlette(routes=routes), key, host)


async def _file(path: Path, request: Request) -> Response:
    return Response(path.read_bytes(), media_type=_TYPES[path.suffix])


async def _report(views: PageViews, request: Request) -> Response:
    """The page of the last fit, which brings its style with it and no scripts."""
    if views.report is None:
        return _json({"error": "No model was fitted yet."}, 404)
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}
    return Response(views.report.read_bytes(), media_type=_TYPES[".html"], headers=headers)


async def _image(views: PageViews, request: Request) -> Response:
    row = request.path_params["row"]
    try:
        if not (row.isascii() and row.isdigit() and len(row) < _MOST_DIGITS):
            raise MissingFileError("There is no such row.")
        data, kind = await run_in_threadpool(views.things.picture, int(row))
    except MissingFileError:
        return _json({"error": "There is no such picture."}, 404)
    except FileError as error:
        return _json({"error": str(error)}, 415)
    return Response(data, media_type=kind)


def _getter(function: Callable[[Json], Json]) -> Callable[[Request], Awaitable[Response]]:
    async def get(request: Request) -> Response:
        return await _call(function, dict(request.query_params))

    return get


def _poster(function: Callable[[Json], Json]) -> Callable[[Request], Awaitable[Response]]:
    async def post(request: Request) -> Response:
        try:
            given = json.loads(await request.body())
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            return _json({"error": "The request must be a JSON object."}, 400)
        return await _call(function, given)

    return post


async def _call(function: Callable[[Json], Json], given: Json) -> Response:
    """Run in a thread: an answer waits for the disk, and others need not wait with it."""
    try:
        return _json(await run_in_threadpool(function, given))
    except FileError as error:
        return _json({"error": str(error)}, 507)
    except SdulearnError as error:
        return _json({"error": str(error)}, 400)


def _json(data: Json, status: int = 200) -> Response:
    return Response(json.dumps(data, allow_nan=False), status, media_type="application/json")
