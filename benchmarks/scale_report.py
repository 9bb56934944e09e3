"""What scale.py found, as tables; and the cost model that is checked against it."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from runs import versions
from scale_jobs import ALPHA, CORES, FEATURES, LOSSES, PAIRED, PRIOR, ROWS_A_FILE, WIDE, Population, Table

from sdulearn.solvers.linalg import piece_rows

PAIR_FEATURES, WIDE_ROWS = 10, 100_000
# What the table of targets asks for.
READS_SQUARED, READS_OTHER, MEMORY_GB, FLAT = 2.0, 15.0, 1.5, 0.15
# The cluster of the last table: what is asked of it, and what is assumed about it without measuring.
FAR_ROWS, FAR_WORKERS, FAR_NETWORK, FAR_ROWS_A_FILE = 10**10, 100, 1.25e9, 10**6
# pyarrow's ways to read, and what the measurement calls them.
READ_WAYS = {"ParquetFile.iter_batches": "seconds", "dataset.to_batches": "dataset", "read_table": "read_table"}

Finding = dict[str, Any]


@dataclass
class Findings:
    """All that one run found: by size, by name of what was measured."""

    imports: Finding
    rates: Finding
    sizes: dict[int, dict[str, Finding]] = field(default_factory=dict)
    rivals: dict[str, Finding] = field(default_factory=dict)
    predictions: dict[str, Finding] = field(default_factory=dict)
    accuracy: dict[str, float] = field(default_factory=dict)
    pairs: dict[int, dict[str, Finding]] = field(default_factory=dict)
    wide: dict[str, Finding] = field(default_factory=dict)
    dask: dict[int, dict[str, Finding]] = field(default_factory=dict)
    overhead: float | None = None


def work(loss: str, d: int, paired: float) -> dict[str, float]:
    """Work of one row in one pass: bytes read from files, bytes moved in memory, flops, values of the loss."""
    k = d + 1
    # Out of pyarrow's columns into one matrix (4 + 4 bytes), from there into pieces in double precision (4 + 8).
    moved = 8.0 * d + 12.0 * d
    if loss == "squared":  # one symmetric product of all rows, one of the gathered ends of pairs
        return {"read": 4.0 * d + 8, "moved": moved + 16 * k * paired, "flops": k**2 * (1 + paired), "values": 0.0}
    if loss == "logistic":  # scale the rows (16 k), two products with vectors (8 k each), one symmetric product
        return {"read": 4.0 * d + 8, "moved": moved + 32 * k, "flops": float(k**2), "values": 1.0}
    # Three products with vectors; values with rounded kinks, twice. The rows near a kink are not known beforehand.
    return {"read": 4.0 * d + 8, "moved": moved + 24 * k, "flops": 0.0, "values": 2.0}


def seconds_a_row(loss: str, d: int, read: float, rates: Finding) -> dict[str, float]:
    """Seconds of one row in one pass, term by term; ``read`` is pyarrow's rate in bytes a second."""
    done = work(loss, d, PAIRED)
    values = done["values"] / rates[loss] if done["values"] else 0.0
    terms = {"read": done["read"] / read, "moved": done["moved"] / rates["move"]}
    return terms | {"flops": done["flops"] / rates[f"gram {d}"], "values": values}


def fit_seconds(loss: str, rows: int, d: int, passes: int, read: float, rates: Finding) -> float:
    """All passes; the first look of every loss is the pass of squared loss."""
    first, later = (sum(seconds_a_row(name, d, read, rates).values()) for name in ("squared", loss))
    return rows * (first + (passes - 1) * later)


def read_rate(table: dict[str, Finding], rows: int, d: int) -> float:
    """Bytes a second that pyarrow reads, in its fastest way."""
    return rows * (4 * d + 8) / min(table["read"][way] for way in READ_WAYS.values())


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def power(n: int) -> str:
    exponent = round(np.log10(n))
    return f"10^{exponent}" if n == 10**exponent else f"{n:,}"


