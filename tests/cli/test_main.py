import csv
import json
import subprocess
import sys

import pytest

from sdulearn import __version__
from sdulearn.cli import demo
from sdulearn.cli.main import main
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
    oracle = [float(row["accuracy"]) for row in rows if row["method"] == "labels"]
    assert min(oracle) > 80


def test_demo_as_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "SETS", {"waveform": demo.SETS["waveform"], "other": demo.SETS["waveform"]})
    monkeypatch.setattr(demo, "TRAINING_LOSSES", ("squared",))
    assert main(["demo", "--json", "--seeds", "2", "--out", str(tmp_path)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {(line["dataset"], line["n_pairs"]) for line in data["results"]} == {
        (name, n_pairs) for name in demo.SETS for n_pairs in demo.SIZES
    }
    with (tmp_path / "demo.csv").open() as file:
        written = [float(row["accuracy"]) for row in csv.DictReader(file)]
    assert written == [line["accuracy"] for line in data["results"]]
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


@pytest.mark.parametrize("command", [["demo"], ["plan", "--prior", "0.7", "--target", "0.8"]])
def test_a_user_s_mistake_is_one_line(tmp_path, capsys, command):
    (tmp_path / "file").write_text("in the way")
    assert main([*command, "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.startswith("sdulearn: The folder ")


def test_a_missing_extra_is_named():
    with pytest.raises(ImportError, match=r"pip install 'sdulearn\[demo\]'"):
        require("no_such_package_at_all", "demo")


@pytest.mark.parametrize("seconds", [0.2, 0.5, 1.0])
def test_ctrl_c_is_one_line(tmp_path, seconds):
    """In imports and in the work; only Python's own start is beyond us."""
    (tmp_path / "run.py").write_text(
        "import sys, threading, os, signal\n"
        # A parent that ignores Ctrl-C, such as nohup or a CI in the background, hands that down.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from sdulearn.cli.main import main\n"
        f"threading.Timer({seconds}, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        f"sys.argv = ['sdulearn', 'plan', '--prior', '0.7', '--target', '0.9', '--out', {str(tmp_path)!r}]\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "run.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "sdulearn: stopped\n"


def test_a_reader_who_has_seen_enough(tmp_path):
    """``| head``: no traceback, and no complaint at the end."""
    command = f"{sys.executable} -m sdulearn.cli.main prior 58 42 | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_mistake_of_ours_is_called_one(monkeypatch, capsys):
    import sdulearn.cli.prior as command

    def fail(arguments):
        raise RuntimeError("no such case")

    monkeypatch.setattr(command, "run", fail)
    assert main(["prior", "58", "42"]) == 3
    assert "RuntimeError: no such case. This is a mistake in sdulearn: please report it" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="no such case"):
        main(["--debug", "prior", "58", "42"])
    monkeypatch.setattr(command, "run", lambda arguments: (_ for _ in ()).throw(MemoryError))
    assert main(["prior", "58", "42"]) == 2
    assert "out of memory" in capsys.readouterr().err


def test_the_version_needs_no_scikit_learn():
    program = "import sys; import sdulearn.cli.main; print('sklearn' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
