"""The two packages that only the experiments need, imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sdulearn.extras import require


def pyplot() -> Any:
    """matplotlib's pyplot, drawing to files only."""
    require("matplotlib", "demo").use("Agg")
    return require("matplotlib.pyplot", "demo")


@contextmanager
def progress_bar(label: str, total: int, done: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar with the time left; gives a function that moves it on by a number of cells."""
    if not shown:
        yield lambda count: None
        return
    with require("tqdm", "demo").tqdm(total=total, initial=done, desc=label, unit="cell", smoothing=0.05) as bar:
        yield lambda count: bar.update(count)
