"""Text on the screen; needs nothing that takes time to import."""

from __future__ import annotations

import sys


def say(text: str, *, error: bool = False) -> None:
    """Print text that may come from a file, without characters that could steer a terminal."""
    lines = "\n".join(printable(line) for line in text.split("\n"))
    print(lines, file=sys.stderr if error else sys.stdout, flush=True)


def printable(text: str) -> str:
    """Text with its control characters spelled out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
