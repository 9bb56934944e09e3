"""The shape of the source: lines, modules, records, imports, what a default fit passes, bodies.

    python benchmarks/style.py [FOLDER ...]     # the figures of other trees, for comparison
    python benchmarks/style.py --write          # puts those of the package into docs/measured.md, beside targets
    python benchmarks/style.py --tests          # runs the tests and keeps their CPU minutes, then the same

The share of random mutants that the tests kill comes from benchmarks/mutants.py.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from pages import write_between

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sdulearn"
RESULTS = Path(__file__).with_suffix(".json")
MUTANTS = Path(__file__).with_name("mutants.json")
LONG = 100
Function = ast.FunctionDef | ast.AsyncFunctionDef
# Lines granted for what was built since: real answers 600, asking 1,100, tables 500, networks 700.
GRANTED = 2_900
# Before the redesign (commit 7080117), and at most.
TARGETS: dict[str, tuple[float, float | None]] = {
    "lines of source": (39_807, 29_000 + GRANTED),
    "modules": (221, 130),
    "dataclasses": (188, 80),
    "longest import chain": (28, 14),
    "floors of the room test": (29, 10),
    "default fit: modules passed": (69, 40),
    "default fit: functions passed": (509, 320),
    "default fit of 200 answers, 10,000 rows, CPU s": (2.5, 1.5),
    "its linear model alone, adult, CPU s": (2.4, 1),
    "digits, K by itself, 300 answers, CPU s": (22, 8),
    "lines of tests": (22_861, 17_000),
    "CPU minutes of the tests": (13.9, 8),
    "packed assignments, %": (0.1, 0.1),
    f"lines over {LONG} characters, %": (4.7, 4.7),
    "Any in a signature, %": (5.1, 5.1),
    "body lines, median": (5, 5),
    "body lines, p90": (15, 15),
    "body lines, max": (42, 42),
}


def functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def body_lines(function: Function) -> int:
    """Lines of the body, without its docstring."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def is_packed(assignment: ast.Assign) -> bool:
    """``a, b = x, y``: two statements on one line."""
    return isinstance(assignment.targets[0], ast.Tuple) and isinstance(assignment.value, ast.Tuple)


def mentions_any(function: Function) -> bool:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    found = [argument.annotation for argument in every if argument and argument.annotation]
    found += [function.returns] if function.returns else []
    names = [node for annotation in found for node in ast.walk(annotation)]
    return any(isinstance(node, ast.Name) and node.id == "Any" for node in names)


def is_dataclass(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(one) for one in node.decorator_list)


def imported_at_the_top(tree: ast.Module, modules: set[str]) -> set[str]:
    """Modules of the package that a file imports when it is imported, but for types alone."""
    found = set()
    for node in tree.body:
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            found.add(next((m for k in range(len(parts), 1, -1) if (m := ".".join(parts[:k])) in modules), ""))
    return found - {""}


def longest_chain(trees: dict[str, ast.Module]) -> int:
    """Most modules in a chain of imports; a package is its ``__init__``."""
    imports = {name: imported_at_the_top(tree, set(trees)) - {name} for name, tree in trees.items()}
    under_way: set[str] = set()

    @cache
    def depth(name: str) -> int:
        under_way.add(name)
        found = 1 + max((depth(other) for other in imports[name] if other not in under_way), default=0)
        under_way.remove(name)
        return found

    return max(map(depth, imports))


def module_name(path: Path, folder: Path) -> str:
    parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def measure(folder: Path) -> dict[str, float]:
    """Figures that the source alone tells."""
    texts = {path: path.read_text() for path in sorted(folder.rglob("*.py"))}
    trees = {module_name(path, folder): ast.parse(text) for path, text in texts.items()}
    lines = [line for text in texts.values() for line in text.splitlines()]
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    every = [node for node in nodes if isinstance(node, Function)]
    bodies = [body_lines(function) for function in every]
    assignments = [node for node in nodes if isinstance(node, ast.Assign)]
    return {
        "lines of source": len(lines),
        "modules": len(texts),
        "functions": len(every),
        "dataclasses": sum(map(is_dataclass, nodes)),
        "longest import chain": longest_chain(trees),
        "packed assignments, %": round(100 * np.mean([is_packed(one) for one in assignments]), 1),
        f"lines over {LONG} characters, %": round(100 * np.mean([len(line) > LONG for line in lines]), 1),
        "Any in a signature, %": round(100 * np.mean([mentions_any(one) for one in every]), 1),
        "body lines, median": int(np.median(bodies)),
        "body lines, p90": int(np.quantile(bodies, 0.9)),
        "body lines, max": max(bodies),
    }


def floors() -> int:
    """Floors of the map in tests/test_rooms.py."""
    tree = ast.parse((ROOT / "tests" / "test_rooms.py").read_text())
    found = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLOORS"
    ]
    return len(found[0].elts)


