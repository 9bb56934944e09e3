"""``sdulearn predict``."""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import ne
from pathlib import Path
from typing import IO, Any

import numpy as np

from sdulearn.cli import options as cli
from sdulearn.errors import InputError, ModelFileError, pa, pc, require, shortened
from sdulearn.findings import Finding, FitWarning
from sdulearn.io.files import FORMULA_START, as_cell, file_format, written_whole
from sdulearn.reading import Reading
from sdulearn.report.results import lines
from sdulearn.table_model import TableModel, load_model
from sdulearn.tables.ids import id_texts
from sdulearn.tables.known_ids import ids_among
from sdulearn.workflow.predict import (
    Predictions,
    asked_rows,
    counts_of,
    findings_of,
    no_counts,
    number_columns,
    parquet_writer,
    predict_table,
    write_predictions,
)

Write = Callable[[Predictions], object]


def run(arguments: argparse.Namespace) -> int:
    """Predict batch by batch, and print a summary."""
    given = arguments.output
    output = None if given in (None, "-") else Path(given)
    is_folder = output is not None and given.endswith(("/", os.sep))
    cli.check_outputs((output,), (arguments.table, arguments.model, arguments.answers), is_folder)
    if arguments.json and output is None:
        raise InputError("--json prints a summary instead of the rows: name a file for the rows with -o.")
    model = load_model(arguments.model)
    if not isinstance(model, TableModel):
        raise ModelFileError(f"{arguments.model} contains an estimator without a table. Use sdulearn.load_model.")
    escaped: Counter[str] = Counter(id=0, label=0)
    id_column = model.columns.id_column or "" if arguments.id_column is None else arguments.id_column
    reading = Reading(id_column=id_column, sheet=arguments.sheet, skip_rows=arguments.skip_rows)
    find_ids = partial(ids_among, arguments.table, reading)
    answers = None if arguments.answers is None else cli.answers_of(arguments, find_ids)
    names = ("id_column", "skip_bad", "image_root", "embedding", "text_model", "sheet", "skip_rows")
    options = {"answers": answers, **{name: getattr(arguments, name) for name in names}}
    if output is not None and is_folder:
        sums = write_predictions(model, arguments.table, output, **options)
    else:
        sums = no_counts(len(model.classes))
        with written(output, model, escaped, answers is not None) as write:
            # No bar between the rows on a screen.
            for batch in predict_table(model, arguments.table, **options, progress=output is not None):
                write(batch)
                sums += counts_of(batch, len(model.classes))
    counts = dict(zip(model.names, sums["by_class"].tolist(), strict=True))
    summary = {"n_rows": int(sums["by_class"].sum()), "n_asked": sums["n_asked"], "classes": counts}
    summary |= {"unseen_texts": sums["unseen"], "formulas": escaped}
    found = [*findings_of(sums, model), *_formulas(escaped)]
    if arguments.json:
        cli.print_json({"file": output, **summary, "findings": found})
    else:
        _tell(model, summary, found, output)
    return 0


def _formulas(escaped: Counter[str]) -> list[Finding]:
    """Findings about cells that a spreadsheet would run."""
    how = "begin like a formula and are written with an apostrophe before them (not in -o out.parquet)"
    return [FitWarning(message=f"{count:,} cells of {name!r} {how}.") for name, count in (+escaped).items()]


def _tell(model: TableModel, summary: dict[str, Any], found: Sequence[Finding], output: Path | None) -> None:
    """Print a summary; on standard error if the rows are on the screen."""
    shares = ", ".join(f"{count:,} of class {shortened(name)}" for name, count in summary["classes"].items())
    two = len(model.classes) == 2 and model.link is not None
    meaning = f"; probability: that of class {shortened(model.names[1])}" if two else ""
    meaning += f"; {summary['n_asked']:,} rows from features and answers" if summary["n_asked"] else ""
    where = "" if output is None else f"Wrote {output}: "
    shown = [f"{where}{summary['n_rows']:,} rows, {shares}{meaning}", *lines(found)]
    cli.say("\n".join(shown), sys.stderr if output is None else None)


def write_answered(path: Path, model: TableModel) -> None:
    """Write the rows in the answers of the fit."""
    with written(path, model, Counter(), True) as write:
        write(asked_rows(model))


@contextmanager
def written(path: Path | None, model: TableModel, escaped: Counter[str], answered: bool) -> Iterator[Write]:
    """Yield a function that writes predictions to the screen, or to a file, whole or not at all."""
    if path is None:
        with _csv_writer(cli.Screen(), ",", model, escaped, answered) as write:
            yield write
        return
    if not path.suffix:
        raise InputError(f"{path} has no ending. For a folder of Parquet files write {path}/, for a file {path}.csv.")
    name = file_format(path, ("csv", "tsv", "parquet"), output=True)
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


@contextmanager
def _csv_writer(
    file: IO[str] | cli.Screen, mark: str, model: TableModel, escaped: Counter[str], answered: bool
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

    def in_style(style: str) -> str:
        buffer = io.BytesIO()
        options = arrow.WriteOptions(include_header=False, delimiter=mark, quoting_style=style)
        arrow.write_csv(table, buffer, options)
        return buffer.getvalue().decode()

    try:
        return in_style("none")
    except pa.ArrowInvalid:
        # A cell holds a delimiter, a quote or a line break.
        return in_style("needed")
