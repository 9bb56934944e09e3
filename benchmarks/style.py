"""The shape of the source: lines, bodies, packed assignments, long lines, ``Any`` in signatures.

    python benchmarks/style.py [FOLDER ...]
    python benchmarks/style.py --write

The first prints the figures of folders, the second puts those of the package into docs/measured.md, beside targets.
"""

from __future__ import annotations

import argparse
import ast
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pages import write_between

ROOT = Path(__file__).parents[1]
LONG = 100
Function = ast.FunctionDef | ast.AsyncFunctionDef
# From tables and answers to a model and words about it.
OUTER = (
    "answers", "cli", "columns.py", "diagnostics.py", "errors.py", "extras.py", "io", "metrics", "number_texts.py",
    "fit_report.py", "table_model.py", "workflow",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A figure of the whole package: in 0.1.0, by this script, and what is wanted."""

    figure: str
    before: float
    at_most: float | None = None


# 0.1.0 is commit d1442be. Its outer half was cli.py, columns.py, commands/, extras.py, files.py, modelfile.py,
# onnx_export.py, parquet.py, persistence.py, servable.py and tables.py; a fifth less is wanted.
TARGETS = (
    Target("files", 113),
    Target("lines", 15824, at_most=15824),
    Target("lines without docstrings, blank lines and comments", 9554),
    Target("lines of the outer half", 4706, at_most=3765),
    Target("longest file", 427, at_most=400),
    Target("body lines, median", 5, at_most=5),
    Target("body lines, p90", 14, at_most=14),
    Target("body lines, max", 36, at_most=40),
    Target("packed assignments, %", 8.2, at_most=3),
    Target(f"lines over {LONG} characters, %", 9.9, at_most=5),
    Target("comment lines, %", 0.7),
    Target("Any in a signature, %", 32.8, at_most=10),
)


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


def docstring_lines(tree: ast.AST) -> int:
    owners = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | Function)]
    first = [node.body[0] for node in owners if node.body]
    texts = [node for node in first if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return sum(node.end_lineno - node.lineno + 1 for node in texts)


def measure(folder: Path) -> dict[str, float | int]:
    paths = sorted(folder.rglob("*.py"))
    texts = [path.read_text() for path in paths]
    trees = [ast.parse(text) for text in texts]
    lines = [line for text in texts for line in text.splitlines()]
    code = [line for line in lines if line.strip()]
    every = [function for tree in trees for function in functions(tree)]
    bodies = [body_lines(function) for function in every]
    assignments = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    comments = [line for line in code if line.strip().startswith("#")]
    documented = sum(docstring_lines(tree) for tree in trees)
    return {
        "files": len(paths),
        "lines": len(lines),
        "lines without docstrings, blank lines and comments": len(code) - len(comments) - documented,
        "longest file": max(len(text.splitlines()) for text in texts),
        "body lines, median": int(np.median(bodies)),
        "body lines, p90": int(np.quantile(bodies, 0.9)),
        "body lines, max": max(bodies),
        "packed assignments, %": round(100 * np.mean([is_packed(one) for one in assignments]), 1),
        f"lines over {LONG} characters, %": round(100 * np.mean([len(line) > LONG for line in code]), 1),
        "comment lines, %": round(100 * len(comments) / len(code), 1),
        "Any in a signature, %": round(100 * np.mean([mentions_any(one) for one in every]), 1),
    }


def lines_of(folder: Path, rooms: tuple[str, ...]) -> int:
    paths = [path for room in rooms for path in (sorted((folder / room).rglob("*.py")) or [folder / room])]
    return sum(len(path.read_text().splitlines()) for path in paths)


def table(package: Path) -> list[str]:
    """Figures beside those of 0.1.0 and the targets, as Markdown."""
    now = measure(package) | {"lines of the outer half": lines_of(package, OUTER)}
    lines = ["| figure | 0.1.0 | now | target | met |", "|---|---|---|---|---|"]
    for target in TARGETS:
        value = now[target.figure]
        wanted = (
            ["", ""] if target.at_most is None else [f"at most {target.at_most:,}", verdict(value <= target.at_most)]
        )
        lines.append(f"| {' | '.join([target.figure, f'{target.before:,}', f'{value:,}', *wanted])} |")
    return lines


def verdict(met: bool) -> str:
    return "yes" if met else "no"


def show(folder: Path) -> None:
    print(folder)
    for what, value in measure(folder).items():
        print(f"  {what:<52}{value:>8}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / "src" / "sdulearn"])
    parser.add_argument("--write", action="store_true", help="put the table into docs/measured.md")
    arguments = parser.parse_args()
    if arguments.write:
        lines = table(ROOT / "src" / "sdulearn")
        write_between(ROOT / "docs" / "measured.md", "style", lines)
        print("\n".join(lines))
        return
    for folder in arguments.folders:
        show(folder)


if __name__ == "__main__":
    main()
