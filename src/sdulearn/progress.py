"""Progress bars (by tqdm) of work over five seconds, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from sdulearn.errors import is_there, require

PATIENCE = 5.0
P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Screen:
    """Whether the command line prints anything but errors and results that were asked for."""

    quiet: bool = False


SCREEN = Screen()


class _Work(threading.local):
    """The long work of a thread: since when, and its bar."""

    began: float | None = None
    bar: Any = None


_work = _Work()


def long_work(function: Callable[P, T]) -> Callable[P, T]:
    """Let the :func:`steps` in a function show a bar; the outermost such function has it."""

    @wraps(function)
    def watched(*given: P.args, **named: P.kwargs) -> T:
        import multiprocessing  # takes time, and `sdulearn --help` does not need it

        # Threads and processes that share work would write over each other's bars.
        main = threading.current_thread() is threading.main_thread()
        if _work.began is not None or not main or multiprocessing.current_process().name != "MainProcess":
            return function(*given, **named)
        _work.began = time.monotonic()
        try:
            return function(*given, **named)
        finally:
            # After an error the steps may be alive in its traceback.
            if _work.bar is not None:
                _work.bar.close()
            _work.began = _work.bar = None

    return watched


def steps(items: Iterable[T], title: str) -> Iterator[T]:
    """Yield the items, and count them in a bar with this title unless steps around them have one."""
    if _work.began is None or _work.bar is not None or not is_there("tqdm"):
        yield from items
        return
    delay = _work.began + PATIENCE - time.monotonic()
    _work.bar = bar = new_bar(iterable=items, desc=title, delay=max(delay, 1e-9), miniters=0)
    try:
        yield from bar
    finally:
        bar.close()
        if _work.bar is bar:
            _work.bar = None


def count_rows(batches: Iterable[tuple[int, T]], title: str, n_rows: int | None) -> Iterator[tuple[int, T]]:
    """Yield batches of rows, each with the number of its first row, and count rows in a bar; None if unknown."""
    if not is_there("tqdm"):
        yield from batches
        return
    with new_bar(desc=title, total=n_rows, unit=" rows", unit_scale=True, delay=PATIENCE) as bar:
        for begin, batch in batches:
            bar.update(begin - bar.n)
            yield begin, batch


def new_bar(**options: Any) -> Any:
    """Return a tqdm bar for a terminal or a notebook, which is removed at the end."""
    with warnings.catch_warnings():
        # Notebooks without ipywidgets have bars of text.
        warnings.simplefilter("ignore")
        bars = require("tqdm.auto" if "ipykernel" in sys.modules else "tqdm", "files")
    # None: shown on a terminal.
    hidden = True if SCREEN.quiet else None
    return bars.tqdm(**{"file": sys.stderr, "leave": False, "disable": hidden, "dynamic_ncols": True, **options})
