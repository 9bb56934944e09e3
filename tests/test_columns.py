"""Columns: decided by sums over rows, whatever the portions, and used the same way ever after."""

import decimal
from functools import reduce
from operator import add

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdulearn import columns
from sdulearn.columns import Column, Columns, Moments, NumberText, count, decide, pair_codes, usable_scale
from sdulearn.errors import InputError

NUMBERS = st.none() | st.floats(-1e6, 1e6) | st.just(float("nan"))
ROWS = st.lists(
    st.tuples(NUMBERS, st.none() | st.booleans(), st.none() | st.sampled_from("xyz")), min_size=1, max_size=30
)
FINITE = st.floats(-1e9, 1e9).map(lambda x: round(x, 4))


def decided(pieces, *, guessed=False, missing="error", most=50):
    """The columns of a table that comes in pieces."""
    table = pieces[0]
    counts = {}
    first = 0
    for piece in pieces:
        for name in table.column_names:
            found = count(piece[name], first, guessed)
            counts[name] = found if name not in counts else counts[name] + found
        first += piece.num_rows
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    return decide("t", types, counts, list(counts) if guessed else [], None, missing, most)


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
        assert (a.name, a.kind, a.categories, a.text) == (b.name, b.kind, b.categories, b.text)
        assert a.fill == (b.fill if a.kind == "category" else pytest.approx(b.fill, rel=1e-9, abs=1e-6))
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-6)


@given(ROWS, st.integers(0, 30), st.sampled_from(["error", "mean"]))
def test_columns_do_not_depend_on_the_portions(rows, cut, missing):
    types = (("n", pa.float64()), ("b", pa.bool_()), ("c", pa.string()))
    table = pa.table({name: pa.array([row[k] for row in rows], dtype) for k, (name, dtype) in enumerate(types)})
    whole = decided_or_refused([table], missing=missing, most=2)
    for pieces in (split(table, cut), split(table, cut)[::-1]):
        assert_same(whole, decided_or_refused(pieces, missing=missing, most=2))
    if not isinstance(whole, str):
        X, _ = whole.encode("t", table)
        np.testing.assert_allclose(whole.mean, X.mean(axis=0), rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(whole.scale, usable_scale(X.mean(axis=0), X.std(axis=0)), rtol=1e-5)


CELLS = st.none() | st.sampled_from(["1", "2.5", "3,5", "-", "true", "FALSE", "x", " 7", "1e3", "0", "1,234", "nan "])


@given(st.lists(CELLS, min_size=1, max_size=14), st.integers(0, 14))
def test_what_texts_are_does_not_depend_on_the_portions(cells, cut):
    table = pa.table({"a": pa.array(cells, pa.string())})
    whole = decided_or_refused([table], guessed=True, missing="mean")
    assert_same(whole, decided_or_refused(split(table, cut), guessed=True, missing="mean"))
    if not isinstance(whole, str):
        X, unseen = whole.encode("t", table)
        assert not unseen
        np.testing.assert_allclose(whole.scaled(X).mean(axis=0), 0, atol=1e-6)


def read(texts):
    """How a column of texts is understood, and its features."""
    table = pa.table({"x": pa.array(texts, pa.string())})
    found = decided([table], guessed=True, missing="mean")
    return found.columns[0], found.encode("t", table)[0]


@given(st.lists(FINITE, min_size=1, max_size=20), st.sampled_from([".", ","]))
def test_numbers_come_back_whatever_their_decimal_mark(numbers, decimal):
    """With one number that tells which mark it is."""
    texts = [f"{x:.4f}".replace(".", decimal) for x in [*numbers, 0.25]]
    found, X = read(texts)
    assert (found.kind, found.text) == ("number", None if decimal == "." else NumberText(","))
    np.testing.assert_array_equal(X[:, 0], [float(text.replace(",", ".")) for text in texts])


@pytest.mark.parametrize("mark", ["-", "n/a", "N/A", "NA", "None", "Unknown", " - ", "?", "K.A.", "#N/A"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_mark_is_a_gap_however_it_is_spelled(mark, decimal):
    found, X = read([f"1{decimal}5", mark, "2", None])
    assert found == Column("x", "number", fill=1.75, text=NumberText(decimal, (mark.strip(),)))
    assert X[:, 0].tolist() == [1.5, 1.75, 2.0, 1.75]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["true", "False", "TRUE", None], "boolean"), (["true", "1", "0", "true"], "boolean"),
        (["1", "0", "0"], "number"), (["+1", "-2", ".5", "1e-3", "4."], "number"), (["1", " 2 ", "\t3"], "number"),
        (["true", "yes"], "category"), (["a", "b", "3"], "category"), (["-", "n/a"], "category"),
        (["0x1F", "0x2A"], "category"), (["2024-01-01", "2024-01-02"], "category"),
        (["a", " a", "b ", "a"], "category"),
    ],
)  # fmt: skip
def test_kinds_of_texts(texts, kind):
    found, X = read(texts)
    assert found.kind == kind
    if kind == "category":
        # Texts keep their blanks.
        assert found.categories == tuple(sorted(set(texts)))
    if kind == "boolean":
        present = [text for text in texts if text]
        assert X[: len(present), 0].tolist() == [float(text.lower() in ("true", "1")) for text in present]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([*map(str, range(30)), "twelve"], r"but for 1 cells, the first 'twelve' in row 31.*categories=\['x'\]"),
        (["1,234", "5,678"], "'1,234', may have a decimal comma or commas between thousands"),
        ([None, None], "nothing but missing values in 'x'"),
        (["1", "inf"], "'x' holds infinite values"),
        (["1", "1e400"], "'x' holds infinite values"),
        ([*"0112233445566"], "looks like pair codes"),
    ],
)
def test_texts_that_are_not_clear(texts, message):
    with pytest.raises(InputError, match=message):
        read(texts)


