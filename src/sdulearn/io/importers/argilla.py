"""Argilla: records with fields, metadata and the responses of several people, nested or flattened."""

from __future__ import annotations

from sdulearn.io.files import as_text
from sdulearn.io.importers.sheet import Said, Sheet, annotated_sheet
from sdulearn.io.rows import Content, Record
from sdulearn.pairs import UNSURE

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
    return _sheet("argilla", said, n_unanswered)


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
            said[question] = _DISCARDED if status == _DISCARDED else _answer(value)
    return list(people.values())


def _answer(value: object) -> str:
    """The label chosen; several are no word that is known, and so an unreadable row."""
    return " + ".join(as_text(one) for one in value) if isinstance(value, list) else as_text(value)


def _sheet(name: str, said: list[Said], n_unanswered: int) -> Sheet:
    found = (key for one in said if len(one) == 3 for key in one[2] if key not in ("user_id", _ANY))
    questions = list(dict.fromkeys(found)) or ["label"]
    for one in said:
        # A record that was discarded as a whole answers every question alike.
        if len(one) == 3 and one[2].pop(_ANY, None):
            one[2].update(dict.fromkeys(questions, _DISCARDED))
    more = {"words": {_DISCARDED: UNSURE}, "n_unanswered": n_unanswered}
    return annotated_sheet(name, said, questions, {"annotator": "user_id"}, **more)


def is_flattened(content: Content) -> bool:
    """Columns such as ``label.responses`` and ``label.responses.users``, as Argilla gives them to datasets."""
    return bool(_questions(content))


def _questions(content: Content) -> list[str]:
    header = set(content.header)
    stems = [name.removesuffix(_USERS) for name in content.header if name.endswith(_USERS)]
    return [stem for stem in stems if stem + _RESPONSES in header]


def read_flattened(content: Content) -> Sheet:
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
    return _sheet("argilla_flat", said, n_unanswered)


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
