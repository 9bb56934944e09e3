import csv
import gzip
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sdulearn import PairLogisticRegression, SDUClassifier, TableModel
from sdulearn.answer_files.rows import read_labels
from sdulearn.tables import source as tables
from sdulearn.tables.columns import Column
from tests.reference import unscaled


@pytest.fixture
def model(waveform, tmp_path):
    rows, codes = waveform
    layout = unscaled([Column(f"x{k}", "number") for k in range(21)], "id")
    model = TableModel(PairLogisticRegression().fit(rows, codes), layout, ("no", "yes, sir"))
    model.save(tmp_path / "model.sdu")
    return model


@pytest.fixture
def frame(waveform):
    frame = pd.DataFrame(waveform[0], columns=[f"x{k}" for k in range(21)])
    return frame.assign(id=[f'r "{k}", é' for k in range(len(frame))])


def test_json_lines_whose_first_rows_lack_the_id_are_named_by_it(call, model, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 17)
    lines = [*frame[:20].drop(columns="id").to_dict("records"), *frame[20:].to_dict("records")]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    call("predict", tmp_path / "model.sdu", tmp_path / "t.jsonl", "-o", tmp_path / "out.csv")
    ids = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)["id"]
    assert ids.tolist() == [""] * 20 + frame["id"].tolist()[20:]


def test_the_screen_gets_nothing_but_the_table_and_no_row_steers_it(call, model, frame, tmp_path, capsys):
    frame.assign(id="\x1b[2J")[:3].to_csv(tmp_path / "t.csv", index=False)
    call("predict", tmp_path / "model.sdu", tmp_path / "t.csv")
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 4
    rows = list(csv.reader(captured.out.splitlines()))
    assert [row[0] for row in rows] == ["id", *["\\x1b[2J"] * 3]
    assert rows[0] == ["id", "label", "probability"]
    assert "3 rows" in captured.err
    # Nothing of a table that cannot be predicted, not even a header.
    frame.drop(columns="x3").to_csv(tmp_path / "t.csv", index=False)
    assert call("predict", tmp_path / "model.sdu", tmp_path / "t.csv") == 2
    assert capsys.readouterr().out == ""
    frame[:0].to_parquet(tmp_path / "t.parquet")
    call("predict", tmp_path / "model.sdu", tmp_path / "t.parquet")
    assert capsys.readouterr().out == "id,label,probability\n"


FORMULAS = ["=HYPERLINK(1)", "@A1", "+49 170", "-2+3+cmd|' /C calc'!A0", "'=1", "＝1+1"]
HARMLESS = ["-1", "+1", "-17.5", "+", "-", "a=b", "O'Hara", "1e-5", "'-1"]


@pytest.mark.parametrize(("name", "mark"), [("out.csv", ","), ("out.tsv", "\t")])
def test_no_id_and_no_class_is_a_formula_and_numbers_stay(call, model, frame, tmp_path, capsys, name, mark):
    ids = [*FORMULAS, *HARMLESS]
    replace(model, classes=("-1", "=A1")).save(tmp_path / "model.sdu")
    frame[::13][: len(ids)].assign(id=ids).to_parquet(tmp_path / "t.parquet")
    predict = ("predict", tmp_path / "model.sdu", tmp_path / "t.parquet", "-o")
    call(*predict, tmp_path / name)
    assert "warning: 6 cells of 'id' begin like a formula" in capsys.readouterr().out
    with (tmp_path / name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=mark))
    assert [row[0] for row in rows[1:]] == [*("'" + text for text in FORMULAS), *HARMLESS]
    assert {row[1] for row in rows[1:]} == {"-1", "'=A1"}
    call(*predict, tmp_path / name, "--json")
    n_formulas = [row[1] for row in rows].count("'=A1")
    assert json.loads(capsys.readouterr().out)["formulas"] == {"id": 6, "label": n_formulas}
    # As labels they are read as they were, and Parquet keeps them.
    assert list(read_labels(tmp_path / name).by_id) == ids
    call(*predict, tmp_path / "out.parquet")
    assert pd.read_parquet(tmp_path / "out.parquet")["id"].tolist() == ids
    assert "like a formula" not in capsys.readouterr().out


