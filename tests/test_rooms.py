"""Nobody imports upward: the map of DESIGN.md, enforced."""

import ast
from pathlib import Path

import sdulearn

ROOT = Path(sdulearn.__file__).parent
LOW = {"pairs", "losses", "prior", "modelfile"}
MAY_IMPORT = {
    **{room: set() for room in LOW},
    "risks": {"pairs", "losses", "prior"},
    "bounds": {"prior", "planning"},  # planning inside pairs_needed only: the theory itself rests on prior alone
    "solvers": {"losses", "solvers"},
    "model_selection": {"pairs", "risks"},
    "baselines": {"pairs", "baselines"},
    "datasets": {"pairs", "prior", "datasets"},
    "base": {*LOW, "risks", "model_selection"},
    "statistics": {*LOW, "risks", "solvers"},
    "grid": {*LOW, "risks", "solvers"},
    "linear": {*LOW, "risks", "solvers", "model_selection", "base", "statistics", "grid"},
    "blocks": {*LOW, "risks", "solvers", "model_selection", "statistics", "linear", "blocks"},
    "joint": {*LOW, "risks", "solvers", "model_selection", "base", "statistics", "linear", "blocks", "joint"},
}


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("sdulearn.")}
    return rooms


def test_no_room_imports_upward():
    checked = 0
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room in MAY_IMPORT:
            assert imported_rooms(path) <= MAY_IMPORT[room], f"{path} imports upward"
            checked += 1
    assert checked >= 12


def test_the_check_can_fail(tmp_path):
    fault = tmp_path / "pairs.py"
    fault.write_text("from sdulearn.linear import SDUClassifier\n")
    assert imported_rooms(fault) == {"linear"}
