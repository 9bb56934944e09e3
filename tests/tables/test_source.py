"""Tables of every format: the same batches, columns, features and ids; and files that cannot be read."""

import gzip
import io
import os
import threading

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from sdulearn import Reading
from sdulearn.answers import read_answers
from sdulearn.errors import InputError
from sdulearn.tables import source as tables
from sdulearn.tables.scan import read_ids, without_blanks
from sdulearn.tables.source import open_table, read_whole
from sdulearn.workflow.data import draw_rows
from tests.reference import read_features, refuses

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


def in_batches(path, columns):
    """Features, batch by batch, and the first rows of the batches."""
    table = open_table(path)
    found = list(table.batches(columns.needed(str(path), list(table.types)), columns.width))
    filled = [without_blanks(batch, table.missing_texts)[0] for _, batch in found]
    return [columns.encode("t", batch)[0] for batch in filled], [first for first, _ in found]


WHO = "who,age,colour\n007,1,red\nb,2,blue\nc,3,red\n"
AGE = [[1], [2], [3]]
NUMBERED = ["0", "1", "2"]
# Ending, text, options; names of the features, features, ids.
READ = [
    ("csv", WHO, {"id_column": "who", "drop": ["colour"]}, ["age"], AGE, ["007", "b", "c"]),
    ("csv", WHO, {"id_column": "colour", "drop": ["who"]}, ["age"], AGE, ["red", "blue", "red"]),
    ("csv", WHO, {"drop": ["who", "colour"]}, ["age"], AGE, NUMBERED),
    ("csv", WHO.replace("who", "id"), {"id_column": "", "drop": ["id", "colour"]}, ["age"], AGE, NUMBERED),
    # The ids of the answers tell the column.
    ("csv", WHO, {"answer_ids": {"007", "b"}, "drop": ["colour"]}, ["age"], AGE, ["007", "b", "c"]),
    # Fractions are no ids, though some are written as whole numbers.
    ("csv", "y\n0.5\n1\n2\n", {"answer_ids": {"0", "1"}}, ["y"], [[0.5], [1], [2]], NUMBERED),
    ("csv", 'x,y\n"1,5",2\n"-2","0,25"\n', {}, ["x", "y"], [[1.5, 2], [-2, 0.25]], ["0", "1"]),
    ("csv", "\ufeffn,c\n1,1\n2,x\n", {}, ["n", "c=1", "c=x"], [[1, 1, 0], [2, 0, 1]], ["0", "1"]),
    ("csv", "n\n1\n2\n", {"categories": ["n"]}, ["n=1", "n=2"], [[1, 0], [0, 1]], ["0", "1"]),
    # Of JSON lines the types are those of all rows, and ids that look like dates are texts.
    ("jsonl", '{"a": 1}\n\n{"a": 2}\n{"a": 6.5}\n', {}, ["a"], [[1], [2], [6.5]], ["0", "1", "2"]),
    ("jsonl", '\ufeff{"a": [["x"]], "b": 1}\n', {"drop": ["a"]}, ["b"], [[1]], ["0"]),
    ("jsonl", '{"id": "2024-01-01", "b": 1}\n', {}, ["b"], [[1]], ["2024-01-01"]),
]  # fmt: skip


@pytest.mark.parametrize(("ending", "text", "options", "names", "expected", "ids"), READ)
def test_small_files(tmp_path, monkeypatch, ending, text, options, names, expected, ids):
    monkeypatch.setattr(tables, "BATCH_ROWS", 2)
    path = tmp_path / f"t.{ending}"
    path.write_text(text, encoding="utf-8")
    columns, features, found = read_features(path, **options)
    assert (columns.feature_names, found) == (names, ids)
    np.testing.assert_allclose(features, expected)
    np.testing.assert_allclose(np.vstack(in_batches(path, columns)[0]), expected)
    assert read_ids(path, Reading(options.get("id_column")), options.get("answer_ids", ()))[0] == ids


