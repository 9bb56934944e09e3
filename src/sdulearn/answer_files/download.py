"""Answers as a CSV file that keeps what their log knows: the page's download, written and read.

One line per pair of rows, ``id_a,id_b,label``, as other programs need it. The further columns are those of
the log: which pairs answer one question and what else it showed, why it was asked, the place of its row in
the random order, privacy, and how the table was read (JSON in every line, so that lines may be sorted or
deleted in a spreadsheet).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sdulearn.answer_files.log import LogContents, log_number, pairs_of, with_log
from sdulearn.answers.records import Answer, Answers
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError
from sdulearn.io.files import as_cell, from_cell
from sdulearn.io.typed import plain, read
from sdulearn.reading import Reading

_PAIR = ("id_a", "id_b", "label", "annotator", "time", "seconds")
_NUMBERS = ("rank", "epsilon", "probability")
COLUMNS = ("question", "choices", "kind", *_NUMBERS, "session", "seed", "reading")
# A file with these columns is a download, even if others were deleted.
NEEDED = {*_PAIR[:3], "question", "kind", "rank", "session"}
_WORDS = {SIMILAR: "same", DISSIMILAR: "different", UNSURE: "unsure"}


def as_csv(contents: LogContents) -> str:
    """Return the answers of a log as CSV."""
    given = list(contents.answers.values())
    stored = {} if contents.reading is None else plain(contents.reading.changed())
    reading = json.dumps({name: value for name, value in stored.items() if name != "cells"})
    file = io.StringIO(newline="")
    table = csv.writer(file)
    names = (*_PAIR, *COLUMNS, "comment")
    table.writerow(names)
    for k, left, right, code in pairs_of(given):
        one = given[k]
        cells = {**one._asdict(), "id_a": left, "id_b": right, "label": _WORDS[code], "question": one.number}
        cells["choices"] = json.dumps(one.choices) if len(one.choices) > 1 else ""
        cells |= {"epsilon": contents.epsilon_of(one), "seed": contents.seeds.get(one.session), "reading": reading}
        table.writerow("" if cells[name] is None else as_cell(str(cells[name])) for name in names)
    return file.getvalue()


def read_cells(cells: Mapping[str, str]) -> dict[str, Any]:
    """Return what a line holds; a ValueError says what cannot be read."""
    found: dict[str, Any] = {name: from_cell(cell) for name, cell in cells.items()}
    found |= {name: log_number({name: _number(found.get(name, ""))}, name) for name in _NUMBERS}
    found["choices"] = tuple(read(list[str], json.loads(found.get("choices") or "[]")))
    return found


def _number(text: str) -> int | float | str | None:
    for kind in (int, float):
        try:
            return kind(text.replace(",", "."))
        except ValueError:
            pass
    return text or None


def with_log_columns(answers: Answers, rows: Sequence[Mapping[str, Any]]) -> Answers:
    """Return the answers of a download with what their log knew; ``rows`` has the cells of each."""
    contents = LogContents()
    groups: dict[tuple[object, ...], list[int]] = {}
    for k, row in enumerate(rows):
        # A line that somebody added has no number.
        key = row["session"], row["question"] or f"line {row['line']}", row["id_a"]
        groups.setdefault(key, []).append(k)
    of = np.empty(len(rows), dtype=np.intp)
    for number, group in enumerate(groups.values()):
        of[group] = number
        row = rows[group[0]]
        choices = row["choices"] or (row["id_b"],)
        codes = answers.answers[group].tolist()
        like = [rows[k]["id_b"] for k, code in zip(group, codes, strict=True) if code == SIMILAR]
        said: int | str = "none" if DISSIMILAR in codes else "unsure"
        if like and like[0] in choices:
            said = choices.index(like[0])
        more = {name: row[name] for name in (*_NUMBERS, "kind", "session")}
        answer = Answer(row["id_a"], choices, said, annotator=row.get("annotator", ""), number=number, **more)
        contents.answers[answer.key] = answer
        if isinstance(seed := _number(row.get("seed", "")), int):
            contents.seeds[answer.session] = seed
    try:
        for text in dict.fromkeys(row.get("reading") or "{}" for row in rows):
            contents.readings.append(read(Reading, json.loads(text)))
    except (TypeError, ValueError) as error:
        raise InputError(f"{answers.name}: the column 'reading' cannot be read ({error}). Download it again.") from None
    kinds = np.array([row["kind"] for row in rows], dtype=object)
    return with_log(replace(answers, kinds=kinds), contents, of)
