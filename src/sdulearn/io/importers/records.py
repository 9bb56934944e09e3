"""From whole records to ids: by a field that holds them, or by looking the records up in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sdulearn.errors import InputError, listed, quoted, shortened
from sdulearn.io.files import Location, as_text
from sdulearn.io.ids import ID_COLUMNS, is_row_number, looks_like_id
from sdulearn.io.importers.sheet import RecordPairs, Sheet, sheet_of
from sdulearn.io.rows import Content, Record, read_content
from sdulearn.types import Frame

_COLUMNS = {"id_a": "left record", "id_b": "right record", "label": "label"}


def with_ids(
    name: str,
    found: RecordPairs,
    columns: Mapping[str, str],
    table: Location | Frame | None,
    id_column: str | None,
) -> Sheet:
    """A sheet of ids in the place of records.

    Ids come from the field that ``columns`` or ``id_column`` names, or one with a usual name; otherwise each
    record is looked up in ``table`` by the fields that both have.
    """
    records = [record for pair in found.pairs for record in (pair.left, pair.right)]
    if not records:
        return _sheet(found, [], "")
    field = _id_field(name, records, columns, id_column)
    if field is not None:
        return _sheet(found, [as_text(record.get(field)) for record in records], f"no {quoted(field)} in a record")
    if table is None:
        raise InputError(
            f"{name} holds whole records and no ids. Say with `table` of which table they are rows, and they are "
            "looked up there; or name a field that tells them apart: `columns={'id_a': 'key', 'id_b': 'key'}`."
        )
    return _sheet(found, _looked_up(name, records, table, id_column), "not one row of the table has its fields")


def _id_field(name: str, records: Sequence[Record], columns: Mapping[str, str], id_column: str | None) -> str | None:
    """A field of ids that every record has; the one named must be there."""
    shared = set.intersection(*(set(record) for record in records))
    for role in ("id_a", "id_b"):
        if role in columns:
            if columns[role] not in shared:
                raise InputError(f"{name}: not every record has the field {quoted(columns[role])} for {role}.")
            return columns[role]
    usual = ID_COLUMNS if id_column is None else (id_column,)
    return next((field for field in usual if field in shared), None)


def _sheet(found: RecordPairs, ids: Sequence[str], reason: str) -> Sheet:
    rows: list[tuple[int, Record | str]] = []
    for k, pair in enumerate(found.pairs):
        left = ids[2 * k]
        right = ids[2 * k + 1]
        row: Record = {"left record": left, "right record": right, "label": pair.label}
        rows.append((pair.line, row if left and right else reason))
    rows = sorted(rows + list(found.bad), key=lambda row: row[0])
    return sheet_of(found.format, rows, columns=_COLUMNS, words=found.words, n_unanswered=found.n_unanswered)


def _looked_up(name: str, records: Sequence[Record], table: Location | Frame, id_column: str | None) -> list[str]:
    """The id of the only row with a record's fields; empty where there is none, or several."""
    content = read_content(table, "the table", blank_rows=True)
    fields = [field for field in content.header if all(field in record for record in records)]
    if not fields:
        raise InputError(f"{name}: its records have no field that {content.name} has as a column.")
    ids = _table_ids(name, content, id_column)
    rows: dict[tuple[str, ...], list[str]] = {}
    for (_, row), row_id in zip(content.records(), ids, strict=True):
        if isinstance(row, dict):
            rows.setdefault(_fold(row, fields), []).append(row_id)
    places = [rows.get(_fold(record, fields), []) for record in records]
    if not any(len(place) == 1 for place in places):
        raise InputError(
            f"{name}: none of its records is found in {content.name} by the fields "
            f"{listed(map(shortened, fields), 5)}. They were changed on the way, or are of another table. Give the "
            "tool a field of ids, and answer again."
        )
    return [place[0] if len(place) == 1 else "" for place in places]


def _table_ids(name: str, content: Content, id_column: str | None) -> list[str]:
    """The table's ids, or row numbers where no column could be taken for one of them later on."""
    field = id_column
    if field is None:
        field = next((usual for usual in ID_COLUMNS if usual in content.header), "")
        like = [column for column in content.header if looks_like_id(column) and _holds_numbers(content, column)]
        if not field and like:
            raise InputError(f"{name}: say with `id_column` whether {quoted(like[0])} of {content.name} holds its ids.")
    if field and field not in content.header:
        raise InputError(f"{content.name} has no column {quoted(field)} to take ids from.")
    if not field:
        return [str(k) for k in range(len(content.rows))]
    return [as_text(row.get(field)) if isinstance(row, dict) else "" for _, row in content.records()]


def _holds_numbers(content: Content, column: str) -> bool:
    rows = (row for _, row in content.records() if isinstance(row, dict))
    return any(is_row_number(as_text(row.get(column)), len(content.rows)) for row in rows)


def _fold(record: Record, fields: Sequence[str]) -> tuple[str, ...]:
    """A record's fields without regard to case and blanks, which tools take out before they show a record."""
    return tuple(" ".join(_text(record.get(field)).casefold().split()) for field in fields)


def _text(value: object) -> str:
    return ", ".join(as_text(one) for one in value) if isinstance(value, list) else as_text(value)
