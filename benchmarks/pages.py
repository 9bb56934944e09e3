"""Tables that scripts write into pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table."""
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def write_between(path: Path, name: str, lines: Sequence[str]) -> None:
    """Replace what stands between the marks <!-- name --> and <!-- /name --> of a file, if it has them."""
    before, mark, rest = path.read_text().partition(f"<!-- {name} -->\n")
    if mark:
        after = rest.partition(f"<!-- /{name} -->")[2]
        path.write_text(before + mark + "\n".join(lines) + f"\n<!-- /{name} -->" + after)
