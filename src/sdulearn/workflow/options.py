"""Options of a fit, and the engine that reads the table: this process, or a Dask cluster."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from joblib import cpu_count

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.records import Answers, TableReading, flip_rate, stored_id_column
from sdulearn.errors import InputError, require
from sdulearn.io.files import Location
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.progress import RowProgress
from sdulearn.risks import RISKS

if TYPE_CHECKING:
    from sdulearn.blocks import Blocks, Part

METHODS = ("auto", "joint", *RISKS)
MODELS = ("auto", "linear", "boosted")
_CHOICES: dict[str, tuple[str, ...]] = {
    "method": METHODS,
    "loss": tuple(TRAINING_LOSSES),
    "missing": ("auto", "error", "mean"),
    "model": MODELS,
}
MAX_UNLABELED = 20_000
# With more columns than this the sample of rows is small: a fit needs the eigenvectors of the
# smaller side of the matrix.
_WIDE = 3000
_UNLABELED_WIDE = 1000
MEMORY = "memory"
STREAM = "stream"
DASK = "dask"
ENGINES = (MEMORY, STREAM, DASK)

Watch = Callable[[int | None], object]
Progress = Callable[[int | None], Watch]

_PATIENCE = "10s"


@dataclass(frozen=True)
class FitOptions:
    """Options of :func:`sdulearn.fit_table`, validated."""

    codes: str | None = None
    points: str | None = None
    method: str = "auto"
    loss: str = "squared"
    prior: float | None = None
    error_rate: str | float | Mapping[int, float] | AnswerModel = "auto"
    classes: int | str | None = None
    model: str | None = None
    max_unlabeled: int | None = None
    id_column: str | None = None
    drop: Sequence[str] = ()
    categories: Sequence[str] = ()
    missing: str = "auto"
    max_categories: int = 50
    skip_bad: bool = False
    exclude_annotators: str | Sequence[str] = ()
    text: Sequence[str] = ()
    images: Sequence[str] = ()
    image_root: Location | None = None
    embedding: Location | None = None
    sheet: str | None = None
    skip_rows: int | None = None
    dropped_before: Sequence[str] = ()  # when questions were asked; the table may lack them now
    stored: TableReading | None = None  # the table that questions were asked about

    def __post_init__(self) -> None:
        if self.points is not None and self.codes is None:
            raise InputError("`points` goes with `codes`: by `answers`, equal ids are the same point. Leave it out.")
        for name in ("drop", "categories", "text", "images"):
            if isinstance(getattr(self, name), str):
                raise InputError(f"`{name}` is a list of columns: give [{getattr(self, name)!r}].")
        for name, allowed in _CHOICES.items():
            if (value := getattr(self, name)) not in allowed and (name, value) != ("model", None):
                raise InputError(f"`{name}` must be one of {', '.join(allowed)}; got {value!r}.")
        if self.prior is not None and not 0 < self.prior < 1:
            raise InputError(f"`prior` must lie between 0 and 1, got {self.prior!r}.")
        n = self.classes
        if n not in (None, "auto") and not (isinstance(n, Integral) and n >= 2):
            raise InputError(f"`classes` must be a whole number from 2 on or 'auto', got {n!r}.")
        if n not in (None, 2):
            self.check_many_classes(f"`classes={n!r}`")
        if self.model == "boosted":
            self.need_joint("`model='boosted'`")
            require("lightgbm", "boosting")

    @property
    def is_joint(self) -> bool:
        """Whether the method is the joint likelihood of pairs, not a risk of the paper."""
        return self.method in ("auto", "joint")

    def for_answers(self, answers: Answers) -> FitOptions:
        """Return the options with what the answers know: how to read the table, and a flip rate.

        A log of ``sdulearn ask`` says how it read the table; options that are given take precedence.
        """
        found = self
        if (reading := answers.reading) is not None:
            named = {*self.drop, *self.categories, *self.text, *self.images}
            free = {
                name: tuple(one for one in getattr(reading, name) if one not in named)
                for name in ("text", "images", "drop")
            }
            found = replace(
                self,
                stored=reading,
                id_column=stored_id_column(reading, self.id_column),
                text=self.text or free["text"],
                images=self.images or free["images"],
                dropped_before=free["drop"],
                embedding=self.embedding or reading.embedding,
                image_root=self.image_root or reading.image_root,
                sheet=reading.sheet if self.sheet is None else self.sheet,
                skip_rows=reading.skip_rows if self.skip_rows is None else self.skip_rows,
            )
        if answers.epsilon is None:
            return found
        self.need_joint(f"{answers.name}: answers that were flipped (epsilon {answers.epsilon:g})")
        known = flip_rate(answers.epsilon) if self.error_rate == "auto" else self.error_rate
        return replace(found, error_rate=known)

    @property
    def likelihood(self) -> dict[str, Any]:
        """Parameters of the estimators of the joint likelihood."""
        return {name: getattr(self, name) for name in ("prior", "error_rate")}

    @property
    def tries_trees(self) -> bool:
        """Whether boosted trees are fitted, alone or beside a linear model."""
        return self.is_joint and self.model != "linear"

    def check_many_classes(self, what: str) -> None:
        """Refuse options that do not go with more than two classes, or with a search for K."""
        self.need_joint(what)
        if self.prior is not None:
            raise InputError(f"`prior` is the share of class +1 of two; with {what} leave it out.")

    def need_joint(self, what: str) -> None:
        """Refuse a risk of the paper."""
        if not self.is_joint:
            raise InputError(f"{what} needs the joint likelihood: give `method='joint'`, not {self.method!r}.")

    def most_unlabeled(self, width: int) -> int:
        """Return how many unlabeled rows to draw; fewer from a table of many columns."""
        asked = self.max_unlabeled or MAX_UNLABELED
        return min(asked, _UNLABELED_WIDE) if width > _WIDE else asked


@dataclass(frozen=True)
class Engine:
    """Where a table is read, part by part."""

    name: str = MEMORY
    address: str = ""  # of the Dask scheduler; empty in this process
    n_workers: int = 1  # threads or processes
    # called before a pass with its number of rows; returns the function to call during the pass
    progress: Progress | None = None

    def blocks(self, parts: Sequence[Part], n_rows: int | None) -> Blocks:
        """Return the parts as blocks; they hold ``n_rows`` in all, where that is known."""
        watch = None if self.progress is None else self.progress(n_rows)
        if self.name == DASK:
            return require("sdulearn.distributed", "dask").DaskBlocks.from_parts(parts, watch)
        from sdulearn.blocks import LocalBlocks

        return LocalBlocks(parts, n_jobs=self.n_workers, watch=watch)


@contextmanager
def open_engine(name: str, *, scheduler: str | None = None, progress: Progress | None = None) -> Iterator[Engine]:
    """Open an engine for the duration of a ``with`` block.

    Parameters
    ----------
    name : {"memory", "stream", "dask"}
        In this process, one row group after another, or several at a time on all cores; or on a
        Dask cluster, whose workers must reach the files under the same path.
    scheduler : str, optional
        Address of a running Dask cluster; by default one is started on this machine.
    progress : function, optional
        Called before each pass with its number of rows, or None if unknown; returns a function
        that is called with the number of rows of each batch, and with None at the end of the
        pass. By default a progress bar on a terminal or in a notebook, after some seconds.

    Yields
    ------
    Engine
        For ``fit_table(engine=...)``.
    """
    if name not in ENGINES:
        raise InputError(f"`engine` must be one of {ENGINES}, got {name!r}.")
    if scheduler is not None and name != DASK:
        raise InputError("`scheduler` names a Dask cluster; it needs `engine='dask'`.")
    rows = RowProgress()
    progress = progress or rows.expect
    try:
        if name != DASK:
            yield Engine(name, n_workers=cpu_count() if name == STREAM else 1, progress=progress)
            return
        with _client(scheduler) as client:
            yield Engine(DASK, client.scheduler.address, len(client.nthreads()), progress)
    finally:
        rows.close()


@contextmanager
def _client(scheduler: str | None) -> Iterator[Any]:
    """Connect to the named cluster, or start a local one of worker processes."""
    distributed = require("distributed", "dask")
    if scheduler is None:
        with _local_cluster(distributed) as cluster, distributed.Client(cluster) as client:
            try:
                yield client
            except KeyboardInterrupt:
                # Workers that are stopped while they work log long tracebacks.
                logging.getLogger("distributed").setLevel(logging.CRITICAL)
                logging.getLogger("asyncio").setLevel(logging.CRITICAL)
                raise
        return
    try:
        # Not the default before it is connected: a failed client would remain the default.
        client = distributed.Client(scheduler, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"No Dask scheduler answers at {scheduler} within {_PATIENCE} ({error}). Start one with: dask scheduler; "
            "then workers with: dask worker ADDRESS; or leave `scheduler` out for a local cluster."
        ) from None
    with client, client.as_current():
        if not client.nthreads():
            raise InputError(f"The cluster at {scheduler} has no workers. Start some with: dask worker {scheduler}")
        yield client


def _local_cluster(distributed: Any) -> Any:
    try:
        # The dashboard has no password, so it listens on this machine only.
        web = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        with _uninterrupted_children():
            return distributed.LocalCluster(n_workers=cpu_count(), threads_per_worker=1, **web)
    except RuntimeError as error:
        raise InputError(f"No local Dask cluster could be started: {error} Try `engine='stream'` instead.") from None


@contextmanager
def _uninterrupted_children() -> Iterator[None]:
    """Start child processes that ignore Ctrl-C: this process handles it and stops them."""
    if not hasattr(signal, "pthread_sigmask"):
        # On Windows a new process has its own console.
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
