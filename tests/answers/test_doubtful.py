"""Doubtful answers: a planted wrong one is found, and the numbers are those of Bayes' rule."""

import numpy as np
import pytest

from sdulearn import PairLogisticRegression, stack_pairs
from sdulearn.answers import ErrorRate, ErrorRates, doubtful_answers
from sdulearn.errors import InputError


class Fixed:
    """A model with given probabilities."""

    def __init__(self, positive, rate, identified=True):
        self.positive = np.asarray(positive, dtype=float)
        self.error_rates_ = ErrorRates((ErrorRate(0, rate, rate, rate, identified, 100),))

    def predict_proba(self, X):
        return np.column_stack([1 - self.positive, self.positive])


def test_bayes_rule_for_a_loose_pair():
    """P(wrong | "same") = e P(different) / (e P(different) + (1 - e) P(same))."""
    found = doubtful_answers(Fixed([0.9, 0.8], 0.1), np.zeros((2, 1)), [1, 1])
    different = 0.9 * 0.2 + 0.1 * 0.8
    assert found.wrong[0] == pytest.approx(0.1 * different / (0.1 * different + 0.9 * (1 - different)))


def test_a_planted_wrong_answer_comes_first():
    rng = np.random.default_rng(0)
    classes = np.tile([1, -1], 60)
    X = classes[:, None] * 1.5 + rng.normal(size=(120, 2))
    ends = np.array([rng.choice(120, 2, replace=False) for _ in range(200)])
    same = classes[ends[:, 0]] == classes[ends[:, 1]]
    same[17] = ~same[17]
    rows, y = stack_pairs(X, ends, same)
    model = PairLogisticRegression(prior=0.6).fit(rows, y)
    found = doubtful_answers(model, rows, y)
    assert abs(found.code[0]) == 18
    assert found.wrong[0] > 0.5 > found.wrong[1]
    assert (np.diff(found.wrong) <= 0).all()
    np.testing.assert_array_equal(y[found.rows[:, 0], 0], found.code)
    np.testing.assert_array_equal(y[found.rows[:, 1], 0], found.code)


def test_a_model_without_a_rate_doubts_all_the_same():
    model = Fixed([0.99, 0.01, 0.9, 0.9], 0.0, identified=False)
    found = doubtful_answers(model, np.zeros((4, 1)), [1, 1, 2, 2])
    assert found.code.tolist() == [1, 2]
    assert found.wrong[0] > 0.5


def test_rows_and_y_must_fit():
    with pytest.raises(InputError, match="`X` has 2 rows"):
        doubtful_answers(Fixed([0.9, 0.8], 0.1), np.zeros((2, 1)), [1, 1, 0])
