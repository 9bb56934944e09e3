"""Tables of a crowd: task, worker and label, where the task names the pair."""

from __future__ import annotations

from sdulearn.errors import InputError, quoted
from sdulearn.io.files import as_text
from sdulearn.io.importers.sheet import Sheet, by_plain_name, pair_columns, sheet_of
from sdulearn.io.rows import Content, Record

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
