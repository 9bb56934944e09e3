"""How scripts measure: quietly, on one thread a process, several draws at a time, none of them twice."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from threadpoolctl import threadpool_limits
from tqdm import tqdm


def quietly(run):
    """Without warnings (names of classes at prior 1/2, folds with few rows, peers in their own ways), on one thread."""

    @functools.wraps(run)
    def quiet(*arguments):
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run(*arguments)

    return quiet


def run_all(run, cells, jobs, path: Path | None = None):
    """``(cell, run(cell))`` of all cells; those that the file has are not measured again, others join it."""
    there = {}
    if path is not None and path.exists():
        there = {tuple(cell): found for cell, found in map(json.loads, path.read_text().splitlines())}
    todo = [cell for cell in cells if cell not in there]
    with ProcessPoolExecutor(jobs) as pool:
        for cell, found in zip(
            todo, tqdm(pool.map(run, todo), total=len(todo), unit="draw", mininterval=5), strict=True
        ):
            there[cell] = found
            if path is not None:
                with path.open("a") as file:
                    print(json.dumps([cell, found]), file=file)
    return [(cell, there[cell]) for cell in cells]


def versions(*packages):
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
