"""Functions and processes that answer."""

import json
import sys

import pytest
from sklearn.datasets import load_iris

from sdulearn.asking import Question, ask
from sdulearn.asking.oracles import Judge
from sdulearn.errors import FileError, InputError

X, Y = load_iris(return_X_y=True)


def picks(questions):
    """The right answers to match questions."""
    like = [[k for k, point in enumerate(one.choices) if Y[point] == Y[one.left]] for one in questions]
    return [found[0] if found else "none" for found in like]


def test_a_list_of_questions_at_a_time():
    seen = []

    def oracle(questions):
        seen.append(len(questions))
        return picks(questions)

    options = {"n_classes": "auto", "repeat_share": 0, "random_state": 0}
    asker = ask(X, oracle, 30, batch_size=8, **options)
    assert seen == [8, 8, 8, 6]
    assert len({(one.left, one.choices) for one in asker.given}) == 30
    assert len(asker.classes()) == 3
    more = ask(X, oracle, 2, batch_size=8, answers=asker.answers, **options)
    assert (more.n_answers, seen[4:]) == (32, [2])
    one = ask(X, lambda left, choices: picks([Question("match", (left, *choices))])[0], 12, **options)
    assert one.answers == ask(X, picks, 12, batch_size=1, **options).answers
    with pytest.raises(InputError):
        ask(X, lambda questions: ["unsure"], 10, batch_size=4, n_classes="auto")
    # No more than there are.
    few = ask(X[:6], lambda questions: ["same"] * len(questions), 50, batch_size=5, design="random", random_state=0)
    assert few.n_answers == 3


@pytest.fixture
def judge(tmp_path):
    """Runs some lines of Python as a process that answers."""
    opened = []

    def start(text, timeout=20):
        path = tmp_path / "judge.py"
        path.write_text("import json, sys, time\n" + text)
        opened.append(Judge(f"{sys.executable} {path}", timeout))
        return opened[-1]

    yield start
    for one in opened:
        one.close()
        assert one._process.poll() is not None


def test_replies_in_any_order_with_what_they_took(judge):
    found = judge(
        "lines = [json.loads(sys.stdin.readline()) for _ in range(3)]\n"
        "for one in lines[::-1]:\n"
        "    reply = {'question': one['question'], 'answer': one['left'], 'probability': 0.9, 'cost': 2}\n"
        "    print(json.dumps(reply), flush=True)\n"
        "    print(flush=True)\n"
    )
    replies = dict(found.replies({k: {"left": f"thing {k}"} for k in (7, 8, 9)}))
    assert list(replies) == [9, 8, 7]
    assert (replies[9].answer, replies[9].probability, replies[9].cost) == ("thing 9", 0.9, 2.0)
    assert all(0 <= one.seconds < 20 for one in replies.values())


@pytest.mark.parametrize(
    "reply",
    ["print('[1]', flush=True)", "print(json.dumps({'cost': 1}), flush=True)", "sys.exit(3)", "time.sleep(60)",
     "print(json.dumps({'answer': 'same', 'probability': 2}), flush=True)",
     "print(json.dumps({'answer': 0, 'question': 99}), flush=True)"],
)  # fmt: skip
def test_what_can_go_wrong_is_said(judge, reply):
    slow = "sleep" in reply
    found = judge(reply if slow else f"input(); {reply}; input()", 0.5 if slow else 20)
    # More than a pipe holds: a process that does not read stops nobody.
    with pytest.raises(InputError):
        list(found.replies({1: {"left": "x" * 300_000 if slow else "x"}}))


@pytest.mark.parametrize("command", ["/no/such/program", "", "'"])
def test_a_command_that_cannot_be_run(command):
    with pytest.raises((FileError, InputError)):
        Judge(command, 1)


def test_questions_are_lines_of_json_and_replies_without_numbers_are_in_order(judge):
    found = judge("for line in sys.stdin: print(json.dumps({'answer': line}), flush=True)\n")
    ((_, reply),) = found.replies({1: {"left": {"text": "two\nlines, ümläut"}}})
    assert json.loads(reply.answer) == {"question": 1, "left": {"text": "two\nlines, ümläut"}}
    assert [number for number, _ in found.replies({3: {}, 5: {}})] == [3, 5]
