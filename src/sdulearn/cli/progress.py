"""A bar for each pass over a table, on the screen's other stream."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from sdulearn.extras import require

# A log file is not to be filled with bars of short work, nor with many of long work.
_PATIENCE = 5.0
_SELDOM = 10.0


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
