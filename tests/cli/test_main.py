import csv
import importlib
import inspect
import json
import re
import subprocess
import sys
from dataclasses import fields
from functools import reduce
from itertools import groupby

import pytest

from sdulearn import Reading, fit_table
from sdulearn.answers import read_answers
from sdulearn.asking import Asker
from sdulearn.asking.asker import DESIGNS
from sdulearn.cli import demo
from sdulearn.cli.main import COMMANDS, build_parser, main
from sdulearn.cli.options import ARGUMENTS, OPTIONS, in_options
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.metrics import audit_predictions
from sdulearn.reading import FOUND, MISSING
from sdulearn.risks import RISKS
from sdulearn.web import LANGUAGES
from sdulearn.workflow.options import METHODS, MODELS
from sdulearn.workflow.predict import predict_table


def test_demo(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "SETS", {"waveform": demo.SETS["waveform"], "other": demo.SETS["waveform"]})
    monkeypatch.setattr(demo, "TRAINING_LOSSES", ("squared",))
    monkeypatch.setattr(demo, "SIZES", (25, 50))
    assert main(["demo", "--json", "--draws", "1", "-o", str(tmp_path)]) == 0
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
    main(["demo", "--draws", "2", "-o", str(tmp_path)])
    out = capsys.readouterr().out
    for word in (*RISKS, "squared", *demo.BESIDE.values(), "demo.png", "demo.csv", "waveform", "75.0 ± 5.0"):
        assert word in out


