"""Which column of a file of answers has which role.

Where the ids of the table are known, cells decide first: columns in which at least half of the cells are ids are
the ends of a pair. The answer is in the column with the most words for answers that answer no other question. Names
decide what cells leave open, and nothing is guessed: what is left is asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from sdulearn.answer_files.rows import Sheet, by_plain_name, pair_columns
from sdulearn.answer_files.words import PLAIN_WORDS, SPELLINGS, as_parameter, is_answer, label_text, number
from sdulearn.errors import InputError, listed, quoted, shortened
from sdulearn.io.files import as_text, check_repeated
from sdulearn.tables.ids import ENOUGH

# For each column of a table that may hold the ids, which of some texts it has.
FindIds: TypeAlias = Callable[[Collection[str]], Sequence[Collection[str]]]

ROLES = ("id_a", "id_b", "label", "weight", "annotator", "time", "seconds", "confidence")
# Of forced choices and of groups, in place of the two ends and the label.
CHOICE_ROLES = ("x", "first", "second", "chosen")
GROUP_ROLES = ("items", "groups")
# Names in a column that may say who answered are in so many rows each.
_MIN_ANSWERS_EACH = 3
# The row that two others are compared with.
_ANCHORS = {"x", "anchor", "probe", "query"}
_PICKS = ("chosen", "choice", "pick", "picked", "answer", "response")
_NEITHER = {"none", "neither", "keine", "keins", "keines", "weder-noch", "ninguno", "aucun", "nessuno", "geen"}
_DURATIONS = ("seconds", "duration", "elapsed", "response_time", "reaction_time", "rt", "lead_time", "time_spent")
_USUAL = {
    "label": (
        "label", "answer", "antwort", "urteil", "reponse", "respuesta", "risposta", "antwoord",
        "same", "similar", "match", "is_match", "is_same", "is_duplicate", "constraint", "p_same",
        "probability", "judgment", "judgement",
    ),
    "confidence": ("confidence", "certainty"),
    "weight": ("weight", "sample_weight"),
    "annotator": (
        "annotator", "annotator_id", "worker", "worker_id", "performer", "user", "user_id", "rater", "coder", "labeler",
        "labeller", "who", "annotatorin", "bearbeiter", "bearbeiterin", "benutzer", "nutzer", "beurteiler", "wer",
        "annotateur", "annotatrice", "evaluateur", "utilisateur", "qui", "anotador", "anotadora", "evaluador",
        "usuario", "quien", "annotatore", "valutatore", "utente", "chi", "beoordelaar", "gebruiker", "wie",
    ),
    "time": ("time", "timestamp", "created_at"),
    "seconds": tuple(f"{name}{unit}" for name in _DURATIONS for unit in ("", "_s", "_ms")),
}  # fmt: skip


def cells_of(sheet: Sheet, column: str) -> list[str]:
    """Return the cells of a column as text, without those that are blank, lists or objects."""
    cells = (row.get(column) for _, row in sheet.records if isinstance(row, dict))
    return [text for cell in cells if not isinstance(cell, list | dict) and (text := as_text(cell))]


def find_columns(sheet: Sheet, given: Mapping[str, str], find_ids: FindIds | None = None) -> dict[str, str]:
    """Return the column of each role: the one given, or else by cells and by name."""
    header = sheet.header
    for role, name in given.items():
        if role not in (*ROLES, *CHOICE_ROLES, *GROUP_ROLES) or name not in header:
            columns = listed(map(shortened, header))
            raise InputError(f"{sheet.name} has no column {quoted(name)} for {role}; its columns are {columns}.")
    check_repeated(sheet.name, [name for name in header if name])
    by_name = by_plain_name(header)
    usual = {} if sheet.only_ids else _USUAL
    # Reversed, so that the first of the usual names wins.
    roles = {role: by_name[name] for role, names in usual.items() for name in reversed(names) if name in by_name}
    roles |= given
    if groups := _group_columns(sheet, given):
        return {**groups, **{role: roles[role] for role in ROLES[3:] if role in roles}}
    choice = {role: by_name[role] for role in CHOICE_ROLES if role in by_name} | dict(given)
    if choice.keys() >= {*CHOICE_ROLES} and not {"id_a", "id_b", "label"} & given.keys():
        return {role: {**roles, **choice}[role] for role in (*CHOICE_ROLES, *ROLES[3:]) if role in {**roles, **choice}}
    # The documented names need no look at the table.
    plain = {"id_a", "id_b", "label"} <= by_name.keys() or {"id_a", "id_b"} <= given.keys()
    ends = _columns_of_ids(sheet, find_ids) if find_ids is not None and not plain else []
    named = pair_columns(header)
    if len(ends) > 2 and not (picked := _choice_columns(sheet, ends, roles, given)):
        ends = list(pair_columns(ends) or named or ())
    elif len(ends) > 2:
        return picked
    if len(ends) < 2:
        ends = list(named or ())
    if not {"id_a", "id_b"} & given.keys():
        roles |= zip(("id_a", "id_b"), ends, strict=False)
    both = [roles[role] for role in ("id_a", "id_b") if role in roles]
    if len(both) == 2 and (picked := _choice_columns(sheet, both, roles, given)):
        return picked
    if not sheet.only_ids and "label" not in given and (label := _answer_column(sheet, roles)):
        roles["label"] = label
    _refuse_missing(sheet, roles)
    return {role: roles[role] for role in ROLES if role in roles}


def may_be_people(sheet: Sheet, column: str, ends: Iterable[str]) -> bool:
    """Whether a column may say who answered: texts or whole numbers, few of them, each in several answers.

    What belongs to one of the two ids, whose columns are ``ends``, such as a title, is about items, not people.
    """
    rows = [row for _, row in sheet.records if isinstance(row, dict)]
    for end in ends:
        ids = [as_text(row.get(end)) for row in rows]
        both = zip(ids, (as_text(row.get(column)) for row in rows), strict=True)
        if len(set(both)) == len(set(ids)) <= len(rows) / 2:
            return False
    cells = cells_of(sheet, column)
    times = Counter(cells)
    if len(cells) < ENOUGH * len(rows) or len(times) < 2 or min(times.values()) < _MIN_ANSWERS_EACH:
        return False
    names = all(number(text) is None or re.fullmatch(r"\d+", text) for text in times)
    return names and not all(is_answer(label_text(text)) for text in times)


def _refuse_missing(sheet: Sheet, roles: Mapping[str, str]) -> None:
    """Ask for the columns that nothing tells."""
    missing = [role for role in ROLES[:3] if role not in roles]
    if not missing:
        return
    header = sheet.header
    if label_text([*header, "", "", ""][2]) in {*SPELLINGS, "1", "0", "-1"} - {"same", "similar", "match"}:
        raise InputError(f"{sheet.name} seems to begin with an answer. Give it a first line: id_a,id_b,label")
    free = iter([shortened(name) for name in header if name not in roles.values()])
    example = {role: shortened(roles[role]) if role in roles else next(free, role.upper()) for role in ROLES[:3]}
    other = " Another sheet: `columns='sheet=NAME'`." if ", sheet " in sheet.name else ""
    raise InputError(
        f"{sheet.name}: which column is {' and '.join(missing)}? Its columns are {listed(map(shortened, header))}. "
        "Name them id_a, id_b and label, or say which they are, for example: "
        f"`columns='{as_parameter(example)}'`.{other}"
    )


def _columns_of_ids(sheet: Sheet, find_ids: FindIds) -> list[str]:
    """Return the columns in which at least half of the cells are ids of the same column of the table."""
    cells = {name: texts for name in sheet.header if (texts := cells_of(sheet, name))}
    best: list[str] = []
    most = 0.0
    for known in find_ids({text for texts in cells.values() for text in texts}):
        share = {name: sum(text in known for text in texts) / len(texts) for name, texts in cells.items()}
        ends = [name for name in cells if share[name] >= ENOUGH]
        if len(ends) > 1 and (total := sum(sorted(share[name] for name in ends)[-2:])) > most:
            best, most = ends, total
    return best


def _answer_column(sheet: Sheet, roles: Mapping[str, str]) -> str | None:
    """Return the column of answers, in which at least half of the cells are words for answers.

    Words such as yes answer other questions, too: a column of these counts if no other does and no name is usual.
    """
    taken = {name for role, name in roles.items() if role != "label"}
    labels = {
        name: [label_text(text) for text in texts]
        for name in sheet.header
        if name not in taken and (texts := cells_of(sheet, name))
    }

    def columns_of(known: Callable[[str], bool]) -> list[str]:
        times = {name: sum(map(known, texts)) for name, texts in labels.items()}
        enough = [name for name in times if times[name] >= ENOUGH * len(labels[name])]
        return sorted(enough, key=lambda name: -times[name])

    usual = roles.get("label")
    if clear := columns_of(lambda text: text in SPELLINGS and text not in PLAIN_WORDS):
        return usual if usual in clear else clear[0]
    if usual is not None:
        return usual
    plain = columns_of(is_answer)
    return plain[0] if len(plain) == 1 else None


def _group_columns(sheet: Sheet, given: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of items and their groups, by name, or because the cells of both have the same ids."""
    by_name = by_plain_name(sheet.header)
    roles = {role: by_name[role] for role in GROUP_ROLES if role in by_name}
    roles |= {role: given[role] for role in GROUP_ROLES if role in given}
    if len(roles) == 2 or {"id_a", "id_b", "label"} & given.keys():
        return roles if len(roles) == 2 else {}
    cells = {name: texts for name in sheet.header if len(texts := cells_of(sheet, name)) == len(sheet.records) > 0}
    sets = {name: [frozenset(re.split(r"[;|]", text)) for text in texts] for name, texts in cells.items()}
    several = [name for name in sets if sum(len(ids) > 1 for ids in sets[name]) > ENOUGH * len(sets[name])]
    for items in several:
        for groups in several:
            grouped = any("|" in text for text in cells[groups]) and not any("|" in text for text in cells[items])
            if grouped and sum(a == b for a, b in zip(sets[items], sets[groups], strict=True)) > 0.9 * len(sets[items]):
                return {"items": items, "groups": groups}
    return {}


