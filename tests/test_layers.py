"""Nobody imports upward: the layers of CONTRIBUTING.md, enforced for every file."""

import ast
import re
from pathlib import Path

import pytest

import sdulearn

ROOT = Path(sdulearn.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
# From the ground up: a module imports from earlier lines, or from modules before it in its own line.
LAYERS = re.search(r"```layers\n(.*?)```", CONTRIBUTING.read_text(encoding="utf-8"), re.DOTALL)[1].strip().splitlines()
PLACE = {name: (k, place) for k, line in enumerate(LAYERS) for place, name in enumerate(line.split(", "))}


def module_name(path: Path) -> str:
    """Dotted name within the package; that of the folder for an ``__init__``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {module_name(path): ast.parse(path.read_text()) for path in ROOT.rglob("*.py")}
PACKAGES = [module_name(path) for path in ROOT.rglob("__init__.py") if path.parent != ROOT]


def longest_in(name: str, known) -> str | None:
    """The longest beginning of a dotted name that is known."""
    parts = name.split(".")
    return next((found for k in range(len(parts), 0, -1) if (found := ".".join(parts[:k])) in known), None)


def imports(tree: ast.AST):
    """Every import of a file, wherever in it, those for types alone too, as ``(where from, name)``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        yield from imports(node)


def violations(module: str, tree: ast.AST):
    """What a file does that it may not do."""
    layer = longest_in(module, PLACE)
    if layer is None:
        yield f"{module} is in no layer"
        return
    for source, name in imports(tree):
        whole = f"{source}.{name}"
        if source == "argparse" and layer != "cli":
            yield f"{module} parses options"
        if source.startswith("sklearn") and module != "sklearn_private" and "._" in whole:
            yield f"{module} imports scikit-learn's internals: {whole}"
        other = longest_in(whole.removeprefix("sdulearn."), TREES) if whole.startswith("sdulearn.") else None
        if not other:
            continue
        target = longest_in(other, PLACE)
        if target is None or PLACE[target] > PLACE[layer]:
            yield f"{module} imports {other}, which is above it or in no layer"
        if other.split(".")[-1].startswith("_") and other.rsplit(".", 1)[0] != module.rsplit(".", 1)[0]:
            yield f"{module} imports the private module {other}"
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    if layer != "cli" and any(isinstance(called, ast.Name) and called.id == "print" for called in calls):
        yield f"{module} prints"


def test_no_module_imports_upward():
    assert [found for module, tree in TREES.items() if module for found in violations(module, tree)] == []


@pytest.mark.parametrize(
    ("module", "text", "what"),
    [
        ("attic", "", "in no layer"),
        ("answers.y", "from sdulearn.linear import SDUClassifier", "above it"),
        ("answers.y", "from sdulearn import linear", "above it"),
        ("answers.y", "def f():\n    import sdulearn.linear", "above it"),
        ("risks", "from sdulearn.bounds import order_probability", "above it"),
        ("linear", "print('hello')", "prints"),
        ("linear", "from sklearn.base import _fit_context", "scikit-learn's internals"),
        ("workflow.fit", "import argparse", "parses options"),
        ("linear", "from sdulearn.solvers import solve\nfrom sdulearn.answers.y import read_columns", None),
        ("cli.fit", "import argparse\nprint('hello')", None),
        ("answers.y", "if TYPE_CHECKING:\n    from sdulearn.linear import SDUClassifier", "above it"),
    ],
)
def test_the_check_can_fail(module, text, what):
    found = list(violations(module, ast.parse(text)))
    assert what in found[0] if what else not found


def test_no_module_is_shadowed_by_a_function():
    """``sdulearn.solvers.squared`` must stay a module, whatever the package imports."""
    for package in PACKAGES:
        children = {other.rsplit(".", 1)[1] for other in TREES if other.rpartition(".")[0] == package}
        nodes = [node for node in TREES[package].body if isinstance(node, ast.ImportFrom)]
        names = {alias.asname or alias.name for node in nodes for alias in node.names}
        assert not names & children, f"{package} hides {names & children}"


def test_nobody_asks_which_likelihood_it_holds():
    """Learners, metrics and the prior see ``terms`` alone."""
    calls = [node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    asked = [ast.unparse(call) for call in calls if isinstance(call.func, ast.Name) and call.func.id == "isinstance"]
    assert [text for text in asked if "likelihood" in text.lower()] == []
