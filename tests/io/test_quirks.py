"""Files as people have them, each of which was once misread in silence: read right, or refused with the remedy."""

import io
import os
import re
import threading
import zipfile
from types import SimpleNamespace

import numpy as np
import openpyxl
import pandas as pd
import pytest

from sdulearn import fit_table
from sdulearn.answers import read_answers
from sdulearn.datasets import make_waveform
from sdulearn.errors import InputError
from sdulearn.io import excel
from sdulearn.io.survey import read_features
from sdulearn.io.tables import open_table


@pytest.fixture(scope="module")
def survey():
    """200 waveforms, 0.7 of them of class +1; 90 random answers by row number; the truth."""
    X, y = make_waveform(1000, random_state=3)
    rng = np.random.default_rng(3)
    chosen = rng.permutation(np.r_[np.flatnonzero(y == 1)[:140], np.flatnonzero(y == -1)[:60]])
    frame = pd.DataFrame(X[chosen].round(3), columns=[f"x{k}" for k in range(X.shape[1])])
    ends = rng.permutation(199)[:180].reshape(-1, 2) + 1
    truth = y[chosen]
    return frame, ends, (truth[ends[:, 0]] == truth[ends[:, 1]]).astype(int), truth


def read_table(path, **options):
    """Columns, features that are not scaled, and ids."""
    columns, X, ids = read_features(path, **options)
    assert X.shape == (len(ids), columns.width)
    return SimpleNamespace(columns=columns, X=X, ids=ids)


def in_batches(path, columns):
    """The features of a table as `predict` reads it."""
    table = open_table(path)
    batches = table.batches(columns.needed("t", list(table.types)))
    return np.vstack([columns.encode("t", batch)[0] for _, batch in batches])


def answers_of(ends, same, shift=0):
    return pd.DataFrame({"id_a": ends[:, 0] + shift, "id_b": ends[:, 1] + shift, "label": same})


def share_right(model, table, truth):
    return np.mean(model.predict(table).astype(int) == truth)


def test_ids_that_count_from_one_are_no_row_numbers(survey, tmp_path):
    """Read as row numbers they would be off by one, and the answers about other people."""
    frame, ends, same, truth = survey
    answers = answers_of(ends, same, shift=1)
    for name, ending in (("person_id", "csv"), ("nr", "xlsx"), ("PersonID", "jsonl"), ("key", "parquet")):
        table = frame.assign(**{name: np.arange(1, 201)})
        path = tmp_path / f"t.{ending}"
        if ending == "jsonl":
            table.to_json(path, orient="records", lines=True)
        else:
            {"csv": table.to_csv, "parquet": table.to_parquet, "xlsx": table.to_excel}[ending](path, index=False)
        found = read_table(path, answer_ids=set(map(str, answers[["id_a", "id_b"]].to_numpy().ravel())))
        assert (found.columns.id_column, found.ids[0]) == (name, "1")
        assert name not in found.columns.feature_names
    model, streamed = (fit_table(path, answers, engine=engine, model="linear") for engine in ("memory", "stream"))
    assert model.columns.id_column == streamed.columns.id_column == "key"
    assert share_right(model, table, truth) > 0.8
    np.testing.assert_allclose(streamed.estimator.coef_, model.estimator.coef_, atol=1e-8)


def test_row_numbers_are_taken_only_where_no_column_fits(survey):
    frame, ends, same, truth = survey
    model = fit_table(frame, answers_of(ends, same), model="linear")
    assert model.columns.id_column is None
    assert share_right(model, frame, truth) > 0.8
    # A column that would fit as well, and is not called as ids are: it must be said.
    rank = frame.assign(rank=np.arange(200))
    ids = {"answer_ids": set(map(str, ends.ravel()))}
    with pytest.raises(InputError, match=r"'rank' could be the column of ids.*row numbers from 0.*`id_column=''`"):
        read_table(rank, **ids)
    for given, found in (({"id_column": "", "drop": ["rank"]}, None), ({"id_column": "rank"}, "rank")):
        assert read_table(rank, **ids, **given).columns.id_column == found


