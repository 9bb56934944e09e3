"""Predict the class of every row of a table with a model that `sdulearn fit` wrote.

Writes id, label and, where the model has one, the probability of the second class, or of each of several, in the
order of the table, which may be larger than memory; the file appears whole or not at all. Large tables go fastest
from Parquet to Parquet: into one file (-o out.parquet), or into a folder of files (-o out), which all cores write.
In CSV and TSV an apostrophe stands before ids and class names that a spreadsheet would
run as a formula; the summary says how many.

With --answers, rows that answers are about are predicted by features and answers together; the column
n_answers says by how many of these (0: by features alone).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import ne
from pathlib import Path
from typing import IO, Any

import numpy as np

from sdulearn.cli import options as cli
from sdulearn.errors import InputError, ModelFileError, pa, pc, require, shortened
from sdulearn.io.files import FORMULA_START, as_cell, file_format, written_whole
from sdulearn.parts import Sums
from sdulearn.table_model import TableModel, load_model
from sdulearn.tables.ids import id_texts
from sdulearn.workflow.predict import (
    Predictions,
    asked_rows,
    counts_of,
    number_columns,
    parquet_writer,
    predict_table,
    write_predictions,
)

Write = Callable[[Predictions], object]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``sdulearn predict``."""
    add = parser.add_argument
    add("model", type=Path, help="model file")
    add("table", type=Path, help="table, or folder of Parquet files, with the columns of the model, in any order")
    text = "file to write, .csv, .tsv (.gz too) or .parquet, or a folder of Parquet files, without an ending (screen)"
    add("-o", "--output", type=Path, help=text)
    add(
        "--id", dest="id_column", metavar="COLUMN", help="id column, or '' for row numbers (that of the training table)"
    )
    cli.add_sheet_options(parser)
    cli.add_files_options(parser)
    asked = parser.add_argument_group("rows that were asked about")
    asked.add_argument("--answers", type=Path, metavar="FILE", help="same/different answers about rows of this table")
    asked.add_argument("--skip-bad", action="store_true", help="leave out answers that cannot be used")
    cli.add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Predict batch by batch, and print a summary."""
    output = arguments.output
    cli.check_outputs((output,), (arguments.table, arguments.model, arguments.answers))
    if arguments.json and output is None:
        raise InputError("--json prints a summary in the place of the rows: name a file for these with -o.")
    model = load_model(arguments.model)
    if not isinstance(model, TableModel):
        raise ModelFileError(f"{arguments.model} holds an estimator without a table. Use sdulearn.load_model.")
    escaped: Counter[str] = Counter(id=0, label=0)
    options = cli.parameters_of(predict_table, arguments) | {"model": model}
    if output is not None and not output.suffix:
        found = write_predictions(**options, path=arguments.table, folder=output)
    else:
        found = _write(arguments, options, escaped)
    counts = dict(zip(model.names, found["by_class"].tolist(), strict=True))
    summary = {"n_rows": int(found["by_class"].sum()), "n_asked": found["n_asked"], "classes": counts}
    summary |= {"unseen_texts": found["unseen"], "formulas": escaped}
    if arguments.json:
        cli.print_json({"file": output, **summary})
    else:
        _tell(model, summary, output)
    return 0


def _write(arguments: argparse.Namespace, options: dict[str, Any], escaped: Counter[str]) -> Sums:
    """Write predictions to the screen or to one file."""
    model: TableModel = options["model"]
    counts = Sums(by_class=np.zeros(len(model.classes), dtype=np.int64), n_asked=0, unseen=Counter())
    # No bar between the rows on a screen.
    progress = arguments.output is not None
    with _written(arguments.output, model, escaped, arguments.answers is not None) as write:
        for found in predict_table(**options, path=arguments.table, progress=progress):
            write(found)
            counts += counts_of(found, len(model.classes))
    return counts


def _tell(model: TableModel, summary: dict[str, Any], output: Path | None) -> None:
    """Print a summary; on standard error if the rows are on the screen."""
    shares = ", ".join(f"{count:,} of class {shortened(name)}" for name, count in summary["classes"].items())
    two = len(model.classes) == 2 and model.link is not None
    meaning = f"; probability: that of class {shortened(model.names[1])}" if two else ""
    meaning += f"; {summary['n_asked']:,} rows by features and answers" if summary["n_asked"] else ""
    where = "" if output is None else f"wrote {output}: "
    shown = [f"{where}{summary['n_rows']:,} rows, {shares}{meaning}"]
    shown += [f"warning: {model.columns.unseen_words(*cells)}" for cells in summary["unseen_texts"].most_common()]
    escaped = "begin like a formula and are written with an apostrophe before them (not in -o out.parquet)"
    shown += [f"warning: {count:,} cells of {name!r} {escaped}" for name, count in (+summary["formulas"]).items()]
    cli.say("\n".join(shown), error=output is None)


def write_answered(path: Path, model: TableModel) -> None:
    """Write the rows in the answers of the fit."""
    with _written(path, model, Counter(), True) as write:
        write(asked_rows(model))


@contextmanager
def _written(path: Path | None, model: TableModel, escaped: Counter[str], answered: bool) -> Iterator[Write]:
    """Yield a function that writes predictions to the screen, or to a file, whole or not at all."""
    if path is None:
        with _csv_writer(_Screen(), ",", model, escaped, answered) as write:
            yield write
        return
    name = file_format(path, ("csv", "tsv", "parquet"))
    with written_whole(path) as draft:
        if name == "parquet":
            with parquet_writer(draft, model) as write:
                yield write
            if not draft.stat().st_size:
                raise InputError("The table has no rows, so there is nothing to write.")
            return
        zipped = path.suffix.lower() == ".gz"
        with (
            (gzip.open if zipped else open)(draft, "wt", encoding="utf-8", newline="") as file,
            _csv_writer(file, "," if name == "csv" else "\t", model, escaped, answered) as write,
        ):
            yield write


class _Screen:
    """Standard output without control characters, which an untrusted table may hold."""

    def write(self, line: str) -> int:
        return sys.stdout.write("\n".join(cli.printable(part) for part in line.split("\n")))


@contextmanager
def _csv_writer(
    file: IO[str] | _Screen, mark: str, model: TableModel, escaped: Counter[str], answered: bool
) -> Iterator[Write]:
    """Yield a function that writes rows, with a header before the first: not before an error."""
    writer = csv.writer(file, delimiter=mark, lineterminator="\n")
    header = [["id", "label", *number_columns(model, answered)]]

    def write(found: Predictions) -> None:
        writer.writerows(header)
        header.clear()
        file.write(_lines(model, found, escaped, mark))

    yield write
    writer.writerows(header)


def _lines(model: TableModel, found: Predictions, escaped: Counter[str], mark: str) -> str:
    """Return predictions as CSV: numbers in full precision, and no cell that is a formula."""
    arrow = require("pyarrow.csv", "files")
    ids = id_texts(found.ids)
    if pc.any(pc.match_substring_regex(ids, FORMULA_START)).as_py():
        plain = ids.to_pylist()
        ids = pa.array(map(as_cell, plain))
        escaped["id"] += sum(map(ne, ids.to_pylist(), plain))
    classes = [as_cell(name) for name in model.names]
    changed = np.array([*map(ne, classes, model.names)])
    escaped["label"] += int(changed[found.place].sum())
    columns = [ids, pa.array(classes).take(pa.array(found.place)), *map(np.ascontiguousarray, found.numbers)]
    table = pa.table(columns, names=list(map(str, range(len(columns)))))

    def written(style: str) -> str:
        buffer = io.BytesIO()
        options = arrow.WriteOptions(include_header=False, delimiter=mark, quoting_style=style)
        arrow.write_csv(table, buffer, options)
        return buffer.getvalue().decode()

    try:
        return written("none")
    except pa.ArrowInvalid:
        # A cell holds a delimiter, a quote or a line break.
        return written("needed")
