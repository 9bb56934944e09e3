"""Label Studio: tasks with annotations, whose choices are the answers; nested (JSON) or flat (CSV, JSON-MIN)."""

from __future__ import annotations

import json

from sdulearn.io.files import as_text
from sdulearn.io.importers.sheet import Said, Sheet, annotated_sheet, sheet_of
from sdulearn.io.rows import Content, Record
from sdulearn.pairs import UNSURE

_SKIPPED = "skipped"
_ABOUT = ("completed_by", "created_at", _SKIPPED)
_FLAT = {"annotation_id", "annotator", "lead_time"}
# Columns of Label Studio's own in its CSV and JSON-MIN; the others are the task's data and the answers.
_OWN = {*_FLAT, "id", "created_at", "updated_at", "agreement"}


def is_label_studio(content: Content) -> bool:
    """Tasks with ``data`` and a list of ``annotations`` (``completions``, before 2021)."""
    if not ("data" in content.header and {"annotations", "completions"} & set(content.header)):
        return False
    return any(isinstance(task, dict) and _is_task(task) for _, task in content.records())


def _is_task(task: Record) -> bool:
    return isinstance(task.get("data"), dict) and _annotations(task) is not None


def _annotations(task: Record) -> list[object] | None:
    found = task.get("annotations")
    found = task.get("completions") if found is None else found
    return found if isinstance(found, list) else None


def read_label_studio(content: Content) -> Sheet:
    """A row per annotation; every choice that the page asked for is a column."""
    said: list[Said] = []
    n_unanswered = 0
    for number, task in content.records():
        if isinstance(task, str) or not _is_task(task):
            said.append((number, task if isinstance(task, str) else "no task of Label Studio"))
            continue
        annotations = _annotations(task) or []
        n_unanswered += not annotations
        said += [_annotation(number, task, annotation) for annotation in annotations]
    found = (key for one in said if len(one) == 3 for key in one[2] if key not in _ABOUT)
    questions = list(dict.fromkeys(found)) or ["label"]
    for one in said:
        # An annotation that was skipped answers every question alike.
        if len(one) == 3 and one[2].pop(_SKIPPED):
            one[2].update(dict.fromkeys(questions, _SKIPPED))
    columns = {"annotator": "completed_by", "time": "created_at"}
    more = {"words": {_SKIPPED: UNSURE}, "n_unanswered": n_unanswered}
    return annotated_sheet("label_studio", said, questions, columns, **more)


def _annotation(number: int, task: Record, annotation: object) -> Said:
    """The task's data, and one person's choices."""
    data = task["data"]
    assert isinstance(data, dict)
    if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
        return number, "an annotation without a list of results"
    choices: Record = {}
    for result in annotation["result"]:
        if isinstance(result, dict) and result.get("type") == "choices":
            choices[as_text(result.get("from_name"))] = _choice(result.get("value"))
    about = {
        "completed_by": _person(annotation.get("completed_by")),
        "created_at": annotation.get("created_at"),
        _SKIPPED: annotation.get("was_cancelled") is True,
    }
    return number, data, {**choices, **about}


def _choice(value: object) -> str:
    """What was chosen; several choices are no word that is known, and so an unreadable row."""
    chosen = value.get("choices") if isinstance(value, dict) else value
    if isinstance(chosen, list):
        return " + ".join(as_text(one) for one in chosen)
    return as_text(chosen)


def _person(value: object) -> object:
    """An id, or an object with an e-mail address and an id."""
    if isinstance(value, dict):
        return value.get("email") or value.get("id")
    return value


def is_label_studio_flat(content: Content) -> bool:
    """Label Studio's CSV, TSV and JSON-MIN: a flat row per annotation."""
    return set(content.header) >= _FLAT


def read_label_studio_flat(content: Content) -> Sheet:
    """The columns as they are; the answer is in the only column that holds nothing but words for answers."""
    rows: list[tuple[int, Record | str]] = []
    for number, record in content.records():
        rows.append((number, record if isinstance(record, str) else {k: _flat_cell(v) for k, v in record.items()}))
    columns = {"annotator": "annotator"}
    if "created_at" in content.header:
        columns["time"] = "created_at"
    texts = [name for name in content.header if name not in _OWN and _holds_answers(rows, name)]
    if len(texts) == 1:
        columns["label"] = texts[0]
    return sheet_of("label_studio_flat", rows, columns=columns, only_ids=True)


def _flat_cell(cell: object) -> object:
    """A cell, with the JSON that stands for several choices (or one) taken apart."""
    if isinstance(cell, str) and cell.startswith('{"choices"'):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    return _choice(cell) if isinstance(cell, dict) and "choices" in cell else cell


_ANSWER_WORDS = {"same", "similar", "match", "different", "dissimilar", "distinct", "unsure"}


def _holds_answers(rows: list[tuple[int, Record | str]], name: str) -> bool:
    texts = {as_text(row.get(name)).lower() for _, row in rows if isinstance(row, dict)} - {""}
    return bool(texts) and texts <= _ANSWER_WORDS
