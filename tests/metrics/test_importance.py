"""Permutation importance from answers: against the same from true classes, and for all kinds of rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sdulearn.errors import InputError
from sdulearn.metrics import pair_importance


class Rule:
    """Class +1 where twice the first column and the second are positive; the third says nothing."""

    def __init__(self):
        self.seen = []

    def decision_function(self, X):
        values = X.toarray() if sparse.issparse(X) else np.asarray(X)
        self.seen.append(values)
        return 2 * values[:, 0] + values[:, 1]


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = np.where(2 * X[:, 0] + X[:, 1] > 0, 1, -1)
    return X, np.repeat(np.arange(1, 2001) * y[::2] * y[1::2], 2), y


def permuted(X, column):
    copy = X.copy()
    copy[:, column] = np.random.default_rng(1).permutation(copy[:, column])
    return copy


def test_equals_the_importance_by_true_classes_in_all_kinds_of_rows(answers):
    X, codes, y = answers
    found = pair_importance(Rule(), X, codes, random_state=0)
    assert found.accuracy == 1
    for column in range(3):
        lost = np.mean(np.sign(Rule().decision_function(permuted(X, column))) != y)
        assert found.mean[column] == pytest.approx(lost, abs=0.03)
    assert found.mean[2] == 0
    np.testing.assert_allclose(found.mean, found.losses.mean(axis=1))
    few = slice(0, 400)
    expected = pair_importance(Rule(), X[few], codes[few], random_state=3)
    for rows in (sparse.csr_matrix(X[few]), pd.DataFrame(X[few], columns=["a", "b", "c"])):
        found = pair_importance(Rule(), rows, codes[few], random_state=3)
        np.testing.assert_allclose(found.losses, expected.losses)


def test_rows_of_one_point_keep_one_value(answers):
    X, _, _ = answers
    rows = X[[0, 1, 1, 2, 3, 0]]
    table = np.array([[1, 0], [1, 1], [-2, 1], [-2, 2], [3, 3], [3, 0]])
    rule = Rule()
    pair_importance(rule, rows, table, n_repeats=3, random_state=0)
    shuffles = [values for seen in rule.seen for values in np.split(seen, len(seen) // len(rows))]
    assert len(shuffles) == 1 + 3 * 3
    # One column alone is shuffled each time.
    for k, values in enumerate(shuffles[1:]):
        others = np.arange(3) != k // 3
        np.testing.assert_array_equal(values[:, others], rows[:, others])
    for values in shuffles:
        np.testing.assert_array_equal(values[1], values[2])
        np.testing.assert_array_equal(values[0], values[5])


def test_the_error_is_what_the_loss_varies_by():
    """Answers that share a point vary together."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 3))
        y = np.where(2 * X[:, 0] + X[:, 1] + rng.normal(size=400) + 1 > 0, 1, -1)
        ends = np.column_stack([np.zeros(200, int), np.arange(1, 201)])
        codes = np.repeat(np.arange(1, 201) * y[ends[:, 0]] * y[ends[:, 1]], 2)
        table = np.column_stack([codes, ends.ravel()])
        found.append(pair_importance(Rule(), X[ends.ravel()], table, n_repeats=1, random_state=seed))
    varies = np.std([one.mean for one in found], axis=0)[:2]
    error = np.mean([one.error for one in found], axis=0)[:2]
    assert (error > 0.6 * varies).all()
    assert (error < 2 * varies).all()


class Thirds:
    """Class by the sector of the first two columns."""

    def decision_function(self, X):
        return X[:, :2] @ np.array([[1, -0.5, -0.5], [0, 0.9, -0.9]])


def test_agreement_is_lost_with_any_number_of_classes(answers):
    X, _, _ = answers
    y = Thirds().decision_function(X).argmax(axis=1)
    codes = np.repeat(np.arange(1, 2001) * np.where(y[::2] == y[1::2], 1, -1), 2)
    found = pair_importance(Thirds(), X, codes, n_repeats=2, scoring="agreement", random_state=0)
    assert found.accuracy == 1
    for column in range(2):
        other = Thirds().decision_function(permuted(X, column)).argmax(axis=1)
        lost = np.mean((other[::2] == other[1::2]) != (y[::2] == y[1::2]))
        assert found.mean[column] == pytest.approx(lost, abs=0.02)
    # Of one shuffle 2,000 independent answers are lost or not.
    once = pair_importance(Thirds(), X, codes, n_repeats=1, random_state=0)
    np.testing.assert_allclose(once.error, np.sqrt(once.mean * (1 - once.mean) / 2000))
    assert found.mean[2] == found.error[2] == 0
    with pytest.raises(InputError, match=r"`scoring='accuracy'` is for two classes.*`scoring='agreement'`"):
        pair_importance(Thirds(), X, codes, scoring="accuracy")
    for wrong in ({"scoring": "f1"}, {"n_repeats": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            pair_importance(Thirds(), X, codes, **wrong)


def test_questions_asked_three_times_are_as_precise_as_once(answers):
    X, codes, _ = (part[:200] for part in answers)
    codes = np.where(np.arange(200) // 2 % 5 == 0, -codes, codes)
    thrice = np.concatenate([codes + np.sign(codes) * 1000 * k for k in range(3)])
    once = pair_importance(Rule(), X, codes, scoring="agreement", random_state=0)
    table = np.column_stack([thrice, np.tile(np.arange(200), 3)])
    again = pair_importance(Rule(), np.tile(X, (3, 1)), table, scoring="agreement", random_state=0)
    assert again.accuracy == pytest.approx(once.accuracy)
    assert (again.error[:2] > 0.8 * once.error[:2]).all()
