import numpy as np

from sdulearn.losses import Logistic
from sdulearn.solvers.smooth import curvatures


def test_the_secant_parabola_touches_the_loss_and_lies_above_it():
    loss = Logistic()
    z = np.array([-50.0, -3, -0.5, 1e-5, 0.2, 1, 7, 100])
    slope = loss.even_grad(z)
    newton, secant = curvatures(loss, z, slope)
    np.testing.assert_allclose(secant * z, slope, rtol=1e-9)
    y = np.linspace(-120, 120, 4001)
    for at, curvature in zip(z, secant, strict=True):
        parabola = loss.even(at) + curvature / 2 * (y**2 - at**2)
        assert (parabola >= loss.even(y) - 1e-12).all()
    step = 1e-4
    differences = (loss.even_grad(z + step) - loss.even_grad(z - step)) / (2 * step)
    near = np.abs(z) < 10
    np.testing.assert_allclose(newton[near], differences[near], rtol=1e-6)
    # Far out, where there is no curvature left, a little of the secant's keeps a system solvable.
    assert (newton > 0).all()
