"""The rules by which rows are put on a kink and taken off it, one row for each case."""

import numpy as np
import pytest

from sdulearn.losses import DoubleHinge
from sdulearn.solvers import Problem, Solution, crossover

# On a kink?, its side, share of the slope, z; then what the rules say of it.
CASES = [
    # The slope lies within its limits: the row stays.
    ((True, 1, 0.5, 1.0), (True, 1)),
    ((True, -1, 0.5, -1.0), (True, -1)),
    ((True, 1, 0.0, 1.0), (True, 1)),
    ((True, -1, 1.0, -1.0), (True, -1)),
    # Below them the row is on the flat part, above them outside.
    ((True, 1, -0.5, 1.0), (False, 0)),
    ((True, -1, -0.5, -1.0), (False, 0)),
    ((True, 1, 1.5, 1.0), (False, 1)),
    ((True, -1, 1.5, -1.0), (False, -1)),
    # Rows of the flat part that left it are put on the kink that they crossed.
    ((False, 0, 0.0, 0.5), (False, 0)),
    ((False, 0, 0.0, -0.5), (False, 0)),
    ((False, 0, 0.0, 1.5), (True, 1)),
    ((False, 0, 0.0, -1.5), (True, -1)),
    # Rows from outside that came in are put on the kink that they crossed first.
    ((False, 1, 1.0, 1.5), (False, 1)),
    ((False, -1, 1.0, -1.5), (False, -1)),
    ((False, 1, 1.0, 0.5), (True, 1)),
    ((False, -1, 1.0, -0.5), (True, -1)),
    ((False, 1, 1.0, -1.5), (True, 1)),
    ((False, -1, 1.0, 1.5), (True, -1)),
    # On the kink to the last digit: no reason to change.
    ((False, 0, 0.0, 1.0), (False, 0)),
    ((False, 1, 1.0, 1.0), (False, 1)),
]


@pytest.mark.parametrize("weight", [1.0, 0.01])
@pytest.mark.parametrize(("before", "after"), CASES)
def test_where_a_row_belongs(before, after, weight):
    kinked, side, share, z = before
    a = np.array([weight])
    # One column, so that z is w.
    problem = Problem(np.eye(1), a, np.zeros(1), np.ones(1), DoubleHinge())
    exact = Solution(np.array([z]), 1, a / 2 * side * share)
    now_kinked, now_side = crossover._revise(problem, exact, np.array([kinked]), np.array([float(side)]))
    assert bool(now_kinked[0]) == after[0]
    assert now_side[0] == after[1]
