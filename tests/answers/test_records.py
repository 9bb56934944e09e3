"""Questions and answers: what they say, how they are read and written."""

import itertools
import json
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdulearn.answer_files.log import parse_log
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers import Answers
from sdulearn.answers.records import (
    N_ITEMS,
    Given,
    Question,
    flip_rate,
    implied_pairs,
    is_epsilon,
    random_ends,
    read_reply,
)
from sdulearn.errors import InputError
from tests.made import made


def answers(said, **more):
    n = len(said)
    ids = np.array([[f"a{k}", f"b{k}"] for k in range(n)], dtype=object)
    options = {"annotators": None, **more}
    return Answers("file", ids, np.array(said), np.ones(n), lines=np.arange(n), columns={}, words={}, **options)


def test_annotators_are_numbered_by_their_first_answers():
    names = np.array(["Bob", "", "Ann", "Bob"], dtype=object)
    found = answers([1, -1, 0, 1], annotators=names)
    assert found.annotator_names == ("Bob", "Ann")
    assert found.annotator_numbers.tolist() == [1, 0, 2, 1]
    assert (found.n_similar, found.n_dissimilar, found.n_unsure, found.n_chosen) == (2, 1, 1, 0)
    nobody = answers([1, 1])
    assert (nobody.annotator_names, nobody.annotator_numbers.tolist()) == ((), [0, 0])
    chosen = answers([1, 1, 1], kinds=np.array(["random", "uncertain", ""], dtype=object))
    assert chosen.n_chosen == 2


def test_the_first_point_of_a_random_question_is_random_and_the_second_where_it_is_in_no_other():
    ends = np.array([[0, 9], [1, 9], [2, 9], [3, 4]])
    kinds = np.array(["random", "uncertain", "random", "random"], dtype=object)
    found = answers([1, 1, 1, 1], kinds=kinds, drawn=kinds == "random")
    marked = [[True, False], [False, False], [True, False], [True, True]]
    assert random_ends(found, ends, slice(None)).tolist() == marked
    assert random_ends(found, ends[1:], slice(1, 4)).tolist() == marked[1:]
    assert random_ends(answers([1, 1, 1, 1]), ends, slice(None)) is None
    # Where all points were drawn at random there is nothing to mark.
    pairs = answers([1, 1], kinds=kinds[2:], drawn=kinds[2:] == "random")
    assert random_ends(pairs, np.array([[0, 1], [2, 3]]), slice(None)) is None


def test_privacy_is_a_flip():
    assert flip_rate(np.log(3)) == pytest.approx(0.25)
    for value in (1e-3, 100, np.float64(1), np.int64(2)):
        assert is_epsilon(value)
    for value in (True, False, 0, 9e-4, 101, "1", None, np.nan):
        assert not is_epsilon(value)
        with pytest.raises(InputError, match=r"`epsilon` must be a number above 0, from 0\.001 to 100"):
            flip_rate(value)


def test_what_an_answer_says():
    for reply, sign, pairs in (("same", 1, [("b", "a", 1)]), ("different", -1, [("b", "a", -1)]), ("unsure", 0, [])):
        answer = made("b", ("a",), reply, number=4, session="s")
        assert (answer.reply, answer.sign, answer.pairs()) == (reply, sign, pairs)
        assert (answer.right, answer.key, answer.question.key) == ("a", ("s", 4), ("pair", "a", "b"))
        assert answer.verdict == made("a", ("b",), reply).verdict
    assert made(7, (3, 5, 9), 1).picked == 5
    assert made(7, (3, 5, 9), "none").picked is None
    assert made(7, (3, 5), "none").question.key == made(7, (5, 3), 0).question.key != made(5, (3, 7), 0).question.key


def sorting(items, labels, **more):
    return read_reply(Question("sort", items, **more), labels)


def test_implied_pairs_are_all_pairs_that_an_answer_compares():
    """By enumeration: of each two items of a sorted set, and of a new item and each example."""
    answers = [
        sorting((4, 7, 2, 9), ["x", None, "y", "x"])._replace(annotator="bob"),
        made(1, (5, 6, 8), 1, "ann"),
        made(1, (5, 6), "none"),
        made(3, (4,), True, "bob"),
        made(3, (5, 6), "unsure", "ann"),
        read_reply(Question("nearer", (3, 4, 5)), 1),
    ]
    table = implied_pairs(answers)
    rows = zip(table.ends.tolist(), table.signs.tolist(), table.answers.tolist(), strict=True)
    found = {(frozenset(ends), sign, k) for ends, sign, k in rows}
    assert found == {
        *((frozenset(ends), 1 if ends == (4, 9) else -1, 0) for ends in itertools.combinations((4, 2, 9), 2)),
        *((frozenset((1, example)), 1 if example == 6 else -1, 1) for example in (5, 6, 8)),
        *((frozenset((1, example)), -1, 2) for example in (5, 6)),
        (frozenset((3, 4)), 1, 3),
    }
    assert len(found) == len(table.ends)
    assert table.questions.tolist() == [1] * 3 + [2] * 3 + [3] * 2 + [0]
    assert table.annotators.tolist() == [1] * 3 + [2] * 3 + [0] * 2 + [1]
    nothing = implied_pairs(answers[4:])
    assert (nothing.ends.shape, nothing.signs.shape, nothing.questions.tolist()) == ((0, 2), (0,), [])
    names = implied_pairs([made("a", ("b",), "same")])
    assert names.ends.tolist() == [["a", "b"]]


