"""The experiments are a user of the library: they import what a user may, and print nothing."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

from sdulearn import experiments

FOLDER = Path(experiments.__file__).parent
# Modules without an ``__all__`` of their own that users may import from.
OPEN = {"sdulearn.errors", "sdulearn.extras", "sdulearn.losses", "sdulearn.risks", "sdulearn.types"}


def faults(text):
    """Imports that a user could not write, and calls of print."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield "print"
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in ("argparse", "importlib"))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sdulearn":
            yield from (f"{node.module}.{n.name}" for n in node.names if not is_public(node.module, n.name))


def is_public(module, name):
    if module.startswith("sdulearn.experiments"):
        return True
    exported = getattr(import_module(module), "__all__", ())
    return (not name.startswith("_") and (module in OPEN or name in exported)) or name == "__version__"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_public_names_only(path):
    assert list(faults(path.read_text())) == []


@pytest.mark.parametrize(
    "line",
    [
        "from sdulearn.cli.options import positive",
        "from sdulearn.linear import SDUClassifierCV",
        "from sdulearn.errors import _frame",
        "import argparse",
        "print('done')",
    ],
)
def test_the_check_can_fail(line):
    assert len(list(faults(line))) == 1
