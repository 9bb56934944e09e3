"""What answers give away."""

import random
import secrets

import numpy as np
import pytest
from sklearn.datasets import make_classification

from sdulearn.answers.records import Answer
from sdulearn.asking import Asker, Question, ask, effective_answers, flip_rate
from sdulearn.asking.privacy import Flips
from sdulearn.errors import InputError

X = np.random.default_rng(0).normal(size=(400, 3))


@pytest.fixture
def drawn(monkeypatch):
    """The operating system's randomness, from a seed."""
    monkeypatch.setattr(secrets, "token_bytes", random.Random(0).randbytes)


def star(n, said):
    return [Answer(k, (0,), said) for k in range(1, n + 1)]


LOOSE = [Answer(2 * k, (2 * k + 1,), "none") for k in range(20)]


@pytest.mark.parametrize(
    ("answers", "two_classes", "sizes", "n_points"),
    [
        (star(20, 0), True, (21,), 21),
        (star(20, "none"), True, (21,), 21),
        (LOOSE, True, (2,) * 20, 40),
        # With more classes "different" tells nothing.
        (star(20, "none"), False, (1,) * 21, 21),
        (star(20, 0), False, (21,), 21),
        ([], True, (), 0),
        ([Answer(0, (1,), "unsure")], True, (), 0),
    ],
)
def test_a_star_tells_all_loose_pairs_two_and_unsure_nothing(answers, two_classes, sizes, n_points):
    found = Flips(None, answers).leak(answers, two_classes=two_classes)
    assert (found.sizes, found.n_points, found.largest) == (sizes, n_points, max(sizes, default=0))
    assert str(found) == ""


def test_flips_are_as_private_as_they_say():
    """The odds of a stored answer under the two truths are exp(epsilon)."""
    for epsilon in (0.1, 1.0, 4.0):
        e = flip_rate(epsilon)
        assert np.log((1 - e) / e) == pytest.approx(epsilon)
        assert effective_answers(100, epsilon) == pytest.approx(100 * np.tanh(epsilon / 2) ** 2)


def test_answers_are_flipped_at_their_rate_and_not_by_the_seed(drawn):
    given = [ask(X, lambda *_: True, 200, private=1.0, random_state=0).answers["answer"] for _ in range(2)]
    assert given[0] != given[1]
    assert np.mean([word == "different" for word in given[0] + given[1]]) == pytest.approx(flip_rate(1.0), abs=0.06)
    assert Asker(X, private=0.5).seed != Asker(X, private=0.5).seed


def test_an_answer_taken_back_and_given_again_is_no_second_look(drawn):
    """All that is ever stored of a question is flipped, or none of it: together it tells no more than one answer."""
    asker = Asker(X, design="random", private=0.5, random_state=0)
    flipped = []
    for _ in range(40):
        question = asker.next()
        seen = {asker.answer_to(question, "same").word}
        for _ in range(3):
            asker.tell(question, "same")
            seen.add(asker.undo().word)
        asker.tell(question, "different")
        asker.change(question.number, "same")
        seen.add(asker.answers["answer"][-1])
        assert seen in ({"same"}, {"different"})
        flipped.append("different" in seen)
    assert 5 < sum(flipped) < 25


def test_no_row_is_in_two_private_answers():
    """k answers about a row would make its protection k epsilon; the log of a hub tells its class."""
    asker = ask(X, lambda a, b: X[a, 0] * X[b, 0] > 0, 60, private=0.5, random_state=0)
    answers = asker.answers
    assert len({*answers["left"], *answers["right"]}) == 120
    leak = asker.leak()
    assert asker.error_rate() == leak.flip_rate == flip_rate(0.5)
    assert (leak.epsilon, leak.row_epsilon, leak.largest) == (0.5, 0.5, 2)
    assert leak.person_epsilons == {"": 30.0}
    for words in (
        "37.8%",
        "62.25%",
        "A row is in at most 1 answer: epsilon 0.5 for its class",
        "60 answers, epsilon 30",
    ):
        assert words in str(leak)
    nothing = Asker(X, private=0.5).leak()
    assert (nothing.row_epsilon, nothing.person_epsilons, nothing.n_points) == (0, {}, 0)
    assert "A row" not in str(nothing)
    hub = {"left": [0, 0, 0], "right": [1, 2, 3], "answer": ["same"] * 3}
    assert Asker(X, private=0.5, answers=hub).leak().row_epsilon == 1.5


