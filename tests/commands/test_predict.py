import argparse
import csv

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from sdulearn import PairLogisticRegression, SDUClassifier, tables
from sdulearn.commands import predict
from sdulearn.servable import TableModel
from sdulearn.tables import Column, ColumnLayout, SparseLayout


def call(*arguments):
    parser = argparse.ArgumentParser()
    predict.add_arguments(parser)
    return predict.run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture
def model(waveform, tmp_path):
    rows, codes = waveform
    layout = ColumnLayout(tuple(Column(f"x{k}", "number") for k in range(21)), "id")
    model = TableModel(PairLogisticRegression().fit(rows, codes), layout, np.ones(21), ("no", "yes, sir"))
    model.save(tmp_path / "model.sdu")
    return model


@pytest.fixture
def frame(waveform):
    frame = pd.DataFrame(waveform[0], columns=[f"x{k}" for k in range(21)])
    return frame.assign(id=[f'r "{k}", é' for k in range(len(frame))])


@pytest.mark.parametrize("name", ["csv", "parquet", "jsonl.gz"])
def test_rows_keep_their_order_and_ids(model, frame, waveform, tmp_path, monkeypatch, capsys, name):
    monkeypatch.setattr(tables, "_CHUNK_ROWS", 17)
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 9000)
    path = tmp_path / f"table.{name}"
    if name == "csv":
        frame.to_csv(path, index=False)
    elif name == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    assert call(tmp_path / "model.sdu", path, "-o", tmp_path / "out.csv") == 0
    out = pd.read_csv(tmp_path / "out.csv")
    assert out["id"].tolist() == frame["id"].tolist()
    expected = model.estimator.predict_proba(waveform[0])[:, 1]
    np.testing.assert_allclose(out["probability"], expected, atol=1e-12)
    assert out["label"].tolist() == np.where(expected > 0.5, "yes, sir", "no").tolist()
    said = capsys.readouterr().out
    assert f"{len(frame)} rows" in said
    assert "probability is that of yes, sir" in said


def test_the_screen_gets_nothing_but_the_table(model, frame, tmp_path, capsys):
    frame[:3].to_csv(tmp_path / "t.csv", index=False)
    call(tmp_path / "model.sdu", tmp_path / "t.csv")
    captured = capsys.readouterr()
    rows = list(csv.reader(captured.out.splitlines()))
    assert rows[0] == ["id", "label", "probability"]
    assert len(rows) == 4
    assert "3 rows" in captured.err


def test_a_failure_half_way_leaves_no_file(model, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 9000)
    broken = frame.astype({"x3": object})
    broken.loc[len(frame) - 1, "x3"] = "oops"
    broken.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match="oops"):
        call(tmp_path / "model.sdu", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.sdu", "t.csv"]


def test_a_loss_without_probabilities_and_a_sparse_table(waveform, tmp_path, capsys):
    rows, codes = waveform
    estimator = SDUClassifier(loss="double_hinge").fit(rows, codes)
    TableModel(estimator, SparseLayout(21, 1), np.ones(21)).save(tmp_path / "model.sdu")
    dump_svmlight_file(sparse.csr_matrix(rows), np.zeros(len(rows)), str(tmp_path / "t.svm"), zero_based=False)
    call(tmp_path / "model.sdu", tmp_path / "t.svm", "-o", tmp_path / "out.tsv")
    out = pd.read_csv(tmp_path / "out.tsv", sep="\t")
    assert out.columns.tolist() == ["id", "label"]
    assert out["id"].tolist() == list(range(len(rows)))
    np.testing.assert_array_equal(out["label"], estimator.predict(rows))


def test_new_texts_are_told(waveform, tmp_path, capsys):
    rows, codes = waveform
    layout = ColumnLayout((*(Column(f"x{k}", "number") for k in range(19)), Column("c", "category", ("a", "b"))))
    TableModel(SDUClassifier().fit(rows, codes), layout, np.ones(21)).save(tmp_path / "model.sdu")
    frame = pd.DataFrame(rows[:, :19], columns=[f"x{k}" for k in range(19)]).assign(c="new")
    frame.to_csv(tmp_path / "t.csv", index=False)
    call(tmp_path / "model.sdu", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert f"warning: {len(rows)} texts in 'c' did not occur in training" in capsys.readouterr().out


def test_wrong_files(model, tmp_path):
    (tmp_path / "t.csv").write_text("id,x0\na,1\n")
    with pytest.raises(ValueError, match="lacks the column 'x1'"):
        call(tmp_path / "model.sdu", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    with pytest.raises(ValueError, match="not an sdulearn model"):
        call(tmp_path / "t.csv", tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"must end in \.csv, \.tsv"):
        call(tmp_path / "model.sdu", tmp_path / "t.csv", "-o", tmp_path / "out.xlsx")
