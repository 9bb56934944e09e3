"""Which of some texts are ids of a table: columns of a file of answers are recognised by them."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np

from sdulearn.errors import pa
from sdulearn.io.files import Location
from sdulearn.reading import Reading
from sdulearn.tables.ids import count_ids, is_row_number, may_hold_ids
from sdulearn.tables.source import open_table
from sdulearn.types import ArrowTable, Codes, Frame


def ids_among(source: Location | Frame, reading: Reading, texts: Collection[str]) -> list[set[str]]:
    """Return the texts that are ids, for each column whose cells tell rows apart, or else by row numbers."""
    table = open_table(source, reading.sheet, reading.skip_rows)
    columns = [reading.id_column] if reading.id_column else []
    if reading.id_column is None:
        columns = [
            name for name, dtype in table.types.items() if may_hold_ids(name, dtype) and name not in reading.drop
        ]
    wanted = sorted(texts)
    times = {name: np.zeros(len(wanted), dtype=np.int64) for name in columns if name in table.types}
    n_rows = 0
    for n, counts in table.map(partial(_counts, tuple(times), tuple(wanted)), table.some(list(times))):
        n_rows += n
        times = {name: times[name] + counts[name] for name in times}
    found = [{wanted[k] for k in np.flatnonzero(n)} for n in times.values() if n.max(initial=0) == 1]
    return found or [{text for text in wanted if is_row_number(text, n_rows)}]


def _counts(
    columns: tuple[str, ...], texts: tuple[str, ...], begin: int, batch: ArrowTable
) -> tuple[int, dict[str, Codes]]:
    """Return the number of rows of a batch, and how often each text is in each column."""
    rows, wanted = np.arange(batch.num_rows), pa.array(texts, pa.string())
    return batch.num_rows, {name: count_ids(batch[name], rows, wanted).times for name in columns}
