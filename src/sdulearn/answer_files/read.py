"""Read answers from files and frames: which two rows were compared, and whether they are the same.

A file has one row per answer, ``id_a,id_b,label`` and, if any, ``weight``, ``annotator``, ``time``,
``seconds`` and ``confidence``; or it is the log of ``sdulearn ask``; or another tool wrote it
(:mod:`sdulearn.answer_files.tools`). Usual names and spellings are recognised, and the result says how they
were read: no guess is silent.
"""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sdulearn.answer_files.download import COLUMNS, NEARER, NEEDED, read_cells, with_log_columns
from sdulearn.answer_files.log import EVENTS, log_answers, read_log
from sdulearn.answer_files.parameters import as_columns, as_words
from sdulearn.answer_files.rows import Record, Sheet, by_plain_name, pair_columns, read_sheet
from sdulearn.answer_files.tools import recognise
from sdulearn.answers.records import Answers, BadRow
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError, listed, quoted, shortened
from sdulearn.io.files import Location, as_text, check_repeated, is_location
from sdulearn.types import Array, Frame

MEANINGS = {"similar": SIMILAR, "dissimilar": DISSIMILAR, "unsure": UNSURE}
ROLES = ("id_a", "id_b", "label", "weight", "annotator", "time", "seconds", "confidence")

_WORDS = {
    SIMILAR: "similar same true must-link mustlink ml match accept yes y gleich ahnlich dasselbe dieselbe ja wahr meme "
    "pareil identique semblable oui vrai mismo misma igual iguales parecido verdadero stesso stessa uguale simile vero "
    "si zelfde hetzelfde dezelfde gelijk waar",
    DISSIMILAR: "dissimilar different false cannot-link cannotlink cl distinct reject not-similar not-same non-match "
    "no n verschieden unterschiedlich ungleich anders nein falsch differente non faux diferente distinto distinta "
    "falso diverso diversa differente verschillend ongelijk nee onwaar",
    UNSURE: "unsure ignore not-sure uncertain dont-know do-not-know unknown weiss-nicht unsicher keine-angabe "
    "ne-sait-pas je-ne-sais-pas incertain no-se no-sabe inseguro non-so incerto weet-niet weet-ik-niet onzeker",
}
# Several steps of a scale, such as >=4.
_THRESHOLD = re.compile(r"([<>]=?)(-?\d+(?:\.\d+)?)")
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# In a column with such a name, yes and 1 mean that two are different.
_ASKS_DIFFERENT = re.compile("differ|distinct|dissimilar|versch|unterschied|ungleich|divers|distint|ongelijk")
_PLAIN_WORDS = {"yes", "y", "ja", "oui", "si", "no", "n", "nein", "non", "nee", "1", "0", "-1", "true", "false"}
_SPELLINGS = {word: answer for answer, words in _WORDS.items() for word in words.split()}
# Probability of being right that a person states with such a word.
_STATED = {"definitely": 0.95, "surely": 0.95, "sure": 0.95, "probably": 0.75, "rather": 0.75, "unsure": 0.5}
_SIDES = {SIMILAR: "above 0.5", DISSIMILAR: "below 0.5", UNSURE: "0.5"}
# The row that two others are compared with.
_ANCHORS = {"x", "anchor", "probe", "query"}
_DURATIONS = ("seconds", "duration", "elapsed", "response_time", "reaction_time", "rt", "lead_time", "time_spent")
_OTHER_COLUMNS = {
    "label": (
        "label", "answer", "antwort", "urteil", "reponse", "respuesta", "risposta", "antwoord",
        "same", "similar", "match", "is_match", "is_same", "is_duplicate", "constraint", "p_same",
        "probability",
    ),
    "confidence": ("confidence", "certainty"),
    "weight": ("weight", "sample_weight"),
    "annotator": ("annotator", "annotator_id", "worker", "worker_id", "performer", "user", "user_id"),
    "time": ("time", "timestamp", "created_at"),
    "seconds": tuple(f"{name}{unit}" for name in _DURATIONS for unit in ("", "_s", "_ms")),
}  # fmt: skip


