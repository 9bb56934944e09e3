"""People, questions and the log."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from sdulearn import fit_table
from sdulearn.answer_files.log import read_log
from sdulearn.answer_files.store import AnswerStore
from sdulearn.asking.session import LEAST_TIMED, Goal, Session, continue_asker
from sdulearn.errors import InputError, NothingToAskError
from tests.made import store


def standing(session):
    """What the log on the disk and the engine each say: they must be the same."""
    contents = read_log(session.store.path)
    of_log = [(session.rows[one.left], session.rows[one.right], one.reply) for one in contents.answers.values()]
    given = session.asker.answers
    assert of_log == list(zip(given["left"], given["right"], given["answer"], strict=True))
    assert [answer.given.number for answer in contents.answers.values()] == given["number"]
    return of_log


def answer(session, word, name=""):
    return session.answer(name, session.question(name)[0], word)


def by_parity(session, n):
    """Answers of somebody who tells even rows from odd ones; the questions."""
    asked = []
    for _ in range(n):
        token, question = session.question("")
        asked.append(question.items)
        session.answer("", token, "same" if question.left % 2 == question.right % 2 else "different")
    return asked


def test_an_answer_sent_twice_counts_once_a_stale_one_not_at_all_and_names_can_be_printed(session):
    token, question = session.question("ann")
    assert session.question("ann") == (token, question)
    written = session.answer("ann", token, "same")
    assert (written.left, written.annotator) == (session.ids[question.left], "ann")
    assert session.answer("ann", token, "same") == written
    # Another tab, or another person under this name: what is stored is not what they said.
    assert session.answer("ann", token, "different") is None
    assert session.answer("ann", token + 99, "same") is None
    assert session.question("ann")[0] != token
    assert [one[2] for one in standing(session)] == ["same"]
    for name in ("x" * 61, "a\nb", "\x1b[2J"):
        with pytest.raises(InputError):
            session.question(name)
    assert session.question("x" * 60)
    session.label({"r1": "cat"}, "ann")
    assert read_log(session.store.path).labels == {"r1": "cat"}
    with pytest.raises(InputError):
        session.label({"elsewhere": "cat"}, "ann")


def test_a_question_that_is_put_off_comes_back_after_ten_or_when_nothing_else_is_left(open_session):
    for n_points, n_others in ((400, 10), (4, 1)):
        session = open_session(f"{n_points}", n_points=n_points)
        token, question = session.question("")
        session.skip("", token)
        for _ in range(n_others):
            assert session.question("")[1].items != question.items
            answer(session, "same")
        assert session.question("")[1] == question
        answer(session, "same")
        assert len(standing(session)) == n_others + 1
    with pytest.raises(NothingToAskError):
        session.question("")


def test_undo_leaves_no_trace_in_what_is_asked(open_session):
    """The log counts on; questions are those that they would have been."""
    options = {"n_points": 40, "design": "linked", "repeat_share": 0.3, "random_share": 0.5}
    plain = by_parity(open_session("one", **options), 14)
    session = open_session("two", **options)
    by_parity(session, 12)
    for _ in range(3):
        session.undo("")
    assert plain[:9] + by_parity(session, 5) == plain
    assert standing(session)[-1][0] == plain[-1][0]
    # Ranks are places in the random order.
    written = read_log(session.store.path).answers.values()
    order = session.asker._points.order
    assert all(session.ids[order[one.question.rank]] == one.left for one in written)
    last = max(one.question.rank for one in written if one.question.why == "random")
    sampled = [{one.left} if one.question.rank <= last else set() for one in written]
    assert read_log(session.store.path).sampled() == sampled


def test_numbers(open_session):
    """An accuracy is there when ten random questions are; until then it is said how many are missing."""
    session = open_session(n_points=60, design="linked", random_share=1.0, repeat_share=0)
    numbers = session.numbers(wait=True)
    assert (numbers["n_answers"], numbers["accuracy"], numbers["classes"]) == (0, None, [])
    by_parity(session, 8)
    numbers = session.numbers(wait=True)
    assert numbers["accuracy"] is numbers["advice"] is None
    assert numbers["missing"] in (2, 3)
    by_parity(session, numbers["missing"])
    n = session.n_answers
    answer(session, "unsure")
    numbers = session.numbers(wait=True)
    assert numbers["n_same"] + numbers["n_different"] == n
    assert (numbers["n_answers"], numbers["n_unsure"], numbers["missing"]) == (n + 1, 1, 0)
    accuracy = session.asker.accuracy()
    shown = {"value": accuracy.value, "low": accuracy.low, "high": accuracy.high, "n_random": accuracy.n_answers}
    assert numbers["accuracy"] == shown
    assert numbers["advice"] == session.asker.advice()._asdict()
    assert not numbers["reached"]
    width = accuracy.high - accuracy.low
    for until, reached in ((width, True), (width - 0.01, False)):
        session.goal = Goal(until=until)
        assert session.numbers()["reached"] == reached


@pytest.mark.usefixtures("no_importances")
@pytest.mark.parametrize("classes", [2, 3])
def test_error_rates_of_people_are_those_of_a_fit(tmp_path, classes):
    """With the same intervals, of which the worst person has the highest; nobody is ranked without one."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 150)
    X = rng.normal(size=(150, 3)) + 2.5 * np.eye(3)[y]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ids = [f"r{k}" for k in range(150)]
    wrong = {"ann": 0.0, "bob": 0.05, "cid": 0.4}
    log = AnswerStore(tmp_path / "people.jsonl")
    for left, right in rng.choice(40, (35, 2)):
        for who, rate in wrong.items():
            if left != right:
                said = (y[left] == y[right]) != (rng.random() < rate)
                store(log, ids[left], (ids[right],), bool(said), who)
    store(log, "r100", ("r101",), False, "dan")
    session = Session(continue_asker(X, log, ids, n_classes=classes, random_state=0))
    shown = {one["name"]: one["error_rate"] for one in session.agreement()["people"]}
    # It is kept while no other answer comes.
    session.asker.annotator_rates = None
    assert session.agreement()["people"][0]["error_rate"] == shown["ann"]
    session.close()
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(id=ids)
    model = fit_table(table, log.path, model="linear", classes=classes)
    fitted = {one.name: one for one in model.report.annotators}
    assert shown["dan"] is None
    for who in wrong:
        expected = [getattr(fitted[who], name) for name in ("rate", "low", "high")]
        assert list(shown[who].values()) == pytest.approx(expected, abs=1e-9)
        assert shown[who]["low"] <= wrong[who] + 0.1
    assert max(wrong, key=lambda who: shown[who]["high"]) == "cid"


