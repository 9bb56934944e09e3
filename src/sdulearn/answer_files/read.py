"""Read answers from files and frames: which two rows were compared, and whether they are the same.

A file has one row per answer, ``id_a,id_b,label`` and, if any, ``weight``, ``annotator``, ``time``,
``seconds`` and ``confidence``; or one row per question that shows more items (:mod:`sdulearn.answer_files.forms`);
or it is the log of ``sdulearn ask``; or another tool wrote it (:mod:`sdulearn.answer_files.tools`). Columns are
recognised by their content and their names, and the result says how they were read: no guess is silent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdulearn.answer_files.columns import CHOICE_ROLES, GROUP_ROLES, FindIds, cells_of, find_columns, may_be_people
from sdulearn.answer_files.download import COLUMNS, NEARER, NEEDED, read_cells, with_log_columns
from sdulearn.answer_files.forms import Shown, read_choices, read_groups
from sdulearn.answer_files.log import EVENTS, log_answers, read_log
from sdulearn.answer_files.parameters import as_columns, as_words
from sdulearn.answer_files.rows import Record, Sheet, read_sheet
from sdulearn.answer_files.tools import FORMATS, recognise
from sdulearn.answer_files.words import (
    certainties,
    label_text,
    meanings,
    number,
    person_thresholds,
    seconds,
    split_per_person,
)
from sdulearn.answers.records import Answers, BadRow
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError, quoted
from sdulearn.io.files import Location, as_text, is_location
from sdulearn.types import Frame

_SIDES = {SIMILAR: "above 0.5", DISSIMILAR: "below 0.5", UNSURE: "0.5"}
_GROUP_WORDS = {SIMILAR: "in one group", DISSIMILAR: "in two groups", UNSURE: "no groups"}


def read_answers(
    source: Location | Frame | Answers,
    *,
    columns: Mapping[str, str] | str | None = None,
    words: Mapping[str, str] | str | None = None,
    table_ids: Collection[str] | FindIds | None = None,
) -> Answers:
    """Read answers from a file or a frame, whichever tool wrote it.

    Parameters
    ----------
    source : str, path-like or frame
        CSV, TSV, JSON, JSON lines, Parquet (extra ``files``) or Excel (extra ``excel``), by the file's
        ending; gzipped or not. Or a pandas, polars or pyarrow frame. Its content determines what it is:
        one row per answer, one row per question with the groups that its items were put into, forced
        choices, the log of ``sdulearn ask``, or a file of Label Studio, Prodigy, Argilla,
        interactive-clustering or a crowd. Answers that were read before are returned as they are.
    columns : mapping or str, optional
        Names of the columns if they are unusual, for example
        ``{"id_a": "from", "id_b": "to", "label": "verdict"}``, or as text ``"from,to,verdict"``;
        ``{"items": "cards", "groups": "piles"}`` or ``"x=new,first=left,second=right,chosen=nearer"``;
        "sheet" is the name of a workbook's sheet, or its number, by default the first
        that is not hidden.
    words : mapping or str, optional
        Meaning of unusual words, for example ``{"yes": "similar", "no": "dissimilar"}``,
        and steps of a scale, ``{">=4": "similar", "3": "unsure", "<=2": "dissimilar"}``; a number is a
        probability of "similar". Also as text, ``"yes=similar,no=dissimilar"``. With
        ``"0=unsure,1-4=per person"``, or "per person" for all steps, everybody has a threshold of their
        own: the one above which the share of their answers is closest to the share of all answers above
        the middle of the scale.
    table_ids : collection of str or callable, optional
        Ids of the table that the answers are about: columns of these are the ends of the pairs, whatever
        they are called. A callable gets texts and returns, for each column of the table, those that are in it.

    Returns
    -------
    Answers
        The answers, how they were read, and the rows that could not be read with their line numbers.

    Raises
    ------
    InputError
        Columns are missing; labels are 1, 0 and -1 together, so that 0 may mean unsure or dissimilar, or steps
        of a scale; the file may be of two tools, or is of a tool that links records of the same entity.

    See Also
    --------
    check_answers : Find contradictions and repeats.
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
    columns, words = as_columns(columns), as_words(words)
    sheet = read_sheet(source, "the answers", columns.pop("sheet", None))
    if {"event", "session"} <= set(sheet.header):
        records = [one for _, one in sheet.records if isinstance(one, dict)]
        if any(one.get("event") in EVENTS and "session" in one for one in records):
            return _read_log(source, sheet.format)
    of_page = set(sheet.header) >= NEEDED
    if isinstance(table_ids, Collection):
        table_ids = partial(_known_ids, frozenset(table_ids))
    sheet = sheet if of_page or columns.keys() & {*CHOICE_ROLES, *GROUP_ROLES} else recognise(sheet, columns)
    return _read_answers(sheet, columns, words, None if of_page else table_ids)


