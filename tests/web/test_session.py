"""People, questions and the log, with a stand-in for the engine."""

import pytest

from sdulearn.errors import InputError
from sdulearn.io.answer_log import read_log


def standing(session):
    """What the log on the disk and the engine each say: they must be the same."""
    of_log = [
        (session.rows[one.left], session.rows[one.right], one.answer)
        for one in read_log(session.log.path).answers.values()
    ]
    words = {1: "same", -1: "different", 0: "unsure"}
    assert of_log == [(one.left, one.right, words[one.answer]) for one in session.engine.records]
    return of_log


def answer(session, word, name=""):
    return session.answer(name, session.question(name).token, word)


def test_a_question_stays_until_it_is_answered(session):
    first = session.question("ann")
    assert session.question("ann") == first
    written = session.answer("ann", first.token, "same")
    assert (written.left, written.annotator) == (session.ids[first.question.left], "ann")
    assert session.question("ann").token != first.token
    assert len(standing(session)) == 1


def test_an_answer_sent_twice_counts_once_and_a_stale_one_not_at_all(session):
    first = session.question("")
    written = session.answer("", first.token, "same")
    assert session.answer("", first.token, "different") == written
    assert session.answer("", first.token + 99, "same") is None
    assert [one[2] for one in standing(session)] == ["same"]


def test_undo_of_any_depth_shows_each_question_again(session):
    asked = []
    for word in ("same", "different", "unsure", "same"):
        asked.append(session.question("").question)
        answer(session, word)
    for question in reversed(asked):
        shown = session.undo("").question
        assert (shown.left, shown.right) == (question.left, question.right)
    assert session.undo("") is None
    assert standing(session) == []
    answer(session, "different")
    assert standing(session) == [(asked[0].left, asked[0].right, "different")]


def test_undo_takes_back_one_s_own_answer_and_no_other(session):
    answer(session, "same", "ann")
    answer(session, "same", "bob")
    answer(session, "different", "bob")
    before = session.question("bob")
    session.undo("ann")
    assert [one.annotator for one in session.history()] == ["bob", "bob"]
    assert len(standing(session)) == 2
    # Bob's question is still before him, whatever Ann takes back.
    assert session.question("bob") == before
    answer(session, "same", "bob")
    answer(session, "different", "ann")
    assert len(standing(session)) == 4


def test_any_answer_can_be_changed(session):
    written = [answer(session, "same") for _ in range(5)]
    session.change(written[1].key, "different", "ann")
    assert [one[2] for one in standing(session)] == ["same", "different", "same", "same", "same"]
    with pytest.raises(InputError, match="no answer 77"):
        session.change((session.log.session, 77), "same", "")


def test_a_question_that_is_put_off_comes_back(session):
    first = session.question("")
    session.skip("", first.token)
    seen = []
    for _ in range(11):
        pending = session.question("")
        seen.append((pending.question.left, pending.question.right))
        session.answer("", pending.token, "same")
    pair = (first.question.left, first.question.right)
    assert pair == seen[10]
    assert pair not in seen[:10]
    assert len(standing(session)) == 11


def test_what_was_put_off_comes_back_when_nothing_else_is_left(open_session):
    session = open_session(most=2)
    first = session.question("")
    session.skip("", first.token)
    answer(session, "same")
    assert session.question("").question == first.question
    answer(session, "same")
    with pytest.raises(InputError, match="Nothing is left"):
        session.question("")


def test_a_later_session_goes_on(open_session):
    session = open_session()
    for word in ("same", "different", "unsure"):
        answer(session, word, "ann")
    session.undo("ann")
    before = standing(session)
    session.close()
    again = open_session()
    assert standing(again) == before
    again.undo("ann")
    assert standing(again) == before[:1]
    answer(again, "same", "bob")
    assert len(standing(again)) == 2


def test_the_log_of_another_table_is_refused(open_session):
    session = open_session(n_points=20)
    for _ in range(20):
        answer(session, "same")
    session.close()
    with pytest.raises(InputError, match="Is it the log of another table"):
        open_session(n_points=5)


def test_numbers(session):
    numbers = session.numbers()
    assert (numbers["n_answers"], numbers["accuracy"], numbers["classes"]) == (0, None, [])
    for word in ("same", "same", "different", "unsure", "same"):
        answer(session, word)
        numbers = session.numbers()
    assert [numbers[f"n_{word}"] for word in ("answers", "same", "different", "unsure")] == [5, 3, 1, 1]
    assert [one["n_answers"] for one in numbers["curve"]] == [4, 5]
    (review,) = numbers["review"]
    assert review.answer == "unsure"
    session.undo("")
    assert [one["n_answers"] for one in session.numbers()["curve"]] == [4]


def test_names_that_cannot_be_names(session):
    for name in ("x" * 61, "a\nb", "\x1b[2J"):
        with pytest.raises(InputError, match="name"):
            session.question(name)


def test_labels_are_of_rows(session):
    session.label({"r1": "cat"}, "ann")
    assert read_log(session.log.path).labels == {"r1": "cat"}
    with pytest.raises(InputError, match="no row"):
        session.label({"elsewhere": "cat"}, "ann")


def test_private_answers_are_written_as_the_engine_stores_them(open_session):
    session = open_session()
    session.engine.private = 1.0
    flipped = {"same": "different", "different": "same", "unsure": "unsure"}
    session.engine.stored_answer = lambda question, answer, annotator: flipped[answer]
    written = [answer(session, word) for word in ("same", "different", "unsure")]
    assert [one.answer for one in written] == ["different", "same", "unsure"]
    assert [one.answer for one in read_log(session.log.path).answers.values()] == ["different", "same", "unsure"]
    with pytest.raises(InputError, match="cannot be changed"):
        session.change(written[0].key, "same", "")
    assert session.numbers()["review"] == []
    assert session.undo("").question.number == 3
    answer(session, "same")
    session.close()
    again = open_session()
    again.engine.private = 1.0
    # Whether these were flipped is forgotten.
    assert again.undo("") is None
    answer(again, "same")
    assert again.undo("") is not None
    assert again.n_answers == 3


def test_the_curve_of_old_answers_is_there_after_a_start(open_session):
    session = open_session()
    for _ in range(50):
        answer(session, "same")
    session.close()
    again = open_session()
    answer(again, "same")
    again.rebuild_curve().result()
    curve = again.numbers()["curve"]
    sizes = [one["n_answers"] for one in curve]
    assert sizes == sorted(set(sizes))
    assert sizes[0] >= 4
    assert sizes[-1] == 51
    assert len(sizes) > 15
    assert [one["value"] for one in curve] == [0.9 + n / 1000 for n in sizes]


def test_closing_does_not_wait_for_the_curve(open_session):
    session = open_session()
    for _ in range(50):
        answer(session, "same")
    session.engine.accuracy = lambda first=None: session._closing.wait(0.01) and None
    rebuilding = session.rebuild_curve()
    session.close()
    assert rebuilding.done()
