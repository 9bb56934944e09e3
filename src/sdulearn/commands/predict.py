"""Predict the class of every row of a table with a model that `sdulearn fit` wrote.

Writes id, label and, where the model has one, the probability of the second class (see `sdulearn inspect`), in the
order of the table. The table is read a chunk at a time, so it may be larger than memory; the file appears whole or not
at all.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sdulearn.files import file_format
from sdulearn.servable import TableModel, load_table_model
from sdulearn.tables import Table, read_chunks

HELP = "classes of the rows of a table"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn predict``."""
    parser.add_argument("model", type=Path, help="model file")
    parser.add_argument("table", type=Path, help="table with the columns the model was fitted on, in any order")
    parser.add_argument("-o", "--output", type=Path, help="file to write, .csv or .tsv (default: the screen)")
    parser.add_argument("--id", help="id column (default: that of the training table; without it, row numbers from 0)")


def run(arguments: argparse.Namespace) -> int:
    """Predict chunk by chunk."""
    model = load_table_model(arguments.model)
    mark = "," if arguments.output is None or file_format(arguments.output, ("csv", "tsv")) == "csv" else "\t"
    unseen: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    with _output(arguments.output) as file:
        writer = csv.writer(file, delimiter=mark, lineterminator="\n")
        writer.writerow(["id", "label"] if model.link is None else ["id", "label", "probability"])
        for chunk in read_chunks(arguments.table, model.layout, id_column=arguments.id):
            rows = predicted_rows(model, chunk)
            writer.writerows(rows)
            unseen += chunk.unseen
            counts.update(row[1] for row in rows)
    _tell(model, counts, unseen, arguments.output)
    return 0


def predicted_rows(model: TableModel, chunk: Table) -> list[tuple[str, ...]]:
    """Id, label and probability of each row, as text that reads back to the same number."""
    decision = model.decision(chunk.X)
    labels, probability = model.labels(decision), model.probability(decision)
    if probability is None:
        return list(zip(chunk.ids, labels, strict=True))
    return list(zip(chunk.ids, labels, map(repr, probability.tolist()), strict=True))


def _tell(model: TableModel, counts: Counter[str], unseen: Counter[str], output: Path | None) -> None:
    """A summary on the other stream where the rows go to the screen."""
    stream = sys.stderr if output is None else sys.stdout
    shares = ", ".join(f"{counts[name]:,} {name}" for name in model.classes)
    meaning = "" if model.link is None else f"; probability is that of {model.classes[1]}"
    print(f"{sum(counts.values()):,} rows: {shares}{meaning}", file=stream)
    for name, count in unseen.most_common():
        print(f"warning: {count:,} texts in {name!r} did not occur in training and count as none of its categories",
              file=stream)  # fmt: skip


@contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    """The screen, or a draft that takes the file's name when all has gone well."""
    if path is None:
        yield sys.stdout
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            yield file
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