def _known_ids(ids: Collection[str], texts: Collection[str]) -> list[set[str]]:
    return [{text for text in texts if text in ids}]


def _read_log(source: Location | Frame, file_format: str) -> Answers:
    """Read a log, in which later lines undo or change earlier ones."""
    if file_format not in ("json", "jsonl") or not is_location(source):
        raise InputError(
            "These are lines of a log, of which some take others back. Give the log itself, a .jsonl file."
        )
    contents = read_log(source)
    if contents.bad_rows and not contents.answers:
        first = contents.bad_rows[0]
        raise InputError(f"{source}: no line of this log can be read. Line {first.line}: {first.reason}.")
    return log_answers(str(source), contents)


def _read_answers(
    sheet: Sheet, columns: Mapping[str, str], words: Mapping[str, str], find_ids: FindIds | None
) -> Answers:
    name = sheet.name
    if sheet.n_unanswered and not sheet.records:
        raise InputError(f"{name}: none of its {sheet.n_unanswered:,} questions is answered yet.")
    if sheet.records and not sheet.header:
        raise _nothing_readable(name, [BadRow(line, str(reason)) for line, reason in sheet.records])
    given = {**{role: column for role, column in sheet.columns.items() if column in sheet.header}, **columns}
    roles = find_columns(sheet, given, find_ids)
    of_page = set(sheet.header) >= NEEDED
    read_as = {**roles, **{column: column for column in COLUMNS if of_page and column in sheet.header}}
    n_cells = 1 + max(map(sheet.header.index, read_as.values()))
    bad: list[BadRow] = []
    rows: list[dict[str, Any]] = []
    for line, record in sheet.records:
        try:
            rows.append({**_parse(record, read_as, n_cells, of_page), "line": line})
        except (TypeError, ValueError) as reason:
            bad.append(BadRow(line, str(reason)))
    sure = certainties({row.get("confidence", "") for row in rows})
    unknown = "is not a probability from 0.5 to 1 that the answer is right"
    for row in rows:
        if (cell := row.get("confidence", "")) not in sure:
            bad.append(BadRow(row["line"], f"confidence {quoted(cell)} {unknown}"))
    rows = [{**row, "confidence": sure[cell]} for row in rows if (cell := row.get("confidence", "")) in sure]
    # Other columns in files of tools are data that people were shown.
    unused = [] if of_page or sheet.format in FORMATS else [one for one in sheet.header if one not in read_as.values()]
    ends = [roles[role] for role in ("id_a", "id_b") if role in roles]
    unused_columns = {one: may_be_people(sheet, one, ends) for one in unused if cells_of(sheet, one)}
    if "label" not in roles:
        answers = _shown_together(sheet, roles, rows, bad, split_per_person(words)[0])
        return replace(answers, unused_columns=unused_columns)
    nearer = [row for row in rows if of_page and row["asked"].form == NEARER]
    rows = [row for row in rows if not (of_page and row["asked"].form == NEARER)]
    rows, shown = _labelled(sheet, roles, rows, bad, words)
    if not rows and bad:
        raise _nothing_readable(name, bad)
    ids = np.array([[row["id_a"], row["id_b"]] for row in rows], dtype=object).reshape(-1, 2)
    answers = _answers(sheet, roles, rows, bad, ids, [row["meaning"] * (2 * row["confidence"] - 1) for row in rows])
    codes = np.sign([row["meaning"] for row in rows]).astype(int).tolist()
    counts = Counter(zip(shown, codes, strict=True)).most_common()
    answers = replace(answers, words={text: (k, n) for (text, k), n in counts}, unused_columns=unused_columns)
    return with_log_columns(answers, rows, nearer) if of_page else answers


def _answers(
    sheet: Sheet,
    roles: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
    bad: Sequence[BadRow],
    ids: NDArray[np.object_],
    degrees: Sequence[float],
) -> Answers:
    """Return answers with the cells of their rows; degrees are from -1 for dissimilar to 1."""
    degree = np.array(degrees, dtype=np.float64)
    certainty = (1 + np.abs(degree)) / 2
    texts = {
        role: np.array([row[role] for row in rows], dtype=object)
        for role in ("annotator", "time", "seconds")
        if role in roles
    }
    return Answers(
        name=sheet.name,
        ids=ids,
        answers=np.sign(degree).astype(np.int64),
        weights=np.array([row["weight"] for row in rows], dtype=np.float64),
        annotators=texts.get("annotator"),
        lines=np.array([row["line"] for row in rows], dtype=np.int64),
        columns=dict(roles),
        words={},
        bad_rows=tuple(sorted(bad, key=lambda row: row.line)),
        times=texts.get("time"),
        format=sheet.format,
        n_unanswered=sheet.n_unanswered,
        seconds=seconds(texts["seconds"], roles["seconds"]) if "seconds" in roles else None,
        certainty=certainty if np.any((certainty > 0.5) & (certainty < 1)) else None,
    )


