"""Match answers: a likelihood of classes with one chance to be wrong, its model, and what is estimated from it."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression

from sdulearn.asking import Asker, ask
from sdulearn.asking.points import Points
from sdulearn.asking.state import NEVER, Settings, State, first_settings, fit_softmax
from tests.made import made


@pytest.fixture(scope="module")
def wrong_digits(matcher):
    """An Asker after 90 answers about five digits, of which 15% are wrong, and the digits."""
    X, y = load_digits(n_class=5, return_X_y=True)
    return ask(X, matcher(y, wrong=0.15, seed=3), 90, n_classes="auto", repeat_share=0.15, random_state=0), y


def test_right_answers_give_the_softmax_of_labels():
    X, y = load_iris(return_X_y=True)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = np.where(np.eye(3)[y], 0.0, NEVER)
    found = fit_softmax(Z, labels, 0.5)
    other = LogisticRegression(C=2.0, tol=1e-8, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(Z @ found[:, :-1].T + found[:, -1], other.decision_function(Z), atol=0.02)
    np.testing.assert_allclose(fit_softmax(Z, labels, 0.5, found), found, atol=1e-3)


def test_wrong_answers_are_found_and_weighed(wrong_digits):
    asker, y = wrong_digits
    state = asker._now
    assert 0.06 < asker.error_rate() < 0.3
    found = asker.accuracy()
    assert found.value > found.agreement
    assert asker.annotator_rates()[""].identified
    is_wrong = np.array([
        any(y[one.left] == y[point] for point in one.choices) if one.picked is None else y[one.left] != y[one.picked]
        for one in asker.review(6)
    ])  # fmt: skip
    assert is_wrong.mean() > 0.5
    labels = asker.labels()
    names = {one.number: np.bincount(y[list(one.examples)]).argmax() for one in asker.classes()}
    predicted = np.array([names[k] for k in asker.model().predict(asker._X)])
    assert np.mean(predicted == y) > 0.85
    assert labels.shape == y.shape
    np.testing.assert_allclose(state.by_answers().sum(axis=1), 1)


def test_a_review_is_of_one_list_of_answers(wrong_digits):
    """Another thread undoes an answer while it is made."""

    class Busy(Asker):
        @property
        def given(self):
            answers = super().given
            if self.first_key in self.store.contents.answers:
                self.store.undo(self.first_key)
            return answers

    asker, _ = wrong_digits
    expected = asker.review()
    assert expected
    busy = Busy.__new__(Busy)
    busy.first_key = asker.given[0].key
    calm = Asker(asker._X, answers=list(asker.given), n_classes="auto", random_state=0)
    busy.__dict__ |= calm.__dict__
    assert [answer.key for answer in busy.review()] == [answer.key for answer in expected]


def test_most_answers_about_a_point_decide():
    X, _ = load_iris(return_X_y=True)
    opened = [made(50, (0,), "none", form="match"), made(100, (0, 50), "none")]
    points = Points(X, np.random.default_rng(0))

    def label(*about, limit=None):
        return State(points, (*opened, *about), limit, first_settings(limit)).classes.label.get(1)

    first = made(1, (100, 0, 50), 0)
    assert label(first) == label(first, made(1, (100, 0, 50), 1)) == 2
    assert label(first, made(1, (50, 0, 100), 1), made(1, (0, 100), 0)) == 0
    assert label(first, made(1, (50, 0, 100), "none"), made(1, (0, 100), "none")) == 3
    # "None", which two others deny, opens no class though they do not agree.
    assert label(*(made(1, (50, 0, 100), reply) for reply in ("none", 1, 0))) == 0
    # None of the first two, then one that was not among them: no contradiction.
    followed = (made(1, (0, 50), "none"), made(1, (100,), 0, form="match"))
    assert label(*followed) == 2
    assert State(points, (*opened, *followed), None, first_settings(None)).error == 0
    assert State(points, (*opened, first, made(1, (100, 50), "none")), None, first_settings(None)).error > 0


def test_what_opened_a_class_is_asked_again_once_an_answer_was_wrong():
    """One "none" in error splits a class in two, for good. It is asked beside all classes of now."""
    X, _ = load_iris(return_X_y=True)
    right = [
        made(50, (0,), "none", form="match"),
        made(100, (0, 50), "none"),
        made(1, (100, 0, 50), 1),
    ]

    def go_on(*answers):
        return Asker(X, n_classes="auto", answers=[*right, *answers], random_state=0)

    assert go_on().next().why != "doubtful"
    asker = go_on(made(1, (100, 0, 50), 0))
    for *items, reply in ((50, 0, 100, "none"), (100, 0, 50, 0), (100, 0, 50, 0)):
        question = asker.next()
        assert question[:3] == ("match", tuple(items), "doubtful")
        asker.tell(question, reply)
    assert asker.next().why != "doubtful"
    assert [sorted(one.examples) for one in asker.classes()] == [[0, 1, 100], [50]]


def test_the_accuracy_of_many_classes_is_not_too_low(matcher):
    """Points judged by models of all other answers were: where one is known, no other near it was asked about."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    train = order[:600]
    test = order[600:]
    asker = ask(X[train], matcher(y[train]), 80, n_classes="auto", random_state=0)
    found = asker.classes()
    assert [one.number for one in found] == list(range(1, 11))
    assert [len(set(y[train][list(one.examples)])) for one in found] == [1] * 10
    assert sum(one.share for one in found) == pytest.approx(1)
    assert (asker.error_rate(), max(len(one.examples) for one in found)) == (0, 6)
    names = {one.number: y[train][one.examples[0]] for one in found}
    true = np.mean([names[k] for k in asker.model().predict(X[test])] == y[test])
    estimate = asker.accuracy()
    assert estimate.low <= true <= estimate.high
    assert estimate.n_answers == pytest.approx(80 / 4, abs=6)
    assert abs(estimate.value - true) < 0.08
    state = asker._now
    held_out = state.hold_out(np.arange(len(state.known))).argmax(axis=1)
    assert np.mean(held_out == state.known_class) < true - 0.1


def test_settings_stay_near_an_earlier_choice_and_are_those_of_the_answers(wrong_digits):
    state = wrong_digits[0]._now
    moved = [
        State(state.points, state.answers, None, Settings(penalty, 0.0)).next_settings.penalty
        for penalty in (0.03, 30.0)
    ]
    assert moved[0] <= 0.3
    assert moved[1] >= 3.0
    again = Asker(state.points.X, n_classes="auto", answers=list(state.answers), random_state=0)
    assert again._now.settings == state.settings


def test_the_estimator_has_the_probabilities_of_the_model(wrong_digits):
    state = wrong_digits[0]._now
    assert state.error > 0.02
    plain = replace(state, settings=state.settings._replace(sharpness=1.0))
    Z = plain._stretched(plain.points.coordinates(plain.known))
    np.testing.assert_allclose(
        plain.estimator.predict_proba(Z), np.exp(plain.log_probabilities(plain.known)), atol=1e-6
    )
