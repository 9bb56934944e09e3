"""How much of the package a default fit passes: functions and modules, counted by ``sys.setprofile``.

    python tools/passed.py

fits a table of three columns, an id and two numbers of 400 rows, from CSV files with 100 answers. What is imported on
the way is not counted, only functions that run.
"""

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

import sdulearn
from sdulearn import fit_table

PACKAGE = str(Path(sdulearn.__file__).parent)


def write_files(folder):
    """Write a table of two classes, and answers about random pairs."""
    rng = np.random.default_rng(0)
    classes = rng.random(400) < 0.6
    X = rng.normal(size=(400, 2)) + 2 * classes[:, None]
    ends = rng.permutation(400)[:200].reshape(-1, 2)
    tables = {
        "table.csv": [("id", "a", "b"), *((f"r{k}", *x) for k, x in enumerate(X.round(4).tolist()))],
        "answers.csv": [
            ("id_a", "id_b", "label"),
            *((f"r{a}", f"r{b}", int(classes[a] == classes[b])) for a, b in ends.tolist()),
        ],
    }
    for name, rows in tables.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return folder / "table.csv", folder / "answers.csv"


def passed(work):
    """Return the functions of the package that ran, as (file, first line); comprehensions are not functions."""
    codes = set()

    def profile(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            codes.add((code.co_filename, code.co_firstlineno))

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return codes


def main():
    """Print the counts, for both kinds of model."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder))
        for name, options in (("default", {}), ("linear", {"model": "linear"})):
            # Once before, so that imports have run.
            fit_table(*files, **options)
            functions = passed(lambda options=options: fit_table(*files, **options))
            print(f"{name}: {len(functions)} functions in {len({file for file, _ in functions})} modules")


if __name__ == "__main__":
    main()
