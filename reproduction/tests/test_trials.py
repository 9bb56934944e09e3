import numpy as np
import pytest

from reproduction.protocol import Draw
from reproduction.trials import SETS, draw_trial, fingerprint, flip_answers, n_test_points


@pytest.fixture
def draw():
    return Draw("breast_cancer", n_pairs=50, n_unlabeled=100, prior=0.7, flip=0.0, trial=0)


def test_a_trial_is_exact_and_standardised(draw):
    X, y = SETS["breast_cancer"]()
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(X.std(axis=0), 1)
    trial = draw_trial(X, y, draw, 100)
    assert {tuple(row) for row in trial.rows} <= {tuple(row) for row in X}
    assert np.sum(trial.codes > 0) == 2 * 29  # 0.7^2 + 0.3^2 = 58%
    assert np.sum(trial.y_test == 1) == 70
    for k in range(1, 51):
        first, second = trial.labels[np.abs(trial.codes) == k]
        assert (first == second) == (k in trial.codes)


def test_same_draw_same_trial(draw):
    X, y = SETS["breast_cancer"]()
    first, again = draw_trial(X, y, draw, 100), draw_trial(X, y, draw, 100)
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.y_test, again.y_test)


def test_flip_turns_whole_pairs():
    codes = np.array([1, 1, -2, -2, 3, 3, -4, -4, 0, 0])
    flipped = flip_answers(codes, 0.5, seed=0)
    np.testing.assert_array_equal(np.abs(flipped), np.abs(codes))
    assert np.sum(flipped != codes) == 4
    assert all(len(set(flipped[np.abs(codes) == k])) == 1 for k in range(1, 5))
    np.testing.assert_array_equal(flip_answers(codes, 0, seed=0), codes)


def test_test_points_are_what_is_left(draw):
    assert n_test_points(draw, 500, 10_000, 10_000) == 500
    assert n_test_points(draw, 500, 357, 212) == 305
    assert n_test_points(draw, 500, 150, 212) == 0
    X, y = SETS["breast_cancer"]()
    assert len(draw_trial(X, y, draw, 305).y_test) == 305


def test_fingerprint_tells_data_apart():
    X, y = SETS["breast_cancer"]()
    mark = fingerprint(X, y)
    changed = X.copy()
    changed[3, 3] += 1e-9
    assert mark == fingerprint(np.asfortranarray(X), y) != fingerprint(changed, y)
