"""Large data: commands on a Parquet table, sums on disk and on Dask, and what a sample of the unlabeled rows costs.

    make bench-scale

Each measurement of time runs in a process of its own. Writes the tables of docs/evidence/speed.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from pages import EVIDENCE, table, write_section

ROOT = Path(__file__).parents[1]
ROWS, FEATURES, ROWS_A_FILE, PRIOR = 2_000_000, 20, 500_000, 0.7
ANSWERS = 200
COMMAND = "from sdulearn.cli.main import main; import sys; sys.exit(main())"
FIT = "fit table answers.csv --drop label,code -o {}.sdu"
COMMANDS = {
    "`fit`": FIT.format("joint"),
    "`fit --method sddu --loss logistic`": FIT.format("sddu") + " --method sddu --loss logistic",
    "`predict -o classes.parquet`": "predict joint.sdu table -o classes.parquet",
    "`predict -o classes/`, a folder": "predict joint.sdu table -o classes/",
}
OPEN = """
from sdulearn import *
from sdulearn.large import *
names = [f"x{j}" for j in range(20)]
rows = lambda: parquet_rows("table", codes="code", columns=names)
"""
ON_DASK = """
import dask.dataframe as dd
from distributed import Client
if __name__ == "__main__":
    with Client(processes=True, threads_per_worker=1, dashboard_address=None):
        frame = dd.read_parquet("table")
        fit_rows(SDUClassifier(), dask_rows(frame[names], frame["code"]))
"""
PROGRAMS = {
    "`fit_rows(SDUClassifier(), ...)`: sums": "fit_rows(SDUClassifier(), rows())",
    "`fit_rows(SDUClassifier(loss='logistic'), ...)`": "fit_rows(SDUClassifier(loss='logistic'), rows())",
    "`fit_rows(PairLogisticRegression(), ...)`": "fit_rows(PairLogisticRegression(), rows())",
    f"the sums on a local Dask cluster of {os.cpu_count()} processes": ON_DASK,
}


def write_table(folder: Path, rows: int) -> None:
    """Files of 500,000 rows of two Gaussian classes, with ids, 20 pairs in 10,000 rows, and 200 answers as a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    mean = rng.choice([-1, 1], FEATURES) * np.linspace(0.2, 1.8, FEATURES) / np.sqrt(FEATURES)
    (folder / "table").mkdir()
    labels = []
    for begin in range(0, rows, ROWS_A_FILE):
        n = min(ROWS_A_FILE, rows - begin)
        y = np.where(rng.random(n) < PRIOR, 1, -1)
        X = (rng.normal(size=(FEATURES, n)) + np.outer(mean, y)).astype(np.float32)
        ends = rng.permutation(n)[: 4 * (n // 2000)].reshape(-1, 2)
        codes = np.zeros(n, dtype=np.int64)
        codes[ends] = (np.where(y[ends[:, 0]] == y[ends[:, 1]], 1, -1) * (1 + begin + np.arange(len(ends))))[:, None]
        columns = {f"x{j}": column for j, column in enumerate(X)}
        ids = [f"p{begin + k}" for k in range(n)]
        path = folder / "table" / f"{begin // ROWS_A_FILE:03d}.parquet"
        pq.write_table(pa.table({**columns, "code": codes, "label": y, "id": ids}), path)
        labels.append(y)
    y = np.concatenate(labels)
    ends = rng.permutation(len(y))[: 2 * ANSWERS].reshape(-1, 2)
    lines = [f"p{a},p{b},{int(y[a] == y[b])}" for a, b in ends]
    (folder / "answers.csv").write_text("\n".join(["id_a,id_b,label", *lines, ""]))


def run(program: str, arguments: list[str], folder: Path) -> dict[str, Any]:
    """A program in a child: CPU and wall seconds, and peak memory in MB, without children of its own."""
    (folder / "program.py").write_text(program)
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(sys.executable, [sys.executable, "program.py", *arguments])
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{program} {' '.join(arguments)} failed")
    return {"wall": time.perf_counter() - began, "cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss / 1024}


def time_and_memory(rows: int, only: str) -> list[list[str]]:
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder, rows)
        todo = {title: (COMMAND, command.split()) for title, command in COMMANDS.items()}
        todo |= {title: (OPEN + program, []) for title, program in PROGRAMS.items()}
        for title, given in todo.items():
            if title.strip("`").startswith(only):
                one = run(*given, folder)
                found.append([title, f"{one['wall']:.1f}", f"{one['cpu']:.1f}", f"{one['peak']:.0f}"])
                print(*found[-1], flush=True)
    return found


def sample_against_all(n_unlabeled: int, n_draws: int) -> list[list[str]]:
    """Accuracy, and error of the scores as a share of their deviation, of fits to a sample of the unlabeled rows."""
    import pyarrow as pa

    from sdulearn import SDUClassifier
    from sdulearn.datasets import make_waveform, sample_sdu
    from sdulearn.large import fit_rows, parquet_rows, survey

    X, y = make_waveform(4 * n_unlabeled, random_state=0)
    found = []
    for loss in ("logistic", "double_hinge"):
        for n_pairs in (200, 2000, 20_000):
            results = []
            for draw in range(n_draws):
                options = {"n_pairs": n_pairs, "n_unlabeled": n_unlabeled, "prior": PRIOR, "n_test": 20_000}
                rows, codes, X_test, y_test = sample_sdu(X, y, **options, random_state=draw)
                model = SDUClassifier(loss=loss, alpha=1e-3)
                columns = {f"x{j}": column for j, column in enumerate(rows.T)}
                source = parquet_rows(pa.table({**columns, "code": codes}), codes="code")
                kept = survey(source)[0]
                scores = [model.fit(rows, codes).decision_function(X_test)]
                scores += [model.fit(kept.X, kept.y, kept.weight).decision_function(X_test)]
                fit_rows(model, source)
                scores += [X_test @ model.coef_[0] + model.intercept_[0]]
                right = [100 * np.mean(np.sign(z) == y_test) for z in scores]
                results.append([*right, *(np.std(z - scores[0]) / np.std(scores[0]) for z in scores[1:])])
            whole, sample, exact, error, exact_error = np.mean(results, axis=0)
            cells = [f"{whole:.1f}", f"{sample:.1f}, {error:.2f}", f"{exact:.1f}, {exact_error:.2f}"]
            found.append([loss, f"{n_pairs:,}", *cells])
            print(*found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=ROWS)
    parser.add_argument("--only", default="", help="measurements that begin like this, without writing the page")
    arguments = parser.parse_args()
    times = time_and_memory(arguments.rows, arguments.only)
    if arguments.only:
        return
    size = f"{arguments.rows:,} rows of {FEATURES} float32 columns in Parquet, {os.cpu_count()} cores."
    head = ["", "seconds", "CPU seconds", "peak MB"]
    write_section(EVIDENCE / "speed.md", "scale-times", [size, "", *table(head, times)], "one run")
    head = ["loss", "pairs", "all rows", "sample of 20,000", "sample and exact mean"]
    write_section(EVIDENCE / "speed.md", "scale-sample", table(head, sample_against_all(100_000, 3)), "3 draws")


if __name__ == "__main__":
    main()
