import gzip

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from sdulearn.columns import Column, ColumnLayout, SparseLayout
from sdulearn.io import tables
from sdulearn.io.tables import column_names, read_chunks, read_ids, read_table

FRAME = pd.DataFrame(
    {
        "id": ["007", "b", "c", "d"],
        "age": [1, 2, 3, 4],
        "size": [0.5, -1.0, 2.25, 1e-3],
        "member": [True, False, True, True],
        "colour": ["red", "blue", "red", "green"],
    }
)
X = np.array(
    # age, size, member, blue, green, red
    [[1, 0.5, 1, 0, 0, 1], [2, -1, 0, 1, 0, 0], [3, 2.25, 1, 0, 0, 1], [4, 1e-3, 1, 0, 1, 0]]
)


def stored(frame, folder, name):
    path = folder / f"table.{name}"
    if name.startswith("parquet"):
        frame.to_parquet(path)
    elif name == "xlsx":
        frame.to_excel(path, index=False)
    elif name.startswith("jsonl"):
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if name.startswith("tsv") else ",")
    return path


NAMES = ["csv", "tsv", "jsonl", "parquet", "xlsx", "csv.gz", "tsv.gz", "jsonl.gz"]


@pytest.mark.parametrize("name", NAMES)
def test_all_formats_give_the_same_matrix_whole_and_in_chunks(tmp_path, name, monkeypatch):
    path = stored(FRAME, tmp_path, name)
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X)
    assert table.ids == ["007", "b", "c", "d"]
    assert table.layout.feature_names == ["age", "size", "member", "colour=blue", "colour=green", "colour=red"]
    monkeypatch.setattr(tables, "_CHUNK_ROWS", 3)
    chunks = list(read_chunks(path, table.layout))
    assert len(chunks) == (1 if "sv" in name else 2)
    np.testing.assert_array_equal(np.vstack([chunk.X for chunk in chunks]), X)
    assert [i for chunk in chunks for i in chunk.ids] == table.ids
    assert read_ids(path) == table.ids
    assert column_names(path) == FRAME.columns.tolist()


def test_a_csv_larger_than_a_block_streams(tmp_path, monkeypatch):
    frame = pd.concat([FRAME] * 500)
    path = stored(frame, tmp_path, "csv")
    layout = read_table(stored(FRAME, tmp_path, "tsv")).layout
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 5000)
    chunks = list(read_chunks(path, layout))
    assert len(chunks) > 3
    np.testing.assert_array_equal(np.vstack([chunk.X for chunk in chunks]), np.tile(X, (500, 1)))
    assert [i for chunk in chunks for i in chunk.ids] == frame["id"].tolist()
    # Without ids, rows are numbered through all chunks.
    frame.drop(columns="id").to_csv(path, index=False)
    assert [i for chunk in read_chunks(path, layout) for i in chunk.ids] == [str(k) for k in range(2000)]


def test_other_order_further_columns_and_new_texts(tmp_path):
    layout = read_table(stored(FRAME, tmp_path, "csv")).layout
    other = FRAME.assign(colour=["pink", "blue", "pink", "red"], more="x")[["more", "colour", "size", "age", "member"]]
    (chunk,) = read_chunks(stored(other, tmp_path, "tsv"), layout)
    np.testing.assert_array_equal(chunk.X[:, :3], X[:, :3])
    np.testing.assert_array_equal(chunk.X[:, 3:], [[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]])
    assert chunk.unseen == {"colour": 2}
    assert chunk.ids == ["0", "1", "2", "3"]
    (chunk,) = read_chunks(tmp_path / "table.tsv", layout, id_column="colour")
    assert chunk.ids == ["pink", "blue", "pink", "red"]
    with pytest.raises(ValueError, match="lacks the column 'age', 'member'"):
        list(read_chunks(stored(other[["size", "colour"]], tmp_path, "csv"), layout))