def test_what_people_did_and_how_far_they_agree(open_session, tmp_path):
    rows = [
        ("r0", "r1", "same", "ann"), ("r1", "r0", "same", "bob"), ("r0", "r2", "different", "ann"),
        ("r0", "r2", "same", "bob"), ("r0", "r3", "unsure", "ann"), ("r0", "r3", "same", "bob"),
        ("r5", "r6", "same", "cid"), ("r0", "r7", "unsure", "dora"), ("r0", "r8", "unsure", "dora"),
    ]  # fmt: skip
    lines = [
        {"event": "answer", "number": k, "left": a, "right": b, "answer": word, "annotator": who, "session": "s"}
        for k, (a, b, word, who) in enumerate(rows)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = open_session()
    found = session.agreement()
    assert [(one["name"], one["n_answers"], one["n_unsure"]) for one in found["people"]] == [
        ("ann", 3, 1), ("bob", 3, 0), ("cid", 1, 0), ("dora", 2, 2),
    ]  # fmt: skip
    assert found["couples"] == [{"first": "ann", "second": "bob", "n_both": 2, "n_agreed": 1}]
    # Their answers do not tell how often they are wrong.
    assert [one["error_rate"] for one in found["people"]] == [None] * 4
    # What contradicts other answers is to be looked at again.
    assert [answer.given.number for answer in session.numbers(wait=True)["review"]] == [2, 3]


def test_numbers_do_not_wait_for_estimates(open_session, monkeypatch):
    session = open_session(n_points=60, design="linked", random_share=1.0)
    begun = threading.Event()
    may_go_on = threading.Event()
    estimate = session._accuracy

    def slow_estimate():
        begun.set()
        may_go_on.wait()
        return estimate()

    monkeypatch.setattr(session, "_accuracy", slow_estimate)
    answer(session, "same")
    first = session.numbers()
    assert (first["n_answers"], first["classes"], first["estimating"]) == (1, [], True)
    # The first estimate runs until the second one waits behind it, however slow the machine is.
    begun.wait()
    answer(session, "same")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(session.numbers, wait=True)
        while session._slots["estimate"]._state != "PENDING":
            time.sleep(0.01)
        # That others look meanwhile does not cancel what somebody waits for.
        assert session.numbers()["estimating"]
        may_go_on.set()
        second = waiting.result()
    assert (len(second["classes"]), second["estimating"]) == (1, False)
    session.undo("")
    assert session.numbers()["estimating"]


def test_match_questions_with_classes_merged_and_split_are_gone_on_with(open_session):
    """Everything is in the log: a restart has the same classes, and the same question."""
    options = {"design": "match", "n_classes": "auto", "n_points": 60}
    session = open_session(**options)
    for _ in range(8):
        token, question = session.question("ann")
        like = [k for k, row in enumerate(question.choices) if row % 3 == question.left % 3]
        session.answer("ann", token, like[0] if like else "none")
    token, question = session.question("ann")
    other = session.example("ann", token, 0)
    assert (other.left, other.choices[1:]) == (question.left, question.choices[1:])
    assert other.choices[0] % 3 == question.choices[0] % 3 != other.choices[1] % 3
    renewed, shown = session.question("ann")
    assert shown == other != question
    assert session.example("ann", token, 0) is session.answer("ann", token, 0) is None
    written = session.answer("ann", renewed, 0)
    assert written.choices == tuple(session.ids[row] for row in other.choices)
    session.split("ann", written.left)
    assert len(session.asker.classes()) == 4
    session.merge("ann", written.left, written.choices[0])
    assert session.undo("ann").left == session.rows[written.left]
    asked = session.question("ann")[1]
    session.close()
    again = open_session(**options)
    assert again.asker.answers == session.asker.answers
    assert len(again.asker.classes()) == 3
    # An example that was changed is chosen anew.
    assert again.question("ann")[1].left == asked.left
    again.close()
    with pytest.raises(InputError):
        open_session(n_points=2)


def test_examples_that_a_log_names_open_the_first_classes(open_session):
    session = open_session(design="match", n_classes="auto")
    session.store.label({"r4": "cat"}, seed=True)
    session.store.label({"r9": "dog"}, seed=True)
    session.close()
    again = open_session(design="match", n_classes="auto")
    assert sorted(again.question("ann")[1].choices) == [4, 9]
    assert [again.name_of(one.examples[0]) for one in again.classes()] == ["cat", "dog"]


def test_a_person_is_thanked_after_as_many_answers_as_are_asked_of_one(open_session):
    session = open_session(goal=Goal(per_person=3))
    for _ in range(3):
        answer(session, "same", "ann")
    with pytest.raises(NothingToAskError):
        session.question("ann")
    assert session.is_done("ann")
    assert not session.is_done("bob")
    assert session.question("bob")
    session.undo("ann")
    answer(session, "different", "ann")
    assert (session.is_done("ann"), session.n_of("ann"), session.n_of("bob")) == (True, 3, 0)


def test_people_share_as_many_questions_as_are_asked_for(open_session):
    session = open_session(goal=Goal(overlap=0.25))
    names = ("ann", "bob", "cid")
    for _ in range(20):
        for name in names:
            answer(session, "same", name)
    asked = {name: {one.question.key for one in session.history() if one.annotator == name} for name in names}
    for name in names:
        assert len(asked[name]) == 20
        others = set().union(*(asked[other] for other in names if other != name))
        # The first have nobody to share with; those whose questions are chosen share more.
        assert len(asked[name] & others) >= 5
    assert {one.question.why for one in session.history()} == {"random", "repeat"}
    assert session.agreement()["couples"]
    alone = open_session("alone.jsonl", goal=Goal(overlap=0.5))
    for _ in range(6):
        answer(alone, "same", "ann")
    assert {one.question.why for one in alone.history()} == {"random"}
    with pytest.raises(InputError):
        open_session("private.jsonl", private=1.0, goal=Goal(overlap=0.5))


def test_a_question_is_shared_with_a_third_person_when_every_other_has_two(open_session):
    session = open_session(goal=Goal(overlap=0.9))
    asked = {}
    for name, n in (("ann", 12), ("bob", 7), ("cid", 7)):
        asked[name] = {answer(session, "same", name).question.key for _ in range(n)}
    assert len(asked["bob"] & asked["ann"]) == len(asked["cid"] & (asked["ann"] | asked["bob"])) == 6
    assert not asked["ann"] & asked["bob"] & asked["cid"]


def test_nothing_of_a_private_answer_but_its_flip_is_stored(open_session):
    session = open_session(private=1.0)
    token, _ = session.question("ann")
    with pytest.raises(InputError):
        session.answer("ann", token, "same", comment="surely")
    with pytest.raises(InputError):
        session.label({"r1": "cat"}, "ann")
    session.answer("ann", token, "same", seconds=1.5)
    (line,) = [line for line in session.store.path.read_text().splitlines() if '"answer"' in line]
    assert json.loads(line).keys().isdisjoint({"seconds", "comment", "probability", "cost"})


def test_how_long_a_question_takes_is_known_for_everybody_and_for_each_person(open_session):
    session = open_session()
    for k in range(LEAST_TIMED):
        assert session.pace("ann") == {}
        for name, seconds in (("ann", 2.0), ("bob", 8.0 + k)):
            session.answer(name, session.question(name)[0], "same", seconds=seconds)
    assert session.pace("ann")["pair"]["seconds"] == 2
    assert session.pace("bob")["pair"]["seconds"] == 8 + LEAST_TIMED // 2
    assert session.pace("cid") == {}
    assert session.pace()["pair"]["n_answers"] == 2 * LEAST_TIMED
    assert session.agreement()["pace"] == session.pace()


def test_an_audit_asks_what_others_answered_and_each_question_once(session):
    others = [answer(session, word, "judge") for word in ("same", "different", "unsure", "same")]
    answer(session, "same", "ann")
    session.goal = Goal(audit=3)
    again = [answer(session, "same", "ann") for _ in range(3)]
    assert {one.question.why for one in again} == {"audit"}
    assert {one.left for one in again} == {one.left for one in others if not one.is_unsure}
    with pytest.raises(NothingToAskError):
        session.question("ann")
