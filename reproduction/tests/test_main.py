"""The command, as a user types it."""

import json

import pytest

import reproduction.__main__ as command
from reproduction.__main__ import choose_protocols, main, parse
from reproduction.protocol import PROTOCOLS, QUICK

ONE_SET = ["--quick", "--datasets", "breast_cancer", "--trials", "1", "--jobs", "1", "--no-progress"]


def test_quick_run_of_one_experiment(tmp_path, capsys):
    options = ["--quick", "--only", "figure2", "--trials", "2", "--jobs", "1", "--out", str(tmp_path)]
    assert main([*options, "--no-progress"]) == 0
    assert str(tmp_path / "report.html") in capsys.readouterr().out
    text = (tmp_path / "report.html").read_text()
    assert "waveform" in text
    assert "breast_cancer" in text
    assert (tmp_path / "results" / "figure2.jsonl").exists()


def test_a_run_grows_by_a_method(tmp_path):
    for methods in (["sddu-squared"], ["sddu-squared", "sddu-printed"]):
        main([*ONE_SET, "--only", "table", "--out", str(tmp_path), "--methods", *methods])
    lines = (tmp_path / "results" / "table.jsonl").read_text().splitlines()
    assert [json.loads(line)["method"] for line in lines] == ["sddu-squared", "sddu-printed"]
    page = (tmp_path / "report.html").read_text()
    assert "SDDU double hinge as printed" in page
    assert "All methods but sddu-squared, sddu-printed, as asked." in page


def test_report_only_measures_nothing(tmp_path):
    options = [*ONE_SET, "--only", "figure2", "--out", str(tmp_path)]
    main(options)
    before = (tmp_path / "results" / "figure2.jsonl").read_bytes()
    (tmp_path / "report.html").unlink()
    assert main([*options, "--report-only"]) == 0
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "results" / "figure2.jsonl").read_bytes() == before


def test_missing_data_are_named_and_the_rest_goes_on(tmp_path, capsys):
    assert main([*ONE_SET, "--only", "figure3", "--datasets", "adult", "breast_cancer", "--out", str(tmp_path)]) == 0
    assert "adult is left out" in (tmp_path / "report.html").read_text()
    assert "adult.svm.bz2" in capsys.readouterr().err


def test_nothing_at_all(tmp_path, capsys):
    assert main([*ONE_SET, "--only", "figure2", "--datasets", "adult", "--out", str(tmp_path)]) == 2
    assert "SDULEARN_DATA" in capsys.readouterr().err
    assert main(["--only", "figure2", "--out", str(tmp_path / "empty"), "--report-only"]) == 2
    assert "Nothing was measured" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main([*ONE_SET, "--only", "figure2", "--out", str(tmp_path / "file")]) == 2
    assert "cannot be made" in capsys.readouterr().err


def test_choice_of_protocols():
    assert [p.name for p in choose_protocols(parse([]))] == list(PROTOCOLS)
    chosen = choose_protocols(parse(["--only", "noise", "table", "--quick", "--datasets", "waveform", "--trials", "3"]))
    assert [(p.name, p.datasets, p.trials) for p in chosen] == [
        ("table", ("waveform",), 3),
        ("noise", ("waveform",), 3),
    ]
    assert chosen[0].n_pairs == QUICK["table"].n_pairs
    few = choose_protocols(parse(["--only", "table", "--methods", "sddu-printed", "sddu-printed", "joint"]))
    assert [(p.name, p.methods) for p in few] == [("table", ("sddu-printed", "joint"))]
    assert few[0].hash() == PROTOCOLS["table"].hash()


@pytest.mark.parametrize("words", [["--only", "figure9"], ["--datasets", "iris"], ["--trials", "0"], ["--jobs", "x"]])
def test_wrong_options(words, capsys):
    with pytest.raises(SystemExit):
        parse(words)
    assert "usage" in capsys.readouterr().err


def test_interrupt_says_how_to_go_on(monkeypatch, capsys):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", stop)
    for options, folder in (([], "sdulearn-reproduce:"), (["--quick"], "sdulearn-reproduce-quick:")):
        assert main(options) == 130
        assert f"{folder} the same command goes on" in capsys.readouterr().err
