"""``sdulearn ask``: by an oracle, and as a server that is killed."""

import contextlib
import http.client
import json
import os
import random
import re
import secrets
import shlex
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine

from sdulearn import load_model
from sdulearn.answer_files.log import read_log
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers import read_answers
from sdulearn.answers.records import Question
from sdulearn.answers.y import scramble
from sdulearn.cli import ask
from sdulearn.datasets import make_waveform
from sdulearn.errors import InputError
from sdulearn.io.media import grey_png
from sdulearn.workflow import data
from sdulearn.workflow.options import FitOptions
from tests.made import store


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with ids, features, a text, a picture and labels, some of them missing."""
    folder = tmp_path_factory.mktemp("ask")
    X, y = make_waveform(240, random_state=0)
    frame = pd.DataFrame(X.round(3), columns=[f"x{k}" for k in range(21)])
    frame.insert(0, "id", [f"r{k}" for k in range(len(y))])
    frame["note"] = [f"note {k}" for k in range(len(y))]
    frame["picture"] = "a.png"
    frame["label"] = np.where(y > 0, "cat", "dog")
    frame.to_csv(folder / "points.csv", index=False)
    (folder / "a.png").write_bytes(grey_png(np.eye(4)))
    return folder


@pytest.fixture
def table(folder):
    return folder / "points.csv"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "answers.jsonl"


pytestmark = pytest.mark.usefixtures("no_importances")
SHOWN = ("--drop", "note,picture")


def test_an_oracle_answers_by_itself_and_a_later_one_goes_on(call, refused, table, log, tmp_path, capsys):
    assert call("ask", table, "-o", log, "--oracle", "label", "--questions", 14, *SHOWN, "--seed", 3) == 0
    assert re.search(
        r"14 answers; 2 classes .*; accuracy unknown, random questions still missing: \d", capsys.readouterr().out
    )
    first = read_log(log)
    labels = pd.read_csv(table).set_index("id")["label"]
    for one in first.answers.values():
        assert one.reply == ("same" if labels[one.left] == labels[one.right] else "different")
    assert call("ask", table, "-o", log, "--oracle", "label", "--questions", 4, *SHOWN) == 0
    found = read_log(log)
    assert len(found.answers) == 18
    assert set(found.seeds.values()) == {3}
    assert list(found.answers.items())[:14] == list(first.answers.items())
    # What was left out then is left out now, where the table still has it.
    bare = pd.read_csv(table).drop(columns=["note", "label"])
    bare.to_csv(tmp_path / "bare.csv", index=False)
    fit = ("fit", tmp_path / "bare.csv", log, "-o", tmp_path / "m.sdu", "--model", "linear")
    assert call(*fit) == 0
    assert [one.name for one in load_model(tmp_path / "m.sdu").columns.columns] == list(bare.columns[1:-1])
    assert "no column 'nothing' to leave out" in refused(*fit, "--drop", "nothing")


def test_a_large_table_is_asked_about_by_a_sample_that_grows(call, folder, tmp_path, monkeypatch, capsys):
    """The random order of its rows goes on where it was, and no row comes twice."""
    monkeypatch.setattr(data, "MAX_UNLABELED", 16)
    parts = tmp_path / "parts"
    parts.mkdir()
    frame = pd.read_csv(folder / "points.csv", dtype={"id": str})
    for k in range(3):
        frame[80 * k : 80 * (k + 1)].to_parquet(parts / f"{k}.parquet")
    options = ("--oracle", "label", "--design", "random", *SHOWN, "--seed", 3)
    for questions, drawn in ((3, 16), (13, 32), (6, 240)):
        assert call("ask", parts, "-o", tmp_path / "log.jsonl", "--questions", questions, *options) == 0
        assert (f"about {drawn} of the 240 rows, drawn at random" in capsys.readouterr().out) == (drawn < 240)
    answers = [one for one in read_log(tmp_path / "log.jsonl").answers.values() if one.question.why == "random"]
    assert [one.question.rank for one in answers] == list(range(0, 2 * len(answers), 2))
    places = scramble(np.arange(240)).argsort().argsort()
    rows = {name: row for row, name in enumerate(frame["id"])}
    asked = np.array([[places[rows[name]] for name in (one.left, one.right)] for one in answers]).ravel()
    assert len(set(asked)) == len(asked) > 40
    for begin, end in ((0, 16), (16, 32), (32, 240)):
        assert set(asked[begin:end]) <= set(range(begin, end))


def test_links_a_log_without_kinds_and_an_oracle_that_runs_out(call, refused, log, table, tmp_path, capsys):
    few = pd.read_csv(table).head(20).drop(columns="note").assign(picture="https://example.org/a.png")
    few.to_csv(tmp_path / "few.csv", index=False)
    command = ("ask", tmp_path / "few.csv", "-o", log, "--images", "picture", "--oracle", "label", "--questions")
    assert "is a link: download it" in refused(*command, 8)
    command = (*command[:4], "--drop", "picture", *command[4:])
    assert call(*command, 8, "--seed", 3) == 0
    # None of these answers is known to be random, so the next ones are, but for those that check answers.
    log.write_text(re.sub(r'"why": "\w+", ', "", log.read_text()))
    assert call(*command, 4) == 0
    kinds = [one.question.why for one in read_log(log).answers.values()]
    assert (set(kinds[:8]), "random" in kinds[8:], "uncertain" in kinds[8:]) == ({""}, True, False)
    log.unlink()
    capsys.readouterr()
    assert call(*command, 50, "--design", "random") == 0
    out = capsys.readouterr().out
    assert "Only 10 of 50 questions were asked. All rows are in a pair already" in out
    assert f"{log}: 10 answers" in out
    assert len(read_log(log).answers) == 10


def test_the_end_says_how_to_learn_from_the_answers(call, table, log, tmp_path, monkeypatch, capsys):
    """The command that is printed works; a quiet one prints nothing."""
    call("ask", table, "-o", log, "--oracle", "label", "--questions", 40, *SHOWN, "--seed", 3)
    printed = capsys.readouterr().out.splitlines()[-1].partition("sdulearn ")[2]
    assert call(*shlex.split(printed), "--drop", "note,picture,label", "--model", "linear") == 0
    assert load_model(log.with_suffix(".sdu")).report.n_questions is None
    capsys.readouterr()
    assert call("ask", table, "-o", log, "--oracle", "label", "--questions", 4, *SHOWN, "--quiet") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("classes", [2, "auto"])
def test_nothing_is_said_about_the_design_that_ask_chose(call, tmp_path, capsys, classes):
    """Shared rows, hubs and repeats are its own; with right answers there is nothing to look at."""
    wine = load_wine(as_frame=True)
    target = wine.target if classes == "auto" else wine.target > 0
    wine.data.assign(id=[f"w{k}" for k in range(len(target))], label=target).to_csv(tmp_path / "t.csv", index=False)
    log = tmp_path / "log.jsonl"
    options = ("--oracle", "label", "--questions", 60, "--seed", 1, "--classes", classes)
    call("ask", tmp_path / "t.csv", "-o", log, *options)
    capsys.readouterr()
    assert call("check", log, "--json") == 0
    codes = {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    fit_options = ("-o", tmp_path / "m.sdu", "--drop", "label", "--model", "linear", "--json")
    assert call("fit", tmp_path / "t.csv", log, *fit_options) == 0
    codes |= {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert not codes & {"shared_points", "hubs", "repeats", "contradictions"}


@pytest.mark.parametrize("classes", [None, 2, 3, "auto"])
def test_a_column_of_more_values_than_classes_is_warned_of(call, log, tmp_path, capsys, classes):
    wine = load_wine(as_frame=True)
    frame = wine.data.assign(id=[f"w{k}" for k in range(178)], label=wine.target.astype("Int64"))
    frame.loc[5:8, "label"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = () if classes is None else ("--classes", classes)
    assert call("ask", tmp_path / "t.csv", "-o", log, "--oracle", "label", "--questions", 1, *given) == 0
    told = capsys.readouterr().out
    assert ("warning: Column 'label' has 3 values" in told) == ("--classes auto" in told) == (classes in (None, 2))


def test_a_demonstration_ends_with_a_model_and_its_classes(call, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call("ask", "--demo", "--oracle", "target", "--questions", 2, "--seed", 1) == 0
    assert "same command continues" in capsys.readouterr().out
    assert call("ask", "--demo", "--oracle", "target", "--questions", 45) == 0
    out = capsys.readouterr().out
    assert len(re.findall(r"^  class \d: \d+% of the rows", out, re.MULTILINE)) == 4
    commands = [line.split("#")[0].split("sdulearn ")[1].split() for line in out.splitlines() if line[:3] == "  s"]
    commands = commands or [line.split("/sdulearn ")[1].split() for line in out.splitlines() if "/sdulearn " in line]
    assert call(*commands[0]) == 0
    classes = pd.read_csv("classes.csv")
    truth = load_digits().target[classes["id"]]
    assert set(truth) == {0, 1, 2, 3}
    assert pd.crosstab(classes["label"], truth).max(axis=1).sum() > 0.9 * len(truth)


def test_what_is_refused(refused, table, log, tmp_path, monkeypatch):
    oracle = ("ask", table, "-o", log, *SHOWN, "--oracle", "label")
    # No table, or two; no log, or none that could be written; columns that are not there.
    for command in (
        ("ask", "-o", log),
        ("ask", table, "--demo", "-o", log),
        ("ask", table),
        ("ask", table, "-o", tmp_path / "none" / "log.jsonl"),
        ("ask", table, "-o", table),
        ("ask", table, "-o", log, *SHOWN, "--show", "nothing"),
        ("ask", table, "-o", log),
        (*oracle[:-1], "klass"),
    ):
        refused(*command)
    nameless = tmp_path / "nameless.csv"
    nameless.write_text(table.read_text().replace("r7,", ",", 1))
    assert "--id-column" in refused("ask", nameless, *oracle[2:])
    assert not log.exists()
    with AnswerStore(log):
        assert "open in another" in refused(*oracle)
    log.write_text("id_a,id_b,label\n")
    refused(*oracle)
    assert log.read_text() == "id_a,id_b,label\n"
    # It protects people, not machines.
    refused("ask", table, "-o", tmp_path / "machine.jsonl", *SHOWN, "--command", "cat", "--private", 1)
    demo = ("ask", "--demo", "-o", tmp_path / "demo.jsonl", "--no-browser")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}" in refused(*demo, "--port", port)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "sdulearn[ask]" in refused(*demo)


def test_a_log_that_is_no_longer_ours_ends_it_before_an_answer_is_lost(call, log, tmp_path, capsys):
    """An answer that would go into a file that nobody will find is not acknowledged."""
    judge = tmp_path / "judge.py"
    judge.write_text(
        "import os, sys\n"
        "for k, _ in enumerate(sys.stdin):\n"
        "    if k == 2:\n"
        "        os.remove(sys.argv[1])\n"
        '    print(\'{"answer": "same"}\', flush=True)\n'
    )
    options = ("--design", "random", "--classes", 2, "--command", f"{sys.executable} {judge} {log}")
    assert call("ask", "--demo", "-o", log, *options) == 2
    said = capsys.readouterr()
    assert "moved or removed" in said.err
    assert "start the same command again" in said.err
    assert "3 answers" not in said.out


def test_a_damaged_line_is_reported_wherever_the_log_is_read(call, refused, table, log, tmp_path, capsys):
    ask_more = ("ask", table, "-o", log, "--oracle", "label", *SHOWN, "--seed", 3, "--questions")
    call(*ask_more, 12)
    lines = log.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b'"number"', b'"number')
    log.write_bytes(b"".join(lines))
    fit = ("fit", table, log, "-o", tmp_path / "m.sdu", "--drop", "note,picture,label")
    fit = (*fit, "--model", "linear")
    assert "(line 5)" in refused(*fit)
    assert call(*fit, "--skip-bad") == 0
    assert "(line 5)" in capsys.readouterr().out
    assert call("check", log) == 1
    assert "line 5: damaged" in capsys.readouterr().out
    assert call(*ask_more, 1) == 0
    assert "line 5: damaged" in capsys.readouterr().out
    assert len(read_log(log).answers) == 12


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices")
def test_a_log_is_a_file(refused, log, tmp_path):
    """From a device or a pipe one would read for ever."""
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name in ("/dev/zero", "/dev/random", tmp_path / "zero.jsonl", tmp_path / "pipe.jsonl"):
        assert "file" in refused("ask", "--demo", "-o", name, "--no-browser")
    assert "a device" in refused("check", tmp_path / "zero.jsonl")
    with AnswerStore(log) as opened:
        store(opened, "a", ("b",), True)
    writer = threading.Thread(target=(tmp_path / "pipe.jsonl").write_bytes, args=(log.read_bytes(),))
    writer.start()
    assert "is a pipe" in refused("check", tmp_path / "pipe.jsonl")
    writer.join()


def test_the_last_button_fits_and_says_how_to_use_it(call, table, log, monkeypatch, tmp_path, capsys):
    """What the page calls: a model, a report and labels beside the log, and commands that work."""
    call("ask", table, "-o", log, "--oracle", "label", "--questions", 48, *SHOWN, "--seed", 1)
    labels = pd.read_csv(table).set_index("id")["label"]
    named = {row_id: labels[row_id] for row_id in list(labels.index[:6])}
    result = {}

    def serve(page, *_):
        result.update(page.fit(named))
        result["all"] = pd.read_csv(page.export("csv"))

    monkeypatch.setattr("sdulearn.web.app.serve", serve)
    call("ask", table, "-o", log, "--drop", "note,picture,label", "--no-browser", "--max-categories", 60)
    assert read_log(log).reading.max_categories == 60
    (headline,) = [line for line in result["lines"] if line.startswith("Estimated accuracy")]
    assert re.search(r"from 1[0-9] random questions", headline)
    asked = pd.read_csv(result["answered"])
    assert result["answered"] == str(log.with_suffix(".answered.csv"))
    assert {one["id"] for one in result["asked"]} == set(asked["id"])
    likeliest = [one["probability"] for one in result["asked"]]
    assert likeliest == sorted(likeliest)
    assert np.mean(asked["label"].to_numpy() == labels[asked["id"]].to_numpy()) > 0.9
    # Of two classes, too, each has its probability.
    every = result["all"].set_index("id")
    assert sorted(every.index) == sorted(labels.index)
    likelier = np.where(every["probability_cat"] > every["probability_dog"], "cat", "dog")
    assert (likelier == every["label"]).all()
    # The share of all rows is between that of the rows in answers and the accuracy on the others.
    these, accuracy = result["these"], result["accuracy"]["value"]
    assert these["asked"] == pytest.approx(np.mean(likeliest), abs=1e-3)
    assert these["n_asked"] == len(asked)
    rest = these["n_rows"] - these["n_asked"]
    assert these["share"] * 240 == pytest.approx(these["n_asked"] * these["asked"] + rest * accuracy)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    for name in ("predict", "fit"):
        command = result[name].split()
        assert command[0] == "sdulearn"
        assert call(*command[1:]) == 0
    # One number, wherever it is looked up: what `fit` says, the report page, `inspect` and its JSON.
    assert headline in capsys.readouterr().out.splitlines()
    model = log.with_suffix(".sdu")
    assert headline in log.with_suffix(".html").read_text()
    assert call("inspect", model) == 0
    assert headline in capsys.readouterr().out.splitlines()
    assert call("inspect", model, "--json") == 0
    report = json.loads(capsys.readouterr().out)["report"]
    assert f"({report['accuracy']['value']:.1%}, 95% interval" in headline
    assert report["accuracy"]["basis"] == "random questions"
    found = pd.read_csv(tmp_path / "classes.csv")
    assert np.mean(found["label"].to_numpy() == labels[found["id"]].to_numpy()) > 0.75


def test_what_the_page_cannot_fit_is_said_without_names_of_parameters(call, table, log, monkeypatch):
    call("ask", table, "-o", log, "--oracle", "label", "--questions", 2, "--design", "random", *SHOWN, "--seed", 1)
    told = []

    def serve(page, *_):
        with pytest.raises(InputError) as refusal:
            page.finish({"labels": {}})
        told.append(str(refusal.value))

    monkeypatch.setattr("sdulearn.web.app.serve", serve)
    call("ask", table, "-o", log, "--design", "random", "--drop", "note,picture,label", "--no-browser")
    assert told
    assert not re.search(r"`|\w=", told[0])


def test_what_is_left_out_is_not_shown_unless_it_is_named(call, table, log, monkeypatch):
    """A column with the truth, left out by the answers of an oracle, stays hidden from who goes on."""
    shown = []
    monkeypatch.setattr("sdulearn.web.app.serve", lambda page, *_: shown.append(page.things.columns))
    assert call("ask", table, "-o", log, "--oracle", "label", "--questions", 3, *SHOWN) == 0
    assert call("ask", table, "-o", log) == 0
    assert call("ask", table, "-o", log, "--show", "note,label") == 0
    assert shown == [tuple(f"x{k}" for k in range(21)), ("note", "label")]


def test_more_than_two_classes_are_named_and_fitted(call, log, tmp_path, monkeypatch):
    """Three wines, of which one stays unnamed; a page that goes on with the log."""
    wine = load_wine(as_frame=True)
    frame = wine.frame.rename(columns={"target": "label"})
    frame.insert(0, "id", [f"w{k}" for k in range(len(frame))])
    frame.to_csv(tmp_path / "wine.csv", index=False)
    truth = frame.set_index("id")["label"]
    options = ("ask", tmp_path / "wine.csv", "-o", log, "--classes", "auto")
    call(*options, "--oracle", "label", "--questions", 44, "--seed", 1)
    result = {}

    def serve(page, *_):
        classes = page.classes({})["classes"]
        assert sorted(truth[one["ids"][0]] for one in classes) == [0, 1, 2]
        with pytest.raises(InputError):
            page.finish({"labels": {row_id: "wine" for one in classes for row_id in one["ids"]}})
        assert not read_log(log).labels
        names = {0: "Barolo", 1: "Grignolino", 2: ""}
        labels = {row_id: names[truth[one["ids"][0]]] for one in classes for row_id in one["ids"]}
        result.update(page.finish({"labels": labels}))

    monkeypatch.setattr("sdulearn.web.app.serve", serve)
    call(*options, "--drop", "label", "--no-browser")
    # Answers, not the pairs that they tell of.
    assert " from 44 answers (answers.jsonl)" in result["lines"][0]
    assert "Grignolino" in log.with_suffix(".html").read_text()
    assert "--classes 3" in result["fit"]
    monkeypatch.chdir(tmp_path)
    assert call(*result["predict"].split()[1:]) == 0
    found = pd.read_csv(tmp_path / "classes.csv")
    shares = found.filter(like="probability_")
    assert shares.columns.tolist() == ["probability_Barolo", "probability_Grignolino", "probability_3"]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.mean(found["label"] == np.array(["Barolo", "Grignolino", "3"])[wine.target]) > 0.9


@pytest.mark.parametrize(("classes", "found"), [(3, 3), ("auto", 4), (True, 4)])
def test_the_number_of_classes_that_ask_was_told_is_that_of_its_log(log, classes, found):
    """A row that is wrongly said to be like none of three examples opens no class if there are three."""
    with AnswerStore(log) as answers:
        answers.begin(0, design="match", classes=classes)
        for n in (1, 2, 3):
            answers.add(Question("match", (f"r{n}", *(f"r{k}" for k in range(n)))), "none")
        for k in range(4, 12):
            answers.add(Question("match", (f"r{k}", "r0", "r1", "r2")), k % 3)
    assert read_answers(log).n_classes == found


def test_private_answers_are_flipped_and_fits_allow_for_it(call, refused, table, log, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(secrets, "token_bytes", random.Random(0).randbytes)
    options = ("--oracle", "label", *SHOWN, "--seed", 1)
    call("ask", table, "-o", log, *options, "--questions", 30, "--private", 2)
    # An old log goes on with its own epsilon.
    call("ask", table, "-o", log, *options, "--questions", 30)
    said = capsys.readouterr().out
    assert said.count("each is flipped with probability 11.9%") == 2
    assert "A row is in at most 1 answer: epsilon 2 for its class, at most 88.08% certain." in said
    assert "no name 60 answers, epsilon 120." in said
    found = read_log(log)
    assert set(found.epsilons.values()) == {2.0}
    labels = pd.read_csv(table).set_index("id")["label"]
    wrong = [(one.reply == "same") != (labels[one.left] == labels[one.right]) for one in found.answers.values()]
    assert 0.04 < np.mean(wrong) < 0.2
    assert len({name for one in found.answers.values() for name in (one.left, one.right)}) == 120
    fit = ("fit", table, log, "-o", tmp_path / "model.sdu", "--drop", "note,picture,label")
    fit = (*fit, "--model", "linear")
    assert call(*fit, "--json") == 0
    report = json.loads(capsys.readouterr().out)["report"]
    assert report["annotators"][0]["rate"] == pytest.approx(1 / (1 + np.exp(2)))
    assert [one["numbers"] for one in report["findings"] if one["code"] == "flipped_answers"] == [
        {"epsilon": 2.0, "flip_rate": pytest.approx(1 / (1 + np.exp(2)))}
    ]
    assert FitOptions(error_rate=0.2).for_answers(read_answers(log)).error_rate == 0.2
    assert "epsilon 2" in told(call, capsys, "check", log)
    both = tmp_path / "both.jsonl"
    call("ask", table, "-o", both, *options, "--questions", 10)
    # The risks know no flips; two classes, one epsilon, no hub.
    for command in (
        (*fit, "--method", "sddu"),
        ("ask", "--demo", "-o", tmp_path / "demo.jsonl", "--private", 1),
        ("ask", table, "-o", log, *options, "--private", 1),
        ("ask", table, "-o", log, *options, "--design", "linked"),
        ("ask", table, "-o", both, *options, "--private", 1),
    ):
        refused(*command)
    both.write_bytes(both.read_bytes() + log.read_bytes())
    assert "different rates" in refused("fit", table, both, *fit[3:])


def test_a_private_log_stays_private(call, refused, log, capsys):
    """Whatever is left of it: without standing answers, and without the lines of its sessions."""
    oracle = ("ask", "--demo", "-o", log, "--oracle", "label", "--classes", 2, "--questions")
    call(*oracle, 2, "--private", 0.5)
    with AnswerStore(log) as opened:
        for key in list(opened.contents.answers):
            opened.undo(key)
    assert not read_log(log).answers
    assert "--private 0.5" in refused(*oracle, 1, "--private", 3)
    capsys.readouterr()
    call(*oracle, 1)
    assert "flipped with probability 37.8%" in capsys.readouterr().out
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    kept = [line for line in lines if line["event"] == "answer"]
    assert [line["epsilon"] for line in kept] == [0.5] * 3
    log.write_text("".join(json.dumps(line) + "\n" for line in kept))
    assert "epsilon 0.5" in told(call, capsys, "check", log)


def told(call, capsys, *command):
    capsys.readouterr()
    assert call(*command) == 0
    return capsys.readouterr().out


# ---- the server itself


def request(server, name, data=None):
    """What the page would send."""
    headers = {"Content-Type": "application/json", "Origin": server.address.rsplit("/", 2)[0]}
    body = None if data is None else json.dumps(data).encode()
    sent = urllib.request.Request(f"{server.address}api/{name}", body, headers if data is not None else {})
    with urllib.request.urlopen(sent) as response:
        return json.load(response)


def answer(server, name, word="same"):
    token = request(server, f"question?annotator={name}")["question"]["token"]
    return request(server, "answer", {"annotator": name, "token": token, "reply": word})


def answer_until_killed(server, name, acknowledged):
    """One person: answers as fast as the server takes them, and now and then takes one back."""
    try:
        for k in range(1, 10**6):
            result = answer(server, name, "same" if k % 2 else "different")
            acknowledged[name] = acknowledged.get(name, 0) + (result["written"] is not None)
            if k % 7 == 0:
                # While it is under way it may or may not have been written.
                acknowledged[name] -= 1
                request(server, "undo", {"annotator": name})
    except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError):
        return


def test_a_server_killed_under_load_loses_no_acknowledged_answer(start_server, log):
    """Three people answer at once; two kills, and a restart on the same log between them."""
    moments = random.Random(0)
    acknowledged = {}
    for _ in range(2):
        server = start_server("--demo", "-o", log, "--classes", "2", "--design", "random")
        people = [
            threading.Thread(target=answer_until_killed, args=(server, name, acknowledged)) for name in ("a", "b", "c")
        ]
        for person in people:
            person.start()
        time.sleep(moments.uniform(0.2, 0.8))
        server.kill()
        for person in people:
            person.join()
        found = read_log(log)
        assert not found.bad_rows
        for name, count in acknowledged.items():
            standing = sum(one.annotator == name for one in found.answers.values())
            # An answer on its way to the disk, or to the person, when the server died.
            assert count <= standing <= count + 3


def raw_status(server, head, end="\r\n\r\n"):
    """Status of a request that is sent as it is; 0 where the server just hangs up."""
    host, port = server.address.split("/")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        try:
            connection.sendall((head + end).encode("latin-1"))
            line = connection.makefile("rb").readline().decode()
        except ConnectionError:
            return 0
    return int(line.split()[1]) if line else 0


def test_the_real_server_refuses_strange_requests_and_goes_on_until_ctrl_c(start_server, log):
    server = start_server("--demo", "-o", log, "--design", "random", "--classes", "2")
    host = server.address.split("/")[2]
    path = server.address.split(host)[1]
    assert raw_status(server, f"GET {path} HTTP/1.1\r\nHost: {host}") == 200
    assert raw_status(server, f"GET {path} HTTP/1.1\r\nHost: evil.example") == 421
    assert raw_status(server, f"GET {path} HTTP/1.1") in (0, 400, 421)
    assert raw_status(server, f"GET http://evil.example{path} HTTP/1.1\r\nHost: evil.example") in (400, 404, 421)
    assert raw_status(server, f"GET /../../../../etc/passwd HTTP/1.1\r\nHost: {host}") == 404
    assert raw_status(server, f"GET {path}../../../etc/passwd HTTP/1.1\r\nHost: {host}") == 404
    assert raw_status(server, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nX: {'x' * 20_000}", end="") == 400
    assert raw_status(server, "\0\1\2 nonsense") in (0, 400)
    head = (
        f"POST {path}api/answer HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json\r\n"
    )
    # Connections that send nothing, half of a head, or a body that never ends keep nobody out.
    pieces = ("", head[:30], head + "Content-Length: 100\r\n\r\n{")
    with contextlib.ExitStack() as idle:
        name, port = host.split(":")
        for k in range(270):
            connection = idle.enter_context(socket.create_connection((name, int(port))))
            connection.sendall(pieces[k % 3].encode())
        assert answer(server, "ann")["written"]
    assert answer(server, "ann")["answers"] == len(read_log(log).answers) == 2
    server.process.send_signal(signal.SIGINT)
    out, _ = server.process.communicate()
    # Too few for a model, which is what a demonstration ends with.
    assert f"{log}: 2 answers\n" in out
    assert "same command continues" in out.splitlines()[-1]
    assert server.process.returncode in (0, 130)


def test_a_team_is_told_what_host_means_and_the_page_opens_by_itself(call, log, monkeypatch, capsys):
    served = []
    opened = []

    def serve(page, host, port, ready):
        served.append(page.session)
        ready("http://somewhere/")

    monkeypatch.setattr("sdulearn.web.app.serve", serve)
    monkeypatch.setattr(ask.webbrowser, "open", opened.append)
    assert "Everybody who can reach" in told(call, capsys, "ask", "--demo", "-o", log, "--host", "::", "--no-browser")
    assert "Everybody" not in told(call, capsys, "ask", "--demo", "-o", log)
    assert [session.for_team for session in served] == [True, False]
    for _ in range(100):
        time.sleep(0 if opened else 0.02)
    assert opened == ["http://somewhere/"]


@pytest.mark.usefixtures("no_importances")
@pytest.mark.parametrize("design", ["sort", "nearer"])
def test_rows_to_sort_and_forced_choices(call, refused, log, table, tmp_path, capsys, design):
    """By a column of labels; what was asked is in the log, and a fit reads it or says what it lacks."""
    frame = pd.read_csv(table)
    known = frame.drop_duplicates("label").dropna(subset="label")[["id", "label"]]
    known.to_csv(tmp_path / "examples.csv", index=False)
    command = ["ask", table, "-o", log, "--drop", "note,picture", "--oracle", "label", "--questions", 30, "--seed", 3]
    command += ["--design", design]
    if design == "nearer":
        assert "--examples" in refused(*command)
        command += ["--examples", tmp_path / "examples.csv"]
    for _ in range(2):
        assert call(*command) == 0
    contents = read_log(log)
    labels = dict(zip(frame["id"].astype(str), frame["label"], strict=True))
    assert {answer.question.form for answer in contents.answers.values()} == {design}
    for answer in contents.answers.values():
        shown = [labels[name] for name in answer.question.items]
        if answer.nearer is not None:
            assert shown[1 + answer.nearer] == shown[0]
        for a, b, sign in answer.pairs():
            assert (labels[a] == labels[b]) == (sign > 0)
    answers = read_answers(log)
    if design == "nearer":
        assert len(answers.nearer) == 60
        assert not answers.answers.any()
        # No command is advised that will be refused, and what is advised works.
        told = capsys.readouterr().out
        assert "--design match" in told
        assert f"fit {table}" not in told
        refused("fit", table, log, "-o", tmp_path / "m.sdu")
        assert call(*command[:-4], "--design", "match") == 0
        told = capsys.readouterr().out
        (advised,) = [line.partition(": ")[2] for line in told.splitlines() if f"fit {table}" in line]
        assert call(*shlex.split(advised)[1:], "--model", "linear") == 0
    else:
        assert answers.n_questions == len(contents.answers) == 60
        assert answers.questions is not None
        assert 0 < answers.drawn.sum() < len(answers.drawn)
        assert answers.n_classes == 2
        assert call("fit", table, log, "-o", tmp_path / "m.sdu", "--model", "linear") == 0
