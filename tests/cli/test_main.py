import csv
import importlib
import json
import re
import subprocess
import sys
from functools import reduce

import pytest

from sdulearn.cli import demo
from sdulearn.cli.main import COMMANDS, build_parser, main
from sdulearn.cli.options import in_options
from sdulearn.risks import RISKS


def test_demo(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "SETS", {"waveform": demo.SETS["waveform"], "other": demo.SETS["waveform"]})
    monkeypatch.setattr(demo, "TRAINING_LOSSES", ("squared",))
    monkeypatch.setattr(demo, "SIZES", (25, 50))
    assert main(["demo", "--json", "--seeds", "1", "--out", str(tmp_path)]) == 0
    data = json.loads(capsys.readouterr().out)
    cells = {(line["dataset"], line["n_pairs"]) for line in data["results"]}
    assert cells == {(name, n_pairs) for name in demo.SETS for n_pairs in demo.SIZES}
    methods = {line["method"] for line in data["results"]}
    assert methods == {*(f"{risk}-squared" for risk in RISKS), *demo.BESIDE}
    assert min(line["accuracy"] for line in data["results"] if line["method"] == "labels") > 80
    with (tmp_path / "demo.csv").open() as file:
        written = [float(row["accuracy"]) for row in csv.DictReader(file)]
    assert written == [line["accuracy"] for line in data["results"]]
    assert data["picture"] == str(tmp_path / "demo.png")
    assert (tmp_path / "demo.png").stat().st_size > 10_000
    monkeypatch.setattr(demo, "accuracies", lambda name, n_pairs, seed: dict.fromkeys(methods, 70.0 + 10 * seed))
    main(["demo", "--seeds", "2", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    for word in (*RISKS, "squared", *demo.BESIDE.values(), "demo.png", "demo.csv", "waveform", "75.0 ± 5.0"):
        assert word in out


WRONG = {
    "fit": "--features",
    "--debug": "arguments are required",
    "fly": "invalid choice",
    "demo --seeds 0": "'0' is not a whole number of 1 or more",
    "demo --seeds +1": "'+1' is not a whole number of 1 or more",
    "fit --classes 1": "'1' is not 'auto' or a whole number of 2 or more",
    "fit --classes 2.5": "'2.5' is not 'auto'",
    "ask --private=0": "not a number above 0",
    "fit --prior 1": "'1' is not a share between 0 and 1",
    "fit --prior 0": "not a share",
    "fit --error-rate 0.51": "'0.51' is not 'auto' or a rate from 0 to 0.5",
    "fit --error-rate nan": "not 'auto' or a rate",
    "demo --seeds auto": "'auto' is not a whole number",
    "ask --budget 0": "is not an amount such as 500 (answers), 90s, 30m, 2h or 5usd",
    "ask --budget s": "is not an amount",
    "ask --budget 1e3": "is not an amount",
    "check p.csv --answers yes": "not of the form yes=similar,no=dissimilar",
    "check p.csv --answers =similar": "not of the form",
    "check p.csv --columns a,b": "does not name three to five columns",
}


@pytest.mark.parametrize("command", WRONG)
def test_a_wrong_call_is_exit_code_two(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    assert stop.value.code == 2
    assert WRONG[command] in capsys.readouterr().err


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_help_is_worth_reading(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert len(out) > 400
    assert command or re.findall(r"^    (\w+) ", out, re.MULTILINE) == list(COMMANDS)


def test_without_arguments_there_are_four_ways_in(capsys):
    assert main([]) == 0
    ways = [line.split("  ")[-1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert len(ways) == 4
    for way in ways:
        if way.startswith("sdulearn "):
            build_parser([way.split()[1]]).parse_args(way.split()[1:])
        else:
            name = re.search(r"sdulearn\.([\w.]+)\(", way)[1]
            assert callable(reduce(getattr, name.split("."), importlib.import_module("sdulearn")))


def test_values_that_options_take():
    given = ["fit", "--features", "t", "--pairs", "a", "-o", "m", "--drop", "a, b,", "--classes", "2"]
    given += ["--error-rate", "0.5", "--exclude-annotators", "Ann, "]
    given += ["--unlabeled", "7", "--answers", "ja=similar", "--prior", "0.25"]
    found = vars(build_parser(["fit"]).parse_args(given))
    assert found.items() >= {"classes": 2, "error_rate": 0.5, "drop": ("a", "b"), "prior": 0.25}.items()
    assert (found["max_unlabeled"], found["answer_words"]) == (7, {"ja": "similar"})
    assert found["exclude_annotators"] == ("Ann",)
    found = build_parser(["fit"]).parse_args([*given, "--classes", "auto", "--columns", "l, r, said"])
    assert (found.classes, found.answer_columns) == ("auto", {"id_a": "l", "id_b": "r", "label": "said"})


def test_parameters_in_messages_become_options():
    assert in_options(
        "Give `id_column='key'` and `skip_bad=True`, not `drop=['a', 'b']`: `check_answers` says why."
    ) == ("Give --id key and --skip-bad, not --drop a,b: sdulearn check says why.")
    assert in_options("`words={'yes': 'similar'}`, `method=''` or `method=x` of `nothing=1`.") == (
        "--answers yes=similar, --method '' or --method x of nothing=1."
    )


def test_a_user_s_mistake_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.startswith("sdulearn: The folder ")


@pytest.mark.parametrize("seconds", [0.2, 1.0])
def test_ctrl_c_is_one_line(tmp_path, seconds):
    """In imports and in the work; only Python's own start is beyond us."""
    (tmp_path / "run.py").write_text(
        "import sys, threading, os, signal\n"
        # A parent that ignores Ctrl-C, such as nohup or a CI in the background, hands that down.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from sdulearn.cli.main import main\n"
        f"threading.Timer({seconds}, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        f"sys.argv = ['sdulearn', 'demo', '--out', {str(tmp_path)!r}]\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "run.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "sdulearn: stopped\n"
    assert [path.name for path in tmp_path.iterdir()] == ["run.py"]


def test_a_reader_who_has_seen_enough(tmp_path):
    """``| head``: no traceback, and no complaint at the end."""
    (tmp_path / "p.csv").write_text("id_a,id_b,label\na,b,1\nb,c,0\n")
    command = f"{sys.executable} -m sdulearn.cli.main check {tmp_path / 'p.csv'} | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_mistake_of_ours_is_called_one(monkeypatch, capsys):
    import sdulearn.cli.check as command

    def fail(arguments):
        raise RuntimeError("no such case")

    monkeypatch.setattr(command, "run", fail)
    assert main(["check", "p.csv"]) == 3
    assert "RuntimeError: no such case. This is a mistake in sdulearn: please report it" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="no such case"):
        main(["--debug", "check", "p.csv"])
    monkeypatch.setattr(command, "run", lambda arguments: (_ for _ in ()).throw(MemoryError))
    assert main(["check", "p.csv"]) == 2
    assert "out of memory" in capsys.readouterr().err


def test_the_version_needs_no_scikit_learn():
    program = "import sys; import sdulearn.cli.main; print('sklearn' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("option", "hint"),
    [("--showed", "Did you mean --show? "), ("--pairs", "")],
)
def test_an_option_that_a_command_does_not_take(option, hint, capsys):
    assert main(["check", "answers.csv", option]) == 2
    expected = f"sdulearn: sdulearn check does not take {option}. {hint}sdulearn check --help lists what it takes.\n"
    assert capsys.readouterr().err == expected
