"""How a table is read: the parameters of :func:`sdulearn.fit_table` that concern the table, as one record.

A log of answers and a model file hold the record of their table, so that nothing about it is guessed twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from sdulearn.errors import InputError, quoted
from sdulearn.io.files import Location
from sdulearn.types import Count

Missing = Literal["auto", "error", "mean"]
MISSING: tuple[Missing, ...] = get_args(Missing)
# Known only once the table has been read, so they are neither parameters nor options.
FOUND = ("n_rows", "digest", "cells")
# ``embedding`` of an encoder that learns from the table itself, instead of a file of vectors.
CONTRASTIVE = "contrastive"
_LISTS = ("drop", "categories", "text", "images")


@dataclass(frozen=True)
class Reading:
    """How a table is read; each field is a parameter of :func:`sdulearn.fit_table`, except the last three.

    Attributes
    ----------
    id_column : str or None
        The column of ids, "" for row numbers from 0, or None if it has yet to be found.
    drop, categories, text, images : tuple of str
        Columns to leave out, of categories, of texts and of image files.
    image_root, embedding, text_model, sheet, skip_rows, missing, max_categories, groups
        As in :func:`sdulearn.fit_table`.
    n_rows : int or None
        Number of rows of the table that was read.
    digest : str
        Digest of the cells of some of its rows.
    cells : mapping
        Digest of each row that was asked about, by its id, if ids are row numbers.

    See Also
    --------
    sdulearn.fit_table : Takes these fields as parameters.

    Examples
    --------
    >>> from sdulearn import Reading
    >>> stored = Reading(id_column="id", drop=("note",))
    >>> stored.continued(Reading(text=("note",)))
    Reading(id_column='id', text=('note',))
    """

    id_column: str | None = None
    drop: Sequence[str] = ()
    categories: Sequence[str] = ()
    text: Sequence[str] = ()
    images: Sequence[str] = ()
    image_root: Location | None = None
    embedding: Location | None = None
    text_model: Location | None = None
    sheet: str | None = None
    skip_rows: Count | None = None
    missing: Missing = "auto"
    max_categories: Count = 50
    groups: str | None = None
    n_rows: Count | None = None
    digest: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _LISTS:
            if isinstance(value := getattr(self, name), str):
                raise InputError(f"`{name}` is a list of columns: give [{value!r}].")
            object.__setattr__(self, name, tuple(value))
        for name in ("image_root", "embedding", "text_model", "sheet"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, str(value))
        if self.missing not in MISSING:
            raise InputError(f"`missing` must be one of {', '.join(MISSING)}; got {self.missing!r}.")

    def __repr__(self) -> str:
        return f"Reading({', '.join(f'{name}={value!r}' for name, value in self.changed().items())})"

    @property
    def vectors(self) -> Location | None:
        """The file of vectors, if there is one."""
        return None if self.embedding == CONTRASTIVE else self.embedding

    def changed(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        default = vars(Reading)
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value != default.get(name, {})}

    def completed(self, id_column: str | None, n_rows: int, digest: str = "") -> Reading:
        """Return the record of a table that was read."""
        return replace(self, id_column=id_column or "", n_rows=n_rows, digest=digest)

    def continued(self, given: Reading) -> Reading:
        """Return this record of a table with what is given now, which wins; the columns of ids must agree."""
        if self.id_column is not None and given.id_column not in (None, self.id_column):
            asked, now = (
                f"column {quoted(name)}" if name else "row numbers from 0" for name in (self.id_column, given.id_column)
            )
            raise InputError(f"The questions were asked with ids from {asked}, not from {now}. Leave `id_column` out.")
        named = {column for name in _LISTS for column in getattr(given, name)}
        free: dict[str, Any] = {
            name: tuple(column for column in getattr(self, name) if column not in named) for name in _LISTS
        }
        changed = {name: value for name, value in given.changed().items() if name not in FOUND}
        return replace(self, **{**free, **changed, "drop": (*free["drop"], *given.drop)})