def _labelled(
    sheet: Sheet, roles: Mapping[str, str], rows: Sequence[dict[str, Any]], bad: list[BadRow], words: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return rows with the meanings of their labels, and labels as they are reported."""
    words, scale = split_per_person(words)
    steps: Mapping[str, int] = {}
    thresholds: Mapping[str, int] = {}
    if scale is not None:
        free = [row for row in rows if row["label"] not in words]
        people = [row.get("annotator", "") for row in free]
        thresholds, steps = person_thresholds(sheet.name, [row["label"] for row in free], people, scale)
    counts = Counter(row["label"] for row in rows if row["label"] not in steps)
    meaning = meanings(sheet.name, roles["label"], counts, words)
    kept, shown = [], []
    for row in rows:
        label = row["label"]
        if label in steps:
            person = row["annotator"]
            above = steps[label] >= thresholds[person]
            kept.append({**row, "meaning": float(SIMILAR if above else DISSIMILAR)})
            shown.append(f"{person}: {'>=' if above else '<'}{thresholds[person]}")
        elif label in meaning:
            kept.append({**row, "meaning": meaning[label]})
            # Probabilities are shown by the side of 1/2 that they are on.
            shown.append(_SIDES[int(np.sign(meaning[label]))] if "." in label else label)
        else:
            wanted = "a probability from 0 to 1" if "." in label else "one that is known"
            bad.append(BadRow(row["line"], f"label {quoted(label)} is not {wanted}"))
    return kept, shown


def _shown_together(
    sheet: Sheet, roles: Mapping[str, str], rows: Sequence[dict[str, Any]], bad: list[BadRow], words: Mapping[str, str]
) -> Answers:
    """Return answers to questions of more than two items: all pairs of a question share its number."""
    given: Sequence[Shown | str] = [row["shown"] for row in rows if "shown" in row]
    if "chosen" in roles:
        given = read_choices(rows, words, roles)
    elif words:
        raise InputError(f"{sheet.name} holds groups, in which no word has a meaning. Leave `words` out.")
    bad += [BadRow(row["line"], what) for row, what in zip(rows, given, strict=True) if isinstance(what, str)]
    answered = [(row, what) for row, what in zip(rows, given, strict=True) if isinstance(what, Shown)]
    if not answered and bad:
        raise _nothing_readable(sheet.name, bad)
    pairs = [(k, row, *pair) for k, (row, what) in enumerate(answered) for pair in what.pairs]
    ids = np.array([[a, b] for _, _, a, b, _ in pairs], dtype=object).reshape(-1, 2)
    degrees = [code * (2 * row["confidence"] - 1) for _, row, _, _, code in pairs]
    codes = Counter(code for *_, code in pairs)
    nearer = [what.nearer for _, what in answered if what.nearer is not None]
    return replace(
        _answers(sheet, roles, [row for _, row, *_ in pairs], bad, ids, degrees),
        words={_GROUP_WORDS[code]: (code, n) for code, n in codes.most_common()},
        questions=np.array([k for k, *_ in pairs], dtype=np.intp),
        nearer=np.array(nearer, dtype=object) if nearer else None,
    )


def _nothing_readable(name: str, bad: Sequence[BadRow]) -> InputError:
    first = min(bad, key=lambda row: row.line)
    advice = (
        " Labels are similar, dissimilar and unsure, 1/0, 1/-1, true/false, same/different, must-link/cannot-link and "
        "such; say what others mean: `words='yes=similar,no=dissimilar'`."
    )
    why = f"Line {first.line}: {first.reason}.{advice if first.reason.startswith('label') else ''}"
    return InputError(f"{name}: no row can be read. {why}")


def _parse(record: Record | str, roles: Mapping[str, str], n_cells: int, of_page: bool) -> dict[str, Any]:
    """Return what a row holds in each role; a ValueError says why it cannot be read."""
    if isinstance(record, str):
        raise ValueError(record)
    if len(record) < n_cells:
        raise ValueError(f"{len(record)} cells where {n_cells} are needed")
    # The page's CSV has a column of items, too.
    single = {role: name for role, name in roles.items() if of_page or role not in GROUP_ROLES}
    if nested := [role for role, name in single.items() if isinstance(record[name], dict | list)]:
        raise ValueError(f"{nested[0]} is not a single value")
    text: dict[str, Any] = {role: as_text(record[column]) for role, column in single.items()}
    text = read_cells(text) if of_page else text
    if empty := [role for role in ("id_a", "id_b", "label", *CHOICE_ROLES) if role in text and not text[role]]:
        raise ValueError(f"{empty[0]} is empty")
    weight = number(text.get("weight") or "1")
    if weight is None or not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"weight {quoted(text['weight'])} is not a number of zero or more")
    if "label" in text:
        text["label"] = label_text(text["label"])
    if "groups" in roles:
        text["shown"] = read_groups(record, roles)
    return {**text, "weight": weight}
