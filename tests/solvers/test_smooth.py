"""L-BFGS and Newton's method on problems whose solution is known, and Armijo's rule at its limit."""

import numpy as np
from scipy.optimize import minimize, rosen, rosen_der

from sdulearn.solvers.smooth import gradient_norm, lbfgs_many


def quadratics(count, d=6, seed=0):
    """Convex quadratics with a wide spectrum: Hessians (count, d, d) and minimisers (d, count)."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(count, d, d)) * np.logspace(0, 2, d)
    return factors @ factors.transpose(0, 2, 1) + np.eye(d), rng.normal(size=(d, count))


def value_and_gradient_of(H, best):
    def value_and_gradient(W, columns):
        R = W - best[:, columns]
        G = np.einsum("kij,jk->ik", H[columns], R)
        return np.einsum("ik,ik->k", R, G) / 2, G

    return value_and_gradient


def test_many_problems_are_solved_as_one_by_one():
    H, best = quadratics(5)
    f = value_and_gradient_of(H, best)
    scale = 1 / np.einsum("kii->ik", H)
    W, values = lbfgs_many(f, np.zeros_like(best), scale, 1e-8, 500)
    _, gradients = f(W, np.arange(5))
    assert (gradient_norm(gradients, scale) <= 1e-8).all()
    np.testing.assert_allclose(values, 0, atol=1e-14)
    np.testing.assert_array_equal(lbfgs_many(f, best + 1, scale, 1e-8, 0)[0], best + 1)
    for k in range(5):
        alone, _ = lbfgs_many(lambda V, _, k=k: f(V, np.array([k])), np.zeros((6, 1)), scale[:, [k]], 1e-8, 500)
        np.testing.assert_allclose(alone[:, 0], W[:, k], atol=1e-6)


def test_one_problem_takes_about_as_many_evaluations_as_scipy():
    start = np.zeros(10)
    calls = []

    def batch(W, _):
        calls.append(W)
        return np.array([rosen(W[:, 0])]), rosen_der(W[:, 0])[:, None]

    W, _ = lbfgs_many(batch, start[:, None], np.full((10, 1), 1 / 200), 1e-9, 1000)
    np.testing.assert_allclose(W, 1, atol=1e-7)
    theirs = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options={"maxcor": 20, "gtol": 1e-8})
    # Fewer steps in memory, or the scale of an older one, take more than these 74.
    assert len(calls) <= 75 < 2 * theirs.nfev


def test_a_problem_whose_steps_fail_leaves_and_the_others_go_on():
    H, best = quadratics(2)
    f = value_and_gradient_of(H, best)

    def spoiled(W, columns):
        value, gradient = f(W, columns)
        # An uphill "gradient": no step along it descends.
        gradient[:, columns == 0] *= -1
        return value, gradient

    W, _ = lbfgs_many(spoiled, np.zeros_like(best), 1 / np.einsum("kii->ik", H), 1e-8, 500)
    np.testing.assert_array_equal(W[:, 0], 0)
    np.testing.assert_allclose(W[:, 1], best[:, 1], atol=1e-6)
