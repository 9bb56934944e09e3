"""Answers from files and frames: who is compared with whom, and whether they are the same.

A row per answer, ``id_a,id_b,label[,weight][,annotator][,time]``, as CSV, TSV, JSON, JSON lines, Parquet or
Excel, gzipped or not, or as a frame; the log of ``sdulearn ask``; or what other tools write
(:mod:`sdulearn.io.importers`). Names and spellings in common use are understood, and what was understood is
part of the result: no guess is silent.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sdulearn.answers.records import Answers, BadRow
from sdulearn.errors import InputError, listed, quoted, shortened
from sdulearn.io.answer_log import is_log_record, log_answers, read_log
from sdulearn.io.files import Location, as_text, is_location
from sdulearn.io.importers.formats import recognise
from sdulearn.io.importers.sheet import Sheet, by_plain_name, pair_columns
from sdulearn.io.rows import Cells, Content, read_content
from sdulearn.pairs import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.types import Frame

MEANINGS = {"similar": SIMILAR, "dissimilar": DISSIMILAR, "unsure": UNSURE}
ROLES = ("id_a", "id_b", "label", "weight", "annotator", "time")

_WORDS = {
    SIMILAR: "similar same true must-link mustlink ml match accept",
    DISSIMILAR: "dissimilar different false cannot-link cannotlink cl distinct reject not-similar not-same non-match",
    UNSURE: "unsure ignore not-sure uncertain",
}
_SPELLINGS = {word: answer for answer, words in _WORDS.items() for word in words.split()}
_OTHER_COLUMNS = {
    "label": ("label", "answer", "same", "similar", "match", "is_match", "is_same", "is_duplicate", "constraint"),
    "weight": ("weight", "sample_weight"),
    "annotator": ("annotator", "annotator_id", "worker", "worker_id", "performer", "user", "user_id"),
    "time": ("time", "timestamp", "created_at"),
}


def read_answers(
    source: Location | Frame | Answers,
    *,
    columns: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> Answers:
    """Read answers from a file or a frame, whichever tool wrote it.

    Parameters
    ----------
    source : str, path-like or frame
        CSV, TSV, JSON, JSON lines, Parquet (extra ``files``) or Excel (extra ``excel``), by the file's
        ending; gzipped or not. Or a pandas, polars or pyarrow frame. What it holds is recognised by its content:
        a row per answer, the log of ``sdulearn ask``, or a file of Label Studio, Prodigy, Argilla,
        interactive-clustering or a crowd. Answers that were read before are given back.
    columns : mapping, optional
        Names of the columns where they are unusual, for example
        ``{"id_a": "from", "id_b": "to", "label": "verdict"}``.
    words : mapping, optional
        What a word means where it is unusual, for example ``{"yes": "similar", "no": "dissimilar"}``.

    Returns
    -------
    Answers
        The answers, what was understood, and the rows that could not be read with their line numbers.

    Raises
    ------
    InputError
        No such columns; answers 1, 0 and -1 together, whose 0 may mean either of two things; a file that could
        be of two tools, or one of a tool that links records of the same entity.

    See Also
    --------
    check_answers : What is wrong with them.
    sdulearn.fit_table : Learn from them.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdulearn.answers import read_answers
    >>> frame = pd.DataFrame({"left": ["ann", "ann", "bob"], "right": ["bob", "cid", "dan"], "same": [1, 0, "?"]})
    >>> answers = read_answers(frame)
    >>> answers.answers
    array([ 1, -1])
    >>> answers.columns["id_a"], answers.words["0"]
    ('left', (-1, 1))
    >>> answers.bad_rows[0].line
    3
    """
    if isinstance(source, Answers):
        return source
    content = read_content(source, "the answers")
    if _is_log(content):
        return _read_log(source, content.format)
    columns = columns or {}
    return _read_sheet(content.name, recognise(content, columns), columns, words or {})


def _is_log(content: Content) -> bool:
    return "event" in content.header and any(
        isinstance(record, dict) and is_log_record(record) for _, record in content.records()
    )


def _read_log(source: Location | Frame, file_format: str) -> Answers:
    """The answers that stand when all is undone and changed that was."""
    if file_format not in ("json", "jsonl") or not is_location(source):
        raise InputError(
            "These are lines of a log, of which some take others back. Give the log itself, a .jsonl file."
        )
    contents = read_log(source)
    if contents.bad_rows and not contents.answers:
        first = contents.bad_rows[0]
        raise InputError(f"{source}: no line of this log can be read. Line {first.line}: {first.reason}.")
    return log_answers(str(source), contents)


def _read_sheet(name: str, sheet: Sheet, columns: Mapping[str, str], words: Mapping[str, str]) -> Answers:
    if sheet.n_unanswered and not sheet.rows:
        raise InputError(f"{name}: none of its {sheet.n_unanswered:,} questions is answered yet.")
    if sheet.rows and all(isinstance(cells, str) for _, cells in sheet.rows):
        raise _nothing_readable(name, [BadRow(line, str(reason)) for line, reason in sheet.rows])
    decided = {role: column for role, column in sheet.columns.items() if column in sheet.header}
    roles = _find_columns(name, sheet.header, {**decided, **columns}, {} if sheet.only_ids else _OTHER_COLUMNS)
    places = {role: sheet.header.index(column) for role, column in roles.items()}
    parsed: list[_Parsed] = []
    bad: list[BadRow] = []
    for line, cells in sheet.rows:
        row = _parse(cells, places)
        if isinstance(row, str):
            bad.append(BadRow(line, row))
        else:
            parsed.append((line, *row))
    meaning = _meanings(name, Counter(row[3] for row in parsed), words, sheet.words)
    known = [row for row in parsed if row[3] in meaning]
    strange = [row for row in parsed if row[3] not in meaning]
    bad += [BadRow(row[0], f"label {quoted(row[3])} is not one that is known") for row in strange]
    if not known and bad:
        raise _nothing_readable(name, bad)
    answers = _answers(name, known, meaning, roles, bad)
    return replace(answers, format=sheet.format, n_unanswered=sheet.n_unanswered)


def _nothing_readable(name: str, bad: Sequence[BadRow]) -> InputError:
    first = min(bad, key=lambda row: row.line)
    advice = f" {_LABEL_HELP}" if first.reason.startswith("label") else ""
    return InputError(f"{name}: no row can be read. Line {first.line}: {first.reason}.{advice}")


_LABEL_HELP = (
    "Labels are similar, dissimilar and unsure (also 1/0, 1/-1, true/false, same/different, must-link/cannot-link, "
    "match/distinct, accept/reject/ignore); say what others mean: `words={'yes': 'similar', 'no': 'dissimilar'}`."
)
_Parsed = tuple[int, str, str, str, float, str, str]


def _answers(
    name: str, rows: list[_Parsed], meaning: Mapping[str, int], roles: dict[str, str], bad: list[BadRow]
) -> Answers:
    counts = Counter(row[3] for row in rows)
    ids = np.empty((len(rows), 2), dtype=object)
    ids[:, 0] = [row[1] for row in rows]
    ids[:, 1] = [row[2] for row in rows]
    return Answers(
        name=name,
        ids=ids,
        answers=np.array([meaning[row[3]] for row in rows], dtype=np.int64),
        weights=np.array([row[4] for row in rows], dtype=np.float64),
        annotators=_texts([row[5] for row in rows]) if "annotator" in roles else None,
        lines=np.array([row[0] for row in rows], dtype=np.int64),
        columns=roles,
        words={text: (meaning[text], count) for text, count in counts.most_common()},
        bad_rows=tuple(sorted(bad, key=lambda row: row.line)),
        times=_texts([row[6] for row in rows]) if "time" in roles else None,
    )


def _texts(values: Sequence[str]) -> NDArray[np.object_]:
    return np.array(values, dtype=object)


def _parse(cells: Cells | str, places: Mapping[str, int]) -> tuple[str, str, str, float, str, str] | str:
    """Ids, label, weight, annotator and time of one row, or the reason why there are none."""
    if isinstance(cells, str):
        return cells
    if len(cells) <= max(places.values()):
        return f"{len(cells)} cells where {max(places.values()) + 1} are needed"
    if nested := [role for role, place in places.items() if isinstance(cells[place], dict | list)]:
        return f"{nested[0]} is not a single value"
    text = {role: as_text(cells[place]) for role, place in places.items()}
    for role in ("id_a", "id_b", "label"):
        if not text[role]:
            return f"{role} is empty"
    weight = _number(text.get("weight") or "1")
    if weight is None or not (math.isfinite(weight) and weight >= 0):
        return f"weight {quoted(text['weight'])} is not a number of zero or more"
    return (
        text["id_a"],
        text["id_b"],
        _label_text(text["label"]),
        weight,
        text.get("annotator", ""),
        text.get("time", ""),
    )


def _label_text(text: str) -> str:
    """A label in one spelling: lower case, '-' for blank and underscore, 1.0 as 1."""
    number = _number(text)
    if number is not None and number.is_integer():
        return str(int(number))
    return re.sub(r"[\s_]+", "-", text.lower())


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _meanings(path: str, counts: Counter[str], words: Mapping[str, str], decided: Mapping[str, int]) -> dict[str, int]:
    """What each spelling in the file means; numbers are read as 1/0 or 1/-1, and never both.

    ``decided`` are the words that a tool's format gives a meaning.
    """
    for text, name in words.items():
        if name not in MEANINGS:
            raise InputError(f"A label means similar, dissimilar or unsure; {text!r} was said to mean {name!r}.")
    given = {**decided, **{_label_text(text): MEANINGS[name] for text, name in words.items()}}
    numbers = {"1": SIMILAR, "0": DISSIMILAR, "-1": DISSIMILAR}
    if {"0", "-1"} <= counts.keys() - given.keys():
        raise InputError(
            f"{path} has the labels 0 ({counts['0']:,} times) and -1 ({counts['-1']:,} times): 0 may mean unsure or "
            "dissimilar. Say which: `words={'0': 'unsure'}`."
        )
    if "2" in counts.keys() - given.keys():
        raise InputError(
            f"{path} has the labels 1 ({counts['1']:,} times) and 2 ({counts['2']:,} times). Say what they mean, for "
            "example: `words={'1': 'similar', '2': 'dissimilar'}`."
        )
    known = {**_SPELLINGS, **numbers, **given}
    return {text: known[text] for text in counts if text in known}


def _find_columns(
    path: str, header: Sequence[str], given: Mapping[str, str], usual_names: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The column of each role: the one given, else the first of the usual names."""
    for role, name in given.items():
        if role not in ROLES or name not in header:
            raise InputError(
                f"{path} has no column {quoted(name)} for {role}; its columns are {listed(map(shortened, header))}."
            )
    if repeated := [name for name, count in Counter(header).items() if count > 1 and name]:
        raise InputError(f"{path} has two columns named {quoted(repeated[0])}. Rename or remove one of them.")
    by_name = by_plain_name(header)
    found = dict(given)
    ends = pair_columns(header)
    if ends is not None and not {"id_a", "id_b"} & given.keys():
        found |= {"id_a": ends[0], "id_b": ends[1]}
    for role, names in usual_names.items():
        usual = [by_name[name] for name in names if name in by_name]
        if usual and role not in found:
            found[role] = usual[0]
    if missing := [role for role in ("id_a", "id_b", "label") if role not in found]:
        raise InputError(_no_columns(path, header, missing))
    return {role: found[role] for role in ROLES if role in found}


def _no_columns(path: str, header: Sequence[str], missing: list[str]) -> str:
    if len(header) >= 3 and _label_text(header[2]) in {*_SPELLINGS, "1", "0", "-1"} - {"same", "similar", "match"}:
        return f"{path} seems to begin with an answer. Give it a first line: id_a,id_b,label"
    return (
        f"{path}: which column is {' and '.join(missing)}? Its columns are {listed(map(shortened, header))}. Name them "
        "id_a, id_b and label, or say which they are with `columns`."
    )
