"""Run the page's server until it is interrupted."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from sdulearn.errors import InputError, require

if TYPE_CHECKING:
    from sdulearn.web.app import Page

# Headers and address of a request; all that we send are far smaller.
_MAX_HEAD_BYTES = 16_384
# Of the texts in `static/texts`; English is the reference.
LANGUAGES = ("de", "en", "es", "fr", "it")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(page: Page, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve a page until interrupted; ``ready`` gets its address."""
    uvicorn = require("uvicorn", "ask")
    from sdulearn.web.app import make_app
    from sdulearn.web.security import MAX_CONNECTIONS, PageConnection

    # Nobody can guess it.
    key = secrets.token_urlsafe(18)
    with _listening(host, port) as listener:
        config = uvicorn.Config(
            make_app(page, key, host),
            http=PageConnection,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
            timeout_graceful_shutdown=2,
        )
        ready(page_address(host, listener.getsockname()[1], key))
        uvicorn.Server(config).run(sockets=[listener])


def page_address(host: str, port: int, key: str) -> str:
    """The address to open."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/{key}/"


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=both)
    except OSError as error:
        raise InputError(
            f"Cannot listen on {host}, port {port}: {error.strerror or error}. Give another `port`, or none."
        ) from None


def is_loopback(host: str) -> bool:
    """Whether a server bound to it is reached from this machine alone."""
    return host in LOOPBACK or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_address(name: str) -> bool:
    """Whether a name is an address in numbers."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
