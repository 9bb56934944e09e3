"""Answers as people gave them."""

from dataclasses import replace

import numpy as np
import pytest

from sdulearn.answers import Answers
from sdulearn.answers.records import Answer, flip_rate, is_epsilon, random_ends, read_said
from sdulearn.errors import InputError


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
    chosen = answers([1, 1, 1], kinds=np.array(["random", "linked", ""], dtype=object))
    assert chosen.n_chosen == 2


def test_the_first_point_of_a_random_question_is_random_and_the_second_where_it_is_in_no_other():
    ends = np.array([[0, 9], [1, 9], [2, 9], [3, 4]])
    kinds = np.array(["random", "linked", "random", "random"], dtype=object)
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


def test_an_answer_in_words_as_a_code_and_as_pairs():
    for said, word, sign, pairs in (
        (0, "same", 1, [("b", "a", 1)]),
        ("none", "different", -1, [("b", "a", -1)]),
        ("unsure", "unsure", 0, []),
    ):
        answer = Answer("b", ("a",), said, number=4, session="s")
        assert (answer.word, answer.sign, answer.pairs()) == (word, sign, pairs)
        assert (answer.right, answer.key, answer.asked) == ("a", ("s", 4), ("a", "b"))
    # That it is different from the other choices follows where these are known to differ.
    assert Answer(7, (3, 5, 9), 1).pairs() == [(7, 5, 1)]
    assert Answer(7, (3, 5), "none").pairs() == [(7, 3, -1), (7, 5, -1)]


@pytest.mark.parametrize(
    ("answer", "of_pair", "of_two_choices"),
    [
        (True, 0, None),
        ("different", "none", None),
        ("none", "none", "none"),
        ("unsure", "unsure", "unsure"),
        (0, 0, 0),
        (np.int64(1), None, 1),
        (2, None, None),
        (-1, None, None),
        (1.0, None, None),
        ("perhaps", None, None),
    ],
)
def test_answers_are_words_bools_or_positions(answer, of_pair, of_two_choices):
    assert read_said(answer, 1, positions=True) == of_pair
    assert read_said(answer, 2, positions=True) == of_two_choices
    assert read_said(answer, 2, positions=False) is None


def test_the_first_pick_of_a_row_is_its_class():
    """r1 is like a and r2 like b; that r1 is like b as well was said later."""
    pairs = [("r1", "a", 1), ("r1", "b", -1), ("r2", "b", 1), ("r2", "a", -1), ("r1", "b", 1), ("r3", "a", 0)]
    found = answers([said for *_, said in pairs], questions=np.array([0, 0, 1, 1, 2, 3]), kinds=np.array(["match"] * 6))
    found = replace(found, ids=np.array([pair[:2] for pair in pairs], dtype=object))
    assert (found.n_classes, found.n_questions) == (2, 4)
