"""The score that trees start from: what it sees of rows, and how folds and bounds treat it."""

import numpy as np
import pytest
from scipy import sparse

from sdulearn.boosting.start import MAX_LOGIT, LinearScore, ScoreFit


def plain_score(coef):
    """Columns as they are."""
    coef = np.array(coef, dtype=float)
    return LinearScore(np.zeros(len(coef), dtype=int), np.zeros(len(coef)), np.ones(len(coef)), coef, 0 * coef[0])


def test_no_start_is_certain():
    scores = plain_score([[1]]).decide(np.array([[-50.0], [1.0], [50.0]]))
    np.testing.assert_array_equal(scores, [-MAX_LOGIT, 1, MAX_LOGIT])
    scores = plain_score([[0, 30, 28]]).decide(np.ones((1, 1)))
    np.testing.assert_array_equal(scores, [[30 - MAX_LOGIT, 30, 28]])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_point_has_the_score_of_the_model_without_it_and_a_hub_their_mean(n_classes):
    shape = (4,) if n_classes == 2 else (4, n_classes)
    scores = np.array([np.full(shape, value) for value in (1.0, 10.0, 100.0)])
    chosen = ScoreFit(None, None, None, None, (), scores).held_out(np.array([2, 0, -1, 1]))
    np.testing.assert_array_equal(chosen.reshape(4, -1).T, np.tile([100, 1, 37, 10], (chosen[0].size, 1)))


def test_columns_are_standardised_filled_and_kept_out_where_constant():
    X = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 1.0], [np.nan, 5.0, 1.0]])
    score = LinearScore.constant(X, np.array([0, 0, 2]), np.zeros(1))
    A = score.standardised(X)
    np.testing.assert_allclose(A[:, 0], [-1, 1, 0])
    np.testing.assert_array_equal(A[:, 1], 0)
    np.testing.assert_allclose(A.std(axis=0)[2:], 1)
    # A category that is missing, or was not seen, is in no column.
    for value in (np.nan, 2):
        np.testing.assert_allclose(
            score.standardised(np.array([[2.0, 5.0, value]]))[0, 2:], -score.mean[2:] * score.scale[2:]
        )
    rows = np.array([[0.0, 2.0], [4.0, 0.0]])
    scattered = LinearScore.constant(sparse.csr_matrix(rows), np.zeros(2, dtype=int), np.zeros(1))
    np.testing.assert_allclose(scattered.standardised(sparse.csr_matrix(rows)).toarray(), rows / [2, 1])


def test_contributions_are_changes_of_the_score():
    """Closed form of a linear score; with categories, the change where a column is missing."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    by_class = [[1.0, 0.0, -2.0], [0.5, 3.0, 0.0]]
    expected = (X - X.mean(axis=0))[:, :, None] * np.array(by_class)
    np.testing.assert_allclose(plain_score(by_class).contributions(X), expected)
    X = np.column_stack([X, [0, 1, 2, 0, 1, 2]])
    score = LinearScore(np.array([0, 0, 3]), np.zeros(5), np.ones(5), np.array([[1.0, 2, 3, -1, 5]]).T, np.zeros(1))
    expected = np.column_stack([X[:, :2] * [1, 2], np.tile([3, -1, 5], 2)])
    np.testing.assert_allclose(score.contributions(X)[:, :, 0], expected)
