"""What is shown of a row: a text, pictures, a sound, fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sdulearn.errors import InputError, MissingFileError, listed, quoted, shortened
from sdulearn.io.files import as_text
from sdulearn.io.media import BETWEEN_FILES, find_sound, grey_png, is_link, read_image
from sdulearn.types import Array, ArrowTable

# Nobody compares longer texts, and they would slow the page down.
_LONGEST_TEXT = 20_000
_LONGEST_VALUE = 500
_LONGEST_TITLE = 80
# A longer number is shown with six digits.
_LONGEST_NUMBER = 10

Part = dict[str, object]


@dataclass(frozen=True)
class Things:
    """Rows as a person or a program sees them."""

    ids: list[str]
    table: ArrowTable | None = None
    text: Sequence[str] = ()  # columns with texts
    image: Sequence[str] = ()  # columns with files of pictures, or links
    audio: str | None = None  # column with files of sounds
    columns: Sequence[str] = ()  # columns shown as fields
    root: Path = field(default_factory=Path)  # folder of pictures and sounds
    pictures: Array | None = None  # (n_rows, height, width), grey pictures instead of files
    deviations: Mapping[str, Array] = field(default_factory=dict)  # standardised columns of numbers

    def show(self, row: int) -> list[Part]:
        """Return all parts of a row for the page."""
        parts: list[Part] = []
        if self.pictures is not None:
            parts.append({"kind": "image", "src": f"image/{row}"})
        for place, name in enumerate(self._files(row)):
            # The page loads nothing from elsewhere: a link is shown as a link.
            file: Part = {"kind": "image", "src": f"image/{row}/{place}", "name": Path(name).name}
            parts.append({"kind": "link", "href": name} if is_link(name) else file)
        if self.audio is not None and (name := self._value(self.audio, row)):
            parts.append({"kind": "audio", "src": f"audio/{row}", "name": Path(name).name})
        for name in self.text:
            parts.append({"kind": "text", "text": _cut(self._value(name, row), _LONGEST_TEXT)})
        if self.columns:
            parts.append({"kind": "fields", "fields": [self._field(name, row) for name in self.columns]})
        return parts

    def title(self, row: int) -> str:
        """Return a short text of a row, for lists."""
        if self.text:
            return _cut(" ".join(self._text(row).split()), _LONGEST_TITLE)
        if self.columns and not self.image:
            return _cut(", ".join(self._value(name, row) for name in self.columns[:6]), _LONGEST_TITLE)
        return self.ids[row]

    def thumbnail(self, row: int) -> str | None:
        """Return the address of the first picture of a row, if it has one."""
        if self.pictures is not None:
            return f"image/{row}"
        return next((f"image/{row}/{k}" for k, name in enumerate(self._files(row)) if not is_link(name)), None)

    def picture(self, row: int, place: int = 0) -> tuple[bytes, str]:
        """Return a picture of a row and its media type."""
        self._check(row)
        if self.pictures is not None:
            return grey_png(self.pictures[row]), "image/png"
        names = self._files(row)
        if not 0 <= place < len(names):
            raise MissingFileError("The row has no such picture.")
        return read_image(self.root, names[place])

    def sound(self, row: int) -> tuple[Path, str]:
        """Return the sound file of a row and its media type."""
        self._check(row)
        if self.audio is None:
            raise MissingFileError("Rows have no sounds.")
        return find_sound(self.root, self._value(self.audio, row))

    def data(self, row: int) -> dict[str, object]:
        """Return a row as data, for a program."""
        data: dict[str, object] = {"id": self.ids[row]}
        if self.text:
            data["text"] = self._text(row)
        if files := self._files(row):
            data["images"] = [name if is_link(name) else str((self.root / name).absolute()) for name in files]
        if self.audio is not None:
            data["audio"] = str((self.root / self._value(self.audio, row)).absolute())
        if self.columns:
            data["fields"] = {name: self._value(name, row) for name in self.columns}
        return data

    def _text(self, row: int) -> str:
        return "\n\n".join(self._value(name, row) for name in self.text)

    def _check(self, row: int) -> None:
        if not 0 <= row < len(self.ids):
            raise MissingFileError(f"There is no row {row}.")

    def _files(self, row: int) -> list[str]:
        names = [name.strip() for column in self.image for name in self._value(column, row).split(BETWEEN_FILES)]
        return [name for name in names if name]

    def _field(self, name: str, row: int) -> list[object]:
        """Name, value, and for numbers the standard score."""
        deviation = round(float(self.deviations[name][row]), 3) if name in self.deviations else None
        return [name, _cut(self._value(name, row), _LONGEST_VALUE), deviation]

    def _value(self, name: str, row: int) -> str:
        assert self.table is not None
        value = self.table[name][row].as_py()
        if name in self.deviations and isinstance(value, str) and len(value) > _LONGEST_NUMBER:
            with suppress(ValueError):
                value = float(value)
        if isinstance(value, float) and not value.is_integer():
            return "" if value != value else f"{value:.6g}"
        return as_text(value)


def things_of_table(
    table: ArrowTable, ids: list[str], id_column: str | None, hidden: Collection[str] = (), **shown: Any
) -> Things:
    """Return what to show of rows: by default all columns except the ids and the hidden ones."""
    names = table.column_names
    things = Things(ids, table, **shown)
    wanted = [*things.text, *things.image, things.audio, *things.columns]
    if unknown := [name for name in wanted if name is not None and name not in names]:
        known = listed(map(shortened, names))
        raise InputError(f"The table has no column {quoted(unknown[0])} to show. Its columns: {known}.")
    if not any(wanted):
        return replace(things, columns=tuple(name for name in names if name not in (id_column, *hidden)))
    return things


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
