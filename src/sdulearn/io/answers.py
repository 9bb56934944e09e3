"""Answers from files and frames: who is compared with whom, and whether they are the same.

A row per answer, ``id_a,id_b,label[,weight][,annotator]``, as CSV, TSV, JSON lines, Parquet or Excel,
gzipped or not, or as a frame. Names and spellings in common use are understood, and what was understood is
part of the result: no guess is silent.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from sdulearn.answers.records import Answers, BadRow
from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.io.excel import read_sheet
from sdulearn.io.files import Location, as_text, cannot_open, delimiter, file_format, is_location, read_text
from sdulearn.pairs import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.types import Frame

Cells = Sequence[object]
NumberedRows = Iterable[tuple[int, Cells | str]]

MEANINGS = {"similar": SIMILAR, "dissimilar": DISSIMILAR, "unsure": UNSURE}
ROLES = ("id_a", "id_b", "label", "weight", "annotator")

_WORDS = {
    SIMILAR: "similar same true must-link mustlink ml match accept",
    DISSIMILAR: "dissimilar different false cannot-link cannotlink cl distinct reject",
    UNSURE: "unsure ignore",
}
_SPELLINGS = {word: answer for answer, words in _WORDS.items() for word in words.split()}
_ID_COLUMNS = (
    ("id_a", "id_b"), ("id1", "id2"), ("id_1", "id_2"), ("a", "b"), ("left", "right"), ("left_id", "right_id"),
    ("id_left", "id_right"), ("unique_id_l", "unique_id_r"), ("id_l", "id_r"), ("ltable_id", "rtable_id"),
    ("first", "second"), ("item1", "item2"), ("i", "j"),
)  # fmt: skip
_OTHER_COLUMNS = {
    "label": ("label", "answer", "same", "similar", "match", "is_match", "is_same", "is_duplicate", "constraint"),
    "weight": ("weight", "sample_weight"),
    "annotator": ("annotator", "annotator_id", "worker", "worker_id", "user"),
}


def read_answers(
    source: Location | Frame | Answers,
    *,
    columns: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> Answers:
    """Read answers from a file or a frame.

    Parameters
    ----------
    source : str, path-like or frame
        CSV, TSV, JSON lines, Parquet (extra ``files``) or Excel (extra ``excel``), by the file's ending;
        gzipped or not. Or a pandas, polars or pyarrow frame. Answers that were read before are given back.
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
        No such columns, or answers 1, 0 and -1 together, whose 0 may mean either of two things.

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
    named = is_location(source)
    name = str(source) if named else "the answers"
    header, rows = _read_rows(Path(source)) if named else frame_rows(source)
    roles = _find_columns(name, header, columns or {})
    places = {role: header.index(column) for role, column in roles.items()}
    parsed: list[_Parsed] = []
    bad: list[BadRow] = []
    for line, cells in rows:
        row = _parse(cells, places)
        if isinstance(row, str):
            bad.append(BadRow(line, row))
        else:
            parsed.append((line, *row))
    meaning = _meanings(name, Counter(row[3] for row in parsed), words or {})
    known = [row for row in parsed if row[3] in meaning]
    strange = [row for row in parsed if row[3] not in meaning]
    bad += [BadRow(row[0], f"label {row[3]!r} is not one that is known") for row in strange]
    if not known and bad:
        first = min(bad, key=lambda row: row.line)
        raise InputError(f"{name}: no row can be read. Line {first.line}: {first.reason}. {_LABEL_HELP}")
    return _answers(name, known, meaning, roles, bad)


_LABEL_HELP = (
    "Labels are similar, dissimilar and unsure (also 1/0, 1/-1, true/false, same/different, must-link/cannot-link, "
    "match/distinct, accept/reject/ignore); say what others mean: `words={'yes': 'similar', 'no': 'dissimilar'}`."
)
_Parsed = tuple[int, str, str, str, float, str]


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
        annotators=np.array([row[5] for row in rows], dtype=object) if "annotator" in roles else None,
        lines=np.array([row[0] for row in rows], dtype=np.int64),
        columns=roles,
        words={text: (meaning[text], count) for text, count in counts.most_common()},
        bad_rows=tuple(sorted(bad, key=lambda row: row.line)),
    )


def _parse(cells: Cells | str, places: Mapping[str, int]) -> tuple[str, str, str, float, str] | str:
    """Ids, label, weight and annotator of one row, or the reason why there are none."""
    if isinstance(cells, str):
        return cells
    if len(cells) <= max(places.values()):
        return f"{len(cells)} cells where {max(places.values()) + 1} are needed"
    text = {role: as_text(cells[place]) for role, place in places.items()}
    for role in ("id_a", "id_b", "label"):
        if not text[role]:
            return f"{role} is empty"
    weight = _number(text.get("weight") or "1")
    if weight is None or not (math.isfinite(weight) and weight >= 0):
        return f"weight {text['weight']!r} is not a number of zero or more"
    return text["id_a"], text["id_b"], _label_text(text["label"]), weight, text.get("annotator", "")


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


