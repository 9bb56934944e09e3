"""What follows from answers: the model, its settings, error rates and held-out points."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_iris, make_classification

from sdulearn.asking import Asker, Question, ask
from sdulearn.asking.points import Points
from sdulearn.asking.state import MOST_WRONG, UNSEEN, State, first_settings
from tests.made import made


@pytest.fixture(scope="module")
def three(matcher):
    """State of forty right answers about iris."""
    X, y = load_iris(return_X_y=True)
    return ask(X, matcher(y), 40, n_classes=3, repeat_share=0, random_state=0)._now


@pytest.fixture(scope="module")
def two():
    X, y = make_classification(200, 4, n_informative=3, n_redundant=0, class_sep=0.7, random_state=0)
    return ask(X, lambda a, b: y[a] == y[b], 40, repeat_share=0, random_state=0)._now


def test_right_answers_are_labels(two, three):
    """The gradient of the logistic loss of the known points is a multiple of the penalty's, at the model."""
    for state in (two, three):
        Z = state._stretched(state.points.coordinates(state.known))
        model = state.estimator
        W = model.coef_ if len(model.coef_) > 1 else np.vstack([-model.coef_ / 2, model.coef_ / 2])
        decision = model.decision_function(Z)
        p = softmax(decision if decision.ndim > 1 else np.outer(decision, [0, 1]), axis=1)
        gradient = (p - np.eye(state.n_classes)[state.known_class]).T @ Z
        cosine = np.sum(gradient * -W) / np.linalg.norm(gradient) / np.linalg.norm(W)
        assert cosine > 0.99, state.n_classes
        # The factor of the logits is no part of the fit.
        plain = replace(state, settings=state.settings._replace(sharpness=1.0))
        assert np.exp(plain.log_probabilities(state.known)) == pytest.approx(p, abs=0.01)


