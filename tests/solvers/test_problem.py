"""The design matrix keeps every column of the user's, in whatever unit, and the certificate is in those columns."""

import numpy as np
import pytest
from scipy import sparse

from sdulearn import SDUClassifier
from sdulearn.answers.y import sources
from sdulearn.losses import TRAINING_LOSSES, get_loss
from sdulearn.risks import even_and_linear, mixture, row_weights
from sdulearn.solvers import choose_solver, problem, solve
from sdulearn.solvers.problem import Design, Problem, Solution

CODES = np.r_[np.repeat(np.arange(1, 13), 2), np.repeat(-np.arange(13, 21), 2), np.zeros(20, dtype=int)]
WEIGHTS = even_and_linear(*row_weights(mixture("sddu"), 0.7, sources(CODES)))


def wide_rows(scale=1.0, d=150, seed=0):
    """More columns than rows."""
    return np.random.default_rng(seed).normal(size=(len(CODES), d)) * scale


def ridge_solution(X, alpha, fit_intercept):
    """Squared loss by the normal equations, each column in its own unit: nothing is lost to a large one."""
    a, m = WEIGHTS
    A = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    unit = np.sqrt(np.mean(A**2, axis=0))
    penalty = np.full(A.shape[1], alpha)
    if fit_intercept:
        penalty[-1] = 0.0
    B = A / unit
    H = B.T @ (a[:, None] * B) / 2 + np.diag(penalty / unit**2)
    return np.linalg.solve(H, B.T @ m) / unit


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("factor", [1e-4, 1e7, 1e12])
def test_one_unscaled_column_does_not_hide_the_others(factor, fit_intercept, make):
    scale = np.ones(150)
    scale[-1] = factor
    X = wide_rows(scale)
    model = SDUClassifier(alpha=0.01, prior=0.7, fit_intercept=fit_intercept).fit(make(X), CODES)
    expected = ridge_solution(X, 0.01, fit_intercept)[:150]
    np.testing.assert_allclose(model.coef_[0] * scale, expected * scale, rtol=0, atol=1e-6 * np.abs(expected).max())
    assert model.optimality_ < 1e-8


@pytest.mark.parametrize("loss", TRAINING_LOSSES)
def test_a_large_offset_without_an_intercept(loss):
    """Rows far from zero differ in their last digits only, and the span must keep these."""
    X = wide_rows() + 1e6
    model = SDUClassifier(loss=loss, alpha=1e-2, prior=0.7, fit_intercept=False).fit(X, CODES)
    assert model.optimality_ < 1e-8
    a, m = WEIGHTS

    def J(w):
        z = X @ w
        return 0.01 / 2 * w @ w + a @ get_loss(loss).even(z) - m @ z

    assert J(model.coef_[0]) == pytest.approx(model.objective_, rel=1e-6)
    if loss == "squared":
        assert J(model.coef_[0]) <= J(ridge_solution(X, 1e-2, False)) + 1e-6 * abs(model.objective_)


def test_what_the_span_leaves_out_is_seen_by_the_certificate(monkeypatch):
    """The certificate is about the user's columns, not about those that the solver was given."""
    monkeypatch.setattr(problem, "_is_faithful", lambda *_: True)
    scale = np.ones(150)
    scale[-1] = 1e9
    X = wide_rows(scale)
    for loss in TRAINING_LOSSES:
        design = Design.from_rows(X, True)
        setting = (*WEIGHTS, get_loss(loss), 0.01)
        solver = choose_solver("auto", get_loss(loss), 1)
        found = solve(design.problem(*setting), solver, 1e-8, 1000)
        assert design.certified(*setting, found).optimality > 1e-3


def test_duplicate_and_empty_rows_and_columns_in_a_wide_table():
    X = wide_rows()
    X[1] = X[0]
    X[5] = 0
    X[:, 3] = 0
    X[:, 4] = X[:, 5]
    for loss in TRAINING_LOSSES:
        for rows in (X, sparse.csr_matrix(X)):
            model = SDUClassifier(loss=loss, prior=0.7).fit(rows, CODES)
            assert model.optimality_ < 1e-8
            assert model.coef_[0, 3] == 0
            assert model.coef_[0, 4] == pytest.approx(model.coef_[0, 5])


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
    expected = one.certified(Solution(w, 1, dual)).optimality
    assert expected > 1e-3
    # All of the objective in another unit.
    larger = Problem(one.A, unit * one.a, unit * one.c, unit * one.ridge, one.loss)
    its_dual = None if dual is None else unit * dual
    assert larger.certified(Solution(w, 1, its_dual)).optimality == pytest.approx(expected)
    # Each column in another unit, and its coefficient in the inverse one.
    units = unit ** np.arange(4.0)
    other = Problem(one.A * units, one.a, one.c * units, one.ridge * units**2, one.loss)
    assert other.certified(Solution(w / units, 1, dual)).optimality == pytest.approx(expected)


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
