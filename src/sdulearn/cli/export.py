"""Write a model in another form.

--onnx writes an ONNX graph that runs in onnxruntime without Python or sdulearn: raw columns in, label, decision
value and probability out, in double precision. Takes models of `sdulearn fit` and estimators saved from Python.
Needs the extra onnx.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sdulearn.cli import options as cli
from sdulearn.io.onnx import as_table_model, export_onnx, onnx_columns
from sdulearn.table_model import load_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``sdulearn export``."""
    parser.add_argument("model", type=Path, help="model file")
    parser.add_argument("--onnx", type=Path, required=True, metavar="FILE", help="ONNX file to write")
    cli.add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Export, and print the inputs of the graph."""
    cli.refuse_overwriting((arguments.onnx,), (arguments.model,))
    loaded = load_model(arguments.model)
    export_onnx(loaded, arguments.onnx)
    model = as_table_model(loaded)
    numbers, texts = onnx_columns(model)
    if arguments.json:
        cli.print_json({"file": arguments.onnx, "numbers": numbers, "texts": texts, "classes": model.classes})
        return 0
    cli.say(f"wrote {arguments.onnx}: inputs numbers ({len(numbers):,} columns), texts ({len(texts):,} columns)")
    numbers_of_classes = model.estimator.classes_.tolist()
    labels = ", ".join(f"{number} is {name}" for number, name in zip(numbers_of_classes, model.names, strict=True))
    cli.say(f"label {labels}; column names are in its metadata")
    return 0
