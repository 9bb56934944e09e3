"""Products, factors and limits that all solvers share."""

import numpy as np
import pytest
from scipy import sparse

from sdulearn.losses import get_loss
from sdulearn.solvers import solve
from sdulearn.solvers.linalg import Cholesky, weighted_gram
from sdulearn.solvers.problem import Problem, Solution


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 4)) * (rng.random((50, 4)) < 0.6), rng.random(50)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_matrix])
def test_weighted_gram(rows, make):
    A, weight = rows
    expected = A.T @ np.diag(weight) @ A
    np.testing.assert_allclose(weighted_gram(make(A), weight), expected, atol=1e-13)
    np.testing.assert_allclose(weighted_gram(make(A), None), A.T @ A, atol=1e-13)
    buffer = None if make is sparse.csr_matrix else np.empty(A.shape)
    for _ in range(2):
        np.testing.assert_allclose(weighted_gram(make(A), weight, buffer=buffer), expected, atol=1e-13)


def test_cholesky_of_definite_and_of_singular_systems(rows):
    A, b = rows
    M, ridge = A.T @ A, np.array([0.1, 0.2, 0.3, 0.0])
    kept = M.copy()
    np.testing.assert_allclose(Cholesky(M, ridge).solve(b[:4]), np.linalg.solve(M + np.diag(ridge), b[:4]), rtol=1e-10)
    np.testing.assert_array_equal(M, kept)
    empty = np.zeros((2, 2))
    np.testing.assert_array_equal(Cholesky(empty, np.zeros(2)).solve(np.zeros(2)), 0)
    assert np.isfinite(Cholesky(np.ones((2, 2)), np.zeros(2)).solve(np.ones(2))).all()


@pytest.mark.parametrize("apart", [1e-4, 1e-6], ids=["normal equations", "QR"])
def test_closed_form_where_columns_are_nearly_equal(apart):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 10))
    A[:, 1:] = A[:, :1] + apart * A[:, 1:]
    a = np.full(200, 1 / 200)
    b = rng.normal(size=200)
    problem = Problem(A, a, A.T @ b / 200, np.full(10, 1e-13), get_loss("squared"))
    found = solve(problem, "closed_form", 1e-8, 1)
    once = Cholesky(weighted_gram(A, a / 2), problem.ridge).solve(problem.c)
    assert found.optimality < problem.certified(Solution(once, 1)).optimality / 10
    # As the least squares problem that it is: no rounding is squared.
    stacked = np.vstack([A / 20, np.sqrt(1e-13) * np.eye(10)])
    expected = np.linalg.lstsq(stacked, np.r_[b / 10, np.zeros(10)], rcond=None)[0]
    np.testing.assert_allclose(A @ found.w, A @ expected, atol=1e-6)
