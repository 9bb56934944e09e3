"""Predict the class of every row of a table with a model that `sdulearn fit` wrote.

Writes id, label and, where the model has one, the probability of the second class (see `sdulearn
inspect`), in the order of the table. The table is read piece by piece, so it may be larger than
memory; the file appears whole or not at all. Large tables go fastest from Parquet (a file or a
folder) to Parquet (-o out.parquet); there ids stay as they are in the table, and row numbers are
numbers.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sdulearn.cli.progress import Progress
from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.io.answers import file_format
from sdulearn.table_model import TableModel, load_table_model
from sdulearn.workflow.predictions import Predictions, predictions

HELP = "classes of the rows of a table"
_ROW_GROUP = 1 << 20
Write = Callable[[Predictions], Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn predict``."""
    parser.add_argument("model", type=Path, help="model file")
    parser.add_argument(
        "table",
        type=Path,
        help="table, or folder of Parquet files, with the columns the model was fitted on, in any order",
    )
    parser.add_argument("-o", "--output", type=Path, help="file to write, .csv, .tsv or .parquet (default: the screen)")
    parser.add_argument("--id", help="id column (default: that of the training table; without it, row numbers from 0)")


def run(arguments: argparse.Namespace) -> int:
    """Predict piece by piece."""
    model, output = load_table_model(arguments.model), arguments.output
    unseen: Counter[str] = Counter()
    n_rows, n_positive = 0, 0
    # Bars and rows would not share a screen well.
    progress = None if output is None else Progress("predicting")
    with _written(output, model) as write:
        for found in predictions(model, arguments.table, arguments.id, progress):
            write(found)
            unseen += found.unseen
            n_rows += len(found.positive)
            n_positive += int(found.positive.sum())
    _tell(model, (n_rows - n_positive, n_positive), unseen, output)
    return 0


def _tell(model: TableModel, counts: tuple[int, int], unseen: Counter[str], output: Path | None) -> None:
    """A summary on the other stream where the rows go to the screen."""
    stream = sys.stderr if output is None else sys.stdout
    shares = ", ".join(f"{count:,} {name}" for count, name in zip(counts, model.classes, strict=True))
    meaning = "" if model.link is None else f"; probability is that of {model.classes[1]}"
    print(f"{sum(counts):,} rows: {shares}{meaning}", file=stream)
    for name, count in unseen.most_common():
        print(f"warning: {count:,} texts in {name!r} did not occur in training and count as none of its categories",
              file=stream)  # fmt: skip


@contextmanager
def _written(path: Path | None, model: TableModel) -> Iterator[Write]:
    """A function that writes rows: to the screen, or to a draft that takes the file's name when all has gone well."""
    if path is None:
        yield _csv_writer(sys.stdout, ",", model)
        return
    name = file_format(path, ("csv", "tsv", "parquet"))
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if name == "parquet":
            with _parquet_writer(draft, model) as write:
                yield write
        else:
            with draft.open("w", encoding="utf-8", newline="") as file:
                yield _csv_writer(file, "," if name == "csv" else "\t", model)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _csv_writer(file: IO[str], mark: str, model: TableModel) -> Write:
    writer = csv.writer(file, delimiter=mark, lineterminator="\n")
    writer.writerow(["id", "label"] if model.link is None else ["id", "label", "probability"])
    return lambda found: writer.writerows(text_rows(model, found))


def text_rows(model: TableModel, found: Predictions) -> Iterator[tuple[str, ...]]:
    """Id, label and probability of each row, as text that reads back to the same number."""
    labels = (model.classes[k] for k in found.positive.astype(int).tolist())
    if found.probability is None:
        return zip(found.id_texts(), labels, strict=True)
    return zip(found.id_texts(), labels, map(repr, found.probability.tolist()), strict=True)


@contextmanager
def _parquet_writer(path: Path, model: TableModel) -> Iterator[Write]:
    parquet = require("pyarrow.parquet", "files")
    writer: Any = None

    def write(found: Predictions) -> None:
        nonlocal writer
        batch = _record_batch(model, found, None if writer is None else writer.schema)
        if writer is None:
            writer = parquet.ParquetWriter(path, batch.schema, use_dictionary=["label"])
        writer.write_batch(batch, _ROW_GROUP)

    try:
        yield write
        if writer is None:
            raise InputError("The table has no rows, so there is nothing to write.")
    finally:
        if writer is not None:
            writer.close()


def _record_batch(model: TableModel, found: Predictions, schema: Any) -> Any:
    """Rows as Arrow has them; ids of a folder's files are written as those of the first."""
    pa = require("pyarrow", "files")
    ids = pa.array(found.ids, pa.string()) if isinstance(found.ids, list) else found.ids
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    columns = {
        "id": ids if schema is None else ids.cast(schema.field("id").type),
        "label": pa.array(model.classes).take(pa.array(found.positive.astype("int8"))),
    }
    if found.probability is not None:
        columns["probability"] = pa.array(found.probability)
    return pa.RecordBatch.from_pydict(columns)
