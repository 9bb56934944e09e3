"""How dense the source is: lines, bodies, packed assignments, long lines, ``Any`` in signatures (see STYLE).

python benchmarks/style.py [FOLDER ...]
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np

LONG = 100
Function = ast.FunctionDef | ast.AsyncFunctionDef


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


if __name__ == "__main__":
    for name in sys.argv[1:] or ["src/sdulearn"]:
        print(name)
        for what, value in measure(Path(name)).items():
            print(f"  {what:<52}{value:>8}")
