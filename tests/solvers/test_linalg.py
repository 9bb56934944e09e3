"""Products, factors, line searches and limits that all solvers share."""

import numpy as np
import pytest
from scipy import sparse

from sdulearn.solvers.limits import affordable_rows, check_system_size, piece_rows
from sdulearn.solvers.linalg import Cholesky, gram_buffer, weighted_gram
from sdulearn.solvers.line_search import backtrack, backtrack_many, best_length, rounding_of


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 50, 4)) * (rng.random((2, 50, 4)) < 0.6)
    return A, B, rng.normal(size=50)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_matrix])
def test_weighted_gram(rows, make):
    A, B, signed = rows
    weight = np.abs(signed)
    expected = A.T @ np.diag(weight) @ A
    np.testing.assert_allclose(weighted_gram(make(A), weight), expected, atol=1e-13)
    np.testing.assert_allclose(weighted_gram(make(A), None), A.T @ A, atol=1e-13)
    np.testing.assert_allclose(weighted_gram(make(A), signed, make(B)), A.T @ np.diag(signed) @ B, atol=1e-13)
    buffer = gram_buffer(make(A))
    for _ in range(2):
        np.testing.assert_allclose(weighted_gram(make(A), weight, buffer=buffer), expected, atol=1e-13)


def test_cholesky_of_definite_and_of_singular_systems(rows):
    A, _, b = rows
    M, ridge = A.T @ A, np.array([0.1, 0.2, 0.3, 0.0])
    kept = M.copy()
    np.testing.assert_allclose(Cholesky(M, ridge).solve(b[:4]), np.linalg.solve(M + np.diag(ridge), b[:4]), rtol=1e-10)
    np.testing.assert_array_equal(M, kept)
    empty = np.zeros((2, 2))
    np.testing.assert_array_equal(Cholesky(empty, np.zeros(2)).solve(np.zeros(2)), 0)
    assert np.isfinite(Cholesky(np.ones((2, 2)), np.zeros(2)).solve(np.ones(2))).all()


def test_backtracking_takes_the_first_length_that_descends_enough():
    tried = []

    def value_at(step):
        tried.append(step)
        return (step - 0.1) ** 2

    step = backtrack(value_at, 0.01, -0.2, 0.0, 10)
    assert tried == [1.0, 0.5, 0.25, 0.125]
    assert step == 0.125
    assert backtrack(lambda step: step, 0.0, -1.0, 0.0, 10) == 0.0
    # Where J cannot fall by more than its rounding, a step that does not raise it is good enough.
    assert backtrack(lambda step: 1.0, 1.0, -1e-20, rounding_of(1.0, np.ones(1), np.ones(1)), 1) == 1.0


def test_the_best_of_many_lengths():
    lengths = np.array([1.0, 0.5, 0.25])
    assert best_length(lengths, [np.nan, 0.5, 0.7], 1.0, -0.1, 0.0) == 0.5
    assert best_length(lengths, [3.0, 2.0, 1.5], 1.0, -0.1, 0.0) == 0.0


def test_problems_of_a_batch_backtrack_by_themselves():
    curvature = np.array([1.0, 10.0, 1000.0])

    def value_and_gradient(W, columns):
        return (curvature[columns] * W**2 / 2)[0], curvature[columns] * W

    W = np.ones((1, 3))
    live = np.arange(3)
    f, g = value_and_gradient(W, live)
    step, f_new, g_new = backtrack_many(value_and_gradient, W, live, np.ones((1, 3)), f, g)
    np.testing.assert_array_equal(step, [1.0, 1.0, 1.0])
    step, f_new, g_new = backtrack_many(value_and_gradient, W, live, g, f, g)
    assert (step[:-1] > step[1:]).all()
    expected = value_and_gradient(W - step * g, live)
    np.testing.assert_allclose(f_new, expected[0])
    np.testing.assert_allclose(g_new, expected[1])
    step, f_new, _ = backtrack_many(value_and_gradient, W, live, -g, f, g)
    np.testing.assert_array_equal(step, 0)
    np.testing.assert_array_equal(f_new, f)


def test_limits():
    check_system_size(4000)
    with pytest.raises(ValueError, match=r"`X` has 4,001 features.*4,000 is the limit"):
        check_system_size(4001)
    assert piece_rows(1) * 2 == 1 << 18
    assert piece_rows(4000) == 8 * 4000
    assert affordable_rows(8) * 8 == 1 << 21
    assert affordable_rows(4000) == 40_000
