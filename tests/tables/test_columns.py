"""Columns: decided by sums over rows, whatever the portions, and used the same way ever after."""

import datetime
import decimal
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sdulearn.errors import InputError
from sdulearn.reading import Reading
from sdulearn.tables import decide as column_counts
from sdulearn.tables.columns import Column
from sdulearn.tables.decide import usable_scale
from sdulearn.tables.scan import decide, look_for, survey, without_blanks
from sdulearn.tables.source import open_table
from sdulearn.tables.spelling import Spelling
from tests.reference import refuses, unscaled

NUMBERS = st.none() | st.floats(-1e6, 1e6) | st.just(float("nan"))
ROWS = st.lists(
    st.tuples(NUMBERS, st.none() | st.booleans(), st.none() | st.sampled_from("xyz")), min_size=1, max_size=30
)


def decided(pieces, *, guessed=False, missing="error", most=50, backwards=False, points=True, categories=()):
    """The columns of a table that comes in pieces; ``guessed`` as those of a text file."""
    table = replace(open_table(pa.concat_tables(pieces)), name="t", mark="," if points else ";")
    table = replace(table, format="csv" if guessed else "frame")
    wanted = look_for(table, Reading("", categories=categories))
    begins = np.cumsum([0, *(piece.num_rows for piece in pieces)]).tolist()
    found = [survey(wanted, begin, piece) for piece, begin in zip(pieces, begins, strict=False)]
    reading = Reading(missing=missing, max_categories=most)
    return decide(table, reduce(add, found[::-1] if backwards else found), reading, Path())


def split(table, cut):
    return [piece for piece in (table[:cut], table[cut:]) if piece.num_rows] or [table]


def decided_or_refused(*arguments, **options):
    try:
        return decided(*arguments, **options)
    except InputError as error:
        return str(error)


def assert_same(one, other):
    if isinstance(one, str):
        assert one == other
        return
    for a, b in zip(one.columns, other.columns, strict=True):
        same = ("name", "kind", "categories", "text", "n_gaps", "marked", "cycles")
        assert [getattr(a, name) for name in same] == [getattr(b, name) for name in same]
        assert a.fill == (b.fill if a.kind == "category" else pytest.approx(b.fill, rel=1e-9, abs=1e-6))
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-6)


