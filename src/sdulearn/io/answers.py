"""Files of answers: who is compared with whom, and whether they are the same.

A pair file has a row per answer, ``id_a,id_b,label[,weight][,annotator]``, as CSV, TSV, JSON lines
or Parquet, gzipped or not. Names and spellings in common use are understood, and what was
understood is told: no guess is silent.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import InputError
from sdulearn.extras import require
from sdulearn.pairs import DISSIMILAR, SIMILAR, UNSURE

MEANINGS = {"similar": SIMILAR, "dissimilar": DISSIMILAR, "unsure": UNSURE}
NAMES = {answer: name for name, answer in MEANINGS.items()}
ROLES = ("id_a", "id_b", "label", "weight", "annotator")

_FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
    ".pq": "parquet", ".svm": "svm", ".svmlight": "svm", ".libsvm": "svm",
}  # fmt: skip
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
_LINES_SHOWN = 5


@dataclass(frozen=True)
class BadRow:
    """A row that could not be understood."""

    line: int
    reason: str


@dataclass(frozen=True)
class PairFile:
    """The answers of a file, and what was understood of it.

    Attributes
    ----------
    path : str
        The file.
    ids : object array of shape (n_answers, 2)
        The two ids of each answer, as text.
    answers : int array of shape (n_answers,)
        +1 similar, -1 dissimilar, 0 unsure.
    weights : array of shape (n_answers,)
        Weights; 1 where the file has none.
    annotators : object array of shape (n_answers,) or None
        Who answered, as text; None where the file does not say.
    lines : int array of shape (n_answers,)
        Line of the file (row, counted from 1, for Parquet).
    columns : dict
        Which column was read as ``id_a``, ``id_b``, ``label``, ``weight``, ``annotator``.
    spellings : dict
        How often each spelling of a label occurs, and what it was taken for: ``{"1": (1, 58), "0":
        (-1, 42)}``.
    bad_rows : tuple of BadRow
        Rows left out.
    """

    path: str
    ids: NDArray[np.object_]
    answers: NDArray[np.int64]
    weights: NDArray[np.float64]
    annotators: NDArray[np.object_] | None
    lines: NDArray[np.int64]
    columns: dict[str, str]
    spellings: dict[str, tuple[int, int]]
    bad_rows: tuple[BadRow, ...]

    @property
    def n_similar(self) -> int:
        """Number of answers "similar"."""
        return int(np.sum(self.answers == SIMILAR))

    @property
    def n_dissimilar(self) -> int:
        """Number of answers "dissimilar"."""
        return int(np.sum(self.answers == DISSIMILAR))

    @property
    def n_unsure(self) -> int:
        """Number of answers "unsure"."""
        return int(np.sum(self.answers == UNSURE))

    def describe(self) -> list[str]:
        """What was read, in a few lines a person can check."""
        roles = ", ".join(f"{role} = {name!r}" for role, name in self.columns.items())
        coding = ", ".join(
            f"{text!r} = {NAMES[answer]} ({count:,})" for text, (answer, count) in self.spellings.items()
        )
        counts = f"{self.n_similar:,} similar, {self.n_dissimilar:,} dissimilar, {self.n_unsure:,} unsure"
        lines = [f"{self.path}: {counts}", f"columns: {roles}", f"labels: {coding or 'none'}"]
        return [*lines, *([f"unreadable rows: {self.bad_summary()}"] if self.bad_rows else [])]

    def bad_summary(self) -> str:
        """How many rows are unreadable, and the first few with line and reason."""
        shown = "; ".join(f"line {row.line}: {row.reason}" for row in self.bad_rows[:_LINES_SHOWN])
        rest = len(self.bad_rows) - _LINES_SHOWN
        return f"{len(self.bad_rows):,} ({shown}{f'; and {rest:,} more' if rest > 0 else ''})"


def read_pair_file(
    path: str | PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> PairFile:
    """Read a file of answers.

    Parameters
    ----------
    path : str or path-like
        CSV, TSV, JSON lines or Parquet (needs the extra ``files``), by the file's ending; gzipped
        or not.
    columns : mapping, optional
        Names of the columns where they are unusual, for example ``{"id_a": "from", "id_b": "to",
        "label": "verdict"}``.
    labels : mapping, optional
        What a spelling means where it is unusual, for example ``{"yes": "similar", "no":
        "dissimilar"}``.

    Returns
    -------
    PairFile
        Answers, counts, what was understood, and the rows that could not be read with their line
        numbers.

    Raises
    ------
    ValueError
        No such columns, or labels 1, 0 and -1 together, whose 0 may mean either of two things.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> from sdulearn.io.answers import read_pair_file
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "pairs.csv")
    ...     _ = file.write_text("left,right,label\\nann,bob,1\\nann,cid,0\\nbob,dan,perhaps\\n")
    ...     pairs = read_pair_file(file)
    >>> pairs.answers
    array([ 1, -1])
    >>> pairs.columns["id_a"], pairs.spellings["0"]
    ('left', (-1, 1))
    >>> pairs.bad_rows[0].line
    4
    """
    header, rows = _read_rows(Path(path))
    roles = _find_columns(path, header, columns or {})
    places = {role: header.index(name) for role, name in roles.items()}
    parsed, bad = [], []
    for line, cells in rows:
        row = _parse(cells, places)
        if isinstance(row, str):
            bad.append(BadRow(line, row))
        else:
            parsed.append((line, *row))
    meaning = _meanings(path, Counter(row[3] for row in parsed), labels or {})
    known = [row for row in parsed if row[3] in meaning]
    bad += [BadRow(row[0], f"label {row[3]!r} is not one that is known") for row in parsed if row[3] not in meaning]
    if not known and bad:
        first = min(bad, key=lambda row: row.line)
        raise InputError(f"{path}: no row can be read. Line {first.line}: {first.reason}. {_LABEL_HELP}")
    return _pair_file(str(path), known, meaning, roles, bad)


_LABEL_HELP = (
    "Labels are similar, dissimilar and unsure (also 1/0, 1/-1, true/false, same/different, must-link/cannot-link, "
    "match/distinct, accept/reject/ignore); say what others mean, for example --answers yes=similar,no=dissimilar."
)
_Parsed = tuple[int, str, str, str, float, str]


def _pair_file(
    path: str, rows: list[_Parsed], meaning: Mapping[str, int], roles: dict[str, str], bad: list[BadRow]
) -> PairFile:
    counts = Counter(row[3] for row in rows)
    ids = np.empty((len(rows), 2), dtype=object)
    ids[:, 0], ids[:, 1] = [row[1] for row in rows], [row[2] for row in rows]
    return PairFile(
        path=path,
        ids=ids,
        answers=np.array([meaning[row[3]] for row in rows], dtype=np.int64),
        weights=np.array([row[4] for row in rows], dtype=np.float64),
        annotators=np.array([row[5] for row in rows], dtype=object) if "annotator" in roles else None,
        lines=np.array([row[0] for row in rows], dtype=np.int64),
        columns=roles,
        spellings={text: (meaning[text], count) for text, count in counts.most_common()},
        bad_rows=tuple(sorted(bad, key=lambda row: row.line)),
    )


def _parse(cells: Sequence[Any] | str, places: Mapping[str, int]) -> tuple[str, str, str, float, str] | str:
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


def as_text(value: Any) -> str:
    """An id or a label as text: 7 and 7.0 are "7", True is "true", None is empty."""
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


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


def _meanings(path: Any, counts: Counter[str], labels: Mapping[str, str]) -> dict[str, int]:
    """What each spelling in the file means; numbers are read as 1/0 or 1/-1, and never both."""
    for text, name in labels.items():
        if name not in MEANINGS:
            raise InputError(f"A label means similar, dissimilar or unsure; {text!r} was said to mean {name!r}.")
    given = {_label_text(text): MEANINGS[name] for text, name in labels.items()}
    numbers = {"1": SIMILAR, "0": DISSIMILAR, "-1": DISSIMILAR}
    if {"0", "-1"} <= counts.keys() - given.keys():
        raise InputError(
            f"{path} has the labels 0 ({counts['0']:,} times) and -1 ({counts['-1']:,} times): 0 may mean unsure or "
            "dissimilar. Say which, for example --answers 0=unsure."
        )
    known = {**_SPELLINGS, **numbers, **given}
    return {text: known[text] for text in counts if text in known}


def _find_columns(path: Any, header: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """The column of each role: the one given, else the first of the usual names."""
    for role, name in given.items():
        if role not in ROLES or name not in header:
            raise InputError(f"{path} has no column {name!r} for {role}; its columns are {', '.join(header)}.")
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


def _no_columns(path: Any, header: Sequence[str], missing: list[str]) -> str:
    if len(header) >= 3 and _label_text(header[2]) in {*_SPELLINGS, "1", "0", "-1"} - {"same", "similar", "match"}:
        return f"{path} seems to begin with an answer. Give it a first line: id_a,id_b,label"
    return (
        f"{path}: which column is {' and '.join(missing)}? Its columns are {', '.join(map(str, header))}. Name them "
        "id_a, id_b and label, or say which they are: --pair-columns FIRST,SECOND,LABEL."
    )


def file_format(path: str | PathLike[str], allowed: Sequence[str]) -> str:
    """csv, tsv, jsonl, parquet or svm, by the ending of a file's name (before ``.gz``)."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    ending = next((e for e in reversed(endings) if e != ".gz"), "")
    found = _FORMATS.get(ending, "")
    if found not in allowed:
        raise InputError(
            f"{path}: the name must end in {', '.join('.' + name for name in allowed)} (and .gz, if zipped)."
        )
    return found


