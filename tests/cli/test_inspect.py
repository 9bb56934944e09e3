import json

from sdulearn import PairLogisticRegressionCV, SDUClassifier, TableModel
from sdulearn.tables.columns import Column
from tests.reference import unscaled

COLUMNS = (*(Column(f"x{k}", "number", fill=1.5) for k in range(19)), Column("c", "category", ("a", "b"), "a"))


def saved(waveform, path, layout, report=None):
    model = PairLogisticRegressionCV().fit(*waveform)
    model.coef_[0, 4] = 99.0
    TableModel(model, layout, ("no", "yes"), report).save(path)


def test_a_table_model(call, waveform, tmp_path, capsys, fit_report):
    saved(waveform, tmp_path / "m.sdu", unscaled(COLUMNS, "id"), fit_report)
    assert call("inspect", tmp_path / "m.sdu", "--top", 2) == 0
    out = capsys.readouterr().out
    for text in ("alpha", "Prior: ", "no (-1), yes (+1)", "(90.0%, 95% interval 80.0% to 95.0%",
                 "c: category (a, b), missing values become a", "+99  x4", "look \\x1b[2J out"):  # fmt: skip
        assert text in out
    assert "\x1b" not in out
    assert out.count("\n  ") - len(COLUMNS) == 2
    call("inspect", tmp_path / "m.sdu", "--json")
    found = json.loads(capsys.readouterr().out)
    strengths = next(one["numbers"]["strengths"] for one in found["findings"] if one["code"] == "strengths")
    assert next(iter(strengths["yes"].items())) == ("x4", 99)
    assert len(strengths["yes"]) == 21
    assert found["report"]["accuracy"]["n_answers"] == 60
    assert found["columns"]["columns"][-1]["categories"] == ["a", "b"]


def test_models_without_a_report(call, waveform, tmp_path, capsys):
    """Of a table, and estimators that were saved from Python."""
    saved(waveform, tmp_path / "m.sdu", unscaled([Column(f"x{k}", "number") for k in range(21)]))
    assert call("inspect", tmp_path / "m.sdu") == 0
    assert "Estimated accuracy" not in capsys.readouterr().out
    SDUClassifier("su", "double_hinge", prior=0.7, alpha=0.25).fit(*waveform).save(tmp_path / "m.sdu")
    assert call("inspect", tmp_path / "m.sdu") == 0
    assert "risk su, loss double_hinge: alpha 0.25" in capsys.readouterr().out
    call("inspect", tmp_path / "m.sdu", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["parameters"]["loss"]) == ("estimator", "double_hinge")
