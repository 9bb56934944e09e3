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
            "version", "types", "errors", "progress", "sklearn_private", "io", "io.files", "io.images", "io.typed",
            "io.container",
        )
    ],
    [("pairs",), ("losses",)],
    [
        (
            "answers.graph", "answers.propagate", "answers.two_classes", "answers.rates", "answers.crowd",
            "answers.answer_model", "answers.profile",
            "answers.records", "answers.checks", "answers",
        ),
        ("solvers",),
    ],
    [("risks", "prior", "bounds")],
    [("model_selection", "metrics", "diagnostics")],
    [("base", "datasets", "blocks", "linear")],
    [("joint",)],
    [("boosting", "torch"), ("blocks.problem", "blocks.double_hinge", "blocks.estimators", "distributed")],
    [
        (
            "text_columns", "image_columns", "spelling", "columns", "io.excel", "io.ids", "io.tables", "io.rows",
            "io.survey", "io.embeddings", "io.labels", "streaming", "io.answer_log", "io.importers", "io.answers",
            "report", "table_model", "io.model_file", "io.onnx", "workflow",
        ),
        ("asking",),
        ("planning",),
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


def module_name(path: Path, root: Path = ROOT) -> str:
    """Dotted name within the package; that of the folder for an ``__init__``."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}


def room_of(module: str) -> str | None:
    """The room a module is in: itself, or the nearest folder that is one; None where the map does not know it."""
    parts = module.split(".")
    return next((name for k in range(len(parts), 0, -1) if (name := ".".join(parts[:k])) in PLACE), None)


def imported(text: str) -> set[str]:
    """Modules of ours that a file imports, wherever in it, but for types alone."""
    found = set()
    tree = ast.parse(text)
    only_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("sdulearn."):
                parts = name.split(".")[1:]
                found.add(next(m for k in range(len(parts), -1, -1) if (m := ".".join(parts[:k])) in MODULES))
    return found - {""}


def may_enter(room: str, target: str) -> bool:
    """Whether it is on a floor below, or no later in the same room."""
    floor, *here = PLACE[room]
    lower, *there = PLACE[target]
    return lower < floor or (lower == floor and here[0] == there[0] and there[1] <= here[1])


def violations(module: str, text: str) -> list[str]:
    """What a file may not do."""
    room = room_of(module)
    if room is None:
        return [f"{module} is in no room of the map"]
    found = []
    for other in imported(text):
        target = room_of(other)
        if target is None:
            found.append(f"{module} imports {other}, which is in no room of the map")
        elif not may_enter(room, target):
            found.append(f"{module} imports {other}, which is above it or beside it")
        if other.split(".")[-1].startswith("_") and other.rsplit(".", 1)[0] != module.rsplit(".", 1)[0]:
            found.append(f"{module} imports the private module {other}")
    for node in ast.walk(ast.parse(text)):
        if room == "cli":
            break
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            found.append(f"{module} prints")
        if isinstance(node, ast.Import) and any(alias.name == "argparse" for alias in node.names):
            found.append(f"{module} parses options")
    return found


@pytest.mark.parametrize("module", sorted(set(MODULES) - {""}))
def test_no_room_imports_upward(module):
    assert violations(module, MODULES[module].read_text()) == []


@pytest.mark.parametrize(
    ("module", "text", "what"),
    [
        ("attic", "", "in no room"),
        ("pairs", "from sdulearn.linear import SDUClassifier", "above it"),
        ("pairs", "from sdulearn import linear", "above it"),
        ("pairs", "def f():\n    import sdulearn.linear", "above it"),
        ("risks", "from sdulearn.bounds import order_probability", "beside it"),
        ("solvers.smooth", "from sdulearn.answers.graph import AnswerGraph", "beside it"),
        ("solvers.smooth", "from sdulearn.cli.main import main", "above it"),
        ("linear", "print('hello')", "prints"),
        ("workflow.fit", "import argparse", "parses options"),
    ],
)
def test_the_check_can_fail(module, text, what):
    assert any(what in found for found in violations(module, text))


def test_what_it_allows():
    assert violations("linear", "from sdulearn.solvers import solve\nfrom sdulearn.pairs import read_pairs") == []
    assert violations("cli.fit", "import argparse\nprint('hello')") == []
    assert violations("pairs", "if TYPE_CHECKING:\n    from sdulearn.linear import SDUClassifier") == []


def test_no_module_is_shadowed_by_a_function():
    """``sdulearn.solvers.squared`` must stay a module, whatever the package imports."""
    for module, path in MODULES.items():
        if path.name != "__init__.py" or not module:
            continue
        children = {other.rsplit(".", 1)[1] for other in MODULES if other.rpartition(".")[0] == module}
        for node in ast.parse(path.read_text()).body:
            names = {alias.asname or alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            assert not names & children, f"{module} hides {names & children}"


def test_scikit_learn_s_internals_are_imported_in_one_file():
    for module, path in MODULES.items():
        if module == "sklearn_private":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                private = [alias.name for alias in node.names if alias.name.startswith("_")]
                hidden = [part for part in node.module.split(".") if part.startswith("_")]
                assert not private + hidden, f"{module} imports {private + hidden} of {node.module}"