def test_a_loss_without_probabilities(call, waveform, tmp_path, capsys):
    rows, codes = waveform
    estimator = SDUClassifier(loss="double_hinge").fit(rows, codes)
    layout = unscaled([Column(f"x{k}", "number") for k in range(21)])
    TableModel(estimator, layout).save(tmp_path / "model.sdu")
    pd.DataFrame(rows, columns=layout.feature_names).to_csv(tmp_path / "t.csv", index=False)
    call("predict", tmp_path / "model.sdu", tmp_path / "t.csv", "-o", tmp_path / "out.tsv")
    out = pd.read_csv(tmp_path / "out.tsv", sep="\t")
    assert out.columns.tolist() == ["id", "label"]
    assert out["id"].tolist() == list(range(len(rows)))
    np.testing.assert_array_equal(out["label"], estimator.predict(rows))


def write_folder(frame, folder):
    """Three files, each with row groups of 17."""
    folder.mkdir()
    for k, piece in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[piece].to_parquet(folder / f"part-{k}.parquet", row_group_size=17)
    return folder


@pytest.mark.parametrize(
    ("source", "output"), [("folder", "parquet"), ("folder", "csv"), ("csv", "parquet"), ("jsonl.gz", "csv")]
)
def test_rows_keep_their_order_and_ids(call, model, frame, waveform, tmp_path, monkeypatch, capsys, source, output):
    monkeypatch.setattr(tables, "BATCH_ROWS", 17)
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 9000)
    path = tmp_path / f"table.{source}"
    if source == "folder":
        write_folder(frame, path)
    elif source == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    assert call("predict", tmp_path / "model.sdu", path, "-o", tmp_path / f"out.{output}") == 0
    out = (pd.read_parquet if output == "parquet" else pd.read_csv)(tmp_path / f"out.{output}")
    assert out.columns.tolist() == ["id", "label", "probability"]
    assert out["id"].tolist() == frame["id"].tolist()
    expected = model.estimator.predict_proba(waveform[0])[:, 1]
    np.testing.assert_allclose(out["probability"], expected, atol=1e-12)
    assert out["label"].tolist() == np.where(expected > 0.5, "yes, sir", "no").tolist()
    captured = capsys.readouterr()
    counts = f"{(expected <= 0.5).sum()} of class no, {(expected > 0.5).sum()} of class yes, sir"
    assert f"{len(frame)} rows, {counts}; probability: that of class yes, sir" in captured.out
    assert captured.err == ""


@pytest.mark.parametrize("ids", ["", "whole", "coarse"])
def test_parquet_keeps_ids_as_they_are(call, refused, model, frame, tmp_path, ids):
    frame = frame.drop(columns="id").assign(whole=np.arange(len(frame)) + 5, coarse=pd.Categorical(frame["id"]))
    path = write_folder(frame, tmp_path / "folder")
    # The same numbers in a narrower type in another file.
    first = pq.read_table(path / "part-1.parquet")
    place = first.column_names.index("whole")
    pq.write_table(first.set_column(place, "whole", first["whole"].cast("int16")), path / "part-1.parquet")
    predict = ("predict", tmp_path / "model.sdu", path, "-o", tmp_path / "out.parquet")
    # Row numbers are not ids unless somebody says so.
    assert "no column 'id'" in refused(*predict)
    call(*predict, "--id-column", ids)
    found = pq.read_table(tmp_path / "out.parquet")["id"]
    assert found.type == (pa.string() if ids == "coarse" else pa.int64())
    assert found.to_pylist() == (frame[ids].tolist() if ids else list(range(len(frame))))


def test_a_failure_in_the_last_file_leaves_no_file(refused, model, frame, tmp_path):
    path = write_folder(frame, tmp_path / "folder")
    frame.assign(x3=np.inf)[-5:].to_parquet(path / "z.parquet")
    for name in ("out.parquet", "out.csv"):
        told = refused("predict", tmp_path / "model.sdu", path, "-o", tmp_path / name)
        assert "infinite values in 'x3' (row 1 of z.parquet)" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "model.sdu"]
    for file in path.iterdir():
        pd.read_parquet(file).drop(columns="x7").to_parquet(file)
    told = refused("predict", tmp_path / "model.sdu", path, "-o", tmp_path / "out.parquet")
    assert "folder lacks the column 'x7' that the model needs" in told


