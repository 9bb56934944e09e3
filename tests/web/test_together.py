"""Many people at once: the log says what is in memory, and nothing is lost."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sdulearn.answer_files.log import log_answers, read_log
from sdulearn.answer_files.store import AnswerStore
from sdulearn.asking.session import Session, continue_asker
from sdulearn.errors import InputError, NothingToAskError
from sdulearn.web.app import Page
from sdulearn.web.things import Things


@pytest.fixture
def page(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 3)) + 4 * np.eye(3)[y]
    ids = [f"r{k}" for k in range(200)]
    with AnswerStore(tmp_path / "log.jsonl") as store:
        session = Session(continue_asker(X, store, ids, n_classes="auto", random_state=0))
        session.y = y
        yield Page(session, Things(ids, pictures=np.zeros((200, 2, 2))), "things")
        session.close()


def work(page, who, n_requests):
    """Answer, undo, change, merge, split, name and convert, as chance has it; return what was acknowledged."""
    chance = random.Random(who)
    written = []
    for _ in range(n_requests):
        do = chance.random()
        try:
            if do < 0.7:
                question = page.question({"annotator": who})["question"]
                reply = chance.choice([*range(len(question["items"][1:])), "none"])
                result = page.answer({"annotator": who, "token": question["token"], "reply": reply})
                written += [tuple(result["written"])] if result["written"] else []
            elif do < 0.8:
                page.undo({"annotator": who, "key": list(page.session.last_of(who) or ("", 0))})
            elif do < 0.9 and written:
                page.change({"annotator": who, "key": list(chance.choice(written)), "reply": "none"})
            elif do < 0.95:
                first, second = chance.sample(range(200), 2)
                page.act("merge", {"annotator": who, "id": f"r{first}", "into": f"r{second}"})
            else:
                log_answers("log", page.session.store.contents)
                page.history({"annotator": who})
        except (InputError, NothingToAskError):
            # Nothing to undo, to change or to merge.
            continue
    return written


def test_eight_people_at_once_lose_nothing(page):
    """Two lists of answers would differ, and a conversion would meet a list that changes under it."""
    store = page.session.store
    with ThreadPoolExecutor(8) as people:
        written = [key for keys in people.map(lambda k: work(page, f"p{k}", 40), range(8)) for key in keys]
    assert len(written) > 100
    assert len(set(written)) == len(written)
    assert set(written) == store.contents.answers.keys() | store.contents.withdrawn.keys()
    assert store.contents == read_log(store.path)
    assert [answer.key for answer in page.session.asker.given] == list(store.contents.answers)


def test_an_undo_that_is_sent_twice_undoes_one(page):
    for _ in range(3):
        token = page.question({"annotator": "ann"})["question"]["token"]
        last = page.answer({"annotator": "ann", "token": token, "reply": "none"})["last"]
    results = [page.undo({"annotator": "ann", "key": list(last)}) for _ in range(3)]
    assert page.session.n_answers == 2
    assert all(result["undone"] for result in results)
    assert len({result["question"]["token"] for result in results}) == 1
    assert results[0]["last"] != last


def test_after_a_merge_nobody_is_shown_two_examples_of_one_class(page):
    y = page.session.y

    def right(question):
        left, *choices = (int(one["id"][1:]) for one in question["items"])
        return next((k for k, row in enumerate(choices) if y[row] == y[left]), "none")

    for _ in range(30):
        question = page.question({"annotator": "ann"})["question"]
        page.answer({"annotator": "ann", "token": question["token"], "reply": right(question)})
    asked = {who: page.question({"annotator": who})["question"] for who in ("ann", "bob")}
    page.act("skip", {"annotator": "bob", "token": asked["bob"]["token"]})
    first, second = (one["id"] for one in asked["ann"]["items"][1:3])
    page.act("merge", {"annotator": "ann", "id": first, "into": second})
    for who in ("ann", "bob", "cid"):
        for _ in range(12):
            question = page.question({"annotator": who})["question"]
            classes = [page.session.asker.members(int(one["id"][1:]))[0] for one in question["items"][1:]]
            assert len(set(classes)) == len(classes)
            page.answer({"annotator": who, "token": question["token"], "reply": "unsure"})


def test_names_of_classes_are_looked_up_once_for_a_page_of_the_history(page, monkeypatch):
    work(page, "ann", 60)
    page.session.store.label({"r1": "cat"})
    looked_up = []
    groups = page.session.asker.groups
    monkeypatch.setattr(page.session.asker, "groups", lambda: looked_up.append(1) or groups())
    assert page.history({"annotator": "ann"})["total"] > 20
    assert len(looked_up) == 1
