"""Three users, each from the first line to the result: a data scientist, a survey researcher, an engineer."""

import json
import subprocess
import sys

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
    found = cross_val_accuracy(model, rows, y)
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


def command(folder, *arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "sdulearn.cli.main", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_a_survey_researcher_with_two_files(patients, tmp_path):
    """Two spreadsheets and no Python: check, fit, look, predict; the id column has a name of its own."""
    table, ends, same, truth = patients
    table.to_excel(tmp_path / "patients.xlsx", index=False)
    ids = table["patient"].to_numpy()
    words = np.where(same, "yes", "no")
    answers = pd.DataFrame({"first": ids[ends[:, 0]], "second": ids[ends[:, 1]], "answer": words})
    answers.to_excel(tmp_path / "answers.xlsx", index=False)
    told = command(tmp_path, "check", "answers.xlsx", "--features", "patients.xlsx", "--answers",
                   "yes=similar,no=dissimilar")  # fmt: skip
    assert "Nothing wrong." in told
    (tmp_path / "few.csv").write_text(
        "id,label\n"
        + "\n".join(f"{ids[k]},{'benign' if truth[k] > 0 else 'malignant'}" for k in range(0, 560, 45))
        + "\n"
    )
    told = command(tmp_path, "fit", "--features", "patients.xlsx", "--pairs", "answers.xlsx", "--answers",
                   "yes=similar,no=dissimilar", "--labels", "few.csv", "-o", "model.sdu")  # fmt: skip
    for text in ("ids from 'patient'", "'yes' = similar", "Estimated accuracy: 9", "benign is -1, malignant is +1"):
        assert text in told
    assert "Estimated accuracy" in (tmp_path / "model.html").read_text()
    command(tmp_path, "predict", "model.sdu", "patients.xlsx", "-o", "classes.csv")
    classes = pd.read_csv(tmp_path / "classes.csv")
    assert classes["id"].tolist() == ids.tolist()
    assert np.mean((classes["label"] == "benign") == (truth > 0)) > 0.93


def test_an_engineer_who_serves_a_model(patients, tmp_path):
    """Fit from frames, keep the report as data, serve from the file, in Python and in ONNX."""
    table, ends, same, truth = patients
    ids = table["patient"].to_numpy()
    frame = pd.DataFrame({"id_a": ids[ends[:, 0]], "id_b": ids[ends[:, 1]], "label": same})
    answers = read_answers(frame)
    assert check_answers(answers).n_contradictions == 0
    fit_table(table, answers).save(tmp_path / "model.sdu")
    served = load_model(tmp_path / "model.sdu")
    assert isinstance(served, TableModel)
    assert served.report.accuracy.low > 0.85
    probability = served.predict_proba(table[:5])
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert np.mean(served.predict(table).astype(int) == truth) > 0.93
    report = json.loads(command(tmp_path, "inspect", "model.sdu", "--json"))
    assert report["report"]["n_rows"] == len(table)
    onnxruntime = pytest.importorskip("onnxruntime")
    columns = json.loads(command(tmp_path, "export", "model.sdu", "--onnx", "model.onnx", "--json"))["numbers"]
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (decision,) = session.run(["decision"], {"numbers": table[columns].to_numpy()})
    np.testing.assert_allclose(decision, served.decision_function(table), atol=1e-9)
