"""One pass over a table: what its columns hold, where ids are, and the rows to keep."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.answers.y import scramble
from sdulearn.errors import InputError, listed, pa, quoted
from sdulearn.io.files import Location
from sdulearn.reading import CONTRASTIVE, Reading
from sdulearn.tables import ids
from sdulearn.tables.columns import Column, Columns, Problem, Transformer, refuse
from sdulearn.tables.decide import ColumnCounts, Role, count, decimal_mark, describe, usable_scale
from sdulearn.tables.encoders import EncodedImages
from sdulearn.tables.features import MAX_IMAGES, ImageFeatures, TextFeatures
from sdulearn.tables.ids import IdHits, looks_like_id, unknown_ids
from sdulearn.tables.source import TEXT_FORMATS, Table, open_table, with_gaps
from sdulearn.tables.text_models import EmbeddedTexts
from sdulearn.types import Array, ArrowTable, Codes, Frame, Indices

_NO_ROWS = np.empty(0, dtype=np.int64)
# Rows that may be kept although they are not needed.
_SLACK = 1000
# Rows whose texts decide how texts become features, at most.
MOST_TEXTS = 20_000
# Mean number of words from which on texts are sentences.
_WORDS_OF_A_TEXT = 3
# Rows from which on it means something that all cells of a column are different.
_FEWEST_NAMED = 5
_UNNAMED = re.compile(r"Unnamed: \d+")


@dataclass(frozen=True)
class Wanted:
    """What a pass looks for."""

    features: Mapping[str, Role]  # columns to learn from, and how each is read
    id_columns: tuple[str, ...]  # columns that may hold the ids
    ids: tuple[str, ...] = ()  # ids whose rows are kept
    asked: frozenset[str] = frozenset()  # ids of answers, if they decide the id column
    is_open: bool = False  # whether neither the user, nor a name, nor answers decide the id column
    rows: Codes = field(default_factory=lambda: _NO_ROWS)  # numbers of further rows to keep
    n_drawn: int = 0  # number of rows to draw: those with the lowest marks
    highest: int = 2**64 - 1  # no row above this mark is drawn
    shown: tuple[str, ...] = ()  # further columns to keep
    missing_texts: tuple[str, ...] = ()  # cells that are missing values, unless they are ids


@dataclass(frozen=True)
class Survey:
    """What some rows hold; ``+`` joins two stretches of rows, in any order."""

    wanted: Wanted
    n_rows: int
    n_blank: int  # rows without any value, which are left out
    counts: Mapping[str, ColumnCounts]
    hits: Mapping[str, IdHits]  # by column that may hold ids
    kept: list[tuple[Codes, ArrowTable]]  # numbers and cells of rows that are kept

    def __add__(self, other: Survey) -> Survey:
        return Survey(
            self.wanted,
            self.n_rows + other.n_rows,
            self.n_blank + other.n_blank,
            {name: found + other.counts[name] for name, found in self.counts.items()},
            {name: found + other.hits[name] for name, found in self.hits.items() if name in other.hits},
            self.kept + other.kept,
        ).pruned()

    @property
    def rows(self) -> Codes:
        """Numbers of all rows that are kept."""
        return np.concatenate([_NO_ROWS, *(rows for rows, _ in self.kept)])

    @property
    def values(self) -> list[tuple[Codes, ArrowTable]]:
        """Numbers and values of all rows that are kept; ids are in ``kept``."""
        return [(rows, with_gaps(batch, self.wanted.missing_texts)) for rows, batch in self.kept]

    def cells(self, name: str, rows: Codes) -> list[str | None]:
        """Return the texts in a column of some of the rows that are kept."""
        text = pa.string()
        found = [cell for _, batch in self.values for cell in batch[name].cast(text).to_pylist()]
        order = np.argsort(self.rows)
        return [found[k] for k in order[np.searchsorted(self.rows, rows, sorter=order)]]

    def lowest(self, number: int) -> Codes:
        """Return the rows with the lowest marks, sorted."""
        rows = self.rows
        return np.sort(rows[np.argsort(scramble(rows), kind="stable")[:number]])

    def pruned(self) -> Survey:
        """Drop rows that are no longer needed, once they are many."""
        wanted = self.wanted
        if sum(len(rows) for rows, _ in self.kept) <= len(wanted.rows) + 4 * wanted.n_drawn + _SLACK:
            return self
        by_id = [found.rows for found in self.hits.values() if found.unique]
        needed = np.concatenate([wanted.rows, self.lowest(wanted.n_drawn), *by_id])
        kept = []
        for rows, batch in self.kept:
            mask = np.isin(rows, needed)
            if mask.any():
                kept.append((rows[mask], batch.filter(pa.array(mask))))
        return replace(self, kept=kept)


def survey(wanted: Wanted, begin: int, batch: ArrowTable) -> Survey:
    """Look at one batch, whose first row has this number."""
    n_all = batch.num_rows
    values, batch, places = without_blanks(batch, wanted.missing_texts)
    rows = begin + places
    counts = {name: count(values[name], rows, role) for name, role in wanted.features.items()}
    names = pa.array(wanted.ids, pa.string())
    hits = {}
    for name in wanted.id_columns:
        cells = counts[name] if wanted.features.get(name) == "cell" else None
        # A column of fractions holds no ids, unless its name says so.
        are_fractions = cells and cells.n_fractions and cells.form(".").n == cells.rows - cells.gaps
        if looks_like_id(name) or not are_fractions:
            hits[name] = ids.count_ids(batch[name], rows, names)
    by_id = [found.rows for found in hits.values() if found.unique]
    mask = np.isin(rows, np.concatenate([wanted.rows, *by_id]))
    if wanted.n_drawn:
        mask |= scramble(rows) <= np.uint64(wanted.highest)
    kept = [(rows[mask], batch.filter(pa.array(mask)))] if mask.any() else []
    return Survey(wanted, len(rows), n_all - len(rows), counts, hits, kept).pruned()


def without_blanks(batch: ArrowTable, missing_texts: Sequence[str] = ()) -> tuple[ArrowTable, ArrowTable, Indices]:
    """Return the rows that have any value, with gaps and as they are, and their places.

    Spreadsheets write blank rows.
    """
    values = with_gaps(batch, missing_texts)
    if any(not column.null_count for column in values.columns):
        return values, batch, np.arange(batch.num_rows)
    places = np.flatnonzero(~np.all([np.asarray(column.is_null()) for column in values.columns], axis=0))
    return values.take(pa.array(places)), batch.take(pa.array(places)), places


def surveyed(table: Table, wanted: Wanted) -> Survey:
    """Look at a whole table."""
    columns = list(dict.fromkeys([*wanted.features, *wanted.id_columns, *wanted.shown]))
    found: Survey | None = table.sum(partial(survey, wanted), columns)
    if found is None or not found.n_rows:
        sheet = " Name another sheet with `sheet`." if table.notes.get("sheet") else ""
        raise InputError(f"{table.name} has no rows.{sheet}")
    return found


def look_for(
    table: Table,
    reading: Reading,
    left_out: Collection[str] = (),
    answer_ids: Collection[str] = (),
    label_ids: Collection[str] = (),
) -> Wanted:
    """Decide what a pass looks for: columns that are not left out, and ids."""
    id_column = reading.id_column
    columns = {"category": reading.categories, "image": reading.images, "text": reading.text}
    table.check_columns({"leave out": left_out, "read as categories": reading.categories})
    table.check_columns({"read as texts": reading.text, "take pictures from": reading.images})
    table.check_columns({"take ids from": [id_column or None]})
    named = ids.named_id_column(table.types, id_column)
    given = {name: role for role, names in columns.items() for name in names}
    string = "cell" if table.format in TEXT_FORMATS else "string"
    features: dict[str, Any] = {}
    for name, dtype in table.types.items():
        # An index is no feature, unless it is named as one.
        if name not in left_out and (name in given or name not in table.index):
            # A frame's own categories have a type of their own.
            features[name] = given.get(name) or (string if str(dtype).endswith("string") else "typed")
    asked = answer_ids if id_column is None else ()
    id_columns: list[str] = []
    if asked:
        # Any column may turn out to hold the ids, or to be a feature.
        free = [name for name in table.types if features.get(name) not in ("text", "image") and name not in left_out]
        id_columns = [name for name in free if ids.may_hold_ids(name, table.types[name])]
    elif named is not None:
        id_columns = [named]
        features.pop(named, None)
    wanted = tuple(sorted({*answer_ids, *label_ids}))
    return Wanted(
        features,
        tuple(id_columns),
        wanted,
        frozenset(asked),
        is_open=not asked and named is None and id_column is None,
        n_drawn=MOST_TEXTS,
        missing_texts=table.missing_texts,
    )


def decide(table: Table, found: Survey, reading: Reading, image_root: Path) -> Columns:
    """Decide how the table becomes features, or name every column in the way."""
    missing, max_categories = reading.missing, reading.max_categories
    roles = found.wanted.features
    id_column = _id_column(table, found)
    counts = {name: one for name, one in found.counts.items() if name != id_column and not _numbers_rows(name, one)}
    # Different texts are many categories, which the user decides about, or none that new rows could have.
    named = _column_of_names(table, found)
    if named in counts and (
        found.counts[named].form(".").n or len(counts[named].texts or ()) in range(1, 1 + max_categories)
    ):
        del counts[named]
    if unnamed := [name for name, one in counts.items() if _UNNAMED.fullmatch(name) and one.rows > one.gaps]:
        raise InputError(
            f"{table.name}: columns without a name hold values: {listed(map(quoted, unnamed))}. "
            "Name them, or leave them out with `drop`. If the names are further down, say with "
            "`skip_rows` how many lines are above them."
        )
    decimal = decimal_mark([one for name, one in counts.items() if roles[name] == "cell"], table.mark != ";")
    # Which other rows are kept depends on how the table was read.
    rows = found.lowest(min(found.wanted.n_drawn or MOST_TEXTS, MOST_TEXTS))
    transformers: dict[str, Transformer] = {}
    described: list[tuple[Column, Array]] = []
    problems = []
    for name, one in counts.items():
        where, role = f"{table.name}: column {quoted(name)}", roles[name]
        if role == "image":
            if reading.embedding == CONTRASTIVE:
                transformers[name], X = EncodedImages.fit(where, found.cells(name, rows), image_root, missing != "mean")
            else:
                cells = found.cells(name, found.lowest(min(len(rows), MAX_IMAGES)))
                transformers[name], X = ImageFeatures.fit(where, cells, image_root, missing != "mean")
        elif role == "text" or (role in ("string", "cell") and _are_sentences(name, one, found, rows, max_categories)):
            cells = found.cells(name, rows)
            if reading.text_model is None:
                transformers[name], X = TextFeatures.fit(where, cells)
            else:
                transformers[name], X = EmbeddedTexts.fit(where, str(reading.text_model), cells)
        if name in transformers:
            fill = 0.0 if missing == "mean" and role == "image" else None
            # With one deviation for all, components keep their relative weights.
            variance = np.full(transformers[name].width, X.var(axis=0).mean())
            column = Column(name, transformers[name].kind, fill=fill)
            described.append((column, np.array([X.mean(axis=0), variance])))
        # A column without any value is left out, unless missing values are refused.
        elif one.rows > one.gaps or missing == "error":
            how = role, decimal, missing, max_categories, table.where
            try:
                described.append(describe(name, table.types[name], one, *how))
            except Problem as problem:
                problems.append(problem)
    refuse(table.name, problems)
    if reading.text_model is not None and not any(made.kind == "text" for made in transformers.values()):
        raise InputError(f"{table.name} has no column of texts for `text_model` to read. Name it with `text`.")
    if not described:
        raise InputError(f"{table.name} has no columns to learn from.")
    mean, variance = np.hstack([moments for _, moments in described])
    scale = usable_scale(mean, np.sqrt(variance))
    described_columns = tuple(column for column, _ in described)
    columns = Columns(described_columns, id_column, mean, scale, transformers=transformers, image_root=image_root)
    if vectors := [part.start for one, part in columns.parts if one.name in table.together]:
        scale[vectors] = np.sqrt(np.mean(scale[vectors] ** 2))
    return columns


def _numbers_rows(name: str, found: ColumnCounts) -> bool:
    """Whether a column without a name, or with a name of ids, numbers the rows from 0 or 1."""
    n, _, squares, low, high = found.form(".")
    counts = n == found.rows and low in (0, 1) and high - low == n - 1 and not found.n_fractions
    # The sum of squares of consecutive numbers about their mean.
    counts = counts and abs(12 * squares - n * (n * n - 1)) <= 1e-6 * n**3
    return counts and bool(_UNNAMED.fullmatch(name) or looks_like_id(name))


def _column_of_names(table: Table, found: Survey) -> str | None:
    """Return the first column if its cells are all different, and names or numbers of rows rather than values."""
    name = next(iter(table.types), "")
    one, role = found.counts.get(name), found.wanted.features.get(name)
    if one is None or role not in ("cell", "string", "typed") or not ids.may_hold_ids(name, table.types[name]):
        return None
    rows = found.lowest(MOST_TEXTS)
    cells = found.cells(name, rows)
    if one.gaps or _numbers_rows(name, one) or len(set(cells)) < max(len(cells), _FEWEST_NAMED):
        return None
    n, _, _, low, high = one.form(".")
    if n == one.rows and not one.n_fractions:
        padded = any(cell and cell[0] == "0" and len(cell) > 1 for cell in cells)
        return name if padded or looks_like_id(name) or high - low == n - 1 else None
    # Digits in a column of texts are not numbers.
    n = n if role == "string" else 0
    are_values = any(2 * (one.form(form).n - n) > one.rows for form in one.forms)
    # No sentences either: these are texts to learn from.
    return None if are_values or _are_sentences(name, one, found, rows, 0) else name


def _are_sentences(name: str, one: ColumnCounts, found: Survey, rows: Codes, max_categories: int) -> bool:
    """Whether a column holds texts of several words, too many different ones to be categories."""
    are_few = one.texts is not None and len(one.texts) <= max_categories
    if are_few or 2 * one.form(".").n > one.rows - one.gaps:
        return False
    words = [len(cell.split()) for cell in found.cells(name, rows) if cell]
    return bool(words) and sum(words) >= _WORDS_OF_A_TEXT * len(words)


def all_ids(table: Table, id_column: str | None) -> list[str]:
    """Return the id of every row."""
    return list(chain.from_iterable(table.map(partial(_ids, id_column), [] if id_column is None else [id_column])))


def _ids(id_column: str | None, begin: int, batch: ArrowTable) -> list[str]:
    return ids.ids_of(batch, id_column, np.arange(begin, begin + batch.num_rows))


def why_unknown(table: Table, id_column: str | None, names: Iterable[str], whose: str = "answers") -> str:
    """Say why a table may not have these ids; it is read once more."""
    message = unknown_ids(names, all_ids(table, id_column), id_column, whose)
    sheet = table.notes.get("sheet")
    return f"{message} Its sheet {quoted(sheet)} was read; name another with `sheet`." if sheet else message


def read_ids(source: Location | Frame, reading: Reading, answer_ids: Collection[str]) -> tuple[list[str], str | None]:
    """Read the ids of a table alone, and the column that they are in, found as for a fit."""
    table = open_table(source, reading.sheet, reading.skip_rows)
    wanted = look_for(table, Reading(reading.id_column), answer_ids=answer_ids)
    features = {name: role for name, role in wanted.features.items() if name in wanted.id_columns}
    chosen = _id_column(table, surveyed(table, replace(wanted, features=features)))
    return all_ids(table, chosen), chosen


def _id_column(table: Table, found: Survey) -> str | None:
    wanted = found.wanted
    if not wanted.asked:
        return _column_of_names(table, found) if wanted.is_open else next(iter(wanted.id_columns), None)
    n_rows = found.n_rows + found.n_blank
    chosen = ids.choose_id_column(table.name, wanted.ids, found.hits, wanted.asked, n_rows)
    if chosen is not None:
        return chosen
    # A column with the ids in another spelling is the one that was meant, and an error says how they
    # differ. Answers 1 and 2 about rows 001 and 002 must not be taken for row numbers, nor row
    # numbers for ages.
    numbers = all(ids.is_row_number(name, n_rows) for name in wanted.asked)
    share = 1.0 if numbers else 0.5
    for name in wanted.id_columns:
        if (looks_like_id(name) or not numbers) and ids.spelled_alike(wanted.asked, all_ids(table, name), share):
            return name
    # Ids may be in an index without a name, unless row numbers mean the same rows.
    if hidden := [name for name in table.index if name not in table.types]:
        place = {label: str(row) for row, label in enumerate(all_ids(table, hidden[0]))}
        if wanted.asked <= place.keys() and any(place[name] != name for name in wanted.asked):
            raise InputError(
                f"{table.name}: the answers may name rows by its index, which has no name, or by row numbers from 0. "
                "Give `id_column=''` for row numbers, or name the index: table.index.name = 'id'."
            )
    return None
