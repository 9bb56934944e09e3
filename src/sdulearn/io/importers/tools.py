"""Answers as annotation tools write them: Label Studio, Argilla and Prodigy.

Label Studio has tasks with annotations, whose choices are the answers, nested (JSON) or flat (CSV, JSON-MIN); Argilla
records with fields, metadata and the responses of several people, nested or flattened; Prodigy a JSON object per
task, with accept, reject or ignore, or one of several options.
"""

from __future__ import annotations

import json

from sdulearn.io.files import as_text
from sdulearn.io.importers.sheet import Said, Sheet, annotated_sheet, given_values, sheet_of
from sdulearn.io.rows import Content, Record
from sdulearn.pairs import DISSIMILAR, SIMILAR, UNSURE

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
        "completed_by": _who(annotation.get("completed_by")),
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


def _who(value: object) -> object:
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


_DISCARDED = "discarded"
# Stands for every question of a record.
_ANY = ""
_RESPONSES = ".responses"
_USERS = ".responses.users"
_STATUS = ".responses.status"

# Who said what about which question, and whether it was submitted.
Response = tuple[str, str, object, str]


def is_argilla(content: Content) -> bool:
    """Records with ``fields`` and ``responses``."""
    if not {"fields", "responses"} <= set(content.header):
        return False
    return any(isinstance(record, dict) and _is_record(record) for _, record in content.records())


def _is_record(record: Record) -> bool:
    return isinstance(record.get("fields"), dict) and isinstance(record.get("responses"), dict | list | None)


def read_argilla(content: Content) -> Sheet:
    """A row per person and record; ids are among its fields or metadata."""
    said: list[Said] = []
    n_unanswered = 0
    for number, record in content.records():
        if isinstance(record, str) or not _is_record(record):
            said.append((number, record if isinstance(record, str) else "no record of Argilla"))
            continue
        data: Record = {}
        for part in (record.get("metadata"), record.get("fields")):
            data |= part if isinstance(part, dict) else {}
        people = _by_person(_responses(record["responses"]))
        n_unanswered += not people
        said += [(number, data, answers) for answers in people]
    return _argilla_sheet("argilla", said, n_unanswered)


def _responses(value: object) -> list[Response]:
    """Responses by question (version 2) or by person (version 1)."""
    found: list[Response] = []
    if isinstance(value, dict):
        for question, given in value.items():
            for one in given if isinstance(given, list) else []:
                if isinstance(one, dict):
                    found.append((_person(one), question, one.get("value"), as_text(one.get("status"))))
        return found
    for one in value if isinstance(value, list) else []:
        values = one.get("values") if isinstance(one, dict) else None
        for question, answer in (values or {}).items() if isinstance(values, dict | None) else []:
            said = answer.get("value") if isinstance(answer, dict) else answer
            found.append((_person(one), question, said, as_text(one.get("status"))))
        if isinstance(one, dict) and not values and one.get("status") == _DISCARDED:
            found.append((_person(one), _ANY, None, _DISCARDED))
    return found


def _person(response: Record) -> str:
    return as_text(response.get("user_id"))


def _by_person(responses: list[Response]) -> list[Record]:
    """What each person said to each question; drafts are no answers."""
    people: dict[str, Record] = {}
    for person, question, value, status in responses:
        if status != "draft":
            said = people.setdefault(person, {"user_id": person})
            said[question] = _DISCARDED if status == _DISCARDED else _label(value)
    return list(people.values())


def _label(value: object) -> str:
    """The label chosen; several are no word that is known, and so an unreadable row."""
    return " + ".join(as_text(one) for one in value) if isinstance(value, list) else as_text(value)


def _argilla_sheet(name: str, said: list[Said], n_unanswered: int) -> Sheet:
    found = (key for one in said if len(one) == 3 for key in one[2] if key not in ("user_id", _ANY))
    questions = list(dict.fromkeys(found)) or ["label"]
    for one in said:
        # A record that was discarded as a whole answers every question alike.
        if len(one) == 3 and one[2].pop(_ANY, None):
            one[2].update(dict.fromkeys(questions, _DISCARDED))
    more = {"words": {_DISCARDED: UNSURE}, "n_unanswered": n_unanswered}
    return annotated_sheet(name, said, questions, {"annotator": "user_id"}, **more)