def test_a_late_text_is_seen_and_early_ones_are_not_forgotten():
    """The first portions hold nothing but numbers."""
    pieces = [pa.table({"x": pa.array(cells)}) for cells in (["1", "2", "1"], ["2", "2"], ["north", "x"])]
    found = decided(pieces, guessed=True).columns[0]
    assert (found.kind, found.categories) == ("category", ("1", "2", "north", "x"))
    numbers = [pa.table({"x": [str(k) for k in range(50)]})] * 2
    with pytest.raises(InputError, match="the first 'b' in row 101"):
        decided([*numbers, pa.table({"x": ["b", "a"]})], guessed=True)


def test_stand_ins_are_mean_and_most_frequent_text():
    """Of texts that are as frequent the first in the alphabet."""
    table = pa.table({"n": [1.0, None, np.nan, 5.0], "b": [True, None, False, True], "c": ["z", "y", None, None]})
    found = decided([table], missing="mean")
    assert [column.fill for column in found.columns] == [3.0, 2 / 3, "y"]
    X, _ = found.encode("t", table)
    np.testing.assert_allclose(X, [[1, 1, 0, 1], [3, 2 / 3, 1, 0], [3, 0, 1, 0], [5, 1, 1, 0]])
    np.testing.assert_allclose([found.mean, found.scale], [X.mean(axis=0), X.std(axis=0)])


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64(), pa.int8(), pa.uint64(), pa.decimal128(5, 1)])
@pytest.mark.parametrize("chunked", [False, True])
def test_numbers_of_any_type(dtype, chunked):
    values = pa.array([decimal.Decimal(3), decimal.Decimal(100)], pa.decimal128(5, 1)).cast(dtype)
    table = pa.table({"n": pa.chunked_array([values[:1], values[1:]]) if chunked else values})
    X, _ = decided([table]).encode("t", table)
    assert X.dtype == np.float64
    assert X.ravel().tolist() == [3, 100]


