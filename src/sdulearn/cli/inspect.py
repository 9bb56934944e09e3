"""Say what is in a model file: method, classes, prior, estimated accuracy, columns it needs, strongest features.

Reads any file that `sdulearn fit` or an estimator's save wrote. A model file holds numbers and
text, never code, so it is safe to look into one from a stranger.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.cli.words import describe_accuracy, describe_method, describe_prior
from sdulearn.io import container as modelfile
from sdulearn.io.model_file import load_model
from sdulearn.io.tables import CATEGORY, Column, ColumnLayout
from sdulearn.table_model import TableModel, load_table_model

HELP = "what is in a model file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn inspect``."""
    parser.add_argument("model", type=Path, help="model file")
    parser.add_argument("--top", type=int, default=10, help="features to list (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Print what the file says."""
    try:
        lines = describe_file(arguments.model, arguments.top)
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise modelfile.ModelFileError(f"{arguments.model} holds settings that make no sense: {error}") from None
    print("\n".join(printable(line) for line in lines))
    return 0


def describe_file(path: Path, top: int) -> list[str]:
    """What a model file says, line by line."""
    header, _ = modelfile.read(path)
    if "table" in header:
        return _table_model(load_table_model(path), top)
    return [*_estimator(load_model(path)), "no table: saved from Python, to be used there"]


def printable(text: str) -> str:
    """Text from a file without characters that could steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _estimator(model: Any) -> list[str]:
    return [f"method: {describe_method(model)}", f"prior: {describe_prior(model.prior_)}"]


def _table_model(model: TableModel, top: int) -> list[str]:
    lines = [*_estimator(model.estimator), f"classes: {model.classes[0]} (-1) and {model.classes[1]} (+1)"]
    lines.append(f"probabilities: {'yes' if model.link else 'no, the loss gives none'}")
    return [*lines, *_about(model.about), *_layout(model), *_strongest(model, top)]


def _about(about: dict[str, Any]) -> list[str]:
    """What fit noted; a stranger's file may have noted anything, so only what has the right form is shown."""
    lines = []
    try:
        lines.append(f"estimated accuracy: {describe_accuracy(about['accuracy'])}")
        lines.append(
            f"fitted on: {about['table']['rows']:,} rows of {about['table']['file']}, {about['pairs']['similar']:,} "
            f"similar and {about['pairs']['dissimilar']:,} dissimilar pairs of {about['pairs']['file']}"
        )
        lines += [f"warning: {text}" for text in about["warnings"]]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        lines.append("(what fit noted cannot be read)")
    return lines


def _layout(model: TableModel) -> list[str]:
    layout = model.layout
    if not isinstance(layout, ColumnLayout):
        return [f"table: svmlight, {layout.width:,} features numbered from {layout.first}"]
    ids = f", ids from {layout.id_column!r}" if layout.id_column else ""
    return [f"table: {len(layout.columns):,} columns{ids}", *(f"  {_column(column)}" for column in layout.columns)]


def _column(column: Column) -> str:
    text = f"{column.name}: {column.kind}"
    if column.kind == CATEGORY:
        text += f" ({', '.join(column.categories)})"
    if column.fill is None:
        return text
    return f"{text}, missing = {column.fill if isinstance(column.fill, str) else format(column.fill, '.4g')}"


def _strongest(model: TableModel, top: int) -> list[str]:
    """Features by the change of the decision for one standard deviation."""
    strength = model.estimator.coef_[0] * model.spread
    order = np.argsort(-np.abs(strength), kind="stable")[: max(top, 0)].tolist()
    names = model.layout.feature_names
    return ["strongest features, per standard deviation:", *(f"  {strength[j]:+9.4g}  {names[j]}" for j in order)]
