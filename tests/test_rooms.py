"""Nobody imports upward: the map of the rooms, enforced for every file."""

import ast
from pathlib import Path

import pytest

import sdulearn

ROOT = Path(sdulearn.__file__).parent

# From the ground up. A floor holds rooms, a room files or folders in order: each may enter the floors below and those
# before it in its own room.
FLOORS = [
    [
        (
            "types", "errors", "progress", "parts", "sklearn_private", "io", "io.files", "io.images", "io.typed",
            "io.container",
        )
    ],
    [("pairs",), ("losses",)],
    [
        (
            "answers.graph", "answers.propagate", "answers.two_classes", "answers.rates", "answers.clusters",
            "answers.crowd",
            "answers.answer_model", "answers.profile",
            "answers.records", "answers.checks", "answers",
        ),
        ("solvers",),
    ],
    [("risks", "prior", "bounds")],
    [("model_selection", "pairing", "metrics", "diagnostics")],
    [("base", "datasets", "statistics", "linear")],
    [("joint",)],
    [("boosting", "torch")],
    [
        (
            "text_columns", "spelling", "columns", "column_counts", "io.excel", "io.ids",
            "io.tables", "io.rows", "io.survey", "io.same_table", "io.number_rows", "large", "io.answer_log",
            "io.download", "io.importers", "io.answers", "report", "table_model", "workflow",
        ),
        ("asking",),
    ],
    [("plotting", "web", "cli")],
]  # fmt: skip
# Floor, room on it and place in the room.
PLACE = {
    name: (floor, room, place)
    for floor, rooms in enumerate(FLOORS)
    for room, names in enumerate(rooms)
    for place, name in enumerate(names)
}


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
    """Every import of a file, wherever in it, as ``(where from, name)``, but for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            continue
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        yield from imports(node)


def may_enter(room: str, target: str) -> bool:
    """Whether it is on a floor below, or no later in the same room."""
    floor, *here = PLACE[room]
    lower, *there = PLACE[target]
    return lower < floor or (lower == floor and here[0] == there[0] and there[1] <= here[1])


def violations(module: str, tree: ast.AST):
    """What a file does that it may not do."""
    room = longest_in(module, PLACE)
    if room is None:
        yield f"{module} is in no room of the map"
        return
    for source, name in imports(tree):
        whole = f"{source}.{name}"
        if source == "argparse" and room != "cli":
            yield f"{module} parses options"
        if source.startswith("sklearn") and module != "sklearn_private" and "._" in whole:
            yield f"{module} imports scikit-learn's internals: {whole}"
        other = longest_in(whole.removeprefix("sdulearn."), TREES) if whole.startswith("sdulearn.") else None
        if not other:
            continue
        target = longest_in(other, PLACE)
        if target is None or not may_enter(room, target):
            yield f"{module} imports {other}, which is above it, beside it or in no room"
        if other.split(".")[-1].startswith("_") and other.rsplit(".", 1)[0] != module.rsplit(".", 1)[0]:
            yield f"{module} imports the private module {other}"
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    if room != "cli" and any(isinstance(called, ast.Name) and called.id == "print" for called in calls):
        yield f"{module} prints"


def test_no_room_imports_upward():
    assert [found for module, tree in TREES.items() if module for found in violations(module, tree)] == []


@pytest.mark.parametrize(
    ("module", "text", "what"),
    [
        ("attic", "", "in no room"),
        ("pairs", "from sdulearn.linear import SDUClassifier", "above it"),
        ("pairs", "from sdulearn import linear", "above it"),
        ("pairs", "def f():\n    import sdulearn.linear", "above it"),
        ("risks", "from sdulearn.bounds import order_probability", "beside it"),
        ("solvers.smooth", "from sdulearn.answers.graph import AnswerGraph", "beside it"),
        ("linear", "print('hello')", "prints"),
        ("linear", "from sklearn.base import _fit_context", "scikit-learn's internals"),
        ("workflow.fit", "import argparse", "parses options"),
        ("linear", "from sdulearn.solvers import solve\nfrom sdulearn.pairs import read_pairs", None),
        ("cli.fit", "import argparse\nprint('hello')", None),
        ("pairs", "if TYPE_CHECKING:\n    from sdulearn.linear import SDUClassifier", None),
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