def test_large_numbers_are_not_infinite():
    """Their sum is beyond the range of a float, they themselves are not."""
    table = pa.table({"n": [1e308, 1e308, -1e308]})
    found = Columns.unscaled([Column("n", "number")])
    assert found.encode("t", table)[0].ravel().tolist() == [1e308, 1e308, -1e308]
    assert count(table["n"], 0, False).n_infinite == 0


def test_texts_are_not_counted_without_end(monkeypatch):
    monkeypatch.setattr(columns, "MANY_TEXTS", 10)
    pieces = [pa.table({"c": [f"{k}-{j}" for j in range(4)]}) for k in range(100)]
    with pytest.raises(ValueError, match=r"more than 5 different texts: 'c' \(more than 10\)"):
        decided(pieces, most=5)
    with pytest.raises(ValueError, match=r"more than 5 different texts: 'c' \(8\)"):
        decided(pieces[:2], most=5)


@pytest.mark.parametrize("n_pairs", [4, 5, 2000])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_forgotten_column_of_pair_codes_is_no_feature(n_pairs, as_text):
    codes = np.random.default_rng(0).permutation(np.r_[np.repeat(np.arange(1, n_pairs + 1), 2), 0, 0, 0])

    def learned(values):
        return decided(split(pa.table({"p": [str(k) for k in values] if as_text else values}), 9), guessed=as_text)

    if n_pairs == 4:
        assert learned(codes).width == 1
        return
    with pytest.raises(InputError, match=r"'p' looks like pair codes.*`codes='p'`"):
        learned(codes)
    # No unlabeled row; a number on one row, or on three; a fraction.
    assert learned(codes[codes != 0]).width == 1
    assert learned(np.r_[codes, 9000]).width == 1
    assert learned(np.r_[codes, codes[codes != 0][0]]).width == 1
    assert learned(np.r_[codes, 0.5]).width == 1


def test_pair_codes_may_be_whole_floats():
    assert pair_codes("t", "c", pa.array([1.0, -2.0, 0.0])).tolist() == [1, -2, 0]
    for values in ([1.5], [float("inf")], ["1"], [True]):
        with pytest.raises(ValueError, match=r"'c' \(.*\) does not hold pair codes"):
            pair_codes("t", "c", pa.array(values))
    with pytest.raises(ValueError, match="lacks values"):
        pair_codes("t", "c", pa.array([1, None]))


def test_a_text_that_did_not_occur_in_training_is_no_category():
    found = Columns.unscaled((Column("c", "category", ("x", "y", "z")), Column("d", "category", ("x",))))
    batch = pa.table({"c": ["z", "new", "x", "newer"], "d": ["x", "x", "y", "x"]})
    X, unseen = found.encode("t", batch)
    np.testing.assert_array_equal(X, [[0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1]])
    assert unseen == {"c": 2, "d": 1}


@pytest.mark.parametrize(
    ("kind", "text", "message"), [("number", "one", "held numbers in training"), ("boolean", "no", "true and false")]
)
def test_other_texts_in_prediction(kind, text, message):
    with pytest.raises(InputError, match=message):
        Columns.unscaled([Column("x", kind)]).encode("t", pa.table({"x": ["1", text]}))


@pytest.mark.parametrize("cuts", [[1], [1, 2, 3], [10, 500, 990], range(1, 1000)])
def test_moments_of_portions(cuts):
    """Also where the mean is a million spreads, and sums of squares would keep four digits of the variance."""
    for mean, spread in ((0, 1), (1e6, 1), (-3, 1e-3), (5, 0)):
        x = np.random.default_rng(0).normal(mean, spread, 1000)
        found = reduce(add, map(Moments.of, np.split(x, cuts)))
        assert found.n == 1000
        np.testing.assert_allclose(found.mean, x.mean(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.squares / 1000, x.var(), rtol=1e-9)


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
