"""Run a protocol: cells in parallel, one line of JSON each, to be stopped and continued at will."""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from sdulearn.errors import InputError
from sdulearn.experiments.data import SETS, Trial, draw_trial, fingerprint, n_test_points
from sdulearn.experiments.methods import METHODS, accuracy
from sdulearn.experiments.protocol import Assumed, Cell, Draw, Protocol
from sdulearn.experiments.results import Record, Results
from sdulearn.extras import require


@dataclass
class Run:
    """What a run did.

    Attributes
    ----------
    measured : int
        Cells measured now.
    kept : int
        Cells that were there already.
    notes : list of str
        What was left out, and why.
    """

    measured: int = 0
    kept: int = 0
    notes: list[str] = field(default_factory=list)


class _StoredSet(NamedTuple):
    fingerprint: str
    n_positive: int
    n_negative: int


@dataclass(frozen=True)
class Job:
    """The cells of one draw; workers read the data from ``folder``."""

    folder: str
    draw: Draw
    n_test: int
    cells: tuple[Cell, ...]


def run(protocol: Protocol, folder: str | Path, *, jobs: int | None = 1, progress: bool = True) -> Run:
    """Measure all cells of a protocol that are not in ``folder`` yet.

    Parameters
    ----------
    protocol : Protocol
        What to measure.
    folder : path
        Folder of the results; see :class:`~sdulearn.experiments.results.Results`.
    jobs : int or None, default=1
        Worker processes, each with one BLAS thread; None: one per processor. The numbers do not
        depend on it.
    progress : bool, default=True
        Whether to show a progress bar with the time left.

    Returns
    -------
    Run
        Counts and notes.
    """
    report = Run()
    results = Results(folder, protocol)
    check_known("methods", protocol.methods, METHODS)
    check_known("datasets", protocol.datasets, SETS)
    with results.locked(), TemporaryDirectory(prefix="sdulearn-") as scratch:
        stored = _store_sets(protocol, Path(scratch), report)
        results.open({name: one.fingerprint for name, one in stored.items()})
        work = list(_jobs(protocol, scratch, stored, results.done(), report))
        total = report.kept + sum(len(job.cells) for job in work)
        with require("tqdm", "demo").tqdm(
            total=total,
            initial=report.kept,
            desc=protocol.name,
            unit="cell",
            smoothing=0.05,
            disable=not (progress and work),
        ) as bar:
            for records in _in_parallel(work, jobs or os.cpu_count() or 1):
                results.append(records)
                report.measured += len(records)
                bar.update(len(records))
    return report


def measure(job: Job) -> list[Record]:
    """Measure the cells of one draw; what a worker does."""
    X = np.load(Path(job.folder) / f"{job.draw.dataset}.X.npy", mmap_mode="r")
    y = np.load(Path(job.folder) / f"{job.draw.dataset}.y.npy")
    with threadpool_limits(1):
        trial = draw_trial(X, y, job.draw, job.n_test)
        return [_measure_cell(trial, cell) for cell in job.cells]


def _measure_cell(trial: Trial, cell: Cell) -> Record:
    method = METHODS[cell.method]
    record: Record = {**cell.key(), "accuracy": None, "matched": None, "error": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        try:
            predicted = method.predict(trial, given_prior(cell.assumed, cell.draw.prior), cell.seed)
            record["accuracy"] = accuracy(predicted, trial.y_test, matched=method.clustering)
            record["matched"] = accuracy(predicted, trial.y_test, matched=True)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            record["error"] = f"{type(error).__name__}: {error}"
        record["seconds"] = round(time.process_time() - start, 4)
    record["n_test"] = len(trial.y_test)
    record["warnings"] = sorted({warning.category.__name__ for warning in caught})
    return record


def given_prior(assumed: Assumed, true: float) -> float | None:
    """The ``prior`` argument of the estimators; None has them count pairs."""
    if isinstance(assumed, str):
        return {"counts": None, "known": true}[assumed]
    return assumed


def _in_parallel(work: list[Job], jobs: int) -> Iterator[list[Record]]:
    calls = (delayed(measure)(job) for job in work)
    parallel: Callable[..., Iterator[list[Record]]] = Parallel(
        n_jobs=min(jobs, max(1, len(work))), return_as="generator_unordered", batch_size=1
    )
    return parallel(calls)


def check_known(parameter: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names that are not among the known ones."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"`{parameter}` has unknown names {unknown}; choose from {list(known)}.")


def _store_sets(protocol: Protocol, scratch: Path, report: Run) -> dict[str, _StoredSet]:
    """Load each set once, where all workers can map it; those that cannot be had are noted."""
    stored = {}
    for name in protocol.datasets:
        try:
            X, y = SETS[name]()
        except (OSError, ValueError) as error:
            report.notes.append(f"{name} is left out: {error}")
            continue
        np.save(scratch / f"{name}.X.npy", X)
        np.save(scratch / f"{name}.y.npy", y)
        stored[name] = _StoredSet(fingerprint(X, y), int(np.sum(y > 0)), int(np.sum(y < 0)))
    return stored


def _jobs(
    protocol: Protocol,
    scratch: str,
    stored: dict[str, _StoredSet],
    done: set[Cell],
    report: Run,
) -> Iterator[Job]:
    """What is still to do.

    All sets take turns, so that the time left is honest and a stopped run is balanced.
    """
    cells = [cell for cell in protocol.cells() if cell.draw.dataset in stored]
    cells.sort(key=lambda cell: cell.draw.trial)
    too_big = set()
    for draw, group in itertools.groupby(cells, key=lambda cell: cell.draw):
        _, n_positive, n_negative = stored[draw.dataset]
        n_test = n_test_points(draw, protocol.n_test, n_positive, n_negative)
        if n_test == 0:
            too_big.add((draw.dataset, draw.n_pairs, draw.n_unlabeled, draw.prior))
            continue
        members = list(group)
        todo = tuple(cell for cell in members if cell not in done)
        report.kept += len(members) - len(todo)
        if todo:
            yield Job(scratch, draw, n_test, todo)
    report.notes += [
        f"{name} is too small for {n_pairs} pairs and {n_unlabeled} unlabeled rows at prior {prior:g}."
        for name, n_pairs, n_unlabeled, prior in sorted(too_big)
    ]
