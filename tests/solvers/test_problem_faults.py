"""The certificate and the way into the rows' own span."""

import numpy as np
import pytest
from scipy import sparse

from sdulearn.losses import get_loss
from sdulearn.solvers import Design, Problem, Solution, solve
from sdulearn.solvers.problem import _span


def random_problem(loss, rng, n=40, d=4):
    A = rng.normal(size=(n, d))
    a = rng.random(n) / n
    return Problem(A, a, A.T @ (rng.normal(size=n) / n), np.full(d, 0.1), get_loss(loss))


@pytest.mark.parametrize("loss", ["logistic", "double_hinge"])
@pytest.mark.parametrize("unit", [1e-3, 1e4])
def test_units_of_objective_and_columns_do_not_change_the_certificate(loss, unit):
    rng = np.random.default_rng(0)
    one = random_problem(loss, rng)
    w = rng.normal(size=4)
    dual = one.a * rng.uniform(-0.5, 0.5, 40) if loss == "double_hinge" else None
    expected = one.optimality(Solution(w, 1, dual))
    assert expected > 1e-3
    # All of the objective in another unit.
    larger = Problem(one.A, unit * one.a, unit * one.c, unit * one.ridge, one.loss)
    its_dual = None if dual is None else unit * dual
    assert larger.optimality(Solution(w, 1, its_dual)) == pytest.approx(expected)
    # Each column in another unit, and its coefficient in the inverse one.
    units = unit ** np.arange(4.0)
    other = Problem(one.A * units, one.a, one.c * units, one.ridge * units**2, one.loss)
    assert other.optimality(Solution(w / units, 1, dual)) == pytest.approx(expected)


def test_slopes_that_fit_no_row_are_not_certified():
    """Stationary by construction, but not complementary: the slopes belong to other values of z."""
    rng = np.random.default_rng(1)
    one = random_problem("double_hinge", rng)
    theta = one.a * rng.uniform(-0.4, 0.4, 40)
    w = rng.normal(size=4)
    stationary = Problem(one.A, one.a, one.ridge * w + one.A.T @ theta, one.ridge, one.loss)
    z = one.A @ w
    gap = one.a @ np.maximum(1, np.abs(z)) / 2 + np.sum(np.abs(theta) - one.a / 2) - theta @ z
    assert gap > 1e-3
    certified = stationary.certified(Solution(w, 1, theta))
    assert certified.optimality == pytest.approx(gap / max(abs(certified.objective), one.a.sum() / 2))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_column_of_another_unit_hides_no_other(loss):
    """More columns than rows, one of them ten thousand times as large: stationary in every column of the user."""
    rng = np.random.default_rng(0)
    n, d, alpha = 12, 30, 1e-3
    X = rng.normal(size=(n, d))
    X[:, 0] *= 1e4
    a = np.full(n, 1 / n)
    m = rng.uniform(-0.4, 0.4, n) / n
    design = Design.from_rows(X, True)
    problem = design.problem(a, m, get_loss(loss), alpha)
    solution = solve(problem, "closed_form" if loss == "squared" else "newton", 1e-10, 1000)
    coef, intercept = design.coefficients(solution.w)
    slope = a * get_loss(loss).even_grad(X @ coef + intercept) - m
    gradient = alpha * coef + X.T @ slope
    assert np.max(np.abs(gradient) / np.sqrt(np.mean(X**2, axis=0))) < 1e-5
    assert abs(slope.sum()) < 1e-6


def test_the_span_keeps_all_inner_products():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8, 20))
    rows[:, 0] *= 1e4
    coordinates, span = _span(rows)
    assert coordinates.shape == (8, 8)
    np.testing.assert_allclose(coordinates @ coordinates.T, rows @ rows.T, rtol=1e-9)
    basis = span.left.T @ span.right
    # Eigenvectors of a matrix are exact to its largest eigenvalue's rounding.
    np.testing.assert_allclose(basis.T @ basis, np.eye(8), atol=1e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("d", [3, 30], ids=["tall", "wide"])
def test_coefficients_of_the_user_make_the_decisions_of_the_solver(d, make, fit_intercept):
    """Centred or not, in the columns or in the rows' span: one line."""
    rng = np.random.default_rng(0)
    X = 5 + rng.normal(size=(12, d))
    design = Design.from_rows(make(X), fit_intercept)
    w = rng.normal(size=design.A.shape[1])
    coef, intercept = design.coefficients(w)
    assert coef.shape == (d,)
    np.testing.assert_allclose(X @ coef + intercept, design.A @ w, atol=1e-9)
    assert fit_intercept or intercept == 0
