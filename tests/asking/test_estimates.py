"""Honest while questions are chosen: accuracy, shares and advice."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegressionCV
from sdulearn.asking import Asker, ask
from sdulearn.asking.estimates import NEXT_ANSWERS, WIDE_INTERVAL, WORTHWHILE_GAIN, random_sample
from sdulearn.prior import clopper_pearson


def overlapping(n, seed):
    """Two classes that no classifier tells apart in more than about 80% of all cases, 65% of them in one."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.65
    X = rng.normal(size=(n, 3))
    X[:, 0] += np.where(y, 0.9, -0.9)
    return X, y


def oracle(y):
    return lambda a, b: y[a] == y[b]


def test_the_sample_is_a_beginning_of_the_random_order():
    """Also points that were chosen before their turn came belong to it."""
    X, y = overlapping(80, 2)
    asker = ask(X, oracle(y), 30, random_share=0.4, random_state=0)
    state = asker._now
    sample = set(state.points.order[: state.n_sampled].tolist())
    given = asker.answers
    asked = {left for left, kind in zip(given["left"], given["why"], strict=True) if kind == "random"}
    assert asked < sample
    known = state.known[random_sample(state)]
    assert set(known.tolist()) == sample
    # Shares, their intervals and the order of the classes are those of the sample.
    counts = sorted((int(np.sum(y[known] == side)) for side in (True, False)), reverse=True)
    for one, n in zip(asker.classes(0.9), counts, strict=True):
        assert one.share == n / sum(counts)
        assert (one.low, one.high) == clopper_pearson(n, sum(counts) - n, 0.9)
        assert one.n_points == np.sum(y[state.known] == y[one.examples[0]])
    largest = asker.classes()[0]
    prior = asker.model().prior_
    assert (prior.value, prior.low, prior.high) == (largest.share, largest.low, largest.high)
    assert prior.identified == (largest.low > 0.5)
    found = asker.accuracy()
    assert found.majority == pytest.approx(counts[0] / sum(counts), abs=0.1)
    assert (found.n_answers, found.confidence, found.basis) == (sum(counts), 0.95, "random questions")
    # Each is judged by a model without it.
    held_out = state.held_out.argmax(axis=1) == state.known_class
    assert found.agreement == np.mean(held_out[random_sample(state)])
    assert found.low < found.value < found.high


def test_wrong_answers_do_not_lower_the_accuracy_of_the_model():
    """The model agrees with fewer answers than it is right about."""
    X, y = overlapping(200, 1)
    answers = dict(ask(X, oracle(y), 30, random_share=1.0, repeat_share=0.3, random_state=0).answers)
    wrong = np.random.default_rng(0).random(30) < 0.12
    answers["answer"] = [(word == "same") != flip for word, flip in zip(answers["answer"], wrong, strict=True)]
    asker = Asker(X, answers=answers, random_state=0)
    found = asker.accuracy()
    assert 0.03 < asker.error_rate() < 0.25
    assert found.value > found.agreement
    right = np.mean((asker.model().predict(X) > 0) == y)
    assert found.low <= max(right, 1 - right) <= found.high


def test_advice_falls_as_answers_come():
    X, y = overlapping(400, 2)
    X[:, 0] += np.where(y, 2, -2)
    asker = Asker(X, random_state=0)
    assert asker.advice().worth_going_on
    few = ask(X, oracle(y), 5, random_share=0, random_state=0).model().prior_
    assert (few.value, few.low, few.high, few.identified) == (0.5, 0.0, 1.0, False)
    gains = {}
    bounded = []
    for n in range(1, 31):
        question = asker.next()
        asker.tell(question, bool(y[question.left] == y[question.right]))
        if n >= 6:
            gains[n] = asker.advice()
            # No more can be gained than the error that is left.
            left = 1 - np.exp(asker._now.of_candidates).max(axis=1).mean()
            extrapolated = gains[n].last_gain * NEXT_ANSWERS / (n + NEXT_ANSWERS)
            assert gains[n].expected_gain == pytest.approx(min(extrapolated, left))
            bounded.append(left < extrapolated)
    assert any(bounded)
    assert gains[6].expected_gain > gains[30].expected_gain >= 0
    # There is hardly anything to gain, but 30 answers do not tell the accuracy.
    assert gains[30].expected_gain < WORTHWHILE_GAIN
    assert gains[30].is_wide
    assert gains[30].worth_going_on
    more = Asker(X, random_state=0, answers=asker.answers, random_share=1.0)
    for _ in range(40):
        question = more.next()
        more.tell(question, bool(y[question.left] == y[question.right]))
    found = more.accuracy()
    assert found.high - found.low <= WIDE_INTERVAL
    assert not more.advice().is_wide
    assert not more.advice().worth_going_on
    assert (gains[30].n_answers, gains[30].n_next) == (30, NEXT_ANSWERS)
    half = Asker(X, random_state=0, answers={name: values[:15] for name, values in asker.answers.items()})
    p = np.exp(asker._now.of_candidates)
    before = half._now.of_candidates.argmax(axis=1)
    # The model of then is fitted anew with settings of then.
    assert gains[30].last_gain == pytest.approx(np.mean(p.max(axis=1) - p[np.arange(len(p)), before]), rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("repeat_share", [0.0, 0.1])
def test_answers_that_nothing_contradicts_may_be_wrong(n_classes, repeat_share):
    """The accuracy is at least the agreement with the answers; how much more, only repeats tell."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 400)
    X = rng.normal(size=(400, 3)) + 6 * np.eye(3)[y]
    is_wrong = rng.random(400) < (0.2 if repeat_share == 0 else 0)

    def oracle(left, others):
        if n_classes == 2:
            return bool((y[left] == y[others]) != is_wrong[left])
        like = [k for k, point in enumerate(others) if y[point] == y[left]]
        right = like[0] if like else "none"
        return (right + 1) % len(others) if is_wrong[left] and right != "none" and len(others) > 1 else right

    asker = ask(X, oracle, 80, n_classes=n_classes, repeat_share=repeat_share, random_share=0.5, random_state=0)
    assert asker.error_rate() == 0
    found = asker.accuracy()
    assert found.high == 1
    assert (found.low > 0.8) == (repeat_share > 0)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
def test_random_pairs_have_a_model_and_an_accuracy_too():
    X, y = overlapping(300, 3)
    X = 4 * X + 7
    frame = pd.DataFrame(X).add_prefix("x")
    asker = ask(frame, oracle(y), 60, design="random", random_state=0)
    model = asker.model()
    assert model.feature_names_in_.tolist() == list(frame)
    # Coefficients of standardised columns, for the columns as given.
    direct = make_pipeline(StandardScaler(), PairLogisticRegressionCV()).fit(*asker.stack())
    np.testing.assert_allclose(model.decision_function(frame), direct.decision_function(frame), atol=1e-8)
    right = np.mean((model.predict(frame) > 0) == y)
    found = asker.accuracy()
    assert found.low <= max(right, 1 - right) <= found.high
    assert found.n_answers == asker.answers["why"].count("random") < 60
    # Sparse rows are not centred.
    thin = ask(sparse.csr_matrix(X), oracle(y), 60, design="random", random_state=0).model()
    np.testing.assert_allclose(thin.decision_function(X), model.decision_function(frame), rtol=0.05, atol=0.05)
