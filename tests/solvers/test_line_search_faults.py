"""Armijo's rule at its limit: a step is taken where the value falls by a ten-thousandth of what the slope promises."""

import numpy as np
import pytest

from sdulearn.solvers.line_search import backtrack, backtrack_many, best_length

SLOPE = -2.0
# A value that is linear in the step, by its share of the promised decrease.
SHARES = [(-1.0, False), (-0.5e-4, False), (0.0, False), (0.9e-4, False), (1.1e-4, True), (1.0, True)]


@pytest.mark.parametrize(("share", "taken"), SHARES)
def test_how_much_decrease_is_enough(share, taken):
    def value_at(step):
        return 3.0 + share * step * SLOPE

    assert backtrack(value_at, 3.0, SLOPE, 0.0, 30) == float(taken)
    lengths = np.array([0.5, 0.25])
    assert (best_length(lengths, [value_at(t) for t in lengths], 3.0, SLOPE, 0.0) > 0) == taken

    def batch(W, columns):
        # Along D = 1 from 0 the position is minus the step.
        return value_at(-W[0]), np.full_like(W, -share * SLOPE)

    step, f, _ = backtrack_many(
        batch, np.zeros((1, 1)), np.arange(1), np.ones((1, 1)), np.array([3.0]), np.full((1, 1), -SLOPE)
    )
    assert step[0] == float(taken)
    assert f[0] == (value_at(1.0) if taken else 3.0)
