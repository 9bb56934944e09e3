"""Three users, from everyday files to the result: a data scientist, a survey researcher, an engineer."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sdulearn import (
    PairKFold,
    PairLogisticRegression,
    TableModel,
    fit_table,
    load_model,
    stack_pairs,
)
from sdulearn.answers import check_answers, read_answers
from sdulearn.cli.main import main
from sdulearn.diagnostics import check_assumptions
from sdulearn.metrics import cross_val_accuracy

FILES = Path(__file__).parent / "files"
# Every other one is tall, which is what the answers are about.
TRUTH = np.where(np.arange(36) % 2, 1, -1)


def rightness(classes):
    """Share of right classes, up to their names."""
    right = np.mean(classes == TRUTH)
    return max(right, 1 - right)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
def test_a_data_scientist(tmp_path):
    """scikit-learn's own tools around our estimators: pipelines, grids, scores, a saved model."""
    table = pd.read_csv(FILES / "german.csv", sep=";", decimal=",", dtype={"id": str})
    answers = read_answers(FILES / "answers-crowd.csv")
    place = pd.Series(table.index, table["id"])
    ends = place[answers.ids.ravel()].to_numpy().reshape(-1, 2)
    rows, y = stack_pairs(table, ends, answers.answers > 0)
    columns = make_column_transformer((StandardScaler(), ["height", "income"]), (OneHotEncoder(), ["member", "city"]))
    model = make_pipeline(columns, PairLogisticRegression())
    found = cross_val_accuracy(model, rows, y, cv=5)
    assert found.low <= rightness(model.fit(rows, y).predict(table)) <= found.high + 0.01
    grid = {"pairlogisticregression__alpha": [0.001, 0.01, 0.1]}
    search = GridSearchCV(model, grid, cv=PairKFold(4, random_state=0)).fit(rows, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert rightness(search.predict(table)) > 0.9
    scores = cross_val_score(model, rows, y, cv=PairKFold(4, random_state=0))
    assert ((scores >= 0.5) & (scores <= 1)).all()
    features = model[:-1].transform(rows)
    assert [finding.code for finding in check_assumptions(features, y) if finding.severity == "error"] == []
    model[-1].save(tmp_path / "model.sdu")
    np.testing.assert_array_equal(load_model(tmp_path / "model.sdu").predict(features), model.predict(rows))


@pytest.fixture
def command(tmp_path, monkeypatch, capsys, no_importances):
    """Runs a command in a folder, and gives what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        assert main([str(argument) for argument in arguments]) == code
        return capsys.readouterr().out

    return run


def test_a_survey_researcher_with_german_spreadsheets(tmp_path, command):
    """No Python: check, fit, look, predict; semicolons, decimal commas, dates, ids with zeros and German words."""
    table, answers = FILES / "german.csv", FILES / "answers-german.csv"
    told = command("check", answers, "--table", table, code=1)
    assert "'gleich' = similar" in told
    assert "1 answer repeats another" in told
    ids = pd.read_csv(table, sep=";", dtype=str)["id"]
    few = [f"{ids[k]};{'groß' if TRUTH[k] > 0 else 'klein'}" for k in range(0, 36, 5)]
    (tmp_path / "few.csv").write_text("\n".join(["Kennung;Klasse", *few]))
    told = command("fit", table, answers, "--labels", "few.csv", "-o", "model.sdu", "--verbose")
    for text in ("36 rows, 5 columns", "ids from 'id'", "groß is -1, klein is +1", "Estimated accuracy: at least"):
        assert text in told
    assert "Estimated accuracy" in (tmp_path / "model.html").read_text()
    command("predict", "model.sdu", table, "-o", "classes.csv")
    classes = pd.read_csv(tmp_path / "classes.csv", dtype={"id": str})
    assert classes["id"].tolist() == ids.tolist()
    assert np.mean((classes["label"] == "groß") == (TRUTH > 0)) > 0.9


def test_an_engineer_who_serves_a_model(tmp_path, command):
    """Fit from lines of JSON, keep the report as data, serve other formats from the file."""
    answers = read_answers(FILES / "answers-second-sheet.xlsx", columns={"sheet": "answers"})
    assert check_answers(answers).n_contradictions == 0
    fit_table(FILES / "lines.jsonl", answers).save(tmp_path / "model.sdu")
    served = load_model(tmp_path / "model.sdu")
    assert isinstance(served, TableModel)
    assert served.report.accuracy.low > 0.6
    table = pd.read_csv(FILES / "plain.csv", dtype={"id": str}, parse_dates=["joined"])
    np.testing.assert_allclose(served.predict_proba(table[:5]).sum(axis=1), 1)
    assert rightness(served.predict(table)) > 0.9
    told = command("predict", "model.sdu", FILES / "packed.csv.gz")
    printed = [float(line.split(",")[2]) for line in told.split()[1:]]
    np.testing.assert_allclose(printed, served.predict_proba(table)[:, 1])
    report = json.loads(command("inspect", "model.sdu", "--json"))
    assert report["report"]["n_rows"] == 36