def spoken(seconds: float) -> str:
    for size, unit in ((3600 * 24, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds >= 0.1 else f"{1e3 * seconds:.2f} ms"


def speed_table(found: Findings) -> list[str]:
    """For the README: seconds by loss and number of rows."""
    sizes = found.sizes.values()
    rows = [["reading alone, by pyarrow", *(f"{one['read']['seconds']:.2f}" for one in sizes)]]
    rows += [[loss.replace("_", " "), *(f"{one[loss]['seconds']:.2f}" for one in sizes)] for loss in LOSSES]
    peaks = (max(one[loss]["peak"] for loss in LOSSES) for one in sizes)
    rows.append(["peak memory of any of them, GB", *(f"{peak:.2f}" for peak in peaks)])
    return markdown([f"seconds of a fit from disk, {CORES} cores", *(f"{power(n)} rows" for n in found.sizes)], rows)


def size_table(found: Findings) -> list[str]:
    rows = []
    for n, table in found.sizes.items():
        once = table["read"]["seconds"]
        for loss in LOSSES:
            one = table[loss]
            cells = [f"{one['seconds']:.2f}", str(one["passes"]), f"{one['seconds'] / once:.1f}"]
            inside = f"{1e9 * one['inside'] / (n * one['passes']):.0f}"
            between = f"{one['seconds'] - one['inside']:.2f}"
            rows.append([power(n), loss, *cells, inside, between, f"{one['peak']:.2f}", f"{one['optimality']:.0e}"])
    head = ["rows", "loss", "seconds", "passes", "reads", "ns a row and pass", "s between passes", "peak GB", "KKT"]
    return markdown(head, rows)


def read_table(found: Findings) -> list[str]:
    rows = [[power(n), *(f"{t['read'][key]:.2f}" for key in READ_WAYS.values())] for n, t in found.sizes.items()]
    return markdown(["rows", *(f"`{way}`, s" for way in READ_WAYS)], rows)


def flatness(found: Findings) -> dict[str, float]:
    """Cost of a row in a pass at the largest size over that at a tenth of it, less 1."""
    sizes = sorted(found.sizes)
    if len(sizes) < 2:
        return {}
    small, large = sizes[-2:]
    cost = {
        (n, loss): found.sizes[n][loss]["inside"] / found.sizes[n][loss]["passes"] / n for n in sizes for loss in LOSSES
    }
    return {loss: cost[large, loss] / cost[small, loss] - 1 for loss in LOSSES}


def target_table(found: Findings) -> list[str]:
    n = max(found.sizes)
    table = found.sizes[n]
    reads = {loss: table[loss]["seconds"] / table["read"]["seconds"] for loss in LOSSES}
    peaks = [one[loss]["peak"] for one in found.sizes.values() for loss in LOSSES]
    peaks += [one[way]["peak"] for one in found.pairs.values() for way in one]
    rows = [
        (f"squared loss, {power(n)} rows, in reads by pyarrow", READS_SQUARED, reads["squared"], "{:.2f}"),
        (f"logistic loss, {power(n)} rows, in reads by pyarrow", READS_OTHER, reads["logistic"], "{:.1f}"),
        (f"double hinge, {power(n)} rows, in reads by pyarrow", READS_OTHER, reads["double_hinge"], "{:.1f}"),
        ("peak memory of any fit above, GB", MEMORY_GB, max(peaks), "{:.2f}"),
    ]
    small = sorted(found.sizes)[-2] if len(found.sizes) > 1 else n
    rows += [
        (f"{loss}: cost of a row from {power(small)} to {power(n)} rows, change", FLAT, change, "{:+.0%}")
        for loss, change in flatness(found).items()
    ]
    if len(found.pairs) > 1:
        (few, a), (many, b) = sorted(found.pairs.items())[-2:]
        change = b["stream"]["inside"] / many / (a["stream"]["inside"] / few) - 1
        rows.append((f"cost of a pair from {power(few)} to {power(many)} pairs, change", FLAT, change, "{:+.0%}"))
    sgd, ours = (found.rivals[name]["seconds"] for name in ("sgd", "partial_fit"))
    rows.append(("`partial_fit` over SGD, time, one thread each", 1.0, ours / sgd, "{:.2f}"))
    cells = []
    for name, wanted, got, form in rows:
        limit = ("within " if "+" in form else "at most ") + form.format(wanted).lstrip("+")
        cells.append([name, limit, form.format(got), "yes" if abs(got) <= wanted else "**no**"])
    return markdown(["target", "wanted", "reached", "met"], cells)


def rival_table(found: Findings) -> list[str]:
    names = {
        "sgd": "`SGDClassifier.partial_fit`, true labels, one thread",
        "partial_fit": "`SDUClassifier.partial_fit`, one thread",
        "one thread": "`streaming.SDUClassifier`, `n_jobs=1`",
        "all threads": f"`streaming.SDUClassifier`, {CORES} threads",
    }
    base = found.rivals["sgd"]
    rows = []
    for key, name in names.items():
        one = found.rivals[key]
        alone = f"{one['inside']:.2f}" if key in ("sgd", "partial_fit") else ""
        rows.append([name, f"{one['seconds']:.2f}", f"{base['seconds'] / one['seconds']:.1f}x", alone])
    return markdown(["one pass", "seconds", "faster than SGD", "without reading, s"], rows)


def prediction_table(found: Findings) -> list[str]:
    n = max(found.sizes)
    names = {
        "model": "`decision_function`",
        "numpy": "`X @ coef + intercept`",
        "numpy, float32": "the same, coefficients in float32",
    }
    rows = [
        [name, *(f"{n / found.predictions[key][part] / 1e6:.1f}" for part in ("seconds", "inside"))]
        for key, name in names.items()
    ]
    return markdown(["million rows a second, one thread", "with reading", "without"], rows)


def accuracy_table(found: Findings) -> list[str]:
    n = max(found.sizes)
    same = _distance(found.rivals["partial_fit"]["line"], found.sizes[n]["squared"]["line"])
    names = {"sgd": "SGD, true labels"} | {loss: f"{loss}, pair codes" for loss in LOSSES}
    rows = [[name, f"{found.accuracy[key]:.2%}"] for key, name in names.items()]
    rows.append(["the best rule there is", f"{Population.of_width(FEATURES).best_accuracy():.2%}"])
    rows.append(["the larger class", f"{PRIOR:.2%}"])
    note = f"Coefficients of `partial_fit` and of the stream differ by {same:.0e}, relative."
    return [*markdown(["accuracy on the true labels", ""], rows), "", note]


def _distance(a: Sequence[float], b: Sequence[float]) -> float:
    return float(np.linalg.norm(np.subtract(a, b)) / np.linalg.norm(b))


def pair_table(found: Findings) -> list[str]:
    rows = []
    for n_pairs, ways in found.pairs.items():
        for way, one in ways.items():
            cost = f"{1e9 * one['seconds'] / (2 * n_pairs):.0f}"
            rows.append([power(n_pairs), way, f"{one['seconds']:.2f}", cost, f"{one['peak']:.2f}"])
    return markdown(["pairs", "by", "seconds", "ns a row", "peak GB"], rows)


def dask_table(found: Findings) -> list[str]:
    rows = []
    for n, losses in found.dask.items():
        for loss, one in losses.items():
            stream, p = found.sizes[n][loss], one["passes"]
            sent = "not measured" if one["sent"] is None else f"{one['sent'] / p / 1e6:.2f}"
            apart = _distance(one["line"], stream["line"])
            cells = [f"{one['loading']:.2f}", f"{one['inside'] / p:.2f}", f"{stream['inside'] / stream['passes']:.2f}"]
            ends = [sent, f"{sent_bytes(loss, n, p) / p / 1e6:.2f}", f"{one['worker_peak']:.2f}", f"{apart:.0e}"]
            rows.append([power(n), loss, *cells, *ends])
    head = ["rows", "loss", "loading, s", "s a pass", "stream, s a pass", "MB sent a pass", "model, MB"]
    head += ["peak of a worker, GB", "difference"]
    return markdown(head, rows)


def result_bytes(loss: str, d: int) -> int:
    """Bytes of the result of one part: three Gram matrices for squared loss and every first look, else one."""
    return 8 * (d + 1) ** 2 * (3 if loss == "squared" else 1)


def sent_bytes(loss: str, rows: int, passes: int) -> float:
    """What goes between processes in a fit: results and the sample, up a tree of eights; coefficients are small."""
    levels = [Table("", rows).n_files]
    while levels[-1] > 1:
        levels.append(-(-levels[-1] // 8))
    elsewhere = 1 - 1 / CORES
    results = result_bytes("squared", FEATURES) + (passes - 1) * result_bytes(loss, FEATURES)
    sample = 0.0 if loss == "squared" else sample_rows(rows) * (4 * FEATURES + 16)
    return results * (sum(levels[:-1]) * elsewhere + 1) + sample * ((len(levels) - 1) * elsewhere + 1)


def sample_rows(rows: int) -> float:
    """Rows that a first look brings together: of each source at most so many."""
    from sdulearn.solvers.linalg import affordable_rows

    similar = PRIOR**2 + (1 - PRIOR) ** 2
    sources = (PAIRED * similar, PAIRED * (1 - similar), 1 - PAIRED)
    return sum(min(share * rows, affordable_rows(FEATURES + 1)) for share in sources)


def rate_table(found: Findings) -> list[str]:
    n, r = max(found.sizes), found.rates
    rows = [
        ["read Parquet, pyarrow's fastest way", f"{read_rate(found.sizes[n], n, FEATURES) / 1e9:.2f} GB/s of columns"],
        [f"the same, {WIDE:,} columns", f"{read_rate(found.wide, WIDE_ROWS, WIDE) / 1e9:.2f} GB/s"],
        ["move float32 into float64 pieces", f"{r['move'] / 1e9:.1f} GB/s, read and written"],
        *([f"A'A, {d} columns", f"{r[f'gram {d}'] / 1e9:.0f} Gflop/s (n d^2)"] for d in (FEATURES, WIDE)),
        ["logistic loss with two derivatives", f"{r['logistic'] / 1e6:.0f} million rows/s"],
        ["double hinge with its slope", f"{r['double_hinge'] / 1e6:.0f} million rows/s"],
    ]
    if found.overhead is not None:
        rows.append(["a Dask part with nothing to do", f"{1e3 * found.overhead:.2f} ms"])
    return markdown([f"what {CORES} cores do here", "rate"], rows)


def model_table(found: Findings) -> list[str]:
    """Predicted against measured seconds in all passes of a fit."""
    n_largest = max(found.sizes)
    points = [(n, FEATURES, loss, table[loss]) for n, table in found.sizes.items() for loss in LOSSES]
    points.append((WIDE_ROWS, WIDE, "squared", found.wide["squared"]))
    speed = {FEATURES: read_rate(found.sizes[n_largest], n_largest, FEATURES)}
    speed[WIDE] = read_rate(found.wide, WIDE_ROWS, WIDE)
    rows = []
    for n, d, loss, one in points:
        terms = seconds_a_row(loss, d, speed[d], found.rates)
        predicted, measured = fit_seconds(loss, n, d, one["passes"], speed[d], found.rates), one["inside"]
        parts = [f"{1e9 * terms[name]:.0f}" for name in ("read", "moved", "flops", "values")]
        ends = [str(one["passes"]), f"{predicted:.2f}", f"{measured:.2f}", f"{measured / predicted:.2f}"]
        rows.append([f"{power(n)} x {d:,}", loss, *parts, *ends])
    head = ["rows x features", "loss", "read", "move", "flops", "loss values", "passes"]
    head += ["predicted, s", "measured, s", "ratio"]
    return markdown(head, rows)


def far_table(found: Findings) -> list[str]:
    """The far fit on workers like this machine, by the model."""
    columns = [far_fit(found, loss) for loss in LOSSES]
    lines = [[name, *(column[name] for column in columns)] for name in columns[0]]
    return markdown([f"{power(FAR_ROWS)} rows x {WIDE:,}, {FAR_WORKERS} workers", *LOSSES], lines)


def far_fit(found: Findings, loss: str) -> dict[str, str]:
    """What one worker does, term by term."""
    rows, parts, d = FAR_ROWS // FAR_WORKERS, FAR_ROWS // FAR_ROWS_A_FILE, WIDE
    passes = found.sizes[max(found.sizes)][loss]["passes"]
    speed = read_rate(found.wide, WIDE_ROWS, WIDE)
    terms = {name: rows * seconds for name, seconds in seconds_a_row(loss, d, speed, found.rates).items()}
    network = parts / FAR_WORKERS * result_bytes(loss, d) / FAR_NETWORK
    scheduler = parts * (found.overhead or 0.0)
    work_again = fit_seconds(loss, rows, d, passes, speed, found.rates)
    again = work_again + passes * (network + scheduler)
    kept = again - (passes - 1) * terms["read"]
    slower = found.wide["squared"]["inside"] / fit_seconds("squared", WIDE_ROWS, d, 1, speed, found.rates)
    return {
        "passes, as measured above": str(passes),
        "a pass: read its share of the files": spoken(terms["read"]),
        "a pass: move it in memory": spoken(terms["moved"]),
        "a pass: flops": spoken(terms["flops"]) if terms["flops"] else "in the first only",
        "a pass: loss values": spoken(terms["values"]) if terms["values"] else "none",
        "a pass: results over the network": spoken(network),
        "a pass: scheduler": spoken(scheduler) if found.overhead is not None else "not measured",
        "**whole fit, files read again each pass**": f"**{spoken(again)}**",
        f"the same, {slower:.1f} times as slow, as measured at this width": spoken(again + (slower - 1) * work_again),
        "whole fit, blocks kept in memory": spoken(kept) if passes > 1 else "no need",
        "memory to keep them, a worker": f"{4 * rows * d / 1e9:,.0f} GB" if passes > 1 else "none",
    }


def far_notes(found: Findings) -> list[str]:
    """The sizes behind the table of the far fit."""
    parts, d = FAR_ROWS // FAR_ROWS_A_FILE, WIDE
    rounds = int(np.ceil(np.log(parts) / np.log(8)))
    chain = FAR_ROWS_A_FILE // piece_rows(d) + 8 * rounds
    text = (
        f"The features are {4 * FAR_ROWS * d / 1e12:.0f} TB of float32, {4 * FAR_ROWS * d / FAR_WORKERS / 1e9:,.0f} GB "
        f"a worker, in {parts:,} files of {power(FAR_ROWS_A_FILE)} rows. A pass with second moments is "
        f"{FAR_ROWS * d**2:.0e} flops. A Gram matrix is {8 * (d + 1) ** 2 / 1e6:.0f} MB; in a tree of eights its sums "
        f"need {rounds} rounds. A number goes through at most {chain:,} additions one after the other outside of BLAS, "
        f"so rounding there is at most {chain * np.finfo(float).eps / 2:.0e} of the sum of absolute values. Assumed, "
        f"not measured: {8 * FAR_NETWORK / 1e9:.0f} Gbit/s and {CORES} cores a worker, with the rates above; as many "
        "passes as above; files that every worker reads as fast as this machine reads its page cache."
    )
    return [text]


def report(found: Findings, repeats: int) -> dict[str, list[str]]:
    """The tables by name."""
    tables = {
        "scale-speed": speed_table(found),
        "scale-targets": target_table(found),
        "scale-sizes": size_table(found),
        "scale-reads": read_table(found),
        "scale-rivals": rival_table(found),
        "scale-predictions": prediction_table(found),
        "scale-accuracy": accuracy_table(found),
        "scale-pairs": pair_table(found),
        "scale-rates": rate_table(found),
        "scale-model": model_table(found),
        "scale-far": [*far_table(found), "", *far_notes(found)],
    }
    tables["scale-machine"] = [setting(found, repeats)]
    tables["scale-dask"] = dask_table(found) if found.dask else ["Not measured in this run (`--skip-dask`)."]
    return tables


def setting(found: Findings, repeats: int) -> str:
    packages = ["sdulearn", "numpy", "pyarrow", "scikit-learn"]
    packages += [name for name in ("dask", "distributed") if importlib.util.find_spec(name)]
    return (
        f"Machine: {CORES} cores, Python {platform.python_version()}, {versions(*packages)}. {FEATURES} float32 "
        f"features, two Gaussian classes with a correlated covariance, prior {PRIOR}, {PAIRED:.0%} of the rows in "
        f"pairs and the rest unlabeled; Parquet as pyarrow writes it, in files of up to {ROWS_A_FILE:,} rows; alpha "
        f"{ALPHA:g}; medians of {repeats} runs in turns. Importing alone takes {found.imports['peak']:.2f} GB, which "
        "is part of every peak."
    )


PAGE = (
    ("Large data: measurements", "scale-machine", ""),
    ("Targets", "scale-targets", ""),
    (
        "Fits from disk",
        "scale-sizes",
        "`streaming.SDUClassifier` over `parquet_blocks`. A read is pyarrow's `iter_batches` over the same columns "
        "with all its threads, in the same run. Every clock starts after imports and a first look at a file a core, "
        "since a process pays once for the memory it touches first. What a row costs is the time inside the passes; "
        "between them a small problem is solved, whose size does not grow with the rows.",
    ),
    ("Reading alone", "scale-reads", "Other ways of pyarrow to read the same columns; the last needs most memory."),
    (
        "One pass against SGD",
        "scale-rivals",
        "The largest size, the same batches. SGD knows the true labels and has one thread; its copy of the batch into "
        "row order is part of its time.",
    ),
    ("Prediction", "scale-predictions", "The same batches. `decision_function` also checks that all is finite."),
    ("Is it right?", "scale-accuracy", ""),
    (
        "Ends of pairs only",
        "scale-pairs",
        f"Every row is an end of a pair, {PAIR_FEATURES} features, risk SD, squared loss.",
    ),
    (
        "Dask, worker processes and TCP",
        "scale-dask",
        "One worker process a core. Squared loss reads the files in its pass; the others load the blocks once. Bytes "
        "are those of the loopback device, other traffic of the machine included; the model counts results and the "
        "sample that a fit starts from. The last column compares coefficients with those of the stream.",
    ),
    ("Rates", "scale-rates", "Measured apart from any fit, all cores at once."),
    (
        "The cost model against the measurements",
        "scale-model",
        "Nanoseconds a row and pass by term; then seconds in all passes. The first pass of every loss is that of "
        "squared loss.",
    ),
    ("10^10 rows", "scale-far", ""),
)


def page(tables: dict[str, list[str]]) -> str:
    parts = []
    for k, (title, name, text) in enumerate(PAGE):
        parts.append(f"{'##' if k else '#'} {title}")
        parts += [text] if text else []
        parts.append("\n".join(tables[name]))
    parts.insert(1, "Made by `make bench-scale` (`benchmarks/scale.py`); do not edit.")
    return "\n\n".join(parts) + "\n"
