"""Random mutants, chosen by cosmic-ray: how many do the tests of their package kill?

    python tools/mutants.py                    # 160 mutants; writes tools/mutants.json and mutants.md
    python tools/mutants.py --only io --n 20   # of one package; added to both files
    python tools/mutants.py --page             # mutants.md again, from verdicts written into mutants.json

A place in the source is drawn, then one of the changes that cosmic-ray knows for it. Annotations are not touched: they
never run. A mutant is killed where a test of its package fails, or where they do not end within a quarter of an hour.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec

HERE = Path(__file__).parent
ROOT = HERE.parent
PACKAGES = (
    "answers", "joint", "metrics", "boosting",
    "asking", "io", "workflow", "web", "tables", "answer_files", "report", "cli",
)  # fmt: skip
LIMIT = 900


def mutations(package: str) -> list[MutationSpec]:
    """Every change that cosmic-ray knows for a package."""
    paths = sorted((ROOT / "src" / "sdulearn" / package).rglob("*.py"))
    with tempfile.TemporaryDirectory() as name, use_db(str(Path(name) / "work.sqlite"), WorkDB.Mode.create) as work:
        init(paths, work, {})
        found = [item.mutations[0] for item in work.work_items]
    idle = {path: never_run(path.read_text()) for path in paths}
    return [one for one in found if not any(a <= one.start_pos < b for a, b in idle[Path(one.module_path)])]


def never_run(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations begin and end."""
    nodes: list[ast.expr] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            nodes.append(node.returns)
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
            nodes.append(node.annotation)
    return [((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)) for node in nodes]


def drawn(packages: tuple[str, ...], n: int, seed: int) -> list[tuple[str, MutationSpec]]:
    """Places at random among all packages, and one of the changes for each."""
    places: dict[tuple[str, str, tuple[int, int]], list[MutationSpec]] = defaultdict(list)
    for package in packages:
        for one in mutations(package):
            places[package, str(one.module_path), one.start_pos].append(one)
    source = random.Random(seed)
    shuffled = source.sample(sorted(places), len(places))
    chosen = ((place[0], source.choice(places[place])) for place in shuffled)
    return list(islice(((package, one) for package, one in chosen if mutant(one) is not None), n))


def mutant(mutation: MutationSpec) -> str | None:
    """The text of the module with the change; None where cosmic-ray cannot make it."""
    operator = plugins.get_operator(mutation.operator_name)(**mutation.operator_args)
    try:
        return mutate_code(Path(mutation.module_path).read_text(), operator, mutation.occurrence)
    except AttributeError:
        # Its replacer of exceptions does not know `except module.Error`.
        return None


class Copy:
    """A copy of the tree in a temporary folder, in which tests are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        skip = shutil.ignore_patterns("__pycache__", ".*", "_build", "dist")
        for name in ("src", "tests", "docs", "benchmarks", "examples", "reproduction"):
            shutil.copytree(ROOT / name, folder / name, ignore=skip)
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "LICENSE"):
            shutil.copy2(ROOT / name, folder / name)

    def passes(self, package: str, module: str) -> bool:
        """Whether all tests of a package pass, those of the module first."""
        own = f"tests/{package}/test_{module}.py"
        which = [own] * (self.folder / own).exists() + [f"tests/{package}"]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *which]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / "hypothesis"),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, timeout=LIMIT, capture_output=True, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def survives(self, package: str, mutation: MutationSpec) -> str | None:
        """The change as a diff where no test notices it."""
        path = self.folder / Path(mutation.module_path).relative_to(ROOT)
        before = path.read_text()
        after = mutant(mutation)
        path.write_text(after)
        try:
            unnoticed = self.passes(package, path.stem)
        finally:
            path.write_text(before)
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
        return "\n".join(list(lines)[2:]) if unnoticed else None


def page(found: dict[str, object]) -> str:
    """The survivors, as Markdown; those of further samples, of other seeds, below."""
    lines = ["# Random mutants", ""]
    for sample in (found, *found.get("further", ())):
        lines += [
            f"{sample['killed']} of {sample['mutants']} killed (seed {sample['seed']}, "
            f"{sample.get('packages', 'all packages')}). {judged(sample)}Survivors:",
            "",
        ]
        for one in sample["survivors"]:
            verdict = one.get("verdict", "Not judged yet.")
            lines += [f"`{one['file']}`. {verdict}", "", "```diff", one["diff"], "```", ""]
    return "\n".join(lines)


def judged(found: dict[str, object]) -> str:
    """Those that can change what the code does, once a verdict stands beside each survivor in mutants.json."""
    kinds = [one.get("verdict", "").partition(":")[0] for one in found["survivors"]]
    killed = found["killed"] + kinds.count("test")
    n = found["mutants"] - kinds.count("equivalent") - kinds.count("gone")
    return (
        f"With tests written since, {killed} of the {n} that are not equivalent ({killed / n:.0%}). " if killed else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=160)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=PACKAGES, help="some packages; they are added to mutants.json")
    parser.add_argument("--page", action="store_true", help="write mutants.md from mutants.json, and draw nothing")
    arguments = parser.parse_args()
    if arguments.page:
        (HERE / "mutants.md").write_text(page(json.loads((HERE / "mutants.json").read_text())))
        return
    chosen = drawn(tuple(arguments.only), arguments.n, arguments.seed)
    survivors: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for k in range(arguments.jobs):
            copies.put(Copy(Path(name) / str(k)))

        def test(place: tuple[str, MutationSpec]) -> str | None:
            copy = copies.get()
            try:
                return copy.survives(*place)
            finally:
                copies.put(copy)

        began = time.perf_counter()
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for k, ((_, mutation), diff) in enumerate(zip(chosen, pool.map(test, chosen), strict=True)):
                file = str(Path(mutation.module_path).relative_to(ROOT))
                if diff is not None:
                    survivors.append({"file": file, "diff": diff})
                    print(f"survived: {file}\n{diff}", flush=True)
                print(
                    f"{k + 1} of {len(chosen)}, {len(survivors)} survive, {time.perf_counter() - began:.0f} s",
                    flush=True,
                )
    found: dict[str, object] = {
        "mutants": len(chosen),
        "killed": len(chosen) - len(survivors),
        "seed": arguments.seed,
        "survivors": survivors,
    }
    if arguments.only != PACKAGES:
        found["packages"] = ", ".join(arguments.only)
        before = json.loads((HERE / "mutants.json").read_text())
        found = {**before, "further": [*before.get("further", ()), found]}
    (HERE / "mutants.json").write_text(json.dumps(found, indent=1) + "\n")
    (HERE / "mutants.md").write_text(page(found))


if __name__ == "__main__":
    main()
