"""Answers as tables of a crowd, whose tasks name the pairs, and as constraints of clusterings."""

from __future__ import annotations

from sdulearn.errors import InputError, quoted
from sdulearn.io.files import as_text
from sdulearn.io.importers.sheet import Sheet, by_plain_name, pair_columns, sheet_of
from sdulearn.io.rows import Content, Record
from sdulearn.pairs import DISSIMILAR, SIMILAR

_WORKERS = ("worker", "performer", "worker_id", "workerid")
_MARKS = ("|", ",", ";", " vs ", " - ", "--", "__", "~", "/", ":")


def is_crowd(content: Content) -> bool:
    """Columns task, worker (performer, before crowd-kit 1.1) and label, and none for the ends of a pair."""
    names = by_plain_name(content.header)
    worker = any(name in names for name in _WORKERS)
    return worker and "task" in names and "label" in names and pair_columns(content.header) is None


def read_crowd(content: Content) -> Sheet:
    """A row per worker and task; the task is taken apart at the one mark that splits every task in two."""
    names = by_plain_name(content.header)
    task = names["task"]
    texts = {as_text(row.get(task)) for _, row in content.records() if isinstance(row, dict)} - {""}
    mark = _only_mark(content.name, task, texts)
    rows: list[tuple[int, Record | str]] = []
    for number, row in content.records():
        rows.append((number, row if isinstance(row, str) else {**row, **_ends(as_text(row.get(task)), mark)}))
    worker = next(names[name] for name in _WORKERS if name in names)
    columns = {"id_a": "first of task", "id_b": "second of task", "label": names["label"], "annotator": worker}
    return sheet_of("crowd", rows, columns=columns)


def _ends(task: str, mark: str) -> Record:
    first, _, second = task.partition(mark)
    return {"first of task": first.strip(), "second of task": second.strip()}


def _only_mark(name: str, task: str, texts: set[str]) -> str:
    marks = [mark for mark in _MARKS if texts and all(_splits(text, mark) for text in texts)]
    if len(marks) == 1:
        return marks[0]
    example = f" such as {quoted(min(texts))}" if texts else ""
    why = "can be taken apart at several marks" if marks else "do not name the two ends of a pair"
    raise InputError(
        f"{name}: the tasks in {quoted(task)}{example} {why}. Add two columns id_a and id_b with the ids of each "
        "task's two points (or name yours with `columns`), or write tasks as a|b."
    )


def _splits(text: str, mark: str) -> bool:
    parts = text.split(mark)
    return len(parts) == 2 and all(part.strip() for part in parts)


_MUST = ("ml", "must_link", "must-link", "mustlink", "must_links")
_CANNOT = ("cl", "cannot_link", "cannot-link", "cannotlink", "cannot_links")
_COLUMNS = {"id_a": "id_1", "id_b": "id_2", "label": "constraint_type"}


def is_interactive_clustering(content: Content) -> bool:
    """The constraints.json of interactive-clustering-gui: an object of constraints, each with its two texts."""
    document = content.document
    return bool(document) and all(_is_constraint(value) for value in (document or {}).values())


def _is_constraint(value: object) -> bool:
    data = value.get("data") if isinstance(value, dict) else None
    return isinstance(data, dict) and {"id_1", "id_2"} <= set(data) and "constraint_type" in value  # type: ignore[operator]


def read_interactive_clustering(content: Content) -> Sheet:
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
