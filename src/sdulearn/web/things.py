"""What the page shows of a row: a text, a picture, some of its fields, or all of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sdulearn.errors import InputError, MissingFileError, listed, quoted, shortened
from sdulearn.io.files import as_text
from sdulearn.io.images import grey_png, read_image
from sdulearn.types import Array, ArrowTable

# Nobody compares texts longer than this, and a page should not stall on one.
_LONGEST_TEXT = 20_000
_LONGEST_VALUE = 500
_LONGEST_TITLE = 80

Part = dict[str, object]


@dataclass(frozen=True)
class Things:
    """Rows as a person sees them."""

    ids: list[str]  # id of each row
    table: ArrowTable | None = None  # the table as it is
    text: str | None = None  # columns with a text, and with the name of a picture or a link
    image: str | None = None
    columns: tuple[str, ...] = ()  # columns shown as fields
    image_root: Path = field(default_factory=Path)  # the folder that pictures come from
    pictures: Array | None = None  # (n_rows, height, width), grey pictures, instead of files

    def show(self, row: int) -> list[Part]:
        """All parts of a row, as the page takes them."""
        parts: list[Part] = []
        if self.pictures is not None:
            parts.append({"kind": "image", "row": row, "pixels": True})
        if self.image is not None:
            parts.append(_picture(row, self._value(self.image, row)))
        if self.text is not None:
            parts.append({"kind": "text", "text": _cut(self._value(self.text, row), _LONGEST_TEXT)})
        if self.columns:
            fields = [[name, _cut(self._value(name, row), _LONGEST_VALUE)] for name in self.columns]
            parts.append({"kind": "fields", "fields": fields})
        return parts

    def title(self, row: int) -> str:
        """A row in a few words, for lists."""
        if self.text is not None:
            return _cut(" ".join(self._value(self.text, row).split()), _LONGEST_TITLE)
        if self.columns and self.image is None:
            return _cut(", ".join(self._value(name, row) for name in self.columns[:6]), _LONGEST_TITLE)
        return self.ids[row]

    def picture(self, row: int) -> tuple[bytes, str]:
        """A row's picture and its media type."""
        if not 0 <= row < len(self.ids):
            raise MissingFileError(f"There is no row {row}.")
        if self.pictures is not None:
            return grey_png(self.pictures[row]), "image/png"
        if self.image is None:
            raise MissingFileError("Rows have no pictures.")
        return read_image(self.image_root, self._value(self.image, row))

    def plain(self, row: int) -> list[str]:
        """A row in lines of text, for a terminal."""
        if self.pictures is not None:
            return ["".join(" .:-=+*#%@"[min(int(10 * v), 9)] * 2 for v in line) for line in self.pictures[row]]
        lines = [self._value(self.image, row)] if self.image is not None else []
        if self.text is not None:
            lines += _cut(self._value(self.text, row), _LONGEST_TEXT).splitlines()
        return lines + [f"{name}: {_cut(self._value(name, row), _LONGEST_VALUE)}" for name in self.columns]

    def _value(self, name: str, row: int) -> str:
        assert self.table is not None
        value = self.table[name][row].as_py()
        if isinstance(value, float) and not value.is_integer():
            return "" if value != value else f"{value:.6g}"
        return as_text(value)


def things_of_table(
    table: ArrowTable,
    ids: list[str],
    id_column: str | None,
    *,
    text: str | None = None,
    image: str | None = None,
    columns: Sequence[str] = (),
    hidden: Sequence[str] = (),
    image_root: Path,
) -> Things:
    """What to show of a table's rows: what is asked for, or else all its columns but the hidden ones."""
    names = table.column_names
    for name in (text, image, *columns):
        if name is not None and name not in names:
            raise InputError(
                f"The table has no column {quoted(name)} to show. Its columns: {listed(map(shortened, names))}."
            )
    if text is None and image is None and not columns:
        columns = [name for name in names if name != id_column and name not in hidden]
    return Things(ids, table, text, image, tuple(columns), image_root)


def _picture(row: int, value: str) -> Part:
    """A file's picture, or a link: the page asks nobody else for anything, so a link is there to be followed."""
    if value.lower().startswith(("http://", "https://")):
        return {"kind": "link", "href": value}
    return {"kind": "image", "row": row, "name": Path(value).name} if value else {"kind": "text", "text": ""}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