def read_answers(
    source: Location | Frame | Answers,
    *,
    columns: Mapping[str, str] | str | None = None,
    words: Mapping[str, str] | str | None = None,
) -> Answers:
    """Read answers from a file or a frame, whichever tool wrote it.

    Parameters
    ----------
    source : str, path-like or frame
        CSV, TSV, JSON, JSON lines, Parquet (extra ``files``) or Excel (extra ``excel``), by the file's
        ending; gzipped or not. Or a pandas, polars or pyarrow frame. Its content tells what it holds:
        one row per answer, the log of ``sdulearn ask``, or a file of Label Studio, Prodigy, Argilla,
        interactive-clustering or a crowd. Answers that were read before are returned as they are.
    columns : mapping or str, optional
        Names of the columns where they are unusual, for example
        ``{"id_a": "from", "id_b": "to", "label": "verdict"}``, or as text ``"from,to,verdict"``;
        "sheet" is the name of a workbook's sheet, or its number, by default the first.
    words : mapping or str, optional
        What a word means where it is unusual, for example ``{"yes": "similar", "no": "dissimilar"}``,
        and steps of a scale, ``{">=4": "similar", "3": "unsure", "<=2": "dissimilar"}``; a number is a
        probability of "similar". Also as text, ``"yes=similar,no=dissimilar"``.

    Returns
    -------
    Answers
        The answers, how they were read, and the rows that could not be read with their line numbers.

    Raises
    ------
    InputError
        Columns are missing; labels are 1, 0 and -1 together, where 0 may mean unsure or dissimilar; the
        file may be of two tools, or is of a tool that links records of the same entity.

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
    return _read_answers(sheet if of_page else recognise(sheet, columns), columns, words, of_page)


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


def _read_answers(sheet: Sheet, columns: Mapping[str, str], words: Mapping[str, str], of_page: bool) -> Answers:
    name = sheet.name
    if sheet.n_unanswered and not sheet.records:
        raise InputError(f"{name}: none of its {sheet.n_unanswered:,} questions is answered yet.")
    if sheet.records and not sheet.header:
        raise _nothing_readable(name, [BadRow(line, str(reason)) for line, reason in sheet.records])
    given = {**{role: column for role, column in sheet.columns.items() if column in sheet.header}, **columns}
    roles = _find_columns(sheet, given)
    read_as = {**roles, **{column: column for column in COLUMNS if of_page and column in sheet.header}}
    n_cells = 1 + max(map(sheet.header.index, read_as.values()))
    parsed: list[dict[str, Any]] = []
    bad: list[BadRow] = []
    for line, record in sheet.records:
        try:
            parsed.append({**_parse(record, read_as, n_cells, of_page), "line": line})
        except (TypeError, ValueError) as reason:
            bad.append(BadRow(line, str(reason)))
    nearer = [row for row in parsed if of_page and row["asked"].form == NEARER]
    parsed = [row for row in parsed if row not in nearer] if nearer else parsed
    meaning = _meanings(name, roles["label"], Counter(row["label"] for row in parsed), words)
    rows = [row for row in parsed if row["label"] in meaning]
    for row in parsed:
        if row["label"] not in meaning:
            wanted = "a probability from 0 to 1" if "." in row["label"] else "one that is known"
            bad.append(BadRow(row["line"], f"label {quoted(row['label'])} is not {wanted}"))
    if not rows and bad:
        raise _nothing_readable(name, bad)
    texts = {role: np.array([row[role] for row in rows], dtype=object) for role in roles}
    degree = np.array([meaning[row["label"]] * row["confidence"] for row in rows])
    certainty = (1 + np.abs(degree)) / 2
    codes = np.sign([meaning[row["label"]] for row in rows]).astype(int).tolist()
    # Probabilities are shown by the side of 1/2 that they are on.
    shown = [_SIDES[k] if "." in row["label"] else row["label"] for row, k in zip(rows, codes, strict=True)]
    answers = Answers(
        name=name,
        ids=np.column_stack([texts["id_a"], texts["id_b"]]),
        answers=np.sign(degree).astype(np.int64),
        weights=np.array([row["weight"] for row in rows], dtype=np.float64),
        annotators=texts.get("annotator"),
        lines=np.array([row["line"] for row in rows], dtype=np.int64),
        columns=roles,
        words={text: (k, n) for (text, k), n in Counter(zip(shown, codes, strict=True)).most_common()},
        bad_rows=tuple(sorted(bad, key=lambda row: row.line)),
        times=texts.get("time"),
        format=sheet.format,
        n_unanswered=sheet.n_unanswered,
        seconds=_seconds(texts["seconds"], roles["seconds"]) if "seconds" in roles else None,
        certainty=certainty if np.any((certainty > 0.5) & (certainty < 1)) else None,
    )
    return with_log_columns(answers, rows, nearer) if of_page else answers


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
    if nested := [role for role, name in roles.items() if isinstance(record[name], dict | list)]:
        raise ValueError(f"{nested[0]} is not a single value")
    text: dict[str, Any] = {role: as_text(record[column]) for role, column in roles.items()}
    text = read_cells(text) if of_page else text
    if empty := [role for role in ("id_a", "id_b", "label") if not text[role]]:
        raise ValueError(f"{empty[0]} is empty")
    weight = _number(text.get("weight") or "1")
    if weight is None or not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"weight {quoted(text['weight'])} is not a number of zero or more")
    sure = text.get("confidence") or "1"
    stated = _STATED.get(_label_text(sure), _number(sure))
    if stated is None or not 0.5 <= stated <= 1:
        raise ValueError(f"confidence {quoted(sure)} is not a probability from 0.5 to 1 that the answer is right")
    return {**text, "label": _label_text(text["label"]), "weight": weight, "confidence": 2 * stated - 1}


def _label_text(text: str) -> str:
    """Spell a label in one way: lower case, '-' for blanks and underscores, 1 for 1.0."""
    number = _number(text)
    if number is not None and number.is_integer():
        return str(int(number))
    plain = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[\s_]+", "-", re.sub("[\u0300-\u036f'’.!]", "", plain) if number is None else plain)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _seconds(texts: Iterable[str], column: str) -> Array:
    """Return how long answers took; the name of the column may say milliseconds."""
    numbers = np.array([_number(text.replace(",", ".")) for text in texts], dtype=np.float64)
    usable = np.isfinite(numbers) & (numbers >= 0)
    return np.where(usable, numbers, np.nan) / (1000 if re.search(r"ms\W*$", column.lower()) else 1)


def _meanings(path: str, column: str, counts: Counter[str], words: Mapping[str, str]) -> dict[str, float]:
    """Return what each label means, from -1 for dissimilar to 1; never guess."""
    given = _by_user(counts, words)
    numbers = {"1": SIMILAR, "0": DISSIMILAR, "-1": DISSIMILAR}
    if {"0", "-1"} <= counts.keys() - given.keys():
        raise InputError(
            f"{path} has the labels 0 ({counts['0']:,} times) and -1 ({counts['-1']:,} times): 0 may mean "
            "unsure or dissimilar. Say which: `words='0=unsure'`."
        )
    steps = sorted((text for text in counts if re.fullmatch(r"-?\d+", text)), key=int)
    if set(steps) - given.keys() and set(steps) - numbers.keys():
        # On a scale, 1 does not mean "similar" either.
        raise InputError(_ask_about_scale(path, {text: counts[text] for text in steps}))
    known = {**{text: _soft(text) for text in counts}, **_SPELLINGS, **numbers, **given}
    meaning = {text: value for text in counts if (value := known[text]) is not None}
    unclear = _PLAIN_WORDS & (meaning.keys() - given.keys())
    if unclear and _ASKS_DIFFERENT.search(_label_text(column)):
        raise InputError(
            f"{path}: column {quoted(column)} seems to ask whether two are different. Say what "
            f"{listed(sorted(map(quoted, unclear)))} mean there, for example: "
            "`words='yes=dissimilar,no=similar'`."
        )
    return meaning


def _by_user(labels: Iterable[str], words: Mapping[str, str]) -> dict[str, float]:
    """Return what labels mean by the user's words, some of which are thresholds such as >=4."""
    plain: dict[str, float] = {}
    steps: dict[str, float] = {}
    numbers = {label: number for label in labels if (number := _number(label)) is not None}
    for text, name in words.items():
        value = MEANINGS.get(name, _soft(name))
        if value is None:
            what = "A label means similar, dissimilar, unsure or a probability of similar"
            raise InputError(f"{what}; {text!r} was said to mean {name!r}.")
        if limit := _THRESHOLD.fullmatch(text):
            within = [label for label, one in numbers.items() if _COMPARE[limit[1]](one, float(limit[2]))]
            if both := [label for label in within if steps.get(label, value) != value]:
                raise InputError(f"By `words`, {both[0]} means two things. Give limits that do not overlap.")
            steps |= dict.fromkeys(within, value)
        else:
            plain[_label_text(text)] = value
    return {**steps, **plain}