HEADS = [
    # Text; names of the features; rows above the header.
    ("a;b (m, round)\n1,5;2\n2;3,5\n", ["a", "b (m, round)"], 0),
    ("sep=;\na;b\n1;2\n", ["a", "b"], 1),
    ("Survey, 2021\n\n a ,b,c\n1,2,3\n", None, 0),
    ("Survey;;\n;;\na;b;c\n1;2;3\n;;\n", ["a", "b", "c"], 2),
    ("\n\na,b\n1,2\n", ["a", "b"], 2),
    ("Title\nregion,2019,2020\n1,2,3\n", None, 0),
    ("Series\n1\n2\n", ["Series"], 0),
    ('"two\nlines",b\n1,2\n', ["two\nlines", "b"], 0),
    (",x\n0,5\n1,6\n2,7\n", ["x"], 0),
    (",x\n0,5\n0,6\n2,7\n", None, 0),
    ("Unnamed: 0,x,y,\n1,5,2,\n2,7,1,\n", ["x", "y"], 0),
    ("id,x,\n4,5,2\n", None, 0),
]


@pytest.mark.parametrize(("text", "names", "above"), HEADS)
@pytest.mark.parametrize("ending", ["csv", "txt.gz"])
def test_delimiters_and_headers_are_recognised(tmp_path, text, names, above, ending):
    path = tmp_path / f"t.{ending}"
    data = text.encode()
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    if names is None:
        with refuses("skip_rows"):
            read_features(path)
        return
    assert read_features(path)[0].feature_names == names
    assert open_table(path).notes["above"] == above
    path.write_text("what,ever\n" + text)
    assert read_features(path, skip_rows=above + 1)[0].feature_names == names


def test_lines_are_named_as_editors_count_them(tmp_path):
    text = 'Title\n\nid,x\na,"1\n"\n\nb,2\n' + "".join(f"c{k},{k}\n" for k in range(30)) + "d,what\n"
    (tmp_path / "t.csv").write_text(text)
    line = text[: text.index("d,what")].count("\n") + 1
    with refuses(shows=["'what'", f"line {line})"]):
        read_features(tmp_path / "t.csv")
    frame = pd.read_csv(io.StringIO(text), skiprows=2)
    with pd.ExcelWriter(tmp_path / "t.xlsx") as writer:
        frame.to_excel(writer, index=False, startrow=3)
    with refuses(shows=["'what'", f"row {4 + len(frame)})"]):
        read_features(tmp_path / "t.xlsx")


