"""The two packages that only the experiments need, imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def require(module: str) -> Any:
    """Import a module of the ``demo`` extra, or say how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise ModuleNotFoundError(
            f"The experiments need {package}, which is not installed: pip install 'sdulearn[demo]'"
        ) from error


def pyplot() -> Any:
    """matplotlib's pyplot, drawing to files only."""
    require("matplotlib").use("Agg")
    return require("matplotlib.pyplot")


@contextmanager
def progress_bar(label: str, total: int, done: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar with the time left; gives a function that moves it on by a number of cells."""
    if not shown:
        yield lambda count: None
        return
    with require("tqdm").tqdm(total=total, initial=done, desc=label, unit="cell", smoothing=0.05) as bar:
        yield lambda count: bar.update(count)