def _meanings(path: str, counts: Counter[str], words: Mapping[str, str]) -> dict[str, int]:
    """What each spelling in the file means; numbers are read as 1/0 or 1/-1, and never both."""
    for text, name in words.items():
        if name not in MEANINGS:
            raise InputError(f"A label means similar, dissimilar or unsure; {text!r} was said to mean {name!r}.")
    given = {_label_text(text): MEANINGS[name] for text, name in words.items()}
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


def _find_columns(path: str, header: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """The column of each role: the one given, else the first of the usual names."""
    for role, name in given.items():
        if role not in ROLES or name not in header:
            raise InputError(f"{path} has no column {name!r} for {role}; its columns are {', '.join(header)}.")
    if repeated := [name for name, count in Counter(header).items() if count > 1 and name]:
        raise InputError(f"{path} has two columns named {repeated[0]!r}. Rename or remove one of them.")
    by_name = {re.sub(r"[\s.-]+", "_", name.strip().lower()): name for name in reversed(header)}
    found = dict(given)
    for a, b in _ID_COLUMNS:
        if a in by_name and b in by_name and not {"id_a", "id_b"} & given.keys():
            found |= {"id_a": by_name[a], "id_b": by_name[b]}
            break
    for role, names in _OTHER_COLUMNS.items():
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
        f"{path}: which column is {' and '.join(missing)}? Its columns are {', '.join(map(str, header))}. Name them "
        "id_a, id_b and label, or say which they are with `columns`."
    )


def _read_rows(path: Path) -> tuple[list[str], NumberedRows]:
    """Column names, and the numbered rows; a row that cannot be split is the reason why."""
    name = file_format(path, ("csv", "tsv", "jsonl", "parquet", "xlsx"))
    if name == "parquet":
        return _read_parquet(path)
    if name == "xlsx":
        header, rows = read_sheet(path)
        return header, enumerate(rows, 2)
    lines = list(io.StringIO(read_text(path), newline=""))
    if not any(line.strip() for line in lines):
        raise InputError(f"{path} is empty. It needs the columns id_a, id_b, label and a row per answer.")
    return _read_json(lines) if name == "jsonl" else _read_delimited(path, lines, name)


def frame_rows(frame: Frame) -> tuple[list[str], NumberedRows]:
    """Column names and rows of a frame, counted from 1."""
    if not (hasattr(frame, "columns") and hasattr(frame, "__getitem__")):
        raise InputError(
            f"A path or a pandas, polars or pyarrow frame is needed, with columns such as id_a, id_b and label; got "
            f"{type(frame).__name__}."
        )
    names = list(getattr(frame, "column_names", None) or frame.columns)
    columns = [frame[name] for name in names]
    lists = [column.to_pylist() if hasattr(column, "to_pylist") else column.to_list() for column in columns]
    return [str(name) for name in names], enumerate(zip(*lists, strict=True), 1)


def _read_parquet(path: Path) -> tuple[list[str], NumberedRows]:
    pa = require("pyarrow", "files")
    try:
        table = require("pyarrow.parquet", "files").read_table(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from None
    except OSError as error:
        raise cannot_open(path, error) from None
    return frame_rows(table)


def _read_delimited(path: Path, lines: list[str], name: str) -> tuple[list[str], NumberedRows]:
    rows = _split(path, lines, delimiter(lines[0], name))
    _, header = next(rows, (0, []))
    if not header:
        raise InputError(f"{path} holds nothing but delimiters. It needs the columns id_a, id_b, label.")
    return [cell.strip() for cell in header], rows


def _split(path: Path, lines: list[str], mark: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=mark)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(
            f"{path}: line {reader.line_num} cannot be split into cells ({error}). Is a quote left open?"
        ) from None


def _read_json(lines: list[str]) -> tuple[list[str], NumberedRows]:
    """Keys in the order of their first appearance stand for columns; a key may be missing from a row."""
    records: list[tuple[int, dict[str, object] | str]] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            records.append((number, _json_record(line)))
    header = list(dict.fromkeys(key for _, record in records if isinstance(record, dict) for key in record))
    rows = [(n, [r.get(key) for key in header] if isinstance(r, dict) else r) for n, r in records]
    return header, rows


def _json_record(line: str) -> dict[str, object] | str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON"
    return record if isinstance(record, dict) else "not a JSON object"
