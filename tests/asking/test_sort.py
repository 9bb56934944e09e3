"""Items to sort: what an answer claims, which items are chosen, and what is estimated from them."""

import itertools
import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from sdulearn.answer_files.log import read_log
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers import read_answers
from sdulearn.answers.records import Question, implied_pairs, read_reply
from sdulearn.asking import Asker, ask
from sdulearn.asking.session import Session, continue_asker
from sdulearn.asking.sort import claims_of
from sdulearn.errors import InputError, NothingToAskError


def sorter(y, wrong=0.0, seed=0):
    """Somebody who knows the classes; now and then careless about the whole question."""
    rng = np.random.default_rng(seed)
    return lambda items: rng.integers(0, 3, len(items)).tolist() if rng.random() < wrong else [y[k] for k in items]


@pytest.fixture(scope="module")
def digits():
    """An Asker after 50 sorted sets of digits, and the digits."""
    X, y = load_digits(return_X_y=True)
    return ask(X, sorter(y), 50, design="sort", n_classes="auto", random_state=0), y


def sorted_set(items, groups, ranks):
    return read_reply(Question("sort", items, "uncertain", ranks), groups)


def test_each_new_item_claims_an_example_or_none():
    claims = claims_of(sorted_set((7, 8, 9, 1, 2), [0, 1, 1, 0, 2], (5, 3, 4, None, None)))
    assert [(*claim.question[:2], claim.question.rank, claim.reply) for claim in claims] == [
        ("match", (7, 1, 2), 5, 0),
        ("match", (8, 1, 2), 3, "none"),
        ("match", (9, 1, 2), 4, "none"),
        ("pair", (9, 8), 4, "same"),
    ]
    unplaced = claims_of(sorted_set((7, 8, 1), [None, 0, 0], (5, 3, None)))
    assert [(claim.left, claim.reply) for claim in unplaced] == [(7, "unsure"), (8, 0)]
    pair = read_reply(Question("pair", (1, 2)), True)
    assert claims_of(pair) == [pair]


@pytest.mark.parametrize("n_examples", [0, 1, 2])
def test_claims_say_no_more_than_the_groups(n_examples):
    """By enumeration of all ways to sort four items: each pair that claims imply, the answer implies too."""
    items = (10, 11, 12, 13)
    ranks = (1, 2, 3, 4)[: 4 - n_examples] + (None,) * n_examples
    for groups in itertools.product([None, 0, 1, 2], repeat=4):
        answer = sorted_set(items, groups, ranks)
        said = {frozenset(pair[:2]): pair[2] for pair in answer.pairs()}
        claimed = implied_pairs(claims_of(answer))
        for ends, sign in zip(claimed.ends.tolist(), claimed.signs.tolist(), strict=True):
            assert said[frozenset(ends)] == sign
        # Items that were placed together stay together.
        together = {pair for pair, sign in said.items() if sign > 0}
        linked = {frozenset(ends) for ends, sign in zip(claimed.ends.tolist(), claimed.signs, strict=True) if sign > 0}
        assert {k for pair in together for k in pair} == {k for pair in linked for k in pair}


def test_questions_show_at_most_two_examples_and_estimates_come_from_sorting_alone(digits):
    asker, y = digits
    questions = [answer.question for answer in asker.given]
    assert {len(question.items) for question in questions if question.why not in ("repeat", "doubtful")} == {4}
    assert max(question.ranks.count(None) for question in questions) == 2
    assert {"random", "uncertain", "explore"} <= {question.why for question in questions}
    for question in questions:
        assert all(
            rank is None or asker._points.position[item] == rank
            for item, rank in zip(question.items, question.ranks, strict=True)
        )
        known = [y[item] for item, rank in zip(question.items, question.ranks, strict=True) if rank is None]
        assert len(set(known)) == len(known)
    found = asker.classes()
    assert [len(set(y[list(one.examples)])) for one in found] == [1] * 10
    names = {one.number: y[one.examples[0]] for one in found}
    predicted = np.array([names[k] for k in asker.model().predict(asker._X)])
    estimate = asker.accuracy()
    assert np.mean(predicted == y) > 0.8
    assert estimate.low <= np.mean(predicted == y) <= estimate.high
    assert asker.error_rate() == 0
    labels = asker.labels()
    label = asker._now.classes.label
    assert all(names[labels[point]] == y[point] for point in label)