def is_argilla_flat(content: Content) -> bool:
    """Columns such as ``label.responses`` and ``label.responses.users``, as Argilla gives them to datasets."""
    return bool(_questions(content))


def _questions(content: Content) -> list[str]:
    header = set(content.header)
    stems = [name.removesuffix(_USERS) for name in content.header if name.endswith(_USERS)]
    return [stem for stem in stems if stem + _RESPONSES in header]


def read_argilla_flat(content: Content) -> Sheet:
    """A row per person and record, from lists of responses, people and states side by side."""
    questions = _questions(content)
    said: list[Said] = []
    n_unanswered = 0
    for number, record in content.records():
        responses = record if isinstance(record, str) else _flat_responses(record, questions)
        if isinstance(record, str) or isinstance(responses, str):
            said.append((number, str(responses)))
            continue
        data = {key: value for key, value in record.items() if _RESPONSES not in key and ".suggestion" not in key}
        people = _by_person(responses)
        n_unanswered += not people
        said += [(number, data, answers) for answers in people]
    return _argilla_sheet("argilla_flat", said, n_unanswered)


def _flat_responses(record: Record, questions: list[str]) -> list[Response] | str:
    found: list[Response] = []
    for question in questions:
        said = record.get(question + _RESPONSES)
        users = record.get(question + _USERS)
        states = record.get(question + _STATUS)
        if isinstance(said, str) or isinstance(users, str):
            return "lists that were written as text; export as JSON or Parquet"
        if not isinstance(said, list) or not isinstance(users, list):
            continue
        states = states if isinstance(states, list) else [None] * len(said)
        if not len(said) == len(users) == len(states):
            return "as many responses as people are needed"
        found += [(as_text(u), question, v, as_text(s)) for v, u, s in zip(said, users, states, strict=True)]
    return found


def is_prodigy(content: Content) -> bool:
    """Tasks with Prodigy's hashes and an answer."""
    header = set(content.header)
    return "answer" in header and bool({"_task_hash", "_input_hash"} & header)


def read_prodigy(content: Content) -> Sheet:
    """A row per task; ids may stand in its ``meta``."""
    rows = [(n, task if isinstance(task, str) else _task_row(task)) for n, task in content.records()]
    columns = {"label": "answer"}
    for role, usual in (("annotator", ("_annotator_id", "_session_id")), ("time", ("_timestamp",))):
        if found := [name for name in usual if name in content.header]:
            columns[role] = found[0]
    words = {"accept": SIMILAR, "reject": DISSIMILAR, "ignore": UNSURE}
    return sheet_of("prodigy", rows, columns=columns, words=words, only_ids=True)


def _task_row(task: Record) -> Record | str:
    """A task with what its ``meta`` adds, and the option chosen where it offered some."""
    task = given_values(task)
    meta = task.pop("meta", None)
    if "accept" not in task and "options" not in task:
        return {**(meta if isinstance(meta, dict) else {}), **task}
    # Of a choice, "accept" says that the task is done and not that the two are alike.
    if task.get("answer") == "accept":
        chosen = task.get("accept")
        if not isinstance(chosen, list) or len(chosen) != 1:
            return "not one option chosen"
        task["answer"] = _option_text(task.get("options"), chosen[0])
    elif task.get("answer") == "reject":
        return "a choice that was rejected is no answer"
    return {**(meta if isinstance(meta, dict) else {}), **task}


def _option_text(options: object, chosen: object) -> str:
    """The text that was shown for an option, or else its id."""
    for option in options if isinstance(options, list) else []:
        if isinstance(option, dict) and option.get("id") == chosen and isinstance(option.get("text"), str):
            return str(option["text"])
    return as_text(chosen)
