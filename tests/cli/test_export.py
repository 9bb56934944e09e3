import json

import numpy as np
import pandas as pd
import pytest

from sdulearn import PairLogisticRegression, SDUClassifier, TableModel, load_model
from sdulearn.columns import Column, Columns, SparseColumns
from sdulearn.errors import require
from sdulearn.io.tables import open_table

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


MEAN = np.linspace(-1, 1, 21)
SCALE = np.linspace(0.5, 2, 21)


def run_onnx(path, **inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True)), session.get_modelmeta().custom_metadata_map


ESTIMATORS = [PairLogisticRegression(), SDUClassifier(), SDUClassifier(loss="double_hinge")]


@pytest.mark.parametrize("kind", ["table model", "estimator"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_same_predictions_in_onnxruntime(call, waveform, tmp_path, capsys, estimator, kind):
    rows, codes = waveform
    estimator.fit(rows, codes)
    model = TableModel(estimator, SparseColumns(21, 1, SCALE)) if kind == "table model" else estimator
    model.save(tmp_path / "m.sdu")
    assert call("export", tmp_path / "m.sdu", "--onnx", tmp_path / "m.onnx") == 0
    assert "numbers (21 columns)" in capsys.readouterr().out
    raw = rows * SCALE if kind == "table model" else rows
    got, _ = run_onnx(tmp_path / "m.onnx", numbers=raw)
    np.testing.assert_allclose(got["decision"], estimator.decision_function(rows), atol=1e-12)
    np.testing.assert_array_equal(got["label"], estimator.predict(rows))
    assert ("probability" in got) == hasattr(estimator, "predict_proba")
    if "probability" in got:
        np.testing.assert_allclose(got["probability"], estimator.predict_proba(rows)[:, 1], atol=1e-12)


def test_texts_missing_values_and_column_order(call, waveform, tmp_path, capsys):
    """Columns of all kinds in any order, unknown and missing texts: as `predict` has it from a file."""
    rows, codes = waveform
    colours, sizes = ("", "blue", "red"), ("L", "S")
    layout = Columns(
        (
            Column("colour", "category", colours, "red"),
            *(Column(f"x{k}", "number", fill=k / 10) for k in range(15)),
            Column("size", "category", sizes, "S"),
            Column("member", "boolean", fill=0.25),
        ),
        "id",
        MEAN,
        SCALE,
    )
    TableModel(PairLogisticRegression().fit(rows, codes), layout, ("a", "b")).save(tmp_path / "m.sdu")
    call("export", tmp_path / "m.sdu", "--onnx", tmp_path / "m.onnx", "--json")
    assert json.loads(capsys.readouterr().out)["texts"] == ["colour", "size"]
    rng = np.random.default_rng(0)
    n = 50
    numbers = np.column_stack([rng.normal(size=(n, 15)), rng.integers(0, 2, n)])
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    texts = np.column_stack([rng.choice(["blue", "red", "pink"], n), rng.choice(["L", "S", "XL", ""], n)]).astype(
        object
    )
    frame = pd.DataFrame(numbers, columns=[f"x{k}" for k in range(15)] + ["member"])
    frame["member"] = frame["member"].map({1.0: "true", 0.0: "false"})
    frame = frame.assign(colour=texts[:, 0], size=texts[:, 1])
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = load_model(tmp_path / "m.sdu")
    (table,) = [batch for _, batch in open_table(tmp_path / "t.csv").batches(list(frame))]
    X, _ = model.columns.encode("t", table)
    got, metadata = run_onnx(tmp_path / "m.onnx", numbers=numbers, texts=texts)
    np.testing.assert_allclose(got["decision"], model.estimator.decision_function(model.columns.scaled(X)), atol=1e-12)
    np.testing.assert_allclose(got["probability"], model.decide(X)[1], atol=1e-12)
    assert json.loads(metadata["classes"]) == {"-1": "a", "1": "b"}
    assert json.loads(metadata["columns"])["texts"] == ["colour", "size"]


def test_the_extra_is_named():
    with pytest.raises(ImportError, match=r"pip install 'sdulearn\[onnx\]'"):
        require("onnx_is_not_here", "onnx")
