import csv
import json
import subprocess
import sys

import pytest

from sdulearn import __version__
from sdulearn.cli import demo
from sdulearn.cli.main import main
from sdulearn.experiments import demonstration
from sdulearn.extras import require
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.risks import RISKS


def test_demo_as_a_new_user_runs_it(tmp_path):
    command = [sys.executable, "-m", "sdulearn.cli.main", "demo", "--seeds", "1", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for word in (*RISKS, *TRAINING_LOSSES, *demo.BESIDE.values(), "demo.png", "demo.csv", "waveform"):
        assert word in done.stdout
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
    with (tmp_path / "out" / "demo.csv").open() as file:
        rows = list(csv.DictReader(file))
    methods = {row["method"] for row in rows}
    assert {f"{risk}-{loss}" for risk in RISKS for loss in TRAINING_LOSSES} <= methods
    assert all(0 <= float(row["accuracy"]) <= 100 for row in rows)
    oracle = [float(row["accuracy"]) for row in rows if row["method"] == "supervised"]
    assert min(oracle) > 80


def test_demo_as_json(tmp_path, capsys, monkeypatch):
    few = {"datasets": ("breast_cancer",), "methods": ("sd-squared",)}
    for name in ("TABLE", "CURVES"):
        monkeypatch.setattr(demonstration, name, getattr(demonstration, name).with_changes(**few))
    assert main(["demo", "--json", "--seeds", "1", "--out", str(tmp_path)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(line["method"], line["n_pairs"]) for line in data["results"]] == [
        ("sd-squared", n) for n in demonstration.CURVES.n_pairs
    ]
    assert data["picture"] == str(tmp_path / "demo.png")
    assert data["numbers"] == str(tmp_path / "demo.csv")


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"sdulearn {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["fly"], ["demo", "--seeds", "0"], ["demo", "--seeds", "x"]])
def test_a_wrong_call_is_exit_code_two(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_user_s_mistake_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.startswith("sdulearn: ")


def test_a_missing_extra_is_named():
    with pytest.raises(ImportError, match=r"pip install 'sdulearn\[demo\]'"):
        require("no_such_package_at_all", "demo")
