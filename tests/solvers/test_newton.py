import numpy as np
import pytest

from sdulearn.solvers.newton import _newton_direction


@pytest.mark.parametrize("values", [(2.0, 5.0, 0.5), (2.0, -5.0, 0.5)], ids=["definite", "indefinite"])
def test_the_direction_descends_along_every_axis_by_its_curvature(values):
    """``V |values|^-1 V'g``: Newton's where the Hessian is definite, and of its length where it is not."""
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    g = rng.normal(size=3)
    H = V @ np.diag(values) @ V.T
    expected = V @ ((V.T @ g) / np.abs(values))
    np.testing.assert_allclose(_newton_direction(H, g, np.ones(3)), expected)
