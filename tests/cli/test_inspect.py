import argparse

import numpy as np
import pytest

from sdulearn import ModelFileError, PairLogisticRegressionCV, SDUClassifier, modelfile
from sdulearn.cli import inspect
from sdulearn.io.tables import Column, ColumnLayout, SparseLayout
from sdulearn.table_model import TableModel


def call(*arguments):
    parser = argparse.ArgumentParser()
    inspect.add_arguments(parser)
    return inspect.run(parser.parse_args([str(argument) for argument in arguments]))


ABOUT = {
    "accuracy": {"value": 0.9, "low": 0.8, "high": 0.95, "n_answers": 60, "agreement": 0.82, "risk_accuracy": None},
    "table": {"rows": 1000, "file": "t.csv"},
    "pairs": {"similar": 40, "dissimilar": 20, "file": "p.csv"},
    "warnings": ["look \x1b[2J out"],
}
COLUMNS = (*(Column(f"x{k}", "number", fill=1.5) for k in range(19)), Column("c", "category", ("a", "b"), "a"))


def saved(waveform, path, layout, about):
    model = PairLogisticRegressionCV().fit(*waveform)
    model.coef_[0, 4] = 99.0
    TableModel(model, layout, np.ones(21), ("no", "yes"), about).save(path)


def test_a_table_model(waveform, tmp_path, capsys):
    saved(waveform, tmp_path / "m.sdu", ColumnLayout(COLUMNS, "id"), ABOUT)
    assert call(tmp_path / "m.sdu", "--top", 2) == 0
    out = capsys.readouterr().out
    for text in (
        "PairLogisticRegressionCV", "alpha", "covariance_power",
        "prior: 0.", "no (-1) and yes (+1)", "probabilities: yes",
        "accuracy: 90.0% (95% interval 80.0% to 95.0%)", "1,000 rows of t.csv", "40 similar", "ids from 'id'",
        "c: category (a, b), missing = a", "x3: number, missing = 1.5", "+99  x4", "look \\x1b[2J out",
    ):  # fmt: skip
        assert text in out
    assert "\x1b" not in out
    assert out.count("\n  ") - len(COLUMNS) == 2


def test_a_sparse_model_and_notes_that_are_none(waveform, tmp_path, capsys):
    saved(waveform, tmp_path / "m.sdu", SparseLayout(21, 0), {"accuracy": 7})
    call(tmp_path / "m.sdu")
    out = capsys.readouterr().out
    assert "svmlight, 21 features numbered from 0" in out
    assert "cannot be read" in out


def test_an_estimator_saved_from_python(waveform, tmp_path, capsys):
    SDUClassifier("su", "double_hinge", prior=0.7, alpha=0.25).fit(*waveform).save(tmp_path / "m.sdu")
    call(tmp_path / "m.sdu")
    out = capsys.readouterr().out
    assert "risk su, loss double_hinge (SDUClassifier): alpha 0.25" in out
    assert "0.7 of the rows are of class +1, as given" in out
    assert "saved from Python" in out


@pytest.mark.parametrize("value", [None, [], {}, "x", 10**400])
def test_settings_that_make_no_sense(waveform, tmp_path, value):
    path = tmp_path / "m.sdu"
    saved(waveform, path, ColumnLayout(COLUMNS), ABOUT)
    header, arrays = modelfile.read(path)
    header["fitted"]["prior_"]["low"] = value
    modelfile.write(path, header, arrays)
    with pytest.raises((ModelFileError, ValueError)):
        call(path)
