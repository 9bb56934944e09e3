"""Progress bars (by tqdm) of work over five seconds, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from sdulearn.errors import is_there, require

PATIENCE = 5.0
# Seconds between two updates of a bar.
_REFRESHED = 0.2
P = ParamSpec("P")
T = TypeVar("T")


class _Work(threading.local):
    """The long work of a thread: since when, its nested steps, and the bar of the outermost."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.levels: list[dict[str, Any]] = []
        self.bar: Any = None

    def show(self) -> None:
        """Draw the bar of the outermost steps, with the inner ones beside it, if it is due."""
        now = time.monotonic()
        if self.began is None or now < self.began + PATIENCE or not self.levels or not is_there("tqdm"):
            return
        outermost, *inner = self.levels
        if self.bar is None:
            # With a delay it is not drawn before its numbers are right. The rate is over all steps.
            shown = {"desc": outermost["title"], "total": outermost["total"], "delay": 1e-9}
            self.bar = new_bar(**shown, miniters=0, mininterval=_REFRESHED, smoothing=0)
            self.bar.start_t = self.bar.last_print_t = time.time() - (now - outermost["began"])
        self.bar.set_postfix_str(", ".join(f"{one['title']} {one['done']}" for one in inner), refresh=False)
        self.bar.update(outermost["done"] - self.bar.n)

    def leave(self, depth: int) -> None:
        """End the steps from this depth on."""
        del self.levels[depth:]
        if depth == 0 and self.bar is not None:
            self.bar.close()
            self.bar = None


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
        _work.leave(0)
        _work.began = time.monotonic()
        try:
            return function(*given, **named)
        finally:
            # After an error the steps may be alive in its traceback.
            _work.leave(0)
            _work.began = None

    return watched


def steps(items: Iterable[T], title: str) -> Iterator[T]:
    """Yield the items and count them in the bar under this title."""
    level: dict[str, Any] = {"title": title, "done": 0, "began": time.monotonic()}
    level["total"] = len(items) if isinstance(items, Sized) else None
    depth = len(_work.levels)
    _work.levels.append(level)
    try:
        for item in items:
            yield item
            level["done"] += 1
            _work.show()
    finally:
        _work.leave(depth)


def count_rows(batches: Iterable[tuple[int, T]], title: str, n_rows: int | None) -> Iterator[tuple[int, T]]:
    """Yield batches of rows, each with the number of its first row, and count rows in a bar; None if unknown."""
    began = time.monotonic()
    bar: Any = None
    try:
        for begin, batch in batches:
            if bar is None and time.monotonic() >= began + PATIENCE and is_there("tqdm"):
                bar = new_bar(desc=title, total=n_rows, unit=" rows", unit_scale=True, mininterval=_REFRESHED)
            if bar is not None:
                bar.update(begin - bar.n)
            yield begin, batch
    finally:
        if bar is not None:
            bar.close()


def new_bar(**options: Any) -> Any:
    """Return a tqdm bar for a terminal or a notebook, which is removed at the end."""
    with warnings.catch_warnings():
        # Notebooks without ipywidgets have bars of text.
        warnings.simplefilter("ignore")
        bars = require("tqdm.auto" if "ipykernel" in sys.modules else "tqdm", "files")
    return bars.tqdm(**{"file": sys.stderr, "leave": False, "disable": None, "dynamic_ncols": True, **options})
