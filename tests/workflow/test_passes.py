import numpy as np
import pyarrow as pa
import pytest

from sdulearn.columns import Column, ColumnLayout
from sdulearn.workflow.passes import Moments, RowQuery, count_ids, find_rows


@pytest.mark.parametrize("cuts", [[1], [1, 2, 3], [10, 500, 990], range(1, 1000)])
def test_moments_of_portions(cuts):
    """Also where the mean is a million spreads, and sums of squares would keep four digits of the variance."""
    X = np.asfortranarray(np.random.default_rng(0).normal([0, 1e6, -3, 5], [1, 1, 1e-3, 0], (1000, 4)))
    first, *others = (Moments.of(piece) for piece in np.split(X, cuts))
    found = sum(others, start=first)
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.variance, X.var(axis=0), rtol=1e-9)
    assert found.n == 1000


def test_a_query_keeps_numbered_and_named_rows():
    layout = ColumnLayout((Column("x", "number"),), "id")
    batch = pa.RecordBatch.from_pydict({"x": np.arange(10.0), "id": [f"r{k}" for k in range(100, 110)]})
    query = RowQuery("t", layout, None, np.array([3, 100, 104, 109, 110]), np.array(["r104", "r107", "zz"], object))
    found = find_rows(batch, np.arange(100, 110), None, query)
    assert found.rows[0].tolist() == [100, 104, 107, 109]
    assert found.X[0][:, 0].tolist() == [0, 4, 7, 9]
    assert (found.ids[0].tolist(), found.places[0].tolist()) == ([0, 1], [104, 107])


def test_ids_are_counted_by_column():
    batch = pa.RecordBatch.from_pydict({"n": [1, 2, 2], "c": ["x", "2", "1"]})
    ids = np.array(["1", "2", "9"], dtype=object)
    one = count_ids(batch, np.arange(3), None, ["n", "c"], ids)
    both = one + count_ids(batch[:1], np.arange(1), None, ["n", "c"], ids)
    assert {name: count.tolist() for name, count in both.counts.items()} == {"n": [2, 2, 0], "c": [1, 1, 0]}
    n, c = one.candidates()
    assert (n.n_found, n.unique, c.n_found, c.unique) == (2, False, 2, True)
