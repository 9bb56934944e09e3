import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sdulearn.columns import Column, ColumnLayout
from sdulearn.io import parquet
from sdulearn.io.parquet import FeatureRows, RawRows, open_parquet, parquet_files, read_whole

TABLE = pa.table({"n": np.arange(100.0), "c": ["a", "b"] * 50, "code": np.repeat(np.arange(-25, 25), 2)})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "year=2" / "_hidden").mkdir(parents=True)
    pq.write_table(TABLE[60:], tmp_path / "year=2" / "a.parquet", row_group_size=7)
    pq.write_table(TABLE[:60], tmp_path / "b.pq", row_group_size=25)
    for name in ("_c.parquet", ".d.parquet", "year=2/_hidden/e.parquet", "readme.txt"):
        (tmp_path / name).write_text("no data")
    return tmp_path


def test_files_of_a_folder(folder):
    assert [str(file.relative_to(folder)) for file in parquet_files(folder)] == ["b.pq", "year=2/a.parquet"]
    assert parquet_files(folder / "b.pq") == [folder / "b.pq"]
    # The name of a folder does not count, and is no column.
    hidden = folder.rename(folder.parent / "_hidden folder")
    assert len(parquet_files(hidden)) == 2
    assert [table.column_names for table in read_whole(hidden)] == [TABLE.column_names] * 2
    (folder.parent / "empty").mkdir()
    with pytest.raises(ValueError, match=r"holds no \.parquet files"):
        open_parquet(folder.parent / "empty")


@pytest.mark.parametrize(("batch", "groups"), [(65_536, 2), (30, 5), (5, 9)])
def test_rows_are_numbered_through_files_and_groups(folder, monkeypatch, batch, groups):
    """Small row groups are read together, up to a batch."""
    monkeypatch.setattr(parquet, "BATCH_ROWS", batch)
    table = open_parquet(folder)
    assert table.n_rows == 100
    assert len(table.groups) == groups
    numbers, values = [], []
    for group in table.groups:
        part = pickle.loads(pickle.dumps(RawRows(group, ("n",), 1)))
        for found, rows, weight in part():
            assert (found.schema.names, weight) == (["n"], None)
            numbers += rows.tolist()
            values += found["n"].to_pylist()
    assert numbers == list(range(100))
    assert values == [*range(60), *range(60, 100)]


def test_parts_know_their_number_of_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_ROWS", 30)
    pq.write_table(TABLE, tmp_path / "t.parquet")
    (group,) = open_parquet(tmp_path / "t.parquet").groups
    part = RawRows(group, ("n",), 1)
    assert part.n_blocks == len(list(part())) == 4
    monkeypatch.setattr(parquet, "_BATCH_NUMBERS", 1000)
    for width, n_blocks in ((10, 4), (100, 10), (5000, 100)):
        part = RawRows(group, ("n",), width)
        assert part.n_blocks == len(list(part())) == n_blocks


@pytest.mark.parametrize("codes", [None, "code"])
@pytest.mark.parametrize("keep", [None, lambda rows, codes: (rows % 7 == 0) & (rows < 60)])
def test_features_are_standardised(folder, codes, keep):
    layout = ColumnLayout((Column("c", "category", ("b", "a")), Column("n", "number")))
    mean, spread = np.array([0.5, 0.25, 10.0]), np.array([2.0, 1.0, 4.0])
    parts = [FeatureRows(group, layout, mean, spread, codes, keep) for group in open_parquet(folder).groups]
    blocks = [block for part in parts for block in part()]
    assert all(len(y) for _, y, _ in blocks)
    rows = np.arange(100) if keep is None else np.arange(0, 60, 7)
    expected = np.column_stack([rows % 2 == 1, rows % 2 == 0, rows])
    np.testing.assert_allclose(np.vstack([X for X, _, _ in blocks]), (expected - mean) / spread)
    y = np.concatenate([y for _, y, _ in blocks])
    np.testing.assert_array_equal(y, TABLE["code"].to_numpy()[rows] if codes else 0 * rows)


def test_files_must_fit_together(folder):
    odd = folder / "z.parquet"
    pq.write_table(TABLE.select(["n", "c"]), odd)
    with pytest.raises(ValueError, match=r"z\.parquet does not have the same columns.*'code' is only in one"):
        open_parquet(folder)
    pq.write_table(TABLE.set_column(0, "n", TABLE["c"]), odd)
    with pytest.raises(ValueError, match=r"z\.parquet: column 'n' is string, but double in the files before it"):
        open_parquet(folder)
    # Another type of the same kind will do, and so will a column without values.
    other = TABLE.set_column(0, "n", pa.array(range(100), pa.int8())).set_column(1, "c", TABLE["c"].dictionary_encode())
    pq.write_table(other.set_column(2, "code", pa.nulls(100)), odd)
    assert open_parquet(folder).n_rows == 200
    pq.write_table(other.set_column(0, "n", pa.nulls(100)), folder / "a.parquet")
    odd.unlink()
    assert open_parquet(folder).types["n"] == pa.float64()


def test_a_damaged_file(folder):
    (folder / "z.parquet").write_text("no Parquet at all")
    for read in (open_parquet, read_whole):
        with pytest.raises(ValueError, match=r"z\.parquet cannot be read"):
            read(folder)


def test_two_columns_of_one_name(tmp_path):
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="two columns named 'a'"):
        open_parquet(tmp_path / "t.parquet")