@settings(max_examples=40)
@given(ROWS, st.integers(0, 30), st.sampled_from(["auto", "error", "mean"]))
def test_columns_do_not_depend_on_the_portions(rows, cut, missing):
    types = (("n", pa.float64()), ("b", pa.bool_()), ("c", pa.string()))
    table = pa.table({name: pa.array([row[k] for row in rows], dtype) for k, (name, dtype) in enumerate(types)})
    table = without_blanks(table)[0]
    assume(table.num_rows)
    whole = decided_or_refused([table], missing=missing, most=2)
    for backwards in (False, True):
        assert_same(whole, decided_or_refused(split(table, cut), missing=missing, most=2, backwards=backwards))
    if not isinstance(whole, str):
        X, _ = whole.encode("t", table)
        np.testing.assert_allclose(whole.mean, X.mean(axis=0), rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(whole.scale, usable_scale(X.mean(axis=0), X.std(axis=0)), rtol=1e-5)


CELLS = st.none() | st.sampled_from(
    ["1", "2.5", "3,5", "-", "true", "FALSE", "x", " 7", "1e3", "0", "1,234", "1.234", "nan "]
)


@settings(max_examples=60)
@given(st.lists(CELLS, min_size=1, max_size=14), st.integers(0, 14))
def test_what_texts_are_does_not_depend_on_the_portions(cells, cut):
    table = pa.table({"a": pa.array(cells, pa.string()), "rows": np.arange(len(cells))})
    whole = decided_or_refused([table], guessed=True, missing="mean")
    assert_same(whole, decided_or_refused(split(table, cut), guessed=True, missing="mean"))
    if not isinstance(whole, str):
        X, unseen = whole.encode("t", table)
        assert not unseen
        np.testing.assert_allclose(whole.scaled(X).mean(axis=0), 0, atol=1e-6)


def read(texts, **options):
    """How a column of texts is understood, and its features."""
    table = pa.table({"x": pa.array(texts, pa.string()), "rows": np.arange(len(texts))})
    found = decided([table], guessed=True, missing="mean", **options)
    return found.columns[0], found.encode("t", table)[0]


@pytest.mark.parametrize("mark", ["-", "n/a", "N/A", "NA", "None", "Unknown", " - ", "?", "K.A.", "#N/A"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_mark_is_a_gap_however_it_is_spelled(mark, decimal):
    found, X = read([f"1{decimal}5", mark, "2", None])
    assert found == Column("x", "number", fill=1.75, text=Spelling(decimal, (mark.strip(),)), n_gaps=2)
    assert X[:, 0].tolist() == [1.5, 1.75, 2.0, 1.75]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["true", "False", "TRUE", None], "boolean"), (["true", "1", "0", "true"], "boolean"),
        (["1", "0", "0"], "number"), (["+1", "-2", ".5", "1e-3", "4."], "number"), (["1", " 2 ", "\t3"], "number"),
        (["true", "yes"], "category"), (["a", "b", "3"], "category"), (["-", "n/a"], "category"),
        (["0x1F", "0x2A"], "category"), (["2024-01-01", "2024-01-02"], "date"), (["1:30", "14:00"], "number"),
        (["a", " a", "b ", "a"], "category"),
    ],
)  # fmt: skip
def test_kinds_of_texts(texts, kind):
    found, X = read(texts)
    assert found.kind == kind
    if kind == "category":
        assert found.categories == tuple(sorted({text.strip() for text in texts}))
    if kind == "boolean":
        present = [text for text in texts if text]
        assert X[: len(present), 0].tolist() == [float(text.lower() in ("true", "1")) for text in present]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([*map(str, range(30)), "twelve"], r"'x' \(1, the first 'twelve' in row 31\).*`categories`"),
        (["1", "1,234", "5,678"], r"between thousands or before decimals in 'x' \('1,234' in row 2\)"),
        (["1", "inf"], r"infinite values in 'x' \(row 2\)"),
        (["1", "1e400"], r"infinite values in 'x' \(row 2\)"),
        (["3/4/2021", "5/12/2021"], "may be day/month or month/day in 'x'.*2021-12-31"),
        (["31.12.55", "1.1.04"], "two digits for the year in 'x'"),
        ([*["1.12.2004"] * 20, "31.2.2004"], r"not dates in 'x' \(1, the first '31.2.2004' in row 21\)"),
    ],
)
def test_texts_that_are_not_clear(texts, message):
    with pytest.raises(InputError, match=message):
        read(texts)


@pytest.mark.parametrize("texts", [["1,5", "2,5"] * 20 + ["x"], ["2021-12-31", "2022-01-01"], ["1/2/21", "3/4/21"]])
def test_categories_are_taken_for_such_whatever_they_look_like(texts):
    assert read(texts, categories=["x"])[0] == Column("x", "category", tuple(sorted(set(texts))), texts[0])


def test_stand_ins_are_mean_and_most_frequent_text():
    """Of texts that are as frequent the first in the alphabet."""
    table = pa.table({"n": [1.0, None, np.nan, 5.0], "b": [True, None, False, True], "c": ["z", "y", None, None]})
    found = decided([table], missing="mean")
    assert [column.fill for column in found.columns] == [3.0, 2 / 3, "y"]
    X, _ = found.encode("t", table)
    np.testing.assert_allclose(X, [[1, 1, 0, 1], [3, 2 / 3, 1, 0], [3, 0, 1, 0], [5, 1, 1, 0]])
    np.testing.assert_allclose([found.mean, found.scale], [X.mean(axis=0), X.std(axis=0)])


def test_gaps_are_marked_where_there_are_many():
    """Linear models see the mean and the mark, trees the gap; texts have a category of their own."""
    rng = np.random.default_rng(0)
    n, few = rng.normal(size=(2, 200))
    n[rng.permutation(200)[:40]] = np.nan
    few[3] = np.nan
    table = pa.table({"n": pa.array(n, from_pandas=True), "few": few, "c": [None] * 20 + ["x"] * 180, "d": ["y"] * 200})
    found = decided([table[:70], table[70:]], missing="auto")
    assert found.feature_names == ["n", "n is missing", "few", "c is missing", "c=x", "d=y"]
    assert [column.n_gaps for column in found.columns] == [40, 1, 20, 0]
    X, unseen = found.encode("t", table)
    np.testing.assert_array_equal(X[:, 1], np.isnan(n))
    np.testing.assert_allclose(X[np.isnan(n), 0], np.nanmean(n))
    np.testing.assert_allclose([found.mean, found.scale], [X.mean(axis=0), [*X.std(axis=0)[:5], 1]], atol=1e-12)
    kept = replace(found, keep_gaps=True)
    gaps, _ = kept.encode("t", table)
    np.testing.assert_array_equal(gaps[:, [0, 2]], np.column_stack([n, few]))
    np.testing.assert_array_equal(kept.filled(gaps), X)
    # One number a column and back: a gap stays one.
    for one, features in ((found, X), (kept, gaps)):
        np.testing.assert_allclose(one.rows(one.values(features), features), one.scaled(features), atol=1e-12)
    # Gaps in a column that had none are filled and counted.
    assert not unseen
    assert found.encode("t", pa.table({**table.to_pydict(), "d": [None] * 200}))[1] == {"d": 200}


