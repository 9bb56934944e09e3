import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdulearn import SDUClassifier
from sdulearn.losses import TRAINING_LOSSES, get_loss, get_training_loss

margins = st.floats(-50, 50)
losses = pytest.mark.parametrize("loss", TRAINING_LOSSES.values(), ids=list(TRAINING_LOSSES))


@losses
@given(z=margins)
def test_even_and_odd_part(loss, z):
    z = np.array([z])
    np.testing.assert_allclose(loss.value(z, 1) - loss.value(z, -1), -z, atol=1e-11)
    np.testing.assert_allclose(loss.even(z), (loss.value(z, 1) + loss.value(z, -1)) / 2, rtol=1e-12)
    np.testing.assert_allclose(loss.even(-z), loss.even(z), rtol=1e-14)
    assert (loss.value(z, 1) >= 0).all()


@losses
@given(z=margins)
def test_derivatives(loss, z):
    z, step = np.array([z]), 1e-6
    if hasattr(loss, "flat") and abs(abs(z[0]) - loss.flat) < 1e-3:
        return
    slope = (loss.even(z + step) - loss.even(z - step)) / (2 * step)
    np.testing.assert_allclose(loss.even_grad(z), slope, atol=1e-6)
    if hasattr(loss, "even_hess"):
        bend = (loss.even_grad(z + step) - loss.even_grad(z - step)) / (2 * step)
        np.testing.assert_allclose(loss.even_hess(z), bend, atol=1e-6)


def test_double_hinge_conjugate_is_the_supremum():
    loss, z = get_loss("double_hinge"), np.linspace(-20, 20, 40001)
    for s in (-0.5, -0.3, 0.0, 0.1, 0.5):
        assert loss.even_conjugate(np.array(s)) == pytest.approx((s * z - loss.even(z)).max(), abs=1e-9)
    assert loss.even_conjugate(np.array(0.51)) == np.inf


@losses
def test_no_overflow_far_out(loss):
    z = np.array([-1e6, 1e6])
    for part in (loss.even(z), loss.even_grad(z), loss.value(z, 1)):
        assert np.isfinite(part).all()


def test_probability_minimises_the_expected_loss():
    loss = get_loss("logistic")
    z = np.linspace(-3, 3, 6001)
    for p in (0.2, 0.5, 0.9):
        best = z[np.argmin(p * loss.value(z, 1) + (1 - p) * loss.value(z, -1))]
        assert loss.probability(np.array(best)) == pytest.approx(p, abs=1e-3)


class Hinge:
    """max(0, 1 - t z): not linear-odd."""

    def value(self, z, t):
        return np.maximum(0, 1 - t * z)


class SmoothedHinge:
    """Linear-odd with a Huber-like even part: a user's own loss."""

    def value(self, z, t):
        return self.even(z) - t * z / 2

    def even(self, z):
        return np.where(np.abs(z) < 1, (z**2 + 1) / 4, np.abs(z) / 2)

    def even_grad(self, z):
        return np.clip(z, -1, 1) / 2


class Curved(SmoothedHinge):
    def even_hess(self, z):
        return (np.abs(z) < 1) / 2


def test_losses_of_ones_own(waveform):
    rows, codes = waveform
    by_lbfgs = SDUClassifier(loss=SmoothedHinge(), tol=1e-6).fit(rows, codes)
    by_newton = SDUClassifier(loss=Curved()).fit(rows, codes)
    np.testing.assert_allclose(by_lbfgs.coef_, by_newton.coef_, atol=1e-5)
    with pytest.raises(ValueError, match="`solver='newton'` needs a loss with 'even_hess'"):
        SDUClassifier(loss=SmoothedHinge(), solver="newton").fit(rows, codes)


class WithoutEven:
    def value(self, z, t):
        return (t * z - 1) ** 2 / 4


class Contradictory(SmoothedHinge):
    def even(self, z):
        return np.abs(z)

    def value(self, z, t):
        return SmoothedHinge.even(self, z) - t * z / 2


class Concave(SmoothedHinge):
    def even(self, z):
        return 5 - z**2 / 8


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Hinge(), "not linear-odd.*non-convex.*validation with sdulearn.metrics.pair_risk"),
        ("zero_one", "zero_one is not linear-odd"),
        (WithoutEven(), "needs a method even"),
        (Contradictory(), "contradicts itself"),
        (Concave(), "not convex in z"),
        ("hinge", "Unknown `loss='hinge'`"),
        (object(), "needs a method value"),
    ],
)
def test_unfit_losses_are_refused_with_the_reason(loss, message):
    with pytest.raises(ValueError, match=message):
        get_training_loss(loss)
