import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdulearn import columns
from sdulearn.columns import Column, ColumnLayout, add_summaries, encode, find_columns, id_texts, pair_codes, summarise
from sdulearn.io.files import as_text

KINDS = {"n": "number", "b": "boolean", "c": "category"}
NUMBERS = st.none() | st.floats(-1e6, 1e6) | st.just(float("nan"))
ROWS = st.lists(
    st.tuples(NUMBERS, st.none() | st.booleans(), st.none() | st.sampled_from("xyz")), min_size=1, max_size=30
)


def table(rows):
    types = (("n", pa.float64()), ("b", pa.bool_()), ("c", pa.string()))
    return pa.table({name: pa.array([row[k] for row in rows], dtype) for k, (name, dtype) in enumerate(types)})


@given(ROWS, st.integers(0, 30))
def test_a_layout_does_not_depend_on_the_portions(rows, cut):
    whole = table(rows)
    pieces = [piece for piece in (whole[:cut], whole[cut:]) if piece.num_rows]
    summed = add_summaries(summarise(piece, KINDS) for piece in pieces)
    told = []
    for found in (summarise(whole, KINDS), summed):
        try:
            told.append(find_columns("t", KINDS, found, "mean", 2))
        except ValueError as error:
            told.append(str(error))
    if isinstance(told[0], str):
        assert told[0] == told[1]
        return
    for one, other in zip(*told, strict=True):
        assert (one.name, one.kind, one.categories) == (other.name, other.kind, other.categories)
        assert one.fill == (other.fill if one.kind == "category" else pytest.approx(other.fill, rel=1e-9, abs=1e-6))


def test_stand_ins_are_mean_and_most_frequent_text():
    whole = table([(1.0, True, "x"), (None, None, "y"), (float("nan"), False, None), (5.0, True, "y")])
    layout = ColumnLayout(find_columns("t", KINDS, summarise(whole, KINDS), "mean", 5))
    assert [column.fill for column in layout.columns] == [3.0, 2 / 3, "y"]
    X, unseen = encode("t", layout, whole)
    np.testing.assert_array_equal(X, [[1, 1, 1, 0], [3, 2 / 3, 0, 1], [3, 0, 0, 1], [5, 1, 0, 1]])
    assert not unseen


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64(), pa.int8(), pa.uint64(), pa.decimal128(5, 1)])
@pytest.mark.parametrize("chunked", [False, True])
def test_numbers_of_any_type(dtype, chunked):
    values = pa.array([decimal.Decimal(3), decimal.Decimal(100)], pa.decimal128(5, 1)).cast(dtype)
    whole = pa.table({"n": pa.chunked_array([values[:1], values[1:]]) if chunked else values})
    layout = ColumnLayout(find_columns("t", {"n": "number"}, summarise(whole, {"n": "number"}), "error", 5))
    X, _ = encode("t", layout, whole)
    assert X.dtype == np.float64
    assert X.ravel().tolist() == [3, 100]


def test_large_numbers_are_not_infinite():
    """Their sum is beyond the range of a float, they themselves are not."""
    whole = pa.table({"n": [1e308, 1e308, -1e308]})
    layout = ColumnLayout(find_columns("t", {"n": "number"}, summarise(whole, {"n": "number"}), "error", 5))
    assert encode("t", layout, whole)[0].ravel().tolist() == [1e308, 1e308, -1e308]


def test_texts_are_not_counted_without_end(monkeypatch):
    monkeypatch.setattr(columns, "MANY_TEXTS", 10)
    pieces = [pa.table({"c": [f"{k}-{j}" for j in range(4)]}) for k in range(100)]
    found = add_summaries(summarise(piece, {"c": "category"}) for piece in pieces)
    assert len(found["c"].texts) <= 14
    with pytest.raises(ValueError, match=r"more than 5 different texts: 'c' \(more than 10\)"):
        find_columns("t", {"c": "category"}, found, "error", 5)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([7, -1, 2**62]),
        pa.array([7, None]),
        pa.array([7.0, 0.1, 1e300, None]),
        pa.array([True, False, None]),
        pa.array([" a", "b\t", None, "", "é\u2003"]),
        pa.array([" a", None], pa.large_string()),
        pa.array(["a", "b ", "a", None]).dictionary_encode(),
        pa.array([datetime.date(2024, 1, 2)]),
        pa.array([decimal.Decimal("1.50")]),
        pa.array([b"x"]),
    ],
)
def test_ids_are_spelled_one_way(values):
    assert id_texts(values).to_pylist() == [as_text(value) for value in values.to_pylist()]
    assert id_texts(pa.chunked_array([values, values])).to_pylist() == 2 * [as_text(v) for v in values.to_pylist()]


def test_pair_codes_may_be_whole_floats():
    assert pair_codes("t", "c", pa.array([1.0, -2.0, 0.0])).tolist() == [1, -2, 0]
    for values in ([1.5], [float("inf")], ["1"], [True]):
        with pytest.raises(ValueError, match=r"'c' \(.*\) does not hold pair codes"):
            pair_codes("t", "c", pa.array(values))
    with pytest.raises(ValueError, match="lacks values"):
        pair_codes("t", "c", pa.array([1, None]))


def test_a_text_that_did_not_occur_in_training_is_no_category():
    layout = ColumnLayout((Column("c", "category", ("x", "y", "z")), Column("d", "category", ("x",))))
    batch = pa.table({"c": ["z", "new", "x", "newer"], "d": ["x", "x", "y", "x"]})
    X, unseen = encode("t", layout, batch)
    np.testing.assert_array_equal(X, [[0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1]])
    assert unseen == {"c": 2, "d": 1}
