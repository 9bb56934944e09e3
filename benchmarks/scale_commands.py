"""Commands on a table of 2,000,000 x 20: CPU and wall seconds, and peak memory; and do they end as they should?

    make bench-commands

Each command runs in a process of its own, `check` of answers beside a CSV table so often that a thread of pyarrow that
outlives the program would show: it aborted one run in some. Writes the table of docs/scale.md.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from pages import write_between
from scale_jobs import Table, draw_codes
from scale_jobs import write as write_table

ROOT = Path(__file__).parents[1]
ANSWERS = 200
CSV_ROWS = 200_000
# A large table of every day.
EVERYDAY = (1_000_000, 10)


def write_files(folder: Path, rows: int, features: int) -> None:
    """A folder of Parquet files with ids and labels, answers about random rows, and the first rows as CSV."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    table = Table(str(folder / "drawn"), rows, features)
    write_table(table)
    (folder / "table").mkdir()
    labels = []
    for file in table.files:
        part = pq.read_table(file).drop_columns("code")
        first = sum(map(len, labels))
        part = part.append_column("id", pa.array([f"p{first + k}" for k in range(len(part))]))
        labels.append(part["label"].to_numpy())
        pq.write_table(part, folder / "table" / Path(file).name)
        if not first:
            pa.csv.write_csv(part[:CSV_ROWS], folder / "table.csv")
    shutil.rmtree(table.folder)
    n, d = EVERYDAY
    columns = ["id", *[name for name in part.column_names if name not in ("id", "label")][:d]]
    pa.csv.write_csv(pq.read_table(folder / "table", columns=columns)[:n], folder / "everyday.csv")
    y = np.concatenate(labels)
    for name, among in (("answers", y), ("first", y[:CSV_ROWS])):
        codes = draw_codes(np.random.default_rng(0), among, 2 * ANSWERS / len(among), 1)
        ends = np.flatnonzero(codes)[np.argsort(np.abs(codes[codes != 0]), kind="stable")].reshape(-1, 2)
        lines = [f"p{a},p{b},{int(codes[a] > 0)}" for a, b in ends]
        (folder / f"{name}.csv").write_text("\n".join(["id_a,id_b,label", *lines, ""]))


def run(arguments: list[str], folder: Path) -> dict[str, Any]:
    """One command in a child: its exit status, CPU and wall seconds, and peak memory in GB."""
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.execv(sys.executable, [sys.executable, *arguments])
    _, status, used = os.wait4(child, 0)
    found = {"status": os.waitstatus_to_exitcode(status), "wall": time.perf_counter() - began}
    return found | {"cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024 / 1e9}


READ = "import pyarrow.parquet as pq; [len(b) for f in {} for b in pq.ParquetFile(f).iter_batches()]"
STREAM = "--engine stream --drop label"
FIT = "fit --features table --pairs answers.csv -o {}.sdu " + STREAM
COMMANDS = {
    "fit --method sddu --loss squared": FIT.format("squared") + " --method sddu",
    "fit --method sddu --loss logistic": FIT.format("logistic") + " --method sddu --loss logistic",
    "fit --method sddu --loss double_hinge": FIT.format("hinge") + " --method sddu --loss double_hinge",
    "fit": FIT.format("joint"),
    "fit --classes 3": FIT.format("three") + " --classes 3",
    "ask, up to the first question": f"ask table -o log.jsonl --oracle label --questions 1 {STREAM[:15]}",
    "predict -o classes.parquet": "predict joint.sdu table -o classes.parquet",
    "predict -o classes/": "predict joint.sdu table -o classes",
    "`fit --model linear`, 10^6 rows x 10 of CSV": (
        "fit --model linear --features everyday.csv --pairs first.csv -o everyday.sdu"
    ),
    "`predict -o classes.csv`, of the same": "predict everyday.sdu everyday.csv -o classes.csv",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=2_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--checks", type=int, default=25, help="runs of `check` beside a CSV table")
    parser.add_argument("--only", default="", help="commands that begin like this")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "scale.md")
    arguments = parser.parse_args()
    program = "from sdulearn.cli.main import main; import sys; sys.exit(main())"
    lines = ["| command | CPU s | wall s | peak GB |", "| --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, arguments.rows, arguments.features)
        files = [str(file) for file in sorted((folder / "table").iterdir())]
        todo = {"read, by pyarrow": ["-c", READ.format(files)]}
        for title, command in COMMANDS.items():
            todo[f"`{title}`" if "," not in title else title] = ["-c", program, *command.split()]
        for title, command in todo.items():
            if not title.strip("`").startswith(arguments.only):
                continue
            found = run(command, folder)
            if found["status"]:
                raise SystemExit(f"{title} ended with {found['status']}")
            lines.append(f"| {title} | {found['cpu']:.1f} | {found['wall']:.1f} | {found['peak']:.2f} |")
            print(lines[-1], flush=True)
        check = ["-c", program, "check", "first.csv", "--features"]
        with gzip.open(folder / "table.csv.gz", "wb", 1) as file:
            file.write((folder / "table.csv").read_bytes())
        tables = ("table.csv", "table.csv.gz")
        ends = [run([*check, tables[k % 2]], folder)["status"] for k in range(arguments.checks)]
    runs = f"{arguments.checks} runs of `check first.csv --features table.csv` (zipped, too)"
    told = f"{runs}: {sum(map(bool, ends))} ended badly."
    size = f"{arguments.rows:,} rows x {arguments.features} float32 columns in Parquet, {ANSWERS} answers"
    print(told)
    if not arguments.only:
        write_between(
            arguments.page, "scale-commands", [f"{size}, `--engine stream`, {os.cpu_count()} cores. {told}", "", *lines]
        )
    if any(ends):
        raise SystemExit(f"check ended with {sorted(set(ends) - {0})}")


if __name__ == "__main__":
    main()
