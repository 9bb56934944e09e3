"""One pass over a table: what its columns hold, where ids are, and the rows to keep."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.column_counts import ColumnCounts, count, decide
from sdulearn.columns import Columns
from sdulearn.errors import InputError, listed, pa, quoted
from sdulearn.io import ids
from sdulearn.io.files import Location, is_location
from sdulearn.io.ids import IdHits, looks_like_id, unknown_ids
from sdulearn.io.images import MOST_PICTURES, ImageFeatures
from sdulearn.io.tables import TEXT_FORMATS, Part, Table, batch_rows, open_table, read_svmlight, table_format
from sdulearn.pairs import scramble
from sdulearn.text_columns import TextFeatures
from sdulearn.types import Array, ArrowTable, Codes, Frame, Indices, Mask

_EVERY = 2**64 - 1
_NO_ROWS = np.empty(0, dtype=np.int64)
# Rows that may be kept in vain.
_SLACK = 1000
# Rows by whose texts, at most, these become features; words of a text, on average.
MOST_TEXTS = 20_000
_WORDS_OF_A_TEXT = 3
_UNNAMED = re.compile(r"Unnamed: \d+")


@dataclass(frozen=True)
class Wanted:
    """What a pass looks for."""

    features: tuple[str, ...]  # columns to learn from
    guessed: frozenset[str]  # those whose texts may be numbers
    sentences: frozenset[str]  # those that may hold texts of several words
    id_columns: tuple[str, ...]  # columns that may hold the ids
    ids: tuple[str, ...] = ()  # ids whose rows are kept
    asked: frozenset[str] = frozenset()  # those of answers, where they decide the column of ids
    rows: Codes = field(default_factory=lambda: _NO_ROWS)  # numbers of further rows to keep
    n_drawn: int = 0  # so many more are kept: those with the lowest marks, up to the highest
    highest: int = _EVERY
    shown: tuple[str, ...] = ()  # columns to keep beside these
    texts: tuple[str, ...] = ()  # columns of texts and of pictures, which become features by what the kept rows hold
    images: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """All columns to read."""
        return list(dict.fromkeys([*self.features, *self.id_columns, *self.shown]))


@dataclass(frozen=True)
class Survey:
    """What was found in some rows; ``+`` joins two stretches of rows, in any order."""

    n_rows: int
    counts: Mapping[str, ColumnCounts]
    hits: Mapping[str, IdHits]  # by column that may hold ids
    n_drawn: int
    # numbers of rows that are kept, whether they were asked for by number, and what stands on them
    kept: list[tuple[Codes, Mask, ArrowTable]]
    n_blank: int = 0  # rows without any value, which are left out

    def __add__(self, other: Survey) -> Survey:
        return Survey(
            self.n_rows + other.n_rows,
            {name: found + other.counts[name] for name, found in self.counts.items()},
            {name: found.joined(other.hits[name]) for name, found in self.hits.items() if name in other.hits},
            self.n_drawn,
            self.kept + other.kept,
            self.n_blank + other.n_blank,
        ).pruned()

    @property
    def rows(self) -> Codes:
        """Numbers of all rows that are kept."""
        return np.concatenate([rows for rows, _, _ in self.kept]) if self.kept else _NO_ROWS

    def cells(self, name: str, rows: Codes) -> list[str | None]:
        """The texts in a column of some of the rows that are kept."""
        text = pa.string()
        found = [cell for _, _, batch in self.kept for cell in batch[name].cast(text).to_pylist()]
        order = np.argsort(self.rows)
        return [found[k] for k in order[np.searchsorted(self.rows, rows, sorter=order)]]

    def lowest(self, number: int) -> Codes:
        """So many rows with the lowest marks, sorted."""
        rows = self.rows
        return np.sort(rows[np.argsort(scramble(rows), kind="stable")[:number]])

    def pruned(self) -> Survey:
        """Without rows that are needed no more, where they are so many that it is worth a look."""
        if sum(len(rows) - int(fixed.sum()) for rows, fixed, _ in self.kept) <= 4 * self.n_drawn + _SLACK:
            return self
        marks = np.sort(scramble(self.rows))[: self.n_drawn]
        by_id = np.concatenate([_NO_ROWS, *(found.rows for found in self.hits.values() if found.unique)])
        kept = []
        for rows, fixed, batch in self.kept:
            mask = fixed | (scramble(rows) <= marks[-1] if len(marks) else False)
            # They are all here, in their order.
            mask[np.searchsorted(rows, by_id[(by_id >= rows[0]) & (by_id <= rows[-1])])] = True
            kept += _taken(rows, fixed, batch, mask)
        return replace(self, kept=kept)


def _taken(rows: Codes, fixed: Mask, batch: ArrowTable, mask: Mask) -> list[tuple[Codes, Mask, ArrowTable]]:
    """Some rows of a batch; nothing where it has none of them."""
    if not mask.any():
        return []
    return [(rows[mask], fixed[mask], batch.filter(pa.array(mask)))]


def survey(batch: ArrowTable, rows: Codes, _: None, wanted: Wanted) -> Survey | None:
    """A pass over one batch."""
    if not len(rows):
        return None
    n_all = len(rows)
    batch, places = without_blanks(batch)
    rows = rows[places]
    counts = {}
    for name in wanted.features:
        made = name in wanted.texts or name in wanted.images
        gaps = ColumnCounts(len(rows), batch[name].null_count)
        counts[name] = gaps if made else count(batch[name], rows, name in wanted.guessed)
    names = pa.array(wanted.ids, pa.string())
    hits = {}
    for name in wanted.id_columns:
        of = counts[name] if name in wanted.guessed else None
        # A column of fractions holds no ids, unless it is called so.
        if not (of and of.n_fractions and of.form(".").n == of.rows - of.gaps and not looks_like_id(name)):
            hits[name] = ids.count_ids(batch[name], rows, names)
    fixed = np.isin(rows, wanted.rows)
    mask = fixed | (scramble(rows) <= np.uint64(wanted.highest) if wanted.n_drawn else False)
    for one in hits.values():
        if one.unique:
            mask[np.searchsorted(rows, one.rows[one.rows >= 0])] = True
    return Survey(len(rows), counts, hits, wanted.n_drawn, _taken(rows, fixed, batch, mask), n_all - len(rows)).pruned()


def without_blanks(batch: ArrowTable) -> tuple[ArrowTable, Indices]:
    """The rows that have any value, and their places: spreadsheets write blank rows."""
    if any(not column.null_count for column in batch.columns):
        return batch, np.arange(batch.num_rows)
    places = np.flatnonzero(~np.all([np.asarray(column.is_null()) for column in batch.columns], axis=0))
    return batch.take(pa.array(places)), places


def blocks_of(part: Part, columns: Sequence[str], rows: int) -> Iterator[tuple[ArrowTable, Codes, None]]:
    """Batches with the numbers of their rows, as :class:`sdulearn.blocks.Blocks` takes them."""
    for begin, batch in part(columns, rows):
        yield batch, np.arange(begin, begin + batch.num_rows), None


def parts_of(table: Table, columns: Sequence[str]) -> list[Any]:
    """A table's parts as those of blocks."""
    columns = table.some(columns)
    return [partial(blocks_of, part, columns, batch_rows(len(columns))) for part in table.parts]


