"""The measurements of scale.py, each run in a process of its own: an order comes as JSON, the finding goes as JSON."""

from __future__ import annotations

import functools
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

LOSSES = ("squared", "logistic", "double_hinge")
FEATURES, WIDE = 50, 1000
ALPHA, PRIOR, PAIRED = 1e-4, 0.7, 0.1
CORES = os.cpu_count() or 1
BATCH = 65_536
ROWS_A_FILE = 500_000


@dataclass(frozen=True)
class Table:
    """A folder of Parquet files of equal length: features x0, x1, ..., pair codes, true labels."""

    folder: str
    rows: int
    features: int = FEATURES
    paired: float = PAIRED

    @property
    def n_files(self) -> int:
        """One for every core at least; of equal length at all large sizes, as a file has costs of its own."""
        return max(CORES, -(-self.rows // ROWS_A_FILE))

    @property
    def files(self) -> list[str]:
        return [f"{self.folder}/{k:03d}.parquet" for k in range(self.n_files)]

    @property
    def names(self) -> list[str]:
        return [f"x{j}" for j in range(self.features)]


@dataclass(frozen=True)
class Population:
    """Two Gaussian classes with means ``+-mean`` and one covariance, ``I + factors factors'``."""

    mean: Any
    factors: Any

    @classmethod
    def of_width(cls, d: int) -> Population:
        rng = np.random.default_rng(d)
        mean = rng.choice([-1, 1], d) * np.linspace(0.2, 1.8, d) / np.sqrt(d)
        return cls(mean.astype(np.float32), rng.normal(scale=0.4, size=(d, 5)).astype(np.float32))

    def draw(self, rng: np.random.Generator, y: Any) -> Any:
        """One column a row of the table: features are stored one after the other."""
        X = rng.standard_normal((len(self.mean), len(y)), dtype=np.float32)
        X += self.factors @ rng.standard_normal((self.factors.shape[1], len(y)), dtype=np.float32)
        X += np.outer(self.mean, y.astype(np.float32))
        return X

    def best_accuracy(self) -> float:
        """Of the best rule there is, which is linear."""
        covariance = np.eye(len(self.mean)) + self.factors @ self.factors.T.astype(np.float64)
        distance = 2 * float(np.sqrt(self.mean @ np.linalg.solve(covariance, self.mean)))
        shift = np.log(PRIOR / (1 - PRIOR)) / distance
        below = NormalDist().cdf
        return PRIOR * below(distance / 2 + shift) + (1 - PRIOR) * below(distance / 2 - shift)


def draw_codes(rng: np.random.Generator, y: Any, share: float, first: int) -> Any:
    """Pairs of rows drawn at random, with the answer that their classes give; the rest is unlabeled."""
    n_pairs = int(len(y) * share) // 2
    ends = rng.permutation(len(y))[: 2 * n_pairs].reshape(n_pairs, 2)
    numbers = first + np.arange(n_pairs)
    codes = np.zeros(len(y), dtype=np.int64)
    codes[ends] = np.where(y[ends[:, 0]] == y[ends[:, 1]], numbers, -numbers)[:, None]
    return codes


def write(table: Table) -> dict[str, Any]:
    """File by file, as pyarrow writes by default: one row group of up to 2^20 rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    Path(table.folder).mkdir(parents=True)
    population, rows = Population.of_width(table.features), table.rows // table.n_files
    for k, file in enumerate(table.files):
        rng = np.random.default_rng([table.rows, table.features, k])
        y = np.where(rng.random(rows) < PRIOR, 1, -1).astype(np.int8)
        columns = dict(zip(table.names, population.draw(rng, y), strict=True))
        columns |= {"code": draw_codes(rng, y, table.paired, 1 + k * rows), "label": y}
        pq.write_table(pa.table(columns), file)
    return {"bytes": sum(Path(file).stat().st_size for file in table.files)}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def peak() -> float:
    """Largest resident memory of this process so far, GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def time_passes(blocks: Any) -> list[float]:
    """Note in a list how long each pass over the blocks takes from now on."""
    passes: list[float] = []
    plain_sum = blocks.sum

    def timed_sum(task: Callable[..., Any], *arguments: Any) -> Any:
        total, seconds = timed(lambda: plain_sum(task, *arguments))
        passes.append(seconds)
        return total

    blocks.sum = timed_sum
    return passes


def open_blocks(table: Table, codes: str = "code", n_jobs: int | None = None) -> Any:
    from sdulearn.streaming import parquet_blocks

    return parquet_blocks(table.folder, codes, columns=table.names, n_jobs=n_jobs)


def warm(blocks: Any) -> None:
    """Squared loss on a file a core: a process pays once for the memory it touches first, which is no cost of rows."""
    from sdulearn.streaming import SDUClassifier

    blocks.parts = blocks.parts[:CORES]
    SDUClassifier("sd", prior=PRIOR).fit(blocks)


def imports() -> dict[str, Any]:
    """What a fit imports; every measurement has it behind it before its clock starts."""
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401

    import sdulearn.streaming  # noqa: F401

    return {}


def read(table: Table) -> dict[str, Any]:
    """pyarrow alone, with all its threads (it would take OMP_NUM_THREADS for a wish), in three ways."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    pa.set_cpu_count(CORES)
    columns = [*table.names, "code"]

    def batches(files: list[str]) -> Iterator[Any]:
        for file in files:
            yield from pq.ParquetFile(file).iter_batches(BATCH, columns=columns)

    def scanned(files: list[str]) -> Iterator[Any]:
        yield from ds.dataset(files).to_batches(columns=columns, batch_size=BATCH)

    def whole(files: list[str]) -> Iterator[Any]:
        for file in files:
            yield pq.read_table(file, columns=columns)

    found = {}
    for name, way in {"seconds": batches, "dataset": scanned, "read_table": whole}.items():
        for files in (table.files[:CORES], table.files):  # the first to touch the memory
            found[name] = timed(lambda way=way, files=files: sum(len(part) for part in way(files)))[1]
    return found


def fit(table: Table, loss: str, risk: str = "sddu", n_jobs: int | None = None) -> dict[str, Any]:
    from sdulearn.streaming import SDUClassifier

    warm(open_blocks(table))
    blocks = open_blocks(table, n_jobs=n_jobs)
    passes = time_passes(blocks)
    model, seconds = timed(lambda: SDUClassifier(risk, loss, alpha=ALPHA).fit(blocks))
    return {"seconds": seconds, "inside": sum(passes), "passes": len(passes)} | _line(model)


def _line(model: Any) -> dict[str, Any]:
    line = {"line": [*model.coef_[0].tolist(), float(model.intercept_[0])]}
    return line | {"optimality": getattr(model, "optimality_", None)}


def _in_portions(table: Table, codes: str, learn: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """Read portions in one thread and give them to a learner; its own time is ``inside``."""
    warm(open_blocks(table))
    inside = 0.0

    def feed() -> None:
        nonlocal inside
        for X, y, _ in open_blocks(table, codes):
            inside += timed(lambda X=X, y=y: learn(X, y))[1]

    seconds = timed(feed)[1]
    return {"seconds": seconds, "inside": inside}


def partial_fit(table: Table, risk: str = "sddu") -> dict[str, Any]:
    from sdulearn import SDUClassifier

    model = SDUClassifier(risk, alpha=ALPHA)
    return _in_portions(table, "code", model.partial_fit) | _line(model)


def sgd(table: Table) -> dict[str, Any]:
    """scikit-learn's stochastic gradient on the true labels, one epoch."""
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(random_state=0)
    return _in_portions(table, "label", lambda X, y: model.partial_fit(X, y, classes=[-1, 1])) | _line(model)


def predict(table: Table, line: list[float], way: str) -> dict[str, Any]:
    """Margins of all rows: by the model, or by numpy with the coefficients in double or in single precision."""
    from sdulearn import SDUClassifier

    model, coef, intercept = SDUClassifier("sd", prior=PRIOR), np.array(line[:-1]), line[-1]
    model.fit(np.random.default_rng(0).normal(size=(4, table.features)), [1, 1, -2, -2])
    model.coef_, model.intercept_ = coef[None, :], np.array([intercept])
    single = coef.astype(np.float32)
    ways = {
        "model": lambda X, y: model.decision_function(X),
        "numpy": lambda X, y: X @ coef + intercept,
        "numpy, float32": lambda X, y: X @ single + np.float32(intercept),
    }
    return _in_portions(table, "code", ways[way])


def accuracy(table: Table, lines: dict[str, list[float]]) -> dict[str, Any]:
    """Share of true labels that each line meets."""
    W = np.array(list(lines.values()))
    met = np.zeros(len(W))
    for X, y, _ in open_blocks(table, "label"):
        met += np.sum((X @ W[:, :-1].T + W[:, -1] > 0) == (y > 0)[:, None], axis=0)
    return dict(zip(lines, (met / table.rows).tolist(), strict=True))


def _rate(kernel: Callable[[], float], least: float = 0.5) -> float:
    """Units of work a second, by all cores at once with a thread each; the best of three."""

    def work(_: int) -> float:
        done, began = 0.0, time.perf_counter()
        while (spent := time.perf_counter() - began) < least:
            done += kernel()
        return done / spent

    with ThreadPoolExecutor(CORES) as pool:
        return max(sum(pool.map(work, range(CORES))) for _ in range(3))


def rates() -> dict[str, Any]:
    """What this machine does in a second, apart from any fit of ours."""
    from threadpoolctl import threadpool_limits

    from sdulearn.losses import get_training_loss
    from sdulearn.solvers.linalg import piece_rows

    rng = np.random.default_rng(0)
    z = rng.normal(size=5000)
    logistic, hinge = get_training_loss("logistic"), get_training_loss("double_hinge")

    def move() -> float:
        """Single precision into double, less an origin, through a buffer that stays in the cache."""
        for begin in range(0, BATCH - 5000, 5000):
            piece = np.empty((5000, FEATURES), order="F")
            np.copyto(piece, X[begin : begin + 5000])
            piece -= origin
        return 12.0 * FEATURES * begin

    def gram(A: Any) -> float:
        total = np.zeros((A.shape[1], A.shape[1]))
        for _ in range(4):
            total += A.T @ A
        return 4.0 * A.shape[0] * A.shape[1] ** 2

    def smooth() -> float:
        return float(len(logistic.even(z)) + 0 * (logistic.even_grad(z)[0] + logistic.even_hess(z)[0]))

    def bent() -> float:
        return float(len(hinge.even(z)) + 0 * hinge.even_grad(z)[0])

    X, origin = np.asfortranarray(rng.normal(size=(BATCH, FEATURES)).astype(np.float32)), np.zeros(FEATURES)
    with threadpool_limits(1):
        found: dict[str, Any] = {"move": _rate(move), "logistic": _rate(smooth), "double_hinge": _rate(bent)}
        for d in (FEATURES, WIDE):
            A = np.asfortranarray(rng.normal(size=(piece_rows(d), d + 1)))
            found[f"gram {d}"] = _rate(functools.partial(gram, A))
    return found


def _loopback() -> int | None:
    """Bytes that went over this machine's loopback device so far."""
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split(":")[1].split()[0]) for line in lines if line.strip().startswith("lo:")), None)