def test_stretched_axes_are_a_penalty_by_the_covariance():
    """Ridge on Z C^(k/2) is w' C^-k w on Z."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    points = Points(X, rng)
    stretch = points.stretch(1.0).diagonal()
    Z = points.candidate_coordinates
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.diag(points.variances), atol=1e-8)
    np.testing.assert_allclose(stretch**2 / points.variances, (stretch**2 / points.variances)[0])
    for power in (0.0, 1.0, 2.0):
        assert np.mean(points.variances * points.stretch(power).diagonal() ** 2) == pytest.approx(1)


def opposite(answer):
    return answer.with_reply(answer.sign < 0)


def test_held_out_points_are_not_in_their_model(two):
    """Whatever is said of the points of a fold, its model says the same of them."""
    fold = np.random.default_rng(0).permutation(len(two.known)) % 10
    test = two.known[fold == 3]
    flipped = tuple(
        opposite(answer) if {answer.left, answer.right} <= {two.founders[0], *test} else answer
        for answer in two.answers
    )
    changed = State(two.points, flipped, 2, two.settings)
    assert (changed.known == two.known).all()
    assert changed.known_class[fold == 3].tolist() != two.known_class[fold == 3].tolist()
    np.testing.assert_allclose(changed.held_out[fold == 3], two.held_out[fold == 3], atol=1e-6)


def test_contradictions_and_nothing_else_make_answers_wrong(two):
    """Also those with what follows by exclusion: different from two of three classes is the third."""
    assert two.error == 0
    first = two.answers[0]
    again = opposite(first)._replace(annotator="bob")
    state = State(two.points, (*two.answers, again), 2, first_settings(2))
    assert set(state.error_rates) == {0, 1}
    assert 0.01 <= state.error < 0.1
    X, y = load_iris(return_X_y=True)
    ends = [(0, 50), (100, 0), (100, 50), (7, 0), (7, 50), (7, 100), (1, 0), (51, 50), (101, 100)]
    answers = [made(a, (b,), bool(y[a] == y[b] and a != 7)) for a, b in ends]
    right = Asker(X, n_classes=3, answers=[one for one in answers if one.left != 7 or one.right != 100])
    assert right.error_rate() == 0
    asker = Asker(X, n_classes=3, answers=answers, random_state=0)
    assert asker.error_rate() >= 0.01
    assert set(asker.model().predict(X[[0, 50, 100]])) == {1, 2, 3}


def test_answers_to_look_at_again():
    """Doubtful ones first, then those that contradict others, each once."""
    X, y = make_classification(200, 3, n_redundant=0, n_clusters_per_class=1, class_sep=3, flip_y=0, random_state=0)
    asker = ask(X, lambda a, b: y[a] == y[b], 30, repeat_share=0, random_state=0)
    sure = np.abs(asker.model().decision_function(X[asker.answers["left"]]))
    number = 1 + max((k for k in range(30) if asker.answers["why"][k] == "random"), key=sure.__getitem__)
    asker.change(number, "same" if asker.answers["answer"][number - 1] == "different" else "different")
    assert number in [answer.given.number for answer in asker.review()]
    left, other = asker.answers["left"][4], asker.answers["right"][4]
    asker.tell(Question("pair", (left, other)), asker.answers["answer"][4] == "different")
    found = [answer.given.number for answer in asker.review()]
    doubtful = [asker.given[k].given.number for k in asker._now.doubtful]
    assert found[: len(doubtful)] == doubtful
    assert {5, number, 31} <= set(found)
    # One that says nothing, in front of all others, is none of them.
    unsure = made(left, (other,), "unsure", number=41)
    again = Asker(X, answers=[unsure, *asker.given], random_state=0)
    assert [again.given[k].given.number for k in again._now.doubtful] == doubtful
    assert len(set(found)) == len(found)
    assert len(asker.review(2)) == 2
    # A single class has no model to doubt by.
    assert Asker(X, answers=[answer.with_reply("same") for answer in asker.given[:12]]).review() == []


def test_the_point_that_the_model_is_least_sure_of_is_asked_about_and_classes_keep_their_places(matcher):
    X, y = load_iris(return_X_y=True)
    oracle = matcher(y)
    asker = ask(X, oracle, 20, n_classes=3, random_share=0, repeat_share=0, random_state=0)
    checked = 0
    for _ in range(12):
        question = asker.next()
        state = asker._now
        if question.why == "uncertain":
            p = np.sort(np.exp(state.of_candidates), axis=1)[:, ::-1]
            score = 1 - p[:, 0] + p[:, 1]
            score[list(state.asked)] = -1
            assert question.left == np.argmax(score)
            # An order by likelihood would give the guess of the model away.
            assert [state.classes.label[point] for point in question.choices] == [0, 1, 2]
            checked += 1
        asker.tell(question, oracle(question.left, question.choices))
    assert checked > 3


def test_settings_are_chosen_by_the_evidence(two, three):
    assert three.next_settings.penalty in (0.1, 0.3, 1.0, 3.0)
    assert two.next_settings[:2] == pytest.approx((2 * 4.11914655, 2))
    # Answers that hang on one point cannot be cut into folds.
    star = tuple(made(k, (0,), k % 2 == 1) for k in range(1, 14))
    assert State(two.points, star, 2, first_settings(2)).next_settings != first_settings(2)
    few = tuple(one for one in two.answers if one.sign > 0)
    assert State(two.points, few, 2, first_settings(2)).next_settings == first_settings(2)
    # Chosen anew after 12, 18, 27, ... answers, from these.
    asker = Asker(two.points.X, answers=list(two.answers), random_state=0)
    for n, by in ((8, 0), (12, 0), (13, 12), (18, 12), (19, 18), (27, 18), (28, 27)):
        chosen = first_settings(2)
        if by:
            chosen = State(asker._points, two.answers[:by], 2, chosen).next_settings
        assert asker._state(two.answers[:n]).settings == chosen, n


def test_error_rates_are_those_of_points_that_can_be_held_out(matcher):
    """A point alone in its class is in no fold: who answered about nothing else has the rate of all."""
    X, y = load_iris(return_X_y=True)
    now = ask(X, matcher(y), 24, n_classes=3, repeat_share=0, random_state=0)._now
    answers = [answer._replace(annotator=f"person {k}") for k, answer in enumerate(now.answers)]
    twice = next(answer for answer in answers if len(answer.choices) == 3)
    answers.append(made(twice.left, twice.choices, "none", "somebody who errs"))
    alone = next(point for point in range(len(X)) if point not in now.asked)
    answers += [made(alone, now.founders, "none", who) for who in ("once", "thrice", "thrice", "thrice")]
    state = State(now.points, tuple(answers), None, first_settings(None))
    assert [len(members) for members in state.classes.members.values()][3:] == [1]
    # Nobody without a name answered.
    of_all, *others, once, thrice = state.next_settings.errors
    assert once == thrice == of_all
    assert of_all not in others
    assert len(others) == 25


def test_a_class_that_a_fold_does_not_know_is_never_predicted(three):
    first, _, last = three.classes.members.values()
    for unknown, known in ((last, [0, 1]), ([*first, *last], [1])):
        log_p = three._log_probabilities(three.points.coordinates(np.array(last)), three.fit(unknown))
        assert np.isin(log_p.argmax(axis=1), known).all()
        assert np.exp(log_p[:, known]).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("n_repeats", [0, 3, 10, 40])
def test_repeats_that_agree_bound_the_rate_of_wrong_answers(n_repeats):
    """At the rate e, n repeats all agree with probability (1 - 2 e (1 - e))^n: 2.5% at the end of an interval."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    pairs = [(k, (0,), k % 2 == 0) for k in range(1, 50)]
    answers = [made(*pair) for pair in [*pairs, *pairs[:n_repeats]]]
    state = Asker(X, answers=answers, random_state=0)._now
    once = np.flatnonzero(np.isin(state.known, range(n_repeats + 1, 50)))
    rate = 1 - state.at_most_wrong()[once].max(axis=1)
    assert rate == pytest.approx(rate[0])
    # Few repeats leave more room than people ever need.
    if n_repeats < 7:
        assert rate[0] == pytest.approx(MOST_WRONG)
    else:
        assert (1 - 2 * rate[0] * (1 - rate[0])) ** n_repeats == pytest.approx(UNSEEN)
