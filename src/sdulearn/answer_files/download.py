"""Answers as a CSV file that keeps what their log knows: the page's download, written and read.

One line per pair of rows, ``id_a,id_b,label``, as other programs need it. The further columns are those of
the log: which pairs answer one question and what it showed, why it was asked, the place of its row in the
random order, privacy, and how the table was read (JSON in every line, so that lines may be sorted or deleted in
a spreadsheet). An answer to "which is it more like" is a line with the label "nearer", which is no pair.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sdulearn.answer_files.log import WORDS, LogContents, log_number, read_rank, with_log
from sdulearn.answers.records import Answer, Answers, Form, Given, Question, check_question, implied_pairs, read_reply
from sdulearn.answers.y import SIMILAR, UNSURE
from sdulearn.errors import InputError
from sdulearn.io.files import as_cell, from_cell
from sdulearn.io.typed import plain, read
from sdulearn.reading import Reading

_PAIR = ("id_a", "id_b", "label", "annotator", "time", "seconds")
_NUMBERS = ("epsilon", "probability")
COLUMNS = ("question", "form", "items", "why", "rank", *_NUMBERS, "session", "seed", "classes", "reading")
# A file with these columns is a download, even if others were deleted.
NEEDED = {*_PAIR[:3], "question", "why", "rank", "session"}
NEARER: Form = "nearer"


def as_csv(contents: LogContents) -> str:
    """Return the answers of a log as CSV."""
    given = list(contents.answers.values())
    stored = {} if contents.reading is None else plain(contents.reading.changed())
    reading = json.dumps({name: value for name, value in stored.items() if name != "cells"})
    file = io.StringIO(newline="")
    table = csv.writer(file)
    names = (*_PAIR, *COLUMNS, "comment")
    table.writerow(names)
    pairs = implied_pairs(given, unsure=True)
    words = [WORDS[code] for code in pairs.signs.tolist()]
    lines = [(k, *ends, word) for k, ends, word in zip(pairs.answers.tolist(), pairs.ends.tolist(), words, strict=True)]
    for k, answer in enumerate(given):
        if answer.groups is None:
            chosen = answer.choices[answer.nearer or 0]
            lines.append((k, answer.left, chosen, "unsure" if answer.is_unsure else NEARER))
    for k, left, right, word in sorted(lines, key=lambda line: line[0]):
        answer = given[k]
        question = answer.question
        cells: dict[str, object] = {"id_a": left, "id_b": right, "label": word, "annotator": answer.annotator}
        cells |= {**answer.given._asdict(), "question": answer.given.number, "form": question.form, "why": question.why}
        cells |= {"items": json.dumps(question.items), "reading": reading}
        cells |= {"rank": None if question.rank is None else json.dumps(question.rank)}
        cells |= {"epsilon": contents.epsilon_of(answer), "seed": contents.seeds.get(answer.given.session)}
        cells |= {"classes": contents.n_classes}
        table.writerow("" if cells[name] is None else as_cell(str(cells[name])) for name in names)
    return file.getvalue()


def read_cells(cells: Mapping[str, str]) -> dict[str, Any]:
    """Return what a line holds; a ValueError says what cannot be read."""
    found: dict[str, Any] = {name: from_cell(cell) for name, cell in cells.items()}
    found |= {name: log_number({name: _number(found.get(name, ""))}, name) for name in _NUMBERS}
    items = tuple(read(list[str], json.loads(found.get("items") or "[]"))) or (found["id_a"], found["id_b"])
    rank = found.get("rank") or ""
    places = read_rank({"rank": json.loads(rank) if rank.startswith("[") else _number(rank)})
    question = Question(found.get("form") or "pair", items, found.get("why") or "", places)
    check_question(question)
    return {**found, "asked": question}


def _number(text: str) -> int | float | str | None:
    for kind in (int, float):
        try:
            return kind(text.replace(",", "."))
        except ValueError:
            pass
    return text or None


def with_log_columns(
    answers: Answers, rows: Sequence[Mapping[str, Any]], nearer: Sequence[Mapping[str, Any]]
) -> Answers:
    """Return the answers of a download with what their log knew; ``rows`` has the cells of each, ``nearer`` others."""
    contents = LogContents()
    lines: dict[tuple[object, ...], list[int]] = {}
    for k, row in enumerate([*rows, *nearer]):
        # A line that somebody added has no number.
        lines.setdefault((row["session"], row["question"] or f"line {row['line']}", row["asked"].key), []).append(k)
    of = np.empty(len(rows) + len(nearer), dtype=np.intp)
    codes = answers.answers.tolist()
    for number, places in enumerate(lines.values(), start=1):
        of[places] = number - 1
        row = rows[places[0]] if places[0] < len(rows) else nearer[places[0] - len(rows)]
        question: Question[str] = row["asked"]
        if question.form == NEARER:
            reply: object = "unsure" if row["label"] != NEARER else question.choices.index(row["id_b"])
        else:
            reply = _groups(question, [(rows[k]["id_a"], rows[k]["id_b"], codes[k]) for k in places])
        given = Given(session=row["session"], number=number, epsilon=row["epsilon"], probability=row["probability"])
        answer = _answer_of(question, reply)._replace(annotator=row.get("annotator", ""), given=given)
        contents.answers[answer.key] = answer
        if isinstance(seed := _number(row.get("seed", "")), int):
            contents.seeds[given.session] = seed
        if isinstance(n_classes := _number(row.get("classes", "")), int) and n_classes >= 2:
            contents.n_classes = n_classes
    try:
        for text in dict.fromkeys(row.get("reading") or "{}" for row in rows):
            contents.readings.append(read(Reading, json.loads(text)))
    except (TypeError, ValueError) as error:
        raise InputError(f"{answers.name}: the column 'reading' cannot be read ({error}). Download it again.") from None
    kinds = np.array([row["asked"].why for row in rows], dtype=object)
    return with_log(replace(answers, kinds=kinds), contents, of[: len(rows)])


def _groups(question: Question[str], pairs: Sequence[tuple[str, str, int]]) -> list[object]:
    """Return the groups that pairs of a question say; somebody may have changed or deleted some of them."""
    labels: dict[str, object] = {item: item for *ends, code in pairs if code != UNSURE for item in ends}
    for a, b, code in pairs:
        if code == SIMILAR:
            labels = {item: labels[a] if label == labels[b] else label for item, label in labels.items()}
    apart = labels and question.form != "sort"
    return [labels.get(item, item if apart else None) for item in question.items]


def _answer_of(question: Question[str], reply: object) -> Answer[str]:
    """Return an answer; unsure if its lines contradict each other."""
    try:
        return read_reply(question, reply)
    except InputError:
        return read_reply(question, "unsure")
