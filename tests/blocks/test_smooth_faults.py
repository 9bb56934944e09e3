import numpy as np

from sdulearn.blocks.problem import RowRule
from sdulearn.blocks.smooth import newton_sums
from sdulearn.losses import Logistic


def test_sums_of_a_newton_step_are_derivatives_and_careful_ones_are_secants():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    codes = rng.permutation(np.r_[np.ones(20), -np.ones(20), np.zeros(10)]).astype(int)
    rule = RowRule(np.array([0.1, 0.2, 0.3]), True, np.array([0.5, 0.3, 0.2]), Logistic())
    weight = rng.random(50)
    w = rng.normal(size=4)

    def sums(w, careful=False):
        return newton_sums(X, codes, weight, rule, w, careful)

    step = 1e-6
    around = [(sums(w + e), sums(w - e)) for e in step * np.eye(4)]
    slopes = [(up["value"] - down["value"]) / (2 * step) for up, down in around]
    np.testing.assert_allclose(sums(w)["slopes"], slopes, rtol=1e-5, atol=1e-7)
    second = np.array([(up["slopes"] - down["slopes"]) / (2 * step) for up, down in around])
    np.testing.assert_allclose(sums(w)["second"], second, rtol=1e-5, atol=1e-7)
    # A secant's curvature times z is the slope, row by row.
    np.testing.assert_allclose(sums(w, careful=True)["second"] @ w, sums(w)["slopes"], rtol=1e-9)
