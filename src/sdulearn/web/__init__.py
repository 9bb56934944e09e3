"""The page of ``sdulearn ask``: what is shown of a row, who answered what, and the server."""

from __future__ import annotations

import ipaddress

# Of the texts in `static/texts`; English is the reference.
LANGUAGES = ("de", "en", "es", "fr", "it")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


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
