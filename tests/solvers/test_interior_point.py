"""Double hinge to the last digit: the rows on a kink are identified, and the rest is one linear system."""

import numpy as np
import pytest
from scipy import sparse

from sdulearn.losses import DoubleHinge
from sdulearn.pairs import sources
from sdulearn.risks import even_and_linear, mixture, row_weights
from sdulearn.solvers import interior_point, solve
from sdulearn.solvers.problem import Design, Problem, Solution


def problem_of(rows, codes, alpha=0.01, fit_intercept=True):
    a, m = even_and_linear(*row_weights(mixture("sddu"), 0.7, sources(codes)))
    return Design.from_rows(rows, fit_intercept).problem(a, m, DoubleHinge(), alpha)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1.0, 1e-5])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_the_answer_is_exact(waveform, make, alpha, fit_intercept):
    problem = problem_of(make(waveform[0]), waveform[1], alpha, fit_intercept)
    solution = solve(problem, "interior_point", 1e-8, 1000)
    assert problem.certified(solution).optimality < 1e-14
    z, share = problem.A @ solution.w, 2 * solution.dual / problem.a
    kinked = (np.abs(share) > 1e-9) & (np.abs(share) < 1 - 1e-9)
    assert 0 < kinked.sum() <= len(solution.w)
    np.testing.assert_allclose(np.abs(z[kinked]), 1, atol=1e-12)
    np.testing.assert_allclose(share[~kinked], np.sign(z[~kinked]) * (np.abs(z[~kinked]) > 1), atol=1e-9)


def test_equal_rows_on_a_kink_share_their_slope_by_weight(waveform):
    """Their slopes are not unique, and an even split would leave the limits of the lighter ones."""
    rows, codes = waveform
    problem = problem_of(rows, codes)
    parts = np.array([0.01, 0.29, 0.7])
    split = Problem(
        np.repeat(problem.A, 3, axis=0), np.outer(problem.a, parts).ravel(), problem.c, problem.ridge, problem.loss
    )
    one, three = solve(problem, "interior_point", 1e-8, 1000), solve(split, "interior_point", 1e-8, 1000)
    np.testing.assert_allclose(three.w, one.w, atol=1e-12)
    assert split.certified(three).optimality < 1e-13


def test_more_rows_near_a_kink_than_columns():
    """Among many rows some lie so near a kink that the interior point cannot tell them from those on it."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60_000) < 0.7, 1, -1)
    answers = np.where(y[:6000:2] == y[1:6000:2], 1, -1) * np.arange(1, 3001)
    codes = np.concatenate([np.repeat(answers, 2), np.zeros(54_000, dtype=np.int64)])
    rows = rng.normal(size=(60_000, 10)) + 0.3 * y[:, None] * rng.normal(size=10)
    problem = problem_of(rows, codes, alpha=1e-3)
    assert problem.certified(solve(problem, "interior_point", 1e-6, 1000)).optimality < 1e-14


@pytest.mark.parametrize("heavy", [1.0, 200.0])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_rows_far_from_a_kink_are_left_out_and_the_answer_stays(monkeypatch, make, heavy):
    rng = np.random.default_rng(0)
    A = np.column_stack([rng.normal(size=(3000, 4)), np.ones(3000)])
    a = np.where(np.arange(3000) < 40, heavy, 1.0) / 3000
    sign = np.sign(A @ [1.0, -0.5, 0.2, 0.0, 0.4] + rng.normal(size=3000))
    problem = Problem(make(A), a, A.T @ (a * sign) / 2, np.r_[np.full(4, 1e-3), 0.0], DoubleHinge())
    whole = solve(problem, "interior_point", 1e-8, 1000)
    sizes = []
    follow = interior_point._follow_path
    monkeypatch.setattr(interior_point, "_MANY", 1000)
    monkeypatch.setattr(
        interior_point, "_follow_path", lambda one, *more: sizes.append(len(one.a)) or follow(one, *more)
    )
    found = solve(problem, "interior_point", 1e-8, 1000)
    np.testing.assert_allclose(found.w, whole.w, rtol=1e-7, atol=1e-9)
    assert found.optimality < 1e-10
    assert max(sizes) < 1500
    # A start of no use is given up for all rows.
    far = solve(problem, "interior_point", 1e-8, 1000, [Solution(np.r_[0.0, 0.0, 0.0, 0.0, 1e3], 0)])
    np.testing.assert_allclose(far.w, whole.w, rtol=1e-7, atol=1e-9)