def look_for(
    table: Table,
    *,
    id_column: str | None = None,
    left_out: Collection[str | None] = (),
    categories: Collection[str] = (),
    text: Collection[str] = (),
    images: Collection[str] = (),
    answer_ids: Collection[str] = (),
    label_ids: Collection[str] = (),
) -> Wanted:
    """All columns but those left out; the ids of answers may tell which column holds them."""
    table.check_columns({"leave out": left_out, "read as categories": categories, "read as texts": text})
    table.check_columns({"take pictures from": images, "take ids from": [id_column or None]})
    named = ids.named_id_column(table.types, id_column)
    made = {*text, *images}
    free = [name for name in table.types if name not in left_out]
    asked = answer_ids if id_column is None else ()
    id_columns = [] if named is None else [named]
    features = [name for name in free if name != named]
    if asked:
        # Any of them may turn out to hold the ids, or to be a feature.
        id_columns = [name for name in free if name not in made and ids.may_hold_ids(name, table.types[name])]
        features = free
    # A frame's own categories are a type of their own.
    texts = frozenset(name for name in features if str(table.types[name]).endswith("string")) - {*categories, *made}
    return Wanted(
        tuple(features),
        texts if table.format in TEXT_FORMATS else frozenset(),
        texts,
        tuple(id_columns),
        tuple(sorted({*answer_ids, *label_ids})),
        frozenset(asked),
        n_drawn=MOST_TEXTS,
        texts=tuple(name for name in features if name in text),
        images=tuple(name for name in features if name in images),
    )


