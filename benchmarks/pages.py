"""Tables that scripts write into pages."""

from __future__ import annotations

import datetime
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
EVIDENCE = ROOT / "docs" / "evidence"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table."""
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def folded(title: str, lines: Iterable[str]) -> list[str]:
    """A table that opens on a click."""
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def provenance(draws: str) -> str:
    """Command, commit, draws, date and machine of this run."""
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    describe = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return f"`{command}`, commit {commit}, {draws}, {datetime.date.today()}, {os.cpu_count()} cores."


def write_section(path: Path, name: str, lines: Sequence[str], draws: str) -> None:
    """Replace a section of a page of evidence: how it was measured, and the lines."""
    write_between(path, name, ["", provenance(draws), "", *lines, ""])


def write_between(path: Path, name: str, lines: Sequence[str]) -> None:
    """Replace what is between the marks <!-- name --> and <!-- /name --> of a file, if it has them."""
    before, mark, rest = path.read_text().partition(f"<!-- {name} -->\n")
    if mark:
        after = rest.partition(f"<!-- /{name} -->")[2]
        path.write_text(before + mark + "\n".join(lines) + f"\n<!-- /{name} -->" + after)