def test_numbers_may_change_their_spelling_between_tables(tmp_path):
    """Whole numbers in training, fractions in prediction; digits as a text category."""
    (tmp_path / "a.csv").write_text("n,c\n1,1\n2,x\n")
    layout = read_table(tmp_path / "a.csv").layout
    (tmp_path / "b.csv").write_text("n,c\n1.5,1\n2,1\n")
    (chunk,) = read_chunks(tmp_path / "b.csv", layout)
    np.testing.assert_array_equal(chunk.X, [[1.5, 1, 0], [2, 1, 0]])
    (tmp_path / "c.csv").write_text("n,c\none,1\n")
    with pytest.raises(ValueError, match=r"c\.csv cannot be read.*'one'"):
        list(read_chunks(tmp_path / "c.csv", layout))


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_missing_values(tmp_path, name):
    frame = FRAME.assign(age=[1, None, 3, 4], colour=["red", None, "red", "green"])
    path = stored(frame, tmp_path, name)
    with pytest.raises(ValueError, match=r"'age' \(1\), 'colour' \(1\).*`missing='mean'`"):
        read_table(path)
    table = read_table(path, missing="mean")
    assert table.X[1].tolist() == [8 / 3, -1, 0, 0, 1]
    assert [column.fill for column in table.layout.columns] == [8 / 3, frame["size"].mean(), 0.75, "red"]
    (chunk,) = read_chunks(path, table.layout)
    np.testing.assert_array_equal(chunk.X, table.X)
    whole = read_table(stored(FRAME, tmp_path, "tsv"))
    with pytest.raises(ValueError, match=r"1 missing values in column 'age'.*`missing='mean'`"):
        list(read_chunks(path, whole.layout))


def test_a_question_mark_is_a_missing_value(tmp_path):
    (tmp_path / "a.csv").write_text("n,c\n1,?\n?,x\n3,x\n")
    table = read_table(tmp_path / "a.csv", missing="mean")
    np.testing.assert_array_equal(table.X, [[1, 1], [2, 1], [3, 1]])


def test_drop_and_ids(tmp_path):
    path = stored(FRAME, tmp_path, "csv")
    table = read_table(path, id_column="colour", drop=["id", "age"])
    assert table.ids == ["red", "blue", "red", "green"]
    assert table.layout.feature_names == ["size", "member"]
    assert read_table(stored(FRAME.drop(columns="id"), tmp_path, "tsv")).ids == ["0", "1", "2", "3"]
    for keywords in ({"id_column": "x"}, {"drop": ["x"]}):
        with pytest.raises(ValueError, match=r"no column 'x'.*Its columns"):
            read_table(path, **keywords)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,a\n1,2\n", "two columns named 'a'"),
        ("a,b\n1,2\n1\n", "cannot be read.*Expected 2 columns, got 1"),
        ("a,when\n1,2024-01-01\n", r"neither numbers nor text: 'when'.*`drop`"),
        ("a\ninf\n", "infinite"),
        ("a,b\n1,\n2,\n", r"'b' \(2\)"),
        ("id\n1\n", "no columns to learn from"),
        ("a,b\n", "has no rows"),
        ("a\rb,c\n1,2\n", "cut off or damaged"),
        (
            "name,a\n" + "\n".join(f"n{k},{k}" for k in range(60)),
            r"'name' \(60\).*`id_column`.*`drop`.*`max_categories`",
        ),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["csv", "jsonl", "svm"])
def test_a_zipped_file_that_is_cut_off(tmp_path, name):
    text = {"csv": "a,b\n" + "1,2\n" * 50, "jsonl": '{"a": 1}\n' * 50, "svm": "1 1:2\n" * 50}[name]
    path = tmp_path / f"t.{name}.gz"
    path.write_bytes(gzip.compress(text.encode())[:-9])
    layout = SparseLayout(1) if name == "svm" else ColumnLayout((Column("a", "number"),))
    for read in (read_table, read_ids, lambda path: list(read_chunks(path, layout))):
        with pytest.raises(ValueError, match="cut off or damaged"):
            read(path)


