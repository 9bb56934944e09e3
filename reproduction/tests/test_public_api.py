"""The experiments are a user of the library: they import public names only, and print nothing."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
API = "\n".join(page.read_text() for page in (FOLDER.parent / "docs" / "reference" / "api").glob("*.md"))
LISTED = set(re.findall(r"^   (sdulearn\.[\w.]+)$", API, re.MULTILINE))
# Modules that users may import from besides.
OPEN = {"sdulearn.errors", "sdulearn.losses", "sdulearn.risks", "sdulearn.types"}
FILES = [path for path in FOLDER.rglob("*.py") if "tests" not in path.parts and path.name != "__main__.py"]


def faults(text):
    """Imports that a user could not write, and calls of print."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield "print"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sdulearn":
            yield from (f"{node.module}.{n.name}" for n in node.names if not is_public(node.module, n.name))


def is_public(module, name):
    listed = f"{module}.{name}" in LISTED or name in getattr(import_module(module), "__all__", ())
    return listed or (module in OPEN and not name.startswith("_")) or name == "__version__"


@pytest.mark.parametrize("path", sorted(FILES), ids=lambda path: path.stem)
def test_public_names_only(path):
    assert list(faults(path.read_text())) == []


@pytest.mark.parametrize(
    "line",
    [
        "from sdulearn.cli.options import positive",
        "from sdulearn.linear import SDUClassifierCV",
        "from sdulearn.errors import _frame",
        "print('done')",
    ],
)
def test_the_check_can_fail(line):
    assert len(list(faults(line))) == 1