def test_each_sorted_item_is_the_first_of_a_pair():
    """A pair belongs to the random sample by its first item."""
    for n in (3, 4, 5):
        pairs = sorting(tuple(range(n)), [0] * n).pairs()
        assert {a for a, _, _ in pairs} == set(range(n))
        assert {frozenset(pair[:2]) for pair in pairs} == set(map(frozenset, itertools.combinations(range(n), 2)))


ITEMS = {"pair": 2, "match": 4, "sort": 4, "nearer": 3}


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("pair", [True, np.bool_(False), "same", "different", "unsure", [0, 0], [1, 0], [None, None]],
         [0, 1, None, "none", 1.0, [0], [0, 0, 1], [0, None], {"same": 1}, b"same"]),
        ("match", [0, 2, np.int64(1), "none", "unsure", [0, 1, 0, 2], ["x", "a", "b", "c"], [None] * 4],
         [3, -1, True, 1.0, "0", "same", None, [0, 1, 1, 1], [0, 1, 2], [0, None, 1, 2]]),
        ("sort", ["unsure", [0, 1, 0, None], ("x", "y", "y", "x"), np.array([3, 3, 3, 3]), [np.int64(1), "a", 1, 2]],
         ["same", 0, True, None, [0, 1, 2], [0, 1, 2, 3, 4], [True, 1, 2, 3], [0.5, 1, 2, 3], [[0], 1, 2, 3], "0101",
          ["", 1, 2, 3]]),
        ("nearer", [0, 1, np.int64(1), "unsure"],
         [2, -1, True, False, "same", "none", None, 0.0, [0, 0, 1], [None] * 3]),
    ],
)  # fmt: skip
def test_replies_that_are_read_and_those_that_are_refused(form, good, bad):
    question = Question(form, tuple("abcd"[: ITEMS[form]]))
    for reply in good:
        answer = read_reply(question, reply)
        assert read_reply(question, answer.reply) == answer
    for reply in bad:
        with pytest.raises(InputError):
            read_reply(question, reply)


@pytest.mark.parametrize(
    "question",
    [Question("pair", (1, 2, 3)), Question("pair", (1, 1)), Question("match", (1,)), Question("sort", (1, 2)),
     Question("sort", (1, 2, 3, 4, 5, 6)), Question("nearer", (1, 2)), Question("rank", (1, 2)),
     Question("match", (1, 2, 2)), Question("pair", (1, 2), rank=(1, 2)), Question("sort", (1, 2, 3), rank=(1, 2))],
)  # fmt: skip
def test_questions_that_cannot_be_asked(question):
    with pytest.raises(InputError):
        read_reply(question, "unsure")


def any_answer(rng):
    """Any answer to any question."""
    form = rng.choice(list(N_ITEMS))
    n = rng.randint(N_ITEMS[form][0], int(min(N_ITEMS[form][1], 6)))
    ranks = [rng.choice([None, 0, 7, 10**6]) for _ in range(n)]
    rank = rng.choice([tuple(ranks), ranks[0]]) if form == "sort" else ranks[0]
    question = Question(form, tuple(rng.sample("abcdef", n)), rng.choice(["random", "repeat", "audit"]), rank)
    replies = {
        "pair": [True, False],
        "match": [*range(n - 1), "none"],
        "sort": [[rng.choice([None, 0, 1, "x", 9]) for _ in range(n)]],
        "nearer": [0, 1],
    }
    given = Given(seconds=rng.choice([None, 2.5]), comment=rng.choice(["", "é"]))
    answer = read_reply(question, rng.choice([*replies[form], "unsure"]))
    return answer._replace(annotator=rng.choice(["", "ann"]), given=given)


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_every_answer_survives_its_line(tmp_path_factory, seed):
    """20,000 answers, through the store and through the bytes of a log."""
    rng = random.Random(seed)
    answers = [any_answer(rng) for _ in range(200)]
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    lines = []
    store = AnswerStore.in_memory()
    store._append = lambda records: (
        lines.extend({**one, "session": ""} for one in records)
        or [store.contents.apply(one, 0) for one in lines[-len(records) :]]
    )
    for answer in answers:
        stored = store.add(answer.question, answer.reply, answer.annotator, answer.given)
        assert stored._replace(given=answer.given) == answer
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    contents = parse_log(path.read_bytes())
    assert not contents.bad_rows
    again = [
        answer._replace(given=answer.given._replace(number=0, line=0, time="")) for answer in contents.answers.values()
    ]
    assert again == answers
    forced = [answer for answer in answers if answer.question.form == "nearer"]
    assert not len(implied_pairs(forced).ends)
    assert implied_pairs(answers).answers.tolist() == implied_pairs(again).answers.tolist()


def test_the_first_pick_of_a_row_is_its_class():
    """r1 is like a and r2 like b; that r1 is like b as well was said later."""
    pairs = [("r1", "a", 1), ("r1", "b", -1), ("r2", "b", 1), ("r2", "a", -1), ("r1", "b", 1), ("r3", "a", 0)]
    found = answers([said for *_, said in pairs], questions=np.array([0, 0, 1, 1, 2, 3]), kinds=np.array(["match"] * 6))
    found = replace(found, ids=np.array([pair[:2] for pair in pairs], dtype=object))
    assert (found.n_classes, found.n_questions) == (2, 4)