@contextmanager
def _client() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    options = {"n_workers": CORES, "threads_per_worker": 1, "processes": True, "protocol": "tcp"}
    with LocalCluster(**options, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client


def dask(table: Table, loss: str) -> dict[str, Any]:
    """Worker processes, TCP. Squared loss reads the files in its one pass; the others keep the blocks in memory."""
    from distributed import futures_of, wait

    from sdulearn.distributed import DaskBlocks
    from sdulearn.streaming import SDUClassifier

    with _client() as client:
        client.run(imports)
        warm(DaskBlocks.from_parts(open_blocks(table).parts))
        source = DaskBlocks.from_parts(open_blocks(table).parts)
        kept, loading = timed(lambda: _kept(source, wait, futures_of)) if loss != "squared" else (source, 0.0)
        passes, before = time_passes(kept), _loopback()
        model, seconds = timed(lambda: SDUClassifier(loss=loss, alpha=ALPHA).fit(kept))
        after = _loopback()
        peaks = list(client.run(peak).values())
    sent = None if before is None or after is None else after - before
    found = {"seconds": seconds, "loading": loading, "inside": sum(passes), "passes": len(passes)}
    return found | {"sent": sent, "worker_peak": max(peaks)} | _line(model)


def _kept(source: Any, wait: Any, futures_of: Any) -> Any:
    blocks = source.persist()
    wait(futures_of(blocks.parts))
    return blocks


def _nothing(X: Any, y: Any, weight: Any) -> int:
    return len(y)


def _empty_part() -> list[Any]:
    return [(np.zeros((1, 1)), np.zeros(1, dtype=np.int64), None)]


def overhead(parts: int) -> dict[str, Any]:
    """Seconds a part when there is nothing to do: what the scheduler and the messages cost."""
    from sdulearn.distributed import DaskBlocks

    with _client():
        blocks = DaskBlocks.from_parts([functools.partial(_empty_part) for _ in range(parts)])
        seconds = [timed(lambda: blocks.sum(_nothing))[1] for _ in range(3)]
    return {"seconds_a_part": statistics.median(seconds) / parts}


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    work.__name__: work
    for work in (write, imports, read, fit, partial_fit, sgd, predict, accuracy, rates, dask, overhead)
}


def obey() -> None:
    """The child's side of ``run``."""
    order = json.loads(sys.stdin.read())
    imports()
    rows = [Table(**order["table"])] if order["table"] else []
    found = JOBS[order["job"]](*rows, **order["options"])
    print(json.dumps(found | {"peak": peak()}))


if __name__ == "__main__":
    obey()