def test_an_empty_column_has_no_mean(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,\n2,\n")
    with pytest.raises(ValueError, match="nothing but missing values in 'b'"):
        read_table(tmp_path / "t.csv", missing="mean")


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("zipped", [False, True])
def test_svmlight_stays_sparse(tmp_path, monkeypatch, zero_based, zipped):
    S = sparse.random(50, 400, density=0.05, format="lil", random_state=0)
    S[0, 0] = 1.0
    S = sparse.csr_matrix(S)
    path = tmp_path / "t.svm"
    dump_svmlight_file(S, np.ones(50), str(path), zero_based=zero_based)
    if zipped:
        path.write_bytes(gzip.compress(path.read_bytes()))
    table = read_table(path)
    assert table.layout.first == int(not zero_based)
    width = table.layout.width
    np.testing.assert_allclose(table.X.toarray(), S.toarray()[:, :width])
    monkeypatch.setattr(tables, "_CHUNK_ROWS", 7)
    chunks = list(read_chunks(path, SparseLayout(400, table.layout.first)))
    np.testing.assert_allclose(sparse.vstack([chunk.X for chunk in chunks]).toarray(), S.toarray())
    assert [i for chunk in chunks for i in chunk.ids] == read_ids(path) == [str(k) for k in range(50)]
    with pytest.raises(ValueError, match="features the model does not know"):
        list(read_chunks(path, SparseLayout(3, table.layout.first)))


def test_a_layout_reads_its_own_kind_of_file(tmp_path):
    csv = stored(FRAME, tmp_path, "csv")
    (tmp_path / "t.svm").write_text("1 1:2\n")
    with pytest.raises(ValueError, match="was fitted on an svmlight file"):
        list(read_chunks(csv, SparseLayout(3)))
    with pytest.raises(ValueError, match="named columns"):
        list(read_chunks(tmp_path / "t.svm", ColumnLayout((Column("a", "number"),))))
    for text, message in (
        ("1 x:2\n", "cannot be read as svmlight"),
        ("1 1:nan\n", "missing or infinite"),
        ("", "empty"),
    ):
        (tmp_path / "t.svm").write_text(text)
        with pytest.raises(ValueError, match=message):
            read_table(tmp_path / "t.svm")
    with pytest.raises(ValueError, match="no named columns"):
        read_table(tmp_path / "t.svm", id_column="a")


def test_a_folder_of_parquet_files_is_a_table(tmp_path, monkeypatch):
    folder = tmp_path / "folder.csv"  # whatever a folder is called
    (folder / "deep").mkdir(parents=True)
    FRAME[:1].to_parquet(folder / "a.parquet")
    FRAME[1:3][FRAME.columns[::-1]].to_parquet(folder / "b.parquet")
    FRAME[3:].assign(colour=FRAME["colour"][3:].astype("category")).to_parquet(folder / "deep" / "c.parquet")
    whole = read_table(stored(FRAME, tmp_path, "parquet"))
    table = read_table(folder)
    np.testing.assert_array_equal(table.X, X)
    assert (table.ids, table.layout) == (whole.ids, whole.layout)
    assert read_ids(folder) == whole.ids
    assert column_names(folder) == FRAME.columns.tolist()
    monkeypatch.setattr(tables, "_CHUNK_ROWS", 1)
    chunks = list(read_chunks(folder, whole.layout))
    np.testing.assert_array_equal(np.vstack([chunk.X for chunk in chunks]), X)
    assert len(chunks) == 4
    # Without ids, rows are numbered through all files.
    assert read_table(folder, drop=["id"], id_column="age").ids == ["1", "2", "3", "4"]
    for file in folder.rglob("*.parquet"):
        pd.read_parquet(file).drop(columns="id").to_parquet(file)
    assert read_table(folder).ids == read_ids(folder) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_pair_codes_are_no_feature(tmp_path, name):
    path = stored(FRAME.assign(code=[3, 0, -1, 3]), tmp_path, name)
    table = read_table(path, codes="code")
    assert table.codes.tolist() == [3, 0, -1, 3]
    np.testing.assert_array_equal(table.X, X)
    assert read_table(path).codes is None
    with pytest.raises(ValueError, match=r"no column 'cod' to take pair codes from\. Its columns: age, "):
        read_table(path, codes="cod")
