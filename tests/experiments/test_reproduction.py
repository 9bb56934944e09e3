import subprocess
import sys

import pytest

from sdulearn.errors import FileError
from sdulearn.experiments import PROTOCOLS, QUICK, reproduce
from sdulearn.experiments.reproduction import choose_protocols

ONE_SET = {"quick": True, "trials": 1, "jobs": 1, "progress": False}


def test_missing_data_are_named_and_the_rest_goes_on(tmp_path, capsys):
    report = reproduce(["figure3"], datasets=["adult", "breast_cancer"], out=tmp_path, **ONE_SET)
    assert "adult is left out" in report.page.read_text()
    assert len(report.notes) == 1
    assert "adult.svm.bz2" in report.notes[0]
    assert capsys.readouterr().out == ""


def test_the_report_as_data(tmp_path):
    report = reproduce(["figure2"], datasets=["breast_cancer"], out=tmp_path, **ONE_SET)
    data = report.to_dict()
    assert data["page"] == tmp_path / "report.html"
    assert data["small"]
    lines = data["results"]["figure2"]
    assert {(line["n_pairs"], line["method"]) for line in lines} == {
        (n, method) for n in QUICK["figure2"].n_pairs for method in QUICK["figure2"].methods
    }
    assert all(0 <= line["accuracy"] <= 100 and line["trials"] == 1 for line in lines)
    claim = data["claims"][0]
    assert claim["verdict"] == report.claims[0].verdict == "no clear difference"
    assert [c["ties"] for c in claim["comparisons"]] == [3, 3]
    assert data["provenance"][0]["protocol_hash"] == QUICK["figure2"].hash()


def test_nothing_at_all(tmp_path):
    with pytest.raises(FileError, match=r"Nothing was measured.*SDULEARN_DATA"):
        reproduce(["figure2"], datasets=["adult"], out=tmp_path, progress=False)
    with pytest.raises(FileError, match=r"Nothing was measured"):
        reproduce(["figure2"], out=tmp_path / "empty", measure=False)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match=r"file.*cannot be made.*`out`"):
        reproduce(["figure2"], datasets=["breast_cancer"], out=tmp_path / "file", **ONE_SET)


def test_choice_of_protocols():
    assert [p.name for p in choose_protocols()] == list(PROTOCOLS)
    chosen = choose_protocols(["noise", "table"], quick=True, datasets=["waveform"], trials=3)
    assert [(p.name, p.datasets, p.trials) for p in chosen] == [
        ("table", ("waveform",), 3),
        ("noise", ("waveform",), 3),
    ]
    assert chosen[0].n_pairs == QUICK["table"].n_pairs
    few = choose_protocols(["table"], methods=["sddu-printed", "sddu-printed", "joint"])
    assert [(p.name, p.methods) for p in few] == [("table", ("sddu-printed", "joint"))]
    assert few[0].hash() == PROTOCOLS["table"].hash()
    for wrong in ({"only": ["figure9"]}, {"datasets": ["iris"]}, {"methods": ["svm"]}, {"trials": 0}):
        with pytest.raises(ValueError, match=r"choose from|1 or more"):
            choose_protocols(**wrong)


def test_import_needs_neither_matplotlib_nor_tqdm():
    code = "import sys; sys.modules.update(matplotlib=None, tqdm=None); import sdulearn.experiments"
    subprocess.run([sys.executable, "-c", code], check=True)
