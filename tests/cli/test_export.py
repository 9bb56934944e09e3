import json

import pytest

from sdulearn import PairLogisticRegression, SDUClassifier, TableModel
from sdulearn.columns import Column, Columns

pytest.importorskip("onnx")


def test_what_the_graph_takes_is_said(call, waveform, tmp_path, capsys):
    """Its outputs are tested in tests/io/test_onnx.py."""
    SDUClassifier().fit(*waveform).save(tmp_path / "m.sdu")
    assert call("export", tmp_path / "m.sdu", "--onnx", tmp_path / "m.onnx") == 0
    said = capsys.readouterr().out
    assert "numbers (21 columns), texts (0 columns)" in said
    assert "label -1 is -1, 1 is 1; column names are in its metadata" in said
    assert (tmp_path / "m.onnx").stat().st_size > 500
    columns = [*(Column(f"x{k}", "number") for k in range(19)), Column("colour", "category", ("blue", "red"))]
    model = TableModel(PairLogisticRegression().fit(*waveform), Columns.unscaled(columns), ("a", "b"))
    model.save(tmp_path / "m.sdu")
    call("export", tmp_path / "m.sdu", "--onnx", tmp_path / "m.onnx", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["texts"], len(found["numbers"]), found["classes"]) == (["colour"], 19, ["a", "b"])