def _choice_columns(
    sheet: Sheet, ends: Sequence[str], roles: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the columns of a forced choice, "is x more like the first or the second?", if this is one.

    Its answer is the name of a column, its number, or the id in it. ``ends`` are the two sides, and maybe x.
    """
    by_name = by_plain_name(sheet.header)
    anchors = [given["x"]] if "x" in given else [by_name[name] for name in _ANCHORS if name in by_name]
    label = given.get("chosen", roles.get("label"))
    columns = [label] if label else [name for name in sheet.header if name not in (*ends, *anchors)]
    # The number of a side, 0 or 1, may be anything else.
    numbered = {label, *(by_name[name] for name in _PICKS if name in by_name)}
    sides = [name for name in ends if name not in anchors]
    trials = [(sides, anchors)] if len(sides) == 2 else []
    if len(sides) == 3:
        trials = [([name for name in sides if name != x], [x]) for x in sides]
    for both, x in trials:
        column = next((name for name in columns if _picks_sides(sheet, name, both, bool(x) and name in numbered)), None)
        if column is None:
            continue
        if not x:
            raise InputError(
                f"{sheet.name}: column {quoted(column)} seems to say which of {quoted(both[0])} and {quoted(both[1])} "
                "is nearer to a third row. Name the column of that row x, or say which it is: `columns='x=NAME'`."
            )
        more = {role: roles[role] for role in ROLES[3:] if role in roles}
        return {"x": x[0], "first": both[0], "second": both[1], "chosen": column, **more}
    return {}


def _picks_sides(sheet: Sheet, column: str, sides: Sequence[str], by_number: bool) -> bool:
    """Whether all cells of a column pick one of two sides, or neither."""
    rows = [row for _, row in sheet.records if isinstance(row, dict)]
    picks = [(cell, row) for row in rows if (cell := as_text(row.get(column))) and not is_neither(cell)]
    names = {side.casefold() for side in sides} | ({"0", "1", "2"} if by_number else set())
    if not picks or all(cell.casefold() in names for cell, _ in picks):
        return bool(picks)
    # Labels 1 and 0 may be ids as well.
    are_labels = {*SPELLINGS, "1", "0", "-1"} >= {label_text(cell) for cell, _ in picks}
    return not are_labels and all(cell in [as_text(row.get(side)) for side in sides] for cell, row in picks)


def is_neither(cell: str) -> bool:
    """Whether an answer to a choice is that it is neither, or that somebody does not know."""
    text = label_text(cell)
    return text in _NEITHER or SPELLINGS.get(text) == 0


def positions(cells: Iterable[str], sides: tuple[str, str]) -> dict[str, int]:
    """Return which side a cell picks where it is a name or a number; numbers count from 0 if there is a 0."""
    there = {cell for cell in cells if cell in ("0", "1", "2")}
    counted = {"0": 0, "1": 1} if "0" in there else {"1": 0, "2": 1} if "2" in there else {}
    return {side.casefold(): k for k, side in enumerate(sides)} | counted
