import csv

import pytest

from sdulearn.errors import FileError, InputError, SdulearnWarning
from sdulearn.experiments import demonstrate, demonstration
from sdulearn.experiments.data import n_test_points
from sdulearn.experiments.protocol import Cell
from sdulearn.experiments.results import Results
from sdulearn.experiments.runner import run

FEW = {"methods": ("sd-squared", "joint"), "datasets": ("breast_cancer",), "trials": 2}


def test_both_protocols_share_their_results(tmp_path):
    assert demonstration.TABLE.hash() == demonstration.CURVES.hash()
    run(demonstration.TABLE.with_changes(**FEW), tmp_path, progress=False)
    curves = demonstration.CURVES.with_changes(**FEW)
    again = run(curves, tmp_path, progress=False)
    assert (again.kept, again.measured) == (4, 8)
    records = Results(tmp_path, curves).read_cells()
    assert {Cell.from_key(record) for record in records} == set(curves.cells())


def test_no_download_and_enough_rows():
    for protocol in (demonstration.TABLE, demonstration.CURVES):
        assert set(protocol.datasets) == {"breast_cancer", "waveform"}
        for draw in protocol.with_changes(trials=1, datasets=("breast_cancer",)).draws():
            assert n_test_points(draw, protocol.n_test, 357, 212) == protocol.n_test


def test_what_is_returned_is_what_is_written(tmp_path, monkeypatch, capsys):
    for name in ("TABLE", "CURVES"):
        monkeypatch.setattr(demonstration, name, getattr(demonstration, name).with_changes(**FEW))
    results = demonstrate(tmp_path, trials=2, jobs=1, progress=False)
    assert {(line.n_pairs, line.method) for line in results} == {
        (n, method) for n in demonstration.CURVES.n_pairs for method in FEW["methods"]
    }
    with (tmp_path / "demo.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [row["accuracy"] for row in written] == [f"{line.accuracy:.2f}" for line in results]
    assert {path.name for path in tmp_path.iterdir()} == {"demo.csv", "demo.png"}
    assert capsys.readouterr().out == ""


def test_mistakes_are_told_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match="cannot be made"):
        demonstrate(tmp_path / "file")
    with pytest.raises(InputError, match="`trials` must be 1 or more"):
        demonstrate(tmp_path, trials=0)


def test_a_set_that_cannot_be_had_is_told(tmp_path, monkeypatch):
    few = {**FEW, "datasets": ("adult", "breast_cancer"), "n_pairs": (25,), "methods": ("sd-squared",)}
    for name in ("TABLE", "CURVES"):
        monkeypatch.setattr(demonstration, name, getattr(demonstration, name).with_changes(**few))
    with pytest.warns(SdulearnWarning, match="adult is left out"):
        results = demonstrate(tmp_path, trials=1, jobs=1, progress=False)
    assert [line.dataset for line in results] == ["breast_cancer"]
