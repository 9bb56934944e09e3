"""``sdulearn fit``: what it learns, says and refuses."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from sdulearn import PairLogisticRegressionCV, PairModelCV, SDUClassifierCV, load_model
from sdulearn.cli.predict import write_answered

pytestmark = pytest.mark.usefixtures("no_importances")


@pytest.fixture
def options(files, tmp_path):
    """Options of a fit of a linear model, as changed."""

    def make(**change):
        given = {"table": files / "table.csv", "answers": files / "pairs.csv", "output": tmp_path / "model.sdu"}
        given |= {"model": "linear"} | change
        paths = given.pop("table"), given.pop("answers")
        options = (text for name, value in given.items() for text in (f"--{name.replace('_', '-')}", value))
        return ["fit", *paths, *options]

    return make


@pytest.fixture
def fitted(call, options, tmp_path):
    """Fit, and load the model."""

    def run(*more, **change):
        assert call(*options(**change), *more) == 0
        return load_model(tmp_path / "model.sdu")

    return run


def accuracy(model, files):
    predicted = model.predict(pd.read_csv(files / "table.csv")).astype(int)
    return float(np.mean(predicted == np.load(files / "y.npy")))


@pytest.mark.parametrize("method", ["auto", "su"])
def test_fit_tells_and_keeps_what_it_did(fitted, files, tmp_path, capsys, method):
    model = fitted("--verbose", method=method, model="auto" if method == "auto" else "linear")
    out = capsys.readouterr().out
    for text in ("similar", "1,500 rows, 21 columns", "ids from 'id'", "Method: ", "Prior: ", "interval", "Reading",
                 "numbers: x0, x1", "Always predicting the larger class is right "):  # fmt: skip
        assert text in out
    truth = accuracy(model, files)
    assert truth > (0.85 if method == "auto" else 0.7)
    low, high = (float(x) / 100 for x in re.search(r"accuracy: .*interval ([\d.]+)% to ([\d.]+)%", out).groups())
    # Held-out models see four fifths of the pairs, so they may fall a little short of the model itself.
    assert low - 0.02 < truth < high + 0.04
    if truth > 0.85:
        assert "warning" not in out
    kinds = {"linear": PairLogisticRegressionCV if method == "auto" else SDUClassifierCV, "boosted": PairModelCV}
    assert type(model.estimator) is kinds[model.report.model_choice.name]
    page = (tmp_path / "model.html").read_text()
    assert "<h2>Strongest features</h2>" in page
    assert not re.search(r"(src|href)=|<script|@import|url\(", page)


def test_three_sentences_and_the_warnings_by_default_and_nothing_if_quiet(call, options, files, tmp_path, capsys):
    """The warning is that of answers half of which name a row by mistake."""
    answers = pd.read_csv(files / "pairs.csv")
    answers.assign(label=answers["label"].sample(frac=1, random_state=0).to_numpy()).to_csv(tmp_path / "p.csv")
    assert call(*options()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    where = f"The model is in {tmp_path / 'model.sdu'}, its report in {tmp_path / 'model.html'}."
    assert lines[3] == where
    assert call(*options(answers=tmp_path / "p.csv")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 4
    assert all(line.startswith("warning: ") for line in lines[3:-1])
    assert lines[-1] == where
    assert call(*options(answers=tmp_path / "p.csv"), "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    assert call(*options(answers=tmp_path / "none.csv"), "--quiet") == 2
    assert capsys.readouterr().err.startswith("sdulearn: ")
    # Later calls print again.
    assert call(*options(), "--verbose") == 0
    assert len(capsys.readouterr().out.splitlines()) > 10


def test_mistakes_in_the_answers_stop_the_fit_unless_they_are_skipped(
    fitted, refused, options, files, tmp_path, capsys
):
    text = (files / "pairs.csv").read_text()
    (tmp_path / "p.csv").write_text(
        text + "r1,r1,similar\nr2,nobody,similar\nr3,r4,perhaps\n" + text.splitlines()[1] + "\n"
    )
    told = refused(*options(answers=tmp_path / "p.csv"))
    assert all(f"(line {line})" in told for line in (402, 403, 404))
    assert "--skip-bad" in told
    skipped = fitted("--skip-bad", "--verbose", answers=tmp_path / "p.csv", method="sd").estimator.coef_
    out = capsys.readouterr().out
    assert all(f"(line {line})" in out for line in (402, 403, 404))
    assert "1 repeated question" in out
    np.testing.assert_allclose(skipped, fitted(method="sd").estimator.coef_)


@pytest.mark.parametrize(
    "change",
    [
        {"output": "nowhere/at/all.sdu"},
        {"output": "model.html"},
        {"id_column": "x"},
        {"id_column": "x0", "drop": "id"},
        {"id_column": "x0"},
    ],
)
def test_wrong_calls(refused, options, tmp_path, monkeypatch, change):
    monkeypatch.chdir(tmp_path)
    refused(*options(**change))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "name"), [("output", "table.csv"), ("report", "pairs.csv"), ("answered", "few.csv")]
)
def test_an_input_is_never_overwritten(refused, options, files, option, name):
    before = (files / name).read_bytes()
    assert f"{name} is read by this command" in refused(*options(**{"labels": files / "few.csv", option: files / name}))
    assert (files / name).read_bytes() == before


def test_the_report_as_json(fitted, files, tmp_path, capsys):
    model = fitted("--json", labels=files / "few.csv")
    found = json.loads(capsys.readouterr().out)
    facts = {one["code"]: one for one in found["findings"]}
    assert facts["labels_used"]["numbers"]["classes"] == ["cat", "dog"]
    assert "labels_disagree" not in facts
    assert facts["headline"]["numbers"]["low"] == found["report"]["accuracy"]["low"] == model.report.accuracy.low
    assert found["report"]["prior"]["value"] == model.estimator.prior_.value
    assert (found["report"]["n_rows"], found["report"]["n_labels"]) == (1500, 20)
    assert found["model"] == str(tmp_path / "model.sdu")
    assert facts["headline"]["text"] in model.summary().split("\n")


LONG = "y" * 9_999
ANSWERS = "id_a,id_b,label\na,b,1\nc,d,0\n"
NAMES = ",".join(f"x{k}" for k in range(5_000)) + "\n1" + 4_999 * ",1"
LONG_CELLS = {
    "number": ("id,x\n" + "".join(f"p{k},{k}\n" for k in range(30)) + f"q,{LONG}\n", ANSWERS, "the first 'yyy"),
    "names": (NAMES, ANSWERS, "Its columns: x0, x1, .*5,000 in all"),
    "header": ("id,x\na,1\nb,2\n", f"{LONG},b\na,b\n", "which column is"),
    "label": ("id,x\na,1\nb,2\n", f"id_a,id_b,label\na,b,{LONG}\n", "label 'yyy"),
    "id": (f"id,x\n{LONG},1\n{LONG},2\n", f"id_a,id_b,label\n{LONG},b,1\n", "but 'yyy.*occurs 2 times"),
}


@pytest.mark.parametrize("kind", LONG_CELLS)
def test_long_cells_are_cut_in_messages(refused, options, tmp_path, kind):
    table, answers, message = LONG_CELLS[kind]
    (tmp_path / "t.csv").write_text(table)
    (tmp_path / "a.csv").write_text(answers)
    given = {"table": tmp_path / "t.csv", "answers": tmp_path / "a.csv"}
    given |= {"id_column": "z"} if kind == "names" else {}
    told = refused(*options(**given))
    assert re.search(message, told)
    assert len(told.replace(str(tmp_path), "")) < 700


def test_the_rows_that_were_asked_about_are_written(fitted, refused, options, files, tmp_path, capsys):
    answers = pd.read_csv(files / "pairs.csv")[:60]
    answers.to_csv(tmp_path / "some.csv", index=False)
    given = {"answers": tmp_path / "some.csv", "labels": files / "few.csv", "max_unlabeled": 200}
    model = fitted(**given, answered=tmp_path / "asked.csv")
    assert str(tmp_path / "asked.csv") in capsys.readouterr().out
    write_answered(tmp_path / "asked.parquet", model)
    asked = pd.read_csv(tmp_path / "asked.csv")
    assert asked.columns.tolist() == ["id", "label", "probability", "n_answers"]
    pd.testing.assert_frame_equal(asked, pd.read_parquet(tmp_path / "asked.parquet"), check_dtype=False)
    assert set(asked["id"]) == set(answers["id_a"]) | set(answers["id_b"])
    assert asked["id"].tolist() == model.answered["id"].tolist()
    assert (asked["label"] == np.where(asked["probability"] > 0.5, "dog", "cat")).all()
    assert asked["n_answers"].sum() == 120
    for more in (("a.csv", "--method", "sddu"), (tmp_path / "a.xls",), (tmp_path / "no" / "a.csv",)):
        refused(*options(), "--answered", *more)


def test_a_column_that_may_say_who_answered_is_not_dropped_without_a_word(call, files, tmp_path, capsys):
    answers = pd.read_csv(files / "pairs.csv")
    answers["Team member"] = np.resize(["Ann", "Bob"], len(answers))
    answers["remark"] = [f"remark {k}" for k in range(len(answers))]
    answers.to_csv(tmp_path / "a.csv", index=False)
    fit = ("fit", files / "table.csv", tmp_path / "a.csv", "-o", tmp_path / "m.sdu", "--model", "linear")
    assert call("check", tmp_path / "a.csv") == 1
    told = capsys.readouterr().out
    assert "'Team member', 'remark'" in told
    assert "--answer-columns 'annotator=Team member'" in told
    assert call(*fit) == 0
    assert "--answer-columns 'annotator=Team member'" in capsys.readouterr().out
    named = ("--answer-columns", "annotator=Team member", "--json")
    call("check", tmp_path / "a.csv", *named)
    found = {one["code"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    unused = found["unused_columns"]
    assert (unused["severity"], unused["numbers"]) == ("info", {"columns": ["remark"], "people": []})
    assert found["crowd"]["numbers"]["n_people"] == 2
    assert call(*fit, *named) == 0
    told = json.loads(capsys.readouterr().out)
    assert [person["name"] for person in told["report"]["annotators"]] == ["Ann", "Bob"]
    assert "unused_columns" not in [finding["code"] for finding in told["findings"]]