def _ask_about_scale(path: str, counts: Mapping[str, int]) -> str:
    """Ask what the steps of a scale mean, by a threshold or as probabilities."""
    shown = ", ".join(f"{text} ({n:,} times)" for text, n in counts.items())
    steps, half = list(counts), len(counts) // 2
    hard = dict.fromkeys(steps[half : len(steps) - half], "unsure")
    if half:
        hard = {f">={steps[-half]}": "similar", **hard, f"<={steps[half - 1]}": "dissimilar"}
    soft = {text: f"{0.05 + 0.9 * k / max(len(counts) - 1, 1):.2g}" for k, text in enumerate(counts)}
    return (
        f"{path} has the labels {shown}, which may be a scale. Say what each step means. If the highest means similar: "
        f"`words='{_as_text(hard)}'` or, as probabilities of similar, `words='{_as_text(soft)}'`. If not, exchange "
        "the two."
    )


def _as_text(mapping: Mapping[str, str]) -> str:
    """Return a mapping as `columns` and `words` take it."""
    return ",".join(f"{name}={value}" for name, value in mapping.items())


def _soft(text: str) -> float | None:
    """Return a probability, or words such as "probably-same", on the scale from -1 to 1."""
    stated, _, word = text.partition("-")
    if stated in _STATED and word in _SPELLINGS:
        return (2 * _STATED[stated] - 1) * _SPELLINGS[word]
    number = _number(text)
    return 2 * number - 1 if number is not None and 0 <= number <= 1 else None


