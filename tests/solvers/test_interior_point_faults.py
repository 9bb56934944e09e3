import numpy as np
import pytest

from sdulearn.losses import get_loss
from sdulearn.solvers import Problem
from sdulearn.solvers.interior_point import _best_multiple


@pytest.mark.parametrize("seed", range(20))
def test_no_other_multiple_of_a_start_is_better(seed):
    """The objective is convex along the ray, so two neighbours that are no lower prove it."""
    rng = np.random.default_rng(seed)
    n, d = 30, 3
    A = rng.normal(size=(n, d)) * rng.choice([0.1, 1, 10], n)[:, None]
    a = rng.random(n) / n
    w = rng.normal(size=d)
    c = A.T @ (a * np.sign(A @ w) * rng.random(n) / 2) + 0.01 * rng.normal(size=d)
    problem = Problem(A, a, c, np.full(d, 10.0 ** rng.integers(-4, 1)), get_loss("double_hinge"))
    t = _best_multiple(problem, w)
    lowest = problem.objective(t * w)
    for factor in (1 - 1e-4, 1 + 1e-4):
        assert problem.objective(factor * t * w) >= lowest - 1e-14
    assert problem.objective(0 * w) >= lowest - 1e-14
    assert t > 0 or c @ w <= 0