def test_sheets_and_titles_of_a_workbook(tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "Read me"
    book.active["A1"] = "About this survey"
    data = book.create_sheet("Data")
    for place, row in {2: ["Survey 2021"], 5: ["id", "x", None, "y"], 6: ["a", 1, None, True], 8: ["b", 2]}.items():
        for k, cell in enumerate(row, 2):
            data.cell(place, k, cell)
    book.save(tmp_path / "t.xlsx")
    for sheet in ("Data", "2"):
        table = open_table(tmp_path / "t.xlsx", sheet)
        assert (table.notes, table.where(0)) == ({"above": 4, "sheet": "Data"}, "row 6")
        columns, X, ids = read_features(tmp_path / "t.xlsx", sheet=sheet)
        assert (columns.feature_names, ids) == (["x", "y"], ["a", "b"])
        np.testing.assert_array_equal(X, [[1, 1], [2, 1]])
    assert "Survey 2021" in open_table(tmp_path / "t.xlsx", "Data", 1).types
    with refuses(shows=["'x'", "'Read me', 'Data'"]):
        open_table(tmp_path / "t.xlsx", "x")
    with refuses("sheet"):
        open_table(stored(FRAME, tmp_path, "csv"), "x")
    with refuses("skip_rows"):
        open_table(FRAME, skip_rows=1)


def test_blank_rows_keep_their_numbers(tmp_path):
    """Rows are named by their numbers in the file, and those without a value are no rows."""
    (tmp_path / "t.csv").write_text("x,y\n1,2\n,\n3,\n" + ",\n" * 5)
    _, X, ids = read_features(tmp_path / "t.csv", id_column="")
    assert ids == ["0", "2"]
    np.testing.assert_array_equal(X, [[1, 2], [3, 2]])
    assert draw_rows(tmp_path / "t.csv", 10, Reading("")).n_rows == 2


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet", "xlsx"])
def test_missing_values(tmp_path, name):
    frame = FRAME.assign(age=[1, None, 3, 4], colour=["red", None, "red", "green"])
    path = stored(frame, tmp_path, name)
    line = {"csv": "line 3", "jsonl": "line 2", "parquet": "row 2", "xlsx": "row 3"}[name]
    with refuses("missing='mean'", shows=["'age'", line, "'colour'"]):
        read_features(path, missing="error")
    whole, _, _ = read_features(stored(FRAME, tmp_path, "tsv"), missing="error")
    with refuses("missing='error'", shows=["'age'", "row 2", "'colour'"]):
        in_batches(path, whole)


NAMED = "no column 'x'.*Its columns: a, b"
# Ending, text, options; the error.
REFUSED = [
    ("csv", "a\ninf\n", {}, "infinite"),
    ("csv", "a,b\n1,\n2,\n", {"missing": "error"}, r"'b' \(2, the first in line 2\)"),
    ("csv", "a,b\n,\n,\n", {}, "has no rows"),
    ("csv", "id\n1\n", {}, "no columns to learn from"),
    ("csv", "a,b\n", {}, "has no rows"),
    ("csv", "a,name\n" + "\n".join(f"{k},n{k}" for k in range(60)), {"id_column": ""},
     r"'name' \(60\).*`id_column`.*`drop`.*`max_categories`"),
    ("csv", "a,b\n1,2\n", {"id_column": "x"}, NAMED),
    ("csv", "a,b\n1,2\n", {"drop": ["x"]}, NAMED),
    # A column that would fit as well as row numbers, and is not called as ids are: it must be said.
    ("csv", "x,y\n1,0.5\n2,1\n3,2\n", {"answer_ids": {"1", "2"}},
     "'x' could be the column of ids.*row numbers from 0.*`id_column=''`"),
    ("jsonl", "\n\n", {}, "It needs one JSON object per line"),
    ("jsonl", '{"a": 1}\n[1]', {}, "line 2: .* is not a JSON object"),
    ("jsonl", '{"a": 1}\n"a"', {}, "is not a JSON object"),
    ("jsonl", '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", {}, "is not a JSON object"),
    ("jsonl", '{"a": 1, "a": 2}', {}, "or has a key twice"),
    ("jsonl", '{"a": "\\ud800"}', {}, "cannot be read"),
    ("jsonl", '{"a": 18446744073709551616}', {}, "cannot be read"),
    ("jsonl", b'{"a": "\xff"}', {}, "not text in UTF-8"),
    ("jsonl", "{,}", {}, "is not a JSON object"),
    ("csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 50, mtime=0)[:-9], {}, "cut off or damaged"),
    ("jsonl.gz", gzip.compress(b'{"a": 1}\n' * 50, mtime=0)[:-9], {}, "cut off or damaged"),
    ("jsonl", '{"a": 1}\n{"a": "x"}', {}, "cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize(("ending", "text", "options", "message"), REFUSED)
def test_tables_that_cannot_be_used(tmp_path, ending, text, options, message):
    path = tmp_path / f"t.{ending}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message):
        read_features(path, **options)


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
    # The name of a folder does not count, and is no column.
    hidden = folder.rename(folder.parent / "_hidden folder")
    assert read_whole(hidden).to_pydict() == TABLE.to_pydict()
    (folder.parent / "empty").mkdir()
    with refuses(error=ValueError, shows=[".parquet"]):
        open_table(folder.parent / "empty")


@pytest.mark.parametrize(("rows", "width", "most"), [(30, 1, 30), (65_536, 20, 5)])
def test_a_batch_has_no_more_rows_or_numbers_than_it_may(folder, monkeypatch, rows, width, most):
    monkeypatch.setattr(tables, "BATCH_ROWS", rows)
    monkeypatch.setattr(tables, "_BATCH_NUMBERS", 100)
    assert max(len(batch) for _, batch in open_table(folder).batches(["n"], width)) == most


def test_a_folder_of_unlike_files_is_one_table(tmp_path):
    folder = tmp_path / "folder.csv"  # whatever a folder is called
    (folder / "deep").mkdir(parents=True)
    FRAME[:1].to_parquet(folder / "a.parquet")
    FRAME[1:3][FRAME.columns[::-1]].astype({"age": float}).to_parquet(folder / "b.parquet")
    FRAME[3:].assign(colour=FRAME["colour"][3:].astype("category")).to_parquet(folder / "deep" / "c.parquet")
    _, features, ids = read_features(folder)
    np.testing.assert_array_equal(features, X)
    assert ids == FRAME["id"].tolist()
    other = read_features(stored(FRAME, tmp_path, "parquet"), missing="error")[0]
    assert read_features(folder, missing="error")[0].columns == other.columns
    for file in folder.rglob("*.parquet"):
        pd.read_parquet(file).drop(columns="id").to_parquet(file)
    assert read_features(folder)[2] == read_ids(folder, Reading(), ())[0] == ["0", "1", "2", "3"]


def test_files_must_fit_together(folder):
    odd = folder / "z.parquet"
    pq.write_table(TABLE.select(["n", "c"]), odd)
    with refuses(error=ValueError, shows=["z.parquet", "'code'"]):
        open_table(folder)
    pq.write_table(TABLE.set_column(0, "n", TABLE["c"]), odd)
    with refuses(error=ValueError, shows=["z.parquet", "'n'", "string", "double"]):
        open_table(folder)
    # A column without values will do, wherever it comes.
    for name in ("z.parquet", "a.parquet"):
        pq.write_table(TABLE.set_column(0, "n", pa.nulls(100)), folder / name)
    assert open_table(folder).types["n"] == pa.float64()
    (folder / "z.parquet").write_text("no Parquet at all")
    with refuses(error=ValueError, shows=["z.parquet"]):
        open_table(folder)
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), folder / "z.parquet")
    with refuses(error=ValueError, shows=["'a'"]):
        open_table(folder / "z.parquet")


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_no_thread_of_pyarrow_reads_a_python_file(tmp_path, monkeypatch, name):
    """Such a thread aborts the program where it ends before the thread does."""
    opened = []
    open_csv = pa.csv.open_csv
    monkeypatch.setattr(pa.csv, "open_csv", lambda file, **options: opened.append(file) or open_csv(file, **options))
    pd.DataFrame({"id": ["a", "b"], "x": [1, 2]}).to_csv(tmp_path / name, index=False)
    assert read_whole(tmp_path / name).column("x").to_pylist() == ["1", "2"]
    assert [isinstance(file, pa.NativeFile) for file in opened] == [True]


# Files as people have them, each of which was once misread in silence.


def test_a_text_among_the_numbers_of_a_sheet_costs_no_digits(tmp_path):
    numbers = [1234567.891, 0.1234567890123, 20231231.0, 1e-7, -2.0]
    frame = pd.DataFrame(
        {
            "id": [1234567.0, 20231231.5, "A7", 12345678.0, 1e15, 7.0],
            "x": [*numbers, "-"],
            2020.0: 1.0,
            "y": [1e300] * 6,
        }
    )
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    columns, features, ids = read_features(tmp_path / "t.xlsx", missing="mean")
    assert features[:5, 0].tolist() == numbers
    assert ids == ["1234567", "20231231.5", "A7", "12345678", "1000000000000000", "7"]
    assert columns.feature_names == ["x", "2020", "y"]
    assert set(features[:, 2]) == {1e300}
    np.testing.assert_array_equal(np.vstack(in_batches(tmp_path / "t.xlsx", columns)[0]), features)


def test_far_cells_are_refused_where_they_have_a_value(tmp_path):
    """Their formats alone are no harm."""
    workbook = tmp_path / "t.xlsx"
    FRAME.to_excel(workbook, index=False)
    sheet = openpyxl.load_workbook(workbook)
    sheet.active["XFD1048576"].font = openpyxl.styles.Font(bold=True)
    sheet.save(workbook)
    np.testing.assert_array_equal(read_features(workbook)[1], X)
    sheet.active["XFD1048576"] = 1
    sheet.save(workbook)
    with refuses(shows=["26", "1,048,576", "16,384"]):
        open_table(workbook)


def test_answers_from_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "p.csv")
    writer = threading.Thread(target=(tmp_path / "p.csv").write_text, args=("id_a,id_b,label\na,b,1\n",))
    writer.start()
    assert read_answers(tmp_path / "p.csv").ids.tolist() == [["a", "b"]]
    writer.join()
    with refuses(shows=["pipe"]):
        read_features(tmp_path / "p.csv")
