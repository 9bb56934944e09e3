import argparse
import json

import pytest

from sdulearn.cli import reproduce as command
from sdulearn.experiments import reproduction


def parse(*words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_quick_run_of_one_experiment(tmp_path, capsys):
    options = ["--quick", "--only", "figure2", "--trials", "2", "--jobs", "1", "--out", str(tmp_path)]
    assert command.run(parse(*options, "--no-progress")) == 0
    assert str(tmp_path / "report.html") in capsys.readouterr().out
    text = (tmp_path / "report.html").read_text()
    assert "waveform" in text
    assert "breast_cancer" in text
    assert (tmp_path / "results" / "figure2.jsonl").exists()


def test_a_run_grows_by_a_method(tmp_path):
    options = ["--quick", "--only", "table", "--datasets", "breast_cancer", "--trials", "1", "--out", str(tmp_path)]
    options += ["--jobs", "1", "--no-progress", "--methods"]
    for methods in (["sddu-squared"], ["sddu-squared", "sddu-printed"]):
        command.run(parse(*options, *methods))
    lines = (tmp_path / "results" / "table.jsonl").read_text().splitlines()
    assert [json.loads(line)["method"] for line in lines] == ["sddu-squared", "sddu-printed"]
    page = (tmp_path / "report.html").read_text()
    assert "SDDU double hinge as printed" in page
    assert "All methods but sddu-squared, sddu-printed, as asked." in page


def test_report_only_measures_nothing(tmp_path):
    options = ["--quick", "--only", "figure2", "--datasets", "breast_cancer", "--out", str(tmp_path), "--no-progress"]
    command.run(parse(*options, "--trials", "1", "--jobs", "1"))
    before = (tmp_path / "results" / "figure2.jsonl").read_bytes()
    (tmp_path / "report.html").unlink()
    assert command.run(parse(*options, "--report-only")) == 0
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "results" / "figure2.jsonl").read_bytes() == before


def test_json_alone_is_on_stdout(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SDULEARN_DATA", str(tmp_path))
    words = ["--only", "noise", "--datasets", "adult", "breast_cancer", "--trials", "1", "--jobs", "1", "--quick"]
    assert command.run(parse(*words, "--json", "--out", str(tmp_path))) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert data["page"] == str(tmp_path / "report.html")
    assert {line["method"] for line in data["results"]["noise"]} >= {"joint", "sd-squared"}
    # One trial has no standard error.
    assert {line["standard_error"] for line in data["results"]["noise"]} == {None}
    assert len(data["notes"]) == 1
    assert data["notes"][0] in err
    assert "noise" in err


@pytest.mark.parametrize("words", [["--only", "figure9"], ["--datasets", "iris"], ["--trials", "0"], ["--jobs", "x"]])
def test_wrong_options(words, capsys):
    with pytest.raises(SystemExit):
        parse(*words)
    assert "usage" in capsys.readouterr().err


def test_interrupt_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "run", stop)
    assert command.run(parse("--quick", "--out", str(tmp_path))) == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_default_folders(monkeypatch):
    seen = []

    def remember(*arguments, out, **options):
        seen.append(str(out))
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "reproduce", remember)
    command.run(parse())
    command.run(parse("--quick"))
    assert seen == ["sdulearn-reproduce", "sdulearn-reproduce-quick"]