def open_bytes(path: str | PathLike[str]) -> IO[bytes]:
    """A file's bytes, unzipped where it is gzipped, whatever its name."""
    with Path(path).open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else Path(path).open("rb")  # type: ignore[return-value]


def delimiter(first_line: str, name: str) -> str:
    """The delimiter of a CSV or TSV file; spreadsheets write semicolons where the comma is a decimal mark."""
    if name == "tsv":
        return "\t"
    return ";" if ";" in first_line and "," not in first_line else ","


def _read_rows(path: Path) -> tuple[list[str], Iterable[tuple[int, Sequence[Any] | str]]]:
    """Column names, and the numbered rows; a row that cannot be split is the reason why."""
    name = file_format(path, ("csv", "tsv", "jsonl", "parquet"))
    if name == "parquet":
        return _read_parquet(path)
    try:
        with open_bytes(path) as file:
            lines = list(io.StringIO(file.read().decode("utf-8-sig"), newline=""))
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is not text in UTF-8, or is cut off ({error}). Save it as UTF-8.") from None
    if not any(line.strip() for line in lines):
        raise InputError(f"{path} is empty. It needs the columns id_a, id_b, label and a row per answer.")
    return _read_json(lines) if name == "jsonl" else _read_delimited(lines, name)


def _read_parquet(path: Path) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    pa = require("pyarrow", "files")
    try:
        table = require("pyarrow.parquet", "files").read_table(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from None
    return table.column_names, enumerate(zip(*(column.to_pylist() for column in table.columns), strict=True), 1)


def _read_delimited(lines: list[str], name: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    rows = _split(lines, delimiter(lines[0], name))
    _, header = next(rows)
    return [cell.strip() for cell in header], rows


def _split(lines: list[str], mark: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=mark)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(
            f"Line {reader.line_num} cannot be split into cells ({error}). Is a quote left open?"
        ) from None


def _read_json(lines: list[str]) -> tuple[list[str], Iterable[tuple[int, Sequence[Any] | str]]]:
    """Keys in the order of their first appearance stand for columns; a key may be missing from a row."""
    records: list[tuple[int, Any]] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            records.append((number, _json_record(line)))
    header = list(dict.fromkeys(key for _, record in records if isinstance(record, dict) for key in record))
    rows = [(n, [r.get(key) for key in header] if isinstance(r, dict) else r) for n, r in records]
    return header, rows


def _json_record(line: str) -> dict[str, Any] | str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON"
    return record if isinstance(record, dict) else "not a JSON object"
