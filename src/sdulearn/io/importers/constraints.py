"""Constraints of clusterings: interactive-clustering's, and lists of must-links and cannot-links."""

from __future__ import annotations

from sdulearn.io.importers.sheet import Sheet, sheet_of
from sdulearn.io.rows import Content, Record
from sdulearn.pairs import DISSIMILAR, SIMILAR

_MUST = ("ml", "must_link", "must-link", "mustlink", "must_links")
_CANNOT = ("cl", "cannot_link", "cannot-link", "cannotlink", "cannot_links")
_COLUMNS = {"id_a": "id_1", "id_b": "id_2", "label": "constraint_type"}


def is_clustering(content: Content) -> bool:
    """The constraints.json of interactive-clustering-gui: an object of constraints, each with its two texts."""
    document = content.document
    return bool(document) and all(_is_constraint(value) for value in (document or {}).values())


def _is_constraint(value: object) -> bool:
    data = value.get("data") if isinstance(value, dict) else None
    return isinstance(data, dict) and {"id_1", "id_2"} <= set(data) and "constraint_type" in value  # type: ignore[operator]


def read_clustering(content: Content) -> Sheet:
    """A row per constraint that was annotated, and whose texts were not deleted since."""
    rows: list[tuple[int, Record | str]] = []
    n_unanswered = 0
    for number, constraint in enumerate((content.document or {}).values(), 1):
        assert isinstance(constraint, dict)
        if constraint["constraint_type"] is None or constraint.get("is_hidden") is True:
            n_unanswered += 1
            continue
        kept = {name: constraint.get(name) for name in ("constraint_type", "date_of_update")}
        rows.append((number, {**constraint["data"], **kept}))
    columns = {**_COLUMNS, "time": "date_of_update"}
    return sheet_of("interactive_clustering", rows, columns=columns, n_unanswered=n_unanswered)


def is_link_lists(content: Content) -> bool:
    """An object of two lists, such as ``{"ml": [[0, 1]], "cl": [[1, 4]]}``, or of one."""
    document = content.document
    if not document or not all(_kind(key) and isinstance(pairs, list) for key, pairs in document.items()):
        return False
    return len({_kind(key) for key in document}) == len(document)


def _kind(key: str) -> int:
    return {**dict.fromkeys(_MUST, SIMILAR), **dict.fromkeys(_CANNOT, DISSIMILAR)}.get(key.lower(), 0)


def read_link_lists(content: Content) -> Sheet:
    """A row per link, counted through both lists."""
    rows: list[tuple[int, Record | str]] = []
    for key, pairs in (content.document or {}).items():
        assert isinstance(pairs, list)
        for pair in pairs:
            if isinstance(pair, list) and len(pair) == 2:
                rows.append((len(rows) + 1, {"id_1": pair[0], "id_2": pair[1], "constraint_type": key}))
            else:
                rows.append((len(rows) + 1, "not a pair of two ids"))
    words = {key.lower().replace("_", "-"): _kind(key) for key in content.document or {}}
    return sheet_of("link_lists", rows, columns=_COLUMNS, words=words)
