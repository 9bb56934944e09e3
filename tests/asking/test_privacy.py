"""What answers give away."""

import itertools
import random
import secrets

import numpy as np
import pytest
from sklearn.datasets import make_classification

from sdulearn.answer_files.store import Flips
from sdulearn.asking import Asker, Question, ask, effective_answers, flip_rate
from sdulearn.asking.privacy import leak_of
from sdulearn.errors import InputError, SpentRowError
from tests.made import made

X = np.random.default_rng(0).normal(size=(400, 3))


@pytest.fixture
def drawn(monkeypatch):
    """The operating system's randomness, from a seed."""
    monkeypatch.setattr(secrets, "token_bytes", random.Random(0).randbytes)


def star(reply):
    return [made(k, (0,), reply) for k in range(1, 21)]


@pytest.mark.parametrize(
    ("answers", "two_classes", "sizes", "n_points"),
    [
        (star(True), True, (21,), 21),
        (star(False), True, (21,), 21),
        ([made(2 * k, (2 * k + 1,), False) for k in range(20)], True, (2,) * 20, 40),
        # With more classes "different" tells nothing.
        (star(False), False, (1,) * 21, 21),
        (star(True), False, (21,), 21),
        ([], True, (), 0),
        ([made(0, (1,), "unsure")], True, (), 0),
    ],
)
def test_a_star_tells_all_loose_pairs_two_and_unsure_nothing(answers, two_classes, sizes, n_points):
    found = leak_of(answers, Flips(None, ()), two_classes=two_classes)
    assert (found.sizes, found.n_points, found.largest) == (sizes, n_points, max(sizes, default=0))
    assert str(found) == ""


def test_an_answer_undone_and_given_again_is_flipped_alike(drawn):
    """All that is ever stored of a question is flipped, or none of it: together it tells no more than one answer."""
    for epsilon in (0.1, 1.0, 4.0):
        # The odds of a stored answer under the two truths are exp(epsilon).
        assert np.log((1 - flip_rate(epsilon)) / flip_rate(epsilon)) == pytest.approx(epsilon)
        assert effective_answers(100, epsilon) == pytest.approx(100 * np.tanh(epsilon / 2) ** 2)
    asker = Asker(X, design="random", private=0.5, random_state=0)
    for _ in range(20):
        question = asker.next()
        seen = set()
        for _ in range(4):
            asker.tell(question, "same")
            seen.add(asker.undo().reply)
        asker.tell(question, "different")
        asker.change(asker.answers["number"][-1], "same")
        seen.add(asker.answers["answer"][-1])
        assert seen in ({"same"}, {"different"})
    assert set(asker.answers["answer"]) == {"same", "different"}


def test_no_row_is_in_two_private_answers():
    """k answers about a row would make its protection k epsilon; the log of a hub tells its class."""
    asker = ask(X, lambda a, b: X[a, 0] * X[b, 0] > 0, 60, private=0.5, random_state=0)
    answers = asker.answers
    assert len({*answers["left"], *answers["right"]}) == 120
    leak = asker.leak()
    assert asker.error_rate() == leak.flip_rate == flip_rate(0.5)
    assert (leak.epsilon, leak.row_epsilon, leak.largest) == (0.5, 0.5, 2)
    assert leak.person_epsilons == {"": 30.0}
    assert "A row is in at most 1 answer: epsilon 0.5 for its class, at most 62.25% certain" in str(leak)
    nothing = Asker(X, private=0.5).leak()
    assert (nothing.row_epsilon, nothing.person_epsilons, nothing.n_points) == (0, {}, 0)
    assert "A row" not in str(nothing)
    hub = {"left": [0, 0, 0], "right": [1, 2, 3], "answer": ["same"] * 3}
    assert Asker(X, private=0.5, answers=hub).leak().row_epsilon == 1.5
    with pytest.raises(InputError):
        Asker(X, design="linked", private=1.0)
    with pytest.raises(InputError):
        Asker(X, private=1e-9)


def test_rows_of_private_answers_are_asked_about_only_by_who_may_give_them_again():
    """What was undone still stands in the log: another flip of it would tell twice as much of the two rows."""
    asker = Asker(X, private=0.5, random_state=0)
    first = asker.next("ann")
    asker.tell(first, "same", "ann")
    other = next(row for row in range(400) if row not in (first.left, first.right))
    with pytest.raises(SpentRowError):
        asker.tell(Question("pair", (other, first.left), "random"), "same")
    assert not {first.left, first.right} & {asker.next("cid").left, asker.next("cid").right}
    asker.undo("ann")
    assert asker.leak().person_epsilons == {"ann": 0.5}
    assert not {first.left, first.right} & {asker.next("bob").left, asker.next("bob").right}
    assert asker.next("ann").items == first.items


def test_a_flip_depends_on_the_person_and_not_on_the_order_of_the_points(drawn):
    """Who knows their own answer must not learn by it how the answer of another person was flipped."""
    askers = [Asker(X, private=0.5, random_state=0) for _ in range(2)]

    def stored(asker, a, b, name):
        answers = [made(str(2 * k + a), (str(2 * k + b),), True, name) for k in range(200)]
        return np.array([asker.store.flips.stored(answer).reply == "different" for answer in answers])

    # The key is drawn anew, whatever the seed.
    flips = [stored(asker, 0, 1, name) for asker in askers for name in ("ann", "bob")]
    assert (stored(askers[0], 1, 0, "ann") == flips[0]).all()
    e = flip_rate(0.5)
    for one, other in itertools.combinations(flips, 2):
        assert np.mean(one) == pytest.approx(e, abs=0.08)
        assert np.mean(one != other) == pytest.approx(2 * e * (1 - e), abs=0.08)
    assert np.mean(flips) == pytest.approx(e, abs=0.03)


def test_answers_of_an_earlier_time_get_no_second_flip():
    """The key is forgotten: a new flip of the same answer would be a second look at it."""
    first = ask(X, lambda *_: True, 20, private=0.5, random_state=0)
    again = Asker(X, private=0.5, answers=first.answers, random_state=0)
    before = again.answers
    with pytest.raises(SpentRowError):
        again.change(3, "same")
    assert again.answers == before
    taken = again.undo(number=3)
    with pytest.raises(SpentRowError):
        again.tell(taken.question, "same")
    assert not {taken.left, taken.right} & {again.next().left, again.next().right}
    assert again.leak().row_epsilon == 0.5


def test_fits_of_random_pairs_allow_for_the_flips(drawn):
    """Agreement m of pairs would be an accuracy of (1 + sqrt(2 m - 1)) / 2 if no answer were flipped."""
    rows, y = make_classification(200, 3, n_redundant=0, n_clusters_per_class=1, class_sep=1.0, random_state=0)
    asker = ask(rows, lambda a, b: y[a] == y[b], 90, design="random", private=2.0, random_state=0)
    assert asker.model().error_rate == flip_rate(2.0)
    found = asker.accuracy()
    assert found.value > (1 + np.sqrt(2 * found.agreement - 1)) / 2 + 0.02
    right = np.mean((asker.model().predict(rows) > 0) == y)
    assert found.low <= max(right, 1 - right) <= found.high
