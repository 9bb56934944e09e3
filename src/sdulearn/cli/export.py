"""Write a model of `sdulearn fit` in another form.

--onnx writes an ONNX graph that runs in onnxruntime without Python or sdulearn: raw columns in, label, decision value
and probability out, in double precision. Needs the extra onnx.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sdulearn.io.onnx import export_onnx, onnx_columns
from sdulearn.table_model import load_table_model

HELP = "write a model as ONNX"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn export``."""
    parser.add_argument("model", type=Path, help="model file")
    parser.add_argument("--onnx", type=Path, required=True, metavar="FILE", help="ONNX file to write")


def run(arguments: argparse.Namespace) -> int:
    """Export, and say what the graph takes."""
    model = load_table_model(arguments.model)
    export_onnx(model, arguments.onnx)
    numbers, texts = onnx_columns(model)
    print(f"wrote {arguments.onnx}: inputs numbers ({len(numbers):,} columns), texts ({len(texts):,} columns)")
    print(f"label -1 is {model.classes[0]}, 1 is {model.classes[1]}; column names are in its metadata")
    return 0
