"""Double hinge to the last digit: the rows on a kink are identified, and the rest is one linear system."""

import numpy as np
import pytest
from scipy import sparse

from sdulearn.losses import DoubleHinge
from sdulearn.pairs import sources
from sdulearn.risks import even_and_linear, mixture, row_weights
from sdulearn.solvers import Design, Problem, Solution, crossover, interior_point, solve


def problem_of(rows, codes, alpha=0.01, fit_intercept=True):
    a, m = even_and_linear(*row_weights(mixture("sddu"), 0.7, sources(codes)))
    return Design.from_rows(rows, fit_intercept).problem(a, m, DoubleHinge(), alpha)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_the_answer_is_exact(waveform, make, alpha, fit_intercept):
    problem = problem_of(make(waveform[0]), waveform[1], alpha, fit_intercept)
    solution = solve(problem, "interior_point", 1e-8, 1000)
    assert problem.optimality(solution) < 1e-14
    z, share = problem.A @ solution.w, 2 * solution.dual / problem.a
    kinked = (np.abs(share) > 1e-9) & (np.abs(share) < 1 - 1e-9)
    assert 0 < kinked.sum() <= len(solution.w)
    np.testing.assert_allclose(np.abs(z[kinked]), 1, atol=1e-12)
    np.testing.assert_allclose(share[~kinked], np.sign(z[~kinked]) * (np.abs(z[~kinked]) > 1), atol=1e-9)


def test_no_tolerance_changes_the_answer(waveform):
    problem = problem_of(*waveform)
    loose, tight = (solve(problem, "interior_point", tol, 1000).w for tol in (1e-6, 1e-9))
    np.testing.assert_allclose(loose, tight, atol=1e-13)


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
    assert split.optimality(three) < 1e-13


def test_a_wrong_guess_is_mended(waveform, monkeypatch):
    problem = problem_of(*waveform)
    exact = solve(problem, "interior_point", 1e-8, 1000)
    monkeypatch.setattr(interior_point, "_EXACT", 0.0)
    rough = solve(problem, "interior_point", 1e-4, 1000)
    assert problem.optimality(rough) > 1e-8
    np.testing.assert_allclose(crossover.cross_over(problem, rough).w, exact.w, atol=1e-12)


def test_where_the_kinks_cannot_be_identified_the_answer_stays(waveform, monkeypatch):
    problem = problem_of(*waveform)
    solution = solve(problem, "interior_point", 1e-8, 1000)
    monkeypatch.setattr(crossover, "_ROUNDS", 0)
    np.testing.assert_array_equal(crossover.cross_over(problem, solution).w, solution.w)


def test_more_rows_near_a_kink_than_columns():
    """Among many rows some lie so near a kink that the interior point cannot tell them from those on it."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60_000) < 0.7, 1, -1)
    answers = np.where(y[:6000:2] == y[1:6000:2], 1, -1) * np.arange(1, 3001)
    codes = np.concatenate([np.repeat(answers, 2), np.zeros(54_000, dtype=np.int64)])
    rows = rng.normal(size=(60_000, 10)) + 0.3 * y[:, None] * rng.normal(size=10)
    problem = problem_of(rows, codes, alpha=1e-3)
    assert problem.optimality(solve(problem, "interior_point", 1e-6, 1000)) < 1e-14


def kinked_problem():
    """Four rows of one column: z = w x, the kink at |z| = 1."""
    A = np.array([[1.0], [2.0], [0.5], [-1.0]])
    a = np.full(4, 0.5)
    return Problem(A, a, np.array([0.3]), np.array([0.1]), DoubleHinge())


@pytest.mark.parametrize(
    ("w", "kinked", "side", "share", "now_kinked", "now_side"),
    [
        # Nothing to revise: the first row on its kink, with a slope within the limits.
        (1.0, [1, 0, 0, 0], [1, 1, 0, -1], 0.5, [1, 0, 0, 0], [1, 1, 0, -1]),
        # A slope below zero: the row belongs inside, where there is none.
        (1.0, [1, 0, 0, 0], [1, 1, 0, -1], -0.5, [0, 0, 0, 0], [0, 1, 0, -1]),
        # A slope beyond its limit: the row belongs outside, on its side.
        (1.0, [1, 0, 0, 0], [1, 1, 0, -1], 1.5, [0, 0, 0, 0], [1, 1, 0, -1]),
        # Flat rows that crossed their kink are put on it, on the side where they went.
        (1.5, [0, 0, 0, 0], [0, 1, 0, 0], 0.0, [1, 0, 0, 1], [1, 1, 0, -1]),
        # Steep rows that came back over their kink are put on it.
        (0.4, [0, 0, 0, 0], [1, 1, 0, -1], 0.0, [1, 1, 0, 1], [1, 1, 0, -1]),
        # A steep row that went over to the other side altogether.
        (-1.2, [0, 0, 0, 0], [1, 1, 0, 1], 0.0, [1, 1, 0, 0], [1, 1, 0, 1]),
    ],
)
def test_rows_are_put_where_their_slope_and_their_place_say(w, kinked, side, share, now_kinked, now_side):
    problem = kinked_problem()
    kinked = np.array(kinked, dtype=bool)
    side = np.array(side, dtype=float)
    dual = problem.a * side / 2
    dual[kinked] *= share
    revised = crossover._revise(problem, Solution(np.array([w]), 0, dual), kinked, side)
    np.testing.assert_array_equal(revised[0], np.array(now_kinked, dtype=bool))
    np.testing.assert_array_equal(revised[1], now_side)


@pytest.mark.parametrize("change", ["leave", "join", "sides"])
def test_a_spoiled_guess_is_revised_to_the_solution(waveform, change):
    """Rows taken off their kinks, put on kinks, or on the wrong side: the solution comes back."""
    problem = problem_of(*waveform)
    exact = solve(problem, "interior_point", 1e-8, 1000)
    z = problem.A @ exact.w
    kinked = np.abs(np.abs(z) - 1) < 1e-9
    side = np.where(kinked | (np.abs(z) > 1), np.sign(z), 0.0)
    nearest = np.argsort(np.where(kinked, np.inf, np.abs(np.abs(z) - 1)))[:2]
    if change == "leave":
        some = np.flatnonzero(kinked)[:2]
        kinked[some] = False
    elif change == "join":
        side[nearest] = np.sign(z[nearest])
        kinked[nearest] = True
    else:
        side[nearest] = np.where(side[nearest] == 0, np.sign(z[nearest]), 0.0)
    start = Solution(np.zeros_like(exact.w), 0, np.zeros_like(problem.a), optimality=np.inf)
    found = crossover._improved(problem, start, kinked, side)
    np.testing.assert_allclose(found.w, exact.w, atol=1e-9)