@pytest.mark.parametrize(
    ("spread", "form"),
    [(10, "%Y-%m-%d"), (300, None), (3000, None), (30_000, "%d.%m.%Y"), (3000, "%m/%d/%Y"), (300, "%d-%m-%Y %H:%M"),
     (3000, "%Y-%m-%dT%H:%M:%SZ")],
)  # fmt: skip
def test_dates_are_days_and_their_place_in_year_and_week(spread, form):
    days = np.r_[13, np.random.default_rng(0).integers(0, spread, 50), spread].astype("datetime64[D]")
    texts = [day.item() if form is None else day.item().strftime(form) for day in days]
    table = pa.table({"x": texts, "gap": [*texts[:-1], None]})
    found = decided([table[:9], table[9:]], missing="auto", guessed=form is not None)
    assert {column.kind for column in found.columns} == {"date"}
    cycles = {10: (), 300: ("week",), 3000: ("year", "week"), 30_000: ()}[spread]
    assert found.columns[0].cycles == cycles
    X, _ = found.encode("t", table)
    number = days.astype(float)
    waves = [wave(2 * np.pi * number / {"year": 365.2425, "week": 7}[c]) for c in cycles for wave in (np.sin, np.cos)]
    np.testing.assert_allclose(X[:, : 1 + len(waves)], np.transpose([number, *waves]), atol=1e-9)
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.scale, usable_scale(X.mean(axis=0), X.std(axis=0)), rtol=1e-6)
    np.testing.assert_allclose(found.rows(found.values(X), X)[:-1], found.scaled(X)[:-1], atol=1e-9)
    # Declared dates, and the two spellings that cannot be mistaken, are read whatever training had.
    for other in (days, [str(day) for day in days], [day.item().strftime("%d.%m.%Y") for day in days]):
        np.testing.assert_allclose(found.encode("t", pa.table({"x": other, "gap": other}))[0][:, 0], number)
    with refuses(shows=["'x'", "52", "'13'", "row 1"]):
        found.encode("t", pa.table({"x": number.astype(int), "gap": days}))


def test_times_and_durations_are_parts_of_a_day():
    table = pa.table({"t": [datetime.time(6), None], "d": [datetime.timedelta(2), datetime.timedelta(0, 43_200)]})
    found = decided([table], missing="auto")
    assert {column.kind for column in found.columns} == {"number"}
    np.testing.assert_allclose(found.encode("t", table)[0], [[0.25, 2], [0.25, 0.5]])
    assert read(["6:00", "12:30:36"])[1][:, 0].tolist() == pytest.approx([0.25, 0.521250])


