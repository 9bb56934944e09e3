import numpy as np
import pytest

from sdulearn.losses import get_loss
from sdulearn.solvers import Problem, Solution, solve
from sdulearn.solvers.linalg import Cholesky, weighted_gram


@pytest.mark.parametrize("seed", range(3))
def test_refinement_gains_a_digit_where_columns_are_nearly_equal(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(200, 10))
    A[:, 1:] = A[:, :1] + 1e-4 * A[:, 1:]
    a = np.full(200, 1 / 200)
    problem = Problem(A, a, A.T @ rng.normal(size=200) / 200, np.full(10, 1e-13), get_loss("squared"))
    once = Cholesky(weighted_gram(A, a / 2), problem.ridge).solve(problem.c)
    assert solve(problem, "closed_form", 1e-8, 1).optimality < problem.optimality(Solution(once, 1)) / 10
