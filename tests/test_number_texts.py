"""Numbers that are spelled as texts: decimal commas, and marks for what is missing."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdulearn.errors import InputError
from sdulearn.number_texts import NumberText, parse_numbers, recognise_numbers

FINITE = st.floats(-1e9, 1e9).map(lambda x: round(x, 4))


def read(texts):
    values = pa.array(texts, pa.string())
    found = recognise_numbers("t", "x", values)
    return found, None if found is None else parse_numbers("t", "x", values, found).to_pylist()


@given(st.lists(FINITE, min_size=1, max_size=20), st.sampled_from([".", ","]))
def test_numbers_come_back_whatever_their_decimal_mark(numbers, decimal):
    """With one number that tells which mark it is."""
    texts = [f"{x:.4f}".replace(".", decimal) for x in [*numbers, 0.25]]
    found, values = read(texts)
    assert found == NumberText(decimal)
    np.testing.assert_array_equal(values, [float(text.replace(",", ".")) for text in texts])


@pytest.mark.parametrize("mark", ["-", "n/a", "N/A", "NA", "None", "Unknown", " - ", "?", "K.A.", "#N/A"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_mark_is_a_gap_however_it_is_spelled(mark, decimal):
    found, values = read([f"1{decimal}5", mark, "2", None])
    assert found == NumberText(decimal, (mark,))
    assert values == [1.5, None, 2.0, None]


def test_what_is_no_column_of_numbers():
    assert read(["a", "b", "3"])[0] is None
    assert read(["-", "n/a"])[0] is None
    assert read([None, None])[0] is None
    with pytest.raises(InputError, match="'twelve'"):
        read([*map(str, range(30)), "twelve"])
    with pytest.raises(InputError, match="1,234"):
        read(["1,234", "5,678"])
    with pytest.raises(InputError, match="held numbers in training"):
        parse_numbers("t", "x", pa.array(["1", "a"]), NumberText())