def test_times_with_a_zone_are_those_of_one_clock():
    noon = ["2024-03-01T12:00+02:00", "2024-03-01 12:00:00 +0200", "2024-03-01T10:00Z", "2024-03-01T06:30-03:30"]
    days = read(noon)[1][:, 0]
    np.testing.assert_allclose(days, days[2])
    assert days[2] == pytest.approx(
        (np.datetime64("2024-03-01T10:00") - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    )


MARKED = [
    # Training; prediction; the numbers there, or None where they are refused.
    (["1.5", "2"], ["1,5", "2", "1,250"], [1.5, 2, 1.25]),
    (["1.5", "2"], ["1,250", "2"], None),
    (["1.5", "2"], ["1.250", "2"], [1.25, 2]),
    (["1,5", "2"], ["1.5", "2", "1.250"], [1.5, 2, 1.25]),
    (["1,5", "2"], ["1.250", "2"], None),
    (["1,5", "2"], ["1.5", "2,5", "1.250"], None),
    (["1,5", "2", "1.250"], ["1.250", "2"], [1250, 2]),
    (["1.234,50", "12,25"], ["1.234,50", "7"], [1234.5, 7]),
    (["1'234.50", "1,234.5", "0.25"], ["1 234.5", "1,234", "7.5"], [1234.5, 1234, 7.5]),
]


@pytest.mark.parametrize(("texts", "later", "numbers"), MARKED)
def test_decimal_marks_may_change_where_they_are_clear(texts, later, numbers):
    found = decided([pa.table({"x": texts})], guessed=True)
    if numbers is None:
        with refuses(shows=["'x'"]):
            found.encode("t", pa.table({"x": later}))
    else:
        assert found.encode("t", pa.table({"x": later}))[0][:, 0].tolist() == numbers


def test_the_other_columns_tell_the_decimal_mark():
    unclear = ["1.234", "5.678"]
    for others, number in ((["1.5", "2.5"], 1.234), (["1,5", "2,5"], 1234.0)):
        found = decided([pa.table({"x": unclear, "y": others})], guessed=True)
        assert found.columns[0].fill is None
        assert found.encode("t", pa.table({"x": unclear, "y": others}))[0][0, 0] == number
    assert decided([pa.table({"x": unclear})], guessed=True).mean[0] == 3.456
    with refuses(shows=["'x'", "'1.234'", "row 1"]):
        decided([pa.table({"x": unclear})], guessed=True, points=False)


def test_declared_texts_are_numbers_only_where_nothing_else_is_meant():
    """Digits in a column of texts of a frame are categories; decimal commas and dates are not."""
    table = pa.table({"code": ["007", "12"], "price": ["1,5", "2"], "day": ["31.12.2021", "1.1.2022"]})
    assert [column.kind for column in decided([table]).columns] == ["category", "number", "date"]
    coded = table.set_column(1, "price", table["price"].dictionary_encode())
    assert decided([coded]).columns[1].kind == "category"


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64(), pa.int8(), pa.uint64(), pa.decimal128(5, 1)])
@pytest.mark.parametrize("chunked", [False, True])
def test_numbers_of_any_type(dtype, chunked):
    values = pa.array([decimal.Decimal(3), decimal.Decimal(100)], pa.decimal128(5, 1)).cast(dtype)
    table = pa.table({"n": pa.chunked_array([values[:1], values[1:]]) if chunked else values})
    X, _ = decided([table]).encode("t", table)
    assert X.dtype == np.float64
    assert X.ravel().tolist() == [3, 100]


def test_texts_are_not_counted_without_end(monkeypatch):
    monkeypatch.setattr(column_counts, "MANY_TEXTS", 10)
    pieces = [pa.table({"c": [f"{k}-{j}" for j in range(4)]}) for k in range(9)]
    with refuses(error=ValueError, shows=["'c'", "5", "10"]):
        decided(pieces, most=5)
    with refuses(error=ValueError, shows=["'c'", "5", "8"]):
        decided(pieces[:2], most=5)


def test_a_text_that_did_not_occur_in_training_is_no_category():
    found = unscaled((Column("c", "category", ("x", "y", "z")), Column("d", "category", ("x",))))
    batch = pa.table({"c": ["z", "new", "x", "newer"], "d": ["x", "x", "y", "x"]})
    X, unseen = found.encode("t", batch)
    np.testing.assert_array_equal(X, [[0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1]])
    assert unseen == {"c": 2, "d": 1}


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [("number", "one", "numbers"), ("boolean", "no", "true or false"), ("date", "1", "dates")],
)
def test_other_texts_in_prediction(kind, text, message):
    found = unscaled([Column("x", kind), Column("y", "boolean" if kind == "number" else "number")])
    with refuses(shows=[message, "'x'", repr(text), "row 2"]) as error:
        found.encode("t", pa.table({"x": ["2021-12-31" if kind == "date" else "1", text], "y": ["?!", "1"]}))
    # All that is wrong, at once.
    assert str(error.value).startswith("t: 2 problems. (1) ")
    assert "'y' (1, the first '?!' in row 1)" in str(error.value)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e6 + 0.1, -1e6, 1e-250])
def test_a_column_is_standardised_whatever_its_mean_unless_it_is_constant(value):
    """The mean of 999 equal numbers is not that number to the last digit, so their deviation is not zero."""
    noise = 1e-2 * np.random.default_rng(0).normal(size=999)
    table = pa.table({"constant": np.full(999, value), "x": value + noise})
    found = decided([table[:400], table[400:]])
    assert found.scale[0] == 1
    Z = found.scaled(found.encode("t", table)[0])
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(Z.std(axis=0), [0, 1], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(usable_scale(np.array([value]), np.abs([value]) * 1e-13), 1)
