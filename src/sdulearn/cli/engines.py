"""Where the work of ``fit`` is done: ``--engine`` and ``--scheduler``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import cpu_count

from sdulearn.blocks import Blocks, LocalBlocks, Part
from sdulearn.blocks.source import count_blocks
from sdulearn.cli.progress import Progress
from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.io.tables import table_format

MEMORY, STREAM, DASK = ENGINES = ("memory", "stream", "dask")
_PATIENCE = "10s"
_READERS = {
    "csv": "pyarrow.dataset.dataset({!r}, format='csv')",
    "tsv": "pyarrow.csv.open_csv({!r}, parse_options=pyarrow.csv.ParseOptions(delimiter='\\t'))",
    "jsonl": "pyarrow.dataset.dataset({!r}, format='json')",
}

MakeBlocks = Callable[[Sequence[Part], Callable[[int | None], Any], bool], Blocks]


@dataclass(frozen=True)
class Engine:
    """Makes blocks of parts: in this process, or on a cluster."""

    make: MakeBlocks
    progress: Progress

    def blocks(self, parts: Sequence[Part], rows: int, keep: bool = False) -> Blocks:
        """Blocks of so many rows in all; ``keep`` holds them in the memory of a cluster for pass after pass."""
        return self.make(parts, self.progress.expect(rows), keep)


def add_engine_options(parser: argparse._ActionsContainer) -> None:
    """``--engine`` and ``--scheduler``."""
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=MEMORY,
        help="memory: the table is read whole; stream: Parquet files and folders of any size, row group by row group; "
        "dask: the same on a cluster, whose workers must reach the files under the same path (%(default)s)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="a running Dask cluster, for example tcp://10.0.0.1:8786 (default: one is started on this machine)",
    )


def check_engine(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together, before anything is read."""
    if arguments.scheduler is not None and arguments.engine != DASK:
        raise InputError("--scheduler names a Dask cluster; it needs --engine dask.")
    if arguments.engine != MEMORY and (name := table_format(arguments.features)) != "parquet":
        raise InputError(
            f"{arguments.features}: --engine {arguments.engine} reads Parquet files and folders of them. "
            f"{_conversion(arguments.features, name)}Leave --engine out to read it into memory."
        )


def _conversion(path: Path, name: str) -> str:
    if name not in _READERS:
        return ""
    write = f"pyarrow.dataset.write_dataset({_READERS[name].format(str(path))}, 'folder', format='parquet')"
    return f'Convert it, piece by piece: python -c "import pyarrow.csv, pyarrow.dataset; {write}". '


@contextmanager
def open_engine(arguments: argparse.Namespace) -> Iterator[Engine]:
    """The engine for a table that is not read whole."""
    progress = Progress()
    try:
        if arguments.engine == STREAM:
            yield Engine(_local_blocks, progress)
        else:
            with _client(arguments.scheduler):
                yield Engine(_cluster_blocks, progress)
    finally:
        progress.close()


def _local_blocks(parts: Sequence[Part], watch: Callable[[int | None], Any], keep: bool) -> Blocks:
    """Every thread reads a part of its own; nothing is kept."""
    return LocalBlocks(parts, n_jobs=cpu_count(), watch=watch)


def _cluster_blocks(parts: Sequence[Part], watch: Callable[[int | None], Any], keep: bool) -> Blocks:
    blocks = require("sdulearn.distributed", "dask").DaskBlocks.from_parts(parts, watch)
    return ClusterBlocks(blocks.persist() if keep else blocks, count_blocks(parts))


class ClusterBlocks:
    """Blocks on a cluster, with its failures told as a user can mend them."""

    def __init__(self, blocks: Any, n_blocks: int) -> None:
        self.blocks, self.n_blocks = blocks, n_blocks

    def sum(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """See :class:`sdulearn.blocks.Blocks`."""
        lost = require("sdulearn.distributed", "dask").WorkersLostError
        try:
            return self.blocks.sum(task, *arguments)
        except FileNotFoundError as error:
            raise InputError(
                f"A worker of the cluster cannot find a file: {error}. The workers must reach the table under the same "
                "path as this command; put it on a disk they share, and give the full path."
            ) from None
        except lost as error:
            raise InputError(str(error)) from None


@contextmanager
def _client(scheduler: str | None) -> Iterator[Any]:
    """A client of the named cluster, or of a local one of worker processes; it says which."""
    distributed = require("distributed", "dask")
    if scheduler is None:
        with _local_cluster(distributed) as cluster, distributed.Client(cluster) as client:
            n_workers = len(client.nthreads())
            print(f"cluster: local, {n_workers} worker processes ({cluster.scheduler_address})", flush=True)
            yield client
        return
    with _connect(distributed, scheduler) as client:
        n_workers = len(client.nthreads())
        if not n_workers:
            raise InputError(f"The cluster at {scheduler} has no workers. Start some with: dask worker {scheduler}")
        print(f"cluster: {scheduler}, {n_workers} workers", flush=True)
        yield client


def _local_cluster(distributed: Any) -> Any:
    try:
        # Any free port for the dashboard: another cluster may run here.
        return distributed.LocalCluster(n_workers=cpu_count(), threads_per_worker=1, dashboard_address=":0")
    except RuntimeError as error:
        raise InputError(f"No local Dask cluster could be started: {error} Try --engine stream instead.") from None


def _connect(distributed: Any, scheduler: str) -> Any:
    try:
        return distributed.Client(scheduler, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise InputError(
            f"No Dask scheduler answers at {scheduler} within {_PATIENCE} ({error}). Start one with: dask scheduler; "
            "then workers with: dask worker ADDRESS; or leave --scheduler out for a local cluster."
        ) from None
