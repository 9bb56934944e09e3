"""What commands show: text, JSON and progress. Needs nothing that takes time to import."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from sdulearn.errors import FileError, InputError, require

# A log file is not to be filled with bars of short work, nor with many of long work.
_PATIENCE = 5.0
_SELDOM = 10.0


def say(text: str, *, error: bool = False) -> None:
    """Print text that may come from a file, without characters that could steer a terminal."""
    lines = "\n".join(printable(line) for line in text.split("\n"))
    print(lines, file=sys.stderr if error else sys.stdout, flush=True)


def printable(text: str) -> str:
    """Text with its control characters spelled out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Option ``--json``, worded alike in all commands."""
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object instead of text")


def make_folder(path: Path) -> Path:
    """The folder, made where it is not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"The folder {path} cannot be made: {error.strerror}. Choose another with --out.") from error
    return path


def print_json(data: object) -> None:
    """Print results as one JSON object on standard output."""
    from sdulearn.io.typed import plain

    print(json.dumps(plain(data), indent=2, allow_nan=False))


class Progress:
    """Counts rows, a bar a pass: rows, rows per second, time left. Threads may share it.

    Shown at once on a terminal; elsewhere only once the work has taken some seconds.
    """

    def __init__(self, title: str = "pass {}") -> None:
        self.title = title
        self.began = time.monotonic()
        self.passes = 0
        self.bar: Any = None
        self.total = 0
        self.lock = threading.Lock()

    def expect(self, rows: int) -> Progress:
        """Say how many rows a pass has."""
        self.total = rows
        return self

    def __call__(self, rows: int | None) -> None:
        """So many more rows are done; None: the pass is over."""
        with self.lock:
            if rows is None:
                self.close()
                return
            if self.bar is None:
                self.bar = self._new_bar()
            self.bar.update(rows)

    def close(self) -> None:
        """End the bar of this pass, be it whole or not."""
        if self.bar is not None:
            self.bar.close()
        self.bar = None

    def _new_bar(self) -> Any:
        self.passes += 1
        terminal = sys.stderr.isatty()
        return require("tqdm", "files").tqdm(
            desc=self.title.format(self.passes),
            total=self.total,
            unit=" rows",
            unit_scale=True,
            file=sys.stderr,
            delay=0 if terminal else max(_PATIENCE - (time.monotonic() - self.began), 1e-9),
            mininterval=0.1 if terminal else _SELDOM,
            leave=not terminal,
            dynamic_ncols=terminal,
        )


def refuse_overwriting(outputs: tuple[Path | None, ...], inputs: tuple[Path | None, ...]) -> None:
    """An output must not take the place of an input."""
    for output in outputs:
        for given in inputs:
            if output and given and output.exists() and given.exists() and output.samefile(given):
                raise InputError(f"{output} is read by this command; writing it would overwrite it. Name another file.")
