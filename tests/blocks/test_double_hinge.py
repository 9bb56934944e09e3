"""The rounded loss and the rows that are gathered, from their definitions."""

import numpy as np
import pytest

from sdulearn.blocks import Sums
from sdulearn.blocks.double_hinge import _merge_equal, _ramp, _rounded
from sdulearn.losses import DoubleHinge

Z = np.linspace(-4, 4, 801)


@pytest.mark.parametrize("delta", [0.01, 0.5, 3.0])
def test_the_rounded_loss_has_the_rounded_slope_and_is_the_loss_away_from_the_kinks(delta):
    step = 1e-6
    slope = (_rounded(Z + step, 1.0, delta) - _rounded(Z - step, 1.0, delta)) / (2 * step)
    np.testing.assert_allclose(slope, _ramp(Z - 1, delta) - _ramp(-Z - 1, delta), atol=1e-4)
    exact = DoubleHinge().even(Z)
    away = (np.abs(Z - 1) > delta) & (np.abs(Z + 1) > delta)
    np.testing.assert_allclose(_rounded(Z, 1.0, delta)[away], exact[away])
    assert (_rounded(Z, 1.0, delta) >= exact - 1e-12).all()


def test_equal_rows_are_merged_with_the_sum_of_their_weights():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (40, 2)).astype(float)
    side = rng.choice([-1.0, 1.0], 40)
    a = rng.random(40)
    found = Sums(rows=[rows[:15], rows[15:]], a=[a[:15], a[15:]], side=[side[:15], side[15:]])
    _merge_equal(found)
    (merged,), (weights,), (sides,) = found["rows"], found["a"], found["side"]
    assert len(np.unique(np.column_stack([merged, sides]), axis=0)) == len(merged) == 8
    for row, weight, its_side in zip(merged, weights, sides, strict=True):
        assert weight == pytest.approx(a[(rows == row).all(axis=1) & (side == its_side)].sum())
