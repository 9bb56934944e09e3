"""Run a protocol: cells in parallel, one line of JSON each on disk, to be stopped and continued at will."""

from __future__ import annotations

import itertools
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits
from tqdm import tqdm

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from reproduction.methods import METHODS, accuracy
from reproduction.protocol import VERSION, Assumed, Cell, Draw, Protocol
from reproduction.trials import SETS, Trial, draw_trial, fingerprint, n_test_points
from sdulearn import __version__
from sdulearn.errors import FileError, InputError

Record: TypeAlias = dict[str, Any]
"""A line of results: the key of its cell, and what was measured."""


class MixedResultsError(InputError):
    """The folder holds results of another protocol or of other data."""


class Results:
    """The results of one protocol in a folder: ``NAME.jsonl`` and ``NAME.meta.json``."""

    def __init__(self, folder: str | os.PathLike[str], protocol: Protocol) -> None:
        self.protocol = protocol
        self.lines = Path(folder) / f"{protocol.name}.jsonl"
        self.meta = Path(folder) / f"{protocol.name}.meta.json"

    def read(self) -> dict[Cell, Record]:
        """All records, the last one of each cell.

        A torn line (a crash while writing) is passed over.
        """
        found: dict[Cell, Record] = {}
        if not self.lines.exists():
            return found
        for line in self.lines.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
                found[Cell.from_key(record)] = record
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def read_cells(self) -> list[Record]:
        """The records of the protocol's own cells: the file may hold more."""
        cells = set(self.protocol.cells())
        return [record for cell, record in self.read().items() if cell in cells]

    def done(self) -> set[Cell]:
        """The cells that need no second run; those that failed get one."""
        return {cell for cell, record in self.read().items() if record["error"] is None}

    def open(self, fingerprints: dict[str, str]) -> None:
        """Make the folder ready for more lines; refuse where old and new do not belong together."""
        make_folder(self.lines.parent)
        old = self.read_meta()
        if old:
            self._refuse_mixture(old, fingerprints)
        meta = {
            "protocol": asdict(self.protocol),
            "protocol_version": VERSION,
            "protocol_hash": self.protocol.hash(),
            "data": {**old.get("data", {}), **fingerprints},
            "seeds": "first 32 bits of the SHA-256 of the draw (for drawing) and of the cell (for the method)",
            "versions": versions(),
        }
        partial = self.meta.with_suffix(".part")
        partial.write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.meta)
        self._drop_torn_line()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs away from these results; the lock goes with the process, however it ends."""
        make_folder(self.lines.parent)
        with self.lines.with_suffix(".lock").open("a") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise FileError(
                        f"Another run is writing {self.lines}. Wait for its end, or choose another folder with --out."
                    ) from None
            yield

    def append(self, records: Iterable[Record]) -> None:
        """Add lines and hand them to the operating system at once."""
        with self.lines.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records))

    def read_meta(self) -> dict[str, Any]:
        """The metadata, or an empty dict where nothing has run yet."""
        return json.loads(self.meta.read_text(encoding="utf-8")) if self.meta.exists() else {}

    def _refuse_mixture(self, old: dict[str, Any], fingerprints: dict[str, str]) -> None:
        advice = "Choose another folder with --out, or delete the old results."
        if old["protocol_hash"] != self.protocol.hash():
            raise MixedResultsError(
                f"{self.lines} was measured under another protocol ({old['protocol_hash']}, now "
                f"{self.protocol.hash()}): its numbers and new ones do not belong in one table. {advice}"
            )
        changed = [name for name, mark in fingerprints.items() if old["data"].get(name, mark) != mark]
        if changed:
            raise MixedResultsError(
                f"{self.lines} was measured on other data for {', '.join(changed)} than the ones now "
                f"in SDULEARN_DATA or the download cache. {advice}"
            )

    def _drop_torn_line(self) -> None:
        if not self.lines.exists():
            return
        with self.lines.open("rb+") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)


def make_folder(path: Path) -> Path:
    """The folder, made where it is not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"The folder {path} cannot be made: {error.strerror}. Choose another with --out.") from error
    return path


def versions() -> dict[str, str]:
    """Versions of all that has a say in the numbers."""
    return {
        "sdulearn": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }


@dataclass
class Run:
    """What a run did: cells measured now, cells that were there already, and what was left out, and why."""

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

    ``jobs`` is the number of worker processes, each with one BLAS thread; None: one per processor. The numbers do not
    depend on it.
    """
    report = Run()
    results = Results(folder, protocol)
    with results.locked(), TemporaryDirectory(prefix="sdulearn-") as scratch:
        stored = _store_sets(protocol, Path(scratch), report)
        results.open({name: one.fingerprint for name, one in stored.items()})
        work = list(_jobs(protocol, scratch, stored, results.done(), report))
        total = report.kept + sum(len(job.cells) for job in work)
        with tqdm(
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