def passed_by_a_fit() -> dict[str, float]:
    """Our modules and functions that a default ``sdulearn fit`` runs through, imports apart."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer

    from sdulearn.cli.main import main

    X, y = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(X).rename(columns=lambda j: f"x{j}").assign(id=np.arange(len(X)))
    ends = np.random.default_rng(0).permutation(len(X))[:200].reshape(-1, 2)
    answers = pd.DataFrame(ends, columns=["id_a", "id_b"]).assign(label=(y[ends[:, 0]] == y[ends[:, 1]]).astype(int))
    with tempfile.TemporaryDirectory() as name:
        table, pairs, model = (str(Path(name) / file) for file in ("table.csv", "pairs.csv", "model.sdu"))
        frame.to_csv(table, index=False)
        answers.to_csv(pairs, index=False)
        options = ["fit", "--features", table, "--pairs", pairs, "-o", model]
        main(options)  # everything is imported now
        called: set[object] = set()

        def look(code_frame, event, _):
            if event == "call":
                called.add(code_frame.f_code)

        threading.setprofile(look)
        sys.setprofile(look)
        try:
            main(options)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    ours = [code for code in called if code.co_filename.startswith(str(PACKAGE)) and not code.co_name.startswith("<")]
    return {
        "default fit: modules passed": len({code.co_filename for code in ours}),
        "default fit: functions passed": len(ours),
    }


def cpu_seconds() -> dict[str, float]:
    """Of three fits, the second time: the first one imports. adult only where SDULEARN_DATA has it."""
    import pandas as pd
    from paper import load_benchmark
    from sklearn.datasets import load_digits

    from sdulearn import PairLogisticRegressionCV, fit_table, stack_pairs
    from sdulearn.datasets import make_waveform

    def of_table(X, y, model):
        frame = pd.DataFrame(X[:10_000]).rename(columns=lambda j: f"x{j}").assign(id=np.arange(10_000))
        ends = np.random.default_rng(0).permutation(10_000)[:400].reshape(-1, 2)
        answers = pd.DataFrame(ends, columns=["id_a", "id_b"]).assign(label=y[ends[:, 0]] == y[ends[:, 1]])
        return lambda: fit_table(frame, answers, model=model)

    digits, digit = load_digits(return_X_y=True)
    ends = np.random.default_rng(0).integers(0, len(digit), (300, 2))
    answered = stack_pairs(digits, ends, digit[ends[:, 0]] == digit[ends[:, 1]])
    fits = {
        "default fit of 200 answers, 10,000 rows, CPU s": of_table(*make_waveform(10_000, random_state=0), "auto"),
        "digits, K by itself, 300 answers, CPU s": PairLogisticRegressionCV(n_classes="auto").fit,
    }
    if "SDULEARN_DATA" in os.environ:
        fits["its linear model alone, adult, CPU s"] = of_table(*load_benchmark("adult"), "linear")
    found = {}
    for name, fit in fits.items():
        arguments = answered if name.startswith("digits") else ()
        fit(*arguments)
        began = time.process_time()
        fit(*arguments)
        found[name] = round(time.process_time() - began, 1)
    return found


def lines_of_tests() -> int:
    return sum(len(path.read_text().splitlines()) for path in (ROOT / "tests").rglob("*.py"))


def run_tests() -> None:
    """Run the tests in one process and keep the CPU minutes that they took."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {"CPU minutes of the tests": round((used.ru_utime + used.ru_stime) / 60, 1), "exit status": done.returncode}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def figures() -> dict[str, float]:
    found = measure(PACKAGE) | {"floors of the room test": floors(), "lines of tests": lines_of_tests()}
    found |= passed_by_a_fit() | cpu_seconds()
    return found | (json.loads(RESULTS.read_text()) if RESULTS.exists() else {})


def table() -> list[str]:
    """Figures beside those before the redesign and the targets, as Markdown."""
    now = figures()
    lines = ["| figure | before | now | at most | met |", "|---|---|---|---|---|"]
    for name, (before, at_most) in TARGETS.items():
        value = now.get(name)
        met = "" if value is None else "yes" if value <= at_most else "no"
        lines.append(
            f"| {name} | {before:,} | {'not measured' if value is None else f'{value:,}'} | {at_most:,} | {met} |"
        )
    if MUTANTS.exists():
        found = json.loads(MUTANTS.read_text())
        share = 100 * found["killed"] / found["mutants"]
        met = "yes" if share >= 90 else "no"
        lines.append(
            f"| random mutants killed | 87% of 46 | {share:.0f}% of {found['mutants']} | 90% or more | {met} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="put the table into docs/measured.md")
    parser.add_argument("--tests", action="store_true", help="run the tests first, for their CPU minutes")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        print(folder)
        for what, value in measure(folder.resolve()).items():
            print(f"  {what:<40}{value:>8}")
    if arguments.folders:
        return
    if arguments.tests:
        run_tests()
    warnings.simplefilter("ignore")
    lines = table()
    print("\n".join(lines))
    if arguments.write or arguments.tests:
        write_between(ROOT / "docs" / "measured.md", "style", lines)


if __name__ == "__main__":
    main()