def _find_columns(sheet: Sheet, given: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each role: the one given, or else the first of the usual names."""
    header = sheet.header
    for role, name in given.items():
        if role not in ROLES or name not in header:
            columns = listed(map(shortened, header))
            raise InputError(f"{sheet.name} has no column {quoted(name)} for {role}; its columns are {columns}.")
    check_repeated(sheet.name, [name for name in header if name])
    by_name = by_plain_name(header)
    usual = {} if sheet.only_ids else _OTHER_COLUMNS
    # Reversed, so that the first of the usual names wins.
    roles = {role: by_name[name] for role, names in usual.items() for name in reversed(names) if name in by_name}
    if not {"id_a", "id_b"} & given.keys():
        roles |= zip(("id_a", "id_b"), pair_columns(header) or (), strict=False)
    roles |= given
    missing = [role for role in ("id_a", "id_b", "label") if role not in roles]
    if "id_a" not in missing and "id_b" not in missing:
        _refuse_forced_choices(sheet, (roles["id_a"], roles["id_b"]), roles.get("label"))
    if missing and _label_text([*header, "", "", ""][2]) in {*_SPELLINGS, "1", "0", "-1"} - {
        "same",
        "similar",
        "match",
    }:
        raise InputError(f"{sheet.name} seems to begin with an answer. Give it a first line: id_a,id_b,label")
    if missing:
        example = dict(zip(ROLES, [*map(shortened, header), "B", "LABEL"][:3], strict=False))
        other = " Another sheet: `columns='sheet=NAME'`." if ", sheet " in sheet.name else ""
        raise InputError(
            f"{sheet.name}: which column is {' and '.join(missing)}? Its columns are {listed(map(shortened, header))}. "
            "Name them id_a, id_b and label, or say which they are, for example: "
            f"`columns='{_as_text(example)}'`.{other}"
        )
    return {role: roles[role] for role in ROLES if role in roles}


def _refuse_forced_choices(sheet: Sheet, ends: tuple[str, str], label: str | None) -> None:
    """Refuse answers to "is it more like a or b?": they do not say that two rows are of one class."""
    rows = [row for _, row in sheet.records if isinstance(row, dict)]
    has_anchor = not _ANCHORS.isdisjoint(by_plain_name(sheet.header))
    sides = {end.casefold() for end in ends} | ({"0", "1", "2"} if has_anchor else set())
    for column in [label] if label else [name for name in sheet.header if name not in ends]:
        picks = [(cell, row) for row in rows if (cell := as_text(row.get(column)))]
        by_side = all(cell.casefold() in sides for cell, _ in picks)
        # Labels 1 and 0 may be ids as well.
        by_id = not _SPELLINGS.keys() | {"1", "0", "-1"} >= {_label_text(cell) for cell, _ in picks}
        by_id = by_id and all(cell in [as_text(row.get(end)) for end in ends] for cell, row in picks)
        if picks and (by_side or by_id):
            raise InputError(
                f"{sheet.name}: column {quoted(column)} seems to say which of {quoted(ends[0])} and {quoted(ends[1])} "
                "is nearer to a third row. Such a forced choice does not say that two rows are of the same class. Ask "
                'about pairs, or offer "none of them" as `sdulearn ask --design match` does.'
            )
