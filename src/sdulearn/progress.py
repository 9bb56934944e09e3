"""How far long work is: a bar after five seconds, on a terminal or in a notebook (by tqdm)."""

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
# Seconds from one look at a bar to the next.
_REFRESHED = 0.2
# A log file is not to be filled with bars of short work, nor with many of long work.
_SELDOM = 10.0
P = ParamSpec("P")
T = TypeVar("T")


class _Work(threading.local):
    """What a thread is doing: since when, and its steps, of which the outermost have the bar."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.levels: list[dict[str, Any]] = []
        self.bar: Any = None
        self.next_look = 0.0

    def show(self) -> None:
        """Draw how far it is, where that is due."""
        due = self.began is not None and time.monotonic() >= max(self.next_look, self.began + PATIENCE)
        if not due or not self.levels or not is_there("tqdm"):
            return
        self.next_look = time.monotonic() + _REFRESHED
        first, *inner = self.levels
        if self.bar is None:
            shown = {"desc": first["title"], "total": first["total"], "leave": False, "disable": None}
            # Only a terminal or a notebook has it, and not before its numbers are right.
            self.bar = new_bar(**shown, delay=1e-9, dynamic_ncols=True)
            self.bar.start_t = time.time() - (time.monotonic() - first["began"])
        self.bar.n = first["done"]
        self.bar.set_postfix_str(", ".join(f"{one['title']} {one['done']}" for one in inner), refresh=False)
        self.bar.refresh()

    def leave(self, depth: int) -> None:
        """The steps so deep have ended, and all within them."""
        del self.levels[depth:]
        if depth == 0 and self.bar is not None:
            self.bar.close()
            self.bar = None


_work = _Work()


def long_work(function: Callable[P, T]) -> Callable[P, T]:
    """Let the :func:`steps` of a function show a bar; the outermost such function counts."""

    @wraps(function)
    def shown(*given: P.args, **named: P.kwargs) -> T:
        import multiprocessing

        # Threads and processes that share work would write over each other's bars.
        main = threading.current_thread() is threading.main_thread()
        if _work.began is not None or not main or multiprocessing.current_process().name != "MainProcess":
            return function(*given, **named)
        _work.leave(0)
        _work.began = time.monotonic()
        try:
            return function(*given, **named)
        finally:
            _work.leave(0)
            _work.began = None

    return shown


def steps(items: Iterable[T], title: str) -> Iterator[T]:
    """The items in turn, as steps of what ``title`` names."""
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


class RowProgress:
    """Counts rows, one bar per pass; ``log``: at once, and as lines where there is no terminal."""

    def __init__(self, title: str = "pass {}", log: bool = False) -> None:
        self.title = title
        self.log = log
        self.began = time.monotonic()
        self.passes = 0
        self.done = 0
        self.total = 0
        self.bar: Any = None
        self.lock = threading.Lock()

    def expect(self, rows: int | None) -> RowProgress:
        """Say how many rows a pass has; None where that is not known."""
        self.total = rows or 0
        return self

    def __call__(self, rows: int | None) -> None:
        """So many more rows are done; None: the pass is over."""
        with self.lock:
            if rows is None:
                self.close()
                return
            self.passes += not self.done
            self.done += rows
            patience = 0.0 if self.log and sys.stderr.isatty() else PATIENCE
            if self.bar is not None:
                self.bar.update(rows)
            elif time.monotonic() - self.began >= patience and is_there("tqdm"):
                self.bar = self._new_bar()
                self.bar.update(self.done)

    def close(self) -> None:
        """End the bar of this pass, be it whole or not."""
        if self.bar is not None:
            self.bar.close()
        self.bar = None
        self.done = 0

    def _new_bar(self) -> Any:
        shown: dict[str, Any] = {"desc": self.title.format(self.passes), "total": self.total}
        terminal = sys.stderr.isatty()
        if self.log and not terminal:
            shown |= {"leave": True, "mininterval": _SELDOM}
        else:
            shown |= {"leave": False, "disable": None, "dynamic_ncols": terminal}
        return new_bar(**shown, unit=" rows", unit_scale=True)


def new_bar(**options: Any) -> Any:
    """A bar of tqdm, as terminals or notebooks show it."""
    with warnings.catch_warnings():
        # Notebooks without ipywidgets have bars of text.
        warnings.simplefilter("ignore")
        bars = require("tqdm.auto" if "ipykernel" in sys.modules else "tqdm", "files")
    return bars.tqdm(file=sys.stderr, **options)
