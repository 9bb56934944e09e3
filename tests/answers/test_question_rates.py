"""Error rates with any number of classes."""

from itertools import product

import numpy as np
import pytest

from sdulearn import PairLogisticRegression, stack_pairs
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.question_rates import (
    RepeatedQuestions,
    annotators_in_contradictions,
    estimate_question_rates,
)


def two_each(rng, n_questions, same_share, rates):
    """Questions that two of the annotators answer, the truth of some of them "same"."""
    who = np.array([rng.choice(len(rates), 2, replace=False) for _ in range(n_questions)]).ravel()
    truth = np.repeat(rng.random(n_questions) < same_share, 2)
    same = truth ^ (rng.random(2 * n_questions) < np.array(rates)[who])
    ends = np.repeat(np.arange(2 * n_questions).reshape(-1, 2), 2, axis=0)
    return AnswerGraph.from_answers(ends, same, annotators=who + 1)


@pytest.mark.parametrize(("same_share", "rates"), [(0.2, (0.05, 0.2)), (0.1, (0.1, 0.1)), (0.25, (0.02, 0.1, 0.3))])
def test_intervals_cover_the_rates_of_annotators_who_share_questions(same_share, rates):
    rng = np.random.default_rng(3)
    n_draws = 20
    covered = 0
    found = []
    for _ in range(n_draws):
        estimates = estimate_question_rates(two_each(rng, 150, same_share, rates), 5)
        covered += sum(one.low <= rate <= one.high for one, rate in zip(estimates, rates, strict=True))
        found.append([one.rate for one in estimates])
    # 95% wanted; below 85% by chance once in a hundred times.
    assert covered >= 0.85 * n_draws * len(rates)
    # People with few answers are drawn to the others.
    np.testing.assert_allclose(np.mean(found, axis=0), rates, atol=0.05)


def test_annotators_are_not_told_apart_where_same_and_different_are_equally_frequent():
    rng = np.random.default_rng(0)
    one, other = estimate_question_rates(two_each(rng, 400, 0.5, (0.0, 0.2)), 3)
    # All of the errors may be the first's, or all the other's.
    for rate in (one, other):
        assert rate.low < 0.03
        assert rate.high > 0.17


def test_the_likelihood_of_all_answers_adds_up_to_one():
    questions = RepeatedQuestions(
        same=np.array([[a, b, c] for a, b, c in product((0.0, 1.0), repeat=3)]),
        different=np.array([[1 - a, 1 - b, 1 - c] for a, b, c in product((0.0, 1.0), repeat=3)]),
        times=np.ones(8),
        truth=np.full(8, np.nan),
    )
    one_by_one = [
        RepeatedQuestions(questions.same[[k]], questions.different[[k]], np.ones(1), questions.truth[[k]]).values(
            np.array([[0.1, 0.2, 0.3]]), np.array([0.35])
        )[0]
        for k in range(8)
    ]
    assert np.exp(one_by_one).sum() == pytest.approx(1)
    # All three "same", by hand.
    assert np.exp(one_by_one[-1]) == pytest.approx(0.35 * 0.9 * 0.8 * 0.7 + 0.65 * 0.1 * 0.2 * 0.3)


def test_answers_about_labelled_points_are_right_or_wrong():
    labels = np.tile([1, 1, 2, 3], 25)
    ends = np.arange(100).reshape(-1, 2)
    truth = labels[ends[:, 0]] == labels[ends[:, 1]]
    same = truth.copy()
    same[:10] = ~same[:10]
    graph = AnswerGraph.from_answers(ends, same, annotators=np.ones(50, dtype=int), labels=labels)
    (rate,) = estimate_question_rates(graph, 3)
    assert rate.identified
    assert 0.1 < rate.rate < 0.2
    assert rate.low < 0.2 < rate.high


def test_one_who_shares_no_question_is_taken_for_right():
    ends = np.array([[0, 1], [0, 1], [2, 3], [2, 3], [4, 5]])
    graph = AnswerGraph.from_answers(ends, [True, False, True, True, False], annotators=[1, 1, 1, 1, 2])
    first, second = estimate_question_rates(graph, 3)
    assert 0 < first.rate < 0.1
    assert first.low > 0
    assert (second.rate, second.low, second.high, second.identified) == (0.0, 0.0, 0.5, False)


@pytest.mark.parametrize(
    ("ends", "same", "labels", "involved"),
    [
        ([[0, 1], [1, 2], [0, 2]], [True, True, False], None, [True, True]),
        ([[0, 1], [1, 2], [0, 2]], [False, False, False], None, [False, False]),
        ([[0, 1], [2, 3], [4, 5]], [True, True, False], [1, 2, 0, 0, 3, 1], [True, False]),
        ([[0, 1], [2, 3], [4, 5]], [True, True, False], [1, 0, 0, 0, 3, 3], [True, False]),
    ],
)
def test_who_contradicts(ends, same, labels, involved):
    graph = AnswerGraph.from_answers(ends, same, annotators=[1, 2, 1], labels=labels, n_points=6)
    annotator = graph.annotators - 1
    found = annotators_in_contradictions(graph, annotator, np.ones(3, dtype=bool))
    assert found.tolist() == involved


def test_triangles_that_cannot_be_give_a_rate_and_no_exception():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = np.eye(3)[y] * 4 + rng.normal(size=(150, 3))
    corners = rng.permutation(150).reshape(-1, 3)
    ends = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.random(150) < 0.1)
    rows, table = stack_pairs(X, ends, same)
    model = PairLogisticRegression(1e-2, n_classes=3).fit(rows, table)
    (rate,) = model.error_rates_
    assert rate.identified
    assert rate.low < 0.1 < rate.high
    assert abs(rate.rate - 0.1) < 0.06
    model.orient(X, y + 1)
    assert np.mean(model.predict(X) == y + 1) > 0.9
