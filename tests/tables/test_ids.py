"""Which column holds the ids: what fits, what does not, and what is not clear."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sdulearn import fit_table
from sdulearn.errors import InputError
from sdulearn.io.files import as_text
from sdulearn.tables.ids import (
    IdHits,
    choose_id_column,
    count_ids,
    id_texts,
    is_row_number,
    looks_like_id,
    may_hold_ids,
    spelled_alike,
    unknown_ids,
)
from tests.reference import refuses

# Ids that are row numbers of a table of 100 rows, and ids that are not.
NUMBERS = ["1", "2", "5", "7"]
NAMES = ["ann", "bob", "cy", "dee"]
REFUSED = "could be the column of ids"


def found(number, unique=True):
    """So many of four ids were found; where they are not unique, the first twice."""
    times = np.array([1] * number + [0] * (4 - number))
    if not unique:
        times[0] = 2
    return IdHits(times, times - 1)


def test_stretches_of_a_column_hold_what_the_column_holds():
    """Also an id of the first row, which the other stretches have not."""
    column, ids = pa.array(["a", "b", "c", "d", "b"]), pa.array(["a", "d", "x", "b"])
    for cut in range(6):
        begin, rest = (count_ids(column[part], np.arange(5)[part], ids) for part in (slice(cut), slice(cut, None)))
        joined = begin + rest
        assert joined.times.tolist() == [1, 1, 0, 2]
        assert joined.rows.tolist() == [0, 3, -1, 4]


CASES = [
    # Nothing fits but row numbers, or nothing at all.
    (NUMBERS, {}, None),
    (NUMBERS, {"age": found(1)}, None),
    (NAMES, {}, None),
    # One column holds every id, and row numbers are out of the question; or it is called so.
    (NAMES, {"surname_at_birth": found(4)}, "surname_at_birth"),
    (NUMBERS, {"id": found(4), "rank": found(4)}, "id"),
    (NAMES, {"id": found(0), "person_id": found(4)}, "person_id"),
    # It may as well be a column of small whole numbers, or row numbers: not clear.
    (NUMBERS, {"person_id": found(4)}, REFUSED),
    (NUMBERS, {"rank": found(4)}, REFUSED),
    (NUMBERS, {"person_id": found(3)}, REFUSED),
    (NAMES, {"first": found(4), "second": found(4)}, REFUSED),
    # Each id on several rows: no column of ids, unless it is called so.
    (NUMBERS, {"rank": found(4, unique=False)}, None),
    (NAMES, {"town": found(4, unique=False)}, None),
    (NAMES, {"unique_id": found(4, unique=False)}, "unique_id"),
    # Nearly all ids are there, and no other column does better.
    (NAMES, {"name": found(3), "nick": found(2)}, "name"),
    (NAMES, {"who": found(2)}, "who"),
    (NAMES, {"who": found(1)}, None),
    # Too few of them, under a usual name: taken, so that the message can name the ids that are missing.
    (NAMES, {"unique_id": found(1)}, "unique_id"),
]


@pytest.mark.parametrize(("ids", "hits", "expected"), CASES)
def test_the_column_that_fits_the_answers(ids, hits, expected):
    # An id of a label, which is on no row, is not one of the answers.
    padded = {name: IdHits(np.append(one.times, 0), np.append(one.rows, -1)) for name, one in hits.items()}

    def chosen(hits):
        return choose_id_column("t.csv", (*ids, "label"), hits, ids, 100)

    if expected == REFUSED:
        with refuses("id_column"):
            chosen(padded)
    else:
        assert chosen(padded) == chosen(dict(reversed(padded.items()))) == expected


def test_names_and_types_of_id_columns():
    assert all(map(looks_like_id, ["id", "person_id", "PersonID", "key", "nr", "Customer No", "name", "zip-code"]))
    assert not any(map(looks_like_id, ["idea", "grid", "age", "nrs", "unnamed 3", "encoded", "paid"]))
    for dtype, holds in ((pa.int8(), True), (pa.large_string(), True), (pa.bool_(), False), (pa.date32(), False)):
        assert may_hold_ids("x", dtype) == holds
    assert all(may_hold_ids("x", pa.dictionary(pa.int8(), dtype)) for dtype in (pa.string(), pa.int64()))
    assert may_hold_ids("x_id", pa.float64())
    assert not may_hold_ids("x", pa.float64())


@pytest.mark.parametrize(
    "values",
    [
        pa.array([7, -1, 2**62]), pa.array([7, None]), pa.array([7.0, 0.1, 1e300, None]), pa.array([True, False, None]),
        pa.array([" a", "b\t", None, "", "é\u2003"]), pa.array([" a", None], pa.large_string()),
        pa.array(["a", "b ", "a", None]).dictionary_encode(), pa.array([datetime.date(2024, 1, 2)]),
        pa.array([decimal.Decimal("1.50")]), pa.array([b"x"]),
    ],
)  # fmt: skip
def test_ids_are_spelled_one_way(values):
    assert id_texts(values).to_pylist() == [as_text(value) for value in values.to_pylist()]
    assert id_texts(pa.chunked_array([values, values])).to_pylist() == 2 * [as_text(v) for v in values.to_pylist()]


@pytest.mark.parametrize(
    ("unknown", "known", "id_column", "why"),
    [
        ("007", ["7", "8"], "id", "Write the table again with the ids as text"),
        ("3", ["0", "1", "2"], None, "If the answers count rows from 1, add a column"),
        ("x", ["0", "1", "2"], None, "rows are numbered 0 to 2; name one with `id_column`"),
        ("0", ["1", "2", "3"], "nr", "If the answers count rows from 0, give `id_column=''`"),
        ("bob", ["ann", "cy"], "who", "Its ids are in 'who'; name another column with `id_column`"),
    ],
)
def test_why_an_id_may_be_unknown(unknown, known, id_column, why):
    """Ids that are spelled otherwise are in tests/test_everyday_files.py."""
    assert why in unknown_ids([unknown, unknown], known, id_column)


def test_ids_in_another_spelling():
    asked = ["7", "8", "9"]
    assert spelled_alike(asked, ["007", "008", "x"])
    assert not spelled_alike(asked, ["007", "008", "x"], share=0.7)
    # On two rows each they tell nothing.
    assert not spelled_alike(asked, ["007", "0007", "008", "0008", "009"])


@pytest.mark.parametrize("is_file", [True, False])
def test_ids_among_fractions_have_to_be_named(tmp_path, is_file):
    """A column of fractions is not searched for ids, so the message may not say that they are spelled otherwise."""
    frame = pd.DataFrame({"x": np.arange(40) + 0.5, "a": np.arange(40) % 7})
    answers = pd.DataFrame({"id_a": frame["x"][:20], "id_b": frame["x"][20:].array, "label": [1, 0] * 10})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError) as refused:
        fit_table(tmp_path / "t.csv" if is_file else frame, answers)
    assert "`id_column`" in str(refused.value)
    assert "differ" not in str(refused.value)
    assert fit_table(frame, answers, id_column="x", model="linear").columns.id_column == "x"


def test_row_numbers():
    names = {"0", "7", "9", "10", "007", "-1", "٣", "", "x", "9" * 5000}
    assert {name for name in names if is_row_number(name, 10)} == {"0", "7", "9"}
    assert {name for name in names if is_row_number(name, 1000)} == {"0", "7", "9", "10"}
