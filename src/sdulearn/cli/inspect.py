"""Say what is in a model file: method, classes, prior, estimated accuracy, columns it needs, strongest features.

Reads any file that `sdulearn fit` or an estimator's save wrote. A model file holds numbers and text, never code,
so it is safe to look into one from a stranger.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from sdulearn.cli.options import positive
from sdulearn.cli.output import add_json_option, print_json
from sdulearn.cli.screen import say
from sdulearn.cli.words import (
    describe_accuracy,
    describe_agreement,
    describe_choice,
    describe_finding,
    describe_method,
    describe_number,
    describe_points,
    describe_prior,
)
from sdulearn.columns import CATEGORY, Column, ColumnLayout
from sdulearn.errors import quoted
from sdulearn.fit_report import FitReport
from sdulearn.io.model_file import load_model
from sdulearn.table_model import TableModel
from sdulearn.types import Array, Estimator

SHARE = "share of the decision"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn inspect``."""
    parser.add_argument("model", type=Path, help="model file")
    parser.add_argument("--top", type=positive, default=10, help="features to list (default: %(default)s)")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what the file says."""
    model = load_model(arguments.model)
    if arguments.json:
        print_json(_as_data(model))
    else:
        say("\n".join(describe_model(model, arguments.top)))
    return 0


def describe_model(model: Estimator | TableModel, top: int) -> list[str]:
    """What a model says, line by line."""
    if not isinstance(model, TableModel):
        return [*_estimator(model), "no table: saved from Python, to be used there"]
    lines = [*_estimator(model.estimator), f"classes: {_classes(model)}"]
    lines.append(f"probabilities: {'yes' if model.link else 'no, the loss gives none'}")
    if model.report is not None:
        lines += _report(model.report)
    return [*lines, *_layout(model), *_strongest(model, top)]


def _classes(model: TableModel) -> str:
    if len(model.classes) == 2:
        return f"{model.classes[0]} (-1) and {model.classes[1]} (+1)"
    return ", ".join(f"{name} ({number})" for number, name in enumerate(model.classes, 1))


def _estimator(model: Estimator) -> list[str]:
    lines = [f"method: {describe_method(model)} ({type(model).__name__})"]
    if model.prior_ is None:
        return [*lines, describe_number(len(model.classes_), getattr(model, "n_classes_interval_", None))]
    return [*lines, f"prior: {describe_prior(model.prior_)}"]


def _report(report: FitReport) -> list[str]:
    """What fit noted; a stranger's findings may have any form, so only what can be read is shown."""
    lines = [] if report.agreement is None else describe_agreement(report.agreement)
    if report.accuracy is not None:
        lines.append(f"estimated accuracy: {describe_accuracy(report.accuracy)}")
    if report.model_choice.scores:
        lines.append(f"model: {describe_choice(report.model_choice)}")
    lines += [
        f"fitted on: {report.n_rows:,} rows of {report.table}",
        f"answers: {describe_points(report)}, of {report.answers}",
    ]
    for finding in report.findings:
        try:
            lines.append(f"{finding.severity}: {describe_finding(finding)}")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            lines.append("(a finding that cannot be read)")
    return lines


def _layout(model: TableModel) -> list[str]:
    layout = model.layout
    if not isinstance(layout, ColumnLayout):
        return [f"table: svmlight, {layout.width:,} features numbered from {layout.first}"]
    ids = f", ids from {quoted(layout.id_column)}" if layout.id_column else ""
    return [f"table: {len(layout.columns):,} columns{ids}", *(f"  {_column(column)}" for column in layout.columns)]


def _column(column: Column) -> str:
    text = f"{column.name}: {column.kind}"
    if column.kind == CATEGORY:
        text += f" ({', '.join(column.categories)})"
    if column.fill is None:
        return text
    return f"{text}, missing = {column.fill if isinstance(column.fill, str) else format(column.fill, '.4g')}"


def _strongest(model: TableModel, top: int) -> list[str]:
    """Features by the change of the decision for one standard deviation; of trees, by their share in it."""
    names = model.layout.feature_names
    lines = []
    for title, strength in feature_strengths(model).items():
        order = np.argsort(-np.abs(strength), kind="stable")[:top].tolist()
        # A share has no sign.
        form = "9.1%" if title == SHARE else "+9.4g"
        lines += [f"strongest features, {title}:", *(f"  {strength[j]:{form}}  {names[j]}" for j in order)]
    return lines


def feature_strengths(model: TableModel) -> dict[str, Array]:
    """The strength of each feature; of more than two classes, for each."""
    estimator = model.estimator
    if not hasattr(estimator, "coef_"):
        return {SHARE: estimator.feature_importances_}
    if len(model.classes) == 2:
        return {"per standard deviation": estimator.coef_[0]}
    lines = zip(model.classes, estimator.coef_, strict=True)
    return {f"per standard deviation, for {name}": line for name, line in lines}


def _as_data(model: Estimator | TableModel) -> dict[str, object]:
    if not isinstance(model, TableModel):
        return {"kind": "estimator", **_estimator_data(model)}
    return {
        "kind": "table model",
        **_estimator_data(model.estimator),
        "classes": model.classes,
        "layout": model.layout,
        **_strength_data(model),
        "report": model.report,
    }


def _strength_data(model: TableModel) -> dict[str, object]:
    names = model.layout.feature_names
    found = [dict(zip(names, one.tolist(), strict=True)) for one in feature_strengths(model).values()]
    if not hasattr(model.estimator, "coef_"):
        return {"feature_importances": found[0]}
    by_class = found[0] if len(found) == 1 else dict(zip(model.classes, found, strict=True))
    return {"strength_per_standard_deviation": by_class}


def _estimator_data(model: Estimator) -> dict[str, object]:
    kept = {name: value for name, value in model.get_params().items() if isinstance(value, str | int | float | None)}
    return {"estimator": type(model).__name__, "parameters": kept, "prior": model.prior_}