def decided(
    table: Table, wanted: Wanted, found: Survey, missing: str, max_categories: int, image_root: Path
) -> Columns:
    """How the table becomes features: ids are none, and neither are numbers of rows."""
    chosen = _id_column(table, wanted, found)
    counts = {name: one for name, one in found.counts.items() if name != chosen and not _numbers_rows(name, one)}
    if unnamed := [name for name, one in counts.items() if _UNNAMED.fullmatch(name) and one.rows > one.gaps]:
        raise InputError(
            f"{table.name}: columns without a name hold values: {listed(map(quoted, unnamed))}. "
            "Name them, or leave them out with `drop`. If the names are further down, say with "
            "`skip_rows` how many lines are above them."
        )
    # Rows that were kept for another reason depend on the way in which the table was read.
    rows = found.lowest(min(found.n_drawn or MOST_TEXTS, MOST_TEXTS))
    made: dict[str, tuple[TextFeatures | ImageFeatures, Array]] = {}
    for name in counts:
        where = f"{table.name}: column {quoted(name)}"
        if name in wanted.texts or (name in wanted.sentences and _holds_texts(name, found, rows, max_categories)):
            made[name] = TextFeatures.fit(where, found.cells(name, rows))
        elif name in wanted.images:
            cells = found.cells(name, found.lowest(min(len(rows), MOST_PICTURES)))
            made[name] = ImageFeatures.fit(where, cells, image_root, missing != "mean")
    how = chosen, missing, max_categories, table.where, table.mark != ";", made
    columns = decide(table.name, table.types, counts, wanted.guessed, *how)
    vectors = [part.start for one, part in columns.parts if one.name in table.together]
    columns.scale[vectors] = np.sqrt(np.mean(columns.scale[vectors] ** 2)) if vectors else 1.0
    return replace(columns, image_root=image_root)


def _numbers_rows(name: str, found: ColumnCounts) -> bool:
    """Whether a column without a name, or called as ids are, counts the rows from 0 or 1."""
    n, _, squares, low, high = found.form(".")
    counts = n == found.rows and low in (0, 1) and high - low == n - 1 and not found.n_fractions
    # Squares as of consecutive numbers.
    counts = counts and abs(12 * squares - n * (n * n - 1)) <= 1e-6 * n**3
    return counts and bool(_UNNAMED.fullmatch(name) or looks_like_id(name))


def _holds_texts(name: str, found: Survey, rows: Codes, max_categories: int) -> bool:
    """Whether a column holds texts of several words, too many different ones to be categories."""
    counted = found.counts[name]
    are_few = counted.texts is not None and len(counted.texts) <= max_categories
    if are_few or 2 * counted.form(".").n > counted.rows - counted.gaps:
        return False
    words = [len(cell.split()) for cell in found.cells(name, rows) if cell]
    return bool(words) and sum(words) >= _WORDS_OF_A_TEXT * len(words)


def all_ids(table: Table, id_column: str | None) -> list[str]:
    """The id of every row."""
    found: list[str] = []
    for begin, batch in table.batches([] if id_column is None else [id_column]):
        found += ids.ids_of(batch, id_column, np.arange(begin, begin + batch.num_rows))
    return found


def why_unknown(table: Table, id_column: str | None, names: Iterable[str], whose: str = "answers") -> str:
    """What is said of ids that a table does not have; it is read once more."""
    return unknown_ids(names, all_ids(table, id_column), id_column, whose)


def read_ids(
    source: Location | Frame,
    id_column: str | None,
    answer_ids: Collection[str],
    sheet: str | None = None,
    skip_rows: int | None = None,
) -> tuple[list[str], str | None]:
    """The ids of a table alone and the column that they are in, found as for a fit."""
    if is_location(source) and table_format(source) == "svm":
        return list(map(str, range(read_svmlight(source)[1].shape[0]))), None
    table = open_table(source, sheet, skip_rows)
    wanted = look_for(table, id_column=id_column, answer_ids=answer_ids)
    found = surveyed(table, replace(wanted, features=wanted.id_columns))
    chosen = _id_column(table, wanted, found)
    return all_ids(table, chosen), chosen


def _id_column(table: Table, wanted: Wanted, found: Survey) -> str | None:
    if not wanted.asked:
        return next(iter(wanted.id_columns), None)
    n_rows = found.n_rows + found.n_blank
    chosen = ids.choose_id_column(table.name, wanted.ids, found.hits, wanted.asked, n_rows)
    if chosen is not None:
        return chosen
    # The column that was meant: the ids are then unknown, and why is said of them. Answers 1 and 2
    # to rows 001 and 002 must not be taken for row numbers, nor the numbers of rows for ages.
    numbers = all(ids.is_row_number(name, n_rows) for name in wanted.asked)
    share = 1.0 if numbers else 0.5
    for name in wanted.id_columns:
        if (looks_like_id(name) or not numbers) and ids.spelled_alike(wanted.asked, all_ids(table, name), share):
            return name
    return None


def surveyed(table: Table, wanted: Wanted, blocks: Callable[..., Any] | None = None) -> Survey:
    """A pass over a whole table; ``blocks`` makes blocks of its parts and number of rows."""
    from sdulearn.blocks import LocalBlocks

    parts = parts_of(table, wanted.columns)
    found: Survey | None = (LocalBlocks(parts) if blocks is None else blocks(parts, table.n_rows)).sum(survey, wanted)
    if found is None or not found.n_rows:
        raise InputError(f"{table.name} has no rows.")
    return found
