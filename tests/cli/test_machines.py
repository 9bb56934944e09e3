"""``sdulearn ask --command``: a stand-in judge answers, a person looks at some of it."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sdulearn import fit_table
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers import read_answers
from sdulearn.cli.main import main
from sdulearn.diagnostics import audited_rates
from tests.made import store

pytestmark = pytest.mark.usefixtures("no_importances")
EXAMPLES = Path(__file__).parents[2] / "examples"
JUDGE = f"{sys.executable} {EXAMPLES / 'judge.py'}"


@pytest.fixture
def asked(tmp_path, monkeypatch, capsys):
    """Asks about the messages of the example; gives the exit code, the screen and the answers in the log."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "message_files.py"))

    def ask(*options, command=JUDGE, classes="auto"):
        given = ["messages.csv", "--text", "message", "--drop", "topic", "--classes", classes, "--seed", "1"]
        command = [] if command is None else ["--command", command, "--annotator", "judge"]
        code = main(["ask", *given, *command, *map(str, options), "-o", "log.jsonl"])
        screen = capsys.readouterr()
        lines = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
        return code, screen.out + screen.err, [one for one in lines if one["event"] == "answer"]

    return ask


def counting(tmp_path, body):
    """A judge that counts its questions in a file."""
    path = tmp_path / "counting.py"
    path.write_text(
        f"import json, sys\nfor k, line in enumerate(sys.stdin):\n    open('asked', 'a').write(line)\n{body}"
    )
    return f"{sys.executable} {path}"


def test_the_worked_example(asked):
    """A machine answers, goes on where it stopped, and a person audits it: that tells its error rate."""
    code, screen, answers = asked("--budget", 12, "--batch-size", 4)
    assert code == 0
    assert len(answers) == 12
    assert {"seconds", "cost"} <= answers[0].keys()
    code, screen, answers = asked("--budget", 30)
    assert len(answers) == 30
    assert "judge: 30 answers" in screen
    assert "cost 0.003" in screen
    # The column of topics is the person, who differs from the machine about some messages.
    messages = pd.read_csv("messages.csv")
    messages.loc[messages["id"].isin([one["items"][0] for one in answers[::5]]), "topic"] = "other"
    messages.to_csv("messages.csv", index=False)
    _, screen, answers = asked("--audit", 10, "--annotator", "ann", "--oracle", "topic", command=None)
    audits = [one for one in answers if one["why"] == "audit"]
    assert len(audits) == len({one["items"][0] for one in audits}) == 10
    assert {one["annotator"] for one in audits} == {"ann"}
    found = read_answers("log.jsonl")
    n, wrong = found.audits["judge"]
    assert n == 10
    assert 1 <= wrong <= 4
    assert f"Audit: {wrong} of the 10 answers of judge that a person gave again are wrong" in screen
    rates = audited_rates(found).by_annotator
    assert rates[1].value == pytest.approx((wrong + 0.5) / 11)
    assert rates[1].low < wrong / 10 < rates[1].high
    assert rates[2].value < 0.001


def test_a_fit_takes_the_rates_of_an_audit(tmp_path):
    """Two disagree as often as one of them is wrong: by the audit it is the machine."""
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.6
    table = pd.DataFrame({"id": [f"r{k}" for k in range(200)], "x": rng.normal(size=200) + 3 * y})
    with AnswerStore(tmp_path / "log.jsonl") as log:
        for k in range(100):
            same = (y[k] == y[k + 100]) == (k % 5 > 0)
            for kind, who, said in (("random", "machine", same), ("audit", "ann", y[k] == y[k + 100])):
                if kind == "random" or k < 40:
                    store(log, f"r{k}", (f"r{k + 100}",), bool(said), who, kind)
    model = fit_table(table, tmp_path / "log.jsonl", model="linear")
    rates = {one.name: one for one in model.report.annotators}
    assert rates["machine"].rate == pytest.approx(8.5 / 41)
    assert rates["machine"].low < 0.2 < rates["machine"].high
    assert rates["ann"].rate < 0.001
    assert "Audit: 8 of the 40 answers of machine that a person gave again are wrong: 20.7%" in model.summary()
    # Somebody else who answered has no rate by the audit: all are estimated together.
    with AnswerStore(tmp_path / "log.jsonl") as log:
        store(log, "r150", ("r160",), True, "bob", "random")
    assert audited_rates(read_answers(tmp_path / "log.jsonl")) is None


def test_questions_hold_the_things_and_are_not_asked_twice(asked, tmp_path):
    """What was taken back is answered from the log; no number is given to two questions."""
    command = counting(tmp_path, "    print(json.dumps({'answer': k % 2 == 0}), flush=True)")
    options = ("--question", "About the same?", "--budget", 6, "--batch-size", 2)
    asked(*options, command=command, classes="2")
    lines = [json.loads(line) for line in Path("asked").read_text().splitlines()]
    table = pd.read_csv("messages.csv").set_index("id")["message"]
    assert [one["question"] for one in lines] == [1, 2, 3, 4, 5, 6]
    for one in lines:
        assert one["ask"] == "About the same?"
        assert one["form"] == "pair"
        assert [thing["text"] for thing in one["items"]] == [table[thing["id"]] for thing in one["items"]]
    log = Path("log.jsonl")
    first = json.loads(log.read_text().splitlines()[-1])
    undo = {"event": "undo", **{name: first[name] for name in ("number", "annotator", "session")}}
    log.write_text(log.read_text() + json.dumps(undo) + "\n")
    _, _, answers = asked(*options, command=command, classes="2")
    assert (answers[-1]["items"], answers[-1]["groups"]) == (first["items"], first["groups"])
    assert len(Path("asked").read_text().splitlines()) == 6


@pytest.mark.parametrize(("budget", "number"), [("0.0005usd", 5), ("0.00055eur", 5), ("3", 3)])  # a reply costs 0.0001
def test_budgets(asked, budget, number):
    _, _, answers = asked("--budget", budget, "--batch-size", 2)
    assert len(answers) == number


def test_a_budget_of_seconds(asked, tmp_path):
    slow = counting(tmp_path, "    import time; time.sleep(0.2); print(json.dumps({'answer': 'unsure'}), flush=True)")
    _, _, answers = asked("--budget", "1s", command=slow, classes="2")
    assert 1 <= len(answers) <= 6


@pytest.mark.parametrize(
    ("body", "options", "message"),
    [
        ("    print('{\"answer\": \"same\"}' if k < 4 else 'oh no', flush=True)", (), "replied 'oh no'"),
        ('    print(\'{"answer": "same"}\', flush=True)\n    if k == 3: sys.exit(7)', (), "exit code 7"),
        ("    print('{\"answer\": \"' + ('same' if k < 4 else 'maybe') + '\"}', flush=True)", (), "maybe"),
        ('    print(\'{"answer": "same"}\', flush=True)', ("--budget", "1usd"), 'needs a "cost" in every reply'),
    ],
)
def test_failures_are_said_and_lose_nothing(asked, tmp_path, body, options, message):
    code, screen, answers = asked(*options, command=counting(tmp_path, body), classes="2")
    assert code == 2
    assert message in screen
    assert len(answers) == (1 if options else 4)
    assert f"log.jsonl: {len(answers)} answers" in screen
