import argparse
import subprocess
import sys

import pytest

from sdulearn.experiments import command, reproduce
from sdulearn.experiments.protocol import PROTOCOLS, QUICK


def parse(*words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_quick_run_of_one_experiment(tmp_path, capsys):
    code = command.run(
        parse("--quick", "--only", "figure2", "--trials", "2", "--jobs", "1", "--out", str(tmp_path), "--no-progress")
    )
    assert code == 0
    assert str(tmp_path / "report.html") in capsys.readouterr().out
    text = (tmp_path / "report.html").read_text()
    assert "waveform" in text
    assert "breast_cancer" in text
    assert (tmp_path / "results" / "figure2.jsonl").exists()


def test_report_only_measures_nothing(tmp_path):
    options = ["--quick", "--only", "figure2", "--dataset", "breast_cancer", "--out", str(tmp_path), "--no-progress"]
    command.run(parse(*options, "--trials", "1", "--jobs", "1"))
    before = (tmp_path / "results" / "figure2.jsonl").read_bytes()
    (tmp_path / "report.html").unlink()
    assert command.run(parse(*options, "--report-only")) == 0
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "results" / "figure2.jsonl").read_bytes() == before


def test_missing_data_are_named_and_the_rest_goes_on(tmp_path, capsys):
    page = reproduce(
        ["figure3"], quick=True, datasets=["adult", "breast_cancer"], trials=1, jobs=1, out=tmp_path, progress=False
    )
    assert "adult is left out" in page.read_text()
    assert "adult.svm.bz2" in capsys.readouterr().err


def test_nothing_at_all(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Nothing was measured.*SDULEARN_DATA"):
        command.run(parse("--dataset", "adult", "--only", "figure2", "--out", str(tmp_path), "--no-progress"))


def test_choice_of_protocols():
    assert [p.name for p in command.choose_protocols(None, quick=False, datasets=None, trials=None)] == list(PROTOCOLS)
    chosen = command.choose_protocols(["noise", "table"], quick=True, datasets=["waveform"], trials=3)
    assert [(p.name, p.datasets, p.trials) for p in chosen] == [
        ("table", ("waveform",), 3),
        ("noise", ("waveform",), 3),
    ]
    assert chosen[0].n_pairs == QUICK["table"].n_pairs
    for wrong in ({"only": ["figure9"]}, {"datasets": ["iris"]}, {"trials": 0}):
        with pytest.raises(ValueError, match=r"choose from|1 or more"):
            command.choose_protocols(**{"only": None, "quick": False, "datasets": None, "trials": None, **wrong})


@pytest.mark.parametrize("words", [["--only", "figure9"], ["--dataset", "iris"], ["--trials", "0"], ["--jobs", "x"]])
def test_wrong_options(words, capsys):
    with pytest.raises(SystemExit):
        parse(*words)
    assert "usage" in capsys.readouterr().err


def test_interrupt_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_protocol", stop)
    assert command.run(parse("--quick", "--out", str(tmp_path))) == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_default_folders(monkeypatch):
    seen = []
    monkeypatch.setattr(command, "reproduce", lambda *a, out, **k: seen.append(str(out)))
    command.run(parse())
    command.run(parse("--quick"))
    assert seen == ["sdulearn-reproduce", "sdulearn-reproduce-quick"]


def test_import_needs_neither_matplotlib_nor_tqdm():
    code = "import sys; sys.modules.update(matplotlib=None, tqdm=None); import sdulearn.experiments"
    subprocess.run([sys.executable, "-c", code], check=True)
