"""What answers give away."""

import random
import secrets

import numpy as np
import pytest
from sklearn.datasets import make_classification

from sdulearn.asking import Asker, ask, effective_answers, flip_rate
from sdulearn.asking.privacy import find_leak
from sdulearn.asking.records import Record


@pytest.fixture
def drawn(monkeypatch):
    """The operating system's randomness, from a seed."""
    monkeypatch.setattr(secrets, "randbits", random.Random(0).getrandbits)


def star(n, answer):
    return [Record(k, 0, answer, "", "linked", k) for k in range(1, n + 1)]


@pytest.mark.parametrize("answer", [1, -1])
def test_a_star_tells_all_and_loose_pairs_two(answer):
    assert find_leak(star(20, answer), two_classes=True).sizes == (21,)
    loose = [Record(2 * k, 2 * k + 1, answer, "", "random", k + 1) for k in range(20)]
    found = find_leak(loose, two_classes=True)
    assert found.largest == 2
    assert found.sizes == (2,) * 20


def test_with_more_classes_different_tells_nothing():
    found = find_leak(star(20, -1), two_classes=False)
    assert found.largest == 1
    assert found.n_points == 21
    assert find_leak(star(20, 1), two_classes=False).largest == 21


def test_nothing_asked_nothing_told():
    assert find_leak([], two_classes=True).largest == 0
    assert find_leak([Record(0, 1, 0, "", "linked", 1)], two_classes=True).largest == 0


def test_flips_are_as_private_as_they_say():
    """The odds of a stored answer under the two truths are exp(epsilon)."""
    for epsilon in (0.1, 1.0, 4.0):
        e = flip_rate(epsilon)
        assert np.log((1 - e) / e) == pytest.approx(epsilon)
        assert effective_answers(100, epsilon) == pytest.approx(100 * np.tanh(epsilon / 2) ** 2)


def test_private_answers_are_flipped_at_their_rate_and_never_asked_twice(drawn):
    X, y = make_classification(500, 5, n_informative=3, class_sep=1.5, random_state=0)
    asker = ask(X, lambda a, b: y[a] == y[b], 300, private=1.0, random_state=1)
    told = asker.answers
    truth = np.where(y[told["left"]] == y[told["right"]], "same", "different")
    assert np.mean(truth != told["answer"]) == pytest.approx(flip_rate(1.0), abs=0.08)
    assert set(told["kind"]) <= {"random", "linked", "explore"}
    assert asker.leak().flip_rate == asker.error_rate() == flip_rate(1.0)


def test_private_answers_still_make_a_model(drawn):
    X, y = make_classification(500, 5, n_informative=3, class_sep=2, flip_y=0, random_state=0)
    asker = ask(X, lambda a, b: y[a] == y[b], 200, private=2.0, random_state=0)
    agree = np.mean((asker.model().predict(X) > 0) == y)
    assert max(agree, 1 - agree) > 0.85


def test_flips_do_not_follow_from_the_seed():
    X = np.random.default_rng(0).normal(size=(200, 3))
    told = [ask(X, lambda *_: True, 60, private=0.5, random_state=0).answers["answer"] for _ in range(2)]
    assert told[0] != told[1]
    assert Asker(X, private=0.5).seed != Asker(X, private=0.5).seed


def test_an_answer_taken_back_and_given_again_is_no_second_look(drawn):
    """All that is ever stored of a question is flipped, or none of it: together it tells no more than one answer."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    asker = Asker(X, design="random", private=0.5, random_state=0)
    flipped = []
    for _ in range(40):
        question = asker.next()
        seen = {asker.stored_answer(question, "same")}
        for _ in range(3):
            asker.tell(question, "same")
            seen.add(asker.undo().answer)
        asker.tell(question, "different")
        asker.change(question.number, "same")
        seen.add(asker.answers["answer"][-1])
        assert seen in ({"same", 1}, {"different", -1})
        flipped.append("different" in seen)
    assert 5 < sum(flipped) < 25
