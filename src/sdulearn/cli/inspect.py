"""``sdulearn inspect``."""

from __future__ import annotations

import argparse
from dataclasses import replace

from sdulearn.cli import options as cli
from sdulearn.errors import quoted, shortened
from sdulearn.io import container
from sdulearn.report.results import findings_of_estimator, findings_of_model, lines, strengths
from sdulearn.table_model import TableModel, load_model
from sdulearn.tables.columns import Column
from sdulearn.types import Estimator


def run(arguments: argparse.Namespace) -> int:
    """Print what is in the file."""
    model = load_model(arguments.model)
    header, _ = container.read(arguments.model)
    written = {name: shortened(str(header.get(name, "unknown"))) for name in ("format", "sdulearn")}
    if arguments.json:
        cli.print_json(_as_data(model) | {"written": written})
    else:
        file = f"Format version {written['format']}, written by sdulearn {written['sdulearn']}. {container.READABLE}"
        cli.say("\n".join([*describe_model(model, arguments.top), file]))
    return 0


def describe_model(model: Estimator | TableModel, top: int) -> list[str]:
    """Describe a model, line by line."""
    if not isinstance(model, TableModel):
        shown = [cli.in_options(line) for line in lines(findings_of_estimator(model))]
        return [*shown, "No table: saved from Python, to be used there."]
    shown = [cli.in_options(line) for line in lines(findings_of_model(model))]
    numbers = model.estimator.classes_.tolist()
    form = "+d" if len(numbers) == 2 else "d"
    classes = ", ".join(f"{name} ({number:{form}})" for number, name in zip(numbers, model.names, strict=True))
    probabilities = "yes" if model.link else "no, the loss gives none"
    columns = model.columns
    ids = f", ids from {quoted(columns.id_column)}" if columns.id_column else ""
    shown += [f"Classes: {classes}; probabilities: {probabilities}.", f"Table: {len(columns.columns):,} columns{ids}"]
    shown += [f"  {_column(column)}" for column in columns.columns]
    for name, features in strengths(model).strengths.items():
        title, form = (f"per standard deviation, for {name}", "+9.4g") if name else ("share of the decision", "9.1%")
        strongest = [f"  {strength:{form}}  {feature}" for feature, strength in features.items()]
        shown += [f"Strongest features, {title}:", *strongest[:top]]
    return shown


def _column(column: Column) -> str:
    categories = f" ({', '.join(column.categories)})" if column.kind == "category" else ""
    fill = f"{column.fill:.4g}" if isinstance(column.fill, float) else column.fill
    return f"{column.name}: {column.kind}{categories}" + ("" if fill is None else f", missing values become {fill}")


def _as_data(model: Estimator | TableModel) -> dict[str, object]:
    if isinstance(model, TableModel):
        table = {"classes": model.classes, "columns": replace(model.columns, transformers={}), "report": model.report}
        return _as_data(model.estimator) | {"kind": "table model", "findings": findings_of_model(model), **table}
    params = model.get_params().items()
    return {
        "kind": "estimator",
        "estimator": type(model).__name__,
        "parameters": {name: value for name, value in params if isinstance(value, str | int | float | None)},
        "prior": model.prior_,
        "findings": findings_of_estimator(model),
    }
