"""A data scientist and an engineer, each from the first line to the result; others are in test_everyday_files.py."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import (
    PairKFold,
    PairLogisticRegression,
    PairLogisticRegressionCV,
    TableModel,
    fit_table,
    load_model,
    stack_pairs,
)
from sdulearn.answers import check_answers, read_answers
from sdulearn.cli.main import main
from sdulearn.diagnostics import check_assumptions
from sdulearn.metrics import cross_val_accuracy


@pytest.fixture(scope="module")
def patients():
    """Breast cancer as a table with ids, 220 random questions and their answers, and the truth."""
    data = load_breast_cancer(as_frame=True)
    truth = np.where(data.target == 1, 1, -1)
    table = data.data.assign(patient=[f"P{k:03}" for k in range(len(truth))])
    ends = np.random.default_rng(7).integers(0, len(truth), (220, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return table, ends, truth[ends[:, 0]] == truth[ends[:, 1]], truth


def test_a_data_scientist(patients, tmp_path):
    """scikit-learn's own tools around our estimators: pipelines, grids, scores, a saved model."""
    table, ends, same, truth = patients
    features = table.drop(columns="patient")
    rows, y = stack_pairs(features, ends, same)
    model = make_pipeline(StandardScaler(), PairLogisticRegressionCV())
    found = cross_val_accuracy(model, rows, y, cv=5)
    accuracy = np.mean(model.fit(rows, y).predict(features) == truth)
    assert found.low - 0.01 <= accuracy <= found.high + 0.01
    assert accuracy > 0.93
    grid = {"pairlogisticregression__alpha": [0.001, 0.01, 0.1]}
    pipeline = make_pipeline(StandardScaler(), PairLogisticRegression())
    search = GridSearchCV(pipeline, grid, cv=PairKFold(4, random_state=0)).fit(rows, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert np.mean(search.predict(features) == truth) > 0.9
    scores = cross_val_score(pipeline, rows, y, cv=PairKFold(5, random_state=0))
    assert ((scores >= 0.5) & (scores <= 1)).all()
    assert [finding.code for finding in check_assumptions(rows, y) if finding.severity == "error"] == []
    model[-1].save(tmp_path / "model.sdu")
    scaled = model[:-1].transform(features)
    np.testing.assert_array_equal(load_model(tmp_path / "model.sdu").predict(scaled), model.predict(features))


def test_an_engineer_who_serves_a_model(patients, tmp_path, capsys, no_importances):
    """Fit from frames, keep the report as data, serve from the file, in Python and in ONNX."""
    table, ends, same, truth = patients
    ids = table["patient"].to_numpy()
    frame = pd.DataFrame({"id_a": ids[ends[:, 0]], "id_b": ids[ends[:, 1]], "label": same})
    answers = read_answers(frame)
    assert check_answers(answers).n_contradictions == 0
    model = tmp_path / "model.sdu"
    fit_table(table, answers).save(model)
    served = load_model(model)
    assert isinstance(served, TableModel)
    assert served.report.accuracy.low > 0.85
    probability = served.predict_proba(table[:5])
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert np.mean(served.predict(table).astype(int) == truth) > 0.93
    assert main(["inspect", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"]["n_rows"] == len(table)
    onnxruntime = pytest.importorskip("onnxruntime")
    assert main(["export", str(model), "--onnx", str(tmp_path / "model.onnx"), "--json"]) == 0
    columns = json.loads(capsys.readouterr().out)["numbers"]
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (decision,) = session.run(["decision"], {"numbers": table[columns].to_numpy()})
    np.testing.assert_allclose(decision, served.decision_function(table), atol=1e-9)