WRONG = {
    "fit": "TABLE",
    "--debug": "arguments are required",
    "fly": "invalid choice",
    "demo --draws 0": "'0' is not a whole number of 1 or more",
    "demo --draws +1": "'+1' is not a whole number of 1 or more",
    "fit --classes 1": "'1' is not 'auto' or a whole number of 2 or more",
    "fit --classes 2.5": "'2.5' is not 'auto'",
    "ask --private=0": "not a number from 0.001 to 100",
    "fit --prior 1": "'1' is not a share between 0 and 1",
    "fit --prior 0": "not a share",
    "fit --error-rate 0.51": "'0.51' is not 'auto' or a rate from 0 to 0.5",
    "fit --error-rate nan": "not 'auto' or a rate",
    "demo --draws auto": "'auto' is not a whole number",
    "ask --budget 0": "is not an amount such as 500 (answers), 90s, 30m, 2h or 5usd",
    "ask --budget s": "is not an amount",
    "ask --budget 1e3": "is not an amount",
    "check p.csv --quiet --json": "not allowed with",
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
    given = ["fit", "t", "a", "-o", "m", "--drop", "a, b,", "--classes", "2", "--error-rate", "0.5"]
    given += ["--exclude-annotators", "Ann, ", "--max-unlabeled", "7", "--words", "ja=similar", "--prior", "0.25"]
    found = vars(build_parser(["fit"]).parse_args(given))
    assert found.items() >= {"classes": 2, "error_rate": 0.5, "drop": ("a", "b"), "prior": 0.25}.items()
    assert (found["max_unlabeled"], found["words"]) == (7, "ja=similar")
    assert found["exclude_annotators"] == ("Ann",)
    assert build_parser(["fit"]).parse_args([*given, "--classes", "auto"]).classes == "auto"


def test_parameters_in_messages_become_options():
    assert in_options("Give `id_column='key'` and `skip_bad=True`, not `X` or `columns='label=x'` of `nothing=1`.") == (
        "Give --id-column key and --skip-bad, not TABLE or --answer-columns label=x of nothing=1."
    )
    assert in_options("`words='>=4=similar'`, `method=''` or `max_categories=60`.") == (
        "--words '>=4=similar', --method '' or --max-categories 60."
    )


def taken(command):
    """Names of the options and arguments of a command."""
    return {option.name for option in (*ARGUMENTS, *OPTIONS) if command in option.commands.split()}


# What commands do beside calling a function: outputs, printing, and files that they read for it.
OWN = {"output", "json", "quiet", "verbose"}


def test_options_have_the_names_of_parameters():
    """One option is one parameter is one field; those of a table are the fields of Reading."""

    def parameters(function):
        return set(inspect.signature(function).parameters)

    reading = {field.name for field in fields(Reading)} - set(FOUND)
    assert taken("fit") - OWN - {"report", "answered"} == parameters(fit_table)
    assert reading <= taken("fit")
    assert reading <= taken("ask")
    of_answers = {"columns": "answer_columns", "source": "answers", "table_ids": "table"}
    read = {of_answers.get(name, name) for name in parameters(read_answers)}
    assert taken("classes") - OWN - {"classes"} == read - {"table"}
    assert taken("predict") - OWN <= {"table", *parameters(predict_table), *read}
    assert taken("check") - OWN - {"limit", "prior", "classes"} <= read | reading | {"table"}
    other = {"n_classes": "classes", "random_state": "seed", "seeds": "examples"}
    asker = {other.get(name, name) for name in parameters(Asker)}
    assert {"design", "classes", "seed", "examples", "private"} <= taken("ask") & asker
    assert {"compare", "error_rate", "answers"} <= taken("audit") & parameters(audit_predictions)


def test_an_option_means_the_same_in_all_commands():
    """Its name alone says how its value is read, but for what is only a place to write to."""
    for name, options in groupby(sorted(OPTIONS, key=lambda option: option.name), key=lambda option: option.name):
        kinds = {(option.kind, option.metavar) for option in options}
        assert len({kind for kind, _ in kinds}) == 1, name
        assert len(kinds) == 1 or name == "output", name


def test_choices_are_those_of_the_library():
    allowed = {"method": METHODS, "model": MODELS, "loss": tuple(TRAINING_LOSSES), "missing": MISSING}
    allowed |= {"design": tuple(DESIGNS), "language": LANGUAGES}
    assert {option.name: option.kind for option in OPTIONS if isinstance(option.kind, tuple)} == allowed
    defaults = inspect.signature(fit_table).parameters
    for option in OPTIONS:
        if "fit" in option.commands.split() and option.name in defaults:
            assert (option.default or None) == (defaults[option.name].default or None), option.name


@pytest.mark.parametrize("command", COMMANDS)
def test_quiet_commands_and_json(command):
    assert "quiet" in taken(command)
    assert ("json" in taken(command)) == (command != "ask")


def test_a_user_s_mistake_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main(["demo", "-o", str(tmp_path / "file")]) == 2
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
        f"sys.argv = ['sdulearn', 'demo', '-o', {str(tmp_path)!r}]\n"
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
    with pytest.raises(RuntimeError):
        main(["--debug", "check", "p.csv"])
    monkeypatch.setattr(command, "run", lambda arguments: (_ for _ in ()).throw(MemoryError))
    assert main(["check", "p.csv"]) == 2
    assert "out of memory" in capsys.readouterr().err


def test_the_version_and_the_options_need_no_scikit_learn():
    program = "import sys; from sdulearn.cli.main import COMMANDS, build_parser; build_parser([*COMMANDS]); "
    program += "print('sklearn' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("option", "hint"),
    [("--limits", "Did you mean --limit? "), ("--id", "Did you mean --id-column? "), ("--pairs", "")],
)
def test_an_option_that_a_command_does_not_take(option, hint, capsys):
    assert main(["check", "answers.csv", option]) == 2
    expected = f"sdulearn: sdulearn check does not take {option}. {hint}sdulearn check --help lists what it takes.\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("command", [["fit", "t.csv", "a.csv"], ["ask", "t.csv"], ["check", "a.csv"], ["demo"]])
def test_only_rows_go_to_standard_output(tmp_path, monkeypatch, capsys, command):
    """A file or folder named - would be made otherwise."""
    monkeypatch.chdir(tmp_path)
    assert main([*command, "-o", "-"]) == 2
    assert "standard output" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_a_folder_is_refused(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("id,x\na,1\nb,2\n")
    (tmp_path / "out.csv").mkdir()
    (tmp_path / "a.csv").write_text("id_a,id_b,label\na,b,same\n")
    for command in (["classes", tmp_path / "a.csv"], ["fit", tmp_path / "t.csv", tmp_path / "a.csv"]):
        assert main([*map(str, command), "-o", str(tmp_path / "out.csv")]) == 2
        assert "folder" in capsys.readouterr().err