@pytest.mark.parametrize("n_classes", [2, 3, "auto"])
def test_two_classes_a_known_number_and_one_to_be_found(n_classes):
    X, y = load_breast_cancer(return_X_y=True) if n_classes == 2 else load_iris(return_X_y=True)
    asker = ask(X, sorter(y), 40, design="sort", n_classes=n_classes, random_state=0)
    found = asker.classes()
    assert len(found) == (2 if n_classes == 2 else 3)
    assert [len(set(y[asker.members(one.examples[0])])) for one in found] == [1] * len(found)
    shown = max(answer.question.ranks.count(None) for answer in asker.given[:30])
    assert shown == (1 if n_classes == 2 else 2)
    rows, table = asker.stack()
    posterior = asker.model().posterior(rows, table)
    assert posterior.shape == (len(rows), len(found))
    asked = table[:, 0] != 0
    truth = {k: np.bincount(y[asker.members(one.examples[0])]).argmax() for k, one in enumerate(found)}
    classes = sorted(asker.model().classes_)
    order = {2: [1, 0]}.get(len(classes), range(len(classes)))
    columns = [truth[k] for k in order]
    assert np.mean(np.array(columns)[posterior[asked].argmax(axis=1)] == y[table[asked, 1]]) > 0.97


def test_wrong_answers_are_found_and_asked_again():
    X, y = load_digits(n_class=5, return_X_y=True)
    asker = ask(X, sorter(y, wrong=0.15, seed=2), 70, design="sort", n_classes=5, repeat_share=0.2, random_state=2)
    assert asker.error_rate() > 0.02
    names = {one.number: np.bincount(y[list(one.examples)]).argmax() for one in asker.classes()}
    assert np.mean([names[k] for k in asker.model().predict(X)] == y) > 0.8
    assert {answer.question.why for answer in asker.given} >= {"repeat", "doubtful"}
    review = asker.review(5)
    assert review
    assert set(review) <= set(asker.given)


def test_the_last_points_and_others_at_the_same_time():
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    asker = ask(X, sorter(y), 100, design="sort", n_classes=3, repeat_share=0, random_state=0)
    assert set(asker._now.classes.label) == set(range(30))
    with pytest.raises(NothingToAskError):
        asker.next()
    asker = Asker(X, design="sort", n_classes=3, random_state=0)
    asked = []
    for k in range(3):
        question = asker.next(f"person {k}")
        asked += [item for item, rank in zip(question.items, question.ranks, strict=True) if rank is not None]
    assert len(set(asked)) == len(asked) == 12


def test_questions_are_a_function_of_the_answers_and_undo_change_merge_and_split_work(digits):
    asker, _ = digits
    X = asker._X
    again = Asker(X, design="sort", n_classes="auto", answers=list(asker.given), random_state=0)
    assert again.next() == asker.next()
    assert again.answers == asker.answers
    taken = again.undo()
    assert taken.question == again.next()
    again.tell(taken.question, taken.reply)
    assert again.next() == asker.next()
    before = again.answers["answer"]
    a, b = (one.examples[0] for one in again.classes()[:2])
    n_classes = len(again.classes())
    changed = again.merge(a, b)
    assert changed
    assert len(again.classes()) == n_classes - 1
    for answer in changed:
        again.change(answer.given.number, before[answer.given.number - 1])
    assert again.answers["answer"] == before
    point = again.members(a)[-1]
    again.split(point)
    assert point not in again.members(a)
    for n_items in (2, 6, True):
        with pytest.raises(InputError):
            Asker(X, design="sort", n_items=n_items)


def test_the_log_is_the_state_and_the_sample_of_a_fit_that_of_the_asker(tmp_path):
    X, y = load_iris(return_X_y=True)
    ids = [f"r{k}" for k in range(150)]
    store = AnswerStore(tmp_path / "log.jsonl")
    session = Session(continue_asker(X, store, ids, design="sort", n_classes=3, random_state=0))
    rng = np.random.default_rng(0)
    for _ in range(40):
        token, question = session.question("ann")
        written = session.answer("ann", token, [None if rng.random() < 0.1 else int(y[k]) for k in question.items])
        if rng.random() < 0.2:
            session.undo("ann")
        elif rng.random() < 0.2:
            session.change(written.key, [0, 0, 1, None][: len(question.items)], "ann")
    contents = read_log(store.path)
    assert contents == session.store.contents
    named = [
        answer.about([session.rows[name] for name in answer.question.items]) for answer in contents.answers.values()
    ]
    assert named == list(session.asker.given)
    answers = read_answers(store.path)
    sampled = {session.rows[name] for name in answers.ids[answers.drawn, 0]}
    state = session.asker._now
    in_sample = set(state.points.order[: state.n_sampled].tolist())
    # Each item of the sample that somebody placed, and no other.
    assert sampled <= in_sample
    shown = [
        (item, rank, group)
        for answer in named
        for item, rank, group in zip(answer.question.items, answer.question.ranks, answer.groups, strict=True)
        if not answer.is_unsure
    ]
    placed = {item for item, _, group in shown if group is not None}
    examples = {item for item, rank, _ in shown if rank is None}
    assert in_sample & placed - examples <= sampled
    numbers = session.numbers(wait=True)
    assert numbers["n_answers"] == len(named)
    assert numbers["n_unsure"] == sum(answer.is_unsure for answer in named)
    assert session.agreement()["people"][0]["n_answers"] == len(named)
    session.close()
    lines = [json.loads(line) for line in store.path.read_text().splitlines()]
    assert {line["form"] for line in lines if line["event"] == "answer"} == {"sort"}