def test_a_design_with_hubs_is_refused_and_so_is_a_second_answer_about_a_row():
    with pytest.raises(InputError, match='Give `design="random"`'):
        Asker(X, design="linked", private=1.0)
    asker = Asker(X, private=1.0, random_state=0)
    first = asker.next()
    asker.tell(first, "same")
    other = next(row for row in range(400) if row not in (first.left, first.right))
    with pytest.raises(InputError, match="in another private answer"):
        asker.tell(Question(other, (first.left,), "random", 99), "same")
    assert asker.n_answers == 1


@pytest.mark.parametrize(
    "epsilon", [True, np.True_, "1", 1e400, float("nan"), 0, -1, 1e-9, 1e3, pytest.param(10**400, id="huge")]
)
def test_an_epsilon_is_a_number(epsilon):
    with pytest.raises(InputError, match="`epsilon` must be a number above 0"):
        Asker(X, private=epsilon)
    with pytest.raises(InputError, match="`epsilon` must be a number above 0"):
        effective_answers(100, epsilon)


def test_a_flip_depends_on_the_person_and_not_on_the_order_of_the_points(drawn):
    """Who knows their own answer must not learn by it how the answer of another person was flipped."""
    asker = Asker(X, private=0.5, random_state=0)

    def stored(a, b, name):
        return [asker.answer_to(Question(2 * k + a, (2 * k + b,)), "same", name).word for k in range(60)]

    assert stored(0, 1, "ann") == stored(1, 0, "ann")
    assert 10 < stored(0, 1, "ann").count("different") < 40
    assert 10 < sum(one != other for one, other in zip(stored(0, 1, "ann"), stored(0, 1, "bob"), strict=True)) < 50


def test_answers_of_an_earlier_time_get_no_second_flip():
    """The key is forgotten: a new flip of the same answer would be a second look at it."""
    first = ask(X, lambda *_: True, 20, private=0.5, random_state=0)
    again = Asker(X, private=0.5, answers=first.answers, random_state=0)
    before = again.answers
    with pytest.raises(InputError, match="forgotten"):
        again.change(3, "same")
    assert again.answers == before
    taken = again.undo(number=3)
    with pytest.raises(InputError, match="forgotten"):
        again.tell(Question(taken.left, taken.choices, "random", 99), "same")
    assert not {taken.left, taken.right} & {again.next().left, again.next().right}
    assert again.leak().row_epsilon == 0.5


def test_what_one_person_took_back_is_asked_of_nobody_else():
    """The answer still stands in the log: another flip of it would tell twice as much of the two rows."""
    asker = Asker(X, private=0.5, random_state=0)
    first = asker.next("ann")
    asker.tell(first, "same", "ann")
    # Nor what stands.
    assert not {first.left, first.right} & {asker.next("cid").left, asker.next("cid").right}
    asker.undo("ann")
    assert asker.leak().person_epsilons == {"ann": 0.5}
    assert not {first.left, first.right} & {asker.next("bob").left, asker.next("bob").right}
    assert asker.next("ann")[:2] == first[:2]


def test_fits_of_random_pairs_allow_for_the_flips(drawn):
    """Agreement m of pairs would be an accuracy of (1 + sqrt(2 m - 1)) / 2 if no answer were flipped."""
    rows, y = make_classification(200, 3, n_redundant=0, n_clusters_per_class=1, class_sep=1.0, random_state=0)
    asker = ask(rows, lambda a, b: y[a] == y[b], 90, design="random", private=2.0, random_state=0)
    assert asker.model().error_rate == flip_rate(2.0)
    found = asker.accuracy()
    assert found.value > (1 + np.sqrt(2 * found.agreement - 1)) / 2 + 0.02
    right = np.mean((asker.model().predict(rows) > 0) == y)
    assert found.low <= max(right, 1 - right) <= found.high