def test_zipped_as_json_and_never_over_an_input(call, refused, model, frame, waveform, tmp_path, capsys):
    frame.to_csv(tmp_path / "t.csv", index=False)
    before = (tmp_path / "t.csv").read_bytes()
    predict = ("predict", tmp_path / "model.sdu", tmp_path / "t.csv")
    call(*predict, "-o", tmp_path / "out.csv.gz")
    capsys.readouterr()
    call(*predict, "-o", tmp_path / "out.csv", "--json")
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()) == (tmp_path / "out.csv").read_bytes()
    found = json.loads(capsys.readouterr().out)
    n_yes = int((model.estimator.decision_function(waveform[0]) > 0).sum())
    assert found["classes"] == {"no": len(frame) - n_yes, "yes, sir": n_yes}
    assert "name a file" in refused(*predict, "--json")
    assert "is read by this command" in refused(*predict, "-o", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == before


def test_rows_with_answers_are_predicted_by_these_too(call, refused, model, frame, tmp_path, capsys):
    frame.assign(id=[f"r{k}" for k in range(len(frame))]).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "a.csv").write_text("id_a,id_b,label\nr0,r150,same\nr1,r150,different\nr2,r3,unsure\n")
    predict = ("predict", tmp_path / "model.sdu", tmp_path / "t.csv")
    both = (*predict, "--answers", tmp_path / "a.csv")
    call(*predict, "-o", tmp_path / "plain.csv")
    assert "from features and answers" not in capsys.readouterr().out
    for name in ("out.csv", "out.parquet"):
        call(*both, "-o", tmp_path / name)
        assert capsys.readouterr().out.endswith("; 3 rows from features and answers\n")
    found, plain = (pd.read_csv(tmp_path / name) for name in ("out.csv", "plain.csv"))
    # What these probabilities are is in tests/workflow/test_answered.py.
    assert found["probability"][0] != plain["probability"][0]
    pd.testing.assert_frame_equal(found, pd.read_parquet(tmp_path / "out.parquet"), check_dtype=False)
    assert found["n_answers"].tolist() == [1, 1, *[0] * 148, 2, *[0] * (len(frame) - 151)]
    rest = found["n_answers"] == 0
    pd.testing.assert_frame_equal(found.loc[rest, plain.columns], plain[rest])
    assert "would overwrite it" in refused(*both, "-o", tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("id_a,id_b,label\nr0,r1,same\nr0,r1,different\nr0,nobody,same\n")
    assert "line 4" in refused(*both)
    # Two answers that contradict each other cancel.
    call(*both, "--skip-bad", "-o", tmp_path / "again.csv")
    assert pd.read_csv(tmp_path / "again.csv")["probability"][0] == pytest.approx(plain["probability"][0])


def test_the_place_to_write_to_is_never_guessed(call, refused, model, frame, tmp_path, monkeypatch, capsys):
    """Standard output, a file, or a folder: of these "-" and "out/" are as clear as "out.csv"; "out" is not."""
    monkeypatch.chdir(tmp_path)
    frame[:3].to_csv("t.csv", index=False)
    assert call("predict", "model.sdu", "t.csv", "-o", "-") == 0
    screen = capsys.readouterr().out
    assert call("predict", "model.sdu", "t.csv", "--quiet") == 0
    assert capsys.readouterr() == (screen, "")
    for name in ("classes", "classes.xlsx"):
        told = refused("predict", "model.sdu", "t.csv", "-o", name)
        assert ".csv" in told
        assert ".sav" not in told
    assert call("predict", "model.sdu", "t.csv", "-o", "classes/") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["classes", "model.sdu", "t.csv"]
    assert pd.read_parquet("classes")["id"].tolist() == frame["id"].tolist()[:3]