@pytest.mark.parametrize("quoted", [False, True])
def test_decimal_commas(survey, tmp_path, quoted):
    frame = survey[0]
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False, sep="," if quoted else ";", decimal=",")
    table = read_table(path)
    np.testing.assert_allclose(table.X, frame.to_numpy())
    assert {column.kind for column in table.columns.columns} == {"number"}
    np.testing.assert_allclose(in_batches(path, table.columns), table.X)


def test_a_text_among_the_numbers_of_a_sheet_costs_no_digits(tmp_path):
    numbers = [1234567.891, 0.1234567890123, 20231231.0, 1e-7, -2.0]
    frame = pd.DataFrame(
        {"id": [1234567.0, 20231231.5, "A7", 12345678.0, 1e15, 7.0], "x": [*numbers, "-"], 2020.0: 1.0}
    )
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    table = read_table(tmp_path / "t.xlsx", missing="mean")
    assert table.X[:5, 0].tolist() == numbers
    assert table.ids == ["1234567", "20231231.5", "A7", "12345678", "1000000000000000", "7"]
    assert table.columns.feature_names == ["x", "2020"]
    np.testing.assert_array_equal(in_batches(tmp_path / "t.xlsx", table.columns), table.X)


@pytest.mark.parametrize("placed", [True, False])
def test_far_cells_without_a_value_are_no_harm(tmp_path, placed):
    """Formats of cells far away, in a sheet whose cells say where they are or do not."""
    frame = pd.DataFrame({"id": [f"p{k}" for k in range(900)], "a": range(900), "b": range(900)})
    workbook = tmp_path / "t.xlsx"
    frame.to_excel(workbook, index=False)
    sheet = openpyxl.load_workbook(workbook)
    sheet.active["XFD1048576"].font = openpyxl.styles.Font(bold=True)
    sheet.save(workbook)
    if not placed:
        with zipfile.ZipFile(workbook) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(workbook, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, re.sub(rb'(<c|<row) r="[A-C]?\d{1,3}"', rb"\1", text))
    assert read_table(workbook).X.tolist() == [[k, k] for k in range(900)]


@pytest.mark.parametrize("lost_by", ["table", "answers"])
def test_lost_leading_zeros_are_named(survey, lost_by):
    frame, ends, same, _ = survey
    padded = np.array([f"{k:05}" for k in range(200)])
    plain = np.arange(200).astype(str)
    table = frame.assign(id=plain if lost_by == "table" else padded)
    ids = padded if lost_by == "table" else plain
    answers = pd.DataFrame({"id_a": ids[ends[:, 0]], "id_b": ids[ends[:, 1]], "label": same})
    with pytest.raises(InputError, match=r"lost their leading zeros\. Write the (table|answers) again.*as text"):
        fit_table(table, answers)


@pytest.mark.parametrize("what", ["table", "answers"])
def test_latin_1(tmp_path, what):
    path = tmp_path / "f.csv"
    path.write_bytes("id,stra\u00dfe\n1,2\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"not text in UTF-8: byte 0xdf.*'CSV UTF-8'.*iconv -f WINDOWS-1252"):
        read_table(path) if what == "table" else read_answers(path)


def test_answers_from_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "p.csv")
    writer = threading.Thread(target=(tmp_path / "p.csv").write_text, args=("id_a,id_b,label\na,b,1\n",))
    writer.start()
    assert read_answers(tmp_path / "p.csv").ids.tolist() == [["a", "b"]]
    writer.join()
    with pytest.raises(InputError, match="a table is read more than once"):
        read_table(tmp_path / "p.csv")


def test_the_area_of_the_cells_that_have_a_value():
    """Rows and cells that do not say where they are follow the one before."""
    first = b'<row><c><v>1</v></c><c r="C1"><v>2</v></c></row>'
    sheet = b"<s>" + first + b'<row/><row><c/><c><is>x</is></c></row><row r="9"><c r="Z9"/></row></s>'
    assert excel._filled_area(io.BytesIO(sheet)) == (3, 3, 3)
    # At most: nine rows and 26 columns, and one more of each for every cell without a place.
    assert excel._largest_area(io.BytesIO(sheet)) == ((9 + 3) * (26 + 3), 3)
    assert excel._filled_area(io.BytesIO(b"<s/>"))[0] == 0
