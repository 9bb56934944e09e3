"""Honest while questions are chosen: accuracy, shares and advice."""

import numpy as np
import pytest
from scipy.stats import binom

from sdulearn.asking import Asker, ask
from sdulearn.asking.estimates import NEXT_ANSWERS, random_sample


def overlapping(n, seed):
    """Two classes that no classifier tells apart in more than about 80% of all cases, 65% of them in one."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.65
    X = rng.normal(size=(n, 3))
    X[:, 0] += np.where(y, 0.9, -0.9)
    return X, y


def oracle(y):
    return lambda a, b: y[a] == y[b]


@pytest.fixture(scope="module")
def draws():
    """True accuracy on new points, the estimate, class shares and the accuracy on chosen points."""
    found = []
    X_new, y_new = overlapping(4000, 99)
    for seed in range(10):
        X, y = overlapping(300, seed)
        asker = ask(X, oracle(y), 36, random_share=0.5, repeat_share=0, random_state=seed)
        right = np.mean((asker.model().predict(X_new) > 0) == y_new)
        state = asker._now
        random = random_sample(state)
        chosen = np.setdiff1d(np.arange(len(state.known)), random)
        agree = state.held_out.argmax(axis=1) == state.column
        found.append((max(right, 1 - right), asker.accuracy(), asker.classes(), np.mean(agree[chosen])))
    return found


def test_the_accuracy_is_that_of_all_points(draws):
    true = np.mean([right for right, *_ in draws])
    estimated = np.mean([estimate.value for _, estimate, *_ in draws])
    assert estimated == pytest.approx(true, abs=0.04)


def test_the_interval_covers(draws):
    covered = sum(estimate.low <= right <= estimate.high for right, estimate, *_ in draws)
    # 95% of the draws; fewer than this come once in two hundred times.
    assert covered >= binom.ppf(0.005, len(draws), 0.95)


def test_chosen_points_would_have_told_another_accuracy(draws):
    """What the random share is for: uncertain points are hard."""
    true = np.mean([right for right, *_ in draws])
    assert np.mean([chosen for *_, chosen in draws]) < true - 0.04


def test_class_shares_are_those_of_all_points(draws):
    shares = [max(one.share for one in classes) for _, _, classes, _ in draws]
    assert np.mean(shares) == pytest.approx(0.65, abs=0.06)
    largest = [classes[0] for _, _, classes, _ in draws]
    assert np.mean([one.low <= 0.65 <= one.high for one in largest]) >= 0.8


def test_the_sample_is_a_beginning_of_the_random_order():
    """Also points that were chosen before their turn came belong to it."""
    X, y = overlapping(80, 0)
    asker = ask(X, oracle(y), 50, random_share=0.4, random_state=0)
    state = asker._now
    sample = set(state.points.order[: state.n_sampled].tolist())
    asked = {left for left, kind in zip(asker.answers["left"], asker.answers["kind"], strict=True) if kind == "random"}
    assert asked < sample
    assert set(state.known[random_sample(state)].tolist()) == sample


def test_wrong_answers_do_not_lower_the_accuracy_of_the_model():
    """The model agrees with fewer answers than it is right about."""
    X, y = overlapping(400, 1)
    wrong = np.random.default_rng(0).random(60) < 0.12
    asker = Asker(X, random_share=1.0, repeat_share=0.3, random_state=0)
    for flip in wrong:
        question = asker.next()
        asker.tell(question, bool((y[question.left] == y[question.right]) != flip))
    found = asker.accuracy()
    e = asker.error_rate()
    assert 0.03 < e < 0.2
    assert found.value > found.agreement
    right = np.mean((asker.model().predict(X) > 0) == y)
    assert found.low <= max(right, 1 - right) <= found.high


def test_points_that_the_model_learned_from_do_not_speak_for_it():
    """Of forty columns of noise it knows the answers by heart, and nothing else."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 40))
    y = rng.random(200) < 0.5
    asker = ask(X, oracle(y), 60, random_share=1.0, repeat_share=0, random_state=0)
    state = asker._now
    by_heart = state.log_probabilities(state.known).argmax(axis=1) == state.column
    assert by_heart.mean() > 0.7
    assert asker.accuracy().agreement < 0.6
    assert np.mean(state.held_out.argmax(axis=1) == state.column) < 0.6


def test_advice_falls_as_answers_come():
    X, y = overlapping(400, 2)
    X[:, 0] += np.where(y, 2, -2)
    asker = Asker(X, random_state=0)
    gains = {}
    for n in range(1, 51):
        question = asker.next()
        asker.tell(question, bool(y[question.left] == y[question.right]))
        if n in (6, 50):
            gains[n] = asker.advice()
    assert gains[6].expected_gain > gains[50].expected_gain >= 0
    assert not gains[50].worth_going_on
    assert gains[50].n_answers == 50
    assert gains[50].expected_gain == pytest.approx(gains[50].last_gain * NEXT_ANSWERS / (50 + NEXT_ANSWERS))
    half = Asker(X, random_state=0, answers={name: values[:25] for name, values in asker.answers.items()})
    p = np.exp(asker._now.of_candidates)
    before = half._now.of_candidates.argmax(axis=1)
    gain = np.mean(p.max(axis=1) - p[np.arange(len(p)), before])
    # The model of then is fitted anew with settings of then.
    assert gains[50].last_gain == pytest.approx(gain, rel=1e-6)


def test_at_the_start_it_is_worth_going_on():
    X, _ = overlapping(50, 2)
    assert Asker(X).advice().worth_going_on


def test_random_pairs_have_an_accuracy_too():
    X, y = overlapping(400, 3)
    asker = ask(X, oracle(y), 150, design="random", random_state=0)
    right = np.mean((asker.model().predict(X) > 0) == y)
    found = asker.accuracy()
    assert found.low <= max(right, 1 - right) <= found.high


def test_wrong_answers_about_three_classes_do_not_lower_the_accuracy_of_the_model():
    """Classes far apart, which the model has right; each point is asked about up to three times, one in five wrongly.

    Few then agree with the class they were given, and the formula of two classes does not make all of them right.
    """
    rng = np.random.default_rng(0)
    y = np.r_[0, 1, 2, rng.integers(0, 3, 117)]
    X = 20 * np.eye(3)[y] + rng.normal(size=(120, 3))
    asked = [("left", "right", "answer", "kind")]
    for point in range(3, 120):
        for example in rng.permutation(3):
            same = bool(y[point] == y[example]) != (rng.random() < 0.2)
            asked.append((point, int(example), same, "random"))
            if same:
                break
    first = [(0, 1), (0, 2), (1, 2)]
    asked[1:1] = [(a, b, False, "explore") for a, b in first]
    again = [row for row in asked[4:] if rng.random() < 0.3]
    asked += [(a, b, bool(y[a] == y[b]) != (rng.random() < 0.2), "repeat") for a, b, *_ in again]
    table = dict(zip(asked[0], map(list, zip(*asked[1:], strict=True)), strict=True))
    asker = Asker(X, n_classes=3, answers=table, random_state=0)
    found = asker.accuracy()
    assert found.value > 0.93
    of_two_classes = (found.agreement - asker.error_rate()) / (1 - 2 * asker.error_rate())
    assert of_two_classes < 0.88
