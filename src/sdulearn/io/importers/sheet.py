"""What importers make of a file: rows whose columns are known."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sdulearn.io.files import as_text
from sdulearn.io.rows import NumberedRows, Record, tabulate

# Columns that are in common use for the two ends of a pair.
PAIR_COLUMNS = (
    ("id_a", "id_b"), ("id1", "id2"), ("id_1", "id_2"), ("a", "b"), ("left", "right"), ("left_id", "right_id"),
    ("id_left", "id_right"), ("unique_id_l", "unique_id_r"), ("id_l", "id_r"), ("ltable_id", "rtable_id"),
    ("first", "second"), ("item1", "item2"), ("i", "j"),
)  # fmt: skip


@dataclass(frozen=True)
class Sheet:
    """A row per answer."""

    format: str  # whose rows they are
    header: list[str]  # names of the columns, and the numbered rows
    rows: NumberedRows
    # roles whose column the format decides, such as ``{"label": "answer"}``
    columns: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)  # words that the format gives a meaning: +1, -1 or 0
    n_unanswered: int = 0  # questions in the file that nobody has answered yet
    # whether columns other than ``columns`` are the data that people were shown: ids are looked for there by their
    # usual names, and nothing else is. A product's weight is no weight of an answer
    only_ids: bool = False


# An answer's line, the data it is about, and what was said; or why it cannot be read.
Said = tuple[int, Record, Record] | tuple[int, str]


def annotated_sheet(
    format_name: str, said: Sequence[Said], questions: Collection[str], columns: Mapping[str, str], **more: object
) -> Sheet:
    """A sheet of data and what was said about it; data of a question's name are no answers to it."""
    rows: list[tuple[int, Record | str]] = []
    for one in said:
        if len(one) == 2:
            rows.append(one)
        else:
            number, data, answers = one
            rows.append((number, {**{key: data[key] for key in data if key not in questions}, **answers}))
    label = {"label": next(iter(questions))} if len(questions) == 1 else {}
    return sheet_of(format_name, rows, columns={**columns, **label}, only_ids=True, **more)


def sheet_of(format_name: str, records: list[tuple[int, Record | str]], **more: object) -> Sheet:
    """A sheet of records; ``more`` are its other attributes."""
    return Sheet(format_name, *tabulate(records), **more)  # type: ignore[arg-type]


def by_plain_name(header: Sequence[str]) -> dict[str, str]:
    """Columns by their names in lower case with underscores; of two alike the first."""
    return {re.sub(r"[\s.-]+", "_", name.strip().lower()): name for name in reversed(header)}


def pair_columns(header: Sequence[str]) -> tuple[str, str] | None:
    """The first two columns whose names are usual for the ends of a pair."""
    names = by_plain_name(header)
    return next(((names[a], names[b]) for a, b in PAIR_COLUMNS if a in names and b in names), None)


def given_values(record: Record) -> Record:
    """A record without what it leaves empty."""
    return {key: value for key, value in record.items() if not is_missing(value)}


def is_missing(value: object) -> bool:
    """Whether a cell is empty; a list or an object never is."""
    return not isinstance(value, list | dict) and as_text(value) == ""
